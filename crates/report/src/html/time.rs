//! Where the time went, for the page: the call tree, and the functions by their time.

use super::functions::Functions;
use super::{Page, value};
use crate::demangle;
use crate::time::{Time, TimedFunction, UNKNOWN_CODE, frames};
use headcount_model::Samples;
use serde_json::{Value, json};
use std::collections::HashMap;

/// What the page tells of time.
pub fn time(page: &Page<'_>, time: &Time, functions: &Functions<'_>) -> Value {
    let totals = &time.totals;
    let mut tree = Tree::default();
    for samples in page.samples {
        tree.add(samples, page.demangle);
    }
    json!({
        "samples": totals.sampled.samples,
        "nanoseconds": value::number(totals.sampled.nanoseconds),
        "kernel": value::number(totals.in_kernel()),
        "waiting": value::number(totals.waiting),
        "counted": totals.is_counted,
        "functions": rows(page, time, functions),
        "names": tree.names,
        "nodes": tree.nodes.iter().map(Node::row).collect::<Vec<_>>(),
    })
}

/// The functions that were seen: place in the index or -1, name, samples, time, time with callees, and
/// how long each call took.
fn rows(page: &Page<'_>, time: &Time, functions: &Functions<'_>) -> Vec<Value> {
    let row = |it: &TimedFunction| {
        let place = it.counted.and_then(|(module, index)| {
            let entry = page.counted[module].module.functions[index].address;
            functions.at(module, entry)
        });
        let calls = place.and_then(|it| functions.list[it].calls.value());
        let each = calls.and_then(|calls| time.totals.each(it.own, calls));
        json!([
            place.map_or(Value::from(-1), Value::from),
            value::name(&shown(&it.name, page.demangle)),
            it.own.samples,
            value::number(it.own.nanoseconds),
            value::number(it.with_callees.nanoseconds),
            each.map_or(String::new(), |it| it.to_string()),
        ])
    };
    time.functions.iter().map(row).collect()
}

fn shown(name: &str, as_written: bool) -> String {
    match (name.is_empty(), as_written) {
        (true, _) => UNKNOWN_CODE.to_owned(),
        (_, true) => demangle(name).into_owned(),
        (_, false) => name.to_owned(),
    }
}

/// A function at a place in the call tree.
struct Node {
    /// Its caller's place in the list; none at the root.
    caller: Option<usize>,
    name: usize,
    /// The samples in itself.
    own: u64,
}

impl Node {
    fn row(&self) -> [i64; 3] {
        let number = |it: usize| i64::try_from(it).unwrap_or(-1);
        let own = i64::try_from(self.own).unwrap_or(i64::MAX);
        [self.caller.map_or(-1, number), number(self.name), own]
    }
}

/// The call tree, by names. Callers come before those they call.
#[derive(Default)]
struct Tree {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    nodes: Vec<Node>,
    places: HashMap<(Option<usize>, usize), usize>,
}

impl Tree {
    fn add(&mut self, samples: &Samples, demangle: bool) {
        for thread in &samples.threads {
            for (stack, count) in &thread.samples {
                let mut at = self.place(None, &thread.name);
                for (_, frame) in frames(samples, *stack).into_iter().rev() {
                    at = self.place(Some(at), &shown(&frame.function, demangle));
                }
                let own = &mut self.nodes[at].own;
                *own = own.saturating_add(*count);
            }
        }
    }

    fn place(&mut self, caller: Option<usize>, name: &str) -> usize {
        let names = &mut self.names;
        let name = *self.numbers.entry(name.to_owned()).or_insert_with(|| {
            names.push(crate::visible(name).into_owned());
            names.len() - 1
        });
        let nodes = &mut self.nodes;
        *self.places.entry((caller, name)).or_insert_with(|| {
            nodes.push(Node {
                caller,
                name,
                own: 0,
            });
            nodes.len() - 1
        })
    }
}
