//! Who called whom, how often, and what that cost with all that was called from there.
//!
//! Counts say how often each instruction called, not which path led there. So what a function cost, with
//! all it calls, is shared among its callers by how often each of them called it, as gprof does: an
//! estimate. Functions that call each other in a cycle have one cost. What was entered in ways that
//! nobody sees (through a pointer, from the kernel) is shared with the outside, so that nothing
//! is lost: the outside costs as much as everything together.
//!
//! Where a run was asked what its calls cost, that is taken instead, and is exact (`exact_calls.rs`).

use crate::Error;
use crate::callees::{Callee, Callees, FunctionId, Site};
use crate::exact_calls::ExactCalls;
use crate::names::{Named, functions, whole};
use crate::only::Only;
use crate::rows::{self, Tally};
use headcount_model::Counted;
use std::collections::HashMap;
use std::sync::Arc;

/// The functions that ran, and the calls between them.
pub struct CallGraph<'a> {
    pub nodes: Vec<Node<'a>>,
    /// All calls from one function to another together, by caller and callee.
    pub edges: Vec<Edge>,
    of_function: HashMap<FunctionId, usize>,
    of_pair: HashMap<(Option<usize>, usize), usize>,
}

/// A function that ran, with the parts that a compiler cut off it.
pub struct Node<'a> {
    /// The function itself, and then its parts.
    pub parts: Vec<(Named<'a>, Vec<Site>)>,
    /// Instructions that it executed itself.
    pub own: u64,
    /// How often it was entered.
    pub entered: u64,
    /// What it executed with all that it called: exactly, or an estimate.
    pub inclusive: u64,
    /// How many functions call each other in a cycle with it; 1 if it is alone.
    pub cycle: usize,
}

/// All calls of one function by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who calls; none, if that is not known.
    pub caller: Option<usize>,
    pub callee: usize,
    /// How often.
    pub count: u64,
    /// Whether nothing says so but that the callee ran: it had begun before anybody counted.
    pub is_assumed: bool,
    /// What that cost with all that was called from there: exactly, or an estimate.
    pub inclusive: u64,
}

impl<'a> Node<'a> {
    /// The function itself.
    pub fn named(&self) -> &Named<'a> {
        &self.parts[0].0
    }

    pub fn name(&self) -> Arc<str> {
        self.named().name.clone()
    }

    /// Its calls and jumps to others, with the part that they are in.
    pub fn sites(&self) -> impl Iterator<Item = (&Named<'a>, &Site)> {
        let parts = self.parts.iter();
        parts.flat_map(|(named, sites)| sites.iter().map(move |it| (named, it)))
    }
}

impl<'a> CallGraph<'a> {
    /// Of all functions that are wanted.
    pub fn new(
        counted: &'a [Counted],
        callees: &Callees<'a>,
        exact: Option<&ExactCalls<'_>>,
        only: &Only,
        demangle: bool,
    ) -> Result<Self, Error> {
        let mut graph = Self {
            nodes: Vec::new(),
            edges: Vec::new(),
            of_function: HashMap::new(),
            of_pair: HashMap::new(),
        };
        for (module, it) in counted.iter().enumerate() {
            graph.add_module(module, it, callees, exact, only, demangle)?;
        }
        graph.join();
        match exact {
            Some(exact) => graph.take(exact),
            None => graph.share(),
        }
        Ok(graph)
    }

    /// The node that a function belongs to, if it ran.
    pub fn node(&self, id: FunctionId) -> Option<usize> {
        self.of_function.get(&id).copied()
    }

    /// What a call of one function by another cost: exactly, or an estimate.
    pub fn cost(&self, caller: usize, callee: usize, site: &Site) -> u64 {
        let count = site.count.value().unwrap_or(0);
        let estimate = || self.inclusive(Some(caller), callee, count);
        site.inclusive.unwrap_or_else(estimate)
    }

    /// What so many of the calls of one function by another cost: an estimate.
    fn inclusive(&self, caller: Option<usize>, callee: usize, count: u64) -> u64 {
        let edge = self.of_pair.get(&(caller, callee));
        edge.map_or(0, |it| {
            let edge = &self.edges[*it];
            part(edge.inclusive, count, edge.count)
        })
    }

    /// For each function, the number of the cycle that it is in; alone, it has one of its own.
    pub fn cycles(&self) -> Vec<usize> {
        cycles(&self.calls())
    }

    /// What all functions executed.
    pub fn total(&self) -> u64 {
        let own = self.nodes.iter().map(|it| it.own);
        own.fold(0, u64::saturating_add)
    }

