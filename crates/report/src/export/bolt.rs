//! Branches for BOLT (`.fdata`): how often control went from where to where, by symbol and offset.
//!
//! What branch records of a processor tell from samples, counts tell in full. A conditional branch
//! has two records, one for each way; a call has one, or one for every function that it led to if runs
//! were asked for that (`run --targets`); and what entered a function in other ways (through a
//! pointer, from another module) comes from `[unknown]`.

use super::limit::Limit;
use super::{Exported, Material, code, several};
use crate::count::edges;
use crate::names::{Named, functions};
use crate::rows;
use crate::targets::targets;
use crate::{Error, visible};
use headcount_model::{CodeSymbol, Counted, EdgeKind, LinkAddr};
use std::collections::BTreeMap;

/// The records of the one module that is there.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let module = super::only_module(material)?;
    let symbols = Symbols::of(module, material)?;
    let mut records = Records {
        symbols: &symbols,
        counts: BTreeMap::new(),
        nameless: 0,
    };
    let (mut uncounted, mut called) = (0, BTreeMap::new());
    let functions = functions(module, false);
    let targets = targets(material.counted, material.values);
    for named in functions.iter().filter(|it| material.only.wants(it)) {
        uncounted += branches(named, material, &mut records)?;
        for call in code::calls(0, named, &targets, material) {
            if let (Some(target), Some(count @ 1..)) = (call.target, call.count.value())
                && symbols.begins_at(target)
            {
                records.add(Some(call.address), target, count)?;
                *called.entry(target).or_insert(0_u64) += count;
            }
        }
    }
    for named in functions.iter().filter(|it| material.only.wants(it)) {
        let entry = named.function.address;
        let known = called.get(&entry).copied().unwrap_or(0);
        let entered = rows::calls(named).value().unwrap_or(0);
        if let Some(rest @ 1..) = entered.checked_sub(known) {
            records.add(None, entry, rest)?;
        }
    }
    Ok(records.exported(uncounted, limit))
}

/// Adds the branches of a function; says of how many the counts are not known.
fn branches(
    named: &Named<'_>,
    material: &Material<'_>,
    records: &mut Records<'_>,
) -> Result<usize, Error> {
    let function = named.function;
    let mut uncounted = 0;
    let last: Vec<Option<LinkAddr>> = named
        .blocks()
        .map(|block| code::addresses(&block, material).last().copied())
        .collect();
    let is_branch = |from: u32| {
        let mut out = function.edges.iter().filter(|it| it.from == Some(from));
        out.any(|it| it.kind == EdgeKind::Taken)
    };
    for (edge, count) in function.edges.iter().zip(edges(named.counts)) {
        let (Some(from), Some(to)) = (edge.from, edge.to) else {
            continue;
        };
        let is_record = match edge.kind {
            EdgeKind::Taken | EdgeKind::Jump => true,
            EdgeKind::Fall => is_branch(from),
            _ => false,
        };
        let at = last.get(from as usize).copied().flatten();
        let to = function.blocks.get(to as usize).map(|it| it.address);
        match (is_record, at, to, count.value()) {
            (false, ..) | (.., Some(0)) => (),
            (true, Some(at), Some(to), Some(count)) => records.add(Some(at), to, count)?,
            _ => uncounted += 1,
        }
    }
    Ok(uncounted)
}

/// A symbol and an offset from it.
type Place<'s> = (&'s str, u64);

struct Records<'s> {
    symbols: &'s Symbols,
    /// By where control came from (nobody knows, if none) and where it went.
    counts: BTreeMap<(Option<Place<'s>>, Place<'s>), u64>,
    /// How many lie where no symbol is.
    nameless: usize,
}

impl Records<'_> {
    fn add(&mut self, from: Option<LinkAddr>, to: LinkAddr, count: u64) -> Result<(), Error> {
        let place = from.map(|it| self.symbols.at(it));
        let (Some(to), false) = (self.symbols.at(to), place == Some(None)) else {
            self.nameless += 1;
            return Ok(());
        };
        let sum = self.counts.entry((place.flatten(), to)).or_default();
        *sum = sum.checked_add(count).ok_or(Error::TooLarge)?;
        Ok(())
    }

    fn exported(&self, uncounted: usize, limit: &Limit) -> Exported {
        let mut text = String::new();
        for ((from, to), count) in &self.counts {
            match from {
                Some((name, offset)) => text.push_str(&format!("1 {name} {offset:x}")),
                None => text.push_str("0 [unknown] 0"),
            }
            let (name, offset) = to;
            let count = limit.cut(*count);
            text.push_str(&format!(" 1 {name} {offset:x} 0 {count}\n"));
        }
        let mut notes = Vec::new();
        for (number, why) in [
            (uncounted, "not counted, and left out."),
            (self.nameless, "left out: no symbol names the code."),
        ] {
            if number > 0 {
                let what = several(number, "branch").replace("branchs", "branches");
                notes.push(format!("{what} {why}"));
            }
        }
        Exported {
            bytes: text.into_bytes(),
            notes,
        }
    }
}

/// The names that BOLT gives to code.
struct Symbols(Vec<(LinkAddr, u64, String)>);

impl Symbols {
    fn of(module: &Counted, material: &Material<'_>) -> Result<Self, Error> {
        let symbols = (material.symbols)(&module.module);
        let symbols = symbols.map_err(|why| super::unfit(module, why))?;
        if symbols.is_empty() {
            let why = "it has no symbols, and BOLT knows functions by them; build it without -s";
            return Err(super::unfit(module, why.into()));
        }
        let named = symbols
            .iter()
            .map(|it| (it.address, it.size, bolt_name(it)));
        Ok(Self(named.collect()))
    }

    /// The last symbol that begins at or before an address, if it reaches that far.
    fn at(&self, address: LinkAddr) -> Option<Place<'_>> {
        let after = self.0.partition_point(|it| it.0 <= address);
        let before = self.0[..after].iter().rev();
        let mut reaching = before
            .take(8)
            .filter(|(at, size, _)| address.0 - at.0 < *size);
        reaching
            .next()
            .map(|(at, _, name)| (name.as_str(), address.0 - at.0))
    }

    fn begins_at(&self, address: LinkAddr) -> bool {
        self.at(address).is_some_and(|(_, offset)| offset == 0)
    }
}

/// Local symbols have their number behind a slash. Blanks would end a name.
fn bolt_name(symbol: &CodeSymbol) -> String {
    let name = visible(&symbol.name).replace('\\', "\\\\");
    let name = name.replace(' ', "\\ ");
    match symbol.local {
        Some(number) => format!("{name}/{number}"),
        None => name,
    }
}
