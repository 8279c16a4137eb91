//! How often did each instruction run in all copies together, and where did control go from it?

use std::cmp::Ordering;
use std::ops::Range;

use headcount_flow::{Visit, VisitPoint, recover_with_visits};
use headcount_model::{BlockId, EdgeKind, GraphCounts, LinkAddr, Node};

use super::Reading;

/// An instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Where it is.
    pub address: LinkAddr,
    /// How many bytes it has.
    pub length: u8,
    /// How often it ran; none if the counters around it contradict each other.
    pub count: Option<u64>,
    /// How often it did so in blocks that go on behind it.
    straight: u64,
}

impl Step {
    /// An instruction of which there is no copy.
    pub fn never(address: LinkAddr, length: u8) -> Self {
        Self {
            address,
            length,
            count: Some(0),
            straight: 0,
        }
    }
}

/// Instructions, one behind the other, that ran equally often.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// Where it begins.
    pub start: LinkAddr,
    end: LinkAddr,
    /// How many bytes each instruction has. There is one at least.
    lengths: &'a [u8],
    /// How often each of them ran; none if the counters around them contradict each other.
    pub count: Option<u64>,
    /// How often the last one ran in blocks that go on behind it. The others always do.
    straight: u64,
}

impl<'a> Stretch<'a> {
    /// The instructions, one by one.
    fn steps(&self) -> impl Iterator<Item = (Step, &'a [u8])> + use<'a> {
        let Self {
            count,
            straight,
            lengths,
            mut start,
            ..
        } = *self;
        let last = lengths.len().saturating_sub(1);
        (0..lengths.len()).map(move |index| {
            let step = Step {
                address: start,
                length: lengths[index],
                count,
                straight: if index == last {
                    straight
                } else {
                    count.unwrap_or(0)
                },
            };
            start = after(start, step.length);
            (step, &lengths[index..=index])
        })
    }

    /// The last instruction.
    fn last(&self) -> Step {
        let length = self.lengths.last().copied().unwrap_or(0);
        Step {
            address: LinkAddr(self.end.0.saturating_sub(u64::from(length))),
            length,
            count: self.count,
            straight: self.straight,
        }
    }

    /// How many of the instructions begin in a range of addresses.
    pub fn begin_in(&self, range: &Range<u64>) -> usize {
        match range.start <= self.start.0 && self.end.0 <= range.end {
            true => self.lengths.len(),
            false => {
                let steps = self.steps();
                let inside = steps.filter(|(it, _)| range.contains(&it.address.0));
                inside.count()
            }
        }
    }

    /// Where it is.
    pub fn range(&self) -> Range<u64> {
        self.start.0..self.end.0
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.start, self.lengths) == (other.start, other.lengths)
    }
}

fn after(at: LinkAddr, length: u8) -> LinkAddr {
    LinkAddr(at.0.saturating_add(u64::from(length)))
}

/// Instructions that were found from an address on.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// How many.
    pub number: u32,
    /// The last of them.
    pub last: Step,
}

/// Control that went from the last instruction of a block to the first of a block.
#[derive(Clone, Copy, Debug)]
struct Move {
    from: LinkAddr,
    to: LinkAddr,
    kind: EdgeKind,
    /// Number of the block in all readings together.
    block: usize,
    /// How often.
    count: u64,
    /// How often the instruction at `from` ran in blocks that have this way out.
    of: u64,
}

impl Move {
    fn compare_way(&self, other: &Self) -> Ordering {
        let key = |it: &Self| (it.from, it.kind, it.to);
        key(self).cmp(&key(other))
    }
}

/// All readings of a module, by instruction.
#[derive(Debug, Default)]
pub struct Steps<'a> {
    /// By address. Where copies overlap, each instruction is one by itself, and there once.
    stretches: Vec<Stretch<'a>>,
    /// By way, each once.
    moves: Vec<Move>,
    /// By address, each once.
    visits: Vec<(LinkAddr, i64)>,
    /// What may have run and was left alone, because it looks like data. By address.
    doubtful: Vec<Range<LinkAddr>>,
    blocks: usize,
}

impl<'a> Steps<'a> {
    /// Adds up all readings. Also returns which routines are not counted, and why.
    pub fn new(readings: &'a [Reading]) -> (Self, Vec<(LinkAddr, String)>) {
        let mut all = Self::default();
        let mut refused = Vec::new();
        // What is nearly in order is sorted soon.
        let mut in_order: Vec<&Reading> = readings.iter().collect();
        in_order.sort_by_key(|reading| reading.start);
        for reading in in_order {
            let known = all.stretches.len();
            if let Err(reason) = all.add(reading) {
                all.stretches.truncate(known);
                all.refuse(reading);
                refused.push((reading.start, reason));
            }
            all.blocks += reading.blocks.len();
        }
        all.settle();
        all.doubtful = doubtful(readings);
        (all, refused)
    }

