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
    /// Leads the calls and jumps of a unit that was just made to the copies that there are, and those
    /// of others to its own.
    pub(super) fn link_calls(&mut self, number: usize) {
        self.note_ways_out(number);
        self.note_calls(number);
        let text = self.units[number].range();
        let calls = self.calls_to.range(text.clone());
        let calls: Vec<(u64, Vec<u64>)> = calls.map(|it| (*it.0, it.1.clone())).collect();
        for (target, calls) in calls {
            calls.into_iter().for_each(|at| self.link_call(at, target));
        }
        let ways = self.ways_to.range(text);
        let ways: Vec<(u64, Vec<usize>)> = ways.map(|it| (*it.0, it.1.clone())).collect();
        for (target, places) in ways {
            places.into_iter().for_each(|it| self.link_way(it, target));
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
    fn link_way(&mut self, place: usize, target: u64) {
        let landing = self.landing(LinkAddr(target));
        let end = self.behind_way(place);
        if let Some(distance) = landing.and_then(|it| distance(it, end)) {
            self.code[place..place + 4].copy_from_slice(&distance);
            self.changes.push(Change::Way(place));
        }
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
                let known = self.calls_to.entry(target).or_default();
                if !known.contains(&at) {
                    known.push(at);
                }
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
        let distance = self.original.get(self.index(end - 4)?..)?;
        let distance = i32::from_le_bytes(*distance.first_chunk()?);
        Some(end.wrapping_add_signed(distance.into()))
    }

    /// Where a direct call ends, if there is one at an address. Linkers put a prefix before it where
    /// a longer call was.
    fn end_of_call(&self, at: u64) -> Option<u64> {
        let bytes = self.original.get(self.index(at)?..)?;
        match bytes {
            [CALL, ..] => Some(at + 5),
            [SHORT_ADDRESS, CALL, ..] => Some(at + 6),
            _ => None,
        }
    }

    /// Leads the call at an address to the copy of its target, if there is one, and if the call is
    /// still made from there.
    fn link_call(&mut self, at: u64, target: u64) {
        let is_made = self.unit_at(LinkAddr(at)).is_some_and(|unit| {
            let copy = &self.units[unit].copy;
            copy.call((at - copy.start.0) as u32).is_some()
        });
        let landing = self.landing(LinkAddr(target)).filter(|_| is_made);
        let Some((landing, end)) = landing.zip(self.end_of_call(at)) else {
            return;
        };
        if let Some(distance) = distance(landing, end) {
            for (at, byte) in (end - 4..).zip(distance) {
                self.set(at, byte);
            }
            self.changes.push(Change::Call(at..end));
        }
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
