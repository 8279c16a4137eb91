//! Macros and types that the texts of a program define.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::directives::{Directive, Span, What, directives};
use crate::lex::{Kind, Token, lex};
use crate::macros::Definition;
use crate::words::Word;

/// What using a macro means to those who follow control through a text, and do not know which of
/// several macros it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hides {
    /// A value, or a call.
    #[default]
    Nothing,
    /// Statements, or operands that are evaluated on a condition; control comes out behind it.
    Parts,
    /// The same, if it is all of a statement.
    Statement,
    /// A way out, or a part of a statement: nobody knows where control goes.
    Ways,
}

/// Which macro. Macros that say the same are one.
pub type MacroId = u32;

/// A macro.
#[derive(Debug, Default)]
pub struct Macro {
    name: Vec<u8>,
    /// How many parameters, if there are parentheses.
    pub parameters: Option<usize>,
    /// Whether the last one stands for all that is left.
    pub is_variadic: bool,
    pub body: Vec<Piece>,
    hides: Hides,
    /// Whether it is an `if` without an `else`: control may pass it by.
    pub is_guarded: bool,
    /// Names in it.
    mentions: Vec<Vec<u8>>,
}

/// A part of what a macro stands for.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// With bytes of [`Definitions::bytes`].
    pub token: Token,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is what it is.
    Itself,
    Parameter(usize),
    /// A parameter behind `#`.
    Quoted(usize),
    /// `##`: what is before it and behind it become one.
    Paste,
}

/// A text that was read.
#[derive(Debug, Default)]
pub struct Text {
    pub name: String,
    pub directives: Vec<Directive>,
}

impl Text {
    /// Whether it is made to be included.
    pub fn is_header(&self) -> bool {
        !self.name.ends_with(".c")
    }
}

/// The macros that some texts define, and the types.
#[derive(Debug, Default)]
pub struct Definitions {
    pub texts: Vec<Text>,
    /// Texts by the last part of their names.
    by_file: HashMap<String, Vec<usize>>,
    /// What is kept of the texts.
    pub bytes: Vec<u8>,
    pub macros: Vec<Macro>,
    same: HashMap<Vec<u8>, MacroId>,
    /// All macros of a name, and whether a header defines it.
    known: HashMap<Vec<u8>, BTreeSet<(MacroId, bool)>>,
    types: HashSet<Vec<u8>>,
    /// Whether a word that control depends on means something else.
    has_changed_words: bool,
}

impl Definitions {
    /// Takes the definitions of a text.
    pub fn read(&mut self, name: &str, text: &[u8]) {
        let has_room = text.len() + self.bytes.len() < u32::MAX as usize / 2;
        if !has_room || self.number(name).is_some() {
            return;
        }
        let lexed = lex(text, "");
        let mut read = Text {
            name: name.to_owned(),
            directives: directives(text, &lexed, &mut self.bytes),
        };
        let is_header = read.is_header();
        for directive in &mut read.directives {
            if let What::Define { text, name, id } = &mut directive.what {
                *id = self.define(text.clone(), name.clone(), is_header);
            }
        }
        let file = last_part(name).to_owned();
        self.by_file.entry(file).or_default().push(self.texts.len());
        self.texts.push(read);
        let begins = |(_, it): &(usize, &Token)| it.kind == Kind::Word(Word::Typedef);
        for (at, _) in lexed.tokens.iter().enumerate().filter(begins) {
            let named = defined_type(&lexed.tokens[at + 1..]);
            let bytes = |it: &Token| text[it.start as usize..it.end as usize].to_vec();
            self.types.extend(named.iter().map(bytes));
        }
    }

    /// The names of types that texts and the C library define.
    pub fn types(&self) -> impl Iterator<Item = &[u8]> {
        let library = LIBRARY_TYPES.iter().map(|name| name.as_bytes());
        self.types.iter().map(Vec::as_slice).chain(library)
    }

    pub fn is_type(&self, name: &[u8]) -> bool {
        self.types.contains(name)
    }

