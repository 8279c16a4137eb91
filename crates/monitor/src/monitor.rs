//! What the monitor knows, and the loop in which it learns more.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use headcount_model::LoadAddr;
use libc::pid_t;

use crate::attach::Hold;
use crate::calls::Calls;
use crate::catalog::Catalog;
use crate::copied_modules::Original;
use crate::countdown::{Stepping, first_event};
use crate::fate::Fate;
use crate::image::Position;
use crate::journal::{Entry, Journal};
use crate::kernel::AddressLimit;
use crate::kernel::{Pace, WholeSignal, gone_is_fine};
use crate::live::{Listener, Pauses, Request};
use crate::made_code::Looks;
use crate::module_file::{FileKey, ModuleFiles};
use crate::proc;
use crate::requests::Requests;
use crate::space::Space;
use crate::system_calls::{Call, Handler};
use crate::tallies::Tallies;
use crate::thread_counts::ThreadCounts;
use crate::used_before::UsedBefore;
use crate::values::{Found, Sum};
use crate::wait::{Event, Stop, Stopped, wait};
use crate::windows::Windows;
use crate::workshop::Workshop;
use crate::{Engine, Outcome, Reached, Settings, interrupted_calls};

/// A thread that we trace.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its process.
    pub pid: pid_t,
    /// Which address space it runs in.
    pub space: usize,
    /// It has not run yet.
    pub is_new: bool,
    /// Does the program think that SIGTRAP is blocked in this thread?
    pub trap_blocked: bool,
    /// Does a SIGTRAP of the program's own wait until it no longer does? Like all signals of old,
    /// it waits but once.
    pub holds_trap: bool,
    /// The system call it is in.
    pub call: Option<Call>,
    /// Is it about to make one that must be watched?
    pub is_watched: bool,
    /// Its signal handlers that have not returned: the system call by which they do must be seen.
    pub handlers: Vec<Handler>,
    /// It waits for a child that runs in its memory, and cannot be stopped until that is over.
    pub waits_for_child: bool,
    /// It is a child that runs in its parent's memory while the parent waits, and counts in the
    /// parent's name.
    pub borrows_window: bool,
    /// A signal that waits until the thread stands where its handler may send it back to.
    pub postponed: Option<Postponed>,
    /// It was asked to stop, so that we see where it is.
    pub is_looked_at: bool,
    /// It goes on into a signal handler.
    pub enters_handler: bool,
    /// It has just become another program.
    pub is_reborn: bool,
    /// It has shown us where it ends.
    pub is_dying: bool,
    /// It dies of a signal, and was moved out of its copy for that.
    pub has_left: bool,
    /// Where it was when we attached to it.
    pub start: Option<LoadAddr>,
    /// Module and block that it counted last.
    pub last: Option<(u32, u32)>,
    /// What it counted by value at the breakpoint that it met last.
    pub tallied: Vec<(Found, Sum)>,
    /// It goes on step by step, to where it is to stop.
    pub stepping: Option<Stepping>,
    /// It waits for an answer.
    pub asks: Option<Request>,
}

/// A signal that waits while its thread goes one instruction further.
#[derive(Clone, Debug)]
pub struct Postponed {
    pub signal: WholeSignal,
    /// Does the instruction store the flags, which tell of the step?
    pub stores_flags: bool,
}

/// A process that we trace.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Does the program think that SIGTRAP is ignored?
    pub trap_ignored: bool,
    /// What the program thinks that the limit of its address space is; `None` if that is not known.
    pub address_limit: Option<AddressLimit>,
    /// What it died of, and where.
    pub fate: Option<Fate>,
    /// It is not to be counted; we only hold it until it has memory of its own.
    pub is_passing: bool,
}

/// An event that is being dealt with.
#[derive(Clone, Copy, Debug)]
pub struct Handling {
    /// Whose it is.
    pub tid: pid_t,
    /// Where that thread stood when it stopped for a trap, and may stand no more.
    pub trapped_at: Option<LoadAddr>,
}

