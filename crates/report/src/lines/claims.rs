//! What follows from claims about how often parts of a function ran?
//!
//! Control that comes to a block of the source leaves it again, so the counts of blocks depend on
//! each other: each time an `if` is reached, control goes on to one of its arms or to what follows it.
//! A *claim* says how often a block ran, as its code has it. Claims may be wrong, because code was
//! copied, merged or dropped; but wrong ones seldom agree. What follows from claims that others
//! confirm, and none contradicts, is believed.

use super::evidence::{Place, Told};
use super::tree::{Sign, Tree};
use headcount_model::{FlowGraph, SourceFunction};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A block ran so often, somebody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The block.
    pub block: u32,
    /// How often.
    pub value: u64,
    /// How many say so.
    pub weight: u32,
    /// How much the claim is worth by itself: smaller is more.
    pub doubt: u8,
    /// Whether it is believed where nobody confirms it.
    pub stands_alone: bool,
    /// Whether it is not, however many say so: somebody said otherwise.
    pub needs_witness: bool,
}

/// What places claim about blocks: those of a block that say the same say it together.
pub fn of(
    function: &SourceFunction,
    places: &[(Place, Told)],
    marks_statements: bool,
) -> Vec<Claim> {
    let mut said: HashMap<u32, Vec<(u64, u8)>> = HashMap::new();
    // So often or more, surely.
    let mut floors: HashMap<u32, u64> = HashMap::new();
    for (place, told) in places {
        let is_vague = function.is_vague((place.line, place.column));
        let block = function.block_at(place.line, place.column);
        let is_open = told.is_packed || told.is_partial;
        let (Some(block), false) = (block, is_vague || is_open) else {
            continue;
        };
        let floor = floors.entry(block).or_default();
        *floor = told.most.max(*floor);
        // LLVM copies a place, or spreads it, within one stretch: nobody can tell which.
        if !marks_statements && told.pieces > told.spread {
            continue;
        }
        let doubt = match (told.pieces, told.spread) {
            (1, _) => 0,
            (pieces, spread) if pieces == spread => 1,
            _ => 2,
        };
        said.entry(block).or_default().push((told.sum, doubt));
    }
    let mut claims = Vec::new();
    for (block, said) in said {
        let all = said.len() as u32;
        let mut values: BTreeMap<u64, (u32, u8)> = BTreeMap::new();
        for (value, doubt) in said {
            let it = values.entry(value).or_insert((0, doubt));
            *it = (it.0 + 1, it.1.min(doubt));
        }
        // Of gcc's marks one may stand for what several lines share.
        if !marks_statements {
            values.retain(|value, _| *value >= floors[&block]);
        }
        let mut values: Vec<(u64, (u32, u8))> = values.into_iter().collect();
        values.sort_by_key(|(value, (weight, doubt))| {
            std::cmp::Reverse((*weight, std::cmp::Reverse(*doubt), *value))
        });
        let top = values.first().map_or(0, |it| it.1.0);
        for (value, (weight, doubt)) in values.into_iter().filter(|it| it.1.0 == top) {
            claims.push(Claim {
                block,
                value,
                weight,
                doubt,
                stands_alone: doubt == 0 && marks_statements,
                needs_witness: weight * 2 <= all,
            });
        }
    }
    claims.sort_by_key(|it| (it.block, it.value));
    claims
}

/// A graph with more independent cycles than this takes too long.
const MOST_CYCLES: usize = 4000;

/// How often every block ran, as far as that can be believed.
pub fn settle(graph: &FlowGraph, claims: &[Claim]) -> Vec<Option<u64>> {
    let Some(space) = Space::of(graph) else {
        return vec![None; graph.blocks as usize];
    };
    let mut claims = claims.to_vec();
    claims.sort_by_key(|it| (it.doubt, std::cmp::Reverse(it.weight), it.block, it.value));
    loop {
        let mut system = System::default();
        for claim in &claims {
            system.add(claim, &space.blocks[claim.block as usize]);
        }
        // No way was gone less often than never.
        for edge in &space.edges {
            system.must_not_be_negative(edge);
        }
        let liars = system.liars();
        if liars.is_empty() {
            let settled = space.blocks.iter().map(|it| system.believed(it));
            return settled.collect();
        }
        // Whom a liar contradicted needs a witness.
        for (claim, taken) in claims.iter_mut().zip(&system.claims) {
            claim.needs_witness |= taken.contested > 0;
        }
        let mut number = 0..;
        claims.retain(|_| number.next().is_none_or(|it: usize| !liars.contains(&it)));
    }
}

/// Numbers modulo this prime are exact where they are small.
const PRIME: u64 = (1 << 61) - 1;

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

