//! The copy of a routine before it has a place.

use std::ops::Range;

use headcount_model::LinkAddr;
use headcount_model::packed::{Packed, Packer};

use crate::copy::{Copy, Jump};
use crate::detours::{Kind, LONG};
use crate::sketch::CannotCopy;
use crate::spots::CounterNumber;
use crate::system_calls::SystemCall;
use crate::tables::{Resumes, Spots};

/// A copy that can be put anywhere near its routine, with any counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The routine's first byte.
    pub start: LinkAddr,
    /// How many bytes it has.
    pub length: u32,
    /// How many counters it has.
    pub counters: u32,
    /// The bytes of the copy, as they are if it lies at the start of its routine.
    pub(crate) code: Vec<u8>,
    /// Where in them distances are to places outside of the copy.
    pub(crate) distances: Vec<u32>,
    /// Those of jumps to other routines.
    pub(crate) ways_out: Vec<u32>,
    /// Where in them counters are named.
    pub(crate) words: Vec<u32>,
    /// Where dead instructions of the original are made to trap.
    pub(crate) net: Vec<u32>,
    /// How control that arrives at an entered block gets into the copy, by offset.
    pub(crate) detours: Vec<(u32, Kind)>,
    /// Bytes of detours and islands.
    pub(crate) taken: Vec<Range<u32>>,
    /// Bytes of the original that are not in the copy, because they may be data.
    pub(crate) gaps: Vec<Range<u32>>,
    /// Dead bytes of the original that islands of other routines may be in.
    pub(crate) spare: Vec<Range<u32>>,
    /// How many calls are made from the copy.
    pub(crate) moved_calls: u32,
    /// Where in the copy control arrives that enters the original at an offset.
    pub(crate) landings: Vec<(u32, u32)>,
    /// Calls that are made from their own place, and the jumps to them in the copy.
    pub(crate) calls: Vec<(u32, u32)>,
    /// By address.
    pub(crate) system_calls: Vec<SystemCall>,
    /// Where the copy traps because the program asks for something.
    pub(crate) requests: Vec<u32>,
    pub(crate) spots: Spots,
    pub(crate) resumes: Resumes,
    /// What each probe adds to the event counter; nothing if there is none.
    pub(crate) increments: Vec<i32>,
    /// By how much the true number of events is ahead before each instruction, by offset in the
    /// original.
    pub(crate) leads: Vec<(u32, i32)>,
    /// Where the copy traps because the event counter has come to its end.
    pub(crate) countdowns: Vec<u32>,
    /// What the keyed probes of an instruction count, by its offset in the original.
    pub(crate) tallied: Vec<(u32, Vec<Tallied>)>,
    /// Where the copy traps because a table has no room for a key.
    pub(crate) full_tables: Vec<u32>,
    /// Where the copy traps because a text comes into a table.
    pub(crate) new_texts: Vec<u32>,
    /// Traps before instructions of which headcount is told.
    pub(crate) notices: Vec<u32>,
    /// Instructions of keyed probes that may fault, and where the thread goes on then.
    pub(crate) faults: Vec<(u32, u32)>,
}

/// What a keyed probe counts: for which tally, and whether it adds an amount up.
pub type Tallied = (u8, bool);

impl Template {
    /// How many bytes the copy has.
    pub fn size(&self) -> usize {
        self.code.len()
    }

    /// Where control arrives with room for no more than a short jump, and no island in the routine's
    /// own bytes.
    pub fn short_of_room(&self) -> impl Iterator<Item = u32> {
        let detours = self.detours.iter();
        detours.filter_map(|(offset, kind)| (*kind == Kind::Short).then_some(*offset))
    }

    /// Where control arrives at the very last byte of the routine: a short jump would need the first
    /// byte of what follows, too.
    pub fn last_byte(&self) -> Option<u32> {
        let last = self.length.checked_sub(1)?;
        self.detours.contains(&(last, Kind::Trap)).then_some(last)
    }

    /// The copy at a link address. Its counters are numbered from `first` on, and each has the
    /// word with its number behind the base of `gs`. Where control arrives that is short of room, it
    /// goes by the islands that were found for it.
    pub fn copy_at(
        mut self,
        at: LinkAddr,
        first: CounterNumber,
        islands: &[(u32, LinkAddr)],
    ) -> Result<Copy, CannotCopy> {
        let mut code = std::mem::take(&mut self.code);
        // Addresses wrap around: what lies in front of a module has a large one.
        let nearer = self.start.0.wrapping_sub(at.0).cast_signed();
        for place in &self.distances {
            let distance = word_at(&mut code, *place);
            let moved = nearer.checked_add(i32::from_le_bytes(*distance).into());
            let moved = moved.and_then(|it| i32::try_from(it).ok());
            *distance = moved.ok_or(CannotCopy::OutOfReach)?.to_le_bytes();
        }
        for place in &self.words {
            let word = word_at(&mut code, *place);
            let counter = u32::from_le_bytes(*word).wrapping_add(first.wrapping_mul(8));
            *word = counter.to_le_bytes();
        }
        let mut jumps = Vec::with_capacity(self.detours.len());
        for (offset, kind) in &self.detours {
            let landing = self.landing(*offset).unwrap_or(0);
            let target = at.0.wrapping_add(u64::from(landing));
            let island = islands.iter().find(|it| it.0 == *offset);
            let from = match (kind, island) {
                (Kind::Long, _) => i64::from(*offset),
                (Kind::Island(island), _) => i64::from(*island),
                (Kind::Short | Kind::Trap, Some((_, at))) => {
                    at.0.wrapping_sub(self.start.0).cast_signed()
                }
                (Kind::Short | Kind::Trap, None) => continue,
            };
            let end = self.start.0.wrapping_add_signed(from + i64::from(LONG));
            let distance = i32::try_from(target.wrapping_sub(end).cast_signed());
            let distance = distance.map_err(|_| CannotCopy::OutOfReach)?;
            jumps.push(Jump::new(*offset, from, distance));
        }
        Ok(Copy::new(self, code, jumps, first))
    }

