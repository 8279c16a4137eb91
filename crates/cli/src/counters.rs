//! Counter files, and the same bytes found in the memory of a process or in a core dump.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use headcount_monitor::foreign_file;
use headcount_wire::{
    COMMAND_BYTES, FILE_MAGIC, FILE_SUFFIX, FileHeader, HEADER_BYTES, PAGE, PATH_BYTES,
    SLOT_HEADER_BYTES, SLOT_MAGIC, SlotHeader, VERSION, failure, slot_state, stride,
};

/// More than a program of a gigabyte has.
const MOST_COUNTERS: u64 = 1 << 27;

/// What one process (and the children it forked) counted in one module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Where it was read.
    pub origin: PathBuf,
    /// Random name of the file.
    pub id: [u8; 16],
    /// Names the build of the module.
    pub fingerprint: u64,
    /// The module's path.
    pub module: PathBuf,
    /// The command line.
    pub command: Vec<String>,
    /// Process that began it, and when that process started.
    pub process: ProcessKey,
    /// When it was begun, in nanoseconds since 1970.
    pub created: u64,
    /// How many counters the module has.
    pub count: u64,
    /// The sum over all threads; nothing if no thread counted.
    pub sums: Vec<u64>,
    /// What was counted in ordinary memory, if that was read.
    pub memory: Vec<u64>,
    /// Who counted.
    pub threads: Vec<Thread>,
    /// Bits of [`failure`].
    pub failures: u32,
}

/// A process, for ever: numbers come again, start times do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

/// A thread that counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread {
    /// Its process.
    pub process: ProcessKey,
    /// Its number.
    pub tid: u32,
    /// Whether it had ended, or its process passed through `exit`.
    pub ended: bool,
}

impl ProcessKey {
    /// A process that runs now.
    pub fn of(pid: u32) -> Self {
        Self {
            pid,
            start_ticks: start_ticks(pid).unwrap_or(0),
        }
    }

    /// Whether it is still there.
    pub fn is_running(self) -> bool {
        start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// When a process started, if it has not ended.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; fields are counted behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let is_zombie = matches!(fields.next(), Some("Z" | "X"));
    fields.nth(18).filter(|_| !is_zombie)?.parse().ok()
}

/// When a file was last written to, in nanoseconds since 1970.
pub fn modified(path: &Path) -> u64 {
    let time = fs::metadata(path).and_then(|meta| meta.modified());
    let since = time
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos() as u64)
}

impl Counters {
    /// Whether somebody may still be counting.
    pub fn is_running(&self) -> bool {
        let mut processes: Vec<_> = self.threads.iter().map(|thread| thread.process).collect();
        processes.push(self.process);
        processes.dedup();
        processes.into_iter().any(ProcessKey::is_running)
    }

