//! What the numbers in a report mean, and what the bytes look like.

use headcount_model::{
    Block, BlockKind, Counted, EdgeKind, FileId, Function, FunctionCounts, FunctionEdge, LineRun,
    LinkAddr, Module, Refusal, SourcePlace, Span,
};
use headcount_report::{
    Cell, Error, Only, Report, Request, RunSummary, Table, Unit, csv, diff, json, line_counts, text,
};

/// A run of lines: file, line, whether a statement begins, instructions.
type Lines<'a> = &'a [(u32, u32, bool, u32)];

fn block(address: u64, instructions: u32, lines: Lines<'_>) -> Block {
    let run = |&(file, line, is_stmt, instructions): &(u32, u32, bool, u32)| LineRun {
        file: FileId(file),
        line,
        column: 0,
        is_stmt,
        instructions,
        inline_copy: 0,
    };
    Block {
        address: LinkAddr(address),
        code: vec![Span {
            address: LinkAddr(address),
            bytes: vec![0x90; instructions as usize],
        }],
        instructions,
        lines: lines.iter().map(run).collect(),
        place: None,
        operation: None,
    }
}

fn function(name: &str, source: Option<(u32, u32)>, blocks: Vec<Block>) -> Function {
    Function {
        name: name.into(),
        address: blocks[0].address,
        source: source.map(|(file, line)| (FileId(file), line)),
        blocks,
        edges: Vec::new(),
        counters: 1,
        compiled: Default::default(),
    }
}

fn counted(path: &str, files: &[&str], functions: Vec<(Function, Vec<u64>)>) -> Counted {
    let (functions, counts): (Vec<_>, Vec<_>) = functions.into_iter().unzip();
    let counts = counts
        .into_iter()
        .zip(&functions)
        .map(|(blocks, function)| FunctionCounts::whole(blocks, vec![0; function.edges.len()]));
    let counts = counts.collect();
    Counted {
        module: Module {
            path: path.into(),
            build_id: path.into(),
            files: files.iter().map(|it| (*it).into()).collect(),
            functions,
            refusals: Vec::new(),
        },
        functions: counts,
        sources: Default::default(),
    }
}

/// One-byte instructions, numbered.
fn decode(span: &Span) -> Vec<(LinkAddr, String)> {
    (0..span.bytes.len() as u64)
        .map(|n| (LinkAddr(span.address.0 + n), format!("nop {n}")))
        .collect()
}

fn request(by: Unit) -> Request<'static> {
    Request::all(by, &decode)
}

fn report(counted: &[Counted], request: &Request<'_>) -> Report {
    let run = RunSummary {
        command: vec!["./it".into()],
        status: Some(0),
    };
    Report::new(counted, vec![run], Vec::new(), request).unwrap()
}

fn rows(table: &Table) -> Vec<String> {
    csv::write(table)
        .lines()
        .skip(1)
        .map(str::to_owned)
        .collect()
}

fn rows_by(counted: &[Counted], by: Unit) -> Vec<String> {
    rows(&report(counted, &request(by)).table)
}

#[test]
fn a_line_counts_as_often_as_its_busiest_statement() {
    // `for (a; b; c)`: a runs once, b 11 times, c 10 times; all on line 3.
    let main = function(
        "main",
        Some((0, 1)),
        vec![
            block(0x10, 2, &[(0, 3, true, 2)]),
            block(0x20, 1, &[(0, 3, true, 1)]),
            block(0x30, 4, &[(0, 4, true, 3), (0, 3, true, 1)]),
        ],
    );
    let it = [counted("it", &["a.c"], vec![(main, vec![1, 11, 10])])];
    assert_eq!(
        rows_by(&it, Unit::Line),
        ["a.c,3,11,23,exact", "a.c,4,10,30,exact"]
    );
}

#[test]
fn a_statement_that_only_goes_on_does_not_begin() {
    // The busy block holds the end of line 3, but no statement of it begins there.
    let main = function(
        "main",
        None,
        vec![
            block(0x10, 1, &[(0, 3, true, 1)]),
            block(0x20, 1, &[(0, 3, false, 1)]),
            block(0x30, 1, &[(0, 9, false, 1)]),
        ],
    );
    let it = [counted("it", &["a.c"], vec![(main, vec![2, 50, 7])])];
    // Line 9 has no beginning at all: its busiest block speaks for it.
    assert_eq!(
        rows_by(&it, Unit::Line),
        ["a.c,3,2,52,exact", "a.c,9,7,7,exact"]
    );
}

