//! Who called a function, and whom it called: how often, and at what cost.

use crate::Error;
use crate::annotate::{Fit, fit};
use crate::call_graph::{CallGraph, Node};
use crate::callees::{Callee, Callees, FunctionId, Site};
use crate::calls::{place, text_of};
use crate::count::Count;
use crate::demangle::demangle;
use crate::inlined_calls::{self, InlinedCopy};
use crate::names::Named;
use crate::number::{plural, share, thousands};
use crate::only::Only;
use crate::report::Request;
use crate::table::{Cell, Row};
use crate::unknown_name::no_function_called;
use headcount_model::{Counted, LinkAddr};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Which calls of some functions are meant.
#[derive(Clone, Debug)]
pub struct CallsOf {
    /// Their name, as the user typed it.
    pub name: String,
    /// Those of that name that have code of their own.
    pub functions: BTreeSet<FunctionId>,
    /// Their callers, or whom they call.
    pub direction: Direction,
}

/// In which direction to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Who calls them.
    Callers,
    /// Whom they call.
    Callees,
}

/// What stands for a caller that nobody saw.
const OUTSIDE: &str = "(through a pointer or from outside)";

/// The kind of a call that was replaced by what it calls.
pub const INLINED: &str = "inlined";

/// The rows, what to say of each function, and of what could not be found out.
#[derive(Default)]
pub struct Found {
    pub rows: Vec<Row>,
    pub about: Vec<String>,
    pub notes: Vec<String>,
}

/// Finds the calls.
pub fn find(counted: &[Counted], request: &Request<'_>) -> Result<Found, Error> {
    let Some(wanted) = request.calls_of else {
        return Ok(Found::default());
    };
    let callees = request.callees(counted);
    let (exact, all) = (request.calls, Only::default());
    let graph = CallGraph::new(counted, &callees, exact, &all, request.demangle)?;
    let nodes: BTreeSet<usize> = wanted
        .functions
        .iter()
        .filter_map(|it| graph.node(*it))
        .collect();
    let total = graph.total();
    let inlined = match wanted.direction {
        Direction::Callers => Inlined::new(&graph, wanted, request)?,
        Direction::Callees => Inlined::default(),
    };
    if wanted.functions.is_empty() && inlined.copies.is_empty() {
        let why = nothing_found(counted, wanted, &inlined.notes);
        return Err(Error::NoSuchFunction(why));
    }
    let nodes = match inlined.fit {
        // Who is called that is meant, and not who has a name that ends like that.
        Some(Fit::Whole) => named_whole(&graph, nodes, &wanted.name),
        _ => nodes,
    };
    let mut found = Found {
        rows: inlined.rows(&graph, request.demangle),
        about: nodes
            .iter()
            .map(|it| about(&graph.nodes[*it], total, exact.is_some()))
            .chain(inlined.about(total, request.demangle))
            .collect(),
        notes: inlined.notes,
    };
    let stubs = match wanted.direction {
        Direction::Callers => stubs(&graph, &nodes),
        Direction::Callees => BTreeSet::new(),
    };
    let is_wanted = |it: &usize| nodes.contains(it) || stubs.contains(it);
    for (caller, node) in graph.nodes.iter().enumerate() {
        // Who called by way of a stub is a caller, and the stub is none.
        let is_stub = stubs.contains(&caller);
        for (named, site) in node.sites().filter(|_| !is_stub) {
            let callee = match &site.callee {
                Callee::Function(id) => graph.node(*id),
                _ => None,
            };
            let is_meant = match wanted.direction {
                Direction::Callers => callee.is_some_and(|it| is_wanted(&it)),
                Direction::Callees => nodes.contains(&caller),
            };
            // Jumps between the parts of a function are its own affair.
            let is_inner = !site.is_call && callee == Some(caller);
            if is_meant && !is_inner && !site.count.is_never() {
                let calls = CallsBetween {
                    graph: &graph,
                    callees: &callees,
                    caller,
                    callee,
                };
                found.rows.push(calls.row(named, site, request.demangle));
            }
        }
    }
    if wanted.direction == Direction::Callers {
        let unseen = graph.edges.iter().filter(|it| it.caller.is_none());
        let unseen = unseen.filter(|it| is_wanted(&it.callee));
        found.rows.extend(unseen.map(|edge| {
            let callee = &graph.nodes[edge.callee];
            let count = match edge.is_assumed {
                true => Count::Unknown,
                false => Count::Exact(edge.count),
            };
            cells_of(
                ["", OUTSIDE, &callee.name()],
                None,
                count,
                None,
                "unseen",
                Some(edge.inclusive),
            )
        }));
    }
    if exact.is_some() {
        for row in &mut found.rows {
            row.cells.extend(row.cells.last().cloned());
        }
    }
    Ok(found)
}

