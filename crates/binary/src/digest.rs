//! What names this build?
//!
//! What was found in a file is kept under such names, machine code included, and runs in whatever
//! has the same name later. So nobody must be able to make a file with the name of another.

use object::Object;

use crate::layout::Elf;

/// A digest of numbers and bytes.
#[derive(Default)]
pub struct Digest(blake3::Hasher);

impl Digest {
    /// Takes bytes, told apart from what comes before and behind.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// Takes a number.
    pub fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    /// As hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// Names a file: by what the linker wrote into it, or else by its bytes.
pub fn of_file(elf: &Elf<'_>, bytes: &[u8]) -> String {
    match elf.build_id() {
        Ok(Some(id)) if !id.is_empty() => hex(id),
        _ => format!("file-{}", blake3::hash(bytes).to_hex()),
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
