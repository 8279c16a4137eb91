//! What can be typed to ask a program that is being counted.

use super::{FilterArgument, TableArgument};
use clap::{Args, ValueEnum};
use std::time::Duration;

/// Print what a program has executed so far while it is being counted.
///
/// The counts are exact, and all of one moment: threads that run are held for as long as it takes to
/// read their counters, a fraction of a millisecond, and go on. Counts never go down from one query to
/// the next, nor from the last one to the final counts of the run. A program built with `headcount cc`
/// can be asked, too; a block that a thread is in the middle of counts as fully executed.
///
/// A program can ask for its own counts with `headcount_query()` of `include/headcount.h`; see `docs/live.md`.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount query 1234                         your own functions, hottest first
  headcount query 1234 --by line --top 5
  headcount query 1234 --events loads,stores,syscalls
  headcount query 1234 --by syscall
  headcount query 1234 --only 'handle_*' --json")]
pub struct Query {
    /// The process, or the `headcount run` that counts it.
    #[arg(value_name = "PID")]
    pub pid: i32,
    #[command(flatten)]
    pub table: TableArgument,
}

/// Show a live table of what a program that is being counted executes.
///
/// Totals are exact at each refresh, and rates are what was executed since the one before. Keys:
/// `s` sorts by rate, total or name; `/` filters rows; `f` and `l` show functions or lines; space pauses;
/// arrows scroll; `q` leaves. The program keeps running and is still counted.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount watch 1234
  headcount watch 1234 --by line --every 500ms
  headcount watch 1234 --json                   one object per line, for scripts
  headcount run --watch -- ./server >log 2>&1   from the beginning")]
pub struct Watch {
    /// The process, or the `headcount run` that counts it.
    #[arg(value_name = "PID")]
    pub pid: i32,
    #[command(flatten)]
    pub table: LiveTable,
}

/// What a live table shows.
#[derive(Debug, Args)]
pub struct LiveTable {
    /// What each row stands for.
    #[arg(long, value_enum, default_value_t = LiveUnit::Function, value_name = "UNIT")]
    pub by: LiveUnit,
    /// How often to look, such as `500ms` or `2s`.
    #[arg(long, value_name = "TIME", value_parser = super::duration, default_value = "1s")]
    pub every: Duration,
    #[command(flatten)]
    pub filter: FilterArgument,
    /// Write one JSON object per line in place of the table.
    #[arg(long)]
    pub json: bool,
    /// With `--json`: N rows in each line.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// With `--json`: end after N lines.
    #[arg(long, value_name = "N", requires = "json")]
    pub times: Option<u64>,
}

/// What has a row in a live table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LiveUnit {
    Function,
    Line,
}

/// Begin a new phase of a run in progress, so that reports tell what ran before and after apart.
///
/// Each phase becomes a run of its own in the profile: `start` until the first mark, and one from each
/// mark to the next, or to the end, under the mark's name. Reports add them up unless `--phase NAME`
/// chooses one; `headcount runs` lists them, and `headcount diff --runs 2,3` compares two.
///
/// A program can mark its own phases with `headcount_mark()` of `include/headcount.h`, and leave parts of what
/// it does out of reports with `headcount_pause()`; see `docs/live.md`.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount mark 1234 steady             begin the phase `steady` now
  headcount report --phase steady        when the run has ended
  headcount report --phase start         what ran before the first mark")]
pub struct Mark {
    /// The process, or the `headcount run` that counts it.
    #[arg(value_name = "PID")]
    pub pid: i32,
    /// The name of the phase that begins.
    #[arg(value_parser = phase_name)]
    pub name: String,
}

fn phase_name(text: &str) -> Result<String, String> {
    headcount_monitor::live::check_name(text)?;
    Ok(text.to_owned())
}
