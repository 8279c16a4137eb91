//! Walks through programs that are made up, with the costs added up by hand at every step.

use std::collections::{BTreeMap, BTreeSet};

use headcount_model::CallCosts;

use crate::{Arrival, CallSums, Code, Found, Routine, ThreadCalls};

/// Routines are so far apart.
const APART: u64 = 0x1000;

/// So many of them are counted; those behind them are not.
const COUNTED: u64 = 6;

/// Load addresses are so much higher than link addresses.
const BIAS: u64 = 0x10_0000;

struct Routines;

impl Code for Routines {
    fn routine(&self, at: u64) -> Option<Found> {
        let number = at.checked_sub(BIAS)? / APART;
        (number < COUNTED).then_some(Found {
            routine: Routine {
                module: 0,
                start: number * APART,
            },
            bias: BIAS,
        })
    }
}

/// Numbers that look as if nobody had chosen them (Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// What a caller is known by, and the callee: function, return address.
type Call = (Option<u64>, Option<u64>, u64);

#[derive(Clone, Copy)]
struct Activation {
    function: u64,
    call: Call,
    entry: u64,
    body: u64,
    back: u64,
    in_place: bool,
}

/// A program that runs, and what it cost so far.
#[derive(Default)]
struct Walk {
    active: Vec<Activation>,
    events: u64,
    log: Vec<Arrival>,
    inclusive: BTreeMap<u64, u64>,
    calls: BTreeMap<Call, (u64, u64)>,
}

impl Walk {
    fn run(&mut self, instructions: u64) {
        self.events += instructions;
        let functions: BTreeSet<u64> = self.active.iter().map(|it| it.function).collect();
        for it in functions {
            *self.inclusive.entry(it).or_default() += instructions;
        }
        let calls: BTreeSet<Call> = self.active.iter().map(|it| it.call).collect();
        for it in calls {
            self.calls.entry(it).or_default().1 += instructions;
        }
    }

    fn arrive(&mut self, stack: u64, back: u64, at: u64) {
        self.log.push(Arrival {
            events: self.events,
            stack,
            back,
            at: at + BIAS,
        });
    }

    fn begin(&mut self, function: u64, site: Option<u64>, entry: u64, back: u64, in_place: bool) {
        let caller = self.active.last().map(|it| it.function);
        let call = (caller, site, function);
        self.calls.entry(call).or_default().0 += 1;
        self.active.push(Activation {
            function,
            call,
            entry,
            body: entry - 48,
            back,
            in_place,
        });
        self.arrive(entry, back, function * APART);
    }

    fn step(&mut self, dice: &mut Dice) {
        let instructions = 1 + dice.below(9);
        self.run(instructions);
        let Some(top) = self.active.last().copied() else {
            return self.begin(0, None, 1 << 40, 1, false);
        };
        let callee = dice.below(COUNTED);
        // What is called from elsewhere twice looks like a jump, and is taken for two calls.
        let was_called = Routines.routine(top.back).is_some();
        match dice.below(20) {
            0..8 if self.active.len() < 30 => {
                let back = top.function * APART + 16 * (1 + dice.below(4));
                let entry = top.body - 8;
                self.begin(callee, Some(back), entry, back + BIAS, false);
            }
            8 if callee != top.function && was_called => {
                self.begin(callee, None, top.entry, top.back, true);
            }
            // A signal handler, or what code calls that is not counted.
            9 => self.begin(callee, None, top.body - 200, 7 * APART + BIAS, false),
            10 if self.active.len() > 2 => self.jump_back(dice),
            // Something ran that is not counted.
            11 => self.arrive(top.body, 0, top.function * APART + 80),
            // It was moved away, and came back.
            12 if was_called => self.arrive(top.entry, top.back, top.function * APART),
            13..20 if self.active.len() > 1 => self.return_from(top),
            _ => (),
        }
    }

    fn return_from(&mut self, top: Activation) {
        while self.active.pop().is_some_and(|it| it.in_place) {}
        // Who is not counted is not seen when it comes back; whoever called it is.
        if top.back / APART == 7 + BIAS / APART {
            if let Some(below) = self.active.last().copied() {
                self.arrive(below.body, 0, below.function * APART + 80);
            }
            return;
        }
        self.arrive(top.entry + 8, 0, top.back - BIAS);
    }

    /// `longjmp`, or an exception.
    fn jump_back(&mut self, dice: &mut Dice) {
        let to = dice.below(self.active.len() as u64 - 1) as usize;
        // What was left by a jump is not there any more.
        if self.active[to + 1].in_place {
            return;
        }
        self.active.truncate(to + 1);
        let it = self.active[to];
        self.arrive(it.body, 0, it.function * APART + 0x900);
    }
}

fn walk(seed: u64, steps: u32) -> Walk {
    let mut dice = Dice(seed);
    let mut walk = Walk::default();
    for _ in 0..steps {
        walk.step(&mut dice);
    }
    walk
}

fn costs(log: &[Arrival], events: u64) -> CallCosts {
    let mut thread = ThreadCalls::default();
    for it in log {
        thread.arrive(it, &Routines);
    }
    thread.end(events);
    let mut sums = CallSums::default();
    sums.add(&thread);
    sums.costs(vec!["build".to_owned()])
}

/// As the walk keeps them.
fn by_hand(costs: &CallCosts) -> (BTreeMap<u64, u64>, BTreeMap<Call, (u64, u64)>) {
    let number = |index: u32| costs.functions[index as usize].start.0 / APART;
    let functions = costs.functions.iter();
    let inclusive = functions.map(|it| (it.start.0 / APART, it.inclusive));
    let edges = costs.edges.iter().map(|it| {
        let call = (
            it.caller.map(number),
            it.site.map(|it| it.0),
            number(it.callee),
        );
        (call, (it.calls, it.inclusive))
    });
    (inclusive.collect(), edges.collect())
}

