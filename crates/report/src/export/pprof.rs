//! Profiles of pprof: `perftools.profiles.Profile` (`profile.proto`), compressed with gzip.
//!
//! Counts know no stacks, unless a run was asked what its calls cost. Without: every sample has one place, the first instruction of a line in a block,
//! and three values.

use super::limit::Limit;
use super::{Exported, Material};
use crate::count::CountedBlock;
use crate::names::{Named, functions};
use crate::rows::by_address;
use crate::{Error, visible};
use flate2::{Compression, write::GzEncoder};
use headcount_model::LinkAddr;
use prost::Message;
use std::collections::HashMap;
use std::io::Write;

/// The whole profile.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let own_limit = limit.at_most(i64::MAX as u64);
    let mut builder = Builder::new(&own_limit);
    for module in material.counted {
        for named in functions(module, material.demangle) {
            if material.only.wants(&named) {
                builder.function(&named, material)?;
            }
        }
    }
    Ok(Exported {
        bytes: packed(&builder.tables.profile)?,
        notes: own_limit.note().into_iter().collect(),
    })
}

/// A profile as it is in a file.
pub fn packed(profile: &Profile) -> Result<Vec<u8>, Error> {
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    let bytes = compressed
        .write_all(&profile.encode_to_vec())
        .and_then(|()| compressed.finish());
    bytes.map_err(|_| Error::TooLarge)
}

/// A profile that grows, with each text and each mapping once.
#[derive(Default)]
pub struct Tables {
    pub profile: Profile,
    strings: HashMap<String, i64>,
    /// By path and build id.
    mappings: HashMap<(String, String), u64>,
}

impl Tables {
    /// With nothing but the empty text, whose number is always 0.
    pub fn new() -> Self {
        let mut tables = Self::default();
        tables.string("");
        tables
    }

    /// The number of a text.
    pub fn string(&mut self, text: &str) -> i64 {
        let table = &mut self.profile.string_table;
        let number = table.len() as i64;
        *self.strings.entry(text.to_owned()).or_insert_with(|| {
            table.push(text.to_owned());
            number
        })
    }

    /// The number of a module, by its path and the linker's id.
    pub fn mapping(&mut self, path: &str, build_id: &str) -> u64 {
        let key = (path.to_owned(), build_id.to_owned());
        if let Some(known) = self.mappings.get(&key) {
            return *known;
        }
        let id = self.mappings.len() as u64 + 1;
        self.mappings.insert(key, id);
        let (filename, build_id) = (self.string(path), self.string(build_id));
        self.profile.mapping.push(Mapping {
            id,
            memory_start: u64::MAX,
            filename,
            build_id,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            ..Mapping::default()
        });
        id
    }

    /// Adds an address with the functions there, inlined ones first. Mapping 0 is none.
    pub fn location(&mut self, mapping: u64, at: LinkAddr, line: Vec<Line>) -> u64 {
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location {
            id,
            mapping_id: mapping,
            address: at.0,
            line,
        });
        let mapping = mapping.checked_sub(1).map(|it| it as usize);
        if let Some(mapping) = mapping.and_then(|it| self.profile.mapping.get_mut(it)) {
            mapping.memory_start = mapping.memory_start.min(at.0);
            mapping.memory_limit = mapping.memory_limit.max(at.0.saturating_add(1));
        }
        id
    }
}

struct Builder<'a> {
    tables: Tables,
    limit: &'a Limit,
    /// By module, function and file.
    functions: HashMap<(u64, LinkAddr, String), u64>,
}

impl<'a> Builder<'a> {
    fn new(limit: &'a Limit) -> Self {
        let mut tables = Tables::new();
        let count = tables.string("count");
        for name in ["instructions", "blocks", "calls"] {
            let r#type = tables.string(name);
            let value = ValueType {
                r#type,
                unit: count,
            };
            tables.profile.sample_type.push(value);
        }
        tables.profile.default_sample_type = tables.string("instructions");
        let comment = tables.string("Exact counts by headcount; there are no stacks.");
        tables.profile.comment.push(comment);
        Self {
            tables,
            limit,
            functions: HashMap::new(),
        }
    }

    fn function(&mut self, named: &Named<'_>, material: &Material<'_>) -> Result<(), Error> {
        let module = named.module;
        let mapping = self
            .tables
            .mapping(&module.path, of_linker(&module.build_id));
        let entry = named.function.address;
        for block in by_address(named) {
            if block.count().is_never() && block.executed(0..block.block.instructions)?.is_never() {
                continue;
            }
            let mut is_first = true;
            for (address, (file, line), range) in pieces(named, &block, material) {
                let number = |count: crate::Count| count.value().unwrap_or(0);
                let visits = number(block.count());
                let executed = number(block.executed(range)?);
                let values = [
                    executed,
                    if is_first { visits } else { 0 },
                    if is_first && block.block.address == entry {
                        visits
                    } else {
                        0
                    },
                ];
                is_first = false;
                let function = self.function_in(named, mapping, file);
                self.sample(mapping, address, function, line, values);
            }
        }
        Ok(())
    }

    fn sample(&mut self, mapping: u64, at: LinkAddr, function: u64, line: u32, values: [u64; 3]) {
        let line = Line {
            function_id: function,
            line: line.into(),
        };
        let location = self.tables.location(mapping, at, vec![line]);
        let value = values.map(|it| i64::try_from(self.limit.cut(it)).unwrap_or(i64::MAX));
        self.tables.profile.sample.push(Sample {
            location_id: vec![location],
            value: value.to_vec(),
        });
    }

    /// A function; one with lines of several files (of what is inlined into it) is several here.
    fn function_in(&mut self, named: &Named<'_>, mapping: u64, file: &str) -> u64 {
        let key = (mapping, named.function.address, file.to_owned());
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(key, id);
        let function = Function {
            id,
            name: self.tables.string(&visible(&named.name)),
            system_name: self.tables.string(&named.function.name),
            filename: self.tables.string(file),
            start_line: named.function.source.map_or(0, |(_, line)| line.into()),
        };
        self.tables.profile.function.push(function);
        id
    }
}

/// The linker's own id, if ours begins with it: `elf-5459bdb3-eda14596`.
fn of_linker(build_id: &str) -> &str {
    let id = build_id
        .strip_prefix("elf-")
        .and_then(|it| it.split('-').next());
    id.unwrap_or(build_id)
}

type Piece<'a> = (LinkAddr, (&'a str, u32), std::ops::Range<u32>);

/// The lines of a block: where each begins, which it is, and which instructions are in it.
fn pieces<'a>(
    named: &Named<'a>,
    block: &CountedBlock<'a>,
    material: &Material<'_>,
) -> Vec<Piece<'a>> {
    let own = named.own_file().unwrap_or("");
    let ranges = block.line_ranges();
    let front = ranges
        .first()
        .map_or(block.block.instructions, |it| it.start);
    let mut places = Vec::new();
    if front > 0 {
        places.push(((own, 0), 0..front));
    }
    let lines = block.block.lines.iter();
    places.extend(
        lines
            .map(|run| (named.file(run.file).unwrap_or(own), run.line))
            .zip(ranges),
    );
    let addresses = super::code::addresses(block, material);
    let address = |number: u32| {
        let at = addresses.get(number as usize);
        at.copied().unwrap_or(block.block.address)
    };
    let with_address = places
        .into_iter()
        .map(|(place, range)| (address(range.start), place, range));
    with_address.collect()
}

/// The messages of `profile.proto` that are used here, with their field numbers.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}
