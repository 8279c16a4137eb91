//! Call stacks, each once.

use std::collections::HashMap;

use headcount_model::Stack;

/// Code in a module, or anywhere else in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code {
    pub module: Option<u32>,
    pub address: u64,
}

/// Sites and stacks that were seen.
#[derive(Debug, Default)]
pub struct Stacks {
    pub sites: Vec<Code>,
    site_numbers: HashMap<Code, u32>,
    pub stacks: Vec<Stack>,
    stack_numbers: HashMap<Stack, u32>,
}

impl Stacks {
    /// The number of a stack, given by its sites, innermost first. `is_cut` says that the last of them
    /// has callers that are not known.
    pub fn number(&mut self, sites: &[Code], is_cut: bool) -> Option<u32> {
        let mut caller = None;
        for (depth, code) in sites.iter().rev().enumerate() {
            let site = number(&mut self.sites, &mut self.site_numbers, *code);
            let stack = Stack {
                caller,
                site,
                is_cut: is_cut && depth == 0,
            };
            caller = Some(number(&mut self.stacks, &mut self.stack_numbers, stack));
        }
        caller
    }
}

fn number<T: Copy + Eq + std::hash::Hash>(
    all: &mut Vec<T>,
    numbers: &mut HashMap<T, u32>,
    new: T,
) -> u32 {
    *numbers.entry(new).or_insert_with(|| {
        all.push(new);
        all.len() as u32 - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(address: u64) -> Code {
        Code {
            module: None,
            address,
        }
    }

    #[test]
    fn stacks_with_the_same_callers_share_them() {
        let mut stacks = Stacks::default();
        let one = stacks.number(&[code(3), code(2), code(1)], false).unwrap();
        let other = stacks.number(&[code(4), code(2), code(1)], false).unwrap();
        assert_ne!(one, other);
        assert_eq!(stacks.stacks.len(), 4);
        let caller = |it: u32| stacks.stacks[it as usize].caller;
        assert_eq!(caller(one), caller(other));
    }

    #[test]
    fn a_stack_that_was_cut_is_another() {
        let mut stacks = Stacks::default();
        let whole = stacks.number(&[code(2), code(1)], false);
        let cut = stacks.number(&[code(2), code(1)], true);
        assert_ne!(whole, cut);
        assert_eq!(stacks.number(&[], false), None);
    }
}
