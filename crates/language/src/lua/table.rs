//! The table of what does each instruction: 83 addresses in the main function.

use std::ops::RangeInclusive;

use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};

use super::opcodes::COUNT;
use crate::program::Program;

/// The main function is no longer, however it was compiled.
const LONGEST: u64 = 1 << 16;

/// A table that may be the one: where it is, what is in it, and which instructions speak of it.
pub(super) struct Candidate {
    pub(super) at: u64,
    pub(super) handlers: Vec<u64>,
    pub(super) users: Vec<u64>,
}

/// The tables that may be the one.
pub(super) fn candidates(program: &Program<'_>) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (start, bytes) in program.data() {
        let words: Vec<u64> = (0..bytes.len() / 8)
            .map(|it| program.word_in(start, bytes, it))
            .collect();
        for run in words.chunk_by(|one, other| program.is_code(*one) == program.is_code(*other)) {
            if run.len() < COUNT || !program.is_code(run[0]) {
                continue;
            }
            let first = (run.as_ptr() as usize - words.as_ptr() as usize) / size_of::<u64>();
            for (index, handlers) in run.windows(COUNT).enumerate() {
                let at = start + 8 * (first + index) as u64;
                found.extend(candidate(program, at, handlers));
            }
        }
    }
    found
}

fn candidate(program: &Program<'_>, at: u64, handlers: &[u64]) -> Option<Candidate> {
    let (least, most) = (handlers.iter().min()?, handlers.iter().max()?);
    if most - least > LONGEST {
        return None;
    }
    let users = users(program, at);
    (!users.is_empty()).then(|| Candidate {
        at,
        handlers: handlers.to_vec(),
        users,
    })
}

/// How far before its last four bytes an instruction may begin that has an address there.
const BEFORE: RangeInclusive<u64> = 1..=4;

/// The instructions that speak of an address, as a number or as a distance from where they are.
fn users(program: &Program<'_>, address: u64) -> Vec<u64> {
    let mut users = Vec::new();
    for (start, bytes) in program.code() {
        for (index, four) in bytes.windows(4).enumerate() {
            let number = i32::from_le_bytes([four[0], four[1], four[2], four[3]]);
            let at = start + index as u64;
            let relative = (at + 4).wrapping_add_signed(number.into());
            if relative != address && i64::from(number).cast_unsigned() != address {
                continue;
            }
            let begins = BEFORE.filter_map(|it| at.checked_sub(it));
            let begins =
                begins.filter(|it| *it >= start && speaks_of(program, *it, at + 4, address));
            users.extend(begins.max_by_key(|it| arrivals(program, start, *it)));
        }
    }
    users
}

/// From how many places before an address decoding comes to it: what begins there is no part of another
/// instruction.
fn arrivals(program: &Program<'_>, start: u64, at: u64) -> usize {
    const FARTHEST: u64 = 48;
    let first = at.saturating_sub(FARTHEST).max(start);
    let comes = |from: &u64| {
        let Some(bytes) = program.bytes(*from) else {
            return false;
        };
        let bytes = &bytes[..bytes.len().min((at - from) as usize + 15)];
        let mut decoder = Decoder::with_ip(64, bytes, *from, DecoderOptions::NONE);
        while decoder.ip() < at && decoder.can_decode() {
            let _ = decoder.decode();
        }
        decoder.ip() == at
    };
    (first..at).filter(comes).count()
}

/// Does an instruction that ends there speak of an address, other than to read the word there?
fn speaks_of(program: &Program<'_>, at: u64, end: u64, address: u64) -> bool {
    let Some(bytes) = program.bytes(at) else {
        return false;
    };
    let bytes = &bytes[..bytes.len().min(15)];
    let it = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
    if it.is_invalid() || it.next_ip() != end {
        return false;
    }
    let mut numbers = (0..it.op_count()).filter_map(|operand| it.try_immediate(operand).ok());
    let is_lea = it.mnemonic() == Mnemonic::Lea;
    let has_index = it.memory_index() != Register::None;
    numbers.any(|it| it == address)
        || it.memory_displacement64() == address && (is_lea || has_index)
}
