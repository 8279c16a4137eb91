//! Stopping at the N-th event of a thread, exactly.
//!
//! Copies add to their thread's event counter what Ball's method says (`headcount_flow::EventCounter`),
//! and trap when it is no longer negative. It begins so far below zero that this happens a little
//! before the N-th event, whatever routine the thread is in; the rest is single steps. Between two
//! of them the number is known: the counter, and the lead of the place where the thread stands.

use std::io;

use headcount_model::LoadAddr;
use libc::pid_t;

use crate::attach::Held;
use crate::event_use::EventUse;
use crate::journal::Entry;
use crate::kernel::{self, Pace, Phase};
use crate::monitor::{Monitor, Thread};
use crate::signals::STEPPED;
use crate::wait::{Event, Stop, Stopped, put_back};
use crate::{FileBytes, Reached, Until, UntilEvent};

/// So many events before the last one, steps begin.
const STEPS: u64 = 1 << 16;

/// The event counter may be behind by so many, or before, and there are still steps to go.
pub const MOST_LAG: i64 = STEPS as i64 / 2;

/// The event counter of a thread that is not to trap.
const NEVER: i64 = i64::MIN / 2;

/// The name of the moment at which the countdown ended, if the program goes on.
const PHASE: &str = "until";

/// `si_code` after a single step that was a system call.
const STEPPED_OVER_CALL: i32 = 1;

/// `syscall`, and `int 0x80`.
const SYSTEM_CALLS: [[u8; 2]; 2] = [[0x0f, 0x05], [0xcd, 0x80]];

/// What the event counter of every thread begins with.
pub fn first_event(until: &Until<'_>) -> i64 {
    let times = i64::try_from(until.times).unwrap_or(-NEVER).min(-NEVER);
    match until.event {
        UntilEvent::Calls(_) => -times,
        UntilEvent::Instructions if until.times <= STEPS => NEVER,
        UntilEvent::Instructions => STEPS as i64 - times,
    }
}

/// A thread that goes on step by step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stepping {
    /// Does the instruction that it runs store the flags, which tell of the step?
    pub stores_flags: bool,
}

