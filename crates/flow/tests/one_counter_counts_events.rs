//! The single event counter against a twin that counts each event when it happens; and the figures of
//! Ball's paper (1994).

mod dice;
mod routines;

use dice::Dice;
use headcount_flow::{
    Contradiction, EventCounter, Point, Visit, VisitPoint, Weights, frequencies, place_counters,
    recover_with_visits,
};
use headcount_model::{
    BlockId, Edge, EdgeId, EdgeKind, FlowGraph, GraphCounts, Node, Place, Plan, Readings,
};
use routines::{Routine, costs, random_routine};

/// A routine whose instructions and edges have events, and whose probes stand somewhere.
struct Scene {
    routine: Routine,
    /// Events of each instruction of each block.
    instructions: Vec<Vec<u32>>,
    weights: Weights,
    plan: Plan,
    /// Before which instruction the probe of a block stands, if it has one.
    probes: Vec<usize>,
}

impl Scene {
    fn random(dice: &mut Dice) -> Self {
        let routine = random_routine(dice);
        let number = |dice: &mut Dice| match dice.one_in(3) {
            true => 0,
            false => dice.below(9) as u32,
        };
        let instructions: Vec<Vec<u32>> = routine
            .lengths
            .iter()
            .map(|length| (0..*length).map(|_| number(dice)).collect())
            .collect();
        let weights = Weights {
            blocks: instructions.iter().map(|it| it.iter().sum()).collect(),
            edges: routine.graph.edges.iter().map(|_| number(dice)).collect(),
        };
        let costs = costs(dice, &routine.graph);
        let guess = frequencies(&routine.graph, &[]);
        let plan = place_counters(&routine.graph, &guess, &costs).expect("solvable");
        let probes = routine.lengths.iter().map(|length| dice.below(*length));
        Self {
            probes: probes.collect(),
            instructions,
            weights,
            plan,
            routine,
        }
    }

    fn counter(&self) -> EventCounter {
        EventCounter::new(&self.routine.graph, &self.plan, &self.weights).expect("solvable")
    }
}

/// What a walk found at a point where the counter and the query increment did not make the truth.
#[derive(Debug)]
#[allow(dead_code)]
struct Wrong {
    point: Point,
    counter: i64,
    query_increment: Option<i64>,
    truth: i64,
}

/// A thread in a routine. Every event is counted when it happens; probes add what they are told.
struct Walk<'a> {
    scene: &'a Scene,
    increments: &'a [i64],
    query: &'a dyn Fn(Point) -> Option<i64>,
    counter: i64,
    truth: i64,
    counts: GraphCounts,
    /// Where the routine was left by no edge, and what was added to the counter then.
    dropped: Vec<(Visit, i64)>,
}

impl<'a> Walk<'a> {
    fn new(
        scene: &'a Scene,
        increments: &'a [i64],
        query: &'a dyn Fn(Point) -> Option<i64>,
    ) -> Self {
        let graph = &scene.routine.graph;
        Self {
            scene,
            increments,
            query,
            counter: 0,
            truth: 0,
            counts: GraphCounts {
                blocks: vec![0; graph.blocks as usize],
                edges: vec![0; graph.edges.len()],
            },
            dropped: Vec::new(),
        }
    }

    /// Goes in and out until all steps are made and control is outside; asks after each of them.
    fn go(&mut self, mut steps: usize, dice: &mut Dice) -> Result<(), Wrong> {
        let mut here = Node::Outside;
        while steps > 0 || here != Node::Outside {
            steps = steps.saturating_sub(1);
            match here {
                Node::Outside => self.ask(Point::Outside)?,
                Node::Block(block) if dice.one_in(40) => {
                    self.dropped_in(block, dice)?;
                    here = Node::Outside;
                    continue;
                }
                Node::Block(block) => {
                    let all = self.scene.instructions[block.index()].len();
                    self.run(block, all)?;
                }
            }
            here = self.take_an_edge(here, dice)?;
        }
        self.ask(Point::Outside)
    }

    fn ask(&self, point: Point) -> Result<(), Wrong> {
        let query_increment = (self.query)(point);
        match query_increment {
            Some(increment) if self.counter + increment == self.truth => Ok(()),
            _ => Err(Wrong {
                point,
                counter: self.counter,
                query_increment,
                truth: self.truth,
            }),
        }
    }

