//! Runs that the monitor counted: from its journal into the profile.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use headcount_language::Language;
use headcount_model::{FunctionCounts, PAUSED, Run};
use headcount_monitor::foreign_file;
use headcount_monitor::journal;
use headcount_monitor::live::{Live, Moment, SoFar};
use headcount_monitor::{
    CodeRanges, Engine, Error, FileBytes, Onlooker, Outcome, OwnFolder, Settings, WhyStopped,
};
use headcount_profile::{FunctionFacts, ModuleFacts, Problem, Profile, SparseCounts};
use headcount_report::{Count, OwnModules, plural};
use headcount_wire::FOLDER_VARIABLE;

use crate::args::{CountUnit, Counting, EngineName, LanguageName, ProgramArgument};
use crate::asked::{Answers, has_event};
use crate::cache;
use crate::progress::during_on_terminal;
use crate::readings;
use crate::recovered::{Counts, Facts, Recovered, recover, recover_from, recover_phases, totals};
use crate::reserve;
use crate::selection::Selection;
use crate::started_with;
use crate::talk::say;
use crate::tallied;
use crate::tally::Tallies;
use crate::uncounted::{become_program, shortage};
use crate::until::Countdown;
use crate::verbs::{DEFAULT_PROFILE, collect};

/// The end of a journal folder's name.
pub const FOLDER_SUFFIX: &str = ".run";

/// Makes the folder of a new run, in the folder where counts are kept: beside the profile, where the
/// program has no reason to look, if that is possible.
pub fn new_folder(args: &Counting) -> Result<OwnFolder> {
    let beside = OwnFolder::make_around(&collect::folder_of(&profile(args)));
    let around = match beside {
        Ok(beside) => beside,
        Err(_) => usual_folder()?,
    };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let name = format!("{}-{}{FOLDER_SUFFIX}", std::process::id(), now.as_nanos());
    let made = around.make_inside(&name);
    made.with_context(|| format!("{}: cannot be made", around.path().join(name).display()))
}

/// The folder that the user names, or the one in the current folder. If there can be none, one in the
/// cache.
fn usual_folder() -> Result<OwnFolder> {
    let usual = collect::default_folder();
    let made = match collect::own_choice() {
        // Where the user's own links lead is the user's choice.
        Some(named) => {
            fs::create_dir_all(&named).and_then(|()| OwnFolder::open_around(&named.canonicalize()?))
        }
        None => OwnFolder::make_around(&usual).or_else(|error| cache::runs().ok_or(error)),
    };
    made.with_context(|| {
        format!(
            "{}: cannot be made; {FOLDER_VARIABLE} names another place for it",
            usual.display()
        )
    })
}

/// Removes the folder of a run, and the folder around it if that is empty now.
pub fn remove(folder: &OwnFolder) {
    let path = folder.path();
    if let Err(error) = folder.remove()
        && error.kind() != std::io::ErrorKind::NotFound
    {
        say(format!("{}: cannot be removed: {error}", path.display()));
    }
    let around = path.parent().and_then(|it| OwnFolder::open(it).ok());
    if let Some(around) = around {
        let _ = fs::remove_dir(around.path());
    }
}

/// A program that ran and was counted.
pub struct Ran {
    /// How it ended.
    pub outcome: Outcome,
    /// Are its counts in the profile? If not, that is our trouble and not the program's.
    pub stored: Result<()>,
}

/// Runs a program, counts it, and takes the counts into the profile.
pub fn run(
    counting: &Counting,
    program: &ProgramArgument,
    onlooker: Option<&dyn Onlooker>,
    until: Option<&Countdown>,
) -> Result<Ran> {
    let following = Following {
        children: !program.no_follow,
        wait: program.wait,
        duration: None,
        onlooker,
        modules: &|| {
            let first = program.command.first();
            first.map_or_else(Vec::new, |it| started_with::modules(Path::new(it)))
        },
        until,
    };
    let folder = match set_aside().and_then(|()| new_folder(counting)) {
        Ok(folder) => folder,
        Err(error) => return Err(uncounted(program, error)),
    };
    let counted = count(counting, &following, &|| (), |settings| {
        headcount_monitor::run(&program.command, &folder, settings)
    });
    let outcome = counted.map_err(|error| {
        remove(&folder);
        uncounted(program, explained(error).into())
    })?;
    let stored = store(counting, &folder, &outcome);
    if let Some(countdown) = until {
        countdown.tell(&outcome);
    }
    Ok(Ran { outcome, stored })
}

