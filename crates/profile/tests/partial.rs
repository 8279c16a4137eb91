//! Runs that did not count everything, or saw only a part of a block's visit.

mod samples;

use headcount_model::{FunctionCounts, Run, Shift};
use headcount_profile::{Executed, Problem, Profile, RunSelection, merge};
use samples::{large, max, run};
use std::path::Path;

/// Of `max`: the second block of `main` only, and no edge.
fn partial(key: &str) -> Run {
    let mut it = run(key, &max(), 0);
    it.modules[0].functions = vec![
        FunctionCounts {
            blocks: vec![None, Some(7)],
            edges: vec![None; 3],
            shifts: vec![Shift {
                block: 1,
                from: 1,
                delta: -2,
            }],
            at_least: vec![1],
        },
        FunctionCounts {
            blocks: vec![None],
            edges: vec![None; 2],
            ..FunctionCounts::default()
        },
    ];
    it
}

fn stored(path: &Path, runs: &[Run]) -> Profile {
    let mut profile = Profile::create_or_open(path).unwrap();
    for run in runs {
        profile.add(&[max()], run).unwrap();
    }
    profile
}

/// How many bytes the counts of the only run and module take.
fn bytes_of_counts(path: &Path) -> i64 {
    rusqlite::Connection::open(path)
        .unwrap()
        .query_row("SELECT length(counts) FROM run_modules", [], |row| {
            row.get(0)
        })
        .unwrap()
}

#[test]
fn what_was_not_counted_comes_out_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let it = partial("a");
    let profile = stored(&path, std::slice::from_ref(&it));
    let loaded = profile.load(&RunSelection::Last).unwrap();
    assert_eq!(loaded.counted[0].functions, it.modules[0].functions);
    assert_eq!(loaded.counted[0].module, max());
    assert_eq!(loaded.notes, [""; 0]);
    // A stretch goes on across functions.
    assert_eq!(bytes_of_counts(&path), counts(&[]).len() as i64 / 2);
}

#[test]
fn a_stretch_takes_a_few_bytes_however_long() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let module = large(5000, "x");
    let mut it = run("a", &module, 3);
    for function in &mut it.modules[0].functions {
        function.edges.fill(None);
        function.blocks[1..].fill(None);
    }
    let mut profile = Profile::create_or_open(&path).unwrap();
    profile.add(&[module], &it).unwrap();
    let loaded = profile.load(&RunSelection::Last).unwrap();
    assert_eq!(loaded.counted[0].functions, it.modules[0].functions);
    // Four for each function: the gap and the count of a block, the gap and the length of a stretch.
    let bytes = bytes_of_counts(&path);
    assert!((400..420).contains(&bytes), "{bytes}");
}

#[test]
fn a_sum_is_over_the_runs_that_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let profile = stored(&path, &[partial("a"), partial("b"), run("c", &max(), 10)]);
    let both = profile.load(&RunSelection::These(vec![1, 2])).unwrap();
    let main = &both.counted[0].functions[0];
    assert_eq!(main.blocks, [None, Some(14)]);
    assert_eq!(main.edges, [None; 3]);
    assert_eq!(main.shifts[0].delta, -4);
    assert_eq!(main.at_least, [1]);
    assert_eq!(both.notes, [""; 0]);

    let all = profile.load(&RunSelection::All).unwrap();
    let main = &all.counted[0].functions[0];
    assert_eq!(main.blocks, [Some(10), Some(24)]);
    assert_eq!(main.edges, [Some(10); 3]);
    assert_eq!(main.at_least, [1]);
    assert_eq!(
        all.notes,
        [
            "Not every run counted everything: some sums in 2 functions are over those runs alone \
          that did count."
        ]
    );
}

#[test]
fn shifts_that_cancel_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut back = partial("b");
    back.modules[0].functions[0].shifts[0].delta = 2;
    let profile = stored(&folder.path().join("p.db"), &[partial("a"), back]);
    let all = profile.load(&RunSelection::All).unwrap();
    assert_eq!(all.counted[0].functions[0].shifts, []);
}

#[test]
fn merging_keeps_what_is_not_the_rule() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let two = large(50, "two");
    // Another module comes first in the output, so that every number differs.
    Profile::create_or_open(&file("1.db"))
        .unwrap()
        .add(std::slice::from_ref(&two), &run("other", &two, 1))
        .unwrap();
    let before = stored(&file("2.db"), &[partial("a"), run("b", &max(), 1)]);
    let merged = merge(&[file("1.db"), file("2.db")], &file("all.db"), |_| ()).unwrap();
    assert_eq!((merged.added, merged.broken.len()), (3, 0));
    let after = Profile::open(&file("all.db")).unwrap();
    for (old, new) in [(vec![1], vec![2]), (vec![1, 2], vec![2, 3])] {
        let old = before.load(&RunSelection::These(old)).unwrap();
        let new = after.load(&RunSelection::These(new)).unwrap();
        assert_eq!(old.counted, new.counted);
        assert_eq!(old.notes, new.notes);
    }
}

#[test]
fn how_much_a_run_executed_is_known_if_all_was_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut shifted = run("b", &max(), 10);
    let main = &mut shifted.modules[0].functions[0];
    main.shifts.push(Shift {
        block: 0,
        from: 1,
        delta: -3,
    });
    let mut limited = run("c", &max(), 10);
    limited.modules[0].functions[0].at_least.push(0);
    let profile = stored(
        &folder.path().join("p.db"),
        &[partial("a"), shifted, limited],
    );
    let executed = |instructions, at_least| Executed {
        instructions,
        at_least,
    };
    assert!(profile.executed(1).unwrap().at_least);
    assert_eq!(profile.executed(2).unwrap(), executed(47, false));
    assert_eq!(profile.executed(3).unwrap(), executed(50, true));
}

