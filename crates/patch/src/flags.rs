//! Where may a probe change the flags?

use headcount_model::LinkAddr;
use iced_x86::{Code, Instruction, RflagsBits};

use crate::sketch::{Block, End, Target, Way};

/// The flags that `inc` writes.
const BY_INC: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;

/// By which instruction probes add, where they may change flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adding {
    /// `inc`, which leaves the carry flag alone.
    One,
    /// `add`, which does not.
    Sum,
}

impl Adding {
    /// The flags that it writes.
    fn written(self) -> u32 {
        match self {
            Self::One => BY_INC,
            Self::Sum => BY_INC | RflagsBits::CF,
        }
    }
}

/// Which flags matter in a routine.
pub struct Flags {
    /// Those that probes write: no others can matter.
    written: u32,
    /// Where each block begins.
    starts: Vec<u32>,
    /// Behind its last instruction.
    ends: Vec<u32>,
    /// Where the routine returns.
    at_return: u32,
}

impl Flags {
    /// `are_kept`: somebody asks for those that the routine leaves.
    pub fn of(blocks: &[Block], are_kept: bool, adding: Adding) -> Self {
        let written = adding.written();
        let at_return = match are_kept || changes_none(blocks) {
            true => written,
            false => 0,
        };
        let found = |elsewhere, behind_call: &dyn Fn(&[u32], usize) -> u32| {
            let none = Self {
                written,
                starts: vec![0; blocks.len()],
                ends: vec![0; blocks.len()],
                at_return,
            };
            none.found(blocks, elsewhere, behind_call)
        };
        // A call hands flags over if they are asked for where it returns to. By the System V ABI
        // (3.2.1) they are not; but those who write assembly may answer by flags, and Go's compiler
        // knows that its `runtime.duffzero` changes none, and keeps some across the call.
        let asked_for = found(0, &|starts, next| starts.get(next).copied().unwrap_or(0));
        // Jumps to other routines may hand them over: they may be parts of the same function.
        found(written, &|_, next| {
            asked_for.starts.get(next).copied().unwrap_or(0)
        })
    }

    /// Those that matter, given those that matter elsewhere, and behind a call.
    fn found(
        mut self,
        blocks: &[Block],
        elsewhere: u32,
        behind_call: &dyn Fn(&[u32], usize) -> u32,
    ) -> Self {
        loop {
            let mut has_changed = false;
            for (number, block) in blocks.iter().enumerate().rev() {
                let of = |way: Way| match way.to {
                    Target::Block(block) => self.starts[block as usize],
                    Target::Elsewhere(_) => elsewhere,
                };
                let end = match block.end {
                    End::Fall(way) | End::Jump(way) => of(way),
                    End::Branch { taken, fall } => of(taken) | of(fall),
                    End::Call => behind_call(&self.starts, number + 1),
                    End::Leave => self.at_return,
                };
                let code = block.code.iter();
                let start = code.rfold(end, |flags, it| self.before(it, flags));
                has_changed |= (self.starts[number], self.ends[number]) != (start, end);
                (self.starts[number], self.ends[number]) = (start, end);
            }
            if !has_changed {
                return self;
            }
        }
    }

    /// Those that matter before an instruction, given those that matter behind it.
    fn before(&self, instruction: &Instruction, behind: u32) -> u32 {
        before(instruction, behind, self.written)
    }

    /// Those that probes write.
    pub fn written(&self) -> u32 {
        self.written
    }

    /// Puts every block's probe where no flags matter.
    pub fn choose_sites(&self, blocks: &mut [Block]) {
        let flags = self.starts.iter().zip(&self.ends);
        for (block, (start, end)) in blocks.iter_mut().zip(flags) {
            block.start_is_careful = *start != 0;
            block.end_is_careful = *end != 0;
            block.end_flags = *end;
            let mut best = None;
            let mut flags = *end;
            for (index, instruction) in block.code.iter().enumerate().rev() {
                flags = self.before(instruction, flags);
                if flags == 0 {
                    best = Some(index);
                }
            }
            block.site = best.unwrap_or(0);
            block.site_is_careful = best.is_none();
        }
    }

    /// The routines that flags pass through: what is called, if flags matter where that returns; and
    /// if they matter where the routine returns, what it goes on to.
    pub fn handed_to(&self, blocks: &[Block]) -> Vec<LinkAddr> {
        let mut found = Vec::new();
        for (block, end) in blocks.iter().zip(&self.ends) {
            let elsewhere = |way: Way| match way.to {
                Target::Elsewhere(at) if self.at_return != 0 => Some(at),
                _ => None,
            };
            match block.end {
                End::Call if *end != 0 => {
                    let call = block.code.last().filter(|it| it.is_call_near());
                    found.extend(call.map(Instruction::near_branch_target));
                }
                End::Fall(way) | End::Jump(way) => found.extend(elsewhere(way)),
                End::Branch { taken, fall } => {
                    found.extend(elsewhere(taken).into_iter().chain(elsewhere(fall)));
                }
                End::Call | End::Leave => {}
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(LinkAddr).collect()
    }
}

/// Of the flags that are written, those that matter before an instruction.
fn before(instruction: &Instruction, behind: u32, written: u32) -> u32 {
    let kept = match may_leave_flags(instruction) {
        true => behind,
        false => behind & !instruction.rflags_modified(),
    };
    (kept | instruction.rflags_read()) & written
}

/// Do any flags matter before these instructions, behind which these do?
pub fn matter_before(code: &[Instruction], behind: u32, written: u32) -> bool {
    // Keyed probes write all flags: where nobody looked at all of them, they are kept.
    let are_all = written == Adding::Sum.written();
    let first = code
        .iter()
        .rfold(behind, |flags, it| before(it, flags, written));
    !are_all || first != 0
}

/// Does a routine look like one whose callers know that it changes no flags? They may be where
/// nobody looks. Short ones are many, and no such function is short: they need not pay for it.
fn changes_none(blocks: &[Block]) -> bool {
    const SHORT: usize = 16;
    let mut all = blocks.iter().flat_map(|block| &block.code);
    let is_short = all.clone().nth(SHORT).is_none();
    !is_short && all.all(|it| it.rflags_modified() == 0)
}

/// Does it leave the flags alone if it has nothing to do? A shift by nothing does, and a repeated
/// comparison of nothing.
fn may_leave_flags(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic as M;
    let is_shift = matches!(
        instruction.mnemonic(),
        M::Shl | M::Sal | M::Shr | M::Sar | M::Shld | M::Shrd | M::Rol | M::Ror | M::Rcl | M::Rcr
    );
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    is_shift || repeats || instruction.code() == Code::INVALID
}
