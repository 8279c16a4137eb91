//! How often was each function of the source entered?
//!
//! Its own code, the copies of it that were inlined and the calls of others tell. A copy may have left
//! no code, and a call whose result the compiler worked out itself leaves nothing at all: then the
//! caller's source says how often the call was reached, at most.

use super::call_graph::{At, CallGraph, Together, Written};
use super::evidence::Entered;
use super::flow::Bounds;
use headcount_model::SourceFunction;
use std::collections::{BTreeMap, HashMap};

/// How often a function was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// In code and copies that tell of its lines.
    pub seen: Bounds,
    /// Where nothing tells of them.
    pub unseen: Bounds,
    /// Whether copies are among them, of which it is less certain.
    pub has_copies: bool,
}

/// What is known of calls that belong together.
#[derive(Default)]
struct Calls<'e> {
    copies: Vec<&'e Entered>,
    /// How often instructions called it.
    direct: Option<u64>,
    /// How often they called a part that was split off.
    parts: Option<u64>,
    /// How many instructions call it.
    instructions: usize,
    written: Vec<Written>,
}

/// The calls of a function by another: code may tell of one where it should of another.
#[derive(Default)]
struct Balance {
    /// As code tells.
    known: u64,
    /// As the source says, at most.
    written: u64,
}

impl Balance {
    /// How many calls there may have been of which no code tells.
    fn unseen(&self) -> u64 {
        match self.written {
            u64::MAX => u64::MAX,
            written => written.saturating_sub(self.known),
        }
    }
}

fn add(to: &mut Bounds, by: Bounds) {
    to.low = to.low.saturating_add(by.low);
    to.high = to.high.saturating_add(by.high);
}

/// How often a function was entered, as far as those who call it are solved: the bounds of their
/// blocks.
pub fn entry<'a>(graph: &'a CallGraph<'a>, at: At, solved: &'a HashMap<At, Vec<Bounds>>) -> Entry {
    let mut own = Some(0_u64);
    for entered in graph.entered(at).iter().filter(|it| it.call.is_none()) {
        own = own.zip(entered.count).and_then(|(a, b)| a.checked_add(b));
    }
    let copies = || graph.entered(at).iter().filter(|it| it.call.is_some());
    let mut adding = Adding {
        graph,
        function: graph.function(at),
        is_split: copies().any(|it| it.is_part),
        solved,
        entry: Entry {
            seen: own.map_or(Bounds::OPEN, Bounds::exactly),
            unseen: Bounds::exactly(0),
            has_copies: copies().any(|it| !it.is_part),
        },
    };
    let mut balances: BTreeMap<Option<At>, Balance> = BTreeMap::new();
    for (together, calls) in calls(graph, at) {
        let caller = match together {
            Together::Block(caller, _) => Some(caller),
            Together::Line(file, line) => graph.holder(file, line),
        };
        // How deep recursion was inlined, nobody tells, nor where it became a loop.
        let is_loop = calls.instructions < calls.written.len();
        if caller == Some(at) && (is_loop || !calls.copies.is_empty()) {
            adding.enter(true, Bounds::OPEN);
        }
        adding.add(&calls, balances.entry(caller).or_default());
    }
    let unseen = balances.values().map(Balance::unseen);
    let high = unseen.fold(0, u64::saturating_add);
    add(&mut adding.entry.unseen, Bounds { low: 0, high });
    adding.entry
}

/// All calls of a function, with those together that belong together.
fn calls<'e>(graph: &CallGraph<'e>, at: At) -> BTreeMap<Together, Calls<'e>> {
    let mut all: BTreeMap<Together, Calls<'e>> = BTreeMap::new();
    for entered in graph.entered(at).iter().filter(|it| !it.is_part) {
        if let Some((file, place)) = entered.call {
            let calls = all.entry(graph.together(file, place)).or_default();
            calls.copies.push(*entered);
        }
    }
    for called in graph.called(at) {
        let (file, place) = called.from;
        // The rest of a function calls the part that was split off.
        if called.is_part && graph.holder(file, place.0) == Some(at) {
            continue;
        }
        let calls = all.entry(graph.together(file, place)).or_default();
        let sum = match called.is_part {
            true => &mut calls.parts,
            false => &mut calls.direct,
        };
        *sum = Some(sum.unwrap_or(0).saturating_add(called.count));
        calls.instructions += usize::from(!called.is_part);
    }
    for written in graph.written(at) {
        let together = graph.together(written.caller.0, written.place);
        all.entry(together).or_default().written.push(*written);
    }
    all
}

