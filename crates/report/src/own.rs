//! Which code is the user's own, and whose is the rest?
//!
//! Own is what is neither in a program or library that came with the system, nor from a source file
//! that did, nor from one that a package manager fetched. A program of the system is own if there is
//! nothing else to look at: who counts `sort` wants to see `sort`. `--own` says something else.

use crate::glob::base_name;
use crate::names::Named;
use crate::only::Only;
use headcount_model::{Counted, Module, Refusal};
use std::collections::HashMap;
use std::sync::Arc;

/// Where sources of libraries are kept that a package manager fetched; the name of the library comes
/// so many folders below.
const FETCHED: [(&str, usize); 3] = [
    ("/.cargo/registry/src/", 1),
    ("/.cargo/git/checkouts/", 0),
    ("/go/pkg/mod/", 2),
];

/// Where sources of Rust's own library are.
const OF_RUST: [&str; 3] = ["/rustc/", "/.rustup/", "/rust/deps/"];

/// Where the system keeps programs, and libraries.
const PROGRAMS: [&str; 5] = [
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/libexec/",
    "/bin/",
    "/sbin/",
];
const LIBRARIES: [&str; 6] = [
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/lib/",
    "/lib32/",
    "/lib64/",
];

/// Is this a file of the compiler or of a library that came with the system? Users who want to
/// see those say so.
pub fn is_of_the_system(file: &str) -> bool {
    let folders = ["/usr/include/", "/usr/lib/", "/rustc/"];
    folders.iter().any(|folder| file.starts_with(folder))
}

/// The name of the library that a source file belongs to; none, if it is the user's own.
pub fn library_of_file(file: &str) -> Option<String> {
    // Names may begin in the current folder.
    let file = &format!("/{}", file.trim_start_matches('/'));
    if OF_RUST.iter().any(|it| file.contains(it)) {
        return Some("Rust's library".to_owned());
    }
    for (folder, below) in FETCHED {
        if let Some((_, rest)) = file.split_once(folder) {
            return Some(rest.split('/').nth(below).unwrap_or(rest).to_owned());
        }
    }
    is_of_the_system(file).then(|| "system headers".to_owned())
}

/// Whether the linker made this function, to call another one in a library.
fn is_stub(name: &str) -> bool {
    name == "plt0" || name.ends_with("@plt")
}

/// Whether the name of a function says that it is of the standard library of Rust or C++.
fn is_standard(name: &str) -> bool {
    let name = name.trim_start_matches('<');
    let crates = ["std::", "core::", "alloc::"];
    crates.iter().any(|it| name.starts_with(it))
}

/// What came with the system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Elsewhere,
    Program,
    Library,
}

fn origin(path: &str) -> Origin {
    let is_in = |folders: &[&str]| folders.iter().any(|it| path.starts_with(it));
    let is_shared = base_name(path).contains(".so");
    match (is_in(&PROGRAMS), is_in(&LIBRARIES)) {
        // What is in no file at all was made by the kernel, or by a runtime.
        _ if path.is_empty() || path.starts_with('[') => Origin::Library,
        (true, _) => Origin::Program,
        (_, true) if is_shared => Origin::Library,
        (_, true) => Origin::Program,
        _ => Origin::Elsewhere,
    }
}

/// Which of some programs and libraries are the user's own.
#[derive(Clone, Copy, Debug)]
pub struct OwnModules {
    /// Whether programs of the system are, because there is nothing else.
    with_system_programs: bool,
}

impl OwnModules {
    /// Looks at all of them.
    pub fn of<'a>(mut paths: impl Iterator<Item = &'a str>) -> Self {
        Self {
            with_system_programs: !paths.any(|it| origin(it) == Origin::Elsewhere),
        }
    }

    /// Is this one?
    pub fn has(self, path: &str) -> bool {
        match origin(path) {
            Origin::Elsewhere => true,
            Origin::Program => self.with_system_programs,
            Origin::Library => false,
        }
    }

    /// Is this function the user's own? Its file is empty if nobody knows it.
    pub fn has_function(self, path: &str, file: &str, name: &str) -> bool {
        self.has(path) && library_of_file(file).is_none() && !is_stub(name)
    }
}

/// What is the user's own of some counted modules.
pub struct Own {
    modules: OwnModules,
    /// What the user says it is.
    said: Only,
    /// The libraries that source files belong to, as far as all their code does.
    files: HashMap<String, Option<Arc<str>>>,
}

impl Own {
    /// By the rule, or what `said` names.
    pub fn new(counted: &[Counted], said: Only) -> Self {
        let mut own = Self {
            modules: OwnModules::of(counted.iter().map(|it| it.module.path.as_str())),
            said,
            files: HashMap::new(),
        };
        for module in counted.iter().map(|it| &it.module) {
            for file in &module.files {
                let library = own.library_of_code(module, file);
                let known = own
                    .files
                    .entry(file.clone())
                    .or_insert_with(|| library.clone());
                if library.is_none() {
                    *known = None;
                }
            }
        }
        own
    }

    /// The name of the library that a function belongs to; none, if it is the user's own.
    pub fn library(&self, named: &Named<'_>) -> Option<Arc<str>> {
        if !self.said.is_everything() && self.said.wants(named) {
            return None;
        }
        if is_stub(&named.function.name) {
            return Some("stubs of the linker".into());
        }
        let file = named.own_file().unwrap_or("");
        let library = self.by_rule(&named.module.path, file);
        match is_standard(&named.name) && file.is_empty() {
            true => library.or_else(|| Some("standard library".into())),
            false => library,
        }
    }

