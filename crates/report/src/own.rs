//! Which code is the user's own, and whose is the rest?
//!
//! Own is what is neither in a program or library that came with the system, nor from a source file
//! that did, nor from one that a package manager fetched. A program of the system is own if there is
//! nothing else to look at: who counts `sort` wants to see `sort`. So is the package that a program
//! was made of that its package manager installed. An interpreter is a program of the system, wherever it is:
//! who counts a script wants to see the script. `--own` says something else.

use crate::glob::base_name;
use crate::names::Named;
use crate::only::Only;
use headcount_model::{Counted, Module, Refusal};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
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

/// Crates that Rust's own library is built with, and brings along in compiled form.
const BUNDLED: [&str; 10] = [
    "addr2line::",
    "adler::",
    "adler2::",
    "compiler_builtins::",
    "gimli::",
    "hashbrown::",
    "memchr::",
    "miniz_oxide::",
    "object::read::",
    "rustc_demangle::",
];

/// What functions belong to that a compiler adds, or that are of a library without any source.
const STANDARD: &str = "standard library";

/// What functions belong to that every program begins and ends with, from the C library's objects.
const START_UP: &str = "start-up code";

/// Those functions, by the linker's names. One of them is in nothing else.
const STARTING: [&str; 9] = [
    ONLY_STARTING,
    "__do_global_dtors_aux",
    "__libc_csu_fini",
    "__libc_csu_init",
    "_fini",
    "_init",
    "_start",
    "frame_dummy",
    "register_tm_clones",
];
const ONLY_STARTING: &str = "deregister_tm_clones";

/// What files belong to that have code in more than one.
const SEVERAL: &str = "several libraries";

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

/// The folder of the package that a source file was fetched with.
fn package_folder(file: &str) -> Option<&str> {
    FETCHED.iter().find_map(|(folder, below)| {
        let here = &folder[1..];
        let start = match file.starts_with(here) {
            true => here.len(),
            false => file.find(folder)? + folder.len(),
        };
        let (end, _) = file[start..].match_indices('/').nth(*below)?;
        Some(&file[..start + end + 1])
    })
}

/// Whether a package was made to write this file while it was installed.
fn is_made_by_installing(file: &str) -> bool {
    file.contains("/cargo-install")
}

/// Whether a program begins with this function, by the linker's name.
fn is_main(name: &str) -> bool {
    if !name.contains("main") {
        return false;
    }
    match crate::demangle(name).split_once("::") {
        Some((_, function)) => function == "main",
        None => matches!(name, "main" | "main.main"),
    }
}

/// Whether the linker made this function, to call another one in a library.
fn is_stub(name: &str) -> bool {
    name == "plt0" || name.ends_with("@plt")
}

/// Whether the name of a function says that it is of the standard library of Rust or C++.
fn is_standard(name: &str) -> bool {
    let Some(inside) = name.strip_prefix('<') else {
        return is_of_standard_crate(name);
    };
    // The types of programs have their crates in their names, those of the language have none.
    let (type_of, rest) = match inside.split_once(" as ") {
        Some((type_of, of_trait)) => (type_of, Some(of_trait)),
        None => (inside.split('>').next().unwrap_or(inside), None),
    };
    match type_of.contains("::") {
        true => is_of_standard_crate(type_of.trim_start_matches(['<', '&', '['])),
        false => rest.is_none_or(is_of_standard_crate),
    }
}

/// Whether a path begins in a crate of Rust's library.
fn is_of_standard_crate(path: &str) -> bool {
    let crates = ["std::", "core::", "alloc::"];
    crates.iter().chain(&BUNDLED).any(|it| path.starts_with(it))
}

/// Whether the compiler made this function, by the linker's name, to lead from Rust to what allocates
/// memory or unwinds the stack.
fn is_shim(name: &str) -> bool {
    let begins = ["__rust_", "__rdl_", "__rg_"];
    let is_shim = |name: &str| begins.iter().any(|it| name.starts_with(it));
    is_shim(name)
        || name.contains("__rust") && {
            let name = crate::demangle(name);
            name.starts_with("__rustc::") || name.starts_with("__rustc[") || is_shim(&name)
        }
}

