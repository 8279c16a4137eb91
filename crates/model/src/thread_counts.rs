//! What each thread of a run counted.

use crate::packed::{Packed, Packer};

/// What each thread of a run counted. Together, they are the counts of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// The modules of which something ran.
    pub modules: Vec<ThreadModule>,
    /// The threads, in the order in which they ended.
    pub threads: Vec<CountedThread>,
}

/// A module of which threads have counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadModule {
    /// Which build it is.
    pub build_id: String,
    /// What counters of it there are, as those who recover counts understand it.
    pub readings: Vec<u8>,
}

/// A thread, from when it began to count to when it ended or became another program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedThread {
    /// Which process of the run it was a thread of, from 1; 0 if nobody knows which threads these were.
    pub process: u32,
    /// The kernel's number of the process.
    pub pid: u32,
    /// Its own.
    pub tid: u32,
    /// Its name in the end.
    pub name: String,
    /// How many instructions it executed.
    pub executed: u64,
    /// That many, or more.
    pub at_least: bool,
    /// What its counters said, as those who recover counts understand it.
    pub counts: Vec<u8>,
}

impl CountedThread {
    /// Is it all that was counted by threads that had not ended when headcount was killed?
    pub fn is_rest(&self) -> bool {
        self.process == 0
    }
}

impl ThreadCounts {
    /// As bytes.
    pub fn pack(&self) -> Vec<u8> {
        let mut to = Packer::default();
        to.many(&self.modules, |to, it| {
            to.text(&it.build_id);
            to.bytes(&it.readings);
        });
        to.many(&self.threads, |to, it| {
            for number in [it.process, it.pid, it.tid] {
                to.number(number as usize);
            }
            to.text(&it.name);
            to.wide(it.executed);
            to.number(usize::from(it.at_least));
            to.bytes(&it.counts);
        });
        to.0
    }

    /// `None`: these are not bytes of ours.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let modules = from.many(|it| {
            Some(ThreadModule {
                build_id: it.text()?,
                readings: it.bytes()?.to_vec(),
            })
        })?;
        let threads = from.many(|it| {
            Some(CountedThread {
                process: it.number()?,
                pid: it.number()?,
                tid: it.number()?,
                name: it.text()?,
                executed: it.wide()?,
                at_least: it.number()? != 0,
                counts: it.bytes()?.to_vec(),
            })
        })?;
        from.0.is_empty().then_some(Self { modules, threads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_as_they_were_written() {
        let counts = ThreadCounts {
            modules: vec![ThreadModule {
                build_id: "ab".to_owned(),
                readings: vec![1, 2, 3],
            }],
            threads: vec![CountedThread {
                process: 1,
                pid: 7,
                tid: u32::MAX,
                name: "a b".to_owned(),
                executed: u64::MAX,
                at_least: true,
                counts: vec![0; 300],
            }],
        };
        let bytes = counts.pack();
        assert_eq!(ThreadCounts::unpack(&bytes), Some(counts));
        for end in 0..bytes.len() {
            assert_eq!(ThreadCounts::unpack(&bytes[..end]), None);
        }
    }
}
