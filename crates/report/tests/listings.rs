//! Counts beside source text.

use headcount_model::{
    Block, Counted, FileId, Function, FunctionCounts, LineRun, LinkAddr, Module, Shift, Span,
};
use headcount_report::annotate::{self, Around, Chosen, Excerpt, Fold, LineBranches, Scale, View};
use headcount_report::{Count, LineCount, line_counts};
use std::collections::BTreeMap;

fn function(name: &str, address: u64, file: u32, lines: &[u32]) -> Function {
    let runs = lines.iter().map(|line| LineRun {
        file: FileId(file),
        line: *line,
        column: 0,
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
            place: None,
            operation: None,
        }],
        edges: Vec::new(),
        counters: 1,
        compiled: Default::default(),
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
            .map(|count| FunctionCounts::whole([count], []))
            .to_vec(),
        sources: Default::default(),
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
                count: Count::Exact(count),
                executed: Count::Exact(count),
                counted: true,
                may_have_run: count > 0,
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
        &View::default(),
    );
    let expected = "\
max.c

    count   line
1,234,567 █    1 | int main()
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
        &View::default(),
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
    let shown = annotate::listing(
        &lines("one\n"),
        &BTreeMap::new(),
        &[excerpt],
        &View::default(),
    );
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
        &View::default(),
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
    let shown = annotate::assembly(
        &program(),
        &|index| index == 1,
        true,
        &decode,
        &source,
        None,
    )
    .unwrap();
    let expected = "\
max(int, int)  /home/u/src/max.c:3
1,000 calls, 2,000 instructions executed; 0 of 2 never ran

count      address
                 3 |         line 3;
1,000 █       0x10  nop
                 4 |         line 4;
1,000 █       0x11  nop
";
    assert_eq!(plain(&shown), expected);
}

#[test]
fn lines_of_a_program_are_found_by_file() {
    let lines = line_counts(&[program()]).unwrap();
    let max = &lines["/home/u/src/max.c"];
    assert_eq!(max[&3].count, Count::Exact(1000));
    assert_eq!(max[&12].count, Count::Exact(1));
    assert_eq!(lines["/usr/include/util.h"][&1].count, Count::Exact(0));
}

/// Everything a histogram can meet, eighty columns wide.
fn bars(scale: Scale) -> String {
    let text = "int max(int a)\n{\n\tfor (int i = 0; i < the_number_of_all_items_there_are; i++)\n\
                \t\twork(i);\n\tif (never)\n\t\tabort();\n\tother();\n\tendless();\n}\n";
    let mut counts = counts(&[(2, 1), (3, 101), (4, 25), (5, 1), (6, 0), (9, 1)]);
    let count = |count| LineCount {
        count,
        executed: count,
        counted: count != Count::Unknown,
        may_have_run: true,
    };
    counts.insert(7, count(Count::Unknown));
    counts.insert(8, count(Count::AtLeast(10)));
    let all = Excerpt {
        heading: "max.c\n101 instructions executed; 1 of 20 never ran".into(),
        lines: 1..=u32::MAX,
    };
    plain(&annotate::histogram(
        &lines(text),
        &counts,
        &[all],
        None,
        scale,
        80,
    ))
}

