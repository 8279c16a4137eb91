//! One number a thread that counts events, kept by the same probes (Ball 1994).
//!
//! It is exact whenever control is outside of all routines: when a call is made, and when it
//! returns. Inside of one it is behind by the lead of the instruction that comes next, or before.

use headcount_model::{EventPlan, LinkAddr, Plan};

use crate::spots::CounterNumber;

/// Where the number is, from the base of `gs` on.
pub const AT: u32 = 8;

/// Where probes keep a second register meanwhile.
pub const SCRATCH: u32 = 16;

/// Which events a copy counts, and what it does about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Events {
    /// None.
    #[default]
    None,
    /// Instructions. It traps when the number is no longer negative.
    CountDown(EventPlan),
    /// Entries at these addresses, and traps likewise.
    CountDownEntries(Vec<LinkAddr>),
    /// Instructions, with a log of what arrives from other routines (`log.rs`).
    Log(EventPlan),
}

impl Events {
    fn plan(&self) -> Option<&EventPlan> {
        match self {
            Self::CountDown(plan) | Self::Log(plan) => Some(plan),
            Self::None | Self::CountDownEntries(_) => None,
        }
    }

    /// Is it logged what arrives from other routines?
    pub(crate) fn are_logged(&self) -> bool {
        matches!(self, Self::Log(_))
    }

    /// Are they those of a routine with so many blocks and this plan?
    pub(crate) fn fit(&self, blocks: usize, plan: &Plan) -> bool {
        self.plan()
            .is_none_or(|it| it.leads.len() == blocks && it.increments.len() == plan.counters.len())
    }

    /// What the probe of a counter adds.
    pub(crate) fn of(&self, counter: CounterNumber) -> i32 {
        self.plan().map_or(0, |it| it.increments[counter as usize])
    }

    /// Are entries at an address counted?
    pub(crate) fn count_entries_at(&self, at: LinkAddr) -> bool {
        matches!(self, Self::CountDownEntries(entries) if entries.contains(&at))
    }

    /// May adding so many bring the number to its end?
    pub(crate) fn ends_with(&self, events: i32) -> bool {
        matches!(self, Self::CountDown(_) | Self::CountDownEntries(_)) && events > 0
    }

    /// By how much the true number is ahead before an instruction of a block with this counter.
    pub(crate) fn lead(
        &self,
        block: usize,
        instruction: usize,
        counter: Option<CounterNumber>,
    ) -> Option<i32> {
        let begin = self.plan()?.leads[block];
        Some(match instruction {
            0 => begin,
            _ => begin + instruction as i32 - counter.map_or(0, |it| self.of(it)),
        })
    }

    pub(crate) fn into_increments(self) -> Vec<i32> {
        match self {
            Self::CountDown(plan) | Self::Log(plan) => plan.increments,
            Self::None | Self::CountDownEntries(_) => Vec::new(),
        }
    }
}
