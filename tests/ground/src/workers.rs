//! How is a list of jobs shared out, and how long will it take?

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Does every job once, `workers` at a time, and returns the answers in the
/// order of the jobs.
pub fn share_out<J: Sync, A: Send>(
    jobs: &[J],
    workers: usize,
    work: impl Fn(&J) -> A + Sync,
    mut progress: impl FnMut(usize, &A),
) -> Vec<A> {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let mut answers: Vec<Option<A>> = jobs.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { break };
                    if send.send((at, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (done, (at, answer)) in receive.iter().enumerate() {
            progress(done + 1, &answer);
            answers[at] = Some(answer);
        }
    });
    answers.into_iter().flatten().collect()
}

/// A line on stderr that says how far we are: rewritten in place on a
/// terminal, now and then elsewhere.
pub struct Progress {
    who: &'static str,
    start: Instant,
    total: usize,
    last: Option<Instant>,
    terminal: bool,
}

impl Progress {
    pub fn new(who: &'static str, total: usize) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        Progress {
            who,
            start: Instant::now(),
            total,
            last: None,
            terminal,
        }
    }

    /// `what` says what is done: "checked, 2 failed".
    pub fn show(&mut self, done: usize, what: &str) {
        self.show_share(done, done as f64 / self.total.max(1) as f64, what);
    }

    /// The same, where jobs are so unequal that their number does not tell how much of the work is
    /// done.
    pub fn show_share(&mut self, done: usize, share: f64, what: &str) {
        let pause = Duration::from_secs(if self.terminal { 0 } else { 30 });
        if done < self.total && self.last.is_some_and(|last| last.elapsed() < pause) {
            return;
        }
        self.last = Some(Instant::now());
        let left = remaining(self.start.elapsed(), share);
        let line = format!(
            "{}: {done}/{} {what}, about {left} left",
            self.who, self.total
        );
        let mut stderr = std::io::stderr().lock();
        // Nothing is lost if nobody can read this.
        let _ = if self.terminal {
            write!(
                stderr,
                "\r\x1b[K{line}{}",
                if done == self.total { "\n" } else { "" }
            )
        } else {
            writeln!(stderr, "{line}")
        };
    }
}

fn remaining(elapsed: Duration, share: f64) -> String {
    let left = elapsed.as_secs_f64() * (1.0 - share) / share.max(1e-6);
    if left < 90.0 {
        format!("{left:.0} s")
    } else {
        format!("{:.0} min", left / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        let mut seen = 0;
        let answers = share_out(&jobs, 4, |job| job * 2, |done, _| seen = done);
        assert_eq!(answers, jobs.iter().map(|job| job * 2).collect::<Vec<_>>());
        assert_eq!(seen, 100);
    }

    #[test]
    fn the_rest_takes_as_long_as_the_first_part() {
        assert_eq!(remaining(Duration::from_secs(10), 0.5), "10 s");
        assert_eq!(remaining(Duration::from_secs(600), 1.0 / 3.0), "20 min");
    }
}
