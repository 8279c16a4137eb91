//! `headcount time`: programs of known cost, perf as a second opinion, and sums that agree.

use crate::workshop::{HEADCOUNT, Workshop};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// Three functions that take about 60, 30 and 10 % of the time; told a file's name, the program
/// writes there how many nanoseconds each took by the thread's own clock.
const SHARES: &str = r#"
#include <stdio.h>
#include <time.h>
static volatile unsigned long sink;
static unsigned long spent[3];
__attribute__((noinline)) void sixty(void) {
    for (int i = 0; i < 600000; i++)
        sink += i;
}
__attribute__((noinline)) void thirty(void) {
    for (int i = 0; i < 300000; i++)
        sink += i;
}
__attribute__((noinline)) void ten(void) {
    for (int i = 0; i < 100000; i++)
        sink += i;
}
static unsigned long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return at.tv_sec * 1000000000ul + at.tv_nsec;
}
int main(int argc, char **argv) {
    for (int i = 0; i < 200; i++) {
        unsigned long start = now();
        sixty();
        unsigned long first = now();
        thirty();
        unsigned long second = now();
        ten();
        unsigned long third = now();
        spent[0] += first - start;
        spent[1] += second - first;
        spent[2] += third - second;
    }
    FILE *out = argc > 1 ? fopen(argv[1], "w") : 0;
    if (out)
        fprintf(out, "%lu %lu %lu\n", spent[0], spent[1], spent[2]);
    return 0;
}
"#;

/// Two loops of as many instructions each: one waits for memory, the other does not.
const CHASE: &str = r#"
#include <stdlib.h>
#define N (1u << 23)
static unsigned *next;
__attribute__((noinline)) unsigned chase(unsigned at, long n) {
    while (n--) at = next[at];
    return at;
}
__attribute__((noinline)) unsigned add(unsigned at, long n) {
    while (n--) at = at * 3 + n;
    return at;
}
int main(void) {
    next = malloc(N * sizeof *next);
    for (unsigned i = 0; i < N; i++)
        next[i] = i;
    unsigned seed = 1;
    for (unsigned i = N - 1; i > 0; i--) {
        seed = seed * 1103515245 + 12345;
        unsigned j = ((unsigned long)seed * i) >> 32, kept = next[i];
        next[i] = next[j];
        next[j] = kept;
    }
    unsigned end = chase(0, 8000000);
    end += add(end, 8000000);
    return end == 1;
}
"#;

/// Calls libc, which calls back.
const SORTS: &str = r#"
#include <stdlib.h>
#include <string.h>
static volatile unsigned sink;
/* Takes its time: how long a branch takes that nobody foresees follows where the code lies. */
static int compare(const void *a, const void *b) {
    unsigned hash = *(const unsigned *)a;
    for (int i = 0; i < 30; i++)
        hash = hash * 1664525u + 1013904223u;
    sink = hash;
    return *(const int *)a - *(const int *)b;
}
int main(void) {
    static int numbers[100000], copy[100000];
    for (int i = 0; i < 100000; i++)
        numbers[i] = (i * 1103515245u) >> 8;
    for (int i = 0; i < 5; i++) {
        memcpy(copy, numbers, sizeof copy);
        qsort(copy, 100000, sizeof *copy, compare);
    }
    return copy[0] > copy[1];
}
"#;

fn build(shop: &Workshop, name: &str, source: &str) {
    shop.write(&format!("{name}.c"), source);
    let file = format!("{name}.c");
    let built = shop.run(&["gcc", "-g", "-O2", "-o", name, &file]);
    assert_eq!(built.status, Some(0), "{}", built.stderr);
}

fn headcount(shop: &Workshop, words: &[&str]) -> String {
    let said = shop.headcount(words);
    assert_eq!(said.status, Some(0), "{words:?}: {}", said.stderr);
    said.stdout
}

