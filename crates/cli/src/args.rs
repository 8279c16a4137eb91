//! What can be typed. `--help`, the manual pages and the completions are all made of this.

mod comparing;
mod live;
mod reading;

pub use comparing::*;
pub use live::*;
pub use reading::*;

use clap::{Args, Parser, Subcommand, ValueEnum};
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
                  `headcount help VERB` says more about a verb."
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
    Icon(Icon),
    Time(Time),
    Stat(Stat),
    Attach(Attach),
    Query(Query),
    Watch(Watch),
    Mark(Mark),
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
    Man(Man),
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
/// Everything that runs is counted: the program, its libraries, its threads, and its children
/// and whatever programs they run. The exit status is the program's; 125 if it cannot be counted, 126 if it
/// cannot be run, 127 if it is not found. If its counts cannot be stored, they are kept for
/// `headcount collect`.
///
/// When the program has ended, processes that it left behind go on uncounted, unless --wait is
/// given. Ctrl-C reaches the program, not headcount: a program that ignores it goes on, as it would without
/// headcount. SIGTERM, SIGINT, SIGQUIT and SIGHUP that somebody sends to headcount are passed on to the
/// program; if it goes on all the same, the next one (a second later or more) makes headcount let
/// go of it and end, and one after that ends both.
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
    /// Sample where the time goes as well, as `headcount time` does. Counting takes time, too, and
    /// code that calls many small functions is slowed down most: shares are those of the counted program.
    #[arg(long)]
    pub time: bool,
    /// Show a live table meanwhile, as `headcount watch` does, on the terminal. The program's own
    /// output must go elsewhere; the program gets no input from the terminal.
    #[arg(long)]
    pub watch: bool,
    /// Stop exactly when a thread has reached its N-th event, wherever that is: `instructions=N`, or
    /// `calls(FUNCTION)=N` for the N-th time that a function is entered. Each thread counts its own,
    /// from its start. A program that does the same in every run stops at the same instruction in
    /// every run.
    #[arg(long, value_name = "EVENT=N", conflicts_with_all = ["time", "watch", "limit"])]
    pub until: Option<Until>,
    /// What to do then: let go of the program, which stays stopped there (`stop`; a debugger can
    /// attach, and `kill -CONT` makes it go on); write a core file and go on (`core`); start gdb on it
    /// (`gdb`); or keep counting and, when it ends, print what it had executed up to there (`report`), which
    /// `report --phase start` shows again.
    #[arg(
        long,
        value_name = "ACTION",
        default_value = "stop",
        requires = "until"
    )]
    pub then: Then,
    /// Let a program that is only asked for a list of its tests run uncounted.
    #[arg(long, hide = true)]
    pub no_lists: bool,
}

/// Translate an Icon program, run it and count it.
///
/// The program is translated by `icont`, into a temporary folder, and run by `iconx`, both of which must be
/// installed. Each of its tokens is counted: `headcount report --by token`, `headcount annotate`. The exit status is
/// the program's; 125 if it cannot be translated or counted.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount icon prog.icn one two < input
  headcount icon --time prog.icn && headcount report --charge-back    the runtime's time, by token")]
pub struct Icon {
    #[command(flatten)]
    pub counting: Counting,
    /// Sample where the time goes as well: by token, and in which routine of the runtime.
    #[arg(long)]
    pub time: bool,
    /// The program's source.
    #[arg(value_name = "FILE.icn")]
    pub program: PathBuf,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// What `--until` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Until {
    /// What is counted down.
    pub event: UntilEvent,
    /// How many of them.
    pub times: u64,
}

/// An event that can be counted down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UntilEvent {
    /// Instructions.
    Instructions,
    /// Entries of functions with this name.
    Calls(String),
}

impl std::str::FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = "say instructions=N or calls(FUNCTION)=N";
        let (event, times) = text.rsplit_once('=').ok_or(usage)?;
        let called = event
            .strip_prefix("calls(")
            .and_then(|it| it.strip_suffix(')'));
        let event = match (event, called) {
            ("instructions", _) => UntilEvent::Instructions,
            (_, Some(name)) if !name.is_empty() => UntilEvent::Calls(name.to_owned()),
            _ => return Err(format!("{event} cannot be counted down: {usage}")),
        };
        let digits = times.replace(['_', ','], "");
        match digits.parse() {
            Ok(0) | Err(_) => Err(format!("{times} is no number of events from 1 on")),
            Ok(times) => Ok(Self { event, times }),
        }
    }
}

