//! The guest's manners: what the program can see of it is nothing.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use common::{Workshop, is_installed, succeed};
use headcount_wire::failure;

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
            "__libc_start_main",
            "__register_atfork",
            "__start_headcount_ids",
            "__stop_headcount_ids",
            "environ",
            "getauxval",
            "pthread_atfork",
        ]);
        assert_eq!(named(&["w"]), expected, "{assembler:?}");
        let expected: BTreeSet<String> = set(&[
            "headcount.after_fork",
            "headcount.begun",
            "headcount.enter",
            "headcount.ready",
        ]);
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
    assert!(lines < 6000, "{lines} lines go into every object file");
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

#[test]
fn memory_of_others_is_never_touched() {
    let shop = Workshop::new("obstacles");
    shop.build("gcc", "obstacles.c", &[]).run();
    let file = shop.only_file();
    assert_eq!((file.total(0), file.total(1), file.failures), (1, 1000, 0));
}

/// Runs `late_plugin.c`, and returns the plug-in's counter file.
fn late_plugin(how: &str, rounds: u32) -> common::CounterFile {
    let shop = Workshop::new("late-plugin");
    let object = shop.object("gcc", "library.c", &["-fPIC"]);
    let plugin = shop
        .link("gcc", "plugin.so", &[object], &["-shared"])
        .program;
    let source = common::programs().join("late_plugin.c");
    let (how, rounds) = (format!("-DHOW={how}"), format!("-DROUNDS={rounds}"));
    let host = shop.link("gcc", "host", &[source], &[&how, &rounds]);
    succeed(host.command().arg(plugin));
    shop.only_file()
}

#[test]
fn the_table_finds_another_place() {
    for how in ["take(PROT_NONE)", "take(PROT_READ)"] {
        let file = late_plugin(how, 1000);
        assert_eq!((file.total(2), file.failures), (1000, 0), "{how}");
    }
}

#[test]
fn a_program_that_uses_gs_itself_is_left_alone() {
    let file = late_plugin("use_gs()", 0);
    assert_eq!((file.total(2), file.failures), (0, failure::GS_IN_USE));
}

#[test]
fn a_thread_without_place_runs_uncounted() {
    let shop = Workshop::new("no-memory");
    shop.build("gcc", "no_memory.c", &[]).run();
    let file = shop.only_file();
    assert_eq!(
        (file.total(0), file.total(1), file.failures),
        (1, 0, failure::THREAD_LOST)
    );
}

#[test]
fn the_smallest_stack_is_large_enough() {
    let shop = Workshop::new("stack");
    shop.build("gcc", "no_memory.c", &["-DENOUGH"]).run();
    let file = shop.only_file();
    assert_eq!((file.total(0), file.total(1), file.failures), (1, 1000, 0));
}

#[test]
fn a_child_of_a_thread_without_place_runs_uncounted() {
    let shop = Workshop::new("lost-forks");
    let library = shop.object("gcc", "library.c", &["-fPIC"]);
    let library = shop.link("gcc", "libwork.so", &[library], &["-shared"]);
    let program = shop.object("gcc", "lost_forks.c", &[]);
    let program = shop.link("gcc", "program", &[&program, &library.program], &[]);
    program.run();
    for file in shop.files() {
        assert_eq!(file.failures, failure::THREAD_LOST, "{}", file.module);
    }
}
