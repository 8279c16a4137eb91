//! Formats of other tools, byte by byte where it matters, and with counts and names that nobody
//! expects.

use headcount_model::{
    Block, BlockId, BlockKind, CodeSymbol, Counted, Edge, EdgeKind, FileId, FlowGraph, Function,
    FunctionCounts, FunctionEdge, InlineFrame, LineRun, LinkAddr, Module, Node, Refusal,
    SourceBlock, SourceFunction, SourcePlace, Span,
};
use headcount_report::export::{Exported, Format, Material, Source, write};
use headcount_report::{Only, Own, RunSummary};
use std::rc::Rc;

const ALL: [Format; 10] = [
    Format::Lcov,
    Format::Cobertura,
    Format::Callgrind,
    Format::Pprof,
    Format::Folded,
    Format::Bolt,
    Format::LlvmSample,
    Format::Drcov,
    Format::Zprof,
    Format::Json,
];

/// A block of instructions of one byte each, all of one line.
fn block(address: u64, instructions: u32, line: u32) -> Block {
    Block {
        address: LinkAddr(address),
        code: vec![Span {
            address: LinkAddr(address),
            bytes: vec![0x90; instructions as usize],
        }],
        instructions,
        lines: vec![LineRun {
            file: FileId(0),
            line,
            column: 0,
            is_stmt: true,
            instructions,
            inline_copy: 0,
        }],
        place: None,
        operation: None,
    }
}

/// `if` on line 2, which leads to line 3 or 4; line 5 returns.
fn branching(name: &str) -> Function {
    let edge = |from, to, kind| FunctionEdge { from, to, kind };
    Function {
        name: name.into(),
        address: LinkAddr(0x10),
        source: Some((FileId(0), 1)),
        blocks: vec![
            block(0x10, 3, 2),
            block(0x20, 2, 3),
            block(0x30, 2, 4),
            block(0x40, 1, 5),
        ],
        edges: vec![
            edge(None, Some(0), EdgeKind::Entry),
            edge(Some(0), Some(1), EdgeKind::Fall),
            edge(Some(0), Some(2), EdgeKind::Taken),
            edge(Some(1), Some(3), EdgeKind::Jump),
            edge(Some(2), Some(3), EdgeKind::Fall),
            edge(Some(3), None, EdgeKind::Leave),
        ],
        counters: 2,
        compiled: Default::default(),
    }
}

fn counted(name: &str, file: &str, taken: u64, not_taken: u64) -> Counted {
    let all = taken.saturating_add(not_taken);
    Counted {
        module: Module {
            path: "/bin/it".into(),
            build_id: "elf-0123-4567".into(),
            files: vec![file.into()],
            functions: vec![branching(name)],
            refusals: Vec::new(),
        },
        functions: vec![FunctionCounts::whole(
            [all, not_taken, taken, all],
            [all, not_taken, taken, not_taken, taken, all],
        )],
        sources: Default::default(),
    }
}

/// With the source that is given, if any.
fn export(
    format: Format,
    counted: &[Counted],
    source: Option<&str>,
    max_count: Option<u64>,
) -> Result<Exported, headcount_report::Error> {
    let runs = [RunSummary {
        command: vec!["./it".into()],
        status: Some(0),
    }];
    let wanted = source.is_none().then(|| "*".to_owned());
    let only = Only::new(wanted.as_slice(), &[counted], true);
    let found = |file: &str| {
        let lines = source?.lines().map(str::to_owned);
        Some(Source {
            path: file.into(),
            lines: Rc::new(lines.collect()),
        })
    };
    let symbol = |it: &Function| CodeSymbol {
        address: it.address,
        size: 0x100,
        name: it.name.clone(),
        local: Some(1),
    };
    let functions = counted.iter().flat_map(|it| &it.module.functions);
    let names: Vec<&str> = functions.map(|it| it.name.as_str()).collect();
    let frame = InlineFrame {
        function: names.first().copied().unwrap_or("f").into(),
        start: 1,
        line: 3,
        discriminator: 0,
    };
    let material = Material {
        calls: &[],
        values: &[],
        whole_runs: 0,
        counted,
        runs: &runs,
        notes: &[],
        only: &only,
        own: &Own::new(counted, Only::default()),
        demangle: true,
        with_checks: false,
        max_count,
        source: &found,
        decode: &|_| Vec::new(),
        lengths: &|span| vec![1; span.bytes.len()],
        transfers: &|_| Default::default(),
        pointers: &|_| Default::default(),
        base: &|_| 0,
        symbols: &|module| Ok(module.functions.iter().map(symbol).collect()),
        chains: &|_, addresses| Ok(vec![vec![frame.clone()]; addresses.len()]),
    };
    write(format, &material)
}

