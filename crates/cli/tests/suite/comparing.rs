//! Two runs compared, and one program run several times.

use crate::workshop::{self, HEADCOUNT, Said, Workshop, said};
use headcount_ground::program::Program;
use headcount_ground::real::{self, Amount};
use headcount_ground::registry::Sources;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn bzip2() -> Program {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("comparing");
    let sources = Sources::fetch(&work).unwrap();
    let mut programs = real::programs(&sources, Amount::Little).unwrap();
    programs.retain(|it| it.name == "bzip2");
    programs.remove(0)
}

/// Builds a program in a folder of its own and counts it there into a profile.
fn count(shop: &Workshop, program: &Program, name: &str, profile: &str) {
    let output = shop.path(name);
    let flags = ["-g", "-O2"].map(str::to_owned);
    let words = program.compile(&flags, &output);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    shop.must(&[&["gcc"], words.as_slice()].concat());
    let program_path = output.to_str().unwrap();
    let argument = program.arguments[0].as_str();
    let run = ["run", "-q", "--modules", "main", "-o", profile, "--"];
    let said = shop.headcount(&[&run[..], &[program_path, argument]].concat());
    assert_eq!(said.status, Some(0), "{said:?}");
}

/// The same program, with one function changed, and a comment in front that moves all its lines.
fn changed(shop: &Workshop, program: &Program) -> (Program, u32) {
    let is_it = |path: &&std::path::PathBuf| path.ends_with("huffman.c");
    let source = program.sources.iter().find(is_it).unwrap();
    let text = fs::read_to_string(source).unwrap();
    let name = "BZ2_hbAssignCodes (";
    let (before, after) = text.split_once(name).unwrap();
    let mark = "   vec = 0;\n";
    let more = "   vec = 0;\n   for (volatile Int32 extra = 0; extra < 100; extra++) ;\n";
    assert!(after.contains(mark));
    let after = after.replacen(mark, more, 1);
    let text = format!("/* one\n * two\n */\n{before}{name}{after}");
    let line = text.lines().position(|it| it.contains("extra")).unwrap() + 1;
    shop.write("huffman.c", &text);
    let mut program = program.clone();
    for path in &mut program.sources {
        if path.ends_with("huffman.c") {
            *path = shop.path("huffman.c");
        }
    }
    (program, u32::try_from(line).unwrap())
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[test]
fn the_last_two_runs_of_a_program_that_counts_itself_are_compared() {
    let shop = Workshop::with_sources();
    shop.cc(&["gcc", "-g", "main.c", "helper.c", "-o", "prog"]);
    for _ in 0..3 {
        shop.must(&["./prog"]);
    }
    let said = shop.headcount(&["diff"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let runs = shop.must(&[HEADCOUNT, "runs", "--format", "csv"]);
    assert_eq!(runs.lines().count(), 4, "{runs}");
    // What was only timed is nothing to compare.
    shop.must(&[HEADCOUNT, "time", "-q", "--", "./prog"]);
    let said = shop.headcount(&["diff"]);
    assert_eq!(said.status, Some(0), "{said:?}");
}

#[test]
fn a_changed_function_comes_first_with_its_lines() {
    let shop = Workshop::new();
    let old = bzip2();
    count(&shop, &old, "old", "old.db");
    let (new, line) = changed(&shop, &old);
    count(&shop, &new, "new", "new.db");

    let limits = ["--fail-over", "1%", "--fail-over", "function=5%"];
    let compare = ["diff", "old.db", "new.db", "--format", "json"];
    let said = shop.headcount(&[&compare, &limits[..]].concat());
    assert_eq!(said.status, Some(1), "{said:?}");
    let diff = json(&said);
    let first = &diff["functions"][0];
    assert_eq!(first["function"], "BZ2_hbAssignCodes", "{diff:#}");
    assert_eq!(first["lines"][0]["line"]["new"], line, "{first:#}");
    assert_eq!(first["lines"][0]["line"]["old"], Value::Null, "{first:#}");
    let sides = &first["executed"];
    let more = sides["new"].as_u64().unwrap() - sides["old"].as_u64().unwrap();
    let all = &diff["executed"];
    let in_all = all["new"].as_i64().unwrap() - all["old"].as_i64().unwrap();
    // Start-up differs a little: the paths of the programs do.
    assert!(in_all.abs_diff(more as i64) < 1000, "{more} of {in_all}");
    // No other function of the program changed.
    let functions = diff["functions"].as_array().unwrap();
    let of_program = |it: &&Value| it["module"].as_str().unwrap().ends_with("/new");
    assert_eq!(functions.iter().filter(of_program).count(), 1, "{diff:#}");
    let over = diff["regressions"].as_array().unwrap();
    assert!(
        over.iter().any(|it| it["function"] == "BZ2_hbAssignCodes"),
        "{diff:#}"
    );

    let said = shop.headcount(&["diff", "old.db", "new.db", "--fail-over", "1000000000"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let row = format!("huffman.c:{line}  for (volatile Int32 extra = 0;");
    assert!(said.stdout.contains(&row), "{}", said.stdout);
    // The other way round it is an improvement.
    let said = shop.headcount(&["diff", "new.db", "old.db", "--fail-over", "1%"]);
    assert_eq!(said.status, Some(0), "{said:?}");
}

#[test]
fn github_gets_a_summary_and_marks() {
    let shop = Workshop::new();
    let old = bzip2();
    count(&shop, &old, "old", "old.db");
    let (new, line) = changed(&shop, &old);
    count(&shop, &new, "new", "new.db");
    let mut command = shop.command(workshop::HEADCOUNT);
    let command = command
        .args(["diff", "old.db", "new.db", "--fail-over", "function=5%"])
        .args(["--only", "BZ2_*"])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", shop.path("summary.md"));
    let said = said(command);
    assert_eq!(said.status, Some(1), "{said:?}");
    let mark = format!("::error file=huffman.c,line={line},title=headcount::BZ2_hbAssignCodes: ");
    assert!(
        said.stderr.lines().any(|it| it.starts_with(&mark)),
        "{}",
        said.stderr
    );
    let summary = fs::read_to_string(shop.path("summary.md")).unwrap();
    assert!(
        summary.contains("**Over the limit:** BZ2\\_hbAssignCodes"),
        "{summary}"
    );
    assert!(summary.contains("| BZ2\\_hbAssignCodes |"), "{summary}");
}

#[test]
fn two_runs_of_one_program_do_not_differ() {
    let shop = Workshop::new();
    let program = bzip2();
    count(&shop, &program, "it", "it.db");
    let again = shop.headcount(&[
        "run",
        "-q",
        "--modules",
        "main",
        "-o",
        "it.db",
        "--",
        "./it",
        &program.arguments[0],
    ]);
    assert_eq!(again.status, Some(0), "{again:?}");
    let words = ["diff", "it.db", "--only", "*.c", "--fail-over", "0%"];
    let said = shop.headcount(&words);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.ends_with("\nNo difference.\n"), "{said:?}");
    let said = shop.headcount(&[&words[..], &["--format", "json"]].concat());
    let diff = json(&said);
    assert_eq!(diff["functions"], Value::Array(Vec::new()));
    assert!(diff["unchanged"].as_u64().unwrap() > 20, "{diff:#}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let shop = Workshop::with_sources();
    shop.must(&["gcc", "-g", "main.c", "helper.c", "-o", "it"]);
    shop.headcount(&["run", "-q", "--modules", "main", "--", "./it"]);
    let said = shop.headcount(&["diff"]);
    assert_eq!(said.status, Some(2));
    assert!(
        said.stderr.contains("headcount.db: has only one run"),
        "{said:?}"
    );
    let said = shop.headcount(&["diff", "--runs", "1"]);
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("name two runs"), "{said:?}");
    let said = shop.headcount(&["diff", "headcount.db", "nothing.db"]);
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("nothing.db"), "{said:?}");
    let said = shop.headcount(&["diff", "--fail-over", "much"]);
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("function=5%"), "{said:?}");
}

/// Its loop is vectorised at `-O3`, so that its lines are bounds at best.
const LOOP_C: &str = "\
#include <stdio.h>
#include <stdlib.h>
int numbers[5000];
__attribute__((noinline)) long sum(int length) {
    long all = 0;
    for (int i = 0; i < length; i++)
        all += numbers[i];
    return all;
}
__attribute__((noinline)) void other(void) { puts(\"\"); }
int main(int argc, char **argv) {
    for (int i = 0; i < atoi(argv[2]); i++)
        other();
    printf(\"%ld\\n\", sum(atoi(argv[1])));
    return argc - 3;
}
";

/// The rows `file,old_line,new_line,old,new,change,old_exactness,new_exactness` of one line.
fn line_row(said: &Said, line: u32) -> String {
    let part = format!("loop.c,{line},{line},");
    let found = said.stdout.lines().find(|it| it.starts_with(&part));
    found
        .unwrap_or_else(|| panic!("{line}: {said:?}"))
        .replace(&part, "")
}

#[test]
fn lines_are_compared_by_what_their_counts_are_worth() {
    let shop = Workshop::new();
    shop.write("loop.c", LOOP_C);
    for (level, name) in [("-O0", "plain"), ("-O2", "fast")] {
        shop.must(&["gcc", "-g", level, "loop.c", "-o", name]);
    }
    let count = |name: &str, profile: &str, length: &str, times: &str| {
        let run = ["run", "-q", "--modules", "main", "-o", profile, "--", name];
        let said = shop.headcount(&[&run[..], &[length, times]].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
    };
    count("./plain", "old.db", "1003", "5");
    count("./plain", "new.db", "2003", "5");
    let compare = [
        "diff", "old.db", "new.db", "--by", "line", "--format", "csv",
    ];
    let said = shop.headcount(&compare);
    let heads = "file,old_line,new_line,old,new,change,old_exactness,new_exactness\n";
    assert!(said.stdout.starts_with(heads), "{said:?}");
    assert_eq!(line_row(&said, 7), "1003,2003,1000,exact,exact");
    // What did not change is not there.
    assert!(!said.stdout.contains("loop.c,10,10,"), "{said:?}");

    let gate = |limit: &str| {
        let said = shop.headcount(&["diff", "old.db", "new.db", "--fail-over", limit]);
        (said.status, said)
    };
    let (status, said) = gate("line=10%");
    assert_eq!(status, Some(1), "{said:?}");
    let sentence = "loop.c:7: begun 2,003 times instead of 1,003 (+99.70%); the limit is 10%";
    assert_eq!(said.stdout.matches(sentence).count(), 1, "{said:?}");
    assert_eq!(said.stderr, "");
    assert_eq!(gate("line=1000").0, Some(0));

    let said = shop.headcount(&["diff", "old.db", "new.db", "--by", "line"]);
    assert!(said.stdout.contains("+1,000"), "{said:?}");
    let json_of = [
        "diff", "old.db", "new.db", "--by", "line", "--format", "json",
    ];
    let diff = json(&shop.headcount(&json_of));
    assert_eq!(diff["lines"][0]["exactness"]["old"], "exact", "{diff:#}");
    let markdown = [
        "diff", "old.db", "new.db", "--by", "line", "--format", "markdown",
    ];
    assert_eq!(shop.headcount(&markdown).status, Some(2));
}

#[test]
fn what_is_a_bound_or_unknown_proves_no_regression() {
    let shop = Workshop::new();
    shop.write("loop.c", LOOP_C);
    shop.must(&["gcc", "-g", "-O3", "-funroll-loops", "loop.c", "-o", "fast"]);
    for (profile, length) in [("old.db", "1003"), ("new.db", "2003")] {
        let run = [
            "run",
            "-q",
            "--modules",
            "main",
            "-o",
            profile,
            "--",
            "./fast",
        ];
        let said = shop.headcount(&[&run[..], &[length, "5"]].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
    }
    // Without the source, what vectorised code tells of its lines is not certain.
    std::fs::remove_file(shop.path("loop.c")).unwrap();
    let words = [
        "diff", "old.db", "new.db", "--by", "line", "--format", "json",
    ];
    let said = shop.headcount(&[&words[..], &["--fail-over", "line=0"]].concat());
    let diff = json(&said);
    let lines = diff["lines"].as_array().unwrap();
    let line = lines.iter().find(|it| it["line"]["new"] == 7);
    let exactness = &line.unwrap_or_else(|| panic!("{diff:#}"))["exactness"];
    let sides = [&exactness["old"], &exactness["new"]];
    assert!(sides.iter().any(|it| **it != "exact"), "{diff:#}");
    // A line that may not have changed at all is not over a limit.
    for regression in diff["regressions"].as_array().unwrap() {
        let number = &regression["line"]["new"];
        let line = lines
            .iter()
            .find(|it| it["line"]["new"] == *number)
            .unwrap();
        assert_eq!(line["exactness"]["old"], "exact", "{diff:#}");
        assert_ne!(line["exactness"]["new"], "unknown", "{diff:#}");
    }
    let notes = diff["notes"].to_string();
    assert!(
        notes.contains("too vague to compare with the limit of 0"),
        "{diff:#}"
    );
    assert!(notes.contains("counted without their source"), "{diff:#}");
}

/// Goes round once more each time it is run.
const VARIES_C: &str = "\
#include <stdio.h>
__attribute__((noinline)) int varies(int n) {
    volatile int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}
__attribute__((noinline)) int steady(int n) { return varies(n) + 1; }
int main(void) {
    int n = 0;
    FILE *file = fopen(\"number\", \"r\");
    if (file && fscanf(file, \"%d\", &n) == 1)
        fclose(file);
    file = fopen(\"number\", \"w\");
    fprintf(file, \"%d\", n + 10);
    fclose(file);
    printf(\"%d\\n\", steady(n + 5));
    return n == 10 ? 3 : 0;
}
";

#[test]
fn stat_names_the_functions_that_vary() {
    let shop = Workshop::new();
    shop.write("varies.c", VARIES_C);
    shop.must(&["gcc", "-g", "-O1", "varies.c", "-o", "varies"]);
    shop.write("number", "0");
    let words = ["stat", "-r", "3", "--modules", "main", "--", "./varies"];
    let said = shop.headcount(&words);
    // The status is the first that is not 0, standard output the program's.
    assert_eq!(said.status, Some(3), "{said:?}");
    assert_eq!(said.stdout, "11\n106\n301\n", "{said:?}");
    assert!(said.stderr.contains("./varies: 3 runs"), "{said:?}");
    assert!(said.stderr.contains("  varies (varies)\n"), "{said:?}");
    assert!(!said.stderr.contains("steady"), "{said:?}");
    assert!(!shop.path("headcount.db").exists());

    shop.write("number", "20");
    let json = ["--format", "json", "--report", "stat.json"];
    let said = shop.headcount(&[&words[..3], &json, &words[3..]].concat());
    assert_eq!(said.status, Some(0), "{said:?}");
    let stat = fs::read_to_string(shop.path("stat.json")).unwrap();
    let stat: Value = serde_json::from_str(&stat).unwrap();
    assert_eq!(stat["runs"].as_array().unwrap().len(), 3);
    let varies = &stat["varying"][0];
    assert_eq!(varies["function"], "varies", "{stat:#}");
    let executed = |run: usize| varies["executed"][run].as_u64().unwrap();
    let (first, second) = (executed(1) - executed(0), executed(2) - executed(1));
    assert!(first == second && first % 10 == 0, "{stat:#}");
    let total = |run: usize| stat["runs"][run]["executed"].as_u64().unwrap();
    assert_eq!(total(1) - total(0), first, "{stat:#}");
}

#[test]
fn stat_says_that_nothing_varies() {
    let shop = Workshop::with_sources();
    shop.must(&["gcc", "-g", "main.c", "helper.c", "-o", "it"]);
    let words = ["stat", "-r", "2", "--modules", "main", "-o", "kept.db"];
    let said = shop.headcount(&[&words[..], &["--", "./it"]].concat());
    assert_eq!(said.status, Some(0), "{said:?}");
    let expected = "Every function executed the same in every run.";
    assert!(said.stderr.contains(expected), "{said:?}");
    let runs = shop.headcount(&["runs", "kept.db", "--format", "csv"]);
    assert_eq!(runs.stdout.lines().count(), 3, "{runs:?}");
    // Its totals are those of the report.
    let words = [
        "report", "kept.db", "--runs", "1", "--by", "module", "--format", "csv",
    ];
    let events = shop.headcount(&[&words[..], &["--events", "calls,branches"]].concat());
    let row: Vec<&str> = events.stdout.lines().nth(1).unwrap().split(',').collect();
    let thousands = |number: &str| headcount_report::thousands(number.parse().unwrap());
    for (number, what) in [
        (row[1], "instructions executed"),
        (row[4], "calls"),
        (row[5], "conditional branches"),
    ] {
        let line = format!(" {}  {what}\n", thousands(number));
        assert!(said.stderr.contains(&line), "{line}: {said:?} {events:?}");
    }
    assert!(said.stderr.contains("  hottest functions\n"), "{said:?}");
    let said = shop.headcount(&["stat", "--", "./nothing"]);
    assert_eq!(said.status, Some(127), "{said:?}");
}

/// Executes what a variable says in one function, and always the same in the other.
const UNSTEADY_C: &str = "\
#include <stdio.h>
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) void unsteady(int times) {
    for (int i = 0; i < times; i++)
        sink++;
}
__attribute__((noinline)) void steady(void) {
    for (int i = 0; i < WORK; i++)
        sink++;
}
int main(void) {
    unsteady(atoi(getenv(\"TIMES\")));
    steady();
    return 0;
}
";

#[test]
fn what_several_runs_differ_by_is_no_change() {
    let shop = Workshop::new();
    shop.write("unsteady.c", UNSTEADY_C);
    let count = |work: &str, times: &[&str]| {
        shop.must(&["gcc", "-g", "-O1", work, "unsteady.c", "-o", "unsteady"]);
        for times in times {
            let mut command = shop.command(env!("CARGO_BIN_EXE_headcount"));
            command.args(["run", "-q", "--modules", "main", "--", "./unsteady"]);
            assert_eq!(said(command.env("TIMES", times)).status, Some(0));
        }
    };
    count("-DWORK=1000", &["10", "90", "50"]);
    count("-DWORK=1300", &["70", "20"]);

    let compare = ["diff", "--runs", "1-3:4-5", "--fail-over", "function=20%"];
    let shown = shop.headcount(&compare);
    assert_eq!(
        (shown.status, shown.stderr.as_str()),
        (Some(1), ""),
        "{shown:?}"
    );
    for part in [
        "old: ./unsteady, 3 times: ",
        "new: ./unsteady, 2 times: ",
        "unsteady.c:9  for (int i = 0; i < WORK; i++)",
        "Within the variation of the runs: 1 function.",
        "Over the limit: steady: ",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let found = json(&shop.headcount(&[&compare[..], &["--format", "json"]].concat()));
    let functions = found["functions"].as_array().unwrap();
    assert_eq!(functions.len(), 1, "{found:#}");
    assert_eq!(functions[0]["function"], "steady");
    assert_eq!(found["varying"], 1);
    let [old, new] = ["old", "new"].map(|it| functions[0]["executed"][it].as_u64().unwrap());
    // Runs of one side do the same in `steady`, and 80 and 50 turns more or less in all.
    let spread = |side: &str| {
        let end = |end: usize| found["ranges"][side][end].as_u64().unwrap();
        end(1) - end(0)
    };
    assert!(spread("new") > 0 && new > old, "{found:#}");
    assert_eq!(spread("old") * 50, spread("new") * 80, "{found:#}");
    assert_eq!(functions[0]["ranges"]["old"], serde_json::json!([old, old]));

    let lines = shop.headcount(&[&compare[..3], &["--by", "line", "--format", "csv"]].concat());
    let lines: Vec<&str> = lines.stdout.lines().skip(1).collect();
    assert!(
        lines.iter().any(|it| it.contains(",10,10,1000,1300,300,")),
        "{lines:?}"
    );
    assert!(!lines.iter().any(|it| it.contains(",6,6,")), "{lines:?}");

    // One run a side, as ever; and of different commands, the sum.
    let one = shop.headcount(&["diff", "--runs", "1,2"]);
    assert!(one.stdout.contains("unsteady.c:6  sink++;"), "{one:?}");
    assert!(!one.stdout.contains("steady  unsteady.c:8"), "{one:?}");
    let said = shop.headcount(&["diff", "--runs", "1-3:4-9"]);
    assert!(said.stderr.contains("has no run 6"), "{said:?}");
    let said = shop.headcount(&["diff", "--runs", "1-3"]);
    assert!(said.stderr.contains("--runs 1-5:6-10"), "{said:?}");
}

/// gcc splits `check` at `-O2`, and puts its beginning into its callers.
const PARTS_C: &str = r#"
#include <stdio.h>
volatile int sink;
static int check(int it) {
    if (it % 2) return 0;
    for (int i = 0; i < it; i++) sink += i * it;
    printf("%d%d%d\n", sink, it, sink * it);
    for (int i = 0; i < it; i++) sink -= i * sink;
    printf("%d%d%d\n", it, it, sink * it);
    for (int i = 0; i < it; i++) sink ^= i + sink;
    return sink;
}
int one(int x) { return check(x) + 1; }
int two(int x) { return check(x + 1) * 2; }
int three(int x) { return check(x + 2) * 3; }
int main(void) {
    int sum = 0;
    for (int i = 0; i < 9; i++) sum += one(i) + two(i) + three(i);
    return sum == 1;
}
"#;

#[test]
fn parts_and_copies_of_a_function_are_compared_as_one() {
    let shop = Workshop::new();
    shop.write("parts.c", PARTS_C);
    for (level, name) in [("-O0", "plain"), ("-O2", "split")] {
        shop.must(&["gcc", "-g", level, "parts.c", "-o", name]);
        let program = format!("./{name}");
        let words = ["run", "-q", "--modules", "main", "--", &program];
        assert_eq!(shop.headcount(&words).status, Some(0));
    }
    let symbols = shop.must(&["nm", "split"]);
    assert!(symbols.contains(" check.part.0"), "{symbols}");
    let found = json(&shop.headcount(&["diff", "--format", "json", "--only", "check"]));
    let functions = found["functions"].as_array().unwrap();
    assert_eq!(functions.len(), 1, "{found:#}");
    assert_eq!(functions[0]["function"], "check");
    let [old, new] = ["old", "new"].map(|it| functions[0]["executed"][it].as_u64().unwrap());
    assert!(0 < new && new < old, "{found:#}");
    // Only a part of it has code, which ran: it was called.
    let lcov = shop.headcount(&["export", "--format", "lcov"]).stdout;
    assert!(lcov.contains("FN:4,check\n"), "{lcov}");
    assert!(!lcov.contains("FNDA:0,check\n"), "{lcov}");
}

#[test]
fn runs_can_be_removed() {
    let shop = Workshop::with_sources();
    shop.must(&["gcc", "-g", "main.c", "helper.c", "-o", "it"]);
    for _ in 0..4 {
        shop.headcount(&["run", "-q", "--modules", "main", "--", "./it"]);
    }
    let rows = |said: &Said| said.stdout.lines().count() - 1;
    let said = shop.headcount(&["runs", "--remove", "2,9"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(said.stderr.contains("has no run 9"), "{said:?}");
    let said = shop.headcount(&["runs", "--remove", "2", "--format", "csv"]);
    assert_eq!((said.status, rows(&said)), (Some(0), 3), "{said:?}");
    assert!(said.stderr.contains("removed 1 run; "), "{said:?}");
    let said = shop.headcount(&["runs", "--keep", "1", "--format", "csv"]);
    assert_eq!((said.status, rows(&said)), (Some(0), 1), "{said:?}");
    assert!(said.stderr.contains("removed 2 runs"), "{said:?}");
    let said = shop.headcount(&["runs", "--keep", "1"]);
    assert!(said.stderr.contains("nothing to remove"), "{said:?}");
    assert!(shop.headcount(&["report"]).stdout.contains("helper"));
    let said = shop.headcount(&["runs", "--remove", "all"]);
    assert!(
        said.stderr.contains("removed 1 run and 1 module"),
        "{said:?}"
    );
    let said = shop.headcount(&["report"]);
    assert!(said.stderr.contains("holds no run"), "{said:?}");
}
