//! Lines of optimised code: exact, a bound, or unknown; but never 0 if they ran.

use headcount_model::{
    Block, BlockId, Compiled, Counted, Edge, EdgeKind, FileId, FlowGraph, Function, FunctionCounts,
    FunctionEdge, InlinedCall, LineRun, LinkAddr, Module, Node, SourceBlock, SourceCall,
    SourceFunction, Span,
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
        operation: None,
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
            language: None,
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
        loops: Vec::new(),
        calls: Vec::new(),
    }
}

#[test]
fn an_arm_without_code_has_the_count_that_the_source_leaves_it() {
    let head = block(0x10, vec![run(1, 5, true, 0), run(2, 3, true, 0)]);
    let arm = block(0x20, vec![run(3, 5, true, 0)]);
    let end = block(0x30, vec![run(6, 3, true, 0)]);
    let mut it = counted(vec![(head, 10), (arm, 7), (end, 10)], Vec::new());
    it.sources.functions.insert(FileId(0), vec![choice()]);
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
    it.sources.functions.insert(FileId(0), vec![choice()]);
    assert_eq!(count(&it, 3), Count::Exact(7));
}

/// The same function with the edges of its code: from block to block, and how often.
fn with_edges(mut it: Counted, edges: &[(u32, u32, EdgeKind, u64)]) -> Counted {
    let function = &mut it.module.functions[0];
    for (from, to, kind, count) in edges {
        function.edges.push(FunctionEdge {
            from: Some(*from),
            to: Some(*to),
            kind: *kind,
        });
        it.functions[0].edges.push(Some(*count));
    }
    it
}

/// `while (…) …` on lines 2 and 3, between lines 1 and 5.
fn repeated() -> SourceFunction {
    let mut function = choice();
    let node = |at: i64| match u32::try_from(at) {
        Ok(at) => Node::Block(BlockId(at)),
        Err(_) => Node::Outside,
    };
    let ends = [(-1, 0), (0, 1), (1, 2), (2, 1), (1, 3), (3, -1)];
    function.graph.edges = ends
        .map(|(from, to)| Edge {
            from: node(from),
            to: node(to),
            kind: EdgeKind::Fall,
        })
        .into();
    let lines = [vec![1], vec![2], vec![3], vec![5]];
    function.blocks = lines.map(|lines| SourceBlock { lines }).into();
    function.places = vec![((1, 1), 0), ((2, 1), 1), ((3, 1), 2), ((5, 1), 3)];
    function
}

/// A loop of one block behind the function's first, and what follows.
fn looping(rounds: u64) -> Counted {
    let head = block(0x10, vec![run(2, 3, true, 0)]);
    let body = block(0x20, vec![run(3, 5, true, 0), run(2, 9, false, 0)]);
    let end = block(0x30, vec![run(5, 3, true, 0)]);
    let it = counted(vec![(head, 1), (body, rounds), (end, 1)], Vec::new());
    let mut it = with_edges(
        it,
        &[
            (1, 1, EdgeKind::Taken, rounds - 1),
            (1, 2, EdgeKind::Fall, 1),
        ],
    );
    it.sources.functions.insert(FileId(0), vec![repeated()]);
    it
}

#[test]
fn a_loop_whose_branch_and_body_agree_is_exact() {
    let it = looping(9);
    assert_eq!(count(&it, 3), Count::Exact(9));
    assert_eq!(count(&it, 2), Count::Exact(10));
}

#[test]
fn a_loop_that_handles_several_values_at_once_made_more_rounds() {
    let mut it = looping(9);
    it.sources.packed.insert((0, 1));
    assert_eq!(count(&it, 3), Count::AtLeast(9));
}

#[test]
fn a_loop_that_was_never_come_to_made_no_round() {
    let mut it = looping(9);
    it.functions[0] = FunctionCounts::whole(vec![0, 0, 0], [0, 0]);
    assert_eq!(count(&it, 3), Count::Exact(0));
    assert_eq!(count(&it, 5), Count::Exact(0));
}

