//! What needs a look inside the connection. Everything else is in `tests/`.

use crate::{Added, Problem, Profile, RunSelection};
use headcount_model::{Block, Function, FunctionCounts, LinkAddr, Module, ModuleCounts, Run};

fn module(blocks: usize) -> Module {
    let block = |n: usize| Block {
        address: LinkAddr(n as u64),
        instructions: 1,
        ..Block::default()
    };
    Module {
        path: "/bin/it".into(),
        build_id: format!("{blocks} blocks"),
        functions: vec![Function {
            name: "f".into(),
            address: LinkAddr(0),
            source: None,
            blocks: (0..blocks).map(block).collect(),
            edges: Vec::new(),
            counters: 1,
            compiled: Default::default(),
        }],
        ..Module::default()
    }
}

fn run(key: &str, module: &Module, count: u64) -> Run {
    let functions = module.functions.iter().map(|function| {
        FunctionCounts::whole(
            vec![count; function.blocks.len()],
            vec![count; function.edges.len()],
        )
    });
    Run {
        key: key.into(),
        modules: vec![ModuleCounts {
            build_id: module.build_id.clone(),
            functions: functions.collect(),
        }],
        ..Run::default()
    }
}

#[test]
fn a_full_disk_loses_the_new_run_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.db");
    let mut profile = Profile::create_or_open(&path).unwrap();
    let small = module(3);
    let first = profile.add(std::slice::from_ref(&small), &run("1", &small, 7));
    assert_eq!(first.unwrap(), Added::New(1));
    let before = profile.load(&RunSelection::All).unwrap();

    let pages: i64 = profile
        .db
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    profile
        .db
        .pragma_update(None, "max_page_count", pages + 5)
        .unwrap();
    let large = module(100_000);
    let error = profile
        .add(std::slice::from_ref(&large), &run("2", &large, 7))
        .unwrap_err();
    assert!(matches!(error.problem, Problem::Full), "{error}");
    assert!(
        error.to_string().contains("full.db: no room on the disk"),
        "{error}"
    );

    // The same connection goes on, and so does a new one.
    assert_eq!(profile.load(&RunSelection::All).unwrap(), before);
    drop(profile);
    let mut profile = Profile::create_or_open(&path).unwrap();
    assert_eq!(profile.load(&RunSelection::All).unwrap(), before);
    let again = profile.add(std::slice::from_ref(&large), &run("2", &large, 7));
    assert_eq!(again.unwrap(), Added::New(2));
}

#[test]
fn counts_that_do_not_fit_the_module_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = Profile::create_or_open(&folder.path().join("p.db")).unwrap();
    let three = module(3);
    let mut wrong = run("1", &three, 7);
    wrong.modules[0].functions[0].blocks.push(Some(1));
    let error = profile
        .add(std::slice::from_ref(&three), &wrong)
        .unwrap_err();
    assert!(matches!(error.problem, Problem::Misfit { .. }), "{error}");
    assert!(profile.runs().unwrap().is_empty());
}

#[test]
fn a_build_id_used_twice_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = Profile::create_or_open(&folder.path().join("p.db")).unwrap();
    let three = module(3);
    profile
        .add(std::slice::from_ref(&three), &run("1", &three, 7))
        .unwrap();
    let mut four = module(4);
    four.build_id = three.build_id.clone();
    let error = profile
        .add(std::slice::from_ref(&four), &run("2", &four, 7))
        .unwrap_err();
    assert!(
        matches!(error.problem, Problem::OtherBuild { .. }),
        "{error}"
    );
}

#[test]
fn a_count_that_sqlite_cannot_hold_is_refused_not_bent() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = Profile::create_or_open(&folder.path().join("p.db")).unwrap();
    let three = module(3);
    let modules = std::slice::from_ref(&three);
    let error = profile
        .add(modules, &run("1", &three, 1 << 63))
        .unwrap_err();
    assert!(matches!(error.problem, Problem::TooLarge(_)), "{error}");
    let largest = (1 << 63) - 1;
    for key in ["1", "2"] {
        profile.add(modules, &run(key, &three, largest)).unwrap();
    }
    // Two of them still fit into 64 bits, three do not.
    let sum = profile.load(&RunSelection::All).unwrap();
    assert_eq!(sum.counted[0].functions[0].blocks[0], Some(2 * largest));
    profile.add(modules, &run("3", &three, largest)).unwrap();
    let error = profile.load(&RunSelection::All).unwrap_err();
    assert!(matches!(error.problem, Problem::TooLarge(_)), "{error}");
}
