//! A run, recovered from the journal that the monitor wrote while it counted.

mod flat;
mod phases;
mod programs;
mod runtimes;
mod source_files;
mod threads;
mod values;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use headcount_model::{
    Block, CallCosts, FileId, LinkAddr, LoadBias, Module, Placement, Process, Readings, Run,
    RuntimeCosts, ValueCounts,
};
use headcount_monitor::journal::{self, Entry, Written};
use headcount_monitor::thread_counts::ThreadRecords;
use headcount_monitor::{FileBytes, Outcome, OwnFolder};
use headcount_profile::{ModuleCounted, ModuleFacts, SparseCounts};

use crate::cache;
use crate::copies::{Reading, stretches};
use crate::machine;
use crate::readings::ModuleReadings;
use crate::selection::Selection;
use flat::Flat;
use headcount_monitor::values::Values;
use programs::{Fetched, Programs};

pub use phases::{VALUES, recover_phases};

/// What is known of a module that was counted.
pub enum Facts {
    /// By breakpoints.
    Blocks(Module),
    /// By copies of its routines.
    Copies(ModuleFacts),
}

impl Facts {
    /// The functions around an address.
    fn around(&self, at: u64) -> Result<Cow<'_, Module>> {
        match self {
            Self::Blocks(module) => Ok(Cow::Borrowed(module)),
            Self::Copies(facts) => {
                let here = at..at.saturating_add(1);
                let found = facts.functions_in(std::slice::from_ref(&here));
                Ok(Cow::Owned(facts.part(found)?))
            }
        }
    }

    /// Are counts of the one counts of the other?
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Blocks(one), Self::Blocks(other)) => one.build_id == other.build_id,
            (Self::Copies(one), Self::Copies(other)) => one.build_id == other.build_id,
            _ => false,
        }
    }

    fn build_id(&self) -> &str {
        match self {
            Self::Blocks(module) => &module.build_id,
            Self::Copies(facts) => &facts.build_id,
        }
    }

    /// The same, as profiles keep it.
    pub fn encoded(self) -> ModuleFacts {
        match self {
            Self::Blocks(module) => ModuleFacts::new(&module, Vec::new()),
            Self::Copies(facts) => facts,
        }
    }
}

/// A run that was recovered, with its modules and their counts, in the same order.
pub struct Recovered {
    pub run: Run,
    pub facts: Vec<Facts>,
    pub counts: Vec<Counts>,
    /// The builds of the journal's modules, by number; empty where nothing is known of one.
    builds: Vec<String>,
}

impl Recovered {
    /// Adds what was counted by value, and what interpreters ran, as far as it is chosen.
    fn add_by_value(&mut self, found: ByValue, selection: Option<&Selection>) {
        self.name_values(found.values);
        let doubts = found.programs.fetched.iter();
        let doubts: Vec<String> = doubts.filter_map(|it| self.doubt(it)).collect();
        self.run.notes.extend(doubts);
        self.run.notes.extend(found.programs.notes);
        let runtimes = Some(found.programs.runtimes).filter(|it| !it.is_empty());
        self.run.runtimes = runtimes.map(|it| RuntimeCosts {
            builds: self.builds.clone(),
            ..it
        });
        for (module, mut counts) in found.programs.modules {
            if let Some(selection) = selection {
                choose(&mut counts, &selection.choose_functions(&module));
            }
            self.facts.push(Facts::Blocks(module));
            self.counts.push(Counts::Made(counts));
        }
    }

