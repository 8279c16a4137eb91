//! Where does each function begin and end?

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::frames::Frame;
use crate::image::Image;
use crate::plt::{self, Stub};
use crate::sweep::{Flow, Op, sweep};
use crate::symbols::Symbols;

/// Code that lies together: a function, or a part of one.
#[derive(Clone, Debug)]
pub struct Part {
    pub range: Range<u64>,
    pub origin: Origin,
    pub ops: Vec<Op>,
    /// Where its bytes stop to be instructions, if they do.
    pub broken: Option<u64>,
}

impl Part {
    /// Whether an instruction begins here.
    pub fn has_op(&self, at: u64) -> bool {
        self.op_index(at).is_some()
    }

    pub fn op_index(&self, at: u64) -> Option<usize> {
        self.ops.binary_search_by_key(&at, |op| op.at).ok()
    }
}

/// How we know that a function begins there; the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A stub of the linkage table.
    Stub,
    /// A symbol says so.
    Symbol,
    /// The file's header, its dynamic section or the loader's work say so.
    Header,
    /// The unwinder's tables say so.
    Frame,
    /// A label is there, or a pointer leads there.
    Label,
    /// Something calls it.
    Called,
    /// It is what remains.
    Rest,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    /// Where it ends, if that is known.
    end: Option<u64>,
    origin: Origin,
}

/// What the file says about where functions begin.
pub struct Sources<'a> {
    pub symbols: &'a Symbols,
    pub frames: &'a [Frame],
    pub stubs: &'a [Stub],
    /// The entry point and its like.
    pub headers: &'a [u64],
}

/// All code, by address. None overlap.
pub fn parts(image: &Image<'_>, sources: &Sources<'_>) -> Vec<Part> {
    let mut starts = Starts::default();
    for stub in sources.stubs {
        starts.add(image, stub.range.start, Some(stub.range.end), Origin::Stub);
    }
    let in_plt = |at: u64| image.piece(at).is_some_and(plt::is_plt);
    for frame in sources
        .frames
        .iter()
        .filter(|frame| !in_plt(frame.range.start))
    {
        starts.add(
            image,
            frame.range.start,
            Some(frame.range.end),
            Origin::Frame,
        );
    }
    for symbol in &sources.symbols.functions {
        let end = (symbol.size > 0).then(|| symbol.at.saturating_add(symbol.size));
        starts.add(image, symbol.at, end, Origin::Symbol);
    }
    for at in sources.headers {
        starts.add(image, *at, None, Origin::Header);
    }
    starts.drop_covered();
    let covered = starts.ranges(image);
    let labels = sources.symbols.labels.iter().map(|label| label.at);
    let pointers = image.relocations.addresses().map(|(_, to)| to);
    for at in labels.chain(pointers) {
        if !contains(&covered, at) {
            starts.add(image, at, None, Origin::Label);
        }
    }
    let mut parts = with_called(image, starts);
    let rest = rest(image, &parts);
    parts.extend(rest);
    parts.sort_by_key(|part| part.range.start);
    parts
}

/// The part that holds an address: its index.
pub fn part_at(parts: &[Part], at: u64) -> Option<usize> {
    let index = parts
        .partition_point(|part| part.range.start <= at)
        .checked_sub(1)?;
    parts.get(index)?.range.contains(&at).then_some(index)
}

/// Decodes everything, and again what calls lead to that was not known before.
fn with_called(image: &Image<'_>, mut starts: Starts) -> Vec<Part> {
    // What is found by calls may call what nobody else does; chains of that are short.
    const ROUNDS: usize = 6;
    let mut known: HashMap<Range<u64>, Part> = HashMap::new();
    for round in 0.. {
        let mut parts = Vec::new();
        for (range, origin, open) in starts.ranges(image) {
            let part = known.remove(&range);
            let part = part.or_else(|| decode(image, range.clone(), origin, open));
            parts.extend(part.map(|part| (range, part)));
        }
        let spans: Vec<_> = parts
            .iter()
            .map(|(range, part)| (range.clone(), part.origin, false))
            .collect();
        let before = starts.0.len();
        let called = parts.iter().flat_map(|(_, part)| &part.ops);
        for op in called {
            if let Flow::Call(to) = op.flow
                && !contains(&spans, to)
            {
                starts.add(image, to, None, Origin::Called);
            }
        }
        if starts.0.len() == before || round == ROUNDS {
            return parts.into_iter().map(|(_, part)| part).collect();
        }
        known = parts.into_iter().collect();
    }
    Vec::new()
}

