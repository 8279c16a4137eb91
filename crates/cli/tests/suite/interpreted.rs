//! Programs that interpreters run: every line as often as the language's own tracer says.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::workshop::{Said, Workshop};

/// Debian's own: others may stand before it.
pub const PYTHON: &str = "/usr/bin/python3.11";

/// The tracer, and programs that do what programs do.
const TRUTH: &str = include_str!("interpreted/python/truth.py");
const PROGRAMS: [(&str, &str); 5] = [
    ("flow.py", include_str!("interpreted/python/flow.py")),
    ("raising.py", include_str!("interpreted/python/raising.py")),
    ("classes.py", include_str!("interpreted/python/classes.py")),
    ("library.py", include_str!("interpreted/python/library.py")),
    ("modern.py", include_str!("interpreted/python/modern.py")),
];

/// Newer ones, where there are any: Debian's stable release may have none of them.
pub fn newer_ones() -> Vec<String> {
    let mut folders: Vec<PathBuf> = vec!["/usr/bin".into(), "/usr/local/bin".into()];
    let pyenv = Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".pyenv/versions");
    let versions = fs::read_dir(pyenv).into_iter().flatten().flatten();
    folders.extend(versions.map(|it| it.path().join("bin")));
    let of = |minor: u8| {
        let mut all = folders.iter().map(|it| it.join(format!("python3.{minor}")));
        Some(all.find(|it| it.exists())?.to_str()?.to_owned())
    };
    [12, 13].into_iter().filter_map(of).collect()
}

/// File and line.
pub type Place = (String, u32);

fn shop() -> Workshop {
    let shop = Workshop::new();
    for (name, text) in PROGRAMS.iter().chain(&[("truth.py", TRUTH)]) {
        shop.write(name, text);
    }
    shop
}

/// How often lines began, and whether that is exact.
pub fn lines(shop: &Workshop, more: &[&str]) -> BTreeMap<Place, (u64, bool)> {
    let csv = shop.report(&[&["--by", "line", "--format", "csv"], more].concat());
    let mut rows = csv.lines().map(|it| it.split(',').collect::<Vec<_>>());
    let titles = rows.next().unwrap();
    let column = |name: &str| titles.iter().position(|it| *it == name).unwrap();
    // Where no script was counted, there are no statements.
    if !titles.contains(&"statements_executed") {
        return BTreeMap::new();
    }
    let (file, line) = (column("file"), column("line"));
    let (begun, exactness) = (column("statements_executed"), column("exactness"));
    let scripts = rows.filter(|row| !row[begun].is_empty());
    let found = scripts.map(|row| {
        let place = (row[file].to_owned(), row[line].parse().unwrap());
        (
            place,
            (row[begun].parse().unwrap(), row[exactness] == "exact"),
        )
    });
    found.collect()
}

/// The lines of a program, and of what it imports first, as Python's tracer has them.
fn traced(shop: &Workshop, python: &str, program: &str) -> BTreeMap<Place, u64> {
    shop.must(&[python, "-B", "truth.py", "truth.txt", program]);
    truth(shop)
}

fn truth(shop: &Workshop) -> BTreeMap<Place, u64> {
    let text = fs::read_to_string(shop.path("truth.txt")).unwrap();
    let rows = text.lines().map(|it| {
        let [file, line, count] = it.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{it}");
        };
        let place = (file.to_owned(), line.parse().unwrap());
        (place, count.parse().unwrap())
    });
    rows.filter(|((_, line), _)| *line > 0).collect()
}

/// Counts a program that must do what it does alone.
pub fn counted(shop: &Workshop, words: &[&str]) -> Said {
    let alone = shop.run(words);
    let said = shop.headcount(&[&["run", "-q", "--"], words].concat());
    assert_eq!(
        (&said.stdout, said.status),
        (&alone.stdout, alone.status),
        "{words:?}"
    );
    said
}

pub fn told(shop: &Workshop, words: &[&str]) -> String {
    let said = shop.headcount(words);
    assert_eq!(said.status, Some(0), "{words:?}: {said:?}");
    said.stdout
}

/// Nothing that the report says casts doubt on the counts.
pub fn is_sure(shop: &Workshop) -> String {
    let text = shop.report(&[]);
    assert!(!text.contains("Do not believe"), "{text}");
    text
}

