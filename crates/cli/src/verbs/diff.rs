//! Compare two runs, or several runs of two builds.

use crate::args::{Diff as Args, DiffBy, DiffFormat, SideRuns};
use crate::sources::Sources;
use crate::{output, progress, source_flows, talk};
use anyhow::{Context, bail};
use headcount_profile::{Loaded, Profile, RunInfo, RunSelection};
use headcount_report::Only;
use headcount_report::diff::{self, Diff, Regression, Repetition, Scope, Side};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.by != DiffBy::Function && args.format == DiffFormat::Markdown {
        let by = match args.by {
            DiffBy::Value => "value",
            _ => "line",
        };
        bail!("--format markdown cannot show --by {by}; use text, csv or json");
    }
    let [mut old, mut new] = load(args)?;
    let has_line_limit = args.fail_over.iter().any(|it| it.scope == Scope::Line);
    let by_line = args.by == DiffBy::Line || has_line_limit;
    let mut notes: Vec<String> = [&old, &new]
        .iter()
        .filter_map(|it| it.note.clone())
        .collect();
    if by_line {
        notes.extend(follow_sources(args, &mut old.middle, &args.old));
        notes.extend(follow_sources(args, &mut new.middle, new_profile(args)));
    }
    let mut said = BTreeSet::new();
    notes.retain(|it| said.insert(it.clone()));
    let only = super::only(args.filter.get(), &[&old.middle, &new.middle], true)?;
    let compare = || -> anyhow::Result<Diff> {
        let of = |chosen: &Chosen| chosen.repetitions(args, &only, by_line);
        let [old_side, new_side] = [side(&old.middle, of(&old)?), side(&new.middle, of(&new)?)];
        Ok(Diff::new(&old_side, &new_side, &only, by_line)?)
    };
    let mut diff = progress::during("comparing", compare)?;
    let mut values = match args.by {
        DiffBy::Value => values(&old, &new, &only)?,
        _ => diff::Values::default(),
    };
    notes.append(&mut values.notes);
    let regressions = diff.regressions(&args.fail_over);
    let undecided = diff.undecided(&args.fail_over);
    diff.notes.extend(notes.into_iter().chain(undecided));
    let sources = Sources::new(&new.middle, &args.source, new_profile(args).as_deref());
    if args.format == DiffFormat::Text {
        diff.add_texts(args.top, &|file| {
            sources.quietly(file).map(|it| it.to_vec())
        });
    }
    let to = args.output.as_deref();
    let width = output::terminal_width(to);
    let shown = match (args.by, args.format) {
        (DiffBy::Function, DiffFormat::Text) => diff::text(&diff, &regressions, args.top, width),
        (DiffBy::Function, DiffFormat::Csv) => diff::csv(&diff),
        (DiffBy::Function, DiffFormat::Json) => diff::json(&diff, &regressions),
        (DiffBy::Line, DiffFormat::Text) => diff::lines_text(&diff, &regressions, args.top, width),
        (DiffBy::Line, DiffFormat::Csv) => diff::lines_csv(&diff),
        (DiffBy::Line, DiffFormat::Json) => diff::lines_json(&diff, &regressions),
        (DiffBy::Value, DiffFormat::Text) => {
            diff::values_text(&diff, &values, &regressions, args.top, width)
        }
        (DiffBy::Value, DiffFormat::Csv) => diff::values_csv(&values),
        (DiffBy::Value, DiffFormat::Json) => diff::values_json(&diff, &values, &regressions),
        (_, DiffFormat::Markdown) => diff::markdown(&diff, &regressions, args.top),
    };
    output::keep_from(to, sources.kept_from())?;
    match args.format {
        DiffFormat::Text => output::page(to, &headcount_report::visible_lines(&shown))?,
        _ => output::write_exact(to, &shown)?,
    }
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

/// What differs among the values that were found.
fn values(old: &Chosen, new: &Chosen, only: &Only) -> anyhow::Result<diff::Values> {
    if old.middle.values.is_empty() && new.middle.values.is_empty() {
        bail!("{}", super::NO_VALUES);
    }
    let of = |side: &Chosen| super::tallied(&side.middle, only.clone(), None, true);
    let mut values = diff::Values::new(&of(old)?, &of(new)?);
    if !old.others.is_empty() || !new.others.is_empty() {
        values
            .notes
            .push("Values are those of the median run of each side.".to_owned());
    }
    Ok(values)
}

/// One side, as far as it is read.
struct Chosen {
    profile: Profile,
    /// The counts; of several runs of the same command, those of the one in the middle.
    middle: Loaded,
    /// The others.
    others: Vec<Vec<i64>>,
    /// What to say of how they were chosen.
    note: Option<String>,
}

impl Chosen {
    /// What is kept of the others, each of which is read and forgotten.
    fn repetitions(
        &self,
        args: &Args,
        only: &Only,
        by_line: bool,
    ) -> anyhow::Result<Vec<Repetition>> {
        let keep = |runs: &Vec<i64>| {
            let mut loaded = super::load_counts(&self.profile, &runs.clone().into())?;
            if by_line {
                follow_sources(args, &mut loaded, new_profile(args));
            }
            Ok(Repetition::new(&loaded.counted, only, by_line)?)
        };
        self.others.iter().map(keep).collect()
    }
}

