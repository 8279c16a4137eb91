//! Costs in a file: numbers are LEB128, lists have their length in front.

use super::{CallContext, CallCosts, CallEdge, CalledFunction};
use crate::LinkAddr;
use crate::packed::{Packed, Packer};

impl CallCosts {
    /// Writes costs down.
    pub fn pack(&self) -> Vec<u8> {
        let mut to = Packer::default();
        to.many(&self.builds, |to, it| to.text(it));
        to.many(&self.functions, |to, it| {
            to.number(it.build as usize);
            to.wide(it.start.0);
            to.wide(it.calls);
            to.wide(it.inclusive);
        });
        to.many(&self.edges, |to, it| {
            to.number(it.caller.map_or(0, |it| it as usize + 1));
            to.wide(it.site.map_or(0, |it| it.0.wrapping_add(1)));
            to.number(it.callee as usize);
            to.wide(it.calls);
            to.wide(it.inclusive);
        });
        to.many(&self.contexts, |to, it| {
            to.number(it.parent.map_or(0, |it| it as usize + 1));
            to.number(it.edge as usize);
            to.wide(it.calls);
            to.wide(it.executed);
        });
        to.0
    }

    /// Reads what [`CallCosts::pack`] wrote; `None` if that makes no sense.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let builds = from.many(Packed::text)?;
        let functions = from.many(|it| {
            Some(CalledFunction {
                build: it.number()?,
                start: LinkAddr(it.wide()?),
                calls: it.wide()?,
                inclusive: it.wide()?,
            })
        })?;
        let is_function = |number: u32| (number as usize) < functions.len();
        let edges = from.many(|it| {
            let edge = CallEdge {
                caller: it.number()?.checked_sub(1),
                site: it.wide()?.checked_sub(1).map(LinkAddr),
                callee: it.number()?,
                calls: it.wide()?,
                inclusive: it.wide()?,
            };
            let is_whole = is_function(edge.callee) && edge.caller.is_none_or(is_function);
            is_whole.then_some(edge)
        })?;
        let mut number = 0;
        let contexts = from.many(|it| {
            let context = CallContext {
                parent: it.number()?.checked_sub(1),
                edge: it.number()?,
                calls: it.wide()?,
                executed: it.wide()?,
            };
            let is_first = number == 0 && context.parent.is_none();
            let is_known = context.parent.is_some_and(|it| it < number);
            number += 1;
            let has_edge = (context.edge as usize) < edges.len();
            (is_first || is_known && has_edge).then_some(context)
        })?;
        let are_known = |it: &CalledFunction| (it.build as usize) < builds.len();
        let is_whole = builds.is_empty() || functions.iter().all(are_known);
        (from.0.is_empty() && is_whole).then_some(CallCosts {
            builds,
            functions,
            edges,
            contexts,
        })
    }
}