/// Whose a function is that is among the user's own code and not theirs, by the linker's name. Its file is empty
/// if nobody knows it.
fn library_by_name(file: &str, name: &str) -> Option<&'static str> {
    if is_stub(name) {
        return Some("stubs of the linker");
    }
    let is_of_standard = is_shim(name) || file.is_empty() && is_standard(&crate::demangle(name));
    is_of_standard.then_some(STANDARD)
}

/// The library of an interpreter's language that a file belongs to, a script or a module in C; none, if it is
/// the user's own.
fn library_of_script(path: &str) -> Option<&str> {
    const OF_PYTHON: &str = "Python's library";
    for packages in ["/site-packages/", "/dist-packages/"] {
        if let Some((_, inside)) = path.split_once(packages) {
            let package = inside.split('/').next().unwrap_or(inside);
            return Some(package.strip_suffix(".py").unwrap_or(package));
        }
    }
    for packages in ["/share/lua/", "/lib/lua/"] {
        if let Some((_, inside)) = path.split_once(packages) {
            // Behind the version.
            let package = inside.split('/').nth(1).unwrap_or(inside);
            let package = package.strip_suffix(".lua").unwrap_or(package);
            return Some(package.strip_suffix(".so").unwrap_or(package));
        }
    }
    if path.contains("/lib/icon-ipl/") {
        return Some("Icon's library");
    }
    let is_of_python = path.contains("/lib/python3") || path.starts_with("<frozen ");
    // What other code made while it ran; but for what the user typed.
    let is_made = path.starts_with('<') && !matches!(path, "<string>" | "<stdin>");
    (is_of_python || is_made).then_some(OF_PYTHON)
}

/// Is this a program that runs scripts, or the library with all of it?
fn is_interpreter(path: &str) -> bool {
    let name = base_name(path);
    [
        "python3",
        "python",
        "libpython3",
        "lua",
        "lua5",
        "liblua",
        "liblua5",
        "iconx",
    ]
    .iter()
    .any(|it| {
        let rest = name.strip_prefix(it);
        rest.is_some_and(|it| it.is_empty() || it.starts_with(['.', '-']))
    })
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
        _ if library_of_script(path).is_some() => Origin::Library,
        _ if is_interpreter(path) && is_shared => Origin::Library,
        _ if is_interpreter(path) => Origin::Program,
        (true, _) => Origin::Program,
        (_, true) if is_shared => Origin::Library,
        (_, true) => Origin::Program,
        _ => Origin::Elsewhere,
    }
}

/// Which of some programs and libraries are the user's own.
#[derive(Clone, Debug)]
pub struct OwnModules {
    /// Whether programs of the system are, because there is nothing else.
    with_system_programs: bool,
    /// The folders of fetched packages that are, because there is nothing else.
    packages: Vec<String>,
    /// Those that begin with the C library's objects.
    started: BTreeSet<String>,
}

