//! What can be typed to read, compare and export counts.

use crate::threads_alone::WantedThreads;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use headcount_model::{Event, Language};
use headcount_profile::RunSelection;
use headcount_report::{Filter, Gate, Percent, Written};
use std::path::{Path, PathBuf};

/// Print counts as a table.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount report                                 your own, hottest first
  headcount report --all                           every function
  headcount report --by line --only max.c          every line of one file
  headcount report --only libm.so.6                every function of one library
  headcount report --never                         functions that never ran
  headcount report --by branch                     how often conditions held
  headcount report --callers max                   its callers, and their cost
  headcount report --why                           what takes long, and why
  headcount report --charge-back                   library time, by your lines
  headcount report --events loads,stores,flops     memory accesses and flops
  headcount report --by syscall                    system calls by number
  headcount report --fail-under-lines 80           a gate: status 1 if fewer ran
  headcount report --by instruction --format csv -o all.csv")]
pub struct Report {
    #[command(flatten)]
    pub profile: ProfileArgument,
    #[command(flatten)]
    pub table: TableArgument,
    /// Show only what never ran.
    #[arg(long, conflicts_with_all = ["callers", "callees"])]
    pub never: bool,
    /// Say of the functions (or, with `--by line`, lines) that took the most time why they did. The
    /// reason is `often`: each call (or execution of the line) is quick, and there are
    /// many; `slow`: each instruction takes more than 2 ns, as where a processor waits for memory; or
    /// `long`: each call executes many instructions. A row tells how long threads waited. Needs samples
    /// of `headcount time`.
    #[arg(long, conflicts_with_all = ["never", "callers", "callees"])]
    pub why: bool,
    /// Charge the time in libraries to the line of your own code that led there: one row for each such
    /// line and routine. Needs samples of `headcount time`. For an Icon program run with `headcount run
    /// --time`: the time in each routine of the runtime, by the token it was spent on.
    #[arg(long, conflicts_with_all = ["by", "never", "why", "callers", "callees", "only", "skip", "module"])]
    pub charge_back: bool,
    /// Show how an Icon program used storage: for each region, requests, bytes allocated, collections, bytes
    /// recovered, expansions, and the time that collections and expansions took.
    #[arg(long, conflicts_with_all = ["by", "never", "why", "callers", "callees", "only", "skip", "module", "charge_back"])]
    pub storage: bool,
    #[command(flatten)]
    pub gate: GateArgument,
    #[command(flatten)]
    pub runs: RunsArgument,
}

/// How much must have run.
#[derive(Clone, Debug, Default, Args)]
pub struct GateArgument {
    /// Fail (status 1) if less than this percentage of the lines of your own code ran, or of what
    /// `--only` names.
    #[arg(long, value_name = "PERCENT", value_parser = Percent::parse)]
    fail_under_lines: Option<Percent>,
    /// The same for functions.
    #[arg(long, value_name = "PERCENT", value_parser = Percent::parse)]
    fail_under_functions: Option<Percent>,
    /// Apply the limits to each file instead of the total.
    #[arg(long)]
    each_file: bool,
}

impl GateArgument {
    /// What must have run.
    pub fn get(&self) -> anyhow::Result<Gate> {
        let gate = Gate {
            lines: self.fail_under_lines,
            functions: self.fail_under_functions,
            each_file: self.each_file,
        };
        if gate.each_file && gate.is_open() {
            anyhow::bail!("--each-file needs --fail-under-lines or --fail-under-functions");
        }
        Ok(gate)
    }
}

