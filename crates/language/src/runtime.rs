//! What can be measured of an interpreter's runtime, besides the instructions that it fetches.

use headcount_model::packed::{Packed, Packer};
use headcount_model::{Binary, Expression, LinkAddr, StorageRegion, Width};

/// Where a runtime goes on with operations, and where it manages storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// The word with an address behind the beginning of the instruction that is executed, and not behind its end.
    pub current: LinkAddr,
    /// Where an operation goes on that has had a result.
    pub resumptions: Vec<Resumption>,
    /// Where storage is taken, or given back.
    pub allocations: Vec<Allocation>,
    /// Who looks for storage that nobody needs any more.
    pub collector: Collector,
}

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
    /// An address in the instruction that is executed; near 0, if there is none.
    pub fn address(&self) -> Expression {
        let word = Expression::load(Width::WHOLE, Expression::Address(self.current.0));
        within(word)
    }

    /// The instructions of the interpreter before which something is to be done.
    pub fn instructions(&self) -> impl Iterator<Item = LinkAddr> {
        let it = &self.collector;
        let grown = it.has_grown.iter().map(|it| it.0);
        it.ends.iter().copied().chain(grown).chain([it.begin])
    }

    pub(crate) fn pack(&self, to: &mut Packer) {
        let places = |to: &mut Packer, of: &[LinkAddr]| to.many(of, |to, it| to.wide(it.0));
        to.wide(self.current.0);
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
        let it = &self.collector;
        to.wide(it.begin.0);
        places(to, &it.ends);
        to.many(&it.has_grown, |to, (at, register)| {
            to.wide(at.0);
            to.0.push(*register);
        });
        to.many(&it.regions, |to, (region, at)| {
            to.0.push(region.code());
            to.wide(at.0);
        });
        it.parts.iter().for_each(|it| to.wide(*it));
    }

    pub(crate) fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let place = |from: &mut Packed<'_>| from.wide().map(LinkAddr);
        Some(Self {
            current: place(from)?,
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
            collector: Collector {
                begin: place(from)?,
                ends: from.many(place)?,
                has_grown: from.many(|from| Some((place(from)?, from.u8()?)))?,
                regions: from.many(|from| {
                    let region = StorageRegion::from_code(from.u8()?)?;
                    Some((region, place(from)?))
                })?,
                parts: [from.wide()?, from.wide()?, from.wide()?, from.wide()?],
            },
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
    fn what_was_found_is_kept() {
        let places = |all: &[u64]| all.iter().copied().map(LinkAddr).collect::<Vec<_>>();
        let runtime = Runtime {
            current: LinkAddr(0x7cbd0),
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
            collector: Collector {
                begin: LinkAddr(4),
                ends: places(&[5, 6]),
                has_grown: vec![(LinkAddr(8), 13)],
                regions: vec![(StorageRegion::Block, LinkAddr(9))],
                parts: [8, 24, 32, 40],
            },
        };
        let mut packed = Packer::default();
        runtime.pack(&mut packed);
        assert_eq!(Runtime::unpack(&mut Packed(&packed.0)), Some(runtime));
        for end in 0..packed.0.len() {
            assert_eq!(Runtime::unpack(&mut Packed(&packed.0[..end])), None);
        }
    }
}
