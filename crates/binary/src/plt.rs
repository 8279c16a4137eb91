//! Which stubs lead to functions of other modules?

use std::ops::Range;

use iced_x86::{Mnemonic, OpKind};

use crate::image::{Image, Piece};
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
            8 | 16 => piece.entry_size as usize,
            _ if piece.name == ".plt.got" => 8,
            _ => 16,
        };
        let mut start = piece.start;
        for bytes in piece.bytes.chunks(size) {
            let Some(end) = start.checked_add(bytes.len() as u64) else {
                break;
            };
            found.push(start..end);
            start = end;
        }
    }
    found
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
    Some(name.unwrap_or_else(|| format!("sub_{at:#x}")))
}
