//! Every format is read by a tool that was made for it, without a complaint, and its totals are
//! those of the report: for a C, a C++ and a Rust program.

pub mod schema;
mod subject;

use crate::workshop::{HEADCOUNT, Workshop};
use flate2::read::GzDecoder;
use prost::Message;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use subject::{Subject, number};

/// What stands behind `KEY:` in an lcov file, for each file in it.
fn records(text: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let mut files = BTreeMap::new();
    for record in text.split("end_of_record\n").filter(|it| !it.is_empty()) {
        let lines = record.lines().filter_map(|line| line.split_once(':'));
        let lines: Vec<(String, String)> = lines.map(|(a, b)| (a.into(), b.into())).collect();
        let name = lines.iter().find(|it| it.0 == "SF").unwrap().1.clone();
        assert!(
            files.insert(name, lines).is_none(),
            "a file has two records"
        );
    }
    files
}

/// Lines of files in a tracefile as the report has them: file, line, count. What ran ran once or more
/// often, even if nobody knows how often.
fn reported_lines(it: &Subject, files: &BTreeSet<String>) -> BTreeSet<(String, u64, u64)> {
    let rows = it.report("line").into_iter();
    rows.filter(|row| files.contains(&row[0]))
        .filter_map(|row| {
            let number = |field: usize| row[field].parse::<u64>().unwrap();
            let count = match row[4].as_str() {
                "unknown" if number(3) == 0 => return None,
                "unknown" => 1,
                _ => number(2),
            };
            Some((row[0].clone(), number(1), count))
        })
        .collect()
}

#[test]
fn lcov_and_genhtml_read_lcov() {
    for it in subject::all() {
        let file = it.export("lcov");
        let records = records(&it.read_text(&file));
        let files: BTreeSet<String> = records.keys().cloned().collect();
        let mut lines = BTreeSet::new();
        for (file, record) in &records {
            for (_, line) in record.iter().filter(|it| it.0 == "DA") {
                let (line, count) = line.split_once(',').unwrap();
                lines.insert((file.clone(), line.parse().unwrap(), count.parse().unwrap()));
            }
        }
        assert!(!lines.is_empty(), "{}", it.name);
        assert_eq!(lines, reported_lines(it, &files), "{}", it.name);
        let branches = ["--rc", "lcov_branch_coverage=1"];
        let summary = it.ask(&[&["lcov", "--summary", &file], &branches[..]].concat());
        let hit = lines.iter().filter(|it| it.2 > 0).count();
        let expected = format!("({hit} of {} lines)", lines.len());
        assert!(summary.contains(&expected), "{expected}: {summary}");
        it.ask(&["genhtml", "--branch-coverage", "-q", "-o", "html", &file]);
    }
}

#[test]
fn functions_in_lcov_are_called_as_often_as_the_report_says() {
    for it in subject::all() {
        let text = it.read_text(&it.export("lcov"));
        assert!(!text.contains(",_Z") && !text.contains(",_R"), "{text}");
        let records = records(&text);
        // By file and line; what is only known to have been inlined was called once, at least.
        let mut calls: BTreeMap<(String, String), u64> = BTreeMap::new();
        for (file, record) in &records {
            let of = |key: &str| -> Vec<(&str, &str)> {
                let rows = record.iter().filter(|it| it.0 == key);
                rows.map(|it| it.1.split_once(',').unwrap()).collect()
            };
            for ((line, name), (count, same)) in of("FN").into_iter().zip(of("FNDA")) {
                assert_eq!(name, same, "{}", it.name);
                assert!(!name.contains(','), "lcov would cut {name}");
                let place = (file.clone(), line.to_owned());
                let before = calls.insert(place, count.parse().unwrap());
                assert_eq!(before, None, "{name}");
            }
        }
        let mut reported: BTreeMap<(String, String), u64> = BTreeMap::new();
        for row in it.report("function") {
            let [_, name, file, line, calls, ..] = row.as_slice() else {
                panic!("{row:?}");
            };
            let is_part = name.contains(".part.") || name.ends_with(".cold");
            if records.contains_key(file) && line != "0" {
                let sum = reported.entry((file.clone(), line.clone())).or_default();
                *sum += if is_part { 0 } else { calls.parse().unwrap() };
            }
        }
        assert!(!reported.is_empty(), "{}", it.name);
        let is_inlined = |place: &(String, String)| calls.get(place) == Some(&1);
        for (place, count) in &mut reported {
            if *count == 0 && is_inlined(place) {
                *count = 1;
            }
        }
        assert_eq!(calls, reported, "{}", it.name);
    }
}

