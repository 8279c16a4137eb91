//! How often a token starts, if no instruction runs exactly then.
//!
//! Most tokens have such an instruction. Loops do not: their first one runs again for each turn. What
//! is known is how often each instruction runs; a loop was started as often as its first instruction
//! ran, less what came back. What comes back by a jump is known; what comes back because the body
//! failed is what began the body, less what ended it in another way. That is too much by the bodies
//! that were never ended: the program ended within, or nobody resumed what was suspended there. So it
//! is a bound from below. From above there is what ran before the loop, by the same reasoning. If the
//! two agree, the count is exact. (It always is if the instruction before just goes on to the loop.)

use std::collections::HashMap;

use crate::generate::{Begin, Frame, Made};
use crate::opcode::Opcode;
use crate::ucode::{Item, Operand};

/// When a token starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Whenever this instruction of its procedure runs.
    Instruction(u32),
    /// At least as often as one sum says, and once if the first instruction ran at all; at most as
    /// often as each of some others says.
    Between {
        first: u32,
        least: Sum,
        most: Vec<Sum>,
    },
}

/// Counts of instructions of the procedure, added and taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub add: Vec<u32>,
    pub take: Vec<u32>,
}

/// How often a token started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Exact(u64),
    /// Not known better: something in the procedure was never ended.
    Between(u64, u64),
}

impl Start {
    /// The count, with those of the procedure's instructions.
    pub fn count(&self, of: impl Fn(u32) -> u64) -> Count {
        match self {
            Start::Instruction(instruction) => Count::Exact(of(*instruction)),
            Start::Between { first, least, most } => {
                let value = |sum: &Sum| {
                    let all =
                        |terms: &[u32]| terms.iter().map(|it| i128::from(of(*it))).sum::<i128>();
                    u64::try_from((all(&sum.add) - all(&sum.take)).max(0)).unwrap_or(u64::MAX)
                };
                let most = most.iter().map(value).min().unwrap_or(u64::MAX);
                let least = value(least).max(of(*first).min(1));
                match least == most {
                    true => Count::Exact(most),
                    // Counts of another program may contradict each other.
                    false => Count::Between(least.min(most), most.max(least)),
                }
            }
        }
    }
}

/// The code of a procedure, and what is known of its flow.
pub struct Flow<'a> {
    made: &'a Made,
    /// Of each item, how many instructions there are before it.
    numbers: Vec<u32>,
    /// Which item a label is.
    places: HashMap<u32, usize>,
    /// Which items name a label.
    references: HashMap<u32, Vec<(usize, Opcode)>>,
    frames: HashMap<u32, Vec<Frame>>,
}

