//! Are the line counts of optimised builds true?
//!
//! What is true is what two judges agree on for builds of the same source without optimisation, run
//! in the same way. For C and C++ they are gcov, which doubles lines that inlined calls or macros
//! enter twice, and llvm-cov, which errs elsewhere; where clang is missing, gcov is believed alone.
//! For Rust they are llvm-cov, of the version that belongs to rustc, and our own count of the build
//! without optimisation, which single steps have proven elsewhere; where that llvm-cov is missing,
//! our own count is believed alone. Lines on which judges differ are left out. What was missing is
//! said below the table.
//!
//! `headcount-torture --lines` prints a table with a row for every language, compiler and level. A
//! line is shown rightly, too low, too high, or as 0 although it ran; as a bound that holds or does
//! not; as unknown; or not at all. *Silent* is the share of plain numbers that are wrong.

mod corpus;
mod crates;
mod score;

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
use headcount_ground::workers::{self, Progress};

use crate::gcov::{self, ByLine};
use crate::headcount::{Exactness, Headcount, Shown};
use crate::libclang::OLD_C;
pub use corpus::{Wanted, programs};
use crates::Rust;
use score::{Column, Score, Scores, Truth};

/// The levels of the whole table.
pub const LEVELS: [&str; 5] = ["O0", "O1", "O2", "O3", "O2-flto"];

/// How long each command may take.
const LIMIT: Duration = Duration::from_secs(300);

/// A compiler and how it is told to optimise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Build {
    pub compiler: String,
    pub level: String,
}

impl Build {
    fn folder(&self) -> String {
        self.to_string().replace(' ', "")
    }

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
    headcount: &'a Headcount,
    work: PathBuf,
    levels: &'a [String],
    /// What to take from an earlier call.
    again: Option<Again>,
    /// gcc, and clang where it is there.
    compilers: Vec<&'static str>,
    rust: Rust,
}

/// What became of a program.
struct Judged {
    scores: Vec<(Column, Score)>,
    /// Builds that could not be made, run or reported, with the reason.
    failed: Vec<(Column, String)>,
    /// Why there is no truth about it, if there is none.
    left_out: Option<String>,
}

/// What became of all of them.
pub struct Outcome {
    /// The table, what holds of it, and what is missing in it.
    pub text: String,
    /// Whether all that must hold does.
    pub is_good: bool,
}

impl<'a> Lines<'a> {
    pub fn new(
        headcount: &'a Headcount,
        work: &Path,
        levels: &'a [String],
        again: Option<Again>,
    ) -> Self {
        let is_here = |compiler: &&str| Command::new(compiler).arg("--version").output().is_ok();
        Lines {
            headcount,
            work: work.join("lines"),
            levels,
            again,
            compilers: ["gcc", "clang"].into_iter().filter(is_here).collect(),
            rust: Rust::find(),
        }
    }

    /// Judges all of them, `jobs` at a time. What was wrong is left in a file for each build.
    pub fn judge_all(&self, programs: &[Program], jobs: usize) -> Result<Outcome> {
        let weights: Vec<u64> = programs.iter().map(weight).collect();
        let all: u64 = weights.iter().sum();
        let mut progress = Progress::new("headcount-torture", programs.len());
        let mut weighed = 0;
        let weighted: Vec<_> = programs.iter().zip(weights).collect();
        let judged = workers::share_out(
            &weighted,
            jobs,
            |(program, weight)| (self.judge(program), *weight),
            |done, (_, weight)| {
                weighed += weight;
                progress.show_share(done, weighed as f64 / all as f64, "judged");
            },
        );
        let mut scores = Scores::new();
        let mut failed: BTreeMap<Column, Vec<String>> = BTreeMap::new();
        let mut left_out = Vec::new();
        for (program, (found, _)) in programs.iter().zip(judged) {
            let named = |reason: String| format!("{}: {reason}", program.name);
            left_out.extend(found.left_out.map(named));
            for (column, score) in found.scores {
                scores.entry(column).or_default().add(score);
            }
            for (column, reason) in found.failed {
                failed.entry(column).or_default().push(named(reason));
            }
        }
        self.keep(&scores, &failed, &left_out)?;
        Ok(self.outcome(programs.len(), &scores, &failed, &left_out))
    }

    /// What was wrong, and what could not be judged, for people who want to know why.
    fn keep(
        &self,
        scores: &Scores,
        failed: &BTreeMap<Column, Vec<String>>,
        left_out: &[String],
    ) -> Result<()> {
        let mut by_build: BTreeMap<&Build, String> = BTreeMap::new();
        for (column, score) in scores {
            let text = by_build.entry(&column.build).or_default();
            *text += &(score.wrong.join("\n") + "\n");
        }
        for (build, text) in by_build {
            let name = format!("wrong.{}.txt", build.folder());
            fs::write(self.work.join(name), text)?;
        }
        let mut text = left_out.join("\n") + "\n";
        for (Column { build, .. }, reasons) in failed {
            for reason in reasons {
                text += &format!("{build}: {reason}\n");
            }
        }
        Ok(fs::write(self.work.join("left-out.txt"), text)?)
    }

