//! Where the time of scripts goes: samples by operation, and by what the interpreter did for it.

use crate::interpreted::{PYTHON, counted, newer_ones, told};
use crate::interpreted_icon_runtime::{number, of_token, table, tokens};
use crate::workshop::Workshop;

/// Most of its time goes into a function of C that lets other threads run meanwhile, on behalf of one line.
const PROGRAM: &str = "\
import hashlib
data = b'x' * 4_000_000
def hashing(): return hashlib.sha256(data).digest()
def counting(): return sum(i % 7 for i in range(20_000))
for _ in range(60):
    hashing()
    counting()
";

#[test]
fn time_is_of_the_operation_that_asked_for_it() {
    for python in newer_ones().into_iter().chain([PYTHON.to_owned()]) {
        let shop = Workshop::new();
        shop.write("hashes.py", PROGRAM);
        let said = shop.headcount(&["run", "-q", "--time", "--", &python, "hashes.py"]);
        assert_eq!(said.status, Some(0), "{python}: {said:?}");
        let charges = table(&shop, &["--charge-back", "--all"]);
        let all: u64 = charges.iter().map(|it| number(it, "samples")).sum();
        let of_line = |line: &str| {
            let rows = charges.iter().filter(|it| it["file"] == "hashes.py");
            let rows = rows.filter(|it| it["line"] == line);
            rows.map(|it| number(it, "samples")).sum::<u64>()
        };
        let (hashing, counting) = (of_line("3"), of_line("4"));
        assert!(
            hashing * 2 > all && counting > 0 && hashing > counting,
            "{python}: {hashing} and {counting} of {all}"
        );
        let rows = tokens(&shop);
        let hashed = of_token(&rows, 3, "hashlib.sha256(data)", "samples");
        assert!(
            hashed <= hashing && hashed * 10 > hashing * 9,
            "{python}: {hashed}"
        );
        let by_token: u64 = rows.iter().map(|it| number(it, "samples")).sum();
        assert!(by_token <= all, "{python}: {by_token} of {all}");
        // What the clock of the process says is about the same.
        let source = told(&shop, &["annotate", "hashes.py"]);
        let line = source
            .lines()
            .find(|it| it.contains("def hashing"))
            .unwrap();
        assert!(line.contains('%') && line.contains("ms"), "{source}");
    }
}

#[test]
fn who_did_not_ask_for_time_has_none() {
    let shop = Workshop::new();
    shop.write("hashes.py", PROGRAM);
    counted(&shop, &[PYTHON, "hashes.py"]);
    let rows = tokens(&shop);
    assert!(rows.iter().all(|it| it["samples"].is_empty()), "{rows:?}");
}

/// One thread computes without the lock while the other one has it: each is on its own line.
#[test]
fn threads_are_told_apart() {
    let program = "\
import hashlib, threading
data = b'x' * 4_000_000
def hashing():
    for _ in range(60): hashlib.sha256(data).digest()
def counting():
    for _ in range(60): sum(i % 7 for i in range(20_000))
threads = [threading.Thread(target=it) for it in (hashing, counting)]
for it in threads: it.start()
for it in threads: it.join()
";
    for python in newer_ones().into_iter().chain([PYTHON.to_owned()]) {
        let shop = Workshop::new();
        shop.write("two.py", program);
        let said = shop.headcount(&["run", "-q", "--time", "--", &python, "two.py"]);
        assert_eq!(said.status, Some(0), "{python}: {said:?}");
        let charges = table(&shop, &["--charge-back", "--all"]);
        let on_line = |line: &str, is_of: &dyn Fn(&str) -> bool| {
            let rows = charges.iter().filter(|it| it["file"] == "two.py");
            let rows = rows.filter(|it| it["line"] == line && is_of(&it["module"]));
            rows.map(|it| number(it, "samples")).sum::<u64>()
        };
        let is_python = |module: &str| module.contains("python");
        let hashed = on_line("4", &|it| !is_python(it));
        let wrongly = on_line("6", &|it| it.contains("crypto"));
        assert!(
            hashed > 20 && wrongly == 0 && on_line("6", &is_python) > 5,
            "{python}: {hashed}, {wrongly}: {charges:?}"
        );
    }
}
