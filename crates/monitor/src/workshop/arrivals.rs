//! Where control comes into copies by traps: where nobody expected it, and where nothing else fits.

use std::collections::BTreeMap;

use headcount_model::LinkAddr;

use super::Workshop;

/// Something that happened at some places.
#[derive(Clone, Copy, Debug)]
pub struct Often {
    /// Where it did most often.
    pub at: LinkAddr,
    /// At how many places.
    pub places: usize,
    /// How often in all.
    pub times: u64,
}

impl Workshop {
    /// Remembers that control arrived where nobody expected it. How often has it?
    pub fn stray(&mut self, at: LinkAddr) -> u64 {
        let count = self.strays.entry(at.0).or_default();
        *count += 1;
        *count
    }

    /// From now on control is foreseen at an address, and wherever else in its routine it strayed to
    /// more than once: the next copy will have detours there. `false`: it cannot be.
    pub fn foresee(&mut self, at: LinkAddr) -> bool {
        let part = self.outline.borrow().part_at(at).unwrap_or_default();
        let often = self.strays.range(part).filter(|it| *it.1 > 1);
        let often: Vec<LinkAddr> = often.map(|it| LinkAddr(*it.0)).collect();
        let is_so = self.can_foresee(at);
        for at in often.into_iter().filter(|_| is_so) {
            if self.can_foresee(at) {
                self.arrived_at(at);
            }
        }
        is_so
    }

    /// Can its routine's next copy have a detour at an address where the latest has none? Not where
    /// all jumps are known and none leads there: then it was sent there by a handler, say, and others
    /// may yet come back to what the detour would cover.
    pub fn can_foresee(&self, at: LinkAddr) -> bool {
        let Some(unit) = self.unit_at(at).map(|it| &self.units[it]) else {
            return false;
        };
        let start = unit.copy.start.0;
        let is_known = || self.arrivals_of(start).any(|it| it == at.0);
        let has_landing = unit.copy.landing((at.0 - start) as u32).is_some();
        !has_landing && (unit.has_indirect_jumps || is_known())
    }

    /// A thread is at an address that its routine's copy does not have: nobody was known to come
    /// there. From now on control is foreseen. False if it was before.
    pub fn arrived_at(&mut self, at: LinkAddr) -> bool {
        let part = self.outline.borrow().part_at(at);
        part.is_some_and(|it| self.arrivals.entry(it.start).or_default().insert(at.0))
    }

    /// Where control arrived against expectation.
    pub fn strays(&self) -> Option<Often> {
        often(&self.strays)
    }

    /// Control came into a copy by a trap, where nothing else fits.
    pub fn trapped(&mut self, at: LinkAddr) {
        *self.traps.entry(at.0).or_default() += 1;
    }

    /// Where it did.
    pub fn traps(&self) -> Option<Often> {
        often(&self.traps)
    }
}

fn often(times: &BTreeMap<u64, u64>) -> Option<Often> {
    let (at, _) = times.iter().max_by_key(|(_, times)| **times)?;
    Some(Often {
        at: LinkAddr(*at),
        places: times.len(),
        times: times.values().sum(),
    })
}
