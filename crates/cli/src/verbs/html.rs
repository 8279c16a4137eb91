//! Write everything as one HTML page.

use super::diff;
use crate::args::Html;
use crate::module_files::Files;
use crate::sources::Sources;
use crate::{output, progress, source_flows, talk};
use headcount_model::Event;
use headcount_profile::RunInfo;
use headcount_report::diff::Diff;
use headcount_report::html::{self, Page, RunFacts};
use headcount_report::{Unit, WantedEvents};
use std::path::Path;
use std::process::ExitCode;

/// The events that are there to choose from if nobody names others.
const TO_CHOOSE_FROM: [Event; 5] = [
    Event::Loads,
    Event::Stores,
    Event::Branches,
    Event::Taken,
    Event::Flops,
];

pub fn run(args: &Html) -> anyhow::Result<ExitCode> {
    let first = args.profile.file.as_ref().or(args.profile.input.as_ref());
    let named = args.new.as_ref().or(first);
    let old = args.new.as_ref().map(|_| super::load(first, &args.runs));
    let old = old.transpose()?;
    let mut loaded = super::load(named, &args.runs)?;
    let sources = Sources::new(&loaded, &args.source, named.map(|it| it.as_path()));
    source_flows::follow(&mut loaded, &sources, |_| true);
    let runs: Vec<RunFacts> = loaded.runs.iter().map(facts).collect();
    let samples = super::samples(&loaded);
    let demangle = !args.names.no_demangle;
    let own = super::own(&args.own, &loaded, demangle);
    let files = Files::default();
    let both: Vec<_> = old.iter().chain([&loaded]).collect();
    let only = super::only(args.filter.get(), &both, demangle)?;
    let side = |loaded| diff::side(loaded, Vec::new());
    let compare = |old| Diff::new(&side(old), &side(&loaded), &only, false);
    let changes = old.as_ref().map(compare).transpose()?;
    let events = match args.events.as_slice() {
        [] => TO_CHOOSE_FROM.to_vec(),
        named => super::named_events(named),
    };
    let tallied = super::tallied(&loaded, only.clone(), Some(&own), demangle)?;
    let mut notes = super::notes(&loaded);
    notes.extend(super::time_note(&loaded));
    notes.extend(tallied.doubts.iter().chain(&tallied.notes).cloned());
    let page = Page {
        counted: &loaded.counted,
        runs: &runs,
        notes,
        only,
        own: &own,
        demangle,
        assembly: !args.no_asm,
        decode: &super::decode,
        transfers: &headcount_x86::transfers,
        pointers: &|module| files.pointers(module),
        with_checks: args.checks,
        source: &|file| sources.quietly(file).map(|lines| lines.to_vec()),
        samples: &samples,
        runtimes: &loaded.runtimes,
        times_counted: super::times_counted(&loaded),
        calls: &loaded.calls,
        values: &loaded.values,
        tallied: &tallied,
        events: WantedEvents::new(Unit::Function, &events, &super::events),
        shows_events: !args.events.is_empty(),
        changes: changes.as_ref(),
    };
    let written = progress::during("making the page", || html::write(&page))?;
    output::keep_from(Some(&args.output), sources.kept_from())?;
    output::write_exact(Some(&args.output), &written)?;
    sources.say_missing(&|file| own.library_of_file(file).is_none());
    if args.output != Path::new("-") {
        let kilobytes = written.len().div_ceil(1000) as u64;
        talk::say(format!(
            "{}: {} kB; open it in a browser",
            args.output.display(),
            headcount_report::thousands(kilobytes)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn facts(run: &RunInfo) -> RunFacts {
    RunFacts {
        command: run.command.clone(),
        status: run.status,
        cpu: run.cpu.clone(),
        processes: run.processes.len(),
        threads: run.processes.iter().map(|it| it.threads.len()).sum(),
    }
}
