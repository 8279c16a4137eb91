//! Write counts in a format of another tool.

use crate::args::{Export, ExportFormat, FlatUnit};
use crate::flat_table::Wanted;
use crate::module_files::Files;
use crate::sources::Sources;
use crate::{database, output, progress, source_flows, talk};
use anyhow::bail;
use headcount_model::{Counted, Span};
use headcount_profile::Loaded;
use headcount_report::export::{self, Format, Material, TimeMaterial};
use headcount_report::{Only, Pattern, Request, Unit, coverage_notes, no_module_called, thousands};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(args: &Export) -> anyhow::Result<ExitCode> {
    let Some(format) = args.format else {
        output::write_exact(args.output.as_deref(), export::JSON_SCHEMA)?;
        return Ok(ExitCode::SUCCESS);
    };
    let named = args.profile.file.as_ref().or(args.profile.input.as_ref());
    if format == ExportFormat::Parquet {
        if args.runs.threads().is_some() {
            bail!(
                "--format parquet is about whole runs: --thread and --process cannot be combined with it"
            );
        }
        return flat_table(args, named);
    }
    if !args.by.is_empty() || !args.events.is_empty() {
        bail!("--by and --events work only with --format parquet");
    }
    let mut loaded = super::load_with_time(named, &args.runs)?;
    if is_of_time(args, format, &loaded) {
        return time(args, format, &loaded);
    }
    super::has_counts(&loaded)?;
    let demangle = !args.names.no_demangle;
    let only = super::only(args.filter.get(), &[&loaded], demangle)?;
    choose_modules(&mut loaded, args.filter.module.as_deref(), format)?;
    let sources = Sources::new(&loaded, &args.source, named.map(|it| it.as_path()));
    source_flows::follow(&mut loaded, &sources, |_| true);
    if format == ExportFormat::IconFiles {
        return icon_files(args, &loaded, only);
    }
    let Some(format) = text_format(format) else {
        return plain_tables(args, &loaded, only);
    };
    let files = Files::default();
    let mut notes = super::notes(&loaded);
    notes.extend(coverage_notes(&loaded.counted, true));
    let own = super::own(&args.own, &loaded, demangle);
    let material = Material {
        counted: &loaded.counted,
        calls: &loaded.calls,
        values: &loaded.values,
        whole_runs: super::whole_runs(&loaded),
        runs: &super::summaries(&loaded),
        notes: &notes,
        only: &only,
        own: &own,
        demangle,
        with_checks: args.checks,
        max_count: args.max_count,
        source: &|file| sources.whole(file),
        decode: &super::decode,
        lengths: &lengths,
        transfers: &headcount_x86::transfers,
        pointers: &|module| files.pointers(module),
        base: &|module| files.base(module),
        symbols: &|module| files.symbols(module),
        chains: &|module, addresses| files.chains(module, addresses),
    };
    let exported = progress::during("exporting", || export::write(format, &material))?;
    output::write_bytes(args.output.as_deref(), &exported.bytes)?;
    if format != Format::Json {
        say_what_it_cannot(&loaded, &notes);
    }
    exported.notes.iter().for_each(talk::say);
    Ok(ExitCode::SUCCESS)
}

/// Whether time is to be exported: if that is said, and where there is nothing else.
fn is_of_time(args: &Export, format: ExportFormat, loaded: &Loaded) -> bool {
    let has_time = text_format(format).is_some_and(export::has_time);
    let is_all = loaded.counted.is_empty() && !loaded.timed.is_empty();
    args.time || format == ExportFormat::Firefox || (is_all && has_time)
}

/// Writes samples.
fn time(args: &Export, format: ExportFormat, loaded: &Loaded) -> anyhow::Result<ExitCode> {
    let Some(format) = text_format(format).filter(|it| export::has_time(*it)) else {
        bail!("this format cannot hold samples; folded, pprof and firefox can");
    };
    let samples = super::samples(loaded);
    let Some(first) = loaded.timed.first() else {
        bail!("{}", super::NO_TIME);
    };
    let material = TimeMaterial {
        samples: &samples,
        command: &first.run.command,
        demangle: !args.names.no_demangle,
        is_of_instructions: false,
    };
    let exported = progress::during("exporting", || export::write_time(format, &material))?;
    output::write_bytes(args.output.as_deref(), &exported.bytes)?;
    let notes = loaded.timed.iter().flat_map(|it| &it.run.notes);
    notes.chain(&exported.notes).for_each(talk::say);
    Ok(ExitCode::SUCCESS)
}

