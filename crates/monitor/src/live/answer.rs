//! The monitor's side: threads are held, and what they have counted is read.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use headcount_model::LoadAddr;
use headcount_patch::CounterNumber;
use headcount_x86::out_of_line::Interrupted;
use libc::pid_t;

use crate::attach::{Held, go_on_all};
use crate::hits::FROM_INT3;
use crate::journal::Entry;
use crate::kernel;
use crate::launch::now;
use crate::live::{Moment, Part, SOCKET, Snapshot, marks};
use crate::monitor::{Monitor, Thread};
use crate::proc::{self, Asleep};
use crate::space::InSlot;
use crate::wait::{Stop, Stopped, look};

/// Where others ask what was counted so far.
#[derive(Debug)]
pub struct Listener(UnixListener);

impl Listener {
    /// Makes the socket in the folder of a run. This thread gets SIGIO when somebody asks.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let path = folder.join(SOCKET);
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        kernel::signal_when_ready(&listener)?;
        Ok(Self(listener))
    }

    /// All who ask, and may.
    fn askers(&self) -> Vec<UnixStream> {
        let all = std::iter::from_fn(|| self.0.accept().ok());
        all.map(|(asker, _)| asker)
            .filter(|it| kernel::peer_user(it).is_ok_and(|user| user == kernel::user()))
            .collect()
    }
}

/// Threads that wait in the kernel.
type Sleepers = BTreeMap<pid_t, Asleep>;

/// What the counters would say more or less, had all threads gone away from where they stand.
#[derive(Debug, Default)]
struct Owed {
    entries: Vec<Entry>,
    /// Of copies.
    counters: Vec<(CounterNumber, i64)>,
    /// Blocks of modules whose breakpoints were counted, and did not run yet.
    blocks: Vec<(u32, u32)>,
}

