//! What the runtime of interpreters did for the programs that they ran.

use crate::Error;
use crate::demangle::demangle;
use crate::report::Request;
use crate::table::{Cell, Row};
use crate::tokens::{self, TokenPlace};
use headcount_model::{
    ChargePlace, CodePoint, Counted, LinkAddr, RegionUse, RuntimeCharge, RuntimeCosts,
};
use std::collections::{BTreeMap, HashMap};

/// Stands for a token where storage was collected for all of them.
pub const COLLECTOR: &str = "(collector)";

/// Stands for a token where none was being executed.
pub const NO_TOKEN: &str = "(no token)";

/// Stands for a routine in code that is not counted.
const ELSEWHERE: &str = "(code that is not counted)";

/// A row for each token and each routine that ran on its behalf, by the number of samples.
pub fn charges(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let routines = Routines::new(counted);
    let texts = texts(counted, request)?;
    // By language, token, routine and module: samples, and nanoseconds.
    let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for costs in request.runtimes {
        let wanted = |it: &&RuntimeCharge| request.only.wants_language(it.language);
        for charge in costs.charges.iter().filter(wanted) {
            let key = (
                charge.language,
                &charge.place,
                routines.of(costs, charge.at),
            );
            let sum = sums.entry(key).or_default();
            sum.0 = sum.0.saturating_add(charge.samples);
            let time = charge.samples.saturating_mul(costs.interval);
            sum.1 = sum.1.saturating_add(time);
        }
    }
    let words = |it: &str| Cell::Text(it.into());
    let rows = sums.into_iter().map(|(key, (samples, time))| {
        let (language, place, (routine, module)) = key;
        let routine = match request.demangle {
            true => demangle(routine),
            false => routine.into(),
        };
        let token = TokenPlace::of_charge(place).unwrap_or_else(|| TokenPlace {
            file: match place {
                ChargePlace::Collector => COLLECTOR.to_owned(),
                _ => NO_TOKEN.to_owned(),
            },
            line: 0,
            column: 0,
            kind: String::new(),
        });
        let text = texts.get(&token).map_or("", String::as_str);
        row([
            words(language.name()),
            words(&token.file),
            Cell::Number(token.line),
            Cell::Number(token.column),
            words(&token.kind),
            words(text),
            words(&routine),
            words(module),
            Cell::Number(samples),
            Cell::Number(time),
        ])
    });
    Ok(rows.collect())
}

/// A row for each region of each language's storage.
pub fn storage(request: &Request<'_>) -> Vec<Row> {
    let mut sums: BTreeMap<_, RegionUse> = BTreeMap::new();
    let regions = request.runtimes.iter().flat_map(|it| &it.regions);
    for it in regions.filter(|it| request.only.wants_language(it.language)) {
        let empty = || RegionUse::new(it.language, it.region);
        let sum = sums.entry((it.language, it.region));
        sum.or_insert_with(empty).add(*it);
    }
    let row = |it: RegionUse| {
        let words = [it.language.name(), it.region.name()].map(|it| Cell::Text(it.into()));
        let numbers = [
            it.requests,
            it.bytes,
            it.of_nothing,
            it.collections,
            it.recovered,
            it.expansions,
            it.collecting,
            it.expanding,
        ];
        row(words.into_iter().chain(numbers.map(Cell::Number)))
    };
    sums.into_values().map(row).collect()
}

fn row(cells: impl IntoIterator<Item = Cell>) -> Row {
    Row {
        cells: cells.into_iter().collect(),
        counted: true,
        ran: true,
        ..Row::default()
    }
}

/// The texts of tokens.
fn texts(counted: &[Counted], request: &Request<'_>) -> Result<HashMap<TokenPlace, String>, Error> {
    let rows = tokens::rows(counted, request)?;
    let known = rows.iter().filter_map(|row| match &row.cells[5] {
        Cell::Text(text) => Some((TokenPlace::of_row(row)?, text.to_string())),
        _ => None,
    });
    Ok(known.collect())
}

/// The functions of builds, by address.
struct Routines<'a>(HashMap<&'a str, Build<'a>>);

/// A module, and where its functions begin, in order.
struct Build<'a> {
    path: &'a str,
    functions: Vec<(LinkAddr, &'a str)>,
}

impl<'a> Routines<'a> {
    fn new(counted: &'a [Counted]) -> Self {
        let builds = counted.iter().map(|it| {
            let functions = it.module.functions.iter();
            let mut functions: Vec<_> = functions.map(|it| (it.address, &*it.name)).collect();
            functions.sort_unstable();
            let build = Build {
                path: &it.module.path,
                functions,
            };
            (&*it.module.build_id, build)
        });
        Self(builds.collect())
    }

    /// The routine that an instruction is in, and the path of its module.
    fn of(&self, costs: &RuntimeCosts, at: Option<CodePoint>) -> (&'a str, &'a str) {
        let found = at.and_then(|it| {
            let build = costs.builds.get(it.build as usize)?;
            let Build { path, functions } = self.0.get(build.as_str())?;
            let behind = functions.partition_point(|(start, _)| *start <= it.at);
            let (_, name) = functions.get(behind.checked_sub(1)?)?;
            Some((*name, *path))
        });
        found.unwrap_or((ELSEWHERE, ""))
    }
}
