//! What `--only` and `--skip` name: functions, source files, or whole modules.
//!
//! `NAME` is a function or a source file, in any module; only if nothing else has that name, it is
//! a module. `MODULE!NAME` is a function or a source file of such a module, and `MODULE!` is all of
//! it. Because the names of some functions have a `!` in them (`operator!=`), a text with one
//! may also be the whole name of a function.
//!
//! `FILE:20-40` are lines of a source file: rows of lines are of those, and others of what has code
//! there.
//!
//! A name with a `::`, or one that nothing else has, may also be the end of a function's path.
//!
//! Files may be named below the current folder. A pattern with a `/` is about their whole paths.

use crate::demangle::{is_end_of_path, without_parameters};
use crate::glob::Pattern;
use crate::names::{Named, all_functions, files_with_code, is_counted, origin};
use headcount_model::{Counted, Function, Language, Module, Refusal};
use std::ops::RangeInclusive;

/// What is wanted of some counted modules: everything, if nothing is named.
#[derive(Clone, Debug, Default)]
pub struct Only {
    wishes: Vec<Wish>,
    /// What is not wanted, even if it is named.
    skipped: Vec<Wish>,
    /// Where it must be.
    module: Option<Pattern>,
    /// What it must be written in.
    language: Option<Written>,
    unmet: Vec<String>,
    missing: Vec<String>,
}

/// What the user typed to narrow a result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// What is wanted.
    pub only: &'a [String],
    /// What is not.
    pub skip: &'a [String],
    /// The modules to look at.
    pub module: Option<&'a str>,
    /// What language it must be in.
    pub language: Option<Written>,
    /// The folder that names of files begin in that do not begin with a `/`; empty if nobody knows.
    pub here: &'a str,
}

/// What code is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A language that is interpreted.
    In(Language),
    /// Any that is compiled to the machine's instructions.
    Natively,
}

/// One text that the user typed.
#[derive(Clone, Debug)]
struct Wish {
    /// All of it, as the name of a function or a file.
    whole: Pattern,
    /// Is it the end of a function's path as well?
    is_end: bool,
    /// Or a module, and functions and files in there.
    within: Option<(Pattern, Pattern)>,
    /// Or lines of a file, in such a module if one is said.
    lines: Option<Lines>,
    /// The folder that names of files begin in, if it matters.
    here: Option<String>,
}

#[derive(Clone, Debug)]
struct Lines {
    module: Option<Pattern>,
    file: Pattern,
    numbers: RangeInclusive<u32>,
}

impl Only {
    /// Finds out what the texts mean for these modules, with the names that reports show.
    pub fn new(texts: &[String], counted: &[&[Counted]], demangle: bool) -> Self {
        let filter = Filter {
            only: texts,
            ..Filter::default()
        };
        Self::narrowed(filter, counted, demangle)
    }

    /// The same for all that narrows a result.
    pub fn narrowed(filter: Filter<'_>, counted: &[&[Counted]], demangle: bool) -> Self {
        let meant = |texts: &[String]| {
            let wishes = texts.iter().map(|it| Wish::new(it, filter.here)).collect();
            meant(wishes, texts, counted, demangle)
        };
        let (wanted, skipped) = (meant(filter.only), meant(filter.skip));
        Self {
            wishes: wanted.wishes,
            skipped: skipped.wishes,
            module: filter.module.map(Pattern::new),
            language: filter.language,
            unmet: [wanted.unmet, skipped.unmet].concat(),
            missing: wanted.missing,
        }
    }

    /// Is everything wanted?
    pub fn is_everything(&self) -> bool {
        self.names_nothing() && self.skipped.is_empty() && self.language.is_none()
    }

    /// Does it say nothing of what is wanted?
    pub fn names_nothing(&self) -> bool {
        self.wishes.is_empty() && self.module.is_none()
    }

    /// What nothing that was counted is called.
    pub fn unmet(&self) -> &[String] {
        &self.unmet
    }

    /// What of that is wanted, and no function at all is called.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Is code wanted that was seen to run, in this function of this file?
    pub fn wants_sampled(&self, module: &str, names: &[&str], file: &str) -> bool {
        let names_it = |it: &Wish| it.is_called(module, names) || it.is_path_of(&it.whole, file);
        self.admits(module, names_it)
    }

    /// Is this function wanted, by its own name, by its file's, or by its module's?
    pub fn wants(&self, named: &Named<'_>) -> bool {
        self.wants_in(named, named.own_file(), None)
    }

    /// Is code of this function wanted that comes from this file?
    pub fn wants_code(&self, named: &Named<'_>, file: Option<&str>) -> bool {
        self.wants_in(named, file, file)
    }

