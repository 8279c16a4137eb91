//! Are these two builds the same, as far as counts are concerned?

use headcount_model::{Function, Module};

/// A digest of everything counts belong to: functions, blocks, edges. Source lines are left out,
/// so that a later headcount that reads them better can still add to an old profile.
pub fn shape(module: &Module) -> String {
    let mut shape = Shape::new(module.functions.len());
    module.functions.iter().for_each(|it| shape.add(it));
    shape.finish()
}

/// The digest, while functions are added one by one. Counts of one build are added to those of
/// another only if both are the same: nobody can make that up.
pub struct Shape(blake3::Hasher);

impl Shape {
    /// Of a module with so many functions.
    pub fn new(functions: usize) -> Self {
        let mut shape = Self(blake3::Hasher::new());
        shape.number(functions as u64);
        shape
    }

    pub fn add(&mut self, function: &Function) {
        self.number(function.name.len() as u64);
        self.0.update(function.name.as_bytes());
        self.number(function.address.0);
        self.number(function.blocks.len() as u64);
        for block in &function.blocks {
            self.number(block.address.0);
            self.number(block.instructions.into());
        }
        self.number(function.edges.len() as u64);
        for edge in &function.edges {
            self.number(edge.from.map_or(0, |block| u64::from(block) + 1));
            self.number(edge.to.map_or(0, |block| u64::from(block) + 1));
            self.number(edge.kind.code().into());
        }
    }

    pub fn finish(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }
}
