//! Programs that are not ours, held against tools that are not ours: a debugger's breakpoints, and a
//! tracer of system calls.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Found, checked, found, tallied};
use crate::workshop::{HEADCOUNT, Workshop, have, is_thorough, said};
use headcount_ground::real::{self, Amount};
use headcount_ground::registry::Sources;

/// Counts a register at a function, and prints it.
const DEBUGGER: &str = "\
import collections
import gdb

counts = collections.Counter()

class Place(gdb.Breakpoint):
    def stop(self):
        counts[int(gdb.selected_frame().read_register('REGISTER'))] += 1
        return False

gdb.execute('set confirm off')
gdb.execute('set debuginfod enabled off')
# It tells the program how large its window is.
gdb.execute('set exec-wrapper env -u LINES -u COLUMNS')
gdb.execute('starti')
STEPS
Place('*PLACE')
gdb.execute('continue')
for key, count in counts.items():
    print('COUNT', key, count)
";

/// Until the C library is there.
const LIBRARY: &str =
    "gdb.execute('catch load libc.so'); gdb.execute('continue'); gdb.execute('delete')";

/// What a debugger sees, in an environment without surprises.
fn debugged(shop: &Workshop, place: &str, register: &str, steps: &str, words: &[&str]) -> Found {
    let script = DEBUGGER
        .replace("REGISTER", register)
        .replace("STEPS", steps)
        .replace("PLACE", place);
    shop.write("count.py", script);
    let mut command = shop.command("gdb");
    bare(&mut command)
        .args(["-nx", "-batch", "-x", "count.py", "--args"])
        .args(words);
    let said = said(&mut command);
    let counts = said
        .stdout
        .lines()
        .filter_map(|it| it.strip_prefix("COUNT "));
    let counts = counts.map(|line| {
        let (key, count) = line.split_once(' ').unwrap();
        (key.to_owned(), (count.parse().unwrap(), 0))
    });
    let counts: Found = counts.collect();
    assert!(!counts.is_empty(), "{said:?}");
    counts
}

fn bare(command: &mut std::process::Command) -> &mut std::process::Command {
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("XDG_CACHE_HOME", crate::workshop::shared_cache())
        .env("LC_ALL", "C")
        .env("PYTHONHASHSEED", "0")
}

#[test]
fn python_asks_for_memory_as_a_debugger_says() {
    if !have("gdb") || !have("/usr/bin/python3") {
        return;
    }
    let shop = Workshop::new();
    let work = "print(sum(len(str(i)) for i in range(100)))";
    let words = ["/usr/bin/python3", "-I", "-S", "-c", work];
    let seen = debugged(&shop, "malloc", "rdi", LIBRARY, &words);
    assert!(seen.len() > 50, "{seen:?}");
    let mut command = shop.command("setarch");
    let tally = ["--tally", "libc.so.6!malloc(arg1)", "--"];
    bare(&mut command)
        .args(["-R", HEADCOUNT, "run", "-q"])
        .args(tally)
        .args(words);
    let run = said(&mut command);
    assert_eq!(
        (run.status, run.stdout.as_str()),
        (Some(0), "190\n"),
        "{run:?}"
    );
    let rows = checked(&shop);
    assert_eq!(found(&rows, "libc.so.6!malloc", "arg1"), seen);
}

#[test]
fn bzip2_reads_what_a_tracer_of_system_calls_says() {
    if !have("strace") || !have("bzip2") {
        return;
    }
    let shop = Workshop::new();
    let text: String = (0..60_000).map(|it| format!("{it}\n")).collect();
    shop.write("numbers", text);
    shop.must(&[
        "strace",
        "-o",
        "trace",
        "-e",
        "trace=read",
        "bzip2",
        "-k",
        "numbers",
    ]);
    let trace = std::fs::read_to_string(shop.path("trace")).unwrap();
    let mut seen = Found::new();
    // The loader reads libraries by system calls of its own.
    for line in trace
        .lines()
        .filter(|it| it.starts_with("read(") && !it.contains("ELF"))
    {
        let (_, result) = line.rsplit_once(" = ").unwrap();
        seen.entry(result.to_owned()).or_default().0 += 1;
    }
    assert!(seen["4096"].0 > 50, "{seen:?}");
    let tally = "libc.so.6!read(ret)";
    tallied(&shop, &[tally], &["bzip2", "-f", "-k", "numbers"]);
    let rows = checked(&shop);
    assert_eq!(found(&rows, "libc.so.6!read", "ret"), seen);
}