#[test]
fn cobertura_is_as_its_definition_says() {
    let definition =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/exports/coverage-04.dtd");
    for it in subject::all() {
        let file = it.export("cobertura");
        it.ask(&["xmllint", "--noout", "--nonet", &file]);
        // With the definition at hand, and not looked for in the network.
        let text = it.read_text(&file);
        let begin = text.find("<!DOCTYPE").unwrap();
        let end = begin + text[begin..].find('\n').unwrap();
        it.write(&file, &format!("{}{}", &text[..begin], &text[end..]));
        let definition = definition.to_str().unwrap();
        it.ask(&[
            "xmllint",
            "--noout",
            "--nonet",
            "--dtdvalid",
            definition,
            &file,
        ]);
        let lcov = it.read_text(&it.export("lcov"));
        let sum = |key: &str| -> usize {
            let values = lcov.lines().filter_map(|line| line.strip_prefix(key));
            values.map(|it| it.parse::<usize>().unwrap()).sum()
        };
        for (attribute, key) in [
            ("lines-valid", "LF:"),
            ("lines-covered", "LH:"),
            ("branches-valid", "BRF:"),
            ("branches-covered", "BRH:"),
        ] {
            let expected = format!(" {attribute}=\"{}\"", sum(key));
            assert!(text.contains(&expected), "{}: {expected}", it.name);
        }
        let hits: u64 = text
            .lines()
            .filter(|line| line.contains(" branch="))
            .map(|line| number(line.split("hits=\"").nth(1).unwrap()))
            .sum();
        let counts = lcov.lines().filter_map(|line| line.strip_prefix("DA:"));
        let counts = counts.map(|it| it.split(',').nth(1).unwrap().parse::<u64>().unwrap());
        assert_eq!(hits, counts.sum::<u64>(), "{}", it.name);
    }
}

#[test]
fn a_line_whose_branch_was_taken_has_run_in_every_coverage_format() {
    for it in subject::all() {
        for (file, record) in records(&it.read_text(&it.export("lcov"))) {
            let numbers = |key: &str| -> Vec<Vec<String>> {
                let of_key = record.iter().filter(|it| it.0 == key);
                let fields = of_key.map(|it| it.1.split(',').map(str::to_owned).collect());
                fields.collect()
            };
            let lines: BTreeMap<String, u64> = numbers("DA")
                .into_iter()
                .map(|it| (it[0].clone(), it[1].parse().unwrap()))
                .collect();
            for branch in numbers("BRDA") {
                let is_taken = !["-", "0"].contains(&branch[3].as_str());
                let count = lines.get(&branch[0]).copied().unwrap_or(0);
                assert!(!is_taken || count > 0, "{}: {file} {branch:?}", it.name);
            }
        }
        for line in it.read_text(&it.export("cobertura")).lines() {
            let has_not_run = line.contains(" hits=\"0\"");
            let some_taken = line.contains("condition-coverage") && !line.contains("=\"0% ");
            assert!(!has_not_run || !some_taken, "{}: {line}", it.name);
        }
    }
}

