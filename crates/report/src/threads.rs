//! Threads and processes, by what they executed.

use crate::Error;
use crate::count::Count;
use crate::table::{Cell, Row};
use crate::time;
use headcount_model::{CountedThread, Samples, ThreadCounts};
use std::collections::{BTreeMap, BTreeSet};

/// What stands for the name of threads that are not told apart.
const REST: &str = "(not told apart)";

/// One row a thread: those that were counted, those that were sampled, and one for both where the
/// program was sampled while it was counted.
pub fn threads(counted: &[ThreadCounts], samples: &[&Samples]) -> Vec<Row> {
    let counted = counted.iter().flat_map(|it| &it.threads);
    let mut rows: Vec<Row> = counted.map(thread).collect();
    let mut only: BTreeMap<(u64, u64), Option<usize>> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        if let Some(numbers) = numbers(row) {
            let known = only.entry(numbers).or_insert(Some(number));
            // The kernel used its number again, or it became another program.
            *known = known.filter(|it| *it == number);
        }
    }
    for samples in samples {
        for sampled in time::threads(samples) {
            let same = numbers(&sampled).filter(|_| samples.is_counted);
            match same.and_then(|it| only.get(&it).copied().flatten()) {
                Some(number) => add_time(&mut rows[number], sampled),
                None => rows.push(sampled),
            }
        }
    }
    rows
}

/// How many cells of a thread's row come before those that tell of time.
const BEFORE_TIME: usize = 4;

/// How many tell of time.
const TIME: usize = 5;

fn thread(thread: &CountedThread) -> Row {
    let number = |number: u32| match thread.is_rest() {
        true => Cell::Address(None),
        false => Cell::Number(number.into()),
    };
    let name = if thread.is_rest() { REST } else { &thread.name };
    let mut cells = vec![
        number(thread.pid),
        number(thread.tid),
        Cell::Text(name.into()),
        Cell::Count(executed(thread.executed, thread.at_least)),
    ];
    cells.resize(BEFORE_TIME + TIME, Cell::Address(None));
    ran(cells)
}

/// The numbers of the process and the thread.
fn numbers(row: &Row) -> Option<(u64, u64)> {
    match row.cells.as_slice() {
        [Cell::Number(process), Cell::Number(thread), ..] => Some((*process, *thread)),
        _ => None,
    }
}

fn add_time(row: &mut Row, sampled: Row) {
    row.cells.truncate(BEFORE_TIME);
    row.cells
        .extend(sampled.cells.into_iter().skip(BEFORE_TIME));
}

/// A process of a run.
#[derive(Default)]
struct Process<'a> {
    pid: u32,
    /// Of its first thread, if that is known, when it ended; else of any.
    name: &'a str,
    has_first: bool,
    threads: u64,
    executed: u64,
    at_least: bool,
}

/// One row a process.
pub fn processes(counted: &[ThreadCounts]) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for counts in counted {
        let mut processes: BTreeMap<u32, Process<'_>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for thread in &counts.threads {
            let process = processes.entry(thread.process).or_default();
            process.add(thread)?;
            // A thread that became another program is one thread.
            if seen.insert((thread.process, thread.tid)) || !is_first(thread) {
                process.threads += 1;
            }
        }
        rows.extend(processes.values().map(Process::row));
    }
    Ok(rows)
}

/// Is it the first thread of its process, which ends last and becomes other programs?
fn is_first(thread: &CountedThread) -> bool {
    thread.pid == thread.tid
}

impl<'a> Process<'a> {
    fn add(&mut self, thread: &'a CountedThread) -> Result<(), Error> {
        self.pid = thread.pid;
        if is_first(thread) || !self.has_first {
            self.name = if thread.is_rest() { REST } else { &thread.name };
            self.has_first |= is_first(thread);
        }
        let sum = self.executed.checked_add(thread.executed);
        self.executed = sum.ok_or(Error::TooLarge)?;
        self.at_least |= thread.at_least;
        Ok(())
    }

    fn row(&self) -> Row {
        let is_known = |cell| {
            if self.pid == 0 {
                Cell::Address(None)
            } else {
                cell
            }
        };
        ran(vec![
            is_known(Cell::Number(self.pid.into())),
            Cell::Text(self.name.into()),
            is_known(Cell::Number(self.threads)),
            Cell::Count(executed(self.executed, self.at_least)),
        ])
    }
}

fn executed(instructions: u64, at_least: bool) -> Count {
    match at_least {
        true => Count::AtLeast(instructions),
        false => Count::Exact(instructions),
    }
}

fn ran(cells: Vec<Cell>) -> Row {
    Row {
        cells,
        counted: true,
        ran: true,
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::SampledThread;

    fn counted(process: u32, pid: u32, tid: u32, executed: u64) -> CountedThread {
        CountedThread {
            process,
            pid,
            tid,
            name: format!("t{tid}"),
            executed,
            ..CountedThread::default()
        }
    }

    fn of(threads: Vec<CountedThread>) -> Vec<ThreadCounts> {
        vec![ThreadCounts {
            threads,
            ..ThreadCounts::default()
        }]
    }

    fn numbers_of(rows: &[Row], column: usize) -> Vec<u64> {
        rows.iter().map(|it| it.cells[column].amount()).collect()
    }

    #[test]
    fn processes_add_up_their_threads() {
        let all = of(vec![
            counted(1, 7, 8, 5),
            counted(1, 7, 7, 10),
            counted(1, 7, 7, 100),
            counted(2, 7, 7, 1),
            CountedThread {
                executed: 3,
                ..CountedThread::default()
            },
        ]);
        let rows = processes(&all).unwrap();
        assert_eq!(numbers_of(&rows, 0), [0, 7, 7]);
        assert_eq!(numbers_of(&rows, 2), [0, 2, 1]);
        assert_eq!(numbers_of(&rows, 3), [3, 115, 1]);
        assert_eq!(rows[0].cells[1], Cell::Text(REST.into()));
        assert_eq!(rows[1].cells[1], Cell::Text("t7".into()));
    }

    #[test]
    fn samples_of_a_counted_run_are_of_its_threads() {
        let all = of(vec![
            counted(1, 7, 7, 10),
            counted(1, 7, 8, 5),
            counted(1, 7, 8, 6),
        ]);
        let sampled = |tid| SampledThread {
            pid: 7,
            tid,
            ..SampledThread::default()
        };
        let mut samples = Samples {
            is_counted: true,
            threads: vec![sampled(7), sampled(8), sampled(9)],
            ..Samples::default()
        };
        let threads_of = |samples: &Samples| numbers_of(&threads(&all, &[samples]), 1);
        // There were two with this number: nobody knows which one it is.
        assert_eq!(threads_of(&samples), [7, 8, 8, 8, 9]);
        samples.is_counted = false;
        assert_eq!(threads_of(&samples), [7, 8, 8, 7, 8, 9]);
    }
}