fn explained(error: Error) -> Error {
    match error {
        Error::CannotRun(name, why) => {
            let why = why_not_run(&name, why);
            Error::CannotRun(name, why)
        }
        other => other,
    }
}

/// Of a file that is no program for this machine, the kernel says only that it does not know its
/// format; what is in the file says more.
pub fn why_not_run(name: &str, why: std::io::Error) -> std::io::Error {
    let is_unknown = why.raw_os_error() == Some(libc::ENOEXEC);
    let better = is_unknown.then(|| foreign_kind(Path::new(name))).flatten();
    better.map_or(why, std::io::Error::other)
}

/// What a file is, if that is no program for this machine.
fn foreign_kind(path: &Path) -> Option<String> {
    const HEADER: u64 = 64;
    let mut header = Vec::new();
    let file = foreign_file::open(path).ok()?;
    file.take(HEADER).read_to_end(&mut header).ok()?;
    use headcount_binary::Error::{Kind, Machine, Narrow};
    match headcount_binary::layout(&header).err()? {
        known @ (Machine { .. } | Narrow | Kind { .. }) => Some(known.to_string()),
        _ => None,
    }
}

/// Sets memory aside to let go of programs.
fn set_aside() -> Result<()> {
    match reserve::set_aside() {
        true => Ok(()),
        false => Err(std::io::Error::from_raw_os_error(libc::ENOMEM).into()),
    }
}

/// Nothing was counted, and nothing has run yet. If that is so because there is not enough of
/// something, the program runs uncounted: comes back only if it cannot, or if the reason is another.
fn uncounted(program: &ProgramArgument, error: anyhow::Error) -> anyhow::Error {
    let reason = error.chain().find_map(|it| match it.downcast_ref() {
        Some(Error::Io(_, error)) => shortage(error),
        _ => shortage(it.downcast_ref::<std::io::Error>()?),
    });
    let Some(reason) = reason else {
        return error;
    };
    say(format!("the program runs uncounted: {reason}"));
    become_program(&program.command).into()
}

/// Whom to count besides the program, and for how long.
pub struct Following<'a> {
    pub onlooker: Option<&'a dyn Onlooker>,
    /// The files of the modules that there are in the beginning.
    pub modules: &'a dyn Fn() -> Vec<(String, FileBytes)>,
    pub children: bool,
    /// Also when the program has ended.
    pub wait: bool,
    pub duration: Option<Duration>,
    pub until: Option<&'a Countdown>,
}

/// What was asked for makes no sense; nothing has run.
fn asked_wrongly(error: &anyhow::Error) -> Error {
    Error::Asked(format!("{error:#}"))
}

/// Can threads be told apart, if that is asked for?
fn check_per_thread(args: &Counting, following: &Following<'_>) -> Result<(), Error> {
    let why = match args.per_thread {
        false => return Ok(()),
        true if args.engine() == EngineName::Breakpoint => {
            "only copies count by thread; leave --engine breakpoint and --limit out"
        }
        true if args.calls || following.until.is_some() || has_tallies(args) => {
            "it cannot be combined with --calls, --until, --tally or --targets; count one after the \
             other"
        }
        true if !Selection::new(args).is_everything() => {
            "it cannot be combined with --only, --skip or --unit; choose functions in reports"
        }
        true => return Ok(()),
    };
    Err(Error::Io("--per-thread", std::io::Error::other(why)))
}

