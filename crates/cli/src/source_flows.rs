//! How control moves through the sources of optimised code, for reports on its lines.

use crate::sources::Sources;
use headcount_csource::{Definitions, source_functions};
use headcount_model::{Counted, FileId, Module};
use headcount_profile::Loaded;
use headcount_report::annotate::is_of_the_system;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

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
        let found = source_functions(text, &definitions, &|line| lines.contains(&line));
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
    let mut waiting: Vec<Vec<u8>> = texts.values().cloned().collect();
    let folders: BTreeSet<&Path> = module
        .files
        .iter()
        .filter(|it| !is_of_the_system(it))
        .filter_map(|it| Path::new(it).parent())
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(text) = waiting.pop() {
        definitions.read(&text);
        for name in included(&text) {
            if !seen.insert(name.clone()) {
                continue;
            }
            let paths = folders.iter().map(|it| it.join(&name));
            let mut found = paths.filter_map(|it| sources.as_built(&it.to_string_lossy()));
            waiting.extend(found.next());
        }
    }
    definitions.settle();
    definitions
}

/// The files that a text includes by `"name"`.
fn included(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let name = |line: &str| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let (name, _) = rest.strip_prefix('"')?.split_once('"')?;
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
