//! From counter files, running programs and core dumps into the profile.

use crate::workshop::{ANSWER, HEADCOUNT, Said, Workshop, have, is_root, said};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Eight threads call `leaf` as often as the first argument says. It says `started` when each has
/// done so once. With another argument, `main` aborts when a line comes in.
const THREADS_C: &str = "\
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
static volatile int sink;
static atomic_int begun;
static long rounds;
__attribute__((noinline)) void leaf(int i) { sink = i; }
static void *work(void *p)
{
    for (long i = 0; i < rounds; i++) {
        leaf((int)i);
        if (i == 0)
            begun++;
    }
    return p;
}
int main(int argc, char **argv)
{
    pthread_t threads[8];
    rounds = atol(argv[1]);
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, work, 0);
    while (begun < 8)
        sched_yield();
    puts(\"started\");
    fflush(stdout);
    if (argc > 2) {
        getchar();
        abort();
    }
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], 0);
    return 0;
}
";

/// More than any test waits for.
const FOR_EVER: &str = "1000000000000";

fn threads() -> Workshop {
    let shop = Workshop::new();
    shop.write("threads.c", THREADS_C);
    shop.cc(&["gcc", "-O1", "-g", "-pthread", "threads.c", "-o", "threads"]);
    shop
}

/// Starts a command that says `started`, and waits until it does. Gone when dropped.
struct Started(Child);

