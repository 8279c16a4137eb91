//! Compare two runs, or several runs of two builds.

use crate::args::{Diff as Args, DiffBy, DiffFormat, SideRuns};
use crate::sources::Sources;
use crate::{output, progress, source_flows, talk};
use anyhow::{Context, bail};
use headcount_profile::{Loaded, Profile, RunInfo, RunSelection};
use headcount_report::diff::{self, Diff, Regression, Scope, Side};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.by == DiffBy::Line && args.format == DiffFormat::Markdown {
        bail!("--format markdown cannot show --by line; use text, csv or json");
    }
    let [mut old, mut new] = load(args)?;
    let has_line_limit = args.fail_over.iter().any(|it| it.scope == Scope::Line);
    let by_line = args.by == DiffBy::Line || has_line_limit;
    let notes = match by_line {
        true => follow_sources(args, [&mut old, &mut new]),
        false => Vec::new(),
    };
    let only = super::only(args.filter.get(), &[&old.middle, &new.middle], true);
    let compare = || Diff::new(&old.side(), &new.side(), &only, by_line);
    let mut diff = progress::during("comparing", compare)?;
    let regressions = diff.regressions(&args.fail_over);
    let undecided = diff.undecided(&args.fail_over);
    diff.notes.extend(notes.into_iter().chain(undecided));
    let sources = Sources::new(&new.middle, &args.source, new_profile(args).as_deref());
    if args.format == DiffFormat::Text {
        diff.add_texts(args.top, &|file| {
            sources.quietly(file).map(|it| it.to_vec())
        });
    }
    let shown = match (args.by, args.format) {
        (DiffBy::Function, DiffFormat::Text) => diff::text(&diff, &regressions, args.top),
        (DiffBy::Function, DiffFormat::Csv) => diff::csv(&diff),
        (DiffBy::Function, DiffFormat::Json) => diff::json(&diff, &regressions),
        (DiffBy::Line, DiffFormat::Text) => diff::lines_text(&diff, &regressions, args.top),
        (DiffBy::Line, DiffFormat::Csv) => diff::lines_csv(&diff),
        (DiffBy::Line, DiffFormat::Json) => diff::lines_json(&diff, &regressions),
        (_, DiffFormat::Markdown) => diff::markdown(&diff, &regressions, args.top),
    };
    output::keep_from(args.output.as_deref(), sources.kept_from())?;
    output::write_exact(args.output.as_deref(), &shown)?;
    if args.format == DiffFormat::Csv {
        diff.notes.iter().for_each(talk::say);
    }
    let is_for_people = matches!(args.format, DiffFormat::Text | DiffFormat::Markdown);
    if !(is_for_people && output::is_standard(args.output.as_deref())) {
        for regression in &regressions {
            let what = diff::sentence(&diff, regression);
            talk::say(format!("over the limit: {what}"));
        }
    }
    if std::env::var_os("GITHUB_ACTIONS").is_some_and(|it| it == "true") {
        tell_github(&diff, &regressions, args.top)?;
    }
    Ok(match regressions.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// The counts of one side.
struct Counts {
    /// Of several runs of the same command, those of the one in the middle.
    middle: Loaded,
    others: Vec<Loaded>,
}

impl Counts {
    fn all(&mut self) -> impl Iterator<Item = &mut Loaded> {
        std::iter::once(&mut self.middle).chain(&mut self.others)
    }

    fn side(&self) -> Side<'_> {
        side(&self.middle, &self.others)
    }
}

/// One side of a comparison: some counts, and those of other runs of the same command.
pub fn side<'a>(loaded: &'a Loaded, others: &'a [Loaded]) -> Side<'a> {
    Side {
        counted: &loaded.counted,
        repetitions: others.iter().map(|it| it.counted.as_slice()).collect(),
        runs: super::summaries(loaded),
        cpus: loaded.runs.iter().map(|it| it.cpu.clone()).collect(),
    }
}

/// Reads the sources of both sides, for the counts of their lines; answers with what to say of them.
fn follow_sources(args: &Args, sides: [&mut Counts; 2]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let profiles = [&args.old, new_profile(args)];
    for (side, profile) in sides.into_iter().zip(profiles) {
        for loaded in side.all() {
            let known = loaded.notes.len();
            let sources = Sources::new(loaded, &args.source, profile.as_deref());
            source_flows::follow(loaded, &sources);
            let new = loaded.notes.drain(known..);
            notes.extend(new);
        }
    }
    notes.dedup();
    notes
}

