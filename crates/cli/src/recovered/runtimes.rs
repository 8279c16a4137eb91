//! What interpreters did for the programs that they ran: from what was found to the costs of operations.

use std::collections::BTreeMap;
use std::path::Path;

use headcount_language::{
    Language, Measured, OfRuntime, SourceUnit, Sources, TokenCost, shared_out,
};
use headcount_model::{
    ChargePlace, CodePoint, KeyKind, LinkAddr, OfProgram, RegionUse, RuntimeCharge, RuntimeCosts,
    StorageEvent, StorageRegion,
};
use headcount_monitor::values::{CodeAt, FoundKey, Sum, Values};

use super::programs::found_from;

/// What was found of the programs of one language.
#[derive(Default)]
pub struct Found {
    /// How many instructions were executed,
    pub instructions: u64,
    /// and how many of them in code of which nothing is known.
    pub lost: u64,
    /// By the numbers of pieces of program.
    pub pieces: BTreeMap<u32, Measured>,
    /// Where samples found the runtime; pieces have the numbers of these.
    code: Vec<Option<CodePoint>>,
    /// Samples while storage was collected, and for no operation, by such numbers.
    collector: BTreeMap<u32, u64>,
    nothing: BTreeMap<u32, u64>,
    /// What was taken of storage, by region: how often, and how many bytes.
    taken: BTreeMap<StorageRegion, (u64, u64)>,
    /// How many of these for no piece of program.
    of_nothing: BTreeMap<StorageRegion, u64>,
    storage: BTreeMap<StorageEvent, Sum>,
}

impl Found {
    /// `what` knows what was counted at a place of the tally, if it is of this language. Is its runtime measured?
    /// Did a clock run?
    pub fn new(
        values: &Values,
        tally: u8,
        what: impl Fn(u16) -> Option<OfProgram>,
        has_runtime: bool,
        has_clock: bool,
    ) -> Self {
        let mut all = Self::default();
        let mut numbers: BTreeMap<Option<CodePoint>, u32> = BTreeMap::new();
        let found = values.found.iter().filter(|it| it.0.tally == tally);
        for (found, sum) in found {
            let Some(what) = what(found.place) else {
                continue;
            };
            let piece = match found.key {
                FoundKey::Piece(number, offset) => Some((number, offset as usize)),
                _ => None,
            };
            let add = |to: &mut BTreeMap<usize, u64>, offset, more: u64| {
                let sum: &mut u64 = to.entry(offset).or_default();
                *sum = sum.saturating_add(more);
            };
            let measured = piece.map(|(number, offset)| {
                let empty = || Measured {
                    runtime: has_runtime.then(OfRuntime::default),
                    samples: (has_runtime && has_clock).then(BTreeMap::new),
                    ..Measured::default()
                };
                (all.pieces.entry(number).or_insert_with(empty), offset)
            });
            match what {
                OfProgram::Instructions => {
                    all.instructions = all.instructions.saturating_add(sum.count);
                    match measured {
                        Some((it, offset)) => add(&mut it.executed, offset, sum.count),
                        None => all.lost = all.lost.saturating_add(sum.count),
                    }
                }
                OfProgram::Resumptions => {
                    if let Some((it, offset)) = measured
                        && let Some(runtime) = &mut it.runtime
                    {
                        add(&mut runtime.resumptions, offset, sum.count);
                    }
                }
                OfProgram::Strings | OfProgram::Blocks => {
                    let region = match what {
                        OfProgram::Strings => StorageRegion::String,
                        _ => StorageRegion::Block,
                    };
                    let taken = all.taken.entry(region).or_default();
                    // What is given back was not asked for.
                    if let Ok(bytes) = u64::try_from(sum.amount) {
                        taken.0 = taken.0.saturating_add(sum.count);
                        match measured {
                            Some((it, offset)) => {
                                let runtime = it.runtime.get_or_insert_default();
                                add(&mut runtime.bytes, offset, bytes);
                            }
                            None => *all.of_nothing.entry(region).or_default() += bytes,
                        }
                    }
                    taken.1 = taken.1.saturating_add_signed(sum.amount);
                }
                OfProgram::Storage => {
                    if let FoundKey::Number(code) = found.key
                        && let Some(event) = StorageEvent::from_code(code)
                    {
                        all.storage.insert(event, *sum);
                    }
                }
                OfProgram::Samples => {
                    let point = code(found.by);
                    let next = numbers.len() as u32;
                    let number = *numbers.entry(point).or_insert_with(|| {
                        all.code.push(point);
                        next
                    });
                    let to = match (measured, found.key) {
                        (Some((it, offset)), _) => {
                            let samples = it.samples.get_or_insert_default();
                            samples.entry((offset, number)).or_default()
                        }
                        (None, FoundKey::Kind(KeyKind::Other)) => {
                            all.collector.entry(number).or_default()
                        }
                        (None, _) => all.nothing.entry(number).or_default(),
                    };
                    *to = to.saturating_add(sum.count);
                }
            }
        }
        all
    }

