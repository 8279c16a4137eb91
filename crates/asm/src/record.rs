//! What follows the code of an object: its counters, its identity, and the records of its map.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use headcount_model::{Plan, Refusal};

use crate::flow_graph::Unit;
use crate::map::{self, BlockMap, NamedFunction, ObjectMap, PartMap, RowMap, SpanMap, UnitMap};
use crate::source::{Part, Row, Section, Source};

/// Writes the record of an object file in which nothing is counted.
pub fn refused_object(text: &mut String, name: &str, refusals: &[Refusal]) {
    let object = ObjectMap {
        name: name.to_owned(),
        refusals: refusals.to_vec(),
        ..ObjectMap::default()
    };
    object_record(text, &object, "\"\",@progbits");
}

/// Writes the record of an object file in which these units are counted.
pub fn object<'u>(
    text: &mut String,
    source: &Source,
    units: impl Iterator<Item = &'u Unit>,
    refusals: &[Refusal],
    base: &str,
) {
    let mut files = Files::default();
    let parts = units.flat_map(|unit| &unit.parts);
    let mut functions: Vec<NamedFunction> = parts
        .map(|part| &source.parts[*part])
        .filter(|part| !is_cold(part))
        .map(|part| NamedFunction {
            name: part.name.to_owned(),
            is_local: !source.global.contains(part.name) && !source.weak.contains(part.name),
            source: files.place(source, base, part),
        })
        .collect();
    functions.sort();
    let object = ObjectMap {
        name: source.name.clone(),
        refusals: refusals.to_vec(),
        files: files.paths,
        functions,
    };
    // Not among records that point to code: those go when their code goes. (A group of one, which
    // older assemblers know as well.)
    object_record(text, &object, "\"G\",@progbits,headcount.object");
}

fn object_record(text: &mut String, object: &ObjectMap, section: &str) {
    let body = map::encode_object(object);
    let _ = writeln!(text, "\t.section\t.headcount,{section}");
    let _ = writeln!(text, ".Lhc_mo:\t.long\t{}, .Lhc_no-.Lhc_mo", map::MAGIC);
    let _ = writeln!(text, "\t.byte\t{}", map::OBJECT);
    bytes(text, &body);
    let _ = writeln!(text, ".Lhc_no:");
}

/// The label of the object's identity.
const IDENTITY: &str = ".Lhc_id";

/// Sixteen bytes that name this object: its whole text decides.
pub fn identity(text: &mut String) {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let first = hasher.finish();
    "second half".hash(&mut hasher);
    let second = hasher.finish();
    let _ = writeln!(text, "\t.section\theadcount_ids,\"a\",@progbits");
    let _ = writeln!(text, "{IDENTITY}:\t.quad\t{first:#x}, {second:#x}");
}

fn bytes(text: &mut String, bytes: &[u8]) {
    for chunk in bytes.chunks(256) {
        text.push_str("\t.ascii\t\"");
        for byte in chunk {
            match byte {
                b'"' | b'\\' => {
                    text.push('\\');
                    text.push(char::from(*byte));
                }
                b' '..=b'~' => text.push(char::from(*byte)),
                _ => {
                    let _ = write!(text, "\\{byte:03o}");
                }
            }
        }
        text.push_str("\"\n");
    }
}

/// A piece of original code between two of our labels.
pub struct SpanAt {
    /// The block it belongs to.
    pub block: usize,
    /// Number of the label before it.
    pub start: u32,
    /// Number of the label behind it; 0 until it has one.
    pub end: u32,
    /// The rows of the line table that begin with it.
    pub rows: Vec<Row>,
}

/// A unit, as far as its record tells of it.
pub struct UnitRecord<'s, 't> {
    /// The file it is in.
    pub source: &'s Source<'t>,
    /// The unit.
    pub unit: &'s Unit,
    /// Where its counters stand.
    pub plan: &'s Plan,
    /// Its number in the file, which all its labels carry.
    pub number: usize,
    /// Its code, between labels.
    pub spans: Vec<SpanAt>,
    /// Does the runtime look after its counters?
    pub is_kept: bool,
}

impl<'s, 't> UnitRecord<'s, 't> {
    /// The map of the unit. (Addresses are the assembler's business.)
    fn map(&self, base: &str) -> UnitMap {
        let mut files = Files::default();
        let parts = self
            .unit
            .parts
            .iter()
            .map(|index| {
                let part = &self.source.parts[*index];
                PartMap {
                    name: part.name.to_owned(),
                    cold: is_cold(part),
                    source: files.place(self.source, base, part),
                    ..PartMap::default()
                }
            })
            .collect();
        let mut blocks: Vec<BlockMap> = self
            .unit
            .blocks
            .iter()
            .map(|block| BlockMap {
                part: self
                    .unit
                    .parts
                    .iter()
                    .position(|part| *part == block.part)
                    .unwrap_or(0) as u32,
                spans: Vec::new(),
            })
            .collect();
        for span in &self.spans {
            blocks[span.block].spans.push(SpanMap {
                rows: span
                    .rows
                    .iter()
                    .map(|row| RowMap {
                        file: files.number(self.source, base, row.file),
                        line: row.line,
                        is_stmt: row.is_stmt,
                    })
                    .collect(),
                ..SpanMap::default()
            });
        }
        UnitMap {
            parts,
            files: files.paths,
            blocks,
            graph: self.unit.graph.clone(),
            plan: self.plan.clone(),
            ..UnitMap::default()
        }
    }

