//! Counts are exact, whoever counts and however the program was linked.

mod common;

use common::{CounterFile, Workshop, is_installed, succeed};
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

#[test]
fn a_child_of_vfork_counts_for_its_parent() {
    for compiler in ["gcc", "musl-gcc"] {
        let shop = Workshop::new("vforks");
        shop.build(compiler, "vforks.c", &[]).run();
        let file = shop.only_file();
        assert_eq!((file.total(0), file.total(1)), (100, 100), "{compiler}");
        assert_eq!((file.failures, file.slots.len()), (0, 1), "{compiler}");
    }
}

#[test]
fn threads_of_the_cpp_library_are_counted() {
    for compiler in ["g++", "clang++"] {
        let shop = Workshop::new("std-thread");
        shop.build(compiler, "std_thread.cc", &["-pthread"]).run();
        let file = shop.only_file();
        assert_eq!(
            (file.total(0), file.total(1), file.failures),
            (4_000_000, 8, 0)
        );
    }
}

#[test]
fn threads_of_c11_are_counted() {
    let shop = Workshop::new("c11");
    shop.build("gcc", "c11_threads.c", &[]).run();
    let file = shop.only_file();
    assert_eq!((file.total(0), file.failures), (4_000_000, 0));
}

/// Builds `library.c` and `uses_library.c`, runs the program by way of `wrapper`, and checks the
/// counts of both.
fn program_with_library(compiler: &str, link: &str, wrapper: &[&str]) {
    let case = format!("{compiler} {link} {wrapper:?}");
    let shop = Workshop::new("library");
    let library = shop.object(compiler, "library.c", &["-fPIC"]);
    let library = shop.link(compiler, "libwork.so", &[library], &["-shared"]);
    let code = if link == "-pie" { "-fPIE" } else { "-fno-pie" };
    let program = shop.object(compiler, "uses_library.c", &[code]);
    let program = shop.link(compiler, "program", &[&program, &library.program], &[link]);
    succeed(&mut program.command_under(wrapper));
    let [of_library, of_program] = &shop.files()[..] else {
        panic!("two files: {case}")
    };
    assert!(
        of_library.module.ends_with("/libwork.so"),
        "{case}: {}",
        of_library.module
    );
    assert!(
        of_program.module.ends_with("/program"),
        "{case}: {}",
        of_program.module
    );
    let parent = of_program.pid;
    let parent_and_child = |file: &CounterFile, counter| {
        let of_parent = file.total_of(parent, counter);
        (of_parent, file.total(counter) - of_parent)
    };
    assert_eq!(
        parent_and_child(of_library, 2),
        (4_000_000, 500_000),
        "{case}"
    );
    assert_eq!(
        parent_and_child(of_program, 1),
        (4_000_000, 500_000),
        "{case}"
    );
    assert_eq!((of_library.failures, of_program.failures), (0, 0), "{case}");
}

#[test]
fn a_program_and_its_library_have_a_file_each() {
    program_with_library("gcc", "-pie", &[]);
    program_with_library("clang", "-pie", &[]);
    program_with_library("musl-gcc", "-pie", &[]);
    // A program at a fixed address cannot use the lanes its library chose before.
    program_with_library("gcc", "-no-pie", &[]);
}

#[test]
fn every_address_space_has_room() {
    for link in ["-pie", "-no-pie"] {
        // Without randomization, the libraries are right below the stack.
        program_with_library("gcc", link, &["setarch", "-R"]);
        // An unlimited stack makes the kernel lay out everything from the bottom up.
        program_with_library("gcc", link, &["prlimit", "--stack=unlimited"]);
        // Valgrind gives out low addresses only, and knows no wrgsbase.
        if is_installed("valgrind") {
            program_with_library("gcc", link, &["valgrind", "-q", "--tool=none"]);
        }
    }
}

/// Plug-ins `first.so` and `second.so`, and a host that is not counted.
fn plugins(shop: &Workshop, host_flags: &[&str]) -> std::process::Command {
    let object = shop.object("gcc", "library.c", &["-fPIC"]);
    let names = ["first.so", "second.so"];
    let plugins = names.map(|name| shop.link("gcc", name, &[&object], &["-shared"]).program);
    let source = common::programs().join("plugin_host.c");
    let mut command = shop.link("gcc", "host", &[source], host_flags).command();
    command.args(plugins);
    command
}

#[test]
fn plug_ins_of_a_program_that_is_not_counted_are() {
    for flags in [&["-pie"][..], &["-no-pie"]] {
        let shop = Workshop::new("plugins");
        succeed(&mut plugins(&shop, flags));
        let files = shop.files();
        assert_eq!(files.len(), 2);
        for file in files {
            assert_eq!((file.total(2), file.failures), (500_000, 0));
        }
    }
}

