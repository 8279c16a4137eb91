//! What does the code of a module tell about places of its source?
//!
//! A *place* is a line and a column. One execution of it may be spread over several pieces of code,
//! and code may have been copied: the executions of copies add up, those of pieces do not.

use crate::count::{Count, CountedBlock};
use crate::inlined::{Entries, holder};
use crate::names::Named;
use headcount_model::{Counted, EdgeKind, FileId, InlinedCall, SourceFunction};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// Where something is in a file, and what tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub line: u32,
    pub column: u32,
    pub kind: Kind,
}

impl Place {
    /// All that are in a function.
    pub fn all_of(function: &SourceFunction) -> Range<Self> {
        let first = Self {
            line: function.line,
            column: 0,
            kind: Kind::Code,
        };
        let end = Self {
            line: function.last_line.saturating_add(1),
            ..first
        };
        first..end
    }
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
    /// The same without marks that may be of another way of control.
    pub sure: u64,
    /// How many pieces there are, in the copy that has most.
    pub pieces: u32,
    /// How many stretches they are in.
    pub spread: u32,
    /// Where the function is whose own code they are, if they are of one, and never ran or as often as
    /// it was entered.
    pub once_of: Option<(FileId, u32)>,
    /// Whether a mark is among them that may be of another way of control.
    pub is_adrift: bool,
    /// Whether instructions for several values at once are among them.
    pub is_packed: bool,
    /// Whether some of it was not counted, or reached a limit.
    pub is_partial: bool,
    /// Whether it is only in functions and copies of which nothing was executed. They do not tell what
    /// was in others, which may have lost their code.
    pub is_idle: bool,
}

impl Told {
    fn add(&mut self, other: Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.stretches = self.stretches.saturating_add(other.stretches);
        self.most = self.most.saturating_add(other.most);
        self.sure = self.sure.saturating_add(other.sure);
        self.pieces = self.pieces.max(other.pieces);
        self.spread = self.spread.max(other.spread);
        self.once_of = None;
        self.is_adrift |= other.is_adrift;
        self.is_packed |= other.is_packed;
        self.is_partial |= other.is_partial;
        self.is_idle &= other.is_idle;
    }
}

/// A function, or a copy of it that was inlined, is entered.
#[derive(Clone, Debug)]
pub struct Entered {
    /// A line that is surely in it.
    pub line: u32,
    /// How often, says the code at its entry.
    pub count: Option<u64>,
    /// How often its first places were executed, if it was inlined.
    pub said: Vec<((u32, u32), u64)>,
    /// Where the call is, if it was inlined.
    pub call: Option<(FileId, (u32, u32))>,
    /// Whether it is a part of the function that was split off, and inlined again.
    pub is_part: bool,
    /// Whether any code is said to be of its lines.
    pub has_code: bool,
}

/// Instructions call a function.
#[derive(Clone, Copy, Debug)]
pub struct Called {
    /// A line that is surely in it.
    pub line: u32,
    /// Where from.
    pub from: (FileId, (u32, u32)),
    /// How often.
    pub count: u64,
    /// Whether a part of it is called that was split off: that is no entry by itself.
    pub is_part: bool,
}

/// What is known of a file.
#[derive(Debug, Default)]
pub struct FileEvidence {
    pub places: BTreeMap<Place, Told>,
    pub entered: Vec<Entered>,
    pub called: Vec<Called>,
    /// What became of conditional branches, by line and column: how often each was taken, and not.
    pub branches: BTreeMap<(u32, u32), Vec<(u64, u64)>>,
    /// Branches of code that computes with several values at once.
    pub packed: BTreeSet<(u32, u32)>,
    /// Calls that did not come back, by line and column.
    pub lost: BTreeSet<(u32, u32)>,
    /// Whether its rows mark where statements begin.
    pub marks_statements: bool,
}

/// What the code of optimised functions tells, by file.
pub type Evidence = HashMap<FileId, FileEvidence>;

