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
pub struct Steps {
    /// By address, each once.
    steps: Vec<Step>,
    /// By way, each once.
    moves: Vec<Move>,
    /// By address, each once.
    visits: Vec<(LinkAddr, i64)>,
    /// What may have run and was left alone, because it looks like data. By address.
    doubtful: Vec<Range<LinkAddr>>,
    blocks: usize,
}

impl Steps {
    /// Adds up all readings. Also returns which routines are not counted, and why.
    pub fn new(readings: &[Reading]) -> (Self, Vec<(LinkAddr, String)>) {
        let mut all = Self::default();
        let mut refused = Vec::new();
        // What is nearly in order is sorted soon.
        let mut in_order: Vec<&Reading> = readings.iter().collect();
        in_order.sort_by_key(|reading| reading.start);
        for reading in in_order {
            let known = all.steps.len();
            if let Err(reason) = all.add(reading) {
                all.steps.truncate(known);
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

    fn add(&mut self, reading: &Reading) -> Result<(), String> {
        if reading.blocks.len() != reading.graph.blocks as usize {
            return Err("its graph has other blocks than its code".to_owned());
        }
        let visits = placed_visits(reading)?;
        let in_graph: Vec<Visit> = visits.iter().map(PlacedVisit::in_graph).collect();
        let counts =
            recover_with_visits(&reading.graph, &reading.plan, &reading.readings, &in_graph)
                .map_err(|contradiction| contradiction.to_string())?;
        let ends = self.add_steps(reading, &counts, &visits)?;
        self.add_moves(reading, &counts, &ends);
        let visits = visits.iter().map(|visit| (visit.address, visit.delta));
        self.visits.extend(visits);
        Ok(())
    }

    /// Adds the instructions, and returns the last one of each block.
    fn add_steps(
        &mut self,
        reading: &Reading,
        counts: &GraphCounts,
        visits: &[PlacedVisit],
    ) -> Result<Vec<Step>, String> {
        let mut visits = visits.iter().filter(|visit| visit.index > 0).peekable();
        let mut ends = Vec::with_capacity(reading.blocks.len());
        for (block, &entered) in counts.blocks.iter().enumerate() {
            let mut count = entered;
            for (index, (address, length)) in instructions(reading, block).enumerate() {
                while let Some(visit) =
                    visits.next_if(|it| (it.block as usize, it.index) == (block, index))
                {
                    count = count.checked_add_signed(visit.delta).ok_or_else(|| {
                        format!("more threads went away at {address} than came there")
                    })?;
                }
                self.steps.push(Step {
                    address,
                    length,
                    count: Some(count),
                    straight: count,
                });
            }
            let last = match reading.blocks[block].lengths.is_empty() {
                true => None,
                false => self.steps.last_mut(),
            };
            let last = last.ok_or_else(|| format!("block {block} has no instructions"))?;
            last.straight = 0;
            ends.push(*last);
        }
        Ok(ends)
    }

    fn add_moves(&mut self, reading: &Reading, counts: &GraphCounts, ends: &[Step]) {
        for (edge, &count) in reading.graph.edges.iter().zip(&counts.edges) {
            let (Node::Block(from), Node::Block(to)) = (edge.from, edge.to) else {
                continue;
            };
            let last = ends[from.index()];
            self.moves.push(Move {
                from: last.address,
                to: first(reading, to.index()),
                kind: edge.kind,
                block: self.blocks + from.index(),
                count,
                of: last.count.unwrap_or_default(),
            });
        }
    }

    /// Nothing is known about the code of this reading.
    fn refuse(&mut self, reading: &Reading) {
        for block in 0..reading.blocks.len() {
            let unknown = instructions(reading, block).map(|(address, length)| Step {
                address,
                length,
                count: None,
                straight: 0,
            });
            self.steps.extend(unknown);
        }
    }

    /// Puts all in order, and adds up what belongs together.
    fn settle(&mut self) {
        self.steps.sort_by_key(|step| step.address);
        self.steps.dedup_by(|more, sum| {
            let is_same = more.address == sum.address;
            if is_same {
                let both = sum.count.zip(more.count);
                sum.count = both.and_then(|(one, other)| one.checked_add(other));
                // It is no larger than the count, if there is one.
                sum.straight = sum.straight.saturating_add(more.straight);
            }
            is_same
        });
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

    /// The instructions that begin in a range.
    pub fn within(&self, range: Range<LinkAddr>) -> &[Step] {
        let start = self.steps.partition_point(|it| it.address < range.start);
        let rest = &self.steps[start..];
        // There are no more than there are bytes: no need to look far.
        let bytes = range.end.0.saturating_sub(range.start.0);
        let rest = &rest[..rest.len().min(usize::try_from(bytes).unwrap_or(usize::MAX))];
        &rest[..rest.partition_point(|it| it.address < range.end)]
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
