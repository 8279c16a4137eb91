//! The value of a condition, as far as it can be told.

use std::cell::Cell;

use super::Environment;
use crate::definitions::Role;
use crate::lex::{Kind, Token};

/// How deeply names stand for names, and parentheses are nested.
const DEEPEST: u32 = 60;

/// How many tokens a condition may come to.
const MOST_TOKENS: usize = 10_000;

/// Names that compilers define themselves on the systems that programs are counted on, and others
/// that they do not; with the value, if it is always the same.
const PREDEFINED: [(&str, bool, Option<i64>); 14] = [
    ("__GNUC__", true, None),
    ("__STDC__", true, Some(1)),
    ("__STDC_VERSION__", true, None),
    ("__linux__", true, Some(1)),
    ("__unix__", true, Some(1)),
    ("__cplusplus", false, None),
    ("_WIN32", false, None),
    ("_WIN64", false, None),
    ("WIN32", false, None),
    ("_MSC_VER", false, None),
    ("__APPLE__", false, None),
    ("__MINGW32__", false, None),
    ("__CYGWIN__", false, None),
    ("__BORLANDC__", false, None),
];

impl Environment<'_> {
    /// Whether a name is defined, if that can be told.
    pub(super) fn is_defined(&self, name: &[u8]) -> Option<bool> {
        let Some(meanings) = self.meanings(name) else {
            let known = PREDEFINED.iter().find(|it| it.0.as_bytes() == name);
            return known.map(|it| it.1);
        };
        match meanings.iter().all(Option::is_some) {
            true => Some(true),
            false if meanings.iter().all(Option::is_none) => Some(false),
            false => None,
        }
    }

    /// The value of an expression.
    pub(super) fn value(&self, tokens: &[Token]) -> Option<i64> {
        self.value_inside(tokens, 0, &Cell::new(MOST_TOKENS))
    }

    fn value_inside(&self, tokens: &[Token], depth: u32, left: &Cell<usize>) -> Option<i64> {
        left.set(left.get().checked_sub(tokens.len())?);
        let mut reader = Reader {
            environment: self,
            tokens,
            at: 0,
            depth,
            left,
        };
        let value = reader.choice()?;
        (reader.at == tokens.len()).then_some(value?)
    }
}

/// Reads an expression. Outer `None`: it cannot be read; inner: its value is not known.
struct Reader<'e, 'd> {
    environment: &'e Environment<'d>,
    tokens: &'e [Token],
    at: usize,
    depth: u32,
    /// How many tokens may still come out of macros.
    left: &'e Cell<usize>,
}

type Value = Option<Option<i64>>;