impl Started {
    fn new(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How often `leaf` was called, in the profile `from`.
fn leaves(shop: &Workshop, from: &[&str]) -> u64 {
    shop.functions_of(from)["leaf"].calls
}

/// Takes snapshots until a thread has called `leaf`; answers with the calls of the last.
fn snapshot(shop: &Workshop, pid: &str) -> u64 {
    for _ in 0..600 {
        let _ = fs::remove_file(shop.path("now.db"));
        let said = shop.headcount(&["collect", "--running", pid, "-o", "now.db"]);
        assert_eq!(said.status, Some(0), "{said:?}");
        assert_eq!(said.stderr, "headcount: collected 1 run into now.db\n");
        match leaves(shop, &["now.db"]) {
            0 => thread::sleep(Duration::from_millis(20)),
            calls => return calls,
        }
    }
    panic!("nothing was counted");
}

#[test]
fn eight_threads_lose_nothing_five_times_of_five() {
    let shop = threads();
    for round in 0..5 {
        shop.must(&["threads", "10000000"]);
        let functions = shop.functions();
        assert_eq!(functions["leaf"].calls, 80_000_000, "round {round}");
        assert_eq!(functions["work"].calls, 8, "round {round}");
    }
    assert_eq!(leaves(&shop, &["--runs", "all"]), 400_000_000);
    assert_eq!(leaves(&shop, &["--runs", "2,4"]), 160_000_000);
}

#[test]
fn counts_survive_a_kill() {
    let shop = threads();
    let program = Started::new(shop.command(shop.path("threads")).arg(FOR_EVER));
    let before = snapshot(&shop, &program.pid());
    let later = snapshot(&shop, &program.pid());
    assert!(before <= later);
    // As long as it runs, its file is left alone.
    let said = shop.headcount(&["collect"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stderr.contains("still running"), "{said:?}");
    assert!(!shop.path("headcount.db").exists());
    let file = shop.only_counter_file();
    program.kill();
    let functions = shop.functions();
    assert!(functions["leaf"].calls >= later);
    assert_eq!((functions["main"].calls, functions["work"].calls), (1, 8));
    // Two instructions: whoever called it, ran both, or was killed between them.
    let leaf = functions["leaf"];
    assert!(
        leaf.executed.abs_diff(leaf.calls * leaf.instructions) <= 16,
        "{leaf:?}"
    );
    assert!(!file.exists());
}

#[test]
fn a_program_that_can_make_no_file_counts_in_memory() {
    let shop = threads();
    let command = || {
        let mut command = shop.command(shop.path("threads"));
        command.env("HEADCOUNT_DIR", "/proc/none").arg(FOR_EVER);
        command
    };
    let program = Started::new(&mut command());
    let before = snapshot(&shop, &program.pid());
    assert!(shop.counter_files().is_empty());
    if have("gcore") {
        let said = shop.run(&["gcore", "-o", "dump", &program.pid()]);
        let core = format!("dump.{}", program.pid());
        // Not everybody may look into other processes.
        match shop.path(&core).exists() {
            true => {
                let calls = from_core(&shop, &core);
                assert!(calls >= before, "{calls} {before}");
                // A dump that is read again adds nothing.
                assert_eq!(from_core(&shop, &core), calls);
                let runs = shop.must(&[HEADCOUNT, "runs", "core.db", "--format", "csv"]);
                assert_eq!(runs.lines().count(), 2, "{runs}");
            }
            false => eprintln!("skipped: gcore does not work here: {said:?}"),
        }
    }
    program.kill();
    // Nothing is left of it, and nothing is in the way.
    assert_eq!(shop.headcount(&["collect"]).status, Some(2));
}

fn from_core(shop: &Workshop, core: &str) -> u64 {
    let said = shop.headcount(&["collect", "--core", core, "-o", "core.db"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    leaves(shop, &["core.db"])
}

#[test]
fn a_core_dump_holds_the_counts_of_a_program_without_a_file() {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with('|') || pattern.contains('/') || pattern.trim().is_empty() {
        eprintln!("skipped: core dumps go elsewhere here: {pattern}");
        return;
    }
    let shop = threads();
    let mut shell = shop.command("sh");
    shell.args(["-c", "ulimit -c unlimited && exec ./threads 1000 abort"]);
    let mut program = Started::new(
        shell
            .env("HEADCOUNT_DIR", "/proc/none")
            .stderr(Stdio::piped()),
    );
    drop(program.0.stdin.take());
    let status = program.0.wait().unwrap();
    assert!(!status.success());
    let core = fs::read_dir(shop.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.starts_with("core"));
    let Some(core) = core else {
        eprintln!("skipped: no core dump was made ({status})");
        return;
    };
    // Some threads may not be done, or not even begun.
    let calls = from_core(&shop, &core);
    assert!(calls <= 8000, "{calls}");
    let functions = shop.functions_of(&["core.db"]);
    assert_eq!(functions["main"].calls, 1);
    // The program may have moved since.
    fs::rename(shop.path("threads"), shop.path("moved")).unwrap();
    let said = shop.headcount(&["collect", "--core", &core, "-o", "moved.db"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(
        said.stderr
            .contains("is gone; it explains its counts, so name a copy"),
        "{said:?}"
    );
    let words = [
        "collect",
        "--core",
        &core,
        "--program",
        "moved",
        "-o",
        "moved.db",
    ];
    assert_eq!(shop.headcount(&words).status, Some(0));
    assert_eq!(leaves(&shop, &["moved.db"]), calls);
}

#[test]
fn a_file_that_was_removed_is_found_in_memory() {
    let shop = threads();
    let program = Started::new(shop.command(shop.path("threads")).arg(FOR_EVER));
    let before = snapshot(&shop, &program.pid());
    fs::remove_dir_all(shop.path("headcount.counts")).unwrap();
    assert!(snapshot(&shop, &program.pid()) >= before);
}

#[test]
fn only_counted_programs_can_be_looked_at() {
    let shop = Workshop::new();
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let said = shop.headcount(&["collect", "--running", &sleeper.id().to_string()]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(said.status, Some(2));
    assert!(
        said.stderr
            .contains("counts nothing; is it built with `headcount cc`?"),
        "{said:?}"
    );
    let said = shop.headcount(&["collect", "--running", "4194999"]);
    assert_eq!(said.status, Some(2));
    assert!(
        said.stderr.contains("process 4194999: cannot be looked at"),
        "{said:?}"
    );
    shop.write("core", "no core");
    let said = shop.headcount(&["collect", "--core", "core"]);
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("core: is no core dump"), "{said:?}");
    let said = shop.headcount(&["collect", "--core", HEADCOUNT]);
    assert_eq!(said.status, Some(2), "{said:?}");
}

/// A counted program that prints [`ANSWER`].
fn program() -> Workshop {
    let shop = Workshop::with_sources();
    shop.cc(&["gcc", "-O1", "-g", "main.c", "helper.c", "-o", "prog"]);
    shop
}

fn helpers(shop: &Workshop, from: &[&str]) -> u64 {
    shop.functions_of(from)["helper"].calls
}

#[test]
fn runs_add_up() {
    let shop = program();
    for _ in 0..3 {
        assert_eq!(shop.must(&["prog"]), ANSWER);
    }
    assert_eq!(shop.counter_files().len(), 3);
    assert_eq!(helpers(&shop, &["--runs", "3"]), 100);
    // What ran between two readings is what was run last.
    assert_eq!(helpers(&shop, &[]), 300);
    assert_eq!(shop.must(&["prog"]), ANSWER);
    assert_eq!(helpers(&shop, &[]), 100);
    assert_eq!(helpers(&shop, &["--runs", "all"]), 400);
    assert_eq!(helpers(&shop, &["--runs", "1,3"]), 200);
    assert!(shop.counter_files().is_empty());
    assert!(!shop.path("headcount.counts").exists());
}

#[test]
fn counter_files_may_be_elsewhere() {
    let shop = program();
    fs::create_dir(shop.path("away")).unwrap();
    let run = |folder: &Path| {
        let said = said(shop.command(shop.path("prog")).env("HEADCOUNT_DIR", folder));
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), (ANSWER, ""));
    };
    run(&shop.path("away"));
    run(Path::new("made/on/demand"));
    run(Path::new("made"));
    assert!(shop.counter_files().is_empty());
    let said = shop.headcount(&["collect", "away", "made", "-o", "both.db", "--keep"]);
    assert_eq!(said.stderr, "headcount: collected 2 runs into both.db\n");
    assert_eq!(helpers(&shop, &["both.db", "--runs", "all"]), 200);
    // Kept, so they are there; but a run is stored once.
    let said = shop.headcount(&["collect", "away", "-o", "both.db"]);
    assert_eq!((said.stderr.as_str(), said.status), ("", Some(0)));
    assert_eq!(helpers(&shop, &["both.db", "--runs", "all"]), 200);
    assert_eq!(fs::read_dir(shop.path("away")).unwrap().count(), 0);
    // A reading verb looks there as well.
    let said = said_with_folder(&shop, "made");
    assert!(
        said.stderr.contains("collected 1 run into headcount.db"),
        "{said:?}"
    );
}

fn said_with_folder(shop: &Workshop, folder: &str) -> Said {
    said(
        shop.command(HEADCOUNT)
            .arg("report")
            .env("HEADCOUNT_DIR", folder),
    )
}

/// A counted program with a counted library.
fn program_with_library() -> Workshop {
    let shop = Workshop::with_sources();
    build_with_library(&shop, "-O1");
    shop
}

fn build_with_library(shop: &Workshop, level: &str) {
    let library = ["-shared", "-fPIC", "helper.c", "-o", "libhelper.so"];
    shop.cc(&[&["gcc", level, "-g"], &library[..]].concat());
    let program = ["main.c", "-L.", "-lhelper", "-Wl,-rpath,$ORIGIN", "-o"];
    shop.cc(&[&["gcc", level, "-g"], &program[..], &["prog"]].concat());
}

#[test]
fn counts_outlive_the_build_that_made_them() {
    let shop = program_with_library();
    shop.must(&["prog"]);
    build_with_library(&shop, "-O0");
    shop.must(&["prog"]);
    build_with_library(&shop, "-O2");
    fs::remove_file(shop.path("prog")).unwrap();
    let said = shop.headcount(&["collect"]);
    let collected = "headcount: collected 2 runs into headcount.db\n";
    assert_eq!((said.stderr.as_str(), said.status), (collected, Some(0)));
    for run in ["1", "2"] {
        let functions = shop.functions_of(&["--runs", run]);
        assert_eq!(functions["helper"].calls, 100, "{run}");
        assert_eq!(functions["main"].calls, 1, "{run}");
    }
    // They are the counts of what was there under that name.
    let modules = shop.must(&[HEADCOUNT, "report", "--by", "module", "--format", "csv"]);
    for name in ["prog", "libhelper.so"] {
        let path = shop.path(name).canonicalize();
        let path = path.unwrap_or_else(|_| shop.path(".").canonicalize().unwrap().join(name));
        assert!(modules.contains(path.to_str().unwrap()), "{modules}");
    }
    assert!(!shop.path("headcount.counts").exists());
}

#[test]
fn a_killed_program_that_is_gone_has_its_counts() {
    let shop = threads();
    let program = Started::new(shop.command(shop.path("threads")).arg(FOR_EVER));
    let before = snapshot(&shop, &program.pid());
    fs::remove_file(shop.path("threads")).unwrap();
    // While it runs, too.
    let later = snapshot(&shop, &program.pid());
    assert!(before <= later);
    program.kill();
    assert!(leaves(&shop, &[]) >= later);
}

#[test]
fn a_program_whose_threads_were_stopped_is_named() {
    let shop = threads();
    let program = Started::new(shop.command(shop.path("threads")).arg(FOR_EVER));
    snapshot(&shop, &program.pid());
    program.kill();
    let report = shop.must(&[HEADCOUNT, "report"]);
    let program = shop.path("threads");
    let told = format!("{}: 9 threads did not end by exit: ", program.display());
    assert!(report.contains(&told), "{report}");
}

#[test]
fn a_build_is_kept_once_for_its_owner_alone_until_its_runs_are_collected() {
    let shop = program();
    for _ in 0..3 {
        shop.must(&["prog"]);
    }
    let kept = shop.kept_modules();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let mode = fs::metadata(&kept[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let bytes = |path: &Path| fs::read(path).unwrap();
    assert!(bytes(&kept[0]) == bytes(&shop.path("prog")));
    assert_eq!(shop.headcount(&["collect", "--keep"]).status, Some(0));
    assert_eq!(shop.kept_modules(), kept);
    assert_eq!(shop.headcount(&["collect"]).status, Some(0));
    assert!(!shop.path("headcount.counts").exists());
}

#[test]
fn a_copy_stays_while_a_program_runs_that_needs_it() {
    let shop = threads();
    shop.must(&["threads", "10"]);
    let program = Started::new(shop.command(shop.path("threads")).arg(FOR_EVER));
    // What a killed process left goes; what is needed stays.
    shop.write("headcount.counts/dead.1.2.partial", "half of a program");
    let said = shop.headcount(&["collect"]);
    assert!(said.stderr.contains("collected 1 run into"), "{said:?}");
    assert_eq!(shop.counter_files().len(), 1);
    assert_eq!(shop.kept_modules().len(), 1);
    fs::remove_file(shop.path("threads")).unwrap();
    program.kill();
    assert_eq!(shop.functions()["work"].calls, 8);
    assert!(!shop.path("headcount.counts").exists());
}

/// As if the copies could not be made.
fn lose_copies(shop: &Workshop) {
    for copy in shop.kept_modules() {
        fs::remove_file(copy).unwrap();
    }
}

#[test]
fn counts_that_nothing_explains_are_told_of_once() {
    let shop = program();
    for _ in 0..3 {
        shop.must(&["prog"]);
    }
    lose_copies(&shop);
    fs::rename(shop.path("prog"), shop.path("old")).unwrap();
    shop.cc(&["gcc", "-O0", "-g", "main.c", "helper.c", "-o", "prog"]);
    // New counts are shown all the same.
    shop.must(&["prog"]);
    let said = shop.headcount(&["report", "--format", "csv"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let told = "/prog: was removed or rebuilt, with no copy kept, so 3 counter files of it cannot be \
                read: moved to headcount.counts/unread, from where `headcount collect \
                headcount.counts/unread --program FILE` collects with the file that ran\n";
    assert!(said.stderr.contains(told), "{said:?}");
    assert_eq!(said.stderr.lines().count(), 2, "{said:?}");
    let said = shop.headcount(&["report", "--format", "csv"]);
    assert_eq!((said.stderr.as_str(), said.status), ("", Some(0)));
    // A copy of the wrong program explains nothing.
    let aside = "headcount.counts/unread";
    let said = shop.headcount(&["collect", aside, "--program", "prog"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    let said = shop.headcount(&["collect", aside, "--program", "old"]);
    let collected = "headcount: collected 3 runs into headcount.db\n";
    assert_eq!((said.stderr.as_str(), said.status), (collected, Some(0)));
    assert_eq!(helpers(&shop, &["--runs", "2-4"]), 300);
}

#[test]
fn a_program_that_is_gone_can_be_named() {
    let shop = program();
    shop.must(&["prog"]);
    lose_copies(&shop);
    fs::rename(shop.path("prog"), shop.path("elsewhere")).unwrap();
    let said = shop.headcount(&["collect", "--keep"]);
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("/prog: is gone"), "{said:?}");
    let named = ["collect", "--program", "elsewhere"];
    assert_eq!(shop.headcount(&named).status, Some(0));
    assert_eq!(helpers(&shop, &[]), 100);
}

#[test]
fn a_copy_that_another_user_made_is_not_read() {
    if !is_root() {
        return;
    }
    let shop = program();
    shop.must(&["prog"]);
    std::os::unix::fs::chown(&shop.kept_modules()[0], Some(65534), None).unwrap();
    fs::remove_file(shop.path("prog")).unwrap();
    let said = shop.headcount(&["collect", "--keep"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(said.stderr.contains("/prog: is gone"), "{said:?}");
}

#[test]
fn a_named_program_does_not_stand_for_its_libraries() {
    let shop = program_with_library();
    shop.must(&["prog"]);
    fs::rename(shop.path("prog"), shop.path("moved")).unwrap();
    let said = shop.headcount(&["collect", "--program", "moved"]);
    assert_eq!(
        (said.stderr.as_str(), said.status),
        ("headcount: collected 1 run into headcount.db\n", Some(0))
    );
    assert_eq!(helpers(&shop, &[]), 100);
}

#[test]
fn two_collectors_store_every_run_once() {
    let shop = program_with_library();
    for round in 1..=3 {
        for _ in 0..20 {
            shop.must(&["prog"]);
        }
        let collect = || {
            shop.command(HEADCOUNT)
                .arg("collect")
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let collectors: Vec<Child> = (0..4).map(|_| collect()).collect();
        let mut stored = 0;
        for collector in collectors {
            let said = Said::from(collector.wait_with_output().unwrap());
            // One that comes too late finds nothing; that is all that may go wrong.
            assert!(
                said.status == Some(0) || said.stderr.contains("no counter files"),
                "{said:?}"
            );
            stored += usize::from(said.stderr.contains("collected 20 runs"));
        }
        assert_eq!(stored, 1);
        assert_eq!(helpers(&shop, &["--runs", "all"]), 2000 * round);
        let runs = shop.must(&[HEADCOUNT, "runs", "--format", "csv"]);
        assert_eq!(runs.lines().count() as u64, 1 + 20 * round);
    }
}
