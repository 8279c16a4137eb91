//! Write counts in a format of another tool.

use crate::args::{Export, ExportFormat};
use crate::sources::Sources;
use crate::{output, progress, talk};
use headcount_model::Span;
use headcount_report::export::{self, Format, Material};
use headcount_report::{Pattern, thousands};
use std::process::ExitCode;

pub fn run(args: &Export) -> anyhow::Result<ExitCode> {
    let named = args.profile.file.as_ref().or(args.profile.input.as_ref());
    let loaded = super::load(named, &args.runs.runs)?;
    let sources = Sources::new(&loaded, &args.source, named.map(|it| it.as_path()));
    let only: Vec<Pattern> = args.only.iter().map(|it| Pattern::new(it)).collect();
    let material = Material {
        counted: &loaded.counted,
        runs: &super::summaries(&loaded),
        only: &only,
        demangle: !args.names.no_demangle,
        max_count: args.max_count,
        source: &|file| sources.find(file),
        lengths: &lengths,
        calls: &super::calls,
    };
    let format = format(args.format);
    let exported = progress::during("exporting", || export::write(format, &material))?;
    output::write_bytes(args.output.as_deref(), &exported.bytes)?;
    say_what_it_cannot(&loaded, &exported.notes);
    Ok(ExitCode::SUCCESS)
}

fn format(format: ExportFormat) -> Format {
    match format {
        ExportFormat::Lcov => Format::Lcov,
    }
}

/// The lengths of the instructions in a piece of code, up to where it is none.
fn lengths(span: &Span) -> Vec<u8> {
    headcount_x86::count(span).unwrap_or_default()
}

/// Few formats have a place for what was not counted.
fn say_what_it_cannot(loaded: &headcount_profile::Loaded, notes: &[String]) {
    match headcount_report::refused(&loaded.counted).len() {
        0 => (),
        refused => talk::say(format!(
            "not counted: {}; `headcount report` says what and why",
            thousands(refused as u64)
        )),
    }
    let of_runs = super::notes(loaded);
    let of_counts = headcount_report::coverage_notes(&loaded.counted, true);
    let all = of_runs.iter().chain(&of_counts).chain(notes);
    all.for_each(talk::say);
}
