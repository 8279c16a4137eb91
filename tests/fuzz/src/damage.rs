//! How files are damaged.

use std::ops::Range;

/// A small generator of numbers that look random (xorshift; any would do).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(0x9e37_79b9_7f4a_7c15 ^ (seed.wrapping_add(1) << 17 | 1));
        (0..8).for_each(|_| _ = dice.below(2));
        dice
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Names that nobody expects of a file. The pipe is in every folder.
const NAMES: [&str; 18] = [
    "pipe",
    "pipe",
    "./pipe",
    "/dev/zero",
    "/dev/tty",
    "/dev/full",
    "/proc/self/mem",
    "/proc/kmsg",
    "/proc/self/fd/0",
    "/",
    ".",
    "..",
    "",
    "../../../../../../etc/shadow",
    "loop",
    "a\nb",
    "-",
    "\u{1b}]0;title\u{7}",
];

/// Numbers at the edge of something.
const NUMBERS: [u64; 9] = [
    0,
    1,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    u64::MAX,
];

/// The same with a few things wrong, but nothing within `fixed`.
pub fn damaged(whole: &[u8], fixed: Range<usize>, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..1 + dice.below(4) {
        if bytes.len() <= fixed.end {
            break;
        }
        let at = loop {
            let at = dice.below(bytes.len());
            if !fixed.contains(&at) {
                break at;
            }
        };
        match dice.below(12) {
            0 if at >= fixed.end => bytes.truncate(at),
            1..=3 => bytes[at] ^= 1 << dice.below(8),
            4..=5 => number(&mut bytes, at, dice),
            6 => decimal(&mut bytes, at, dice),
            7..=9 => name(&mut bytes, &fixed, dice),
            10 => zeros(&mut bytes, at, dice),
            _ => piece(&mut bytes, at, &fixed, dice),
        }
    }
    bytes
}

fn number(bytes: &mut [u8], at: usize, dice: &mut Dice) {
    let number = NUMBERS[dice.below(NUMBERS.len())].to_le_bytes();
    let width = [1, 2, 4, 8][dice.below(4)];
    for (byte, new) in bytes[at..].iter_mut().zip(&number[..width]) {
        *byte = *new;
    }
}

/// Digits, as in a journal, become others, or many.
fn decimal(bytes: &mut Vec<u8>, at: usize, dice: &mut Dice) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let start = at + start;
    let length = bytes[start..]
        .iter()
        .take_while(|it| it.is_ascii_digit())
        .count();
    let number = NUMBERS[dice.below(NUMBERS.len())].to_string();
    bytes.splice(start..start + length, number.into_bytes());
}

/// Something that looks like the name of a file becomes another name. In texts the rest moves;
/// elsewhere it stays, and a zero ends the name, or it is made as long as it was.
fn name(bytes: &mut Vec<u8>, fixed: &Range<usize>, dice: &mut Dice) {
    let mut names = names(bytes);
    names.retain(|it| it.end <= fixed.start || it.start >= fixed.end);
    if names.is_empty() {
        return;
    }
    let Range { start, end } = names[dice.below(names.len())].clone();
    let new = NAMES[dice.below(NAMES.len())].as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(_) => drop(bytes.splice(start..end, new.iter().copied())),
        Err(_) => {
            let new = match dice.below(2) {
                0 => lengthened(new, end - start),
                _ => new.to_vec(),
            };
            let fits = new.len().min(end - start);
            bytes[start..start + fits].copy_from_slice(&new[..fits]);
            bytes[start + fits..end].fill(0);
        }
    }
}

/// Another way to write the same path.
fn lengthened(name: &[u8], length: usize) -> Vec<u8> {
    let more = length.saturating_sub(name.len());
    let mut longer = vec![b'/'; more];
    if more > 0 && !name.starts_with(b"/") {
        longer[0] = b'.';
    }
    longer.extend(name);
    longer
}

/// Where names of files may be: words with a dot or a slash.
fn names(bytes: &[u8]) -> Vec<Range<usize>> {
    let is_name = |it: &u8| it.is_ascii_alphanumeric() || b"/._-".contains(it);
    let mut found = Vec::new();
    let mut at = 0;
    for word in bytes.split(|it| !is_name(it)) {
        if word.len() > 3 && (word.contains(&b'/') || word.contains(&b'.')) {
            found.push(at..at + word.len());
        }
        at += word.len() + 1;
    }
    found
}

fn zeros(bytes: &mut [u8], at: usize, dice: &mut Dice) {
    let length = dice.below(64).min(bytes.len() - at);
    bytes[at..at + length].fill(0);
}

/// A piece of the file appears a second time.
fn piece(bytes: &mut [u8], at: usize, fixed: &Range<usize>, dice: &mut Dice) {
    let from = dice.below(bytes.len());
    let length = dice
        .below(256)
        .min(bytes.len() - from)
        .min(bytes.len() - at);
    if at < fixed.end && at + length > fixed.start {
        return;
    }
    let copy = bytes[from..from + length].to_vec();
    bytes[at..at + length].copy_from_slice(&copy);
}