/// Functions of which all calls were inlined, and checks that the compiler put in.
const CHECKED_RS: &str = "\
fn add(a: u32, b: u32) -> u32 {
    a + b
}
#[inline]
pub fn larger(a: u32, b: u32) -> u32 {
    if a > b {
        a
    } else {
        b
    }
}
fn main() {
    let numbers: Vec<u32> = (0..100).collect();
    let mut sums = [0_u32; 7];
    for i in 0..numbers.len() {
        sums[i % 7] = add(sums[i % 7], numbers[i]);
        sums[0] += 1;
    }
    println!(\"{}\", larger(sums[1], sums[2]));
}
";

/// Complaints about a tracefile that contradicts itself, as lcov 2 has them.
fn contradictions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (file, record) in records(text) {
        let rows = |key: &str| -> Vec<Vec<String>> {
            let of_key = record.iter().filter(|it| it.0 == key);
            of_key
                .map(|it| it.1.split(',').map(str::to_owned).collect())
                .collect()
        };
        let counts: BTreeMap<String, u64> = rows("DA")
            .into_iter()
            .map(|it| (it[0].clone(), it[1].parse().unwrap()))
            .collect();
        for (begin, calls) in rows("FN").into_iter().zip(rows("FNDA")) {
            let begun = counts.get(&begin[0]);
            if begun.is_some_and(|it| (*it > 0) != (calls[0] != "0")) {
                found.push(format!("{file}:{} {calls:?} {begun:?}", begin[0]));
            }
        }
        for branch in rows("BRDA") {
            let has_run = counts[&branch[0]] > 0;
            if has_run == (branch[3] == "-") {
                found.push(format!("{file} {branch:?} {}", counts[&branch[0]]));
            }
        }
    }
    found
}

#[test]
fn a_tracefile_agrees_with_itself() {
    for it in subject::all() {
        for only in [&[][..], &["--only", "*"]] {
            let text = String::from_utf8(it.exported_with("lcov", only)).unwrap();
            let (text, _) = text.split_once('\0').unwrap();
            assert_eq!(contradictions(text), [""; 0], "{} {only:?}", it.name);
        }
    }
    let shop = Workshop::new();
    shop.write("checked.rs", CHECKED_RS);
    for level in ["0", "2"] {
        let level = format!("opt-level={level}");
        shop.must(&["rustc", "-g", "-C", &level, "checked.rs"]);
        shop.forget();
        shop.must_count(&["--modules", "main", "./checked"]);
        let text = shop.must(&[HEADCOUNT, "export", "--format", "lcov", "--only", "*"]);
        assert_eq!(contradictions(&text), [""; 0], "{level}");
    }
}

#[test]
fn overflow_checks_are_no_branches_unless_somebody_asks_for_them() {
    let shop = Workshop::new();
    shop.write("checked.rs", CHECKED_RS);
    shop.must(&["rustc", "-g", "checked.rs"]);
    shop.must_count(&["--modules", "main", "./checked"]);
    let lines = |more: &[&str]| -> BTreeSet<String> {
        let words = [&[HEADCOUNT, "export", "--format", "lcov"], more].concat();
        let text = shop.must(&words);
        let ways = text.lines().filter_map(|it| it.strip_prefix("BRDA:"));
        ways.map(|it| it.split(',').next().unwrap().to_owned())
            .collect()
    };
    let of = |lines: &[&str]| lines.iter().map(|it| (*it).to_owned()).collect();
    // What is written there: the `if`, and the loop.
    assert_eq!(lines(&[]), of(&["15", "6"]));
    assert_eq!(lines(&["--checks"]), of(&["15", "16", "17", "2", "6"]));
    let listing = shop.must(&[HEADCOUNT, "annotate", "--no-pager", "checked.rs"]);
    let told = |line: &str| {
        let row = listing.lines().find(|it| it.contains(line)).unwrap();
        row.contains("<-")
    };
    assert!(!told("a + b") && !told("add(sums") && !told("+= 1"));
    assert!(told("if a > b"), "{listing}");
}

/// What callgrind_annotate shows in front of a function; a dot is nothing.
fn cost(row: &str) -> u64 {
    match row.trim_start().starts_with('.') {
        true => 0,
        false => number(row),
    }
}

