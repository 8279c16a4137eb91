//! Runs that the monitor counted: from its journal into the profile.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use headcount_model::{
    FunctionCounts, LoadBias, Module, ModuleCounts, Placement, Process, Run, Shift,
};
use headcount_monitor::journal::{self, Entry, Written};
use headcount_monitor::{Error, Outcome, Settings};
use headcount_profile::Profile;

use crate::args::{CountUnit, Counting};
use crate::selection::Selection;
use crate::talk::say;
use crate::verbs::{DEFAULT_PROFILE, collect};

/// The end of a journal folder's name.
pub const FOLDER_SUFFIX: &str = ".run";

/// A name for the folder of a new run, in the folder where counts are kept, which is made.
pub fn new_folder() -> Result<PathBuf> {
    let parent = collect::default_folder();
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&parent)
        .with_context(|| format!("{}: cannot be made", parent.display()))?;
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let name = format!("{}-{}{FOLDER_SUFFIX}", std::process::id(), now.as_nanos());
    Ok(parent.join(name))
}

/// Removes the folder of a run, and the folder around it if that is empty now.
pub fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        say(format!("{}: cannot be removed: {error}", folder.display()));
    }
    if let Some(parent) = folder.parent() {
        let _ = fs::remove_dir(parent);
    }
}

/// Makes the monitor's settings of what the user typed, and lets it count.
pub fn count(
    args: &Counting,
    follow: bool,
    duration: Option<Duration>,
    begun: &dyn Fn(),
    work: impl FnOnce(&Settings<'_>) -> Result<Outcome, Error>,
) -> Result<Outcome, Error> {
    let selection = Selection::new(args);
    let begin = Instant::now();
    let told = std::cell::Cell::new(begin);
    let progress = |hits: u64| {
        if !args.quiet && told.get().elapsed() > Duration::from_secs(2) {
            told.set(Instant::now());
            let seconds = begin.elapsed().as_secs();
            let hits = headcount_report::thousands(hits);
            crate::progress::line(&format!("{hits} breakpoints met ... {seconds} s"));
        }
    };
    let outcome = work(&Settings {
        choose: &|module| selection.choose(module),
        why_nothing: &|module| selection.why_nothing(module),
        wants: &|path, is_program| selection.wants(path, is_program),
        libraries: selection.has_libraries(),
        watch_jumps: args.unit != CountUnit::Function,
        follow,
        limit: args.limit,
        duration,
        name: &|name| headcount_report::demangle(name).into_owned(),
        begun,
        progress: &progress,
    });
    if told.get() != begin {
        crate::progress::clear();
    }
    outcome
}

/// Takes what was just counted into the profile, and says what it is.
pub fn store(args: &Counting, folder: &Path, outcome: &Outcome) -> Result<()> {
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| DEFAULT_PROFILE.into());
    let modules: Vec<Module> = outcome.modules.iter().map(|it| (**it).clone()).collect();
    let kept = || {
        format!(
            "the counts are kept in {}; `headcount collect` takes them from there",
            folder.display()
        )
    };
    let written = journal::read(folder)?;
    let run = run_of(written, &modules).with_context(kept)?;
    let mut profile = Profile::create_or_open(&path).with_context(kept)?;
    profile.add(&modules, &run).with_context(kept)?;
    remove(folder);
    match (args.quiet, modules.is_empty()) {
        (false, _) => summarise(&run, &modules, outcome.hits, &path),
        // Nothing was counted: all did not go well.
        (true, true) => run.notes.iter().for_each(say),
        (true, false) => {}
    }
    Ok(())
}

/// Takes a run that headcount did not live to store into the profile. `false`: it goes on.
pub fn collect_folder(folder: &Path, profile: &Path) -> Result<bool> {
    if journal::is_being_written(folder) {
        return Ok(false);
    }
    let written = journal::read(folder)?;
    let mut modules = Vec::new();
    for entry in &written.entries {
        if let Entry::Module { path, build_id, .. } = entry {
            modules.push(read_again(path, build_id)?);
        }
    }
    let run = run_of(written, &modules)?;
    Profile::create_or_open(profile)?.add(&modules, &run)?;
    Ok(true)
}

/// The facts of a module, from its file, which must still be the one that was counted.
fn read_again(path: &str, build_id: &str) -> Result<Module> {
    let bytes = fs::read(path).with_context(|| format!("{path}: cannot be read"))?;
    let (module, _) = headcount_monitor::analyse_bytes(path, &bytes)
        .map_err(|reason| anyhow::anyhow!("{path}: {reason}"))?;
    if module.build_id != build_id {
        bail!("{path}: was rebuilt since it was counted; run it again");
    }
    Ok(module)
}

