//! What can be measured of an interpreter's runtime, besides the instructions that it fetches.

use std::iter::successors;

use headcount_model::packed::{Packed, Packer};
use headcount_model::{Binary, Expression, LinkAddr, StorageRegion, Width};

/// Where a runtime goes on with operations, and where it manages storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Which instruction of its program a thread executes.
    pub current: Current,
    /// The list of all threads, if `current` does not know of those that let others run meanwhile.
    pub threads: Option<Threads>,
    /// Where an operation goes on that has had a result.
    pub resumptions: Vec<Resumption>,
    /// Where storage is taken, or given back.
    pub allocations: Vec<Allocation>,
    /// Who looks for storage that nobody needs any more, if that is a time of its own.
    pub collector: Option<Collector>,
}

/// How it is known which instruction of its program a thread executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Current {
    /// This word has an address behind the beginning of the instruction, and not behind its end.
    Behind(LinkAddr),
    /// A word of the thread's own has the address of its state; so far from there is another one, and so on: the last one
    /// is that of the instruction.
    Through {
        /// The word.
        own: OwnWord,
        /// Where the state says which thread it is of.
        thread: i64,
        /// From there to the instruction.
        by: Vec<i64>,
    },
}

/// A list of the states of threads, which lead to the instructions that they execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    /// A word with an address; so far from there is another one, and so on: the last one is that of the first state.
    pub at: LinkAddr,
    /// See `at`.
    pub to_first: Vec<i64>,
    /// Where a state has the address of the next one, ...
    pub next: i64,
    /// ... which thread it is of, ...
    pub thread: i64,
    /// ... and from there to the instruction.
    pub through: Vec<i64>,
}

impl Threads {
    /// The address of the instruction that a thread executes. `word` reads the memory of its process.
    pub fn current(
        &self,
        word: &dyn Fn(u64) -> Option<u64>,
        bias: u64,
        thread_pointer: u64,
    ) -> Option<u64> {
        const MOST: usize = 1 << 12;
        let follow = |at: u64, by: &i64| word(at.wrapping_add_signed(*by));
        let first = word(self.at.0.wrapping_add(bias))?;
        let first = self.to_first.iter().try_fold(first, follow)?;
        let mut states = successors(Some(first), |it| follow(*it, &self.next)).take(MOST);
        let own = states.find(|it| follow(*it, &self.thread) == Some(thread_pointer))?;
        self.through.iter().try_fold(own, follow)
    }

    fn pack(&self, to: &mut Packer) {
        to.wide(self.at.0);
        to.signed_wide(self.next);
        to.signed_wide(self.thread);
        to.many(&self.to_first, |to, it| to.signed_wide(*it));
        to.many(&self.through, |to, it| to.signed_wide(*it));
    }

    fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        Some(Self {
            at: LinkAddr(from.wide()?),
            next: from.signed_wide()?,
            thread: from.signed_wide()?,
            to_first: from.many(Packed::signed_wide)?,
            through: from.many(Packed::signed_wide)?,
        })
    }
}

/// A word that each thread has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnWord {
    /// All threads have the same one, of which one thread is the holder.
    OfHolder(LinkAddr),
    /// So far from where the thread's own variables are.
    Fixed(i64),
    /// The same, where a word says how far.
    Initial(LinkAddr),
    /// So far in a block of the module whose number is in a word.
    Dynamic(LinkAddr, i64),
}

impl OwnWord {
    /// What is in it.
    fn expression(self) -> Expression {
        let word = |at| Expression::load(Width::WHOLE, at);
        let behind = |at, by| word(Expression::sum(at, Expression::Constant(by)));
        match self {
            Self::OfHolder(at) => word(Expression::Address(at.0)),
            Self::Fixed(by) => behind(Expression::ThreadPointer, by),
            Self::Initial(at) => {
                let by = word(Expression::Address(at.0));
                word(Expression::sum(Expression::ThreadPointer, by))
            }
            Self::Dynamic(module, by) => {
                let blocks = behind(Expression::ThreadPointer, BLOCKS);
                let number = word(Expression::Address(module.0));
                let block = Expression::scaled(number, BLOCK_BYTES);
                behind(word(Expression::sum(blocks, block)), by)
            }
        }
    }
}

/// Where glibc keeps, for a thread, the address of the list of modules' blocks, ...
const BLOCKS: i64 = 8;

/// ... and how far these are from each other.
const BLOCK_BYTES: i64 = 16;

/// Before an instruction of the interpreter, an operation goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    /// The interpreter's.
    pub at: LinkAddr,
    /// The number of the register with the address of what was kept of the operation meanwhile.
    pub frame: u8,
    /// Where in that an address is like that in [`Runtime::current`].
    pub current: i64,
    /// Where in that is what sort of frame it is.
    pub sort: i64,
    /// The sort that belongs to no operation.
    pub no_operation: i64,
}

