//! Events of functions made by hand: one byte an instruction, and what it does is its letter.

use headcount_model::{
    Block, BlockKind, Bounds, Counted, EdgeKind, Event, Events, FileId, Function, FunctionCounts,
    FunctionEdge, InstructionEvents, LineRun, LinkAddr, Module, Shift, SourcePlace, Span, Varies,
};
use headcount_report::{Report, Request, RunSummary, Unit, WantedEvents, csv, json, text};

/// `l` loads 4 bytes, `r` repeats loads, `m` masks one, `b` and `f` jump back and forth out of the
/// function on a condition; `?` is no instruction.
fn find(span: &Span) -> Option<Vec<InstructionEvents>> {
    let one = |(address, byte): (u64, &u8)| {
        let mut events = Events::default();
        events[Event::Instructions] = Bounds::exactly(1);
        let (loads, varies) = match byte {
            b'l' => (Bounds::exactly(1), None),
            b'r' => (Bounds::ANY, Some(Varies::Repeats)),
            b'm' => (Bounds::up_to(1), Some(Varies::Masked)),
            b'?' => return None,
            _ => (Bounds::NEVER, None),
        };
        events[Event::Loads] = loads;
        let target = match byte {
            b'b' => Some(LinkAddr(0)),
            b'f' => Some(LinkAddr(0x9000)),
            _ => None,
        };
        Some(InstructionEvents {
            address: LinkAddr(address),
            target,
            events,
            varies,
        })
    };
    (span.address.0..).zip(&span.bytes).map(one).collect()
}

fn block(address: u64, code: &str) -> Block {
    Block {
        address: LinkAddr(address),
        code: vec![Span {
            address: LinkAddr(address),
            bytes: code.into(),
        }],
        instructions: code.len() as u32,
        lines: vec![LineRun {
            file: FileId(0),
            line: 7,
            column: 0,
            is_stmt: true,
            instructions: code.len() as u32,
            inline_copy: 0,
        }],
        place: None,
        operation: None,
    }
}

fn edge(from: u32, to: Option<u32>, kind: EdgeKind) -> FunctionEdge {
    FunctionEdge {
        from: Some(from),
        to,
        kind,
    }
}

fn counted(blocks: Vec<Block>, edges: Vec<FunctionEdge>, counts: FunctionCounts) -> Counted {
    Counted {
        module: Module {
            path: "/it".into(),
            build_id: "1".into(),
            files: vec!["it.c".into()],
            functions: vec![Function {
                name: "f".into(),
                address: LinkAddr(0x1000),
                source: Some((FileId(0), 1)),
                blocks,
                edges,
                counters: 1,
                compiled: Default::default(),
            }],
            refusals: Vec::new(),
        },
        functions: vec![counts],
        sources: Default::default(),
    }
}

fn report(counted: Counted, by: Unit, events: &[Event]) -> Report {
    let decode = |span: &Span| {
        let all = span.address.0..span.address.0 + span.bytes.len() as u64;
        all.map(|it| (LinkAddr(it), "it".into())).collect()
    };
    let request = Request {
        events: WantedEvents::new(by, events, &find),
        ..Request::all(by, &decode)
    };
    let run = RunSummary {
        command: vec!["./it".into()],
        status: Some(0),
    };
    Report::new(&[counted], vec![run], Vec::new(), &request).unwrap()
}

/// The last line of the table.
fn last(report: &Report) -> String {
    let csv = csv::write(&report.table);
    csv.lines().last().unwrap().to_owned()
}

#[test]
fn an_instruction_that_a_visit_did_not_come_to_did_nothing() {
    let mut counts = FunctionCounts::whole([10], []);
    counts.shifts = vec![Shift {
        block: 0,
        from: 2,
        delta: -3,
    }];
    let it = || counted(vec![block(0x1000, "lxl")], Vec::new(), counts.clone());
    let loads = |by: Unit| last(&report(it(), by, &[Event::Loads]));
    assert_eq!(loads(Unit::Module), "/it,27,3,0,17,");
    assert_eq!(loads(Unit::Function), "/it,f,it.c,1,10,27,3,0,17,");
    assert_eq!(loads(Unit::File), "it.c,27,3,0,10,1,0,17,");
    assert_eq!(loads(Unit::Line), "it.c,7,10,27,exact,17,");
    assert_eq!(loads(Unit::Block), "/it,f,0x1000,3,10,17,");
    assert_eq!(loads(Unit::Instruction), "/it,f,0x1002,7,it,7,");
}

