//! What is compiled is not yet in the program: the linker may have no use for it.

use std::fmt::Write;

use crate::workshop::{HELPER_C, MAIN_C, Workshop, have};

/// Why what nobody needs is not counted.
const REMOVED: &str = "removed by the linker; where it was inlined, it is counted";

const DROPPING: [&str; 4] = ["-O0", "-g", "-ffunction-sections", "-Wl,--gc-sections"];

/// The linkers that drop functions and that are here.
fn linkers() -> impl Iterator<Item = &'static str> {
    let all = [("ld.bfd", "-fuse-ld=bfd"), ("ld.lld", "-fuse-ld=lld")];
    all.into_iter().filter(|it| have(it.0)).map(|it| it.1)
}

impl Workshop {
    /// What the report says is not counted: name, where, and why.
    fn refused(&self) -> Vec<String> {
        let here = format!("{}/", self.path("").canonicalize().unwrap().display());
        let refusals = self.refusals().replace(&here, "");
        let refusals = refusals.replace(REMOVED, "removed");
        refusals.lines().map(|it| it.trim().to_owned()).collect()
    }

    fn names(&self) -> Vec<String> {
        self.functions().into_keys().collect()
    }
}

#[test]
fn functions_that_the_linker_removed_are_named_and_not_said_never_to_have_run() {
    let dead =
        "static int dead(int x) { return x ? 4 : 5; }\nint unused(int x) { return dead(x) + 3; }\n";
    for linker in linkers() {
        let shop = Workshop::with_sources();
        shop.write("helper.c", format!("{HELPER_C}{dead}"));
        // Nothing of it is used: not even one section is left.
        shop.write("spare.c", "int spare(void) { return 6; }\n");
        let sources = ["gcc", linker, "main.c", "helper.c", "spare.c", "-o", "prog"];
        shop.cc(&[&sources[..], &DROPPING].concat());
        shop.must(&["prog"]);
        assert_eq!(shop.names(), ["helper", "main"], "{linker}");
        let expected = [
            "dead (helper.c:7): removed",
            "spare (spare.c:1): removed",
            "unused (helper.c:8): removed",
        ];
        assert_eq!(shop.refused(), expected, "{linker}");
        let said = shop.headcount(&["explain", "unused"]);
        assert!(
            said.stdout
                .contains("is not counted: removed by the linker"),
            "{said:?}"
        );
    }
}

#[test]
fn functions_of_counted_c_that_the_linker_removed_are_named_as_well() {
    // `dead` goes with its only user; a copy of `twice` stays where it was inlined; and `idle`, of
    // which the compiler makes nothing, never ran.
    let more = "static int dead(int x) { return x ? 4 : 5; }\n\
                int unused(int x) { return dead(x) + 3; }\n\
                int twice(int x) { return x * 2; }\n\
                int both(int x) { return twice(x); }\n\
                static int idle(int x) { return x; }\n\
                int busy(int x) { if (0) return idle(x); return both(x); }\n\
                int also(int x) { if (0) return idle(x); return both(x); }\n";
    for linker in linkers() {
        for (compiler, level) in [("gcc", "-O1"), ("gcc", "-O2"), ("clang", "-O1")] {
            if !have(compiler) {
                continue;
            }
            let shop = Workshop::with_sources();
            shop.write("helper.c", format!("{HELPER_C}{more}"));
            let main = MAIN_C.replace("helper(i)", "(busy(i), helper(i))");
            shop.write("main.c", format!("int busy(int);\n{main}"));
            shop.write("spare.c", "int spare(void) { return 6; }\n");
            let sources = ["main.c", "helper.c", "spare.c", "-o", "prog"];
            let words = [&[compiler, linker, level], &sources[..], &DROPPING[1..]].concat();
            shop.via_source(&[], &words);
            shop.must(&["prog"]);
            let functions = shop.functions();
            for (name, calls) in [("main", 1), ("busy", 100), ("both", 100), ("twice", 100)] {
                assert_eq!(functions[name].calls, calls, "{words:?}");
            }
            let never = functions.iter().filter(|it| it.1.calls == 0);
            let never: Vec<&String> = never.map(|it| it.0).collect();
            assert_eq!(never, ["idle"], "{words:?}");
            let expected = [
                "also (helper.c:13): removed",
                "dead (helper.c:7): removed",
                "spare (spare.c:1): removed",
                "unused (helper.c:8): removed",
            ];
            assert_eq!(shop.refused(), expected, "{words:?}");
        }
    }
}

