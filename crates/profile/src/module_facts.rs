//! The facts of a module, most of them still as bytes: whoever needs a few functions of a large
//! module decodes those.

use std::ops::Range;

use headcount_model::{FileId, Function, LinkAddr, Module, Refusal};

use crate::Problem;
use crate::facts::{Broken, Decoder, Encoder, Numbers, Numerals, put, put_text};
use crate::shape::Shape;

/// Everything a [`Module`] says, with the blocks and edges of its functions still encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleFacts {
    /// Where the file was when it ran.
    pub path: String,
    /// Names this very build.
    pub build_id: String,
    /// Source files, as the debug information names them.
    pub files: Vec<String>,
    /// What is not counted, and why.
    pub refusals: Vec<Refusal>,
    /// The functions, by address.
    pub functions: Vec<FunctionFacts>,
    /// Where routines are under watch if the module is counted by copies, by address.
    pub watched: Vec<u64>,
    /// Where code of which function is; see [`ModuleFacts::functions_in`].
    pub(crate) extents: Vec<(u32, Range<u64>)>,
    pub(crate) shape: String,
    /// Holds the facts of all functions.
    pub(crate) store: Vec<u8>,
}

/// A function without its blocks and edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionFacts {
    /// The linker's name for it.
    pub name: String,
    /// Its entry.
    pub address: LinkAddr,
    /// Where its source begins, if the build says.
    pub source: Option<(FileId, u32)>,
    /// How many counters the plan gave it.
    pub counters: u32,
    /// How many blocks it has.
    pub blocks: u32,
    /// How many edges.
    pub edges: u32,
    /// How many instructions.
    pub instructions: u64,
    /// Where the facts are in the store that hold its own; see `facts.rs`.
    pub(crate) facts: Range<usize>,
    /// Its number in them.
    pub(crate) number: u32,
}

impl ModuleFacts {
    /// Encodes all functions of a module.
    pub fn new(module: &Module, watched: Vec<u64>) -> Self {
        let mut facts = Self {
            path: module.path.clone(),
            build_id: module.build_id.clone(),
            files: module.files.clone(),
            refusals: module.refusals.clone(),
            functions: Vec::with_capacity(module.functions.len()),
            watched,
            extents: Vec::new(),
            shape: String::new(),
            store: Vec::new(),
        };
        let mut encoder = Encoder::new();
        let mut together = 0;
        let mut shape = Shape::new(module.functions.len());
        for (number, function) in (0..).zip(&module.functions) {
            let is_enough = encoder.add(function);
            let blocks = &function.blocks;
            facts.functions.push(FunctionFacts {
                name: function.name.clone(),
                address: function.address,
                source: function.source,
                counters: function.counters,
                blocks: blocks.len() as u32,
                edges: function.edges.len() as u32,
                instructions: blocks.iter().map(|it| u64::from(it.instructions)).sum(),
                facts: 0..0,
                number: together,
            });
            together += 1;
            if is_enough || facts.functions.len() == module.functions.len() {
                facts.append(&encoder.finish(), together as usize);
                together = 0;
            }
            let extents = extents(function).into_iter();
            facts.extents.extend(extents.map(|it| (number, it)));
            shape.add(function);
        }
        facts.shape = shape.finish();
        facts
    }

    /// Puts the facts of the functions that were added last into the store.
    fn append(&mut self, facts: &[u8], functions: usize) {
        let begin = self.store.len();
        self.store.extend(facts);
        for it in self.functions.iter_mut().rev().take(functions) {
            it.facts = begin..self.store.len();
        }
    }

    /// One function.
    pub fn function(&self, index: usize) -> Result<Function, Problem> {
        Reader::new(self).function(index)
    }

    /// All of it.
    pub fn module(&self) -> Result<Module, Problem> {
        self.part(0..self.functions.len())
    }

    /// A module with these functions alone.
    pub fn part(&self, functions: impl IntoIterator<Item = usize>) -> Result<Module, Problem> {
        let mut reader = Reader::new(self);
        let functions = functions.into_iter();
        let functions = functions.map(|index| reader.function(index));
        Ok(Module {
            path: self.path.clone(),
            build_id: self.build_id.clone(),
            files: self.files.clone(),
            functions: functions.collect::<Result<_, _>>()?,
            refusals: self.refusals.clone(),
        })
    }