    fn add_module(
        &mut self,
        module: usize,
        counted: &'a Counted,
        callees: &Callees<'a>,
        exact: Option<&ExactCalls<'_>>,
        only: &Only,
        demangle: bool,
    ) -> Result<(), Error> {
        let ran = |it: &Named<'_>| it.blocks().any(|block| !block.count().is_never());
        let mut all = functions(counted, demangle);
        all.retain(|it| only.wants(it) && ran(it));
        let mut places: HashMap<&'a str, usize> = HashMap::new();
        // Functions come before the parts of them.
        all.sort_by_key(|it| whole(&it.function.name) != it.function.name);
        for named in all {
            let linkage: &'a str = &named.function.name;
            let id = (module, named.index);
            let sites = callees.sites(module, &named);
            let sites = match exact {
                Some(exact) => exact.refine(id, named.function.address, sites),
                None => sites,
            };
            let own = Tally::of(&named)?.executed.value().unwrap_or(0);
            let place = places.get(whole(linkage)).copied();
            let place = place
                .filter(|_| whole(linkage) != linkage)
                .unwrap_or_else(|| {
                    self.nodes.push(Node {
                        parts: Vec::new(),
                        own: 0,
                        entered: rows::calls(&named).value().unwrap_or(0),
                        inclusive: 0,
                        cycle: 1,
                    });
                    self.nodes.len() - 1
                });
            places.entry(linkage).or_insert(place);
            self.of_function.insert(id, place);
            let node = &mut self.nodes[place];
            node.own = node.own.checked_add(own).ok_or(Error::TooLarge)?;
            node.parts.push((named, sites));
        }
        Ok(())
    }

    /// Takes exact costs.
    fn take(&mut self, exact: &ExactCalls<'_>) {
        for (id, node) in &self.of_function {
            let node = &mut self.nodes[*node];
            // What a part of it cost is in what it cost itself.
            node.inclusive = node.inclusive.max(exact.inclusive(*id));
        }
        let mut costs: HashMap<(Option<usize>, usize), u64> = HashMap::new();
        for (caller, node) in self.nodes.iter().enumerate() {
            for (_, site) in node.sites() {
                if let (Callee::Function(id), Some(cost)) = (&site.callee, site.inclusive)
                    && let Some(callee) = self.node(*id)
                {
                    let sum = costs.entry((Some(caller), callee)).or_default();
                    *sum = sum.saturating_add(cost);
                }
            }
        }
        self.edges.retain(|it| it.caller.is_some());
        for edge in &mut self.edges {
            edge.inclusive = costs.get(&(edge.caller, edge.callee)).copied().unwrap_or(0);
        }
        let entered = exact.entered.iter();
        self.edges.extend(entered.filter_map(|(id, sum)| {
            Some(Edge {
                caller: None,
                callee: self.of_function.get(id).copied()?,
                count: sum.calls.max(1),
                is_assumed: sum.calls == 0,
                inclusive: sum.inclusive,
            })
        }));
    }

