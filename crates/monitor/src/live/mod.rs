//! What a run has counted so far, told to whoever asks while it goes on.
//!
//! A run listens at a socket in its folder, where only its user comes. To answer, all threads are held
//! for a moment, so that the answer is true of that moment: the sums of all counters, and what is
//! still owed on account of where each thread stands. A thread that is in the midst of a block has
//! been counted for the whole of it, so its visit ends there (as it does when a thread is let go of);
//! of the run itself nothing is changed. The answer is a file in memory, handed over together with
//! those of the journal: whoever asked reads them in their own time.

mod answer;
mod ask;
mod inside;
mod marks;
mod part;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::journal::Entry;

pub use answer::Listener;
pub use ask::{Live, NotAnswered, SoFar};
pub use marks::{Mark, check_name, marks};
pub use part::{Moves, Part, Paused, paused};

pub(crate) use inside::{Pauses, Request, is_request};

/// The name of the socket in the folder of a run.
const SOCKET: &str = "live";

/// What was counted at one moment, beside what the journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Snapshot {
    moment: Moment,
    /// The sums of the counters in all windows, by number.
    windows: Vec<u64>,
    /// The counters of each module that has breakpoints.
    counters: Vec<Vec<u64>>,
    /// What of it was counted while the program paused, if it ever did.
    paused: Option<Part>,
}

/// A moment of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// When it was, in nanoseconds since 1970.
    pub at: u64,
    /// For how long threads were held.
    pub held: Duration,
    /// How many threads were.
    pub threads: usize,
    /// How long the journal was.
    journal: u64,
    /// How long the file of routines was.
    routines: u64,
    /// What would be in the journal if all threads had gone away from where they stood.
    owed: Vec<Entry>,
    /// How many counters each module has.
    counters: Vec<usize>,
    /// What is known of the part of the run in which the program paused.
    paused: Option<part::Head>,
}

impl Snapshot {
    /// A line that tells of the moment, and then all numbers.
    fn write(&self, mut to: &File) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(&self.moment)?;
        bytes.push(b'\n');
        let counters = self.counters.iter().flatten().copied();
        let paused = self.paused.iter().flat_map(Part::words);
        let windows = self.windows.iter().copied();
        let words = counters.chain(paused).chain(windows);
        bytes.extend(words.flat_map(u64::to_le_bytes));
        to.write_all(&bytes)
    }

    fn read(from: &File) -> io::Result<Self> {
        let bytes = all_of(from)?;
        let end = bytes.iter().position(|it| *it == b'\n');
        let end = end.ok_or(io::ErrorKind::InvalidData)?;
        let moment: Moment = serde_json::from_slice(&bytes[..end])?;
        let (words, _) = bytes[end + 1..].as_chunks::<8>();
        let mut words = words.iter().map(|it| u64::from_le_bytes(*it));
        let counters = moment.counters.iter();
        let counters = counters.map(|it| words.by_ref().take(*it).collect());
        Ok(Self {
            counters: counters.collect(),
            paused: moment.paused.as_ref().map(|it| it.read(&mut words)),
            windows: words.collect(),
            moment,
        })
    }
}

/// The bytes of a file. Others may have it open by the same description, and read as well.
fn all_of(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;

    #[test]
    fn a_snapshot_is_read_as_it_was_written() {
        let visit = Entry::Visit {
            routine: 3,
            at: 0x1000,
            delta: -1,
        };
        let mut part = Part::default();
        part.add(&[5, 6, 7], &[vec![8]], std::slice::from_ref(&visit), 1);
        let snapshot = Snapshot {
            moment: Moment {
                at: 7,
                held: Duration::from_micros(5),
                threads: 2,
                journal: 100,
                routines: 20,
                owed: vec![visit],
                counters: vec![2, 0, 1],
                paused: Some(part.head()),
            },
            paused: Some(part),
            windows: vec![9, u64::MAX],
            counters: vec![vec![1, 2], vec![], vec![3]],
        };
        let file = kernel::memory_file().unwrap();
        snapshot.write(&file).unwrap();
        assert_eq!(Snapshot::read(&file).unwrap(), snapshot);
    }

    #[test]
    fn garbage_is_an_error() {
        let file = kernel::memory_file().unwrap();
        (&file).write_all(b"{\"at\": -1}\n12345678").unwrap();
        assert!(Snapshot::read(&file).is_err());
    }
}
