//! What all parts of the parser share: where it is, what it knows, and how it gives up.

use crate::lex::{Kind, Lexed, Token};
use crate::macros::Macros;
use crate::names::Names;
use crate::tree::Tokens;
use crate::words::Word;

/// Nothing that people write is nested deeper; and every level takes room on our stack.
const DEEPEST: u32 = 200;

/// Why a function, or a file, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The token where it was noticed.
    pub token: u32,
    pub reason: String,
}

/// No bracket is there.
pub const NONE: u32 = u32::MAX;

/// A function that the text defines.
#[derive(Debug, Default)]
pub struct Defined {
    /// The token of its name, where it is defined last.
    pub name_token: u32,
    /// How often it is mentioned, and how often other than to call it.
    pub mentions: u32,
    pub not_called: u32,
}

/// Reads one text.
pub struct Parser<'t, 'd> {
    pub text: &'t [u8],
    pub tokens: &'t [Token],
    /// For each bracket, the one that belongs to it.
    pub partner: &'t [u32],
    /// Functions that the text defines.
    pub defined: &'d Names<'t, Defined>,
    pub types: Types<'t>,
    /// The next token.
    pub at: u32,
    pub depth: u32,
    /// The macros of a text in which names may be macros.
    pub macros: Option<&'d Macros<'t>>,
    pub left_alone: Vec<(u32, &'static str)>,
    /// Calls that may make a process behind the C library's back.
    pub forks: Vec<Tokens>,
    /// Whether declarations were met behind statements, or in a `for`.
    pub mixes_declarations: bool,
}

/// Finds the partner of each bracket.
pub fn partners(lexed: &Lexed) -> Result<Vec<u32>, Trouble> {
    let mut partner = vec![NONE; lexed.tokens.len()];
    let mut open: Vec<(u32, Kind)> = Vec::new();
    for (at, token) in (0_u32..).zip(&lexed.tokens) {
        let closing = match token.kind {
            Kind::OpenParen => Kind::CloseParen,
            Kind::OpenBracket => Kind::CloseBracket,
            Kind::OpenBrace => Kind::CloseBrace,
            Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace => {
                let Some((start, _)) = open.pop().filter(|(_, kind)| *kind == token.kind) else {
                    return Err(trouble(at, "a bracket closes what is not open"));
                };
                partner[start as usize] = at;
                partner[at as usize] = start;
                continue;
            }
            _ => continue,
        };
        open.push((at, closing));
    }
    match open.last() {
        Some((at, _)) => Err(trouble(*at, "a bracket is never closed")),
        None => Ok(partner),
    }
}

pub fn trouble(token: u32, reason: impl Into<String>) -> Trouble {
    Trouble {
        token,
        reason: reason.into(),
    }
}

impl<'t, 'd> Parser<'t, 'd> {
    pub fn new(
        text: &'t [u8],
        tokens: &'t [Token],
        partner: &'t [u32],
        defined: &'d Names<'t, Defined>,
    ) -> Self {
        Self {
            text,
            tokens,
            partner,
            defined,
            types: Types::default(),
            at: 0,
            depth: 0,
            macros: None,
            left_alone: Vec::new(),
            forks: Vec::new(),
            mixes_declarations: false,
        }
    }

    pub fn kind_at(&self, at: u32) -> Kind {
        // Behind the last token nothing fits.
        self.tokens
            .get(at as usize)
            .map_or(Kind::Stray, |it| it.kind)
    }

    pub fn kind(&self) -> Kind {
        self.kind_at(self.at)
    }

    pub fn next_kind(&self) -> Kind {
        self.kind_at(self.at + 1)
    }

    pub fn bytes(&self, at: u32) -> &'t [u8] {
        let token = self.tokens.get(at as usize);
        token.map_or(&[], |it| &self.text[it.start as usize..it.end as usize])
    }

    pub fn name(&self, at: u32) -> String {
        String::from_utf8_lossy(self.bytes(at)).into_owned()
    }