/// Operators between operands, those that bind least first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'e> Reader<'e, '_> {
    fn bytes(&self) -> &'e [u8] {
        let token = self.tokens.get(self.at);
        let bytes = &self.environment.definitions.bytes;
        token.map_or(&[], |it| &bytes[it.start as usize..it.end as usize])
    }

    fn take(&mut self, bytes: &[u8]) -> bool {
        let is = self.bytes() == bytes;
        self.at += usize::from(is);
        is
    }

    fn choice(&mut self) -> Value {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let condition = self.joined(0)?;
        let value = match self.take(b"?") {
            false => condition,
            true => {
                let yes = self.choice()?;
                if !self.take(b":") {
                    return None;
                }
                let no = self.choice()?;
                match condition {
                    Some(0) => no,
                    Some(_) => yes,
                    None => yes.filter(|_| yes == no),
                }
            }
        };
        self.depth -= 1;
        Some(value)
    }

    fn joined(&mut self, level: usize) -> Value {
        let Some(operators) = LEVELS.get(level) else {
            return self.operand();
        };
        let mut left = self.joined(level + 1)?;
        while let Some(operator) = operators.iter().find(|it| it.as_bytes() == self.bytes()) {
            self.at += 1;
            let right = self.joined(level + 1)?;
            left = calculated(operator, left, right);
        }
        Some(left)
    }

    fn operand(&mut self) -> Value {
        let token = *self.tokens.get(self.at)?;
        let bytes = self.bytes();
        self.at += 1;
        match (bytes, token.kind) {
            (b"!", _) => Some(self.nested(Self::operand)?.map(|it| i64::from(it == 0))),
            (b"-", _) => Some(self.nested(Self::operand)?.and_then(i64::checked_neg)),
            (b"~", _) => Some(self.nested(Self::operand)?.map(|it| !it)),
            (b"+", _) => self.nested(Self::operand),
            (b"(", _) => {
                let value = self.choice()?;
                self.take(b")").then_some(value)
            }
            (b"defined", _) => {
                let is_open = self.take(b"(");
                let value = self.environment.is_defined(self.bytes());
                self.at += 1;
                if is_open && !self.take(b")") {
                    return None;
                }
                Some(value.map(i64::from))
            }
            (_, Kind::Number) => Some(number(bytes)),
            (_, Kind::Name | Kind::Word(_)) => self.named(bytes),
            _ => None,
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Value) -> Value {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let value = read(self)?;
        self.depth -= 1;
        Some(value)
    }

    fn named(&mut self, name: &[u8]) -> Value {
        if self.bytes() == b"(" {
            self.skip_group();
            return Some(None);
        }
        let environment = self.environment;
        let Some(meanings) = environment.meanings(name) else {
            let mut known = PREDEFINED.iter();
            let known = known.find(|it| it.0.as_bytes() == name);
            return Some(known.and_then(|it| if it.1 { it.2 } else { Some(0) }));
        };
        let [Some(id)] = meanings[..] else {
            return Some(None);
        };
        let body = &environment.definitions.macros[id as usize].body;
        if body.iter().any(|it| it.role != Role::Itself) || self.depth > DEEPEST {
            return Some(None);
        }
        let tokens: Vec<Token> = body.iter().map(|it| it.token).collect();
        // A macro may name itself: each level costs.
        Some(environment.value_inside(&tokens, self.depth + DEEPEST / 10, self.left))
    }

    fn skip_group(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token.kind {
                Kind::OpenParen => depth += 1,
                Kind::CloseParen => depth -= 1,
                _ => (),
            }
            if depth == 0 {
                return;
            }
        }
    }
}

fn calculated(operator: &str, left: Option<i64>, right: Option<i64>) -> Option<i64> {
    let either = |value: bool| {
        let is = |it: Option<i64>| it.is_some_and(|it| (it != 0) == value);
        is(left) || is(right)
    };
    match operator {
        "&&" if either(false) => return Some(0),
        "||" if either(true) => return Some(1),
        _ => (),
    }
    let (a, b) = (left?, right?);
    match operator {
        "||" => Some(i64::from(a != 0 || b != 0)),
        "&&" => Some(i64::from(a != 0 && b != 0)),
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "&" => Some(a & b),
        "==" => Some(i64::from(a == b)),
        "!=" => Some(i64::from(a != b)),
        "<" => Some(i64::from(a < b)),
        ">" => Some(i64::from(a > b)),
        "<=" => Some(i64::from(a <= b)),
        ">=" => Some(i64::from(a >= b)),
        "<<" => a.checked_shl(u32::try_from(b).ok()?),
        ">>" => a.checked_shr(u32::try_from(b).ok()?),
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => a.checked_div(b),
        "%" => a.checked_rem(b),
        _ => None,
    }
}

/// The value of a literal.
fn number(bytes: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?;
    if let Some(rest) = text.strip_prefix('\'') {
        let only = rest.strip_suffix('\'')?.bytes().next()?;
        return (rest.len() == 2 && only != b'\\').then_some(i64::from(only));
    }
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None if digits.starts_with('0') && digits.len() > 1 => i64::from_str_radix(digits, 8).ok(),
        None => digits.parse().ok(),
    }
}
