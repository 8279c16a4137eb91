//! How often will each block and edge run? A guess, from the shape of the graph alone.
//!
//! In the manner of Wu and Larus, "Static Branch Frequency and Program Profile Analysis" (MICRO
//! 1994), but in one pass: a loop runs [`ROUNDS`] times whenever it is entered, and what enters it
//! leaves it, in equal shares by each of its exits. Their way solves for the probability of
//! another round instead, which takes longer the deeper loops are nested, for a guess that is
//! hardly better.
//!
//! The factors are powers of two, so that equal guesses are equal numbers and ties are seen.

use headcount_model::{EdgeKind, FlowGraph, Node};

use crate::groups::{Groups, exists};
use crate::loops::Loops;

/// How often a loop runs when entered: the way back is taken with probability 7/8.
const ROUNDS: f64 = 8.0;
/// The probability of a branch into cold code, or into code that does not come back.
const UNLIKELY: f64 = 1.0 / 1024.0;
/// How often a call fails to come back. Not taken from the flow that does come back, so that the
/// block after the call is as frequent as the one before.
const LOST: f64 = 1.0 / 1_048_576.0;
/// How often control arrives in the middle, compared with the front door.
const ARRIVAL: f64 = 1.0 / 128.0;
/// What is never expected still has a frequency, so that the costs of probes matter there too.
const RAREST: f64 = 1.0 / 1_099_511_627_776.0;
const MOST_FREQUENT: f64 = 1_099_511_627_776.0;

/// How often each block and edge is expected to run; only the proportions matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frequencies {
    /// One frequency a block.
    pub blocks: Vec<f64>,
    /// One frequency an edge.
    pub edges: Vec<f64>,
}

/// Guesses how often each block and edge will run, for one call of the function.
///
/// `cold[block]` is a hint that the block lies in a cold section; hints that are missing are
/// taken as `false`. Whatever the graph, every frequency is a positive number.
pub fn frequencies(graph: &FlowGraph, cold: &[bool]) -> Frequencies {
    let leaving = Groups::leaving(graph);
    let loops = Loops::find(graph, &leaving);
    let unlikely = unlikely_blocks(graph, cold, &leaving);
    let kinds = judge_edges(graph, &loops, &unlikely);
    Flood::new(graph, &leaving, &loops, &kinds).run()
}

/// What a block's edges are to it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// A call that does not come back.
    Lost,
    /// Into cold or doomed code.
    Unlikely,
    /// Out of the loop with this head.
    Exit(usize),
    /// Any other.
    On,
}

/// The blocks that are cold, or from which every way leads to cold blocks or nowhere.
fn unlikely_blocks(graph: &FlowGraph, cold: &[bool], leaving: &Groups) -> Vec<bool> {
    let reaching = Groups::reaching(graph);
    let blocks = graph.blocks as usize;
    let mut ways_on: Vec<usize> = (0..blocks)
        .map(|block| {
            let survives = |&&edge: &&usize| graph.edges[edge].kind != EdgeKind::Lost;
            leaving.of(block).iter().filter(survives).count()
        })
        .collect();
    let mut unlikely: Vec<bool> = (0..blocks)
        .map(|block| ways_on[block] == 0 || cold.get(block) == Some(&true))
        .collect();
    let mut news: Vec<usize> = (0..blocks).filter(|&block| unlikely[block]).collect();
    while let Some(block) = news.pop() {
        for &edge in reaching.of(block) {
            let Node::Block(before) = graph.edges[edge].from else {
                continue;
            };
            if graph.edges[edge].kind == EdgeKind::Lost {
                continue;
            }
            let before = before.index();
            ways_on[before] -= 1;
            if ways_on[before] == 0 && !unlikely[before] {
                unlikely[before] = true;
                news.push(before);
            }
        }
    }
    unlikely
}

fn judge_edges(graph: &FlowGraph, loops: &Loops, unlikely: &[bool]) -> Vec<Way> {
    let judge = |edge: &headcount_model::Edge| {
        let to = match edge.to {
            Node::Block(block) => Some(block.index()),
            Node::Outside => None,
        };
        match edge.from {
            _ if edge.kind == EdgeKind::Lost => Way::Lost,
            _ if to.is_some_and(|to| unlikely[to]) => Way::Unlikely,
            Node::Block(from) => loops.left_by(from.index(), to).map_or(Way::On, Way::Exit),
            Node::Outside => Way::On,
        }
    };
    let whole = |edge: &headcount_model::Edge| exists(graph, edge.from) && exists(graph, edge.to);
    graph
        .edges
        .iter()
        .map(|edge| if whole(edge) { judge(edge) } else { Way::Lost })
        .collect()
}

