//! A text, read: its functions as flow graphs, and what of it is not counted.

use std::collections::{BTreeSet, HashMap, HashSet};

use headcount_model::Refusal;

use crate::columns;
use crate::flow_graph::{self, Manner, Unit};
use crate::lex::{self, Kind, Lexed, Position};
use crate::macros::{Holds, Macros, Uses};
use crate::names::Names;
use crate::outline::{Outlined, outline};
use crate::parser::{Defined, Parser, Trouble, partners};
use crate::statement_starts::{self, StatementStart};
use crate::tree::Function;
use crate::words::Word;

/// What to know before reading a text.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its file, until a line marker says otherwise.
    pub name: String,
    /// Where declarations may stand.
    pub declarations: Declarations,
    /// Pragmas of OpenMP mean something.
    pub openmp: bool,
    /// The text has not been through a preprocessor.
    pub is_raw: bool,
}

/// Where declarations may stand in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Declarations {
    /// Among statements.
    #[default]
    Anywhere,
    /// Before all statements, as in C89.
    First,
    /// Before all statements in functions in which they all do: nobody knows for which C the text
    /// is.
    AsWritten,
}

impl Declarations {
    fn come_first(self, function: &Function) -> bool {
        match self {
            Self::Anywhere => false,
            Self::First => true,
            Self::AsWritten => !function.mixes_declarations,
        }
    }
}

/// A text that cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct Unreadable {
    /// The user's file.
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// Why, as a clause.
    pub reason: String,
}

/// A text, read.
#[derive(Debug)]
pub struct Source<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) lexed: Lexed,
    pub(crate) is_raw: bool,
    /// Columns of tokens in the user's own files, where those are known.
    columns: HashMap<u32, u32>,
    /// Its functions.
    pub units: Vec<Unit>,
    /// For each of them, whether a thread may come to it first of all.
    pub(crate) checks: Vec<bool>,
    /// What is not counted.
    pub refusals: Vec<Refusal>,
    /// What is not counted because no preprocessor has seen the text: what macros stand for.
    pub unexpanded: Vec<Refusal>,
}

/// What was made of functions.
#[derive(Default)]
struct Made<'t> {
    units: Vec<Unit>,
    checks: Vec<bool>,
    /// Name of a function, token, and why it is not counted.
    troubles: Vec<(String, u32, String)>,
    /// The same for what is in macros.
    unexpanded: Vec<(String, u32, String)>,
    /// Names that may be macros of included files.
    foreign: BTreeSet<&'t [u8]>,
}

impl<'t> Source<'t> {
    /// Reads a text. Functions that cannot be read are refused; a text whose functions cannot be
    /// found is an error.
    pub fn parse(text: &'t [u8], options: &Options) -> Result<Self, Unreadable> {
        if text.len() >= u32::MAX as usize {
            return Err(Unreadable {
                file: options.name.clone(),
                line: 0,
                reason: "it has more than four gigabytes".to_owned(),
            });
        }
        let lexed = lex::lex(text, &options.name);
        let mut source = Self {
            text,
            lexed,
            is_raw: options.is_raw,
            columns: HashMap::new(),
            units: Vec::new(),
            checks: Vec::new(),
            refusals: Vec::new(),
            unexpanded: Vec::new(),
        };
        match source.read(options) {
            Ok(()) => Ok(source),
            Err(trouble) => {
                let at = source.position(trouble.token);
                Err(Unreadable {
                    file: source.file(at).to_owned(),
                    line: at.line,
                    reason: trouble.reason,
                })
            }
        }
    }

    fn read(&mut self, options: &Options) -> Result<(), Trouble> {
        let partner = partners(&self.lexed)?;
        let lexed = std::mem::take(&mut self.lexed);
        let result = self.functions(&lexed, &partner, options);
        self.lexed = lexed;
        let made = result?;
        self.units = made.units;
        self.checks = made.checks;
        self.refusals = self.refused(made.troubles);
        let mut unexpanded = self.refused(made.unexpanded);
        unexpanded.dedup();
        unexpanded.extend(self.unread(&made.foreign));
        self.unexpanded = unexpanded;
        Ok(())
    }

    fn refused(&self, troubles: Vec<(String, u32, String)>) -> Vec<Refusal> {
        let refusal = |(subject, token, reason)| {
            let at = self.position(token);
            Refusal {
                subject,
                file: self.file(at).to_owned(),
                line: at.line,
                reason,
            }
        };
        troubles.into_iter().map(refusal).collect()
    }