    /// Was code at an address left alone, although it may have run?
    pub fn left_alone(&self, at: LinkAddr) -> bool {
        let after = self.doubtful.partition_point(|it| it.start <= at);
        let before = after
            .checked_sub(1)
            .and_then(|index| self.doubtful.get(index));
        before.is_some_and(|it| it.contains(&at))
    }

    fn add(&mut self, reading: &'a Reading) -> Result<(), String> {
        let visits = placed_visits(reading)?;
        let counts = block_counts(reading, &visits)?;
        let mut ends = Vec::with_capacity(reading.blocks.len());
        let stretches = &mut self.stretches;
        each_stretch(reading, &counts, &visits, &mut |stretch, is_last| {
            if is_last {
                ends.push((stretch.last().address, stretch.count));
            }
            stretches.push(stretch);
        })?;
        self.add_moves(reading, &counts, &ends);
        let visits = visits.iter().map(|visit| (visit.address, visit.delta));
        self.visits.extend(visits);
        Ok(())
    }

    /// `ends`: where the last instruction of each block is, and how often it ran.
    fn add_moves(
        &mut self,
        reading: &Reading,
        counts: &GraphCounts,
        ends: &[(LinkAddr, Option<u64>)],
    ) {
        for (edge, &count) in reading.graph.edges.iter().zip(&counts.edges) {
            let (Node::Block(from), Node::Block(to)) = (edge.from, edge.to) else {
                continue;
            };
            let (last, ran) = ends[from.index()];
            self.moves.push(Move {
                from: last,
                to: first(reading, to.index()),
                kind: edge.kind,
                block: self.blocks + from.index(),
                count,
                of: ran.unwrap_or_default(),
            });
        }
    }

    /// Nothing is known about the code of this reading.
    fn refuse(&mut self, reading: &'a Reading) {
        let blocks = (0..reading.blocks.len()).filter(|it| !reading.blocks[*it].lengths.is_empty());
        self.stretches.extend(blocks.map(|block| Stretch {
            count: None,
            straight: 0,
            ..whole_block(reading, block)
        }));
    }

    /// Puts all in order, and adds up what belongs together.
    fn settle(&mut self) {
        let mut stretches = std::mem::take(&mut self.stretches);
        stretches.sort_by_key(|it| it.start);
        let mut rest = stretches.as_slice();
        while let Some(first) = rest.first() {
            let mut end = first.end;
            let overlaps = rest[1..].iter().take_while(|it| {
                let overlaps = it.start < end;
                end = end.max(it.end);
                overlaps
            });
            let (together, others) = rest.split_at(1 + overlaps.count());
            match together {
                [alone] => self.stretches.push(*alone),
                [first, more @ ..] if more.iter().all(|it| it.is_like(first)) => {
                    self.stretches.push(sum(together));
                }
                _ => self.stretches.extend(one_by_one(together)),
            }
            rest = others;
        }
        self.visits.sort_by_key(|(address, _)| *address);
        self.visits.dedup_by(|more, sum| {
            let is_same = more.0 == sum.0;
            if is_same {
                sum.1 = sum.1.saturating_add(more.1);
            }
            is_same
        });
        self.moves
            .sort_by(|one, other| one.compare_way(other).then(one.block.cmp(&other.block)));
        let mut block = None;
        self.moves.dedup_by(|more, sum| {
            let is_same = more.compare_way(sum).is_eq();
            if is_same {
                sum.count = sum.count.saturating_add(more.count);
                if block.unwrap_or(sum.block) != more.block {
                    sum.of = sum.of.saturating_add(more.of);
                }
            }
            block = is_same.then_some(more.block);
            is_same
        });
    }

    /// Is there no copy of an instruction that begins in a range?
    pub fn is_unknown(&self, range: &Range<LinkAddr>) -> bool {
        let next = self.stretches.partition_point(|it| it.start < range.start);
        let begins = |it: &Stretch<'_>| it.start < range.end;
        let before = next.checked_sub(1).map(|index| &self.stretches[index]);
        let reaches_in = |it: &&Stretch<'_>| it.end > range.start;
        !self.stretches.get(next).is_some_and(begins)
            && before.filter(reaches_in).is_none_or(|it| {
                let mut steps = it.steps();
                !steps.any(|(step, _)| range.contains(&step.address))
            })
    }

    /// The instruction at an address and those behind it that ran equally often and begin before
    /// `end`. `None`: there is no copy of that instruction, or it has no bytes.
    pub fn from(&self, at: LinkAddr, end: LinkAddr) -> Option<Found> {
        let found = self.find(at, end)?;
        let last = found.last;
        (after(last.address, last.length) > at).then_some(found)
    }

