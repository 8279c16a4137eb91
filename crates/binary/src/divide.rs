//! Where do functions end, if nothing tells?
//!
//! Of a program without symbols and without tables for unwinding, all that is known of much code is
//! that it lies behind a function that a pointer leads to. But a function ends where control cannot
//! go on, and where nothing in it leads beyond. Behind it, and behind what fills the gap, the next
//! one begins.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, Register};

use crate::blocks::between;
use crate::functions::{Origin, Part};
use crate::image::Image;
use crate::indirect;
use crate::sweep::{self, Flow, Op};

/// Functions begin at multiples of this, where the gaps between them are filled.
pub const ALIGNMENT: u64 = 16;

/// They never begin elsewhere behind such a gap.
const LEAST_ALIGNMENT: u64 = 8;

/// No function has a table of jumps that lead further than this.
const FAR: u64 = 1 << 16;

/// How often one function is looked through for tables, at most.
const MOST_LOOKS: usize = 64;

pub const INT3: u8 = 0xcc;

/// No instruction has more bytes.
pub const LONGEST: u64 = 15;

/// Data seldom looks like functions for longer than this.
const TRUSTED: u64 = 128;

/// What looks like a function.
pub struct Function {
    pub range: Range<u64>,
    /// Where else data points, in it.
    pub entries: Vec<u64>,
}

/// The functions in a range, in order. They end well before the first bytes that may not be code:
/// data may lie between functions. `is_sure`: there is no doubt about the first one. `words`: what
/// data may point to, by address.
pub fn divide(
    image: &Image<'_>,
    range: &Range<u64>,
    is_sure: bool,
    words: &[u64],
) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    let mut next = Some(range.start);
    while let Some(start) = next {
        let is_first = is_sure && start == range.start;
        let piece = Piece::first(image, &(start..range.end), words);
        let Some(piece) = piece.filter(|it| is_first || it.is_sound()) else {
            let trusted = start.saturating_sub(TRUSTED);
            let sure = range.start..range.start + u64::from(is_sure);
            found.retain(|it| {
                let start = it.range.start;
                start < trusted || sure.contains(&start)
            });
            break;
        };
        found.push(Function {
            range: start..piece.end,
            entries: piece.entries(words),
        });
        next = piece.next;
    }
    found
}

/// Where the function ends that begins a range; `None` if there are bytes in it that are no
/// instructions.
pub fn end(image: &Image<'_>, range: &Range<u64>) -> Option<u64> {
    Piece::first(image, range, &[]).map(|it| it.end)
}

/// Does a function begin this range, as far as its bytes tell? `words`: what data may point to, by
/// address.
///
/// Of a table of random bytes, one in ten looks like a function, but what follows it does not.
/// Haskell's compiler puts tables between its functions, but each has a certain form.
pub fn is_function(image: &Image<'_>, range: &Range<u64>, words: &[u64]) -> bool {
    if has_info_table(image, range.start) && flows(image, range) {
        return true;
    }
    let trusted = range.start.saturating_add(TRUSTED);
    let mut next = Some(range.start);
    while let Some(start) = next.filter(|start| *start < trusted) {
        match Piece::first(image, &(start..range.end), words).filter(Piece::is_sound) {
            Some(piece) => next = piece.next,
            None => return false,
        }
    }
    true
}

/// Is there code as Haskell's compiler makes it, with a table in front?
pub fn has_table_in_front(image: &Image<'_>, at: u64) -> bool {
    let end = image.piece(at).map_or(at, |piece| piece.range().end);
    has_info_table(image, at) && flows(image, &(at..end))
}

/// Does control that enters a range at its start meet nothing but instructions that compilers make,
/// as far as it is followed?
fn flows(image: &Image<'_>, range: &Range<u64>) -> bool {
    const MOST: usize = 64;
    let bytes = image.get(range).unwrap_or_default();
    let mut decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut seen = BTreeSet::new();
    let mut todo = vec![range.start];
    while let Some(mut at) = todo.pop() {
        while seen.len() < MOST && range.contains(&at) && seen.insert(at) {
            let position = (at - range.start) as usize;
            if decoder.set_position(position).is_err() {
                return false;
            }
            decoder.set_ip(at);
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() || is_odd(&instruction) {
                return false;
            }
            let flow = sweep::flow(&instruction);
            todo.extend(flow.jump_target());
            if !flow.goes_on() {
                break;
            }
            at = instruction.next_ip();
        }
    }
    true
}

