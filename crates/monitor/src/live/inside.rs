//! What the program itself asks for, by an instruction that does nothing (`headcount_request`).
//!
//! Copies trap before it, and breakpoints stand on it. The thread is moved behind it, as if it had run,
//! and stands still until it has its answer; whatever happens to it before that (its process is let
//! go of, it is killed), it has asked nobody. Answers wait until nothing else is being dealt with,
//! because all threads may have to be held for them.

use std::io;
use std::time::Instant;

use headcount_model::LoadAddr;
use headcount_request::{INSTRUCTION, LONGEST_NAME, answer, request};
use libc::pid_t;

use crate::attach::{Held, go_on_all};
use crate::journal::Entry;
use crate::kernel::{self, gone_is_fine};
use crate::live::{Moment, Part, Paused, Snapshot, check_name, marks};
use crate::monitor::Monitor;
use crate::wait::{Stop, Stopped, look};
use crate::{Asked, NoAnswer};

/// So many phases a program may begin. Each is a file with all counters, and a run in the profile.
const MOST_MARKS: usize = 1000;

/// What a thread has asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    number: u64,
    /// Where a text is, and how many bytes it has at most.
    text: (LoadAddr, u64),
    /// Where the thread trapped.
    trap: LoadAddr,
}

/// Pauses of the whole run, and its phases.
#[derive(Debug, Default)]
pub struct Pauses {
    /// How many have begun and not ended.
    depth: u32,
    /// What was counted in those that have ended; less what was counted before one that goes on.
    part: Part,
    /// Has there been any?
    have_been: bool,
    /// How many phases the program has begun.
    marks: usize,
}