    /// Are the facts of all functions such that they can be decoded, and those that the digest is
    /// of?
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let mut reader = Reader::new(self);
        let mut shape = Shape::new(self.functions.len());
        for index in 0..self.functions.len() {
            shape.add(&reader.function(index)?);
        }
        match shape.finish() == self.shape {
            true => Ok(()),
            false => Err(Problem::Damaged(
                "a module has other blocks than its digest says".into(),
            )),
        }
    }

    /// Where the functions have code, function by function. Facts from a profile do not say.
    pub fn extents(&self) -> impl Iterator<Item = (&Range<u64>, usize)> {
        let extents = self.extents.iter();
        extents.map(|(function, extent)| (extent, *function as usize))
    }

    /// The functions that have code in one of these ranges of addresses, which are sorted and do not
    /// overlap.
    pub fn functions_in(&self, ranges: &[Range<u64>]) -> Vec<usize> {
        let is_in = |extent: &Range<u64>| {
            let next = ranges.partition_point(|it| it.end <= extent.start);
            ranges.get(next).is_some_and(|it| it.start < extent.end)
        };
        let found = self.extents.iter().filter(|(_, extent)| is_in(extent));
        let mut found: Vec<usize> = found.map(|(function, _)| *function as usize).collect();
        found.dedup();
        found
    }

    /// Where the functions are that were chosen: ranges of addresses, in order, that do not overlap.
    pub fn code_of(&self, chosen: &[bool]) -> Vec<Range<u64>> {
        let is_chosen = |number: u32| chosen.get(number as usize).is_some_and(|it| *it);
        let own = self.extents.iter().filter(|(it, _)| is_chosen(*it));
        headcount_model::join_ranges(own.map(|(_, extent)| extent.clone()).collect())
    }

    /// The facts that begin with those of this function; empty if its own are in those of a
    /// function before it.
    pub(crate) fn facts_from(&self, function: &FunctionFacts) -> &[u8] {
        match function.number {
            0 => self.store.get(function.facts.clone()).unwrap_or_default(),
            _ => &[],
        }
    }

    /// As bytes, for another time: all but the path.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(self.store.len() + 64 * self.functions.len());
        put_text(&mut to, &self.build_id);
        put_text(&mut to, &self.shape);
        put(&mut to, self.files.len() as u64);
        self.files.iter().for_each(|it| put_text(&mut to, it));
        put(&mut to, self.refusals.len() as u64);
        for it in &self.refusals {
            // What is about the whole module is about the path that it will have then.
            let is_module = it.subject == self.path;
            put(&mut to, is_module.into());
            put_text(&mut to, if is_module { "" } else { &it.subject });
            put_text(&mut to, &it.file);
            put(&mut to, it.line.into());
            put_text(&mut to, &it.reason);
        }
        put(&mut to, self.watched.len() as u64);
        let mut last = 0_u64;
        for at in &self.watched {
            put(&mut to, at.wrapping_sub(last));
            last = *at;
        }
        put(&mut to, self.functions.len() as u64);
        let mut last = 0_u64;
        for it in &self.functions {
            put_text(&mut to, &it.name);
            put(&mut to, it.address.0.wrapping_sub(last));
            last = it.address.0;
            let (file, line) = it.source.map_or((0, 0), |(file, line)| {
                (u64::from(file.0) + 1, u64::from(line))
            });
            let numbers = [it.counters.into(), it.blocks.into(), it.edges.into()];
            let facts = self.facts_from(it).len() as u64;
            let more = [it.instructions, facts, file, line];
            numbers.iter().chain(&more).for_each(|it| put(&mut to, *it));
        }
        put(&mut to, self.extents.len() as u64);
        let mut last = (0, 0);
        for (function, extent) in &self.extents {
            put(&mut to, (*function - last.0).into());
            put(&mut to, extent.start.wrapping_sub(last.1));
            put(&mut to, extent.end - extent.start);
            last = (*function, extent.start);
        }
        self.functions
            .iter()
            .for_each(|it| to.extend(self.facts_from(it)));
        to
    }

    /// From the bytes that begin at `begin`, for a module that has this path now. Bytes that make
    /// no sense are refused; whether each function can be decoded is seen when it is.
    pub fn from_bytes(path: &str, bytes: Vec<u8>, begin: usize) -> Result<Self, Problem> {
        let mut from = Numerals(bytes.get(begin..).unwrap_or_default());
        let mut facts = Self {
            path: path.to_owned(),
            build_id: from.text()?,
            shape: from.text()?,
            ..Self::default()
        };
        for _ in 0..from.number()? {
            facts.files.push(from.text()?);
        }
        for _ in 0..from.number()? {
            let is_module = from.number()? == 1;
            let subject = from.text()?;
            facts.refusals.push(Refusal {
                subject: if is_module { path.to_owned() } else { subject },
                file: from.text()?,
                line: from.u32()?,
                reason: from.text()?,
            });
        }
        let number = from.number()?;
        facts.watched.reserve(from.room(number));
        let mut last = 0_u64;
        for _ in 0..number {
            last = last.wrapping_add(from.number()?);
            facts.watched.push(last);
        }
        let number = from.number()?;
        facts.functions.reserve(from.room(number) / 8);
        let (mut address, mut end) = (0_u64, 0_usize);
        for _ in 0..number {
            let last = facts.functions.last();
            let it = take_function(&mut from, facts.files.len(), last, &mut address, &mut end)?;
            facts.functions.push(it);
        }
        let number = from.number()?;
        facts.extents.reserve(from.room(number) / 3);
        let mut last = (0_u32, 0_u64);
        for _ in 0..number {
            let function = last.0.checked_add(from.u32()?);
            let function = function.filter(|it| (*it as usize) < facts.functions.len());
            let function = function.ok_or(Broken("code belongs to no function"))?;
            let start = last.1.wrapping_add(from.number()?);
            let end = start.saturating_add(from.number()?);
            facts.extents.push((function, start..end));
            last = (function, start);
        }
        if from.0.len() != end {
            return Err(MISSING.into());
        }
        let before = bytes.len() - end;
        for it in &mut facts.functions {
            it.facts = it.facts.start + before..it.facts.end + before;
        }
        facts.store = bytes;
        Ok(facts)
    }
}

