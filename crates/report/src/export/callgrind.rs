//! Profiles in callgrind's format, for KCachegrind and `callgrind_annotate`.
//!
//! Every instruction that ran has its line, so the totals are exact. What calls cost with all that
//! they call is exact where a run was asked for it, else an estimate (`call_graph.rs`), and the file
//! says which. Every call has its edge, and so has
//! every jump from one function to another, which KCachegrind would take for a function without
//! callers. What nobody saw called is called from outside: that costs as much as the whole program.

use super::limit::Limit;
use super::{Exported, Material, code};
use crate::call_graph::{CallGraph, shares};
use crate::callees::{Callee, Callees, Site};
use crate::calls::text_of;
use crate::exact_calls::ExactCalls;
use crate::names::Named;
use crate::number::plural;
use crate::source::UNKNOWN;
use crate::{Error, visible};
use headcount_model::{FileId, LinkAddr};
use std::collections::HashMap;
use std::fmt::Write;

/// What calls the functions that nobody saw called.
const OUTSIDE: &str = "(outside)";

/// What is called where only a run knows.
const THROUGH_A_POINTER: &str = "(through a pointer)";

/// The whole file.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let mut callees = Callees::new(material.counted, material.transfers, material.pointers);
    let exact = ExactCalls::new(material.counted, material.calls);
    if exact.is_none() {
        callees = callees.with_targets(material.values);
    }
    let graph = CallGraph::new(
        material.counted,
        &callees,
        exact.as_ref(),
        material.only,
        material.demangle,
    )?;
    let mut body = Body {
        out: String::new(),
        graph: &graph,
        callees: &callees,
        names: Names::default(),
        limit,
        demangle: material.demangle,
        total: 0,
        unknown: 0,
        within: match &exact {
            Some(_) => within_cycles(&graph),
            None => HashMap::new(),
        },
    };
    body.outside();
    for (number, node) in graph.nodes.iter().enumerate() {
        for (named, sites) in &node.parts {
            body.function(number, named, sites, material)?;
        }
    }
    let (total, unknown) = (body.total, body.unknown);
    let mut out = header(material, total, exact.is_some());
    out.push_str(&body.out);
    out.push_str(&format!("\ntotals: {total}\n"));
    // Where calls were followed, their cost is known whatever led to them.
    let is_estimate = exact.is_none() && unknown > 0;
    let note = is_estimate.then(|| {
        format!(
            "{} may lead anywhere: only a run knows whom they call, so what that costs is charged to \
             the outside.",
            plural(unknown, "call site")
        )
    });
    Ok(Exported {
        bytes: out.into_bytes(),
        notes: note.into_iter().collect(),
    })
}

fn header(material: &Material<'_>, total: u64, is_exact: bool) -> String {
    let inclusive = match is_exact {
        true => "exact; calls within a cycle share what their callee cost besides",
        false => "estimated; a callee's is shared among call sites by their counts",
    };
    let commands: Vec<String> = material.runs.iter().map(crate::text::command).collect();
    format!(
        "# callgrind format\n\
         version: 1\n\
         creator: headcount {}\n\
         cmd: {}\n\
         part: 1\n\
         desc: Counts: exact, by headcount\n\
         desc: Inclusive costs: {inclusive}\n\
         positions: instr line\n\
         events: Ir\n\
         summary: {total}\n",
        env!("CARGO_PKG_VERSION"),
        visible(&commands.join("; ")),
    )
}

/// What follows the header.
struct Body<'g, 'a> {
    out: String,
    graph: &'g CallGraph<'a>,
    callees: &'g Callees<'a>,
    names: Names,
    limit: &'g Limit,
    demangle: bool,
    total: u64,
    /// How many call sites may lead anywhere.
    unknown: u64,
    /// What is written of calls within a cycle, by caller, address and callee.
    within: HashMap<CallWithin, u64>,
}