/// Is there a table in front of code as GHC puts there? Behind a word for its layout, it has the
/// kind of thing that it is the code of: a small number (`rts/storage/ClosureTypes.h`).
fn has_info_table(image: &Image<'_>, at: u64) -> bool {
    const KINDS: Range<u32> = 1..65;
    if !at.is_multiple_of(8) {
        return false;
    }
    let kind = image.get(&(at.saturating_sub(8)..at.saturating_sub(4)));
    let kind = kind.and_then(|it| it.first_chunk()).copied();
    kind.is_some_and(|it| KINDS.contains(&u32::from_le_bytes(it)))
}

/// Do programs not have such an instruction, although bytes of data look like it? (No compiler makes
/// loops of one instruction, but people do.)
pub fn is_strange(image: &Image<'_>, op: &Op) -> bool {
    let bytes = image.get(&(op.at..op.end())).unwrap_or_default();
    let instruction = Decoder::with_ip(64, bytes, op.at, DecoderOptions::NONE).decode();
    let is_loop = matches!(
        instruction.mnemonic(),
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne
    );
    is_odd(&instruction) && !is_loop
}

/// A function that begins a range.
struct Piece {
    ops: Vec<Op>,
    end: u64,
    /// Does it end where control cannot go on, or does it call somebody?
    is_closed: bool,
    /// Are there instructions that programs do not have?
    is_odd: bool,
    /// What begins behind the filler behind it, if that is in the range.
    next: Option<u64>,
}

impl Piece {
    fn first(image: &Image<'_>, range: &Range<u64>, words: &[u64]) -> Option<Self> {
        let bytes = image.get(range)?;
        let mut decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut search = Search::new(image, range, words);
        let mut leaves = false;
        while decoder.can_decode() {
            let (position, at) = (decoder.position(), decoder.ip());
            let is_zero = bytes.get(position) == Some(&0);
            if is_zero && search.skips_zero(at) && decoder.set_position(position + 1).is_ok() {
                decoder.set_ip(at + 1);
                continue;
            }
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                let at = instruction.ip();
                let ends = search.may_end(at) || leaves;
                return ends.then(|| search.piece(Some(at)));
            }
            // The last thing that a program asks the kernel for is to end it.
            leaves = instruction.mnemonic() == Mnemonic::Syscall;
            let op = Op {
                at: instruction.ip(),
                flow: sweep::flow(&instruction),
                length: instruction.len() as u8,
            };
            if search.ends_before(&op, is_filler(&instruction, &op)) {
                return Some(search.piece(Some(op.at)));
            }
            search.is_odd |= is_odd(&instruction);
        }
        Some(search.piece(None))
    }

    /// Instructions in it, but the first one, that words of data may point to.
    fn entries(&self, words: &[u64]) -> Vec<u64> {
        let start = self.ops.first().map_or(self.end, |it| it.at);
        let inside = between(words, start + 1..self.end);
        let is_op = |at: &&u64| self.ops.binary_search_by_key(*at, |op| op.at).is_ok();
        inside.iter().filter(is_op).copied().collect()
    }

    /// Does it look like code all through?
    fn is_sound(&self) -> bool {
        let Some(first) = self.ops.first() else {
            return false;
        };
        let inside = first.at..self.end;
        let mut targets = self.ops.iter().filter_map(|op| op.flow.jump_target());
        let is_op = |at: u64| self.ops.binary_search_by_key(&at, |op| op.at).is_ok();
        // Some jump over the prefix of an instruction.
        let is_torn = |to: u64| inside.contains(&to) && !is_op(to) && !is_op(to - 1);
        self.is_closed && !self.is_odd && !targets.any(is_torn)
    }
}

