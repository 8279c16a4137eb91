//! `headcount cc` as a drop-in compiler, from end to end.

use crate::workshop::{
    ANSWER, Function, HEADCOUNT, HELPER_C, MAIN_C, Workshop, c_compilers, have, said,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

/// What `main.c` and `helper.c` count, however they are built (unless `helper` is inlined).
fn check(functions: &BTreeMap<String, Function>, how: &str) {
    let calls = |name: &str| functions.get(name).map(|function| function.calls);
    let found = (calls("main"), calls("helper"));
    assert_eq!(found, (Some(1), Some(100)), "{how}: {functions:#?}");
}

#[test]
fn every_level_of_every_compiler_is_counted() {
    let shop = Workshop::with_sources();
    for compiler in c_compilers() {
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            for debug in ["-g", "-g0"] {
                let how = format!("{compiler} {level} {debug}");
                shop.cc(&[compiler, level, debug, "main.c", "helper.c", "-o", "prog"]);
                check(&shop.count("prog"), &how);
                if debug == "-g" {
                    let lines = shop.lines("helper.c");
                    assert_eq!(
                        lines.get(&1).or(lines.get(&3)),
                        Some(&100),
                        "{how}: {lines:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn steps_may_be_taken_one_by_one() {
    for compiler in c_compilers() {
        let shop = Workshop::with_sources();
        shop.cc(&[compiler, "-c", "main.c"]);
        shop.cc(&[compiler, "-pipe", "-O1", "-c", "helper.c", "-o", "other.o"]);
        shop.cc(&[compiler, "main.o", "other.o", "-o", "prog"]);
        check(&shop.count("prog"), compiler);
        // Many at once, and no name for what comes out.
        shop.cc(&[compiler, "-c", "main.c", "helper.c"]);
        shop.cc(&[compiler, "main.o", "helper.o"]);
        check(&shop.count("a.out"), compiler);
    }
}

#[test]
fn assembly_of_the_compiler_is_passed_through_and_counted_later() {
    for compiler in c_compilers() {
        let shop = Workshop::with_sources();
        shop.cc(&[compiler, "-O1", "-g", "-S", "main.c", "helper.c"]);
        let plain = shop.must(&[compiler, "-O1", "-g", "-S", "main.c", "-o", "-"]);
        assert_eq!(
            fs::read_to_string(shop.path("main.s")).unwrap(),
            plain,
            "{compiler}"
        );
        shop.cc(&[compiler, "main.s", "helper.s", "-o", "prog"]);
        check(&shop.count("prog"), compiler);
        assert_eq!(shop.lines("helper.c")[&3], 100, "{compiler}");
    }
}

#[test]
fn what_is_no_compilation_is_passed_through() {
    for compiler in c_compilers() {
        let shop = Workshop::with_sources();
        for words in [
            &["-E", "main.c"][..],
            &["-M", "main.c"],
            &["-MM", "main.c"],
            &["--version"],
            &["-dumpmachine"],
            &["-print-prog-name=as"],
            &["-fsyntax-only", "main.c"],
            &[],
        ] {
            let words = [&[compiler], words].concat();
            let (plain, ours) = (shop.run(&words), shop.try_cc(&words));
            assert_eq!(ours.stdout, plain.stdout, "{words:?}");
            assert_eq!(ours.stderr, plain.stderr, "{words:?}");
            assert_eq!(ours.status, plain.status, "{words:?}");
        }
    }
}

#[test]
fn dependencies_are_written_as_ever() {
    for compiler in c_compilers() {
        let (shop, plain) = (Workshop::with_sources(), Workshop::with_sources());
        for words in [
            &["-MD", "-c", "main.c"][..],
            &["-MMD", "-MF", "deps", "-MT", "target", "-c", "main.c"],
            &["-MD", "-MP", "main.c", "helper.c", "-o", "prog"],
        ] {
            shop.cc(&[&[compiler], words].concat());
            plain.must(&[&[compiler], words].concat());
        }
        let dependencies = |shop: &Workshop| {
            let files = fs::read_dir(shop.path(".")).unwrap();
            let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            let of = |name: &String| name.ends_with(".d") || name == "deps";
            let texts = files.filter(of);
            texts
                .map(|name| (fs::read_to_string(shop.path(&name)).unwrap(), name))
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(dependencies(&shop), dependencies(&plain), "{compiler}");
        check(&shop.count("prog"), compiler);
    }
}

#[test]
fn errors_are_the_compilers_own() {
    for compiler in c_compilers() {
        let shop = Workshop::new();
        shop.write("bad.c", "int main(void) { return 0 }\n");
        let words = [compiler, "-c", "bad.c"];
        let (plain, ours) = (shop.run(&words), shop.try_cc(&words));
        assert_eq!(ours.stderr, plain.stderr, "{compiler}");
        assert_eq!(
            (ours.status, plain.status),
            (Some(1), Some(1)),
            "{compiler}"
        );
        assert!(!shop.path("bad.o").exists());
    }
}

#[test]
fn errors_are_the_assemblers_own() {
    let shop = Workshop::new();
    shop.write("bad.s", "# a comment\n\t.text\nfoo:\tbogus %eax\n\tret\n");
    shop.write("bad.c", "void f(void) { __asm__(\"bogus\"); }\n");
    for words in [
        &["gcc", "-c", "bad.s"][..],
        &["gcc", "-pipe", "-c", "bad.s"],
        &["gcc", "-c", "bad.c"],
        &["gcc", "-pipe", "-c", "bad.c"],
    ] {
        let (plain, ours) = (shop.run(words), shop.try_cc(words));
        assert!(plain.stderr.contains("bogus"), "{plain:?}");
        assert_eq!(ours.stderr, plain.stderr, "{words:?}");
        assert_eq!((ours.status, plain.status), (Some(1), Some(1)), "{words:?}");
    }
}

#[test]
fn the_shells_statuses_for_what_does_not_run() {
    let shop = Workshop::with_sources();
    let missing = shop.try_cc(&["no-such-compiler", "main.c"]);
    assert_eq!(missing.status, Some(127));
    assert!(
        missing.stderr.starts_with("headcount: no-such-compiler: "),
        "{missing:?}"
    );
    let useless = shop.try_cc(&["/dev/null", "main.c"]);
    assert_eq!(useless.status, Some(126), "{useless:?}");
    assert_eq!(shop.headcount(&["cc"]).status, Some(125));
}

#[test]
fn sources_may_come_from_anywhere() {
    for compiler in c_compilers() {
        let shop = Workshop::with_sources();
        let mut child = shop
            .command(HEADCOUNT)
            .args([
                "cc", "--", compiler, "-O0", "-g", "-x", "c", "-", "-o", "prog",
            ])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let text = format!("{MAIN_C}{HELPER_C}");
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
        check(&shop.count("prog"), compiler);

        shop.write("words", "-O1 -g\nmain.c 'helper.c'\n-o prog2\n");
        shop.cc(&[compiler, "@words"]);
        check(&shop.count("prog2"), compiler);
    }
}

#[test]
fn names_may_be_odd() {
    let shop = Workshop::with_sources();
    for name in [
        &b"a b.c"[..],
        b"quote\"d.c",
        b"back\\slash.c",
        b"sem;i.c",
        b"caf\xe9.c",
        b"d\xc3\xa9j\xc3\xa0.c",
    ] {
        let name = std::ffi::OsStr::from_bytes(name);
        fs::write(shop.path(".").join(name), HELPER_C).unwrap();
        let said = said(
            shop.command(HEADCOUNT)
                .args(["cc", "--", "gcc", "-g", "main.c"])
                .arg(name),
        );
        assert_eq!(
            (said.stderr.as_str(), said.status),
            ("", Some(0)),
            "{name:?}"
        );
        check(&shop.count("a.out"), &format!("{name:?}"));
    }
}

#[test]
fn text_need_not_be_utf8() {
    let shop = Workshop::with_sources();
    let text = [
        HELPER_C.as_bytes(),
        b"void f(void) { __asm__(\"nop # caf\xe9\"); }\n",
    ]
    .concat();
    shop.write("helper.c", text);
    shop.cc(&["gcc", "-pipe", "-g", "main.c", "helper.c", "-o", "prog"]);
    check(&shop.count("prog"), "Latin-1");
    assert_eq!(shop.refusals(), "nothing.");
}

#[test]
fn every_way_of_linking_is_counted() {
    let shop = Workshop::with_sources();
    for flags in [
        &["-no-pie", "-fno-pie"][..],
        &["-pie", "-fPIE"],
        &["-static"],
        &["-static-pie", "-fPIE"],
        &["-fno-plt"],
        &["-Wl,-z,now"],
        &["-s"],
        &[
            "-ffunction-sections",
            "-fdata-sections",
            "-Wl,--gc-sections",
        ],
    ] {
        for compiler in c_compilers() {
            // clang 14 does not know the start files of static-pie programs.
            shop.cc(&[
                &[compiler, "-O1", "-g", "main.c", "helper.c", "-o", "prog"],
                flags,
            ]
            .concat());
            check(&shop.count("prog"), &format!("{compiler} {flags:?}"));
        }
    }
}

#[test]
fn code_that_is_made_when_linking_is_counted() {
    let shop = Workshop::with_sources();
    let noinline = HELPER_C.replace(
        "int helper",
        "__attribute__((noinline, noclone)) int helper",
    );
    shop.write("helper.c", noinline);
    for flags in [
        &["-flto"][..],
        &["-flto=2"],
        &["-flto", "-ffat-lto-objects"],
    ] {
        let how = format!("{flags:?}");
        shop.cc(&[
            &["gcc", "-O2", "-g", "main.c", "helper.c", "-o", "prog"],
            flags,
        ]
        .concat());
        check(&shop.count("prog"), &how);
        shop.cc(&[&["gcc", "-O2", "-g", "-c", "main.c", "helper.c"], flags].concat());
        shop.cc(&[
            &["gcc", "-O2", "-g", "main.o", "helper.o", "-o", "prog"],
            flags,
        ]
        .concat());
        check(&shop.count("prog"), &how);
    }
    // Fat objects are counted either way.
    shop.must(&["gcc", "-fno-lto", "main.o", "helper.o", "-o", "prog"]);
    check(&shop.count("prog"), "fat objects without -flto");
}

#[test]
fn clang_says_that_it_cannot_be_counted_when_linking() {
    if !have("clang") {
        return;
    }
    let shop = Workshop::with_sources();
    let said = shop.try_cc(&["clang", "-flto", "-c", "main.c"]);
    assert_eq!(said.status, Some(0));
    assert!(
        said.stderr
            .starts_with("headcount: not counted: with -flto"),
        "{said:?}"
    );
}

#[test]
fn a_library_and_its_program_are_one_run() {
    let shop = Workshop::with_sources();
    for compiler in c_compilers() {
        shop.cc(&[
            compiler,
            "-O1",
            "-g",
            "-shared",
            "-fPIC",
            "helper.c",
            "-o",
            "libhelper.so",
        ]);
        shop.cc(&[
            compiler,
            "-O1",
            "-g",
            "main.c",
            "-L.",
            "-lhelper",
            "-Wl,-rpath,$ORIGIN",
            "-o",
            "prog",
        ]);
        check(&shop.count("prog"), compiler);
        let runs = shop.headcount(&["runs", "--format", "csv"]).stdout;
        assert_eq!(runs.lines().count(), 2, "{runs}");
        let modules = shop
            .headcount(&["report", "--by", "module", "--format", "csv"])
            .stdout;
        assert_eq!(modules.lines().count(), 3, "{modules}");
    }
}

/// A program that opens `./plugin.so` and calls `helper` in it.
const OPENS_C: &str = "\
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
    void *plugin = dlopen(\"./plugin.so\", RTLD_NOW | RTLD_LOCAL);
    int (*helper)(int) = (int (*)(int))dlsym(plugin, \"helper\");
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += helper(i);
    printf(\"%d\\n\", sum);
    return dlclose(plugin);
}
";

#[test]
fn a_plug_in_is_counted_in_counted_and_uncounted_programs() {
    let shop = Workshop::with_sources();
    shop.write("opens.c", OPENS_C);
    shop.cc(&[
        "gcc",
        "-O1",
        "-g",
        "-shared",
        "-fPIC",
        "helper.c",
        "-o",
        "plugin.so",
    ]);
    shop.must(&["gcc", "opens.c", "-o", "prog"]);
    let functions = shop.count("prog");
    assert_eq!(functions.keys().collect::<Vec<_>>(), ["helper"]);
    assert_eq!(functions["helper"].calls, 100);
    shop.cc(&["gcc", "opens.c", "-o", "prog"]);
    check(&shop.count("prog"), "counted program, counted plug-in");
    shop.must(&["gcc", "-shared", "-fPIC", "helper.c", "-o", "plugin.so"]);
    let functions = shop.count("prog");
    assert_eq!(functions.keys().collect::<Vec<_>>(), ["main"]);
}

#[test]
fn a_library_that_is_loaded_before_all_others_is_counted() {
    let shop = Workshop::with_sources();
    shop.must(&["gcc", "-shared", "-fPIC", "helper.c", "-o", "libhelper.so"]);
    shop.must(&[
        "gcc",
        "main.c",
        "-L.",
        "-lhelper",
        "-Wl,-rpath,$ORIGIN",
        "-o",
        "prog",
    ]);
    shop.cc(&[
        "gcc", "-O1", "-shared", "-fPIC", "helper.c", "-o", "mine.so",
    ]);
    let said = said(
        shop.command(shop.path("prog"))
            .env("LD_PRELOAD", shop.path("mine.so")),
    );
    assert_eq!(said.stdout, ANSWER);
    assert_eq!(shop.functions()["helper"].calls, 100);
}

#[test]
fn objects_carry_all_they_need() {
    let shop = Workshop::with_sources();
    shop.cc(&["gcc", "-O1", "-g", "-c", "main.c", "helper.c"]);
    shop.must(&["ar", "rcs", "libhelper.a", "helper.o"]);
    shop.must(&["gcc", "main.o", "libhelper.a", "-o", "prog"]);
    check(&shop.count("prog"), "plain gcc, with an archive");
    for stripping in ["-g", "-s"] {
        shop.must(&["strip", stripping, "prog"]);
        check(&shop.count("prog"), &format!("strip {stripping}"));
    }
    shop.must(&["ld", "-r", "main.o", "helper.o", "-o", "both.o"]);
    shop.must(&["gcc", "both.o", "-o", "prog"]);
    check(&shop.count("prog"), "ld -r");
    // Half of the program is enough.
    shop.must(&["gcc", "main.c", "helper.o", "-o", "prog"]);
    assert_eq!(shop.count("prog")["helper"].calls, 100);
}

#[test]
fn other_linkers_do_as_well() {
    let shop = Workshop::with_sources();
    let dropping = ["-ffunction-sections", "-Wl,--gc-sections"];
    for (tool, flag) in [("ld.gold", "-fuse-ld=gold"), ("ld.lld", "-fuse-ld=lld")] {
        if !have(tool) {
            continue;
        }
        for more in [&[][..], &dropping] {
            for compiler in c_compilers() {
                shop.cc(&[
                    &[
                        compiler, flag, "-O1", "-g", "main.c", "helper.c", "-o", "prog",
                    ],
                    more,
                ]
                .concat());
                check(&shop.count("prog"), &format!("{compiler} {flag} {more:?}"));
            }
        }
    }
}

#[test]
fn a_function_in_two_objects_has_one_set_of_counts() {
    let header = "template <class T> __attribute__((noinline)) T twice(T x) { return x > 5 ? 2 * x : x + x; }\n";
    let one = "#include \"twice.h\"\n#include <cstdio>\nint other();\n\
               int main() { int s = 0; for (int i = 0; i < 10; i++) s += twice(i);\n\
               std::printf(\"%d\\n\", s + other()); }\n";
    let two = "#include \"twice.h\"\nint other() { int s = 0; for (int i = 0; i < 7; i++) s += twice(i); return s; }\n";
    for compiler in ["g++", "clang++", "clang++-14", "clang++-19"] {
        if !have(compiler) {
            continue;
        }
        for level in ["-O0", "-O2"] {
            let shop = Workshop::new();
            shop.write("twice.h", header);
            shop.write("one.cc", one);
            shop.write("two.cc", two);
            // Not even built alike.
            shop.cc(&[compiler, level, "-g", "-c", "one.cc"]);
            shop.cc(&[compiler, "-O1", "-g", "-c", "two.cc"]);
            shop.cc(&[compiler, "one.o", "two.o", "-o", "prog"]);
            assert_eq!(shop.must(&["prog"]), "132\n");
            let functions = shop.functions();
            assert_eq!(
                functions["int twice<int>(int)"].calls, 17,
                "{compiler} {level}"
            );
            assert_eq!(functions["other()"].calls, 1, "{compiler} {level}");
        }
    }
}

#[test]
fn exceptions_are_counted_by_every_compiler() {
    let text = "#include <cstdio>\n#include <stdexcept>\n\
                __attribute__((noinline)) void thrower(int i) { if (i % 2) throw std::runtime_error(\"odd\"); }\n\
                int main() { int caught = 0;\n\
                for (int i = 0; i < 9; i++)\n\
                try { thrower(i);\n\
                } catch (std::runtime_error &) {\n\
                caught++; }\n\
                std::printf(\"%d\\n\", caught); }\n";
    for compiler in ["g++", "clang++", "clang++-14", "clang++-19"] {
        if !have(compiler) {
            continue;
        }
        for level in ["-O0", "-O2"] {
            let shop = Workshop::new();
            shop.write("prog.cc", text);
            shop.cc(&[compiler, level, "-g", "prog.cc", "-o", "prog"]);
            assert_eq!(shop.must(&["prog"]), "4\n");
            assert_eq!(
                shop.functions()["thrower(int)"].calls,
                9,
                "{compiler} {level}"
            );
            if level == "-O0" {
                assert_eq!(shop.lines("prog.cc")[&8], 4, "{compiler}");
            }
        }
    }
}

#[test]
fn fortran_is_counted() {
    if !have("gfortran") {
        return;
    }
    let text = "program p\n  integer :: i, s\n  s = 0\n  do i = 1, 10\n    s = s + i\n  end do\n  print *, s\nend program\n";
    for level in ["-O0", "-O1"] {
        let shop = Workshop::new();
        shop.write("p.f90", text);
        shop.cc(&["gfortran", level, "-g", "p.f90", "-o", "p"]);
        assert_eq!(shop.must(&["p"]).trim(), "55");
        assert_eq!(shop.functions()["MAIN__"].calls, 1);
        assert_eq!(shop.lines("p.f90")[&7], 1);
        if level == "-O0" {
            assert_eq!(shop.lines("p.f90")[&5], 10);
        }
    }
}

/// `helper` by hand: the lines are known.
const HELPER_S: &str = "\
# helper, by hand
\t.text
\t.globl helper
\t.type helper, @function
helper:
\tmovl %edi, %eax
\txorl %edx, %edx
\tmovl $3, %ecx
\tdivl %ecx
\ttestl %edx, %edx
\tjne 1f
\tmovl $1, %eax
\tret
1:\tmovl $2, %eax
\tret
\t.size helper, .-helper
\t.section .note.GNU-stack,\"\",@progbits
";

#[test]
fn assembly_by_hand_is_counted_line_by_line() {
    for compiler in c_compilers() {
        for flags in [&[][..], &["-g"], &["-pipe"]] {
            let shop = Workshop::with_sources();
            shop.write("helper.s", HELPER_S);
            shop.cc(&[&[compiler, "main.c", "helper.s", "-o", "prog"], flags].concat());
            check(&shop.count("prog"), compiler);
            // A pipe has no name.
            let name = if flags == ["-pipe"] && compiler != "gcc" {
                "*"
            } else {
                "*helper.s"
            };
            let lines = shop.lines(name);
            let counts =
                [6, 11, 12, 13, 14, 15].map(|line| lines.get(&line).copied().unwrap_or(999));
            assert_eq!(
                counts,
                [100, 100, 34, 34, 66, 66],
                "{compiler} {flags:?} {lines:?}"
            );
        }
    }
}

#[test]
fn a_preprocessor_may_come_before() {
    for compiler in c_compilers() {
        let shop = Workshop::with_sources();
        shop.write("three.h", "/* three */\n#define THREE $3\n");
        let text = HELPER_S
            .replace("$3", "THREE")
            .replace("# helper, by hand", "#include \"three.h\"");
        shop.write("helper.S", text);
        shop.cc(&[compiler, "main.c", "helper.S", "-o", "prog"]);
        check(&shop.count("prog"), compiler);
        let lines = shop.lines("*helper.S");
        assert_eq!(
            (lines[&11], lines[&12], lines[&14]),
            (100, 34, 66),
            "{compiler}"
        );
    }
}

#[test]
fn a_macro_is_refused_by_name() {
    let macros = "\t.macro SAVE reg\n\tpushq \\reg\n\t.endm\n\t.globl other\n\t.type other, @function\n\
                  other:\tsave %rbx\n\tpopq %rbx\n\tret\n\t.size other, .-other\n";
    for compiler in c_compilers() {
        let shop = Workshop::with_sources();
        shop.write("helper.S", format!("{macros}{HELPER_S}"));
        shop.cc(&[compiler, "-g", "main.c", "helper.S", "-o", "prog"]);
        let functions = shop.count("prog");
        check(&functions, compiler);
        assert!(!functions.contains_key("other"));
        assert_eq!(
            shop.refusals(),
            "other (helper.S:6): it uses a macro, `save`",
            "{compiler}"
        );
    }
}

#[test]
fn intel_syntax_is_refused_by_name() {
    for compiler in c_compilers() {
        let shop = Workshop::with_sources();
        let words = [compiler, "-masm=intel", "-O1", "-g", "-c", "main.c"];
        shop.cc(&words);
        shop.cc(&[compiler, "-O1", "-g", "-c", "helper.c"]);
        // The refused object first: it must not stand in for the runtime.
        shop.must(&[compiler, "main.o", "helper.o", "-o", "prog"]);
        let functions = shop.count("prog");
        assert_eq!(functions["helper"].calls, 100, "{compiler}");
        assert!(!functions.contains_key("main"), "{compiler}");
        let refusal = "all of main.c (main.c): it is written in Intel syntax";
        assert_eq!(shop.refusals(), refusal, "{compiler}");
        // A program of which nothing is counted says so, too.
        shop.cc(&[compiler, "-masm=intel", "main.c", "helper.c", "-o", "prog"]);
        assert!(shop.count("prog").is_empty());
        assert!(shop.refusals().starts_with("all of helper.c"), "{compiler}");
    }
}

#[test]
fn code_for_other_machines_is_left_alone() {
    let shop = Workshop::new();
    shop.write(
        "boot.s",
        "\t.code16\n\t.globl boot\nboot:\tmovw $1, %ax\n\tret\n",
    );
    shop.cc(&["gcc", "-c", "boot.s"]);
    let sections = shop.must(&["objdump", "-h", "boot.o"]);
    assert!(!sections.contains("headcount_counters"), "{sections}");
}

#[test]
fn what_only_clangs_own_assembler_knows_is_built_with_it() {
    if !have("clang") {
        return;
    }
    let shop = Workshop::with_sources();
    // GNU as has no such directive.
    let text = format!("\t.cg_profile main, helper, 100\n{HELPER_S}");
    shop.write("helper.s", text);
    let plain = shop.run(&["clang", "-c", "helper.s"]);
    assert_eq!(plain.status, Some(0), "{plain:?}");
    assert_ne!(shop.run(&["as", "helper.s", "-o", "gnu.o"]).status, Some(0));
    shop.cc(&["clang", "main.c", "helper.s", "-o", "prog"]);
    let functions = shop.count("prog");
    assert!(functions.contains_key("main") && !functions.contains_key("helper"));
    let refusals = shop.refusals();
    assert!(
        refusals.starts_with("all of helper.s (helper.s): the assembler rejects"),
        "{refusals}"
    );
}

#[test]
fn make_builds_with_it() {
    if !have("make") {
        return;
    }
    let shop = Workshop::with_sources();
    let text = "CFLAGS = -O1 -g\nprog: main.o helper.o\n\t$(CC) $(LDFLAGS) $^ -o $@\n";
    shop.write("Makefile", text);
    let said = said(
        shop.command("make")
            .arg("-s")
            .arg("-j2")
            .arg(format!("CC={HEADCOUNT} cc -- gcc")),
    );
    assert_eq!((said.stderr.as_str(), said.status), ("", Some(0)));
    check(&shop.count("prog"), "make");
}

#[test]
fn cmake_builds_with_it() {
    if !have("cmake") || !have("make") {
        return;
    }
    let shop = Workshop::with_sources();
    shop.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.10)\nproject(prog C)\nadd_library(helper STATIC helper.c)\n\
         add_executable(prog main.c)\ntarget_link_libraries(prog helper)\n",
    );
    let launcher = format!("-DCMAKE_C_COMPILER_LAUNCHER={HEADCOUNT};cc;--");
    let configure = [
        "cmake",
        "-S",
        ".",
        "-B",
        "build",
        "-DCMAKE_C_FLAGS=-O1 -g",
        &launcher,
    ];
    shop.must(&configure);
    shop.must(&["cmake", "--build", "build"]);
    check(&shop.count("build/prog"), "cmake");
}

#[test]
fn launchers_and_other_tools_are_let_through() {
    let shop = Workshop::with_sources();
    shop.cc(&["gcc", "-c", "main.c", "helper.c"]);
    shop.cc(&["ar", "rcs", "libhelper.a", "helper.o"]);
    shop.cc(&["ranlib", "libhelper.a"]);
    shop.cc(&["gcc", "main.o", "libhelper.a", "-o", "prog"]);
    check(&shop.count("prog"), "ar");
    shop.cc(&["as", "--64", "-o", "plain.o", "/dev/null"]);
    if have("ccache") {
        shop.cc(&["ccache", "gcc", "-O1", "-c", "main.c"]);
        shop.cc(&["ccache", "gcc", "main.o", "helper.o", "-o", "prog"]);
        check(&shop.count("prog"), "ccache");
    }
}

#[test]
fn compilers_that_nobody_knows_are_called_as_they_are() {
    let shop = Workshop::with_sources();
    shop.write(
        "odd",
        "#!/bin/sh\n[ \"$*\" = 'prog.odd -o prog' ] || exit 5\necho compiled\n",
    );
    shop.must(&["chmod", "+x", "odd"]);
    for via in [&[][..], &["--via", "source"]] {
        let said =
            shop.headcount(&[&["cc"], via, &["--", "./odd", "prog.odd", "-o", "prog"]].concat());
        assert_eq!(
            (said.stdout.as_str(), said.status),
            ("compiled\n", Some(0)),
            "{said:?}"
        );
        assert!(
            said.stderr
                .contains("./odd is no compiler that headcount knows"),
            "{said:?}"
        );
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    }
    // What calls a compiler answers as it does.
    shop.write("wrapped", "#!/bin/sh\nexec gcc -DWRAPPED \"$@\"\n");
    shop.must(&["chmod", "+x", "wrapped"]);
    shop.cc(&["./wrapped", "-g", "-o", "prog", "main.c", "helper.c"]);
    check(&shop.count("prog"), "wrapped");
}

#[test]
fn libtool_takes_no_name_of_ours_for_the_users() {
    let shop = Workshop::with_sources();
    for (via, file) in [(&[][..], "a.o"), (&["--via", "source"], "b.o")] {
        let compile = ["--", "gcc", "-c", "helper.c", "-o", file];
        let said = shop.headcount(&[&["cc"], via, &compile].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
        // The kinds of symbols, and the names, that it looks for.
        let symbols = shop.must(&["nm", file]);
        let is_name = |name: &str| {
            let mut letters = name.chars();
            letters
                .next()
                .is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
                && letters.all(|it| it.is_ascii_alphanumeric() || it == '_')
        };
        let users = symbols.lines().filter_map(|line| {
            let mut words = line.split_whitespace().rev();
            let (name, kind) = (words.next()?, words.next()?);
            (kind.chars().all(|it| "ABCDGIRSTW".contains(it)) && is_name(name)).then_some(name)
        });
        assert_eq!(users.collect::<Vec<_>>(), ["helper"], "{symbols}");
    }
}

#[test]
fn probes_of_configure_scripts_get_the_same_answers() {
    let probes = [
        ("int main(void) { return 0; }", &["-o", "conftest"][..]),
        ("#include <no_such_header.h>\n", &["-c"]),
        (
            "int main(void) { return no_such_function(); }",
            &["-o", "conftest"],
        ),
        (
            "#include <math.h>\nint main(void) { return (int)cos(1); }",
            &["-o", "conftest", "-lm"],
        ),
        ("int main(void) { __asm__(\"nop\"); return 0; }", &["-c"]),
        (
            "int main(void) { __asm__(\"no_such_insn\"); return 0; }",
            &["-c"],
        ),
        (
            "static int a[1 - 2 * !(sizeof(long) == 8)]; int main(void) { return a[0]; }",
            &["-c"],
        ),
        ("int main(void) { return 0; }", &["-c", "-fno-such-option"]),
        (
            "int main(void) { return 0; }",
            &["-Werror", "-Wall", "-c", "-o", "odd.obj"],
        ),
    ];
    for compiler in c_compilers() {
        let (shop, plain) = (Workshop::new(), Workshop::new());
        for (text, flags) in probes {
            shop.write("conftest.c", text);
            plain.write("conftest.c", text);
            let words = [&[compiler, "conftest.c"], flags].concat();
            let (ours, theirs) = (shop.try_cc(&words), plain.run(&words));
            assert_eq!(ours.status, theirs.status, "{words:?} {text}");
            assert_eq!(
                ours.stderr.is_empty(),
                theirs.stderr.is_empty(),
                "{words:?} {text} {ours:?}"
            );
        }
        // What a compiler says about itself.
        for words in [
            &["-v"][..],
            &["-print-search-dirs"],
            &["-dM", "-E", "-x", "c", "/dev/null"],
        ] {
            let words = [&[compiler], words].concat();
            assert_eq!(
                shop.try_cc(&words).stdout,
                plain.run(&words).stdout,
                "{words:?}"
            );
        }
    }
}

/// CMake and autoconf (for Fortran) ask a compiler where it looks, and write that into what they make.
#[test]
fn libraries_are_looked_for_where_they_ever_were() {
    let shop = Workshop::with_sources();
    let folders = |said: &str| {
        let words = said.split_whitespace();
        let words =
            words.filter(|word| word.starts_with("-L") || word.starts_with("LIBRARY_PATH="));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    for compiler in c_compilers() {
        for more in [&[][..], &["-B/usr/bin/"]] {
            let build = [&[compiler, "-v", "main.c", "helper.c", "-o", "prog"], more].concat();
            let (theirs, ours) = (shop.run(&build), shop.try_cc(&build));
            assert_eq!(folders(&ours.stderr), folders(&theirs.stderr), "{build:?}");
            assert!(!folders(&theirs.stderr).is_empty(), "{theirs:?}");
            check(&shop.count("prog"), &format!("{build:?}"));
        }
    }
}

#[test]
fn a_home_is_not_needed() {
    let shop = Workshop::with_sources();
    for home in [None, Some("/proc/none")] {
        let mut command = shop.command(HEADCOUNT);
        command
            .env_remove("XDG_CACHE_HOME")
            .env_remove("HOME")
            .env("TMPDIR", shop.path("."));
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let said =
            said(command.args(["cc", "--", "gcc", "-g", "main.c", "helper.c", "-o", "prog"]));
        assert_eq!(
            (said.stderr.as_str(), said.status),
            ("", Some(0)),
            "{home:?}"
        );
        check(&shop.count("prog"), "no home");
    }
}

#[test]
fn the_user_may_have_chosen_an_assembler() {
    if !have("clang") {
        return;
    }
    let shop = Workshop::with_sources();
    for flag in ["-fintegrated-as", "-fno-integrated-as"] {
        shop.cc(&["clang", flag, "-g", "main.c", "helper.c", "-o", "prog"]);
        check(&shop.count("prog"), flag);
    }
}

#[test]
fn ccache_may_stand_before_us_too() {
    if !have("ccache") {
        return;
    }
    for via in ["assembly", "source"] {
        for compiler in c_compilers() {
            let shop = Workshop::with_sources();
            let compile = |source: &str, object: &str| {
                let ours = [HEADCOUNT, "cc", "--via", via, "--", compiler];
                let words = [&ours, &["-O1", "-g", "-c", source, "-o", object][..]].concat();
                let mut command = shop.command("ccache");
                let said = said(command.args(words).env("CCACHE_DIR", shop.path("cache")));
                assert_eq!(
                    (said.stderr.as_str(), said.status),
                    ("", Some(0)),
                    "{compiler}"
                );
            };
            // The second time from the cache.
            for _ in 0..2 {
                compile("main.c", "main.o");
                compile("helper.c", "helper.o");
                shop.cc(&[compiler, "main.o", "helper.o", "-o", "prog"]);
                assert_eq!(shop.count("prog")["helper"].calls, 100, "{via} {compiler}");
            }
        }
    }
}

#[test]
fn functions_with_short_names_are_counted() {
    // `f` and `b` also end the names of numbered labels: `1f`, `1b`.
    let shop = Workshop::new();
    shop.write(
        "prog.c",
        "#include <stdio.h>\n#define N __attribute__((noinline, noclone))\n\
         N int f(int x) { return x * 2; }\nN int b(int x) { return f(x + 1); }\n\
         int main(void) { int s = 0; for (int i = 0; i < 10; i++) s += b(i); printf(\"%d\\n\", s); return 0; }\n",
    );
    shop.cc(&["gcc", "-O2", "-fno-inline", "-g", "prog.c", "-o", "prog"]);
    assert_eq!(shop.must(&["prog"]), "110\n");
    let functions = shop.functions();
    assert_eq!((functions["f"].calls, functions["b"].calls), (10, 10));
    assert_eq!(shop.refusals(), "nothing.");
}

#[test]
fn functions_that_only_uncounted_code_calls_know_their_thread() {
    let shop = Workshop::new();
    shop.write(
        "prog.c",
        "#include <pthread.h>\nstatic volatile int sink;\n\
         __attribute__((noinline)) static void work(int i) { sink = i; }\n\
         static void *start(void *p) { __asm__ volatile(\"jmp .+2\"); for (int i = 0; i < 10000; i++) work(i); return p; }\n\
         int main(void) { pthread_t t[8]; for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, start, 0);\n\
         for (int i = 0; i < 8; i++) pthread_join(t[i], 0); return 0; }\n",
    );
    shop.cc(&["gcc", "-O1", "-g", "-pthread", "prog.c", "-o", "prog"]);
    shop.must(&["prog"]);
    assert_eq!(shop.functions()["work"].calls, 80_000);
    let refusal = "start (prog.c:4): its inline assembly jumps to an odd place";
    assert_eq!(shop.refusals(), refusal);
}
