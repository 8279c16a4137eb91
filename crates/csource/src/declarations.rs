//! Which names does a declaration declare, and what does it evaluate?

use crate::lex::Kind;
use crate::parser::{NONE, Parser, Trouble, trouble};
use crate::statements::lost;
use crate::tree::{Expr, Function, What};
use crate::words::Word;

const DIMENSION: &str = "operands inside the dimension of an array";

/// The words before the first declarator.
#[derive(Default)]
pub struct Specifiers {
    pub is_typedef: bool,
    /// `static`, `extern`, `typedef`: nothing of it is evaluated where it stands.
    pub is_fixed: bool,
    pub is_static: bool,
    pub is_inline: bool,
    pub has_attributes: bool,
    has_type: bool,
}

impl Parser<'_, '_> {
    /// A declaration inside a function; or a function inside a function.
    pub fn declaration(&mut self) -> Result<What, Trouble> {
        let specifiers = self.specifiers()?;
        let mut values = Vec::new();
        let mut runs = false;
        loop {
            let name = self.declared_name();
            let start = self.at;
            self.skip_declarator()?;
            let is_variable = self.dimensions(start, &mut values);
            runs |= is_variable && !specifiers.is_fixed;
            if let Some(name) = name {
                self.types.declare(self.bytes(name), specifiers.is_typedef);
            }
            match self.kind() {
                Kind::OpenBrace => {
                    let name = name.ok_or_else(|| self.unexpected("the name of a function"))?;
                    let function = self.deeper(|it| it.function(name))?;
                    return Ok(What::Function(Box::new(function)));
                }
                Kind::Is => {
                    self.at += 1;
                    if specifiers.is_fixed {
                        self.skip_initialiser()?;
                    } else {
                        let value = self.initialiser()?;
                        runs = true;
                        if value.has_blocks || value.may_be_lost {
                            values.push(value);
                        }
                    }
                }
                _ => (),
            }
            match self.kind() {
                Kind::Comma => self.at += 1,
                Kind::Semicolon => {
                    self.at += 1;
                    runs |= !values.is_empty();
                    return Ok(What::Declaration { values, runs });
                }
                _ => return Err(self.unexpected("the end of a declaration")),
            }
        }
    }

    /// A function whose opening brace is next.
    pub fn function(&mut self, name_token: u32) -> Result<Function, Trouble> {
        let open = self.at;
        let close = self.partner[open as usize];
        if close == NONE {
            return Err(trouble(open, "a function without an end"));
        }
        self.types.enter();
        self.hide_by_parameters(name_token);
        let outer = std::mem::take(&mut self.left_alone);
        let outer_forks = std::mem::take(&mut self.forks);
        let items = self.block();
        self.types.leave();
        let left_alone = std::mem::replace(&mut self.left_alone, outer);
        let forks = std::mem::replace(&mut self.forks, outer_forks);
        Ok(Function {
            name: self.name(name_token),
            name_token,
            open,
            close,
            items: items?,
            left_alone,
            forks,
            mixes_declarations: self.mixes_declarations,
        })
    }

    /// A parameter may have the name of a type.
    fn hide_by_parameters(&mut self, name_token: u32) {
        let open = name_token + 1;
        let Some(close) = self
            .partner
            .get(open as usize)
            .copied()
            .filter(|it| *it != NONE)
        else {
            return;
        };
        for at in open + 2..close {
            let is_last = matches!(
                self.kind_at(at + 1),
                Kind::Comma | Kind::CloseParen | Kind::OpenBracket
            );
            let is_first = matches!(self.kind_at(at - 1), Kind::Comma | Kind::OpenParen);
            let may_follow = matches!(self.kind_at(at - 1), Kind::Either | Kind::Name)
                || matches!(self.kind_at(at - 1), Kind::Word(_));
            if self.kind_at(at) == Kind::Name && is_last && !is_first && may_follow {
                // `const T` declares nothing.
                let is_qualified_type = self.kind_at(at - 1) == Kind::Word(Word::Specifier)
                    || self.kind_at(at - 1) == Kind::Word(Word::Tag);
                if !is_qualified_type {
                    self.types.declare(self.bytes(at), false);
                }
            }
        }
    }

