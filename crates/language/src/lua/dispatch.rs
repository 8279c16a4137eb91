//! Where Lua 5.4 fetches the instructions of a program.
//!
//! Its main function reads each instruction, a word of four bytes, and jumps to the piece of code that does what
//! the word's lowest seven bits say, by way of a table. Wherever such a jump is, the path to it tells where
//! the word was read, and which register, or which word of the frame, holds that address by then. Compilers
//! differ in how many jumps they make of the one in the source, and in what is where.
//!
//! Some instructions are done without such a jump, by the one before: a jump behind a test, the call and the
//! loop of a `for` with an iterator. How often that was follows from the others ([`super::flow`]).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;

use headcount_model::LinkAddr;
use iced_x86::{Code, FlowControl, Instruction, OpKind, Register};

use super::table::{Candidate, candidates};
use crate::native::code::{CodeOf, is_kept_by_calls, is_write};
use crate::native::path::{self, Place, State};
use crate::program::Program;
use crate::{Address, Fetch};

/// The bits of an instruction that say what it does.
const OPCODE: u32 = 0x7f;

/// A jump that goes by an instruction has read it so recently.
const FARTHEST_BACK: usize = 64;

/// What else may be of interest before that.
const FURTHER_BACK: usize = 12;

/// Where instructions are fetched, and how far behind an instruction the address is that it is counted by; or why
/// that is not known.
pub(super) fn fetches(program: &Program<'_>) -> Result<(Vec<Fetch>, u64), String> {
    let mut why = "it has no table of its instructions' code".to_owned();
    let mut found = Vec::new();
    for table in candidates(program) {
        match Dispatches::of(program, &table).and_then(|mut it| it.fetches(&table)) {
            Ok(fetches) => found.push(in_place(fetches)),
            Err(because) => why = because,
        }
    }
    match found.len() {
        0 => Err(why),
        1 => Ok(found.remove(0)),
        _ => Err("it has two tables of its instructions' code".to_owned()),
    }
}

/// Where the same number must be added to a register everywhere to get the address, addresses are told by the
/// registers as they are: a probe has less work, and needs fewer registers.
fn in_place(mut fetches: Vec<Fetch>) -> (Vec<Fetch>, u64) {
    let by = |it: &Fetch| match it.address {
        Address::Register(_, by) => Some(by),
        Address::Word(..) | Address::Unless(..) => None,
    };
    let Some(all) = fetches.first().and_then(by) else {
        return (fetches, 0);
    };
    if fetches.iter().any(|it| by(it) != Some(all)) {
        return (fetches, 0);
    }
    for fetch in &mut fetches {
        if let Address::Register(_, by) = &mut fetch.address {
            *by = 0;
        }
    }
    (fetches, all.wrapping_neg().cast_unsigned())
}

/// The code that jumps through a table.
struct Dispatches<'p, 'a> {
    code: CodeOf<'p, 'a>,
    before: HashMap<u64, Vec<u64>>,
    /// All indirect jumps.
    jumps: Vec<u64>,
    /// The main function, but for what was moved out of the way.
    main: RangeInclusive<u64>,
    table: path::Table,
    /// The registers that hold the table's address before an instruction, as bits by number.
    held: HashMap<u64, u16>,
}

impl<'p, 'a> Dispatches<'p, 'a> {
    fn of(program: &'p Program<'a>, table: &Candidate) -> Result<Self, String> {
        let mut code = CodeOf::new(program);
        let start = program.function_start(table.handlers[0]);
        // What control does not come to from there is dead: compilers that do not optimise leave such code.
        let start = start.ok_or("nothing says where its main function begins")?;
        let begins: BTreeSet<u64> = table.handlers.iter().chain([&start]).copied().collect();
        code.leaders(&begins)?;
        let (Some(least), Some(most)) = (begins.first().copied(), begins.last().copied()) else {
            return Err("it has no instructions".to_owned());
        };
        let known = code.steps.iter();
        let leaves = known.filter(|(_, step)| step.as_ref().is_some_and(|it| it.leaves));
        let mut jumps: Vec<u64> = leaves.map(|it| *it.0).collect();
        jumps.sort_unstable();
        let before = code.before();
        let mut all = Self {
            code,
            before,
            jumps,
            main: least..=most,
            table: path::Table {
                at: table.at,
                bits: OPCODE,
                has_frame: false,
            },
            held: HashMap::new(),
        };
        all.table.has_frame = all.has_frame();
        all.held = all.held(table, start);
        Ok(all)
    }