    /// Is code of a file wanted, or a function with code of lines that are?
    fn wants_in(&self, named: &Named<'_>, file: Option<&str>, of_lines: Option<&str>) -> bool {
        let names_it = |it: &Wish| it.names_code(named, file);
        let is_meant = |it: &Wish| names_it(it) || it.names_lines_of(named, of_lines);
        self.is_within(&named.module.path)
            && self.is_in_language(Some(named.function))
            && (self.wishes.is_empty() || self.wishes.iter().any(is_meant))
            && !self.skipped.iter().any(names_it)
    }

    /// Does it name lines?
    pub fn names_lines(&self) -> bool {
        let mut wishes = self.wishes.iter().chain(&self.skipped);
        wishes.any(|it| it.lines.is_some())
    }

    /// Is this line wanted of code that is?
    pub fn wants_line(&self, named: &Named<'_>, file: &str, line: u32) -> bool {
        let names_it =
            |it: &Wish| it.names_code(named, Some(file)) || it.names_line(named.module, file, line);
        self.is_in_language(Some(named.function)) && self.admits(&named.module.path, names_it)
    }

    /// Is this function not wanted, whatever else is?
    pub fn skips(&self, named: &Named<'_>) -> bool {
        let module = named.module;
        let is_of = |it: &Wish| {
            named
                .own_file()
                .is_some_and(|file| it.names_file(module, file))
        };
        let mut skipped = self.skipped.iter();
        skipped.any(|it| it.names_function(named) || is_of(it))
    }

    /// Is a function wanted that has these names?
    pub fn wants_name(&self, module: &str, names: &[&str]) -> bool {
        self.admits(module, |it: &Wish| it.is_called(module, names))
    }

    /// Is all of this source file wanted that is in this module?
    pub fn wants_file(&self, module: &Module, file: &str) -> bool {
        let names_it = |it: &Wish| it.names_file(module, file);
        self.is_in_language(module.functions.first()) && self.admits(&module.path, names_it)
    }

    /// Is all of this module wanted? In a table of modules, every name may be one of a module.
    pub fn wants_module(&self, module: &Module) -> bool {
        let names = |it: &Wish| it.whole.matches_module(&module.path) || it.names_all_of(module);
        self.is_in_language(module.functions.first()) && self.admits(&module.path, names)
    }

    /// Is something wanted that is in this module?
    fn admits(&self, module: &str, names_it: impl Fn(&Wish) -> bool) -> bool {
        self.is_within(module)
            && (self.wishes.is_empty() || self.wishes.iter().any(&names_it))
            && !self.skipped.iter().any(names_it)
    }

    /// May anything of this module be wanted?
    pub fn may_be_in(&self, module: &Module) -> bool {
        self.is_within(&module.path) && self.is_in_language(module.functions.first())
    }

    /// Is a language wanted?
    pub fn wants_language(&self, language: Language) -> bool {
        let wanted = Written::In(language);
        self.language.is_none_or(|it| it == wanted)
    }

    /// May it be machine code? Samples are of nothing else.
    pub fn may_be_native(&self) -> bool {
        self.is_in_language(None)
    }

    /// Is it written in what is wanted? Of what has no function, nobody knows better.
    fn is_in_language(&self, function: Option<&Function>) -> bool {
        let written = function.and_then(|it| it.compiled.language);
        self.language.is_none_or(|wanted| match wanted {
            Written::In(language) => written == Some(language),
            Written::Natively => written.is_none(),
        })
    }

    /// Is something wanted of this module?
    fn is_within(&self, module: &str) -> bool {
        let is_there = |it: &Pattern| it.matches_module(module);
        self.module.as_ref().is_none_or(is_there)
    }

    /// Is this wanted, although it is not counted: a function, a file's, or all of its module?
    pub fn wants_refused(&self, module: &Module, refusal: &Refusal) -> bool {
        let (name, file) = (&refusal.subject, &refusal.file);
        let names = [crate::demangle(name), name.as_str().into()];
        self.wants_module(module)
            || self.wants_name(&module.path, &names.each_ref().map(AsRef::as_ref))
            || (!file.is_empty() && self.wants_file(module, file))
    }
}

/// What texts mean for some modules.
#[derive(Default)]
struct Meant {
    wishes: Vec<Wish>,
    /// The texts that nothing counted is called.
    unmet: Vec<String>,
    /// Those of them that no function is called, either.
    missing: Vec<String>,
}

