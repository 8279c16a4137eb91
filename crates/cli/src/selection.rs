//! Which units of a module the user wants counted.

use std::ops::RangeInclusive;

use headcount_model::{Block, Function, Module};
use headcount_report::{Pattern, demangle};

use crate::args::{CountUnit, Counting};

/// What `--unit`, `--only`, `--skip` and `--modules` say.
#[derive(Debug)]
pub struct Selection {
    unit: CountUnit,
    only: Vec<Wish>,
    skip: Vec<Wish>,
    modules: Modules,
}

#[derive(Debug)]
enum Modules {
    Main,
    All,
    Like(Pattern),
}

/// A pattern: `[MODULE!]NAME` or `[MODULE!]FILE:FIRST-LAST`.
#[derive(Debug)]
struct Wish {
    module: Option<Pattern>,
    name: Pattern,
    lines: Option<RangeInclusive<u32>>,
}

impl Selection {
    /// As the user typed it.
    pub fn new(args: &Counting) -> Self {
        let wishes = |texts: &[String]| texts.iter().map(|text| Wish::new(text)).collect();
        Self {
            unit: args.unit,
            only: wishes(&args.only),
            skip: wishes(&args.skip),
            modules: match args.modules() {
                "main" => Modules::Main,
                "all" => Modules::All,
                pattern => Modules::Like(Pattern::new(pattern)),
            },
        }
    }

    /// May modules other than the program itself be counted?
    pub fn has_libraries(&self) -> bool {
        !matches!(self.modules, Modules::Main) || self.only.iter().any(|it| it.module.is_some())
    }

    /// Is this module counted?
    pub fn wants(&self, path: &str, is_program: bool) -> bool {
        let by_option = match &self.modules {
            Modules::Main => is_program,
            Modules::All => true,
            Modules::Like(pattern) => pattern.matches_path(path),
        };
        let names = |wish: &Wish| wish.module.as_ref().is_some_and(|it| it.matches_path(path));
        by_option || self.only.iter().any(names)
    }

    /// Is every block of every module that is wanted counted?
    pub fn is_everything(&self) -> bool {
        self.unit == CountUnit::Block && self.only.is_empty() && self.skip.is_empty()
    }

    /// For each block of the module: is it counted?
    pub fn choose(&self, module: &Module) -> Vec<bool> {
        let mut chosen = Vec::new();
        for function in &module.functions {
            let names = [function.name.clone(), demangle(&function.name).into_owned()];
            for block in &function.blocks {
                let matches = |wish: &Wish| wish.matches(module, function, &names, block);
                chosen.push(
                    self.is_unit(function, block)
                        && (self.only.is_empty() || self.only.iter().any(matches))
                        && !self.skip.iter().any(matches),
                );
            }
        }
        chosen
    }

    /// For each function of the module: is any of its blocks counted?
    pub fn choose_functions(&self, module: &Module) -> Vec<bool> {
        let chosen = self.choose(module);
        let mut rest = chosen.as_slice();
        let functions = module.functions.iter().map(|function| {
            let (own, others) = rest.split_at(function.blocks.len());
            rest = others;
            own.contains(&true)
        });
        functions.collect()
    }

    /// Why nothing of a module was chosen, where the user may wonder.
    pub fn why_nothing(&self, module: &Module) -> Option<String> {
        let path = &module.path;
        let mut blocks = module.functions.iter().flat_map(|it| &it.blocks);
        let has_lines = blocks.any(has_line);
        if self.unit == CountUnit::Line && !has_lines {
            return Some(format!(
                "Nothing of {path} is counted: it has no line table. Rebuild it with -g, or count \
                 blocks or functions."
            ));
        }
        let asked = matches!(self.modules, Modules::Main);
        let why = match module.functions.is_empty() {
            true => "none of its functions can be",
            false => "no name matches what was asked for",
        };
        asked.then(|| format!("Nothing of {path} is counted: {why}."))
    }

    fn is_unit(&self, function: &Function, block: &Block) -> bool {
        match self.unit {
            CountUnit::Block => true,
            CountUnit::Line => has_line(block),
            CountUnit::Function => block.address == function.address,
        }
    }
}

/// Does a statement begin in this block?
fn has_line(block: &Block) -> bool {
    block.lines.iter().any(|run| run.is_stmt && run.line != 0)
}

impl Wish {
    fn new(text: &str) -> Self {
        let (module, rest) = match text.split_once('!') {
            Some((module, rest)) => (Some(Pattern::new(module)), rest),
            None => (None, text),
        };
        let lines = rest
            .rsplit_once(':')
            .and_then(|(file, lines)| Some((file, range(lines)?)));
        let (name, lines) = match lines {
            Some((file, lines)) => (file, Some(lines)),
            None => (rest, None),
        };
        Self {
            module,
            name: Pattern::new(name),
            lines,
        }
    }

    fn matches(
        &self,
        module: &Module,
        function: &Function,
        names: &[String],
        block: &Block,
    ) -> bool {
        let in_module = |pattern: &Pattern| pattern.matches_path(&module.path);
        if !self.module.as_ref().is_none_or(in_module) {
            return false;
        }
        let is_file = |index: usize| {
            let path = module.files.get(index);
            path.is_some_and(|path| self.name.matches_path(path))
        };
        match &self.lines {
            Some(lines) => block
                .lines
                .iter()
                .any(|run| lines.contains(&run.line) && is_file(run.file.index())),
            None => {
                let by_name = names.iter().any(|name| self.name.matches(name));
                by_name
                    || function
                        .source
                        .is_some_and(|(file, _)| is_file(file.index()))
            }
        }
    }
}

/// `20`, `20-40`, `20-` or `-40`.
fn range(text: &str) -> Option<RangeInclusive<u32>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_from_names() {
        assert_eq!(range("20-40"), Some(20..=40));
        assert_eq!(range("7"), Some(7..=7));
        assert_eq!(range("7-"), Some(7..=u32::MAX));
        assert_eq!(range("-9"), Some(1..=9));
        for name in ["", "-", "new", "2x", "1-2-3", "+3"] {
            assert_eq!(range(name), None, "{name}");
        }
        assert!(Wish::new("sort.c:20-40").lines.is_some());
        assert!(Wish::new("shape::area").lines.is_none());
        assert!(Wish::new("libz.so*!inflate").module.is_some());
    }
}
