//! `headcount run` from the outside: what it hands on, what it says, what it leaves behind.

use crate::workshop::started::{Started, must_be_gone, send};
use crate::workshop::{HEADCOUNT, Workshop, have, said};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;

/// Both ways to count.
const ENGINES: [&str; 2] = ["detour", "breakpoint"];

/// A Shell sort of a hundred numbers, laid out line by line as the one in Bishop's paper.
const SORT_C: &str = "\
#define MANY 100
#include <stdlib.h>
void shell(int *, int);
int main(void)
{
    int i;
    int list[MANY];
    /* in any order */

    for (i = 0; i < MANY; i++)
        list[i] = random();

    shell(list, MANY);
    return 0;
}

/* sorts */
void shell(int *v, int n)
{
    int i, j, gap, swap;

    for (gap = n / 2; gap > 0; gap /= 2)
        for (i = gap; i < n; i++)
            for (j = i - gap; j >= 0 && v[j] > v[j + gap]; j -= gap) {
                swap = v[j];
                v[j] = v[j + gap];
                v[j + gap] = swap;
            }
}
";

/// Where the paper's lines 10, 20, 21, 22 and 23 are here.
const FILLS: u32 = 11;
const GAPS: u32 = 22;
const STARTS: u32 = 23;
const WALKS: u32 = 24;
const SWAPS: u32 = 25;