    /// Names that may be macros of files that were not read.
    fn unread(&self, names: &BTreeSet<&[u8]>) -> Option<Refusal> {
        let include = self.lexed.first_include?;
        if names.is_empty() {
            return None;
        }
        let at = self.lexed.lines.position(include);
        let names: Vec<_> = names.iter().map(|it| String::from_utf8_lossy(it)).collect();
        let names = names.join(", ");
        Some(Refusal {
            subject: "macros of included files".to_owned(),
            file: self.file(at).to_owned(),
            line: at.line,
            reason: format!(
                "only a preprocessor can tell whether these are macros with something to count \
                 in them: {names}"
            ),
        })
    }

    fn functions(
        &self,
        lexed: &Lexed,
        partner: &[u32],
        options: &Options,
    ) -> Result<Made<'t>, Trouble> {
        let mut made = Made::default();
        let is_wanted = |fates: &Fates, function: &Outlined| {
            !fates.is_unused(
                function,
                bytes_of(self.text, lexed, function.name_token),
                lexed,
            )
        };
        let reading = Reading::new(self.text, lexed, partner, options);
        let fates = reading.functions(is_wanted, |fates, function, read| {
            let uses = reading.uses(fates, function);
            let read = read.and_then(|tree| {
                let manner = Manner {
                    declarations_first: options.declarations.come_first(&tree),
                    unseen_jumps: uses.may_jump(),
                    is_only_read: false,
                };
                let found = flow_graph::units(&tree, self.text, &lexed.tokens, manner)?;
                Ok((found, tree.left_alone))
            });
            let bytes = bytes_of(self.text, lexed, function.name_token);
            let name = || String::from_utf8_lossy(bytes).into_owned();
            match read {
                Ok((found, left_alone)) => {
                    let check = fates.needs_check(function, bytes);
                    made.checks.extend(found.iter().map(|_| check));
                    made.units.extend(found);
                    let left_alone = left_alone.into_iter();
                    let troubles = left_alone.map(|(at, why)| (name(), at, why.to_owned()));
                    made.troubles.extend(troubles);
                    let unexpanded = uses.unexpanded.into_iter();
                    let reason = |(at, macro_name, holds)| {
                        (name(), function.open + at, hidden(macro_name, holds))
                    };
                    made.unexpanded.extend(unexpanded.map(reason));
                    made.foreign.extend(uses.foreign);
                }
                Err(trouble) => made.troubles.push((name(), trouble.token, trouble.reason)),
            }
        })?;
        let Made {
            units,
            checks,
            troubles,
            ..
        } = &mut made;
        // Who comes out of a function that is not counted may come to any other.
        if !troubles.is_empty() {
            checks.iter_mut().for_each(|check| *check = true);
        }
        for (unit, check) in units.iter().zip(checks) {
            *check &= !fates.resolvers.contains(unit.name.as_bytes());
        }
        Ok(made)
    }

    /// Where every statement begins, those of functions included that nobody calls. Functions that
    /// cannot be read have none.
    pub fn statement_starts(&self, options: &Options) -> Vec<StatementStart> {
        let partner = partners(&self.lexed).unwrap_or_default();
        let reading = Reading::new(self.text, &self.lexed, &partner, options);
        let mut starts = Vec::new();
        let read = reading.functions(
            |_, _| true,
            |_, _, read| {
                let found = read.map(|it| statement_starts::of_function(&it, &self.lexed.tokens));
                starts.extend(found.unwrap_or_default());
            },
        );
        debug_assert!(read.is_ok(), "it was read before");
        starts
    }

    /// Where a token is.
    pub fn position(&self, token: u32) -> Position {
        let last = self.lexed.tokens.last();
        let found = self.lexed.tokens.get(token as usize).or(last);
        let mut at = self.lexed.lines.position(found.map_or(0, |it| it.start));
        if let Some(column) = self.columns.get(&token) {
            at.column = *column;
        }
        at
    }

    /// Reads columns from a file that the text was made of.
    pub fn take_columns(&mut self, file: u32, written: &[u8]) {
        let found = columns::in_file(self.text, &self.lexed, file, written);
        self.columns.extend(found);
    }

    /// The files in which functions of the text are.
    pub fn files_with_functions(&self) -> BTreeSet<u32> {
        let files = self
            .units
            .iter()
            .map(|it| self.position(it.name_token).file);
        files.collect()
    }

    /// The name of a position's file.
    pub fn file(&self, at: Position) -> &str {
        &self.lexed.lines.files[at.file as usize]
    }

    /// All files that positions speak of.
    pub fn files(&self) -> &[String] {
        &self.lexed.lines.files
    }

    /// Whether a function or a variable with this name is declared outside of all functions.
    pub fn declares(&self, name: &str) -> bool {
        let mut depth = 0_u32;
        let tokens = &self.lexed.tokens;
        tokens
            .iter()
            .zip(tokens.iter().skip(1))
            .any(|(token, next)| {
                match token.kind {
                    Kind::OpenBrace => depth += 1,
                    Kind::CloseBrace => depth = depth.saturating_sub(1),
                    _ => (),
                }
                let bytes = &self.text[token.start as usize..token.end as usize];
                let declared = [Kind::OpenParen, Kind::Semicolon, Kind::Comma];
                depth == 0 && declared.contains(&next.kind) && bytes == name.as_bytes()
            })
    }
}

