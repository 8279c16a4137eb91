//! Do servers notice that they are attached to, and is every request counted?
//!
//! The files of `servers` are shell, as those of `workloads` are:
//!
//! ```text
//! ## redis
//! # packages: redis-server      Debian packages
//! # needs: root                 it does nothing as an ordinary user
//! # function: processCommand    runs once a request
//! # asking: 2                   how many requests, as the server numbers them, asking is
//! # unseen: 1                   how often the function runs for it that the answer does not tell
//! # attach: children            to its children, each, and not to itself
//! # rests: 90                   after how many idle seconds it has ended the threads it has no use for
//! start() { ... }               becomes the server
//! ready() { ... }               waits until it answers
//! load() { ... }                asks for something; what it prints is the same every time
//! asked() { ... }               how many requests there were, in the server's own words
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use headcount_ground::child;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::counts;
use crate::process::{self, Facts};
use crate::workload::{self, Section};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a server may take to come to rest.
const SETTLING: Duration = Duration::from_secs(20);

pub struct Server {
    pub name: String,
    pub packages: Vec<String>,
    pub needs_root: bool,
    function: String,
    asking: u64,
    unseen: u64,
    children: bool,
    rests: Duration,
    pub script: String,
}

pub fn read_all(folder: &Path) -> Result<Vec<Server>> {
    workload::sections(folder)?
        .into_iter()
        .map(server)
        .collect()
}

fn server(section: Section) -> Result<Server> {
    for function in ["start", "ready", "load", "asked"] {
        section.require(function)?;
    }
    let mut server = Server {
        name: section.name.clone(),
        packages: Vec::new(),
        needs_root: false,
        function: String::new(),
        asking: 0,
        unseen: 0,
        children: false,
        rests: Duration::ZERO,
        script: section.script.clone(),
    };
    for (key, value) in &section.remarks {
        match (key.as_str(), value.as_str()) {
            ("packages", names) => server.packages = workload::words(names),
            ("needs", "root") => server.needs_root = true,
            ("function", name) => server.function = name.to_owned(),
            ("attach", "children") => server.children = true,
            ("asking" | "unseen" | "rests", number) => {
                let number = number.parse();
                let number = number.map_err(|_| section.misspelt(key, value))?;
                match key.as_str() {
                    "asking" => server.asking = number,
                    "rests" => server.rests = Duration::from_secs(number),
                    _ => server.unseen = number,
                }
            }
            _ => return Err(section.misspelt(key, value)),
        }
    }
    Ok(server)
}

/// A server in its folder, where `script` is beside us: we are alone with it, in process numbers
/// and on loopback.
pub struct Trial<'a> {
    pub server: &'a Server,
    pub headcount: &'a Path,
    /// With `script`; and for profiles.
    pub folder: &'a Path,
    /// How often to attach under load.
    pub cycles: u64,
}

