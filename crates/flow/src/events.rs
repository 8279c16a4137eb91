//! What must each probe add to one counter, so that it counts events?
//!
//! The method is Ball's (1994, sections 3 and 4). Every joint of the net has a *lead*: by how much
//! the true number of events is ahead of the counter when control is there. Outside it is 0. Along
//! a pipe without a probe the counter stands still, so the lead grows by the pipe's events; that
//! tells the leads of all joints, in one walk of the tree. A pipe with a probe joins two leads that
//! are known, and what its probe adds is what is missing between them.
//!
//! The paper finds the same numbers by adding up fundamental cycles: the lead of a joint is its
//! query increment.

use std::ops::RangeInclusive;

use headcount_model::{BlockId, EdgeId, EventPlan, FlowGraph, Place, Plan, Readings};

use crate::Contradiction;
use crate::groups::Groups;
use crate::net::{Net, OUTSIDE};
use crate::recovery::{pipes_of, same_number};

/// How many events happen each time a place runs. A place without a number has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// One number a block.
    pub blocks: Vec<u32>,
    /// One number an edge: branches taken, say.
    pub edges: Vec<u32>,
}

/// Where control is, and what it has done of the place it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// In another function, be it a caller or a callee.
    Outside,
    /// In a block, before or behind any of its instructions.
    Block {
        /// The block.
        block: BlockId,
        /// How many of the block's events have happened in this visit.
        events: u32,
        /// Whether the probe of the block has run in this visit; `false` if it has none.
        probed: bool,
    },
    /// On the way along an edge. Its events have happened.
    Edge {
        /// The edge.
        edge: EdgeId,
        /// Whether the probe of the edge has run; `false` if it has none.
        probed: bool,
    },
}

/// One counter for all events of a function, kept by the probes of a plan.
///
/// Whenever control is outside, the counter is exact. Anywhere else it is exact once
/// [`query_increment`](Self::query_increment) is added, which changes nothing: the next query finds the
/// counter as it was.
///
/// Several functions may share the counter: each is outside of all others. A call in the midst of a
/// block, and a function that is left by no edge (by `longjmp`, an exception, the death of its thread),
/// are queries whose answer is kept: whoever leaves adds the query increment of the point to the
/// counter, and whoever comes back takes it off.
#[derive(Debug)]
pub struct EventCounter {
    net: Net,
    /// Events of each pipe.
    weights: Vec<u32>,
    /// By how much the true number is ahead of the counter at each joint. No sum of u32s over a graph
    /// that fits in memory overflows it.
    leads: Vec<i64>,
    increments: Vec<i64>,
}

impl EventCounter {
    /// What the probes of a plan must add. A ring of places without a probe is allowed if no event
    /// happens on it.
    pub fn new(graph: &FlowGraph, plan: &Plan, weights: &Weights) -> Result<Self, Contradiction> {
        let net = Net::new(graph)?;
        let pipes = pipes_of(plan, &net)?;
        let weights = weights_of_pipes(graph, weights);
        let mut has_probe = vec![false; net.pipes.len()];
        for &pipe in &pipes {
            has_probe[pipe] = true;
        }
        let leads = leads(&net, &weights, &has_probe)?;
        let mut counter = Self {
            net,
            weights,
            leads,
            increments: Vec::new(),
        };
        counter.increments = pipes.iter().map(|&pipe| counter.increment(pipe)).collect();
        Ok(counter)
    }

    /// What each probe of the plan adds to the counter, in the plan's order. A probe that adds 0 need
    /// not be there.
    pub fn increments(&self) -> &[i64] {
        &self.increments
    }

    /// The same for whoever makes the probes; `None` if a number is too large for an instruction.
    pub fn plan(&self) -> Option<EventPlan> {
        let small = |it: i64| i32::try_from(it).ok();
        let blocks = self.net.blocks();
        let leads = blocks.map(|pipe| small(self.leads[self.net.pipes[pipe].from]));
        Some(EventPlan {
            increments: self
                .increments
                .iter()
                .map(|it| small(*it))
                .collect::<Option<_>>()?,
            leads: leads.collect::<Option<_>>()?,
        })
    }

