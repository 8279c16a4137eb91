//! How often each line of a function of Lua began.
//!
//! A line begins when control comes to it from another line, when it jumps backwards, and when the body of a
//! numeric `for` begins, which comes behind the `for` itself. How often that was follows from how often each
//! instruction ran: every time it did, control came from exactly one other, and went on to one.
//!
//! Three kinds of instructions run without having been fetched, done by the one before along with its own work:
//! the jump behind a test (`donextjump` in Lua's source), the call of an iterator before the first round of a loop,
//! and the end of a round behind each call. Their counts are numbers that are not known at first. Each of them has
//! few ways in and out, whose other ends were counted. If they are fetched nevertheless, that is behind a
//! coroutine's pause in the one before, which would have done them.

use std::collections::BTreeMap;

use super::chunk::Function;
use super::opcodes::{
    CLOSE, EXTRAARG, FORLOOP, FORPREP, JMP, LFALSESKIP, LOADKX, NEWTABLE, RETURN, SETLIST,
    TAILCALL, TBC, TFORCALL, TFORLOOP, TFORPREP, VARARGPREP, Word,
};
use crate::bounds::{Bounds, System};
use crate::{Line, Position, SourceUnit, Token};

/// What counts of the instructions of a function say about its source.
pub(super) fn source_unit(function: &Function, counts: &BTreeMap<usize, u64>) -> SourceUnit {
    let flow = Flow::new(function, counts);
    SourceUnit {
        file: function.file.clone(),
        name: function.name.clone(),
        first_line: function.first_line,
        calls: flow.bounds(flow.entry).least,
        are_calls_exact: flow.bounds(flow.entry).is_exact(),
        lines: flow.lines(),
        tokens: flow.tokens(),
    }
}

/// A way from one instruction to another.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// `None`: from outside.
    from: Option<usize>,
    to: usize,
    /// The number that says how often it was taken.
    number: usize,
}

/// The ways that control may take in a function.
struct Flow<'f> {
    function: &'f Function,
    code: Vec<Word>,
    /// Did a coroutine pause while it closed variables? Then the instruction that did so was fetched again.
    repeats: bool,
    /// How often each instruction was fetched.
    fetched: Vec<u64>,
    system: System,
    /// The numbers that say how often each instruction ran, and how often the function was entered.
    ran: Vec<usize>,
    entry: usize,
    ways: Vec<Way>,
    /// By instruction, how often control left the function there.
    left: Vec<Option<usize>>,
}

impl<'f> Flow<'f> {
    fn new(function: &'f Function, counts: &BTreeMap<usize, u64>) -> Self {
        let flow = Self::with(function, counts, false);
        // Hardly anything pauses while variables are closed: that is looked at if nothing else explains the counts.
        match flow.system.is_contradictory && flow.code.iter().any(|it| it.opcode() == TBC) {
            true => Self::with(function, counts, true),
            false => flow,
        }
    }

    fn with(function: &'f Function, counts: &BTreeMap<usize, u64>, repeats: bool) -> Self {
        let code: Vec<Word> = function.code.iter().map(|it| Word(*it)).collect();
        let of = |number| counts.get(&number).copied().unwrap_or(0);
        let fetched: Vec<u64> = (0..code.len()).map(of).collect();
        let mut system = System::default();
        let first = fetched.first().copied().unwrap_or(0);
        let entry = system.number(Bounds::up_to(first));
        let mut flow = Self {
            function,
            repeats,
            code,
            fetched,
            system,
            ran: Vec::new(),
            entry,
            ways: Vec::new(),
            left: Vec::new(),
        };
        flow.add_ways();
        flow.add_sums();
        flow.system.narrow();
        flow
    }

    fn bounds(&self, number: usize) -> Bounds {
        self.system.numbers[number]
    }

