//! What can be typed. `--help`, the manual pages and the completions are all made of this.

use clap::{Args, Parser, Subcommand, ValueEnum};
use headcount_profile::RunSelection;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Count, exactly, how many times every line, function and instruction of a program ran.
#[derive(Debug, Parser)]
#[command(
    name = "headcount",
    version,
    before_help = "\
Examples:
  headcount demo                            a first count, explained step by step
  headcount run -- ./max 3 1 2              count a program that is there, as it is
  headcount cc -- cc -g -o max max.c        build a program that counts itself
  ./max && headcount annotate max           run it; its source, with counts
  headcount report --by function --top 10   where its instructions went",
    after_help = "Counts are kept in `headcount.db` in the current folder unless told otherwise. \
                  `headcount VERB --help` says more about a verb.",
    disable_help_subcommand = true
)]
pub struct Headcount {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs, in the order in which one meets them.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Demo(Demo),
    Run(Run),
    Attach(Attach),
    Cc(Cc),
    Csource(Csource),
    Collect(Collect),
    Report(Report),
    Annotate(Annotate),
    Explain(Explain),
    Runs(Runs),
    Merge(Merge),
    Doctor(Doctor),
    #[command(hide = true)]
    Man(Man),
    #[command(hide = true)]
    Completions(Completions),
}

/// Show a first count: build, run and annotate a small program, step by step.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount demo
  headcount demo --keep       keep the folder, to go on from there
  CC=clang headcount demo     with another compiler")]
pub struct Demo {
    /// Keep the folder with the program and its profile, and say where it is.
    #[arg(long)]
    pub keep: bool,
}

/// Run a program and count it, as it is: nothing has to be rebuilt.
///
/// Everything that runs is counted: the program, its libraries, its threads, and its children, each
/// in its own program. The exit status is the program's; 125 if headcount fails, 126 if the program
/// cannot be run, 127 if it is not there.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount run -- ./max 3 1 2                   with all its libraries
  headcount run --modules main -- /usr/bin/ls    the program alone
  headcount run --only 'sort.c:20-40' -- ./max 3 1 2
  headcount run --only 'parse_*' --limit 1000 -- ./server")]
pub struct Run {
    #[command(flatten)]
    pub counting: Counting,
    /// Count only the program itself, not its children.
    #[arg(long)]
    pub no_follow: bool,
    /// The program and its arguments.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM"
    )]
    pub command: Vec<OsString>,
}

/// Count a program that already runs, until it ends or until Ctrl-C.
///
/// When headcount lets go of it, every byte of the program is as it was, and it goes on.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount attach 1234                        until Ctrl-C
  headcount attach --for 10s 1234
  headcount attach --unit function --for 500ms 1234
  headcount attach --only 'handle_*' 1234")]
pub struct Attach {
    #[command(flatten)]
    pub counting: Counting,
    /// Let go after this time, such as `10s`, `500ms` or `2m`.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// The process.
    #[arg(value_name = "PID")]
    pub pid: i32,
}

/// What to count, and where to put it.
#[derive(Debug, Args)]
pub struct Counting {
    /// The profile to add to [default: headcount.db].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How counters get into the program: `detour` runs copies of its functions that count, and is
    /// fast; `breakpoint` stops it at every block that is counted, and is for programs that use the
    /// gs register themselves [default: detour, or breakpoint with --limit].
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub engine: Option<EngineName>,
    /// What to count: every block (and with it every instruction and line), only the blocks that
    /// begin a line, or only entries of functions. With breakpoints, fewer are faster.
    #[arg(long, value_enum, default_value_t = CountUnit::Block, value_name = "UNIT")]
    pub unit: CountUnit,
    /// Count only functions and files with such names (`*` any text, `?` any character), or lines
    /// such as `sort.c:20-40`. `libz.so*!inflate` names a library's.
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Do not count these.
    #[arg(long, value_name = "PATTERN")]
    pub skip: Vec<String>,
    /// Which modules to count: `main` is the program itself, `all` its libraries too; or a
    /// pattern for paths [default: all, or main with breakpoints].
    #[arg(long, value_name = "MODULES")]
    pub modules: Option<String>,
    /// Stop counting a unit when it was met so often; the report says "at least". For breakpoints.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Say nothing when all goes well.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Counting {
    /// How to count.
    pub fn engine(&self) -> EngineName {
        self.engine.unwrap_or(match self.limit {
            Some(_) => EngineName::Breakpoint,
            None => EngineName::Detour,
        })
    }