    /// Makes edges of call sites, and one from outside where that is all that is left.
    fn join(&mut self) {
        let mut counts: HashMap<(Option<usize>, usize), u64> = HashMap::new();
        for (caller, node) in self.nodes.iter().enumerate() {
            for (_, site) in node.sites() {
                let (Callee::Function(id), Some(count @ 1..)) = (&site.callee, site.count.value())
                else {
                    continue;
                };
                // Jumps between the parts of a function are its own affair.
                if let Some(callee) = self.node(*id).filter(|it| site.is_call || *it != caller) {
                    let sum = counts.entry((Some(caller), callee)).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
        }
        self.add_edges(counts);
    }

    fn add_edges(&mut self, mut counts: HashMap<(Option<usize>, usize), u64>) {
        let mut known: Vec<u64> = vec![0; self.nodes.len()];
        for ((_, callee), count) in &counts {
            known[*callee] = known[*callee].saturating_add(*count);
        }
        for (callee, node) in self.nodes.iter_mut().enumerate() {
            // Jumps into the middle of a function enter it as well.
            node.entered = node.entered.max(known[callee]);
            let unseen = node.entered - known[callee];
            if unseen > 0 {
                counts.insert((None, callee), unseen);
            }
        }
        let edge = |((caller, callee), count)| Edge {
            caller,
            callee,
            count,
            is_assumed: false,
            inclusive: 0,
        };
        self.edges = counts.into_iter().map(edge).collect();
        self.edges.sort_by_key(|it| (it.callee, it.caller));
        let places = self.edges.iter().enumerate();
        self.of_pair = places
            .map(|(place, it)| ((it.caller, it.callee), place))
            .collect();
    }

    /// Shares what each function cost among those who called it.
    fn share(&mut self) {
        let cycle = cycles(&self.calls());
        self.enter_all(&cycle);
        let number = cycle.iter().max().map_or(0, |it| it + 1);
        let mut cost: Vec<u64> = vec![0; number];
        let mut members = vec![0; number];
        for (node, cycle) in self.nodes.iter().zip(&cycle) {
            cost[*cycle] = cost[*cycle].saturating_add(node.own);
            members[*cycle] += 1;
        }
        let mut by_cycle: Vec<Vec<usize>> = vec![Vec::new(); number];
        for (place, edge) in self.edges.iter().enumerate() {
            by_cycle[cycle[edge.callee]].push(place);
        }
        // Whoever is called from elsewhere has a lower number: its cost is whole when it is shared.
        for (of, edges) in by_cycle.iter().enumerate() {
            let is_outer = |it: &&usize| {
                let caller = self.edges[**it].caller;
                caller.is_none_or(|caller| cycle[caller] != of)
            };
            let outer: Vec<usize> = edges.iter().filter(is_outer).copied().collect();
            let counts: Vec<u64> = outer.iter().map(|it| self.edges[*it].count).collect();
            for (place, share) in outer.iter().zip(shares(cost[of], &counts)) {
                let edge = &mut self.edges[*place];
                edge.inclusive = share;
                if let Some(caller) = edge.caller {
                    let cost = &mut cost[cycle[caller]];
                    *cost = cost.saturating_add(share);
                }
            }
        }
        for (place, node) in self.nodes.iter_mut().enumerate() {
            node.inclusive = cost[cycle[place]];
            node.cycle = members[cycle[place]];
        }
        // Within a cycle, only the function's own.
        for edge in &mut self.edges {
            if edge
                .caller
                .is_some_and(|it| cycle[it] == cycle[edge.callee])
            {
                let callee = &self.nodes[edge.callee];
                edge.inclusive = part(callee.own, edge.count, callee.entered);
            }
        }
    }

    /// A function, or a cycle of them, that nobody entered was entered before anybody counted.
    fn enter_all(&mut self, cycle: &[usize]) {
        let mut is_entered = vec![false; self.nodes.len()];
        for edge in &self.edges {
            let is_outer = |caller: usize| cycle[caller] != cycle[edge.callee];
            is_entered[cycle[edge.callee]] |= edge.caller.is_none_or(is_outer);
        }
        for (callee, cycle) in cycle.iter().enumerate() {
            if !std::mem::replace(&mut is_entered[*cycle], true) {
                self.of_pair.insert((None, callee), self.edges.len());
                self.edges.push(Edge {
                    caller: None,
                    callee,
                    count: 1,
                    is_assumed: true,
                    inclusive: 0,
                });
            }
        }
    }

    /// Whom each function calls.
    fn calls(&self) -> Vec<Vec<usize>> {
        let mut calls = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            if let Some(caller) = edge.caller {
                calls[caller].push(edge.callee);
            }
        }
        calls
    }
}

/// Such a part of something.
fn part(whole: u64, count: u64, of: u64) -> u64 {
    let part = u128::from(whole) * u128::from(count) / u128::from(of.max(count).max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Shares in proportion that add up to all of it.
pub fn shares(whole: u64, counts: &[u64]) -> Vec<u64> {
    let all: u128 = counts.iter().map(|it| u128::from(*it)).sum();
    let mut before = 0;
    let mut given = 0;
    let share = |count: &u64| {
        before += u128::from(*count);
        let until = u128::from(whole) * before / all.max(1);
        let share = until - std::mem::replace(&mut given, until);
        u64::try_from(share).unwrap_or(u64::MAX)
    };
    counts.iter().map(share).collect()
}

/// The cycles of a graph of calls (R. Tarjan, 1972), numbered so that who is called comes first. Without
/// recursion: call chains of real programs are deeper than our stack.
fn cycles(calls: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut cycle = vec![NONE; calls.len()];
    let mut number = vec![NONE; calls.len()];
    let mut lowest = vec![NONE; calls.len()];
    let (mut open, mut path) = (Vec::new(), Vec::new());
    let (mut next, mut cycles) = (0, 0);
    for start in 0..calls.len() {
        if number[start] == NONE {
            path.push((start, 0));
        }
        while let Some((node, done)) = path.last_mut() {
            let node = *node;
            if *done == 0 && number[node] == NONE {
                (number[node], lowest[node]) = (next, next);
                next += 1;
                open.push(node);
            }
            if let Some(callee) = calls[node].get(*done) {
                *done += 1;
                if number[*callee] == NONE {
                    path.push((*callee, 0));
                } else if cycle[*callee] == NONE {
                    lowest[node] = lowest[node].min(number[*callee]);
                }
                continue;
            }
            path.pop();
            if let Some((caller, _)) = path.last() {
                lowest[*caller] = lowest[*caller].min(lowest[node]);
            }
            if lowest[node] == number[node] {
                while let Some(member) = open.pop() {
                    cycle[member] = cycles;
                    if member == node {
                        break;
                    }
                }
                cycles += 1;
            }
        }
    }
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of functions that cost and were entered so often, with calls between them.
    fn graph(costs: &[(u64, u64)], calls: &[(usize, usize, u64)]) -> CallGraph<'static> {
        let node = |(own, entered): &(u64, u64)| Node {
            parts: Vec::new(),
            own: *own,
            entered: *entered,
            inclusive: 0,
            cycle: 1,
        };
        let mut counts = HashMap::new();
        for (caller, callee, count) in calls {
            counts.insert((Some(*caller), *callee), *count);
        }
        let mut graph = CallGraph {
            nodes: costs.iter().map(node).collect(),
            edges: Vec::new(),
            of_function: HashMap::new(),
            of_pair: HashMap::new(),
        };
        graph.add_edges(counts);
        graph.share();
        graph
    }

    fn cost(graph: &CallGraph<'_>, caller: usize, callee: usize, count: u64) -> u64 {
        graph.inclusive(Some(caller), callee, count)
    }

    /// What the outside costs.
    fn root(graph: &CallGraph<'_>) -> u64 {
        let unseen = graph.edges.iter().filter(|it| it.caller.is_none());
        unseen.map(|it| it.inclusive).sum()
    }

    #[test]
    fn costs_are_shared_by_calls() {
        // 0 calls 1 three times and 2 once; 2 calls 1 once. 1 costs 40 in all, 10 a call.
        let graph = graph(
            &[(5, 1), (40, 4), (7, 1)],
            &[(0, 1, 3), (0, 2, 1), (2, 1, 1)],
        );
        assert_eq!(cost(&graph, 0, 1, 3), 30);
        assert_eq!(cost(&graph, 0, 1, 1), 10);
        assert_eq!(cost(&graph, 2, 1, 1), 10);
        assert_eq!(cost(&graph, 0, 2, 1), 17);
        assert_eq!((graph.nodes[0].inclusive, root(&graph)), (52, 52));
    }

    #[test]
    fn a_cycle_has_one_cost() {
        // 0 calls 1 once; 1 and 2 call each other, and 3 is called from there.
        let graph = graph(
            &[(1, 1), (10, 5), (20, 4), (6, 2)],
            &[(0, 1, 1), (1, 2, 4), (2, 1, 4), (2, 3, 2)],
        );
        assert_eq!(cost(&graph, 0, 1, 1), 36);
        assert_eq!(cost(&graph, 1, 2, 4), 20);
        assert_eq!((graph.nodes[1].cycle, graph.nodes[0].cycle), (2, 1));
        assert_eq!(root(&graph), 37);
    }

    #[test]
    fn what_was_entered_in_other_ways_is_shared_with_the_outside() {
        let graph = graph(&[(0, 1), (100, 4)], &[(0, 1, 1)]);
        assert_eq!(cost(&graph, 0, 1, 1), 25);
        assert_eq!(graph.inclusive(None, 1, 3), 75);
        assert_eq!(root(&graph), 100);
    }

    #[test]
    fn the_outside_costs_as_much_as_everything() {
        // Numbers that do not divide; calls that nobody sees; a cycle.
        let costs = [(7, 1), (101, 13), (13, 3), (997, 7), (3, 5)];
        let calls = [
            (0, 1, 5),
            (1, 2, 2),
            (2, 3, 3),
            (3, 2, 1),
            (1, 3, 2),
            (3, 4, 4),
            (0, 4, 1),
        ];
        let graph = graph(&costs, &calls);
        assert_eq!(root(&graph), costs.iter().map(|it| it.0).sum::<u64>());
    }

    #[test]
    fn what_was_entered_before_anybody_counted_is_not_lost() {
        let graph = graph(&[(10, 2), (20, 2)], &[(0, 1, 2), (1, 0, 2)]);
        assert_eq!(root(&graph), 30);
    }

    #[test]
    fn a_long_chain_takes_no_stack() {
        let costs = vec![(1, 1); 200_000];
        let calls: Vec<_> = (1..200_000).map(|it| (it - 1, it, 1)).collect();
        let graph = graph(&costs, &calls);
        assert_eq!(cost(&graph, 0, 1, 1), 199_999);
    }
}
