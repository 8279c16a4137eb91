//! The registers that a probe may overwrite, wherever the interpreter's code is.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iced_x86::{Code, Instruction, InstructionInfoFactory, OpKind, Register, UsedRegister};

use super::code::{CodeOf, Holder, Pc, State, Step, is_write, slot};
use super::liveness::{self, Node, Registers};

/// So many instructions before a jump are looked at for where it goes.
const FARTHEST_BACK: usize = 64;

/// So many instructions behind a load are looked at for what it is used for.
const FARTHEST_BEHIND: usize = 8;

/// Where the address of a table is.
struct Kept {
    table_at: u64,
    /// In which places, before each instruction that may use it.
    before: HashMap<u64, State>,
}

impl Kept {
    fn is_in(&self, at: u64, holder: Holder) -> bool {
        let state = self.before.get(&at);
        state.and_then(|it| it.get(&holder)) == Some(&Pc::Entry(0))
    }

    /// Is the operand in memory an item of the table?
    fn is_read_by(&self, instruction: &Instruction) -> bool {
        let by = instruction.memory_displacement64();
        is_item(instruction)
            && match instruction.memory_base() {
                Register::None => by == self.table_at,
                base => by == 0 && self.is_in(instruction.ip(), Holder::Register(base.number())),
            }
    }
}

/// Is the operand in memory an item of a table of addresses?
fn is_item(instruction: &Instruction) -> bool {
    instruction.memory_index() != Register::None && instruction.memory_index_scale() == 8
}

impl CodeOf<'_, '_> {
    /// The registers that nobody looks at any more before the instructions that were reached, in the function that
    /// begins at `main`. The table says where the code of each instruction is, and is used wherever a jump goes
    /// through it.
    pub(crate) fn free(
        &mut self,
        main: u64,
        table_at: u64,
        table: &[u64],
    ) -> Result<HashMap<u64, Registers>, String> {
        // What is traced is another matter only as to what it fetches.
        let begins: BTreeSet<u64> = table.iter().copied().collect();
        let leaders = self.leaders(&begins.iter().copied().chain([main]).collect())?;
        let before = self.before();
        // Some compilers keep the address of the table in the stack.
        let dispatches = |slot: Option<i64>| {
            let kept = self.kept(table_at, (main, &begins), &leaders, slot);
            let jumps = self.steps.iter();
            let jumps = jumps.filter(|(_, step)| step.as_ref().is_some_and(|it| it.leaves));
            let through = jumps.filter(|(at, _)| self.goes_through(&kept, **at, &before));
            let through: HashSet<u64> = through.map(|it| *it.0).collect();
            // What is taken for granted at the beginnings must be so wherever control comes from.
            let is_kept = |at: &u64| slot.is_none_or(|slot| kept.is_in(*at, Holder::Stack(slot)));
            through.iter().all(is_kept).then_some(through)
        };
        let slots = [None, self.likely_slot()];
        let found = slots.into_iter().filter_map(dispatches);
        let found = found.max_by_key(HashSet::len).unwrap_or_default();
        Ok(self.free_if(table, &|at| found.contains(&at)))
    }

    /// Where the address of the table is, before each instruction, if it is in a word of the stack wherever control
    /// comes to the code of an instruction of the program.
    fn kept(
        &self,
        table_at: u64,
        (main, begins): (u64, &BTreeSet<u64>),
        leaders: &HashSet<u64>,
        slot: Option<i64>,
    ) -> Kept {
        let known = slot.map(|it| (Holder::Stack(it), Pc::Entry(0)));
        let start: State = known.into_iter().collect();
        let mut todo: Vec<(u64, State)> = begins.iter().map(|it| (*it, start.clone())).collect();
        todo.push((main, State::new()));
        let mut before = HashMap::new();
        for (mut at, mut state) in self.states(todo, leaders, Some(table_at)) {
            while let Some(step) = self.known(at) {
                if step.leaves || self.decode(at).is_some_and(|it| is_item(&it)) {
                    before.insert(at, state.clone());
                }
                step.apply(&mut state);
                step.make(Some(table_at), &mut state);
                let mut next = step.next();
                match next.next() {
                    Some(only) if next.next().is_none() && !leaders.contains(&only) => at = only,
                    _ => break,
                }
            }
        }
        Kept { table_at, before }
    }

