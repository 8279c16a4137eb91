//! What a program asks about itself while it is counted: how many events there have been so far.
//!
//! The answer is made of what `headcount query` gets, and is the sum of what it would print. Only what is
//! known of files is kept from one answer to the next.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use headcount_model::{Event, Function, Module};
use headcount_monitor::journal::Entry;
use headcount_monitor::{Asked, ModuleFile, NoAnswer};
use headcount_profile::{ModuleFacts, SparseCounts};

use crate::args::{CountUnit, Counting};
use crate::cache;
use crate::readings::{ModuleReadings, each_executed};
use crate::recovered::{Counts, Facts, counts_of};
use crate::verbs;

/// How many events each instruction of a function has at least, by address.
type Weights = Rc<Vec<(u64, u32)>>;

/// Knows the answers.
pub struct Answers {
    /// Is every instruction counted, and no count ever cut off?
    has_all: bool,
    /// Modules that are counted by copies, by path and key.
    facts: RefCell<HashMap<(String, String), Result<ModuleFacts, String>>>,
    /// By build and function.
    weights: RefCell<HashMap<(String, usize, Event), Weights>>,
}

/// Can a program ask for an event with this name? How often conditional jumps jumped is not always
/// known.
pub fn has_event(name: &str) -> bool {
    Event::from_name(name).is_some_and(|it| !it.is_of_edges())
}

impl Answers {
    /// For a run that is counted so.
    pub fn new(args: &Counting) -> Self {
        Self {
            has_all: args.unit != CountUnit::Function && args.limit.is_none(),
            facts: RefCell::default(),
            weights: RefCell::default(),
        }
    }

    /// The answer.
    pub fn answer(&self, asked: Asked<'_>) -> Result<u64, NoAnswer> {
        let event = Event::from_name(asked.event).filter(|_| self.has_all);
        let event = event.ok_or(NoAnswer)?;
        let found = self.modules(&asked);
        let counted = counts_of(asked.so_far.written, found).map_err(|_| NoAnswer)?;
        let mut sum = 0_u64;
        for (facts, counts) in &counted {
            let more = self.events(facts, counts, event).ok_or(NoAnswer)?;
            sum = sum.checked_add(more).ok_or(NoAnswer)?;
        }
        Ok(sum)
    }

    /// The facts of all modules that the journal names, in its order.
    fn modules(&self, asked: &Asked<'_>) -> Vec<Result<Facts, String>> {
        let mut blocks = asked.modules.iter();
        let entries = asked.so_far.written.entries.iter();
        let modules = entries.filter(|it| matches!(it, Entry::Module { .. } | Entry::File { .. }));
        let facts = |(number, entry): (usize, &Entry)| match entry {
            Entry::File { path, key } => self.copied(path, key, asked.files.get(number)),
            _ => match blocks.next() {
                Some(module) => Ok(Facts::Blocks((**module).clone())),
                None => Err("is not known".to_owned()),
            },
        };
        modules.enumerate().map(facts).collect()
    }

    fn copied(&self, path: &str, key: &str, file: Option<&ModuleFile>) -> Result<Facts, String> {
        let mut known = self.facts.borrow_mut();
        let found = known
            .entry((path.to_owned(), key.to_owned()))
            .or_insert_with(|| match file {
                Some(file) => cache::facts(path, key, file.bytes()),
                None => Err("is not known".to_owned()),
            });
        found.clone().map(Facts::Copies)
    }

    /// How many events a module had; `None`: nobody knows, or it is no number.
    fn events(&self, facts: &Facts, counts: &Counts, event: Event) -> Option<u64> {
        match (facts, counts) {
            (Facts::Copies(facts), Counts::Unread(readings)) => {
                self.events_of_copies(facts, readings, event)
            }
            (Facts::Copies(facts), Counts::Made(counts)) => {
                let numbers = counts.functions.iter().map(|(number, _)| *number);
                self.events_of_blocks(&facts.part(numbers).ok()?, counts, event)
            }
            (Facts::Blocks(module), Counts::Made(counts)) => {
                let functions = counts.functions.iter();
                let functions = functions.map(|(number, _)| module.functions.get(*number).cloned());
                let module = Module {
                    build_id: module.build_id.clone(),
                    functions: functions.collect::<Option<_>>()?,
                    ..Module::default()
                };
                self.events_of_blocks(&module, counts, event)
            }
            (Facts::Blocks(_), Counts::Unread(_)) => None,
        }
    }