impl<'a> Flow<'a> {
    pub fn new(made: &'a Made) -> Flow<'a> {
        let mut flow = Flow {
            made,
            numbers: Vec::new(),
            places: HashMap::new(),
            references: HashMap::new(),
            frames: HashMap::new(),
        };
        let mut next = 0;
        for (at, item) in made.code.items.iter().enumerate() {
            flow.numbers.push(next);
            match item {
                Item::Label(label) => drop(flow.places.insert(*label, at)),
                Item::Do(it) => {
                    next += 1;
                    if let Operand::Label(label) = it.operand {
                        let references = flow.references.entry(label).or_default();
                        references.push((at, it.opcode));
                    }
                }
                _ => (),
            }
        }
        for frame in &made.frames {
            flow.frames.entry(frame.label).or_default().push(*frame);
        }
        flow
    }

    pub fn start(&self, begin: Begin) -> Start {
        match begin {
            Begin::Instruction(item) => Start::Instruction(self.numbers[item]),
            Begin::Entry(item) => self.entry(item),
        }
    }

    /// How many instructions there are before an item.
    pub fn number(&self, item: usize) -> u32 {
        self.numbers.get(item).copied().unwrap_or(u32::MAX)
    }

    /// How often control comes to an item from outside of the loop that may begin there.
    fn entry(&self, from: usize) -> Start {
        let items = &self.made.code.items;
        let mut at = from;
        // Which of the labels before the first instruction are those of loops: they jump back to it.
        let mut heads = Vec::new();
        while let Some(item) = items.get(at) {
            match item {
                Item::Do(_) => break,
                Item::Label(label) => heads.push(*label),
                _ => (),
            }
            at += 1;
        }
        let Some(first) = self.numbers.get(at).copied() else {
            return Start::Instruction(0);
        };
        if heads.is_empty() {
            return Start::Instruction(first);
        }
        if let Some(before) = self.plain_before(from) {
            return Start::Instruction(before);
        }
        let mut jumps = Sum {
            add: vec![first],
            take: Vec::new(),
        };
        let mut all = jumps.clone();
        for label in heads {
            for &(item, opcode) in self.references(label) {
                match opcode {
                    Opcode::Goto => jumps.take.push(self.numbers[item]),
                    // Goes back at most once for each result.
                    Opcode::Chfail => all.take.push(self.numbers[item]),
                    _ => (),
                }
            }
            let failures = self.failures(label);
            all.take.extend(failures.add);
            all.add.extend(failures.take);
        }
        all.take.extend(&jumps.take);
        let mut most = vec![jumps];
        most.extend(self.arrivals_before(from));
        Start::Between {
            first,
            least: all,
            most,
        }
    }

    fn references(&self, label: u32) -> &[(usize, Opcode)] {
        self.references.get(&label).map_or(&[], |it| it)
    }

    /// How often expressions at most failed to a label.
    fn failures(&self, label: u32) -> Sum {
        let mut sum = Sum::default();
        for frame in self.frames.get(&label).map_or(&[][..], |it| it) {
            sum.add.push(self.numbers[frame.mark]);
            let Some(unmark) = frame.unmark else {
                continue;
            };
            sum.take.push(self.numbers[unmark]);
            // They were noted in the order of the code.
            let leaves = &self.made.leaves;
            let first = leaves.partition_point(|(item, _)| *item < frame.mark);
            let inside = leaves[first..]
                .iter()
                .take_while(|(item, _)| *item <= unmark);
            for (item, target) in inside {
                let place = target.and_then(|it| self.places.get(&it).copied());
                if !place.is_some_and(|it| (frame.mark..=unmark).contains(&it)) {
                    sum.take.push(self.numbers[*item]);
                }
            }
        }
        sum
    }

    /// The instruction before an item, if control comes to the item whenever that runs and not
    /// otherwise.
    fn plain_before(&self, item: usize) -> Option<u32> {
        let is_code = |it: &&Item| matches!(it, Item::Do(_) | Item::Label(_));
        match self.made.code.items[..item].iter().rev().find(is_code)? {
            Item::Do(it) if passes_on(it.opcode) == Some(true) => Some(self.numbers[item] - 1),
            _ => None,
        }
    }

    /// How often control at most comes from before an item to it, if that is known.
    fn arrivals_before(&self, item: usize) -> Option<Sum> {
        let mut sum = Sum::default();
        let items = &self.made.code.items[..item];
        for (at, item) in items.iter().enumerate().rev() {
            match item {
                Item::File(_) | Item::Line(_) | Item::Column(_) => (),
                Item::Label(label) => {
                    for &(from, opcode) in self.references(*label) {
                        match opcode {
                            Opcode::Goto | Opcode::Init => sum.add.push(self.numbers[from]),
                            Opcode::Mark => (),
                            _ => return None,
                        }
                    }
                    let failures = self.failures(*label);
                    sum.add.extend(failures.add);
                    sum.take.extend(failures.take);
                }
                Item::Do(it) => {
                    match passes_on(it.opcode) {
                        Some(true) => sum.add.push(self.numbers[at]),
                        Some(false) => (),
                        None if at_most_once(it.opcode) => sum.add.push(self.numbers[at]),
                        None => return None,
                    }
                    return Some(sum);
                }
            }
        }
        Some(sum)
    }
}

/// Whether control goes on behind an instruction each time that it runs, never, or who knows.
fn passes_on(opcode: Opcode) -> Option<bool> {
    use Opcode::*;
    match opcode {
        Mark | Mark0 | Unmark | Pop | Pnull | Var | Int | Real | Str | Cset | Dup | Sdup
        | Push1 | Pushn1 | Ccase | Eret => Some(true),
        Goto | Efail | Pfail | Pret | Cofail => Some(false),
        _ => None,
    }
}

/// Whether control goes on behind an instruction once, if it does.
fn at_most_once(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Limit | Opcode::Bscan | Opcode::Init)
}
