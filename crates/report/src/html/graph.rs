//! The call graph, for the page: what its call tree by instructions is made of.

use super::functions::Functions;
use super::{Page, value};
use crate::Error;
use crate::call_graph::{CallGraph, Node};
use crate::callees::Callees;
use crate::exact_calls::ExactCalls;
use serde_json::{Value, json};

/// The functions that ran (place in the index, instructions executed in itself, and with all that it
/// calls) and who calls whom (caller or -1, callee, what that cost). Costs are exact where
/// a run was asked for them; else all but their own are estimates.
pub fn graph<'a>(
    page: &Page<'a>,
    callees: &Callees<'a>,
    functions: &Functions<'_>,
) -> Result<Value, Error> {
    let exact = ExactCalls::new(page.counted, page.calls);
    let exact = exact.as_ref();
    let graph = CallGraph::new(page.counted, callees, exact, &page.only, page.demangle)?;
    let place = |it: &Node<'_>| {
        let named = it.named();
        let modules = page.counted.iter();
        let module = modules
            .map(|it| &it.module.build_id)
            .position(|it| *it == named.module.build_id);
        let place = module.and_then(|module| functions.at(module, named.function.address));
        place.map_or(Value::from(-1), Value::from)
    };
    let nodes = graph.nodes.iter().map(|it| {
        json!([
            place(it),
            value::number(it.own),
            value::number(it.inclusive)
        ])
    });
    let edges = graph.edges.iter().filter(|it| it.inclusive > 0).map(|it| {
        let caller = it.caller.map_or(Value::from(-1), Value::from);
        json!([caller, it.callee, value::number(it.inclusive)])
    });
    Ok(json!({
        "exact": exact.is_some(),
        "total": value::number(graph.total()),
        "nodes": nodes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
    }))
}
