//! Where do the blocks of this part begin, and who may enter them?

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use headcount_model::{Entrance, LinkAddr, Routine, RoutineBlock};

use crate::blocks::between;
use crate::divide;
use crate::functions::{self, Origin, Part};
use crate::image::Image;
use crate::indirect::{self, Indirect, PartJumps};
use crate::mentions::is_read;
use crate::outline::{Facts, Found, budget};
use crate::overlaps;
use crate::reach::{Absurd, Reach, Rest};
use crate::spans::{Spans, Swept, targets_inside};
use crate::sweep::{self, Flow, Op};

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
    if !swept.part.range.contains(&at) {
        return Err(nothing());
    }
    let reached = reached(facts, spans, &image, index, &swept, asked);
    let Reached { part, indirect, .. } = &reached;
    if part.ops.is_empty() {
        return Err(reached.absurd.clone().unwrap_or_else(nothing));
    }
    let ways = Ways::of(facts, &image, part, indirect, &reached.pads);
    let back = ways_back(facts, spans, &image, index, part, &ways);
    let mut arrivals: BTreeSet<u64> = back.into_iter().collect();
    arrivals.extend(asked.iter().map(|at| at.0));
    arrivals.extend(written_down(facts, &part.range, indirect));
    arrivals.extend(ways.spoken.iter().filter(|at| part.range.contains(at)));
    let strange = arrivals.clone();
    arrivals.extend(ways.indirect.iter().filter(|at| part.range.contains(at)));
    let may_be_several = !matches!(part.origin, Origin::Frame | Origin::Symbol | Origin::Stub);
    if may_be_several {
        arrivals.extend(hidden_starts(part));
    }
    let cases = cases(&reached, &strange);
    let filler = match ways.beyond {
        Some(_) => 0,
        None => filler(spans, &image, part.range.end),
    };
    let bytes = image.get(&part.range).unwrap_or_default().to_vec();
    let (leads_to, are_settled) = leads_to(facts, spans, &image, &part.range, &ways);
    let unknown_code = unknown_code(facts, spans, &image, &ways);
    let spoken = ways.spoken.iter().filter(|at| !ways.called.contains(at));
    let is_settled = reached.is_settled
        && are_settled
        && spans.is_settled(&image, part.range.start)
        && ways.all().all(|at| spans.is_settled(&image, at));
    let is_unknown = |at: &&u64| unknown_code.binary_search(&LinkAddr(**at)).is_err();
    spans.speak_of(&image, spoken.filter(is_unknown).copied());
    let routine = match reached.trouble(facts, &image) {
        Some(reason) => Err(reason),
        None => Ok(Routine {
            start: LinkAddr(part.range.start),
            bytes,
            filler,
            blocks: blocks(part, &arrivals, &cases),
            doubtful: reached.doubtful_offsets(),
            has_unknown_jumps: indirect.some_unknown,
            may_be_several,
            keeps_flags: false,
            islands: Vec::new(),
        }),
    };
    Ok(Found {
        routine,
        leads_to,
        unknown_code,
        is_settled,
    })
}

/// The instructions of a part that control comes to, and where its indirect jumps lead.
struct Reached {
    part: Part,
    /// Those of them that need the gs register.
    gs: Vec<u64>,
    indirect: PartJumps,
    /// What looks like data, although one of those jumps may lead there.
    doubtful: Vec<Range<u64>>,
    /// Where exceptions land that pass through it.
    pads: Vec<u64>,
    /// Is all of this the same whatever routines were asked for before?
    is_settled: bool,
    /// Why it makes no sense, if it does not.
    absurd: Option<String>,
}

impl Reached {
    /// Why it cannot be counted.
    fn trouble(&self, facts: &Facts, image: &Image<'_>) -> Option<String> {
        let trouble = trouble(facts, image, &self.part, &self.gs);
        trouble.or_else(|| self.absurd.clone())
    }

    fn doubtful_offsets(&self) -> Vec<Range<u32>> {
        let offset = |at: u64| (at - self.part.range.start) as u32;
        let ranges = self.doubtful.iter();
        ranges.map(|it| offset(it.start)..offset(it.end)).collect()
    }
}

/// A part through which control was followed.
struct Followed<'a> {
    reach: Reach<'a>,
    /// With the instructions that control comes to.
    part: Part,
    indirect: PartJumps,
    /// What lies between them.
    rest: Vec<Rest>,
    /// Where exceptions land that pass through it.
    pads: Vec<u64>,
    is_settled: bool,
    absurd: Option<String>,
}

