//! Facts and counts into the tables.

use crate::counts::RunCounts;
use crate::shape::shape;
use crate::{Problem, Profile, Result};
use headcount_model::{Block, Function, Module, ModuleCounts, Run};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

/// What became of a run that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was stored under this number.
    New(i64),
    /// A run with the same key is there; nothing was changed.
    AlreadyThere,
}

impl Profile {
    /// Stores a run and the modules it counted, all or nothing. Facts about a module that is
    /// there already are not stored again.
    pub fn add(&mut self, modules: &[Module], run: &Run) -> Result<Added> {
        self.try_add(modules, run)
            .map_err(|problem| problem.of(&self.path))
    }

    fn try_add(&mut self, modules: &[Module], run: &Run) -> Result<Added, Problem> {
        // IMMEDIATE: a transaction that first reads and then writes could meet another of its
        // kind, and then neither could go on.
        let transaction = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        if has_run(&transaction, &run.key)? {
            return Ok(Added::AlreadyThere);
        }
        for module in modules {
            add_module(&transaction, module)?;
        }
        let id = add_run(&transaction, run)?;
        for counts in &run.modules {
            add_counts(&transaction, id, counts)?;
        }
        transaction.commit()?;
        Ok(Added::New(id))
    }
}

/// Where the functions, blocks and edges of a stored module are.
pub(crate) struct Stored {
    pub id: i64,
    pub build_id: String,
    pub path: String,
    pub shape: String,
    pub first_function: i64,
    pub functions: i64,
    pub first_block: i64,
    pub blocks: i64,
    pub first_edge: i64,
    pub edges: i64,
}

impl Stored {
    pub const COLUMNS: &str = "id, build_id, path, shape, first_function, functions, \
                               first_block, blocks, first_edge, edges";

    pub fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        // Whoever adds a length to a beginning may rely on the sum.
        for column in [4, 6, 8] {
            let (first, number): (i64, i64) = (row.get(column)?, row.get(column + 1)?);
            if first < 0 || number < 0 || first.checked_add(number).is_none() {
                return Err(rusqlite::Error::IntegralValueOutOfRange(column, first));
            }
        }
        Ok(Self {
            id: row.get(0)?,
            build_id: row.get(1)?,
            path: row.get(2)?,
            shape: row.get(3)?,
            first_function: row.get(4)?,
            functions: row.get(5)?,
            first_block: row.get(6)?,
            blocks: row.get(7)?,
            first_edge: row.get(8)?,
            edges: row.get(9)?,
        })
    }
}

pub(crate) fn stored(db: &Connection, build_id: &str) -> Result<Option<Stored>, Problem> {
    let query = format!("SELECT {} FROM modules WHERE build_id = ?", Stored::COLUMNS);
    let mut query = db.prepare_cached(&query)?;
    Ok(query.query_row([build_id], Stored::from_row).optional()?)
}

pub(crate) fn has_run(db: &Connection, key: &str) -> Result<bool, Problem> {
    let mut query = db.prepare_cached("SELECT 1 FROM runs WHERE key = ?")?;
    Ok(query.exists([key])?)
}

/// Stores the facts about a module, or checks that the same are there.
pub(crate) fn add_module(db: &Connection, module: &Module) -> Result<(), Problem> {
    let shape = shape(module);
    if let Some(known) = stored(db, &module.build_id)? {
        if known.shape != shape {
            return Err(Problem::OtherBuild {
                module: module.path.clone(),
            });
        }
        db.prepare_cached("UPDATE modules SET path = ?2 WHERE id = ?1 AND path <> ?2")?
            .execute(params![known.id, module.path])?;
        return Ok(());
    }
    let first_function = next_id(db, "functions")?;
    let first_block = next_id(db, "blocks")?;
    let first_edge = next_id(db, "edges")?;
    let blocks: usize = module.functions.iter().map(|f| f.blocks.len()).sum();
    let edges: usize = module.functions.iter().map(|f| f.edges.len()).sum();
    db.execute(
        "INSERT INTO modules (build_id, path, shape, first_function, functions, first_block,
         blocks, first_edge, edges) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            module.build_id,
            module.path,
            shape,
            first_function,
            module.functions.len() as i64,
            first_block,
            blocks as i64,
            first_edge,
            edges as i64
        ],
    )?;
    let id = db.last_insert_rowid();
    add_files_and_refusals(db, id, module)?;
    let mut writer = FactWriter::new(db, id, [first_function, first_block, first_edge])?;
    for function in &module.functions {
        writer.add(function)?;
    }
    Ok(())
}

