//! Which macros are defined at each place of a text?
//!
//! Directives are followed as a preprocessor follows them, through the files that are included, but
//! nobody knows what the compiler was told on its command line, nor what the system's headers say.
//! Where a condition depends on that, the branch that has code is the one that was compiled;
//! otherwise a name may mean any of what the branches say.

mod condition;

use std::collections::HashMap;

use crate::definitions::{Definitions, Hides, MacroId};
use crate::directives::{Condition, Directive, Span, What};
use crate::lex::{Kind, Token};
use crate::names::Names;

/// How deeply files include files.
const DEEPEST: u32 = 40;
/// How many directives of included files are followed for one text, and names looked at behind
/// conditions that nobody can evaluate.
const MOST_STEPS: usize = 4_000_000;
/// How many things a name may mean.
const MOST_MEANINGS: usize = 64;

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// No macro.
    Itself,
    Macro(MacroId),
    Several(Several),
}

/// A name means one of several things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Several {
    /// What the worst of them hides.
    pub hides: Hides,
    /// Whether all of them take arguments.
    pub takes: bool,
    /// The macro with most in it.
    pub most: Option<MacroId>,
    /// Whether all others have nothing in them.
    pub or_nothing: bool,
}

/// Nobody knows what a name means.
const ANYTHING: Meaning = Meaning::Several(Several {
    hides: Hides::Ways,
    takes: false,
    most: None,
    or_nothing: false,
});

/// What a name may mean: nothing, or macros.
type Meanings = Vec<Option<MacroId>>;

type Layer<'d> = HashMap<&'d [u8], Meanings>;

/// The macros that are defined, as far as the text was followed.
pub struct Environment<'d> {
    definitions: &'d Definitions,
    /// The text.
    number: usize,
    /// The next directive of it.
    next: usize,
    /// Macros by name: those of the text, and of each branch that we are in and that may not count.
    layers: Vec<Layer<'d>>,
    groups: Vec<Group<'d>>,
    /// All names that anybody defines.
    known: Names<'d, ()>,
    /// How many lines up to each have code.
    code: Vec<u32>,
    left: usize,
    /// Whether it went on for too long: no macro is known any more.
    is_lost: bool,
    /// Whether a file was not found that may define macros.
    misses_file: bool,
}

/// From `#if` to `#endif`.
#[derive(Default)]
struct Group<'d> {
    /// All of it is in a branch that does not count.
    is_dead: bool,
    /// The branch that has code, by its directive.
    chosen: Option<usize>,
    /// Whether one of the branches so far surely counts if those before it do not.
    is_complete: bool,
    branch: Branch,
    /// What the branches say that may count.
    layers: Vec<Layer<'d>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Branch {
    #[default]
    Dead,
    Live,
    Maybe,
}

impl<'d> Environment<'d> {
    /// At the beginning of a text that has so many lines.
    pub fn new(
        definitions: &'d Definitions,
        number: usize,
        lines: u32,
        has_code: &dyn Fn(u32) -> bool,
    ) -> Self {
        let mut known = Names::default();
        for name in definitions.names() {
            known.entry(name);
        }
        let mut sum = 0;
        let mut code = vec![0];
        for line in 1..=lines {
            sum += u32::from(has_code(line));
            code.push(sum);
        }
        Self {
            definitions,
            number,
            next: 0,
            layers: vec![Layer::default()],
            groups: Vec::new(),
            known,
            code,
            left: MOST_STEPS,
            is_lost: false,
            misses_file: false,
        }
    }

    /// Follows the text up to a byte. Says whether something was included.
    pub fn advance(&mut self, to: u32) -> bool {
        let text = &self.definitions.texts[self.number];
        let mut includes = false;
        while let Some(directive) = text.directives.get(self.next).filter(|it| it.start < to) {
            let is_include = matches!(directive.what, What::Include(_));
            includes |= is_include && !self.is_dead();
            self.follow(self.number, self.next, 0);
            self.next += 1;
        }
        includes
    }

    /// What a name means here.
    pub fn meaning(&self, name: &[u8]) -> Meaning {
        if !self.known.contains(name) {
            return Meaning::Itself;
        }
        if self.is_lost {
            return ANYTHING;
        }
        let Some(meanings) = self.meanings(name) else {
            return self.meaning_elsewhere(name);
        };
        match &meanings[..] {
            [None] => Meaning::Itself,
            [Some(id)] => Meaning::Macro(*id),
            // Another name for something, or none.
            [None, Some(id)] if self.is_other_name(*id) => Meaning::Itself,
            all if all.len() > MOST_MEANINGS => ANYTHING,
            _ => self.several(meanings.iter().flatten().copied()),
        }
    }

