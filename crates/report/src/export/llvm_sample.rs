//! Sample profiles of LLVM in their text form, for `clang -fprofile-sample-use`.
//!
//! Every function has the counts of its lines, as offsets from where it begins, and of what was
//! inlined into it, at the line that called it. A line has the count of its busiest instruction; if
//! the compiler copied it (unrolled, vectorised), times so many copies as the debug information
//! says.

use super::limit::Limit;
use super::{Exported, Material, code};
use crate::names::{Named, functions};
use crate::rows;
use crate::targets::{Targets, targets};
use crate::{Error, visible};
use headcount_model::{Counted, InlineFrame, LinkAddr};
use std::collections::{BTreeMap, HashMap};

/// The functions of the one module that is there, the busiest first.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let module = super::only_module(material)?;
    let names: HashMap<LinkAddr, &str> = module
        .module
        .functions
        .iter()
        .map(|it| (it.address, it.name.as_str()))
        .collect();
    let all = samples(module, &names, material)?;
    let mut sorted: Vec<(u64, &String, &Samples)> = all
        .iter()
        .map(|(name, samples)| (samples.total(limit), name, samples))
        .collect();
    sorted.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let mut text = String::new();
    for (total, name, samples) in sorted {
        let head = limit.cut(samples.head);
        text.push_str(&format!("{}:{total}:{head}\n", plain(name)));
        samples.write(&mut text, 1, limit);
    }
    Ok(Exported {
        bytes: text.into_bytes(),
        notes: Vec::new(),
    })
}

/// A line in a function: its offset from where the function begins, and its discriminator.
type Place = (u32, u32);

/// The counts of a function, or of a copy of it that was inlined somewhere.
#[derive(Default)]
struct Samples {
    head: u64,
    lines: BTreeMap<Place, Line>,
    inlined: BTreeMap<Place, BTreeMap<String, Samples>>,
}

#[derive(Default)]
struct Line {
    count: u64,
    /// Whom it called how often.
    calls: BTreeMap<String, u64>,
}

/// An instruction that ran.
struct Ran<'a> {
    address: LinkAddr,
    count: u64,
    /// Whom it calls how often, if it is a call and that is known.
    callees: Vec<(&'a str, u64)>,
    /// How often its function was called, if it begins there.
    head: Option<u64>,
}

fn samples(
    module: &Counted,
    names: &HashMap<LinkAddr, &str>,
    material: &Material<'_>,
) -> Result<BTreeMap<String, Samples>, Error> {
    let mut ran = Vec::new();
    let targets = targets(material.counted, material.values);
    for named in functions(module, false) {
        if material.only.wants(&named) {
            ran.extend(ran_of(&named, names, &targets, material));
        }
    }
    // All at once: the debug information is read from its beginning to its end.
    ran.sort_by_key(|it| it.address);
    let addresses: Vec<LinkAddr> = ran.iter().map(|it| it.address).collect();
    let chains = (material.chains)(&module.module, &addresses);
    let chains = chains.map_err(|why| super::unfit(module, why))?;
    if !ran.is_empty() && chains.iter().all(Vec::is_empty) {
        let why = "no function has lines; build it with -gline-tables-only \
                   -fdebug-info-for-profiling";
        return Err(super::unfit(module, why.into()));
    }
    let mut all: BTreeMap<String, Samples> = BTreeMap::new();
    for (it, chain) in ran.iter().zip(chains) {
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
            continue;
        };
        let Some(samples) = reach(&mut all, &chain) else {
            continue;
        };
        let line = samples.lines.entry(place(last)).or_default();
        let (_, copies) = decoded(last.discriminator);
        let count = it.count.saturating_mul(copies);
        line.count = line.count.max(count);
        for (callee, count) in &it.callees {
            let sum = line.calls.entry((*callee).to_owned()).or_default();
            *sum = sum.saturating_add(*count);
        }
        if let Some(head) = it.head {
            all.entry(first.function.clone()).or_default().head += head;
        }
    }
    Ok(all)
}