/// The flow on its way from the entry through all blocks.
struct Flood<'a> {
    graph: &'a FlowGraph,
    leaving: &'a Groups,
    loops: &'a Loops,
    ways: &'a [Way],
    /// How many edges leave the loop of each head.
    exits: Vec<u32>,
    /// What came into each block by edges that are not edges back.
    inflow: Vec<f64>,
    found: Frequencies,
}

impl<'a> Flood<'a> {
    fn new(graph: &'a FlowGraph, leaving: &'a Groups, loops: &'a Loops, ways: &'a [Way]) -> Self {
        let blocks = graph.blocks as usize;
        let mut exits = vec![0; blocks];
        for way in ways {
            if let Way::Exit(head) = *way {
                exits[head] += 1;
            }
        }
        Self {
            graph,
            leaving,
            loops,
            ways,
            exits,
            inflow: vec![0.0; blocks],
            found: Frequencies {
                blocks: vec![RAREST; blocks],
                edges: vec![RAREST; graph.edges.len()],
            },
        }
    }

    fn run(mut self) -> Frequencies {
        for (number, edge) in self.graph.edges.iter().enumerate() {
            if edge.from == Node::Outside {
                let often = if edge.kind == EdgeKind::Arrival {
                    ARRIVAL
                } else {
                    1.0
                };
                self.send(number, often);
            }
        }
        for &block in &self.loops.order {
            let rounds = if self.loops.begins_at(block) {
                ROUNDS
            } else {
                1.0
            };
            let often = within_bounds(self.inflow[block] * rounds);
            self.found.blocks[block] = often;
            self.share_out(block, often);
        }
        self.found
    }

    /// Divides the flow through a block among its edges.
    fn share_out(&mut self, block: usize, often: f64) {
        let (mut unlikely, mut exits, mut on) = (0.0_f64, 0.0, 0.0);
        let mut wanted_by_exits = 0.0;
        for &edge in self.leaving.of(block) {
            match self.ways[edge] {
                Way::Lost => {}
                Way::Unlikely => unlikely += 1.0,
                Way::Exit(head) => {
                    exits += 1.0;
                    wanted_by_exits += self.share_of_exit(head);
                }
                Way::On => on += 1.0,
            }
        }
        let each_unlikely = if exits + on == 0.0 {
            often / unlikely.max(1.0)
        } else {
            often * UNLIKELY.min(0.5 / unlikely)
        };
        let likely = often - unlikely * each_unlikely;
        // A rarely entered block in a busy loop cannot give its exit an equal share.
        let for_exits = if on == 0.0 {
            likely
        } else {
            wanted_by_exits.min(likely / 2.0)
        };
        for &edge in self.leaving.of(block) {
            let flow = match self.ways[edge] {
                Way::Lost => often * LOST,
                Way::Unlikely => each_unlikely,
                Way::Exit(head) => for_exits * (self.share_of_exit(head) / wanted_by_exits),
                Way::On => (likely - for_exits) / on,
            };
            self.send(edge, flow);
        }
    }

    /// What one exit of a loop gets of all that came in.
    fn share_of_exit(&self, head: usize) -> f64 {
        within_bounds(self.inflow[head]) / f64::from(self.exits[head])
    }

    fn send(&mut self, number: usize, flow: f64) {
        self.found.edges[number] = within_bounds(flow);
        let edge = self.graph.edges[number];
        match (edge.from, edge.to) {
            (_, Node::Outside) => {}
            (_, to) if !exists(self.graph, to) => {}
            (Node::Block(from), Node::Block(to))
                if self.loops.goes_back(from.index(), to.index()) => {}
            (_, Node::Block(to)) => self.inflow[to.index()] += flow,
        }
    }
}

fn within_bounds(often: f64) -> f64 {
    often.clamp(RAREST, MOST_FREQUENT)
}

#[cfg(test)]
mod tests {
    use headcount_model::{BlockId, Edge};

    use super::*;

    const OUTSIDE: u32 = u32::MAX;

    fn graph(blocks: u32, edges: &[(u32, u32, EdgeKind)]) -> FlowGraph {
        let node = |block| match block {
            OUTSIDE => Node::Outside,
            block => Node::Block(BlockId(block)),
        };
        let edges = edges.iter().map(|&(from, to, kind)| Edge {
            from: node(from),
            to: node(to),
            kind,
        });
        FlowGraph {
            blocks,
            edges: edges.collect(),
        }
    }

