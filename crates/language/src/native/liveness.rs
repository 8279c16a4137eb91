//! Which registers nobody looks at, before they are overwritten: a probe may use them.
//!
//! Control leaves the code of an instruction through the table; so what is looked at there is what the code of
//! any instruction looks at. Where it leaves in a way that is not known, everything is.

use std::collections::{BTreeMap, HashMap};

use headcount_x86::registers::{self, Touched};
use iced_x86::{Code, FlowControl, Instruction, InstructionInfoFactory, Register};

pub(crate) use headcount_x86::registers::Registers;

const ALL: Registers = Registers::MAX;

const fn set(of: &[usize]) -> Registers {
    let (mut all, mut index) = (0, 0);
    while index < of.len() {
        all |= 1 << of[index];
        index += 1;
    }
    all
}

/// By the System V ABI: what a called function may look at (the arguments, `al`, `rsp`), ...
const ARGUMENTS: Registers = set(&[0, 1, 2, 4, 6, 7, 8, 9, 10]);

/// ... what its caller must take for overwritten, unless the compiler knew what it does, ...
const SCRATCH: Registers = set(&[0, 1, 2, 6, 7, 8, 9, 10, 11]);

/// ... and what its caller looks at when it has returned. (A function that calls others by way of pointers
/// may overwrite all else, as every compiler knows.)
const RETURNED: Registers = set(&[0, 2, 3, 4, 5, 12, 13, 14, 15]);

/// In these, a function of which the compiler knew nothing may leave anything, and its result is not there.
const LOST: Registers = set(&[1, 6, 7, 8, 9, 10, 11]);

/// What an instruction does to registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effect {
    looked_at: Registers,
    overwritten: Registers,
    /// What it looks at or writes to by itself, wherever it leads.
    touched: Registers,
    /// What is not there any more.
    lost: Registers,
    /// What is looked at where control goes that is not followed.
    elsewhere: Registers,
}

impl Effect {
    /// `calls_out`: does it call a function of another file?
    pub fn of(
        instruction: &Instruction,
        calls_out: bool,
        info: &mut InstructionInfoFactory,
    ) -> Self {
        let Touched {
            mut looked_at,
            mut overwritten,
        } = registers::by_itself(instruction, info);
        let touched = looked_at | overwritten;
        // This may tell where a variable of the thread is, and leaves nearly all as it is.
        let is_descriptor = instruction.code() == Code::Call_rm64
            && instruction.memory_base() == Register::RAX
            && instruction.memory_displacement64() == 0;
        let is_indirect = instruction.flow_control() == FlowControl::IndirectCall;
        let is_unknown = calls_out || is_indirect && !is_descriptor;
        let elsewhere = match instruction.flow_control() {
            FlowControl::Call => {
                looked_at |= ARGUMENTS;
                0
            }
            FlowControl::IndirectCall => {
                looked_at |= ARGUMENTS;
                overwritten |= SCRATCH;
                0
            }
            FlowControl::Return => RETURNED,
            FlowControl::Next
            | FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch => 0,
            _ => ALL,
        };
        Self {
            looked_at,
            overwritten,
            touched,
            lost: if is_unknown { LOST } else { 0 },
            elsewhere,
        }
    }
}

/// An instruction, as far as this is about it.
pub(crate) struct Node {
    pub effect: Effect,
    pub next: Vec<u64>,
    /// Does it jump through the table?
    pub is_dispatch: bool,
}

/// Registers whose contents were lost on some way to a jump through the table: no instruction that the table leads to can
/// need them, for every one of them may come next. `begins` is where the table leads.
fn lost_at_dispatches(code: &BTreeMap<u64, Node>, begins: &[u64]) -> Registers {
    let mut before: HashMap<u64, Registers> = HashMap::new();
    let mut all = 0;
    let mut todo: Vec<u64> = code.keys().copied().collect();
    while let Some(at) = todo.pop() {
        let Some(node) = code.get(&at) else { continue };
        let lost = before.get(&at).copied().unwrap_or(0);
        let behind = lost & !node.effect.touched | node.effect.lost;
        let through = if node.is_dispatch { begins } else { &[] };
        if node.is_dispatch {
            all |= behind;
        }
        for next in node.next.iter().chain(through) {
            let known = before.entry(*next).or_insert(0);
            if *known | behind != *known {
                *known |= behind;
                todo.push(*next);
            }
        }
    }
    all
}

/// What is looked at from each of these instructions on. `begins` is where the table leads.
pub(crate) fn looked_at(code: &BTreeMap<u64, Node>, begins: &[u64]) -> HashMap<u64, Registers> {
    let lost = lost_at_dispatches(code, begins);
    let surely = behind(code, begins, 0, &Node::surely_looked_at);
    let needed = begins.iter().filter_map(|it| surely.get(it));
    let needed = needed.fold(0, |sum, it| sum | it);
    // What is needed and was lost was not: control never goes some way that was followed.
    let lost = if lost & needed == 0 { lost } else { 0 };
    behind(code, begins, lost, &Node::looked_at)
}

