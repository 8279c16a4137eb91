//! The instructions of a function as listings show them: every jump leads to one that is listed.
//!
//! A program that counts itself has probes between its own instructions, which no listing shows. Its
//! jumps lead to the probe in front of a block, or to one that stands aside and jumps on, and its
//! calls to what it does first in a function. Who reads a listing wants to know which of the
//! instructions in it comes next; the edges of the flow graph say it.

use crate::names::Named;
use crate::report::Decode;
use headcount_model::{Block, EdgeKind, LinkAddr, Module};
use std::collections::{HashMap, HashSet};

/// Where the functions of a module really begin, if that is not where they are called.
pub type Beginnings = HashMap<LinkAddr, LinkAddr>;

/// Finds them.
pub fn beginnings(module: &Module) -> Beginnings {
    let functions = module.functions.iter().filter_map(|function| {
        let mut blocks = function.blocks.iter();
        let entry = blocks.find(|it| it.address == function.address)?;
        Some((function.address, beginning(entry)))
    });
    functions.filter(|(address, at)| address != at).collect()
}

/// The first instruction of a block that is listed.
fn beginning(block: &Block) -> LinkAddr {
    block.code.first().map_or(block.address, |it| it.address)
}

/// Knows where the jumps and calls of one function lead.
pub struct Listed<'a> {
    decode: Decode<'a>,
    beginnings: &'a Beginnings,
    /// Where its own blocks begin.
    own: HashSet<LinkAddr>,
    /// Where the jump at the end of a block leads, by the address of the block.
    jumps: HashMap<LinkAddr, LinkAddr>,
}

impl<'a> Listed<'a> {
    pub fn new(named: &'a Named<'_>, decode: Decode<'a>) -> Self {
        let blocks = &named.function.blocks;
        let block = |index: Option<u32>| blocks.get(index? as usize);
        let jumps = named.function.edges.iter().filter_map(|edge| {
            let is_jump = matches!(edge.kind, EdgeKind::Taken | EdgeKind::Jump);
            let (from, to) = (block(edge.from)?, block(edge.to)?);
            is_jump.then(|| (from.address, beginning(to)))
        });
        Self {
            decode,
            beginnings: &named.beginnings,
            own: blocks.iter().map(beginning).collect(),
            jumps: jumps.collect(),
        }
    }

    /// The instructions of a block: address and text.
    pub fn instructions(&self, block: &Block) -> Vec<(LinkAddr, String)> {
        let mut code: Vec<_> = block.code.iter().flat_map(self.decode).collect();
        let jump = self.jumps.get(&block.address);
        let last = code.len().saturating_sub(1);
        for (place, (_, text)) in code.iter_mut().enumerate() {
            let Some((before, target)) = direct_target(text) else {
                continue;
            };
            let aside = jump.filter(|_| place == last && !before.contains("call"));
            let listed = match self.own.contains(&target) {
                true => target,
                false => *aside
                    .or_else(|| self.beginnings.get(&target))
                    .unwrap_or(&target),
            };
            *text = format!("{before} {listed}");
        }
        code
    }
}

/// What stands before the target of a direct jump or call, and the target.
fn direct_target(text: &str) -> Option<(&str, LinkAddr)> {
    let (before, target) = text.rsplit_once(' ')?;
    let mnemonic = before.rsplit(' ').next()?;
    let is_branch = ["j", "call", "loop"]
        .iter()
        .any(|it| mnemonic.starts_with(it));
    let target = u64::from_str_radix(target.strip_prefix("0x")?, 16).ok()?;
    is_branch.then_some((before, LinkAddr(target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_direct_branches_have_a_target() {
        let target = |text: &str| direct_target(text).map(|(_, it)| it.0);
        assert_eq!(target("jle 0x1282"), Some(0x1282));
        assert_eq!(target("bnd jmp 0x10"), Some(0x10));
        assert_eq!(target("call 0x1139"), Some(0x1139));
        for other in [
            "jmp *%rax",
            "jmp *0x10",
            "push 0x1234",
            "lea 0x5004, %rdx",
            "ret",
        ] {
            assert_eq!(target(other), None, "{other}");
        }
    }
}