    pub(crate) fn landing(&self, offset: u32) -> Option<u32> {
        let found = self.landings.binary_search_by_key(&offset, |it| it.0);
        found.ok().map(|index| self.landings[index].1)
    }

    /// Writes it down for other runs.
    pub fn pack(&self, to: &mut Packer) {
        to.0.extend(self.start.0.to_le_bytes());
        to.number(self.length as usize);
        to.number(self.counters as usize);
        to.bytes(&self.code);
        to.ascending(&self.distances);
        to.ascending(&self.ways_out);
        to.ascending(&self.words);
        to.many(&self.detours, |to, (offset, kind)| {
            to.number(*offset as usize);
            to.number(match kind {
                Kind::Long => 0,
                Kind::Trap => 1,
                Kind::Short => 2,
                Kind::Island(island) => *island as usize + 3,
            });
        });
        for ranges in [&self.taken, &self.gaps, &self.spare] {
            to.many(ranges, |to, it| {
                to.number(it.start as usize);
                to.number(it.end as usize);
            });
        }
        to.number(self.moved_calls as usize);
        for pairs in [&self.landings, &self.calls] {
            to.many(pairs, |to, (original, copy)| {
                to.number(*original as usize);
                to.number(*copy as usize);
            });
        }
        to.many(&self.system_calls, |to, it| {
            to.number(it.original as usize);
            to.number(it.copy as usize);
        });
        to.ascending(&self.requests);
        to.ascending(&self.net);
        self.spots.pack(to);
        self.resumes.pack(to);
        to.many(&self.increments, |to, it| to.signed(*it));
        to.many(&self.leads, |to, (offset, lead)| {
            to.number(*offset as usize);
            to.signed(*lead);
        });
        to.ascending(&self.countdowns);
        to.many(&self.tallied, |to, (offset, tallied)| {
            to.number(*offset as usize);
            to.many(tallied, |to, (tally, has_amount)| {
                to.0.extend([*tally, (*has_amount).into()]);
            });
        });
        to.ascending(&self.full_tables);
        to.ascending(&self.new_texts);
        to.ascending(&self.notices);
        to.many(&self.faults, |to, (from, behind)| {
            to.number(*from as usize);
            to.number(*behind as usize);
        });
    }

    /// What [`Template::pack`] wrote. `None`: it did not write this.
    pub fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let pair = |it: &mut Packed<'_>| Some((it.number()?, it.number()?));
        let template = Self {
            start: LinkAddr(from.u64()?),
            length: from.number()?,
            counters: from.number()?,
            code: from.bytes()?.to_vec(),
            distances: from.ascending()?,
            ways_out: from.ascending()?,
            words: from.ascending()?,
            detours: from.many(|it| {
                let offset = it.number()?;
                let kind = match it.number()? {
                    0 => Kind::Long,
                    1 => Kind::Trap,
                    2 => Kind::Short,
                    island => Kind::Island(island - 3),
                };
                Some((offset, kind))
            })?,
            taken: from.many(|it| Some(it.number()?..it.number()?))?,
            gaps: from.many(|it| Some(it.number()?..it.number()?))?,
            spare: from.many(|it| Some(it.number()?..it.number()?))?,
            moved_calls: from.number()?,
            landings: from.many(pair)?,
            calls: from.many(pair)?,
            system_calls: from.many(|it| {
                let (original, copy) = pair(it)?;
                Some(SystemCall { original, copy })
            })?,
            requests: from.ascending()?,
            net: from.ascending()?,
            spots: Spots::unpack(from)?,
            resumes: Resumes::unpack(from)?,
            increments: from.many(Packed::signed)?,
            leads: from.many(|it| Some((it.number()?, it.signed()?)))?,
            countdowns: from.ascending()?,
            tallied: from.many(|it| {
                let offset = it.number()?;
                Some((offset, it.many(|it| Some((it.u8()?, it.u8()? == 1)))?))
            })?,
            full_tables: from.ascending()?,
            new_texts: from.ascending()?,
            notices: from.ascending()?,
            faults: from.many(pair)?,
        };
        template.is_sound().then_some(template)
    }

    /// Does everything lie in the copy, or in the routine, that must?
    fn is_sound(&self) -> bool {
        let has_word = |place: &u32| *place as usize + 4 <= self.code.len();
        let has_jump = |(offset, kind): &(u32, Kind)| match kind {
            Kind::Island(island) => offset.max(island) < &(u32::MAX - LONG),
            _ => *offset < u32::MAX - LONG,
        };
        let has_increments =
            self.increments.is_empty() || self.increments.len() == self.counters as usize;
        let mut words = self
            .distances
            .iter()
            .chain(&self.ways_out)
            .chain(&self.words);
        has_increments && words.all(has_word) && self.detours.iter().all(has_jump)
    }
}

fn word_at(code: &mut [u8], place: u32) -> &mut [u8; 4] {
    let word = code[place as usize..].first_chunk_mut();
    word.expect("a word of a copy lies in the copy")
}
