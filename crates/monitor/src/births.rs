//! Threads and processes come, become other programs, and go.

use std::io;

use headcount_model::LoadAddr;
use libc::pid_t;

use crate::journal::Entry;
use crate::kernel::{self, Registers};
use crate::monitor::{Monitor, Process, Thread};
use crate::proc;
use crate::signals::bit;
use crate::sigtrap;
use crate::space::Space;
use crate::wait::{Ending, Stopped};

impl Monitor<'_> {
    /// Takes a thread in.
    pub fn add_thread(&mut self, tid: pid_t, pid: pid_t, space: usize) -> io::Result<()> {
        let thread = Thread {
            pid,
            space,
            is_new: true,
            trap_blocked: false,
            holds_trap: false,
            call: None,
            is_watched: false,
            handlers: Vec::new(),
            waits_for_child: false,
            borrows_window: false,
            postponed: None,
            is_looked_at: false,
            enters_handler: false,
            is_reborn: false,
            is_dying: false,
            has_left: false,
            start: None,
            last: None,
            tallied: Vec::new(),
            stepping: None,
            asks: None,
        };
        self.threads.insert(tid, thread);
        self.processes.entry(pid).or_default();
        let is_alone = self.is_alone(space);
        if let Some(space) = self.spaces.get_mut(&space) {
            space.copies.had_threads |= !is_alone;
        }
        self.journal.write(&Entry::Thread {
            pid: pid as u32,
            tid: tid as u32,
        })
    }

    /// A thread made a thread or a process.
    pub fn birth(&mut self, stopped: Stopped) -> io::Result<()> {
        let child = stopped.event_message()? as pid_t;
        let parent = self.thread(&stopped).clone();
        let flags = self.clone_flags(&parent, &stopped.registers()?);
        self.thread(&stopped).waits_for_child = flags & libc::CLONE_VFORK as u64 != 0;
        let pid = match flags & libc::CLONE_THREAD as u64 {
            0 => child,
            _ => parent.pid,
        };
        let space = match (
            flags & libc::CLONE_VM as u64,
            self.spaces.get(&parent.space),
        ) {
            (0, Some(space)) => match space.forked(child) {
                Ok(copy) => {
                    let space = self.add_space(copy);
                    self.inherit_pieces(parent.space, space);
                    space
                }
                // It has been killed already.
                Err(error) if kernel::is_gone(&error) => parent.space,
                Err(error) => return Err(error),
            },
            _ => parent.space,
        };
        if pid == child {
            let mut process = self.processes.get(&parent.pid).cloned().unwrap_or_default();
            process.fate = None;
            process.is_passing |= !self.settings.follow;
            self.processes.insert(child, process);
        }
        // When we begin in the middle, it may have been found before we were told.
        if !(self.is_beginning && self.threads.contains_key(&child)) {
            self.add_thread(child, pid, space)?;
        }
        if let Some(thread) = self.threads.get_mut(&child) {
            thread.trap_blocked = parent.trap_blocked;
            thread.handlers = parent.handlers;
            let shares = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
            thread.borrows_window = flags & shares == shares;
            if thread.borrows_window {
                self.lend_window(stopped.tid(), child);
            }
        }
        if flags & libc::CLONE_VM as u64 == 0 {
            self.fork_calls(&stopped, child)?;
        }
        self.go_on(stopped, 0)?;
        if self.is_held(space) {
            // Whoever holds its parent takes the child along.
            return Ok(());
        }
        match self.early.remove(&child) {
            Some(early) => self.first_stop(early),
            None => Ok(()),
        }
    }

    /// What the child has in common with its parent.
    fn clone_flags(&self, parent: &Thread, registers: &Registers) -> u64 {
        match registers.orig_rax as i64 {
            libc::SYS_clone => registers.rdi,
            libc::SYS_clone3 => {
                let space = self.spaces.get(&parent.space);
                let flags = space.map(|it| it.memory.read_word(LoadAddr(registers.rdi)));
                flags.and_then(Result::ok).unwrap_or(0)
            }
            libc::SYS_vfork => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
            _ => 0,
        }
    }

    /// A new thread or process stands before its first instruction.
    pub fn first_stop(&mut self, stopped: Stopped) -> io::Result<()> {
        let thread = self.thread(&stopped);
        thread.is_new = false;
        let (pid, space) = (thread.pid, thread.space);
        let process = self.processes.get(&pid);
        if process.is_some_and(|it| it.is_passing) {
            return match self.is_alone_in(pid, space) {
                true => self.let_pass(stopped, space),
                false => {
                    self.count_in_vain(&stopped, space)?;
                    self.go_on(stopped, 0)
                }
            };
        }
        let is_complete = self.check_inherited(&stopped, space)?;
        self.begin_window(&stopped)?;
        if self.is_given_up(space) {
            self.thread(&stopped).is_new = true;
            return self.go_on(stopped, 0);
        }
        let at = LoadAddr(stopped.instruction_pointer()?);
        self.arrives(&stopped, at)?;
        let is_bare = self.spaces.get(&space).is_some_and(Space::is_bare);
        let stopped = match is_bare || !is_complete {
            true => self.look_at_modules(stopped)?,
            false => stopped,
        };
        self.begin_countdown(&stopped);
        self.go_on(stopped, 0)
    }

    fn is_alone_in(&self, pid: pid_t, space: usize) -> bool {
        let mut threads = self.threads.values();
        threads.all(|thread| thread.space != space || thread.pid == pid)
    }

    /// Lets a child go that is not followed, with memory as it would be without us.
    fn let_pass(&mut self, stopped: Stopped, space: usize) -> io::Result<()> {
        let tid = stopped.tid();
        match self.windows {
            Some(_) => self.leave_copy(&stopped)?,
            None => self.leave_slot(&stopped)?,
        };
        self.forget_gs(&stopped)?;
        self.restore(space)?;
        self.unmap_all(&stopped, space)?;
        self.give_mask_back(&stopped)?;
        self.threads.remove(&tid);
        self.drop_unused_spaces();
        stopped.detach(0)
    }

    /// Blocks SIGTRAP really, where the program thinks that it is.
    pub fn give_mask_back(&mut self, stopped: &Stopped) -> io::Result<()> {
        if self.thread(stopped).trap_blocked {
            let blocked = stopped.blocked_signals()?;
            stopped.set_blocked_signals(blocked | sigtrap::TRAP)?;
        }
        Ok(())
    }

    /// A process runs another program. Its other threads have ended.
    pub fn exec(&mut self, stopped: Stopped) -> io::Result<()> {
        self.forget_asker(stopped.tid());
        let pid = stopped.tid();
        let former = stopped.event_message()? as pid_t;
        self.forget_runtime(pid);
        self.forget_runtime(former);
        if let Some(call) = self.threads.get(&former).and_then(|it| it.call.as_ref()) {
            let next = call.next;
            self.owe_before_exec(former, next)?;
            self.book_leaving_before_exec(former, next);
        }
        self.return_window(former);
        if let Some(thread) = self.threads.remove(&former) {
            self.take_window(former, thread.space)?;
            self.threads.insert(pid, thread);
        }
        let space = self.thread(&stopped).space;
        self.take_window(pid, space)?;
        let thread = self.thread(&stopped);
        let call = thread.call.take();
        (thread.is_reborn, thread.is_new, thread.last) = (true, false, None);
        thread.borrows_window = false;
        thread.handlers.clear();
        if let Some(call) = call {
            self.departs(&stopped, call.next)?;
        }
        self.tell_of_lost_privilege(pid)?;
        if self.processes.get(&pid).is_some_and(|it| it.is_passing) {
            self.give_mask_back(&stopped)?;
            self.threads.remove(&pid);
            self.drop_unused_spaces();
            return stopped.detach(0);
        }
        let space = match Space::new(pid) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return self.leave_unread(stopped);
            }
            space => self.add_space(space?),
        };
        self.thread(&stopped).space = space;
        self.drop_unused_spaces();
        self.begin_limit(pid);
        self.go_on(stopped, 0)
    }

    /// A new program stands before its first instruction.
    pub fn begin_program(&mut self, stopped: Stopped) -> io::Result<()> {
        let is_blocked = sigtrap::unblock(&stopped)?;
        let thread = self.thread(&stopped);
        thread.trap_blocked |= is_blocked;
        let pid = thread.pid;
        let ignored = proc::signals(pid)?.ignored;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.trap_ignored |= ignored & bit(libc::SIGTRAP) != 0;
        }
        let stopped = self.look_at_modules(stopped)?;
        self.begin_countdown(&stopped);
        self.go_on(stopped, 0)
    }

    /// A thread is about to end; this is the last time that its registers can be seen.
    pub fn dying(&mut self, stopped: Stopped) -> io::Result<()> {
        self.forget_asker(stopped.tid());
        let thread = self.thread(&stopped);
        thread.is_dying = true;
        let (pid, is_new, has_left) = (thread.pid, thread.is_new, thread.has_left);
        self.see_name(&stopped);
        let mut at = self.stands_at(&stopped)?;
        if self.has_met_breakpoint(&stopped, at) {
            at = LoadAddr(at.0.wrapping_sub(1));
            self.leave_slot(&stopped)?;
            self.departs(&stopped, at)?;
        } else if !is_new && !has_left {
            self.leaves(&stopped)?;
        }
        self.read_before_the_end(&stopped)?;
        let signal = stopped.event_message()? as i32 & 0x7f;
        let fate = self.processes.get(&pid).and_then(|it| it.fate.as_ref());
        if signal != 0 && fate.is_none_or(|fate| fate.signal != signal) {
            self.may_die_of(&stopped, signal, at);
        }
        self.go_on(stopped, 0)
    }

    /// Has a thread met a breakpoint that it has not told us of yet?
    pub fn has_met_breakpoint(&self, stopped: &Stopped, at: LoadAddr) -> bool {
        let before = LoadAddr(at.0.wrapping_sub(1));
        let thread = self.threads.get(&stopped.tid());
        let space = thread.and_then(|it| self.spaces.get(&it.space));
        let is_breakpoint = space.is_some_and(|it| it.breakpoint(before).is_some());
        is_breakpoint && is_trap_pending(stopped)
    }

    /// The same for what leads into copies.
    pub fn has_met_trap(&self, stopped: &Stopped, at: LoadAddr) -> bool {
        let before = LoadAddr(at.0.wrapping_sub(1));
        let thread = self.threads.get(&stopped.tid());
        let is_ours = thread.is_some_and(|it| self.find(it.space, before).is_some());
        is_ours && is_trap_pending(stopped)
    }

    /// A thread has ended; if it is the first of its process, all of it has.
    pub fn ended(&mut self, tid: pid_t, ending: Ending) -> io::Result<()> {
        self.early.remove(&tid);
        self.forget_asker(tid);
        let Some(thread) = self.threads.remove(&tid) else {
            // A child of ours even if we let go of it.
            return match tid == self.main {
                true => self.process_ended(tid, &Process::default(), ending),
                false => Ok(()),
            };
        };
        self.forget_runtime(tid);
        self.take_window(tid, thread.space)?;
        self.return_window(tid);
        if self.windows.is_some() && !thread.is_dying && !thread.is_new && !thread.is_reborn {
            self.journal.write(&Entry::Note(
                "A thread was killed where it could not be seen: counts of the function that it \
                 was in may be one too high or too low."
                    .to_owned(),
            ))?;
        }
        if let Some(last) = thread.last.filter(|_| !thread.is_dying) {
            self.died_unseen(last)?;
        }
        if tid == thread.pid {
            let process = self.processes.remove(&tid).unwrap_or_default();
            self.end_process_counts(tid);
            self.process_ended(tid, &process, ending)?;
        }
        self.drop_unused_spaces();
        Ok(())
    }

    fn process_ended(&mut self, pid: pid_t, process: &Process, ending: Ending) -> io::Result<()> {
        if let Ending::Signal(signal) = ending {
            self.died_of(pid, process, signal)?;
        }
        if pid == self.main {
            self.status = Some(ending.status());
            self.requests.program_has_ended();
        }
        Ok(())
    }
}

fn is_trap_pending(stopped: &Stopped) -> bool {
    proc::signals(stopped.tid()).is_ok_and(|it| it.pending & bit(libc::SIGTRAP) != 0)
}
