//! What does counting cost?
//!
//! Real programs, built natively and in several ways that count, run in turns
//! on the same work; a table of slowdowns comes out. `bench/run` is the one
//! command.

mod build;
mod hits;
mod interpreters;
mod machine;
mod measure;
mod optimise;
mod sampling;
mod startup;
mod table;
mod tally;
mod tracers;
mod variant;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use headcount_ground::program::Program;
use headcount_ground::real::{self, Amount};
use headcount_ground::registry::Sources;
use headcount_ground::workers::{self, Progress};

use measure::{Subject, Times};
use tracers::Method;
use variant::{Engine, Tools, Variant};

/// Measures what counting costs: headcount beside gcov, clang's counters and
/// valgrind, on real programs, in one run.
#[derive(Parser)]
#[command(name = "bench/run")]
struct Options {
    /// How often everything is run
    #[arg(long, value_name = "N", default_value_t = 9)]
    rounds: usize,
    /// Only these programs
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    only: Vec<String>,
    /// The headcount to be measured
    #[arg(
        long,
        value_name = "PATH",
        env = "HEADCOUNT",
        default_value = "target/release/headcount"
    )]
    headcount: PathBuf,
    /// Measure `headcount run` with all modules, too, with this engine; breakpoints get a tenth of
    /// the work
    #[arg(long, value_enum, value_name = "ENGINE")]
    engine: Option<Engine>,
    /// Leave valgrind out: callgrind takes fifty times as long as the program
    #[arg(long)]
    no_valgrind: bool,
    /// Leave clang out
    #[arg(long)]
    no_clang: bool,
    #[arg(long, value_name = "COMPILER", default_value = "gcc")]
    gcc: String,
    #[arg(long, value_name = "COMPILER", default_value = "g++")]
    gxx: String,
    #[arg(long, value_name = "COMPILER", default_value = "clang")]
    clang: String,
    #[arg(long, value_name = "COMPILER", default_value = "clang++")]
    clangxx: String,
    /// Where to fetch, build and run
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    work: PathBuf,
    /// Print every time taken, as JSON
    #[arg(long)]
    json: bool,
    /// Measure instead what one hit of a breakpoint costs (`headcount run`), beside the breakpoints
    /// and single steps of old
    #[arg(long)]
    hits: bool,
    /// Measure instead what it takes to start: `headcount run` of programs that do little, from `true`
    /// to `rustc`, with sizes of profile and cache
    #[arg(long)]
    startup: bool,
    /// Measure instead programs that were optimised with exported counts, by llvm-bolt and by clang,
    /// beside the plain ones
    #[arg(long)]
    optimise: bool,
    #[arg(long, value_name = "PROGRAM", default_value = "llvm-bolt-16")]
    bolt: String,
    /// Measure instead what samples cost: `headcount time` at two rates, `headcount run --time`, and perf
    #[arg(long)]
    time: bool,
    /// Measure instead what it costs to look at a value: `headcount run --tally` by both engines, gdb and
    /// bpftrace, in nanoseconds a hit
    #[arg(long)]
    tally: bool,
    /// Measure instead what it costs to count what an interpreter runs: ten programs in Python, beside Python's
    /// own tracer, and coverage.py if it is installed
    #[arg(long)]
    python: bool,
    /// The same with ten programs in Lua, beside hooks in Lua that count lines or instructions
    #[arg(long)]
    lua: bool,
    /// How `--time` starts a program: where to write what it took, program, arguments
    #[arg(long, hide = true, num_args = 2.., allow_hyphen_values = true, value_name = "WORD")]
    spend: Vec<OsString>,
    /// How `--hits` starts a tracer of its own: method, address, program, argument
    #[arg(long, hide = true, num_args = 4, value_name = "WORD")]
    trace: Vec<String>,
    /// End with status 1 if a promise about headcount's cost is broken
    #[arg(long)]
    judge: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("bench/run: {problem:#}");
            ExitCode::from(2)
        }
    }
}

/// False if somebody wanted a judgement and it is bad.
fn run(options: &Options) -> Result<bool> {
    if let [method, address, program, argument] = options.trace.as_slice() {
        let method = Method::from_str(method, false).map_err(anyhow::Error::msg)?;
        let hits = tracers::count(method, address.parse()?, Path::new(program), argument)?;
        println!("{hits}");
        return Ok(true);
    }
    if !options.spend.is_empty() {
        return sampling::spend(&options.spend);
    }
    std::fs::create_dir_all(&options.work)?;
    let work = options.work.canonicalize()?;
    let headcount = options.headcount.canonicalize().with_context(|| {
        format!(
            "{}: cargo build --release -p headcount",
            options.headcount.display()
        )
    })?;
    let tools = tools(options, &headcount);
    if options.hits {
        let kept = hits::run(&work, &headcount, tools.gcc, options.rounds)?;
        return Ok(!options.judge || kept);
    }
    if options.startup {
        startup::run(&work, &tools, &options.only, options.rounds)?;
        return Ok(true);
    }
    let languages = [
        (options.python, &interpreters::PYTHON),
        (options.lua, &interpreters::LUA),
    ];
    if let Some((_, language)) = languages.into_iter().find(|it| it.0) {
        let kept = interpreters::run(language, &work, &tools, &options.only, options.rounds)?;
        return Ok(!options.judge || kept);
    }
    let subjects = subjects(options, &work)?;
    if options.optimise {
        optimise::run(&work, &tools, &options.bolt, &subjects, options.rounds)?;
        return Ok(true);
    }
    if options.time {
        build_all(&work, &tools, &subjects, &[Variant::Native])?;
        sampling::run(&work, &tools, &subjects, options.rounds)?;
        return Ok(true);
    }
    if options.tally {
        build_all(&work, &tools, &subjects, &[Variant::Native])?;
        let kept = tally::run(&work, &tools, &subjects, options.rounds)?;
        return Ok(!options.judge || kept);
    }
    let variants = variants(options);
    build_all(&work, &tools, &subjects, &variants)?;
    let times = measure_all(&work, &tools, &subjects, &variants, options.rounds)?;
    let machine = machine::facts(&tools);
    let promises = table::promises(&subjects, &times);
    if options.json {
        println!(
            "{:#}",
            table::to_json(&machine, &subjects, &times, &variants)
        );
    } else {
        show(
            &machine,
            &subjects,
            &times,
            &variants,
            options.rounds,
            &promises,
        );
    }
    Ok(!options.judge || promises.iter().all(|(_, kept)| *kept))
}

