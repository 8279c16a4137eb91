//! How wide is a text on a terminal, and how is one that is too wide broken?

use unicode_width::UnicodeWidthChar;

/// How many columns a text takes. Some characters take two, some none.
pub fn columns(text: &str) -> usize {
    text.chars().map(of).sum()
}

fn of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The text in pieces of at most so many columns, those behind the first of at most `next`; no
/// piece is empty, but for that of an empty text. Breaks behind a blank, if there is one in the
/// second half.
pub fn pieces(text: &str, most: usize, next: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut room = most;
    while columns(rest) > room {
        let (piece, after) = rest.split_at(end_of_piece(rest, room));
        pieces.push(piece);
        rest = after;
        room = next;
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(rest);
    }
    pieces
}

fn end_of_piece(text: &str, most: usize) -> usize {
    let mut width = 0;
    let mut end = 0;
    let mut blank = 0;
    for (at, c) in text.char_indices() {
        width += of(c);
        // However narrow it is, one character must go.
        if width > most && end > 0 {
            break;
        }
        end = at + c.len_utf8();
        if c == ' ' && width * 2 >= most {
            blank = end;
        }
    }
    if blank > 0 { blank } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_a_terminal() {
        assert_eq!(columns("max"), 3);
        assert_eq!(columns("größe"), 5);
        assert_eq!(columns("最大"), 4);
        assert_eq!(columns("e\u{301}"), 1);
    }

    #[test]
    fn pieces_fit_and_nothing_is_lost() {
        let text = "for (int i = 0; i < 最大の数; i++) { work_on_something_long(i); }";
        for most in 1..80_usize {
            let next = most.div_ceil(2);
            let all = pieces(text, most, next);
            assert_eq!(all.concat(), text, "{most}");
            let fits = |it: &&str| columns(it) <= next.max(2);
            assert!(columns(all[0]) <= most, "{most}: {all:?}");
            assert!(all.iter().skip(1).all(fits), "{most}: {all:?}");
        }
        assert_eq!(pieces("", 10, 10), [""]);
        assert_eq!(pieces("one two three", 8, 4), ["one two ", "thre", "e"]);
    }
}
