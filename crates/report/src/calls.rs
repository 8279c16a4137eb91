//! Call sites: who called whom, and how often.

use crate::Error;
use crate::count::CountedBlock;
use crate::events::FunctionEvents;
use crate::names::{Named, functions};
use crate::report::Request;
use crate::rows::{by_address, name_library, row};
use crate::table::{Cell, Row};
use headcount_model::{Counted, LinkAddr};
use std::collections::HashMap;
use std::sync::Arc;

/// What stands for a function that only the run knows.
const INDIRECT: &str = "*";

/// A row for every call instruction, in the order of the program.
pub fn calls(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for module in counted {
        let named = functions(module, request.demangle);
        let names = names(&named);
        for caller in named.iter().filter(|it| request.only.wants(it)) {
            let before = rows.len();
            of_function(caller, &names, request, &mut rows)?;
            name_library(caller, request, &mut rows[before..]);
        }
    }
    Ok(rows)
}

/// The names of functions, by their entries.
pub fn names(all: &[Named<'_>]) -> HashMap<LinkAddr, Arc<str>> {
    let name = |it: &Named<'_>| (it.function.address, it.name.clone());
    all.iter().map(name).collect()
}

/// File and line of an instruction.
fn place(named: &Named<'_>, block: &CountedBlock<'_>, index: u32) -> Option<(Arc<str>, u32)> {
    let runs = block.block.lines.iter().zip(block.line_ranges());
    let mut here = runs.filter(|(run, range)| range.contains(&index) && run.line != 0);
    let (run, _) = here.next()?;
    Some((named.file(run.file)?.into(), run.line))
}

/// The rows of one caller.
pub fn of_function(
    caller: &Named<'_>,
    names: &HashMap<LinkAddr, Arc<str>>,
    request: &Request<'_>,
    rows: &mut Vec<Row>,
) -> Result<(), Error> {
    let linkage_name: Arc<str> = caller.function.name.as_str().into();
    let events = FunctionEvents::new(caller, &request.events);
    for block in by_address(caller) {
        let events = events.block(&block);
        let mut before = 0;
        for span in &block.block.code {
            for (index, address, target) in (request.calls)(span) {
                let number = before + index;
                let count = block.at(number);
                let callee = match target {
                    None => INDIRECT.into(),
                    Some(target) => names
                        .get(&target)
                        .cloned()
                        .unwrap_or_else(|| target.to_string().into()),
                };
                let rest = vec![
                    Cell::Address(Some(address)),
                    Cell::Text(callee),
                    Cell::Count(count),
                ];
                rows.push(Row {
                    events: events.of(number..number + 1)?,
                    place: place(caller, &block, before + index),
                    ..row(caller, &linkage_name, count, rest)
                });
            }
            before += (request.decode)(span).len() as u32;
        }
    }
    Ok(())
}
