//! Samples a program from its beginning to its end, or a process for a while.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use headcount_model::{SampledThread, Samples};

use crate::Error;
use crate::clocks::{Begin, Clocks, Rate};
use crate::launch;
use crate::modules::ReadFile;
use crate::naming;
use crate::processes::Processes;
use crate::record::{Mapping, Record, What};

/// How long headcount sleeps at most while nothing happens.
const NAP: Duration = Duration::from_millis(50);

/// Records that are younger may not be in order yet: another processor may be about to write an
/// older one.
const UNSETTLED: u64 = 2_000_000;

/// How to sample.
pub struct Settings<'a> {
    /// Samples a second of a thread's time on a processor.
    pub frequency: u32,
    /// Bytes of the stack that are looked at.
    pub stack: u32,
    /// Whether to go on when the program has ended, as long as one of its children lives.
    pub wait: bool,
    /// How long at most.
    pub duration: Option<Duration>,
    /// Reads a file as a process sees it.
    pub read: &'a ReadFile<'a>,
    /// Finds the file that the debug information of a program was moved to.
    pub debug_file: &'a naming::FindDebugFile<'a>,
    /// Gives a program what it would have without headcount.
    pub prepare: &'a dyn Fn(&mut Command),
    /// A signal that somebody sent to headcount, and that is meant for the program.
    pub signal: &'a dyn Fn() -> Option<i32>,
    /// Hears that sampling has begun.
    pub begun: &'a dyn Fn(),
}

/// What was seen, and how the program ended.
pub struct Outcome {
    /// The samples.
    pub samples: Samples,
    /// Exit status, or 128 + signal; none if it was not seen to end.
    pub status: Option<i32>,
    /// How long it took, in nanoseconds.
    pub elapsed: u64,
}

/// Runs a program and samples it.
pub fn run(command: &[OsString], settings: &Settings<'_>) -> Result<Outcome, Error> {
    let held = launch::hold(command, settings.prepare)?;
    let clocks = Clocks::of(&[held.pid], Begin::AtExec, rate(settings))?;
    let begin = Instant::now();
    let child = held.release()?;
    (settings.begun)();
    let mut sampling = Sampling::new(clocks, settings.read, settings.debug_file);
    let status = sampling.until_end(Some(child), settings);
    Ok(sampling.outcome(status, begin))
}

/// Samples a process that runs, until it ends or somebody wants it to be over.
pub fn attach(pid: i32, settings: &Settings<'_>) -> Result<Outcome, Error> {
    let threads = threads_of(pid)?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let clocks = Clocks::of(&threads, Begin::Now, rate(settings))?;
    let begin = Instant::now();
    (settings.begun)();
    let mut sampling = Sampling::new(clocks, settings.read, settings.debug_file);
    for mapping in maps.lines().filter_map(executable_mapping) {
        sampling
            .processes
            .take(at_first(pid, pid, What::Mapped(mapping)));
    }
    for thread in threads {
        let name = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm"));
        let name = name.unwrap_or_default().trim_end().to_owned();
        sampling
            .processes
            .take(at_first(pid, thread, What::Named(name)));
    }
    sampling.until_end(None, settings);
    Ok(sampling.outcome(None, begin))
}

/// Whether the kernel lets this process sample its own programs; if not, why.
pub fn is_allowed() -> Result<(), Error> {
    let rate = Rate {
        frequency: 1,
        stack: 64,
    };
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    Clocks::of(&[own], Begin::AtExec, rate).map(drop)
}

fn rate(settings: &Settings<'_>) -> Rate {
    Rate {
        frequency: settings.frequency,
        stack: settings.stack,
    }
}

/// A record of what was so before clocks ran.
fn at_first(pid: i32, tid: i32, what: What) -> Record {
    Record {
        time: now(),
        pid: pid.cast_unsigned(),
        tid: tid.cast_unsigned(),
        what,
    }
}

/// The threads of a process, itself first.
fn threads_of(pid: i32) -> Result<Vec<i32>, Error> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/task"));
    let folder = folder.map_err(|_| Error::NoProcess(pid))?;
    let names = folder.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    let mut threads: Vec<i32> = names.collect();
    threads.sort_unstable_by_key(|it| (*it != pid, *it));
    Ok(threads)
}

/// A line of `/proc/PID/maps`, if it is about code.
fn executable_mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (begin, end) = words.next()?.split_once('-')?;
    let is_executable = words.next()?.contains('x');
    let offset = words.next()?;
    let inode = words.nth(1)?;
    let path = words.next().unwrap_or_default().trim_start();
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    is_executable.then_some(Mapping {
        begin: number(begin)?,
        end: number(end)?,
        offset: number(offset)?,
        path: path.to_owned(),
        inode: inode.parse().ok()?,
    })
}

/// Samples that are being taken.
pub struct Sampling<'a> {
    clocks: Clocks,
    processes: Processes<'a>,
    find: &'a naming::FindDebugFile<'a>,
    /// Records that are not in order yet.
    pub pending: Vec<Record>,
}

