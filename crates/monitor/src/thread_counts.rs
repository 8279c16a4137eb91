//! What each thread counted, if that is asked for.
//!
//! Windows go from thread to thread and are never emptied: what a thread counted is what its window says
//! when it ends, less what it said when the thread began; and the visits of that time. That goes into the
//! file `threads` in the folder of the run, a record for each thread, in the order in which they ended. A
//! thread that becomes another program has a record for each of the two.
//!
//! What is in no record was counted by a thread that had not ended when headcount was killed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use headcount_model::LoadAddr;
use headcount_model::packed::{Packed, Packer};
use headcount_patch::{CounterNumber, FIRST_CALL_CELL};
use libc::pid_t;

use crate::foreign_file;
use crate::journal::{Entry, THREADS, private_file};
use crate::live::Moves;
use crate::monitor::Monitor;
use crate::own_folder::OwnFolder;
use crate::proc;
use crate::wait::Stopped;

/// What one thread counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRecord {
    /// Which process of the run it was a thread of: the numbers of the kernel are used again.
    pub process: u32,
    /// The number of the process.
    pub pid: u32,
    /// Its own.
    pub tid: u32,
    /// Its name when it was seen last.
    pub name: String,
    /// Its counters that are not 0, by their numbers, in order.
    pub counters: Vec<(CounterNumber, u64)>,
    /// How often it came or went by no edge: routine, link address, times.
    pub visits: Vec<(usize, u64, i64)>,
}

/// A thread that counts.
#[derive(Debug)]
struct Counting {
    process: u32,
    pid: pid_t,
    tid: pid_t,
    name: String,
    moves: Moves,
}

/// The threads of a run.
#[derive(Debug)]
pub struct ThreadCounts {
    file: File,
    /// Those that count, by window.
    counting: HashMap<u32, Counting>,
    /// What windows said when their last threads ended, from the first cell on.
    before: HashMap<u32, Vec<u64>>,
    /// The windows of their parents that children count in.
    lent: HashMap<pid_t, u32>,
    /// Which process of the run has a number now, and how many there were.
    processes: HashMap<pid_t, u32>,
    process_count: u32,
}

impl ThreadCounts {
    /// Of a run with this folder.
    pub fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            file: private_file(&folder.join(THREADS))?,
            counting: HashMap::new(),
            before: HashMap::new(),
            lent: HashMap::new(),
            processes: HashMap::new(),
            process_count: 0,
        })
    }

    fn begin(&mut self, window: u32, pid: pid_t, tid: pid_t) {
        let count = &mut self.process_count;
        let process = *self.processes.entry(pid).or_insert_with(|| {
            *count += 1;
            *count
        });
        let thread = Counting {
            process,
            pid,
            tid,
            name: proc::thread_name(pid, tid).unwrap_or_default(),
            moves: Moves::default(),
        };
        self.counting.insert(window, thread);
    }

    /// The thread of a window has ended, which says so much now.
    fn end(&mut self, window: u32, now: Vec<u64>) -> io::Result<()> {
        let Some(thread) = self.counting.remove(&window) else {
            return Ok(());
        };
        let before = self.before.remove(&window).unwrap_or_default();
        let record = thread.record(&now, &before);
        self.before.insert(window, now);
        self.file.write_all(&record.pack())
    }
}

impl Counting {
    fn record(&self, now: &[u64], before: &[u64]) -> ThreadRecord {
        let before = before.iter().copied().chain(std::iter::repeat(0));
        let counted = now.iter().zip(before).map(|(now, it)| now.wrapping_sub(it));
        let counters = (FIRST_CALL_CELL..).zip(counted);
        let visits = self.moves.entries().filter_map(|entry| match entry {
            Entry::Visit { routine, at, delta } => Some((routine, at, delta)),
            _ => None,
        });
        ThreadRecord {
            process: self.process,
            pid: self.pid as u32,
            tid: self.tid as u32,
            name: self.name.clone(),
            counters: counters.filter(|it| it.1 != 0).collect(),
            visits: visits.collect(),
        }
    }
}

impl ThreadRecord {
    /// With its length in front.
    fn pack(&self) -> Vec<u8> {
        let mut body = Packer::default();
        for number in [self.process, self.pid, self.tid] {
            body.number(number as usize);
        }
        body.text(&self.name);
        let mut last = 0;
        body.many(&self.counters, |to, (number, count)| {
            to.number((number - last) as usize);
            to.wide(*count);
            last = *number;
        });
        body.many(&self.visits, |to, (routine, at, delta)| {
            to.number(*routine);
            to.wide(*at);
            to.signed_wide(*delta);
        });
        let mut record = Packer::default();
        record.bytes(&body.0);
        record.0
    }

    /// `None`: these are not bytes of ours.
    fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let mut last: CounterNumber = 0;
        let record = Self {
            process: from.number()?,
            pid: from.number()?,
            tid: from.number()?,
            name: from.text()?,
            counters: from.many(|it| {
                last = last.checked_add(it.number()?)?;
                Some((last, it.wide()?))
            })?,
            visits: from.many(|it| Some((it.number()? as usize, it.wide()?, it.signed_wide()?)))?,
        };
        from.0.is_empty().then_some(record)
    }
}

/// What threads counted, as the folder of a run has it: a record at a time, for there may be many.
#[derive(Debug)]
pub struct ThreadRecords(Vec<u8>);