    /// What to say if the instructions of a language are not as many as its interpreter fetched.
    fn doubt(&self, found: &Fetched) -> Option<String> {
        let mut fetched = 0_u64;
        for (module, places) in &found.places {
            let build = self.builds.get(*module)?;
            let known = self.facts.iter().position(|it| it.build_id() == build)?;
            let Some(Counts::Unread(readings)) = self.counts.get(known) else {
                return None;
            };
            fetched = fetched.saturating_add(readings.sum_at(places)?);
        }
        // Threads may have been between the two when headcount was killed.
        let was_seen = self.run.status.is_some();
        (was_seen && fetched != found.instructions).then(|| {
            format!(
                "Error: {} of {} were counted, but its interpreter fetched {}. Do not believe the counts of its \
                 lines, and please report this.",
                headcount_report::plural(found.instructions, "instruction"),
                found.language.title(),
                headcount_report::thousands(fetched),
            )
        })
    }

    /// Adds what was found by value, of which the journal knows where that was.
    fn name_values(&mut self, values: Option<ValueCounts>) {
        self.run.values = values.map(|it| ValueCounts {
            builds: self.builds.clone(),
            ..it
        });
    }
}

/// What a run counted by value.
#[derive(Clone, Default)]
struct ByValue {
    /// What was asked for.
    values: Option<ValueCounts>,
    /// By the addresses of their instructions.
    programs: Programs,
}

impl ByValue {
    /// What is in a run's folder.
    fn read(entries: &[Entry], folder: &OwnFolder) -> Result<Self> {
        let values = Values::read(folder, entries).context("what was counted by value")?;
        Ok(Self {
            programs: programs::programs_of(entries, &values)?,
            values: values::values_of(entries, values),
        })
    }

    fn is_empty(&self) -> bool {
        self.values.is_none() && self.programs.modules.is_empty()
    }
}

/// Leaves out functions that are not chosen.
fn choose(counts: &mut SparseCounts, chosen: &[bool]) {
    let is_chosen = |number: usize| chosen.get(number) != Some(&false);
    counts.functions.retain(|(number, _)| is_chosen(*number));
    let left_out = (0..chosen.len()).filter(|it| !is_chosen(*it));
    counts.uncounted.extend(left_out.map(|it| it..it + 1));
}

/// What a run says about a module.
pub enum Counts {
    /// How often its blocks and edges ran.
    Made(SparseCounts),
    /// What its counters said; the rest has time until somebody asks.
    Unread(ModuleReadings),
}

impl Counts {
    /// Was anything counted, be it that it never ran?
    pub fn is_chosen(&self) -> bool {
        match self {
            Self::Made(counts) => {
                let mut functions = counts.functions.iter();
                functions.any(|(_, it)| it.blocks.iter().any(Option::is_some))
            }
            Self::Unread(readings) => readings.has_counts(),
        }
    }

    /// As a profile keeps it.
    pub fn kept(self, build_id: &str) -> ModuleCounted {
        match self {
            Self::Made(counts) => ModuleCounted::Counts(counts),
            Self::Unread(readings) => readings.kept(build_id),
        }
    }
}

/// Recovers the run in a folder. `outcome` is what is known of it beside its journal, if it has
/// only just ended.
pub fn recover(
    folder: &OwnFolder,
    outcome: Option<&Outcome>,
    selection: Option<&Selection>,
) -> Result<Recovered> {
    let written = journal::read(folder)?;
    let asks_for_calls = written.entries.contains(&Entry::Calls);
    let by_value = ByValue::read(&written.entries, folder)?;
    let threads = ThreadRecords::read(folder).context("what threads counted")?;
    let mut recovered = match threads {
        Some(threads) => recover_by_thread(written, &threads, folder, outcome, selection)?,
        None => recover_from(written, folder, outcome, selection)?,
    };
    recovered.add_by_value(by_value, selection);
    if asks_for_calls {
        let builds = recovered.builds.clone();
        let costs = journal::call_costs(folder);
        recovered.run.calls = costs.map(|it| CallCosts { builds, ..it });
    }
    if asks_for_calls && recovered.run.calls.is_none() {
        recovered.run.notes.push(
            "What calls cost is not known: headcount was killed before it could write that down."
                .to_owned(),
        );
    }
    Ok(recovered)
}