/// Says that it has started, and does what its argument says when a line comes in.
const WAITS_C: &str = "\
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile int seen;
static void note(int signal) { seen++; write(1, \"seen\\n\", 5); }
int work(int rounds)
{
    int sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += i;
    return sum;
}
int main(int argc, char **argv)
{
    char line[80];
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, 0);
    if (!strcmp(argv[1], \"catches\"))
        sigaction(SIGTERM, &action, 0);
    work(25);
    puts(\"started\");
    fflush(stdout);
    fgets(line, sizeof line, stdin);
    return 40 + seen;
}
";

impl Workshop {
    /// Addresses and counts of the blocks of a function.
    fn blocks(&self, function: &str) -> Vec<(u64, u64)> {
        let text = self.report(&["--by", "block", "--only", function, "--format", "csv"]);
        let row = |row: &str| {
            let fields: Vec<&str> = row.split(',').collect();
            let address = fields[2].trim_start_matches("0x");
            let address = u64::from_str_radix(address, 16).unwrap();
            (address, fields[4].parse().unwrap())
        };
        text.lines().skip(1).map(row).collect()
    }
}

#[test]
fn the_exit_status_is_the_programs() {
    let shop = Workshop::new();
    for (script, status) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -s TERM $$", 128 + 15),
        ("kill -s KILL $$", 128 + 9),
        ("kill -s USR1 $$", 128 + 10),
    ] {
        let said = shop.counted(&["--", "sh", "-c", script]);
        assert_eq!(said.status, Some(status), "{script}: {said:?}");
    }
}

#[test]
fn our_own_failures_have_statuses_of_their_own() {
    let shop = Workshop::new();
    shop.write("plain", "no program\n");
    let said = shop.counted(&["./plain"]);
    assert_eq!(said.status, Some(126), "{said:?}");
    assert_eq!(
        said.stderr,
        "headcount: ./plain: Permission denied (os error 13)\n"
    );
    let said = shop.counted(&["./nowhere"]);
    assert_eq!(said.status, Some(127), "{said:?}");
    assert_eq!(said.stderr, "headcount: ./nowhere: not found\n");
    for words in [
        &["--unit", "token", "true"][..],
        &["--limit", "0", "true"],
        &[],
    ] {
        assert_eq!(shop.counted(words).status, Some(125), "{words:?}");
    }
    assert!(!shop.path("headcount.db").exists());
    assert!(!shop.path("headcount.counts").exists());
    // The program ran, but its counts have nowhere to go: they are kept.
    let said = shop.counted(&["-o", "no/such/folder.db", "true"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stderr.contains("headcount collect"), "{said:?}");
    assert_eq!(shop.counter_files().len(), 1);
}

#[test]
fn a_megabyte_goes_through_untouched() {
    let shop = Workshop::new();
    let megabyte: Vec<u8> = (0..1_u32 << 20)
        .map(|it| (it.wrapping_mul(it) >> 7) as u8)
        .collect();
    let mut child = shop
        .command(HEADCOUNT)
        .args(["run", "--unit", "function", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = megabyte.clone();
    let writer = thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == megabyte, "{} bytes", output.stdout.len());
}

#[test]
fn standard_error_is_the_programs_with_our_words_after_it() {
    let shop = Workshop::new();
    let script = "echo out; echo err >&2";
    let said = shop.counted(&["sh", "-c", script]);
    assert_eq!(
        (said.stdout.as_str(), said.stderr.as_str()),
        ("out\n", "err\n")
    );
    let said = shop.headcount(&["run", "sh", "-c", script]);
    assert_eq!(said.stdout, "out\n");
    let mut lines = said.stderr.lines();
    assert_eq!(lines.next(), Some("err"));
    assert!(
        lines.all(|line| line.starts_with("headcount: ")),
        "{said:?}"
    );
    assert!(said.stderr.contains("added to headcount.db"), "{said:?}");
}

#[test]
fn the_profile_is_where_it_is_wanted() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    shop.must_count_alone(&["-o", "elsewhere.db", "./sort"]);
    assert!(!shop.path("headcount.db").exists());
    assert!(!shop.path("headcount.counts").exists());
    let functions = shop.functions_of(&["elsewhere.db"]);
    assert_eq!(functions["shell"].calls, 1);
    // A second run is a second run.
    shop.must_count_alone(&["-o", "elsewhere.db", "./sort"]);
    let functions = shop.functions_of(&["elsewhere.db", "--runs", "all"]);
    assert_eq!(functions["shell"].calls, 2);
}

#[test]
fn the_sort_of_the_paper_has_its_counts() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    for engine in ENGINES {
        shop.must_count_alone(&["--engine", engine, "./sort"]);
        has_the_papers_counts(&shop);
    }
}

fn has_the_papers_counts(shop: &Workshop) {
    let lines = shop.counts("sort.c");
    // The same random numbers as in 1983, or not: swaps are what they are, on four lines.
    let swaps = lines[&SWAPS];
    assert_eq!(lines[&FILLS], 100);
    assert!(swaps > 100, "{lines:?}");
    assert_eq!((lines[&(SWAPS + 1)], lines[&(SWAPS + 2)]), (swaps, swaps));
    // The paper shows how often each `for` was begun. In a line's count the largest block counts:
    // the test at the end of each round.
    assert_eq!(lines[&GAPS], 7);
    assert_eq!(lines[&STARTS], 503 + 6);
    assert_eq!(lines[&WALKS], 503 + swaps);
    let mut begun = [GAPS, STARTS, WALKS].map(|line| (first_address(shop, line), line));
    begun.sort_unstable();
    let blocks = shop.blocks("shell");
    let count_of = |address: u64| {
        let after = blocks.partition_point(|(start, _)| *start <= address);
        blocks[after - 1].1
    };
    let counts: Vec<u64> = begun
        .iter()
        .map(|(address, _)| count_of(*address))
        .collect();
    assert_eq!(counts, [1, 6, 503]);
}

/// Where the code of a line begins.
fn first_address(shop: &Workshop, line: u32) -> u64 {
    let text = shop.must(&["objdump", "--dwarf=decodedline", "sort"]);
    let line = line.to_string();
    let rows = text
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    let addresses = rows.filter(|row| row.len() > 2 && row[0] == "sort.c" && row[1] == line);
    let address = |row: Vec<&str>| u64::from_str_radix(row[2].trim_start_matches("0x"), 16);
    addresses.map(|row| address(row).unwrap()).min().unwrap()
}

#[test]
fn fewer_units_have_the_same_counts() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    shop.must_count_alone(&["--unit", "block", "./sort"]);
    let (lines, calls) = (shop.counts("sort.c"), shop.calls("shell"));
    shop.must_count_alone(&["--unit", "line", "./sort"]);
    assert_eq!(shop.counts("sort.c"), lines);
    shop.must_count_alone(&["--unit", "function", "./sort"]);
    assert_eq!(shop.calls("shell"), calls);
    assert_eq!(calls, Some(1));
}

#[test]
fn only_what_is_wanted_is_counted() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    let swaps = {
        shop.must_count_alone(&["./sort"]);
        shop.counts("sort.c")[&SWAPS]
    };
    shop.must_count_alone(&["--only", "she*", "./sort"]);
    assert_eq!(shop.counts("sort.c")[&SWAPS], swaps);
    assert_eq!(shop.counts("sort.c").get(&FILLS), None);
    shop.must_count_alone(&["--skip", "shell", "./sort"]);
    assert_eq!(shop.counts("sort.c").get(&SWAPS), None);
    assert_eq!(shop.counts("sort.c")[&FILLS], 100);
    shop.must_count_alone(&["--only", "sort.c", "./sort"]);
    assert_eq!(shop.counts("sort.c")[&SWAPS], swaps);
    assert_eq!(shop.calls("_start").unwrap_or(0), 0);
    let range = format!("sort.c:{}-{}", SWAPS, SWAPS + 2);
    shop.must_count_alone(&["--only", &range, "./sort"]);
    let lines = shop.counts("sort.c");
    assert_eq!(lines[&SWAPS], swaps);
    assert_eq!(lines.get(&FILLS), None);
    shop.must_count_alone(&["--skip", &range, "./sort"]);
    let lines = shop.counts("sort.c");
    assert_eq!(lines[&FILLS], 100);
    assert_eq!(lines.get(&SWAPS), None);
}

#[test]
fn a_wish_that_nothing_fulfils_is_answered_with_the_reason() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    for choice in [&["--engine", "detour"][..], &["--engine", "breakpoint"]] {
        let count = |words: &[&str]| shop.counted(&[choice, words].concat());
        let said = count(&["--only", "no_such_function", "./sort"]);
        assert_eq!(said.status, Some(125), "{said:?}");
        assert!(said.stderr.contains("no name matches"), "{said:?}");
        // (Libraries may have lines where the program has none.)
        let said = count(&["--unit", "line", "--modules", "*/true", "/usr/bin/true"]);
        assert_eq!(said.status, Some(125), "{said:?}");
        assert!(said.stderr.contains("it has no line table"), "{said:?}");
        // Nothing becomes the last run.
        assert!(!shop.path("headcount.db").exists() && !shop.path("headcount.counts").exists());
        // A program with lines is no reason to speak of libraries that have none.
        let said = count(&["--unit", "line", "./sort"]);
        assert_eq!((said.status, said.stderr.as_str()), (Some(0), ""));
        let said = count(&["--modules", "main", "--skip", "*", "./sort"]);
        assert!(said.stderr.contains("no name matches"), "{said:?}");
        shop.forget();
    }
}

