//! Where does each function begin and end?

use std::collections::HashMap;
use std::ops::Range;
use std::panic::resume_unwind;

use crate::divide;
use crate::frames::Frame;
use crate::image::Image;
use crate::plt;
use crate::sweep::{Flow, Op, sweep};

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
    /// Another one ends in front of it: a guess.
    Next,
    /// Something calls it.
    Called,
    /// It is what remains.
    Rest,
}

impl Origin {
    /// The one with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        use Origin::{Called, Frame, Header, Label, Next, Rest, Stub, Symbol};
        let all = [Stub, Symbol, Header, Frame, Label, Next, Called, Rest];
        all.into_iter().find(|it| *it as u8 == code)
    }
}

#[derive(Clone, Copy, Debug)]
struct Start {
    at: u64,
    /// Where it ends, if that is known.
    end: Option<u64>,
    origin: Origin,
}

/// What the file says about where functions begin.
pub struct Sources<'a> {
    /// Where symbols say that functions are, and how long.
    pub functions: Vec<(u64, u64)>,
    /// Where other symbols of code are.
    pub labels: Vec<u64>,
    pub frames: &'a [Frame],
    pub stubs: Vec<Range<u64>>,
    /// The entry point and its like.
    pub headers: &'a [u64],
    /// Words of data that may be addresses of code; by address.
    pub words: &'a [u64],
}

/// All code, by address. None overlap.
pub fn parts(image: &Image<'_>, sources: &Sources<'_>) -> Vec<Part> {
    let mut parts = with_called(image, starts(image, sources));
    let rest = rest(image, &parts);
    parts.extend(rest);
    parts.sort_by_key(|part| part.range.start);
    parts
}

/// Where parts begin, by what the file tells; code that it does not tell of is looked at.
pub fn starts(image: &Image<'_>, sources: &Sources<'_>) -> Starts {
    let mut starts = Starts::default();
    for stub in &sources.stubs {
        starts.add(image, stub.start, Some(stub.end), Origin::Stub);
    }
    let plts = image.code().filter(|piece| plt::is_plt(piece));
    let plts: Vec<_> = plts.map(|piece| piece.range()).collect();
    let in_plt = |at: u64| plts.iter().any(|plt| plt.contains(&at));
    let mut named: Vec<u64> = sources.functions.iter().map(|it| it.0).collect();
    named.sort_unstable();
    for frame in sources
        .frames
        .iter()
        .filter(|frame| !in_plt(frame.range.start))
    {
        // Some tables begin a byte early, for unwinders that look at the byte before a return
        // address: GHC's have data there.
        let start = frame.range.start;
        let next = start.saturating_add(1);
        let is_early = named.binary_search(&next).is_ok() && named.binary_search(&start).is_err();
        let start = if is_early { next } else { start };
        starts.add(image, start, Some(frame.range.end), Origin::Frame);
    }
    for (at, size) in &sources.functions {
        let end = (*size > 0).then(|| at.saturating_add(*size));
        starts.add(image, *at, end, Origin::Symbol);
    }
    for at in sources.headers {
        starts.add(image, *at, None, Origin::Header);
    }
    starts.settle();
    starts.drop_covered();
    let covered = starts.extents(image);
    let labels = sources.labels.iter().copied();
    let pointers = image.relocations.addresses().map(|(_, to)| to);
    let is_new = |at: &u64| image.is_code(*at) && !contains(&covered, *at);
    let words = sources.words.chunk_by(|one, other| one == other);
    let words = words
        .filter_map(|same| same.first().copied())
        .filter(is_new);
    let with_tables = words.filter(|at| divide::has_table_in_front(image, *at));
    for at in labels.chain(pointers).filter(is_new).chain(with_tables) {
        starts.add(image, at, None, Origin::Label);
    }
    starts.settle();
    starts.divide(image, sources.words);
    starts.fill_gaps(image, sources.words);
    starts
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
        for extent in starts.extents(image) {
            let part = known.remove(&extent.range);
            let part = part.or_else(|| decode(image, &extent));
            parts.extend(part.map(|part| (extent.range, part)));
        }
        let spans: Vec<_> = parts
            .iter()
            .map(|(range, part)| Extent {
                range: range.clone(),
                origin: part.origin,
                open: false,
            })
            .collect();
        let before = starts.all.len();
        for op in parts.iter().flat_map(|(_, part)| &part.ops) {
            let is_new = |to: u64| image.is_code(to) && !contains(&spans, to);
            let to = match op.flow {
                Flow::Call(to) if is_new(to) => to,
                Flow::Jump(to) | Flow::Branch(to) | Flow::Mentions(to) | Flow::Number(to)
                    if is_new(to) && divide::has_table_in_front(image, to) =>
                {
                    to
                }
                _ => continue,
            };
            starts.add(image, to, None, Origin::Called);
        }
        starts.settle();
        if starts.all.len() == before || round == ROUNDS {
            return parts.into_iter().map(|(_, part)| part).collect();
        }
        known = parts.into_iter().collect();
    }
    Vec::new()
}