/// What a table of counts shows, and how.
#[derive(Clone, Debug, Args)]
pub struct TableArgument {
    /// What each row stands for; `thread` needs `headcount run --per-thread` or samples of `headcount
    /// time`, `process` the former; `syscall` is a number by which system calls were made; `token` is an
    /// operation in a script.
    #[arg(long, value_enum, default_value_t = By::Function, value_name = "UNIT")]
    pub by: By,
    /// The column to sort by: numbers from the largest, names from the first.
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// Show only N rows: the hottest or, with --sort, the first.
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show every row. Otherwise the text report shows your own code that ran, hottest first, as much as
    /// fits on the screen, and a sum for each library. CSV and JSON have every row in any case.
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    #[command(flatten)]
    pub own: OwnArgument,
    #[command(flatten)]
    pub filter: FilterArgument,
    /// Show who called a function, from which lines, how often, and at what cost: the instructions executed
    /// in it and in all that it calls, estimated by each caller's share of the calls. Jumps from the end
    /// of one function to another are calls, too.
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["by", "only", "skip", "module"])]
    pub callers: Option<String>,
    /// Show in the same way what a function called.
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["callers", "by", "only", "skip", "module"])]
    pub callees: Option<String>,
    /// With `--by branch`: show also the ways that lead into panics, failed assertions and other checks.
    #[arg(long)]
    pub checks: bool,
    /// Show what the code did, one column per event, or `all`. A number that is only a bound is marked
    /// with `≥` or `≤`.
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', value_parser = event_names())]
    pub events: Vec<String>,
    #[command(flatten)]
    pub names: NamesArgument,
    #[command(flatten)]
    pub format: FormatArgument,
    /// With `--by line`: a folder to look for sources in; may be given several times. With the C
    /// source, more lines of optimised code have exact counts.
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
    /// Where to write it; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Print source text with the count of each line in the margin.
///
/// A count is how often a statement of that line began. A line without a count has no code of its
/// own. A 0 is marked with `!`: its code never ran. `≥ 7` is a bound, 7 times or more. `?` is
/// optimised code that does not tell how often. A `-` was not counted. The sign beside a count grows
/// with it. Behind a line stands what its branches say: `taken 11 / not 99,988` where what the
/// condition guards has lines of its own, `always` or `never` where that went one way only, else how many
/// outcomes were seen of how many.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount annotate                  your own sources that ran, hottest first
  headcount annotate max              all sources of the program max
  headcount annotate max.c 'max()'    one file; one function
  headcount annotate --asm main       every instruction with its count
  headcount annotate --asm 'libm!sin' the same of a function in a library
  headcount annotate --histogram scaled max.c    a bar beside each line
  headcount annotate --never --context 2         what never ran, in its place
  headcount annotate --columns max.c  each operand of ?:, && and ||, if built with --via source
  headcount annotate --write .bb      beside each source max.c, a max.c.bb with counts")]