#[test]
fn a_block_that_cannot_be_counted_is_not_shown_as_never_run() {
    let source = "int main(void) { return 0; }\n\
                  __asm__(\".type odd, @function; odd: call *%rsp; ret; .size odd, .-odd\");\n";
    let shop = Workshop::with("odd", source, &[]);
    shop.must_count(&["--engine", "breakpoint", "./odd"]);
    let text = shop.report(&["--by", "block"]);
    assert!(text.contains("it is tied to its place"), "{text}");
    let csv = shop.report(&["--by", "function", "--format", "csv"]);
    let row = csv.lines().find(|row| row.contains(",odd,"));
    // calls,executed,instructions,never
    assert!(row.is_some_and(|row| row.ends_with(",,,2,")), "{csv}");
}

#[test]
fn a_limit_says_at_least() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    shop.must_count_alone(&["--limit", "20", "./sort"]);
    let lines = shop.counts("sort.c");
    assert_eq!(lines[&FILLS], 20);
    assert_eq!(lines[&GAPS], 7);
    let text = shop.report(&["--by", "line", "--only", "sort.c"]);
    assert!(text.contains("≥ 20"), "{text}");
    assert!(text.contains("At least 20: main, "), "{text}");
}

/// Prints whether its code in memory differs from its file: its own, and that of a child.
const LOOKS_C: &str = "\
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char __executable_start[], __etext[], _start[];
static char buffer[1 << 20];
int differs(void)
{
    int file = open(\"/proc/self/exe\", O_RDONLY);
    read(file, buffer, sizeof buffer);
    close(file);
    long from = _start - __executable_start;
    return memcmp(buffer + from, _start, __etext - _start) != 0;
}
int child(void)
{
    return differs();
}
int main(void)
{
    int status;
    if (fork() == 0)
        _exit(child());
    wait(&status);
    printf(\"%d %d\\n\", differs(), WEXITSTATUS(status));
    return 0;
}
";

#[test]
fn a_child_that_is_not_followed_is_as_if_we_were_not_there() {
    let shop = Workshop::with("looks", LOOKS_C, &[]);
    assert_eq!(shop.must(&["looks"]), "0 0\n");
    assert_eq!(shop.must_count_alone(&["./looks"]), "1 1\n");
    assert_eq!(
        (shop.calls("child"), shop.calls("differs")),
        (Some(1), Some(2))
    );
    assert_eq!(shop.must_count_alone(&["--no-follow", "./looks"]), "1 0\n");
    assert_eq!(
        (shop.calls("child"), shop.calls("differs")),
        (Some(0), Some(1))
    );
}

#[test]
fn a_program_that_is_not_followed_starts_with_the_mask_it_was_given() {
    let source = "\
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    sigset_t set;
    sigprocmask(SIG_BLOCK, 0, &set);
    if (argc > 1)
        return sigismember(&set, SIGTRAP);
    for (int i = 0; i < 3; i++) {
        int status;
        sigaddset(&set, SIGTRAP);
        sigprocmask(i == 1 ? SIG_BLOCK : SIG_UNBLOCK, &set, 0);
        if (vfork() == 0)
            _exit(execl(\"/proc/self/exe\", argv[0], \"again\", (char *)0));
        wait(&status);
        printf(\"%d \", WEXITSTATUS(status));
    }
    return 0;
}
";
    let shop = Workshop::with("masks", source, &[]);
    assert_eq!(shop.must(&["masks"]), "0 1 0 ");
    assert_eq!(shop.must_count_alone(&["./masks"]), "0 1 0 ");
    assert_eq!(shop.calls("main"), Some(4));
    assert_eq!(shop.must_count_alone(&["--no-follow", "./masks"]), "0 1 0 ");
    assert_eq!(shop.calls("main"), Some(1));
}

/// Four threads take steps while a timer and a fifth thread send them signals without end.
const STORM_C: &str = "\
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
static volatile int ticks, is_over;
static pthread_t threads[3];
static void tick(int signal)
{
    ticks++;
}
int step(int x)
{
    if (x & 1)
        return x * 3;
    return x / 2;
}
static void *work(void *rounds)
{
    long sum = 0;
    for (long i = 0; i < (long)rounds; i++)
        sum += step(i);
    return (void *)sum;
}
static void *disturb(void *unused)
{
    while (!is_over) {
        for (int i = 0; i < 3; i++)
            pthread_kill(threads[i], SIGUSR1);
        usleep(100);
    }
    return unused;
}
int main(void)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 150}, {0, 150}};
    pthread_t other;
    void *sum;
    long total = 0;
    sigaction(SIGALRM, &action, 0);
    sigaction(SIGUSR1, &action, 0);
    setitimer(ITIMER_REAL, &every, 0);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, (void *)2000);
    pthread_create(&other, 0, disturb, 0);
    total += (long)work((void *)2000);
    is_over = 1;
    pthread_join(other, 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &sum);
        total += (long)sum;
    }
    return ticks == 0 || total != 4l * (3 * 1000 * 1000 + 999 * 1000 / 2);
}
";

