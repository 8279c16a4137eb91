//! What `/proc` tells of a process.

use std::fs::{self, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use headcount_model::LoadAddr;
use libc::pid_t;

use crate::kernel;

/// A file, as device and inode; inode 0 is none.
pub type FileNumber = (String, u64);

/// A stretch of a process's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where it is.
    pub range: Range<u64>,
    /// May it be executed?
    pub executable: bool,
    /// Where in its file it begins.
    pub offset: u64,
    /// Of which file.
    pub file: FileNumber,
    /// The file's path, as the process sees it.
    pub path: String,
}

impl Mapping {
    /// Does the kernel lend processes this memory, so that they can call it faster?
    pub fn is_kernels(&self) -> bool {
        self.path.starts_with('[') && !["[heap]", "[stack]"].contains(&self.path.as_str())
    }

    /// Is this the file that is mapped?
    pub fn is_of(&self, file: &Metadata) -> bool {
        self.is_on_device_of(file) && self.file.1 == file.ino()
    }

    /// Is this surely another file than the one that is mapped?
    pub fn is_of_another(&self, file: &Metadata) -> bool {
        self.is_on_device_of(file) && self.file.1 != file.ino()
    }

    /// Some file systems show another device here than there.
    fn is_on_device_of(&self, file: &Metadata) -> bool {
        self.file.0 == number_of(file).0
    }
}

/// The files whose code a process has mapped, by the paths that it sees.
pub fn code_files(pid: pid_t) -> io::Result<Vec<String>> {
    let mapped = mappings(pid)?.into_iter();
    let code = mapped.filter(|it| it.executable && it.path.starts_with('/'));
    let mut paths: Vec<String> = code.map(|it| it.path).collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

/// Which file this is, as mappings name it; but for file systems that show another device there.
pub fn number_of(file: &Metadata) -> FileNumber {
    let (major, minor) = (libc::major(file.dev()), libc::minor(file.dev()));
    (format!("{major:02x}:{minor:02x}"), file.ino())
}

/// The size of a page.
pub const PAGE: u64 = 4096;

/// The pages of a mapping that are the process's own, and so may be other than those of its file;
/// `None` if the kernel does not tell.
pub fn own_pages(tid: pid_t, range: &Range<u64>) -> Option<Vec<u64>> {
    const ENTRY: usize = 8;
    const IS_FILES: u64 = 1 << 61;
    const IS_THERE: u64 = 3 << 62;
    let first = range.start / PAGE;
    let pages = range.end.div_ceil(PAGE).checked_sub(first)?;
    let mut entries = vec![0; pages as usize * ENTRY];
    let map = fs::File::open(format!("/proc/{tid}/pagemap")).ok()?;
    map.read_exact_at(&mut entries, first * ENTRY as u64).ok()?;
    let (entries, _) = entries.as_chunks::<ENTRY>();
    let entries = entries.iter().map(|it| u64::from_le_bytes(*it));
    let is_own = |it: u64| it & IS_THERE != 0 && it & IS_FILES == 0;
    let own = (first..).zip(entries).filter(|it| is_own(it.1));
    Some(own.map(|(page, _)| page * PAGE).collect())
}

/// Everything that a living thread's process has mapped, by address. A thread that has ended has no
/// memory, even if its process goes on: it is gone.
pub fn mappings(tid: pid_t) -> io::Result<Vec<Mapping>> {
    // Paths may be any bytes.
    let text = match fs::read(format!("/proc/{tid}/maps")) {
        Ok(text) if text.is_empty() => return Err(kernel::gone()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(kernel::gone()),
        other => other?,
    };
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(mapping).collect())
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let trimmed = rest.trim_start_matches(' ');
        let (word, tail) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        rest = tail;
        word
    };
    let (start, end) = word().split_once('-')?;
    let permissions = word();
    let offset = u64::from_str_radix(word(), 16).ok()?;
    let device = word().to_owned();
    let inode = word().parse().ok()?;
    let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
    Some(Mapping {
        range,
        executable: permissions.contains('x'),
        offset,
        file: (device, inode),
        // Of what a name may have in it, the kernel writes this alone otherwise.
        path: rest.trim_start_matches(' ').replace("\\012", "\n"),
    })
}

/// What the program does with signals; bit 0 is signal 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Those that wait for this thread alone.
    pub pending: u64,
    /// Those it ignores.
    pub ignored: u64,
    /// Those it has handlers for.
    pub caught: u64,
}

/// Of a thread.
pub fn signals(tid: pid_t) -> io::Result<Signals> {
    let text = status(tid)?;
    let set = |name: &str| {
        let value = field(&text, name)?;
        u64::from_str_radix(value, 16).ok()
    };
    Ok(Signals {
        pending: set("SigPnd:").unwrap_or(0),
        ignored: set("SigIgn:").unwrap_or(0),
        caught: set("SigCgt:").unwrap_or(0),
    })
}

