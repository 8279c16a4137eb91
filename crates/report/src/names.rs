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

/// The name of the function that this one was cut off from, because it seldom runs; or its own.
pub fn whole(name: &str) -> &str {
    match name.split_once(".cold") {
        Some((whole, rest)) if rest.is_empty() || rest.starts_with('.') => whole,
        _ => name,
    }
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
