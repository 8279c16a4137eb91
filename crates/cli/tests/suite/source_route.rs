//! `headcount cc --via source` and `headcount csource`, from end to end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::workshop::{ANSWER, HEADCOUNT, Workshop, c_compilers, c_programs, have};
use headcount_oracle::stated::Stated;

const OPERANDS: &str = "\
#include <stdlib.h>
int main(int argc, char **argv)
{
    int yes = 0, no = 0;   char *p;
    for (int i = 0; i < 10; i++) {
        yes += i < 3   ? 1 : 0;
        p = i > 7 ? argv[0] : NULL;
        if (i % 2 && i > 4 || i == 0) no++; else yes++;
        yes += argc ?: i;
    }
    switch (yes) { case 1: case 2: no++; break; default: no--; }
    return !(p == argv[0] && no > 0);
}
";

/// Every kind of block on lines of their own and together, with their columns.
#[test]
fn operands_on_one_line_are_told_apart() {
    for compiler in c_compilers() {
        for level in ["-O0", "-O2"] {
            let shop = Workshop::new();
            shop.write("a.c", OPERANDS);
            shop.via_source(&[], &[compiler, level, "-w", "a.c", "-o", "a"]);
            shop.must(&["./a"]);
            let found = shop.source_blocks("a.c");
            let count = |line: u32, column: u32, kind: &str| {
                let key = (line, column, kind.to_owned());
                let found = found.get(&key).copied();
                found.unwrap_or_else(|| {
                    panic!("{line}:{column} {kind}: {compiler} {level} {found:?}")
                })
            };
            assert_eq!(count(5, 21, "condition"), 11);
            assert_eq!(count(5, 29, "step"), 10);
            assert_eq!(count(5, 34, "body"), 10);
            assert_eq!(count(6, 26, "true operand"), 3);
            assert_eq!(count(6, 30, "false operand"), 7);
            assert_eq!(count(7, 21, "true operand"), 2);
            assert_eq!(count(7, 31, "false operand"), 8);
            assert_eq!(count(8, 22, "right operand"), 5);
            assert_eq!(count(8, 31, "right operand"), 7);
            assert_eq!(count(8, 39, "then"), 4);
            assert_eq!(count(8, 50, "else"), 6);
            assert_eq!(count(9, 24, "false operand"), 0);
            assert_eq!(count(11, 49, "default"), 1);
            let edges = shop.report(&["--by", "edge"]);
            assert!(edges.contains("has no edges"), "{edges}");
        }
    }
}

/// `--every-block` derives nothing, and says the same.
#[test]
fn derived_counts_are_those_of_counters_in_every_block() {
    let shop = Workshop::new();
    shop.write("a.c", OPERANDS);
    shop.via_source(&[], &["gcc", "-O2", "-w", "a.c", "-o", "a"]);
    shop.must(&["./a"]);
    let few = shop.source_blocks("a.c");
    let words = [
        "cc",
        "--via",
        "source",
        "--every-block",
        "--",
        "gcc",
        "-O2",
        "-w",
        "a.c",
        "-o",
        "b",
    ];
    assert_eq!(shop.headcount(&words).status, Some(0));
    shop.must(&["./b"]);
    assert_eq!(shop.source_blocks("a.c"), few);
}

