//! Lexemes in, expressions out.
//!
//! Binary operators are read by how tightly they bind. A word that begins a control structure takes as
//! much as it can get behind it: `a + while b do c + d` adds twice.

use crate::declarations::Parser;
use crate::error::{Error, Fault};
use crate::files::At;
use crate::lexer::Lexeme;
use crate::tree::{
    Arm, Case, Clause, Constant, Infix, LexemeId, Loop, Node, Operation, Section, What,
};
use crate::words::{KEYWORDS, Operator, Sort, Word};

/// How deep expressions may stand within each other in the text. (`icont` stops at some hundreds.)
const NESTED: u32 = 64;

/// How tall trees of expressions may be: chains of operators have no end in the text either.
const TALLEST: u32 = 2000;

/// How tightly something binds, from `&` to the operators that nothing comes between.
type Level = u8;

const LOOSEST: Level = 1;
const ASSIGNMENT: Level = 3;
const TO: Level = 4;
const ALTERNATION: Level = 5;
const POWER: Level = 10;

/// How tightly a binary operator binds.
fn level(operator: Operator) -> Option<Level> {
    use Operator::*;
    let level = match operator {
        Ampersand => LOOSEST,
        Question => 2,
        Assign | Swap | ReversibleAssign | ReversibleSwap => ASSIGNMENT,
        Bar => ALTERNATION,
        Equal | NotEqual | Greater | GreaterOrEqual | Less | LessOrEqual | Same | NotSame => 6,
        LexicallyEqual
        | LexicallyNotEqual
        | LexicallyGreater
        | LexicallyGreaterOrEqual
        | LexicallyLess
        | LexicallyLessOrEqual => 6,
        Concatenate | ConcatenateLists => 7,
        Plus | Minus | Union | Difference => 8,
        Star | Slash | Percent | Intersection => 9,
        Caret => POWER,
        Backslash | At | Bang => 11,
        Dot | Tilde => return None,
    };
    Some(level)
}

fn binds_right(level: Level) -> bool {
    matches!(level, ASSIGNMENT | ALTERNATION | POWER)
}

