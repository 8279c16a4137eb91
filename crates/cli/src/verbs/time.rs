//! `headcount time`: samples a program that runs at its own speed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use headcount_model::{Process, Run, Samples};
use headcount_monitor::{FileBytes, find_debug_file, foreign_file, give_back_to};
use headcount_profile::Profile;
use headcount_report::{demangle, share, thousands, time_text};
use headcount_sampling::{Outcome, Settings};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::{DEFAULT_PROFILE, collect};
use crate::args::Time;
use crate::progress::during_on_terminal;
use crate::talk::say;

/// Runs the verb. The exit status is the program's.
pub fn run(args: &Time) -> Result<ExitCode> {
    let signals = Signals::new(args.pid.is_some())?;
    let settings = Settings {
        frequency: args.frequency,
        stack: args.stack_size / 8 * 8,
        wait: args.wait,
        duration: args.duration,
        read: &read,
        debug_file: &find_debug_file,
        prepare: &|command| _ = give_back_to(command),
        signal: &|| signals.take(),
        begun: &|| begun(args),
    };
    let started = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let outcome = match args.pid {
        Some(pid) => headcount_sampling::attach(pid, &settings)?,
        None => headcount_sampling::run(&args.command, &settings)?,
    };
    let run = describe(
        args,
        &outcome,
        u64::try_from(started.as_nanos()).unwrap_or(0),
    );
    let stored = store(args, &run, &outcome.samples);
    let status = match args.pid {
        Some(_) => {
            stored?;
            0
        }
        None => {
            // Whoever waits for the program is to see how it ended, whatever became of our books.
            if let Err(error) = stored {
                say(format!("{error:#}"));
            }
            outcome.status.unwrap_or(125)
        }
    };
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

fn begun(args: &Time) {
    if let (Some(pid), false) = (args.pid, args.quiet) {
        say(format!("sampling process {pid}; Ctrl-C ends it"));
    }
}

/// Signals that come to headcount while a program runs. What a terminal sends reaches the program
/// itself; the others are passed on.
struct Signals {
    taken: Arc<AtomicUsize>,
}

impl Signals {
    fn new(is_attached: bool) -> Result<Self> {
        let taken = Arc::new(AtomicUsize::new(0));
        let unheard = Arc::new(AtomicBool::new(false));
        let what = "cannot handle signals";
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
            let from_terminal = matches!(signal, SIGINT | SIGQUIT);
            let number = signal.unsigned_abs() as usize;
            match is_attached || !from_terminal {
                true => signal_hook::flag::register_usize(signal, taken.clone(), number),
                false => signal_hook::flag::register(signal, unheard.clone()),
            }
            .context(what)?;
        }
        Ok(Self { taken })
    }

    fn take(&self) -> Option<i32> {
        let signal = self.taken.swap(0, Ordering::Relaxed);
        i32::try_from(signal).ok().filter(|it| *it != 0)
    }
}

/// A file as a process sees it, or as it is here if the process has ended.
fn read(pid: u32, path: &Path) -> Option<FileBytes> {
    let there = || foreign_file::open_in_root_of(pid.cast_signed(), path);
    let here = foreign_file::bytes(path);
    here.or_else(|_| foreign_file::read_whole(there()?)).ok()
}

fn describe(args: &Time, outcome: &Outcome, started: u64) -> Run {
    let samples = &outcome.samples;
    let mut processes: Vec<Process> = Vec::new();
    for thread in &samples.threads {
        match processes.last_mut().filter(|it| it.pid == thread.pid) {
            Some(process) => process.threads.push(thread.tid),
            None => processes.push(Process {
                pid: thread.pid,
                threads: vec![thread.tid],
                ..Process::default()
            }),
        }
    }
    let command = match args.pid {
        Some(pid) => command_of(pid),
        None => {
            let words = args.command.iter();
            words.map(|it| it.to_string_lossy().into_owned()).collect()
        }
    };
    let lost = (samples.lost > 0).then(|| {
        format!(
            "{} records of samples were lost, because headcount could not read them in time: \
             shares of time may be off.",
            thousands(samples.lost)
        )
    });
    Run {
        key: format!("time-{}-{started}", std::process::id()),
        command,
        started,
        ended: started.saturating_add(outcome.elapsed),
        status: outcome.status,
        cpu: collect::cpu(),
        processes,
        notes: lost.into_iter().collect(),
        ..Run::default()
    }
}

/// The words that a process was started with.
fn command_of(pid: i32) -> Vec<String> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.strip_suffix(b"\0").unwrap_or(&words);
    let words = words.split(|it| *it == 0).filter(|_| !words.is_empty());
    words
        .map(|it| String::from_utf8_lossy(it).into_owned())
        .collect()
}

fn store(args: &Time, run: &Run, samples: &Samples) -> Result<()> {
    let path = args.output.clone();
    let path = path.unwrap_or_else(|| PathBuf::from(DEFAULT_PROFILE));
    let add = || Profile::create_or_open(&path)?.add_timed(run, samples);
    during_on_terminal(&format!("adding to {}", path.display()), add)?;
    if !args.quiet {
        summarise(run, samples, &path);
    }
    run.notes.iter().for_each(say);
    Ok(())
}

/// A few words on what was sampled.
fn summarise(run: &Run, samples: &Samples, profile: &Path) {
    let total = samples.total();
    let several = |count: usize, one: &str, many: &str| {
        let what = if count == 1 { one } else { many };
        format!("{} {what}", thousands(count as u64))
    };
    let sum = |of: fn(&headcount_model::SampledThread) -> u64| {
        let parts = samples.threads.iter().map(of);
        parts.fold(0_u64, u64::saturating_add)
    };
    let on_processor = sum(|it| it.on_processor);
    let in_kernel = on_processor.saturating_sub(total.saturating_mul(samples.interval));
    say(format!(
        "{} samples; {} on processors, {} of it in the kernel; {} waiting; {}, {}; added to {}",
        thousands(total),
        time_text(on_processor),
        time_text(in_kernel),
        time_text(sum(|it| it.waiting)),
        several(run.processes.len(), "process", "processes"),
        several(samples.threads.len(), "thread", "threads"),
        profile.display()
    ));
    let hottest = hottest(samples);
    if !hottest.is_empty() {
        let named: Vec<String> = hottest
            .iter()
            .take(3)
            .map(|(name, count)| format!("{} ({})", demangle(name), share(*count, total)))
            .collect();
        say(format!("most time: {}", named.join(", ")));
    }
}

/// The functions with the most samples.
fn hottest(samples: &Samples) -> Vec<(String, u64)> {
    let mut sums: HashMap<String, u64> = HashMap::new();
    for (stack, count) in samples.threads.iter().flat_map(|it| &it.samples) {
        let stack = samples.stacks.get(*stack as usize);
        let site = stack.and_then(|it| samples.sites.get(it.site as usize));
        let name = site.and_then(|it| it.frames.first());
        let name = name.map_or("(unknown code)", |it| &it.function);
        *sums.entry(name.to_owned()).or_default() += count;
    }
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums
}
