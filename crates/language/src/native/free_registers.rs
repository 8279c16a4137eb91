//! The registers that a probe may overwrite, wherever the interpreter's code is.

use std::collections::{BTreeMap, HashMap, HashSet};

use iced_x86::{Code, Instruction, InstructionInfoFactory, OpKind, Register, UsedRegister};

use super::code::{CodeOf, Step, is_write};
use super::liveness::{self, Node, Registers};

/// So many instructions before a jump are looked at for where it goes.
const FARTHEST_BACK: usize = 64;

impl CodeOf<'_, '_> {
    /// The registers that nobody looks at any more before the instructions that were reached. The table says
    /// where the code of each instruction is, and is used wherever a jump goes through it.
    pub(crate) fn free(
        &mut self,
        table_at: u64,
        table: &[u64],
    ) -> Result<HashMap<u64, Registers>, String> {
        // What is traced is another matter only as to what it fetches.
        self.leaders(&table.iter().copied().collect())?;
        let before = self.before();
        let is_dispatch = |at| self.goes_through(table_at, at, &before);
        Ok(self.free_if(table, &is_dispatch))
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
    fn goes_through(&self, table_at: u64, jump: u64, before: &HashMap<u64, Vec<u64>>) -> bool {
        let Some(instruction) = self.decode(jump) else {
            return false;
        };
        match instruction.op0_kind() {
            OpKind::Register => {
                self.comes_from(jump, instruction.op0_register(), before, &|at, it| {
                    it.code() == Code::Mov_r64_rm64 && self.reads_table(table_at, at, it, before)
                })
            }
            _ => self.reads_table(table_at, jump, &instruction, before),
        }
    }

    /// Is the operand in memory an item of the table?
    fn reads_table(
        &self,
        table_at: u64,
        at: u64,
        instruction: &Instruction,
        before: &HashMap<u64, Vec<u64>>,
    ) -> bool {
        let is_item =
            instruction.memory_index() != Register::None && instruction.memory_index_scale() == 8;
        let by = instruction.memory_displacement64();
        is_item
            && match instruction.memory_base() {
                Register::None => by == table_at,
                base => {
                    by == 0
                        && self.comes_from(at, base, before, &|_, it| {
                            it.code() == Code::Lea_r64_m
                                && it.is_ip_rel_memory_operand()
                                && it.ip_rel_memory_address() == table_at
                        })
                }
            }
    }

    /// Is what wrote a register last before an instruction such a one, wherever control comes from?
    fn comes_from(
        &self,
        at: u64,
        register: Register,
        before: &HashMap<u64, Vec<u64>>,
        is_it: &dyn Fn(u64, &Instruction) -> bool,
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
                } else if is_call || !is_it(*at, &it) {
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