impl Resumption {
    /// An address in the instruction that goes on; near 0, if there is none.
    pub fn address(&self) -> Expression {
        const SORT: Width = Width {
            bytes: 4,
            is_signed: true,
        };
        let word = |width, by| Expression::load(width, Expression::offset(self.frame, by));
        let is_operation = Expression::binary(
            Binary::NotEqual,
            word(SORT, self.sort),
            Expression::Constant(self.no_operation),
        );
        let current = word(Width::WHOLE, self.current);
        within(Expression::binary(Binary::Multiply, current, is_operation))
    }
}

/// Before an instruction of the interpreter, storage is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The interpreter's.
    pub at: LinkAddr,
    /// Where the storage is.
    pub region: StorageRegion,
    /// How many bytes: so many times what is in the register with this number, or 1.
    pub bytes: (i64, Option<u8>),
}

impl Allocation {
    /// How many bytes. Those that are given back are less than none.
    pub fn amount(&self) -> Expression {
        match self.bytes {
            (times, Some(register)) => Expression::scaled(Expression::Register(register), times),
            (bytes, None) => Expression::Constant(bytes),
        }
    }
}

/// A function that frees storage, and one that gets more of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Where it begins. Its first argument is the number of a region that is full.
    pub begin: LinkAddr,
    /// Where it returns, in order.
    pub ends: Vec<LinkAddr>,
    /// Where a region has got a new part, and which register has the address of what describes the part before it.
    pub has_grown: Vec<(LinkAddr, u8)>,
    /// The words with the addresses of what describes parts of regions.
    pub regions: Vec<(StorageRegion, LinkAddr)>,
    /// Where in such a description are: the first address of the part, the first one that is free, and the
    /// addresses of the descriptions before it and behind it.
    pub parts: [u64; 4],
}

impl Runtime {
    /// An address in the instruction that is executed; near 0 or unreadable, if there is none.
    pub fn address(&self) -> Expression {
        match &self.current {
            Current::Behind(at) => {
                within(Expression::load(Width::WHOLE, Expression::Address(at.0)))
            }
            Current::Through { own, thread, by } => {
                let behind = |address: Expression, by: &i64| {
                    let at = Expression::sum(address, Expression::Constant(*by));
                    Expression::load(Width::WHOLE, at)
                };
                // There may be that of another thread, or something else altogether.
                let state = own.expression();
                let whose = behind(state.clone(), thread);
                let is_own = Expression::binary(Binary::Equal, whose, Expression::ThreadPointer);
                let state = Expression::binary(Binary::Multiply, state, is_own);
                by.iter().fold(state, behind)
            }
        }
    }

    /// The instructions of the interpreter before which something is to be done.
    pub fn instructions(&self) -> impl Iterator<Item = LinkAddr> {
        self.collector.iter().flat_map(|it| {
            let grown = it.has_grown.iter().map(|it| it.0);
            it.ends.iter().copied().chain(grown).chain([it.begin])
        })
    }

    pub(crate) fn pack(&self, to: &mut Packer) {
        self.current.pack(to);
        to.many(self.threads.as_slice(), |to, it| it.pack(to));
        to.many(&self.resumptions, |to, it| {
            to.wide(it.at.0);
            to.0.push(it.frame);
            for number in [it.current, it.sort, it.no_operation] {
                to.signed_wide(number);
            }
        });
        to.many(&self.allocations, |to, it| {
            to.wide(it.at.0);
            to.0.push(it.region.code());
            to.signed_wide(it.bytes.0);
            to.0.push(it.bytes.1.map_or(0, |it| it + 1));
        });
        to.many(self.collector.as_slice(), |to, it| {
            to.wide(it.begin.0);
            to.many(&it.ends, |to, it| to.wide(it.0));
            to.many(&it.has_grown, |to, (at, register)| {
                to.wide(at.0);
                to.0.push(*register);
            });
            to.many(&it.regions, |to, (region, at)| {
                to.0.push(region.code());
                to.wide(at.0);
            });
            it.parts.iter().for_each(|it| to.wide(*it));
        });
    }

    pub(crate) fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let place = |from: &mut Packed<'_>| from.wide().map(LinkAddr);
        Some(Self {
            current: Current::unpack(from)?,
            threads: from.many(Threads::unpack)?.pop(),
            resumptions: from.many(|from| {
                Some(Resumption {
                    at: place(from)?,
                    frame: from.u8()?,
                    current: from.signed_wide()?,
                    sort: from.signed_wide()?,
                    no_operation: from.signed_wide()?,
                })
            })?,
            allocations: from.many(|from| {
                Some(Allocation {
                    at: place(from)?,
                    region: StorageRegion::from_code(from.u8()?)?,
                    bytes: (from.signed_wide()?, from.u8()?.checked_sub(1)),
                })
            })?,
            collector: from.many(Collector::unpack)?.pop(),
        })
    }
}