/// The instructions of a part that control comes to, and of the others those that may be.
fn reached(
    facts: &Facts,
    spans: &mut Spans,
    image: &Image<'_>,
    index: usize,
    swept: &Swept,
    asked: &[LinkAddr],
) -> Reached {
    let followed = followed(facts, spans, image, index, swept, asked);
    let Followed {
        mut part,
        indirect,
        mut absurd,
        ..
    } = followed;
    let mut doubtful = Vec::new();
    match keep_rest(image, followed.rest, &indirect, &mut part) {
        Ok(left) => doubtful = left,
        Err(reason) => absurd = absurd.or(Some(reason)),
    }
    let gs = part.ops.iter().filter(|op| needs_gs(image, swept, op));
    Reached {
        gs: gs.map(|op| op.at).collect(),
        part,
        indirect,
        doubtful,
        pads: followed.pads,
        is_settled: followed.is_settled,
        absurd,
    }
}

/// Follows control through a part: from its start, if control is known to come there, and from
/// everywhere else that something leads to.
fn followed<'a>(
    facts: &Facts,
    spans: &mut Spans,
    image: &'a Image<'a>,
    index: usize,
    swept: &'a Swept,
    asked: &[LinkAddr],
) -> Followed<'a> {
    let range = swept.part.range.clone();
    let mut reach = Reach::new(image, &swept.part);
    let mut absurd = None;
    let asked: BTreeSet<u64> = asked.iter().map(|at| at.0).collect();
    if spans.is_known_start(range.start) || asked.contains(&range.start) {
        absurd = reach.enter(range.start).err().map(Absurd::reason);
    }
    let pads = facts.pads(image, &range, &mut budget(image));
    for at in asked.iter().chain(&pads).filter(|at| range.contains(at)) {
        // One that makes no sense is met by a trap.
        let _ = reach.enter(*at);
    }
    for at in written_down(facts, &range, &PartJumps::default()) {
        reach.enter_if_sound(at);
    }
    let mut is_settled = true;
    let mut part = Part {
        ops: reach.ops(),
        broken: None,
        ..swept.part.clone()
    };
    loop {
        let rest = reach.rest();
        let steps = rest.iter().flat_map(|it| &it.ops).map(|op| op.at);
        let steps: BTreeSet<u64> = steps.collect();
        let is_step = |to: u64| part.has_op(to) || steps.contains(&to);
        let (indirect, are_settled) = indirect_jumps(facts, spans, image, index, &part, &is_step);
        is_settled &= are_settled;
        let targets = indirect.targets.iter().flat_map(|(_, targets)| targets);
        let inside = |at: &u64| range.contains(at);
        let mut is_new = false;
        for to in targets.copied().filter(inside) {
            is_new |= reach.enter(to).is_ok_and(|new| !new.is_empty());
        }
        for to in mentioned(facts, image, &part).into_iter().filter(inside) {
            is_new |= !reach.has(to) && reach.enter_if_sound(to);
        }
        if !is_new {
            return Followed {
                reach,
                part,
                indirect,
                rest,
                pads,
                is_settled,
                absurd,
            };
        }
        part.ops = reach.ops();
    }
}

/// What nothing leads to becomes a part all the same if it only fills the place; or if there is a
/// jump that nobody sees through, and what it may lead to looks like code. Returns what such a jump
/// may lead to and does not look like code; or says why the part cannot be counted for it.
fn keep_rest(
    image: &Image<'_>,
    rest: Vec<Rest>,
    indirect: &PartJumps,
    part: &mut Part,
) -> Result<Vec<Range<u64>>, String> {
    let before = part.ops.len();
    let mut doubtful = Vec::new();
    let may_jump_there = indirect.some_unknown || indirect.some_leave || indirect.some_may_go_on;
    for rest in rest {
        match rest.ops.first() {
            Some(first) if indirect.some_reckoned && !rest.is_code => {
                return Err(format!(
                    "a jump may lead anywhere in it, and it has data among its instructions at \
                     {:#x}",
                    first.at
                ));
            }
            _ if rest.is_filler(image) || (may_jump_there && rest.is_code) => {
                part.ops.extend(rest.ops);
            }
            _ if may_jump_there => doubtful.push(rest.range),
            _ => {}
        }
    }
    if part.ops.len() > before {
        part.ops.sort_unstable_by_key(|op| op.at);
    }
    Ok(doubtful)
}

