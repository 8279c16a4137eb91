//! Tables back into facts and counts.

use crate::facts::{Decoder, Numbers};
use crate::module_facts::{FunctionFacts, ModuleFacts, place};
use crate::same_work::{self, Work};
use crate::sum::{executed, sum};
use crate::write::Stored;
use crate::{Problem, Profile, Recover, Result, packed, samples, system_calls};
use headcount_model::{
    CallCosts, Counted, FileId, LinkAddr, LoadBias, PAUSED, Placement, Process, Refusal, Run,
    RuntimeCosts, Samples, SystemCalls, ThreadCounts, ValueCounts,
};
use rusqlite::{Connection, OptionalExtension, Row};

/// Which runs to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunSelection {
    /// Those of the command that was stored last.
    Last,
    /// The sum of all.
    All,
    /// The sum of these.
    These(Vec<i64>),
    /// Of those, the ones that began with a mark of this name.
    Phase(Box<RunSelection>, String),
}

impl From<Vec<i64>> for RunSelection {
    fn from(numbers: Vec<i64>) -> Self {
        Self::These(numbers)
    }
}

/// What is known about a run besides its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// Its number in this profile.
    pub id: i64,
    /// Names it for ever, in every profile.
    pub key: String,
    /// The same for all runs of one command.
    pub batch: String,
    /// The mark that it began with, if it is a part of what a program did; else empty.
    pub phase: String,
    /// The command as it was started; empty if unknown.
    pub command: Vec<String>,
    /// Nanoseconds since 1970; 0 if unknown.
    pub started: u64,
    /// The same for its end.
    pub ended: u64,
    /// Exit status, or 128 + signal; `None` if nobody saw the end.
    pub status: Option<i32>,
    /// Whether it saw only a part of what the program did.
    pub is_part: bool,
    /// The machine's name for its processor.
    pub cpu: String,
    /// The name of the machine that took it into a profile; empty if unknown.
    pub host: String,
    /// Its processes and their threads.
    pub processes: Vec<Process>,
    /// What makes its counts uncertain.
    pub notes: Vec<String>,
    /// The modules it counted.
    pub modules: Vec<String>,
    /// How many samples were taken of it, if a clock ran.
    pub samples: Option<u64>,
}

/// A run of which samples were taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The run.
    pub run: RunInfo,
    /// The samples.
    pub samples: Samples,
}

/// What reports are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The modules that took part, by path, with the sums of their counts.
    pub counted: Vec<Counted>,
    /// The runs that were added up.
    pub runs: Vec<RunInfo>,
    /// The runs that tell of time: of those that were chosen; and if that was the last one, the last
    /// of the same command.
    pub timed: Vec<Timed>,
    /// What these have in common with the counts.
    pub work: Work,
    /// What calls cost, of those of the counted runs that were asked for it.
    pub calls: Vec<CallCosts>,
    /// What the counted runs found by value, of those that were asked for it.
    pub values: Vec<ValueCounts>,
    /// What the runtime of interpreters cost in the counted runs, where that was measured.
    pub runtimes: Vec<RuntimeCosts>,
    /// How often the counted runs made system calls, as far as somebody saw their numbers.
    pub system_calls: SystemCalls,
    /// What makes their sum uncertain, in sentences. The notes of each run are its own.
    pub notes: Vec<String>,
}

/// How many instructions a run executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// So many.
    pub instructions: u64,
    /// Or more: a count reached its limit, or not all was counted.
    pub at_least: bool,
}

impl Profile {
    /// All runs, in the order in which they were stored.
    pub fn runs(&self) -> Result<Vec<RunInfo>> {
        self.reading(|db| {
            let ids = run_ids(db)?;
            ids.into_iter().map(|id| run_info(db, id)).collect()
        })
    }

    /// The numbers of the chosen runs.
    pub fn selected(&self, which: &RunSelection) -> Result<Vec<i64>> {
        self.reading(|db| select(db, run_ids(db)?, which))
    }

    /// The numbers of the chosen runs, as far as they were counted.
    pub fn counted_runs(&self, which: &RunSelection) -> Result<Vec<i64>> {
        self.reading(|db| Ok(choose(db, which)?.counted))
    }

    /// The sum of the chosen runs.
    pub fn load(&self, which: &RunSelection) -> Result<Loaded> {
        self.reading(|db| load(db, which, self.recover))
    }

