//! Which functions does the debug information know, and what was inlined into them?

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use gimli::{
    Attribute, AttributeSpecification, AttributeValue, DebugInfoOffset, DwAt, Unit, UnitOffset,
    constants,
};
use headcount_model::{Compiled, FileId, InlinedCall, LinkAddr};

use crate::debug_files::Slice;
use crate::debug_info::{Dwarf, Files, Units};
use crate::lines;

/// A function with code of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subprogram {
    pub at: u64,
    /// The linker's name for it, if the compiler wrote that down.
    pub linkage_name: Option<String>,
    /// Its name in the source.
    pub name: Option<String>,
    /// Where it is declared.
    pub source: Option<(FileId, u32)>,
    /// What the compiler made of its lines.
    pub compiled: Compiled,
}

/// A function, or a copy of one that was inlined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    pub ranges: Vec<Range<u64>>,
    /// The linker's name, or the one in the source where that is the same.
    pub function: String,
    /// The line that it is declared on.
    pub start: u32,
    /// For a copy, the line and the discriminator of the call.
    pub call: Option<(u32, u64)>,
}

/// What is found of inlined copies.
#[derive(Debug, Default)]
pub struct Copies {
    /// Which holds from which address on.
    from: BTreeMap<u64, u32>,
    /// How many ranges were read so far.
    ranges: usize,
    /// If somebody asked: the names of what was inlined into functions, by where these are and in the order of
    /// [`Compiled::inlined`].
    pub names: Option<InlinedNames>,
}

/// For each function, by address: the names of the functions that were inlined into it, in the order of
/// [`Compiled::inlined`]. Each is the linker's name, else that in the source, or empty if neither is known.
pub type InlinedNames = HashMap<LinkAddr, Vec<String>>;

impl Copies {
    /// What is painted later lies deeper, and covers what was painted before.
    fn paint(&mut self, range: Range<u64>, number: u32) {
        if range.is_empty() {
            return;
        }
        let behind = self.from.range(..=range.end).next_back();
        let behind = behind.map_or(0, |(_, number)| *number);
        let covered: Vec<u64> = self.from.range(range.clone()).map(|(at, _)| *at).collect();
        for at in covered {
            self.from.remove(&at);
        }
        self.from.insert(range.start, number);
        self.from.insert(range.end, behind);
    }

    pub fn finish(self) -> Vec<(u64, u32)> {
        self.from.into_iter().collect()
    }
}

/// Reads units, and follows what they refer to.
pub struct Reader<'r, 'a> {
    pub units: &'r Units<'a>,
    /// What several files share.
    pub shared: Option<&'r Units<'a>>,
    /// The unit that a split unit belongs to.
    pub skeleton: Option<(&'r Dwarf<'r>, &'r Unit<Slice<'r>>)>,
}

type Value<'a> = AttributeValue<Slice<'a>>;

/// The attributes that matter here.
#[derive(Default)]
struct Facts<'a> {
    low: Option<Value<'a>>,
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    name: Option<Value<'a>>,
    linkage_name: Option<Value<'a>>,
    file: Option<Value<'a>>,
    line: Option<u64>,
    origin: Option<Value<'a>>,
    entry: Option<Value<'a>>,
    frame_base: Option<Value<'a>>,
    call_file: Option<Value<'a>>,
    call_line: Option<u64>,
    call_column: Option<u64>,
    call_discriminator: Option<u64>,
}

