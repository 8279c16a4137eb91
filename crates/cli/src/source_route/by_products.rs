//! What does a compiler call the files that it makes besides objects? (Split debug information,
//! notes about coverage and stacks, dumps.)
//!
//! It names them after the source and the program, but we compile other texts to other objects. So
//! it is asked what it would do (`-###`), and told to name them like that.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::process::Command;

use super::command::Arguments;
use crate::response_files;

/// By the sources, as the user said them, the words that name what is made of each.
pub type Names = BTreeMap<OsString, Vec<OsString>>;

/// Whether the user wants any such file.
pub fn are_wanted(arguments: &Arguments) -> bool {
    const MAKERS: [&str; 9] = [
        "-gsplit-dwarf",
        "-ftest-coverage",
        "-fprofile-arcs",
        "--coverage",
        "-coverage",
        "-fstack-usage",
        "-fcallgraph-info",
        "-fdump-",
        "-fsave-optimization-record",
    ];
    MAKERS.iter().any(|it| arguments.has_like(it))
}

/// Asks the compiler, whose command this is.
pub fn names(command: &mut Command, is_clang: bool) -> Names {
    let Ok(output) = command.arg("-###").output() else {
        return Names::new();
    };
    let plans = output.stderr.split(|byte| *byte == b'\n');
    let plans = plans.map(response_files::words);
    plans.filter_map(|plan| named(&plan, is_clang)).collect()
}

/// The source that a step of the compiler is about, and the names in it.
fn named(plan: &[OsString], is_clang: bool) -> Option<(OsString, Vec<OsString>)> {
    let (source, words): (_, Vec<_>) = match is_clang {
        true => (after(plan, "-main-file-name")?, clangs_names(plan)),
        false => (after(plan, "-dumpbase")?, gccs_names(plan)),
    };
    let words = words.into_iter().map(OsStr::to_owned).collect();
    Some((input_named(plan, source)?, words))
}

/// All names are made of these. Without a folder it is the current one; not that of our objects.
fn gccs_names(plan: &[OsString]) -> Vec<&OsStr> {
    let names = ["-dumpdir", "-dumpbase", "-dumpbase-ext"].map(|it| (it, after(plan, it)));
    let words = names.map(|(option, name)| [OsStr::new(option), name.unwrap_or_default()]);
    words.into_iter().flatten().collect()
}

/// Only the compiler proper can be told the names.
fn clangs_names(plan: &[OsString]) -> Vec<&OsStr> {
    const NAMES: [&str; 5] = [
        "-split-dwarf-file",
        "-split-dwarf-output",
        "-coverage-notes-file",
        "-coverage-data-file",
        "-stack-usage-file",
    ];
    let to_it = OsStr::new("-Xclang");
    let names = NAMES.map(|it| (it, after(plan, it)));
    let words = names
        .into_iter()
        .filter_map(|(option, name)| Some([to_it, OsStr::new(option), to_it, name?]));
    words.flatten().collect()
}

/// The word behind this one.
fn after<'a>(plan: &'a [OsString], word: &str) -> Option<&'a OsStr> {
    let at = plan.iter().position(|it| it == word)?;
    plan.get(at + 1).map(OsString::as_os_str)
}

/// The word that is the path of a file of this name, and not the name of something to be made.
fn input_named(plan: &[OsString], name: &OsStr) -> Option<OsString> {
    let names = ["-main-file-name", "-dumpbase"];
    let is_input = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| plan[at].to_str());
        before.is_none_or(|before| !names.contains(&before))
            && std::path::Path::new(&plan[at]).file_name() == Some(name)
    };
    let at = (0..plan.len()).find(|at| is_input(*at))?;
    plan.get(at).cloned()
}
