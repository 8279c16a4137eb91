//! A text, counted: read, planned, and with probes put in.

use std::path::Path;

use headcount_csource::map::TextMap;
use headcount_csource::{Dialect, Fault, Options, Source, Unit, UnitPlan, Unreadable};
use headcount_flow::Frequencies;
use headcount_model::Refusal;

use super::portable::NEEDED;

/// A counted text and the map of its counters.
pub struct Counted {
    pub text: Vec<u8>,
    pub map: TextMap,
    /// What the portable runtime needs, and the text declares already.
    pub declared: Vec<&'static str>,
    pub is_raw: bool,
    /// How many of the map's refusals, the last, are about macros that were not expanded.
    pub unexpanded: usize,
}

/// How to count.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// How to read the text.
    pub options: Options,
    /// Give every block a counter of its own.
    pub every_block: bool,
    /// The folder that relative names of files start from.
    pub folder: String,
}

/// Counts a text.
pub fn count(text: &[u8], wish: &Wish, dialect: &dyn Dialect) -> Result<Counted, Unreadable> {
    let mut source = Source::parse(text, &wish.options)?;
    if !wish.options.is_raw {
        take_columns(&mut source, &wish.folder);
    }
    let plans: Vec<UnitPlan> = source
        .units
        .iter()
        .map(|unit| plan(unit, wish.every_block))
        .collect();
    let mut refusals = untold(&source, &plans);
    refusals.extend_from_slice(&source.unexpanded);
    let mut map = TextMap::new(&source, &plans, &wish.options.name, &refusals);
    for file in &mut map.files {
        if !file.starts_with(['/', '<']) && !wish.folder.is_empty() {
            *file = headcount_model::source_path(&wish.folder, file);
        }
    }
    Ok(Counted {
        text: headcount_csource::insert(&source, &plans, dialect, fault()),
        declared: NEEDED
            .into_iter()
            .filter(|it| source.declares(it))
            .collect(),
        is_raw: wish.options.is_raw,
        unexpanded: source.unexpanded.len(),
        map,
    })
}

/// A wrong inserter on purpose, so that tests can tell whether they would notice.
fn fault() -> Option<Fault> {
    let wanted = std::env::var("HEADCOUNT_TEST_BREAK").ok()?;
    match wanted.as_str() {
        _ if !cfg!(debug_assertions) => None,
        "braces" => Some(Fault::NoBraces),
        "arms" => Some(Fault::FirstStatementsDropped),
        _ => None,
    }
}

/// Looks up the columns that preprocessing lost. Where a file is not to be found, its columns are
/// those of the preprocessed text.
fn take_columns(source: &mut Source, folder: &str) {
    for file in source.files_with_functions() {
        let path = Path::new(folder).join(&source.files()[file as usize]);
        if let Ok(written) = std::fs::read(path) {
            source.take_columns(file, &written);
        }
    }
}

/// Few counters, from which all counts follow; or, where that cannot be, one for each block.
fn plan(unit: &Unit, every_block: bool) -> UnitPlan {
    if every_block {
        return headcount_csource::every_block(unit);
    }
    let guess = headcount_flow::frequencies(&unit.hints, &unit.cold);
    let frequencies = Frequencies {
        edges: guess.edges[..unit.graph.edges.len()].to_vec(),
        blocks: guess.blocks,
    };
    match headcount_flow::place_counters(&unit.graph, &frequencies, &unit.costs) {
        Ok(plan) => UnitPlan {
            plan,
            every_block: false,
        },
        Err(_) => headcount_csource::every_block(unit),
    }
}

/// Blocks whose count nothing tells.
fn untold(source: &Source, plans: &[UnitPlan]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for (unit, plan) in source.units.iter().zip(plans) {
        for token in headcount_csource::untold(unit, plan) {
            let at = source.position(token);
            refusals.push(Refusal {
                subject: unit.name.clone(),
                file: source.file(at).to_owned(),
                line: at.line,
                reason: "an operand that must stay as it is, and whose count nothing else tells"
                    .to_owned(),
            });
        }
    }
    refusals
}
