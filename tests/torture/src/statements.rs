//! Which lines of a C file hold one whole statement?
//!
//! Where a line holds half a statement, or two, "how often did this line run"
//! has several good answers, and gcov's need not be ours. The rule is crude and
//! leaves out many a good line: the text, without comments, ends with its only
//! `;`, begins with a letter, has nothing that branches or loops (keywords,
//! `?`, `&&`, `||`), no brace, no label, no preprocessor, no quote and no macro
//! that the file defines; and the line before it does not leave a statement
//! open.

use std::collections::BTreeSet;

/// Words that make several blocks of a line, or a line of several statements.
const BRANCHING: [&str; 14] = [
    "asm", "__asm", "__asm__", "assert", "case", "default", "do", "else", "for", "goto", "if",
    "switch", "va_arg", "while",
];

/// The numbers of the lines that hold one statement each.
pub fn single(source: &str) -> BTreeSet<u32> {
    let code = without_comments(source);
    let macros: BTreeSet<&str> = code.lines().filter_map(defined).collect();
    let mut lines = BTreeSet::new();
    let mut before = ";";
    let mut continued = false;
    for (number, line) in (1..).zip(code.lines()) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if is_statement(line, &macros) && leaves_nothing_open(before) && !continued {
            lines.insert(number);
        }
        continued = line.ends_with('\\');
        before = line;
    }
    lines
}

fn is_statement(line: &str, macros: &BTreeSet<&str>) -> bool {
    let begins = line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let one = line.ends_with(';') && line.matches(';').count() == 1;
    let plain = !line.contains(['{', '}', '?', ':', '#', '"', '\'', '\\']);
    let straight = !line.contains("&&") && !line.contains("||");
    begins
        && one
        && plain
        && straight
        && words(line).all(|word| !BRANCHING.contains(&word) && !macros.contains(word))
}

/// `)` closes an `if (...)` or a `for (...)`; a call that goes on in the next
/// line goes on with an operator, not with a letter. But a cast leaves its operand to the next.
fn leaves_nothing_open(before: &str) -> bool {
    let is_directive = before.starts_with('#');
    is_directive
        || before.ends_with([';', '{', '}', ')', ':']) && !before.ends_with("*)")
        || words(before).next_back() == Some("else")
}

fn words(line: &str) -> impl DoubleEndedIterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// The name in a `#define`.
fn defined(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix('#')?.trim_start();
    words(rest.strip_prefix("define")?).next()
}

/// The same lines, with nothing where comments were.
fn without_comments(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        code.push_str(&rest[..at]);
        let comment = &rest[at..];
        let length = if comment.starts_with("//") {
            comment.find('\n')
        } else {
            comment[2..].find("*/").map(|end| end + 4)
        };
        let (comment, after) = comment.split_at(length.unwrap_or(comment.len()));
        code.extend(comment.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    code.push_str(rest);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(source: &str) -> Vec<u32> {
        single(source).into_iter().collect()
    }

    #[test]
    fn a_line_with_one_statement_is_found() {
        let source = "int main (void)\n{\n  int x = 1; /* one\n  x = 2; */\n  f (x); // call\n\
                      \n  if (x)\n    return 1;\n  else\n    x++;\n  return 0;\n}\n";
        assert_eq!(numbers(source), [3, 5, 8, 10, 11]);
    }

    #[test]
    fn lines_that_branch_or_hold_more_or_less_are_left_out() {
        for line in [
            "if (x) f ();",
            "a = 1; b = 2;",
            "for (;;) f ();",
            "x = a ? b : c;",
            "x = a && b;",
            "x = a || b;",
            "l: f ();",
            "do f (); while (x);",
            "x = va_arg (ap, int);",
            "puts (\"a;\");",
            "f (a,",
            "{ f (); }",
            "++x;",
            "}",
        ] {
            assert_eq!(numbers(&format!("g ();\n{line}\n")), [1], "{line}");
        }
    }

    #[test]
    fn the_rest_of_a_statement_is_no_statement() {
        assert_eq!(numbers("f (a,\n   b);\nx =\n  y;\ng ();\n"), [5]);
        assert!(numbers("x = (char *)\n  malloc (3);\n").is_empty());
    }

    #[test]
    fn macros_may_hold_anything() {
        let source = "#define TEST(x) if (x) abort ()\n# define two \\\n  f (); \\\n  g ();\nTEST (y);\ntwo;\nf ();\n";
        assert_eq!(numbers(source), [7]);
    }
}