    /// The section of the unit's first part.
    fn section(&self) -> &'s Section<'t> {
        &self.source.sections[self.source.parts[self.unit.parts[0]].section]
    }

    /// What makes the unit's record a section of its own, apart from those of code that may be
    /// dropped while this is kept. Code in `.text` shares one (and so needs no new assembler).
    fn apart(&self) -> String {
        match self.source.parts[self.unit.parts[0]].section {
            0 => String::new(),
            section => format!(",unique,{section}"),
        }
    }

    /// Writes the unit's counters and its record.
    pub fn write(&self, base: &str, text: &mut String) {
        let map = self.map(base);
        let number = self.number;
        // Counters are a group beside that of the code. GNU ld keeps all of them, because
        // `__start_headcount_counters` is a reference, and would keep the code with them, which
        // nobody might ever call.
        let (flag, group, apart) = match self.section().group {
            Some(group) => (
                "G",
                format!(",headcount.{group},comdat"),
                format!(",{group},comdat"),
            ),
            None => ("", String::new(), self.apart()),
        };
        let (kind, counters) = match self.is_kept {
            true => (map::UNIT, "headcount_counters"),
            false => (map::MEMORY_UNIT, "headcount_memory"),
        };
        let _ = writeln!(text, "\t.section\t{counters},\"aw{flag}\",@nobits{group}");
        let _ = writeln!(
            text,
            "\t.balign 8\n.Lhc_{number}_c:\t.zero\t{}",
            8 * map.plan.counters.len()
        );
        let _ = writeln!(text, "\t.section\t.headcount,\"{flag}\",@progbits{apart}");
        let _ = writeln!(
            text,
            ".Lhc_{number}_m:\t.long\t{}, .Lhc_{number}_n-.Lhc_{number}_m",
            map::MAGIC
        );
        let _ = writeln!(text, "\t.byte\t{kind}\n\t.quad\t.Lhc_{number}_c");
        let _ = writeln!(
            text,
            "\t.long\t{}, {}",
            map.plan.counters.len(),
            map.parts.len()
        );
        for part in &self.unit.parts {
            let _ = writeln!(text, "\t.quad\t.Lhc_{number}_p{part}");
        }
        let _ = writeln!(text, "\t.long\t{}", self.spans.len());
        for spans in self.spans.chunks(16) {
            text.push_str("\t.long\t");
            for (index, span) in spans.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                let part = self.unit.blocks[span.block].part;
                let (start, end) = (span.start, span.end);
                let _ = write!(
                    text,
                    "{comma}.Lhc_{number}_{start}-.Lhc_{number}_p{part},.Lhc_{number}_{end}-.Lhc_{number}_{start}"
                );
            }
            text.push('\n');
        }
        bytes(text, &map::encode_unit(&map));
        let _ = writeln!(text, ".Lhc_{number}_n:");
    }
}

/// Whether a part is the seldom used one of another.
fn is_cold(part: &Part) -> bool {
    part.name.contains(".cold")
}

/// Source files as a record numbers them.
#[derive(Default)]
struct Files {
    paths: Vec<String>,
    numbers: HashMap<u32, u32>,
}

impl Files {
    /// File and line where the source of a part begins.
    fn place(&mut self, source: &Source, base: &str, part: &Part) -> Option<(u32, u32)> {
        let row = part.first_row?;
        Some((self.number(source, base, row.file), row.line))
    }

    fn number(&mut self, source: &Source, base: &str, file: u32) -> u32 {
        let paths = &mut self.paths;
        *self.numbers.entry(file).or_insert_with(|| {
            let path = &source.files[file as usize];
            paths.push(headcount_model::source_path(base, path));
            paths.len() as u32 - 1
        })
    }
}

/// Ties a unit's record to its code. `ld --gc-sections` drops sections that nothing refers to,
/// and `.headcount` is one: a relocation that does nothing is a reference all the same. (Members
/// of a group stay or go together anyway.) lld drops the object's identity, too: for it,
/// `__start_headcount_ids` is no reference.
pub fn tie(source: &Source, unit: &Unit, number: usize, part: usize) -> String {
    if part != unit.parts[0] {
        return String::new();
    }
    let here = format!(".Lhc_{number}_p{part}");
    let mut text = format!(".reloc {here}, R_X86_64_NONE, {IDENTITY}; ");
    if source.sections[source.parts[part].section].group.is_none() {
        let _ = write!(text, ".reloc {here}, R_X86_64_NONE, .Lhc_{number}_m; ");
    }
    text
}
