//! Where may a probe change the flags?

use iced_x86::{Code, Instruction, RflagsBits};

/// The flags that `inc` writes.
pub const WRITTEN: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;

/// The flags that matter before an instruction, given those that matter behind it.
pub fn before(instruction: &Instruction, behind: u32) -> u32 {
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
