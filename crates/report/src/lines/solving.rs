//! One function: what its code tells of its source's blocks, and what follows from that.
//!
//! How often a condition went either way is believed where its branches agree with the code that they
//! lead to; a call is believed unless the line table contradicts it. Then code that ran gives a lower
//! bound. Whatever contradicts what is already known is ignored.

use super::claims::{self, Claim};
use super::conditions::{Condition, Outcomes, Target, chained, conditions, sums};
use super::entries::Entry;
use super::evidence::{FileEvidence, Place, Told};
use super::flow::{Bounds, Class, Flow};
use super::loops::{Loop, loops};
use headcount_model::{Node, SourceFunction};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is known of a function.
pub struct Solved {
    /// How often each block was executed.
    pub blocks: Vec<Bounds>,
    /// How often each line was.
    pub lines: BTreeMap<u32, Bounds>,
}

/// What follows for a function that was entered so often, and whose blocks were executed so often,
/// say calls. Nothing, if calls in it did not come back.
pub fn solve(
    evidence: &FileEvidence,
    function: &SourceFunction,
    entry: Entry,
    executed: &[(u32, u64)],
) -> Option<Solved> {
    let mut places: Vec<(Place, Told)> = evidence
        .places
        .range(Place::all_of(function))
        .map(|(place, told)| (*place, *told))
        .collect();
    if places.iter().any(|it| !it.1.is_idle) {
        places.retain(|it| !it.1.is_idle);
    }
    if is_left_early(evidence, function) {
        return None;
    }
    let mut solving = Solving::new(evidence, function, &places);
    let entry = solving.enter(entry);
    solving.call(executed);
    solving.branches();
    solving.floors();
    let claimed = solving.believed_claims(&places, evidence.marks_statements, entry);
    let mut blocks: Vec<Bounds> = (0..)
        .zip(claimed)
        .map(|(block, claim)| solving.bounds(block, claim, entry))
        .collect();
    solving.doubt_zeros(entry, &mut blocks);
    let mut lines: BTreeMap<u32, Bounds> = BTreeMap::new();
    let begun = function.blocks.iter().zip(&blocks);
    let begun = begun.flat_map(|(block, bounds)| block.lines.iter().map(|it| (*it, *bounds)));
    for (line, bounds) in begun {
        join(&mut lines, line, bounds);
    }
    let begun: BTreeSet<u32> = lines.keys().copied().collect();
    for (place, _) in &places {
        if let Some(block) = function.block_at(place.line, place.column) {
            join(&mut lines, place.line, blocks[block as usize]);
        }
        // Where a statement goes on, what has no code may have been evaluated more often.
        if !begun.contains(&place.line) {
            for block in function.blocks_on(place.line) {
                let bounds = blocks[block as usize];
                join(&mut lines, place.line, Bounds { low: 0, ..bounds });
            }
        }
    }
    Some(Solved { blocks, lines })
}

/// A line is executed as often as the block on it that is executed most often.
fn join(lines: &mut BTreeMap<u32, Bounds>, line: u32, bounds: Bounds) {
    let most = lines.entry(line).or_insert(bounds);
    most.low = most.low.max(bounds.low);
    most.high = most.high.max(bounds.high);
}

/// Whether calls did not come back that nobody expects not to: what stands behind them ran less often
/// than the source says.
fn is_left_early(evidence: &FileEvidence, function: &SourceFunction) -> bool {
    let lines = (function.line, 0)..(function.last_line + 1, 0);
    let leaves = |block: u32| {
        let from = Node::Block(headcount_model::BlockId(block));
        let mut edges = function.graph.edges.iter();
        edges.any(|it| it.from == from && it.to == Node::Outside)
    };
    let mut lost = evidence.lost.range(lines);
    lost.any(|at| !function.block_at(at.0, at.1).is_some_and(leaves))
}

struct Solving<'a> {
    function: &'a SourceFunction,
    flow: Flow,
    loops: Vec<Loop>,
    marks_statements: bool,
    /// What code says of each block, if it says anything.
    said: BTreeMap<u32, Said>,
    /// What became of the branches of each block, by place.
    outcomes: BTreeMap<u32, Vec<Outcomes>>,
    /// The conditions that are not settled.
    conditions: Vec<Condition>,
    /// The loops that may have made several rounds in one.
    unrolled: Vec<usize>,
    /// Where control never went, say branches and the code that they lead to.
    never: Vec<Class>,
}

