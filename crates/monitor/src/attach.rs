//! Counting a process that already runs, and letting processes go.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::time::{Duration, Instant};

use headcount_model::LoadAddr;
use libc::{c_int, pid_t};

use crate::hits::FROM_INT3;
use crate::journal::Entry;
use crate::kernel::{self, Pace, Phase};
use crate::launch::begin_journal;
use crate::monitor::{Monitor, Thread};
use crate::own_folder::OwnFolder;
use crate::requests::Requests;
use crate::space::Space;
use crate::wait::{Event, Stop, Stopped, look, put_back, recover, wait, wait_for_any};
use crate::{Error, Outcome, Settings, interrupted_calls, proc, sigtrap};

/// Threads that are held, and why they stopped.
pub type Held = HashMap<pid_t, (Stopped, Stop)>;

/// Which threads are to be held, and those that are already.
#[derive(Debug)]
pub struct Hold {
    scope: Scope,
    held: Held,
    /// Those that need not be, as long as they do not stop.
    spared: BTreeSet<pid_t>,
}

/// How long a child may run in its parent's memory when both are to be let go of.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

/// What came of the attempt to count processes that already run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Well,
    UsesGs,
    IsStopped,
    HasNothing,
}

/// Which threads are meant: of one address space or of all, and all but one or all.
#[derive(Clone, Copy, Debug, Default)]
struct Scope {
    space: Option<usize>,
    but: Option<pid_t>,
}

/// Counts a running process until it ends, or until we are asked to let go of it; then it goes on
/// as if nothing had been. So do its children, if they are wanted as well. The journal goes into
/// `folder`.
pub fn attach(
    pid: pid_t,
    with_children: bool,
    folder: &OwnFolder,
    settings: &Settings<'_>,
) -> Result<Outcome, Error> {
    check(pid)?;
    let journal = begin_journal(folder, proc::command(pid), settings, true)?;
    let requests = Requests::listen(None);
    let monitor = Monitor::new(settings, journal, requests, pid);
    let mut monitor = monitor.map_err(|it| Error::Io("the journal", it))?;
    monitor.in_the_middle = true;
    monitor.is_beginning = true;
    let begun = monitor
        .seize_family(pid, with_children)
        .and_then(|()| monitor.begin_in_the_middle(pid));
    monitor.is_beginning = false;
    if let Err(error) = begun {
        let let_go = monitor.let_go_of_the_rest();
        let_go.map_err(|it| Error::Io("letting go", it))?;
        return Err(error);
    }
    (settings.begun)();
    if let Some(duration) = settings.duration {
        monitor.requests.begin(duration);
    }
    Ok(monitor.count())
}

/// The children of a process, their children, and so on.
pub fn descendants(pid: pid_t) -> Vec<pid_t> {
    proc::descendants(pid)
}

fn check(pid: pid_t) -> Result<(), Error> {
    let ours = [std::process::id(), std::os::unix::process::parent_id()];
    if ours.contains(&(pid as u32)) && proc::executable(pid).ok() == std::env::current_exe().ok() {
        return Err(Error::NotThatOne(pid, "headcount itself"));
    }
    if pid == 1 {
        return Err(Error::NotThatOne(pid, "the first process of the system"));
    }
    match proc::process_of(pid) {
        Some(process) if process == pid => {}
        Some(_) => return Err(Error::NotThatOne(pid, "a thread, not a process")),
        None => return Err(Error::NoProcess(pid)),
    }
    if proc::is_zombie(pid) && proc::threads(pid).is_ok_and(|it| it.len() < 2) {
        return Err(Error::NotThatOne(pid, "a process that has ended"));
    }
    if let Some(tracer) = proc::tracer_of(pid) {
        let name = proc::command(tracer).into_iter().next();
        let name = name.map_or(String::new(), |name| format!(" ({name})"));
        return Err(Error::AlreadyTraced(pid, tracer, name));
    }
    if let Err(error) = proc::executable(pid) {
        return Err(match error.kind() {
            io::ErrorKind::NotFound => Error::NotThatOne(pid, "a part of the kernel"),
            _ => Error::NotAllowed(pid, error),
        });
    }
    Ok(())
}

