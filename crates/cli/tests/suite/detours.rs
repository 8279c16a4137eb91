//! Programs that make it hard for routines to run in copies, counted by `headcount run`. What they
//! are is in `detours/`.

use crate::workshop::started::{Started, must_be_gone, send};
use crate::workshop::{HEADCOUNT, Workshop, have};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The text of a program.
macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("detours/", $name))
    };
}

impl Workshop {
    /// The counts of lines by the remark at their end, of the last run. Lines with the same remark
    /// have the same count.
    fn remarks(&self, file: &str, source: &str) -> BTreeMap<String, u64> {
        let lines = self.counts(file);
        let mut found = BTreeMap::new();
        for (number, line) in (1_u32..).zip(source.lines()) {
            let remark = line.rsplit_once("; // ").map(|(_, remark)| remark);
            let remark = remark.or(line.rsplit_once("// ").map(|(_, remark)| remark));
            if let (Some(remark), Some(count)) = (remark, lines.get(&number)) {
                let known = *found.entry(remark.to_owned()).or_insert(*count);
                assert_eq!(known, *count, "{file}:{number}: {remark}");
            }
        }
        found
    }

    /// Counts a program without its libraries; it must end well and in silence.
    fn count_it(&self, words: &[&str]) {
        assert_eq!(self.must_count_alone(words), "", "{words:?}");
    }
}

#[test]
fn a_number_that_only_looks_like_an_address_changes_no_instruction() {
    let shop = Workshop::with("numbers", text!("numbers.c"), &["-no-pie"]);
    assert_eq!(shop.must_count(&["./numbers"]), "1 0\n1\n85 2\n");
    assert_eq!(shop.calls("chosen"), Some(4));
    let blocks = shop.report(&["--by", "block", "--only", "chosen", "--format", "csv"]);
    let counts = blocks.lines().skip(1).map(|line| line.split(',').nth(4));
    let counts: Vec<_> = counts.flatten().collect();
    assert_eq!(counts, ["4", "3", "1", "1", "1", "1"], "{blocks}");
}

#[test]
fn threads_through_one_function_lose_nothing() {
    let source = text!("many_threads.c");
    let shop = Workshop::with("many", source, &["-pthread"]);
    for (threads, rounds) in [(2, 300_000), (64, 3_000)] {
        for round in 0..10 {
            shop.count_it(&["./many", &threads.to_string(), &rounds.to_string()]);
            let all = threads * rounds;
            let counts = shop.remarks("many.c", source);
            let label = format!("{threads} threads, round {round}");
            assert_eq!(shop.calls("hot"), Some(all), "{label}");
            assert_eq!(counts["thirds"], all / 3, "{label}");
            assert_eq!(counts["others"], all - all / 3, "{label}");
        }
    }
}

#[test]
fn ten_thousand_short_threads_are_counted() {
    let shop = Workshop::with("short", text!("short_threads.c"), &["-pthread"]);
    shop.count_it(&["./short", "library", "10000"]);
    assert_eq!(shop.calls("visit"), Some(10_000));
    assert_eq!(shop.calls("once"), Some(10_000));
}

#[test]
fn threads_that_no_library_made_are_counted() {
    let shop = Workshop::with("short", text!("short_threads.c"), &["-pthread"]);
    shop.count_it(&["./short", "raw", "500"]);
    assert_eq!(shop.calls("visit"), Some(500));
    assert_eq!(shop.calls("raw_clone"), Some(500));
}

#[test]
fn two_thousand_short_processes_are_counted() {
    let shop = Workshop::with("starts", text!("starts.c"), &[]);
    shop.build("tiny", text!("tiny.c"), &["-static", "-nostdlib", "-O1"]);
    shop.count_it(&["./starts", "2000"]);
    assert_eq!(shop.calls("start"), Some(2_000));
    assert_eq!(shop.calls("step"), Some(5 * 2_000));
}

#[test]
fn a_shell_script_and_what_it_starts_are_counted() {
    let shop = Workshop::new();
    shop.build("tiny", text!("tiny.c"), &["-static", "-nostdlib", "-O1"]);
    shop.write(
        "script",
        "i=0; while [ $i -lt 100 ]; do ./tiny; i=$((i+1)); done; exit 0",
    );
    shop.count_it(&["sh", "script"]);
    assert_eq!(shop.calls("step"), Some(500));
}