/// Why what a macro stands for is not counted.
fn hidden(name: &[u8], holds: Holds) -> String {
    let name = String::from_utf8_lossy(name);
    let what = match holds {
        Holds::Statements => "statements",
        _ => "conditional operators",
    };
    format!("{what} in the macro {name}, which is not expanded")
}

/// A text that is being read.
struct Reading<'t, 'r> {
    text: &'t [u8],
    lexed: &'r Lexed,
    partner: &'r [u32],
    options: &'r Options,
    /// Its macros, if no preprocessor has seen it.
    macros: Option<Macros<'t>>,
}

impl<'t, 'r> Reading<'t, 'r> {
    fn new(text: &'t [u8], lexed: &'r Lexed, partner: &'r [u32], options: &'r Options) -> Self {
        Self {
            text,
            lexed,
            partner,
            options,
            macros: options.is_raw.then(|| Macros::new(text, lexed)),
        }
    }

    /// What a function does with macros.
    fn uses(&self, fates: &Fates<'t>, function: &Outlined) -> Uses<'t> {
        let Some(macros) = &self.macros else {
            return Uses::default();
        };
        let close = self.partner[function.open as usize];
        let body = &self.lexed.tokens[function.open as usize..close as usize];
        macros.uses(self.text, body, |name| fates.declared.contains(name))
    }

    /// Names that a text speaks of outside of functions.
    fn declared(&self, functions: &[Outlined]) -> HashSet<&'t [u8]> {
        let mut declared = HashSet::new();
        let mut at = 0;
        let bodies = functions
            .iter()
            .map(|it| (it.open, self.partner[it.open as usize]));
        let end = self.lexed.tokens.len() as u32;
        for (open, close) in bodies.chain([(end, end)]) {
            let names = (at..open).filter(|it| self.lexed.tokens[*it as usize].kind == Kind::Name);
            declared.extend(names.map(|it| bytes_of(self.text, self.lexed, it)));
            at = close;
        }
        declared
    }

    /// Reads those functions that are wanted, and hands each over.
    fn functions(
        &self,
        is_wanted: impl Fn(&Fates<'t>, &Outlined) -> bool,
        mut take: impl FnMut(&Fates<'t>, &Outlined, Result<Function, Trouble>),
    ) -> Result<Fates<'t>, Trouble> {
        let Self {
            text,
            lexed,
            partner,
            options,
            macros,
        } = self;
        let outline = outline(text, lexed, partner)?;
        let mut fates = Fates::new(text, lexed, &outline.functions);
        if macros.is_some() {
            fates.declared = self.declared(&outline.functions);
        }
        let mut parser = Parser::new(text, &lexed.tokens, partner, &fates.defined);
        parser.types = outline.types;
        parser.macros = macros.as_ref();
        for function in &outline.functions {
            if !is_wanted(&fates, function) {
                continue;
            }
            let close = partner[function.open as usize];
            let refusal = unsuitable(text, lexed, function, close, options);
            parser.at = function.open;
            parser.depth = 0;
            parser.left_alone.clear();
            parser.forks.clear();
            parser.mixes_declarations = false;
            let read = match refusal {
                Some(trouble) => Err(trouble),
                None => parser.function(function.name_token),
            };
            parser.types.leave_all();
            take(&fates, function, read);
        }
        Ok(fates)
    }
}

fn bytes_of<'t>(text: &'t [u8], lexed: &Lexed, token: u32) -> &'t [u8] {
    let token = &lexed.tokens[token as usize];
    &text[token.start as usize..token.end as usize]
}

