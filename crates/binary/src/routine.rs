//! Where do the blocks of this part begin, and who may enter them?

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;

use headcount_model::{Entrance, LinkAddr, Routine, RoutineBlock};

use crate::blocks::between;
use crate::divide;
use crate::functions::{self, Origin, Part};
use crate::image::Image;
use crate::indirect::{self, Indirect, PartJumps};
use crate::outline::{Facts, Found, budget};
use crate::overlaps;
use crate::spans::{Spans, Swept, targets_inside};
use crate::sweep::{Flow, Op};

/// More filler than this is of no use to anybody.
const MOST_FILLER: u64 = 64;

/// The routine of the part that holds `at`, or why it cannot be counted.
pub fn routine(
    facts: &Facts,
    spans: &mut Spans,
    at: u64,
    asked: &[LinkAddr],
) -> Result<Found, String> {
    let nothing = || format!("nothing tells what code is at {at:#x}");
    let image = facts.image();
    spans.forget();
    let index = spans.index_at(at).ok_or_else(nothing)?;
    let swept = spans.swept(&image, index).ok_or_else(nothing)?;
    if let Some(reason) = trouble(facts, &image, &swept) {
        return Err(reason);
    }
    let mut part = swept.part.clone();
    if !part.range.contains(&at) {
        return Err(nothing());
    }
    let (indirect, jumps_are_settled) = indirect_jumps(facts, spans, &image, index, &part);
    let pads = facts.pads(&image, &part.range, &mut budget(&image));
    let ways = Ways::of(facts, &part, &indirect, pads);
    let back = ways_back(facts, spans, &image, index, &part, &ways);
    for at in &back.jumps {
        overlaps::add_to(&image, &mut part, *at);
    }
    for at in asked {
        overlaps::add_to(&image, &mut part, at.0);
    }
    let mut torn = targets_inside(&part).chain(back.jumps.iter().copied());
    if let Some(at) = torn.find(|at| !part.has_op(*at)) {
        return Err(format!(
            "a jump leads into the midst of an instruction at {at:#x}"
        ));
    }
    let mut arrivals: BTreeSet<u64> = back.jumps.into_iter().chain(back.others).collect();
    arrivals.extend(asked.iter().map(|at| at.0));
    arrivals.extend(written_down(facts, &part.range, &indirect));
    let inside = ways.indirect.iter().chain(&ways.spoken);
    arrivals.extend(inside.filter(|at| part.range.contains(at)));
    let may_be_several = !matches!(part.origin, Origin::Frame | Origin::Symbol | Origin::Stub);
    if may_be_several {
        arrivals.extend(hidden_starts(&part));
    }
    let filler = match ways.beyond {
        Some(_) => 0,
        None => filler(spans, &image, part.range.end),
    };
    let bytes = image.get(&part.range).unwrap_or_default().to_vec();
    let spoken = ways.spoken.iter().filter(|at| !ways.called.contains(at));
    spans.speak_of(&image, spoken.copied());
    let is_settled = jumps_are_settled
        && spans.is_settled(&image, part.range.start)
        && ways.all().all(|at| spans.is_settled(&image, at));
    Ok(Found {
        routine: Routine {
            start: LinkAddr(part.range.start),
            bytes,
            filler,
            blocks: blocks(&part, &arrivals),
            has_unknown_jumps: indirect.some_unknown,
            may_be_several,
            keeps_flags: false,
        },
        leads_to: leads_to(spans, &image, &part.range, &ways),
        unknown_code: unknown_code(spans, &image, &ways),
        is_settled,
    })
}

/// Why a part cannot be counted, whoever jumps to it.
pub fn trouble(facts: &Facts, image: &Image<'_>, swept: &Swept) -> Option<String> {
    let part = &swept.part;
    if image.get(&part.range).is_some_and(is_sigreturn) {
        let reason = "it is where signal handlers return through, which unwinders recognise by its \
                      bytes";
        return Some(reason.to_owned());
    }
    if u32::try_from(part.range.end.saturating_sub(part.range.start)).is_err() {
        return Some("it is too large".to_owned());
    }
    if let Some(at) = part.broken {
        return Some(format!("it has bytes that are no instructions at {at:#x}"));
    }
    if let Some(op) = part.ops.iter().find(|op| op.flow == Flow::Transaction) {
        let at = op.at;
        return Some(format!(
            "it begins a transaction at {at:#x}, which counting would end"
        ));
    }
    let next = facts
        .restartable
        .partition_point(|it| *it < part.range.start);
    if let Some(at) = facts
        .restartable
        .get(next)
        .filter(|it| part.range.contains(it))
    {
        return Some(format!(
            "it has a restartable sequence at {at:#x}, which the kernel knows by its place"
        ));
    }
    let gs = swept.gs.first();
    gs.map(|_| "it uses the gs register, which the counters need".to_owned())
}

