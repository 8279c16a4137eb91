//! Assembler text in, statements out: where each begins and ends, and on which line.
//!
//! The rules are those of GNU as for x86-64 ELF: statements end at a line's end or at `;`, `#`
//! starts a comment, a `/` first on a line does too, `/* */` comments may span lines, strings
//! and character constants hide all of these.

use std::ops::Range;

/// One label, directive or instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its bytes in the text, without white space or comment around.
    pub at: Range<usize>,
    /// The line it begins on, from 1.
    pub line: u32,
    /// What it is, as far as its first word tells.
    pub kind: Kind,
}

/// What a statement is, as far as its first word tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `name:`
    Label,
    /// `.name arguments`
    Directive,
    /// Anything else: an instruction or the use of a macro.
    Instruction,
    /// `name = value`
    Assignment,
    /// `#APP`: the compiler hands over to a person's own text.
    AppBegin,
    /// `#NO_APP`: and takes over again.
    AppEnd,
    /// `# 12 "file"`: what follows is line 12 of that file.
    LineMarker,
}

/// Splits `text` into statements. In debug sections only the statements that switch sections are
/// kept: nobody asks for the others, and they are most of a `-g` file.
pub fn statements(text: &str) -> Vec<Statement> {
    let mut lexer = Lexer {
        bytes: text.as_bytes(),
        position: 0,
        line: 1,
        in_debug_section: false,
        found: Vec::with_capacity(text.len() / 32),
    };
    while lexer.position < lexer.bytes.len() {
        lexer.line();
    }
    lexer.found
}

struct Lexer<'a> {
    bytes: &'a [u8],
    position: usize,
    line: u32,
    in_debug_section: bool,
    found: Vec<Statement>,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.position..]
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | 0x0c)) {
            self.position += 1;
        }
    }

    fn skip_to_line_end(&mut self) {
        let rest = self.rest();
        let length = rest.iter().position(|byte| *byte == b'\n');
        self.position += length.unwrap_or(rest.len());
    }

    /// Reads one physical line (more, if a comment or a string goes on).
    fn line(&mut self) {
        self.skip_blanks();
        match self.peek() {
            Some(b'#') => self.hash_line(),
            Some(b'/') if !self.rest().starts_with(b"/*") => self.skip_to_line_end(),
            _ if self.in_debug_section && !self.switches_section() => self.skip_to_line_end(),
            _ => self.statements_of_line(),
        }
        if self.peek() == Some(b'\n') {
            self.position += 1;
            self.line += 1;
        }
    }

    /// A line that begins with `#`: a comment, unless it is one of three signals.
    fn hash_line(&mut self) {
        let start = self.position;
        self.skip_to_line_end();
        let text = self.bytes[start..self.position].trim_ascii_end();
        let kind = match text {
            b"#APP" => Kind::AppBegin,
            b"#NO_APP" => Kind::AppEnd,
            [b'#', b' ', digit, ..] if digit.is_ascii_digit() => Kind::LineMarker,
            _ => return,
        };
        self.push(start..start + text.len(), self.line, kind);
    }

    fn switches_section(&self) -> bool {
        const SWITCHES: [&[u8]; 8] = [
            b".section",
            b".text",
            b".data",
            b".bss",
            b".previous",
            b".pushsection",
            b".popsection",
            b".subsection",
        ];
        let rest = self.rest();
        SWITCHES.iter().any(|word| {
            rest.starts_with(word)
                && !matches!(rest.get(word.len()), Some(byte) if byte.is_ascii_alphanumeric() || *byte == b'_')
        })
    }

    fn statements_of_line(&mut self) {
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(b'\n') => return,
                Some(b'#') => return self.skip_to_line_end(),
                Some(b';') => self.position += 1,
                Some(b'/') if self.rest().starts_with(b"/*") => self.skip_block_comment(),
                Some(_) => self.statement(),
            }
        }
    }

    fn skip_block_comment(&mut self) {
        self.position += 2;
        while self.position < self.bytes.len() {
            if self.rest().starts_with(b"*/") {
                self.position += 2;
                return;
            }
            if self.bytes[self.position] == b'\n' {
                self.line += 1;
            }
            self.position += 1;
        }
    }

    fn statement(&mut self) {
        let start = self.position;
        let line = self.line;
        if let Some(length) = label_length(self.rest()) {
            self.position += length;
            return self.push(start..self.position, line, Kind::Label);
        }
        let mut end = start;
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' | b';' | b'#' => break,
                b'/' if self.rest().starts_with(b"/*") => {
                    self.skip_block_comment();
                    continue;
                }
                b'"' => self.skip_string(),
                // A character constant: `'a`, `'\n`, and the quote that may close it.
                b'\'' => {
                    self.position += if self.rest().get(1) == Some(&b'\\') {
                        3
                    } else {
                        2
                    }
                }
                _ => self.position += 1,
            }
            self.position = self.position.min(self.bytes.len());
            if !byte.is_ascii_whitespace() {
                end = self.position;
            }
        }
        let kind = match self.bytes[start] {
            b'.' if !is_assignment(&self.bytes[start..end]) => Kind::Directive,
            _ if is_assignment(&self.bytes[start..end]) => Kind::Assignment,
            _ => Kind::Instruction,
        };
        self.push(start..end, line, kind);
    }

    fn skip_string(&mut self) {
        self.position += 1;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.position += 2,
                b'"' => {
                    self.position += 1;
                    return;
                }
                b'\n' => {
                    self.line += 1;
                    self.position += 1;
                }
                _ => self.position += 1,
            }
        }
    }

    fn push(&mut self, at: Range<usize>, line: u32, kind: Kind) {
        if kind == Kind::Directive {
            let text = &self.bytes[at.clone()];
            if self.switches_section_text(text) {
                self.in_debug_section = is_debug_section(text);
            }
        }
        self.found.push(Statement { at, line, kind });
    }

    fn switches_section_text(&self, text: &[u8]) -> bool {
        let word = text
            .split(|byte| byte.is_ascii_whitespace())
            .next()
            .unwrap_or_default();
        matches!(
            word,
            b".section"
                | b".pushsection"
                | b".text"
                | b".data"
                | b".bss"
                | b".previous"
                | b".popsection"
        )
    }
}

