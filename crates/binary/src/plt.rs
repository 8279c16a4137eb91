//! Which stubs lead to functions of other modules?

use std::ops::Range;

use iced_x86::{Mnemonic, OpKind};

use crate::image::{Image, Piece};
use crate::names::without_name;
use crate::sweep::{self, Flow};
use crate::symbols::Symbols;

/// A stub of the procedure linkage table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    pub range: Range<u64>,
    pub name: String,
}

/// Whether a section holds stubs.
pub fn is_plt(piece: &Piece<'_>) -> bool {
    matches!(
        piece.name,
        ".plt" | ".plt.sec" | ".plt.got" | ".iplt" | ".plt.bnd"
    )
}

/// All stubs, by address.
pub fn stubs(image: &Image<'_>, symbols: &Symbols) -> Vec<Stub> {
    let named = ranges(image).into_iter().filter_map(|range| {
        let name = name(image, symbols, image.get(&range)?, range.start);
        Some(Stub { range, name })
    });
    named.collect()
}

/// Where the stubs are, by address.
pub fn ranges(image: &Image<'_>) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    for piece in image.code().filter(|piece| is_plt(piece)) {
        let size = match piece.entry_size {
            8 | 16 => piece.entry_size,
            _ if piece.name == ".plt.got" => 8,
            _ => 16,
        };
        let starts = starts(piece, size);
        let end = piece.start.saturating_add(piece.bytes.len() as u64);
        let ends = starts.iter().skip(1).copied().chain([end]);
        found.extend(starts.iter().zip(ends).map(|(start, end)| *start..end));
    }
    found
}

/// Where stubs begin: every so many bytes, unless control would run into it from in front. Linkers
/// have stubs and headers of other sizes, and not all say so.
fn starts(piece: &Piece<'_>, size: u64) -> Vec<u64> {
    let mut starts = Vec::new();
    let mut goes_on = false;
    for instruction in sweep::instructions(piece.bytes, piece.start) {
        let at = instruction.ip();
        if !goes_on && (at - piece.start).is_multiple_of(size) {
            starts.push(at);
        }
        match sweep::flow(&instruction) {
            // What fills a gap.
            Flow::Nop => {}
            _ if instruction.mnemonic() == Mnemonic::Int3 => {}
            flow => goes_on = flow.goes_on(),
        }
    }
    starts
}

fn name(image: &Image<'_>, symbols: &Symbols, bytes: &[u8], start: u64) -> String {
    let code = sweep::instructions(bytes, start);
    let through = code
        .iter()
        .find_map(|instruction| match sweep::flow(instruction) {
            Flow::IndirectJump(slot) => slot,
            _ => None,
        });
    if let Some(named) = through.and_then(|slot| name_of_slot(image, symbols, slot)) {
        return format!("{named}@plt");
    }
    let pushed = code
        .iter()
        .find(|instruction| instruction.mnemonic() == Mnemonic::Push);
    match pushed {
        // Where a second table holds the jump itself, the first one only serves lazy binding.
        Some(push)
            if matches!(
                push.op0_kind(),
                OpKind::Immediate32to64 | OpKind::Immediate8to64
            ) =>
        {
            let slot = usize::try_from(push.immediate(0)).ok();
            let slot = slot.and_then(|number| image.relocations.slots.get(number));
            slot.and_then(|slot| name_of_slot(image, symbols, *slot))
                .map_or_else(
                    || format!("plt_{start:#x}"),
                    |name| format!("{name}@plt.lazy"),
                )
        }
        Some(_) => "plt0".to_owned(),
        None => format!("plt_{start:#x}"),
    }
}

fn name_of_slot(image: &Image<'_>, symbols: &Symbols, slot: u64) -> Option<String> {
    if let Some(name) = image.slot_names.at(slot).filter(|name| !name.is_empty()) {
        return Some(name.to_owned());
    }
    let at = image.relocations.resolver_at(slot)?;
    let name = symbols.name(at).map(str::to_owned);
    Some(name.unwrap_or_else(|| without_name(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts_in(bytes: &[u8], size: u64) -> Vec<u64> {
        let piece = Piece {
            name: ".plt.got",
            start: 0x1000,
            bytes,
            entry_size: 0,
            offset: 0,
            executable: true,
        };
        starts(&piece, size)
    }

    const JUMP: [u8; 6] = [0xff, 0x25, 0x16, 0x13, 0, 0]; // jmp *0x1316(%rip)

    #[test]
    fn short_stubs_follow_one_another() {
        let stub = [&JUMP[..], &[0x66, 0x90]].concat();
        assert_eq!(starts_in(&stub.repeat(3), 8), [0x1000, 0x1008, 0x1010]);
    }

    #[test]
    fn stubs_are_not_cut_in_the_middle_of_an_instruction() {
        let marked = [&[0xf3, 0x0f, 0x1e, 0xfa], &JUMP[..], &[0xcc; 6]].concat();
        assert_eq!(starts_in(&marked.repeat(2), 8), [0x1000, 0x1010]);
    }

    #[test]
    fn a_long_header_stays_whole() {
        let push = [0xff, 0x35, 0, 0, 0, 0]; // push 0(%rip)
        let header = [
            &[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x53],
            &push[..],
            &JUMP[..],
            &[0xcc; 14],
        ];
        let stub = [&[0xf3, 0x0f, 0x1e, 0xfa], &JUMP[..], &[0xcc; 6]].concat();
        let table = [header.concat(), stub].concat();
        assert_eq!(starts_in(&table, 16), [0x1000, 0x1020]);
    }
}
