//! Samples of a program: from the kernel into the profile.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Result;
use headcount_model::{LoadBias, Process, Run, Samples};
use headcount_monitor::{Clock, FileBytes, Onlooker, Originals, find_debug_file, foreign_file};
use headcount_profile::Profile;
use headcount_report::time::Time;
use headcount_report::{brief, share, thousands, time_text};
use headcount_sampling::{Background, stop_regularly};

use crate::machine;
use crate::monitored;
use crate::progress::during_on_terminal;
use crate::talk::say;

/// Samples per second, and bytes of each stack, where nobody says otherwise.
pub const FREQUENCY: u32 = 1000;
pub const STACK_SIZE: u32 = 8192;

/// A file as a process sees it, or as it is here if the process has ended.
pub fn read(pid: u32, path: &Path) -> Option<FileBytes> {
    let root = |of: &str| fs::metadata(of).ok().map(|it| (it.dev(), it.ino()));
    let own = format!("/proc/{pid}/root/");
    let is_elsewhere = root(&own).is_some_and(|it| Some(it) != root("/"));
    if is_elsewhere {
        let file = foreign_file::open_in_root_of(pid.cast_signed(), path).ok()?;
        return foreign_file::read_whole(file).ok();
    }
    foreign_file::bytes(path)
        .ok()
        .or_else(|| removed_program(pid, path))
}

/// A program that was removed or replaced while it runs.
fn removed_program(pid: u32, path: &Path) -> Option<FileBytes> {
    let program = format!("/proc/{pid}/exe");
    let is_it = fs::read_link(&program).is_ok_and(|it| it == path);
    let file = fs::File::open(program).ok().filter(|_| is_it)?;
    foreign_file::read_whole(file).ok()
}

/// The words of a command, as a profile keeps them.
pub fn words(command: &[OsString]) -> Vec<String> {
    let words = command.iter();
    words.map(|it| it.to_string_lossy().into_owned()).collect()
}

/// What was sampled: the command, when it began and ended, and how.
pub struct Sampled {
    pub command: Vec<String>,
    /// The same as that of its counts, if it was counted at once; else empty.
    pub batch: String,
    /// Whether that is only a part of what the program did.
    pub is_part: bool,
    /// Nanoseconds since 1970.
    pub started: u64,
    pub ended: u64,
    pub status: Option<i32>,
    pub samples: Samples,
    /// The programs that the kernel does not allow to be sampled.
    pub unseen: Vec<String>,
}

fn describe(sampled: &Sampled) -> Run {
    let samples = &sampled.samples;
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
    let lost = (samples.lost > 0).then(|| {
        format!(
            "{} records were lost because headcount could not read them fast enough, or because the \
             kernel takes no more samples at this rate: shares of time may be off, and the time in the \
             kernel is too high; a lower -F helps.",
            thousands(samples.lost)
        )
    });
    let unseen = (!sampled.unseen.is_empty()).then(|| {
        format!(
            "The kernel allows no samples of {}, nor of what it starts: it has more rights than its user \
             (set-user-ID, set-group-ID, capabilities), or may not be read by its user. Root can sample it.",
            sampled.unseen.join(" and ")
        )
    });
    Run {
        key: format!("time-{}-{}", std::process::id(), sampled.started),
        batch: sampled.batch.clone(),
        command: sampled.command.clone(),
        is_part: sampled.is_part,
        started: sampled.started,
        ended: sampled.ended,
        status: sampled.status,
        cpu: machine::cpu(),
        host: machine::host(),
        processes,
        notes: lost.into_iter().chain(unseen).collect(),
        ..Run::default()
    }
}

/// Takes samples into the profile, and says what they are.
pub fn store(sampled: &Sampled, profile: &Path, quiet: bool) -> Result<()> {
    let run = describe(sampled);
    let add = |profile: &Path| {
        let add = || Profile::create_or_open(profile)?.add_timed(&run, &sampled.samples);
        during_on_terminal(&format!("adding to {}", profile.display()), add)
    };
    let kept = match add(profile) {
        Ok(_) => profile.to_owned(),
        // Nobody can take them again.
        Err(error) => {
            let another = monitored::another(profile);
            let Ok(_) = add(&another) else {
                return Err(error.into());
            };
            say(format!(
                "{error}; the samples are in {0}, and `headcount report {0}` shows them",
                another.display()
            ));
            another
        }
    };
    if !quiet {
        summarise(&run, &sampled.samples, &kept);
    }
    run.notes.iter().for_each(say);
    Ok(())
}

/// A few words on what was sampled.
fn summarise(run: &Run, samples: &Samples, profile: &Path) {
    let Some(time) = Time::new(&[], &[samples], None) else {
        return;
    };
    let several = |count: usize, one: &str, many: &str| {
        let what = if count == 1 { one } else { many };
        format!("{} {what}", thousands(count as u64))
    };
    let totals = time.totals;
    let total = totals.sampled.samples;
    say(format!(
        "{}; {} on processors, {} of it in the kernel; {} waiting; {}, {}; added to {}",
        several(total as usize, "sample", "samples"),
        time_text(totals.on_processor),
        time_text(totals.in_kernel()),
        time_text(totals.waiting),
        several(run.processes.len(), "process", "processes"),
        several(samples.threads.len(), "thread", "threads"),
        profile.display()
    ));
    let hottest = time.hottest().into_iter().take(3);
    let named: Vec<String> = hottest
        .map(|it| format!("{} ({})", brief(&it.name), share(it.own.samples, total)))
        .collect();
    if !named.is_empty() {
        say(format!("most time: {}", named.join(", ")));
    }
}

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(0)
}

/// Samples a program while it is counted.
#[derive(Default)]
pub struct WhileCounted {
    background: RefCell<Option<Background>>,
    /// Did the kernel refuse a clock that stops a thread?
    is_without_clock: Cell<bool>,
}

impl WhileCounted {
    /// What was seen until now.
    pub fn finish(self) -> Option<Samples> {
        self.background.into_inner().and_then(Background::finish)
    }
}

impl Onlooker for WhileCounted {
    fn begins(&self, pid: i32) {
        let begun = Background::start(pid, FREQUENCY, STACK_SIZE, read, find_debug_file);
        match begun {
            Ok(background) => *self.background.borrow_mut() = Some(background),
            Err(error) => say(format!("the program is counted, but not timed: {error}")),
        }
    }

    fn has_room(&self, pid: i32, region: Range<u64>, bias: LoadBias, number: usize) {
        if let Some(background) = &*self.background.borrow() {
            background.has_room(pid.cast_unsigned(), region, bias.0, number);
        }
    }

    fn has_copy(&self, number: usize, offset: u64, length: u64, originals: Originals) {
        if let Some(background) = &*self.background.borrow() {
            let original = move |at: u32| {
                let (address, has_return) = originals.at(at)?;
                Some((address.0, has_return))
            };
            background.has_copy(number, offset..offset + length, Box::new(original));
        }
    }

    fn clock_of(&self, tid: i32, mark: u64) -> Option<Clock> {
        let clock = stop_regularly(tid, FREQUENCY, mark);
        if let Err(error) = &clock
            && !self.is_without_clock.replace(true)
        {
            say(format!("no samples by token are taken: {error}"));
        }
        let descriptor = clock.ok()?;
        Some(Clock {
            descriptor,
            interval: 1_000_000_000 / u64::from(FREQUENCY),
        })
    }
}
