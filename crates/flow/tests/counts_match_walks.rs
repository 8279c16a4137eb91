//! Recovery and placement against twins that reason differently: walks counted step by step, and
//! all sets of places tried one by one.

mod dice;

use dice::Dice;
use headcount_flow::{
    Contradiction, EventCounter, Frequencies, Weights, frequencies, place_counters, recover,
    recover_lenient,
};
use headcount_model::{
    BlockId, Edge, EdgeId, EdgeKind, FlowGraph, GraphCounts, Node, Place, Plan, ProbeCosts,
    Readings,
};

/// A graph of any shape: parallel edges, loops of one block, blocks nobody reaches, blocks that
/// lead nowhere, edges that begin and end outside.
fn random_graph(dice: &mut Dice, most_blocks: usize) -> FlowGraph {
    let blocks = dice.below(most_blocks + 1) as u32;
    let mut graph = FlowGraph {
        blocks,
        edges: Vec::new(),
    };
    let node = |dice: &mut Dice| match dice.below(blocks as usize + 1) as u32 {
        number if number == blocks => Node::Outside,
        number => Node::Block(BlockId(number)),
    };
    for _ in 0..dice.below(3 * blocks as usize + 2) {
        let (from, to) = (node(dice), node(dice));
        let kind = match (from, to) {
            (Node::Outside, _) if dice.one_in(3) => EdgeKind::Arrival,
            (Node::Outside, _) => EdgeKind::Entry,
            (_, Node::Outside) if dice.one_in(2) => EdgeKind::Lost,
            (_, Node::Outside) => EdgeKind::Leave,
            _ => [EdgeKind::Fall, EdgeKind::Taken, EdgeKind::Jump][dice.below(3)],
        };
        graph.edges.push(Edge { from, to, kind });
    }
    graph
}

fn random_costs(dice: &mut Dice, graph: &FlowGraph) -> ProbeCosts {
    let mut costs = |count| {
        (0..count)
            .map(|_| Some(1 + dice.below(40) as u32))
            .collect()
    };
    ProbeCosts {
        blocks: costs(graph.blocks as usize),
        edges: costs(graph.edges.len()),
    }
}

fn random_hints(dice: &mut Dice, graph: &FlowGraph) -> Vec<bool> {
    (0..graph.blocks).map(|_| dice.one_in(4)).collect()
}

fn places(graph: &FlowGraph) -> Vec<Place> {
    let blocks = (0..graph.blocks).map(BlockId).map(Place::Block);
    let edges = (0..graph.edges.len() as u32).map(EdgeId).map(Place::Edge);
    blocks.chain(edges).collect()
}

/// The two ends of a place, where a block has an inside and an outside end.
fn ends(graph: &FlowGraph, place: Place) -> [(Node, bool); 2] {
    let end = |node, leaving| (node, leaving && node != Node::Outside);
    match place {
        Place::Block(block) => [
            end(Node::Block(block), false),
            end(Node::Block(block), true),
        ],
        Place::Edge(edge) => {
            let edge = graph.edges[edge.index()];
            [end(edge.from, true), end(edge.to, false)]
        }
    }
}

/// Whether some of these places form a ring, found by pulling off loose ends until none is left.
fn have_a_ring(graph: &FlowGraph, places: &[Place]) -> bool {
    let mut left: Vec<[(Node, bool); 2]> = places.iter().map(|&place| ends(graph, place)).collect();
    loop {
        let before = left.len();
        let all = left.clone();
        let is_loose = |end| all.iter().flatten().filter(|&&other| other == end).count() == 1;
        left.retain(|ends| !is_loose(ends[0]) && !is_loose(ends[1]));
        if left.len() == before {
            return before > 0;
        }
    }
}

/// Steps that certainly lead back outside: the number of edges on the shortest way there.
fn distances_home(graph: &FlowGraph) -> Vec<Option<usize>> {
    let mut distances = vec![None; graph.blocks as usize];
    for _ in 0..=graph.blocks {
        for edge in &graph.edges {
            let Node::Block(from) = edge.from else {
                continue;
            };
            let from_here = match edge.to {
                Node::Outside => Some(1),
                Node::Block(to) => distances[to.index()].map(|steps: usize| steps + 1),
            };
            if let Some(steps) = from_here
                && distances[from.index()].is_none_or(|known| steps < known)
            {
                distances[from.index()] = Some(steps);
            }
        }
    }
    distances
}

