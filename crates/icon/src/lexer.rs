//! A preprocessed text in, lexemes out.
//!
//! One thing is peculiar: lines and columns are where the *reader* stands, and whether it has read a
//! character too many depends on the lexeme. Ucode has such columns, of semicolons that nobody wrote.

use crate::error::{Error, Fault};
use crate::files::{At, FileId, Names, Origin};
use crate::line::is_space;
use crate::macros::begins_name;
use crate::text::Text;
use crate::words::{Sort, reserved, special};

#[derive(Clone, Debug)]
pub struct Lexeme {
    pub sort: Sort,
    pub at: At,
    pub origin: Origin,
    /// As it is written.
    pub text: Vec<u8>,
    /// What a literal says. (Of others, the text.)
    pub value: Vec<u8>,
}

pub fn lexemes(text: &Text, file: FileId, names: &mut Names) -> Result<Vec<Lexeme>, Error> {
    let mut lexer = Lexer {
        reader: Reader::new(text),
        file,
        names,
        found: Vec::new(),
    };
    lexer.read()?;
    Ok(lexer.found)
}

/// Reads characters, and counts lines and columns.
pub struct Reader<'a> {
    text: &'a Text,
    at: usize,
    line: u32,
    column: u32,
    /// A character that is to be read once more.
    again: Option<Option<u8>>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a Text) -> Reader<'a> {
        Reader {
            text,
            at: 0,
            line: 1,
            column: 0,
            again: None,
        }
    }

    /// The next character, or none at the end.
    pub fn next(&mut self) -> Option<u8> {
        if let Some(again) = self.again.take() {
            return again;
        }
        let Some(&byte) = self.text.bytes.get(self.at) else {
            (self.line, self.column) = (0, 0);
            return None;
        };
        self.at += 1;
        match byte {
            b'\n' => (self.line, self.column) = (self.line.wrapping_add(1), 0),
            b'\t' => self.column = (self.column | 7) + 1,
            8 => self.column = self.column.saturating_sub(1),
            _ => self.column += 1,
        }
        Some(byte)
    }

    pub fn put_back(&mut self, character: Option<u8>) {
        self.again = Some(character);
    }
}

pub struct Lexer<'a> {
    pub reader: Reader<'a>,
    file: FileId,
    names: &'a mut Names,
    found: Vec<Lexeme>,
}

/// What follows a lexeme: a character that was read already, or anything.
pub type Follows = Option<Option<u8>>;

