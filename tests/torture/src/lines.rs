//! Are the line counts of optimised builds true?
//!
//! What is true is what gcov and llvm-cov agree on for builds of the same source without
//! optimisation, run in the same way: gcov doubles lines that inlined calls or macros enter twice,
//! llvm-cov errs elsewhere, and lines on which they differ are left out. Where clang is missing,
//! gcov is believed alone, and the table says so.
//!
//! `headcount-torture --lines` prints a table with a row for every compiler and level. A line is
//! shown rightly, too low, too high, or as 0 although it ran; as a bound that holds or does not; as
//! unknown; or not at all. *Silent* is the share of plain numbers that are wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use headcount_ground::child;
use headcount_ground::program::{Language, Program};

use crate::gcov::{self, ByLine};
use crate::headcount::{self, Headcount, Shown};
use crate::libclang::OLD_C;

/// How long each command may take.
const LIMIT: Duration = Duration::from_secs(300);

/// A compiler and how it is told to optimise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Build {
    pub compiler: String,
    pub level: String,
}

impl Build {
    /// `O2`, or `O2-flto`.
    fn flags(&self) -> Vec<String> {
        let words = self.level.split('-');
        words.map(|word| format!("-{word}")).collect()
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -{}", self.compiler, self.level.replace('-', " -"))
    }
}

/// What of an earlier call is still good.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Again {
    /// The builds, and what the judges said
    Builds,
    /// The runs as well: only reports are made anew
    Runs,
}

/// Judges programs, each in a folder of its own.
pub struct Lines<'a> {
    pub headcount: &'a Headcount,
    pub work: PathBuf,
    pub builds: Vec<Build>,
    /// What to take from an earlier call.
    pub again: Option<Again>,
    pub has_clang: bool,
}

/// What became of a program: a score for every build that could be made.
pub type Judged = Result<Vec<(Build, Score)>, String>;

impl Lines<'_> {
    /// Builds the program in all ways, and holds its lines against the judges'.
    pub fn judge(&self, program: &Program) -> Judged {
        let folder = self.work.join(program.name.replace('/', "-"));
        let truth = self.truth(program, &folder)?;
        let mut scores = Vec::new();
        for build in &self.builds {
            let name = build.to_string().replace(' ', "");
            let shown = self.shown(program, build, &folder.join(name));
            let Ok(shown) = shown else { continue };
            scores.push((build.clone(), score(program, &truth, &shown)));
        }
        Ok(scores)
    }

    /// What both judges say, and how many lines they differ on. An error says why they say nothing.
    fn truth(&self, program: &Program, folder: &Path) -> Result<Truth, String> {
        let gcov = self.by_gcov(program, &folder.join("gcov"));
        let gcov = gcov.map_err(|problem| format!("gcov: {problem:#}"))?;
        if !self.has_clang {
            return Ok(Truth {
                lines: gcov,
                disputed: 0,
            });
        }
        let llvm = self.by_llvm_cov(program, &folder.join("llvm-cov"));
        let llvm = llvm.map_err(|problem| format!("llvm-cov: {problem:#}"))?;
        let all = gcov.len();
        let agreed = gcov.into_iter().filter(|(at, it)| llvm.get(at) == Some(it));
        let lines: ByLine = agreed.collect();
        Ok(Truth {
            disputed: all - lines.len(),
            lines,
        })
    }

    fn by_gcov(&self, program: &Program, folder: &Path) -> Result<ByLine> {
        if !self.is_done(folder)? {
            let built = compiled(program, "gcc", &["-O0", "--coverage"], folder)?;
            ran(&mut program.command(&built), folder)?;
            done(folder)?;
        }
        gcov::lines(folder, LIMIT)
    }

    fn by_llvm_cov(&self, program: &Program, folder: &Path) -> Result<ByLine> {
        let told = folder.join("lines.info");
        if !self.is_done(folder)? {
            let flags = ["-O0", "-fprofile-instr-generate", "-fcoverage-mapping"];
            let built = compiled(program, "clang", &flags, folder)?;
            let (raw, merged) = (folder.join("raw"), folder.join("merged"));
            ran(
                program.command(&built).env("LLVM_PROFILE_FILE", &raw),
                folder,
            )?;
            let mut merge = Command::new("llvm-profdata");
            merge.arg("merge").arg(&raw).arg("-o").arg(&merged);
            child::run_or_bail(&mut merge, folder, LIMIT)?;
            let mut export = Command::new("llvm-cov");
            export
                .args(["export", "-format=lcov", "-instr-profile"])
                .arg(&merged);
            fs::write(
                &told,
                child::run_or_bail(export.arg(&built), folder, LIMIT)?,
            )?;
            done(folder)?;
        }
        by_lcov(&fs::read_to_string(&told)?)
    }

    fn shown(&self, program: &Program, build: &Build, folder: &Path) -> Result<Shown> {
        if !self.is_done(folder)? {
            let mut flags = build.flags();
            flags.push("-g".to_owned());
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            compiled(program, &build.compiler, &flags, folder)?;
            done(folder)?;
        }
        let counted = folder.join("counted");
        if self.again < Some(Again::Runs) || !counted.exists() {
            let _ = fs::remove_file(folder.join("headcount.db"));
            let command = program.command(&folder.join(BUILT));
            ran(&mut self.headcount.run(command, "main"), folder)?;
            fs::write(counted, "")?;
        }
        self.headcount.report_lines(folder, LIMIT)
    }

    /// Whether a folder has what is wanted; if not, it is made, and is empty.
    fn is_done(&self, folder: &Path) -> Result<bool> {
        if self.again.is_some() && folder.join(DONE).exists() {
            return Ok(true);
        }
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(false)
    }
}