impl ThreadRecords {
    /// `None`: nobody asked for it.
    pub fn read(folder: &OwnFolder) -> io::Result<Option<Self>> {
        let mut file = match foreign_file::open(&folder.file(THREADS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Some(Self(bytes)))
    }

    /// Those that are whole. One that was cut off is the last one.
    pub fn iter(&self) -> impl Iterator<Item = io::Result<ThreadRecord>> {
        let mut rest = Packed(&self.0);
        std::iter::from_fn(move || {
            let record = rest.bytes()?;
            let record = ThreadRecord::unpack(&mut Packed(record));
            Some(record.ok_or(io::ErrorKind::InvalidData.into()))
        })
    }
}

impl Monitor<'_> {
    /// A thread is about to count in a window.
    pub fn begin_thread_counts(&mut self, tid: pid_t, window: u32) {
        let pid = self.threads.get(&tid).map_or(tid, |it| it.pid);
        if let Some(counts) = &mut self.thread_counts {
            counts.begin(window, pid, tid);
        }
    }

    /// The thread of a window counts no more.
    pub fn end_thread_counts(&mut self, window: u32) -> io::Result<()> {
        match (&mut self.thread_counts, &self.windows) {
            (Some(counts), Some(windows)) => counts.end(window, windows.counted(window)?),
            _ => Ok(()),
        }
    }

    /// No thread counts any more.
    pub fn end_all_thread_counts(&mut self) -> io::Result<()> {
        let counts = self.thread_counts.iter();
        let windows: Vec<u32> = counts.flat_map(|it| it.counting.keys().copied()).collect();
        windows
            .into_iter()
            .try_for_each(|window| self.end_thread_counts(window))
    }

    /// A process has ended: the next one with its number is another.
    pub fn end_process_counts(&mut self, pid: pid_t) {
        if let Some(counts) = &mut self.thread_counts {
            counts.processes.remove(&pid);
        }
    }

    /// A child counts in its parent's window.
    pub fn lend_window(&mut self, parent: pid_t, child: pid_t) {
        let window = self.own_or_lent_window(parent);
        if let (Some(counts), Some(window)) = (&mut self.thread_counts, window) {
            counts.lent.insert(child, window);
        }
    }

    /// It does so no more.
    pub fn return_window(&mut self, child: pid_t) {
        if let Some(counts) = &mut self.thread_counts {
            counts.lent.remove(&child);
        }
    }

    fn own_or_lent_window(&self, tid: pid_t) -> Option<u32> {
        let own = self.windows.as_ref()?.of(tid);
        own.or_else(|| self.thread_counts.as_ref()?.lent.get(&tid).copied())
    }

    /// This may be the last time that the name of a thread can be read.
    pub fn see_name(&mut self, stopped: &Stopped) {
        let window = self.own_or_lent_window(stopped.tid());
        let counts = self.thread_counts.as_mut();
        let thread = counts.zip(window);
        let thread = thread.and_then(|(counts, window)| counts.counting.get_mut(&window));
        // A child that runs in its parent's memory has a name of its own.
        if let Some(thread) = thread.filter(|it| it.tid == stopped.tid())
            && let Some(name) = proc::thread_name(thread.pid, thread.tid)
        {
            thread.name = name;
        }
    }

    /// What the journal says of a thread is its own.
    pub fn book_visit(&mut self, tid: pid_t, entry: &Entry) {
        let window = self.own_or_lent_window(tid);
        let counts = self.thread_counts.as_mut();
        let thread = counts.zip(window);
        if let Some(thread) = thread.and_then(|(counts, it)| counts.counting.get_mut(&it)) {
            thread.moves.add(entry, 1);
        }
    }

    /// A thread becomes another program. When the journal tells that it goes away from where it was,
    /// its window is nobody's any more.
    pub fn book_leaving_before_exec(&mut self, tid: pid_t, next: LoadAddr) {
        let space = self.threads.get(&tid).map(|it| it.space);
        let place = space.and_then(|it| self.spot(it, next));
        if let Some((spot, routine, _)) = place.filter(|it| it.0.is_inside && self.counts(tid)) {
            let (at, delta) = (spot.at.0, -1);
            self.book_visit(tid, &Entry::Visit { routine, at, delta });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counted_what_its_window_says_more() {
        let mut thread = Counting {
            process: 1,
            pid: 7,
            tid: 8,
            name: "a\nb".to_owned(),
            moves: Moves::default(),
        };
        let visit = Entry::Visit {
            routine: 3,
            at: u64::MAX,
            delta: -1,
        };
        thread.moves.add(&visit, 1);
        let record = thread.record(&[5, 2, 9, 1], &[5, 1, 10]);
        let first = FIRST_CALL_CELL;
        let counters = [(first + 1, 1), (first + 2, u64::MAX), (first + 3, 1)];
        assert_eq!(record.counters, counters);
        assert_eq!(record.visits, [(3, u64::MAX, -1)]);
        let packed = [record.pack(), record.pack()].concat();
        let records = ThreadRecords(packed.clone());
        let read: Vec<ThreadRecord> = records.iter().map(Result::unwrap).collect();
        assert_eq!(read, [record.clone(), record]);
        // One that is cut off is none; one that makes no sense is an error.
        let cut = ThreadRecords(packed[..packed.len() - 1].to_vec());
        assert_eq!(cut.iter().count(), 1);
        let broken = ThreadRecords(vec![2, 1, 1]);
        assert!(broken.iter().all(|it| it.is_err()));
    }
}