/// Does hardly any program have such an instruction, although bytes of data look like it?
fn is_odd(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Cli, Enter, In, Insb, Insd, Insw, Int, Int1, Iret, Iretd, Iretq, Lar, Lgdt, Lidt, Loop,
        Loope, Loopne, Lsl, Out, Outsb, Outsd, Outsw, Retf, Sti, Xlatb,
    };
    let odd = [
        Cli, Enter, In, Insb, Insd, Insw, Int, Int1, Iret, Iretd, Iretq, Lar, Lgdt, Lidt, Loop,
        Loope, Loopne, Lsl, Out, Outsb, Outsd, Outsw, Retf, Sti, Xlatb,
    ];
    odd.contains(&instruction.mnemonic())
        || is_zeros(instruction)
        || instruction.is_jmp_far()
        || instruction.is_jmp_far_indirect()
        || instruction.is_call_far()
        || instruction.is_call_far_indirect()
}

/// Two zeros: `add %al, (%rax)`.
fn is_zeros(instruction: &Instruction) -> bool {
    instruction.code() == Code::Add_rm8_r8
        && instruction.len() == 2
        && instruction.memory_base() == Register::RAX
        && instruction.op1_register() == Register::AL
}

/// `int3`, and ways to do nothing.
fn is_filler(instruction: &Instruction, op: &Op) -> bool {
    op.flow == Flow::Nop || instruction.mnemonic() == Mnemonic::Int3
}

/// The search for the end of a function.
struct Search<'a> {
    image: &'a Image<'a>,
    range: &'a Range<u64>,
    words: &'a [u64],
    ops: Vec<Op>,
    /// How many of them there are up to the last that is no filler.
    solid: usize,
    /// Where jumps lead that lead ahead, the nearest first.
    ahead: BinaryHeap<Reverse<u64>>,
    /// The furthest place that tables of jumps lead to.
    table_reach: u64,
    /// The furthest place whose address is made: indirect jumps may lead there.
    spoken: u64,
    /// Indirect jumps, and how many of them were looked at.
    jumps: usize,
    looked_at: usize,
    looks: usize,
    /// Is there a jump of which nobody knows where it leads?
    is_open: bool,
    is_odd: bool,
    end: Option<End>,
}

/// Where a function may end.
#[derive(Clone, Copy)]
struct End {
    /// How many instructions it has, if it does.
    ops: usize,
    /// Control may come back behind a call.
    is_call: bool,
    /// Is there something behind it that fills a gap?
    filler: bool,
    /// Is the last of that `int3`?
    is_int3: bool,
}

impl<'a> Search<'a> {
    fn new(image: &'a Image<'a>, range: &'a Range<u64>, words: &'a [u64]) -> Self {
        Self {
            image,
            range,
            words,
            ops: Vec::new(),
            solid: 0,
            ahead: BinaryHeap::new(),
            table_reach: range.start,
            spoken: range.start,
            jumps: 0,
            looked_at: 0,
            looks: 0,
            is_open: false,
            is_odd: false,
            end: None,
        }
    }

    /// Is a zero at an address filler? Zeros fill gaps one by one, but two look like an instruction.
    fn skips_zero(&mut self, at: u64) -> bool {
        let is_led_to = self.next_target(at) == Some(at);
        let end = self.end.as_mut();
        end.filter(|it| !it.is_call && !is_led_to)
            .map(|end| {
                end.filler = true;
                end.is_int3 = false;
            })
            .is_some()
    }

    /// Where jumps that we have seen lead from an address on: the nearest place.
    fn next_target(&mut self, at: u64) -> Option<u64> {
        while self.ahead.peek().is_some_and(|to| to.0 < at) {
            self.ahead.pop();
        }
        self.ahead.peek().map(|to| to.0)
    }

    /// Does the function end before this instruction? If not, it becomes a part of it.
    fn ends_before(&mut self, op: &Op, is_filler: bool) -> bool {
        if let Some(end) = &mut self.end {
            if is_filler {
                end.filler = true;
                end.is_int3 = op.flow != Flow::Nop;
                self.ops.push(*op);
                return false;
            }
            if self.may_end(op.at) {
                return true;
            }
        }
        self.add(op);
        if !is_filler {
            self.solid = self.ops.len();
        }
        false
    }

