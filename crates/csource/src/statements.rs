//! Where do statements begin and end, and what are they?

use crate::expressions::leaf;
use crate::lex::{Kind, Token};
use crate::parser::{Parser, Trouble};
use crate::tree::{Arm, Body, Expr, Statement, What};
use crate::words::Word;

const ASM: &str = "operands of an asm statement";

impl Parser<'_, '_> {
    /// A block in braces.
    pub fn block(&mut self) -> Result<Vec<Statement>, Trouble> {
        self.expect(Kind::OpenBrace, "a block")?;
        self.types.enter();
        let items = self.items()?;
        self.types.leave();
        self.expect(Kind::CloseBrace, "the end of a block")?;
        Ok(items)
    }

    /// All up to a closing brace.
    pub fn items(&mut self) -> Result<Vec<Statement>, Trouble> {
        let mut items = Vec::new();
        let mut has_statements = false;
        while self.kind() != Kind::CloseBrace {
            let item = self.statement()?;
            match item.what {
                What::Declaration { .. } | What::LabelNames(_) | What::Function(_) => {
                    self.mixes_declarations |= has_statements;
                }
                _ => has_statements = true,
            }
            items.push(item);
        }
        Ok(items)
    }

    /// What an `if` or a loop governs.
    fn body(&mut self) -> Result<Body, Trouble> {
        let start = self.at;
        let mut items = Vec::new();
        loop {
            let statement = self.deeper(Self::statement)?;
            let is_label = matches!(statement.what, What::Label(_) | What::Case | What::Default);
            items.push(statement);
            if !is_label || self.kind() == Kind::CloseBrace {
                break;
            }
        }
        let mut in_braces = false;
        if let [
            Statement {
                what: What::Block(inner),
                tokens,
            },
        ] = items.as_mut_slice()
            && self.kind_at(tokens.start) == Kind::OpenBrace
        {
            items = std::mem::take(inner);
            in_braces = true;
        }
        Ok(Body {
            tokens: start..self.at,
            items,
            in_braces,
        })
    }

    fn statement(&mut self) -> Result<Statement, Trouble> {
        let start = self.at;
        let what = self.what()?;
        Ok(Statement {
            tokens: start..self.at,
            what,
        })
    }

    fn what(&mut self) -> Result<What, Trouble> {
        let start = self.at;
        self.skip_attributes()?;
        while self.kind() == Kind::Word(Word::Pragma) {
            self.at += 1;
            self.skip_group()?;
        }
        match self.kind() {
            Kind::Semicolon => {
                self.at += 1;
                Ok(What::Empty)
            }
            Kind::OpenBrace => Ok(What::Block(self.deeper(Self::block)?)),
            Kind::Name if self.next_kind() == Kind::Colon => self.label(),
            Kind::Word(word) => self.by_word(word, start),
            _ => self.simple(start),
        }
    }

    fn by_word(&mut self, word: Word, start: u32) -> Result<What, Trouble> {
        match word {
            Word::If => self.conditional(),
            Word::While => {
                self.at += 1;
                let condition = self.in_parens()?;
                let body = Box::new(self.body()?);
                Ok(What::While { condition, body })
            }
            Word::Do => self.repeated(),
            Word::For => self.counted(),
            Word::Switch => {
                self.at += 1;
                let condition = self.in_parens()?;
                let body = Box::new(self.body()?);
                Ok(What::Switch { condition, body })
            }
            Word::Case => self.case(),
            Word::Default if self.next_kind() == Kind::Colon => {
                self.at += 2;
                self.skip_label_attributes()?;
                Ok(What::Default)
            }
            Word::Goto => self.jump(),
            Word::Return => {
                self.at += 1;
                let value = match self.kind() {
                    Kind::Semicolon => None,
                    _ => Some(self.expression()?),
                };
                self.end_with(What::Return(value))
            }
            Word::Break => {
                self.at += 1;
                self.end_with(What::Break)
            }
            Word::Continue => {
                self.at += 1;
                self.end_with(What::Continue)
            }
            Word::Asm => self.assembly(),
            Word::LabelDeclaration => self.label_names(),
            Word::StaticAssert => {
                self.at += 1;
                self.skip_group()?;
                self.end_with(What::Empty)
            }
            _ => self.simple(start),
        }
    }

    fn end_with(&mut self, what: What) -> Result<What, Trouble> {
        self.expect(Kind::Semicolon, "a semicolon")?;
        Ok(what)
    }

