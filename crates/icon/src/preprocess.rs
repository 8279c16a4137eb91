//! Source files in; one text, with `#line` where another file or line follows, out.
//!
//! The text is what `icont` hands to its own lexer, byte for byte: columns, and with them ucode, follow
//! from it. [`Text::origin`] remembers where its bytes stood.

use std::rc::Rc;

use crate::error::{Error, Fault};
use crate::files::{FileId, Names, Origin};
use crate::line::{directive, file_name, name, skip_space, trim_end, words};
use crate::macros::{self, Macros, Part, begins_name, matching_quote};
use crate::text::Text;

/// A file that was found: the name that positions will have, and what is in it.
pub struct Found {
    pub name: Vec<u8>,
    pub text: Rc<[u8]>,
}

/// A few lines of macros can ask for more than there is memory.
const LONGEST: usize = 16 << 20;

/// How deep files may include each other.
const DEEPEST: usize = 100;

pub fn preprocess(
    main: Found,
    find: &mut dyn FnMut(&[u8]) -> Option<Found>,
    names: &mut Names,
) -> Result<Text, Error> {
    let mut it = Preprocessor {
        macros: Macros::new(),
        files: Vec::new(),
        conditions: 0,
        text: Text::default(),
        find,
        names,
    };
    it.open(main)?;
    while !it.files.is_empty() {
        it.line()?;
    }
    Ok(it.text)
}

struct File {
    text: Rc<[u8]>,
    at: usize,
    /// As `$line` has it.
    name: Vec<u8>,
    line: u32,
    /// As it is.
    origin: Origin,
    /// How many conditions were open when it was opened.
    conditions: usize,
}

struct Preprocessor<'a> {
    macros: Macros,
    files: Vec<File>,
    conditions: usize,
    text: Text,
    find: &'a mut dyn FnMut(&[u8]) -> Option<Found>,
    names: &'a mut Names,
}

