//! What did the user mean by this name: a program, a source file, or a function?

use crate::Error;
use crate::demangle::{is_end_of_path, without_parameters};
use crate::glob::Pattern;
use crate::lines::{LineCount, line_counts};
use crate::names::{files_with_code, is_counted};
use crate::only::{Only, split_module};
use crate::own::{Own, is_of_the_system};
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

    /// May anything of it be in this module?
    pub fn may_be_in(&self, module: &Module) -> bool {
        !self.functions.is_empty() || module.files.iter().any(|it| self.files.contains(it))
    }

    /// Leaves out what is not wanted.
    pub fn narrow(&mut self, counted: &[Counted], only: &Only) {
        if only.is_everything() {
            return;
        }
        let modules = || counted.iter().map(|it| &it.module);
        let has = |module: &Module, file: &String| module.files.contains(file);
        self.files.retain(|file| {
            let mut there = modules().filter(|it| has(it, file));
            there.any(|module| only.wants_file(module, file))
        });
        let wanted = counted.iter().enumerate().flat_map(|(index, module)| {
            let all = crate::names::functions(module, true).into_iter();
            let wanted = all.filter(|it| only.wants(it));
            wanted.map(move |it| (index, it.index))
        });
        let wanted: BTreeSet<(usize, usize)> = wanted.collect();
        self.functions.retain(|it| wanted.contains(it));
    }
}

/// The user's own files of which a line ran, and how many of libraries there are besides; or the
/// functions, which need no files.
pub fn own(counted: &[Counted], own: &Own, by_function: bool) -> Result<(Chosen, usize), Error> {
    let mut chosen = Chosen::default();
    let mut left_out = 0;
    if by_function {
        for (index, module) in counted.iter().enumerate() {
            let all = crate::names::functions(module, false);
            let (mine, others): (Vec<_>, Vec<_>) =
                all.iter().partition(|it| own.library(it).is_none());
            left_out += others.len();
            chosen
                .functions
                .extend(mine.into_iter().map(|it| (index, it.index)));
        }
        return Ok((chosen, left_out));
    }
    for (file, lines) in line_counts(counted)? {
        match lines.values().any(LineCount::ran) {
            true if own.library_of_file(&file).is_none() => {
                chosen.files.insert(file.to_string());
            }
            true => left_out += 1,
            false => (),
        }
    }
    Ok((chosen, left_out))
}

/// Finds what `name` means. A program or a library means all source files it has code of, but
/// for those of the system; if there are none, all its functions. `max.c` and `src/max.c` mean
/// every file whose path ends like that; `max()` means the function where `max` alone would mean
/// a program; `libm!sin` means the function of such a library, and `libm!` all that is in it. `*`
/// and `?` stand for any text and any character. What nothing else is called may be the end of a
/// function's path: `Sum::join`.
pub fn choose(counted: &[Counted], name: &str) -> Chosen {
    let everywhere = |_: &Counted| true;
    let mut chosen = Chosen::default();
    if let Some(function) = name.strip_suffix("()") {
        chosen.functions = functions_called(counted, function, &everywhere);
    }
    if chosen.is_empty() {
        chosen = modules_called(counted, name);
    }
    if chosen.is_empty() {
        chosen.files = files_called(counted, name);
    }
    if chosen.is_empty() {
        chosen.functions = functions_called(counted, name, &everywhere);
    }
    if let (true, Some((module, inside))) = (chosen.is_empty(), split_module(name)) {
        chosen = inside_of_modules(counted, module, inside);
    }
    if chosen.is_empty() {
        chosen.functions = functions_that_end_in(counted, name);
    }
    chosen
}

/// The functions with such a name; `libm!sin` is that of such a library.
pub fn functions(counted: &[Counted], name: &str) -> BTreeSet<(usize, usize)> {
    let everywhere = |_: &Counted| true;
    let bare = name.strip_suffix("()").unwrap_or(name);
    let found = functions_called(counted, bare, &everywhere);
    match (found.is_empty(), split_module(name)) {
        (true, Some((module, inside))) => inside_of_modules(counted, module, inside).functions,
        (true, None) => functions_that_end_in(counted, bare),
        _ => found,
    }
}

