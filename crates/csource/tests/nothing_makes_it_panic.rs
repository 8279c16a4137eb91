//! Invariant 7: no parser panics, whatever the bytes. Real C, damaged at random in fixed ways, goes
//! through everything that reads text or maps.

use std::fs;
use std::path::Path;

use headcount_csource::map::{TextMap, decode, encode};
use headcount_csource::{
    Definitions, Dialect, Options, Probe, Source, every_block, insert, source_functions,
};

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

struct Silent;

impl Dialect for Silent {
    fn statement(&self, _: Probe, out: &mut String) {
        out.push_str("x;");
    }
    fn expression(&self, _: Probe, out: &mut String) {
        out.push('x');
    }
    fn declaration(&self, probe: Probe, out: &mut String) {
        self.statement(probe, out);
    }
    fn fall_through(&self) -> &str {
        ""
    }
    fn enter(&self) -> String {
        String::new()
    }
    fn enter_declaration(&self) -> String {
        self.enter()
    }
    fn around_fork(&self, _: &str) -> Option<(String, String)> {
        None
    }
}

fn programs() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "c"))
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Counts a text, and checks that all its own bytes are still there, in order.
fn count(text: &[u8], is_raw: bool) -> Option<TextMap> {
    let options = Options {
        name: "damaged.c".to_owned(),
        is_raw,
        ..Options::default()
    };
    let mut source = Source::parse(text, &options).ok()?;
    source.take_columns(0, text);
    let plans: Vec<_> = source.units.iter().map(every_block).collect();
    let counted = insert(&source, &plans, &Silent, None);
    let mut rest = counted.iter();
    assert!(text.iter().all(|byte| rest.any(|it| it == byte)));
    Some(TextMap::new(&source, &plans, "damaged.c", &[]))
}

