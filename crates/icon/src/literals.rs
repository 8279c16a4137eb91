//! Literals: numbers, strings, character sets.

use crate::error::{Error, Fault};
use crate::escape::{control, escaped, hexadecimal, octal};
use crate::files::At;
use crate::lexer::{Follows, Lexer};
use crate::line::is_space;
use crate::words::Sort;

impl Lexer<'_> {
    pub fn number(&mut self, first: u8, at: At) -> Result<(Sort, Vec<u8>, Follows), Error> {
        let mut text = vec![first];
        let next = self.while_in(&mut text, |it| it.is_ascii_digit());
        match next {
            Some(radix @ (b'r' | b'R')) => {
                let value = text.iter().fold(0u32, |sum, it| {
                    sum.saturating_mul(10).saturating_add(u32::from(it - b'0'))
                });
                if !(2..=36).contains(&value) {
                    return Err(self.error(at, Fault::Number("a radix is between 2 and 36")));
                }
                text.push(radix);
                let length = text.len();
                let next = self.while_in(&mut text, |it| it.is_ascii_alphanumeric());
                let digits = &text[length..];
                if digits.is_empty() || digits.iter().any(|it| digit(*it) >= value) {
                    let what = "a digit is missing, or too large for its radix";
                    return Err(self.error(at, Fault::Number(what)));
                }
                Ok((Sort::Integer, text, Some(next)))
            }
            Some(b'.') => {
                text.push(b'.');
                let next = self.fraction(&mut text, at)?;
                Ok((Sort::Real, text, Some(next)))
            }
            Some(sign @ (b'e' | b'E')) => {
                text.push(sign);
                let next = self.exponent(&mut text, at)?;
                Ok((Sort::Real, text, Some(next)))
            }
            _ => Ok((Sort::Integer, text, Some(next))),
        }
    }

    pub fn fraction(&mut self, text: &mut Vec<u8>, at: At) -> Result<Option<u8>, Error> {
        match self.while_in(text, |it| it.is_ascii_digit()) {
            Some(sign @ (b'e' | b'E')) => {
                text.push(sign);
                self.exponent(text, at)
            }
            next => Ok(next),
        }
    }

    pub fn exponent(&mut self, text: &mut Vec<u8>, at: At) -> Result<Option<u8>, Error> {
        let mut next = self.reader.next();
        if let Some(sign @ (b'+' | b'-')) = next {
            text.push(sign);
            next = self.reader.next();
        }
        match next {
            Some(digit @ b'0'..=b'9') => {
                text.push(digit);
                Ok(self.while_in(text, |it| it.is_ascii_digit()))
            }
            _ => Err(self.error(at, Fault::Number("an exponent has no digits"))),
        }
    }

    /// Reads a literal behind its first quote.
    pub fn quoted(&mut self, quote: u8, at: At) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        // Where the value ends if only space follows up to the end of the line: at the last `_`.
        let mut goes_on = None;
        let mut next = self.reader.next();
        loop {
            let byte = match next {
                Some(byte) if byte == quote => return Ok(value),
                None | Some(b'\n') => return Err(self.error(at, Fault::UnclosedQuote)),
                Some(byte) => byte,
            };
            if byte == b'_' {
                goes_on = Some(value.len());
            } else if !is_space(byte) {
                goes_on = None;
            }
            let meant = match byte {
                b'\\' => match self.reader.next() {
                    None => return Err(self.error(at, Fault::UnclosedQuote)),
                    Some(digit @ b'0'..=b'7') => octal(digit, &mut self.reader),
                    Some(b'x') => hexadecimal(&mut self.reader),
                    Some(b'^') => control(&mut self.reader),
                    Some(other) => escaped(other),
                },
                _ => byte,
            };
            value.push(meant);
            next = self.reader.next();
            if let (Some(b'\n'), Some(length)) = (next, goes_on) {
                value.truncate(length);
                while next.is_some_and(is_space) {
                    next = self.reader.next();
                }
            }
        }
    }
}

fn digit(byte: u8) -> u32 {
    match byte {
        b'0'..=b'9' => u32::from(byte - b'0'),
        _ => u32::from(byte & 31) + 9,
    }
}