/// What the code of a block says.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// The place that says least, and the one that says most, if pieces are no copies.
    least: u64,
    most: u64,
    /// The one that says most, if they are.
    sum: u64,
    /// Whether nobody can tell copies from pieces.
    is_doubtful: bool,
    /// Whether it may be said of other blocks.
    is_adrift: bool,
    /// Whether several rounds may have been made in one.
    is_packed: bool,
    /// Whether some of it was executed that is surely its own.
    has_run: bool,
}

impl Said {
    fn by(told: &Told, marks_statements: bool) -> Self {
        let (sum, is_doubtful) = match marks_statements {
            true => (told.sum, false),
            // LLVM copies a place, or spreads it, within one stretch: nobody can tell which.
            false => (told.stretches, told.pieces > told.spread),
        };
        Self {
            least: told.most,
            most: told.most,
            sum,
            is_doubtful: is_doubtful || told.is_packed,
            is_adrift: told.is_adrift,
            is_packed: told.is_packed,
            has_run: told.sure > 0,
        }
    }

    fn join(&mut self, other: Self) {
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.sum = self.sum.max(other.sum);
        self.is_doubtful |= other.is_doubtful;
        self.is_adrift |= other.is_adrift;
        self.is_packed |= other.is_packed;
        self.has_run |= other.has_run;
    }
}

impl<'a> Solving<'a> {
    fn new(
        evidence: &FileEvidence,
        function: &'a SourceFunction,
        places: &[(Place, Told)],
    ) -> Self {
        let loops = loops(&function.graph);
        let mut outcomes: BTreeMap<u32, Vec<Outcomes>> = BTreeMap::new();
        let mut packed: BTreeSet<u32> = BTreeSet::new();
        let lines = (function.line, 0)..(function.last_line + 1, 0);
        for (at, found) in evidence.branches.range(lines) {
            let Some(block) = function.block_at(at.0, at.1) else {
                continue;
            };
            if evidence.packed.contains(at) {
                packed.insert(block);
            }
            if !function.is_vague(*at) {
                outcomes.entry(block).or_default().push(found.clone());
            }
        }
        let is_packed = |it: &Condition| it.blocks.iter().any(|it| packed.contains(it));
        let unrolled = match evidence.marks_statements {
            true => Vec::new(),
            false => unrolled(function, &loops, places),
        };
        let is_in_unrolled = |it: &Condition| {
            let around = loops
                .iter()
                .position(|around| around.holds[it.head as usize]);
            around.is_some_and(|it| unrolled.contains(&it))
        };
        let mut conditions = conditions(function, &loops);
        conditions.retain(|it| !is_packed(it) && !is_in_unrolled(it));
        Self {
            function,
            flow: Flow::new(&function.graph),
            loops,
            marks_statements: evidence.marks_statements,
            said: said(function, places, evidence.marks_statements),
            outcomes,
            conditions,
            unrolled,
            never: Vec::new(),
        }
    }

    fn is_in_loop(&self, block: u32) -> bool {
        self.loops.iter().any(|it| it.holds[block as usize])
    }

    /// The function was entered so often. If it was inlined, it may have been more often than anybody
    /// says: what is in no loop is not executed more often.
    fn enter(&mut self, mut entry: Entry) -> Entry {
        let is_more =
            |(block, said): (&u32, &Said)| said.least > entry.seen.high && !self.is_in_loop(*block);
        if entry.has_copies && self.said.iter().any(is_more) {
            entry.seen.high = u64::MAX;
            let Self { said, loops, .. } = self;
            let is_in_loop = |block: &u32| loops.iter().any(|it| it.holds[*block as usize]);
            for (_, said) in said.iter_mut().filter(|it| !is_in_loop(it.0)) {
                said.least = said.least.min(entry.seen.low);
            }
        }
        self.flow.require(self.flow.block(0), entry.seen);
        entry
    }

    /// Blocks were executed so often, say calls. Where rows say otherwise, the call may be that of
    /// several.
    fn call(&mut self, executed: &[(u32, u64)]) {
        for (block, count) in executed {
            let agrees = |it: &Said| it.is_adrift || [it.sum, it.most, it.least].contains(count);
            if self.said.get(block).is_none_or(agrees) {
                let class = self.flow.block(*block);
                self.flow.require(class, Bounds::exactly(*count));
            }
        }
    }