    fn add(&mut self, op: &Op) {
        self.ops.push(*op);
        let inside = |to: &u64| self.range.contains(to);
        match op.flow {
            Flow::Jump(to) | Flow::Branch(to) if inside(&to) && to > op.at => {
                self.ahead.push(Reverse(to));
            }
            Flow::Mentions(to) | Flow::Number(to) if inside(&to) => {
                self.spoken = self.spoken.max(to)
            }
            Flow::IndirectJump(None) => self.jumps += 1,
            _ => {}
        }
        let is_call = op.flow.is_call();
        self.end = (!op.flow.goes_on() || is_call).then_some(End {
            ops: self.ops.len(),
            is_call,
            filler: false,
            is_int3: false,
        });
    }

    /// Is the next function at an address, to which there is only filler since this one may have
    /// ended?
    fn may_end(&mut self, next: u64) -> bool {
        let Some(end) = self.end else {
            return false;
        };
        // What fills a gap does so for the sake of what follows.
        if end.filler && !next.is_multiple_of(LEAST_ALIGNMENT) {
            return false;
        }
        let behind = self.ops.get(end.ops - 1).map_or(next, Op::end);
        let nearest = self.next_target(behind);
        // Compilers fill gaps between functions with `int3`, and no others.
        let is_border = end.is_int3 && next.is_multiple_of(ALIGNMENT)
            || self.words.binary_search(&next).is_ok();
        let is_border = is_border && nearest.is_none_or(|to| to > next);
        if end.is_call && !is_border {
            return false;
        }
        let may_lead_on = nearest.is_some() || (self.jumps > 0 && self.spoken >= behind);
        let may_end =
            |it: &Self| it.table_reach < behind && (is_border || !(may_lead_on || it.is_open));
        if may_end(self) {
            self.look_at_jumps(end.ops);
        }
        may_end(self)
    }

    /// Looks for the tables of indirect jumps.
    fn look_at_jumps(&mut self, ops: usize) {
        if self.jumps == self.looked_at {
            return;
        }
        self.looked_at = self.jumps;
        self.looks += 1;
        if self.looks > MOST_LOOKS {
            self.is_open = true;
            return;
        }
        let ops = self.ops.get(..ops).unwrap_or_default().to_vec();
        let end = ops.last().map_or(self.range.start, Op::end);
        let part = Part {
            range: self.range.start..end,
            origin: Origin::Called,
            ops,
            broken: None,
        };
        // Tables lie side by side: one that is read too far makes no sense beyond the function.
        let limit = self.next_border(end);
        let accept = |to: u64| match part.range.contains(&to) {
            true => to > part.range.start && part.has_op(to),
            false => part.range.end <= to && to < limit,
        };
        let found = indirect::of_part(self.image, &part, &accept);
        let targets = found.targets.iter().flat_map(|(_, targets)| targets);
        let furthest = targets.copied().max();
        self.table_reach = self.table_reach.max(furthest.unwrap_or(0));
        self.is_open |= found.some_reckoned;
    }

    /// The next place behind an address where a function may begin, by what fills the gap in front;
    /// or far behind it.
    fn next_border(&self, at: u64) -> u64 {
        let limit = self.range.end.min(at.saturating_add(FAR));
        let bytes = self.image.get(&(at..limit)).unwrap_or_default();
        let first = (at.wrapping_neg() % ALIGNMENT) as usize;
        let mut places = (first..bytes.len()).step_by(ALIGNMENT as usize);
        let is_border = |place: &usize| {
            let around = place.checked_sub(2).and_then(|it| bytes.get(it..=*place));
            matches!(around, Some([INT3, INT3, next]) if *next != INT3)
        };
        places.find(is_border).map_or(limit, |it| at + it as u64)
    }

    fn piece(mut self, next: Option<u64>) -> Piece {
        let calls = |op: &Op| matches!(op.flow, Flow::Call(to) if self.image.is_code(to));
        let is_closed = self.end.is_some() || self.ops.iter().any(calls);
        let solid = self.end.map_or(self.solid, |end| end.ops);
        self.ops.truncate(solid.max(1));
        Piece {
            end: self.ops.last().map_or(self.range.start, Op::end),
            ops: self.ops,
            is_closed,
            is_odd: self.is_odd,
            next,
        }
    }
}
