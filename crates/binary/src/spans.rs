//! Which part holds this address, and what are its instructions?
//!
//! A part is decoded when somebody first asks for its instructions. They are kept for a while:
//! who jumps to a part looks at it, and soon after it runs itself.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use headcount_model::packed::{Packed, Packer};

use crate::functions::{self, Extent, Origin, Part};
use crate::image::Image;
use crate::overlaps;
use crate::sweep::{self, Op};

/// The parts that are known so far.
#[derive(Debug, Default)]
pub struct Spans {
    /// By address.
    starts: Vec<u64>,
    /// In the same order.
    spans: Vec<Span>,
    /// Code in no part whose address is made by others: a pointer may lead there.
    pub spoken_of: BTreeSet<u64>,
    swept: HashMap<u64, Arc<Swept>>,
    /// How many instructions are kept.
    kept: usize,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    end: u64,
    origin: Origin,
    /// Is its end yet to be found?
    open: bool,
    /// Is control known to come to its start?
    known: bool,
}

/// The instructions of a part.
#[derive(Clone, Debug)]
pub struct Swept {
    pub part: Part,
    /// The instructions that need the gs register.
    pub gs: Vec<u64>,
}

/// How many instructions are kept from one routine to the next; one takes 32 bytes.
const MOST: usize = 1 << 20;

impl Spans {
    /// `extents` are by address. `is_known`: is control known to come to where one begins?
    pub fn new(extents: &[Extent], is_known: impl Fn(&Extent) -> bool) -> Self {
        let spans = extents.iter().map(|extent| Span {
            end: extent.range.end,
            origin: extent.origin,
            open: extent.open,
            known: is_known(extent),
        });
        Self {
            starts: extents.iter().map(|extent| extent.range.start).collect(),
            spans: spans.collect(),
            ..Self::default()
        }
    }

    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    pub fn is_start(&self, at: u64) -> bool {
        self.starts.binary_search(&at).is_ok()
    }

    /// Where parts begin to which control is known to come, by address.
    pub fn known_starts(&self) -> impl Iterator<Item = u64> {
        let spans = self.starts.iter().zip(&self.spans);
        spans.filter_map(|(start, span)| span.known.then_some(*start))
    }

    /// Does a part begin here to which control is known to come?
    pub fn is_known_start(&self, at: u64) -> bool {
        let index = self.starts.binary_search(&at).ok();
        index.is_some_and(|index| self.spans.get(index).is_some_and(|it| it.known))
    }

    /// Does more than the looks of its bytes tell that a part is one?
    pub fn is_told(&self, index: usize) -> bool {
        let span = self.spans.get(index);
        span.is_some_and(|it| it.known && it.origin != Origin::Next)
    }

    /// The part that holds an address: its index.
    pub fn index_at(&self, at: u64) -> Option<usize> {
        let after = self.starts.partition_point(|start| *start <= at);
        let index = after.checked_sub(1)?;
        self.range(index)?.contains(&at).then_some(index)
    }

    pub fn range(&self, index: usize) -> Option<Range<u64>> {
        Some(*self.starts.get(index)?..self.spans.get(index)?.end)
    }

    pub fn origin(&self, index: usize) -> Option<Origin> {
        self.spans.get(index).map(|span| span.origin)
    }

    /// Is what is at an address the same whatever routines were asked for before? What only a call
    /// tells of is not, nor is what may lie behind the end of a part.
    pub fn is_settled(&self, image: &Image<'_>, at: u64) -> bool {
        let Some(index) = self.index_at(at) else {
            return !image.is_code(at);
        };
        let span = &self.spans[index];
        span.origin != Origin::Called && (!span.open || self.starts[index] == at)
    }

    /// Makes known where a part ends, if its tables do not say. False if it does not end there.
    pub fn close(&mut self, range: &Range<u64>) -> bool {
        let Ok(index) = self.starts.binary_search(&range.start) else {
            return false;
        };
        let span = &mut self.spans[index];
        if span.open && span.origin != Origin::Called && range.end <= span.end {
            span.end = range.end;
            span.open = false;
        }
        span.end == range.end
    }