fn text(format: Format, counted: &Counted, source: Option<&str>) -> String {
    let exported = export(format, std::slice::from_ref(counted), source, None).unwrap();
    String::from_utf8(exported.bytes).unwrap()
}

#[test]
fn lcov_has_the_records_of_its_manual() {
    let it = counted("f", "a.c", 3, 4);
    let expected = "\
TN:
SF:a.c
FN:1,f
FNDA:7,f
FNF:1
FNH:1
BRDA:2,0,0,4
BRDA:2,0,1,3
BRF:2
BRH:2
DA:2,7
DA:3,4
DA:4,3
DA:5,7
LF:4
LH:4
end_of_record
";
    assert_eq!(text(Format::Lcov, &it, Some("")), expected);
    let never = counted("f", "a.c", 0, 0);
    let never = text(Format::Lcov, &never, Some(""));
    assert!(
        never.contains("BRDA:2,0,0,-\nBRDA:2,0,1,-\nBRF:2\nBRH:0\n"),
        "{never}"
    );
    assert!(never.contains("LF:4\nLH:0\n"), "{never}");
}

#[test]
fn marks_in_the_source_leave_lines_and_branches_out() {
    let it = counted("f", "a.c", 3, 4);
    let source = "f // LCOV_EXCL_LINE\nif // LCOV_EXCL_BR_LINE\nx // LCOV_EXCL_LINE\ny\nz\n";
    let exported = export(Format::Lcov, std::slice::from_ref(&it), Some(source), None).unwrap();
    let text = String::from_utf8(exported.bytes).unwrap();
    for gone in ["FN:", "FNDA:", "BRDA:", "DA:3,"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    assert!(text.contains("DA:2,7\nDA:4,3\nDA:5,7\nLF:3\n"), "{text}");
    assert_eq!(exported.notes, ["1 line was excluded by LCOV_EXCL marks."]);
}

#[test]
fn copies_of_a_line_are_summed_if_their_branches_are_alike() {
    let it = [counted("f", "a.c", 3, 4), counted("g", "a.c", 30, 40)];
    let exported = export(Format::Lcov, &it, Some(""), None).unwrap();
    let text = String::from_utf8(exported.bytes).unwrap();
    assert!(
        text.contains("BRDA:2,0,0,44\nBRDA:2,0,1,33\nBRF:2\n"),
        "{text}"
    );
    assert!(text.contains("DA:2,77\n"), "{text}");
}

#[test]
fn bolt_has_both_ways_of_a_branch_and_the_entry() {
    let it = counted("a b", "a.c", 3, 4);
    let expected = "\
0 [unknown] 0 1 a\\ b/1 0 0 7
1 a\\ b/1 2 1 a\\ b/1 10 0 4
1 a\\ b/1 2 1 a\\ b/1 20 0 3
1 a\\ b/1 11 1 a\\ b/1 30 0 4
";
    assert_eq!(text(Format::Bolt, &it, None), expected);
}

#[test]
fn llvm_sample_has_offsets_from_the_start_of_the_function() {
    let it = counted("f", "a.c", 3, 4);
    assert_eq!(text(Format::LlvmSample, &it, None), "f:7:7\n 2: 7\n");
}

#[test]
fn formats_for_one_module_want_one() {
    let it = [counted("f", "a.c", 3, 4), counted("g", "a.c", 3, 4)];
    for format in [Format::Bolt, Format::LlvmSample] {
        let error = export(format, &it, None, None).unwrap_err();
        assert!(
            error.to_string().contains("--module names one of"),
            "{error}"
        );
    }
}

#[test]
fn what_was_not_counted_is_no_zero() {
    let mut it = counted("f", "a.c", 3, 4);
    it.functions[0].blocks[2] = None;
    it.functions[0].edges[2] = None;
    let exported = export(Format::Lcov, std::slice::from_ref(&it), Some(""), None).unwrap();
    let text = String::from_utf8(exported.bytes).unwrap();
    assert!(!text.contains("DA:4,") && !text.contains("BRDA:"), "{text}");
    let notes = [
        "1 line was not counted, and left out.",
        "1 branch was not counted, and left out.",
    ];
    assert_eq!(exported.notes, notes);
    let exported = export(Format::Json, &[it], None, None).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&exported.bytes).unwrap();
    let function = &value["modules"][0]["functions"][0];
    assert_eq!(function["blocks"][2]["count"], serde_json::Value::Null);
    assert_eq!(function["executed"], serde_json::Value::Null);
    assert_eq!(function["calls"], 7);
}

