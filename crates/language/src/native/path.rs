//! What a piece of machine code without branches makes of what was there before it.
//!
//! A jump through a table goes by a number that was made of a word of the program: its lowest seven bits. A path
//! that ends at such a jump tells where that word was read, and what holds that address by then.

use std::collections::HashMap;

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpKind, Register,
};

use super::code::{is_kept_by_calls, is_write};

/// A place: a register, or memory so far from what a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    Register(usize),
    Memory(usize, i64),
}

/// So far from what a place held at the beginning of the path. Places are numbered anew when nobody knows any
/// more what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) from: (Place, usize),
    pub(crate) by: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Address(Address),
    /// The word of the program that is there.
    Word(Address),
    /// Its lowest bits, so many times.
    Opcode(Address, i64),
    /// What is so far from the item of a table that such a number says.
    Item(Address, i64),
    /// What is in the table there.
    Handler(Address),
    Number(i64),
}

/// What is known of a function's jumps through a table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) at: u64,
    /// The bits of a word that say which item is meant.
    pub(crate) bits: u32,
    /// Does `rbp` say where the function's frame is, as `rsp` does?
    pub(crate) has_frame: bool,
}

impl Table {
    /// Does a register say where the function's frame is?
    fn is_frame(&self, register: usize) -> bool {
        register == STACK || register == FRAME && self.has_frame
    }
}

/// What is where, at a moment of a path.
pub(crate) struct State<'t> {
    known: HashMap<Place, Value>,
    changes: HashMap<Place, usize>,
    table: &'t Table,
    /// The registers that held the table's address at the beginning, by number.
    held: u16,
}

impl<'t> State<'t> {
    pub(crate) fn new(table: &'t Table, held: u16) -> Self {
        Self {
            known: HashMap::new(),
            changes: HashMap::new(),
            table,
            held,
        }
    }

    /// What a path makes of it.
    pub(crate) fn run(&mut self, path: &[Instruction], info: &mut InstructionInfoFactory) {
        for it in path {
            self.step(it, info);
        }
    }

    /// If a jump goes where the table says: where the word is that it goes by.
    pub(crate) fn word_of(&self, jump: &Instruction) -> Option<Address> {
        let target = match jump.op0_kind() {
            OpKind::Register => self.get(Place::Register(jump.op0_register().number())),
            OpKind::Memory => self.item(jump)?,
            _ => return None,
        };
        match target {
            // What is in the frame came from elsewhere before.
            Value::Handler(word) => Some(word).filter(|it| !self.is_in_frame(*it)),
            _ => None,
        }
    }

    /// The places that hold what is so far from an address, and how far.
    pub(crate) fn holders(&self, of: Address) -> Vec<(Place, i64)> {
        let known = self.known.iter().filter_map(|(place, value)| match value {
            Value::Address(it) if it.from == of.from => Some((*place, it.by.wrapping_sub(of.by))),
            _ => None,
        });
        let mut holders: Vec<(Place, i64)> = known.collect();
        let (place, change) = of.from;
        // It may still be where it was.
        if !self.known.contains_key(&place) && self.change(place) == change {
            holders.push((place, of.by.wrapping_neg()));
        }
        holders
    }

    fn is_in_frame(&self, at: Address) -> bool {
        matches!(at.from.0, Place::Register(number) if self.table.is_frame(number))
    }

    fn change(&self, place: Place) -> usize {
        self.changes.get(&place).copied().unwrap_or(0)
    }

    fn get(&self, place: Place) -> Value {
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        match place {
            Place::Register(number) if self.held >> number & 1 == 1 && self.change(place) == 0 => {
                Value::Number(self.table.at.cast_signed())
            }
            _ => Value::Address(Address {
                from: (place, self.change(place)),
                by: 0,
            }),
        }
    }

    /// Nobody knows what is there now.
    fn forget(&mut self, place: Place) {
        self.known.remove(&place);
        *self.changes.entry(place).or_default() += 1;
        if let Place::Register(number) = place {
            self.forget_memory(|base, _| base == number);
        }
    }

    fn forget_memory(&mut self, of: impl Fn(usize, i64) -> bool) {
        let is_it = |it: &Place| matches!(it, Place::Memory(base, at) if of(*base, *at));
        let mut places: Vec<Place> = self.known.keys().filter(|it| is_it(it)).copied().collect();
        let from = self.known.values().filter_map(|it| match it {
            Value::Address(it) | Value::Word(it) => Some(it.from.0),
            _ => None,
        });
        places.extend(from.filter(is_it));
        for place in places {
            self.known.remove(&place);
            *self.changes.entry(place).or_default() += 1;
        }
    }

