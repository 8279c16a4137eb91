//! Modules and runs made by hand.

use headcount_model::{
    Block, CallContext, CallCosts, CallEdge, CalledFunction, Caller, ChargePlace, CodePoint,
    CountedThread, EdgeKind, FileId, Function, FunctionCounts, FunctionEdge, Key, Language,
    LineRun, LinkAddr, LoadBias, Module, ModuleCounts, Placement, Process, Refusal, RegionUse, Run,
    RuntimeCharge, RuntimeCosts, Span, StorageRegion, SystemCalls, Tally, TallyRow, ThreadCounts,
    ThreadModule, ValueCounts,
};

fn block(address: u64, bytes: &[u8], instructions: u32, lines: &[(u32, u32)]) -> Block {
    let run = |&(line, instructions): &(u32, u32)| LineRun {
        file: FileId(0),
        line,
        column: 0,
        is_stmt: true,
        instructions,
        inline_copy: line % 3,
    };
    Block {
        address: LinkAddr(address),
        code: vec![Span {
            address: LinkAddr(address),
            bytes: bytes.to_vec(),
        }],
        instructions,
        lines: lines.iter().map(run).collect(),
        place: None,
        operation: None,
    }
}

fn edge(from: Option<u32>, to: Option<u32>, kind: EdgeKind) -> FunctionEdge {
    FunctionEdge { from, to, kind }
}

/// A small module with one of everything, and a name that is not polite.
pub fn max() -> Module {
    let mut split = block(0x1010, &[0x90], 2, &[(0, 2)]);
    split.code.push(Span {
        address: LinkAddr(0x1018),
        bytes: vec![0xc3],
    });
    Module {
        path: "/home/u/max".into(),
        build_id: "abc123".into(),
        files: vec!["max.c".into(), "odd \u{1b}[31m name.h".into()],
        functions: vec![
            Function {
                name: "main".into(),
                address: LinkAddr(0x1000),
                source: Some((FileId(0), 4)),
                blocks: vec![block(0x1000, &[0x90, 0xc3], 2, &[(5, 1)]), split],
                edges: vec![
                    edge(None, Some(0), EdgeKind::Entry),
                    edge(Some(0), Some(1), EdgeKind::Fall),
                    edge(Some(1), None, EdgeKind::Leave),
                ],
                counters: 1,
                compiled: Default::default(),
            },
            Function {
                name: "high".into(),
                address: LinkAddr(0xffff_ffff_8000_0000),
                source: None,
                blocks: vec![block(0xffff_ffff_8000_0000, &[0xc3], 1, &[])],
                edges: vec![
                    edge(None, Some(0), EdgeKind::Entry),
                    edge(Some(0), None, EdgeKind::Lost),
                ],
                counters: 1,
                compiled: Default::default(),
            },
        ],
        refusals: vec![Refusal {
            subject: "start".into(),
            file: "start.s".into(),
            line: 12,
            reason: "it uses a macro, `SAVE_ALL`".into(),
        }],
    }
}

/// A module with this many blocks and a few more edges.
pub fn large(blocks: u32, build_id: &str) -> Module {
    let per_function = 50;
    let function = |number: u32| {
        let first = u64::from(number) * 0x1000;
        let blocks = (0..per_function).map(|n| {
            let address = first + u64::from(n) * 8;
            block(address, &[0x90; 8], 8, &[(n + 1, 4), (n + 2, 4)])
        });
        let mut edges = vec![
            edge(None, Some(0), EdgeKind::Entry),
            edge(Some(per_function - 1), None, EdgeKind::Leave),
        ];
        for n in 1..per_function {
            edges.push(edge(Some(n - 1), Some(n), EdgeKind::Fall));
            edges.push(edge(Some(n), Some(n - 1), EdgeKind::Taken));
        }
        Function {
            name: format!("function_{number}"),
            address: LinkAddr(first),
            source: Some((FileId(0), 1)),
            blocks: blocks.collect(),
            edges,
            counters: per_function,
            compiled: Default::default(),
        }
    };
    Module {
        path: "/bin/large".into(),
        build_id: build_id.into(),
        files: vec!["large.c".into()],
        functions: (0..blocks / per_function).map(function).collect(),
        refusals: Vec::new(),
    }
}

