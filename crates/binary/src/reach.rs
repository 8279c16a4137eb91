//! Which instructions of this part does control reach, as far as we can see?
//!
//! Bytes among code are not always code: Haskell's return points have tables in front of them, and
//! people who write assembly put constants where they need them. So the instructions of a part are
//! those that control is known to come to, one by one, from where it enters. What remains between
//! them is left alone.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::divide::{self, LONGEST};
use crate::functions::Part;
use crate::image::Image;
use crate::sweep::{Flow, Op, sweep};

/// The instructions of a part that control comes to.
pub struct Reach<'a> {
    image: &'a Image<'a>,
    /// The part, decoded from its first byte to its last.
    swept: &'a Part,
    /// Which of its instructions control comes to.
    marks: Vec<bool>,
    /// Other instructions that it comes to: their bytes were decoded out of step.
    besides: BTreeMap<u64, Op>,
}

/// Control cannot come to an address: what is there is no instruction, or the midst of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absurd {
    NoInstruction(u64),
    Torn(u64),
}

impl Absurd {
    pub fn reason(self) -> String {
        match self {
            Self::NoInstruction(at) => format!("it has bytes that are no instructions at {at:#x}"),
            Self::Torn(at) => format!("a jump leads into the midst of an instruction at {at:#x}"),
        }
    }
}

impl<'a> Reach<'a> {
    pub fn new(image: &'a Image<'a>, swept: &'a Part) -> Self {
        Self {
            image,
            swept,
            marks: vec![false; swept.ops.len()],
            besides: BTreeMap::new(),
        }
    }

    /// Follows control that enters at an address. If that makes no sense, nothing has changed.
    /// Says which instructions are new, by no order.
    pub fn enter(&mut self, at: u64) -> Result<Vec<Op>, Absurd> {
        let mut new = Vec::new();
        let followed = self.follow(at, &mut new);
        if followed.is_err() {
            for op in &new {
                self.set(op, false);
            }
        }
        followed.map(|()| new)
    }

    /// The same, if there is reason to doubt: not in the midst of an instruction, and not if it leads
    /// to what no compiler makes.
    pub fn enter_if_sound(&mut self, at: u64) -> bool {
        if self.covers(at) {
            return false;
        }
        let Ok(new) = self.enter(at) else {
            return false;
        };
        let is_sound = !new.iter().any(|op| divide::is_strange(self.image, op));
        if !is_sound {
            for op in &new {
                self.set(op, false);
            }
        }
        is_sound
    }

    fn follow(&mut self, at: u64, new: &mut Vec<Op>) -> Result<(), Absurd> {
        let mut todo = vec![at];
        while let Some(mut at) = todo.pop() {
            while self.swept.range.contains(&at) && !self.has(at) {
                let op = self.decode(at).map_err(|absurd| match self.covers(at) {
                    true => Absurd::Torn(at),
                    false => absurd,
                })?;
                self.check(&op)?;
                self.set(&op, true);
                new.push(op);
                todo.extend(op.flow.jump_target());
                if let Flow::Call(to) = op.flow {
                    todo.push(to);
                }
                if !op.flow.goes_on() && !self.is_halt(&op) {
                    break;
                }
                at = op.end();
            }
        }
        Ok(())
    }

    /// A `hlt` never completes, but C libraries put it into a loop, and a handler may step over it.
    fn is_halt(&self, op: &Op) -> bool {
        const HALT: &[u8] = &[0xf4];
        let next = op.end();
        let is_last = !self.swept.range.contains(&next);
        let loops = || {
            self.decode(next)
                .is_ok_and(|it| it.flow == Flow::Jump(op.at))
        };
        self.image.get(&(op.at..next)) == Some(HALT) && !is_last && loops()
    }

    /// Does control come to an instruction at this address?
    pub fn has(&self, at: u64) -> bool {
        let swept = self.swept.op_index(at);
        swept.is_some_and(|index| self.marks.get(index) == Some(&true))
            || self.besides.contains_key(&at)
    }

