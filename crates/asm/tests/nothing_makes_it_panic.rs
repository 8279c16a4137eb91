//! Invariant 7: no parser panics, whatever the bytes. Real compiler output, damaged at random in
//! fixed ways, goes through everything that reads text or maps.

use std::fs;
use std::path::Path;
use std::process::Command;

use headcount_asm::map::{self, Record};
use headcount_asm::{Counted, Options, Source};
use headcount_model::{BlockId, Place, Plan};

/// A small generator of numbers that look random (xorshift; any would do).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// What gcc makes of some of the programs in `tests/programs`.
fn compiler_output() -> Vec<String> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let mut texts = Vec::new();
    for (name, compiler) in [
        ("a_switch_with_a_jump_table.c", "gcc"),
        ("a_loop_inside_inline_assembly.c", "gcc"),
        ("exception_passes_destructors.cc", "g++"),
        ("setjmp_returns_three_times.c", "gcc"),
    ] {
        for level in ["-O0", "-O2"] {
            let output = Command::new(compiler)
                .args(["-S", "-g", "-w", level, "-o", "-"])
                .arg(programs.join(name))
                .output()
                .expect("gcc runs");
            assert!(output.status.success(), "{name} does not compile");
            texts.push(String::from_utf8(output.stdout).expect("gcc writes text"));
        }
    }
    let by_hand = programs.join("an_assembler_program.s");
    texts.push(fs::read_to_string(by_hand).expect("the program is there"));
    texts
}

/// Reads a text, and puts a counter into every block of what it finds.
fn count_every_block(text: &str) -> Option<String> {
    let options = Options {
        name: "damaged.s".to_owned(),
    };
    let source = Source::parse(text, &options).ok()?;
    let (units, refusals) = headcount_asm::units(&source);
    let counted: Vec<_> = units
        .into_iter()
        .map(|unit| Counted {
            plan: Plan {
                counters: (0..unit.graph.blocks)
                    .map(|block| Place::Block(BlockId(block)))
                    .collect(),
            },
            unit,
        })
        .collect();
    Some(headcount_asm::insert(
        &source,
        &counted,
        &refusals,
        headcount_asm::Keeper::Runtime(""),
        "/",
    ))
}

/// Lines lost, doubled, swapped and cut, letters changed.
fn damaged(text: &str, dice: &mut Dice) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + dice.below(12) {
        let at = dice.below(lines.len());
        match dice.below(6) {
            0 => _ = lines.remove(at),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let other = dice.below(lines.len());
                lines.swap(at, other);
            }
            3 => {
                let keep = dice.below(lines[at].len() + 1);
                lines[at] = lines[at].chars().take(keep).collect();
            }
            4 => {
                let odd = ['"', '\'', ';', '#', ':', '@', '%', '(', '\0', 'é', '*', '.'];
                let letter = odd[dice.below(odd.len())];
                lines[at].push(letter);
            }
            _ => {
                let words = [
                    "#APP",
                    "#NO_APP",
                    "1:",
                    "jmp 1b",
                    "\t.popsection",
                    "\tcall .L2",
                    "/* ",
                ];
                lines.insert(at, words[dice.below(words.len())].to_owned());
            }
        }
        if lines.is_empty() {
            lines.push(String::new());
        }
    }
    lines.join("\n")
}

#[test]
fn damaged_text_is_counted_or_refused() {
    for (number, text) in compiler_output().iter().enumerate() {
        let whole = count_every_block(text).expect("what gcc writes is readable");
        assert!(
            whole.contains("incq %gs:"),
            "program {number} is not counted"
        );
        for seed in 1..=150_u64 {
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ seed);
            let text = damaged(text, &mut dice);
            if let Some(counted) = count_every_block(&text) {
                assert!(counted.len() >= text.len(), "program {number}, seed {seed}");
            }
        }
    }
}

#[test]
fn inserted_text_stands_on_lines_that_were_there() {
    for text in compiler_output()
        .iter()
        .filter(|text| !text.contains("#APP"))
    {
        let counted = count_every_block(text).expect("what gcc writes is readable");
        for (before, after) in text.lines().zip(counted.lines()) {
            let word = before.split_whitespace().next().unwrap_or_default();
            assert!(after.contains(word), "{before:?} became {after:?}");
        }
    }
}

/// A section made by hand: one function of one block, as the assembler would lay it out.
fn small_section() -> Vec<u8> {
    let mut body = vec![map::UNIT];
    body.extend(0x4000_u64.to_le_bytes());
    body.extend(1_u32.to_le_bytes());
    body.extend(1_u32.to_le_bytes());
    body.extend(0x1000_u64.to_le_bytes());
    body.extend(1_u32.to_le_bytes());
    body.extend(0_u32.to_le_bytes());
    body.extend(4_u32.to_le_bytes());
    // One part "f", not cold, no source; no files; one block of part 0 with one span without rows;
    // two edges, in and out; one counter, in block 0.
    body.extend([1, 1, b'f', 0, 0, 0, 1, 0, 1, 0, 2, 0, 1, 0, 1, 0, 5, 1, 0]);
    let mut section = map::MAGIC.to_le_bytes().to_vec();
    section.extend((body.len() as u32 + 8).to_le_bytes());
    section.extend(body);
    section
}

#[test]
fn damaged_maps_are_refused() {
    let whole = small_section();
    let records = map::decode(&whole).expect("the whole map is readable");
    let [Record::Unit(unit)] = records.as_slice() else {
        panic!("one function, and nothing else");
    };
    assert_eq!(unit.parts[0].name, "f");
    assert_eq!(unit.blocks[0].spans[0].length, 4);
    for length in 1..whole.len() {
        assert!(
            map::decode(&whole[..length]).is_err(),
            "cut off at {length}"
        );
    }
    let mut dice = Dice(1984);
    for _ in 0..200_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(bytes.len());
            bytes[at] = dice.below(256) as u8;
        }
        // Whatever it says, it comes back; and what it takes for a map is one.
        for record in map::decode(&bytes).unwrap_or_default() {
            if let Record::Unit(unit) = record {
                assert_eq!(unit.graph.blocks as usize, unit.blocks.len());
            }
        }
    }
}
