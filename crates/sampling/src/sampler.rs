//! Samples a program from its beginning to its end, or a process for a while.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
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
use crate::record::{FileIdentity, Mapping, Record, What};

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
    /// Whether the program is one in the kernel's own format, and never for a shell.
    pub as_it_is: bool,
    /// Gives a program what it would have without headcount.
    pub prepare: &'a dyn Fn(&mut Command),
    /// A signal that somebody sent to headcount. While the program runs: one that is meant for it, and
    /// has not reached it.
    pub signal: &'a dyn Fn(bool) -> Option<i32>,
    /// Hears that sampling has begun.
    pub begun: &'a dyn Fn(),
}

/// What was seen, and how the program ended.
pub struct Outcome {
    /// The samples.
    pub samples: Samples,
    /// The programs of which the kernel allowed none.
    pub unseen: Vec<String>,
    /// Exit status, or 128 + signal; none if it was not seen to end.
    pub status: Option<i32>,
    /// How long it took, in nanoseconds.
    pub elapsed: u64,
}

/// Runs a program and samples it.
pub fn run(command: &[OsString], settings: &Settings<'_>) -> Result<Outcome, Error> {
    let held = launch::hold(command, settings.as_it_is, settings.prepare)?;
    let clocks = Clocks::of(&[held.pid], Begin::AtExec, rate(settings))?;
    let begin = Instant::now();
    let pid = held.pid;
    let child = held.release()?;
    (settings.begun)();
    let mut sampling = Sampling::new(clocks, settings.read, settings.debug_file);
    let status = sampling.until_end(pid, Some(child), settings);
    Ok(sampling.outcome(status, begin))
}

/// Samples a process that runs, until it ends or somebody wants it to be over.
pub fn attach(pid: i32, settings: &Settings<'_>) -> Result<Outcome, Error> {
    let pid = process_of(pid).ok_or(Error::NoProcess(pid))?;
    let threads = threads_of(pid)?;
    let clocks = Clocks::of(&threads, Begin::Now, rate(settings))?;
    // What is mapped from now on is told.
    let maps = std::fs::read(format!("/proc/{pid}/maps"));
    let maps = maps.map_err(|error| Error::Io("its memory cannot be looked at", error))?;
    let begin = Instant::now();
    (settings.begun)();
    let mut sampling = Sampling::new(clocks, settings.read, settings.debug_file);
    let maps = String::from_utf8_lossy(&maps);
    for mapping in maps.lines().filter_map(executable_mapping) {
        sampling
            .processes
            .take(at_first(pid, pid, What::Mapped(mapping)));
    }
    for thread in threads {
        let name = std::fs::read(format!("/proc/{pid}/task/{thread}/comm"));
        let name = String::from_utf8_lossy(&name.unwrap_or_default())
            .trim_end()
            .to_owned();
        sampling
            .processes
            .take(at_first(pid, thread, What::Named(name)));
    }
    sampling.until_end(pid, None, settings);
    Ok(sampling.outcome(None, begin))
}

/// The process that a thread belongs to.
fn process_of(thread: i32) -> Option<i32> {
    let status = std::fs::read(format!("/proc/{thread}/status")).ok()?;
    let status = String::from_utf8_lossy(&status).into_owned();
    let mut lines = status.lines();
    lines.find_map(|it| it.strip_prefix("Tgid:")?.trim().parse().ok())
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
    let (major, minor) = words.next()?.split_once(':')?;
    let inode = words.next()?;
    let path = words.next().unwrap_or_default().trim_start();
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    is_executable.then_some(Mapping {
        begin: number(begin)?,
        end: number(end)?,
        offset: number(offset)?,
        path: path.to_owned(),
        file: FileIdentity {
            device: (
                u32::from_str_radix(major, 16).ok()?,
                u32::from_str_radix(minor, 16).ok()?,
            ),
            inode: inode.parse().ok()?,
            generation: 0,
        },
    })
}

/// Samples that are being taken.
pub struct Sampling<'a> {
    clocks: Clocks,
    processes: Processes<'a>,
    find: &'a naming::FindDebugFile<'a>,
    /// Records that are not in order yet.
    pub pending: Vec<Record>,
    /// When it was over, if that was before the end.
    end: Option<u64>,
}

/// The program that is sampled.
struct Program {
    pid: i32,
    child: Option<Child>,
    /// Readable when it has ended.
    ended: Option<OwnedFd>,
    has_ended: bool,
    status: Option<ExitStatus>,
}

impl Program {
    fn new(pid: i32, child: Option<Child>) -> Self {
        Self {
            pid,
            child,
            ended: descriptor_of(pid),
            has_ended: false,
            status: None,
        }
    }

    /// What to wait for, until it has ended.
    fn descriptor(&self) -> Option<i32> {
        let ended = self.ended.as_ref().filter(|_| !self.has_ended);
        ended.map(AsRawFd::as_raw_fd)
    }

