//! `headcount collect`: takes the counter files of programs built with `headcount cc` into the
//! profile.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::source_route::portable::SUFFIX;
use crate::text_counts;
use anyhow::{Context, Result, anyhow, bail};
use headcount_model::{ModuleCounts, Process, Run};
use headcount_monitor::journal::Unreadable;
use headcount_monitor::{OwnFolder, foreign_file};
use headcount_profile::{Added, Problem, Profile};
use headcount_wire::{DEFAULT_FOLDER, FILE_SUFFIX, FOLDER_VARIABLE};

use crate::args::Collect;
use crate::counters::{self, Counters, ProcessKey};
use crate::kept_modules::{self, Unexplained};
use crate::machine;
use crate::module::CountedModule;
use crate::monitored::{self, Taken};
use crate::ordinary_memory;
use crate::program_memory;
use crate::talk::say;
use crate::verbs::DEFAULT_PROFILE;

/// Runs the verb.
pub fn run(args: &Collect) -> Result<ExitCode> {
    let profile = args
        .output
        .clone()
        .unwrap_or_else(|| DEFAULT_PROFILE.into());
    let mut collector = Collector::new(args.program.clone());
    let mut _locks = Vec::new();
    let mut folders = Vec::new();
    if let Some(pid) = args.running {
        collector.take(program_memory::running(pid)?, true)?;
    } else if let Some(core) = &args.core {
        let program = args.program.as_deref();
        collector.take(program_memory::from_core(core, program)?, false)?;
    } else if let Some(dump) = &args.raw {
        let program = args.program.as_deref();
        let program = program.context("--raw: name the program, too, with --program")?;
        let counters = ordinary_memory::written_out(dump, program, counters::modified(dump));
        collector.take(vec![counters], false)?;
    } else {
        folders = match args.dirs.is_empty() {
            true => vec![default_folder(), folder_of(&profile)],
            false => args.dirs.clone(),
        };
        folders.dedup();
        _locks = lock(&folders)?;
        say_foreign(&folders)?;
        let files = counter_files(&folders)?;
        let has_journals = collector.take_journals(&folders, &profile, args.keep)?;
        let has_texts = collector.take_texts(&folders, &profile, args.keep)?;
        if !has_journals && !has_texts && files.is_empty() {
            let names: Vec<_> = folders
                .iter()
                .map(|folder| folder.display().to_string())
                .collect();
            bail!(
                "{}: no counter files of yours; run a program built with `headcount cc` first",
                names.join(", ")
            );
        }
        collector.take_files(files);
    }
    let failed = collector.store(&profile, args.keep || args.running.is_some())?;
    if !args.keep {
        tidy(&folders);
    }
    if failed > 0 {
        let files = if failed == 1 {
            "file was"
        } else {
            "files were"
        };
        bail!("{failed} counter {files} not collected (see above)");
    }
    Ok(ExitCode::SUCCESS)
}

/// What a program that was built to count, and goes on, has counted so far: a profile in memory.
pub fn running(pid: u32) -> Result<Profile> {
    let mut collector = Collector::new(None);
    collector.take(program_memory::running(pid)?, true)?;
    let mut profile = Profile::in_memory()?;
    for parts in std::mem::take(&mut collector.runs).into_values() {
        let run = collector.run(&parts)?;
        collector.add_to(&mut profile, &run, &parts)?;
    }
    Ok(profile)
}

/// Collects what waits to go into a profile, before a reading verb reads it. Says what it does.
/// What cannot be collected stays, is named, and keeps nobody from reading the rest.
pub fn collect_pending(profile: &Path) {
    // In a folder of the user's choice, there may be anything.
    if own_choice().is_some() && profile != Path::new(DEFAULT_PROFILE) {
        return;
    }
    if let Err(error) = try_collect_pending(profile) {
        say(format!("{error:#}"));
    }
}