pub struct Annotate {
    /// Programs, libraries, source files or functions; `max()` is the function where `max` is a
    /// program too, and `libz!inflate` that of a library. The first NAME may be the
    /// profile instead: a file whose name ends in `.db`.
    #[arg(value_name = "NAME")]
    pub names_wanted: Vec<String>,
    #[command(flatten)]
    pub profile: InputOption,
    #[command(flatten)]
    pub filter: FilterArgument,
    #[command(flatten)]
    pub own: OwnArgument,
    /// Show instructions.
    #[arg(long)]
    pub asm: bool,
    /// Tell also of branches that lead into panics, failed assertions and other checks.
    #[arg(long)]
    pub checks: bool,
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
    /// Look for sources in this folder, and show them even if they are private; may be given several
    /// times.
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

impl Annotate {
    /// The profile, if one is named, and the names of what is to be shown.
    pub fn profile_and_names(&self) -> (Option<PathBuf>, &[String]) {
        let names = self.names_wanted.as_slice();
        let is_profile = |it: &str| it.ends_with(".db") && Path::new(it).is_file();
        match (&self.profile.input, names) {
            (None, [first, rest @ ..]) if is_profile(first) => (Some(first.into()), rest),
            (input, _) => (input.clone(), names),
        }
    }
}

/// Write everything as one HTML page: files, sources, functions, calls, branches, instructions.
///
/// The page is one file that needs no network: open it from disk, attach it to a build, send it to
/// a colleague. It holds the source text it shows, that of libraries only if --only names them; it
/// is readable only by those who may read all of that text.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount html -o report.html
  headcount html -o report.html --runs all     the sum of all runs
  headcount html old.db new.db -o report.html  and what changed
  headcount html -o mine.html --only 'src/*'   some files, or some functions
  headcount html -o small.html --no-asm        without instructions
  headcount html -o more.html --events all     and what functions did")]
pub struct Html {
    #[command(flatten)]
    pub profile: ProfileArgument,
    /// A second, newer profile: the page shows its counts, and what changed since the first.
    #[arg(value_name = "NEW", conflicts_with = "input")]
    pub new: Option<PathBuf>,
    /// Where to write it; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub filter: FilterArgument,
    #[command(flatten)]
    pub own: OwnArgument,
    /// Tell also of branches that lead into panics, failed assertions and other checks.
    #[arg(long)]
    pub checks: bool,
    /// Show what functions did, one column per event, or `all`. Without it, the page has loads, stores,
    /// branches, taken and flops to choose from.
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', value_parser = event_names())]
    pub events: Vec<String>,
    /// Leave out instructions: the page is smaller.
    #[arg(long)]
    pub no_asm: bool,
    /// Look for sources in this folder, and show them even if they are private; may be given several
    /// times.
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
    /// The function (`*` any text, `?` any character); `libz!inflate` is that of a library.
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
/// Sources are found where annotate finds them. Files of libraries, and files whose source is not
/// here, are left out of coverage formats unless --only names them. bolt and llvm-sample are about one
/// module: the program itself, unless --module says another.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount export --format lcov -o lcov.info       then: genhtml lcov.info
  headcount export --format lcov --only 'src/*' --max-count 2147483647
  headcount export --format callgrind -o cg.out     then: kcachegrind cg.out
  headcount export --format pprof -o it.pb.gz       then: go tool pprof it.pb.gz
  headcount export --format folded | flamegraph.pl > flame.svg
  headcount export --format firefox -o it.json      then: profiler.firefox.com, or samply load
  headcount export --format json | jq .totals.executed
  headcount export --format bolt -o it.fdata        then: llvm-bolt -data it.fdata
  headcount export --format sqlite -o it.sqlite     then: sqlite3 it.sqlite .schema
  headcount export --format parquet --runs all -o it.parquet    for DuckDB, Spark and others
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
    #[command(flatten)]
    pub filter: FilterArgument,
    #[command(flatten)]
    pub own: OwnArgument,
    /// Export the samples of `headcount time` instead of the counts, as folded, pprof or firefox.
    #[arg(long)]
    pub time: bool,
    /// With `--format parquet`: what has a row, such as `function,block` [default: function,line].
    #[arg(long, value_enum, value_name = "UNITS", value_delimiter = ',')]
    pub by: Vec<FlatUnit>,
    /// With `--format parquet`: fill in the columns of these events, or of `all`; see `report --events`.
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', value_parser = event_names())]
    pub events: Vec<String>,
    /// With `--format lcov` or `cobertura`: export also branches that lead into panics, failed assertions
    /// and other checks.
    #[arg(long)]
    pub checks: bool,
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

/// List the runs in a profile, or remove some.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount runs
  headcount runs other.db
  headcount runs --json
  headcount runs --remove 3-7     these runs, and what only they counted
  headcount runs --keep 10        all but those of the last ten commands")]
pub struct Runs {
    #[command(flatten)]
    pub profile: ProfileArgument,
    /// Remove these runs: `last`, `all`, or numbers such as `2,5` or `3-7`. The file gets smaller.
    /// Removed runs cannot be restored.
    #[arg(long, value_parser = run_selection, value_name = "RUNS", conflicts_with = "keep")]
    pub remove: Option<RunSelection>,
    /// Remove all runs but those of the last N commands.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub keep: Option<u64>,
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
    /// `last` (all runs of the last command), `all`, or numbers such as `2,5` or `3-7`; several runs
    /// are added up.
    #[arg(long, default_value = "last", value_parser = run_selection, value_name = "RUNS")]
    runs: RunSelection,
    /// Of those, only the phase that began with this mark (`headcount mark`), or `start`, or `paused`.
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// Of a run with `--per-thread`: only what threads with this name (`*` any text) or number counted.
    #[arg(long, value_name = "NAME|TID")]
    thread: Option<String>,
    /// The same for the threads of processes.
    #[arg(long, value_name = "NAME|PID")]
    process: Option<String>,
}

impl RunsArgument {
    /// Which runs are meant.
    pub fn get(&self) -> RunSelection {
        match &self.phase {
            Some(phase) => RunSelection::Phase(Box::new(self.runs.clone()), phase.clone()),
            None => self.runs.clone(),
        }
    }

