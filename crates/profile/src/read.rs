//! Tables back into facts and counts.

use crate::sum::{executed, sum};
use crate::write::Stored;
use crate::{Problem, Profile, Result};
use headcount_model::{
    Block, Counted, EdgeKind, FileId, Function, FunctionEdge, LineRun, LinkAddr, LoadBias, Module,
    Placement, Process, Refusal, Run, Span,
};
use rusqlite::{Connection, Row};

/// Which runs to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunSelection {
    /// The one stored last.
    Last,
    /// The sum of all.
    All,
    /// The sum of these.
    These(Vec<i64>),
}

/// What is known about a run besides its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// Its number in this profile.
    pub id: i64,
    /// The command as it was started; empty if unknown.
    pub command: Vec<String>,
    /// Nanoseconds since 1970; 0 if unknown.
    pub started: u64,
    /// The same for its end.
    pub ended: u64,
    /// Exit status, or 128 + signal; `None` if nobody saw the end.
    pub status: Option<i32>,
    /// The machine's name for its processor.
    pub cpu: String,
    /// Its processes and their threads.
    pub processes: Vec<Process>,
    /// What makes its counts uncertain.
    pub notes: Vec<String>,
    /// The modules it counted.
    pub modules: Vec<String>,
}

/// What reports are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The modules that took part, by path, with the sums of their counts.
    pub counted: Vec<Counted>,
    /// The runs that were added up.
    pub runs: Vec<RunInfo>,
    /// What makes their sum uncertain, in sentences. The notes of each run are its own.
    pub notes: Vec<String>,
}