#[test]
fn rows_of_both_arms_that_are_too_many_for_the_condition_are_not_believed() {
    // The arms were merged: each is said to have run as often as the condition.
    let head = block(0x10, vec![run(1, 5, true, 0), run(2, 3, true, 0)]);
    let arms = block(0x20, vec![run(3, 5, true, 0), run(5, 5, true, 0)]);
    let end = block(0x30, vec![run(6, 3, true, 0)]);
    let mut it = counted(vec![(head, 10), (arms, 10), (end, 10)], Vec::new());
    it.sources.functions.insert(FileId(0), vec![choice()]);
    assert_ne!(count(&it, 3), Count::Exact(10));
    assert_ne!(count(&it, 5), Count::Exact(10));
    assert_eq!(count(&it, 6), Count::Exact(10));
}

#[test]
fn a_call_that_left_no_code_makes_the_lines_of_what_it_calls_open() {
    let head = block(0x10, vec![run(1, 5, true, 0), run(2, 3, true, 0)]);
    let end = block(0x30, vec![run(6, 3, true, 0)]);
    let mut it = counted(vec![(head, 10), (end, 10)], Vec::new());
    // A function on line 9, which nothing calls, and which was never entered by itself.
    let mut callee = it.module.functions[0].clone();
    callee.name = "g".into();
    callee.address = LinkAddr(0x50);
    callee.source = Some((FileId(0), 8));
    callee.blocks = vec![block(0x50, vec![run(9, 3, true, 0)])];
    it.module.functions.push(callee);
    it.functions.push(FunctionCounts::whole(vec![0], []));
    let called = |line| SourceFunction {
        name: "g".into(),
        line,
        last_line: line + 2,
        blocks: vec![SourceBlock {
            lines: vec![line + 1],
        }],
        graph: FlowGraph {
            blocks: 1,
            edges: vec![
                Edge {
                    from: Node::Outside,
                    to: Node::Block(BlockId(0)),
                    kind: EdgeKind::Entry,
                },
                Edge {
                    from: Node::Block(BlockId(0)),
                    to: Node::Outside,
                    kind: EdgeKind::Leave,
                },
            ],
        },
        places: vec![((line, 1), 0)],
        ..SourceFunction::default()
    };
    it.sources
        .functions
        .insert(FileId(0), vec![choice(), called(8)]);
    assert_eq!(count(&it, 9), Count::Exact(0));
    let calls = &mut it.sources.functions.get_mut(&FileId(0)).unwrap()[0].calls;
    calls.push(SourceCall {
        name: "g".into(),
        place: (6, 3),
        block: Some(3),
    });
    assert_eq!(count(&it, 9), Count::Unknown);
}

#[test]
fn places_without_columns_are_of_the_only_block_of_their_line() {
    let head = block(0x10, vec![run(1, 0, true, 0), run(2, 0, true, 0)]);
    let arm = block(0x20, vec![run(3, 0, true, 0)]);
    let end = block(0x30, vec![run(6, 0, true, 0)]);
    let mut it = counted(vec![(head, 10), (arm, 7), (end, 10)], Vec::new());
    it.sources.functions.insert(FileId(0), vec![choice()]);
    assert_eq!(count(&it, 3), Count::Exact(7));
    assert_eq!(count(&it, 5), Count::Exact(3));
    // With two blocks on the line of the condition, nobody can tell which of them is meant.
    let places = &mut it.sources.functions.get_mut(&FileId(0)).unwrap()[0].places;
    *places = vec![
        ((1, 1), 0),
        ((3, 1), 0),
        ((3, 5), 1),
        ((5, 1), 2),
        ((6, 1), 3),
    ];
    assert_ne!(count(&it, 5), Count::Exact(3));
}

#[test]
fn that_an_arm_never_ran_takes_code_of_its_own_that_did_not() {
    let head = || block(0x10, vec![run(1, 5, true, 0), run(2, 3, true, 0)]);
    let arm = || block(0x20, vec![run(3, 5, true, 0)]);
    let end = || block(0x30, vec![run(6, 3, true, 0)]);
    // The other arm may have been merged into this one.
    let mut it = counted(vec![(head(), 10), (arm(), 10), (end(), 10)], Vec::new());
    it.sources.functions.insert(FileId(0), vec![choice()]);
    assert_eq!(count(&it, 3), Count::Exact(10));
    assert_eq!(count(&it, 5), Count::Unknown);
    let other = block(0x28, vec![run(5, 5, true, 0)]);
    let blocks = vec![(head(), 10), (arm(), 10), (other, 0), (end(), 10)];
    let mut it = counted(blocks, Vec::new());
    it.sources.functions.insert(FileId(0), vec![choice()]);
    assert_eq!(count(&it, 5), Count::Exact(0));
}

