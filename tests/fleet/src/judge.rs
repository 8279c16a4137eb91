//! Is an answer right? What `headcount report` says is added up here once more, without SQL.

use crate::engine::Rows;
use crate::fleet::{Counted, Fleet};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// How many rows the page asks for, where it wants the first ones.
const FIRST: usize = 20;

/// What is known of a fleet, besides what engines say.
pub struct Judge<'a> {
    fleet: &'a Fleet,
    runs: Vec<Counted>,
    /// The moment a week ago, as `headcount runs` writes it.
    week: String,
}

/// A line of a source file.
type Line = (String, u64);

impl<'a> Judge<'a> {
    /// Of a fleet that is gathered; `week` is the moment a week ago, `2026-11-18T04:12:59Z`.
    pub fn new(fleet: &'a Fleet, week: &str) -> Result<Self> {
        let runs = fleet.runs()?;
        let recent = runs.iter().filter(|it| it.started.as_str() > week).count();
        ensure!(
            0 < recent && recent < runs.len(),
            "no run is older than a week, or all are"
        );
        Ok(Self {
            fleet,
            runs,
            week: week.to_owned(),
        })
    }

    /// Fails if one of the answers to the question with this title is not what reports say.
    pub fn check(&self, title: &str, answers: &[&Rows]) -> Result<()> {
        let found = match title {
            "hottest lines of a week" => self.hottest(answers),
            "lines that never ran" => self.never(answers),
            "coverage of the fleet" => self.coverage(answers),
            "the last two releases" => self.releases(answers),
            "machines" => self.machines(answers),
            "memory traffic" => self.memory(answers),
            "not counted" => self.refused(answers),
            _ => bail!("nobody knows the answer"),
        };
        found.with_context(|| format!("{title}: {answers:#?}"))
    }

    fn hottest(&self, answers: &[&Rows]) -> Result<()> {
        let is_recent = |it: &&Counted| it.started > self.week;
        let recent: Vec<&Counted> = self.runs.iter().filter(is_recent).collect();
        let numbers: Vec<u64> = recent.iter().map(|it| it.number).collect();
        // How many runs, and machines, have each line.
        let mut seen: BTreeMap<Line, (u64, BTreeSet<&str>)> = BTreeMap::new();
        for run in recent {
            for (line, _) in self.lines(&[run.number], &[])? {
                let (runs, hosts) = seen.entry(line).or_default();
                *runs += 1;
                hosts.insert(&run.host);
            }
        }
        let mut expected: Vec<Value> = Vec::new();
        let mut lines: Vec<(Line, Value)> = self.lines(&numbers, &[])?.into_iter().collect();
        lines.sort_by_key(|((file, line), row)| {
            let executed = row["executed"].as_u64();
            (std::cmp::Reverse(executed), file.clone(), *line)
        });
        for ((file, line), row) in lines.into_iter().take(FIRST) {
            let (runs, hosts) = seen.remove(&(file.clone(), line)).unwrap_or_default();
            expected.push(serde_json::json!({
                "file": file, "line": line, "executed": row["executed"], "times": row["count"],
                "runs": runs, "hosts": hosts.len(),
            }));
        }
        same(answers, &expected)
    }

    fn never(&self, answers: &[&Rows]) -> Result<()> {
        let never = self.lines(&self.all(), &["--never"])?;
        let expected: Vec<&Line> = never.keys().collect();
        ensure!(!expected.is_empty(), "everything ran: nothing to ask for");
        for answer in answers {
            let found = answer.iter().map(line).collect::<Option<Vec<Line>>>();
            let found = found.context("an answer without a line")?;
            ensure!(found.iter().eq(expected.iter().copied()), "{expected:?}");
            let of_one = |it: &Map<String, Value>| it["function"] == "complain";
            ensure!(answer.iter().any(of_one), "the function of a line is lost");
        }
        Ok(())
    }

    fn coverage(&self, answers: &[&Rows]) -> Result<()> {
        let never = self.lines(&self.all(), &["--never"])?;
        let mut files: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for line in self.lines(&self.all(), &[])?.into_keys() {
            let ran = u64::from(!never.contains_key(&line));
            let (lines, lines_ran) = files.entry(line.0).or_default();
            *lines += 1;
            *lines_ran += ran;
        }
        let row = |(file, (lines, lines_ran)): (String, (u64, u64))| serde_json::json!({ "file": file, "lines": lines, "lines_ran": lines_ran });
        same(answers, &files.into_iter().map(row).collect::<Vec<_>>())
    }

