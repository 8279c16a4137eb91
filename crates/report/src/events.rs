//! What code did, in numbers: loads, stores, calls, floating-point operations and the like.
//!
//! An instruction does the same each time it runs, or something between two bounds; how often it ran
//! was counted. Whether conditional jumps jumped, the edges tell.

use crate::Error;
use crate::count::{self, Count, CountedBlock};
use crate::names::{Named, functions};
use crate::number::thousands;
use crate::table::{Cell, Table, Unit};
use headcount_model::{
    Block, Bounds, Counted, EdgeKind, Event, FunctionEdge, InstructionEvents, LinkAddr, Span,
    Varies,
};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;

/// Finds the events of each instruction in a piece of code; none, if it is no code.
pub type FindEvents<'a> = &'a dyn Fn(&Span) -> Option<Vec<InstructionEvents>>;

/// Which events the user wants to see.
#[derive(Clone)]
pub struct WantedEvents<'a> {
    events: Vec<Event>,
    find: FindEvents<'a>,
}

impl<'a> WantedEvents<'a> {
    /// Those that get a column in a table of this unit: of edges, what happens on edges; and no column
    /// twice. `find` knows the events of instructions.
    pub fn new(unit: Unit, wanted: &[Event], find: FindEvents<'a>) -> Self {
        let mut events: Vec<Event> = Vec::new();
        for event in wanted {
            let is_there = unit.columns().contains(&column(*event)) || events.contains(event);
            let is_possible = unit != Unit::Edge || event.is_of_edges();
            if !is_there && is_possible {
                events.push(*event);
            }
        }
        Self { events, find }
    }

    /// The events, in the order of their columns.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The names of their columns.
    pub fn names(&self) -> Vec<&'static str> {
        self.events.iter().map(|it| column(*it)).collect()
    }
}

impl Default for WantedEvents<'_> {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            find: &|_| None,
        }
    }
}

/// How often something happened in all code that was counted, as far as that is known exactly.
pub fn known_sum(
    event: Event,
    counted: &[Counted],
    wanted: &WantedEvents<'_>,
) -> Result<u64, Error> {
    let wanted = WantedEvents {
        events: vec![event],
        find: wanted.find,
    };
    let mut sum = 0_u64;
    for named in counted.iter().flat_map(|it| functions(it, false)) {
        let events = FunctionEvents::new(&named, &wanted).all(&named)?;
        let more = events.exactly(0).unwrap_or(0);
        sum = sum.checked_add(more).ok_or(Error::TooLarge)?;
    }
    Ok(sum)
}

/// The column that says what is no exact number in a row.
pub const BOUNDS: &str = "bounds";

/// The column of an event. Two have other names than the event, because `instructions` and `calls`
/// are older columns: how many instructions there are, and how often a function was called.
fn column(event: Event) -> &'static str {
    match event {
        Event::Instructions => "executed",
        Event::Calls => "calls_made",
        _ => event.name(),
    }
}

/// The names of columns.
pub fn columns(events: &[Event]) -> impl Iterator<Item = &'static str> {
    let bounds = (!events.is_empty()).then_some(BOUNDS);
    events.iter().map(|it| column(*it)).chain(bounds)
}

/// What is said of a number that may be more.
pub const AT_LEAST: &str = "at_least";

/// How many events there were, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many or more; and not more than `most`, if that is known.
    Between {
        /// The lower bound.
        least: u64,
        /// The upper bound.
        most: Option<u64>,
    },
    /// Not all of it was counted.
    Unknown,
}

impl Default for Amount {
    fn default() -> Self {
        Self::exactly(0)
    }
}

impl From<Count> for Amount {
    fn from(count: Count) -> Self {
        match count {
            Count::Exact(number) => Self::exactly(number),
            Count::AtLeast(least) => Self::Between { least, most: None },
            Count::Unknown => Self::Unknown,
        }
    }
}

impl Amount {
    fn exactly(number: u64) -> Self {
        Self::Between {
            least: number,
            most: Some(number),
        }
    }

    /// The number to show: the upper bound if there is one.
    pub fn value(self) -> Option<u64> {
        match self {
            Self::Between { least, most } => Some(most.unwrap_or(least)),
            Self::Unknown => None,
        }
    }

