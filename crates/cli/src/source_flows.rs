//! How control moves through the sources of optimised code, for reports on its lines.

use crate::sources::Sources;
use headcount_csource::{Definitions, source_functions};
use headcount_model::{Block, Counted, DirectCall, FileId, Function, LinkAddr, Module};
use headcount_profile::Loaded;
use headcount_report::is_of_the_system;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Reads the sources that reports on lines of these modules need. Says once which are not as they were.
pub fn follow(loaded: &mut Loaded, sources: &Sources, is_wanted: impl Fn(&Module) -> bool) {
    let mut missing = BTreeSet::new();
    let wanted = loaded.counted.iter_mut();
    for counted in wanted.filter(|it| is_wanted(&it.module)) {
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
        "Lines of optimised C are counted without their source, which was not found or was changed \
         after the run began: {note}; --source DIR says where to look."
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
            // Nobody has the sources of the system's libraries.
            None if is_of_the_system(&counted.module.path) => (),
            None => _ = missing.insert(name.clone()),
        }
    }
    let definitions = definitions(&counted.module, &texts, sources);
    for (file, text) in &texts {
        let lines = &with_code[file];
        let name = &counted.module.files[file.index()];
        let found = source_functions(name, text, &definitions, &|line| lines.contains(&line));
        counted.sources.functions.insert(*file, found);
    }
    look_at_code(counted);
}

/// Finds the calls of functions by others, and the blocks of loops that handle several values at once.
fn look_at_code(counted: &mut Counted) {
    let Counted {
        module, sources, ..
    } = counted;
    let functions = (0..).zip(&module.functions);
    let number: HashMap<LinkAddr, u32> = functions.map(|(it, f)| (f.address, it)).collect();
    for (function, it) in (0..).zip(&module.functions) {
        for (block, code) in (0..).zip(&it.blocks) {
            let targets = headcount_x86::targets(&code.code).into_iter();
            let known = targets.filter_map(|(at, to)| Some((at, *number.get(&to)?)));
            sources
                .calls
                .extend(known.map(|(instruction, callee)| DirectCall {
                    function,
                    block,
                    instruction,
                    callee,
                }));
        }
        if it.compiled.is_optimised {
            let packed = packed_loops(it).into_iter();
            sources.packed.extend(packed.map(|block| (function, block)));
        }
    }
}

/// Loops of so many blocks are looked at: a loop that was vectorised has few.
const SMALL_LOOP: usize = 3;

/// The blocks of small loops that handle several values at once.
fn packed_loops(function: &Function) -> Vec<u32> {
    let is_packed = |it: &Block| it.code.iter().any(headcount_x86::is_packed);
    let blocks = (0_u32..).zip(&function.blocks);
    let mut packed: Vec<u32> = blocks.filter(|it| is_packed(it.1)).map(|it| it.0).collect();
    if packed.is_empty() {
        return packed;
    }
    let mut next: HashMap<u32, Vec<u32>> = HashMap::new();
    for edge in &function.edges {
        if let (Some(from), Some(to)) = (edge.from, edge.to) {
            next.entry(from).or_default().push(to);
        }
    }
    let comes_back = |block: &u32| {
        let mut reached: BTreeSet<u32> = BTreeSet::from([*block]);
        (0..SMALL_LOOP).any(|_| {
            let ways = reached.iter().filter_map(|it| next.get(it));
            reached = ways.flatten().copied().collect();
            reached.contains(block)
        })
    };
    packed.retain(comes_back);
    packed
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
