//! What does the code of a module tell about places of its source?
//!
//! A *place* is a line and a column. One execution of it may be spread over several pieces of code,
//! and code may have been copied: the executions of copies add up, those of pieces do not.

use crate::count::{Count, CountedBlock};
use crate::names::Named;
use headcount_model::{EdgeKind, FileId, InlinedCall, LinkAddr};
use std::collections::{BTreeMap, HashMap};

/// Where something is in a file, and what tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub line: u32,
    pub column: u32,
    pub kind: Kind,
}

/// What tells of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Instructions of its own.
    Code,
    /// A copy of a function that was called there.
    InlinedCall,
}

/// What is known of a place. Sums are over the functions, and the copies in them, that have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// All pieces of code together.
    pub sum: u64,
    /// All stretches of code together, each once, however many pieces of the place are in it.
    pub stretches: u64,
    /// The piece that ran most often, in each copy.
    pub most: u64,
    /// How many pieces there are, in the copy that has most.
    pub pieces: u32,
    /// How many stretches they are in.
    pub spread: u32,
    /// Whether instructions for several values at once are among them.
    pub is_packed: bool,
    /// Whether all of it was counted, and no count reached its limit.
    pub is_partial: bool,
}

impl Told {
    fn add(&mut self, other: Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.stretches = self.stretches.saturating_add(other.stretches);
        self.most = self.most.saturating_add(other.most);
        self.pieces = self.pieces.max(other.pieces);
        self.spread = self.spread.max(other.spread);
        self.is_packed |= other.is_packed;
        self.is_partial |= other.is_partial;
    }
}

/// A function, or a copy of it that was inlined, is entered.
#[derive(Clone, Copy, Debug)]
pub struct Entered {
    /// A line that is surely in it.
    pub line: u32,
    /// How often, if that is known.
    pub count: Option<u64>,
    /// Whether it was inlined.
    pub is_copy: bool,
    /// Whether any code is said to be of its lines.
    pub has_code: bool,
}

/// What is known of a file.
#[derive(Debug, Default)]
pub struct FileEvidence {
    pub places: BTreeMap<Place, Told>,
    pub entered: Vec<Entered>,
    /// Whether its rows mark where statements begin.
    pub marks_statements: bool,
}

/// What the code of optimised functions tells, by file.
pub type Evidence = HashMap<FileId, FileEvidence>;

/// Adds what an optimised function tells.
pub fn add(named: &Named<'_>, to: &mut Evidence) {
    let marks_statements = !named.function.compiled.marks_changes;
    let blocks: Vec<CountedBlock<'_>> = named.blocks().collect();
    let mut pieces = Pieces {
        parts: parts(&named.function.compiled.inlined),
        ..Pieces::default()
    };
    let stretches = stretches(named);
    for (number, stretch) in (0..).zip(&stretches) {
        let mut last = None;
        for block in stretch.iter().filter_map(|it| blocks.get(*it as usize)) {
            let runs = block.block.lines.iter().zip(block.line_ranges());
            for (run, range) in runs.filter(|(run, _)| run.line != 0) {
                let Some(copy) = pieces.whole(run.inline_copy, (run.file, run.line)) else {
                    continue;
                };
                pieces.owner.entry(copy).or_insert((run.file, run.line));
                let tells = match marks_statements {
                    true => run.is_stmt,
                    false => run.instructions > 0,
                };
                let place = Place {
                    line: run.line,
                    column: run.column,
                    kind: Kind::Code,
                };
                let here = (copy, run.file, place);
                // Code that goes on with the place is no other piece of it.
                if tells && last.replace(here) != Some(here) {
                    let piece = (number, block.at(range.start));
                    pieces.found.entry(here).or_default().push(piece);
                }
            }
        }
    }
    pieces.add_calls(named, &blocks, &stretches);
    for ((_, file, place), found) in &pieces.found {
        let known = to.entry(*file).or_default();
        known.marks_statements |= marks_statements;
        known.places.entry(*place).or_default().add(told(found));
    }
    pieces.enter(named, &blocks, to);
}

type Piece = (usize, Count);

#[derive(Default)]
struct Pieces {
    /// By copy, file and place: the stretch each is in, and its count.
    found: HashMap<(u32, FileId, Place), Vec<Piece>>,
    /// A line of each copy.
    owner: HashMap<u32, (FileId, u32)>,
    /// Copies that are only parts of the copy around them: that one, and where the function is.
    parts: HashMap<u32, (u32, (FileId, u32))>,
}

/// gcc may divide a function and inline a part of it into the rest: then the call is where the
/// function itself is.
fn parts(calls: &[InlinedCall]) -> HashMap<u32, (u32, (FileId, u32))> {
    let part = |(number, call): (u32, &InlinedCall)| {
        let callee = call.callee.filter(|it| *it == (call.file, call.line))?;
        Some((number, (call.within, callee)))
    };
    (1..).zip(calls).filter_map(part).collect()
}

impl Pieces {
    /// The copy that a line of one belongs to, if parts are seen as what they are. The heading of a
    /// part is nothing that ran.
    fn whole(&self, mut copy: u32, line: (FileId, u32)) -> Option<u32> {
        while let Some((around, heading)) = self.parts.get(&copy) {
            if *heading == line {
                return None;
            }
            copy = *around;
        }
        Some(copy)
    }

