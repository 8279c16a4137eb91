//! What was counted in a part of a run that nobody wants in its reports: while the program paused.
//!
//! Counters, visits and shifts are numbers that add up, so what was counted between two moments is the
//! difference of two readings; and what was counted in all pauses is one such sum, however many there
//! were.
//!
//! `paused`, in the folder of the run: a line that tells of the rest, as JSON, and then all numbers. It
//! is written again whenever a pause begins or ends, so that it is true even if headcount is killed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::foreign_file;
use crate::journal::{Entry, Unreadable, Written, private_file};
use crate::own_folder::OwnFolder;

/// The name of the file.
const PAUSED: &str = "paused";

/// A part of a run. Its numbers wrap around: on the way, it may be less than nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The counters of copies, by number.
    pub windows: Vec<u64>,
    /// The counters of each module that has breakpoints.
    pub counters: Vec<Vec<u64>>,
    /// Who came and went by no edge.
    pub moves: Moves,
}

/// How many threads came to an instruction or went away from it, by no edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves(BTreeMap<Place, i64>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Visit {
        routine: usize,
        at: u64,
    },
    Shift {
        module: usize,
        block: u32,
        from: u32,
    },
}

impl Moves {
    /// Adds what a line of the journal says, so many times.
    pub fn add(&mut self, entry: &Entry, times: i64) {
        let (place, delta) = match *entry {
            Entry::Visit { routine, at, delta } => (Place::Visit { routine, at }, delta),
            Entry::Shift {
                module,
                block,
                from,
                delta,
            } => (
                Place::Shift {
                    module,
                    block,
                    from,
                },
                delta,
            ),
            _ => return,
        };
        let sum = self.0.entry(place).or_default();
        *sum = sum.wrapping_add(delta.wrapping_mul(times));
        if *sum == 0 {
            self.0.remove(&place);
        }
    }

    /// The same as lines of the journal.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.0.iter().map(|(place, delta)| match *place {
            Place::Visit { routine, at } => Entry::Visit {
                routine,
                at,
                delta: *delta,
            },
            Place::Shift {
                module,
                block,
                from,
            } => Entry::Shift {
                module,
                block,
                from,
                delta: *delta,
            },
        })
    }
}

impl Part {
    /// Adds numbers and lines of a run, so many times.
    pub fn add<'e>(
        &mut self,
        windows: &[u64],
        counters: &[Vec<u64>],
        entries: impl IntoIterator<Item = &'e Entry>,
        times: i64,
    ) {
        add(&mut self.windows, windows, times);
        let modules = self.counters.len().max(counters.len());
        self.counters.resize(modules, Vec::new());
        for (sum, more) in self.counters.iter_mut().zip(counters) {
            add(sum, more, times);
        }
        for entry in entries {
            self.moves.add(entry, times);
        }
    }

    /// Adds another part, so many times.
    pub fn add_part(&mut self, other: &Self, times: i64) {
        let moves: Vec<Entry> = other.moves.entries().collect();
        self.add(&other.windows, &other.counters, &moves, times);
    }

    /// How its numbers are told apart when they are written down.
    pub(super) fn head(&self) -> Head {
        Head {
            windows: self.windows.len(),
            counters: self.counters.iter().map(Vec::len).collect(),
            moves: self.moves.entries().collect(),
        }
    }

    /// All its numbers.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        self.counters.iter().flatten().chain(&self.windows).copied()
    }
}

fn add(sums: &mut Vec<u64>, more: &[u64], times: i64) {
    sums.resize(sums.len().max(more.len()), 0);
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.wrapping_add(more.wrapping_mul(times.cast_unsigned()));
    }
}

/// What is known of a part before its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    windows: usize,
    counters: Vec<usize>,
    moves: Vec<Entry>,
}

impl Head {
    /// The part, with its numbers from a longer row of them.
    pub(super) fn read(&self, words: &mut impl Iterator<Item = u64>) -> Part {
        let counters = self.counters.iter();
        let counters = counters.map(|it| words.by_ref().take(*it).collect());
        let mut part = Part {
            counters: counters.collect(),
            windows: words.by_ref().take(self.windows).collect(),
            ..Part::default()
        };
        self.moves.iter().for_each(|it| part.moves.add(it, 1));
        part
    }
}

/// What was counted in pauses, as the folder of a run has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paused {
    part: Part,
    /// If a pause goes on: how many lines the journal had when it began. All counters until then are
    /// taken off `part`.
    since: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct FileHead {
    since: Option<usize>,
    part: Head,
}

