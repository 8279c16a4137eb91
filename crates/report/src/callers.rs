//! Who called a function, and whom it called: how often, and at what cost.

use crate::Error;
use crate::call_graph::{CallGraph, Node};
use crate::callees::{Callee, Callees, FunctionId, Site};
use crate::calls::{place, text_of};
use crate::count::Count;
use crate::names::Named;
use crate::number::{plural, share, thousands};
use crate::only::Only;
use crate::report::Request;
use crate::table::{Cell, Row};
use headcount_model::Counted;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which calls of some functions are meant.
#[derive(Clone, Debug)]
pub struct CallsOf {
    /// The functions.
    pub functions: BTreeSet<FunctionId>,
    /// Their callers, or whom they call.
    pub direction: Direction,
}

/// In which direction to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Who calls them.
    Callers,
    /// Whom they call.
    Callees,
}

/// What stands for a caller that nobody saw.
const OUTSIDE: &str = "(through a pointer or from outside)";

/// The rows, and what to say of each function.
#[derive(Default)]
pub struct Found {
    pub rows: Vec<Row>,
    pub about: Vec<String>,
}

/// Finds the calls.
pub fn find(counted: &[Counted], request: &Request<'_>) -> Result<Found, Error> {
    let Some(wanted) = request.calls_of else {
        return Ok(Found::default());
    };
    let callees = request.callees(counted);
    let (exact, all) = (request.calls, Only::default());
    let graph = CallGraph::new(counted, &callees, exact, &all, request.demangle)?;
    let nodes: BTreeSet<usize> = wanted
        .functions
        .iter()
        .filter_map(|it| graph.node(*it))
        .collect();
    let total = graph.total();
    let mut found = Found {
        rows: Vec::new(),
        about: nodes
            .iter()
            .map(|it| about(&graph.nodes[*it], total, exact.is_some()))
            .collect(),
    };
    let stubs = match wanted.direction {
        Direction::Callers => stubs(&graph, &nodes),
        Direction::Callees => BTreeSet::new(),
    };
    let is_wanted = |it: &usize| nodes.contains(it) || stubs.contains(it);
    for (caller, node) in graph.nodes.iter().enumerate() {
        // Who called by way of a stub is a caller, and the stub is none.
        let is_stub = stubs.contains(&caller);
        for (named, site) in node.sites().filter(|_| !is_stub) {
            let callee = match &site.callee {
                Callee::Function(id) => graph.node(*id),
                _ => None,
            };
            let is_meant = match wanted.direction {
                Direction::Callers => callee.is_some_and(|it| is_wanted(&it)),
                Direction::Callees => nodes.contains(&caller),
            };
            // Jumps between the parts of a function are its own affair.
            let is_inner = !site.is_call && callee == Some(caller);
            if is_meant && !is_inner && !site.count.is_never() {
                let calls = CallsBetween {
                    graph: &graph,
                    callees: &callees,
                    caller,
                    callee,
                };
                found.rows.push(calls.row(named, site, request.demangle));
            }
        }
    }
    if wanted.direction == Direction::Callers {
        let unseen = graph.edges.iter().filter(|it| it.caller.is_none());
        let unseen = unseen.filter(|it| is_wanted(&it.callee));
        found.rows.extend(unseen.map(|edge| {
            let callee = &graph.nodes[edge.callee];
            let count = match edge.is_assumed {
                true => Count::Unknown,
                false => Count::Exact(edge.count),
            };
            cells_of(
                ["", OUTSIDE, &callee.name()],
                None,
                count,
                None,
                "unseen",
                Some(edge.inclusive),
            )
        }));
    }
    if exact.is_some() {
        for row in &mut found.rows {
            row.cells.extend(row.cells.last().cloned());
        }
    }
    Ok(found)
}

/// The linker's stubs by which a module calls some functions of others.
fn stubs(graph: &CallGraph<'_>, functions: &BTreeSet<usize>) -> BTreeSet<usize> {
    let leads_there = |site: &Site| match &site.callee {
        Callee::Function(id) => graph.node(*id).is_some_and(|it| functions.contains(&it)),
        _ => false,
    };
    let all = graph.nodes.iter().enumerate();
    let stubs = all.filter(|(number, node)| {
        !functions.contains(number)
            && node.name().ends_with("@plt")
            && node.sites().any(|(_, site)| leads_there(site))
    });
    stubs.map(|(number, _)| number).collect()
}

/// Name, calls and cost of a function, in a line.
fn about(node: &Node<'_>, total: u64, is_exact: bool) -> String {
    let about = if is_exact { "" } else { "about " };
    let cycle = match node.cycle {
        1 => String::new(),
        many => format!(" (of {many} functions that call each other)"),
    };
    format!(
        "{}: {}; {} executed by itself ({}), {about}{} with all that it calls ({}){cycle}",
        node.name(),
        plural(node.entered, "call"),
        plural(node.own, "instruction"),
        share(node.own, total),
        thousands(node.inclusive),
        share(node.inclusive, total)
    )
}

struct CallsBetween<'g, 'a> {
    graph: &'g CallGraph<'a>,
    callees: &'g Callees<'a>,
    caller: usize,
    callee: Option<usize>,
}

impl CallsBetween<'_, '_> {
    fn row(&self, named: &Named<'_>, site: &Site, demangle: bool) -> Row {
        let callee = match self.callee {
            Some(callee) => self.graph.nodes[callee].name(),
            None => text_of(self.callees, &site.callee, demangle),
        };
        let count = site.count.value();
        let callee_of = self.callee.filter(|_| count.is_some());
        let inclusive = callee_of.map(|callee| self.graph.cost(self.caller, callee, site));
        let at = named.blocks().nth(site.block);
        let at = at.and_then(|block| place(named, &block, site.index));
        let kind = if site.is_call { "call" } else { "jump" };
        let names = [&*named.module_path, &*named.name, &*callee];
        cells_of(names, Some(site), site.count, at, kind, inclusive)
    }
}

fn cells_of(
    [module, caller, callee]: [&str; 3],
    site: Option<&Site>,
    count: Count,
    at: Option<(Arc<str>, u32)>,
    kind: &str,
    inclusive: Option<u64>,
) -> Row {
    let text = |it: &str| Cell::Text(it.into());
    let (file, line) = at.clone().unwrap_or(("".into(), 0));
    Row {
        cells: vec![
            text(module),
            text(caller),
            Cell::Address(site.map(|it| it.address)),
            text(callee),
            Cell::Count(count),
            Cell::Text(file),
            Cell::Number(line.into()),
            text(kind),
            Cell::Count(inclusive.map_or(Count::Unknown, Count::Exact)),
        ],
        counted: true,
        ran: true,
        place: at,
        ..Row::default()
    }
}