#[test]
fn callgrind_annotate_finds_every_instruction() {
    for it in subject::all() {
        let file = it.export("callgrind");
        let text = it.ask(&["callgrind_annotate", "--auto=no", "--threshold=100", &file]);
        let totals = text.lines().find(|it| it.ends_with("PROGRAM TOTALS"));
        assert_eq!(number(totals.unwrap()), it.executed(), "{}", it.name);
        let (_, functions) = text.split_once("file:function\n").unwrap();
        let rows = functions.lines().skip(1).take_while(|it| !it.is_empty());
        assert_eq!(rows.map(cost).sum::<u64>(), it.executed(), "{}", it.name);
        // What a call costs is an estimate, but never more than all.
        let text = it.ask(&["callgrind_annotate", "--auto=no", "--inclusive=yes", &file]);
        let (_, functions) = text.split_once("file:function\n").unwrap();
        let rows = functions.lines().skip(1).take_while(|it| !it.is_empty());
        assert!(rows.map(cost).all(|cost| cost <= it.executed()), "{text}");
    }
}

/// A call in callgrind's format: object and function of the caller and of the callee.
type Call = [String; 4];

/// How often each call was made, and what all of that cost.
fn calls_in(text: &str) -> BTreeMap<Call, (u64, u64)> {
    let mut names = BTreeMap::new();
    let mut at = [const { String::new() }; 4];
    let (mut calls, mut counted) = (BTreeMap::new(), None);
    for line in text.lines() {
        if let Some(count) = counted.take() {
            let cost: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            let sum: &mut (u64, u64) = calls.entry(at.clone()).or_default();
            (sum.0, sum.1) = (sum.0 + count, sum.1 + cost);
            // Unless the next callee's object is named, it is the caller's.
            at[2] = at[0].clone();
        } else if let Some(call) = line.strip_prefix("calls=") {
            counted = Some(number(call));
        } else if let Some((key, name)) = line.split_once('=') {
            let (kind, place) = match key {
                "ob" => ("object", 0),
                "fn" => ("function", 1),
                "cob" => ("object", 2),
                "cfn" => ("function", 3),
                _ => continue,
            };
            let (number, name) = name.split_once(' ').unwrap_or((name, ""));
            let known = names.entry((kind, number.to_owned()));
            at[place] = known.or_insert_with(|| name.to_owned()).clone();
            if key == "fn" {
                at[2] = at[0].clone();
            }
        }
    }
    calls
}

/// Parts that a compiler cut off a function belong to it.
fn whole(name: &str) -> &str {
    let suffixes = [".part.", ".cold", ".constprop.", ".isra."];
    let cut = suffixes.iter().filter_map(|it| name.find(it)).min();
    &name[..cut.unwrap_or(name.len())]
}

/// How often the functions of a program itself called each other.
fn own_calls(calls: &BTreeMap<Call, (u64, u64)>) -> BTreeMap<(String, String), u64> {
    let mut own = BTreeMap::new();
    for ([object, caller, of, callee], (count, _)) in calls {
        let (caller, callee) = (whole(caller), whole(callee));
        let is_own = [object, of].iter().all(|it| it.ends_with("/it"));
        // Valgrind sees through stubs, and has other names, or none, for what starts a program.
        let is_written = |it: &&str| {
            !it.starts_with(['_', '0'])
                && !["@plt", "plt0", "_tm_clones"]
                    .iter()
                    .any(|end| it.ends_with(end))
        };
        let is_written = [caller, callee].iter().all(is_written);
        if is_own && caller != callee && is_written {
            *own.entry((caller.to_owned(), callee.to_owned()))
                .or_default() += count;
        }
    }
    own
}

#[test]
fn calls_in_callgrind_are_those_that_valgrind_sees() {
    let it = &subject::all()[0];
    let ours = calls_in(&it.read_text(&it.export("callgrind")));
    let ours = own_calls(&ours);
    it.under(&[
        "valgrind",
        "-q",
        "--tool=callgrind",
        "--callgrind-out-file=valgrind.out",
    ]);
    let theirs = own_calls(&calls_in(&it.read_text("valgrind.out")));
    assert!(ours.len() > 15, "{ours:?}");
    for (call, count) in &ours {
        assert_eq!(theirs.get(call), Some(count), "{call:?}");
    }
    // What we have not is called through a pointer.
    let missing: Vec<_> = theirs.keys().filter(|it| !ours.contains_key(it)).collect();
    for (_, callee) in missing {
        assert!(callee.starts_with("default_bz"), "{callee}");
    }
}

