//! Random expressions of random values: a C compiler computes them in the program, a probe beside it.

use super::stated::agree;
use crate::workshop::{Workshop, is_thorough};

/// The same numbers in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len())]
    }
}

/// An expression in the words of `--tally`, how tightly it binds, and the same in C.
struct Both {
    asked: String,
    level: usize,
    c: String,
}

/// Sign, level, and the function that the C program has for it.
const OPERATORS: [(&str, usize, &str); 16] = [
    ("|", 0, "or"),
    ("^", 1, "xor"),
    ("&", 2, "and"),
    ("==", 3, "is"),
    ("!=", 3, "is_not"),
    ("<", 4, "below"),
    ("<=", 4, "at_most"),
    (">", 4, "above"),
    (">=", 4, "at_least"),
    ("<<", 5, "left"),
    (">>", 5, "right"),
    ("+", 6, "add"),
    ("-", 6, "sub"),
    ("*", 7, "mul"),
    ("/", 7, "quotient"),
    ("%", 7, "rest"),
];

const TIGHTEST: usize = 8;

/// Registers and parts of them, by C's name of the argument.
const NAMES: [(&str, &str); 16] = [
    ("arg1", "a"),
    ("rdi", "a"),
    ("edi", "(unsigned)a"),
    ("dil", "(unsigned char)a"),
    ("arg2", "b"),
    ("rsi", "b"),
    ("esi", "(unsigned)b"),
    ("arg3", "c"),
    ("rdx", "c"),
    ("dl", "(unsigned char)c"),
    ("arg4", "d"),
    ("cx", "(unsigned short)d"),
    ("arg5", "e"),
    ("r8d", "(unsigned)e"),
    ("r8", "e"),
    ("arg7", "g"),
];

const WIDTHS: [(&str, &str); 8] = [
    ("u8", "unsigned char"),
    ("i8", "signed char"),
    ("u16", "unsigned short"),
    ("i16", "short"),
    ("u32", "unsigned"),
    ("i32", "int"),
    ("u64", "long"),
    ("i64", "long"),
];

fn leaf(dice: &mut Dice) -> Both {
    if dice.roll(3) == 0 {
        let number = match dice.roll(4) {
            0 => dice.roll(10) as u64,
            1 => 1 << dice.roll(64),
            2 => dice.roll(1 << 20) as u64,
            _ => dice.0,
        };
        let asked = match dice.roll(3) {
            0 => format!("{number:#x}"),
            1 => format!("{number:#b}"),
            _ => number.to_string(),
        };
        let c = format!("(long){number:#x}ul");
        return Both {
            asked,
            level: TIGHTEST,
            c,
        };
    }
    let (asked, c) = dice.one_of(&NAMES);
    Both {
        asked: asked.to_owned(),
        level: TIGHTEST,
        c: format!("(long)({c})"),
    }
}

fn bracketed(it: Both, is_needed: bool) -> (String, String) {
    match is_needed {
        true => (format!("({})", it.asked), it.c),
        false => (it.asked, it.c),
    }
}

fn expression(dice: &mut Dice, depth: usize) -> Both {
    if depth == 0 || dice.roll(6) == 0 {
        return leaf(dice);
    }
    match dice.roll(10) {
        0 | 1 => unary(dice, depth),
        2 => load(dice, depth),
        _ => binary(dice, depth),
    }
}

fn unary(dice: &mut Dice, depth: usize) -> Both {
    if dice.roll(3) == 0 {
        return cast(dice, depth);
    }
    let (sign, function) = dice.one_of(&[("-", "negative"), ("~", "complement"), ("!", "no")]);
    let of = expression(dice, depth - 1);
    let needs = of.level < TIGHTEST;
    let (of, c) = bracketed(of, needs);
    Both {
        asked: format!("{sign}{of}"),
        level: TIGHTEST,
        c: format!("{function}({c})"),
    }
}

fn cast(dice: &mut Dice, depth: usize) -> Both {
    let (width, kind) = dice.one_of(&WIDTHS);
    let of = expression(dice, depth - 1);
    Both {
        asked: format!("{width}({})", of.asked),
        level: TIGHTEST,
        c: format!("(long)({kind})({})", of.c),
    }
}

/// Of the program's numbers, or of what nobody has mapped.
fn load(dice: &mut Dice, depth: usize) -> Both {
    let (width, kind) = dice.one_of(&WIDTHS);
    let offset = expression(dice, depth - 1);
    let needs = offset.level < 3;
    let (offset, c) = bracketed(offset, needs);
    let (base, c_base) = match dice.roll(12) {
        0 => ("0x100", "(long)0x100"),
        _ => ("arg6", "(long)numbers"),
    };
    Both {
        asked: format!("{width}[{base} + ({offset} & 63)]"),
        level: TIGHTEST,
        c: format!("LOAD({kind}, {c_base}, and({c}, 63))"),
    }
}

fn binary(dice: &mut Dice, depth: usize) -> Both {
    let (sign, level, function) = dice.one_of(&OPERATORS);
    let left = expression(dice, depth - 1);
    let right = expression(dice, depth - 1);
    let needs = left.level < level || dice.roll(8) == 0;
    let (left, c_left) = bracketed(left, needs);
    let needs = right.level <= level;
    let (right, c_right) = bracketed(right, needs);
    let space = dice.one_of(&["", " "]);
    Both {
        asked: format!("{left}{space}{sign}{space}{right}"),
        level,
        c: format!("{function}({c_left}, {c_right})"),
    }
}