/// Writes a database.
fn plain_tables(args: &Export, loaded: &Loaded, only: Only) -> anyhow::Result<ExitCode> {
    if args.max_count.is_some() {
        bail!("--max-count is not for the format sqlite, which has room for every count");
    }
    let files = Files::default();
    let demangle = !args.names.no_demangle;
    let request = Request {
        only,
        demangle,
        transfers: &headcount_x86::transfers,
        pointers: &|module| files.pointers(module),
        values: &loaded.values,
        whole_runs: super::whole_runs(loaded),
        ..Request::all(Unit::Function, &super::decode)
    };
    let mut notes = super::notes(loaded);
    notes.extend(coverage_notes(&loaded.counted, request.demangle));
    let material = database::Material {
        counted: &loaded.counted,
        runs: &super::summaries(loaded),
        notes: &notes,
        request: &request,
    };
    database::write(args.output.as_deref(), &material)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes files side by side.
fn icon_files(args: &Export, loaded: &Loaded, only: Only) -> anyhow::Result<ExitCode> {
    let Some(to) = args.output.as_deref().filter(|it| *it != Path::new("-")) else {
        bail!("--format icon-files writes five files: give the common part of their names with -o");
    };
    let request = Request {
        only,
        ..Request::all(Unit::Token, &super::decode)
    };
    let files = export::icon_files(&loaded.counted, &loaded.runtimes, &request)?;
    if files.iter().all(|it| it.text.is_empty()) {
        bail!("no tokens of an Icon program were counted: `headcount icon FILE.icn` counts them");
    }
    for file in files {
        let mut name = to.as_os_str().to_owned();
        name.push(".");
        name.push(file.suffix);
        output::write_exact(Some(Path::new(&name)), &file.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a flat table of every run.
fn flat_table(args: &Export, profile: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    if args.max_count.is_some() || args.time {
        bail!("--max-count and --time cannot be combined with --format parquet");
    }
    let mut by = match args.by.as_slice() {
        [] => vec![FlatUnit::Function, FlatUnit::Line],
        some => some.to_vec(),
    };
    by.sort_unstable();
    by.dedup();
    let wanted = Wanted {
        args,
        units: by.into_iter().map(flat_unit).collect(),
        events: super::named_events(&args.events),
    };
    wanted.write(&super::open(profile)?)?;
    Ok(ExitCode::SUCCESS)
}

fn flat_unit(by: FlatUnit) -> Unit {
    match by {
        FlatUnit::Module => Unit::Module,
        FlatUnit::File => Unit::File,
        FlatUnit::Function => Unit::Function,
        FlatUnit::Line => Unit::Line,
        FlatUnit::Block => Unit::Block,
        FlatUnit::Instruction => Unit::Instruction,
        FlatUnit::Edge => Unit::Edge,
        FlatUnit::Call => Unit::Call,
        FlatUnit::Value => Unit::Value,
    }
}

/// The format of a file that is written in one go; none, of a database.
fn text_format(format: ExportFormat) -> Option<Format> {
    Some(match format {
        ExportFormat::Lcov => Format::Lcov,
        ExportFormat::Cobertura => Format::Cobertura,
        ExportFormat::Callgrind => Format::Callgrind,
        ExportFormat::Pprof => Format::Pprof,
        ExportFormat::Folded => Format::Folded,
        ExportFormat::Bolt => Format::Bolt,
        ExportFormat::LlvmSample => Format::LlvmSample,
        ExportFormat::Drcov => Format::Drcov,
        ExportFormat::Zprof => Format::Zprof,
        ExportFormat::Json => Format::Json,
        ExportFormat::Firefox => Format::Firefox,
        ExportFormat::Sqlite | ExportFormat::Parquet | ExportFormat::IconFiles => return None,
    })
}

/// The lengths of the instructions in a piece of code, up to where it is none.
fn lengths(span: &Span) -> Vec<u8> {
    headcount_x86::count(span).unwrap_or_default()
}

/// Leaves out modules that are not wanted.
fn choose_modules(
    loaded: &mut Loaded,
    wanted: Option<&str>,
    format: ExportFormat,
) -> anyhow::Result<()> {
    if let Some(wanted) = wanted {
        let pattern = Pattern::new(wanted);
        let is_meant = |it: &Counted| pattern.matches_module(&it.module.path);
        if !loaded.counted.iter().any(is_meant) {
            bail!("{}", no_module_called(&loaded.counted, wanted));
        }
        loaded.counted.retain(is_meant);
    } else if matches!(format, ExportFormat::Bolt | ExportFormat::LlvmSample) {
        let programs: Vec<&str> = loaded
            .runs
            .iter()
            .filter_map(|run| run.command.first())
            .map(|it| base_name(it))
            .collect();
        let is_program = |it: &Counted| programs.contains(&base_name(&it.module.path));
        if loaded.counted.iter().any(is_program) {
            loaded.counted.retain(is_program);
        }
    }
    Ok(())
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Few formats have a place for what was not counted, and for what is uncertain.
fn say_what_it_cannot(loaded: &Loaded, notes: &[String]) {
    match headcount_report::refused(&loaded.counted).len() {
        0 => (),
        refused => talk::say(format!(
            "not counted: {}; `headcount report --all` says what and why",
            thousands(refused as u64)
        )),
    }
    notes.iter().for_each(talk::say);
}