    /// Which bound that number is, if it is one.
    pub fn bound(self) -> Option<&'static str> {
        match self {
            Self::Between { most: None, .. } => Some(AT_LEAST),
            Self::Between {
                least,
                most: Some(most),
            } => (least < most).then_some("at_most"),
            Self::Unknown => None,
        }
    }

    /// What runs `count` times does `each` of it.
    fn of(count: Count, each: Bounds) -> Result<Self, Error> {
        let times = |number: u32| count.times(number.into());
        let least = times(each.least)?;
        let most = each.most.map(times).transpose()?;
        Ok(match (least, most) {
            _ if count.is_never() => Self::default(),
            (_, Some(Count::Exact(0))) => Self::default(),
            (Count::Unknown, _) | (_, Some(Count::Unknown)) => Self::Unknown,
            _ if !count.is_known() => Self::Unknown,
            (least, most) => Self::Between {
                least: least.value().unwrap_or(0),
                most: match most {
                    Some(Count::Exact(most)) => Some(most),
                    _ => None,
                },
            },
        })
    }

    pub fn plus(self, other: Self) -> Result<Self, Error> {
        let (
            Self::Between { least: a, most: up },
            Self::Between {
                least: b,
                most: other_up,
            },
        ) = (self, other)
        else {
            return Ok(Self::Unknown);
        };
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or(Error::TooLarge);
        Ok(Self::Between {
            least: sum(a, b)?,
            most: up.zip(other_up).map(|(a, b)| sum(a, b)).transpose()?,
        })
    }
}

/// For people: `1,000`, `≥ 1,000`, `≤ 1,000`, or `-`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.bound() {
            Some(AT_LEAST) => "≥ ",
            Some(_) => "≤ ",
            None => "",
        };
        match self.value() {
            Some(value) => f.pad(&format!("{sign}{}", thousands(value))),
            None => f.pad("-"),
        }
    }
}

/// Why a number is a bound, or is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    Varies(Varies),
    /// How often a conditional jump jumped was not counted.
    NoEdges,
    /// The stored code is not what was counted.
    NoCode,
    /// Statements were counted, and no instructions.
    SourceText,
}

impl Reason {
    fn sentence(self) -> &'static str {
        match self {
            Self::Varies(Varies::Repeats) => {
                "Instructions with `rep` repeat as often as a register says: with such, loads, stores \
                 and bytes are bounds (≥)."
            }
            Self::Varies(Varies::Masked) => {
                "Masks say which lanes an instruction handles: with such, loads, stores, bytes and \
                 flops are bounds (≤)."
            }
            Self::Varies(Varies::Configured) => {
                "How much `xsave` and the like, and instructions on tiles, handle is set up elsewhere: \
                 with such, bytes and flops are bounds (≥)."
            }
            Self::NoEdges => {
                "Where edges were not counted, or both ways lead out of a function, `taken` and \
                 `backward` are bounds (≤)."
            }
            Self::NoCode => "Some code in the profile cannot be decoded: its events are not known.",
            Self::SourceText => {
                "Source text was counted, which has no instructions: its events are not known. \
                 `headcount run` counts instructions."
            }
        }
    }
}

/// The wanted events of some code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSums {
    /// One for each that is wanted; or none at all, if nothing happened.
    amounts: Vec<Amount>,
    reasons: BTreeSet<Reason>,
}

impl EventSums {
    /// Adds all of another.
    pub fn join(&mut self, other: Self) -> Result<(), Error> {
        self.amounts.resize(
            self.amounts.len().max(other.amounts.len()),
            Amount::default(),
        );
        for (sum, amount) in self.amounts.iter_mut().zip(other.amounts) {
            *sum = sum.plus(amount)?;
        }
        self.reasons.extend(other.reasons);
        Ok(())
    }

    /// How many there are of the wanted event at a place, if that is known exactly.
    pub fn exactly(&self, place: usize) -> Option<u64> {
        match self.amount(place) {
            Amount::Between { least, most } => most.filter(|most| *most == least),
            Amount::Unknown => None,
        }
    }

    /// How many there are of the wanted event at a place.
    pub fn amount(&self, place: usize) -> Amount {
        self.amounts.get(place).copied().unwrap_or_default()
    }

    /// So many events that are all alike.
    fn alike(events: usize, amount: Amount) -> Self {
        Self {
            amounts: vec![amount; events],
            ..Self::default()
        }
    }
}

/// The conditional jump at the end of a block.
#[derive(Clone, Copy)]
struct Jump {
    /// The edge of those that jump.
    edge: FunctionEdge,
    taken: Count,
    /// The block that it leads to, unless that is in another function.
    to: Option<LinkAddr>,
}