#[test]
fn what_contradicts_the_module_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = Profile::create_or_open(&folder.path().join("p.db")).unwrap();
    let shift = |block, from, delta| Shift { block, from, delta };
    for wrong in [
        shift(2, 0, 1),  // no such block
        shift(1, 2, 1),  // behind the block
        shift(1, 1, -8), // less often than never
    ] {
        let mut it = partial("a");
        it.modules[0].functions[0].shifts = vec![wrong];
        let error = profile.add(&[max()], &it).unwrap_err();
        assert!(matches!(error.problem, Problem::Misfit { .. }), "{error}");
    }
    let mut it = partial("a");
    it.modules[0].functions[0].at_least = vec![2];
    let error = profile.add(&[max()], &it).unwrap_err();
    assert!(matches!(error.problem, Problem::Misfit { .. }), "{error}");
    assert!(profile.runs().unwrap().is_empty());
}

#[test]
fn what_is_said_of_an_uncounted_block_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut it = partial("a");
    let main = &mut it.modules[0].functions[0];
    main.shifts.push(Shift {
        block: 0,
        from: 1,
        delta: 1,
    });
    main.at_least = vec![0, 1];
    let profile = stored(&folder.path().join("p.db"), &[it]);
    let loaded = profile.load(&RunSelection::Last).unwrap();
    assert_eq!(
        loaded.counted[0].functions,
        partial("a").modules[0].functions
    );
}

/// The parts of the counts of `partial`, as `counts.rs` writes them.
const PARTS: [(&str, &str); 6] = [
    ("blocks", "01 01 07"),
    ("uncounted blocks", "02 0001 0101"),
    ("edges", "00"),
    ("uncounted edges", "01 0005"),
    ("shifts", "01 01 01 03"),
    ("limits", "01 01"),
];

/// The same as hexadecimal digits, with other parts.
fn counts(others: &[(&str, &str)]) -> String {
    let part = |(name, digits): (&str, &str)| {
        let other = others.iter().find(|it| it.0 == name);
        other.map_or(digits, |it| it.1).replace(' ', "")
    };
    PARTS.map(part).concat()
}

#[test]
fn counts_that_do_not_fit_are_refused() {
    let largest = "ffffffffffffffffff01";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    drop(stored(&path, &[partial("a")]));
    let put = |digits: &str| {
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch(&format!("UPDATE run_modules SET counts = x'{digits}'"))
            .unwrap();
    };
    put(&counts(&[]));
    let whole = Profile::open(&path).unwrap().load(&RunSelection::All);
    let expected = partial("a").modules.remove(0).functions;
    assert_eq!(whole.unwrap().counted[0].functions, expected);
    let huge = format!("01 01 {largest}");
    let endless = format!("01 00 {largest}");
    let deep = format!("01 01 01 {largest}");
    for (part, digits) in [
        ("blocks", "01 01 00"),     // a count of zero
        ("blocks", huge.as_str()),  // one that is no number of SQL's
        ("blocks", "01 03 07"),     // no such block
        ("blocks", "02 0007 0007"), // a block that was not counted
        ("uncounted blocks", "02 0001 0102"),
        ("uncounted blocks", "01 0000"), // a stretch of nothing
        ("uncounted blocks", "01 0003"), // counted, too
        ("uncounted blocks", endless.as_str()),
        ("edges", "01 00 05"), // not counted
        ("uncounted edges", "01 0006"),
        ("shifts", "01 01 02 03"), // behind its block
        ("shifts", "01 01 8080808010 03"),
        ("shifts", "01 01 01 0f"), // less often than never
        ("shifts", deep.as_str()),
        ("shifts", "01 00 01 03"),      // of a block that was not counted
        ("shifts", "02 010103 000103"), // twice the same instruction
        ("limits", "01 00"),
        ("limits", "01 03"),
        ("limits", "01"),       // cut off
        ("limits", "01 01 00"), // more than there are
        ("limits", "ffffffff0f 01"),
    ] {
        put(&counts(&[(part, digits)]));
        is_refused(&path, &format!("{part}: {digits}"));
    }
    put("");
    is_refused(&path, "nothing");
}

/// Whoever wrote the file, what reaches a report fits its module.
fn is_refused(path: &Path, evil: &str) {
    let loaded = Profile::open(path).unwrap().load(&RunSelection::All);
    let error = loaded.expect_err(evil);
    let is_damaged = matches!(error.problem, Problem::Damaged(_));
    assert!(is_damaged, "{evil}: {error}");
    let merged = merge(&[path], &path.with_file_name("all.db"), |_| ()).unwrap();
    assert_eq!((merged.added, merged.broken.len()), (0, 1), "{evil}");
}

#[test]
fn facts_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (number, evil) in [
        "UPDATE functions SET facts = x''",
        "UPDATE functions SET facts = x'0000'",
        "UPDATE functions SET facts = CAST(facts || x'00' AS BLOB)",
        "UPDATE functions SET instructions = instructions + 1",
        "UPDATE functions SET instructions = -1",
        "UPDATE functions SET edges = edges + 1",
        "UPDATE functions SET first_block = first_block + 1",
        "UPDATE modules SET first_block = 9223372036854775807",
        "UPDATE modules SET first_block = -9223372036854775808",
        "UPDATE modules SET blocks = -1",
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("{number}.db"));
        drop(stored(&path, &[partial("a")]));
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        db.execute_batch(evil).unwrap();
        drop(db);
        is_refused(&path, evil);
    }
}