    /// What was inlined tells of the call.
    fn add_calls(
        &mut self,
        named: &Named<'_>,
        blocks: &[CountedBlock<'_>],
        stretches: &[Vec<u32>],
    ) {
        let mut stretch_of = vec![0; blocks.len()];
        for (number, stretch) in stretches.iter().enumerate() {
            for block in stretch {
                stretch_of[*block as usize] = number;
            }
        }
        let calls = (1..).zip(&named.function.compiled.inlined);
        for (_, call) in calls.filter(|(number, _)| !self.parts.contains_key(number)) {
            let Some(block) = call.entry.and_then(|at| holder(blocks, at)) else {
                continue;
            };
            let place = Place {
                line: call.line,
                column: call.column,
                kind: Kind::InlinedCall,
            };
            let piece = (stretch_of[block], blocks[block].count());
            let within = self.whole(call.within, (call.file, call.line));
            let here = (within.unwrap_or(call.within), call.file, place);
            if call.line > 0 {
                self.found.entry(here).or_default().push(piece);
            }
        }
    }

    /// How often the function and its copies were entered.
    fn enter(&self, named: &Named<'_>, blocks: &[CountedBlock<'_>], to: &mut Evidence) {
        let is_part = named.function.name.contains(".part.");
        if let Some((file, line)) = named.function.source {
            let count = crate::rows::calls(named);
            let count = exactly(count).filter(|_| !is_part);
            let entered = Entered {
                line,
                count,
                is_copy: false,
                has_code: true,
            };
            to.entry(file).or_default().entered.push(entered);
        }
        let calls = (1..).zip(&named.function.compiled.inlined);
        for (number, call) in calls.filter(|(number, _)| !self.parts.contains_key(number)) {
            let owner = self.owner.get(&number).copied();
            let Some((file, line)) = call.callee.or(owner) else {
                continue;
            };
            let block = call.entry.and_then(|at| holder(blocks, at));
            let count = block.and_then(|it| exactly(blocks[it].count()));
            // LLVM says where the code of a copy begins, not where control does.
            let is_told = !named.function.compiled.marks_changes;
            let count = count.filter(|_| is_told);
            let entered = Entered {
                line,
                count,
                is_copy: true,
                has_code: owner.is_some(),
            };
            to.entry(file).or_default().entered.push(entered);
        }
    }
}

fn exactly(count: Count) -> Option<u64> {
    match count {
        Count::Exact(value) => Some(value),
        _ => None,
    }
}

/// The block that holds an address.
fn holder(blocks: &[CountedBlock<'_>], at: LinkAddr) -> Option<usize> {
    let holds = |it: &CountedBlock<'_>| {
        let mut spans = it.block.code.iter();
        spans.any(|span| {
            let inside = at.0.checked_sub(span.address.0);
            inside.is_some_and(|it| it < span.bytes.len() as u64)
        })
    };
    blocks.iter().position(holds)
}

fn told(pieces: &[Piece]) -> Told {
    let mut told = Told {
        pieces: pieces.len() as u32,
        ..Told::default()
    };
    let mut by_stretch: HashMap<usize, u64> = HashMap::new();
    for (stretch, count) in pieces {
        told.is_partial |= exactly(*count).is_none();
        let count = count.value().unwrap_or(0);
        told.sum = told.sum.saturating_add(count);
        told.most = told.most.max(count);
        let most = by_stretch.entry(*stretch).or_default();
        *most = count.max(*most);
    }
    told.spread = by_stretch.len() as u32;
    told.stretches = by_stretch.values().fold(0, |a, b| a.saturating_add(*b));
    told
}

/// The blocks of a function as stretches: in one, control always goes from a block to the next. A
/// call ends a block, but no stretch.
fn stretches(named: &Named<'_>) -> Vec<Vec<u32>> {
    let number = named.function.blocks.len();
    let mut out: Vec<Vec<Option<u32>>> = vec![Vec::new(); number];
    let mut into = vec![0_u32; number];
    for edge in named
        .function
        .edges
        .iter()
        .filter(|it| it.kind != EdgeKind::Lost)
    {
        if let Some(from) = edge.from {
            out[from as usize].push(edge.to);
        }
        if let Some(to) = edge.to {
            into[to as usize] += 1;
        }
    }
    let next = |block: u32| match out[block as usize].as_slice() {
        [Some(to)] if into[*to as usize] == 1 && *to != block => Some(*to),
        _ => None,
    };
    let mut is_next = vec![false; number];
    for to in (0..number as u32).filter_map(next) {
        is_next[to as usize] = true;
    }
    let mut found = Vec::new();
    let mut done = vec![false; number];
    // What only follows itself begins somewhere.
    let firsts = (0..number as u32).filter(|it| !is_next[*it as usize]);
    for first in firsts.chain(0..number as u32) {
        let mut stretch = Vec::new();
        let mut at = Some(first);
        while let Some(block) = at.filter(|it| !done[*it as usize]) {
            done[block as usize] = true;
            stretch.push(block);
            at = next(block);
        }
        if !stretch.is_empty() {
            found.push(stretch);
        }
    }
    found
}
