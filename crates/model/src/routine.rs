//! Code that lies together, and where control enters it: what `binary` finds and `patch` moves.

use std::ops::Range;

use crate::LinkAddr;

/// A stretch of code that is moved as one: a function, or the part of one that lies together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routine {
    /// Its first byte.
    pub start: LinkAddr,
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// How many bytes behind it are filler, which nobody runs or reads.
    pub filler: u32,
    /// Its blocks, by address. Where a jump skips a prefix, a block lies inside of another. What is
    /// in none may be data.
    pub blocks: Vec<RoutineBlock>,
    /// What is in no block because it looks like data, although a jump that nobody sees through may
    /// lead there. By address, from the routine's start.
    pub doubtful: Vec<Range<u32>>,
    /// Is there an indirect jump of which nobody knows where it leads? It may be in here.
    pub has_unknown_jumps: bool,
    /// May it be several functions, because no table tells where they end?
    pub may_be_several: bool,
    /// Does somebody ask for the flags that it leaves behind, or leaves alone? Compilers for C do
    /// not.
    pub keeps_flags: bool,
    /// Where in its bytes, or in the filler, jumps of other routines are that need the room; by
    /// address, from the routine's start.
    pub islands: Vec<u32>,
}

/// A block of a routine. Every call ends one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutineBlock {
    /// Where it begins, from the routine's start.
    pub offset: u32,
    /// How many bytes each instruction has.
    pub lengths: Vec<u8>,
    /// How control comes in, besides by the routine's own direct jumps and by falling through.
    pub entrance: Entrance,
    /// Does nothing but a jump table of the routine itself lead here from elsewhere? (Not kept.)
    pub is_case: bool,
}

impl RoutineBlock {
    /// Where it ends, from the routine's start.
    pub fn end(&self) -> u32 {
        let bytes: u32 = self.lengths.iter().map(|it| u32::from(*it)).sum();
        self.offset.saturating_add(bytes)
    }
}

/// How control comes into a block from elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entrance {
    /// It does not.
    #[default]
    None,
    /// The routine begins here.
    Entry,
    /// A call before it returns, an exception lands, a table or a pointer leads here, or a jump of
    /// another routine does.
    Arrival,
}