/// A CSV table: the rows, by the names of its columns.
fn table(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        let cells = columns.iter().zip(line.split(','));
        cells
            .map(|(a, b)| ((*a).to_owned(), b.to_owned()))
            .collect()
    };
    lines.map(row).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> u64 {
    row[column].parse().unwrap_or(0)
}

fn samples_by(rows: &[BTreeMap<String, String>], column: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry(row[column].clone()).or_default() += number(row, "samples");
    }
    sums
}

#[test]
fn shares_of_time_are_what_the_program_measures_itself() {
    let shop = Workshop::new();
    build(&shop, "shares", SHARES);
    let mut spent = [0.0; 3];
    for _ in 0..4 {
        headcount(&shop, &["time", "-q", "--", "./shares", "spent"]);
        let written = std::fs::read_to_string(shop.path("spent")).unwrap();
        let numbers = written.split_whitespace().map(|it| it.parse::<f64>());
        for (sum, it) in spent.iter_mut().zip(numbers) {
            *sum += it.unwrap();
        }
    }
    let rows = table(&headcount(
        &shop,
        &["report", "--runs", "all", "--format", "csv"],
    ));
    let seen = samples_by(&rows, "function");
    let total: u64 = seen.values().sum();
    assert!(total > 200, "{total} samples");
    for (name, spent_there) in ["sixty", "thirty", "ten"].into_iter().zip(spent) {
        let share = spent_there / spent.iter().sum::<f64>();
        let expected = share * total as f64;
        let error = (expected * (1.0 - share)).sqrt();
        let off = (seen[name] as f64 - expected).abs();
        assert!(
            off < 4.0 * error + 0.01 * total as f64,
            "{name}: {seen:?}, expected {expected}"
        );
    }
}

#[test]
fn what_waits_for_memory_is_slow_and_what_does_not_runs_often() {
    let shop = Workshop::new();
    build(&shop, "chase", CHASE);
    headcount(&shop, &["run", "-q", "--", "./chase"]);
    headcount(&shop, &["time", "-q", "-F", "20000", "--", "./chase"]);
    let rows = table(&headcount(
        &shop,
        &["report", "--by", "line", "--why", "--format", "csv"],
    ));
    let line = |number: &str| {
        let found = rows
            .iter()
            .find(|it| it["line"] == number && it["file"] == "chase.c");
        found.unwrap_or_else(|| panic!("line {number}: {rows:#?}"))
    };
    let (chase, add) = (line("6"), line("10"));
    assert_eq!(chase["count"], add["count"]);
    assert_eq!(chase["why"], "slow", "{chase:?}");
    assert_eq!(add["why"], "often", "{add:?}");
}

#[test]
fn time_and_counts_of_one_command_stand_side_by_side() {
    let shop = Workshop::new();
    build(&shop, "shares", SHARES);
    headcount(&shop, &["time", "-q", "--", "./shares"]);
    headcount(&shop, &["run", "-q", "--", "./shares"]);
    let rows = table(&headcount(&shop, &["report", "--format", "csv"]));
    let sixty = rows.iter().find(|it| it["function"] == "sixty").unwrap();
    assert_eq!(sixty["calls"], "200");
    assert!(number(sixty, "samples") > 0 && number(sixty, "nanoseconds") > 0);
    let text = headcount(&shop, &["report", "--top", "1"]);
    assert!(text.contains("each call") && text.contains(" ± "), "{text}");
    let listing = headcount(&shop, &["annotate", "shares.c"]);
    assert!(listing.contains(" ± "), "{listing}");
    // Another command's time is not its.
    headcount(&shop, &["run", "-q", "--", "./shares", "again"]);
    let alone = headcount(&shop, &["report", "--format", "csv"]);
    assert!(
        !alone.lines().next().unwrap().contains("samples"),
        "{alone}"
    );
    // Another build's is not, either.
    let other = SHARES.replace("600000", "500000");
    build(&shop, "shares", &other);
    headcount(&shop, &["run", "-q", "--", "./shares"]);
    let rows = table(&headcount(&shop, &["report", "--format", "csv"]));
    let known: Vec<_> = rows
        .iter()
        .filter(|it| it["function"] == "sixty")
        .map(|it| (it["calls"].as_str(), number(it, "samples") > 0))
        .collect();
    assert!(
        known.contains(&("200", false)) && known.contains(&("", true)),
        "{known:?}"
    );
}

