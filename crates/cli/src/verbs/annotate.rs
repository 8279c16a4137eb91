//! Print source text, or instructions, with counts in the margin.

use crate::args::{Annotate, Histogram};
use crate::{output, talk};
use anyhow::bail;
use headcount_profile::Loaded;
use headcount_report::{
    LineCount,
    annotate::{self, Chosen, Scale},
    coverage_notes, demangle, is_counted, line_counts, text, visible,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

pub fn run(args: &Annotate) -> anyhow::Result<ExitCode> {
    let loaded = super::load(args.profile.input.as_ref(), &args.runs.runs)?;
    let chosen = match args.names_wanted.is_empty() {
        true => all_that_ran(&loaded)?,
        false => chosen(&loaded, &args.names_wanted)?,
    };
    let sources = Sources::new(&loaded, args);
    if let Some(suffix) = &args.write {
        return write_beside(&loaded, &chosen, suffix);
    }
    let mut shown = match args.asm {
        true => assembly(&loaded, &chosen, args, &sources)?,
        false => listings(&loaded, &chosen, args, &sources)?,
    };
    if shown.is_empty() {
        bail!("nothing to show: no source was found; `headcount annotate --asm` needs none");
    }
    shown.push_str(&ending(&loaded, !args.names.no_demangle));
    output::write(args.output.as_deref(), &shown)?;
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
        .partition(|file| annotate::is_of_the_system(file));
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
            bail!("{}", nothing_called(loaded, name));
        }
        all.files.extend(found.files);
        all.functions.extend(found.functions);
    }
    Ok(all)
}

/// Says that there is no such thing, whether it was refused or not selected, and what has a
/// similar name.
pub fn nothing_called(loaded: &Loaded, name: &str) -> String {
    let mut refusals = loaded.counted.iter().flat_map(|it| &it.module.refusals);
    if let Some(refusal) = refusals.find(|it| it.subject == name) {
        return format!("{name} is not counted: {}", refusal.reason);
    }
    if is_unselected(loaded, name.strip_suffix("()").unwrap_or(name)) {
        return format!("{name} was not counted: not selected");
    }
    let similar = annotate::similar(&loaded.counted, name);
    let similar: Vec<&str> = similar.iter().take(5).map(String::as_str).collect();
    match similar.is_empty() {
        true => format!("nothing counted is called {name}; `headcount report` lists what is"),
        false => format!(
            "nothing counted is called {name}; did you mean {}?",
            similar.join(", ")
        ),
    }
}

fn is_unselected(loaded: &Loaded, name: &str) -> bool {
    let modules = loaded.counted.iter();
    let mut functions = modules.flat_map(|it| it.module.functions.iter().zip(&it.functions));
    functions.any(|(function, counts)| {
        let shown = demangle(&function.name);
        let bare = shown.split('(').next().unwrap_or(&shown);
        !is_counted(counts) && [&function.name, shown.as_ref(), bare].contains(&name)
    })
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
    let mut shown = String::new();
    for (file, excerpts) in &excerpts {
        let Some(lines) = sources.lines(file) else {
            continue;
        };
        let counts = counts.get(file.as_str()).unwrap_or(&none);
        shown.push_str(&match args.histogram {
            None if args.columns => {
                let blocks = annotate::column_counts(&loaded.counted, file);
                annotate::columns(&lines, counts, &blocks, excerpts)
            }
            None => annotate::listing(&lines, counts, excerpts),
            Some(scale) => {
                let width = output::width(args.output.as_deref());
                annotate::histogram(&lines, counts, excerpts, scale.into(), width)
            }
        });
        shown.push('\n');
    }
    Ok(shown)
}

