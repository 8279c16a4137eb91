//! Do projects of other people build as ever with `headcount cc`, and do their suites notice?
//!
//! The files of `projects` are shell, as those of `workloads` are:
//!
//! ```text
//! ## fribidi
//! # packages: meson             Debian packages
//! # source: fribidi             Debian's source package, if it is not called as the project is
//! prepare() { ... }             makes what is published what one begins with
//! configure() { ... }           with the compilers $CC, $CXX and $FC
//! build() { ... }               all that the suite runs
//! suite() { ... }               runs the project's own tests
//! found() { ... }               prints all that the configuration found out and decided
//! results() { ... }             prints a line a test, of what the suite wrote or said ($OUT)
//! ```
//!
//! A project is built from a clean tree at the same path twice, by the compilers as they are and by
//! `headcount cc`. Its suite is run on both, and by `headcount run` on the first.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use headcount_ground::child::{self, End, Ended};

use crate::compare;
use crate::counts;
use crate::sandbox::Sandbox;
use crate::sources::Archive;
use crate::workload::{self, Section};

/// How long a step may take. `headcount run` reads every program of a suite before it starts.
const LONGEST: Duration = Duration::from_secs(1800);

const COMPILERS: [(&str, &str); 3] = [("CC", "gcc"), ("CXX", "g++"), ("FC", "gfortran")];

pub struct Project {
    pub name: String,
    pub packages: Vec<String>,
    pub source: String,
    pub script: String,
}

pub fn read_all(folder: &Path) -> Result<Vec<Project>> {
    let sections = workload::sections(folder)?;
    sections.into_iter().map(project).collect()
}

fn project(section: Section) -> Result<Project> {
    let mut project = Project {
        name: section.name.clone(),
        packages: Vec::new(),
        source: section.name.clone(),
        script: section.script.clone(),
    };
    for (key, value) in &section.remarks {
        match key.as_str() {
            "packages" => project.packages = workload::words(value),
            "source" => value.clone_into(&mut project.source),
            _ => return Err(section.misspelt(key, value)),
        }
    }
    Ok(project)
}

/// One project, to be built and tested in a sandbox.
pub struct Trial<'a> {
    pub project: &'a Project,
    pub headcount: &'a Path,
    pub work: &'a Path,
    pub keep: bool,
}

/// What a project that did not notice was like.
pub struct Passed {
    tests: usize,
    functions: usize,
    /// To build and to test: alone, with `headcount cc`; and to test with `headcount run`.
    seconds: [f64; 5],
    /// What the report of the counted build says is not counted.
    refused: Vec<String>,
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for seconds in self.seconds {
            write!(f, "{seconds:8.1}")?;
        }
        write!(f, "{:8}{:11}  same", self.tests, self.functions)?;
        for line in &self.refused {
            write!(f, "\n    not counted: {line}")?;
        }
        Ok(())
    }
}

/// What the columns of a line are.
pub fn heading() -> String {
    let columns = ["build", "suite", "cc", "suite", "run"].map(|it| format!("{it:>8}"));
    let columns = columns.concat();
    format!("{:20}{columns}{:>8}{:>11}", "project", "tests", "functions")
}

/// Who counts, if anybody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Native,
    Compiled,
    Run,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::Compiled => "cc",
            Way::Run => "run",
        }
    }
}

/// What one build found out.
struct Built {
    found: String,
    seconds: f64,
}

/// What a suite said.
struct Tested {
    end: End,
    results: String,
    seconds: f64,
}