    /// Looks whether it has ended.
    fn look(&mut self) {
        match &mut self.child {
            Some(child) if self.status.is_none() => {
                self.status = child.try_wait().ok().flatten();
                self.has_ended = self.status.is_some();
            }
            Some(_) => (),
            None => self.has_ended = !is_alive(self.pid),
        }
    }

    /// Whether it is ours, and has not ended.
    fn is_awaited(&self) -> bool {
        self.child.is_some() && !self.has_ended
    }

    /// Hands a signal on to a child. Says whether it was meant for us.
    fn pass_on(&self, signal: Option<i32>) -> bool {
        match (signal, self.is_awaited()) {
            (Some(signal), true) => {
                // SAFETY: sends a signal to a child of ours that was not waited for.
                unsafe { libc::kill(self.pid, signal) };
                false
            }
            (signal, _) => signal.is_some(),
        }
    }
}

/// Whether a process, or a thread of it, still runs.
fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let is_zombie = state.starts_with(['Z', 'X']);
    // The first thread of a process may end before the others.
    let threads = state
        .split(' ')
        .nth(17)
        .and_then(|it| it.parse::<u32>().ok());
    !state.is_empty() && (!is_zombie || threads > Some(1))
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
            end: None,
        }
    }

    /// Reads samples until the program has ended, or everything has, or somebody wants no more. Waits for
    /// a child in any case.
    fn until_end(
        &mut self,
        pid: i32,
        child: Option<Child>,
        settings: &Settings<'_>,
    ) -> Option<i32> {
        let begin = Instant::now();
        let mut program = Program::new(pid, child);
        loop {
            let all_gone = self.sleep(program.descriptor());
            self.read();
            program.look();
            let is_gone = program.has_ended && !settings.wait;
            let is_late = settings.duration.is_some_and(|it| begin.elapsed() >= it);
            let is_told = program.pass_on((settings.signal)(!program.has_ended));
            if all_gone || is_gone || is_late || is_told {
                break;
            }
        }
        self.stop();
        while program.is_awaited() {
            sleep(program.descriptor().as_slice());
            program.look();
            program.pass_on((settings.signal)(true));
        }
        program.status.map(number)
    }

    /// Takes no more samples.
    fn stop(&mut self) {
        self.clocks.disable();
        self.end = Some(now());
        self.read();
    }

    /// Waits for a ring to fill up, the program to end, or a while. Says whether every process ended.
    pub fn sleep(&self, ended: Option<i32>) -> bool {
        let rings: Vec<i32> = self.clocks.descriptors().collect();
        let descriptors = [rings.as_slice(), ended.as_slice()].concat();
        let gone = sleep(&descriptors);
        gone.iter().take(rings.len()).all(|it| *it)
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
        let (samples, unseen) = self.finish();
        Outcome {
            samples,
            unseen,
            status,
            elapsed,
        }
    }

    /// All that was seen, with names; and the programs of which the kernel allowed nothing to be seen.
    pub fn finish(mut self) -> (Samples, Vec<String>) {
        self.read();
        for record in std::mem::take(&mut self.pending) {
            self.processes.take(record);
        }
        self.processes.finish(self.end.unwrap_or_else(now));
        let lost = self.processes.throttled(self.clocks.period());
        let unseen = self.processes.unseen();
        let Processes {
            modules,
            stacks,
            threads,
            lost: unread,
            read,
            ..
        } = self.processes;
        let (modules, sites) = naming::name(&modules.all, &stacks.sites, read, self.find);
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
        let samples = Samples {
            interval: self.clocks.interval,
            is_counted: false,
            lost: lost.saturating_add(unread),
            modules,
            sites,
            stacks: stacks.stacks,
            threads: threads.collect(),
        };
        (samples, unseen)
    }
}

/// Waits until one of some descriptors is readable, or for a while. Says of each whether what it is of
/// has gone.
fn sleep(descriptors: &[i32]) -> Vec<bool> {
    let mut waiting: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|fd| libc::pollfd {
            fd: *fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let number = waiting.len() as libc::nfds_t;
    // SAFETY: the list is ours, and has the length that is said.
    unsafe { libc::poll(waiting.as_mut_ptr(), number, NAP.as_millis() as i32) };
    let is_gone = |it: libc::pollfd| it.revents & libc::POLLHUP != 0;
    waiting.into_iter().map(is_gone).collect()
}

/// A descriptor that is readable when a process has ended.
fn descriptor_of(pid: i32) -> Option<OwnedFd> {
    // SAFETY: takes two numbers, and makes a descriptor.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let descriptor = i32::try_from(descriptor).ok().filter(|it| *it >= 0)?;
    // SAFETY: it is new, and nobody else's.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
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
        assert_eq!(
            (mapping.path.as_str(), mapping.file.inode),
            ("/lib/a b.so", 42)
        );
        let data = "7f00-7f80 rw-p 00001000 08:01 42                  /lib/a.so";
        assert_eq!(executable_mapping(data), None);
    }
}
