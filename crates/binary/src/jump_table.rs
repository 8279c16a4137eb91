//! How many targets does this jump have?
//!
//! Compilers turn a `switch` into a load from a table and a jump. The table holds addresses
//! (`jmp *table(,%rax,8)`) or distances from a fixed place, which is the table itself in what GCC,
//! Clang and rustc write, and a label of code in glibc's `vfprintf`:
//!
//! ```text
//! lea     table(%rip), %rdx
//! movslq  (%rdx,%rax,4), %rax
//! add     %rdx, %rax
//! jmp     *%rax
//! ```
//!
//! A table that is read as longer than it is costs a counter or two. One that is read as shorter
//! loses counts, so a bound is believed only where it is about the very register that indexes.

use std::ops::Range;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use crate::image::Image;
use crate::sweep::{Flow, flow};

/// Where an indirect jump leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// To the places in these tables.
    Known(Listed),
    /// Out of the function: it is a call without return.
    Elsewhere,
    /// To where a pointer leads that somebody stored.
    Pointer,
    /// Nothing here tells: there is arithmetic that nobody sees through.
    Unknown,
}

/// What tables hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Where they lead, by address.
    pub targets: Vec<u64>,
    /// Where they are.
    pub tables: Vec<Range<u64>>,
    /// Does no bound tell where one of them ends? It was read for as long as it makes sense.
    pub may_go_on: bool,
}

/// Nobody's `switch` is larger than this.
const MOST: u64 = 1 << 16;
/// How far behind the jump a register's value is looked for.
const NEAR: usize = 32;

/// What to look at: the code of one part, in order.
pub struct Tables<'a> {
    image: &'a Image<'a>,
    code: &'a [Instruction],
    /// The end of the code: where a case that cannot happen may point.
    end: u64,
    /// Whether control may be sent to this address from here.
    accept: &'a dyn Fn(u64) -> bool,
    /// Every address that is loaded anywhere in the code.
    bases: Vec<(Register, u64)>,
}

#[derive(Clone, Copy)]
struct Table {
    at: u64,
    /// What its entries are relative to; `None` if they are addresses.
    base: Option<u64>,
    bound: Bound,
}

/// How many entries a table has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Exactly(u64),
    AtMost(u64),
}

impl<'a> Tables<'a> {
    pub fn new(
        image: &'a Image<'a>,
        code: &'a [Instruction],
        end: u64,
        accept: &'a dyn Fn(u64) -> bool,
    ) -> Self {
        let mut bases: Vec<_> = code
            .iter()
            .filter_map(|it| Some((it.op0_register().full_register(), loaded_address(it)?)))
            .collect();
        bases.sort_unstable_by_key(|(register, at)| (*register as u32, *at));
        bases.dedup();
        Self {
            image,
            code,
            end,
            accept,
            bases,
        }
    }

    /// Where the jump with this index leads.
    pub fn targets(&self, jump: usize) -> Targets {
        let Some(instruction) = self.code.get(jump) else {
            return Targets::Unknown;
        };
        if self.leaves(jump) {
            return Targets::Elsewhere;
        }
        match instruction.op0_kind() {
            OpKind::Memory => self.through_memory(jump, instruction),
            OpKind::Register => self.through_register(jump, instruction.op0_register(), 3),
            _ => Targets::Unknown,
        }
    }

