//! Counts beside source text.

use headcount_model::{
    Block, Counted, FileId, Function, FunctionCounts, LineRun, LinkAddr, Module, Span,
};
use headcount_report::annotate::{self, Chosen, Excerpt};
use headcount_report::{LineCount, line_counts};
use std::collections::BTreeMap;

fn function(name: &str, address: u64, file: u32, lines: &[u32]) -> Function {
    let runs = lines.iter().map(|line| LineRun {
        file: FileId(file),
        line: *line,
        is_stmt: true,
        instructions: 1,
        inline_copy: 0,
    });
    Function {
        name: name.into(),
        address: LinkAddr(address),
        source: Some((FileId(file), lines[0])),
        blocks: vec![Block {
            address: LinkAddr(address),
            code: vec![Span {
                address: LinkAddr(address),
                bytes: vec![0x90; lines.len()],
            }],
            instructions: lines.len() as u32,
            lines: runs.collect(),
        }],
        edges: Vec::new(),
        counters: 1,
    }
}

fn program() -> Counted {
    Counted {
        module: Module {
            path: "/home/u/bin/max".into(),
            build_id: "1".into(),
            files: vec![
                "/home/u/src/max.c".into(),
                "/usr/include/util.h".into(),
                "empty.h".into(),
            ],
            functions: vec![
                function("main", 0x20, 0, &[10, 12]),
                function("_Z3maxii", 0x10, 0, &[3, 4]),
                function("util", 0x30, 1, &[1]),
            ],
            refusals: Vec::new(),
        },
        functions: [1, 1000, 0]
            .map(|count| FunctionCounts {
                blocks: vec![count],
                edges: Vec::new(),
            })
            .to_vec(),
    }
}

