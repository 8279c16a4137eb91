//! The map in ARCHITECTURE.md, enforced.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Each room, the rooms it may know of, and whether it leaves the world alone: no file, no
/// environment, no process, nothing printed.
#[rustfmt::skip]
const ROOMS: &[(&str, &[&str], Manners)] = &[
    ("model",   &[],                  Manners::Pure),
    ("wire",    &[],                  Manners::Pure),
    ("flow",    &["model"],           Manners::Pure),
    ("x86",     &["model"],           Manners::Pure),
    ("binary",  &["model", "x86"],    Manners::Pure),
    ("asm",     &["model", "x86"],    Manners::Pure),
    ("csource", &["model"],           Manners::Pure),
    ("patch",   &["model", "request", "x86"], Manners::Pure),
    ("request", &[],                  Manners::Unsafe),
    ("runtime", &["wire"],            Manners::Unsafe),
    ("calls",   &["model"],           Manners::Pure),
    ("tally",   &["model"],           Manners::Pure),
    ("icon",    &[],                  Manners::Pure),
    ("language", &["icon", "model", "x86"], Manners::Pure),
    ("monitor", &["binary", "calls", "flow", "language", "model", "patch", "request", "tally", "wire", "x86"], Manners::Unsafe),
    ("sampling", &["binary", "model"], Manners::Unsafe),
    ("profile", &["model"],           Manners::Effects),
    ("report",  &["model"],           Manners::Pure),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manners {
    /// Values in, values out.
    Pure,
    /// Touches files or processes.
    Effects,
    /// The same, and needs `unsafe` for it.
    Unsafe,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rooms of the map that are built.
fn rooms() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str], Manners)> {
    let is_built = |room: &str| root().join("crates").join(room).is_dir();
    ROOMS.iter().filter(move |(room, ..)| is_built(room))
}

/// All Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false if path.extension().is_some_and(|it| it == "rs") => found.push(path),
            false => (),
        }
    }
    found
}

#[test]
fn every_room_is_on_the_map() {
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = name == "cli" || ROOMS.iter().any(|(room, ..)| *room == name);
        assert!(known, "crates/{name} is not on the map");
    }
}

#[test]
fn rooms_know_only_the_rooms_on_the_map() {
    for (room, may_know, _) in rooms() {
        let manifest = read(&format!("crates/{room}/Cargo.toml"));
        let knows = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("headcount-"));
        for name in knows.filter_map(|rest| rest.split([' ', '.', '=']).next()) {
            assert!(may_know.contains(&name), "{room} must not depend on {name}");
        }
    }
}

#[test]
fn rooms_without_a_pass_forbid_unsafe_code() {
    for (room, _, manners) in rooms() {
        if *manners != Manners::Unsafe {
            let start = read(&format!("crates/{room}/src/lib.rs"));
            assert!(start.contains("#![forbid(unsafe_code)]"), "{room}");
        }
    }
    let cli = read("crates/cli/src/main.rs");
    assert!(cli.contains("(unsafe_code)]"), "cli");
}

#[test]
fn pure_rooms_leave_the_world_alone() {
    let effects = [
        "std::fs",
        "std::env",
        "std::process",
        "std::net",
        "println!(",
        "print!(",
    ];
    for (room, ..) in rooms().filter(|(.., manners)| *manners == Manners::Pure) {
        for path in sources(&root().join("crates").join(room).join("src")) {
            if path.ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            for line in text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
            {
                for effect in effects {
                    let path = path.display();
                    assert!(!line.contains(effect), "{path} must not use {effect}");
                }
            }
        }
    }
}

/// What stands between backquotes in a document.
fn quoted(document: &str) -> BTreeSet<&str> {
    document.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_file_named_in_a_document_exists() {
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let text = read(document);
        for name in quoted(&text) {
            let endings = [".rs", ".md", ".sql", ".toml", ".c", ".s"];
            let is_path =
                name.starts_with("crates/") || endings.iter().any(|it| name.ends_with(it));
            // `max.c` and the like, in examples of commands, are the user's.
            if is_path && !name.contains([' ', '*', '<']) && name != "max.c" {
                assert!(root().join(name).exists(), "{document} names {name}");
            }
        }
    }
}

#[test]
fn the_drawing_shows_every_room_that_is_built() {
    let text = read("ARCHITECTURE.md");
    let names = quoted(&text);
    for (room, ..) in rooms() {
        assert!(names.contains(format!("crates/{room}").as_str()), "{room}");
    }
}

#[test]
fn every_dependency_has_its_sentence() {
    let sentences = read("CONTRIBUTING.md");
    let names = quoted(&sentences);
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap_or_default();
        let mut inside = false;
        for line in text.lines() {
            if line.starts_with('[') {
                inside = line.ends_with("dependencies]");
                continue;
            }
            let name = line.split([' ', '.', '=']).next().unwrap_or_default();
            let ours = name.is_empty() || name.starts_with('#') || name.starts_with("headcount");
            if inside && !ours {
                let manifest = manifest.display();
                assert!(
                    names.contains(name),
                    "{manifest}: what does {name} save us?"
                );
            }
        }
    }
}
