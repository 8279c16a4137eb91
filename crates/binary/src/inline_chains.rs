//! Which functions does an instruction belong to: the one it was compiled into, and those that were
//! inlined there around it?

use std::ops::Range;

use gimli::{LittleEndian, Unit};
use headcount_model::{InlineFrame, LinkAddr};

use crate::Error;
use crate::debug_files::{self, Find, Slice};
use crate::debug_info::{self, Files, Units};
use crate::inlined::{InlinedNames, Reader, Scope};
use crate::layout::{Elf, check_kind, parse};

/// For each address, the outermost function first; nothing where the file does not say. `addresses`
/// must be sorted.
pub fn inline_chains(bytes: &[u8], addresses: &[LinkAddr]) -> Result<Vec<Vec<InlineFrame>>, Error> {
    check_kind(bytes)?;
    let elf = parse(bytes)?;
    let sections = debug_files::sections(&elf);
    let dwarf = sections.borrow(|section| Slice::new(section, LittleEndian));
    let mut troubles = Vec::new();
    let units = Units::of(&dwarf, &mut troubles);
    let mut found = Found {
        addresses,
        scopes: vec![Vec::new(); addresses.len()],
        lines: vec![None; addresses.len()],
    };
    let reader = Reader {
        units: &units,
        shared: None,
        skeleton: None,
    };
    for unit in &units.units {
        let mut scopes = Vec::new();
        let read = reader.scopes(unit, &mut Files::default(), &mut scopes);
        found.add_scopes(scopes);
        let read = read.and_then(|()| found.add_lines(unit));
        if let Err(error) = read {
            troubles.push(format!("its debug information is broken ({error})"));
        }
    }
    match troubles.into_iter().next() {
        Some(what) => Err(Error::Damaged { what }),
        None => Ok(found.chains()),
    }
}

/// What was inlined into functions: the linker's names, by the functions' addresses and in the order in which a module
/// lists these copies. `find` is asked for files that debug information was moved to.
pub fn inlined_names(bytes: &[u8], find: &mut Find<'_>) -> Result<InlinedNames, Error> {
    check_kind(bytes)?;
    let elf = parse(bytes)?;
    let separate = debug_files::separate(&elf, find);
    let separate = separate
        .as_deref()
        .and_then(|bytes| Elf::parse(bytes.as_ref()).ok());
    Ok(debug_info::inlined_names(
        separate.as_ref().unwrap_or(&elf),
        find,
    ))
}

struct Found<'a> {
    addresses: &'a [LinkAddr],
    /// What is around each address, outermost first.
    scopes: Vec<Vec<std::rc::Rc<Scope>>>,
    /// The line and the discriminator of each address.
    lines: Vec<Option<(u32, u64)>>,
}

impl Found<'_> {
    /// The numbers of the addresses in a range.
    fn inside(&self, range: &Range<u64>) -> Range<usize> {
        let place = |at: u64| self.addresses.partition_point(|it| it.0 < at);
        place(range.start)..place(range.end.max(range.start))
    }

    /// Inner scopes come behind outer ones, as in the file.
    fn add_scopes(&mut self, scopes: Vec<Scope>) {
        for scope in scopes {
            let scope = std::rc::Rc::new(scope);
            for range in &scope.ranges {
                for number in self.inside(range) {
                    self.scopes[number].push(scope.clone());
                }
            }
        }
    }

    fn add_lines(&mut self, unit: &Unit<Slice<'_>>) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else {
            return Ok(());
        };
        let mut rows = program.rows();
        let mut before: Option<(u64, u32, u64)> = None;
        while let Some((_, row)) = rows.next_row()? {
            if let Some((from, line, discriminator)) = before {
                for number in self.inside(&(from..row.address())) {
                    self.lines[number] = Some((line, discriminator));
                }
            }
            let line = row.line().map_or(0, |line| line.get());
            let line = u32::try_from(line).unwrap_or(0);
            before = match row.end_sequence() {
                true => None,
                false => Some((row.address(), line, row.discriminator())),
            };
        }
        Ok(())
    }

    fn chains(self) -> Vec<Vec<InlineFrame>> {
        let all = self.scopes.iter().zip(&self.lines);
        all.map(|(scopes, line)| match line {
            Some((line, discriminator)) if *line > 0 => chain(scopes, (*line, *discriminator)),
            _ => Vec::new(),
        })
        .collect()
    }
}

/// Each function is at the line that called the next; the last is where the instruction is.
fn chain(scopes: &[std::rc::Rc<Scope>], own: (u32, u64)) -> Vec<InlineFrame> {
    // A function that lies inside of another (a nested one) is not inlined there.
    let first = scopes.iter().rposition(|it| it.call.is_none()).unwrap_or(0);
    let scopes = scopes.get(first..).unwrap_or_default();
    let calls = scopes.iter().skip(1).map(|it| it.call.unwrap_or_default());
    let places = calls.chain([own]);
    let frames = scopes.iter().zip(places);
    frames
        .map(|(scope, (line, discriminator))| InlineFrame {
            function: scope.function.clone(),
            start: scope.start,
            line,
            discriminator,
        })
        .collect()
}