/// How a name that the user typed fits a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Its path ends like that.
    End,
    /// It is called that.
    Whole,
}

/// How a name fits a function of a module, given as the linker has it.
pub fn fit(module: &Module, function: &str, name: &str) -> Option<Fit> {
    let shown = crate::demangle(function);
    let is_named = |name: &str| is_function_called(&Pattern::new(name), function, &shown);
    let bare = |name: &str| name.strip_suffix("()").unwrap_or(name).to_owned();
    let of_module = || {
        let (of, inside) = split_module(name)?;
        is_module_called(module, of).then(|| bare(inside))
    };
    if is_named(&bare(name)) || of_module().is_some_and(|it| is_named(&it)) {
        return Some(Fit::Whole);
    }
    is_end_of_path(&Pattern::new(&bare(name)), &shown).then_some(Fit::End)
}

/// Modules with such a name: their sources, or their functions if they have none to show.
fn modules_called(counted: &[Counted], name: &str) -> Chosen {
    let is_meant = |it: &Counted| is_called(it, name);
    let meant = counted.iter().filter(|it| is_meant(it));
    let files = meant.flat_map(|it| files_with_code(&it.module));
    let files: BTreeSet<String> = files
        .filter(|file| !is_of_the_system(file))
        .map(str::to_owned)
        .collect();
    let functions = match files.is_empty() {
        true => functions_called(counted, "*", &is_meant),
        false => BTreeSet::new(),
    };
    Chosen { files, functions }
}

/// What has a name in some modules. A source file may have code in others as well: what is meant
/// are the functions that it has here.
fn inside_of_modules(counted: &[Counted], module: &str, name: &str) -> Chosen {
    let is_meant = |it: &Counted| is_called(it, module);
    let name = name.strip_suffix("()").unwrap_or(name);
    let mut functions = functions_called(counted, name, &is_meant);
    for (index, it) in counted.iter().enumerate().filter(|(_, it)| is_meant(it)) {
        let of_file = crate::names::functions(it, false)
            .into_iter()
            .filter(|named| {
                let file = named.own_file();
                file.is_some_and(|file| path_ends_in(file, name))
            });
        functions.extend(of_file.map(|named| (index, named.index)));
    }
    Chosen {
        functions,
        ..Chosen::default()
    }
}

fn is_called(it: &Counted, name: &str) -> bool {
    is_module_called(&it.module, name)
}

fn is_module_called(it: &Module, name: &str) -> bool {
    path_ends_in(&it.path, name) || Pattern::new(name).matches_module(&it.path)
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

/// The functions with such a name in the modules that are meant.
fn functions_called(
    counted: &[Counted],
    name: &str,
    is_meant: &dyn Fn(&Counted) -> bool,
) -> BTreeSet<(usize, usize)> {
    let pattern = Pattern::new(name);
    functions_of(counted, is_meant, &|name, shown| {
        is_function_called(&pattern, name, shown)
    })
}

/// Whether a function is meant, by the linker's name and as the programmer has it.
fn is_function_called(pattern: &Pattern, name: &str, shown: &str) -> bool {
    let names = [name, shown, without_parameters(shown)];
    names.iter().any(|it| pattern.matches(it))
}

/// The functions whose path ends like that.
fn functions_that_end_in(counted: &[Counted], name: &str) -> BTreeSet<(usize, usize)> {
    let pattern = Pattern::new(name.strip_suffix("()").unwrap_or(name));
    functions_of(counted, &|_| true, &|_, shown| {
        is_end_of_path(&pattern, shown)
    })
}

/// The functions in some modules whose names, as the linker and as the programmer has them, are meant.
fn functions_of(
    counted: &[Counted],
    is_meant: &dyn Fn(&Counted) -> bool,
    is_called: &dyn Fn(&str, &str) -> bool,
) -> BTreeSet<(usize, usize)> {
    let mut found = BTreeSet::new();
    for (module, it) in counted.iter().enumerate().filter(|(_, it)| is_meant(it)) {
        let all = it.module.functions.iter().zip(&it.functions).enumerate();
        for (index, (function, _)) in all.filter(|(_, (_, counts))| is_counted(counts)) {
            if is_called(&function.name, &crate::demangle(&function.name)) {
                found.insert((module, index));
            }
        }
    }
    found
}