/// Everything about a run.
pub struct Monitor<'a> {
    pub settings: &'a Settings<'a>,
    pub journal: Journal,
    pub catalog: Catalog,
    /// The files of all modules, by number.
    pub files: ModuleFiles,
    pub spaces: HashMap<usize, Space>,
    pub threads: HashMap<pid_t, Thread>,
    pub processes: HashMap<pid_t, Process>,
    /// Children that stopped before their parent told of them.
    pub early: HashMap<pid_t, Stopped>,
    pub requests: Requests,
    /// Where others ask what was counted so far, if they can.
    pub listener: Option<Listener>,
    /// The process that the user named.
    pub main: pid_t,
    pub status: Option<i32>,
    pub hits: u64,
    /// How often a thread stopped for a system call.
    pub watched_calls: u64,
    /// When counting began.
    pub began: Instant,
    /// Does the journal say that the kernel's own code is not counted?
    pub has_named_vdso: bool,
    /// The counters of copies, if that is how we count.
    pub windows: Option<Windows>,
    /// What was made for modules that are counted by copies.
    pub workshops: Vec<Workshop>,
    /// Of how many copies of each the onlooker was told.
    pub told: Vec<usize>,
    /// The files of such modules.
    pub originals: HashMap<FileKey, Option<Original>>,
    /// What programs used of them.
    pub used_before: UsedBefore,
    /// If there is code that the program makes itself: how often threads were found in it.
    pub looks: Option<Looks>,
    /// What calls cost, if that is asked for.
    pub calls: Option<Calls>,
    /// What is counted by value.
    pub tallies: Option<Tallies>,
    /// What each thread counted, if that is asked for.
    pub thread_counts: Option<ThreadCounts>,
    /// The window whose counts are for nothing.
    pub vain: Option<u32>,
    /// Did we come to a program that already ran?
    pub in_the_middle: bool,
    /// Are its threads being brought to a stop for that? Until all stand still, nothing is changed.
    pub is_beginning: bool,
    /// Threads that are being brought to a stop, until all of them stand still. While some are waited
    /// for, others may have to be.
    pub holds: Vec<Hold>,
    /// Whose events are being dealt with, innermost last.
    pub handling: Vec<Handling>,
    /// Are we letting go of threads? They all stand still, and nothing is made for them any more.
    pub lets_go: bool,
    /// Do we let go of everything because we cannot go on?
    pub gives_up: bool,
    /// Where a thread has come to its last event.
    pub reached: Option<Reached>,
    /// Are processes that we let go of to stand still?
    pub stays_stopped: bool,
    /// Threads that have asked for something, and stand still until they are answered.
    pub askers: VecDeque<Stopped>,
    /// Pauses that the program asked for.
    pub pauses: Pauses,
    /// When a snapshot was taken last.
    pub last_moment: u64,
    next_space: usize,
}

impl<'a> Monitor<'a> {
    /// Of a process that is stopped, or soon will be.
    pub fn new(
        settings: &'a Settings<'a>,
        mut journal: Journal,
        requests: Requests,
        main: pid_t,
    ) -> io::Result<Self> {
        if settings.calls {
            journal.write(&Entry::Calls)?;
        }
        let windows = match settings.engine {
            Engine::Detour => {
                let mut windows = Windows::create(journal.folder())?;
                windows.first_event = settings.until.as_ref().map(first_event);
                if settings.calls {
                    windows.keep_logs();
                }
                if let Some(tallying) = &settings.tallying {
                    let mut tallies = tallying.tallies.iter();
                    let asked = tallies.position(|it| it.is_program);
                    let asked = asked.unwrap_or(tallying.tallies.len());
                    windows.keep_tables(asked as u8);
                }
                Some(windows)
            }
            Engine::Breakpoint => None,
        };
        let tallying = settings.tallying.as_ref();
        let tallies = tallying
            .map(|it| Tallies::new(it, &mut journal))
            .transpose()?;
        let thread_counts = settings.by_thread && windows.is_some();
        let thread_counts = thread_counts.then(|| ThreadCounts::create(journal.folder()));
        Ok(Self {
            settings,
            files: ModuleFiles::new(journal.folder()),
            listener: Listener::new(journal.folder()).ok(),
            journal,
            catalog: Catalog::default(),
            spaces: HashMap::new(),
            threads: HashMap::new(),
            processes: HashMap::new(),
            early: HashMap::new(),
            requests,
            main,
            status: None,
            hits: 0,
            watched_calls: 0,
            began: Instant::now(),
            has_named_vdso: false,
            windows,
            workshops: Vec::new(),
            told: Vec::new(),
            originals: HashMap::new(),
            used_before: UsedBefore::default(),
            looks: None,
            calls: settings.calls.then(Calls::default),
            tallies,
            thread_counts: thread_counts.transpose()?,
            vain: None,
            in_the_middle: false,
            is_beginning: false,
            holds: Vec::new(),
            handling: Vec::new(),
            lets_go: false,
            gives_up: false,
            reached: None,
            stays_stopped: false,
            askers: VecDeque::new(),
            pauses: Pauses::default(),
            last_moment: 0,
            next_space: 0,
        })
    }

