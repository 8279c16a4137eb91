//! A program that traces another does so when it is counted, too.

use crate::workshop::{HEADCOUNT, Workshop};

const TEXT: &str = include_str!("detours/tracing.c");

/// How often the program calls `before` while it is counted, in each of its ways.
const WAYS: [(&str, u64); 3] = [("asked", 40), ("untraced", 40), ("tracing", 35)];

#[test]
fn who_is_traced_by_another_is_let_go_of() {
    let shop = Workshop::new();
    shop.write("tracing.c", TEXT);
    shop.must(&["gcc", "-g", "-O1", "tracing.c", "-o", "tracing", "-pthread"]);
    for engine in ["detour", "breakpoint"] {
        for (way, counted) in WAYS {
            let native = shop.run(&["tracing", way]);
            let profile = format!("{engine}-{way}.db");
            let words = [HEADCOUNT, "run", "-o", &profile, "--engine", engine];
            let words = [&words, &["--modules", "main", "--", "./tracing", way][..]].concat();
            let said = shop.run(&words);
            let what = format!("{engine} {way}: {said:?}");
            assert_eq!(
                (&said.stdout, said.status),
                (&native.stdout, native.status),
                "{what}"
            );
            assert!(said.stderr.contains("only one tracer"), "{what}");
            let functions = shop.functions_of(&[&profile]);
            assert_eq!(functions["before"].calls, counted, "{what}");
            assert_eq!(functions["after"].calls, 0, "{what}");
        }
    }
}

/// Sanitizers stop the program to look for leaks when it ends.
#[test]
fn a_leak_is_found_as_ever() {
    let shop = Workshop::with_sources();
    let leak = "#include <stdlib.h>\nint helper(int x) { return malloc(x + 1) ? x % 3 : 0; }\n";
    shop.write("helper.c", leak);
    let words = [
        "gcc",
        "-g",
        "-fsanitize=address",
        "main.c",
        "helper.c",
        "-o",
        "prog",
    ];
    shop.must(&words);
    let native = shop.run(&["prog"]);
    assert!(
        native.stderr.contains("LeakSanitizer: detected"),
        "{native:?}"
    );
    let said = shop.run(&[HEADCOUNT, "run", "-q", "-o", "leak.db", "--", "./prog"]);
    assert_eq!((&said.stdout, said.status), (&native.stdout, native.status));
    let summary = |text: &str| {
        text.lines()
            .find(|it| it.contains("SUMMARY"))
            .map(str::to_owned)
    };
    assert_eq!(summary(&said.stderr), summary(&native.stderr));
    assert_eq!(shop.functions_of(&["leak.db"])["helper"].calls, 100);
}
