//! Calls and jumps from one routine to another, straight to its copy: by the way of the original,
//! they would take a jump more, or a trap where no jump fits.

use headcount_model::LinkAddr;
use headcount_patch::LONG;

use super::Workshop;
use super::news::Change;

/// `call rel32`.
const CALL: u8 = 0xe8;
/// A prefix that does nothing before a call.
const SHORT_ADDRESS: u8 = 0x67;

impl Workshop {
    /// Leads the calls and jumps of a unit that was just made to the copies that there are: it is
    /// about to be written as a whole. Those of others lead to it where their way would be a trap, or
    /// two jumps; else that is not worth the writing.
    pub(super) fn link_calls(&mut self, number: usize) {
        self.note_ways_out(number);
        self.note_calls(number);
        let copy = &self.units[number].copy;
        let short = copy.short_entries();
        let short: Vec<u64> = short.map(|it| copy.start.0 + u64::from(it)).collect();
        for target in short {
            let calls = self.calls_to.get(&target).cloned().unwrap_or_default();
            for at in calls {
                if let Some(end) = self.link_call(at, target) {
                    self.changes.push(Change::Call(at..end));
                }
            }
            let ways = self.ways_to.get(&target).cloned().unwrap_or_default();
            for place in ways {
                if self.link_way(place, target) {
                    self.changes.push(Change::Way(place));
                }
            }
        }
    }

    /// The jumps of its copy to other routines, and calls that are made from there.
    fn note_ways_out(&mut self, number: usize) {
        let unit = &self.units[number];
        let start = unit.offset as usize;
        for place in unit.copy.ways_out().to_vec() {
            let place = start + place as usize;
            if let Some(target) = self.target_of_way(place) {
                self.ways_to.entry(target).or_default().push(place);
                self.link_way(place, target);
            }
        }
    }

    /// Where the jump leads whose distance is at a place of the copies.
    fn target_of_way(&self, place: usize) -> Option<u64> {
        let distance = self.code.get(place..)?.first_chunk::<4>()?;
        let distance = i32::from_le_bytes(*distance);
        Some(self.behind_way(place).wrapping_add_signed(distance.into()))
    }

    fn behind_way(&self, place: usize) -> u64 {
        self.site.copies_start().wrapping_add(place as u64 + 4)
    }

    /// Leads a jump to the copy of its target, if there is one.
    fn link_way(&mut self, place: usize, target: u64) -> bool {
        let landing = self.landing(LinkAddr(target));
        let end = self.behind_way(place);
        let distance = landing.and_then(|it| distance(it, end));
        if let Some(distance) = distance {
            self.code[place..place + 4].copy_from_slice(&distance);
        }
        distance.is_some()
    }

    /// The calls that are made from their own place.
    fn note_calls(&mut self, number: usize) {
        let copy = &self.units[number].copy;
        let calls: Vec<u64> = copy
            .calls()
            .map(|(offset, _)| copy.start.0 + u64::from(offset))
            .collect();
        for at in calls {
            if let Some(target) = self.target_of_call(at) {
                self.calls_to.entry(target).or_default().insert(at);
                self.link_call(at, target);
                if self.is_tiny(target) {
                    self.ahead.push(target);
                }
            }
        }
    }

    /// Has a routine no room for a jump into its copy? It is better made before it is first called:
    /// then the call leads there from the beginning.
    fn is_tiny(&self, start: u64) -> bool {
        let part = self.outline.borrow().part_at(LinkAddr(start));
        part.is_some_and(|it| it.start == start && it.end - start < LONG.into())
    }

    fn target_of_call(&self, at: u64) -> Option<u64> {
        let end = self.end_of_call(at)?;
        let distance = self.texts.original_from(end - 4)?;
        let distance = i32::from_le_bytes(*distance.first_chunk()?);
        Some(end.wrapping_add_signed(distance.into()))
    }

    /// Where a direct call ends, if there is one at an address. Linkers put a prefix before it where
    /// a longer call was.
    fn end_of_call(&self, at: u64) -> Option<u64> {
        let bytes = self.texts.original_from(at)?;
        match bytes {
            [CALL, ..] => Some(at + 5),
            [SHORT_ADDRESS, CALL, ..] => Some(at + 6),
            _ => None,
        }
    }

    /// Leads the call at an address to the copy of its target, if there is one, and if the call is
    /// still made from there. Answers with its end.
    fn link_call(&mut self, at: u64, target: u64) -> Option<u64> {
        let copy = &self.units[self.unit_at(LinkAddr(at))?].copy;
        if !copy.makes_call((at - copy.start.0) as u32) {
            return None;
        }
        let end = self.end_of_call(at)?;
        let distance = distance(self.landing(LinkAddr(target))?, end)?;
        for (at, byte) in (end - 4..).zip(distance) {
            self.texts.set(at, byte);
        }
        Some(end)
    }

    /// Where in the copies control goes on that arrives at an address.
    fn landing(&self, at: LinkAddr) -> Option<u64> {
        let unit = &self.units[self.unit_at(at)?];
        let landing = unit.copy.landing((at.0 - unit.copy.start.0) as u32)?;
        let start = self.site.copies_start().wrapping_add(unit.offset);
        Some(start.wrapping_add(landing.into()))
    }
}

/// What a jump that ends at an address needs to lead to another.
fn distance(to: u64, end: u64) -> Option<[u8; 4]> {
    let distance = i32::try_from(to.wrapping_sub(end).cast_signed()).ok()?;
    Some(distance.to_le_bytes())
}
