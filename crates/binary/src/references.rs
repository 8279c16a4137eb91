//! Which addresses of code are written down somewhere?

use crate::functions::{Origin, Part, part_at};
use crate::image::Image;
use crate::indirect::Indirect;
use crate::ownership::is_cold;
use crate::sweep::Flow;
use crate::symbols::Symbols;

/// Addresses of instructions that data or code speaks of, in order: control may come to them from
/// anywhere. `fixed`: the module cannot be moved, so its data holds addresses as they are.
pub fn references(
    image: &Image<'_>,
    parts: &[Part],
    indirect: &Indirect,
    symbols: &Symbols,
    fixed: bool,
) -> Vec<u64> {
    let mut found = Vec::new();
    let written = image.relocations.addresses();
    found.extend(
        written
            .filter(|(at, _)| !indirect.explains(*at))
            .map(|(_, to)| to),
    );
    found.extend(image.relocations.resolvers());
    if fixed {
        let written = words_of_code(image).into_iter();
        found.extend(
            written
                .filter(|(at, _)| !indirect.explains(*at))
                .map(|(_, to)| to),
        );
    }
    for part in parts {
        for op in &part.ops {
            match op.flow {
                Flow::Mentions(to) if image.is_code(to) => found.push(to),
                Flow::Number(to) if fixed && image.is_code(to) => found.push(to),
                // A call into the midst of a function: of a thunk, or to learn the own address.
                Flow::Call(to) => found.push(to),
                _ => {}
            }
        }
    }
    let labels = symbols.labels.iter().filter(|label| label.rank < 2);
    let functions = symbols.functions.iter();
    let functions = functions.filter(|symbol| !is_cold(&symbol.name));
    found.extend(labels.chain(functions).map(|symbol| symbol.at));
    found.sort_unstable();
    found.dedup();
    found.retain(|at| {
        let part = part_at(parts, *at).and_then(|index| parts.get(index));
        part.is_some_and(|part| part.has_op(*at))
    });
    found
}

/// The words of data that are addresses of code: where each is, and which address.
pub fn words_of_code(image: &Image<'_>) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for piece in image.data() {
        // Words of a table lie at multiples of their size.
        let skip = piece.start.wrapping_neg() % 8;
        let words = piece.bytes.get(skip as usize..).unwrap_or_default();
        let mut at = piece.start.saturating_add(skip);
        for word in words.as_chunks::<8>().0 {
            let to = u64::from_le_bytes(*word);
            if image.is_code(to) {
                found.push((at, to));
            }
            at = at.saturating_add(8);
        }
    }
    found
}

/// Jumps from one part to another, or inside one: (from part, to part, target).
pub fn jumps<'a>(
    parts: &'a [Part],
    indirect: &'a Indirect,
) -> impl Iterator<Item = (usize, usize, u64)> + 'a {
    parts.iter().enumerate().flat_map(move |(from, part)| {
        let direct = part.ops.iter().filter_map(|op| op.flow.jump_target());
        let tables = part.ops.iter().filter_map(|op| match op.flow {
            Flow::IndirectJump(_) => indirect.targets.get(&op.at),
            _ => None,
        });
        // What remains may be data that looks like code; its jumps prove nothing.
        let believed = part.broken.is_none() || part.origin != Origin::Rest;
        direct
            .chain(tables.flatten().copied())
            .filter(move |_| believed)
            .filter_map(move |to| {
                if part.range.contains(&to) {
                    return Some((from, from, to));
                }
                Some((from, part_at(parts, to)?, to))
            })
    })
}