/// What to do when a program has come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Then {
    /// Leave it stopped.
    Stop,
    /// Write a core file, and go on.
    Core,
    /// Start gdb.
    Gdb,
    /// Keep counting; at the end, print what it had executed by then.
    Report,
}

/// Run a program at its own speed and sample where its time goes.
///
/// A clock interrupts each thread while it is on a processor, and the kernel notes where it was; the
/// program is neither stopped nor changed. The samples go into the profile; reports show them beside
/// the counts of the same command, so that a line that takes long can be told from one that runs
/// often. The exit status is the program's; 125 if it cannot be sampled, 126 if it cannot be run, 127
/// if it is not there.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount time -- ./max 3 1 2
  headcount run -- ./max 3 1 2 && headcount report     counts and time together
  headcount time --pid 1234 --for 10s                  one that already runs")]
pub struct Time {
    /// The profile to add to [default: headcount.db].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Samples per second of each thread's processor time; each costs the program 6 to 10
    /// microseconds.
    #[arg(short = 'F', long, value_name = "HERTZ", default_value_t = crate::timed::FREQUENCY,
          value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub frequency: u32,
    /// Bytes of each stack that are copied to find callers.
    #[arg(long, value_name = "BYTES", default_value_t = crate::timed::STACK_SIZE,
          value_parser = clap::value_parser!(u32).range(64..=65528))]
    pub stack_size: u32,
    /// Sample a program that already runs, until it ends or until Ctrl-C.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<i32>,
    /// Stop sampling after this time, such as `10s`, `500ms` or `2m`.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// When the program has ended, wait for the processes that it left behind, and sample them, too.
    #[arg(long, conflicts_with = "pid")]
    pub wait: bool,
    /// Say nothing when all goes well.
    #[arg(short, long)]
    pub quiet: bool,
    /// The program and its arguments.
    #[arg(
        trailing_var_arg = true,
        required_unless_present = "pid",
        value_name = "PROGRAM"
    )]
    pub command: Vec<OsString>,
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
  headcount attach --children 1234             a server and its workers
  headcount attach --unit function --for 500ms 1234
  headcount attach --only 'handle_*' 1234")]
