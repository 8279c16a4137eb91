//! Which units of a module the user wants counted.

use std::ops::RangeInclusive;

use headcount_model::{Block, FileId, Function, LinkAddr, Module};
use headcount_report::{
    Pattern, demangle, is_end_of_path, line_range, split_module, without_parameters,
};

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

/// A pattern: `NAME`, `FILE:FIRST-LAST`, `MODULE!`, `MODULE!NAME` or `MODULE!FILE:FIRST-LAST`. In
/// a module where nothing else has that name, `NAME` may be the module's own. With a `::` in it, it is
/// the end of a function's path.
#[derive(Debug)]
struct Wish {
    /// All of it: the names of some functions have a `!` in them.
    whole: Pattern,
    is_path: bool,
    /// Is it the name of a library, without a `!`, such as `libz.so.1`?
    is_library: bool,
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
        !matches!(self.modules, Modules::Main) || self.only.iter().any(Wish::has_library)
    }

    /// Is this module counted?
    pub fn wants(&self, path: &str, is_program: bool) -> bool {
        let by_option = match &self.modules {
            Modules::Main => is_program,
            Modules::All => true,
            Modules::Like(pattern) => pattern.matches_module(path),
        };
        by_option || self.only.iter().any(|it| it.names_library(path))
    }

    /// Is every block of every module that is wanted counted?
    pub fn is_everything(&self) -> bool {
        self.unit == CountUnit::Block && self.only.is_empty() && self.skip.is_empty()
    }

    /// Does it leave out what some programs have nothing but?
    pub fn is_choosy(&self) -> bool {
        let names_nothing = self.only.is_empty() && self.skip.is_empty();
        !names_nothing || self.unit == CountUnit::Line
    }

    /// For each block of the module: is it counted?
    pub fn choose(&self, module: &Module) -> Vec<bool> {
        let names: Vec<[String; 3]> = module.functions.iter().map(names).collect();
        let names_it = |wishes: &[Wish]| wishes.iter().any(|it| it.names_all_of(module, &names));
        let all = self.only.is_empty() || names_it(&self.only);
        let none = names_it(&self.skip);
        let mut chosen = Vec::new();
        for (function, names) in module.functions.iter().zip(&names) {
            for block in &function.blocks {
                let matches = |wish: &Wish| wish.matches(module, function, names, block);
                chosen.push(
                    self.is_unit(function, block)
                        && (all || self.only.iter().any(matches))
                        && !(none || self.skip.iter().any(matches)),
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

/// Where the functions of a module begin that a name stands for: `NAME` or `MODULE!NAME`.
pub fn entries_of(name: &str, module: &Module) -> Vec<LinkAddr> {
    let wish = Wish::new(name);
    let is_meant = |function: &&Function| {
        let mut names = names(function).into_iter();
        names.any(|name| wish.whole.matches(&name) || wish.names(&module.path, &name))
    };
    let functions = module.functions.iter().filter(is_meant);
    functions.map(|it| it.address).collect()
}

/// Is a module called that?
pub fn names_module(name: &str, path: &str) -> bool {
    Pattern::new(name).matches_module(path)
}

/// Is a file called that?
pub fn names_file(name: &str, path: &str) -> bool {
    Pattern::new(name).matches_path(path)
}

/// The names of a function: the linker's and the programmer's, which may do without its parameters.
fn names(function: &Function) -> [String; 3] {
    let written = demangle(&function.name).into_owned();
    let short = without_parameters(&written).to_owned();
    [function.name.clone(), written, short]
}

/// Does a statement begin in this block?
fn has_line(block: &Block) -> bool {
    block.lines.iter().any(|run| run.is_stmt && run.line != 0)
}

impl Wish {
    fn new(text: &str) -> Self {
        let (module, rest) = match split_module(text) {
            Some((module, rest)) => (Some(Pattern::new(module)), rest),
            None => (None, text),
        };
        let lines = rest
            .rsplit_once(':')
            .and_then(|(file, lines)| Some((file, line_range(lines)?)));
        let (name, lines) = match lines {
            Some((file, lines)) => (file, Some(lines)),
            None => (rest, None),
        };
        Self {
            whole: Pattern::new(text),
            is_path: text.contains("::"),
            is_library: module.is_none() && lines.is_none() && text.contains(".so"),
            module,
            name: Pattern::new(name),
            lines,
        }
    }

    /// Is it a function's name, in this module?
    fn names(&self, path: &str, name: &str) -> bool {
        let module = self.module.as_ref();
        module.is_none_or(|it| it.matches_module(path)) && self.name.matches(name)
    }

    fn has_library(&self) -> bool {
        self.is_library || self.module.is_some()
    }

    /// Does it name this module so that nothing else can be meant?
    fn names_library(&self, path: &str) -> bool {
        match &self.module {
            Some(module) => module.matches_module(path),
            None => self.is_library && self.whole.matches_module(path),
        }
    }

    /// Is it the name of this module, and of nothing in it? `names` are those of the functions.
    fn names_all_of(&self, module: &Module, names: &[[String; 3]]) -> bool {
        let is_bare = self.module.is_none() && self.lines.is_none();
        let is_something_else = || {
            let mut functions = module.functions.iter().zip(names);
            functions.any(|(function, names)| self.names_function(module, function, names))
        };
        is_bare && self.whole.matches_module(&module.path) && !is_something_else()
    }

    fn matches(
        &self,
        module: &Module,
        function: &Function,
        names: &[String; 3],
        block: &Block,
    ) -> bool {
        let [_, written, _] = names;
        if names.iter().any(|name| self.whole.matches(name))
            || self.is_path && is_end_of_path(&self.whole, written)
        {
            return true;
        }
        let in_module = |pattern: &Pattern| pattern.matches_module(&module.path);
        if !self.module.as_ref().is_none_or(in_module) {
            return false;
        }
        match &self.lines {
            Some(lines) => block
                .lines
                .iter()
                .any(|run| lines.contains(&run.line) && self.names_file(module, run.file)),
            None => self.names_function(module, function, names),
        }
    }

    fn names_function(&self, module: &Module, function: &Function, names: &[String; 3]) -> bool {
        let by_file = |(file, _)| self.names_file(module, file);
        names.iter().any(|name| self.name.matches(name)) || function.source.is_some_and(by_file)
    }

    fn names_file(&self, module: &Module, file: FileId) -> bool {
        let path = module.files.get(file.index());
        path.is_some_and(|path| self.name.matches_path(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_from_names() {
        assert!(Wish::new("sort.c:20-40").lines.is_some());
        assert!(Wish::new("shape::area").lines.is_none());
        assert!(Wish::new("libz.so*!inflate").module.is_some());
    }

    fn chosen(only: &str, path: &str, functions: &[&str]) -> Vec<bool> {
        let function = |name: &&str| Function {
            name: (*name).into(),
            address: headcount_model::LinkAddr(0),
            source: None,
            blocks: vec![Block::default()],
            edges: Vec::new(),
            counters: 1,
            compiled: Default::default(),
        };
        let module = Module {
            path: path.into(),
            functions: functions.iter().map(function).collect(),
            ..Module::default()
        };
        let selection = Selection {
            unit: CountUnit::Block,
            only: vec![Wish::new(only)],
            skip: Vec::new(),
            modules: Modules::All,
        };
        selection.choose(&module)
    }

    #[test]
    fn a_module_is_meant_where_nothing_in_it_has_its_name() {
        let libm = ["sin", "cos"];
        for all in ["libm.so.6", "libm", "libm!", "libm.so*!*", "lib/libm.so.6"] {
            assert_eq!(chosen(all, "/lib/libm.so.6", &libm), [true, true], "{all}");
            assert_eq!(
                chosen(all, "/lib/libc.so.6", &libm),
                [false, false],
                "{all}"
            );
        }
        assert_eq!(chosen("libm!sin", "/lib/libm.so.6", &libm), [true, false]);
        assert_eq!(chosen("max", "./max", &["max", "main"]), [true, false]);
        assert_eq!(chosen("max!", "./max", &["max", "main"]), [true, true]);
        let area = ["_ZN5shape4areaEi", "_ZN4area5shapeEi"]; // shape::area(int)
        assert_eq!(chosen("shape::area", "./max", &area), [true, false]);
        let inside = ["_ZN1a5shape4areaEi", "_ZN1a8my_shape4areaEi"]; // a::shape::area(int)
        assert_eq!(chosen("shape::area", "./max", &inside), [true, false]);
        let not_equal = ["_ZneRK1AS1_"]; // operator!=(A const&, A const&)
        assert_eq!(chosen("operator!=*", "./max", &not_equal), [true]);
    }

    #[test]
    fn a_library_that_is_named_is_counted_with_breakpoints_too() {
        let wants = |text: &str| Wish::new(text).names_library("/lib/libm.so.6");
        assert!(wants("libm.so.6") && wants("libm!sin") && wants("libm!"));
        assert!(!wants("sin") && !wants("libm") && !wants("libz.so.1"));
    }
}
