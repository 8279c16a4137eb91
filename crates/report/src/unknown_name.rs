//! What to say where nothing that was counted has the name that the user typed.

use crate::demangle::{demangle, without_parameters};
use crate::glob::{Pattern, base_name};
use crate::names::{functions, is_counted};
use crate::only::split_module;
use headcount_model::{Counted, FunctionCounts, Module};
use std::collections::BTreeSet;

/// So many similar names are told.
const MOST: usize = 5;

/// Says what was looked for, whether it was refused or not selected, and what has a similar name.
pub fn nothing_called(counted: &[Counted], name: &str) -> String {
    if let Some(why) = why_not_counted(counted, name) {
        return why;
    }
    let Some((module, inside)) = split_module(name) else {
        let what = format!("nothing counted is called {name}: no function, source file or module");
        let all = counted.iter().flat_map(names_of);
        return with_similar(what, name, all, "`headcount report` lists what is");
    };
    let pattern = Pattern::new(module);
    let meant = || {
        let all = counted.iter();
        all.filter(|it| pattern.matches_module(&it.module.path))
    };
    if meant().next().is_none() {
        return no_module_called(counted, module);
    }
    if inside == "*" {
        return format!("nothing of {module} was counted");
    }
    let what =
        format!("no function or source file of {module} that was counted is called {inside}");
    let lists = format!("`headcount report --only '{module}!'` lists what is");
    with_similar(what, inside, meant().flat_map(names_inside), &lists)
}

/// The same where only functions are looked for.
pub fn no_function_called(counted: &[Counted], name: &str) -> String {
    let why = why_not_counted(counted, name);
    why.unwrap_or_else(|| {
        let what = format!("no function that was counted is called {name}");
        let (_, inside) = split_module(name).unwrap_or(("", name));
        let all = counted.iter().flat_map(function_names);
        with_similar(what, inside, all, "`headcount report` lists them")
    })
}

/// The same of a program that has not run yet, and of what it is started with.
pub fn no_function_in(modules: &[&Module], name: &str) -> String {
    let what = format!(
        "no function is called {name} in the program or the libraries that it is started with"
    );
    let all = modules.iter().flat_map(|it| &it.functions);
    let all = all.map(|it| demangle(&it.name).into_owned());
    let cure = format!("name the module of one that it loads later: MODULE!{name}");
    with_similar(what, name, all, &cure)
}

/// Says that there is no such module, and what has a similar name.
pub fn no_module_called(counted: &[Counted], name: &str) -> String {
    let all = counted
        .iter()
        .map(|it| base_name(&it.module.path).to_owned());
    let what = format!("no module that was counted is called {name}");
    with_similar(what, name, all, "`headcount report --by module` lists them")
}

fn why_not_counted(counted: &[Counted], name: &str) -> Option<String> {
    let mut refusals = counted.iter().flat_map(|it| &it.module.refusals);
    if let Some(refusal) = refusals.find(|it| it.subject == name) {
        return Some(format!("{name} is not counted: {}", refusal.reason));
    }
    let bare = name.strip_suffix("()").unwrap_or(name);
    is_unselected(counted, bare).then(|| format!("{name} was not counted: not selected"))
}

fn is_unselected(counted: &[Counted], name: &str) -> bool {
    let modules = counted.iter();
    let mut functions = modules.flat_map(|it| it.module.functions.iter().zip(&it.functions));
    functions.any(|(function, counts): (_, &FunctionCounts)| {
        let shown = crate::demangle(&function.name);
        !is_counted(counts)
            && [function.name.as_str(), &shown, without_parameters(&shown)].contains(&name)
    })
}

/// The names of a module, of its source files and of its functions.
fn names_of(it: &Counted) -> BTreeSet<String> {
    let mut all = names_inside(it);
    all.insert(base_name(&it.module.path).to_owned());
    all
}

fn names_inside(it: &Counted) -> BTreeSet<String> {
    let files = it.module.files.iter();
    let files = files.map(|file| base_name(file).to_owned());
    files.chain(function_names(it)).collect()
}

fn function_names(it: &Counted) -> impl Iterator<Item = String> {
    let functions = functions(it, true).into_iter();
    functions.map(|named| named.name.to_string())
}

fn with_similar(
    what: String,
    name: &str,
    all: impl Iterator<Item = String>,
    otherwise: &str,
) -> String {
    let similar = similar(name, all);
    match similar.is_empty() {
        true => format!("{what}; {otherwise}"),
        false => format!("{what}; did you mean {}?", similar.join(", ")),
    }
}

/// Names that contain what the user typed, or differ from it by a few letters: those first that
/// differ by the fewest.
fn similar(typed: &str, all: impl Iterator<Item = String>) -> Vec<String> {
    let typed = typed.to_lowercase().replace(['*', '?'], "");
    if typed.is_empty() {
        return Vec::new();
    }
    let distance = |name: &str| {
        let name = name.to_lowercase();
        match name.contains(&typed) {
            true => Some(name.len() - typed.len()),
            false => letters_between(&typed, without_parameters(&name))
                .or_else(|| letters_between(&typed, name.split(".so").next()?)),
        }
    };
    let near = all.filter_map(|name| Some((distance(&name)?, name)));
    let near: BTreeSet<(usize, String)> = near.collect();
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// How many letters must be changed, added or taken away to make one text of the other; `None`
/// if that is more than a third of what was typed.
fn letters_between(typed: &str, name: &str) -> Option<usize> {
    let (typed, name): (Vec<char>, Vec<char>) = (typed.chars().collect(), name.chars().collect());
    let most = typed.len() / 3;
    if typed.len().abs_diff(name.len()) > most {
        return None;
    }
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (index, letter) in typed.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in name.iter().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().filter(|it| *it <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_wrong_letters_are_near() {
        assert_eq!(letters_between("libm.so.7", "libm.so.6"), Some(1));
        assert_eq!(letters_between("hepler", "helper"), Some(2));
        assert_eq!(letters_between("mian", "main"), None);
        assert_eq!(letters_between("max", "max"), Some(0));
        assert_eq!(letters_between("max", "maximum"), None);
    }

    #[test]
    fn stars_are_no_letters() {
        let all = || {
            ["inflate", "deflate", "crc32"]
                .map(str::to_owned)
                .into_iter()
        };
        assert_eq!(similar("inflaet*", all()), ["inflate"]);
        assert_eq!(similar("FLATE", all()), ["deflate", "inflate"]);
        let libraries = || ["libm.so.6", "libz.so.1"].map(str::to_owned).into_iter();
        assert_eq!(similar("libzz", libraries()), ["libz.so.1"]);
        assert!(similar("*", all()).is_empty());
    }
}
