//! Runs of which only the readings of counters are stored, until somebody asks for counts.

#[expect(dead_code, reason = "one sample suffices here")]
mod samples;

use headcount_model::{FunctionCounts, Run};
use headcount_profile::{
    ModuleCounted, ModuleFacts, Problem, Profile, RunSelection, SparseCounts, merge,
};
use samples::{max, run};
use std::path::Path;

/// One byte: how often all of `main` ran. More than 9 is a contradiction, and 0 makes no sense.
fn recover(facts: &ModuleFacts, bytes: &[u8]) -> Result<(SparseCounts, Vec<String>), String> {
    let [count @ 1..=u8::MAX] = *bytes else {
        return Err("zero".to_owned());
    };
    let notes = (count > 9).then(|| "main ran too often".to_owned());
    let main = FunctionCounts::whole([u64::from(count); 2], [u64::from(count); 3]);
    let counts = SparseCounts {
        build_id: facts.build_id.clone(),
        functions: vec![(0, main)],
        uncounted: std::iter::once(1..2).collect(),
    };
    Ok((counts, notes.into_iter().collect()))
}

fn without_counts(key: &str) -> Run {
    let mut it = run(key, &max(), 0);
    it.modules.clear();
    it
}

/// A profile with a run for each byte.
fn stored(path: &Path, runs: &[(&str, u8)]) -> Profile {
    let mut profile = Profile::create_or_open(path).unwrap();
    let facts = ModuleFacts::new(&max(), Vec::new());
    for (key, byte) in runs {
        let readings = ModuleCounted::Readings {
            build_id: facts.build_id.clone(),
            readings: vec![*byte],
        };
        let run = without_counts(key);
        profile
            .add_encoded(std::slice::from_ref(&facts), &run, &[readings])
            .unwrap();
    }
    profile.with_recovery(recover)
}

fn main_ran(profile: &Profile, runs: &RunSelection) -> Option<u64> {
    let loaded = profile.load(runs).unwrap();
    assert_eq!(loaded.counted[0].functions[1].blocks, [None]);
    loaded.counted[0].functions[0].blocks[0]
}

#[test]
fn counts_are_made_for_whoever_asks_and_once_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let mut profile = stored(&path, &[("a", 3), ("b", 5)]);
    for _ in 0..2 {
        assert_eq!(main_ran(&profile, &RunSelection::Last), Some(5));
        assert_eq!(main_ran(&profile, &RunSelection::All), Some(8));
        assert_eq!(profile.executed(1).unwrap().instructions, 12);
        profile.recover_readings().unwrap();
    }
    drop(profile);
    // Nobody needs to know any more how they are made.
    let profile = Profile::open(&path).unwrap();
    assert_eq!(main_ran(&profile, &RunSelection::All), Some(8));
}

#[test]
fn what_those_say_who_make_them_is_a_note_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = stored(&folder.path().join("p.db"), &[("a", 3), ("b", 10)]);
    let note = "main ran too often";
    assert_eq!(profile.load(&RunSelection::All).unwrap().notes, [note]);
    profile.recover_readings().unwrap();
    let loaded = profile.load(&RunSelection::All).unwrap();
    assert!(loaded.notes.is_empty());
    assert!(!loaded.runs[0].notes.iter().any(|it| it == note));
    assert!(loaded.runs[1].notes.iter().any(|it| it == note));
}

#[test]
fn readings_that_make_no_sense_are_refused_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let mut profile = stored(&path, &[("a", 3), ("b", 0)]);
    let error = profile.recover_readings().unwrap_err();
    assert!(matches!(error.problem, Problem::Damaged(_)), "{error}");
    let first = RunSelection::These(vec![1]);
    assert_eq!(main_ran(&profile, &first), Some(3));
    let error = profile.load(&RunSelection::All).unwrap_err();
    assert!(matches!(error.problem, Problem::Damaged(_)), "{error}");
    // Who does not know how counts are made says so.
    let error = Profile::open(&path).unwrap().load(&first).unwrap_err();
    assert!(error.to_string().contains("were not read"), "{error}");
}

#[test]
fn merging_takes_readings_along() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    drop(stored(&file("1.db"), &[("a", 3)]));
    drop(stored(&file("2.db"), &[("b", 4), ("c", 1)]));
    let merged = merge(&[file("1.db"), file("2.db")], &file("all.db"), |_| ()).unwrap();
    assert_eq!((merged.added, merged.broken.len()), (3, 0));
    let all = Profile::open(&file("all.db")).unwrap();
    let all = all.with_recovery(recover);
    assert_eq!(main_ran(&all, &RunSelection::All), Some(8));
}