    /// Counts until the program has ended, or all processes have, or until we are asked to let go.
    /// If we cannot go on, the program does, as if we had not been there.
    pub fn count(mut self) -> Outcome {
        let mut trouble = self.follow_safely().err();
        if let Some(trouble) = &trouble {
            self.stop_counting(trouble);
        }
        self.requests.done();
        let told = self.tell_the_end();
        trouble = trouble.or(told.err());
        let costly = self.costly_stops();
        // The process ends soon: to give thousands of small pieces of memory back is not worth it.
        std::mem::forget((self.workshops, self.originals));
        Outcome {
            status: self.status,
            trouble,
            reached: self.reached,
            hits: self.hits,
            costly,
            modules: self
                .catalog
                .images
                .into_iter()
                .map(|it| it.module)
                .collect(),
            files: self.files.into_all(),
        }
    }

    /// A fault of ours is no reason for the program to end.
    fn follow_safely(&mut self) -> io::Result<()> {
        let followed = catch_unwind(AssertUnwindSafe(|| self.follow()));
        followed.unwrap_or_else(|_| Err(io::Error::other("headcount failed (please report this)")))
    }

    fn follow(&mut self) -> io::Result<()> {
        loop {
            if self.requests.is_asked_to_let_go() {
                return self.end_as_asked();
            }
            if self.stays_stopped {
                return Ok(());
            }
            if self.status.is_some() && !self.settings.wait {
                return self.leave_the_others();
            }
            if self.requests.has_ticked() {
                self.look_at_threads()?;
            }
            if self.requests.is_asked_for_counts() {
                self.tell_counts()?;
            }
            self.answer_askers()?;
            if (self.settings.is_short_of_memory)() {
                return Err(io::Error::from_raw_os_error(libc::ENOMEM));
            }
            if self.requests.is_out_of_time() {
                return Err(io::Error::other("the limit of processor time (ulimit -t)"));
            }
            match wait() {
                Ok(Some(event)) => self.handle(event)?,
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Says in the journal what can be said only now.
    fn tell_the_end(&mut self) -> io::Result<()> {
        self.tell_strays()?;
        self.tell_made_code()?;
        self.take_windows()?;
        self.tell_calls()?;
        let ended = crate::launch::now();
        let windows = self.windows.as_ref().map_or(0, Windows::count);
        self.journal.end(ended, self.status, windows)?;
        self.remember();
        Ok(())
    }

    /// Is this a thread of whose making nobody told us? When it is ended with its process, nobody will.
    fn is_unborn(&self, tid: pid_t) -> bool {
        let is_known = |pid: pid_t| pid != tid && self.processes.contains_key(&pid);
        !self.threads.contains_key(&tid) && proc::process_of(tid).is_some_and(is_known)
    }

    /// Deals with one event. A thread that was killed under our hands is none of our trouble: its
    /// end is another event.
    pub fn handle(&mut self, event: Event) -> io::Result<()> {
        self.handling.push(Handling {
            tid: event.tid(),
            trapped_at: None,
        });
        let result = match event {
            Event::Ended(tid, ending) => self.ended(tid, ending),
            Event::Stop(stopped, Stop::Dying) if self.is_unborn(stopped.tid()) => {
                self.early.remove(&stopped.tid());
                stopped.resume(Pace::Free, 0)
            }
            Event::Stop(stopped, _) if !self.threads.contains_key(&stopped.tid()) => {
                self.early.insert(stopped.tid(), stopped);
                Ok(())
            }
            Event::Stop(stopped, stop) => self.stopped(stopped, stop),
        };
        gone_is_fine(result)?;
        self.handling.pop();
        Ok(())
    }

    fn stopped(&mut self, stopped: Stopped, stop: Stop) -> io::Result<()> {
        match stop {
            Stop::Signal(libc::SIGTRAP) => self.trap(stopped),
            Stop::Clock => {
                self.met_clock(&stopped)?;
                self.go_on(stopped, 0)
            }
            Stop::Signal(libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE)
                if self.met_unreadable(&stopped)? =>
            {
                self.go_on(stopped, 0)
            }
            Stop::Signal(signal) => self.deliver(stopped, signal),
            Stop::SystemCall => self.system_call(stopped),
            Stop::Birth => self.birth(stopped),
            Stop::Exec => self.exec(stopped),
            Stop::Dying => self.dying(stopped),
            Stop::Interrupted if self.threads[&stopped.tid()].is_new => self.first_stop(stopped),
            Stop::Interrupted => {
                interrupted_calls::start_again(&stopped)?;
                self.look_at_thread(&stopped)?;
                self.go_on(stopped, 0)
            }
            Stop::JobControl => stopped.resume(Pace::Listen, 0),
        }
    }

    /// What we know of a stopped thread.
    pub fn thread(&mut self, stopped: &Stopped) -> &mut Thread {
        let thread = self.threads.get_mut(&stopped.tid());
        thread.expect("`handle` lets only known threads through")
    }

    /// Takes a new address space in.
    pub fn add_space(&mut self, space: Space) -> usize {
        self.next_space += 1;
        self.spaces.insert(self.next_space, space);
        self.next_space
    }

    /// Forgets address spaces that no thread is in any more.
    pub fn drop_unused_spaces(&mut self) {
        let is_used = |number: usize| self.threads.values().any(|it| it.space == number);
        let unused = self.spaces.keys().copied();
        let unused: Vec<usize> = unused.filter(|number| !is_used(*number)).collect();
        for number in unused {
            self.spaces.remove(&number);
            if let Some(tallies) = &mut self.tallies {
                tallies.pieces.forget(number);
            }
        }
    }

    /// Where in which counted block of an address space an address is; with the module's number.
    fn position(&self, space: usize, at: LoadAddr) -> Option<(usize, Option<Position>)> {
        let loaded = self.spaces.get(&space)?.module_at(at)?;
        let image = self.catalog.images.get(loaded.image)?;
        Some((loaded.image, image.position(loaded.bias.undo(at)?)?))
    }

    /// Is the thread's process counted, and not only held until it has memory of its own?
    pub fn counts(&self, tid: pid_t) -> bool {
        let process = self.threads.get(&tid).map(|thread| thread.pid);
        let process = process.and_then(|pid| self.processes.get(&pid));
        process.is_some_and(|process| !process.is_passing)
    }

    /// A thread will go on at an address, not having come there through the block's beginning.
    pub fn arrives(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<()> {
        self.arrives_in_copy(stopped, at)?;
        self.shift(stopped.tid(), at, 1)
    }

    /// A thread will not go on at an address, the next it would have gone to.
    pub fn departs(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<()> {
        self.departs_from_copy(stopped, at)?;
        self.shift(stopped.tid(), at, -1)
    }

    /// A thread goes away from where it is; it now stands in the original code.
    pub fn leaves(&mut self, stopped: &Stopped) -> io::Result<LoadAddr> {
        match self.windows {
            Some(_) => self.leave_copy(stopped),
            None => {
                let at = self.leave_slot(stopped)?;
                self.departs(stopped, at)?;
                Ok(at)
            }
        }
    }

    fn shift(&mut self, tid: pid_t, at: LoadAddr, delta: i64) -> io::Result<()> {
        match self.shifted(tid, at, delta) {
            Some(entry) => self.journal.write(&entry),
            None => Ok(()),
        }
    }

    /// What it means that visits of a thread begin or end at an address, if anything.
    pub fn shifted(&self, tid: pid_t, at: LoadAddr, delta: i64) -> Option<Entry> {
        let thread = self.threads.get(&tid).filter(|_| self.counts(tid))?;
        let (module, position) = self.position(thread.space, at)?;
        match position {
            // At a block's beginning the breakpoint counts, or has been made to not have counted.
            Some(Position { instruction: 0, .. }) => None,
            Some(Position { block, instruction }) => Some(Entry::Shift {
                module,
                block,
                from: instruction,
                delta,
            }),
            None => Some(Entry::Note(format!(
                "A thread ran code in the middle of an instruction of {} (load address {at}); \
                 what it ran there is not counted.",
                self.catalog.images[module].module.path
            ))),
        }
    }
}
