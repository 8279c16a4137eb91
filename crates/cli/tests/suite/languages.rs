//! Programs in many languages, built without us and counted as they are. All do the same: how many
//! steps do the numbers from 1 to 10 take to get to 1, by `3 n + 1` if odd and by halves if even?
//! 67, of which 17 are odd and 50 even.

use crate::workshop::{Workshop, have};
use std::collections::BTreeMap;

const PASCAL: &str = "\
program hailstones;

function steps(n: longint): longint;
var
  sum: longint;
begin
  sum := 0;
  while n <> 1 do { tests }
  begin
    if odd(n) then
      n := 3 * n + 1 { odd }
    else
      n := n div 2; { even }
    sum := sum + 1; { step }
  end;
  steps := sum; { end }
end;

var
  i, sum: longint;
begin
  sum := 0;
  for i := 1 to 10 do
    sum := sum + steps(i);
  writeln(sum);
end.
";

const FORTRAN: &str = "\
program hailstones
    implicit none
    integer :: i, total
    total = 0
    do i = 1, 10
        total = total + steps(i)
    end do
    print '(i0)', total
contains
    integer function steps(start)
        integer, intent(in) :: start
        integer :: n
        n = start
        steps = 0
        do while (n /= 1) ! tests
            if (mod(n, 2) == 1) then
                n = 3 * n + 1 ! odd
            else
                n = n / 2 ! even
            end if
            steps = steps + 1 ! step
        end do
    end function ! end
end program
";

const RUST: &str = "\
#[inline(never)]
fn steps(mut n: u32) -> u32 {
    let mut sum = 0;
    while n != 1 { // tests
        if n % 2 == 1 {
            n = 3 * n + 1; // odd
        } else {
            n /= 2; // even
        }
        sum += 1; // step
    }
    sum // end
}