#[test]
fn costs_are_those_that_were_added_up_by_hand() {
    for seed in 1..400 {
        let walk = walk(seed * 0x9e37_79b9, 400);
        let costs = costs(&walk.log, walk.events);
        assert_eq!(costs.executed(), walk.events, "seed {seed}");
        assert_eq!(by_hand(&costs), (walk.inclusive, walk.calls), "seed {seed}");
    }
}

#[test]
fn a_log_with_a_hole_is_noticed() {
    let mut noticed = 0;
    for seed in 1..100 {
        let walk = walk(seed * 0x9e37_79b9, 400);
        let mut log = walk.log;
        let returned = log.iter().rposition(|it| it.back == 0);
        log.remove(returned.expect("something returned"));
        let costs = costs(&log, walk.events);
        assert_eq!(costs.executed(), walk.events, "seed {seed}");
        noticed += u32::from(by_hand(&costs) != (walk.inclusive, walk.calls));
    }
    assert!(noticed > 25, "{noticed}");
}

#[test]
fn contexts_hold_what_each_function_executed_itself() {
    // 0 calls 1 twice and 2 once, which calls 1.
    let mut walk = Walk::default();
    walk.begin(0, None, 1 << 40, 1, false);
    walk.run(10);
    for callees in [&[1][..], &[1], &[2, 1]] {
        for callee in callees {
            let top = walk.active[walk.active.len() - 1];
            let back = top.function * APART + 16;
            walk.begin(*callee, Some(back), top.body - 8, back + BIAS, false);
            walk.run(100);
        }
        for _ in callees {
            let top = walk.active[walk.active.len() - 1];
            walk.return_from(top);
            walk.run(1);
        }
    }
    let costs = costs(&walk.log, walk.events);
    let context = |function: u64, calls: u64| {
        let found = costs.contexts.iter().filter(|it| {
            let edge = costs.edges.get(it.edge as usize);
            let callee = edge.map(|it| costs.functions[it.callee as usize].start.0 / APART);
            it.parent.is_some() && callee == Some(function) && it.calls == calls
        });
        found.map(|it| it.executed).collect::<Vec<_>>()
    };
    assert_eq!(context(0, 1), [13]);
    assert_eq!(context(1, 2), [200]);
    assert_eq!(context(2, 1), [101]);
    assert_eq!(context(1, 1), [100]);
}

/// Two stacks, of which one is asleep.
#[test]
fn a_coroutine_goes_on_where_it_was() {
    let mut walk = Walk::default();
    let (main, other) = (1 << 40, 1 << 30);
    walk.begin(0, None, main, 1, false);
    walk.run(10);
    // 0 calls 1, which switches to another stack, where 2 begins and calls 1.
    let back = 16;
    walk.begin(1, Some(back), main - 56, back + BIAS, false);
    walk.run(5);
    walk.arrive(other, 7 * APART + BIAS, 2 * APART);
    walk.run(100);
    walk.arrive(other - 8, 2 * APART + 32 + BIAS, APART);
    walk.run(5);
    for _ in 0..3 {
        // Back to 0, and again to 2.
        walk.arrive(main - 48, 0, back);
        walk.run(1000);
        walk.arrive(main - 56, back + BIAS, APART);
        walk.run(5);
        walk.arrive(other, 0, 2 * APART + 32);
        walk.run(100);
        walk.arrive(other - 8, 2 * APART + 32 + BIAS, APART);
        walk.run(5);
    }
    walk.arrive(main - 48, 0, back);
    walk.run(1);
    let costs = costs(&walk.log, walk.events);
    let mut own = BTreeMap::<u64, u64>::new();
    for it in costs.contexts.iter().skip(1) {
        let edge = &costs.edges[it.edge as usize];
        let function = costs.functions[edge.callee as usize].start.0 / APART;
        *own.entry(function).or_default() += it.executed;
    }
    assert_eq!(own, [(0, 3011), (1, 40), (2, 400)].into());
    assert_eq!(costs.executed(), walk.events);
}

#[test]
fn a_process_that_is_a_copy_has_the_same_activations_and_no_costs() {
    let walk = walk(77, 300);
    let mut thread = ThreadCalls::default();
    for it in &walk.log {
        thread.arrive(it, &Routines);
    }
    let mut forked = thread.forked();
    forked.end(50);
    let mut sums = CallSums::default();
    sums.add(&forked);
    let costs = sums.costs(vec!["build".to_owned()]);
    assert_eq!(costs.executed(), 50);
    let (inclusive, _) = by_hand(&costs);
    let active: BTreeSet<u64> = walk.active.iter().map(|it| it.function).collect();
    for (function, cost) in inclusive {
        assert_eq!(cost, if active.contains(&function) { 50 } else { 0 });
    }
}

#[test]
fn costs_come_back_as_they_were_written() {
    let walk = walk(99, 2000);
    let costs = costs(&walk.log, walk.events);
    let whole = costs.pack();
    assert_eq!(CallCosts::unpack(&whole), Some(costs));
    for length in 0..whole.len() {
        assert_eq!(CallCosts::unpack(&whole[..length]), None, "{length}");
    }
    for place in 0..whole.len() {
        let mut other = whole.clone();
        other[place] ^= 0x81;
        // Whatever is read, its numbers lead somewhere.
        if let Some(read) = CallCosts::unpack(&other) {
            let functions = read.functions.len();
            assert!(read.edges.iter().all(|it| (it.callee as usize) < functions));
        }
    }
}
