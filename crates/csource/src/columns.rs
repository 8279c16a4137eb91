//! Which column of the user's file is a token in?
//!
//! A preprocessor keeps lines, but not columns: it writes one space where there were many, and
//! puts what a macro stands for in its place. The user's own line, token by token beside the
//! preprocessed one, tells where each token was. What comes out of a macro is where its name is.

use crate::lex::{Kind, Lexed, Token};

/// How many tokens must agree behind a macro for the two lines to be in step again.
const IN_STEP: usize = 3;

/// The tokens of one line, each with its bytes.
type Line<'a> = [(&'a Token, &'a [u8])];

/// The columns of the tokens of `made` (in order), which a preprocessor made of `written`.
/// `start` is where the written line begins.
pub fn align(made: &Line<'_>, written: &Line<'_>, start: u32) -> Vec<u32> {
    let mut columns = Vec::with_capacity(made.len());
    let column = |at: usize| written.get(at).map(|(token, _)| token.start - start + 1);
    let mut at = 0;
    while columns.len() < made.len() {
        let next = columns.len();
        if written
            .get(at)
            .is_some_and(|(_, bytes)| *bytes == made[next].1)
        {
            columns.extend(column(at));
            at += 1;
            continue;
        }
        let here = column(at.min(written.len().saturating_sub(1))).unwrap_or(1);
        let (behind, resumes) = in_step_again(&made[next..], written, at);
        columns.extend(std::iter::repeat_n(here, resumes.max(1)));
        at = behind;
    }
    columns.truncate(made.len());
    columns
}

/// Behind the macro at a token of the written line: where that line goes on, and after how many
/// tokens the made line goes on with the same.
fn in_step_again(made: &Line<'_>, written: &Line<'_>, at: usize) -> (usize, usize) {
    for behind in [behind_call(written, at), at + 1] {
        // Another macro may follow soon: then fewer must do.
        for enough in (1..=IN_STEP).rev() {
            let rest = written.get(behind..).unwrap_or_default();
            let wanted = rest.len().min(enough);
            // What goes to the end of one line goes to the end of the other.
            let is_all = wanted == rest.len();
            let first = if is_all {
                made.len().saturating_sub(wanted)
            } else {
                0
            };
            let agrees = |from: &usize| {
                let made = made.get(*from..*from + wanted);
                wanted > 0
                    && made.is_some_and(|made| made.iter().zip(rest).all(|(a, b)| a.1 == b.1))
            };
            if let Some(found) = (first..made.len()).find(agrees) {
                return (behind, found);
            }
        }
    }
    (written.len(), made.len())
}

/// Behind a name and its arguments.
fn behind_call(written: &Line<'_>, at: usize) -> usize {
    let mut depth = 0;
    for (number, (token, _)) in written.iter().enumerate().skip(at + 1) {
        match token.kind {
            Kind::OpenParen => depth += 1,
            Kind::CloseParen if depth > 0 => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return match token.kind {
                Kind::CloseParen => number + 1,
                _ => number,
            };
        }
    }
    written.len()
}

/// The columns of all tokens of a text that are in one file, by the file's own text: number of the
/// token, column.
pub fn in_file(text: &[u8], lexed: &Lexed, file: u32, written: &[u8]) -> Vec<(u32, u32)> {
    let own = crate::lex::lex(written, "");
    let own_lines = by_line(&own, 0);
    let mut found = Vec::new();
    for made in by_line(lexed, file).chunk_by(|one, other| one.0 == other.0) {
        let line = made[0].0;
        let first = own_lines.partition_point(|it| it.0 < line);
        let end = own_lines.partition_point(|it| it.0 <= line);
        let Some((_, first_token)) = own_lines[first..end].first() else {
            continue;
        };
        let offset = own.tokens[*first_token as usize].start;
        let start = offset + 1 - own.lines.position(offset).column;
        let made_line = with_bytes(made, lexed, text);
        let own_line = with_bytes(&own_lines[first..end], &own, written);
        let columns = align(&made_line, &own_line, start);
        found.extend(made.iter().map(|(_, number)| *number).zip(columns));
    }
    found
}

/// The tokens of a file, with their lines.
fn by_line(lexed: &Lexed, file: u32) -> Vec<(u32, u32)> {
    let all = (0_u32..).zip(&lexed.tokens);
    let line = |(number, token): (u32, &Token)| {
        let at = lexed.lines.position(token.start);
        (at.file == file).then_some((at.line, number))
    };
    all.filter_map(line).collect()
}

fn with_bytes<'a>(
    numbers: &[(u32, u32)],
    lexed: &'a Lexed,
    text: &'a [u8],
) -> Vec<(&'a Token, &'a [u8])> {
    let tokens = numbers
        .iter()
        .map(|(_, number)| &lexed.tokens[*number as usize]);
    tokens
        .map(|it| (it, &text[it.start as usize..it.end as usize]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(written: &str, made: &str) -> Vec<u32> {
        let lexed = crate::lex::lex(made.as_bytes(), "x.c");
        let found = in_file(made.as_bytes(), &lexed, 0, written.as_bytes());
        found.into_iter().map(|(_, column)| column).collect()
    }

    #[test]
    fn spaces_that_were_lost_are_found_again() {
        assert_eq!(
            columns("if  (a  &&\tb)", "if (a && b)"),
            [1, 5, 6, 9, 12, 13]
        );
    }

    #[test]
    fn what_a_macro_made_is_where_its_name_is() {
        let found = columns(
            "x = MAX(a, b)  + NIL;",
            "x = ((a) > (b) ? (a) : (b)) + ((void *)0);",
        );
        assert_eq!(found[..2], [1, 3]);
        assert!(found[2..19].iter().all(|column| *column == 5), "{found:?}");
        assert_eq!(found[19], 16);
        assert!(
            found[20..27].iter().all(|column| *column == 18),
            "{found:?}"
        );
        assert_eq!(*found.last().unwrap(), 21);
    }

    #[test]
    fn lines_that_have_nothing_in_common_do_no_harm() {
        assert_eq!(columns("A", "b c d"), [1, 1, 1]);
        assert_eq!(columns("", "b c d"), []);
    }
}
