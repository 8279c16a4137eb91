//! A file of assembler text, understood: its functions as sequences of operations, and who may
//! jump to, call or take the address of what.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use headcount_model::Refusal;

use crate::instruction::{Control, Effect};
use crate::lex::{self, Statement};
use crate::unwind::{FrameId, Frames};

/// Facts about the text that it does not tell itself.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the file, for lines of hand-written assembler and for refusals.
    pub name: String,
}

/// One operation: an instruction, or several pieces that must stay together.
#[derive(Clone, Debug)]
pub struct Op<'t> {
    /// Its statements.
    pub statements: Range<usize>,
    /// Where control goes after it.
    pub control: Control<'t>,
    /// What it needs and overwrites.
    pub effect: Effect,
    /// The unwinder's view of the frame before it.
    pub frame: FrameId,
    /// Line rows that begin at it: a range of [`Source::rows`].
    pub rows: Range<u32>,
    /// What kind of thing it is.
    pub what: What<'t>,
    /// Whether alignment stands right before it.
    pub aligned: bool,
    /// Alignment inside it (inline assembly): statements whose bytes are not the program's.
    pub padding: Vec<usize>,
}

/// What kind of thing an operation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What<'t> {
    /// An instruction of the program.
    Plain,
    /// `endbr64`, which must stay first at its place.
    Endbr,
    /// `call 1f; 1:`, which asks where it is: nothing may stand behind it.
    WhereAmI,
    /// Inline assembly, opaque: `targets` are labels it may jump to; `lost` if control may leave
    /// through it in another way; `tangled` if it has jumps of its own inside.
    Asm {
        targets: Vec<&'t str>,
        lost: bool,
        tangled: bool,
    },
}

/// A row of the line table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index into [`Source::files`].
    pub file: u32,
    /// The line, 0 for none in particular.
    pub line: u32,
    /// Whether a statement begins here.
    pub is_stmt: bool,
}

/// A contiguous piece of code under one symbol.
#[derive(Debug)]
pub struct Part<'t> {
    /// The symbol.
    pub name: &'t str,
    /// Statement of its label.
    pub label: usize,
    /// Section it is in: an index into [`Source::sections`].
    pub section: usize,
    /// What it consists of.
    pub ops: Vec<Op<'t>>,
    /// Why it cannot be counted.
    pub refusal: Option<Refusal>,
    /// Whether a person wrote it, who need not keep to the calling convention.
    pub by_hand: bool,
    /// The source line its first operation has, if known.
    pub first_row: Option<Row>,
}

/// Where a code label stands: before the operation `op` of `part` (which may be one past the
/// last).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spot {
    /// Index of the part.
    pub part: usize,
    /// Index of the operation.
    pub op: usize,
}

/// A section, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'t> {
    /// Its name.
    pub name: &'t str,
    /// Whether it holds code.
    pub code: bool,
    /// The comdat group it belongs to.
    pub group: Option<&'t str>,
}

/// A file of assembler text.
#[derive(Debug)]
pub struct Source<'t> {
    /// The text.
    pub text: &'t str,
    /// Its statements.
    pub statements: Vec<Statement>,
    /// Sections met.
    pub sections: Vec<Section<'t>>,
    /// Pieces of code, in the order of the text.
    pub parts: Vec<Part<'t>>,
    /// Named labels in code.
    pub labels: HashMap<&'t str, Spot>,
    /// Numbered labels in code: number, statement, spot.
    pub numbered: Vec<(&'t str, usize, Spot)>,
    /// Symbols mentioned in any other way than as the target of a jump or call.
    pub mentioned: HashSet<&'t str>,
    /// Numbered labels mentioned so, and the statement that does.
    pub mentioned_numbers: Vec<(&'t str, usize)>,
    /// Labels where exceptions land.
    pub pads: HashSet<&'t str>,
    /// Line rows.
    pub rows: Vec<Row>,
    /// Source files named by line rows.
    pub files: Vec<String>,
    /// The unwinder's view.
    pub frames: Frames,
    /// Symbols seen from other files.
    pub global: HashSet<&'t str>,
    /// Symbols another file may replace.
    pub weak: HashSet<&'t str>,
    /// Symbols that are resolved by running them.
    pub resolvers: HashSet<&'t str>,
    /// What cannot be counted, besides whole functions.
    pub refusals: Vec<Refusal>,
    /// Its name.
    pub name: String,
}

/// The whole file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Line of the trouble.
    pub line: u32,
    /// What it is.
    pub reason: String,
    /// Whether it is code of the kind that can be counted at all.
    pub in_64_bits: bool,
}

impl<'t> Source<'t> {
    /// Where the target of a jump at `statement` stands, if it is in this file's code.
    pub fn find(&self, name: &str, statement: usize) -> Option<Spot> {
        if !lex::is_numbered_reference(name) {
            return self.labels.get(name).copied();
        }
        let (number, direction) = name.split_at(name.len() - 1);
        let mut all = self.numbered.iter().filter(|label| label.0 == number);
        match direction {
            "f" => all.find(|label| label.1 > statement).map(|label| label.2),
            _ => all.rfind(|label| label.1 <= statement).map(|label| label.2),
        }
    }

    /// File and line of an operation, as far as the text tells.
    pub fn place(&self, op: Option<&Op>) -> (String, u32) {
        let rows = op.map_or(0, |op| op.rows.end as usize);
        match self.rows[..rows].last() {
            Some(row) => (self.files[row.file as usize].clone(), row.line),
            None => (self.name.clone(), 0),
        }
    }

    /// The text of a statement.
    pub fn text_of(&self, statement: usize) -> &'t str {
        &self.text[self.statements[statement].at.clone()]
    }
}
