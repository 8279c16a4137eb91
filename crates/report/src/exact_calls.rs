//! What calls cost, where a run was asked for it (`run --calls`): exact.
//!
//! Costs are kept by routine and return address; here they are found by function and call site.
//! A jump to another function has no return address: where several of one function lead to the same
//! one, their cost is shared by how often each did.

use crate::callees::{Callee, FindTransfers, FunctionId, Site, places};
use crate::count::Count;
use crate::names::Named;
use headcount_model::{
    Block, CallCosts, CalledFunction, Counted, FileId, Frame, Function, LinkAddr, SampledModule,
    SampledThread, Samples, Site as SampledSite, Stack,
};
use std::collections::{BTreeMap, HashMap};

/// What stands for a thread: the stacks of all of them are together.
const INSTRUCTIONS: &str = "instructions";

/// Calls, and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSum {
    /// How many.
    pub calls: u64,
    /// What they cost with all that was called from there.
    pub inclusive: u64,
}

impl CallSum {
    fn add(&mut self, calls: u64, inclusive: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.inclusive = self.inclusive.saturating_add(inclusive);
    }
}

/// A function in one calling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallingContext {
    /// The context it was called from; `None` for the first one only.
    pub parent: Option<u32>,
    /// `None` for the first one, and if nobody knows the function.
    pub function: Option<FunctionId>,
    /// How many instructions it executed itself.
    pub executed: u64,
}

/// By callee.
type Sums = BTreeMap<FunctionId, CallSum>;

/// What the calls of some runs cost.
pub struct ExactCalls<'a> {
    costs: &'a [CallCosts],
    /// The functions of each run, as far as they are known.
    functions: Vec<Vec<Option<FunctionId>>>,
    inclusive: HashMap<FunctionId, u64>,
    /// By module and return address.
    sites: HashMap<(usize, LinkAddr), Sums>,
    /// What functions jumped to, or what else ran on their behalf.
    jumps: HashMap<FunctionId, Sums>,
    /// What nobody called.
    pub entered: Sums,
    /// The modules, by build.
    modules: HashMap<String, usize>,
}

impl<'a> ExactCalls<'a> {
    /// `None` if no run was asked for it.
    pub fn new(counted: &[Counted], costs: &'a [CallCosts]) -> Option<Self> {
        let places = Places::of(counted);
        let functions = costs.iter().map(|costs| places.functions(costs));
        let mut exact = Self {
            costs,
            functions: functions.collect(),
            inclusive: HashMap::new(),
            sites: HashMap::new(),
            jumps: HashMap::new(),
            entered: Sums::new(),
            modules: (0..)
                .zip(counted)
                .map(|(number, it)| (it.module.build_id.clone(), number))
                .collect(),
        };
        for number in 0..costs.len() {
            exact.add(number);
        }
        (!costs.is_empty()).then_some(exact)
    }

    fn add(&mut self, number: usize) {
        let (costs, functions) = (&self.costs[number], &self.functions[number]);
        for (it, id) in costs.functions.iter().zip(functions) {
            if let Some(id) = id {
                let sum = self.inclusive.entry(*id).or_default();
                *sum = sum.saturating_add(it.inclusive);
            }
        }
        for edge in &costs.edges {
            let Some(callee) = functions[edge.callee as usize] else {
                continue;
            };
            let caller = edge.caller.and_then(|it| functions[it as usize]);
            let sums = match (caller, edge.site) {
                (Some((module, _)), Some(back)) => self.sites.entry((module, back)).or_default(),
                (Some(caller), None) => self.jumps.entry(caller).or_default(),
                (None, _) => &mut self.entered,
            };
            let sum = sums.entry(callee).or_default();
            sum.add(edge.calls, edge.inclusive);
        }
    }

    /// The calling contexts of each run: which one it was called from, its function, and what it
    /// executed itself. Callers come first, and the first one is outside of all functions.
    pub fn contexts(&self) -> impl Iterator<Item = Vec<CallingContext>> {
        let all = self.costs.iter().zip(&self.functions);
        all.map(|(costs, functions)| {
            let contexts = costs.contexts.iter();
            let context = |it: &headcount_model::CallContext| CallingContext {
                parent: it.parent,
                function: it.parent.and_then(|_| {
                    let edge = costs.edges.get(it.edge as usize)?;
                    functions[edge.callee as usize]
                }),
                executed: it.executed,
            };
            contexts.map(context).collect()
        })
    }

    /// What a function cost, with all that it called.
    pub fn inclusive(&self, id: FunctionId) -> u64 {
        self.inclusive.get(&id).copied().unwrap_or(0)
    }

    /// The same for a function that has a name.
    pub fn of_function(&self, named: &Named<'_>) -> u64 {
        let module = self.modules.get(&named.module.build_id);
        module.map_or(0, |module| self.inclusive((*module, named.index)))
    }

