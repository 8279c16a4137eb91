//! Where CPython fetches the instructions of a program.
//!
//! Its main function has a piece of code for each instruction, and a table of where these are. All of
//! them expect the address of the instruction in one register, and leave by a jump through the table. So the
//! address is in that register at every such jump; and a jump goes on to another instruction unless the
//! register is what it was when the piece was entered. Then the same instruction is done in another way:
//! it was specialised just now, or what it was specialised for is not there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use headcount_model::LinkAddr;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, OpKind, Register};

use super::table::opcode_table;
use super::version::{Fused, Second, Version};
use super::{MAIN, PREVIOUS_INSTRUCTION};
use crate::native::code::{CodeOf, Pc, Reach};
use crate::program::Program;
use crate::{Address, Fetch};

/// Where instructions are fetched; or why that is not known.
pub(super) fn fetches(program: &Program<'_>, version: &Version) -> Result<Vec<Fetch>, String> {
    let (table_at, table) =
        opcode_table(program, version).ok_or("it has no table of its instructions' code")?;
    let of_instructions = of_instructions(version, &table);
    let abi =
        abi(program, &of_instructions).ok_or("its registers are not what they are elsewhere")?;
    let mut all = CodeOf::new(program);
    let handlers: BTreeSet<u64> = of_instructions.iter().copied().collect();
    let reach = all.reach(&handlers, abi.pc)?;
    let mut ways = Vec::new();
    for (at, pc) in all.jumps(&reach) {
        match pc {
            Pc::Entry(0) => {}
            Pc::Entry(_) | Pc::Past | Pc::Other => ways.push((at, abi.behind_pc(0))),
            Pc::Again => ways.push((at, abi.pc_if_another())),
            Pc::Mixed => {
                return Err(format!(
                    "the jump at {at:#x} goes on to the same instruction or to another one"
                ));
            }
        }
    }
    if ways.len() < LEAST_FETCHES {
        return Err("it has fewer places that fetch instructions than any known one".to_owned());
    }
    for number in version.facts.traced {
        let reach = all.reach(&BTreeSet::from([table[usize::from(*number)]]), abi.pc)?;
        let is_same = |it: &(u64, Pc)| it.1 == Pc::Entry(0);
        if !all.jumps(&reach).iter().any(is_same) {
            return Err("it is not known how it goes on with what it traces".to_owned());
        }
    }
    ways.extend(all.fused(version, &table, abi)?);
    ways.sort_by_key(|it| it.0);
    let main = program.symbol(MAIN).ok_or("it has no main function")?;
    let free = all.free(main, table_at, &table)?;
    let fetch = |(at, address)| Fetch {
        at: LinkAddr(at),
        address,
        free: free.get(&at).copied().unwrap_or(0),
    };
    Ok(ways.into_iter().map(fetch).collect())
}

/// The code of what is fetched, and not only stands for that.
fn of_instructions(version: &Version, table: &[u64]) -> Vec<u64> {
    let all = (0..=u8::MAX).zip(table);
    let fetched = all.filter(|(number, _)| !version.facts.again.contains(number));
    fetched.map(|it| *it.1).collect()
}

/// Even a compiler that joins what it can leaves more.
const LEAST_FETCHES: usize = 2;

/// Which registers hold what, whenever control comes to the code of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Abi {
    /// The address of the instruction.
    pc: Register,
    frame: Register,
}

/// What most pieces of code do first: they store the address of their instruction in the frame.
fn abi(program: &Program<'_>, handlers: &[u64]) -> Option<Abi> {
    let mut votes: HashMap<Abi, usize> = HashMap::new();
    for handler in handlers {
        let bytes = program.bytes(*handler)?;
        let bytes = &bytes[..bytes.len().min(64)];
        let decoder = Decoder::with_ip(64, bytes, *handler, DecoderOptions::NONE);
        let first = decoder
            .into_iter()
            .take_while(|it| it.flow_control() == FlowControl::Next);
        let mut stores = first.filter(|it| {
            it.code() == Code::Mov_rm64_r64
                && it.op0_kind() == OpKind::Memory
                && it.memory_index() == Register::None
                && it.memory_displacement64() as i64 == PREVIOUS_INSTRUCTION
        });
        if let Some(store) = stores.next() {
            let abi = Abi {
                pc: store.op1_register(),
                frame: store.memory_base(),
            };
            *votes.entry(abi).or_default() += 1;
        }
    }
    let all: usize = votes.values().sum();
    let (abi, most) = votes.into_iter().max_by_key(|it| it.1)?;
    (most * 10 > all * 9).then_some(abi)
}

impl Abi {
    /// So many bytes behind the instruction whose code is entered.
    fn behind_pc(self, by: i64) -> Address {
        Address::Register(self.pc.number() as u8, by)
    }