#[test]
fn in_callgrind_every_function_has_a_caller_and_the_root_costs_everything() {
    for it in subject::all() {
        let text = it.read_text(&it.export("callgrind"));
        let calls = calls_in(&text);
        let from_outside = calls.iter().filter(|it| it.0[1] == "(outside)");
        let root: u64 = from_outside.map(|it| it.1.1).sum();
        assert_eq!(root, it.executed(), "{}", it.name);
        let called: BTreeSet<&str> = calls.keys().map(|it| it[3].as_str()).collect();
        for [_, caller, ..] in calls.keys().filter(|it| it[1] != "(outside)") {
            assert!(called.contains(caller.as_str()), "{}: {caller}", it.name);
        }
    }
}

/// What of pprof's messages this test needs, from the numbers in `profile.proto`.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[test]
fn pprof_reads_pprof() {
    for it in subject::all() {
        let file = it.export("pprof");
        let compressed = it.read(&file);
        let mut bytes = Vec::new();
        GzDecoder::new(compressed.as_slice())
            .read_to_end(&mut bytes)
            .unwrap();
        let profile = Profile::decode(bytes.as_slice()).unwrap();
        assert_eq!(profile.string_table[0], "");
        let sum = |place: usize| -> i64 { profile.sample.iter().map(|it| it.value[place]).sum() };
        assert_eq!(sum(0) as u64, it.executed(), "{}", it.name);
        let column = |by: &str, column: usize| -> u64 {
            let rows = it.report(by).into_iter();
            rows.map(|row| row[column].parse::<u64>().unwrap()).sum()
        };
        assert_eq!(sum(1) as u64, column("block", 4), "{}", it.name);
        assert_eq!(sum(2) as u64, column("function", 4), "{}", it.name);
        let text = it.ask(&["go", "tool", "pprof", "-top", "-unit=count", &file]);
        let total = format!("of {} total", it.executed());
        assert!(text.contains(&total), "{}: {total}: {text}", it.name);
    }
}

#[test]
fn folded_stacks_add_up() {
    for it in subject::all() {
        let text = it.read_text(&it.export("folded"));
        let mut sum = 0;
        for line in text.lines() {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            assert!((2..=3).contains(&stack.split(';').count()), "{line}");
            sum += count.parse::<u64>().unwrap();
        }
        assert_eq!(sum, it.executed(), "{}", it.name);
    }
}

#[test]
fn drcov_has_the_blocks_that_ran() {
    for it in subject::all() {
        let bytes = it.read(&it.export("drcov"));
        let mark = bytes.windows(5).position(|it| it == b" bbs\n").unwrap() + 5;
        let header = std::str::from_utf8(&bytes[..mark]).unwrap();
        let mut lines = header.lines();
        assert_eq!(lines.next(), Some("DRCOV VERSION: 2"));
        assert_eq!(lines.next(), Some("DRCOV FLAVOR: drcov"));
        let modules = lines.next().unwrap();
        let modules = number(
            modules
                .strip_prefix("Module Table: version 2, count ")
                .unwrap(),
        );
        assert_eq!(lines.next(), Some("Columns: id, base, end, entry, path"));
        let paths: Vec<&str> = lines
            .by_ref()
            .take(modules as usize)
            .map(|line| line.splitn(5, ", ").nth(4).unwrap())
            .collect();
        let blocks = number(lines.next().unwrap().strip_prefix("BB Table: ").unwrap());
        assert_eq!(bytes.len() - mark, blocks as usize * 8);
        let mut found = BTreeSet::new();
        for block in bytes[mark..].chunks(8) {
            let start = u32::from_le_bytes(block[..4].try_into().unwrap());
            let module = u16::from_le_bytes(block[6..].try_into().unwrap());
            found.insert((paths[usize::from(module)].to_owned(), format!("{start:#x}")));
        }
        for row in it.report("block").into_iter().filter(|row| row[4] != "0") {
            let block = (row[0].clone(), row[2].clone());
            assert!(found.contains(&block), "{}: {block:?}", it.name);
        }
    }
}

