//! Lexemes in, declarations out. Expressions are read by `expressions.rs`.

use std::collections::HashMap;

use crate::error::{Error, Fault};
use crate::files::Names;
use crate::lexer::Lexeme;
use crate::line::words;
use crate::tree::{
    Constant, Global, GlobalKind, LexemeId, Local, LocalKind, Node, Procedure, Program, Record,
};
use crate::words::{Sort, Word};

pub fn program(lexemes: &[Lexeme], names: &Names) -> Result<Program, Error> {
    let mut parser = Parser {
        lexemes,
        names,
        at: 0,
        depth: 0,
        scope: Scope::default(),
        program: Program::default(),
        globals: HashMap::new(),
    };
    while parser.sort() != Sort::End {
        parser.declaration()?;
    }
    // The last one comes first.
    parser.program.invocable.reverse();
    Ok(parser.program)
}

pub struct Parser<'a> {
    lexemes: &'a [Lexeme],
    names: &'a Names,
    at: usize,
    /// How many expressions are open, around the one that is read.
    pub depth: u32,
    pub scope: Scope,
    program: Program,
    /// Which global a name is.
    globals: HashMap<Vec<u8>, usize>,
}

/// What a procedure has named so far.
#[derive(Default)]
pub struct Scope {
    locals: Vec<Local>,
    constants: Vec<Constant>,
    numbers: HashMap<Vec<u8>, u32>,
    constant_numbers: HashMap<Constant, u32>,
}

impl Scope {
    /// The number of a name that is used.
    pub fn name(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.add(name, LocalKind::Undeclared)
    }

    fn add(&mut self, name: &[u8], kind: LocalKind) -> u32 {
        let number = self.locals.len() as u32;
        self.numbers.insert(name.to_vec(), number);
        self.locals.push(Local {
            name: name.to_vec(),
            kind,
        });
        number
    }

    pub fn constant(&mut self, constant: Constant) -> u32 {
        if let Some(number) = self.constant_numbers.get(&constant) {
            return *number;
        }
        let number = self.constants.len() as u32;
        self.constant_numbers.insert(constant.clone(), number);
        self.constants.push(constant);
        number
    }

    fn declare(&mut self, name: &[u8], kind: LocalKind) -> bool {
        let is_new = !self.numbers.contains_key(name);
        self.add(name, kind);
        is_new
    }
}

