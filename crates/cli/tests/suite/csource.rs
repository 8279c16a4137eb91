//! `headcount csource`: C that counts itself, for any compiler.

use std::fs;

use crate::workshop::{self, Workshop, c_compilers, have, said};

/// Counts `a.c`, compiles it with `gcc`, and runs it.
fn count_and_run(shop: &Workshop, options: &[&str], words: &[&str]) {
    let command = ["csource", "a.c", "-o", "counted.c"];
    let said = shop.headcount(&[&command[..], options].concat());
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    shop.must(&["gcc", "-w", "counted.c", "-o", "a"]);
    let _ = shop.run(&[&["./a"], words].concat());
}

const MACROS: &str = "\
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MAX3(a, b, c) \\
    MAX(a, MAX(b, c))
#define CHECK(c) do { if (!(c)) return -1; } while (0)
#define SQUARE(x) ((x) * (x))
#define LIMIT (4 * 10)
static int f(int i)
{
    int s = MAX(i, 3), MAX_of = 2;
    CHECK(i != 7);
    s += MAX3(i, 2, SQUARE(MAX_of));
    return s + LIMIT;
}
int main(void)
{
    int s = 0;
    for (int i = 0; i < 10; i++)
        s += f(i);
    return s == 0;
}
";

/// What macros stand for cannot be counted in a text that no preprocessor has seen.
#[test]
fn macros_that_stay_are_named_with_what_is_not_counted_of_them() {
    let shop = Workshop::new();
    shop.write("a.c", MACROS);
    count_and_run(&shop, &["--no-cpp"], &[]);
    let text = fs::read_to_string(shop.path("counted.c")).unwrap();
    assert!(text.contains("int s = MAX(i, 3)"), "{text}");
    let refusals = shop.refusals();
    let refusals: Vec<&str> = refusals.lines().map(str::trim).collect();
    assert_eq!(
        refusals,
        [
            "f (a.c:9): conditional operators in the macro MAX, which is not expanded",
            "f (a.c:10): statements in the macro CHECK, which is not expanded",
            "f (a.c:11): conditional operators in the macro MAX3, which is not expanded",
        ]
    );
    let counts = shop.counts("a.c");
    let wanted = [(9, 10), (10, 10), (11, 9), (12, 9), (17, 11), (18, 10)];
    for (line, count) in wanted {
        assert_eq!(counts.get(&line), Some(&count), "line {line}");
    }
    // Preprocessed, there is nothing to tell.
    shop.forget();
    count_and_run(&shop, &[], &[]);
    assert_eq!(shop.refusals(), "nothing.");
}

/// Of macros in files that are not read, only the names are known.
#[test]
fn names_that_included_files_may_define_are_listed() {
    let shop = Workshop::new();
    shop.write("most.h", "#define MOST(a, b) ((a) > (b) ? (a) : (b))\n");
    let text = "#include \"most.h\"\n#include <stdio.h>\nextern int puts(const char *);\n\
        enum { SIZE = 3 };\nstatic int twice(int x) { return 2 * x; }\n\
        int main(void)\n{\n    int (*call)(int) = twice;\n    puts(\"x\");\n\
        printf(\"%d\\n\", MOST(call(2), SIZE));\n    return 0;\n}\n";
    shop.write("a.c", text);
    // `printf` and `MOST` have nothing in their arguments that would be counted.
    count_and_run(&shop, &["--no-cpp"], &[]);
    assert_eq!(
        shop.refusals(),
        "macros of included files (a.c:1): only a preprocessor can tell whether these are macros \
         with something to count in them: MOST, printf"
    );
}