/// Whether this is the code that signal handlers return to: `mov $15, %rax; syscall`, perhaps with
/// filler behind it. Debuggers and unwinders know it by these bytes.
pub fn is_sigreturn(bytes: &[u8]) -> bool {
    let long = bytes.strip_prefix(&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05]);
    let short = || bytes.strip_prefix(&[0xb8, 15, 0, 0, 0, 0x0f, 0x05]);
    long.or_else(short)
        .is_some_and(|rest| functions::filler(rest) == rest.len())
}

/// Where control goes from a part, or may go.
struct Ways {
    /// Where its jumps lead.
    direct: Vec<u64>,
    /// Where its tables of jumps lead, and where exceptions land.
    indirect: Vec<u64>,
    /// What it calls.
    called: Vec<u64>,
    /// What it calls, or only speaks of.
    spoken: Vec<u64>,
    /// Its end, if control goes on behind it. A call at the end is one that does not return.
    beyond: Option<u64>,
}

impl Ways {
    fn all(&self) -> impl Iterator<Item = u64> {
        let ways = [&self.direct, &self.indirect, &self.called, &self.spoken];
        ways.into_iter().flatten().copied().chain(self.beyond)
    }

    fn of(facts: &Facts, part: &Part, indirect: &PartJumps, pads: Vec<u64>) -> Self {
        let ops = || part.ops.iter();
        let called: Vec<u64> = ops().filter_map(called).collect();
        let tables = indirect.targets.iter().flat_map(|(_, targets)| targets);
        Self {
            direct: ops().filter_map(|op| op.flow.jump_target()).collect(),
            indirect: tables.copied().chain(pads).collect(),
            spoken: ops().filter_map(|op| spoken(facts, op)).collect(),
            called,
            beyond: part
                .ops
                .last()
                .filter(|op| op.flow.goes_on() && !op.flow.is_call())
                .map(Op::end),
        }
    }
}

fn called(op: &Op) -> Option<u64> {
    match op.flow {
        Flow::Call(to) => Some(to),
        _ => None,
    }
}

fn spoken(facts: &Facts, op: &Op) -> Option<u64> {
    match op.flow {
        Flow::Call(to) | Flow::Mentions(to) => Some(to),
        Flow::Number(to) if facts.is_fixed => Some(to),
        _ => None,
    }
}

/// The indirect jumps of a part. They may lead to parts that are nobody's function. Also says
/// whether they are the same whatever routines were asked for before.
fn indirect_jumps(
    facts: &Facts,
    spans: &mut Spans,
    image: &Image<'_>,
    index: usize,
    part: &Part,
) -> (PartJumps, bool) {
    let spans = RefCell::new(spans);
    let are_settled = Cell::new(true);
    let accept = |to: u64| {
        if part.range.contains(&to) {
            return to > part.range.start && part.has_op(to);
        }
        let mut spans = spans.borrow_mut();
        are_settled.set(are_settled.get() && spans.is_settled(image, to));
        let Some(other) = spans.index_at(to).filter(|other| *other != index) else {
            return false;
        };
        let Some(start) = spans.range(other).map(|range| range.start) else {
            return false;
        };
        let loose = match spans.origin(other) {
            Some(Origin::Symbol) => facts.whole.binary_search(&start).is_err(),
            Some(Origin::Frame) => true,
            _ => false,
        };
        loose
            && spans
                .swept(image, other)
                .is_some_and(|swept| swept.part.has_op(to))
    };
    let jumps = indirect::of_part(image, part, &accept);
    (jumps, are_settled.get())
}

/// Where the parts that a part leads to come back into it.
#[derive(Default)]
struct Back {
    /// With jumps.
    jumps: Vec<u64>,
    /// With exceptions, or because they speak of it.
    others: Vec<u64>,
}

/// Looks at the parts that `part` leads to: what was moved away from a function comes back to it.
fn ways_back(
    facts: &Facts,
    spans: &mut Spans,
    image: &Image<'_>,
    index: usize,
    part: &Part,
    ways: &Ways,
) -> Back {
    let targets = ways.direct.iter().chain(&ways.indirect);
    let others: BTreeSet<usize> = targets
        .filter(|to| !part.range.contains(to))
        .filter_map(|to| spans.index_at(*to))
        .filter(|other| *other != index && spans.origin(*other) != Some(Origin::Stub))
        .collect();
    let mut budget = budget(image);
    let mut back = Back::default();
    for other in others {
        let Some(swept) = spans.swept(image, other) else {
            continue;
        };
        let other = &swept.part;
        let jumps = other.ops.iter().filter_map(|op| op.flow.jump_target());
        match other.broken {
            None => back.jumps.extend(jumps),
            // Bytes that may be data prove nothing.
            Some(_) => back.others.extend(jumps),
        }
        let spoken = other.ops.iter().filter_map(|op| spoken(facts, op));
        back.others.extend(spoken);
        back.others
            .extend(facts.pads(image, &other.range, &mut budget));
    }
    back.jumps.retain(|at| part.range.contains(at));
    back.others.retain(|at| part.range.contains(at));
    back
}

