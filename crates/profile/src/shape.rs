//! Are these two builds the same, as far as counts are concerned?

use headcount_model::{Function, Module};

/// A digest of everything counts belong to: functions, blocks, edges. Source lines are left out,
/// so that a later headcount that reads them better can still add to an old profile.
pub fn shape(module: &Module) -> String {
    let mut shape = Shape::new(module.functions.len());
    module.functions.iter().for_each(|it| shape.add(it));
    shape.finish()
}

/// The digest, while functions are added one by one.
///
/// 64-bit FNV-1a: it guards against mistakes (a build id used twice), not against malice.
pub struct Shape(Fnv);

impl Shape {
    /// Of a module with so many functions.
    pub fn new(functions: usize) -> Self {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        hash.number(functions as u64);
        Self(hash)
    }

    pub fn add(&mut self, function: &Function) {
        let Self(hash) = self;
        hash.bytes(function.name.as_bytes());
        hash.number(function.address.0);
        hash.number(function.blocks.len() as u64);
        for block in &function.blocks {
            hash.number(block.address.0);
            hash.number(block.instructions.into());
        }
        hash.number(function.edges.len() as u64);
        for edge in &function.edges {
            hash.number(edge.from.map_or(0, |block| u64::from(block) + 1));
            hash.number(edge.to.map_or(0, |block| u64::from(block) + 1));
            hash.number(edge.kind.code().into());
        }
    }

    pub fn finish(&self) -> String {
        format!("{:016x}", self.0.0)
    }
}

struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        bytes.iter().for_each(|byte| self.eat(*byte));
    }

    fn number(&mut self, number: u64) {
        number.to_le_bytes().iter().for_each(|byte| self.eat(*byte));
    }

    fn eat(&mut self, byte: u8) {
        self.0 ^= u64::from(byte);
        self.0 = self.0.wrapping_mul(0x0100_0000_01b3);
    }
}