/// A macro may jump, or be jumped to, where nobody sees it: what follows has counters of its own.
#[test]
fn jumps_inside_of_macros_that_stay_are_counted_where_they_arrive() {
    let hidden = "#define LEAVE_IF(c) if (c) break\n#define NEXT_IF(c) if (c) continue\n\
        #define OUT_IF(c) do { if (c) goto out; } while (0)\n#define FIVE case 5\n\
        #define bail return 100\n";
    let text = "\
static int f(int i)
{
    int n = 0, k;
    for (k = 0; k < 10; k++) {
        NEXT_IF(k == i);
        LEAVE_IF(k * i > 40);
        n++;
    }
    n++;
    OUT_IF(i == 3);
    if (i == 4)
        bail;
    while (1) {
        LEAVE_IF(n > 20);
        n += 5;
    }
    n++;
    switch (i) {
    case 1:
        n++;
        break;
    default:
        n--;
    }
    switch (i) {
    case 2:
        return 2;
        FIVE: n++;
    }
    n++;
out:
    return n;
}
int main(void)
{
    for (int i = 0; i < 10; i++)
        f(i);
}
";
    let lines = |shop: &Workshop| -> Vec<(u32, u64)> {
        let all = shop.counts("a.c").into_iter();
        // Jumps, once they can be seen, are counted on their lines as well.
        all.filter(|(line, _)| ![10, 11, 15, 17, 19].contains(line))
            .collect()
    };
    let shop = Workshop::new();
    shop.write("hidden.h", hidden);
    let preprocessed = {
        shop.write("a.c", format!("#include \"hidden.h\"\n{text}"));
        count_and_run(&shop, &[], &[]);
        lines(&shop)
    };
    assert!(preprocessed.len() > 15, "{preprocessed:?}");
    shop.forget();
    count_and_run(&shop, &["--no-cpp"], &[]);
    let text = fs::read_to_string(shop.path("counted.c")).unwrap();
    assert!(text.contains("LEAVE_IF(n > 20);"), "it was preprocessed");
    assert_eq!(lines(&shop), preprocessed);
}

#[test]
fn the_preprocessor_is_the_one_of_the_environment_unless_another_is_named() {
    let shop = Workshop::new();
    shop.write(
        "a.c",
        "int main(void)\n{\n#ifdef OTHER\n    return OTHER;\n#endif\n    return 0;\n}\n",
    );
    let status = |variable: &str, options: &[&str]| {
        let mut command = shop.command(workshop::HEADCOUNT);
        command.args(["csource", "a.c", "-o", "counted.c"]);
        let said = said(command.args(options).env("CPP", variable));
        assert_eq!((said.status, said.stderr.as_str()), (Some(0), ""));
        shop.must(&["gcc", "counted.c", "-o", "a"]);
        shop.run(&["./a"]).status
    };
    assert_eq!(status("gcc -E -DOTHER=3", &[]), Some(3));
    assert_eq!(status("gcc -E -DOTHER=3", &["--cpp", "cc -E"]), Some(0));
    assert_eq!(status("", &[]), Some(0));
    let mut command = shop.command(workshop::HEADCOUNT);
    let said = said(
        command
            .args(["csource", "a.c"])
            .env("CPP", "no-such-cpp -E"),
    );
    assert_eq!(said.status, Some(2));
    assert!(
        said.stderr
            .contains("cannot run the preprocessor `no-such-cpp -E` (from CPP in the environment)"),
        "{}",
        said.stderr
    );
}

/// The command of each run, as `headcount runs` shows it.
fn commands(shop: &Workshop) -> Vec<String> {
    let csv = shop.headcount(&["runs", "--format", "csv"]).stdout;
    let mut rows = csv.lines();
    let columns: Vec<&str> = rows.next().unwrap_or_default().split(',').collect();
    let command = columns.iter().position(|it| *it == "command");
    let command = command.unwrap_or_else(|| panic!("{columns:?}"));
    let cell = |row: &str| {
        row.split(',')
            .nth(command)
            .map(|it| it.trim_matches('"').to_owned())
    };
    rows.filter_map(cell).collect()
}

#[test]
fn a_run_has_the_command_of_its_program() {
    let shop = Workshop::new();
    shop.write("a.c", "int main(void) { return 0; }\n");
    count_and_run(&shop, &[], &["one", "two words", ""]);
    let all = commands(&shop);
    assert_eq!(all.len(), 1);
    assert!(all[0].ends_with("/a one two words "), "{all:?}");
    // Longer than any buffer.
    let long = "x".repeat(50_000);
    let _ = shop.run(&["./a", &long]);
    let all = commands(&shop);
    assert!(all[1].ends_with(&format!("/a {long}")), "{}", all[1].len());
}

/// Where there is no `/proc`, the C library knows at least the program's name.
#[test]
fn a_run_has_the_name_of_its_program_without_proc() {
    let shop = Workshop::new();
    shop.write("a.c", "int main(void) { return 0; }\n");
    count_and_run(&shop, &[], &[]);
    shop.forget();
    let script = "mount -t tmpfs none /proc && ./a one two";
    let ran =
        have("unshare") && shop.run(&["unshare", "-rm", "sh", "-c", script]).status == Some(0);
    if !ran {
        eprintln!("skipped: no /proc can be hidden here");
        return;
    }
    assert_eq!(commands(&shop), ["./a"]);
}