impl OwnModules {
    /// Looks at all of them.
    pub fn of<'a>(mut paths: impl Iterator<Item = &'a str>) -> Self {
        Self {
            with_system_programs: !paths.any(|it| origin(it) == Origin::Elsewhere),
            packages: Vec::new(),
            started: BTreeSet::new(),
        }
    }

    /// With what functions tell, of each of which it takes the path of the module, the source file and
    /// the linker's name: which modules have start-up code, and which fetched package a program begins
    /// in.
    pub fn with_functions<'a>(
        mut self,
        functions: impl Iterator<Item = (&'a str, &'a str, &'a str)> + Clone,
    ) -> Self {
        let starting = functions.clone().filter(|it| it.2 == ONLY_STARTING);
        self.started = starting.map(|it| it.0.to_owned()).collect();
        self.with_installed(functions)
    }

    /// With the fetched package that a program begins in, if no function of any has a source of the
    /// user's own: its package manager installed it.
    pub fn with_installed<'a>(
        mut self,
        functions: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Self {
        let mut packages: Vec<String> = Vec::new();
        for (module, file, name) in functions {
            if file.is_empty() || !self.has(module) || is_made_by_installing(file) {
                continue;
            }
            match package_folder(file) {
                None if library_of_file(file).is_none() => return self,
                Some(folder) if is_main(name) => packages.push(folder.to_owned()),
                _ => (),
            }
        }
        packages.sort_unstable();
        packages.dedup();
        self.packages = packages;
        self
    }

    /// The name of the library that a source file belongs to; none, if it is the user's own.
    fn library_of_file(&self, file: &str) -> Option<String> {
        let is_in = |folder: &String| file.starts_with(folder);
        match self.packages.iter().any(is_in) {
            true => None,
            false => library_of_file(file),
        }
    }

    /// Is this one?
    pub fn has(&self, path: &str) -> bool {
        match origin(path) {
            Origin::Elsewhere => true,
            Origin::Program => self.with_system_programs,
            Origin::Library => false,
        }
    }

    /// Whether a note says that a library is not counted, of the system's or of the kernel's.
    pub fn is_told_of_library(&self, note: &str) -> bool {
        let path = note.split_once(" is not counted: ").map_or("", |it| it.0);
        path.starts_with(['/', '[']) && !self.has(path)
    }

    /// Did the compiler add this function, so that the program can begin and end?
    fn is_start_up(&self, path: &str, file: &str, name: &str) -> bool {
        file.is_empty() && STARTING.contains(&name) && self.started.contains(path)
    }

    /// Is this function the user's own, by the linker's name? Its file is empty if nobody knows it.
    pub fn has_function(&self, path: &str, file: &str, name: &str) -> bool {
        self.has(path)
            && self.library_of_file(file).is_none()
            && library_by_name(file, name).is_none()
            && !self.is_start_up(path, file, name)
    }
}

/// The functions of a module: its path, their files and the linker's names.
fn functions(module: &Module) -> impl Iterator<Item = (&str, &str, &str)> + Clone {
    module.functions.iter().map(|it| {
        let file = it
            .source
            .and_then(|(file, _)| module.files.get(file.index()));
        let file = file.map_or("", String::as_str);
        (module.path.as_str(), file, it.name.as_str())
    })
}

