//! Everything that is known, as one JSON document. `json.schema.json` says what is in it.

use super::limit::Limit;
use super::{Exported, Material, code};
use crate::count::{Count, edges};
use crate::json::{list, refused, run, string};
use crate::lines::all_lines;
use crate::names::{Named, functions};
use crate::rows::{self, Tally, by_address};
use crate::targets::Targets;
use crate::values::{Tallied, TalliedPlace, TalliedValue};
use crate::{Error, LineCount};
use headcount_model::{Counted, LinkAddr};
use std::fmt::Write;

/// Raised when a reader of an older form would misunderstand a newer one.
const VERSION: u32 = 2;

/// What is in the document, as a JSON Schema.
pub const SCHEMA: &str = include_str!("json.schema.json");

/// The whole document.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let counted = material.counted;
    let mut out = Json {
        text: format!("{{\"format\":\"headcount\",\"version\":{VERSION}"),
        limit,
    };
    out.raw(",\n\"totals\":{");
    out.tally(Tally::of_all(counted)?);
    out.raw("}");
    list(&mut out.text, "runs", material.runs, run);
    out.raw(",\n\"files\":[");
    let mut first = true;
    for (file, lines) in all_lines(counted, material.demangle, material.only)? {
        out.next(&mut first);
        out.raw("{\"file\":");
        string(&file, &mut out.text);
        out.raw(",\"lines\":[");
        out.lines(lines.iter().map(|(line, it)| (*line, *it)));
        out.raw("]}");
    }
    out.raw("],\n\"modules\":[");
    let mut first = true;
    for module in counted {
        out.next(&mut first);
        out.module(module, material)?;
    }
    out.raw("]");
    let found = material.tallied()?;
    out.values(&found);
    list(&mut out.text, "refused", &crate::refused(counted), refused);
    let notes = material.notes.iter().chain(&found.doubts);
    let notes: Vec<&String> = notes.chain(&found.notes).collect();
    list(&mut out.text, "notes", &notes, |it, out| string(it, out));
    out.raw("\n}\n");
    Ok(Exported {
        bytes: out.text.into_bytes(),
        notes: Vec::new(),
    })
}

struct Json<'a> {
    text: String,
    limit: &'a Limit,
}