/// How many instructions a run executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// So many.
    pub instructions: u64,
    /// Or more: a count reached its limit.
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

    /// The sum of the chosen runs.
    pub fn load(&self, which: &RunSelection) -> Result<Loaded> {
        self.reading(|db| load(db, which))
    }

    /// How many instructions one run executed in all its modules; none if it did not count all.
    pub fn executed(&self, run: i64) -> Result<Option<Executed>> {
        self.reading(|db| executed(db, run))
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

fn load(db: &Connection, which: &RunSelection) -> Result<Loaded, Problem> {
    let ids = select(run_ids(db)?, which)?;
    let mut counted = Vec::new();
    let mut mixed = 0;
    for stored in modules_of(db, &ids)? {
        let module = module(db, &stored)?;
        let sum = sum(db, &stored, &module, &ids)?;
        mixed += sum.mixed;
        let functions = sum.functions;
        counted.push(Counted { module, functions });
    }
    counted.sort_by(|a, b| {
        let key = |it: &Counted| (it.module.path.clone(), it.module.build_id.clone());
        key(a).cmp(&key(b))
    });
    let runs = ids.into_iter().map(|id| run_info(db, id));
    Ok(Loaded {
        counted,
        runs: runs.collect::<Result<_, _>>()?,
        notes: mixed_note(mixed).into_iter().collect(),
    })
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

fn select(ids: Vec<i64>, which: &RunSelection) -> Result<Vec<i64>, Problem> {
    let last = *ids.last().ok_or(Problem::NoRuns)?;
    match which {
        RunSelection::Last => Ok(vec![last]),
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

fn modules_of(db: &Connection, runs: &[i64]) -> Result<Vec<Stored>, Problem> {
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

/// The facts about one module. Every number in it that is used as an index is checked here, so
/// that no file, however broken, makes a report stumble.
pub(crate) fn module(db: &Connection, stored: &Stored) -> Result<Module, Problem> {
    let mut module = Module {
        path: stored.path.clone(),
        build_id: stored.build_id.clone(),
        files: all(
            db,
            "SELECT name FROM files WHERE module = ? ORDER BY number",
            [stored.id],
            |row| row.get(0),
        )?,
        functions: Vec::new(),
        refusals: all(
            db,
            "SELECT subject, file, line, reason FROM refusals WHERE module = ? ORDER BY number",
            [stored.id],
            refusal,
        )?,
    };
    let range = (stored.first_function, stored.functions);
    let shells = all(db, FUNCTIONS, range, FunctionShell::from_row)?;
    if shells.len() as i64 != stored.functions {
        return Err(damaged("functions are missing"));
    }
    let mut blocks = blocks(db, stored, module.files.len())?.into_iter();
    let mut edges = all(
        db,
        EDGES,
        (stored.first_edge, stored.edges),
        RawEdge::from_row,
    )?
    .into_iter();
    let mut first_block = stored.first_block;
    for shell in shells {
        let wanted = shell.blocks;
        let shell_edges: Vec<RawEdge> = edges.by_ref().take(shell.edges).collect();
        let shell_blocks: Vec<Block> = blocks.by_ref().take(wanted).collect();
        if shell_blocks.len() != wanted || shell_edges.len() != shell.edges {
            return Err(damaged("blocks or edges are missing"));
        }
        let edges = shell_edges
            .into_iter()
            .map(|edge| edge.in_function(first_block, wanted))
            .collect::<Result<_, _>>()?;
        module
            .functions
            .push(shell.into_function(shell_blocks, edges, module.files.len())?);
        first_block += wanted as i64;
    }
    if blocks.next().is_some() || edges.next().is_some() {
        return Err(damaged("blocks or edges belong to no function"));
    }
    Ok(module)
}

const FUNCTIONS: &str = "SELECT name, address, file, line, counters, blocks, edges FROM functions
                         WHERE id >= ?1 AND id < ?1 + ?2 ORDER BY id";
const BLOCKS: &str = "SELECT id, address, instructions FROM blocks
                      WHERE id >= ?1 AND id < ?1 + ?2 ORDER BY id";
const CODE: &str = "SELECT block, address, bytes FROM code
                    WHERE block >= ?1 AND block < ?1 + ?2 ORDER BY block, number";
const LINE_RUNS: &str =
    "SELECT block, file, line, is_stmt, instructions, inline_copy FROM line_runs
                         WHERE block >= ?1 AND block < ?1 + ?2 ORDER BY block, number";
const EDGES: &str = "SELECT from_block, to_block, kind FROM edges
                     WHERE id >= ?1 AND id < ?1 + ?2 ORDER BY id";

fn blocks(db: &Connection, stored: &Stored, files: usize) -> Result<Vec<Block>, Problem> {
    let range = (stored.first_block, stored.blocks);
    let mut blocks = Vec::new();
    each(db, BLOCKS, range, |row| {
        if row.get::<_, i64>(0)? != stored.first_block + blocks.len() as i64 {
            return Err(damaged("a block is missing"));
        }
        blocks.push(Block {
            address: address(row, 1)?,
            instructions: row.get(2)?,
            ..Block::default()
        });
        Ok(())
    })?;
    let index =
        |row: &Row<'_>| Ok::<_, Problem>((row.get::<_, i64>(0)? - stored.first_block) as usize);
    let orphan = || damaged("code or lines belong to no block");
    each(db, CODE, range, |row| {
        let block = blocks.get_mut(index(row)?).ok_or_else(orphan)?;
        block.code.push(Span {
            address: address(row, 1)?,
            bytes: row.get(2)?,
        });
        Ok(())
    })?;
    each(db, LINE_RUNS, range, |row| {
        let block = blocks.get_mut(index(row)?).ok_or_else(orphan)?;
        block.lines.push(LineRun {
            file: file_id(row.get(1)?, files)?,
            line: row.get(2)?,
            is_stmt: row.get(3)?,
            instructions: row.get(4)?,
            inline_copy: row.get(5)?,
        });
        Ok(())
    })?;
    match blocks.iter().all(lines_fit) {
        true => Ok(blocks),
        false => Err(damaged(
            "a block has more instructions in its lines than in all",
        )),
    }
}

fn lines_fit(block: &Block) -> bool {
    let in_lines: u64 = block
        .lines
        .iter()
        .map(|run| u64::from(run.instructions))
        .sum();
    in_lines <= u64::from(block.instructions)
}

fn file_id(number: u32, files: usize) -> Result<FileId, Problem> {
    match (number as usize) < files {
        true => Ok(FileId(number)),
        false => Err(damaged("a source file is missing")),
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

/// A function without its blocks and edges.
struct FunctionShell {
    name: String,
    address: LinkAddr,
    source: (Option<u32>, Option<u32>),
    counters: u32,
    blocks: usize,
    edges: usize,
}

impl FunctionShell {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            name: row.get(0)?,
            address: address(row, 1)?,
            source: (row.get(2)?, row.get(3)?),
            counters: row.get(4)?,
            blocks: row.get(5)?,
            edges: row.get(6)?,
        })
    }

    fn into_function(
        self,
        blocks: Vec<Block>,
        edges: Vec<FunctionEdge>,
        files: usize,
    ) -> Result<Function, Problem> {
        let source = match self.source {
            (Some(file), Some(line)) => Some((file_id(file, files)?, line)),
            _ => None,
        };
        Ok(Function {
            name: self.name,
            address: self.address,
            source,
            blocks,
            edges,
            counters: self.counters,
        })
    }
}

/// An edge as stored: its ends are numbers of blocks in the whole profile.
struct RawEdge {
    from: Option<i64>,
    to: Option<i64>,
    kind: String,
}

impl RawEdge {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            from: row.get(0)?,
            to: row.get(1)?,
            kind: row.get(2)?,
        })
    }

    fn in_function(&self, first: i64, blocks: usize) -> Result<FunctionEdge, Problem> {
        let index = |end: Option<i64>| match end {
            None => Ok(None),
            Some(id) => u32::try_from(id - first)
                .ok()
                .filter(|index| (*index as usize) < blocks)
                .map(Some)
                .ok_or_else(|| damaged("an edge leads to another function")),
        };
        Ok(FunctionEdge {
            from: index(self.from)?,
            to: index(self.to)?,
            kind: EdgeKind::from_name(&self.kind)
                .ok_or_else(|| damaged(&format!("`{}` is no kind of edge", self.kind)))?,
        })
    }
}

fn run_info(db: &Connection, id: i64) -> Result<RunInfo, Problem> {
    let run = run(db, id)?;
    let query = "SELECT path FROM modules JOIN run_modules ON module = id WHERE run = ?
                 ORDER BY path, build_id";
    Ok(RunInfo {
        id,
        command: run.command,
        started: run.started,
        ended: run.ended,
        status: run.status,
        cpu: run.cpu,
        processes: run.processes,
        notes: run.notes,
        modules: all(db, query, [id], |row| row.get(0))?,
    })
}

/// A run without its counts.
pub(crate) fn run(db: &Connection, id: i64) -> Result<Run, Problem> {
    let query = "SELECT key, command, started, ended, status, cpu, notes FROM runs WHERE id = ?";
    let (mut run, command, notes) = db.prepare_cached(query)?.query_row([id], |row| {
        let run = Run {
            key: row.get(0)?,
            started: row.get(2)?,
            ended: row.get(3)?,
            status: row.get(4)?,
            cpu: row.get(5)?,
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

fn address(row: &Row<'_>, column: usize) -> rusqlite::Result<LinkAddr> {
    Ok(LinkAddr(row.get::<_, i64>(column)?.cast_unsigned()))
}

fn damaged(what: &str) -> Problem {
    Problem::Damaged(what.into())
}

/// Every row of a query, made into something.
fn all<T>(
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