impl<'a> Parser<'a> {
    pub fn peek(&self) -> &'a Lexeme {
        // The last one is the end, and is never taken.
        &self.lexemes[self.at.min(self.lexemes.len() - 1)]
    }

    pub fn sort(&self) -> Sort {
        self.peek().sort
    }

    pub fn take(&mut self) -> (LexemeId, &'a Lexeme) {
        let (number, lexeme) = (self.at as LexemeId, self.peek());
        if lexeme.sort != Sort::End {
            self.at += 1;
        }
        (number, lexeme)
    }

    pub fn takes(&mut self, sort: Sort) -> Option<(LexemeId, &'a Lexeme)> {
        (self.sort() == sort).then(|| self.take())
    }

    pub fn takes_word(&mut self, word: Word) -> Option<LexemeId> {
        self.takes(Sort::Word(word)).map(|(number, _)| number)
    }

    pub fn wants(
        &mut self,
        sort: Sort,
        wanted: &'static str,
    ) -> Result<(LexemeId, &'a Lexeme), Error> {
        self.takes(sort).ok_or_else(|| self.syntax(wanted))
    }

    pub fn syntax(&self, wanted: &'static str) -> Error {
        let found = match self.sort() {
            Sort::End => "end of file".to_owned(),
            _ => words(&self.peek().text),
        };
        self.error(self.peek(), Fault::Syntax { wanted, found })
    }

    pub fn error(&self, lexeme: &Lexeme, what: Fault) -> Error {
        Error {
            file: words(self.names.name(lexeme.origin.file)),
            line: lexeme.origin.line,
            column: lexeme.origin.column,
            what,
        }
    }

    fn declaration(&mut self) -> Result<(), Error> {
        let Sort::Word(word) = self.sort() else {
            return Err(self.syntax("a declaration"));
        };
        match word {
            Word::Procedure => self.procedure(),
            Word::Record => self.record(),
            Word::Global => {
                self.take();
                for lexeme in self.names()? {
                    self.global(lexeme, GlobalKind::Variable, 0)?;
                }
                Ok(())
            }
            Word::Link => self.link(),
            Word::Invocable => self.invocable(),
            _ => Err(self.syntax("a declaration")),
        }
    }

    fn names(&mut self) -> Result<Vec<&'a Lexeme>, Error> {
        let mut found = vec![self.wants(Sort::Name, "a name")?.1];
        while self.takes(Sort::Comma).is_some() {
            found.push(self.wants(Sort::Name, "a name")?.1);
        }
        Ok(found)
    }

    fn global(&mut self, name: &Lexeme, kind: GlobalKind, arguments: i64) -> Result<(), Error> {
        let globals = &mut self.program.globals;
        let known = self.globals.get(&name.value).copied();
        match known.and_then(|it| globals.get_mut(it)) {
            None => {
                self.globals.insert(name.value.clone(), globals.len());
                globals.push(Global {
                    name: name.value.clone(),
                    kind,
                    arguments,
                });
            }
            // To say that a procedure is global is superfluous, not wrong.
            Some(_) if kind == GlobalKind::Variable => (),
            Some(known) if known.kind == GlobalKind::Variable => {
                (known.kind, known.arguments) = (kind, arguments);
            }
            Some(_) => {
                let fault = Fault::Redeclared(words(&name.value));
                return Err(self.error(name, fault));
            }
        }
        Ok(())
    }

    fn declare(&mut self, name: &Lexeme, kind: LocalKind) -> Result<(), Error> {
        match self.scope.declare(&name.value, kind) {
            true => Ok(()),
            false => Err(self.error(name, Fault::Redeclared(words(&name.value)))),
        }
    }

    fn link(&mut self) -> Result<(), Error> {
        loop {
            self.take();
            let (_, lexeme) = match self.sort() {
                Sort::Name | Sort::String => self.take(),
                _ => return Err(self.syntax("the name of a file")),
            };
            self.program.links.push(until_nul(&lexeme.value).to_vec());
            if self.sort() != Sort::Comma {
                return Ok(());
            }
        }
    }

    fn invocable(&mut self) -> Result<(), Error> {
        loop {
            self.take();
            let (_, lexeme) = match self.sort() {
                Sort::Name | Sort::String => self.take(),
                _ => return Err(self.syntax("a string")),
            };
            let value = until_nul(&lexeme.value);
            match lexeme.sort {
                Sort::Name if value == b"all" => self.program.invocable.push(b"0".to_vec()),
                Sort::Name => {
                    return Err(self.error(lexeme, Fault::Invocable(words(value))));
                }
                // Of operators nothing need be said.
                _ if value
                    .first()
                    .is_some_and(|it| crate::macros::begins_name(*it)) =>
                {
                    self.program.invocable.push(value.to_vec());
                }
                _ => (),
            }
            if lexeme.sort == Sort::String && self.takes(Sort::Colon).is_some() {
                self.wants(Sort::Integer, "a number of arguments")?;
            }
            if self.sort() != Sort::Comma {
                return Ok(());
            }
        }
    }

    /// What is between the parentheses behind a name: as many names as it says, negative if the last
    /// takes what is left.
    fn parameters(&mut self, may_take_rest: bool) -> Result<i64, Error> {
        self.wants(Sort::OpenParenthesis, "(")?;
        let mut number = 0;
        if self.sort() == Sort::Name {
            for name in self.names()? {
                self.declare(name, LocalKind::Argument)?;
                number += 1;
            }
            if may_take_rest && self.takes(Sort::OpenBracket).is_some() {
                self.wants(Sort::CloseBracket, "]")?;
                number = -number;
            }
        }
        self.wants(Sort::CloseParenthesis, ")")?;
        Ok(number)
    }

    fn record(&mut self) -> Result<(), Error> {
        self.take();
        let (_, name) = self.wants(Sort::Name, "the name of a record")?;
        let fields = self.parameters(false)?;
        self.global(name, GlobalKind::Record, fields)?;
        let fields = std::mem::take(&mut self.scope).locals;
        self.program.records.push(Record {
            name: name.value.clone(),
            fields: fields.into_iter().map(|it| it.name).collect(),
        });
        Ok(())
    }

    fn procedure(&mut self) -> Result<(), Error> {
        self.take();
        let (_, name) = self.wants(Sort::Name, "the name of a procedure")?;
        let arguments = self.parameters(true)?;
        self.global(name, GlobalKind::Procedure, arguments)?;
        self.semicolon()?;
        loop {
            let kind = match self.sort() {
                Sort::Word(Word::Local) => LocalKind::Dynamic,
                Sort::Word(Word::Static) => LocalKind::Static,
                _ => break,
            };
            self.take();
            for name in self.names()? {
                self.declare(name, kind)?;
            }
            self.semicolon()?;
        }
        let mut initial = None;
        if let Some(lexeme) = self.takes_word(Word::Initial) {
            let node = self.expression()?;
            self.semicolon()?;
            initial = Some((lexeme, node)).filter(|(_, node)| !node.is_empty());
        }
        let mut body = Vec::new();
        while self.sort() != Sort::Word(Word::End) {
            body.push(self.optional()?);
            self.semicolon()?;
        }
        let (_, end) = self.take();
        body.push(Node::empty());
        let scope = std::mem::take(&mut self.scope);
        self.program.procedures.push(Procedure {
            name: name.value.clone(),
            at: name.at,
            end: end.at,
            locals: scope.locals,
            constants: scope.constants,
            initial,
            body,
        });
        Ok(())
    }

    fn semicolon(&mut self) -> Result<(), Error> {
        self.wants(Sort::Semicolon, "a semicolon or a new line")?;
        Ok(())
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|it| *it == 0).next().unwrap_or(text)
}