/// The functions in a range that nothing divides, and where else data points in them; of which kind
/// the first is, if that is sure.
fn functions_in(
    image: &Image<'_>,
    range: &Range<u64>,
    words: &[u64],
    first: Option<Origin>,
) -> impl Iterator<Item = (Start, Vec<u64>)> {
    let functions = divide::divide(image, range, first.is_some(), words).into_iter();
    let origins = first.into_iter().chain(std::iter::repeat(Origin::Next));
    functions.zip(origins).map(|(function, origin)| {
        let start = Start {
            at: function.range.start,
            end: Some(function.range.end),
            origin,
        };
        (start, function.entries)
    })
}

/// The code that none of these ranges hold, without what fills the place between functions.
fn gaps(image: &Image<'_>, covered: &[Extent]) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    for piece in image.code() {
        let whole = piece.range();
        let first = covered.partition_point(|it| it.range.end <= whole.start);
        let inside = covered.iter().skip(first).map(|it| it.range.clone());
        let inside = inside.take_while(|it| it.start < whole.end);
        let mut from = whole.start;
        for taken in inside.chain(std::iter::once(whole.end..whole.end)) {
            let gap = skip_filler(image, from..taken.start);
            found.extend((!gap.is_empty()).then_some(gap));
            from = taken.end.max(from);
        }
    }
    found
}

fn contains(extents: &[Extent], at: u64) -> bool {
    let after = extents.partition_point(|extent| extent.range.start <= at);
    let before = after.checked_sub(1).and_then(|index| extents.get(index));
    before.is_some_and(|extent| extent.range.contains(&at))
}

/// Decodes a range. Where nothing says how long it is, what fills the gap behind it is left out.
fn decode(image: &Image<'_>, extent: &Extent) -> Option<Part> {
    let extent = &extent.found_end(image);
    let bytes = image.get(&extent.range)?;
    let swept = sweep(bytes, extent.range.start);
    part(bytes, extent, swept)
}

/// The same, of a range that is decoded already.
pub fn part(
    bytes: &[u8],
    extent: &Extent,
    (mut ops, broken): (Vec<Op>, Option<u64>),
) -> Option<Part> {
    let Extent { range, origin, .. } = extent;
    let mut end = range.end;
    if extent.open && broken.is_none() {
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
            None if *origin == Origin::Rest => return None,
            None => {}
        }
        end = ops.last().map_or(end, Op::end);
    }
    Some(Part {
        range: range.start..end,
        origin: *origin,
        ops,
        broken,
    })
}

/// The code that nothing speaks of.
fn rest(image: &Image<'_>, parts: &[Part]) -> Vec<Part> {
    let covered = parts.iter().map(|part| Extent {
        range: part.range.clone(),
        origin: part.origin,
        open: false,
    });
    let gaps = gaps(image, &covered.collect::<Vec<_>>()).into_iter();
    let extents = gaps.map(|range| Extent {
        range,
        origin: Origin::Rest,
        open: true,
    });
    extents.filter_map(|it| decode(image, &it)).collect()
}

/// The range without what assemblers and linkers put in front of the next function.
fn skip_filler(image: &Image<'_>, gap: Range<u64>) -> Range<u64> {
    let Some(bytes) = image.get(&gap).filter(|_| !gap.is_empty()) else {
        return 0..0;
    };
    gap.start + filler(bytes) as u64..gap.end
}

/// How many bytes at the front do nothing: `nop`, `int3`, zeros.
pub fn filler(bytes: &[u8]) -> usize {
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
    at
}

/// Where a part is, as far as that is known before it is decoded.
#[derive(Clone, Debug)]
pub struct Extent {
    pub range: Range<u64>,
    pub origin: Origin,
    /// Whether the end is a guess: the next part begins there.
    pub open: bool,
}