    /// Everything that the file's tables say of its parts, as numbers.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        let spans = self.starts.iter().zip(&self.spans);
        spans.flat_map(|(start, span)| {
            let (origin, open) = (span.origin as u64, u64::from(span.open));
            [
                *start,
                span.end,
                origin << 2 | u64::from(span.known) << 1 | open,
            ]
        })
    }

    /// Where parts begin, and how that is known.
    pub fn origins(&self) -> impl Iterator<Item = (u64, Origin)> {
        let spans = self.starts.iter().zip(&self.spans);
        spans.map(|(start, span)| (*start, span.origin))
    }

    /// Writes down what the file's tables say of its parts.
    pub fn pack(&self, to: &mut Packer) {
        to.column(self.starts.iter().copied());
        to.column(self.spans.iter().map(|it| it.end));
        let kinds = self.spans.iter().map(|it| {
            let (known, open) = (u8::from(it.known), u8::from(it.open));
            (it.origin as u8) << 2 | known << 1 | open
        });
        to.bytes(&kinds.collect::<Vec<u8>>());
    }

    /// What [`Spans::pack`] wrote.
    pub fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let (starts, ends, kinds) = (from.column()?, from.column()?, from.bytes()?);
        let is_whole = starts.len() == ends.len() && starts.len() == kinds.len();
        let ordered = starts.iter().zip(&ends).map(|(start, end)| start < end);
        let apart = ends.iter().zip(starts.iter().skip(1));
        let apart = apart.map(|(end, next)| end <= next);
        if !is_whole || !ordered.chain(apart).all(|it| it) {
            return None;
        }
        let spans = ends.iter().zip(kinds).map(|(end, kind)| {
            Some(Span {
                end: *end,
                origin: Origin::from_code(kind >> 2)?,
                open: kind & 1 == 1,
                known: kind & 2 == 2,
            })
        });
        let spans = spans.collect::<Option<_>>()?;
        Some(Self {
            starts,
            spans,
            ..Self::default()
        })
    }

    /// Where what may lie behind an address ends: at the next part, or with the section.
    pub fn limit(&self, image: &Image<'_>, at: u64) -> Option<u64> {
        let end = image.piece(at)?.range().end;
        let after = self.starts.partition_point(|start| *start <= at);
        Some(self.starts.get(after).map_or(end, |next| end.min(*next)))
    }

    /// Where the next part begins behind an address.
    pub fn next_start(&self, at: u64) -> u64 {
        let after = self.starts.partition_point(|start| *start <= at);
        self.starts.get(after).copied().unwrap_or(u64::MAX)
    }

    /// All around an address in no part that is in none either.
    pub fn gap_around(&self, at: u64) -> Range<u64> {
        let after = self.starts.partition_point(|start| *start <= at);
        let before = after.checked_sub(1).and_then(|it| self.range(it));
        before.map_or(0, |it| it.end)..self.next_start(at)
    }

    /// Makes a part known whose end is open, unless it lies in another.
    pub fn add(&mut self, image: &Image<'_>, at: u64) -> bool {
        if !image.is_code(at) || self.index_at(at).is_some() {
            return false;
        }
        let Some(end) = self.limit(image, at) else {
            return false;
        };
        let place = self.starts.partition_point(|start| *start < at);
        self.starts.insert(place, at);
        let origin = Origin::Called;
        let (open, known) = (true, true);
        let span = Span {
            end,
            origin,
            open,
            known,
        };
        self.spans.insert(place, span);
        true
    }

    /// Remembers addresses that are made, if they are of code that is in no part.
    pub fn speak_of(&mut self, image: &Image<'_>, addresses: impl Iterator<Item = u64>) {
        let is_unknown = |at: &u64| self.index_at(*at).is_none() && image.is_code(*at);
        let unknown: Vec<u64> = addresses.filter(is_unknown).collect();
        self.spoken_of.extend(unknown);
    }

    /// Forgets instructions if there are many. Not while somebody works with them: who looks at
    /// two large parts in turn would decode them again and again.
    pub fn forget(&mut self) {
        if self.kept > MOST {
            self.swept.clear();
            self.kept = 0;
        }
    }

    /// The instructions of a part, kept for the next who asks.
    pub fn swept(&mut self, image: &Image<'_>, index: usize) -> Option<Arc<Swept>> {
        let start = *self.starts.get(index)?;
        if let Some(swept) = self.swept.get(&start) {
            return Some(Arc::clone(swept));
        }
        let swept = Arc::new(self.sweep(image, index)?);
        if let Some(span) = self.spans.get_mut(index) {
            span.end = swept.part.range.end;
            span.open = false;
        }
        self.kept += swept.part.ops.len();
        self.swept.insert(start, Arc::clone(&swept));
        Some(swept)
    }

    /// The instructions of a part.
    pub fn sweep(&self, image: &Image<'_>, index: usize) -> Option<Swept> {
        let span = self.spans.get(index)?;
        let extent = Extent {
            range: self.range(index)?,
            origin: span.origin,
            open: span.open,
        }
        .found_end(image);
        let bytes = image.get(&extent.range)?;
        let mut gs = Vec::new();
        let found = sweep::sweep_with(bytes, extent.range.start, &mut |instruction| {
            if sweep::uses_gs(instruction) {
                gs.push(instruction.ip());
            }
        });
        let mut part = functions::part(bytes, &extent, found)?;
        let jumps: Vec<u64> = targets_inside(&part).collect();
        for at in jumps {
            overlaps::add_to(image, &mut part, at);
        }
        Some(Swept { part, gs })
    }
}

/// Where the jumps of a part lead in the part itself.
pub fn targets_inside(part: &Part) -> impl Iterator<Item = u64> {
    let jumps = part.ops.iter().filter_map(|op: &Op| op.flow.jump_target());
    jumps.filter(|to| part.range.contains(to))
}