    fn decode(&self, at: u64) -> Result<Op, Absurd> {
        if let Some(index) = self.swept.op_index(at) {
            return self
                .swept
                .ops
                .get(index)
                .copied()
                .ok_or(Absurd::NoInstruction(at));
        }
        let end = self.swept.range.end.min(at.saturating_add(LONGEST));
        let bytes = self.image.get(&(at..end)).unwrap_or_default();
        let (ops, _) = sweep(bytes, at);
        ops.first().copied().ok_or(Absurd::NoInstruction(at))
    }

    /// Is this the midst of an instruction that control comes to?
    fn covers(&self, at: u64) -> bool {
        let byte = Op {
            at,
            flow: Flow::Next,
            length: 0,
        };
        self.check(&byte).is_err()
    }

    /// Of two instructions that share bytes, both are believed if they end at the same place: some
    /// jump over the prefix of one.
    fn check(&self, op: &Op) -> Result<(), Absurd> {
        let around = op.at.saturating_sub(LONGEST)..op.end();
        let first = self.swept.ops.partition_point(|it| it.at < around.start);
        let swept = self.swept.ops.iter().zip(&self.marks).skip(first);
        let swept = swept.take_while(|(it, _)| it.at < around.end);
        let swept = swept.filter(|(_, is_marked)| **is_marked).map(|(it, _)| it);
        let besides = self.besides.range(around.clone()).map(|(_, it)| it);
        let mut others = swept.chain(besides);
        match others.find(|it| it.end() > op.at && it.end() != op.end()) {
            Some(other) => Err(Absurd::Torn(op.at.max(other.at))),
            None => Ok(()),
        }
    }

    fn set(&mut self, op: &Op, is_reached: bool) {
        match self.swept.op_index(op.at) {
            Some(index) => {
                if let Some(mark) = self.marks.get_mut(index) {
                    *mark = is_reached;
                }
            }
            None if is_reached => {
                self.besides.insert(op.at, *op);
            }
            None => {
                self.besides.remove(&op.at);
            }
        }
    }

    /// The instructions that control comes to, by address.
    pub fn ops(&self) -> Vec<Op> {
        let swept = self.swept.ops.iter().zip(&self.marks);
        let swept = swept.filter(|(_, is_marked)| **is_marked);
        let mut ops: Vec<Op> = swept.map(|(op, _)| *op).collect();
        if !self.besides.is_empty() {
            ops.extend(self.besides.values());
            ops.sort_unstable_by_key(|op| op.at);
        }
        ops
    }

    /// What lies between them, each with the instructions that it looks like.
    pub fn rest(&self) -> Vec<Rest> {
        let mut found = Vec::new();
        let mut from = self.swept.range.start;
        let ops = self.ops();
        let ends = ops.iter().map(|op| op.at..op.end());
        for taken in ends.chain(std::iter::once(self.swept.range.end..self.swept.range.end)) {
            if from < taken.start {
                found.push(self.rest_in(from..taken.start));
            }
            from = from.max(taken.end);
        }
        found
    }

    fn rest_in(&self, range: Range<u64>) -> Rest {
        let bytes = self.image.get(&range).unwrap_or_default();
        let (ops, broken) = sweep(bytes, range.start);
        let is_code = broken.is_none() && !ops.iter().any(|op| divide::is_strange(self.image, op));
        Rest {
            range,
            ops,
            is_code,
        }
    }
}

/// Bytes to which nothing leads.
pub struct Rest {
    pub range: Range<u64>,
    pub ops: Vec<Op>,
    /// Do all of them look like code?
    pub is_code: bool,
}

impl Rest {
    /// Does it only fill the place up to the next instruction?
    pub fn is_filler(&self, image: &Image<'_>) -> bool {
        let is_filler = |op: &Op| {
            let byte = || image.get(&(op.at..op.end()));
            op.flow == Flow::Nop || byte() == Some(&[divide::INT3])
        };
        self.is_code && self.ops.iter().all(is_filler)
    }
}