#[test]
fn lua_makes_strings_as_a_debugger_says() {
    if !have("gdb") {
        return;
    }
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("judged_values");
    let sources = Sources::fetch(&work).unwrap();
    let programs = real::programs(&sources, Amount::Little).unwrap();
    let lua = programs.into_iter().find(|it| it.name == "lua").unwrap();
    let shop = Workshop::new();
    let flags = ["-O2", "-g", "-no-pie", "-w"].map(str::to_owned);
    let words = lua.compile(&flags, &shop.path("it"));
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.insert(0, "gcc");
    shop.must(&words);
    shop.write(
        "small.lua",
        "local t = {} for i = 1, 40 do t[i] = #tostring(i) + i % 7 end",
    );
    let program = shop.path("it").display().to_string();
    let words = [program.as_str(), "small.lua", "1"];
    let seen = debugged(&shop, "luaS_newlstr", "rdx", "", &words);
    tallied(
        &shop,
        &["luaS_newlstr(arg3)", "luaV_execute by caller"],
        &words,
    );
    let rows = checked(&shop);
    assert_eq!(found(&rows, "luaS_newlstr", "arg3"), seen);
    let callers = rows.iter().filter(|it| it.place == "luaV_execute");
    let callers: Vec<&str> = callers.map(|it| it.caller.as_str()).collect();
    assert!(!callers.is_empty());
    assert!(
        callers.iter().all(|it| it.starts_with("luaD_call")),
        "{callers:?}"
    );
}

/// What `--targets` says of the user's own code, by line and target.
fn targets(shop: &Workshop, words: &[&str]) -> BTreeMap<(String, String), u64> {
    shop.must_headcount(&[&["run", "-q", "--targets", "--"], words].concat());
    let mut found = BTreeMap::new();
    for row in checked(shop) {
        *found.entry((row.place, row.value)).or_default() += row.count;
    }
    found
}

#[test]
fn virtual_calls_lead_where_the_objects_say() {
    let source = "\
#include <cstdio>
struct Shape { virtual long sides(long by) { return by; } virtual ~Shape() = default; };
struct Square : Shape { long sides(long by) override { return 4 * by; } };
struct Circle : Shape { long sides(long) override { return 0; } };
static long twice(long n) { return n * 2; }
static long thrice(long n) { return n * 3; }
int main()
{
    Shape shape; Square square; Circle circle;
    Shape *all[] = {&shape, &square, &circle};
    long (*volatile functions[])(long) = {twice, thrice};
    long sum = 0;
    for (long i = 0; i < 1000; i++) {
        Shape *volatile it = all[i % 7 % 3];
        sum += it->sides(i);
        sum += functions[i % 5 == 0](i);
    }
    std::printf(\"%ld\\n\", sum);
}
";
    for level in ["-O0", "-O2"] {
        let shop = Workshop::new();
        shop.write("shapes.cc", source);
        shop.must(&["g++", "-g", level, "-o", "it", "shapes.cc"]);
        let found = targets(&shop, &["./it"]);
        let count = |line: u32, target: &str| {
            let ends = |it: &str| it.ends_with(&format!("shapes.cc:{line}"));
            let rows = found.iter().filter(|it| ends(&it.0.0) && it.0.1 == target);
            rows.map(|it| *it.1).sum::<u64>()
        };
        let of = |kind: usize| (0..1000).filter(|i| i % 7 % 3 == kind).count() as u64;
        assert_eq!(count(15, "Shape::sides(long)"), of(0), "{level}: {found:?}");
        assert_eq!(count(15, "Square::sides(long)"), of(1), "{level}");
        assert_eq!(count(15, "Circle::sides(long)"), of(2), "{level}");
        assert_eq!(count(16, "thrice(long)"), 200, "{level}");
        assert_eq!(count(16, "twice(long)"), 800, "{level}");
    }
}

/// Interpreters with computed gotos and jump tables: every indirect call and jump adds up.
#[test]
fn targets_in_interpreters_add_up() {
    let python: &[&str] = &["/usr/bin/python3", "-I", "-S", "-c", "print(sum(range(9)))"];
    let perl: &[&str] = &["/usr/bin/perl", "-e", "print 6 * 6, qq(\\n)"];
    let lua: &[&str] = &["/usr/bin/lua", "-e", "print(6 * 6)"];
    let is_wanted = |words: &&&[&str]| have(words[0]) && (is_thorough() || *words == &perl);
    for words in [python, perl, lua].iter().filter(is_wanted) {
        let shop = Workshop::new();
        let run = [&["run", "-q", "--targets", "--"], *words].concat();
        let said = shop.headcount(&run);
        assert_eq!(
            (said.status, said.stdout.as_str()),
            (Some(0), "36\n"),
            "{said:?}"
        );
        let rows = checked(&shop);
        assert!(rows.len() > 50, "{words:?}: {}", rows.len());
    }
}