impl Lexer<'_> {
    /// Reads all lexemes, and puts a semicolon before one where one belongs.
    fn read(&mut self) -> Result<(), Error> {
        // A file begins as if a line had ended.
        let mut next = Some(b'\n');
        loop {
            let semicolon = self.semicolon(next);
            let (first, newline) = self.skip(next)?;
            let start = (self.here(), self.reader.at.saturating_sub(1));
            let Some(first) = first else {
                self.push(Sort::End, start, None, Vec::new());
                return Ok(());
            };
            let (sort, value, follows) = self.one(first, start)?;
            let ended = self.found.last().is_some_and(|it| it.sort.may_end());
            if newline && ended && sort.may_begin() {
                self.found.push(semicolon);
            }
            self.push(sort, start, follows, value);
            next = follows.unwrap_or(Some(b' '));
        }
    }

    fn here(&self) -> At {
        At {
            file: Some(self.file),
            line: self.reader.line,
            column: self.reader.column,
        }
    }

    /// The semicolon that may have to be put here.
    fn semicolon(&self, next: Option<u8>) -> Lexeme {
        let mut at = self.here();
        if next == Some(b'\n') {
            at.line = at.line.wrapping_sub(1);
        }
        Lexeme {
            sort: Sort::Semicolon,
            at,
            origin: self.origin(self.reader.at.saturating_sub(1)),
            text: b"newline".to_vec(),
            value: Vec::new(),
        }
    }

    fn origin(&self, at: usize) -> Origin {
        let first = Origin {
            file: self.file,
            line: 0,
            column: 0,
        };
        self.reader.text.origin(at).unwrap_or(first)
    }

    fn push(&mut self, sort: Sort, (at, from): (At, usize), follows: Follows, value: Vec<u8>) {
        let read = self.reader.at;
        let end = match follows {
            Some(Some(_)) => read.saturating_sub(1),
            _ => read,
        };
        let text = self.reader.text.bytes.get(from..end).unwrap_or(&[]);
        self.found.push(Lexeme {
            sort,
            at,
            origin: self.origin(from),
            text: text.to_vec(),
            value,
        });
    }

    /// Skips space and comments. The first character of what follows, and whether a line ended.
    fn skip(&mut self, mut next: Option<u8>) -> Result<(Option<u8>, bool), Error> {
        let mut newline = false;
        while let Some(byte) = next.filter(|it| *it == b'#' || is_space(*it)) {
            if byte == b'\n' {
                newline = true;
                next = self.reader.next();
                if next == Some(b'#') {
                    next = self.line_directive()?;
                    next = self.rest_of_line(next);
                }
            } else if byte == b'#' {
                next = self.rest_of_line(next);
            } else {
                next = self.reader.next();
            }
        }
        Ok((next, newline))
    }

    fn rest_of_line(&mut self, mut next: Option<u8>) -> Option<u8> {
        while !matches!(next, None | Some(b'\n')) {
            next = self.reader.next();
        }
        next
    }

    /// Reads a comment that may be a `#line`, as the preprocessor writes them.
    fn line_directive(&mut self) -> Result<Option<u8>, Error> {
        for wanted in *b"line" {
            let next = self.reader.next();
            if next != Some(wanted) {
                return Ok(next);
            }
        }
        let mut next = self.after_blanks(Some(b' '));
        if !next.is_some_and(|it| it.is_ascii_digit()) {
            let what = "a comment that begins with #line has no number";
            return Err(self.error(self.here(), Fault::LineDirective(what)));
        }
        let mut line = 0u32;
        while let Some(digit) = next.filter(u8::is_ascii_digit) {
            line = line.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'));
            next = self.reader.next();
        }
        // A newline that follows at once is overwritten too, as it was counted before.
        self.reader.line = line + u32::from(next == Some(b'\n'));
        next = self.after_blanks(next);
        if matches!(next, None | Some(b'\n')) {
            return Ok(next);
        }
        let what = "the name of the file in #line is not in quotes";
        let fault = self.error(self.here(), Fault::LineDirective(what));
        if next != Some(b'"') {
            return Err(fault);
        }
        let mut name = Vec::new();
        loop {
            match self.reader.next() {
                None | Some(b'\n') => return Err(fault),
                Some(b'"') => break,
                Some(byte) => name.push(byte),
            }
        }
        self.file = self.names.add(&name);
        Ok(self.reader.next())
    }

    fn after_blanks(&mut self, mut next: Option<u8>) -> Option<u8> {
        while matches!(next, Some(b' ' | b'\t')) {
            next = self.reader.next();
        }
        next
    }

    /// Reads one lexeme that begins with this character.
    fn one(&mut self, first: u8, start: (At, usize)) -> Result<(Sort, Vec<u8>, Follows), Error> {
        match first {
            _ if begins_name(first) => {
                let mut name = vec![first];
                let next = self.while_in(&mut name, |it| it.is_ascii_alphanumeric() || it == b'_');
                let sort = reserved(&name).map_or(Sort::Name, Sort::Word);
                Ok((sort, name, Some(next)))
            }
            b'0'..=b'9' => self.number(first, start.0),
            b'.' => match self.reader.next() {
                Some(digit @ b'0'..=b'9') => {
                    let mut text = vec![b'.', digit];
                    let next = self.fraction(&mut text, start.0)?;
                    Ok((Sort::Real, text, Some(next)))
                }
                next => {
                    let (sort, _) = special(b".");
                    Ok((sort.unwrap_or(Sort::End), b".".to_vec(), Some(next)))
                }
            },
            b'"' | b'\'' => {
                let value = self.quoted(first, start.0)?;
                let sort = match first {
                    b'"' => Sort::String,
                    _ => Sort::Cset,
                };
                Ok((sort, value, None))
            }
            _ => self.special(first, start.0),
        }
    }

    pub fn while_in(&mut self, text: &mut Vec<u8>, wanted: impl Fn(u8) -> bool) -> Option<u8> {
        loop {
            match self.reader.next() {
                Some(byte) if wanted(byte) => text.push(byte),
                next => return next,
            }
        }
    }

    fn special(&mut self, first: u8, at: At) -> Result<(Sort, Vec<u8>, Follows), Error> {
        let mut text = vec![first];
        loop {
            let (whole, goes_on) = special(&text);
            let next = match goes_on {
                true => Some(self.reader.next()),
                false => None,
            };
            if let Some(Some(byte)) = next {
                text.push(byte);
                let (longer, goes_on) = special(&text);
                if longer.is_some() || goes_on {
                    continue;
                }
                text.pop();
            }
            return match whole {
                Some(sort) => Ok((sort, text, next)),
                None => Err(self.error(at, Fault::Character)),
            };
        }
    }

    pub fn error(&self, at: At, what: Fault) -> Error {
        Error::new(self.names, at, what)
    }
}