    /// How many instructions one run executed in all its modules, as far as it counted them.
    pub fn executed(&self, run: i64) -> Result<Executed> {
        self.reading(|db| executed(db, run, self.recover))
    }

    /// What each thread of the chosen runs counted, as far as they were counted; none where that was
    /// not asked for.
    pub fn thread_counts(
        &self,
        which: &RunSelection,
    ) -> Result<Vec<(RunInfo, Option<ThreadCounts>)>> {
        self.reading(|db| {
            let runs = choose(db, which)?.counted.into_iter();
            let runs = runs.map(|id| Ok((run_info(db, id)?, packed::read(db, id)?)));
            runs.collect()
        })
    }

    /// What is known of the modules of a run.
    pub fn modules_of(&self, run: i64) -> Result<Vec<ModuleFacts>> {
        self.reading(|db| {
            let modules = modules_of(db, &[run])?;
            modules.iter().map(|it| facts(db, it)).collect()
        })
    }

    /// Everything one reader sees belongs to one moment, whatever others write meanwhile.
    fn reading<T>(&self, read: impl Fn(&Connection) -> Result<T, Problem>) -> Result<T> {
        let attempt = || {
            let moment = self.db.unchecked_transaction()?;
            let value = read(&moment)?;
            moment.commit()?;
            Ok(value)
        };
        attempt().map_err(|problem: Problem| problem.of(&self.path))
    }
}

fn load(db: &Connection, which: &RunSelection, recover: Recover) -> Result<Loaded, Problem> {
    let Chosen {
        counted: ids,
        timed,
    } = choose(db, which)?;
    let mut counted = Vec::new();
    let mut mixed = 0;
    let mut notes = Vec::new();
    for stored in modules_of(db, &ids)? {
        let facts = facts(db, &stored)?;
        let module = facts.module()?;
        let sum = sum(db, &stored, (&facts, &module), &ids, recover)?;
        mixed += sum.mixed;
        notes.extend(sum.notes);
        let functions = sum.functions;
        counted.push(Counted {
            module,
            functions,
            sources: Default::default(),
        });
    }
    counted.sort_by(|a, b| {
        let key = |it: &Counted| (it.module.path.clone(), it.module.build_id.clone());
        key(a).cmp(&key(b))
    });
    notes.extend(mixed_note(mixed));
    let costs = ids.iter().map(|id| packed::read(db, *id));
    let costs: Vec<Option<CallCosts>> = costs.collect::<Result<_, _>>()?;
    let calls: Vec<CallCosts> = costs.into_iter().flatten().collect();
    if !calls.is_empty() && calls.len() < ids.len() {
        notes.push(format!(
            "What calls cost is known of {} of these {} runs only.",
            calls.len(),
            ids.len()
        ));
    }
    notes.extend(paused_note(db, which, recover)?);
    let found = ids.iter().map(|id| packed::read(db, *id));
    let found: Vec<Option<ValueCounts>> = found.collect::<Result<_, _>>()?;
    let values: Vec<ValueCounts> = found.into_iter().flatten().collect();
    let costs = ids.iter().map(|id| packed::read(db, *id));
    let costs: Vec<Option<RuntimeCosts>> = costs.collect::<Result<_, _>>()?;
    let runtimes: Vec<RuntimeCosts> = costs.into_iter().flatten().collect();
    let mut system_calls = SystemCalls::default();
    for id in &ids {
        system_calls::add(db, *id, &mut system_calls)?;
    }
    let runs = ids.into_iter().map(|id| run_info(db, id));
    let runs: Vec<RunInfo> = runs.collect::<Result<_, _>>()?;
    let timed = timed.into_iter().map(|id| {
        let damaged = || damaged("the samples of a run are missing");
        Ok(Timed {
            run: run_info(db, id)?,
            samples: samples::read(db, id)?.ok_or_else(damaged)?,
        })
    });
    let timed: Vec<Timed> = timed.collect::<Result<_, Problem>>()?;
    Ok(Loaded {
        work: same_work::work(db, &runs, &timed)?,
        counted,
        runs,
        timed,
        calls,
        values,
        runtimes,
        system_calls,
        notes,
    })
}

/// Runs that were counted, and runs that were timed. Samples have a run of their own, also if they were
/// taken while the program was counted.
struct Chosen {
    counted: Vec<i64>,
    timed: Vec<i64>,
}