impl<'a> Sampling<'a> {
    /// Clocks that run, and who knows of files.
    pub fn new(
        clocks: Clocks,
        read: &'a ReadFile<'a>,
        find: &'a naming::FindDebugFile<'a>,
    ) -> Self {
        Self {
            clocks,
            processes: Processes::new(read),
            find,
            pending: Vec::new(),
        }
    }

    /// Reads samples until the child has ended, or everything has.
    fn until_end(&mut self, mut child: Option<Child>, settings: &Settings<'_>) -> Option<i32> {
        let begin = Instant::now();
        let ended = child.as_ref().and_then(|it| descriptor_of(it.id()));
        let mut status = None;
        loop {
            let all_gone = self.sleep(ended.filter(|_| status.is_none()));
            self.read();
            if status.is_none() {
                status = child.as_mut().and_then(|it| it.try_wait().ok().flatten());
            }
            let is_child_gone = status.is_some() && !settings.wait;
            let is_late = settings.duration.is_some_and(|it| begin.elapsed() >= it);
            let is_told = match ((settings.signal)(), &child) {
                (Some(signal), Some(child)) => {
                    // SAFETY: sends a signal to a child of ours that was not waited for.
                    unsafe { libc::kill(child.id().cast_signed(), signal) };
                    false
                }
                (signal, _) => signal.is_some(),
            };
            if all_gone || is_child_gone || is_late || is_told {
                break;
            }
        }
        if let Some(descriptor) = ended {
            // SAFETY: it is ours, and nobody uses it any more.
            unsafe { libc::close(descriptor) };
        }
        // Whoever lives on after a given time is let go of; the program itself is waited for.
        if status.is_none() {
            status = child.and_then(|mut it| it.wait().ok());
        }
        status.map(number)
    }

    /// Waits for a ring to fill up, the program to end, or a while. Says whether every process ended.
    pub fn sleep(&self, ended: Option<i32>) -> bool {
        let descriptors = self.clocks.descriptors().chain(ended);
        let mut waiting: Vec<libc::pollfd> = descriptors
            .map(|fd| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            })
            .collect();
        let number = waiting.len() as libc::nfds_t;
        // SAFETY: the list is ours, and has the length that is said.
        unsafe { libc::poll(waiting.as_mut_ptr(), number, NAP.as_millis() as i32) };
        let mut rings = waiting
            .iter()
            .take(waiting.len() - usize::from(ended.is_some()));
        rings.all(|it| it.revents & libc::POLLHUP != 0)
    }

    /// Takes what the rings have. What is old enough is in order.
    pub fn read(&mut self) {
        let settled = now().saturating_sub(UNSETTLED);
        self.clocks.take(&mut self.pending);
        self.pending.sort_by_key(|it| it.time);
        let end = self.pending.partition_point(|it| it.time <= settled);
        for record in self.pending.drain(..end) {
            self.processes.take(record);
        }
    }

    fn outcome(self, status: Option<i32>, begin: Instant) -> Outcome {
        let elapsed = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Outcome {
            samples: self.finish(),
            status,
            elapsed,
        }
    }

    /// All that was seen, with names.
    pub fn finish(mut self) -> Samples {
        self.read();
        for record in std::mem::take(&mut self.pending) {
            self.processes.take(record);
        }
        self.processes.finish(now());
        let Processes {
            modules,
            stacks,
            threads,
            lost,
            ..
        } = self.processes;
        let (modules, sites) = naming::name(&modules.all, &stacks.sites, self.find);
        let threads = threads.into_iter().map(|((pid, tid), it)| {
            let mut samples: Vec<(u32, u64)> = it.samples.into_iter().collect();
            samples.sort_unstable();
            SampledThread {
                pid,
                tid,
                name: it.name,
                on_processor: it.on_processor,
                waiting: it.waiting,
                ready: it.ready,
                samples,
            }
        });
        Samples {
            interval: self.clocks.interval,
            is_counted: false,
            lost,
            modules,
            sites,
            stacks: stacks.stacks,
            threads: threads.collect(),
        }
    }
}

/// A descriptor that is readable when a process has ended.
fn descriptor_of(pid: u32) -> Option<i32> {
    // SAFETY: takes two numbers, and makes a descriptor.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    i32::try_from(descriptor).ok().filter(|it| *it >= 0)
}

/// The monotonic clock, in nanoseconds: that of the records.
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills in what it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64).saturating_mul(1_000_000_000) + time.tv_nsec as u64
}

fn number(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|it| 128 + it);
    status.code().or(signal).unwrap_or(125)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_understood() {
        let line = "7f00-7f80 r-xp 00001000 08:01 42                  /lib/a b.so";
        let mapping = executable_mapping(line).unwrap();
        assert_eq!(
            (mapping.begin, mapping.end, mapping.offset),
            (0x7f00, 0x7f80, 0x1000)
        );
        assert_eq!((mapping.path.as_str(), mapping.inode), ("/lib/a b.so", 42));
        let data = "7f00-7f80 rw-p 00001000 08:01 42                  /lib/a.so";
        assert_eq!(executable_mapping(data), None);
    }
}