/// One side of a comparison: some counts, and what is kept of other runs of the same command.
pub fn side(loaded: &Loaded, repetitions: Vec<Repetition>) -> Side<'_> {
    Side {
        counted: &loaded.counted,
        repetitions,
        runs: super::summaries(loaded),
        cpus: loaded.runs.iter().map(|it| it.cpu.clone()).collect(),
    }
}

/// Reads the sources of a run, for the counts of its lines; answers with what to say of them.
fn follow_sources(args: &Args, loaded: &mut Loaded, profile: &Option<PathBuf>) -> Vec<String> {
    let known = loaded.notes.len();
    let sources = Sources::new(loaded, &args.source, profile.as_deref());
    source_flows::follow(loaded, &sources, |_| true);
    loaded.notes.drain(known..).collect()
}

/// Where the new counts are.
fn new_profile(args: &Args) -> &Option<PathBuf> {
    match &args.new {
        Some(_) => &args.new,
        None => &args.old,
    }
}

/// The counts of both sides.
fn load(args: &Args) -> anyhow::Result<[Chosen; 2]> {
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
    Ok([
        load_side(old, &old_runs, "old")?,
        load_side(new, &new_runs, "new")?,
    ])
}

/// The runs of the last two commands.
fn last_two(named: Option<&PathBuf>) -> anyhow::Result<(RunSelection, RunSelection)> {
    let profile = super::open(named)?;
    let mut runs = profile.runs()?;
    runs.retain(|it| it.samples.is_none());
    let mut batches = runs.chunk_by(|one, other| one.batch == other.batch);
    let profile = named.map_or(super::DEFAULT_PROFILE.as_ref(), |it| it.as_path());
    match (batches.next_back(), batches.next_back()) {
        (Some(new), Some(old)) => Ok((numbers(old).into(), numbers(new).into())),
        (Some(all), None) => last_two_of(all).with_context(|| profile.display().to_string()),
        _ => bail!("{}: has no run that was counted", profile.display()),
    }
}

/// The last two of the runs that were taken into a profile at once: a program that counts itself may
/// have run several times before anybody read its counts.
fn last_two_of(runs: &[RunInfo]) -> anyhow::Result<(RunSelection, RunSelection)> {
    let is_repeated = |it: &RunInfo| it.phase.is_empty() && it.command == runs[0].command;
    match runs {
        [.., old, new] if runs.iter().all(is_repeated) => {
            Ok((vec![old.id].into(), vec![new.id].into()))
        }
        [_] => bail!("has only one run: nothing to compare it with"),
        _ => bail!(
            "its runs were taken in at once, and are not all of one command: name two, such as --runs \
             {},{}",
            runs[0].id,
            runs[runs.len() - 1].id
        ),
    }
}

fn numbers(runs: &[RunInfo]) -> Vec<i64> {
    runs.iter().map(|it| it.id).collect()
}

/// One side: several runs of the same command are repetitions; all else is added up.
fn load_side(named: Option<&PathBuf>, which: &RunSelection, name: &str) -> anyhow::Result<Chosen> {
    let profile = super::open(named)?;
    let mut commands = by_command(&profile, which)?;
    let is_repeated = commands.len() > 1 && are_the_same(&commands);
    let note = (commands.len() > 1 && !is_repeated).then(|| {
        format!("The runs of the {name} side are of different commands: their counts are added up.")
    });
    if !is_repeated {
        return Ok(Chosen {
            middle: super::load_counts(&profile, which)?,
            profile,
            others: Vec::new(),
            note,
        });
    }
    let executed = |runs: &Vec<RunInfo>| -> anyhow::Result<u128> {
        let each = runs.iter().map(|it| profile.executed(it.id));
        let each = each.map(|it| it.map(|it| u128::from(it.instructions)));
        Ok(each.sum::<Result<_, _>>()?)
    };
    let sizes = commands.iter().map(executed);
    let sizes = sizes.collect::<anyhow::Result<Vec<_>>>()?;
    let mut order: Vec<usize> = (0..commands.len()).collect();
    order.sort_by_key(|it| sizes[*it]);
    let middle = commands.remove(order[order.len() / 2]);
    Ok(Chosen {
        middle: super::load_counts(&profile, &numbers(&middle).into())?,
        profile,
        others: commands.iter().map(|it| numbers(it)).collect(),
        note,
    })
}

/// The chosen runs that were counted, by the command that they were of.
fn by_command(profile: &Profile, which: &RunSelection) -> anyhow::Result<Vec<Vec<RunInfo>>> {
    let chosen = profile.selected(which)?;
    let mut runs = profile.runs()?;
    runs.retain(|it| it.samples.is_none() && chosen.contains(&it.id));
    let mut commands: Vec<Vec<RunInfo>> = Vec::new();
    for run in runs {
        match commands.iter_mut().find(|it| it[0].batch == run.batch) {
            Some(command) => command.push(run),
            None => commands.push(vec![run]),
        }
    }
    Ok(commands)
}

/// Did each of them run the same programs with the same words, in the same phases?
fn are_the_same(commands: &[Vec<RunInfo>]) -> bool {
    let words = |command: &[RunInfo]| {
        let of_run = |it: &RunInfo| (it.command.clone(), it.phase.clone());
        let mut words: Vec<_> = command.iter().map(of_run).collect();
        words.sort();
        words
    };
    let mut pairs = commands.windows(2);
    pairs.all(|pair| words(&pair[0]) == words(&pair[1]))
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