fn choose(db: &Connection, which: &RunSelection) -> Result<Chosen, Problem> {
    let sampled = samples::runs(db)?;
    let is_timed = |id: &i64| sampled.contains(id);
    let is_counted = |id: &i64| !is_timed(id);
    let all = run_ids(db)?;
    let chosen = select(db, all.clone(), which)?;
    let only = |ids: &[i64], wanted: &dyn Fn(&i64) -> bool| -> Vec<i64> {
        ids.iter().copied().filter(|id| wanted(id)).collect()
    };
    let mut found = Chosen {
        counted: only(&chosen, &is_counted),
        timed: only(&chosen, &is_timed),
    };
    // Time and counts of the same command belong together.
    if let (RunSelection::Last, Some(last)) = (which, chosen.last()) {
        let command = command(db, *last)?;
        let last_of = |wanted: &dyn Fn(&i64) -> bool| -> Result<Option<i64>, Problem> {
            for id in all.iter().rev().filter(|id| wanted(id)) {
                if self::command(db, *id)? == command {
                    return Ok(Some(*id));
                }
            }
            Ok(None)
        };
        if found.timed.is_empty() {
            found.timed.extend(last_of(&is_timed)?);
        }
        if found.counted.is_empty() {
            found.counted.extend(last_of(&is_counted)?);
        }
    }
    Ok(found)
}

/// The command of a run, as it is stored.
fn command(db: &Connection, run: i64) -> Result<String, Problem> {
    let mut query = db.prepare_cached("SELECT command FROM runs WHERE id = ?")?;
    Ok(query.query_row([run], |row| row.get(0))?)
}

/// How much was left out because programs had asked for that.
fn paused_note(
    db: &Connection,
    which: &RunSelection,
    recover: Recover,
) -> Result<Option<String>, Problem> {
    if !matches!(which, RunSelection::Last | RunSelection::All) {
        return Ok(None);
    }
    let paused = paused(db)?;
    let mut left_out = select_all(db, run_ids(db)?, which)?;
    left_out.retain(|id| paused.contains(id));
    let mut sum = 0_u64;
    for id in &left_out {
        sum = sum.saturating_add(executed(db, *id, recover)?.instructions);
    }
    Ok((!left_out.is_empty()).then(|| {
        format!(
            "Counting was paused by the program: {sum} instructions that it executed meanwhile are left \
             out; `--phase {PAUSED}` shows them."
        )
    }))
}

fn mixed_note(functions: usize) -> Option<String> {
    let sums = match functions {
        0 => return None,
        1 => "some sums in 1 function".to_owned(),
        many => format!("some sums in {many} functions"),
    };
    Some(format!(
        "Not every run counted everything: {sums} are over those runs alone that did count."
    ))
}

pub(crate) fn run_ids(db: &Connection) -> Result<Vec<i64>, Problem> {
    all(db, "SELECT id FROM runs ORDER BY id", [], |row| row.get(0))
}

/// The chosen runs. What a program left out of its reports is there only if it was named.
pub(crate) fn select(
    db: &Connection,
    ids: Vec<i64>,
    which: &RunSelection,
) -> Result<Vec<i64>, Problem> {
    let mut chosen = select_all(db, ids, which)?;
    if matches!(which, RunSelection::Last | RunSelection::All) {
        let paused = paused(db)?;
        chosen.retain(|id| !paused.contains(id));
    }
    Ok(chosen)
}

/// The runs in which a program had asked that nothing be counted.
fn paused(db: &Connection) -> Result<Vec<i64>, Problem> {
    let query = "SELECT id FROM runs WHERE phase = ?";
    all(db, query, [PAUSED], |row| row.get(0))
}

/// The same, with that.
pub(crate) fn select_all(
    db: &Connection,
    ids: Vec<i64>,
    which: &RunSelection,
) -> Result<Vec<i64>, Problem> {
    let last = *ids.last().ok_or(Problem::NoRuns)?;
    match which {
        RunSelection::Last => {
            let query = "SELECT id FROM runs WHERE batch = (SELECT batch FROM runs WHERE id = ?)
                         ORDER BY id";
            all(db, query, [last], |row| row.get(0))
        }
        RunSelection::Phase(of, name) => phase(db, &select_all(db, ids, of)?, name),
        RunSelection::All => Ok(ids),
        RunSelection::These(wanted) => {
            let mut wanted = wanted.clone();
            wanted.sort_unstable();
            wanted.dedup();
            match wanted.iter().find(|id| !ids.contains(id)) {
                Some(missing) => Err(Problem::NoSuchRun { wanted: *missing }),
                None => Ok(wanted),
            }
        }
    }
}