const TAKEN_AWAY_C: &str = "\
#include <pthread.h>
#include <signal.h>
static volatile int sent, is_over;
static void handler(int unused) { (void)unused; }
static void *send(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        raise(SIGUSR1);
        sent++;
    }
    is_over = 1;
    return unused;
}
int main(void)
{
    struct sigaction on = {.sa_handler = handler}, off = {.sa_handler = SIG_IGN};
    pthread_t sender;
    sigaction(SIGUSR1, &on, 0);
    pthread_create(&sender, 0, send, 0);
    while (!is_over) {
        sigaction(SIGUSR1, &off, 0);
        sigaction(SIGUSR1, &on, 0);
    }
    pthread_join(sender, 0);
    return sent != 2000;
}
";

#[test]
fn a_handler_may_be_taken_away_in_the_moment_of_its_signal() {
    let shop = Workshop::with("taken", TAKEN_AWAY_C, &["-pthread"]);
    for engine in ENGINES {
        shop.must_count_alone(&["--engine", engine, "./taken"]);
        let lines = shop.counts("taken.c");
        assert_eq!(lines[&8], 2000, "{engine}");
    }
}

#[test]
fn a_storm_of_signals_changes_no_count() {
    let shop = Workshop::with("storm", STORM_C, &["-pthread"]);
    for (round, engine) in ENGINES.into_iter().enumerate() {
        shop.must_count_alone(&["--engine", engine, "./storm"]);
        let lines = shop.counts("storm.c");
        let counts = [12, 13, 14, 15, 16, 21].map(|line| lines[&line]);
        assert_eq!(
            counts,
            [8000, 8000, 4000, 4000, 8000, 8000],
            "round {round}"
        );
        let text = shop.report(&["--by", "instruction", "--only", "step", "--format", "csv"]);
        let counts = text
            .lines()
            .skip(1)
            .map(|row| row.split(',').nth(3).unwrap());
        assert!(
            counts.clone().all(|it| it == "8000" || it == "4000"),
            "{text}"
        );
    }
}

