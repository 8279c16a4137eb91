//! What threads counted: stored, merged and removed with their runs.

use headcount_model::{CountedThread, Run, ThreadCounts, ThreadModule};
use headcount_profile::{Profile, RunSelection, merge};
use std::path::Path;

fn counted(name: &str) -> ThreadCounts {
    ThreadCounts {
        modules: vec![ThreadModule {
            build_id: "ab".into(),
            readings: vec![0, 255],
        }],
        threads: vec![CountedThread {
            process: 1,
            pid: 10,
            tid: 11,
            name: name.into(),
            executed: u64::MAX,
            at_least: true,
            counts: vec![7; 1000],
        }],
    }
}

fn add(path: &Path, key: &str, threads: Option<ThreadCounts>) {
    let run = Run {
        key: key.into(),
        threads,
        ..Run::default()
    };
    let mut profile = Profile::create_or_open(path).unwrap();
    profile.add(&[], &run).unwrap();
}

fn found(path: &Path) -> Vec<Option<ThreadCounts>> {
    let profile = Profile::open(path).unwrap();
    let found = profile.thread_counts(&RunSelection::All).unwrap();
    found.into_iter().map(|it| it.1).collect()
}

#[test]
fn counts_of_threads_follow_their_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.db"), folder.path().join("two.db"));
    add(&one, "1", Some(counted("a \"b\"\n")));
    add(&one, "2", None);
    add(&two, "3", Some(counted("")));
    let both = folder.path().join("both.db");
    let merged = merge(&[&one, &two], &both, |_| ()).unwrap();
    assert!(merged.broken.is_empty());
    let expected = [Some(counted("a \"b\"\n")), None, Some(counted(""))];
    assert_eq!(found(&both), expected);
    let mut profile = Profile::open(&both).unwrap();
    profile.remove(&vec![1].into()).unwrap();
    drop(profile);
    assert_eq!(found(&both), expected[1..]);
}