#[test]
fn a_full_histogram_has_one_mark_an_execution() {
    insta::assert_snapshot!(bars(Scale::Full), @r"
    max.c
    101 instructions executed; 1 of 20 never ran

    count   line
               1 | int max(int a)                  |
        1      2 | {                               | *
      101      3 |         for (int i = 0; i < ... | ******************************>
       25      4 |                 work(i);        | *************************
        1      5 |         if (never)              | *
        0 !    6 |                 abort();        |
        -      7 |         other();                |
     ≥ 10      8 |         endless();              | **********>
        1      9 | }                               | *
    ");
}

#[test]
fn a_scaled_histogram_fills_the_width() {
    let shown = bars(Scale::Scaled);
    let widest = shown.lines().map(|line| line.chars().count()).max();
    assert_eq!(widest, Some(80));
    insta::assert_snapshot!(shown, @r"
    max.c
    101 instructions executed; 1 of 20 never ran

    count   line
               1 | int max(int a)                  |
        1      2 | {                               | *
      101      3 |         for (int i = 0; i < ... | *******************************
       25      4 |                 work(i);        | ********
        1      5 |         if (never)              | *
        0 !    6 |                 abort();        |
        -      7 |         other();                |
     ≥ 10      8 |         endless();              | ***
        1      9 | }                               | *
    ");
}

#[test]
fn bars_fit_into_any_width() {
    let all = [Excerpt {
        heading: "x".into(),
        lines: 1..=9,
    }];
    for width in [0, 1, 20, 40, 1000] {
        for scale in [Scale::Full, Scale::Scaled] {
            let counts = counts(&[(1, u64::MAX), (2, 1), (3, 0)]);
            let shown = annotate::histogram(&lines("a\nb\nc\n"), &counts, &all, None, scale, width);
            let rows: Vec<String> = plain(&shown).lines().skip(3).map(str::to_owned).collect();
            assert!(rows[0].contains("| a | **"), "{rows:?}");
            assert!(rows[1].ends_with("| b | *"), "{rows:?}");
            assert!(rows[2].ends_with("| c |"), "{rows:?}");
            let longest = rows.iter().map(|row| row.chars().count()).max();
            assert!(longest.unwrap() <= width.max(70), "{rows:?}");
        }
    }
}

#[test]
fn lines_that_were_not_counted_have_a_dash_in_the_margin() {
    let mut it = program();
    it.functions[1].blocks = vec![None]; // max
    let counts = line_counts(std::slice::from_ref(&it)).unwrap();
    let excerpt = Excerpt {
        heading: "x".into(),
        lines: 3..=5,
    };
    let text = lines(&"text\n".repeat(12));
    let shown = annotate::listing(
        &text,
        &counts["/home/u/src/max.c"],
        &[excerpt],
        &View::default(),
    );
    let rows: Vec<String> = plain(&shown).lines().skip(3).map(str::to_owned).collect();
    assert_eq!(
        rows,
        [
            "    -      3 | text",
            "    -      4 | text",
            "           5 | text"
        ]
    );
    // Of a function that was not selected there is nothing to choose.
    assert!(annotate::choose(&[it], "max()").is_empty());
}

#[test]
fn instructions_are_marked_as_far_as_they_were_counted() {
    let mut it = program();
    let decode = |span: &Span| -> Vec<(LinkAddr, String)> {
        let at = |n: u64| (LinkAddr(span.address.0 + n), "nop".to_owned());
        (0..span.bytes.len() as u64).map(at).collect()
    };
    it.functions[1].at_least = vec![0];
    it.functions[1].shifts = vec![Shift {
        block: 0,
        from: 1,
        delta: -1,
    }];
    let source = |_: &str, _: u32| Some("x;".to_owned());
    let shown = annotate::assembly(&it, &|index| index == 1, true, &decode, &source, None).unwrap();
    let expected = "\
max(int, int)  /home/u/src/max.c:3
≥ 1,000 calls, ≥ 1,999 instructions executed; 0 of 2 never ran

  count      address
                   3 | x;
≥ 1,000 █       0x10  nop
                   4 | x;
  ≥ 999 █       0x11  nop
";
    assert_eq!(plain(&shown), expected);
}

/// A loop with a branch in it, and much that does not matter.
fn shown_with(view: &View<'_>) -> String {
    let text = "int f(int n)\n{\n".to_owned()
        + &"    /* nothing */\n".repeat(10)
        + "    for (int i = 0; i < n && some_condition_that_is_long(i, n); i++)\n\
           \t\twork(i);\n    if (n < 0)\n        abort();\n}\n";
    let counts = counts(&[(2, 1), (13, 1001), (14, 1000), (15, 1), (16, 0), (17, 1)]);
    let all = [Excerpt {
        heading: "f.c".into(),
        lines: 1..=u32::MAX,
    }];
    plain(&annotate::listing(&lines(&text), &counts, &all, view))
}

#[test]
fn branches_folds_and_widths() {
    let of = |gone, ways, to: &[(u32, u64)]| LineBranches {
        branches: ways / 2,
        ways,
        gone,
        to: to.iter().copied().collect(),
        ..LineBranches::default()
    };
    let branches = BTreeMap::from([
        (13, of(3, 4, &[(14, 1000), (15, 1), (17, 0)])),
        (15, of(1, 2, &[(16, 0), (17, 1)])),
    ]);
    let mut view = View {
        times: None,
        values: None,
        branches: Some(&branches),
        fold: Some(Fold {
            around: Around::Ran,
            context: 1,
        }),
        width: Some(60),
    };
    insta::assert_snapshot!(shown_with(&view), @r"
    f.c

    count   line
               1 | int f(int n)
        1      2 | {
               3 |     /* nothing */
             ... : 8 lines
              12 |     /* nothing */
    1,001 █   13 |     for (int i = 0; i < n &&
                 |         some_condition_that_is_long(i, n);
                 |         i++)  <- 3 of 4 outcomes seen
    1,000 █   14 |                 work(i);
        1     15 |     if (n < 0)  <- never
        0 !   16 |         abort();
        1     17 | }
    ");
    view.fold = Some(Fold {
        around: Around::Never,
        context: 0,
    });
    insta::assert_snapshot!(shown_with(&view), @r"
    f.c

    count   line
             ... : 15 lines
        0 !   16 |         abort();
             ... : 1 line
    ");
    for width in [0, 30, 45, 60, 80] {
        view.width = Some(width);
        view.fold = None;
        let widest = shown_with(&view).lines().map(|it| it.chars().count()).max();
        assert!(widest <= Some(width.max(45)), "{width}");
    }
}