/// The languages whose programs are counted when an interpreter runs them.
fn languages(args: &Counting, following: &Following<'_>) -> Result<Vec<Language>, Error> {
    let stands_in_the_way = [
        ("--calls", args.calls),
        ("--per-thread", args.per_thread),
        ("--until", following.until.is_some()),
        ("breakpoints", args.engine() != EngineName::Detour),
    ];
    let mut stands_in_the_way = stands_in_the_way.into_iter().filter(|it| it.1);
    if let Some((what, _)) = stands_in_the_way.next() {
        let wanted = args.language.iter().find(|it| **it != LanguageName::None);
        return match wanted {
            Some(_) => Err(asked_wrongly(&anyhow!(
                "--language cannot be combined with {what}, which counts native code only"
            ))),
            None => Ok(Vec::new()),
        };
    }
    let chosen = |it: &Language| {
        let name = match it {
            Language::Python => LanguageName::Python,
            Language::Lua => LanguageName::Lua,
            Language::Icon => LanguageName::Icon,
        };
        args.language.is_empty() || args.language.contains(&name)
    };
    Ok(Language::ALL.into_iter().filter(chosen).collect())
}

fn has_tallies(args: &Counting) -> bool {
    args.tallies.targets || !args.tallies.tally.is_empty()
}

