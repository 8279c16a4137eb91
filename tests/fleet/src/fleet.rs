//! Machines that count programs, as far as one machine can stand for many.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};

/// The program that every fleet has, in two releases.
const APP: &str = include_str!("app.c");

/// A folder with a profile and a Parquet file for each run, and with a profile of all.
pub struct Fleet {
    folder: PathBuf,
    headcount: PathBuf,
    /// The release that the machines have, by their names.
    releases: BTreeMap<String, u32>,
    profiles: Vec<PathBuf>,
}

/// Where a command is counted.
pub struct Machine<'a> {
    pub host: &'a str,
    /// What it has of the program.
    pub release: u32,
    /// How long ago it is, as far as the profile tells.
    pub days: u32,
    /// What it counts: `main` or `all`.
    pub modules: &'a str,
}

/// A run that was counted.
pub struct Counted {
    /// Its number in the profile of all.
    pub number: u64,
    pub host: String,
    pub command: String,
    /// `2026-11-18T04:12:59Z`.
    pub started: String,
    pub executed: u64,
    pub modules: Vec<String>,
}

impl Fleet {
    /// An empty one, in a folder that is there.
    pub fn new(folder: &Path, headcount: &Path) -> Result<Self> {
        fs::create_dir_all(folder.join("fleet"))?;
        fs::write(folder.join("app.c"), APP)?;
        Ok(Self {
            folder: folder.canonicalize()?,
            headcount: headcount.canonicalize()?,
            releases: BTreeMap::new(),
            profiles: Vec::new(),
        })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Builds a release, in the place of the one before.
    pub fn build(&self, release: u32) -> Result<()> {
        let define = format!("-DRELEASE={release}");
        self.must("gcc", ["-g", "-O0", &define, "app.c", "-o", "app"])?;
        Ok(())
    }

    /// Counts a command on a machine.
    pub fn count(&mut self, machine: &Machine<'_>, command: &[&str]) -> Result<()> {
        let Machine { host, days, .. } = machine;
        let name = format!("{:03}.db", self.profiles.len());
        let run = ["run", "-q", "--modules", machine.modules, "-o", &name, "--"];
        self.must(&self.headcount, run.iter().chain(command))?;
        let change = format!(
            "UPDATE runs SET host = '{host}', started = started - {days} * 86400000000000,
             ended = ended - {days} * 86400000000000"
        );
        self.must("sqlite3", [&name, &change])?;
        self.releases.insert((*host).to_owned(), machine.release);
        self.profiles.push(self.folder.join(name));
        Ok(())
    }

    /// Exports every profile, and puts all runs into one. Exports are made elsewhere than reports.
    pub fn gather(&self) -> Result<()> {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let each = self.profiles.len().div_ceil(workers).max(1);
        thread::scope(|scope| {
            let export = |part| scope.spawn(move || self.export(part));
            let workers: Vec<_> = self.profiles.chunks(each).map(export).collect();
            let done = workers.into_iter().map(ScopedJoinHandle::join);
            done.into_iter().try_for_each(|it| match it {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        let profiles = self.profiles.iter().map(|it| it.as_os_str());
        let to = ["-o", "all.db"].map(OsStr::new);
        let words = [OsStr::new("merge")].into_iter().chain(profiles).chain(to);
        self.must(&self.headcount, words)?;
        Ok(())
    }

    fn export(&self, profiles: &[PathBuf]) -> Result<()> {
        for profile in profiles {
            let name = profile.file_stem().context("a profile has a name")?;
            let mut file = self.folder.join("fleet").join(name);
            file.set_extension("parquet");
            let words = ["export", "--format", "parquet", "--events", "all", "-o"];
            let words = words.map(OsStr::new).into_iter();
            self.must(
                &self.headcount,
                words.chain([file.as_os_str(), profile.as_os_str()]),
            )?;
        }
        Ok(())
    }

    /// All runs, as `headcount runs` tells of them.
    pub fn runs(&self) -> Result<Vec<Counted>> {
        let told = self.json(&["runs", "all.db", "--json"])?;
        let runs = told["runs"].as_array().context("no runs")?;
        let words = |it: &Value| -> Vec<String> {
            let all = it.as_array().into_iter().flatten();
            all.filter_map(|it| it.as_str().map(str::to_owned))
                .collect()
        };
        let counted = |it: &Value| {
            Some(Counted {
                number: it["run"].as_u64()?,
                host: it["host"].as_str()?.to_owned(),
                command: words(&it["command"]).join(" "),
                started: it["started"].as_str()?.to_owned(),
                executed: it["executed"].as_u64()?,
                modules: words(&it["modules"]),
            })
        };
        let counted: Option<_> = runs.iter().map(counted).collect();
        counted.context("a run is not told of")
    }

    /// The release that a machine has.
    pub fn release(&self, host: &str) -> u32 {
        self.releases.get(host).copied().unwrap_or_default()
    }

    /// Is this a module of the user's own: the program, or what the system has where a run is of
    /// nothing else?
    pub fn is_own_module(&self, path: &str) -> bool {
        Path::new(path) == self.folder.join("app") || path.starts_with("/usr/bin/")
    }

    /// What `report` says of some runs.
    pub fn report(&self, runs: &[u64], words: &[&str]) -> Result<Vec<Value>> {
        let runs: Vec<String> = runs.iter().map(u64::to_string).collect();
        let runs = runs.join(",");
        let begin = ["report", "all.db", "--format", "json", "--runs", &runs];
        let told = self.json(&[&begin, words].concat())?;
        Ok(told["rows"].as_array().context("no rows")?.clone())
    }

    /// What `report` says was not counted in any run.
    pub fn refused(&self) -> Result<Vec<Value>> {
        let words = ["report", "all.db", "--format", "json", "--runs", "all"];
        let told = self.json(&words)?;
        Ok(told["refused"].as_array().context("no list")?.clone())
    }

    fn json(&self, words: &[&str]) -> Result<Value> {
        Ok(serde_json::from_str(&self.must(&self.headcount, words)?)?)
    }

    /// Runs something that must succeed; answers with what it printed.
    fn must(
        &self,
        program: impl AsRef<OsStr>,
        words: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<String> {
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.folder);
        command.env_remove("HEADCOUNT_DIR");
        let said = command.output().with_context(|| format!("{command:?}"))?;
        let words = String::from_utf8_lossy(&said.stderr);
        ensure!(said.status.success(), "{command:?}: {words}");
        Ok(String::from_utf8(said.stdout)?)
    }
}