    fn events_of_copies(
        &self,
        facts: &ModuleFacts,
        readings: &ModuleReadings,
        event: Event,
    ) -> Option<u64> {
        let mut sum = Some(0_u64);
        each_executed(facts, readings, |function, stretch, range, count| {
            let each = match event {
                Event::Instructions => Some(stretch.begin_in(range) as u64),
                _ => {
                    let code = stretch.range();
                    let both = code.start.max(range.start)..code.end.min(range.end);
                    let weights = || facts.function(function).ok();
                    let weights = self.weights(&facts.build_id, function, event, weights);
                    weights.map(|it| events_in(&it, &both))
                }
            };
            let more = each.and_then(|each| each.checked_mul(count));
            sum = sum.zip(more).and_then(|(sum, more)| sum.checked_add(more));
        });
        sum
    }

    /// The same where the functions of a module are those that have counts.
    fn events_of_blocks(
        &self,
        module: &Module,
        counts: &SparseCounts,
        event: Event,
    ) -> Option<u64> {
        let mut sum = 0_u64;
        for (function, (number, counts)) in module.functions.iter().zip(&counts.functions) {
            let weights = self.weights(&module.build_id, *number, event, || Some(function.clone()));
            let weights = weights?;
            for counted in headcount_report::blocks(function, counts) {
                for (index, address) in addresses(&counted.block.code)?.into_iter().enumerate() {
                    let here = address..address.saturating_add(1);
                    let each = events_in(&weights, &here);
                    // What was not counted is in no sum.
                    let times = counted.at(index as u32).value().unwrap_or(0);
                    sum = sum.checked_add(each.checked_mul(times)?)?;
                }
            }
        }
        Some(sum)
    }

    fn weights(
        &self,
        build: &str,
        number: usize,
        event: Event,
        function: impl FnOnce() -> Option<Function>,
    ) -> Option<Weights> {
        let key = (build.to_owned(), number, event);
        if let Some(known) = self.weights.borrow().get(&key) {
            return Some(Rc::clone(known));
        }
        let weights = Rc::new(weights_of(&function()?, event)?);
        let mut all = self.weights.borrow_mut();
        all.insert(key, Rc::clone(&weights));
        Some(weights)
    }
}

/// How many events the instructions have that begin in a range.
fn events_in(weights: &[(u64, u32)], range: &Range<u64>) -> u64 {
    let begin = weights.partition_point(|it| it.0 < range.start);
    let inside = weights[begin..].iter().take_while(|it| it.0 < range.end);
    inside.map(|it| u64::from(it.1)).sum()
}

/// How many events each instruction of a function has at least.
fn weights_of(function: &Function, event: Event) -> Option<Vec<(u64, u32)>> {
    let mut weights = Vec::new();
    for block in &function.blocks {
        let mut least = Vec::new();
        for span in &block.code {
            let code = verbs::events(span)?;
            least.extend(code.iter().map(|it| it.events[event].least));
        }
        weights.extend(addresses(&block.code)?.into_iter().zip(least));
    }
    weights.sort_unstable();
    weights.dedup();
    Some(weights)
}

/// Where the instructions of some code begin.
fn addresses(code: &[headcount_model::Span]) -> Option<Vec<u64>> {
    let mut addresses = Vec::new();
    for span in code {
        let mut at = span.address.0;
        for length in headcount_x86::count(span).ok()? {
            addresses.push(at);
            at = at.saturating_add(u64::from(length));
        }
    }
    Some(addresses)
}