/// The dull twin: leaves the outside at random, wanders about, comes home, and counts each step.
fn counts_of_random_walks(graph: &FlowGraph, dice: &mut Dice) -> GraphCounts {
    let mut counts = GraphCounts {
        blocks: vec![0; graph.blocks as usize],
        edges: vec![0; graph.edges.len()],
    };
    let distances = distances_home(graph);
    let distance = |node| match node {
        Node::Outside => Some(0),
        Node::Block(block) => distances[block.index()],
    };
    for _ in 0..dice.below(6) {
        let mut patience = dice.below(60);
        let mut here = Node::Outside;
        loop {
            let ways: Vec<usize> = (0..graph.edges.len())
                .filter(|&edge| graph.edges[edge].from == here)
                .filter(|&edge| distance(graph.edges[edge].to).is_some())
                .collect();
            if ways.is_empty() {
                break; // only at the very start
            }
            let way = if patience > 0 {
                patience -= 1;
                ways[dice.below(ways.len())]
            } else {
                let nearest = ways
                    .into_iter()
                    .min_by_key(|&way| distance(graph.edges[way].to));
                nearest.expect("there is a way")
            };
            counts.edges[way] += 1;
            here = graph.edges[way].to;
            match here {
                Node::Block(block) => counts.blocks[block.index()] += 1,
                Node::Outside => break,
            }
        }
    }
    counts
}

fn count_at(counts: &GraphCounts, place: Place) -> u64 {
    match place {
        Place::Block(block) => counts.blocks[block.index()],
        Place::Edge(edge) => counts.edges[edge.index()],
    }
}

fn readings(counts: &GraphCounts, plan: &Plan) -> Readings {
    let read = |&place: &Place| count_at(counts, place);
    Readings(plan.counters.iter().map(read).collect())
}

fn cost_at(costs: &mut ProbeCosts, place: Place) -> &mut Option<u32> {
    match place {
        Place::Block(block) => &mut costs.blocks[block.index()],
        Place::Edge(edge) => &mut costs.edges[edge.index()],
    }
}

#[test]
fn recovery_agrees_with_walks_counted_by_hand() {
    for seed in 0..6000 {
        let mut dice = Dice(seed);
        let graph = random_graph(&mut dice, 12);
        let mut costs = random_costs(&mut dice, &graph);
        let mut bare = Vec::new();
        for place in places(&graph) {
            if dice.one_in(3) {
                bare.push(place);
                if have_a_ring(&graph, &bare) {
                    bare.pop();
                } else {
                    *cost_at(&mut costs, place) = None;
                }
            }
        }
        let guess = frequencies(&graph, &random_hints(&mut dice, &graph));
        let plan = place_counters(&graph, &guess, &costs).expect("bare places form no ring");
        assert!(
            !plan.counters.iter().any(|place| bare.contains(place)),
            "seed {seed}: a counter where no probe can stand"
        );
        let truth = counts_of_random_walks(&graph, &mut dice);
        let readings = readings(&truth, &plan);
        assert_eq!(
            recover_lenient(&graph, &plan, &readings),
            Ok((truth.clone(), vec![])),
            "seed {seed}"
        );
        assert_eq!(recover(&graph, &plan, &readings), Ok(truth), "seed {seed}");
    }
}

#[test]
fn a_dropped_counter_is_noticed() {
    for seed in 0..2000 {
        let mut dice = Dice(seed);
        let graph = random_graph(&mut dice, 12);
        let costs = random_costs(&mut dice, &graph);
        let mut plan =
            place_counters(&graph, &frequencies(&graph, &[]), &costs).expect("all bear probes");
        if plan.counters.is_empty() {
            continue;
        }
        let dropped = plan.counters.remove(dice.below(plan.counters.len()));
        let truth = counts_of_random_walks(&graph, &mut dice);
        let answer = recover(&graph, &plan, &readings(&truth, &plan));
        assert!(
            matches!(answer, Err(Contradiction::Undetermined { .. })),
            "seed {seed}: without {dropped:?}: {answer:?}"
        );
    }
}