impl Preprocessor<'_> {
    fn open(&mut self, found: Found) -> Result<(), Error> {
        if self.files.iter().any(|it| it.name == found.name) || self.files.len() >= DEEPEST {
            return Err(self.error(Fault::CircularInclude(words(&found.name))));
        }
        let origin = Origin {
            file: self.names.add(&found.name),
            line: 0,
            column: 1,
        };
        self.files.push(File {
            text: found.text,
            at: 0,
            name: found.name,
            line: 0,
            origin,
            conditions: self.conditions,
        });
        self.say_line();
        Ok(())
    }

    fn line(&mut self) -> Result<(), Error> {
        let Some(line) = self.read() else {
            return self.close();
        };
        if let Some(rest) = directive(&line) {
            return self.directive(rest, line.first() == Some(&b'#'));
        }
        let origin = self.files.last().map(|it| it.origin);
        match origin {
            Some(origin) => self.expand(&line, origin, true, &mut Vec::new()),
            None => Ok(()),
        }
    }

    /// The next line, with one newline at its end. A line ends at a NUL too, without one.
    fn read(&mut self) -> Option<Vec<u8>> {
        let file = self.files.last_mut()?;
        let rest = file.text.get(file.at..).filter(|it| !it.is_empty())?;
        let end = rest.iter().position(|it| *it == b'\n');
        let length = end.unwrap_or(rest.len());
        let mut line = rest[..length].to_vec();
        file.at += length + 1;
        file.line = file.line.wrapping_add(1);
        file.origin.line += 1;
        line.push(b'\n');
        if let Some(nul) = line.iter().position(|it| *it == 0) {
            line.truncate(nul);
        }
        Some(line)
    }

    fn close(&mut self) -> Result<(), Error> {
        if self.files.last().map(|it| it.conditions) != Some(self.conditions) {
            return Err(self.error(Fault::Directive("a $if has no $endif")));
        }
        self.files.pop();
        self.say_line();
        Ok(())
    }

    fn say_line(&mut self) {
        if let Some(file) = self.files.last() {
            let (line, name) = (file.line, file.name.clone());
            let origin = Origin {
                column: 1,
                ..file.origin
            };
            self.text
                .put(format!("#line {line} \"").as_bytes(), origin, false);
            self.text.put(&name, origin, false);
            self.text.put(b"\"\n", origin, false);
        }
    }

    /// Puts a line, or what a macro stands for, with the macros in it replaced: none within itself.
    fn expand(
        &mut self,
        line: &[u8],
        origin: Origin,
        is_verbatim: bool,
        within: &mut Vec<Vec<u8>>,
    ) -> Result<(), Error> {
        let mut at = 0;
        while at < line.len() {
            let (end, part) = macros::part(line, at);
            let piece = &line[at..end];
            let further = if is_verbatim { at as u32 } else { 0 };
            let here = Origin {
                column: origin.column + further,
                ..origin
            };
            let value = match part {
                Part::Name if !within.iter().any(|it| it == piece) => self.macros.value(piece),
                _ => None,
            };
            match value.map(<[u8]>::to_vec) {
                Some(value) => {
                    within.push(piece.to_vec());
                    self.expand(&value, here, false, within)?;
                    within.pop();
                }
                None => self.text.put(piece, here, is_verbatim),
            }
            if self.text.bytes.len() > LONGEST {
                return Err(self.error(Fault::TooLong(LONGEST)));
            }
            at = end;
        }
        Ok(())
    }

    fn directive(&mut self, line: &[u8], is_comment: bool) -> Result<(), Error> {
        let line = skip_space(line);
        let (command, rest) = name(line);
        let rest = skip_space(rest);
        let before = self.text.bytes.len();
        match command {
            b"define" => self.define(rest)?,
            b"undef" => self.undefine(rest)?,
            b"ifdef" => self.condition(rest, true)?,
            b"ifndef" => self.condition(rest, false)?,
            b"else" => {
                self.end_of_part(rest, "there is no $if for this $else")?;
                self.skip(false, true)?;
            }
            b"endif" => {
                self.end_of_part(rest, "there is no $if for this $endif")?;
                self.conditions -= 1;
            }
            b"include" => self.include(rest)?,
            b"line" => match self.set_line(rest) {
                Err(fault) if !is_comment => return Err(self.error(fault)),
                _ => (),
            },
            b"error" => return Err(self.error(Fault::Explicit(words(rest.trim_ascii())))),
            _ => return Err(self.error(Fault::UnknownDirective(words(command)))),
        }
        // What says nothing is an empty line.
        if before == self.text.bytes.len()
            && let Some(file) = self.files.last()
        {
            self.text.put(b"\n", file.origin, false);
        }
        Ok(())
    }

    fn define(&mut self, rest: &[u8]) -> Result<(), Error> {
        let (name, rest) = self.name(rest, "$define: there is no name")?;
        if rest.first() == Some(&b'(') {
            let fault = Fault::Directive("$define: macros have no parameters");
            return Err(self.error(fault));
        }
        let rest = skip_space(rest);
        let mut end = 0;
        while end < rest.len() && rest[end] != b'#' {
            if matches!(rest[end], b'"' | b'\'') {
                end = matching_quote(rest, end);
                if end == rest.len() {
                    return Err(self.error(Fault::UnclosedQuote));
                }
            }
            end += 1;
        }
        let value = trim_end(&rest[..end]);
        match self.macros.define(name, value) {
            true => Ok(()),
            false => Err(self.error(Fault::Redefined(words(name)))),
        }
    }

    fn undefine(&mut self, rest: &[u8]) -> Result<(), Error> {
        let (name, rest) = self.name(rest, "$undef: there is no name")?;
        self.nothing(rest)?;
        self.macros.undefine(name);
        Ok(())
    }

    fn condition(&mut self, rest: &[u8], wanted: bool) -> Result<(), Error> {
        self.conditions += 1;
        let (name, rest) = self.name(rest, "$ifdef: there is no name")?;
        self.nothing(rest)?;
        match self.macros.value(name).is_some() == wanted {
            true => Ok(()),
            false => self.skip(true, true),
        }
    }

    fn end_of_part(&mut self, rest: &[u8], what: &'static str) -> Result<(), Error> {
        let outside = self.files.last().map_or(0, |it| it.conditions);
        match self.conditions <= outside {
            true => Err(self.error(Fault::Directive(what))),
            false => self.nothing(rest),
        }
    }

    /// Skips to the end of this part of a condition; conditions within are skipped whole.
    fn skip(&mut self, to_else: bool, is_said: bool) -> Result<(), Error> {
        let outside = self.conditions;
        let mut to_else = vec![to_else];
        while let Some(line) = self.read() {
            let Some(rest) = directive(&line) else {
                continue;
            };
            if line.first() == Some(&b'#') {
                // Errors of this form count for nothing.
                let _ = self.set_line(skip_space(name(skip_space(rest)).1));
                continue;
            }
            let (command, rest) = name(skip_space(rest));
            let rest = skip_space(rest);
            let ends = match command {
                b"endif" => true,
                b"else" => to_else.last() == Some(&true),
                b"line" => {
                    let _ = self.set_line(rest);
                    false
                }
                _ if command.starts_with(b"if") => {
                    self.conditions += 1;
                    to_else.push(false);
                    false
                }
                _ => false,
            };
            if ends {
                self.nothing(rest)?;
                self.conditions -= usize::from(command == b"endif");
                to_else.pop();
                if to_else.is_empty() {
                    if is_said {
                        self.say_line();
                    }
                    return Ok(());
                }
            }
        }
        // The end of the file says that there is no $endif.
        debug_assert!(self.conditions >= outside);
        Ok(())
    }

    fn include(&mut self, rest: &[u8]) -> Result<(), Error> {
        let (file, rest) = file_name(rest);
        if file.is_empty() {
            let fault = Fault::Directive("$include: there is no name of a file");
            return Err(self.error(fault));
        }
        self.nothing(rest)?;
        match (self.find)(&file) {
            Some(found) => self.open(found),
            None => Err(self.error(Fault::NotFound(words(&file)))),
        }
    }

    fn set_line(&mut self, rest: &[u8]) -> Result<(), Fault> {
        let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
        if digits == 0 {
            return Err(Fault::Directive("$line: there is no number"));
        }
        let add = |sum: u32, digit: &u8| {
            sum.wrapping_mul(10)
                .wrapping_add(u32::from(digit.wrapping_sub(b'0')))
        };
        let number = rest[..digits].iter().fold(0, add);
        let mut rest = skip_space(&rest[digits..]);
        let mut file = None;
        if rest
            .first()
            .is_some_and(|it| begins_name(*it) || *it == b'"')
        {
            let (name, after) = file_name(rest);
            if name.is_empty() {
                return Err(Fault::Directive("$line: there is no name of a file"));
            }
            (file, rest) = (Some(name), after);
        }
        if !skip_space(rest).is_empty() {
            return Err(Fault::Directive("there is something behind the directive"));
        }
        if let Some(current) = self.files.last_mut() {
            current.line = number;
            current.name = file.unwrap_or(std::mem::take(&mut current.name));
        }
        self.say_line();
        Ok(())
    }

    fn name<'l>(&self, rest: &'l [u8], what: &'static str) -> Result<(&'l [u8], &'l [u8]), Error> {
        match rest.first() {
            Some(first) if begins_name(*first) => Ok(name(rest)),
            _ => Err(self.error(Fault::Directive(what))),
        }
    }

    fn nothing(&self, rest: &[u8]) -> Result<(), Error> {
        match skip_space(rest) {
            [] => Ok(()),
            _ => Err(self.error(Fault::Directive("there is something behind the directive"))),
        }
    }

    fn error(&self, what: Fault) -> Error {
        let place = self.files.last();
        let file = place.map_or(FileId(0), |it| it.origin.file);
        Error {
            file: words(self.names.name(file)),
            line: place.map_or(0, |it| it.origin.line),
            column: 0,
            what,
        }
    }
}