#[test]
fn copies_of_a_line_are_added_up() {
    let copy =
        |name: &str, at| function(name, Some((0, 3)), vec![block(at, 2, &[(0, 3, true, 2)])]);
    let one = counted(
        "one",
        &["t.h"],
        vec![
            (copy("f<int>", 0x10), vec![4]),
            (copy("f<char>", 0x20), vec![6]),
        ],
    );
    let two = counted("two", &["t.h"], vec![(copy("f<int>", 0x10), vec![100])]);
    assert_eq!(rows_by(&[one, two], Unit::Line), ["t.h,3,110,220,exact"]);
}

#[test]
fn a_line_that_several_programs_have_is_added_up_whatever_the_order_of_their_files() {
    let program = |path: &str, files: &[&str], own: u32, times: u64| {
        let blocks = vec![block(16, 1, &[(own, 7, true, 1)])];
        counted(
            path,
            files,
            vec![(function("f", Some((own, 6)), blocks), vec![times])],
        )
    };
    let programs = [
        program("/one", &["lib.rs", "one.rs"], 0, 5),
        program("/two", &["two.rs", "lib.rs"], 1, 3),
    ];
    assert_eq!(rows_by(&programs, Unit::Line), ["lib.rs,7,8,8,exact"]);
}

#[test]
fn line_zero_is_no_line_but_its_instructions_are_the_files() {
    let main = function(
        "main",
        Some((0, 1)),
        // One instruction without a line at the front, two of line 0, one of line 5 elsewhere.
        vec![block(0x10, 4, &[(0, 0, true, 2), (1, 5, true, 1)])],
    );
    let it = [counted("it", &["a.c", "b.h"], vec![(main, vec![3])])];
    assert_eq!(rows_by(&it, Unit::Line), ["b.h,5,3,3,exact"]);
    assert_eq!(
        rows_by(&it, Unit::File),
        ["a.c,9,3,0,3,1,0", "b.h,3,1,0,0,0,0"]
    );
}

#[test]
fn code_without_a_source_belongs_to_no_known_file() {
    let known = function(
        "main",
        Some((0, 1)),
        vec![block(0x10, 2, &[(0, 1, true, 2)])],
    );
    let unknown = function("_start", None, vec![block(0x20, 5, &[])]);
    let it = [counted(
        "it",
        &["a.c"],
        vec![(known, vec![1]), (unknown, vec![1])],
    )];
    assert_eq!(
        rows_by(&it, Unit::File),
        ["??,5,5,0,1,1,0", "a.c,2,2,0,1,1,0"]
    );
    assert_eq!(
        rows_by(&it, Unit::Function),
        ["it,_start,??,0,1,5,5,0", "it,main,a.c,1,1,2,2,0"]
    );
}

#[test]
fn a_function_is_called_as_often_as_its_entry_runs() {
    // The entry need not be the block with the lowest address.
    let mut f = function(
        "f",
        None,
        vec![
            block(0x10, 1, &[]),
            block(0x20, 3, &[]),
            block(0x30, 7, &[]),
        ],
    );
    f.address = LinkAddr(0x20);
    let it = [counted("it", &[], vec![(f, vec![90, 5, 0])])];
    assert_eq!(rows_by(&it, Unit::Function), ["it,f,??,0,5,105,11,7"]);
    assert_eq!(rows_by(&it, Unit::Module), ["it,105,11,7"]);
}

#[test]
fn hottest_comes_first_and_equals_by_name() {
    let one = |name: &str, at| function(name, None, vec![block(at, 1, &[])]);
    let it = [counted(
        "it",
        &[],
        vec![
            (one("b", 0x30), vec![5]),
            (one("c", 0x20), vec![9]),
            (one("a", 0x10), vec![5]),
        ],
    )];
    let names = |by: &Request<'_>| -> Vec<String> {
        let table = report(&it, by).table;
        let name = |row: &headcount_report::Row| match &row.cells[1] {
            Cell::Text(name) => name.to_string(),
            _ => unreachable!(),
        };
        table.rows.iter().map(name).collect()
    };
    assert_eq!(names(&request(Unit::Function)), ["c", "a", "b"]);
    // Blocks come in the order of the program.
    assert_eq!(names(&request(Unit::Block)), ["a", "c", "b"]);
    let by_count = Request {
        sort: Some("count".into()),
        top: Some(2),
        ..request(Unit::Block)
    };
    assert_eq!(names(&by_count), ["c", "a"]);
    assert_eq!(report(&it, &by_count).table.left_out, 1);
}