    /// Adds to the calls and jumps of a function what they cost. What is called through a pointer has a
    /// call for every callee. Jumps through a pointer, and what ran on the function's behalf without a
    /// call of its own, such as a signal handler, are as if they were the function's one such jump, or
    /// had been called from where it begins.
    pub fn refine(&self, id: FunctionId, entry: LinkAddr, sites: Vec<Site>) -> Vec<Site> {
        let mut jumps = self.jumps.get(&id).cloned().unwrap_or_default();
        let mut refined = Vec::new();
        let mut elsewhere = Vec::new();
        let shares = shares(&sites);
        for site in sites {
            match (site.is_call, &site.callee) {
                (true, _) => self.refine_call(id.0, site, &mut refined),
                (false, Callee::Function(callee)) => {
                    let sum = self.jumps.get(&id).and_then(|it| it.get(callee));
                    let all = shares.get(callee).copied().unwrap_or(0);
                    let cost = sum.map(|it| part(it.inclusive, &site, all));
                    jumps.remove(callee);
                    refined.push(Site {
                        inclusive: Some(cost.unwrap_or(0)),
                        ..site
                    });
                }
                (false, _) => elsewhere.push(site),
            }
        }
        let from = match &elsewhere[..] {
            [only] => only.clone(),
            _ => jump_at(entry),
        };
        refined.extend(jumps.iter().map(|(callee, sum)| Site {
            callee: Callee::Function(*callee),
            count: Count::Exact(sum.calls),
            inclusive: Some(sum.inclusive),
            ..from.clone()
        }));
        let seen = jumps.values().map(|it| it.calls);
        refined.extend(rest(elsewhere, seen.fold(0, u64::saturating_add)));
        refined
    }

    fn refine_call(&self, module: usize, site: Site, refined: &mut Vec<Site>) {
        let Some(sums) = self.sites.get(&(module, site.next)) else {
            refined.push(site);
            return;
        };
        let is_known =
            |callee: &Callee| matches!(callee, Callee::Function(id) if sums.contains_key(id));
        if let [(_, only)] = sums.iter().collect::<Vec<_>>()[..]
            && matches!(site.callee, Callee::Function(_))
        {
            let inclusive = Some(only.inclusive);
            refined.push(Site { inclusive, ..site });
            return;
        }
        let mut rest = site.count.value();
        for (callee, sum) in sums {
            rest = rest.map(|it| it.saturating_sub(sum.calls));
            refined.push(Site {
                callee: Callee::Function(*callee),
                count: Count::Exact(sum.calls),
                inclusive: Some(sum.inclusive),
                ..site.clone()
            });
        }
        // Some may have led to code that is not counted.
        if let Some(rest @ 1..) = rest.filter(|_| !is_known(&site.callee)) {
            let count = Count::Exact(rest);
            refined.push(Site { count, ..site });
        }
    }

    /// The calling contexts as stacks: what was executed in each stands for samples.
    pub fn stacks(&self, counted: &[Counted], transfers: FindTransfers<'_>) -> Vec<Samples> {
        let all = self.costs.iter().zip(&self.functions);
        all.map(|(costs, functions)| {
            let mut stacks = Stacks {
                counted,
                transfers,
                samples: Samples::default(),
                sites: HashMap::new(),
                stacks: HashMap::new(),
            };
            stacks.add(costs, functions);
            stacks.samples
        })
        .collect()
    }
}

/// A jump from where a function begins.
fn jump_at(entry: LinkAddr) -> Site {
    Site {
        address: entry,
        next: entry,
        block: 0,
        index: 0,
        is_call: false,
        callee: Callee::Unknown,
        count: Count::Unknown,
        inclusive: None,
    }
}

/// Jumps of which so many are known to lead somewhere: what is left of them.
fn rest(sites: Vec<Site>, seen: u64) -> impl Iterator<Item = Site> {
    let mut seen = seen;
    sites.into_iter().filter_map(move |site| {
        let Count::Exact(count) = site.count else {
            return Some(site);
        };
        let known = count.min(seen);
        seen -= known;
        let is_left = count == 0 || known < count;
        is_left.then_some(Site {
            count: Count::Exact(count - known),
            ..site
        })
    })
}