impl Collector {
    fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let place = |from: &mut Packed<'_>| from.wide().map(LinkAddr);
        Some(Self {
            begin: place(from)?,
            ends: from.many(place)?,
            has_grown: from.many(|from| Some((place(from)?, from.u8()?)))?,
            regions: from.many(|from| {
                let region = StorageRegion::from_code(from.u8()?)?;
                Some((region, place(from)?))
            })?,
            parts: [from.wide()?, from.wide()?, from.wide()?, from.wide()?],
        })
    }
}

impl Current {
    fn pack(&self, to: &mut Packer) {
        let (own, thread, by) = match self {
            Self::Behind(at) => {
                to.0.push(0);
                return to.wide(at.0);
            }
            Self::Through { own, thread, by } => (own, thread, by),
        };
        let (kind, at, distance) = match own {
            OwnWord::OfHolder(at) => (1, *at, 0),
            OwnWord::Fixed(distance) => (2, LinkAddr(0), *distance),
            OwnWord::Initial(at) => (3, *at, 0),
            OwnWord::Dynamic(at, distance) => (4, *at, *distance),
        };
        to.0.push(kind);
        to.wide(at.0);
        to.signed_wide(distance);
        to.signed_wide(*thread);
        to.many(by, |to, it| to.signed_wide(*it));
    }

    fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let (kind, at) = (from.u8()?, LinkAddr(from.wide()?));
        if kind == 0 {
            return Some(Self::Behind(at));
        }
        let distance = from.signed_wide()?;
        let own = match kind {
            1 => OwnWord::OfHolder(at),
            2 => OwnWord::Fixed(distance),
            3 => OwnWord::Initial(at),
            4 => OwnWord::Dynamic(at, distance),
            _ => return None,
        };
        Some(Self::Through {
            own,
            thread: from.signed_wide()?,
            by: from.many(Packed::signed_wide)?,
        })
    }
}

/// From an address behind the beginning of an instruction to one that is surely in it.
fn within(address: Expression) -> Expression {
    Expression::sum(address, Expression::Constant(-1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_among_others() {
        let words: std::collections::HashMap<u64, u64> = [
            // The first state of two, which leads through a frame.
            (0x1010, 0x2000),
            (0x2008, 0x3000),
            (0x2010, 71),
            (0x3008, 0),
            (0x3010, 72),
            (0x3020, 0x4000),
            (0x4038, 0x5555),
        ]
        .into();
        let threads = Threads {
            at: LinkAddr(0x10),
            to_first: Vec::new(),
            next: 8,
            thread: 0x10,
            through: vec![0x20, 0x38],
        };
        let of = |thread| threads.current(&|at| words.get(&at).copied(), 0x1000, thread);
        assert_eq!((of(72), of(71), of(73)), (Some(0x5555), None, None));
    }

    #[test]
    fn every_way_to_the_current_instruction_is_kept() {
        let through = |own| Current::Through {
            own,
            thread: 0x98,
            by: vec![0x38, -8, 0x38],
        };
        for current in [
            Current::Behind(LinkAddr(7)),
            through(OwnWord::OfHolder(LinkAddr(9))),
            through(OwnWord::Fixed(-24)),
            through(OwnWord::Initial(LinkAddr(3))),
            through(OwnWord::Dynamic(LinkAddr(5), 8)),
        ] {
            let mut packed = Packer::default();
            current.pack(&mut packed);
            assert_eq!(Current::unpack(&mut Packed(&packed.0)), Some(current));
        }
    }

    #[test]
    fn what_was_found_is_kept() {
        let places = |all: &[u64]| all.iter().copied().map(LinkAddr).collect::<Vec<_>>();
        let runtime = Runtime {
            current: Current::Behind(LinkAddr(0x7cbd0)),
            threads: Some(Threads {
                at: LinkAddr(3),
                to_first: vec![0x48],
                next: 8,
                thread: 0x98,
                through: vec![0x38],
            }),
            resumptions: vec![Resumption {
                at: LinkAddr(1),
                frame: 6,
                current: 0x18,
                sort: 0,
                no_operation: 2,
            }],
            allocations: vec![
                Allocation {
                    at: LinkAddr(2),
                    region: StorageRegion::String,
                    bytes: (1, Some(0)),
                },
                Allocation {
                    at: LinkAddr(3),
                    region: StorageRegion::Block,
                    bytes: (-48, None),
                },
            ],
            collector: Some(Collector {
                begin: LinkAddr(4),
                ends: places(&[5, 6]),
                has_grown: vec![(LinkAddr(8), 13)],
                regions: vec![(StorageRegion::Block, LinkAddr(9))],
                parts: [8, 24, 32, 40],
            }),
        };
        let mut packed = Packer::default();
        runtime.pack(&mut packed);
        assert_eq!(Runtime::unpack(&mut Packed(&packed.0)), Some(runtime));
        for end in 0..packed.0.len() {
            assert_eq!(Runtime::unpack(&mut Packed(&packed.0[..end])), None);
        }
    }
}