    fn releases(&self, answers: &[&Rows]) -> Result<()> {
        let app = self.fleet.folder().join("app").display().to_string();
        let mut sides: BTreeMap<(String, Option<String>), [Option<f64>; 2]> = BTreeMap::new();
        for (side, release) in [1, 2].into_iter().enumerate() {
            let is_of = |it: &&Counted| {
                self.fleet.release(&it.host) == release && it.modules.contains(&app)
            };
            let runs = self.runs.iter().filter(is_of);
            let runs: Vec<u64> = runs.map(|it| it.number).collect();
            for (key, executed) in self.functions(&runs, &app)? {
                sides.entry(key).or_default()[side] = Some(executed / runs.len() as f64);
            }
        }
        sides.retain(|_, [old, new]| old.unwrap_or(0.0) != new.unwrap_or(0.0));
        ensure!(sides.len() > 2, "nothing changed: nothing to ask for");
        let mut expected: Vec<Value> = Vec::new();
        for ((function, file), [old, new]) in &sides {
            let change = new.unwrap_or(0.0) - old.unwrap_or(0.0);
            expected.push(serde_json::json!({
                "module": app, "function": function, "file": file, "old": old, "new": new,
                "change": change,
            }));
        }
        expected.sort_by(|a, b| {
            let key = |it: &Value| it["change"].as_f64().unwrap_or(0.0).abs();
            let name = |it: &Value| it["function"].as_str().map(str::to_owned);
            key(b).total_cmp(&key(a)).then(name(a).cmp(&name(b)))
        });
        same(answers, &expected)
    }

    fn machines(&self, answers: &[&Rows]) -> Result<()> {
        let mut all: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
        for run in &self.runs {
            let (runs, executed) = all.entry((&run.command, &run.host)).or_default();
            *runs += 1;
            *executed += run.executed;
        }
        let row = |((command, host), (runs, executed)): (_, (u64, u64))| {
            serde_json::json!({
                "command": command, "host": host, "runs": runs, "executed": executed,
                "per_run": executed as f64 / runs as f64,
            })
        };
        let mut expected: Vec<Value> = all.into_iter().map(row).collect();
        // Names are in order already.
        expected.sort_by(|a, b| {
            let command = |it: &Value| it["command"].as_str().map(str::to_owned);
            let number = |it: &Value| it["per_run"].as_f64().unwrap_or(0.0);
            let order = command(a).cmp(&command(b));
            order.then(number(b).total_cmp(&number(a)))
        });
        same(answers, &expected)
    }

    fn memory(&self, answers: &[&Rows]) -> Result<()> {
        let events = "loads,stores,bytes_read,bytes_written";
        let mut sums: BTreeMap<String, [u64; 4]> = BTreeMap::new();
        for run in &self.runs {
            let rows = self.fleet.report(&[run.number], &["--events", events])?;
            let starts = rows
                .iter()
                .filter(|it| it["function"] == "deregister_tm_clones");
            let started: BTreeSet<&str> = starts.filter_map(|it| it["module"].as_str()).collect();
            for row in rows.iter().filter(|row| self.is_own_function(row)) {
                let function = row["function"].as_str().context("a name")?;
                let module = row["module"].as_str().unwrap_or_default();
                // What compilers add so that a program can begin and end, where they are named.
                if STARTING.contains(&function) && started.contains(module) {
                    continue;
                }
                let sum = sums.entry(function.to_owned()).or_default();
                let both = row["bytes_read"]
                    .as_u64()
                    .zip(row["bytes_written"].as_u64());
                let more = ["executed", "loads", "stores"].map(|it| row[it].as_u64().unwrap_or(0));
                let more = more
                    .into_iter()
                    .chain(both.map(|(read, written)| read + written));
                sum.iter_mut()
                    .zip(more)
                    .for_each(|(sum, more)| *sum += more);
            }
        }
        let mut expected: Vec<(String, [u64; 4])> = sums.into_iter().collect();
        expected.sort_by_key(|(function, sums)| (std::cmp::Reverse(sums[0]), function.clone()));
        let row = |(function, [executed, loads, stores, bytes]): (String, [u64; 4])| {
            serde_json::json!({
                "function": function, "executed": executed, "loads": loads, "stores": stores,
                "bytes": bytes,
            })
        };
        let expected = expected.into_iter().take(FIRST).map(row);
        same(answers, &expected.collect::<Vec<_>>())
    }