/// Makes the monitor's settings of what the user typed, and lets it count.
pub fn count(
    args: &Counting,
    following: &Following<'_>,
    begun: &dyn Fn(),
    work: impl FnOnce(&Settings<'_>) -> Result<Outcome, Error>,
) -> Result<Outcome, Error> {
    if args.engine() == EngineName::Detour && args.limit.is_some() {
        let why = std::io::Error::other("only breakpoints stop counting; add --engine breakpoint");
        return Err(Error::Io("--limit", why));
    }
    if args.engine() == EngineName::Breakpoint && args.calls {
        let why = std::io::Error::other("only copies log calls; leave --engine breakpoint out");
        return Err(Error::Io("--calls", why));
    }
    if args.calls && following.until.is_some() {
        let why = std::io::Error::other("a thread has one event counter; leave one of the two out");
        return Err(Error::Io("--calls and --until", why));
    }
    if args.engine() == EngineName::Breakpoint && following.until.is_some() {
        let why = std::io::Error::other("only copies count down; leave --engine breakpoint out");
        return Err(Error::Io("--until", why));
    }
    check_per_thread(args, following)?;
    if has_tallies(args) && (args.calls || args.limit.is_some() || following.until.is_some()) {
        let why =
            "they cannot be combined with --calls, --until or --limit; count one after the other";
        return Err(Error::Io(
            "--tally and --targets",
            std::io::Error::other(why),
        ));
    }
    let languages = languages(args, following)?;
    let tallies = Tallies::new(&args.tallies, &languages).map_err(|error| asked_wrongly(&error))?;
    let selection = Selection::new(args);
    // Who asks for nothing need not know what the program starts with.
    if let Some(tallies) = tallies.as_ref().filter(|_| has_tallies(args)) {
        tallies
            .check(&(following.modules)(), &selection)
            .map_err(|error| asked_wrongly(&error))?;
    }
    let probes = |path: &str, key: &str, bytes: &FileBytes| {
        let found = tallies.as_ref().map(|it| it.probes(path, key, bytes));
        found.unwrap_or_default()
    };
    let entries = |path: &str, key: &str, bytes: &FileBytes| {
        let entries = following.until.map(|it| it.entries(path, key, bytes));
        entries.unwrap_or_default()
    };
    let begin = Instant::now();
    let told = std::cell::Cell::new(begin);
    let progress = |hits: u64| {
        if !args.quiet && told.get().elapsed() > Duration::from_secs(2) {
            told.set(Instant::now());
            let seconds = begin.elapsed().as_secs();
            let hits = headcount_report::thousands(hits);
            let what = match args.engine() {
                EngineName::Detour => "traps",
                EngineName::Breakpoint => "breakpoints met",
            };
            crate::progress::line(&format!("{hits} {what} ... {seconds} s"));
        }
    };
    let answers = Answers::new(args);
    let outcome = work(&Settings {
        engine: match args.engine() {
            EngineName::Detour => Engine::Detour,
            EngineName::Breakpoint => Engine::Breakpoint,
        },
        choose: &|module| selection.choose(module),
        wanted: &|path, key, bytes| wanted(&selection, path, key, bytes),
        why_nothing: &|module| selection.why_nothing(module),
        wants: &|path, is_program| selection.wants(path, is_program),
        libraries: selection.has_libraries(),
        watch_jumps: args.unit != CountUnit::Function,
        follow: following.children,
        wait: following.wait,
        limit: args.limit,
        batch: args.batch.as_deref().unwrap_or_default(),
        calls: args.calls,
        by_thread: args.per_thread,
        tallying: tallies.as_ref().map(|it| it.for_monitor(&probes)),
        until: following.until.map(|it| it.for_monitor(&entries)),
        duration: following.duration,
        recall: &cache::prepared,
        remember: &cache::keep_prepared,
        name: &|name| headcount_report::demangle(name).into_owned(),
        is_short_of_memory: &reserve::is_used,
        begun,
        progress: &progress,
        has_event: &has_event,
        answer: &|asked| answers.answer(asked),
        onlooker: following.onlooker,
    });
    if told.get() != begin {
        crate::progress::clear();
    }
    outcome
}

/// The code of functions of which anything was chosen. `None`: all, or nobody knows better.
fn wanted(selection: &Selection, path: &str, key: &str, bytes: &FileBytes) -> Option<CodeRanges> {
    if selection.is_everything() {
        return None;
    }
    let facts = cache::facts(path, key, bytes).ok()?;
    let chosen = selection.choose_functions(&facts.module().ok()?);
    chosen.contains(&false).then(|| facts.code_of(&chosen))
}

/// The profile that counts go into.
pub fn profile(args: &Counting) -> PathBuf {
    let named = args.output.clone();
    named.unwrap_or_else(|| DEFAULT_PROFILE.into())
}

/// Takes what was just counted into the profile, and says what it is. If that cannot be, the counts
/// stay, and the error says how to get at them.
pub fn store(args: &Counting, folder: &OwnFolder, outcome: &Outcome) -> Result<()> {
    if let Some(trouble) = &outcome.trouble {
        let why = shortage(trouble).unwrap_or_else(|| trouble.to_string());
        say(format!("counting ended before the program did: {why}"));
    }
    if reserve::is_used() {
        say(kept(args, folder, None));
        return Ok(());
    }
    try_store(args, folder, outcome).map_err(|error| {
        if error.is::<NothingChosen>() {
            remove(folder);
            return error;
        }
        keep_files(folder, outcome);
        let kept = kept(args, folder, Some(&error));
        error.context(kept)
    })
}

/// Where counts are that could not be stored, and what takes them from there.
fn kept(args: &Counting, folder: &OwnFolder, error: Option<&anyhow::Error>) -> String {
    let mut command = "headcount collect".to_owned();
    let parent = around(folder);
    if parent != Path::new(headcount_wire::DEFAULT_FOLDER) {
        command.push_str(&format!(" {}", in_shell(parent)));
    }
    let error = error.and_then(|it| it.downcast_ref::<headcount_profile::Error>());
    let may_pass = |it: &Problem| matches!(it, Problem::Busy | Problem::Full | Problem::Failing(_));
    let to = match error {
        Some(error) if !may_pass(&error.problem) => Some(another(&profile(args))),
        _ => args.output.clone(),
    };
    if let Some(to) = to {
        command.push_str(&format!(" -o {}", in_shell(&to)));
    }
    let folder = folder.path().display();
    format!("the counts are kept in {folder}; `{command}` takes them from there")
}

fn around(folder: &OwnFolder) -> &Path {
    folder.path().parent().unwrap_or(folder.path())
}

/// A name for a new profile, in the current folder; or where there is room for all, if nothing can be
/// made here.
pub fn another(profile: &Path) -> PathBuf {
    let stem = profile.file_stem().unwrap_or_default().to_string_lossy();
    let folder = match tempfile::tempfile_in(".") {
        Ok(_) => PathBuf::new(),
        Err(_) => std::env::temp_dir(),
    };
    let names = (2_u32..).map(|number| folder.join(format!("{stem}-{number}.db")));
    let mut free = names.filter(|it| it.symlink_metadata().is_err());
    free.next().unwrap_or_default()
}

/// A path as a word of a shell's command.
fn in_shell(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+".contains(it);
    match path.chars().all(is_plain) && !path.starts_with('-') {
        true => path.into_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

/// Leaves what `headcount collect` will need of files that are no longer where they were.
fn keep_files(folder: &OwnFolder, outcome: &Outcome) {
    for (number, file) in outcome.files.iter().enumerate() {
        if file.is_in_place() {
            continue;
        }
        if let Err(error) = file.copy_to(folder, number) {
            let path = file.path();
            say(format!(
                "{path}: was replaced or removed, and cannot be copied for a later report: {error}"
            ));
        }
    }
}

fn try_store(args: &Counting, folder: &OwnFolder, outcome: &Outcome) -> Result<()> {
    let path = profile(args);
    if is_for_later(args, outcome) {
        keep_files(folder, outcome);
        if !args.quiet {
            let totals = totals(&journal::read(folder)?)?;
            let threads = born(totals.processes, totals.threads);
            say(format!(
                "{}; {threads}; {}",
                plural(totals.instructions, "instruction"),
                plural(outcome.hits, "trap")
            ));
            say(format!(
                "the counts are kept in {}; the first report takes them into {}, and reads the \
                 large programs that were never read before",
                around(folder).display(),
                path.display()
            ));
        }
        return Ok(());
    }
    let Stored {
        run,
        modules,
        reached,
        has_counts,
    } = match args.quiet {
        true => add(args, outcome, folder, &path),
        false => during_on_terminal(&format!("adding to {}", path.display()), || {
            add(args, outcome, folder, &path)
        }),
    }?;
    match (args.quiet, has_counts) {
        (false, _) => {
            summarise(args.engine(), &run, &modules, &reached, outcome.hits, &path);
            tell_costly_stops(outcome, &modules);
        }
        // Nothing was counted: all did not go well.
        (true, false) => run.notes.iter().for_each(say),
        (true, true) => {}
    }
    remove(folder);
    if has_counts
        && run.values.is_some()
        && let Err(error) = tallied::tell(&run, &path, args.quiet)
    {
        say(format!(
            "what was counted by value is in {}, but: {error:#}",
            path.display()
        ));
    }
    Ok(())
}

/// Would it take long to store a run, so that it is better done when somebody asks for it? Reading
/// verbs collect what they find, as they do for a run that headcount did not live to store.
fn is_for_later(args: &Counting, outcome: &Outcome) -> bool {
    if args.output.is_some() || !Selection::new(args).is_everything() {
        return false;
    }
    // With breakpoints, everything was read before.
    args.engine() == EngineName::Detour && outcome.files.iter().any(cache::takes_long)
}

/// The user's choice left nothing to count: there is no run to keep.
#[derive(Debug, thiserror::Error)]
pub struct NothingChosen {
    notes: Vec<String>,
}

impl std::fmt::Display for NothingChosen {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Other notes may tell why, but only if these do not.
        let is_about_it = |it: &&String| it.starts_with("Nothing ");
        let telling = self.notes.iter().filter(is_about_it);
        let telling: Vec<&str> = telling.map(String::as_str).collect();
        let why = match telling.is_empty() {
            true => self.notes.join(" "),
            false => telling.join(" "),
        };
        write!(out, "no run is kept, for it would be empty: {why}")
    }
}

/// What went into the profile.
struct Stored {
    run: Run,
    modules: Vec<ModuleFacts>,
    /// The functions that ran, if somebody wants to know.
    reached: Vec<Reached>,
    /// Did the user's choice leave anything to count?
    has_counts: bool,
}

/// Takes what the journal in `folder` says into a profile.
fn add(args: &Counting, outcome: &Outcome, folder: &OwnFolder, profile: &Path) -> Result<Stored> {
    let selection = Selection::new(args);
    let Recovered {
        mut run,
        facts,
        counts,
        ..
    } = recover(folder, Some(outcome), Some(&selection))?;
    let has_counts = counts.iter().any(Counts::is_chosen);
    if !has_counts {
        run.notes.extend(why_nothing(&facts, &selection)?);
        if selection.is_choosy() {
            return Err(NothingChosen { notes: run.notes }.into());
        }
    }
    // An empty run is not what the next report is to show.
    if facts.is_empty() {
        return Ok(Stored {
            run,
            modules: Vec::new(),
            reached: Vec::new(),
            has_counts,
        });
    }
    let modules: Vec<ModuleFacts> = facts.into_iter().map(Facts::encoded).collect();
    let reached = match args.quiet {
        true => Vec::new(),
        false => reached(args.engine(), &modules, &counts)?,
    };
    let phases = recover_phases(folder, Some(outcome), Some(&selection))?;
    if phases.iter().any(|it| it.run.phase == PAUSED) {
        run.notes.push(format!(
            "The program paused counting: reports leave out what it executed meanwhile; `--phase {PAUSED}` \
             shows it."
        ));
    }
    match phases.is_empty() {
        true => put(profile, &modules, &run, counts)?,
        false => put_all(profile, phases)?,
    }
    Ok(Stored {
        run,
        modules,
        reached,
        has_counts,
    })
}

fn put(profile: &Path, modules: &[ModuleFacts], run: &Run, counts: Vec<Counts>) -> Result<()> {
    put_into(Profile::create_or_open(profile)?, modules, run, counts)?;
    Ok(())
}

/// The same for runs that were recovered.
fn put_all(profile: &Path, recovered: Vec<Recovered>) -> Result<()> {
    for Recovered {
        run, facts, counts, ..
    } in recovered
    {
        let modules: Vec<ModuleFacts> = facts.into_iter().map(Facts::encoded).collect();
        put(profile, &modules, &run, counts)?;
    }
    Ok(())
}

fn put_into(
    mut profile: Profile,
    modules: &[ModuleFacts],
    run: &Run,
    counts: Vec<Counts>,
) -> Result<Profile> {
    let counted = modules.iter().zip(counts);
    let counted: Vec<_> = counted
        .map(|(it, counts)| counts.kept(&it.build_id))
        .collect();
    profile.add_encoded(modules, run, &counted)?;
    Ok(profile)
}

/// Why nothing was chosen, as notes. (Where there are breakpoints, the monitor has said it.)
fn why_nothing(facts: &[Facts], selection: &Selection) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let mut has_copies = false;
    for facts in facts {
        if let Facts::Copies(facts) = facts {
            has_copies = true;
            notes.extend(selection.why_nothing(&facts.module()?));
        }
    }
    if has_copies && notes.is_empty() && !selection.is_everything() {
        notes.push("Nothing is counted: no name matches what was asked for.".to_owned());
    }
    Ok(notes)
}

/// What became of the folder of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is in the profile.
    Stored,
    /// Headcount was killed before it counted anything.
    Nothing,
    /// The run goes on.
    GoesOn,
}