/// Works and sleeps by turns.
const SLEEPS: &str = r#"
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) void work(void) {
    for (int i = 0; i < 3000000; i++)
        sink += i;
}
int main(void) {
    for (int i = 0; i < 20; i++) {
        work();
        usleep(10000);
    }
    return 0;
}
"#;

#[test]
fn who_asks_why_is_told_of_waiting_and_of_all_else_on_a_narrow_terminal() {
    let shop = Workshop::new();
    build(&shop, "sleeps", SLEEPS);
    headcount(&shop, &["run", "-q", "--", "./sleeps"]);
    headcount(&shop, &["time", "-q", "-F", "4000", "--", "./sleeps"]);
    let words = ["report", "--why", "--format", "csv"];
    let rows = table(&headcount(&shop, &words));
    let waiting: Vec<_> = rows.iter().filter(|it| it["why"] == "waits").collect();
    let [row] = waiting[..] else {
        panic!("{rows:?}");
    };
    assert_eq!(
        (row["function"].as_str(), number(row, "samples")),
        ("(waiting)", 0)
    );
    assert!(number(row, "nanoseconds") > 200_000_000, "{row:?}");
    for by in ["function", "line"] {
        let (out, report) = (
            shop.path("screen"),
            format!("{HEADCOUNT} report --why --by {by}"),
        );
        let ours = format!("stty cols 80; PAGER=cat LC_ALL=C.UTF-8 {report}");
        let screen = ["script", "-qec", &ours, out.to_str().unwrap()];
        let said = shop.run(&screen);
        assert_eq!(said.status, Some(0), "{said:?}");
        let head = said.stdout.lines().find(|it| it.contains("time %"));
        let head = head.unwrap_or_else(|| panic!("{}", said.stdout));
        for column in ["time", "time %", "each ", "why", "per ns", by] {
            assert!(head.contains(column), "{column}: {}", said.stdout);
        }
        assert!(said.stdout.contains("waits"), "{}", said.stdout);
        let widest = said.stdout.lines().map(|it| it.trim_end().chars().count());
        assert!(widest.max() <= Some(80), "{}", said.stdout);
    }
}

/// Calls a function that does next to nothing in another library.
const STUBS: &str = r#"
#include <stdlib.h>
int main(void) {
    unsigned sum = 0;
    for (int i = 0; i < 200000000; i++)
        sum += abs(i);
    return sum == 1;
}
"#;

#[test]
fn time_in_a_stub_of_the_linker_is_its_own() {
    let shop = Workshop::new();
    shop.write("stubs.c", STUBS);
    let cc = ["gcc", "-g", "-O1", "-fno-builtin", "-o", "stubs", "stubs.c"];
    assert_eq!(shop.run(&cc).status, Some(0));
    headcount(&shop, &["time", "-q", "-F", "2000", "--", "./stubs"]);
    let folded = headcount(&shop, &["export", "--time", "--format", "folded"]);
    assert!(folded.contains(";main;abs@plt "), "{folded}");
    assert!(!folded.contains("_init"), "{folded}");
}

const LONG_NAMES: &str = r#"
#include <map>
#include <string>
#include <vector>
template <typename K, typename V> struct Table {
    std::map<K, std::vector<V>> all;
    __attribute__((noinline)) void put(const K &k, const V &v) {
        for (volatile int i = 0; i < 1000; i++);
        all[k].push_back(v);
    }
};
int main() {
    Table<std::string, std::string> table;
    for (int i = 0; i < 100000; i++)
        table.put("key", "value");
}
"#;