/// Adds what an optimised function tells.
pub fn add(named: &Named<'_>, packed: &BTreeSet<(u32, u32)>, to: &mut Evidence) {
    let is_packed = |block: u32| packed.contains(&(named.index as u32, block));
    let marks_statements = !named.function.compiled.marks_changes;
    let blocks: Vec<CountedBlock<'_>> = named.blocks().collect();
    let mut pieces = Pieces {
        parts: parts(&named.function.compiled.inlined),
        ..Pieces::default()
    };
    let stretches = stretches(named);
    let is_joined = joins(named);
    for (number, stretch) in (0..).zip(&stretches) {
        let mut last = None;
        for (index, block) in stretch
            .iter()
            .filter_map(|it| Some((*it, blocks.get(*it as usize)?)))
        {
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
                // A mark without code, where ways come together, may be of any of them.
                let is_adrift =
                    run.instructions == 0 && range.start == 0 && is_joined[index as usize];
                // Code that goes on with the place is no other piece of it.
                if tells && last.replace(here) != Some(here) {
                    let piece = Piece {
                        stretch: number,
                        count: block.at(range.start),
                        is_adrift,
                        is_packed: is_packed(index),
                    };
                    pieces.found.entry(here).or_default().push(piece);
                }
            }
        }
    }
    for ((copy, _, place), found) in &pieces.found {
        pieces.of_copy.entry(*copy).or_default().insert(*place);
        if found.iter().any(|it| it.count != Count::Exact(0)) {
            pieces.busy.insert(*copy);
        }
    }
    let entries = Entries::new(named);
    pieces.add_calls(named, &blocks, &stretches, &entries);
    let entered = crate::rows::calls(named).exact();
    for ((copy, file, place), found) in &pieces.found {
        let known = to.entry(*file).or_default();
        known.marks_statements |= marks_statements;
        let mut told = told(found);
        told.is_idle = !pieces.busy.contains(copy);
        let is_once = told.sum == 0 || Some(told.sum) == entered;
        // LLVM does not say where a copy is entered, but only where it begins; and what several begin with, it merges.
        let tells = marks_statements || place.kind == Kind::Code;
        told.once_of = named
            .function
            .source
            .filter(|_| *copy == 0 && is_once && tells);
        let known = known.places.entry(*place);
        known.and_modify(|it| it.add(told)).or_insert(told);
    }
    pieces.enter(named, &entries, to);
    add_branches(named, &blocks, &pieces, &is_packed, to);
}

/// Adds what the direct calls of a module tell.
pub fn add_calls(module: &Counted, to: &mut Evidence) {
    let functions = &module.module.functions;
    for call in &module.sources.calls {
        let at = (call.function as usize, call.callee as usize);
        let (Some(caller), Some(counts)) = (functions.get(at.0), module.functions.get(at.0)) else {
            continue;
        };
        let callee = functions.get(at.1).and_then(|it| it.source);
        let Some((file, line)) = callee else { continue };
        let block = crate::count::blocks(caller, counts).nth(call.block as usize);
        let Some(block) = block else { continue };
        let ranges = block.line_ranges();
        let mut runs = block.block.lines.iter().zip(ranges);
        let run = runs.find(|(_, range)| range.contains(&call.instruction));
        let from = run.map_or((FileId(0), (0, 0)), |(run, _)| {
            (run.file, (run.line, run.column))
        });
        let count = block.at(call.instruction).exact().unwrap_or(u64::MAX);
        let is_part = functions[at.1].name.contains(".part.");
        let called = Called {
            line,
            from,
            count,
            is_part,
        };
        to.entry(file).or_default().called.push(called);
    }
}

/// What became of the branches of a function, and of its calls.
fn add_branches(
    named: &Named<'_>,
    blocks: &[CountedBlock<'_>],
    pieces: &Pieces,
    is_packed: &dyn Fn(u32) -> bool,
    to: &mut Evidence,
) {
    let mut outcomes: HashMap<u32, (Option<u64>, Option<u64>)> = HashMap::new();
    let inlined = &named.function.compiled.inlined;
    let edges = named.function.edges.iter();
    for (edge, count) in edges.zip(crate::count::edges(named.counts)) {
        let Some(from) = edge.from else { continue };
        match edge.kind {
            EdgeKind::Taken => outcomes.entry(from).or_default().0 = count.exact(),
            EdgeKind::Fall => outcomes.entry(from).or_default().1 = count.exact(),
            EdgeKind::Lost if count != Count::Exact(0) => {
                let Some(run) = last_run(&blocks[from as usize]) else {
                    continue;
                };
                let (mut file, mut at, mut copy) =
                    (run.file, (run.line, run.column), run.inline_copy);
                loop {
                    to.entry(file).or_default().lost.insert(at);
                    let Some(call) = copy.checked_sub(1).and_then(|it| inlined.get(it as usize))
                    else {
                        break;
                    };
                    (file, at, copy) = (call.file, (call.line, call.column), call.within);
                }
            }
            _ => (),
        }
    }
    for (block, outcome) in outcomes {
        let (Some(taken), Some(fall)) = outcome else {
            continue;
        };
        let Some(run) = last_run(&blocks[block as usize]) else {
            continue;
        };
        let copy = pieces.whole(run.inline_copy, (run.file, run.line));
        if copy.is_some_and(|it| pieces.busy.contains(&it)) {
            let known = to.entry(run.file).or_default();
            let at = known.branches.entry((run.line, run.column)).or_default();
            at.push((taken, fall));
            if is_packed(block) {
                known.packed.insert((run.line, run.column));
            }
        }
    }
}

/// The place of the last instruction of a block, if it has one.
fn last_run<'b>(block: &CountedBlock<'b>) -> Option<&'b headcount_model::LineRun> {
    let runs = block.block.lines.iter();
    runs.rev()
        .find(|it| it.instructions > 0)
        .filter(|it| it.line > 0)
}

