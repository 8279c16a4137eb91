//! What the runtime of an interpreter does for the program that it runs: when it collects storage, and where a
//! clock finds it.

use std::collections::HashMap;
use std::io;
use std::iter;

use headcount_language::{Collector, Runtime};
use headcount_model::{KeyKind, LinkAddr, LoadAddr, LoadBias, StorageEvent, StorageRegion};
use headcount_tally::evaluate;
use libc::pid_t;

use crate::Clock;
use crate::hits::register;
use crate::interpreted::Interpreted;
use crate::journal::Entry;
use crate::kernel;
use crate::monitor::Monitor;
use crate::space::Space;
use crate::tally_hits::AtBreakpoint;
use crate::values::{Found, FoundKey, Sum};
use crate::wait::Stopped;

/// No region has more parts.
const MOST_PARTS: usize = 1 << 16;

/// What runtimes are doing.
#[derive(Debug, Default)]
pub struct Runtimes {
    /// The threads that collect storage.
    collecting: HashMap<pid_t, Collecting>,
    /// When threads had collected storage last: until it is enough, they get more.
    collected: HashMap<pid_t, u64>,
    /// Clocks of threads.
    clocks: HashMap<pid_t, Clock>,
    /// Does the journal know of them?
    has_told_of_clocks: bool,
}

/// Storage is being collected.
#[derive(Debug)]
struct Collecting {
    /// Where the stack is.
    stack: u64,
    /// Which region was full.
    region: StorageRegion,
    /// The time that its process had been on processors.
    since: u64,
    /// How many bytes of each region were in use.
    used: Vec<(StorageRegion, u64)>,
}

/// Which region was full, by the collector's argument.
fn region(number: u64) -> StorageRegion {
    match number as u32 {
        1 => StorageRegion::Static,
        2 => StorageRegion::String,
        3 => StorageRegion::Block,
        _ => StorageRegion::Any,
    }
}

/// The storage of a runtime, in a process.
struct Storage<'a> {
    collector: &'a Collector,
    memory: &'a Space,
    /// How far the interpreter was moved.
    bias: u64,
}

/// A part of a region, as it is described.
#[derive(Clone, Copy)]
struct Part {
    /// Where the description is.
    at: u64,
    /// How many bytes are in use.
    used: u64,
    /// Where those of the parts before it and behind it are; 0 if there are none.
    before: u64,
    behind: u64,
}

impl Storage<'_> {
    fn part(&self, at: u64) -> Option<Part> {
        let parts = self.collector.parts;
        let mut bytes = vec![0; parts.iter().max().map_or(0, |it| *it as usize + 8)];
        self.memory.memory.read(LoadAddr(at), &mut bytes).ok()?;
        let word = |offset: u64| {
            let bytes = bytes.get(offset as usize..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |it| u64::from_le_bytes(*it))
        };
        let [start, free, before, behind] = parts.map(word);
        let used = free.saturating_sub(start);
        Some(Part {
            at,
            used,
            before,
            behind,
        })
    }

    /// The parts of a region, given where the address of one of them is.
    fn parts(&self, at: LinkAddr) -> impl Iterator<Item = Part> {
        let at = LoadAddr(at.0.wrapping_add(self.bias));
        let one = self.memory.memory.read_word(at).ok();
        let one = one.and_then(|it| self.part(it));
        let before = iter::successors(one, |it| self.part(it.before)).take(MOST_PARTS);
        let behind = iter::successors(one, |it| self.part(it.behind)).take(MOST_PARTS);
        before.chain(behind.skip(1))
    }

    /// How many bytes of each region are in use.
    fn used(&self) -> Vec<(StorageRegion, u64)> {
        let regions = self.collector.regions.iter();
        let each = regions.map(|(region, at)| {
            let used = self.parts(*at).map(|it| it.used);
            (*region, used.fold(0, u64::saturating_add))
        });
        each.collect()
    }

    /// The region that a part belongs to.
    fn region_of(&self, part: u64) -> Option<StorageRegion> {
        let mut regions = self.collector.regions.iter();
        let found = regions.find(|(_, at)| self.parts(*at).any(|it| it.at == part))?;
        Some(found.0)
    }
}

