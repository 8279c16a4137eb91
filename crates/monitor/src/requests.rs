//! Signals that headcount itself gets.
//!
//! Ctrl-C and its kin come from the terminal to the program as well, which decides what to do.
//! Others are passed on. When there is no program to pass them on to, or when we are attached to
//! one that is not ours to end, they ask us to let go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use crate::kernel::{self, Caught, Waiter};

/// The signals that ask us for something.
pub const OURS: [c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// What we were asked.
#[derive(Clone, Debug)]
pub struct Requests {
    state: Arc<State>,
    waiter: Waiter,
}

#[derive(Debug, Default)]
struct State {
    let_go: AtomicBool,
    /// The program is not ours, or has ended.
    nobody_to_tell: AtomicBool,
    done: AtomicBool,
    ticked: AtomicBool,
}

/// How often a tick comes.
const TICK: Duration = Duration::from_millis(50);

impl Requests {
    /// Takes the signals of this process over. `program` is the one we started; `None` if we are
    /// attached to one.
    pub fn listen(program: Option<pid_t>, duration: Option<Duration>) -> Self {
        let state = Arc::new(State::default());
        state
            .nobody_to_tell
            .store(program.is_none(), Ordering::Relaxed);
        kernel::block_signals(&OURS);
        let waiter = kernel::this_thread();
        let end = duration.map(|duration| Instant::now() + duration);
        let theirs = Arc::clone(&state);
        thread::spawn(move || {
            loop {
                let left = end.map(|end| end.saturating_duration_since(Instant::now()));
                if !theirs.answer(kernel::next_signal(&OURS, left), program) {
                    break;
                }
            }
            // The wait may be about to begin: knock until somebody hears.
            while !theirs.done.load(Ordering::Acquire) {
                waiter.knock();
                thread::sleep(Duration::from_millis(10));
            }
        });
        Self { state, waiter }
    }

    /// Are we to let go of all processes?
    pub fn is_asked_to_let_go(&self) -> bool {
        let asked = self.state.let_go.load(Ordering::Acquire);
        if asked {
            self.done();
        }
        asked
    }

    /// Nobody waits any more.
    pub fn done(&self) {
        self.state.done.store(true, Ordering::Release);
    }

    /// From now on, waits end now and then for [`Self::has_ticked`].
    pub fn tick(&self) {
        let Self { state, waiter } = self.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(TICK);
                if state.done.load(Ordering::Acquire) {
                    break;
                }
                state.ticked.store(true, Ordering::Release);
                waiter.knock();
            }
        });
    }

    /// Has a tick come?
    pub fn has_ticked(&self) -> bool {
        self.state.ticked.swap(false, Ordering::AcqRel)
    }

    /// From now on signals are for us.
    pub fn program_has_ended(&self) {
        self.state.nobody_to_tell.store(true, Ordering::Release);
    }
}

impl State {
    /// Deals with one signal. `false`: we are to let go.
    fn answer(&self, caught: Option<Caught>, program: Option<pid_t>) -> bool {
        let Some(caught) = caught else {
            self.let_go.store(true, Ordering::Release);
            return false;
        };
        match program {
            Some(pid) if !self.nobody_to_tell.load(Ordering::Acquire) => {
                let from_terminal =
                    caught.from_kernel && matches!(caught.signal, libc::SIGINT | libc::SIGQUIT);
                if !from_terminal {
                    kernel::kill(pid, caught.signal);
                }
                true
            }
            _ => {
                self.let_go.store(true, Ordering::Release);
                false
            }
        }
    }
}