/// Those that began with a mark.
fn phase(db: &Connection, runs: &[i64], name: &str) -> Result<Vec<i64>, Problem> {
    let mut phases = Vec::new();
    for id in runs {
        let query = "SELECT phase FROM runs WHERE id = ?";
        let mut query = db.prepare_cached(query)?;
        phases.push(query.query_row([id], |row| row.get::<_, String>(0))?);
    }
    let named = runs.iter().zip(&phases).filter(|(_, it)| *it == name);
    let named: Vec<i64> = named.map(|(id, _)| *id).collect();
    match named.is_empty() {
        false => Ok(named),
        true => Err(Problem::NoSuchPhase {
            wanted: name.to_owned(),
            known: phases.into_iter().filter(|it| !it.is_empty()).collect(),
        }),
    }
}

pub(crate) fn modules_of(db: &Connection, runs: &[i64]) -> Result<Vec<Stored>, Problem> {
    let mut modules: Vec<i64> = Vec::new();
    for run in runs {
        let query = "SELECT module FROM run_modules WHERE run = ?";
        modules.extend(all(db, query, [run], |row| row.get::<_, i64>(0))?);
    }
    modules.sort_unstable();
    modules.dedup();
    let query = format!("SELECT {} FROM modules WHERE id = ?", Stored::COLUMNS);
    let mut query = db.prepare(&query)?;
    modules
        .into_iter()
        .map(|id| Ok(query.query_row([id], Stored::from_row)?))
        .collect()
}

pub(crate) fn all_modules(db: &Connection) -> Result<Vec<Stored>, Problem> {
    let query = format!("SELECT {} FROM modules ORDER BY id", Stored::COLUMNS);
    all(db, &query, [], Stored::from_row)
}

/// The facts about one module, as they are stored.
pub(crate) fn facts(db: &Connection, stored: &Stored) -> Result<ModuleFacts, Problem> {
    let mut facts = ModuleFacts {
        path: stored.path.clone(),
        build_id: stored.build_id.clone(),
        shape: stored.shape.clone(),
        files: all(
            db,
            "SELECT name FROM files WHERE module = ? ORDER BY number",
            [stored.id],
            |row| row.get(0),
        )?,
        refusals: all(
            db,
            "SELECT subject, file, line, reason FROM refusals WHERE module = ? ORDER BY number",
            [stored.id],
            refusal,
        )?,
        ..ModuleFacts::default()
    };
    let (mut block, mut edge) = (stored.first_block, stored.first_edge);
    let range = (stored.first_function, stored.functions);
    each(db, FUNCTIONS, range, |row| {
        if (row.get::<_, i64>(9)?, row.get::<_, i64>(10)?) != (block, edge) {
            return Err(damaged("blocks or edges are missing"));
        }
        let function = function(row, &mut facts)?;
        block += i64::from(function.blocks);
        edge += i64::from(function.edges);
        facts.functions.push(function);
        Ok(())
    })?;
    if facts.functions.len() as i64 != stored.functions {
        return Err(damaged("functions are missing"));
    }
    match (block - stored.first_block, edge - stored.first_edge) == (stored.blocks, stored.edges) {
        true => Ok(facts),
        false => Err(damaged("blocks or edges are missing")),
    }
}

const FUNCTIONS: &str = "SELECT name, address, file, line, counters, blocks, edges, instructions,
                         facts, first_block, first_edge FROM functions
                         WHERE id >= ?1 AND id < ?1 + ?2 ORDER BY id";

/// A function; its facts go to the store.
fn function(row: &Row<'_>, module: &mut ModuleFacts) -> Result<FunctionFacts, Problem> {
    let files = module.files.len();
    let source = match (row.get::<_, Option<u32>>(2)?, row.get(3)?) {
        (Some(file), Some(line)) if (file as usize) < files => Some((FileId(file), line)),
        (Some(_), Some(_)) => return Err(damaged("a source file is missing")),
        _ => None,
    };
    let begin = module.store.len();
    module.store.extend(blob(row, 8)?);
    let (facts, number) = place(begin..module.store.len(), module.functions.last())?;
    Ok(FunctionFacts {
        name: row.get(0)?,
        address: LinkAddr(row.get::<_, i64>(1)?.cast_unsigned()),
        source,
        counters: row.get(4)?,
        blocks: row.get(5)?,
        edges: row.get(6)?,
        instructions: row.get(7)?,
        facts,
        number,
    })
}