impl Trial<'_> {
    /// Says what was checked, and what came of it.
    pub fn check(&self) -> Vec<(&'static str, Result<String>)> {
        vec![
            ("run", self.counted_from_the_start()),
            ("attach", self.attached()),
        ]
    }

    /// `headcount run` with the server, one load, its own number against ours.
    fn counted_from_the_start(&self) -> Result<String> {
        let expected = self.loaded_alone()?;
        let profile = self.folder.join("run.db");
        let mut command = Command::new(self.headcount);
        command.args(["run", "-q", "-o"]).arg(&profile).arg("--");
        command.args(["sh", "-euc", &self.functions("start")]);
        let server = self.start(command)?;
        self.same_load(&expected)?;
        let told = self.asked()?;
        let status = server.stop()?;
        ensure!(status.success(), "headcount run ended with {status}");
        let counted = self.count(&[profile])?;
        self.same_count(counted, told + self.server.unseen)
    }

    /// What a load prints when nobody counts.
    fn loaded_alone(&self) -> Result<String> {
        let server = self.start(self.shell("start"))?;
        let first = self.said("load")?;
        let second = self.said("load")?;
        ensure!(first == second, "alone, twice: {first:?}, and {second:?}");
        server.stop()?;
        Ok(first)
    }

    fn attached(&self) -> Result<String> {
        let server = self.start(self.shell("start"))?;
        let expected = self.said("load")?;
        self.same_load(&expected)?;
        let before = self.settled(&server)?;
        let asked = self.asked()?;
        let attached = self.attach(&server, "attach.db")?;
        self.same_load(&expected)?;
        let profiles = let_go(attached)?;
        let asked = self.asked()? - asked - self.server.asking;
        let exact = self.same_count(self.count(&profiles)?, asked)?;
        self.as_before(&server, &before)?;
        let cycles = self.cycles_under_load(&server, &expected)?;
        self.same_load(&expected)?;
        self.as_before(&server, &before)?;
        server.stop()?;
        Ok(format!("{exact}; {cycles} cycles under load, as before"))
    }

    /// Attaches and lets go as often as wanted, while the server is never idle.
    fn cycles_under_load(&self, server: &Started, expected: &str) -> Result<u64> {
        let busy = std::sync::atomic::AtomicBool::new(true);
        std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                while busy.load(std::sync::atomic::Ordering::Relaxed) {
                    self.same_load(expected)?;
                }
                anyhow::Ok(())
            });
            let cycles = (0..self.cycles).try_for_each(|_| {
                let attached = self.attach(server, "cycles.db")?;
                std::thread::sleep(Duration::from_millis(50));
                let_go(attached)?;
                anyhow::Ok(())
            });
            busy.store(false, std::sync::atomic::Ordering::Relaxed);
            let load = load.join().expect("loads do not panic");
            cycles.and(load)
        })?;
        Ok(self.cycles)
    }

    /// Every time with the files that were prepared, so that it has served nobody yet.
    fn start(&self, mut command: Command) -> Result<Started> {
        let mut fresh = Command::new("sh");
        let from = self.folder.join("prepared/.");
        fresh.args(["-euc", "find . -mindepth 1 -delete; cp -a \"$1\" .", "sh"]);
        child::run_or_bail(fresh.arg(from), self.folder, PATIENCE)?;
        let log = File::create(self.folder.join("server.log"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let server = Started(child);
        self.said("ready")?;
        Ok(server)
    }

    /// One headcount a process.
    fn attach(&self, server: &Started, name: &str) -> Result<Vec<Attached>> {
        let targets = self.targets(server)?;
        let numbered = targets.into_iter().enumerate();
        let profile = |at: usize| self.folder.join(format!("{at}.{name}"));
        let attach = |(at, pid)| Attached::to(self.headcount, pid, profile(at));
        numbered.map(attach).collect()
    }

    fn targets(&self, server: &Started) -> Result<Vec<i32>> {
        let main = server.0.id().cast_signed();
        if !self.server.children {
            return Ok(vec![main]);
        }
        let children = process::children(main)?;
        ensure!(!children.is_empty(), "it has no children");
        Ok(children)
    }

    fn facts(&self, server: &Started) -> Result<BTreeMap<i32, Facts>> {
        let main = server.0.id().cast_signed();
        let children = process::children(main)?.into_iter();
        // A child that served somebody may have ended since.
        let children = children.filter_map(|pid| Some((pid, Facts::of(pid).ok()?)));
        let mut all: BTreeMap<i32, Facts> = children.collect();
        all.insert(main, Facts::of(main)?);
        Ok(all)
    }

    /// The facts of a server that has closed its connections, and whose children have ended that
    /// served one.
    fn settled(&self, server: &Started) -> Result<BTreeMap<i32, Facts>> {
        std::thread::sleep(self.server.rests);
        let deadline = Instant::now() + SETTLING;
        let mut facts = self.facts(server)?;
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let before = std::mem::replace(&mut facts, self.facts(server)?);
            if before == facts {
                return Ok(facts);
            }
            ensure!(Instant::now() < deadline, "it does not come to rest");
        }
    }

    fn as_before(&self, server: &Started, before: &BTreeMap<i32, Facts>) -> Result<()> {
        let deadline = Instant::now() + self.server.rests + SETTLING;
        loop {
            let now = self.facts(server)?;
            let what = before.iter().find_map(|(pid, facts)| match now.get(pid) {
                Some(now) => facts
                    .difference(now)
                    .map(|it| format!("process {pid}: {it}")),
                None => Some(format!("process {pid} is gone")),
            });
            match what {
                None => return Ok(()),
                Some(what) if Instant::now() > deadline => bail!("after letting go, {what}"),
                Some(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    fn same_load(&self, expected: &str) -> Result<()> {
        let said = self.said("load")?;
        ensure!(said == expected, "load: {said:?}, not {expected:?}");
        Ok(())
    }

    fn same_count(&self, counted: u64, told: u64) -> Result<String> {
        let function = &self.server.function;
        ensure!(
            counted == told,
            "{function} is counted {counted} times; the server says {told}"
        );
        Ok(format!("{counted} requests"))
    }

    fn asked(&self) -> Result<u64> {
        let said = self.said("asked")?;
        let number = said.trim().parse();
        number.with_context(|| format!("asked: {said:?}"))
    }

    fn said(&self, function: &str) -> Result<String> {
        let folder = tempfile::tempdir_in(self.folder)?;
        let said = child::run_or_bail(&mut self.shell(function), folder.path(), PATIENCE)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    fn shell(&self, function: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-euc", &self.functions(function)]);
        command
    }

    fn functions(&self, function: &str) -> String {
        format!(". {}/script; {function}", self.folder.display())
    }

    /// How often the function was called, in all profiles.
    fn count(&self, profiles: &[PathBuf]) -> Result<u64> {
        let counts = profiles.iter().map(|profile| {
            let mut command = Command::new(self.headcount);
            command.args([
                "report",
                "--by",
                "function",
                "--no-demangle",
                "--format",
                "csv",
                "--only",
            ]);
            command.arg(&self.server.function).arg(profile);
            let folder = tempfile::tempdir_in(self.folder)?;
            let told = child::run_or_bail(&mut command, folder.path(), PATIENCE)?;
            let calls = counts::column(&String::from_utf8_lossy(&told), "calls")?;
            Ok(calls.into_iter().sum::<u64>())
        });
        counts.sum()
    }
}

/// A server that runs, or a headcount that runs it.
struct Started(Child);

impl Started {
    /// What is counted is a child of what was started.
    fn stop(mut self) -> Result<ExitStatus> {
        let main = self.0.id().cast_signed();
        let name = fs::read_to_string(format!("/proc/{main}/comm"))?;
        let target = match name.trim() {
            "headcount" => process::children(main)?.first().copied().unwrap_or(main),
            _ => main,
        };
        kill(Pid::from_raw(target), Signal::SIGTERM)?;
        wait(&mut self.0)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It has ended already, if all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Attached {
    headcount: Child,
    profile: PathBuf,
}

impl Attached {
    /// Returns when it is attached.
    fn to(headcount: &Path, pid: i32, profile: PathBuf) -> Result<Attached> {
        let log = profile.with_extension("log");
        let _ = fs::remove_file(&profile);
        let mut command = Command::new(headcount);
        command.args(["attach", "-o"]).arg(&profile);
        let headcount = command
            .arg(pid.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut attached = Attached { headcount, profile };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = fs::read_to_string(&log)?;
            if said.contains("counting process") {
                return Ok(attached);
            }
            if let Some(status) = attached.headcount.try_wait()? {
                bail!("attach to {pid} ended with {status}: {}", said.trim());
            }
            ensure!(Instant::now() < deadline, "attach to {pid} takes too long");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // It has ended already, if all went well; if not, what it is attached to ends soon.
        let _ = kill(
            Pid::from_raw(self.headcount.id().cast_signed()),
            Signal::SIGTERM,
        );
    }
}

/// Returns the profiles.
fn let_go(mut all: Vec<Attached>) -> Result<Vec<PathBuf>> {
    for it in &all {
        kill(
            Pid::from_raw(it.headcount.id().cast_signed()),
            Signal::SIGTERM,
        )?;
    }
    let end = |it: &mut Attached| {
        let status = wait(&mut it.headcount)?;
        let said = fs::read_to_string(it.profile.with_extension("log"))?;
        ensure!(
            status.success(),
            "attach ended with {status}: {}",
            said.trim()
        );
        Ok(it.profile.clone())
    };
    all.iter_mut().map(end).collect()
}

fn wait(child: &mut Child) -> Result<ExitStatus> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        ensure!(
            Instant::now() < deadline,
            "process {} does not end",
            child.id()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_servers_can_be_read() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/servers"));
        assert!(read_all(folder).unwrap().len() >= 6);
    }
}
