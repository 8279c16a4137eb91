//! The words of an expression.

/// A word, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub what: What,
    pub at: usize,
}

/// What a word is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Number(i64),
    Name(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// The longest come first.
const SIGNS: [&str; 28] = [
    "->", "<<", ">>", "<=", ">=", "==", "!=", "..", "+", "-", "*", "/", "%", "&", "|", "^", "~",
    "!", "<", ">", "(", ")", "[", "]", ",", ".", "=", ":",
];

/// The words of a text; or where it makes no sense, and why.
pub fn words(text: &str) -> Result<Vec<Word>, (usize, String)> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let is_of_name = |it: char| it.is_alphanumeric() || it == '_' || it == '$';
        let (what, length) = if first.is_ascii_digit() {
            let length = rest.find(|it: char| !is_of_name(it)).unwrap_or(rest.len());
            let number = number(&rest[..length]);
            let number = number.ok_or_else(|| (at, format!("{} is no number", &rest[..length])))?;
            (What::Number(number), length)
        } else if is_of_name(first) {
            let length = name_length(rest, is_of_name);
            (What::Name(rest[..length].to_owned()), length)
        } else {
            let sign = SIGNS.into_iter().find(|it| rest.starts_with(it));
            let sign = sign.ok_or_else(|| (at, format!("`{first}` means nothing here")))?;
            (What::Sign(sign), sign.len())
        };
        words.push(Word { what, at });
        at += length;
    }
    Ok(words)
}

/// How long the name is that a text begins with. It may be one in a namespace or module: `space::name`.
fn name_length(text: &str, is_of_name: impl Fn(char) -> bool) -> usize {
    let mut length = 0;
    loop {
        let rest = &text[length..];
        length += rest.find(|it| !is_of_name(it)).unwrap_or(rest.len());
        let inner = text[length..].strip_prefix("::");
        match inner.filter(|it| it.starts_with(&is_of_name)) {
            Some(_) => length += "::".len(),
            None => return length,
        }
    }
}

/// Decimal, `0x`, `0b` or `0o`; up to 64 bits.
fn number(text: &str) -> Option<i64> {
    let of = |digits: &str, base: u32| {
        let digits = digits.replace('_', "");
        u64::from_str_radix(&digits, base)
            .ok()
            .map(u64::cast_signed)
    };
    match text.get(..2) {
        Some("0x" | "0X") => of(&text[2..], 16),
        Some("0b" | "0B") => of(&text[2..], 2),
        Some("0o") => of(&text[2..], 8),
        _ => of(text, 10),
    }
}
