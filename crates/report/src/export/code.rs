//! Instructions and calls of a function, one by one, with their counts and lines.

use super::Material;
use crate::count::{Count, CountedBlock};
use crate::names::Named;
use crate::rows::by_address;
use headcount_model::{FileId, LinkAddr, Target, TransferKind};

/// An instruction.
pub struct Instruction {
    pub address: LinkAddr,
    pub count: Count,
    /// The line it belongs to, if any.
    pub line: Option<(FileId, u32)>,
}

/// All instructions of a function, by address.
pub fn instructions(named: &Named<'_>, material: &Material<'_>) -> Vec<Instruction> {
    let mut all = Vec::new();
    for block in by_address(named) {
        let ranges = block.line_ranges();
        let mut runs = block.block.lines.iter().zip(&ranges).peekable();
        for (number, address) in (0..).zip(addresses(&block, material)) {
            while runs.next_if(|(_, range)| range.end <= number).is_some() {}
            let run = runs.peek().filter(|(_, range)| range.contains(&number));
            all.push(Instruction {
                address,
                count: block.at(number),
                line: run.and_then(|(it, _)| (it.line > 0).then_some((it.file, it.line))),
            });
        }
    }
    all
}

/// Where the instructions of a block are.
pub fn addresses(block: &CountedBlock<'_>, material: &Material<'_>) -> Vec<LinkAddr> {
    let mut all = Vec::new();
    for span in &block.block.code {
        let mut address = span.address.0;
        for length in (material.lengths)(span) {
            all.push(LinkAddr(address));
            address += u64::from(length);
        }
    }
    all
}

/// All calls of a function, by address: where they are, whom they call unless only a run knows, and
/// how often.
pub fn calls(
    named: &Named<'_>,
    material: &Material<'_>,
) -> Vec<(LinkAddr, Option<LinkAddr>, Count)> {
    let mut all = Vec::new();
    for block in by_address(named) {
        let mut before = 0;
        for span in &block.block.code {
            let transfers = (material.transfers)(span);
            let calls = transfers.all.iter();
            for it in calls.filter(|it| it.kind == TransferKind::Call) {
                let target = match it.to {
                    Target::Code(target) => Some(target),
                    Target::Pointer(_) | Target::Unknown => None,
                };
                all.push((it.address, target, block.at(before + it.index)));
            }
            before += transfers.instructions;
        }
    }
    all
}
