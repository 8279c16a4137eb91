//! Counts in the formats of other tools: one file a format.
//!
//! [`write()`] gives the bytes, and says in notes what the format had no room for. Whoever calls
//! hands over what only files know (source texts) and what only a decoder knows (instructions).

mod coverage;
mod exclusions;
mod lcov;
mod limit;

use crate::glob::Pattern;
use crate::report::FindCalls;
use crate::{Error, RunSummary};
use headcount_model::{Counted, Span};
use limit::Limit;
use std::rc::Rc;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tracefiles of lcov, for `genhtml`, Codecov, Coveralls and editors.
    Lcov,
}

/// What an export is made of.
pub struct Material<'a> {
    /// The counts.
    pub counted: &'a [Counted],
    /// The runs that they were counted in.
    pub runs: &'a [RunSummary],
    /// Only functions and files with such names; all, if there is no pattern.
    pub only: &'a [Pattern],
    /// Whether names are shown as the programmer wrote them, where the format does not care.
    pub demangle: bool,
    /// The largest count to write.
    pub max_count: Option<u64>,
    /// Finds the lines of a source file.
    pub source: FindSource<'a>,
    /// Knows the lengths of instructions.
    pub lengths: &'a dyn Fn(&Span) -> Vec<u8>,
    /// Knows the calls among them.
    pub calls: FindCalls<'a>,
}

/// Finds the lines of a source file.
pub type FindSource<'a> = &'a dyn Fn(&str) -> Option<Rc<Vec<String>>>;

/// An export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// What goes into the file.
    pub bytes: Vec<u8>,
    /// What the file does not say, in sentences.
    pub notes: Vec<String>,
}

/// Writes counts in a format of another tool.
pub fn write(format: Format, material: &Material<'_>) -> Result<Exported, Error> {
    let limit = Limit::new(material.max_count);
    let mut exported = match format {
        Format::Lcov => lcov::write(material, &limit)?,
    };
    exported.notes.extend(limit.note());
    Ok(exported)
}

/// `1 line was`, `7 lines were`.
fn several(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one} was"),
        many => format!("{} {one}s were", crate::thousands(many as u64)),
    }
}
