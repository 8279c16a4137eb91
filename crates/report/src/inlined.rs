//! Which functions ran where they were inlined, whether their own code did or not? What did those copies
//! execute?

use crate::Error;
use crate::count::{self, Count, CountedBlock};
use crate::names::{Named, functions};
use crate::rows::Tally;
use headcount_model::{Compiled, Counted, LineRun, LinkAddr};
use std::collections::{BTreeMap, HashSet};

/// The lines of which a copy ran that was inlined into another function: file and line.
pub struct InlinedRuns<'a>(HashSet<(&'a str, u32)>);

impl<'a> InlinedRuns<'a> {
    pub fn of(counted: impl IntoIterator<Item = &'a Counted>) -> Self {
        let mut lines = HashSet::new();
        for named in counted.into_iter().flat_map(|it| functions(it, false)) {
            for block in named.blocks() {
                for (run, range) in block.block.lines.iter().zip(block.line_ranges()) {
                    let is_copied = run.inline_copy > 0 && !range.is_empty();
                    let has_run = |at: u32| block.at(at).value().is_some_and(|it| it > 0);
                    if let (true, Some(file)) = (is_copied, named.file(run.file))
                        && has_run(range.start)
                    {
                        lines.insert((file, run.line));
                    }
                }
            }
        }
        Self(lines)
    }

    /// Whether a copy of this function ran.
    pub fn has(&self, named: &Named<'_>) -> bool {
        let Some((file, first)) = named.function.source else {
            return false;
        };
        let runs = named.function.blocks.iter().flat_map(|it| &it.lines);
        let own = runs.filter(|it| it.inline_copy == 0 && it.instructions > 0);
        // What is of another file, or from above, somebody else wrote, and a macro put it there.
        let mut own = own.filter(|it| it.file == file && it.line >= first);
        let file = named.file(file);
        own.any(|it| file.is_some_and(|file| self.0.contains(&(file, it.line))))
    }
}

/// What each inlined copy executed, with what was inlined into it in turn, by its place in
/// [`Compiled::inlined`].
pub fn tallies(named: &Named<'_>) -> Result<BTreeMap<usize, Tally>, Error> {
    let compiled = &named.function.compiled;
    let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
    for block in named.blocks() {
        for (run, range) in block.block.lines.iter().zip(block.line_ranges()) {
            for copy in around(compiled, run.inline_copy) {
                let tally = tallies.entry(copy).or_default();
                tally.add_range(&block, range.clone())?;
            }
        }
    }
    Ok(tallies)
}

/// The places of a copy, given its number, and of those that it is within.
pub fn around(compiled: &Compiled, copy: u32) -> impl Iterator<Item = usize> {
    let place = |copy: u32| (copy as usize).checked_sub(1);
    let next = move |at: &usize| {
        let within = place(compiled.inlined.get(*at)?.within)?;
        // Broken debug information must not lead round in circles.
        (within < *at).then_some(within)
    };
    let first = place(copy).filter(|it| *it < compiled.inlined.len());
    std::iter::successors(first, next)
}

/// How often inlined copies were entered, as far as the code at their entries tells.
pub struct Entries<'n, 'a> {
    named: &'n Named<'a>,
    blocks: Vec<CountedBlock<'a>>,
    edges: Vec<Count>,
    /// For each block, the edges that lead to it.
    into: Vec<Vec<usize>>,
    /// By the places of copies: how often the code of each ran that ran most often,
    most: Vec<u64>,
    /// and whether it goes round in a loop.
    loops: Vec<bool>,
}

impl<'n, 'a> Entries<'n, 'a> {
    pub fn new(named: &'n Named<'a>) -> Self {
        let copies = named.function.compiled.inlined.len();
        let mut entries = Self {
            named,
            blocks: Vec::new(),
            edges: Vec::new(),
            into: Vec::new(),
            most: vec![0; copies],
            loops: vec![false; copies],
        };
        if copies > 0 {
            entries.blocks = named.blocks().collect();
            entries.edges = count::edges(named.counts).collect();
            entries.into = vec![Vec::new(); entries.blocks.len()];
            entries.look_at_blocks();
            entries.look_at_edges();
        }
        entries
    }

    fn look_at_blocks(&mut self) {
        let compiled = &self.named.function.compiled;
        for block in &self.blocks {
            for (run, range) in block.block.lines.iter().zip(block.line_ranges()) {
                let count = block.at(range.start).value().filter(|_| !range.is_empty());
                for copy in around(compiled, run.inline_copy) {
                    self.most[copy] = count.unwrap_or(0).max(self.most[copy]);
                }
            }
        }
    }

    fn look_at_edges(&mut self) {
        let compiled = &self.named.function.compiled;
        for (number, edge) in self.named.function.edges.iter().enumerate() {
            let (Some(from), Some(to)) = (edge.from, edge.to) else {
                continue;
            };
            self.into[to as usize].push(number);
            if to <= from {
                let first = self.blocks[to as usize].block.lines.first();
                let last = self.blocks[from as usize].block.lines.last();
                let copies = last.map(|it| around(compiled, it.inline_copy));
                for copy in copies.into_iter().flatten() {
                    self.loops[copy] |= is_in(compiled, first, copy);
                }
            }
        }
    }

    /// The block that the copy at this place begins in, and the edges that lead to its beginning.
    fn entry(&self, place: usize) -> Option<(usize, &[usize])> {
        let entry = self.named.function.compiled.inlined.get(place)?.entry?;
        let index = holder(&self.blocks, entry)?;
        match self.blocks[index].block.address == entry {
            true => Some((index, &self.into[index])),
            false => Some((index, &[])),
        }
    }

    /// How often the code ran with which the copy at this place begins; `None`, if that is not its own.
    pub fn at(&self, place: usize) -> Option<u64> {
        let (index, into) = self.entry(place)?;
        let block = &self.blocks[index];
        let mut lines = block.block.lines.iter();
        let first = lines.find(|it| it.instructions > 0);
        let is_own = into.len() < 2 || is_in(&self.named.function.compiled, first, place);
        block.count().exact().filter(|_| is_own)
    }

    /// How often the copy at this place was entered. Ways back to its beginning from inside are no entries; and if it
    /// has no loop, but code that ran more often, the beginning does not tell.
    pub fn of(&self, place: usize) -> Option<u64> {
        let mut entered = self.at(place)?;
        let (_, into) = self.entry(place)?;
        for number in into {
            let from = self.named.function.edges[*number].from;
            let from = from.and_then(|it| self.blocks[it as usize].block.lines.last());
            if is_in(&self.named.function.compiled, from, place) {
                entered = entered.checked_sub(self.edges[*number].exact()?)?;
            }
        }
        (self.loops[place] || self.most[place] <= entered).then_some(entered)
    }
}

/// Does a line belong to a copy, or to one that was inlined into that?
fn is_in(compiled: &Compiled, run: Option<&LineRun>, place: usize) -> bool {
    run.is_some_and(|it| around(compiled, it.inline_copy).any(|it| it == place))
}

/// The block that holds an address.
pub fn holder(blocks: &[CountedBlock<'_>], at: LinkAddr) -> Option<usize> {
    let holds = |it: &CountedBlock<'_>| {
        let mut spans = it.block.code.iter();
        spans.any(|span| {
            let inside = at.0.checked_sub(span.address.0);
            inside.is_some_and(|it| it < span.bytes.len() as u64)
        })
    };
    blocks.iter().position(holds)
}
