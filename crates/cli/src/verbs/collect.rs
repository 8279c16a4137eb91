//! `headcount collect`: takes the counter files of programs built with `headcount cc` into the
//! profile.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use headcount_model::{ModuleCounts, Process, Run};
use headcount_profile::{Added, Profile};
use headcount_wire::{DEFAULT_FOLDER, FILE_SUFFIX, FOLDER_VARIABLE};
use object::{Object, ObjectSegment};

use crate::args::Collect;
use crate::counters::{self, Counters, ProcessKey};
use crate::module::CountedModule;
use crate::talk::say;
use crate::verbs::DEFAULT_PROFILE;

/// Runs the verb.
pub fn run(args: &Collect) -> Result<ExitCode> {
    let profile = args
        .output
        .clone()
        .unwrap_or_else(|| DEFAULT_PROFILE.into());
    let mut collector = Collector::new(args.program.clone());
    if let Some(pid) = args.running {
        collector.take(running(pid)?, true)?;
    } else if let Some(core) = &args.core {
        collector.take(from_core(core)?, false)?;
    } else {
        let folders = if args.dirs.is_empty() {
            vec![default_folder()]
        } else {
            args.dirs.clone()
        };
        let files = counter_files(&folders)?;
        if files.is_empty() {
            let names: Vec<_> = folders
                .iter()
                .map(|folder| folder.display().to_string())
                .collect();
            bail!(
                "{}: no counter files; run a program built with `headcount cc` first",
                names.join(", ")
            );
        }
        collector.take_files(files)?;
    }
    collector.store(&profile, args.keep || args.running.is_some())?;
    Ok(ExitCode::SUCCESS)
}

/// Collects what lies in the default folder, before a reading verb reads. Says what it does.
pub fn collect_pending(profile: &Path) -> Result<()> {
    let files = counter_files(&[default_folder()])?;
    if files.is_empty() {
        return Ok(());
    }
    let mut collector = Collector::new(None);
    collector.take_files(files)?;
    if collector.runs.is_empty() {
        return Ok(());
    }
    collector.store(profile, false)
}

/// Where programs leave their counter files.
pub fn default_folder() -> PathBuf {
    match env::var_os(FOLDER_VARIABLE) {
        Some(folder) if !folder.is_empty() => folder.into(),
        _ => DEFAULT_FOLDER.into(),
    }
}

