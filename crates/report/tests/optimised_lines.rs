//! Lines of optimised code: exact, a bound, or unknown; but never 0 if they ran.

use headcount_model::{
    Block, BlockId, Compiled, Counted, Edge, EdgeKind, FileId, FlowGraph, Function, FunctionCounts,
    InlinedCall, LineRun, LinkAddr, Module, Node, SourceBlock, SourceFunction, Span,
};
use headcount_report::{Count, line_counts};

fn run(line: u32, column: u32, is_stmt: bool, inline_copy: u32) -> LineRun {
    LineRun {
        file: FileId(0),
        line,
        column,
        is_stmt,
        instructions: 1,
        inline_copy,
    }
}

fn block(address: u64, lines: Vec<LineRun>) -> Block {
    Block {
        address: LinkAddr(address),
        code: vec![Span {
            address: LinkAddr(address),
            bytes: vec![0x90; lines.len()],
        }],
        instructions: lines.len() as u32,
        lines,
        place: None,
    }
}

/// An optimised function whose blocks ran so often.
fn counted(blocks: Vec<(Block, u64)>, inlined: Vec<InlinedCall>) -> Counted {
    let (blocks, counts): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
    let function = Function {
        name: "f".into(),
        address: LinkAddr(0x10),
        source: Some((FileId(0), 1)),
        blocks,
        edges: Vec::new(),
        counters: 1,
        compiled: Compiled {
            is_optimised: true,
            marks_changes: false,
            inlined,
        },
    };
    Counted {
        module: Module {
            path: "it".into(),
            files: vec!["a.c".into()],
            functions: vec![function],
            ..Module::default()
        },
        functions: vec![FunctionCounts::whole(counts, [])],
        sources: Default::default(),
    }
}

fn count(it: &Counted, line: u32) -> Count {
    let lines = line_counts(std::slice::from_ref(it)).unwrap();
    lines["a.c"][&line].count
}

#[test]
fn a_line_that_ran_is_not_shown_as_0_because_its_statement_did_not() {
    let ran = block(0x10, vec![run(1, 5, true, 0), run(3, 9, false, 0)]);
    let did_not = block(0x20, vec![run(3, 5, true, 0)]);
    let it = counted(vec![(ran, 7), (did_not, 0)], Vec::new());
    assert_eq!(count(&it, 3), Count::Unknown);
    let lines = line_counts(std::slice::from_ref(&it)).unwrap();
    assert!(lines["a.c"][&3].ran());
    assert_eq!(lines["a.c"][&3].least(), Some(1));
}

#[test]
fn the_line_of_a_call_that_was_inlined_ran_as_often_as_the_copy_or_more() {
    let copy = InlinedCall {
        line: 4,
        column: 9,
        entry: Some(LinkAddr(0x20)),
        callee: Some((FileId(0), 90)),
        ..InlinedCall::default()
    };
    let head = block(0x10, vec![run(1, 5, true, 0)]);
    let inside = block(0x20, vec![run(91, 3, true, 1)]);
    let it = counted(vec![(head, 1), (inside, 12)], vec![copy]);
    assert_eq!(count(&it, 4), Count::AtLeast(12));
}

/// `if (…) … else …` on lines 2, 3 and 5, between lines 1 and 6.
fn choice() -> SourceFunction {
    let edge = |from: Option<u32>, to: Option<u32>| {
        let node = |at: Option<u32>| at.map_or(Node::Outside, |it| Node::Block(BlockId(it)));
        Edge {
            from: node(from),
            to: node(to),
            kind: EdgeKind::Fall,
        }
    };
    let lines = [vec![1, 2], vec![3], vec![5], vec![6]];
    SourceFunction {
        name: "f".into(),
        line: 1,
        last_line: 7,
        blocks: lines.map(|lines| SourceBlock { lines }).into(),
        graph: FlowGraph {
            blocks: 4,
            edges: vec![
                edge(None, Some(0)),
                edge(Some(0), Some(1)),
                edge(Some(0), Some(2)),
                edge(Some(1), Some(3)),
                edge(Some(2), Some(3)),
                edge(Some(3), None),
            ],
        },
        places: vec![((1, 1), 0), ((3, 1), 1), ((5, 1), 2), ((6, 1), 3)],
        vague: Vec::new(),
    }
}

#[test]
fn an_arm_without_code_has_the_count_that_the_source_leaves_it() {
    let head = block(0x10, vec![run(1, 5, true, 0), run(2, 3, true, 0)]);
    let arm = block(0x20, vec![run(3, 5, true, 0)]);
    let end = block(0x30, vec![run(6, 3, true, 0)]);
    let mut it = counted(vec![(head, 10), (arm, 7), (end, 10)], Vec::new());
    it.sources.insert(FileId(0), vec![choice()]);
    assert_eq!(count(&it, 2), Count::Exact(10));
    assert_eq!(count(&it, 3), Count::Exact(7));
    assert_eq!(count(&it, 5), Count::Exact(3));
    assert_eq!(count(&it, 6), Count::Exact(10));
}

#[test]
fn copies_of_a_statement_add_up() {
    let head = block(0x10, vec![run(1, 5, true, 0), run(2, 3, true, 0)]);
    let arm = block(0x20, vec![run(3, 5, true, 0)]);
    let copy = block(0x28, vec![run(3, 5, true, 0)]);
    let other = block(0x30, vec![run(5, 5, true, 0)]);
    let end = block(0x38, vec![run(6, 3, true, 0)]);
    let blocks = vec![(head, 10), (arm, 3), (copy, 4), (other, 3), (end, 10)];
    let mut it = counted(blocks, Vec::new());
    it.sources.insert(FileId(0), vec![choice()]);
    assert_eq!(count(&it, 3), Count::Exact(7));
}
