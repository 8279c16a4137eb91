//! Which blocks ran, as DynamoRIO's drcov writes it (version 2), for Lighthouse and its relatives in
//! IDA, Ghidra and Binary Ninja. The format has no counts.

use super::limit::Limit;
use super::{Exported, Material, several};
use crate::names::functions;
use crate::{Error, visible};
use headcount_model::{Counted, LinkAddr};
use std::collections::BTreeSet;

/// The tables of modules and of blocks that ran.
pub fn write(material: &Material<'_>, _: &Limit) -> Result<Exported, Error> {
    let mut modules = String::new();
    let (mut blocks, mut number, mut lost) = (Vec::new(), 0, 0);
    for (module, id) in material.counted.iter().zip(0_u16..) {
        let base = (material.base)(&module.module);
        let pieces = pieces_that_ran(module, material);
        let end = pieces.last().map_or(base, |(at, size)| at.0 + size);
        modules.push_str(&format!(
            "{id:3}, {base:#018x}, {end:#018x}, {:#018x}, {}\n",
            0,
            visible(&module.module.path)
        ));
        for (address, size) in pieces {
            let offset = address
                .0
                .checked_sub(base)
                .and_then(|it| u32::try_from(it).ok());
            match offset {
                Some(offset) => number += entries(&mut blocks, offset, size, id),
                None => lost += 1,
            }
        }
    }
    let mut bytes = format!(
        "DRCOV VERSION: 2\n\
         DRCOV FLAVOR: drcov\n\
         Module Table: version 2, count {}\n\
         Columns: id, base, end, entry, path\n\
         {modules}BB Table: {number} bbs\n",
        modules.lines().count(),
    )
    .into_bytes();
    bytes.extend(blocks);
    let mut notes = vec!["drcov says which blocks ran, not how often.".to_owned()];
    if lost > 0 {
        notes.push(format!(
            "{} left out: too far from the start of the module for this format.",
            several(lost, "block")
        ));
    }
    if material.counted.len() > usize::from(u16::MAX) {
        notes.push("Only the first 65,535 modules fit into this format.".into());
    }
    Ok(Exported { bytes, notes })
}

/// Where code ran, and how many bytes of it.
fn pieces_that_ran(module: &Counted, material: &Material<'_>) -> BTreeSet<(LinkAddr, u64)> {
    let mut pieces = BTreeSet::new();
    for named in functions(module, false) {
        if !material.only.wants(&named) {
            continue;
        }
        for block in named.blocks() {
            if block.count().value().is_some_and(|count| count > 0) {
                let spans = block.block.code.iter();
                pieces.extend(spans.map(|it| (it.address, it.bytes.len() as u64)));
            }
        }
    }
    pieces
}

/// Writes a block; one that is larger than the format allows, as several. Says how many.
fn entries(out: &mut Vec<u8>, offset: u32, size: u64, module: u16) -> usize {
    let (mut at, mut left, mut number) = (offset, size, 0);
    while left > 0 {
        let size = u16::try_from(left).unwrap_or(u16::MAX);
        out.extend(at.to_le_bytes());
        out.extend(size.to_le_bytes());
        out.extend(module.to_le_bytes());
        at = at.saturating_add(size.into());
        left -= u64::from(size);
        number += 1;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::entries;

    #[test]
    fn a_block_that_is_too_large_is_several() {
        let mut out = Vec::new();
        assert_eq!(entries(&mut out, 0x10, 0x1_0001, 3), 2);
        let expected = [
            [0x10, 0, 0, 0, 0xff, 0xff, 3, 0],
            [0x0f, 0, 1, 0, 2, 0, 3, 0],
        ];
        assert_eq!(out, expected.concat());
    }
}