const DONE: &str = "done";
const BUILT: &str = "program";

fn done(folder: &Path) -> Result<()> {
    Ok(fs::write(folder.join(DONE), "")?)
}

fn compiled(program: &Program, compiler: &str, flags: &[&str], folder: &Path) -> Result<PathBuf> {
    let is_cxx = program.language == Language::Cxx;
    let compiler = match compiler {
        "gcc" if is_cxx => "g++",
        "clang" if is_cxx => "clang++",
        other => other,
    };
    let mut common: Vec<String> = vec!["-w".to_owned()];
    if compiler == "clang" {
        common.extend(OLD_C.map(str::to_owned));
    }
    common.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let built = folder.join(BUILT);
    let mut compile = Command::new(compiler);
    compile.args(program.compile(&common, &built));
    child::run_or_bail(compile.current_dir(folder), folder, LIMIT)?;
    Ok(built)
}

/// Whatever its status: programs may have one of their own.
fn ran(command: &mut Command, folder: &Path) -> Result<()> {
    let ended = child::run(command.current_dir(folder), folder, LIMIT)?;
    match ended.end {
        child::End::Exit(_) => Ok(()),
        end => anyhow::bail!("the program ended with {end}"),
    }
}

/// A line of several instances of a function is told once for each.
fn by_lcov(text: &str) -> Result<ByLine> {
    let mut lines = ByLine::new();
    let mut file = PathBuf::new();
    for row in text.lines() {
        if let Some(name) = row.strip_prefix("SF:") {
            file = PathBuf::from(name);
        } else if let Some(rest) = row.strip_prefix("DA:") {
            let mut fields = rest.split(',');
            let mut number = || fields.next().context(row.to_owned());
            let (line, count) = (number()?.parse()?, number()?.parse::<u64>()?);
            *lines.entry((file.clone(), line)).or_default() += count;
        }
    }
    Ok(lines)
}

struct Truth {
    lines: ByLine,
    disputed: usize,
}

/// How lines were shown. All but the last four are numbers of lines that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    pub exact: usize,
    pub low: usize,
    pub high: usize,
    pub zero: usize,
    pub bound: usize,
    pub false_bound: usize,
    pub unknown: usize,
    pub blank: usize,
    /// Of lines that never ran: shown so, shown with a count, left open.
    pub never: usize,
    pub phantom: usize,
    pub open: usize,
    pub disputed: usize,
    /// What was wrong, for people who want to know why.
    pub wrong: Vec<String>,
}

fn score(program: &Program, truth: &Truth, shown: &Shown) -> Score {
    let mut score = Score {
        disputed: truth.disputed,
        ..Score::default()
    };
    for ((file, line), true_count) in &truth.lines {
        let said = shown.get(&(file.clone(), *line));
        let place = match (true_count, said) {
            (0, Some((Some(0), headcount::Exactness::Exact))) => &mut score.never,
            (0, Some((Some(_), headcount::Exactness::Exact))) => &mut score.phantom,
            (0, Some((Some(1..), headcount::Exactness::AtLeast))) => &mut score.phantom,
            (0, _) => &mut score.open,
            (_, None) => &mut score.blank,
            (_, Some((None, _) | (_, headcount::Exactness::Unknown))) => &mut score.unknown,
            (it, Some((Some(count), headcount::Exactness::AtLeast))) => match count <= it {
                true => &mut score.bound,
                false => &mut score.false_bound,
            },
            (_, Some((Some(0), _))) => &mut score.zero,
            (it, Some((Some(count), _))) if count == it => &mut score.exact,
            (it, Some((Some(count), _))) if count < it => &mut score.low,
            _ => &mut score.high,
        };
        *place += 1;
        let kind = score.kind_of_last(said, *true_count);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if let Some(kind) = kind {
            let count = said.and_then(|(count, _)| *count);
            let count = count.map_or("-".to_owned(), |it| it.to_string());
            score.wrong.push(format!(
                "{kind:11} {} {name}:{line} is {true_count}, shown {count}",
                program.name
            ));
        }
    }
    score
}