fn next_id(db: &Connection, table: &str) -> Result<i64, Problem> {
    let query = format!("SELECT coalesce(max(id), 0) + 1 FROM {table}");
    Ok(db.query_row(&query, [], |row| row.get(0))?)
}

fn add_files_and_refusals(db: &Connection, id: i64, module: &Module) -> Result<(), Problem> {
    let mut file = db.prepare_cached("INSERT INTO files VALUES (?, ?, ?)")?;
    for (number, name) in module.files.iter().enumerate() {
        file.execute(params![id, number as i64, name])?;
    }
    let mut refusal = db.prepare_cached("INSERT INTO refusals VALUES (?, ?, ?, ?, ?, ?)")?;
    for (number, it) in module.refusals.iter().enumerate() {
        refusal.execute(params![
            id,
            number as i64,
            it.subject,
            it.file,
            it.line,
            it.reason
        ])?;
    }
    Ok(())
}

/// The statements that store the functions of one module, prepared once.
struct FactWriter<'a> {
    module: i64,
    next_function: i64,
    next_block: i64,
    next_edge: i64,
    function: rusqlite::CachedStatement<'a>,
    block: rusqlite::CachedStatement<'a>,
    code: rusqlite::CachedStatement<'a>,
    line_run: rusqlite::CachedStatement<'a>,
    edge: rusqlite::CachedStatement<'a>,
}

impl<'a> FactWriter<'a> {
    fn new(db: &'a Connection, module: i64, next: [i64; 3]) -> Result<Self, Problem> {
        let [next_function, next_block, next_edge] = next;
        Ok(Self {
            module,
            next_function,
            next_block,
            next_edge,
            function: db
                .prepare_cached("INSERT INTO functions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?,
            block: db.prepare_cached("INSERT INTO blocks VALUES (?, ?, ?, ?)")?,
            code: db.prepare_cached("INSERT INTO code VALUES (?, ?, ?, ?)")?,
            line_run: db.prepare_cached("INSERT INTO line_runs VALUES (?, ?, ?, ?, ?, ?, ?)")?,
            edge: db.prepare_cached("INSERT INTO edges VALUES (?, ?, ?, ?, ?)")?,
        })
    }

    fn add(&mut self, function: &Function) -> Result<(), Problem> {
        let id = self.next_function;
        self.next_function += 1;
        self.function.execute(params![
            id,
            self.module,
            function.name,
            function.address.0.cast_signed(),
            function.source.map(|(file, _)| file.0),
            function.source.map(|(_, line)| line),
            function.counters,
            function.blocks.len() as i64,
            function.edges.len() as i64
        ])?;
        let first_block = self.next_block;
        for block in &function.blocks {
            self.add_block(id, block)?;
        }
        for edge in &function.edges {
            let id_of = |block: Option<u32>| block.map(|index| first_block + i64::from(index));
            self.edge.execute(params![
                self.next_edge,
                id,
                id_of(edge.from),
                id_of(edge.to),
                edge.kind.name()
            ])?;
            self.next_edge += 1;
        }
        Ok(())
    }

    fn add_block(&mut self, function: i64, block: &Block) -> Result<(), Problem> {
        let id = self.next_block;
        self.next_block += 1;
        let address = block.address.0.cast_signed();
        self.block
            .execute(params![id, function, address, block.instructions])?;
        for (number, span) in block.code.iter().enumerate() {
            let address = span.address.0.cast_signed();
            self.code
                .execute(params![id, number as i64, address, span.bytes])?;
        }
        for (number, run) in block.lines.iter().enumerate() {
            self.line_run.execute(params![
                id,
                number as i64,
                run.file.0,
                run.line,
                run.is_stmt,
                run.instructions,
                run.inline_copy
            ])?;
        }
        Ok(())
    }
}

/// Stores a run without its counts; says under which number.
pub(crate) fn add_run(db: &Connection, run: &Run) -> Result<i64, Problem> {
    db.prepare_cached(
        "INSERT INTO runs (key, command, started, ended, status, cpu, notes)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        run.key,
        serde_json::Value::from(run.command.clone()).to_string(),
        fit(run.started, "the time of the run's start")?,
        fit(run.ended, "the time of the run's end")?,
        run.status,
        run.cpu,
        serde_json::Value::from(run.notes.clone()).to_string(),
    ])?;
    let id = db.last_insert_rowid();
    let mut add_process = db.prepare_cached("INSERT INTO processes (run, pid) VALUES (?, ?)")?;
    let mut add_thread = db.prepare_cached("INSERT INTO threads (process, tid) VALUES (?, ?)")?;
    let mut add_loaded = db.prepare_cached("INSERT INTO loaded VALUES (?, ?, ?)")?;
    for process in &run.processes {
        add_process.execute(params![id, process.pid])?;
        let process_id = db.last_insert_rowid();
        for tid in &process.threads {
            add_thread.execute(params![process_id, tid])?;
        }
        for loaded in &process.loaded {
            let module = stored(db, &loaded.build_id)?.ok_or_else(|| Problem::Misfit {
                build_id: loaded.build_id.clone(),
                what: "the module is unknown".into(),
            })?;
            add_loaded.execute(params![process_id, module.id, loaded.bias.0.cast_signed()])?;
        }
    }
    Ok(id)
}

