//! Where were functions inlined, and what did those copies execute?

use super::files::Files;
use super::functions::Functions;
use super::{may_have_run, value};
use crate::Error;
use crate::inlined::tallies;
use crate::names::origin;
use crate::rows::Tally;
use headcount_model::FileId;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Every place where a function of the page was inlined into one that ran: callee, caller, file and
/// line of the call, and the instructions that its copies executed there.
pub fn inlined(functions: &Functions<'_>, files: &Files) -> Result<Value, Error> {
    let by_source = by_source(functions);
    let mut all = Vec::new();
    for (caller, it) in functions.list.iter().enumerate() {
        if !may_have_run(it.tally.executed) {
            continue;
        }
        let mut sums: BTreeMap<(usize, FileId, u32), Tally> = BTreeMap::new();
        for (copy, tally) in tallies(&it.named)? {
            let call = &it.named.function.compiled.inlined[copy];
            let callee = call.callee.and_then(|at| by_source.get(&(it.module, at)));
            if let Some(callee) = callee {
                let sum = sums.entry((*callee, call.file, call.line)).or_default();
                sum.join(tally)?;
            }
        }
        for ((callee, file, line), tally) in sums {
            let file = it.named.file(file).and_then(|it| files.place(it));
            let file = file.map_or(Value::from(-1), Value::from);
            let executed = value::count(tally.executed);
            all.push(json!([callee, caller, file, line, executed]));
        }
    }
    Ok(Value::from(all))
}

/// The functions by where their source begins, in each module. Of several, it is the function itself
/// rather than a part or a copy of it, or else the first.
fn by_source(functions: &Functions<'_>) -> HashMap<(usize, (FileId, u32)), usize> {
    let mut places = HashMap::new();
    for (place, it) in functions.list.iter().enumerate() {
        let Some(source @ (_, 1..)) = it.named.function.source else {
            continue;
        };
        let is_made = |place: usize| {
            let name = &functions.list[place].named.function.name;
            origin(name) != name
        };
        let known = places.entry((it.module, source)).or_insert(place);
        if is_made(*known) && !is_made(place) {
            *known = place;
        }
    }
    places
}
