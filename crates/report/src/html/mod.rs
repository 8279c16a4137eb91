//! All counts as one page that needs nothing but a browser: no network, no other file.
//!
//! The page is a template with a style sheet and a script (in `page/`), and what is known of the
//! program in packed pieces (`pack.rs`): an index, which is unpacked when the page is opened; one
//! piece a source file and some for instructions, unpacked when they are looked at. So a large
//! program opens as fast as a small one.

mod changes;
mod code;
mod events;
mod files;
mod functions;
mod graph;
mod index;
mod inlined;
mod pack;
mod sites;
mod time;
mod value;
mod values;

use crate::callees::{Callees, FindPointers, FindTransfers};
use crate::checks::Checks;
use crate::count::Count;
use crate::diff::Diff;
use crate::events::WantedEvents;
use crate::only::Only;
use crate::own::Own;
use crate::report::Decode;
use crate::time::Time;
use crate::values::Tallied;
use crate::{Error, escape};
use headcount_model::{CallCosts, Counted, RuntimeCosts, Samples, ValueCounts};
use std::collections::BTreeMap;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("page/data.js"),
    include_str!("page/dom.js"),
    include_str!("page/highlight.js"),
    include_str!("page/lists.js"),
    include_str!("page/treemap.js"),
    include_str!("page/overview.js"),
    include_str!("page/assembly.js"),
    include_str!("page/minimap.js"),
    include_str!("page/source.js"),
    include_str!("page/flame.js"),
    include_str!("page/calltree.js"),
    include_str!("page/time.js"),
    include_str!("page/values.js"),
    include_str!("page/changes.js"),
    include_str!("page/main.js"),
);

/// What the page's own policy lets run: a script with this SHA-256 and no other, whatever else
/// might get into the page. `cargo test -p headcount-report` says what it is after a change.
const SCRIPT_SHA256: &str = include_str!("page/script.sha256");

/// The lines of a source file, if it is at hand.
pub type SourceText<'a> = &'a dyn Fn(&str) -> Option<Vec<String>>;

/// What to make a page of.
pub struct Page<'a> {
    /// The counts.
    pub counted: &'a [Counted],
    /// The runs that were added up.
    pub runs: &'a [RunFacts],
    /// What makes the counts uncertain, in sentences.
    pub notes: Vec<String>,
    /// Only functions and files with such names; all, if there is no pattern.
    pub only: Only,
    /// What is the user's own: the text of other files is left out.
    pub own: &'a Own,
    /// Whether names are shown as the programmer wrote them.
    pub demangle: bool,
    /// Whether instructions are shown.
    pub assembly: bool,
    /// Knows the instructions.
    pub decode: Decode<'a>,
    /// Knows the calls and jumps among them.
    pub transfers: FindTransfers<'a>,
    /// Knows what pointers lead to.
    pub pointers: FindPointers<'a>,
    /// Whether ways into failed checks are branches, too.
    pub with_checks: bool,
    /// Knows the sources.
    pub source: SourceText<'a>,
    /// What tells of time.
    pub samples: &'a [&'a Samples],
    /// How many times the work that was timed was counted, if anybody knows.
    pub times_counted: Option<f64>,
    /// What interpreters did for scripts.
    pub runtimes: &'a [RuntimeCosts],
    /// What calls cost, of those runs that were asked for it.
    pub calls: &'a [CallCosts],
    /// What was found by value, of those runs that were asked for it.
    pub values: &'a [ValueCounts],
    /// The same in words, as far as it is wanted.
    pub tallied: &'a Tallied,
    /// What functions did, in columns that the reader chooses.
    pub events: WantedEvents<'a>,
    /// Whether these columns are there from the beginning.
    pub shows_events: bool,
    /// What changed since another run, if it is to be compared.
    pub changes: Option<&'a Diff>,
}

/// A run, as far as the page tells: nothing that differs between two equal runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// The command; empty if unknown.
    pub command: Vec<String>,
    /// Exit status, or 128 + signal; `None` if nobody saw the end.
    pub status: Option<i32>,
    /// The machine's name for its processor.
    pub cpu: String,
    /// How many processes there were.
    pub processes: usize,
    /// How many threads those had.
    pub threads: usize,
}

/// The whole page.
pub fn write(page: &Page<'_>) -> Result<String, Error> {
    let functions = functions::all(page)?;
    let time = Time::new(page.counted, page.samples, page.times_counted);
    let time = time.map(|it| it.with_scripts(page.runtimes));
    let mut callees = Callees::new(page.counted, page.transfers, page.pointers);
    if page.calls.is_empty() {
        callees = callees.with_targets(page.values);
    }
    let checks = Checks::new(&callees, page.with_checks);
    let files = files::all(page, &functions, &checks, time.as_ref())?;
    let code = match page.assembly {
        true => code::pieces(page, &functions, &files),
        false => code::Pieces::default(),
    };
    let index = index::index(page, &functions, &files, &code)?;
    let mut data = pack::element("index", &index);
    data.push_str(&pack::element(
        "calls",
        &sites::calls(page, &callees, &functions, &files),
    ));
    data.push_str(&pack::element(
        "branches",
        &sites::branches(&checks, &functions, &files),
    ));
    data.push_str(&pack::element(
        "inlined",
        &inlined::inlined(&functions, &files)?,
    ));
    data.push_str(&pack::element(
        "graph",
        &graph::graph(page, &callees, &functions)?,
    ));
    if !page.events.events().is_empty() {
        let events = events::events(page, &functions)?;
        data.push_str(&pack::element("events", &events));
    }
    if let Some(time) = &time {
        data.push_str(&pack::element("time", &time::time(page, time, &functions)));
    }
    if !page.tallied.tallies.is_empty() {
        data.push_str(&pack::element("values", &values::values(page, &files)));
    }
    if let Some(diff) = page.changes {
        let changes = changes::changes(diff, &functions, &files);
        data.push_str(&pack::element("changes", &changes));
    }
    for (number, file) in files.list.iter().enumerate() {
        data.push_str(&pack::element(&format!("file-{number}"), &file.piece));
    }
    for (number, piece) in code.list.iter().enumerate() {
        data.push_str(&pack::element(&format!("code-{number}"), piece));
    }
    Ok(filled(&title(page), &data))
}

/// The template with everything in its place.
fn filled(title: &str, data: &str) -> String {
    let parts = BTreeMap::from([
        ("title", escape::markup(title)),
        ("sha256", SCRIPT_SHA256.trim().to_owned()),
        ("style", STYLE.to_owned()),
        ("data", data.to_owned()),
        ("script", SCRIPT.to_owned()),
    ]);
    let mut out = String::new();
    for (place, piece) in TEMPLATE.split("{{").enumerate() {
        match (place, piece.split_once("}}")) {
            (1.., Some((name, rest))) => {
                out.push_str(parts.get(name).map_or("", String::as_str));
                out.push_str(rest);
            }
            _ => out.push_str(piece),
        }
    }
    out
}

fn title(page: &Page<'_>) -> String {
    let program = match page.runs {
        [one] => one.command.first().map(|it| crate::glob::base_name(it)),
        _ => None,
    };
    match program {
        Some(program) => format!("{} - headcount", escape::visible(program)),
        None => "headcount".to_owned(),
    }
}

/// Did any of it run, or is that not known?
fn may_have_run(count: Count) -> bool {
    !count.is_never()
}

#[cfg(test)]
mod tests;