fn blob<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], Problem> {
    let bytes = row.get_ref(column)?.as_blob();
    bytes.map_err(|_| damaged("a function has no facts"))
}

/// Who looks for so many functions looks at all.
const MANY: u32 = 32;

/// How many instructions the blocks of a module have; looks at the functions that it is asked for.
pub(crate) struct BlockSizes {
    /// The first function's number in the profile, and how many there are.
    functions: (i64, i64),
    /// How many were looked for, and then, if many, the first block of each.
    asked: u32,
    first_blocks: Vec<i64>,
    first_block: i64,
    decoder: Decoder,
    /// The function whose facts the decoder has, and those of some behind it.
    open: Option<i64>,
    /// The function that was asked for last: its first block, and the sizes of all.
    last: (i64, Vec<u32>),
}

impl BlockSizes {
    pub fn of(module: &Stored) -> Self {
        Self {
            functions: (module.first_function, module.functions),
            asked: 0,
            first_blocks: Vec::new(),
            first_block: module.first_block,
            decoder: Decoder::new(),
            open: None,
            last: (0, Vec::new()),
        }
    }

    /// Those of a block, by its place in the module. None if there is no such block.
    pub fn instructions(&mut self, db: &Connection, block: usize) -> Result<Option<u32>, Problem> {
        let block = self.first_block + block as i64;
        let in_last = |last: &(i64, Vec<u32>)| {
            let place = usize::try_from(block.checked_sub(last.0)?).ok()?;
            last.1.get(place).copied()
        };
        if let Some(known) = in_last(&self.last) {
            return Ok(Some(known));
        }
        let Some(function) = self.function_of(db, block)? else {
            return Ok(None);
        };
        let facts_of = self.facts_of(db, function)?;
        if self.open != Some(facts_of) {
            self.open = None;
            let query = "SELECT facts FROM functions WHERE id = ?";
            each(db, query, [facts_of], |row| {
                Ok(self.decoder.open(blob(row, 0)?)?)
            })?;
            self.open = Some(facts_of);
        }
        let query = "SELECT first_block, address, blocks, edges, instructions
                     FROM functions WHERE id = ?";
        let (first_block, numbers) = db.prepare_cached(query)?.query_row([function], |row| {
            let numbers = Numbers {
                address: LinkAddr(row.get::<_, i64>(1)?.cast_unsigned()),
                blocks: row.get(2)?,
                edges: row.get(3)?,
                instructions: row.get(4)?,
                // Whoever reads lines looks for their files.
                files: usize::MAX,
            };
            Ok((row.get(0)?, numbers))
        })?;
        let number = u32::try_from(function - facts_of);
        let number = number.map_err(|_| damaged("a module is too large"))?;
        let (blocks, ..) = self.decoder.function(number, numbers)?;
        let sizes = blocks.iter().map(|it| it.instructions).collect();
        self.last = (first_block, sizes);
        Ok(in_last(&self.last))
    }

    /// The last function whose first block is this one or before it: they are in order.
    fn function_of(&mut self, db: &Connection, block: i64) -> Result<Option<i64>, Problem> {
        self.asked = self.asked.saturating_add(1);
        if self.asked == MANY {
            let query = "SELECT first_block FROM functions WHERE id >= ?1 AND id < ?1 + ?2
                         ORDER BY id";
            each(db, query, self.functions, |row| {
                self.first_blocks.push(row.get(0)?);
                Ok(())
            })?;
        }
        if self.asked >= MANY {
            let after = self.first_blocks.partition_point(|first| *first <= block);
            return Ok((after > 0).then(|| self.functions.0 + after as i64 - 1));
        }
        let mut query = db.prepare_cached("SELECT first_block FROM functions WHERE id = ?")?;
        let (first, mut count) = self.functions;
        let mut after = first;
        while count > 0 {
            let half = count / 2;
            let middle = after + half;
            let found = query.query_row([middle], |row| row.get::<_, i64>(0));
            let first_block = found.optional()?;
            let first_block = first_block.ok_or_else(|| damaged("a function is missing"))?;
            match first_block <= block {
                true => (after, count) = (middle + 1, count - half - 1),
                false => count = half,
            }
        }
        Ok((after > first).then(|| after - 1))
    }