#[test]
fn plug_ins_may_come_and_go() {
    let shop = Workshop::new("reloads");
    let flags = ["-DTIMES=700", "-DTHREADS=1", "-DROUNDS=10"];
    succeed(&mut plugins(&shop, &flags));
    let files = shop.files();
    assert_eq!(files.len(), 1400);
    for file in files {
        assert_eq!((file.total(2), file.failures), (20, 0));
    }
}

#[test]
fn signals_during_set_up_lose_nothing() {
    let shop = Workshop::new("signals");
    let output = shop.build("gcc", "signals.c", &[]).run();
    let handled: u64 = String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let file = shop.only_file();
    assert_eq!((file.total(1), file.total(2)), (1_000_000, handled));
    assert!(handled >= 1000);
    assert_eq!(file.failures, 0);
}

#[test]
fn what_ran_before_set_up_is_counted() {
    for flags in [&["-pie", "-fPIE"][..], &["-static"], &["-no-pie"]] {
        let shop = Workshop::new("before-main");
        shop.build("gcc", "before_main.c", flags).run();
        let file = shop.only_file();
        let totals = [0, 1, 2].map(|counter| file.total(counter));
        assert_eq!((totals, file.failures), ([100, 10, 1], 0), "{flags:?}");
    }
}

#[test]
fn children_without_end_share_slots() {
    // Large slots, or else the file would not get long enough to matter.
    let shop = Workshop::new("many-forks");
    shop.build("gcc", "many_forks.c", &["-DCOUNTERS=16384"])
        .run();
    let file = shop.only_file();
    assert_eq!((file.total(0), file.total(1)), (3000, 300_000));
    assert_eq!(file.failures, 0);
    assert!(file.slots.len() < 300, "{} slots", file.slots.len());
}

#[test]
fn threads_that_fork_and_children_with_threads_lose_nothing() {
    for flags in [&["-DCOUNTERS=8"][..], &["-DCOUNTERS=100000"], &["-static"]] {
        let shop = Workshop::new("forks-among-threads");
        shop.build("gcc", "forks_among_threads.c", flags).run();
        let file = shop.only_file();
        let totals = [1, 2, 3].map(|counter| file.total(counter));
        assert_eq!((totals, file.failures), ([300_000; 3], 0), "{flags:?}");
    }
}

#[test]
fn a_child_of_vfork_may_be_the_first_to_come() {
    let shop = Workshop::new("vfork-enters");
    let object = shop.object("gcc", "library.c", &["-fPIC"]);
    let names = ["first.so", "second.so"];
    let plugins = names.map(|name| shop.link("gcc", name, &[&object], &["-shared"]).program);
    let source = common::programs().join("vfork_enters.c");
    let host = shop.link("gcc", "host", &[source], &[]);
    succeed(host.command().args(plugins));
    let [first, second] = &shop.files()[..] else {
        panic!("two files")
    };
    assert_eq!((first.total(2), first.failures), (11, 0));
    assert_eq!((second.total(2), second.failures), (1100, 0));
}

#[test]
fn a_million_counters_cost_what_is_used() {
    let shop = Workshop::new("many-counters");
    shop.build("gcc", "many_counters.c", &[]).run();
    let file = shop.only_file();
    assert_eq!((file.counters, file.failures), (1_000_000, 0));
    let counts = &file.slots[0].counts;
    let counted = counts.iter().enumerate().filter(|(_, count)| **count != 0);
    let counted: Vec<(usize, u64)> = counted.map(|(counter, count)| (counter, *count)).collect();
    assert_eq!(
        counted,
        [(0, 2), (511, 2), (512, 2), (777_777, 20), (999_999, 2)]
    );
}

#[test]
fn children_of_clone_count_for_themselves() {
    // With CLONE_VM and CLONE_VFORK the child uses its parent's memory, and its parent waits.
    for (flags, in_parent) in [
        ("-DFLAGS=0", 0),
        ("-DFLAGS=CLONE_VM|CLONE_VFORK", 2_000_000),
    ] {
        let shop = Workshop::new("clones");
        let output = shop.build("gcc", "clones.c", &[flags]).run();
        let child: u32 = String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let file = shop.only_file();
        let counts = |pid: u32| [0, 1, 2].map(|counter| file.total_of(pid, counter));
        assert_eq!(counts(file.pid), [1, 3_000_000, in_parent], "{flags}");
        assert_eq!(counts(child), [0, 0, 2_000_000 - in_parent], "{flags}");
        assert_eq!(file.failures, 0, "{flags}");
    }
}

#[test]
fn what_runs_after_exit_is_counted() {
    let shop = Workshop::new("after-exit");
    shop.build("gcc", "after_exit.c", &[]).run();
    let file = shop.only_file();
    let totals = [0, 1, 2, 3].map(|counter| file.total(counter));
    assert_eq!((totals, file.failures), ([1, 1000, 1000, 1000], 0));
}