fn meant(mut wishes: Vec<Wish>, texts: &[String], counted: &[&[Counted]], demangle: bool) -> Meant {
    let (mut unmet, mut missing) = (Vec::new(), Vec::new());
    if texts.is_empty() {
        return Meant::default();
    }
    let modules = || counted.iter().copied().flatten();
    let found = found(&wishes, modules(), demangle);
    for ((wish, text), found) in wishes.iter_mut().zip(texts).zip(found) {
        let is_module = |it: &Counted| wish.whole.matches_module(&it.module.path);
        match found {
            Found::Counted => (),
            Found::Nothing if wish.within.is_none() && modules().any(is_module) => {
                wish.within = Some((wish.whole.clone(), Pattern::new("*")));
            }
            Found::Nothing if modules().any(|it| wish.ends_a_path(it)) => wish.is_end = true,
            Found::Nothing => {
                unmet.push(text.clone());
                missing.push(text.clone());
            }
            Found::Uncounted => unmet.push(text.clone()),
        }
    }
    Meant {
        wishes,
        unmet,
        missing,
    }
}

/// What there is for each wish.
fn found<'a>(
    wishes: &[Wish],
    modules: impl Iterator<Item = &'a Counted>,
    demangle: bool,
) -> Vec<Found> {
    let mut found = vec![Found::Nothing; wishes.len()];
    for module in modules {
        let files = files_with_code(&module.module);
        for (wish, found) in wishes.iter().zip(&mut found) {
            let names_it = |file: &&str| wish.names_file(&module.module, file);
            if files.iter().any(names_it) {
                *found = Found::Counted;
            }
        }
        for named in all_functions(module, demangle) {
            let here = match is_counted(named.counts) {
                true => Found::Counted,
                false => Found::Uncounted,
            };
            for (wish, found) in wishes.iter().zip(&mut found) {
                if *found < here
                    && (wish.names_function(&named) || wish.names_lines_of(&named, None))
                {
                    *found = here;
                }
            }
        }
    }
    found
}

/// What has a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nothing,
    /// A function of which nothing was counted.
    Uncounted,
    Counted,
}

impl Wish {
    fn new(text: &str, here: &str) -> Self {
        let text = text.strip_prefix("./").unwrap_or(text);
        let within = split_module(text);
        Self {
            whole: Pattern::new(text),
            is_end: text.contains("::"),
            within: within.map(|(module, name)| (Pattern::new(module), Pattern::new(name))),
            lines: Lines::new(text),
            here: (text.contains('/') && here.starts_with('/')).then(|| here.to_owned()),
        }
    }

    fn names_function(&self, named: &Named<'_>) -> bool {
        let name = &named.function.name;
        let short = without_parameters(&named.name);
        let is_called = |it: &Pattern| {
            [&named.name, short, name]
                .iter()
                .any(|name| it.matches(name))
                || is_made_of(name, it)
        };
        is_called(&self.whole)
            || self.is_end && is_end_of_path(&self.whole, &crate::demangle(name))
            || self.within(named.module).is_some_and(is_called)
    }

    /// Is it the end of the path of a function here that was counted?
    fn ends_a_path(&self, counted: &Counted) -> bool {
        let mut functions = all_functions(counted, true).into_iter();
        functions.any(|it| is_counted(it.counts) && is_end_of_path(&self.whole, &it.name))
    }

    /// Does it name a function of a module that has these names?
    fn is_called(&self, module: &str, names: &[&str]) -> bool {
        let is_called = |it: &Pattern| {
            let mut names = names.iter();
            names.any(|name| {
                it.matches(name) || it.matches(without_parameters(name)) || is_made_of(name, it)
            })
        };
        let ends_like_it = || {
            let mut names = names.iter();
            names.any(|name| is_end_of_path(&self.whole, &crate::demangle(name)))
        };
        is_called(&self.whole)
            || self.is_end && ends_like_it()
            || self.within_path(module).is_some_and(is_called)
    }

    /// Does it name all of a function, or all of the file that code of it comes from?
    fn names_code(&self, named: &Named<'_>, file: Option<&str>) -> bool {
        let is_of = |file| self.names_file(named.module, file);
        self.names_function(named) || file.is_some_and(is_of)
    }

    /// Does it name lines that a function has code of, in one file or in any?
    fn names_lines_of(&self, named: &Named<'_>, file: Option<&str>) -> bool {
        if self.lines.is_none() {
            return false;
        }
        let mut runs = named.function.blocks.iter().flat_map(|it| &it.lines);
        runs.any(|run| {
            let of = named.file(run.file);
            let of = of.filter(|of| run.line > 0 && file.is_none_or(|file| file == *of));
            of.is_some_and(|of| self.names_line(named.module, of, run.line))
        })
    }

    fn names_line(&self, module: &Module, file: &str, line: u32) -> bool {
        self.lines.as_ref().is_some_and(|it| {
            let is_there = |module_pattern: &Pattern| module_pattern.matches_module(&module.path);
            it.numbers.contains(&line)
                && it.module.as_ref().is_none_or(is_there)
                && self.is_path_of(&it.file, file)
        })
    }