fn minus(a: u64, b: u64) -> u64 {
    if a >= b { a - b } else { a + PRIME - b }
}

fn plus(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

/// One over it: its power to `PRIME - 2`.
fn inverse(of: u64) -> u64 {
    let (mut result, mut base, mut left) = (1, of, PRIME - 2);
    while left > 0 {
        if left & 1 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        left >>= 1;
    }
    result
}

/// A sum of unknowns: how often each counts.
type Sum = BTreeMap<u32, u64>;

fn add(to: &mut Sum, factor: u64, other: &Sum) {
    for (unknown, value) in other {
        let sum = to.entry(*unknown).or_default();
        *sum = plus(*sum, times(factor, *value));
        if *sum == 0 {
            to.remove(unknown);
        }
    }
}

/// The counts of blocks and edges as sums of few unknowns, those of the edges that close cycles.
struct Space {
    blocks: Vec<Sum>,
    edges: Vec<Sum>,
}

impl Space {
    fn of(graph: &FlowGraph) -> Option<Self> {
        let tree = Tree::of(graph);
        if tree.chords() > MOST_CYCLES {
            return None;
        }
        let mut unknowns = 0..;
        let unknown = || Sum::from_iter(unknowns.next().map(|it| (it, 1)));
        let edges = tree.values(unknown, |to, sign, by| match sign {
            Sign::Plus => add(to, 1, by),
            Sign::Minus => add(to, PRIME - 1, by),
        });
        let mut blocks = vec![Sum::new(); graph.blocks as usize];
        for ((_, to), sum) in tree.ends.iter().zip(&edges) {
            if let Some(block) = blocks.get_mut(*to) {
                add(block, 1, sum);
            }
        }
        Some(Self { blocks, edges })
    }
}

/// Equations that claims make.
#[derive(Default)]
struct System {
    /// By the first unknown of each.
    rows: HashMap<u32, Row>,
    claims: Vec<Taken>,
}

struct Row {
    sum: Sum,
    value: u64,
    /// The claims that it was made of.
    made_of: Sum,
}

/// A claim, and what others say to it.
struct Taken {
    claim: Claim,
    /// How many say the same, and how many the contrary.
    confirmed: u32,
    contested: u32,
}

impl Taken {
    fn is_good(&self) -> bool {
        let is_enough = self.claim.weight > 1 || self.claim.stands_alone;
        let is_confirmed = self.confirmed > 0 || is_enough && !self.claim.needs_witness;
        is_confirmed && self.contested == 0
    }

    /// How much it looks like a lie: contradictions, then how few are for it.
    fn suspicion(&self) -> (i64, i64) {
        let weight = i64::from(self.claim.weight);
        let contested = i64::from(self.contested);
        (contested - i64::from(self.confirmed) - weight, -weight)
    }
}

impl System {
    /// Takes away from a sum what is known: its value, the claims that say so, and whether anything
    /// is left.
    fn reduce(&self, sum: &Sum) -> Reduced {
        let mut left = sum.clone();
        let (mut value, mut made_of) = (0, Sum::new());
        let mut at = 0;
        while let Some((unknown, factor)) = left.range(at..).next().map(|(a, b)| (*a, *b)) {
            at = unknown + 1;
            let Some(row) = self.rows.get(&unknown) else {
                continue;
            };
            add(&mut left, minus(0, factor), &row.sum);
            value = plus(value, times(factor, row.value));
            add(&mut made_of, factor, &row.made_of);
        }
        Reduced {
            left,
            value,
            made_of,
        }
    }

    fn add(&mut self, claim: &Claim, sum: &Sum) {
        let Reduced {
            left,
            value,
            made_of,
        } = self.reduce(sum);
        let claimed = claim.value % PRIME;
        let number = self.claims.len() as u32;
        self.claims.push(Taken {
            claim: *claim,
            confirmed: 0,
            contested: 0,
        });
        if let Some((unknown, factor)) = left.iter().next().map(|(a, b)| (*a, *b)) {
            let one = inverse(factor);
            let mut row = Row {
                sum: Sum::new(),
                value: times(one, minus(claimed, value)),
                made_of: Sum::from([(number, one)]),
            };
            add(&mut row.sum, one, &left);
            add(&mut row.made_of, minus(0, one), &made_of);
            self.rows.insert(unknown, row);
            return;
        }
        let others = made_of.keys().map(|it| self.weight(*it)).min();
        self.judge(&made_of, claim.weight, value == claimed);
        self.judge(
            &Sum::from([(number, 1)]),
            others.unwrap_or(0),
            value == claimed,
        );
    }

    fn weight(&self, claim: u32) -> u32 {
        let claim = self.claims.get(claim as usize);
        claim.map_or(0, |it| it.claim.weight)
    }

    /// All these claims together agree with something, or contradict it.
    fn judge(&mut self, claims: &Sum, weight: u32, agree: bool) {
        for claim in claims.keys() {
            if let Some(it) = self.claims.get_mut(*claim as usize) {
                match agree {
                    true => it.confirmed += weight,
                    false => it.contested += weight,
                }
            }
        }
    }

    fn must_not_be_negative(&mut self, sum: &Sum) {
        let reduced = self.reduce(sum);
        if reduced.left.is_empty() && reduced.value > PRIME / 2 {
            self.judge(&reduced.made_of, 1, false);
        }
    }

    /// The claims that must be wrong, if the fewest are.
    fn liars(&self) -> HashSet<usize> {
        let suspects = (0..).zip(&self.claims).filter(|(_, it)| it.contested > 0);
        let worst = suspects.clone().map(|(_, it)| it.suspicion()).max();
        let worst = suspects.filter(|(_, it)| Some(it.suspicion()) == worst);
        worst.map(|(number, _)| number).collect()
    }

    fn believed(&self, sum: &Sum) -> Option<u64> {
        let reduced = self.reduce(sum);
        let taken = |it: &u32| self.claims.get(*it as usize);
        let is_good = |it: &u32| taken(it).is_some_and(Taken::is_good);
        let is_known = reduced.left.is_empty() && reduced.value <= PRIME / 2;
        (is_known && reduced.made_of.keys().all(is_good)).then_some(reduced.value)
    }
}

/// What is left of a sum when all that is known was taken away.
struct Reduced {
    left: Sum,
    value: u64,
    made_of: Sum,
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::{BlockId, Edge, EdgeKind, Node};

    fn graph(blocks: u32, edges: &[(i32, i32)]) -> FlowGraph {
        let node = |at: i32| match u32::try_from(at) {
            Ok(at) => Node::Block(BlockId(at)),
            Err(_) => Node::Outside,
        };
        let edge = |(from, to): &(i32, i32)| Edge {
            from: node(*from),
            to: node(*to),
            kind: EdgeKind::Fall,
        };
        FlowGraph {
            blocks,
            edges: edges.iter().map(edge).collect(),
        }
    }

    fn claim(block: u32, value: u64) -> Claim {
        Claim {
            block,
            value,
            weight: 1,
            doubt: 0,
            stands_alone: false,
            needs_witness: false,
        }
    }

    /// `0; if (…) 1; else 2; 3`
    fn choice() -> FlowGraph {
        graph(4, &[(-1, 0), (0, 1), (0, 2), (1, 3), (2, 3), (3, -1)])
    }

    #[test]
    fn an_arm_without_code_ran_as_often_as_the_other_leaves_over() {
        let entry = Claim {
            stands_alone: true,
            ..claim(0, 10)
        };
        let arm = Claim {
            stands_alone: true,
            ..claim(1, 7)
        };
        let settled = settle(&choice(), &[entry, arm]);
        assert_eq!(settled, [Some(10), Some(7), Some(3), Some(10)]);
    }

    #[test]
    fn what_nobody_confirms_is_not_believed() {
        assert_eq!(settle(&choice(), &[claim(0, 10)]), [None; 4]);
        let both = settle(&choice(), &[claim(0, 10), claim(3, 10)]);
        assert_eq!(both, [Some(10), None, None, Some(10)]);
    }

    #[test]
    fn what_contradicts_itself_is_not_believed() {
        let sure = |block, value| Claim {
            stands_alone: true,
            ..claim(block, value)
        };
        let settled = settle(&choice(), &[sure(0, 10), sure(1, 7), sure(2, 4)]);
        assert_eq!(settled, [None; 4]);
        // More often than control came there.
        let settled = settle(&choice(), &[sure(0, 10), sure(1, 12)]);
        assert_eq!(settled, [None; 4]);
    }

    #[test]
    fn a_loop_is_believed_where_condition_and_body_agree() {
        // `0; while (1) 2; 3`
        let graph = graph(4, &[(-1, 0), (0, 1), (1, 2), (2, 1), (1, 3), (3, -1)]);
        let claims = [claim(0, 1), claim(1, 11), claim(2, 10), claim(3, 1)];
        assert_eq!(
            settle(&graph, &claims),
            [Some(1), Some(11), Some(10), Some(1)]
        );
        // Unrolled by four: the condition was left out three times in four.
        let claims = [claim(0, 1), claim(1, 3), claim(2, 10), claim(3, 1)];
        assert_eq!(settle(&graph, &claims), [Some(1), None, None, Some(1)]);
    }
}
