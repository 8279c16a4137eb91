//! Macros of a text that no preprocessor has seen: what do they stand for, as far as counting
//! depends on it?

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::lex::{Kind, Lexed, Token, lex};
use crate::words::Word;

/// A definition, divided into its parts.
pub struct Definition<'t> {
    pub name: Token,
    /// Parameters, from one parenthesis to the other, if there are parentheses.
    pub heading: Option<&'t [Token]>,
    pub body: &'t [Token],
}

impl<'t> Definition<'t> {
    /// Divides what stands behind `#define`.
    pub fn new(tokens: &'t [Token]) -> Option<Self> {
        let (name, rest) = tokens.split_first()?;
        // `A(b)` takes something, `A (b)` does not.
        let takes =
            matches!(rest.first(), Some(it) if it.kind == Kind::OpenParen && it.start == name.end);
        let close = rest.iter().position(|it| it.kind == Kind::CloseParen);
        let (heading, body) = rest.split_at(match (takes, close) {
            (true, Some(close)) => close + 1,
            _ => 0,
        });
        Some(Self {
            name: *name,
            heading: takes.then_some(heading),
            body,
        })
    }
}

/// What a macro stands for: the worst of what is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// Constants and variables.
    #[default]
    Values,
    /// Something that control may not come back from.
    Calls,
    /// `?:`, `&&` or `||`: operands that have counts.
    Operators,
    /// Statements, which have counts as well.
    Statements,
}

/// The macros that a text defines, all definitions of a name taken together.
#[derive(Debug, Default)]
pub struct Macros<'t> {
    known: HashMap<&'t [u8], Macro<'t>>,
}

#[derive(Debug, Default)]
struct Macro<'t> {
    /// Whether it is one also where no parenthesis follows.
    stands_alone: bool,
    holds: Holds,
    /// Names in it, and whether a parenthesis follows.
    mentions: Vec<(&'t [u8], bool)>,
}

/// What a function does with macros.
#[derive(Debug, Default)]
pub struct Uses<'t> {
    /// Macros with something to count in them: the token, from the body's first on.
    pub unexpanded: Vec<(u32, &'t [u8], Holds)>,
    /// Names that may be macros of included files.
    pub foreign: BTreeSet<&'t [u8]>,
}

impl Uses<'_> {
    /// Whether there may be jumps in them, or what is jumped to.
    pub fn may_jump(&self) -> bool {
        let has_statements = |it: &(u32, &[u8], Holds)| it.2 == Holds::Statements;
        !self.foreign.is_empty() || self.unexpanded.iter().any(has_statements)
    }
}

impl<'t> Macros<'t> {
    /// The macros that the directives of a text define.
    pub fn new(text: &'t [u8], lexed: &Lexed) -> Self {
        let mut macros = Self::default();
        for definition in &lexed.definitions {
            macros.define(&text[definition.start as usize..definition.end as usize]);
        }
        macros.expand();
        macros
    }

    /// Takes one definition, from the name on.
    fn define(&mut self, text: &'t [u8]) {
        let tokens = lex(text, "").tokens;
        let bytes = |it: &Token| &text[it.start as usize..it.end as usize];
        let Some(definition) = Definition::new(&tokens) else {
            return;
        };
        let known = self.known.entry(bytes(&definition.name)).or_default();
        known.stands_alone |= definition.heading.is_none();
        let heading = definition.heading.unwrap_or_default();
        let parameters: HashSet<&[u8]> = heading.iter().map(bytes).collect();
        let body = definition.body;
        for (at, token) in body.iter().enumerate() {
            known.holds = known.holds.max(held(token.kind));
            if token.kind == Kind::Name && !parameters.contains(bytes(token)) {
                let is_called = is_open(body.get(at + 1));
                known.mentions.push((bytes(token), is_called));
            }
        }
    }

    /// What is in a macro that is in a macro is in that one, too.
    fn expand(&mut self) {
        loop {
            let worse = |it: &Macro<'t>| {
                let inside = it
                    .mentions
                    .iter()
                    .map(|(name, called)| self.holds(name, *called));
                inside.max().filter(|held| *held > it.holds)
            };
            let found: Vec<_> = self
                .known
                .iter()
                .filter_map(|(name, it)| Some((*name, worse(it)?)))
                .collect();
            if found.is_empty() {
                return;
            }
            for (name, holds) in found {
                self.known.entry(name).or_default().holds = holds;
            }
        }
    }

    /// What a name stands for. A name in capitals that the text does not define may be anything.
    pub fn holds(&self, name: &[u8], is_called: bool) -> Holds {
        match self.known.get(name) {
            Some(it) if it.stands_alone || is_called => it.holds,
            _ if is_called || is_loud(name) => Holds::Calls,
            _ => Holds::Values,
        }
    }

    /// Which macros the body of a function uses. The text speaks of names that are declared outside
    /// of functions.
    pub fn uses(
        &self,
        text: &'t [u8],
        body: &[Token],
        is_declared: impl Fn(&[u8]) -> bool,
    ) -> Uses<'t> {
        let mut uses = Uses::default();
        // A name that is not only called is a variable.
        let mut variables = HashSet::new();
        for (at, token) in (0_u32..).zip(body) {
            let is_member = at > 0 && body[at as usize - 1].kind == Kind::Member;
            if token.kind != Kind::Name || is_member {
                continue;
            }
            let name = &text[token.start as usize..token.end as usize];
            let next = body.get(at as usize + 1);
            let holds = self.holds(name, is_open(next));
            match self.known.contains_key(name) {
                true if holds >= Holds::Operators => uses.unexpanded.push((at, name, holds)),
                true => (),
                false if name == b"NULL" || is_declared(name) => (),
                // By itself, a variable does nothing.
                false if is_statement(at.checked_sub(1).map(|it| body[it as usize]), next) => {
                    uses.foreign.insert(name);
                }
                false if holds == Holds::Values => _ = variables.insert(name),
                false => _ = uses.foreign.insert(name),
            }
        }
        uses.foreign.retain(|name| !variables.contains(name));
        uses
    }
}

/// What a token of a macro means for all of it.
fn held(kind: Kind) -> Holds {
    match kind {
        Kind::Question | Kind::AndAnd | Kind::OrOr => Holds::Operators,
        Kind::Semicolon => Holds::Statements,
        Kind::Word(
            Word::If
            | Word::Else
            | Word::While
            | Word::Do
            | Word::For
            | Word::Switch
            | Word::Case
            | Word::Default
            | Word::Goto
            | Word::Return
            | Word::Break
            | Word::Continue
            | Word::Asm,
        ) => Holds::Statements,
        _ => Holds::Values,
    }
}

/// Whether what stands between two tokens is all of a statement.
fn is_statement(before: Option<Token>, behind: Option<&Token>) -> bool {
    let begins = |it: Token| {
        let ends = [Kind::Semicolon, Kind::OpenBrace, Kind::CloseBrace];
        let leads = [Kind::CloseParen, Kind::Colon, Kind::Word(Word::Else)];
        ends.contains(&it.kind) || leads.contains(&it.kind)
    };
    before.is_some_and(begins) && behind.is_some_and(|it| it.kind == Kind::Semicolon)
}

fn is_open(token: Option<&Token>) -> bool {
    token.is_some_and(|it| it.kind == Kind::OpenParen)
}

/// Whether a name is in capitals, as those of macros are.
pub fn is_loud(name: &[u8]) -> bool {
    let is_loud = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9');
    name.iter().all(is_loud)
}