    /// Reads a counter file.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_slots(path).with_context(|| path.display().to_string())
    }

    /// The build that a counter file is about, if that can be read.
    pub fn fingerprint_in(path: &Path) -> Option<u64> {
        let mut header = vec![0; HEADER_BYTES];
        let file = foreign_file::open(path).ok()?;
        file.read_exact_at(&mut header, 0).ok()?;
        Some(Self::header(&header).ok()?.fingerprint)
    }

    fn read_slots(path: &Path) -> Result<Self> {
        // Anything else (a link, a pipe) was not put there by a counted program.
        if !fs::symlink_metadata(path)
            .context("cannot be read")?
            .is_file()
        {
            bail!("is no regular file, so no counter file; remove it if you do not know it");
        }
        let file = foreign_file::open(path).context("cannot be read")?;
        let facts = file.metadata().context("cannot be read")?;
        if !foreign_file::is_own(&facts) {
            bail!("belongs to another user, who can collect it");
        }
        let length = facts.len();
        // Slot by slot: the file of a program with many threads may be larger than memory.
        let read = |at: u64, bytes: u64| -> Result<Vec<u8>> {
            let mut piece = vec![0; bytes.min(length.saturating_sub(at)) as usize];
            file.read_exact_at(&mut piece, at)
                .context("cannot be read")?;
            Ok(piece)
        };
        let header = read(0, HEADER_BYTES as u64)?;
        let mut counters = Self::header(&header)?;
        counters.origin = path.to_owned();
        let promised = Fields(&header).u64(offset_of!(FileHeader, length));
        if promised.is_some_and(|promised| promised > length) {
            bail!("was cut off, and lacks the counts of some threads; run the program again");
        }
        let step = stride(counters.count);
        let mut at = HEADER_BYTES as u64;
        while at < length {
            let head = read(at, SLOT_HEADER_BYTES as u64)?;
            if Fields(&head).u64(0) != Some(0) {
                counters.add_slot(&read(at, step)?)?;
            }
            at += step;
        }
        Ok(counters)
    }

    fn header(bytes: &[u8]) -> Result<Self> {
        let field = Fields(bytes);
        if field.u64(offset_of!(FileHeader, magic)) != Some(FILE_MAGIC) {
            bail!(
                "is no counter file (or was cut off before its first page); remove it if you do not know it"
            );
        }
        let version = field.u32(offset_of!(FileHeader, version));
        if let Some(version) = version.filter(|version| *version != VERSION) {
            bail!(
                "was written by another headcount (format {version}, this one reads {VERSION}); \
                 collect it with that one, or rebuild the program with this one"
            );
        }
        if bytes.len() < HEADER_BYTES {
            bail!("was cut off inside its header; nothing in it can be read, remove it");
        }
        let number = |at| field.u64(at).unwrap_or_default();
        let small = |at| field.u32(at).unwrap_or_default();
        let text = |at: usize, length: usize, room: usize| {
            let length = (small(length) as usize).min(room);
            bytes.get(at..at + length).unwrap_or_default()
        };
        let count = number(offset_of!(FileHeader, counters));
        if count > MOST_COUNTERS || number(offset_of!(FileHeader, stride)) != stride(count) {
            bail!("has a damaged header; run the program again, and remove this file");
        }
        let path = text(
            offset_of!(FileHeader, path),
            offset_of!(FileHeader, path_len),
            PATH_BYTES,
        );
        let command = text(
            offset_of!(FileHeader, command),
            offset_of!(FileHeader, command_len),
            COMMAND_BYTES,
        );
        Ok(Self {
            origin: PathBuf::new(),
            id: field.id(offset_of!(FileHeader, id)),
            fingerprint: number(offset_of!(FileHeader, fingerprint)),
            module: PathBuf::from(OsStr::from_bytes(path)),
            command: command
                .split(|byte| *byte == 0)
                .filter(|argument| !argument.is_empty())
                .map(|argument| String::from_utf8_lossy(argument).into_owned())
                .collect(),
            process: ProcessKey {
                pid: small(offset_of!(FileHeader, pid)),
                start_ticks: number(offset_of!(FileHeader, start_ticks)),
            },
            created: number(offset_of!(FileHeader, created)),
            count,
            sums: Vec::new(),
            memory: Vec::new(),
            threads: Vec::new(),
            failures: small(offset_of!(FileHeader, failures)),
        })
    }

    /// Adds a slot; one that was never taken is nothing.
    fn add_slot(&mut self, slot: &[u8]) -> Result<()> {
        let field = Fields(slot);
        match field.u64(offset_of!(SlotHeader, magic)) {
            Some(SLOT_MAGIC) => {}
            Some(0) => return Ok(()),
            _ => bail!(
                "has a damaged thread: its counts are not to be trusted; run the program again"
            ),
        }
        if slot.len() < SLOT_HEADER_BYTES {
            bail!("was cut off inside a thread; run the program again");
        }
        if field.u64(offset_of!(SlotHeader, counters)) != Some(self.count)
            || field.u64(offset_of!(SlotHeader, fingerprint)) != Some(self.fingerprint)
        {
            bail!("has a thread of another build; run the program again");
        }
        let small = |at| field.u32(at).unwrap_or_default();
        let counts = slot.get(SLOT_HEADER_BYTES..).unwrap_or_default();
        if ((counts.len() / 8) as u64) < self.count {
            bail!("was cut off inside the counts of a thread; run the program again");
        }
        self.sums.resize(self.count as usize, 0);
        for (sum, count) in self.sums.iter_mut().zip(counts.chunks_exact(8)) {
            let count = u64::from_le_bytes(count.try_into().unwrap_or_default());
            *sum = sum
                .checked_add(count)
                .context("counts more than 2^64, so it is damaged; run the program again")?;
        }
        self.threads.push(Thread {
            process: ProcessKey {
                pid: small(offset_of!(SlotHeader, pid)),
                start_ticks: field
                    .u64(offset_of!(SlotHeader, start_ticks))
                    .unwrap_or_default(),
            },
            tid: small(offset_of!(SlotHeader, tid)),
            ended: small(offset_of!(SlotHeader, state)) == slot_state::EXITED,
        });
        Ok(())
    }

    /// What could not be kept, as sentences.
    pub fn complaints(&self) -> Vec<String> {
        let module = self.module.display();
        let bit = |bit| self.failures & bit != 0;
        let mut all = Vec::new();
        if bit(failure::THREAD_LOST) {
            all.push(format!(
                "{module}: some threads were not counted: no address space for their counters"
            ));
        }
        if bit(failure::THREAD_IN_MEMORY) {
            all.push(format!(
                "{module}: some threads counted in memory only (no disk space, or the counter file \
                 was out of reach): their counts are missing here"
            ));
        }
        if bit(failure::GS_IN_USE) {
            all.push(format!(
                "{module}: the program uses the gs register itself, so its threads were not counted"
            ));
        }
        all
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at + 4)?.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.0.get(at..at + 8)?.try_into().ok()?))
    }

    fn id(&self, at: usize) -> [u8; 16] {
        let bytes = self
            .0
            .get(at..at + 16)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.unwrap_or_default()
    }
}