    /// Does `rbp` say where the frame is?
    fn has_frame(&self) -> bool {
        let leading = self.leading_to_jumps();
        let mut code = leading.iter().filter_map(|it| self.code.decode(*it));
        code.any(|it| is_frame_made(&it))
    }

    /// Which registers hold the table's address before each instruction, wherever control came from.
    fn held(&mut self, table: &Candidate, start: u64) -> HashMap<u64, u16> {
        let leading: BTreeSet<u64> = self.leading_to_jumps().into_iter().collect();
        let mut effects: HashMap<u64, (u16, u16)> = HashMap::new();
        for at in &leading {
            let it = self.code.decode(*at);
            let written = it.map_or(u16::MAX, |it| self.written(&it));
            let made = it
                .filter(|_| table.users.contains(at))
                .map_or(0, |it| takes(&it));
            effects.insert(*at, (!written, made));
        }
        let mut held: HashMap<u64, u16> = leading.iter().map(|it| (*it, u16::MAX)).collect();
        held.insert(start, 0);
        let behind = |at: &u64, held: &HashMap<u64, u16>| {
            let (kept, made) = effects.get(at).copied().unwrap_or_default();
            held.get(at).copied().unwrap_or(0) & kept | made
        };
        let main: Vec<u64> = self
            .jumps
            .iter()
            .filter(|it| self.main.contains(it))
            .copied()
            .collect();
        loop {
            let mut has_changed = false;
            let by_table = main
                .iter()
                .fold(u16::MAX, |all, it| all & behind(it, &held));
            for at in leading.iter().filter(|it| **it != start) {
                let before = self.before.get(at).into_iter().flatten();
                let mut now = before.fold(u16::MAX, |all, it| all & behind(it, &held));
                if table.handlers.contains(at) {
                    now &= by_table;
                }
                has_changed |= held.insert(*at, now) != Some(now);
            }
            if !has_changed {
                return held;
            }
        }
    }

    /// The registers that an instruction writes to, as bits by number.
    fn written(&mut self, it: &Instruction) -> u16 {
        let is_call = matches!(
            it.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        );
        let scratch = (0..16).filter(|it| is_call && !is_kept_by_calls(*it));
        let used = self.code.info.info(it).used_registers().iter();
        let written = used.filter(|it| is_write(it.access()) && it.register().is_gpr());
        let written = written.map(|it| it.register().full_register().number());
        written.chain(scratch).fold(0, |all, it| all | 1 << it)
    }

    /// The instructions from which control comes to the main function's jumps.
    fn leading_to_jumps(&self) -> HashSet<u64> {
        let mut seen: HashSet<u64> = HashSet::new();
        let mut todo: Vec<u64> = self.jumps.clone();
        todo.retain(|it| self.main.contains(it));
        while let Some(at) = todo.pop() {
            if seen.insert(at) {
                todo.extend(self.before.get(&at).into_iter().flatten());
            }
        }
        seen
    }

    fn fetches(&mut self, table: &Candidate) -> Result<Vec<Fetch>, String> {
        let mut found: BTreeMap<u64, BTreeSet<(Place, i64)>> = BTreeMap::new();
        for at in self.jumps.clone() {
            match self.holders_at(at).filter(|it| !it.is_empty()) {
                Some(holders) => {
                    found.insert(at, holders);
                }
                None if self.main.contains(&at) => {
                    return Err(format!("it is not known what the jump at {at:#x} goes by"));
                }
                // Of a function behind a call that does not return.
                None => {}
            }
        }
        if found.is_empty() {
            return Err("nothing jumps through the table of its instructions' code".to_owned());
        }
        let is_dispatch = |at| found.contains_key(&at);
        let free = self.code.free_if(&table.handlers, &is_dispatch);
        let common = found.values().cloned().reduce(|one, other| &one & &other);
        let common = common.and_then(|it| it.first().copied());
        let fetch = |(at, holders): (&u64, &BTreeSet<(Place, i64)>)| {
            // Registers come first: that is less work for a probe.
            let (place, by) = common.or_else(|| holders.first().copied())?;
            Some(Fetch {
                at: LinkAddr(*at),
                address: address(place, by.wrapping_neg()),
                free: free.get(at).copied().unwrap_or(0),
            })
        };
        Ok(found.iter().filter_map(fetch).collect())
    }

