//! What does a process look like from outside?

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result};

/// What must be the same after letting go.
#[derive(Debug, PartialEq, Eq)]
pub struct Facts {
    /// All but what the program itself allocates.
    maps: BTreeSet<String>,
    /// What is executed, byte by byte.
    text: u64,
    descriptors: BTreeSet<String>,
    threads: usize,
    kilobytes: u64,
}

/// What a program may have allocated meanwhile. One of our windows is larger.
const OWN_GROWTH: u64 = 32 << 10;

impl Facts {
    pub fn of(pid: i32) -> Result<Facts> {
        let read = |name: &str| -> Result<String> {
            let path = format!("/proc/{pid}/{name}");
            fs::read_to_string(&path).context(path)
        };
        let maps = read("maps")?;
        let size = read("status")?;
        let size = size.lines().find_map(|it| it.strip_prefix("VmSize:"));
        let size = size.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok());
        Ok(Facts {
            text: text(pid, &maps)?,
            maps: maps
                .lines()
                .filter(|it| !is_data(it))
                .map(without_spaces)
                .collect(),
            descriptors: descriptors(pid)?,
            threads: threads(pid)?,
            kilobytes: size.context("no VmSize")?,
        })
    }

    /// What is not as it was.
    pub fn difference(&self, now: &Facts) -> Option<String> {
        if let Some(new) = now.maps.difference(&self.maps).next() {
            return Some(format!("{new} is mapped"));
        }
        if let Some(gone) = self.maps.difference(&now.maps).next() {
            return Some(format!("{gone} is not mapped any more"));
        }
        if self.text != now.text {
            return Some("bytes of its text are not what they were".to_owned());
        }
        if let Some(new) = now.descriptors.difference(&self.descriptors).next() {
            return Some(format!("{new} is open"));
        }
        if self.threads != now.threads {
            return Some(format!(
                "it has {} threads, not {}",
                now.threads, self.threads
            ));
        }
        (now.kilobytes > self.kilobytes + OWN_GROWTH)
            .then(|| format!("it has {} kB, not {}", now.kilobytes, self.kilobytes))
    }
}

/// Memory that the program writes to and that is in no file: heaps, stacks, arenas.
fn is_data(line: &str) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let rights = words.next().unwrap_or_default();
    let path = words.nth(3).unwrap_or_default();
    !rights.contains('x') && (path.is_empty() || path == "[heap]" || path == "[stack]")
}

fn without_spaces(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text(pid: i32, maps: &str) -> Result<u64> {
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut digest = DefaultHasher::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let range = words.next().and_then(|it| it.split_once('-'));
        let executable = words.next().is_some_and(|it| it.contains('x'));
        // The kernel's own page cannot be read.
        if !executable || line.ends_with("[vsyscall]") {
            continue;
        }
        let (start, end) = range.context("maps")?;
        let (start, end) = (
            u64::from_str_radix(start, 16)?,
            u64::from_str_radix(end, 16)?,
        );
        let mut bytes = vec![0; usize::try_from(end - start)?];
        memory
            .read_exact_at(&mut bytes, start)
            .context(line.to_owned())?;
        bytes.hash(&mut digest);
    }
    Ok(digest.finish())
}

/// How many threads of its own a process has. The kernel's that work for its io_uring come and go.
fn threads(pid: i32) -> Result<usize> {
    const PF_IO_WORKER: u32 = 0x10;
    const PF_USER_WORKER: u32 = 0x4000;
    let mut own = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        // It may have ended since.
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else {
            continue;
        };
        // The name may contain anything; flags are the seventh word behind it.
        let behind = stat.rsplit_once(')').context("stat")?.1;
        let flags: u32 = behind.split_whitespace().nth(6).context("flags")?.parse()?;
        own += usize::from(flags & (PF_IO_WORKER | PF_USER_WORKER) == 0);
    }
    Ok(own)
}

/// Numbers with what is behind them; of sockets and pipes only the kind. Not the server's own files,
/// in our current folder: a database opens those as it goes.
fn descriptors(pid: i32) -> Result<BTreeSet<String>> {
    let own = std::env::current_dir()?;
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let entry = entry?;
        // It may have been closed since.
        let Ok(target) = fs::read_link(entry.path()) else {
            continue;
        };
        if target.starts_with(&own) {
            continue;
        }
        let target = target.display().to_string();
        let kind = target.split(":[").next().unwrap_or_default();
        all.insert(format!("{} {kind}", entry.file_name().display()));
    }
    Ok(all)
}

/// Those that are there now.
pub fn children(pid: i32) -> Result<Vec<i32>> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(&path).context(path)?;
    let numbers = text.split_whitespace().map(str::parse);
    Ok(numbers.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_allocates_is_not_looked_at() {
        assert!(is_data("7f00-7f01 rw-p 00000000 00:00 0 "));
        assert!(is_data("7f00-7f01 rw-p 00000000 00:00 0      [heap]"));
        assert!(!is_data("7f00-7f01 r-xp 00000000 00:00 0 "));
        assert!(!is_data(
            "7f00-7f01 rw-s 00000000 08:01 7   /tmp/windows (deleted)"
        ));
    }

    #[test]
    fn a_process_that_does_nothing_does_not_change() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        // Until it has become what it will be.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let (first, second) = (Facts::of(pid).unwrap(), Facts::of(pid).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(first.difference(&second), None);
    }
}