    /// How many events there were, where the probes kept a counter each as the plan has it, and
    /// control is outside.
    pub fn total(&self, readings: &Readings) -> Result<i128, Contradiction> {
        same_number(self.increments.len(), readings)?;
        let pairs = self.increments.iter().zip(&readings.0);
        Ok(pairs
            .map(|(&by, &times)| i128::from(by) * i128::from(times))
            .sum())
    }

    /// What must be added to the counter to get the true number of events at a point; `None` if the
    /// graph has no such point.
    pub fn query_increment(&self, point: Point) -> Option<i64> {
        let (place, events, probed) = match point {
            Point::Outside => return Some(0),
            Point::Block {
                block,
                events,
                probed,
            } => (Place::Block(block), Some(events), probed),
            Point::Edge { edge, probed } => (Place::Edge(edge), None, probed),
        };
        let pipe = self.net.pipe(place)?;
        let happened = events.unwrap_or(self.weights[pipe]);
        let counted = if probed { self.increment(pipe) } else { 0 };
        Some(self.leads[self.net.pipes[pipe].from] + i64::from(happened) - counted)
    }

    /// The smallest and the largest query increment of the function, wherever in its block a probe
    /// stands.
    pub fn lag(&self) -> RangeInclusive<i64> {
        let (mut least, mut most) = (0, 0);
        for (pipe, &weight) in self.weights.iter().enumerate() {
            let begin = self.leads[self.net.pipes[pipe].from];
            let counted = self.increment(pipe);
            least = least.min(begin).min(begin - counted);
            most = most.max(begin.max(begin - counted) + i64::from(weight));
        }
        least..=most
    }

    /// What is missing between the leads at the two ends of a pipe: nothing, if it has no probe.
    fn increment(&self, pipe: usize) -> i64 {
        let ends = self.net.pipes[pipe];
        self.leads[ends.from] + i64::from(self.weights[pipe]) - self.leads[ends.to]
    }
}

fn weights_of_pipes(graph: &FlowGraph, weights: &Weights) -> Vec<u32> {
    let mut pipes = weights.blocks.clone();
    pipes.resize(graph.blocks as usize, 0);
    pipes.extend(&weights.edges);
    pipes.resize(graph.blocks as usize + graph.edges.len(), 0);
    pipes
}

/// The leads of all joints. Those that pipes without probes do not connect with the outside may have
/// any; the first of each such part has 0.
fn leads(net: &Net, weights: &[u32], has_probe: &[bool]) -> Result<Vec<i64>, Contradiction> {
    let ends = (0..net.pipes.len()).flat_map(|pipe| {
        let free = !has_probe[pipe];
        let ends = net.pipes[pipe];
        [ends.from, ends.to].map(|end| free.then_some(end))
    });
    // Every pipe has two ends.
    let at = Groups::new(net.joints, ends);
    let mut leads: Vec<Option<i64>> = vec![None; net.joints];
    let mut to_visit = Vec::new();
    for first in OUTSIDE..net.joints {
        if leads[first].is_none() {
            leads[first] = Some(0);
            to_visit.push((first, 0));
        }
        while let Some((joint, lead)) = to_visit.pop() {
            for pipe in at.of(joint).iter().map(|end| end / 2) {
                let ends = net.pipes[pipe];
                let events = i64::from(weights[pipe]);
                let (other, expected) = match ends.from == joint {
                    true => (ends.to, lead + events),
                    false => (ends.from, lead - events),
                };
                match leads[other] {
                    Some(known) if known == expected => {}
                    Some(_) => {
                        let place = net.place(pipe);
                        return Err(Contradiction::Undetermined { place });
                    }
                    None => {
                        leads[other] = Some(expected);
                        to_visit.push((other, expected));
                    }
                }
            }
        }
    }
    Ok(leads.into_iter().flatten().collect())
}