#[test]
fn libraries_are_counted_when_wanted() {
    let shop = Workshop::new();
    shop.build(
        "libf",
        "int f(int x)\n{\n    return x + 1;\n}\n",
        &["-shared", "-fPIC"],
    );
    shop.must(&["mv", "libf", "libf.so"]);
    shop.build(
        "twice",
        "int f(int);int main(void){return f(1)+f(2)!=5;}",
        &["-L.", "-lf", "-Wl,-rpath,$ORIGIN"],
    );
    for (engine, modules) in [("detour", "all"), ("breakpoint", "main")] {
        let count = |words: &[&str]| {
            shop.must_count(&[&["--engine", engine], words, &["./twice"]].concat());
            (shop.calls("f"), shop.calls("main"))
        };
        let default = count(&["--unit", "function"]);
        let wanted = count(&["--unit", "function", "--modules", modules]);
        assert_eq!(default, wanted, "{engine}");
        let alone = count(&["--modules", "main"]);
        assert_eq!(alone, (None, Some(1)), "{engine}");
        let all = count(&["--unit", "function", "--modules", "all"]);
        assert_eq!(all, (Some(2), Some(1)), "{engine}");
        let modules = shop.report(&["--by", "module", "--format", "csv"]);
        assert!(modules.contains("libc.so.6"), "{modules}");
        assert!(modules.contains("libf.so"), "{modules}");
        let library = count(&["--modules", "*libf.so"]);
        assert_eq!(library, (Some(2), None), "{engine}");
        assert_eq!(count(&["--only", "libf.so!f"]).0, Some(2), "{engine}");
    }
}

#[test]
fn a_library_that_comes_and_goes_is_counted_each_time() {
    let shop = Workshop::new();
    shop.build(
        "libf",
        "int f(int x)\n{\n    return x + 1;\n}\n",
        &["-shared", "-fPIC"],
    );
    shop.build(
        "loads",
        "\
#include <dlfcn.h>
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 20; i++) {
        void *library = dlopen(\"./libf\", RTLD_NOW);
        int (*f)(int) = (int (*)(int))dlsym(library, \"f\");
        sum += f(i) + f(i);
        dlclose(library);
    }
    return sum != 420;
}
",
        &["-ldl"],
    );
    shop.must_count(&["--modules", "*libf", "./loads"]);
    assert_eq!(shop.calls("f"), Some(40));
    assert_eq!(shop.counts("libf.c")[&3], 40);
    shop.must_count(&["--modules", "main", "./loads"]);
    assert_eq!((shop.calls("main"), shop.calls("f")), (Some(1), None));
    assert_eq!(shop.counts("loads.c")[&8], 20);
}

#[test]
fn a_killed_program_keeps_its_counts() {
    let shop = Workshop::with("waits", WAITS_C, &[]);
    let started = Started::counting(&shop, &["./waits", "stays"]);
    send("KILL", &started.counted());
    let said = started.rest();
    assert_eq!(said.status, Some(128 + 9), "{said:?}");
    assert_eq!(shop.calls("work"), Some(1));
    assert_eq!(shop.counts("waits.c")[&12], 25);
    let text = shop.report(&[]);
    assert!(text.contains("The program was killed by SIGKILL"), "{text}");
}

#[test]
fn a_crash_is_reported_with_function_and_line() {
    let source =
        "static void crash(int *at)\n{\n    *at = 1;\n}\nint main(void)\n{\n    crash(0);\n}\n";
    let shop = Workshop::with("crashes", source, &[]);
    for engine in ENGINES {
        let said = shop.headcount(&["run", "--engine", engine, "./crashes"]);
        assert_eq!(said.status, Some(128 + 11), "{said:?}");
        let note = "The program was killed by SIGSEGV in crash (";
        assert!(said.stderr.contains(note), "{said:?}");
        assert!(said.stderr.contains("crashes.c:3)."), "{said:?}");
        let text = shop.report(&[]);
        assert!(text.contains(note), "{text}");
        assert_eq!(shop.counts("crashes.c")[&2], 1);
        assert_eq!(shop.counts("crashes.c")[&4], 0);
    }
}

