//! The counters of copies: a file that the counted program itself writes to.
//!
//! The file is made of windows. Every thread that runs has one to itself, mapped where its `gs`
//! points to, and increments the words in it; what a thread has counted is the difference that it
//! made, and all that is ever asked for is the sum over all windows. So whichever window nobody
//! counts in may be handed to any thread, of another process even, that has it mapped.
//!
//! The first words of a window are its thread's scratch; behind them is a table of the system calls
//! that are to trap. Then come a cell for each number that a system call can have, a log, if there is
//! one, and the counters. Windows are far apart in the file, and no more of one is mapped than there are
//! counters: a program may have little room.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use headcount_model::{MOST_TALLIES, SystemCalls};
use headcount_patch::{
    BEHIND_CALL_CELLS, CALL_NUMBERS, CALL_TABLE, CounterNumber, DIRECT_BYTES, EVENT_COUNTER,
    FETCH_TABLE, FETCH_TABLE_BYTES, FIRST_CALL_CELL, FLAGS_SCRATCH, GENERATION, LAST_CALL,
    LEAST_TABLE_BYTES, LOG_BYTES, LOG_PLACE, LOG_START, MOST_WINDOW_BYTES, NO_CALL, OWNER,
    SECOND_SCRATCH, TABLE_BYTES, TABLES, THIRD_SCRATCH, bytes_of, last_slot, mask, mask_of, table,
};
use libc::pid_t;

use crate::foreign_file;
use crate::journal::{WINDOWS, private_file};
use crate::kernel;
use crate::system_calls;

/// How far apart windows are in the file, in bytes: none can be larger. Most of it is never used.
pub const STRIDE: u64 = MOST_WINDOW_BYTES as u64;

/// How much of a window is mapped at first, in bytes.
const LEAST_MAPPED: u64 = 1 << 18;

/// The first counter's number: scratch, table and the cells of system calls are in front of it.
const FIRST: CounterNumber = BEHIND_CALL_CELLS / 8;

/// By how much the used part of windows grows, in bytes.
const STEP: u64 = 1 << 16;

/// The windows of a run.
#[derive(Debug)]
pub struct Windows {
    /// Where the file is, for the program to open.
    pub path: PathBuf,
    pub file: File,
    /// Who counts in which.
    users: BTreeMap<pid_t, u32>,
    used: BTreeSet<u32>,
    /// Those that nobody counts in.
    unused: BTreeSet<u32>,
    /// The first counter's number; in front of it are logs, or tables.
    first: CounterNumber,
    next: CounterNumber,
    /// Where tables are, in bytes.
    tables: Range<u32>,
    /// The number of the table of what is interpreted, if there is one, and whether anything is.
    fetches: u8,
    has_fetches: bool,
    /// What the event counter of a thread begins with, if its copies have one.
    pub first_event: Option<i64>,
    /// If threads keep logs: how far from the end of each the part is that was not read yet.
    logs: Option<BTreeMap<u32, i64>>,
    /// How many bytes of counters of each window are sure to have a place on the disk.
    allocated: u64,
}