    /// May an instruction run without being fetched?
    fn is_unseen(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|it| self.code[it]);
        match self.code[at].opcode() {
            JMP => before.is_some_and(Word::is_test),
            TFORCALL => true,
            TFORLOOP => before.is_some_and(|it| it.opcode() == TFORCALL),
            _ => false,
        }
    }

    fn add_ways(&mut self) {
        for at in 0..self.code.len() {
            let fetched = self.fetched[at];
            let ran = match self.is_unseen(at) {
                true => Bounds::at_least(fetched),
                false => Bounds::exactly(fetched),
            };
            let ran = self.system.number(ran);
            self.ran.push(ran);
        }
        if !self.code.is_empty() {
            self.ways.push(Way {
                from: None,
                to: 0,
                number: self.entry,
            });
        }
        let lost = self.frames_lost();
        for at in 0..self.code.len() {
            for to in self.targets(at) {
                let number = self.system.number(Bounds::at_least(0));
                self.ways.push(Way {
                    from: Some(at),
                    to,
                    number,
                });
            }
            let word = self.code[at];
            let most = match word {
                _ if word.is_return() || word.opcode() == TAILCALL => Some(self.fetched[at]),
                _ if word.is_plain() => None,
                _ => Some(lost),
            };
            let left = most.map(|it| self.system.number(Bounds::up_to(it)));
            self.left.push(left);
        }
    }

    /// Where control may go from an instruction, within the function.
    fn targets(&self, at: usize) -> Vec<usize> {
        let word = self.code[at];
        let next = at as i64 + 1;
        let bx = word.bx() as i64;
        let targets = match word.opcode() {
            JMP => vec![next + word.distance()],
            LOADKX | LFALSESKIP | NEWTABLE => vec![next + 1],
            SETLIST if word.k() => vec![next + 1],
            _ if word.is_test() || word.is_arithmetic() => vec![next, next + 1],
            CLOSE if self.repeats => vec![next, next - 1],
            RETURN if word.k() && self.repeats => vec![next - 1],
            _ if word.is_return() => Vec::new(),
            FORLOOP | TFORLOOP => vec![next, next - bx],
            FORPREP => vec![next, next + bx + 1],
            TFORPREP => vec![next + bx],
            EXTRAARG => Vec::new(),
            // A function of C that was called in its place may have paused: then the return behind it runs.
            _ => vec![next],
        };
        let inside = targets
            .into_iter()
            .filter_map(|it| usize::try_from(it).ok());
        let mut inside: Vec<usize> = inside.filter(|it| *it < self.code.len()).collect();
        inside.dedup();
        inside
    }

    /// How many calls have neither returned nor gone on in another function, at most.
    fn frames_lost(&self) -> u64 {
        let mut ended = 0_u64;
        for (at, word) in self.code.iter().enumerate() {
            let behind = self.fetched.get(at + 1).copied().unwrap_or(0);
            ended = ended.saturating_add(match word.opcode() {
                TAILCALL => self.fetched[at].saturating_sub(behind),
                // It may have been fetched again for the same call.
                RETURN if word.k() && self.repeats => 0,
                _ if word.is_return() => self.fetched[at],
                _ => 0,
            });
        }
        let entered = self.fetched.first().copied().unwrap_or(0);
        entered.saturating_sub(ended)
    }

    /// What comes to an instruction is how often it ran, and so is what goes from it.
    fn add_sums(&mut self) {
        let mut into: Vec<Vec<usize>> = vec![Vec::new(); self.code.len()];
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); self.code.len()];
        let mut seen: Vec<Vec<usize>> = vec![Vec::new(); self.code.len()];
        for way in &self.ways {
            into[way.to].push(way.number);
            let from = way.from.map(|it| self.code[it].opcode());
            if from != Some(TFORPREP) {
                seen[way.to].push(way.number);
            }
            if let Some(from) = way.from {
                out[from].push(way.number);
            }
        }
        for at in 0..self.code.len() {
            out[at].extend(self.left[at]);
            if self.code[at].opcode() == EXTRAARG {
                continue;
            }
            self.system.sum(std::mem::take(&mut into[at]), self.ran[at]);
            self.system.sum(std::mem::take(&mut out[at]), self.ran[at]);
            // Only what prepares a loop does the first call without its being fetched.
            if self.code[at].opcode() == TFORCALL {
                let fetched = self.system.number(Bounds::exactly(self.fetched[at]));
                self.system.sum(std::mem::take(&mut seen[at]), fetched);
            }
        }
        let left = self.left.iter().flatten().copied().collect();
        self.system.sum(left, self.entry);
    }

    /// The line of an instruction, if it is of one. What only makes room for arguments is of none.
    fn line(&self, at: usize) -> Option<u32> {
        let is_of_none = matches!(self.code[at].opcode(), VARARGPREP | EXTRAARG);
        let line = self.function.lines.get(at).copied();
        line.filter(|it| *it > 0 && !is_of_none)
    }

    /// Does a line begin where a way ends?
    fn begins(&self, way: &Way) -> bool {
        let Some(from) = way.from else {
            return true;
        };
        let opcode = self.code[from].opcode();
        let is_body = opcode == FORPREP && way.to == from + 1;
        // The first call of an iterator is part of what prepares the loop.
        opcode != TFORPREP && (way.to <= from || is_body || self.line(from) != self.line(way.to))
    }

    fn lines(&self) -> Vec<Line> {
        let mut begun: Vec<(u64, u64)> = vec![(0, 0); self.code.len()];
        let mut went_on = begun.clone();
        for way in &self.ways {
            let bounds = self.bounds(way.number);
            let sum = match self.begins(way) {
                true => &mut begun[way.to],
                false => &mut went_on[way.to],
            };
            sum.0 = sum.0.saturating_add(bounds.least);
            sum.1 = sum.1.saturating_add(bounds.most);
        }
        let mut lines: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for at in 0..self.code.len() {
            let Some(line) = self.line(at) else {
                continue;
            };
            let ran = self.bounds(self.ran[at]);
            let least = begun[at].0.max(ran.least.saturating_sub(went_on[at].1));
            let most = begun[at].1.min(ran.most.saturating_sub(went_on[at].0));
            let sum = lines.entry(line).or_default();
            sum.0 = sum.0.saturating_add(least);
            sum.1 = sum.1.saturating_add(most.max(least));
        }
        let line = |(line, (least, most))| Line {
            line,
            count: least,
            is_exact: least == most && !self.system.is_contradictory,
        };
        lines.into_iter().map(line).collect()
    }

    /// Instructions have lines only.
    fn tokens(&self) -> Vec<Token> {
        let token = |at: usize| {
            let line = self.line(at)?;
            let ran = self.bounds(self.ran[at]);
            Some(Token {
                at: Position {
                    line,
                    end_line: line,
                    ..Position::default()
                },
                kind: self.code[at].name().to_owned(),
                count: ran.least,
                is_exact: ran.is_exact(),
                cost: None,
            })
        };
        let mut tokens: Vec<Token> = (0..self.code.len()).filter_map(token).collect();
        tokens.sort_by_key(|it| it.at);
        tokens
    }
}
