//! System calls in a copy: most are nobody's business but the program's, and stay as fast.
//!
//! The copy looks the number up in a table behind `gs` before it makes the call, and traps if that
//! says so. `rcx` and `r11` are free there, for the kernel overwrites both; the flags are not.

/// Where the table is, from the base of `gs` on: one byte for each number that the lower half of
/// `eax` can hold, 1 if the call is to trap. In front of it is the thread's scratch, and behind it
/// are the counters.
pub const CALL_TABLE: u32 = 64;

/// How long it is.
pub const CALL_TABLE_BYTES: u32 = 1 << 16;

/// A system call that is made from a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCall {
    /// Where it is in the original.
    pub original: u32,
    /// Where the copy begins to look at it.
    pub copy: u32,
}

impl SystemCall {
    /// Where the copy traps.
    pub fn trap(self) -> u32 {
        let before: usize = LOOK[..TRAP].iter().map(|it| it.len()).sum();
        self.copy + before as u32
    }

    /// Where the copy goes on behind the call.
    pub fn behind(self) -> u32 {
        let all: usize = LOOK.iter().map(|it| it.len()).sum();
        self.copy + all as u32 + 2
    }
}

const TABLE: [u8; 4] = CALL_TABLE.to_le_bytes();

/// Which of these instructions traps.
const TRAP: usize = 3;

/// What comes before the call.
pub const LOOK: [&[u8]; 4] = [
    &[0x44, 0x0f, 0xb7, 0xd8], // movzx r11d, ax
    &[
        0x65, 0x41, 0x0f, 0xb6, 0x8b, TABLE[0], TABLE[1], TABLE[2], TABLE[3],
    ], // movzx ecx, byte ptr gs:[r11 + table]
    &[0xe3, 0x01],             // jrcxz, over the next
    &[0xcc],                   // int3
];