fn contains(ranges: &[(Range<u64>, Origin, bool)], at: u64) -> bool {
    let after = ranges.partition_point(|(range, ..)| range.start <= at);
    let before = after.checked_sub(1).and_then(|index| ranges.get(index));
    before.is_some_and(|(range, ..)| range.contains(&at))
}

/// Decodes a range. Where nothing says how long it is, what fills the gap behind it is left out.
fn decode(image: &Image<'_>, range: Range<u64>, origin: Origin, open: bool) -> Option<Part> {
    let bytes = image.get(&range)?;
    let (mut ops, broken) = sweep(bytes, range.start);
    let mut end = range.end;
    if open && broken.is_none() {
        let is_filler = |op: &Op| {
            op.flow == Flow::Nop || {
                let offset = (op.at - range.start) as usize;
                matches!(
                    bytes.get(offset..offset + usize::from(op.length)),
                    Some([0xcc] | [0, 0])
                )
            }
        };
        let last = ops.iter().rposition(|op| !is_filler(op));
        match last {
            Some(last) => ops.truncate(last + 1),
            None if origin == Origin::Rest => return None,
            None => {}
        }
        end = ops.last().map_or(end, Op::end);
    }
    Some(Part {
        range: range.start..end,
        origin,
        ops,
        broken,
    })
}

/// The code that nothing speaks of.
fn rest(image: &Image<'_>, parts: &[Part]) -> Vec<Part> {
    let mut found = Vec::new();
    for piece in image.code() {
        let whole = piece.range();
        let first = parts.partition_point(|part| part.range.end <= whole.start);
        let mut from = whole.start;
        let inside = parts.iter().skip(first);
        let ends = inside
            .take_while(|part| part.range.start < whole.end)
            .map(|part| part.range.clone())
            .chain(std::iter::once(whole.end..whole.end));
        for taken in ends {
            let gap = skip_filler(image, from..taken.start);
            if !gap.is_empty() {
                found.extend(decode(image, gap, Origin::Rest, true));
            }
            from = taken.end.max(from);
        }
    }
    found
}

/// The range without what assemblers and linkers put in front of the next function.
fn skip_filler(image: &Image<'_>, gap: Range<u64>) -> Range<u64> {
    let Some(bytes) = image.get(&gap).filter(|_| !gap.is_empty()) else {
        return 0..0;
    };
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, 0 | 0xcc) {
            at += 1;
            continue;
        }
        let window = bytes.get(at..bytes.len().min(at + 16)).unwrap_or_default();
        let (ops, _) = sweep(window, 0);
        match ops.first() {
            Some(op) if op.flow == Flow::Nop => at += usize::from(op.length),
            _ => break,
        }
    }
    gap.start + at as u64..gap.end
}

#[derive(Default)]
struct Starts(BTreeMap<u64, Start>);

impl Starts {
    fn add(&mut self, image: &Image<'_>, at: u64, end: Option<u64>, origin: Origin) {
        if !image.is_code(at) {
            return;
        }
        let start = self.0.entry(at).or_insert(Start { end, origin });
        start.end = start.end.max(end);
        start.origin = start.origin.min(origin);
    }

    /// A start without an end, in the midst of a range that has one, is a label of that range.
    fn drop_covered(&mut self) {
        let mut reach = 0;
        self.0.retain(|at, start| {
            let covered = start.end.is_none() && *at < reach;
            reach = reach.max(start.end.unwrap_or(0));
            !covered
        });
    }

    /// Where each one ends; whether that is a guess.
    fn ranges(&self, image: &Image<'_>) -> Vec<(Range<u64>, Origin, bool)> {
        let mut ranges = Vec::with_capacity(self.0.len());
        let mut reach = 0;
        let mut next = self.0.keys().skip(1);
        for (at, start) in &self.0 {
            let next = next.next().copied().unwrap_or(u64::MAX);
            let Some(piece) = image.piece(*at) else {
                continue;
            };
            let limit = piece.range().end.min(next);
            // What was cut from a range that began earlier belongs to what cut it.
            reach = start.end.unwrap_or(0).max(reach);
            let open = reach <= *at;
            let end = if open { limit } else { reach.min(limit) };
            if end > *at {
                ranges.push((*at..end, start.origin, open));
            }
        }
        ranges
    }
}
