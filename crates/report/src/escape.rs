//! Names and source text come from files that anyone may have made. A terminal must not obey
//! them.

use std::borrow::Cow;

/// The text with every character that could move the cursor, start a control sequence or turn
/// the reading direction written out: `\x1b`, `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    match text.contains(commands_a_terminal) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(escaped(text, commands_a_terminal)),
    }
}

/// The same for text of several lines, whose ends are kept.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    let bad = |c| c != '\n' && commands_a_terminal(c);
    match text.contains(bad) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(escaped(text, bad)),
    }
}

fn escaped(text: &str, bad: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            _ if !bad(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if u32::from(c) < 0x100 => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    shown
}

/// Text as HTML, in an element or between quotes.
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// C0, DEL and C1 controls; line and paragraph separators; the marks, embeddings, overrides and
/// isolates of the bidirectional algorithm.
pub fn commands_a_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_written_out() {
        assert_eq!(visible("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
        assert_eq!(visible("a\nb\tc\r"), "a\\nb\\tc\\r");
        assert_eq!(visible("\u{9b}2J\u{7f}"), "\\x9b2J\\x7f");
        assert_eq!(visible("max\u{202e}c.\u{2066}"), "max\\u{202e}c.\\u{2066}");
    }

    #[test]
    fn ordinary_text_of_any_language_is_left_alone() {
        for text in ["max", "größe::<α>", "最大", "naïve (int*)"] {
            assert!(matches!(visible(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(visible_lines("a\n\x1bb\n"), "a\n\\x1bb\n");
    }
}
