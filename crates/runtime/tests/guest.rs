//! The guest's manners: what the program can see of it is nothing.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use common::{Workshop, is_installed, succeed};

#[test]
fn nothing_is_needed_at_link_time() {
    let shop = Workshop::new("undefined");
    let (text, object) = (shop.folder.join("runtime.s"), shop.folder.join("runtime.o"));
    fs::write(
        &text,
        [headcount_runtime::OPENING, headcount_runtime::ASSEMBLY].concat(),
    )
    .unwrap();
    for assembler in [&["as"][..], &["clang-14", "-c"], &["clang-19", "-c"]] {
        if !is_installed(assembler[0]) {
            continue;
        }
        let mut assemble = Command::new(assembler[0]);
        succeed(
            assemble
                .args(&assembler[1..])
                .arg(&text)
                .arg("-o")
                .arg(&object),
        );
        let output = succeed(Command::new("nm").arg(&object));
        let output = String::from_utf8(output.stdout).unwrap();
        let named = |kinds: &[&str]| -> BTreeSet<String> {
            let lines = output
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>());
            lines
                .filter(|words| kinds.contains(&words[words.len() - 2]))
                .map(|words| words[words.len() - 1].to_owned())
                .collect()
        };
        let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let mut undefined = named(&["U"]);
        undefined.remove("_GLOBAL_OFFSET_TABLE_");
        let expected: BTreeSet<String> =
            set(&["__start_headcount_counters", "__stop_headcount_counters"]);
        assert_eq!(undefined, expected, "{assembler:?}");
        let expected: BTreeSet<String> = set(&[
            "__dso_handle",
            "__register_atfork",
            "__start_headcount_ids",
            "__stop_headcount_ids",
            "environ",
            "pthread_atfork",
        ]);
        assert_eq!(named(&["w"]), expected, "{assembler:?}");
        let expected: BTreeSet<String> =
            set(&["headcount_after_fork", "headcount_enter", "headcount_ready"]);
        assert_eq!(named(&["T", "B", "D", "R"]), expected, "{assembler:?}");
        assert_eq!(
            named(&["t", "b", "d", "r"]),
            BTreeSet::new(),
            "{assembler:?}"
        );
    }
}

#[test]
fn the_text_is_short() {
    let lines = headcount_runtime::ASSEMBLY.lines().count();
    assert!(lines < 4000, "{lines} lines go into every object file");
}

#[test]
fn every_register_is_kept() {
    let shop = Workshop::new("registers");
    shop.build("gcc", "registers.c", &["-mavx"]).run();
}

#[test]
fn every_linker_makes_one_runtime_of_many() {
    for linker in ["-fuse-ld=bfd", "-fuse-ld=gold", "-fuse-ld=lld"] {
        let name = linker.replace("-fuse-ld", "ld").replace('=', ".");
        if !is_installed(&name)
            && !is_installed(&name.replace('.', "-"))
            && linker != "-fuse-ld=lld"
        {
            continue;
        }
        if linker == "-fuse-ld=lld" && !is_installed("ld.lld") {
            continue;
        }
        for more in ["-Wl,--gc-sections", "-Wl,-z,now"] {
            let shop = Workshop::new("linkers");
            let library = shop.object("gcc", "library.c", &["-ffunction-sections"]);
            let program = shop.object("gcc", "uses_library.c", &["-ffunction-sections"]);
            let program = shop.link("gcc", "program", &[program, library], &[linker, more]);
            program.run();
            let file = shop.only_file();
            assert_eq!(file.counters, 16, "{linker} {more}");
            let totals = (file.total(1), file.total(8 + 2));
            assert_eq!(totals, (4_500_000, 4_500_000), "{linker} {more}");
        }
    }
}
