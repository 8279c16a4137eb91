//! The counters of copies: a file that the counted program itself writes to.
//!
//! The file is made of windows of equal size. Every thread that runs has one to itself, mapped
//! where its `gs` points to, and increments the words in it; what a thread has counted is the
//! difference that it made, and all that is ever asked for is the sum over all windows. So a
//! window may be handed on to another thread, of another process even, when its thread has ended.
//!
//! The first words of a window are its thread's scratch; at its end is a table of the system calls
//! that are to trap.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use headcount_patch::{CALL_TABLE, CALL_TABLE_BYTES, CounterNumber};

use crate::journal::{WINDOWS, private_file};
use crate::kernel;
use crate::system_calls;

/// How many bytes a window has, most of them never used.
pub const WINDOW: u64 = (CALL_TABLE + CALL_TABLE_BYTES) as u64;

/// How many windows a process is given at a time.
pub const WINDOWS_AT_ONCE: u32 = 8;

/// The first counter's number: the words in front of it are scratch.
const FIRST: CounterNumber = 8;

/// By how much the used part of windows grows, in bytes.
const STEP: u64 = 1 << 16;

/// The windows of a run.
#[derive(Debug)]
pub struct Windows {
    /// Where the file is, for the program to open.
    pub path: PathBuf,
    file: File,
    free: BTreeSet<u32>,
    /// Those that a thread counts in.
    used: BTreeSet<u32>,
    count: u32,
    next: CounterNumber,
    /// How many bytes of each window are sure to have a place on the disk.
    allocated: u64,
}

impl Windows {
    /// Makes the file in a run's folder.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let path = std::path::absolute(folder)?.join(WINDOWS);
        let file = private_file(&path)?;
        Ok(Self {
            path,
            file,
            free: BTreeSet::new(),
            used: BTreeSet::new(),
            count: 0,
            next: FIRST,
            allocated: STEP,
        })
    }

    /// So many windows that nobody has, one behind the other. The first one's number.
    pub fn take(&mut self, count: u32) -> io::Result<u32> {
        let is_free = |first: &&u32| (**first..**first + count).all(|it| self.free.contains(&it));
        let first = match self.free.iter().find(is_free) {
            Some(first) => *first,
            None => {
                let first = self.count;
                self.count += count;
                self.file.set_len(u64::from(self.count) * WINDOW)?;
                let table = system_calls::table();
                for window in first..self.count {
                    let at = u64::from(window) * WINDOW + u64::from(CALL_TABLE);
                    self.file.write_all_at(&table, at)?;
                }
                first
            }
        };
        self.free.retain(|it| !(first..first + count).contains(it));
        Ok(first)
    }

    /// A process that had windows has ended.
    pub fn give_back(&mut self, windows: Range<u32>) {
        for window in windows {
            self.used.remove(&window);
            self.free.insert(window);
        }
    }

    /// A thread is about to count in a window.
    pub fn begin(&mut self, window: u32) -> io::Result<()> {
        self.used.insert(window);
        self.allocate(window)
    }

    /// A thread has ended.
    pub fn end(&mut self, window: u32) {
        self.used.remove(&window);
    }

    /// Numbers for so many counters; `None` if there are no more.
    pub fn reserve(&mut self, counters: usize) -> io::Result<Option<CounterNumber>> {
        let first = self.next;
        let Some(next) = u32::try_from(counters)
            .ok()
            .and_then(|it| first.checked_add(it))
        else {
            return Ok(None);
        };
        if next > CALL_TABLE / 8 {
            return Ok(None);
        }
        self.next = next;
        if u64::from(next) * 8 > self.allocated {
            self.allocated = (u64::from(next) * 8).next_multiple_of(STEP);
            for window in &self.used {
                self.allocate(*window)?;
            }
        }
        Ok(Some(first))
    }

    /// A full disk is to be noticed now, not when the program writes.
    fn allocate(&self, window: u32) -> io::Result<()> {
        kernel::allocate_part(&self.file, u64::from(window) * WINDOW, self.allocated)
    }

    /// Changes a counter of a window whose thread stands still.
    pub fn add(&self, window: u32, counter: CounterNumber, delta: i64) -> io::Result<()> {
        let at = u64::from(window) * WINDOW + u64::from(counter) * 8;
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, at)?;
        let word = u64::from_le_bytes(word).wrapping_add_signed(delta);
        self.file.write_all_at(&word.to_le_bytes(), at)
    }

    /// The scratch word of a window whose thread stands still.
    pub fn scratch(&self, window: u32) -> io::Result<u64> {
        let mut word = [0; 8];
        let at = u64::from(window) * WINDOW;
        self.file.read_exact_at(&mut word, at)?;
        Ok(u64::from_le_bytes(word))
    }
}

/// The sums over all windows but one of the first so many words.
pub fn sum(path: &Path, words: u64, but: Option<u32>) -> io::Result<Vec<u64>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if !file.metadata()?.is_file() || words * 8 > WINDOW {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut sums = vec![0_u64; words as usize];
    let mut bytes = vec![0; words as usize * 8];
    for window in (0..length / WINDOW).filter(|it| but.map(u64::from) != Some(*it)) {
        file.read_exact_at(&mut bytes, window * WINDOW)?;
        let (read, _) = bytes.as_chunks::<8>();
        for (sum, word) in sums.iter_mut().zip(read) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    Ok(sums)
}