/// Why a function is not to be touched.
fn unsuitable(
    text: &[u8],
    lexed: &Lexed,
    function: &Outlined,
    close: u32,
    options: &Options,
) -> Option<Trouble> {
    let bytes = |at: u32| {
        let token = &lexed.tokens[at as usize];
        &text[token.start as usize..token.end as usize]
    };
    let refuse = |token: u32, reason: &str| {
        Some(Trouble {
            token,
            reason: reason.to_owned(),
        })
    };
    let is_attribute = |at: &u32| lexed.tokens[*at as usize].kind == Kind::Word(Word::Attribute);
    if function.has_attributes && (function.first..function.open).any(|at| is_attribute(&at)) {
        let mut header = function.first..function.open;
        if header.any(|at| matches!(bytes(at), b"naked" | b"__naked__")) {
            return refuse(
                function.name_token,
                "it has nothing but assembler text in it",
            );
        }
    }
    let token = |at: u32| lexed.tokens[at as usize];
    if options.is_raw {
        let condition = (function.open + 1..=close).find(|at| token(*at).after_condition);
        if let Some(at) = condition {
            return refuse(at, "it has #if and the like in it");
        }
    }
    if options.openmp {
        let pragma = (function.open + 1..=close).find(|at| token(*at).after_pragma);
        if let Some(at) = pragma {
            return refuse(at, "it has pragmas, which OpenMP may make threads of");
        }
    }
    None
}

/// What becomes of the functions of a text.
struct Fates<'t> {
    defined: Names<'t, Defined>,
    /// Functions that run before there are threads.
    resolvers: HashSet<&'t [u8]>,
    /// Names that the text speaks of outside of functions, where that matters.
    declared: HashSet<&'t [u8]>,
}

impl<'t> Fates<'t> {
    fn new(text: &'t [u8], lexed: &Lexed, functions: &[Outlined]) -> Self {
        let bytes = |at: u32| {
            let token = &lexed.tokens[at as usize];
            &text[token.start as usize..token.end as usize]
        };
        let mut defined: Names<Defined> = Names::default();
        for function in functions {
            defined.entry(bytes(function.name_token)).name_token = function.name_token;
        }
        let mut resolvers = HashSet::new();
        let mut depth = 0_u32;
        for (at, token) in (0_u32..).zip(&lexed.tokens) {
            match token.kind {
                Kind::OpenBrace => depth += 1,
                Kind::CloseBrace => depth = depth.saturating_sub(1),
                _ => (),
            }
            if token.kind != Kind::Name {
                continue;
            }
            let word = &text[token.start as usize..token.end as usize];
            if defined.contains(word)
                && let Some(function) = defined.get_mut(word)
            {
                let is_called = lexed
                    .tokens
                    .get(at as usize + 1)
                    .is_some_and(|it| it.kind == Kind::OpenParen);
                // Outside of everything, a name before a parenthesis is declared or defined.
                function.mentions += u32::from(depth > 0 || !is_called);
                function.not_called += u32::from(!is_called);
            }
            let names_resolver = matches!(word, b"ifunc" | b"__ifunc__");
            if let Some(quoted) = lexed.tokens.get(at as usize + 2).filter(|_| names_resolver) {
                let name = &text[quoted.start as usize..quoted.end as usize];
                let name = name
                    .strip_prefix(b"\"")
                    .and_then(|it| it.strip_suffix(b"\""));
                resolvers.extend(name);
            }
        }
        Self {
            defined,
            resolvers,
            declared: HashSet::new(),
        }
    }

    /// What is known of a function; of several with one name, only of the last.
    fn of(&self, function: &Outlined, name: &[u8]) -> Option<&Defined> {
        let known = self.defined.get(name);
        known.filter(|it| it.name_token == function.name_token)
    }

    /// Whether a function is in a header, and nobody in this text calls it: compilers drop it.
    fn is_unused(&self, function: &Outlined, name: &[u8], lexed: &Lexed) -> bool {
        if !function.is_inline {
            return false;
        }
        let start = lexed.tokens[function.name_token as usize].start;
        let is_mentioned = self.of(function, name).is_some_and(|it| it.mentions > 0);
        let (at, is_system) = lexed.lines.position_and_system(start);
        let is_dropped = function.is_static && !function.has_attributes || is_system;
        !is_mentioned && at.file != 0 && is_dropped
    }

    /// Whether a thread may come to the function before it comes to any other of this text.
    fn needs_check(&self, function: &Outlined, name: &[u8]) -> bool {
        let is_passed_on = self.of(function, name).is_some_and(|it| it.not_called > 0);
        !function.is_static || function.has_attributes || is_passed_on
    }
}