    /// Which threads are, if not all.
    pub fn threads(&self) -> Option<WantedThreads<'_>> {
        let (thread, process) = (self.thread.as_deref(), self.process.as_deref());
        let is_any = thread.is_some() || process.is_some();
        is_any.then_some(WantedThreads { thread, process })
    }
}

/// What to look at.
#[derive(Clone, Debug, Default, Args)]
pub struct FilterArgument {
    /// Only functions and source files whose names match (`*` any text, `?` any character), or the
    /// module, if nothing else has that name. `libz!inflate` is a function of a library, `libz!` the
    /// whole library. A pattern with a `/` is the end of a file's path, one with a `::` that of a
    /// function's (`Sum::join`), and `sort.c:20-40` are lines: rows of others are of what has code there.
    /// May be given several times.
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Leave out what matches, as for --only. May be given several times.
    #[arg(long, value_name = "PATTERN")]
    pub skip: Vec<String>,
    /// Only modules whose name or path matches.
    #[arg(long, value_name = "PATTERN")]
    pub module: Option<String>,
    /// Only code in this language; `native` is everything that is compiled.
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub language: Option<WrittenIn>,
}

/// A language of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WrittenIn {
    Python,
    Lua,
    Icon,
    Native,
}

impl FilterArgument {
    /// As reports want it.
    pub fn get(&self) -> Filter<'_> {
        Filter {
            only: &self.only,
            skip: &self.skip,
            module: self.module.as_deref(),
            language: self.language.map(|it| match it {
                WrittenIn::Python => Written::In(Language::Python),
                WrittenIn::Lua => Written::In(Language::Lua),
                WrittenIn::Icon => Written::In(Language::Icon),
                WrittenIn::Native => Written::Natively,
            }),
            here: "",
        }
    }
}

/// What the user's own code is.
#[derive(Clone, Debug, Args)]
pub struct OwnArgument {
    /// Your own code: functions, source files and modules whose names match, as for --only. Without this,
    /// it is everything except system modules, system headers, Rust's standard library, and packages
    /// that cargo or Go fetched; if that leaves nothing, it is the program itself, or the package that
    /// its main function is in. May be given several times.
    #[arg(long, value_name = "PATTERN")]
    pub own: Vec<String>,
}

/// How to show names.
#[derive(Clone, Copy, Debug, Args)]
pub struct NamesArgument {
    /// Show mangled function names.
    #[arg(long)]
    pub no_demangle: bool,
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
    Branch,
    Thread,
    Process,
    Syscall,
    Value,
    Token,
}

/// What has one row in a flat table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum FlatUnit {
    Module,
    File,
    Function,
    Line,
    Block,
    Instruction,
    Edge,
    Call,
    Value,
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
#[derive(Clone, Copy, Debug, Args)]
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

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Lines, functions and branches, for genhtml, Codecov, Coveralls and editors.
    Lcov,
    /// Lines, functions and branches, for GitLab, Jenkins and Azure.
    Cobertura,
    /// Every instruction and call site, for KCachegrind and callgrind_annotate.
    Callgrind,
    /// Instructions, blocks and calls, for pprof, without stacks; with --time, samples with stacks.
    Pprof,
    /// Modules, functions and lines as flame graphs have them; with --time, call stacks.
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
    /// Functions, lines, blocks, edges and calls as plain tables, for sqlite3 and for scripts.
    Sqlite,
    /// One flat table with a row for each run, module and unit, so that the counts of many machines
    /// can be queried together in DuckDB, Spark and others.
    Parquet,
    /// Samples with call stacks, for profiler.firefox.com and samply.
    Firefox,
    /// For Icon programs: the five files of Coutant and Griswold (1979). With `-o FILE`: FILE.tokens, FILE.counts,
    /// FILE.samples, FILE.allocation and FILE.pcs.
    IconFiles,
}

/// What `--events` takes for all of them.
pub const ALL_EVENTS: &str = "all";

/// What `--events` takes.
fn event_names() -> PossibleValuesParser {
    let names = Event::ALL.into_iter().map(Event::name);
    PossibleValuesParser::new(names.chain([ALL_EVENTS]))
}

pub(super) fn run_selection(text: &str) -> Result<RunSelection, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
