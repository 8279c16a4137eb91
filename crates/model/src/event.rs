//! What an instruction does each time it runs, in numbers that its bytes tell.

use crate::LinkAddr;
use std::ops::{Index, IndexMut};

/// Something that instructions do, and that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// An instruction.
    Instructions,
    /// A call, direct or not.
    Calls,
    /// A return.
    Returns,
    /// An unconditional jump, direct or not.
    Jumps,
    /// A conditional jump, whether it jumps or not.
    Branches,
    /// A conditional jump that jumps.
    Taken,
    /// One that jumps to its own address or a lower one.
    Backward,
    /// A jump or a call to an address that is computed.
    Indirect,
    /// A read of a place in memory.
    Loads,
    /// A write to one.
    Stores,
    /// A byte of a load.
    BytesRead,
    /// A byte of a store.
    BytesWritten,
    /// An operation on floating-point numbers of any width.
    Flops,
    /// The same, on 16 bits.
    Flops16,
    /// The same, on 32 bits.
    Flops32,
    /// The same, on 64 bits.
    Flops64,
    /// The same, on the 80 bits of the x87 registers.
    Flops80,
    /// An instruction that handles several values at once.
    Vector,
    /// A division of integers or of floating-point numbers.
    Divisions,
    /// A read and write of memory that nobody can come between.
    Atomics,
    /// An instruction that orders those around it.
    Fences,
    /// A system call.
    Syscalls,
}

impl Event {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 22] = [
        Self::Instructions,
        Self::Calls,
        Self::Returns,
        Self::Jumps,
        Self::Branches,
        Self::Taken,
        Self::Backward,
        Self::Indirect,
        Self::Loads,
        Self::Stores,
        Self::BytesRead,
        Self::BytesWritten,
        Self::Flops,
        Self::Flops16,
        Self::Flops32,
        Self::Flops64,
        Self::Flops80,
        Self::Vector,
        Self::Divisions,
        Self::Atomics,
        Self::Fences,
        Self::Syscalls,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Calls => "calls",
            Self::Returns => "returns",
            Self::Jumps => "jumps",
            Self::Branches => "branches",
            Self::Taken => "taken",
            Self::Backward => "backward",
            Self::Indirect => "indirect",
            Self::Loads => "loads",
            Self::Stores => "stores",
            Self::BytesRead => "bytes_read",
            Self::BytesWritten => "bytes_written",
            Self::Flops => "flops",
            Self::Flops16 => "flops_16",
            Self::Flops32 => "flops_32",
            Self::Flops64 => "flops_64",
            Self::Flops80 => "flops_80",
            Self::Vector => "vector",
            Self::Divisions => "divisions",
            Self::Atomics => "atomics",
            Self::Fences => "fences",
            Self::Syscalls => "syscalls",
        }
    }

    /// The event with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Whether edges tell how often it happens, and not blocks.
    pub fn is_of_edges(self) -> bool {
        matches!(self, Self::Taken | Self::Backward)
    }
}

/// How often an event happens each time an instruction runs: always the same number, or one
/// between two bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// So often or more.
    pub least: u32,
    /// So often or less; `None` if nothing limits it.
    pub most: Option<u32>,
}

impl Bounds {
    /// Never.
    pub const NEVER: Self = Self::exactly(0);
    /// Nobody knows how often.
    pub const ANY: Self = Self {
        least: 0,
        most: None,
    };

    /// Always so often.
    pub const fn exactly(number: u32) -> Self {
        Self {
            least: number,
            most: Some(number),
        }
    }

    /// So often or less.
    pub const fn up_to(number: u32) -> Self {
        Self {
            least: 0,
            most: Some(number),
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            most: self
                .most
                .zip(other.most)
                .and_then(|(a, b)| a.checked_add(b)),
        }
    }
}

/// How often each event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Events([Bounds; Event::ALL.len()]);

impl Default for Events {
    fn default() -> Self {
        Self([Bounds::NEVER; Event::ALL.len()])
    }
}

impl Index<Event> for Events {
    type Output = Bounds;

    fn index(&self, event: Event) -> &Bounds {
        &self.0[event as usize]
    }
}

impl IndexMut<Event> for Events {
    fn index_mut(&mut self, event: Event) -> &mut Bounds {
        &mut self.0[event as usize]
    }
}

/// Why the events of an instruction are not the same each time it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Varies {
    /// It repeats as often as a register says: `rep movs`.
    Repeats,
    /// A mask says which of its lanes it handles.
    Masked,
    /// The processor's state says how much it handles: `xsave`, and tiles.
    Configured,
}

/// What one instruction does each time it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionEvents {
    /// Its first byte.
    pub address: LinkAddr,
    /// Where it jumps, if it is a conditional jump.
    pub target: Option<LinkAddr>,
    /// The events. Of a conditional jump they do not tell whether it jumps.
    pub events: Events,
    /// Why some of them are only bounds.
    pub varies: Option<Varies>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_name_and_a_place() {
        for (place, event) in Event::ALL.into_iter().enumerate() {
            assert_eq!(event as usize, place);
            assert_eq!(Event::from_name(event.name()), Some(event));
        }
        assert_eq!(Event::from_name("heartbeats"), None);
    }

    #[test]
    fn what_nothing_limits_stays_so() {
        let both = Bounds::exactly(2).plus(Bounds::up_to(3));
        assert_eq!((both.least, both.most), (2, Some(5)));
        let sum = both.plus(Bounds::ANY);
        assert_eq!((sum.least, sum.most), (2, None));
    }
}