    /// Whether a macro only stands for a number or another name, and not for a type that is known by
    /// that; or for a function that there is not.
    fn is_other_name(&self, id: MacroId) -> bool {
        let found = &self.definitions.macros[id as usize];
        let is_name = |token: &Token| {
            let bytes = self.bytes(&(token.start..token.end));
            let is_name = token.kind == Kind::Name && !self.definitions.is_type(bytes);
            is_name || token.kind == Kind::Number
        };
        let is_other = match (&found.body[..], found.parameters) {
            ([only], None) => is_name(&only.token),
            (_, takes) => takes.is_some(),
        };
        is_other && self.definitions.hides(id) == Hides::Nothing
    }

    fn several(&self, ids: impl Iterator<Item = MacroId> + Clone) -> Meaning {
        let of = |id: MacroId| &self.definitions.macros[id as usize];
        let hides = ids.clone().map(|id| self.definitions.hides(id)).max();
        let most = ids.clone().max_by_key(|id| of(*id).body.len());
        Meaning::Several(Several {
            hides: hides.unwrap_or_default(),
            takes: ids.clone().all(|id| of(id).parameters.is_some()),
            most,
            or_nothing: ids
                .clone()
                .all(|id| Some(id) == most || of(id).body.is_empty()),
        })
    }

    fn meanings(&self, name: &[u8]) -> Option<&Meanings> {
        self.layers.iter().rev().find_map(|it| it.get(name))
    }

    /// What a name means that this text says nothing of: those who include it may.
    fn meaning_elsewhere(&self, name: &[u8]) -> Meaning {
        let is_header = self.definitions.texts[self.number].is_header();
        if !is_header && !self.misses_file {
            return Meaning::Itself;
        }
        let all = self.definitions.anywhere(name);
        let ids = all.filter(|(_, in_header)| is_header || *in_header);
        let mut ids: Vec<MacroId> = ids.map(|it| it.0).take(2 * MOST_MEANINGS).collect();
        ids.dedup();
        match ids[..] {
            [] => Meaning::Itself,
            [id] => Meaning::Macro(id),
            _ if ids.len() > MOST_MEANINGS => ANYTHING,
            _ => self.several(ids.iter().copied()),
        }
    }

    fn is_dead(&self) -> bool {
        let branch = self.groups.last().map(|it| it.branch);
        branch == Some(Branch::Dead)
    }