fn take_function(
    from: &mut Numerals<'_>,
    files: usize,
    last: Option<&FunctionFacts>,
    address: &mut u64,
    end: &mut usize,
) -> Result<FunctionFacts, Broken> {
    let name = from.text()?;
    *address = address.wrapping_add(from.number()?);
    let (counters, blocks, edges) = (from.u32()?, from.u32()?, from.u32()?);
    let (instructions, length) = (from.number()?, from.usize()?);
    let begin = *end;
    *end = begin.checked_add(length).ok_or(MISSING)?;
    let (facts, number) = place(begin..*end, last)?;
    let (file, line) = (from.usize()?, from.u32()?);
    let source = match file.checked_sub(1) {
        None => None,
        Some(file) if file < files => Some((FileId(file as u32), line)),
        Some(_) => return Err(Broken("a source file is missing")),
    };
    Ok(FunctionFacts {
        name,
        address: LinkAddr(*address),
        source,
        counters,
        blocks,
        edges,
        instructions,
        facts,
        number,
    })
}

const MISSING: Broken = Broken("the facts of functions are missing");

/// Where the facts of a function are, and its number in them, if these are the facts that begin
/// with its own, and `last` is the function before it.
pub(crate) fn place(
    facts: Range<usize>,
    last: Option<&FunctionFacts>,
) -> Result<(Range<usize>, u32), Broken> {
    match facts.is_empty() {
        false => Ok((facts, 0)),
        true => {
            let last = last.ok_or(MISSING)?;
            Ok((last.facts.clone(), last.number.saturating_add(1)))
        }
    }
}

/// Decodes functions; soon, if one after the other is asked for.
struct Reader<'a> {
    facts: &'a ModuleFacts,
    decoder: Decoder,
    /// Which facts the decoder has.
    open: Option<Range<usize>>,
}

impl<'a> Reader<'a> {
    fn new(facts: &'a ModuleFacts) -> Self {
        Self {
            facts,
            decoder: Decoder::new(),
            open: None,
        }
    }

    fn function(&mut self, index: usize) -> Result<Function, Problem> {
        let it = self.facts.functions.get(index);
        let it = it.ok_or(Broken("there is no such function"))?;
        if self.open.as_ref() != Some(&it.facts) {
            self.open = None;
            let facts = self.facts.store.get(it.facts.clone());
            self.decoder.open(facts.unwrap_or_default())?;
            self.open = Some(it.facts.clone());
        }
        let numbers = Numbers {
            address: it.address,
            blocks: it.blocks,
            edges: it.edges,
            instructions: it.instructions,
            files: self.facts.files.len(),
        };
        let (blocks, edges, compiled) = self.decoder.function(it.number, numbers)?;
        Ok(Function {
            name: it.name.clone(),
            address: it.address,
            source: it.source,
            blocks,
            edges,
            counters: it.counters,
            compiled,
        })
    }
}

/// Where its code is.
fn extents(function: &Function) -> Vec<Range<u64>> {
    let pieces = function.blocks.iter().flat_map(|block| &block.code);
    let mut ranges: Vec<Range<u64>> = pieces
        .map(|it| it.address.0..it.address.0.saturating_add(it.bytes.len() as u64))
        // Even what has no code has a place.
        .chain(
            function
                .blocks
                .iter()
                .map(|it| it.address.0..it.address.0.saturating_add(1)),
        )
        .collect();
    ranges.sort_unstable_by_key(|it| it.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

impl From<Broken> for Problem {
    fn from(Broken(what): Broken) -> Self {
        Self::Damaged(what.into())
    }
}