impl Monitor<'_> {
    /// A thread met a trap of ours at an instruction by which programs ask for something: it goes on
    /// behind that.
    pub fn met_request(
        &mut self,
        stopped: &Stopped,
        trap: LoadAddr,
        behind: LoadAddr,
    ) -> io::Result<()> {
        let registers = stopped.registers()?;
        stopped.go_to(behind.0)?;
        if self.counts(stopped.tid()) && !self.lets_go {
            self.thread(stopped).asks = Some(Request {
                number: registers.rdi,
                text: (LoadAddr(registers.rsi), registers.rdx),
                trap,
            });
        }
        Ok(())
    }

    /// A signal comes before the answer: the handler runs first, and then the thread asks again.
    pub fn ask_later(&mut self, stopped: &Stopped) -> io::Result<()> {
        match self.thread(stopped).asks.take() {
            Some(request) => stopped.go_to(request.trap.0),
            None => Ok(()),
        }
    }

    /// A thread that has asked stands still until it is answered.
    pub fn park(&mut self, stopped: Stopped) {
        self.askers.push_back(stopped);
    }

    /// A thread ends: it needs no answer.
    pub fn forget_asker(&mut self, tid: pid_t) {
        self.askers.retain(|it| it.tid() != tid);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.asks = None;
        }
    }

    /// Threads that wait for answers and are to be held.
    pub fn parked(&mut self, wanted: impl Fn(&Self, pid_t) -> bool) -> Held {
        let all = std::mem::take(&mut self.askers);
        let (held, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|it| wanted(self, it.tid()));
        self.askers.extend(others);
        let held = held.into_iter();
        held.map(|it| (it.tid(), (it, Stop::Interrupted))).collect()
    }

    /// Answers all that have asked.
    pub fn answer_askers(&mut self) -> io::Result<()> {
        while let Some(asker) = self.askers.pop_front() {
            self.answer_asker(asker)?;
        }
        Ok(())
    }

    fn answer_asker(&mut self, stopped: Stopped) -> io::Result<()> {
        let tid = stopped.tid();
        let begin = Instant::now();
        let Some(request) = self.threads.get(&tid).and_then(|it| it.asks) else {
            return Ok(());
        };
        let mut held = Held::from([(tid, (stopped, Stop::Interrupted))]);
        let text = match self.checked(tid, &request) {
            Ok(text) => text,
            Err(refused) => {
                if request.number == request::PAUSE {
                    self.journal.write(&Entry::Note(
                        "The program asked that nothing be counted for a while. That cannot be while \
                         something is counted by value: it was refused, and all was counted."
                            .to_owned(),
                    ))?;
                }
                return self.reply(held.remove(&tid), refused);
            }
        };
        let Some(taken) = self.try_snapshot(&mut held)? else {
            return self.ask_again(held);
        };
        let threads = held.len();
        let asker = held.remove(&tid);
        let taken = taken.map(|mut it| {
            (it.moment.threads, it.moment.held) = (threads, begin.elapsed());
            it
        });
        let value = match taken {
            // A pause begins or ends for all at once.
            Ok(snapshot) => {
                let turned = self.turn(&request, &snapshot);
                go_on_all(held);
                match turned {
                    Some(value) => value,
                    None => self.asked(&request, &text, &snapshot),
                }
            }
            Err(_) => {
                go_on_all(held);
                answer::FAILED
            }
        };
        self.reply(asker, value)
    }

    /// One of the threads could not be held: another attempt, when it has gone on.
    fn ask_again(&mut self, held: Held) -> io::Result<()> {
        let threads = held.len();
        go_on_all(held);
        for _ in 0..=threads {
            if let Some(event) = look()? {
                self.handle(event)?;
            }
        }
        kernel::give_way();
        Ok(())
    }

    /// The text of a request; or what can be said against it.
    fn checked(&self, tid: pid_t, request: &Request) -> Result<String, i64> {
        match request.number {
            request::QUERY => {
                let text = self.text(tid, request).ok_or(answer::NO_SUCH_EVENT)?;
                match (self.settings.has_event)(&text) {
                    true => Ok(text),
                    false => Err(answer::NO_SUCH_EVENT),
                }
            }
            request::MARK if self.pauses.marks >= MOST_MARKS => Err(answer::FAILED),
            request::MARK => {
                let text = self.text(tid, request).ok_or(answer::BAD_NAME)?;
                match check_name(&text) {
                    Ok(()) => Ok(text),
                    Err(_) => Err(answer::BAD_NAME),
                }
            }
            request::RESUME if self.pauses.depth == 0 => Err(answer::NOT_PAUSED),
            // Tables go on counting.
            request::PAUSE if self.counts_by_value() => Err(answer::FAILED),
            request::PAUSE | request::RESUME => Ok(String::new()),
            _ => Err(answer::NO_SUCH_REQUEST),
        }
    }

    /// The text of a request; none if it is not there, or too long.
    fn text(&self, tid: pid_t, request: &Request) -> Option<String> {
        let space = self.spaces.get(&self.threads.get(&tid)?.space)?;
        let (start, most) = request.text;
        let mut text = Vec::new();
        // Byte by byte: what lies behind its end may not be mapped.
        while (text.len() as u64) < most {
            let mut byte = [0];
            let at = start.0.checked_add(text.len() as u64)?;
            space.memory.read(LoadAddr(at), &mut byte).ok()?;
            if byte == [0] {
                break;
            }
            text.extend(byte);
            if text.len() > LONGEST_NAME {
                return None;
            }
        }
        String::from_utf8(text).ok()
    }

    /// Begins or ends a pause. `None`: that is not what was asked for.
    fn turn(&mut self, request: &Request, snapshot: &Snapshot) -> Option<i64> {
        let turned = match request.number {
            request::PAUSE => {
                self.pauses.depth = self.pauses.depth.saturating_add(1);
                match self.pauses.depth {
                    1 => self.begin_pause(snapshot),
                    _ => Ok(()),
                }
            }
            request::RESUME => {
                self.pauses.depth = self.pauses.depth.saturating_sub(1);
                match self.pauses.depth {
                    0 => self.end_pause(snapshot),
                    _ => Ok(()),
                }
            }
            _ => return None,
        };
        Some(match turned {
            Ok(()) => answer::DONE,
            Err(_) => answer::FAILED,
        })
    }

    fn begin_pause(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let Snapshot {
            windows,
            counters,
            moment,
            ..
        } = snapshot;
        let pauses = &mut self.pauses;
        pauses.have_been = true;
        pauses.part.add(windows, counters, &moment.owed, -1);
        let since = self.journal.begin_pause();
        let paused = Paused::new(self.pauses.part.clone(), Some(since));
        paused.keep(self.journal.folder())
    }

    fn end_pause(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        // The snapshot says what it was in all.
        self.journal.end_pause();
        self.pauses.part = snapshot.paused.clone().unwrap_or_default();
        let paused = Paused::new(self.pauses.part.clone(), None);
        paused.keep(self.journal.folder())
    }

    /// What was counted in pauses up to a moment; `None` if there was none.
    pub(super) fn paused_until(
        &self,
        windows: &[u64],
        counters: &[Vec<u64>],
        moment: &Moment,
    ) -> Option<Part> {
        let Pauses {
            part, have_been, ..
        } = &self.pauses;
        let mut part = have_been.then(|| part.clone())?;
        if let Some(moves) = self.journal.moves_in_pause() {
            let moves: Vec<_> = moves.entries().collect();
            part.add(windows, counters, moves.iter().chain(&moment.owed), 1);
        }
        Some(part)
    }

    /// Answers what was asked of a moment.
    fn asked(&mut self, request: &Request, text: &str, snapshot: &Snapshot) -> i64 {
        let folder = self.journal.folder();
        if request.number == request::MARK {
            self.pauses.marks += 1;
            let kept = super::answer::in_file(snapshot)
                .and_then(|file| marks::keep(folder, text, &snapshot.moment, &file));
            return match kept {
                Ok(()) => answer::DONE,
                Err(_) => answer::FAILED,
            };
        }
        let (journal, routines) = self.journal.files();
        let Ok(so_far) = snapshot.so_far(folder, journal, routines) else {
            return answer::FAILED;
        };
        let images = self.catalog.images.iter();
        let modules: Vec<_> = images.map(|it| it.module.clone()).collect();
        let asked = Asked {
            event: text,
            so_far,
            modules: &modules,
            files: self.files.all(),
        };
        match (self.settings.answer)(asked) {
            Ok(number) => i64::try_from(number).unwrap_or(answer::FAILED),
            Err(NoAnswer) => answer::FAILED,
        }
    }

    /// Gives a thread its answer, and lets it go on.
    fn reply(&mut self, asker: Option<(Stopped, Stop)>, value: i64) -> io::Result<()> {
        let Some((stopped, _)) = asker else {
            return Ok(());
        };
        let Some(thread) = self.threads.get_mut(&stopped.tid()) else {
            return Ok(());
        };
        thread.asks = None;
        let replied = stopped.registers().and_then(|mut registers| {
            registers.rax = value.cast_unsigned();
            stopped.set_registers(&registers)
        });
        gone_is_fine(replied.and_then(|()| self.go_on(stopped, 0)))
    }
}

/// Do these bytes begin with the instruction by which programs ask?
pub fn is_request(code: &[u8]) -> bool {
    code.starts_with(&INSTRUCTION)
}