fn counter_files(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
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
            if path.to_string_lossy().ends_with(FILE_SUFFIX) {
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
    modules: BTreeMap<PathBuf, Result<CountedModule, String>>,
    runs: BTreeMap<(u64, ProcessKey), Vec<Counters>>,
    live: bool,
    failed: usize,
}

impl Collector {
    fn new(program: Option<PathBuf>) -> Self {
        Self {
            program,
            modules: BTreeMap::new(),
            runs: BTreeMap::new(),
            live: false,
            failed: 0,
        }
    }

    /// Takes counter files; one that cannot be read is reported and left where it is.
    fn take_files(&mut self, files: Vec<PathBuf>) -> Result<()> {
        for path in files {
            match Counters::read(&path) {
                Ok(counters) if counters.is_running() => say(format!(
                    "{}: still running; `headcount collect --running {}` reads its counts now",
                    path.display(),
                    counters.process.pid
                )),
                Ok(counters) => self.add(counters),
                Err(error) => self.complain(&error),
            }
        }
        Ok(())
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
        if let Some(program) = &self.program {
            counters.module.clone_from(program);
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

    fn store(mut self, profile_path: &Path, keep: bool) -> Result<()> {
        let mut profile = None;
        let mut stored = 0;
        for (_, mut parts) in std::mem::take(&mut self.runs) {
            parts.sort_by_key(|part| part.created);
            let Some(run) = self.run(&parts) else {
                continue;
            };
            let profile = match &mut profile {
                Some(profile) => profile,
                none => none.insert(Profile::create_or_open(profile_path)?),
            };
            let modules: Vec<_> = parts
                .iter()
                .filter_map(|part| self.modules.get(&part.module)?.as_ref().ok())
                .map(|module| module.module.clone())
                .collect();
            let added = profile.add(&modules, &run)?;
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
        if self.failed > 0 {
            let files = if self.failed == 1 {
                "file was"
            } else {
                "files were"
            };
            bail!("{} counter {files} not collected (see above)", self.failed);
        }
        Ok(())
    }

    /// One run from what its process counted, the oldest first; `None` if a module cannot be
    /// understood.
    fn run(&mut self, parts: &[Counters]) -> Option<Run> {
        let mut run = Run {
            started: parts.first()?.created,
            cpu: cpu(),
            ..Run::default()
        };
        let mut ids: Vec<String> = Vec::new();
        for part in parts {
            match self.counts(part) {
                Ok((counts, notes)) => {
                    add_up(&mut run.modules, counts);
                    run.notes.extend(notes);
                }
                Err(error) => {
                    self.complain(&error);
                    return None;
                }
            }
            ids.push(part.id.iter().map(|byte| format!("{byte:02x}")).collect());
            // What was started first is the command; the others are what it became by `exec`.
            if run.command.is_empty() {
                run.command.clone_from(&part.command);
            }
            run.ended = run.ended.max(modified(&part.origin));
            run.notes.extend(part.complaints());
        }
        ids.sort();
        run.key = ids.join("+");
        if self.live {
            let now = UNIX_EPOCH.elapsed().unwrap_or_default();
            run.key.push_str(&format!("@{}", now.as_nanos()));
            run.ended = now.as_nanos() as u64;
            run.notes.push(
                "the program was still running: these are its counts at one moment".to_owned(),
            );
        } else {
            run.notes.extend(unfinished(parts));
        }
        run.processes = processes(parts);
        run.notes.sort();
        run.notes.dedup();
        Some(run)
    }

    fn counts(&mut self, part: &Counters) -> Result<(ModuleCounts, Vec<String>)> {
        let origin = part.origin.display().to_string();
        let module = match self.module(&part.module) {
            Ok(module) => module,
            Err(error) => bail!("{origin}: {error}"),
        };
        if module.fingerprint != part.fingerprint || module.counters != part.sums.len() as u64 {
            bail!(
                "{origin}: counts of another build of {}; it was rebuilt since. Run it again, or name \
                 the old file with --program",
                part.module.display()
            );
        }
        let recovered = module.recover(&part.sums).with_context(|| origin)?;
        let notes = recovered
            .uncertain
            .iter()
            .map(|name| format!("{name}: was cut short; its counts may be off by the number of threads stopped in it"))
            .collect();
        let counts = ModuleCounts {
            build_id: module.module.build_id.clone(),
            functions: recovered.functions,
        };
        Ok((counts, notes))
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
            // More than 2^64 cannot be stored anyway, and will be refused there.
            *sum = sum.saturating_add(*count);
        }
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        say(format!(
            "{}: collected, but cannot be removed: {error}",
            path.display()
        ));
    }
    // The folder goes with its last file; otherwise this fails, as it should.
    if let Some(folder) = path
        .parent()
        .filter(|folder| folder.ends_with(DEFAULT_FOLDER))
    {
        let _ = fs::remove_dir(folder);
    }
}

/// Threads that were stopped, rather than coming to an end. (No process numbers: equal runs make
/// equal reports.)
fn unfinished(parts: &[Counters]) -> Option<String> {
    let mut threads: Vec<_> = parts
        .iter()
        .flat_map(|part| &part.threads)
        .filter(|thread| !thread.ended)
        .map(|thread| (thread.process, thread.tid))
        .collect();
    threads.sort_unstable();
    threads.dedup();
    let count = match threads.len() {
        0 => return None,
        1 => "a thread".to_owned(),
        many => format!("{many} threads"),
    };
    Some(format!(
        "{count} did not end by exit: if a signal stopped the program, counts in the function that each \
         was in at that moment may be off by one"
    ))
}

fn processes(parts: &[Counters]) -> Vec<Process> {
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for thread in parts.iter().flat_map(|part| &part.threads) {
        all.entry(thread.process.pid).or_default().push(thread.tid);
    }
    all.into_iter()
        .map(|(pid, mut threads)| {
            threads.sort_unstable();
            threads.dedup();
            Process { pid, threads }
        })
        .collect()
}

fn modified(path: &Path) -> u64 {
    let time = fs::metadata(path).and_then(|meta| meta.modified());
    let since = time
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos() as u64)
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map(|(_, name)| name.trim().to_owned())
        .unwrap_or_default()
}

/// The counts of a process that is running now: from its counter files, or from its memory where
/// it could not make any.
fn running(pid: u32) -> Result<Vec<Result<Counters>>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))
        .with_context(|| format!("process {pid}: cannot be looked at (is it there, and yours?)"))?;
    let mut files: Vec<PathBuf> = Vec::new();
    let mut memory: Vec<(u64, u64)> = Vec::new();
    for line in maps.lines() {
        let mut words = line.splitn(6, ' ');
        let range = words.next().and_then(|range| range.split_once('-'));
        let permissions = words.next().unwrap_or_default();
        let path = line.find('/').map(|at| &line[at..]);
        let path = path.map(|path| path.trim_end_matches(" (deleted)"));
        match path {
            Some(path) if path.ends_with(FILE_SUFFIX) => files.push(path.into()),
            None if permissions.starts_with("rw-p") => {
                let (Some((start, end)), true) = (range, !line.contains('[')) else {
                    continue;
                };
                memory.extend(
                    u64::from_str_radix(start, 16)
                        .ok()
                        .zip(u64::from_str_radix(end, 16).ok()),
                );
            }
            _ => {}
        }
    }
    files.sort();
    files.dedup();
    let mut found: Vec<_> = files.iter().map(|path| Counters::read(path)).collect();
    if found.is_empty() {
        let pieces = memory_of(pid, &memory)?;
        found = counters::in_memory(
            pieces.iter().map(Vec::as_slice),
            Path::new(&format!("process {pid}")),
        );
    }
    if found.is_empty() {
        bail!("process {pid}: counts nothing; is it built with `headcount cc`?");
    }
    Ok(found)
}

