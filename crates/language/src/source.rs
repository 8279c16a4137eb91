//! What counts of a program's instructions say about its source.

use std::collections::BTreeMap;

use crate::Language;
use crate::{cpython, icon, lua};

/// A place in a source file. Lines and columns begin at 1, columns are bytes, and 0 is "not known".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Where it begins.
    pub line: u32,
    /// See `line`.
    pub column: u32,
    /// Where it ends.
    pub end_line: u32,
    /// The first byte that is not of it.
    pub end_column: u32,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number.
    pub line: u32,
    /// How often it began, or began at least.
    pub count: u64,
    /// Is that how often?
    pub is_exact: bool,
}

/// An operation in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Where it is.
    pub at: Position,
    /// The instruction that does it; [`headcount_model::Operation::RESUMED`] is its going on.
    pub kind: String,
    /// How often it began, or began at least.
    pub count: u64,
    /// Is that how often?
    pub is_exact: bool,
}

/// A function, or whatever else the language compiles by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceUnit {
    /// Its file.
    pub file: String,
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub first_line: u32,
    /// How often it was entered, or was at least.
    pub calls: u64,
    /// Is that how often?
    pub are_calls_exact: bool,
    /// Its lines, in order.
    pub lines: Vec<Line>,
    /// Its operations, in order.
    pub tokens: Vec<Token>,
}

/// The source of what ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// By file, first line and name.
    pub units: Vec<SourceUnit>,
    /// Sentences about what is not as it should be.
    pub notes: Vec<String>,
}

/// Files with source texts. Some languages' programs have to be read beside them.
pub trait Files {
    /// What is in a file, if it can be read.
    fn read(&self, path: &str) -> Option<Vec<u8>>;

    /// Where sources may be that are not beside their program, in order.
    fn folders(&self) -> &[String];
}

/// The source of pieces of program: their descriptions, and how often the instructions at which distances
/// from their starts began. What was compiled along with them and never ran is there as well.
pub fn sources<'d>(
    language: Language,
    pieces: impl IntoIterator<Item = (&'d [u8], &'d BTreeMap<usize, u64>)>,
    files: &dyn Files,
) -> Option<Sources> {
    let mut notes = Vec::new();
    let mut units = match language {
        Language::Python => cpython::units(pieces)?,
        Language::Lua => lua::units(pieces)?,
        Language::Icon => icon::units(pieces, files, &mut notes)?,
    };
    units.sort_by_cached_key(|it| (it.file.clone(), it.first_line, it.name.clone()));
    Some(Sources { units, notes })
}