    /// What a probe here adds, if there is one.
    fn probe(&mut self, place: Place) -> bool {
        let counters = &self.scene.plan.counters;
        let Some(counter) = counters.iter().position(|it| *it == place) else {
            return false;
        };
        self.counter += self.increments[counter];
        true
    }

    /// Runs the first instructions of a block. Returns the point where control is then.
    fn run(&mut self, block: BlockId, instructions: usize) -> Result<Point, Wrong> {
        let scene = self.scene;
        let mut events = 0;
        let mut probed = false;
        let point = |events, probed| Point::Block {
            block,
            events,
            probed,
        };
        self.ask(point(events, probed))?;
        self.counts.blocks[block.index()] += 1;
        for at in 0..instructions {
            if at == scene.probes[block.index()] {
                probed = self.probe(Place::Block(block));
                self.ask(point(events, probed))?;
            }
            events += scene.instructions[block.index()][at];
            self.truth += i64::from(scene.instructions[block.index()][at]);
            self.ask(point(events, probed))?;
        }
        Ok(point(events, probed))
    }

    /// The routine is left in the midst of a block, by no edge: a call that `longjmp` comes out of.
    fn dropped_in(&mut self, block: BlockId, dice: &mut Dice) -> Result<(), Wrong> {
        let some = 1 + dice.below(self.scene.instructions[block.index()].len());
        let point = self.run(block, some)?;
        let increment = (self.query)(point).expect("the point was asked for");
        self.counter += increment;
        let visit = Visit {
            block,
            at: VisitPoint::Inside,
            delta: -1,
        };
        self.dropped.push((visit, increment));
        self.ask(Point::Outside)
    }

    fn take_an_edge(&mut self, from: Node, dice: &mut Dice) -> Result<Node, Wrong> {
        let edges = &self.scene.routine.graph.edges;
        let ways: Vec<usize> = (0..edges.len())
            .filter(|way| edges[*way].from == from)
            .collect();
        let way = ways[dice.below(ways.len())];
        let edge = EdgeId(way as u32);
        let point = |probed| Point::Edge { edge, probed };
        self.counts.edges[way] += 1;
        self.truth += i64::from(self.scene.weights.edges[way]);
        self.ask(point(false))?;
        let probed = self.probe(Place::Edge(edge));
        self.ask(point(probed))?;
        Ok(edges[way].to)
    }
}

#[test]
fn the_counter_and_the_query_increment_are_right_at_every_step() {
    for seed in 0..4000 {
        let mut dice = Dice(seed);
        let scene = Scene::random(&mut dice);
        let counter = scene.counter();
        let lag = counter.lag();
        let query = |point| {
            let increment = counter.query_increment(point);
            assert!(increment.is_some_and(|it| lag.contains(&it)), "seed {seed}");
            increment
        };
        let mut walk = Walk::new(&scene, counter.increments(), &query);
        if let Err(wrong) = walk.go(150, &mut dice) {
            panic!("seed {seed}: {wrong:?}");
        }
    }
}

/// Ways to spoil what the probes add and what queries add; each must be noticed.
#[test]
fn a_wrong_increment_is_noticed() {
    let mut noticed = [0; 3];
    const TRIALS: usize = 1000;
    for seed in 0..TRIALS {
        for (way, noticed) in noticed.iter_mut().enumerate() {
            let mut dice = Dice(seed as u64);
            let scene = Scene::random(&mut dice);
            let counter = scene.counter();
            let mut increments = counter.increments().to_vec();
            let spoilt = dice.below(increments.len());
            match way {
                0 => increments[spoilt] += 1,
                1 => increments[spoilt] = 0,
                _ => {}
            }
            let query = |point| {
                let increment = counter.query_increment(point)?;
                Some(if way == 2 { -increment } else { increment })
            };
            let mut walk = Walk::new(&scene, &increments, &query);
            *noticed += usize::from(walk.go(150, &mut dice).is_err());
        }
    }
    // Not every probe runs in every walk, and some add nothing at all.
    assert!(noticed[0] > TRIALS * 4 / 5, "{noticed:?}");
    assert!(noticed[1] > TRIALS / 2, "{noticed:?}");
    assert!(noticed[2] > TRIALS * 9 / 10, "{noticed:?}");
}