impl Monitor<'_> {
    /// Begins to trace a process, and its children if they are wanted. What their files say is read
    /// before they are stopped.
    fn seize_family(&mut self, pid: pid_t, with_children: bool) -> Result<(), Error> {
        let prepare = |monitor: &mut Self, pid| match monitor.prepare(pid) {
            Err(error) if !kernel::is_gone(&error) => Err(Error::NotAllowed(pid, error)),
            _ => Ok(()),
        };
        prepare(self, pid)?;
        let ours = Some(std::process::id() as pid_t);
        let mut known = Vec::new();
        // Those that are made from now on are traced from the beginning.
        self.seize_all(pid)?;
        loop {
            let children = proc::descendants(pid);
            let new = children.into_iter().find(|it| !known.contains(it));
            let Some(child) = new.filter(|_| with_children) else {
                return Ok(());
            };
            known.push(child);
            if proc::tracer_of(child) == ours || proc::is_zombie(child) {
                continue;
            }
            prepare(self, child)?;
            match self.seize_all(child) {
                Err(Error::NoProcess(_)) => {}
                other => other?,
            }
        }
    }

    /// Begins to trace all threads of a process, also those that are made meanwhile.
    fn seize_all(&mut self, pid: pid_t) -> Result<(), Error> {
        let refused = |error| match kernel::is_gone(&error) {
            true => Error::NoProcess(pid),
            false => Error::NotAllowed(pid, error),
        };
        let space = Space::new(pid).map_err(refused);
        let space = space.map(|space| self.add_space(space))?;
        // A process may live on without its first thread.
        let mut ended = Vec::new();
        loop {
            let threads = proc::threads(pid).map_err(|_| Error::NoProcess(pid))?;
            let new: Vec<pid_t> = threads
                .into_iter()
                .filter(|tid| !self.threads.contains_key(tid) && !ended.contains(tid))
                .collect();
            if new.is_empty() {
                return Ok(());
            }
            for tid in new {
                match kernel::seize(tid, false) {
                    Ok(()) => {}
                    Err(error) if kernel::is_gone(&error) => continue,
                    Err(_) if proc::is_zombie(tid) => {
                        ended.push(tid);
                        continue;
                    }
                    // A thread that was made after we seized the one that made it is ours already.
                    Err(_) if proc::tracer_of(tid) == Some(std::process::id() as pid_t) => {}
                    Err(error) => return Err(refused(error)),
                }
                let added = self.add_thread(tid, pid, space);
                added.map_err(|it| Error::Io("the journal", it))?;
                self.begin_limit(pid);
            }
        }
    }

    /// Puts traps into processes that are somewhere in the middle of their work.
    fn begin_in_the_middle(&mut self, pid: pid_t) -> Result<(), Error> {
        let failed = |error| Error::Io("attaching", error);
        let mut held = self.hold_all().map_err(failed)?;
        let begun = self.install_in_all(&mut held);
        let why_not = match begun.map_err(failed)? {
            Begun::Well => None,
            Begun::UsesGs => {
                Some("it uses the gs register, which copies need to count; add --engine breakpoint")
            }
            Begun::IsStopped => Some("it is stopped; `kill -CONT` it first"),
            Begun::HasNothing => Some("nothing of its program can be counted"),
        };
        self.is_beginning = false;
        go_on_all(held);
        match why_not {
            None => Ok(()),
            Some(reason) => Err(Error::NothingToCount(pid, reason.to_owned())),
        }
    }

    /// The same when all threads are held. One that has been killed meanwhile is none of our
    /// trouble.
    fn install_in_all(&mut self, held: &mut Held) -> io::Result<Begun> {
        let uses_gs = |it: &Stopped| it.registers().is_ok_and(|it| it.gs_base != 0);
        if self.windows.is_some() && held.values().any(|(stopped, _)| uses_gs(stopped)) {
            return Ok(Begun::UsesGs);
        }
        for (stopped, _) in held.values() {
            kernel::gone_is_fine(self.note_where_it_is(stopped))?;
        }
        let mut begun = Begun::IsStopped;
        // Children that were made meanwhile have address spaces of their own.
        let spaces: Vec<usize> = self.spaces.keys().copied().collect();
        for space in spaces {
            let is_there = |tid: &pid_t| self.threads.get(tid).is_some_and(|it| it.space == space);
            let Some((stopped, stop)) = take_one(held, is_there) else {
                continue;
            };
            let tid = stopped.tid();
            let installed = self.look_at_modules(stopped.lent()).and_then(|stopped| {
                let others = held.values().map(|(stopped, _)| stopped);
                self.give_windows(&stopped, others)
            });
            kernel::gone_is_fine(installed)?;
            held.insert(tid, (stopped, stop));
            begun = Begun::HasNothing;
        }
        if begun == Begun::IsStopped || self.spaces.values().all(Space::is_bare) {
            return Ok(begun);
        }
        for (stopped, _) in held.values() {
            if let Some(at) = self.thread(stopped).start.take() {
                kernel::gone_is_fine(self.arrives(stopped, at))?;
            }
        }
        Ok(Begun::Well)
    }

    fn note_where_it_is(&mut self, stopped: &Stopped) -> io::Result<()> {
        let at = stopped.instruction_pointer()?;
        let is_blocked = sigtrap::unblock(stopped)?;
        let thread = self.thread(stopped);
        thread.is_new = false;
        thread.trap_blocked = is_blocked;
        thread.start = Some(LoadAddr(at));
        Ok(())
    }

    /// Stops every thread that we trace.
    pub fn hold_all(&mut self) -> io::Result<Held> {
        self.hold(Scope::default(), Held::new())
    }

    /// Stops every thread that we trace but these, besides those that are held already.
    pub fn hold_all_but(&mut self, spared: BTreeSet<pid_t>, held: Held) -> io::Result<Held> {
        self.hold_these(Hold {
            scope: Scope::default(),
            held,
            spared,
        })
    }

    /// Stops every thread of an address space but this one, which stands still.
    pub fn hold_others(&mut self, than: &Stopped, space: usize) -> io::Result<Held> {
        let scope = Scope {
            space: Some(space),
            but: Some(than.tid()),
        };
        self.hold(scope, Held::new())
    }

    /// Stops every thread in a scope, besides those that are held already.
    fn hold(&mut self, scope: Scope, held: Held) -> io::Result<Held> {
        self.hold_these(Hold {
            scope,
            held,
            spared: BTreeSet::new(),
        })
    }

    fn hold_these(&mut self, hold: Hold) -> io::Result<Held> {
        let mut hold = hold;
        let Hold { scope, spared, .. } = &hold;
        let parked = self.parked(|it, tid| it.is_in(tid, *scope) && !spared.contains(&tid));
        hold.held.extend(parked);
        self.holds.push(hold);
        let is_complete = self.complete_hold();
        let hold = self.holds.pop().expect("each takes away its own");
        is_complete?;
        // While others were waited for, some may have been killed.
        let stands = |tid: &pid_t| self.threads.get(tid).is_some_and(|it| !it.is_dying);
        let mut held = hold.held;
        held.retain(|tid, _| stands(tid));
        Ok(held)
    }

    /// Waits until every thread of the innermost hold stands still. Other processes go on meanwhile;
    /// one of them may need a hold of its own, in which threads of ours stop.
    fn complete_hold(&mut self) -> io::Result<()> {
        let innermost = self.holds.len() - 1;
        self.interrupt_loose(innermost)?;
        while self.is_any_loose(innermost) {
            if let Some(early) = self.take_early(innermost) {
                self.keep(innermost, early, Stop::Interrupted)?;
                continue;
            }
            let event = match wait_for_any() {
                Ok(event) => event,
                Err(error) if kernel::is_gone(&error) => break,
                Err(error) => return Err(error),
            };
            let holder = self.holder(event.tid());
            match (event, holder) {
                (Event::Stop(stopped, stop), Some(hold)) => self.keep(hold, stopped, stop)?,
                (other, _) => self.handle(other)?,
            }
        }
        Ok(())
    }

    /// The hold that a thread is to be kept in.
    fn holder(&self, tid: pid_t) -> Option<usize> {
        self.holds.iter().rposition(|it| self.is_in(tid, it.scope))
    }

    /// Are the threads of an address space being held?
    pub fn is_held(&self, space: usize) -> bool {
        let mut scopes = self.holds.iter().map(|it| it.scope.space);
        scopes.any(|it| it.is_none_or(|it| it == space))
    }

    /// A new thread that stopped before its parent told of it, which it has by now.
    fn take_early(&mut self, hold: usize) -> Option<Stopped> {
        let scope = self.holds[hold].scope;
        let tid = *self.early.keys().find(|tid| self.is_in(**tid, scope))?;
        self.early.remove(&tid)
    }

    /// Is this a thread of ours, in this scope?
    fn is_in(&self, tid: pid_t, scope: Scope) -> bool {
        let thread = self.threads.get(&tid).filter(|_| scope.but != Some(tid));
        thread.is_some_and(|it| scope.space.is_none_or(|space| it.space == space))
    }

    fn interrupt_loose(&self, hold: usize) -> io::Result<()> {
        let mut threads = self.threads.keys().filter(|it| self.is_loose(hold, **it));
        threads.try_for_each(|tid| kernel::interrupt(*tid))
    }

    /// Is a thread to be kept in a hold, and not yet?
    fn is_loose(&self, hold: usize, tid: pid_t) -> bool {
        let Hold {
            scope,
            held,
            spared,
        } = &self.holds[hold];
        self.is_in(tid, *scope) && !held.contains_key(&tid) && !spared.contains(&tid)
    }

    /// Is there a thread still to stop? (One that is about to end does not stop again; and one that
    /// waits for a child in its memory does not stop before the child, which we hold, goes on.)
    fn is_any_loose(&self, hold: usize) -> bool {
        let stops = |thread: &Thread| !thread.is_dying && !thread.waits_for_child;
        let mut threads = self.threads.iter();
        threads.any(|(tid, thread)| stops(thread) && self.is_loose(hold, *tid))
    }

    /// Keeps a thread that stopped; or lets it go on to where it can be kept.
    fn keep(&mut self, hold: usize, stopped: Stopped, stop: Stop) -> io::Result<()> {
        let tid = stopped.tid();
        // The end of a call stops the thread before our request does, and takes its place.
        if stop == Stop::SystemCall
            && stopped.system_call_phase()? == Phase::End
            && interrupted_calls::start_again(&stopped)?
        {
            kernel::interrupt(tid)?;
            return self.handle(Event::Stop(stopped, stop));
        }
        match stop {
            // Nothing new is begun any more.
            Stop::SystemCall if self.gives_up => {
                if stopped.system_call_phase()? == Phase::Begin {
                    self.go_on(stopped, 0)?;
                    return kernel::interrupt(tid);
                }
            }
            // These are answered at once; the thread stops again because we asked it to.
            Stop::Birth | Stop::Exec | Stop::Dying => {
                self.handle(Event::Stop(stopped, stop))?;
                return self.interrupt_loose(hold);
            }
            // At the beginning of a system call no other can be made in its name.
            Stop::SystemCall
                if self.thread(&stopped).is_reborn
                    || stopped.system_call_phase()? == Phase::Begin =>
            {
                self.handle(Event::Stop(stopped, stop))?;
                return kernel::interrupt(tid);
            }
            Stop::Interrupted => {
                interrupted_calls::start_again(&stopped)?;
                let at = LoadAddr(stopped.instruction_pointer()?);
                if self.has_met_breakpoint(&stopped, at) || self.has_met_trap(&stopped, at) {
                    return self.go_on(stopped, 0);
                }
            }
            Stop::Signal(_) | Stop::Clock | Stop::SystemCall | Stop::JobControl => {}
        }
        self.holds[hold].held.insert(tid, (stopped, stop));
        Ok(())
    }

    /// Lets every process go on without us, with every byte of its code as it was. A process that
    /// has been killed, or that cannot be written to, keeps none of the others.
    pub fn let_go_of_all(&mut self) -> io::Result<()> {
        if !self.gives_up {
            self.wait_for_borrowers()?;
        }
        self.let_go_of_all_with(Held::new())
    }

    /// The same when some of their threads are held.
    pub fn let_go_of_all_with(&mut self, held: Held) -> io::Result<()> {
        let held = self.hold(Scope::default(), held)?;
        self.let_go_of_held(held)
    }

    fn let_go_of_held(&mut self, held: Held) -> io::Result<()> {
        let spaces: Vec<usize> = self.spaces.keys().copied().collect();
        let result = self.let_go_of(held, &spaces);
        // Those who waited for a child in their memory can be stopped when it has gone on. What we
        // started would be ended with us if we did not wait for that.
        let is_ours = !self.in_the_middle;
        self.threads.retain(|_, it| is_ours && it.waits_for_child);
        if self.threads.is_empty() {
            return result;
        }
        for thread in self.threads.values_mut() {
            thread.waits_for_child = false;
        }
        result.and(self.let_go_of_all())
    }

    /// The same when something went wrong: some threads may stand still, and nobody knows why.
    pub fn let_go_of_the_rest(&mut self) -> io::Result<()> {
        self.gives_up = true;
        self.holds.clear();
        self.askers.clear();
        kernel::use_spare_descriptors();
        recover(self.threads.keys().copied())?;
        self.let_go_of_all()
    }

    /// We cannot go on: the program does without us. Its status is still ours.
    pub fn stop_counting(&mut self, trouble: &io::Error) {
        let told = self.journal.write(&Entry::Note(format!(
            "Counting ended before the program did: {trouble}. What ran from then on is not counted."
        )));
        // If the journal is broken, `trouble` says why.
        let _ = told;
        if self.let_go_of_the_rest().is_err() {
            let threads: Vec<pid_t> = self.threads.keys().copied().collect();
            threads.into_iter().for_each(|it| self.end_if_ours(it));
        }
        if !self.in_the_middle && self.status.is_none() {
            self.status = self.wait_for_program();
        }
    }

    /// A process that cannot be given back as it was would run into our traps, or stand still for
    /// ever. If it is ours, it is ended.
    fn end_if_ours(&self, tid: pid_t) {
        if let Some(thread) = self.threads.get(&tid).filter(|_| !self.in_the_middle) {
            kernel::kill(thread.pid, libc::SIGKILL);
        }
    }

    /// Waits until the program ends that we started, and have let go of.
    fn wait_for_program(&self) -> Option<i32> {
        loop {
            if self.requests.is_asked_to_let_go() {
                return self.requests.asked_by().map(|signal| 128 + signal);
            }
            match wait() {
                Ok(Some(Event::Ended(pid, ending))) if pid == self.main => {
                    return Some(ending.status());
                }
                // What could not be let go of was ended.
                Ok(Some(Event::Stop(stopped, _))) => drop(stopped.resume(Pace::Free, 0)),
                Ok(None) => return None,
                _ => {}
            }
        }
    }

    /// We were asked to end before everything that we count did.
    pub fn end_as_asked(&mut self) -> io::Result<()> {
        if self.in_the_middle {
            return self.let_go_of_all();
        }
        if let (None, Some(signal)) = (self.status, self.requests.asked_by()) {
            self.status = Some(128 + signal);
            self.journal.write(&Entry::Note(
                "headcount was asked to end before the program did: what ran from then on is not \
                 counted."
                    .to_owned(),
            ))?;
            return self.let_go_of_all();
        }
        self.leave_the_others()
    }

    /// The program has ended: what it left behind goes on without us.
    pub fn leave_the_others(&mut self) -> io::Result<()> {
        let held = self.hold_all()?;
        let mut left: Vec<pid_t> = held
            .keys()
            .filter(|tid| self.counts(**tid))
            .map(|tid| self.threads[tid].pid)
            .collect();
        left.sort_unstable();
        left.dedup();
        let names = left.iter().map(|pid| {
            let name = proc::command(*pid).into_iter().next().unwrap_or_default();
            (name, *pid)
        });
        if let Some(note) = left_behind(&names.collect::<Vec<_>>()) {
            self.journal.write(&Entry::Note(note))?;
        }
        self.let_go_of_held(held)
    }

    /// The same for all processes that have an address space; some of their threads may be held.
    pub fn let_go_of_space(&mut self, space: usize, held: Held) -> io::Result<()> {
        if let Some(space) = self.spaces.get_mut(&space) {
            space.copies.is_given_up = false;
        }
        let scope = Scope {
            space: Some(space),
            but: None,
        };
        let held = self.hold(scope, held)?;
        let result = self.let_go_of(held, &[space]);
        let threads = self.threads.iter();
        let gone = threads.filter(|(_, thread)| thread.space == space);
        let gone: Vec<(pid_t, pid_t)> = gone.map(|(tid, it)| (*tid, it.pid)).collect();
        for (tid, pid) in gone {
            self.take_window(tid, space)?;
            self.threads.remove(&tid);
            self.processes.remove(&pid);
            self.end_process_counts(pid);
        }
        self.drop_unused_spaces();
        result
    }

    /// A thread that waits for a child in its memory cannot be stopped, and so not be let go of. The
    /// child is about to run another program, as a rule; but there is an end to patience.
    fn wait_for_borrowers(&mut self) -> io::Result<()> {
        let end = Instant::now() + PATIENCE;
        while self.threads.values().any(|it| it.waits_for_child) && Instant::now() < end {
            match look() {
                Ok(Some(event)) => self.handle(event)?,
                Ok(None) => std::thread::sleep(PAUSE),
                Err(error) => return kernel::gone_is_fine(Err(error)),
            }
        }
        Ok(())
    }

    fn let_go_of(&mut self, held: Held, spaces: &[usize]) -> io::Result<()> {
        self.lets_go = true;
        let result = self.let_go_one_by_one(held, spaces);
        self.lets_go = false;
        result
    }

    fn let_go_one_by_one(&mut self, held: Held, spaces: &[usize]) -> io::Result<()> {
        let mut result = Ok(());
        let mut leaving = Vec::new();
        for (_, (stopped, stop)) in held {
            self.forget_runtime(stopped.tid());
            match self.make_ready_to_leave(&stopped, stop) {
                Ok(signal) => leaving.push((stopped, signal)),
                Err(error) => {
                    self.end_if_ours(stopped.tid());
                    result = result.and(kernel::gone_is_fine(Err(error)));
                }
            }
        }
        for space in spaces {
            result = result.and(kernel::gone_is_fine(self.restore(*space)));
        }
        for (stopped, signal) in leaving {
            result = result.and(kernel::gone_is_fine(self.leave(stopped, signal)));
        }
        result
    }

    /// Makes all that is known of a thread as if it had never met a breakpoint; answers with the
    /// signal that it is to get.
    fn make_ready_to_leave(&mut self, stopped: &Stopped, stop: Stop) -> io::Result<c_int> {
        let signal = self.signal_to_keep(stopped, stop)?;
        if stop == Stop::SystemCall {
            interrupted_calls::start_again(stopped)?;
        }
        if std::mem::take(&mut self.thread(stopped).is_new) {
            let at = LoadAddr(stopped.instruction_pointer()?);
            self.arrives(stopped, at)?;
        }
        self.leaves(stopped)?;
        self.see_name(stopped);
        self.forget_gs(stopped)?;
        self.give_mask_back(stopped)?;
        Ok(signal)
    }

    /// Lets a thread go on without us; the first of an address space gives the slots back.
    fn leave(&mut self, stopped: Stopped, signal: c_int) -> io::Result<()> {
        let space = self.thread(&stopped).space;
        // One that we could not stop may still be in a slot.
        let mut threads = self.threads.values();
        let is_in_use = threads.any(|it| it.space == space && it.waits_for_child);
        if !is_in_use {
            self.unmap_all(&stopped, space)?;
        }
        self.keep_stopped(self.threads[&stopped.tid()].pid);
        stopped.detach(signal)
    }

    /// A thread that is let go of stands behind a trap: it is to run what was there. Nothing is made
    /// for it any more. Answers with the signal that it is to get.
    fn stand_before_trap(&mut self, stopped: &Stopped) -> io::Result<c_int> {
        let code = stopped.signal_info().map(|it| it.code);
        let behind = LoadAddr(stopped.instruction_pointer()?);
        let trap = LoadAddr(behind.0.wrapping_sub(1));
        let mut handling = self.handling.iter();
        let handling = handling.rfind(|it| it.tid == stopped.tid());
        let was_moved = handling.is_some_and(|it| it.trapped_at.is_some_and(|it| it != trap));
        match code {
            Some(FROM_INT3) if was_moved => Ok(0),
            Some(FROM_INT3) if self.is_our_trap(self.threads[&stopped.tid()].space, trap) => {
                stopped.go_to(trap.0)?;
                Ok(0)
            }
            _ => Ok(libc::SIGTRAP),
        }
    }

    /// Is there a trap of ours at an address, or was there one a moment ago?
    pub fn is_our_trap(&self, space: usize, at: LoadAddr) -> bool {
        match self.windows {
            Some(_) => self.has_our_trap(space, at),
            None => self
                .spaces
                .get(&space)
                .is_some_and(|it| it.breakpoint(at).is_some() || it.had_breakpoint(at)),
        }
    }

    /// The signal that a thread is to get when it goes on; none if it met a breakpoint.
    fn signal_to_keep(&mut self, stopped: &Stopped, stop: Stop) -> io::Result<c_int> {
        // It got no answer, and has asked nobody.
        if self.thread(stopped).asks.take().is_some() {
            return Ok(0);
        }
        match stop {
            Stop::Signal(libc::SIGTRAP)
                if self.thread(stopped).enters_handler && self.entered_handler(stopped)? =>
            {
                Ok(0)
            }
            Stop::Signal(libc::SIGTRAP) => match self.take_postponed(stopped)? {
                None => self.stand_before_trap(stopped),
                Some(signal) => {
                    // It may have met a trap instead of the step.
                    self.stand_before_trap(stopped)?;
                    stopped.set_whole_signal(&signal)?;
                    Ok(signal.number())
                }
            },
            Stop::Signal(signal) => Ok(signal),
            _ => Ok(0),
        }
    }
}

