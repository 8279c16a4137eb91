//! Calls and jumps from one routine to another, straight to its copy: by the way of the original,
//! they would take a jump more, or a trap where no jump fits.

use headcount_model::LinkAddr;
use headcount_patch::LONG;

use super::Workshop;
use super::news::Change;

/// `call rel32`.
const CALL: u8 = 0xe8;

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
            }
        }
    }

    fn target_of_call(&self, at: u64) -> Option<u64> {
        let first = self.index(at)?;
        let bytes = self.original.get(first..first + LONG as usize)?;
        let &[CALL, a, b, c, d] = bytes else {
            return None;
        };
        let end = at + u64::from(LONG);
        Some(end.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into()))
    }

    /// Leads the call at an address to the copy of its target, if there is one, and if the call is
    /// still made from there.
    fn link_call(&mut self, at: u64, target: u64) {
        let is_made = self.unit_at(LinkAddr(at)).is_some_and(|unit| {
            let copy = &self.units[unit].copy;
            copy.call((at - copy.start.0) as u32).is_some()
        });
        let landing = self.landing(LinkAddr(target)).filter(|_| is_made);
        let end = at + u64::from(LONG);
        if let Some(distance) = landing.and_then(|it| distance(it, end)) {
            for (at, byte) in (at + 1..).zip(distance) {
                self.set(at, byte);
            }
            self.changes.push(Change::Call(at));
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
