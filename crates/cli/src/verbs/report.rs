//! Print counts as a table.

use crate::args::{ALL_EVENTS, By, Format, Report, TableArgument};
use crate::module_files::Files;
use crate::sources::Sources;
use crate::{output, progress, source_flows, talk};
use anyhow::bail;
use headcount_model::{Event, ThreadCounts};
use headcount_profile::{Loaded, Profile, RunSelection};
use headcount_report::{
    self as report, CallsOf, Direction, ExactCalls, Gate, Only, Own, Request, Unit, WantedEvents,
    annotate, covered, thousands,
};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::ExitCode;

/// What the threads of the chosen runs counted, if rows tell of threads.
fn threads(profile: &Profile, runs: &RunSelection, by: By) -> anyhow::Result<Threads> {
    let mut threads = Threads::default();
    if matches!(by, By::Thread | By::Process) {
        let found = profile.thread_counts(runs)?;
        threads.runs = found.len();
        threads.counts = found.into_iter().filter_map(|it| it.1).collect();
    }
    Ok(threads)
}

/// What threads counted.
#[derive(Default)]
pub struct Threads {
    /// In so many runs.
    runs: usize,
    /// Those that were counted by thread.
    counts: Vec<ThreadCounts>,
}

impl Threads {
    fn note(&self) -> Option<String> {
        let known = self.counts.len();
        (known > 0 && known < self.runs).then(|| {
            format!(
                "What threads counted is known of {known} of these {} runs only.",
                self.runs
            )
        })
    }
}

/// What is wanted of a profile besides a table.
#[derive(Default)]
pub struct Wish<'a> {
    /// Where it is: sources may be nearby.
    pub profile: Option<&'a Path>,
    /// What threads counted.
    pub threads: Threads,
    /// Only what never ran.
    pub never: bool,
    /// Why things take long.
    pub why: bool,
    /// The time in libraries, by one's own lines.
    pub charge_back: bool,
    /// What became of an interpreter's storage.
    pub storage: bool,
    /// How much must have run.
    pub gate: Gate,
}

pub fn run(args: &Report) -> anyhow::Result<ExitCode> {
    let named = args.profile.file.as_ref().or(args.profile.input.as_ref());
    let (profile, runs) = super::open_chosen(named, &args.runs)?;
    let loaded = super::load_from(&profile, &runs)?;
    let wish = Wish {
        threads: threads(&profile, &runs, args.table.by)?,
        profile: named.map(|it| it.as_path()),
        never: args.never,
        why: args.why,
        charge_back: args.charge_back,
        storage: args.storage,
        gate: args.gate.get()?,
    };
    show(loaded, &args.table, &wish)
}

