//! What the runtime did for each token of a program.

use std::collections::{BTreeMap, HashMap};

use headcount_icon::{Icode, Joined, Token};

use crate::{Charge, Measured, TokenCost};

/// Which token: the number of its translation, and its own.
type Which = (usize, u32);

/// What was measured of a program, by token.
pub(super) struct Costs {
    tokens: HashMap<Which, TokenCost>,
    /// Samples by what the runtime did.
    samples: HashMap<Which, BTreeMap<u32, u64>>,
    /// Where nothing was found of a token.
    unmeasured: TokenCost,
    /// Samples in procedures whose source is not there.
    pub(super) elsewhere: Vec<Charge>,
}

impl Costs {
    pub(super) fn new(icode: &Icode, joined: &Joined<'_>, measured: &Measured) -> Self {
        let owners = Owners::new(icode, joined);
        let unmeasured = TokenCost {
            resumptions: measured.runtime.is_some().then_some(0),
            bytes: measured.runtime.is_some().then_some(0),
            samples: measured.samples.is_some().then_some(0),
        };
        let mut costs = Self {
            tokens: HashMap::new(),
            samples: HashMap::new(),
            unmeasured,
            elsewhere: Vec::new(),
        };
        if let Some(runtime) = &measured.runtime {
            for (offset, times) in &runtime.resumptions {
                costs.add(&owners, *offset, |it| it.resumptions.as_mut(), *times);
            }
            for (offset, bytes) in &runtime.bytes {
                let bytes = u64::try_from(*bytes).unwrap_or(0);
                costs.add(&owners, *offset, |it| it.bytes.as_mut(), bytes);
            }
        }
        for ((offset, routine), samples) in measured.samples.iter().flatten() {
            costs.add(&owners, *offset, |it| it.samples.as_mut(), *samples);
            match owners.at(*offset) {
                Some(token) => {
                    let routines = costs.samples.entry(token).or_default();
                    *routines.entry(*routine).or_default() += samples;
                }
                None => {
                    let charge = charge_of(icode, *offset, *routine, *samples);
                    costs.elsewhere.extend(charge);
                }
            }
        }
        costs
    }

    fn add(
        &mut self,
        owners: &Owners,
        offset: usize,
        which: impl Fn(&mut TokenCost) -> Option<&mut u64>,
        more: u64,
    ) {
        if let Some(token) = owners.at(offset) {
            let cost = self.tokens.entry(token).or_insert(self.unmeasured);
            if let Some(sum) = which(cost) {
                *sum = sum.saturating_add(more);
            }
        }
    }

    /// What the runtime did for a token.
    pub(super) fn of(&self, translation: usize, token: &Token) -> TokenCost {
        let found = self.tokens.get(&(translation, token.number));
        found.copied().unwrap_or(self.unmeasured)
    }

    /// In which routines of it a token was found, and how often.
    pub(super) fn routines(
        &self,
        translation: usize,
        token: &Token,
    ) -> impl Iterator<Item = (u32, u64)> {
        let found = self.samples.get(&(translation, token.number));
        let found = found.into_iter().flatten();
        found.map(|(routine, samples)| (*routine, *samples))
    }
}

/// A sample in a procedure whose source is not there: its line is known.
fn charge_of(icode: &Icode, offset: usize, routine: u32, samples: u64) -> Option<Charge> {
    let at = offset as u64;
    let mut procedures = icode.procedures.iter();
    let linked = procedures.find(|it| (it.entry..it.end).contains(&at))?;
    let places = icode.places(linked.entry, linked.end);
    let place = places.iter().rev().find(|it| it.offset <= at);
    Some(Charge {
        file: String::from_utf8_lossy(&linked.file).into_owned(),
        line: place.map_or(0, |it| it.line),
        column: 0,
        kind: String::new(),
        routine,
        samples,
    })
}

/// Whose each instruction of a program is. One that no token says is of the token before it: that one is still
/// being executed.
struct Owners(Vec<(u64, Option<Which>)>);

impl Owners {
    fn new(icode: &Icode, joined: &Joined<'_>) -> Self {
        let mut all = Vec::new();
        for linked in &icode.procedures {
            let token = |offset| {
                let (translation, token) = joined.token(offset)?;
                Some((translation, token.number))
            };
            let mut offsets = linked.instructions.iter().map(|it| it.offset);
            let mut last = offsets.find_map(token);
            for it in &linked.instructions {
                last = token(it.offset).or(last);
                all.push((it.offset, last));
            }
            all.push((linked.end, None));
        }
        all.sort_by_key(|it| it.0);
        Self(all)
    }

    /// The token that has an instruction with something at an offset.
    fn at(&self, offset: usize) -> Option<Which> {
        let behind = self.0.partition_point(|it| it.0 <= offset as u64);
        self.0.get(behind.checked_sub(1)?)?.1
    }
}
