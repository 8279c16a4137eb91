//! Room for jumps that their own routine has no room for: in the dead bytes of its neighbours.
//!
//! A short jump of two bytes leads to such an island. Where there is one byte only, and the next
//! routine begins behind it, the jump's second byte is the first byte of that: once that routine has
//! a copy, it begins with a jump, too, whose first byte tells how far the short jump leads.

use std::ops::Range;

use headcount_model::LinkAddr;
use headcount_patch::{Copy, LONG, SHORT, Template};

use super::news::Change;
use super::{TRAP, Workshop};

/// How far a short jump leads, back and forth, from behind it.
const BACK: u64 = 128;
const FORTH: u64 = 127;

/// How far a short jump leads whose second byte is the first one of a long jump, from behind it.
const BACK_BY_JUMP: u64 = 0x100 - 0xe9;

/// How many neighbours are copied for the sake of their dead bytes.
const MOST_NEIGHBOURS: usize = 4;

/// A jump among the bytes of another routine.
#[derive(Clone, Copy, Debug)]
pub struct Island {
    /// Where control arrives that goes by it.
    pub serves: u64,
    bytes: [u8; LONG as usize],
}

impl Workshop {
    /// Finds islands for the detours of a routine that have no room of their own. If there are not
    /// enough, answers with neighbours that have not run: once they are copied, their bytes are
    /// dead.
    pub(super) fn find_islands(
        &mut self,
        template: &Template,
    ) -> Result<Vec<(u32, LinkAddr)>, Vec<u64>> {
        let mut found = Vec::new();
        let start = template.start.0;
        let short = template.short_of_room().map(|it| (it, false));
        let squeezed = template.last_byte().map(|it| (it, true));
        for (offset, is_squeezed) in short.chain(squeezed) {
            let at = start + u64::from(offset);
            let place = match is_squeezed {
                true => self.squeezed(start, at),
                false => self.spare_near(start, at, &found),
            };
            if let Some(place) = place {
                found.push((offset, LinkAddr(place)));
            } else if self.has_asked.insert(start) {
                let neighbours = self.neighbours(at);
                if !neighbours.is_empty() {
                    return Err(neighbours);
                }
            }
        }
        Ok(found)
    }

    /// Where a long jump can be for a short one whose second byte is that of the next routine.
    fn squeezed(&self, start: u64, at: u64) -> Option<u64> {
        let next = *self.latest.get(&(at + 1))?;
        let mut jumps = self.units[next].copy.jumps.iter();
        let is_long = jumps.any(|it| it.offset == 0 && it.island().is_none());
        let place = (at + u64::from(SHORT)).checked_sub(BACK_BY_JUMP)?;
        let is_spare = || {
            self.spare_places(start, place..place + 1, &[])
                .next()
                .is_some()
        };
        (is_long && is_spare()).then_some(place)
    }

    /// Where a long jump can be that a short one at an address reaches.
    fn spare_near(&self, start: u64, at: u64, chosen: &[(u32, LinkAddr)]) -> Option<u64> {
        let behind = at + u64::from(SHORT);
        let reach = behind.saturating_sub(BACK)..behind + FORTH + 1;
        let places = self.spare_places(start, reach, chosen);
        places.min_by_key(|it| it.abs_diff(at))
    }

    /// Where in a range a long jump of the routine that begins at `start` can be, among the bytes of
    /// others.
    fn spare_places(
        &self,
        start: u64,
        reach: Range<u64>,
        chosen: &[(u32, LinkAddr)],
    ) -> impl Iterator<Item = u64> {
        let is_free = |place: &u64| {
            let island = *place..*place + u64::from(LONG);
            let first = island.start.saturating_sub(u64::from(LONG) - 1);
            self.islands.range(first..island.end).next().is_none()
                && self.cleared.range(first..island.end).next().is_none()
                && chosen
                    .iter()
                    .all(|it| it.1.0.abs_diff(*place) >= LONG.into())
        };
        let units = self.units_near(&reach).into_iter();
        let copies = units.map(|unit| &self.units[unit].copy);
        let others = copies.filter(move |it| it.start.0 != start);
        let spare = others.flat_map(|copy| {
            let start = copy.start.0;
            let spare = copy.spare().iter();
            spare.map(move |it| start + u64::from(it.start)..start + u64::from(it.end))
        });
        let places = spare.flat_map(move |it| {
            let last = it.end - u64::from(LONG);
            it.start.max(reach.start)..(last + 1).min(reach.end)
        });
        places.filter(move |it| is_free(it))
    }

    /// The latest units of the routines near an address.
    fn units_near(&self, reach: &Range<u64>) -> Vec<usize> {
        let before = self.latest.range(..reach.start).next_back();
        let inside = self.latest.range(reach.clone());
        before.into_iter().chain(inside).map(|it| *it.1).collect()
    }

