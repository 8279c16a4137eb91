//! The clocks that interrupt threads, and the rings of memory that the kernel writes samples into.
//!
//! There is one ring a processor: what inherits a clock must share one, and only what is on the same
//! processor can. Several clocks of different periods write into each ring, so that no program that
//! does the same thing at regular intervals is always met in the same moment.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};

use crate::Error;
use crate::record::{Record, parse};

/// So many nanoseconds a clock runs longer or shorter than the mean of all.
const SPREAD: [i64; 3] = [-29, 0, 31];
const PER_THOUSAND: i64 = 1000;

/// The registers that unwinding needs, as the kernel numbers them: rbp, rsp, rip.
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// The largest ring that is asked for, and the smallest that is any use.
const LARGEST: usize = 4 << 20;
const SMALLEST: usize = 64 << 10;

/// What is missing, and the cure.
const TOO_MANY_FILES: &str = "each thread takes three open files for each processor; raise the limit \
                              with `ulimit -n`";
const NO_RINGS: &str = "the kernel gives no memory for samples; raise kernel.perf_event_mlock_kb, or \
                        the limit with `ulimit -l`";

/// How samples are to be taken.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Samples a second of a thread's time on a processor.
    pub frequency: u32,
    /// Bytes of the stack that are copied with each.
    pub stack: u32,
}

/// When clocks begin to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    Now,
    /// When the process becomes another program.
    AtExec,
}

/// Clocks that run, with what they wrote.
pub struct Clocks {
    rings: Vec<Sampler>,
    /// Clocks that write into the ring of another.
    others: Vec<Counter>,
    /// Nanoseconds on a processor that one sample stands for.
    pub interval: u64,
}

impl Clocks {
    /// Clocks for these threads, and for all that they will make.
    pub fn of(threads: &[i32], begin: Begin, rate: Rate) -> Result<Self, Error> {
        let subject = match (begin, threads) {
            (Begin::Now, [first, ..]) => format!("process {first}"),
            _ => "a program".to_owned(),
        };
        let refused = |error: io::Error| Error::NotAllowed {
            subject: subject.clone(),
            error,
            paranoid: paranoid(),
        };
        let mut clocks = Self {
            rings: Vec::new(),
            others: Vec::new(),
            interval: 0,
        };
        let periods = periods(rate.frequency);
        let each_second: f64 = periods.iter().map(|it| 1.0 / *it as f64).sum();
        clocks.interval = (1.0 / each_second).round() as u64;
        let mut by_processor = Vec::new();
        for processor in processors() {
            let mut all = Vec::new();
            for thread in threads {
                for (clock, period) in periods.iter().enumerate() {
                    let mut builder = builder(rate, *period, begin, clock == 0);
                    builder.observe_pid(*thread).one_cpu(processor);
                    match builder.build() {
                        Ok(counter) => all.push(counter),
                        Err(error) => match error.raw_os_error() {
                            // A thread that has ended meanwhile, or a processor that is switched off.
                            Some(libc::ESRCH | libc::ENODEV) => (),
                            Some(libc::EMFILE) => return Err(Error::Io(TOO_MANY_FILES, error)),
                            _ => return Err(refused(error)),
                        },
                    }
                }
            }
            by_processor.push(all);
        }
        by_processor.retain(|it| !it.is_empty());
        if by_processor.is_empty() {
            return Err(Error::NoProcess(threads.first().copied().unwrap_or(0)));
        }
        let first: Vec<&Counter> = by_processor.iter().filter_map(|it| it.first()).collect();
        let size = ring_size(&first).map_err(|error| Error::Io(NO_RINGS, error))?;
        for all in by_processor {
            let mut all = all.into_iter();
            if let Some(first) = all.next() {
                let ring = first.sampled(size).map_err(refused)?;
                for other in all {
                    share(&other, &ring).map_err(refused)?;
                    clocks.others.push(other);
                }
                clocks.rings.push(ring);
            }
        }
        if begin == Begin::Now {
            clocks.enable().map_err(refused)?;
        }
        Ok(clocks)
    }

    /// Nanoseconds on a processor between two samples of the same clock, on average.
    pub fn period(&self) -> u64 {
        self.interval.saturating_mul(SPREAD.len() as u64)
    }

    /// No clock runs from now on.
    pub fn disable(&mut self) {
        let rings = self.rings.iter_mut().map(Sampler::as_counter_mut);
        for clock in rings.chain(&mut self.others) {
            // One that cannot be stopped goes on until it is closed.
            let _ = clock.disable();
        }
    }

