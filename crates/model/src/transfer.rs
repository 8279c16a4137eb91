//! Instructions that lead elsewhere.

use crate::LinkAddr;

/// What leads elsewhere in a piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// How many instructions there are in all.
    pub instructions: u32,
    /// Those that lead elsewhere, in order.
    pub all: Vec<Transfer>,
}

/// A call, a jump or a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The number of the instruction in its span.
    pub index: u32,
    /// Where it is.
    pub address: LinkAddr,
    /// What comes behind it: where a call returns to.
    pub next: LinkAddr,
    /// What it is.
    pub kind: TransferKind,
    /// Where it leads.
    pub to: Target,
}

/// How control goes elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// To come back.
    Call,
    /// For good.
    Jump,
    /// For good, on a condition.
    Branch,
    /// Back to the caller.
    Return,
}

/// Where control goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To this place.
    Code(LinkAddr),
    /// Where the pointer at this place leads.
    Pointer(LinkAddr),
    /// Only a run knows.
    Unknown,
}

/// What the loader writes into a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// This address of the same module.
    Code(LinkAddr),
    /// The address of what has this name, in any module.
    Named(String),
}