/// In the terminal, below each line; and in files beside the sources, but through no link.
#[test]
fn counts_are_shown_by_column_and_written_beside_the_source() {
    let shop = Workshop::new();
    shop.write("a.c", OPERANDS);
    shop.via_source(&[], &["gcc", "-O1", "-w", "a.c", "-o", "a"]);
    shop.must(&["./a"]);
    let columns = shop.headcount(&["annotate", "--columns", "a.c"]).stdout;
    assert!(columns.contains("^ 3 true operand\n"), "{columns}");
    assert!(columns.contains("^ 7 false operand\n"), "{columns}");
    let said = shop.headcount(&["annotate", "--write", ".bb"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let written = fs::read_to_string(shop.path("a.c.bb")).expect("it is there");
    assert_eq!(written.lines().count(), OPERANDS.lines().count());
    for (before, source) in written.lines().zip(OPERANDS.lines()) {
        assert!(before.ends_with(source), "{before}");
    }
    shop.write("other", "mine");
    std::os::unix::fs::symlink(shop.path("other"), shop.path("a.c.cc")).expect("a link");
    let said = shop.headcount(&["annotate", "--write", ".cc"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert_eq!(
        fs::read_to_string(shop.path("other")).expect("text"),
        "mine"
    );
}

#[test]
fn commands_of_all_kinds_are_understood() {
    for compiler in c_compilers() {
        let shop = Workshop::with_sources();
        shop.via_source(&[], &[compiler, "-O2", "main.c", "helper.c", "-o", "prog"]);
        assert_eq!(shop.must(&["./prog"]), ANSWER);
        assert_eq!(shop.calls("helper"), Some(100), "{compiler}");
        // One by one, with lists of what they depend on.
        shop.via_source(&[], &[compiler, "-c", "-MMD", "main.c", "-o", "m.o"]);
        shop.via_source(&[], &[compiler, "-c", "helper.c"]);
        shop.via_source(&[], &[compiler, "m.o", "helper.o", "-o", "prog2"]);
        assert!(
            fs::read_to_string(shop.path("m.d"))
                .unwrap()
                .starts_with("m.o: main.c")
        );
        assert_eq!(shop.must(&["./prog2"]), ANSWER);
        assert_eq!(shop.calls("helper"), Some(100), "{compiler}");
        // A language that is not C goes by way of assembler text.
        shop.write(
            "extra.s",
            "\t.globl extra\nextra:\tret\n\t.section .note.GNU-stack,\"\",@progbits\n",
        );
        shop.via_source(
            &[],
            &[
                compiler, "-x", "c", "main.c", "helper.c", "-x", "none", "extra.s", "-o", "prog3",
            ],
        );
        assert_eq!(shop.must(&["./prog3"]), ANSWER);
    }
}

/// Errors, warnings and their columns are the compiler's own.
#[test]
fn the_compiler_speaks_of_the_users_lines_and_columns() {
    let shop = Workshop::new();
    shop.write(
        "bad.c",
        "int f(int a) { if (a) return 1; else return undeclared; }\n",
    );
    for compiler in c_compilers() {
        let plain = shop.run(&[compiler, "-c", "bad.c"]);
        let ours = shop.headcount(&["cc", "--via", "source", "--", compiler, "-c", "bad.c"]);
        assert_eq!((ours.status, ours.stderr), (plain.status, plain.stderr));
    }
    shop.write(
        "warn.c",
        "int f(int a) { if (a) return 1; else { int unused; return 2; } }\n",
    );
    let plain = shop.run(&["gcc", "-Wall", "-c", "warn.c"]);
    let ours = shop.headcount(&[
        "cc", "--via", "source", "--", "gcc", "-Wall", "-c", "warn.c",
    ]);
    assert_eq!(ours.stderr, plain.stderr);
    assert!(
        ours.stderr
            .contains("warn.c:1:44: warning: unused variable"),
        "{}",
        ours.stderr
    );
}

/// No warning that was not there before, in the strictest of moods.
#[test]
fn counted_text_compiles_without_a_warning() {
    let shop = Workshop::new();
    let text = "#include <stdio.h>\n\
        static inline int twice(int x) { return x > 0 ? 2 * x : 0; }\n\
        int f(int a, const char *s);\n\
        int f(int a, const char *s)\n{\n    int b = 0;\n    unsigned u = a > 3 ? 4u : 5u;\n\
        switch (a) { case 1: case 2: b = twice(a); /* fall through */ case 3: b++; break; default: ; }\n\
        if (a) if (b) b = 1; else b = 2; else b = 3;\n\
        while (s && *s) s++;\n    printf(a ? \"%d\\n\" : \"none %d\\n\", b);\n    return (int)u + b;\n}\n\
        int main(void) { return f(1, \"x\") != 6; }\n";
    shop.write("a.c", text);
    for compiler in c_compilers() {
        for dialect in ["-std=c89", "-std=c99", "-std=gnu11", "-std=c17"] {
            let mut words = vec![
                compiler,
                dialect,
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-function",
            ];
            if dialect == "-std=c89" {
                // No inline, then; and declarations first.
                words.extend(["-Dinline=", "-pedantic-errors"]);
            }
            words.extend(["-Wno-dangling-else", "-Wno-parentheses", "a.c", "-o", "a"]);
            shop.via_source(&[], &words);
            shop.must(&["./a"]);
        }
        let cpp = format!("{compiler} -E -C");
        shop.must_headcount(&["csource", "--cpp", &cpp, "a.c", "-o", "counted.c"]);
        let words = [
            compiler,
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-dangling-else",
            "-Wno-parentheses",
        ];
        shop.must(&[&words[..], &["counted.c", "-o", "b"]].concat());
        shop.must(&["./b"]);
    }
}

/// What the promises of the assembly route are about: threads, children, death.
#[test]
fn counts_outlive_threads_forks_and_kills() {
    let shop = Workshop::new();
    let text = "#include <pthread.h>\n#include <signal.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        static void tick(void)\n{\n}\n\
        static void *work(void *x) { for (int i = 0; i < 100000; i++) tick(); return x; }\n\
        int main(void)\n{\n    pthread_t t[4];\n\
        for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, 0);\n\
        for (int i = 0; i < 4; i++) pthread_join(t[i], 0);\n\
        if (fork() == 0) { work(0); _exit(0); }\n    wait(0);\n    kill(getpid(), SIGKILL);\n}\n";
    shop.write("a.c", text);
    for compiler in c_compilers() {
        shop.via_source(&[], &[compiler, "-O2", "-w", "a.c", "-o", "a", "-lpthread"]);
        let _ = shop.run(&["./a"]);
        assert_eq!(shop.calls("tick"), Some(500_000), "{compiler}");
        assert_eq!(shop.calls("work"), Some(5), "{compiler}");
    }
}

/// A file that no one can read is compiled as it is, and listed.
#[test]
fn what_cannot_be_counted_is_compiled_and_listed() {
    let shop = Workshop::new();
    let text = "__attribute__((naked)) int odd(void) { __asm__(\"movl $3, %eax; ret\"); }\n\
        int main(void) { return odd() != 3; }\n";
    shop.write("a.c", text);
    shop.via_source(&[], &["gcc", "-O2", "a.c", "-o", "a"]);
    shop.must(&["./a"]);
    let report = shop.report(&[]);
    assert!(
        report.contains("odd (a.c:1): it has nothing but assembler text"),
        "{report}"
    );
    assert_eq!(shop.calls("main"), Some(1));
}

/// A call that must be optimised away, and is not any more when counted: it is built all the same.
#[test]
fn a_program_that_does_not_link_counted_is_linked_uncounted_and_listed() {
    let shop = Workshop::new();
    let text = "extern void link_error(void);\n\
        int f(int x, int y) { if (x < y && x > y) link_error(); return x; }\n\
        int main(void) { return f(0, 1); }\n";
    shop.write("a.c", text);
    shop.must(&["gcc", "-O2", "a.c", "-o", "plain"]);
    let said = shop.headcount(&[
        "cc", "--via", "source", "--", "gcc", "-O2", "a.c", "-o", "a",
    ]);
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    shop.must(&["./a"]);
    if !said.stderr.is_empty() {
        let expected = "headcount: a.c: not counted: the linker rejects its counted form: ";
        assert!(said.stderr.starts_with(expected), "{}", said.stderr);
        assert!(shop.report(&[]).contains("all of a.c"));
    }
    // What does not link at all is for the linker to tell.
    shop.write(
        "b.c",
        "extern void nowhere(void);\nint main(void) { nowhere(); }\n",
    );
    let said = shop.headcount(&["cc", "--via", "source", "--", "gcc", "b.c", "-o", "b"]);
    assert_eq!(said.status, Some(1));
    assert!(
        said.stderr.contains("undefined reference to `nowhere'"),
        "{}",
        said.stderr
    );
    assert!(!said.stderr.contains("headcount:"), "{}", said.stderr);
}

/// Lines of `tests/programs` that this route counts, too.
#[test]
fn programs_are_counted_as_they_state() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for source in c_programs() {
        let text = fs::read_to_string(&source).unwrap();
        let stated = Stated::parse(&source, &text).unwrap();
        if !stated.routes.iter().any(|it| it == "csource") {
            continue;
        }
        for level in ["-O0", "-O2"] {
            let shop = Workshop::new();
            let name = source.file_name().unwrap().to_str().unwrap();
            let path = source.to_str().unwrap();
            let mut words = vec!["gcc", "-w", "-g", level, path, "-o", "prog"];
            words.extend(stated.flags.iter().map(String::as_str));
            shop.via_source(&[], &words);
            let mut run = vec!["./prog"];
            run.extend(stated.args.iter().map(String::as_str));
            let _ = shop.run(&run);
            let found = all_counts(&shop, name);
            let explained = |line: u32| EXPLAINED.iter().any(|it| (it.0, it.1) == (name, line));
            for (line, stated) in stated.lines.iter().filter(|it| !explained(*it.0)) {
                let code = text.lines().nth(*line as usize - 1).unwrap_or_default();
                let code = code.split("//~").next().unwrap_or_default().trim();
                match found.get(line) {
                    Some(count) if count == stated => compared += 1,
                    // The end of a function is no statement.
                    None if code.starts_with('}') => (),
                    other => wrong.push(format!(
                        "{name}:{line} {level}: {other:?}, not {stated}: {code}"
                    )),
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(compared > 300, "{compared}");
}

/// Counts of the lines of a file, in all runs.
fn all_counts(shop: &Workshop, file: &str) -> BTreeMap<u32, u64> {
    let words = [
        "--by", "line", "--only", file, "--runs", "all", "--format", "csv",
    ];
    let text = shop.report(&words);
    let rows = text.lines().skip(1).map(|row| row.split(',').collect());
    rows.filter_map(|row: Vec<&str>| Some((row[1].parse().ok()?, row[2].parse().ok()?)))
        .collect()
}

/// Lines on which this route says something else than those that see instructions, and why.
const EXPLAINED: [(&str, u32, &str); 4] = [
    (
        "a_breakpoint_is_left_by_longjmp.c",
        17,
        "a handler leaves in the midst of a block, whose rest counts once too often",
    ),
    (
        "a_fault_kills_it.c",
        9,
        "a fault in the midst of a block: the same",
    ),
    (
        "a_fault_kills_it.c",
        16,
        "an optimiser may count a statement before the one that faults",
    ),
    (
        "a_tree_of_forks_four_deep.c",
        11,
        "fork comes back twice, but the statement that calls it begins once",
    ),
];

/// Other machines: the text is made here, compiled for them, and run by an emulator.
#[test]
fn a_counted_text_runs_on_other_machines() {
    let text = "#include <stdio.h>\n#include <stdlib.h>\nstatic int odd(int x)\n{\n    return x & 1 ? 1 : 0;\n}\n\
        int main(void)\n{\n    int sum = 0;\n    for (int i = 0; i < 9; i++)\n        if (odd(i) && i > 3)\n            sum += i;\n\
        printf(\"%d\\n\", sum);\n    exit(0);\n}\n";
    for machine in ["aarch64", "riscv64"] {
        let compiler = format!("{machine}-linux-gnu-gcc");
        let emulator = format!("qemu-{machine}");
        if !have(&compiler) || !have(&emulator) {
            eprintln!("{machine}: no compiler or no emulator here; ./check installs them");
            continue;
        }
        let shop = Workshop::new();
        shop.write("a.c", text);
        let cpp = format!("{compiler} -E");
        shop.must_headcount(&["csource", "--cpp", &cpp, "a.c", "-o", "counted.c"]);
        shop.must(&[
            &compiler,
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-static",
            "counted.c",
            "-o",
            "a",
        ]);
        assert_eq!(shop.must(&[&emulator, "./a"]), "12\n");
        let lines = shop.counts("a.c");
        let counts = [4, 5, 10, 11, 12].map(|line| lines.get(&line).copied());
        assert_eq!(
            counts[1..],
            [Some(9), Some(10), Some(9), Some(2)],
            "{machine}: {lines:?}"
        );
        assert_eq!(shop.calls("odd"), Some(9));
    }
}

/// Macros stay, if the user wants them to; where they cannot, the user is told.
#[test]
fn macros_stay_readable_or_it_is_said_why_not() {
    let shop = Workshop::new();
    shop.write("a.c", "#define SQUARE(x) ((x) * (x))\nint main(void)\n{\n    int s = 0;\n    for (int i = 0; i < 4; i++)\n        s += SQUARE(i);\n    return s != 14;\n}\n");
    let said = shop.headcount(&["csource", "--no-cpp", "a.c", "-o", "b.c"]);
    assert_eq!((said.status, said.stderr.as_str()), (Some(0), ""));
    let text = fs::read_to_string(shop.path("b.c")).unwrap();
    assert!(text.contains("s += SQUARE(i);"), "{text}");
    shop.must(&["gcc", "-Wall", "-Wextra", "-Werror", "b.c", "-o", "b"]);
    shop.must(&["./b"]);
    assert_eq!(shop.counts("a.c").get(&6), Some(&4));

    shop.write("c.c", "#define TWICE(x) for (int k = 0; k < 2; k++) x\nint main(void)\n{\n    int s = 0;\n    TWICE(s)++;\n    TWICE(s++;)\n    return s != 4;\n}\n");
    let said = shop.headcount(&["csource", "--no-cpp", "c.c", "-o", "d.c"]);
    assert_eq!(said.status, Some(0));
    assert!(
        said.stderr.contains("c.c: preprocessed after all: "),
        "{}",
        said.stderr
    );
    shop.must(&["gcc", "d.c", "-o", "d"]);
    shop.must(&["./d"]);
}

#[test]
fn nonsense_is_an_error() {
    let shop = Workshop::new();
    let said = shop.headcount(&["csource", "nowhere.c"]);
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("nowhere.c"), "{}", said.stderr);
    shop.write("a.c", "int main(void) { ( }\n");
    let said = shop.headcount(&["csource", "a.c"]);
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("a.c:1: a bracket"), "{}", said.stderr);
    let said = shop.headcount(&["csource", "--cpp", "false", "a.c"]);
    assert!(said.stderr.contains("`false` failed"), "{}", said.stderr);
}

/// The files that a command leaves in a folder with both sources.
fn files_after(command: &[&str]) -> Vec<String> {
    let shop = Workshop::with_sources();
    shop.must(command);
    let entries = fs::read_dir(shop.path(".")).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_a_compiler_makes_besides_is_where_it_is_without_us() {
    let both = ["main.c", "helper.c", "-o", "prog"];
    let one = ["-c", "main.c", "-o", "x.o"];
    let commands = [
        [&["-save-temps"], &both[..]].concat(),
        [&["-save-temps=obj"], &both[..]].concat(),
        [&["-save-temps=obj"], &one[..]].concat(),
        vec!["-save-temps", "-c", "main.c", "helper.c"],
        [&["-g", "-gsplit-dwarf"], &both[..]].concat(),
        [&["-g", "-gsplit-dwarf"], &one[..]].concat(),
        vec!["-g", "-gsplit-dwarf", "main.c", "helper.c"],
        vec!["-g", "-gsplit-dwarf", "-c", "main.c", "helper.c"],
    ];
    for (turn, compiler) in c_compilers().into_iter().enumerate() {
        for (index, words) in commands.iter().enumerate() {
            let plain = files_after(&[&[compiler], &words[..]].concat());
            let via = ["source", "assembly"][(turn + index) % 2];
            let ours = [HEADCOUNT, "cc", "--via", via, "--", compiler];
            let counted = files_after(&[&ours, &words[..]].concat());
            assert_eq!(counted, plain, "{via}: {compiler} {words:?}");
        }
    }
    // gcc alone makes these; they are named after the program, too.
    let words = ["-fstack-usage", "--coverage", "-fdump-tree-optimized"];
    let words = [&words[..], &both].concat();
    let plain = files_after(&[&["gcc"], &words[..]].concat());
    let ours = [HEADCOUNT, "cc", "--via", "source", "--", "gcc"];
    assert_eq!(files_after(&[&ours, &words[..]].concat()), plain);
}

#[test]
fn debug_information_in_a_file_of_its_own_is_that_of_the_counted_program() {
    let shop = Workshop::with_sources();
    let words = [
        "gcc",
        "-g",
        "-gsplit-dwarf",
        "main.c",
        "helper.c",
        "-o",
        "prog",
    ];
    shop.via_source(&[], &words);
    assert_eq!(shop.count("prog")["helper"].calls, 100);
    let facts = shop.must(&["readelf", "--debug-dump=info", "prog"]);
    assert!(facts.contains(": prog-main.dwo"), "{facts}");
    assert!(facts.contains(": prog-helper.dwo"), "{facts}");
}

#[test]
fn saved_texts_are_those_of_the_user_and_the_program_counts() {
    let shop = Workshop::with_sources();
    shop.via_source(
        &[],
        &["gcc", "-save-temps", "main.c", "helper.c", "-o", "prog"],
    );
    let text = fs::read_to_string(shop.path("prog-helper.s")).unwrap();
    assert!(
        text.contains("helper:") && !text.contains("headcount"),
        "{text}"
    );
    assert_eq!(shop.count("prog")["helper"].calls, 100);
    // What does not compile, does not compile.
    shop.write("helper.c", "int helper(int x) { return y; }\n");
    let said = shop.headcount(&[
        "cc",
        "--via",
        "source",
        "--",
        "gcc",
        "-save-temps",
        "-c",
        "helper.c",
    ]);
    assert_eq!(said.status, Some(1));
    assert_eq!(said.stderr.matches("error:").count(), 1, "{said:?}");
}

#[test]
fn a_compiler_may_be_told_in_files() {
    for compiler in c_compilers() {
        for via in ["assembly", "source"] {
            let shop = Workshop::with_sources();
            fs::create_dir(shop.path("a folder")).unwrap();
            shop.write("a folder/extra.h", "#define EXTRA 1\n");
            fs::rename(shop.path("helper.c"), shop.path("the helper.c")).unwrap();
            shop.write(
                "outer",
                "-g '-Ia folder' -include extra.h\n\"-DNAME=\\\"it's\\\"\" @inner",
            );
            shop.write("inner", "-O1 main.c the\\ helper.c");
            let said =
                shop.headcount(&["cc", "--via", via, "--", compiler, "@outer", "-o", "prog"]);
            assert_eq!(
                (said.stderr.as_str(), said.status),
                ("", Some(0)),
                "{via} {compiler}"
            );
            assert_eq!(shop.count("prog")["helper"].calls, 100, "{via} {compiler}");
            // Statements are what a source is made of; instructions, what assembly is.
            let report = shop.must(&[HEADCOUNT, "report"]);
            assert_eq!(
                report.contains("statements executed"),
                via == "source",
                "{report}"
            );
        }
    }
}

#[test]
fn words_that_need_a_file_are_handed_on_in_one() {
    let shop = Workshop::with_sources();
    // Writes down how many words each compiler is told.
    shop.write("gcc", "#!/bin/sh\necho $# >> told\nexec gcc \"$@\"\n");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(shop.path("gcc"), executable).unwrap();
    let many: Vec<String> = (0..300).map(|it| format!("-DWORD{it}")).collect();
    shop.write("words", many.join("\n"));
    shop.via_source(
        &[],
        &["./gcc", "@words", "main.c", "helper.c", "-o", "prog"],
    );
    assert_eq!(shop.count("prog")["helper"].calls, 100);
    let told = fs::read_to_string(shop.path("told")).unwrap();
    let most = told.lines().map(|it| it.parse::<usize>().unwrap()).max();
    assert!(most < Some(50), "{told}");
}

#[test]
fn a_header_that_is_there_precompiled_alone_is_counted_as_assembly_and_told_of() {
    let shop = Workshop::with_sources();
    shop.write("types.h", "typedef int number;\n");
    shop.must(&["gcc", "types.h"]);
    fs::remove_file(shop.path("types.h")).unwrap();
    let helper = "#include \"types.h\"\nnumber helper(number x) { return x % 3 ? 2 : 1; }\n";
    shop.write("helper.c", helper);
    let words = [
        "cc", "--via", "source", "--", "gcc", "main.c", "helper.c", "-o", "prog",
    ];
    let said = shop.headcount(&words);
    assert_eq!(said.status, Some(0), "{said:?}");
    let told =
        "headcount: not counted as source, but as assembly: helper.c: cannot be preprocessed: ";
    assert!(said.stderr.starts_with(told), "{said:?}");
    assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    assert_eq!(shop.count("prog")["helper"].calls, 100);
}