    fn enable(&mut self) -> io::Result<()> {
        let rings = self.rings.iter_mut().map(Sampler::as_counter_mut);
        rings.chain(&mut self.others).try_for_each(Counter::enable)
    }

    /// Takes what has been written since the last time, in no order.
    pub fn take(&mut self, to: &mut Vec<Record>) {
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                to.extend(parse(&record));
            }
        }
    }

    /// What to wait for: readable when a ring fills up.
    pub fn descriptors(&self) -> impl Iterator<Item = i32> + '_ {
        self.rings.iter().map(AsRawFd::as_raw_fd)
    }
}

fn builder<'a>(rate: Rate, period: u64, begin: Begin, is_first: bool) -> Builder<'a> {
    let mut builder = Builder::new(Software::TASK_CLOCK);
    builder
        .sample_period(period)
        .sample(
            SampleFlag::IP
                | SampleFlag::TID
                | SampleFlag::TIME
                | SampleFlag::REGS_USER
                | SampleFlag::STACK_USER,
        )
        .sample_regs_user(REGISTERS)
        .sample_stack_user(rate.stack)
        .inherit(true)
        .enable_on_exec(begin == Begin::AtExec)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .wakeup_watermark(SMALLEST / 2);
    if is_first {
        builder
            .mmap(true)
            .mmap2(true)
            .comm(true)
            .comm_exec(true)
            .task(true)
            .context_switch(true);
    }
    builder
}

/// The size that rings can have: as large as the kernel lets users have all of them together.
fn ring_size(clocks: &[&Counter]) -> io::Result<usize> {
    let mut size = LARGEST;
    loop {
        let mapped: Vec<io::Result<Mapped>> =
            clocks.iter().map(|it| Mapped::new(it, size)).collect();
        match mapped.into_iter().collect::<io::Result<Vec<Mapped>>>() {
            Ok(_) => return Ok(size),
            Err(error) if size <= SMALLEST => return Err(error),
            Err(_) => size /= 2,
        }
    }
}

/// A ring that was mapped only to see whether the kernel gives it.
struct Mapped {
    at: *mut libc::c_void,
    length: usize,
}

impl Mapped {
    fn new(clock: &Counter, size: usize) -> io::Result<Self> {
        const PAGE: usize = 4096;
        let length = PAGE + size;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                clock.as_raw_fd(),
                0,
            )
        };
        match at == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Self { at, length }),
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped here, and nobody else knows of it.
        unsafe { libc::munmap(self.at, self.length) };
    }
}

/// Lets a clock write into the ring of another.
fn share(counter: &Counter, ring: &Sampler) -> io::Result<()> {
    const SET_OUTPUT: libc::c_ulong = 0x2405;
    // SAFETY: both are descriptors of perf events, and no memory is handed over.
    let done = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT as _, ring.as_raw_fd()) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The periods of the clocks, in nanoseconds, such that together they take as many samples as wanted.
fn periods(frequency: u32) -> [u64; SPREAD.len()] {
    let clocks = SPREAD.len() as i64;
    let mean = clocks * 1_000_000_000 / i64::from(frequency.max(1));
    SPREAD.map(|it| (mean + mean * it / PER_THOUSAND).max(1).cast_unsigned())
}

/// The numbers of the processors that are switched on.
fn processors() -> Vec<usize> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let known = processor_list(online.trim());
    match known.is_empty() {
        true => {
            let number = std::thread::available_parallelism().map_or(1, usize::from);
            (0..number).collect()
        }
        false => known,
    }
}

/// `0-3,7` are 0, 1, 2, 3 and 7.
fn processor_list(text: &str) -> Vec<usize> {
    let stretches = text.split(',').filter_map(|it| {
        let (first, last) = it.split_once('-').unwrap_or((it, it));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    });
    stretches.flatten().collect()
}

fn paranoid() -> Option<i32> {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_together_take_as_many_samples_as_wanted() {
        for frequency in [1, 100, 997, 10_000] {
            let each_second: f64 = periods(frequency).iter().map(|it| 1e9 / *it as f64).sum();
            let off = (each_second / f64::from(frequency) - 1.0).abs();
            assert!(off < 0.001, "{frequency}: {each_second}");
        }
    }

    #[test]
    fn no_two_clocks_have_a_period_in_common() {
        let [a, b, c] = periods(1000);
        assert!(a != b && b != c && a != c);
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(processor_list("0-3,7"), [0, 1, 2, 3, 7]);
        assert_eq!(processor_list("0"), [0]);
        assert_eq!(processor_list(""), Vec::<usize>::new());
    }
}
