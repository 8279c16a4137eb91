//! What cannot be counted by value is said before the program starts.

use super::{checked, found, tallied};
use crate::workshop::{Said, Workshop};

const IT_C: &str = "\
#include <stdio.h>
struct pair { int first; int second; };
__attribute__((noipa)) long work(long n, struct pair *both)
{
    long kept = n * 3;

    return kept + both->first;
}
int main(void)
{
    struct pair both = {1, 2};
    fclose(fopen(\"started\", \"w\"));
    return work(4, &both) == 0;
}
";

fn refused(shop: &Workshop, words: &[&str]) -> Said {
    let said = shop.headcount(&[&["run", "-q"], words, &["--", "./it"]].concat());
    assert_eq!(said.status, Some(125), "{words:?}: {said:?}");
    let ours = |line: &str| line.starts_with("headcount: ");
    assert!(said.stderr.lines().all(ours), "{words:?}: {said:?}");
    assert!(!shop.path("started").exists(), "{words:?}: it ran");
    assert!(!shop.path("headcount.db").exists(), "{words:?}");
    said
}

/// The error says why.
fn says(shop: &Workshop, tally: &str, why: &str) {
    let said = refused(shop, &["--tally", tally]);
    assert!(said.stderr.contains(why), "{tally}: {}", said.stderr);
}

/// And points at a character of the text.
fn points(shop: &Workshop, tally: &str, at: usize, why: &str) {
    let said = refused(shop, &["--tally", tally]);
    assert!(said.stderr.contains(why), "{tally}: {}", said.stderr);
    let shown = format!("headcount:   {tally}\nheadcount:   {}^\n", " ".repeat(at));
    assert!(said.stderr.contains(&shown), "{tally}: {}", said.stderr);
}

#[test]
fn places_that_are_nowhere() {
    let shop = Workshop::with("it", IT_C, &["-O1"]);
    says(&shop, "worck(arg1)", "no function is called worck");
    says(&shop, "it.c:6(n)", "no code begins on line 6 of it.c");
    says(&shop, "it.c:900(n)", "no code begins on line 900 of it.c");
    says(&shop, "other.c:1(n)", "no code begins on line 1 of other.c");
    says(&shop, "it!worck(arg1)", "no function is called worck");
    says(
        &shop,
        "libc.so.6!mallok(arg1)",
        "no function is called mallok",
    );
    says(&shop, "after work(rax)", "`after` wants one instruction");
    says(&shop, "after it.c:5(n)", "`after` wants one instruction");
    says(&shop, "0x3(rax)", "no counted instruction is at 0x3");
    says(
        &shop,
        "work+0x1(rax)",
        "no instruction begins 0x1 bytes behind work",
    );
}

#[test]
fn places_that_are_not_selected() {
    let shop = Workshop::with("it", IT_C, &["-O1"]);
    let not_selected = |words: &[&str], tally: &str| {
        let said = refused(&shop, &[words, &["--tally", tally]].concat());
        let why = "is in code that is not to be counted";
        assert!(said.stderr.contains(why), "{words:?}: {}", said.stderr);
    };
    not_selected(&["--only", "main"], "work(arg1)");
    not_selected(&["--only", "main"], "it.c:5(n)");
    not_selected(&["--skip", "wo*"], "it!work(arg1)");
    not_selected(&["--modules", "main"], "malloc(arg1)");
    not_selected(&["--modules", "main"], "libc.so.6!malloc(arg1)");
    not_selected(&["--engine", "breakpoint"], "malloc(arg1)");
    for words in [
        &["--only", "wo*"][..],
        &["--modules", "main"],
        &["--skip", "main"],
    ] {
        let run = ["run", "-q", "--tally", "work(arg1)"];
        let said = shop.headcount(&[&run, words, &["--", "./it"]].concat());
        assert_eq!(
            (said.status, said.stderr.as_str()),
            (Some(0), ""),
            "{words:?}"
        );
        let text = shop.report(&["--by", "value"]);
        assert!(text.contains("    1  work(arg1)  4\n"), "{words:?}: {text}");
    }
}

#[test]
fn names_that_several_variables_have() {
    let source = "\
namespace one { int n = 1; }
namespace other { int n = 2; }
__attribute__((noipa)) int work(int m) { return m; }
int main() { return work(one::n + other::n) != 3; }
";
    let shop = Workshop::new();
    shop.write("it.cc", source);
    shop.must(&["g++", "-g", "-o", "it", "it.cc"]);
    points(
        &shop,
        "work(int)(n)",
        10,
        "several variables are called n: one::n, other::n",
    );
    tallied(&shop, &["work(int)(other::n)"], &["./it"]);
    let rows = checked(&shop);
    let found = found(&rows, "work(int)", "other::n");
    assert_eq!(found, [("2".to_owned(), (1, 0))].into());
}

#[test]
fn variables_of_the_function_around_where_that_is_not_known() {
    let source = "\
#include <stdio.h>
int main(void)
{
    int kept = 7;
    int inner(int n)
    {
        return n + kept;
    }
    fclose(fopen(\"started\", \"w\"));
    return inner(1) != 8;
}
";
    let shop = Workshop::with("it", source, &["-O0"]);
    points(
        &shop,
        "inner(kept)",
        6,
        "in the frame of the function around this one",
    );
}

#[test]
fn names_that_mean_nothing() {
    let shop = Workshop::with("it", IT_C, &["-O1"]);
    points(&shop, "work(rxx)", 5, "no variable is called rxx here");
    points(&shop, "work(1 + r16)", 9, "no variable is called r16 here");
    points(
        &shop,
        "work(both->third)",
        11,
        "it has no field called third",
    );
    points(&shop, "work(ret + arg1)", 11, "arguments are gone");
    points(
        &shop,
        "it.c:5(arg1)",
        7,
        "arguments are known where a function begins",
    );
    points(
        &shop,
        "it.c:5(ret)",
        7,
        "a result is known where a function returns",
    );
    points(&shop, "work(arg65)", 5, "arguments are arg1 to arg64");
    points(&shop, "work(*n)", 5, "neither a pointer nor an array");
    shop.build("it", IT_C, &["-O1", "-g0"]);
    points(
        &shop,
        "work(n)",
        5,
        "without debug information (-g) there are no variables",
    );
    says(&shop, "it.c:5(rax)", "no code begins on line 5 of it.c");
}

#[test]
fn variables_that_threads_of_a_library_have() {
    let shop = Workshop::with("it", IT_C, &["-O1"]);
    let library = "static __thread long own; void set(long n) { own += n; }";
    shop.write("set.c", library);
    shop.must(&["gcc", "-g", "-shared", "-fpic", "-o", "libset.so", "set.c"]);
    let main = "void set(long); int main(void) { set(1); }";
    shop.write("it.c", main);
    shop.must(&["gcc", "-o", "it", "it.c", "libset.so", "-Wl,-rpath,."]);
    says(
        &shop,
        "set(own)",
        "a thread's own variable (thread_local) of a library",
    );
}

#[test]
fn variables_that_are_gone_or_not_there_yet() {
    let shop = Workshop::with("it", IT_C, &["-O0"]);
    points(&shop, "work(kept)", 5, "it has no value yet at this place");
    let source = IT_C.replace("long kept = n * 3;", "long kept = n * 3; kept = 0;");
    shop.build("it", &source, &["-O2", "-fno-var-tracking"]);
    let said = refused(&shop, &["--tally", "it.c:7(kept)"]);
    assert!(said.stderr.contains("optimised out"), "{said:?}");
}

#[test]
fn texts_that_make_no_sense() {
    let shop = Workshop::with("it", IT_C, &["-O1"]);
    points(&shop, "work(arg1 +)", 11, "is missing");
    points(&shop, "work(arg1 arg2)", 10, "should have ended here");
    points(&shop, "work(arg1", 4, "a bracket is missing");
    points(&shop, "work(12x)", 5, "12x is no number");
    points(&shop, "work(arg1 ? 1)", 10, "`?` means nothing here");
    points(&shop, "work(u8[arg1)", 12, "`]` is missing");
    points(&shop, "work", 4, "what of it?");
    points(&shop, "work(linear(arg1, 0))", 18, "width of 1 or more");
    points(
        &shop,
        "work(range(arg1, 4..4))",
        20,
        "ends behind its beginning",
    );
    points(&shop, "sum arg1 at work", 16, "where is ` in `?");
    // Columns are characters, not bytes.
    points(&shop, "größe(arg1 +)", 12, "is missing");
    points(&shop, "work(é + 5x)", 9, "5x is no number");
}

#[test]
fn what_cannot_be_combined() {
    let shop = Workshop::with("it", IT_C, &["-O1"]);
    for more in [&["--calls"][..], &["--until", "calls(work)=1"]] {
        for wish in [&["--tally", "work(arg1)"][..], &["--targets"]] {
            let said = refused(&shop, &[wish, more].concat());
            assert!(said.stderr.contains("cannot be combined"), "{said:?}");
        }
    }
    let many: Vec<String> = (0..33).map(|it| format!("work(arg1 + {it})")).collect();
    let words = many.iter().flat_map(|it| ["--tally", it.as_str()]);
    let said = refused(&shop, &words.collect::<Vec<_>>());
    assert!(said.stderr.contains("at most 32 values"), "{said:?}");
}

#[test]
fn code_that_is_not_counted() {
    // It jumps where nobody can tell.
    let source = "\
__asm__(\".text; .globl jumpy; .type jumpy, @function\\n\"
        \"jumpy: lea 1f(%rip), %rax; add %rdi, %rax; jmp *%rax\\n\"
        \"1: ret; .byte 0x06; .size jumpy, . - jumpy\");
int main(void) { return 0; }
";
    let shop = Workshop::with("it", source, &["-O1"]);
    let said = shop.headcount(&["run", "-q", "--tally", "jumpy(arg1)", "--", "./it"]);
    if said.status == Some(0) {
        panic!(
            "it is counted after all: {}",
            shop.report(&["--by", "value"])
        );
    }
    says(&shop, "jumpy(arg1)", "jumpy is not counted: ");
}

#[test]
fn who_asks_for_values_of_a_run_without_is_told_how() {
    let shop = Workshop::with("it", IT_C, &[]);
    shop.must_count(&["./it"]);
    let said = shop.headcount(&["report", "--by", "value"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("run --tally 'malloc(arg1)'"),
        "{said:?}"
    );
}

#[test]
fn places_that_are_nowhere_in_a_process_that_runs() {
    let shop = Workshop::new();
    let mut program = shop.command("sleep").arg("60").spawn().unwrap();
    let pid = program.id().to_string();
    let attach = |tally: &str| {
        let words = ["attach", "--for", "100ms", "--tally", tally, &pid];
        shop.headcount(&words)
    };
    let said = attach("nosuch(arg1)");
    assert_eq!(said.status, Some(125), "{said:?}");
    let why = "no function is called nosuch";
    assert!(said.stderr.contains(why), "{said:?}");
    // What is there is no reason to refuse, whether it is called or not.
    let said = attach("malloc(arg1)");
    assert_eq!(said.status, Some(0), "{said:?}");
    program.kill().unwrap();
    program.wait().unwrap();
}