impl Monitor<'_> {
    /// What the copies of a module are to count besides.
    pub fn events_in(&self, path: &str, key: &str, bytes: &FileBytes) -> EventUse {
        match self.settings.until.as_ref().map(|it| it.event) {
            None if self.calls.is_some() => EventUse::Log,
            None => EventUse::None,
            Some(UntilEvent::Instructions) => EventUse::CountDown,
            Some(UntilEvent::Calls(entries)) => {
                EventUse::CountDownEntries(entries(path, key, bytes))
            }
        }
    }

    /// Are the events of threads instructions?
    pub fn counts_instructions(&self) -> bool {
        let until = self.settings.until.as_ref();
        self.calls.is_some() || until.is_some_and(|it| matches!(it.event, UntilEvent::Instructions))
    }

    /// A thread begins: if there is little to count down, it goes step by step from here on.
    pub fn begin_countdown(&mut self, stopped: &Stopped) {
        let until = self
            .settings
            .until
            .as_ref()
            .filter(|_| self.reached.is_none());
        let is_near = until
            .is_some_and(|it| matches!(it.event, UntilEvent::Instructions) && it.times <= STEPS);
        if is_near && self.counts(stopped.tid()) {
            self.thread(stopped).stepping = Some(Stepping::default());
        }
    }

    /// A copy trapped because its thread's event counter is no longer negative: from here on the
    /// thread goes step by step.
    pub fn met_countdown(&mut self, stopped: &Stopped) -> io::Result<()> {
        if self.reached.is_some() {
            let space = self.thread(stopped).space;
            return self.add_events(stopped, space, NEVER);
        }
        self.thread(stopped).stepping = Some(Stepping::default());
        Ok(())
    }

    /// Did a thread stop because of a step of ours?
    pub fn has_stepped(&mut self, stopped: &Stopped) -> io::Result<bool> {
        let Some(Stepping { stores_flags }) = self.thread(stopped).stepping else {
            return Ok(false);
        };
        let code = stopped.signal_info().map(|it| it.code);
        let has_stepped = code == Some(STEPPED) || code == Some(STEPPED_OVER_CALL);
        if has_stepped && stores_flags {
            self.hide_step(stopped)?;
        }
        Ok(has_stepped)
    }

    /// How a thread goes on; `None` if it need not go step by step.
    pub fn stepping_pace(&mut self, stopped: &Stopped, watch: bool) -> io::Result<Option<Pace>> {
        let Some(thread) = self.threads.get(&stopped.tid()) else {
            return Ok(None);
        };
        if thread.stepping.is_none() || thread.is_dying || thread.is_reborn {
            return Ok(None);
        }
        let at = LoadAddr(stopped.instruction_pointer()?);
        let mut next = [0; 2];
        if let Some(space) = self.spaces.get(&thread.space) {
            space.memory.read(at, &mut next)?;
        }
        let is_call = thread.call.is_some() || SYSTEM_CALLS.contains(&next);
        if watch && is_call {
            return Ok(Some(Pace::ToSystemCall));
        }
        let stores_flags = self.is_before_pushf(stopped)?;
        self.thread(stopped).stepping = Some(Stepping { stores_flags });
        Ok(Some(Pace::Step))
    }

    /// Has a thread that goes step by step come to its last event?
    pub fn has_come_so_far(&mut self, stopped: &Stopped) -> io::Result<bool> {
        let Some(until) = self.settings.until.as_ref() else {
            return Ok(false);
        };
        let is_stepping = self.thread(stopped).stepping.is_some();
        if !is_stepping || self.reached.is_some() || stopped.system_call_phase()? == Phase::Begin {
            return Ok(false);
        }
        match self.events_so_far(stopped)? {
            Some(events) if events > until.times => Err(io::Error::other(format!(
                "a thread went past event {} to {events} (please report this)",
                until.times
            ))),
            Some(events) => Ok(events == until.times),
            None => Ok(false),
        }
    }

    /// How many events there were in a stopped thread; `None` if it has no counter.
    fn events_so_far(&mut self, stopped: &Stopped) -> io::Result<Option<u64>> {
        let space = self.thread(stopped).space;
        let at = LoadAddr(stopped.instruction_pointer()?);
        let (Some(window), Some(windows)) = (self.window_of(stopped, space), &self.windows) else {
            return Ok(None);
        };
        let first = windows.first_event.unwrap_or(0);
        let counted = windows.events(window)?.wrapping_sub(first);
        let owed = match self.counts_instructions() {
            true => self.events_owed(space, at),
            false => 0,
        };
        Ok(u64::try_from(counted.wrapping_add(owed)).ok())
    }

    /// A thread has come to its last event: everything stops.
    pub fn end_countdown(&mut self, stopped: Stopped) -> io::Result<()> {
        let Some(until) = self.settings.until.as_ref() else {
            return self.go_on(stopped, 0);
        };
        let (tid, at) = (stopped.tid(), self.stands_at(&stopped)?);
        let pid = self.thread(&stopped).pid;
        let space = self.thread(&stopped).space;
        let in_file = self.in_counted_file(space, at);
        let waits = |it: &Thread| it.space == space && it.waits_for_child;
        if self.threads.values().any(waits) {
            return Err(io::Error::other(
                "the moment to stop at is in a child that runs in its parent's memory (vfork)",
            ));
        }
        let mut processes: Vec<pid_t> = self.threads.values().map(|it| it.pid).collect();
        processes.sort_unstable();
        processes.dedup();
        self.reached = Some(Reached {
            main: self.main,
            pid,
            processes,
            tid,
            at,
            in_file,
            times: until.times,
        });
        for thread in self.threads.values_mut() {
            thread.stepping = None;
        }
        if let Some((module, at)) = in_file.filter(|_| !until.goes_on) {
            let what = format!(
                "Counting ended where it was to, at event {} of thread {tid}",
                until.times
            );
            let at = at.0;
            self.journal.write(&Entry::NoteAt { what, module, at })?;
        }
        if until.goes_on {
            self.add_events(&stopped, space, NEVER)?;
            put_back(Event::Stop(stopped, Stop::Interrupted));
            return self.mark(PHASE);
        }
        let held = Held::from([(tid, (stopped, Stop::Interrupted))]);
        self.stays_stopped = true;
        self.let_go_of_all_with(held)
    }

    /// A process that we let go of is to be found where it stands.
    pub fn keep_stopped(&self, pid: pid_t) {
        if self.stays_stopped {
            kernel::kill(pid, libc::SIGSTOP);
        }
    }
}
