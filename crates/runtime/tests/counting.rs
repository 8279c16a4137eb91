//! Counts are exact, whoever counts and however the program was linked.

mod common;

use common::{Workshop, is_installed};
use headcount_wire::slot_state;

#[test]
fn one_thread_is_counted() {
    let shop = Workshop::new("once");
    let program = shop.build("gcc", "once.c", &[]);
    let output = program.run();
    assert_eq!(output.stdout, b"3\n", "the first free descriptor");
    let file = shop.only_file();
    assert_eq!((file.total(0), file.total(1)), (1, 1_000_000));
    assert_eq!((file.failures, file.slots.len()), (0, 1));
    assert_eq!(file.slots[0].state, slot_state::EXITED);
    assert_eq!(file.counters, 8);
    assert_eq!(
        file.module,
        program.program.canonicalize().unwrap().to_str().unwrap()
    );
    assert_eq!(file.command, format!("{}\0", program.program.display()));
    let ids = b"an object of 16B";
    assert_eq!(file.fingerprint, headcount_wire::fingerprint(ids, 8));
}

#[test]
fn every_way_of_linking_is_counted() {
    for flags in [
        &["-no-pie"][..],
        &["-pie", "-fPIE"],
        &["-static"],
        &["-static-pie", "-fPIE"],
    ] {
        for compiler in ["gcc", "clang", "clang-14", "clang-19", "musl-gcc"] {
            // Debian's musl-gcc makes no static-pie programs that start.
            let unable = compiler == "musl-gcc" && flags[0] == "-static-pie";
            if unable || !is_installed(compiler) {
                continue;
            }
            let shop = Workshop::new("linking");
            let program = shop.build(
                compiler,
                "threads.c",
                &[flags, &["-DROUNDS=1000000"]].concat(),
            );
            program.run();
            let file = shop.only_file();
            let totals = (file.total(0), file.total(1));
            assert_eq!(totals, (9, 9_000_000), "{compiler} {flags:?}");
            assert_eq!(file.failures, 0, "{compiler} {flags:?}");
        }
    }
}

#[test]
fn eight_threads_of_ten_million_lose_nothing() {
    let shop = Workshop::new("threads");
    shop.build("gcc", "threads.c", &[]).run();
    let file = shop.only_file();
    assert_eq!((file.total(0), file.total(1)), (9, 90_000_000));
    assert_eq!((file.failures, file.slots.len()), (0, 9));
}

#[test]
fn five_hundred_threads_at_once_lose_nothing() {
    let shop = Workshop::new("crowd");
    shop.build("gcc", "threads.c", &["-DTHREADS=500", "-DROUNDS=10000"])
        .run();
    let file = shop.only_file();
    assert_eq!((file.total(0), file.total(1)), (501, 5_010_000));
    assert_eq!((file.failures, file.slots.len()), (0, 501));
}

#[test]
fn threads_one_after_another_share_slots() {
    let shop = Workshop::new("one-after-another");
    shop.build("gcc", "one_after_another.c", &[]).run();
    let file = shop.only_file();
    assert_eq!((file.total(0), file.total(1)), (2000, 2_000_000));
    assert_eq!(file.failures, 0);
    assert!(file.slots.len() < 40, "{} slots", file.slots.len());
}

/// The processes of `forks.c`: first the child's line (the grandchild), then the parent's.
fn forked(flags: &[&str], compiler: &str) {
    let shop = Workshop::new("forks");
    let output = shop.build(compiler, "forks.c", flags).run();
    let text = String::from_utf8(output.stdout).unwrap();
    let pids: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    let file = shop.only_file();
    let counts = |pid: u32| [0, 1, 2, 3].map(|counter| file.total_of(pid, counter));
    assert_eq!(file.failures, 0, "{flags:?}");
    assert_eq!(counts(file.pid), [1, 3_000_000, 0, 0], "parent, {flags:?}");
    assert_eq!(counts(pids[1]), [0, 0, 2_000_000, 0], "child, {flags:?}");
    assert_eq!(
        counts(pids[0]),
        [0, 0, 0, 1_000_000],
        "grandchild, {flags:?}"
    );
    let state = |pid: u32| {
        file.slots
            .iter()
            .find(|slot| slot.pid == pid)
            .unwrap()
            .state
    };
    assert_eq!(state(file.pid), slot_state::EXITED);
    assert_eq!(state(pids[1]), slot_state::RUNNING, "it called _exit");
    assert_eq!(state(pids[0]), slot_state::EXITED);
}

#[test]
fn children_of_fork_count_for_themselves() {
    forked(&[], "gcc");
    forked(&["-static"], "gcc");
    forked(&["-no-pie"], "clang");
    forked(&[], "musl-gcc");
}

#[test]
fn children_made_behind_libc_count_for_themselves() {
    for how in [
        "-DHOW=_Fork()",
        "-DHOW=syscall(SYS_fork)",
        "-DHOW=syscall(SYS_clone,SIGCHLD,0,0,0,0)",
    ] {
        forked(&["-DBEHIND_LIBC", how], "gcc");
    }
    // Musl's `fork`, linked statically, calls handlers only if the program registers any.
    forked(&["-DBEHIND_LIBC", "-static"], "musl-gcc");
}
