//! What stands behind a backslash in a literal.

use crate::lexer::Reader;

/// A character that stands for another one, or for itself.
pub fn escaped(byte: u8) -> u8 {
    match byte.to_ascii_lowercase() {
        b'b' => 8,
        b'd' => 127,
        b'e' => 27,
        b'f' => 12,
        b'l' | b'n' => 10,
        b'r' => 13,
        b't' => 9,
        b'v' => 11,
        // Octal digits never come here; these two stand for their values.
        b'8' => 8,
        b'9' => 9,
        _ => byte,
    }
}

/// Up to three octal digits, of which one was read.
pub fn octal(first: u8, reader: &mut Reader) -> u8 {
    let mut value = u32::from(first - b'0');
    for place in 1.. {
        match reader.next() {
            Some(digit @ b'0'..=b'7') if place < 3 => value = value << 3 | u32::from(digit - b'0'),
            other => {
                reader.put_back(other);
                break;
            }
        }
    }
    value as u8
}

/// Up to two hexadecimal digits. None at all is NUL.
pub fn hexadecimal(reader: &mut Reader) -> u8 {
    let mut value = 0;
    for _ in 0..2 {
        let next = reader.next();
        match next.and_then(|it| char::from(it).to_digit(16)) {
            Some(digit) => value = value << 4 | digit,
            None => {
                reader.put_back(next);
                break;
            }
        }
    }
    value as u8
}

/// A control character, by its letter.
pub fn control(reader: &mut Reader) -> u8 {
    reader.next().map_or(0, |it| it & 31)
}