    /// A declaration, or an expression.
    fn simple(&mut self, start: u32) -> Result<What, Trouble> {
        let mut at = self.at;
        while self.kind_at(at) == Kind::Word(Word::Extension) {
            at += 1;
        }
        let has_attributes = self.at > start;
        let is_unknown_type =
            self.kind_at(at) == Kind::Name && matches!(self.kind_at(at + 1), Kind::Name);
        if self.begins_type(at) || is_unknown_type || has_attributes {
            return self.declaration();
        }
        let mut value = self.expression()?;
        // A name by itself does nothing, unless it is a macro.
        value.may_be_lost |= self.macros.is_some() && value.tokens == (at..at + 1);
        self.end_with(What::Expression(value))
    }

    pub fn in_parens(&mut self) -> Result<Expr, Trouble> {
        self.expect(Kind::OpenParen, "a parenthesis")?;
        let inside = self.expression()?;
        self.expect(Kind::CloseParen, "a closing parenthesis")?;
        Ok(inside)
    }

    fn conditional(&mut self) -> Result<What, Trouble> {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            self.at += 1;
            let condition = self.in_parens()?;
            let body = self.body()?;
            arms.push(Arm { condition, body });
            if !self.take(Kind::Word(Word::Else)) {
                break;
            }
            if self.kind() != Kind::Word(Word::If) || self.tokens[self.at as usize].after_pragma {
                otherwise = Some(self.body()?);
                break;
            }
        }
        Ok(What::If { arms, otherwise })
    }

    fn repeated(&mut self) -> Result<What, Trouble> {
        self.at += 1;
        let body = Box::new(self.body()?);
        self.expect(Kind::Word(Word::While), "the `while` of a `do`")?;
        let condition = self.in_parens()?;
        self.end_with(What::Do { body, condition })
    }

    fn counted(&mut self) -> Result<What, Trouble> {
        self.at += 1;
        self.expect(Kind::OpenParen, "a parenthesis")?;
        self.types.enter();
        let first = self.at;
        let start = match self.take(Kind::Semicolon) {
            true => None,
            false => {
                let what = self.simple(first)?;
                self.mixes_declarations |= matches!(what, What::Declaration { .. });
                let tokens = first..self.at;
                Some(Box::new(Statement { tokens, what }))
            }
        };
        let condition = match self.kind() {
            Kind::Semicolon => None,
            _ => Some(Box::new(self.expression()?)),
        };
        self.expect(Kind::Semicolon, "the second `;` of a `for`")?;
        let step = match self.kind() {
            Kind::CloseParen => None,
            _ => Some(Box::new(self.expression()?)),
        };
        self.expect(Kind::CloseParen, "a closing parenthesis")?;
        let body = Box::new(self.body()?);
        self.types.leave();
        Ok(What::For {
            start,
            condition,
            step,
            body,
        })
    }

    fn label(&mut self) -> Result<What, Trouble> {
        let name = self.name(self.at);
        self.at += 2;
        self.skip_label_attributes()?;
        Ok(What::Label(name))
    }

    /// Attributes behind a colon are the label's, but `fallthrough` is a statement.
    fn skip_label_attributes(&mut self) -> Result<(), Trouble> {
        let start = self.at;
        let falls = self.skip_attributes()?;
        let is_declaration = self.begins_type(self.at);
        if falls || is_declaration {
            self.at = start;
        }
        Ok(())
    }

    fn case(&mut self) -> Result<What, Trouble> {
        let mut questions = 0;
        self.at += 1;
        loop {
            match self.kind() {
                Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace => {
                    self.skip_group()?;
                    continue;
                }
                Kind::Question => questions += 1,
                Kind::Colon if questions == 0 => break,
                Kind::Colon => questions -= 1,
                Kind::Semicolon | Kind::CloseBrace | Kind::CloseParen | Kind::Stray => {
                    return Err(self.unexpected("the `:` of a `case`"));
                }
                _ => (),
            }
            self.at += 1;
        }
        self.at += 1;
        self.skip_label_attributes()?;
        Ok(What::Case)
    }

    fn jump(&mut self) -> Result<What, Trouble> {
        self.at += 1;
        if self.kind() == Kind::Name {
            let name = self.name(self.at);
            self.at += 1;
            return self.end_with(What::Goto(name));
        }
        let target = self.expression()?;
        self.end_with(What::ComputedGoto(target))
    }

    fn label_names(&mut self) -> Result<What, Trouble> {
        let mut names = Vec::new();
        while !matches!(self.kind(), Kind::Semicolon | Kind::Stray) {
            if self.kind() == Kind::Name {
                names.push(self.name(self.at));
            }
            self.at += 1;
        }
        self.end_with(What::LabelNames(names))
    }

    /// Whether an assembler text has instructions that may lead elsewhere, on any machine.
    fn may_leave(&self, open: u32) -> bool {
        const LEAVING: [&[u8]; 8] = [
            b"call", b"jmp", b"sys", b"int", b"ret", b"svc", b"ecall", b"bl",
        ];
        let mut at = open + 1;
        while self.kind_at(at) == Kind::Text {
            let text = self.bytes(at);
            let has = |word: &&[u8]| text.windows(word.len()).any(|it| it == *word);
            if LEAVING.iter().any(has) {
                return true;
            }
            at += 1;
        }
        // A macro's name, or nothing at all.
        at == open + 1
    }

    fn assembly(&mut self) -> Result<What, Trouble> {
        let mut jumps = false;
        self.at += 1;
        while let Kind::Word(word) = self.kind() {
            jumps |= word == Word::Goto;
            self.at += 1;
        }
        let open = self.at;
        self.skip_group()?;
        self.leave_alone(open, self.at, ASM);
        let mut labels = Vec::new();
        let mut calls = self.may_leave(open);
        let (mut at, mut colons) = (open + 1, 0);
        while at < self.at {
            match self.kind_at(at) {
                Kind::Colon => colons += 1,
                Kind::Name if colons >= 4 && jumps => labels.push(self.name(at)),
                Kind::Name if self.kind_at(at + 1) == Kind::OpenParen => calls = true,
                _ => (),
            }
            at += 1;
        }
        self.end_with(What::Asm {
            labels,
            may_be_lost: jumps || calls,
        })
    }
}

