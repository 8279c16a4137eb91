//! System calls in a copy: most are nobody's business but the program's, and stay as fast.
//!
//! The copy looks the number up in a table behind `gs` before it makes the call, and traps if that
//! says so. Then it adds one to the cell of that number. `rcx` and `r11` are free there, for the kernel
//! overwrites both; the flags are not.
//!
//! A call that the kernel makes again by itself goes back to the `syscall` instruction and not to what
//! comes before it: it is counted once, as that instruction is.

use crate::spots::CounterNumber;

/// Where the table is, from the base of `gs` on: one byte for each number that the lower half of
/// `eax` can hold, 1 if the call is to trap. In front of it is the thread's scratch, and behind it
/// are the counters.
pub const CALL_TABLE: u32 = 64;

/// How long it is.
pub const CALL_TABLE_BYTES: u32 = 1 << 16;

/// So many numbers have a cell of their own, from 0 on: more than there are calls. All others share
/// the cell behind these.
pub const CALL_NUMBERS: u32 = 512;

/// The cell of call 0, as the number of a counter: the cells are behind the table.
pub const FIRST_CALL_CELL: CounterNumber = (CALL_TABLE + CALL_TABLE_BYTES) / 8;

/// What comes behind the cells begins here, from the base of `gs` on.
pub const BEHIND_CALL_CELLS: u32 = (FIRST_CALL_CELL + CALL_NUMBERS + 1) * 8;

/// Where the number of the cell is, counted from the first one, that a thread added to last.
pub const LAST_CALL: u32 = 32;

/// What is there if its thread stands before a call that was not counted.
pub const NO_CALL: u64 = u64::MAX;

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

    /// Where the copy makes the call: it was counted, and was not made yet.
    pub fn call(self) -> u32 {
        let all: usize = LOOK.iter().map(|it| it.len()).sum();
        self.copy + all as u32
    }

    /// Where the copy goes on behind the call.
    pub fn behind(self) -> u32 {
        self.call() + 2
    }
}

const TABLE: [u8; 4] = CALL_TABLE.to_le_bytes();
const CELLS: [u8; 4] = (FIRST_CALL_CELL * 8).to_le_bytes();
const LAST: [u8; 4] = LAST_CALL.to_le_bytes();
const OTHER: [u8; 4] = CALL_NUMBERS.to_le_bytes();

/// Which of these instructions traps.
const TRAP: usize = 3;

/// What comes before the call. The kernel looks at all of `eax`, so a number is below
/// [`CALL_NUMBERS`] if nothing, or 256, is left of `eax` without its last byte. It is the last of these
/// instructions that counts, so a thread that is moved away before it has counted nothing.
#[rustfmt::skip]
pub const LOOK: [&[u8]; 14] = [
    &[0x44, 0x0f, 0xb7, 0xd8], // movzx r11d, ax
    &[0x65, 0x41, 0x0f, 0xb6, 0x8b, TABLE[0], TABLE[1], TABLE[2], TABLE[3]],
                               // movzx ecx, byte ptr gs:[r11 + table]
    &[0xe3, 0x01],             // jrcxz, over the next
    &[0xcc],                   // int3
    &[0x89, 0xc1],             // mov ecx, eax
    &[0xb1, 0x00],             // mov cl, 0
    &[0xe3, 0x0e],             // jrcxz, over the next three
    &[0x8d, 0x89, 0x00, 0xff, 0xff, 0xff], // lea ecx, [rcx - 256]
    &[0xe3, 0x06],             // jrcxz, over the next
    &[0x41, 0xbb, OTHER[0], OTHER[1], OTHER[2], OTHER[3]], // mov r11d, other
    &[0x65, 0x4c, 0x89, 0x1c, 0x25, LAST[0], LAST[1], LAST[2], LAST[3]],
                               // mov gs:[last], r11
    &[0x65, 0x4a, 0x8b, 0x0c, 0xdd, CELLS[0], CELLS[1], CELLS[2], CELLS[3]],
                               // mov rcx, gs:[8 * r11 + cells]
    &[0x48, 0x8d, 0x49, 0x01], // lea rcx, [rcx + 1]
    &[0x65, 0x4a, 0x89, 0x0c, 0xdd, CELLS[0], CELLS[1], CELLS[2], CELLS[3]],
                               // mov gs:[8 * r11 + cells], rcx
];
