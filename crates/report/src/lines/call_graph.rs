//! Who calls whom, as the source is written and as code tells.

use super::evidence::{Called, Entered, Evidence, Place};
use headcount_model::{FileId, SourceFlows, SourceFunction};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A function of the source: its file, and its number there.
pub type At = (FileId, usize);

/// A call by name, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub caller: At,
    pub place: (u32, u32),
    pub block: Option<u32>,
}

/// Calls that belong together: those of one block, or where that is not known, of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Together {
    Block(At, u32),
    Line(FileId, u32),
}

/// The functions of a module's sources, and all that is known of their calls.
pub struct CallGraph<'a> {
    sources: &'a SourceFlows,
    /// The calls of each, as they are written.
    written: HashMap<At, Vec<Written>>,
    /// The copies of each, and its own code.
    entered: HashMap<At, Vec<&'a Entered>>,
    /// The instructions that call each.
    called: HashMap<At, Vec<&'a Called>>,
    /// What was compiled.
    used: HashSet<At>,
}

impl<'a> CallGraph<'a> {
    pub fn new(sources: &'a SourceFlows, evidence: &'a Evidence) -> Self {
        let mut graph = Self {
            sources,
            written: written(sources),
            entered: HashMap::new(),
            called: HashMap::new(),
            used: HashSet::new(),
        };
        for (file, found) in evidence {
            for entered in &found.entered {
                if let Some(at) = graph.holder(*file, entered.line) {
                    graph.entered.entry(at).or_default().push(entered);
                }
            }
            for called in &found.called {
                if let Some(at) = graph.holder(*file, called.line) {
                    graph.called.entry(at).or_default().push(called);
                }
            }
        }
        graph.leave_out_unused(evidence);
        graph
    }