/// Why there is nothing to show.
fn nothing_found(counted: &[Counted], wanted: &CallsOf, notes: &[String]) -> String {
    let mut why = no_function_called(counted, &wanted.name);
    if wanted.direction == Direction::Callees {
        why.push_str(
            " (If it was inlined wherever it ran, its calls are those of the functions that it was inlined into, which \
             `headcount report --callers` shows.)",
        );
    }
    for note in notes {
        why = format!("{why} ({note})");
    }
    why
}

/// Those of some functions that have exactly this name.
fn named_whole(graph: &CallGraph<'_>, nodes: BTreeSet<usize>, name: &str) -> BTreeSet<usize> {
    let is_whole = |it: &usize| {
        let named = graph.nodes[*it].named();
        fit(named.module, &named.function.name, name) == Some(Fit::Whole)
    };
    nodes.into_iter().filter(is_whole).collect()
}

/// The copies of what is wanted that were inlined.
#[derive(Default)]
struct Inlined<'g, 'a> {
    copies: Vec<InlinedCopy<'g, 'a>>,
    /// How well the best name fits.
    fit: Option<Fit>,
    notes: Vec<String>,
}

impl<'g, 'a> Inlined<'g, 'a> {
    fn new(
        graph: &'g CallGraph<'a>,
        wanted: &CallsOf,
        request: &Request<'_>,
    ) -> Result<Self, Error> {
        let inlined_calls::Found {
            mut copies,
            nameless,
        } = inlined_calls::Found::new(graph, request.inlined_names)?;
        let fit_of = |it: &InlinedCopy<'_, '_>| fit(it.named.module, &it.callee, &wanted.name);
        let of_code = graph.nodes.iter().map(Node::named);
        let of_code = of_code.filter_map(|it| fit(it.module, &it.function.name, &wanted.name));
        let best = copies.iter().filter_map(fit_of).chain(of_code).max();
        copies.retain(|it| best.is_some() && fit_of(it) == best);
        let of_code = wanted.functions.iter().filter_map(|it| graph.node(*it));
        let homes: BTreeSet<&str> = of_code
            .map(|it| graph.nodes[it].named().module.path.as_str())
            .collect();
        let matters = |module: &str| homes.is_empty() || homes.contains(module);
        let note = |(module, why): (&str, String)| {
            format!("Inlined calls in {module} are not shown: the file {why}.")
        };
        Ok(Self {
            copies,
            fit: best,
            notes: nameless
                .into_iter()
                .filter(|it| matters(it.0))
                .map(note)
                .collect(),
        })
    }

    fn rows(&self, graph: &CallGraph<'a>, demangles: bool) -> Vec<Row> {
        let row = |copy: &InlinedCopy<'_, 'a>| {
            let (named, call) = (copy.named, copy.call());
            let file = named.file(call.file).filter(|_| call.line > 0);
            cells_of(
                [
                    &named.module_path,
                    &shown(&copy.caller, demangles),
                    &shown(&copy.callee, demangles),
                ],
                call.entry,
                copy.count,
                file.map(|it| (it.into(), call.line)),
                INLINED,
                copy.inclusive(graph),
            )
        };
        self.copies.iter().map(row).collect()
    }

