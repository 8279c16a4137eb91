//! What became of the processes: which code they had where, what their threads did, and the stacks
//! they were seen with.
//!
//! Records come in here one by one, in the order of time; nothing here asks the system for anything
//! but files.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Unwinder};

use crate::modules::{Modules, ReadFile};
use crate::record::{CopyRoom, Mapping, OriginalOf, Record, Snapshot, What};
use crate::stacks::{Code, Stacks};

/// Stacks that are deeper are cut: they are most likely no stacks.
const DEEPEST: usize = 1024;

/// Everything that was seen.
pub struct Processes<'a> {
    pub read: &'a ReadFile<'a>,
    pub modules: Modules,
    pub stacks: Stacks,
    pub threads: BTreeMap<(u32, u32), Thread>,
    /// Records that the kernel had no room for.
    pub lost: u64,
    spaces: HashMap<u32, Space>,
    /// What became another program, and has no code yet: its name.
    begun: BTreeMap<u32, String>,
    /// The copies of code, by the number of their rooms: where each is, and what it stands for.
    copies: HashMap<usize, Vec<(Range<u64>, OriginalOf)>>,
    cache: CacheX86_64,
    /// The time of the last record.
    now: u64,
}

/// What a thread did.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub name: String,
    pub on_processor: u64,
    pub waiting: u64,
    pub ready: u64,
    pub samples: HashMap<u32, u64>,
    /// For how long each of its clocks stood still while it was on a processor.
    pub throttled: Vec<u64>,
    /// The clocks that stand still, and since when.
    standing: HashMap<u64, u64>,
    doing: Doing,
}

/// What a thread is doing, and since when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Unknown,
    /// It is there, but has not been seen on a processor yet.
    Unseen(u64),
    Running(u64),
    Waiting(u64),
    Ready(u64),
    Ended,
}

impl Thread {
    /// It does something else from now on.
    fn turn(&mut self, now: u64, next: Doing) {
        // Who is not on a processor yet comes there, or else has been there.
        if let Doing::Unseen(since) = self.doing {
            self.doing = match next {
                Doing::Running(_) | Doing::Ended => Doing::Waiting(since),
                _ => Doing::Running(since),
            };
        }
        match self.doing {
            Doing::Ended => return,
            Doing::Unknown | Doing::Unseen(_) => (),
            Doing::Running(since) => self.on_processor += now.saturating_sub(since),
            Doing::Waiting(since) => self.waiting += now.saturating_sub(since),
            Doing::Ready(since) => self.ready += now.saturating_sub(since),
        }
        self.doing = next;
        // Clocks run on a processor only, and begin anew there.
        if !matches!(next, Doing::Running(_)) {
            let standing = self.standing.drain();
            self.throttled
                .extend(standing.map(|(_, since)| now.saturating_sub(since)));
        }
    }

    /// A clock that stood still runs again.
    fn unthrottle(&mut self, now: u64, clock: u64) {
        let since = self.standing.remove(&clock);
        self.throttled
            .extend(since.map(|since| now.saturating_sub(since)));
    }
}

/// The memory of a process.
#[derive(Default)]
struct Space {
    code: Vec<Placed>,
    /// Where copies of it are.
    rooms: Vec<CopyRoom>,
    unwinder: UnwinderX86_64<Arc<[u8]>>,
}

/// Code in memory.
#[derive(Clone)]
struct Placed {
    mapping: Mapping,
    module: u32,
    /// What addresses in memory have more than those in the file.
    bias: u64,
}

impl<'a> Processes<'a> {
    /// Nothing yet; files are read by `read`.
    pub fn new(read: &'a ReadFile<'a>) -> Self {
        Self {
            read,
            modules: Modules::default(),
            stacks: Stacks::default(),
            threads: BTreeMap::new(),
            lost: 0,
            spaces: HashMap::new(),
            begun: BTreeMap::new(),
            copies: HashMap::new(),
            cache: CacheX86_64::new(),
            now: 0,
        }
    }