    fn outcome(
        &self,
        programs: usize,
        scores: &Scores,
        failed: &BTreeMap<Column, Vec<String>>,
        left_out: &[String],
    ) -> Outcome {
        let (verdict, is_good) = score::verdict(scores);
        let mut text = format!("{}\n{verdict}\n", score::table(scores));
        let judged = programs - left_out.len();
        text += &format!(
            "{judged} programs; {} more were left out, which a judge cannot build or run \
             (left-out.txt, in {}).\n",
            left_out.len(),
            self.work.display()
        );
        for (Column { language, build }, reasons) in failed {
            let first = reasons.first().map_or("", String::as_str);
            text += &format!(
                "{language} {build}: {} programs are missing; the first is {first}\n",
                reasons.len()
            );
        }
        if !self.compilers.contains(&"clang") {
            text += "clang is missing: gcov judged alone.\n";
        }
        text += self.rust.note();
        Outcome { text, is_good }
    }

    /// Builds the program in all ways, and holds its lines against the judges'.
    fn judge(&self, program: &Program) -> Judged {
        let mut judged = Judged {
            scores: Vec::new(),
            failed: Vec::new(),
            left_out: None,
        };
        let folder = self.work.join(program.name.replace('/', "-"));
        let truth = match self.truth(program, &folder) {
            Ok(truth) => truth,
            Err(problem) => {
                judged.left_out = Some(problem);
                return judged;
            }
        };
        for build in self.builds(program) {
            let column = Column::of(program, &build);
            match self.shown(program, &build, &folder.join(build.folder())) {
                Ok(shown) => {
                    let score = score::score(program, &truth, &shown);
                    judged.scores.push((column, score));
                }
                Err(problem) => judged.failed.push((column, format!("{problem:#}"))),
            }
        }
        judged
    }

    fn builds(&self, program: &Program) -> Vec<Build> {
        let compilers = match program.language {
            Language::Rust => &["rustc"][..],
            _ => &self.compilers,
        };
        let of = |compiler: &&str| {
            let build = |level: &String| Build {
                compiler: (*compiler).to_owned(),
                level: level.clone(),
            };
            self.levels.iter().map(build).collect::<Vec<_>>()
        };
        compilers.iter().flat_map(of).collect()
    }

    /// What judges agree on. An error says why they say nothing.
    fn truth(&self, program: &Program, folder: &Path) -> Result<Truth, String> {
        let of = |who: &str, lines: Result<ByLine>| {
            lines.map_err(|problem| format!("{who}: {problem:#}"))
        };
        let llvm_cov = folder.join("llvm-cov");
        if program.language == Language::Rust {
            let ours = of("our own count", self.unoptimised(program, folder))?;
            if !self.rust.has_llvm_cov() {
                return Ok(Truth::alone(ours));
            }
            let llvm = of("llvm-cov", self.by_llvm_cov(program, &llvm_cov))?;
            return Ok(Truth::agreed(ours, &llvm));
        }
        let gcov = of("gcov", self.by_gcov(program, &folder.join("gcov")))?;
        if !self.compilers.contains(&"clang") {
            return Ok(Truth::alone(gcov));
        }
        let llvm = of("llvm-cov", self.by_llvm_cov(program, &llvm_cov))?;
        Ok(Truth::agreed(gcov, &llvm))
    }

    /// Our own count of the build without optimisation, of the program's files and its crates'.
    /// Where there is nobody to confirm bounds, they are no truth.
    fn unoptimised(&self, program: &Program, folder: &Path) -> Result<ByLine> {
        let build = Build {
            compiler: "rustc".to_owned(),
            level: "O0".to_owned(),
        };
        let shown = self.shown(program, &build, &folder.join(build.folder()))?;
        let takes_bounds = self.rust.has_llvm_cov();
        let known = shown.into_iter().filter_map(|(at, (count, exactness))| {
            let is_taken = exactness == Exactness::Exact || takes_bounds;
            count.filter(|_| is_taken).map(|count| (at, count))
        });
        Ok(known
            .filter(|((file, _), _)| !Rust::is_of_std(file))
            .collect())
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
            let (built, [profdata, cov]) = match program.language {
                Language::Rust => (crates::instrumented(program, folder)?, self.rust.tools()?),
                _ => {
                    let tools = ["llvm-profdata", "llvm-cov"].map(PathBuf::from);
                    (compiled(program, "clang", &flags, folder)?, tools)
                }
            };
            let (raw, merged) = (folder.join("raw"), folder.join("merged"));
            ran(
                program.command(&built).env("LLVM_PROFILE_FILE", &raw),
                folder,
            )?;
            let mut merge = Command::new(profdata);
            merge.arg("merge").arg(&raw).arg("-o").arg(&merged);
            child::run_or_bail(&mut merge, folder, LIMIT)?;
            let mut export = Command::new(cov);
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
            if program.language == Language::Rust {
                crates::optimised(program, &build.level, folder)?;
            } else {
                let mut flags = build.flags();
                flags.push("-g".to_owned());
                let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
                compiled(program, &build.compiler, &flags, folder)?;
            }
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

/// How long a program takes to build, roughly, beside others.
fn weight(program: &Program) -> u64 {
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |it| it.len());
    let crates = 100_000 * program.libraries.len() as u64;
    let crates = if program.language == Language::Rust {
        crates
    } else {
        0
    };
    10_000 + crates + program.sources.iter().map(size).sum::<u64>()
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
}