/// Lets threads that were held go on from where they are, as soon as nobody holds them any more.
pub fn go_on_all(held: Held) {
    for (_, (stopped, stop)) in held {
        put_back(Event::Stop(stopped, stop));
    }
}

/// What to say of processes that go on when the program has ended.
fn left_behind(left: &[(String, pid_t)]) -> Option<String> {
    const NAMED: usize = 5;
    let (_, first) = left.first()?;
    let name = |(name, pid): &(String, pid_t)| format!("{name} (process {pid})");
    let mut names: Vec<String> = left.iter().take(NAMED).map(name).collect();
    if left.len() > NAMED {
        names.push(format!("{} more", left.len() - NAMED));
    }
    Some(format!(
        "Not ended when the program had: {}. What ran there from then on is not counted; --wait \
         counts it, or `headcount attach {first}`.",
        names.join(", ")
    ))
}

/// Can a system call be made in this thread's name?
fn can_be_borrowed(stop: Stop) -> bool {
    matches!(stop, Stop::Interrupted | Stop::Clock | Stop::Signal(_))
}

/// A held thread of these in whose name system calls can be made.
fn take_one(held: &mut Held, wanted: impl Fn(&pid_t) -> bool) -> Option<(Stopped, Stop)> {
    let found = |tid: &pid_t, stop: Stop| wanted(tid) && can_be_borrowed(stop);
    let tid = *held.iter().find(|(tid, (_, stop))| found(tid, *stop))?.0;
    held.remove(&tid)
}
