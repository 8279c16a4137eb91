//! Calls that a compiler replaced by what they call: where, of which function, how often, at what cost?

use crate::Error;
use crate::call_graph::CallGraph;
use crate::callees::{Callee, Site};
use crate::count::{Count, CountedBlock};
use crate::inlined::{Entries, around, tallies};
use crate::names::Named;
use crate::rows::Tally;
use headcount_model::{InlinedCall, LinkAddr, Module};
use std::collections::{BTreeMap, HashMap};

/// A copy of a function, where the call of it was.
pub struct InlinedCopy<'g, 'a> {
    /// The function that it is in.
    pub node: usize,
    pub named: &'g Named<'a>,
    /// Its place in the list of the function's copies.
    place: usize,
    /// What was called, by the linker's name.
    pub callee: String,
    /// The function around it, by the linker's name: the one it is in, or one that was inlined itself.
    pub caller: String,
    /// Whether it is in another copy of the same function.
    pub is_in_itself: bool,
    /// How often it was entered.
    pub count: Count,
    /// What it executed, with what was inlined into it.
    pub tally: Tally,
}

impl<'a> InlinedCopy<'_, 'a> {
    /// The call.
    pub fn call(&self) -> &'a InlinedCall {
        &self.named.function.compiled.inlined[self.place]
    }

    /// What it executed with all that it called.
    pub fn inclusive(&self, graph: &CallGraph<'a>) -> Option<u64> {
        let sites = graph.nodes[self.node].sites();
        let inside = sites.filter(|(named, site)| {
            named.index == self.named.index && is_inside(named, site, self.place)
        });
        let cost = |site: &Site| {
            let callee = match &site.callee {
                Callee::Function(id) => graph.node(*id),
                _ => None,
            };
            let cost = callee.map(|it| graph.cost(self.node, it, site));
            cost.or(site.inclusive).unwrap_or(0)
        };
        let own = self.tally.executed.value()?;
        Some(inside.fold(own, |sum, (_, site)| sum.saturating_add(cost(site))))
    }
}

/// Is an instruction in a copy, or in one that was inlined into that?
fn is_inside(named: &Named<'_>, site: &Site, place: usize) -> bool {
    let block = named.blocks().nth(site.block);
    let copy = block.and_then(|it| copy_at(&it, site.index));
    copy.is_some_and(|it| around(&named.function.compiled, it).any(|it| it == place))
}

/// The number of the copy that an instruction of a block belongs to.
fn copy_at(block: &CountedBlock<'_>, index: u32) -> Option<u32> {
    let ranges = block.line_ranges();
    let at = ranges.iter().position(|it| it.contains(&index))?;
    Some(block.block.lines[at].inline_copy)
}

/// Finds the linker's names of what was inlined into the functions of a module: by their addresses, in the order of
/// [`headcount_model::Compiled::inlined`]. The profile does not have them.
pub type FindInlinedNames<'a> =
    &'a dyn Fn(&Module) -> Result<HashMap<LinkAddr, Vec<String>>, String>;

/// What was found: the copies that ran in the functions of a graph; and for each module with copies whose names are
/// not known, why.
#[derive(Default)]
pub struct Found<'g, 'a> {
    pub copies: Vec<InlinedCopy<'g, 'a>>,
    pub nameless: BTreeMap<&'a str, String>,
}

impl<'g, 'a> Found<'g, 'a> {
    pub fn new(graph: &'g CallGraph<'a>, names: FindInlinedNames<'_>) -> Result<Self, Error> {
        let mut modules: BTreeMap<&str, Vec<(usize, &Named<'_>)>> = BTreeMap::new();
        for (node, it) in graph.nodes.iter().enumerate() {
            for (named, _) in &it.parts {
                if !named.function.compiled.inlined.is_empty() {
                    let all = modules.entry(&named.module.path).or_default();
                    all.push((node, named));
                }
            }
        }
        let mut found = Self::default();
        for (module, functions) in modules {
            let names = match names(functions[0].1.module) {
                Ok(names) => names,
                Err(why) => {
                    found.nameless.insert(module, why);
                    continue;
                }
            };
            for (node, named) in functions {
                let names = names.get(&named.function.address);
                found.add(node, named, names.map_or(&[], Vec::as_slice))?;
            }
        }
        Ok(found)
    }

    /// Adds the copies in a function that ran. A part that was split off a function, and inlined again into the rest
    /// of it, is none.
    fn add(&mut self, node: usize, named: &'g Named<'a>, names: &[String]) -> Result<(), Error> {
        let compiled = &named.function.compiled;
        if names.len() != compiled.inlined.len() {
            let why = "no longer has the debug information that it was counted with";
            self.nameless.insert(&named.module.path, why.to_owned());
            return Ok(());
        }
        let is_part = |place: usize| {
            let call = &compiled.inlined[place];
            call.callee == Some((call.file, call.line))
        };
        let entries = Entries::new(named);
        for (place, tally) in tallies(named)? {
            if !tally.ran || is_part(place) {
                continue;
            }
            let outer: Vec<usize> = around(compiled, place as u32 + 1).skip(1).collect();
            let caller = outer.iter().find(|it| !is_part(**it));
            let caller = caller.map_or(&named.function.name, |it| &names[*it]);
            let is_in_itself = outer.iter().any(|it| names[*it] == names[place]);
            self.copies.push(InlinedCopy {
                node,
                named,
                place,
                is_in_itself,
                callee: names[place].clone(),
                caller: caller.clone(),
                // An optimiser may have dropped some of it.
                count: match entries.of(place) {
                    Some(count) if compiled.is_optimised => Count::AtLeast(count),
                    Some(count) => Count::Exact(count),
                    None => Count::Unknown,
                },
                tally,
            });
        }
        Ok(())
    }
}
