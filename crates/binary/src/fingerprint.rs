//! What names this build?

use object::Object;

use crate::layout::Elf;

/// FNV-1a, 64 bits: it guards against mistakes, not against malice.
pub struct Fnv(pub u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub fn eat(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.chew(u64::from(*byte));
        }
    }

    /// Takes many bytes at a time, for what is large. The result is another.
    pub fn eat_much(&mut self, bytes: &[u8]) {
        // Each step waits for the one before; four that do not know each other take the time of
        // one.
        let mut lanes = [
            Self::default(),
            Self::default(),
            Self::default(),
            Self::default(),
        ];
        let (rows, rest) = bytes.as_chunks::<32>();
        for row in rows {
            for (lane, word) in lanes.iter_mut().zip(row.as_chunks::<8>().0) {
                lane.chew(u64::from_le_bytes(*word));
                // The product alone moves nothing downwards.
                lane.0 ^= lane.0 >> 32;
            }
        }
        for lane in lanes {
            self.eat(&lane.0.to_le_bytes());
        }
        self.eat(rest);
    }

    fn chew(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x0100_0000_01b3);
    }
}

/// Names a file: by what the linker wrote into it, or else by its bytes.
pub fn of_file(elf: &Elf<'_>, bytes: &[u8]) -> String {
    match elf.build_id() {
        Ok(Some(id)) if !id.is_empty() => hex(id),
        _ => {
            let mut file = Fnv::default();
            file.eat(bytes);
            format!("file-{:016x}", file.0)
        }
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
