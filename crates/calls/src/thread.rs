//! One thread: which activations are under way, and what they cost.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::aside::Aside;
use crate::{ARRIVAL_BYTES, Arrival, Code, Found, Routine};

/// The context outside of all functions.
pub const OUTSIDE: u32 = 0;

/// No function.
pub const NOBODY: u32 = u32::MAX;

/// A return takes the return address from the stack, and as much of the arguments at most.
const MOST_TAKEN: u64 = 256;

/// A thread has no more contexts than these; what is called from there on is a part of the last one.
const MOST_CONTEXTS: usize = 1 << 20;

/// How many calls are found without being looked for.
const KNOWN: usize = 1 << 12;

/// An activation.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The stack pointer with which it began.
    pub stack: u64,
    pub back: u64,
    /// What had been executed then.
    since: u64,
    function: u32,
    edge: u32,
    context: u32,
    how: How,
}

/// How an activation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Called,
    /// By a jump, in place of the one before it.
    InPlace,
    /// By a jump with something on the stack, by code that is not counted, or by a signal.
    Otherwise,
}

/// A function that ran.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub routine: Routine,
    pub inclusive: u64,
    /// How many of its activations are under way, and the context of the outermost one.
    depth: u32,
    context: u32,
}

/// Who called whom.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// Who: a function, or [`NOBODY`].
    pub caller: u32,
    /// Link address behind the call; 0 if there is none.
    pub site: u64,
    pub callee: u32,
    pub calls: u64,
    pub inclusive: u64,
    depth: u32,
}

/// A function in a context.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub parent: u32,
    pub edge: u32,
    pub calls: u64,
    pub executed: u64,
}

/// A call from a context that was looked up before.
#[derive(Clone, Copy, Debug)]
struct Known {
    back: u64,
    at: u64,
    caller: u32,
    context: u32,
    edge: u32,
    callee: u32,
    /// The context of the callee where it is not under way already; [`NOBODY`] if that is not known.
    child: u32,
    how: How,
}

const UNKNOWN: Known = Known {
    back: 0,
    at: 0,
    caller: NOBODY,
    context: OUTSIDE,
    edge: 0,
    callee: 0,
    child: OUTSIDE,
    how: How::Otherwise,
};

/// Mixes numbers that nobody chose to collide.
#[derive(Clone, Copy, Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(29) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// A table of numbers.
type Numbers<K> = HashMap<K, u32, BuildHasherDefault<Mixer>>;

/// The calls of a thread.
#[derive(Clone, Debug)]
pub struct ThreadCalls {
    pub(crate) functions: Vec<Function>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) contexts: Vec<Context>,
    function_numbers: Numbers<Routine>,
    edge_numbers: Numbers<(u32, u64, u32)>,
    context_numbers: Numbers<(u32, u32)>,
    /// Calls that were looked up, by a hash.
    known: Vec<Known>,
    /// The functions that addresses are in, likewise.
    places: Vec<(u64, u32)>,
    frames: Vec<Frame>,
    aside: Aside,
    /// What had been executed at the last arrival.
    last: u64,
}

impl Default for ThreadCalls {
    fn default() -> Self {
        Self {
            functions: Vec::new(),
            edges: Vec::new(),
            contexts: vec![Context {
                parent: NOBODY,
                edge: 0,
                calls: 0,
                executed: 0,
            }],
            function_numbers: Numbers::default(),
            edge_numbers: Numbers::default(),
            context_numbers: Numbers::default(),
            known: vec![UNKNOWN; KNOWN],
            places: vec![(0, NOBODY); KNOWN],
            frames: Vec::new(),
            aside: Aside::default(),
            last: 0,
        }
    }
}