#[test]
fn lines_of_python_begin_as_often_as_its_tracer_says() {
    let mut bounds = 0;
    let debians = PROGRAMS.iter().map(|it| (PYTHON.to_owned(), it.0));
    // The larger ones are for one.
    let newer = newer_ones().into_iter();
    let newer = newer
        .flat_map(|it| ["flow.py", "raising.py", "modern.py"].map(|program| (it.clone(), program)));
    for (python, program) in debians.chain(newer) {
        let shop = shop();
        let truth = traced(&shop, &python, program);
        counted(&shop, &[&python, "-B", program]);
        let found = lines(&shop, &["--language", "python"]);
        bounds += agree(&truth, &found, &format!("{python} {program}"));
        let own = found.iter().filter(|(place, _)| place.0 == program);
        for (place, (count, _)) in own {
            assert!(
                *count == 0 || truth.contains_key(place),
                "{python}: {place:?}: {count}"
            );
        }
        is_sure(&shop);
    }
    assert!(bounds < 10, "{bounds} lines are not exact");
}

/// Whoever traced lines must be right. How many of them are only bounded.
fn agree(truth: &BTreeMap<Place, u64>, found: &BTreeMap<Place, (u64, bool)>, what: &str) -> usize {
    let mut bounds = 0;
    // What ends with the interpreter, nobody traces any more.
    let is_of_end = |file: &str| file.ends_with("logging/__init__.py");
    let all = truth.iter().filter(|((file, _), _)| !is_of_end(file));
    for (place, count) in all {
        let known = found.get(place);
        let is_it = known.is_some_and(|(known, is_exact)| match is_exact {
            true => known == count,
            false => known <= count,
        });
        assert!(is_it, "{what}: {place:?}: {count}, not {known:?}");
        bounds += usize::from(known.is_some_and(|it| !it.1));
    }
    bounds
}

/// From 3.12 on, what is traced is replaced by other instructions, which lead to it.
#[test]
fn a_program_that_traces_itself_is_counted_like_any_other() {
    let lines_only = TRUTH;
    let instructions_too = TRUTH.replace(
        "    return trace\n",
        "    frame.f_trace_opcodes = True\n    return trace\n",
    );
    assert_ne!(lines_only, instructions_too);
    let is_counted_right = |python: &str, tracer: &str, program: &str| {
        let shop = shop();
        shop.write("truth.py", tracer);
        counted(&shop, &[python, "-B", "truth.py", "truth.txt", program]);
        let found = lines(&shop, &["--language", "python"]);
        let bounds = agree(&truth(&shop), &found, &format!("{python} {program}"));
        assert!(
            bounds < 10,
            "{python} {program}: {bounds} lines are not exact"
        );
        is_sure(&shop);
    };
    let newer = newer_ones();
    for python in newer.iter().map(String::as_str).chain([PYTHON]) {
        is_counted_right(python, &instructions_too, "flow.py");
    }
    if let Some(newest) = newer.last() {
        is_counted_right(newest, lines_only, "modern.py");
    }
}

#[test]
fn lines_of_other_peoples_programs_too() {
    let shop = shop();
    let json = "{\"b\": [1, 2.5, null], \"a\": {\"c\": \"\\u00e9\"}}";
    shop.write("in.json", json);
    let source =
        "import json.tool, sys\nsys.argv = ['tool', '--sort-keys', 'in.json']\njson.tool.main()\n";
    shop.write("tool.py", source);
    let truth = traced(&shop, PYTHON, "tool.py");
    counted(&shop, &[PYTHON, "-B", "tool.py"]);
    let found = lines(&shop, &[]);
    let of_json = truth.iter().filter(|it| it.0.0.contains("/json/"));
    assert!(of_json.clone().count() > 100);
    for (place, count) in of_json {
        assert_eq!(found.get(place), Some(&(*count, true)), "{place:?}");
    }
}

#[test]
fn a_library_of_the_interpreter_is_one() {
    let shop = Workshop::new();
    shop.write(
        "f.py",
        "def f(n):\n    return n + 1\n\nprint(sum(f(n) for n in range(10)))\n",
    );
    counted(&shop, &[PYTHON, "f.py"]);
    let found = lines(&shop, &[]);
    let of = |line| found[&("f.py".to_owned(), line)];
    assert_eq!((of(1), of(2), of(4)), ((1, true), (10, true), (12, true)));
    let text = is_sure(&shop);
    // The script is the user's own, and all else is not.
    let first = text.lines().skip_while(|it| !it.contains("calls")).nth(1);
    assert!(first.is_some_and(|it| it.contains("f.py:4")), "{text}");
    assert!(text.contains("Python's library"), "{text}");
}

