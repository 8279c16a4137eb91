//! The call graph, for the page: what its call tree by instructions is made of.

use super::functions::Functions;
use super::{Page, value};
use crate::Error;
use crate::call_graph::{CallGraph, Node};
use crate::callees::Callees;
use crate::exact_calls::ExactCalls;
use serde_json::{Value, json};
use std::collections::HashMap;

/// What cost less than one part in so many of everything is not told apart in the tree: nobody could
/// see it there.
const PARTS: u64 = 5_000;

/// The functions that ran (place in the index, instructions executed in itself, and with all that it
/// calls) and who calls whom (caller or -1, callee, what that cost). Costs are exact where
/// a run was asked for them, and there is a call tree then (caller's place in it or -1, function or -1,
/// cost, executed in itself); else all but their own are estimates.
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
        "tree": exact.map(|it| Tree::of(it, &graph).rows()),
        "total": value::number(graph.total()),
        "nodes": nodes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
    }))
}

/// A function at a place in the call tree.
struct Place {
    caller: Option<usize>,
    /// Its node of the graph.
    node: Option<usize>,
    own: u64,
    cost: u64,
}

/// The calling contexts of all runs, by function. Callers come before those they call.
#[derive(Default)]
struct Tree {
    places: Vec<Place>,
    numbers: HashMap<(Option<usize>, Option<usize>), usize>,
}

impl Tree {
    fn of(exact: &ExactCalls<'_>, graph: &CallGraph<'_>) -> Self {
        let mut tree = Self::default();
        for contexts in exact.contexts() {
            let mut numbers: Vec<Option<usize>> = Vec::with_capacity(contexts.len());
            for it in contexts {
                let caller = it.parent.and_then(|it| numbers[it as usize]);
                // What is outside of all functions, and executed nothing, is the root.
                let number = (it.parent.is_some() || it.executed > 0).then(|| {
                    let node = it.function.and_then(|it| graph.node(it));
                    tree.place(caller, node)
                });
                if let Some(number) = number {
                    let place = &mut tree.places[number];
                    place.own = place.own.saturating_add(it.executed);
                }
                numbers.push(number.filter(|_| it.parent.is_some()));
            }
        }
        tree.add_up();
        tree
    }

    fn place(&mut self, caller: Option<usize>, node: Option<usize>) -> usize {
        let places = &mut self.places;
        *self.numbers.entry((caller, node)).or_insert_with(|| {
            places.push(Place {
                caller,
                node,
                own: 0,
                cost: 0,
            });
            places.len() - 1
        })
    }

    fn add_up(&mut self) {
        for number in (0..self.places.len()).rev() {
            let place = &mut self.places[number];
            place.cost = place.cost.saturating_add(place.own);
            let (caller, cost) = (place.caller, place.cost);
            if let Some(caller) = caller {
                let caller = &mut self.places[caller];
                caller.cost = caller.cost.saturating_add(cost);
            }
        }
    }

    /// What is large enough to be seen.
    fn rows(&self) -> Vec<Value> {
        let roots = self.places.iter().filter(|it| it.caller.is_none());
        let total = roots.map(|it| it.cost).fold(0, u64::saturating_add);
        let mut numbers: Vec<Option<usize>> = Vec::with_capacity(self.places.len());
        let mut rows = Vec::new();
        for it in &self.places {
            let is_seen = it.cost > 0 && it.cost >= total / PARTS;
            numbers.push(is_seen.then_some(rows.len()));
            if is_seen {
                // What is seen was called by what is larger.
                let caller = it.caller.and_then(|it| numbers[it]);
                let place = |it: Option<usize>| it.map_or(Value::from(-1), Value::from);
                rows.push(json!([
                    place(caller),
                    place(it.node),
                    value::number(it.cost),
                    value::number(it.own),
                ]));
            }
        }
        rows
    }
}