fn needs_gs(image: &Image<'_>, swept: &Swept, op: &Op) -> bool {
    if swept.part.has_op(op.at) {
        return swept.gs.binary_search(&op.at).is_ok();
    }
    let bytes = image.get(&(op.at..op.end())).unwrap_or_default();
    sweep::instructions(bytes, op.at)
        .first()
        .is_some_and(sweep::uses_gs)
}

/// Addresses that instructions of a part make, and do not read: control may be sent there.
fn mentioned(facts: &Facts, image: &Image<'_>, part: &Part) -> Vec<u64> {
    let ops = part.ops.iter().enumerate();
    let made = ops.filter_map(|(index, op)| Some((index, mentions(facts, op)?)));
    let made = made.filter(|(_, to)| image.is_code(*to));
    made.filter(|(index, _)| !is_read(image, &part.ops, *index))
        .map(|(_, to)| to)
        .collect()
}

fn mentions(facts: &Facts, op: &Op) -> Option<u64> {
    match op.flow {
        Flow::Mentions(to) => Some(to),
        Flow::Number(to) if facts.is_fixed => Some(to),
        _ => None,
    }
}

/// The instructions of a part, and those of them that need the gs register, if all are reached from
/// its start; but for what only fills the place between them.
pub fn plainly_reached(
    facts: &Facts,
    spans: &mut Spans,
    image: &Image<'_>,
    index: usize,
) -> Option<(Part, Vec<u64>)> {
    let swept = spans.swept(image, index)?;
    let start = swept.part.range.start;
    let mut reach = Reach::new(image, &swept.part);
    let pads = facts.pads(image, &swept.part.range, &mut budget(image));
    let is_plain = spans.is_known_start(start)
        && [start]
            .into_iter()
            .chain(pads)
            .all(|at| reach.enter(at).is_ok())
        && reach.rest().iter().all(|it| it.is_filler(image));
    is_plain.then(|| (swept.part.clone(), swept.gs.clone()))
}

/// The same of those that control comes to if it enters the part at these addresses, too. Nothing if
/// it comes to none.
pub fn reached_from(
    facts: &Facts,
    spans: &mut Spans,
    image: &Image<'_>,
    index: usize,
    asked: &[u64],
) -> Option<(Part, Vec<u64>)> {
    let swept = spans.swept(image, index)?;
    let asked: Vec<LinkAddr> = asked.iter().map(|at| LinkAddr(*at)).collect();
    let Reached { part, gs, .. } = reached(facts, spans, image, index, &swept, &asked);
    (!part.ops.is_empty()).then_some((part, gs))
}

/// Where a part leads outside of itself, if nothing else tells that control comes there.
pub fn led_to(facts: &Facts, spans: &mut Spans, image: &Image<'_>, part: &Part) -> Vec<u64> {
    let ways = Ways::of(facts, image, part, &PartJumps::default(), &[]);
    let (inside, _) = leads_to(facts, spans, image, &part.range, &ways);
    let unknown = unknown_code(facts, spans, image, &ways);
    inside.into_iter().chain(unknown).map(|at| at.0).collect()
}

