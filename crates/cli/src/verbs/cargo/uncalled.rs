//! Functions of the workspace that no program has code of: generic ones that nothing calls, and others
//! that the compiler left out. A count of them would be one of nothing, so only their source tells of
//! them.

use headcount_model::Counted;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Signature};

/// A function without code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uncalled {
    pub file: String,
    pub line: u32,
    pub name: String,
}

/// The lines of each file that some program has code of.
type Lines = BTreeMap<String, BTreeSet<u32>>;

/// All of them, in the folders of sources that programs have code of. What only the compiler calls, or
/// may have left out because it was told to (`const`, `cfg`), is not among them, nor is what macros make.
pub fn uncalled(counted: &[Counted], is_own: &dyn Fn(&str) -> bool) -> Vec<Uncalled> {
    let lines = lines_with_code(counted, is_own);
    let roots: BTreeSet<PathBuf> = lines.keys().filter_map(|it| root_of(it)).collect();
    let mut found = Vec::new();
    for file in roots.iter().flat_map(|it| sources_in(it)) {
        let name = file.to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).ok();
        // What a newer compiler understands better has no functions that we could tell of.
        let Some(parsed) = text.and_then(|it| syn::parse_file(&it).ok()) else {
            continue;
        };
        let mut functions = Functions::default();
        functions.visit_file(&parsed);
        let known = lines.get(&name);
        for function in functions.found.into_iter().filter(|_| is_own(&name)) {
            let mut within = known
                .into_iter()
                .flat_map(|it| it.range(function.first..=function.last));
            if within.next().is_none() {
                found.push(Uncalled {
                    file: name.clone(),
                    line: function.first,
                    name: function.name,
                });
            }
        }
    }
    found.sort();
    found
}

fn lines_with_code(counted: &[Counted], is_own: &dyn Fn(&str) -> bool) -> Lines {
    let mut lines = Lines::new();
    for module in counted.iter().map(|it| &it.module) {
        let files: Vec<Option<&String>> = module
            .files
            .iter()
            .map(|it| Some(it).filter(|it| is_own(it)))
            .collect();
        let mut add = |file: usize, line: u32| {
            if let Some(Some(file)) = files.get(file) {
                lines.entry((*file).clone()).or_default().insert(line);
            }
        };
        for function in &module.functions {
            for run in function.blocks.iter().flat_map(|it| &it.lines) {
                add(run.file.index(), run.line);
            }
            let copies = function.compiled.inlined.iter();
            for (file, line) in copies.filter_map(|it| it.callee).chain(function.source) {
                add(file.index(), line);
            }
        }
    }
    lines
}

/// The folder of all sources of a crate, for one of them.
fn root_of(file: &str) -> Option<PathBuf> {
    let mut folders = Path::new(file).ancestors();
    folders.find(|it| it.ends_with("src")).map(Path::to_owned)
}

/// The Rust sources in a folder and those in it.
fn sources_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // A link may lead around in a circle.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => (),
            }
        }
    }
    found.retain(|it| it.extension().is_some_and(|it| it == "rs"));
    found.sort();
    found
}

/// The functions of a file that a program can have code of.
#[derive(Default)]
struct Functions {
    found: Vec<Function>,
    /// The modules and types around.
    around: Vec<String>,
}

struct Function {
    name: String,
    first: u32,
    last: u32,
}

impl Functions {
    fn add(&mut self, attributes: &[Attribute], of: &Signature, body: &Block) {
        if is_elsewhere(attributes) || of.constness.is_some() {
            return;
        }
        let line = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
        let name = of.ident.to_string();
        self.found.push(Function {
            name: [self.around.as_slice(), &[name]].concat().join("::"),
            first: line(of.fn_token.span.start().line),
            last: line(body.brace_token.span.close().end().line),
        });
    }

    fn within(&mut self, name: String, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        if !is_elsewhere(attributes) {
            self.around.push(name);
            visit(self);
            self.around.pop();
        }
    }
}

/// May the compiler have been told to leave it out, or is it a test itself?
fn is_elsewhere(attributes: &[Attribute]) -> bool {
    let names = ["cfg", "test", "bench"];
    attributes.iter().any(|it| {
        let last = it.path().segments.last();
        last.is_some_and(|last| names.iter().any(|name| last.ident == name))
    })
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, it: &'ast syn::ItemMod) {
        self.within(it.ident.to_string(), &it.attrs, |all| {
            visit::visit_item_mod(all, it);
        });
    }

    fn visit_item_trait(&mut self, it: &'ast syn::ItemTrait) {
        self.within(it.ident.to_string(), &it.attrs, |all| {
            visit::visit_item_trait(all, it);
        });
    }

    fn visit_item_impl(&mut self, it: &'ast syn::ItemImpl) {
        let name = match it.self_ty.as_ref() {
            syn::Type::Path(path) => path.path.segments.last().map(|it| it.ident.to_string()),
            _ => None,
        };
        self.within(name.unwrap_or("_".to_owned()), &it.attrs, |all| {
            visit::visit_item_impl(all, it);
        });
    }

    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        self.add(&it.attrs, &it.sig, &it.block);
        visit::visit_item_fn(self, it);
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        self.add(&it.attrs, &it.sig, &it.block);
        visit::visit_impl_item_fn(self, it);
    }

    fn visit_trait_item_fn(&mut self, it: &'ast syn::TraitItemFn) {
        if let Some(body) = &it.default {
            self.add(&it.attrs, &it.sig, body);
        }
        visit::visit_trait_item_fn(self, it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_with_what_is_around_them() {
        let text = "\
fn plain() {}
const fn early() {}
#[cfg(unix)]
fn some_times() {}
#[test]
fn tests() {}
mod inner {
    impl<T> super::Thing<T> {
        pub fn of<U>(
            self,
        ) -> U {
            loop {}
        }
    }
    trait Made { fn by_others(); fn here() {} }
}
#[cfg(test)]
mod tests { fn help() {} }
macro_rules! made { () => { fn of_macro() {} } }
";
        let mut functions = Functions::default();
        functions.visit_file(&syn::parse_file(text).unwrap());
        let found: Vec<(&str, u32, u32)> = functions
            .found
            .iter()
            .map(|it| (it.name.as_str(), it.first, it.last))
            .collect();
        let expected = [
            ("plain", 1, 1),
            ("inner::Thing::of", 9, 13),
            ("inner::Made::here", 15, 15),
        ];
        assert_eq!(found, expected);
    }
}
