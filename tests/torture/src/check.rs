//! Does this program behave the same when counted, and are the counts right?

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use headcount_ground::child::{self, Ended};
use headcount_ground::program::{Language, NO_ALIGNMENT, Program};

use crate::callgrind;
use crate::compare::{Comparison, compare};
use crate::headcount::{Headcount, Said};
use crate::symbols::Symbols;

/// What all checks have in common.
pub struct Checker {
    pub headcount: Headcount,
    pub compiler: String,
    pub is_clang: bool,
    pub common_flags: Vec<String>,
    /// Build without symbols and frames, and excuse nothing that is not counted.
    pub bare: bool,
    pub toolchain: BTreeSet<String>,
    /// Each check works in a folder of its own below this one.
    pub work: PathBuf,
    pub limits: Limits,
    /// Leave every folder behind, not only those of failures.
    pub keep: bool,
}

pub struct Limits {
    pub compile: Duration,
    pub native: Duration,
    pub counted: Duration,
    pub callgrind: Duration,
}

pub enum Outcome {
    /// It cannot be built here, or does not pass even uncounted.
    NotApplicable(String),
    /// The judge would need too long for it.
    TooLong(String),
    /// The judge cannot run it, and nothing else was checked.
    Unjudged(String),
    /// Counting changed its behaviour, or the tool did not do its work.
    Failed(String),
    /// It passes when counted.
    Passed { said: Said, counts: Counts },
}

pub enum Counts {
    NotAsked,
    /// Callgrind itself cannot run this program.
    NoJudge(String),
    Compared(Comparison),
}

/// One build of a program and how it ran.
pub struct Ran {
    pub executable: PathBuf,
    pub ended: Ended,
}

impl Checker {
    /// Checks one program at one level; with `counts`, against callgrind too.
    pub fn check(&self, program: &Program, level: &str, counts: bool) -> Result<Outcome> {
        let flags = self.flags(level);
        self.in_folders(program, level, |native, counted, judged| {
            self.compare_runs(program, &flags, [native, counted, judged], counts)
        })
    }

    /// Gives a check three folders, and keeps them if it did not go well.
    pub fn in_folders(
        &self,
        program: &Program,
        level: &str,
        check: impl FnOnce(&Path, &Path, &Path) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let folder = self.work.join(level).join(program.name.replace('/', "-"));
        let _ = fs::remove_dir_all(&folder);
        let [native, counted, judged] =
            ["native", "counted", "judged"].map(|step| folder.join(step));
        for folder in [&native, &counted, &judged] {
            fs::create_dir_all(folder)?;
        }
        let outcome = check(&native, &counted, &judged)?;
        let differs = matches!(&outcome, Outcome::Passed { counts: Counts::Compared(counts), .. }
            if !counts.is_equal());
        if !self.keep && !differs && !matches!(outcome, Outcome::Failed(_)) {
            fs::remove_dir_all(&folder)?;
        }
        Ok(outcome)
    }

    fn flags(&self, level: &str) -> Vec<String> {
        let fixed = NO_ALIGNMENT.map(str::to_owned);
        self.common_flags
            .iter()
            .cloned()
            .chain(fixed)
            .chain([level.to_owned()])
            .collect()
    }

    fn compare_runs(
        &self,
        program: &Program,
        flags: &[String],
        [native, counted, judged]: [&Path; 3],
        counts: bool,
    ) -> Result<Outcome> {
        let plain = match self.native(program, flags, native)? {
            Ok(ran) => ran,
            Err(reason) => return Ok(Outcome::NotApplicable(reason)),
        };
        let said = match self.counted(program, flags, counted, &plain)? {
            Ok(said) => said,
            Err(reason) => return Ok(Outcome::Failed(reason)),
        };
        let counts = if counts {
            self.judge(program, &plain.executable, judged, &said)?
        } else {
            Counts::NotAsked
        };
        Ok(Outcome::Passed { said, counts })
    }

