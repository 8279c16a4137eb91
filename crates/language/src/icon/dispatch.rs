//! Where Icon's interpreter fetches the instructions of a program.
//!
//! Its main function reads the number of each instruction, compares it with the highest, adds what a table says
//! for it to the table's address, and jumps there. All of that is one run of code.

use std::collections::{BTreeSet, HashMap};

use headcount_model::LinkAddr;
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

use crate::native::code::{CodeOf, Holder, is_kept_by_calls, is_write};
use crate::program::Program;
use crate::{Address, Fetch};

/// A jump that goes by an instruction has read it so recently.
const FARTHEST_BACK: usize = 24;

/// There are at least so many kinds of instructions.
const LEAST_KINDS: u64 = 99;

/// A jump by what was read from memory, through a table of distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dispatch {
    jump: u64,
    /// Where the number of the instruction is read.
    read: u64,
    /// By which register, and how far from that.
    from: (Register, i64),
    /// Which register has the table's address.
    base: Register,
    /// How many items the table has.
    items: u64,
}

/// Where instructions are fetched; or why that is not known.
pub(super) fn fetches(program: &Program<'_>, start: u64) -> Result<Vec<Fetch>, String> {
    let mut code = CodeOf::new(program);
    code.leaders(&BTreeSet::from([start]))?;
    let before = code.before();
    let first = only(dispatches(&code, &before))?;
    let table = table_at(&code, first.base)?;
    let handlers = items(program, table, first.items).ok_or("its table is not one of code")?;
    code.leaders(&handlers.iter().copied().chain([start]).collect())?;
    let before = code.before();
    if only(dispatches(&code, &before))? != first {
        return Err("it jumps by instructions in several places".to_owned());
    }
    if table_at(&code, first.base)? != table {
        return Err("it has several tables".to_owned());
    }
    let free = code.free_if(&handlers, &|at| at == first.jump);
    let (register, by) = first.from;
    Ok(vec![Fetch {
        at: LinkAddr(first.read),
        address: Address::Register(register.number() as u8, by),
        free: free.get(&first.read).copied().unwrap_or(0),
    }])
}

/// The one that there is to be.
fn only(found: Vec<Dispatch>) -> Result<Dispatch, String> {
    match found[..] {
        [only] => Ok(only),
        [] => Err("nothing jumps by what its instructions say".to_owned()),
        _ => Err("it jumps by instructions in several places".to_owned()),
    }
}

fn dispatches(code: &CodeOf<'_, '_>, before: &HashMap<u64, Vec<u64>>) -> Vec<Dispatch> {
    let leaves = |at: &&u64| code.known(**at).is_some_and(|it| it.leaves);
    let jumps = code.steps.keys().filter(leaves);
    let found = jumps.filter_map(|jump| dispatch(code, before, *jump));
    found.filter(|it| it.items >= LEAST_KINDS).collect()
}

/// What a jump goes by, if it is such a one.
fn dispatch(code: &CodeOf<'_, '_>, before: &HashMap<u64, Vec<u64>>, jump: u64) -> Option<Dispatch> {
    let mut info = InstructionInfoFactory::new();
    let it = code.decode(jump)?;
    if it.op0_kind() != OpKind::Register {
        return None;
    }
    // Backwards: the sum, the item of the table, and the number, each in a register.
    let mut wanted = it.op0_register().full_register();
    let (mut base, mut is_item_known, mut items) = (None, false, None);
    let mut at = jump;
    for _ in 0..FARTHEST_BACK {
        let [only] = before.get(&at)?[..] else {
            return None;
        };
        at = only;
        let it = code.decode(at)?;
        if code.known(at).is_none_or(|it| it.calls) {
            return None;
        }
        if is_item_known && items.is_none() && is_of(&it, wanted) && it.mnemonic() == Mnemonic::Cmp
        {
            items = it.try_immediate(1).ok().map(|it| it + 1);
        }
        let mut used = info.info(&it).used_registers().iter();
        if !used.any(|it| it.register().full_register() == wanted && is_write(it.access())) {
            continue;
        }
        match (base, is_item_known) {
            (None, _) => {
                base = Some(added(&it)?);
            }
            (Some(base), false) => {
                wanted = index(&it, base)?;
                is_item_known = true;
            }
            (Some(base), true) => match (it.op1_kind(), it.code()) {
                (OpKind::Register, Code::Mov_r32_rm32 | Code::Mov_rm32_r32) => {
                    wanted = it.op1_register().full_register();
                }
                (OpKind::Memory, Code::Mov_r32_rm32 | Code::Movsxd_r64_rm32)
                    if it.memory_base().is_gpr64() && it.memory_index() == Register::None =>
                {
                    let from = it.memory_displacement64().cast_signed();
                    return Some(Dispatch {
                        jump,
                        read: at,
                        from: (it.memory_base(), from),
                        base,
                        items: items?,
                    });
                }
                _ => return None,
            },
        }
    }
    None
}

fn is_of(it: &Instruction, register: Register) -> bool {
    it.op0_kind() == OpKind::Register && it.op0_register().full_register() == register
}

/// What a register is added to.
fn added(it: &Instruction) -> Option<Register> {
    let adds = matches!(it.code(), Code::Add_r64_rm64 | Code::Add_rm64_r64);
    (adds && it.op1_kind() == OpKind::Register).then(|| it.op1_register())
}

/// The register that says which item of a table of distances is read.
fn index(it: &Instruction, base: Register) -> Option<Register> {
    let reads = it.code() == Code::Movsxd_r64_rm32
        && it.op1_kind() == OpKind::Memory
        && it.memory_base() == base
        && it.memory_index_scale() == 4
        && it.memory_displacement64() == 0;
    reads.then(|| it.memory_index().full_register())
}

/// The table's address: all that is put into the register for it. (What a caller had in it is put back before
/// returning.)
fn table_at(code: &CodeOf<'_, '_>, base: Register) -> Result<u64, String> {
    let holder = Holder::Register(base.number());
    let mut found = None;
    for (at, step) in &code.steps {
        let overwrites = step
            .as_ref()
            .is_some_and(|it| it.overwrites.contains(&holder));
        let it = code.decode(*at).filter(|_| overwrites);
        let Some(it) = it.filter(|it| it.mnemonic() != Mnemonic::Pop) else {
            continue;
        };
        let address = address_taken(&it);
        if address.is_none() || found.is_some() && found != address {
            return Err(format!(
                "the address of its table is overwritten at {at:#x}"
            ));
        }
        found = address;
    }
    let found = found.filter(|_| is_kept_by_calls(base.number()));
    found.ok_or_else(|| "it is not known where its table is".to_owned())
}

fn address_taken(it: &Instruction) -> Option<u64> {
    let takes = it.code() == Code::Lea_r64_m && it.is_ip_rel_memory_operand();
    takes.then(|| it.ip_rel_memory_address())
}

/// Where the items of a table lead.
fn items(program: &Program<'_>, table: u64, count: u64) -> Option<Vec<u64>> {
    let bytes = program.bytes(table)?;
    let (distances, _) = bytes.as_chunks::<4>();
    let distances = distances.get(..usize::try_from(count).ok()?)?;
    let items = distances.iter().map(|it| {
        let distance = i32::from_le_bytes(*it);
        table.wrapping_add_signed(distance.into())
    });
    let items: Vec<u64> = items.collect();
    items.iter().all(|it| program.is_code(*it)).then_some(items)
}
