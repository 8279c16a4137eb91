//! Functions in the order of reports, with the names reports show.

use crate::count::{self, CountedBlock};
use crate::listed::{Beginnings, beginnings};
use headcount_model::{Counted, FileId, Function, FunctionCounts, Module};
use std::sync::Arc;

/// A function with its counts and its names.
pub struct Named<'a> {
    pub module: &'a Module,
    pub function: &'a Function,
    /// Its place in the module's own order.
    pub index: usize,
    pub counts: &'a FunctionCounts,
    /// As reports show it.
    pub name: Arc<str>,
    pub module_path: Arc<str>,
    /// Where functions of its module begin, if that is not where they are called.
    pub beginnings: Arc<Beginnings>,
}

impl<'a> Named<'a> {
    /// Name of a source file.
    pub fn file(&self, id: FileId) -> Option<&'a str> {
        self.module.files.get(id.index()).map(String::as_str)
    }

    /// The file its own source is in.
    pub fn own_file(&self) -> Option<&'a str> {
        self.function.source.and_then(|(file, _)| self.file(file))
    }

    /// Whether its source text was counted before it was compiled.
    pub fn is_of_source(&self) -> bool {
        self.function.blocks.iter().any(|it| it.place.is_some())
    }

    /// Blocks with their counts.
    pub fn blocks(&self) -> impl Iterator<Item = CountedBlock<'a>> {
        count::blocks(self.function, self.counts)
    }
}

/// What compilers put behind the linker's name of what they make of a function: parts of it, ...
const PARTS: [&str; 2] = ["cold", "part"];

/// ... and copies. A number follows.
const COPIES: [&str; 5] = ["constprop", "isra", "llvm", "lto_priv", "localalias"];

/// Behind these, the number may be missing. (In other languages, `main.part` is a name like others.)
const WITHOUT_NUMBER: [&str; 2] = ["cold", "localalias"];

/// The linker's name of the function that a compiler made this one of, or its own.
pub fn origin(name: &str) -> &str {
    let mut name = name;
    while let Some((front, _)) = made_of(name) {
        name = front;
    }
    name
}

/// The name of the function that this one was cut off from, because it seldom runs; or its own.
pub fn whole(name: &str) -> &str {
    match made_of(name) {
        Some((whole, "cold")) => whole,
        _ => name,
    }
}

/// Is it a part of a function, which others do not call?
pub fn is_part(name: &str) -> bool {
    let mut name = name;
    while let Some((front, kind)) = made_of(name) {
        if PARTS.contains(&kind) {
            return true;
        }
        name = front;
    }
    false
}

/// `f` and `part` of `f.part.0`; `f` and `cold` of `f.cold`.
fn made_of(name: &str) -> Option<(&str, &str)> {
    let (front, last) = name.rsplit_once('.')?;
    let is_number = !last.is_empty() && last.bytes().all(|it| it.is_ascii_digit());
    let (front, kind) = match is_number {
        true => front.rsplit_once('.')?,
        false => (front, last),
    };
    let is_known = PARTS.contains(&kind) || COPIES.contains(&kind);
    let is_whole = is_number || WITHOUT_NUMBER.contains(&kind);
    (is_known && is_whole && !front.is_empty()).then_some((front, kind))
}

/// Was anything of it counted? A function without a block has nothing that could be.
pub fn is_counted(counts: &FunctionCounts) -> bool {
    let mut all = counts.blocks.iter().chain(&counts.edges);
    counts.blocks.is_empty() || all.any(Option::is_some)
}

/// The source files that a module has code of.
pub fn files_with_code(module: &Module) -> Vec<&str> {
    let mut has_code = vec![false; module.files.len()];
    let blocks = module.functions.iter().flat_map(|it| &it.blocks);
    for run in blocks.flat_map(|block| &block.lines) {
        if let (1.., Some(has_code)) = (run.line, has_code.get_mut(run.file.index())) {
            *has_code = true;
        }
    }
    let files = module.files.iter().zip(has_code);
    let with_code = files.filter(|(_, has_code)| *has_code);
    with_code.map(|(file, _)| file.as_str()).collect()
}

/// The functions of one module of which anything was counted, by address.
pub fn functions(counted: &Counted, demangle: bool) -> Vec<Named<'_>> {
    let mut all = all_functions(counted, demangle);
    all.retain(|it| is_counted(it.counts));
    all
}

/// All functions of one module, by address.
pub fn all_functions(counted: &Counted, demangle: bool) -> Vec<Named<'_>> {
    let module_path: Arc<str> = counted.module.path.as_str().into();
    let beginnings = Arc::new(beginnings(&counted.module));
    let mut all: Vec<Named<'_>> = counted
        .module
        .functions
        .iter()
        .zip(&counted.functions)
        .enumerate()
        .map(|(index, (function, counts))| Named {
            module: &counted.module,
            function,
            index,
            counts,
            name: match demangle {
                true => crate::demangle(&function.name).as_ref().into(),
                false => function.name.as_str().into(),
            },
            module_path: module_path.clone(),
            beginnings: beginnings.clone(),
        })
        .collect();
    all.sort_by(|a, b| {
        let key = |it: &Named<'_>| (it.function.address, it.name.clone());
        key(a).cmp(&key(b))
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_copies_belong_to_their_function() {
        for (name, of) in [
            ("f", "f"),
            ("f.cold", "f"),
            ("f.part.0", "f"),
            ("_Z1fv.isra.0.part.12.cold", "_Z1fv"),
            ("f.constprop.3", "f"),
            ("f.llvm.1234", "f"),
            ("f.llvm.x", "f.llvm.x"),
            ("main.part", "main.part"),
            ("f.part.0.foo", "f.part.0.foo"),
            ("f._omp_fn.0", "f._omp_fn.0"),
            (".part.0", ".part.0"),
            ("f.0", "f.0"),
            ("f..0", "f..0"),
            ("", ""),
        ] {
            assert_eq!(origin(name), of);
        }
        assert!(is_part("f.isra.0.part.1") && is_part("f.part.1.isra.0") && is_part("f.cold"));
        assert!(!is_part("f.isra.0") && !is_part("f") && !is_part("part.0"));
    }
}