    /// The function whose facts hold those of this one.
    fn facts_of(&self, db: &Connection, function: i64) -> Result<i64, Problem> {
        let query = "SELECT id FROM functions WHERE id >= ? AND id <= ? AND length(facts) > 0
                     ORDER BY id DESC LIMIT 1";
        let found = db
            .prepare_cached(query)?
            .query_row((self.functions.0, function), |row| row.get(0));
        let found = found.optional()?;
        found.ok_or_else(|| damaged("a function has no facts"))
    }
}

fn refusal(row: &Row<'_>) -> rusqlite::Result<Refusal> {
    Ok(Refusal {
        subject: row.get(0)?,
        file: row.get(1)?,
        line: row.get(2)?,
        reason: row.get(3)?,
    })
}

fn run_info(db: &Connection, id: i64) -> Result<RunInfo, Problem> {
    let run = run(db, id)?;
    let query = "SELECT path FROM modules JOIN run_modules ON module = id WHERE run = ?
                 ORDER BY path, build_id";
    Ok(RunInfo {
        id,
        key: run.key,
        batch: run.batch,
        phase: run.phase,
        command: run.command,
        started: run.started,
        ended: run.ended,
        status: run.status,
        is_part: run.is_part,
        cpu: run.cpu,
        host: run.host,
        processes: run.processes,
        notes: run.notes,
        modules: all(db, query, [id], |row| row.get(0))?,
        samples: samples::number(db, id)?,
    })
}

/// A run without its counts.
pub(crate) fn run(db: &Connection, id: i64) -> Result<Run, Problem> {
    let query = "SELECT key, command, started, ended, status, cpu, notes, batch, phase,
                 host, part FROM runs WHERE id = ?";
    let (mut run, command, notes) = db.prepare_cached(query)?.query_row([id], |row| {
        let run = Run {
            key: row.get(0)?,
            started: row.get(2)?,
            ended: row.get(3)?,
            status: row.get(4)?,
            cpu: row.get(5)?,
            batch: row.get(7)?,
            phase: row.get(8)?,
            host: row.get(9)?,
            is_part: row.get(10)?,
            ..Run::default()
        };
        Ok((run, row.get::<_, String>(1)?, row.get::<_, String>(6)?))
    })?;
    run.command = strings(&command)?;
    run.notes = strings(&notes)?;
    let query = "SELECT processes.id, pid, tid FROM processes
                 LEFT JOIN threads ON process = processes.id
                 WHERE run = ? ORDER BY processes.id, threads.id";
    let mut places: Vec<i64> = Vec::new();
    each(db, query, [id], |row| {
        let process: i64 = row.get(0)?;
        if places.last() != Some(&process) {
            places.push(process);
            run.processes.push(Process {
                pid: row.get(1)?,
                ..Process::default()
            });
        }
        if let (Some(process), Some(tid)) = (run.processes.last_mut(), row.get(2)?) {
            process.threads.push(tid);
        }
        Ok(())
    })?;
    let query = "SELECT process, build_id, bias FROM loaded
                 JOIN processes ON processes.id = process JOIN modules ON modules.id = module
                 WHERE run = ? ORDER BY process, loaded.rowid";
    each(db, query, [id], |row| {
        let place = places.binary_search(&row.get(0)?);
        if let Some(process) = place.ok().and_then(|it| run.processes.get_mut(it)) {
            process.loaded.push(Placement {
                build_id: row.get(1)?,
                bias: LoadBias(row.get::<_, i64>(2)?.cast_unsigned()),
            });
        }
        Ok(())
    })?;
    Ok(run)
}

fn strings(json: &str) -> Result<Vec<String>, Problem> {
    serde_json::from_str(json).map_err(|_| damaged("a list of words is no JSON"))
}

fn damaged(what: &str) -> Problem {
    Problem::Damaged(what.into())
}

/// Every row of a query, made into something.
pub(crate) fn all<T>(
    db: &Connection,
    query: &str,
    with: impl rusqlite::Params,
    make: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Problem> {
    let mut statement = db.prepare_cached(query)?;
    let rows = statement.query_map(with, make)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Every row of a query, one by one.
pub(crate) fn each(
    db: &Connection,
    query: &str,
    with: impl rusqlite::Params,
    mut look: impl FnMut(&Row<'_>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut statement = db.prepare_cached(query)?;
    let mut rows = statement.query(with)?;
    while let Some(row) = rows.next()? {
        look(row)?;
    }
    Ok(())
}
