//! How did this command end, and what did it say?
//!
//! Every child is the leader of a process group of its own, so a limit can
//! end it together with whatever it started, and nothing else.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;

/// The way a command came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Signal(i32),
    /// It was still running at its limit and was killed.
    TooLong(Duration),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exit(code) => write!(f, "exit status {code}"),
            End::Signal(number) => write!(f, "signal {number}"),
            End::TooLong(limit) => write!(f, "still running after {} s", limit.as_secs()),
        }
    }
}

/// A command that has ended, with what it wrote.
#[derive(Debug)]
pub struct Ended {
    pub end: End,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Ended {
    pub fn succeeded(&self) -> bool {
        self.end == End::Exit(0)
    }

    /// The most telling line of stderr: the first with "error" in it, or the last.
    pub fn complaint(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let telling = lines.clone().find(|line| line.contains("error"));
        telling
            .or_else(|| lines.next_back())
            .unwrap_or("")
            .trim()
            .to_owned()
    }
}

/// Runs `command` to its end, or to `limit`. What it writes goes through files
/// in `folder`: a grandchild that keeps a pipe open could hold us for ever.
pub fn run(command: &mut Command, folder: &Path, limit: Duration) -> Result<Ended> {
    let (out, err) = (folder.join("child.stdout"), folder.join("child.stderr"));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(File::create(&out).with_context(|| out.display().to_string())?)
        .stderr(File::create(&err).with_context(|| err.display().to_string())?)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let end = wait(&mut child, limit)?;
    Ok(Ended {
        end,
        stdout: fs::read(&out)?,
        stderr: fs::read(&err)?,
    })
}

/// Runs a command that has no business failing, and returns what it said.
pub fn run_or_bail(command: &mut Command, folder: &Path, limit: Duration) -> Result<Vec<u8>> {
    let ended = run(command, folder, limit)?;
    if !ended.succeeded() {
        bail!("{}: {}: {}", shown(command), ended.end, ended.complaint());
    }
    Ok(ended.stdout)
}

fn wait(child: &mut Child, limit: Duration) -> Result<End> {
    let start = Instant::now();
    let mut nap = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(end_of(status));
        }
        if start.elapsed() >= limit {
            end_group(child)?;
            return Ok(End::TooLong(limit));
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(5));
    }
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exit(code),
        (None, Some(number)) => End::Signal(number),
        (None, None) => unreachable!("a child that was waited for exited or was killed"),
    }
}

/// The child has not been waited for yet, so its id, which is also its group's,
/// cannot have been given to anybody else.
fn end_group(child: &mut Child) -> Result<()> {
    killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL)?;
    child.wait()?;
    Ok(())
}

/// Runs a command without a limit and says how much processor time it and the
/// children it waited for used, user and system together.
///
/// The kernel adds up over all children, so two of these must not overlap.
pub fn time(command: &mut Command) -> Result<(ExitStatus, Duration)> {
    let before = children_time()?;
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    Ok((status, children_time()? - before))
}

/// What a command and the children it waited for used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// From its beginning to its end.
    pub elapsed: Duration,
    /// User and system together.
    pub processor: Duration,
    /// The most memory that any one of these processes had at a time, in bytes.
    pub peak: u64,
}

/// Runs a command without a limit and says what it used.
pub fn usage(command: &mut Command) -> Result<(ExitStatus, Usage)> {
    let start = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let pid = child.id().cast_signed();
    let mut status = 0;
    // SAFETY: the structure is made of numbers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes an int and one `rusage`, which is what we pass. `child` is not
    // waited for again.
    let ended = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    let elapsed = start.elapsed();
    if ended != pid {
        bail!(std::io::Error::last_os_error());
    }
    let seconds = |time: libc::timeval| duration(TimeVal::from(time));
    let usage = Usage {
        elapsed,
        processor: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak: usage.ru_maxrss.cast_unsigned() * 1024,
    };
    Ok((ExitStatus::from_raw(status), usage))
}

fn children_time() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

fn duration(time: TimeVal) -> Duration {
    Duration::from_micros(time.num_microseconds().cast_unsigned())
}

/// The command as one could type it.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ended {
        let folder = std::env::temp_dir().join(format!("headcount-child-{}", std::process::id()));
        let folder = folder.join(script.replace(|c: char| !c.is_alphanumeric(), "_"));
        fs::create_dir_all(&folder).unwrap();
        let ended = run(Command::new("sh").arg("-c").arg(script), &folder, limit).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        ended
    }

    #[test]
    fn an_end_says_what_it_was() {
        let limit = Duration::from_secs(20);
        assert_eq!(shell("exit 3", limit).end, End::Exit(3));
        assert_eq!(shell("kill -6 $$", limit).end, End::Signal(6));
        assert_eq!(shell("echo hello", limit).stdout, b"hello\n");
    }

    #[test]
    fn a_limit_ends_the_grandchildren_too() {
        let limit = Duration::from_millis(200);
        let ended = shell("sleep 60 & echo $!; wait", limit);
        assert_eq!(ended.end, End::TooLong(limit));
        let grandchild = String::from_utf8(ended.stdout).unwrap();
        // The kernel takes its time; and as its parent is gone, it may be a zombie until init has
        // waited for it.
        let stat = format!("/proc/{}/stat", grandchild.trim());
        let gone = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        let deadline = Instant::now() + Duration::from_secs(20);
        while !gone() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(gone());
    }
}
