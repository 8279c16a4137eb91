//! Every thread that runs copies has a window of counters to itself.
//!
//! Several windows are mapped at a time: a thread or child that comes later, and may not be able to
//! open our file any more, is given one that is there by setting its `gs` alone.

use std::io;
use std::os::unix::ffi::OsStrExt;

use headcount_model::LoadAddr;
use libc::pid_t;

use crate::copies::{self, Mapped};
use crate::journal::Entry;
use crate::monitor::Monitor;
use crate::wait::Stopped;
use crate::windows::{WINDOW, WINDOWS_AT_ONCE};

impl Monitor<'_> {
    /// Makes sure that a process has what its copies need, and its thread a window.
    pub fn set_up(
        &mut self,
        stopped: Stopped,
        space: usize,
        borrowed: LoadAddr,
    ) -> io::Result<Stopped> {
        let tid = stopped.tid();
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok(stopped);
        };
        if space_of.copies.is_refused || space_of.copies.window_of(tid).is_some() {
            return Ok(stopped);
        }
        let (stopped, desk) =
            copies::set_up_desk(&mut space_of.copies, stopped, &space_of.memory, borrowed)?;
        if let Err(error) = desk {
            space_of.copies.is_refused = true;
            self.journal.write(&Entry::Note(format!(
                "A process is not counted: there is no place for counters in its memory ({error})."
            )))?;
            return Ok(stopped);
        }
        self.give_window(stopped, space)
    }

    /// Gives a thread a window of its own.
    fn give_window(&mut self, stopped: Stopped, space: usize) -> io::Result<Stopped> {
        let stopped = match self.has_free_window(space) {
            true => stopped,
            false => self.map_windows(stopped, space)?,
        };
        let tid = stopped.tid();
        self.hand_out_window(&stopped, space, tid)?;
        Ok(stopped)
    }

    fn has_free_window(&self, space: usize) -> bool {
        let space = self.spaces.get(&space);
        space.is_some_and(|it| it.copies.windows.iter().any(|it| it.user.is_none()))
    }

    /// Gives a stopped thread a window that is mapped and that nobody uses.
    fn hand_out_window(&mut self, to: &Stopped, space: usize, user: pid_t) -> io::Result<()> {
        let (Some(space), Some(windows)) = (self.spaces.get_mut(&space), &mut self.windows) else {
            return Ok(());
        };
        let mut mapped = space.copies.windows.iter_mut();
        let Some(mapped) = mapped.find(|it| it.user.is_none()) else {
            return Ok(());
        };
        windows.begin(mapped.window)?;
        mapped.user = Some(user);
        set_gs(to, mapped.at)
    }

    /// Maps windows into the memory of a process; if there is no room for many, then one.
    fn map_windows(&mut self, mut stopped: Stopped, space: usize) -> io::Result<Stopped> {
        let (Some(space), Some(windows)) = (self.spaces.get_mut(&space), &mut self.windows) else {
            return Ok(stopped);
        };
        let path = windows.path.as_os_str().as_bytes().to_vec();
        let mut failed = None;
        for count in [WINDOWS_AT_ONCE, 1] {
            let first = windows.take(count)?;
            let copies = &space.copies;
            let (back, mapped) = copies.map_windows(stopped, &space.memory, &path, first, count)?;
            stopped = back;
            match mapped {
                Ok(at) => {
                    let new = (0..count).map(|number| Mapped {
                        window: first + number,
                        at: at + u64::from(number) * WINDOW,
                        user: None,
                        lender: None,
                    });
                    space.copies.windows.extend(new);
                    return Ok(stopped);
                }
                Err(error) => {
                    windows.give_back(first..first + count);
                    failed = Some(error);
                }
            }
        }
        let is_first = space.copies.modules.is_empty();
        space.copies.is_refused |= is_first;
        let what = match is_first {
            true => "A process is not counted",
            false => "A thread may have lost counts",
        };
        let error = failed.map_or(String::new(), |it| format!(" ({it})"));
        self.journal.write(&Entry::Note(format!(
            "{what}: its counters could not be mapped into its memory{error}."
        )))?;
        Ok(stopped)
    }

    /// A new thread or process stands before its first instruction: it gets a window.
    pub fn begin_window(&mut self, stopped: Stopped) -> io::Result<Stopped> {
        let thread = self.thread(&stopped);
        let (space, is_borrower) = (thread.space, thread.borrows_window);
        let Some(copies) = self.spaces.get_mut(&space).map(|it| &mut it.copies) else {
            return Ok(stopped);
        };
        if self.windows.is_none() || is_borrower || copies.modules.is_empty() {
            return Ok(stopped);
        }
        if let Some(parent) = copies.parent.take() {
            self.borrow_windows(space, parent);
        }
        self.give_window(stopped, space)
    }

    /// What is mapped in a child belongs to its parent, which lends half of what it does not use.
    fn borrow_windows(&mut self, child: usize, parent: usize) {
        let is_free = |it: &&Mapped| it.user.is_none();
        let free: Vec<u32> = match self.spaces.get(&parent) {
            Some(parent) => parent
                .copies
                .windows
                .iter()
                .filter(is_free)
                .map(|it| it.window)
                .collect(),
            None => Vec::new(),
        };
        let Some(copies) = self.spaces.get_mut(&child).map(|it| &mut it.copies) else {
            return;
        };
        // The parent may have used one since, or have had it back from another child.
        copies.windows.retain(|it| free.contains(&it.window));
        copies.windows.truncate(copies.windows.len().div_ceil(2));
        for mapped in &mut copies.windows {
            (mapped.user, mapped.lender) = (None, Some(parent));
        }
        let lent: Vec<u32> = copies.windows.iter().map(|it| it.window).collect();
        if let Some(parent) = self.spaces.get_mut(&parent) {
            let windows = &mut parent.copies.windows;
            windows.retain(|it| !lent.contains(&it.window));
        }
    }

    /// Gives all threads of a process that is attached to their windows; the first one maps them.
    pub fn give_windows<'s>(
        &mut self,
        mut stopped: Stopped,
        others: impl Iterator<Item = &'s Stopped>,
    ) -> io::Result<Stopped> {
        let space = self.thread(&stopped).space;
        let is_bare = |it: &crate::space::Space| it.copies.modules.is_empty();
        if self.windows.is_none() || self.spaces.get(&space).is_none_or(is_bare) {
            return Ok(stopped);
        }
        for other in others {
            if !self.has_free_window(space) {
                stopped = self.map_windows(stopped, space)?;
            }
            self.hand_out_window(other, space, other.tid())?;
        }
        Ok(stopped)
    }

    /// A child that is not counted runs in its parent's memory: what it counts is for nothing.
    pub fn count_in_vain(&mut self, stopped: Stopped, space: usize) -> io::Result<Stopped> {
        let (Some(space), Some(windows)) = (self.spaces.get_mut(&space), &mut self.windows) else {
            return Ok(stopped);
        };
        if space.copies.modules.is_empty() {
            return Ok(stopped);
        }
        if let Some(at) = space.copies.vain {
            set_gs(&stopped, at)?;
            return Ok(stopped);
        }
        let window = match self.vain {
            Some(window) => window,
            None => {
                let window = windows.take(1)?;
                windows.begin(window)?;
                self.vain = Some(window);
                self.journal.write(&Entry::Vain { window })?;
                window
            }
        };
        let path = windows.path.as_os_str().as_bytes().to_vec();
        let copies = &space.copies;
        let (stopped, mapped) = copies.map_windows(stopped, &space.memory, &path, window, 1)?;
        if let Ok(at) = mapped {
            space.copies.vain = Some(at);
            set_gs(&stopped, at)?;
        }
        Ok(stopped)
    }

    /// A thread has ended: its window is free.
    pub fn take_window(&mut self, tid: pid_t, space: usize) {
        let (Some(space), Some(windows)) = (self.spaces.get_mut(&space), &mut self.windows) else {
            return;
        };
        for mapped in &mut space.copies.windows {
            if mapped.user == Some(tid) {
                mapped.user = None;
                windows.end(mapped.window);
            }
        }
    }

    /// An address space is gone: what it was lent goes back to who has it mapped still, the rest
    /// is free for all.
    pub fn return_windows(&mut self, copies: &copies::Copies) {
        let Some(windows) = &mut self.windows else {
            return;
        };
        for mapped in &copies.windows {
            let lender = mapped.lender.and_then(|it| self.spaces.get_mut(&it));
            match lender {
                Some(lender) => {
                    windows.end(mapped.window);
                    lender.copies.windows.push(Mapped {
                        user: None,
                        lender: None,
                        ..*mapped
                    });
                }
                None => windows.give_back(mapped.window..mapped.window + 1),
            }
        }
    }

    /// The window that a thread counts in.
    pub fn window_of(&self, stopped: &Stopped, space: usize) -> Option<u32> {
        let copies = &self.spaces.get(&space)?.copies;
        copies.window_of(stopped.tid()).or_else(|| {
            // A child that runs in its parent's memory, with its parent's window.
            let gs = stopped.registers().ok()?.gs_base;
            let mapped = copies.windows.iter().find(|it| it.at == gs);
            mapped.map(|it| it.window)
        })
    }

    /// Gives all memory of ours in an address space back. No thread may be in it.
    pub fn unmap_all(&mut self, mut stopped: Stopped, space: usize) -> io::Result<Stopped> {
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(stopped);
        };
        if self.windows.is_none() {
            return space.unmap_slots(stopped);
        }
        let copies = std::mem::take(&mut space.copies);
        let regions = copies.modules.iter().map(|it| it.region.clone());
        let windows = copies.windows.iter().map(|it| it.at..it.at + WINDOW);
        for range in regions.chain(windows) {
            let arguments = [range.start, range.end - range.start, 0, 0, 0, 0];
            let number = libc::SYS_munmap;
            (stopped, _) = copies.system_call(stopped, &space.memory, number, arguments)?;
        }
        if let Some(module) = copies.modules.first() {
            let borrowed = LoadAddr(module.text.start);
            stopped = copies.clear_desk(stopped, &space.memory, borrowed)?;
        }
        self.return_windows(&copies);
        Ok(stopped)
    }

    /// A thread goes on without us: it has no window.
    pub fn forget_gs(&mut self, stopped: &Stopped) -> io::Result<()> {
        match self.windows {
            Some(_) => set_gs(stopped, 0),
            None => Ok(()),
        }
    }
}

fn set_gs(stopped: &Stopped, at: u64) -> io::Result<()> {
    let mut registers = stopped.registers()?;
    registers.gs_base = at;
    stopped.set_registers(&registers)
}