impl Json<'_> {
    fn raw(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn next(&mut self, first: &mut bool) {
        self.raw(if *first { "\n " } else { ",\n " });
        *first = false;
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(text); // a string has room
    }

    fn text(&mut self, key: &str, value: &str) {
        self.put(format_args!("\"{key}\":"));
        string(value, &mut self.text);
    }

    /// A count under its name: `null` if it is not known.
    fn count(&mut self, key: &str, count: Count) {
        match count.value() {
            Some(value) => {
                let value = self.limit.cut(value);
                self.put(format_args!("\"{key}\":{value}"));
            }
            None => self.put(format_args!("\"{key}\":null")),
        }
        if matches!(count, Count::AtLeast(_)) {
            self.put(format_args!(",\"{key}_at_least\":true"));
        }
    }

    fn tally(&mut self, tally: Tally) {
        self.count("executed", tally.executed);
        self.put(format_args!(",\"instructions\":{},", tally.instructions));
        self.count("never", tally.never);
    }

    fn lines(&mut self, lines: impl Iterator<Item = (u32, LineCount)>) {
        for (place, (line, it)) in lines.enumerate() {
            let comma = if place > 0 { "," } else { "" };
            self.put(format_args!("{comma}\n  {{\"line_number\":{line},"));
            self.count("count", it.count);
            self.raw(",");
            self.count("executed", it.executed);
            self.put(format_args!(",\"exactness\":\"{}\"}}", it.exactness()));
        }
    }

    fn values(&mut self, found: &Tallied) {
        self.raw(",\n\"values\":[");
        let mut first = true;
        for tally in &found.tallies {
            for value in &tally.values {
                self.next(&mut first);
                self.value(tally, value);
            }
        }
        self.raw("]");
    }

    fn value(&mut self, tally: &TalliedPlace, it: &TalliedValue) {
        let texts = [
            ("place", it.place.as_str()),
            ("expression", &tally.expression),
            ("module", &it.module),
            ("function", &it.function),
            ("value", &it.value),
            ("caller", &it.caller),
        ];
        self.raw("{");
        for (key, text) in texts {
            self.text(key, text);
            self.raw(",");
        }
        if let Some((file, line)) = &it.line {
            self.text("file", file);
            self.put(format_args!(",\"line\":{line},"));
        }
        if tally.has_amount {
            self.put(format_args!("\"sum\":{},", it.sum));
        }
        self.put(format_args!("\"address\":{},", quoted(it.address)));
        self.count("count", Count::Exact(it.count));
        self.raw("}");
    }

    fn module(&mut self, module: &Counted, material: &Material<'_>) -> Result<(), Error> {
        self.raw("{");
        self.text("path", &module.module.path);
        self.raw(",");
        self.text("build_id", &module.module.build_id);
        self.raw(",\"functions\":[");
        let mut first = true;
        for named in functions(module, material.demangle) {
            if material.only.wants(&named) {
                self.next(&mut first);
                self.function(&named, material)?;
            }
        }
        self.raw("]}");
        Ok(())
    }

    fn function(&mut self, named: &Named<'_>, material: &Material<'_>) -> Result<(), Error> {
        self.raw("{");
        self.text("name", &named.name);
        self.raw(",");
        self.text("linkage_name", &named.function.name);
        self.put(format_args!(",\"address\":\"{}\",", named.function.address));
        if let (Some(file), Some((_, line))) = (named.own_file(), named.function.source) {
            self.text("file", file);
            self.put(format_args!(",\"line\":{line},"));
        }
        self.count("calls", rows::calls(named));
        self.raw(",");
        let tally = Tally::of(named)?;
        self.tally(tally);
        // Of what never ran there is no more to say; most of the C library never ran.
        if tally.ran {
            self.blocks(named)?;
            self.edges(named);
            self.call_sites(named, material);
        }
        self.raw("}");
        Ok(())
    }

    fn blocks(&mut self, named: &Named<'_>) -> Result<(), Error> {
        self.raw(",\"blocks\":[");
        for (place, it) in by_address(named).iter().enumerate() {
            let block = it.block;
            self.raw(if place > 0 { ",{" } else { "{" });
            self.put(format_args!("\"address\":\"{}\",", block.address));
            self.put(format_args!("\"instructions\":{},", block.instructions));
            self.count("count", it.count());
            self.raw(",");
            self.count("executed", it.executed(0..block.instructions)?);
            self.raw("}");
        }
        self.raw("]");
        Ok(())
    }

    fn edges(&mut self, named: &Named<'_>) {
        let blocks = &named.function.blocks;
        let address = |end: Option<u32>| {
            let block = end.and_then(|it| blocks.get(it as usize));
            quoted(block.map(|it| it.address))
        };
        self.raw(",\"edges\":[");
        let edges = named.function.edges.iter().zip(edges(named.counts));
        for (place, (edge, count)) in edges.enumerate() {
            self.raw(if place > 0 { ",{" } else { "{" });
            let (from, to) = (address(edge.from), address(edge.to));
            let kind = edge.kind.name();
            self.put(format_args!(
                "\"from\":{from},\"to\":{to},\"kind\":\"{kind}\","
            ));
            self.count("count", count);
            self.raw("}");
        }
        self.raw("]");
    }

    fn call_sites(&mut self, named: &Named<'_>, material: &Material<'_>) {
        self.raw(",\"call_sites\":[");
        // Whom a pointer led to is among the values.
        let calls = code::calls(0, named, &Targets::new(), material);
        for (place, it) in calls.into_iter().enumerate() {
            self.raw(if place > 0 { ",{" } else { "{" });
            let (at, target) = (it.address, quoted(it.target));
            self.put(format_args!("\"address\":\"{at}\",\"target\":{target},"));
            self.count("count", it.count);
            self.raw("}");
        }
        self.raw("]");
    }
}

fn quoted(address: Option<LinkAddr>) -> String {
    address.map_or("null".to_owned(), |it| format!("\"{it}\""))
}
