//! What reports say of counts that are partial, shifted or bounded.

use headcount_model::{
    Block, Counted, EdgeKind, FileId, Function, FunctionCounts, FunctionEdge, LineRun, LinkAddr,
    Module, Shift, Span,
};
use headcount_report::{Report, Request, RunSummary, Unit, csv, json, text};

/// A run of lines: line, instructions, inlined copy.
type Lines<'a> = &'a [(u32, u32, u32)];

fn block(address: u64, lines: Lines<'_>) -> Block {
    let run = |&(line, instructions, inline_copy): &(u32, u32, u32)| LineRun {
        file: FileId(0),
        line,
        column: 0,
        is_stmt: true,
        instructions,
        inline_copy,
    };
    let instructions = lines.iter().map(|(_, instructions, _)| instructions).sum();
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

fn function(name: &str, blocks: Vec<Block>) -> Function {
    let edge = |to| FunctionEdge {
        from: None,
        to: Some(to),
        kind: EdgeKind::Entry,
    };
    Function {
        name: name.into(),
        address: blocks[0].address,
        source: Some((FileId(0), 1)),
        edges: (0..blocks.len() as u32).map(edge).collect(),
        blocks,
        counters: 1,
        compiled: Default::default(),
    }
}

/// Counts of blocks alone.
fn blocks(blocks: &[Option<u64>]) -> FunctionCounts {
    FunctionCounts {
        blocks: blocks.to_vec(),
        edges: vec![None; blocks.len()],
        ..FunctionCounts::default()
    }
}

fn counted(functions: Vec<(Function, FunctionCounts)>) -> Counted {
    let (functions, counts): (Vec<_>, Vec<_>) = functions.into_iter().unzip();
    Counted {
        module: Module {
            path: "it".into(),
            build_id: "it".into(),
            files: vec!["a.c".into()],
            functions,
            refusals: Vec::new(),
        },
        functions: counts,
        sources: Default::default(),
    }
}

fn report(it: &Counted, by: Unit, never: bool) -> Report {
    let decode = |span: &Span| {
        (0..span.bytes.len() as u64)
            .map(|n| (LinkAddr(span.address.0 + n), "nop".to_owned()))
            .collect()
    };
    let request = Request {
        never,
        ..Request::all(by, &decode)
    };
    let run = RunSummary {
        command: vec!["./it".into()],
        status: Some(0),
    };
    Report::new(std::slice::from_ref(it), vec![run], Vec::new(), &request).unwrap()
}

fn rows(it: &Counted, by: Unit) -> Vec<String> {
    let csv = csv::write(&report(it, by, false).table);
    csv.lines().skip(1).map(str::to_owned).collect()
}

/// As `--unit function` counts: entry blocks alone; and `idle` was not selected.
fn entries_only() -> Counted {
    let body = |at| {
        vec![
            block(at, &[(at as u32, 2, 0)]),
            block(at + 8, &[(99, 3, 0)]),
        ]
    };
    counted(vec![
        (function("rare", body(0x10)), blocks(&[Some(3), None])),
        (function("often", body(0x20)), blocks(&[Some(50), None])),
        (function("never", body(0x30)), blocks(&[Some(0), None])),
        (function("idle", body(0x40)), blocks(&[None, None])),
        (function("tiny", body(0x50)), blocks(&[Some(5), None])),
    ])
}

#[test]
fn calls_are_known_where_the_entry_is() {
    // No function knows how much it executed, so the order is by calls.
    assert_eq!(
        rows(&entries_only(), Unit::Function),
        [
            "it,often,a.c,1,50,,5,",
            "it,tiny,a.c,1,5,,5,",
            "it,rare,a.c,1,3,,5,",
            "it,never,a.c,1,0,,5,",
        ]
    );
    assert_eq!(rows(&entries_only(), Unit::Module), ["it,,20,"]);
    assert_eq!(rows(&entries_only(), Unit::File), ["a.c,,20,,,8,"]);
}

#[test]
fn what_was_not_selected_is_a_note_and_no_row() {
    let it = entries_only();
    let notes = |by| report(&it, by, false).notes;
    let not_selected = "1 function was not counted: it was not selected, or nothing that was \
                        counted leads there.";
    assert_eq!(notes(Unit::Function), [not_selected]);
    assert_eq!(
        notes(Unit::Block),
        ["4 blocks were not counted.", not_selected]
    );
    assert_eq!(rows(&it, Unit::Block).len(), 4);
    assert_eq!(rows(&it, Unit::Instruction).len(), 8);
    // Lines 99 and 0x40 know nothing.
    assert_eq!(
        rows(&it, Unit::Line),
        [
            "a.c,16,3,6,exact",
            "a.c,32,50,100,exact",
            "a.c,48,0,0,exact",
            "a.c,80,5,10,exact"
        ]
    );
    let shown = shown_text(&report(&it, Unit::Function, false));
    assert!(!shown.contains("Not counted: nothing"), "{shown}");
    assert!(shown.ends_with(&format!("Notes:\n  {not_selected}\n")));
}

#[test]
fn edges_that_no_run_counted_have_no_rows() {
    let it = entries_only();
    let report = report(&it, Unit::Edge, false);
    assert!(report.table.rows.is_empty());
    assert_eq!(report.notes[0], "This run did not count edges.");
    let mut it = it;
    it.functions[0].edges[0] = Some(3);
    assert_eq!(rows(&it, Unit::Edge), ["it,rare,,0x10,entry,3"]);
}

#[test]
fn never_means_known_never_to_have_run() {
    let it = entries_only();
    let never = |by| csv::write(&report(&it, by, true).table);
    assert_eq!(never(Unit::Function).lines().count(), 1); // `never` may have run elsewhere
    assert_eq!(never(Unit::Line).lines().nth(1), Some("a.c,48,0,0,exact"));
    assert_eq!(never(Unit::Block).lines().count(), 2);
}

#[test]
fn a_line_counted_in_part_has_a_row() {
    let f = function(
        "f",
        vec![
            block(0x10, &[(1, 1, 0), (2, 1, 0)]),
            block(0x20, &[(2, 1, 0)]),
        ],
    );
    let it = counted(vec![(f, blocks(&[Some(4), None]))]);
    assert_eq!(
        rows(&it, Unit::Line),
        ["a.c,1,4,4,exact", "a.c,2,,,unknown"]
    );
}

#[test]
fn where_not_all_is_known_functions_come_by_their_calls() {
    let one = |at| vec![block(at, &[(1, 1, 0)]), block(at + 8, &[(2, 1, 0)])];
    let it = counted(vec![
        (function("partly", one(0x10)), blocks(&[Some(90), None])),
        (function("cold", one(0x20)), blocks(&[Some(1), Some(0)])),
        (function("hot", one(0x30)), blocks(&[Some(7), Some(7)])),
    ]);
    let names: Vec<String> = rows(&it, Unit::Function)
        .iter()
        .map(|row| row.split(',').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(names, ["partly", "hot", "cold"]);
}

#[test]
fn visits_that_begin_or_end_inside_a_block_count_from_there() {
    let f = function("f", vec![block(0x10, &[(1, 2, 0), (2, 2, 0)])]);
    let mut counts = FunctionCounts::whole([1], [1]);
    let shift = |from, delta| Shift {
        block: 0,
        from,
        delta,
    };
    // One visit began before instruction 1, two ended before instruction 3.
    counts.shifts = vec![shift(1, 1), shift(3, -2)];
    let it = counted(vec![(f, counts)]);
    let counts: Vec<String> = rows(&it, Unit::Instruction)
        .iter()
        .map(|row| row.split(',').nth(3).unwrap().to_owned())
        .collect();
    assert_eq!(counts, ["1", "2", "2", "0"]);
    assert_eq!(rows(&it, Unit::Function), ["it,f,a.c,1,1,5,4,1"]);
    assert_eq!(rows(&it, Unit::File), ["a.c,5,4,1,1,1,0"]);
    // A line counts as often as the instruction that begins it.
    assert_eq!(
        rows(&it, Unit::Line),
        ["a.c,1,1,3,exact", "a.c,2,2,2,exact"]
    );
}

#[test]
fn copies_inlined_into_one_function_are_added_up() {
    let lines: [Lines<'_>; 4] = [&[(9, 1, 0)], &[(3, 1, 1)], &[(3, 1, 1)], &[(3, 1, 2)]];
    let all = (1_u64..).zip(lines);
    let f = function("f", all.map(|(at, lines)| block(at * 16, lines)).collect());
    let it = counted(vec![(f, FunctionCounts::whole([1, 4, 6, 10], []))]);
    // Within a copy the busiest block speaks for the line; copies are added up.
    assert_eq!(
        rows(&it, Unit::Line),
        ["a.c,3,16,20,exact", "a.c,9,1,1,exact"]
    );
}

fn limited() -> Counted {
    let one = |at| vec![block(at, &[(1, 2, 0)])];
    let mut counts = FunctionCounts::whole([1000], [0]);
    counts.at_least = vec![0];
    counts.edges = vec![None];
    counted(vec![
        (function("_Z4busyv", one(0x10)), counts),
        (function("calm", one(0x20)), blocks(&[Some(7)])),
    ])
}

#[test]
fn a_limit_is_shown_as_one() {
    let it = limited();
    let by_function = report(&it, Unit::Function, false);
    assert_eq!(by_function.notes, ["At least 1,000: busy()."]);
    let expected = "\
./it
≥ 2,014 instructions executed; 0 of 4 never ran

executed  share    calls  instructions  never  source  function
 ≥ 2,000      -  ≥ 1,000             2      0  a.c:1   busy()
      14      -        7             2      0  a.c:1   calm

Not counted: nothing.

Notes:
  At least 1,000: busy().
";
    assert_eq!(shown_text(&by_function), expected);
    assert_eq!(rows(&it, Unit::Line), ["a.c,1,1007,2014,at_least"]);
    let json = json::write(&report(&it, Unit::Block, false));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["rows"][0]["at_least"], true);
    assert_eq!(value["rows"][0]["count"], 1000);
    assert_eq!(value["rows"][1]["at_least"], serde_json::Value::Null);
    assert_eq!(value["notes"][0], "At least 1,000: busy().");
}

#[test]
fn what_is_not_known_is_null_in_json_and_a_dash_in_text() {
    let it = entries_only();
    let report = report(&it, Unit::Function, false);
    let value: serde_json::Value = serde_json::from_str(&json::write(&report)).unwrap();
    let row = value["rows"][0].as_object().unwrap();
    assert_eq!(row["calls"], 50);
    assert!(row.contains_key("executed") && row["executed"].is_null());
    assert!(row["never"].is_null());
    let shown = shown_text(&report);
    assert!(
        shown.contains(
            "./it\ninstructions executed: not known; not all 20 were counted\n\n\
             executed  share  calls  instructions  never  source  function\n\
             \x20      -      -     50             5      -  a.c:1   often\n"
        ),
        "{shown}"
    );
}

/// The text report, whole.
fn shown_text(report: &Report) -> String {
    text::write(report, None)
}
