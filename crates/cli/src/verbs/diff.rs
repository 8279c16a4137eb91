//! Compare two runs.

use crate::args::{Diff as Args, DiffBy, DiffFormat};
use crate::sources::Sources;
use crate::{output, progress, source_flows, talk};
use anyhow::{Context, bail};
use headcount_profile::{Loaded, RunInfo, RunSelection};
use headcount_report::diff::{self, Diff, Regression, Scope, Side};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.by == DiffBy::Line && args.format == DiffFormat::Markdown {
        bail!("--format markdown cannot show --by line; use text, csv or json");
    }
    let (mut old, mut new) = load(args)?;
    let has_line_limit = args.fail_over.iter().any(|it| it.scope == Scope::Line);
    let by_line = args.by == DiffBy::Line || has_line_limit;
    let notes = match by_line {
        true => follow_sources(args, &mut old, &mut new),
        false => Vec::new(),
    };
    let only = super::only(args.filter.get(), &[&old, &new], true);
    let compare = || Diff::new(&side(&old), &side(&new), &only, by_line);
    let mut diff = progress::during("comparing", compare)?;
    let regressions = diff.regressions(&args.fail_over);
    let undecided = diff.undecided(&args.fail_over);
    diff.notes.extend(notes.into_iter().chain(undecided));
    let shown = match (args.by, args.format) {
        (DiffBy::Function, DiffFormat::Text) => diff::text(&diff, &regressions, args.top),
        (DiffBy::Function, DiffFormat::Csv) => diff::csv(&diff),
        (DiffBy::Function, DiffFormat::Json) => diff::json(&diff, &regressions),
        (DiffBy::Line, DiffFormat::Text) => diff::lines_text(&diff, &regressions, args.top),
        (DiffBy::Line, DiffFormat::Csv) => diff::lines_csv(&diff),
        (DiffBy::Line, DiffFormat::Json) => diff::lines_json(&diff, &regressions),
        (_, DiffFormat::Markdown) => diff::markdown(&diff, &regressions, args.top),
    };
    output::write_exact(args.output.as_deref(), &shown)?;
    if args.format == DiffFormat::Csv {
        diff.notes.iter().for_each(talk::say);
    }
    for regression in &regressions {
        let what = diff::sentence(&diff, regression);
        talk::say(format!("over the limit: {what}"));
    }
    if std::env::var_os("GITHUB_ACTIONS").is_some_and(|it| it == "true") {
        tell_github(&diff, &regressions, args.top)?;
    }
    Ok(match regressions.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// Reads the sources of both sides, for the counts of their lines; answers with what to say of them.
fn follow_sources(args: &Args, old: &mut Loaded, new: &mut Loaded) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let profiles = [
        &args.old,
        args.new.as_ref().map_or(&args.old, |_| &args.new),
    ];
    for (side, profile) in [old, new].into_iter().zip(profiles) {
        let known = side.notes.len();
        let sources = Sources::new(side, &args.source, profile.as_deref());
        source_flows::follow(side, &sources);
        let new = side.notes.drain(known..);
        notes.extend(new);
    }
    notes.dedup();
    notes
}

/// The counts of both sides.
fn load(args: &Args) -> anyhow::Result<(Loaded, Loaded)> {
    if let (Some(old), Some(new)) = (&args.old, &args.new) {
        let runs = args.runs.as_ref().unwrap_or(&RunSelection::Last);
        return Ok((super::load(Some(old), runs)?, super::load(Some(new), runs)?));
    }
    let named = args.old.as_ref();
    let [old, new] = match &args.runs {
        Some(RunSelection::These(numbers)) => match numbers.as_slice() {
            [old, new] => [vec![*old], vec![*new]],
            _ => bail!("of one profile, name two runs: --runs 2,5"),
        },
        Some(_) => bail!("of one profile, name two runs: --runs 2,5"),
        None => last_two(named)?,
    };
    let some = |numbers: Vec<i64>| super::load(named, &RunSelection::These(numbers));
    Ok((some(old)?, some(new)?))
}

/// The runs of the last two commands.
fn last_two(named: Option<&std::path::PathBuf>) -> anyhow::Result<[Vec<i64>; 2]> {
    let profile = super::open(named)?;
    let runs = profile.runs()?;
    let mut batches = runs.chunk_by(|one, other| one.batch == other.batch);
    let numbers = |batch: &[RunInfo]| batch.iter().map(|it| it.id).collect();
    match (batches.next_back(), batches.next_back()) {
        (Some(new), Some(old)) => Ok([numbers(old), numbers(new)]),
        _ => bail!(
            "{}: has only one run: nothing to compare it with",
            named
                .map_or(super::DEFAULT_PROFILE.as_ref(), |it| it.as_path())
                .display()
        ),
    }
}

fn side(loaded: &Loaded) -> Side<'_> {
    Side {
        counted: &loaded.counted,
        runs: super::summaries(loaded),
        cpus: loaded.runs.iter().map(|it| it.cpu.clone()).collect(),
    }
}

/// Adds to the summary of a step of GitHub Actions, and marks lines.
fn tell_github(diff: &Diff, regressions: &[Regression], top: usize) -> anyhow::Result<()> {
    for annotation in diff::annotations(diff, regressions) {
        // Not through `talk`: the runner looks for `::` at the start of a line.
        let _ = writeln!(
            std::io::stderr(),
            "{}",
            headcount_report::visible(&annotation)
        );
    }
    let Some(summary) = std::env::var_os("GITHUB_STEP_SUMMARY") else {
        return Ok(());
    };
    let path = Path::new(&summary);
    let text = diff::markdown(diff, regressions, top);
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("{}: cannot be written", path.display()))
}
