//! Where may a probe change the flags?

use headcount_model::LinkAddr;
use iced_x86::{Code, Instruction, RflagsBits};

use crate::sketch::{Block, End, Target, Way};

/// The flags that `inc` writes.
const WRITTEN: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;

/// Which flags matter in a routine.
pub struct Flags {
    /// Where each block begins.
    starts: Vec<u32>,
    /// Behind its last instruction.
    ends: Vec<u32>,
    /// Where the routine returns.
    at_return: u32,
}

impl Flags {
    /// `are_kept`: somebody asks for those that the routine leaves.
    pub fn of(blocks: &[Block], are_kept: bool) -> Self {
        let at_return = match are_kept || changes_none(blocks) {
            true => WRITTEN,
            false => 0,
        };
        // A call hands flags over if they are asked for where it returns to. By the System V ABI
        // (3.2.1) they are not; but those who write assembly may answer by flags, and Go's compiler
        // knows that its `runtime.duffzero` changes none, and keeps some across the call.
        let asked_for = Self::found(blocks, at_return, 0, |starts, next| {
            starts.get(next).copied().unwrap_or(0)
        });
        // Jumps to other routines may hand them over: they may be parts of the same function.
        Self::found(blocks, at_return, WRITTEN, |_, next| {
            asked_for.starts.get(next).copied().unwrap_or(0)
        })
    }

    /// Those that matter, given those that matter elsewhere, and behind a call.
    fn found(
        blocks: &[Block],
        at_return: u32,
        elsewhere: u32,
        behind_call: impl Fn(&[u32], usize) -> u32,
    ) -> Self {
        let mut starts = vec![0; blocks.len()];
        let mut ends = starts.clone();
        loop {
            let mut has_changed = false;
            for (number, block) in blocks.iter().enumerate().rev() {
                let of = |way: Way| match way.to {
                    Target::Block(block) => starts[block as usize],
                    Target::Elsewhere(_) => elsewhere,
                };
                let end = match block.end {
                    End::Fall(way) | End::Jump(way) => of(way),
                    End::Branch { taken, fall } => of(taken) | of(fall),
                    End::Call => behind_call(&starts, number + 1),
                    End::Leave => at_return,
                };
                let start = block.code.iter().rfold(end, |flags, it| before(it, flags));
                has_changed |= (starts[number], ends[number]) != (start, end);
                (starts[number], ends[number]) = (start, end);
            }
            if !has_changed {
                return Self {
                    starts,
                    ends,
                    at_return,
                };
            }
        }
    }

    /// Puts every block's probe where no flags matter.
    pub fn choose_sites(&self, blocks: &mut [Block]) {
        let flags = self.starts.iter().zip(&self.ends);
        for (block, (start, end)) in blocks.iter_mut().zip(flags) {
            block.start_is_careful = *start != 0;
            block.end_is_careful = *end != 0;
            let mut best = None;
            let mut flags = *end;
            for (index, instruction) in block.code.iter().enumerate().rev() {
                flags = before(instruction, flags);
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

/// Does a routine look like one whose callers know that it changes no flags? They may be where
/// nobody looks. Short ones are many, and no such function is short: they need not pay for it.
fn changes_none(blocks: &[Block]) -> bool {
    const SHORT: usize = 16;
    let mut all = blocks.iter().flat_map(|block| &block.code);
    let is_short = all.clone().nth(SHORT).is_none();
    !is_short && all.all(|it| it.rflags_modified() == 0)
}

/// The flags that matter before an instruction, given those that matter behind it.
fn before(instruction: &Instruction, behind: u32) -> u32 {
    let kept = match may_leave_flags(instruction) {
        true => behind,
        false => behind & !instruction.rflags_modified(),
    };
    (kept | instruction.rflags_read()) & WRITTEN
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