    fn put(&mut self, place: Place, value: Option<Value>) {
        self.forget(place);
        if let Some(value) = value {
            self.known.insert(place, value);
        }
    }

    fn step(&mut self, it: &Instruction, info: &mut InstructionInfoFactory) {
        let (to, value) = self.effect(it);
        if matches!(
            it.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        ) {
            let scratch = (0..16).filter(|it| !is_kept_by_calls(*it) && *it != STACK);
            scratch.for_each(|it| self.forget(Place::Register(it)));
            self.forget_others();
            return;
        }
        for used in info.info(it).used_registers() {
            let register = used.register();
            if is_write(used.access()) && register.is_gpr() {
                self.forget(Place::Register(register.full_register().number()));
            }
        }
        match to {
            Some(place) => {
                if let Place::Memory(base, at) = place {
                    self.forget_around(base, at, it.memory_size().size() as i64);
                }
                self.put(place, value);
            }
            None if it.op0_kind() == OpKind::Memory && is_write_to_memory(it) => {
                self.forget_others();
            }
            None => {}
        }
    }

    /// What a frame holds is its own; all else may have been written by somebody.
    fn forget_others(&mut self) {
        let table = self.table;
        self.forget_memory(|base, _| !table.is_frame(base));
    }

    /// Something is written to memory.
    fn forget_around(&mut self, base: usize, at: i64, bytes: i64) {
        if !self.table.is_frame(base) {
            self.forget_others();
        }
        self.forget_memory(|of, it| of == base && it > at - 8 && it < at + bytes);
    }

    /// The place that an instruction writes to, and what it puts there, if that is known.
    fn effect(&self, it: &Instruction) -> (Option<Place>, Option<Value>) {
        let to = match it.op0_kind() {
            OpKind::Register if it.op0_register().is_gpr32() || it.op0_register().is_gpr64() => {
                Some(Place::Register(it.op0_register().full_register().number()))
            }
            OpKind::Memory => slot(it),
            _ => None,
        };
        let value = match it.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsxd => self.moved(it),
            Mnemonic::Lea => self.lea(it),
            Mnemonic::And => self.and(it),
            Mnemonic::Shl => self.shifted(it),
            // Compilers that do not optimise write that.
            Mnemonic::Shr if immediate(it) == Some(0) => self.own(it),
            Mnemonic::Add => self.sum(it, 1),
            Mnemonic::Sub => self.sum(it, -1),
            Mnemonic::Inc => self.further(it, 1),
            Mnemonic::Dec => self.further(it, -1),
            Mnemonic::Cdqe => {
                let rax = Place::Register(0);
                return (Some(rax), number(self.get(rax)));
            }
            // These write to nothing.
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Jmp | Mnemonic::Nop => return (None, None),
            _ => None,
        };
        (to, value)
    }

    fn moved(&self, it: &Instruction) -> Option<Value> {
        let is_whole = it.code() == Code::Mov_r64_rm64 || it.code() == Code::Mov_rm64_r64;
        let from = match it.op1_kind() {
            OpKind::Register => {
                let register = it.op1_register();
                let is_low = !matches!(
                    register,
                    Register::AH | Register::BH | Register::CH | Register::DH
                );
                is_low.then(|| self.get(Place::Register(register.full_register().number())))?
            }
            OpKind::Memory => self.read(it)?,
            _ => return immediate(it).map(Value::Number),
        };
        match is_whole {
            true => Some(from),
            false => number(from),
        }
    }

    /// What is read from memory.
    fn read(&self, it: &Instruction) -> Option<Value> {
        if let Some(item) = self.item(it) {
            return Some(item);
        }
        let from_slot = slot(it).map(|it| self.get(it));
        match it.memory_size() {
            size if is_address(size) => from_slot,
            _ => match from_slot {
                Some(value @ (Value::Word(_) | Value::Opcode(..))) => Some(value),
                _ => self.address(it).map(Value::Word),
            },
        }
    }

    /// What is in the table, if that is read.
    fn item(&self, it: &Instruction) -> Option<Value> {
        match self.lea(it)? {
            Value::Item(word, by) if is_address(it.memory_size()) => {
                (by.cast_unsigned() == self.table.at).then_some(Value::Handler(word))
            }
            _ => None,
        }
    }

    /// What memory an operand is.
    fn address(&self, it: &Instruction) -> Option<Address> {
        match self.lea(it)? {
            Value::Address(it) => Some(it),
            _ => None,
        }
    }

    fn lea(&self, it: &Instruction) -> Option<Value> {
        let by = it.memory_displacement64().cast_signed();
        if it.is_ip_rel_memory_operand() {
            return Some(Value::Number(by));
        }
        let of = |register: Register| match register {
            Register::None => Value::Number(0),
            it => self.get(Place::Register(it.full_register().number())),
        };
        let scale = i64::from(it.memory_index_scale());
        let index = match (it.memory_index(), of(it.memory_index())) {
            (Register::None, zero) => zero,
            (_, value) => times(value, scale)?,
        };
        added(added(of(it.memory_base()), index)?, Value::Number(by))
    }

    fn and(&self, it: &Instruction) -> Option<Value> {
        let bits = immediate(it)?;
        let Value::Word(word) = self.own(it)? else {
            return None;
        };
        (bits == i64::from(self.table.bits)).then_some(Value::Opcode(word, 1))
    }

    fn shifted(&self, it: &Instruction) -> Option<Value> {
        let by = u32::try_from(immediate(it)?).ok()?;
        let scale = 1_i64.checked_shl(by)?;
        times(self.own(it)?, scale)
    }

    fn sum(&self, it: &Instruction, sign: i64) -> Option<Value> {
        let other = match it.op1_kind() {
            OpKind::Register if sign == 1 => {
                self.get(Place::Register(it.op1_register().full_register().number()))
            }
            OpKind::Register | OpKind::Memory => return None,
            _ => Value::Number(immediate(it)?.wrapping_mul(sign)),
        };
        added(self.own(it)?, other)
    }

    fn further(&self, it: &Instruction, by: i64) -> Option<Value> {
        added(self.own(it)?, Value::Number(by))
    }

    /// What was in the place that an instruction changes.
    fn own(&self, it: &Instruction) -> Option<Value> {
        match it.op0_kind() {
            OpKind::Register => {
                Some(self.get(Place::Register(it.op0_register().full_register().number())))
            }
            OpKind::Memory => Some(self.get(slot(it)?)),
            _ => None,
        }
    }
}

