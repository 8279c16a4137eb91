//! The log of a thread: where it arrived from other routines, with its event counter.
//!
//! Calls, returns and jumps between routines are all seen where they arrive. What they mean is found
//! out later, from these entries alone (`headcount_calls`): here, little is to be done. The log is in
//! the thread's window, and a word there says how far from its end the next entry is; when that is
//! nothing, the copy traps and the log is read. A thread that is moved away behind an entry, and comes
//! back, writes it again: who reads the log knows an arrival where a thread already is.

use headcount_model::Entrance;

use crate::emit::{Emitter, State};
use crate::event_counter;
use crate::probes::Alarm;
use crate::sketch::CannotCopy;
use crate::spots::Undo;
use crate::system_calls::BEHIND_CALL_CELLS;

/// Where the place of the next entry is, from the base of `gs` on: so many bytes before the end, as
/// a negative number.
pub const PLACE: u32 = 24;

/// How many bytes an entry has: event counter, stack pointer, return address (0 if the thread did not
/// arrive at the start of a routine) and where it arrived.
pub const ENTRY_BYTES: u32 = 32;

/// How many bytes the log has.
pub const BYTES: u32 = 1 << 18;

/// Where it begins, if there is one.
pub const START: u32 = BEHIND_CALL_CELLS;

/// An entry's field, from the end of the log on.
const fn field(offset: u32) -> [u8; 4] {
    (START + BYTES + offset).to_le_bytes()
}

impl Emitter<'_> {
    /// Does a thread that arrives at a block write that down?
    pub(crate) fn logs(&self, number: usize) -> bool {
        let block = &self.sketch.routine.blocks[number];
        self.events.are_logged() && block.entrance != Entrance::None && !block.is_case
    }

    /// Writes an arrival down.
    pub(crate) fn log(&mut self, number: usize, before: State) -> Result<(), CannotCopy> {
        let block = &self.sketch.routine.blocks[number];
        let is_entry = block.entrance == Entrance::Entry;
        let is_careful = self.sketch.blocks[number].start_is_careful;
        let scratch = 0_u32.to_le_bytes();
        let second = event_counter::SCRATCH.to_le_bytes();
        let (place, counter) = (PLACE.to_le_bytes(), event_counter::AT.to_le_bytes());
        self.spot(before, Undo::Nothing);
        self.put(&[0x65, 0x48, 0x89, 0x04, 0x25], scratch); // mov gs:[scratch], rax
        self.spot(before, Undo::Nothing);
        self.put(&[0x65, 0x48, 0x89, 0x0c, 0x25], second); // mov gs:[second], rcx
        let step = |it: &mut Self| it.spot(before, Undo::RestoreRaxAndRcx);
        step(self);
        self.put(&[0x65, 0x48, 0x8b, 0x0c, 0x25], place); // mov rcx, gs:[place]
        step(self);
        self.put(&[0x65, 0x48, 0x8b, 0x04, 0x25], counter); // mov rax, gs:[counter]
        step(self);
        self.put(&[0x65, 0x48, 0x89, 0x81], field(0)); // mov gs:[rcx + field], rax
        step(self);
        self.put(&[0x65, 0x48, 0x89, 0xa1], field(8)); // mov gs:[rcx + field], rsp
        step(self);
        if is_entry {
            self.code.extend([0x48, 0x8b, 0x04, 0x24]); // mov rax, [rsp]
            step(self);
            self.put(&[0x65, 0x48, 0x89, 0x81], field(16)); // mov gs:[rcx + field], rax
        } else {
            self.put(&[0x65, 0x48, 0xc7, 0x81], field(16)); // mov qword ptr gs:[rcx + field], 0
            self.code.extend([0; 4]);
        }
        step(self);
        let behind = self.here().wrapping_add(7);
        let at = self.start_of(number as u32);
        self.put_distance(&[0x48, 0x8d, 0x05], at, behind)?; // lea rax, [rip + distance]
        step(self);
        self.put(&[0x65, 0x48, 0x89, 0x81], field(24)); // mov gs:[rcx + field], rax
        step(self);
        match is_careful {
            false => self.code.extend([0x48, 0x83, 0xc1, ENTRY_BYTES as u8]), // add rcx, bytes
            true => self.code.extend([0x48, 0x8d, 0x49, ENTRY_BYTES as u8]), // lea rcx, [rcx + bytes]
        }
        step(self);
        self.put(&[0x65, 0x48, 0x89, 0x0c, 0x25], place); // mov gs:[place], rcx
        self.trap_if_full(is_careful, before);
        step(self);
        self.put(&[0x65, 0x48, 0x8b, 0x0c, 0x25], second); // mov rcx, gs:[second]
        step(self);
        self.put(&[0x65, 0x48, 0x8b, 0x04, 0x25], scratch); // mov rax, gs:[scratch]
        Ok(())
    }

    /// Traps if there is no room for a further entry.
    fn trap_if_full(&mut self, is_careful: bool, state: State) {
        let undo = Undo::RestoreRaxAndRcx;
        self.spot(state, undo);
        if !is_careful {
            self.put(&[0x0f, 0x84], [0; 4]); // jz
            self.alarms.push(Alarm {
                from: self.code.len() - 4,
                back: self.code.len() as u32,
                state,
                undo,
            });
            return;
        }
        self.code.extend([0xe3, 0x02]); // jrcxz, over the next
        self.spot(state, undo);
        self.code.extend([0xeb, 0x01]); // jmp, over the next
        self.countdowns.push(self.code.len() as u32);
        self.spot(state, undo);
        self.code.push(0xcc); // int3
    }
}