    /// Builds and runs the program as it is.
    pub fn native(
        &self,
        program: &Program,
        flags: &[String],
        folder: &Path,
    ) -> Result<Result<Ran, String>> {
        let compiler = Command::new(self.compiler_for(program.language));
        let executable = match self.build(compiler, program, flags, folder)? {
            Ok(executable) => executable,
            Err(complaint) => return Ok(Err(format!("does not compile: {complaint}"))),
        };
        let mut command = program.command(&executable);
        let ended = child::run(command.current_dir(folder), folder, self.limits.native)?;
        if !ended.succeeded() {
            return Ok(Err(format!("does not pass natively: {}", ended.end)));
        }
        Ok(Ok(Ran { executable, ended }))
    }

    /// The compiler's own name for itself, where it speaks C++.
    fn compiler_for(&self, language: Language) -> String {
        match language {
            Language::C => self.compiler.clone(),
            Language::Cxx if self.compiler.contains("clang") => {
                self.compiler.replace("clang", "clang++")
            }
            Language::Cxx => self.compiler.replace("gcc", "g++"),
            Language::Rust => "rustc".to_owned(),
        }
    }

    /// Builds and runs it with counters: it must do what it did without, and
    /// the tool must be able to tell its counts.
    pub fn counted(
        &self,
        program: &Program,
        flags: &[String],
        folder: &Path,
        native: &Ran,
    ) -> Result<Result<Said, String>> {
        let compiler = self.headcount.compiler(&self.compiler);
        let executable = match self.build(compiler, program, flags, folder)? {
            Ok(executable) => executable,
            Err(complaint) => {
                return Ok(Err(format!("does not compile when counted: {complaint}")));
            }
        };
        let mut command = self.headcount.counted(program.command(&executable), folder);
        let ended = child::run(command.current_dir(folder), folder, self.limits.counted)?;
        if !ended.succeeded() {
            return Ok(Err(format!("does not pass when counted: {}", ended.end)));
        }
        if !same_words(&ended, &native.ended) && self.is_steady(program, native, folder)? {
            return Ok(Err("writes something else when counted".to_owned()));
        }
        let said = self.headcount.report(folder, self.limits.counted);
        Ok(said.map_err(|problem| format!("{problem:#}")))
    }

    /// Does the program, uncounted, write the same when it is run again? Those
    /// that print addresses do not.
    pub fn is_steady(&self, program: &Program, native: &Ran, folder: &Path) -> Result<bool> {
        let mut command = program.command(&native.executable);
        let again = child::run(command.current_dir(folder), folder, self.limits.native)?;
        Ok(same_words(&again, &native.ended))
    }

    fn build(
        &self,
        mut compiler: Command,
        program: &Program,
        flags: &[String],
        folder: &Path,
    ) -> Result<Result<PathBuf, String>> {
        let executable = folder.join("program");
        compiler
            .args(program.compile(flags, &executable))
            .current_dir(folder);
        let ended = child::run(&mut compiler, folder, self.limits.compile)?;
        Ok(if ended.succeeded() {
            Ok(executable)
        } else {
            Err(ended.complaint())
        })
    }

    /// Asks callgrind about the uncounted build.
    fn judge(
        &self,
        program: &Program,
        executable: &Path,
        folder: &Path,
        said: &Said,
    ) -> Result<Counts> {
        let command = program.command(executable);
        let (ended, mut seen) = callgrind::count(&command, folder, self.limits.callgrind)?;
        if !ended.succeeded() {
            return Ok(Counts::NoJudge(format!(
                "does not pass under callgrind: {}",
                ended.end
            )));
        }
        let symbols = Symbols::of(executable, folder)?;
        let seen = seen.remove(&executable.display().to_string());
        let seen = symbols.by_function(&seen.unwrap_or_default());
        Ok(Counts::Compared(compare(
            &said.executed,
            &seen,
            &symbols,
            &self.toolchain,
        )))
    }
}

pub fn same_words(one: &Ended, other: &Ended) -> bool {
    one.stdout == other.stdout && one.stderr == other.stderr
}
