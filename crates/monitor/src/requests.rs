//! Signals that headcount itself gets.
//!
//! Ctrl-C and its kin come from the terminal to the program as well, which decides what to do.
//! Others are passed on. When there is no program to pass them on to, or when we are attached to
//! one that is not ours to end, they ask us to let go. Who asks again is heard: see [`answer`].
//!
//! No thread is needed for that, which a limit could deny us: handlers do it, and a timer makes sure
//! that a wait which is about to begin ends, too.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use crate::inherited;
use crate::kernel::{self, Caught};

/// The signals that ask us for something.
pub const OURS: [c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// How often a tick comes.
const TICK: Duration = Duration::from_millis(50);

/// How often we are reminded of what we were asked.
const REMIND: Duration = Duration::from_millis(10);

/// Signals that come so soon after another are the same request: `timeout` sends two.
const AT_ONCE: u64 = 1000; // milliseconds

/// How far we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    /// Our program runs.
    Program,
    /// Our program has ended, others go on; or we are attached to one that is not ours.
    Others,
    /// We let go of our program.
    LettingGo,
    /// We let go of one that is not ours: nothing may keep us from that.
    Restoring,
    /// Nothing is counted any more.
    Over,
}

const STAGES: [Stage; 5] = [
    Stage::Program,
    Stage::Others,
    Stage::LettingGo,
    Stage::Restoring,
    Stage::Over,
];

/// What a signal makes us do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Nothing,
    /// The program is to decide.
    PassOn,
    /// Let go of what we count, and end.
    LetGo,
    /// End now; what we trace ends with us.
    End,
}

/// The answer to a signal. The first of our program's life is the program's; if it goes on all the
/// same, the next one is ours, and so is one after that.
fn answer(stage: Stage, from_terminal: bool, is_first: bool, is_repeated: bool) -> Answer {
    match stage {
        Stage::Program if from_terminal => Answer::Nothing,
        Stage::Program if is_first || is_repeated => Answer::PassOn,
        _ if is_repeated => Answer::Nothing,
        Stage::Program | Stage::Others => Answer::LetGo,
        Stage::LettingGo | Stage::Over => Answer::End,
        Stage::Restoring => Answer::Nothing,
    }
}

// What the handler and the rest of us share. A process has one program at a time.
static STAGE: AtomicU8 = AtomicU8::new(Stage::Over as u8);
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// When the first signal of the last request came, in milliseconds; 0: there was none.
static ASKED: AtomicU64 = AtomicU64::new(0);
/// Which signal asked us to let go.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static TICKED: AtomicBool = AtomicBool::new(false);
static IS_OUT_OF_TIME: AtomicBool = AtomicBool::new(false);
static ASKED_FOR_COUNTS: AtomicBool = AtomicBool::new(false);
static TICKS: AtomicBool = AtomicBool::new(false);

/// What we were asked.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    end: Option<Instant>,
}

impl Requests {
    /// Takes the signals of this process over. `program` is the one we started; `None` if we are
    /// attached to one.
    pub fn listen(program: Option<pid_t>) -> Self {
        let stage = match program {
            Some(_) => Stage::Program,
            None => Stage::Others,
        };
        PROGRAM.store(program.unwrap_or(0), Ordering::Release);
        ASKED.store(0, Ordering::Release);
        ASKED_FOR_COUNTS.store(false, Ordering::Release);
        TICKS.store(false, Ordering::Release);
        SIGNAL.store(0, Ordering::Release);
        set(stage);
        // What the user does not want us to hear we do not hear.
        let wanted = OURS.into_iter().filter(|it| !inherited::was_ignored(*it));
        let more = [libc::SIGALRM, libc::SIGXCPU, libc::SIGIO];
        let signals: Vec<c_int> = wanted.chain(more).collect();
        kernel::answer_signals(&signals, heard);
        Self { end: None }
    }

    /// Counting begins, and is to take so long.
    pub fn begin(&mut self, duration: Duration) {
        self.end = Some(Instant::now() + duration);
        kernel::alarm(Some(duration), REMIND);
        // Whoever asked before is not to wait for that.
        if self.is_asked_to_let_go() {
            kernel::alarm(Some(REMIND), REMIND);
        }
    }

    /// Are we to let go of all processes?
    pub fn is_asked_to_let_go(&self) -> bool {
        let is_late = self.end.is_some_and(|end| end <= Instant::now());
        if is_late && stage() == Stage::Others {
            set(Stage::Restoring);
        }
        matches!(stage(), Stage::LettingGo | Stage::Restoring)
    }

