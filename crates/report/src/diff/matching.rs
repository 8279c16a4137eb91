//! What is the same thing in two builds?

use crate::Error;
use crate::count::Count;
use crate::glob::base_name;
use crate::names::{Named, functions, is_part, origin};
use crate::only::Only;
use crate::rows::{self, Tally};
use headcount_model::Counted;
use std::collections::{BTreeMap, BTreeSet};

/// The modules that belong together: those of one build, of one path, of one file name, and then
/// those that have most functions in common. What remains stands alone.
pub fn modules<'a>(
    old: &'a [Counted],
    new: &'a [Counted],
) -> Vec<(Option<&'a Counted>, Option<&'a Counted>)> {
    let mut old: Vec<&Counted> = old.iter().collect();
    let mut new: Vec<&Counted> = new.iter().collect();
    let mut pairs = Vec::new();
    let keys: [fn(&Counted) -> &str; 3] = [
        |it| &it.module.build_id,
        |it| &it.module.path,
        |it| base_name(&it.module.path),
    ];
    for key in keys {
        let mut left = Vec::new();
        for a in old {
            match new.iter().position(|b| key(b) == key(a)) {
                Some(place) => pairs.push((Some(a), Some(new.remove(place)))),
                None => left.push(a),
            }
        }
        old = left;
    }
    while let Some((a, b)) = most_alike(&old, &new) {
        pairs.push((Some(old.remove(a)), Some(new.remove(b))));
    }
    pairs.extend(old.into_iter().map(|it| (Some(it), None)));
    pairs.extend(new.into_iter().map(|it| (None, Some(it))));
    pairs
}

