//! Programs whose time is known.

use headcount_sampling::{Outcome, Settings, run};
use std::ffi::OsString;

fn sampled(script: &str) -> Outcome {
    let command = ["/bin/sh", "-c", script].map(OsString::from);
    let settings = Settings {
        as_it_is: false,
        frequency: 1000,
        stack: 8192,
        wait: false,
        duration: None,
        read: &|_, path| Some(std::sync::Arc::new(std::fs::read(path).ok()?)),
        debug_file: &|_, _| None,
        prepare: &|_| (),
        signal: &|_| None,
        begun: &|| (),
    };
    run(&command, &settings).unwrap()
}

fn sum(outcome: &Outcome, of: fn(&headcount_model::SampledThread) -> u64) -> u64 {
    outcome.samples.threads.iter().map(of).sum()
}

#[test]
fn a_program_that_sleeps_is_off_the_processor() {
    let outcome = sampled("exec sleep 0.3");
    assert_eq!(outcome.status, Some(0));
    let waiting = sum(&outcome, |it| it.waiting);
    let on_processor = sum(&outcome, |it| it.on_processor);
    assert!(waiting > 290_000_000, "waiting {waiting}");
    assert!(waiting < outcome.elapsed, "waiting {waiting}");
    assert!(on_processor < 290_000_000, "on a processor {on_processor}");
}

#[test]
fn the_status_is_that_of_the_program() {
    assert_eq!(sampled("exit 7").status, Some(7));
    assert_eq!(sampled("kill -TERM $$").status, Some(128 + 15));
}

#[test]
fn children_are_sampled() {
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
    let outcome = sampled(&format!("({busy}) & ({busy}) & wait"));
    let threads = outcome.samples.threads.iter();
    let busy = threads.filter(|it| !it.samples.is_empty()).count();
    assert!(busy >= 2, "{:#?}", outcome.samples.threads);
}
