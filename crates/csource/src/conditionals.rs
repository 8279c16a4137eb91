//! `#if` and the like, where no preprocessor has been: which text was compiled?
//!
//! Nobody knows the definitions that the compiler was given, but the build tells which lines have
//! code: a branch that has some was compiled. Of several without code, inside of a function none is
//! kept, because nothing of it ran; elsewhere one is, for the types that it may declare.

use std::ops::Range;

use crate::lex::{Kind, lex};

/// A text as it was compiled, as far as one can tell.
pub struct Resolved {
    /// With spaces for all that was not compiled.
    pub text: Vec<u8>,
    /// Lines of which several versions were compiled.
    pub unclear: Vec<Range<u32>>,
}

/// Chooses the branches that have code.
pub fn resolve(text: &[u8], has_code: &dyn Fn(u32) -> bool) -> Resolved {
    let mut resolver = Resolver {
        resolved: Resolved {
            text: text.to_vec(),
            unclear: Vec::new(),
        },
        open: Vec::new(),
        cursor: Cursor::default(),
    };
    let mut at = 0;
    let mut in_comment = false;
    let mut in_directive = false;
    for (number, line) in (1_u32..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        let end = at + line.len();
        let words = line.trim_ascii();
        let is_directive = words.starts_with(b"#") && !in_comment && !in_directive;
        if is_directive {
            let word = words[1..].trim_ascii_start();
            if word.starts_with(b"if") {
                resolver.begin(at, end, word, number);
            } else if word.starts_with(b"el") {
                resolver.next(at, end);
            } else if word.starts_with(b"endif") {
                resolver.end(at, end);
            }
        } else if let Some(group) = resolver.open.last_mut() {
            group.lines.end = number + 1;
            group.branch.has_code |= !in_comment && has_code(number);
        }
        in_directive = (is_directive || in_directive) && words.ends_with(b"\\");
        in_comment = ends_in_comment(line, in_comment);
        at = end;
    }
    resolver.resolved
}

/// Whether a line ends inside of a comment.
fn ends_in_comment(line: &[u8], mut inside: bool) -> bool {
    let mut rest = line;
    loop {
        let mark: &[u8] = if inside { b"*/" } else { b"/*" };
        let Some(at) = rest.windows(2).position(|it| it == mark) else {
            return inside;
        };
        if !inside && rest[..at].windows(2).any(|it| it == b"//") {
            return false;
        }
        inside = !inside;
        rest = &rest[at + 2..];
    }
}

struct Resolver {
    resolved: Resolved,
    open: Vec<Group>,
    /// How far the text was looked at that is in no group.
    cursor: Cursor,
}

/// How many braces are open at some place.
#[derive(Clone, Copy, Default)]
struct Cursor {
    at: usize,
    depth: i32,
}

/// From `#if` to `#endif`.
struct Group {
    /// How many braces are open where it begins.
    depth: i32,
    lines: Range<u32>,
    branch: Branch,
    done: Vec<Branch>,
}

struct Branch {
    bytes: Range<usize>,
    /// How far it was looked at.
    cursor: Cursor,
    has_code: bool,
    /// It says `#if 0`, or is C++.
    is_dead: bool,
}

impl Branch {
    fn new(start: usize, depth: i32, is_dead: bool) -> Self {
        Self {
            bytes: start..start,
            cursor: Cursor { at: start, depth },
            has_code: false,
            is_dead,
        }
    }
}

impl Resolver {
    /// The cursor of the text that the next line belongs to.
    fn cursor(&mut self) -> &mut Cursor {
        match self.open.last_mut() {
            Some(group) => &mut group.branch.cursor,
            None => &mut self.cursor,
        }
    }

    /// `#if` stands here, and text follows from `start` on.
    fn begin(&mut self, here: usize, start: usize, word: &[u8], line: u32) {
        let before = *self.cursor();
        let depth = before.depth + self.braces(before.at..here);
        *self.cursor() = Cursor { at: here, depth };
        let is_dead = word == b"if 0" || word.starts_with(b"ifdef __cplusplus");
        self.open.push(Group {
            depth,
            lines: line..line,
            branch: Branch::new(start, depth, is_dead),
            done: Vec::new(),
        });
    }

    fn next(&mut self, end: usize, start: usize) {
        if let Some(group) = self.open.last_mut() {
            let next = Branch::new(start, group.depth, false);
            let mut done = std::mem::replace(&mut group.branch, next);
            done.bytes.end = end;
            group.done.push(done);
        }
    }

    /// `#endif` stands here, and text follows from `start` on.
    fn end(&mut self, here: usize, start: usize) {
        self.next(here, here);
        let Some(group) = self.open.pop() else {
            return;
        };
        let compiled = group.done.iter().filter(|it| it.has_code).count();
        if compiled > 1 {
            self.resolved.unclear.push(group.lines.clone());
        }
        let is_balanced = |it: &Branch| self.braces(it.bytes.clone()) == 0;
        let is_usable = |it: &Branch| !it.is_dead && is_balanced(it);
        let kept = match compiled {
            // What opens something is needed to close it.
            0 if group.depth > 0 => group
                .done
                .iter()
                .position(|it| !it.is_dead && !is_balanced(it)),
            0 => group.done.iter().position(is_usable),
            _ => group.done.iter().position(|it| it.has_code),
        };
        for (number, branch) in group.done.iter().enumerate() {
            if kept != Some(number) {
                let bytes = self.resolved.text[branch.bytes.clone()].iter_mut();
                bytes.filter(|it| **it != b'\n').for_each(|it| *it = b' ');
            }
        }
        let kept = kept.and_then(|it| group.done.get(it));
        let inside = kept.map_or(0, |it| self.braces(it.bytes.clone()));
        *self.cursor() = Cursor {
            at: start,
            depth: group.depth + inside,
        };
        if let Some(outer) = self.open.last_mut() {
            outer.branch.has_code |= compiled > 0;
            outer.lines.end = outer.lines.end.max(group.lines.end);
        }
    }

    /// How many braces a piece opens and does not close.
    fn braces(&self, piece: Range<usize>) -> i32 {
        let tokens = lex(&self.resolved.text[piece], "").tokens;
        let brace = |kind: Kind| match kind {
            Kind::OpenBrace => 1,
            Kind::CloseBrace => -1,
            _ => 0,
        };
        tokens.iter().map(|it| brace(it.kind)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_with_code_is_kept_and_others_become_spaces() {
        let text =
            b"#ifdef A\nint f(void) { return 1; }\n#else\nint f(void) { return 2; }\n#endif\n\
                     void g(void) {\n#if B\n  h();\n#endif\n}\n";
        let resolved = resolve(text, &|line| line == 4);
        let kept = String::from_utf8(resolved.text).unwrap();
        assert!(
            kept.contains("return 2") && !kept.contains("return 1"),
            "{kept}"
        );
        assert!(!kept.contains("h()"), "{kept}");
        assert_eq!(kept.lines().count(), 10);
        assert!(resolved.unclear.is_empty());
    }

    #[test]
    fn what_was_compiled_in_two_ways_is_unclear() {
        let text =
            b"#ifdef A\nint a(void) { return 1; }\n#else\nint a(void) { return 2; }\n#endif\n";
        assert_eq!(resolve(text, &|_| true).unclear.first(), Some(&(1..5)));
    }
}