pub struct Attach {
    #[command(flatten)]
    pub counting: Counting,
    /// Let go after this time, such as `10s`, `500ms` or `2m`.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Count its children, and theirs, that already run, too. (Those that are made later are always
    /// counted.)
    #[arg(long)]
    pub children: bool,
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
    /// When the program has ended, wait for the processes that it left behind, and count them to
    /// their end.
    #[arg(long)]
    pub wait: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// What to count, and where to put it.
#[derive(Clone, Debug, Args)]
pub struct Counting {
    /// What this run has in common with others of the same command.
    #[arg(long, hide = true, value_name = "KEY")]
    pub batch: Option<String>,
    /// The profile to add to [default: headcount.db; for stat, none].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How counters get into the program: `detour` runs copies of its functions that count, and is
    /// fast; `breakpoint` stops it at every block that is counted, and is for programs that use the
    /// gs register themselves [default: detour, or breakpoint with --limit].
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub engine: Option<EngineName>,
    /// Whose programs to count, line by line, when an interpreter runs them: CPython 3.11 to 3.13, Lua 5.4
    /// and Icon 9.4 are known.
    /// `none` counts the interpreter alone [default: all that are known].
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub language: Vec<LanguageName>,
    /// What to count: every block (and with it every instruction and line), only the blocks that
    /// begin a line, or only entries of functions. With breakpoints, fewer are faster.
    #[arg(long, value_enum, default_value_t = CountUnit::Block, value_name = "UNIT")]
    pub unit: CountUnit,
    /// Count only functions and source files whose names match (`*` any text, `?` any character), or
    /// lines such as `sort.c:20-40`, or modules such as `libz.so.1`. `libz!inflate` is a function of
    /// a library, `libz!` the whole library.
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Do not count what matches, as for --only.
    #[arg(long, value_name = "PATTERN")]
    pub skip: Vec<String>,
    /// Which modules to count: `main` is the program itself, `all` its libraries too; or a
    /// pattern for paths [default: all, or main with breakpoints].
    #[arg(long, value_name = "MODULES")]
    pub modules: Option<String>,
    /// Also find out what every call costs: the instructions executed by the callee and all that it
    /// calls. `report --by call`, `--callers`, `--callees`, `--charge-back` and the exports then tell
    /// it exactly; without, they estimate it.
    #[arg(long)]
    pub calls: bool,
    /// Also keep what each thread executed: `report --by thread` and `--by process` tell it, and reports
    /// with `--thread NAME` or `--process PID` are about some threads alone.
    #[arg(long)]
    pub per_thread: bool,
    #[command(flatten)]
    pub tallies: Tallies,
    /// Stop counting a unit after N executions; the report then says "at least". Only with breakpoints.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Say nothing when all goes well.
    #[arg(short, long)]
    pub quiet: bool,
}

/// What to count by value.
#[derive(Clone, Debug, Default, Args)]
pub struct Tallies {
    /// Count by value: `PLACE(EXPRESSION)`, such as `malloc(arg1)`, `read(ret)`,
    /// `parse.c:120(rax & 0xff)` or `malloc(log2(arg1)) by caller`; `sum EXPRESSION in PLACE` adds up.
    /// `report --by value` tells what was found. May be given several times.
    #[arg(long, value_name = "WHAT")]
    pub tally: Vec<String>,
    /// Count where every indirect call and jump went, by name.
    #[arg(long)]
    pub targets: bool,
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

/// A language whose programs are counted when they are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LanguageName {
    Python,
    Lua,
    Icon,
    None,
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
/// workspace ran in each and in all. The exit status is cargo's, or 1 if
/// cargo succeeds and less ran than `--fail-under-lines` or `--fail-under-functions` demands.
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
    #[command(flatten)]
    pub gate: GateArgument,
    /// `test`, `run`, `bench` or `nextest run`, and what else cargo is to be told.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
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
    #[arg(trailing_var_arg = true, required = true, value_name = "COMPILER")]
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
    /// The command that preprocesses a file; the file's name is put behind it [default: what the
    /// environment variable CPP says, or else `cc -E`].
    #[arg(long, value_name = "CMD")]
    pub cpp: Option<String>,
    /// Do not preprocess, so that macros stay readable. What they stand for is not counted, and
    /// reports say so. A file that can only be read preprocessed is preprocessed all the same.
    #[arg(long)]
    pub no_cpp: bool,
    /// Give every block a counter, even where its count follows from others.
    #[arg(long)]
    pub every_block: bool,
}

/// Take the counts of programs built with `headcount cc` into the profile.
///
/// The reading verbs do this on their own for the folder that is named like the profile:
/// `headcount.counts` for `headcount.db`. Counts of a program that is still running, or that left a core dump, are there too; so
/// are those of a `headcount run` that was killed.
#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  headcount collect                       what is in headcount.counts
  headcount collect /tmp/counts -o my.db
  headcount collect --running 1234        a program that has not ended yet
  headcount collect --core core.1234 --program ./max
  headcount collect --raw counters.bin --program kernel.elf")]
pub struct Collect {
    /// Folders with counter files; without any, `headcount.counts` and the one named like the profile.
    #[arg(value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// The profile to add to [default: headcount.db].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Read the counts of the process with this number, which goes on running.
    #[arg(long, value_name = "PID")]
    pub running: Option<u32>,
    /// Read counts from a core dump, of a process or (ELF) of a whole machine.
    #[arg(long, value_name = "FILE")]
    pub core: Option<PathBuf>,
    /// Read counts that a program compiled with -ffreestanding wrote out by itself: all bytes from
    /// `__start_headcount_memory` to `__stop_headcount_memory`.
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
    /// The program whose counts these are, if it is no longer where it was, or was never a process.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Leave the counter files where they are.
    #[arg(long)]
    pub keep: bool,
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

/// What `run` and `attach` count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CountUnit {
    Block,
    Line,
    Function,
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
}
