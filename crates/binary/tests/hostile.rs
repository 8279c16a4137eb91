//! No bytes make the reader panic, and what it cannot read it names.

mod workshop;

use std::sync::Arc;

use headcount_binary::{
    Error, FileBytes, Outline, Wanted, code_symbols, inline_chains, layout, read,
};
use headcount_model::LinkAddr;
use workshop::Workshop;

fn error(bytes: &[u8]) -> String {
    read("x", bytes, &mut |_| None).unwrap_err().to_string()
}

fn small(workshop: &Workshop) -> Vec<u8> {
    workshop.write(
        "small.cc",
        "#include <stdlib.h>\nint f(int n) { switch (n) { case 0: return 3; case 1: throw 1; \
         case 2: return rand(); case 3: abort(); case 4: return 9; case 5: exit(1); } return 1; }\n\
         int main(int argc, char **argv) { try { return f(argc); } catch (...) { return 2; } }\n",
    );
    workshop.run("g++ -g -O1 -o small small.cc");
    workshop.bytes("small")
}

#[test]
fn what_is_no_program_is_named() {
    let workshop = Workshop::new();
    let good = small(&workshop);
    assert!(error(b"#!/bin/sh\n").contains("script"));
    assert!(error(b"").contains("empty"));
    assert!(error(b"hello").contains("no ELF file"));
    assert!(error(&good[..40]).contains("damaged"));
    assert!(error(&good[..good.len() / 3]).contains("damaged"));
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    assert!(error(&with(18, 183)).contains("AArch64"));
    assert!(error(&with(18, 3)).contains("32-bit x86"));
    assert_eq!(read("x", &with(4, 1), &mut |_| None), Err(Error::Narrow));
    assert!(error(&with(16, 1)).contains("not linked"));
    workshop.run("objcopy --only-keep-debug small small.debug");
    assert_eq!(
        read("x", &workshop.bytes("small.debug"), &mut |_| None),
        Err(Error::NoCode)
    );
    let layout = layout(&good).unwrap();
    assert!(layout.position_independent);
    assert!(layout.interpreter.unwrap().contains("ld-linux"));
    assert!(
        layout
            .segments
            .iter()
            .any(|it| it.executable && !it.writable)
    );
}

/// A small generator of numbers (Marsaglia's xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

#[test]
fn no_damage_makes_it_panic() {
    let workshop = Workshop::new();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    survives_damage(&small(&workshop), &mut dice);
    for edition in ["0xfb", "0xf1"] {
        survives_damage(&with_go_table(&workshop, edition), &mut dice);
    }
}

fn with_go_table(workshop: &Workshop, edition: &str) -> Vec<u8> {
    workshop.write("table.s", include_str!("programs/go_table.s"));
    workshop.run(&format!("as --defsym EDITION={edition} -o table.o table.s"));
    workshop.run("ld -pie --no-dynamic-linker -s -o table table.o");
    workshop.bytes("table")
}

fn survives_damage(good: &[u8], dice: &mut Dice) {
    for round in 0..2000 {
        let mut bytes = good.to_vec();
        for _ in 0..=dice.roll(12) {
            // Headers decide most, so half of the damage goes there.
            let at = match dice.roll(4) {
                0 => dice.roll(0x400),
                1 => bytes.len() - 1 - dice.roll(0x900),
                _ => dice.roll(bytes.len()),
            };
            let value = [0, 1, 0x7f, 0x80, 0xff, dice.roll(256) as u8][dice.roll(6)];
            let length = [1, 1, 2, 4, 8][dice.roll(5)];
            for byte in bytes.iter_mut().skip(at).take(length) {
                *byte = value;
            }
        }
        if round % 7 == 0 {
            bytes.truncate(dice.roll(bytes.len()));
        }
        let other = good.to_vec();
        let mut find = |_: Wanted<'_>| Some(Arc::new(other.clone()) as FileBytes);
        let _ = read("damaged", &bytes, &mut find);
        let _ = code_symbols(&bytes);
        let addresses: Vec<LinkAddr> = (0x1000..0x1400).map(LinkAddr).collect();
        if let Ok(chains) = inline_chains(&bytes, &addresses) {
            assert_eq!(chains.len(), addresses.len());
        }
        if let Ok(outline) = Outline::read(Arc::new(bytes), &mut find) {
            ask_everything(outline, dice);
        }
    }
}

fn ask_everything(mut outline: Outline, dice: &mut Dice) {
    let mut asked = Vec::new();
    for at in outline.starts().to_vec() {
        if let Ok(found) = outline.routine(LinkAddr(at), &asked) {
            if let Ok(routine) = found.routine {
                assert_eq!(routine.start, LinkAddr(at));
            }
            for at in &found.unknown_code {
                outline.add_called(*at);
            }
            asked = found.leads_to;
        }
        let near = at.wrapping_add(dice.roll(64) as u64);
        outline.add_called(LinkAddr(near));
        asked.push(LinkAddr(near));
        let _ = outline.routine(LinkAddr(near), &asked);
    }
    for at in outline.explore().return_points {
        assert!(outline.part_at(LinkAddr(at)).is_some());
    }
}

/// 100,000 functions that share a name of a million letters, and a list of a million numbers.
const MUCH_SHARED: &str = "
        .globl  _start
_start: ret
        .section .gopclntab, \"a\"
table:  .byte   0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8
        .quad   100000, 0, _start, name - table, 0, 0, numbers - table, list - table
list:   .rept   100000
        .long   0, record - list
        .endr
        .long   1
record: .long   0, 0, 0, 0, 1
numbers:
        .byte   0
        .fill   1000000, 1, 1
        .byte   0
name:   .fill   1000000, 1, 'a'
        .byte   0
";

#[test]
fn what_is_shared_in_go_tables_is_not_read_forever() {
    let workshop = Workshop::new();
    workshop.write("shared.s", MUCH_SHARED);
    workshop.run("as -o shared.o shared.s && ld -s -o shared shared.o");
    let binary = workshop.read("shared");
    let names = binary.module.functions.iter().map(|it| it.name.len());
    assert_eq!(names.collect::<Vec<_>>(), [1_000_000]);
    let outline = Outline::read(Arc::new(workshop.bytes("shared")), &mut |_| None).unwrap();
    assert_eq!(outline.starts().len(), 1);
}
