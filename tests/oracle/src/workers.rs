//! Many cases, a few workers.

use std::sync::Mutex;
use std::thread;

/// Looks at every case; all that is wrong with any of them, sorted.
pub fn complaints<T: Send>(
    cases: Vec<T>,
    workers: usize,
    look: impl Fn(&T) -> Vec<String> + Sync,
) -> Vec<String> {
    let left = Mutex::new(cases);
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("no worker panicked").pop();
                    let Some(case) = next else { break };
                    let wrong = look(&case);
                    found.lock().expect("no worker panicked").extend(wrong);
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no worker panicked");
    found.sort();
    found
}