/// The same, from what was read of its journal.
pub fn recover_from(
    mut written: Written,
    folder: &OwnFolder,
    outcome: Option<&Outcome>,
    selection: Option<&Selection>,
) -> Result<Recovered> {
    let (facts, builds) = united(&mut written, folder, outcome)?;
    let (mut run, counts) = run_of(written, &facts, selection)?;
    run.is_part |= outcome.is_some_and(|it| it.trouble.is_some());
    Ok(Recovered {
        run,
        facts,
        counts,
        builds,
    })
}

/// The same with what each thread counted.
fn recover_by_thread(
    mut written: Written,
    records: &ThreadRecords,
    folder: &OwnFolder,
    outcome: Option<&Outcome>,
    selection: Option<&Selection>,
) -> Result<Recovered> {
    let former = threads::first_counters(&written);
    let (facts, builds) = united(&mut written, folder, outcome)?;
    let (mut run, counts) = run_of(written.clone(), &facts, selection)?;
    run.is_part |= outcome.is_some_and(|it| it.trouble.is_some());
    let found = threads::thread_counts(records, &former, &written, &facts, &counts)?;
    run.notes.extend(threads::note(&found));
    run.threads = Some(found);
    Ok(Recovered {
        run,
        facts,
        counts,
        builds,
    })
}

/// What is known of the modules of a run, each of them once; and the builds of the journal's.
fn united(
    written: &mut Written,
    folder: &OwnFolder,
    outcome: Option<&Outcome>,
) -> Result<(Vec<Facts>, Vec<String>)> {
    let found = facts(written, folder, outcome);
    let lost = found.iter().find_map(|it| it.as_ref().err());
    if let Some(lost) = lost.filter(|_| found.iter().all(Result::is_err)) {
        bail!("{lost}; put back what was counted, and collect it again");
    }
    let build = |it: &Result<Facts, String>| match it {
        Ok(facts) => facts.build_id().to_owned(),
        Err(_) => String::new(),
    };
    let builds = found.iter().map(build).collect();
    Ok((unite(written, found), builds))
}

/// The modules of a run and their counts, where somebody knows the facts of those that its journal names,
/// in its order; or why nothing is known of one.
pub fn counts_of(
    mut written: Written,
    found: Vec<Result<Facts, String>>,
) -> Result<Vec<(Facts, Counts)>> {
    let facts = unite(&mut written, found);
    let (_, counts) = run_of(written, &facts, None)?;
    Ok(facts.into_iter().zip(counts).collect())
}

/// The modules that a journal names, in its order; or why nothing is known of one.
fn facts(
    written: &Written,
    folder: &OwnFolder,
    outcome: Option<&Outcome>,
) -> Vec<Result<Facts, String>> {
    let modules = written.entries.iter().filter_map(|entry| match entry {
        Entry::Module { path, build_id, .. } => Some((path, build_id, true)),
        Entry::File { path, key } => Some((path, key, false)),
        _ => None,
    });
    let facts = |(number, (path, key, has_blocks)): (usize, (&String, &String, bool))| {
        let known = outcome.and_then(|it| it.modules.get(number));
        if let Some(module) = known.filter(|_| has_blocks) {
            return Ok(Facts::Blocks((**module).clone()));
        }
        let held = outcome.and_then(|it| it.files.get(number));
        let bytes = match held {
            Some(file) => Ok(file.bytes().clone()),
            None => journal::module_bytes(folder, number, path).map_err(|it| it.to_string()),
        };
        let facts = bytes.and_then(|bytes| match has_blocks {
            true => read_again(path, key, &bytes).map(Facts::Blocks),
            false => cache::facts(path, key, &bytes).map(Facts::Copies),
        });
        facts.map_err(|reason| format!("{path}: {reason}"))
    };
    modules.enumerate().map(facts).collect()
}

