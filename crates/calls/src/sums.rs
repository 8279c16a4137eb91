//! What several threads and processes executed, together.

use std::collections::HashMap;

use headcount_model::{CallContext, CallCosts, CallEdge, CalledFunction, LinkAddr};

use crate::Routine;
use crate::thread::{NOBODY, OUTSIDE, ThreadCalls};

/// Sums over threads.
#[derive(Clone, Debug)]
pub struct CallSums {
    costs: CallCosts,
    functions: HashMap<Routine, u32>,
    edges: HashMap<(Option<u32>, Option<LinkAddr>, u32), u32>,
    contexts: HashMap<(u32, u32), u32>,
}

impl Default for CallSums {
    fn default() -> Self {
        let contexts = vec![CallContext::default()];
        Self {
            costs: CallCosts {
                contexts,
                ..CallCosts::default()
            },
            functions: HashMap::new(),
            edges: HashMap::new(),
            contexts: HashMap::new(),
        }
    }
}

impl CallSums {
    /// Adds what a thread executed.
    pub fn add(&mut self, thread: &ThreadCalls) {
        let functions: Vec<u32> = thread
            .functions
            .iter()
            .map(|it| self.function(it))
            .collect();
        let edges = thread.edges.iter().map(|it| {
            let caller = (it.caller != NOBODY).then(|| functions[it.caller as usize]);
            let site = (it.site != 0).then_some(LinkAddr(it.site));
            let number = self.edge(caller, site, functions[it.callee as usize]);
            let edge = &mut self.costs.edges[number as usize];
            edge.calls = edge.calls.saturating_add(it.calls);
            edge.inclusive = edge.inclusive.saturating_add(it.inclusive);
            let callee = &mut self.costs.functions[edge.callee as usize];
            callee.calls = callee.calls.saturating_add(it.calls);
            number
        });
        let edges: Vec<u32> = edges.collect();
        let mut contexts = vec![OUTSIDE; thread.contexts.len()];
        for (number, it) in thread.contexts.iter().enumerate() {
            if it.parent != NOBODY {
                let parent = contexts[it.parent as usize];
                contexts[number] = self.context(parent, edges[it.edge as usize]);
            }
            let context = &mut self.costs.contexts[contexts[number] as usize];
            context.calls = context.calls.saturating_add(it.calls);
            context.executed = context.executed.saturating_add(it.executed);
        }
    }

    /// The sums; modules are known by these builds.
    pub fn costs(&self, builds: Vec<String>) -> CallCosts {
        let costs = self.costs.clone();
        CallCosts { builds, ..costs }
    }

    fn function(&mut self, it: &crate::thread::Function) -> u32 {
        let functions = &mut self.costs.functions;
        let number = *self.functions.entry(it.routine).or_insert_with(|| {
            functions.push(CalledFunction {
                build: it.routine.module,
                start: LinkAddr(it.routine.start),
                ..CalledFunction::default()
            });
            functions.len() as u32 - 1
        });
        let function = &mut functions[number as usize];
        function.inclusive = function.inclusive.saturating_add(it.inclusive);
        number
    }

    fn edge(&mut self, caller: Option<u32>, site: Option<LinkAddr>, callee: u32) -> u32 {
        let edges = &mut self.costs.edges;
        let number = self.edges.entry((caller, site, callee));
        *number.or_insert_with(|| {
            edges.push(CallEdge {
                caller,
                site,
                callee,
                ..CallEdge::default()
            });
            edges.len() as u32 - 1
        })
    }

    fn context(&mut self, parent: u32, edge: u32) -> u32 {
        let contexts = &mut self.costs.contexts;
        *self.contexts.entry((parent, edge)).or_insert_with(|| {
            contexts.push(CallContext {
                parent: Some(parent),
                edge,
                ..CallContext::default()
            });
            contexts.len() as u32 - 1
        })
    }
}