    /// The instruction whose code is entered, unless it is the one that the frame says is being done.
    fn pc_if_another(self) -> Address {
        Address::Unless(
            self.pc.number() as u8,
            self.frame.number() as u8,
            PREVIOUS_INSTRUCTION,
        )
    }

    /// So many bytes behind the instruction that the frame says is being done.
    fn behind_previous(self, by: i64) -> Address {
        Address::Word(self.frame.number() as u8, PREVIOUS_INSTRUCTION, by)
    }
}

impl CodeOf<'_, '_> {
    /// Where specialised instructions begin with what they do besides.
    fn fused(
        &mut self,
        version: &Version,
        table: &[u64],
        abi: Abi,
    ) -> Result<Vec<(u64, Address)>, String> {
        let code_of = |it: &Fused| table[usize::from(it.opcode)];
        let own: BTreeSet<u64> = version.facts.fused.iter().map(code_of).collect();
        let others = of_instructions(version, table).into_iter();
        let others = others.filter(|it| !own.contains(it)).collect();
        let others = self.reach(&others, abi.pc)?;
        let mut ways: BTreeMap<u64, Address> = BTreeMap::new();
        for fused in version.facts.fused {
            let begin = code_of(fused);
            let reach = self.reach(&BTreeSet::from([begin]), abi.pc)?;
            let is_alone = table.iter().filter(|it| **it == begin).count() == 1;
            let found = match fused.second {
                Second::Always => Some(vec![(begin, abi.behind_pc(fused.behind))]),
                Second::Read => self.reads(begin, fused, &reach, &others),
                Second::Left { at, may_jump } => {
                    let ways = self.ways_on(at, may_jump, &reach, &others);
                    let key = |pc: Pc| match pc {
                        Pc::Entry(by) => abi.behind_pc(fused.behind - by),
                        _ => abi.behind_previous(fused.behind),
                    };
                    ways.map(|it| {
                        it.into_iter()
                            .map(|at| (at, key(reach.pc[&at].0)))
                            .collect()
                    })
                }
            };
            let unknown = || {
                let name = version.opcode(fused.opcode).name;
                format!(
                    "it is not known where instruction {}, a {name}, is left",
                    fused.opcode
                )
            };
            for (at, key) in found.filter(|_| is_alone).ok_or_else(unknown)? {
                // Whoever shares the end of another must have the same behind it.
                if *ways.entry(at).or_insert(key) != key {
                    return Err(unknown());
                }
            }
        }
        Ok(ways.into_iter().collect())
    }

    /// Where an instruction reads the argument of the one behind it, if it does that once, and not before it
    /// is known that the first one does not fail.
    fn reads(
        &self,
        begin: u64,
        fused: &Fused,
        reach: &Reach,
        others: &Reach,
    ) -> Option<Vec<(u64, Address)>> {
        let mut at_once = HashSet::new();
        let mut at = begin;
        while let Some(step) = self.known(at) {
            at_once.insert(at);
            match step.next {
                [Some(next), None] => at = next,
                _ => break,
            }
        }
        let is_of_second = |it: i64| (fused.behind..fused.behind + 2).contains(&it);
        let mut found = reach.reads.iter().filter(|(at, read)| {
            is_of_second(read.offset) && !others.pc.contains_key(at) && !at_once.contains(at)
        });
        let (at, read) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        let by = read.distance - (read.offset - fused.behind);
        let key = Address::Register(read.base as u8, by);
        Some(vec![(*at, key)])
    }

    /// Instructions that are only run by a specialised one that has done what it does: the last ones
    /// before it leaves, or goes on in code that others have as well.
    fn ways_on(
        &self,
        next: i64,
        may_jump: bool,
        reach: &Reach,
        others: &Reach,
    ) -> Option<Vec<u64>> {
        let is_done = |it: Pc| it == Pc::Entry(next) || may_jump && it == Pc::Other;
        let (mut ahead, mut jumped) = (may_jump, !may_jump);
        let mut ways = Vec::new();
        for (at, (pc, behind)) in &reach.pc {
            let step = self.known(*at)?;
            let mut shared = step.next().filter(|it| others.pc.contains_key(it));
            if others.pc.contains_key(at) || !step.leaves && shared.next().is_none() {
                continue;
            }
            let pc = if step.leaves { *pc } else { *behind };
            // What fails, or was specialised for something else, has done nothing.
            if !is_done(pc) {
                if step.leaves && pc != Pc::Entry(0) {
                    return None;
                }
                continue;
            }
            if step.next().count() > 1 {
                return None;
            }
            ahead |= pc == Pc::Entry(next);
            jumped |= pc == Pc::Other;
            ways.push(*at);
        }
        (ahead && jumped).then_some(ways)
    }
}
