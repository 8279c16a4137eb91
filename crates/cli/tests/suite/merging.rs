//! Hundreds of profiles in one: in memory that does not follow their number, and whatever some of
//! them look like.

use crate::workshop::{HEADCOUNT, Workshop, said};
use headcount_model::{
    Block, EdgeKind, Function, FunctionCounts, FunctionEdge, LinkAddr, Module, ModuleCounts, Run,
    Span,
};
use headcount_profile::{Profile, RunSelection};
use std::fs;

const PROFILES: u64 = 500;
const FUNCTIONS: u64 = 1500;

/// One of five builds of a library, as large as a real one.
fn module(build: u64) -> Module {
    let block = |address: u64| Block {
        address: LinkAddr(address),
        code: vec![Span {
            address: LinkAddr(address),
            // No two alike, so that nothing packs them.
            bytes: (0..8)
                .flat_map(|it| (address * 31 + it).wrapping_mul(0x9e37_79b9).to_le_bytes())
                .collect(),
        }],
        instructions: 16,
        lines: Vec::new(),
        place: None,
        operation: None,
    };
    let function = |number: u64| {
        let address = 0x1000 + number * 0x100 + build;
        Function {
            name: format!("function_{number}"),
            address: LinkAddr(address),
            source: None,
            blocks: vec![block(address), block(address + 0x80)],
            edges: vec![FunctionEdge {
                from: Some(0),
                to: Some(1),
                kind: EdgeKind::Fall,
            }],
            counters: 1,
            compiled: Default::default(),
        }
    };
    Module {
        path: format!("/lib/lib{build}.so"),
        build_id: format!("build-{build}"),
        files: Vec::new(),
        functions: (0..FUNCTIONS).map(function).collect(),
        refusals: Vec::new(),
    }
}

fn run(number: u64, build: u64) -> Run {
    let counts = |function: u64| {
        let count = number * 7 + function + 1;
        FunctionCounts::whole([count, count], [count])
    };
    Run {
        key: format!("run-{number}"),
        command: vec![format!("./shard-{number}")],
        modules: vec![ModuleCounts {
            build_id: format!("build-{build}"),
            functions: (0..FUNCTIONS).map(counts).collect(),
        }],
        ..Run::default()
    }
}

#[test]
fn five_hundred_profiles_take_no_more_memory_than_one() {
    let shop = Workshop::new();
    let modules: Vec<Module> = (0..5).map(module).collect();
    // The first of each build is made; the others are copies of it with another run.
    let mut names = Vec::new();
    let mut bytes = 0;
    for number in 0..PROFILES {
        let build = number % 5;
        let name = format!("{number}.db");
        let path = shop.path(&name);
        let mut profile = Profile::create_or_open(&path).unwrap();
        let modules = &modules[build as usize..=build as usize];
        profile.add(modules, &run(number, build)).unwrap();
        drop(profile);
        bytes += path.metadata().unwrap().len();
        names.push(name);
    }
    // One was cut off in the middle, one is empty, one is something else.
    let whole = fs::read(shop.path("123.db")).unwrap();
    shop.write("123.db", &whole[..whole.len() / 2]);
    shop.write("124.db", "");
    shop.write("125.db", "<html>not found</html>");

    // Less address space than the profiles take.
    let kilobytes = 120_000;
    assert!(bytes > kilobytes * 1024, "{bytes}");
    let script = format!("ulimit -v {kilobytes} && exec \"$0\" merge \"$@\" -o all.db");
    let mut command = shop.command("sh");
    let said = said(command.args(["-c", &script, HEADCOUNT]).args(&names));
    assert_eq!(said.status, Some(1), "{said:?}");
    for broken in ["123.db", "124.db", "125.db"] {
        let named = format!("headcount: left out: {broken}: ");
        assert!(said.stderr.contains(&named), "{broken}: {said:?}");
    }
    assert!(said.stderr.contains("all.db: 497 runs added"), "{said:?}");

    let all = Profile::open(&shop.path("all.db")).unwrap();
    let loaded = all.load(&RunSelection::All).unwrap();
    assert_eq!(loaded.runs.len(), 497);
    for (build, counted) in loaded.counted.iter().enumerate() {
        let runs = (0..PROFILES).filter(|it| it % 5 == build as u64);
        let runs = runs.filter(|it| !(123..=125).contains(it));
        let expected: u64 = runs.map(|it| it * 7 + 1).sum();
        assert_eq!(counted.functions[0].blocks, [Some(expected); 2]);
    }
}
