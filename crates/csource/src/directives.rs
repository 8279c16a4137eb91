//! Directives of a text that no preprocessor has seen, as far as macros depend on them.

use std::ops::Range;

use crate::definitions::MacroId;
use crate::lex::{Kind, Lexed, Token, lex};

/// Bytes of the texts' directives, which are kept together.
pub type Span = Range<u32>;

/// A directive, and where it is.
#[derive(Debug)]
pub struct Directive {
    /// Where its `#` is.
    pub start: u32,
    pub line: u32,
    pub what: What,
    /// Of `#if` and what divides it: the number of the directive that ends the branch.
    pub ends_at: u32,
}

#[derive(Debug)]
pub enum What {
    /// From the name on; which macro, [`crate::definitions`] says.
    Define {
        text: Span,
        name: Span,
        id: MacroId,
    },
    Undefine(Span),
    /// A file, as it is named.
    Include(String),
    If(Condition),
    ElseIf(Condition),
    Else,
    End,
}

#[derive(Debug)]
pub enum Condition {
    Defined(Span),
    NotDefined(Span),
    /// An expression.
    Value(Vec<Token>),
}

/// The directives of a text. What is kept of their bytes is put behind what is there.
pub fn directives(text: &[u8], lexed: &Lexed, kept: &mut Vec<u8>) -> Vec<Directive> {
    let mut found: Vec<Directive> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for bytes in &lexed.directives {
        let line = &text[bytes.start as usize..bytes.end as usize];
        let Some(what) = directive(line, kept) else {
            continue;
        };
        let number = found.len();
        if matches!(what, What::ElseIf(_) | What::Else | What::End) {
            // One that divides or ends nothing means nothing.
            let Some(before) = open.pop() else { continue };
            found[before].ends_at = number as u32;
        }
        if matches!(what, What::If(_) | What::ElseIf(_) | What::Else) {
            open.push(number);
        }
        found.push(Directive {
            start: bytes.start,
            line: lexed.lines.position(bytes.start).line,
            what,
            ends_at: u32::MAX,
        });
    }
    found
}

fn directive(line: &[u8], kept: &mut Vec<u8>) -> Option<What> {
    let line = line.strip_prefix(b"%:").or(line.strip_prefix(b"#"))?;
    let line = line.trim_ascii();
    let length = line
        .iter()
        .take_while(|it| it.is_ascii_alphabetic())
        .count();
    let (word, rest) = line.split_at(length);
    let rest = rest.trim_ascii();
    // Nothing follows a line that is to go on.
    let rest = rest
        .strip_suffix(b"\\")
        .map_or(rest, <[u8]>::trim_ascii_end);
    Some(match word {
        b"define" => {
            let length = first_name(rest)?.len() as u32;
            let text = keep(rest, kept);
            What::Define {
                name: text.start..text.start + length,
                text,
                id: MacroId::MAX,
            }
        }
        b"undef" => What::Undefine(keep(first_name(rest)?, kept)),
        b"include" | b"include_next" => What::Include(included(rest)?),
        b"if" => What::If(condition(rest, kept)),
        b"elif" => What::ElseIf(condition(rest, kept)),
        b"ifdef" => What::If(Condition::Defined(keep(first_name(rest)?, kept))),
        b"ifndef" => What::If(Condition::NotDefined(keep(first_name(rest)?, kept))),
        b"elifdef" => What::ElseIf(Condition::Defined(keep(first_name(rest)?, kept))),
        b"elifndef" => What::ElseIf(Condition::NotDefined(keep(first_name(rest)?, kept))),
        b"else" => What::Else,
        b"endif" => What::End,
        _ => return None,
    })
}

fn keep(bytes: &[u8], kept: &mut Vec<u8>) -> Span {
    let start = kept.len() as u32;
    kept.extend_from_slice(bytes);
    let end = kept.len() as u32;
    // Tokens of one piece do not run into those of the next.
    kept.push(b'\n');
    start..end
}

fn first_name(text: &[u8]) -> Option<&[u8]> {
    let token = *lex(text, "").tokens.first()?;
    let is_name = matches!(token.kind, Kind::Name | Kind::Word(_));
    is_name.then(|| &text[token.start as usize..token.end as usize])
}

/// The file between quotes, or between `<` and `>`.
fn included(rest: &[u8]) -> Option<String> {
    let end = match rest.first()? {
        b'"' => b'"',
        b'<' => b'>',
        _ => return None,
    };
    let length = rest[1..].iter().position(|it| *it == end)?;
    Some(String::from_utf8_lossy(&rest[1..=length]).into_owned())
}

fn condition(rest: &[u8], kept: &mut Vec<u8>) -> Condition {
    let span = keep(rest, kept);
    let mut tokens = lex(rest, "").tokens;
    for token in &mut tokens {
        token.start += span.start;
        token.end += span.start;
    }
    let bytes = |it: &Token| &kept[it.start as usize..it.end as usize];
    let (is_not, inner) = match tokens.split_first() {
        Some((first, rest)) if bytes(first) == b"!" => (true, rest),
        _ => (false, &tokens[..]),
    };
    let name = match inner {
        [word, name] if bytes(word) == b"defined" => Some(name),
        [word, open, name, close]
            if bytes(word) == b"defined"
                && open.kind == Kind::OpenParen
                && close.kind == Kind::CloseParen =>
        {
            Some(name)
        }
        _ => None,
    };
    match name.map(|it| it.start..it.end) {
        Some(name) if is_not => Condition::NotDefined(name),
        Some(name) => Condition::Defined(name),
        None => Condition::Value(tokens),
    }
}
