//! Programs without symbols, and programs of the system that nobody here built.

use crate::workshop;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn headcount(folder: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headcount"));
    command
        .args(args)
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", workshop::shared_cache());
    command.output().expect("it runs")
}

fn report(folder: &TempDir, by: &str) -> String {
    let output = headcount(folder, &["report", "--by", by, "--format", "csv"]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The count of each block that ran, by address.
fn blocks(folder: &TempDir) -> BTreeMap<String, u64> {
    let text = report(folder, "block");
    let rows = text.lines().skip(1);
    rows.filter_map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        let count = fields[4].parse().expect("a count");
        (count > 0).then(|| (fields[2].to_owned(), count))
    })
    .collect()
}

#[test]
fn a_stripped_program_has_the_blocks_and_counts_it_had_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    for (source, compiler) in [
        ("duffs_device.c", "gcc"),
        ("a_switch_with_a_jump_table.c", "gcc"),
        ("exception_passes_three_functions.cc", "g++"),
        ("virtual_calls_find_their_function.cc", "g++"),
    ] {
        let program = folder.path().join("program");
        let mut build = Command::new(compiler);
        build.args(["-O2", "-w"]).arg(programs.join(source));
        let status = build.arg("-o").arg(&program).status();
        assert!(status.expect("it runs").success());
        let run = ["run", "-q", "--modules", "main", "--", "./program"];
        headcount(&folder, &run);
        let before = blocks(&folder);
        assert!(before.len() > 10, "{source}: {before:?}");

        let strip = Command::new("strip").arg(&program).status();
        assert!(strip.expect("it runs").success());
        // The same build with other names, in the same profile.
        headcount(&folder, &run);
        assert_eq!(blocks(&folder), before, "{source}");
        let _ = std::fs::remove_file(folder.path().join("headcount.db"));
    }
}

#[test]
fn programs_of_the_system_are_counted_by_block_and_by_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("input");
    std::fs::write(&input, "one two three\n".repeat(200)).expect("written");
    let commands: [&[&str]; 3] = [
        &["/usr/bin/ls", "/"],
        &["/usr/bin/bzip2", "-c", "input"],
        &["/usr/bin/sort", "-r", "input"],
    ];
    for command in commands {
        let native = Command::new(command[0])
            .args(&command[1..])
            .current_dir(folder.path())
            .output();
        let native = native.expect("it runs");
        for unit in ["block", "function"] {
            let mut words = vec!["run", "-q", "--modules", "main", "--unit", unit, "--"];
            words.extend(command);
            let counted = headcount(&folder, &words);
            assert_eq!(counted.status.code(), native.status.code(), "{command:?}");
            assert!(counted.stdout == native.stdout, "{command:?} {unit}");
            let rows = report(&folder, "function");
            let calls = rows.lines().skip(1).filter_map(|row| {
                let calls = row.split(',').nth(4)?;
                calls.parse::<u64>().ok()
            });
            assert!(
                calls.filter(|it| *it > 0).count() > 10,
                "{command:?}\n{rows}"
            );
        }
    }
}