#[test]
fn what_the_code_only_bounds_is_marked() {
    let row = |code: &str| {
        let it = counted(
            vec![block(0x1000, code)],
            Vec::new(),
            FunctionCounts::whole([10], []),
        );
        report(it, Unit::Module, &[Event::Loads])
    };
    assert!(last(&row("ll")).ends_with(",20,"));
    assert!(last(&row("lm")).ends_with(",20,loads=at_most"));
    assert!(last(&row("lr")).ends_with(",10,loads=at_least"));
    // Both ways: only the lower bound holds.
    let both = row("lmr");
    assert!(last(&both).ends_with(",10,loads=at_least"));
    assert!(json::write(&both).contains(r#""loads":10,"bounds":"loads=at_least""#));
    let shown = text::write(&both, None);
    assert!(shown.contains("≥ 10"), "{shown}");
    assert!(
        shown.contains("`rep`") && shown.contains("Masks"),
        "{shown}"
    );
    assert!(text::write(&row("lm"), None).contains("≤ 20"));
}

#[test]
fn bounds_of_what_never_ran_are_zero() {
    let it = counted(
        vec![block(0x1000, "mr?")],
        Vec::new(),
        FunctionCounts::whole([0], []),
    );
    let report = report(it, Unit::Module, &[Event::Loads]);
    assert_eq!(last(&report), "/it,0,3,3,0,");
    assert_eq!(report.notes, [""; 0]);
}

/// Two blocks, of which the first ends with a conditional jump that left the function 4 times of 10.
fn leaving(jump: &str, edges: [Option<u64>; 2]) -> Counted {
    let mut counts = FunctionCounts::whole([10, 6], []);
    counts.edges = edges.to_vec();
    counted(
        vec![block(0x1000, jump), block(0x1001, "x")],
        vec![
            edge(0, None, EdgeKind::Leave),
            edge(0, Some(1), EdgeKind::Fall),
        ],
        counts,
    )
}

#[test]
fn a_jump_into_another_function_is_taken_too() {
    let wanted = [Event::Taken, Event::Backward];
    let row = |jump: &str, by: Unit| {
        let it = leaving(jump, [Some(4), Some(6)]);
        let csv = csv::write(&report(it, by, &wanted).table);
        csv.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(row("b", Unit::Module), "/it,16,2,0,4,4,");
    assert_eq!(row("f", Unit::Module), "/it,16,2,0,4,0,");
    assert_eq!(row("b", Unit::Edge), "/it,f,0x1000,,leave,4,4,4,");
}

#[test]
fn without_edges_a_jump_was_taken_as_often_as_it_ran_or_less() {
    let wanted = [Event::Taken, Event::Backward];
    let of_jump = |jump: &str| report(leaving(jump, [None, None]), Unit::Module, &wanted);
    let bounds = "taken=at_most backward=at_most";
    assert_eq!(last(&of_jump("b")), format!("/it,16,2,0,10,10,{bounds}"));
    assert_eq!(last(&of_jump("f")), "/it,16,2,0,10,0,taken=at_most");
    let notes = of_jump("b").notes;
    assert!(notes[0].contains("edges were not counted"), "{notes:?}");
}

#[test]
fn where_both_ways_lead_out_nobody_knows_which_was_taken() {
    let both = |by: Unit| {
        let it = counted(
            vec![block(0x1000, "b")],
            vec![edge(0, None, EdgeKind::Leave)],
            FunctionCounts::whole([10], [10]),
        );
        last(&report(it, by, &[Event::Taken]))
    };
    assert_eq!(both(Unit::Module), "/it,10,1,0,10,taken=at_most");
    assert_eq!(both(Unit::Edge), "/it,f,0x1000,,leave,10,10,taken=at_most");
}

#[test]
fn a_way_out_behind_a_jump_is_not_taken() {
    let it = counted(
        vec![block(0x1000, "b")],
        vec![
            edge(0, Some(0), EdgeKind::Taken),
            edge(0, None, EdgeKind::Leave),
        ],
        FunctionCounts::whole([10], [9, 1]),
    );
    let csv = csv::write(&report(it, Unit::Edge, &[Event::Taken]).table);
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    let taken = "/it,f,0x1000,0x1000,taken,9,9,";
    assert_eq!(rows, ["/it,f,0x1000,,leave,1,0,", taken]);
}

#[test]
fn a_jump_to_the_very_instruction_goes_backward() {
    let it = counted(
        vec![block(0x1000, "f"), block(0x1001, "x")],
        vec![
            edge(0, Some(0), EdgeKind::Taken),
            edge(0, Some(1), EdgeKind::Fall),
        ],
        FunctionCounts::whole([10, 1], [9, 1]),
    );
    let report = report(it, Unit::Module, &[Event::Taken, Event::Backward]);
    assert_eq!(last(&report), "/it,11,2,0,9,9,");
}

#[test]
fn code_that_cannot_be_decoded_has_no_events() {
    let counts = FunctionCounts::whole([10], []);
    let it = counted(vec![block(0x1000, "l?")], Vec::new(), counts.clone());
    let broken = report(it, Unit::Module, &[Event::Loads]);
    assert_eq!(last(&broken), "/it,20,2,0,,");
    assert!(broken.notes[0].contains("decoded"), "{:?}", broken.notes);
    let statement = Block {
        code: Vec::new(),
        place: Some(SourcePlace {
            file: FileId(0),
            line: 7,
            column: 1,
            kind: BlockKind::Function,
        }),
        ..block(0x1000, "l")
    };
    let source = report(
        counted(vec![statement], Vec::new(), counts),
        Unit::Module,
        &[Event::Loads],
    );
    assert_eq!(last(&source), "/it,,,,,,10,1,0");
    assert!(
        source.notes[0].contains("Source text"),
        "{:?}",
        source.notes
    );
}

#[test]
fn no_column_is_there_twice() {
    let wanted = [
        Event::Calls,
        Event::Instructions,
        Event::Calls,
        Event::Taken,
    ];
    let columns = |by: Unit| {
        let it = counted(Vec::new(), Vec::new(), FunctionCounts::default());
        report(it, by, &wanted).table.columns().join(",")
    };
    let function = columns(Unit::Function);
    assert!(function.ends_with(",instructions,never,calls_made,taken,bounds"));
    assert!(columns(Unit::Block).ends_with(",count,calls_made,executed,taken,bounds"));
    assert!(columns(Unit::Edge).ends_with(",count,taken,bounds"));
}