impl ThreadCalls {
    /// The same activations in a process that was just made as a copy, which has executed nothing.
    pub fn forked(&self) -> Self {
        let mut forked = self.clone();
        forked.last = 0;
        for it in &mut forked.functions {
            it.inclusive = 0;
        }
        for it in &mut forked.edges {
            (it.calls, it.inclusive) = (0, 0);
        }
        for it in &mut forked.contexts {
            (it.calls, it.executed) = (0, 0);
        }
        for it in &mut forked.frames {
            it.since = 0;
        }
        forked
    }

    /// Code was unmapped or mapped: addresses mean something else now.
    pub fn forget_addresses(&mut self) {
        self.known.fill(UNKNOWN);
        self.places.fill((0, NOBODY));
    }

    /// Follows a log.
    pub fn follow(&mut self, log: &[u8], code: &impl Code) {
        let (entries, _) = log.as_chunks::<ARRIVAL_BYTES>();
        for entry in entries {
            self.arrive(&Arrival::read(entry), code);
        }
    }

    /// Follows one arrival.
    #[inline]
    pub fn arrive(&mut self, it: &Arrival, code: &impl Code) {
        self.charge(it.events);
        match it.back {
            0 => self.land(it, code),
            _ => self.enter(it, code),
        }
    }

    /// The thread has ended, when it had executed so much.
    pub fn end(&mut self, events: u64) {
        self.charge(events);
        self.drop_from(0, events);
    }

    /// Charges what was executed since the last arrival to the innermost activation.
    #[inline]
    fn charge(&mut self, events: u64) {
        let context = self.frames.last().map_or(OUTSIDE, |it| it.context);
        let executed = events.wrapping_sub(self.last);
        let context = &mut self.contexts[context as usize];
        context.executed = context.executed.wrapping_add(executed);
        self.last = events;
    }

    /// A thread is at the start of a routine.
    #[inline]
    fn enter(&mut self, it: &Arrival, code: &impl Code) {
        if let Some(top) = self.frames.last() {
            let place = place_of(it, top);
            let known = &self.known[place];
            let is_known = known.back == it.back
                && known.at == it.at
                && known.context == top.context
                && known.caller == top.function;
            let is_so = match known.how {
                How::InPlace => top.stack == it.stack && top.back == it.back,
                How::Called | How::Otherwise => top.stack > it.stack,
            };
            if is_known && is_so {
                let (edge, how, parent) = (known.edge, known.how, top.context);
                let callee = &self.functions[known.callee as usize];
                let context = match (callee.depth, known.child) {
                    (0, NOBODY) => {
                        let child = self.context(parent, edge);
                        self.known[place].child = child;
                        child
                    }
                    (0, child) => child,
                    _ => callee.context,
                };
                return self.push_in(context, edge, it, how);
            }
        }
        self.enter_unknown(it, code);
    }

    fn enter_unknown(&mut self, it: &Arrival, code: &impl Code) {
        let Some(callee) = self.function_at(it.at, code) else {
            return;
        };
        self.drop_dead(it);
        // A call that does not return may be the last instruction of its routine.
        let call = it.back.wrapping_sub(1);
        let caller = self.function_at(call, code);
        while let Some(top) = self.frames.last().copied() {
            if top.stack > it.stack {
                break;
            }
            if top.back == it.back && caller.is_some() {
                // Else it is already here.
                if top.function != callee {
                    self.enter_from(top.function, 0, callee, it, How::InPlace);
                }
                return;
            }
            // It returned to code that is not counted.
            self.drop_from(self.frames.len() - 1, it.events);
        }
        let Some(top) = self.frames.last().copied() else {
            let edge = self.edge(NOBODY, 0, callee);
            return self.push(edge, it, How::Otherwise);
        };
        match code.routine(call) {
            Some(Found { bias, .. }) if caller == Some(top.function) => {
                let site = it.back.wrapping_sub(bias);
                self.enter_from(top.function, site, callee, it, How::Called);
            }
            _ => self.enter_from(top.function, 0, callee, it, How::Otherwise),
        }
    }

