//! Bytes in, tokens out; and for each of them, where the user wrote it.
//!
//! Only what tells statements and operators apart is looked at. Comments, and directives that a
//! preprocessor left, are skipped; line markers among them say what the user's file and line are.

use std::borrow::Cow;
use std::ops::Range;

use crate::words::{Word, word};

/// What a token is, as far as the shape of statements depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name that is no keyword.
    Name,
    /// A keyword.
    Word(Word),
    /// A number or a character.
    Number,
    /// A string.
    Text,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Semicolon,
    Comma,
    Colon,
    Question,
    /// `=`
    Is,
    /// `+=` and its like.
    Assign,
    AndAnd,
    OrOr,
    /// `.` or `->`
    Member,
    /// `++` or `--`
    Step,
    /// `*`, `&`, `+` or `-`: between operands, or in front of one.
    Either,
    /// `!` or `~`
    Prefix,
    /// `<` and its like.
    Binary,
    /// `...`
    Dots,
    /// A byte that begins no token, or a bare `#`.
    Stray,
}

/// One token.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Kind,
    /// Its bytes.
    pub start: u32,
    pub end: u32,
    /// Whether a `#pragma` stands between it and the token before it.
    pub after_pragma: bool,
    /// The same for any directive that decides which text counts (`#if`).
    pub after_condition: bool,
}

/// Where the lines of the text belong.
#[derive(Debug, Default)]
pub struct Lines {
    /// Offset of the first byte of each line.
    starts: Vec<u32>,
    marks: Vec<Mark>,
    /// Names of files, as the markers give them.
    pub files: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Index of the first line it speaks of.
    first: u32,
    file: u32,
    line: u32,
    is_system: bool,
}

/// `# 12 "file.c" 3`, as preprocessors write it.
#[derive(Clone, Debug)]
pub struct LineMarker {
    /// Its bytes, without the end of the line.
    pub bytes: Range<u32>,
    /// The file and the line that follow.
    pub file: u32,
    pub line: u32,
}

/// A place in the user's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Index of the file.
    pub file: u32,
    /// From 1.
    pub line: u32,
    /// From 1, in bytes of the text that was read.
    pub column: u32,
}

impl Lines {
    /// Where a byte is.
    pub fn position(&self, offset: u32) -> Position {
        self.position_and_system(offset).0
    }

    /// Where a byte is, and whether that is in a header of the system.
    pub fn position_and_system(&self, offset: u32) -> (Position, bool) {
        let line = self.starts.partition_point(|start| *start <= offset) - 1;
        let mark = self.mark(line as u32);
        let position = Position {
            file: mark.file,
            line: mark.line.saturating_add(line as u32 - mark.first),
            column: offset - self.starts[line] + 1,
        };
        (position, mark.is_system)
    }

    /// Whether no marker says that lines are other than one would count.
    pub fn are_as_counted(&self) -> bool {
        self.marks.len() == 1
    }

    fn mark(&self, line: u32) -> Mark {
        let after = self.marks.partition_point(|mark| mark.first <= line);
        self.marks[after - 1]
    }

    fn file(&mut self, name: &str) -> u32 {
        let known = self.files.iter().position(|it| it == name);
        known.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        }) as u32
    }
}

/// A text as tokens.
#[derive(Debug, Default)]
pub struct Lexed {
    pub tokens: Vec<Token>,
    pub lines: Lines,
    /// Whether `#if` and its like were met: not everything that is there will be compiled.
    pub has_conditions: bool,
    /// The line markers that are none of standard C.
    pub markers: Vec<LineMarker>,
    /// What stands behind each `#define`.
    pub definitions: Vec<Range<u32>>,
    /// All directives that are no line markers, with their `#`.
    pub directives: Vec<Range<u32>>,
    /// Where the first `#include` is.
    pub first_include: Option<u32>,
}

