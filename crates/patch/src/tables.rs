//! What is known of every instruction of a copy, in few bytes.
//!
//! It is asked for when a thread is found in the copy, which is seldom; and there are twice as many
//! places as the routine has instructions. So the tables stay packed until somebody asks.

use std::cell::OnceCell;

use headcount_model::LinkAddr;
use headcount_model::packed::{Packed, Packer};

use crate::spots::{Fix, Resume, Spot, Undo};

/// The bit of a spot's first byte that says that `rcx` is to be restored as well.
const RCX_TOO: u8 = 1 << 5;

/// The bit that says that two bytes about keyed probes follow.
const KEYED: u8 = 1 << 7;

/// Bytes, and what they mean once somebody has asked.
#[derive(Clone, Debug)]
struct Lazy<T> {
    bytes: Vec<u8>,
    items: OnceCell<Vec<T>>,
}

impl<T> Lazy<T> {
    fn new(bytes: Vec<u8>) -> Self {
        let items = OnceCell::new();
        Self { bytes, items }
    }
}

impl<T> PartialEq for Lazy<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for Lazy<T> {}

/// The places in a copy where a thread may be found, by offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spots(Lazy<Spot>);

impl Spots {
    /// `None`: one of them is about an instruction that is too far away.
    pub fn new(start: LinkAddr, spots: &[Spot]) -> Option<Self> {
        let mut to = Packer(Vec::with_capacity(spots.len() * 4));
        let (mut offset, mut at) = (0, start.0);
        for spot in spots {
            let distance = i32::try_from(spot.at.0.wrapping_sub(at).cast_signed()).ok()?;
            let undo = match spot.undo {
                Undo::Nothing => 0,
                Undo::RestoreRax => 1,
                Undo::PopReturn => 2,
                Undo::PopReturnAndRestoreRax => 3,
                Undo::RestoreRaxAndRcx => RCX_TOO,
                Undo::RestoreThree | Undo::RestoreThreeAndFlags => 0,
            };
            let is_keyed = spot.tallied != 0 || spot.undo.restores_rdx();
            let keyed = if is_keyed { KEYED } else { 0 };
            let is_ahead = u8::from(spot.ahead != 0) << 6;
            let inside = u8::from(spot.is_inside) << 4;
            to.0.push(undo | kind_of(spot.fix) << 2 | inside | is_ahead | keyed);
            to.number((spot.offset - offset) as usize);
            to.signed(distance);
            put_counter(&mut to, spot.fix);
            if spot.ahead != 0 {
                to.signed(spot.ahead);
            }
            if is_keyed {
                to.0.push(match spot.undo {
                    Undo::RestoreThree => 1,
                    Undo::RestoreThreeAndFlags => 2,
                    _ => 0,
                });
                to.0.push(spot.tallied);
            }
            (offset, at) = (spot.offset, spot.at.0);
        }
        Some(Self(Lazy::new(to.0)))
    }

    /// The one at this offset.
    pub fn get(&self, start: LinkAddr, offset: u32) -> Option<Spot> {
        let all = self.0.items.get_or_init(|| self.read(start).collect());
        let found = all.binary_search_by_key(&offset, |it| it.offset);
        found.ok().map(|index| all[index])
    }

    fn read(&self, start: LinkAddr) -> impl Iterator<Item = Spot> {
        let mut from = Packed(&self.0.bytes);
        let (mut offset, mut at) = (0_u32, start.0);
        std::iter::from_fn(move || {
            let head = from.u8()?;
            offset = offset.checked_add(from.number()?)?;
            at = at.wrapping_add_signed(from.signed()?.into());
            let undo = match head & (RCX_TOO | 3) {
                0 => Undo::Nothing,
                1 => Undo::RestoreRax,
                2 => Undo::PopReturn,
                3 => Undo::PopReturnAndRestoreRax,
                _ => Undo::RestoreRaxAndRcx,
            };
            let fix = take_fix(&mut from, head >> 2 & 3)?;
            let ahead = match head >> 6 & 1 {
                0 => 0,
                _ => from.signed()?,
            };
            let (undo, tallied) = match head & KEYED {
                0 => (undo, 0),
                _ => match (from.u8()?, from.u8()?) {
                    (1, tallied) => (Undo::RestoreThree, tallied),
                    (2, tallied) => (Undo::RestoreThreeAndFlags, tallied),
                    (_, tallied) => (undo, tallied),
                },
            };
            Some(Spot {
                offset,
                at: LinkAddr(at),
                undo,
                fix,
                is_inside: head >> 4 & 1 == 1,
                ahead,
                tallied,
            })
        })
    }

    pub fn pack(&self, to: &mut Packer) {
        to.bytes(&self.0.bytes);
    }

    pub fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        Some(Self(Lazy::new(from.bytes()?.to_vec())))
    }
}

/// Where in a copy its routine's instructions are, by offset in the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumes(Lazy<(u32, Resume)>);

impl Resumes {
    pub fn new(resumes: &[(u32, Resume)]) -> Self {
        let mut to = Packer(Vec::with_capacity(resumes.len() * 3));
        let mut last = (0, 0);
        for (original, resume) in resumes {
            to.0.push(kind_of(resume.fix));
            to.number((original - last.0) as usize);
            to.signed(resume.offset.wrapping_sub(last.1).cast_signed());
            put_counter(&mut to, resume.fix);
            last = (*original, resume.offset);
        }
        Self(Lazy::new(to.0))
    }

    /// The one at this offset of the original.
    pub fn get(&self, original: u32) -> Option<Resume> {
        let all = self.0.items.get_or_init(|| self.read().collect());
        let found = all.binary_search_by_key(&original, |it| it.0);
        found.ok().map(|index| all[index].1)
    }

    fn read(&self) -> impl Iterator<Item = (u32, Resume)> {
        let mut from = Packed(&self.0.bytes);
        let (mut original, mut offset) = (0_u32, 0_u32);
        std::iter::from_fn(move || {
            let kind = from.u8()?;
            original = original.checked_add(from.number()?)?;
            offset = offset.wrapping_add_signed(from.signed()?);
            let fix = take_fix(&mut from, kind)?;
            Some((original, Resume { offset, fix }))
        })
    }

    pub fn pack(&self, to: &mut Packer) {
        to.bytes(&self.0.bytes);
    }

    pub fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        Some(Self(Lazy::new(from.bytes()?.to_vec())))
    }
}

fn kind_of(fix: Fix) -> u8 {
    match fix {
        Fix::Nothing => 0,
        Fix::Add(_) => 1,
        Fix::Take(_) => 2,
    }
}

fn put_counter(to: &mut Packer, fix: Fix) {
    if let Fix::Add(counter) | Fix::Take(counter) = fix {
        to.number(counter as usize);
    }
}

fn take_fix(from: &mut Packed<'_>, kind: u8) -> Option<Fix> {
    Some(match kind {
        0 => Fix::Nothing,
        1 => Fix::Add(from.number()?),
        _ => Fix::Take(from.number()?),
    })
}