/// Where the new counts are.
fn new_profile(args: &Args) -> &Option<PathBuf> {
    match &args.new {
        Some(_) => &args.new,
        None => &args.old,
    }
}

/// The counts of both sides.
fn load(args: &Args) -> anyhow::Result<[Counts; 2]> {
    const TWO: &str = "of one profile, name two runs, or the runs of both sides: --runs 2,5 or \
                       --runs 1-5:6-10";
    let (old, new) = (args.old.as_ref(), new_profile(args).as_ref());
    let (old_runs, new_runs) = match (&args.runs, args.new.is_some()) {
        (Some(SideRuns::Each(old, new)), _) => (old.clone(), new.clone()),
        (Some(SideRuns::Both(runs)), true) => (runs.clone(), runs.clone()),
        (None, true) => (RunSelection::Last, RunSelection::Last),
        (Some(SideRuns::Both(RunSelection::These(numbers))), false) => match numbers.as_slice() {
            [old, new] => (vec![*old].into(), vec![*new].into()),
            _ => bail!(TWO),
        },
        (Some(SideRuns::Both(_)), false) => bail!(TWO),
        (None, false) => last_two(old)?,
    };
    Ok([load_side(old, &old_runs)?, load_side(new, &new_runs)?])
}

/// The runs of the last two commands.
fn last_two(named: Option<&PathBuf>) -> anyhow::Result<(RunSelection, RunSelection)> {
    let profile = super::open(named)?;
    let runs = profile.runs()?;
    let mut batches = runs.chunk_by(|one, other| one.batch == other.batch);
    match (batches.next_back(), batches.next_back()) {
        (Some(new), Some(old)) => Ok((numbers(old).into(), numbers(new).into())),
        _ => bail!(
            "{}: has only one run: nothing to compare it with",
            named
                .map_or(super::DEFAULT_PROFILE.as_ref(), |it| it.as_path())
                .display()
        ),
    }
}

fn numbers(runs: &[RunInfo]) -> Vec<i64> {
    runs.iter().map(|it| it.id).collect()
}

/// The counts of one side: of several runs of the same command, each for itself; all else is added up.
fn load_side(named: Option<&PathBuf>, which: &RunSelection) -> anyhow::Result<Counts> {
    let profile = super::open(named)?;
    let mut repeated = repetitions(&profile, which)?;
    if repeated.len() < 2 {
        return Ok(Counts {
            middle: super::load_counts(&profile, which)?,
            others: Vec::new(),
        });
    }
    let executed = |runs: &Vec<i64>| -> anyhow::Result<u128> {
        let each = runs.iter().map(|it| profile.executed(*it));
        Ok(each
            .map(|it| it.map(|it| u128::from(it.instructions)))
            .sum::<Result<_, _>>()?)
    };
    let sizes = repeated
        .iter()
        .map(executed)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut order: Vec<usize> = (0..repeated.len()).collect();
    order.sort_by_key(|it| sizes[*it]);
    let middle = repeated.remove(order[order.len() / 2]);
    let load = |runs: Vec<i64>| super::load_counts(&profile, &runs.into());
    Ok(Counts {
        middle: load(middle)?,
        others: repeated.into_iter().map(load).collect::<Result<_, _>>()?,
    })
}

/// The chosen runs by command, if all commands are the same.
fn repetitions(profile: &Profile, which: &RunSelection) -> anyhow::Result<Vec<Vec<i64>>> {
    let runs = profile.runs()?;
    let is_chosen = |run: &&RunInfo| match which {
        RunSelection::All => true,
        RunSelection::These(numbers) => numbers.contains(&run.id),
        RunSelection::Last | RunSelection::Phase(..) => false,
    };
    let counted = runs.iter().filter(|it| it.samples.is_none());
    let mut batches: Vec<Vec<&RunInfo>> = Vec::new();
    for run in counted.filter(is_chosen) {
        match batches.iter_mut().find(|it| it[0].batch == run.batch) {
            Some(batch) => batch.push(run),
            None => batches.push(vec![run]),
        }
    }
    let commands = |batch: &[&RunInfo]| {
        let mut commands: Vec<Vec<String>> = batch.iter().map(|it| it.command.clone()).collect();
        commands.sort();
        commands
    };
    let is_same = |pair: &[Vec<&RunInfo>]| commands(&pair[0]) == commands(&pair[1]);
    Ok(match batches.windows(2).all(is_same) {
        true => batches
            .iter()
            .map(|it| it.iter().map(|it| it.id).collect())
            .collect(),
        false => Vec::new(),
    })
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