/// Reads a text of at most 4 GB. `name` is its file until a marker says otherwise.
pub fn lex(text: &[u8], name: &str) -> Lexed {
    let mut lexer = Lexer {
        text,
        at: 0,
        pragma: false,
        condition: false,
        out: Lexed::default(),
    };
    let file = lexer.out.lines.file(name);
    lexer.out.lines.starts.push(0);
    lexer.out.lines.marks.push(Mark {
        first: 0,
        file,
        line: 1,
        is_system: false,
    });
    // A token has three bytes on average, or more.
    lexer.out.tokens.reserve(text.len() / 4);
    lexer.run();
    lexer.out
}

/// Bytes that names are made of.
const IN_NAMES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | 0x80..);
        byte += 1;
    }
    table
};

struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    pragma: bool,
    condition: bool,
    out: Lexed,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) {
        let mut at_line_start = true;
        while let Some(byte) = self.text.get(self.at).copied() {
            match byte {
                b'\n' => {
                    self.new_line();
                    at_line_start = true;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                    let rest = &self.text[self.at..];
                    let length = rest.iter().position(|next| *next != byte);
                    self.at += length.unwrap_or(rest.len());
                }
                b'\\' if self.is_spliced() => self.splice(),
                b'/' if self.peek(1) == b'*' => self.skip_comment(),
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'#' if at_line_start => self.directive(),
                b'%' if at_line_start && self.peek(1) == b':' => self.directive(),
                _ => {
                    self.token(byte);
                    at_line_start = false;
                }
            }
        }
    }

    fn new_line(&mut self) {
        self.at += 1;
        self.out.lines.starts.push(self.at as u32);
    }

    fn is_spliced(&self) -> bool {
        self.peek(1) == b'\n' || (self.peek(1) == b'\r' && self.peek(2) == b'\n')
    }

    fn splice(&mut self) {
        self.at += 1 + usize::from(self.peek(1) == b'\r');
        self.new_line();
    }

    fn skip_comment(&mut self) {
        self.at += 2;
        while self.at < self.text.len() {
            match self.text[self.at] {
                b'*' if self.peek(1) == b'/' => {
                    self.at += 2;
                    return;
                }
                b'\n' => self.new_line(),
                _ => self.at += 1,
            }
        }
    }

    /// To the end of the line, which may be spliced to the next.
    fn skip_line(&mut self) {
        while self.at < self.text.len() && self.text[self.at] != b'\n' {
            let is_plain = |byte: &u8| !matches!(byte, b'\n' | b'\\' | b'/');
            let rest = &self.text[self.at..];
            if is_plain(&rest[0]) {
                let plain = rest.iter().position(|byte| !is_plain(byte));
                self.at += plain.unwrap_or(rest.len());
                continue;
            }
            match self.text[self.at] {
                b'\\' if self.is_spliced() => self.splice(),
                b'/' if self.peek(1) == b'*' => self.skip_comment(),
                _ => self.at += 1,
            }
        }
    }

    fn directive(&mut self) {
        let start = self.at;
        self.skip_line();
        let line = &self.text[start..self.at];
        let line = line.strip_prefix(b"%:").unwrap_or(&line[1..]).trim_ascii();
        let rest = line.strip_prefix(b"line").map(<[u8]>::trim_ascii_start);
        if let Some(marker) = Marker::parse(rest.unwrap_or(line)) {
            let file = self.obey(&marker);
            if rest.is_none() {
                self.out.markers.push(LineMarker {
                    bytes: start as u32..self.at as u32,
                    file,
                    line: marker.line,
                });
            }
            return;
        }
        self.out.directives.push(start as u32..self.at as u32);
        if line.starts_with(b"pragma") {
            self.pragma = true;
        } else if line.starts_with(b"if") || line.starts_with(b"el") || line.starts_with(b"end") {
            self.out.has_conditions = true;
            self.condition = true;
        } else if let Some(definition) = line.strip_prefix(b"define") {
            // Blanks behind it are not part of it.
            let end = start + self.text[start..self.at].trim_ascii_end().len();
            let first = end - definition.len();
            self.out.definitions.push(first as u32..end as u32);
        } else if line.starts_with(b"include") {
            self.out.first_include.get_or_insert(start as u32);
        }
    }

    /// Says which file follows.
    fn obey(&mut self, marker: &Marker) -> u32 {
        let lines = &mut self.out.lines;
        let before = lines.marks.last().copied();
        let file = match &marker.file {
            // Most markers are about the file that the text was in just before.
            Some(name) if before.is_some_and(|it| lines.files[it.file as usize] == *name) => {
                before.map_or(0, |mark| mark.file)
            }
            Some(name) => lines.file(name),
            None => before.map_or(0, |mark| mark.file),
        };
        lines.marks.push(Mark {
            first: lines.starts.len() as u32,
            file,
            line: marker.line,
            is_system: marker.is_system,
        });
        file
    }

    fn push(&mut self, kind: Kind, length: usize) {
        let start = self.at as u32;
        self.at += length;
        self.out.tokens.push(Token {
            kind,
            start,
            end: self.at as u32,
            after_pragma: std::mem::take(&mut self.pragma),
            after_condition: std::mem::take(&mut self.condition),
        });
    }

    fn token(&mut self, byte: u8) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => self.name(),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            b'"' | b'\'' => self.quoted(0),
            _ => self.punctuation(byte),
        }
    }

    fn name(&mut self) {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| IN_NAMES[*byte as usize];
        let length = rest
            .iter()
            .position(|byte| !is_part(byte))
            .unwrap_or(rest.len());
        let name = &rest[..length];
        let is_prefix = matches!(name, b"L" | b"u" | b"U" | b"u8");
        if is_prefix && matches!(self.peek(length), b'"' | b'\'') {
            self.quoted(length);
            return;
        }
        self.push(word(name).map_or(Kind::Name, Kind::Word), length);
    }

    /// A preprocessing number: all that follows, signs behind exponents and digit separators too.
    fn number(&mut self) {
        let rest = &self.text[self.at..];
        let mut length = 1;
        while let Some(byte) = rest.get(length) {
            let sign = matches!(byte, b'+' | b'-')
                && matches!(rest[length - 1], b'e' | b'E' | b'p' | b'P');
            let separator =
                *byte == b'\'' && rest.get(length + 1).is_some_and(u8::is_ascii_alphanumeric);
            if !sign && !separator && !byte.is_ascii_alphanumeric() && !matches!(byte, b'.' | b'_')
            {
                break;
            }
            length += 1;
        }
        self.push(Kind::Number, length);
    }

    /// A string or a character, behind a prefix of so many bytes. It ends with its line at the
    /// latest.
    fn quoted(&mut self, prefix: usize) {
        let rest = &self.text[self.at..];
        let quote = rest[prefix];
        let mut length = prefix + 1;
        let mut starts = Vec::new();
        while let Some(byte) = rest.get(length) {
            length += 1;
            match byte {
                b'\\' => {
                    if rest.get(length) == Some(&b'\n') {
                        starts.push((self.at + length + 1) as u32);
                    }
                    length = (length + 1).min(rest.len());
                }
                b'\n' => {
                    length -= 1;
                    break;
                }
                _ if *byte == quote => break,
                _ => (),
            }
        }
        let kind = if quote == b'"' {
            Kind::Text
        } else {
            Kind::Number
        };
        self.push(kind, length);
        self.out.lines.starts.extend(starts);
    }

    fn punctuation(&mut self, byte: u8) {
        let alone = match byte {
            b'(' => Kind::OpenParen,
            b')' => Kind::CloseParen,
            b'[' => Kind::OpenBracket,
            b']' => Kind::CloseBracket,
            b'{' => Kind::OpenBrace,
            b'}' => Kind::CloseBrace,
            b';' => Kind::Semicolon,
            b',' => Kind::Comma,
            b'?' => Kind::Question,
            _ => return self.operator(byte),
        };
        self.push(alone, 1);
    }

    /// Punctuation that may go on.
    fn operator(&mut self, byte: u8) {
        let (second, third) = (self.peek(1), self.peek(2));
        let (kind, length) = match (byte, second) {
            (b'<', b'%') => (Kind::OpenBrace, 2),
            (b'%', b'>') => (Kind::CloseBrace, 2),
            (b'<', b':') => (Kind::OpenBracket, 2),
            (b':', b'>') => (Kind::CloseBracket, 2),
            (b':', _) => (Kind::Colon, 1),
            (b'.', b'.') if third == b'.' => (Kind::Dots, 3),
            (b'.', _) => (Kind::Member, 1),
            (b'-', b'>') => (Kind::Member, 2),
            (b'&', b'&') => (Kind::AndAnd, 2),
            (b'|', b'|') => (Kind::OrOr, 2),
            (b'+', b'+') | (b'-', b'-') => (Kind::Step, 2),
            (b'<', b'<') | (b'>', b'>') if third == b'=' => (Kind::Assign, 3),
            (b'<', b'<') | (b'>', b'>') => (Kind::Binary, 2),
            (b'=' | b'!' | b'<' | b'>', b'=') => (Kind::Binary, 2),
            (b'=', _) => (Kind::Is, 1),
            (b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=') => (Kind::Assign, 2),
            (b'+' | b'-' | b'*' | b'&', _) => (Kind::Either, 1),
            (b'!' | b'~', _) => (Kind::Prefix, 1),
            (b'/' | b'%' | b'|' | b'^' | b'<' | b'>', _) => (Kind::Binary, 1),
            _ => (Kind::Stray, 1),
        };
        self.push(kind, length);
    }
}