/// A piece of code of a place.
#[derive(Clone, Copy)]
struct Piece {
    /// The stretch it is in.
    stretch: usize,
    count: Count,
    /// Whether it may belong elsewhere.
    is_adrift: bool,
    is_packed: bool,
}

#[derive(Default)]
struct Pieces {
    /// By copy, file and place: the stretch each is in, and its count.
    found: HashMap<(u32, FileId, Place), Vec<Piece>>,
    /// A line of each copy.
    owner: HashMap<u32, (FileId, u32)>,
    /// The places of each copy.
    of_copy: HashMap<u32, BTreeSet<Place>>,
    /// The copies of which something was executed.
    busy: BTreeSet<u32>,
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
        entries: &Entries<'_, '_>,
    ) {
        let mut stretch_of = vec![0; blocks.len()];
        for (number, stretch) in stretches.iter().enumerate() {
            for block in stretch {
                stretch_of[*block as usize] = number;
            }
        }
        let calls = (1..).zip(&named.function.compiled.inlined);
        for (number, call) in calls.filter(|(number, _)| !self.parts.contains_key(number)) {
            let Some(entry) = call.entry else { continue };
            let Some(block) = holder(blocks, entry) else {
                continue;
            };
            let is_adrift = entries.of(number as usize - 1).is_none();
            let place = Place {
                line: call.line,
                column: call.column,
                kind: Kind::InlinedCall,
            };
            let piece = Piece {
                stretch: stretch_of[block],
                count: blocks[block].count(),
                is_adrift,
                is_packed: false,
            };
            let within = self.whole(call.within, (call.file, call.line));
            let here = (within.unwrap_or(call.within), call.file, place);
            if call.line > 0 {
                self.found.entry(here).or_default().push(piece);
            }
        }
    }

    /// How often the function and its copies were entered.
    fn enter(&self, named: &Named<'_>, entries: &Entries<'_, '_>, to: &mut Evidence) {
        let is_part = named.function.name.contains(".part.");
        // A part that was split off is entered from the rest of its function.
        if let Some((file, line)) = named.function.source.filter(|_| !is_part) {
            let count = crate::rows::calls(named).exact();
            let entered = Entered {
                line,
                count,
                said: Vec::new(),
                call: None,
                is_part: false,
                has_code: true,
            };
            to.entry(file).or_default().entered.push(entered);
        }
        let calls = (1..).zip(&named.function.compiled.inlined);
        for (number, call) in calls {
            let is_part = self.parts.contains_key(&number);
            let owner = self.owner.get(&number).copied();
            let Some((file, line)) = call.callee.or(owner) else {
                continue;
            };
            let count = entries.at(number as usize - 1);
            let entered = Entered {
                line,
                count,
                said: self.said(number, (file, line)),
                call: Some((call.file, (call.line, call.column))),
                is_part,
                has_code: owner.is_some(),
            };
            to.entry(file).or_default().entered.push(entered);
        }
    }
}

impl Pieces {
    /// What the first places of a copy say.
    fn said(&self, copy: u32, heading: (FileId, u32)) -> Vec<((u32, u32), u64)> {
        let places = self.of_copy.get(&copy).into_iter().flatten();
        let own = places.filter(|it| it.kind == Kind::Code && it.line >= heading.1);
        let said = own.filter_map(|place| {
            let pieces = self.found.get(&(copy, heading.0, *place))?;
            let told = told(pieces);
            (!told.is_adrift).then_some(((place.line, place.column), told.sum))
        });
        said.take(MOST_FIRST).collect()
    }
}

/// So many places at the beginning of a copy are asked how often it was entered.
const MOST_FIRST: usize = 8;

fn told(pieces: &[Piece]) -> Told {
    let mut told = Told {
        pieces: pieces.len() as u32,
        ..Told::default()
    };
    let mut by_stretch: HashMap<usize, u64> = HashMap::new();
    for Piece {
        stretch,
        count,
        is_adrift,
        is_packed,
    } in pieces
    {
        told.is_adrift |= is_adrift;
        told.is_packed |= is_packed;
        told.is_partial |= count.exact().is_none();
        let count = count.value().unwrap_or(0);
        told.sum = told.sum.saturating_add(count);
        told.most = told.most.max(count);
        if !is_adrift {
            told.sure = told.sure.max(count);
        }
        let most = by_stretch.entry(*stretch).or_default();
        *most = count.max(*most);
    }
    told.spread = by_stretch.len() as u32;
    told.stretches = by_stretch.values().fold(0, |a, b| a.saturating_add(*b));
    told
}

/// The blocks that control comes to in several ways.
fn joins(named: &Named<'_>) -> Vec<bool> {
    let mut ways = vec![0_u32; named.function.blocks.len()];
    for to in named.function.edges.iter().filter_map(|it| it.to) {
        ways[to as usize] += 1;
    }
    ways.into_iter().map(|it| it > 1).collect()
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