    fn find(&self, at: LinkAddr, end: LinkAddr) -> Option<Found> {
        let next = self.stretches.partition_point(|it| it.start <= at);
        let stretch = &self.stretches[next.checked_sub(1)?];
        if stretch.start == at && stretch.end <= end {
            return Some(Found {
                number: stretch.lengths.len() as u32,
                last: stretch.last(),
            });
        }
        let mut steps = stretch.steps().map(|(step, _)| step);
        let first = steps.find(|step| step.address >= at)?;
        if first.address != at {
            return None;
        }
        let behind = steps.take_while(|step| step.address < end);
        let first = Found {
            number: 1,
            last: first,
        };
        Some(behind.fold(first, |found, step| Found {
            number: found.number + 1,
            last: step,
        }))
    }

    /// How many threads more came than went, by no edge, when they were about to run the
    /// instruction at an address.
    pub fn visits_at(&self, address: LinkAddr) -> i64 {
        let found = self.visits.binary_search_by_key(&address, |visit| visit.0);
        found.map_or(0, |index| self.visits[index].1)
    }

    /// How often control went from an instruction, which ends at `end` and is no call, to another
    /// one. `None`: some copy cannot tell.
    pub fn moves(&self, from: &Step, end: LinkAddr, kind: EdgeKind, to: LinkAddr) -> Option<u64> {
        let ran = from.count?;
        if ran == 0 {
            return Some(0);
        }
        let key = (from.address, kind, to);
        let found = self
            .moves
            .binary_search_by_key(&key, |it| (it.from, it.kind, it.to));
        let (mut count, mut of) = match found {
            Ok(index) => (self.moves[index].count, self.moves[index].of),
            Err(_) => (0, 0),
        };
        if kind == EdgeKind::Fall && to == end {
            count = count.checked_add(from.straight)?;
            of = of.checked_add(from.straight)?;
        }
        // It ran as often as in the blocks from which we know where it went: so in no others.
        (of == ran).then_some(count)
    }
}

/// Several stretches with the same instructions.
fn sum<'a>(alike: &[Stretch<'a>]) -> Stretch<'a> {
    let add = |sum: Stretch<'a>, more: &Stretch<'a>| Stretch {
        count: added(sum.count, more.count),
        // It is no larger than the count, if there is one.
        straight: sum.straight.saturating_add(more.straight),
        ..sum
    };
    alike[1..].iter().fold(alike[0], add)
}

fn added(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one?.checked_add(other?)
}

/// The instructions of stretches that overlap, each of them once.
fn one_by_one<'a>(overlapping: &[Stretch<'a>]) -> Vec<Stretch<'a>> {
    let single = |(step, lengths): (Step, &'a [u8])| Stretch {
        start: step.address,
        end: after(step.address, step.length),
        lengths,
        count: step.count,
        straight: step.straight,
    };
    let mut singles: Vec<Stretch<'a>> = overlapping
        .iter()
        .flat_map(|it| it.steps().map(single))
        .collect();
    singles.sort_by_key(|it| it.start);
    singles.dedup_by(|more, known| {
        let is_same = more.start == known.start;
        if is_same {
            *known = sum(&[*known, *more]);
        }
        is_same
    });
    singles
}

/// How often the blocks and edges of a routine ran.
fn block_counts(reading: &Reading, visits: &[PlacedVisit]) -> Result<GraphCounts, String> {
    if reading.blocks.len() != reading.graph.blocks as usize {
        return Err("its graph has other blocks than its code".to_owned());
    }
    let in_graph: Vec<Visit> = visits.iter().map(PlacedVisit::in_graph).collect();
    recover_with_visits(&reading.graph, &reading.plan, &reading.readings, &in_graph)
        .map_err(|contradiction| contradiction.to_string())
}

/// The code of a routine, as stretches that ran equally often. If its counters contradict each
/// other, there are none.
pub fn stretches(reading: &Reading) -> Vec<Stretch<'_>> {
    let mut stretches = Vec::with_capacity(reading.blocks.len());
    let made = placed_visits(reading).and_then(|visits| {
        let counts = block_counts(reading, &visits)?;
        each_stretch(reading, &counts, &visits, &mut |stretch, _| {
            stretches.push(stretch);
        })
    });
    match made {
        Ok(()) => stretches,
        Err(_) => Vec::new(),
    }
}