    /// Takes one definition, from the name on.
    fn define(&mut self, text: Span, name: Span, in_header: bool) -> MacroId {
        let bytes = &self.bytes[text.start as usize..text.end as usize];
        let tokens = lex(bytes, "").tokens;
        let mut key = Vec::with_capacity(bytes.len());
        for token in &tokens {
            key.extend_from_slice(&bytes[token.start as usize..token.end as usize]);
            key.push(b' ');
        }
        let definition = Definition::new(&tokens);
        let takes = definition.as_ref().is_some_and(|it| it.heading.is_some());
        key.push(u8::from(takes));
        let is_control = |it: &Token| matches!(it.kind, Kind::Word(word) if word.is_of_control());
        self.has_changed_words |= tokens.first().is_some_and(is_control);
        let next = self.macros.len() as MacroId;
        let id = *self.same.entry(key).or_insert(next);
        if id == next {
            let parsed = definition.map(|it| parse(bytes, &it, text.start));
            self.macros.push(parsed.unwrap_or_default());
        }
        let name = self.bytes[name.start as usize..name.end as usize].to_vec();
        self.known.entry(name).or_default().insert((id, in_header));
        id
    }

    /// What is in a macro that is in a macro is in that one, too. To be called when all texts were
    /// read.
    pub fn settle(&mut self) {
        let mut used_by: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (id, it) in self.macros.iter().enumerate() {
            for name in &it.mentions {
                used_by.entry(name).or_default().push(id);
            }
        }
        let mut hides: Vec<Hides> = self.macros.iter().map(|it| it.hides).collect();
        let mut waiting: Vec<usize> = (0..hides.len()).collect();
        while let Some(id) = waiting.pop() {
            let name = self.macros[id].name.as_slice();
            for user in used_by.get(name).into_iter().flatten() {
                if hides[*user] < hides[id] {
                    hides[*user] = hides[id];
                    waiting.push(*user);
                }
            }
        }
        for (it, hides) in self.macros.iter_mut().zip(hides) {
            it.hides = hides;
        }
    }

    /// What a macro hides.
    pub fn hides(&self, id: MacroId) -> Hides {
        self.macros[id as usize].hides
    }

    /// The names of all macros.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.known.keys().map(Vec::as_slice)
    }

    /// The macros of a name, wherever they are defined, and whether headers do.
    pub fn anywhere(&self, name: &[u8]) -> impl Iterator<Item = (MacroId, bool)> {
        self.known.get(name).into_iter().flatten().copied()
    }

    /// Whether nothing that follows from words of C follows.
    pub fn is_mad(&self) -> bool {
        self.has_changed_words
    }

    /// The number of a text.
    pub fn number(&self, name: &str) -> Option<usize> {
        let known = self.by_file.get(last_part(name))?;
        known
            .iter()
            .copied()
            .find(|it| self.texts[*it].name == name)
    }

    /// The text that another includes by a name: one beside it, or any that is called so.
    pub fn included(&self, by: usize, name: &str) -> Option<usize> {
        let known = self.by_file.get(last_part(name))?;
        let folder = |name: &str| name.len() - last_part(name).len();
        let beside = &self.texts[by].name[..folder(&self.texts[by].name)];
        let wanted = name.trim_start_matches("./").trim_start_matches("../");
        let is_called = |it: &&usize| {
            let rest = self.texts[**it].name.strip_suffix(wanted);
            rest.is_some_and(|it| it.is_empty() || it.ends_with('/'))
        };
        let is_beside = |it: &&usize| self.texts[**it].name.strip_prefix(beside) == Some(wanted);
        let beside = known.iter().find(is_beside);
        beside.or_else(|| known.iter().find(is_called)).copied()
    }
}

/// The macro that is defined. Its text begins at `start` of what is kept.
fn parse(text: &[u8], definition: &Definition<'_>, start: u32) -> Macro {
    let bytes = |it: &Token| &text[it.start as usize..it.end as usize];
    let body = definition.body;
    let heading = definition.heading.unwrap_or_default();
    let is_parameter = |it: &&Token| matches!(it.kind, Kind::Name | Kind::Word(_));
    let mut parameters: Vec<&[u8]> = heading.iter().filter(is_parameter).map(bytes).collect();
    // `...` is `__VA_ARGS__`, unless a name stands before it.
    let dots = heading.iter().position(|it| it.kind == Kind::Dots);
    if dots.is_some_and(|it| heading[it - 1].kind != Kind::Name) {
        parameters.push(b"__VA_ARGS__");
    }
    let names = body.iter().filter(|it| it.kind == Kind::Name);
    let others = names.map(bytes).filter(|it| !parameters.contains(it));
    Macro {
        name: bytes(&definition.name).to_vec(),
        parameters: definition.heading.map(|_| parameters.len()),
        is_variadic: dots.is_some(),
        hides: hidden(body),
        is_guarded: is_guarded(body),
        mentions: others.map(<[u8]>::to_vec).collect(),
        body: pieces(text, definition, &parameters, start),
    }
}