#[test]
fn places_without_probes_are_unsolvable_exactly_when_they_form_a_ring() {
    let mut refused = 0;
    for seed in 0..4000 {
        let mut dice = Dice(seed);
        let graph = random_graph(&mut dice, 8);
        let mut costs = random_costs(&mut dice, &graph);
        let odds = 1 + dice.below(6);
        let bare: Vec<Place> = places(&graph)
            .into_iter()
            .filter(|_| dice.one_in(odds))
            .collect();
        for &place in &bare {
            *cost_at(&mut costs, place) = None;
        }
        match place_counters(&graph, &frequencies(&graph, &[]), &costs) {
            Ok(_) => assert!(!have_a_ring(&graph, &bare), "seed {seed}"),
            Err(unsolvable) => {
                assert!(have_a_ring(&graph, &bare), "seed {seed}");
                assert!(bare.contains(&unsolvable.place), "seed {seed}");
                refused += 1;
            }
        }
    }
    assert!(refused > 1000, "the test has lost its subject");
}

#[test]
fn no_other_set_of_places_is_cheaper() {
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let mut graph = random_graph(&mut dice, 4);
        graph.edges.truncate(8);
        let costs = random_costs(&mut dice, &graph);
        let guess = frequencies(&graph, &random_hints(&mut dice, &graph));
        let price = |places: &[Place]| -> f64 {
            let one = |&place: &Place| match place {
                Place::Block(block) => {
                    guess.blocks[block.index()]
                        * f64::from(costs.blocks[block.index()].unwrap_or(0))
                }
                Place::Edge(edge) => {
                    guess.edges[edge.index()] * f64::from(costs.edges[edge.index()].unwrap_or(0))
                }
            };
            places.iter().map(one).sum()
        };
        let plan = place_counters(&graph, &guess, &costs).expect("all bear probes");
        let all = places(&graph);
        let ours = price(&plan.counters);
        for chosen in 0..1_u32 << all.len() {
            let (with, without): (Vec<Place>, Vec<Place>) = all
                .iter()
                .enumerate()
                .map(|(at, &place)| (chosen >> at & 1 == 1, place))
                .fold(Default::default(), |mut sets, (is_chosen, place)| {
                    let set = if is_chosen { &mut sets.0 } else { &mut sets.1 };
                    set.push(place);
                    sets
                });
            // Prices are compared in single precision.
            let is_cheaper = price(&with) < ours * (1.0 - 1e-5);
            assert!(
                !is_cheaper || have_a_ring(&graph, &without),
                "seed {seed}: {with:?} is cheaper than {:?}",
                plan.counters
            );
        }
    }
}

#[test]
fn the_same_graph_has_the_same_plan() {
    for seed in 0..200 {
        let plan = || {
            let mut dice = Dice(seed);
            let graph = random_graph(&mut dice, 20);
            let costs = random_costs(&mut dice, &graph);
            place_counters(&graph, &frequencies(&graph, &[]), &costs)
        };
        assert_eq!(plan(), plan());
    }
}

#[test]
fn more_counters_than_needed_must_agree() {
    for seed in 0..2000 {
        let mut dice = Dice(seed);
        let graph = random_graph(&mut dice, 10);
        let truth = counts_of_random_walks(&graph, &mut dice);
        let plan = Plan {
            counters: places(&graph),
        };
        let mut readings = readings(&truth, &plan);
        assert_eq!(recover(&graph, &plan, &readings), Ok(truth));
        let blocks = graph.blocks as usize;
        if blocks == 0 {
            continue;
        }
        let wrong = dice.below(blocks);
        readings.0[wrong] += 1;
        let block = BlockId(wrong as u32);
        assert_eq!(
            recover(&graph, &plan, &readings),
            Err(Contradiction::Uneven { block })
        );
        let (_, odd) = recover_lenient(&graph, &plan, &readings).expect("forgiven");
        assert_eq!(odd, [Place::Block(block)]);
    }
}

