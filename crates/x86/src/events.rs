//! How many events of each kind does an instruction make?
//!
//! `docs/events.md` has the rules. Nothing here looks at anything but the bytes: whether a conditional
//! jump jumps is for the edges to tell.

use crate::NotCode;
use crate::decode::walk;
use crate::floating_point::{Flops, Lanes, arithmetic};
use headcount_model::{Bounds, Event, Events, InstructionEvents, LinkAddr, Span, Varies};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
    UsedMemory,
};

/// The events of every instruction of a span.
pub fn events(span: &Span) -> Result<Vec<InstructionEvents>, NotCode> {
    let mut factory = InstructionInfoFactory::new();
    let one = |it: Result<Instruction, NotCode>| it.map(|it| of_instruction(&it, &mut factory));
    walk(span).map(one).collect()
}

fn of_instruction(it: &Instruction, factory: &mut InstructionInfoFactory) -> InstructionEvents {
    let mut events = Events::default();
    events[Event::Instructions] = Bounds::exactly(1);
    for event in control(it).into_iter().chain(kinds(it)) {
        events[event] = Bounds::exactly(1);
    }
    let is_branch = it.flow_control() == FlowControl::ConditionalBranch;
    add_memory(it, factory, &mut events);
    if let Some(flops) = arithmetic(it.mnemonic()).flops {
        add_flops(it, flops, &mut events);
    }
    let is_bound = |event: Event| events[event].most != Some(events[event].least);
    let varies = Event::ALL.into_iter().any(is_bound).then(|| varies(it));
    InstructionEvents {
        address: LinkAddr(it.ip()),
        target: is_branch.then(|| LinkAddr(it.near_branch_target())),
        events,
        varies,
    }
}

/// What it does to the flow of control.
fn control(it: &Instruction) -> Vec<Event> {
    match it.flow_control() {
        FlowControl::ConditionalBranch => vec![Event::Branches],
        FlowControl::UnconditionalBranch => vec![Event::Jumps],
        FlowControl::IndirectBranch => vec![Event::Jumps, Event::Indirect],
        FlowControl::IndirectCall => vec![Event::Calls, Event::Indirect],
        FlowControl::Return => vec![Event::Returns],
        FlowControl::Call if is_system_call(it) => vec![Event::Syscalls],
        FlowControl::Call if it.is_call_near() || it.is_call_far() => vec![Event::Calls],
        FlowControl::Interrupt if is_system_call(it) => vec![Event::Syscalls],
        _ => Vec::new(),
    }
}

fn is_system_call(it: &Instruction) -> bool {
    match it.mnemonic() {
        Mnemonic::Syscall | Mnemonic::Sysenter => true,
        Mnemonic::Int => it.immediate8() == 0x80,
        _ => false,
    }
}

/// What kind of instruction it is, whatever it does.
fn kinds(it: &Instruction) -> impl Iterator<Item = Event> {
    let exchanges = it.mnemonic() == Mnemonic::Xchg && has_memory(it);
    let is_fence = matches!(
        it.mnemonic(),
        Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence
    );
    let arithmetic = arithmetic(it.mnemonic());
    let all = [
        (Event::Atomics, it.has_lock_prefix() || exchanges),
        (Event::Fences, is_fence),
        (Event::Divisions, arithmetic.divides),
        (Event::Vector, !arithmetic.is_scalar && has_vector(it)),
    ];
    all.into_iter().filter(|it| it.1).map(|it| it.0)
}

fn has_memory(it: &Instruction) -> bool {
    it.op_kinds().any(|kind| kind == OpKind::Memory)
}

fn has_vector(it: &Instruction) -> bool {
    let registers = (0..it.op_count()).map(|number| it.op_register(number));
    let mut registers = registers.into_iter();
    registers.any(|it| it.is_vector_register() || it.is_mm())
}

