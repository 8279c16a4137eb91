//! Print source text, or instructions, with counts in the margin.

use crate::args::{Annotate, Histogram};
use crate::module_files::Files;
use crate::sources::{Lines, Look, Sources, say_private};
use crate::{output, source_flows, talk};
use anyhow::bail;
use headcount_model::{Counted, Module};
use headcount_profile::Loaded;
use headcount_report::{
    Filter, LineCount, Only, Own, OwnModules, Refused, Tallied,
    annotate::{self, Around, Chosen, Fold, Scale, View},
    coverage_notes, line_counts_in, nothing_called, text, thousands, visible,
};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

pub fn run(args: &Annotate) -> anyhow::Result<ExitCode> {
    let (profile, names) = args.profile_and_names();
    let mut loaded = super::load(profile.as_ref(), &args.runs)?;
    let sources = Sources::new(&loaded, &args.source, profile.as_deref());
    let names = [names, &args.filter.only].concat();
    let named = (!names.is_empty()).then(|| chosen(&loaded, &names));
    let named = named.transpose()?;
    source_flows::follow(&mut loaded, &sources, |module| {
        named.as_ref().is_none_or(|it| it.may_be_in(module))
    });
    let own = super::own(&args.own, &loaded, !args.names.no_demangle);
    let mut chosen = match named {
        None => all_that_ran(&loaded, &own, args)?,
        Some(named) => named,
    };
    narrow(&mut chosen, &loaded, args)?;
    let tallied = super::tallied(&loaded, Only::default(), None, !args.names.no_demangle)?;
    if let Some(suffix) = &args.write {
        return write_beside(&loaded, &chosen, suffix, &sources);
    }
    if args.json {
        let json = as_json(&loaded, &chosen, &tallied, args, &sources)?;
        output::keep_from(args.output.as_deref(), sources.kept_from())?;
        output::write_exact(args.output.as_deref(), &format!("{json:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_named = !names.is_empty();
    let mut shown = match args.asm {
        true => assembly(&loaded, &chosen, args, is_named, &sources)?,
        false => listings(&loaded, &chosen, &tallied, args, is_named, &sources)?,
    };
    if !is_named {
        sources.say_missing(&|file| own.library_of_file(file).is_none());
    }
    if shown.is_empty() {
        bail!("{}", why_nothing(&loaded, &chosen, &names));
    }
    let own = (!is_named).then_some(&own);
    let doubts = tallied.doubts.iter().chain(&tallied.notes).cloned();
    let ending = ending(&loaded, own, &chosen, doubts, !args.names.no_demangle);
    shown.push_str(&ending);
    output::keep_from(args.output.as_deref(), sources.kept_from())?;
    match args.no_pager {
        true => output::write(args.output.as_deref(), &shown)?,
        false => output::page(args.output.as_deref(), &shown)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Why there is no source to show, and what to do about it.
fn why_nothing(loaded: &Loaded, chosen: &Chosen, names: &[String]) -> String {
    let has_source = |(module, function): &(usize, usize)| {
        let functions = loaded.counted.get(*module).map(|it| &it.module.functions);
        functions.is_some_and(|it| it[*function].source.is_some())
    };
    let is_known = !chosen.files.is_empty() || chosen.functions.iter().any(has_source);
    let (what, words) = match names {
        [] => ("what ran".to_owned(), String::new()),
        names => (names.join(", "), format!(" {}", names.join(" "))),
    };
    let modules = loaded.counted.iter().map(|it| &it.module);
    let mut functions = modules.flat_map(|it| &it.functions);
    if names.is_empty() && chosen.is_empty() && functions.any(|it| it.source.is_some()) {
        return "nothing to show: the only sources that are known are of libraries. Name a file or a \
                function, say with --own what is yours, or build it with -g; `headcount annotate --asm` \
                needs no source"
            .to_owned();
    }
    match is_known {
        true => format!(
            "nothing to show: no source of {what} was found that may be shown; `headcount annotate \
             --asm{words}` needs none"
        ),
        false => format!(
            "nothing to show: nobody knows the source of {what}, for it was built without -g; \
             `headcount annotate --asm{words}` shows its instructions"
        ),
    }
}

/// The user's own files of which a line ran, or functions. Others are only numbered.
fn all_that_ran(loaded: &Loaded, own: &Own, args: &Annotate) -> anyhow::Result<Chosen> {
    let (chosen, left_out) = annotate::own(&loaded.counted, own, args.asm)?;
    let what = match (args.asm, left_out) {
        (_, 0) => return Ok(chosen),
        (true, 1) => "function",
        (true, _) => "functions",
        (false, 1) => "file",
        (false, _) => "files",
    };
    let left_out = thousands(left_out as u64);
    talk::say(format!(
        "{left_out} {what} of libraries left out; name them to see them"
    ));
    Ok(chosen)
}

fn chosen(loaded: &Loaded, names: &[String]) -> anyhow::Result<Chosen> {
    let mut all = Chosen::default();
    for name in names {
        let found = annotate::choose(&loaded.counted, name);
        if found.is_empty() {
            bail!("{}", nothing_called(&loaded.counted, name));
        }
        all.files.extend(found.files);
        all.functions.extend(found.functions);
    }
    Ok(all)
}

/// Leaves out what is not wanted.
fn narrow(chosen: &mut Chosen, loaded: &Loaded, args: &Annotate) -> anyhow::Result<()> {
    // What is wanted was chosen already, by rules that know more.
    let filter = Filter {
        only: &[],
        ..args.filter.get()
    };
    let only = super::only(filter, &[loaded], !args.names.no_demangle)?;
    chosen.narrow(&loaded.counted, &only);
    Ok(())
}

/// So many hot lines are shown before whole files, which are longer than a screen.
const HOTTEST: usize = 10;

fn listings(
    loaded: &Loaded,
    chosen: &Chosen,
    tallied: &Tallied,
    args: &Annotate,
    is_named: bool,
    sources: &Sources,
) -> anyhow::Result<String> {
    let counts = line_counts_in(&loaded.counted, |it| chosen.may_be_in(it))?;
    let none = BTreeMap::new();
    let excerpts = annotate::excerpts(&loaded.counted, chosen, !args.names.no_demangle)?;
    let branches = branches(loaded, chosen, args);
    let time = super::time(loaded);
    let mut shown = String::new();
    let mut excerpts: Vec<_> = excerpts.iter().collect();
    if !is_named {
        // Those that nobody named come as hot as they are.
        let executed = |file: &str| counts.get(file).map_or(0, executed_in);
        excerpts.sort_by_key(|(file, _)| std::cmp::Reverse(executed(file)));
    }
    let to = args.output.as_deref();
    let files: Vec<_> = excerpts
        .into_iter()
        .filter_map(|(file, excerpts)| {
            let lines = lines_of(sources, file, is_named)?;
            let counts = counts.get(file.as_str()).unwrap_or(&none);
            Some((file, excerpts, lines, counts))
        })
        .collect();
    if let Some(width) = output::terminal_width(to).filter(|_| !is_named) {
        let counts = files
            .iter()
            .map(|(file, _, lines, counts)| (file.as_str(), lines.as_slice(), *counts));
        let counts: Vec<_> = counts.collect();
        shown.push_str(&annotate::hottest(&counts, HOTTEST, width));
        shown.push('\n');
    }
    for (file, excerpts, lines, counts) in files {
        shown.push_str(&match args.histogram {
            None if args.columns => {
                let blocks = annotate::column_counts(&loaded.counted, file);
                annotate::columns(&lines, counts, &blocks, excerpts)
            }
            None => {
                let times = time
                    .as_ref()
                    .map(|it| annotate::line_times(it, file, counts));
                let values = annotate::line_values(tallied, file);
                let view = View {
                    times: times.as_ref(),
                    values: Some(&values),
                    branches: branches.get(file.as_str()),
                    fold: fold(args),
                    width: args.width.or_else(|| output::terminal_width(to)),
                };
                annotate::listing(&lines, counts, excerpts, &view)
            }
            Some(scale) => {
                let width = args.width.unwrap_or_else(|| output::width(to));
                annotate::histogram(&lines, counts, excerpts, fold(args), scale.into(), width)
            }
        });
        shown.push('\n');
    }
    Ok(shown)
}

/// What is known of branches, by file and line.
fn branches(loaded: &Loaded, chosen: &Chosen, args: &Annotate) -> annotate::BranchLines {
    let files = Files::default();
    let pointers = |module: &Module| files.pointers(module);
    annotate::line_branches(
        &loaded.counted,
        chosen,
        &headcount_x86::transfers,
        &pointers,
        args.checks,
    )
}

/// The lines of a file, if they may be shown. Of files that somebody named, each that is missing is told.
fn lines_of(sources: &Sources, file: &str, is_named: bool) -> Option<Lines> {
    match is_named {
        true => sources.lines(file),
        false => sources.quietly(file),
    }
}

/// The instructions that the lines of a file executed, as far as that is known.
fn executed_in(lines: &BTreeMap<u32, LineCount>) -> u64 {
    let executed = lines.values().filter_map(|it| it.executed.value());
    executed.fold(0, u64::saturating_add)
}

/// What to fold away. Who asks for what never ran wants to see it in its place.
fn fold(args: &Annotate) -> Option<Fold> {
    const SOME: u32 = 3;
    match (args.never, args.context) {
        (true, context) => Some(Fold {
            around: Around::Never,
            context: context.unwrap_or(SOME),
        }),
        (false, Some(context)) => Some(Fold {
            around: Around::Ran,
            context,
        }),
        (false, None) => None,
    }
}

/// The same for machines.
fn as_json(
    loaded: &Loaded,
    chosen: &Chosen,
    tallied: &Tallied,
    args: &Annotate,
    sources: &Sources,
) -> anyhow::Result<serde_json::Value> {
    let demangle = !args.names.no_demangle;
    if args.asm {
        let mut functions = Vec::new();
        for (module, it) in loaded.counted.iter().enumerate() {
            let is_chosen = |function: usize| is_chosen(it, module, function, chosen);
            let some = annotate::functions_as_json(it, &is_chosen, demangle, &super::decode)?;
            functions.extend(some);
        }
        return Ok(serde_json::json!({ "version": 1, "functions": functions }));
    }
    let counts = line_counts_in(&loaded.counted, |it| chosen.may_be_in(it))?;
    let branches = branches(loaded, chosen, args);
    let none = BTreeMap::new();
    let mut files = Vec::new();
    for (file, excerpts) in annotate::excerpts(&loaded.counted, chosen, demangle)? {
        let lines = sources.lines(&file);
        files.push(annotate::lines_as_json(
            &file,
            lines.as_ref().map(|it| it.as_slice()),
            counts.get(file.as_str()).unwrap_or(&none),
            branches.get(file.as_str()),
            &annotate::line_values(tallied, &file),
            &excerpts,
        ));
    }
    Ok(serde_json::json!({ "version": 1, "files": files }))
}

/// Is this function among what the user named, by itself or by its file?
fn is_chosen(it: &Counted, module: usize, function: usize, chosen: &Chosen) -> bool {
    let source = it.module.functions[function].source;
    let file = source.and_then(|(file, _)| it.module.files.get(file.index()));
    chosen.functions.contains(&(module, function))
        || file.is_some_and(|file| chosen.files.contains(file))
}

/// Writes each file with its counts beside the original. A profile may come from anyone: only files
/// below the current folder get such company.
fn write_beside(
    loaded: &Loaded,
    chosen: &Chosen,
    suffix: &str,
    sources: &Sources,
) -> anyhow::Result<ExitCode> {
    if chosen.files.is_empty() {
        bail!("--write is for source files; name some, or nothing for all that ran");
    }
    let counts = line_counts_in(&loaded.counted, |it| chosen.may_be_in(it))?;
    let none = BTreeMap::new();
    let mut written = 0;
    for file in &chosen.files {
        let path = Path::new(file);
        let is_plain = |it: Component| matches!(it, Component::Normal(_) | Component::CurDir);
        if !path.components().all(is_plain) {
            talk::say(format!(
                "{file}: is not below the current folder; nothing written"
            ));
            continue;
        }
        let (lines, kept_from) = match sources.exactly(path) {
            Look::Shown(lines, kept_from) => (lines, kept_from),
            Look::Private => {
                say_private(file);
                continue;
            }
            Look::Missing => {
                talk::say(format!(
                    "{file}: source not found; go to the folder it was built in"
                ));
                continue;
            }
        };
        let counts = counts.get(file.as_str()).unwrap_or(&none);
        let beside = PathBuf::from(format!("{file}{suffix}"));
        let text = annotate::beside(&lines, counts);
        output::write_new(&beside, &text, kept_from)?;
        written += 1;
    }
    if written == 0 {
        bail!("nothing written");
    }
    let files = if written == 1 { "file" } else { "files" };
    talk::say(format!("wrote {written} {files} ending in {suffix}"));
    Ok(ExitCode::SUCCESS)
}

impl From<Histogram> for Scale {
    fn from(it: Histogram) -> Self {
        match it {
            Histogram::Full => Self::Full,
            Histogram::Scaled => Self::Scaled,
        }
    }
}

fn assembly(
    loaded: &Loaded,
    chosen: &Chosen,
    args: &Annotate,
    is_named: bool,
    sources: &Sources,
) -> anyhow::Result<String> {
    let line = |file: &str, line: u32| {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        lines_of(sources, file, is_named)?.get(index).cloned()
    };
    let time = super::time(loaded);
    let mut shown = String::new();
    for (index, it) in loaded.counted.iter().enumerate() {
        let is_chosen = |function: usize| is_chosen(it, index, function, chosen);
        let demangle = !args.names.no_demangle;
        let listing = annotate::assembly(
            it,
            &is_chosen,
            demangle,
            &super::decode,
            &line,
            time.as_ref(),
        )?;
        if !listing.is_empty() {
            shown.push_str(&listing);
            shown.push('\n');
        }
    }
    Ok(shown)
}

/// What was not counted of what is shown, if anything, and what makes counts uncertain.
fn ending(
    loaded: &Loaded,
    own: Option<&Own>,
    chosen: &Chosen,
    doubts: impl Iterator<Item = String>,
    demangle: bool,
) -> String {
    let is_shown = |it: &Refused| {
        let modules = loaded.counted.iter().map(|it| &it.module).enumerate();
        let mut here = modules.filter(|(_, module)| module.path == it.module);
        here.any(|(index, module)| match own {
            Some(own) => own.has_refused(module, &it.refusal),
            None => is_of_chosen(index, module, chosen),
        })
    };
    let refused = headcount_report::refused(&loaded.counted);
    let (refused, others): (Vec<_>, Vec<_>) = refused.into_iter().partition(is_shown);
    let paths: Vec<String> = (loaded.counted.iter())
        .map(|it| it.module.path.clone())
        .collect();
    let modules = OwnModules::of(paths.iter().map(String::as_str));
    let (of_libraries, mut notes): (Vec<String>, Vec<String>) = super::notes(loaded)
        .into_iter()
        .partition(|note| modules.is_told_of_library(note));
    let elsewhere = others.len() + of_libraries.len();
    let mut out = match (refused.is_empty(), elsewhere) {
        (true, 0) => String::new(),
        _ => text::not_counted(&refused, elsewhere, &paths),
    };
    notes.extend(super::time_note(loaded));
    notes.extend(coverage_notes(&loaded.counted, demangle));
    notes.extend(doubts);
    for note in notes {
        out.push_str(&format!("Note: {}\n", visible(&note)));
    }
    out
}

/// Whether anything of a module is chosen.
fn is_of_chosen(index: usize, module: &Module, chosen: &Chosen) -> bool {
    let mut functions = chosen.functions.iter();
    functions.any(|(module, _)| *module == index)
        || module.files.iter().any(|file| chosen.files.contains(file))
}