    /// What ran did so at least. First what can be no more than that: with branches, more follows.
    fn floors(&mut self) {
        let mut least: BTreeMap<Class, u64> = BTreeMap::new();
        let doubtful = match self.marks_statements {
            true => self.behind_idle_code(),
            // LLVM keeps no mark of what is left of a copy.
            false => BTreeSet::new(),
        };
        let sure = self.said.iter().filter(|it| !it.1.is_adrift);
        for (block, said) in sure.filter(|it| !doubtful.contains(it.0)) {
            let known = least.entry(self.flow.block(*block)).or_insert(said.least);
            *known = said.least.min(*known);
        }
        let mut waiting: Vec<(Class, u64)> = least.into_iter().collect();
        for is_last in [false, true] {
            loop {
                let mut is_new = false;
                let contested = self.contested(&waiting);
                waiting.retain(|(class, _)| !contested.contains(class));
                waiting.retain(|(class, least)| {
                    let bounds = self.flow.bounds(*class);
                    let is_wanted = bounds.exact().is_none();
                    let is_meant = is_wanted && (is_last || bounds.high == *least);
                    if is_meant {
                        is_new |= self.flow.require(*class, Bounds::at_least(*least));
                    }
                    is_wanted && !is_meant
                });
                if !is_new {
                    break;
                }
                self.branches();
            }
        }
    }

    /// Blocks that control comes to only through others whose code was never executed: their code may be
    /// that of equal statements elsewhere.
    fn behind_idle_code(&self) -> BTreeSet<u32> {
        let idle = self.idle();
        let unreached = self.unreached(&|it| idle.contains(&it));
        unreached.into_iter().collect()
    }

    /// What is said to have run more often, together, than the condition that leads there: one of them
    /// is wrong.
    fn contested(&self, least: &[(Class, u64)]) -> BTreeSet<Class> {
        let least: HashMap<Class, u64> = least.iter().copied().collect();
        let mut contested = BTreeSet::new();
        for condition in &self.conditions {
            let classes = condition.targets.each_ref().map(|it| it.class(&self.flow));
            let [Some(first), Some(second)] = classes else {
                continue;
            };
            let Some((one, other)) = least.get(&first).zip(least.get(&second)) else {
                continue;
            };
            let whole = self.flow.bounds(self.flow.block(condition.head));
            if one.saturating_add(*other) > whole.high {
                contested.extend([first, second]);
            }
        }
        contested
    }

    /// Where branches and what they lead to agree, both are believed.
    fn branches(&mut self) {
        let mut claimed: HashMap<Class, Vec<u64>> = HashMap::new();
        for (block, said) in self.said.iter().filter(|it| !it.1.is_doubtful) {
            let known = claimed.entry(self.flow.block(*block)).or_default();
            known.extend([said.sum, said.most]);
        }
        let mut waiting = std::mem::take(&mut self.conditions);
        loop {
            let before = waiting.len();
            waiting.retain(|it| !self.settle(it, &claimed));
            self.exclude_unreached();
            if waiting.len() == before {
                break;
            }
        }
        self.conditions = waiting;
    }

    /// Nothing was executed that control cannot have come to.
    fn exclude_unreached(&mut self) {
        let is_never = |class: Class| self.flow.bounds(class).high == 0;
        for block in self.unreached(&is_never) {
            let class = self.flow.block(block);
            self.flow.require(class, Bounds::exactly(0));
        }
    }

