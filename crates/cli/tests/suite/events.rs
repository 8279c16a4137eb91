//! `headcount report --events`: what kernels did, against their own statements, single steps and
//! `strace`.

use crate::workshop::{Workshop, have};
use std::collections::BTreeMap;

const KERNELS: &str = include_str!("events/kernels.c");

/// Code as it is written: not unrolled, not made of vectors or calls of the library.
const FLAGS: [&str; 6] = [
    "-O2",
    "-fno-inline",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-tree-loop-distribute-patterns",
    "-fno-unroll-loops",
];

/// The fields of a row by the names of their columns.
type Row = BTreeMap<String, String>;

/// All rows of a CSV report by the fields of one column. No field of ours has a comma.
fn rows(csv: &str, key: &str) -> BTreeMap<String, Row> {
    let mut lines = csv.lines().map(|line| line.split(','));
    let names: Vec<&str> = lines.next().unwrap().collect();
    let row = |fields: std::str::Split<'_, char>| {
        let fields = fields.map(str::to_owned);
        let row: Row = names
            .iter()
            .map(|it| (*it).to_owned())
            .zip(fields)
            .collect();
        (row[key].clone(), row)
    };
    lines.map(row).collect()
}

/// What the kernels state: function, event, sign and number.
fn stated() -> Vec<(&'static str, &'static str, &'static str, u64)> {
    let mut all = Vec::new();
    for line in KERNELS.lines().filter_map(|it| it.strip_prefix("//= ")) {
        let mut words = line.split(' ');
        let function = words.next().unwrap();
        for word in words {
            let sign = ["<=", ">=", "="].into_iter().find(|it| word.contains(it));
            let (event, number) = word.split_once(sign.unwrap()).unwrap();
            all.push((function, event, sign.unwrap(), number.parse().unwrap()));
        }
    }
    all
}

/// The name of an event's column.
fn column(event: &str) -> &str {
    match event {
        "instructions" => "executed",
        "calls" => "calls_made",
        _ => event,
    }
}

/// Holds the last run against what the kernels state.
fn check_kernels(shop: &Workshop) {
    let csv = shop.report(&["--events", "all", "--format", "csv"]);
    let rows = rows(&csv, "function");
    for (function, event, sign, number) in stated() {
        let row = &rows[function];
        if row["calls"] == "0" {
            eprintln!("skipped: this processor cannot run {function}");
            continue;
        }
        let column = column(event);
        let label = format!("{function}: {event}");
        assert_eq!(row[column], number.to_string(), "{label}");
        let bounds: BTreeMap<&str, &str> = row["bounds"]
            .split(' ')
            .filter_map(|it| it.split_once('='))
            .collect();
        let bound = match sign {
            "<=" => Some(&"at_most"),
            ">=" => Some(&"at_least"),
            _ => None,
        };
        assert_eq!(bounds.get(column), bound, "{label}");
    }
}

#[test]
fn kernels_do_what_was_computed_by_hand() {
    let shop = Workshop::with("kernels", KERNELS, &FLAGS);
    shop.must_count_alone(&["./kernels"]);
    check_kernels(&shop);
    // The same code with counters among it.
    shop.forget();
    let build = ["gcc", "-g", "-w", "kernels.c", "-o", "built"];
    shop.cc(&[&build, FLAGS.as_slice()].concat());
    shop.must(&["./built"]);
    check_kernels(&shop);
}

#[test]
fn every_unit_has_the_same_sum() {
    let shop = Workshop::with("kernels", KERNELS, &FLAGS);
    shop.must_count_alone(&["./kernels"]);
    let sum = |by: &str, column: &str| -> u64 {
        let csv = shop.report(&["--by", by, "--events", "all", "--format", "csv"]);
        let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let place = names.iter().position(|it| *it == column).unwrap();
        // The text of an instruction may have commas in it: columns are counted from the end.
        let from_end = names.len() - place;
        let number = |it: Vec<&str>| it[it.len() - from_end].parse::<u64>().unwrap();
        lines.map(number).sum()
    };
    for event in [
        "loads",
        "branches",
        "flops",
        "taken",
        "backward",
        "calls_made",
    ] {
        let whole = sum("module", event);
        assert!(whole > 0, "{event}");
        for by in ["file", "function", "block", "instruction"] {
            assert_eq!(sum(by, event), whole, "{event} by {by}");
        }
    }
    assert_eq!(sum("edge", "taken"), sum("module", "taken"));
    assert_eq!(sum("edge", "backward"), sum("module", "backward"));
    assert_eq!(sum("call", "calls_made"), sum("module", "calls_made"));
    assert_eq!(sum("block", "executed"), sum("module", "executed"));
    assert_eq!(sum("line", "flops"), sum("module", "flops"));
}

