//! Invariant 4: routes agree on every unit that they can all count. The assembly route and the
//! source route share neither parser nor flow graph; at `-O0` a compiler keeps to the source, so
//! what one says about a line of one statement the other must say, too.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::workshop::{Workshop, c_programs};
use headcount_csource::{Options, Source};
use headcount_ground::workers;
use headcount_oracle::stated::Stated;

const TWICE: &str = "the call comes back more often than it is made: the rest of the statement, \
                     which assembly sees, runs more often than the statement begins";
const NO_CODE: &str = "the compiler makes no code of it, so assembly has no line";
const DEAD: &str = "never reached, as the compiler knows, which makes no code of it";

/// Lines on which they do not agree, and why; or only sometimes, because two runs differ.
#[rustfmt::skip]
const EXPLAINED: [(&str, u32, &str); 16] = [
    ("a_breakpoint_is_left_by_longjmp.c", 18, "the statement begins, and its one instruction faults"),
    ("a_breakpoint_is_left_by_longjmp.c", 25, TWICE),
    ("a_thread_is_cancelled.c", 10, NO_CODE),
    ("a_tree_of_forks_four_deep.c", 11, TWICE),
    ("abort_is_caught_and_ends_it_all_the_same.c", 15, DEAD),
    ("any_number_of_arguments.c", 13, NO_CODE),
    ("contexts_are_switched.c", 8, NO_CODE),
    ("duffs_device.c", 5, "gcc books code of the loop behind it to the label, which is no statement"),
    ("exit_deep_in_a_chain_of_calls.c", 21, NO_CODE),
    ("exit_while_threads_wait.c", 13, NO_CODE),
    ("exit_while_threads_wait.c", 14, "sometimes: main may be done before a thread comes here"),
    ("exit_while_threads_wait.c", 15, DEAD),
    ("its_child_runs_it_again.c", 11, TWICE),
    ("quick_exit_runs_its_own_handlers.c", 20, DEAD),
    ("setjmp_returns_three_times.c", 8, TWICE),
    ("the_end_is_unreachable.c", 7, DEAD),
];

#[test]
fn assembly_and_source_agree_on_every_line_of_one_statement() {
    let found = workers::share_out(&c_programs(), 2, |it| compare(it), |_, _| ());
    let differences: Vec<_> = found.iter().flat_map(|it| &it.differences).collect();
    let is_explained = |it: &&&Difference| {
        let mut all = EXPLAINED.iter();
        all.any(|(name, line, _)| (*name, *line) == (&it.name, it.line))
    };
    let wrong: Vec<_> = differences.iter().filter(|it| !is_explained(it)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let stale = EXPLAINED.iter().filter(|(name, line, why)| {
        let mut all = differences.iter();
        !why.starts_with("sometimes")
            && !all.any(|it| (it.name.as_str(), it.line) == (*name, *line))
    });
    let stale: Vec<_> = stale.collect();
    assert!(stale.is_empty(), "explained, but they agree: {stale:#?}");
    let equal: usize = found.iter().map(|it| it.equal).sum();
    assert!(equal > 400, "only {equal} lines were compared");
}

/// What two routes say of a program.
#[derive(Default)]
struct Compared {
    equal: usize,
    differences: Vec<Difference>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "shown where a test fails")]
struct Difference {
    name: String,
    line: u32,
    assembly: Option<u64>,
    source: Option<u64>,
    code: String,
}

fn compare(source: &Path) -> Compared {
    let text = fs::read_to_string(source).unwrap();
    let stated = Stated::parse(source, &text).unwrap();
    let has = |route: &str| stated.routes.is_empty() || stated.routes.iter().any(|it| it == route);
    let mut found = Compared::default();
    if !(has("asm") && has("csource")) {
        return found;
    }
    let by_assembly = counts(source, &stated, "assembly");
    let by_source = counts(source, &stated, "source");
    for (line, kind) in lines_of_one_statement(source, &stated) {
        let counts = (by_assembly.get(&line), by_source.get(&line));
        match counts {
            (None, None) => (),
            (None, Some(_)) if WITHOUT_CODE.contains(&kind) => (),
            (assembly, source) if assembly == source => found.equal += 1,
            (assembly, by_source) => found.differences.push(Difference {
                name: source.file_name().unwrap().to_str().unwrap().to_owned(),
                line,
                assembly: assembly.copied(),
                source: by_source.copied(),
                code: text
                    .lines()
                    .nth(line as usize - 1)
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            }),
        }
    }
    found
}

/// Counts of the program's own lines, in all runs, by one route.
fn counts(source: &Path, stated: &Stated, via: &str) -> BTreeMap<u32, u64> {
    let shop = Workshop::new();
    let path = source.to_str().unwrap();
    let mut words = vec!["cc", "--via", via, "--", "gcc", "-g", "-w", "-O0"];
    words.extend([path, "-o", "prog"]);
    words.extend(stated.flags.iter().map(String::as_str));
    let said = shop.headcount(&words);
    assert_eq!(said.status, Some(0), "{words:?}: {}", said.stderr);
    let mut run = vec!["./prog"];
    run.extend(stated.args.iter().map(String::as_str));
    let _ = shop.run(&run);
    let name = source.file_name().unwrap().to_str().unwrap();
    let words = [
        "--by", "line", "--only", name, "--runs", "all", "--format", "csv",
    ];
    let csv = shop.report(&words);
    let rows = csv.lines().skip(1).map(|row| row.split(',').collect());
    rows.filter_map(|row: Vec<&str>| Some((row[1].parse().ok()?, row[2].parse().ok()?)))
        .collect()
}

/// What has counts, but no instructions of its own.
const WITHOUT_CODE: [&str; 5] = ["label", "case", "default", "do", "empty"];

/// Lines on which one statement begins, blocks in braces aside, and what it is. The parser decides,
/// not the eye: what comes out of a macro is on the line where its name is.
fn lines_of_one_statement(source: &Path, stated: &Stated) -> Vec<(u32, &'static str)> {
    let shop = Workshop::new();
    let mut preprocess = shop.command("gcc");
    preprocess.arg("-E").arg(source);
    let with_definitions = stated.flags.iter().filter(|it| !it.starts_with("-l"));
    let output = preprocess.args(with_definitions).output().unwrap();
    assert!(output.status.success(), "{}", source.display());
    let options = Options::default();
    let parsed = Source::parse(&output.stdout, &options).unwrap();
    let mut on_line: BTreeMap<u32, Vec<&'static str>> = BTreeMap::new();
    for start in parsed.statement_starts(&options) {
        let at = parsed.position(start.token);
        if Path::new(parsed.file(at)) == source && start.kind != "block" {
            on_line.entry(at.line).or_default().push(start.kind);
        }
    }
    let single = on_line.into_iter().filter(|(_, starts)| starts.len() == 1);
    single.map(|(line, starts)| (line, starts[0])).collect()
}