impl Monitor<'_> {
    /// A thread of an interpreter is about to do something with its storage.
    pub fn met_runtime(
        &mut self,
        stopped: &Stopped,
        space: usize,
        bias: u64,
        it: &Interpreted,
        at: LinkAddr,
    ) -> io::Result<()> {
        let Some(runtime) = &it.runtime else {
            return Ok(());
        };
        let Some(collector) = &runtime.collector else {
            return Ok(());
        };
        let (tid, pid) = (stopped.tid(), self.thread(stopped).pid);
        let now = kernel::time_on_processors(pid)?;
        let (Some(memory), Some(tallies)) = (self.spaces.get(&space), &mut self.tallies) else {
            return Ok(());
        };
        let storage = Storage {
            collector,
            memory,
            bias,
        };
        let runtimes = &mut tallies.runtimes;
        let mut events = Vec::new();
        if at == collector.begin {
            let registers = stopped.registers()?;
            let collecting = Collecting {
                stack: registers.rsp,
                region: region(registers.rdi),
                since: now,
                used: storage.used(),
            };
            runtimes.collecting.insert(tid, collecting);
        } else if collector.ends.contains(&at) {
            let stack = stopped.registers()?.rsp;
            let began = runtimes.collecting.remove(&tid);
            if let Some(began) = began.filter(|it| it.stack == stack) {
                let took = now.saturating_sub(began.since);
                events.push((StorageEvent::Collected(began.region), took));
                for ((region, before), (_, after)) in began.used.iter().zip(storage.used()) {
                    let recovered = before.saturating_sub(after);
                    events.push((StorageEvent::Recovered(*region), recovered));
                }
            }
            runtimes
                .collected
                .insert(tid, kernel::time_on_processors(pid)?);
        } else if let Some(grown) = collector.has_grown.iter().find(|it| it.0 == at) {
            let since = runtimes.collected.remove(&tid).unwrap_or(now);
            let part = stopped.registers()?;
            let region = storage.region_of(register(&part, grown.1));
            let region = region.unwrap_or(StorageRegion::Any);
            events.push((StorageEvent::Expanded(region), now.saturating_sub(since)));
        }
        for (event, amount) in events {
            self.note_storage(it, event, amount)?;
        }
        Ok(())
    }

    fn note_storage(
        &mut self,
        it: &Interpreted,
        event: StorageEvent,
        amount: u64,
    ) -> io::Result<()> {
        let found = Found {
            tally: it.tally,
            place: it.storage_place,
            key: FoundKey::Number(event.code()),
            by: None,
        };
        let sum = Sum {
            count: 1,
            amount: amount.cast_signed(),
        };
        match &mut self.tallies {
            Some(tallies) => tallies.hit(found, sum),
            None => Ok(()),
        }
    }

    /// A thread that is about to count in a process that interprets is looked at by a clock, if time is asked for.
    pub fn begin_clock(&mut self, tid: pid_t, space: usize) -> io::Result<()> {
        let Some(onlooker) = self.settings.onlooker else {
            return Ok(());
        };
        let mut interpreters = self.interpreters_in(space).into_iter();
        if !interpreters.any(|it| it.2.runtime.is_some()) {
            return Ok(());
        }
        let runtimes = self.tallies.as_mut().map(|it| &mut it.runtimes);
        if let Some(runtimes) = runtimes.filter(|it| !it.clocks.contains_key(&tid))
            && let Some(clock) = onlooker.clock_of(tid, kernel::CLOCK_MARK)
        {
            kernel::there_are_clocks();
            let interval = clock.interval;
            runtimes.clocks.insert(tid, clock);
            if !std::mem::replace(&mut runtimes.has_told_of_clocks, true) {
                self.journal.write(&Entry::Clock { interval })?;
            }
        }
        Ok(())
    }

    /// A thread has ended, or has become another program.
    pub fn forget_runtime(&mut self, tid: pid_t) {
        if let Some(tallies) = &mut self.tallies {
            let it = &mut tallies.runtimes;
            it.collecting.remove(&tid);
            it.collected.remove(&tid);
            it.clocks.remove(&tid);
        }
    }

    /// The address of the instruction of its program that a thread of an interpreter executes.
    fn current_instruction(
        &self,
        stopped: &Stopped,
        space: usize,
        bias: u64,
        runtime: &Runtime,
    ) -> io::Result<Option<u64>> {
        let Some(space) = self.spaces.get(&space) else {
            return Ok(None);
        };
        let thread = AtBreakpoint {
            space,
            bias: LoadBias(bias),
            registers: stopped.registers()?,
        };
        let found = evaluate(&runtime.address(), &thread).ok();
        let word = |at: u64| space.memory.read_word(LoadAddr(at)).ok();
        let of_waiting = || {
            let threads = runtime.threads.as_ref()?;
            threads.current(&word, bias, thread.registers.fs_base)
        };
        Ok(found.map(i64::cast_unsigned).or_else(of_waiting))
    }

    /// A clock has stopped a thread: what did it do, and for which instruction of its program?
    pub fn met_clock(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let at = stopped.instruction_pointer()?;
        for (module, bias, it) in self.interpreters_in(space) {
            let Some(runtime) = &it.runtime else {
                continue;
            };
            let current = self.current_instruction(stopped, space, bias, runtime)?;
            if let Some(current) = current {
                self.learn_piece(space, module, bias, &*it.interpreter, current)?;
            }
            let routine = self.code_at(space, self.original_address(space, LoadAddr(at)).0);
            let Some(tallies) = &mut self.tallies else {
                return Ok(());
            };
            let pieces = &tallies.pieces;
            let piece = current.and_then(|it| pieces.at(space, it));
            let is_collecting = tallies.runtimes.collecting.contains_key(&stopped.tid());
            let key = match piece {
                _ if is_collecting => FoundKey::Kind(KeyKind::Other),
                Some((number, offset)) => FoundKey::Piece(number, offset),
                None => FoundKey::Kind(KeyKind::Elsewhere),
            };
            let found = Found {
                tally: it.tally,
                place: it.samples_place,
                key,
                by: Some(routine),
            };
            let once = Sum {
                count: 1,
                amount: 0,
            };
            tallies.hit(found, once)?;
        }
        Ok(())
    }
}