    fn refused(&self, answers: &[&Rows]) -> Result<()> {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let expected: BTreeSet<[String; 3]> = self
            .fleet
            .refused()?
            .iter()
            .map(|it| ["module", "subject", "reason"].map(|name| text(&it[name])))
            .collect();
        for answer in answers {
            let found: BTreeSet<[String; 3]> = answer
                .iter()
                .map(|it| ["module", "function", "reason"].map(|name| text(&it[name])))
                .collect();
            ensure!(
                found == expected && found.len() == answer.len(),
                "{expected:#?}"
            );
        }
        Ok(())
    }

    fn all(&self) -> Vec<u64> {
        self.runs.iter().map(|it| it.number).collect()
    }

    /// The user's own lines in some runs.
    fn lines(&self, runs: &[u64], words: &[&str]) -> Result<BTreeMap<Line, Value>> {
        let rows = self
            .fleet
            .report(runs, &[&["--by", "line"], words].concat())?;
        let keyed = rows.into_iter().filter_map(|row| {
            let line = line(row.as_object()?)?;
            Some((line, row))
        });
        let own = keyed.filter(|((file, _), _)| file.ends_with("app.c"));
        let folder = self.fleet.folder();
        // Reports name files below the current folder as the user would.
        let whole = |((file, line), row)| {
            let file = folder.join(file).display().to_string();
            ((file, line), row)
        };
        Ok(own.map(whole).collect())
    }

    /// Instructions executed by the user's own functions of a module.
    fn functions(
        &self,
        runs: &[u64],
        module: &str,
    ) -> Result<BTreeMap<(String, Option<String>), f64>> {
        let mut sums = BTreeMap::new();
        for row in self.fleet.report(runs, &[])? {
            if row["module"] == module && self.is_own_function(&row) {
                let function = row["function"].as_str().context("a name")?.to_owned();
                let file = row["file"].as_str().filter(|it| *it != "??");
                let file = file.map(|it| self.fleet.folder().join(it).display().to_string());
                let executed = row["executed"].as_u64().context("not counted")?;
                *sums.entry((function, file)).or_default() += executed as f64;
            }
        }
        Ok(sums)
    }

    fn is_own_function(&self, row: &Value) -> bool {
        let name = row["function"].as_str().unwrap_or_default();
        let module = row["module"].as_str().unwrap_or_default();
        let is_stub = name == "plt0" || name.ends_with("@plt");
        !is_stub && self.fleet.is_own_module(module)
    }
}

/// What a C program has besides its own functions, without a source.
const STARTING: [&str; 7] = [
    "__do_global_dtors_aux",
    "_fini",
    "_init",
    "_start",
    "deregister_tm_clones",
    "frame_dummy",
    "register_tm_clones",
];

fn line(row: &Map<String, Value>) -> Option<Line> {
    Some((row["file"].as_str()?.to_owned(), row["line"].as_u64()?))
}

/// Fails unless all have the same rows in the same order; a whole number may be a fraction with the
/// same value.
fn same(answers: &[&Rows], expected: &[Value]) -> Result<()> {
    ensure!(!expected.is_empty(), "nothing to ask for");
    answers
        .iter()
        .try_for_each(|answer| same_as(answer, expected))
}

fn same_as(answer: &Rows, expected: &[Value]) -> Result<()> {
    let is_same = |(found, expected): (&Map<String, Value>, &Value)| {
        let expected = expected.as_object();
        expected.is_some_and(|expected| {
            found.len() == expected.len()
                && found
                    .iter()
                    .all(|(name, value)| expected.get(name).is_some_and(|it| is_equal(value, it)))
        })
    };
    let differs = answer.iter().zip(expected).position(|it| !is_same(it));
    match differs {
        None if answer.len() == expected.len() => Ok(()),
        None => bail!("{} rows, and not {}", expected.len(), answer.len()),
        Some(place) => bail!("row {place} should be {:#}", expected[place]),
    }
}

fn is_equal(a: &Value, b: &Value) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b || a.as_f64().is_some() && a.as_f64() == b.as_f64(),
    }
}
