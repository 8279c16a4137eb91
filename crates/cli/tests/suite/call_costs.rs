//! `run --calls`: what every call costs, with all that is called from there.

mod judged;

use crate::workshop::{HEADCOUNT, Workshop};

use std::collections::BTreeMap;

/// By caller and callee, all sites together: how often, and at what cost.
type Costs = BTreeMap<(String, String), (u64, u64)>;

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// The rows of a table with these columns, as columns by name.
fn rows(csv: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let mut lines = csv.lines();
    let titles: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |column: &&str| {
        let place = titles.iter().position(|it| it == column);
        place.unwrap_or_else(|| panic!("{column} is not in {titles:?}"))
    };
    let places: Vec<usize> = columns.iter().map(place).collect();
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            places.iter().map(|it| fields[*it].to_owned()).collect()
        })
        .collect()
}

fn costs(shop: &Workshop) -> Costs {
    let csv = shop.report(&["--by", "call", "--only", "work.c", "--format", "csv"]);
    let mut costs = Costs::new();
    for row in rows(&csv, &["caller", "callee", "count", "inclusive"]) {
        let sum = costs.entry((row[0].clone(), row[1].clone())).or_default();
        (sum.0, sum.1) = (sum.0 + number(&row[2]), sum.1 + number(&row[3]));
    }
    costs
}

/// What functions executed, and with all that they called.
fn functions(shop: &Workshop) -> BTreeMap<String, (u64, u64)> {
    let csv = shop.report(&["--only", "work.c", "--format", "csv"]);
    let rows = rows(&csv, &["function", "executed", "inclusive"]).into_iter();
    rows.map(|it| (it[0].clone(), (number(&it[1]), number(&it[2]))))
        .collect()
}

fn executed(shop: &Workshop) -> u64 {
    let csv = shop.report(&["--by", "module", "--format", "csv"]);
    let rows = rows(&csv, &["executed"]).into_iter();
    rows.map(|it| number(&it[0])).sum()
}

/// Functions that call themselves, and each other, with others in between.
const CYCLES: &str = "\
static volatile int sink;
__attribute__((noinline)) static int leaf(int n) { for (int i = 0; i < n; i++) sink += i; return n; }
int odd(int n);
__attribute__((noinline)) int even(int n) { leaf(n); return n ? odd(n - 1) + leaf(1) : 1; }
__attribute__((noinline)) int odd(int n) { return n ? even(n - 1) + even(n / 2) : 0; }
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { return (even(12) + odd(9) + fib(12)) == 0; }
";

#[test]
fn in_callgrinds_format_no_function_of_a_cycle_costs_more_than_it_did() {
    let shop = Workshop::new();
    shop.write("work.c", CYCLES);
    shop.must(&["gcc", "-g", "-O1", "-o", "work", "work.c"]);
    shop.must_count(&["--calls", "./work"]);
    shop.must(&[HEADCOUNT, "export", "--format", "callgrind", "-o", "it.out"]);
    let words = [
        "callgrind_annotate",
        "--inclusive=yes",
        "--threshold=100",
        "it.out",
    ];
    let text = shop.must(&words);
    let total = executed(&shop);
    for (name, (_, inclusive)) in functions(&shop) {
        let end = format!("work.c:{name}");
        let row = text.lines().find(|it| {
            let mut words = it.split_whitespace();
            words.any(|it| it.ends_with(&end))
        });
        let row = row.unwrap_or_else(|| panic!("{name}: {text}"));
        let cost = number(&row.split_whitespace().next().unwrap().replace(',', ""));
        assert_eq!(cost, inclusive, "{row}");
        assert!(cost <= total, "{row}");
    }
}