#[test]
fn only_means_functions_and_files() {
    let main = function(
        "main",
        Some((0, 1)),
        vec![block(0x10, 1, &[(0, 1, true, 1)])],
    );
    let area = function(
        "_ZN5shape4areaEi",
        Some((1, 7)),
        vec![block(0x20, 2, &[(1, 8, true, 1), (2, 3, true, 1)])],
    );
    let it = [counted(
        "/bin/it",
        &["src/main.cc", "src/shape.cc", "vec.h"],
        vec![(main, vec![1]), (area, vec![2])],
    )];
    let only = |by: Unit, pattern: &str| {
        let request = Request {
            only: Only::new(&[pattern.into()], &[&it], true),
            ..request(by)
        };
        rows(&report(&it, &request).table)
    };
    assert_eq!(
        only(Unit::Line, "shape::*"),
        ["src/shape.cc,8,2,2,exact", "vec.h,3,2,2,exact"]
    );
    assert_eq!(only(Unit::Line, "*.h"), ["vec.h,3,2,2,exact"]);
    assert_eq!(only(Unit::Function, "shape.cc").len(), 1);
    assert_eq!(only(Unit::Function, "_ZN5shape4areaEi").len(), 1);
    assert_eq!(only(Unit::File, "main.cc"), ["src/main.cc,1,1,0,1,1,0"]);
    assert_eq!(only(Unit::Module, "main"), ["/bin/it,1,1,0"]);
    assert_eq!(only(Unit::Module, "it"), ["/bin/it,5,3,0"]);
    assert!(only(Unit::Function, "nothing").is_empty());
    // Lines are those, and what has code there.
    assert_eq!(only(Unit::Line, "vec.h:1-3"), ["vec.h,3,2,2,exact"]);
    assert_eq!(only(Unit::Function, "vec.h:3").len(), 1);
    assert_eq!(only(Unit::File, "it!vec.h:-3"), ["vec.h,2,1,0,0,0,0"]);
    assert_eq!(only(Unit::Line, "shape.cc:9-"), [""; 0]);
    assert_eq!(only(Unit::Line, "shape.cc:8").len(), 1);
    assert!(only(Unit::Function, "other!vec.h:3").is_empty());
}

#[test]
fn of_what_never_ran_the_largest_comes_first() {
    let idle = |name: &str, address, instructions| {
        let block = block(address, instructions, &[(0, 1, true, instructions)]);
        (function(name, Some((0, 1)), vec![block]), vec![0])
    };
    let functions = vec![
        idle("a_small", 0x10, 1),
        idle("b_large", 0x20, 9),
        idle("c_small", 0x40, 1),
        idle("d_middle", 0x50, 5),
    ];
    let it = [counted("it", &["a.c"], functions)];
    let request = Request {
        never: true,
        ..request(Unit::Function)
    };
    let rows = rows(&report(&it, &request).table);
    let names: Vec<_> = rows.iter().filter_map(|it| it.split(',').nth(1)).collect();
    assert_eq!(names, ["b_large", "d_middle", "a_small", "c_small"]);
}

#[test]
fn never_shows_what_never_ran() {
    let ran = function(
        "ran",
        Some((0, 1)),
        vec![
            block(0x10, 1, &[(0, 1, true, 1)]),
            block(0x18, 1, &[(0, 2, true, 1)]),
        ],
    );
    let idle = function(
        "idle",
        Some((0, 5)),
        vec![block(0x20, 2, &[(0, 6, true, 2)])],
    );
    let it = [counted(
        "it",
        &["a.c"],
        vec![(ran, vec![3, 0]), (idle, vec![0])],
    )];
    let never = |by| {
        rows(
            &report(
                &it,
                &Request {
                    never: true,
                    ..request(by)
                },
            )
            .table,
        )
    };
    assert_eq!(never(Unit::Function), ["it,idle,a.c,5,0,0,2,2"]);
    assert_eq!(never(Unit::Line), ["a.c,2,0,0,exact", "a.c,6,0,0,exact"]);
    assert_eq!(never(Unit::Block), ["it,ran,0x18,1,0", "it,idle,0x20,2,0"]);
    assert_eq!(never(Unit::Instruction).len(), 3);
}