    /// Which modules to count.
    pub fn modules(&self) -> &str {
        self.modules.as_deref().unwrap_or(match self.engine() {
            EngineName::Detour => "all",
            EngineName::Breakpoint => "main",
        })
    }
}

/// How counters get into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineName {
    Detour,
    Breakpoint,
}

/// How `cc` gets counters into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Route {
    Assembly,
    Source,
}

/// Compile a program so that it counts itself.
///
/// Put this in front of the command that compiles or links. The program is built as before, and
/// whenever it runs it keeps its counts in a folder `headcount.counts`, whatever becomes of it.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount cc -- cc -g -O2 -o max max.c
  headcount cc -- g++ -g -c shape.cc
  make CC='headcount cc -- cc'
  headcount cc --via source -- gcc -O2 -o max max.c    counts of what the source says
  CC='headcount cc -- clang' ./configure")]
pub struct Cc {
    /// How counters get into the program: into the assembler text that the compiler writes, which
    /// tells of instructions; or into its C source, before it is compiled, which tells of
    /// statements and of operands of `?:`, `&&` and `||`.
    #[arg(long, value_enum, default_value_t = Route::Assembly, value_name = "ROUTE")]
    pub via: Route,
    /// Give every block of the source a counter, even where its count follows from others.
    #[arg(long)]
    pub every_block: bool,
    /// The compiler and its arguments.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "COMPILER"
    )]
    pub command: Vec<OsString>,
}

/// Make C that counts itself, for any compiler and any machine.
///
/// The result is one C file with a small runtime of its own, in plain C11. A program built of such
/// files writes its counts into a folder `headcount.counts` when it exits (by `exit` or from
/// `main`; not when it is killed, and not in children that it forks). On x86-64 Linux, `headcount cc
/// --via source` counts those, too.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount csource max.c -o max.counted.c && cc max.counted.c && ./a.out 3 1 2
  headcount csource --cpp 'aarch64-linux-gnu-gcc -E -DFAST' max.c -o counted.c
  headcount csource --no-cpp max.c -o counted.c      macros stay as they are")]
pub struct Csource {
    /// The C file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where to write the result; `-` is standard output.
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// The command that preprocesses a file; the file's name is put behind it.
    #[arg(long, value_name = "CMD", default_value = "cc -E")]
    pub cpp: String,
    /// Do not preprocess, so that macros stay readable. Where a file cannot be read as it is, it is
    /// preprocessed all the same.
    #[arg(long)]
    pub no_cpp: bool,
    /// Give every block a counter, even where its count follows from others.
    #[arg(long)]
    pub every_block: bool,
}

/// Take the counts of programs built with `headcount cc` into the profile.
///
/// The reading verbs do this on their own for the folder `headcount.counts` of the current
/// folder. Counts of a program that is still running, or that left a core dump, are there too; so
/// are those of a `headcount run` that was killed.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount collect                       what is in headcount.counts
  headcount collect /tmp/counts -o my.db
  headcount collect --running 1234        a program that has not ended yet
  headcount collect --core core.1234 --program ./max")]
pub struct Collect {
    /// Folders with counter files; without any, `headcount.counts`.
    #[arg(value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// The profile to add to [default: headcount.db].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Read the counts of the process with this number, which goes on running.
    #[arg(long, value_name = "PID")]
    pub running: Option<u32>,
    /// Read counts from a core dump.
    #[arg(long, value_name = "FILE")]
    pub core: Option<PathBuf>,
    /// The program that dumped core.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Leave the counter files where they are.
    #[arg(long)]
    pub keep: bool,
}

