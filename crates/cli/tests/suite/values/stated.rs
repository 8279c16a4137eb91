//! Programs that say what they saw, key by key.
//!
//! The first lines of a program name tallies: `//~ NAME: TALLY`, with `LINE:MARK` for the line that ends
//! with `//@MARK`. The program prints `NAME`, key, count and sum, which is all of the truth.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Found, checked, found, tallied};
use crate::workshop::Workshop;

/// A tally that a program states: its name, and what `--tally` is told.
struct Stated {
    name: String,
    tally: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/values/programs")
}

/// The sources of a program: the first one states the tallies.
fn sources(name: &str) -> Vec<PathBuf> {
    let endings = ["c", "cc", "S"];
    let files = endings.map(|it| folder().join(format!("{name}.{it}")));
    files.into_iter().filter(|it| it.exists()).collect()
}

/// File and line of a mark.
fn marked(sources: &[PathBuf], mark: &str) -> String {
    let mark = format!("//@{mark}");
    for source in sources {
        let text = fs::read_to_string(source).unwrap();
        if let Some(line) = text.lines().position(|it| it.ends_with(&mark)) {
            let file = source.file_name().unwrap().to_str().unwrap();
            return format!("{file}:{}", line + 1);
        }
    }
    panic!("{mark} is nowhere")
}

fn stated(sources: &[PathBuf]) -> Vec<Stated> {
    let text = fs::read_to_string(&sources[0]).unwrap();
    let lines = text.lines().filter_map(|it| it.strip_prefix("//~ "));
    let all: Vec<Stated> = lines
        .map(|line| {
            let (name, tally) = line.split_once(": ").unwrap();
            let tally = match tally.split_once("LINE:") {
                None => tally.to_owned(),
                Some((before, rest)) => {
                    let end = rest.find(|it: char| !it.is_alphanumeric());
                    let (mark, rest) = rest.split_at(end.unwrap_or(rest.len()));
                    format!("{before}{}{rest}", marked(sources, mark))
                }
            };
            let name = name.to_owned();
            Stated { name, tally }
        })
        .collect();
    assert!(!all.is_empty(), "{} states nothing", sources[0].display());
    all
}

/// What a program printed, by the names of its tallies.
fn said(stdout: &str) -> BTreeMap<String, Found> {
    let mut said: BTreeMap<String, Found> = BTreeMap::new();
    for line in stdout.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let [name, key, count, sum] = words[..] else {
            panic!("{line}");
        };
        let of = said.entry(name.to_owned()).or_default();
        let known = of.entry(key.to_owned()).or_default();
        *known = (
            known.0 + count.parse::<u64>().unwrap(),
            known.1 + sum.parse::<i64>().unwrap(),
        );
    }
    said
}

/// Place and expression of a tally, as reports name them.
fn words(tally: &str) -> (String, String) {
    let (sum, rest) = match tally.strip_prefix("sum ") {
        Some(rest) => {
            let (sum, rest) = rest.split_once(" in ").unwrap();
            (Some(sum), rest)
        }
        None => (None, tally),
    };
    // Functions of C++ have brackets in their names.
    let opening = rest.find(")(").map(|it| it + 1).or_else(|| rest.find('('));
    let (place, key) = match opening {
        Some(at) => (&rest[..at], rest[at + 1..].strip_suffix(')')),
        None => (rest, None),
    };
    let expression = match (key, sum) {
        (Some(key), None) => key.to_owned(),
        (None, Some(sum)) => format!("sum {sum}"),
        (Some(key), Some(sum)) => format!("{key}: sum {sum}"),
        (None, None) => String::new(),
    };
    (place.to_owned(), expression)
}

/// A key as the report has it: ranges and sums of all have their own words.
fn as_reported(tally: &str, key: &str) -> String {
    let Ok(number) = key.parse::<i64>() else {
        return key.to_owned();
    };
    if tally.contains("(log2(") {
        return match number {
            -1 => "0".to_owned(),
            0 => "1".to_owned(),
            63 => "negative".to_owned(),
            _ => format!("{}..{}", 1_i64 << number, (1_i128 << (number + 1)) - 1),
        };
    }
    if tally.contains("(linear(") {
        let (_, width) = tally.rsplit_once(',').unwrap();
        let width: i64 = width.trim().trim_end_matches(')').parse().unwrap();
        // The first range of all begins below the least number: its beginning wraps around.
        let begin = match number > 0 && number % width != 0 {
            true => i128::from(number) - (1 << 64),
            false => number.into(),
        };
        let end = (begin + i128::from(width) - 1).min(i64::MAX.into());
        return format!("{}..{end}", begin.max(i64::MIN.into()));
    }
    match tally.starts_with("sum ") && !tally.contains('(') {
        true => String::new(),
        false => key.to_owned(),
    }
}

