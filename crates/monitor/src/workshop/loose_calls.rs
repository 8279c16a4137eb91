//! System calls, or bytes that look like one, that may run from where they always were: then every
//! system call of the process must be watched.

use std::ops::Range;

use headcount_model::LinkAddr;

use super::{SYSCALL, Workshop};

impl Workshop {
    /// Where only some routines are wanted: those that make system calls are, too.
    pub(super) fn look_for_callers(&mut self, text: Range<u64>) {
        if self.wanted.is_none() {
            return;
        }
        for at in self.system_calls(text) {
            let part = self.outline.borrow().part_at(LinkAddr(at));
            self.callers.extend(part.map(|it| it.start));
        }
    }

    /// Where in a stretch of text system calls are, or bytes that look like one.
    fn system_calls(&self, text: Range<u64>) -> Vec<u64> {
        let outline = self.outline.borrow();
        if let Some(known) = outline.system_calls(&text)
            && self.texts.are_in_file(&text)
        {
            return known.to_vec();
        }
        let bytes = self.texts.original(&text).unwrap_or_default();
        memchr::memmem::find_iter(bytes, &SYSCALL)
            .map(|it| text.start + it as u64)
            .collect()
    }

    /// Looks at a stretch of text again for system calls that do not run in copies.
    pub(super) fn look_for_loose_calls(&mut self, text: Range<u64>) {
        for at in self.system_calls(text) {
            self.look_at_call(at);
        }
    }

    /// Code may have spoken of more addresses: control may come to more of what is in no known part.
    pub(super) fn look_at_unknown_calls(&mut self) {
        let spoken = self.outline.borrow().spoken_count();
        if std::mem::replace(&mut self.spoken, spoken) == spoken {
            return;
        }
        for at in self.unknown_calls.clone() {
            self.look_at_call(at);
        }
    }

    fn look_at_call(&mut self, at: u64) {
        let part = self.outline.borrow().part_at(LinkAddr(at));
        let is_loose = match &part {
            Some(part) => !self.runs_in_copy(part, at),
            // Most of these are in tables among the code.
            None => self.outline.borrow().may_come_to(LinkAddr(at)),
        };
        match part {
            Some(_) => self.unknown_calls.remove(&at),
            None => self.unknown_calls.insert(at),
        };
        match is_loose {
            true => self.loose_calls.insert(at),
            false => self.loose_calls.remove(&at),
        };
    }

    /// Does the code at an address of a part run in a copy, or not at all, as far as we know?
    fn runs_in_copy(&self, part: &Range<u64>, at: u64) -> bool {
        if let Some(unit) = self.latest.get(&part.start) {
            let offset = (at - part.start) as u32;
            return !self.units[*unit].copy.is_gap(offset);
        }
        let has_guard = || {
            self.outline.borrow().is_known_start(LinkAddr(part.start))
                || self.arrivals.contains_key(&part.start)
        };
        !self.refused.contains(&part.start) && self.is_wanted(at) && has_guard()
    }

    /// A system call that may run from where it always was.
    pub fn loose_call(&self) -> Option<LinkAddr> {
        self.loose_calls.first().copied().map(LinkAddr)
    }

    /// Does every system call run in a copy?
    pub fn is_tight(&self) -> bool {
        self.loose_calls.is_empty()
    }
}