    /// Something happened.
    pub fn take(&mut self, record: Record) {
        let Record {
            time,
            pid,
            tid,
            what,
        } = record;
        self.now = self.now.max(time);
        match what {
            What::Lost(records) => self.lost = self.lost.saturating_add(records),
            What::Throttled { clock } => {
                self.thread(pid, tid).standing.insert(clock, time);
            }
            What::Unthrottled { clock } => self.thread(pid, tid).unthrottle(time, clock),
            What::Mapped(mapping) => self.map(pid, mapping),
            What::Exec(name) => {
                self.spaces.remove(&pid);
                self.begun.insert(pid, name.clone());
                let thread = self.thread(pid, tid);
                thread.name = name;
                // Another thread may have become the program in the name of one that had ended.
                if thread.doing == Doing::Ended {
                    thread.doing = Doing::Unknown;
                }
                thread.turn(time, Doing::Running(time));
            }
            What::Named(name) => {
                let thread = self.thread(pid, tid);
                thread.name = name;
                if thread.doing == Doing::Unknown {
                    thread.doing = Doing::Unseen(time);
                }
            }
            What::Fork { child, thread } => self.fork(pid, tid, child, thread),
            What::Exit => {
                self.thread(pid, tid).turn(time, Doing::Ended);
                let mut threads = self.threads.range((pid, 0)..=(pid, u32::MAX));
                if threads.all(|(_, it)| it.doing == Doing::Ended) {
                    self.spaces.remove(&pid);
                }
            }
            What::SwitchedIn => self.thread(pid, tid).turn(time, Doing::Running(time)),
            What::SwitchedOut { is_waiting } => {
                let next = match is_waiting {
                    true => Doing::Waiting(time),
                    false => Doing::Ready(time),
                };
                self.thread(pid, tid).turn(time, next);
            }
            What::Sample(snapshot) => self.sample(pid, tid, time, snapshot),
            What::HasRoom(room) => self.spaces.entry(pid).or_default().rooms.push(room),
            What::HasCopy(number, place, original) => {
                self.copies
                    .entry(number)
                    .or_default()
                    .push((place, original));
            }
        }
    }

    /// All that was seen is accounted for up to this moment.
    pub fn finish(&mut self, now: u64) {
        let now = now.max(self.now);
        for thread in self.threads.values_mut() {
            thread.turn(now, Doing::Ended);
        }
    }

    /// The programs that began, and of which nothing else was seen, not even their code: the kernel ends
    /// sampling there if they have more rights than their user.
    pub fn unseen(&self) -> Vec<String> {
        let mut names: Vec<String> = self.begun.values().cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// How many samples were not taken because clocks of such a period stood still: at least one each time.
    pub fn throttled(&self, period: u64) -> u64 {
        let pauses = self.threads.values().flat_map(|it| &it.throttled);
        let samples = pauses.map(|it| (it / period.max(1)).max(1));
        samples.fold(0, u64::saturating_add)
    }

    /// Whoever is in a copy is where it stands for.
    fn leave_copy(&self, pid: u32, snapshot: &mut Snapshot) {
        let rip = snapshot.rip;
        let rooms = self.spaces.get(&pid).map_or(&[][..], |it| &it.rooms);
        let Some(room) = rooms.iter().rev().find(|it| it.region.contains(&rip)) else {
            return;
        };
        let at = rip - room.region.start;
        // They are told of in the order of their places.
        let copies = self.copies.get(&room.number).map_or(&[][..], Vec::as_slice);
        let after = copies.partition_point(|(place, _)| place.start <= at);
        let found = after.checked_sub(1).and_then(|it| copies.get(it));
        let Some((place, original)) = found.filter(|(place, _)| place.contains(&at)) else {
            return;
        };
        let Ok(offset) = u32::try_from(at - place.start) else {
            return;
        };
        if let Some((address, has_return)) = original(offset) {
            snapshot.rip = address.wrapping_add(room.bias);
            if has_return {
                snapshot.rsp = snapshot.rsp.wrapping_add(8);
                snapshot.stack.drain(..snapshot.stack.len().min(8));
            }
        }
    }

    fn thread(&mut self, pid: u32, tid: u32) -> &mut Thread {
        self.threads.entry((pid, tid)).or_default()
    }

    /// Code is at a new place, instead of what was there.
    fn map(&mut self, pid: u32, mapping: Mapping) {
        self.begun.remove(&pid);
        let space = self.spaces.entry(pid).or_default();
        let is_touched =
            |it: &Placed| it.mapping.begin < mapping.end && mapping.begin < it.mapping.end;
        let code = std::mem::take(&mut space.code);
        let (touched, kept): (Vec<Placed>, Vec<Placed>) = code.into_iter().partition(is_touched);
        space.code = kept;
        for old in touched {
            space.unwinder.remove_module(old.mapping.begin);
            // What sticks out on either side is still there.
            let before = (old.mapping.begin, mapping.begin);
            let behind = (mapping.end, old.mapping.end);
            for (begin, end) in [before, behind].into_iter().filter(|it| it.0 < it.1) {
                let moved = begin - old.mapping.begin;
                let rest = Placed {
                    mapping: Mapping {
                        begin,
                        end,
                        offset: old.mapping.offset + moved,
                        ..old.mapping.clone()
                    },
                    ..old
                };
                space.add(rest, &self.modules);
            }
        }
        let Some(module) = self.modules.number(pid, &mapping, self.read) else {
            return;
        };
        if let Some(bias) = self.modules.all[module as usize].bias(&mapping) {
            let placed = Placed {
                mapping,
                module,
                bias,
            };
            space.add(placed, &self.modules);
        }
    }

    /// A process was made, with the memory of its parent, or a thread.
    fn fork(&mut self, parent: u32, parent_thread: u32, child: u32, thread: u32) {
        let name = self.thread(parent, parent_thread).name.clone();
        let now = self.now;
        let new = self.thread(child, thread);
        new.name = name;
        new.doing = Doing::Ready(now);
        if parent == child {
            return;
        }
        let parent = self.spaces.get(&parent);
        let (code, rooms) =
            parent.map_or_else(Default::default, |it| (it.code.clone(), it.rooms.clone()));
        let mut space = Space {
            rooms,
            ..Space::default()
        };
        for placed in code {
            space.add(placed, &self.modules);
        }
        self.spaces.insert(child, space);
    }

    fn sample(&mut self, pid: u32, tid: u32, time: u64, mut snapshot: Snapshot) {
        self.leave_copy(pid, &mut snapshot);
        let space = self.spaces.entry(pid).or_default();
        let (sites, is_cut) = space.unwind(&snapshot, &mut self.cache);
        let stack = self.stacks.number(&sites, is_cut);
        let thread = self.thread(pid, tid);
        if let Doing::Unknown | Doing::Unseen(_) = thread.doing {
            let since = match thread.doing {
                Doing::Unseen(since) => since,
                _ => time,
            };
            thread.doing = Doing::Running(since);
        }
        if let Some(stack) = stack {
            *thread.samples.entry(stack).or_default() += 1;
        }
    }
}

impl Space {
    fn add(&mut self, placed: Placed, modules: &Modules) {
        let module = &modules.all[placed.module as usize];
        let unwinding = module.unwinding(&placed.mapping, placed.bias);
        self.unwinder.add_module(unwinding);
        self.code.push(placed);
    }

