//! A source in; its ucode and its tokens out.

use std::rc::Rc;

use crate::error::Error;
use crate::files::Names;
use crate::generate::{Place, generate};
use crate::lexer::{Lexeme, lexemes};
use crate::preprocess::{Found, preprocess};
use crate::starts::Flow;
use crate::tokens::{Token, text};
use crate::tree::Program;
use crate::ucode::{self, Code};
use crate::{declarations, generate};

/// A file that was translated.
#[derive(Debug)]
pub struct Translation {
    pub names: Names,
    /// In the order of the text.
    pub tokens: Vec<Token>,
    pub procedures: Vec<Code>,
    program: Program,
}

impl Translation {
    /// What `icont -c` writes into the file that ends in `.u1`.
    pub fn first_file(&self) -> Vec<u8> {
        ucode::first_file(&self.procedures, &self.names)
    }

    /// What it writes into the other one.
    pub fn second_file(&self) -> Vec<u8> {
        ucode::second_file(&self.program)
    }

    /// The names of other files that are to be linked.
    pub fn links(&self) -> &[Vec<u8>] {
        &self.program.links
    }

    /// The token with a number.
    pub fn token(&self, number: u32) -> Option<&Token> {
        self.tokens.get((number as usize).checked_sub(1)?)
    }
}

/// Translates a file; `find` finds what it includes. The file has the name that ucode is to call it by.
pub fn translate(
    name: &[u8],
    text: Rc<[u8]>,
    find: &mut dyn FnMut(&[u8]) -> Option<Found>,
) -> Result<Translation, Error> {
    let mut names = Names::default();
    let file = names.add(name);
    let main = Found {
        name: name.to_vec(),
        text,
    };
    let text = preprocess(main, find, &mut names)?;
    let lexemes = lexemes(&text, file, &mut names)?;
    drop(text);
    let mut program = declarations::program(&lexemes, &names)?;
    let mut place = Place::default();
    let mut made = Vec::new();
    for procedure in std::mem::take(&mut program.procedures) {
        made.push(generate(&procedure, &mut place, &names)?);
    }
    let tokens = number(&mut made, &lexemes);
    Ok(Translation {
        names,
        tokens,
        procedures: made.into_iter().map(|it| it.code).collect(),
        program,
    })
}

/// Gives numbers to the tokens, and to instructions the tokens that they are of.
fn number(made: &mut [generate::Made], lexemes: &[Lexeme]) -> Vec<Token> {
    let mut tokens = Vec::new();
    // Procedures, and lexemes within them, are in the order of the text.
    for (procedure, made) in made.iter_mut().enumerate() {
        let first = tokens.len();
        let flow = Flow::new(made);
        for (&lexeme, mark) in &made.marks {
            let at = lexeme as usize;
            let Some(origin) = lexemes.get(at).map(|it| it.origin) else {
                continue;
            };
            tokens.push((
                lexeme,
                Token {
                    number: tokens.len() as u32 + 1,
                    file: origin.file,
                    line: origin.line,
                    column: origin.column,
                    text: text(lexemes, at, mark.kind),
                    kind: mark.kind,
                    procedure,
                    start: flow.start(mark.start),
                    callee: made.callees.get(&lexeme).map(|it| flow.number(*it)),
                },
            ));
        }
        let own = &tokens[first..];
        made.code.give_tokens(|lexeme| {
            let found = own.binary_search_by_key(&lexeme, |(it, _)| *it).ok()?;
            Some(own[found].1.number)
        });
    }
    tokens.into_iter().map(|(_, token)| token).collect()
}