    /// Takes the next token, which must be of this kind.
    pub fn expect(&mut self, kind: Kind, what: &str) -> Result<u32, Trouble> {
        if self.kind() != kind {
            return Err(self.unexpected(what));
        }
        self.at += 1;
        Ok(self.at - 1)
    }

    /// Takes the next token if it is of this kind.
    pub fn take(&mut self, kind: Kind) -> bool {
        let is = self.kind() == kind;
        self.at += u32::from(is);
        is
    }

    pub fn unexpected(&self, wanted: &str) -> Trouble {
        let found = String::from_utf8_lossy(self.bytes(self.at));
        let found: String = found.chars().take(30).collect();
        trouble(self.at, format!("{wanted} is missing before `{found}`"))
    }

    /// Steps over a bracket and all that is in it.
    pub fn skip_group(&mut self) -> Result<(), Trouble> {
        match self.partner.get(self.at as usize) {
            Some(partner) if *partner != NONE && *partner > self.at => {
                self.at = partner + 1;
                Ok(())
            }
            _ => Err(self.unexpected("an opening bracket")),
        }
    }

    /// Reads something that is one level deeper.
    pub fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(trouble(self.at, "it is nested too deeply"));
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Steps over attributes, in either spelling; says whether one of them is `fallthrough`.
    pub fn skip_attributes(&mut self) -> Result<bool, Trouble> {
        let start = self.at;
        loop {
            match self.kind() {
                Kind::Word(Word::Attribute) => {
                    self.at += 1;
                    self.skip_group()?;
                }
                Kind::OpenBracket if self.next_kind() == Kind::OpenBracket => self.skip_group()?,
                _ => break,
            }
        }
        let falls = |at: u32| matches!(self.bytes(at), b"fallthrough" | b"__fallthrough__");
        Ok((start..self.at).any(falls))
    }

    /// Whether a type begins with this token.
    pub fn begins_type(&self, at: u32) -> bool {
        match self.kind_at(at) {
            Kind::Word(word) => matches!(
                word,
                Word::Type
                    | Word::Tag
                    | Word::TypeOf
                    | Word::Specifier
                    | Word::Inline
                    | Word::Static
                    | Word::Extern
                    | Word::Typedef
                    | Word::Alignas
                    | Word::Atomic
            ),
            Kind::Name => self.types.is_type(self.bytes(at)),
            _ => false,
        }
    }

    /// Notes that something is left as it is, if there is anything in it to count.
    pub fn leave_alone(&mut self, from: u32, to: u32, reason: &'static str) {
        let counts = |at: &u32| {
            matches!(
                self.kind_at(*at),
                Kind::Question | Kind::OrOr | Kind::OpenBrace
            ) || self.kind_at(*at) == Kind::AndAnd
        };
        if let Some(at) = (from..to).find(counts) {
            self.left_alone.push((at, reason));
        }
    }
}

/// Which names mean types, here and now.
#[derive(Debug, Default)]
pub struct Types<'t> {
    /// What the name meant in each scope that says something about it, the innermost last.
    names: Names<'t, Vec<bool>>,
    /// Names that each scope speaks of.
    scopes: Vec<Vec<&'t [u8]>>,
}

impl<'t> Types<'t> {
    pub fn is_type(&self, name: &[u8]) -> bool {
        let last = self.names.get(name).and_then(|it| it.last());
        last.is_some_and(|is_type| *is_type)
    }

    pub fn declare(&mut self, name: &'t [u8], is_type: bool) {
        // A variable matters only where it hides a type.
        if !is_type && !self.names.contains(name) {
            return;
        }
        self.names.entry(name).push(is_type);
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(name);
        }
    }

    pub fn enter(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub fn leave(&mut self) {
        for name in self.scopes.pop().unwrap_or_default() {
            if let Some(meanings) = self.names.get_mut(name) {
                meanings.pop();
            }
        }
    }

    /// Leaves all scopes but the file's.
    pub fn leave_all(&mut self) {
        while !self.scopes.is_empty() {
            self.leave();
        }
    }
}
