//! What did the user mean by this name: a program, a source file, or a function?

use crate::glob::{Pattern, base_name};
use crate::names::{functions, is_counted};
use headcount_model::{Counted, Module};
use std::collections::BTreeSet;

/// What to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Whole source files, by name.
    pub files: BTreeSet<String>,
    /// Functions: index of the module, index of the function in the module's own order.
    pub functions: BTreeSet<(usize, usize)>,
}

impl Chosen {
    /// Nothing?
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.functions.is_empty()
    }
}

/// Finds what `name` means. A program means all source files it has code of, but for those of
/// the system; `max.c` and `src/max.c` mean
/// every file whose path ends like that; `max()` means the function where `max` alone would mean
/// a program. `*` and `?` stand for any text and any character.
pub fn choose(counted: &[Counted], name: &str) -> Chosen {
    let mut chosen = Chosen::default();
    if let Some(function) = name.strip_suffix("()") {
        chosen.functions = functions_called(counted, function);
    }
    if chosen.is_empty() {
        chosen.files = files_of_programs(counted, name);
    }
    if chosen.is_empty() {
        chosen.files = files_called(counted, name);
    }
    if chosen.is_empty() {
        chosen.functions = functions_called(counted, name);
    }
    chosen
}

fn files_of_programs(counted: &[Counted], name: &str) -> BTreeSet<String> {
    let is_meant = |it: &&Counted| path_ends_in(&it.module.path, name);
    let programs = counted.iter().filter(is_meant);
    let files = programs.flat_map(|it| files_with_code(&it.module));
    files.filter(|file| !is_of_the_system(file)).collect()
}

fn files_with_code(module: &Module) -> Vec<String> {
    let mut has_code = vec![false; module.files.len()];
    let blocks = module.functions.iter().flat_map(|it| &it.blocks);
    for run in blocks.flat_map(|block| &block.lines) {
        if let (1.., Some(has_code)) = (run.line, has_code.get_mut(run.file.index())) {
            *has_code = true;
        }
    }
    let files = module.files.iter().zip(has_code);
    let with_code = files.filter(|(_, has_code)| *has_code);
    with_code.map(|(file, _)| file.clone()).collect()
}

/// Is this a file of the compiler or of a library that came with the system? Users who want to
/// see those say so.
pub fn is_of_the_system(file: &str) -> bool {
    ["/usr/include/", "/usr/lib/", "/rustc/"]
        .iter()
        .any(|folder| file.starts_with(folder))
}

fn files_called(counted: &[Counted], name: &str) -> BTreeSet<String> {
    let all = counted.iter().flat_map(|it| &it.module.files);
    let is_meant = |file: &&String| path_ends_in(file, name);
    all.filter(is_meant).cloned().collect()
}

/// `src/max.c` ends `/home/u/src/max.c`, but `ax.c` does not. Users may also say more than the
/// build knew: `/home/u/max.c` for `max.c`.
fn path_ends_in(path: &str, name: &str) -> bool {
    let name = name.strip_prefix("./").unwrap_or(name);
    let path = path.strip_prefix("./").unwrap_or(path);
    let said_more = name.strip_suffix(path).is_some_and(|it| it.ends_with('/'));
    let is_something = !name.is_empty() && !path.is_empty();
    is_something && (said_more || Pattern::new(name).matches_path(path))
}

fn functions_called(counted: &[Counted], name: &str) -> BTreeSet<(usize, usize)> {
    let pattern = Pattern::new(name);
    let mut found = BTreeSet::new();
    for (module, it) in counted.iter().enumerate() {
        let all = it.module.functions.iter().zip(&it.functions).enumerate();
        for (index, (function, _)) in all.filter(|(_, (_, counts))| is_counted(counts)) {
            let shown = crate::demangle(&function.name);
            let bare = shown.split('(').next().unwrap_or(&shown);
            if [&function.name, shown.as_ref(), bare]
                .iter()
                .any(|it| pattern.matches(it))
            {
                found.insert((module, index));
            }
        }
    }
    found
}

/// Names of programs, files and functions that contain what the user typed.
pub fn similar(counted: &[Counted], name: &str) -> BTreeSet<String> {
    let wanted = name.to_lowercase();
    let mut all: BTreeSet<String> = BTreeSet::new();
    for it in counted {
        all.insert(base_name(&it.module.path).to_owned());
        all.extend(
            it.module
                .files
                .iter()
                .map(|file| base_name(file).to_owned()),
        );
        all.extend(
            functions(it, true)
                .iter()
                .map(|named| named.name.to_string()),
        );
    }
    all.retain(|it| it.to_lowercase().contains(&wanted));
    all
}
