//! Where indirect calls and jumps went, in runs that were asked for it (`run --targets`): exact.

use crate::callees::{Callee, FunctionId, Site, places};
use crate::count::Count;
use headcount_model::{CodePoint, Counted, Key, LinkAddr, ValueCounts};
use std::collections::{BTreeMap, HashMap};

/// Whom an instruction led to, and how often.
pub type Callees = BTreeMap<FunctionId, u64>;

/// The same of all indirect calls and jumps, by module and address.
pub type Targets = HashMap<(usize, LinkAddr), Callees>;

/// Those that led to functions that are counted. Jumps to the midst of one, and to code of other
/// modules, are not in there.
pub fn targets(counted: &[Counted], values: &[ValueCounts]) -> Targets {
    let mut targets = Targets::new();
    let is_asked = values.iter().flat_map(|it| &it.tallies);
    if !is_asked.clone().any(|it| it.is_targets) {
        return targets;
    }
    let modules = Modules::of(counted);
    for found in values {
        let tallies = found.tallies.iter().filter(|it| it.is_targets);
        for row in tallies.flat_map(|it| &it.rows) {
            let (Some(place), Key::Code(to)) = (row.place, row.key) else {
                continue;
            };
            let site = modules.number(found, place).map(|it| (it, place.at));
            if let (Some(site), Some(callee)) = (site, modules.entered(found, to)) {
                let sum = targets.entry(site).or_default().entry(callee).or_default();
                *sum = sum.saturating_add(row.count);
            }
        }
    }
    targets
}

/// The modules by build, and where their functions are.
struct Modules<'a> {
    counted: &'a [Counted],
    numbers: HashMap<&'a str, usize>,
    places: Vec<HashMap<LinkAddr, usize>>,
}

impl<'a> Modules<'a> {
    fn of(counted: &'a [Counted]) -> Self {
        let builds = counted.iter().map(|it| it.module.build_id.as_str());
        let functions = counted.iter().map(|it| &it.module.functions);
        Self {
            counted,
            numbers: builds.zip(0..).collect(),
            places: functions.map(|it| places(it)).collect(),
        }
    }

    fn number(&self, values: &ValueCounts, point: CodePoint) -> Option<usize> {
        let build = values.builds.get(point.build as usize)?;
        self.numbers.get(build.as_str()).copied()
    }

    /// The function that begins at a point.
    fn entered(&self, values: &ValueCounts, point: CodePoint) -> Option<FunctionId> {
        let module = self.number(values, point)?;
        let index = *self.places[module].get(&point.at)?;
        let function = &self.counted[module].module.functions[index];
        (function.address == point.at).then_some((module, index))
    }
}

/// How often calls led elsewhere, of so many whose callees are known. `None`: they are less than that,
/// and nobody knows which of the two is wrong; the report of values says so.
pub fn rest(callees: &Callees, count: Count) -> Option<Count> {
    let known = callees.values().copied().fold(0, u64::saturating_add);
    match count {
        Count::Exact(all) => all.checked_sub(known).map(Count::Exact),
        Count::AtLeast(all) => Some(Count::AtLeast(all.saturating_sub(known))),
        Count::Unknown => None,
    }
}

/// A call or a jump of a function: one for every function that it led to, and one for what is left.
pub fn refined(targets: &Targets, of: FunctionId, site: Site) -> Vec<Site> {
    let found = targets.get(&(of.0, site.address));
    let found = found.filter(|_| site.callee == Callee::Unknown).cloned();
    let found = found.map(|mut it| {
        // Jumps to where the function itself begins may be loops, which do not leave it.
        it.retain(|callee, _| site.is_call || *callee != of);
        it
    });
    let Some((rest, found)) = found.and_then(|it| Some((rest(&it, site.count)?, it))) else {
        return vec![site];
    };
    let sites = found.iter().map(|(callee, count)| Site {
        callee: Callee::Function(*callee),
        count: Count::Exact(*count),
        ..site.clone()
    });
    let rest = (!rest.is_never()).then(|| Site {
        count: rest,
        ..site.clone()
    });
    sites.chain(rest).collect()
}