/// Writes each file with its counts beside the original. A profile may come from anyone: only files
/// below the current folder get such company.
fn write_beside(loaded: &Loaded, chosen: &Chosen, suffix: &str) -> anyhow::Result<ExitCode> {
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
        let Some(bytes) = read_source(path) else {
            talk::say(format!(
                "{file}: source not found; go to the folder it was built in"
            ));
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let counts = counts.get(file.as_str()).unwrap_or(&none);
        let beside = PathBuf::from(format!("{file}{suffix}"));
        output::write_exact(Some(&beside), &annotate::beside(&lines, counts))?;
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
    let mut shown = String::new();
    for (index, it) in loaded.counted.iter().enumerate() {
        let is_chosen = |function: usize| {
            let source = it.module.functions[function].source;
            let file = source.and_then(|(file, _)| it.module.files.get(file.index()));
            chosen.functions.contains(&(index, function))
                || file.is_some_and(|file| chosen.files.contains(file))
                || args.names_wanted.is_empty()
        };
        let demangle = !args.names.no_demangle;
        let listing = annotate::assembly(it, &is_chosen, demangle, &super::decode, &line)?;
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
    let mut out = match refused.is_empty() {
        true => String::new(),
        false => text::not_counted(&refused, loaded.counted.len() > 1),
    };
    let mut notes = super::notes(loaded);
    notes.extend(coverage_notes(&loaded.counted, demangle));
    for note in notes {
        out.push_str(&format!("Note: {}\n", visible(&note)));
    }
    out
}

/// The source files, each looked for once.
struct Sources {
    folders: Vec<PathBuf>,
    /// When the first of the runs began: sources changed later may not be what ran.
    began: Option<SystemTime>,
    known: RefCell<BTreeMap<String, Option<Lines>>>,
}

type Lines = Rc<Vec<String>>;

impl Sources {
    fn new(loaded: &Loaded, args: &Annotate) -> Self {
        let mut folders = args.source.clone();
        folders.push(PathBuf::new());
        // A relative name is often relative to where the program was built, and programs are
        // often still there; or the profile is.
        for it in &loaded.counted {
            folders.extend(Path::new(&it.module.path).parent().map(Path::to_owned));
        }
        let input = args.profile.input.as_deref();
        folders.extend(input.and_then(Path::parent).map(Path::to_owned));
        let starts = loaded.runs.iter().map(|run| run.started);
        let began = starts.filter(|at| *at > 0).min();
        Self {
            folders,
            began: began.map(|at| SystemTime::UNIX_EPOCH + Duration::from_nanos(at)),
            known: RefCell::default(),
        }
    }

    /// The lines of a file; if it is not found, says so, once.
    fn lines(&self, file: &str) -> Option<Lines> {
        let mut known = self.known.borrow_mut();
        if let Some(lines) = known.get(file) {
            return lines.clone();
        }
        let text = self.read(file);
        if text.is_none() {
            talk::say(format!("{file}: source not found; --source DIR says where"));
        }
        let lines = text.map(|text| Rc::new(text.lines().map(str::to_owned).collect()));
        known.insert(file.to_owned(), lines.clone());
        lines
    }

    fn read(&self, file: &str) -> Option<String> {
        let (path, bytes) = self
            .folders
            .iter()
            .flat_map(|folder| candidates(folder, file))
            .find_map(|path| Some((path.clone(), read_source(&path)?)))?;
        let changed = path.metadata().and_then(|it| it.modified()).ok();
        if let (Some(changed), Some(began)) = (changed, self.began)
            && changed > began
        {
            talk::say(format!(
                "{}: changed after the run began; counts may stand beside other lines",
                path.display()
            ));
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The bytes of a source file. A profile may come from anyone and may name anything: what is no
/// ordinary file, or too large for a source, is not read.
fn read_source(path: &Path) -> Option<Vec<u8>> {
    const LARGEST: u64 = 1 << 28;
    let about = path.metadata().ok()?;
    let ordinary = about.is_file() && about.len() <= LARGEST;
    ordinary.then(|| std::fs::read(path).ok())?
}

/// Where a file may be in a folder the user named: under its whole path, or ever less of it.
fn candidates(folder: &Path, file: &str) -> Vec<PathBuf> {
    if folder.as_os_str().is_empty() {
        return vec![PathBuf::from(file)];
    }
    let parts: Vec<&str> = file.split('/').filter(|it| !it.is_empty()).collect();
    (0..parts.len())
        .map(|skip| folder.join(parts[skip..].join("/")))
        .collect()
}
