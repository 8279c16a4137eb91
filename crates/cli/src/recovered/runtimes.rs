//! What interpreters did for the programs that they ran: from what was found to the costs of operations.

use std::collections::BTreeMap;
use std::path::Path;

use headcount_language::{
    Language, Measured, NO_FETCH, OfRuntime, SourceUnit, Sources, TokenCost, shared_out,
};
use headcount_model::{
    ChargePlace, CodePoint, KeyKind, LinkAddr, OfProgram, RegionUse, RuntimeCharge, RuntimeCosts,
    StorageEvent, StorageRegion,
};
use headcount_monitor::values::{self, CodeAt, FoundKey, Sum, Values};

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
    code: Numbered,
    /// Samples while storage was collected, and for no operation, by such numbers.
    collector: BTreeMap<u32, u64>,
    nothing: BTreeMap<u32, u64>,
    /// What was taken of storage, by region.
    taken: BTreeMap<StorageRegion, Taken>,
    storage: BTreeMap<StorageEvent, Sum>,
}

/// Instructions of runtimes, each with a number.
#[derive(Default)]
struct Numbered {
    all: Vec<Option<CodePoint>>,
    numbers: BTreeMap<Option<CodePoint>, u32>,
}

impl Numbered {
    fn number(&mut self, of: Option<CodePoint>) -> u32 {
        *self.numbers.entry(of).or_insert_with(|| {
            self.all.push(of);
            self.all.len() as u32 - 1
        })
    }
}

/// What was taken of a region.
#[derive(Clone, Copy, Default)]
struct Taken {
    requests: u64,
    /// Less what was given back.
    bytes: i64,
    /// How many of these for no piece of program.
    of_nothing: i64,
}

/// Is the runtime of a language measured? Did a clock run?
#[derive(Clone, Copy)]
pub struct IsMeasured {
    pub runtime: bool,
    pub time: bool,
}

impl Found {
    /// `what` knows what was counted at a place of the tally, if it is of this language.
    pub fn new(
        values: &Values,
        tally: u8,
        what: impl Fn(u16) -> Option<OfProgram>,
        is_measured: IsMeasured,
    ) -> Self {
        let mut all = Self::default();
        let found = values.found.iter().filter(|it| it.0.tally == tally);
        for (found, sum) in found {
            if let Some(what) = what(found.place) {
                all.take(what, found, *sum, is_measured);
            }
        }
        all
    }

    fn take(&mut self, what: OfProgram, found: &values::Found, sum: Sum, is_measured: IsMeasured) {
        let empty = || Measured {
            runtime: is_measured.runtime.then(OfRuntime::default),
            samples: is_measured.time.then(BTreeMap::new),
            ..Measured::default()
        };
        let piece = match found.key {
            FoundKey::Piece(number, offset) => {
                let piece = self.pieces.entry(number).or_insert_with(empty);
                Some((piece, offset as usize))
            }
            _ => None,
        };
        match what {
            OfProgram::Instructions => {
                self.instructions = self.instructions.saturating_add(sum.count);
                match piece {
                    Some((it, offset)) => add(&mut it.executed, offset, sum.count),
                    None if found.key == FoundKey::Number(NO_FETCH.cast_signed()) => {}
                    None => self.lost = self.lost.saturating_add(sum.count),
                }
            }
            OfProgram::Resumptions => {
                if let Some((it, offset)) = piece {
                    let runtime = it.runtime.get_or_insert_default();
                    add(&mut runtime.resumptions, offset, sum.count);
                }
            }
            OfProgram::Strings => self.take_storage(StorageRegion::String, found, sum),
            OfProgram::Blocks => self.take_storage(StorageRegion::Block, found, sum),
            OfProgram::Storage => {
                if let FoundKey::Number(code) = found.key
                    && let Some(event) = StorageEvent::from_code(code)
                {
                    let all = self.storage.entry(event).or_default();
                    all.count = all.count.saturating_add(sum.count);
                    all.amount = all.amount.saturating_add(sum.amount);
                }
            }
            OfProgram::Samples => {
                let number = self.code.number(code(found.by));
                match (piece, found.key) {
                    (Some((it, offset)), _) => {
                        let samples = it.samples.get_or_insert_default();
                        add(samples, (offset, number), sum.count);
                    }
                    (None, FoundKey::Kind(KeyKind::Other)) => {
                        add(&mut self.collector, number, sum.count);
                    }
                    (None, _) => add(&mut self.nothing, number, sum.count),
                }
            }
        }
    }

    fn take_storage(&mut self, region: StorageRegion, found: &values::Found, sum: Sum) {
        let taken = self.taken.entry(region).or_default();
        taken.bytes = taken.bytes.saturating_add(sum.amount);
        // To give some back is no request.
        if sum.amount >= 0 {
            taken.requests = taken.requests.saturating_add(sum.count);
        }
        match found.key {
            FoundKey::Piece(number, offset) => {
                let it = self.pieces.entry(number).or_default();
                let bytes = &mut it.runtime.get_or_insert_default().bytes;
                let bytes = bytes.entry(offset as usize).or_default();
                *bytes = bytes.saturating_add(sum.amount);
            }
            _ => taken.of_nothing = taken.of_nothing.saturating_add(sum.amount),
        }
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
        let known = bytes.iter().copied().fold(0, u64::saturating_add);
        bytes.push(self.bytes().saturating_sub(known));
        for (cost, share) in costs.iter_mut().zip(shared_out(samples, &bytes)) {
            if let Some(samples) = &mut cost.samples {
                *samples = samples.saturating_add(share);
            }
        }
    }

    /// How many bytes were taken.
    fn bytes(&self) -> u64 {
        let regions = self.taken.values().map(|it| positive(it.bytes));
        regions.fold(0, u64::saturating_add)
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
            at: self.code.all.get(number as usize).copied().flatten(),
            samples,
        };
        let collector = self.collector.iter();
        let collector = collector.map(|it| charge(ChargePlace::Collector, *it.0, *it.1));
        let nothing = self.nothing.iter();
        let nothing = nothing.map(|it| charge(ChargePlace::Nothing, *it.0, *it.1));
        let operations = sources.charges.iter().map(|it| {
            let place = match it.file.is_empty() {
                true => ChargePlace::Nothing,
                false => ChargePlace::Operation {
                    file: found_from(here, &it.file),
                    line: it.line,
                    column: it.column,
                    kind: it.kind.clone(),
                },
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
        for (region, taken) in &self.taken {
            let it = regions.entry(*region).or_insert_with(|| of(*region));
            it.requests = taken.requests;
            it.bytes = positive(taken.bytes);
            it.of_nothing = positive(taken.of_nothing);
        }
        for (event, sum) in &self.storage {
            let (StorageEvent::Collected(region)
            | StorageEvent::Recovered(region)
            | StorageEvent::Expanded(region)) = event;
            let it = regions.entry(*region).or_insert_with(|| of(*region));
            let amount = positive(sum.amount);
            match event {
                StorageEvent::Collected(_) => (it.collections, it.collecting) = (sum.count, amount),
                StorageEvent::Recovered(_) => it.recovered = amount,
                StorageEvent::Expanded(_) => (it.expansions, it.expanding) = (sum.count, amount),
            }
        }
        regions.into_values().collect()
    }
}

fn add<K: Ord>(to: &mut BTreeMap<K, u64>, key: K, more: u64) {
    let sum = to.entry(key).or_default();
    *sum = sum.saturating_add(more);
}

fn positive(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
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