    /// The innermost activation calls or jumps; that is easier to find the next time.
    fn enter_from(&mut self, caller: u32, site: u64, callee: u32, it: &Arrival, how: How) {
        let edge = self.edge(caller, site, callee);
        if let Some(top) = self.frames.last() {
            self.known[place_of(it, top)] = Known {
                back: it.back,
                at: it.at,
                caller,
                context: top.context,
                edge,
                callee,
                child: NOBODY,
                how,
            };
        }
        self.push(edge, it, how);
    }

    /// A thread is in the midst of a routine.
    #[inline]
    fn land(&mut self, it: &Arrival, code: &impl Code) {
        if let Some(top) = self.frames.last()
            && top.back == it.at
            && top.stack.wrapping_add(8) == it.stack
        {
            return self.end_call(it.events);
        }
        self.land_elsewhere(it, code);
    }

    fn land_elsewhere(&mut self, it: &Arrival, code: &impl Code) {
        let taken = |frame: &Frame| it.stack.wrapping_sub(frame.stack);
        let returns = |frame: &Frame| frame.back == it.at && taken(frame) == 8;
        let returns_and_takes =
            |frame: &Frame| frame.back == it.at && (8..MOST_TAKEN).contains(&taken(frame));
        let exact = self.frames.iter().rposition(returns);
        let exact = exact.or_else(|| self.frames.iter().rposition(returns_and_takes));
        if let Some(index) = exact {
            return self.return_from(index, it.events);
        }
        if let Some(frames) = self.aside.take(it.at, it.stack.wrapping_sub(8)) {
            self.put_back(frames, it.events);
            return self.return_from(self.frames.len() - 1, it.events);
        }
        let Some(function) = self.function_at(it.at, code) else {
            return;
        };
        let is_there = |frame: &Frame| frame.function == function && frame.stack >= it.stack;
        if let Some(index) = self.frames.iter().rposition(is_there) {
            return self.drop_from(index + 1, it.events);
        }
        if let Some(frames) = self.aside.take_last(is_there) {
            return self.put_back(frames, it.events);
        }
        // It was jumped to, or was under way before anybody looked.
        self.drop_dead(it);
        let (caller, parent) = match self.frames.last() {
            Some(top) => (top.function, top.context),
            None => (NOBODY, OUTSIDE),
        };
        let edge = self.edge(caller, 0, function);
        let context = self.context_of(function, parent, edge);
        self.begin(Frame {
            stack: it.stack,
            back: 0,
            since: it.events,
            function,
            edge,
            context,
            how: How::Otherwise,
        });
    }

    /// The stack pointer tells that activations have ended, or sleep.
    fn drop_dead(&mut self, it: &Arrival) {
        let live = self
            .frames
            .iter()
            .rposition(|frame| frame.stack >= it.stack);
        self.drop_from(live.map_or(0, |it| it + 1), it.events);
    }

    /// An activation begins by an arrival.
    fn push(&mut self, edge: u32, it: &Arrival, how: How) {
        let parent = self.frames.last().map_or(OUTSIDE, |it| it.context);
        let function = self.edges[edge as usize].callee;
        let context = self.context_of(function, parent, edge);
        self.push_in(context, edge, it, how);
    }

    #[inline]
    fn push_in(&mut self, context: u32, edge: u32, it: &Arrival, how: How) {
        let called = &mut self.edges[edge as usize];
        called.calls += 1;
        let function = called.callee;
        self.contexts[context as usize].calls += 1;
        self.begin(Frame {
            stack: it.stack,
            back: it.back,
            since: it.events,
            function,
            edge,
            context,
            how,
        });
    }

    #[inline]
    fn begin(&mut self, frame: Frame) {
        self.edges[frame.edge as usize].depth += 1;
        let function = &mut self.functions[frame.function as usize];
        if function.depth == 0 {
            function.context = frame.context;
        }
        function.depth += 1;
        self.frames.push(frame);
    }

