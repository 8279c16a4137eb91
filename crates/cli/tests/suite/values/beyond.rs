//! Bad moments and large numbers.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use super::{checked, found, table, tallied};
use crate::workshop::started::{Started, send};
use crate::workshop::{HEADCOUNT, Workshop, is_thorough};

const KILLED_C: &str = include_str!("programs/killed.c");
const SPIN_S: &str = include_str!("programs/signals.S");

/// The program adds to its own counters, in a file, by the instruction that is looked at.
fn spins(threads: usize) -> (Workshop, String) {
    let shop = Workshop::new();
    shop.write("killed.c", KILLED_C);
    shop.write("spin.S", SPIN_S);
    shop.must(&[
        "gcc", "-g", "-w", "-pthread", "-o", "it", "killed.c", "spin.S",
    ]);
    let line = SPIN_S.lines().position(|it| it.ends_with("//@spin"));
    assert!(threads > 0);
    (shop, format!("spin.S:{}", line.unwrap() + 1))
}

/// What the program counted by itself, by key.
fn own_counts(shop: &Workshop) -> [u64; 8] {
    let bytes = fs::read(shop.path("counters")).unwrap();
    let mut counts = [0; 8];
    for (place, word) in bytes.chunks_exact(8).enumerate() {
        counts[place % 8] += u64::from_le_bytes(word.try_into().unwrap());
    }
    counts
}

fn started(shop: &Workshop, place: &str, threads: usize) -> Started {
    let tally = format!("{place}(rsi)");
    let mut command = shop.command(HEADCOUNT);
    let run = [
        "run",
        "-q",
        "--modules",
        "main",
        "--tally",
        &tally,
        "--",
        "./it",
    ];
    Started::new(command.args(run).arg(threads.to_string()))
}

#[test]
fn who_is_killed_was_counted_to_the_last_instruction() {
    for (threads, moment) in [(1, 3), (1, 40), (8, 11), (8, 60), (64, 90)] {
        let (shop, place) = spins(threads);
        let it = started(&shop, &place, threads);
        sleep(Duration::from_millis(moment));
        send("KILL", &it.counted());
        let said = it.rest();
        assert_eq!(said.status, Some(128 + 9), "{said:?}");
        let own = own_counts(&shop);
        let counted = found(&checked(&shop), &place, "rsi");
        for (key, own) in own.iter().enumerate() {
            let counted = counted.get(&key.to_string()).map_or(0, |it| it.0);
            assert_eq!(counted, *own, "{threads} threads, key {key}");
        }
    }
}

/// Nobody can say then which threads were between a probe and its instruction.
#[test]
fn what_was_found_outlives_headcount() {
    for threads in [1, 8] {
        let (shop, place) = spins(threads);
        let mut it = started(&shop, &place, threads);
        while !shop.path("counters").exists() || own_counts(&shop).iter().sum::<u64>() == 0 {
            sleep(Duration::from_millis(50));
        }
        let program = it.counted();
        it.signal("KILL");
        it.child.wait().unwrap();
        crate::workshop::started::must_be_gone(&program);
        let own: u64 = own_counts(&shop).iter().sum();
        let said = shop.headcount(&["collect"]);
        assert_eq!(said.status, Some(0), "{said:?}");
        let text = shop.report(&["--by", "value"]);
        assert!(!text.contains("do not believe"), "{text}");
        let counted = found(&table(&shop, &[]), &place, "rsi");
        let counted: u64 = counted.values().map(|it| it.0).sum();
        let behind = own..=own + threads as u64;
        assert!(own > 0 && behind.contains(&counted), "{own}, {counted}");
    }
}

/// What the copies count by is the program's from then on; breakpoints do without.
#[test]
fn a_program_that_takes_the_gs_register_is_counted_up_to_then() {
    let source = "\
#include <asm/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static long words[2] = {0, 77};
__attribute__((noipa)) void work(long n) {}
static void all(void)
{
    for (long n = 0; n < 90; n++)
        work(n % 3);
}
int main(void)
{
    long found;
    all();
    syscall(SYS_arch_prctl, ARCH_SET_GS, words);
    all();
    __asm__(\"mov %%gs:8, %0\" : \"=r\"(found));
    return found != 77;
}
";
    let shop = Workshop::with("it", source, &["-O1"]);
    for (engine, count) in [("detour", 30), ("breakpoint", 60)] {
        let tally = ["--tally", "work(arg1)", "--", "./it"];
        let run = ["run", "-q", "--engine", engine];
        let said = shop.headcount(&[&run[..], &tally].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
        for (key, sum) in found(&table(&shop, &[]), "work", "arg1") {
            assert_eq!(sum.0, count, "{engine} {key}");
        }
        let text = shop.report(&["--by", "value"]);
        let tells = text.contains("uses the gs register itself");
        assert_eq!(tells, engine == "detour", "{text}");
        assert!(!text.contains("do not believe"), "{text}");
    }
}

#[test]
fn beyond_a_million_values_others_are_one() {
    // Half a minute.
    if !is_thorough() {
        return;
    }
    let source = "\
__attribute__((noipa)) void work(long n) {}
int main(void)
{
    for (long n = 0; n < 1100000; n++)
        work(n * 3);
    for (long n = 0; n < 1000; n++)
        work(n * 3);
}
";
    let shop = Workshop::with("it", source, &["-O1"]);
    tallied(&shop, &["work(arg1)"], &["./it"]);
    let text = shop.report(&["--by", "value", "--top", "3"]);
    assert!(text.contains("1,048,576 values are told apart"), "{text}");
    let rows = checked(&shop);
    let others: Vec<u64> = rows
        .iter()
        .filter(|it| it.value == "(others)")
        .map(|it| it.count)
        .collect();
    let numbers = rows.iter().filter(|it| it.value != "(others)");
    let sum: u64 = numbers.clone().map(|it| it.count).sum();
    assert_eq!(others.len(), 1);
    assert_eq!(others[0] + sum, 1_101_000);
    // Of what is told apart, nothing is wrong.
    for row in numbers {
        let n: u64 = row.value.parse().unwrap();
        assert!(
            n.is_multiple_of(3) && row.count <= 1 + u64::from(n < 3000),
            "{row:?}"
        );
    }
}