    /// Books the samples of the collector on the operations whose storage it collects.
    pub fn share_collections(&self, units: &mut [SourceUnit]) {
        let mut costs: Vec<&mut TokenCost> = units
            .iter_mut()
            .flat_map(|it| &mut it.tokens)
            .filter_map(|it| it.cost.as_mut())
            .collect();
        let samples: u64 = self.collector.values().sum();
        let mut bytes: Vec<u64> = costs.iter().map(|it| it.bytes.unwrap_or(0)).collect();
        // What nobody took has its share, too.
        let known: u64 = bytes.iter().fold(0, |sum, it| sum.saturating_add(*it));
        bytes.push(self.bytes().saturating_sub(known));
        for (cost, share) in costs.iter_mut().zip(shared_out(samples, &bytes)) {
            if let Some(samples) = &mut cost.samples {
                *samples = samples.saturating_add(share);
            }
        }
    }

    /// How many bytes were taken.
    fn bytes(&self) -> u64 {
        let regions = self.taken.values();
        regions.fold(0, |sum, it| sum.saturating_add(it.1))
    }

    /// Adds what interpreters of a language did.
    pub fn add_costs(
        &self,
        language: Language,
        sources: &Sources,
        here: &Path,
        to: &mut RuntimeCosts,
    ) {
        let charge = |place: ChargePlace, number: u32, samples: u64| RuntimeCharge {
            language,
            place,
            at: self.code.get(number as usize).copied().flatten(),
            samples,
        };
        let collector = self.collector.iter();
        let collector = collector.map(|it| charge(ChargePlace::Collector, *it.0, *it.1));
        let nothing = self.nothing.iter();
        let nothing = nothing.map(|it| charge(ChargePlace::Nothing, *it.0, *it.1));
        let operations = sources.charges.iter().map(|it| {
            let place = ChargePlace::Operation {
                file: found_from(here, &it.file),
                line: it.line,
                column: it.column,
                kind: it.kind.clone(),
            };
            charge(place, it.routine, it.samples)
        });
        let first = to.charges.len();
        to.charges
            .extend(collector.chain(nothing).chain(operations));
        to.charges[first..].sort();
        to.regions.extend(self.regions(language));
    }

    /// What became of each region, as far as anything did.
    fn regions(&self, language: Language) -> Vec<RegionUse> {
        if self.taken.is_empty() && self.storage.is_empty() {
            return Vec::new();
        }
        let mut regions: BTreeMap<StorageRegion, RegionUse> = BTreeMap::new();
        let of = |region| RegionUse::new(language, region);
        for (region, (requests, bytes)) in &self.taken {
            let it = regions.entry(*region).or_insert_with(|| of(*region));
            (it.requests, it.bytes) = (*requests, *bytes);
        }
        for (event, sum) in &self.storage {
            let (StorageEvent::Collected(region)
            | StorageEvent::Recovered(region)
            | StorageEvent::Expanded(region)) = event;
            let it = regions.entry(*region).or_insert_with(|| of(*region));
            let amount = sum.amount.max(0).cast_unsigned();
            match event {
                StorageEvent::Collected(_) => (it.collections, it.collecting) = (sum.count, amount),
                StorageEvent::Recovered(_) => it.recovered = amount,
                StorageEvent::Expanded(_) => (it.expansions, it.expanding) = (sum.count, amount),
            }
        }
        for (region, bytes) in &self.of_nothing {
            if let Some(it) = regions.get_mut(region) {
                it.of_nothing = *bytes;
            }
        }
        regions.into_values().collect()
    }
}

/// Where the runtime was; modules have the journal's numbers.
fn code(at: Option<CodeAt>) -> Option<CodePoint> {
    match at {
        Some(CodeAt::Module(build, at)) => Some(CodePoint {
            build,
            at: LinkAddr(at),
        }),
        _ => None,
    }
}