/// Print counts as a table.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount report                                 hottest functions first
  headcount report --by line --only max.c          every line of one file
  headcount report --never                         functions that never ran
  headcount report --by instruction --format csv -o all.csv")]
pub struct Report {
    #[command(flatten)]
    pub profile: ProfileArgument,
    /// What has one row.
    #[arg(long, value_enum, default_value_t = By::Function, value_name = "UNIT")]
    pub by: By,
    /// The column to sort by: numbers from the largest, names from the first.
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// Show only the first rows.
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show only functions and files with such names (`*` any text, `?` any character).
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Show only what never ran.
    #[arg(long)]
    pub never: bool,
    #[command(flatten)]
    pub runs: RunsArgument,
    #[command(flatten)]
    pub names: NamesArgument,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Where to write it; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Print source text with the count of each line in the margin.
///
/// A count is how often a statement of that line began. A line without a count holds no code. A
/// 0 is marked with `!`: its code never ran. A `-` was not counted.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount annotate                  all sources of which anything ran
  headcount annotate max              all sources of the program max
  headcount annotate max.c 'max()'    one file; one function
  headcount annotate --asm main       every instruction with its count
  headcount annotate --histogram scaled max.c    a bar beside each line
  headcount annotate --columns max.c  each operand of ?:, && and ||, if built with --via source
  headcount annotate --write .bb      beside each source max.c, a max.c.bb with counts")]
pub struct Annotate {
    /// Programs, source files or functions; `max()` is the function where `max` is a program too.
    #[arg(value_name = "NAME")]
    pub names_wanted: Vec<String>,
    #[command(flatten)]
    pub profile: InputOption,
    /// Show instructions.
    #[arg(long)]
    pub asm: bool,
    /// Show a bar beside each line, as wide as the terminal allows (or `COLUMNS`).
    #[arg(long, value_enum, value_name = "SCALE", conflicts_with = "asm")]
    pub histogram: Option<Histogram>,
    /// Show below each line the blocks that begin in it, each under its column. Programs built with
    /// `headcount cc --via source` have such.
    #[arg(long, conflicts_with_all = ["asm", "histogram"])]
    pub columns: bool,
    /// Write each source file, with a count before each line, beside the original, under its name
    /// with this ending. Only below the current folder.
    #[arg(long, value_name = "ENDING", value_parser = ending, conflicts_with_all = ["asm", "histogram", "columns", "output"])]
    pub write: Option<String>,
    /// A folder to look for sources in; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
    #[command(flatten)]
    pub runs: RunsArgument,
    #[command(flatten)]
    pub names: NamesArgument,
    /// Where to write it; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Say how a function is counted, or why it is not.
///
/// Exit status: 0 if it is counted, 1 if it is not.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount explain main
  headcount explain 'shape::*'
  headcount explain -i other.db main")]
pub struct Explain {
    /// The function (`*` any text, `?` any character).
    #[arg(value_name = "FUNCTION")]
    pub function: String,
    #[command(flatten)]
    pub profile: InputOption,
    #[command(flatten)]
    pub runs: RunsArgument,
    #[command(flatten)]
    pub names: NamesArgument,
}

/// List the runs in a profile.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount runs
  headcount runs other.db
  headcount runs --format json")]
pub struct Runs {
    #[command(flatten)]
    pub profile: ProfileArgument,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Where to write it; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Put the runs of several profiles into one.
///
/// A run that is there already is not added again. A profile that cannot be read is named and
/// left out; the exit status is then 1.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount merge a.db b.db -o all.db
  headcount merge results/*/headcount.db -o all.db
  headcount report all.db --runs all")]
pub struct Merge {
    /// The profiles.
    #[arg(value_name = "FILE", required = true)]
    pub inputs: Vec<PathBuf>,
    /// The profile to add them to; it is made if it is not there.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Say what this machine allows, and what to do about what it does not.
///
/// Exit status: 0 if programs can be counted here, 1 if not.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount doctor
  headcount doctor --json
  CC=clang headcount doctor")]
pub struct Doctor {
    /// Write JSON.
    #[arg(long)]
    pub json: bool,
}

/// Write the manual pages.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount man | man -l -
  headcount man --dir ~/.local/share/man/man1")]
pub struct Man {
    /// Write one page a verb into this folder; without it, print the main page.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount completions bash > ~/.local/share/bash-completion/completions/headcount
  headcount completions fish > ~/.config/fish/completions/headcount.fish")]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// A profile, as the first argument or with `-i`.
#[derive(Debug, Args)]
pub struct ProfileArgument {
    /// The profile [default: headcount.db].
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The same, for those who prefer an option.
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    pub input: Option<PathBuf>,
}

/// A profile, where arguments mean something else.
#[derive(Debug, Args)]
pub struct InputOption {
    /// The profile [default: headcount.db].
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,
}

/// Which runs to add up.
#[derive(Debug, Args)]
pub struct RunsArgument {
    /// `last`, `all`, or numbers such as `2,5`; several runs are added up.
    #[arg(long, default_value = "last", value_parser = run_selection, value_name = "RUNS")]
    pub runs: RunSelection,
}

/// How to show names.
#[derive(Debug, Args)]
pub struct NamesArgument {
    /// Show the linker's names of functions.
    #[arg(long)]
    pub no_demangle: bool,
}

/// What `run` and `attach` count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CountUnit {
    Block,
    Line,
    Function,
}

/// What has one row.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum By {
    Module,
    File,
    Function,
    Line,
    Block,
    Instruction,
    Edge,
    Call,
}

/// How long the bars of a histogram are.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Histogram {
    /// One mark each time the line ran; a bar that is cut ends in `>`.
    Full,
    /// The longest bar fills the width, the others are in proportion.
    Scaled,
}

/// How to write a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Csv,
    Json,
}

fn run_selection(text: &str) -> Result<RunSelection, String> {
    match text {
        "last" => Ok(RunSelection::Last),
        "all" => Ok(RunSelection::All),
        _ => text
            .split(',')
            .map(|number| number.trim().parse())
            .collect::<Result<_, _>>()
            .map(RunSelection::These)
            .map_err(|_| "say `last`, `all`, or numbers such as `2,5`".into()),
    }
}

fn ending(text: &str) -> Result<String, String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    match text.strip_prefix('.') {
        Some(rest) if !rest.is_empty() && rest.chars().all(is_plain) => Ok(text.to_owned()),
        _ => Err("say an ending such as `.bb`".into()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => -1.0,
    };
    let seconds = digits.parse::<f64>().map(|number| number * unit);
    seconds
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "say a time such as `10s`, `500ms` or `2m`".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Headcount::command().debug_assert();
    }

    #[test]
    fn every_verb_opens_its_help_with_examples() {
        for verb in Headcount::command().get_subcommands() {
            let examples = verb.get_before_help().map(|it| it.to_string());
            let examples = examples.unwrap_or_default();
            assert!(examples.starts_with("Examples:\n"), "{}", verb.get_name());
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        for nonsense in ["", "s", "10 s", "-1s", "0s", "1y", "infs", "1e999s"] {
            assert!(duration(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn runs_are_words_or_numbers() {
        assert_eq!(run_selection("last"), Ok(RunSelection::Last));
        assert_eq!(run_selection("all"), Ok(RunSelection::All));
        assert_eq!(run_selection("2, 5"), Ok(RunSelection::These(vec![2, 5])));
        for nonsense in ["", "2,", "first", "1-3"] {
            assert!(run_selection(nonsense).is_err(), "{nonsense}");
        }
    }
}