/// How often the jumps of a function lead to each other one.
fn shares(sites: &[Site]) -> HashMap<FunctionId, u64> {
    let mut shares: HashMap<FunctionId, u64> = HashMap::new();
    for site in sites.iter().filter(|it| !it.is_call) {
        if let (Callee::Function(id), Some(count)) = (&site.callee, site.count.value()) {
            let sum = shares.entry(*id).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    shares
}

fn part(whole: u64, site: &Site, all: u64) -> u64 {
    let count = u128::from(site.count.value().unwrap_or(0));
    let part = u128::from(whole) * count / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Where the functions of all modules begin.
struct Places<'a> {
    modules: HashMap<&'a str, (usize, HashMap<LinkAddr, usize>)>,
}

impl<'a> Places<'a> {
    fn of(counted: &'a [Counted]) -> Self {
        let modules = counted.iter().enumerate().map(|(number, it)| {
            let functions = &it.module.functions;
            let places = places(functions);
            (it.module.build_id.as_str(), (number, places))
        });
        Self {
            modules: modules.collect(),
        }
    }

    fn functions(&self, costs: &CallCosts) -> Vec<Option<FunctionId>> {
        let function = |it: &CalledFunction| {
            let build = costs.builds.get(it.build as usize)?;
            let (module, places) = self.modules.get(build.as_str())?;
            Some((*module, *places.get(&it.start)?))
        };
        costs.functions.iter().map(function).collect()
    }
}

/// Contexts that become stacks.
struct Stacks<'a> {
    counted: &'a [Counted],
    transfers: FindTransfers<'a>,
    samples: Samples,
    sites: HashMap<(Option<FunctionId>, LinkAddr), u32>,
    stacks: HashMap<(Option<u32>, u32), u32>,
}

impl Stacks<'_> {
    fn add(&mut self, costs: &CallCosts, functions: &[Option<FunctionId>]) {
        let modules = self.counted.iter().map(|it| SampledModule {
            path: it.module.path.clone(),
            file_id: it.module.build_id.clone(),
        });
        (self.samples.interval, self.samples.is_counted) = (1, true);
        self.samples.modules = modules.collect();
        let mut executed = Vec::new();
        // The caller of each context, and its function.
        let mut known: Vec<(Option<u32>, Option<FunctionId>)> = Vec::new();
        for it in &costs.contexts {
            let edge = costs
                .edges
                .get(it.edge as usize)
                .filter(|_| it.parent.is_some());
            let function = edge.and_then(|it| functions[it.callee as usize]);
            let caller = match (it.parent, edge) {
                (Some(parent @ 1..), Some(edge)) => {
                    let (above, calling) = known[parent as usize];
                    // The return address is behind the call.
                    let back = edge.site.map(|at| LinkAddr(at.0.saturating_sub(1)));
                    Some(self.stack(above, calling, back))
                }
                _ => None,
            };
            known.push((caller, function));
            if it.executed > 0 {
                executed.push((self.stack(caller, function, None), it.executed));
            }
        }
        self.samples.threads.push(SampledThread {
            name: INSTRUCTIONS.to_owned(),
            samples: executed,
            ..SampledThread::default()
        });
    }

    /// A function that is called from a stack, at an address or where it begins.
    fn stack(
        &mut self,
        caller: Option<u32>,
        function: Option<FunctionId>,
        at: Option<LinkAddr>,
    ) -> u32 {
        let site = self.site(function, at);
        let all = &mut self.samples.stacks;
        *self.stacks.entry((caller, site)).or_insert_with(|| {
            all.push(Stack {
                caller,
                site,
                is_cut: false,
            });
            all.len() as u32 - 1
        })
    }

    fn site(&mut self, function: Option<FunctionId>, at: Option<LinkAddr>) -> u32 {
        let (counted, transfers) = (self.counted, self.transfers);
        let found = function.map(|(module, index)| {
            let it = &counted[module];
            (module, it, &it.module.functions[index])
        });
        let entry = found.map_or(LinkAddr(0), |it| it.2.address);
        let address = at.unwrap_or(entry);
        let all = &mut self.samples.sites;
        *self.sites.entry((function, address)).or_insert_with(|| {
            let frames = found.map(|(_, counted, function)| {
                let (file, line) =
                    line_at(counted, function, address, transfers).unwrap_or_default();
                Frame {
                    function: function.name.clone(),
                    file,
                    line,
                }
            });
            all.push(SampledSite {
                module: found.map(|it| it.0 as u32),
                address,
                function: Some(entry),
                frames: frames.into_iter().collect(),
            });
            all.len() as u32 - 1
        })
    }
}

/// The line of a call of a function, of which a byte is at an address; or that of the function itself.
fn line_at(
    counted: &Counted,
    function: &Function,
    at: LinkAddr,
    transfers: FindTransfers<'_>,
) -> Option<(String, u32)> {
    let name = |file: FileId| counted.module.files.get(file.index()).cloned();
    let of_call = || {
        let mut blocks = function.blocks.iter();
        let (file, line) = blocks.find_map(|it| line_in(it, at, transfers))?;
        Some((name(file)?, line))
    };
    let of_function = || {
        let (file, line) = function.source?;
        Some((name(file)?, line))
    };
    match at == function.address {
        true => of_function(),
        false => of_call().or_else(of_function),
    }
}

fn line_in(block: &Block, at: LinkAddr, transfers: FindTransfers<'_>) -> Option<(FileId, u32)> {
    let mut before = 0;
    for span in &block.code {
        let here = transfers(span);
        let end = span.address.0.saturating_add(span.bytes.len() as u64);
        if (span.address.0..end).contains(&at.0) {
            let mut calls = here.all.iter().rev();
            let call = calls.find(|it| it.address <= at)?;
            let mut first = block
                .instructions
                .saturating_sub(block.lines.iter().map(|it| it.instructions).sum());
            for run in &block.lines {
                let next = first + run.instructions;
                if (first..next).contains(&(before + call.index)) {
                    return (run.line != 0).then_some((run.file, run.line));
                }
                first = next;
            }
            return None;
        }
        before += here.instructions;
    }
    None
}
