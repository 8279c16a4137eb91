//! JSON there and back again: ARGUMENT rounds.
//!
//! With `--cfg bare` it starts as a program in C does: else Rust reads where its stack is from a
//! list of all memory, which is never the same.
#![cfg_attr(bare, no_main)]

use std::collections::BTreeMap;
use std::fmt::{self, Write};

#[derive(Debug, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Number(i64),
    Text(String),
    List(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Text(text) => quoted(text, f),
            Value::List(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at > 0 { "," } else { "" })?;
                }
                f.write_char(']')
            }
            Value::Object(members) => {
                f.write_char('{')?;
                for (at, (name, value)) in members.iter().enumerate() {
                    f.write_str(if at > 0 { "," } else { "" })?;
                    quoted(name, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(f, "\\{letter}")?,
            '\n' => f.write_str("\\n")?,
            _ => f.write_char(letter)?,
        }
    }
    f.write_char('"')
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, wanted: &str) -> Result<(), String> {
        self.next();
        if !self.text[self.at..].starts_with(wanted.as_bytes()) {
            return Err(format!("no {wanted} at {}", self.at));
        }
        self.at += wanted.len();
        Ok(())
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.next().ok_or("nothing left")? {
            b'n' => self.eat("null").map(|()| Value::Null),
            b't' => self.eat("true").map(|()| Value::Bool(true)),
            b'f' => self.eat("false").map(|()| Value::Bool(false)),
            b'"' => self.string().map(Value::Text),
            b'[' => self.list(),
            b'{' => self.object(),
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        while matches!(self.text.get(self.at), Some(b'-' | b'0'..=b'9')) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.text[start..self.at]).map_err(|e| e.to_string())?;
        digits.parse().map(Value::Number).map_err(|e| format!("{digits}: {e}"))
    }

    fn string(&mut self) -> Result<String, String> {
        self.eat("\"")?;
        let mut bytes = Vec::new();
        loop {
            match self.text.get(self.at).ok_or("open string")? {
                b'"' => break,
                b'\\' => {
                    self.at += 1;
                    let escaped = *self.text.get(self.at).ok_or("open escape")?;
                    bytes.push(if escaped == b'n' { b'\n' } else { escaped });
                }
                byte => bytes.push(*byte),
            }
            self.at += 1;
        }
        self.at += 1;
        String::from_utf8(bytes).map_err(|e| e.to_string())
    }

    fn list(&mut self) -> Result<Value, String> {
        self.eat("[")?;
        let mut items = Vec::new();
        while self.next() != Some(b']') {
            if !items.is_empty() {
                self.eat(",")?;
            }
            items.push(self.value()?);
        }
        self.eat("]").map(|()| Value::List(items))
    }

    fn object(&mut self) -> Result<Value, String> {
        self.eat("{")?;
        let mut members = BTreeMap::new();
        while self.next() != Some(b'}') {
            if !members.is_empty() {
                self.eat(",")?;
            }
            self.next();
            let name = self.string()?;
            self.eat(":")?;
            members.insert(name, self.value()?);
        }
        self.eat("}").map(|()| Value::Object(members))
    }
}

fn parse(text: &str) -> Result<Value, String> {
    Parser { text: text.as_bytes(), at: 0 }.value()
}

struct Dice(u32);

impl Dice {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1103515245).wrapping_add(12345);
        (self.0 >> 8) % limit
    }
}

fn random(dice: &mut Dice, depth: u32) -> Value {
    match dice.below(if depth == 0 { 4 } else { 7 }) {
        0 => Value::Null,
        1 => Value::Bool(dice.below(2) == 1),
        2 => Value::Number(i64::from(dice.below(1 << 20)) - 1000),
        3 => Value::Text(format!("text \"{}\"\nline", dice.below(5000))),
        4 | 5 => Value::List((0..dice.below(9)).map(|_| random(dice, depth - 1)).collect()),
        _ => {
            let members = 0..dice.below(9);
            Value::Object(members.map(|at| (format!("member {at}"), random(dice, depth - 1))).collect())
        }
    }
}

#[cfg(bare)]
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    work();
    0
}

#[cfg(not(bare))]
fn main() {
    work();
}

fn work() {
    let rounds: u32 = std::env::args().nth(1).map_or(1, |word| word.parse().unwrap());
    let mut dice = Dice(5);
    let mut bytes = 0;
    for _ in 0..rounds {
        let value = Value::List((0..20).map(|_| random(&mut dice, 5)).collect());
        let text = value.to_string();
        assert_eq!(parse(&text).unwrap(), value);
        assert!(parse(&text[..text.len() - 1]).is_err());
        bytes += text.len();
    }
    println!("{rounds} rounds: {bytes} bytes");
}
