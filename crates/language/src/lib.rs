//! What interpreters run, and where that is in its source.
//!
//! An interpreter fetches each instruction of the program that it runs from memory, and jumps to the code
//! that does what it says. A probe that counts by the address fetched from counts the instructions of
//! that program, exactly, and the interpreter need not know. This crate says where in an
//! interpreter such probes belong ([`find`]), which piece of program an address is in while it runs
//! ([`Interpreter::unit_at`]), and what counts of its instructions say about its source ([`sources`]).
//!
//! One module for each interpreter; what an interpreter's version decides is in it and nowhere else.

#![forbid(unsafe_code)]

mod bounds;
mod cpython;
mod icon;
mod lua;
mod native;
mod program;
mod runtime;
mod source;

use std::ops::Range;
use std::rc::Rc;

use headcount_model::packed::{Packed, Packer};
use headcount_model::{Binary, Expression, LinkAddr, Width};

pub use headcount_model::Language;
pub use runtime::{Allocation, Collector, Current, OwnWord, Resumption, Runtime, Threads};
pub use source::{
    Charge, Files, Line, Measured, OfRuntime, Position, SourceUnit, Sources, Token, TokenCost,
    shared_out, sources,
};

/// An interpreter that is known.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name and version, for people.
    pub name: String,
    /// The language of the programs that it runs.
    pub language: Language,
    /// Where it fetches instructions: before which of its own it must be asked for what address.
    pub fetches: Vec<Fetch>,
    /// How it is known which piece of program is where, and when.
    pub watch: Watch,
    /// What can be measured of its runtime, or why it cannot; `None` if nobody knows how for its language.
    pub runtime: Option<Result<Runtime, String>>,
    /// The same interpreter, asked about a process.
    pub interpreter: Rc<dyn Interpreter>,
}

/// What tells where pieces of program are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// They can be found at any time ([`Interpreter::unit_at`]), until this function is called with one of them, in its
    /// first argument.
    Frees(LinkAddr),
    /// The same, and they are never freed.
    Nothing,
    /// They are in memory as soon as a function ends that brings them there, with what says where in its first
    /// argument ([`Interpreter::arrived`]). Until then, what was in their place did not run any more.
    Loads {
        /// Where the function begins.
        begin: LinkAddr,
        /// Where it returns, in order.
        ends: Vec<LinkAddr>,
    },
}

impl Watch {
    /// The instructions of the interpreter before which something is to be done, in order.
    pub fn instructions(&self) -> Vec<LinkAddr> {
        match self {
            Self::Frees(at) => vec![*at],
            Self::Nothing => Vec::new(),
            Self::Loads { begin, ends } => {
                let mut all: Vec<LinkAddr> = ends.iter().chain([begin]).copied().collect();
                all.sort_unstable();
                all
            }
        }
    }

    fn pack(&self, to: &mut Packer) {
        let (kind, begin, ends) = match self {
            Self::Frees(at) => (0, *at, &[][..]),
            Self::Nothing => (2, LinkAddr(0), &[][..]),
            Self::Loads { begin, ends } => (1, *begin, &ends[..]),
        };
        to.0.push(kind);
        to.wide(begin.0);
        to.many(ends, |to, it| to.wide(it.0));
    }

    fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let kind = from.u8()?;
        let begin = LinkAddr(from.wide()?);
        let ends = from.many(|from| from.wide().map(LinkAddr))?;
        match kind {
            0 => Some(Self::Frees(begin)),
            1 => Some(Self::Loads { begin, ends }),
            2 => Some(Self::Nothing),
            _ => None,
        }
    }
}

impl Found {
    /// As bytes, for another time: to look for all of it takes longer.
    pub fn pack(&self) -> Vec<u8> {
        let mut to = Packer::default();
        to.text(&self.name);
        to.0.push(self.language.code());
        self.watch.pack(&mut to);
        to.many(&self.interpreter.basis(), |to, it| to.wide(*it));
        to.many(&self.fetches, |to, fetch| {
            to.wide(fetch.at.0);
            to.number(fetch.free.into());
            let (kind, registers, from, by) = match fetch.address {
                Address::Register(register, by) => (0, [register, 0], 0, by),
                Address::Word(register, from, by) => (1, [register, 0], from, by),
                Address::Unless(register, other, from) => (2, [register, other], from, 0),
            };
            to.0.push(kind);
            to.0.extend(registers);
            to.signed_wide(from);
            to.signed_wide(by);
        });
        match &self.runtime {
            None => to.0.push(0),
            Some(Ok(runtime)) => {
                to.0.push(1);
                runtime.pack(&mut to);
            }
            Some(Err(why)) => {
                to.0.push(2);
                to.text(why);
            }
        }
        to.0
    }