struct Adding<'a> {
    graph: &'a CallGraph<'a>,
    function: &'a SourceFunction,
    /// Whether a part was split off, and inlined again: then copies are no entries.
    is_split: bool,
    solved: &'a HashMap<At, Vec<Bounds>>,
    entry: Entry,
}

impl Adding<'_> {
    fn add(&mut self, calls: &Calls<'_>, balance: &mut Balance) {
        let written = self.written(calls);
        let direct = calls.direct.unwrap_or(0);
        let Some(told) = self.told(calls, direct, written) else {
            // Nobody says how often copies were entered but the source.
            let by = match written.exact() {
                Some(written) if written >= direct => Bounds::exactly(written - direct),
                _ => Bounds::OPEN,
            };
            self.enter(calls.copies.iter().all(|it| it.has_code), by);
            return;
        };
        for (copy, count) in calls.copies.iter().zip(&told) {
            self.enter(copy.has_code, Bounds::exactly(*count));
        }
        // What remains of a copy may be the call of the part.
        let parts = calls.parts.filter(|_| calls.copies.is_empty());
        let high = parts.unwrap_or(0);
        self.enter(true, Bounds { low: 0, high });
        let told = told.into_iter().fold(direct, u64::saturating_add);
        balance.known = balance.known.saturating_add(told);
        let has_code = calls.direct.or(calls.parts).is_some() || !calls.copies.is_empty();
        let is_all = has_code && self.has_site_in_each_copy(calls);
        let most = match written.exact().is_none() && is_all {
            true => told, // what is known there is all there was
            false => written.high,
        };
        balance.written = balance.written.saturating_add(most);
    }

    /// Whether each copy of the callers that was entered has code of each call.
    fn has_site_in_each_copy(&self, calls: &Calls<'_>) -> bool {
        let may_call = |it: &&&Entered| !it.is_part && it.has_code && it.count != Some(0);
        let copies = |it: &Written| {
            self.graph
                .entered(it.caller)
                .iter()
                .filter(may_call)
                .count()
        };
        let written: usize = calls.written.iter().map(copies).sum();
        calls.instructions + calls.copies.len() >= written
    }

    fn enter(&mut self, is_seen: bool, by: Bounds) {
        let known = match is_seen {
            true => &mut self.entry.seen,
            false => &mut self.entry.unseen,
        };
        add(known, by);
    }

    /// How often copies were entered, if two who should know say the same of each. The caller's source
    /// may be one of them.
    fn told(&self, calls: &Calls<'_>, direct: u64, written: Bounds) -> Option<Vec<u64>> {
        let copies = || calls.copies.iter().filter(|_| !self.is_split);
        if copies().count() < calls.copies.len() {
            return None;
        }
        let told = copies().map(|it| self.entries(it));
        told.collect::<Option<Vec<u64>>>().or_else(|| {
            let told = copies().map(|it| self.entries(it).or_else(|| self.at_entry(it)));
            let told: Vec<u64> = told.collect::<Option<_>>()?;
            let sum = told.iter().copied().fold(direct, u64::saturating_add);
            (sum == written.low && sum > 0).then_some(told)
        })
    }

    /// What places at the beginning of a copy say: its heading, and statements that are executed once for
    /// each entry.
    fn beginnings<'e>(&'e self, copy: &'e Entered) -> impl Iterator<Item = u64> + 'e {
        let is_first = |place: (u32, u32)| {
            let block = self.function.block_at(place.0, place.1);
            place.0 == self.function.line || block == Some(0) && !self.function.is_vague(place)
        };
        let said = copy.said.iter();
        said.filter(move |it| is_first(it.0)).map(|it| it.1)
    }

    /// How often a copy was entered, if all its beginnings say the same, and another says so.
    fn entries(&self, copy: &Entered) -> Option<u64> {
        let said: Vec<u64> = self.beginnings(copy).collect();
        let value = *said.first()?;
        let is_enough = copy.count.map_or(said.len() > 1, |it| it == value);
        (is_enough && said.iter().all(|it| *it == value)).then_some(value)
    }

    /// The same, if one of its beginnings says what the code at its entry does.
    fn at_entry(&self, copy: &Entered) -> Option<u64> {
        let count = copy.count?;
        self.beginnings(copy).any(|it| it == count).then_some(count)
    }

    /// How often the calls were reached, says their source.
    fn written(&self, calls: &Calls<'_>) -> Bounds {
        let mut sum = match calls.written.is_empty() {
            true => Bounds::OPEN,
            false => Bounds::exactly(0),
        };
        for written in &calls.written {
            let blocks = self.solved.get(&written.caller);
            let bounds = written.block.and_then(|it| blocks?.get(it as usize));
            add(&mut sum, bounds.copied().unwrap_or(Bounds::OPEN));
        }
        sum
    }
}