/// Takes a run that headcount did not live to store into the profile.
pub fn collect_folder(folder: &OwnFolder, profile: &Path) -> Result<Taken> {
    if journal::is_being_written(folder) {
        return Ok(Taken::GoesOn);
    }
    if !journal::has_begun(folder)? {
        return Ok(match maker_lives(folder) {
            true => Taken::GoesOn,
            false => Taken::Nothing,
        });
    }
    let mut recovered = recover_phases(folder, None, None)?;
    if recovered.is_empty() {
        recovered.push(recover(folder, None, None)?);
    }
    put_all(profile, recovered)?;
    Ok(Taken::Stored)
}

/// What a run that goes on has counted so far, as a profile in memory; and when that was.
pub fn so_far(live: &Live) -> Result<(Profile, Moment)> {
    let SoFar {
        written, moment, ..
    } = live.ask()?;
    let Recovered {
        run, facts, counts, ..
    } = recover_from(written, live.folder(), None, None)?;
    let modules: Vec<ModuleFacts> = facts.into_iter().map(Facts::encoded).collect();
    let profile = put_into(Profile::in_memory()?, &modules, &run, counts)?;
    Ok((readings::with_counts(profile), moment))
}

/// Does the headcount that made a folder still run? Its name begins with the number.
fn maker_lives(folder: &OwnFolder) -> bool {
    let name = folder.path().file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let maker = name
        .split_once('-')
        .and_then(|(pid, _)| pid.parse::<u32>().ok());
    maker.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

/// A function that ran.
struct Reached {
    /// How many instructions it executed. Where there are breakpoints: how many of those it met.
    executed: u64,
    name: String,
    /// Whether it is the user's own.
    is_own: bool,
}

/// The source file of a function, or nothing.
fn file_of<'a>(module: &'a ModuleFacts, function: &FunctionFacts) -> &'a str {
    let file = function
        .source
        .and_then(|it| module.files.get(it.0.index()));
    file.map_or("", String::as_str)
}

