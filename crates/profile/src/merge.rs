//! Many profiles into one.

use crate::counts::{Kept, RunCounts, write_readings};
use crate::packed;
use crate::read;
use crate::samples;
use crate::system_calls;
use crate::write::{self, Stored};
use crate::{Error, Problem, Profile, Result};
use rusqlite::Connection;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a merge did.
#[derive(Debug, Default)]
pub struct Merged {
    /// Runs that are new in the output.
    pub added: usize,
    /// Runs that were there already.
    pub already_there: usize,
    /// Inputs of which nothing was taken, and why.
    pub broken: Vec<Error>,
}

/// Adds all runs of the `inputs` to `output`, which is made if it is not there.
///
/// One pass, one input open at a time, and never more than one module in memory. All of it is
/// one transaction: a merge that is killed, or that finds no room, leaves `output` as it was. A
/// broken input is left out whole, and listed. `progress` hears of each input before its turn.
pub fn merge<P: AsRef<Path>>(
    inputs: &[P],
    output: &Path,
    mut progress: impl FnMut(&Path),
) -> Result<Merged> {
    let mut merged = Merged::default();
    let mut opened: Option<Profile> = None;
    for input in inputs {
        let input = input.as_ref();
        progress(input);
        if same_file(input, output) {
            continue; // its runs are there already
        }
        let from = match Profile::open(input) {
            Ok(from) => from,
            Err(error) => {
                merged.broken.push(error);
                continue;
            }
        };
        // Opened late, so that a merge of nothing but broken files makes no file.
        let to = match &mut opened {
            Some(to) => to,
            none => none.insert(begin(output)?),
        };
        match add_all(&from.db, &to.db) {
            Ok((added, already_there)) => {
                merged.added += added;
                merged.already_there += already_there;
            }
            Err(Side::Input(problem)) => merged.broken.push(problem.of(input)),
            Err(Side::Output(problem)) => return Err(problem.of(output)),
        }
    }
    if let Some(to) = opened {
        let committed = to.db.execute_batch("COMMIT");
        committed.map_err(|error| Problem::from(error).of(output))?;
    }
    Ok(merged)
}

fn same_file(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| path.metadata().ok().map(|it| (it.dev(), it.ino()));
    identity(a).is_some_and(|a| Some(a) == identity(b))
}

/// Opens the output and begins the one transaction; dropping the connection undoes it.
fn begin(output: &Path) -> Result<Profile> {
    let to = Profile::create_or_open(output)?;
    let begun = to.db.execute_batch("BEGIN IMMEDIATE");
    begun.map_err(|error| Problem::from(error).of(output))?;
    Ok(to)
}

/// On which side something went wrong: a bad input is skipped, a bad output ends the merge.
enum Side {
    Input(Problem),
    Output(Problem),
}

fn input<T, E: Into<Problem>>(result: Result<T, E>) -> Result<T, Side> {
    result.map_err(|error| Side::Input(error.into()))
}

fn output<T, E: Into<Problem>>(result: Result<T, E>) -> Result<T, Side> {
    result.map_err(|error| Side::Output(error.into()))
}

fn add_all(from: &Connection, to: &Connection) -> Result<(usize, usize), Side> {
    output(to.execute_batch("SAVEPOINT one_input"))?;
    let moment = input(from.unchecked_transaction())?;
    match add_modules_and_runs(&moment, to) {
        Ok(done) => {
            output(to.execute_batch("RELEASE one_input"))?;
            Ok(done)
        }
        Err(Side::Input(problem)) => {
            output(to.execute_batch("ROLLBACK TO one_input; RELEASE one_input"))?;
            Err(Side::Input(problem))
        }
        Err(error) => Err(error),
    }
}

fn add_modules_and_runs(from: &Connection, to: &Connection) -> Result<(usize, usize), Side> {
    let modules = add_modules(from, to)?;
    let (mut added, mut already_there) = (0, 0);
    for id in input(read::run_ids(from))? {
        let mut run = input(read::run(from, id))?;
        if output(write::has_run(to, &run.key))? {
            already_there += 1;
            continue;
        }
        run.calls = input(packed::read(from, id))?;
        run.values = input(packed::read(from, id))?;
        run.threads = input(packed::read(from, id))?;
        run.runtimes = input(packed::read(from, id))?;
        input(system_calls::add(from, id, &mut run.system_calls))?;
        let new_id = output(write::add_run(to, &run))?;
        for (old, new) in &modules {
            add_counts(from, to, (id, old), (new_id, new))?;
        }
        if let Some(samples) = input(samples::read(from, id))? {
            output(samples::write(to, new_id, &samples))?;
        }
        added += 1;
    }
    Ok((added, already_there))
}

/// Stores the facts that are new, and says for every module where it is on both sides.
fn add_modules(from: &Connection, to: &Connection) -> Result<Vec<(Stored, Stored)>, Side> {
    let mut pairs = Vec::new();
    for old in input(read::all_modules(from))? {
        let known = output(write::stored(to, &old.build_id))?;
        let new = match known {
            Some(known) if known.shape == old.shape => known,
            Some(_) => {
                return Err(Side::Input(Problem::OtherBuild { module: old.path }));
            }
            None => {
                let module = input(read::facts(from, &old))?;
                // They are copied as they are; but what is broken is to stay where it is.
                input(module.check())?;
                output(write::add_facts(to, &module))?;
                let stored = output(write::stored(to, &old.build_id))?;
                output(stored.ok_or(Problem::Damaged("a module vanished".into())))?
            }
        };
        if (old.blocks, old.edges) != (new.blocks, new.edges) {
            let what = "a module has other blocks than its digest says";
            return Err(Side::Input(Problem::Damaged(what.into())));
        }
        pairs.push((old, new));
    }
    Ok(pairs)
}

/// Copies the counts one run has for one module. Both sides number blocks and edges in the
/// module's order.
fn add_counts(
    from: &Connection,
    to: &Connection,
    (old_run, old): (i64, &Stored),
    (new_run, new): (i64, &Stored),
) -> Result<(), Side> {
    match input(RunCounts::read(from, old, old_run))? {
        None => Ok(()),
        Some(Kept::Counts(counts)) => output(counts.write(to, new, new_run)),
        Some(Kept::Readings(readings)) => output(write_readings(to, new, new_run, &readings)),
    }
}