fn main() {
    let sum: u32 = (1..=10).map(steps).sum();
    println!(\"{sum}\");
    std::panic::set_hook(Box::new(|_| ()));
    assert!(std::panic::catch_unwind(|| assert_eq!(sum, 0)).is_err());
}
";

/// Four goroutines take the steps, while another makes work for the garbage collector.
const GO: &str = "\
package main

import (
	\"fmt\"
	\"runtime\"
	\"sync\"
)

var kept []byte

//go:noinline
func steps(n int) int {
	sum := 0
	for n != 1 { // tests
		if n%2 == 1 {
			n = 3*n + 1 // odd
		} else {
			n = n / 2 // even
		}
		sum++ // step
	}
	return sum // end
}

//go:noinline
func litter() {
	for i := 0; i < 20; i++ {
		kept = make([]byte, 1<<16)
	}
	runtime.GC()
}

func main() {
	var group sync.WaitGroup
	sums := make([]int, 4)
	for part := range sums {
		group.Add(1)
		go func(part int) {
			defer group.Done()
			for i := 1; i <= 10; i++ {
				sums[part] += steps(i)
			}
		}(part)
	}
	litter()
	group.Wait()
	fmt.Println(sums[0], sums[1], sums[2], sums[3])
}
";

/// Calls by function, and counts by the remark at the end of the line, of the last run.
struct Counts {
    calls: BTreeMap<String, u64>,
    lines: BTreeMap<String, u64>,
}

/// Builds a program, which must print what it should, and counts it.
fn count(
    shop: &Workshop,
    file: &str,
    text: &str,
    build: &[&str],
    run: &[&str],
    says: &str,
) -> Counts {
    shop.write(file, text);
    shop.must(build);
    assert_eq!(shop.must(&["./program"]), says);
    let words = [&["run", "-q"], run, &["./program"]].concat();
    let said = shop.headcount(&words);
    let as_alone = (Some(0), says, "");
    assert_eq!(
        (said.status, said.stdout.as_str(), said.stderr.as_str()),
        as_alone,
        "{words:?}"
    );
    let rows = |by: &str| {
        let said = shop.headcount(&["report", "--by", by, "--format", "csv"]);
        assert_eq!(said.status, Some(0), "{said:?}");
        let row = |row: &str| row.split(',').map(str::to_owned).collect();
        said.stdout
            .lines()
            .skip(1)
            .map(row)
            .collect::<Vec<Vec<String>>>()
    };
    let mut counts = Counts {
        calls: BTreeMap::new(),
        lines: BTreeMap::new(),
    };
    for row in rows("function") {
        // Names with commas are of no interest here.
        if let (8, Ok(calls)) = (row.len(), row[4].parse()) {
            counts.calls.insert(row[1].clone(), calls);
        }
    }
    for row in rows("line") {
        if row[0].rsplit('/').next() != Some(file) {
            continue;
        }
        let line: usize = row[1].parse().unwrap();
        let remark = text
            .lines()
            .nth(line - 1)
            .unwrap()
            .rsplit_once(['{', '!', '/']);
        if let (Some((_, remark)), Ok(count)) = (remark, row[2].parse()) {
            let remark = remark.trim_matches([' ', '}']);
            counts.lines.insert(remark.to_owned(), count);
        }
    }
    counts
}

/// How often a function called those whose names begin like this.
fn calls_from(shop: &Workshop, caller: &str, callees: &str) -> u64 {
    let csv = shop.report(&["--by", "call", "--only", caller, "--format", "csv"]);
    let rows = csv.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let calls = rows.filter(|row| row[1] == caller && row[3].starts_with(callees));
    calls.map(|row| row[4].parse::<u64>().unwrap()).sum()
}

/// As often as it must be, by so many who do the same.
fn takes_the_steps(counts: &Counts, times: u64) {
    let expected = [
        ("tests", 77),
        ("odd", 17),
        ("even", 50),
        ("step", 67),
        ("end", 10),
    ];
    for (remark, count) in expected {
        assert_eq!(counts.lines.get(remark), Some(&(count * times)), "{remark}");
    }
}

#[test]
fn a_pascal_program() {
    if !have("fpc") {
        return;
    }
    let build = ["fpc", "-g", "-v0", "hailstones.pas", "-oprogram"];
    let counts = count(
        &Workshop::new(),
        "hailstones.pas",
        PASCAL,
        &build,
        &[],
        "67\n",
    );
    takes_the_steps(&counts, 1);
    let calls = counts.calls.iter().find(|(name, _)| name.contains("STEPS"));
    assert_eq!(calls.map(|(_, calls)| *calls), Some(10));
}

#[test]
fn a_fortran_program() {
    let build = ["gfortran", "-g", "hailstones.f90", "-o", "program"];
    let counts = count(
        &Workshop::new(),
        "hailstones.f90",
        FORTRAN,
        &build,
        &[],
        "67\n",
    );
    takes_the_steps(&counts, 1);
    let calls = counts
        .calls
        .iter()
        .find(|(name, _)| name.starts_with("steps"));
    assert_eq!(calls.map(|(_, calls)| *calls), Some(10));
}

#[test]
fn a_rust_program() {
    let build = ["rustc", "-g", "hailstones.rs", "-o", "program"];
    let counts = count(&Workshop::new(), "hailstones.rs", RUST, &build, &[], "67\n");
    takes_the_steps(&counts, 1);
    assert_eq!(counts.calls.get("hailstones::steps"), Some(&10));
    assert_eq!(counts.calls.get("hailstones::main"), Some(&1));
}

#[test]
fn a_go_program() {
    if !have("go") {
        return;
    }
    let shop = Workshop::new();
    let cache = format!("GOCACHE={}", shop.path("cache").display());
    let build = [
        "env",
        &cache,
        "GO111MODULE=off",
        "go",
        "build",
        "-o",
        "program",
        "hailstones.go",
    ];
    let says = "67 67 67 67\n";
    let counts = count(
        &shop,
        "hailstones.go",
        GO,
        &build,
        &["--only", "main.*"],
        says,
    );
    takes_the_steps(&counts, 4);
    assert_eq!(counts.calls.get("main.steps"), Some(&40));
    assert_eq!(counts.calls.get("main.litter"), Some(&1));
    // With its whole runtime: stacks that move, threads and signals of its own.
    let counts = count(&shop, "hailstones.go", GO, &build, &[], says);
    // Who is preempted where a function looks for room on its stack begins that function again. It is
    // the slower the more there is to copy, so that happens in first runs.
    let begun = |name: &str| {
        let again = calls_from(&shop, name, "runtime.morestack");
        counts.calls.get(name).map(|calls| calls - again)
    };
    assert_eq!(begun("main.steps"), Some(40));
    assert_eq!(begun("runtime.GC"), Some(1));
}