#[test]
fn counts_survive_the_end_of_headcount() {
    let shop = Workshop::with("waits", WAITS_C, &[]);
    let started = Started::counting(&shop, &["./waits", "stays"]);
    let program = started.counted();
    // As long as it counts, its journal is left alone.
    shop.headcount(&["collect"]);
    assert!(!shop.path("headcount.db").exists());
    started.signal("KILL");
    // The program does not go on alone: this waits until it is gone.
    assert_eq!(started.rest().status, None);
    must_be_gone(&program);
    let said = shop.headcount(&["collect"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert_eq!(shop.calls("work"), Some(1));
    assert_eq!(shop.counts("waits.c")[&12], 25);
    let text = shop.report(&[]);
    assert!(
        text.contains("headcount was stopped while it counted"),
        "{text}"
    );
    assert_eq!(shop.counter_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn signals_for_headcount_are_for_the_program() {
    let shop = Workshop::with("waits", WAITS_C, &[]);
    let started = Started::counting(&shop, &["./waits", "dies"]);
    started.signal("TERM");
    assert_eq!(started.rest().status, Some(128 + 15));
    assert_eq!(shop.calls("work"), Some(1));
    // It is the program's to decide.
    for signal in ["INT", "TERM"] {
        let mut started = Started::counting(&shop, &["./waits", "catches"]);
        started.signal(signal);
        assert_eq!(started.line(), "seen");
        started.tell("go on\n");
        assert_eq!(started.rest().status, Some(41), "{signal}");
        assert_eq!(shop.calls("note"), Some(1), "{signal}");
    }
}

#[test]
fn control_c_reaches_the_program_once() {
    if !have("script") {
        return;
    }
    let shop = Workshop::with("waits", WAITS_C, &[]);
    let command = format!("stty -echo; exec {HEADCOUNT} run -q ./waits catches");
    let mut started = Started::new(shop.command("script").args(["-qec", &command, "/dev/null"]));
    // The terminal makes a signal of it, for everybody.
    started.tell("\u{3}");
    assert_eq!(started.line(), "seen");
    started.tell("go on\n");
    assert_eq!(started.rest().status, Some(41));
    assert_eq!(shop.calls("note"), Some(1));
}

#[test]
fn two_runs_at_once_both_get_into_the_profile() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    thread::scope(|scope| {
        let shop = &shop;
        let run = || shop.must_count_alone(&["./sort"]);
        let others: Vec<_> = (0..3).map(|_| scope.spawn(run)).collect();
        others.into_iter().for_each(|it| drop(it.join().unwrap()));
    });
    let functions = shop.functions_of(&["--runs", "all"]);
    assert_eq!(functions["shell"].calls, 3);
}

#[test]
fn where_nothing_can_be_written_the_counts_are_kept_elsewhere() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    // Not even root can make anything there.
    let mut command = shop.command(HEADCOUNT);
    command.current_dir("/proc").args(["run", "-q"]);
    let said = said(command.arg(shop.path("sort")));
    assert_eq!(said.status, Some(0), "{said:?}");
    let (_, collect) = said
        .stderr
        .split_once('`')
        .expect("it says how to get them");
    let (collect, _) = collect.split_once('`').unwrap();
    let (collect, _) = collect.split_once(" -o ").expect("it says where to");
    let words: Vec<&str> = collect.split(' ').skip(1).collect();
    let collected = shop.headcount(&[&words[..], &["-o", "kept.db"]].concat());
    assert_eq!(collected.status, Some(0), "{said:?} {collected:?}");
}

#[test]
fn a_place_that_is_no_folder_is_said_so() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    let mut command = shop.command(HEADCOUNT);
    command
        .env("HEADCOUNT_DIR", "sort.c/counts")
        .args(["run", "-q", "./sort"]);
    let said = said(&mut command);
    assert_eq!(said.status, Some(125), "{said:?}");
    assert!(
        said.stderr.contains("sort.c/counts: cannot be made"),
        "{said:?}"
    );
}

#[test]
fn a_script_is_run_by_its_interpreter() {
    let shop = Workshop::new();
    let script = |name: &str, text: &str| {
        shop.write(name, text);
        fs::set_permissions(shop.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("script", "#!/bin/sh\necho $1\nexit 3\n");
    let said = shop.counted(&["./script", "hello"]);
    assert_eq!((said.status, said.stdout.as_str()), (Some(3), "hello\n"));
    let modules = shop.report(&["--by", "module", "--format", "csv"]);
    assert!(
        modules.contains("/bin/dash") || modules.contains("/bin/bash"),
        "{modules}"
    );
    script("lost", "#!/no/such/interpreter\n");
    let said = shop.counted(&["./lost"]);
    assert_eq!(said.status, Some(127), "{said:?}");
}

#[test]
fn a_broken_program_is_not_run() {
    let shop = Workshop::with("sort", SORT_C, &[]);
    let whole = fs::read(shop.path("sort")).unwrap();
    let mut foreign = whole.clone();
    foreign[18] = 0xb7; // for another machine
    let not_known = "Exec format error (os error 8)";
    let not_here = "is for AArch64, not for x86-64; count it on a build for this machine";
    for (name, bytes, why) in [
        ("short", &whole[..40], not_known),
        ("foreign", &foreign[..], not_here),
    ] {
        shop.write(name, bytes);
        fs::set_permissions(shop.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        let said = shop.counted_alone(&[&format!("./{name}")]);
        assert_eq!(said.status, Some(126), "{said:?}");
        let complaint = format!("headcount: ./{name}: {why}\n");
        assert_eq!(said.stderr, complaint);
    }
    assert!(!shop.path("headcount.counts").exists());
}

#[test]
fn a_program_for_another_machine_is_run_but_not_counted() {
    let shop = Workshop::new();
    shop.write(
        "old.s",
        ".globl _start\n_start: mov $1, %eax\nmov $5, %ebx\nint $0x80\n",
    );
    shop.must(&["as", "--32", "old.s", "-o", "old.o"]);
    shop.must(&["ld", "-m", "elf_i386", "old.o", "-o", "old"]);
    if shop.run(&["old"]).status != Some(5) {
        eprintln!("skipped: no 32-bit programs here");
        return;
    }
    let said = shop.headcount(&["run", "./old"]);
    assert_eq!(said.status, Some(5), "{said:?}");
    assert!(said.stderr.contains("is for 32-bit x86"), "{said:?}");
}

#[test]
fn a_program_that_goes_into_the_background_is_counted_to_its_end() {
    let shop = Workshop::with(
        "daemon",
        "\
#include <unistd.h>
static void serve(int rounds)
{
    for (int i = 0; i < rounds; i++)
        write(1, \"x\", 1);
}
int main(void)
{
    if (fork())
        return 7;
    setsid();
    if (fork())
        _exit(8);
    serve(12);
    return 9;
}
",
        &[],
    );
    let said = shop.counted_alone(&["--wait", "./daemon"]);
    assert_eq!((said.status, said.stdout.len()), (Some(7), 12), "{said:?}");
    assert_eq!(shop.calls("serve"), Some(1));
    assert_eq!(shop.counts("daemon.c")[&5], 12);
}

#[test]
fn eight_threads_through_one_line_lose_nothing_ten_times_of_ten() {
    let source = include_str!("../../../../tests/programs/eight_threads_through_one_line.c");
    let shop = Workshop::with("eight", source, &["-pthread"]);
    let line = source
        .lines()
        .position(|line| line.contains("total++"))
        .unwrap() as u32
        + 1;
    for round in 0..10 {
        let engine = ENGINES[round % 2];
        shop.must_count_alone(&["--engine", engine, "./eight"]);
        assert_eq!(shop.counts("eight.c")[&line], 1200, "round {round}");
    }
}

/// Kills each of its children somewhere between its birth and its end.
const KILLS_C: &str = "\
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 150; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl(\"/bin/true\", \"true\", (char *)0);
            _exit(1);
        }
        usleep(i * 60);
        kill(child, SIGKILL);
        waitpid(child, 0, 0);
    }
    puts(\"all gone\");
    return 3;
}
";

#[test]
fn children_may_be_killed_at_any_moment_of_their_beginning() {
    let shop = Workshop::with("kills", KILLS_C, &[]);
    for modules in ["main", "all"] {
        let said = shop.counted(&["--unit", "function", "--modules", modules, "./kills"]);
        assert_eq!(said.status, Some(3), "{said:?}");
        assert_eq!(said.stdout, "all gone\n", "{said:?}");
    }
}
