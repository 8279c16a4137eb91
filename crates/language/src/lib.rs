//! What interpreters run, and where that is in its source.
//!
//! An interpreter fetches each instruction of the program that it runs from memory, and jumps to the code
//! that does what it says. A probe that counts by the address fetched from counts the instructions of
//! that program, exactly, and the interpreter need not know. This crate says where in an
//! interpreter such probes belong ([`find`]), which piece of program an address is in while it runs
//! ([`Interpreter::unit_at`]), and what counts of its instructions say about its source ([`sources`]).
//!
//! One module for each interpreter; what an interpreter's version decides is in it and nowhere else.

mod cpython;
mod program;
mod source;

use std::rc::Rc;

use headcount_model::{Expression, LinkAddr};

pub use source::{Line, Position, SourceUnit, Sources, Token, sources};

/// An interpreter that is known.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name and version, for people.
    pub name: String,
    /// The language of the programs that it runs.
    pub language: Language,
    /// Where it fetches instructions: before which of its own it must be asked for what address.
    pub fetches: Vec<Fetch>,
    /// The function that is called with a piece of program, in its first argument, before the memory of
    /// that is used for something else.
    pub frees: Option<LinkAddr>,
    /// The same interpreter, asked about a process.
    pub interpreter: Rc<dyn Interpreter>,
}

/// A language whose interpreters are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Python
    Python,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Python];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
        }
    }

    /// Its name in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Self::Python => "Python",
        }
    }

    /// The language with this word.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// Before an instruction of the interpreter, another of its program is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The interpreter's.
    pub at: LinkAddr,
    /// Where the program's is in memory.
    pub address: Expression,
}

/// The memory of a process.
pub trait Memory {
    /// Fills `into`, or says that it cannot.
    fn read(&self, at: u64, into: &mut [u8]) -> Option<()>;
}

/// A piece of program in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its instructions are in these addresses.
    pub start: u64,
    /// Where they end.
    pub end: u64,
    /// What there is to know of it, for [`sources`].
    pub description: Vec<u8>,
}

/// An interpreter, asked about a process that it runs in.
pub trait Interpreter: std::fmt::Debug {
    /// The piece of program that has an instruction at an address. `bias` is how far the interpreter
    /// was moved.
    fn unit_at(&self, memory: &dyn Memory, bias: u64, at: u64) -> Option<Unit>;

    /// The addresses of the instructions of a piece that is about to be freed.
    fn extent(&self, memory: &dyn Memory, bias: u64, freed: u64) -> Option<std::ops::Range<u64>>;
}

/// Is this file an interpreter whose programs can be counted? An error says why they cannot.
pub fn find(bytes: &[u8]) -> Option<Result<Found, String>> {
    cpython::find(bytes)
}
