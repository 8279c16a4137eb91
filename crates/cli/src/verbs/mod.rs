//! One file a verb.

pub mod annotate;
pub mod attach;
pub mod cargo;
pub mod cc;
pub mod collect;
pub mod completions;
pub mod csource;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod html;
pub mod icon;
pub mod man;
pub mod mark;
pub mod merge;
pub mod query;
pub mod report;
pub mod run;
pub mod runs;
pub mod stat;
pub mod time;
pub mod watch;

use crate::args::{ALL_EVENTS, OwnArgument, RunsArgument};
use crate::recovered::VALUES;
use crate::{progress, readings, talk, threads_alone};
use anyhow::bail;
use headcount_model::{
    ChargePlace, Counted, Event, Frame, InstructionEvents, LinkAddr, Samples, Span,
};
use headcount_profile::{Loaded, Profile, RunInfo, RunSelection, Work};
use headcount_report::time::Time;
use headcount_report::{
    Filter, Only, Own, Pattern, Request, RunSummary, Tallied, Unit, demangle, no_module_called,
    nothing_called,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The profile where the user names none.
pub const DEFAULT_PROFILE: &str = "headcount.db";

/// The status for an error that says that a program cannot be run.
pub fn cannot_run(error: &anyhow::Error) -> Option<u8> {
    use headcount_monitor::Error;
    use headcount_sampling::Error as NotSampled;
    if let Some(error) = error.downcast_ref::<cc::CannotRun>() {
        return Some(error.status);
    }
    match error.downcast_ref::<NotSampled>() {
        Some(NotSampled::NotFound(_)) => return Some(127),
        Some(NotSampled::CannotRun(..)) => return Some(126),
        _ => (),
    }
    match error.downcast_ref::<Error>()? {
        Error::NotFound(_) => Some(127),
        Error::CannotRun(..) => Some(126),
        _ => None,
    }
}

/// Opens the profile the user named, or the default one, into which counts that lie about are
/// taken first.
fn open(named: Option<&PathBuf>) -> anyhow::Result<Profile> {
    let path = named.map_or(Path::new(DEFAULT_PROFILE), PathBuf::as_path);
    collect::collect_pending(path);
    Ok(progress::during("recovering counts", || {
        readings::open(path)
    })?)
}

/// What to do where there are no samples.
const NO_TIME: &str = "there are no samples; take some of the same command with `headcount time`";

/// What to do where there are no counts.
pub const NO_COUNTS: &str = "there are samples, but no counts; `headcount run` counts the same command, \
                             and `headcount report` shows where the time went";

/// What to do where there are no values.
const NO_VALUES: &str = "nothing was counted by value: `headcount run --tally 'malloc(arg1)' -- PROGRAM` \
                         does, and `--targets` tells where indirect calls went";

/// What to do where no storage was measured.
const NO_STORAGE: &str = "no interpreter's storage was measured: `headcount run -- PROGRAM` does that for Icon \
                          programs";

/// What to do where threads were not counted.
pub const NO_THREADS: &str =
    "nothing was counted by thread: `headcount run --per-thread -- PROGRAM` does";

/// Opens a profile as [`open`] does and adds up the chosen runs, which were counted.
fn load(named: Option<&PathBuf>, runs: &RunsArgument) -> anyhow::Result<Loaded> {
    let (profile, runs) = open_chosen(named, runs)?;
    load_counts(&profile, &runs)
}

/// The same, from a profile that is open.
fn load_counts(profile: &Profile, runs: &RunSelection) -> anyhow::Result<Loaded> {
    let loaded = load_from(profile, runs)?;
    has_counts(&loaded)?;
    Ok(loaded)
}

/// Fails if runs were only timed.
fn has_counts(loaded: &Loaded) -> anyhow::Result<()> {
    if loaded.runs.is_empty() && !loaded.timed.is_empty() {
        bail!("{NO_COUNTS}");
    }
    Ok(())
}

/// The same, where time alone is enough.
fn load_with_time(named: Option<&PathBuf>, runs: &RunsArgument) -> anyhow::Result<Loaded> {
    let (profile, runs) = open_chosen(named, runs)?;
    load_from(&profile, &runs)
}

/// Opens a profile as [`open`] does; and says which of its runs are meant. If some threads are, it has
/// no other counts than theirs.
fn open_chosen(
    named: Option<&PathBuf>,
    runs: &RunsArgument,
) -> anyhow::Result<(Profile, RunSelection)> {
    let profile = open(named)?;
    match runs.threads() {
        Some(wanted) => Ok((
            threads_alone::alone(&profile, &runs.get(), &wanted)?,
            RunSelection::All,
        )),
        None => Ok((profile, runs.get())),
    }
}

/// The same, from a profile that is open.
pub fn load_from(profile: &Profile, runs: &RunSelection) -> anyhow::Result<Loaded> {
    progress::during("reading the profile", || load_silently(profile, runs))
}

/// The same, whatever time it takes.
pub fn load_silently(profile: &Profile, runs: &RunSelection) -> anyhow::Result<Loaded> {
    let mut loaded = profile.load(runs)?;
    let here = std::env::current_dir().unwrap_or_default();
    for counted in &mut loaded.counted {
        counted
            .module
            .files
            .iter_mut()
            .for_each(|file| shorten(file, &here));
    }
    let sites = loaded.timed.iter_mut().flat_map(|it| &mut it.samples.sites);
    for frame in sites.flat_map(|it| &mut it.frames) {
        shorten(&mut frame.file, &here);
    }
    let charges = loaded.runtimes.iter_mut().flat_map(|it| &mut it.charges);
    for charge in charges {
        if let ChargePlace::Operation { file, .. } = &mut charge.place {
            shorten(file, &here);
        }
    }
    Ok(loaded)
}

/// Names a file below the current folder as the user would.
fn shorten(file: &mut String, here: &Path) {
    if let Ok(inside) = Path::new(file.as_str()).strip_prefix(here) {
        *file = inside.to_string_lossy().into_owned();
    }
}

/// What is wanted of some profiles. Fails if something is wanted that none of them has; says which
/// other names nothing counted has in the last of them.
fn only(filter: Filter<'_>, loaded: &[&Loaded], demangle: bool) -> anyhow::Result<Only> {
    let only = narrowed(filter, loaded, demangle);
    let last = loaded.last().map_or(&[][..], |it| &it.counted);
    let is_known = |name: &str| {
        let mut loaded = loaded.iter();
        loaded.any(|it| is_refused_or_sampled(it, name))
    };
    if let Some(name) = only.missing().iter().find(|it| !is_known(it)) {
        bail!("{}", nothing_called(last, name));
    }
    for name in only.unmet().iter().filter(|it| !is_known(it)) {
        talk::say(nothing_called(last, name));
    }
    match filter.module.filter(|it| !has_module(loaded, it)) {
        Some(module) => bail!("{}", no_module_called(last, module)),
        None => Ok(only),
    }
}

/// Is something called so that was not counted, but refused, or seen by a clock?
fn is_refused_or_sampled(loaded: &Loaded, name: &str) -> bool {
    let only = Only::new(&[name.to_owned()], &[], true);
    let is_refused = |it: &Counted| {
        let mut refusals = it.module.refusals.iter();
        refusals.any(|refusal| only.wants_refused(&it.module, refusal))
    };
    let is_sampled = |frame: &Frame| {
        let names = [frame.function.as_str(), &demangle(&frame.function)];
        only.wants_sampled("", &names, &frame.file)
    };
    let sites = loaded.timed.iter().flat_map(|it| &it.samples.sites);
    loaded.counted.iter().any(is_refused) || sites.flat_map(|it| &it.frames).any(is_sampled)
}

fn has_module(loaded: &[&Loaded], name: &str) -> bool {
    let pattern = Pattern::new(name);
    let mut counted = loaded.iter().flat_map(|it| &it.counted);
    let timed = loaded.iter().flat_map(|it| &it.timed);
    let mut sampled = timed.flat_map(|it| &it.samples.modules);
    counted.any(|it| pattern.matches_module(&it.module.path))
        || sampled.any(|it| pattern.matches_module(&it.path))
}

/// What some words mean for profiles.
fn narrowed(filter: Filter<'_>, loaded: &[&Loaded], demangle: bool) -> Only {
    let counted: Vec<&[Counted]> = loaded.iter().map(|it| it.counted.as_slice()).collect();
    let here = std::env::current_dir().unwrap_or_default();
    let filter = Filter {
        here: &here.to_string_lossy(),
        ..filter
    };
    Only::narrowed(filter, &counted, demangle)
}

/// What is the user's own; says which names nothing has.
fn own(said: &OwnArgument, loaded: &Loaded, demangle: bool) -> Own {
    let said = Filter {
        only: &said.own,
        ..Filter::default()
    };
    let only = narrowed(said, &[loaded], demangle);
    for name in only.unmet() {
        talk::say(nothing_called(&loaded.counted, name));
    }
    Own::new(&loaded.counted, only)
}

/// The runs, as far as reports tell of them.
fn summaries(loaded: &Loaded) -> Vec<RunSummary> {
    let summary = |run: &RunInfo| RunSummary {
        command: run.command.clone(),
        status: run.status,
    };
    // Who only looked at the time has runs, too.
    match loaded.runs.is_empty() {
        true => loaded.timed.iter().map(|it| summary(&it.run)).collect(),
        false => loaded.runs.iter().map(summary).collect(),
    }
}

/// What tells of time.
fn samples(loaded: &Loaded) -> Vec<&Samples> {
    loaded.timed.iter().map(|it| &it.samples).collect()
}

/// Where the time went, if anything tells.
fn time(loaded: &Loaded) -> Option<Time> {
    let time = Time::new(&loaded.counted, &samples(loaded), times_counted(loaded));
    time.map(|it| it.with_scripts(&loaded.runtimes))
}

/// How many times the work that was timed was counted, if anybody knows.
fn times_counted(loaded: &Loaded) -> Option<f64> {
    match loaded.work {
        Work::Same { counted, sampled } => Some(counted as f64 / sampled as f64),
        Work::Alone | Work::Unrelated(_) => None,
    }
}

/// Why nothing is said of the time for each call, if there are counts and samples.
fn time_note(loaded: &Loaded) -> Option<String> {
    match &loaded.work {
        Work::Unrelated(why) => Some(format!(
            "The time for each call or execution is left out: {why}. `headcount run --time` counts and \
             samples the same work."
        )),
        Work::Alone | Work::Same { .. } => None,
    }
}

/// The notes of all runs, and of their sum.
pub fn notes(loaded: &Loaded) -> Vec<String> {
    let timed = loaded.timed.iter().map(|it| &it.run);
    let runs = loaded.runs.iter().chain(timed);
    let notes = runs.flat_map(|run| run.notes.iter());
    notes.chain(&loaded.notes).cloned().collect()
}

/// What the runs found by value, as far as it is wanted, in words. Where libraries called through
/// pointers is left out if it is said what is the user's own.
pub fn tallied(
    loaded: &Loaded,
    only: Only,
    own: Option<&Own>,
    demangle: bool,
) -> anyhow::Result<Tallied> {
    let request = Request {
        only,
        own,
        demangle,
        values: &loaded.values,
        whole_runs: whole_runs(loaded),
        ..Request::all(Unit::Value, &decode)
    };
    Ok(headcount_report::tallied(&loaded.counted, &request)?)
}

/// How many runs these are. The phases of a run are one; 0, if that with its values is there alone.
fn whole_runs(loaded: &Loaded) -> usize {
    let (phases, whole): (Vec<&RunInfo>, Vec<&RunInfo>) =
        loaded.runs.iter().partition(|it| !it.phase.is_empty());
    let mut by_run: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for it in phases {
        by_run.entry(&it.batch).or_default().push(&it.phase);
    }
    match by_run.values().any(|it| it[..] == [VALUES]) {
        true => 0,
        false => whole.len() + by_run.len(),
    }
}

/// The instructions of a piece of code; what is none is shown as such.
pub fn decode(span: &Span) -> Vec<(LinkAddr, String)> {
    match headcount_x86::decode(span) {
        Ok(code) => code.into_iter().map(|it| (it.address, it.text)).collect(),
        Err(error) => vec![(span.address, format!("({error})"))],
    }
}

/// The events of each instruction in a piece of code; none, if it is no code.
pub fn events(span: &Span) -> Option<Vec<InstructionEvents>> {
    headcount_x86::events(span).ok()
}

/// The events that a user names for `--events`.
fn named_events(names: &[String]) -> Vec<Event> {
    match names.iter().any(|it| it == ALL_EVENTS) {
        true => Event::ALL.to_vec(),
        false => names.iter().filter_map(|it| Event::from_name(it)).collect(),
    }
}