fn add_counts(db: &Connection, run: i64, counts: &ModuleCounts) -> Result<(), Problem> {
    let refuse = |what: String| Problem::Misfit {
        build_id: counts.build_id.clone(),
        what,
    };
    let module =
        stored(db, &counts.build_id)?.ok_or_else(|| refuse("the module is unknown".into()))?;
    if let Some(what) = misfit(db, &module, counts)? {
        return Err(refuse(what));
    }
    let sparse = RunCounts::of(counts)?;
    if let Some(what) = sparse.trouble(db, &module)? {
        return Err(refuse(what.into()));
    }
    add_run_module(db, run, module.id)?;
    sparse.write(db, &module, run)
}

pub(crate) fn add_run_module(db: &Connection, run: i64, module: i64) -> Result<(), Problem> {
    db.prepare_cached("INSERT INTO run_modules VALUES (?, ?)")?
        .execute((run, module))?;
    Ok(())
}

/// Does every function have one count a block and one an edge, and no limit or shift of a block
/// beyond? Else they would land on a neighbour's blocks, and nobody would see it. Says in what they differ.
fn misfit(
    db: &Connection,
    module: &Stored,
    counts: &ModuleCounts,
) -> Result<Option<String>, Problem> {
    let mut query = db.prepare_cached(
        "SELECT name, blocks, edges FROM functions WHERE id >= ?1 AND id < ?1 + ?2 ORDER BY id",
    )?;
    let mut rows = query.query((module.first_function, module.functions))?;
    let mut given = counts.functions.iter();
    while let Some(row) = rows.next()? {
        let (name, blocks, edges): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let Some(given) = given.next() else {
            return Ok(Some(format!("none for {name}")));
        };
        if (blocks, edges) != (given.blocks.len() as i64, given.edges.len() as i64) {
            return Ok(Some(format!(
                "{name} has {blocks} blocks and {edges} edges, the counts are for {} and {}",
                given.blocks.len(),
                given.edges.len()
            )));
        }
        let shifted = given.shifts.iter().map(|it| it.block);
        let named = shifted.chain(given.at_least.iter().copied()).max();
        if named.is_some_and(|block| i64::from(block) >= blocks) {
            return Ok(Some(format!(
                "{name} has a limit or a shift of a block it has not"
            )));
        }
    }
    Ok(match given.len() {
        0 => None,
        more => Some(format!("there are counts of {more} more functions")),
    })
}

fn fit(number: u64, what: &str) -> Result<i64, Problem> {
    i64::try_from(number).map_err(|_| Problem::TooLarge(format!("{what}, {number},")))
}