    /// Whether the code before the jump takes the function's frame down: then the jump is a call
    /// without return.
    fn leaves(&self, jump: usize) -> bool {
        let before = self.code.get(jump.saturating_sub(NEAR)..jump);
        before
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|it| !flow(it).ends_block())
            .any(|it| matches!(it.mnemonic(), Mnemonic::Pop | Mnemonic::Leave))
    }

    fn through_register(&self, before: usize, register: Register, hops: u32) -> Targets {
        let Some((index, made)) = self.definition(before, register) else {
            return Targets::Pointer;
        };
        match made.mnemonic() {
            Mnemonic::Mov if made.op1_kind() == OpKind::Memory => self.through_memory(index, made),
            Mnemonic::Mov if made.op1_kind() == OpKind::Register && hops > 0 => {
                self.through_register(index, made.op1_register(), hops - 1)
            }
            Mnemonic::Add if made.op1_kind() == OpKind::Register => {
                self.relative(index, [made.op0_register(), made.op1_register()])
            }
            Mnemonic::Lea if made.memory_index() != Register::None => {
                self.relative(index, [made.memory_base(), made.memory_index()])
            }
            // A label whose address was taken right here.
            Mnemonic::Lea if made.is_ip_rel_memory_operand() => {
                let to = made.ip_rel_memory_address();
                match (self.accept)(to) {
                    true => Targets::Known(Listed {
                        targets: vec![to],
                        ..Listed::default()
                    }),
                    false => Targets::Unknown,
                }
            }
            _ => Targets::Unknown,
        }
    }

    /// A jump through, or a load of, an item of a table of addresses.
    fn through_memory(&self, index: usize, load: &Instruction) -> Targets {
        if load.memory_index() == Register::None {
            return Targets::Pointer;
        }
        if load.memory_index_scale() != 8 {
            return Targets::Unknown;
        }
        let bound = self.bound(index, load.memory_index());
        let tables = self.tables_of(index, load, |_| None);
        let tables = tables.into_iter().map(|at| Table {
            at,
            base: None,
            bound,
        });
        self.read(tables).unwrap_or(Targets::Unknown)
    }

    /// A sum of two registers, one of which was loaded from a table of distances.
    fn relative(&self, index: usize, sum: [Register; 2]) -> Targets {
        let swapped = [sum[1], sum[0]];
        for [entry, base] in [sum, swapped] {
            let Some((load, made)) = self.load_of_distance(index, entry) else {
                continue;
            };
            let bound = match made.memory_index() {
                Register::None => Bound::Exactly(1),
                index => self.bound(load, index),
            };
            let same = base.full_register() == made.memory_base().full_register();
            let base = match self.definition(index, base) {
                Some((at, made)) if at > load => loaded_address(made),
                _ if same => None,
                _ => self.value(index, base),
            };
            let tables = self.tables_of(load, made, |at| Some(base.unwrap_or(at)));
            let tables = tables.into_iter().map(|at| Table {
                at,
                base: Some(base.unwrap_or(at)),
                bound,
            });
            if let Some(found) = self.read(tables) {
                return found;
            }
        }
        // The distance was loaded out of sight, but what is added to it is a table.
        let tables = sum.iter().filter_map(|base| self.value(index, *base));
        let tables =
            tables.filter(|at| !self.image.is_code(*at) && self.first_entry(*at, Some(*at)));
        let tables = tables.map(|at| Table {
            at,
            base: Some(at),
            bound: Bound::AtMost(MOST),
        });
        self.read(tables).unwrap_or(Targets::Unknown)
    }

    /// `movslq (table,index,4), register`, perhaps in two steps.
    fn load_of_distance(&self, before: usize, register: Register) -> Option<(usize, &Instruction)> {
        let (index, made) = self.definition(before, register)?;
        let is_load = |it: &Instruction| {
            let fixed = it.is_ip_rel_memory_operand();
            it.op1_kind() == OpKind::Memory && (it.memory_index_scale() == 4 || fixed)
        };
        match made.mnemonic() {
            Mnemonic::Movsxd if is_load(made) => Some((index, made)),
            Mnemonic::Movsxd => self.load_of_distance(index, made.op1_register()),
            Mnemonic::Cdqe => self.load_of_distance(index, Register::EAX),
            Mnemonic::Mov if is_load(made) => Some((index, made)),
            _ => None,
        }
    }

    /// Where the table may be that this instruction indexes. Where its register was set out of
    /// sight, every table that the code speaks of is as good as the next.
    fn tables_of(
        &self,
        index: usize,
        load: &Instruction,
        base_of: impl Fn(u64) -> Option<u64>,
    ) -> Vec<u64> {
        let offset = load.memory_displacement64();
        if load.memory_base() == Register::None || load.is_ip_rel_memory_operand() {
            return vec![offset];
        }
        if let Some(base) = self.value(index, load.memory_base()) {
            return vec![base.wrapping_add(offset)];
        }
        let register = load.memory_base().full_register();
        let of = |wanted: Option<Register>| -> Vec<u64> {
            let bases = self.bases.iter();
            let bases = bases.filter(|(it, _)| wanted.is_none_or(|wanted| *it == wanted));
            let bases = bases.map(|(_, at)| at.wrapping_add(offset));
            bases
                .filter(|at| at.is_multiple_of(4) && !self.image.is_code(*at))
                .collect()
        };
        let begins_well = |at: &u64| self.first_entry(*at, base_of(*at));
        let mut tables = of(Some(register));
        if !tables.iter().any(begins_well) {
            tables = of(None);
        }
        tables.retain(begins_well);
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    fn first_entry(&self, at: u64, base: Option<u64>) -> bool {
        let bound = Bound::AtMost(1);
        let table = Table { at, base, bound };
        self.entry(&table, 0).is_some_and(|to| (self.accept)(to))
    }

    fn entry(&self, table: &Table, index: u64) -> Option<u64> {
        match table.base {
            Some(base) => {
                let at = table.at.checked_add(index.checked_mul(4)?)?;
                let distance = self.image.distance(at)?;
                Some(base.wrapping_add_signed(i64::from(distance)))
            }
            None => {
                let at = table.at.checked_add(index.checked_mul(8)?)?;
                self.image.address(at).map(|address| address.0)
            }
        }
    }

    fn read(&self, tables: impl Iterator<Item = Table>) -> Option<Targets> {
        let mut all = Listed::default();
        for table in tables {
            if let Some(found) = self.read_one(&table) {
                all.targets.extend(found.targets);
                all.tables.extend(found.tables);
                all.may_go_on |= found.may_go_on;
            }
        }
        all.targets.sort_unstable();
        all.targets.dedup();
        (!all.targets.is_empty()).then_some(Targets::Known(all))
    }

    /// The targets in a table: as many as its bound says, or as long as they make sense.
    fn read_one(&self, table: &Table) -> Option<Listed> {
        let (Bound::Exactly(most) | Bound::AtMost(most)) = table.bound;
        let mut targets = Vec::new();
        let mut count = 0;
        while count < most {
            match self.entry(table, count) {
                Some(to) if (self.accept)(to) => targets.push(to),
                // A case that cannot happen.
                Some(to) if to == self.end => {}
                _ if table.bound == Bound::Exactly(most) => return None,
                _ => break,
            }
            count += 1;
        }
        let width = if table.base.is_some() { 4 } else { 8 };
        let place = table.at..table.at.saturating_add(count * width);
        Some(Listed {
            targets,
            tables: vec![place],
            may_go_on: count < most || most == MOST,
        })
    }

    /// The address in a register, if the code right before sets it.
    fn value(&self, before: usize, register: Register) -> Option<u64> {
        let (index, made) = self.definition(before, register)?;
        match made.mnemonic() {
            Mnemonic::Mov if made.op1_kind() == OpKind::Register => {
                self.value(index, made.op1_register())
            }
            _ => loaded_address(made),
        }
    }

    /// The instruction that gave a register its value, if control comes straight from there.
    fn definition(&self, before: usize, register: Register) -> Option<(usize, &Instruction)> {
        let wanted = register.full_register();
        let mut facts = InstructionInfoFactory::new();
        for index in (before.saturating_sub(NEAR)..before).rev() {
            let instruction = self.code.get(index)?;
            let flow = flow(instruction);
            if !flow.goes_on() {
                return None;
            }
            let is_call = matches!(flow, Flow::Call(_) | Flow::IndirectCall(_));
            if is_call && !is_kept_by_calls(wanted) {
                return None;
            }
            let used = facts.info(instruction).used_registers();
            let writes = used.iter().any(|used| {
                used.register().full_register() == wanted
                    && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
            });
            if writes {
                return Some((index, instruction));
            }
        }
        None
    }

    /// How many entries the code allows for: from `cmp $N, index; ja default` or `and $N, index`.
    fn bound(&self, before: usize, index: Register) -> Bound {
        self.known_bound(before, index)
            .unwrap_or(Bound::AtMost(MOST))
    }

    fn known_bound(&self, before: usize, index: Register) -> Option<Bound> {
        let mut facts = InstructionInfoFactory::new();
        let mut name = index.full_register();
        let mut branch = None;
        for at in (before.saturating_sub(NEAR)..before).rev() {
            let it = self.code.get(at)?;
            let control = flow(it);
            match control {
                Flow::Branch(_) => branch = Some(it.mnemonic()),
                _ if control.ends_block() => return None,
                _ => {}
            }
            let is_about_it =
                it.op0_kind() == OpKind::Register && it.op0_register().full_register() == name;
            let limit = || constant(it).filter(|limit| *limit < MOST);
            match it.mnemonic() {
                Mnemonic::Cmp if is_about_it => {
                    return match branch? {
                        Mnemonic::Ja => Some(Bound::Exactly(limit()? + 1)),
                        Mnemonic::Jae => Some(Bound::Exactly(limit()?)),
                        _ => None,
                    };
                }
                // Some of the bits that are left may never be set together.
                Mnemonic::And if is_about_it && it.op0_register().size() >= 4 => {
                    return Some(Bound::AtMost(limit()? + 1));
                }
                _ => {}
            }
            let used = facts.info(it).used_registers();
            let writes = used.iter().any(|used| {
                used.register().full_register() == name
                    && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
            });
            if writes {
                let copies = matches!(it.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx);
                if !copies || it.op1_kind() != OpKind::Register {
                    return None;
                }
                name = it.op1_register().full_register();
            }
        }
        None
    }
}

fn constant(compare: &Instruction) -> Option<u64> {
    match compare.op1_kind() {
        OpKind::Memory | OpKind::Register => None,
        _ => Some(compare.immediate(1)),
    }
}

/// `lea table(%rip), register`, or `mov $table, register`.
fn loaded_address(instruction: &Instruction) -> Option<u64> {
    match flow(instruction) {
        Flow::Mentions(at) | Flow::Number(at) if instruction.op0_kind() == OpKind::Register => {
            Some(at)
        }
        _ => None,
    }
}

/// Registers that a call leaves alone (System V ABI, 3.2.1).
fn is_kept_by_calls(register: Register) -> bool {
    use Register::{R12, R13, R14, R15, RBP, RBX, RSP};
    [RBX, RBP, RSP, R12, R13, R14, R15].contains(&register)
}
