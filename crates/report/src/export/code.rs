//! Instructions and calls of a function, one by one, with their counts and lines.

use super::Material;
use crate::count::{Count, CountedBlock};
use crate::names::Named;
use crate::rows::by_address;
use crate::targets::{Callees, Targets, rest};
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

/// How often an instruction called a function.
pub struct Call {
    pub address: LinkAddr,
    /// Where that is, in the same module; `None`: elsewhere, or only a run knows.
    pub target: Option<LinkAddr>,
    pub count: Count,
}

/// All calls of a function, by address. What is indirect is there for every function that it led to, as
/// far as that is known.
pub fn calls(
    module: usize,
    named: &Named<'_>,
    targets: &Targets,
    material: &Material<'_>,
) -> Vec<Call> {
    let mut all = Vec::new();
    for block in by_address(named) {
        let mut before = 0;
        for span in &block.block.code {
            let transfers = (material.transfers)(span);
            let calls = transfers.all.iter();
            for it in calls.filter(|it| it.kind == TransferKind::Call) {
                let count = block.at(before + it.index);
                match it.to {
                    Target::Code(target) => all.push(Call {
                        address: it.address,
                        target: Some(target),
                        count,
                    }),
                    Target::Pointer(_) | Target::Unknown => {
                        let found = targets.get(&(module, it.address));
                        indirect(module, named, it.address, count, found, &mut all);
                    }
                }
            }
            before += transfers.instructions;
        }
    }
    all
}

/// An indirect call: one for every function that it led to, and one for what is left.
fn indirect(
    module: usize,
    named: &Named<'_>,
    address: LinkAddr,
    count: Count,
    found: Option<&Callees>,
    all: &mut Vec<Call>,
) {
    let (found, rest) = match found.map(|it| (it, rest(it, count))) {
        Some((found, Some(rest))) => (found.iter().collect(), rest),
        _ => (Vec::new(), count),
    };
    let is_here = found.iter().filter(|((of, _), _)| *of == module);
    all.extend(is_here.filter_map(|((_, index), count)| {
        let target = named.module.functions.get(*index)?.address;
        Some(Call {
            address,
            target: Some(target),
            count: Count::Exact(**count),
        })
    }));
    let elsewhere = found.iter().filter(|((of, _), _)| *of != module);
    let elsewhere = elsewhere.fold(0_u64, |sum, (_, count)| sum.saturating_add(**count));
    let rest = rest.plus(Count::Exact(elsewhere)).unwrap_or(Count::Unknown);
    if found.is_empty() || !rest.is_never() {
        all.push(Call {
            address,
            target: None,
            count: rest,
        });
    }
}
