//! What a call costs with all that is called from there: an estimate, after gprof.
//!
//! Counts say how often each call site called, not which path led there. So the cost of a function,
//! with all it calls, is shared among its callers by how often each of them called it. Functions
//! that call each other in a circle share one cost. What was entered in other ways (through a
//! pointer, from another module) keeps its share to itself.

/// A function: its own cost, how often it was entered, and whom it called how often.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub own: u64,
    pub entered: u64,
    pub calls: Vec<(usize, u64)>,
}

/// The cost of functions with all that they call.
pub struct Inclusive<'g> {
    graph: &'g [Node],
    /// The circle that each function is in; one that is in none is alone in its own.
    circle: Vec<usize>,
    cost: Vec<u128>,
    /// How often each circle was entered from outside of it.
    entered: Vec<u128>,
}

impl<'g> Inclusive<'g> {
    /// In time that follows the number of functions and calls.
    pub fn new(graph: &'g [Node]) -> Self {
        let circle = circles(graph);
        let number = circle.iter().max().map_or(0, |it| it + 1);
        let mut it = Self {
            graph,
            circle,
            cost: vec![0; number],
            entered: vec![0; number],
        };
        let mut members = vec![Vec::new(); number];
        for (node, circle) in it.circle.iter().enumerate() {
            members[*circle].push(node);
        }
        it.find_entries();
        // Whoever is called from elsewhere has a lower number.
        for (circle, members) in members.iter().enumerate() {
            for node in members {
                let node = &graph[*node];
                it.cost[circle] += u128::from(node.own);
                for (callee, calls) in &node.calls {
                    if it.circle[*callee] != circle {
                        it.cost[circle] += it.share(it.circle[*callee], *calls);
                    }
                }
            }
        }
        it
    }

    fn find_entries(&mut self) {
        for (node, circle) in self.graph.iter().zip(&self.circle) {
            self.entered[*circle] += u128::from(node.entered);
        }
        for (node, circle) in self.graph.iter().zip(&self.circle) {
            for (callee, calls) in &node.calls {
                if self.circle[*callee] == *circle {
                    let entered = &mut self.entered[*circle];
                    *entered = entered.saturating_sub(u128::from(*calls));
                }
            }
        }
    }

    /// What a call site cost that called so often, with all that was called from there.
    pub fn of_calls(&self, caller: usize, callee: usize, calls: u64) -> u64 {
        let circle = self.circle[callee];
        let cost = match circle == self.circle[caller] {
            false => self.share(circle, calls),
            // Within a circle, only the function's own.
            true => {
                let node = &self.graph[callee];
                let entered = u128::from(node.entered.max(calls).max(1));
                u128::from(node.own) * u128::from(calls) / entered
            }
        };
        u64::try_from(cost).unwrap_or(u64::MAX)
    }

    fn share(&self, circle: usize, calls: u64) -> u128 {
        let calls = u128::from(calls);
        let entered = self.entered[circle].max(calls).max(1);
        self.cost[circle].saturating_mul(calls) / entered
    }
}

/// The circles of a graph (R. Tarjan, 1972), numbered so that who is called comes first. Without
/// recursion: call chains of real programs are deeper than our stack.
fn circles(graph: &[Node]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut circle = vec![NONE; graph.len()];
    let mut number = vec![NONE; graph.len()];
    let mut lowest = vec![NONE; graph.len()];
    let (mut open, mut path) = (Vec::new(), Vec::new());
    let (mut next, mut circles) = (0, 0);
    for start in 0..graph.len() {
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
            if let Some((callee, _)) = graph[node].calls.get(*done) {
                *done += 1;
                if number[*callee] == NONE {
                    path.push((*callee, 0));
                } else if circle[*callee] == NONE {
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
                    circle[member] = circles;
                    if member == node {
                        break;
                    }
                }
                circles += 1;
            }
        }
    }
    circle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(own: u64, entered: u64, calls: &[(usize, u64)]) -> Node {
        Node {
            own,
            entered,
            calls: calls.to_vec(),
        }
    }

    #[test]
    fn costs_are_shared_by_calls() {
        // 0 calls 1 three times and 2 once; 2 calls 1 once. 1 costs 40 in all, 10 a call.
        let graph = [
            node(5, 1, &[(1, 3), (2, 1)]),
            node(40, 4, &[]),
            node(7, 1, &[(1, 1)]),
        ];
        let inclusive = Inclusive::new(&graph);
        assert_eq!(inclusive.of_calls(0, 1, 3), 30);
        assert_eq!(inclusive.of_calls(2, 1, 1), 10);
        assert_eq!(inclusive.of_calls(0, 2, 1), 17);
    }

    #[test]
    fn a_circle_has_one_cost() {
        // 0 calls 1 once; 1 and 2 call each other, and 3 is called from there.
        let graph = [
            node(1, 1, &[(1, 1)]),
            node(10, 5, &[(2, 4)]),
            node(20, 4, &[(1, 4), (3, 2)]),
            node(6, 2, &[]),
        ];
        let inclusive = Inclusive::new(&graph);
        assert_eq!(inclusive.of_calls(0, 1, 1), 36);
        assert_eq!(inclusive.of_calls(1, 2, 4), 20);
    }

    #[test]
    fn what_was_entered_in_other_ways_keeps_its_share() {
        let graph = [node(0, 1, &[(1, 1)]), node(100, 4, &[])];
        assert_eq!(Inclusive::new(&graph).of_calls(0, 1, 1), 25);
    }

    #[test]
    fn a_long_chain_takes_no_stack() {
        let mut graph: Vec<Node> = (1..200_000).map(|it| node(1, 1, &[(it, 1)])).collect();
        graph.push(node(1, 1, &[]));
        assert_eq!(Inclusive::new(&graph).of_calls(0, 1, 1), 199_999);
    }
}