/// What a cut-off file says is not guessed.
#[test]
fn counts_that_were_cut_off_are_refused() {
    let shop = Workshop::new();
    shop.write("a.c", "int main(void) { return 0; }\n");
    count_and_run(&shop, &[], &["some", "words"]);
    let file = shop.only_counter_file();
    let whole = fs::read(&file).unwrap();
    for length in [whole.len() - 1, whole.len() - 9, whole.len() - 30, 20] {
        fs::write(&file, &whole[..length]).unwrap();
        let said = shop.headcount(&["collect"]);
        assert!(
            said.stderr.contains("was cut off; run the program again"),
            "{length}: {}",
            said.stderr
        );
    }
}

/// Old C, in which every block begins with its declarations.
const OLD: &str = "\
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int deep(int n)
{
    if (n == 7)
        exit(0);
    return n;
}
static int table[3] = { 1, 2, 3 };
int shown(int n, char *text);
int shown(int n, char *text)
{
    int found = deep(n);
    unsigned char last = 0;
    char *end = strchr(text, 'x');
    size_t length = strlen(text);
    assert(n < INT_MAX && text != NULL);
    switch (n) {
    case 1: {
        int inner = table[n % 3];
        found += inner;
        break;
    }
    case 2:
        last = (unsigned char)(found ? 1 : 2);
        /* fall through */
    case 3:
        found++;
        break;
    default:
        for (; length > 0; length--)
            if (end == NULL || errno == EINTR)
                break;
    }
    do
        found--;
    while (found > n && n != 0);
    return found + last;
}
int main(void)
{
    int n = shown(0, \"text\");
    for (n = 0; n < 10; n++)
        printf(\"%d\\n\", shown(n, \"text\"));
    return 0;
}
";

/// What compiles in the strictest of moods does so when counted, in every C.
#[test]
fn what_compiles_strictly_does_so_when_counted() {
    let shop = Workshop::new();
    shop.write("a.c", OLD);
    let mut failed = Vec::new();
    for compiler in c_compilers() {
        for preprocess in ["-E", "-E -ansi", "-E -O2 -D_GNU_SOURCE -D_FORTIFY_SOURCE=2"] {
            let cpp = format!("{compiler} {preprocess}");
            shop.must_headcount(&["csource", "--cpp", &cpp, "a.c", "-o", "counted.c"]);
            for standard in ["-ansi", "-std=c99", "-std=c11", "-std=gnu17", "-std=c2x"] {
                let words = [compiler, standard, "-pedantic-errors", "-Wall", "-Wextra"];
                let strict = ["-Werror", "-Wconversion", "-Wshadow", "-O1"];
                let words = [&words[..], &strict].concat();
                // The program itself does.
                shop.must(
                    &[
                        &words[..],
                        &["-Wno-implicit-fallthrough", "a.c", "-o", "plain"],
                    ]
                    .concat(),
                );
                let said = shop.run(&[&words[..], &["counted.c", "-o", "a"]].concat());
                if said.status != Some(0) || shop.run(&["./a"]).status != Some(0) {
                    failed.push(format!("{cpp}: {standard}: {}", said.stderr));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let first = shop.counts("a.c");
    assert_eq!(first.get(&17), Some(&9), "{first:?}");
}

/// In old C no statement stands before a declaration, but what that declaration calls may not come
/// back, and who called it was called all the same.
#[test]
fn functions_count_before_what_their_declarations_call() {
    let shop = Workshop::new();
    shop.write("a.c", OLD);
    let check = |way: &str| {
        let calls = ["deep", "shown", "main"].map(|it| shop.calls(it));
        assert_eq!(calls, [Some(9), Some(9), Some(1)], "{way}");
        let counts = shop.counts("a.c");
        let lines = [17, 18, 19, 46].map(|line| counts.get(&line).copied());
        assert_eq!(lines, [Some(9), Some(8), Some(8), Some(1)], "{way}");
    };
    for compiler in c_compilers() {
        shop.via_source(&[], &[compiler, "-ansi", "-pedantic", "a.c", "-o", "a"]);
        shop.must(&["./a"]);
        check(&format!("cc --via source {compiler}"));
        let cpp = format!("{compiler} -E -ansi");
        shop.must_headcount(&["csource", "--cpp", &cpp, "a.c", "-o", "counted.c"]);
        shop.must(&[
            compiler,
            "-ansi",
            "-pedantic-errors",
            "counted.c",
            "-o",
            "a",
        ]);
        shop.must(&["./a"]);
        check(&format!("csource {compiler}"));
    }
}