/// The same probes with a counter each: what they say, weighted, is what one counter would.
#[test]
fn the_total_of_readings_is_that_of_recovered_counts() {
    for seed in 0..2000 {
        let mut dice = Dice(seed);
        let mut scene = Scene::random(&mut dice);
        // So a block that has begun has been counted.
        scene.probes.fill(0);
        let graph = &scene.routine.graph;
        let counter = scene.counter();
        let query = |point| counter.query_increment(point);
        let mut walk = Walk::new(&scene, counter.increments(), &query);
        walk.go(100, &mut dice).expect("every step is right");
        let read = |place: &Place| match place {
            Place::Block(block) => walk.counts.blocks[block.index()],
            Place::Edge(edge) => walk.counts.edges[edge.index()],
        };
        let readings = Readings(scene.plan.counters.iter().map(read).collect());
        let (visits, kept): (Vec<Visit>, Vec<i64>) = walk.dropped.iter().copied().unzip();
        assert_eq!(
            recover_with_visits(graph, &scene.plan, &readings, &visits).as_ref(),
            Ok(&walk.counts)
        );
        let total = counter.total(&readings).expect("as many as counters");
        let kept: i64 = kept.iter().sum();
        assert_eq!(total + i128::from(kept), i128::from(walk.truth));
    }
}

/// Counters at all places add what happens there, and are never behind by more than that.
#[test]
fn with_a_counter_everywhere_each_adds_its_own_events() {
    for seed in 0..500 {
        let scene = Scene::random(&mut Dice(seed));
        let graph = &scene.routine.graph;
        let blocks = (0..graph.blocks).map(|it| Place::Block(BlockId(it)));
        let edges = graph.edges().map(|(edge, _)| Place::Edge(edge));
        let plan = Plan {
            counters: blocks.chain(edges).collect(),
        };
        let counter = EventCounter::new(graph, &plan, &scene.weights).expect("solvable");
        let weights = scene.weights.blocks.iter().chain(&scene.weights.edges);
        let weights: Vec<i64> = weights.map(|it| i64::from(*it)).collect();
        assert_eq!(counter.increments(), weights);
        let most = weights.iter().max().copied().unwrap_or(0);
        assert_eq!(counter.lag(), -most..=most);
    }
}

fn edge(from: Option<u32>, to: Option<u32>) -> Edge {
    let node = |block: Option<u32>| block.map_or(Node::Outside, |it| Node::Block(BlockId(it)));
    Edge {
        from: node(from),
        to: node(to),
        kind: EdgeKind::Jump,
    }
}

/// The blocks of figure 1, and how many events each of them has: sums of such numbers tell which
/// were added.
const BLOCKS: [&str; 7] = ["P", "Q", "A", "B", "R", "C", "EXIT"];

fn events(name: &str) -> i64 {
    1 << (4 * block(name).0)
}

fn block(name: &str) -> BlockId {
    let found = BLOCKS.iter().position(|it| *it == name);
    BlockId(found.expect("a block of the figure") as u32)
}

/// Figure 1: a loop of P, Q, A or B, R and C, left from P or R. The edge from EXIT to P is two of
/// ours: out, and in again.
fn figure_1() -> (FlowGraph, EventCounter) {
    let edge = |from: &str, to: &str| edge(Some(block(from).0), Some(block(to).0));
    let chords = [
        edge("P", "EXIT"), // w
        edge("Q", "A"),    // x
        edge("Q", "B"),    // y
        edge("R", "EXIT"), // z
    ];
    let tree = [
        edge("P", "Q"),
        edge("A", "R"),
        edge("B", "R"),
        edge("R", "C"),
        edge("C", "P"),
        self::edge(Some(block("EXIT").0), None),
        self::edge(None, Some(block("P").0)),
    ];
    let graph = FlowGraph {
        blocks: BLOCKS.len() as u32,
        edges: [&chords[..], &tree[..]].concat(),
    };
    let plan = Plan {
        counters: (0..4).map(|it| Place::Edge(EdgeId(it))).collect(),
    };
    let weights = Weights {
        blocks: BLOCKS.map(|name| events(name) as u32).to_vec(),
        edges: vec![],
    };
    let counter = EventCounter::new(&graph, &plan, &weights).expect("solvable");
    (graph, counter)
}