    /// The innermost activation ends.
    #[inline]
    fn pop(&mut self, events: u64) -> Option<Frame> {
        let frame = self.frames.pop()?;
        let executed = events.wrapping_sub(frame.since);
        let edge = &mut self.edges[frame.edge as usize];
        edge.depth -= 1;
        if edge.depth == 0 {
            edge.inclusive = edge.inclusive.wrapping_add(executed);
        }
        let function = &mut self.functions[frame.function as usize];
        function.depth -= 1;
        if function.depth == 0 {
            function.inclusive = function.inclusive.wrapping_add(executed);
        }
        Some(frame)
    }

    /// An activation returns, and all that it was put in the place of.
    fn return_from(&mut self, index: usize, events: u64) {
        self.drop_from(index + 1, events);
        self.end_call(events);
    }

    /// The innermost activation returns, and all that it was put in the place of.
    #[inline]
    fn end_call(&mut self, events: u64) {
        while let Some(frame) = self.pop(events) {
            if frame.how != How::InPlace {
                break;
            }
        }
    }

    /// Activations end without returning, or fall asleep.
    fn drop_from(&mut self, index: usize, events: u64) {
        let dropped = self.frames.get(index..).unwrap_or_default();
        let may_sleep = dropped.iter().any(|it| it.how == How::Called);
        if may_sleep {
            self.aside.put(dropped.to_vec());
        }
        while self.frames.len() > index {
            self.pop(events);
        }
    }

    /// Activations wake up.
    fn put_back(&mut self, frames: Vec<Frame>, events: u64) {
        for frame in frames {
            self.begin(Frame {
                since: events,
                ..frame
            });
        }
    }

    /// The function that an address is in.
    fn function_at(&mut self, at: u64, code: &impl Code) -> Option<u32> {
        let place = slot(at);
        let (known, function) = self.places[place];
        if known == at && function != NOBODY {
            return Some(function);
        }
        let function = self.function(code.routine(at)?.routine);
        self.places[place] = (at, function);
        Some(function)
    }

    fn function(&mut self, routine: Routine) -> u32 {
        let functions = &mut self.functions;
        *self.function_numbers.entry(routine).or_insert_with(|| {
            functions.push(Function {
                routine,
                inclusive: 0,
                depth: 0,
                context: OUTSIDE,
            });
            functions.len() as u32 - 1
        })
    }

    fn edge(&mut self, caller: u32, site: u64, callee: u32) -> u32 {
        let edges = &mut self.edges;
        let number = self.edge_numbers.entry((caller, site, callee));
        *number.or_insert_with(|| {
            edges.push(Edge {
                caller,
                site,
                callee,
                calls: 0,
                inclusive: 0,
                depth: 0,
            });
            edges.len() as u32 - 1
        })
    }

    /// The context of a function that is called from another one: the one it is in already, if it is.
    fn context_of(&mut self, function: u32, parent: u32, edge: u32) -> u32 {
        let callee = &self.functions[function as usize];
        match callee.depth {
            0 => self.context(parent, edge),
            _ => callee.context,
        }
    }

    fn context(&mut self, parent: u32, edge: u32) -> u32 {
        if let Some(known) = self.context_numbers.get(&(parent, edge)) {
            return *known;
        }
        if self.contexts.len() == MOST_CONTEXTS {
            return parent;
        }
        let number = self.contexts.len() as u32;
        self.contexts.push(Context {
            parent,
            edge,
            calls: 0,
            executed: 0,
        });
        self.context_numbers.insert((parent, edge), number);
        number
    }
}

/// Where a call from an activation is kept that was looked up.
#[inline]
fn place_of(it: &Arrival, from: &Frame) -> usize {
    let mixed = it.back ^ it.at.rotate_left(21) ^ u64::from(from.context).rotate_left(43);
    slot(mixed)
}

#[inline]
fn slot(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - KNOWN.trailing_zeros())) as usize
}