/// A run in which everything ran `count` times.
pub fn run(key: &str, module: &Module, count: u64) -> Run {
    let functions = module.functions.iter().map(|function| {
        FunctionCounts::whole(
            vec![count; function.blocks.len()],
            vec![count; function.edges.len()],
        )
    });
    Run {
        key: key.into(),
        batch: key.into(),
        phase: String::new(),
        command: vec!["./max".into(), "a \"b\"\n".into()],
        started: 1_700_000_000_000_000_000,
        ended: 1_700_000_001_000_000_000,
        is_part: true,
        status: Some(139),
        cpu: "some cpu".into(),
        host: "some host".into(),
        processes: vec![
            Process {
                pid: 10,
                threads: vec![10, 11],
                loaded: vec![Placement {
                    build_id: module.build_id.clone(),
                    bias: LoadBias(0xffff_5555_0000_0000),
                }],
            },
            Process {
                pid: 12,
                ..Process::default()
            },
        ],
        notes: vec!["It was killed.".into()],
        calls: Some(call_costs()),
        values: Some(values(module)),
        threads: Some(threads(module)),
        runtimes: Some(runtimes(module)),
        system_calls: SystemCalls::of_cells(&[3, 0, 5, 2]),
        modules: vec![ModuleCounts {
            build_id: module.build_id.clone(),
            functions: functions.collect(),
        }],
    }
}

/// What was found where the module begins: a number, and a text that is not polite.
fn runtimes(module: &Module) -> RuntimeCosts {
    RuntimeCosts {
        interval: 1_000_000,
        builds: vec![module.build_id.clone()],
        charges: vec![RuntimeCharge {
            language: Language::Icon,
            place: ChargePlace::Collector,
            at: Some(CodePoint {
                build: 0,
                at: LinkAddr(16),
            }),
            samples: 12,
        }],
        regions: vec![RegionUse {
            requests: 3,
            bytes: 120,
            ..RegionUse::new(Language::Icon, StorageRegion::String)
        }],
    }
}

fn values(module: &Module) -> ValueCounts {
    let place = CodePoint {
        build: 0,
        at: LinkAddr(0x1000),
    };
    let row = |key: Key, count: u64| TallyRow {
        place: Some(place),
        key,
        caller: Some(Caller::Elsewhere),
        count,
        amount: -1,
    };
    ValueCounts {
        builds: vec![module.build_id.clone()],
        texts: vec![b"a \"b\"\n\xff".to_vec()],
        tallies: vec![Tally {
            place: "max".into(),
            expression: "arg1".into(),
            places: vec![place],
            rows: vec![row(Key::Number(-7), 2), row(Key::Text(0), u64::MAX)],
            ..Tally::default()
        }],
        unfinished: 1,
    }
}

/// What two threads counted; the bytes are for others to understand.
fn threads(module: &Module) -> ThreadCounts {
    let thread = |tid: u32, name: &str| CountedThread {
        process: 1,
        pid: 10,
        tid,
        name: name.into(),
        executed: u64::MAX,
        at_least: true,
        counts: vec![1, 2, 3],
    };
    ThreadCounts {
        modules: vec![ThreadModule {
            build_id: module.build_id.clone(),
            readings: vec![0, 255],
        }],
        threads: vec![thread(11, "a \"b\"\n"), thread(10, "")],
    }
}

/// A program whose main function calls another one.
fn call_costs() -> CallCosts {
    let function = |start: u64, inclusive: u64| CalledFunction {
        build: 0,
        start: LinkAddr(start),
        calls: 1,
        inclusive,
    };
    let edge = |caller: Option<u32>, site: Option<u64>, callee: u32, inclusive: u64| CallEdge {
        caller,
        site: site.map(LinkAddr),
        callee,
        calls: 1,
        inclusive,
    };
    let context = |parent: Option<u32>, edge: u32, executed: u64| CallContext {
        parent,
        edge,
        calls: 1,
        executed,
    };
    CallCosts {
        builds: vec!["one".to_owned()],
        functions: vec![function(0x1000, 30), function(u64::MAX, 20)],
        edges: vec![edge(None, None, 0, 30), edge(Some(0), Some(0x1005), 1, 20)],
        contexts: vec![
            context(None, 0, 0),
            context(Some(0), 0, 10),
            context(Some(1), 1, 20),
        ],
    }
}