fn query_increment_behind(counter: &EventCounter, name: &str) -> i64 {
    let point = Point::Block {
        block: block(name),
        events: events(name) as u32,
        probed: false,
    };
    counter.query_increment(point).expect("it is in the graph")
}

#[test]
fn figure_1_of_the_paper_increments_of_chords() {
    let [p, q, a, b, r, c, exit] = BLOCKS.map(events);
    let (_, counter) = figure_1();
    assert_eq!(
        counter.increments(),
        [
            p + exit,          // w
            p + q + a + r + c, // x
            p + q + b + r + c, // y
            -c + exit,         // z
        ]
    );
    // The path of the text: P -> Q -> A -> R -> EXIT.
    let readings = Readings(vec![0, 1, 0, 1]);
    assert_eq!(
        counter.total(&readings),
        Ok(i128::from(p + q + a + r + exit))
    );
}

#[test]
fn figure_1_of_the_paper_query_increments_of_vertices() {
    let [p, q, _, _, r, c, _] = BLOCKS.map(events);
    let (_, counter) = figure_1();
    let found = BLOCKS.map(|name| query_increment_behind(&counter, name));
    assert_eq!(found, [p, p + q, -r - c, -r - c, -c, 0, 0]);
}

#[test]
fn figure_5_of_the_paper_query_increment_of_b() {
    let (_, counter) = figure_1();
    let expected = -events("R") - events("C");
    assert_eq!(query_increment_behind(&counter, "B"), expected);
}

/// Section 4: B calls X. With the query increment added before the call and taken off behind it, a
/// query in X need not know of B.
#[test]
fn a_call_in_a_block_is_a_query_whose_answer_is_kept() {
    let [p, q, _, b, ..] = BLOCKS.map(events);
    let (_, counter) = figure_1();
    let behind_b = query_increment_behind(&counter, "B");
    let before_call = counter.increments()[2]; // y
    let in_callee = before_call + behind_b;
    assert_eq!(in_callee, p + q + b);
    assert_eq!(in_callee - behind_b, before_call);
}

#[test]
fn a_ring_without_probes_is_fine_if_nothing_happens_on_it() {
    let graph = FlowGraph {
        blocks: 1,
        edges: vec![
            edge(None, Some(0)),
            edge(Some(0), Some(0)),
            edge(Some(0), None),
        ],
    };
    let way_out = Place::Edge(EdgeId(2));
    let plan = Plan {
        counters: vec![way_out],
    };
    let on = |block, edges: [u32; 3]| Weights {
        blocks: vec![block],
        edges: edges.to_vec(),
    };
    let counter = EventCounter::new(&graph, &plan, &on(0, [2, 0, 3])).expect("solvable");
    assert_eq!(counter.increments(), [5]);
    for weights in [on(1, [0; 3]), on(0, [0, 1, 0])] {
        assert!(matches!(
            EventCounter::new(&graph, &plan, &weights),
            Err(Contradiction::Undetermined { .. })
        ));
    }
}

#[test]
fn what_the_graph_does_not_have_is_refused_by_name() {
    let (graph, counter) = figure_1();
    let elsewhere = BlockId(7);
    let at = |counters: &[Place]| Plan {
        counters: counters.to_vec(),
    };
    let refusal = |plan| EventCounter::new(&graph, &plan, &Weights::default()).err();
    let place = Place::Block(elsewhere);
    assert_eq!(
        refusal(at(&[place])),
        Some(Contradiction::NoSuchPlace { place })
    );
    let place = Place::Edge(EdgeId(1));
    assert_eq!(
        refusal(at(&[place, place])),
        Some(Contradiction::CountedTwice { place })
    );
    let point = Point::Block {
        block: elsewhere,
        events: 0,
        probed: false,
    };
    assert_eq!(counter.query_increment(point), None);
    assert_eq!(
        counter.total(&Readings(vec![1])),
        Err(Contradiction::WrongNumber {
            counters: 4,
            readings: 1,
        })
    );
}
