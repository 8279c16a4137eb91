//! Macros of texts that no preprocessor has seen: may one hide where control goes?

use std::collections::{HashMap, HashSet};

use crate::lex::{Kind, Token, lex};
use crate::words::Word;

/// What using a macro means to those who follow control through a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hides {
    /// A value, or a call.
    #[default]
    Nothing,
    /// Statements, or operands that are evaluated on a condition; control comes out behind it.
    Parts,
    /// A way out, or a part of a statement: nobody knows where control goes.
    Ways,
}

/// The macros that some texts define, and the types. Of several definitions of a name, the one that
/// hides least counts: others are for tracing and tests, mostly.
#[derive(Debug, Default)]
pub struct Definitions {
    known: HashMap<Vec<u8>, Known>,
    types: HashSet<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Known {
    hides: Hides,
    /// Names in it.
    mentions: Vec<Vec<u8>>,
}

impl Definitions {
    /// Takes the definitions of a text.
    pub fn read(&mut self, text: &[u8]) {
        let lexed = lex(text, "");
        for definition in &lexed.definitions {
            self.define(&text[definition.start as usize..definition.end as usize]);
        }
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

    /// Takes one definition, from the name on.
    fn define(&mut self, text: &[u8]) {
        let tokens = lex(text, "").tokens;
        let Some((name, rest)) = tokens.split_first() else {
            return;
        };
        let has_parameters =
            matches!(rest.first(), Some(it) if it.kind == Kind::OpenParen && it.start == name.end);
        let close = rest.iter().position(|it| it.kind == Kind::CloseParen);
        let body = match close.filter(|_| has_parameters) {
            Some(close) => &rest[close + 1..],
            None => rest,
        };
        let bytes = |it: &Token| text[it.start as usize..it.end as usize].to_vec();
        let hides = hidden(body);
        let known = self.known.get(&bytes(name));
        if known.is_some_and(|it| it.hides <= hides) {
            return;
        }
        let names = body.iter().filter(|it| it.kind == Kind::Name);
        let mentions = names.map(bytes).collect();
        self.known.insert(bytes(name), Known { hides, mentions });
    }

    /// What is in a macro that is in a macro is in that one, too. To be called when all texts were
    /// read.
    pub fn settle(&mut self) {
        loop {
            let worse = |(name, it): (&Vec<u8>, &Known)| {
                let inside = it.mentions.iter().map(|name| self.hides(name)).max();
                let inside = inside.filter(|found| *found > it.hides)?;
                Some((name.clone(), inside))
            };
            let found: Vec<_> = self.known.iter().filter_map(worse).collect();
            if found.is_empty() {
                return;
            }
            for (name, hides) in found {
                self.known.entry(name).or_default().hides = hides;
            }
        }
    }

    /// What a name hides. One that nobody defines is a function's or a variable's.
    pub fn hides(&self, name: &[u8]) -> Hides {
        self.known.get(name).map_or(Hides::Nothing, |it| it.hides)
    }
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
            Kind::Word(
                Word::Goto
                | Word::Return
                | Word::Break
                | Word::Continue
                | Word::Case
                | Word::Default
                | Word::Asm,
            ) => return Hides::Ways,
            Kind::Word(
                Word::If | Word::Else | Word::While | Word::Do | Word::For | Word::Switch,
            ) => Hides::Parts,
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
        Some(Kind::Word(Word::Do) | Kind::OpenBrace | Kind::OpenParen)
    );
    match depth != 0 || body.iter().any(has_statement) && !is_closed {
        true => Hides::Ways,
        false => hides,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_control_comes_out_of_behind_can_be_stepped_over() {
        let mut definitions = Definitions::default();
        definitions.read(
            b"#define SIZE 10\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\n\
              #define SWAP(a, b) do { int t = a; a = b; b = t; } while (0)\n\
              #define CHECK(x) if (x) abort()\n#define TRY(x) do { if (x) goto out; } while (0)\n\
              #define TWICE(x) TRY(x), TRY(x)\n#define EACH(i) for (i = 0; i < 3; i++)\n\
              #define OPEN {\n",
        );
        definitions.settle();
        for (name, hides) in [
            ("SIZE", Hides::Nothing),
            ("unknown", Hides::Nothing),
            ("MAX", Hides::Parts),
            ("SWAP", Hides::Parts),
            ("CHECK", Hides::Ways),
            ("TRY", Hides::Ways),
            ("TWICE", Hides::Ways),
            ("EACH", Hides::Ways),
            ("OPEN", Hides::Ways),
        ] {
            assert_eq!(definitions.hides(name.as_bytes()), hides, "{name}");
        }
    }
}
