//! Every thread that runs copies has a window of counters to itself.
//!
//! What is mapped in a process and who counts in it are two things: a child made by `fork` has all
//! windows of its parent mapped, and takes one that nobody counts in. A thread that can have none
//! never runs a copy: its process is let go of before it goes on.

use std::collections::BTreeSet;
use std::io;

use headcount_model::LoadAddr;

use crate::attach::{Held, go_on_all};
use crate::copies::{self, Mapped};
use crate::journal::Entry;
use crate::kernel;
use crate::monitor::Monitor;
use crate::passing::{Answer, Calls};
use crate::proc;
use crate::wait::Stopped;

/// How many windows a process is given at first: one to count in, and one for a child.
const AT_FIRST: usize = 2;

/// How many at a time at most, later on.
const AT_ONCE: usize = 8;

/// How many a process has before it forbids itself the system calls by which it could get more, and
/// how large they are.
const BEFORE_FILTERS: usize = 64;
const BYTES_BEFORE_FILTERS: u64 = 4 << 20;

impl Monitor<'_> {
    /// Makes sure that a process has what its copies need, and its thread a window.
    pub fn set_up(
        &mut self,
        stopped: &Stopped,
        space: usize,
        borrowed: LoadAddr,
    ) -> io::Result<()> {
        let has_window = self.window_of(stopped, space).is_some();
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        if space_of.copies.is_refused || has_window {
            return Ok(());
        }
        let memory = &space_of.memory;
        let desk = copies::set_up_desk(&mut space_of.copies, stopped, memory, borrowed)?;
        let had_modules = !space_of.copies.modules.is_empty();
        let given = match desk {
            Ok(()) => self.give_window(stopped, stopped, space)?,
            Err(error) => Err(error),
        };
        match given {
            Ok(()) => Ok(()),
            Err(error) if had_modules => self.give_up(space, &error),
            Err(error) => self.refuse(space, &error),
        }
    }

    /// Nothing of a process is counted.
    fn refuse(&mut self, space: usize, error: &io::Error) -> io::Result<()> {
        if let Some(space) = self.spaces.get_mut(&space) {
            space.copies.is_refused = true;
        }
        self.journal.write(&Entry::Note(format!(
            "A process is not counted: its counters could not be mapped into its memory ({error})."
        )))
    }

    /// A process cannot be counted any further: it is let go of before one of its threads goes on.
    fn give_up(&mut self, space: usize, error: &io::Error) -> io::Result<()> {
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        if std::mem::replace(&mut space_of.copies.is_given_up, true) {
            return Ok(());
        }
        let process = self.threads.values().find(|it| it.space == space);
        let name = process.and_then(|it| proc::command(it.pid).into_iter().next());
        let name = name.unwrap_or_else(|| "A process".to_owned());
        let why = match error.raw_os_error() {
            Some(libc::EPERM) => "it filters its own system calls".to_owned(),
            _ => error.to_string(),
        };
        self.journal.write(&Entry::Note(format!(
            "{name} is counted no further: counters for one of its threads could not be mapped \
             ({why}). What it ran from then on is not counted."
        )))
    }

    /// Gives a thread a window of its own, or says why it can have none. If one must be mapped, the
    /// thread `by` does it.
    fn give_window(
        &mut self,
        to: &Stopped,
        by: &Stopped,
        space: usize,
    ) -> io::Result<io::Result<()>> {
        if self.unused_window(space).is_none() {
            let mapped = self
                .spaces
                .get(&space)
                .map_or(0, |it| it.copies.windows.len());
            let wanted = mapped.clamp(AT_FIRST, AT_ONCE);
            if let Err(error) = self.map_windows(by, space, wanted)? {
                return Ok(Err(error));
            }
        }
        let (Some(mapped), Some(windows)) = (self.unused_window(space), &mut self.windows) else {
            return Ok(Err(io::Error::from_raw_os_error(libc::ENOMEM)));
        };
        windows.begin(mapped.window, to.tid())?;
        self.begin_calls(to.tid(), mapped.window);
        self.begin_tables(to.tid(), mapped.window)?;
        self.begin_thread_counts(to.tid(), mapped.window);
        set_gs(to, mapped.at)?;
        Ok(Ok(()))
    }

    /// A window that a process has mapped and that nobody counts in.
    fn unused_window(&self, space: usize) -> Option<Mapped> {
        let (copies, windows) = (&self.spaces.get(&space)?.copies, self.windows.as_ref()?);
        let mut mapped = copies.windows.iter();
        mapped.find(|it| windows.is_unused(it.window)).copied()
    }

    /// Maps so many windows more, or at least one.
    fn map_windows(
        &mut self,
        by: &Stopped,
        space: usize,
        count: usize,
    ) -> io::Result<io::Result<()>> {
        let mut mapped = Err(io::Error::from_raw_os_error(libc::ENOMEM));
        for _ in 0..count {
            match self.map_window(by, space, None)? {
                Ok(_) => mapped = Ok(()),
                Err(error) => return Ok(mapped.or(Err(error))),
            }
        }
        Ok(mapped)
    }

    /// Maps a window, or one that nobody counts in; says where it is.
    fn map_window(
        &mut self,
        by: &Stopped,
        space: usize,
        window: Option<u32>,
    ) -> io::Result<Answer> {
        let pid = self.thread(by).pid;
        let (Some(space), Some(windows)) = (self.spaces.get_mut(&space), &mut self.windows) else {
            return Ok(Err(io::Error::from_raw_os_error(libc::ENOMEM)));
        };
        let has: BTreeSet<u32> = space.copies.windows.iter().map(|it| it.window).collect();
        let window = match window {
            Some(window) => window,
            None => windows.unused(&has)?,
        };
        let calls = Calls {
            pid,
            stopped: by,
            memory: &space.memory,
            copies: &space.copies,
        };
        let least = space.copies.window_bytes();
        let bytes = least.unwrap_or_else(|| windows.bytes_needed());
        let at = calls.map_window(window, bytes, &windows.path, &windows.file)?;
        if let Ok(at) = at {
            space.copies.windows.push(Mapped { window, at, bytes });
        }
        Ok(at)
    }

    /// A new thread or process stands before its first instruction: it gets a window.
    pub fn begin_window(&mut self, stopped: &Stopped) -> io::Result<()> {
        let thread = self.thread(stopped);
        let (space, is_borrower) = (thread.space, thread.borrows_window);
        let has_copies = self.has_copies(space);
        if is_borrower || !has_copies {
            return Ok(());
        }
        match self.give_window(stopped, stopped, space)? {
            Ok(()) => Ok(()),
            Err(error) => self.give_up(space, &error),
        }
    }

    fn has_copies(&self, space: usize) -> bool {
        let space = self.spaces.get(&space);
        space.is_some_and(|it| !it.copies.modules.is_empty())
    }

    /// Gives all threads of a process that is attached to their windows; the first one maps them.
    pub fn give_windows<'s>(
        &mut self,
        stopped: &Stopped,
        others: impl Iterator<Item = &'s Stopped>,
    ) -> io::Result<()> {
        let space = self.thread(stopped).space;
        if !self.has_copies(space) {
            return Ok(());
        }
        for other in others {
            if self.thread(other).space != space {
                continue;
            }
            if let Err(error) = self.give_window(other, stopped, space)? {
                return self.give_up(space, &error);
            }
        }
        Ok(())
    }

    /// Can windows be mapped for threads that are to come, and are not yet?
    pub fn may_map_ahead(&self, space: usize) -> bool {
        let space = self.spaces.get(&space).map(|it| &it.copies);
        space.is_some_and(|it| !it.modules.is_empty() && !it.is_mapped_ahead)
    }

    /// A process is about to filter its own system calls: after that it can be given no window.
    pub fn map_ahead(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        if !self.may_map_ahead(space) {
            return Ok(());
        }
        if let Some(space) = self.spaces.get_mut(&space) {
            space.copies.is_mapped_ahead = true;
        }
        self.enlarge_windows(stopped, space, BYTES_BEFORE_FILTERS)?;
        let mapped = self
            .spaces
            .get(&space)
            .map_or(0, |it| it.copies.windows.len());
        // With fewer it may be well.
        drop(self.map_windows(stopped, space, BEFORE_FILTERS.saturating_sub(mapped))?);
        Ok(())
    }

    /// Makes sure that the windows of a process hold all counters that there are, before it gets
    /// code that counts in them. `false`: they cannot, and the process is given up.
    pub fn make_room(&mut self, stopped: &Stopped, space: usize) -> io::Result<bool> {
        let needed = self.windows.as_ref().map_or(0, |it| it.bytes_needed());
        self.enlarge_windows(stopped, space, needed)?;
        let least = self
            .spaces
            .get(&space)
            .and_then(|it| it.copies.window_bytes());
        Ok(least.is_some_and(|it| it >= needed))
    }

    fn enlarge_windows(&mut self, by: &Stopped, space: usize, bytes: u64) -> io::Result<()> {
        let copies = self.spaces.get(&space).map(|it| &it.copies);
        let copies = copies.filter(|it| !it.is_given_up);
        let least = copies.and_then(|it| it.window_bytes());
        if self.lets_go || least.is_none_or(|it| it >= bytes) {
            return Ok(());
        }
        let held = match self.is_alone(space) {
            true => Held::new(),
            false => self.hold_others(by, space)?,
        };
        // While others are waited for, it may be killed.
        let is_there = |monitor: &Self| {
            let thread = monitor.threads.get(&by.tid());
            match thread.is_some_and(|it| it.space == space && !it.is_dying) {
                true => Ok(()),
                false => Err(kernel::gone()),
            }
        };
        let moved = match is_there(self) {
            Ok(()) => self.move_windows(by, space, bytes, &held),
            Err(error) => Err(error),
        };
        go_on_all(held);
        match moved? {
            Ok(()) => Ok(()),
            Err(error) => self.give_up(space, &error),
        }
    }

    /// Makes the windows larger that threads of a process count in, and forgets its others. All
    /// threads stand still, but those that wait for a child.
    fn move_windows(
        &mut self,
        by: &Stopped,
        space: usize,
        bytes: u64,
        held: &Held,
    ) -> io::Result<io::Result<()>> {
        let pid = self.thread(by).pid;
        let kept = self.windows_in_use(space);
        let threads = self.threads.values();
        let someone_waits = threads
            .filter(|it| it.space == space)
            .any(|it| it.waits_for_child);
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(Ok(()));
        };
        let mut result = Ok(());
        for index in (0..space.copies.windows.len()).rev() {
            let mapped = space.copies.windows[index];
            let calls = Calls {
                pid,
                stopped: by,
                memory: &space.memory,
                copies: &space.copies,
            };
            if !kept.contains(&mapped.window) {
                calls.unmap(mapped.at, mapped.bytes)?;
                space.copies.windows.remove(index);
                continue;
            }
            // Whoever waits comes back to where its window was, and is told then.
            let from = if someone_waits { 0 } else { mapped.bytes };
            let at = match calls.move_window(mapped.at, from, bytes)? {
                Ok(at) => at,
                Err(error) => {
                    result = Err(error);
                    continue;
                }
            };
            if someone_waits {
                let former = mapped.at..mapped.at + mapped.bytes;
                space.copies.former_windows.push(former);
            }
            (
                space.copies.windows[index].at,
                space.copies.windows[index].bytes,
            ) = (at, bytes);
            for stopped in held.values().map(|(stopped, _)| stopped).chain([by]) {
                kernel::gone_is_fine(follow_window(stopped, mapped.at, at))?;
            }
        }
        Ok(result)
    }

    /// The windows that threads of a process count in, or else one that others can be mapped by.
    fn windows_in_use(&self, space: usize) -> BTreeSet<u32> {
        let threads = self.threads.iter().filter(|(_, it)| it.space == space);
        let own = threads.filter_map(|(tid, _)| self.windows.as_ref()?.of(*tid));
        let mut found: BTreeSet<u32> = own.chain(self.vain).collect();
        let mapped = self
            .spaces
            .get(&space)
            .and_then(|it| it.copies.windows.first());
        found.extend(mapped.map(|it| it.window));
        found
    }

    /// A thread waited for a child that ran in its memory. Its window may have been moved meanwhile.
    pub fn find_window_again(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let Some(windows) = &self.windows else {
            return Ok(());
        };
        let place = windows.of(stopped.tid()).and_then(|window| {
            let copies = &self.spaces.get(&space)?.copies;
            copies.place_of(window)
        });
        match place {
            Some(at) => set_gs(stopped, at),
            None => Ok(()),
        }
    }

    /// A child that is not counted runs in its parent's memory: what it counts is for nothing.
    pub fn count_in_vain(&mut self, stopped: &Stopped, space: usize) -> io::Result<()> {
        if !self.has_copies(space) {
            return Ok(());
        }
        let window = match (self.vain, &mut self.windows) {
            (Some(window), _) => window,
            (None, Some(windows)) => {
                let window = windows.unused(&BTreeSet::new())?;
                windows.keep(window)?;
                self.vain = Some(window);
                self.journal.write(&Entry::Vain { window })?;
                window
            }
            (None, None) => return Ok(()),
        };
        let copies = self.spaces.get(&space).map(|it| &it.copies);
        let place = match copies.and_then(|it| it.place_of(window)) {
            Some(place) => Ok(place),
            None => self.map_window(stopped, space, Some(window))?,
        };
        match place {
            Ok(at) => set_gs(stopped, at),
            Err(error) => self.journal.write(&Entry::Note(format!(
                "What a child process ran in its parent's memory, before it ran another program, is \
                 counted as its parent's: other counters could not be mapped ({error})."
            ))),
        }
    }

    /// The window that a thread counts in.
    pub fn window_of(&self, stopped: &Stopped, space: usize) -> Option<u32> {
        let copies = &self.spaces.get(&space)?.copies;
        let own = self.windows.as_ref()?.of(stopped.tid());
        own.or_else(|| {
            // A child that runs in its parent's memory, with its parent's window.
            let gs = stopped.registers().ok()?.gs_base;
            let mapped = copies.windows.iter().find(|it| it.at == gs);
            mapped.map(|it| it.window)
        })
    }

    /// A thread of an address space counts no more: its window is free.
    pub fn take_window(&mut self, tid: libc::pid_t, space: usize) -> io::Result<()> {
        let window = self.windows.as_ref().and_then(|it| it.of(tid));
        if let Some(window) = window {
            self.end_calls(window, space)?;
            self.empty_tables(window, space)?;
            self.end_thread_counts(window)?;
        }
        if let Some(windows) = &mut self.windows {
            windows.end(tid);
        }
        Ok(())
    }

    /// All threads count no more: what they have besides counters is read.
    pub fn take_windows(&mut self) -> io::Result<()> {
        self.end_all_thread_counts()?;
        if self.calls.is_none() && self.tallies.is_none() {
            return Ok(());
        }
        let threads = self.threads.iter().map(|(tid, it)| (*tid, it.space));
        for (tid, space) in threads.collect::<Vec<_>>() {
            self.take_window(tid, space)?;
        }
        Ok(())
    }

    /// Gives all memory of ours in an address space back. No thread may be in it.
    pub fn unmap_all(&mut self, stopped: &Stopped, space: usize) -> io::Result<()> {
        let result = self.unmap(stopped, space);
        self.give_limit_back(self.threads[&stopped.tid()].pid);
        result
    }

    fn unmap(&mut self, stopped: &Stopped, space: usize) -> io::Result<()> {
        let pid = self.thread(stopped).pid;
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        if self.windows.is_none() {
            return space.unmap_slots(stopped);
        }
        let copies = std::mem::take(&mut space.copies);
        let calls = Calls {
            pid,
            stopped,
            memory: &space.memory,
            copies: &copies,
        };
        for range in copies.mapped() {
            calls.unmap(range.start, range.end - range.start)?;
        }
        copies.clear_desk(stopped, &space.memory)
    }

    /// A thread goes on without us: it has no window.
    pub fn forget_gs(&mut self, stopped: &Stopped) -> io::Result<()> {
        match self.windows {
            Some(_) => set_gs(stopped, 0),
            None => Ok(()),
        }
    }
}

/// A window was moved: does a thread count in it?
fn follow_window(stopped: &Stopped, from: u64, to: u64) -> io::Result<()> {
    match stopped.registers()?.gs_base == from {
        true => set_gs(stopped, to),
        false => Ok(()),
    }
}

fn set_gs(stopped: &Stopped, at: u64) -> io::Result<()> {
    let mut registers = stopped.registers()?;
    registers.gs_base = at;
    stopped.set_registers(&registers)
}
