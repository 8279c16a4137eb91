//! The code of a probe: it counts a place, and adds to its thread's event counter if there is one.

use crate::emit::{Emitter, Goal, State};
use crate::event_counter;
use crate::spots::{CounterNumber, Undo};

/// Where the event counter has come to its end, or the log: a jump that leads to a trap, out of the way.
pub(crate) struct Alarm {
    /// Where the distance of that jump is.
    pub from: usize,
    /// Where the thread goes on.
    pub back: u32,
    pub state: State,
    pub undo: Undo,
}

impl Emitter<'_> {
    /// A probe: what a thread has done before it, and behind it.
    pub(crate) fn probe(
        &mut self,
        counter: CounterNumber,
        is_careful: bool,
        before: State,
        behind: State,
    ) {
        let scratch = 0_u32.to_le_bytes();
        let events = self.events.of(counter);
        if !is_careful {
            self.add_events(events, before);
            self.spot(before.ahead(events), Undo::Nothing);
            self.put_word(&[0x65, 0x48, 0xff, 0x04, 0x25], counter); // inc qword ptr gs:[word]
            return;
        }
        self.spot(before, Undo::Nothing);
        self.put(&[0x65, 0x48, 0x89, 0x04, 0x25], scratch); // mov gs:[scratch], rax
        let undo = self.add_events_carefully(events, before);
        let before = before.ahead(events);
        self.spot(before, undo);
        self.put_word(&[0x65, 0x48, 0x8b, 0x04, 0x25], counter); // mov rax, gs:[word]
        self.spot(before, Undo::RestoreRax);
        self.code.extend([0x48, 0x8d, 0x40, 0x01]); // lea rax, [rax + 1]
        self.spot(before, Undo::RestoreRax);
        self.put_word(&[0x65, 0x48, 0x89, 0x04, 0x25], counter); // mov gs:[word], rax
        self.spot(behind, Undo::RestoreRax);
        self.put(&[0x65, 0x48, 0x8b, 0x04, 0x25], scratch); // mov rax, gs:[scratch]
    }

    /// Adds one to the event counter.
    pub(crate) fn count_entry(&mut self, is_careful: bool, before: State) -> State {
        let behind = before.ahead(1);
        if !is_careful {
            self.add_events(1, before);
            return behind;
        }
        let scratch = 0_u32.to_le_bytes();
        self.spot(before, Undo::Nothing);
        self.put(&[0x65, 0x48, 0x89, 0x04, 0x25], scratch); // mov gs:[scratch], rax
        let undo = self.add_events_carefully(1, before);
        self.spot(behind, undo);
        self.put(&[0x65, 0x48, 0x8b, 0x04, 0x25], scratch); // mov rax, gs:[scratch]
        behind
    }

    /// Adds to the event counter, where the flags are dead.
    fn add_events(&mut self, events: i32, before: State) {
        if events == 0 {
            return;
        }
        self.spot(before, Undo::Nothing);
        let counter = event_counter::AT.to_le_bytes();
        self.put(&[0x65, 0x48, 0x81, 0x04, 0x25], counter); // add qword ptr gs:[counter], events
        self.code.extend(events.to_le_bytes());
        if self.events.ends_with(events) {
            let state = before.ahead(events);
            self.spot(state, Undo::Nothing);
            self.put(&[0x0f, 0x89], [0; 4]); // jns
            self.alarms.push(Alarm {
                from: self.code.len() - 4,
                back: self.code.len() as u32,
                state,
                undo: Undo::Nothing,
            });
        }
    }

    /// The same where they are not; `rax` is in the scratch word. How it gets its value back.
    fn add_events_carefully(&mut self, events: i32, before: State) -> Undo {
        if events == 0 {
            return Undo::Nothing;
        }
        let counter = event_counter::AT.to_le_bytes();
        self.spot(before, Undo::Nothing);
        self.put(&[0x65, 0x48, 0x8b, 0x04, 0x25], counter); // mov rax, gs:[counter]
        self.spot(before, Undo::RestoreRax);
        self.put(&[0x48, 0x8d, 0x80], events.to_le_bytes()); // lea rax, [rax + events]
        self.spot(before, Undo::RestoreRax);
        self.put(&[0x65, 0x48, 0x89, 0x04, 0x25], counter); // mov gs:[counter], rax
        if self.events.ends_with(events) {
            self.trap_carefully(before.ahead(events));
        }
        Undo::RestoreRax
    }

    /// Traps if the event counter is no longer negative. Its upper half tells: it counts less than
    /// that beyond its end.
    fn trap_carefully(&mut self, state: State) {
        let second = event_counter::SCRATCH.to_le_bytes();
        let upper_half = (event_counter::AT + 4).to_le_bytes();
        self.spot(state, Undo::RestoreRax);
        self.put(&[0x65, 0x48, 0x89, 0x0c, 0x25], second); // mov gs:[second], rcx
        self.spot(state, Undo::RestoreRax);
        self.put(&[0x65, 0x8b, 0x0c, 0x25], upper_half); // mov ecx, gs:[upper half]
        self.spot(state, Undo::RestoreRaxAndRcx);
        self.code.extend([0xe3, 0x02]); // jrcxz, over the next
        self.spot(state, Undo::RestoreRaxAndRcx);
        self.code.extend([0xeb, 0x01]); // jmp, over the next
        self.countdowns.push(self.code.len() as u32);
        self.spot(state, Undo::RestoreRaxAndRcx);
        self.code.push(0xcc); // int3
        self.spot(state, Undo::RestoreRaxAndRcx);
        self.put(&[0x65, 0x48, 0x8b, 0x0c, 0x25], second); // mov rcx, gs:[second]
    }

    /// What the end of the event counter, or of the log, leads to.
    pub(crate) fn alarms(&mut self) {
        for alarm in std::mem::take(&mut self.alarms) {
            let Alarm { from, back, .. } = alarm;
            self.jumps.push((from, Goal::Here(self.code.len() as u32)));
            self.countdowns.push(self.code.len() as u32);
            self.spot(alarm.state, alarm.undo);
            self.code.push(0xcc); // int3
            self.spot(alarm.state, alarm.undo);
            self.jump(Goal::Here(back));
        }
    }
}