#[test]
fn json_is_as_its_schema_says() {
    for it in subject::all() {
        let value: Value = serde_json::from_slice(&it.read(&it.export("json"))).unwrap();
        let schema = it.schema();
        schema::check(&schema, &value);
        assert_eq!(value["totals"]["executed"], it.executed());
        let all = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        let mut executed = 0;
        for function in all(&value, "modules")
            .iter()
            .flat_map(|it| all(it, "functions"))
        {
            let sum = |key: &str| -> u64 {
                let items = all(&function, key);
                items
                    .iter()
                    .map(|it| it["executed"].as_u64().unwrap())
                    .sum()
            };
            assert_eq!(sum("blocks"), function["executed"].as_u64().unwrap());
            executed += sum("blocks");
        }
        assert_eq!(executed, it.executed(), "{}", it.name);
        let lines = all(&value, "files")
            .into_iter()
            .map(|it| all(&it, "lines").len());
        assert_eq!(lines.sum::<usize>(), it.report("line").len());
        // A document of another version, or with another field, is not taken for one of ours.
        let mut other = value.clone();
        other["version"] = 1.into();
        assert!(std::panic::catch_unwind(|| schema::check(&schema, &other)).is_err());
    }
}

/// The records of a `.fdata` file: from symbol and offset, to symbol and offset, count.
fn branch_records(text: &str) -> Vec<([String; 4], u64)> {
    let record = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        assert_eq!(fields.len(), 8, "{line}");
        assert!(fields[3] == "1" && fields[6] == "0", "{line}");
        let places = [fields[1], fields[2], fields[4], fields[5]];
        (places.map(str::to_owned), fields[7].parse().unwrap())
    };
    text.lines().map(record).collect()
}

#[test]
fn bolt_takes_every_branch() {
    for it in subject::all() {
        let file = it.export("bolt");
        let records = branch_records(&it.read_text(&file));
        let sum: u64 = records.iter().map(|it| it.1).sum();
        // Every way of a branch, every jump, and every entry of a function but those of stubs.
        let rows = it.report("edge").into_iter();
        let own: Vec<_> = rows.filter(|row| row[0].ends_with("/it")).collect();
        let branches: BTreeSet<&String> = own
            .iter()
            .filter(|row| row[4] == "taken")
            .map(|row| &row[2])
            .collect();
        let is_branch = |row: &&Vec<String>| match row[4].as_str() {
            "taken" | "jump" => !row[3].is_empty(),
            "fall" => branches.contains(&row[2]),
            _ => false,
        };
        let edges = own.iter().filter(is_branch);
        let edges: u64 = edges.map(|row| row[5].parse::<u64>().unwrap()).sum();
        let functions = it.report("function").into_iter();
        let is_stub = |name: &str| name.ends_with("@plt") || name == "plt0";
        let is_own = |row: &Vec<String>| row[0].ends_with("/it") && !is_stub(&row[1]);
        let entries = functions.filter(is_own);
        let entries: u64 = entries.map(|row| row[4].parse::<u64>().unwrap()).sum();
        assert_eq!(sum, edges + entries, "{}", it.name);

        let data = format!("-data={file}");
        let mut words = vec!["llvm-bolt-16", "it", "-o", "it.bolt", &data];
        words.extend(["-reorder-blocks=ext-tsp", "-reorder-functions=hfsort"]);
        words.extend([
            "-split-functions",
            "-split-all-cold",
            "-update-debug-sections",
        ]);
        // It does not know every relocation of Rust's own library.
        let said = it.ask_allowing(&words, "BOLT-WARNING: Failed to analyze");
        let profiled = said
            .lines()
            .find(|it| it.contains("have non-empty execution profile"));
        let profiled = profiled.unwrap_or_else(|| panic!("{said}"));
        assert!(
            number(profiled.trim_start_matches("BOLT-INFO: ")) >= 5,
            "{said}"
        );
        for complaint in ["invalid", "WARNING", "stale"] {
            assert!(!said.contains(complaint), "{}: {said}", it.name);
        }
        assert_eq!(it.output_of("it.bolt"), it.output_of("it"), "{}", it.name);
    }
}