#[test]
fn long_names_are_shortened_where_the_end_of_a_run_names_functions() {
    let shop = Workshop::new();
    shop.write("long.cc", LONG_NAMES);
    shop.must(&["g++", "-g", "-O1", "-o", "long", "long.cc"]);
    for verb in [&["time"][..], &["run", "--modules", "main"]] {
        let said = shop.headcount(&[verb, &["--", "./long"]].concat());
        let most = said.stderr.lines().find(|it| it.contains(": most "));
        let most = most.unwrap_or_else(|| panic!("{said:?}"));
        assert!(most.contains("Table<…>::put("), "{most}");
        assert!(most.chars().count() < 300, "{most}");
    }
}

#[test]
fn all_sums_are_the_number_of_samples() {
    let shop = Workshop::new();
    build(&shop, "sorts", SORTS);
    headcount(&shop, &["time", "-q", "-F", "4000", "--", "./sorts"]);
    headcount(&shop, &["run", "-q", "--", "./sorts"]);
    let json = headcount(&shop, &["report", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let total = json["time"]["samples"].as_u64().unwrap();
    assert!(total > 100, "{total}");
    for by in ["function", "line", "thread", "file", "module"] {
        let rows = table(&headcount(
            &shop,
            &["report", "--by", by, "--format", "csv"],
        ));
        let sum: u64 = rows.iter().map(|it| number(it, "samples")).sum();
        assert_eq!(sum, total, "by {by}");
    }
    let rows = table(&headcount(
        &shop,
        &["report", "--charge-back", "--format", "csv"],
    ));
    assert_eq!(samples_by(&rows, "function").values().sum::<u64>(), total);
    assert_eq!(samples_by(&rows, "routine").values().sum::<u64>(), total);
    let sorting = rows
        .iter()
        .find(|it| it["routine"].starts_with("msort"))
        .unwrap();
    assert_eq!(
        (sorting["file"].as_str(), sorting["line"].as_str()),
        ("sorts.c", "19")
    );
    let folded = headcount(&shop, &["export", "--time", "--format", "folded"]);
    let last = |line: &str| {
        line.rsplit(' ')
            .next()
            .and_then(|it| it.parse::<u64>().ok())
    };
    assert_eq!(folded.lines().filter_map(last).sum::<u64>(), total);
    let called = folded
        .lines()
        .filter(|it| it.contains(";main;") && it.contains(";compare "));
    assert!(called.count() > 0, "{folded}");
    headcount(
        &shop,
        &["export", "--time", "--format", "pprof", "-o", "it.pb.gz"],
    );
    let top = shop.run(&[
        "go",
        "tool",
        "pprof",
        "-top",
        "-sample_index=samples",
        "it.pb.gz",
    ]);
    assert_eq!(top.status, Some(0), "{}", top.stderr);
    assert!(
        top.stdout.contains(&format!("of {total} total")),
        "{}",
        top.stdout
    );
    let firefox = headcount(&shop, &["export", "--format", "firefox"]);
    let firefox: serde_json::Value = serde_json::from_str(&firefox).unwrap();
    let threads = firefox["threads"].as_array().unwrap();
    let weights = threads
        .iter()
        .flat_map(|it| it["samples"]["weight"].as_array().unwrap());
    assert_eq!(weights.filter_map(|it| it.as_u64()).sum::<u64>(), total);
}

#[test]
fn a_program_is_timed_while_it_is_counted() {
    let shop = Workshop::new();
    build(&shop, "sorts", SORTS);
    build(&shop, "shares", SHARES);
    headcount(&shop, &["run", "--time", "-q", "--", "./shares"]);
    let rows = table(&headcount(&shop, &["report", "--format", "csv"]));
    let sixty = rows.iter().find(|it| it["function"] == "sixty").unwrap();
    assert_eq!(sixty["calls"], "200");
    let seen = samples_by(&rows, "function");
    let (own, all) = (
        seen["sixty"] + seen["thirty"] + seen["ten"],
        seen.values().sum::<u64>(),
    );
    assert!(own * 100 > all * 90 && all > 50, "{seen:?}");
    assert!(
        seen["sixty"] > seen["thirty"] && seen["thirty"] > seen["ten"],
        "{seen:?}"
    );
    let text = headcount(&shop, &["report", "--top", "1"]);
    assert!(text.contains("while it was counted"), "{text}");
    // Callers are found from copies, too, and what libraries do on behalf of the program.
    headcount(
        &shop,
        &["run", "--time", "-q", "-o", "sorts.db", "--", "./sorts"],
    );
    let folded = headcount(
        &shop,
        &["export", "sorts.db", "--time", "--format", "folded"],
    );
    let last = |line: &str| {
        line.rsplit(' ')
            .next()
            .and_then(|it| it.parse::<u64>().ok())
    };
    let sum = |wanted: &dyn Fn(&str) -> bool| -> u64 {
        folded
            .lines()
            .filter(|it| wanted(it))
            .filter_map(last)
            .sum()
    };
    let all = sum(&|_| true);
    let through_main = sum(&|it| it.contains(";main"));
    assert!(all > 20 && through_main * 100 > all * 90, "{folded}");
    assert!(
        sum(&|it| it.contains(";main;") && it.contains(";compare ")) > 0,
        "{folded}"
    );
}

/// Samples a command with perf and with `headcount time`, both in one run: two runs of a program
/// may differ in where their time goes, for layout and caches are not the same.
fn sample_with_both(shop: &Workshop, command: &[&str], input: &str) {
    let mut words = vec!["record", "-q", "-e", "task-clock:u", "-F", "1999"];
    words.extend(["-o", "perf.data", "--", HEADCOUNT]);
    words.extend(["time", "-q", "-F", "1999", "-o", "it.db", "--"]);
    words.extend(command);
    let _ = std::fs::remove_file(shop.path("it.db"));
    let status = Command::new("perf")
        .args(&words)
        .current_dir(shop.path(""))
        .stdin(std::fs::File::open(shop.path(input)).unwrap())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{command:?}");
}

/// What perf kept of the program, but not of headcount.
fn perf_script(shop: &Workshop, command: &[&str], options: &[&str]) -> String {
    let name = command[0].rsplit('/').next().unwrap();
    let mut words = vec!["perf", "script", "-i", "perf.data", "--comms", name];
    words.extend(options);
    shop.must(&words)
}

/// The samples of perf, by function.
fn perf_shares(shop: &Workshop, command: &[&str]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in perf_script(shop, command, &["-F", "ip,sym"]).lines() {
        let name = line.split_whitespace().nth(1).unwrap_or("[unknown]");
        *sums.entry(name.to_owned()).or_default() += 1;
    }
    sums
}

/// Chi-square of two samples of one distribution, and its degrees of freedom. Names that only one
/// symbol table has, and rare ones, are one class.
fn chi_square(one: &BTreeMap<String, u64>, other: &BTreeMap<String, u64>) -> (f64, f64) {
    let mut classes: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    let is_common = |name: &str| {
        let both = one.get(name).zip(other.get(name));
        both.is_some_and(|(a, b)| a + b >= 20)
    };
    for (place, counts) in [one, other].into_iter().enumerate() {
        for (name, count) in counts {
            let class = if is_common(name) { name.as_str() } else { "" };
            classes.entry(class).or_default()[place] += *count as f64;
        }
    }
    let total = |place: usize| classes.values().map(|it| it[place]).sum::<f64>();
    let (a, b) = (total(0), total(1));
    let terms = classes.values().filter(|it| it[0] + it[1] > 0.0).map(|it| {
        let difference = (b / a).sqrt() * it[0] - (a / b).sqrt() * it[1];
        difference * difference / (it[0] + it[1])
    });
    (terms.sum(), classes.len() as f64 - 1.0)
}

#[test]
fn perf_says_the_same_of_real_programs() {
    let shop = Workshop::new();
    let words: String = (0..400_000_u32)
        .map(|it| {
            format!(
                "{} word{}\n",
                it.wrapping_mul(2_654_435_761) % 65_521,
                it % 97
            )
        })
        .collect();
    shop.write("words", &words);
    let script = "print(sum(len(str(i)) * i for i in range(1500000)))";
    let perl = r"while (<>) { $n{$1}++ while /(\w+)/g } print scalar(keys %n), qq(\n)";
    let programs: [&[&str]; 5] = [
        &["bzip2", "-9", "-c"],
        &["xz", "-2", "-c"],
        &["sort", "-n"],
        &["perl", "-e", perl],
        &["/usr/bin/python3", "-c", script],
    ];
    for command in programs {
        sample_with_both(&shop, command, "words");
        let perf = perf_shares(&shop, command);
        let words = ["report", "it.db", "--no-demangle", "--format", "csv"];
        let own = samples_by(&table(&headcount(&shop, &words)), "function");
        let (difference, freedom) = chi_square(&own, &perf);
        // What is left of one in a thousand: mean plus four deviations, as far as that is normal.
        let limit = freedom + 4.0 * (2.0 * freedom).sqrt() + 8.0;
        assert!(
            difference < limit,
            "{command:?}: {difference} at {freedom} degrees of freedom\n{own:?}\n{perf:?}"
        );
    }
}

/// How many samples have each function on their stack, and how many there are.
fn inclusive<'s>(
    stacks: impl Iterator<Item = (Vec<&'s str>, u64)>,
) -> (BTreeMap<String, u64>, u64) {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut all = 0;
    for (mut names, count) in stacks {
        all += count;
        names.sort_unstable();
        names.dedup();
        for name in names {
            *sums.entry(name.to_owned()).or_default() += count;
        }
    }
    (sums, all)
}

#[test]
fn perf_says_the_same_of_call_stacks() {
    let shop = Workshop::new();
    build(&shop, "sorts", SORTS);
    // In a run of its own: of a program that something else starts, perf loses the callers.
    let words =
        "perf record -q -e task-clock:u -F 1999 --call-graph dwarf,8192 -o perf.data ./sorts";
    shop.must(&words.split(' ').collect::<Vec<_>>());
    let shown = perf_script(&shop, &["./sorts"], &["--no-inline", "-F", "ip,sym"]);
    let stacks = shown.split("\n\n").filter(|it| !it.trim().is_empty());
    let (perf, of_perf) = inclusive(stacks.map(|stack| {
        let names = stack.lines().filter_map(|it| it.split_whitespace().nth(1));
        (names.collect(), 1)
    }));
    headcount(&shop, &["time", "-q", "-F", "1999", "--", "./sorts"]);
    let folded = headcount(&shop, &["export", "--format", "folded"]);
    let (own, of_own) = inclusive(folded.lines().filter_map(|line| {
        let (stack, count) = line.rsplit_once(' ')?;
        Some((stack.split(';').skip(1).collect(), count.parse().ok()?))
    }));
    assert!(of_own > 100 && of_perf > 100, "{of_own} {of_perf}");
    for name in ["main", "compare", "msort_with_tmp.part.0"] {
        let share = |of: &BTreeMap<String, u64>, all: u64| {
            of.get(name).copied().unwrap_or(0) as f64 / all as f64
        };
        let (one, other) = (share(&own, of_own), share(&perf, of_perf));
        let mean = (one + other) / 2.0;
        let error = (mean * (1.0 - mean) * (1.0 / of_own as f64 + 1.0 / of_perf as f64)).sqrt();
        let off = (one - other).abs();
        assert!(off < 4.0 * error + 0.02, "{name}: {one} and {other}");
    }
}

#[test]
fn a_program_that_runs_is_sampled_from_outside() {
    let shop = Workshop::new();
    build(&shop, "shares", &SHARES.replace("i < 200", "i < 2000000"));
    let mut program = Command::new(shop.path("shares")).spawn().unwrap();
    let pid = program.id().to_string();
    let said = shop.headcount(&["time", "--pid", &pid, "--for", "500ms"]);
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    let rows = table(&headcount(&shop, &["report", "--format", "csv"]));
    let seen = samples_by(&rows, "function");
    assert!(seen["sixty"] > seen["ten"], "{seen:?}");
}

/// Reports must show samples, but no time for each call, and say why.
fn leaves_out_each(shop: &Workshop, why: &str) {
    let rows = table(&headcount(shop, &["report", "--format", "csv"]));
    let sixty = rows.iter().find(|it| it["function"] == "sixty").unwrap();
    assert!(number(sixty, "executed") > 0 && number(sixty, "samples") > 0);
    for words in [
        &["report"][..],
        &["report", "--by", "line"],
        &["report", "--why"],
        &["annotate", "shares.c"],
    ] {
        let text = headcount(shop, words);
        assert!(!text.contains(" ± "), "{words:?}: {text}");
        assert!(text.contains('%'), "{words:?}: {text}");
        let notes = text.matches("is left out: ").count();
        assert!(notes == 1 && text.contains(why), "{words:?}: {text}");
    }
    let words = ["report", "--why", "--format", "csv"];
    let rows = table(&headcount(shop, &words));
    let is_open = |it: &BTreeMap<String, String>| ["", "waits"].contains(&it["why"].as_str());
    assert!(rows.iter().all(is_open), "{rows:?}");
}

#[test]
fn a_window_of_counts_and_a_window_of_samples_give_no_time_for_each_call() {
    let shop = Workshop::new();
    build(&shop, "shares", &SHARES.replace("i < 200", "i < 2000000"));
    let mut program = shop.command(shop.path("shares")).spawn().unwrap();
    let pid = program.id().to_string();
    let counted = shop.headcount(&["attach", "-q", &pid, "--for", "500ms"]);
    let timed = shop.headcount(&["time", "-q", "--pid", &pid, "--for", "500ms"]);
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(
        (counted.status, timed.status),
        (Some(0), Some(0)),
        "{counted:?} {timed:?}"
    );
    leaves_out_each(&shop, "run 1 saw only a part of what its program did");
}

#[test]
fn samples_of_a_part_and_counts_of_all_give_no_time_for_each_call() {
    let shop = Workshop::new();
    build(&shop, "shares", SHARES);
    headcount(&shop, &["run", "-q", "--", "./shares"]);
    headcount(&shop, &["time", "-q", "--for", "100ms", "--", "./shares"]);
    leaves_out_each(&shop, "run 2 saw only a part of what its program did");
    // Both of a part, but of the same.
    let words = [
        "run", "--time", "-q", "--", "timeout", "-s", "KILL", "1", "./shares", "again",
    ];
    let ended = shop.headcount(&words);
    assert!(matches!(ended.status, Some(0 | 137)), "{ended:?}");
    let text = headcount(&shop, &["report"]);
    assert!(text.contains(" ± "), "{text}");
}

#[test]
fn sampling_ends_when_it_is_told_to_and_the_program_goes_on() {
    let shop = Workshop::new();
    build(&shop, "shares", &SHARES.replace("i < 200", "i < 1000"));
    headcount(&shop, &["time", "-q", "--for", "100ms", "--", "./shares"]);
    let json = headcount(&shop, &["report", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["runs"][0]["status"], 0);
    let all = json["time"]["on_processor"].as_u64().unwrap();
    headcount(&shop, &["time", "-q", "--", "./shares"]);
    let json = headcount(&shop, &["report", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let whole = json["time"]["on_processor"].as_u64().unwrap();
    assert!(all < whole / 2, "{all} of {whole}");
}

/// The first thread ends, and the other goes on.
const ORPHAN: &str = r#"
#include <pthread.h>
static volatile unsigned long sink;
static void *work(void *unused) {
    for (long i = 0; i < 300000000; i++)
        sink += i;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_exit(0);
}
"#;

#[test]
fn a_process_outlives_its_first_thread() {
    let shop = Workshop::new();
    build(&shop, "orphan", ORPHAN);
    headcount(&shop, &["time", "-q", "--", "./orphan"]);
    let rows = table(&headcount(&shop, &["report", "--format", "csv"]));
    let seen = samples_by(&rows, "function");
    let all: u64 = seen.values().sum();
    assert!(seen["work"] * 100 > all * 95, "{seen:?}");
}

#[test]
fn bad_input_is_named() {
    let shop = Workshop::new();
    for (words, status, expected) in [
        (vec!["time", "--", "./nosuch"], 127, "./nosuch: not found"),
        (
            vec!["time", "--", "/etc/passwd"],
            126,
            "/etc/passwd: cannot run it",
        ),
        (vec!["time", "--pid", "999999999"], 125, "no such process"),
        (
            vec!["time", "-F", "0", "--", "true"],
            125,
            "0 is not in 1..=50000",
        ),
        (vec!["time"], 125, "PROGRAM"),
    ] {
        let said = shop.headcount(&words);
        assert_eq!(said.status, Some(status), "{words:?}: {}", said.stderr);
        assert!(said.stderr.contains(expected), "{words:?}: {}", said.stderr);
    }
    headcount(&shop, &["time", "-q", "--", "true"]);
    for words in [
        &["annotate"][..],
        &["html", "-o", "it.html"],
        &["export", "--format", "lcov"],
    ] {
        let said = shop.headcount(words);
        assert_eq!(said.status, Some(2), "{words:?}");
        assert!(
            said.stderr.contains("there are samples, but no counts"),
            "{}",
            said.stderr
        );
    }
    headcount(&shop, &["run", "-q", "-o", "counts.db", "--", "true"]);
    for option in [&["--why"][..], &["--charge-back"], &["--by", "thread"]] {
        let words = [&["report", "counts.db"], option].concat();
        let said = shop.headcount(&words);
        assert_eq!(said.status, Some(2), "{words:?}");
        assert!(
            said.stderr.contains("there are no samples"),
            "{}",
            said.stderr
        );
    }
}

#[test]
fn a_profile_of_time_can_be_merged_and_is_listed() {
    let shop = Workshop::new();
    build(&shop, "shares", SHARES);
    headcount(&shop, &["time", "-q", "-o", "a.db", "--", "./shares"]);
    headcount(&shop, &["time", "-q", "-o", "b.db", "--", "./shares"]);
    headcount(&shop, &["merge", "a.db", "b.db", "-o", "all.db"]);
    let of = |profile: &str| {
        let words = ["report", profile, "--runs", "all", "--format", "csv"];
        samples_by(&table(&headcount(&shop, &words)), "function")
            .values()
            .sum::<u64>()
    };
    assert_eq!(of("all.db"), of("a.db") + of("b.db"));
    let runs = headcount(&shop, &["runs", "all.db"]);
    assert!(runs.contains("samples"), "{runs}");
}

#[test]
fn code_without_symbols_is_named_as_it_is_in_counts() {
    let shop = Workshop::new();
    build(&shop, "sorts", SORTS);
    shop.must(&["strip", "sorts"]);
    headcount(&shop, &["time", "-q", "-F", "4000", "--", "./sorts"]);
    headcount(&shop, &["run", "-q", "--modules", "main", "--", "./sorts"]);
    let rows = table(&headcount(&shop, &["report", "--format", "csv"]));
    let own = rows.iter().filter(|it| it["module"].ends_with("/sorts"));
    let seen: Vec<_> = own.filter(|it| number(it, "samples") > 0).collect();
    assert!(!seen.is_empty(), "{rows:?}");
    for row in seen {
        assert!(row["function"].starts_with("sub_0x"), "{row:?}");
        assert!(number(row, "executed") > 0, "{row:?}");
    }
    let rows = table(&headcount(
        &shop,
        &["report", "--charge-back", "--format", "csv"],
    ));
    let is_named = |it: &BTreeMap<String, String>| it["function"].starts_with("sub_0x");
    assert!(rows.iter().any(is_named), "{rows:?}");
}
