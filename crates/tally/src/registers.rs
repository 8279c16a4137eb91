//! The names of registers.

use headcount_model::Width;

/// The registers that the first arguments of a function are in.
pub const ARGUMENTS: [u8; 6] = [7, 6, 2, 1, 8, 9];

/// The one that the result is in.
pub const RETURNED: u8 = 0;

/// The stack pointer.
pub const STACK: u8 = 4;

const WHOLE: [&str; 8] = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
const LOWER_BYTES: [&str; 8] = ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"];

/// The number of a register, and which of its bytes the name means.
pub fn register(name: &str) -> Option<(u8, Width)> {
    let place = |names: &[&str; 8], name: &str| {
        let found = names.iter().position(|it| *it == name)?;
        Some(found as u8)
    };
    let of = |bytes: u8| Width {
        bytes,
        is_signed: false,
    };
    if let Some(number) = place(&WHOLE, name) {
        return Some((number, of(8)));
    }
    if let Some(number) = place(&LOWER_BYTES, name) {
        return Some((number, of(1)));
    }
    if let Some(number) = numbered(name) {
        return Some(number);
    }
    let with_r = format!("r{}", name.strip_prefix('e').unwrap_or(name));
    let bytes = if name.starts_with('e') { 4 } else { 2 };
    place(&WHOLE, &with_r).map(|number| (number, of(bytes)))
}

/// `r8` to `r15`, and their lower bytes.
fn numbered(name: &str) -> Option<(u8, Width)> {
    let rest = name.strip_prefix('r')?;
    let (number, bytes) = match rest.as_bytes().last()? {
        b'd' => (&rest[..rest.len() - 1], 4),
        b'w' => (&rest[..rest.len() - 1], 2),
        b'b' => (&rest[..rest.len() - 1], 1),
        _ => (rest, 8),
    };
    let number: u8 = number.parse().ok()?;
    let is_signed = false;
    (8..16)
        .contains(&number)
        .then_some((number, Width { bytes, is_signed }))
}

/// Is this the name of what a calling convention says where it is: an argument, or the result?
pub fn is_by_convention(name: &str) -> bool {
    name == "ret" || argument_number(name).is_some()
}

/// Which argument has this name, if one has.
pub fn argument_number(name: &str) -> Option<usize> {
    name.strip_prefix("arg")?.parse().ok()
}