/// Hands on stretch by stretch, and whether it is the last of its block.
fn each_stretch<'a>(
    reading: &'a Reading,
    counts: &GraphCounts,
    visits: &[PlacedVisit],
    take: &mut dyn FnMut(Stretch<'a>, bool),
) -> Result<(), String> {
    let mut visits = visits.iter().filter(|visit| visit.index > 0).peekable();
    for (block, &entered) in counts.blocks.iter().enumerate() {
        if reading.blocks[block].lengths.is_empty() {
            return Err(format!("block {block} has no instructions"));
        }
        let mut count = entered;
        let mut rest = whole_block(reading, block);
        let mut done = 0;
        while let Some(visit) = visits.next_if(|it| it.block as usize == block) {
            let (before, behind) = rest.lengths.split_at(visit.index - done);
            done = visit.index;
            let middle = before
                .iter()
                .fold(rest.start, |at, length| after(at, *length));
            take(
                Stretch {
                    end: middle,
                    lengths: before,
                    count: Some(count),
                    straight: count,
                    ..rest
                },
                false,
            );
            count = count
                .checked_add_signed(visit.delta)
                .ok_or_else(|| format!("more threads went away at {middle} than came there"))?;
            (rest.start, rest.lengths) = (middle, behind);
        }
        rest.count = Some(count);
        take(rest, true);
    }
    Ok(())
}

/// A block's instructions, of which nothing is known yet.
fn whole_block(reading: &Reading, block: usize) -> Stretch<'_> {
    let start = first(reading, block);
    let lengths = reading.blocks[block].lengths.as_slice();
    let bytes: u64 = lengths.iter().map(|it| u64::from(*it)).sum();
    Stretch {
        start,
        end: LinkAddr(start.0.saturating_add(bytes)),
        lengths,
        count: None,
        straight: 0,
    }
}

fn first(reading: &Reading, block: usize) -> LinkAddr {
    let offset = u64::from(reading.blocks[block].offset);
    LinkAddr(reading.start.0.saturating_add(offset))
}

/// Where the instructions of a block begin, and how many bytes they have.
fn instructions(reading: &Reading, block: usize) -> impl Iterator<Item = (LinkAddr, u8)> {
    let mut next = first(reading, block);
    reading.blocks[block].lengths.iter().map(move |length| {
        let end = LinkAddr(next.0.saturating_add(u64::from(*length)));
        (std::mem::replace(&mut next, end), *length)
    })
}

/// Threads that came or went by no edge, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PlacedVisit {
    block: u32,
    index: usize,
    address: LinkAddr,
    delta: i64,
}

impl PlacedVisit {
    fn in_graph(&self) -> Visit {
        Visit {
            block: BlockId(self.block),
            at: match self.index {
                0 => VisitPoint::Entrance,
                _ => VisitPoint::Inside,
            },
            delta: self.delta,
        }
    }
}

/// Finds the blocks of a reading's visits; sorted, and one at most for each instruction.
fn placed_visits(reading: &Reading) -> Result<Vec<PlacedVisit>, String> {
    let mut visits = reading.visits.clone();
    visits.sort_unstable();
    visits.dedup_by(|more, sum| {
        let is_same = more.0 == sum.0;
        if is_same {
            sum.1 = sum.1.saturating_add(more.1);
        }
        is_same
    });
    // Who was interrupted and went on is of no account.
    visits.retain(|(_, delta)| *delta != 0);
    if visits.is_empty() {
        return Ok(Vec::new());
    }
    let mut places: Vec<(LinkAddr, usize, u32)> = Vec::new();
    for block in 0..reading.graph.blocks {
        let instructions = instructions(reading, block as usize).enumerate();
        places.extend(instructions.map(|(index, (address, _))| (address, index, block)));
    }
    // The beginning of a block comes before the midst of another.
    places.sort_unstable();
    let place = |(address, delta): (LinkAddr, i64)| {
        let found = places.partition_point(|place| place.0 < address);
        let found = places.get(found).filter(|place| place.0 == address);
        let &(_, index, block) = found
            .ok_or_else(|| format!("a thread was at {address}, where it has no instruction"))?;
        Ok(PlacedVisit {
            block,
            index,
            address,
            delta,
        })
    };
    let mut placed: Vec<PlacedVisit> = visits
        .into_iter()
        .map(place)
        .collect::<Result<_, String>>()?;
    placed.sort_unstable();
    Ok(placed)
}

/// What may have run and was left alone.
fn doubtful(readings: &[Reading]) -> Vec<Range<LinkAddr>> {
    let placed = readings.iter().flat_map(|reading| {
        let at = |offset: u32| LinkAddr(reading.start.0.saturating_add(u64::from(offset)));
        let ranges = reading.doubtful.iter();
        ranges.map(move |it| at(it.start)..at(it.end))
    });
    let mut found: Vec<_> = placed.collect();
    found.sort_unstable_by_key(|it| (it.start, it.end));
    found
}