    use EdgeKind::{Arrival, Entry, Fall, Jump, Leave, Lost, Taken};

    #[test]
    fn a_while_loop_runs_eight_rounds_and_ends_once() {
        let found = frequencies(
            &graph(
                4,
                &[
                    (OUTSIDE, 0, Entry),
                    (0, 1, Fall),
                    (1, 2, Fall),
                    (1, 3, Taken),
                    (2, 1, Jump),
                    (3, OUTSIDE, Leave),
                ],
            ),
            &[],
        );
        assert_eq!(found.blocks, [1.0, 8.0, 7.0, 1.0]);
        assert_eq!(found.edges, [1.0, 1.0, 7.0, 1.0, 7.0, 1.0]);
    }

    #[test]
    fn a_do_loop_in_a_do_loop_runs_sixty_four_rounds() {
        let found = frequencies(
            &graph(
                4,
                &[
                    (OUTSIDE, 0, Entry),
                    (0, 1, Fall),
                    (1, 1, Taken),
                    (1, 2, Fall),
                    (2, 0, Taken),
                    (2, 3, Fall),
                    (3, OUTSIDE, Leave),
                ],
            ),
            &[],
        );
        assert_eq!(found.blocks, [8.0, 64.0, 8.0, 1.0]);
        assert_eq!(found.edges, [1.0, 8.0, 56.0, 8.0, 7.0, 1.0, 1.0]);
    }

    #[test]
    fn what_enters_a_loop_leaves_it_by_all_its_exits() {
        // while (a) { if (b) break; } with two ways out.
        let found = frequencies(
            &graph(
                4,
                &[
                    (OUTSIDE, 0, Entry),
                    (0, 1, Fall),
                    (0, 3, Taken),
                    (1, 2, Fall),
                    (1, 3, Taken),
                    (2, 0, Jump),
                    (3, OUTSIDE, Leave),
                ],
            ),
            &[],
        );
        assert_eq!(found.blocks, [8.0, 7.5, 7.0, 1.0]);
    }

    #[test]
    fn a_cold_arm_and_an_arm_that_dies_are_unlikely() {
        let diamond = |last: EdgeKind| {
            graph(
                4,
                &[
                    (OUTSIDE, 0, Entry),
                    (0, 1, Fall),
                    (0, 2, Taken),
                    (1, 3, Fall),
                    (3, OUTSIDE, Leave),
                    (2, OUTSIDE, last),
                ],
            )
        };
        let even = frequencies(&diamond(Leave), &[]);
        assert_eq!(even.blocks, [1.0, 0.5, 0.5, 0.5]);
        let cold = frequencies(&diamond(Leave), &[false, false, true]);
        assert_eq!(cold.blocks[2], UNLIKELY);
        assert_eq!(cold.blocks[1] + cold.blocks[2], 1.0);
        let dies = frequencies(&diamond(Lost), &[]);
        assert_eq!(dies.blocks, cold.blocks);
    }

    #[test]
    fn a_call_that_may_be_lost_takes_nothing_from_the_way_on() {
        let found = frequencies(
            &graph(
                2,
                &[
                    (OUTSIDE, 0, Entry),
                    (0, OUTSIDE, Lost),
                    (0, 1, Fall),
                    (1, OUTSIDE, Leave),
                ],
            ),
            &[],
        );
        assert_eq!(found.blocks, [1.0, 1.0]);
        assert_eq!(found.edges[1], LOST);
    }

    #[test]
    fn a_landing_pad_is_rare_and_unreachable_code_is_rarer() {
        let found = frequencies(
            &graph(
                3,
                &[
                    (OUTSIDE, 0, Entry),
                    (0, OUTSIDE, Leave),
                    (OUTSIDE, 1, Arrival),
                    (1, OUTSIDE, Leave),
                    (2, 2, Jump),
                    (2, 1, Taken),
                ],
            ),
            &[],
        );
        assert_eq!(found.blocks, [1.0, ARRIVAL, RAREST]);
    }

    #[test]
    fn a_graph_that_makes_no_sense_has_frequencies_all_the_same() {
        let found = frequencies(
            &graph(
                1,
                &[
                    (OUTSIDE, 7, Entry),
                    (7, 0, Jump),
                    (0, 7, Jump),
                    (OUTSIDE, OUTSIDE, Leave),
                    (0, 0, Jump),
                ],
            ),
            &[true, true, true],
        );
        let all = found.blocks.iter().chain(&found.edges);
        assert!(all.clone().count() == 6 && all.copied().all(|often| often > 0.0));
    }
}