impl<'a> Facts<'a> {
    fn add(&mut self, attribute: &Attribute<Slice<'a>>) {
        let place = match attribute.name() {
            constants::DW_AT_low_pc => &mut self.low,
            constants::DW_AT_high_pc => &mut self.high,
            constants::DW_AT_ranges => &mut self.ranges,
            constants::DW_AT_name => &mut self.name,
            constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => {
                &mut self.linkage_name
            }
            constants::DW_AT_decl_file => &mut self.file,
            constants::DW_AT_entry_pc => &mut self.entry,
            constants::DW_AT_frame_base => &mut self.frame_base,
            constants::DW_AT_call_file => &mut self.call_file,
            constants::DW_AT_abstract_origin | constants::DW_AT_specification => &mut self.origin,
            constants::DW_AT_decl_line => {
                self.line = attribute.udata_value();
                return;
            }
            constants::DW_AT_call_line => {
                self.call_line = attribute.udata_value();
                return;
            }
            constants::DW_AT_call_column => {
                self.call_column = attribute.udata_value();
                return;
            }
            constants::DW_AT_GNU_discriminator => {
                self.call_discriminator = attribute.udata_value();
                return;
            }
            _ => return,
        };
        *place = Some(attribute.value());
    }

    fn matters(name: DwAt) -> bool {
        matches!(
            name,
            constants::DW_AT_low_pc
                | constants::DW_AT_high_pc
                | constants::DW_AT_ranges
                | constants::DW_AT_name
                | constants::DW_AT_linkage_name
                | constants::DW_AT_MIPS_linkage_name
                | constants::DW_AT_decl_file
                | constants::DW_AT_decl_line
                | constants::DW_AT_entry_pc
                | constants::DW_AT_frame_base
                | constants::DW_AT_call_file
                | constants::DW_AT_call_line
                | constants::DW_AT_call_column
                | constants::DW_AT_GNU_discriminator
                | constants::DW_AT_abstract_origin
                | constants::DW_AT_specification
        )
    }
}

/// A function around the current entry.
struct Around {
    depth: isize,
    /// Its place in the list, if it has code.
    subprogram: Option<usize>,
    /// The inlined calls around the current entry: how deep each is, and its number.
    calls: Vec<(isize, u32)>,
    /// How many inlined calls it has so far.
    count: u32,
}

impl Around {
    /// Leaves the inlined calls that end before anything at this depth.
    fn leave(&mut self, depth: isize) {
        while self.calls.last().is_some_and(|(outer, _)| *outer >= depth) {
            self.calls.pop();
        }
    }

    /// Comes to the inlined call that was counted last; answers with the one around it.
    fn enter(&mut self, depth: isize) -> u32 {
        let within = self.calls.last().map_or(0, |(_, number)| *number);
        self.calls.push((depth, self.count));
        within
    }
}

/// How deep an entry lies.
#[derive(Clone, Copy)]
struct Depths {
    at: isize,
    /// The least of it and of all entries since the one that was shown before.
    lowest: isize,
}

/// Who compiled a unit.
struct Producer {
    is_rust: bool,
    /// Whether rows mark only where the line changes.
    marks_changes: bool,
    /// Whether it was optimised, if it says so.
    says: Option<bool>,
}

/// Where the variables of a unit are.
#[derive(Default)]
struct Variables {
    all: usize,
    /// Those that are at different places at different times.
    moving: usize,
}

impl Variables {
    fn add(&mut self, attributes: &[AttributeSpecification]) {
        let is_place = |it: &&AttributeSpecification| it.name() == constants::DW_AT_location;
        for attribute in attributes.iter().filter(is_place) {
            self.all += 1;
            self.moving += usize::from(matches!(
                attribute.form(),
                constants::DW_FORM_loclistx | constants::DW_FORM_sec_offset
            ));
        }
    }

    /// Whether so many move that an optimiser was there. Some do without one, where code is always
    /// inlined.
    fn are_optimised(&self) -> bool {
        self.moving * 8 > self.all
    }
}

/// Whether a function finds its variables by its stack pointer: without optimisation, compilers
/// set up a frame.
fn has_no_frame(facts: &Facts<'_>) -> bool {
    let Some(AttributeValue::Exprloc(base)) = facts.frame_base else {
        return false;
    };
    base.0.slice() == [constants::DW_OP_reg7.0]
}

/// A damaged file may let every entry refer to the same long list.
const MOST_RANGES: usize = 1 << 24;