fn tools<'a>(options: &'a Options, headcount: &'a Path) -> Tools<'a> {
    Tools {
        headcount,
        engine: options.engine,
        gcc: &options.gcc,
        gxx: &options.gxx,
        clang: &options.clang,
        clangxx: &options.clangxx,
    }
}

fn variants(options: &Options) -> Vec<Variant> {
    let is_brief = options.engine == Some(Engine::Breakpoint);
    let wanted = |variant: &Variant| match variant {
        Variant::BriefNative => !options.no_valgrind || is_brief,
        Variant::ValgrindNone | Variant::Callgrind => !options.no_valgrind,
        Variant::Run => options.engine.is_some() && !is_brief,
        Variant::Calls => options.engine == Some(Engine::Detour),
        Variant::BriefRun => is_brief,
        Variant::ClangNative | Variant::ClangProfile => !options.no_clang,
        _ => true,
    };
    variant::ALL.into_iter().filter(wanted).collect()
}

/// zlib and LZ4 are checked but not measured: bzip2 and zstd say what they would say.
fn subjects(options: &Options, work: &Path) -> Result<Vec<Subject>> {
    let sources = Sources::fetch(work)?;
    let given = |amount| -> Result<Vec<Program>> {
        let mut programs = real::programs(&sources, amount)?;
        programs.extend(real::our_own(amount));
        Ok(programs)
    };
    let pairs = given(Amount::Measure)?
        .into_iter()
        .zip(given(Amount::Brief)?);
    let wanted = pairs.filter(|(program, _)| match options.only.as_slice() {
        [] => !matches!(program.name.as_str(), "zlib" | "lz4"),
        only => only.contains(&program.name),
    });
    let subjects: Vec<Subject> = wanted
        .map(|(measure, brief)| subject(measure, brief))
        .collect();
    if subjects.is_empty() {
        bail!("no such program: {}", options.only.join(", "));
    }
    Ok(subjects)
}

fn subject(measure: Program, brief: Program) -> Subject {
    Subject {
        name: measure.name.clone(),
        language: measure.language,
        is_threaded: measure
            .libraries
            .iter()
            .any(|library| library == "-lpthread"),
        measure,
        brief,
    }
}

fn build_all(work: &Path, tools: &Tools, subjects: &[Subject], variants: &[Variant]) -> Result<()> {
    let builds = variants
        .iter()
        .filter(|variant| variant.built_as() == **variant);
    let jobs: Vec<(Variant, &Subject)> = builds
        .flat_map(|variant| subjects.iter().map(move |subject| (*variant, subject)))
        .filter(|(variant, subject)| variant.applies_to(subject.language))
        .collect();
    let mut progress = Progress::new("bench/run", jobs.len());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let outcomes = workers::share_out(
        &jobs,
        processors,
        |(variant, subject)| build::build(work, tools, *variant, &subject.measure),
        |done, _| progress.show(done, "built"),
    );
    outcomes.into_iter().collect()
}

fn measure_all(
    work: &Path,
    tools: &Tools,
    subjects: &[Subject],
    variants: &[Variant],
    rounds: usize,
) -> Result<Times> {
    let runs = |subject: &Subject| -> usize {
        let applicable = variants.iter().filter(|it| it.applies_to(subject.language));
        applicable.map(|variant| variant.rounds(rounds)).sum()
    };
    let mut progress = Progress::new("bench/run", subjects.iter().map(runs).sum());
    let mut done = 0;
    measure::measure(work, tools, subjects, variants, rounds, |_, _, _| {
        done += 1;
        progress.show(done, "run");
    })
}

fn show(
    machine: &[(String, String)],
    subjects: &[Subject],
    times: &Times,
    variants: &[Variant],
    rounds: usize,
    promises: &[(String, bool)],
) {
    for (name, fact) in machine {
        println!("{name}: {fact}");
    }
    println!("\n{}", table::text(subjects, times, variants));
    println!(
        "Times are user+sys, medians of {rounds} rounds in turns, -O2; all other numbers are\n\
         how many times as long as the same compiler's native build. The mean is over the\n\
         programs with one thread. callgrind runs once, on a tenth of the work, and so does\n\
         headcount run with breakpoints; valgrind none runs three times.\n"
    );
    if let Some(traps) = table::traps(subjects, times) {
        println!("{traps}\n");
    }
    for (promise, kept) in promises {
        println!("{}: {promise}", if *kept { "kept" } else { "BROKEN" });
    }
}