/// Addresses in a range that data holds or that have a name, without what its own tables of jumps
/// explain.
fn written_down(facts: &Facts, range: &Range<u64>, indirect: &PartJumps) -> Vec<u64> {
    let tables = Indirect::explained_by(indirect.understood());
    let first = facts.pointers.partition_point(|(to, _)| *to < range.start);
    let pointers = facts.pointers.iter().skip(first);
    let pointers = pointers
        .take_while(|(to, _)| *to < range.end)
        .filter(|(_, at)| !tables.explains(*at))
        .map(|(to, _)| *to);
    let named = [&facts.whole, &facts.shared].into_iter();
    let named = named.flat_map(|names| between(names, range.clone()));
    pointers.chain(named.copied()).collect()
}

/// Where another function may begin that would not be noticed: behind a call, if that does not
/// return and what fills the gap looks like a part of this one; and with a call, which is made from
/// where it always was.
fn hidden_starts(part: &Part) -> Vec<u64> {
    let mut found = Vec::new();
    let mut before: Option<&Op> = None;
    for op in part.ops.iter().filter(|op| op.flow != Flow::Nop) {
        let Some(last) = before.replace(op) else {
            continue;
        };
        let is_behind_filler = last.end() < op.at && op.at.is_multiple_of(divide::ALIGNMENT);
        let is_one = match last.flow.goes_on() {
            true => last.flow.is_call() && is_behind_filler,
            false => op.flow.is_call(),
        };
        found.extend(is_one.then_some(op.at));
    }
    found
}

/// How many bytes behind a part do nothing, if that is all there is up to the next one. Other
/// code that nobody told of may itself begin with filler.
fn filler(spans: &Spans, image: &Image<'_>, end: u64) -> u32 {
    let limit = image
        .piece(end)
        .filter(|piece| piece.executable && !spans.is_start(end))
        .and_then(|_| spans.limit(image, end));
    let gap = limit.and_then(|limit| image.get(&(end..limit)));
    let gap = gap.unwrap_or_default();
    // A long gap is not worth looking through.
    let is_filler = gap.len() < 4096 && functions::filler(gap) >= gap.len();
    match is_filler {
        true => (gap.len() as u64).min(MOST_FILLER) as u32,
        false => 0,
    }
}

/// The blocks of a part, by address.
fn blocks(part: &Part, arrivals: &BTreeSet<u64>) -> Vec<RoutineBlock> {
    let mut leaders: Vec<u64> = targets_inside(part)
        .chain(overlaps::leaders([part]))
        .collect();
    leaders.sort_unstable();
    leaders.dedup();
    let mut blocks: Vec<RoutineBlock> = Vec::new();
    let mut before: Option<&Op> = None;
    for op in &part.ops {
        let entrance = match before {
            None => Entrance::Entry,
            Some(before) if before.flow.is_call() => Entrance::Arrival,
            _ if arrivals.contains(&op.at) => Entrance::Arrival,
            _ => Entrance::None,
        };
        let begins = entrance != Entrance::None
            || before.is_some_and(|before| before.flow.ends_block())
            || op.flow == Flow::Trap
            || leaders.binary_search(&op.at).is_ok();
        match blocks.last_mut().filter(|_| !begins) {
            Some(block) => block.lengths.push(op.length),
            None => blocks.push(RoutineBlock {
                offset: op.at.saturating_sub(part.range.start) as u32,
                lengths: vec![op.length],
                entrance,
            }),
        }
        before = Some(op);
    }
    blocks
}

/// Where a part leads into the midst of others.
fn leads_to(
    spans: &mut Spans,
    image: &Image<'_>,
    range: &Range<u64>,
    ways: &Ways,
) -> Vec<LinkAddr> {
    let mut found: BTreeSet<u64> = ways.direct.iter().chain(&ways.indirect).copied().collect();
    found.extend(&ways.called);
    let spoken = ways.spoken.iter().copied();
    // A number that looks like an address is believed where an instruction begins.
    found.extend(spoken.filter(|at| {
        let other = spans
            .index_at(*at)
            .filter(|_| !range.contains(at) && !spans.is_start(*at));
        let other = other.and_then(|other| spans.swept(image, other));
        other.is_some_and(|it| it.part.has_op(*at))
    }));
    found.retain(|at| !range.contains(at) && !spans.is_start(*at) && spans.index_at(*at).is_some());
    found.into_iter().map(LinkAddr).collect()
}

/// Where a part leads that is code but in no known part.
fn unknown_code(spans: &Spans, image: &Image<'_>, ways: &Ways) -> Vec<LinkAddr> {
    let found = ways.direct.iter().chain(&ways.indirect).chain(&ways.called);
    let found = found.chain(&ways.beyond);
    let found: BTreeSet<u64> = found
        .copied()
        .filter(|at| spans.index_at(*at).is_none() && image.is_code(*at))
        .collect();
    found.into_iter().map(LinkAddr).collect()
}