#[test]
fn lines_that_may_have_run_or_not_are_left_out_of_coverage_for_their_own_reason() {
    let mut it = counted("f", "a.c", 3, 4);
    let function = &mut it.module.functions[0];
    function.compiled.is_optimised = true;
    let node = |at: Option<u32>| at.map_or(Node::Outside, |it| Node::Block(BlockId(it)));
    let edges = function.edges.iter().map(|it| Edge {
        from: node(it.from),
        to: node(it.to),
        kind: it.kind,
    });
    let source = SourceFunction {
        name: "f".into(),
        line: 1,
        last_line: 6,
        blocks: (2..=5)
            .map(|line| SourceBlock { lines: vec![line] })
            .collect(),
        graph: FlowGraph {
            blocks: 4,
            edges: edges.collect(),
        },
        places: (0..4).map(|block| ((block + 2, 0), block)).collect(),
        ..SourceFunction::default()
    };
    // Code without a branch chooses between the arms.
    let edge = |from, to, kind| FunctionEdge { from, to, kind };
    function.blocks = vec![block(0x10, 3, 2), block(0x40, 1, 5)];
    function.edges = vec![
        edge(None, Some(0), EdgeKind::Entry),
        edge(Some(0), Some(1), EdgeKind::Fall),
        edge(Some(1), None, EdgeKind::Leave),
    ];
    it.functions = vec![FunctionCounts::whole([7, 7], [7, 7, 7])];
    it.sources.functions.insert(FileId(0), vec![source]);
    for format in [Format::Lcov, Format::Cobertura] {
        let exported = export(format, std::slice::from_ref(&it), Some(""), None).unwrap();
        let text = String::from_utf8(exported.bytes).unwrap();
        for there in ["DA:3,", "DA:4,", "number=\"3\"", "number=\"4\""] {
            assert!(!text.contains(there), "{text}");
        }
        let note =
            "2 lines were left out: the optimised code does not tell whether control came there.";
        assert_eq!(exported.notes, [note]);
    }
}

#[test]
fn a_bound_is_marked_as_one() {
    let mut it = counted("f", "a.c", 3, 4);
    it.functions[0].at_least = vec![0];
    let exported = export(Format::Json, &[it], None, None).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&exported.bytes).unwrap();
    let function = &value["modules"][0]["functions"][0];
    assert_eq!(function["blocks"][0]["count_at_least"], true);
    assert_eq!(function["calls_at_least"], true);
    assert_eq!(function["blocks"][1].get("count_at_least"), None);
}

/// Names that would end a line, a field, a string or an element, or begin a formula or a comment.
const NASTY: [&str; 14] = [
    "",
    "a\nend_of_record\nSF:b",
    "a,b;c d:1",
    "<script>&\"']]>",
    "\u{1b}[2J\r\0\u{ffff}\u{202e}",
    "(1) x",
    "_ZN3foo3barEv",
    "a\\",
    "DA:1,1",
    "a\r\nDA:1,1\r\n",
    "a\u{85}b\u{2028}c\u{2029}d\u{b}e\u{c}f\u{7f}\u{9b}2J",
    "\tx\t1\t2",
    "# comment",
    "=cmd|' /C calc'!A0",
];

/// Can it be read by lines, each with nothing in it that commands a terminal?
fn is_plain(text: &str) -> bool {
    let bad = |c: char| c != '\n' && (c.is_control() || "\u{2028}\u{2029}\u{202e}".contains(c));
    !text.contains(bad)
}

/// The part of an export that is text.
fn text_part(format: Format, bytes: &[u8]) -> Option<String> {
    let text = match format {
        Format::Pprof => return None,
        Format::Drcov => {
            let table = b"BB Table: ";
            let end = bytes.windows(table.len()).position(|it| it == table);
            &bytes[..end.unwrap()]
        }
        _ => bytes,
    };
    Some(String::from_utf8(text.to_vec()).unwrap())
}

