//! Which functions does a text define?

use crate::lex::{Kind, Lexed};
use crate::names::Names;
use crate::parser::{NONE, Parser, Trouble, Types};
use crate::words::Word;

/// A function that a text defines, not yet looked into.
#[derive(Clone, Copy, Debug)]
pub struct Outlined {
    /// Its first token.
    pub first: u32,
    pub name_token: u32,
    /// The brace that opens its body.
    pub open: u32,
    pub is_static: bool,
    pub is_inline: bool,
    pub has_attributes: bool,
}

/// All that stands outside of functions, as far as functions depend on it.
pub struct Outline<'t> {
    pub functions: Vec<Outlined>,
    pub types: Types<'t>,
}

/// Finds the functions of a text, and the names of types.
pub fn outline<'t>(
    text: &'t [u8],
    lexed: &'t Lexed,
    partner: &'t [u32],
) -> Result<Outline<'t>, Trouble> {
    let nothing = Names::default();
    let mut parser = Parser::new(text, &lexed.tokens, partner, &nothing);
    let mut functions = Vec::new();
    while (parser.at as usize) < lexed.tokens.len() {
        functions.extend(parser.external()?);
    }
    Ok(Outline {
        functions,
        types: parser.types,
    })
}

impl Parser<'_, '_> {
    /// A declaration or definition outside of functions.
    fn external(&mut self) -> Result<Option<Outlined>, Trouble> {
        let first = self.at;
        match self.kind() {
            Kind::Semicolon => {
                self.at += 1;
                return Ok(None);
            }
            Kind::Word(Word::Asm | Word::StaticAssert | Word::Pragma) => {
                self.at += 1;
                self.skip_group()?;
                self.take(Kind::Semicolon);
                return Ok(None);
            }
            // extern "C" { and its end
            Kind::Word(Word::Extern) if self.next_kind() == Kind::Text => {
                self.at += 2;
                self.take(Kind::OpenBrace);
                return Ok(None);
            }
            Kind::CloseBrace => {
                self.at += 1;
                return Ok(None);
            }
            _ => (),
        }
        let specifiers = self.specifiers()?;
        loop {
            let name = self.declared_name();
            self.skip_declarator_or_parameters(name)?;
            match self.kind() {
                Kind::OpenBrace => {
                    let name_token =
                        name.ok_or_else(|| self.unexpected("the name of a function"))?;
                    let open = self.at;
                    self.skip_group()?;
                    let attributes = (name_token..open)
                        .any(|at| self.kind_at(at) == Kind::Word(Word::Attribute));
                    return Ok(Some(Outlined {
                        first,
                        name_token,
                        open,
                        is_static: specifiers.is_static,
                        is_inline: specifiers.is_inline,
                        has_attributes: specifiers.has_attributes || attributes,
                    }));
                }
                Kind::Is => {
                    self.at += 1;
                    self.skip_initialiser()?;
                }
                _ => (),
            }
            if let Some(name) = name {
                self.types.declare(self.bytes(name), specifiers.is_typedef);
            }
            match self.kind() {
                Kind::Comma => self.at += 1,
                Kind::Semicolon => {
                    self.at += 1;
                    return Ok(None);
                }
                _ => return Err(self.unexpected("the end of a declaration")),
            }
        }
    }

    /// Steps over a declarator; and, where a function is defined as it once was, over the
    /// declarations of its parameters.
    fn skip_declarator_or_parameters(&mut self, name: Option<u32>) -> Result<(), Trouble> {
        let has_parameters = name.is_some_and(|name| self.has_old_parameters(name));
        self.skip_declarator()?;
        while has_parameters && matches!(self.kind(), Kind::Semicolon | Kind::Comma) {
            self.at += 1;
            self.skip_declarator()?;
        }
        Ok(())
    }

    /// `f (a, b) int a, b; {`: what follows the list is neither its end nor a body.
    fn has_old_parameters(&self, name: u32) -> bool {
        let mut at = name + 1;
        while self.kind_at(at) == Kind::CloseParen {
            at += 1;
        }
        if self.kind_at(at) != Kind::OpenParen {
            return false;
        }
        let close = self.partner[at as usize];
        if close == NONE {
            return false;
        }
        let mut behind = close + 1;
        // int (*f (a)) (int) int a; {
        while matches!(self.kind_at(behind), Kind::CloseParen | Kind::OpenParen) {
            behind = match self.kind_at(behind) {
                Kind::OpenParen => self.partner[behind as usize],
                _ => behind,
            } + 1;
        }
        match self.kind_at(behind) {
            Kind::Name => true,
            Kind::Word(word) => {
                !matches!(word, Word::Attribute | Word::Asm) && self.begins_type(behind)
            }
            _ => false,
        }
    }
}