/// The functions that ran, most executed first.
fn reached(engine: EngineName, modules: &[ModuleFacts], counts: &[Counts]) -> Result<Vec<Reached>> {
    let functions = modules.iter().flat_map(|module| {
        let functions = module.functions.iter();
        functions.map(|it| (module.path.as_str(), file_of(module, it), it.name.as_str()))
    });
    let own = OwnModules::of(modules.iter().map(|it| it.path.as_str())).with_functions(functions);
    let mut reached = Vec::new();
    for (module, counts) in modules.iter().zip(counts) {
        let executed = match counts {
            Counts::Made(counts) => executed(engine, module, counts)?,
            Counts::Unread(readings) => readings::executed(module, readings),
        };
        reached.extend(executed.into_iter().map(|(number, executed)| {
            let function = &module.functions[number];
            Reached {
                executed,
                name: function.name.clone(),
                is_own: own.has_function(&module.path, file_of(module, function), &function.name),
            }
        }));
    }
    reached.sort_by(|a, b| b.executed.cmp(&a.executed).then(a.name.cmp(&b.name)));
    Ok(reached)
}

/// What each function that ran executed, by its number in the module.
fn executed(
    engine: EngineName,
    module: &ModuleFacts,
    counts: &SparseCounts,
) -> Result<BTreeMap<usize, u64>> {
    let functions = counts.functions.iter();
    let ran = |it: &&(usize, FunctionCounts)| it.1.blocks.iter().flatten().any(|it| *it > 0);
    let ran: Vec<_> = functions.filter(ran).collect();
    let part = module.part(ran.iter().map(|(function, _)| *function))?;
    let sums = part
        .functions
        .iter()
        .zip(ran)
        .map(|(function, (number, counts))| {
            let blocks = headcount_report::blocks(function, counts);
            let sum = blocks.fold(0_u64, |sum, it| {
                let count = match engine {
                    EngineName::Detour => it.executed(0..it.block.instructions).ok(),
                    EngineName::Breakpoint => Some(it.count()),
                };
                sum.saturating_add(count.and_then(Count::value).unwrap_or(0))
            });
            (*number, sum)
        });
    Ok(sums.collect())
}