/// Why a part cannot be counted, whoever jumps to it.
pub fn trouble(facts: &Facts, image: &Image<'_>, part: &Part, gs: &[u64]) -> Option<String> {
    if image.get(&part.range).is_some_and(is_sigreturn) {
        let reason = "it is where signal handlers return through, which unwinders recognise by its \
                      bytes";
        return Some(reason.to_owned());
    }
    if u32::try_from(part.range.end.saturating_sub(part.range.start)).is_err() {
        return Some("it is too large".to_owned());
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
    gs.first()
        .map(|_| "it uses the gs register, which the counters need".to_owned())
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
    /// What it calls, or only speaks of. Not what it reads.
    spoken: Vec<u64>,
    /// Its end, if control goes on behind it. A call at the end is one that does not return.
    beyond: Option<u64>,
}

impl Ways {
    fn all(&self) -> impl Iterator<Item = u64> {
        let ways = [&self.direct, &self.indirect, &self.called, &self.spoken];
        ways.into_iter().flatten().copied().chain(self.beyond)
    }

    fn of(
        facts: &Facts,
        image: &Image<'_>,
        part: &Part,
        indirect: &PartJumps,
        pads: &[u64],
    ) -> Self {
        let ops = || part.ops.iter();
        let called: Vec<u64> = ops().filter_map(called).collect();
        let tables = indirect.targets.iter().flat_map(|(_, targets)| targets);
        Self {
            direct: ops().filter_map(|op| op.flow.jump_target()).collect(),
            indirect: tables.chain(pads).copied().collect(),
            spoken: called
                .iter()
                .copied()
                .chain(mentioned(facts, image, part))
                .collect(),
            called,
            beyond: beyond(part),
        }
    }
}

/// The end of a part, if control goes on behind it: not through what only fills the place up to
/// there.
fn beyond(part: &Part) -> Option<u64> {
    let last = part.ops.iter().rposition(|op| op.flow != Flow::Nop);
    let (code, filler) = part.ops.split_at(last.map_or(0, |last| last + 1));
    let goes_on = |op: &Op| op.flow.goes_on() && !op.flow.is_call();
    let is_led_to = |filler: &Op| targets_inside(part).any(|to| to >= filler.at);
    let falls = code.last().is_none_or(goes_on) || filler.first().is_some_and(is_led_to);
    part.ops.last().filter(|_| falls).map(Op::end)
}

fn called(op: &Op) -> Option<u64> {
    match op.flow {
        Flow::Call(to) => Some(to),
        _ => None,
    }
}

/// The indirect jumps of a part. They may lead to parts that are nobody's function. `is_step`: may
/// an instruction of this part begin here? Also says whether they are the same whatever routines
/// were asked for before.
fn indirect_jumps(
    facts: &Facts,
    spans: &mut Spans,
    image: &Image<'_>,
    index: usize,
    part: &Part,
    is_step: &dyn Fn(u64) -> bool,
) -> (PartJumps, bool) {
    let spans = RefCell::new(spans);
    let are_settled = Cell::new(true);
    let accept = |to: u64| {
        if part.range.contains(&to) {
            return to > part.range.start && is_step(to);
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

/// Looks at the parts that `part` leads to: what was moved away from a function comes back to it,
/// with jumps, with exceptions, or because it speaks of it. What is missed here becomes known when
/// the other part is asked for.
fn ways_back(
    facts: &Facts,
    spans: &mut Spans,
    image: &Image<'_>,
    index: usize,
    part: &Part,
    ways: &Ways,
) -> Vec<u64> {
    let targets = ways.direct.iter().chain(&ways.indirect);
    let targets = targets.filter(|to| !part.range.contains(to));
    let mut others: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for to in targets {
        let other = spans.index_at(*to).filter(|other| *other != index);
        let other = other.filter(|other| spans.origin(*other) != Some(Origin::Stub));
        if let Some(other) = other {
            others.entry(other).or_default().push(*to);
        }
    }
    let mut budget = budget(image);
    let mut back = Vec::new();
    for (other, entered) in others {
        let Some(swept) = spans.swept(image, other) else {
            continue;
        };
        let mut reach = Reach::new(image, &swept.part);
        for at in entered {
            let _ = reach.enter(at);
        }
        let start = swept.part.range.start;
        if spans.is_known_start(start) {
            let _ = reach.enter(start);
        }
        let other = Part {
            ops: reach.ops(),
            ..swept.part.clone()
        };
        let jumps = other.ops.iter().filter_map(|op| op.flow.jump_target());
        back.extend(jumps.chain(other.ops.iter().filter_map(called)));
        back.extend(mentioned(facts, image, &other));
        back.extend(facts.pads(image, &other.range, &mut budget));
    }
    back.retain(|at| part.range.contains(at));
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
/// code that nobody told of may itself begin with filler. Zeros may be data.
fn filler(spans: &Spans, image: &Image<'_>, end: u64) -> u32 {
    let limit = image
        .piece(end)
        .filter(|piece| piece.executable && !spans.is_start(end))
        .and_then(|_| spans.limit(image, end));
    let gap = limit.and_then(|limit| image.get(&(end..limit)));
    let gap = gap.unwrap_or_default();
    // A long gap is not worth looking through.
    let is_filler = gap.len() < 4096 && functions::filler(gap) >= gap.len();
    let has_zeros = || {
        let (ops, broken) = sweep::sweep(gap, end);
        let is_nop = |op: &Op| op.flow == Flow::Nop || op.length == 1;
        broken.is_some() || !ops.iter().all(is_nop)
    };
    match is_filler && !has_zeros() {
        true => (gap.len() as u64).min(MOST_FILLER) as u32,
        false => 0,
    }
}

/// Where tables lead, and nothing else but jumps inside: no exception, and nobody strange.
fn cases(reached: &Reached, strange: &BTreeSet<u64>) -> BTreeSet<u64> {
    let tables = reached.indirect.targets.iter();
    let targets = tables.flat_map(|(_, targets)| targets).copied();
    targets
        .filter(|at| !strange.contains(at) && !reached.pads.contains(at))
        .collect()
}

/// The blocks of a part, by address.
fn blocks(part: &Part, arrivals: &BTreeSet<u64>, cases: &BTreeSet<u64>) -> Vec<RoutineBlock> {
    let mut leaders: Vec<u64> = targets_inside(part)
        .chain(overlaps::leaders([part]))
        .collect();
    leaders.sort_unstable();
    leaders.dedup();
    let mut blocks: Vec<RoutineBlock> = Vec::new();
    let mut before: Option<&Op> = None;
    for op in &part.ops {
        let is_apart = before.is_some_and(|before| before.end() < op.at);
        let is_behind_call = before.is_some_and(|it| it.flow.is_call() && !is_apart);
        let entrance = match before {
            _ if op.at == part.range.start => Entrance::Entry,
            _ if is_behind_call => Entrance::Arrival,
            _ if arrivals.contains(&op.at) => Entrance::Arrival,
            _ => Entrance::None,
        };
        let begins = entrance != Entrance::None
            || before.is_none()
            || is_apart
            || before.is_some_and(|before| before.flow.ends_block())
            || op.flow == Flow::Trap
            || leaders.binary_search(&op.at).is_ok();
        match blocks.last_mut().filter(|_| !begins) {
            Some(block) => block.lengths.push(op.length),
            None => blocks.push(RoutineBlock {
                offset: op.at.saturating_sub(part.range.start) as u32,
                lengths: vec![op.length],
                entrance,
                is_case: entrance == Entrance::Arrival && !is_behind_call && cases.contains(&op.at),
            }),
        }
        before = Some(op);
    }
    blocks
}

/// Where a part leads in others, if nothing else tells that control comes there. Also says whether
/// that is the same whatever routines were asked for before.
fn leads_to(
    facts: &Facts,
    spans: &mut Spans,
    image: &Image<'_>,
    range: &Range<u64>,
    ways: &Ways,
) -> (Vec<LinkAddr>, bool) {
    let mut found: BTreeSet<u64> = ways.direct.iter().chain(&ways.indirect).copied().collect();
    found.extend(&ways.called);
    let spoken = ways.spoken.iter().copied();
    let spoken: BTreeSet<u64> = spoken
        .filter(|at| !range.contains(at) && !spans.is_known_start(*at))
        .collect();
    let mut are_settled = true;
    for at in spoken {
        let Some(other) = spans.index_at(at) else {
            continue;
        };
        let (is_code, is_settled) = believes(facts, spans, image, other, at);
        are_settled &= is_settled;
        if is_code {
            found.insert(at);
        }
    }
    found.retain(|at| {
        !range.contains(at) && !spans.is_known_start(*at) && spans.index_at(*at).is_some()
    });
    (found.into_iter().map(LinkAddr).collect(), are_settled)
}

/// An address is made that lies in a part: is it one of code there? A number may only look like an
/// address, and what has an address may be data. Also says whether the answer is the same whatever
/// routines were asked for before.
fn believes(
    facts: &Facts,
    spans: &mut Spans,
    image: &Image<'_>,
    index: usize,
    at: u64,
) -> (bool, bool) {
    if !spans.is_told(index) {
        return (facts.is_function(image, at), true);
    }
    let Some(swept) = spans.swept(image, index) else {
        return (false, true);
    };
    // Tables of jumps are part of that: a number may lie in the midst of what only they lead to.
    let mut followed = followed(facts, spans, image, index, &swept, &[]);
    let reach = &mut followed.reach;
    let is_code = reach.has(at) || facts.may_be_code(at) && reach.enter_if_sound(at);
    (is_code, followed.is_settled)
}

/// Where a part leads that is code but in no known part.
fn unknown_code(facts: &Facts, spans: &Spans, image: &Image<'_>, ways: &Ways) -> Vec<LinkAddr> {
    let found = ways.direct.iter().chain(&ways.indirect).chain(&ways.called);
    let found = found.chain(&ways.beyond).copied();
    let is_unknown = |at: &u64| spans.index_at(*at).is_none() && image.is_code(*at);
    let mut found: BTreeSet<u64> = found.filter(is_unknown).collect();
    let spoken = ways.spoken.iter().copied().filter(is_unknown);
    found.extend(spoken.filter(|at| facts.is_function(image, *at)));
    found.into_iter().map(LinkAddr).collect()
}