impl Body<'_, '_> {
    fn put(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.out, "{line}"); // a string has room
    }

    /// The root: it calls what nobody else was seen to call.
    fn outside(&mut self) {
        let name = self.names.function(OUTSIDE);
        let (object, file) = (self.names.object("???"), self.names.file(UNKNOWN));
        self.put(format_args!("\nob={object}\nfl={file}\nfn={name}"));
        let graph = self.graph;
        for edge in graph.edges.iter().filter(|it| it.caller.is_none()) {
            self.callee(edge.callee, edge.count);
            let cost = self.limit.cut(edge.inclusive);
            self.put(format_args!("{} 0 {cost}", LinkAddr(0)));
        }
    }

    fn function(
        &mut self,
        number: usize,
        named: &Named<'_>,
        sites: &[Site],
        material: &Material<'_>,
    ) -> Result<(), Error> {
        let object = self.names.object(&named.module_path);
        let own = named.own_file().unwrap_or(UNKNOWN);
        let file = self.names.file(own);
        let name = self.names.function(&self.graph.nodes[number].name());
        self.put(format_args!("\nob={object}\nfl={file}\nfn={name}"));
        let mut in_file = own;
        let mut sites = sites.iter().peekable();
        for it in code::instructions(named, material) {
            let count = match it.count.value() {
                None | Some(0) => continue,
                Some(count) => self.limit.cut(count),
            };
            let file = it
                .line
                .and_then(|(file, _)| named.file(file))
                .unwrap_or(own);
            if file != in_file {
                let key = if file == own { "fe" } else { "fi" };
                let name = self.names.file(file);
                self.put(format_args!("{key}={name}"));
                in_file = file;
            }
            let line = it.line.map_or(0, |(_, line)| line);
            self.put(format_args!("{} {line} {count}", it.address));
            self.total = self.total.checked_add(count).ok_or(Error::TooLarge)?;
            while let Some(site) = sites.next_if(|site| site.address <= it.address) {
                self.call(number, site, line);
            }
        }
        // What goes on with another function does so behind its last instruction.
        for site in sites {
            self.call(number, site, 0);
        }
        Ok(())
    }

    fn call(&mut self, caller: usize, site: &Site, line: u32) {
        let Some(count @ 1..) = site.count.value() else {
            return;
        };
        let callee = match &site.callee {
            Callee::Function(id) => self.graph.node(*id),
            _ => None,
        };
        let cost = match callee {
            // Jumps between the parts of a function are its own affair.
            Some(callee) if callee == caller && !site.is_call => return,
            Some(callee) => {
                self.callee(callee, count);
                let known = self.within.get(&(caller, site.address, callee));
                known
                    .copied()
                    .unwrap_or_else(|| self.graph.cost(caller, callee, site))
            }
            None => {
                self.stranger(&site.callee, count);
                0
            }
        };
        let cost = self.limit.cut(cost);
        self.put(format_args!("{} {line} {cost}", site.address));
    }

    fn callee(&mut self, number: usize, count: u64) {
        let node = &self.graph.nodes[number];
        let named = node.named();
        let object = self.names.object(&named.module_path);
        let file = self.names.file(named.own_file().unwrap_or(UNKNOWN));
        let name = self.names.function(&node.name());
        let target = named.function.address;
        let (_, line) = named.function.source.unwrap_or((FileId(0), 0));
        let count = self.limit.cut(count);
        self.put(format_args!("cob={object}\ncfi={file}\ncfn={name}"));
        self.put(format_args!("calls={count} {target} {line}"));
    }

    /// Something that was not counted, or that nobody knows.
    fn stranger(&mut self, callee: &Callee, count: u64) {
        let shown = match callee {
            Callee::Unknown => {
                self.unknown += 1;
                THROUGH_A_POINTER.into()
            }
            known => text_of(self.callees, known, self.demangle),
        };
        let (object, file) = (self.names.object("???"), self.names.file(UNKNOWN));
        let name = self.names.function(&shown);
        let count = self.limit.cut(count);
        self.put(format_args!("cob={object}\ncfi={file}\ncfn={name}"));
        self.put(format_args!("calls={count} {} 0", LinkAddr(0)));
    }
}
/// A call of one function by another with which it is in a cycle: caller, where, and callee.
type CallWithin = (usize, LinkAddr, usize);

/// Readers take for the cost of a function the sum of what calls of it cost. Where functions call each
/// other in a cycle, that would be more than it was: what is called while it is active already
/// is in the cost of the call that made it so. So calls within a cycle have together what their callee
/// cost, less what it cost where it was called from elsewhere; and a function that calls itself does
/// so at no cost.
fn within_cycles(graph: &CallGraph<'_>) -> HashMap<CallWithin, u64> {
    let cycle = graph.cycles();
    let mut rest: Vec<u64> = graph.nodes.iter().map(|it| it.inclusive).collect();
    for edge in &graph.edges {
        let is_outer = |caller: usize| cycle[caller] != cycle[edge.callee];
        if edge.caller.is_none_or(is_outer) {
            rest[edge.callee] = rest[edge.callee].saturating_sub(edge.inclusive);
        }
    }
    let mut within: Vec<Vec<(CallWithin, u64)>> = vec![Vec::new(); graph.nodes.len()];
    for (caller, node) in graph.nodes.iter().enumerate() {
        for (_, site) in node.sites() {
            let callee = match &site.callee {
                Callee::Function(id) => graph.node(*id),
                _ => None,
            };
            if let Some(callee) = callee.filter(|it| cycle[*it] == cycle[caller]) {
                let cost = match callee == caller {
                    true => 0,
                    false => graph.cost(caller, callee, site),
                };
                within[callee].push(((caller, site.address, callee), cost));
            }
        }
    }
    let mut all = HashMap::new();
    for (calls, rest) in within.into_iter().zip(rest) {
        let costs: Vec<u64> = calls.iter().map(|it| it.1).collect();
        let calls = calls.into_iter().map(|it| it.0);
        all.extend(calls.zip(shares(rest, &costs)));
    }
    all
}

/// Names that were written before are written as numbers.
#[derive(Default)]
struct Names {
    objects: HashMap<String, usize>,
    files: HashMap<String, usize>,
    functions: HashMap<String, usize>,
}

impl Names {
    fn object(&mut self, name: &str) -> String {
        short(&mut self.objects, name)
    }

    fn file(&mut self, name: &str) -> String {
        short(&mut self.files, if name == UNKNOWN { "???" } else { name })
    }

    fn function(&mut self, name: &str) -> String {
        short(&mut self.functions, name)
    }
}

fn short(known: &mut HashMap<String, usize>, name: &str) -> String {
    if let Some(number) = known.get(name) {
        return format!("({number})");
    }
    let number = known.len() + 1;
    known.insert(name.to_owned(), number);
    format!("({number}) {}", visible(name))
}