fn damaged(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = text.to_vec();
    let pieces: [&[u8]; 14] = [
        b"(", b")", b"{", b"}", b"?", b":", b"&&", b"({", b"case", b";", b"\"", b"#", b"/*",
        b"else",
    ];
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        match dice.below(5) {
            0 => bytes.truncate(at),
            1 => bytes[at.min(text.len() - 1)..]
                .iter_mut()
                .take(1)
                .for_each(|it| *it = 0xff),
            2 => {
                let end = (at + dice.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            3 => {
                let end = (at + dice.below(60)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                let to = dice.below(bytes.len());
                bytes.splice(to..to, copy);
            }
            _ => {
                let piece = pieces[dice.below(pieces.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

#[test]
fn damaged_programs_are_read_or_refused() {
    let mut dice = Dice(0x5eed);
    let mut read = 0;
    for program in programs() {
        assert!(count(&program, false).is_some());
        for round in 0..150 {
            let text = damaged(&program, &mut dice);
            read += usize::from(count(&text, round % 2 == 0).is_some());
        }
    }
    assert!(
        read > 100,
        "damage is not so great that nothing could be read: {read}"
    );
}

#[test]
fn bytes_that_are_no_text_are_read_or_refused() {
    let mut dice = Dice(7);
    for length in 0..3000 {
        let bytes: Vec<u8> = (0..length % 200).map(|_| dice.below(256) as u8).collect();
        count(&bytes, false);
        follow(&bytes, &bytes);
    }
}

/// Follows control through a text, beside which another stands. Says how many functions can be
/// followed.
fn follow(text: &[u8], header: &[u8]) -> usize {
    let mut definitions = Definitions::default();
    definitions.read("damaged.c", text);
    definitions.read("damaged.h", header);
    definitions.settle();
    let mut number = 0;
    for (name, text) in [("damaged.c", text), ("damaged.h", header)] {
        let found = source_functions(name, text, &definitions, &|line| line % 3 > 0);
        for function in &found {
            let blocks = function.blocks.len() as u32;
            assert_eq!(function.graph.blocks, blocks);
            assert!(function.places.iter().all(|it| it.1 < blocks));
            assert!(function.places.is_sorted_by_key(|it| it.0));
            assert!(function.vague.is_sorted());
            let mut calls = function.calls.iter().filter_map(|it| it.block);
            assert!(calls.all(|it| it < blocks));
        }
        let followed = found.iter().filter(|it| !it.blocks.is_empty());
        number += followed.count();
    }
    number
}

const MACROS: &str = r#"
#include "damaged.h"
#ifndef TRY
#define TRY(x, ...) do { if (x) { note(__VA_ARGS__); goto out; } } while (0)
#endif
#if defined(WHO) && (WHO + 0 > 3 || !OTHER)
# define EACH(i, n) for (int i = 0; i < (n); i++)
#elif 1 << 3 == 010
# define EACH(i, n) for (int i = 0; \
        i < (n); ++i)
#else
# undef EACH
#endif
#define CAT_(a, b) a ## b
#define CAT(a, b) CAT_(a, b)
#define NOTE(f, x...) f(#x, ## x)
#define SELF(x) SELF(x) + OTHER(x)
#define OTHER(x) SELF(x)
#ifdef TRACE
#define SAY(x) if (x) print(x)
#else
#define SAY(x)
#endif
static int CAT(wo, rk)(int n)
{
    int sum = SELF(n);
    EACH(CAT(i, 1), n) { sum += i1; SAY(sum); }
    TRY(sum > 3, "much", n);
    NOTE(call);
    assert(sum && n);
    switch (n) { case 1: SAY(n) break; default: sum = n ? SELF(1) : 0; }
out:
    return sum;
}
"#;

#[test]
fn damaged_programs_are_followed_or_left_out() {
    let mut dice = Dice(0xf10);
    assert_eq!(follow(MACROS.as_bytes(), b"#define EACH 1\n"), 0);
    let mut followed = 0;
    let mut texts = programs();
    let few = texts.len();
    texts.extend(std::iter::repeat_n(MACROS.as_bytes().to_vec(), few));
    for text in &texts {
        for _ in 0..12 {
            let text = damaged(text, &mut dice);
            let header = damaged(MACROS.as_bytes(), &mut dice);
            followed += follow(&text, &header);
        }
    }
    assert!(followed > 100, "{followed}");
}

#[test]
fn macros_that_grow_without_end_are_given_up() {
    let doubling: String = (1..200)
        .map(|it| format!("#define M{it}(x) M{}(x x) M{}(x)\n", it - 1, it - 1))
        .collect();
    let conditions: String = (1..200)
        .map(|it| format!("#define C{it} (C{} + C{} * C{})\n", it - 1, it - 1, it - 1))
        .collect();
    let nested: String = (0..3000)
        .map(|it| format!("#ifdef W{it}\n#define X {it}\n#define Y{it} X\n"))
        .collect();
    let ends = "#endif\n".repeat(3000);
    let uses = "int f(int x) { M199(x); M3(x); return X; }\n".repeat(500);
    let text = format!(
        "{doubling}{conditions}#if C199\n#endif\n#if {}1{}\n#endif\n{nested}{ends}{uses}\
         int g(void) {{ return 1; }}\n",
        "(".repeat(50_000),
        ")".repeat(50_000)
    );
    let included = "#include \"damaged.h\"\n#include \"damaged.c\"\n".repeat(50);
    assert_eq!(follow(text.as_bytes(), included.as_bytes()), 1);
    assert_eq!(follow(included.as_bytes(), included.as_bytes()), 0);
}

#[test]
fn what_is_nested_too_deeply_is_refused_not_followed() {
    for (open, close) in [
        ("(", ")"),
        ("{", "}"),
        ("a?", ":b"),
        ("({", ";})"),
        ("[", "]"),
        ("-", ""),
    ] {
        let deep = 100_000;
        let text = format!(
            "int f(int a) {{ a = {}a{}; }}",
            open.repeat(deep),
            close.repeat(deep)
        );
        count(text.as_bytes(), false);
        let text = format!(
            "int f(int a) {{ {} ; {} }}",
            open.repeat(deep),
            close.repeat(deep)
        );
        count(text.as_bytes(), false);
    }
    for head in [
        "if (a) ",
        "while (a) ",
        "do ",
        "l: ",
        "else ",
        "if (a) ; else ",
        "a = ",
        "sizeof ",
    ] {
        let text = format!("int f(int a) {{ {} ; }}", head.repeat(50_000));
        count(text.as_bytes(), false);
    }
}

#[test]
fn maps_survive_and_damaged_ones_are_refused() {
    let mut dice = Dice(99);
    for program in programs() {
        let map = count(&program, false).unwrap();
        let bytes = encode(&map);
        assert_eq!(decode(&bytes).as_ref(), Some(&map));
        for _ in 0..50 {
            let mut broken = bytes.clone();
            let at = dice.below(broken.len());
            broken[at] ^= 1 << dice.below(8);
            decode(&broken);
            decode(&bytes[..at]);
        }
    }
}