impl Score {
    /// What kind of mistake it is, if it is one.
    fn kind_of_last(
        &self,
        said: Option<&(Option<u64>, headcount::Exactness)>,
        is: u64,
    ) -> Option<&'static str> {
        use headcount::Exactness::{AtLeast, Exact, Unknown};
        match said {
            None if is > 0 => Some("blank"),
            Some((_, Unknown) | (None, _)) if is > 0 => Some("unknown"),
            Some((Some(0), Exact)) if is > 0 => Some("zero"),
            Some((Some(count), Exact)) if *count < is => Some("low"),
            Some((Some(_), Exact)) if is == 0 => {
                said.filter(|it| it.0 != Some(0)).map(|_| "phantom")
            }
            Some((Some(count), Exact)) if *count > is => Some("high"),
            Some((Some(count), AtLeast)) if *count > is => Some("false-bound"),
            Some((Some(_), AtLeast)) if is > 0 => Some("bound"),
            _ => None,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.exact += other.exact;
        self.low += other.low;
        self.high += other.high;
        self.zero += other.zero;
        self.bound += other.bound;
        self.false_bound += other.false_bound;
        self.unknown += other.unknown;
        self.blank += other.blank;
        self.never += other.never;
        self.phantom += other.phantom;
        self.open += other.open;
        self.disputed += other.disputed;
        self.wrong.extend(other.wrong);
    }

    fn ran(&self) -> usize {
        let shown = self.exact + self.low + self.high + self.zero;
        shown + self.bound + self.false_bound + self.unknown + self.blank
    }

    /// Plain numbers that are wrong, of all plain numbers.
    fn silent(&self) -> f64 {
        let wrong = self.low + self.high + self.zero + self.phantom;
        share(wrong, wrong + self.exact + self.never)
    }
}

fn share(part: usize, of: usize) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

/// One row a build, in per cent.
pub fn table(scores: &BTreeMap<Build, Score>) -> String {
    let mut out = String::from(
        "| build | lines | exact | low | high | shown 0 | `>=` true | `>=` false | unknown | blank \
         | never: 0 | phantom | open | disputed | silent |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (build, it) in scores {
        let ran = it.ran();
        let never = it.never + it.phantom + it.open;
        out.push_str(&format!("| {build} | {ran} + {never}"));
        let parts = [
            it.exact,
            it.low,
            it.high,
            it.zero,
            it.bound,
            it.false_bound,
            it.unknown,
            it.blank,
        ];
        for part in parts {
            out.push_str(&format!(" | {:.2}", share(part, ran)));
        }
        for part in [it.never, it.phantom, it.open] {
            out.push_str(&format!(" | {:.2}", share(part, never)));
        }
        out.push_str(&format!(" | {} | {:.2} |\n", it.disputed, it.silent()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_llvm_cov_tells_is_added_up_by_line() {
        let told = "SF:/x/a.c\nDA:3,7\nDA:4,0\nend_of_record\nSF:/x/a.c\nDA:3,1\n";
        let a = PathBuf::from("/x/a.c");
        let expected = ByLine::from([((a.clone(), 3), 8), ((a, 4), 0)]);
        assert_eq!(by_lcov(told).unwrap(), expected);
        assert!(by_lcov("DA:x,1").is_err());
    }

    #[test]
    fn a_plain_number_that_is_wrong_is_silent_and_a_bound_that_holds_is_not() {
        use headcount::Exactness::{AtLeast, Exact, Unknown};
        let at = |line: u32| (PathBuf::from("/x/a.c"), line);
        let truth = Truth {
            lines: (1..=8)
                .map(|line| (at(line), 5))
                .chain([(at(9), 0)])
                .collect(),
            disputed: 1,
        };
        let shown = Shown::from([
            (at(1), (Some(5), Exact)),
            (at(2), (Some(4), Exact)),
            (at(3), (Some(6), Exact)),
            (at(4), (Some(0), Exact)),
            (at(5), (Some(5), AtLeast)),
            (at(6), (Some(6), AtLeast)),
            (at(7), (None, Unknown)),
            (at(9), (Some(1), Exact)),
        ]);
        let program = Program {
            name: "p".to_owned(),
            language: Language::C,
            sources: Vec::new(),
            flags: Vec::new(),
            libraries: Vec::new(),
            arguments: Vec::new(),
        };
        let score = score(&program, &truth, &shown);
        let ran = [score.exact, score.low, score.high, score.zero, score.bound];
        assert_eq!(ran, [1; 5]);
        let rest = [score.false_bound, score.unknown, score.blank, score.phantom];
        assert_eq!(rest, [1; 4]);
        assert_eq!(score.silent(), 80.0);
    }
}
