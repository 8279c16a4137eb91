//! What the preprocessor replaces, and where in a line it looks for that.

use std::collections::HashMap;

/// What is defined before a file begins, in Debian's `icont`: the features of `&features` that have a
/// symbol. Each stands for 1.
const PREDEFINED: [&str; 11] = [
    "_V9",
    "_UNIX",
    "_ASCII",
    "_CO_EXPRESSIONS",
    "_DYNAMIC_LOADING",
    "_KEYBOARD_FUNCTIONS",
    "_LARGE_INTEGERS",
    "_PIPES",
    "_SYSTEM_FUNCTION",
    "_GRAPHICS",
    "_X_WINDOW_SYSTEM",
];

pub struct Macros {
    values: HashMap<Vec<u8>, Vec<u8>>,
}

/// A part of a line.
pub enum Part {
    /// Taken as it is.
    Plain,
    /// A name, that a macro may stand behind.
    Name,
}

impl Macros {
    pub fn new() -> Macros {
        let values = PREDEFINED
            .iter()
            .map(|name| (name.as_bytes().to_vec(), b"1".to_vec()));
        Macros {
            values: values.collect(),
        }
    }

    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.values.get(name).map(|it| it.as_slice())
    }

    /// Whether this can be: a name keeps the value that it has.
    pub fn define(&mut self, name: &[u8], value: &[u8]) -> bool {
        match self.values.get(name) {
            Some(old) => old == value,
            None => {
                self.values.insert(name.to_vec(), value.to_vec());
                true
            }
        }
    }

    pub fn undefine(&mut self, name: &[u8]) {
        self.values.remove(name);
    }
}

/// Where the next part of a line ends.
///
/// Lines are looked at one by one: a literal that goes on in the next line is not seen as one there.
pub fn part(line: &[u8], from: usize) -> (usize, Part) {
    if begins_name(line[from]) {
        return (end_of_name(line, from), Part::Name);
    }
    let mut at = from;
    while let Some(&byte) = line.get(at) {
        match byte {
            _ if begins_name(byte) => break,
            b'0'..=b'9' => at = end_of_number(line, at),
            b'#' => at = line.len(),
            b'"' | b'\'' => at = (matching_quote(line, at) + 1).min(line.len()),
            _ => at += 1,
        }
    }
    (at, Part::Plain)
}

pub fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub fn end_of_name(line: &[u8], from: usize) -> usize {
    let is_inside = |&it: &u8| it.is_ascii_alphanumeric() || it == b'_';
    from + count(&line[from..], is_inside)
}

fn end_of_number(line: &[u8], from: usize) -> usize {
    let digits = |at: usize| at + count(line.get(at..).unwrap_or(&[]), u8::is_ascii_digit);
    let is = |at: usize, wanted: [u8; 2]| line.get(at).is_some_and(|it| wanted.contains(it));
    let mut at = digits(from);
    if is(at, [b'r', b'R']) {
        return at + 1 + count(&line[at + 1..], u8::is_ascii_alphanumeric);
    }
    if is(at, [b'.', b'.']) {
        at = digits(at + 1);
    }
    if is(at, [b'e', b'E']) {
        at += usize::from(is(at + 1, [b'+', b'-']));
        at = digits(at + 1);
    }
    at
}

/// Where the quote is that closes the one at `from`, or the end.
pub fn matching_quote(line: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(&byte) = line.get(at) {
        match byte {
            _ if byte == line[from] => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    line.len()
}

fn count(bytes: &[u8], wanted: impl Fn(&u8) -> bool) -> usize {
    bytes
        .iter()
        .position(|it| !wanted(it))
        .unwrap_or(bytes.len())
}
