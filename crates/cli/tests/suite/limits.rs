//! Limits are for the program: headcount does not live under them if it can help it, and where it
//! cannot, the program runs all the same.

use crate::workshop::{HEADCOUNT, Said, Workshop, said};
use std::fs;

/// Uses little of anything, and says what it has done. With `limits`, it limits its own memory and
/// asks for some of it.
const MODEST_C: &str = "\
#include <stdio.h>
__attribute__((noipa)) int helper(int x) { return x + 1; }
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum = helper(sum);
    printf(\"%d\\n\", sum);
    return 3;
}
";

fn limited(shop: &Workshop, limit: &str, words: &[&str]) -> Said {
    let script = format!("ulimit {limit} && exec \"$@\"");
    let mut command = shop.command("timeout");
    command.args(["-k", "1", "60", "bash", "-c", &script, "bash"]);
    said(command.args(words))
}

/// What is small enough for the program, and would not be enough for us. (The code of headcount
/// itself takes most of the address space here, as it is built for tests.)
const SMALL: [&str; 12] = [
    "-n 4", "-n 5", "-n 6", "-n 8", "-n 16", "-n 24", "-f 8", "-v 28000", "-d 2000", "-s 64",
    "-u 1", "-l 0",
];

#[test]
fn a_limit_that_can_be_raised_is_raised_for_us() {
    let shop = Workshop::with("modest", MODEST_C, &[]);
    for limit in SMALL {
        shop.forget();
        let limit = format!("-S {limit}");
        let alone = limited(&shop, &limit, &["./modest"]);
        let words = [HEADCOUNT, "run", "-q", "--modules", "main", "./modest"];
        let counted = limited(&shop, &limit, &words);
        assert_eq!(counted.status, alone.status, "{limit}: {counted:?}");
        assert_eq!(
            (alone.stdout, alone.status),
            (counted.stdout, Some(3)),
            "{limit}"
        );
        assert_eq!(counted.stderr, "", "{limit}");
        assert_eq!(shop.calls("helper"), Some(100), "{limit}");
    }
}

#[test]
fn under_a_limit_that_nobody_may_raise_the_program_runs_all_the_same() {
    let shop = Workshop::with("modest", MODEST_C, &[]);
    for limit in SMALL {
        for engine in ["detour", "breakpoint"] {
            shop.forget();
            let alone = limited(&shop, limit, &["./modest"]);
            let words = [
                HEADCOUNT,
                "run",
                "-q",
                "--engine",
                engine,
                "--modules",
                "main",
                "./modest",
            ];
            let counted = limited(&shop, limit, &words);
            assert_eq!(counted.status, alone.status, "{limit}: {counted:?}");
            assert_eq!(
                (&alone.stdout, alone.status),
                (&counted.stdout, Some(3)),
                "{limit}"
            );
            // Whoever is told nothing has all the counts.
            if counted.stderr.is_empty() {
                assert_eq!(shop.calls("helper"), Some(100), "{limit}");
            } else {
                let flag = limit.split_once(' ').unwrap().0;
                assert!(
                    counted.stderr.contains("headcount: "),
                    "{limit}: {counted:?}"
                );
                assert!(counted.stderr.contains(flag), "{limit}: {counted:?}");
            }
        }
    }
}

