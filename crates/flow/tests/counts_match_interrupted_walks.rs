//! Recovery with visits against a twin that counts step by step: threads walk through routines, and
//! are interrupted, killed, moved and doubled on the way.

mod dice;
mod routines;

use dice::Dice;
use headcount_flow::{
    Contradiction, Visit, VisitPoint, frequencies, place_counters, recover, recover_with_visits,
};
use headcount_model::{
    BlockId, Edge, FlowGraph, GraphCounts, Node, Place, Plan, ProbeCosts, Readings,
};
use routines::{Routine, costs, random_routine};

/// The next instruction of a thread: block, and which one in it.
type Point = (usize, usize);

struct Walks<'a> {
    routine: &'a Routine,
    threads: Vec<Point>,
    counts: GraphCounts,
    visits: Vec<Visit>,
}

impl<'a> Walks<'a> {
    fn run(routine: &'a Routine, dice: &mut Dice) -> (GraphCounts, Vec<Visit>) {
        let mut walks = Self {
            routine,
            threads: Vec::new(),
            counts: GraphCounts {
                blocks: vec![0; routine.graph.blocks as usize],
                edges: vec![0; routine.graph.edges.len()],
            },
            visits: Vec::new(),
        };
        for _ in 0..dice.below(200) {
            walks.something_happens(dice);
        }
        // The program ends, wherever its threads are.
        while let Some(point) = walks.threads.pop() {
            walks.visit(point, -1);
        }
        (walks.counts, walks.visits)
    }

    fn something_happens(&mut self, dice: &mut Dice) {
        if self.threads.is_empty() {
            return self.take_an_edge(Node::Outside, dice);
        }
        let thread = dice.below(self.threads.len());
        match dice.below(24) {
            0 => self.take_an_edge(Node::Outside, dice),
            1 => {
                let killed = self.threads.swap_remove(thread);
                self.visit(killed, -1);
            }
            2 => {
                let elsewhere = self.anywhere(dice);
                let before = std::mem::replace(&mut self.threads[thread], elsewhere);
                self.visit(before, -1);
                self.visit(elsewhere, 1);
            }
            3 => {
                let doubled = self.threads[thread];
                self.threads.push(doubled);
                self.visit(doubled, 1);
            }
            _ => self.step(thread, dice),
        }
    }

    fn anywhere(&self, dice: &mut Dice) -> Point {
        let block = dice.below(self.routine.lengths.len());
        (block, dice.below(self.routine.lengths[block]))
    }

    fn step(&mut self, thread: usize, dice: &mut Dice) {
        let (block, index) = self.threads[thread];
        if index == 0 {
            self.counts.blocks[block] += 1;
        }
        if index + 1 < self.routine.lengths[block] {
            self.threads[thread].1 += 1;
        } else {
            self.threads.swap_remove(thread);
            self.take_an_edge(Node::Block(BlockId(block as u32)), dice);
        }
    }

    /// A thread goes by any edge, and is in the block at its end, if there is one.
    fn take_an_edge(&mut self, from: Node, dice: &mut Dice) {
        let edges = &self.routine.graph.edges;
        let ways: Vec<usize> = (0..edges.len())
            .filter(|way| edges[*way].from == from)
            .collect();
        let way = ways[dice.below(ways.len())];
        self.counts.edges[way] += 1;
        if let Node::Block(block) = edges[way].to {
            self.threads.push((block.index(), 0));
        }
    }

    fn visit(&mut self, (block, index): Point, delta: i64) {
        self.visits.push(Visit {
            block: BlockId(block as u32),
            at: match index {
                0 => VisitPoint::Entrance,
                _ => VisitPoint::Inside,
            },
            delta,
        });
    }
}

fn read(plan: &Plan, counts: &GraphCounts) -> Readings {
    let read = |place: &Place| match place {
        Place::Block(block) => counts.blocks[block.index()],
        Place::Edge(edge) => counts.edges[edge.index()],
    };
    Readings(plan.counters.iter().map(read).collect())
}

#[test]
fn recovery_agrees_with_interrupted_walks_counted_by_hand() {
    let mut mattered = 0;
    for seed in 0..6000 {
        let mut dice = Dice(seed);
        let routine = random_routine(&mut dice);
        let costs = costs(&mut dice, &routine.graph);
        let guess = frequencies(&routine.graph, &[]);
        let plan = place_counters(&routine.graph, &guess, &costs);
        let plan = plan.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let (truth, visits) = Walks::run(&routine, &mut dice);
        let readings = read(&plan, &truth);
        assert_eq!(
            recover_with_visits(&routine.graph, &plan, &readings, &visits).as_ref(),
            Ok(&truth),
            "seed {seed}"
        );
        mattered += usize::from(recover(&routine.graph, &plan, &readings) != Ok(truth));
    }
    assert!(mattered > 3000, "the test has lost its subject: {mattered}");
}

#[test]
fn with_a_counter_everywhere_a_visit_that_is_missing_is_noticed() {
    let mut noticed = 0;
    for seed in 0..2000 {
        let mut dice = Dice(seed);
        let routine = random_routine(&mut dice);
        let (truth, mut visits) = Walks::run(&routine, &mut dice);
        let blocks = (0..routine.graph.blocks).map(|it| Place::Block(BlockId(it)));
        let edges = routine.graph.edges().map(|(edge, _)| Place::Edge(edge));
        let plan = Plan {
            counters: blocks.chain(edges).collect(),
        };
        let readings = read(&plan, &truth);
        let Some(missing) = visits.pop() else {
            continue;
        };
        assert_eq!(
            recover_with_visits(&routine.graph, &plan, &readings, &visits),
            Err(Contradiction::Uneven {
                block: missing.block
            }),
            "seed {seed}"
        );
        noticed += 1;
    }
    assert!(noticed > 1000, "the test has lost its subject: {noticed}");
}

#[test]
fn a_visit_of_a_block_that_does_not_exist_is_refused() {
    let graph = FlowGraph {
        blocks: 1,
        edges: vec![],
    };
    let block = BlockId(1);
    let visit = Visit {
        block,
        at: VisitPoint::Entrance,
        delta: 1,
    };
    let answer = recover_with_visits(&graph, &Plan::default(), &Readings::default(), &[visit]);
    assert_eq!(answer, Err(Contradiction::NoSuchVisit { block }));
}

/// All that is left to a routine are the ways in, and the ways between its blocks.
#[test]
fn ways_out_need_no_probes_as_long_as_ways_in_can_have_them() {
    for seed in 0..4000 {
        let mut dice = Dice(seed);
        let graph = random_routine(&mut dice).graph;
        let bears_probes = |edge: &Edge| edge.to != Node::Outside;
        let costs = ProbeCosts {
            blocks: vec![None; graph.blocks as usize],
            edges: graph
                .edges
                .iter()
                .map(|edge| Some(10).filter(|_| bears_probes(edge)))
                .collect(),
        };
        let plan = place_counters(&graph, &frequencies(&graph, &[]), &costs);
        assert!(plan.is_ok(), "seed {seed}: {plan:?}");
    }
}