/// The facts of a module, from the bytes of its file, which must be those that were counted.
fn read_again(path: &str, build_id: &str, bytes: &FileBytes) -> Result<Module, String> {
    let (module, _) = headcount_monitor::analyse_bytes(path, (**bytes).as_ref())?;
    match module.build_id == build_id {
        true => Ok(module),
        false => Err("was rebuilt since it was counted; run it again".to_owned()),
    }
}

/// Modules that are the same become one, with the path that was seen first, and their counts add
/// up. Those of which nothing is known become a note.
fn unite(written: &mut Written, found: Vec<Result<Facts, String>>) -> Vec<Facts> {
    let mut kept: Vec<Facts> = Vec::new();
    let mut counters: Vec<Vec<u64>> = Vec::new();
    let mut notes = Vec::new();
    let mut former = std::mem::take(&mut written.counters).into_iter();
    let numbers: Vec<Fate> = found
        .into_iter()
        .map(|found| {
            let more = former.next().unwrap_or_default();
            let facts = match found {
                Ok(facts) => facts,
                Err(reason) => {
                    notes.push(Entry::Note(format!(
                        "The counts of a module are lost: {reason}."
                    )));
                    return Fate::Lost;
                }
            };
            match kept.iter().position(|it| it.is_same(&facts)) {
                Some(known) => {
                    add_up(&mut counters[known], &more);
                    Fate::Same(known)
                }
                None => {
                    kept.push(facts);
                    counters.push(more);
                    Fate::Kept(kept.len() - 1)
                }
            }
        })
        .collect();
    written.counters = counters;
    renumber(written, &numbers);
    written.entries.extend(notes);
    kept
}

/// What becomes of a module of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It gets this number.
    Kept(usize),
    /// It is the same as one with this number.
    Same(usize),
    /// Nothing is known of it.
    Lost,
}

