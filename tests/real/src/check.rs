//! Does a workload notice being counted?

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use headcount_ground::child::{self, End};

use crate::compare;
use crate::sandbox::{Sandbox, Way};
use crate::workload::Workload;

/// The longest that a workload may take alone.
const LONGEST: Duration = Duration::from_secs(600);

/// A counted run may take this many times as long as one alone, and no less than the second.
const TIMES: u32 = 100;
const AT_LEAST: Duration = Duration::from_secs(60);

pub struct Checker {
    pub headcount: PathBuf,
    pub work: PathBuf,
    /// Leave the folders of what went well, too.
    pub keep: bool,
    /// See only that workloads are the same twice, and count nothing.
    pub alone: bool,
}

/// What came of one workload.
pub struct Checked {
    pub verdict: Verdict,
    /// Alone; counted; counted again, when the cache knows it. Those that were run.
    pub seconds: Vec<f64>,
    /// What headcount said meanwhile.
    pub remarks: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Same,
    Differs(String),
    Hangs(String),
    /// It is not the same twice when it runs alone, or does not run at all: the workload is wrong.
    Unsteady(String),
    Skipped(String),
}

impl Checked {
    pub fn without_a_run(verdict: Verdict) -> Checked {
        Checked {
            verdict,
            seconds: Vec::new(),
            remarks: Vec::new(),
        }
    }
}

impl Verdict {
    pub fn is_failure(&self) -> bool {
        !matches!(self, Verdict::Same | Verdict::Skipped(_))
    }
}

impl Checker {
    pub fn check(&self, workload: &Workload) -> Result<Checked> {
        let sandbox = Sandbox::new(&self.work, &workload.name, &workload.script)?;
        let mut checked = Checked::without_a_run(Verdict::Same);
        checked.verdict = self.judge(workload, &sandbox, &mut checked)?;
        if !self.keep && !checked.verdict.is_failure() {
            std::fs::remove_dir_all(sandbox.folder())?;
        }
        Ok(checked)
    }

    fn judge(
        &self,
        workload: &Workload,
        sandbox: &Sandbox,
        checked: &mut Checked,
    ) -> Result<Verdict> {
        if let Some(problem) = sandbox.prepare()? {
            return Ok(Verdict::Unsteady(format!("cannot be prepared: {problem}")));
        }
        let native = sandbox.run(Way::Alone("native"), LONGEST)?;
        checked.seconds.push(native.seconds);
        if native.end != End::Exit(workload.status) {
            return Ok(Verdict::Unsteady(format!("alone: {}", native.end)));
        }
        let again = sandbox.run(Way::Alone("again"), LONGEST)?;
        if let Some(what) = compare::difference(&native, &again)? {
            return Ok(Verdict::Unsteady(format!("alone, twice: {what}")));
        }
        if self.alone {
            return Ok(Verdict::Same);
        }
        let slower = native.seconds.max(again.seconds);
        let limit = AT_LEAST.max(Duration::from_secs_f64(slower) * TIMES);
        for (name, cache) in [("counted", "cold"), ("warm", "warm")] {
            let counted = sandbox.run(Way::Counted(name, &self.headcount), limit)?;
            checked.seconds.push(counted.seconds);
            checked.remarks.extend(compare::remarks(&counted)?);
            if let End::TooLong(_) = counted.end {
                return Ok(Verdict::Hangs(format!("{cache}: {}", counted.end)));
            }
            if let Some(what) = compare::difference(&native, &counted)? {
                return Ok(Verdict::Differs(format!("{cache}: {what}")));
            }
        }
        Ok(match self.unreadable(sandbox)? {
            Some(problem) => Verdict::Differs(problem),
            None => Verdict::Same,
        })
    }

    /// A run that nobody can ask for its counts is lost.
    fn unreadable(&self, sandbox: &Sandbox) -> Result<Option<String>> {
        let mut command = Command::new(&self.headcount);
        command.args(["report", "--by", "module", "--format", "csv"]);
        command.arg(sandbox.profile());
        command.env("XDG_CACHE_HOME", sandbox.folder().join("cache"));
        let ended = child::run(&mut command, sandbox.folder(), LONGEST)?;
        let lines = ended.stdout.split(|byte| *byte == b'\n').count();
        Ok(match ended.succeeded() {
            false => Some(format!("its profile cannot be read: {}", ended.complaint())),
            true if lines < 3 => Some("nothing of it was counted".to_owned()),
            true => None,
        })
    }
}

/// Why something that needs these cannot be run here, if so.
pub fn obstacle(packages: &[String], root: bool, installed: &BTreeSet<String>) -> Option<String> {
    let missing = packages.iter().filter(|name| !installed.contains(*name));
    let missing = missing.cloned().collect::<Vec<_>>();
    if !missing.is_empty() {
        return Some(format!("{} not installed", missing.join(" ")));
    }
    (root && !nix::unistd::geteuid().is_root()).then(|| "it needs root".to_owned())
}