    /// From such bytes; `None` if they make no sense.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let name = from.text()?;
        let language = Language::from_code(from.u8()?)?;
        let watch = Watch::unpack(&mut from)?;
        let basis = from.many(Packed::wide)?;
        let fetches = from.many(|from| {
            let at = LinkAddr(from.wide()?);
            let free = u16::try_from(from.number()?).ok()?;
            let (kind, register, other) = (from.u8()?, from.u8()?, from.u8()?);
            let (distance, by) = (from.signed_wide()?, from.signed_wide()?);
            let address = match kind {
                0 => Address::Register(register, by),
                1 => Address::Word(register, distance, by),
                2 => Address::Unless(register, other, distance),
                _ => return None,
            };
            Some(Fetch { at, address, free })
        })?;
        let runtime = match from.u8()? {
            0 => None,
            1 => Some(Ok(Runtime::unpack(&mut from)?)),
            _ => Some(Err(from.text()?)),
        };
        Some(Self {
            name,
            language,
            fetches,
            watch,
            runtime,
            interpreter: match language {
                Language::Python => cpython::interpreter(&basis),
                Language::Lua => lua::interpreter(&basis),
                Language::Icon => icon::interpreter(&basis),
            }?,
        })
    }
}

/// Before an instruction of the interpreter, another of its program is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The interpreter's.
    pub at: LinkAddr,
    /// Where the program's is in memory.
    pub address: Address,
    /// Registers that may be overwritten there, as bits by number.
    pub free: u16,
}

/// How an interpreter knows an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// So far from what is in the register with this number.
    Register(u8, i64),
    /// So far (the last number) from the word that is so far (the one before) from what is in the register.
    Word(u8, i64, i64),
    /// What is in the first register, unless that is the word that is so far from what is in the second one: then it is
    /// [`NO_FETCH`].
    Unless(u8, u8, i64),
}

/// No instruction has this address. Where it is counted, an instruction was only done in another way.
pub const NO_FETCH: u64 = 0;

impl Address {
    /// For a probe.
    pub fn expression(self) -> Expression {
        match self {
            Self::Register(register, by) => Expression::offset(register, by),
            Self::Word(register, from, by) => {
                let word = Expression::load(Width::WHOLE, Expression::offset(register, from));
                Expression::sum(word, Expression::Constant(by))
            }
            Self::Unless(register, other, from) => {
                let word = Expression::load(Width::WHOLE, Expression::offset(other, from));
                let is_another =
                    Expression::binary(Binary::NotEqual, Expression::Register(register), word);
                Expression::binary(Binary::Multiply, Expression::Register(register), is_another)
            }
        }
    }
}

/// The memory of a process.
pub trait Memory {
    /// Fills `into`, or says that it cannot.
    fn read(&self, at: u64, into: &mut [u8]) -> Option<()>;

    /// The files that the process may have read by a name: their paths and what is in them now.
    fn files(&self, _name: &[u8]) -> Vec<(String, Vec<u8>)> {
        Vec::new()
    }
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

/// Pieces of program that came into memory together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where the instructions of each are. In the description, they come one after the other.
    pub parts: Vec<Range<u64>>,
    /// What there is to know of all of them, for [`sources`].
    pub description: Vec<u8>,
}

/// An interpreter, asked about a process that it runs in. Which questions it answers, [`Watch`] says.
pub trait Interpreter: std::fmt::Debug {
    /// The piece of program that has an instruction at an address. `bias` is how far the interpreter
    /// was moved.
    fn unit_at(&self, _memory: &dyn Memory, _bias: u64, _at: u64) -> Option<Unit> {
        None
    }

    /// The addresses of the instructions of a piece that is about to be freed.
    fn extent(&self, _memory: &dyn Memory, _bias: u64, _freed: u64) -> Option<Range<u64>> {
        None
    }

    /// What came into memory just now. `about` is the first argument of what did that.
    fn arrived(&self, _memory: &dyn Memory, _about: u64) -> Option<Arrival> {
        None
    }

    /// What it goes by: addresses in the interpreter's file and the like, for [`Found::unpack`].
    fn basis(&self) -> Vec<u64>;
}

/// Does this file look like an interpreter? [`find`] takes longer to say.
pub fn is_likely(bytes: &[u8]) -> bool {
    cpython::is_likely(bytes) || lua::is_likely(bytes) || icon::is_likely(bytes)
}

/// Is this file an interpreter whose programs can be counted? An error says why they cannot.
pub fn find(bytes: &[u8]) -> Option<Result<Found, String>> {
    cpython::find(bytes)
        .or_else(|| lua::find(bytes))
        .or_else(|| icon::find(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_kept() {
        let fetch = |at, address| Fetch {
            at: LinkAddr(at),
            address,
            free: 0x4800,
        };
        let found = Found {
            name: "CPython 3.11.2".to_owned(),
            language: Language::Python,
            fetches: vec![
                fetch(1, Address::Register(15, -2)),
                fetch(u64::MAX, Address::Word(3, 0x38, 4)),
                fetch(2, Address::Unless(14, 13, 0x38)),
            ],
            watch: Watch::Frees(LinkAddr(9)),
            runtime: Some(Err("it is another one".to_owned())),
            interpreter: cpython::interpreter(&[7, 9, 12]).unwrap(),
        };
        let bytes = found.pack();
        let again = Found::unpack(&bytes).unwrap();
        assert_eq!((&again.name, &again.fetches), (&found.name, &found.fetches));
        assert_eq!(
            (&again.watch, again.interpreter.basis(), &again.runtime),
            (&found.watch, vec![7, 9, 12], &found.runtime)
        );
        for end in 0..bytes.len() {
            assert!(Found::unpack(&bytes[..end]).is_none());
        }
    }
}
