//! What calls cost: the logs of threads are read, and followed.
//!
//! Copies log where their thread arrives from other routines (`headcount_patch`, `log.rs`); what that
//! means is worked out by `headcount_calls`. A log is read when it is full, when its thread ends or
//! makes a copy of itself, and before code goes away that it speaks of. Where a thread comes into a
//! copy that did not arrive there by itself, we write its log.

use std::collections::HashMap;
use std::io;

use headcount_calls::{Arrival, CallSums, Code, Found, Routine, ThreadCalls};
use headcount_model::LoadAddr;
use libc::pid_t;

use crate::copies::Where;
use crate::journal::{CALLS, private_file};
use crate::monitor::Monitor;
use crate::wait::Stopped;

/// The return address of what was not called.
const NOT_CALLED: u64 = 1;

/// The calls of all threads.
#[derive(Debug, Default)]
pub struct Calls {
    /// Of those that run, by window.
    threads: HashMap<u32, ThreadCalls>,
    /// Of processes that were made as copies, and have no window yet.
    forked: HashMap<pid_t, ThreadCalls>,
    /// Of those that have ended.
    sums: CallSums,
    /// A log that was read.
    log: Vec<u8>,
}

/// The code of an address space.
struct SpaceCode<'m, 'a> {
    monitor: &'m Monitor<'a>,
    space: usize,
}

impl Code for SpaceCode<'_, '_> {
    fn routine(&self, at: u64) -> Option<Found> {
        let at = LoadAddr(at);
        let Where::Text(index) = self.monitor.find(self.space, at)? else {
            return None;
        };
        let module = self.monitor.module(self.space, index)?;
        let workshop = &self.monitor.workshops[module.workshop];
        let start = workshop.start_of(module.link(at))?;
        Some(Found {
            routine: Routine {
                module: workshop.module as u32,
                start,
            },
            bias: module.load(0).0,
        })
    }
}

impl Monitor<'_> {
    /// A thread is about to count in a window.
    pub fn begin_calls(&mut self, tid: pid_t, window: u32) {
        if let Some(calls) = &mut self.calls {
            let begun = calls.forked.remove(&tid).unwrap_or_default();
            calls.threads.insert(window, begun);
        }
    }

    /// A thread has made a process that is a copy of its own.
    pub fn fork_calls(&mut self, parent: &Stopped, child: pid_t) -> io::Result<()> {
        let space = self.thread(parent).space;
        let Some(window) = self
            .window_of(parent, space)
            .filter(|_| self.calls.is_some())
        else {
            return Ok(());
        };
        self.read_log(window, space, false)?;
        if let Some(calls) = &mut self.calls {
            let forked = calls.threads.get(&window).map(ThreadCalls::forked);
            calls.forked.extend(forked.map(|it| (child, it)));
        }
        Ok(())
    }

    /// A thread counts no more in its window.
    pub fn end_calls(&mut self, window: u32, space: usize) -> io::Result<()> {
        if self.calls.is_none() {
            return Ok(());
        }
        self.read_log(window, space, true)?;
        let events = self.windows.as_ref().map(|it| it.events(window));
        let events = events.transpose()?.unwrap_or(0);
        if let Some(calls) = &mut self.calls
            && let Some(mut thread) = calls.threads.remove(&window)
        {
            thread.end(events.cast_unsigned());
            calls.sums.add(&thread);
        }
        Ok(())
    }

    /// A thread has become another program, by a system call before this address: its event counter
    /// is behind by what it ran of the routine that made it.
    pub fn owe_before_exec(&mut self, tid: pid_t, next: LoadAddr) -> io::Result<()> {
        let space = self.threads.get(&tid).map(|it| it.space);
        let window = self.windows.as_ref().and_then(|it| it.of(tid));
        let (Some(space), Some(window)) = (space.filter(|_| self.calls.is_some()), window) else {
            return Ok(());
        };
        let owed = self.events_owed(space, next);
        match &self.windows {
            Some(windows) => windows.add_events(window, owed),
            None => Ok(()),
        }
    }

    /// Code of an address space comes or goes: what logs say of it is to be read before.
    pub fn read_logs(&mut self, space: usize) -> io::Result<()> {
        if self.calls.is_none() {
            return Ok(());
        }
        let threads = self.threads.iter().filter(|(_, it)| it.space == space);
        let windows = threads.filter_map(|(tid, _)| self.windows.as_ref()?.of(*tid));
        for window in windows.collect::<Vec<u32>>() {
            self.read_log(window, space, false)?;
            let calls = self.calls.as_mut().map(|it| &mut it.threads);
            if let Some(thread) = calls.and_then(|it| it.get_mut(&window)) {
                thread.forget_addresses();
            }
        }
        Ok(())
    }

    /// A copy trapped because there is no more room in its thread's log.
    pub fn met_full_log(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        match self.window_of(stopped, space) {
            Some(window) => self.read_log(window, space, true),
            None => Ok(()),
        }
    }

    /// A thread goes on in the midst of a routine without having arrived there by itself.
    pub fn log_place(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<()> {
        self.log(stopped, 0, at)
    }

    /// A signal handler returns through code that is not copied.
    pub fn log_restorer(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<()> {
        self.log(stopped, NOT_CALLED, at)
    }

    fn log(&mut self, stopped: &Stopped, back: u64, at: LoadAddr) -> io::Result<()> {
        let space = self.thread(stopped).space;
        if self.calls.is_none() {
            return Ok(());
        }
        let (Some(window), Some(windows)) = (self.window_of(stopped, space), &self.windows) else {
            return Ok(());
        };
        let events = windows.events(window)?.cast_unsigned();
        let stack = stopped.registers()?.rsp;
        self.read_log(window, space, true)?;
        self.with_calls(window, space, |thread, code| {
            thread.arrive(
                &Arrival {
                    events,
                    stack,
                    back,
                    at: at.0,
                },
                code,
            );
        });
        Ok(())
    }

    /// Follows a thread as far as its log goes. If the thread stands still, its log is empty then.
    fn read_log(&mut self, window: u32, space: usize, stands_still: bool) -> io::Result<()> {
        let (Some(windows), Some(calls)) = (&mut self.windows, &mut self.calls) else {
            return Ok(());
        };
        let mut log = std::mem::take(&mut calls.log);
        windows.read_log(window, stands_still, &mut log)?;
        self.with_calls(window, space, |thread, code| thread.follow(&log, code));
        if let Some(calls) = &mut self.calls {
            calls.log = log;
        }
        Ok(())
    }

    fn with_calls(
        &mut self,
        window: u32,
        space: usize,
        work: impl FnOnce(&mut ThreadCalls, &SpaceCode<'_, '_>),
    ) {
        let calls = self.calls.as_mut().map(|it| &mut it.threads);
        let Some(mut thread) = calls.and_then(|it| it.remove(&window)) else {
            return;
        };
        let monitor = &*self;
        work(&mut thread, &SpaceCode { monitor, space });
        if let Some(calls) = &mut self.calls {
            calls.threads.insert(window, thread);
        }
    }

    /// Writes down what calls cost.
    pub fn tell_calls(&mut self) -> io::Result<()> {
        let Some(calls) = &self.calls else {
            return Ok(());
        };
        let packed = calls.sums.costs(Vec::new()).pack();
        let mut file = private_file(&self.journal.folder().join(CALLS))?;
        io::Write::write_all(&mut file, &packed)
    }
}
