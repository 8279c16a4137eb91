//! Which code is one function, and where do its blocks begin?

use std::collections::{BTreeMap, BTreeSet};

use headcount_model::{Function, LinkAddr, Refusal};

use crate::blocks::{Facts, blocks};
use crate::debug_info::{self, DebugInfo};
use crate::frames::Frame;
use crate::functions::{self, Origin, Part};
use crate::image::Image;
use crate::indirect::{Indirect, indirect};
use crate::landing_pads::landing_pads;
use crate::module::refusal;
use crate::names::Names;
use crate::overlaps;
use crate::ownership;
use crate::references::{self, references};
use crate::sweep::Flow;
use crate::symbols::Symbols;

/// The code of a module, and who owns which part of it.
pub struct Code<'a> {
    parts: &'a [Part],
    indirect: Indirect,
    owners: Vec<usize>,
    leaders: Vec<u64>,
    arrivals: Vec<u64>,
    arrived: Arrived,
}

impl<'a> Code<'a> {
    pub fn new(
        image: &Image<'_>,
        parts: &'a [Part],
        symbols: &Symbols,
        frames: &[Frame],
        starts: &[u64],
        fixed: bool,
    ) -> Self {
        let mut called: Vec<u64> = parts
            .iter()
            .flat_map(|part| &part.ops)
            .filter_map(|op| match op.flow {
                Flow::Call(to) => Some(to),
                _ => None,
            })
            .collect();
        called.sort_unstable();
        let mut loose = ownership::loose(parts, symbols, &called, starts);
        let indirect = indirect(image, parts, &loose);
        let mut arrivals = references(image, parts, &indirect, symbols, fixed);
        for (part, loose) in parts.iter().zip(&mut loose) {
            let named = part.origin == Origin::Symbol;
            *loose &= named || arrivals.binary_search(&part.range.start).is_err();
        }
        let mut ways = Vec::new();
        let mut budget = image.data().map(|piece| piece.bytes.len()).sum();
        for frame in frames {
            let Some(from) = functions::part_at(parts, frame.range.start) else {
                continue;
            };
            for pad in landing_pads(image, frame, &mut budget) {
                arrivals.push(pad);
                ways.extend(functions::part_at(parts, pad).map(|to| (from, to)));
            }
        }
        let jumps: Vec<_> = references::jumps(parts, &indirect).collect();
        ways.extend(jumps.iter().map(|(from, to, _)| (*from, *to)));
        ways.retain(|(from, to)| from != to);
        let arrived = Arrived::new(parts, &jumps);
        for (index, loose) in loose.iter_mut().enumerate() {
            // What is refused for itself spares the function that jumps to it.
            *loose &= trouble(parts, &arrived, index).is_none();
        }
        let owners = ownership::owners(&loose, &ways);
        for (from, to, at) in &jumps {
            let Some(part) = parts.get(*to) else {
                continue;
            };
            // A jump from elsewhere, unless it is a call without return.
            let apart = owners.get(*from) != owners.get(*to);
            let is_entry = *at == part.range.start && owners.get(*to) == Some(to);
            if apart && !is_entry {
                arrivals.push(*at);
            }
        }
        let mut leaders: Vec<u64> = jumps.iter().map(|(_, _, at)| *at).collect();
        arrivals.sort_unstable();
        arrivals.dedup();
        leaders.extend(&arrivals);
        leaders.extend(overlaps::leaders(parts));
        leaders.sort_unstable();
        leaders.dedup();
        Self {
            parts,
            indirect,
            owners,
            leaders,
            arrivals,
            arrived,
        }
    }

    pub fn functions(
        &self,
        image: &Image<'_>,
        names: &Names<'_>,
        debug: &DebugInfo,
    ) -> (Vec<Function>, Vec<Refusal>) {
        let returns_twice = |call: Flow| names.returns_twice(image, call);
        let facts = Facts {
            image,
            indirect: &self.indirect,
            leaders: &self.leaders,
            arrivals: &self.arrivals,
            returns_twice: &returns_twice,
            debug,
        };
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (part, owner) in self.owners.iter().enumerate() {
            members.entry(*owner).or_default().push(part);
        }
        let mut functions = Vec::new();
        let mut refusals = Vec::new();
        for (owner, members) in members {
            let Some(first) = self.parts.get(owner) else {
                continue;
            };
            let name = names.of(first);
            let bytes: u64 = members
                .iter()
                .filter_map(|member| self.parts.get(*member))
                .map(|part| part.range.end.saturating_sub(part.range.start))
                .sum();
            if let Some(reason) = members
                .iter()
                .find_map(|member| trouble(self.parts, &self.arrived, *member))
            {
                refusals.push(refusal(name, format!("{reason} ({bytes} bytes)")));
                continue;
            }
            let parts: Vec<&Part> = members
                .iter()
                .filter_map(|member| self.parts.get(*member))
                .collect();
            let at = first.range.start;
            let (mut blocks, edges) = blocks(&facts, &parts, at);
            let described = debug.subprogram(at);
            let compiled = described.map(|it| it.compiled.clone());
            let described = described.and_then(|it| it.source);
            let source = described.or_else(|| debug.line(at));
            debug_info::settle(&mut blocks, source);
            functions.push(Function {
                name,
                address: LinkAddr(at),
                source,
                blocks,
                edges,
                counters: 0,
                compiled: compiled.unwrap_or_default(),
            });
        }
        (functions, refusals)
    }
}

/// What jumps prove about the parts that they lead into.
struct Arrived {
    /// Where a jump leads into the midst of an instruction.
    torn: BTreeMap<usize, u64>,
    /// What is surely code, because something that is leads there.
    proven: BTreeSet<usize>,
}

impl Arrived {
    fn new(parts: &[Part], jumps: &[(usize, usize, u64)]) -> Self {
        let mut torn = BTreeMap::new();
        let mut proven = BTreeSet::new();
        for (from, to, at) in jumps {
            // What remains may be data that looks like code; it proves nothing about others.
            let believed = from == to || !is_rest(parts, *from);
            let whole = parts
                .get(*to)
                .is_none_or(|part| part.broken.is_some() || part.has_op(*at));
            if believed && !whole {
                torn.insert(*to, *at);
            }
            if !is_rest(parts, *from) {
                proven.insert(*to);
            }
        }
        Self { torn, proven }
    }
}

fn is_rest(parts: &[Part], index: usize) -> bool {
    parts
        .get(index)
        .is_some_and(|part| part.origin == Origin::Rest)
}

/// Why a part cannot be counted.
fn trouble(parts: &[Part], arrived: &Arrived, index: usize) -> Option<String> {
    let part = parts.get(index)?;
    if part.origin == Origin::Rest && !arrived.proven.contains(&index) {
        return Some("no function, and nothing tells whether it is code or data".to_owned());
    }
    if let Some(at) = part.broken {
        return Some(format!("it has bytes that are no instructions at {at:#x}"));
    }
    if let Some(at) = arrived.torn.get(&index) {
        return Some(format!(
            "a jump leads into the midst of an instruction at {at:#x}"
        ));
    }
    let transaction = part.ops.iter().find(|op| op.flow == Flow::Transaction);
    let at = transaction?.at;
    Some(format!(
        "it begins a transaction at {at:#x}, which counting would end"
    ))
}
