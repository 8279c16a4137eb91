//! How control moves through the sources of optimised code, for reports on its lines.

use crate::sources::Sources;
use headcount_csource::{Definitions, source_functions};
use headcount_model::{Counted, FileId, Module};
use headcount_profile::Loaded;
use headcount_report::annotate::is_of_the_system;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Reads the sources that reports on lines need. Says once which are not as they were.
pub fn follow(loaded: &mut Loaded, sources: &Sources) {
    let mut missing = BTreeSet::new();
    for counted in &mut loaded.counted {
        follow_module(counted, sources, &mut missing);
    }
    let first: Vec<&str> = missing.iter().take(3).map(String::as_str).collect();
    let named = first.join(", ");
    let note = match missing.len() - first.len() {
        _ if missing.is_empty() => return,
        0 => named,
        more => format!("{named} and {more} more"),
    };
    loaded.notes.push(format!(
        "Lines of optimised code are counted without their source, which is not here or changed \
         after the run began: {note}."
    ));
}

fn follow_module(counted: &mut Counted, sources: &Sources, missing: &mut BTreeSet<String>) {
    let with_code = optimised_lines(&counted.module);
    if with_code.is_empty() {
        return;
    }
    let is_only_c = !counted.module.files.iter().any(|it| is_other_language(it));
    let mut texts: BTreeMap<FileId, Vec<u8>> = BTreeMap::new();
    for file in with_code.keys() {
        let Some(name) = counted.module.files.get(file.index()) else {
            continue;
        };
        if !is_c(name, is_only_c) || is_of_the_system(name) {
            continue;
        }
        match sources.as_built(name) {
            Some(text) => _ = texts.insert(*file, text),
            None => _ = missing.insert(name.clone()),
        }
    }
    let definitions = definitions(&counted.module, &texts, sources);
    for (file, text) in &texts {
        let lines = &with_code[file];
        let name = &counted.module.files[file.index()];
        let found = source_functions(name, text, &definitions, &|line| lines.contains(&line));
        counted.sources.insert(*file, found);
    }
}

/// The lines of optimised functions, by file.
fn optimised_lines(module: &Module) -> HashMap<FileId, HashSet<u32>> {
    let mut found: HashMap<FileId, HashSet<u32>> = HashMap::new();
    let optimised = module
        .functions
        .iter()
        .filter(|it| it.compiled.is_optimised);
    for function in optimised {
        for run in function.blocks.iter().flat_map(|it| &it.lines) {
            found.entry(run.file).or_default().insert(run.line);
        }
        for call in &function.compiled.inlined {
            found.entry(call.file).or_default().insert(call.line);
        }
    }
    found
}

/// All macros that the texts and the files that they include define.
fn definitions(
    module: &Module,
    texts: &BTreeMap<FileId, Vec<u8>>,
    sources: &Sources,
) -> Definitions {
    let mut definitions = Definitions::default();
    let named = texts.iter().map(|(file, text)| {
        let name = PathBuf::from(&module.files[file.index()]);
        (name, text.clone())
    });
    let mut waiting: Vec<(PathBuf, Vec<u8>)> = named.collect();
    let mut seen: BTreeSet<PathBuf> = waiting.iter().map(|(name, _)| name.clone()).collect();
    let folders: BTreeSet<&Path> = module
        .files
        .iter()
        .filter(|it| !is_of_the_system(it))
        .filter_map(|it| Path::new(it).parent())
        .collect();
    let mut looked_for = HashSet::new();
    while let Some((name, text)) = waiting.pop() {
        definitions.read(&name.to_string_lossy(), &text);
        let beside = name.parent().unwrap_or(Path::new(""));
        for included in included(&text) {
            if !looked_for.insert((beside.to_owned(), included.clone())) {
                continue;
            }
            let folders = std::iter::once(beside).chain(folders.iter().copied());
            let found = folders.map(|it| it.join(&included)).find_map(|path| {
                let is_known = seen.contains(&path);
                let text = match is_known {
                    true => Vec::new(),
                    false => sources.as_built(&path.to_string_lossy())?,
                };
                Some((path, text))
            });
            if let Some((path, text)) = found.filter(|(path, _)| seen.insert(path.clone())) {
                waiting.push((path, text));
            }
        }
    }
    definitions.settle();
    definitions
}

/// The files that a text includes.
fn included(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let name = |line: &str| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let (name, _) = rest.strip_prefix(['"', '<'])?.split_once(['"', '>'])?;
        Some(name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

fn ending(file: &str) -> &str {
    file.rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn is_other_language(file: &str) -> bool {
    let endings = [
        "cc", "cpp", "cxx", "C", "hpp", "hh", "rs", "go", "m", "mm", "d",
    ];
    endings.contains(&ending(file))
}

/// Whether a file is in C. Headers are, where nothing else is in another language.
fn is_c(file: &str, is_only_c: bool) -> bool {
    match ending(file) {
        "c" => true,
        "h" | "inc" | "def" => is_only_c,
        _ => false,
    }
}