/// Whether a condition is always true, as every compiler sees.
pub fn is_true(expr: &Expr, text: &[u8], tokens: &[Token]) -> bool {
    literal(expr, text, tokens).is_some_and(|it| matches!(it, b"1" | b"true"))
}

/// Whether it never is.
pub fn is_false(expr: &Expr, text: &[u8], tokens: &[Token]) -> bool {
    literal(expr, text, tokens).is_some_and(|it| matches!(it, b"0" | b"false"))
}

/// What a constant is, to those who put something else in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// A number: not 0, or not an integer.
    Number,
    /// A string.
    Text,
    /// It may be 0, which is a null pointer only as long as it is a constant.
    MaybeNull,
}

/// What an expression that is constant may be.
pub fn constant(expr: &Expr, text: &[u8], tokens: &[Token]) -> Constant {
    let range = expr.tokens.start as usize..expr.tokens.end as usize;
    let tokens = tokens.get(range).unwrap_or_default();
    let is_number = |it: &Token| match it.kind {
        Kind::Number => !is_zero(&text[it.start as usize..it.end as usize]),
        kind => kind == Kind::Word(Word::SizeOf),
    };
    match tokens {
        _ if tokens.iter().any(|it| it.kind == Kind::Text) => Constant::Text,
        _ if tokens.iter().any(is_number) => Constant::Number,
        _ => Constant::MaybeNull,
    }
}

/// Whether a literal is an integer or a character of value 0.
fn is_zero(literal: &[u8]) -> bool {
    if let Some(escape) = literal.split(|it| *it == b'\'').nth(1)
        && literal.ends_with(b"'")
    {
        let digits = escape.strip_prefix(b"\\x").or(escape.strip_prefix(b"\\"));
        return digits.is_some_and(|it| !it.is_empty() && it.iter().all(|it| *it == b'0'));
    }
    let is_hexadecimal = literal.starts_with(b"0x") || literal.starts_with(b"0X");
    let says_more = |it: &u8| match it {
        b'1'..=b'9' | b'.' | b'e' | b'E' => true,
        b'a'..=b'f' | b'A'..=b'F' | b'p' | b'P' => is_hexadecimal,
        _ => false,
    };
    !literal.iter().any(says_more)
}

/// The one token of an expression, parentheses aside.
fn literal<'t>(expr: &Expr, text: &'t [u8], tokens: &[Token]) -> Option<&'t [u8]> {
    let range = expr.tokens.start as usize..expr.tokens.end as usize;
    let is_paren = |it: &&Token| matches!(it.kind, Kind::OpenParen | Kind::CloseParen);
    let mut rest = tokens.get(range)?.iter().filter(|it| !is_paren(it));
    let only = rest.next().filter(|_| rest.next().is_none())?;
    text.get(only.start as usize..only.end as usize)
}

/// An expression of which only its loss is known.
pub fn lost(at: u32) -> Expr {
    Expr {
        may_be_lost: true,
        is_constant: false,
        ..leaf(at..at, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::is_zero;

    #[test]
    fn zeros_are_told_from_other_literals() {
        for zero in [
            "0", "00", "0x0", "0XUL", "0L", "0u", "0b0", "'\\0'", "L'\\000'", "'\\x00'",
        ] {
            assert!(is_zero(zero.as_bytes()), "{zero}");
        }
        for other in [
            "1", "10", "0xE", "0b1", "0.0", "0e0", "1'000", "'0'", "'x'", "'\\n'", "'\\''",
            "'\\\\'", "'\\07'",
        ] {
            assert!(!is_zero(other.as_bytes()), "{other}");
        }
    }
}