    /// The signal that asked us to let go of our program.
    pub fn asked_by(&self) -> Option<c_int> {
        let signal = SIGNAL.load(Ordering::Acquire);
        (signal != 0).then_some(signal)
    }

    /// Are we about to be ended, because we may take no more of the processor's time?
    pub fn is_out_of_time(&self) -> bool {
        IS_OUT_OF_TIME.load(Ordering::Acquire)
    }

    /// Nobody waits any more.
    pub fn done(&self) {
        kernel::alarm(None, Duration::ZERO);
        set(Stage::Over);
    }

    /// From now on, waits end now and then for [`Self::has_ticked`].
    pub fn tick(&self) {
        TICKS.store(true, Ordering::Release);
        kernel::alarm(Some(TICK), TICK);
    }

    /// Has a tick come?
    pub fn has_ticked(&self) -> bool {
        TICKED.swap(false, Ordering::AcqRel)
    }

    /// Does somebody want to know what was counted so far?
    pub fn is_asked_for_counts(&self) -> bool {
        ASKED_FOR_COUNTS.swap(false, Ordering::AcqRel)
    }

    /// All who wanted to know have been told: the timer is for what it was for before.
    pub fn has_told(&self) {
        match self.end {
            Some(end) => kernel::alarm(Some(end.saturating_duration_since(Instant::now())), REMIND),
            None if TICKS.load(Ordering::Acquire) => self.tick(),
            None => kernel::alarm(None, Duration::ZERO),
        }
        // A request may have come meanwhile.
        if self.is_asked_to_let_go() || ASKED_FOR_COUNTS.load(Ordering::Acquire) {
            kernel::alarm(Some(REMIND), REMIND);
        }
    }

    /// From now on signals are for us.
    pub fn program_has_ended(&self) {
        set(Stage::Others);
    }
}

fn stage() -> Stage {
    STAGES[usize::from(STAGE.load(Ordering::Acquire))]
}

fn set(stage: Stage) {
    STAGE.store(stage as u8, Ordering::Release);
}

/// Deals with one signal, whatever it interrupts.
fn heard(caught: Caught) {
    match caught.signal {
        libc::SIGALRM => TICKED.store(true, Ordering::Release),
        libc::SIGXCPU => IS_OUT_OF_TIME.store(true, Ordering::Release),
        libc::SIGIO => {
            ASKED_FOR_COUNTS.store(true, Ordering::Release);
            // The wait may be about to begin.
            kernel::alarm(Some(REMIND), REMIND);
        }
        signal => heard_request(signal, caught.from_kernel),
    }
}

fn heard_request(signal: c_int, from_kernel: bool) {
    let from_terminal = from_kernel && matches!(signal, libc::SIGINT | libc::SIGQUIT);
    let now = kernel::milliseconds();
    let before = ASKED.load(Ordering::Acquire);
    let is_repeated = before != 0 && now - before < AT_ONCE;
    if !is_repeated {
        ASKED.store(now, Ordering::Release);
    }
    let program = PROGRAM.load(Ordering::Acquire);
    match answer(stage(), from_terminal, before == 0, is_repeated) {
        Answer::Nothing => {}
        Answer::PassOn => kernel::kill(program, signal),
        Answer::LetGo => {
            SIGNAL.store(signal, Ordering::Release);
            set(match program {
                0 => Stage::Restoring,
                _ => Stage::LettingGo,
            });
            // The wait may be about to begin.
            kernel::alarm(Some(REMIND), REMIND);
        }
        Answer::End => kernel::end_now(128 + signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_again_is_heard() {
        let stages = [Stage::Program, Stage::LettingGo];
        // `timeout` asks twice at once.
        assert_eq!(answer(stages[0], false, true, false), Answer::PassOn);
        assert_eq!(answer(stages[0], false, false, true), Answer::PassOn);
        assert_eq!(answer(stages[0], false, false, false), Answer::LetGo);
        assert_eq!(answer(stages[1], false, false, true), Answer::Nothing);
        assert_eq!(answer(stages[1], false, false, false), Answer::End);
    }

    #[test]
    fn the_terminal_asks_the_program_while_it_is_there() {
        assert_eq!(answer(Stage::Program, true, true, false), Answer::Nothing);
        assert_eq!(answer(Stage::Program, true, false, false), Answer::Nothing);
        assert_eq!(answer(Stage::Others, true, true, false), Answer::LetGo);
        assert_eq!(answer(Stage::Over, true, false, false), Answer::End);
    }

    #[test]
    fn nothing_keeps_us_from_restoring_what_is_not_ours() {
        assert_eq!(
            answer(Stage::Restoring, false, false, false),
            Answer::Nothing
        );
    }
}