/// What made the program slow, if stops did.
fn tell_costly_stops(outcome: &Outcome, modules: &[ModuleFacts]) {
    for stops in &outcome.costly {
        let Some(path) = outcome.files.get(stops.module).map(|it| it.path()) else {
            continue;
        };
        let at = stops.at;
        let module = modules.iter().find(|it| it.path == path);
        let name = module.and_then(|module| {
            let around = module.functions_in(std::slice::from_ref(&(at.0..at.0 + 1)));
            let function = module.functions.get(*around.first()?)?;
            Some(headcount_report::demangle(&function.name).into_owned())
        });
        let name = name.unwrap_or_else(|| path.to_owned());
        let times = headcount_report::thousands(stops.times);
        say(match stops.why {
            WhyStopped::NoRoom(1) => format!(
                "{times} traps at {at} in {name} took a tenth of the time or more: there is no room \
                 for a jump there"
            ),
            WhyStopped::NoRoom(places) => format!(
                "{times} traps at {places} places, most of them at {at} in {name}, took a tenth of \
                 the time or more: there is no room for jumps there"
            ),
            WhyStopped::MayCall => format!(
                "{times} stops at system calls took a tenth of the time or more: code at {at} in \
                 {name}, which is not counted, may make one, so all were watched"
            ),
        });
    }
}

