//! Where does every statement begin, and what is it? What the parser saw, for those who check it.

use crate::lex::{Kind, Token};
use crate::tree::{Atom, Body, Expr, Function, Shape, Statement, What};
use crate::words::Word;

/// Where a statement, or a declaration inside of a function, begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatementStart {
    /// Its first token.
    pub token: u32,
    /// The byte of the text where that is.
    pub offset: u32,
    /// `if`, `block`, `declaration`, `expression` and so on.
    pub kind: &'static str,
}

/// The statements of a function, its body and functions inside of it included.
pub fn of_function(function: &Function, tokens: &[Token]) -> Vec<StatementStart> {
    let mut finder = Finder {
        tokens,
        found: Vec::new(),
    };
    finder.function(function);
    finder.found
}

struct Finder<'t> {
    tokens: &'t [Token],
    found: Vec<StatementStart>,
}

impl Finder<'_> {
    fn at(&mut self, token: u32, kind: &'static str) {
        self.found.push(StatementStart {
            token,
            offset: self.tokens[token as usize].start,
            kind,
        });
    }

    fn function(&mut self, function: &Function) {
        self.block(function.open, &function.items);
    }

    fn block(&mut self, open: u32, items: &[Statement]) {
        self.at(open, "block");
        items.iter().for_each(|it| self.statement(it));
    }

    fn body(&mut self, body: &Body) {
        match body.in_braces {
            true => self.block(body.tokens.start, &body.items),
            false => body.items.iter().for_each(|it| self.statement(it)),
        }
    }

    fn statement(&mut self, statement: &Statement) {
        let start = statement.tokens.start;
        let kind = match &statement.what {
            What::Expression(_) => "expression",
            What::Declaration { .. } | What::LabelNames(_) => "declaration",
            What::Function(function) => return self.function(function),
            What::Block(items) => return self.block(start, items),
            What::If { .. } => "if",
            What::While { .. } => "while",
            What::Do { .. } => "do",
            What::For { .. } => "for",
            What::Switch { .. } => "switch",
            What::Label(_) => "label",
            What::Case => "case",
            What::Default => "default",
            What::Goto(_) | What::ComputedGoto(_) => "goto",
            What::Return(_) => "return",
            What::Break => "break",
            What::Continue => "continue",
            What::Asm { .. } => "asm",
            What::Empty if self.kind(start) == Kind::Word(Word::StaticAssert) => "declaration",
            What::Empty => "empty",
        };
        self.at(start, kind);
        self.inside(&statement.what);
    }

    fn kind(&self, token: u32) -> Kind {
        self.tokens[token as usize].kind
    }

    fn inside(&mut self, what: &What) {
        match what {
            What::Expression(value) | What::ComputedGoto(value) | What::Return(Some(value)) => {
                self.expression(value);
            }
            What::Declaration { values, .. } => values.iter().for_each(|it| self.expression(it)),
            What::If { arms, otherwise } => {
                for (number, arm) in arms.iter().enumerate() {
                    if number > 0 {
                        // `if (`
                        self.at(arm.condition.tokens.start - 2, "if");
                    }
                    self.expression(&arm.condition);
                    self.body(&arm.body);
                }
                otherwise.iter().for_each(|it| self.body(it));
            }
            What::While { condition, body }
            | What::Do { body, condition }
            | What::Switch { condition, body } => {
                self.expression(condition);
                self.body(body);
            }
            What::For {
                start,
                condition,
                step,
                body,
            } => {
                if let Some(start) = start {
                    // An expression is a clause there, and no statement.
                    match &start.what {
                        What::Declaration { .. } => self.statement(start),
                        other => self.inside(other),
                    }
                }
                condition
                    .iter()
                    .chain(step)
                    .for_each(|it| self.expression(it));
                self.body(body);
            }
            _ => (),
        }
    }

    /// Statements inside of an expression: those in `({ ... })`.
    fn expression(&mut self, expr: &Expr) {
        match &expr.shape {
            Shape::Leaf(atoms) => atoms.iter().for_each(|it| self.atom(it)),
            Shape::Sequence(parts) | Shape::Logic(parts) => {
                parts.iter().for_each(|it| self.expression(it));
            }
            Shape::Choice { condition, yes, no } => {
                self.expression(condition);
                yes.iter().for_each(|it| self.expression(it));
                self.expression(no);
            }
        }
    }

    fn atom(&mut self, atom: &Atom) {
        match atom {
            Atom::Group(inside) => self.expression(inside),
            Atom::Call(call) => call.arguments.iter().for_each(|it| self.expression(it)),
            Atom::List(items) => items.iter().for_each(|it| self.expression(it)),
            Atom::Macro => (),
            Atom::Block { open, items } => self.block(*open, items),
        }
    }
}
