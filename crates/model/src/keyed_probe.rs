//! Probes that choose their counter by a value.

use crate::{Expression, LinkAddr};

/// A probe that counts, by what is computed there, how often a place was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedProbe {
    /// The instruction that it comes before.
    pub at: LinkAddr,
    /// Whose counts it makes: the number of a tally.
    pub tally: u8,
    /// The number of this place among all places of the run; see [`MOST_PLACES`].
    pub place: u16,
    /// Is the key the address of an instruction that is interpreted?
    pub is_fetch: bool,
    /// What is computed.
    pub key: KeyOf,
    /// Keys below the first number, or not below the second one, are two keys of their own.
    pub within: Option<(i64, i64)>,
    /// What is added up besides, for each key.
    pub amount: Option<Expression>,
    /// The address that the function will return to, if keys are told apart by that.
    pub caller: Option<Expression>,
    /// Registers whose contents nobody looks at any more, as bits by number. If there are any, what the key is
    /// computed from can surely be read.
    pub free: u16,
    /// Where its slots are, if each of its keys has one of its own.
    pub direct: Option<Direct>,
}

/// The slots of keys that are few: one for each, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direct {
    /// The key of the first one.
    pub least: i32,
    /// How many keys there are.
    pub keys: u16,
    /// The number of the first slot, among those of the tally.
    pub first: u16,
}

/// So many slots a tally has for keys that are few.
pub const DIRECT_SLOTS: u16 = 1 << 10;

/// The slots behind those of the keys: for what is below these, above, and unreadable.
pub const DIRECT_BESIDES: [KeyKind; 3] = [KeyKind::Below, KeyKind::Above, KeyKind::Unreadable];

/// The first key is no farther from zero: an instruction has room for so many times the size of a slot.
const FARTHEST: i32 = 1 << 24;

impl Direct {
    /// How many slots there are.
    pub fn slots(self) -> u16 {
        self.keys + DIRECT_BESIDES.len() as u16
    }
}

impl KeyedProbe {
    /// The slots of its keys, the first of which has this number, if these are few enough to lie in a row.
    pub fn direct_from(&self, first: u16) -> Option<Direct> {
        let KeyOf::Number(key) = &self.key else {
            return None;
        };
        if self.caller.is_some() || self.is_fetch {
            return None;
        }
        let (least, end) = match self.within {
            Some(within) => within,
            None => {
                let (least, most) = key.bounds()?;
                (least, most.checked_add(1)?)
            }
        };
        let direct = Direct {
            least: i32::try_from(least)
                .ok()
                .filter(|it| it.abs() <= FARTHEST)?,
            keys: u16::try_from(end.checked_sub(least)?).ok()?,
            first,
        };
        let end = u32::from(first) + u32::from(direct.keys) + DIRECT_BESIDES.len() as u32;
        (end <= u32::from(DIRECT_SLOTS)).then_some(direct)
    }
}

/// What the key of a probe is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOf {
    /// A number.
    Number(Expression),
    /// The text at an address: so many bytes of it, or those before a zero. The key in the table is
    /// its hash.
    Text(Expression, u32),
    /// Where control is about to go; told apart by the place it comes from.
    Target(Expression),
    /// Always this one.
    Only(KeyKind),
}

/// So many places of keyed probes can be told apart.
pub const MOST_PLACES: u16 = 1 << 12;

/// So many tallies can be asked for at once.
pub const MOST_ASKED: usize = 32;

/// So many can be kept: there are those that headcount adds for targets and for languages.
pub const MOST_TALLIES: usize = MOST_ASKED + 8;

/// Keys that are not numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum KeyKind {
    /// A number, after all.
    Number = 0,
    /// It would have been in memory that cannot be read, or a division had no result.
    Unreadable = 1,
    /// Below the range that is told apart.
    Below = 2,
    /// Above it.
    Above = 3,
    /// The function ended by a jump to another one, which returns in its place.
    Jumped = 4,
    /// There were more keys than can be told apart.
    Other = 5,
    /// Code of no module that is counted.
    Elsewhere = 6,
    /// A text that another thread changed before it could be written down.
    Changed = 7,
}

impl KeyKind {
    /// The kind with this number.
    pub fn of(number: u8) -> Option<Self> {
        const ALL: [KeyKind; 8] = [
            KeyKind::Number,
            KeyKind::Unreadable,
            KeyKind::Below,
            KeyKind::Above,
            KeyKind::Jumped,
            KeyKind::Other,
            KeyKind::Elsewhere,
            KeyKind::Changed,
        ];
        ALL.get(usize::from(number)).copied()
    }
}

/// The keyed probes of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyedProbes {
    /// By address.
    pub probes: Vec<KeyedProbe>,
    /// Which tally says where indirect calls and jumps lead, if that is asked for.
    pub targets: Option<u8>,
    /// Instructions of which headcount is told before they run, in order.
    pub notices: Vec<LinkAddr>,
    /// If they are the same in every run: what tells them from others. Copies with them can be kept.
    pub kept_as: Option<String>,
}

impl KeyedProbes {
    /// None at all.
    pub const NONE: Self = Self {
        probes: Vec::new(),
        targets: None,
        notices: Vec::new(),
        kept_as: None,
    };

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty() && self.targets.is_none() && self.notices.is_empty()
    }

    /// The one that counts where the indirect call or jump at an address goes, if that is asked for.
    pub fn of_target(&self, at: LinkAddr, target: Expression) -> Option<KeyedProbe> {
        Some(KeyedProbe {
            at,
            tally: self.targets?,
            place: 0,
            is_fetch: false,
            key: KeyOf::Target(target),
            within: None,
            amount: None,
            caller: None,
            free: 0,
            direct: None,
        })
    }

    /// Is headcount told before an instruction runs?
    pub fn is_noticed(&self, at: LinkAddr) -> bool {
        self.notices.binary_search(&at).is_ok()
    }

    /// Those before an instruction, in the order of their tallies.
    pub fn at(&self, at: LinkAddr) -> &[KeyedProbe] {
        let first = self.probes.partition_point(|it| it.at < at);
        let count = self.probes[first..].partition_point(|it| it.at == at);
        &self.probes[first..first + count]
    }
}