impl Trial<'_> {
    pub fn check(&self, archive: &Archive) -> Result<Passed> {
        let sandbox = Sandbox::new(self.work, &self.project.name, &self.project.script)?;
        archive.unpack(&self.project.source, &sandbox.path("here"))?;
        if let Some(problem) = sandbox.prepare()? {
            bail!("cannot be prepared: {problem}");
        }
        let native = self.build(&sandbox, Way::Native)?;
        sandbox.keep("built")?;
        let expected = self.test(&sandbox, Way::Native)?;
        let tests = expected.results.lines().count();
        ensure!(tests > 0, "its suite tests nothing");
        let compiled = self.build(&sandbox, Way::Compiled)?;
        if let Some(what) = compare::unequal(native.found.as_bytes(), compiled.found.as_bytes()) {
            bail!("cc: of what was found, {what}");
        }
        let counted = self.test(&sandbox, Way::Compiled)?;
        expected.must_be(&counted, Way::Compiled)?;
        let (functions, refused) = self.report_of_the_counted_build(&sandbox)?;
        sandbox.begin_with("built")?;
        let run = self.test(&sandbox, Way::Run)?;
        expected.must_be(&run, Way::Run)?;
        self.functions(&profile(&sandbox, Way::Run))?;
        if !self.keep {
            fs::remove_dir_all(sandbox.folder())?;
        }
        let (before, after) = (native.seconds, compiled.seconds);
        let seconds = [
            before,
            expected.seconds,
            after,
            counted.seconds,
            run.seconds,
        ];
        Ok(Passed {
            tests,
            functions,
            seconds,
            refused,
        })
    }

    /// From a clean tree.
    fn build(&self, sandbox: &Sandbox, way: Way) -> Result<Built> {
        sandbox.begin_with("prepared")?;
        let start = Instant::now();
        for function in ["configure", "build"] {
            self.must(sandbox, way, function, &[])?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let found = self.must(sandbox, way, "found", &[])?;
        Ok(Built {
            found: self.without_us(&found),
            seconds,
        })
    }

    /// What was built must be there.
    fn test(&self, sandbox: &Sandbox, way: Way) -> Result<Tested> {
        let counts = sandbox.path("counts").into_os_string();
        let (words, variables) = match way {
            Way::Native => (Vec::new(), Vec::new()),
            Way::Compiled => (Vec::new(), vec![("HEADCOUNT_DIR", counts)]),
            Way::Run => (self.run_into(&profile(sandbox, way)), Vec::new()),
        };
        let start = Instant::now();
        let suite = self.step(sandbox, way, &words, "suite", &variables)?;
        let seconds = start.elapsed().as_secs_f64();
        let said = output(sandbox, way, "suite").into_os_string();
        Ok(Tested {
            end: suite.end,
            results: self.must(sandbox, way, "results", &[("OUT", said)])?,
            seconds,
        })
    }

    fn run_into(&self, profile: &Path) -> Vec<OsString> {
        let mut words = vec![self.headcount.into()];
        words.extend(["run", "-q", "-o"].map(OsString::from));
        words.extend([profile.into(), "--".into()]);
        words
    }

    /// A step that has no business failing, and what it printed.
    fn must(
        &self,
        sandbox: &Sandbox,
        way: Way,
        function: &str,
        variables: &[(&str, OsString)],
    ) -> Result<String> {
        let ended = self.step(sandbox, way, &[], function, variables)?;
        let (name, end) = (way.name(), &ended.end);
        ensure!(
            ended.succeeded(),
            "{name}: {function}: {end}: {}",
            ended.complaint()
        );
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    }

    /// Leaves what it printed where one who looks for a reason finds it.
    fn step(
        &self,
        sandbox: &Sandbox,
        way: Way,
        words: &[OsString],
        function: &str,
        variables: &[(&str, OsString)],
    ) -> Result<Ended> {
        let variables = [&self.compilers(way)[..], variables].concat();
        let ended = sandbox.step(words, function, &variables, LONGEST)?;
        let path = output(sandbox, way, function);
        fs::write(&path, &ended.stdout)?;
        fs::write(path.with_extension("err"), &ended.stderr)?;
        Ok(ended)
    }

    fn compilers(&self, way: Way) -> Vec<(&'static str, OsString)> {
        let counted = |compiler: &str| match way {
            Way::Compiled => format!("{}{compiler}", self.prefix()),
            _ => compiler.to_owned(),
        };
        let named = COMPILERS.map(|(name, compiler)| (name, counted(compiler).into()));
        named.to_vec()
    }

    /// What stands before the name of a compiler.
    fn prefix(&self) -> String {
        format!("{} cc -- ", self.headcount.display())
    }

    /// As the compilers are called without headcount: `'` stands around words with a space.
    fn without_us(&self, text: &str) -> String {
        text.replace(&self.prefix(), "").replace('\'', "")
    }

    /// How many functions ran, and what is not counted.
    fn report_of_the_counted_build(&self, sandbox: &Sandbox) -> Result<(usize, Vec<String>)> {
        let profile = profile(sandbox, Way::Compiled);
        let mut collect = Command::new(self.headcount);
        collect.arg("collect").arg("-o").arg(&profile);
        collect.arg(sandbox.path("counts"));
        child::run_or_bail(&mut collect, sandbox.folder(), LONGEST)?;
        let functions = self.functions(&profile)?;
        let text = self.said(&["report", "--runs", "all", "--all"], &profile)?;
        let (_, refused) = text
            .split_once("\nNot counted: ")
            .context("the report does not say what is not counted")?;
        let refused = refused.lines().take_while(|line| !line.is_empty());
        let refused = refused.filter(|line| *line != "nothing.");
        Ok((functions, refused.map(str::to_owned).collect()))
    }

    /// How many functions ran.
    fn functions(&self, profile: &Path) -> Result<usize> {
        let words = "report --runs all --by function --no-demangle --format csv";
        let csv = self.said(&words.split(' ').collect::<Vec<_>>(), profile)?;
        let calls = counts::column(&csv, "calls")?;
        let ran = calls.into_iter().filter(|it| *it > 0).count();
        ensure!(ran > 0, "{}: no function was counted", profile.display());
        Ok(ran)
    }

    fn said(&self, words: &[&str], profile: &Path) -> Result<String> {
        let folder = tempfile::tempdir_in(self.work)?;
        let mut command = Command::new(self.headcount);
        command.args(words).arg(profile);
        let told = child::run_or_bail(&mut command, folder.path(), LONGEST)?;
        Ok(String::from_utf8_lossy(&told).into_owned())
    }
}

impl Tested {
    /// Complains if another suite said something else.
    fn must_be(&self, other: &Tested, way: Way) -> Result<()> {
        let name = way.name();
        if let Some(what) = compare::unequal(self.results.as_bytes(), other.results.as_bytes()) {
            bail!("{name}: of the results, {what}");
        }
        let (ours, theirs) = (&other.end, &self.end);
        ensure!(ours == theirs, "{name}: the suite: {ours}, not {theirs}");
        Ok(())
    }
}

fn profile(sandbox: &Sandbox, way: Way) -> PathBuf {
    sandbox.path(&format!("{}.db", way.name()))
}

/// What a function printed.
fn output(sandbox: &Sandbox, way: Way, function: &str) -> PathBuf {
    sandbox.path(&format!("{}.{function}.out", way.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_projects_can_be_read() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/projects"));
        assert!(read_all(folder).unwrap().len() >= 10);
    }
}