#[test]
fn no_name_makes_a_new_record_or_commands_a_terminal() {
    let export = |format, name: &str| {
        let mut it = counted(name, name, 3, 4);
        it.module.path = name.into();
        let exported = export(format, &[it], None, None).unwrap();
        text_part(format, &exported.bytes)
    };
    for format in ALL {
        let harmless = export(format, "f");
        for name in NASTY {
            let (Some(text), Some(harmless)) = (export(format, name), &harmless) else {
                continue;
            };
            let lines = |it: &str| it.split('\n').count();
            let (wanted, found) = (lines(harmless), lines(&text));
            assert_eq!(found, wanted, "{format:?} {name:?}: {text}");
            // JSON has escapes of its own for what would end a string.
            let is_json = format == Format::Json;
            assert!(is_json || is_plain(&text), "{format:?} {name:?}: {text:?}");
            if format == Format::LlvmSample {
                let is_comment = text.lines().any(|it| it.starts_with('#'));
                assert!(!is_comment, "{name:?}: {text}");
            }
        }
    }
}

#[test]
fn no_name_breaks_a_format() {
    for name in NASTY {
        let mut it = counted(name, name, 3, 4);
        it.module.path = name.into();
        it.module.refusals = vec![Refusal {
            subject: name.into(),
            file: name.into(),
            line: 1,
            reason: name.into(),
        }];
        for format in ALL {
            let exported = export(format, std::slice::from_ref(&it), None, None);
            let exported = exported.unwrap_or_else(|error| panic!("{format:?} {name:?}: {error}"));
            let Ok(text) = String::from_utf8(exported.bytes) else {
                continue;
            };
            let lines = text.lines().count();
            match format {
                Format::Lcov => {
                    let records = text.matches("end_of_record\n").count();
                    assert_eq!((records, lines), (1, 17), "{name:?}: {text}");
                }
                Format::Json => {
                    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(value["modules"][0]["functions"][0]["linkage_name"], name);
                }
                Format::Folded => {
                    assert_eq!(lines, 4, "{name:?}: {text}");
                    assert!(text.lines().all(|it| it.split(';').count() == 3), "{text}");
                }
                Format::Bolt => assert_eq!(lines, 4, "{name:?}: {text}"),
                Format::LlvmSample => assert_eq!(lines, 2, "{name:?}: {text}"),
                Format::Cobertura => {
                    assert!(
                        !text.contains("<script>") && !text.contains('\u{ffff}'),
                        "{text}"
                    );
                    let quotes = text.matches('"').count();
                    assert_eq!(quotes % 2, 0, "{text}");
                }
                _ => (),
            }
        }
    }
}

#[test]
fn no_count_breaks_a_format() {
    for (taken, not_taken) in [(0, 0), (1, u64::MAX - 1), (1 << 63, 5), (u64::MAX / 32, 1)] {
        for format in ALL {
            for most in [None, Some(1), Some(i32::MAX as u64)] {
                let it = counted("f", "a.c", taken, not_taken);
                // A sum that does not fit is refused, and said.
                match export(format, &[it], None, most) {
                    Ok(exported) => {
                        let text = String::from_utf8_lossy(&exported.bytes).into_owned();
                        assert!(!text.contains("e+"), "{format:?}: {text}");
                    }
                    Err(error) => assert_eq!(error, headcount_report::Error::TooLarge),
                }
            }
        }
    }
    let large = counted("f", "a.c", (1 << 62) + 1, 0);
    let exported = export(Format::Pprof, &[large], None, None);
    let note = "2 counts were larger than 9,223,372,036,854,775,807, and are cut to that.";
    assert_eq!(exported.unwrap().notes, [note]);
}

#[test]
fn nothing_makes_an_empty_file() {
    for format in [
        Format::Lcov,
        Format::Cobertura,
        Format::Callgrind,
        Format::Pprof,
        Format::Folded,
        Format::Drcov,
        Format::Zprof,
        Format::Json,
    ] {
        export(format, &[], None, None).unwrap();
    }
}

#[test]
fn zprof_has_a_line_for_every_line_or_block() {
    let mut it = counted("f", "a.c", 3, 1);
    let text_of = |it: &Counted| text(Format::Zprof, it, None);
    assert_eq!(text_of(&it), "a.c:2: 4\na.c:3: 1\na.c:4: 3\na.c:5: 4\n");
    for (number, block) in (0..).zip(&mut it.module.functions[0].blocks) {
        block.place = Some(SourcePlace {
            file: FileId(0),
            line: 7,
            column: number + 1,
            kind: BlockKind::Function,
        });
    }
    assert_eq!(text_of(&it), "a.c:7: 4\na.c:7: 1\na.c:7: 3\na.c:7: 4\n");
}