fn add_memory(it: &Instruction, factory: &mut InstructionInfoFactory, events: &mut Events) {
    // These name memory, and read none of it into the program.
    if matches!(
        it.mnemonic(),
        Mnemonic::Clflush | Mnemonic::Clflushopt | Mnemonic::Clwb | Mnemonic::Umonitor
    ) {
        return;
    }
    for memory in factory.info(it).used_memory() {
        let (reads, writes) = directions(memory.access());
        let (places, bytes) = extent(it, memory);
        if reads {
            events[Event::Loads] = events[Event::Loads].plus(places);
            events[Event::BytesRead] = events[Event::BytesRead].plus(bytes);
        }
        if writes {
            events[Event::Stores] = events[Event::Stores].plus(places);
            events[Event::BytesWritten] = events[Event::BytesWritten].plus(bytes);
        }
    }
}

/// Whether memory is read, and whether it is written.
fn directions(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        // `cmpxchg` writes what was there if it does not exchange.
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
    }
}

/// How many places of memory, and how many bytes.
fn extent(it: &Instruction, memory: &UsedMemory) -> (Bounds, Bounds) {
    let size = match memory.memory_size().size() {
        0 => None,
        size => u32::try_from(size).ok(),
    };
    let Some(size) = size else {
        let is_conditional = matches!(memory.access(), OpAccess::CondRead | OpAccess::CondWrite);
        let places = if is_conditional {
            Bounds::ANY
        } else {
            Bounds::exactly(1)
        };
        return (places, Bounds::ANY);
    };
    match vector_addresses(it, memory) {
        Some(lanes) => (Bounds::up_to(lanes), Bounds::up_to(lanes * size)),
        None if is_masked(it) => (Bounds::up_to(1), Bounds::up_to(size)),
        None => (Bounds::exactly(1), Bounds::exactly(size)),
    }
}

/// How many places a gather or a scatter goes to: as many as there are addresses and values.
fn vector_addresses(it: &Instruction, memory: &UsedMemory) -> Option<u32> {
    if !it.is_vsib() {
        return None;
    }
    let index = if it.is_vsib64() { 8 } else { 4 };
    let addresses = it.memory_index().size() / index;
    // The values are in the first operand, or in the second if the first is memory.
    let registers = (0..2).map(|number| it.op_register(number));
    let values = registers.into_iter().find(|it| it.is_vector_register());
    let values = values.map_or(0, Register::size) / memory.memory_size().size().max(1);
    u32::try_from(addresses.min(values)).ok()
}

/// Whether a mask says which lanes are handled.
fn is_masked(it: &Instruction) -> bool {
    let by_name = matches!(
        it.mnemonic(),
        Mnemonic::Vmaskmovps
            | Mnemonic::Vmaskmovpd
            | Mnemonic::Vpmaskmovd
            | Mnemonic::Vpmaskmovq
            | Mnemonic::Maskmovq
            | Mnemonic::Maskmovdqu
            | Mnemonic::Vmaskmovdqu
    );
    by_name || it.has_op_mask()
}

fn add_flops(it: &Instruction, flops: Flops, events: &mut Events) {
    let register = u32::try_from(it.op0_register().size()).unwrap_or(0);
    let lanes = match flops.lanes {
        Lanes::Some(lanes) => Some(lanes),
        Lanes::All => Some(register * 8 / flops.bits),
        Lanes::Tiles => None,
    };
    let number = match lanes.map(|lanes| lanes * flops.each) {
        None => Bounds::ANY,
        Some(number) if it.has_op_mask() => Bounds::up_to(number),
        Some(number) => Bounds::exactly(number),
    };
    let by_width = match flops.bits {
        16 => Event::Flops16,
        32 => Event::Flops32,
        64 => Event::Flops64,
        _ => Event::Flops80,
    };
    events[Event::Flops] = number;
    events[by_width] = number;
}

/// Why the numbers of an instruction are bounds.
fn varies(it: &Instruction) -> Varies {
    if it.is_string_instruction() {
        Varies::Repeats
    } else if is_masked(it) || it.is_vsib() {
        Varies::Masked
    } else {
        Varies::Configured
    }
}

#[cfg(test)]
mod tests;