fn pieces(
    text: &[u8],
    definition: &Definition<'_>,
    parameters: &[&[u8]],
    start: u32,
) -> Vec<Piece> {
    let body = definition.body;
    let may_quote = definition.heading.is_some();
    let bytes = |it: &Token| &text[it.start as usize..it.end as usize];
    let parameter = |at: usize| {
        let name = bytes(body.get(at)?);
        parameters.iter().position(|it| *it == name)
    };
    let is_hash = |at: usize| body.get(at).is_some_and(|it| bytes(it) == b"#");
    let mut pieces = Vec::with_capacity(body.len());
    let mut at = 0;
    while at < body.len() {
        let (role, length) = match (parameter(at), parameter(at + 1)) {
            (Some(it), _) => (Role::Parameter(it), 1),
            _ if is_hash(at) && is_hash(at + 1) && body[at].end == body[at + 1].start => {
                (Role::Paste, 2)
            }
            (None, Some(it)) if may_quote && is_hash(at) => (Role::Quoted(it), 2),
            _ => (Role::Itself, 1),
        };
        let token = Token {
            kind: body[at].kind,
            start: body[at].start + start,
            end: body[at].end + start,
            after_pragma: false,
            after_condition: false,
        };
        pieces.push(Piece { token, role });
        at += length;
    }
    pieces
}