/// From what each instruction looks at, and what where control goes that is not followed, to what is looked at from it
/// on. Where the table leads, nobody looks at what is `lost`.
fn behind(
    code: &BTreeMap<u64, Node>,
    begins: &[u64],
    lost: Registers,
    looks_at: &dyn Fn(&Node) -> (Registers, Registers),
) -> HashMap<u64, Registers> {
    let mut found: HashMap<u64, Registers> = HashMap::new();
    loop {
        let at = |at: &u64, found: &HashMap<u64, Registers>| match code.contains_key(at) {
            true => found.get(at).copied().unwrap_or(0),
            false => ALL,
        };
        let by_table = begins.iter().fold(0, |sum, it| sum | at(it, &found)) & !lost;
        let mut has_changed = false;
        // Backwards, most are right at once.
        for (place, node) in code.iter().rev() {
            let (looked_at, elsewhere) = looks_at(node);
            let behind = match node.is_dispatch {
                true => by_table,
                false => elsewhere,
            };
            let behind = node
                .next
                .iter()
                .fold(behind, |sum, it| sum | at(it, &found));
            let before = behind & !node.effect.overwritten | looked_at;
            has_changed |= found.insert(*place, before) != Some(before);
        }
        if !has_changed {
            return found;
        }
    }
}

impl Node {
    fn looked_at(&self) -> (Registers, Registers) {
        (self.effect.looked_at, self.effect.elsewhere)
    }

    /// The same, but not what a called function may look at.
    fn surely_looked_at(&self) -> (Registers, Registers) {
        (self.effect.looked_at & self.effect.touched, 0)
    }
}

/// All registers but these and the stack pointer.
pub(crate) fn others(looked_at: Registers) -> Registers {
    !(looked_at | 1 << Register::RSP.number())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Instructions one after the other, the last of which goes through the table.
    fn nodes(code: &[u8]) -> BTreeMap<u64, Node> {
        let mut info = InstructionInfoFactory::new();
        let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
        let all: Vec<Instruction> = decoder.into_iter().collect();
        let node = |it: &Instruction| {
            let is_dispatch = it.flow_control() == FlowControl::IndirectBranch;
            let next = match it.flow_control() {
                FlowControl::Return | FlowControl::IndirectBranch => Vec::new(),
                _ => vec![it.next_ip()],
            };
            let effect = Effect::of(it, false, &mut info);
            (
                it.ip(),
                Node {
                    effect,
                    next,
                    is_dispatch,
                },
            )
        };
        all.iter().map(node).collect()
    }

    #[test]
    fn what_is_overwritten_first_is_free() {
        // mov ecx, 1; mov al, 2; add rdx, rax; jmp rbx
        let code = nodes(&[0xb9, 1, 0, 0, 0, 0xb0, 2, 0x48, 0x01, 0xc2, 0xff, 0xe3]);
        let found = looked_at(&code, &[0]);
        // What is in the upper part of rax is added.
        assert_eq!(found[&0], set(&[0, 2, 3]));
        // Behind the jump, all begins anew.
        assert_eq!(found[&10], set(&[0, 2, 3]));
        assert_eq!(others(found[&10]) & set(&[1, 4, 11]), set(&[1, 11]));
    }

    #[test]
    fn where_control_goes_that_is_not_known_all_is_looked_at() {
        let code = nodes(&[0x90, 0xff, 0xe3]);
        assert_eq!(looked_at(&code, &[0x1000])[&1], ALL);
        let mut unknown = code;
        unknown.get_mut(&1).unwrap().is_dispatch = false;
        assert_eq!(looked_at(&unknown, &[0])[&0], ALL);
    }

    #[test]
    fn what_a_call_may_have_changed_nobody_needs_behind_the_table() {
        // call rbx; jmp rbp. A call takes arguments; but after one, there are none.
        let code = nodes(&[0xff, 0xd3, 0xff, 0xe5]);
        assert_eq!(looked_at(&code, &[0])[&2] & ARGUMENTS, set(&[0, 2, 4]));
        // call rbx; mov rdi, rax; jmp rbp
        let code = nodes(&[0xff, 0xd3, 0x48, 0x89, 0xc7, 0xff, 0xe5]);
        assert_eq!(looked_at(&code, &[0])[&5] & ARGUMENTS, set(&[0, 2, 4, 7]));
        // push rcx; call rbx; jmp rbp: what is needed was not lost, whatever it looks like.
        let code = nodes(&[0x51, 0xff, 0xd3, 0xff, 0xe5]);
        assert_eq!(looked_at(&code, &[0])[&3] & ARGUMENTS, ARGUMENTS);
        // call 5; jmp rbp: the compiler may know what that changes.
        let code = nodes(&[0xe8, 0, 0, 0, 0, 0xff, 0xe5]);
        assert_eq!(looked_at(&code, &[0])[&5] & ARGUMENTS, ARGUMENTS);
    }

    #[test]
    fn calls_take_arguments_and_leave_what_the_abi_says() {
        // call rbx; ret
        let code = nodes(&[0xff, 0xd3, 0xc3]);
        let found = looked_at(&code, &[]);
        assert_eq!(found[&2], RETURNED);
        assert_eq!(found[&0], ARGUMENTS | RETURNED & !SCRATCH);
        // call 5; jmp rbx
        let code = nodes(&[0xe8, 0, 0, 0, 0, 0xff, 0xe3]);
        assert_eq!(looked_at(&code, &[0x1000])[&0], ALL);
    }
}