/// Knows the events of one function.
pub struct FunctionEvents<'a> {
    wanted: &'a WantedEvents<'a>,
    /// By the address of the block.
    jumps: HashMap<LinkAddr, Jump>,
}

impl<'a> FunctionEvents<'a> {
    pub fn new(named: &Named<'_>, wanted: &'a WantedEvents<'a>) -> Self {
        let needs_edges = wanted.events.iter().any(|it| it.is_of_edges());
        Self {
            wanted,
            jumps: match needs_edges {
                true => jumps(named),
                false => HashMap::new(),
            },
        }
    }

    /// Of the whole function.
    pub fn all(&self, named: &Named<'_>) -> Result<EventSums, Error> {
        let mut sums = EventSums::default();
        for block in named.blocks() {
            sums.join(self.block(&block).of(0..block.block.instructions)?)?;
        }
        Ok(sums)
    }

    /// Of one block.
    pub fn block<'b>(&'b self, block: &'b CountedBlock<'b>) -> BlockEvents<'b> {
        BlockEvents {
            wanted: &self.wanted.events,
            // What never ran did nothing, and most code never runs.
            code: match self.wanted.events.is_empty() || never_ran(block) {
                true => Ok(Vec::new()),
                false => self.decode(block.block),
            },
            jump: self.jumps.get(&block.block.address).copied(),
            block,
        }
    }

    fn decode(&self, block: &Block) -> Result<Vec<InstructionEvents>, Reason> {
        if block.place.is_some() {
            return Err(Reason::SourceText);
        }
        let mut code = Vec::new();
        for span in &block.code {
            code.extend((self.wanted.find)(span).ok_or(Reason::NoCode)?);
        }
        match code.len() == block.instructions as usize {
            true => Ok(code),
            false => Err(Reason::NoCode),
        }
    }

    /// Of an edge that was taken so often.
    pub fn edge(
        &self,
        edge: &FunctionEdge,
        count: Count,
        named: &Named<'_>,
    ) -> Result<EventSums, Error> {
        let block = |number: Option<u32>| named.function.blocks.get(number? as usize);
        let Some(from) = block(edge.from).filter(|_| !self.wanted.events.is_empty()) else {
            return Ok(EventSums::default());
        };
        let jump = self.jumps.get(&from.address);
        let is_taken = match (edge.kind, jump) {
            (EdgeKind::Taken, _) => Bounds::exactly(1),
            (EdgeKind::Leave, Some(jump)) if jump.edge == *edge => Bounds::exactly(1),
            // Both ways may lead out of the function.
            (EdgeKind::Leave, None) => Bounds::up_to(1),
            _ => return Ok(EventSums::default()),
        };
        let code = self.decode(from);
        let code = code.as_deref().unwrap_or_default();
        let Some(last) = code.last().filter(|it| it.target.is_some()) else {
            return Ok(EventSums::default());
        };
        let taken = Amount::of(count, is_taken)?;
        let to = block(edge.to).map(|it| it.address);
        let amount = |event: &Event| match event {
            Event::Backward if !is_backward(to, last) => Amount::default(),
            _ => taken,
        };
        Ok(EventSums {
            amounts: self.wanted.events.iter().map(amount).collect(),
            reasons: taken.bound().map(|_| Reason::NoEdges).into_iter().collect(),
        })
    }
}

fn never_ran(block: &CountedBlock<'_>) -> bool {
    let all = block.stretches(0..block.block.instructions);
    all.iter().all(|(_, count)| count.is_never())
}

/// The conditional jumps of a function, as far as its edges tell of them.
fn jumps(named: &Named<'_>) -> HashMap<LinkAddr, Jump> {
    use EdgeKind::{Fall, Leave, Taken};
    let blocks = &named.function.blocks;
    let mut out: HashMap<u32, Vec<(&FunctionEdge, Count)>> = HashMap::new();
    for (edge, count) in named.function.edges.iter().zip(count::edges(named.counts)) {
        if let Some(from) = edge.from {
            out.entry(from).or_default().push((edge, count));
        }
    }
    let jump = |(from, edges): (u32, Vec<(&FunctionEdge, Count)>)| {
        let falls = edges.iter().any(|it| it.0.kind == Fall);
        // A jump into another function leaves this one.
        let is_jump = |it: &&(&FunctionEdge, Count)| match it.0.kind {
            Taken => true,
            Leave => falls,
            _ => false,
        };
        let ways: Vec<_> = edges.iter().filter(is_jump).collect();
        let [(edge, taken)] = ways.as_slice() else {
            return None;
        };
        let address = |block: u32| blocks.get(block as usize).map(|it| it.address);
        let jump = Jump {
            edge: **edge,
            taken: *taken,
            to: edge.to.and_then(address),
        };
        Some((address(from)?, jump))
    };
    out.into_iter().filter_map(jump).collect()
}

