//! Which counts and samples are of the same work.

use headcount_model::{Run, Samples};
use headcount_profile::{Profile, RunSelection, Work};

fn run(key: &str, command: &str) -> Run {
    Run {
        key: key.into(),
        command: vec![command.into()],
        status: Some(0),
        ..Run::default()
    }
}

fn work(counted: &[Run], timed: &[(Run, bool)], which: &RunSelection) -> Work {
    let mut profile = Profile::in_memory().unwrap();
    for run in counted {
        profile.add(&[], run).unwrap();
    }
    for (run, is_counted) in timed {
        let samples = Samples {
            interval: 1,
            is_counted: *is_counted,
            ..Samples::default()
        };
        profile.add_timed(run, &samples).unwrap();
    }
    profile.load(which).unwrap().work
}

fn same(counted: u64, sampled: u64) -> Work {
    Work::Same { counted, sampled }
}

#[test]
fn whole_runs_of_one_command_are_the_same_work() {
    let counted = [run("1", "a"), run("2", "a")];
    let timed = [(run("3", "a"), false)];
    assert_eq!(work(&counted, &[], &RunSelection::All), Work::Alone);
    assert_eq!(work(&[], &timed, &RunSelection::All), Work::Alone);
    assert_eq!(work(&counted, &timed, &RunSelection::All), same(2, 1));
    assert_eq!(work(&counted, &timed, &RunSelection::Last), same(1, 1));
}

#[test]
fn commands_must_be_there_in_the_same_proportion() {
    let of_both = |b: &str| [run("1", "a"), run("2", b)];
    let timed = [(run("3", "a"), false), (run("4", "b"), false)];
    let of = |counted: &[Run]| work(counted, &timed, &RunSelection::All);
    assert_eq!(of(&of_both("b")), same(2, 2));
    assert!(matches!(of(&of_both("c")), Work::Unrelated(_)));
    assert!(matches!(of(&of_both("a")), Work::Unrelated(_)));
}

#[test]
fn who_saw_a_part_or_ended_otherwise_did_other_work() {
    let part = Run {
        is_part: true,
        ..run("2", "a")
    };
    let ended = |status: i32| Run {
        status: Some(status),
        ..run("2", "a")
    };
    for (other, why) in [
        (part, "run 2 saw only a part"),
        (ended(137), "run 2 was ended by signal 9"),
        (ended(1), "not all runs ended with the same status"),
    ] {
        let found = work(&[run("1", "a")], &[(other, false)], &RunSelection::All);
        let Work::Unrelated(said) = found else {
            panic!("{why}: {found:?}");
        };
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn what_was_counted_and_timed_at_once_is_the_same_however_it_ended() {
    let killed = |key: &str, batch: &str| Run {
        batch: batch.into(),
        is_part: true,
        status: Some(137),
        ..run(key, "a")
    };
    let of = |batch: &str, at_once: bool| {
        let timed = [(killed("2", batch), at_once)];
        work(&[killed("1", "one")], &timed, &RunSelection::All)
    };
    assert_eq!(of("one", true), same(1, 1));
    assert!(matches!(of("two", true), Work::Unrelated(_)));
    assert!(matches!(of("one", false), Work::Unrelated(_)));
}

#[test]
fn all_phases_are_one_run_and_some_are_a_part_of_it() {
    let phase = |key: &str, name: &str| Run {
        batch: "one".into(),
        phase: name.into(),
        ..run(key, "a")
    };
    let counted = [phase("1", "start"), phase("2", "end")];
    let timed = [(run("3", "a"), false)];
    let of = |runs: &[i64]| work(&counted, &timed, &runs.to_vec().into());
    assert_eq!(of(&[1, 2, 3]), same(1, 1));
    assert!(matches!(of(&[1, 3]), Work::Unrelated(_)));
    // Processes that counted themselves, of one run or of several.
    let counted = [phase("1", ""), phase("2", "")];
    let found = work(&counted, &timed, &RunSelection::All);
    assert!(matches!(found, Work::Unrelated(_)), "{found:?}");
}