/// The instructions of a function that ran.
fn ran_of<'a>(
    named: &Named<'_>,
    names: &HashMap<LinkAddr, &'a str>,
    targets: &Targets,
    material: &Material<'_>,
) -> Vec<Ran<'a>> {
    let mut calls: HashMap<LinkAddr, Vec<(&str, u64)>> = HashMap::new();
    for call in code::calls(0, named, targets, material) {
        let name = call.target.and_then(|it| names.get(&it));
        if let (Some(name), Some(count @ 1..)) = (name, call.count.value()) {
            // The compiler knows of no stubs.
            let name = name.strip_suffix("@plt").unwrap_or(name);
            calls.entry(call.address).or_default().push((name, count));
        }
    }
    let entry = named.function.address;
    let ran = |it: code::Instruction| {
        let count = it.count.value().filter(|count| *count > 0)?;
        Some(Ran {
            address: it.address,
            count,
            callees: calls.remove(&it.address).unwrap_or_default(),
            head: (it.address == entry).then(|| rows::calls(named).value().unwrap_or(0)),
        })
    };
    let all = code::instructions(named, material).into_iter();
    all.filter_map(ran).collect()
}

/// The innermost function of a chain, made where it is missing.
fn reach<'s>(
    all: &'s mut BTreeMap<String, Samples>,
    chain: &[InlineFrame],
) -> Option<&'s mut Samples> {
    let (first, rest) = chain.split_first()?;
    let mut samples = all.entry(first.function.clone()).or_default();
    let mut around = first;
    for frame in rest {
        let inlined = samples.inlined.entry(place(around)).or_default();
        samples = inlined.entry(frame.function.clone()).or_default();
        around = frame;
    }
    Some(samples)
}

/// LLVM keeps sixteen bits of an offset.
fn place(frame: &InlineFrame) -> Place {
    let (base, _) = decoded(frame.discriminator);
    (frame.line.wrapping_sub(frame.start) & 0xffff, base)
}

impl Samples {
    /// All that is written below it.
    fn total(&self, limit: &Limit) -> u64 {
        let own = self.lines.values().map(|it| limit.cut(it.count));
        let inlined = self.inlined.values().flat_map(BTreeMap::values);
        let inlined = inlined.map(|it| it.total(limit));
        own.chain(inlined).fold(0, u64::saturating_add)
    }

    fn write(&self, text: &mut String, depth: usize, limit: &Limit) {
        let indent = " ".repeat(depth);
        let shown = |(offset, discriminator): &Place| match discriminator {
            0 => offset.to_string(),
            _ => format!("{offset}.{discriminator}"),
        };
        for (place, line) in &self.lines {
            let count = limit.cut(line.count);
            text.push_str(&format!("{indent}{}: {count}", shown(place)));
            for (callee, calls) in &line.calls {
                text.push_str(&format!(" {}:{}", plain(callee), limit.cut(*calls)));
            }
            text.push('\n');
        }
        for (place, copies) in &self.inlined {
            for (name, samples) in copies {
                let total = samples.total(limit);
                text.push_str(&format!(
                    "{indent}{}: {}:{total}\n",
                    shown(place),
                    plain(name)
                ));
                samples.write(text, depth + 1, limit);
            }
        }
    }
}

/// A name that ends where it ends, and begins no comment.
fn plain(name: &str) -> String {
    let name = visible(name).replace([' ', ':'], "_");
    match name.strip_prefix('#') {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}

/// What LLVM packs into a discriminator: its base, how often the code was copied, and the number of
/// a copy. Each is one bit if it is 0, and seven or fourteen bits if not.
fn decoded(discriminator: u64) -> (u32, u64) {
    let component = |bits: u64| match () {
        () if bits & 1 == 1 => 0,
        () if bits & 0x40 == 0 => (bits >> 1) & 0x1f,
        () => ((bits >> 2) & 0xfe0) | ((bits >> 1) & 0x1f),
    };
    let next = |bits: u64| match () {
        () if bits & 1 == 1 => bits >> 1,
        () if bits & 0x40 == 0 => bits >> 7,
        () => bits >> 14,
    };
    let base = component(discriminator);
    let copies = match next(discriminator) {
        0 => 1,
        rest => component(rest).max(1),
    };
    (base as u32, copies)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn discriminators_have_parts() {
        assert_eq!(decoded(0), (0, 1));
        assert_eq!(decoded(2), (1, 1));
        assert_eq!(decoded(4), (2, 1));
        // No base, and four copies: 1, then 4 in seven bits.
        assert_eq!(decoded(0b1000 << 1 | 1), (0, 4));
        // Base 3, two copies.
        assert_eq!(decoded(0b100 << 7 | 0b110), (3, 2));
        // Base 33 takes fourteen bits: five low ones, a mark, and the others.
        assert_eq!(decoded(1 << 7 | 0x40 | 1 << 1), (33, 1));
        decoded(u64::MAX);
    }
}