/// The library that a file belongs to that has code in two.
fn common(file: &str, one: Option<&Arc<str>>, other: Option<&Arc<str>>) -> Option<Arc<str>> {
    let (one, other) = (one?, other?);
    match one == other {
        true => Some(one.clone()),
        false => Some(library_of_file(file).map_or_else(|| SEVERAL.into(), Into::into)),
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
        let paths = counted.iter().map(|it| it.module.path.as_str());
        let functions = counted.iter().flat_map(|it| functions(&it.module));
        let mut own = Self {
            modules: OwnModules::of(paths).with_functions(functions),
            said,
            files: HashMap::new(),
        };
        for module in counted.iter().map(|it| &it.module) {
            for file in &module.files {
                let library = own.library_of_code(module, file);
                match own.files.entry(file.clone()) {
                    Entry::Vacant(it) => {
                        it.insert(library);
                    }
                    Entry::Occupied(mut it) => {
                        let library = common(file, it.get().as_ref(), library.as_ref());
                        it.insert(library);
                    }
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
        self.library_of_function(
            &named.module.path,
            named.own_file().unwrap_or(""),
            &named.function.name,
        )
    }

    /// The same for a function that was not counted.
    pub fn library_at(&self, module: &str, file: &str, names: &[&str]) -> Option<Arc<str>> {
        if !self.said.is_everything() && self.said.wants_name(module, names) {
            return None;
        }
        let mut libraries = names
            .iter()
            .map(|name| self.library_of_function(module, file, name));
        match libraries.find(Option::is_some) {
            Some(library) => library,
            None => self.by_rule(module, file),
        }
    }

    /// Is this code the user's own that was seen to run, where they say what is? By the linker's name.
    pub fn is_said(&self, module: &str, file: &str, name: &str) -> Option<bool> {
        let is_said = || {
            let names = [name, &crate::demangle(name)];
            self.said.wants_sampled(module, &names, file)
        };
        (!self.said.is_everything()).then(is_said)
    }

    /// By the rule.
    fn library_of_function(&self, module: &str, file: &str, name: &str) -> Option<Arc<str>> {
        let by_name = library_by_name(file, name);
        match (by_name, self.by_rule(module, file)) {
            // The library's own name says more.
            (Some(STANDARD), Some(library)) if !is_shim(name) => Some(library),
            (Some(by_name), _) => Some(by_name.into()),
            (None, None) if self.modules.is_start_up(module, file, name) => Some(START_UP.into()),
            (None, library) => library,
        }
    }

    /// The same for a source file.
    pub fn library_of_file(&self, file: &str) -> Option<Arc<str>> {
        match self.files.get(file) {
            Some(known) => known.clone(),
            None => self.modules.library_of_file(file).map(Into::into),
        }
    }

    /// The same for the code that some modules have of a source file. Of one module it is known better
    /// than of all.
    pub fn library_of_file_in(&self, counted: &[Counted], file: &str) -> Option<Arc<str>> {
        match counted {
            [one] if self.files.contains_key(file) => self.library_of_code(&one.module, file),
            _ => self.library_of_file(file),
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
        let name = || library_of_script(&module.path).unwrap_or_else(|| base_name(&module.path));
        (!self.has_module(module)).then(|| name().into())
    }

    /// Whether something is the user's own that is not counted.
    pub fn has_refused(&self, module: &Module, refusal: &Refusal) -> bool {
        self.has_module(module) && self.library_of_file(&refusal.file).is_none()
    }

    /// Whether a note says that a library is not counted, of the system's or of the kernel's.
    pub fn is_of_library(&self, note: &str) -> bool {
        self.modules.is_told_of_library(note)
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
            let name = library_of_script(module).unwrap_or_else(|| base_name(module));
            return Some(name.into());
        }
        match self.modules.library_of_file(file) {
            Some(library) => Some(library.into()),
            // Who says what is own says that all else is not.
            None => (!self.said.is_everything()).then(|| base_name(module).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::{FileId, Function, LinkAddr};

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
    fn scripts_are_told_from_the_library_of_their_language() {
        let library = library_of_script;
        assert_eq!(library("/home/u/app.py"), None);
        assert_eq!(library("<string>"), None);
        assert_eq!(library("<frozen os>"), Some("Python's library"));
        assert_eq!(
            library("/usr/lib/python3.11/os.py"),
            Some("Python's library")
        );
        let numpy = "/home/u/venv/lib/python3.11/site-packages/numpy/core/_methods.py";
        assert_eq!(library(numpy), Some("numpy"));
        assert_eq!(
            library("/usr/lib/python3/dist-packages/six.py"),
            Some("six")
        );
        let module = "/opt/py/lib/python3.11/lib-dynload/zlib.cpython-311-x86_64-linux-gnu.so";
        assert_eq!(library(module), Some("Python's library"));
        assert_eq!(
            library("/usr/share/lua/5.4/socket/http.lua"),
            Some("socket")
        );
        assert_eq!(library("/usr/lib/lua/5.4/lpeg.so"), Some("lpeg"));
        let lists = "/usr/lib/icon-ipl/lists.icn";
        assert_eq!(library(lists), Some("Icon's library"));
        assert_eq!(library("/home/u/icon-ipl.icn"), None);
        assert_eq!(library("/home/u/lua/app.lua"), None);
        for name in ["lua", "lua5.4", "liblua5.4.so.0.0.0", "liblua.so"] {
            assert!(is_interpreter(name), "{name}");
        }
        assert!(!is_interpreter("luakit"));
        let paths = ["/opt/py/bin/python3.11", "/home/u/app.py"];
        let own = OwnModules::of(paths.into_iter());
        assert!(!own.has(paths[0]) && own.has(paths[1]));
        assert!(OwnModules::of(paths[..1].iter().copied()).has(paths[0]));
        assert!(OwnModules::of(["/home/u/pythonic"].into_iter()).has("/home/u/pythonic"));
    }

    #[test]
    fn what_rusts_library_brings_along_is_no_ones_own() {
        for name in [
            "core::fmt::write",
            "<rustc_demangle::legacy::Demangle as core::fmt::Display>::fmt",
            "miniz_oxide::inflate::core::decompress",
            "gimli::read::abbrev::Attributes::push",
            "<str>::trim_start_matches::<&str>",
            "<[u8] as core::fmt::Debug>::fmt",
            "<&[u8] as object::read::read_ref::ReadRef>::read_bytes_at_until",
            "<&core::num::error::IntErrorKind as core::fmt::Debug>::fmt",
        ] {
            assert!(is_standard(name), "{name}");
        }
        for name in [
            "main",
            "object::area",
            "my_gimli::read",
            "hashbrown_user",
            "<shop::Cart as core::fmt::Debug>::fmt",
            "<[u8] as shop::Sum>::sum",
        ] {
            assert!(!is_standard(name), "{name}");
        }
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

    /// A module whose functions have a source, or none.
    fn with_functions(path: &str, functions: &[(&str, Option<&str>)]) -> Counted {
        let files: Vec<&str> = functions.iter().filter_map(|it| it.1).collect();
        let mut counted = counted(path, &files);
        for (name, file) in functions {
            let file = file.and_then(|file| files.iter().position(|it| *it == file));
            counted.module.functions.push(Function {
                name: (*name).to_owned(),
                address: LinkAddr(0),
                source: file.map(|it| (FileId(it as u32), 1)),
                blocks: Vec::new(),
                edges: Vec::new(),
                counters: 0,
                compiled: Default::default(),
            });
            counted.functions.push(Default::default());
        }
        counted
    }

    #[test]
    fn standard_code_without_a_source_is_known_by_the_linkers_name() {
        let name = "_ZN4core3fmt5write17h0123456789abcdefE";
        let functions = [(name, None), ("main", None)];
        let module = with_functions("/home/u/prog", &functions);
        let own = Own::new(std::slice::from_ref(&module), Only::default());
        for demangle in [false, true] {
            let all = crate::names::all_functions(&module, demangle);
            let libraries: Vec<_> = all.iter().map(|it| own.library(it)).collect();
            assert_eq!(libraries, [Some(STANDARD.into()), None], "{demangle}");
        }
        let modules = OwnModules::of(["/home/u/prog"].into_iter());
        assert!(!modules.has_function("/home/u/prog", "", name));
        assert!(!modules.has_function("/home/u/prog", "", "core::fmt::write"));
        assert!(modules.has_function("/home/u/prog", "", "main"));
    }

    fn library_of(own: &Own, counted: &Counted, name: &str) -> Option<String> {
        let all = crate::names::all_functions(counted, true);
        let named = all.iter().find(|it| it.function.name == name).unwrap();
        own.library(named).map(|it| it.to_string())
    }

    const FETCHED_MAIN: &str = "/home/u/.cargo/registry/src/index-1/tool-1.2.3/src/main.rs";
    const FETCHED_OTHER: &str = "/home/u/.cargo/registry/src/index-1/memchr-2.7.4/src/lib.rs";

    #[test]
    fn an_installed_program_is_its_package() {
        let functions = [
            ("_ZN4tool4main17h0123456789abcdefE", Some(FETCHED_MAIN)),
            ("_ZN6memchr4find17h0123456789abcdefE", Some(FETCHED_OTHER)),
            ("main", None),
        ];
        let installed = with_functions("/home/u/.cargo/bin/tool", &functions);
        let modules = [installed.clone()];
        let own = Own::new(&modules, Only::default());
        let of = |name: &str| library_of(&own, &installed, name);
        assert_eq!(of("_ZN4tool4main17h0123456789abcdefE"), None);
        let other = of("_ZN6memchr4find17h0123456789abcdefE");
        assert_eq!(other.as_deref(), Some("memchr-2.7.4"));
        assert_eq!(own.library_of_file(FETCHED_MAIN), None);
        let module = "/home/u/.cargo/registry/src/index-1/tool-1.2.3/src/args.rs";
        assert_eq!(own.library_of_file(module), None);
        assert!(own.library_of_file(FETCHED_OTHER).is_some());
        // Who has a program of their own looks at that.
        let mine = with_functions("/home/u/prog", &[("main", Some("/home/u/main.c"))]);
        let own = Own::new(&[installed.clone(), mine], Only::default());
        let library = own.library_of_file(FETCHED_MAIN);
        assert_eq!(library.as_deref(), Some("tool-1.2.3"));
    }

    #[test]
    fn folders_of_packages_are_known_from_everywhere() {
        let folder = |file: &str| package_folder(file).map(str::to_owned);
        let package = "/home/u/.cargo/registry/src/index-1/tool-1.2.3/";
        assert_eq!(folder(FETCHED_MAIN).as_deref(), Some(package));
        let here = ".cargo/registry/src/index-1/tool-1.2.3/src/main.rs";
        let package = ".cargo/registry/src/index-1/tool-1.2.3/";
        assert_eq!(folder(here).as_deref(), Some(package));
        let go = "/home/u/go/pkg/mod/github.com/a/tool@v1.0.0/main.go";
        let package = "/home/u/go/pkg/mod/github.com/a/tool@v1.0.0/";
        assert_eq!(folder(go).as_deref(), Some(package));
        assert_eq!(folder("/home/u/main.c"), None);
    }

    #[test]
    fn what_every_program_begins_with_is_no_ones_own() {
        let of = |module: &Counted, name: &str| {
            let own = Own::new(std::slice::from_ref(module), Only::default());
            library_of(&own, module, name)
        };
        let usual = ["_start", "deregister_tm_clones", "_init", "main"];
        let program = with_functions("/home/u/prog", &usual.map(|it| (it, None)));
        for name in &usual[..3] {
            assert_eq!(of(&program, name).as_deref(), Some(START_UP), "{name}");
        }
        assert_eq!(of(&program, "main"), None);
        // A program without a C library has one of its own.
        let bare = with_functions("/home/u/kernel", &[("_start", None)]);
        assert_eq!(of(&bare, "_start"), None);
    }

    #[test]
    fn shims_of_the_compiler_are_of_the_standard_library() {
        let names = [
            "__rust_alloc",
            "_RNvCs691rhTbG0Ee_7___rustc14___rust_dealloc",
            "__rg_realloc",
        ];
        for file in [None, Some("/home/u/src/lib.rs")] {
            let functions = names.map(|name| (name, file));
            let module = with_functions("/home/u/prog", &functions);
            let own = Own::new(std::slice::from_ref(&module), Only::default());
            for name in names {
                let library = library_of(&own, &module, name);
                assert_eq!(library.as_deref(), Some("standard library"), "{name}");
            }
        }
        assert!(!is_shim("_ZN4main10__rust_sum17h0123456789abcdefE"));
    }

    #[test]
    fn a_file_of_two_libraries_is_given_to_neither() {
        let header = "/usr/include/c++/12/bits/stl_vector.h";
        let modules = [
            counted("/lib64/ld-linux-x86-64.so.2", &["string/memcpy.c", header]),
            counted("/lib/libc.so.6", &["string/memcpy.c", "malloc/malloc.c"]),
            counted("/home/u/prog", &["main.c", header]),
        ];
        let own = Own::new(&modules, Only::default());
        let library = own.library_of_file("string/memcpy.c");
        assert_eq!(library.as_deref(), Some("several libraries"));
        let library = own.library_of_file("malloc/malloc.c");
        assert_eq!(library.as_deref(), Some("libc.so.6"));
        assert_eq!(
            own.library_of_file(header).as_deref(),
            Some("system headers")
        );
        let of_one = own.library_of_file_in(&modules[1..2], "string/memcpy.c");
        assert_eq!(of_one.as_deref(), Some("libc.so.6"));
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