#[test]
fn clang_learns_from_llvm_sample() {
    for it in subject::by_clang() {
        let file = it.export("llvm-sample");
        let calls: BTreeMap<String, u64> = it
            .report_with(&["--by", "function", "--no-demangle"])
            .into_iter()
            .filter(|row| row[0].ends_with("/it"))
            .map(|row| (row[1].clone(), row[4].parse().unwrap()))
            .collect();
        let text = it.read_text(&file);
        let mut known = 0;
        for line in text.lines().filter(|line| !line.starts_with(' ')) {
            let mut fields = line.rsplitn(3, ':');
            let head: u64 = fields.next().unwrap().parse().unwrap();
            let name = fields.nth(1).unwrap();
            if let Some(calls) = calls.get(name) {
                assert_eq!(head, *calls, "{}: {name}", it.name);
                known += 1;
            }
        }
        assert!(known >= 5, "{}: {text}", it.name);
        it.ask(&["llvm-profdata", "show", "--sample", &file]);
        let profile = format!("-fprofile-sample-use={}", it.path(&file));
        it.build("better", &[&profile]);
        if it.name == "bzip2" {
            // It says so if it cannot use seven in ten of what the profile tells of a function.
            // (Nobody asks for the line that ends one, and those in headers have little more.)
            let check = ["-mllvm", "-sample-profile-check-record-coverage=70"];
            it.build("better", &[&[profile.as_str()], &check[..]].concat());
        }
        assert_eq!(it.output_of("better"), it.output_of("it"), "{}", it.name);
    }
    // Other languages compile with LLVM, too, but have no such option; the tools read it.
    let rust = subject::all().last().unwrap();
    let file = rust.export("llvm-sample");
    rust.ask(&["llvm-profdata", "show", "--sample", &file]);
}

#[test]
fn a_module_that_is_not_what_was_counted_is_refused() {
    let it = subject::by_clang().remove(0);
    it.build("it", &["-DANEW", "-O1"]);
    for format in ["bolt", "llvm-sample"] {
        let said = it.refused(&["export", "--format", format]);
        let expected = "/it: was built anew since it was counted; count it again\n";
        assert!(said.ends_with(expected), "{said}");
    }
    let said = it.refused(&["export", "--format", "bolt", "--module", "lib*"]);
    assert!(
        said.contains("--module names one of") || said.contains("/lib"),
        "{said}"
    );
    let said = it.refused(&["export", "--format", "bolt", "--module", "nothing"]);
    assert!(
        said.contains("no module that was counted is called nothing"),
        "{said}"
    );
}

#[test]
fn counts_are_cut_on_request_and_that_is_said() {
    let it = &subject::all()[0];
    for format in ["lcov", "cobertura", "callgrind", "folded", "json"] {
        let text = String::from_utf8(it.exported_with(format, &["--max-count", "99"])).unwrap();
        let (text, notes) = text.split_once("\0").unwrap();
        assert!(
            notes.contains("counts were larger than 99, and are cut to that"),
            "{notes}"
        );
        let largest = match format {
            "lcov" => text
                .lines()
                .filter_map(|it| it.strip_prefix("DA:"))
                .map(|it| number(it.split(',').nth(1).unwrap()))
                .max(),
            "folded" => text
                .lines()
                .map(|it| number(it.rsplit(' ').next().unwrap()))
                .max(),
            "cobertura" => {
                let hits = text.split("hits=\"").skip(1);
                hits.map(number).max()
            }
            _ => Some(99),
        };
        assert_eq!(largest, Some(99), "{format}");
    }
}