/// Enters block 0, which falls into block 1 or leaves; block 1 leaves.
fn two_blocks() -> FlowGraph {
    let node = |number| Node::Block(BlockId(number));
    let edge = |from, to, kind| Edge { from, to, kind };
    FlowGraph {
        blocks: 2,
        edges: vec![
            edge(Node::Outside, node(0), EdgeKind::Entry),
            edge(node(0), node(1), EdgeKind::Fall),
            edge(node(0), Node::Outside, EdgeKind::Leave),
            edge(node(1), Node::Outside, EdgeKind::Leave),
        ],
    }
}

fn counters_at(counters: &[Place]) -> Plan {
    Plan {
        counters: counters.to_vec(),
    }
}

const BLOCK_0: Place = Place::Block(BlockId(0));
const BLOCK_1: Place = Place::Block(BlockId(1));
const SHORT_WAY_OUT: Place = Place::Edge(EdgeId(2));

#[test]
fn readings_that_contradict_each_other_are_refused_by_name() {
    let graph = two_blocks();
    let plan = counters_at(&[BLOCK_0, BLOCK_1]);
    let ask = |plan: &Plan, readings: &[u64]| recover(&graph, plan, &Readings(readings.to_vec()));
    assert_eq!(
        ask(&plan, &[5, 3]),
        Ok(GraphCounts {
            blocks: vec![5, 3],
            edges: vec![5, 3, 2, 3],
        })
    );
    assert_eq!(
        ask(&plan, &[3, 5]),
        Err(Contradiction::Negative {
            place: SHORT_WAY_OUT,
            count: -2,
        })
    );
    assert_eq!(
        ask(&plan, &[5]),
        Err(Contradiction::WrongNumber {
            counters: 2,
            readings: 1,
        })
    );
    assert_eq!(
        ask(&counters_at(&[BLOCK_1, SHORT_WAY_OUT]), &[u64::MAX, 1]),
        Err(Contradiction::TooLarge { place: BLOCK_0 })
    );
    assert_eq!(
        ask(&counters_at(&[BLOCK_0, BLOCK_0]), &[1, 1]),
        Err(Contradiction::CountedTwice { place: BLOCK_0 })
    );
    for place in [Place::Block(BlockId(2)), Place::Edge(EdgeId(4))] {
        assert_eq!(
            ask(&counters_at(&[place]), &[1]),
            Err(Contradiction::NoSuchPlace { place })
        );
    }
    let mut broken = graph.clone();
    broken.edges[1].to = Node::Block(BlockId(9));
    assert_eq!(
        recover(&broken, &plan, &Readings(vec![1, 1])),
        Err(Contradiction::NoSuchBlock { edge: EdgeId(1) })
    );
}

#[test]
fn a_program_stopped_in_a_block_is_forgiven_and_the_place_named() {
    let graph = two_blocks();
    let plan = counters_at(&[BLOCK_1, SHORT_WAY_OUT]);
    // A thread was stopped in block 0: no counter saw it, and nothing contradicts.
    assert_eq!(
        recover_lenient(&graph, &plan, &Readings(vec![0, 0])),
        Ok((
            GraphCounts {
                blocks: vec![0, 0],
                edges: vec![0; 4],
            },
            vec![]
        ))
    );
    // Block 1 saw a visit that block 0 did not.
    let plan = counters_at(&[BLOCK_0, BLOCK_1]);
    assert_eq!(
        recover_lenient(&graph, &plan, &Readings(vec![0, 1])),
        Ok((
            GraphCounts {
                blocks: vec![0, 1],
                edges: vec![0, 1, 0, 1],
            },
            vec![SHORT_WAY_OUT]
        ))
    );
}

/// `fork`, or a function that calls it: block 0 makes the call once, block 1 comes after it twice.
#[test]
fn a_call_that_comes_back_twice_contradicts_nothing() {
    let mut graph = two_blocks();
    graph.edges[2].kind = EdgeKind::Lost;
    let plan = counters_at(&[BLOCK_0, BLOCK_1]);
    let counts = GraphCounts {
        blocks: vec![1, 2],
        edges: vec![1, 2, 0, 2],
    };
    let readings = Readings(vec![1, 2]);
    assert_eq!(recover(&graph, &plan, &readings), Ok(counts.clone()));
    assert_eq!(
        recover_lenient(&graph, &plan, &readings),
        Ok((counts, vec![]))
    );
}

