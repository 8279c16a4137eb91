//! The grammar of what is asked for.
//!
//! ```text
//! tally      = [ "sum" expression "in" ] place [ "(" [ key ] ")" ] [ "by" "caller" ]
//! key        = expression | log2 "(" expression ")" | linear "(" expression "," number ")"
//!            | range "(" expression "," number ".." number ")" | str "(" expression [ "," number ] ")"
//! expression = C's, of numbers, registers, arguments, `ret`, variables, `[address]`, `u32[address]`,
//!              `i32(expression)`
//! ```

use headcount_model::{Binary, Unary, Width};

use crate::lexer::{What, Word, words};
use crate::term::Term;

/// Expressions are no deeper than this.
const DEEPEST: usize = 16;

/// And have no more words.
const MOST_WORDS: usize = 256;

/// So many bytes of a text are told apart, if nothing is said of it.
const TEXT_BYTES: i64 = 64;

/// No more than these can be.
const MOST_TEXT_BYTES: i64 = 256;

/// What is to be counted by value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Where.
    pub place: String,
    /// By what; nothing if all is one.
    pub key: Option<Term>,
    /// How keys are put together.
    pub scale: Scale,
    /// What is added up besides.
    pub amount: Option<Term>,
    /// Are callers told apart?
    pub by_caller: bool,
    /// The key as it was written; without one, the amount.
    pub expression: String,
}

/// How keys are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// They are not.
    #[default]
    Exact,
    /// By powers of two.
    Log2,
    /// By ranges of this width.
    Linear(i64),
    /// Those below the first number are one, and those from the second one on.
    Range(i64, i64),
    /// They are texts, of which so many bytes are told apart.
    Text(u32),
}

/// Where a text makes no sense, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}\n  {text}\n  {:>column$}", "^", column = self.column())]
pub struct Misread {
    /// The text.
    pub text: String,
    /// Where, in bytes.
    pub at: usize,
    /// Why.
    pub why: String,
}

impl Misread {
    fn column(&self) -> usize {
        let before = self.text.get(..self.at).unwrap_or(&self.text);
        before.chars().count() + 1
    }
}

/// Reads what is asked for.
pub fn parse(text: &str) -> Result<Asked, Misread> {
    let misread = |(at, why): (usize, String)| Misread {
        text: text.to_owned(),
        at,
        why,
    };
    Parts::of(text)
        .map_err(misread)?
        .read(text)
        .map_err(misread)
}

type Wrong = (usize, String);

/// Where the parts of a text are.
struct Parts<'a> {
    amount: Option<(usize, &'a str)>,
    place: &'a str,
    key: Option<(usize, &'a str)>,
    by_caller: bool,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, Wrong> {
        let mut rest = text.trim_end();
        let by_caller = match ends_with_words(rest, "by", "caller") {
            Some(before) => {
                rest = before;
                true
            }
            None => false,
        };
        let mut start = rest.len() - rest.trim_start().len();
        let mut amount = None;
        if let Some(after) = rest[start..].strip_prefix("sum ") {
            let from = start + "sum ".len();
            let end = top_level(after, " in ").ok_or_else(|| {
                (
                    rest.len(),
                    "`sum EXPRESSION in PLACE`: where is ` in `?".into(),
                )
            })?;
            amount = Some((from, &after[..end]));
            start = from + end + " in ".len();
        }
        let place = rest[start..].trim_start();
        start = rest.len() - place.len();
        let (place, key) = match place.ends_with(')') {
            true => {
                let open = opening(place)
                    .ok_or_else(|| (rest.len() - 1, "this closes nothing".to_owned()))?;
                let key = &place[open + 1..place.len() - 1];
                (place[..open].trim_end(), Some((start + open + 1, key)))
            }
            false => (place, None),
        };
        if let Some(at) = unbalanced(place) {
            return Err((
                place_start(text, place) + at,
                "a bracket is missing".to_owned(),
            ));
        }
        if place.is_empty() {
            let why = "where? A function, FILE:LINE or MODULE!FUNCTION comes first".to_owned();
            return Err((start, why));
        }
        Ok(Self {
            amount,
            place,
            key,
            by_caller,
        })
    }

    fn read(self, text: &str) -> Result<Asked, Wrong> {
        let amount = match self.amount {
            Some((at, amount)) => Some(Reader::of(at, amount)?.whole()?),
            None => None,
        };
        let (key, scale) = match self.key {
            Some((at, key)) if !key.trim().is_empty() => {
                let (key, scale) = Reader::of(at, key)?.key()?;
                (Some(key), scale)
            }
            _ => (None, Scale::Exact),
        };
        if key.is_none() && amount.is_none() && !self.by_caller {
            let why = "what of it? Say `PLACE(EXPRESSION)`, `PLACE by caller` or `sum EXPRESSION in PLACE`";
            return Err((text.trim_end().len(), why.to_owned()));
        }
        let written = |it: Option<(usize, &str)>| it.map_or("", |it| it.1).trim().to_owned();
        Ok(Asked {
            place: self.place.to_owned(),
            expression: match (&key, self.amount) {
                (None, Some(_)) => format!("sum {}", written(self.amount)),
                (Some(_), Some(_)) => {
                    format!("{}: sum {}", written(self.key), written(self.amount))
                }
                _ => written(self.key),
            },
            key,
            scale,
            amount,
            by_caller: self.by_caller,
        })
    }
}

/// What comes before two words at the end.
fn ends_with_words<'a>(text: &'a str, one: &str, other: &str) -> Option<&'a str> {
    let before = text.strip_suffix(other)?;
    let middle = before.trim_end();
    let before = (middle.len() < before.len()).then_some(middle)?;
    let before = before.strip_suffix(one)?;
    let is_word = before.ends_with(|it: char| it.is_whitespace() || it == ')');
    is_word.then(|| before.trim_end())
}