impl Windows {
    /// Makes the file in a run's folder, of which this is the path by its descriptor.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let file = private_file(&folder.join(WINDOWS))?;
        let path = std::fs::read_link(folder)?.join(WINDOWS);
        Ok(Self {
            path,
            file,
            users: BTreeMap::new(),
            used: BTreeSet::new(),
            unused: BTreeSet::new(),
            first: FIRST,
            next: FIRST,
            tables: 0..0,
            fetches: u8::MAX,
            has_fetches: false,
            first_event: None,
            logs: None,
            allocated: STEP,
        })
    }

    /// Threads keep logs. There are no windows yet.
    pub fn keep_logs(&mut self) {
        self.logs = Some(BTreeMap::new());
        self.first_event = Some(0);
        self.first = (LOG_START + LOG_BYTES) / 8;
        self.next = self.first;
    }

    /// Threads keep so many tables of values, and one of what they interpret if that is the number behind
    /// those. There are no windows yet.
    pub fn keep_tables(&mut self, tables: u8) {
        self.tables = place_of_tables(tables.into());
        self.fetches = tables;
        self.first = self.tables.end / 8;
        self.next = self.first;
    }

    /// From now on, there is something that interprets: windows must have a table for that.
    pub fn keep_fetches(&mut self) {
        self.has_fetches = true;
    }

    /// Where what is so far behind the beginning of a table is in a window.
    pub fn in_window(&self, number: u8, offset: u32) -> u32 {
        self.table(number) + offset % (self.direct_bytes(number) + self.most_bytes(number))
    }

    /// Where the slot is that a thread added to last. (A program may have written that: it leads to no other table.)
    pub fn last_slot(&self, window: u32, number: u8) -> io::Result<u32> {
        let from_buckets = self.word_at(window, last_slot(number))? as u32;
        let from_table = from_buckets.wrapping_add(self.direct_bytes(number));
        Ok(self.in_window(number, from_table))
    }

    /// Where a table is in a window, ...
    fn table(&self, number: u8) -> u32 {
        match number == self.fetches {
            true => FETCH_TABLE,
            false => table(number),
        }
    }

    /// ... how many bytes are in front of its buckets, ...
    fn direct_bytes(&self, number: u8) -> u32 {
        match number == self.fetches {
            true => 0,
            false => DIRECT_BYTES,
        }
    }

    /// ... and how many these may have.
    fn most_bytes(&self, number: u8) -> u32 {
        match number == self.fetches {
            true => FETCH_TABLE_BYTES,
            false => TABLE_BYTES,
        }
    }

    fn in_table(&self, window: u32, number: u8) -> u64 {
        u64::from(window) * STRIDE + u64::from(self.table(number))
    }

    /// What is in a table of a window.
    pub fn read_table(&self, window: u32, number: u8) -> io::Result<Vec<u8>> {
        let at = self.in_table(window, number);
        read_table(&self.file, window, number, at, self.direct_bytes(number))
    }

    /// What is in its buckets.
    pub fn read_buckets(&self, window: u32, number: u8) -> io::Result<Vec<u8>> {
        let at = self.in_table(window, number) + u64::from(self.direct_bytes(number));
        read_table(&self.file, window, number, at, 0)
    }

    /// What is in a part of it.
    pub fn read_in_table(&self, window: u32, number: u8, part: Range<u32>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; part.len()];
        let at = self.in_table(window, number) + u64::from(part.start);
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Empties the first tables of a window whose thread stands still, once it is on file what was in
    /// them.
    pub fn empty_tables(&self, window: u32, tables: u8, generation: u64) -> io::Result<()> {
        for number in 0..tables {
            let bytes = self.direct_bytes(number) + table_bytes(&self.file, window, number)?;
            let at = self.in_table(window, number);
            self.file.write_all_at(&vec![0; bytes as usize], at)?;
        }
        self.write(window, GENERATION, generation)
    }

    /// A process has the first tables of a window from now on. They are empty.
    pub fn own_tables(&self, window: u32, tables: u8, pid: pid_t) -> io::Result<()> {
        for number in 0..tables {
            match number == self.fetches {
                // Most threads interpret nothing.
                true => self.write(window, mask(number), 0)?,
                false => self.resize_table(window, number, LEAST_TABLE_BYTES)?,
            }
        }
        self.write(window, OWNER, i64::from(pid).cast_unsigned())
    }

    /// A table, which is empty, has more buckets from now on, if that can be.
    pub fn grow_table(&self, window: u32, number: u8) -> io::Result<()> {
        let bytes = table_bytes(&self.file, window, number)?;
        let bytes = (4 * bytes).clamp(LEAST_TABLE_BYTES, self.most_bytes(number));
        self.resize_table(window, number, bytes)
    }

    fn resize_table(&self, window: u32, number: u8, bytes: u32) -> io::Result<()> {
        let at = self.in_table(window, number);
        let all = self.direct_bytes(number) + bytes;
        kernel::allocate_part(&self.file, at, all.into())?;
        self.write(window, mask(number), mask_of(bytes).into())
    }

    fn write(&self, window: u32, offset: u32, word: u64) -> io::Result<()> {
        let at = u64::from(window) * STRIDE + u64::from(offset);
        self.file.write_all_at(&word.to_le_bytes(), at)
    }

    /// The word at an offset of a window whose thread stands still.
    pub fn word_at(&self, window: u32, offset: u32) -> io::Result<u64> {
        self.word(window, offset)
    }

    /// The third scratch word, and the one with the flags.
    pub fn third_scratch(&self, window: u32) -> io::Result<(u64, u64)> {
        Ok((
            self.word(window, THIRD_SCRATCH)?,
            self.word(window, FLAGS_SCRATCH)?,
        ))
    }

    /// Puts into `log` what is in that of a window and was not read yet. If its thread stands still, it is
    /// empty then.
    pub fn read_log(
        &mut self,
        window: u32,
        stands_still: bool,
        log: &mut Vec<u8>,
    ) -> io::Result<()> {
        let place = self.word(window, LOG_PLACE)?.cast_signed();
        let Some(read) = self.logs.as_mut().and_then(|it| it.get_mut(&window)) else {
            log.clear();
            return Ok(());
        };
        let end = u64::from(window) * STRIDE + u64::from(LOG_START + LOG_BYTES);
        let (from, unread) = (*read, usize::try_from(place - *read).unwrap_or(0));
        log.resize(unread.min(LOG_BYTES as usize), 0);
        self.file
            .read_exact_at(log, end.wrapping_add_signed(from))?;
        *read = place;
        if stands_still {
            *read = -i64::from(LOG_BYTES);
            let empty = (*read).to_le_bytes();
            let at = u64::from(window) * STRIDE + u64::from(LOG_PLACE);
            self.file.write_all_at(&empty, at)?;
        }
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        (self.used.len() + self.unused.len()) as u32
    }

    /// A window that nobody counts in and that is none of these; a new one if need be.
    pub fn unused(&mut self, but: &BTreeSet<u32>) -> io::Result<u32> {
        match self.unused.difference(but).next() {
            Some(window) => Ok(*window),
            None => self.add(),
        }
    }

    fn add(&mut self) -> io::Result<u32> {
        let window = self.count();
        let start = u64::from(window) * STRIDE;
        self.file.set_len(start + STRIDE)?;
        let table = system_calls::table();
        self.file
            .write_all_at(&table, start + u64::from(CALL_TABLE))?;
        self.unused.insert(window);
        Ok(window)
    }

    /// How much of a window must be mapped for all counters that there are.
    pub fn bytes_needed(&self) -> u64 {
        if self.has_fetches {
            return STRIDE;
        }
        let bytes = u64::from(self.next) * 8;
        bytes.next_power_of_two().clamp(LEAST_MAPPED, STRIDE)
    }

    /// Does nobody count in a window?
    pub fn is_unused(&self, window: u32) -> bool {
        self.unused.contains(&window)
    }

    /// The window that a thread counts in.
    pub fn of(&self, tid: pid_t) -> Option<u32> {
        self.users.get(&tid).copied()
    }

    /// A thread is about to count in a window that nobody else does.
    pub fn begin(&mut self, window: u32, tid: pid_t) -> io::Result<()> {
        self.keep(window)?;
        self.users.insert(tid, window);
        if let Some(logs) = &mut self.logs {
            logs.insert(window, -i64::from(LOG_BYTES));
            self.read_log(window, true, &mut Vec::new())?;
        }
        match self.first_event {
            Some(events) => {
                let at = u64::from(window) * STRIDE + u64::from(EVENT_COUNTER);
                self.file.write_all_at(&events.to_le_bytes(), at)
            }
            None => Ok(()),
        }
    }

    /// From now on a window is nobody's to take.
    pub fn keep(&mut self, window: u32) -> io::Result<()> {
        self.allocate(window)?;
        self.unused.remove(&window);
        self.used.insert(window);
        Ok(())
    }

    /// A thread counts no more.
    pub fn end(&mut self, tid: pid_t) {
        if let Some(window) = self.users.remove(&tid) {
            self.used.remove(&window);
            self.unused.insert(window);
        }
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
        if u64::from(next) * 8 > u64::from(FETCH_TABLE) {
            return Ok(None);
        }
        self.next = next;
        let bytes = u64::from(next - self.first) * 8;
        if bytes > self.allocated {
            self.allocated = bytes.next_multiple_of(STEP);
            for window in &self.used {
                self.allocate(*window)?;
            }
        }
        Ok(Some(first))
    }

    /// A full disk is to be noticed now, not when the program writes. (Scratch and table were
    /// written when the window was made.)
    fn allocate(&self, window: u32) -> io::Result<()> {
        let number = |it: CounterNumber| u64::from(window) * STRIDE + u64::from(it) * 8;
        let (cells, first) = (number(FIRST_CALL_CELL), number(self.first));
        // Tables are given room as they grow.
        let in_front = match self.tables.is_empty() {
            false => u64::from(window) * STRIDE + u64::from(self.tables.start),
            true => first,
        };
        kernel::allocate_part(&self.file, cells, in_front - cells)?;
        kernel::allocate_part(&self.file, first, self.allocated)
    }

    /// The cell that the thread of a window added to last, which stands still before that system call.
    /// `None`: that call was not counted.
    pub fn last_call(&self, window: u32) -> io::Result<Option<CounterNumber>> {
        let cell = self.word(window, LAST_CALL)?;
        let cell = u32::try_from(cell).ok().filter(|it| *it <= CALL_NUMBERS);
        Ok(cell.map(|it| FIRST_CALL_CELL + it))
    }

    /// The thread of a window is to make a system call that is not counted.
    pub fn forget_last_call(&self, window: u32) -> io::Result<()> {
        let at = u64::from(window) * STRIDE + u64::from(LAST_CALL);
        self.file.write_all_at(&NO_CALL.to_le_bytes(), at)
    }

    /// Changes a counter of a window whose thread stands still.
    pub fn add_to(&self, window: u32, counter: CounterNumber, delta: i64) -> io::Result<()> {
        let at = u64::from(window) * STRIDE + u64::from(counter) * 8;
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, at)?;
        let word = u64::from_le_bytes(word).wrapping_add_signed(delta);
        self.file.write_all_at(&word.to_le_bytes(), at)
    }

    /// What a window says that nobody counts in now: all cells and counters, from the first cell on.
    pub fn counted(&self, window: u32) -> io::Result<Vec<u64>> {
        let at = u64::from(window) * STRIDE + u64::from(FIRST_CALL_CELL) * 8;
        let mut bytes = vec![0; (self.next - FIRST_CALL_CELL) as usize * 8];
        self.file.read_exact_at(&mut bytes, at)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(words.iter().map(|it| u64::from_le_bytes(*it)).collect())
    }

    /// What all windows say together. `None` if there are many: somebody else has to do that work,
    /// once.
    pub fn sums_of_few(&self) -> Option<Vec<u64>> {
        const FEW: u32 = 32;
        let is_small = self.count() <= FEW;
        is_small.then(|| self.sums(None).ok()).flatten()
    }

    /// What all windows but one say together.
    pub fn sums(&self, but: Option<u32>) -> io::Result<Vec<u64>> {
        sum_of(
            &self.file,
            self.next.into(),
            &self.tables,
            but,
            self.count(),
        )
    }

    /// The scratch word of a window whose thread stands still.
    pub fn scratch(&self, window: u32) -> io::Result<u64> {
        self.word(window, 0)
    }

    /// The second one.
    pub fn second_scratch(&self, window: u32) -> io::Result<u64> {
        self.word(window, SECOND_SCRATCH)
    }

    /// The event counter of a window whose thread stands still.
    pub fn events(&self, window: u32) -> io::Result<i64> {
        self.word(window, EVENT_COUNTER).map(u64::cast_signed)
    }

    /// Adds to it.
    pub fn add_events(&self, window: u32, delta: i64) -> io::Result<()> {
        self.add_to(window, EVENT_COUNTER / 8, delta)
    }

    fn word(&self, window: u32, offset: u32) -> io::Result<u64> {
        let mut word = [0; 8];
        let at = u64::from(window) * STRIDE + u64::from(offset);
        self.file.read_exact_at(&mut word, at)?;
        Ok(u64::from_le_bytes(word))
    }
}

