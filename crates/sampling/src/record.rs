//! What the kernel tells: samples, and what one must know to understand them.

use std::ops::Range;

use perf_event::data;

/// Something that happened.
pub struct Record {
    /// When: nanoseconds of the monotonic clock.
    pub time: u64,
    pub pid: u32,
    pub tid: u32,
    pub what: What,
}

pub enum What {
    /// A file, or a part of it, can be executed from here on.
    Mapped(Mapping),
    /// The process has become another program.
    Exec(String),
    /// The thread has a name.
    Named(String),
    /// The process has made another, or a thread of it.
    Fork {
        child: u32,
        thread: u32,
    },
    Exit,
    /// A thread has come to a processor.
    SwitchedIn,
    /// It has left the processor: because it waits, or because others want it.
    SwitchedOut {
        is_waiting: bool,
    },
    /// A clock interrupted the thread.
    Sample(Snapshot),
    /// There was no room for so many records.
    Lost(u64),
    /// The kernel stopped a clock of the thread that made too many samples, and let it go on.
    Throttled {
        clock: u64,
    },
    Unthrottled {
        clock: u64,
    },
    /// The process has room for copies of code.
    HasRoom(CopyRoom),
    /// There is a copy in all rooms of this number, at this place.
    HasCopy(usize, Range<u64>, OriginalOf),
}

/// Knows, for a place in a copy, the address of the instruction in the file that it stands for, and
/// whether a return address is on the stack there that is not the program's.
pub type OriginalOf = Box<dyn Fn(u32) -> Option<(u64, bool)> + Send>;

/// Memory for copies of a file's code.
#[derive(Clone, Debug)]
pub struct CopyRoom {
    pub region: Range<u64>,
    /// What addresses in memory have more than those in the file.
    pub bias: u64,
    /// Which copies are in there.
    pub number: usize,
}

/// Memory that code is executed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub begin: u64,
    pub end: u64,
    /// Where it is in the file.
    pub offset: u64,
    pub path: String,
    /// Which file it is.
    pub file: FileIdentity,
}

/// What tells a file from others: numbers of files are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    pub device: (u32, u32),
    pub inode: u64,
    /// How often the number was used before, if the kernel says.
    pub generation: u64,
}

/// Registers of an interrupted thread, and the top of its stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub rip: u64,
    pub rsp: u64,
    pub rbp: u64,
    /// The bytes from `rsp` on.
    pub stack: Vec<u8>,
}

/// The number of a record about a switch, which the reader of records does not know.
const SWITCH: u32 = 14;

/// Executed an `exec`.
const MISC_EXEC: u16 = 1 << 13;
/// Left the processor.
const MISC_SWITCH_OUT: u16 = 1 << 13;
/// Although it could have gone on.
const MISC_PREEMPTED: u16 = 1 << 14;

/// Understands a record. Kinds that nobody asked for are left out.
pub fn parse(record: &perf_event::Record<'_>) -> Option<Record> {
    let bytes = record.to_contiguous();
    let misc = record.misc();
    let (pid, tid, time) = origin(&bytes)?;
    let at = |what| Record {
        time,
        pid,
        tid,
        what,
    };
    if record.ty() == SWITCH {
        return Some(at(match misc & MISC_SWITCH_OUT {
            0 => What::SwitchedIn,
            _ => What::SwitchedOut {
                is_waiting: misc & MISC_PREEMPTED == 0,
            },
        }));
    }
    Some(match record.parse_record().ok()? {
        data::Record::Sample(sample) => {
            let registers = sample.regs_user()?;
            let [rbp, rsp, rip] = *registers.regs.first_chunk::<3>()?;
            Record {
                time: sample.time()?,
                pid: sample.pid()?,
                tid: sample.tid()?,
                what: What::Sample(Snapshot {
                    rip,
                    rsp,
                    rbp,
                    stack: sample.stack_user().unwrap_or_default().to_vec(),
                }),
            }
        }
        data::Record::Mmap2(it) => Record {
            pid: it.pid,
            tid: it.tid,
            ..at(What::Mapped(Mapping {
                begin: it.addr,
                end: it.addr.saturating_add(it.len),
                offset: it.pgoff,
                path: text(&it.filename),
                file: FileIdentity {
                    device: (it.maj().unwrap_or(0), it.min().unwrap_or(0)),
                    inode: it.ino().unwrap_or(0),
                    generation: it.ino_generation().unwrap_or(0),
                },
            }))
        },
        data::Record::Comm(it) => Record {
            pid: it.pid,
            tid: it.tid,
            ..at(match misc & MISC_EXEC {
                0 => What::Named(text(&it.comm)),
                _ => What::Exec(text(&it.comm)),
            })
        },
        data::Record::Fork(it) => Record {
            pid: it.ppid,
            tid: it.ptid,
            ..at(What::Fork {
                child: it.pid,
                thread: it.tid,
            })
        },
        data::Record::Exit(it) => Record {
            pid: it.pid,
            tid: it.tid,
            ..at(What::Exit)
        },
        data::Record::Lost(it) => at(What::Lost(it.lost)),
        data::Record::LostSamples(it) => at(What::Lost(it.lost)),
        data::Record::Throttle(it) => at(What::Throttled {
            clock: it.stream_id,
        }),
        data::Record::Unthrottle(it) => at(What::Unthrottled {
            clock: it.stream_id,
        }),
        _ => return None,
    })
}

/// Who wrote a record, and when: the last words of all but samples, which say it themselves.
fn origin(bytes: &[u8]) -> Option<(u32, u32, u64)> {
    let (_, last) = bytes.split_last_chunk::<16>()?;
    let number = |at: usize| last.get(at..at + 4).and_then(|it| it.try_into().ok());
    let (pid, tid) = (number(0)?, number(4)?);
    let time = last.last_chunk::<8>()?;
    Some((
        u32::from_ne_bytes(pid),
        u32::from_ne_bytes(tid),
        u64::from_ne_bytes(*time),
    ))
}

/// A name as the kernel writes it: up to the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
