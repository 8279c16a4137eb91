//! Where do exceptions land?
//!
//! The tables are those of the Itanium C++ ABI, which GCC, Clang and rustc all write; "Exception
//! Handling Tables" of that ABI and GCC's `unwind-pe.h` tell their form.

use gimli::{EndianSlice, LittleEndian, Reader};

use crate::frames::Frame;
use crate::image::Image;

/// The landing pads of a range of code. `budget` is how many entries of tables may be read in all:
/// in a damaged file, every range may speak of the same long table.
pub fn landing_pads(image: &Image<'_>, frame: &Frame, budget: &mut usize) -> Vec<u64> {
    let bytes = frame.lsda.and_then(|at| Some((at, image.from(at)?)));
    bytes
        .and_then(|(at, bytes)| read(frame.range.start, at, bytes, budget))
        .unwrap_or_default()
        .into_iter()
        .filter(|pad| image.is_code(*pad))
        .collect()
}

const ABSENT: u8 = 0xff;

fn read(function: u64, at: u64, bytes: &[u8], budget: &mut usize) -> Option<Vec<u64>> {
    let mut input = EndianSlice::new(bytes, LittleEndian);
    let encoding = input.read_u8().ok()?;
    let base = match encoding {
        ABSENT => function,
        _ => {
            let here = at.checked_add(1)?;
            let value = value(&mut input, encoding)?;
            // Relative to itself, or absolute.
            match encoding & 0x70 {
                0x10 => here.wrapping_add(value),
                _ => value,
            }
        }
    };
    if input.read_u8().ok()? != ABSENT {
        input.read_uleb128().ok()?;
    }
    let encoding = input.read_u8().ok()?;
    let length = usize::try_from(input.read_uleb128().ok()?).ok()?;
    let mut table = input.split(length).ok()?;
    let mut pads = Vec::new();
    while !table.is_empty() {
        *budget = budget.checked_sub(1)?;
        let [_start, _length, pad] = [
            value(&mut table, encoding)?,
            value(&mut table, encoding)?,
            value(&mut table, encoding)?,
        ];
        table.read_uleb128().ok()?;
        if pad != 0 {
            pads.push(base.wrapping_add(pad));
        }
    }
    pads.sort_unstable();
    pads.dedup();
    Some(pads)
}

/// A number in one of the encodings that `DW_EH_PE_` names.
fn value(input: &mut EndianSlice<'_, LittleEndian>, encoding: u8) -> Option<u64> {
    match encoding & 0x0f {
        0x0 | 0x4 | 0xc => input.read_u64().ok(),
        0x1 => input.read_uleb128().ok(),
        0x2 => input.read_u16().ok().map(u64::from),
        0x3 => input.read_u32().ok().map(u64::from),
        0x9 => input.read_sleb128().ok().map(i64::cast_unsigned),
        0xa => input
            .read_i16()
            .ok()
            .map(|it| i64::from(it).cast_unsigned()),
        0xb => input
            .read_i32()
            .ok()
            .map(|it| i64::from(it).cast_unsigned()),
        _ => None,
    }
}