impl Parser<'_> {
    pub fn expression(&mut self) -> Result<Node, Error> {
        self.binary(LOOSEST)
    }

    /// An expression, or none.
    pub fn optional(&mut self) -> Result<Node, Error> {
        match self.sort().begins_expression() {
            true => self.expression(),
            false => Ok(Node::empty()),
        }
    }

    fn node(&self, at: At, lexeme: LexemeId, what: What) -> Result<Node, Error> {
        let node = Node::new(at, lexeme, what);
        match node.height > TALLEST {
            true => Err(self.error(self.peek(), Fault::TooDeep)),
            false => Ok(node),
        }
    }

    fn binary(&mut self, loosest: Level) -> Result<Node, Error> {
        self.depth += 1;
        if self.depth > NESTED {
            return Err(self.error(self.peek(), Fault::TooDeep));
        }
        let mut left = self.prefix()?;
        // What waits for its right operand, which goes on with the same kind of operator.
        let mut waiting: Vec<(Node, LexemeId, &Lexeme)> = Vec::new();
        let mut bound = loosest;
        loop {
            if waiting.is_empty() {
                bound = loosest;
            }
            let here = match self.sort() {
                Sort::Operator(it) => level(it),
                Sort::Augmented(_) => Some(ASSIGNMENT),
                Sort::Word(Word::To) => Some(TO),
                _ => None,
            };
            match here.filter(|it| *it >= bound) {
                Some(level) if binds_right(level) => {
                    let (lexeme, token) = self.take();
                    waiting.push((left, lexeme, token));
                    left = self.binary(level + 1)?;
                    bound = level;
                }
                Some(level) if waiting.is_empty() => {
                    let (lexeme, token) = self.take();
                    let right = self.binary(level + 1)?;
                    left = self.join(left, lexeme, token, right)?;
                }
                _ => match waiting.pop() {
                    Some((first, lexeme, token)) => {
                        left = self.join(first, lexeme, token, left)?;
                    }
                    None => break,
                },
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    fn join(
        &mut self,
        left: Node,
        lexeme: LexemeId,
        token: &Lexeme,
        right: Node,
    ) -> Result<Node, Error> {
        let left_at = left.at;
        let what = self.joined(token.sort, (Box::new(left), Box::new(right)))?;
        // An expression that is limited stands where it begins to be one.
        let at = match what {
            What::Limit(..) => left_at,
            _ => token.at,
        };
        self.node(at, lexeme, what)
    }

    fn joined(&mut self, sort: Sort, (left, right): (Box<Node>, Box<Node>)) -> Result<What, Error> {
        let (operator, assigns) = match sort {
            Sort::Operator(it) => (it, false),
            Sort::Augmented(it) => (it, true),
            _ => {
                let by = match self.takes_word(Word::By) {
                    Some(lexeme) => Some(Clause {
                        lexeme,
                        body: Box::new(self.binary(ALTERNATION)?),
                    }),
                    None => None,
                };
                return Ok(What::To(left, right, by));
            }
        };
        let operation = Operation::Operator(operator);
        Ok(match operator {
            Operator::Ampersand => What::Conjunction(assigns, left, right),
            Operator::Question => What::Scan(assigns, left, right),
            Operator::At => What::Activate(assigns, left, right),
            Operator::Bar => What::Alternation(left, right),
            Operator::Backslash => What::Limit(left, right),
            Operator::Bang => What::Apply(left, right),
            _ => What::Infix(Infix { operation, assigns }, left, right),
        })
    }

    fn prefix(&mut self) -> Result<Node, Error> {
        // Collected, and applied from the inside out: there may be many.
        let mut before = Vec::new();
        loop {
            match self.sort() {
                Sort::Operator(Operator::Ampersand) => break,
                Sort::Operator(it) if it.is_prefix() => before.push(self.take()),
                Sort::Word(Word::Not) => before.push(self.take()),
                _ => break,
            }
        }
        let mut node = self.postfix()?;
        while let Some((lexeme, token)) = before.pop() {
            let (inner_at, inner) = (node.at, Box::new(node));
            let is_same_as = |sort, it: Operator| sort == Sort::Operator(it);
            node = match token.sort {
                Sort::Word(_) => self.node(inner_at, lexeme, What::Not(inner))?,
                Sort::Operator(Operator::At) => {
                    let nothing = Box::new(Node::empty());
                    let what = What::Activate(false, nothing, inner);
                    self.node(token.at, lexeme, what)?
                }
                sort if is_same_as(sort, Operator::Bar)
                    || is_same_as(sort, Operator::Concatenate)
                    || is_same_as(sort, Operator::ConcatenateLists) =>
                {
                    self.node(inner_at, lexeme, What::Repeated(inner))?
                }
                Sort::Operator(it) => self.node(token.at, lexeme, What::Prefix(it, inner))?,
                _ => *inner,
            };
        }
        Ok(node)
    }

    fn postfix(&mut self) -> Result<Node, Error> {
        let mut node = self.primary()?;
        loop {
            node = match self.sort() {
                Sort::OpenParenthesis => {
                    let (lexeme, open) = self.take();
                    let arguments = self.list(Sort::CloseParenthesis, ")")?;
                    let what = What::Call(Some(Box::new(node)), arguments);
                    self.node(open.at, lexeme, what)?
                }
                Sort::OpenBracket => self.subscript(node)?,
                Sort::OpenBrace => self.coexpressions(node)?,
                Sort::Operator(Operator::Dot) => {
                    let (lexeme, dot) = self.take();
                    let (_, field) = self.wants(Sort::Name, "the name of a field")?;
                    let what = What::Field(Box::new(node), field.value.clone());
                    self.node(dot.at, lexeme, what)?
                }
                _ => return Ok(node),
            };
        }
    }

    /// Expressions with commas between, up to what closes them. None at all is no expression.
    fn list(&mut self, close: Sort, wanted: &'static str) -> Result<Vec<Node>, Error> {
        let mut nodes = self.rest_of_list(None)?;
        self.wants(close, wanted)?;
        if nodes.len() == 1 && nodes[0].is_empty() {
            nodes.clear();
        }
        Ok(nodes)
    }

    fn rest_of_list(&mut self, first: Option<Node>) -> Result<Vec<Node>, Error> {
        let mut nodes = vec![match first {
            Some(node) => node,
            None => self.optional()?,
        }];
        while self.takes(Sort::Comma).is_some() {
            nodes.push(self.optional()?);
        }
        Ok(nodes)
    }

    fn subscript(&mut self, base: Node) -> Result<Node, Error> {
        let (lexeme, open) = self.take();
        let first = self.optional()?;
        let section = match self.sort() {
            Sort::Colon => Some(Section::Between),
            Sort::PlusColon => Some(Section::Ahead),
            Sort::MinusColon => Some(Section::Back),
            _ => None,
        };
        if let Some(section) = section.filter(|_| !first.is_empty()) {
            let (lexeme, colon) = self.take();
            let second = self.expression()?;
            self.wants(Sort::CloseBracket, "]")?;
            let what = What::Section(section, Box::new([base, first, second]));
            return self.node(colon.at, lexeme, what);
        }
        let indices = self.rest_of_list(Some(first))?;
        self.wants(Sort::CloseBracket, "]")?;
        let mut node = base;
        for index in indices {
            let infix = Infix {
                operation: Operation::Subscript,
                assigns: false,
            };
            let what = What::Infix(infix, Box::new(node), Box::new(index));
            node = self.node(open.at, lexeme, what)?;
        }
        Ok(node)
    }

    /// `p{e1, e2}`: a call with a list of co-expressions.
    fn coexpressions(&mut self, callee: Node) -> Result<Node, Error> {
        let (lexeme, open) = self.take();
        let mut created = Vec::new();
        if self.sort() != Sort::CloseBrace {
            let (mut place, mut number) = (None, lexeme);
            loop {
                let node = self.optional()?;
                let at = place.unwrap_or(node.at);
                created.push(self.node(at, number, What::Create(Box::new(node)))?);
                let Some((comma, token)) = self.takes(Sort::Comma) else {
                    break;
                };
                (place, number) = (Some(token.at), comma);
            }
        }
        self.wants(Sort::CloseBrace, "}")?;
        let list = self.node(open.at, lexeme, What::List(created))?;
        let what = What::Call(Some(Box::new(callee)), vec![list]);
        self.node(open.at, lexeme, what)
    }

    fn primary(&mut self) -> Result<Node, Error> {
        if !self.sort().begins_expression() {
            return Err(self.syntax("an expression"));
        }
        let (lexeme, token) = self.take();
        let value = || token.value.clone();
        let what = match token.sort {
            Sort::Name => What::Name(self.scope.name(&token.value)),
            Sort::Integer => What::Integer(self.scope.constant(Constant::Integer(value()))),
            Sort::Real => What::Real(self.scope.constant(Constant::Real(value()))),
            Sort::String => What::String(self.scope.constant(Constant::String(value()))),
            Sort::Cset => What::Cset(self.scope.constant(Constant::Cset(value()))),
            Sort::Operator(_) => self.keyword()?,
            Sort::OpenParenthesis => {
                let mut nodes = self.rest_of_list(None)?;
                self.wants(Sort::CloseParenthesis, ")")?;
                match nodes.len() {
                    1 => return Ok(nodes.remove(0)),
                    _ => What::Call(None, nodes),
                }
            }
            Sort::OpenBracket => What::List(self.list(Sort::CloseBracket, "]")?),
            Sort::OpenBrace => return self.compound(),
            Sort::Word(word) => self.structure(word)?,
            _ => return Err(self.syntax("an expression")),
        };
        self.node(token.at, lexeme, what)
    }

    fn keyword(&mut self) -> Result<What, Error> {
        if self.takes_word(Word::Fail).is_some() {
            return Ok(What::Keyword(b"fail".to_vec()));
        }
        let (_, name) = self.wants(Sort::Name, "the name of a keyword")?;
        match KEYWORDS.iter().any(|it| it.as_bytes() == name.value) {
            true => Ok(What::Keyword(name.value.clone())),
            false => {
                let fault = Fault::Keyword(crate::line::words(&name.value));
                Err(self.error(name, fault))
            }
        }
    }

    /// Behind a brace.
    fn compound(&mut self) -> Result<Node, Error> {
        let first = self.optional()?;
        let semicolon = self.peek().at;
        let mut nodes = vec![first];
        while self.takes(Sort::Semicolon).is_some() {
            nodes.push(self.optional()?);
        }
        self.wants(Sort::CloseBrace, "}")?;
        match nodes.len() {
            1 => Ok(nodes.remove(0)),
            _ => self.node(semicolon, 0, What::Sequence(nodes)),
        }
    }

    fn structure(&mut self, word: Word) -> Result<What, Error> {
        Ok(match word {
            Word::If => {
                let condition = Box::new(self.expression()?);
                let Some(then) = self.clause(Word::Then)? else {
                    return Err(self.syntax("then"));
                };
                let other = self.clause(Word::Else)?;
                What::If(condition, then, other.filter(|it| !it.body.is_empty()))
            }
            Word::Case => self.case()?,
            Word::While => self.repetition(Loop::While)?,
            Word::Until => self.repetition(Loop::Until)?,
            Word::Every => self.repetition(Loop::Every)?,
            Word::Repeat => What::Loop(Loop::Repeat, Box::new(self.expression()?), None),
            Word::Suspend if self.sort().begins_expression() => self.repetition(Loop::Suspend)?,
            Word::Suspend => What::Loop(Loop::Suspend, Box::new(Node::empty()), None),
            Word::Create => What::Create(Box::new(self.expression()?)),
            Word::Return => What::Return(Some(Box::new(self.optional()?))),
            Word::Fail => What::Return(None),
            Word::Break => What::Break(Box::new(self.optional()?)),
            Word::Next => What::Next,
            _ => return Err(self.syntax("an expression")),
        })
    }

    fn repetition(&mut self, which: Loop) -> Result<What, Error> {
        let head = Box::new(self.expression()?);
        let body = self.clause(Word::Do)?;
        Ok(What::Loop(which, head, body))
    }

    fn clause(&mut self, word: Word) -> Result<Option<Clause>, Error> {
        let Some(lexeme) = self.takes_word(word) else {
            return Ok(None);
        };
        let body = Box::new(self.expression()?);
        Ok(Some(Clause { lexeme, body }))
    }

    fn case(&mut self) -> Result<What, Error> {
        let control = self.expression()?;
        let Some(of) = self.takes_word(Word::Of) else {
            return Err(self.syntax("of"));
        };
        self.wants(Sort::OpenBrace, "{")?;
        let mut arms = Vec::new();
        loop {
            let word = self.takes_word(Word::Default);
            let selector = match word {
                Some(_) => None,
                None => Some(self.expression()?),
            };
            let (colon, token) = self.wants(Sort::Colon, ":")?;
            arms.push(Arm {
                at: token.at,
                lexeme: word.unwrap_or(colon),
                selector,
                body: self.expression()?,
            });
            if self.takes(Sort::Semicolon).is_none() {
                break;
            }
        }
        self.wants(Sort::CloseBrace, "}")?;
        Ok(What::Case(Box::new(Case { control, of, arms })))
    }
}