/// Where a text is in another one, outside of brackets.
fn top_level(text: &str, sought: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, it) in text.char_indices() {
        match it {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ if depth == 0 && text[at..].starts_with(sought) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Where a part of a text begins in it.
fn place_start(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// Where there is a bracket without its other half. (Operators of C++ may be called `operator()`.)
fn unbalanced(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    for (at, it) in text.char_indices() {
        match it {
            '(' => open.push(at),
            ')' if open.pop().is_none() => return Some(at),
            _ => {}
        }
    }
    open.pop()
}

/// Where the bracket opens that the last character closes.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, it) in text.char_indices().rev() {
        match it {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Binary operators, the loosest first.
const LEVELS: [&[(&str, Binary)]; 8] = [
    &[("|", Binary::Or)],
    &[("^", Binary::Xor)],
    &[("&", Binary::And)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[
        ("<=", Binary::LessOrEqual),
        ("<", Binary::Less),
        (">=", Binary::LessOrEqual),
        (">", Binary::Less),
    ],
    &[("<<", Binary::ShiftLeft), (">>", Binary::ShiftRight)],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[
        ("*", Binary::Multiply),
        ("/", Binary::Divide),
        ("%", Binary::Remainder),
    ],
];

struct Reader {
    words: Vec<Word>,
    next: usize,
    end: usize,
    depth: usize,
}

impl Reader {
    /// Of a part of the text that begins there.
    fn of(start: usize, text: &str) -> Result<Self, Wrong> {
        let mut words = words(text).map_err(|(at, why)| (start + at, why))?;
        for word in &mut words {
            word.at += start;
        }
        if let Some(word) = words.get(MOST_WORDS) {
            return Err((word.at, "the expression is too long".to_owned()));
        }
        Ok(Self {
            words,
            next: 0,
            end: start + text.len(),
            depth: 0,
        })
    }

    fn peek(&self) -> Option<&What> {
        self.words.get(self.next).map(|it| &it.what)
    }

    fn at(&self) -> usize {
        self.words.get(self.next).map_or(self.end, |it| it.at)
    }

    fn wrong<T>(&self, why: &str) -> Result<T, Wrong> {
        Err((self.at(), why.to_owned()))
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.peek(), Some(What::Sign(it)) if *it == sign);
        self.next += usize::from(is_it);
        is_it
    }

    fn wants(&mut self, sign: &str) -> Result<(), Wrong> {
        match self.takes(sign) {
            true => Ok(()),
            false => self.wrong(&format!("`{sign}` is missing")),
        }
    }

    fn name(&mut self) -> Option<(String, usize)> {
        let at = self.at();
        let What::Name(name) = self.peek()? else {
            return None;
        };
        let name = name.clone();
        self.next += 1;
        Some((name, at))
    }

    fn whole(mut self) -> Result<Term, Wrong> {
        let term = self.level(0)?;
        self.ends()?;
        Ok(term)
    }

    fn ends(&self) -> Result<(), Wrong> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.wrong("the expression should have ended here"),
        }
    }

    /// A key, and how it is put together with others.
    fn key(mut self) -> Result<(Term, Scale), Wrong> {
        let second = self.words.get(1).map(|it| &it.what);
        let is_call = second == Some(&What::Sign("("));
        let scale = match self.peek() {
            Some(What::Name(name)) if is_call => name.clone(),
            _ => String::new(),
        };
        if !["log2", "linear", "range", "str"].contains(&scale.as_str()) {
            return Ok((self.whole()?, Scale::Exact));
        }
        self.next = 2;
        let term = self.level(0)?;
        let found = match scale.as_str() {
            "log2" => (Term::Unary(Unary::Log2, Box::new(term)), Scale::Log2),
            "linear" => {
                self.wants(",")?;
                let at = self.at();
                let width = self.number()?;
                if width < 1 {
                    return Err((at, "a range has a width of 1 or more".into()));
                }
                (linear(term, width), Scale::Linear(width))
            }
            "str" => {
                let at = self.at();
                let bytes = match self.takes(",") {
                    true => self.number()?,
                    false => TEXT_BYTES,
                };
                if !(1..=MOST_TEXT_BYTES).contains(&bytes) {
                    let why = format!("of a text, 1 to {MOST_TEXT_BYTES} bytes can be told apart");
                    return Err((at, why));
                }
                (term, Scale::Text(bytes as u32))
            }
            _ => {
                self.wants(",")?;
                let least = self.number()?;
                self.wants("..")?;
                let at = self.at();
                let end = self.number()?;
                if end <= least {
                    return Err((at, "a range ends behind its beginning".into()));
                }
                (term, Scale::Range(least, end))
            }
        };
        self.wants(")")?;
        self.ends()?;
        Ok(found)
    }

    fn number(&mut self) -> Result<i64, Wrong> {
        let is_negative = self.takes("-");
        match self.peek() {
            Some(What::Number(number)) => {
                let number = *number;
                self.next += 1;
                Ok(if is_negative {
                    number.wrapping_neg()
                } else {
                    number
                })
            }
            _ => self.wrong("a number is missing"),
        }
    }

    fn level(&mut self, level: usize) -> Result<Term, Wrong> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.level(level + 1)?;
        while let Some((sign, operation)) = self.operator(operators) {
            let right = self.level(level + 1)?;
            let (one, other) = match sign {
                ">" | ">=" => (right, left),
                _ => (left, right),
            };
            left = Term::Binary(operation, Box::new(one), Box::new(other));
        }
        Ok(left)
    }

    fn operator(&mut self, operators: &[(&'static str, Binary)]) -> Option<(&'static str, Binary)> {
        let What::Sign(sign) = self.peek()? else {
            return None;
        };
        let found = operators.iter().find(|it| it.0 == *sign).copied()?;
        self.next += 1;
        Some(found)
    }

    fn unary(&mut self) -> Result<Term, Wrong> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.wrong("the expression is too deep");
        }
        let at = self.at();
        let term = if self.takes("-") {
            Term::Unary(Unary::Negate, Box::new(self.unary()?))
        } else if self.takes("~") {
            Term::Unary(Unary::Complement, Box::new(self.unary()?))
        } else if self.takes("!") {
            let zero = Box::new(Term::Number(0));
            Term::Binary(Binary::Equal, Box::new(self.unary()?), zero)
        } else if self.takes("*") {
            Term::Pointee(Box::new(self.unary()?), at)
        } else {
            self.postfix()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn postfix(&mut self) -> Result<Term, Wrong> {
        let mut term = self.primary()?;
        loop {
            let at = self.at();
            if self.takes("[") {
                let index = self.level(0)?;
                self.wants("]")?;
                term = Term::Element(Box::new(term), Box::new(index), at);
                continue;
            }
            let is_arrow = self.takes("->");
            if !is_arrow && !self.takes(".") {
                return Ok(term);
            }
            let Some((name, at)) = self.name() else {
                return self.wrong("the name of a field is missing");
            };
            term = Term::Field {
                of: Box::new(term),
                name,
                is_arrow,
                at,
            };
        }
    }

    fn primary(&mut self) -> Result<Term, Wrong> {
        if self.takes("(") {
            let term = self.level(0)?;
            self.wants(")")?;
            return Ok(term);
        }
        if self.takes("[") {
            let address = self.level(0)?;
            self.wants("]")?;
            return Ok(Term::Load(Width::WHOLE, Box::new(address)));
        }
        // A register may be written as assembler has it.
        self.takes("%");
        if let Some(What::Number(number)) = self.peek() {
            let number = *number;
            self.next += 1;
            return Ok(Term::Number(number));
        }
        let Some((name, at)) = self.name() else {
            return self.wrong("a number, a register, an argument or a variable is missing");
        };
        match width(&name) {
            Some(width) if self.takes("[") => {
                let address = self.level(0)?;
                self.wants("]")?;
                Ok(Term::Load(width, Box::new(address)))
            }
            Some(width) if self.takes("(") => {
                let of = self.level(0)?;
                self.wants(")")?;
                Ok(Term::Narrow(width, Box::new(of)))
            }
            _ => Ok(Term::Name(name, at)),
        }
    }
}

/// The beginning of the range that a number is in.
fn linear(term: Term, width: i64) -> Term {
    // Division goes towards zero, and ranges do not.
    let number = || Box::new(term.clone());
    let width = || Box::new(Term::Number(width));
    let remainder = Term::Binary(Binary::Remainder, number(), width());
    let zero = Box::new(Term::Number(0));
    let is_negative = Term::Binary(Binary::Less, Box::new(remainder.clone()), zero);
    let below = Term::Binary(Binary::Multiply, Box::new(is_negative), width());
    let to_zero = Term::Binary(Binary::Subtract, number(), Box::new(remainder));
    Term::Binary(Binary::Subtract, Box::new(to_zero), Box::new(below))
}

/// What `u8`, `i32`, … mean.
fn width(name: &str) -> Option<Width> {
    let is_signed = name.starts_with('i');
    let bytes = match name.strip_prefix(['u', 'i'])? {
        "8" => 1,
        "16" => 2,
        "32" => 4,
        "64" => 8,
        _ => return None,
    };
    Some(Width { bytes, is_signed })
}