    pub fn function(&self, at: At) -> &'a SourceFunction {
        &self.sources.functions[&at.0][at.1]
    }

    /// All functions, by file and line.
    fn functions(&self) -> impl Iterator<Item = At> + 'a {
        let all = self.sources.functions.iter();
        all.flat_map(|(file, it)| (0..it.len()).map(|number| (*file, number)))
    }

    pub fn written(&self, at: At) -> &[Written] {
        self.written.get(&at).map_or(&[], Vec::as_slice)
    }

    pub fn entered(&self, at: At) -> &[&'a Entered] {
        self.entered.get(&at).map_or(&[], Vec::as_slice)
    }

    pub fn called(&self, at: At) -> &[&'a Called] {
        self.called.get(&at).map_or(&[], Vec::as_slice)
    }

    /// Whether it was compiled: it has code, or somebody who has calls it.
    pub fn is_used(&self, at: At) -> bool {
        self.used.contains(&at)
    }

    /// The function that has a line.
    pub fn holder(&self, file: FileId, line: u32) -> Option<At> {
        let functions = self.sources.functions.get(&file)?;
        let after = functions.partition_point(|it| it.line <= line);
        let number = after.checked_sub(1)?;
        (line <= functions[number].last_line).then_some((file, number))
    }

    /// The calls that one at a place belongs to.
    pub fn together(&self, file: FileId, place: (u32, u32)) -> Together {
        let at = self.holder(file, place.0);
        let block = at.and_then(|at| {
            let function = self.function(at);
            let block = function.block_at(place.0, place.1);
            block.filter(|_| !function.is_vague(place))
        });
        match at.zip(block) {
            Some((at, block)) => Together::Block(at, block),
            None => Together::Line(file, place.0),
        }
    }

    /// All functions; callers before what they call, but for recursion.
    pub fn callers_first(&self) -> Vec<At> {
        let mut order = Vec::new();
        let mut begun: HashSet<At> = HashSet::new();
        for root in self.functions() {
            if !begun.insert(root) {
                continue;
            }
            let mut path = vec![(root, 0)];
            while let Some((at, next)) = path.last_mut() {
                match self.written(*at).get(*next).map(|it| it.caller) {
                    Some(caller) => {
                        *next += 1;
                        if begun.insert(caller) {
                            path.push((caller, 0));
                        }
                    }
                    None => {
                        order.push(*at);
                        path.pop();
                    }
                }
            }
        }
        order
    }

    /// What has no code, and is called by nobody who has, was not compiled at all: its calls are none.
    fn leave_out_unused(&mut self, evidence: &Evidence) {
        let mut calls: HashMap<At, Vec<At>> = HashMap::new();
        for (callee, written) in &self.written {
            for it in written {
                calls.entry(it.caller).or_default().push(*callee);
            }
        }
        let has_code = |at: &At| {
            let places = evidence.get(&at.0).map(|it| &it.places);
            let own = Place::all_of(self.function(*at));
            let has_places = places.is_some_and(|it| it.range(own).next().is_some());
            has_places || self.entered.contains_key(at) || self.called.contains_key(at)
        };
        let mut waiting: Vec<At> = self.functions().filter(has_code).collect();
        self.used = waiting.iter().copied().collect();
        while let Some(at) = waiting.pop() {
            for callee in calls.get(&at).into_iter().flatten() {
                if self.used.insert(*callee) {
                    waiting.push(*callee);
                }
            }
        }
        for written in self.written.values_mut() {
            written.retain(|it| self.used.contains(&it.caller));
        }
    }

    /// How often blocks were executed, by function, as calls tell. A block that calls something was
    /// executed as often as the call was, if no such call of the same function was inlined, or left
    /// out, or merged with another.
    pub fn executed(&self) -> HashMap<At, Vec<(u32, u64)>> {
        let mut executed: HashMap<At, Vec<(u32, u64)>> = HashMap::new();
        for callee in self.called.keys() {
            for (caller, blocks) in self.clear_calls(*callee) {
                let counts = blocks.into_iter().map(|(block, it)| (block, it.each()));
                executed.entry(caller).or_default().extend(counts);
            }
        }
        executed
    }

    /// The calls of a function, by caller and block, of which code and source tell the same number.
    fn clear_calls(&self, callee: At) -> HashMap<At, BTreeMap<u32, InBlock>> {
        let mut found: HashMap<At, BTreeMap<u32, InBlock>> = HashMap::new();
        let mut unclear: HashSet<At> = HashSet::new();
        for called in self.called(callee) {
            if let Together::Block(caller, block) = self.together(called.from.0, called.from.1) {
                if called.is_part {
                    unclear.insert(caller);
                }
                let known = found.entry(caller).or_default().entry(block).or_default();
                known.count = known.count.saturating_add(called.count);
            }
        }
        let copies = self.entered(callee).iter().filter(|it| !it.is_part);
        for call in copies.filter_map(|it| it.call) {
            if let Together::Block(caller, _) = self.together(call.0, call.1) {
                unclear.insert(caller);
            }
        }
        for written in self.written(callee) {
            let known = match self.together(written.caller.0, written.place) {
                Together::Block(_, block) => found
                    .get_mut(&written.caller)
                    .and_then(|it| it.get_mut(&block)),
                Together::Line(..) => None,
            };
            match known {
                Some(known) => known.written += 1,
                None => _ = unclear.insert(written.caller),
            }
        }
        found.retain(|caller, blocks| {
            !unclear.contains(caller) && blocks.values().all(InBlock::is_even)
        });
        found
    }
}

/// Calls of one function in one block.
#[derive(Clone, Copy, Default)]
struct InBlock {
    /// How often instructions called.
    count: u64,
    /// How many calls are written.
    written: u64,
}

impl InBlock {
    fn is_even(&self) -> bool {
        self.written > 0 && self.count.is_multiple_of(self.written)
    }

    fn each(self) -> u64 {
        self.count / self.written.max(1)
    }
}

/// All calls by name. One of the same file is meant, if there is one.
fn written(sources: &SourceFlows) -> HashMap<At, Vec<Written>> {
    let mut named: HashMap<&str, Vec<At>> = HashMap::new();
    for (file, functions) in &sources.functions {
        for (number, function) in functions.iter().enumerate() {
            named
                .entry(&function.name)
                .or_default()
                .push((*file, number));
        }
    }
    let mut written: HashMap<At, Vec<Written>> = HashMap::new();
    for (file, functions) in &sources.functions {
        for (number, function) in functions.iter().enumerate() {
            for call in &function.calls {
                let all = named.get(call.name.as_str()).map_or(&[][..], Vec::as_slice);
                let has_own = all.iter().any(|it| it.0 == *file);
                for callee in all.iter().filter(|it| !has_own || it.0 == *file) {
                    written.entry(*callee).or_default().push(Written {
                        caller: (*file, number),
                        place: call.place,
                        block: call.block,
                    });
                }
            }
        }
    }
    written
}