    /// The word of the stack that is most often loaded just before it is used as the address of a table.
    fn likely_slot(&self) -> Option<i64> {
        let mut votes: BTreeMap<i64, usize> = BTreeMap::new();
        for at in self.steps.keys() {
            let Some(load) = self.decode(*at) else {
                continue;
            };
            let from = slot(&load).filter(|_| load.code() == Code::Mov_r64_rm64);
            let Some(from) = from else { continue };
            let behind = std::iter::successors(Some(load), |it| self.decode(it.next_ip()));
            let mut near = behind.skip(1).take(FARTHEST_BEHIND);
            if near.any(|it| is_item(&it) && it.memory_base() == load.op0_register()) {
                *votes.entry(from).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|it| it.1).map(|it| it.0)
    }

    /// What control may come from, for each instruction that was reached.
    pub(crate) fn before(&self) -> HashMap<u64, Vec<u64>> {
        let mut before: HashMap<u64, Vec<u64>> = HashMap::new();
        for (at, step) in &self.steps {
            for next in step.iter().flat_map(Step::next) {
                before.entry(next).or_default().push(*at);
            }
        }
        before
    }

    /// The registers that nobody looks at any more before the instructions that were reached, if these jumps
    /// go where the table says.
    pub(crate) fn free_if(
        &self,
        table: &[u64],
        is_dispatch: &dyn Fn(u64) -> bool,
    ) -> HashMap<u64, Registers> {
        let known = self.steps.iter();
        let known = known.filter_map(|(at, step)| Some((*at, step.as_ref()?)));
        let node = |(at, step): (u64, &Step)| {
            let node = Node {
                effect: step.effect,
                next: step.next().collect(),
                is_dispatch: step.leaves && is_dispatch(at),
            };
            (at, node)
        };
        let code: BTreeMap<u64, Node> = known.map(node).collect();
        let looked_at = liveness::looked_at(&code, table);
        let free = looked_at
            .into_iter()
            .map(|(at, it)| (at, liveness::others(it)));
        free.collect()
    }

    /// Does a jump go where a table says, wherever control comes from?
    fn goes_through(&self, kept: &Kept, jump: u64, before: &HashMap<u64, Vec<u64>>) -> bool {
        let Some(instruction) = self.decode(jump) else {
            return false;
        };
        match instruction.op0_kind() {
            OpKind::Register => self.comes_from(jump, instruction.op0_register(), before, &|it| {
                it.code() == Code::Mov_r64_rm64 && kept.is_read_by(it)
            }),
            _ => kept.is_read_by(&instruction),
        }
    }

    /// Is what wrote a register last before an instruction such a one, wherever control comes from?
    fn comes_from(
        &self,
        at: u64,
        register: Register,
        before: &HashMap<u64, Vec<u64>>,
        is_it: &dyn Fn(&Instruction) -> bool,
    ) -> bool {
        let mut info = InstructionInfoFactory::new();
        let mut seen = HashSet::from([at]);
        let mut todo = vec![at];
        while let Some(at) = todo.pop() {
            let Some(before) = before.get(&at) else {
                return false;
            };
            for at in before {
                let Some(it) = self.decode(*at) else {
                    return false;
                };
                let is_call = self.known(*at).is_none_or(|it| it.calls);
                let mut used = info.info(&it).used_registers().iter();
                let writes = |it: &UsedRegister| {
                    it.register().full_register() == register && is_write(it.access())
                };
                if !is_call && !used.any(writes) {
                    if seen.insert(*at) {
                        todo.push(*at);
                    }
                } else if is_call || !is_it(&it) {
                    return false;
                }
            }
            if seen.len() > FARTHEST_BACK {
                return false;
            }
        }
        true
    }
}