    /// Routines near an address that have not run yet, the nearest last.
    fn neighbours(&self, at: u64) -> Vec<u64> {
        let outline = self.outline.borrow();
        let starts = outline.starts();
        let first = starts.partition_point(|it| *it + BACK < at);
        let near = starts[first.saturating_sub(1)..].iter().copied();
        let mut near: Vec<u64> = near.take_while(|it| *it < at + FORTH).collect();
        near.retain(|it| outline.is_known_start(LinkAddr(*it)));
        drop(outline);
        near.retain(|it| self.is_untouched(*it));
        near.sort_by_key(|it| it.abs_diff(at));
        near.truncate(MOST_NEIGHBOURS);
        near.reverse();
        near
    }

    /// Remembers the jumps of a copy that are among the bytes of other routines.
    pub(super) fn settle(&mut self, copy: &Copy, own: &Range<u64>) {
        let start = copy.start.0;
        for jump in &copy.jumps {
            let Some(island) = jump.island().map(|it| start.wrapping_add_signed(it)) else {
                continue;
            };
            if own.contains(&island) {
                continue;
            }
            let island_of = Island {
                serves: start + u64::from(jump.offset),
                bytes: jump.long(),
            };
            self.islands.insert(island, island_of);
            if island_of.serves + 1 == own.end {
                self.squeezed.insert(own.end, island);
            }
            let bytes = island..island + u64::from(LONG);
            self.changes.push(Change::Text(bytes, None));
        }
    }

    fn write_island(&mut self, at: u64, island: Island) {
        for (at, byte) in (at..).zip(island.bytes) {
            self.texts.set(at, byte);
        }
    }

    /// Writes the islands of others again that are in the text of a copy. Where one was, a thread
    /// may still stand.
    pub(super) fn keep_islands(&mut self, text: &Range<u64>, copy: &Copy) {
        let inside = self.islands.range(text.clone());
        let inside: Vec<_> = inside.map(|it| (*it.0, *it.1)).collect();
        for (at, island) in inside {
            self.write_island(at, island);
        }
        let is_free = |at: &u64| {
            let offset = (*at - copy.start.0) as u32;
            !copy.is_covered(offset) && copy.landing(offset).is_none()
        };
        let cleared = self.cleared.range(text.clone()).map(|it| *it.0);
        for at in cleared.filter(is_free).collect::<Vec<_>>() {
            self.texts.set(at, TRAP);
        }
    }

    /// No island of others stays where control is known to arrive in a routine.
    pub(super) fn clear_arrivals(&mut self, start: u64) {
        for at in self.arrivals_of(start).collect::<Vec<_>>() {
            self.clear(at);
        }
    }

    /// Control arrives at an address: if it is in an island, that is given up.
    pub(super) fn clear(&mut self, at: u64) {
        if let Some(island) = self.island_around(at) {
            self.give_up(island);
        }
        self.cleared.remove(&at);
    }

    /// Whoever went by an island traps.
    fn give_up(&mut self, island: u64) {
        if let Some(Island { serves, .. }) = self.islands.remove(&island) {
            self.texts.set(serves, TRAP);
            self.changes.push(Change::Text(serves..serves + 1, None));
            self.cleared.insert(island, serves);
        }
    }

    /// The first byte of a routine is about to change: nobody jumps by it any more.
    pub(super) fn unsqueeze(&mut self, start: u64) {
        if let Some(island) = self.squeezed.remove(&start) {
            self.give_up(island);
        }
    }

    fn island_around(&self, at: u64) -> Option<u64> {
        let before = self.islands.range(..=at).next_back()?;
        (at - before.0 < LONG.into()).then_some(*before.0)
    }

    /// Where control comes from that is at an island.
    pub fn served_by(&self, at: LinkAddr) -> Option<LinkAddr> {
        let of_another = self.islands.get(&at.0).map(|it| it.serves);
        let cleared = || self.cleared.get(&at.0).copied();
        let own = || {
            // It may be in the filler behind the routine.
            let (_, unit) = self.latest.range(..=at.0).next_back()?;
            let copy = &self.units[*unit].copy;
            let served = copy.island_of((at.0 - copy.start.0) as u32)?;
            Some(copy.start.0 + u64::from(served))
        };
        of_another.or_else(cleared).or_else(own).map(LinkAddr)
    }

    /// Would a thread that goes on at an address, which has a unit, meet the midst of a jump?
    pub fn is_covered(&self, unit: usize, offset: u32) -> bool {
        let copy = &self.units[unit].copy;
        let at = copy.start.0 + u64::from(offset);
        copy.is_covered(offset) || self.island_around(at).is_some()
    }
}