/// `.section .debug_info,...` and the like. (`.previous` and `.popsection` leave a debug section
/// for good as far as this lexer is concerned: reading too much is harmless.)
fn is_debug_section(text: &[u8]) -> bool {
    let mut words = text.split(|byte| byte.is_ascii_whitespace() || *byte == b',');
    matches!(words.next(), Some(b".section" | b".pushsection"))
        && words.find(|word| !word.is_empty()).is_some_and(|name| {
            name.strip_prefix(b"\"")
                .unwrap_or(name)
                .starts_with(b".debug_")
        })
}

/// The length of a label with its colon, if the text begins with one.
fn label_length(text: &[u8]) -> Option<usize> {
    if text.first() == Some(&b'"') {
        let close = text[1..]
            .iter()
            .position(|byte| *byte == b'"' || *byte == b'\n')?
            + 1;
        return (text[close] == b'"' && text.get(close + 1) == Some(&b':')).then_some(close + 2);
    }
    let name = text
        .iter()
        .take_while(|byte| is_symbol_byte(**byte))
        .count();
    let blanks = text[name..]
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    (name > 0 && text.get(name + blanks) == Some(&b':')).then_some(name + blanks + 1)
}

fn is_assignment(text: &[u8]) -> bool {
    let name = text
        .iter()
        .take_while(|byte| is_symbol_byte(**byte))
        .count();
    let rest = text[name..].trim_ascii_start();
    name > 0 && rest.first() == Some(&b'=')
}

/// Whether a byte may stand in a symbol's name.
pub fn is_symbol_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$') || byte >= 0x80
}

/// The symbols that stand in an expression or operand, registers (`%rax`) and numbers left out.
/// A suffix such as `@PLT` is not part of the name. Local label references (`1f`) are included.
pub fn symbols(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut position = 0;
    std::iter::from_fn(move || {
        while position < bytes.len() {
            let start = position;
            match bytes[position] {
                b'"' => {
                    let length = bytes[start + 1..].iter().position(|byte| *byte == b'"');
                    let end = start + 1 + length.unwrap_or(bytes.len() - start - 1);
                    position = (end + 1).min(bytes.len());
                    return Some(&text[start + 1..end]);
                }
                b'%' | b'@' => {
                    position += 1;
                    position += name_length(&bytes[position..]);
                }
                b'$' => position += 1,
                byte if is_symbol_byte(byte) => {
                    position += name_length(&bytes[position..]);
                    let word = &text[start..position];
                    if !is_number(word) && word != "." {
                        return Some(word);
                    }
                }
                _ => position += 1,
            }
        }
        None
    })
}

fn name_length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| is_symbol_byte(**byte))
        .count()
}

/// Numbers are no symbols, but `1f` and `12b` are references to numbered labels.
fn is_number(word: &str) -> bool {
    word.as_bytes()[0].is_ascii_digit() && !is_numbered_reference(word)
}

/// `1f` or `1b`: the next or the last label `1:`. (`0b`, were it a binary number, has digits
/// behind the `b`.)
pub fn is_numbered_reference(word: &str) -> bool {
    let digits = word.trim_end_matches(['f', 'b']);
    !digits.is_empty()
        && digits.len() + 1 == word.len()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The first word, and the rest.
pub fn split(text: &str) -> (&str, &str) {
    match text.find([' ', '\t']) {
        Some(end) => (&text[..end], text[end..].trim_start()),
        None => (text, ""),
    }
}

/// A name without the quotes that may stand around it.
pub fn unquote(text: &str) -> &str {
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
}

/// The quoted strings of a text, with their escapes undone.
pub fn strings(text: &str) -> impl Iterator<Item = String> {
    let mut bytes = text.bytes().peekable();
    std::iter::from_fn(move || {
        bytes.find(|byte| *byte == b'"')?;
        let mut found = Vec::new();
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' => break,
                b'\\' => match bytes.next()? {
                    digit @ b'0'..=b'7' => {
                        let mut value = u32::from(digit - b'0');
                        for _ in 0..2 {
                            if let Some(digit @ b'0'..=b'7') = bytes.peek() {
                                value = value * 8 + u32::from(digit - b'0');
                                bytes.next();
                            }
                        }
                        found.push(value as u8);
                    }
                    b'n' => found.push(b'\n'),
                    b't' => found.push(b'\t'),
                    other => found.push(other),
                },
                _ => found.push(byte),
            }
        }
        Some(String::from_utf8_lossy(&found).into_owned())
    })
}
