//! Damaged programs: nothing panics, and `icont` and we still agree.

use std::path::Path;

use crate::oracle::{Dice, LIBRARY, difference, folder, ours_alone};

fn programs() -> Vec<Vec<u8>> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut paths: Vec<_> = std::fs::read_dir(programs)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "icn"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|it| std::fs::read(it).unwrap())
        .collect()
}

/// Some programs of the library.
fn library() -> Vec<Vec<u8>> {
    let folder = std::fs::read_dir(LIBRARY).expect("the package icon-ipl is needed");
    let mut paths: Vec<_> = folder.map(|it| it.unwrap().path()).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == "icn"));
    paths.sort();
    let some = paths.into_iter().step_by(9);
    some.map(|it| std::fs::read(it).unwrap()).collect()
}

/// Some lines of a program as a procedure of their own, with a piece moved, doubled or left out.
fn damaged(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    let lines: Vec<&[u8]> = text.split(|it| *it == b'\n').collect();
    let from = dice.below(lines.len());
    let to = (from + 1 + dice.below(4)).min(lines.len());
    let mut piece = lines[from..to].join(&b'\n');
    for _ in 0..dice.below(3) {
        let (a, b) = (dice.below(piece.len() + 1), dice.below(piece.len() + 1));
        let (a, b) = (a.min(b), a.max(b).min(a.min(b) + 6));
        match dice.below(3) {
            0 => drop(piece.drain(a..b)),
            1 => {
                let copy = piece[a..b].to_vec();
                piece.splice(a..a, copy);
            }
            _ => {
                let moved: Vec<u8> = piece.drain(a..b).collect();
                let place = dice.below(piece.len() + 1);
                piece.splice(place..place, moved);
            }
        }
    }
    match dice.below(4) {
        0 => piece,
        _ => [b"procedure main()\n", &piece[..], b"\nend\n"].concat(),
    }
}

#[test]
fn icont_and_we_agree_on_damaged_programs() {
    let folder = folder("damaged");
    let mut programs = programs();
    programs.extend(library());
    let mut dice = Dice(1979);
    let rounds = match std::env::var_os("HEADCOUNT_THOROUGH") {
        Some(_) => 30_000,
        None => 1500,
    };
    for round in 0..rounds {
        let program = &programs[dice.below(programs.len())];
        let text = damaged(program, &mut dice);
        std::fs::write(folder.join("d.icn"), &text).unwrap();
        if let Some(difference) = difference(&folder, "d.icn") {
            let text = String::from_utf8_lossy(&text);
            panic!("round {round}: {difference}\n{text}");
        }
    }
}

#[test]
fn no_damage_makes_the_translator_panic() {
    let mut dice = Dice(79);
    for program in programs() {
        for cut in (0..program.len()).step_by(7) {
            let _ = ours_alone(&program[..cut]);
        }
        for _ in 0..200 {
            let mut text = program.clone();
            for _ in 0..1 + dice.below(8) {
                let at = dice.below(text.len());
                text[at] = dice.below(256) as u8;
            }
            let _ = ours_alone(&text);
        }
    }
}

#[test]
fn no_depth_makes_the_translator_panic() {
    let around = |before: &str, number: usize, inside: &str, after: &str| {
        let (before, after) = (before.repeat(number), after.repeat(number));
        format!("procedure main()\n{before}{inside}{after}\nend\n")
    };
    let texts = [
        around("(", 20_000, "x", ")"),
        around("[", 20_000, "", "]"),
        around("{", 20_000, "x", "}"),
        around("f(", 20_000, "", ")"),
        around("x[", 20_000, "1", "]"),
        around("p{", 20_000, "", "}"),
        around("- ", 20_000, "x", ""),
        around("not ", 20_000, "x", ""),
        around("if x then ", 20_000, "x", ""),
        around("while ", 20_000, "x", ""),
        around("create ", 20_000, "x", ""),
        around("x := ", 20_000, "x", ""),
        around("x || ", 20_000, "x", ""),
        around("x | ", 20_000, "x", ""),
        around("", 20_000, "f", "()"),
        around("", 20_000, "f", ".x"),
        around("return ", 20_000, "x", ""),
        around("case x of { 1: ", 20_000, "x", "}"),
        around("x; ", 20_000, "x", ""),
        around("x || ", 1980, "x", ""),
        around("x | ", 1980, "x", ""),
        around("x & ", 198, "x", ""),
        around("- ", 198, "x", ""),
        around("", 198, "f", "()"),
        around("(", 60, "x", ")"),
        around("if x then ", 60, "x", ""),
        around("case x of { 1: ", 60, "x", "}"),
        around("while x do ", 60, "x", ""),
        around("x := create p{", 30, "x", "}"),
    ];
    for text in texts {
        let _ = ours_alone(text.as_bytes());
    }
    let mut text = String::from("$define a0 x x x x x x x x x x\n");
    for number in 1..30 {
        let before = format!("a{} ", number - 1).repeat(10);
        text += &format!("$define a{number} {before}\n");
    }
    text += "a29\n";
    assert!(ours_alone(text.as_bytes()).is_err());
}