    /// What holds the address of the instruction that a jump goes by, whichever way control came, and how much
    /// more than that.
    fn holders_at(&mut self, jump: u64) -> Option<BTreeSet<(Place, i64)>> {
        let mut holders: Option<BTreeSet<(Place, i64)>> = None;
        let mut todo = vec![vec![jump]];
        while let Some(path) = todo.pop() {
            if let Some(found) = self.holders(&path).filter(|it| !it.is_empty()) {
                holders = Some(match holders {
                    None => found,
                    Some(known) => known.intersection(&found).copied().collect(),
                });
                continue;
            }
            let before = self.before.get(path.last()?)?;
            if path.len() > FARTHEST_BACK || before.iter().any(|it| path.contains(it)) {
                return None;
            }
            for at in before {
                todo.push(path.iter().copied().chain([*at]).collect());
            }
        }
        holders
    }

    /// What holds the address of the word that a jump goes by, if it was read on the path there, of which the
    /// last instructions come first.
    fn holders(&mut self, path: &[u64]) -> Option<BTreeSet<(Place, i64)>> {
        self.word(path)?;
        let mut path = path.to_vec();
        // It may have been counted on before it was read.
        for _ in 0..FURTHER_BACK {
            let before = path.last().and_then(|it| self.before.get(it));
            let Some([only]) = before.map(Vec::as_slice) else {
                break;
            };
            let is_call = self.code.known(*only).is_none_or(|it| it.calls);
            if is_call || path.contains(only) {
                break;
            }
            path.push(*only);
        }
        self.word(&path)
    }

    fn word(&mut self, path: &[u64]) -> Option<BTreeSet<(Place, i64)>> {
        let code: Option<Vec<Instruction>> =
            path.iter().rev().map(|it| self.code.decode(*it)).collect();
        let code = code?;
        let (jump, code) = code.split_last()?;
        let held = path.last().and_then(|it| self.held.get(it));
        let mut state = State::new(&self.table, held.copied().unwrap_or(0));
        state.run(code, &mut self.code.info);
        let word = state.word_of(jump)?;
        let holders = state.holders(word).into_iter();
        let is_near = |by: i64| i32::try_from(by).is_ok();
        let usable = holders.filter(|(place, by)| match place {
            Place::Register(_) => is_near(*by),
            Place::Memory(_, at) => is_near(*by) && is_near(*at),
        });
        Some(usable.collect())
    }
}

/// So far from what a place holds.
fn address(place: Place, by: i64) -> Address {
    match place {
        Place::Register(number) => Address::Register(number as u8, by),
        Place::Memory(base, at) => Address::Word(base as u8, at, by),
    }
}

/// Does `rbp` say from now on where the frame is?
fn is_frame_made(it: &Instruction) -> bool {
    let is_move = matches!(it.code(), Code::Mov_r64_rm64 | Code::Mov_rm64_r64);
    is_move && (it.op0_register(), it.op1_register()) == (Register::RBP, Register::RSP)
}

/// The register that takes an address that an instruction speaks of, as a bit.
fn takes(it: &Instruction) -> u16 {
    let takes = match it.code() {
        Code::Lea_r64_m => it.is_ip_rel_memory_operand(),
        Code::Mov_r32_imm32 | Code::Mov_rm64_imm32 | Code::Mov_r64_imm64 => {
            it.op0_kind() == OpKind::Register
        }
        _ => false,
    };
    match takes {
        true => 1 << it.op0_register().full_register().number(),
        false => 0,
    }
}
