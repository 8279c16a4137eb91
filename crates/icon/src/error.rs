//! Why a source is not translated.

use crate::files::{At, Names};
use crate::line::words;

/// A source that the translator refuses, or a word of it that we do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {what}")]
pub struct Error {
    pub file: String,
    pub line: u32,
    /// From 1; 0 where a whole line is at fault.
    pub column: u32,
    pub what: Fault,
}

impl Error {
    pub(crate) fn new(names: &Names, at: At, what: Fault) -> Self {
        let file = at.file.map_or(&[][..], |it| names.name(it));
        Self {
            file: words(file),
            line: at.line,
            column: at.column,
            what,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    Directive(&'static str),
    #[error("{0:?} is no directive")]
    UnknownDirective(String),
    #[error("{0:?} cannot be opened")]
    NotFound(String),
    #[error("{0:?} includes itself")]
    CircularInclude(String),
    #[error("{0:?} has another value already")]
    Redefined(String),
    #[error("$error: {0}")]
    Explicit(String),
    #[error("macros expand to more than {0} bytes")]
    TooLong(usize),
    #[error("a character that begins no token")]
    Character,
    #[error("a quote is not closed")]
    UnclosedQuote,
    #[error("{0}")]
    Number(&'static str),
    #[error("{0}")]
    LineDirective(&'static str),
    #[error("{found:?} where {wanted} is expected")]
    Syntax { wanted: &'static str, found: String },
    #[error("&{0} is no keyword")]
    Keyword(String),
    #[error("{0:?} is declared twice")]
    Redeclared(String),
    #[error("{0:?} cannot be made invocable: only \"all\" and strings can")]
    Invocable(String),
    #[error("{0} is not possible here")]
    Context(&'static str),
    #[error("more than one default clause")]
    TwoDefaults,
    #[error("nested too deeply")]
    TooDeep,
}
