//! Runs added together.

use crate::counts::{RunCounts, Sparse};
use crate::read::{BlockSizes, modules_of};
use crate::write::{Stored, run_counts};
use crate::{Executed, ModuleFacts, Problem, Recover};
use headcount_model::{FunctionCounts, Module, Shift};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The sum of some runs, for one module.
pub(crate) struct Sum {
    /// One item a function.
    pub functions: Vec<FunctionCounts>,
    /// How many of the functions have a block or an edge that only some of the runs counted.
    pub mixed: usize,
    /// What those say who made counts for it.
    pub notes: Vec<String>,
}

/// What is known if any of the runs counted it: its sum is over those that did.
pub(crate) fn sum(
    db: &Connection,
    stored: &Stored,
    (facts, module): (&ModuleFacts, &Module),
    runs: &[i64],
    recover: Recover,
) -> Result<Sum, Problem> {
    let mut all = Adder::new(module);
    let mut notes = Vec::new();
    for run in runs {
        if let Some((counts, more)) = run_counts(db, stored, Some(facts), *run, recover)? {
            all.add(&counts)?;
            notes.extend(more);
        }
    }
    let (functions, mixed) = all.split(module);
    Ok(Sum {
        functions,
        mixed,
        notes,
    })
}

struct Adder {
    runs: u32,
    blocks: Cells,
    edges: Cells,
    shifts: BTreeMap<(usize, u32), i64>,
    at_least: BTreeSet<usize>,
}

/// The sums of blocks, or of edges.
struct Cells {
    sums: Vec<u64>,
    /// How many runs did not count it.
    uncounted: Vec<u32>,
}

impl Cells {
    fn new(number: usize) -> Self {
        Self {
            sums: vec![0; number],
            uncounted: vec![0; number],
        }
    }

    fn add(&mut self, more: &Sparse) -> Result<(), Problem> {
        let orphan = || Problem::Damaged("a count belongs to nothing".into());
        for (place, count) in &more.counts {
            let sum = self.sums.get_mut(*place).ok_or_else(orphan)?;
            let added = sum.checked_add(*count);
            *sum = added.ok_or_else(too_large)?;
        }
        for stretch in &more.uncounted {
            let runs = self.uncounted.get_mut(stretch.clone());
            runs.ok_or_else(orphan)?.iter_mut().for_each(|it| *it += 1);
        }
        Ok(())
    }

    fn counts(&self, range: Range<usize>, runs: u32) -> Vec<Option<u64>> {
        let known = |place: usize| (self.uncounted[place] < runs).then(|| self.sums[place]);
        range.map(known).collect()
    }

    fn is_mixed(&self, range: Range<usize>, runs: u32) -> bool {
        let some = |it: &u32| (1..runs).contains(it);
        self.uncounted[range].iter().any(some)
    }
}

impl Adder {
    fn new(module: &Module) -> Self {
        let blocks = module.functions.iter().map(|it| it.blocks.len()).sum();
        let edges = module.functions.iter().map(|it| it.edges.len()).sum();
        Self {
            runs: 0,
            blocks: Cells::new(blocks),
            edges: Cells::new(edges),
            shifts: BTreeMap::new(),
            at_least: BTreeSet::new(),
        }
    }

    fn add(&mut self, run: &RunCounts) -> Result<(), Problem> {
        self.runs += 1;
        self.blocks.add(&run.blocks)?;
        self.edges.add(&run.edges)?;
        for it in &run.shifts {
            let sum = self.shifts.entry((it.block as usize, it.from)).or_default();
            *sum = sum.checked_add(it.delta).ok_or_else(too_large)?;
        }
        self.at_least.extend(&run.at_least);
        Ok(())
    }

    /// The sums of each function, and how many are mixed.
    fn split(&self, module: &Module) -> (Vec<FunctionCounts>, usize) {
        let (mut block, mut edge, mut mixed) = (0, 0, 0);
        let mut functions = Vec::with_capacity(module.functions.len());
        for function in &module.functions {
            let blocks = block..block + function.blocks.len();
            let edges = edge..edge + function.edges.len();
            (block, edge) = (blocks.end, edges.end);
            let some = self.blocks.is_mixed(blocks.clone(), self.runs)
                || self.edges.is_mixed(edges.clone(), self.runs);
            mixed += usize::from(some);
            functions.push(FunctionCounts {
                blocks: self.blocks.counts(blocks.clone(), self.runs),
                edges: self.edges.counts(edges, self.runs),
                shifts: self.shifts(blocks.clone()),
                at_least: self.at_least(blocks),
            });
        }
        (functions, mixed)
    }

    fn shifts(&self, blocks: Range<usize>) -> Vec<Shift> {
        let found = self.shifts.range((blocks.start, 0)..(blocks.end, 0));
        let shift = |(&(block, from), &delta): (&(usize, u32), &i64)| Shift {
            block: (block - blocks.start) as u32,
            from,
            delta,
        };
        found.filter(|(_, delta)| **delta != 0).map(shift).collect()
    }

    fn at_least(&self, blocks: Range<usize>) -> Vec<u32> {
        let first = blocks.start;
        let found = self.at_least.range(blocks);
        found.map(|block| (block - first) as u32).collect()
    }
}

fn too_large() -> Problem {
    Problem::TooLarge("the sum of these runs".into())
}

/// How many instructions one run executed, as far as it counted them.
pub(crate) fn executed(db: &Connection, run: i64, recover: Recover) -> Result<Executed, Problem> {
    let too_large = || Problem::TooLarge("the number of instructions executed".into());
    let (mut total, mut at_least) = (0_i128, false);
    for module in modules_of(db, &[run])? {
        let Some((counts, _)) = run_counts(db, &module, None, run, recover)? else {
            continue;
        };
        at_least |= !counts.at_least.is_empty() || !counts.blocks.uncounted.is_empty();
        let mut sizes = BlockSizes::of(&module);
        let mut add = |block: usize, count: i128, from: u32| {
            let orphan = || Problem::Damaged("a count belongs to nothing".into());
            let instructions = sizes.instructions(db, block)?.ok_or_else(orphan)?;
            let executed = count * (i128::from(instructions) - i128::from(from));
            total = total.checked_add(executed).ok_or_else(too_large)?;
            Ok::<_, Problem>(())
        };
        for (block, count) in &counts.blocks.counts {
            add(*block, i128::from(*count), 0)?;
        }
        // A shift holds from its instruction to the end of the block.
        for it in &counts.shifts {
            add(it.block as usize, i128::from(it.delta), it.from)?;
        }
    }
    Ok(Executed {
        instructions: u64::try_from(total).map_err(|_| too_large())?,
        at_least,
    })
}