/// May a thread raise its hard limits?
pub fn may_raise_limits(tid: pid_t) -> bool {
    const CAP_SYS_RESOURCE: u64 = 24;
    let text = status(tid).unwrap_or_default();
    let capabilities = field(&text, "CapEff:").map(|it| u64::from_str_radix(it, 16));
    capabilities.is_some_and(|it| it.is_ok_and(|it| it >> CAP_SYS_RESOURCE & 1 == 1))
}

/// How many filters of system calls a thread has; strict mode counts as one.
pub fn filters(tid: pid_t) -> u32 {
    let text = status(tid).unwrap_or_default();
    let number = |name: &str| field(&text, name)?.parse().ok();
    let mode: u32 = number("Seccomp:").unwrap_or(0);
    let filters = number("Seccomp_filters:").unwrap_or(0);
    filters.max(mode.min(1))
}

/// What a process may do, as bits.
pub fn capabilities(pid: pid_t) -> u64 {
    let text = status(pid).unwrap_or_default();
    let set = field(&text, "CapEff:").and_then(|it| u64::from_str_radix(it, 16).ok());
    set.unwrap_or(0)
}

/// In whose name a process acts, and what it may do.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    /// Its effective user and group.
    pub user: u32,
    pub group: u32,
    /// The capabilities that it may use, and those that it could ever get, as bits.
    pub permitted: u64,
    pub bounding: u64,
    /// It gets no new ones from files (`no_new_privs`).
    pub no_new: bool,
}

/// Of a process.
pub fn rights(pid: pid_t) -> io::Result<Rights> {
    let text = status(pid)?;
    // Four numbers; the second is the effective one.
    let effective = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let set = |name: &str| u64::from_str_radix(field(&text, name)?, 16).ok();
    let rights = || {
        Some(Rights {
            user: effective("Uid:")?,
            group: effective("Gid:")?,
            permitted: set("CapPrm:")?,
            bounding: set("CapBnd:")?,
            no_new: field(&text, "NoNewPrivs:") == Some("1"),
        })
    };
    rights().ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The process that a thread belongs to.
pub fn process_of(tid: pid_t) -> Option<pid_t> {
    field(&status(tid).ok()?, "Tgid:")?.parse().ok()
}

/// Who traces a process; `None` if nobody does.
pub fn tracer_of(pid: pid_t) -> Option<pid_t> {
    let tracer = field(&status(pid).ok()?, "TracerPid:")?.parse().ok()?;
    (tracer != 0).then_some(tracer)
}

/// Has a thread ended, be it that nobody was told yet?
pub fn has_ended(tid: pid_t) -> bool {
    match status(tid) {
        Ok(text) => field(&text, "State:").is_some_and(|it| it.starts_with(['Z', 'X'])),
        Err(error) => kernel::is_gone(&error),
    }
}

/// Has a process ended, with nobody having asked for its status yet?
pub fn is_zombie(pid: pid_t) -> bool {
    status(pid).is_ok_and(|text| field(&text, "State:").is_some_and(|it| it.starts_with('Z')))
}

/// Does a thread run, or could it?
pub fn is_running(tid: pid_t) -> bool {
    status(tid).is_ok_and(|text| field(&text, "State:").is_some_and(|it| it.starts_with('R')))
}

fn status(tid: pid_t) -> io::Result<String> {
    let bytes = fs::read(format!("/proc/{tid}/status")).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => kernel::gone(),
        _ => error,
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// The threads of a process that run its code.
pub fn threads(pid: pid_t) -> io::Result<Vec<pid_t>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = entry?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse::<pid_t>().ok()));
    }
    found.retain(|tid| !is_kernels(*tid));
    found.sort_unstable();
    Ok(found)
}

/// Does a thread of a process only work for the kernel, as those of io_uring do? It never runs code
/// of the program, or of ours.
fn is_kernels(tid: pid_t) -> bool {
    const PF_IO_WORKER: u32 = 0x10;
    const PF_USER_WORKER: u32 = 0x4000;
    let text = fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    // The name before them may have anything in it.
    let (_, fields) = text.rsplit_once(") ").unwrap_or_default();
    let flags = fields
        .split(' ')
        .nth(6)
        .and_then(|it| it.parse::<u32>().ok());
    flags.is_some_and(|it| it & (PF_IO_WORKER | PF_USER_WORKER) != 0)
}

/// The children of a process, their children, and so on.
pub fn descendants(pid: pid_t) -> Vec<pid_t> {
    let parents: Vec<(pid_t, pid_t)> = processes()
        .filter_map(|it| Some((it, field(&status(it).ok()?, "PPid:")?.parse().ok()?)))
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        let children = parents.iter().filter(|(_, it)| *it == parent);
        let new: Vec<pid_t> = children
            .map(|(child, _)| *child)
            .filter(|child| !found.contains(child))
            .collect();
        found.extend(new);
    }
    found.split_off(1)
}

