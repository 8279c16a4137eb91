//! What can be typed to compare counts.

use super::FilterArgument;
use super::reading::run_selection;
use clap::{Args, ValueEnum};
use headcount_profile::RunSelection;
use std::path::PathBuf;

/// Compare two runs, function by function and line by line.
///
/// Without a profile: the last two runs of headcount.db. With one: its last two runs. With two: the
/// last run of each. Modules and functions are matched by name, so two builds can be compared. Exit
/// status: 0, or 1 if something is over a limit.
///
/// Some programs never execute the same twice: hash seeds, threads and addresses differ. Give each
/// side several runs of the same command; a function or line is then reported only if the counts of
/// the two sides do not overlap.
///
/// In GitHub Actions the comparison also goes to the summary of the step, and what is over a limit
/// is marked beside its line.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount diff                               the last two runs
  headcount diff --runs 2,5                    two runs by their numbers
  headcount diff --runs 1-5:6-10               five runs a side
  headcount diff main.db pr.db --runs all      all runs of a command
  headcount diff main.db pr.db --fail-over 1%
  headcount diff main.db pr.db --fail-over function=5% --only 'src/*'
  headcount diff main.db pr.db --by line       how often each line was begun
  headcount diff main.db pr.db --by value      what --tally and --targets found
  headcount diff main.db pr.db --format markdown")]
pub struct Diff {
    /// The profile with the old counts.
    #[arg(value_name = "OLD")]
    pub old: Option<PathBuf>,
    /// The profile with the new counts.
    #[arg(value_name = "NEW")]
    pub new: Option<PathBuf>,
    /// The runs of both sides, such as `1-5:6-10`. Of one profile, also the numbers of the old and of
    /// the new run, such as `2,5`. Of two profiles, also `last`, `all` or numbers, for both sides. Runs
    /// of different commands are added up.
    #[arg(long, value_parser = side_runs, value_name = "RUNS")]
    pub runs: Option<SideRuns>,
    /// What to compare: instructions executed, by function, how often lines were begun, or how often
    /// values were found.
    #[arg(long, value_enum, default_value_t = DiffBy::Function)]
    pub by: DiffBy,
    /// Fail if so much more is executed: `1%`, `10000`, or of any one function `function=5%`; or if
    /// any one line is begun so much more often: `line=0`. A line whose count is only a bound fails
    /// only if the bound proves that it is over the limit. May be given several times.
    #[arg(long, value_name = "LIMIT", value_parser = headcount_report::diff::Limit::parse)]
    pub fail_over: Vec<headcount_report::diff::Limit>,
    #[command(flatten)]
    pub filter: FilterArgument,
    /// Show so many functions, lines, or values of each kind.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// With `--by line` or a limit for lines: a folder to look for sources in; may be given several
    /// times. With the C source, more lines of optimised code have exact counts.
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub format: DiffFormat,
    /// Where to write it; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What a comparison is a table of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffBy {
    /// Instructions executed by functions, with the lines that account for the difference.
    Function,
    /// How often lines were begun, and whether that is exact, a bound or unknown.
    Line,
    /// How often each value was found (`run --tally`, `run --targets`).
    Value,
}

/// How to write a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    Text,
    Csv,
    Json,
    Markdown,
}

/// The runs of the two sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideRuns {
    /// The same words for both.
    Both(RunSelection),
    /// The old and the new ones.
    Each(RunSelection, RunSelection),
}

fn side_runs(text: &str) -> Result<SideRuns, String> {
    let runs = match text.split_once(':') {
        None => run_selection(text).map(SideRuns::Both),
        Some((old, new)) => {
            run_selection(old).and_then(|old| Ok(SideRuns::Each(old, run_selection(new)?)))
        }
    };
    runs.map_err(|_| {
        "say the runs of both sides, such as `1-5:6-10`; or `last`, `all`, or numbers such as `2,5` or \
         `3-7`"
            .into()
    })
}
