//! What is the same, and what changed, in counts of two builds.

use headcount_model::{
    Block, Counted, FileId, Function, FunctionCounts, LineRun, LinkAddr, Module, Span,
};
use headcount_report::diff::{Diff, Limit, LineChange, Side, text};

/// A function: name, file, first line, and how often each line after that ran.
type Shape<'a> = (&'a str, u32, u32, &'a [u64]);

fn counted(path: &str, build: &str, files: &[&str], functions: &[Shape<'_>]) -> Counted {
    let mut module = Module {
        path: path.into(),
        build_id: build.into(),
        files: files.iter().map(|it| (*it).into()).collect(),
        ..Module::default()
    };
    let mut counts = Vec::new();
    for (number, (name, file, first, lines)) in functions.iter().enumerate() {
        let address = |line: usize| LinkAddr(0x1000 * (number as u64 + 1) + line as u64);
        let block = |line: usize| Block {
            address: address(line),
            code: vec![Span {
                address: address(line),
                bytes: vec![0x90],
            }],
            instructions: 1,
            lines: vec![LineRun {
                file: FileId(*file),
                line: first + line as u32,
                column: 0,
                is_stmt: true,
                instructions: 1,
                inline_copy: 0,
            }],
            place: None,
            operation: None,
        };
        module.functions.push(Function {
            name: (*name).into(),
            address: address(0),
            source: Some((FileId(*file), *first)),
            blocks: (0..lines.len()).map(block).collect(),
            edges: Vec::new(),
            counters: 1,
            compiled: Default::default(),
        });
        counts.push(FunctionCounts::whole(lines.iter().copied(), []));
    }
    Counted {
        module,
        functions: counts,
        sources: Default::default(),
    }
}

fn compare(old: &Counted, new: &Counted) -> Diff {
    let side = |counted| Side {
        counted: std::slice::from_ref(counted),
        repetitions: Vec::new(),
        runs: Vec::new(),
        cpus: Vec::new(),
    };
    Diff::new(&side(old), &side(new), &Default::default(), false).unwrap()
}

#[test]
fn what_only_moved_did_not_change() {
    let old = counted("/a/it", "1", &["/a/x.c"], &[("f", 0, 10, &[1, 50, 7])]);
    // Another folder, another name of the file, other lines, other addresses.
    let functions: [Shape<'_>; 2] = [("new", 0, 1, &[0]), ("f", 0, 110, &[1, 50, 7])];
    let new = counted("/b/it", "2", &["/b/y.c"], &functions);
    let diff = compare(&old, &new);
    assert!(diff.is_empty(), "{diff:?}");
    assert_eq!(diff.executed, [58, 58]);
    assert!(text(&diff, &[], 9, None).ends_with("\nNo difference.\n"));
}

#[test]
fn changed_lines_are_named_by_both_numbers() {
    let old = counted("/a/it", "1", &["x.c"], &[("f", 0, 10, &[1, 50, 7, 3])]);
    let new = counted("/a/it", "2", &["x.c"], &[("f", 0, 20, &[1, 50, 9, 90, 3])]);
    let diff = compare(&old, &new);
    let lines = &diff.changes[0].lines;
    let line = |old, new, executed| LineChange {
        file: "x.c".into(),
        numbers: [old, new],
        executed,
        text: None,
    };
    let expected = [
        line(None, Some(23), [0, 90]),
        line(Some(12), Some(22), [7, 9]),
    ];
    assert_eq!(*lines, expected);
    assert_eq!(diff.difference(), 92);
}

#[test]
fn functions_of_one_name_are_told_apart_by_their_files() {
    let files = ["a.c", "b.c"];
    let functions: [Shape<'_>; 2] = [("init", 0, 1, &[5]), ("init", 1, 1, &[6])];
    let old = counted("/a/it", "1", &files, &functions);
    let functions: [Shape<'_>; 2] = [("init", 1, 1, &[6]), ("init", 0, 1, &[8])];
    let new = counted("/a/it", "2", &files, &functions);
    let diff = compare(&old, &new);
    assert_eq!(diff.changes.len(), 1, "{diff:?}");
    assert_eq!(diff.changes[0].source, Some(("a.c".into(), 1)));
    assert_eq!(diff.changes[0].executed, [Some(5), Some(8)]);
}

#[test]
fn what_is_new_or_gone_counts_to_the_total_alone() {
    let old = counted(
        "/a/it",
        "1",
        &["x.c"],
        &[("gone", 0, 1, &[10]), ("f", 0, 5, &[100])],
    );
    let new = counted(
        "/a/it",
        "2",
        &["x.c"],
        &[("new", 0, 1, &[30]), ("f", 0, 5, &[100])],
    );
    let diff = compare(&old, &new);
    let names: Vec<&str> = diff.changes.iter().map(|it| it.function.as_str()).collect();
    assert_eq!(names, ["new", "gone"]);
    let over = |limit: &str| diff.regressions(&[Limit::parse(limit).unwrap()]).len();
    assert_eq!((over("function=0%"), over("10%"), over("20")), (0, 1, 0));
}