    fn bytes(&self, span: &Span) -> &'d [u8] {
        let bytes = &self.definitions.bytes;
        &bytes[span.start as usize..span.end as usize]
    }

    fn follow(&mut self, text: usize, at: usize, depth: u32) {
        let definitions = self.definitions;
        let directive = &definitions.texts[text].directives[at];
        match &directive.what {
            What::If(condition) => {
                let chosen = self.branch_with_code(text, at);
                self.groups.push(Group {
                    is_dead: self.is_dead(),
                    chosen,
                    ..Group::default()
                });
                self.enter_if(condition, text, at);
            }
            What::ElseIf(condition) => {
                self.leave_branch();
                self.enter_if(condition, text, at);
            }
            What::Else => {
                self.leave_branch();
                self.enter_branch(at, Some(true));
            }
            What::End => {
                self.leave_branch();
                self.end();
            }
            _ if self.is_dead() => (),
            What::Define { name, id, .. } => self.set(self.bytes(name), vec![Some(*id)]),
            What::Undefine(name) => self.set(self.bytes(name), vec![None]),
            What::Include(name) => self.include(text, name, depth),
        }
    }

    fn include(&mut self, by: usize, name: &str, depth: u32) {
        let definitions = self.definitions;
        let Some(text) = definitions.included(by, name) else {
            self.misses_file |= !is_of_the_library(name);
            return;
        };
        let number = definitions.texts[text].directives.len();
        if depth >= DEEPEST {
            self.misses_file = true;
            return;
        }
        self.spend(number);
        if self.is_lost {
            return;
        }
        let open = self.groups.len();
        for at in 0..number {
            self.follow(text, at, depth + 1);
        }
        while self.groups.len() > open {
            self.leave_branch();
            self.end();
        }
    }

    fn spend(&mut self, steps: usize) {
        self.is_lost |= steps > self.left;
        self.left = self.left.saturating_sub(steps);
    }

    fn set(&mut self, name: &'d [u8], meanings: Meanings) {
        if let Some(layer) = self.layers.last_mut() {
            layer.insert(name, meanings);
        }
    }

    /// Of the branches of an `#if` in the text itself, the only one that has code.
    fn branch_with_code(&self, text: usize, first: usize) -> Option<usize> {
        if text != self.number {
            return None;
        }
        let directives = &self.definitions.texts[text].directives;
        let mut found = None;
        let mut at = first;
        while let Some(next) = directives.get(directives.get(at)?.ends_at as usize) {
            let lines = directives[at].line..next.line;
            let up_to = |line: u32| self.code.get(line as usize).copied().unwrap_or(0);
            if up_to(lines.end.saturating_sub(1)) > up_to(lines.start) {
                if found.is_some() {
                    return None;
                }
                found = Some(at);
            }
            at = directives[at].ends_at as usize;
        }
        found
    }

    fn enter_if(&mut self, condition: &Condition, text: usize, at: usize) {
        let is_needed = self.groups.last().is_some_and(|it| !it.is_dead);
        let truth = match is_needed {
            true => self.truth(condition, text, at),
            false => None,
        };
        self.enter_branch(at, truth);
    }

    fn truth(&self, condition: &Condition, text: usize, at: usize) -> Option<bool> {
        match condition {
            Condition::Defined(name) => self.is_defined(self.bytes(name)),
            Condition::NotDefined(name) => {
                let known = self.is_defined(self.bytes(name)).map(|it| !it);
                // What is defined unless it was is defined.
                let next = self.definitions.texts[text].directives.get(at + 1);
                known.or_else(|| self.defines(next?, name).then_some(true))
            }
            Condition::Value(tokens) => self.value(tokens).map(|it| it != 0),
        }
    }

    fn defines(&self, directive: &Directive, wanted: &Span) -> bool {
        match &directive.what {
            What::Define { name, .. } => self.bytes(name) == self.bytes(wanted),
            _ => false,
        }
    }

    /// Begins a branch of the innermost group.
    fn enter_branch(&mut self, at: usize, truth: Option<bool>) {
        let Some(group) = self.groups.last_mut() else {
            return;
        };
        let truth = match group.chosen {
            Some(chosen) => Some(chosen == at),
            None => truth,
        };
        group.branch = match truth {
            _ if group.is_dead || group.is_complete => Branch::Dead,
            Some(false) => Branch::Dead,
            Some(true) if group.layers.is_empty() => Branch::Live,
            _ => Branch::Maybe,
        };
        group.is_complete |= truth == Some(true);
        if group.branch == Branch::Maybe {
            self.layers.push(Layer::default());
        }
    }

    fn leave_branch(&mut self) {
        let Some(group) = self.groups.last_mut() else {
            return;
        };
        if std::mem::take(&mut group.branch) == Branch::Maybe {
            group.layers.extend(self.layers.pop());
        }
    }

    /// Behind a group, names mean what any of its branches says, or what they did.
    fn end(&mut self) {
        let Some(group) = self.groups.pop() else {
            return;
        };
        let names: Vec<&'d [u8]> = group
            .layers
            .iter()
            .flat_map(|it| it.keys().copied())
            .collect();
        let mut merged = Layer::default();
        for name in names {
            if self.is_lost || merged.contains_key(name) {
                continue;
            }
            let before = || self.meanings(name).cloned().unwrap_or_else(|| vec![None]);
            let mut all = Meanings::new();
            for layer in &group.layers {
                all.extend(layer.get(name).cloned().unwrap_or_else(before));
            }
            if !group.is_complete {
                all.extend(before());
            }
            self.spend(all.len());
            all.sort_unstable();
            all.dedup();
            merged.insert(name, all);
        }
        if let Some(layer) = self.layers.last_mut() {
            layer.extend(merged);
        }
    }
}

/// Whether a header is of the C library or of the system, whose macros let control out behind them.
fn is_of_the_library(name: &str) -> bool {
    let folders = [
        "sys/", "bits/", "linux/", "asm/", "netinet/", "arpa/", "net/",
    ];
    let is_inside = folders.iter().any(|it| name.starts_with(it));
    is_inside || LIBRARY_HEADERS.contains(&name.strip_suffix(".h").unwrap_or(name))
}