fn add_up(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// Gives modules other numbers. What is said of those that are lost is left out.
fn renumber(written: &mut Written, numbers: &[Fate]) {
    // Numbers that no line introduced stay wrong, and will be noticed.
    let number = |module: usize| match numbers.get(module) {
        Some(Fate::Kept(number) | Fate::Same(number)) => Some(*number),
        Some(Fate::Lost) => None,
        None => Some(module),
    };
    let mut routines = Vec::new();
    let mut routine_numbers = Vec::new();
    for mut routine in std::mem::take(&mut written.routines) {
        let module = number(routine.module as usize);
        routine_numbers.push(module.map(|_| routines.len()));
        if let Some(module) = module {
            routine.module = u32::try_from(module).unwrap_or(u32::MAX);
            routines.push(routine);
        }
    }
    written.routines = routines;
    let mut introduced = numbers.iter();
    let renumbered = std::mem::take(&mut written.entries).into_iter();
    let renumbered = renumbered.flat_map(|mut entry| {
        if let Some(module) = entry.module() {
            return match number(*module) {
                Some(number) => {
                    *module = number;
                    vec![entry]
                }
                None => note_of_lost(entry).into_iter().collect(),
            };
        }
        match entry {
            Entry::Module { .. } | Entry::File { .. } => match introduced.next() {
                Some(Fate::Kept(_)) => vec![entry],
                Some(Fate::Same(known)) => uncounted_blocks(&entry, *known),
                Some(Fate::Lost) | None => Vec::new(),
            },
            Entry::Visit { routine, at, delta } => {
                let routine = match routine_numbers.get(routine) {
                    Some(number) => *number,
                    None => Some(routine),
                };
                let visit = routine.map(|routine| Entry::Visit { routine, at, delta });
                visit.into_iter().collect()
            }
            other => vec![other],
        }
    });
    written.entries = renumbered.collect();
}

/// What happened somewhere is to be told, whatever is known of where.
fn note_of_lost(entry: Entry) -> Option<Entry> {
    match entry {
        Entry::NoteAt { what, .. } => Some(Entry::Note(format!("{what}."))),
        _ => None,
    }
}

/// What was not counted in one of two modules that are the same has no sum.
fn uncounted_blocks(entry: &Entry, module: usize) -> Vec<Entry> {
    let Entry::Module {
        blocks, uncounted, ..
    } = entry
    else {
        return Vec::new();
    };
    let stretches = uncounted.iter().map(|(first, count)| {
        let end = first.saturating_add(*count);
        *first..end.min(*blocks)
    });
    let blocks = stretches.flatten();
    blocks
        .map(|block| Entry::Uncounted { module, block })
        .collect()
}

/// The processes of a run. Numbers are used again: each birth makes another process or thread.
#[derive(Default)]
struct Births {
    processes: Vec<Process>,
    /// Who has a number now.
    latest: BTreeMap<u32, usize>,
}

impl Births {
    fn thread(&mut self, pid: u32, tid: u32) {
        let known = self.process(pid);
        // The first thread of a process has its number; it may not be the first that is seen.
        if tid == pid && known.threads.contains(&tid) {
            self.latest.remove(&pid);
        }
        self.process(pid).threads.push(tid);
    }

    /// Who has this number now.
    fn process(&mut self, pid: u32) -> &mut Process {
        let processes = &mut self.processes;
        let place = *self.latest.entry(pid).or_insert_with(|| {
            processes.push(Process {
                pid,
                ..Process::default()
            });
            processes.len() - 1
        });
        &mut self.processes[place]
    }
}

/// What a run did altogether, whatever its modules are.
pub struct Totals {
    pub instructions: u64,
    pub processes: usize,
    pub threads: usize,
}

/// The same from the counters of copies alone, which takes no time.
pub fn totals(written: &Written) -> Result<Totals> {
    let mut births = Births::default();
    let mut modules = 0;
    for entry in &written.entries {
        match entry {
            Entry::Thread { pid, tid } => births.thread(*pid, *tid),
            Entry::Module { .. } | Entry::File { .. } => modules += 1,
            _ => (),
        }
    }
    let mut instructions = 0_u64;
    for reading in readings(written, modules)?.iter().flatten() {
        for stretch in stretches(reading) {
            let executed = stretch.begin_in(&stretch.range()) as u64;
            let executed = executed.saturating_mul(stretch.count.unwrap_or(0));
            instructions = instructions.saturating_add(executed);
        }
    }
    let threads = births.processes.iter().map(|it| it.threads.len()).sum();
    Ok(Totals {
        instructions,
        processes: births.processes.len(),
        threads,
    })
}

/// A run, from its journal and the modules that it names, in the same order; and its counts.
pub fn run_of(
    written: Written,
    facts: &[Facts],
    selection: Option<&Selection>,
) -> Result<(Run, Vec<Counts>)> {
    let mut run = Run {
        host: machine::host(),
        system_calls: written.system_calls(),
        ..Run::default()
    };
    let mut readings = readings(&written, facts.len())?.into_iter();
    let mut counts = Vec::new();
    let mut births = Births::default();
    let mut has_ended = false;
    let mut uncounted = Vec::new();
    let mut refused = vec![Vec::new(); facts.len()];
    for entry in &written.entries {
        match entry {
            Entry::Module { uncounted: it, .. } => uncounted.push(it.as_slice()),
            Entry::File { .. } => uncounted.push(&[]),
            Entry::Refused {
                module,
                start,
                length,
                ..
            } => {
                let refused = refused.get_mut(*module).context(NO_SUCH_MODULE)?;
                refused.push(*start..start.saturating_add(*length));
            }
            _ => {}
        }
    }
    for (number, (facts, uncounted)) in facts.iter().zip(uncounted).enumerate() {
        let readings = readings.next().unwrap_or_default();
        counts.push(match facts {
            Facts::Blocks(module) => {
                let counters = written.counters.get(number).context(NO_SUCH_MODULE)?;
                Making::Flat(Flat::new(module, counters, uncounted)?)
            }
            Facts::Copies(facts) => {
                let refused = std::mem::take(&mut refused[number]);
                let readings = ModuleReadings::new(facts, readings, refused);
                Making::Made(match selection.filter(|it| !it.is_everything()) {
                    None => Counts::Unread(readings),
                    Some(selection) => {
                        let (counts, notes) = readings.chosen(facts, selection)?;
                        run.notes.extend(notes);
                        Counts::Made(counts)
                    }
                })
            }
        });
    }
    for entry in written.entries {
        match entry {
            Entry::Run {
                command,
                started,
                cpu,
                key,
                batch,
                in_the_middle,
                ..
            } => {
                (run.command, run.started, run.cpu) = (command, started, cpu);
                (run.key, run.batch, run.is_part) = (key, batch, in_the_middle);
            }
            Entry::Thread { pid, tid } => births.thread(pid, tid),
            Entry::Loaded { pid, module, bias } => {
                let build_id = facts.get(module).context(NO_SUCH_MODULE)?.build_id();
                let build_id = build_id.to_owned();
                let bias = LoadBias(bias);
                let process = births.process(pid);
                process.loaded.push(Placement { build_id, bias });
            }
            // What they found is read before modules are united.
            Entry::Tally { .. }
            | Entry::TallyPlace { .. }
            | Entry::Interpreter { .. }
            | Entry::Clock { .. } => {}
            Entry::Shift {
                module,
                block,
                from,
                delta,
            } => flat(&mut counts, module)?.shift(block, from, delta)?,
            Entry::Uncounted { module, block } => flat(&mut counts, module)?.uncount(block)?,
            Entry::AtLeast { module, block } => flat(&mut counts, module)?.at_least(block)?,
            Entry::NoteAt { what, module, at } => {
                let facts = facts.get(module).context(NO_SUCH_MODULE)?;
                let module = facts.around(at)?;
                let place = place(&module, LinkAddr(at));
                run.notes.push(format!("{what}{place}."));
            }
            Entry::Stray {
                module,
                at,
                places,
                times,
            } => {
                let facts = facts.get(module).context(NO_SUCH_MODULE)?;
                let module = facts.around(at)?;
                let place = place(&module, LinkAddr(at));
                run.notes.push(format!(
                    "Control arrived in {} where nobody had foreseen it, {} at {} (most \
                     often{place}, {at:#x}); that was counted all the same, but slowly.",
                    module.path,
                    headcount_report::plural(times, "time"),
                    headcount_report::plural(places as u64, "place")
                ));
            }
            Entry::Note(note) => run.notes.push(note),
            Entry::End { ended, status, .. } => {
                (run.ended, run.status) = (ended, status);
                has_ended = true;
            }
            Entry::Refused {
                module,
                start,
                length,
                reason,
            } => {
                let range = start..start.saturating_add(length);
                let facts = facts.get(module).context(NO_SUCH_MODULE)?;
                run.notes.extend(refusal(facts, &range, &reason)?);
            }
            Entry::Module { .. }
            | Entry::File { .. }
            | Entry::Vain { .. }
            | Entry::Calls
            | Entry::Visit { .. } => {}
        }
    }
    run.is_part |= run.status.is_none();
    if !has_ended {
        run.notes.push(
            "headcount was stopped while it counted: these are the counts up to then, and blocks \
             that threads were in at that moment count whole"
                .to_owned(),
        );
    }
    run.notes.sort();
    run.notes.dedup();
    run.processes = births.processes;
    for process in &mut run.processes {
        process.loaded.sort();
        process.loaded.dedup();
    }
    Ok((run, counts.into_iter().map(Making::finish).collect()))
}

fn flat(counts: &mut [Making], module: usize) -> Result<&mut Flat> {
    match counts.get_mut(module).context(NO_SUCH_MODULE)? {
        Making::Flat(flat) => Ok(flat),
        Making::Made(_) => bail!("the journal speaks of blocks of a module that has copies"),
    }
}

/// The counts of a module.
enum Making {
    /// The rest of the journal may have more to say of them.
    Flat(Flat),
    Made(Counts),
}

impl Making {
    fn finish(self) -> Counts {
        match self {
            Self::Flat(flat) => Counts::Made(flat.finish()),
            Self::Made(counts) => counts,
        }
    }
}

/// Functions in a range of addresses are not counted. Says why.
fn refusal(facts: &Facts, range: &Range<u64>, reason: &str) -> Result<Option<String>> {
    let Facts::Copies(facts) = facts else {
        bail!("the journal speaks of copies of a module that has none");
    };
    let around = facts.functions_in(std::slice::from_ref(range));
    let module = facts.part(around)?;
    let is_inside = |it: &Block| range.contains(&it.address.0);
    let mut functions = module.functions.iter().rev();
    let last = functions.find(|it| it.blocks.iter().any(is_inside));
    Ok(last.map(|function| {
        let name = headcount_report::demangle(&function.name);
        let (path, bytes) = (&facts.path, range.end - range.start);
        format!("{name} of {path} is not counted: {reason} ({bytes} bytes).")
    }))
}

const NO_SUCH_MODULE: &str = "the journal speaks of a module that it does not name";

/// What the copies of routines say, by module.
fn readings(written: &Written, modules: usize) -> Result<Vec<Vec<Reading>>> {
    let mut visits: BTreeMap<usize, BTreeMap<u64, i64>> = BTreeMap::new();
    for entry in &written.entries {
        if let Entry::Visit { routine, at, delta } = entry {
            let sum = visits.entry(*routine).or_default().entry(*at).or_default();
            *sum = sum.saturating_add(*delta);
        }
    }
    let mut found: Vec<Vec<Reading>> = vec![Vec::new(); modules];
    for (number, routine) in written.routines.iter().enumerate() {
        let visits = visits.remove(&number).unwrap_or_default();
        let visits = visits.into_iter().filter(|(_, delta)| *delta != 0);
        let visits = visits.map(|(at, delta)| (LinkAddr(at), delta)).collect();
        let module = found
            .get_mut(routine.module as usize)
            .context(NO_SUCH_MODULE)?;
        module.push(reading(routine, &written.windows, visits)?);
    }
    Ok(found)
}

fn reading(
    routine: &journal::Routine,
    windows: &[u64],
    visits: Vec<(LinkAddr, i64)>,
) -> Result<Reading> {
    let broken = "the journal speaks of a routine that cannot be";
    let journal::Counted {
        blocks,
        doubtful,
        graph,
        plan,
    } = routine.flow.unpack().context(broken)?;
    let first = routine.first_counter as usize;
    let counters = windows.get(first..first.saturating_add(plan.counters.len()));
    Ok(Reading {
        start: LinkAddr(routine.start),
        blocks,
        doubtful,
        graph,
        plan,
        readings: Readings(counters.context(broken)?.to_vec()),
        visits,
    })
}

/// Where an address is, in words: ` in crash (crash.c:7)`.
fn place(module: &Module, at: LinkAddr) -> String {
    let inside = |block: &&Block| {
        let mut spans = block.code.iter();
        spans.any(|it| (it.address.0..it.address.0 + it.bytes.len() as u64).contains(&at.0))
    };
    let functions = module.functions.iter().rev();
    let mut found = functions.filter_map(|it| Some((it, it.blocks.iter().find(inside)?)));
    let Some((function, block)) = found.next() else {
        return format!(" in {}", module.path.rsplit('/').next().unwrap_or_default());
    };
    let name = headcount_report::demangle(&function.name);
    let line = line_at(block, at);
    let file = line.and_then(|(file, line)| Some((module.files.get(file.index())?, line)));
    match file {
        Some((file, line)) => format!(" in {name} ({file}:{line})"),
        None => format!(" in {name}"),
    }
}

/// The line of the instruction at an address of a block.
fn line_at(block: &Block, at: LinkAddr) -> Option<(FileId, u32)> {
    let span = block.code.first()?;
    let lengths = headcount_x86::count(span).ok()?;
    let mut end = span.address.0;
    let index = lengths.iter().take_while(|length| {
        end += u64::from(**length);
        end <= at.0
    });
    let index = index.count() as u32;
    let mut behind = 0;
    let run = block.lines.iter().find(|run| {
        behind += run.instructions;
        behind > index && run.line != 0
    });
    run.map(|run| (run.file, run.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn births(entries: &[(u32, u32)]) -> Vec<(u32, Vec<u32>)> {
        let mut births = Births::default();
        entries
            .iter()
            .for_each(|(pid, tid)| births.thread(*pid, *tid));
        let processes = births.processes.into_iter();
        processes.map(|it| (it.pid, it.threads)).collect()
    }

    #[test]
    fn numbers_that_are_used_again_are_other_threads() {
        let mut entries = vec![(7, 7)];
        entries.extend([(7, 8); 40_000]);
        let found = births(&entries);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1.len(), 40_001);
    }

    #[test]
    fn numbers_that_are_used_again_are_other_processes() {
        let found = births(&[(7, 7), (8, 8), (8, 9), (8, 8), (8, 9), (7, 10)]);
        let expected = [(7, vec![7, 10]), (8, vec![8, 9]), (8, vec![8, 9])];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_thread_of_a_process_need_not_be_seen_first() {
        assert_eq!(births(&[(7, 6), (7, 7), (7, 9)]), [(7, vec![6, 7, 9])]);
        assert_eq!(births(&[(7, 9), (7, 6)]), [(7, vec![9, 6])]);
    }

    #[test]
    fn a_module_has_the_number_of_the_first_like_it() {
        let module = |path: &str, build_id: &str| {
            Ok(Facts::Blocks(Module {
                path: path.to_owned(),
                build_id: build_id.to_owned(),
                ..Module::default()
            }))
        };
        let introduces = |uncounted| Entry::Module {
            path: String::new(),
            build_id: String::new(),
            blocks: 2,
            uncounted,
        };
        let at_least = |module| Entry::AtLeast { module, block: 1 };
        let routine = |module| journal::Routine {
            module,
            start: 0,
            first_counter: 0,
            flow: journal::RoutineFlow::default(),
        };
        let visit = |routine| Entry::Visit {
            routine,
            at: 1,
            delta: 1,
        };
        let mut written = Written {
            entries: vec![
                introduces(vec![]),
                introduces(vec![]),
                introduces(vec![(1, u32::MAX)]),
                introduces(vec![]),
                at_least(3),
                at_least(1),
                at_least(2),
                visit(0),
                visit(1),
            ],
            routines: vec![routine(1), routine(2)],
            counters: vec![vec![1, 2], vec![4, 8], vec![16, 32], vec![64, 128]],
            windows: Vec::new(),
        };
        let lost = Err("/lost: is gone".to_owned());
        let found = vec![
            module("/a", "x"),
            lost,
            module("/b", "x"),
            module("/c", "y"),
        ];
        let kept = unite(&mut written, found);
        assert_eq!(kept.len(), 2);
        assert!(matches!(&kept[0], Facts::Blocks(it) if it.path == "/a"));
        assert_eq!(written.counters, [[17, 34], [64, 128]]);
        assert_eq!(written.routines, [routine(0)]);
        let note = "The counts of a module are lost: /lost: is gone.";
        let entries = [
            introduces(vec![]),
            Entry::Uncounted {
                module: 0,
                block: 1,
            },
            introduces(vec![]),
            at_least(1),
            at_least(0),
            visit(0),
            Entry::Note(note.to_owned()),
        ];
        assert_eq!(written.entries, entries);
    }
}
