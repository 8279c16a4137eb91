//! Print source text, or instructions, with counts in the margin.

use crate::args::{Annotate, Histogram};
use crate::sources::{Look, Sources, say_private};
use crate::{output, source_flows, talk};
use anyhow::bail;
use headcount_model::Counted;
use headcount_profile::Loaded;
use headcount_report::{
    LineCount,
    annotate::{self, Around, Chosen, Fold, Scale, View},
    coverage_notes, line_counts, nothing_called, text, visible,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

pub fn run(args: &Annotate) -> anyhow::Result<ExitCode> {
    let mut loaded = super::load(args.profile.input.as_ref(), &args.runs.runs)?;
    let sources = Sources::new(&loaded, &args.source, args.profile.input.as_deref());
    source_flows::follow(&mut loaded, &sources);
    let chosen = match args.names_wanted.is_empty() {
        true => all_that_ran(&loaded)?,
        false => chosen(&loaded, &args.names_wanted)?,
    };
    if let Some(suffix) = &args.write {
        return write_beside(&loaded, &chosen, suffix, &sources);
    }
    if args.json {
        let json = as_json(&loaded, &chosen, args, &sources)?;
        output::keep_from(args.output.as_deref(), sources.kept_from())?;
        output::write_exact(args.output.as_deref(), &format!("{json:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut shown = match args.asm {
        true => assembly(&loaded, &chosen, args, &sources)?,
        false => listings(&loaded, &chosen, args, &sources)?,
    };
    if shown.is_empty() {
        bail!(
            "nothing to show: no source was found that may be shown; `headcount annotate --asm` needs none"
        );
    }
    shown.push_str(&ending(&loaded, !args.names.no_demangle));
    output::keep_from(args.output.as_deref(), sources.kept_from())?;
    match args.no_pager {
        true => output::write(args.output.as_deref(), &shown)?,
        false => output::page(args.output.as_deref(), &shown)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Every source file of which a line ran. Those of the system are only numbered: the headers of
/// a C++ library would bury what the user wrote.
fn all_that_ran(loaded: &Loaded) -> anyhow::Result<Chosen> {
    let lines = line_counts(&loaded.counted)?;
    let ran = lines
        .iter()
        .filter(|(_, lines)| lines.values().any(LineCount::ran));
    let files: BTreeSet<String> = ran.map(|(file, _)| file.to_string()).collect();
    let (system, files): (BTreeSet<_>, BTreeSet<_>) = files
        .into_iter()
        .partition(|file| headcount_report::is_of_the_system(file));
    if !system.is_empty() {
        talk::say(format!(
            "files of the system are left out: {}; name them to see them",
            system.len()
        ));
    }
    Ok(Chosen {
        files,
        ..Chosen::default()
    })
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

fn listings(
    loaded: &Loaded,
    chosen: &Chosen,
    args: &Annotate,
    sources: &Sources,
) -> anyhow::Result<String> {
    let counts = line_counts(&loaded.counted)?;
    let none = BTreeMap::new();
    let excerpts = annotate::excerpts(&loaded.counted, chosen, !args.names.no_demangle)?;
    let branches = annotate::line_branches(&loaded.counted);
    let time = super::time(loaded);
    let mut shown = String::new();
    for (file, excerpts) in &excerpts {
        let Some(lines) = sources.lines(file) else {
            continue;
        };
        let counts = counts.get(file.as_str()).unwrap_or(&none);
        let to = args.output.as_deref();
        shown.push_str(&match args.histogram {
            None if args.columns => {
                let blocks = annotate::column_counts(&loaded.counted, file);
                annotate::columns(&lines, counts, &blocks, excerpts)
            }
            None => {
                let times = time
                    .as_ref()
                    .map(|it| annotate::line_times(it, file, counts, loaded.runs.len()));
                let view = View {
                    times: times.as_ref(),
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
    args: &Annotate,
    sources: &Sources,
) -> anyhow::Result<serde_json::Value> {
    let demangle = !args.names.no_demangle;
    if args.asm {
        let mut functions = Vec::new();
        for (module, it) in loaded.counted.iter().enumerate() {
            let is_chosen = |function: usize| is_chosen(it, module, function, chosen, args);
            let some = annotate::functions_as_json(it, &is_chosen, demangle, &super::decode)?;
            functions.extend(some);
        }
        return Ok(serde_json::json!({ "version": 1, "functions": functions }));
    }
    let counts = line_counts(&loaded.counted)?;
    let branches = annotate::line_branches(&loaded.counted);
    let none = BTreeMap::new();
    let mut files = Vec::new();
    for (file, excerpts) in annotate::excerpts(&loaded.counted, chosen, demangle)? {
        let lines = sources.lines(&file);
        files.push(annotate::lines_as_json(
            &file,
            lines.as_ref().map(|it| it.as_slice()),
            counts.get(file.as_str()).unwrap_or(&none),
            branches.get(file.as_str()),
            &excerpts,
        ));
    }
    Ok(serde_json::json!({ "version": 1, "files": files }))
}

/// Is this function among what the user named, by itself or by its file?
fn is_chosen(
    it: &Counted,
    module: usize,
    function: usize,
    chosen: &Chosen,
    args: &Annotate,
) -> bool {
    let source = it.module.functions[function].source;
    let file = source.and_then(|(file, _)| it.module.files.get(file.index()));
    chosen.functions.contains(&(module, function))
        || file.is_some_and(|file| chosen.files.contains(file))
        || args.names_wanted.is_empty()
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
    let counts = line_counts(&loaded.counted)?;
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
    sources: &Sources,
) -> anyhow::Result<String> {
    let line = |file: &str, line: u32| {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        sources.lines(file)?.get(index).cloned()
    };
    let time = super::time(loaded);
    let mut shown = String::new();
    for (index, it) in loaded.counted.iter().enumerate() {
        let is_chosen = |function: usize| is_chosen(it, index, function, chosen, args);
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

/// What was not counted, if anything, and what makes counts uncertain.
fn ending(loaded: &Loaded, demangle: bool) -> String {
    let refused = headcount_report::refused(&loaded.counted);
    let modules = loaded.counted.iter().map(|it| it.module.path.clone());
    let mut out = match refused.is_empty() {
        true => String::new(),
        false => text::not_counted(&refused, 0, &modules.collect::<Vec<_>>()),
    };
    let mut notes = super::notes(loaded);
    notes.extend(coverage_notes(&loaded.counted, demangle));
    for note in notes {
        out.push_str(&format!("Note: {}\n", visible(&note)));
    }
    out
}
