//! Do other people's programs behave the same when counted, and are their
//! counts the ones that independent judges see?
//!
//! `cargo run --release -p headcount-torture` checks all of GCC's
//! `gcc.c-torture/execute`, built with `headcount cc`, against callgrind. With
//! `--route run` they are built plainly and counted by `headcount run`, and the
//! judges are a single-step counter and gcov; or, with `--judge callgrind`, the
//! counts of all modules are held against callgrind's. With `--bare` no table
//! tells where their functions are. Passing alone proves little, because most
//! arms of these programs are `abort()`: a counted program that lost half its
//! arms would still pass. The counts are the check.
//!
//! With `--route source --judge libclang` nothing runs: the statements that the
//! source route's parser sees are held against libclang's. `LIBCLANG_PATH` says
//! which one, where there are several; it should be of the version of `clang`.
//! With `--route source --warnings` nothing runs, either: what compiles without
//! a warning must do so when counted.
//!
//! With `--lines` line counts at all levels are held against what two judges agree on (gcov and
//! llvm-cov; for Rust, llvm-cov and our own count at -O0), and a table says how many are right.

mod all_modules;
mod callgrind;
mod check;
mod compare;
mod coverage_mapping;
mod directives;
mod explained;
mod finished;
mod from_source;
mod gcov;
mod headcount;
mod libclang;
mod line_table;
mod lines;
mod statements;
mod suite;
mod symbols;
mod tally;
mod warnings;
mod work_folder;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use headcount_ground::child;
use headcount_ground::program::{Language, Program};
use headcount_ground::real::{self, Amount};
use headcount_ground::registry::Sources;
use headcount_ground::workers::{self, Progress};

use all_modules::Alike;
use check::{Checker, Limits, Outcome};
use explained::Explained;
use headcount::Headcount;
use tally::{Checked, Tally};

/// Checks that other people's programs behave the same when counted, and that
/// the counts are those of independent judges.
#[derive(Parser)]
#[command(name = "headcount-torture")]
struct Options {
    /// Which programs
    #[arg(long, value_enum, default_value_t = Suite::Gcc)]
    suite: Suite,
    /// Which way of counting
    #[arg(long, value_enum, default_value_t = Route::Cc)]
    route: Route,
    /// What `headcount run` puts into the program, if not what it chooses itself
    #[arg(long, value_enum, value_name = "ENGINE")]
    engine: Option<Engine>,
    /// Who judges; without it, single steps with `--route run`, and those that a route names
    #[arg(long, value_enum)]
    judge: Option<Judge>,
    /// With `--route run`: count all modules, ask no judge, and see only that output and status
    /// are as without us
    #[arg(long, conflicts_with = "judge")]
    behave: bool,
    /// With `--route run`: build programs so that no table tells where their functions are,
    /// neither symbols nor frames. What of them runs and is not counted is a failure, even if
    /// headcount says so itself
    #[arg(long)]
    bare: bool,
    /// With `--route source`: see only that what compiles without a warning does so when counted
    #[arg(long, conflicts_with = "judge")]
    warnings: bool,
    /// Print a table of how accurate line counts are, and which goals it misses: real programs in C,
    /// C++ and Rust, those of tests/programs that say `optimised:`, and a sample of GCC's, built by
    /// gcc, clang and rustc at all --levels
    #[arg(long, conflicts_with_all = ["judge", "behave", "bare", "warnings"])]
    lines: bool,
    /// With `--lines`: what to take from an earlier call in the same folder
    #[arg(long, requires = "lines", value_enum, value_name = "WHAT")]
    again: Option<lines::Again>,
    /// Give real programs a twenty-fifth of their work: for an engine that stops at every block
    #[arg(long)]
    little: bool,
    /// Skip programs that take more steps than this, with `--route run`
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    steps: u64,
    /// The headcount to be checked
    #[arg(
        long,
        value_name = "PATH",
        env = "HEADCOUNT",
        default_value = "target/release/headcount"
    )]
    headcount: PathBuf,
    /// The compiler to build with
    #[arg(long, value_name = "COMPILER", default_value = "gcc")]
    cc: String,
    /// More words for the compiler, for all programs in C and C++: `-no-pie`, say, or
    /// `-static -falign-functions=1`
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    flags: String,
    /// Optimisation levels [default: O0,O2; with `--lines` O0,O1,O2,O3,O2-flto]
    #[arg(long = "levels", value_name = "LIST", value_delimiter = ',')]
    asked_levels: Vec<String>,
    /// Check only N programs, always the same, spread evenly over the names; with `--lines`, N of
    /// each kind
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Check only programs whose names contain this, or match it if it has a `*`
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Compare the counts of only N programs (spread evenly): callgrind is slow
    #[arg(long, value_name = "N")]
    counts: Option<usize>,
    /// Checks at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Where to build and run
    #[arg(long, value_name = "DIR", default_value = "target/torture")]
    work: PathBuf,
    /// Where GCC's suite is, or is unpacked to [default: the folder of --work]
    #[arg(long, value_name = "DIR")]
    unpacked: Option<PathBuf>,
    /// The table of understood differences
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/explained.txt"))]
    explained: PathBuf,
    /// The Debian package that holds GCC's sources
    #[arg(long, value_name = "NAME", default_value = "gcc-12-source")]
    package: String,
    /// Keep the folders of checks that went well, too
    #[arg(long)]
    keep: bool,
}

