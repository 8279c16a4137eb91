//! What breakpoints counted, block by block.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use headcount_model::{FunctionCounts, Module, Shift};
use headcount_profile::SparseCounts;

/// The counts of a module, while blocks are still numbered through all of its functions.
pub struct Flat {
    build_id: String,
    functions: Vec<FunctionCounts>,
    /// Function, and block in it, of each block.
    places: Vec<(usize, u32)>,
    shifts: BTreeMap<(usize, u32, u32), i64>,
}

impl Flat {
    /// `uncounted`: stretches of blocks, the first and how many.
    pub fn new(module: &Module, counters: &[u64], uncounted: &[(u32, u32)]) -> Result<Self> {
        let mut places = Vec::new();
        let mut functions: Vec<FunctionCounts> = Vec::new();
        let mut counters = counters.iter();
        for (number, function) in module.functions.iter().enumerate() {
            let mut counts = FunctionCounts {
                edges: vec![None; function.edges.len()],
                ..FunctionCounts::default()
            };
            for block in 0..function.blocks.len() as u32 {
                places.push((number, block));
                let count = counters.next();
                let count = count.context("the journal has counters of another build")?;
                counts.blocks.push(Some(*count));
            }
            functions.push(counts);
        }
        let mut known = 0;
        for (first, count) in uncounted {
            let first = *first as usize;
            let end = first.saturating_add(*count as usize);
            // They come in order, each block once.
            let stretch = places.get(first..end).filter(|_| first >= known);
            let stretch = stretch.context("the journal speaks of a block that is not there")?;
            known = end;
            for (function, block) in stretch {
                functions[*function].blocks[*block as usize] = None;
            }
        }
        Ok(Self {
            build_id: module.build_id.clone(),
            functions,
            places,
            shifts: BTreeMap::new(),
        })
    }

    fn place(&self, block: u32) -> Result<(usize, u32)> {
        let place = self.places.get(block as usize);
        Ok(*place.context("the journal speaks of a block that is not there")?)
    }

    /// From an instruction of a block on, each ran so much more often.
    pub fn shift(&mut self, block: u32, from: u32, delta: i64) -> Result<()> {
        let (function, block) = self.place(block)?;
        let sum = self.shifts.entry((function, block, from)).or_default();
        *sum = sum
            .checked_add(delta)
            .context("the journal speaks of more visits than there can be")?;
        Ok(())
    }

    /// Nobody knows how often a block ran.
    pub fn uncount(&mut self, block: u32) -> Result<()> {
        let (function, block) = self.place(block)?;
        self.functions[function].blocks[block as usize] = None;
        Ok(())
    }

    /// A block ran as often as it was counted, or more often.
    pub fn at_least(&mut self, block: u32) -> Result<()> {
        let (function, block) = self.place(block)?;
        let known = &mut self.functions[function].at_least;
        if let Err(place) = known.binary_search(&block) {
            known.insert(place, block);
        }
        Ok(())
    }

    /// By function.
    pub fn finish(mut self) -> SparseCounts {
        for ((function, block, from), delta) in self.shifts {
            if delta != 0 {
                let shift = Shift { block, from, delta };
                self.functions[function].shifts.push(shift);
            }
        }
        SparseCounts {
            build_id: self.build_id,
            functions: self.functions.into_iter().enumerate().collect(),
            uncounted: Vec::new(),
        }
    }
}