    /// The code a thread was in, innermost first, and whether callers are missing.
    fn unwind(&self, snapshot: &Snapshot, cache: &mut CacheX86_64) -> (Vec<Code>, bool) {
        let mut read = |address: u64| {
            let at = address.checked_sub(snapshot.rsp).ok_or(())?;
            let at = usize::try_from(at).map_err(|_| ())?;
            let bytes = snapshot.stack.get(at..).and_then(<[u8]>::first_chunk::<8>);
            bytes.map(|it| u64::from_ne_bytes(*it)).ok_or(())
        };
        let registers = UnwindRegsX86_64::new(snapshot.rip, snapshot.rsp, snapshot.rbp);
        let mut frames = self
            .unwinder
            .iter_frames(snapshot.rip, registers, cache, &mut read);
        let mut sites = Vec::new();
        let is_whole = loop {
            match frames.next() {
                Ok(Some(_)) if sites.len() == DEEPEST => break false,
                Ok(Some(frame)) => sites.push(self.code(frame)),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        (sites, !is_whole)
    }

    fn code(&self, frame: FrameAddress) -> Code {
        // The instruction behind a call may be another function's.
        let address = match frame {
            FrameAddress::InstructionPointer(at) => at,
            FrameAddress::ReturnAddress(at) => at.get() - 1,
        };
        let is_here = |it: &&Placed| (it.mapping.begin..it.mapping.end).contains(&address);
        match self.code.iter().find(is_here) {
            Some(placed) => Code {
                module: Some(placed.module),
                address: address.wrapping_sub(placed.bias),
            },
            None => Code {
                module: None,
                address,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, what: What) -> Record {
        Record {
            time,
            pid: 7,
            tid: 7,
            what,
        }
    }

    fn seen(records: Vec<(u64, What)>) -> Thread {
        let mut processes = Processes::new(&|_, _| None);
        for (time, what) in records {
            processes.take(record(time, what));
        }
        processes.finish(0);
        processes.threads.remove(&(7, 7)).unwrap_or_default()
    }

    #[test]
    fn time_on_a_processor_and_off_it_adds_up() {
        let thread = seen(vec![
            (100, What::SwitchedIn),
            (130, What::SwitchedOut { is_waiting: true }),
            (200, What::SwitchedIn),
            (210, What::SwitchedOut { is_waiting: false }),
            (215, What::SwitchedIn),
            (220, What::Exit),
        ]);
        assert_eq!(thread.on_processor, 30 + 10 + 5);
        assert_eq!(thread.waiting, 70);
        assert_eq!(thread.ready, 5);
    }

    #[test]
    fn a_thread_that_ended_waits_no_more() {
        let thread = seen(vec![
            (10, What::SwitchedIn),
            (20, What::Exit),
            (20, What::SwitchedOut { is_waiting: true }),
            (90, What::Lost(1)),
        ]);
        assert_eq!((thread.on_processor, thread.waiting), (10, 0));
    }

    #[test]
    fn a_thread_that_was_there_before_waits_until_it_is_seen() {
        let named = || What::Named("server".to_owned());
        let waits = seen(vec![
            (10, named()),
            (50, What::SwitchedIn),
            (60, What::Exit),
        ]);
        assert_eq!((waits.on_processor, waits.waiting), (10, 40));
        let sleeps = seen(vec![(10, named()), (50, What::Lost(1))]);
        assert_eq!((sleeps.on_processor, sleeps.waiting), (0, 40));
        let out = What::SwitchedOut { is_waiting: true };
        let runs = seen(vec![(10, named()), (50, out), (70, What::Exit)]);
        assert_eq!((runs.on_processor, runs.waiting), (40, 20));
    }

    #[test]
    fn a_process_lives_as_long_as_one_of_its_threads() {
        let mut processes = Processes::new(&|_, _| None);
        let other = |time, what| Record {
            tid: 8,
            ..record(time, what)
        };
        let room = CopyRoom {
            region: 0..1,
            bias: 0,
            number: 0,
        };
        processes.take(record(1, What::HasRoom(room)));
        processes.take(other(1, What::SwitchedIn));
        processes.take(record(1, What::SwitchedIn));
        processes.take(record(2, What::Exit));
        assert!(processes.spaces.contains_key(&7));
        processes.take(other(3, What::Exit));
        assert!(!processes.spaces.contains_key(&7));
    }

    #[test]
    fn samples_that_the_kernel_held_back_are_lost() {
        let mut processes = Processes::new(&|_, _| None);
        let throttled = |clock| What::Throttled { clock };
        for (time, what) in [
            (0, What::SwitchedIn),
            (10, throttled(1)),
            (12, throttled(2)),
            (13, What::Unthrottled { clock: 2 }),
            (50, What::Unthrottled { clock: 1 }),
            (60, throttled(1)),
            // Off the processor, no sample is missed.
            (80, What::SwitchedOut { is_waiting: true }),
            (900, What::SwitchedIn),
            (901, What::Unthrottled { clock: 1 }),
            (910, throttled(3)),
        ] {
            processes.take(record(time, what));
        }
        processes.finish(940);
        // 40 nanoseconds, 1, 20, and 30 to the end.
        assert_eq!(processes.throttled(10), 4 + 1 + 2 + 3);
    }

    #[test]
    fn a_sample_in_unknown_code_is_kept() {
        let snapshot = Snapshot {
            rip: 0x1234,
            rsp: 0x8000,
            rbp: 0,
            stack: vec![0; 64],
        };
        let thread = seen(vec![(1, What::Sample(snapshot))]);
        assert_eq!(thread.samples.values().sum::<u64>(), 1);
    }

    #[test]
    fn code_in_a_copy_is_what_it_stands_for() {
        let mut processes = Processes::new(&|_, _| None);
        let room = CopyRoom {
            region: 0x5000..0x6000,
            bias: 0x1000,
            number: 3,
        };
        processes.take(record(1, What::HasRoom(room)));
        let original: OriginalOf = Box::new(|offset| Some((u64::from(offset) + 0x40, true)));
        processes.take(record(2, What::HasCopy(3, 0x10..0x20, original)));
        for rip in [0x5014, 0x5030] {
            let snapshot = Snapshot {
                rip,
                rsp: 0x8000,
                rbp: 0,
                stack: vec![0; 16],
            };
            processes.take(record(3, What::Sample(snapshot)));
        }
        let seen: Vec<u64> = processes.stacks.sites.iter().map(|it| it.address).collect();
        assert!(
            seen.contains(&0x1044) && seen.contains(&0x5030),
            "{seen:x?}"
        );
    }

    #[test]
    fn a_child_has_the_name_of_its_parent_until_it_has_its_own() {
        let mut processes = Processes::new(&|_, _| None);
        processes.take(record(1, What::Named("parent".to_owned())));
        let fork = What::Fork {
            child: 8,
            thread: 8,
        };
        processes.take(record(2, fork));
        assert_eq!(processes.threads[&(8, 8)].name, "parent");
    }
}
