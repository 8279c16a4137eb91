//! Call sites: who called whom, and how often.

use crate::Error;
use crate::callees::{Callee, Callees, Site};
use crate::count::{Count, CountedBlock};
use crate::events::FunctionEvents;
use crate::names::{Named, functions};
use crate::report::Request;
use crate::rows::{name_library, row};
use crate::table::{Cell, Row};
use headcount_model::{Counted, LinkAddr};
use std::collections::HashMap;
use std::sync::Arc;

/// What stands for a function that only the run knows.
pub const INDIRECT: &str = "*";

/// A row for every call instruction, in the order of the program.
pub fn calls(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let callees = request.callees(counted);
    let mut rows = Vec::new();
    for (module, it) in counted.iter().enumerate() {
        let named = functions(it, request.demangle);
        for caller in named.iter().filter(|it| request.only.wants(it)) {
            let before = rows.len();
            of_function(module, caller, &callees, request, &mut rows)?;
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

/// How a callee is shown.
pub fn text_of(callees: &Callees<'_>, callee: &Callee, demangle: bool) -> Arc<str> {
    let shown = |name: &str| match demangle {
        true => crate::demangle(name).as_ref().into(),
        false => name.into(),
    };
    match callee {
        Callee::Function(id) => shown(callees.name(*id)),
        Callee::Named(name) => shown(name),
        Callee::Address(address) => address.to_string().into(),
        Callee::Unknown => INDIRECT.into(),
    }
}

/// File and line of an instruction.
pub fn place(named: &Named<'_>, block: &CountedBlock<'_>, index: u32) -> Option<(Arc<str>, u32)> {
    let runs = block.block.lines.iter().zip(block.line_ranges());
    let mut here = runs.filter(|(run, range)| range.contains(&index) && run.line != 0);
    let (run, _) = here.next()?;
    Some((named.file(run.file)?.into(), run.line))
}

/// What a call cost with all that was called from there.
fn inclusive(site: &Site) -> Cell {
    Cell::Count(match site.inclusive {
        Some(cost) => Count::Exact(cost),
        None if site.count.is_never() => Count::Exact(0),
        None => Count::Unknown,
    })
}

/// The rows of one caller.
pub fn of_function(
    module: usize,
    caller: &Named<'_>,
    callees: &Callees<'_>,
    request: &Request<'_>,
    rows: &mut Vec<Row>,
) -> Result<(), Error> {
    let linkage_name: Arc<str> = caller.function.name.as_str().into();
    let events = FunctionEvents::new(caller, &request.events);
    let blocks: Vec<CountedBlock<'_>> = caller.blocks().collect();
    let mut sites = callees.sites(module, caller);
    if let Some(exact) = request.calls {
        let id = (module, caller.index);
        sites = exact.refine(id, caller.function.address, sites);
    }
    for site in sites.into_iter().filter(|it| it.is_call) {
        let block = &blocks[site.block];
        let mut rest = vec![
            Cell::Address(Some(site.address)),
            Cell::Text(text_of(callees, &site.callee, request.demangle)),
            Cell::Count(site.count),
        ];
        rest.extend(request.calls.map(|_| inclusive(&site)));
        rows.push(Row {
            events: events.block(block).of(site.index..site.index + 1)?,
            place: place(caller, block, site.index),
            ..row(caller, &linkage_name, site.count, rest)
        });
    }
    Ok(())
}
