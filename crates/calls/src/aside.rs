//! Activations that may be asleep, on stacks of their own.

use std::collections::{HashMap, VecDeque};

use crate::thread::Frame;

/// More stacks than these are not kept: the oldest are given up.
const MOST: usize = 1 << 14;

/// Stacks that a thread has left, by return address and stack pointer of the innermost activation.
#[derive(Clone, Debug, Default)]
pub struct Aside {
    stacks: HashMap<(u64, u64), Vec<Frame>>,
    /// In the order in which they were left. Some may have been taken since.
    order: VecDeque<(u64, u64)>,
}

impl Aside {
    /// Keeps activations, the innermost one last.
    pub fn put(&mut self, frames: Vec<Frame>) {
        let Some(top) = frames.last() else {
            return;
        };
        let key = (top.back, top.stack);
        self.stacks.insert(key, frames);
        self.order.push_back(key);
        while self.order.len() > MOST {
            let oldest = self.order.pop_front();
            oldest.and_then(|it| self.stacks.remove(&it));
        }
    }

    /// Those whose innermost one has such a return address and such a stack pointer.
    pub fn take(&mut self, back: u64, stack: u64) -> Option<Vec<Frame>> {
        self.stacks.remove(&(back, stack))
    }

    /// Those that were left last of all with an innermost one like this.
    pub fn take_last(&mut self, is_meant: impl Fn(&Frame) -> bool) -> Option<Vec<Frame>> {
        let is_meant = |key: &&(u64, u64)| {
            let frames = self.stacks.get(*key);
            frames.and_then(|it| it.last()).is_some_and(&is_meant)
        };
        let key = *self.order.iter().rev().find(is_meant)?;
        self.stacks.remove(&key)
    }
}
