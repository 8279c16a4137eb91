//! Samples a program that somebody else starts, and changes while it runs.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use headcount_binary::{FileBytes, Wanted};
use headcount_model::Samples;

use crate::Error;
use crate::clocks::{Begin, Clocks, Rate};
use crate::record::{CopyRoom, OriginalOf, Record, What};
use crate::sampler::{Sampling, now};

/// Reads a file as a process sees it.
pub type ReadFileOf = fn(u32, &Path) -> Option<FileBytes>;

/// Finds the file that the debug information of a program was moved to.
pub type DebugFileOf = fn(&Path, &Wanted<'_>) -> Option<FileBytes>;

/// Samples that are taken in a thread of their own.
pub struct Background {
    news: Sender<Record>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Samples>,
}

impl Background {
    /// Begins when the process becomes a program.
    pub fn start(
        pid: i32,
        frequency: u32,
        stack: u32,
        read: ReadFileOf,
        find: DebugFileOf,
    ) -> Result<Self, Error> {
        let clocks = Clocks::of(&[pid], Begin::AtExec, Rate { frequency, stack })?;
        let (news, heard) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let until = is_over.clone();
        let work = move || sample(clocks, read, find, &heard, &until);
        let thread = std::thread::Builder::new().spawn(work);
        let thread = thread.map_err(|error| Error::Io("cannot start a thread", error))?;
        Ok(Self {
            news,
            is_over,
            thread,
        })
    }

    /// A process has room for copies of code, all of which come under the same number.
    pub fn has_room(&self, pid: u32, region: Range<u64>, bias: u64, number: usize) {
        let room = CopyRoom {
            region,
            bias,
            number,
        };
        self.tell(pid, What::HasRoom(room));
    }

    /// There is a copy at this place in such rooms. `original` knows, for each place in it, which
    /// instruction of the file it stands for, and whether a return address is on the stack there
    /// that is not the program's.
    pub fn has_copy(&self, number: usize, place: Range<u64>, original: OriginalOf) {
        self.tell(0, What::HasCopy(number, place, original));
    }

    fn tell(&self, pid: u32, what: What) {
        let record = Record {
            time: now(),
            pid,
            tid: pid,
            what,
        };
        // Whoever does not listen any more has ended.
        let _ = self.news.send(record);
    }

    /// What was seen until now.
    pub fn finish(self) -> Option<Samples> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().ok()
    }
}

fn sample(
    clocks: Clocks,
    read: ReadFileOf,
    find: DebugFileOf,
    heard: &Receiver<Record>,
    is_over: &AtomicBool,
) -> Samples {
    let mut sampling = Sampling::new(clocks, &read, &find);
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        sampling.pending.extend(heard.try_iter());
        sampling.read();
        if is_last {
            break;
        }
        // When all processes have ended, there is nothing to wait for but the end.
        if sampling.sleep(None) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    Samples {
        is_counted: true,
        ..sampling.finish().0
    }
}