/// The file of a path.
fn last_part(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

/// Types of the C library, whose headers nobody reads here.
const LIBRARY_TYPES: [&str; 34] = [
    "DIR",
    "FILE",
    "clock_t",
    "div_t",
    "fpos_t",
    "gid_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "intmax_t",
    "intptr_t",
    "jmp_buf",
    "mode_t",
    "off_t",
    "pid_t",
    "pthread_mutex_t",
    "pthread_t",
    "ptrdiff_t",
    "sig_atomic_t",
    "sigset_t",
    "size_t",
    "ssize_t",
    "time_t",
    "uid_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "uintmax_t",
    "uintptr_t",
    "va_list",
    "wchar_t",
    "wint_t",
];

/// The name that a `typedef` defines: the last one outside of brackets, or the one behind the star
/// of `(*name)(...)`.
fn defined_type(tokens: &[Token]) -> Option<Token> {
    let mut depth = 0_i32;
    let mut last = None;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Semicolon if depth == 0 => return last,
            Kind::OpenBrace | Kind::OpenBracket => depth += 1,
            Kind::CloseBrace | Kind::CloseBracket | Kind::CloseParen => depth -= 1,
            Kind::OpenParen => {
                let star = tokens.get(at + 1).is_some_and(|it| it.kind == Kind::Either);
                let name = tokens.get(at + 2).filter(|it| it.kind == Kind::Name);
                if let (true, Some(name), 0) = (star, name, depth) {
                    return Some(*name);
                }
                depth += 1;
            }
            Kind::Name if depth == 0 => last = Some(*token),
            _ => (),
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

/// Whether the text of a macro is `if (...) ...` and nothing else.
fn is_guarded(body: &[Token]) -> bool {
    let begins = |kinds: &[Kind]| {
        let found = body.iter().map(|it| it.kind);
        found.take(kinds.len()).eq(kinds.iter().copied())
    };
    if !begins(&[Kind::Word(Word::If), Kind::OpenParen]) {
        return false;
    }
    let mut depth = 0_i32;
    let mut ends = Vec::new();
    for (at, token) in body.iter().enumerate().skip(1) {
        match token.kind {
            Kind::OpenParen | Kind::OpenBrace => depth += 1,
            Kind::CloseParen | Kind::CloseBrace => depth -= 1,
            Kind::Word(Word::Else) if depth == 0 => return false,
            _ => (),
        }
        // The condition ends, then what it governs does.
        let is_end = matches!(token.kind, Kind::CloseParen if ends.is_empty())
            || matches!(token.kind, Kind::CloseBrace | Kind::Semicolon);
        if depth == 0 && is_end {
            ends.push(at);
        }
    }
    let last = body.len() - 1;
    let closes = ends.get(1).is_none_or(|it| *it == last);
    depth == 0 && !ends.is_empty() && closes
}

/// What the text of a macro hides.
fn hidden(body: &[Token]) -> Hides {
    let mut depth = 0_i32;
    let mut hides = Hides::Nothing;
    for token in body {
        match token.kind {
            Kind::OpenBrace => depth += 1,
            Kind::CloseBrace => depth -= 1,
            _ => (),
        }
        if depth < 0 {
            return Hides::Ways;
        }
        hides = hides.max(match token.kind {
            Kind::Question | Kind::AndAnd | Kind::OrOr => Hides::Parts,
            Kind::Semicolon | Kind::OpenBrace | Kind::CloseBrace => Hides::Parts,
            Kind::Word(word) if word.is_jump() => return Hides::Ways,
            Kind::Word(word) if word.is_of_control() => Hides::Parts,
            _ => Hides::Nothing,
        });
    }
    let has_statement = |it: &Token| {
        let words = [Word::If, Word::Else, Word::While, Word::For, Word::Switch];
        matches!(it.kind, Kind::Word(word) if words.contains(&word))
    };
    let begins = body.first().map(|it| it.kind);
    let is_closed = matches!(
        begins,
        Some(Kind::Word(Word::Do | Word::Asm) | Kind::OpenBrace | Kind::OpenParen)
    );
    match depth {
        0 if body.iter().any(has_statement) && !is_closed => Hides::Statement,
        0 => hides,
        _ => Hides::Ways,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_control_comes_out_of_behind_can_be_stepped_over() {
        let mut definitions = Definitions::default();
        definitions.read(
            "x.c",
            b"#define SIZE 10\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\n\
              #define SWAP(a, b) do { int t = a; a = b; b = t; } while (0)\n\
              #define CHECK(x) if (x) abort()\n#define TRY(x) do { if (x) goto out; } while (0)\n\
              #define TWICE(x) TRY(x), TRY(x)\n#define EACH(i) for (i = 0; i < 3; i++)\n\
              #define OPEN {\n#define x TRY(1)\n#define TAKES(x) x\n",
        );
        definitions.settle();
        for (name, hides) in [
            ("SIZE", Hides::Nothing),
            ("unknown", Hides::Nothing),
            ("MAX", Hides::Parts),
            ("SWAP", Hides::Parts),
            ("CHECK", Hides::Statement),
            ("TRY", Hides::Ways),
            ("TWICE", Hides::Ways),
            ("EACH", Hides::Statement),
            ("OPEN", Hides::Ways),
            ("TAKES", Hides::Nothing),
        ] {
            let known = definitions.anywhere(name.as_bytes());
            let worst = known.map(|(id, _)| definitions.hides(id)).max();
            assert_eq!(worst.unwrap_or_default(), hides, "{name}");
        }
    }

    #[test]
    fn a_guarded_macro_is_one_if_and_nothing_else() {
        for (body, expected) in [
            ("if (x) return", true),
            ("if (x) return;", true),
            ("if (f(x)) { a; return; }", true),
            ("if (x) if (y) goto out", true),
            ("if (x) a; return", false),
            ("if (x) { a; } b", false),
            ("if (x) return; else b", false),
            ("if (x) { if (y) a; else return; }", true),
            ("do { if (x) return; } while (0)", false),
            ("return", false),
            ("", false),
        ] {
            assert_eq!(
                is_guarded(&lex(body.as_bytes(), "").tokens),
                expected,
                "{body}"
            );
        }
    }

    #[test]
    fn a_file_is_included_from_beside_or_from_where_it_is() {
        let mut definitions = Definitions::default();
        for name in ["a/x.c", "a/x.h", "b/x.h", "b/y.h", "x.h"] {
            definitions.read(name, b"");
        }
        let included = |by: &str, name: &str| {
            let found = definitions.included(definitions.number(by).unwrap(), name);
            found.map(|it| definitions.texts[it].name.as_str())
        };
        assert_eq!(included("a/x.c", "x.h"), Some("a/x.h"));
        assert_eq!(included("a/x.c", "../b/x.h"), Some("b/x.h"));
        assert_eq!(included("a/x.c", "y.h"), Some("b/y.h"));
        assert_eq!(included("a/x.c", "z.h"), None);
        assert_eq!(included("x.h", "x.h"), Some("x.h"));
    }
}