#[test]
fn edges_show_where_control_went() {
    let mut f = function("f", None, vec![block(0x10, 1, &[]), block(0x20, 1, &[])]);
    let edge = |from, to, kind| FunctionEdge { from, to, kind };
    f.edges = vec![
        edge(Some(1), None, EdgeKind::Leave),
        edge(Some(0), Some(1), EdgeKind::Taken),
        edge(Some(0), Some(1), EdgeKind::Fall),
        edge(None, Some(0), EdgeKind::Entry),
    ];
    let mut it = counted("it", &[], vec![(f, vec![3, 3])]);
    it.functions[0].edges = [3, 2, 1, 3].map(Some).to_vec();
    assert_eq!(
        rows_by(&[it], Unit::Edge),
        [
            "it,f,,0x10,entry,3",
            "it,f,0x10,0x20,fall,1",
            "it,f,0x10,0x20,taken,2",
            "it,f,0x20,,leave,3"
        ]
    );
}

#[test]
fn instructions_have_the_count_of_their_block() {
    let mut f = function("f", None, vec![block(0x10, 2, &[]), block(0x20, 1, &[])]);
    f.blocks[1].instructions = 2; // more than its code shows
    let it = [counted("it", &[], vec![(f, vec![3, 1])])];
    let report = report(&it, &request(Unit::Instruction));
    assert_eq!(
        rows(&report.table),
        [
            "it,f,0x10,3,nop 0",
            "it,f,0x11,3,nop 1",
            "it,f,0x20,1,nop 0"
        ]
    );
    assert_eq!(
        report.notes,
        ["The block of f at 0x20 has 2 instructions, but its stored code shows 1."]
    );
}

#[test]
fn sums_that_do_not_fit_are_refused() {
    let f = function("f", None, vec![block(0x10, 2, &[])]);
    let it = [counted("it", &[], vec![(f, vec![u64::MAX])])];
    for by in [Unit::Function, Unit::Block] {
        let error = Report::new(&it, Vec::new(), Vec::new(), &request(by)).unwrap_err();
        assert_eq!(error, Error::TooLarge);
    }
    let f = function("f", None, vec![block(0x10, 1, &[(0, 1, true, 1)])]);
    let one = counted("it", &["a.c"], vec![(f, vec![u64::MAX])]);
    assert_eq!(line_counts(&[one.clone(), one]), Err(Error::TooLarge));
}

/// A program whose author does not like us.
fn nasty() -> Counted {
    let name = "f\u{1b}[2J,\"q\"\r\n\u{202e}\u{9b}";
    let f = function(name, Some((0, 1)), vec![block(0x10, 1, &[(0, 1, true, 1)])]);
    let mut it = counted("/tmp/a\u{7}b", &["x\u{1b}]0;y\u{7}.c"], vec![(f, vec![1])]);
    it.module.refusals = vec![Refusal {
        subject: "g\u{1b}[m".into(),
        file: "z\u{9b}.s".into(),
        line: 3,
        reason: "it says \u{1b}[31mno\u{1b}[m".into(),
    }];
    it
}

#[test]
fn nothing_in_a_name_commands_a_terminal() {
    let all = [
        Unit::Module,
        Unit::File,
        Unit::Function,
        Unit::Line,
        Unit::Block,
        Unit::Instruction,
    ];
    for by in all {
        let mut report = report(&[nasty()], &request(by));
        report.runs[0].command.push("\u{1b}c".into());
        report.notes.push("a \u{1b}c note".into());
        for text in [shown_text(&report), json::write(&report)] {
            let bad = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(bad), "{by:?}: {text:?}");
        }
    }
}

