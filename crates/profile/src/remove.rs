//! Runs that are no longer wanted, and the space they took.

use crate::read::{all, run_ids, select_all};
use crate::{Problem, Profile, Result, RunSelection};
use rusqlite::{Connection, TransactionBehavior};
use std::collections::HashSet;

/// What was taken out of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// So many runs.
    pub runs: usize,
    /// So many modules that no other run has counted.
    pub modules: usize,
    /// By so many bytes the file is smaller.
    pub bytes: u64,
    /// Why it could not be made smaller, if that failed.
    pub kept_size: Option<String>,
}

impl Profile {
    /// Takes runs out, with what only they counted, and gives their space back.
    pub fn remove(&mut self, which: &RunSelection) -> Result<Removed> {
        self.try_remove(|db| select_all(db, run_ids(db)?, which))
    }

    /// The same with all runs but those of the last so many commands.
    pub fn remove_all_but_last(&mut self, commands: usize) -> Result<Removed> {
        self.try_remove(|db| old_runs(db, commands))
    }

    fn try_remove(
        &mut self,
        doomed: impl FnOnce(&Connection) -> Result<Vec<i64>, Problem>,
    ) -> Result<Removed> {
        let attempt = || {
            let before = size(&self.db)?;
            let transaction = self
                .db
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let doomed = doomed(&transaction)?;
            take_out(&transaction, &doomed)?;
            let modules = take_out_unused_modules(&transaction)?;
            transaction.commit()?;
            // What is gone is gone, also where there is no room to write the rest anew.
            let written = self.db.execute_batch("VACUUM");
            Ok(Removed {
                runs: doomed.len(),
                modules,
                bytes: before.saturating_sub(size(&self.db)?),
                kept_size: written.err().map(|error| error.to_string()),
            })
        };
        let removed: Result<Removed, Problem> = attempt();
        removed.map_err(|problem| problem.of(&self.path))
    }
}

/// All runs but those of the last so many commands.
fn old_runs(db: &Connection, commands: usize) -> Result<Vec<i64>, Problem> {
    let newest_first = "SELECT id, batch FROM runs ORDER BY id DESC";
    let runs: Vec<(i64, String)> = all(db, newest_first, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut kept = HashSet::new();
    let is_old = |(_, batch): &&(i64, String)| {
        if kept.len() < commands {
            kept.insert(batch.clone());
        }
        !kept.contains(batch)
    };
    let mut old: Vec<i64> = runs.iter().filter(is_old).map(|it| it.0).collect();
    old.reverse();
    Ok(old)
}

/// Takes out runs, and then what belongs to none.
fn take_out(db: &Connection, doomed: &[i64]) -> Result<(), Problem> {
    let mut remove = db.prepare_cached("DELETE FROM runs WHERE id = ?")?;
    for run in doomed {
        remove.execute([run])?;
    }
    db.execute_batch(
        "DELETE FROM run_modules WHERE run NOT IN (SELECT id FROM runs);
         DELETE FROM system_calls WHERE run NOT IN (SELECT id FROM runs);
         DELETE FROM calls WHERE run NOT IN (SELECT id FROM runs);
         DELETE FROM run_values WHERE run NOT IN (SELECT id FROM runs);
         DELETE FROM run_runtimes WHERE run NOT IN (SELECT id FROM runs);
         DELETE FROM run_threads WHERE run NOT IN (SELECT id FROM runs);
         DELETE FROM samples WHERE run NOT IN (SELECT id FROM runs);
         DELETE FROM processes WHERE run NOT IN (SELECT id FROM runs);
         DELETE FROM threads WHERE process NOT IN (SELECT id FROM processes);
         DELETE FROM loaded WHERE process NOT IN (SELECT id FROM processes);",
    )?;
    Ok(())
}

fn take_out_unused_modules(db: &Connection) -> Result<usize, Problem> {
    let unused = "SELECT id FROM modules WHERE id NOT IN (SELECT module FROM run_modules)
                  AND id NOT IN (SELECT module FROM loaded)";
    let unused: Vec<i64> = all(db, unused, [], |row| row.get(0))?;
    for module in &unused {
        for table in ["files", "functions", "refusals"] {
            let statement = format!("DELETE FROM {table} WHERE module = ?");
            db.prepare_cached(&statement)?.execute([module])?;
        }
        db.execute("DELETE FROM modules WHERE id = ?", [module])?;
    }
    Ok(unused.len())
}

/// Bytes of the file.
fn size(db: &Connection) -> Result<u64, Problem> {
    let pragma = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    Ok(pragma("page_size")? * pragma("page_count")?)
}