/// How many bytes a table of a window has.
fn table_bytes(file: &File, window: u32, number: u8) -> io::Result<u32> {
    let mut word = [0; 4];
    let at = u64::from(window) * STRIDE + u64::from(mask(number));
    file.read_exact_at(&mut word, at)?;
    Ok(bytes_of(u32::from_le_bytes(word)))
}

/// What is in the table of a window with this number, which begins there in the file, so many bytes before its
/// buckets.
fn read_table(file: &File, window: u32, number: u8, at: u64, direct: u32) -> io::Result<Vec<u8>> {
    let all = direct + table_bytes(file, window, number)?;
    let mut bytes = vec![0; all as usize];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// The same, where nothing else is known of the windows.
pub fn read_any_table(
    file: &File,
    window: u32,
    number: u8,
    is_of_fetches: bool,
) -> io::Result<Vec<u8>> {
    let (place, direct) = match is_of_fetches {
        true => (FETCH_TABLE, 0),
        false => (table(number), DIRECT_BYTES),
    };
    let at = u64::from(window) * STRIDE + u64::from(place);
    read_table(file, window, number, at, direct)
}

/// How often the tables of a window were emptied, and the process that counts there.
pub fn state_of_tables(file: &File, window: u32) -> io::Result<(u64, u64)> {
    let word = |offset: u32| {
        let mut word = [0; 8];
        let at = u64::from(window) * STRIDE + u64::from(offset);
        file.read_exact_at(&mut word, at)?;
        io::Result::Ok(u64::from_le_bytes(word))
    };
    Ok((word(GENERATION)?, word(OWNER)?))
}

/// How often system calls were made, by number, of the sums of windows.
pub fn system_calls(sums: &[u64]) -> SystemCalls {
    let first = FIRST_CALL_CELL as usize;
    let cells = sums.get(first..first + CALL_NUMBERS as usize + 1);
    SystemCalls::of_cells(cells.unwrap_or_default())
}

/// The sums over all windows but one of the first so many words. There are `least` windows, or more.
/// There are no counters where tables are.
pub fn sum(
    path: &Path,
    words: u64,
    tables: &Range<u32>,
    but: Option<u32>,
    least: u32,
) -> io::Result<Vec<u64>> {
    sum_of(&foreign_file::open(path)?, words, tables, but, least)
}

/// Where so many tables are in a window, in bytes, but for that of what is interpreted; what they need besides is
/// in front of them, even if there are none.
pub fn place_of_tables(tables: u32) -> Range<u32> {
    let tables = tables.min(MOST_TALLIES as u32);
    TABLES..table(tables as u8)
}

fn sum_of(
    file: &File,
    words: u64,
    tables: &Range<u32>,
    but: Option<u32>,
    least: u32,
) -> io::Result<Vec<u64>> {
    let length = file.metadata()?.len();
    if words * 8 > STRIDE {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    if !length.is_multiple_of(STRIDE) || length / STRIDE < u64::from(least) {
        return Err(io::Error::other("a part of the counters is missing"));
    }
    let end = words as usize * 8;
    let (start, behind) = (tables.start as usize, tables.end as usize);
    let parts = [0..start.min(end), behind.min(end)..end];
    let mut sums = vec![0_u64; words as usize];
    let mut bytes = vec![0; end];
    for window in (0..length / STRIDE).filter(|it| but.map(u64::from) != Some(*it)) {
        for part in &parts {
            let bytes = &mut bytes[..part.len()];
            file.read_exact_at(bytes, window * STRIDE + part.start as u64)?;
            let (read, _) = bytes.as_chunks::<8>();
            for (sum, word) in sums[part.start / 8..].iter_mut().zip(read) {
                *sum = sum.wrapping_add(u64::from_le_bytes(*word));
            }
        }
    }
    Ok(sums)
}