#[test]
fn csv_quotes_as_rfc_4180_says() {
    let csv = csv::write(&report(&[nasty()], &request(Unit::Block)).table);
    assert_eq!(
        csv,
        "module,function,address,instructions,count\n\
         /tmp/a\\x07b,\"f\\x1b[2J,\"\"q\"\"\\r\\n\\u{202e}\\x9b\",0x10,1,1\n"
    );
}

#[test]
fn csv_begins_no_formula_and_leaves_ordinary_names_alone() {
    let cases = [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("=1,2", "\"'=1,2\""),
        ("+f", "'+f"),
        ("-[NSObject foo]", "'-[NSObject foo]"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tf", "\\tf"),
        ("\rf", "\\rf"),
        ("a\nb", "a\\nb"),
        ("operator+", "operator+"),
        ("a-b=c@plt", "a-b=c@plt"),
        ("'quoted'", "'quoted'"),
        ("größe::<α>", "größe::<α>"),
    ];
    for (name, shown) in cases {
        let f = function(name, None, vec![block(0x10, 1, &[])]);
        let it = [counted("it", &[], vec![(f, vec![1])])];
        let wanted = format!("it,{shown},0x10,1,1");
        assert_eq!(rows_by(&it, Unit::Block), [wanted], "{name:?}");
        let run = |counted| diff::Side {
            counted,
            repetitions: Vec::new(),
            runs: Vec::new(),
            cpus: Vec::new(),
        };
        let diff = diff::Diff::new(&run(&[]), &run(&it), &Only::default(), false).unwrap();
        let wanted = format!("it,{shown},,1,1,,1");
        let csv = diff::csv(&diff);
        assert_eq!(csv.lines().skip(1).collect::<Vec<_>>(), [wanted]);
    }
}

#[test]
fn json_keeps_every_character() {
    let json = json::write(&report(&[nasty()], &request(Unit::Function)));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["version"], 1);
    assert_eq!(value["by"], "function");
    assert_eq!(
        value["rows"][0]["function"],
        "f\u{1b}[2J,\"q\"\r\n\u{202e}\u{9b}"
    );
    assert_eq!(
        value["rows"][0]["linkage_name"],
        value["rows"][0]["function"]
    );
    assert_eq!(value["refused"][0]["subject"], "g\u{1b}[m");
    assert_eq!(value["runs"][0]["command"][0], "./it");
    let empty = json::write(&report(&[], &request(Unit::Line)));
    let value: serde_json::Value = serde_json::from_str(&empty).unwrap();
    assert_eq!(value["rows"].as_array().unwrap().len(), 0);
}

#[test]
fn the_text_report_ends_with_what_was_not_counted() {
    let mut it = nasty();
    let shown = shown_text(&report(std::slice::from_ref(&it), &request(Unit::Function)));
    assert!(
        shown.ends_with("\nNot counted:\n  g\\x1b[m (z\\x9b.s:3): it says \\x1b[31mno\\x1b[m\n"),
        "{shown}"
    );
    it.module.refusals.clear();
    let shown = shown_text(&report(&[it], &request(Unit::Function)));
    assert!(shown.ends_with("\nNot counted: nothing.\n"), "{shown}");
}