/// The sum of all contexts, and what contains a name.
fn folded(shop: &Workshop, name: &str) -> (u64, u64) {
    let said = shop.headcount(&["export", "--format", "folded"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let text = said.stdout;
    let (mut all, mut with) = (0, 0);
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        all += number(count);
        with += match stack.split(';').any(|it| it == name) {
            true => number(count),
            false => 0,
        };
    }
    (all, with)
}

/// Counts a program whose function `work` costs as much for each round.
fn counted(source: &str, compiler: &str) -> Workshop {
    let shop = Workshop::new();
    shop.write("work.c", source);
    let flags = ["-x", if compiler == "gcc" { "c" } else { "c++" }];
    let rest = ["-O1", "-g", "-pthread", "-o", "it", "work.c"];
    shop.must(&[&[compiler], &flags[..], &rest].concat());
    shop.must_headcount(&["run", "-q", "--calls", "./it"]);
    shop
}

#[test]
fn every_call_costs_what_it_executed() {
    let shop = counted(include_str!("call_costs/many.c"), "gcc");
    let costs = costs(&shop);
    let cost = |caller: &str, callee: &str| {
        let found = costs.get(&(caller.to_owned(), callee.to_owned()));
        *found.unwrap_or_else(|| panic!("{caller} did not call {callee}: {costs:?}"))
    };
    // `work` executes a number of instructions a round, and some more.
    let one = cost("cheap", "work").1 / 50;
    let round = (cost("dear", "work").1 / 40 - one) / 999;
    let work = |rounds: u64| one - round + round * rounds;
    assert_eq!(cost("cheap", "work"), (50, 50 * work(1)));
    assert_eq!(cost("dear", "work"), (40, 40 * work(1000)));
    assert_eq!(cost("last", "work").1, work(51), "a tail call, or none");
    assert_eq!(cost("even", "work"), (5, 5 * work(3)));
    assert_eq!(cost("odd", "work"), (4, 4 * work(5)));
    assert_eq!(cost("jumper", "work"), (5, 5 * work(20)), "longjmp");
    assert_eq!(cost("deep", "work"), (40, 40 * work(10)), "longjmp");
    assert_eq!(cost("handler", "work"), (4, 4 * work(10)), "a signal");
    assert_eq!(cost("signals", "work"), (4, 4 * work(7)), "a signal");
    assert_eq!(cost("steps", "work"), (4, 4 * work(11)), "a coroutine");
    assert_eq!(cost("coroutine", "work"), (5, 5 * work(13)), "a coroutine");
    assert_eq!(cost("compare", "work"), (7, 7 * work(2)), "by a library");
    let of_threads = work(0) + work(100) + work(200);
    assert_eq!(cost("thread", "work"), (3, of_threads), "threads");
    assert_eq!(cost("main", "work"), (1, work(500)), "a child process");
    // Through a pointer and not.
    let functions = functions(&shop);
    let (cheap, dear) = (functions["cheap"], functions["dear"]);
    assert_eq!(cost("main", "cheap"), (50, cheap.1));
    assert_eq!(cost("main", "dear"), (40, dear.1));
    assert_eq!(cheap.1, cheap.0 + 50 * work(1));
    // Of recursion, the outermost call.
    assert_eq!(functions["fib"].1, functions["fib"].0);
    assert_eq!(cost("main", "fib").1, functions["fib"].1);
    let both = functions["even"].0 + functions["odd"].0 + 5 * work(3) + 4 * work(5);
    assert_eq!((functions["even"].1, cost("main", "even").1), (both, both));
    assert!(cost("deep", "deep").1 < cost("jumper", "deep").1);
}

#[test]
fn nothing_is_lost_on_the_way() {
    let shop = counted(include_str!("call_costs/many.c"), "gcc");
    let executed = executed(&shop);
    let (all, with_main) = folded(&shop, "main");
    assert_eq!(all, executed);
    assert_eq!(with_main, functions(&shop)["main"].1);
    let said = shop.headcount(&["export", "--format", "callgrind", "-o", "out"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(!said.stderr.contains("may lead anywhere"), "{said:?}");
    let text = String::from_utf8(std::fs::read(shop.path("out")).expect("a file")).expect("text");
    assert!(text.contains("Inclusive costs: exact"), "{text}");
    let outside = text.split("fn=(1) (outside)\n").nth(1).expect("a root");
    let outside = outside.split("\nob=").next().unwrap_or_default();
    let costs = outside.lines().filter(|it| it.starts_with("0x0 "));
    let root: u64 = costs.map(|it| number(&it[6..])).sum();
    assert_eq!(root, executed, "{outside}");
    let charged = shop.report(&["--charge-back", "--format", "csv"]);
    let charged = rows(&charged, &["function", "routine", "executed"]);
    let sum: u64 = charged.iter().map(|it| number(&it[2])).sum();
    assert_eq!(sum, executed);
    let sorted = |it: &&Vec<String>| it[0] == "main" && it[1].contains("msort");
    let sorted: Vec<_> = charged.iter().filter(sorted).collect();
    assert_eq!(sorted.len(), 1, "qsort worked on behalf of a line of main");
    let callers = shop.report(&["--callers", "work"]);
    assert!(callers.contains("inclusive  share"), "{callers}");
}

#[test]
fn exceptions_end_the_calls_that_they_pass() {
    let shop = counted(include_str!("call_costs/throws.cc"), "g++");
    let costs = costs(&shop);
    let of = |caller: &str| {
        let is_it = |(key, _): &(&(String, String), &(u64, u64))| {
            key.0.starts_with(caller) && key.1.starts_with("work")
        };
        let sums = costs.iter().filter(is_it);
        sums.fold((0, 0), |sum, (_, it)| (sum.0 + it.0, sum.1 + it.1))
    };
    // 10 throws, from depths 0, 1, 2 and 3 in turn: 23 calls of `thrower`, all but the innermost of
    // which had something to clean up.
    let six = of("thrower").1 / 23;
    let four = of("Cleaner").1 / 13;
    let round = (six - four) / 2;
    assert_eq!(of("thrower"), (23, 23 * six));
    assert_eq!(of("Cleaner"), (13, 13 * four));
    assert_eq!(of("catcher"), (10, 10 * (six + 2 * round)));
    assert_eq!(of("plain"), (0, 0));
    assert_eq!(folded(&shop, "main").0, executed(&shop));
}

#[test]
fn costs_of_several_runs_add_up_and_survive_a_merge() {
    let shop = counted(include_str!("call_costs/throws.cc"), "g++");
    let once = functions(&shop);
    let said = shop.headcount(&["merge", "headcount.db", "-o", "two.db"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    shop.must_headcount(&["run", "-q", "--calls", "-o", "two.db", "./it"]);
    let csv = shop.report(&[
        "-i", "two.db", "--runs", "all", "--only", "work.c", "--format", "csv",
    ]);
    // What throws looks for handlers in tables of addresses, which are not the same in every run.
    let rows = rows(&csv, &["function", "inclusive"]).into_iter();
    let same: Vec<_> = rows
        .filter(|it| it[0].starts_with("work") || it[0].contains("Cleaner"))
        .collect();
    assert_eq!(same.len(), 2, "{csv}");
    for row in same {
        assert_eq!(number(&row[1]), 2 * once[&row[0]].1, "{}", row[0]);
    }
    // A run that was not asked tells nothing, and that is said.
    shop.must_headcount(&["run", "-q", "-o", "two.db", "./it"]);
    let text = shop.report(&["-i", "two.db", "--runs", "all"]);
    assert!(text.contains("known of 2 of these 3 runs"), "{text}");
}

#[test]
fn carry_flags_pass_by_probes_that_add() {
    let shop = Workshop::new();
    shop.write("carry.c", include_str!("call_costs/carry.c"));
    shop.must(&["gcc", "-O1", "-g", "-o", "it", "carry.c"]);
    let alone = shop.must(&["./it"]);
    for more in [
        &["--calls"][..],
        &["--until", "instructions=1000000000", "--then", "report"],
    ] {
        let said = shop.headcount(&[&["run", "-q"], more, &["--", "./it"]].concat());
        assert_eq!((said.status, &said.stdout), (Some(0), &alone), "{more:?}");
    }
}

#[test]
fn what_cannot_be_combined_is_refused() {
    let shop = Workshop::with("it", "int main(void) { return 0; }", &[]);
    for (more, why) in [
        (["--engine", "breakpoint"], "only copies log calls"),
        (["--until", "instructions=9"], "one event counter"),
    ] {
        let said = shop.headcount(&[&["run", "--calls"], &more[..], &["--", "./it"]].concat());
        assert!(said.stderr.contains(why), "{said:?}");
        assert_ne!(said.status, Some(0), "{said:?}");
    }
}