impl Monitor<'_> {
    /// Tells all who ask what was counted so far.
    pub fn tell_counts(&mut self) -> io::Result<()> {
        let askers = self.listener.as_ref().map(Listener::askers);
        let askers = askers.unwrap_or_default();
        if !askers.is_empty() {
            let answer = self.snapshot()?.and_then(|it| in_file(&it));
            for asker in askers {
                // One who has gone is none of our trouble.
                drop(self.tell(asker, &answer));
            }
        }
        self.requests.has_told();
        Ok(())
    }

    /// Marks this moment of the run with a name.
    pub fn mark(&mut self, name: &str) -> io::Result<()> {
        let snapshot = self.snapshot()??;
        let file = in_file(&snapshot)?;
        marks::keep(self.journal.folder(), name, &snapshot.moment, &file)
    }

    fn tell(&self, mut asker: UnixStream, answer: &io::Result<File>) -> io::Result<()> {
        match answer {
            Ok(file) => {
                let (journal, routines) = self.journal.files();
                let files = [file, journal].into_iter().chain(routines);
                kernel::send_descriptors(&asker, &files.collect::<Vec<_>>())
            }
            Err(error) => {
                asker.set_nonblocking(true)?;
                // The first byte is read as the one that files come with.
                asker.write_all(format!("!{error}").as_bytes())
            }
        }
    }

    /// What was counted at this moment. The outer error is one of holding threads.
    fn snapshot(&mut self) -> io::Result<io::Result<Snapshot>> {
        loop {
            let begin = std::time::Instant::now();
            let mut held = Held::new();
            let taken = self.try_snapshot(&mut held)?;
            let threads = held.len();
            go_on_all(held);
            for _ in 0..=threads {
                if let Some(event) = look()? {
                    self.handle(event)?;
                }
            }
            if let Some(taken) = taken {
                return Ok(taken.map(|mut it| {
                    (it.moment.threads, it.moment.held) = (threads, begin.elapsed());
                    it
                }));
            }
            kernel::give_way();
        }
    }

    /// The same. Threads stay held. `None`: one that cannot be stopped, because it waits for a child
    /// in its memory, is only about to wait, or does so no more. That does not take long.
    pub(super) fn try_snapshot(
        &mut self,
        held: &mut Held,
    ) -> io::Result<Option<io::Result<Snapshot>>> {
        let mut asleep = self.asleep();
        loop {
            let spared = asleep.keys().copied().collect();
            *held = self.hold_all_but(spared, std::mem::take(held))?;
            let mut waiting = self.threads.iter().filter(|(_, it)| it.waits_for_child);
            if waiting.any(|(tid, _)| !asleep.contains_key(tid)) {
                return Ok(None);
            }
            let taken = self.take_snapshot(held, &asleep);
            let before = asleep.len();
            asleep.retain(|tid, it| held.contains_key(tid) || proc::asleep(*tid) == Some(*it));
            // Whoever has woken up meanwhile may have counted.
            if asleep.len() == before {
                return Ok(Some(taken));
            }
        }
    }

    /// The threads that wait in the kernel. They need not be stopped, which some system calls would
    /// not survive unchanged.
    fn asleep(&self) -> Sleepers {
        let threads = self.threads.iter();
        let old = threads.filter(|(_, it)| !it.is_new && !it.is_dying);
        old.filter_map(|(tid, _)| Some((*tid, proc::asleep(*tid)?)))
            .collect()
    }

    fn take_snapshot(&mut self, held: &Held, asleep: &Sleepers) -> io::Result<Snapshot> {
        let owed = self.owed(held, asleep)?;
        let mut windows = match &self.windows {
            Some(windows) => windows.sums(self.vain)?,
            None => Vec::new(),
        };
        for (counter, delta) in owed.counters {
            if let Some(sum) = windows.get_mut(counter as usize) {
                *sum = sum.wrapping_add_signed(delta);
            }
        }
        let images = self.catalog.images.iter_mut();
        let mut counters: Vec<Vec<u64>> = images.map(|it| it.counters.all()).collect();
        for (module, block) in owed.blocks {
            let count = &mut counters[module as usize][block as usize];
            *count = count.saturating_sub(1);
        }
        let (journal, routines) = self.journal.files();
        let length = |file: &File| file.metadata().map(|it| it.len());
        let mut moment = Moment {
            at: now().max(self.last_moment + 1),
            journal: length(journal)?,
            routines: routines.map_or(Ok(0), length)?,
            owed: owed.entries,
            counters: counters.iter().map(Vec::len).collect(),
            ..Moment::default()
        };
        // Moments are in the order of their times, whatever becomes of the clock.
        self.last_moment = moment.at;
        let paused = self.paused_until(&windows, &counters, &moment);
        moment.paused = paused.as_ref().map(Part::head);
        Ok(Snapshot {
            moment,
            windows,
            counters,
            paused,
        })
    }

    fn owed(&self, held: &Held, asleep: &Sleepers) -> io::Result<Owed> {
        let mut owed = Owed::default();
        for (tid, thread) in &self.threads {
            let at = match held.get(tid) {
                Some((stopped, stop)) => self.held_at(thread, stopped, *stop)?,
                None => asleep.get(tid).map(|it| it.at),
            };
            if let Some(at) = at.filter(|_| self.counts(*tid)) {
                match self.windows {
                    Some(_) => {
                        let stopped = held.get(tid).map(|(stopped, _)| stopped);
                        self.owed_in_copy(thread.space, at, stopped, &mut owed)?;
                    }
                    None => self.owed_in_slot(*tid, thread.space, at, &mut owed),
                }
            }
        }
        Ok(owed)
    }

    /// Where a thread stands that has come there in a way that is counted, or was told of.
    fn held_at(
        &self,
        thread: &Thread,
        stopped: &Stopped,
        stop: Stop,
    ) -> io::Result<Option<LoadAddr>> {
        if thread.is_new || thread.enters_handler {
            return Ok(None);
        }
        let at = LoadAddr(stopped.instruction_pointer()?);
        let trap = LoadAddr(at.0.wrapping_sub(1));
        let has_met_trap = stop == Stop::Signal(libc::SIGTRAP)
            && stopped.signal_info().is_some_and(|it| it.code == FROM_INT3)
            && self.is_our_trap(thread.space, trap);
        Ok(Some(if has_met_trap { trap } else { at }))
    }

    fn owed_in_copy(
        &self,
        space: usize,
        at: LoadAddr,
        stopped: Option<&Stopped>,
        owed: &mut Owed,
    ) -> io::Result<()> {
        let Some((spot, routine, _)) = self.spot(space, at) else {
            return Ok(());
        };
        owed.counters.extend(spot.fix.change());
        if self.has_counted_call(space, at)
            && let Some(windows) = &self.windows
            && let Some(window) = stopped.and_then(|it| self.window_of(it, space))
        {
            let cell = windows.last_call(window)?;
            owed.counters.extend(cell.map(|it| (it, -1)));
        }
        if spot.is_inside {
            owed.entries.push(Entry::Visit {
                routine,
                at: spot.at.0,
                delta: -1,
            });
        }
        Ok(())
    }

    fn owed_in_slot(&self, tid: pid_t, space: usize, at: LoadAddr, owed: &mut Owed) {
        let space = self.spaces.get(&space);
        let next = match space.and_then(|it| it.in_slot(at)) {
            None => at,
            Some(InSlot {
                state: Interrupted::After(next),
                ..
            }) => next,
            Some(InSlot { instruction, .. }) => {
                let breakpoint = space.and_then(|it| it.breakpoint(instruction));
                owed.blocks.extend(breakpoint.and_then(|it| it.counts));
                return;
            }
        };
        owed.entries.extend(self.shifted(tid, next, -1));
    }
}

/// A snapshot as others are given it.
pub(super) fn in_file(snapshot: &Snapshot) -> io::Result<File> {
    let file = kernel::memory_file()?;
    snapshot.write(&file)?;
    Ok(file)
}