/// A key as it is asked for, and how the program notes it.
fn key(dice: &mut Dice, name: &str, depth: usize) -> (String, String) {
    let it = expression(dice, depth);
    let (asked, c) = (it.asked, it.c);
    match dice.roll(6) {
        0 => (
            format!("log2({asked})"),
            format!("SEE({name}, NUMBER, power({c}))"),
        ),
        1 => {
            let width = 1 + dice.roll(1000);
            (
                format!("linear({asked}, {width})"),
                format!("SEE({name}, NUMBER, floored({c}, {width}))"),
            )
        }
        2 => {
            let least = dice.roll(2000) as i64 - 1000;
            let end = least + 1 + dice.roll(1000) as i64;
            (
                format!("range({asked}, {least}..{end})"),
                format!("WITHIN({name}, {c}, {least}, {end})"),
            )
        }
        _ => (asked, format!("SEE({name}, NUMBER, {c})")),
    }
}

/// What the operators mean, in C's own words where C has a meaning.
const MEANINGS_C: &str = r#"
#include <limits.h>
#include "seen.h"

typedef unsigned long word;
static int bad;

static long or(long x, long y) { return x | y; }
static long xor(long x, long y) { return x ^ y; }
static long and(long x, long y) { return x & y; }
static long is(long x, long y) { return x == y; }
static long is_not(long x, long y) { return x != y; }
static long below(long x, long y) { return x < y; }
static long at_most(long x, long y) { return x <= y; }
static long above(long x, long y) { return x > y; }
static long at_least(long x, long y) { return x >= y; }
static long left(long x, long y) { return (word)x << (y & 63); }
static long right(long x, long y) { return (word)x >> (y & 63); }
static long add(long x, long y) { return (word)x + (word)y; }
static long sub(long x, long y) { return (word)x - (word)y; }
static long mul(long x, long y) { return (word)x * (word)y; }
static int has_none(long x, long y) { return !y || (x == LONG_MIN && y == -1); }
static long quotient(long x, long y) { return has_none(x, y) ? (bad = 1) : x / y; }
static long rest(long x, long y) { return has_none(x, y) ? (bad = 1) : x % y; }
static long negative(long x) { return -(word)x; }
static long complement(long x) { return ~x; }
static long no(long x) { return !x; }
static long power(long x) { return x ? 63 - __builtin_clzl(x) : -1; }
static long floored(long x, long width)
{
    __int128 down = x / width;
    if (x % width < 0)
        down--;
    return down * width;
}

#define LOAD(type, base, offset) \
    ({ type it = 0; long o = offset; \
       if (base < 4096) bad = 1; else memcpy(&it, (char *)base + o, sizeof it); (long)it; })
#define SEE(name, kind, it) \
    do { bad = 0; long key = it; saw(#name, bad ? UNREADABLE : kind, bad ? 0 : key, 0); } while (0)
#define WITHIN(name, it, least, end) \
    do { bad = 0; long key = it; \
         int kind = bad ? UNREADABLE : key < (least) ? BELOW : key >= (end) ? ABOVE : NUMBER; \
         saw(#name, kind, kind ? 0 : key, 0); } while (0)

static unsigned char numbers[80];

__attribute__((noipa))
long look(long a, long b, long c, long d, long e, unsigned char *f, long g)
{
    return a + b + c + d + e + *f + g;
}

static long value(word *seed)
{
    long it = dice(seed) << 42 ^ dice(seed) << 21 ^ dice(seed);
    switch (dice(seed) % 6) {
    case 0: return it;
    case 1: return it & 7;
    case 2: return -(it & 7);
    case 3: return 1ul << (it & 63);
    case 4: return it & 1 ? LONG_MIN : LONG_MAX;
    default: return (it & 0xfff) - 0x800;
    }
}
"#;

/// A program with so many random expressions.
fn program(seed: u64, expressions: usize, depth: usize) -> String {
    let mut dice = Dice(seed);
    let (mut stated, mut notes) = (String::new(), String::new());
    for number in 0..expressions {
        let name = format!("e{number}");
        let (asked, note) = key(&mut dice, &name, depth);
        stated += &format!("//~ {name}: look({asked})\n");
        notes += &format!("    {note};\n");
    }
    format!(
        "{stated}{MEANINGS_C}
static void see(long a, long b, long c, long d, long e, long g)
{{
{notes}}}

int main(void)
{{
    word seed = {seed};
    for (unsigned i = 0; i < sizeof numbers; i++)
        numbers[i] = dice(&seed);
    for (int i = 0; i < 80; i++) {{
        long a = value(&seed), b = value(&seed), c = value(&seed), d = value(&seed);
        long e = value(&seed), g = value(&seed);
        see(a, b, c, d, e, g);
        look(a, b, c, d, e, numbers, g);
    }}
    tell();
    return 0;
}}
"
    )
}

#[test]
fn random_expressions_are_what_a_c_compiler_makes_of_them() {
    let programs = if is_thorough() { 200 } else { 3 };
    for seed in 1..=programs {
        let shop = Workshop::new();
        let depth = 2 + seed as usize % 3;
        shop.write("guessed.c", program(seed, 30, depth));
        agree(&shop, &[shop.path("guessed.c")], "-O1", &[]);
    }
}
