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
    Stat(Stat),
    Attach(Attach),
    Cargo(Cargo),
    Cc(Cc),
    Csource(Csource),
    Collect(Collect),
    Report(Report),
    Annotate(Annotate),
    Html(Html),
    Explain(Explain),
    Export(Export),
    Diff(Diff),
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
    #[command(flatten)]
    pub program: ProgramArgument,
    /// Let a program that is only asked for a list of its tests run uncounted.
    #[arg(long, hide = true)]
    pub no_lists: bool,
}

/// Run a program, once or several times, and show its totals on one screen.
///
/// With -r, the functions whose counts differ between runs are named: those are what a comparison of
/// two builds had better leave out. Standard output is the program's, so the totals go to standard
/// error. The exit status is the program's; with -r, the first that is not 0.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount stat -- ./max 3 1 2
  headcount stat -r 5 -- ./max 3 1 2              what varies from run to run
  headcount stat -r 5 --modules main --format json --report stat.json -- ./max")]
pub struct Stat {
    /// Run it so often. What it reads from standard input is there for the first run only.
    #[arg(short, long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Show so many functions that differ.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = StatFormat::Text)]
    pub format: StatFormat,
    /// Where to write it; `-` is standard output [default: standard error].
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub counting: Counting,
    #[command(flatten)]
    pub program: ProgramArgument,
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

/// What to run.
#[derive(Debug, Args)]
pub struct ProgramArgument {
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

/// What to count, and where to put it.
#[derive(Clone, Debug, Args)]
pub struct Counting {
    /// The profile to add to [default: headcount.db; for stat, none].
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

/// Count the tests, benchmarks or programs of a Rust project: `cargo headcount test`.
///
/// Nothing is built in another way than cargo would: programs that are built already are counted
/// as they are. Each program that cargo runs is a run in the profile; a table says how much of the
/// workspace ran in each and in all. The exit status is cargo's.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  cargo headcount test
  cargo headcount test --workspace -- --skip slow     words for cargo; behind `--`, for the tests
  cargo headcount nextest run
  cargo headcount --modules all run --release -- input.txt")]
pub struct Cargo {
    /// The profile to add to [default: headcount.db].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Which modules to count: `main` is each program itself, `all` its libraries too; or a
    /// pattern for paths.
    #[arg(long, default_value = "main", value_name = "MODULES")]
    pub modules: String,
    /// Count only functions and files with such names, or lines such as `sort.rs:20-40`.
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Write the table, and every function of the workspace, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// `test`, `run`, `bench` or `nextest run`, and what else cargo is to be told.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

impl Cargo {
    /// How reading verbs are told of the profile: nothing, if they find it themselves.
    pub fn output_words(&self) -> String {
        let output = self.output.as_ref();
        output.map_or(String::new(), |it| format!(" -i {}", it.display()))
    }
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
    #[command(flatten)]
    pub format: FormatArgument,
    /// Where to write it; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Print source text with the count of each line in the margin.
///
/// A count is how often a statement of that line began. A line without a count holds no code. A
/// 0 is marked with `!`: its code never ran. A `-` was not counted. The sign beside a count grows
/// with it. `jumps` tells of branches: `31%` jumped, `1/2` of two ways were gone.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount annotate                  all sources of which anything ran
  headcount annotate max              all sources of the program max
  headcount annotate max.c 'max()'    one file; one function
  headcount annotate --asm main       every instruction with its count
  headcount annotate --histogram scaled max.c    a bar beside each line
  headcount annotate --never --context 2         what never ran, in its place
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
    /// Show only lines that ran, and so many lines before and after each.
    #[arg(long, value_name = "N", conflicts_with = "asm")]
    pub context: Option<u32>,
    /// Show only lines that never ran, with those around them.
    #[arg(long, conflicts_with = "asm")]
    pub never: bool,
    /// Show a bar beside each line, as wide as the terminal allows (or `COLUMNS`).
    #[arg(long, value_enum, value_name = "SCALE", conflicts_with = "asm")]
    pub histogram: Option<Histogram>,
    /// How many columns rows may have; longer lines go on in the next row [default: what a
    /// terminal has; elsewhere, as many as it takes].
    #[arg(long, value_name = "N")]
    pub width: Option<usize>,
    /// Do not show long listings through a pager (`HEADCOUNT_PAGER`, `PAGER`, or `less`).
    #[arg(long)]
    pub no_pager: bool,
    /// Write JSON.
    #[arg(long, conflicts_with_all = ["histogram", "context", "never", "width"])]
    pub json: bool,
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

/// Write everything as one HTML page: files, sources, functions, calls, branches, instructions.
///
/// The page is one file that needs no network: open it from disk, attach it to a build, send it to
/// a colleague. It holds the source text it shows, but for files that came with the system.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount html -o report.html
  headcount html -o report.html --runs all     the sum of all runs
  headcount html -o mine.html --only 'src/*'   some files, or some functions
  headcount html -o small.html --no-asm        without instructions")]
pub struct Html {
    #[command(flatten)]
    pub profile: ProfileArgument,
    /// Where to write it; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Show only functions and files with such names (`*` any text, `?` any character).
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Leave out instructions: the page is smaller.
    #[arg(long)]
    pub no_asm: bool,
    /// A folder to look for sources in; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
    #[command(flatten)]
    pub runs: RunsArgument,
    #[command(flatten)]
    pub names: NamesArgument,
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
    /// Write JSON.
    #[arg(long)]
    pub json: bool,
}

/// Write counts in a format of another tool.
///
/// Sources are found where annotate finds them. Files of the system, and files whose source is not
/// here, are left out of coverage formats unless --only names them.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount export --format lcov -o lcov.info       then: genhtml lcov.info
  headcount export --format lcov --only 'src/*' --max-count 2147483647
  headcount export --format callgrind -o cg.out     then: kcachegrind cg.out
  headcount export --format pprof -o it.pb.gz       then: go tool pprof it.pb.gz
  headcount export --format folded | flamegraph.pl > flame.svg
  headcount export --format json | jq .totals.executed
  headcount export --format bolt -o it.fdata        then: llvm-bolt -data it.fdata
  headcount export --format zprof | sort -t: -k3 -nr | head")]
pub struct Export {
    #[command(flatten)]
    pub profile: ProfileArgument,
    /// The format.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        required_unless_present = "schema"
    )]
    pub format: Option<ExportFormat>,
    /// Print the JSON Schema of the format json.
    #[arg(long, conflicts_with = "format")]
    pub schema: bool,
    /// Export only functions and files with such names (`*` any text, `?` any character).
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Export only modules with such paths (`*` any text, `?` any character). For bolt and
    /// llvm-sample, which are about one module, it is the program itself unless this says another.
    #[arg(long, value_name = "PATTERN")]
    pub module: Option<String>,
    /// The largest count to write: some readers fail above 2147483647 or 9223372036854775807.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_count: Option<u64>,
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

/// Compare two runs, function by function and line by line.
///
/// Without a profile: the last two runs of headcount.db. With one: its last two runs. With two: the
/// last run of each. Modules and functions are matched by name, so two builds can be compared. Exit
/// status: 0, or 1 if something is over a limit.
///
/// In GitHub Actions the comparison also goes to the summary of the step, and what is over a limit
/// is marked beside its line.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount diff                               the last two runs
  headcount diff --runs 2,5                    two runs by their numbers
  headcount diff main.db pr.db --fail-over 1%
  headcount diff main.db pr.db --fail-over function=5% --only 'src/*'
  headcount diff main.db pr.db --format markdown")]
pub struct Diff {
    /// The profile with the old counts.
    #[arg(value_name = "OLD")]
    pub old: Option<PathBuf>,
    /// The profile with the new counts.
    #[arg(value_name = "NEW")]
    pub new: Option<PathBuf>,
    /// Of one profile, the numbers of the old and of the new run, such as `2,5`. Of two profiles,
    /// `last`, `all` or numbers, which are added up on each side.
    #[arg(long, value_parser = run_selection, value_name = "RUNS")]
    pub runs: Option<RunSelection>,
    /// Fail if so much more is executed: `1%`, `10000`, or of any one function `function=5%`. May
    /// be given several times.
    #[arg(long, value_name = "LIMIT", value_parser = headcount_report::diff::Limit::parse)]
    pub fail_over: Vec<headcount_report::diff::Limit>,
    /// Compare only functions and files with such names (`*` any text, `?` any character).
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Show so many functions.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub format: DiffFormat,
    /// Where to write it; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// List the runs in a profile.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount runs
  headcount runs other.db
  headcount runs --json")]
pub struct Runs {
    #[command(flatten)]
    pub profile: ProfileArgument,
    #[command(flatten)]
    pub format: FormatArgument,
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
    /// `last`, `all`, or numbers such as `2,5` or `3-7`; several runs are added up.
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

/// How to write a table, as the user says it.
#[derive(Debug, Args)]
pub struct FormatArgument {
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

impl FormatArgument {
    /// What was said.
    pub fn get(&self) -> Format {
        match self.json {
            true => Format::Json,
            false => self.format,
        }
    }
}

/// How to write a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Csv,
    Json,
}

/// How to write totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatFormat {
    Text,
    Json,
}

/// How to write a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    Text,
    Csv,
    Json,
    Markdown,
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Lines, functions and branches, for genhtml, Codecov, Coveralls and editors.
    Lcov,
    /// Lines, functions and branches, for GitLab, Jenkins and Azure.
    Cobertura,
    /// Every instruction and call site, for KCachegrind and callgrind_annotate.
    Callgrind,
    /// Instructions, blocks and calls, for pprof; there are no stacks.
    Pprof,
    /// Modules, functions and lines as flame graphs have them.
    Folded,
    /// Branches of one program, for llvm-bolt: link it with --emit-relocs, and let gcc leave its
    /// functions whole with -fno-reorder-blocks-and-partition.
    Bolt,
    /// Lines of one program, for clang -fprofile-sample-use: build it with -gline-tables-only
    /// -fdebug-info-for-profiling.
    LlvmSample,
    /// Which blocks ran, for Lighthouse, IDA, Ghidra and Binary Ninja.
    Drcov,
    /// `filename:line: count` for every block, for sort and for editors.
    Zprof,
    /// Everything that is known; --schema says how.
    Json,
}

fn run_selection(text: &str) -> Result<RunSelection, String> {
    match text {
        "last" => Ok(RunSelection::Last),
        "all" => Ok(RunSelection::All),
        _ => text
            .split(',')
            .map(numbers)
            .collect::<Option<Vec<_>>>()
            .map(|ranges| RunSelection::These(ranges.into_iter().flatten().collect()))
            .ok_or_else(|| "say `last`, `all`, or numbers such as `2,5` or `3-7`".into()),
    }
}

/// `3` or `3-7`.
fn numbers(text: &str) -> Option<std::ops::RangeInclusive<i64>> {
    let number = |text: &str| text.trim().parse().ok();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (i64, i64) = (number(first)?, number(last)?);
    (first <= last && last - first < 1_000_000).then_some(first..=last)
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
        let some = RunSelection::These(vec![1, 3, 4, 5]);
        assert_eq!(run_selection("1,3-5"), Ok(some));
        for nonsense in ["", "2,", "first", "3-1", "-1", "1-", "1-9999999999"] {
            assert!(run_selection(nonsense).is_err(), "{nonsense}");
        }
    }
}