/// The files that anybody has mapped as counter files now, by their inodes. (Two files with one
/// number, on two disks, keep each other waiting at worst.)
pub fn mapped_by_anyone() -> HashSet<u64> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read_to_string(process.path().join("maps")).ok())
        .flat_map(|maps| {
            let mapped = maps.lines().filter(|line| line.contains(FILE_SUFFIX));
            mapped
                .filter_map(|line| line.split_ascii_whitespace().nth(4)?.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Where in a piece of memory, which begins with a page, headers and slots begin, and how long
/// they are.
pub fn finds(memory: &[u8]) -> Vec<(usize, u64)> {
    let pages = (0..memory.len()).step_by(PAGE);
    pages
        .filter_map(|at| {
            let field = Fields(&memory[at..]);
            match field.u64(0) {
                Some(FILE_MAGIC) => Some((at, HEADER_BYTES as u64)),
                Some(SLOT_MAGIC) => {
                    let count = field.u64(offset_of!(SlotHeader, counters))?;
                    Some((at, stride(count.min(MOST_COUNTERS))))
                }
                _ => None,
            }
        })
        .collect()
}

/// Finds headers and slots in pieces of memory: those of a core dump, or of a running process
/// that could not make a file. The process has one of these numbers, if they are known: slots of
/// others are copies that came with a fork.
pub fn in_memory<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    origin: &Path,
    pids: &[u32],
) -> Vec<Result<Counters>> {
    let mut found: BTreeMap<[u8; 16], Result<Counters>> = BTreeMap::new();
    let mut slots: Vec<&[u8]> = Vec::new();
    for piece in pieces {
        for at in (0..piece.len()).step_by(PAGE) {
            let here = &piece[at..];
            match Fields(here).u64(0) {
                Some(FILE_MAGIC) => {
                    let header = Counters::header(here).map(|counters| Counters {
                        origin: origin.to_owned(),
                        ..counters
                    });
                    found.insert(Fields(here).id(offset_of!(FileHeader, id)), header);
                }
                Some(SLOT_MAGIC) => {
                    let pid = Fields(here).u32(offset_of!(SlotHeader, pid));
                    if pids.is_empty() || pid.is_some_and(|pid| pids.contains(&pid)) {
                        slots.push(here);
                    }
                }
                _ => {}
            }
        }
    }
    for slot in slots {
        let id = Fields(slot).id(offset_of!(SlotHeader, id));
        if let Some(Ok(counters)) = found.get_mut(&id)
            && let Err(error) = counters.add_slot(slot)
        {
            found.insert(id, Err(error));
        }
    }
    found.into_values().collect()
}