/// Two thousand pieces of program, one after the other at the same address.
#[test]
fn memory_that_is_used_again_is_counted_for_each_who_had_it() {
    let shop = Workshop::new();
    let program = "\
import gc
for i in range(2000):
    text = 'y = %d\\n' % i + 'x = y\\n' * (i % 3) + 'if x % 2:\\n    x = 7\\n'
    exec(compile(text, 'made%d.py' % (i % 3), 'exec'), {'x': i})
    if i % 100 == 0: gc.collect()
";
    shop.write("many.py", program);
    counted(&shop, &[PYTHON, "many.py"]);
    is_sure(&shop);
    let found = lines(&shop, &[]);
    let of = |file: &str, line| found[&(file.to_owned(), line)].0;
    assert_eq!(
        [of("made0.py", 1), of("made1.py", 1), of("made2.py", 1)],
        [667, 667, 666]
    );
    assert_eq!(
        [of("made0.py", 2), of("made1.py", 2), of("made2.py", 3)],
        [667, 667, 666]
    );
    // x is i.
    assert_eq!(
        [of("made0.py", 3), of("made1.py", 4), of("made2.py", 5)],
        [333, 334, 333]
    );
}

#[test]
fn children_and_their_programs_count_for_the_same_lines() {
    let shop = Workshop::new();
    let program = "\
import os, subprocess, sys, threading
def work(n):
    return n * 2
if len(sys.argv) > 1:
    for i in range(int(sys.argv[1])): work(i)
    os._exit(3)
for i in range(5):
    work(i)
    child = os.fork()
    if child == 0:
        for j in range(10): work(j)
        os._exit(0)
    os.waitpid(child, 0)
print(subprocess.run([sys.executable, __file__, '100']).returncode)
threads = [threading.Thread(target=lambda: [work(n) for n in range(1000)]) for _ in range(8)]
for it in threads: it.start()
for it in threads: it.join()
sys.stdout.flush()
os.execv(sys.executable, [sys.executable, __file__, '7'])
";
    shop.write("family.py", program);
    let said = counted(&shop, &[PYTHON, "family.py"]);
    assert_eq!((said.stdout.as_str(), said.status), ("3\n", Some(3)));
    is_sure(&shop);
    let found = lines(&shop, &[]);
    let of = |line| found[&("family.py".to_owned(), line)];
    assert_eq!(of(3), (5 + 5 * 10 + 100 + 8 * 1000 + 7, true));
    assert_eq!(of(12), (5, true));
    assert_eq!(of(6), (2, true));
}

#[test]
fn who_dies_has_counted_up_to_then() {
    let ends = [
        ("os._exit(4)", 4),
        ("os.kill(os.getpid(), 9)", 128 + 9),
        ("os.abort()", 128 + 6),
        ("import ctypes; ctypes.string_at(0)", 128 + 11),
        ("raise SystemExit(5)", 5),
    ];
    for (end, status) in ends {
        let shop = Workshop::new();
        let program =
            format!("import os\ndef f(n):\n    return n\nfor i in range(50): f(i)\n{end}\nf(1)\n");
        shop.write("dies.py", program);
        let said = shop.headcount(&["run", "-q", "--", PYTHON, "dies.py"]);
        assert_eq!(said.status, Some(status), "{end}: {said:?}");
        is_sure(&shop);
        let found = lines(&shop, &[]);
        let of = |line| {
            found
                .get(&("dies.py".to_owned(), line))
                .map_or(0, |it| it.0)
        };
        assert_eq!([of(1), of(3), of(5), of(6)], [1, 50, 1, 0], "{end}");
    }
}

#[test]
fn functions_can_be_chosen() {
    let shop = Workshop::new();
    shop.write(
        "two.py",
        "def one(): return 1\ndef two(): return 2\nfor i in range(9): one(); two()\n",
    );
    let run = [
        "run", "-q", "--only", "two.py", "--skip", "one", "--", PYTHON, "two.py",
    ];
    assert_eq!(shop.headcount(&run).status, Some(0));
    let csv = shop.report(&["--by", "function", "--format", "csv"]);
    assert!(
        csv.contains("two.py,two,") && !csv.contains("two.py,one,"),
        "{csv}"
    );
}

#[test]
fn who_wants_none_of_it_gets_none() {
    let shop = Workshop::new();
    shop.write("f.py", "print(1)\n");
    let run = ["run", "-q", "--language", "none", "--", PYTHON, "f.py"];
    assert_eq!(shop.headcount(&run).status, Some(0));
    assert!(lines(&shop, &[]).is_empty());
    for way in [
        &["--calls"][..],
        &["--per-thread"],
        &["--engine", "breakpoint"],
    ] {
        let run = [
            &["run", "--language", "python"],
            way,
            &["--", PYTHON, "f.py"],
        ]
        .concat();
        let said = shop.headcount(&run);
        assert_eq!(said.status, Some(125), "{said:?}");
        assert!(
            said.stderr.contains("--language cannot be combined with"),
            "{said:?}"
        );
    }
    let said = shop.headcount(&["run", "--language", "perl", "--", PYTHON, "f.py"]);
    assert_eq!(said.status, Some(125));
    assert!(said.stderr.contains("python"), "{said:?}");
}