/// The two modules with most names of functions in common, if that is half of what either has.
fn most_alike(old: &[&Counted], new: &[&Counted]) -> Option<(usize, usize)> {
    let names = |it: &&Counted| -> BTreeSet<String> {
        let functions = it.module.functions.iter();
        functions.map(|it| key_name(&it.name)).collect()
    };
    let [old, new] = [old, new].map(|it| it.iter().map(names).collect::<Vec<_>>());
    let mut best = None;
    for (i, a) in old.iter().enumerate() {
        for (j, b) in new.iter().enumerate() {
            let common = a.intersection(b).count();
            let half = 2 * common >= a.len().min(b.len()) && common > 0;
            if half && best.is_none_or(|(most, _)| common > most) {
                best = Some((common, (i, j)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// The functions of a module, by what names them in every build; of one name, those of several files.
#[derive(Default)]
pub struct Functions<'a> {
    pub build_id: &'a str,
    pub by_name: BTreeMap<String, Vec<Function<'a>>>,
    /// Those of which not everything was counted.
    pub uncounted: Vec<String>,
}

/// A function, or several of one name in one file.
pub struct Function<'a> {
    pub module: &'a str,
    pub name: String,
    pub source: Option<(&'a str, u32)>,
    pub executed: u64,
    pub calls: u64,
    /// Instructions executed by file and line.
    pub lines: BTreeMap<(&'a str, u32), u64>,
    /// Whether only parts or copies of it are known so far.
    is_made: bool,
}

impl<'a> Function<'a> {
    /// The one among namesakes that is of the same file, made if it is missing.
    fn of<'f>(namesakes: &'f mut Vec<Self>, name: String, named: &Named<'a>) -> &'f mut Self {
        let line = named.function.source.map_or(0, |(_, line)| line);
        let source = named.own_file().map(|file| (file, line));
        // Of many parts and copies, nobody says where their source is.
        let is_made = origin(&named.function.name) != named.function.name;
        let is_it = |it: &Self| {
            it.file() == source.map(|(file, _)| file)
                || is_made && source.is_none()
                || it.is_made && it.source.is_none()
        };
        let place = namesakes.iter().position(is_it);
        let place = place.unwrap_or_else(|| {
            namesakes.push(Function {
                module: &named.module.path,
                name,
                source,
                executed: 0,
                calls: 0,
                lines: BTreeMap::new(),
                is_made,
            });
            namesakes.len() - 1
        });
        let function = &mut namesakes[place];
        function.source = function.source.or(source);
        function.is_made &= is_made;
        function
    }

    /// Its own file.
    pub fn file(&self) -> Option<&'a str> {
        self.source.map(|(file, _)| file)
    }
}

/// Functions of one name on both sides, each with the one of the same file, and then in their order.
pub fn namesakes<'f, 'a>(old: &'f [Function<'a>], new: &'f [Function<'a>]) -> Vec<Sides<'f, 'a>> {
    let mut left: Vec<&Function<'_>> = new.iter().collect();
    let mut pairs = Vec::new();
    let mut alone = Vec::new();
    let last = |it: &Function<'a>| it.file().map(base_name);
    for function in old {
        match left.iter().position(|it| last(it) == last(function)) {
            Some(place) => pairs.push([Some(function), Some(left.remove(place))]),
            None => alone.push(function),
        }
    }
    let most = alone.len().max(left.len());
    pairs.extend((0..most).map(|it| [alone.get(it).copied(), left.get(it).copied()]));
    pairs
}

/// A function on both sides, where it is there.
pub type Sides<'f, 'a> = [Option<&'f Function<'a>>; 2];

impl<'a> Functions<'a> {
    pub fn of(module: Option<&'a Counted>, only: &Only) -> Result<Self, Error> {
        let mut all = Self::default();
        let Some(module) = module else {
            return Ok(all);
        };
        all.build_id = &module.module.build_id;
        for named in functions(module, true) {
            if only.wants(&named) {
                all.add(&named)?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, named: &Named<'a>) -> Result<(), Error> {
        let key = key_name(&named.function.name);
        let counts = (Tally::of(named)?.executed, rows::calls(named));
        let (Count::Exact(executed), Count::Exact(calls)) = counts else {
            self.uncounted.push(key);
            return Ok(());
        };
        let function = Function::of(self.by_name.entry(key.clone()).or_default(), key, named);
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or(Error::TooLarge);
        function.executed = sum(function.executed, executed)?;
        if !is_part(&named.function.name) {
            function.calls = sum(function.calls, calls)?;
        }
        for block in named.blocks() {
            for (run, range) in block.block.lines.iter().zip(block.line_ranges()) {
                if let (Some(file), 1..) = (named.file(run.file), run.line) {
                    let line = function.lines.entry((file, run.line)).or_default();
                    *line = sum(*line, block.executed(range)?.value().unwrap_or(0))?;
                }
            }
        }
        Ok(())
    }
}

/// A name that another build gives the same function: without the hashes of Rust, and without what
/// compilers put behind the names of the parts and the copies that they make of a function.
fn key_name(name: &str) -> String {
    crate::demangle(origin(name)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::Module;

    #[test]
    fn names_hold_for_every_build() {
        let rust = |hash: &str| key_name(&format!("_ZN3foo3bar17h{hash}E"));
        assert_eq!(rust("0123456789abcdef"), rust("fedcba9876543210"));
        assert_eq!(key_name("f.llvm.1234"), "f");
        assert_ne!(key_name("f.llvm.x"), "f");
        assert_eq!(key_name("f.constprop.0"), "f");
        assert_eq!(key_name("_Z3foov.part.0"), "foo()");
    }

    fn module(path: &str, build_id: &str, functions: &[&str]) -> Counted {
        let function = |name: &&str| headcount_model::Function {
            name: (*name).into(),
            address: headcount_model::LinkAddr(0),
            source: None,
            blocks: Vec::new(),
            edges: Vec::new(),
            counters: 0,
            compiled: Default::default(),
        };
        Counted {
            module: Module {
                path: path.into(),
                build_id: build_id.into(),
                functions: functions.iter().map(function).collect(),
                ..Module::default()
            },
            functions: Vec::new(),
            sources: Default::default(),
        }
    }

    #[test]
    fn modules_are_matched_by_what_they_have_in_common() {
        let old = [
            module("/lib/libc.so", "1", &["malloc"]),
            module("/old/libz.so", "2", &["inflate"]),
            module("/tmp/a", "3", &["main", "work", "gone"]),
            module("/tmp/left", "4", &["x"]),
        ];
        let new = [
            module("/tmp/b", "5", &["main", "work"]),
            module("/new/libz.so", "6", &["deflate"]),
            module("/other/libc.so", "1", &["malloc"]),
            module("/tmp/right", "7", &["y"]),
        ];
        let path = |it: Option<&Counted>| it.map_or("", |it| &it.module.path).to_owned();
        let pairs = modules(&old, &new).into_iter();
        let pairs: Vec<String> = pairs.map(|(a, b)| path(a) + " " + &path(b)).collect();
        let expected = [
            "/lib/libc.so /other/libc.so",
            "/old/libz.so /new/libz.so",
            "/tmp/a /tmp/b",
            "/tmp/left ",
            " /tmp/right",
        ];
        assert_eq!(pairs, expected);
    }
}