/// Prints counts that were read.
pub fn show(loaded: Loaded, args: &TableArgument, wish: &Wish<'_>) -> anyhow::Result<ExitCode> {
    // The process is about to end: freeing a large profile block by block takes a tenth of the time of a report.
    let mut loaded = ManuallyDrop::new(loaded);
    let demangle = !args.names.no_demangle;
    let only = super::only(args.filter.get(), &[&loaded], demangle)?;
    if matches!(args.by, By::Line | By::Branch) || !wish.gate.is_open() {
        let sources = Sources::new(&loaded, &args.source, wish.profile);
        source_flows::follow(&mut loaded, &sources, |it| only.may_be_in(it));
    }
    let is_text = args.format.get() == Format::Text;
    // Who names what to show sees all of it.
    let is_part = is_text && !args.all && only.names_nothing();
    let is_charged = wish.charge_back && !args.own.own.is_empty();
    let own = (is_part || is_charged).then(|| super::own(&args.own, &loaded, demangle));
    let samples = super::samples(&loaded);
    let time = super::time(&loaded);
    let exact = ExactCalls::new(&loaded.counted, &loaded.calls);
    let mut charges = loaded.runtimes.iter().flat_map(|it| &it.charges);
    let charges_tokens = wish.charge_back && !is_charged && charges.next().is_some();
    let charges_time = wish.charge_back && !charges_tokens && exact.is_none();
    if wish.storage && loaded.runtimes.iter().all(|it| it.regions.is_empty()) {
        bail!("{}", super::NO_STORAGE);
    }
    if (wish.why || charges_time) && time.is_none() {
        bail!("{}", super::NO_TIME);
    }
    has_threads(args.by, &wish.threads, &only, time.is_some())?;
    if matches!(args.by, By::Syscall) {
        has_system_calls(&loaded, &only, wish)?;
    }
    if matches!(args.by, By::Value) && loaded.values.is_empty() {
        bail!("{}", super::NO_VALUES);
    }
    if args.checks && !matches!(args.by, By::Branch) {
        bail!("--checks works only with --by branch");
    }
    let calls_of = calls_of(args, &loaded);
    let by = match (wish.charge_back, &calls_of) {
        _ if wish.storage => Unit::Storage,
        (true, _) if charges_tokens => Unit::TokenCharge,
        (true, _) if exact.is_some() => Unit::CallCharge,
        (true, _) => Unit::Charge,
        (false, Some(_)) => Unit::CallCost,
        (false, None) => unit(args.by),
    };
    let files = Files::default();
    let sources = Sources::new(&loaded, &args.source, wish.profile);
    let source = |file: &str| sources.quietly(file).map(|it| it.to_vec());
    let events = events(&args.events, by)?;
    let is_timed = only.may_be_native();
    let request = Request {
        by,
        sort: args.sort.clone(),
        top: args.top,
        only,
        never: wish.never,
        own: own.as_ref(),
        joins: is_text && !args.all,
        demangle,
        decode: &super::decode,
        transfers: &headcount_x86::transfers,
        pointers: &|module| files.pointers(module),
        inlined_names: &|module| files.inlined_names(module),
        calls_of: calls_of.as_ref(),
        with_checks: args.checks,
        source: Some(&source),
        // What never ran took no time, and samples are of machine code.
        time: time.as_ref().filter(|_| !wish.never && is_timed),
        samples: &samples,
        calls: exact.as_ref().filter(|_| !wish.never),
        system_calls: Some(&loaded.system_calls),
        threads: &wish.threads.counts,
        values: &loaded.values,
        runtimes: &loaded.runtimes,
        whole_runs: super::whole_runs(&loaded),
        why: wish.why,
        events: WantedEvents::new(by, &events, &super::events),
    };
    let runs = super::summaries(&loaded);
    let mut notes = super::notes(&loaded);
    notes.extend(super::time_note(&loaded).filter(|_| time.is_some() && !wish.never));
    notes.extend(wish.threads.note());
    let mut report = progress::during("making the report", || {
        report::Report::new(&loaded.counted, runs, notes, &request)
    })?;
    let to = args.output.as_deref();
    // Rows of tokens have source text in every format.
    let keep_private = || output::keep_from(to, sources.kept_from());
    match args.format.get() {
        Format::Text => {
            if !args.all {
                report.narrow_refusals(&loaded.counted, &request);
            }
            if is_part && args.top.is_none() {
                report::text::fit(&mut report, output::screen(to), output::terminal_width(to));
            }
            report.add_source(&source);
            keep_private()?;
            let text = report::text::write(&report, output::terminal_width(to));
            output::page(to, &text)?;
        }
        Format::Json => {
            keep_private()?;
            output::write_exact(to, &report::json::write(&report))?;
        }
        Format::Csv => {
            keep_private()?;
            output::write_exact(to, &report::csv::write(&report.table))?;
            say_what_csv_cannot(&report);
        }
    }
    let complaints = match wish.gate.is_open() {
        true => Vec::new(),
        false => {
            // Of what is named, everything is meant.
            let needs_own = own.is_none() && request.only.names_nothing();
            let made = needs_own.then(|| super::own(&args.own, &loaded, demangle));
            complaints(
                &wish.gate,
                &loaded,
                &request.only,
                own.as_ref().or(made.as_ref()),
            )?
        }
    };
    complaints.iter().for_each(talk::say);
    Ok(match complaints.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// Fails where threads are not told apart as they are asked for.
fn has_threads(by: By, threads: &Threads, only: &Only, has_time: bool) -> anyhow::Result<()> {
    let name = unit(by).name();
    match by {
        By::Thread if threads.counts.is_empty() && !has_time => {
            bail!("{}; and {}", super::NO_THREADS, super::NO_TIME)
        }
        By::Process if threads.counts.is_empty() => bail!("{}", super::NO_THREADS),
        By::Thread | By::Process if !threads.counts.is_empty() && !only.names_nothing() => bail!(
            "--by {name} is about all that threads executed; --thread NAME tells functions of one"
        ),
        _ => Ok(()),
    }
}

/// Fails where system calls are not told apart as they are asked for.
fn has_system_calls(loaded: &Loaded, only: &Only, wish: &Wish<'_>) -> anyhow::Result<()> {
    super::has_counts(loaded)?;
    if !only.names_nothing() {
        bail!(
            "--by syscall is about whole runs: --only, --skip and --module cannot be combined with it"
        );
    }
    if wish.never || wish.why || wish.charge_back {
        bail!("--by syscall has what was called, and neither --never, --why nor --charge-back");
    }
    Ok(())
}

/// What has not run enough, in sentences: of the user's own files, or of what is named.
fn complaints(
    gate: &Gate,
    loaded: &Loaded,
    only: &Only,
    own: Option<&Own>,
) -> anyhow::Result<Vec<String>> {
    let is_meant = |file: &str| own.is_none_or(|own| own.library_of_file(file).is_none());
    Ok(gate.complaints(&covered(&loaded.counted, only, &is_meant)?))
}

/// Whose calls are wanted, if any.
fn calls_of(args: &TableArgument, loaded: &Loaded) -> Option<CallsOf> {
    let (name, direction) = match (&args.callers, &args.callees) {
        (Some(name), _) => (name, Direction::Callers),
        (None, Some(name)) => (name, Direction::Callees),
        (None, None) => return None,
    };
    Some(CallsOf {
        name: name.clone(),
        functions: annotate::functions(&loaded.counted, name),
        direction,
    })
}

/// What `--events` means for a unit.
fn events(names: &[String], by: Unit) -> anyhow::Result<Vec<Event>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    match by {
        Unit::Thread
        | Unit::Process
        | Unit::Charge
        | Unit::CallCharge
        | Unit::TokenCharge
        | Unit::Storage
        | Unit::Syscall
        | Unit::Value
        | Unit::Token => {
            bail!("--events is about code, and a {} is none", by.name())
        }
        Unit::CallCost => {
            bail!("--events cannot be combined with --callers or --callees; use --by call")
        }
        Unit::Branch => bail!("--events cannot be combined with --by branch; use --by line"),
        _ => (),
    }
    let events = super::named_events(names);
    let is_all = names.iter().any(|it| it == ALL_EVENTS);
    let of_blocks = events.iter().find(|it| !it.is_of_edges() && !is_all);
    match of_blocks.filter(|_| by == Unit::Edge) {
        Some(event) => bail!(
            "edges have the events taken and backward; --by block has `{}`",
            event.name()
        ),
        None => Ok(events),
    }
}

fn unit(by: By) -> Unit {
    match by {
        By::Module => Unit::Module,
        By::File => Unit::File,
        By::Function => Unit::Function,
        By::Line => Unit::Line,
        By::Block => Unit::Block,
        By::Instruction => Unit::Instruction,
        By::Edge => Unit::Edge,
        By::Call => Unit::Call,
        By::Branch => Unit::Branch,
        By::Thread => Unit::Thread,
        By::Process => Unit::Process,
        By::Syscall => Unit::Syscall,
        By::Value => Unit::Value,
        By::Token => Unit::Token,
    }
}

/// A CSV file has no place for what was not counted.
fn say_what_csv_cannot(report: &report::Report) {
    match report.refused.len() {
        0 => (),
        refused => talk::say(format!(
            "not counted: {}; the text and JSON reports say what and why",
            thousands(refused as u64)
        )),
    }
    report.notes.iter().for_each(talk::say);
}
