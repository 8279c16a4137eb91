//! What a line of a source consists of, for the preprocessor.

use crate::macros::{end_of_name, matching_quote};

/// What is behind the `$` of a directive, or the `#` of a `#line`.
pub fn directive(line: &[u8]) -> Option<&[u8]> {
    if line.starts_with(b"#line ") {
        return Some(&line[1..]);
    }
    let start = line.iter().position(|it| !is_space(*it))?;
    let is_sign = line[start] == b'$' && !line.get(start + 1)?.is_ascii_punctuation();
    is_sign.then(|| &line[start + 1..])
}

pub fn name(line: &[u8]) -> (&[u8], &[u8]) {
    line.split_at(end_of_name(line, 0))
}

/// A name in quotes, or one that needs none. Empty if a quote is not closed.
pub fn file_name(line: &[u8]) -> (Vec<u8>, &[u8]) {
    if line.first() != Some(&b'"') {
        let (name, rest) = name(line);
        return (name.to_vec(), rest);
    }
    let end = matching_quote(line, 0);
    let (Some(inside), Some(rest)) = (line.get(1..end), line.get(end + 1..)) else {
        return (Vec::new(), &[]);
    };
    let mut name = Vec::new();
    let mut bytes = inside.iter();
    while let Some(byte) = bytes.next() {
        let escaped = match byte {
            b'\\' => bytes.next(),
            _ => None,
        };
        name.push(*escaped.unwrap_or(byte));
    }
    (name, rest)
}

/// A comment is space too.
pub fn skip_space(line: &[u8]) -> &[u8] {
    match line.iter().position(|it| !is_space(*it)) {
        Some(at) if line[at] != b'#' => &line[at..],
        _ => &[],
    }
}

pub fn trim_end(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|it| !is_space(*it));
    &value[..end.map_or(0, |it| it + 1)]
}

/// As C has it.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

pub fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
