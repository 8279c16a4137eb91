//! What has a thread that stands here done of the original?

use headcount_model::LinkAddr;

/// Which counter: its number among all counters.
pub type CounterNumber = u32;

/// A place in a copy where a thread may be found: before one of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Where it is in the copy.
    pub offset: u32,
    /// The original instruction that comes next.
    pub at: LinkAddr,
    /// What to do to the thread's registers if it is to stand there.
    pub undo: Undo,
    /// What to do to a counter.
    pub fix: Fix,
    /// Has the thread come into the routine, so that its going away is to be remembered?
    pub is_inside: bool,
    /// What a probe has added to the event counter, which it has not counted otherwise yet.
    pub ahead: i32,
    /// How many counts the keyed probes of that instruction have made: two each, how often and how
    /// much.
    pub tallied: u8,
}

/// What headcount's own code has done to the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Nothing.
    Nothing,
    /// `rax` is in the thread's scratch word.
    RestoreRax,
    /// A return address is on the stack.
    PopReturn,
    /// Both.
    PopReturnAndRestoreRax,
    /// `rax` is in the thread's scratch word, and `rcx` in its second one.
    RestoreRaxAndRcx,
    /// And `rdx` in its third one.
    RestoreThree,
    /// And the flags in one more.
    RestoreThreeAndFlags,
}

impl Undo {
    /// Must `rax` be restored?
    pub fn restores_rax(self) -> bool {
        matches!(self, Self::RestoreRax | Self::PopReturnAndRestoreRax) || self.restores_rcx()
    }

    /// Must `rcx` be restored?
    pub fn restores_rcx(self) -> bool {
        self == Self::RestoreRaxAndRcx || self.restores_rdx()
    }

    /// Must `rdx` be restored?
    pub fn restores_rdx(self) -> bool {
        matches!(self, Self::RestoreThree | Self::RestoreThreeAndFlags)
    }

    /// Must the flags be restored?
    pub fn restores_flags(self) -> bool {
        self == Self::RestoreThreeAndFlags
    }

    /// Must a return address be taken from the stack?
    pub fn pops_return(self) -> bool {
        matches!(self, Self::PopReturn | Self::PopReturnAndRestoreRax)
    }
}

/// What to do to a counter so that it says what it would if the thread stood at the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Nothing.
    Nothing,
    /// The probe has not run, and should have.
    Add(CounterNumber),
    /// The probe has run, and should not have; or it will, and should not.
    Take(CounterNumber),
}

impl Fix {
    /// The counter, and what is to be added to it.
    pub fn change(self) -> Option<(CounterNumber, i64)> {
        match self {
            Self::Nothing => None,
            Self::Add(counter) => Some((counter, 1)),
            Self::Take(counter) => Some((counter, -1)),
        }
    }
}

/// How a thread goes on in a copy that did not come there by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Where in the copy.
    pub offset: u32,
    /// What to do to a counter.
    pub fix: Fix,
}
