//! Counts outlive the program, whatever it dies of.

mod common;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use common::Workshop;
use headcount_wire::slot_state;

#[test]
fn every_death_leaves_the_counts() {
    let deaths = [
        ("abort()", Some(6)),
        ("raise(SIGSEGV)", Some(11)),
        ("raise(SIGKILL)", Some(9)),
        ("*(volatile int *)8 = 1", Some(11)),
        ("_exit(0)", None),
        ("quick_exit(0)", None),
    ];
    for (how, signal) in deaths {
        let shop = Workshop::new("dies");
        let output = shop
            .build("gcc", "dies.c", &[&format!("-DHOW={how}")])
            .command()
            .output();
        assert_eq!(output.unwrap().status.signal(), signal, "{how}");
        let file = shop.only_file();
        assert_eq!((file.total(0), file.failures), (1_000_000, 0), "{how}");
        assert_eq!(file.slots[0].state, slot_state::RUNNING, "{how}");
    }
}

#[test]
fn a_program_killed_from_outside_leaves_what_it_counted() {
    let shop = Workshop::new("killed");
    let program = shop.build("gcc", "dies.c", &["-DHOW=for(;;)COUNT(1)"]);
    let mut child = program.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let early = shop.only_file().total(1);
    std::thread::sleep(std::time::Duration::from_millis(100));
    let later = shop.only_file().total(1);
    assert!(
        early < later,
        "a reader sees the counts grow: {early} and {later}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let file = shop.only_file();
    assert_eq!(file.total(0), 1_000_000);
    assert!(file.total(1) >= later);
}