    fn names_file(&self, module: &Module, file: &str) -> bool {
        let is_called = |it: &Pattern| self.is_path_of(it, file);
        is_called(&self.whole) || self.within(module).is_some_and(is_called)
    }

    /// Does a file's path end like this, wherever the user is?
    fn is_path_of(&self, pattern: &Pattern, file: &str) -> bool {
        let here = self.here.as_ref().filter(|_| !file.starts_with('/'));
        let whole = here.map(|here| format!("{}/{file}", here.trim_end_matches('/')));
        pattern.matches_path(file) || whole.is_some_and(|whole| pattern.matches_path(&whole))
    }

    fn names_all_of(&self, module: &Module) -> bool {
        self.within(module) == Some(&Pattern::new("*"))
    }

    /// What is wanted of a module that is named, if it is this one.
    fn within(&self, module: &Module) -> Option<&Pattern> {
        self.within_path(&module.path)
    }

    fn within_path(&self, module: &str) -> Option<&Pattern> {
        let within = self.within.as_ref();
        let (_, name) = within.filter(|(it, _)| it.matches_module(module))?;
        Some(name)
    }
}

impl Lines {
    /// `FILE:20-40` or `MODULE!FILE:20-40`.
    fn new(text: &str) -> Option<Self> {
        let (module, rest) = match split_module(text) {
            Some((module, rest)) => (Some(module), rest),
            None => (None, text),
        };
        let (file, numbers) = rest.rsplit_once(':')?;
        Some(Self {
            module: module.map(Pattern::new),
            file: Pattern::new(file),
            numbers: line_range(numbers).filter(|_| !file.is_empty())?,
        })
    }
}

/// `20`, `20-40`, `20-` or `-40`.
pub fn line_range(text: &str) -> Option<RangeInclusive<u32>> {
    let number = |text: &str, otherwise: u32| match text {
        "" => Some(otherwise),
        digits if digits.bytes().all(|it| it.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    };
    match text.split_once('-') {
        Some(("", "")) => None,
        Some((first, last)) => Some(number(first, 1)?..=number(last, u32::MAX)?),
        None if text.is_empty() => None,
        None => number(text, 0).map(|line| line..=line),
    }
}

/// Is this, by its linker's name, a part or a copy of a function that is called so?
fn is_made_of(name: &str, pattern: &Pattern) -> bool {
    let origin = origin(name);
    origin != name && (pattern.matches(origin) || pattern.matches(&crate::demangle(origin)))
}

/// `libz.so*!inflate` into module and name; `libz!` into the module and every name.
pub fn split_module(text: &str) -> Option<(&str, &str)> {
    let (module, name) = text.split_once('!')?;
    let name = if name.is_empty() { "*" } else { name };
    (!module.is_empty()).then_some((module, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a pattern names a file of a module, seen from `/x/lua`.
    fn names(pattern: &str, file: &str) -> bool {
        let module = Module {
            path: "/x/lua/lua".to_owned(),
            files: vec![file.to_owned()],
            ..Module::default()
        };
        Wish::new(pattern, "/x/lua").names_file(&module, file)
    }

    #[test]
    fn a_path_is_the_same_from_everywhere() {
        for file in ["lapi.c", "/x/lua/lapi.c"] {
            for pattern in [
                "lapi.c",
                "./lapi.c",
                "lua/lapi.c",
                "lua/*.c",
                "/x/lua/lapi.c",
                "lua!lua/lapi.c",
            ] {
                assert!(names(pattern, file), "{pattern} {file}");
            }
            for pattern in ["api.c", "src/lapi.c", "/lua/lapi.c", "x/lapi.c", "lua"] {
                assert!(!names(pattern, file), "{pattern} {file}");
            }
        }
        // What has no slash is a name, wherever the user is.
        assert!(!names("lua", "lapi.c") && names("?api.c", "lapi.c"));
        assert!(names("/x/*", "src/lapi.c") && !names("/y/*", "src/lapi.c"));
    }

    #[test]
    fn lines_are_one_or_several() {
        assert_eq!(line_range("20-40"), Some(20..=40));
        assert_eq!(line_range("7"), Some(7..=7));
        assert_eq!(line_range("7-"), Some(7..=u32::MAX));
        assert_eq!(line_range("-9"), Some(1..=9));
        for name in ["", "-", "new", "2x", "1-2-3", "+3"] {
            assert_eq!(line_range(name), None, "{name}");
        }
        for name in ["shape::area", "sort.c", "sort.c:", ":20"] {
            assert!(Lines::new(name).is_none(), "{name}");
        }
    }
}