impl Options {
    /// The optimisation levels that were asked for, or the usual ones.
    fn levels(&self) -> Vec<String> {
        let usual: &[&str] = match self.lines {
            true => &lines::LEVELS,
            false => &["O0", "O2"],
        };
        match self.asked_levels.is_empty() {
            true => usual.iter().map(|it| (*it).to_owned()).collect(),
            false => self.asked_levels.clone(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// GCC's `gcc.c-torture/execute`
    Gcc,
    /// bzip2, Lua, LZ4, SQLite, zlib and zstd, from the crates that carry them; with `--route run`
    /// also a program in C++ that throws, and one in Rust
    Real,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Detour,
    Breakpoint,
    /// Detours that log calls, too
    Calls,
}

impl Engine {
    /// What makes `headcount run` take it.
    fn options(self) -> &'static [&'static str] {
        match self {
            Engine::Detour => &["--engine", "detour"],
            Engine::Breakpoint => &["--engine", "breakpoint"],
            Engine::Calls => &["--engine", "detour", "--calls"],
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Judge {
    /// Single steps: every instruction of the program itself, however short its run must be
    Steps,
    /// Callgrind: every instruction of the program and of its libraries
    Callgrind,
    /// With `--route source`: where statements begin, and what they are, says libclang, too.
    /// Nothing is built or run
    Libclang,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Route {
    /// Built with `headcount cc`; every function's count against callgrind's
    Cc,
    /// Built with `headcount cc --via source`; at O0, lines that are one statement and calls of
    /// functions against gcov's, and blocks against clang's coverage mapping
    Source,
    /// Built plainly and counted by `headcount run`; every instruction's count against single
    /// steps, and at O0 every line's that is one statement against gcov's
    Run,
}

impl Route {
    fn name(self) -> &'static str {
        match self {
            Route::Cc => "cc",
            Route::Source => "source",
            Route::Run => "run",
        }
    }
}

/// One program at one level, to be checked.
struct Case {
    name: String,
    level: String,
    /// The program, or why it is not for this machine.
    program: Result<Program, String>,
    counts: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.lines {
        return match line_table_of(&options) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(problem) => {
                eprintln!("headcount-torture: {problem:#}");
                ExitCode::from(2)
            }
        };
    }
    match run(&options) {
        Ok(tally) => {
            print!("{tally}");
            if tally.is_good() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(problem) => {
            eprintln!("headcount-torture: {problem:#}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<Tally> {
    std::fs::create_dir_all(&options.work)?;
    let work = options.work.canonicalize()?;
    let _hold = work_folder::hold(&work)?;
    let about = match options.judge {
        Some(Judge::Libclang) => "libclang",
        _ if options.bare => "bare",
        _ => options.route.name(),
    };
    let explained = Explained::read(&options.explained, about)?;
    let checker = checker(options, &work)?;
    let way = way(options, &work)?;
    let cases = cases(options, &work)?;
    let mut progress = Progress::new("headcount-torture", cases.len());
    let mut failures = 0;
    let outcomes = workers::share_out(
        &cases,
        options.jobs,
        |case| check(&checker, &way, case),
        |done, outcome| {
            failures += usize::from(matches!(outcome, Outcome::Failed(_)));
            progress.show(done, &format!("checked, {failures} failed"));
        },
    );
    let programs = cases.len() / options.levels().len().max(1);
    let checked = cases
        .into_iter()
        .zip(outcomes)
        .map(|(case, outcome)| Checked {
            program: case.name,
            level: case.level,
            outcome,
        });
    let mut tally = Tally::of(&checked.collect::<Vec<_>>(), &explained);
    if options.only.is_none() {
        if matches!(way, Way::Stepped { .. } | Way::StatementStarts) {
            tally.require_judged(programs, &options.levels());
        }
        if matches!(way, Way::Stepped { .. }) && !options.bare {
            tally.require_lines();
        }
    }
    Ok(tally)
}

/// Prints the table of `--lines`; whether all that must hold of it does.
fn line_table_of(options: &Options) -> Result<bool> {
    std::fs::create_dir_all(&options.work)?;
    let work = options.work.canonicalize()?;
    let _hold = work_folder::hold(&work)?;
    let headcount = Headcount::find(&options.headcount, &[], None)?;
    let wanted = lines::Wanted {
        sample: options.sample,
        amount: amount(options),
        package: &options.package,
        unpacked: options.unpacked.as_deref().unwrap_or(&work),
    };
    let mut programs = lines::programs(&wanted, &work)?;
    programs.retain(|it| is_wanted(&it.name, options.only.as_deref()));
    let levels = options.levels();
    let judge = lines::Lines::new(&headcount, &work, &levels, options.again);
    let outcome = judge.judge_all(&programs, options.jobs)?;
    print!("{}", outcome.text);
    Ok(outcome.is_good)
}

fn amount(options: &Options) -> Amount {
    match options.little {
        true => Amount::Little,
        false => Amount::Check,
    }
}

/// How every program is checked.
enum Way {
    Cc,
    Source,
    StatementStarts,
    Warnings,
    Stepped { most: u64 },
    AllModules(Alike),
    Behaviour,
}

fn way(options: &Options, work: &Path) -> Result<Way> {
    let way = match (options.route, options.judge) {
        (Route::Cc, None) => Way::Cc,
        (Route::Source, None) if options.warnings => Way::Warnings,
        (Route::Source, None) => Way::Source,
        (Route::Source, Some(Judge::Libclang)) => Way::StatementStarts,
        (Route::Run, _) if options.behave => Way::Behaviour,
        (Route::Run, None | Some(Judge::Steps)) => Way::Stepped {
            most: options.steps,
        },
        (Route::Run, Some(Judge::Callgrind)) => {
            for rule in all_modules::RULES {
                println!("rule: {rule}");
            }
            Way::AllModules(Alike::find(work)?)
        }
        (route, Some(_)) => bail!("this is no judge of --route {}", route.name()),
    };
    if options.bare && !matches!(way, Way::Stepped { .. } | Way::Behaviour) {
        bail!("--bare is for --route run, with single steps or with --behave");
    }
    Ok(way)
}

/// A check that could not be made is a failure like any other: hours of other
/// checks must not be lost with it.
fn check(checker: &Checker, way: &Way, case: &Case) -> Outcome {
    let program = match &case.program {
        Ok(program) => program,
        Err(reason) => return Outcome::NotApplicable(reason.clone()),
    };
    let level = format!("-{}", case.level);
    let outcome = match way {
        Way::Cc => checker.check(program, &level, case.counts),
        Way::Source => checker.check_source(program, &level, case.counts),
        Way::Warnings => checker.check_warnings(program, &level),
        Way::StatementStarts => checker.check_statement_starts(program, &level),
        Way::Stepped { most } => checker.check_run(program, &level, *most),
        Way::AllModules(alike) => checker.check_all_modules(program, &level, alike),
        Way::Behaviour => checker.check_behaviour(program, &level),
    };
    outcome.unwrap_or_else(|problem| Outcome::Failed(format!("cannot be checked: {problem:#}")))
}

fn checker(options: &Options, work: &Path) -> Result<Checker> {
    let seconds = Duration::from_secs;
    let mut ask = Command::new(&options.cc);
    let version = child::run_or_bail(ask.arg("--version"), work, seconds(20))?;
    let is_clang = String::from_utf8_lossy(&version).contains("clang");
    Ok(Checker {
        headcount: Headcount::find(
            &options.headcount,
            options.engine.map_or(&[], Engine::options),
            (options.route == Route::Source).then_some("source"),
        )?,
        compiler: options.cc.clone(),
        is_clang,
        common_flags: common_flags(options, is_clang),
        bare: options.bare,
        toolchain: symbols::of_toolchain(&options.cc, work)?,
        work: work
            .join(options.route.name())
            .join(options.cc.replace('/', "-")),
        limits: Limits {
            compile: seconds(900),
            native: seconds(60),
            counted: seconds(300),
            callgrind: seconds(900),
        },
        keep: options.keep,
    })
}

fn common_flags(options: &Options, is_clang: bool) -> Vec<String> {
    let old_c = libclang::OLD_C.iter().filter(|_| is_clang);
    let ours = ["-w"].iter().chain(old_c).map(|it| (*it).to_owned());
    let asked = options.flags.split_whitespace().map(str::to_owned);
    ours.chain(asked).collect()
}

fn cases(options: &Options, work: &Path) -> Result<Vec<Case>> {
    let all = match options.suite {
        Suite::Gcc => of_gcc(options, work)?,
        Suite::Real => real_programs(options, work)?,
    };
    let wanted = all
        .into_iter()
        .filter(|(name, _)| is_wanted(name, options.only.as_deref()));
    let chosen = spread(wanted.collect(), options.sample);
    let judged: BTreeSet<String> = spread(
        chosen.iter().map(|(name, _)| name.clone()).collect(),
        options.counts,
    )
    .into_iter()
    .collect();
    let cases = chosen.into_iter().flat_map(|(name, at_levels)| {
        let counts = judged.contains(&name);
        let levels = options.levels().into_iter().zip(at_levels);
        levels.map(move |(level, program)| Case {
            name: name.clone(),
            level,
            program,
            counts,
        })
    });
    Ok(cases.collect())
}

/// A name, and the program at each of the levels asked for.
type AtLevels = (String, Vec<Result<Program, String>>);

fn of_gcc(options: &Options, work: &Path) -> Result<Vec<AtLevels>> {
    let folder = options.unpacked.as_deref().unwrap_or(work);
    let tests = suite::tests(folder, &options.package)?;
    let at_levels = |test: &suite::Test| {
        options
            .levels()
            .iter()
            .map(|level| test.at(&format!("-{level}")))
            .collect()
    };
    Ok(tests
        .iter()
        .map(|test| (test.name.clone(), at_levels(test)))
        .collect())
}

fn real_programs(options: &Options, work: &Path) -> Result<Vec<AtLevels>> {
    let amount = amount(options);
    let mut programs = real::programs(&Sources::fetch(work)?, amount)?;
    if options.route == Route::Run {
        // Threads take turns as they like.
        let ours = real::our_own(amount).into_iter();
        programs.extend(ours.filter(|it| it.name != "threads"));
        let in_rust = programs
            .iter_mut()
            .filter(|it| it.language == Language::Rust);
        in_rust.for_each(|it| it.flags.push("--cfg=bare".to_owned()));
    }
    programs.retain(|it| !options.bare || it.language == Language::C);
    let at_levels = |program: &Program| vec![Ok(program.clone()); options.levels().len()];
    Ok(programs
        .iter()
        .map(|program| (program.name.clone(), at_levels(program)))
        .collect())
}

fn is_wanted(name: &str, only: Option<&str>) -> bool {
    match only {
        None => true,
        Some(pattern) if pattern.contains('*') => directives::matches_glob(pattern, name),
        Some(part) => name.contains(part),
    }
}

/// `count` of the items, as far apart as they can be, the same every time.
fn spread<T>(items: Vec<T>, count: Option<usize>) -> Vec<T> {
    let total = items.len();
    let Some(count) = count.filter(|count| *count < total) else {
        return items;
    };
    let chosen: BTreeSet<usize> = (0..count).map(|at| at * total / count).collect();
    let numbered = items.into_iter().enumerate();
    numbered
        .filter(|(at, _)| chosen.contains(at))
        .map(|(_, item)| item)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_evenly_and_never_larger_than_the_whole() {
        let items: Vec<usize> = (0..10).collect();
        assert_eq!(spread(items.clone(), Some(5)), [0, 2, 4, 6, 8]);
        assert_eq!(spread(items.clone(), Some(3)), [0, 3, 6]);
        assert_eq!(spread(items.clone(), Some(99)), items);
        assert_eq!(spread(items.clone(), None), items);
    }

    #[test]
    fn only_takes_a_part_of_a_name_or_a_pattern() {
        assert!(is_wanted("ieee/rbug", Some("rbug")));
        assert!(is_wanted("pr1-2", Some("pr*-2")));
        assert!(!is_wanted("pr1-23", Some("pr*-2")));
    }
}
