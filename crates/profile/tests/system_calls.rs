//! System calls by number: stored, added up, merged and removed with their runs.

use headcount_model::SystemCallNumber::{self, Is, Other};
use headcount_model::{Run, SystemCalls};
use headcount_profile::{Profile, RunSelection, merge};
use std::path::Path;

fn calls(made: &[(SystemCallNumber, u64)]) -> SystemCalls {
    let mut calls = SystemCalls::default();
    for (number, times) in made {
        calls.add(*number, *times).unwrap();
    }
    calls
}

fn add(profile: &mut Profile, key: &str, made: &[(SystemCallNumber, u64)]) {
    let run = Run {
        key: key.into(),
        system_calls: calls(made),
        ..Run::default()
    };
    profile.add(&[], &run).unwrap();
}

fn made(path: &Path, runs: &[i64]) -> SystemCalls {
    let which = RunSelection::from(runs.to_vec());
    let loaded = Profile::open(path).unwrap().load(&which).unwrap();
    loaded.system_calls
}

#[test]
fn system_calls_follow_their_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.db"), folder.path().join("two.db"));
    let mut profile = Profile::create_or_open(&one).unwrap();
    add(&mut profile, "1", &[(Is(0), 3), (Is(39), 1), (Other, 2)]);
    add(&mut profile, "2", &[]);
    drop(profile);
    let mut profile = Profile::create_or_open(&two).unwrap();
    add(&mut profile, "3", &[(Is(0), 5), (Is(450), 7)]);
    drop(profile);
    let both = folder.path().join("both.db");
    assert!(
        merge(&[&one, &two], &both, |_| ())
            .unwrap()
            .broken
            .is_empty()
    );
    assert_eq!(made(&both, &[2]), SystemCalls::default());
    let sum = [(Is(0), 8), (Is(39), 1), (Is(450), 7), (Other, 2)];
    assert_eq!(made(&both, &[1, 2, 3]), calls(&sum));
    let mut profile = Profile::open(&both).unwrap();
    profile.remove(&vec![1].into()).unwrap();
    // Its number is free again, and what it called is not there for the next one.
    add(&mut profile, "4", &[]);
    drop(profile);
    assert_eq!(made(&both, &[2, 3, 4]), calls(&[(Is(0), 5), (Is(450), 7)]));
}

#[test]
fn too_many_to_add_up_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.db");
    let mut profile = Profile::create_or_open(&path).unwrap();
    let largest = u64::MAX / 2;
    for key in ["1", "2", "3"] {
        add(&mut profile, key, &[(Is(0), largest)]);
    }
    let sum = |runs: Vec<i64>| profile.load(&runs.into());
    assert_eq!(
        sum(vec![1, 2]).unwrap().system_calls.total(),
        Some(2 * largest)
    );
    assert!(sum(vec![1, 2, 3]).is_err());
}