const STACK: usize = 4;
const FRAME: usize = 5;

/// Does an instruction write to the memory that is its first operand?
fn is_write_to_memory(it: &Instruction) -> bool {
    !matches!(
        it.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Jmp | Mnemonic::Nop
    )
}

fn is_address(size: MemorySize) -> bool {
    matches!(size, MemorySize::UInt64 | MemorySize::QwordOffset)
}

/// The number that is the second operand.
fn immediate(it: &Instruction) -> Option<i64> {
    it.try_immediate(1).ok().map(u64::cast_signed)
}

/// What of a value is left in half a register.
fn number(value: Value) -> Option<Value> {
    match value {
        Value::Word(_) | Value::Opcode(..) | Value::Number(_) => Some(value),
        _ => None,
    }
}

fn times(value: Value, scale: i64) -> Option<Value> {
    match value {
        Value::Opcode(word, by) => Some(Value::Opcode(word, by.checked_mul(scale)?)),
        Value::Number(it) => Some(Value::Number(it.wrapping_mul(scale))),
        other if scale == 1 => Some(other),
        _ => None,
    }
}

fn added(one: Value, other: Value) -> Option<Value> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => Some(Value::Number(one.wrapping_add(other))),
        (Value::Number(0), it) | (it, Value::Number(0)) => Some(match it {
            Value::Opcode(word, 8) => Value::Item(word, 0),
            it => it,
        }),
        (Value::Number(by), Value::Opcode(word, 8))
        | (Value::Opcode(word, 8), Value::Number(by)) => Some(Value::Item(word, by)),
        (Value::Number(by), Value::Item(word, at)) | (Value::Item(word, at), Value::Number(by)) => {
            Some(Value::Item(word, at.wrapping_add(by)))
        }
        (Value::Number(by), Value::Address(it)) | (Value::Address(it), Value::Number(by)) => {
            Some(Value::Address(Address {
                by: it.by.wrapping_add(by),
                ..it
            }))
        }
        _ => None,
    }
}

/// The memory that an operand is, if only one register and a number say where.
fn slot(it: &Instruction) -> Option<Place> {
    let base = it.memory_base();
    let is_slot = base.is_gpr64() && it.memory_index() == Register::None;
    is_slot.then(|| Place::Memory(base.number(), it.memory_displacement64().cast_signed()))
}