#[test]
fn a_block_without_edges_ran_never() {
    let graph = FlowGraph {
        blocks: 1,
        edges: vec![],
    };
    let costs = ProbeCosts {
        blocks: vec![Some(10)],
        edges: vec![],
    };
    let plan = place_counters(&graph, &frequencies(&graph, &[]), &costs).expect("solvable");
    assert_eq!(plan.counters, []);
    let counts = recover(&graph, &plan, &Readings::default()).expect("determined");
    assert_eq!(counts.blocks, [0]);
}

#[test]
fn among_equals_a_block_carries_the_counter() {
    let node = |number| Node::Block(BlockId(number));
    let edge = |from, to| Edge {
        from,
        to,
        kind: EdgeKind::Jump,
    };
    let graph = FlowGraph {
        blocks: 1,
        edges: vec![edge(Node::Outside, node(0)), edge(node(0), Node::Outside)],
    };
    let costs = ProbeCosts {
        blocks: vec![Some(10)],
        edges: vec![Some(10); 2],
    };
    let plan = place_counters(&graph, &frequencies(&graph, &[]), &costs).expect("solvable");
    assert_eq!(plan.counters, [BLOCK_0]);
}

/// Costs and frequencies that are the same everywhere.
fn all_alike(graph: &FlowGraph) -> ProbeCosts {
    ProbeCosts {
        blocks: vec![Some(10); graph.blocks as usize],
        edges: vec![Some(10); graph.edges.len()],
    }
}

fn places_and_recovers(graph: &FlowGraph, truth: &GraphCounts) {
    let guess: Frequencies = frequencies(graph, &[]);
    let plan = place_counters(graph, &guess, &all_alike(graph)).expect("all bear probes");
    let readings = readings(truth, &plan);
    assert!(recover(graph, &plan, &readings).as_ref() == Ok(truth));
    let weights = Weights {
        blocks: vec![1; graph.blocks as usize],
        edges: vec![],
    };
    let counter = EventCounter::new(graph, &plan, &weights).expect("the plan is enough");
    let blocks: u64 = truth.blocks.iter().sum();
    assert_eq!(counter.total(&readings), Ok(i128::from(blocks)));
}

/// `count` blocks in a row; block i also jumps to wherever `jump` says. Truth: the row runs once.
fn row(count: u32, jump: impl Fn(u32) -> u32) -> (FlowGraph, GraphCounts) {
    let node = |number| Node::Block(BlockId(number));
    let edge = |from, to, kind| Edge { from, to, kind };
    let mut edges = vec![edge(Node::Outside, node(0), EdgeKind::Entry)];
    let mut taken = vec![1];
    for number in 0..count {
        edges.push(edge(node(number), node(jump(number)), EdgeKind::Taken));
        taken.push(0);
        let next = if number + 1 < count {
            node(number + 1)
        } else {
            Node::Outside
        };
        edges.push(edge(node(number), next, EdgeKind::Fall));
        taken.push(1);
    }
    let truth = GraphCounts {
        blocks: vec![1; count as usize],
        edges: taken,
    };
    let graph = FlowGraph {
        blocks: count,
        edges,
    };
    (graph, truth)
}

const MANY: u32 = 500_000;

#[test]
fn a_million_edges_that_jump_ahead() {
    let (graph, truth) = row(MANY, |number| (number + 2).min(MANY - 1));
    places_and_recovers(&graph, &truth);
}

#[test]
fn a_million_edges_of_which_half_jump_back_to_the_start() {
    let (graph, truth) = row(MANY, |_| 0);
    places_and_recovers(&graph, &truth);
}

#[test]
fn a_quarter_million_loops_inside_each_other() {
    let (graph, truth) = row(MANY, |number| MANY - 1 - number);
    places_and_recovers(&graph, &truth);
}

#[test]
fn a_million_edges_at_random() {
    let jumps: Vec<u32> = {
        let mut dice = Dice(1);
        (0..MANY)
            .map(|_| dice.below(MANY as usize) as u32)
            .collect()
    };
    let (graph, truth) = row(MANY, |number| jumps[number as usize]);
    places_and_recovers(&graph, &truth);
}