/// `# 12 "file.c" 3`: the next line is line 12 of that file, which is the system's.
struct Marker {
    line: u32,
    file: Option<String>,
    is_system: bool,
}

impl Marker {
    fn parse(text: &[u8]) -> Option<Self> {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let line = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
        let rest = text[digits..].trim_ascii_start();
        let Some(quoted) = rest.strip_prefix(b"\"") else {
            let file = None;
            let is_system = false;
            return rest.is_empty().then_some(Self {
                line,
                file,
                is_system,
            });
        };
        let (name, flags) = match quoted.iter().position(|it| matches!(it, b'"' | b'\\')) {
            Some(end) if quoted[end] == b'"' => (Cow::from(&quoted[..end]), &quoted[end + 1..]),
            _ => unescaped(quoted)?,
        };
        Some(Self {
            line,
            file: Some(String::from_utf8_lossy(&name).into_owned()),
            is_system: flags.contains(&b'3'),
        })
    }
}

/// A name with backslashes in it, up to its quote, and what follows.
fn unescaped(quoted: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let mut name = Vec::new();
    let mut bytes = quoted.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => name.push(*bytes.next()?),
            _ => name.push(*byte),
        }
    }
    Some((Cow::from(name), bytes.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let lexed = lex(text.as_bytes(), "x.c");
        lexed.tokens.iter().map(|token| token.kind).collect()
    }

    #[test]
    fn operators_and_literals_are_told_apart() {
        use Kind::*;
        assert_eq!(
            kinds("a->b+++c L\"x\\\"y\" u8'q' 1e+5.f 0x1'0 <%%> <<= ..."),
            [
                Name, Member, Name, Step, Either, Name, Text, Number, Number, Number, OpenBrace,
                CloseBrace, Assign, Dots
            ]
        );
        assert_eq!(kinds("a /* x */ // y\\\nz\n&& b"), [Name, AndAnd, Name]);
    }

    #[test]
    fn markers_say_where_a_token_is() {
        let text = "int a;\n# 40 \"dir/h.h\" 1 3 4\n\nint b;\n# 2 \"x.c\" 2\n  c\n#line 9\nd";
        let lexed = lex(text.as_bytes(), "x.c");
        let at = |index: usize| {
            let it = lexed.lines.position(lexed.tokens[index].start);
            (
                lexed.lines.files[it.file as usize].as_str(),
                it.line,
                it.column,
            )
        };
        assert_eq!(at(1), ("x.c", 1, 5));
        assert_eq!(at(3), ("dir/h.h", 41, 1));
        assert_eq!(at(6), ("x.c", 2, 3));
        assert_eq!(at(7), ("x.c", 9, 1));
        let is_system = |index: usize| lexed.lines.position_and_system(lexed.tokens[index].start).1;
        assert!(is_system(3));
        assert!(!is_system(6));
    }
}