#[test]
fn a_line_that_code_only_mentions_is_unknown() {
    let mention = LineRun {
        instructions: 0,
        ..run(9, 3, false, 0)
    };
    let mut head = block(0x10, vec![run(1, 5, true, 0)]);
    head.lines.push(mention);
    let it = counted(vec![(head, 10)], Vec::new());
    assert_eq!(count(&it, 9), Count::Unknown);
}

#[test]
fn rows_alone_are_exact_only_if_no_copy_of_their_function_was_inlined() {
    let copy = InlinedCall {
        line: 40,
        column: 9,
        entry: Some(LinkAddr(0x20)),
        callee: Some((FileId(0), 1)),
        ..InlinedCall::default()
    };
    let own = || block(0x10, vec![run(3, 5, true, 0)]);
    let it = counted(vec![(own(), 10)], Vec::new());
    assert_eq!(count(&it, 3), Count::Exact(10));
    let rest = block(0x20, vec![run(41, 3, true, 0)]);
    let it = counted(vec![(own(), 10), (rest, 4)], vec![copy]);
    assert_eq!(count(&it, 3), Count::AtLeast(10));
}

/// A `while` on lines 2 and 3 as LLVM compiles it: the branch stands where the word does.
fn looping_by_llvm(body: Block, rounds: u64) -> Counted {
    let head = block(0x10, vec![run(1, 3, true, 0)]);
    let end = block(0x30, vec![run(5, 3, true, 0)]);
    let it = counted(vec![(head, 1), (body, rounds), (end, 1)], Vec::new());
    let edges = [
        (1, 1, EdgeKind::Taken, rounds - 1),
        (1, 2, EdgeKind::Fall, 1),
    ];
    let mut it = with_edges(it, &edges);
    it.module.functions[0].compiled.marks_changes = true;
    let mut source = repeated();
    source.places = vec![
        ((1, 1), 0),
        ((2, 3), 0),
        ((2, 10), 1),
        ((3, 1), 2),
        ((5, 1), 3),
    ];
    source.loops = vec![(2, 3)];
    it.sources.functions.insert(FileId(0), vec![source]);
    it
}

#[test]
fn the_branch_of_a_loop_is_of_its_condition_wherever_llvm_says_it_is() {
    let body = block(0x20, vec![run(3, 5, true, 0), run(2, 3, false, 0)]);
    let it = looping_by_llvm(body, 9);
    assert_eq!(count(&it, 1), Count::Exact(1));
    assert_eq!(count(&it, 3), Count::Exact(9));
}

#[test]
fn a_loop_that_llvm_unrolled_has_bounds() {
    let copies = (0..4).flat_map(|_| [run(3, 5, true, 0), run(3, 9, false, 0)]);
    let latch = [run(2, 10, false, 0), run(2, 3, false, 0)];
    let body = block(0x20, copies.chain(latch).collect());
    let it = looping_by_llvm(body, 9);
    assert_eq!(count(&it, 3), Count::AtLeast(9));
    assert!(matches!(count(&it, 2), Count::AtLeast(_)));
}

#[test]
fn of_functions_that_share_a_line_the_one_that_ran_most_often_is_shown() {
    let mut it = counted(vec![(block(0x10, vec![run(4, 5, true, 0)]), 5)], Vec::new());
    it.module.functions[0].compiled.is_optimised = false;
    let mut other = it.module.functions[0].clone();
    other.address = LinkAddr(0x50);
    other.blocks = vec![block(0x50, vec![run(4, 20, true, 0)])];
    it.module.functions.push(other);
    it.functions.push(FunctionCounts::whole(vec![60], []));
    // Instances of one function add up; a lambda is another one.
    assert_eq!(count(&it, 4), Count::Exact(65));
    it.module.functions[1].source = Some((FileId(0), 4));
    assert_eq!(count(&it, 4), Count::Exact(60));
}
