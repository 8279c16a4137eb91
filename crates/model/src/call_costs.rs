//! What calls cost: how many instructions were executed on behalf of each.

mod kept;

use crate::LinkAddr;

/// What the calls of a run cost.
///
/// An activation's cost is all that was executed from where it began until it ended, by whatever it
/// called. Of a function, and of a call, that calls itself again only the outermost activation is
/// counted: so no cost is more than all that was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCosts {
    /// Which builds the functions are of.
    pub builds: Vec<String>,
    /// The functions that ran.
    pub functions: Vec<CalledFunction>,
    /// Who called whom, from where.
    pub edges: Vec<CallEdge>,
    /// The calling contexts, each behind its parent; the first one is outside of all functions.
    pub contexts: Vec<CallContext>,
}

impl CallCosts {
    /// How many instructions were executed.
    pub fn executed(&self) -> u64 {
        let executed = self.contexts.iter().map(|it| it.executed);
        executed.fold(0, u64::saturating_add)
    }
}

/// A function that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CalledFunction {
    /// Its build.
    pub build: u32,
    /// Where it begins.
    pub start: LinkAddr,
    /// How often it was entered.
    pub calls: u64,
    /// What its outermost activations executed, with all that they called.
    pub inclusive: u64,
}

/// A call of one function from one place of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallEdge {
    /// Who called; `None`: nobody that was counted.
    pub caller: Option<u32>,
    /// The address behind the call, in the caller's module; `None`: it was a jump, or code that is not
    /// counted was between the two.
    pub site: Option<LinkAddr>,
    /// Whom.
    pub callee: u32,
    /// How often.
    pub calls: u64,
    /// What the outermost of these calls executed, with all that was called from there.
    pub inclusive: u64,
}

/// A function in one calling context. A function that is called again from itself stays in the context
/// where it was called first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallContext {
    /// The context it was called from; `None` for the first one only.
    pub parent: Option<u32>,
    /// By which call; 0 and without meaning for the first one.
    pub edge: u32,
    /// How often.
    pub calls: u64,
    /// How many instructions it executed itself.
    pub executed: u64,
}