    /// What to say of each function.
    fn about(&self, total: u64, demangles: bool) -> Vec<String> {
        let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for copy in &self.copies {
            let (copies, executed) = by_name.entry(&copy.callee).or_default();
            *copies += 1;
            // What is in a copy of the same function is in that one's number already.
            if !copy.is_in_itself {
                *executed = executed.saturating_add(copy.tally.executed.value().unwrap_or(0));
            }
        }
        let about = |(name, (copies, executed)): (&str, (u64, u64))| {
            format!(
                "{}: {} ran; {} executed in {} ({})",
                shown(name, demangles),
                match copies {
                    1 => "1 inlined copy".to_owned(),
                    many => format!("{} inlined copies", thousands(many)),
                },
                plural(executed, "instruction"),
                if copies == 1 { "it" } else { "them" },
                share(executed, total),
            )
        };
        by_name.into_iter().map(about).collect()
    }
}

fn shown(name: &str, demangles: bool) -> Arc<str> {
    match demangles {
        true => demangle(name).as_ref().into(),
        false => name.into(),
    }
}

/// The linker's stubs by which a module calls some functions of others.
fn stubs(graph: &CallGraph<'_>, functions: &BTreeSet<usize>) -> BTreeSet<usize> {
    let leads_there = |site: &Site| match &site.callee {
        Callee::Function(id) => graph.node(*id).is_some_and(|it| functions.contains(&it)),
        _ => false,
    };
    let all = graph.nodes.iter().enumerate();
    let stubs = all.filter(|(number, node)| {
        !functions.contains(number)
            && node.name().ends_with("@plt")
            && node.sites().any(|(_, site)| leads_there(site))
    });
    stubs.map(|(number, _)| number).collect()
}

/// Name, calls and cost of a function, in a line.
fn about(node: &Node<'_>, total: u64, is_exact: bool) -> String {
    let about = if is_exact { "" } else { "about " };
    let cycle = match node.cycle {
        1 => String::new(),
        many => format!(" (of {many} functions that call each other)"),
    };
    format!(
        "{}: {}; {} executed by itself ({}), {about}{} with all that it calls ({}){cycle}",
        node.name(),
        plural(node.entered, "call"),
        plural(node.own, "instruction"),
        share(node.own, total),
        thousands(node.inclusive),
        share(node.inclusive, total)
    )
}

struct CallsBetween<'g, 'a> {
    graph: &'g CallGraph<'a>,
    callees: &'g Callees<'a>,
    caller: usize,
    callee: Option<usize>,
}

impl CallsBetween<'_, '_> {
    fn row(&self, named: &Named<'_>, site: &Site, demangle: bool) -> Row {
        let callee = match self.callee {
            Some(callee) => self.graph.nodes[callee].name(),
            None => text_of(self.callees, &site.callee, demangle),
        };
        let count = site.count.value();
        let callee_of = self.callee.filter(|_| count.is_some());
        let inclusive = callee_of.map(|callee| self.graph.cost(self.caller, callee, site));
        let at = named.blocks().nth(site.block);
        let at = at.and_then(|block| place(named, &block, site.index));
        let kind = if site.is_call { "call" } else { "jump" };
        let names = [&*named.module_path, &*named.name, &*callee];
        cells_of(names, Some(site.address), site.count, at, kind, inclusive)
    }
}

fn cells_of(
    [module, caller, callee]: [&str; 3],
    address: Option<LinkAddr>,
    count: Count,
    at: Option<(Arc<str>, u32)>,
    kind: &str,
    inclusive: Option<u64>,
) -> Row {
    let text = |it: &str| Cell::Text(it.into());
    let (file, line) = at.clone().unwrap_or(("".into(), 0));
    Row {
        cells: vec![
            text(module),
            text(caller),
            Cell::Address(address),
            text(callee),
            Cell::Count(count),
            Cell::Text(file),
            Cell::Number(line.into()),
            text(kind),
            Cell::Count(inclusive.map_or(Count::Unknown, Count::Exact)),
        ],
        counted: true,
        ran: true,
        place: at,
        ..Row::default()
    }
}