fn build(shop: &Workshop, sources: &[PathBuf], level: &str) {
    let is_cc = sources[0].extension().is_some_and(|it| it == "cc");
    let compiler = if is_cc { "g++" } else { "gcc" };
    let folder = folder();
    let include = ["-I", folder.to_str().unwrap()];
    let mut command = vec![compiler, "-g", "-w", "-pthread", "-o", "it"];
    command.extend(level.split(' ').chain(include));
    command.extend(sources.iter().map(|it| it.to_str().unwrap()));
    shop.must(&command);
}

/// Key by key, what headcount counted is what the program saw.
pub fn agree(shop: &Workshop, sources: &[PathBuf], level: &str, arguments: &[&str]) {
    build(shop, sources, level);
    let stated = stated(sources);
    let tallies: Vec<&str> = stated.iter().map(|it| it.tally.as_str()).collect();
    let stdout = tallied(shop, &tallies, &[&["./it"], arguments].concat());
    let mut said = said(&stdout);
    let rows = checked(shop);
    for it in &stated {
        let saw = said.remove(&it.name).unwrap_or_default().into_iter();
        let saw: Found = saw
            .map(|(key, sum)| (as_reported(&it.tally, &key), sum))
            .collect();
        let (place, expression) = words(&it.tally);
        let counted = found(&rows, &place, &expression);
        let program = sources[0].display();
        assert_eq!(
            counted, saw,
            "{program} {level} {arguments:?}: {}",
            it.tally
        );
    }
    assert!(said.is_empty(), "nobody asked for {said:?}");
}

fn agrees(name: &str, level: &str, arguments: &[&str]) {
    agree(&Workshop::new(), &sources(name), level, arguments);
}

/// Two levels of optimisation: variables are elsewhere, and so are jumps.
fn agrees_at_both_levels(name: &str) {
    for level in ["-O0", "-O2"] {
        agrees(name, level, &[]);
    }
}

#[test]
fn arguments_are_keys_powers_ranges_and_amounts() {
    agrees_at_both_levels("arguments");
}

#[test]
fn results_are_told_of_recursion_of_several_returns_and_of_tail_calls() {
    agrees_at_both_levels("results");
}

#[test]
fn a_library_calls_back_and_is_seen() {
    agrees_at_both_levels("comparators");
}

#[test]
fn values_of_a_switch_and_variables_at_a_line() {
    agrees_at_both_levels("switches");
}

#[test]
fn fields_elements_and_variables_of_threads() {
    agrees_at_both_levels("variables");
    agrees("variables", "-O1 -static", &[]);
}

#[test]
fn names_mean_what_they_mean_to_the_compiler() {
    agrees("scopes", "-O0", &[]);
    agrees("nested", "-O0", &[]);
}

#[test]
fn threads_lose_nothing() {
    for threads in ["1", "8", "64"] {
        agrees("threads", "-O2", &[threads]);
    }
}

#[test]
fn what_cannot_be_read_is_a_key_and_the_program_does_not_notice() {
    agrees_at_both_levels("unreadable");
}

#[test]
#[ignore = "the kernel lets a fault through by force, and resets what the program does with the signal"]
fn signals_of_faults_stay_blocked_and_ignored() {
    agrees_at_both_levels("blocked");
}

#[test]
fn handlers_interrupt_what_is_counted_and_jump_out_of_it() {
    agrees_at_both_levels("signals");
}

#[test]
fn who_is_left_by_an_exception_does_not_return() {
    agrees_at_both_levels("throws");
}

#[test]
fn children_by_fork_and_vfork_and_other_programs() {
    agrees_at_both_levels("children");
}

#[test]
fn more_keys_than_a_table_holds_by_several_threads() {
    agrees("many_keys", "-O2", &["6"]);
}

#[test]
fn flags_registers_and_the_red_zone_stay_what_they_are() {
    agrees("machine", "-O2", &[]);
}