    /// The same for a function that was not counted.
    pub fn library_at(&self, module: &str, file: &str, names: &[&str]) -> Option<Arc<str>> {
        if !self.said.is_everything() && self.said.wants_name(module, names) {
            return None;
        }
        self.by_rule(module, file)
    }

    /// The same for a source file.
    pub fn library_of_file(&self, file: &str) -> Option<Arc<str>> {
        match self.files.get(file) {
            Some(known) => known.clone(),
            None => library_of_file(file).map(Into::into),
        }
    }

    /// Whether a module is the user's own, as a whole or in part.
    pub fn has_module(&self, module: &Module) -> bool {
        match self.said.is_everything() {
            true => self.modules.has(&module.path),
            false => self.said.wants_module(module) || self.has_file_of(module),
        }
    }

    /// The name of the library that a module is, if nothing of it is the user's own.
    pub fn library_of_module(&self, module: &Module) -> Option<Arc<str>> {
        (!self.has_module(module)).then(|| base_name(&module.path).into())
    }

    /// Whether something is the user's own that is not counted.
    pub fn has_refused(&self, module: &Module, refusal: &Refusal) -> bool {
        self.has_module(module) && self.library_of_file(&refusal.file).is_none()
    }

    /// Whether a note says that a library is not counted, of the system's or of the kernel's.
    pub fn is_of_library(&self, note: &str) -> bool {
        let path = note.split_once(" is not counted: ").map_or("", |it| it.0);
        path.starts_with(['/', '[']) && !self.modules.has(path)
    }

    fn has_file_of(&self, module: &Module) -> bool {
        let is_wanted = |file: &String| self.said.wants_file(module, file);
        module.files.iter().any(is_wanted)
    }

    fn library_of_code(&self, module: &Module, file: &str) -> Option<Arc<str>> {
        if !self.said.is_everything() && self.said.wants_file(module, file) {
            return None;
        }
        self.by_rule(&module.path, file)
    }

    fn by_rule(&self, module: &str, file: &str) -> Option<Arc<str>> {
        if !self.modules.has(module) {
            return Some(base_name(module).into());
        }
        match library_of_file(file) {
            Some(library) => Some(library.into()),
            // Who says what is own says that all else is not.
            None => (!self.said.is_everything()).then(|| base_name(module).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_named() {
        let library = |file: &str| library_of_file(file);
        assert_eq!(library("src/main.rs"), None);
        assert_eq!(library("/home/u/prog/max.c"), None);
        let here = ".cargo/registry/src/index.crates.io-1/memchr-2.7.4/src/lib.rs";
        assert_eq!(library(here).as_deref(), Some("memchr-2.7.4"));
        let crates = "/home/u/.cargo/registry/src/index.crates.io-1/memchr-2.7.4/src/lib.rs";
        assert_eq!(library(crates).as_deref(), Some("memchr-2.7.4"));
        let std = "/rustc/0123/library/core/src/fmt/mod.rs";
        assert_eq!(library(std).as_deref(), Some("Rust's library"));
        let header = "/usr/include/c++/12/bits/stl_vector.h";
        assert_eq!(library(header).as_deref(), Some("system headers"));
    }

    #[test]
    fn a_program_of_the_system_is_own_if_there_is_nothing_else() {
        let own = OwnModules::of(["/usr/bin/sort", "/lib/x86_64-linux-gnu/libc.so.6"].into_iter());
        assert!(own.has("/usr/bin/sort") && !own.has("/lib/x86_64-linux-gnu/libc.so.6"));
        let own = OwnModules::of(["/usr/bin/bash", "/home/u/prog", "[vdso]"].into_iter());
        assert!(own.has("/home/u/prog") && !own.has("/usr/bin/bash") && !own.has("[vdso]"));
    }

    fn counted(path: &str, files: &[&str]) -> Counted {
        Counted {
            module: Module {
                path: path.to_owned(),
                files: files.iter().map(|it| (*it).to_owned()).collect(),
                ..Module::default()
            },
            functions: Vec::new(),
            sources: Default::default(),
        }
    }

    #[test]
    fn a_file_is_own_if_any_code_of_it_is() {
        let modules = [
            counted("/lib/libc.so.6", &["malloc/malloc.c", "shared.h"]),
            counted(
                "/home/u/prog",
                &["shared.h", "main.c", "/usr/include/stdio.h"],
            ),
        ];
        let own = Own::new(&modules, Only::default());
        let library = |file: &str| own.library_of_file(file);
        assert_eq!(library("malloc/malloc.c").as_deref(), Some("libc.so.6"));
        assert_eq!(library("shared.h"), None);
        assert_eq!(library("main.c"), None);
        assert_eq!(
            library("/usr/include/stdio.h").as_deref(),
            Some("system headers")
        );
    }

    #[test]
    fn the_user_has_the_last_word() {
        let modules = [counted("/home/u/prog", &["src/a.c", "vendored/b.c"])];
        let said = Only::new(&["src/*".to_owned()], &[&modules], true);
        let own = Own::new(&modules, said);
        assert_eq!(own.library_of_file("src/a.c"), None);
        assert_eq!(own.library_of_file("vendored/b.c").as_deref(), Some("prog"));
        assert!(own.has_module(&modules[0].module));
    }
}