    /// The words before the first declarator.
    pub fn specifiers(&mut self) -> Result<Specifiers, Trouble> {
        let mut found = Specifiers::default();
        loop {
            match self.kind() {
                Kind::Word(Word::Typedef) => {
                    found.is_typedef = true;
                    found.is_fixed = true;
                    self.at += 1;
                }
                Kind::Word(word @ (Word::Static | Word::Extern)) => {
                    found.is_fixed = true;
                    found.is_static |= word == Word::Static;
                    self.at += 1;
                }
                Kind::Word(Word::Inline) => {
                    found.is_inline = true;
                    self.at += 1;
                }
                Kind::Word(Word::Specifier | Word::Extension) => self.at += 1,
                Kind::Word(Word::Type) => {
                    found.has_type = true;
                    self.at += 1;
                }
                Kind::Word(Word::Attribute) => {
                    found.has_attributes = true;
                    self.skip_attributes()?;
                }
                Kind::OpenBracket if self.next_kind() == Kind::OpenBracket => {
                    found.has_attributes = true;
                    self.skip_attributes()?;
                }
                Kind::Word(word @ (Word::TypeOf | Word::Alignas | Word::Atomic)) => {
                    self.at += 1;
                    found.has_type |= word == Word::TypeOf;
                    if self.kind() == Kind::OpenParen {
                        found.has_type |= word == Word::Atomic;
                        self.skip_group()?;
                    }
                }
                Kind::Word(Word::Tag) => {
                    found.has_type = true;
                    self.tag()?;
                }
                Kind::Name if !found.has_type && self.names_a_type() => {
                    found.has_type = true;
                    self.at += 1;
                }
                _ => return Ok(found),
            }
        }
    }

    fn names_a_type(&self) -> bool {
        // Two names in a row, or a name and a star: the first is a type, known or not.
        let is_followed = matches!(self.next_kind(), Kind::Name | Kind::Either);
        self.types.is_type(self.bytes(self.at)) || is_followed
    }

    /// `struct name { ... }`
    fn tag(&mut self) -> Result<(), Trouble> {
        self.at += 1;
        self.skip_attributes()?;
        if self.kind() == Kind::Name {
            self.at += 1;
        }
        if self.take(Kind::Colon) {
            // enum e : unsigned char
            while self.begins_type(self.at) {
                self.at += 1;
            }
        }
        if self.kind() == Kind::OpenBrace {
            self.skip_group()?;
            self.skip_attributes()?;
        }
        Ok(())
    }

    /// The token of the name that the declarator before us declares.
    pub fn declared_name(&self) -> Option<u32> {
        let mut at = self.at;
        loop {
            match self.kind_at(at) {
                Kind::Name => return Some(at),
                Kind::Either | Kind::OpenParen => at += 1,
                Kind::Word(Word::Specifier | Word::Extension) => at += 1,
                Kind::Word(Word::Attribute) => {
                    at = self
                        .partner
                        .get(at as usize + 1)
                        .copied()
                        .filter(|it| *it != NONE)?
                        + 1;
                }
                _ => return None,
            }
        }
    }

    /// Steps over a declarator, to its `=`, `,`, `;` or `{`.
    pub fn skip_declarator(&mut self) -> Result<(), Trouble> {
        loop {
            match self.kind() {
                Kind::OpenParen | Kind::OpenBracket => self.skip_group()?,
                Kind::Is | Kind::Comma | Kind::Semicolon | Kind::OpenBrace => return Ok(()),
                // What looks like a declaration is a macro before a statement.
                Kind::Word(word) if word.is_of_control() => {
                    return Err(self.unexpected("a declaration's `;`"));
                }
                Kind::Name | Kind::Either | Kind::Word(_) | Kind::Text => self.at += 1,
                // A field of bits.
                Kind::Colon | Kind::Number => self.at += 1,
                _ => return Err(self.unexpected("a declaration's `;`")),
            }
        }
    }

    /// Steps over an initialiser, to its `,` or `;`.
    pub fn skip_initialiser(&mut self) -> Result<(), Trouble> {
        loop {
            match self.kind() {
                Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace => self.skip_group()?,
                Kind::Comma | Kind::Semicolon => return Ok(()),
                Kind::Stray | Kind::CloseBrace | Kind::CloseParen | Kind::CloseBracket => {
                    return Err(self.unexpected("the end of an initialiser"));
                }
                _ => self.at += 1,
            }
        }
    }

    /// The dimensions of an array may be evaluated, and even call functions. Says whether they may.
    fn dimensions(&mut self, start: u32, values: &mut Vec<Expr>) -> bool {
        let behind = self.at;
        let mut is_variable = false;
        let mut at = start;
        while at < behind {
            if self.kind_at(at) == Kind::OpenBracket {
                let end = self.partner[at as usize];
                self.at = at + 1;
                // `[]`, `[*]` and `[static 3]` are no expressions.
                let value = self.expression().ok().filter(|_| self.at == end);
                if value.as_ref().is_some_and(|it| it.has_blocks) {
                    self.leave_alone(at, end, DIMENSION);
                }
                is_variable |= value.as_ref().is_some_and(|it| !it.is_constant);
                if value.is_some_and(|it| it.may_be_lost) {
                    values.push(lost(at));
                }
                at = end;
            }
            at += 1;
        }
        self.at = behind;
        is_variable
    }
}