    /// The blocks that control cannot have come to, if these are where it never went.
    fn unreached(&self, is_never: &dyn Fn(Class) -> bool) -> Vec<u32> {
        let graph = &self.function.graph;
        let index = |node: Node| match node {
            Node::Outside => graph.blocks as usize,
            Node::Block(block) => block.index(),
        };
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); graph.blocks as usize + 1];
        for (number, edge) in graph.edges.iter().enumerate() {
            let is_shut = match edge.to {
                Node::Block(block) => is_never(self.flow.block(block.0)),
                Node::Outside => false,
            };
            if !is_shut && !is_never(self.flow.edge(number)) {
                next[index(edge.from)].push(index(edge.to));
            }
        }
        let mut reached = vec![false; next.len()];
        let mut waiting = vec![graph.blocks as usize];
        while let Some(at) = waiting.pop() {
            if !std::mem::replace(&mut reached[at], true) {
                waiting.extend(&next[at]);
            }
        }
        let blocks = (0..graph.blocks).zip(reached);
        blocks.filter(|it| !it.1).map(|it| it.0).collect()
    }

    /// Whether code was executed of what control never came to, if these never were. Somebody is wrong
    /// then: code that was never executed may be of one copy, and another has lost its own.
    fn is_contradicted(&self, never: &[Class]) -> bool {
        let has_run = |it: &u32| self.said.get(it).is_some_and(|it| it.has_run);
        let is_never = |it: Class| self.flow.bounds(it).high == 0 || never.contains(&it);
        !never.is_empty() && self.unreached(&is_never).iter().any(has_run)
    }

    /// Whether it is settled how often each way out of a condition was gone.
    fn settle(&mut self, condition: &Condition, claimed: &HashMap<Class, Vec<u64>>) -> bool {
        let mut ways = self.ways(condition, claimed);
        let fits = |target: &Target, value: Option<u64>| {
            let class = target.class(&self.flow).zip(value);
            class.is_none_or(|(class, value)| self.flow.bounds(class).holds(value))
        };
        let [first, second] = &condition.targets;
        ways.retain(|way| fits(first, way[0]) && fits(second, way[1]));
        ways.sort_unstable();
        ways.dedup();
        let [way] = ways.as_slice() else {
            return false;
        };
        let facts = condition.targets.iter().zip(way);
        let facts = facts.filter_map(|(target, value)| target.class(&self.flow).zip(*value));
        let facts: Vec<(Class, Bounds)> = facts
            .map(|(class, value)| (class, Bounds::exactly(value)))
            .collect();
        let never = facts.iter().filter(|it| it.1.high == 0);
        let never: Vec<Class> = never.map(|it| it.0).collect();
        let is_settled =
            !facts.is_empty() && !self.is_contradicted(&never) && self.flow.require_all(&facts);
        if is_settled {
            self.never.extend(never);
        }
        is_settled
    }

    /// How often each way out of a condition may have been gone, as its branches and what stands where
    /// they lead say together.
    fn ways(
        &self,
        condition: &Condition,
        claimed: &HashMap<Class, Vec<u64>>,
    ) -> Vec<[Option<u64>; 2]> {
        let whole = self.flow.bounds(self.flow.block(condition.head)).exact();
        let blocks = condition.blocks.iter();
        let places = blocks.filter_map(|it| self.outcomes.get(it)).flatten();
        let places: Vec<&Outcomes> = places.collect();
        let values: BTreeSet<u64> = match whole {
            Some(whole) => chained(&places, whole),
            None => places.iter().flat_map(|it| sums(it)).collect(),
        };
        let may_be = |value: u64| values.contains(&value);
        let claims = |target: &Target| -> &[u64] {
            let block = target.block.filter(|_| target.is_private);
            let known = block.and_then(|it| claimed.get(&self.flow.block(it)));
            known.map_or(&[], Vec::as_slice)
        };
        let mut ways = Vec::new();
        match (whole, condition.stays) {
            (Some(whole), _) => {
                for (number, target) in condition.targets.iter().enumerate() {
                    let fits = |it: &&u64| **it <= whole && may_be(**it);
                    for value in claims(target).iter().filter(fits) {
                        let mut way = [Some(whole - value); 2];
                        way[number] = Some(*value);
                        ways.push(way);
                    }
                }
            }
            (None, Some(stays)) => {
                let bounds = |edge: &usize| self.flow.bounds(self.flow.edge(*edge)).exact();
                let entered: Option<u64> = condition.entered.iter().map(bounds).sum();
                // The first test of a loop may have been left out.
                let is_untested = |value: u64| {
                    entered.is_some_and(|it| value.checked_sub(it).is_some_and(may_be))
                };
                let claims = claims(&condition.targets[stays]).iter();
                for value in claims.filter(|it| may_be(**it) || is_untested(**it)) {
                    let mut way = [None; 2];
                    way[stays] = Some(*value);
                    ways.push(way);
                }
            }
            (None, None) => (),
        }
        ways
    }

    /// What has code, none of which was executed.
    fn idle(&self) -> BTreeSet<Class> {
        let is_idle = |said: &Said| said.sum == 0 && !said.is_adrift;
        let blocks = self.said.iter().filter(|it| is_idle(it.1));
        blocks.map(|it| self.flow.block(*it.0)).collect()
    }

    /// That something was never executed takes more than what others leave over, of which one may have
    /// its code: code of its own that was not, or a branch in its way that was never taken.
    fn doubt_zeros(&self, entry: Entry, blocks: &mut [Bounds]) {
        if entry.seen.high == 0 {
            return;
        }
        let mut never = self.idle();
        never.extend(&self.never);
        let unreached = self.unreached(&|it| never.contains(&it));
        let unreached: BTreeSet<u32> = unreached.into_iter().collect();
        for (block, bounds) in (0..).zip(blocks) {
            if bounds.high == 0 && !unreached.contains(&block) {
                bounds.high = u64::MAX;
            }
        }
    }

    /// What claims that confirm each other say of each block, where they can be trusted: a loop without
    /// a branch did not make its rounds one by one.
    fn believed_claims(
        &self,
        places: &[(Place, Told)],
        marks_statements: bool,
        entry: Entry,
    ) -> Vec<Option<u64>> {
        let Some(value) = entry.seen.exact() else {
            return vec![None; self.function.blocks.len()];
        };
        let mut claims = claims::of(self.function, places, marks_statements);
        claims.push(Claim {
            block: 0,
            value,
            weight: 2 - u32::from(entry.has_copies),
            doubt: u8::from(entry.has_copies),
            stands_alone: !entry.has_copies,
            needs_witness: false,
        });
        let is_plain = |(number, it): (usize, &Loop)| {
            let holds = |block: &u32| it.holds[*block as usize];
            let packed = self.said.iter().filter(|it| it.1.is_packed);
            self.outcomes.keys().any(holds)
                && !packed.map(|it| it.0).any(holds)
                && !self.unrolled.contains(&number)
        };
        let loops = self.loops.iter().enumerate();
        let loops: Vec<&Loop> = loops.filter(|it| !is_plain(*it)).map(|it| it.1).collect();
        let is_trusted = |block: u32| loops.iter().all(|it| !it.holds[block as usize]);
        let settled = claims::settle(&self.function.graph, &claims);
        (0..)
            .zip(settled)
            .map(|(block, value)| value.filter(|_| is_trusted(block)))
            .collect()
    }

    /// The bounds of a block, with what somebody claims of it.
    fn bounds(&self, block: u32, claim: Option<u64>, entry: Entry) -> Bounds {
        let class = self.flow.block(block);
        let known = self.flow.bounds(class);
        let mut bounds = match claim {
            Some(value) if known.holds(value) => Bounds::exactly(value),
            Some(value) if known.exact().is_some() => Bounds::at_least(known.low.min(value)),
            _ => known,
        };
        if class == self.flow.block(0) {
            bounds.low = bounds.low.saturating_add(entry.unseen.low);
        }
        bounds.high = bounds.high.saturating_add(entry.unseen.high);
        bounds
    }
}