/// What the text of an instruction says it does, as `objdump` writes it.
fn events_of_text(text: &str) -> Vec<&'static str> {
    let mut words = text.split_whitespace();
    let mut first = words.next().unwrap_or_default();
    let mut all = vec!["instructions"];
    while let "lock" | "bnd" | "rep" | "repz" | "notrack" | "data16" | "cs" = first {
        if first == "lock" {
            all.push("atomics");
        }
        first = words.next().unwrap_or_default();
    }
    if text.contains('*') {
        all.push("indirect");
    }
    match first {
        "call" => all.push("calls"),
        "ret" => all.push("returns"),
        "jmp" => all.push("jumps"),
        "syscall" => all.push("syscalls"),
        "mfence" | "lfence" | "sfence" => all.push("fences"),
        "xchg" if text.contains('(') => all.push("atomics"),
        _ if first.starts_with('j') => all.push("branches"),
        _ if first.starts_with("div") || first.starts_with("idiv") => all.push("divisions"),
        _ => (),
    }
    all
}

#[test]
fn events_are_those_of_single_steps() {
    if !have("objdump") {
        return;
    }
    let shop = Workshop::with("kernels", KERNELS, &FLAGS);
    shop.must_count_alone(&["./kernels"]);
    let none: [&str; 0] = [];
    let steps = headcount_oracle::count(&shop.path("kernels"), &none).unwrap();
    let listing = shop.must(&["objdump", "-d", "--no-show-raw-insn", "kernels"]);
    let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
    for (address, text) in listing.lines().filter_map(|it| it.split_once(":\t")) {
        let address = u64::from_str_radix(address.trim(), 16).unwrap();
        let count = steps.counts.get(&address).copied().unwrap_or(0);
        let text = text.split('#').next().unwrap().split('<').next().unwrap();
        for event in events_of_text(text) {
            *wanted.entry(event).or_default() += count;
        }
    }
    let wanted_events = wanted.values().filter(|it| **it > 0).count();
    let csv = shop.report(&["--by", "module", "--events", "all", "--format", "csv"]);
    let rows = rows(&csv, "module");
    let (_, row) = rows.first_key_value().unwrap();
    for (event, number) in wanted {
        assert_eq!(row[column(event)], number.to_string(), "{event}");
    }
    assert!(wanted_events > 8, "{listing}");
}

#[test]
fn system_calls_are_those_that_strace_sees() {
    if !have("strace") {
        return;
    }
    // One module, with all of the C library that it needs.
    let shop = Workshop::with("kernels", KERNELS, &[&FLAGS[..], &["-static"]].concat());
    shop.must(&["strace", "-o", "calls", "./kernels"]);
    let calls = std::fs::read_to_string(shop.path("calls")).unwrap();
    // The first one started the program; the last line says that it ended.
    let seen = calls.lines().filter(|it| !it.starts_with("+++")).count() - 1;
    let said = shop.counted(&["./kernels"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let csv = shop.report(&["--by", "module", "--events", "syscalls", "--format", "csv"]);
    let rows = rows(&csv, "module");
    let counted = rows
        .values()
        .map(|row| row["syscalls"].parse::<usize>().unwrap());
    assert_eq!(counted.sum::<usize>(), seen, "{csv}{calls}");
}

#[test]
fn what_has_no_events_says_so() {
    let shop = Workshop::with_sources();
    shop.via_source(&[], &["gcc", "main.c", "helper.c", "-o", "it"]);
    shop.must(&["./it"]);
    let text = shop.report(&["--events", "loads"]);
    assert!(
        text.contains("Source text was counted, which has no instructions"),
        "{text}"
    );
    for (words, error) in [
        (["--by", "thread", "--events", "loads"], "samples"),
        (
            ["--by", "edge", "--events", "loads"],
            "edges have the events taken and backward",
        ),
        (
            ["--by", "line", "--events", "heartbeats"],
            "possible values: instructions",
        ),
        (["--by", "branch", "--events", "loads"], "use --by line"),
        (["--callers", "main", "--events", "loads"], "use --by call"),
        (
            ["--by", "line", "--top=1", "--checks"],
            "only with --by branch",
        ),
    ] {
        let said = shop.headcount(&[&["report"], words.as_slice()].concat());
        assert_eq!(said.status, Some(2), "{said:?}");
        assert!(said.stderr.contains(error), "{said:?}");
    }
}
