//! Names of other languages than C: their cases, modules and arrays.

use std::path::Path;

use super::{Found, checked, found, tallied};
use crate::workshop::{Workshop, have};

/// Each of these was found once.
fn each(values: &[&str]) -> Found {
    let once = |it: &&str| ((*it).to_owned(), (1, 0));
    values.iter().map(once).collect()
}

#[test]
fn fortran_has_modules_arguments_by_reference_and_arrays_from_one() {
    if !have("gfortran") {
        return;
    }
    let shop = Workshop::new();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/values/programs");
    let source = std::fs::read_to_string(programs.join("fortran.f90")).unwrap();
    shop.write("it.f90", &source);
    shop.must(&["gfortran", "-g", "-O0", "-o", "it", "it.f90"]);
    let line = |text: &str| {
        let mut lines = source.lines();
        1 + lines.position(|it| it.trim() == text).unwrap()
    };
    let added = format!("it.f90:{}", line("total = total + twice"));
    let called = format!("it.f90:{}", line("call add(i)"));
    let inner = format!(
        "it.f90:{}",
        line("print *, q, squares(m), from_three(m + 2), moving(m)")
    );
    let cases = [
        (added.as_str(), "twice", ["2", "4", "6", "8", "10"]),
        (&added, "TOTAL", ["0", "2", "6", "12", "20"]),
        (&added, "counting::total", ["0", "2", "6", "12", "20"]),
        (&called, "squares[i]", ["1", "4", "9", "16", "25"]),
        (&called, "from_three[i + 2]", ["-1", "-2", "-3", "-4", "-5"]),
        (&inner, "Q", ["8", "9", "10", "11", "12"]),
        ("inner", "m", ["1", "2", "3", "4", "5"]),
        ("__counting_MOD_add", "n", ["1", "2", "3", "4", "5"]),
    ];
    let tallies: Vec<String> = cases
        .iter()
        .map(|it| format!("{}({})", it.0, it.1))
        .collect();
    let tallies: Vec<&str> = tallies.iter().map(String::as_str).collect();
    tallied(&shop, &tallies, &["./it"]);
    let rows = checked(&shop);
    for (place, expression, values) in &cases {
        let found = found(&rows, place, expression);
        assert_eq!(found, each(values), "{place}({expression})");
    }
    let refused = |tally: &str, why: &str| {
        let said = shop.headcount(&["run", "-q", "--tally", tally, "--", "./it"]);
        assert_eq!(said.status, Some(125), "{tally}: {said:?}");
        assert!(said.stderr.contains(why), "{tally}: {said:?}");
    };
    refused(
        &format!("{called}(moving[i])"),
        "where its elements are is known only when it runs",
    );
    refused(
        &format!("{inner}(k)"),
        "in the frame of the function around this one",
    );
}

#[test]
fn rust_has_statics_in_modules_and_functions_of_enumerations() {
    let source = "\
mod one {
    pub static mut TOTAL: u32 = 5;
    pub enum Kind { Small, Large(u32) }
    impl Kind {
        #[inline(never)]
        pub fn weigh(&self, by: u32) -> u32 {
            let weight = match self {
                Kind::Small => by,
                Kind::Large(n) => by * n,
            };
            unsafe { TOTAL += weight };
            weight
        }
    }
}
mod other {
    pub static mut TOTAL: u64 = 70;
}
fn main() {
    let mut sum = 0;
    for n in 1..4 {
        sum += one::Kind::Small.weigh(n) + one::Kind::Large(n).weigh(10);
        unsafe { other::TOTAL += u64::from(sum) };
    }
    std::process::exit(i32::from(sum == 0));
}
";
    let shop = Workshop::new();
    shop.write("it.rs", source);
    shop.must(&["rustc", "-g", "it.rs"]);
    tallied(&shop, &["it.rs:11(weight)", "it.rs:11(TOTAL)"], &["./it"]);
    let rows = checked(&shop);
    let weights = found(&rows, "it.rs:11", "weight");
    assert_eq!(weights, each(&["1", "10", "2", "20", "3", "30"]));
    let totals = found(&rows, "it.rs:11", "TOTAL");
    assert_eq!(totals, each(&["5", "6", "16", "18", "38", "41"]));
}

#[test]
fn go_has_variables_of_packages() {
    if !have("go") {
        return;
    }
    let source = "\
package main

var total int

//go:noinline
func work(n int) int {
	r := n * 2
	total += r
	return r
}

func main() {
	for i := 0; i < 4; i++ {
		work(i)
	}
}
";
    let shop = Workshop::new();
    shop.write("it.go", source);
    shop.must(&["go", "build", "-gcflags=-N -l", "-o", "it", "it.go"]);
    let tallies = ["it.go:8(total)", "it.go:8(main::total + 1)", "it.go:8(r)"];
    tallied(&shop, &tallies, &["./it"]);
    let rows = checked(&shop);
    for (expression, values) in [
        ("total", [("0", 2), ("2", 1), ("6", 1)].as_slice()),
        ("main::total + 1", &[("1", 2), ("3", 1), ("7", 1)]),
        ("r", &[("0", 1), ("2", 1), ("4", 1), ("6", 1)]),
    ] {
        let values = values.iter().map(|it| (it.0.to_owned(), (it.1, 0)));
        let found = found(&rows, "it.go:8", expression);
        assert_eq!(found, values.collect(), "{expression}");
    }
}