fn plain(listing: &str) -> String {
    // Colours are control sequences that end in m; nothing else may be one.
    let mut out = String::new();
    let mut rest = listing;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    out + rest
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn counts(of: &[(u32, u64)]) -> BTreeMap<u32, LineCount> {
    let count = |&(line, count)| {
        (
            line,
            LineCount {
                count,
                executed: count,
            },
        )
    };
    of.iter().map(count).collect()
}

#[test]
fn counts_stand_in_the_margin() {
    let text = "int main()\n{\n\treturn\u{1b}[2J\tx;\n\n}\n";
    let all = Excerpt {
        heading: "max.c".into(),
        lines: 1..=u32::MAX,
    };
    let shown = annotate::listing(
        &lines(text),
        &counts(&[(1, 1_234_567), (3, 0), (5, 1)]),
        &[all],
    );
    let expected = "\
max.c

    count   line
1,234,567      1 | int main()
               2 | {
        0 !    3 |         return\\x1b[2J   x;
               4 |
        1      5 | }
";
    assert_eq!(plain(&shown), expected);
}

#[test]
fn hot_and_never_are_coloured() {
    let all = Excerpt {
        heading: "x".into(),
        lines: 1..=9,
    };
    let shown = annotate::listing(
        &lines("a\nb\nc\nd\n"),
        &counts(&[(1, 100), (2, 20), (3, 2), (4, 0)]),
        &[all],
    );
    let count_of = |line: &str| {
        let row = shown
            .lines()
            .find(|row| plain(row).ends_with(line))
            .unwrap();
        row.split_once(' ').unwrap().0.to_owned()
    };
    let colours: Vec<String> = ["| a", "| b", "| c", "| d"].map(count_of).to_vec();
    assert!(colours[0].contains("\u{1b}[31m"), "{colours:?}"); // red
    assert!(colours[1].contains("\u{1b}[33m"), "{colours:?}"); // yellow
    assert!(!colours[2].contains('\u{1b}'), "{colours:?}");
    assert!(colours[3].contains("\u{1b}[36m"), "{colours:?}"); // cyan
}

#[test]
fn an_excerpt_beyond_the_end_of_the_file_is_empty() {
    let excerpt = Excerpt {
        heading: "gone".into(),
        lines: 10..=20,
    };
    let shown = annotate::listing(&lines("one\n"), &BTreeMap::new(), &[excerpt]);
    assert_eq!(plain(&shown), "gone\n\ncount   line\n");
}

#[test]
fn a_function_that_begins_at_its_brace_is_shown_with_its_heading() {
    let text = "int x;\n\nstatic int\nmax(int a)\n{\n    return a;\n}\n";
    let excerpt = Excerpt {
        heading: "max".into(),
        lines: 5..=7,
    };
    let shown = plain(&annotate::listing(
        &lines(text),
        &counts(&[(5, 1)]),
        &[excerpt],
    ));
    let first = shown.lines().nth(3);
    assert_eq!(first, Some("           3 | static int"));
    assert_eq!(shown.lines().count(), 3 + 5);
}

fn files(of: &Chosen) -> Vec<&str> {
    of.files.iter().map(String::as_str).collect()
}

#[test]
fn a_name_is_a_program_a_file_or_a_function() {
    let it = [program()];
    let max_c = "/home/u/src/max.c";
    // A program means the sources it has code of, without those of the system.
    for name in ["max", "bin/max", "./max", "/home/u/bin/max"] {
        assert_eq!(files(&annotate::choose(&it, name)), [max_c], "{name}");
    }
    for name in [
        "max.c",
        "src/max.c",
        "/home/u/src/max.c",
        "*.c",
        "/elsewhere/home/u/src/max.c",
    ] {
        let expected: &[&str] = if name.starts_with("/elsewhere") {
            &[]
        } else {
            &[max_c]
        };
        assert_eq!(files(&annotate::choose(&it, name)), expected, "{name}");
    }
    assert_eq!(
        files(&annotate::choose(&it, "util.h")),
        ["/usr/include/util.h"]
    );
    for name in ["max()", "_Z3maxii", "max(int, int)"] {
        let chosen = annotate::choose(&it, name);
        assert_eq!(
            chosen.functions.into_iter().collect::<Vec<_>>(),
            [(0, 1)],
            "{name}"
        );
    }
    for name in ["", "ax.c", "x", "main.c"] {
        assert!(annotate::choose(&it, name).is_empty(), "{name}");
    }
}

#[test]
fn a_function_is_shown_from_its_heading_to_its_last_line() {
    let it = [program()];
    let chosen = annotate::choose(&it, "ma*n");
    let excerpts = annotate::excerpts(&it, &chosen, true).unwrap();
    let of_file = &excerpts["/home/u/src/max.c"];
    assert_eq!(of_file.len(), 1);
    assert_eq!(of_file[0].lines, 10..=12);
    assert_eq!(
        of_file[0].heading,
        "main  /home/u/src/max.c:10\n1 call, 2 instructions executed; 0 of 2 never ran"
    );
}

#[test]
fn instructions_stand_under_their_lines() {
    let decode = |span: &Span| -> Vec<(LinkAddr, String)> {
        let at = |n: u64| (LinkAddr(span.address.0 + n), "nop".to_owned());
        (0..span.bytes.len() as u64).map(at).collect()
    };
    let source =
        |file: &str, line: u32| (file.ends_with("max.c")).then(|| format!("\tline {line};"));
    let shown =
        annotate::assembly(&program(), &|index| index == 1, true, &decode, &source).unwrap();
    let expected = "\
max(int, int)  /home/u/src/max.c:3
1,000 calls, 2,000 instructions executed; 0 of 2 never ran

count      address
                 3 |         line 3;
1,000         0x10  nop
                 4 |         line 4;
1,000         0x11  nop
";
    assert_eq!(plain(&shown), expected);
}

#[test]
fn lines_of_a_program_are_found_by_file() {
    let lines = line_counts(&[program()]).unwrap();
    let max = &lines["/home/u/src/max.c"];
    assert_eq!(max[&3].count, 1000);
    assert_eq!(max[&12].count, 1);
    assert_eq!(lines["/usr/include/util.h"][&1].count, 0);
}