/// Whether a jump leads back: to the block that an edge names, or else where its bytes say. In a program
/// that counts itself, those may say where a probe is.
fn is_backward(to: Option<LinkAddr>, instruction: &InstructionEvents) -> bool {
    let to = to.or(instruction.target);
    to.is_some_and(|it| it <= instruction.address)
}

/// Knows the events of one block.
pub struct BlockEvents<'a> {
    wanted: &'a [Event],
    code: Result<Vec<InstructionEvents>, Reason>,
    jump: Option<Jump>,
    block: &'a CountedBlock<'a>,
}

impl BlockEvents<'_> {
    /// Of some instructions of the block.
    pub fn of(&self, range: Range<u32>) -> Result<EventSums, Error> {
        let code = match &self.code {
            Ok(code) if code.is_empty() => return Ok(EventSums::default()),
            Ok(code) => code,
            Err(reason) => {
                return Ok(EventSums {
                    reasons: BTreeSet::from([*reason]),
                    ..EventSums::alike(self.wanted.len(), Amount::Unknown)
                });
            }
        };
        let mut sums = EventSums::alike(self.wanted.len(), Amount::default());
        let some = code.get(range.start as usize..range.end as usize);
        for (number, instruction) in (range.start..).zip(some.unwrap_or_default()) {
            self.add(number, instruction, &mut sums)?;
        }
        Ok(sums)
    }

    fn add(
        &self,
        number: u32,
        instruction: &InstructionEvents,
        sums: &mut EventSums,
    ) -> Result<(), Error> {
        let count = self.block.at(number);
        for (sum, event) in sums.amounts.iter_mut().zip(self.wanted) {
            let is_jump = instruction.target.is_some() && event.is_of_edges();
            let amount = match is_jump {
                true => self.jumped(number, *event, instruction)?,
                false => Amount::of(count, instruction.events[*event])?,
            };
            *sum = sum.plus(amount)?;
            let reason = match is_jump {
                true => Some(Reason::NoEdges),
                false => instruction.varies.map(Reason::Varies),
            };
            let is_bound = amount.bound().is_some();
            sums.reasons.extend(reason.filter(|_| is_bound));
        }
        Ok(())
    }

    /// How often a conditional jump jumped. Edges tell only of one that ends its block; of others, no
    /// more is known than how often they ran.
    fn jumped(
        &self,
        number: u32,
        event: Event,
        instruction: &InstructionEvents,
    ) -> Result<Amount, Error> {
        let is_last = number + 1 == self.block.block.instructions;
        let jump = self.jump.filter(|_| is_last);
        let taken = match jump.filter(|it| it.taken.is_known()) {
            Some(jump) => jump.taken.into(),
            None => Amount::of(self.block.at(number), Bounds::up_to(1))?,
        };
        let to = jump.and_then(|it| it.to);
        Ok(
            match event == Event::Backward && !is_backward(to, instruction) {
                true => Amount::default(),
                false => taken,
            },
        )
    }
}

/// Puts the events of rows into their cells, behind all others.
pub fn add_cells(table: &mut Table) {
    let events = &table.events;
    if events.is_empty() {
        return;
    }
    for row in &mut table.rows {
        let mut amounts = row.events.amounts.clone();
        // What was not counted was only seen by samples.
        let otherwise = match row.counted {
            true => Amount::default(),
            false => Amount::Unknown,
        };
        amounts.resize(events.len(), otherwise);
        let bounds = events.iter().zip(&amounts).filter_map(|(event, amount)| {
            let bound = amount.bound()?;
            Some(format!("{}={bound}", column(*event)))
        });
        let bounds: Vec<String> = bounds.collect();
        row.cells.extend(amounts.into_iter().map(Cell::Amount));
        row.cells.push(Cell::Text(bounds.join(" ").into()));
    }
}

/// Why some numbers are bounds, or are not known, in sentences.
pub fn notes<'a>(sums: impl Iterator<Item = &'a EventSums>) -> Vec<String> {
    let reasons = sums.flat_map(|it| &it.reasons);
    let reasons: BTreeSet<Reason> = reasons.copied().collect();
    let sentences = reasons.into_iter().map(Reason::sentence);
    sentences.map(str::to_owned).collect()
}