/// A few words on what was counted.
fn summarise(
    engine: EngineName,
    run: &Run,
    modules: &[ModuleFacts],
    reached: &[Reached],
    hits: u64,
    profile: &Path,
) {
    let number = |number: u64| headcount_report::thousands(number);
    let functions = plural(reached.len() as u64, "function");
    let threads: usize = run.processes.iter().map(|it| it.threads.len()).sum();
    let threads = born(run.processes.len(), threads);
    let profile = profile.display();
    say(match engine {
        EngineName::Detour => {
            let executed = reached.iter().map(|it| it.executed);
            let executed = executed.fold(0, u64::saturating_add);
            let executed = plural(executed, "instruction");
            let hits = plural(hits, "trap");
            format!("{executed} in {functions}; {threads}; {hits}; added to {profile}")
        }
        EngineName::Breakpoint => {
            let hits = number(hits);
            format!("{hits} breakpoints met in {functions}; {threads}; added to {profile}")
        }
    });
    // The user's own, if there are any.
    let has_own = reached.iter().any(|it| it.is_own);
    let shown = reached.iter().filter(|it| it.is_own || !has_own);
    let hottest: Vec<String> = shown
        .take(3)
        .map(|it| {
            let name = headcount_report::brief(&it.name);
            format!("{name} ({})", number(it.executed))
        })
        .collect();
    if !hottest.is_empty() {
        let what = match engine {
            EngineName::Detour => "most executed",
            EngineName::Breakpoint => "most met",
        };
        say(format!("{what}: {}", hottest.join(", ")));
    }
    tell_uncounted(run, modules);
}

/// `1 process, 2 threads`. (What is several of `process` is no `processs`.)
fn born(processes: usize, threads: usize) -> String {
    let processes = match processes {
        1 => "1 process".to_owned(),
        many => format!("{} processes", headcount_report::thousands(many as u64)),
    };
    format!("{processes}, {}", plural(threads as u64, "thread"))
}

/// What was not counted. Of libraries that came with the system, only how much that is: readers would
/// get used to it.
fn tell_uncounted(run: &Run, modules: &[ModuleFacts]) {
    let paths = modules.iter().map(|it| it.path.as_str());
    let own = OwnModules::of(paths);
    let (of_libraries, notes): (Vec<&String>, Vec<&String>) =
        run.notes.iter().partition(|it| own.is_told_of_library(it));
    let (mine, others): (Vec<&ModuleFacts>, Vec<&ModuleFacts>) =
        modules.iter().partition(|it| own.has(&it.path));
    let count = |modules: &[&ModuleFacts]| modules.iter().map(|it| it.refusals.len()).sum();
    let (here, elsewhere): (usize, usize) = (count(&mine), count(&others) + of_libraries.len());
    let number = |it: usize| headcount_report::thousands(it as u64);
    let what = match (here, elsewhere) {
        (0, 0) => None,
        (0, there) => Some(format!("{}, all in libraries", number(there))),
        (here, 0) => Some(number(here)),
        (here, there) => Some(format!(
            "{}, and {} in libraries",
            number(here),
            number(there)
        )),
    };
    if let Some(what) = what {
        say(format!(
            "not counted: {what}; `headcount report --all` says what and why"
        ));
    }
    notes.into_iter().for_each(say);
}