impl Paused {
    pub(super) fn new(part: Part, since: Option<usize>) -> Self {
        Self { part, since }
    }

    /// What was counted in all pauses when the run had counted so much.
    pub fn until(&self, written: &Written) -> Part {
        let mut part = self.part.clone();
        if let Some(since) = self.since {
            let lines = written.entries.get(since..).unwrap_or_default();
            part.add(&written.windows, &written.counters, lines, 1);
        }
        part
    }

    /// Writes it down. Only the whole of it is ever found.
    pub(super) fn keep(&self, folder: &Path) -> io::Result<()> {
        let unfinished = folder.join("unfinished.paused");
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private_file(&unfinished)?;
        let head = FileHead {
            since: self.since,
            part: self.part.head(),
        };
        let mut bytes = serde_json::to_vec(&head)?;
        bytes.push(b'\n');
        bytes.extend(self.part.words().flat_map(u64::to_le_bytes));
        file.write_all(&bytes)?;
        fs::rename(&unfinished, folder.join(PAUSED))
    }
}

/// What was counted in pauses; `None` if there was none.
pub fn paused(folder: &OwnFolder) -> Result<Option<Paused>, Unreadable> {
    let failed = |error| Unreadable::Io(folder.path().join(PAUSED), error);
    let mut bytes = Vec::new();
    match foreign_file::open(&folder.file(PAUSED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(mut file) => file.read_to_end(&mut bytes).map_err(failed)?,
    };
    read(&bytes).map(Some).map_err(failed)
}

fn read(bytes: &[u8]) -> io::Result<Paused> {
    let end = bytes.iter().position(|it| *it == b'\n');
    let end = end.ok_or(io::ErrorKind::InvalidData)?;
    let head: FileHead = serde_json::from_slice(&bytes[..end])?;
    let (words, _) = bytes[end + 1..].as_chunks::<8>();
    let mut words = words.iter().map(|it| u64::from_le_bytes(*it));
    Ok(Paused::new(head.part.read(&mut words), head.since))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(at: u64, delta: i64) -> Entry {
        Entry::Visit {
            routine: 1,
            at,
            delta,
        }
    }

    fn written(windows: &[u64], entries: Vec<Entry>) -> Written {
        Written {
            entries,
            routines: Vec::new(),
            counters: vec![vec![windows[0]]],
            windows: windows.to_vec(),
        }
    }

    #[test]
    fn what_is_paused_is_what_was_counted_between() {
        let begin = written(&[5, 7], vec![visit(8, 1)]);
        let end = written(&[6, 9, 4], vec![visit(8, 1), visit(8, -1), visit(9, 2)]);
        let mut part = Part::default();
        part.add(&begin.windows, &begin.counters, [], -1);
        let open = Paused::new(part, Some(1));
        let found = open.until(&end);
        assert_eq!(found.windows, [1, 2, 4]);
        assert_eq!(found.counters, [[1]]);
        let moves: Vec<Entry> = found.moves.entries().collect();
        assert_eq!(moves, [visit(8, -1), visit(9, 2)]);
        let closed = Paused::new(found.clone(), None);
        assert_eq!(closed.until(&end), found);
    }

    #[test]
    fn moves_that_cancel_out_are_none() {
        let mut moves = Moves::default();
        moves.add(&visit(3, 2), 1);
        moves.add(&visit(3, 1), -2);
        assert_eq!(moves, Moves::default());
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let folder = tempfolder();
        let mut part = Part::default();
        part.add(&[1, u64::MAX], &[vec![], vec![3]], &[visit(7, -1)], 1);
        let paused = Paused::new(part, Some(12));
        paused.keep(&folder).unwrap();
        paused.keep(&folder).unwrap();
        let bytes = fs::read(folder.join(PAUSED)).unwrap();
        assert_eq!(read(&bytes).unwrap(), paused);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn garbage_is_an_error() {
        for bytes in [&b""[..], b"\n", b"{}\n", b"{\"since\":-1}\n", b"12345678"] {
            assert!(read(bytes).is_err());
        }
        // What is cut off is nothing.
        let head = b"{\"since\":null,\"part\":{\"windows\":9,\"counters\":[3],\"moves\":[]}}\n1234";
        assert_eq!(read(head).unwrap().part.windows, [0; 0]);
    }

    fn tempfolder() -> std::path::PathBuf {
        let name = format!("headcount-paused-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }
}