#[test]
fn when_files_run_out_in_the_middle_the_program_goes_on() {
    // Each child needs a descriptor of ours as long as it lives.
    let shop = Workshop::with(
        "many",
        "\
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) int work(int x) { return x * 3; }
int main(void)
{
    int pipes[2], good = 0, status;
    pipe(pipes);
    for (int i = 0; i < 40; i++)
        if (fork() == 0) {
            char byte;
            close(pipes[1]);
            read(pipes[0], &byte, 1);
            return work(i) / 3;
        }
    close(pipes[1]);
    while (wait(&status) > 0)
        good += WIFEXITED(status);
    printf(\"%d of 40, %d\\n\", good, work(7));
    return 3;
}
",
        &[],
    );
    for engine in ["detour", "breakpoint"] {
        let words = [
            HEADCOUNT,
            "run",
            "-q",
            "--engine",
            engine,
            "--modules",
            "main",
            "./many",
        ];
        let counted = limited(&shop, "-n 40", &words);
        assert_eq!(counted.status, Some(3), "{engine}: {counted:?}");
        assert_eq!(counted.stdout, "40 of 40, 21\n", "{engine}");
        let complaint = "headcount: counting ended before the program did: ";
        assert!(
            counted.stderr.starts_with(complaint),
            "{engine}: {counted:?}"
        );
        let report = shop.report(&[]);
        assert!(
            report.contains("Counting ended before the program did"),
            "{report}"
        );
    }
}

#[test]
fn a_program_that_takes_the_register_copies_count_by_goes_on_without_us() {
    let shop = Workshop::with(
        "register",
        "\
#include <asm/prctl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static long words[4] = {11, 22, 33, 44};
__attribute__((noipa)) int early(int x) { return x + 1; }
__attribute__((noipa)) int late(int x) { return x + 2; }
int main(void)
{
    int sum = early(1);
    syscall(SYS_arch_prctl, ARCH_SET_GS, words);
    long found = *(__seg_gs long *)16;
    printf(\"%d %ld\\n\", late(sum), found);
    return 3;
}
",
        &[],
    );
    let said = shop.counted(&["--modules", "main", "./register"]);
    assert_eq!(
        (said.status, said.stdout.as_str()),
        (Some(3), "4 33\n"),
        "{said:?}"
    );
}

#[test]
fn storing_needs_no_more_than_the_program_may_have() {
    let shop = Workshop::with("modest", MODEST_C, &[]);
    // The profile is larger than the program's files may be.
    let words = [HEADCOUNT, "run", "-q", "./modest"];
    let counted = limited(&shop, "-S -f 1", &words);
    assert_eq!((counted.status, counted.stderr.as_str()), (Some(3), ""));
    assert!(fs::metadata(shop.path("headcount.db")).unwrap().len() > 512);
}

/// Limits its own address space, and tells how much of it it gets.
const OWN_LIMIT_C: &str = "\
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static void *nothing(void *unused) { return unused; }
static void tell(const char *when)
{
    struct rlimit limit;
    int megabytes = 0, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    getrlimit(RLIMIT_AS, &limit);
    if (!fork()) {
        while (mmap(0, 1 << 20, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED)
            megabytes++;
        printf(\"%s: %lu %lu, %d\\n\", when, limit.rlim_cur, limit.rlim_max, megabytes);
        fflush(stdout);
        _exit(0);
    }
    wait(0);
}
static void set(unsigned long soft, unsigned long hard)
{
    struct rlimit limit = {soft << 20, hard == RLIM_INFINITY ? hard : hard << 20};
    int result = setrlimit(RLIMIT_AS, &limit);
    printf(\"%d %d\\n\", result, result ? errno : 0);
    fflush(stdout);
}
int main(int argc, char **argv)
{
    pthread_attr_t small;
    pthread_t threads[8];
    int failed = 0;
    if (argc > 1) {
        tell(\"a new program\");
        return 3;
    }
    set(200, RLIM_INFINITY);
    tell(\"its own\");
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 18);
    for (int i = 0; i < 8; i++)
        failed += pthread_create(&threads[i], &small, nothing, 0) != 0;
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], 0);
    printf(\"%d threads\\n\", 8 - failed);
    tell(\"with threads\");
    set(300, 300);
    tell(\"for good\");
    set(301, 300);
    set(300, 299);
    set(0, 300);
    set(300, 300);
    execl(argv[0], argv[0], \"again\", (char *)0);
    return 1;
}
";

#[test]
fn what_headcount_maps_does_not_count_against_a_limit_of_the_programs_own() {
    let shop = Workshop::with("own", OWN_LIMIT_C, &["-pthread"]);
    let alone = said(&mut shop.command("./own"));
    assert_eq!(alone.status, Some(3), "{alone:?}");
    for engine in ["detour", "breakpoint"] {
        let counted = shop.headcount(&["run", "-q", "--engine", engine, "./own"]);
        assert_eq!(counted.stdout, alone.stdout, "{engine}");
        assert_eq!(counted.status, Some(3), "{counted:?}");
    }
    assert_eq!(shop.calls("set"), Some(6));
}