impl Extent {
    /// The same, if its end is a guess, with the end of the function that begins it. What remains
    /// is left as it is: nothing tells whether functions are in it.
    pub fn found_end(&self, image: &Image<'_>) -> Self {
        let is_guess = self.open && self.origin != Origin::Rest;
        let found = is_guess.then(|| divide::end(image, &self.range)).flatten();
        Self {
            range: self.range.start..found.unwrap_or(self.range.end),
            ..self.clone()
        }
    }
}

/// Where parts begin. In order once it is settled.
#[derive(Default)]
pub struct Starts {
    all: Vec<Start>,
    /// Where data points in the midst of them, as far as no table tells that they are one function.
    pub entries: Vec<u64>,
}

impl Starts {
    fn add(&mut self, image: &Image<'_>, at: u64, end: Option<u64>, origin: Origin) {
        if !image.is_code(at) {
            return;
        }
        self.all.push(Start { at, end, origin });
    }

    /// Puts them in order, and makes one of those that begin at the same place.
    fn settle(&mut self) {
        // Mostly in order already, which the stable sort makes use of.
        self.all.sort_by_key(|start| start.at);
        self.all.dedup_by(|later, kept| {
            let same = later.at == kept.at;
            if same {
                kept.end = kept.end.max(later.end);
                kept.origin = kept.origin.min(later.origin);
            }
            same
        });
    }

    /// A start without an end, in the midst of a range that has one, is a label of that range.
    fn drop_covered(&mut self) {
        let mut reach = 0;
        self.all.retain(|start| {
            let covered = start.end.is_none() && start.at < reach;
            reach = reach.max(start.end.unwrap_or(0));
            !covered
        });
    }

    /// Finds the functions in code that nothing tells of.
    fn fill_gaps(&mut self, image: &Image<'_>, words: &[u64]) {
        let mut gaps = gaps(image, &self.extents(image));
        gaps.retain(|it| !image.piece(it.start).is_some_and(plt::is_plt));
        self.add_functions(in_parallel(&gaps, |gap| {
            functions_in(image, gap, words, None).collect()
        }));
    }

    /// Finds the functions in ranges whose end nothing tells.
    fn divide(&mut self, image: &Image<'_>, words: &[u64]) {
        let mut open = self.extents(image);
        open.retain(|it| it.open);
        self.add_functions(in_parallel(&open, |extent| {
            functions_in(image, &extent.range, words, Some(extent.origin)).collect()
        }));
    }

    fn add_functions(&mut self, found: Vec<(Start, Vec<u64>)>) {
        for (start, entries) in found {
            self.all.push(start);
            self.entries.extend(entries);
        }
        self.settle();
        self.entries.sort_unstable();
    }

    /// Where each one ends; whether that is a guess.
    pub fn extents(&self, image: &Image<'_>) -> Vec<Extent> {
        let mut extents = Vec::with_capacity(self.all.len());
        let mut reach = 0;
        let mut next = self.all.iter().skip(1);
        for start in &self.all {
            let at = start.at;
            let next = next.next().map_or(u64::MAX, |next| next.at);
            let Some(piece) = image.piece(at) else {
                continue;
            };
            let limit = piece.range().end.min(next);
            // What was cut from a range that began earlier belongs to what cut it.
            reach = start.end.unwrap_or(0).max(reach);
            let open = reach <= at;
            let end = if open { limit } else { reach.min(limit) };
            if end > at {
                extents.push(Extent {
                    range: at..end,
                    origin: start.origin,
                    open,
                });
            }
        }
        extents
    }
}

/// What is found for each of many things, by all processors at once if that is worth it.
fn in_parallel<T: Sync, R: Send>(things: &[T], find: impl Fn(&T) -> Vec<R> + Sync) -> Vec<R> {
    const WORTH: usize = 1000;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let share = things.len().div_ceil(processors).max(WORTH);
    let find_all = |things: &[T]| things.iter().flat_map(&find).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let mut shares = things.chunks(share);
        let mine = shares.next().unwrap_or_default();
        // Where no thread can be had, this one does it.
        let find_all = &find_all;
        let start = |share| {
            let thread = std::thread::Builder::new();
            (
                share,
                thread.spawn_scoped(scope, move || find_all(share)).ok(),
            )
        };
        let others: Vec<_> = shares.map(start).collect();
        let mut found = find_all(mine);
        for (share, other) in others {
            found.extend(match other {
                Some(other) => other.join().unwrap_or_else(|it| resume_unwind(it)),
                None => find_all(share),
            });
        }
        found
    })
}