#[test]
fn an_interpreter_that_is_not_known_is_named() {
    let shop = Workshop::new();
    let old = "int _PyEval_EvalFrameDefault(void) { return 7; }\n\
               int main(void) { return _PyEval_EvalFrameDefault(); }\n";
    let new = format!("const unsigned long Py_Version = 0x030f00f0;\n{old}");
    for (program, why) in [
        (old, "it is older than CPython 3.11"),
        (
            &new,
            "it is CPython 3.15.0, and only 3.11, 3.12, 3.13 are known",
        ),
    ] {
        shop.write("it.c", program);
        shop.must(&["gcc", "-rdynamic", "it.c", "-o", "it"]);
        counted(&shop, &["./it"]);
        let text = shop.report(&["--all"]);
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn tokens_have_rows() {
    let shop = Workshop::new();
    let program = "\
def squares(n):
    for i in range(n):
        yield i * i

total = sum(squares(10)) + len([
    1, 2])
try:
    pass
finally:
    print(total)
";
    shop.write("tokens.py", program);
    counted(&shop, &[PYTHON, "tokens.py"]);
    let csv = shop.report(&[
        "--by",
        "token",
        "--language",
        "python",
        "--only",
        "tokens.py",
        "--format",
        "csv",
    ]);
    let mut rows = csv.lines();
    assert_eq!(
        rows.next(),
        Some("language,file,line,column,kind,text,count,resumptions,samples,bytes")
    );
    let rows: Vec<&str> = rows.collect();
    for row in [
        "python,tokens.py,2,14,CALL,range(n),1,0,,",
        "python,tokens.py,3,9,YIELD_VALUE,yield i * i,10,10,,",
        "python,tokens.py,3,15,BINARY_OP,i * i,10,0,,",
        "python,tokens.py,5,9,CALL,sum(squares(10)),1,0,,",
        // Longer than a line: as much as is in the first one.
        "python,tokens.py,5,28,CALL,len([,1,0,,",
        "python,tokens.py,10,5,CALL,print(total),1,0,,",
    ] {
        assert!(rows.contains(&row), "{row}: {csv}");
    }
    // Program and library are one order: that of the source.
    let lines = rows.iter().map(|row| row.split(',').nth(2).unwrap());
    let lines: Vec<u32> = lines.map(|it| it.parse().unwrap()).collect();
    assert!(lines.is_sorted(), "{csv}");
    let native = shop.report(&["--language", "native", "--format", "csv"]);
    assert!(
        !native.contains("tokens.py") && native.contains("_PyEval"),
        "{native}"
    );
    let text = shop.report(&["--by", "token"]);
    assert!(
        text.contains("yield i * i") && text.contains("in libraries"),
        "{text}"
    );
}

#[test]
fn what_quotes_a_private_script_is_private() {
    let shop = Workshop::new();
    shop.write("secret.py", "for _ in range(9):\n    print('hunter2')\n");
    fs::set_permissions(shop.path("secret.py"), fs::Permissions::from_mode(0o600)).unwrap();
    counted(&shop, &[PYTHON, "secret.py"]);
    for format in ["text", "csv", "json"] {
        told(
            &shop,
            &["report", "--by", "token", "--format", format, "-o", "rows"],
        );
        let text = fs::read_to_string(shop.path("rows")).unwrap();
        let mode = fs::metadata(shop.path("rows"))
            .unwrap()
            .permissions()
            .mode();
        let is_quoted = text.contains("hunter2");
        assert!(is_quoted && mode & 0o077 == 0, "{format}: {mode:o}: {text}");
        fs::remove_file(shop.path("rows")).unwrap();
    }
}

#[test]
fn other_formats_have_them() {
    let shop = Workshop::new();
    shop.write("f.py", "def f(n):\n    if n > 4:\n        return n\n    return -n\n\nprint(sum(f(n) for n in range(10)))\n");
    counted(&shop, &[PYTHON, "f.py"]);
    let lcov = told(&shop, &["export", "--format", "lcov"]);
    let own = lcov.split("end_of_record").find(|it| it.contains("f.py\n"));
    let own = own.unwrap_or_else(|| panic!("{lcov}"));
    for line in [
        "FNDA:10,f",
        "FNDA:1,<genexpr>",
        "FNDA:1,<module>",
        "DA:2,10",
        "DA:3,5",
        "DA:4,5",
    ] {
        assert!(own.lines().any(|it| it == line), "{line}: {own}");
    }
    let source = told(&shop, &["annotate", "f.py"]);
    assert!(source.contains("return -n"), "{source}");
    let columns = told(&shop, &["annotate", "--columns", "f.py"]);
    assert!(columns.contains("operation"), "{columns}");
}