#[test]
fn what_is_not_counted_a_thousand_times_over_is_told_once() {
    let refusal = |number: u32| Refusal {
        subject: format!("f{number:04}"),
        reason: format!("it has bytes that are no instructions at {number:#x} ({number} bytes)"),
        file: String::new(),
        line: 0,
    };
    let mut it = nasty();
    it.module.path = "/bin/it".to_owned();
    it.module.refusals.extend((0..2000).map(refusal));
    let shown = shown_text(&report(std::slice::from_ref(&it), &request(Unit::Function)));
    let expected = "
Not counted:
  f0000: it has bytes that are no instructions at 0x0 (0 bytes)
  f0001: it has bytes that are no instructions at 0x1 (1 bytes)
  f0002: it has bytes that are no instructions at 0x2 (2 bytes)
  1,997 more in it (--json names them): it has bytes that are no instructions at ... (... bytes)
  g\\x1b[m (z\\x9b.s:3): it says \\x1b[31mno\\x1b[m
";
    assert!(shown.ends_with(expected), "{shown}");
    it.module.refusals.truncate(20);
    let shown = shown_text(&report(&[it], &request(Unit::Function)));
    assert!(shown.contains("f0018"), "{shown}");
}

#[test]
fn the_text_report_is_aligned() {
    let one =
        |name: &str, at, n| function(name, Some((0, 1)), vec![block(at, n, &[(0, 1, true, n)])]);
    let a = counted(
        "/bin/a",
        &["a.c"],
        vec![
            (one("main", 0x10, 7), vec![1]),
            (one("work", 0x20, 38), vec![524_353]),
        ],
    );
    let b = counted(
        "/lib/libb.so",
        &["b.c"],
        vec![(one("_Z3foov", 0x10, 2), vec![0])],
    );
    let shown = shown_text(&report(&[a, b], &request(Unit::Function)));
    let expected = "\
./it
19,925,421 instructions executed; 2 of 47 never ran

  executed   share    calls  instructions  never  source  module   function
19,925,414  100.0%  524,353            38      0  a.c:1   a        work
         7    0.0%        1             7      0  a.c:1   a        main
         0    0.0%        0             2      2  b.c:1   libb.so  foo()

Not counted: nothing.
";
    assert_eq!(shown, expected);
}

#[test]
fn sources_are_named_below_the_folder_they_share() {
    let of_file = |file: u32, at| {
        let lines = [(file, 1, true, 1)];
        function("f", Some((file, 1)), vec![block(at, 1, &lines)])
    };
    let files = |names: [&str; 3]| {
        let functions = (0..3).map(|file| (of_file(file, 0x10 + u64::from(file)), vec![1]));
        let it = counted("/bin/it", &names, functions.collect());
        shown_text(&report(&[it], &request(Unit::Line)))
    };
    let shown = files(["/home/u/a/é.c", "/home/u/a/ê/b.c", "/usr/include/x.h"]);
    assert!(
        shown.contains("never ran\nsources in /home/u/a/\n\n"),
        "{shown}"
    );
    for row in ["  é.c:1\n", "  ê/b.c:1\n", "  /usr/include/x.h:1\n"] {
        assert!(shown.contains(row), "{shown}");
    }
    let shown = files(["/home/u/a.c", "/tmp/b.c", "c.c"]);
    assert!(!shown.contains("sources in"), "{shown}");
    assert!(shown.contains("  /home/u/a.c:1\n"), "{shown}");
    // Nor if it is the folder of one among many.
    let shown = files(["/home/u/a.c", "b.c", "c.c"]);
    assert!(!shown.contains("sources in"), "{shown}");
    assert!(shown.contains("  /home/u/a.c:1\n"), "{shown}");
}

/// A function of two blocks of source text, which ran three times and never.
fn of_source() -> Counted {
    let place = |line, column, kind| SourcePlace {
        file: FileId(0),
        line,
        column,
        kind,
    };
    let source_block = |address, place: SourcePlace| Block {
        address: LinkAddr(address),
        instructions: 1,
        lines: vec![LineRun {
            file: FileId(0),
            line: place.line,
            column: 0,
            is_stmt: true,
            instructions: 1,
            inline_copy: 0,
        }],
        place: Some(place),
        ..Block::default()
    };
    let function = Function {
        name: "f".into(),
        address: LinkAddr(1),
        source: Some((FileId(0), 2)),
        blocks: vec![
            source_block(1, place(2, 5, BlockKind::Function)),
            source_block(2, place(3, 9, BlockKind::TrueOperand)),
        ],
        edges: Vec::new(),
        counters: 2,
        compiled: Default::default(),
    };
    Counted {
        module: Module {
            path: "/p/prog".into(),
            files: vec!["a.c".into()],
            functions: vec![function],
            ..Module::default()
        },
        functions: vec![FunctionCounts::whole(vec![3, 0], Vec::new())],
        sources: Default::default(),
    }
}

#[test]
fn blocks_of_source_text_say_where_and_what_they_are() {
    let report = report(&[of_source()], &request(Unit::Block));
    assert_eq!(
        csv::write(&report.table),
        "module,function,address,instructions,count,file,line,column,kind,statements\n\
         /p/prog,f,,,3,a.c,2,5,function,1\n\
         /p/prog,f,,,0,a.c,3,9,true operand,1\n"
    );
}

#[test]
fn statements_have_columns_of_their_own() {
    let lines = [(0, 1, true, 4)];
    let code = function("main", Some((0, 1)), vec![block(0x10, 4, &lines)]);
    let code = counted("/p/code", &["b.c"], vec![(code, vec![2])]);
    let both = [code, of_source()];
    let written = |by| csv::write(&report(&both, &request(by)).table);
    assert_eq!(
        written(Unit::Function),
        "module,function,file,line,calls,executed,instructions,never,\
         statements_executed,statements,statements_never\n\
         /p/code,main,b.c,1,2,8,4,0,,,\n\
         /p/prog,f,a.c,2,3,,,,3,2,1\n"
    );
    assert_eq!(
        written(Unit::Module),
        "module,executed,instructions,never,statements_executed,statements,statements_never\n\
         /p/code,8,4,0,,,\n\
         /p/prog,,,,3,2,1\n"
    );
    assert_eq!(
        written(Unit::File),
        "file,executed,instructions,never,blocks_executed,blocks,blocks_never,\
         statements_executed,statements,statements_never\n\
         b.c,8,4,0,2,1,0,,,\n\
         a.c,,,,3,2,1,3,2,1\n"
    );
    assert_eq!(
        written(Unit::Line),
        "file,line,count,executed,exactness,statements_executed\n\
         a.c,2,3,,exact,3\n\
         a.c,3,0,,exact,0\n\
         b.c,1,2,8,exact,\n"
    );
    let shown = shown_text(&report(&both, &request(Unit::Function)));
    for line in [
        "8 instructions executed; 0 of 4 never ran\n3 statements executed; 1 of 2 never ran\n",
        "executed   share  calls  instructions  never  source  module  function\n",
        "       8  100.0%      2             4      0  b.c:1   code    main\n",
        "       3  100.0%      3  2 statements      1  a.c:2   prog    f\n",
    ] {
        assert!(shown.contains(line), "{line}{shown}");
    }
    let shown = shown_text(&report(&[of_source()], &request(Unit::Function)));
    let titles = "executed   share  calls  statements  never  source  function\n";
    assert!(shown.contains(titles), "{shown}");
}

/// What has no code at all is in no file by the instructions that it has not.
#[test]
fn a_block_is_in_the_file_of_its_first_instruction() {
    let lines = [(1, 7, true, 0), (0, 1, true, 4)];
    let main = function("main", Some((0, 1)), vec![block(0x10, 4, &lines)]);
    let it = counted("/p/it", &["a.c", "a.h"], vec![(main, vec![2])]);
    assert_eq!(rows_by(&[it], Unit::File), ["a.c,8,4,0,2,1,0"]);
}

#[test]
fn of_source_text_there_are_no_edges_and_that_is_said() {
    let shown = shown_text(&report(&[of_source()], &request(Unit::Edge)));
    assert!(
        !shown.contains("no row") && !shown.contains("Not counted"),
        "{shown}"
    );
    let told = "Source text was counted, which has no edges: `--by block` has its counts.\n";
    assert!(shown.ends_with(told), "{shown}");
}

#[test]
fn columns_and_copies_show_the_counts_of_source_text() {
    use headcount_report::annotate::{Excerpt, beside, column_counts, columns};
    let counted = [of_source()];
    let lines = ["", "int f(int a)", "\ta ? b : c;"].map(str::to_owned);
    let by_line = headcount_report::line_counts(&counted).unwrap();
    let counts = &by_line["a.c"];
    let blocks = column_counts(&counted, "a.c");
    let all = [Excerpt {
        heading: "a.c".into(),
        lines: 1..=u32::MAX,
    }];
    let shown = anstyle_stripped(&columns(&lines, counts, &blocks, &all));
    assert!(shown.contains("|         a ? b : c;\n"), "{shown}");
    assert!(shown.contains("^ 3 function\n"), "{shown}");
    assert!(shown.contains("^ 0 true operand\n"), "{shown}");
    assert_eq!(
        beside(&lines, counts),
        "\n           3  int f(int a)\n           0  \ta ? b : c;\n"
    );
}

/// Without colour.
fn anstyle_stripped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => while letters.next().is_some_and(|it| it != 'm') {},
            _ => out.push(letter),
        }
    }
    out
}

/// The text report, whole.
fn shown_text(report: &Report) -> String {
    text::write(report, None)
}