/// A run, from its journal and the modules that it names, in the same order.
pub fn run_of(written: Written, modules: &[Module]) -> Result<Run> {
    let mut run = Run::default();
    let mut counts = Vec::new();
    let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
    let mut has_ended = false;
    let mut uncounted = Vec::new();
    for entry in &written.entries {
        if let Entry::Module { uncounted: it, .. } = entry {
            uncounted.push(it);
        }
    }
    for ((module, counters), uncounted) in modules.iter().zip(&written.counters).zip(uncounted) {
        counts.push(Flat::new(module, counters, uncounted)?);
    }
    for entry in written.entries {
        match entry {
            Entry::Run {
                command,
                started,
                cpu,
                key,
                ..
            } => (run.command, run.started, run.cpu, run.key) = (command, started, cpu, key),
            Entry::Thread { pid, tid } => processes.entry(pid).or_default().threads.push(tid),
            Entry::Loaded { pid, module, bias } => {
                let build_id = flat(&mut counts, module)?.counts.build_id.clone();
                let bias = LoadBias(bias);
                let process = processes.entry(pid).or_default();
                process.loaded.push(Placement { build_id, bias });
            }
            Entry::Shift {
                module,
                block,
                from,
                delta,
            } => flat(&mut counts, module)?.shift(block, from, delta)?,
            Entry::Uncounted { module, block } => flat(&mut counts, module)?.uncount(block)?,
            Entry::AtLeast { module, block } => flat(&mut counts, module)?.at_least(block)?,
            Entry::Note(note) => run.notes.push(note),
            Entry::End { ended, status } => {
                (run.ended, run.status) = (ended, status);
                has_ended = true;
            }
            Entry::Module { .. } => {}
        }
    }
    if !has_ended {
        run.notes.push(
            "headcount was stopped while it counted: these are the counts up to then, and blocks \
             that threads were in at that moment count whole"
                .to_owned(),
        );
    }
    run.notes.sort();
    run.notes.dedup();
    for (pid, mut process) in processes {
        process.pid = pid;
        process.threads.sort_unstable();
        process.threads.dedup();
        process.loaded.sort();
        process.loaded.dedup();
        run.processes.push(process);
    }
    run.modules = counts.into_iter().map(Flat::finish).collect();
    Ok(run)
}

fn flat(counts: &mut [Flat], module: usize) -> Result<&mut Flat> {
    counts
        .get_mut(module)
        .context("the journal speaks of a module that it does not name")
}

/// The counts of a module, while blocks are still numbered through all of its functions.
struct Flat {
    counts: ModuleCounts,
    /// Function, and block in it, of each block.
    places: Vec<(usize, u32)>,
    shifts: BTreeMap<(usize, u32, u32), i64>,
}

impl Flat {
    fn new(module: &Module, counters: &[u64], uncounted: &[(u32, u32)]) -> Result<Self> {
        let mut places = Vec::new();
        let mut functions: Vec<FunctionCounts> = Vec::new();
        let mut counters = counters.iter();
        for (number, function) in module.functions.iter().enumerate() {
            let mut counts = FunctionCounts {
                edges: vec![None; function.edges.len()],
                ..FunctionCounts::default()
            };
            for block in 0..function.blocks.len() as u32 {
                places.push((number, block));
                let count = counters.next();
                let count = count.context("the journal has counters of another build")?;
                counts.blocks.push(Some(*count));
            }
            functions.push(counts);
        }
        let mut known = 0;
        for (first, count) in uncounted {
            let first = *first as usize;
            let end = first.saturating_add(*count as usize);
            // They come in order, each block once.
            let stretch = places.get(first..end).filter(|_| first >= known);
            let stretch = stretch.context("the journal speaks of a block that is not there")?;
            known = end;
            for (function, block) in stretch {
                functions[*function].blocks[*block as usize] = None;
            }
        }
        Ok(Self {
            counts: ModuleCounts {
                build_id: module.build_id.clone(),
                functions,
            },
            places,
            shifts: BTreeMap::new(),
        })
    }

    fn place(&self, block: u32) -> Result<(usize, u32)> {
        let place = self.places.get(block as usize);
        Ok(*place.context("the journal speaks of a block that is not there")?)
    }

    fn shift(&mut self, block: u32, from: u32, delta: i64) -> Result<()> {
        let (function, block) = self.place(block)?;
        let sum = self.shifts.entry((function, block, from)).or_default();
        *sum = sum
            .checked_add(delta)
            .context("the journal speaks of more visits than there can be")?;
        Ok(())
    }

    fn uncount(&mut self, block: u32) -> Result<()> {
        let (function, block) = self.place(block)?;
        self.counts.functions[function].blocks[block as usize] = None;
        Ok(())
    }

    fn at_least(&mut self, block: u32) -> Result<()> {
        let (function, block) = self.place(block)?;
        let known = &mut self.counts.functions[function].at_least;
        if let Err(place) = known.binary_search(&block) {
            known.insert(place, block);
        }
        Ok(())
    }

    fn finish(mut self) -> ModuleCounts {
        for ((function, block, from), delta) in self.shifts {
            if delta != 0 {
                let shift = Shift { block, from, delta };
                self.counts.functions[function].shifts.push(shift);
            }
        }
        self.counts
    }
}

/// A few words on what was counted.
fn summarise(run: &Run, modules: &[Module], hits: u64, profile: &Path) {
    let mut reached = Vec::new();
    for (module, counts) in modules.iter().zip(&run.modules) {
        for (function, counts) in module.functions.iter().zip(&counts.functions) {
            let visits = counts.blocks.iter().flatten();
            let visits = visits.fold(0_u64, |sum, it| sum.saturating_add(*it));
            if visits > 0 {
                reached.push((visits, &function.name));
            }
        }
    }
    reached.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let threads: usize = run.processes.iter().map(|it| it.threads.len()).sum();
    let number = |number: u64| headcount_report::thousands(number);
    say(format!(
        "{} breakpoints met in {} functions; {} process{}, {} thread{}; added to {}",
        number(hits),
        number(reached.len() as u64),
        run.processes.len(),
        if run.processes.len() == 1 { "" } else { "es" },
        threads,
        if threads == 1 { "" } else { "s" },
        profile.display()
    ));
    let hottest: Vec<String> = reached
        .iter()
        .take(3)
        .map(|(visits, name)| format!("{} ({})", headcount_report::demangle(name), number(*visits)))
        .collect();
    if !hottest.is_empty() {
        say(format!("most met: {}", hottest.join(", ")));
    }
    let refused: usize = modules.iter().map(|module| module.refusals.len()).sum();
    if refused > 0 {
        say(format!(
            "not counted: {refused}; `headcount report` says what and why"
        ));
    }
    run.notes.iter().for_each(say);
}