#[test]
fn a_removed_function_is_named_though_another_file_has_one_of_that_name() {
    let shop = Workshop::with_sources();
    let own = "static int own(int x) { return x; }\n";
    shop.write(
        "main.c",
        format!("{own}{}", MAIN_C.replace("helper(i)", "own(helper(i))")),
    );
    shop.write(
        "spare.c",
        format!("\n{own}int spare(int x) {{ return own(x); }}\n"),
    );
    shop.cc(&[
        &["gcc", "main.c", "helper.c", "spare.c", "-o", "prog"],
        &DROPPING[..],
    ]
    .concat());
    assert_eq!(shop.count("prog")["own"].calls, 100);
    let expected = ["own (spare.c:2): removed", "spare (spare.c:3): removed"];
    assert_eq!(shop.refused(), expected);
}

/// A header with many functions of which every object that includes it has a copy.
fn header(many: usize) -> String {
    let mut text = String::new();
    for number in 0..many {
        let _ = writeln!(
            text,
            "template <class T> struct S{number} {{ static T same(T x) {{ return x > 5 ? x : 2 * x; }} }};"
        );
    }
    text
}

#[test]
fn copies_of_a_function_that_is_in_the_program_are_not_removed_functions() {
    let sum = |name: &str| {
        let terms = (0..30).map(|it| format!("S{it}<int>::same(x)"));
        let terms: Vec<String> = terms.collect();
        format!("int {name}(int x) {{ return {}; }}\n", terms.join(" + "))
    };
    let unused =
        "inline int lost(int x) { return x * 3; }\nint unused(int x) { return lost(x); }\n";
    for linker in linkers() {
        let shop = Workshop::new();
        shop.write("same.h", header(30));
        let main = "int two(int);\nint main() { return (one(1) + two(2)) != 180; }\n";
        shop.write(
            "one.cc",
            format!("#include \"same.h\"\n{}{main}", sum("one")),
        );
        shop.write(
            "two.cc",
            format!("#include \"same.h\"\n{unused}{}", sum("two")),
        );
        shop.cc(&[
            &["g++", linker, "one.cc", "two.cc", "-o", "prog"],
            &DROPPING[..],
        ]
        .concat());
        shop.must(&["prog"]);
        let functions = shop.functions();
        assert_eq!(functions.len(), 33, "{linker}");
        assert!(functions.values().all(|it| it.calls > 0), "{linker}");
        assert_eq!(functions["S7<int>::same(int)"].calls, 2, "{linker}");
        let expected = [
            "unused(int) (two.cc:3): removed",
            "lost(int) (two.cc:2): removed",
        ];
        let mut refused = shop.refused();
        refused.sort_by_key(|it| !it.starts_with("unused"));
        assert_eq!(refused, expected, "{linker}");
    }
}

#[test]
fn a_copy_that_was_taken_from_an_object_without_counters_is_said_to_be_that() {
    let shop = Workshop::new();
    shop.write("same.h", header(1));
    let body = "#include \"same.h\"\nint other(int x) { return S0<int>::same(x); }\n";
    shop.write("other.cc", body);
    shop.write("main.cc", "#include \"same.h\"\nint other(int);\nint main() { return other(S0<int>::same(1)) != 4; }\n");
    shop.must(&["g++", "-g", "-O0", "-c", "other.cc"]);
    shop.cc(&["g++", "-g", "-O0", "other.o", "main.cc", "-o", "prog"]);
    shop.must(&["prog"]);
    assert_eq!(shop.names(), ["main"]);
    let why = "the linker took it from another object, which was not built with `headcount cc`";
    assert_eq!(
        shop.refused(),
        [format!("S0<int>::same(int) (same.h:1): {why}")]
    );
}