fn processes() -> impl Iterator<Item = pid_t> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|it| it.file_name().to_str()?.parse().ok())
}

/// The command a process was started with.
pub fn command(pid: pid_t) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect::<Vec<_>>()
        .split_last()
        .map_or(Vec::new(), |(_, words)| words.to_vec())
}

/// A thread that waits in the kernel. As long as this stays the same, it has not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asleep {
    /// The instruction that it will come back to.
    pub at: LoadAddr,
    /// How often it has given up its processor.
    switches: u64,
}

/// Whether, and where, a thread waits in the kernel.
pub fn asleep(tid: pid_t) -> Option<Asleep> {
    let call = fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
    asleep_in(&call, &status(tid).ok()?)
}

fn asleep_in(call: &str, status: &str) -> Option<Asleep> {
    let is_asleep = field(status, "State:")?.starts_with(['S', 'D']);
    let address = call.split_ascii_whitespace().next_back()?;
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    let switches = |name| field(status, name)?.parse::<u64>().ok();
    let switches = switches("voluntary_ctxt_switches:")? + switches("nonvoluntary_ctxt_switches:")?;
    is_asleep.then_some(Asleep {
        at: LoadAddr(address),
        switches,
    })
}

/// The current folder of a thread.
pub fn folder(tid: pid_t) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{tid}/cwd"))
}

/// The files that a process has open, as far as we may know.
pub fn open_files(pid: pid_t) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?;
    let links = entries.flatten().map(|it| fs::read_link(it.path()));
    Ok(links.filter_map(Result::ok).collect())
}

/// The first letters of a process's name, which everybody may know.
pub fn short_name(pid: pid_t) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

/// The name of a thread, which its program may have chosen.
pub fn thread_name(pid: pid_t, tid: pid_t) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The file of the program that a process runs.
pub fn executable(pid: pid_t) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_read_with_blanks_in_its_path() {
        let line = "7f12a000-7f12b000 r-xp 00001000 fe:01 1234       /tmp/two  words";
        let mapping = mapping(line).unwrap();
        assert_eq!(mapping.range, 0x7f12a000..0x7f12b000);
        assert!(mapping.executable);
        assert_eq!(mapping.offset, 0x1000);
        assert_eq!(mapping.file, ("fe:01".to_owned(), 1234));
        assert_eq!(mapping.path, "/tmp/two  words");
        let line = line.replace("  words", "\\012lines");
        assert_eq!(super::mapping(&line).unwrap().path, "/tmp/two\nlines");
    }

    #[test]
    fn a_thread_that_waits_says_where() {
        let call = "202 0x1 0x189 0x0 0x0 0x0 0x0 0x7ffd00 0x7f0012ab\n";
        let status = "Name:\tx\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t7\n\
                      nonvoluntary_ctxt_switches:\t2\n";
        let found = Asleep {
            at: LoadAddr(0x7f00_12ab),
            switches: 9,
        };
        assert_eq!(asleep_in(call, status), Some(found));
        assert_eq!(asleep_in("running\n", status), None);
        assert_eq!(asleep_in(call, &status.replace("S (", "R (")), None);
    }

    #[test]
    fn garbage_is_no_mapping() {
        for line in ["", "-", "x-y r-xp", "10-20", "10-20 r--p zz 0:0 1"] {
            assert_eq!(mapping(line), None, "{line}");
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let whole = "7f12a000-7f12b000 r-xp 00001000 fe:01 1234       /tmp/two  words";
        let status = "Name:\tcat\nState:\tZ (zombie)\nTgid:\t12\nSigPnd:\tffff\n";
        let mut dice = 0x9e37_79b9_7f4a_7c15_u64; // xorshift
        for _ in 0..200_000 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let mut changed = whole.as_bytes().to_vec();
            let at = (dice >> 8) as usize % changed.len();
            match dice % 4 {
                0 => changed.truncate(at),
                1 => changed[at] = (dice >> 32) as u8,
                2 => drop(changed.splice(at..at, *b"ffffffffffffffff")),
                _ => drop(changed.splice(at..at + 1, [0xff, b' ', b'-'])),
            }
            let changed = String::from_utf8_lossy(&changed);
            if let Some(it) = mapping(&changed) {
                assert!(changed.ends_with(&it.path), "{changed}");
            }
            let cut = (dice >> 40) as usize % status.len();
            for name in ["State:", "Tgid:", "SigPnd:", "SigIgn:"] {
                let value = field(&status[cut..], name);
                assert!(
                    value.is_none_or(|it| status.contains(it)),
                    "{name} from {cut}"
                );
            }
        }
    }
}