impl<'a> Reader<'_, 'a> {
    /// Adds the functions of a unit, and what is inlined into them.
    pub fn read(
        &self,
        unit: &Unit<Slice<'a>>,
        files: &mut Files,
        subprograms: &mut Vec<Subprogram>,
        copies: &mut Copies,
    ) -> gimli::Result<()> {
        let first = subprograms.len();
        let mut around: Vec<Around> = Vec::new();
        let (mut functions, mut frameless) = (0_usize, 0_usize);
        let variables = self.each(unit, &mut |depth, is_function, facts| {
            while around
                .last()
                .is_some_and(|outer| outer.depth >= depth.lowest)
            {
                around.pop();
            }
            if let Some(function) = around.last_mut() {
                function.leave(depth.lowest);
            }
            let ranges = self.ranges(unit, &facts, &mut copies.ranges)?;
            if is_function {
                functions += usize::from(facts.frame_base.is_some());
                frameless += usize::from(has_no_frame(&facts));
                let found = self.entry(unit, &facts, &ranges);
                around.push(Around {
                    depth: depth.at,
                    subprogram: found.map(|_| subprograms.len()),
                    calls: Vec::new(),
                    count: 0,
                });
                if let Some(at) = found {
                    subprograms.push(self.subprogram(unit, at, &facts, files));
                }
            } else if let Some(function) = around.last_mut() {
                function.count += 1;
                let within = function.enter(depth.at);
                if let Some(index) = function.subprogram {
                    let callee = self.subprogram(unit, 0, &facts, files);
                    let call = InlinedCall {
                        within,
                        callee: callee.source,
                        ..self.call(unit, &facts, &ranges, files)
                    };
                    let caller = &mut subprograms[index];
                    caller.compiled.inlined.push(call);
                    if let Some(names) = &mut copies.names {
                        let names = names.entry(LinkAddr(caller.at)).or_default();
                        names.push(callee.linkage_name.or(callee.name).unwrap_or_default());
                    }
                }
                for range in ranges {
                    copies.paint(range, function.count);
                }
            }
            Ok(())
        })?;
        let producer = self.producer(unit);
        // Rust does without frames at any level.
        let is_frameless = frameless * 2 > functions && !producer.is_rust;
        let is_optimised = variables.are_optimised() || is_frameless;
        for found in subprograms.iter_mut().skip(first) {
            found.compiled.marks_changes = producer.marks_changes;
            found.compiled.is_optimised = producer.says.unwrap_or(is_optimised);
        }
        Ok(())
    }

    /// Who compiled a unit. gcc and Go tell their options; others do not.
    fn producer(&self, unit: &Unit<Slice<'a>>) -> Producer {
        let name = |unit: &Unit<Slice<'a>>| {
            let root = unit.entry(unit.header.root_offset()).ok()?;
            let value = root.attr_value(constants::DW_AT_producer)?;
            let text = self.units.dwarf.attr_string(unit, value).ok()?;
            Some(text.to_string_lossy().into_owned())
        };
        let name = name(unit).unwrap_or_default();
        let mut words = name.split([' ', ';']);
        let (is_gcc, is_go) = (name.starts_with("GNU "), name.starts_with("Go cmd/"));
        let says = if is_gcc {
            let level = words.rfind(|word| word.starts_with("-O"));
            Some(level.is_some_and(|level| level != "-O0"))
        } else {
            is_go.then(|| words.all(|word| word != "-N"))
        };
        Producer {
            is_rust: name.contains("rustc"),
            marks_changes: !is_gcc && !is_go,
            says,
        }
    }

    /// The call that an inlined copy stands for, but for what it is within and what it calls.
    fn call(
        &self,
        unit: &Unit<Slice<'a>>,
        facts: &Facts<'a>,
        ranges: &[Range<u64>],
        files: &mut Files,
    ) -> InlinedCall {
        let place = Facts {
            file: facts.call_file,
            line: facts.call_line,
            ..Facts::default()
        };
        let (file, line) = self
            .source(self.units, unit, &place, files)
            .unwrap_or_default();
        let column = facts.call_column.unwrap_or(0);
        InlinedCall {
            within: 0,
            file,
            line,
            column: u32::try_from(column).unwrap_or(0),
            entry: self.copy_entry(unit, facts, ranges).map(LinkAddr),
            callee: None,
        }
    }

    /// Where an inlined copy is entered: where it says, or where it begins.
    fn copy_entry(
        &self,
        unit: &Unit<Slice<'a>>,
        facts: &Facts<'a>,
        ranges: &[Range<u64>],
    ) -> Option<u64> {
        let begin = self.entry(unit, facts, ranges);
        match facts.entry {
            Some(AttributeValue::Udata(offset)) => begin?.checked_add(offset),
            Some(value) => self.units.dwarf.attr_address(unit, value).ok()?,
            None => begin,
        }
    }

    /// Adds the functions of a unit and every inlined copy; what lies inside of another comes behind
    /// it.
    pub fn scopes(
        &self,
        unit: &Unit<Slice<'a>>,
        files: &mut Files,
        scopes: &mut Vec<Scope>,
    ) -> gimli::Result<()> {
        let mut count = 0;
        self.each(unit, &mut |_, is_function, facts| {
            let ranges = self.ranges(unit, &facts, &mut count)?;
            if ranges.is_empty() {
                return Ok(());
            }
            let named = self.subprogram(unit, 0, &facts, files);
            let call = (
                u32::try_from(facts.call_line.unwrap_or(0)).unwrap_or(0),
                facts.call_discriminator.unwrap_or(0),
            );
            scopes.push(Scope {
                ranges,
                function: named.linkage_name.or(named.name).unwrap_or_default(),
                start: named.source.map_or(0, |(_, line)| line),
                call: (!is_function).then_some(call),
            });
            Ok(())
        })?;
        Ok(())
    }

    /// Shows every function and every inlined copy of a unit: how deep it lies, whether it is a
    /// function, and what is known of it. Answers with where the variables of the unit are.
    fn each(
        &self,
        unit: &Unit<Slice<'a>>,
        show: &mut dyn FnMut(Depths, bool, Facts<'a>) -> gimli::Result<()>,
    ) -> gimli::Result<Variables> {
        let mut variables = Variables::default();
        let mut entries = unit.entries_raw(None)?;
        let mut lowest = isize::MAX;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            lowest = lowest.min(depth);
            let tag = abbreviation.tag();
            let is_function = tag == constants::DW_TAG_subprogram;
            if !is_function && tag != constants::DW_TAG_inlined_subroutine {
                variables.add(abbreviation.attributes());
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut facts = Facts::default();
            for specification in abbreviation.attributes() {
                let attribute = entries.read_attribute(*specification)?;
                if Facts::matters(attribute.name()) {
                    facts.add(&attribute);
                }
            }
            show(Depths { at: depth, lowest }, is_function, facts)?;
            lowest = isize::MAX;
        }
        Ok(variables)
    }

    fn entry(
        &self,
        unit: &Unit<Slice<'a>>,
        facts: &Facts<'a>,
        ranges: &[Range<u64>],
    ) -> Option<u64> {
        let low = facts
            .low
            .and_then(|low| self.units.dwarf.attr_address(unit, low).ok()?);
        low.or(ranges.first().map(|range| range.start))
            .filter(|at| *at != 0)
    }

    fn ranges(
        &self,
        unit: &Unit<Slice<'a>>,
        facts: &Facts<'a>,
        count: &mut usize,
    ) -> gimli::Result<Vec<Range<u64>>> {
        let dwarf = self.units.dwarf;
        let mut found = Vec::new();
        if let Some(list) = facts.ranges {
            if let Some(mut list) = dwarf.attr_ranges(unit, list)? {
                while let Some(range) = list.next()? {
                    found.push(range.begin..range.end);
                    *count += 1;
                    if *count >= MOST_RANGES {
                        break;
                    }
                }
            }
            return Ok(found);
        }
        let (Some(low), Some(high)) = (facts.low, facts.high) else {
            return Ok(found);
        };
        let Some(low) = dwarf.attr_address(unit, low)? else {
            return Ok(found);
        };
        let end = match high {
            AttributeValue::Udata(size) => low.checked_add(size),
            value => dwarf.attr_address(unit, value)?,
        };
        found.extend(end.map(|end| low..end));
        Ok(found)
    }

    fn subprogram(
        &self,
        unit: &Unit<Slice<'a>>,
        at: u64,
        facts: &Facts<'a>,
        files: &mut Files,
    ) -> Subprogram {
        let mut found = Subprogram {
            at,
            linkage_name: None,
            name: None,
            source: None,
            compiled: Compiled::default(),
        };
        self.complete(&mut found, self.units, unit, facts, files, 4);
        found
    }

    /// Fills in what is missing from the entry, and from the one that it refers to.
    fn complete(
        &self,
        found: &mut Subprogram,
        units: &Units<'a>,
        unit: &Unit<Slice<'a>>,
        facts: &Facts<'a>,
        files: &mut Files,
        hops: u32,
    ) {
        let text = |value: Option<Value<'a>>| {
            let text = units.dwarf.attr_string(unit, value?).ok()?;
            Some(text.to_string_lossy().into_owned())
        };
        found.linkage_name = found
            .linkage_name
            .take()
            .or_else(|| text(facts.linkage_name));
        found.name = found.name.take().or_else(|| text(facts.name));
        if found.source.is_none() {
            found.source = self.source(units, unit, facts, files);
        }
        let done = found.source.is_some() && found.linkage_name.is_some();
        let Some(origin) = facts.origin.filter(|_| !done && hops > 0) else {
            return;
        };
        let place = match origin {
            AttributeValue::UnitRef(offset) => Some((units, unit, offset)),
            AttributeValue::DebugInfoRef(offset) => locate(units, offset),
            AttributeValue::DebugInfoRefSup(offset) => {
                self.shared.and_then(|shared| locate(shared, offset))
            }
            _ => None,
        };
        let Some((units, unit, offset)) = place else {
            return;
        };
        let Ok(entry) = unit.entry(offset) else {
            return;
        };
        let mut facts = Facts::default();
        for attribute in entry.attrs() {
            facts.add(attribute);
        }
        self.complete(found, units, unit, &facts, files, hops - 1);
    }

    fn source(
        &self,
        units: &Units<'a>,
        unit: &Unit<Slice<'a>>,
        facts: &Facts<'a>,
        files: &mut Files,
    ) -> Option<(FileId, u32)> {
        let line = u32::try_from(facts.line?).ok()?;
        let index = match facts.file? {
            AttributeValue::FileIndex(index) => index,
            other => other.udata_value()?,
        };
        let file = match (&unit.line_program, self.skeleton) {
            (Some(program), _) => lines::file(units.dwarf, unit, program.header(), index, files)?,
            (None, Some((dwarf, skeleton))) => {
                let program = skeleton.line_program.as_ref()?;
                lines::file(dwarf, skeleton, program.header(), index, files)?
            }
            _ => return None,
        };
        Some((file, line))
    }
}

/// The unit that an offset of the section lies in, and where in it.
fn locate<'u, 'a>(
    units: &'u Units<'a>,
    offset: DebugInfoOffset,
) -> Option<(&'u Units<'a>, &'u Unit<Slice<'a>>, UnitOffset)> {
    let start = |unit: &Unit<Slice<'a>>| {
        unit.header
            .debug_info_offset()
            .unwrap_or(DebugInfoOffset(0))
    };
    let after = units.units.partition_point(|unit| start(unit) <= offset);
    let unit = units.units.get(after.checked_sub(1)?)?;
    let inside = offset.to_unit_offset(&unit.header)?;
    Some((units, unit, inside))
}