fn memory_of(pid: u32, ranges: &[(u64, u64)]) -> Result<Vec<Vec<u8>>> {
    let path = format!("/proc/{pid}/mem");
    let memory = fs::File::open(&path).with_context(|| format!("{path}: cannot be read"))?;
    // A counter area is small; huge reservations hold none.
    const LARGEST: u64 = 1 << 30;
    let mut pieces = Vec::new();
    for (start, end) in ranges.iter().filter(|(start, end)| end - start <= LARGEST) {
        let mut bytes = vec![0; (end - start) as usize];
        if memory.read_exact_at(&mut bytes, *start).is_ok() {
            pieces.push(bytes);
        }
    }
    Ok(pieces)
}

/// The counts that a core dump holds.
fn from_core(path: &Path) -> Result<Vec<Result<Counters>>> {
    let name = || format!("{}", path.display());
    let bytes = fs::read(path).with_context(|| format!("{}: cannot be read", name()))?;
    let core =
        object::File::parse(&*bytes).with_context(|| format!("{}: is no core dump", name()))?;
    let pieces: Vec<&[u8]> = core
        .segments()
        .filter_map(|segment| segment.data().ok())
        .collect();
    let found = counters::in_memory(pieces.into_iter(), path);
    if found.is_empty() {
        bail!(
            "{}: holds no counts; a program that could make a counter file keeps its counts there",
            name()
        );
    }
    Ok(found
        .into_iter()
        .map(|counters| {
            counters.map(|counters| Counters {
                // The dump stays where it is.
                origin: PathBuf::new(),
                ..counters
            })
        })
        .collect())
}
