//! What each thread of a run counted, from the records of those that ended.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use headcount_model::{CountedThread, ThreadCounts};
use headcount_monitor::journal::{Entry, Written};
use headcount_monitor::thread_counts::{ThreadRecord, ThreadRecords};
use headcount_patch::{BEHIND_CALL_CELLS, FIRST_CALL_CELL};

use super::{Counts, Facts, readings};
use crate::readings::{Code, ModuleReadings};
use crate::thread_readings::{ThreadCounters, ThreadReadings};

/// The first counters of routines, in the order of the journal: by these, threads tell of them, whatever
/// becomes of modules meanwhile.
pub fn first_counters(written: &Written) -> Vec<u32> {
    let routines = written.routines.iter();
    routines.map(|it| it.first_counter).collect()
}

/// What the threads of a run counted. `former` are the first counters of the routines that records speak
/// of. What no record has is the last item, if that is anything.
pub fn thread_counts(
    records: &ThreadRecords,
    former: &[u32],
    written: &Written,
    facts: &[Facts],
    counts: &[Counts],
) -> Result<ThreadCounts> {
    let (counters, routines) = counters_of(written, facts, counts)?;
    let mut counters = Counting::new(counters, facts);
    let mut rest = whole(written, &routines);
    let mut threads = Vec::new();
    for record in records.iter() {
        let record = record.context("what threads counted")?;
        let readings = of_record(&record, former, &routines);
        rest.add(&readings, -1);
        let ThreadRecord {
            process,
            pid,
            tid,
            name,
            ..
        } = record;
        let thread = CountedThread {
            process,
            pid,
            tid,
            name,
            ..CountedThread::default()
        };
        threads.push(counters.thread(thread, &readings)?);
    }
    if !rest.is_nothing() {
        threads.push(counters.thread(CountedThread::default(), &rest)?);
    }
    Ok(ThreadCounts {
        modules: counters.counters.pack(),
        threads,
    })
}

/// What is to be said if some threads are not told apart.
pub fn note(counts: &ThreadCounts) -> Option<String> {
    let rest = counts.threads.iter().find(|it| it.is_rest())?;
    let executed = headcount_report::plural(rest.executed, "instruction");
    Some(format!(
        "Threads that had not ended when headcount was stopped are not told apart: together, they \
         executed {executed}."
    ))
}

/// By first counters: the routine's number, and how many counters it has.
type Routines = BTreeMap<u32, (u32, u32)>;

/// The counters of the routines that ran.
fn counters_of(
    written: &Written,
    facts: &[Facts],
    counts: &[Counts],
) -> Result<(ThreadCounters, Routines)> {
    let mut firsts: Vec<Vec<u32>> = vec![Vec::new(); facts.len()];
    for routine in &written.routines {
        if let Some(firsts) = firsts.get_mut(routine.module as usize) {
            firsts.push(routine.first_counter);
        }
    }
    let mut routines = Routines::new();
    let mut modules = Vec::new();
    let all = readings(written, facts.len())?.into_iter().zip(firsts);
    for ((all, firsts), (facts, counts)) in all.zip(facts.iter().zip(counts)) {
        let Counts::Unread(known) = counts else {
            continue;
        };
        let mut ran = Vec::new();
        for (reading, first) in all.into_iter().zip(firsts) {
            if reading.has_run() {
                let number = routines.len() as u32;
                routines.insert(first, (number, reading.readings.0.len() as u32));
                ran.push(reading);
            }
        }
        let readings = ModuleReadings {
            functions: known.functions.clone(),
            uncounted: known.uncounted.clone(),
            refused: known.refused.clone(),
            readings: ran,
        };
        modules.push((facts.build_id().to_owned(), readings));
    }
    Ok((ThreadCounters::new(modules), routines))
}

/// What all threads counted together.
fn whole(written: &Written, routines: &Routines) -> ThreadReadings {
    let mut whole = ThreadReadings::default();
    for (number, count) in (0..).zip(&written.windows).skip(FIRST_CALL_CELL as usize) {
        add_counter(&mut whole, routines, number, *count);
    }
    for entry in &written.entries {
        if let Entry::Visit { routine, at, delta } = entry
            && let Some(routine) = written.routines.get(*routine)
        {
            add_visits(&mut whole, routines, routine.first_counter, *at, *delta);
        }
    }
    whole
}

fn of_record(record: &ThreadRecord, former: &[u32], routines: &Routines) -> ThreadReadings {
    let mut readings = ThreadReadings::default();
    for (number, count) in &record.counters {
        add_counter(&mut readings, routines, *number, *count);
    }
    for (routine, at, delta) in &record.visits {
        if let Some(first) = former.get(*routine) {
            add_visits(&mut readings, routines, *first, *at, *delta);
        }
    }
    readings
}

/// Counters of modules of which nothing is known are left out, as they are of the whole run.
fn add_counter(to: &mut ThreadReadings, routines: &Routines, number: u32, count: u64) {
    if count == 0 {
        return;
    }
    if number < BEHIND_CALL_CELLS / 8 {
        return to.add_calls(number - FIRST_CALL_CELL, count);
    }
    if let Some((first, (routine, counters))) = routines.range(..=number).next_back()
        && number - first < *counters
    {
        to.add_counter(*routine, number - first, count);
    }
}

fn add_visits(to: &mut ThreadReadings, routines: &Routines, first: u32, at: u64, delta: i64) {
    if let Some((routine, _)) = routines.get(&first) {
        to.add_visits(*routine, at, delta);
    }
}

/// Finds out how much threads executed.
struct Counting<'a> {
    counters: ThreadCounters,
    code: Vec<Option<Code<'a>>>,
}

impl<'a> Counting<'a> {
    fn new(counters: ThreadCounters, facts: &'a [Facts]) -> Self {
        let code = counters.modules().iter().map(|(build_id, _)| {
            let facts = facts.iter().find(|it| it.build_id() == build_id)?;
            match facts {
                Facts::Copies(facts) => Some(Code::of(facts)),
                Facts::Blocks(_) => None,
            }
        });
        let code = code.collect();
        Self { counters, code }
    }

    /// A thread with what its counters said.
    fn thread(
        &mut self,
        thread: CountedThread,
        readings: &ThreadReadings,
    ) -> Result<CountedThread> {
        self.counters.fill(readings)?;
        let (mut executed, mut at_least) = (0_u64, false);
        for routine in readings.routines() {
            let Some((module, number)) = self.counters.place(routine) else {
                continue;
            };
            let (_, readings) = &self.counters.modules()[module];
            if let Some(code) = &self.code[module] {
                let found = code.executed(readings, &readings.readings[number]);
                executed = executed.saturating_add(found.instructions);
                at_least |= found.at_least;
            }
        }
        self.counters.empty(readings.routines());
        Ok(CountedThread {
            executed,
            at_least,
            counts: readings.pack(),
            ..thread
        })
    }
}