/// The loops that LLVM unrolled, it seems: most of what stands in them was executed more often than what
/// decides whether there is another round.
fn unrolled(function: &SourceFunction, loops: &[Loop], places: &[(Place, Told)]) -> Vec<usize> {
    let mut rounds = vec![0_u64; loops.len()];
    let mut bodies: Vec<Vec<u64>> = vec![Vec::new(); loops.len()];
    let lines = |block: u32| &function.blocks[block as usize].lines;
    for (place, told) in places {
        let at = (place.line, place.column);
        let block = function.block_at(at.0, at.1);
        let Some(block) = block.filter(|_| !function.is_vague(at)) else {
            continue;
        };
        let Some(number) = loops.iter().position(|it| it.holds[block as usize]) else {
            continue;
        };
        let head = loops[number].head;
        // The step of a `for` stands on the line of its condition.
        let is_step = || lines(block).iter().all(|it| lines(head).contains(it));
        match block == head || is_step() {
            true => rounds[number] = rounds[number].max(told.sum),
            false => bodies[number].push(told.sum),
        }
    }
    let is_unrolled = |number: &usize| {
        let body = &bodies[*number];
        let more = body.iter().filter(|it| **it > rounds[*number]);
        rounds[*number] > 0 && more.count() * 2 > body.len()
    };
    (0..loops.len()).filter(is_unrolled).collect()
}

/// What the code of a function says of its blocks. Marks that may belong elsewhere are asked only where
/// nobody else is, and the heading is nobody's statement.
fn said(
    function: &SourceFunction,
    places: &[(Place, Told)],
    marks_statements: bool,
) -> BTreeMap<u32, Said> {
    let mut said: BTreeMap<u32, Said> = BTreeMap::new();
    let (sure, adrift): (Vec<_>, Vec<_>) = places.iter().copied().partition(|it| !it.1.is_adrift);
    for (place, told) in sure.into_iter().chain(adrift) {
        let at = (place.line, place.column);
        let is_clear = !function.is_vague(at) && !told.is_partial && place.line != function.line;
        let Some(block) = function.block_at(at.0, at.1).filter(|_| is_clear) else {
            continue;
        };
        let new = Said::by(&told, marks_statements);
        match said.get_mut(&block) {
            Some(known) if known.is_adrift == new.is_adrift => known.join(new),
            Some(_) => (),
            None => _ = said.insert(block, new),
        }
    }
    said
}