#[test]
fn children_and_parents_are_counted_however_they_are_made() {
    let source = text!("forks.c");
    let shop = Workshop::with("forks", source, &[]);
    for (way, children, rounds) in [
        ("fork", 100, 100 * 10),
        ("vfork", 200, 100 * (7 + 3)),
        ("spawn", 100, 100 * 3),
    ] {
        shop.count_it(&["./forks", way, "100"]);
        let counts = shop.remarks("forks.c", source);
        assert_eq!((counts["parent"], counts["child"]), (2000, rounds), "{way}");
        assert_eq!(shop.calls("in_child"), Some(children), "{way}");
        shop.count_it(&["--no-follow", "./forks", way, "100"]);
        let counts = shop.remarks("forks.c", source);
        assert_eq!((counts["parent"], counts["child"]), (2000, 0), "{way}");
        assert_eq!(shop.calls("main"), Some(1), "{way}");
    }
}

/// Stops something at a moment that is up to chance.
fn after_a_while(round: u64) {
    let chance = (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    sleep(Duration::from_micros(chance % 20_000));
}

/// Were the calls counted that the program made, as far as it had come?
fn is_consistent(shop: &Workshop, source: &str, round: u64) {
    let bytes = fs::read(shop.path("how_far")).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (begun, done) = (word(0), word(8));
    let calls = shop.calls("work").unwrap();
    let tens = shop.remarks("progress.c", source)["ten"];
    let label = format!("round {round}: {calls} of {done} to {begun}, {tens}");
    assert!((done..=begun).contains(&calls), "{label}");
    assert!((done * 10..=begun * 10).contains(&tens), "{label}");
}

#[test]
fn a_program_that_is_killed_at_any_moment_has_its_counts() {
    let source = text!("progress.c");
    let shop = Workshop::with("progress", source, &[]);
    for round in 0..40 {
        let started = Started::counting(&shop, &["./progress"]);
        after_a_while(round);
        send("KILL", &started.counted());
        assert_eq!(started.rest().status, Some(128 + 9));
        is_consistent(&shop, source, round);
    }
}

#[test]
fn when_headcount_is_killed_at_any_moment_its_counts_are_there() {
    let source = text!("progress.c");
    let shop = Workshop::with("progress", source, &[]);
    for round in 0..40 {
        let started = Started::counting(&shop, &["./progress"]);
        let program = started.counted();
        after_a_while(round);
        started.signal("KILL");
        // This waits until nobody has its standard output any more.
        assert_eq!(started.rest().status, None);
        must_be_gone(&program);
        shop.must(&[HEADCOUNT, "collect"]);
        is_consistent(&shop, source, round);
    }
}

#[test]
fn a_program_that_profiles_itself_sees_itself() {
    let source = text!("profiled.c");
    let shop = Workshop::with("profiled", source, &["-O1", "-rdynamic"]);
    shop.count_it(&["./profiled"]);
    assert_eq!(shop.calls("hot"), Some(70_000_000));
    let counts = shop.remarks("profiled.c", source);
    assert_eq!(counts["sevenths"], 10_000_000);
}

#[test]
fn handlers_of_faults_see_and_repair_the_programs_own_code() {
    let source = text!("faults.c");
    let shop = Workshop::with("faults", source, &["-O1"]);
    shop.count_it(&["./faults"]);
    let counts = shop.remarks("faults.c", source);
    assert_eq!(counts["goes on"], 100);
    assert_eq!(shop.calls("repair"), Some(300));
}

#[test]
fn flags_are_kept_across_calls() {
    let shop = Workshop::with("flags", text!("flags.c"), &["-O1"]);
    assert_eq!(shop.must(&["flags"]), "1000 249500\n");
    assert_eq!(shop.must_count_alone(&["./flags"]), "1000 249500\n");
    assert_eq!(shop.calls("compare"), Some(1000));
    assert_eq!(shop.calls("odd"), Some(1001));
}

#[test]
fn flags_are_stored_as_they_are_where_a_signal_comes() {
    let shop = Workshop::with("pushes", text!("pushes_flags.c"), &["-O1"]);
    shop.must(&["pushes"]);
    shop.count_it(&["./pushes"]);
    assert_eq!(shop.calls("tick"), Some(10));
    let text = shop.report(&["--by", "instruction", "--only", "pushes", "--format", "csv"]);
    let rows = text.lines().skip(1).map(|row| row.split(',').nth(3));
    let counts: Vec<_> = rows.flatten().collect();
    // The first one faults.
    assert_eq!(counts, ["0", "10", "10", "10"], "{text}");
}

#[test]
fn a_signal_may_come_between_the_two_jumps_into_a_copy() {
    let shop = Workshop::with("steps", text!("steps_once.c"), &["-O1"]);
    shop.must(&["steps"]);
    shop.count_it(&["./steps"]);
    assert_eq!(shop.calls("swaps"), Some(11));
    assert_eq!(shop.calls("nothing"), Some(11));
    assert_eq!(shop.calls("stepped"), Some(10));
}

#[test]
fn goroutines_are_taken_off_their_loops_and_counted() {
    if !have("go") {
        return;
    }
    let source = text!("spins.go");
    let shop = Workshop::new();
    shop.write("spins.go", source);
    let cache = format!("GOCACHE={}", shop.path("cache").display());
    let build = ["go", "build", "-o", "spins", "spins.go"];
    shop.must(&[&["env", &cache, "GO111MODULE=off"], &build[..]].concat());
    let native = shop.must(&["spins"]);
    assert_eq!(shop.must_count(&["./spins"]), native);
    assert_eq!(shop.calls("main.spin"), Some(40));
    let counts = shop.remarks("spins.go", source);
    assert_eq!(counts["spins"], 40 * 4_000_000);
}

#[test]
fn go_programs_without_symbols_are_counted_like_those_with() {
    if !have("go") {
        return;
    }
    let shop = Workshop::new();
    shop.write("works.go", text!("works.go"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go.cache");
    let cache = format!("GOCACHE={}", cache.display());
    let go = ["env", &cache, "GO111MODULE=off", "GOTOOLCHAIN=local", "go"];
    // The third is linked by GNU ld.
    for (mode, link) in [("exe", ""), ("pie", ""), ("pie", "-linkmode=external ")] {
        let counts = ["", "-s -w"].map(|strip| {
            let mode = format!("-buildmode={mode}");
            let link = format!("-ldflags={link}{strip}");
            let build = ["build", &mode, &link, "-o", "works", "works.go"];
            shop.must(&[&go[..], &build].concat());
            let native = shop.must(&["works"]);
            assert_eq!(native, "5000 5000 5000 5000\n");
            assert_eq!(shop.must_count_alone(&["./works"]), native, "{link}");
            let all = shop.functions();
            assert_eq!(all["main.work"].calls, 12_000, "{link}");
            // A goroutine that is preempted as it begins goes back to its function's entry, but not
            // behind it.
            assert!(all["main.main.func1"].calls >= 4, "{link}");
            if strip.is_empty() {
                let lines = shop.remarks("works.go", text!("works.go"));
                assert_eq!(lines["goroutines"], 4, "{link}");
            }
            all["main.work"]
        });
        assert_eq!(counts[0], counts[1], "{mode} {link}");
    }
}

#[test]
fn libraries_that_take_turns_are_counted_each_time() {
    let shop = Workshop::with("loads", text!("loads.c"), &["-ldl"]);
    let library = ["-shared", "-fPIC"];
    // They are as large as each other, but not the same.
    shop.build("one", "int one(int x) { return x + 1; }", &library);
    shop.build("two", "int two(int x) { return x + 2; }", &library);
    shop.must_count(&["./loads"]);
    let calls = ["one", "two", "call"].map(|it| shop.calls(it));
    assert_eq!(calls, [Some(50), Some(50), Some(50)]);
}

#[test]
fn programs_are_counted_however_they_are_linked() {
    let source = text!("picks.c");
    let shop = Workshop::new();
    let ways: [(&str, &[&str]); 6] = [
        ("gcc", &["-DPICKS"]),
        ("gcc", &["-DPICKS", "-no-pie"]),
        ("gcc", &["-DPICKS", "-static"]),
        ("gcc", &["-DPICKS", "-static-pie"]),
        ("musl-gcc", &["-static"]),
        ("musl-gcc", &[]),
    ];
    shop.write("picks.c", source);
    for (compiler, flags) in ways.into_iter().filter(|(it, _)| have(it)) {
        let build = [compiler, "-g", "-w", "-O1", "picks.c", "-o", "picks"];
        shop.must(&[&build, flags].concat());
        let label = format!("{compiler} {flags:?}");
        assert_eq!(shop.must_count(&["./picks"]), "1000\n", "{label}");
        assert_eq!(shop.calls("picked"), Some(1000), "{label}");
        assert_eq!(shop.calls("work"), Some(1), "{label}");
        let counts = shop.remarks("picks.c", source);
        assert!([1000, 1001].contains(&counts["all"]), "{label}: {counts:?}");
    }
}

#[test]
fn exceptions_through_many_frames_are_counted() {
    let source = text!("throws.cc");
    let shop = Workshop::new();
    shop.write("throws.cc", source);
    shop.must(&["g++", "-g", "-O1", "throws.cc", "-o", "throws"]);
    assert_eq!(shop.must_count(&["./throws"]), "");
    assert_eq!(shop.calls("deep(int)"), Some(60_000));
    assert_eq!(shop.calls("Tidy::~Tidy()"), Some(60_000));
    assert_eq!(shop.calls("attempt()"), Some(3_000));
    assert_eq!(shop.remarks("throws.cc", source)["caught"], 3_000);
}

#[test]
fn a_panic_has_the_backtrace_it_has_without_us() {
    let shop = Workshop::new();
    shop.write("panics.rs", text!("panics.rs"));
    shop.must(&["rustc", "-g", "panics.rs", "-o", "panics"]);
    let panics = |words: &[&str]| {
        let said = shop.run(&[&["env", "RUST_BACKTRACE=1"], words].concat());
        // The thread's number is in parentheses.
        let text = said.stderr;
        let (before, rest) = text.split_once('(').unwrap();
        let (_, after) = rest.split_once(')').unwrap();
        (said.status, said.stdout, format!("{before}{after}"))
    };
    let native = panics(&["./panics"]);
    assert!(native.2.contains("panics::deep"), "{native:?}");
    assert_eq!(panics(&[HEADCOUNT, "run", "-q", "./panics"]), native);
    assert_eq!(shop.calls("panics::deep"), Some(6));
}

#[test]
fn jumps_by_tables_are_counted_wherever_the_tables_are() {
    let source = text!("dispatches.c");
    let shop = Workshop::with("dispatches", source, &["-O2", "-fno-gcse", "-pthread"]);
    for way in ["switch", "table", "arithmetic"] {
        let native = shop.must(&["dispatches", way]);
        let said = shop.headcount(&["run", "--modules", "main", "./dispatches", way]);
        assert_eq!((said.status, said.stdout), (Some(0), native), "{way}");
        let unforeseen = said.stderr.contains("where nobody had foreseen it");
        assert_eq!(unforeseen, way == "arithmetic", "{}", said.stderr);
        assert_eq!(shop.calls(&format!("by_{way}")), Some(1), "{way}");
        // Lines of optimised code need not tell all.
        shop.must(&["gcc", "-g", "-pthread", "dispatches.c", "-o", "plain"]);
        shop.must(&[HEADCOUNT, "run", "-q", "--modules", "main", "./plain", way]);
        let counts = shop.remarks("dispatches.c", source);
        let count = |what: &str| counts[&format!("{way} {what}")];
        let counts = ["add", "double", "again"].map(count);
        assert_eq!(counts, [1000, 500, 500], "{way}");
    }
}

#[test]
fn jumps_that_nobody_foresaw_become_fast_with_threads_too() {
    let source = text!("dispatches.c");
    let shop = Workshop::with("dispatches", source, &["-O2", "-fno-gcse", "-pthread"]);
    let words = [
        "run",
        "--modules",
        "main",
        "./dispatches",
        "arithmetic",
        "4",
    ];
    let said = shop.headcount(&words);
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    let counts = shop.remarks("dispatches.c", source);
    let count = |what: &str| counts[&format!("arithmetic {what}")];
    let counts = ["add", "double", "again"].map(count);
    assert_eq!(counts, [5000, 2500, 2500]);
    // Of 10,000 jumps.
    assert!(traps(&said.stderr) < 2000, "{}", said.stderr);
}

#[test]
fn functions_too_short_for_a_jump_are_counted_without_traps() {
    let shop = Workshop::new();
    shop.write("short.c", text!("short.c"));
    shop.write("short.s", text!("short.s"));
    shop.must(&[
        "gcc", "-g", "-O1", "-pthread", "short.c", "short.s", "-o", "short",
    ]);
    const ROUNDS: u64 = 3000;
    for threads in [0, 4] {
        let (number, rounds) = (threads.to_string(), ROUNDS.to_string());
        let words = ["run", "--modules", "main", "./short", &number, &rounds];
        let said = shop.headcount(&words);
        assert_eq!((said.status, said.stdout.as_str()), (Some(0), "done\n"));
        let calls = (threads + 1) * ROUNDS;
        let expected = [
            ("w0", 1),
            ("w1", 1),
            ("w2", 1),
            ("w3", 1),
            ("leaf", 5),
            ("nothing", 5),
            ("calls_nothing", 2),
            ("hops", 1),
            ("hopped", 1),
            ("zero", 1),
            ("roomy", 1),
            ("also_roomy", 1),
            ("last", 1),
            ("follows", 1),
        ];
        for (name, times) in expected {
            assert_eq!(
                shop.calls(name),
                Some(times * calls),
                "{name}, {threads} threads"
            );
        }
        assert!(traps(&said.stderr) < ROUNDS, "{}", said.stderr);
    }
}

/// How many traps the summary tells of.
fn traps(summary: &str) -> u64 {
    let (before, _) = summary.split_once(" traps;").expect(summary);
    let number = before.rsplit(' ').next().expect(summary);
    number.replace(',', "").parse().expect(summary)
}

#[test]
fn routines_that_many_threads_reach_at_once_are_counted() {
    // Every function is new to eight threads at about the same time.
    let mut source = "#include <pthread.h>\n".to_owned();
    let many = 700;
    for i in 0..many {
        let turns = i % 7 + 2;
        source += &format!(
            "__attribute__((noipa)) long f{i}(long x) \
             {{ for (int i = 0; i < x % {turns}; i++) x += {i}; return x * 3; }}\n"
        );
    }
    let names: Vec<String> = (0..many).map(|i| format!("f{i}")).collect();
    source += &format!(
        "static long (*const all[])(long) = {{ {} }};\n\
         static pthread_barrier_t begin;\n\
         static void *work(void *way) {{\n\
             long x = 0;\n\
             pthread_barrier_wait(&begin);\n\
             for (long i = 0; i < {many}; i++)\n\
                 x += all[(i * 11 + (long)way) % {many}](i);\n\
             return (void *)x;\n\
         }}\n\
         int main(void) {{\n\
             pthread_t threads[8];\n\
             pthread_barrier_init(&begin, 0, 8);\n\
             for (long i = 0; i < 8; i++)\n\
                 pthread_create(&threads[i], 0, work, (void *)(i % 3 * 5));\n\
             for (int i = 0; i < 8; i++)\n\
                 pthread_join(threads[i], 0);\n\
             return 0;\n\
         }}\n",
        names.join(", ")
    );
    let shop = Workshop::with("fresh", &source, &["-O1", "-pthread"]);
    for round in 0..3 {
        shop.count_it(&["./fresh"]);
        let functions = shop.functions();
        for name in &names {
            assert_eq!(functions[name].calls, 8, "{name}, round {round}");
        }
    }
}

#[test]
fn threads_and_processes_at_once_are_counted() {
    let shop = Workshop::with("mixes", text!("mixes.c"), &["-O1", "-pthread"]);
    for (way, visits) in [
        ("fork", 4 * 20_000 + 4 * 50 * 10),
        ("exec", 5 + 100),
        ("share", 50 * (10 + 10)),
    ] {
        shop.count_it(&["./mixes", way]);
        assert_eq!(shop.calls("visit"), Some(visits), "{way}");
    }
}

#[test]
fn handlers_that_never_return_and_contexts_that_take_turns_are_counted() {
    let source = text!("escapes.c");
    let shop = Workshop::with("escapes", source, &["-O1"]);
    let said = shop.must_count_alone(&["./escapes"]);
    let mut numbers = said.split_whitespace().map(|it| it.parse::<u64>().unwrap());
    let mut number = || numbers.next().unwrap();
    let (done, begun, early) = (number(), number(), number());
    // Each escape may leave one of the two behind, before it is stored.
    let calls = shop.calls("leaf").unwrap();
    assert!((done..=begun + 300).contains(&calls), "{calls} of {said}");
    let spins = shop.calls("spin").unwrap();
    assert!((300 - early..=300).contains(&spins), "{spins} of {said}");
    assert_eq!(shop.calls("leave"), Some(300));
    assert_eq!(shop.remarks("escapes.c", source)["turns"], 10_000);
}

#[test]
fn a_program_that_can_change_our_register_runs_uncounted() {
    let shop = Workshop::with("uses_gs", text!("uses_gs.c"), &["-O1", "-DINSTRUCTION"]);
    for way in ["instruction", "neither"] {
        if shop.run(&["uses_gs", way]).status != Some(0) {
            eprintln!("skipped: no such instruction here");
            continue;
        }
        let said = shop.headcount(&["run", "--modules", "main", "./uses_gs", way]);
        assert_eq!((said.status, said.stdout.as_str()), (Some(0), "86\n"));
        assert!(said.stderr.contains("--engine breakpoint"), "{said:?}");
        let run = ["--engine", "breakpoint", "./uses_gs", way];
        assert_eq!(shop.must_count(&run), "86\n");
        assert_eq!(shop.calls("visit"), Some(1));
    }
}

#[test]
fn a_program_that_asks_the_kernel_for_our_register_is_let_go_of() {
    let shop = Workshop::with("uses_gs", text!("uses_gs.c"), &["-O1"]);
    let said = shop.headcount(&["run", "--modules", "main", "./uses_gs", "call"]);
    assert_eq!((said.status, said.stdout.as_str()), (Some(0), "86\n"));
    assert!(said.stderr.contains("--engine breakpoint"), "{said:?}");
    let run = ["--engine", "breakpoint", "./uses_gs", "call"];
    assert_eq!(shop.must_count(&run), "86\n");
    assert_eq!(shop.calls("visit"), Some(1));
    // Only whoever asks is let go of.
    assert_eq!(shop.must_count_alone(&["./uses_gs", "neither"]), "86\n");
    assert_eq!(shop.calls("visit"), Some(1));
}

#[test]
fn a_program_that_confines_itself_goes_on_as_ever() {
    let shop = Workshop::with("confines", text!("confines.c"), &["-O1", "-pthread"]);
    for way in ["files", "calls"] {
        let said = shop.headcount(&["run", "--modules", "main", "./confines", way, "100"]);
        assert_eq!(said.status, Some(0), "{way}: {said:?}");
        assert_eq!(shop.calls("visit"), Some(500), "{way}: {said:?}");
    }
}

#[test]
fn a_program_that_confines_itself_is_counted_exactly() {
    let shop = Workshop::with("confines", text!("confines.c"), &["-O1", "-pthread"]);
    for way in ["files", "calls"] {
        shop.count_it(&["./confines", way, "30000000"]);
        assert_eq!(shop.calls("visit"), Some(150_000_000), "{way}");
    }
}

#[test]
fn a_restartable_sequence_stays_in_its_place() {
    let shop = Workshop::with("restarts", text!("restarts.c"), &["-O1", "-pthread"]);
    if shop.run(&["restarts"]).stdout != "8000000\n" {
        eprintln!("skipped: no restartable sequences here");
        return;
    }
    let said = shop.headcount(&["run", "--modules", "main", "./restarts"]);
    assert_eq!((said.status, said.stdout.as_str()), (Some(0), "8000000\n"));
    assert!(said.stderr.contains("add of "), "{}", said.stderr);
    assert!(said.stderr.contains("restartable"), "{}", said.stderr);
    assert_eq!(shop.calls("work"), Some(8));
}

#[test]
fn code_that_a_program_makes_is_named_with_its_share_of_the_time() {
    let shop = Workshop::with("makes", text!("makes_code.c"), &[]);
    let said = shop.must_count(&["./makes"]);
    let calls: u64 = said.trim().parse().expect("a number");
    assert_eq!(shop.calls("own"), Some(calls));
    let report = shop.report(&[]);
    let share = report.split_once("Such code took about ");
    let share = share.and_then(|(_, it)| it.split(' ').next());
    let share: Option<u32> = share.and_then(|it| it.parse().ok());
    assert!(share.is_some_and(|it| it >= 50), "{report}");
}