const LIBRARY_HEADERS: [&str; 60] = [
    "alloca",
    "assert",
    "complex",
    "ctype",
    "dirent",
    "dlfcn",
    "endian",
    "errno",
    "execinfo",
    "fcntl",
    "features",
    "fenv",
    "float",
    "getopt",
    "grp",
    "iconv",
    "inttypes",
    "iso646",
    "langinfo",
    "libgen",
    "limits",
    "link",
    "locale",
    "malloc",
    "math",
    "memory",
    "netdb",
    "poll",
    "pthread",
    "pwd",
    "regex",
    "sched",
    "semaphore",
    "setjmp",
    "signal",
    "spawn",
    "stdalign",
    "stdarg",
    "stdatomic",
    "stdbool",
    "stddef",
    "stdint",
    "stdio",
    "stdlib",
    "stdnoreturn",
    "string",
    "strings",
    "syslog",
    "termios",
    "tgmath",
    "threads",
    "time",
    "uchar",
    "ucontext",
    "unistd",
    "utime",
    "values",
    "wchar",
    "wctype",
    "x86intrin",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What `X` means at the end of a text.
    fn meaning(texts: &[(&str, &str)], code: &[u32]) -> Option<String> {
        let mut definitions = Definitions::default();
        for (name, text) in texts {
            definitions.read(name, text.as_bytes());
        }
        definitions.settle();
        let mut environment = Environment::new(&definitions, 0, 50, &|it| code.contains(&it));
        environment.advance(u32::MAX);
        match environment.meaning(b"X") {
            Meaning::Itself => None,
            Meaning::Macro(id) => {
                let body = &definitions.macros[id as usize].body;
                let (first, last) = (body.first()?.token, body.last()?.token);
                let bytes = &definitions.bytes[first.start as usize..last.end as usize];
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
            Meaning::Several(_) => Some("several".into()),
        }
    }

    fn alone(text: &str) -> Option<String> {
        meaning(&[("x.c", text)], &[])
    }

    #[test]
    fn the_last_definition_counts() {
        assert_eq!(
            alone("#define X 1\n#undef X\n#define X 2 + 3\n").unwrap(),
            "2 + 3"
        );
        assert_eq!(alone("#define X 1\n#undef X\n"), None);
    }

    #[test]
    fn conditions_are_evaluated_where_the_texts_tell() {
        for (text, expected) in [
            ("#if 0\n#define X 1\n#else\n#define X 2\n#endif\n", "2"),
            (
                "#define A\n#ifdef A\n#define X 1\n#else\n#define X 2\n#endif\n",
                "1",
            ),
            (
                "#define A 3\n#if A * 2 > 5 && defined(A)\n#define X 1\n#endif\n",
                "1",
            ),
            (
                "#ifdef _WIN32\n#define X 1\n#elif 1\n#define X 2\n#else\n#define X 3\n#endif\n",
                "2",
            ),
            ("#ifndef X\n#define X 5\n#endif\n", "5"),
            ("#define X 4\n#ifndef X\n#define X 5\n#endif\n", "4"),
            (
                "#ifdef WHO\n#define X 1\n#else\n#define X 2\n#endif\n",
                "several",
            ),
            ("#ifdef WHO\n#define X 1\n#else\n#define X 1\n#endif\n", "1"),
            ("#define X 1 + 1\n#ifdef WHO\n#undef X\n#endif\n", "several"),
            (
                "#define X 1\n#ifdef WHO\n#define X 2\n#else\n#define X 2\n#endif\n",
                "2",
            ),
            (
                "#if WHO\n#ifdef __cplusplus\n#define X 1\n#endif\n#endif\n#define X 7\n",
                "7",
            ),
            (
                "#if 0 && WHO\n#define X 1\n#elif 1 || WHO\n#define X 2\n#endif\n",
                "2",
            ),
            (
                "#if (1 ? 4 : 1/0) == 4 && -1 < 0 && 'a' == 97\n#define X 1\n#endif\n",
                "1",
            ),
        ] {
            assert_eq!(alone(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_branch_with_code_was_compiled() {
        let text = "#ifdef WHO\n#define X 1\nint f;\n#else\n#define X 2\nint f;\n#endif\n";
        assert_eq!(meaning(&[("x.c", text)], &[6]).unwrap(), "2");
        assert_eq!(meaning(&[("x.c", text)], &[3]).unwrap(), "1");
        assert_eq!(meaning(&[("x.c", text)], &[3, 6]).unwrap(), "several");
    }

    #[test]
    fn files_are_included_where_they_are_and_once_if_they_say_so() {
        let guarded = "#ifndef H\n#define H\n#define X 1\n#endif\n";
        let texts = [
            ("x.c", "#include \"h.h\"\n#define X 2\n#include \"h.h\"\n"),
            ("h.h", guarded),
        ];
        assert_eq!(meaning(&texts, &[]).unwrap(), "2");
        let itself = [("x.c", "#include \"x.c\"\n#define X 1\n")];
        assert_eq!(meaning(&itself, &[]).unwrap(), "1");
    }

    #[test]
    fn what_others_define_counts_in_headers_and_where_a_file_is_missing() {
        let header = [("h.h", "int f;\n"), ("x.c", "#define X 3\n")];
        assert_eq!(meaning(&header, &[]).unwrap(), "3");
        let other = [("y.c", "int f;\n"), ("h.h", "#define X 3\n")];
        assert_eq!(meaning(&other, &[]), None);
        let missing = [("y.c", "#include \"z.h\"\n"), ("h.h", "#define X 3\n")];
        assert_eq!(meaning(&missing, &[]).unwrap(), "3");
    }
}
