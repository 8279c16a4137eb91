//! A sign of life while something takes longer than two seconds.

use crate::talk;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long to say nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does the work; if it takes long, says what is going on: on a terminal in a line that counts
/// seconds and goes away, elsewhere once.
pub fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let _sign = Sign::of(what);
    work()
}

/// Says what is going on, as long as it is there.
pub struct Sign {
    done: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sign {
    pub fn of(what: &str) -> Self {
        let (done, until_done) = mpsc::channel::<()>();
        let what = what.to_owned();
        // Where no thread can be had, nothing is said.
        let thread = std::thread::Builder::new().spawn(move || report(&what, &until_done));
        Self {
            done: Some(done),
            thread: thread.ok(),
        }
    }

    /// None, where nobody looks.
    pub fn on_terminal(what: &str) -> Option<Self> {
        std::io::stderr().is_terminal().then(|| Self::of(what))
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        self.done = None;
        // It takes its line away before anything else is said; if it panicked, it has said so.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The same, but on a terminal only: elsewhere the line would be among the program's own words.
pub fn during_on_terminal<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let _sign = Sign::on_terminal(what);
    work()
}

fn report(what: &str, until_done: &mpsc::Receiver<()>) {
    let begin = Instant::now();
    let still_working = |wait| until_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
    if !still_working(PATIENCE) {
        return;
    }
    let mut stderr = std::io::stderr();
    if !stderr.is_terminal() {
        talk::say(format!("{what} ..."));
        return;
    }
    let what = headcount_report::visible(what);
    loop {
        let seconds = begin.elapsed().as_secs();
        let _ = write!(stderr, "\rheadcount: {what} ... {seconds} s");
        let _ = stderr.flush();
        if !still_working(Duration::from_secs(1)) {
            break;
        }
    }
    let _ = write!(stderr, "\r\x1b[K");
}

/// A line that takes the place of the one before: on a terminal only.
pub fn line(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let text = headcount_report::visible(text);
        let _ = write!(stderr, "\r\x1b[Kheadcount: {text}");
        let _ = stderr.flush();
    }
}

/// Takes such a line away.
pub fn clear() {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K");
    }
}
