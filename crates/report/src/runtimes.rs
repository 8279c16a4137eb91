//! What the runtime of interpreters did for the programs that they ran.

use crate::Error;
use crate::demangle::demangle;
use crate::report::Request;
use crate::table::{Cell, Row};
use crate::tokens;
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
    let mut sums: BTreeMap<Vec<Field>, (u64, u64)> = BTreeMap::new();
    for costs in request.runtimes {
        let wanted = |it: &&RuntimeCharge| request.only.wants_language(it.language);
        for charge in costs.charges.iter().filter(wanted) {
            let cells = place(charge, &texts);
            let (routine, module) = routines.of(costs, charge.at);
            let routine = match request.demangle {
                true => demangle(routine).into_owned(),
                false => routine.to_owned(),
            };
            let key = cells
                .into_iter()
                .chain([Field::Text(routine), Field::Text(module.to_owned())]);
            let sum = sums.entry(key.collect()).or_default();
            sum.0 = sum.0.saturating_add(charge.samples);
            let time = charge.samples.saturating_mul(costs.interval);
            sum.1 = sum.1.saturating_add(time);
        }
    }
    let row = |(key, (samples, time)): (Vec<Field>, (u64, u64))| {
        let cells = key.into_iter().map(Field::cell);
        row(cells.chain([Cell::Number(samples), Cell::Number(time)]))
    };
    Ok(sums.into_iter().map(row).collect())
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

fn row(cells: impl Iterator<Item = Cell>) -> Row {
    Row {
        cells: cells.collect(),
        counted: true,
        ran: true,
        ..Row::default()
    }
}

/// The texts of tokens, by file, line, column and kind.
type Texts = HashMap<(String, u64, u64, String), String>;

/// A field of a row, as far as such rows have any.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Text(String),
    Number(u64),
}

impl Field {
    fn cell(self) -> Cell {
        match self {
            Self::Text(text) => Cell::Text(text.into()),
            Self::Number(number) => Cell::Number(number),
        }
    }
}

/// Language, file, line, column, kind and text of what a charge is for.
fn place(charge: &RuntimeCharge, texts: &Texts) -> [Field; 6] {
    let (file, line, column, kind) = match &charge.place {
        ChargePlace::Collector => (COLLECTOR, 0, 0, ""),
        ChargePlace::Nothing => (NO_TOKEN, 0, 0, ""),
        ChargePlace::Operation {
            file,
            line,
            column,
            kind,
        } => (&**file, u64::from(*line), u64::from(*column), &**kind),
    };
    let key = (file.to_owned(), line, column, kind.to_owned());
    let text = texts.get(&key).cloned().unwrap_or_default();
    let words = |it: &str| Field::Text(it.to_owned());
    [
        words(charge.language.name()),
        words(file),
        Field::Number(line),
        Field::Number(column),
        words(kind),
        Field::Text(text),
    ]
}

/// What the tokens are.
fn texts(counted: &[Counted], request: &Request<'_>) -> Result<Texts, Error> {
    let rows = tokens::rows(counted, request)?;
    let known = rows.iter().filter_map(|row| match &row.cells[..] {
        [
            _,
            Cell::Text(file),
            line,
            column,
            Cell::Text(kind),
            Cell::Text(text),
            ..,
        ] => {
            let key = (
                file.to_string(),
                line.amount(),
                column.amount(),
                kind.to_string(),
            );
            Some((key, text.to_string()))
        }
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