fn try_collect_pending(profile: &Path) -> Result<()> {
    let folders = [folder_of(profile)];
    // What others put there is no affair of ours, nor is where their links lead.
    let is_refused = |it: std::io::Error| it.raw_os_error().is_none();
    if own_choice().is_none() && OwnFolder::open_around(&folders[0]).is_err_and(is_refused) {
        return Ok(());
    }
    let is_empty = counter_files(&folders)?.is_empty()
        && text_files(&folders)?.is_empty()
        && journals(&folders)?.is_empty();
    if is_empty {
        return Ok(());
    }
    let _locks = lock(&folders)?;
    let mut collector = Collector::new(None);
    collector.take_journals(&folders, profile, false)?;
    collector.take_files(counter_files(&folders)?);
    collector.take_texts(&folders, profile, false)?;
    collector.store(profile, false)?;
    tidy(&folders);
    Ok(())
}

/// Removes from folders what was there for the sake of counter files that are collected; then, if
/// nothing is left in it, the folder that programs make on their own.
fn tidy(folders: &[PathBuf]) {
    for folder in folders {
        kept_modules::clear(folder);
        if folder.ends_with(DEFAULT_FOLDER) {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Keeps other collectors away until it is dropped: one that takes the files of a process while
/// another takes some of them away would store half a run. (Where folders cannot be locked, as on
/// some network file systems, there is nothing to be done.)
fn lock(folders: &[PathBuf]) -> Result<Vec<fs::File>> {
    // All collectors lock in the same order.
    let mut folders: Vec<_> = folders
        .iter()
        .filter_map(|folder| folder.canonicalize().ok())
        .collect();
    folders.sort();
    folders.dedup();
    let mut locks = Vec::new();
    for path in folders {
        let mut options = fs::OpenOptions::new();
        // What is no folder may take for ever to open.
        let options = options.read(true).custom_flags(libc::O_DIRECTORY);
        if let Ok(folder) = options.open(&path) {
            wait_for_lock(&folder, &path)?;
            locks.push(folder);
        }
    }
    Ok(locks)
}

/// Whoever can read a folder can lock it, and need not be a collector.
fn wait_for_lock(folder: &fs::File, path: &Path) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let begin = Instant::now();
    let mut is_told = false;
    while let Err(fs::TryLockError::WouldBlock) = folder.try_lock() {
        let waited = begin.elapsed();
        if waited > PATIENCE {
            bail!(
                "{}: is still locked by another process after {} seconds; collect again when that \
                 has ended",
                path.display(),
                waited.as_secs()
            );
        }
        if waited > Duration::from_secs(2) && !is_told {
            is_told = true;
            say(format!(
                "{}: waiting for another process that has locked it",
                path.display()
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Where programs leave their counter files.
pub fn default_folder() -> PathBuf {
    own_choice().unwrap_or_else(|| DEFAULT_FOLDER.into())
}

/// Where the counts of a run are kept that is to go into a profile: beside it, and named like it;
/// unless the user names another place.
pub fn folder_of(profile: &Path) -> PathBuf {
    match own_choice() {
        Some(folder) => folder,
        None => profile.with_extension("counts"),
    }
}

/// What the user wants the folder of counts to be.
pub fn own_choice() -> Option<PathBuf> {
    let folder = env::var_os(FOLDER_VARIABLE)?;
    (!folder.is_empty()).then(|| folder.into())
}

fn counter_files(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    entries_that_end(folders, FILE_SUFFIX)
}

/// What programs made by `headcount csource` wrote.
fn text_files(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    entries_that_end(folders, SUFFIX)
}

/// Folders of runs that headcount counted, but did not live to store.
fn journals(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    entries_that_end(folders, monitored::FOLDER_SUFFIX)
}

/// Those that are the user's own.
fn entries_that_end(folders: &[PathBuf], suffix: &str) -> Result<Vec<PathBuf>> {
    let mut files = entries(folders, &|it| it.ends_with(suffix))?;
    files.retain(|it| fs::symlink_metadata(it).is_ok_and(|it| foreign_file::is_own(&it)));
    Ok(files)
}

/// Says what is left alone because it is somebody else's.
fn say_foreign(folders: &[PathBuf]) -> Result<()> {
    let suffixes = [FILE_SUFFIX, SUFFIX, monitored::FOLDER_SUFFIX];
    let files = entries(folders, &|it| {
        suffixes.iter().any(|suffix| it.ends_with(suffix))
    })?;
    for path in files {
        if fs::symlink_metadata(&path).is_ok_and(|it| !foreign_file::is_own(&it)) {
            let path = path.display();
            say(format!(
                "{path}: is not collected: it belongs to another user, who can collect it"
            ));
        }
    }
    Ok(())
}

/// What is in folders, by name.
fn entries(folders: &[PathBuf], is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in folders {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("{}: cannot be read", folder.display()));
            }
        };
        for entry in entries {
            let path = entry
                .with_context(|| format!("{}: cannot be read", folder.display()))?
                .path();
            if is_wanted(&path.to_string_lossy()) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Gathers what one process counted in all its modules, then stores it as one run.
struct Collector {
    /// A module to read instead of those the files name.
    program: Option<PathBuf>,
    /// By the files they were read from.
    modules: BTreeMap<PathBuf, Result<CountedModule, String>>,
    /// Counter files that nothing explains, by module.
    unexplained: BTreeMap<PathBuf, Vec<PathBuf>>,
    runs: BTreeMap<(u64, ProcessKey), Vec<Counters>>,
    live: bool,
    failed: usize,
}

impl Collector {
    fn new(program: Option<PathBuf>) -> Self {
        Self {
            program,
            modules: BTreeMap::new(),
            unexplained: BTreeMap::new(),
            runs: BTreeMap::new(),
            live: false,
            failed: 0,
        }
    }

    /// Takes counter files; one that cannot be read is reported and left where it is.
    fn take_files(&mut self, files: Vec<PathBuf>) {
        let mapped = counters::mapped_by_anyone();
        for path in files {
            match final_counts(&path, &mapped) {
                Ok(Some(counters)) => self.add(counters),
                Ok(None) => {}
                Err(error) => self.complain(&error),
            }
        }
    }

    /// Takes journals of runs; one that cannot be read is reported and left where it is. Were there
    /// any?
    fn take_journals(&mut self, folders: &[PathBuf], profile: &Path, keep: bool) -> Result<bool> {
        let journals = journals(folders)?;
        let mut stored = 0;
        for folder in &journals {
            let taken = OwnFolder::open(folder).map_err(anyhow::Error::from);
            let taken = taken.and_then(|folder| {
                let taken = monitored::collect_folder(&folder, profile)?;
                if taken != Taken::GoesOn && !keep {
                    monitored::remove(&folder);
                }
                Ok(taken)
            });
            match taken {
                Ok(taken @ (Taken::Stored | Taken::Nothing)) => {
                    stored += usize::from(taken == Taken::Stored);
                }
                Ok(Taken::GoesOn) => say(format!("{}: still being counted", folder.display())),
                Err(error) => {
                    let is_everybodys = is_everybodys(&error);
                    let cure = match error.downcast_ref::<Unreadable>() {
                        Some(_) => "; remove the folder if nobody needs it",
                        None => "",
                    };
                    let folder = folder.display();
                    let what = format!("{folder}: cannot be collected{cure}");
                    self.complain(&error.context(what));
                    if is_everybodys {
                        break;
                    }
                }
            }
        }
        if stored > 0 {
            let runs = if stored == 1 { "run" } else { "runs" };
            let profile = profile.display();
            say(format!("collected {stored} counted {runs} into {profile}"));
        }
        Ok(!journals.is_empty())
    }

    /// Takes what portable runtimes wrote, likewise.
    fn take_texts(&mut self, folders: &[PathBuf], profile: &Path, keep: bool) -> Result<bool> {
        let files = text_files(folders)?;
        let found = text_counts::read(&files);
        found.errors.iter().for_each(|error| self.complain(error));
        let mut stored = 0;
        for (run, modules, paths) in found.runs {
            let mut profile = Profile::create_or_open(profile)?;
            let added = profile.add(&modules, &run)?;
            stored += usize::from(!matches!(added, Added::AlreadyThere));
            if !keep {
                paths.iter().for_each(|path| remove(path));
            }
        }
        if stored > 0 {
            let runs = if stored == 1 { "run" } else { "runs" };
            let profile = profile.display();
            say(format!("collected {stored} {runs} into {profile}"));
        }
        Ok(!files.is_empty())
    }

    fn take(&mut self, found: Vec<Result<Counters>>, live: bool) -> Result<()> {
        self.live = live;
        for counters in found {
            match counters {
                Ok(counters) => self.add(counters),
                Err(error) => self.complain(&error),
            }
        }
        Ok(())
    }

    fn complain(&mut self, error: &anyhow::Error) {
        self.failed += 1;
        say(format!("{error:#}"));
    }

    fn add(&mut self, mut counters: Counters) {
        // The file that the user names may stand for one of several modules: its own.
        if let Some(program) = self.program.clone()
            && let Ok(module) = self.module(&program)
            && module.fingerprint == counters.fingerprint
        {
            counters.module = program;
        }
        // Modules of one process are one run.
        let key = self
            .runs
            .keys()
            .find(|(_, process)| *process == counters.process)
            .copied();
        let key = key.unwrap_or((counters.created, counters.process));
        self.runs.entry(key).or_default().push(counters);
    }

    fn module(&mut self, path: &Path) -> &Result<CountedModule, String> {
        self.modules
            .entry(path.to_owned())
            .or_insert_with(|| CountedModule::read(path).map_err(|error| format!("{error:#}")))
    }

    /// Stores all runs; says how many counter files could not be collected.
    fn store(mut self, profile_path: &Path, keep: bool) -> Result<usize> {
        let mut profile = None;
        let mut stored = 0;
        let mut batch = None;
        for (_, mut parts) in std::mem::take(&mut self.runs) {
            parts.sort_by_key(|part| part.created);
            let run = match self.run(&parts) {
                // What ran between two readings is one thing to whoever reads.
                Ok(run) => Run {
                    batch: batch.get_or_insert_with(|| run.key.clone()).clone(),
                    ..run
                },
                Err(error) => {
                    self.leave(&error, &parts, keep);
                    continue;
                }
            };
            let profile = match &mut profile {
                Some(profile) => profile,
                none => none.insert(Profile::create_or_open(profile_path)?),
            };
            let added = self.add_to(profile, &run, &parts)?;
            stored += usize::from(!matches!(added, Added::AlreadyThere));
            if !keep {
                for part in parts
                    .iter()
                    .filter(|part| !part.origin.as_os_str().is_empty())
                {
                    remove(&part.origin);
                }
            }
        }
        if stored > 0 {
            let runs = if stored == 1 { "run" } else { "runs" };
            say(format!(
                "collected {stored} {runs} into {}",
                profile_path.display()
            ));
        }
        self.set_unexplained_aside();
        Ok(self.failed)
    }

    fn add_to(&mut self, profile: &mut Profile, run: &Run, parts: &[Counters]) -> Result<Added> {
        let mut modules = Vec::new();
        for part in parts {
            modules.push(self.explained(part)?.module.clone());
        }
        Ok(profile.add(&modules, run)?)
    }

    /// Does without a run. If that is for ever, its files should not be in the way for ever.
    fn leave(&mut self, error: &anyhow::Error, parts: &[Counters], keep: bool) {
        match error.downcast_ref::<Unexplained>() {
            Some(unexplained) if !keep && parts.iter().all(|part| part.origin.is_file()) => {
                let files = self.unexplained.entry((&unexplained.module).into());
                let origins = parts.iter().map(|part| part.origin.clone());
                files.or_default().extend(origins);
            }
            _ => self.complain(error),
        }
    }

    /// Says it once, and puts the files where only who asks for them finds them.
    fn set_unexplained_aside(&mut self) {
        for (module, files) in std::mem::take(&mut self.unexplained) {
            let module = module.display();
            self.failed += files.len();
            let these = match files.len() {
                1 => "a counter file of it".to_owned(),
                many => format!("{many} counter files of it"),
            };
            let aside: Option<Vec<_>> =
                files.iter().map(|it| kept_modules::set_aside(it)).collect();
            let folder = aside.and_then(|folders| Some(folders.first()?.display().to_string()));
            let cure = folder.map_or_else(
                || "name the file that ran with --program, or remove them".to_owned(),
                |folder| {
                    format!(
                        "moved to {folder}, from where `headcount collect {folder} --program FILE` \
                         collects with the file that ran"
                    )
                },
            );
            say(format!(
                "{module}: was removed or rebuilt, with no copy kept, so {these} cannot be read: {cure}"
            ));
        }
    }

    /// One run from what its process counted, the oldest first.
    fn run(&mut self, parts: &[Counters]) -> Result<Run> {
        let mut run = Run {
            started: parts.iter().map(|part| part.created).min().unwrap_or(0),
            cpu: machine::cpu(),
            host: machine::host(),
            ..Run::default()
        };
        let mut ids: Vec<String> = Vec::new();
        for part in parts {
            let (counts, notes) = self.counts(part)?;
            add_up(&mut run.modules, counts);
            run.notes.extend(notes);
            ids.push(part.id.iter().map(|byte| format!("{byte:02x}")).collect());
            // What was started first is the command; the others are what it became by `exec`.
            if run.command.is_empty() {
                run.command.clone_from(&part.command);
            }
            run.ended = run.ended.max(counters::modified(&part.origin));
            run.notes.extend(part.complaints());
        }
        ids.sort();
        run.key = ids.join("+");
        if self.live {
            let now = UNIX_EPOCH.elapsed().unwrap_or_default();
            run.key.push_str(&format!("@{}", now.as_nanos()));
            run.ended = now.as_nanos() as u64;
            run.is_part = true;
            run.notes.push(
                "the program was still running: these are its counts at one moment, and blocks that \
                 threads were in at that moment count whole"
                    .to_owned(),
            );
        } else {
            run.notes.extend(unfinished(parts));
        }
        run.processes = processes(parts);
        run.notes.sort();
        run.notes.dedup();
        Ok(run)
    }

    /// The module that counted.
    fn explained(&mut self, part: &Counters) -> Result<&CountedModule> {
        let file = self.file_that_explains(part)?;
        let module = self.module(&file).as_ref();
        module.map_err(|error| anyhow!("{}{error}", origin(part)))
    }

    /// The module's file, if it still is the build that counted; or the copy that was kept of that.
    fn file_that_explains(&mut self, part: &Counters) -> Result<PathBuf> {
        let is_it = |module: &Result<CountedModule, String>| {
            module
                .as_ref()
                .is_ok_and(|it| it.fingerprint == part.fingerprint && it.counters == part.count)
        };
        if is_it(self.module(&part.module)) {
            return Ok(part.module.clone());
        }
        if let Some(copy) = kept_modules::copy_for(part) {
            let read = || kept_modules::read(&copy, &part.module).map_err(|it| format!("{it:#}"));
            if is_it(self.modules.entry(copy.clone()).or_insert_with(read)) {
                return Ok(copy);
            }
        }
        let origin = origin(part);
        let reason = match self.module(&part.module) {
            _ if !part.module.exists() => {
                "is gone; it explains its counts, so name a copy of it with --program, or build and \
                 run it again"
            }
            Ok(_) => {
                "these are counts of another build of it; it was rebuilt since. Run it again, or \
                 name the old file with --program"
            }
            Err(error) => bail!(
                "{origin}{error}; name a good copy of it with --program, or build and run it again"
            ),
        };
        let module = part.module.display().to_string();
        bail!(Unexplained {
            origin,
            module,
            reason
        })
    }

    fn counts(&mut self, part: &Counters) -> Result<(ModuleCounts, Vec<String>)> {
        let module = self.explained(part)?;
        let none;
        let sums = match part.sums.is_empty() {
            true => {
                none = vec![0; module.counters as usize];
                &none
            }
            false => &part.sums,
        };
        let recovered = module.recover(sums, &part.memory).with_context(|| {
            let origin = origin(part);
            format!("{origin}the counts contradict each other; run the program again")
        })?;
        let cut_short = recovered.uncertain.iter();
        let mut notes: Vec<String> = cut_short
            .map(|name| format!("{name}: was cut short; its counts may be off by the number of threads stopped in it"))
            .collect();
        notes.extend(unread(&part.module, recovered.unread));
        let counts = ModuleCounts {
            build_id: module.module.build_id.clone(),
            functions: recovered.functions,
        };
        Ok((counts, notes))
    }
}

/// Where counts were read, as the beginning of a message.
fn origin(part: &Counters) -> String {
    match part.origin.as_os_str().is_empty() {
        true => String::new(),
        false => format!("{}: ", part.origin.display()),
    }
}

/// Adds the counts of a module. It may be there already: the process executed its own program
/// again, or closed a library and opened it once more.
fn add_up(modules: &mut Vec<ModuleCounts>, more: ModuleCounts) {
    let Some(known) = modules
        .iter_mut()
        .find(|known| known.build_id == more.build_id)
    else {
        modules.push(more);
        return;
    };
    // One build, so the same functions with the same blocks and edges.
    for (known, more) in known.functions.iter_mut().zip(&more.functions) {
        let blocks = known.blocks.iter_mut().zip(&more.blocks);
        let edges = known.edges.iter_mut().zip(&more.edges);
        for (sum, count) in blocks.chain(edges) {
            // Programs built to count count everything. More than 2^64 cannot be stored anyway,
            // and will be refused there.
            *sum = sum.zip(*count).map(|(a, b)| a.saturating_add(b));
        }
    }
}

/// The counts of a file, if nobody adds to them any more.
fn final_counts(path: &Path, mapped: &HashSet<u64>) -> Result<Option<Counters>> {
    let counters = Counters::read(path)?;
    let inode = fs::metadata(path).map(|meta| meta.ino());
    if counters.is_running() || inode.is_ok_and(|inode| mapped.contains(&inode)) {
        say(format!(
            "{}: still running; `headcount collect --running {}` reads its counts now",
            path.display(),
            counters.process.pid
        ));
        return Ok(None);
    }
    // What it counted last, it may have counted after we read.
    Counters::read(path).map(Some)
}

/// Does what is wrong with the profile keep all runs from being stored, not this one alone?
fn is_everybodys(error: &anyhow::Error) -> bool {
    let problem = error.downcast_ref::<headcount_profile::Error>();
    problem.is_some_and(|it| {
        !matches!(
            it.problem,
            Problem::OtherBuild { .. } | Problem::Misfit { .. } | Problem::TooLarge(_)
        )
    })
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        say(format!(
            "{}: collected, but cannot be removed: {error}",
            path.display()
        ));
    }
}

/// Threads that were stopped, rather than coming to an end, by the programs they ran: a process may
/// have been several. (No process numbers: equal runs make equal reports.)
fn unfinished(parts: &[Counters]) -> Vec<String> {
    let mut programs: BTreeMap<String, HashSet<(ProcessKey, u32)>> = BTreeMap::new();
    for part in parts {
        let program = part.command.first().cloned();
        let program = program.unwrap_or_else(|| part.module.display().to_string());
        let stopped = part.threads.iter().filter(|thread| !thread.ended);
        let stopped = stopped.map(|thread| (thread.process, thread.tid));
        programs.entry(program).or_default().extend(stopped);
    }
    let told = programs.into_iter().filter_map(|(program, threads)| {
        let count = match threads.len() {
            0 => return None,
            1 => "a thread".to_owned(),
            many => format!("{many} threads"),
        };
        Some(format!(
            "{program}: {count} did not end by exit: if a signal stopped the program, counts in the \
             function that each was in at that moment may be off by one"
        ))
    });
    told.collect()
}

/// Functions whose counts were in memory, and are gone.
fn unread(module: &Path, functions: usize) -> Option<String> {
    let functions = match functions {
        0 => return None,
        1 => "a function that was".to_owned(),
        many => format!("{many} functions that were"),
    };
    Some(format!(
        "{}: not counted: {functions} compiled with -ffreestanding, and so counted in ordinary \
         memory; `headcount collect --running` or `--core` reads it",
        module.display()
    ))
}

fn processes(parts: &[Counters]) -> Vec<Process> {
    // Numbers are used again.
    let mut all: BTreeMap<ProcessKey, Vec<u32>> = BTreeMap::new();
    for thread in parts.iter().flat_map(|part| &part.threads) {
        all.entry(thread.process).or_default().push(thread.tid);
    }
    all.into_iter()
        .map(|(process, mut threads)| {
            threads.sort_unstable();
            // One that counted in two modules.
            threads.dedup();
            Process {
                pid: process.pid,
                threads,
                ..Process::default()
            }
        })
        .collect()
}
