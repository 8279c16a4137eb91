//! Where does a workload run, and what can it see of the machine?
//!
//! Every run has the same path, the same few variables, process numbers and a loopback device of
//! its own. When it ends, or at its limit, nothing of it stays.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use headcount_ground::child::{self, End, Ended};

const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/games:/usr/sbin:/sbin";

/// How long a preparation, or what settles, may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// The folder of one workload:
///
/// | `script` | defines its functions |
/// | `prepared` | what it begins with |
/// | `here` | where it runs, every time |
/// | `native`, `again`, `counted`, `warm` | what came of it: `here`, `stdout`, `stderr` |
/// | `built` | a project that was built, and not tested yet |
/// | `cache`, `counts`, `profile.db` | headcount's, empty at first |
pub struct Sandbox {
    folder: PathBuf,
}

/// One way to run a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way<'a> {
    /// As it is, under this name.
    Alone(&'static str),
    /// By this headcount, under this name.
    Counted(&'static str, &'a Path),
}

impl Way<'_> {
    fn name(self) -> &'static str {
        match self {
            Way::Alone(name) | Way::Counted(name, _) => name,
        }
    }
}

/// A run that has ended. Its folder has `here`, `stdout` and `stderr`.
pub struct Ran {
    pub folder: PathBuf,
    pub end: End,
    pub seconds: f64,
}

impl Sandbox {
    /// A new folder below `work`, which everybody may look into: servers become other users.
    pub fn new(work: &Path, name: &str, script: &str) -> Result<Sandbox> {
        let folder = work.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        for part in [&folder, &folder.join("here")] {
            DirBuilder::new().mode(0o755).create(part)?;
        }
        fs::write(folder.join("script"), script)?;
        Ok(Sandbox { folder })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The profile of all counted runs.
    pub fn profile(&self) -> PathBuf {
        self.folder.join("profile.db")
    }

    /// Makes the files that every run begins with; says what went wrong, if anything.
    pub fn prepare(&self) -> Result<Option<String>> {
        let mut command = self.shell("type prepare >/dev/null || exit 0; prepare");
        let ended = child::run(self.here(&mut command), &self.folder, PATIENCE)?;
        fs::rename(self.path("here"), self.path("prepared"))?;
        Ok((!ended.succeeded()).then(|| format!("{}: {}", ended.end, ended.complaint())))
    }

    /// Runs a command in there, from the prepared files on, to its end.
    pub fn inside(&self, words: &[&OsStr], limit: Duration) -> Result<Ended> {
        copy(&self.path("prepared"), &self.path("here"))?;
        let mut command = self.command(words);
        self.here(&mut command);
        command.env("XDG_CACHE_HOME", self.path("cache"));
        child::run(&mut command, &self.folder, limit)
    }

    /// Begins again with what is in another folder of the workload.
    pub fn begin_with(&self, folder: &str) -> Result<()> {
        let here = self.path("here");
        if here.exists() {
            fs::remove_dir_all(&here)?;
        }
        copy(&self.path(folder), &here)
    }

    /// Keeps what is there now, for `begin_with`.
    pub fn keep(&self, folder: &str) -> Result<()> {
        copy(&self.path("here"), &self.path(folder))
    }

    /// Calls a function of the script, behind `words`, where the last step ended.
    pub fn step(
        &self,
        words: &[OsString],
        function: &str,
        variables: &[(&str, OsString)],
        limit: Duration,
    ) -> Result<Ended> {
        let mut command = self.command(&[]);
        command.args(words);
        command.args(["sh", "-euc"]).arg(self.functions(function));
        self.here(&mut command);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        child::run(&mut command, &self.folder, limit)
    }

    /// Runs it, from the prepared files on.
    pub fn run(&self, way: Way, limit: Duration) -> Result<Ran> {
        let folder = self.path(way.name());
        fs::create_dir(&folder)?;
        copy(&self.path("prepared"), &self.path("here"))?;
        let mut command = match way {
            Way::Alone(_) => self.command(&[]),
            Way::Counted(_, headcount) => self.command(&[
                OsStr::new("env"),
                &self.variable("XDG_CACHE_HOME=", "cache"),
                headcount.as_os_str(),
                OsStr::new("run"),
                OsStr::new("-q"),
                OsStr::new("-o"),
                self.profile().as_os_str(),
                OsStr::new("--"),
            ]),
        };
        // What headcount is told is not for the program.
        command.args(["env", "-u", "XDG_CACHE_HOME", "sh", "-euc"]);
        command.arg(self.functions("run"));
        let start = Instant::now();
        let ended = child::run(self.here(&mut command), &folder, limit)?;
        let seconds = start.elapsed().as_secs_f64();
        for (from, to) in [("child.stdout", "stdout"), ("child.stderr", "stderr")] {
            fs::rename(folder.join(from), folder.join(to))?;
        }
        self.settle(&folder)?;
        fs::rename(self.path("here"), folder.join("here"))?;
        Ok(Ran {
            folder,
            end: ended.end,
            seconds,
        })
    }

    /// Takes out of what a run left behind what differs every time.
    fn settle(&self, folder: &Path) -> Result<()> {
        let mut command = self.shell("type settle >/dev/null || exit 0; settle");
        self.here(&mut command);
        command.env("OUT", folder.join("stdout"));
        command.env("ERR", folder.join("stderr"));
        child::run_or_bail(&mut command, &self.folder, PATIENCE)?;
        Ok(())
    }

    fn shell(&self, what: &str) -> Command {
        let mut command = self.command(&["sh", "-euc"].map(OsStr::new));
        command.arg(self.functions(what));
        command
    }

    fn functions(&self, what: &str) -> String {
        format!(". {}; {what}", self.path("script").display())
    }

    /// `words` with nothing of the machine but its files: `unshare` ends all processes in there
    /// when the first, which is no part of the workload, ends.
    fn command(&self, words: &[&OsStr]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--net"]);
        if !nix::unistd::geteuid().is_root() {
            command.arg("--map-root-user");
        }
        command.args(["sh", "-c", "ip link set lo up; \"$@\"; exit $?", "sh"]);
        command.args(words);
        command
    }

    fn here<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let here = self.path("here");
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &here)
            .env("USER", "root")
            .env("SHELL", "/bin/sh")
            .env("TERM", "dumb")
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("SOURCE_DATE_EPOCH", "1000000000")
            .current_dir(here)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn variable(&self, name: &str, value: &str) -> OsString {
        let mut it = OsString::from(name);
        it.push(self.path(value));
        it
    }
}

/// With modes, owners and times.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut command = Command::new("cp");
    let status = command.arg("-a").arg(from).arg(to).status()?;
    anyhow::ensure!(status.success(), "{} failed", child::shown(&command));
    Ok(())
}
