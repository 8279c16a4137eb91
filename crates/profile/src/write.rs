//! Facts and counts into the tables.

use crate::counts::{self, Kept, RunCounts};
use crate::module_facts::{FunctionFacts, ModuleFacts};
use crate::packed;
use crate::read::{self, all_modules, facts};
use crate::samples;
use crate::shape::shape;
use crate::system_calls;
use crate::{Problem, Profile, Recover, Result};
use headcount_model::{Function, FunctionCounts, Module, Run, Samples};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::ops::Range;

/// What became of a run that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was stored under this number.
    New(i64),
    /// A run with the same key is there; nothing was changed.
    AlreadyThere,
}

/// The counts of one module in one run, where most functions never ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseCounts {
    /// Which module: its [`Module::build_id`].
    pub build_id: String,
    /// Functions by their place in the module, in order. All others never ran, if they were
    /// counted.
    pub functions: Vec<(usize, FunctionCounts)>,
    /// Stretches of functions of which nothing was counted, in order.
    pub uncounted: Vec<Range<usize>>,
}

/// What one run says about one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleCounted {
    /// How often its blocks and edges ran.
    Counts(SparseCounts),
    /// What its counters said, of which counts are made when somebody asks for them: see
    /// [`Recover`](crate::Recover).
    Readings {
        /// Which module.
        build_id: String,
        /// As those who recover counts understand them.
        readings: Vec<u8>,
    },
}

impl ModuleCounted {
    fn build_id(&self) -> &str {
        match self {
            Self::Counts(counts) => &counts.build_id,
            Self::Readings { build_id, .. } => build_id,
        }
    }
}

impl Profile {
    /// Stores a run and the modules it counted, all or nothing. Facts about a module that is
    /// there already are not stored again.
    pub fn add(&mut self, modules: &[Module], run: &Run) -> Result<Added> {
        self.try_add(run, |db, id| {
            modules.iter().try_for_each(|it| add_module(db, it))?;
            let id = id(db)?;
            for counts in &run.modules {
                let module = modules.iter().find(|it| it.build_id == counts.build_id);
                let shapes = module.map(|it| it.functions.iter().map(FunctionShape::of));
                let places = Places::find(db, &counts.build_id, shapes)?;
                places.has_all(counts.functions.len())?;
                let counts = places.counts(db, counts.functions.iter().enumerate(), &[])?;
                counts.write(db, &places.module, id)?;
            }
            Ok(id)
        })
    }

    /// The same, with modules whose facts are encoded, and what the run says of each. The run
    /// itself has no counts.
    pub fn add_encoded(
        &mut self,
        modules: &[ModuleFacts],
        run: &Run,
        counted: &[ModuleCounted],
    ) -> Result<Added> {
        self.try_add(run, |db, id| {
            modules.iter().try_for_each(|it| add_facts(db, it))?;
            let id = id(db)?;
            for it in counted {
                let facts = modules.iter().find(|facts| facts.build_id == it.build_id());
                match it {
                    ModuleCounted::Counts(counts) => {
                        let places = Places::of(db, &counts.build_id, facts)?;
                        places.sparse(db, counts)?.write(db, &places.module, id)?;
                    }
                    ModuleCounted::Readings { build_id, readings } => {
                        let places = Places::of(db, build_id, facts)?;
                        counts::write_readings(db, &places.module, id, readings)?;
                    }
                }
            }
            Ok(id)
        })
    }

    /// Stores a run that was timed and not counted.
    pub fn add_timed(&mut self, run: &Run, samples: &Samples) -> Result<Added> {
        self.try_add(run, |db, id| {
            let id = id(db)?;
            samples::write(db, id, samples)?;
            Ok(id)
        })
    }

    /// Makes counts of all readings, for good.
    pub fn recover_readings(&mut self) -> Result<()> {
        let recover = self.recover;
        let mut attempt = || {
            if !counts::has_readings(&self.db)? {
                return Ok(());
            }
            let transaction = self
                .db
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            recover_all(&transaction, recover)?;
            Ok(transaction.commit()?)
        };
        attempt().map_err(|problem: Problem| problem.of(&self.path))
    }

    /// `store` stores modules, then the run by calling what it is given, then the counts.
    fn try_add(
        &mut self,
        run: &Run,
        store: impl FnOnce(
            &Connection,
            &dyn Fn(&Connection) -> Result<i64, Problem>,
        ) -> Result<i64, Problem>,
    ) -> Result<Added> {
        let attempt = || {
            // IMMEDIATE: a transaction that first reads and then writes could meet another of its
            // kind, and then neither could go on.
            let transaction = self
                .db
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            if has_run(&transaction, &run.key)? {
                return Ok(Added::AlreadyThere);
            }
            let id = store(&transaction, &|db| add_run(db, run))?;
            transaction.commit()?;
            Ok(Added::New(id))
        };
        let added: Result<Added, Problem> = attempt();
        added.map_err(|problem| problem.of(&self.path))
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
    match is_known(db, &module.build_id, &module.path, &shape(module))? {
        true => Ok(()),
        false => insert(db, &ModuleFacts::new(module, Vec::new())),
    }
}

/// The same for facts that are encoded.
pub(crate) fn add_facts(db: &Connection, module: &ModuleFacts) -> Result<(), Problem> {
    match is_known(db, &module.build_id, &module.path, &module.shape)? {
        true => Ok(()),
        false => insert(db, module),
    }
}

/// Is this build there? Then it is where it was seen last.
fn is_known(db: &Connection, build_id: &str, path: &str, shape: &str) -> Result<bool, Problem> {
    let Some(known) = stored(db, build_id)? else {
        return Ok(false);
    };
    if known.shape != shape {
        return Err(Problem::OtherBuild {
            module: path.to_owned(),
        });
    }
    db.prepare_cached("UPDATE modules SET path = ?2 WHERE id = ?1 AND path <> ?2")?
        .execute(params![known.id, path])?;
    Ok(true)
}

fn insert(db: &Connection, module: &ModuleFacts) -> Result<(), Problem> {
    let first_function = next_id(db, "first_function + functions")?;
    let mut next_block = next_id(db, "first_block + blocks")?;
    let mut next_edge = next_id(db, "first_edge + edges")?;
    let blocks: i64 = module.functions.iter().map(|it| i64::from(it.blocks)).sum();
    let edges: i64 = module.functions.iter().map(|it| i64::from(it.edges)).sum();
    db.execute(
        "INSERT INTO modules (build_id, path, shape, first_function, functions, first_block,
         blocks, first_edge, edges) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            module.build_id,
            module.path,
            module.shape,
            first_function,
            module.functions.len() as i64,
            next_block,
            blocks,
            next_edge,
            edges
        ],
    )?;
    let id = db.last_insert_rowid();
    add_files_and_refusals(db, id, module)?;
    let mut add =
        db.prepare_cached("INSERT INTO functions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
    for (function, it) in (first_function..).zip(&module.functions) {
        add.execute(params![
            function,
            id,
            it.name,
            it.address.0.cast_signed(),
            it.source.map(|(file, _)| file.0),
            it.source.map(|(_, line)| line),
            it.counters,
            next_block,
            it.blocks,
            next_edge,
            it.edges,
            fit(it.instructions, "a number of instructions")?,
            module.facts_from(it)
        ])?;
        next_block += i64::from(it.blocks);
        next_edge += i64::from(it.edges);
    }
    Ok(())
}

/// The first id behind those of all modules.
fn next_id(db: &Connection, end: &str) -> Result<i64, Problem> {
    let query = format!("SELECT coalesce(max({end}), 1) FROM modules");
    Ok(db.query_row(&query, [], |row| row.get(0))?)
}

fn add_files_and_refusals(db: &Connection, id: i64, module: &ModuleFacts) -> Result<(), Problem> {
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

/// Stores a run without its counts; says under which number.
pub(crate) fn add_run(db: &Connection, run: &Run) -> Result<i64, Problem> {
    db.prepare_cached(
        "INSERT INTO runs (key, batch, phase, command, started, ended, part, status, cpu,
         host, notes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        run.key,
        if run.batch.is_empty() {
            &run.key
        } else {
            &run.batch
        },
        run.phase,
        serde_json::Value::from(run.command.clone()).to_string(),
        fit(run.started, "the time of the run's start")?,
        fit(run.ended, "the time of the run's end")?,
        run.is_part,
        run.status,
        run.cpu,
        run.host,
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
    system_calls::write(db, id, &run.system_calls)?;
    if let Some(costs) = &run.calls {
        packed::write(db, id, costs)?;
    }
    if let Some(found) = &run.values {
        packed::write(db, id, found)?;
    }
    if let Some(counts) = &run.threads {
        packed::write(db, id, counts)?;
    }
    if let Some(costs) = &run.runtimes {
        packed::write(db, id, costs)?;
    }
    Ok(id)
}

/// A function's name, and how many blocks and edges it has.
struct FunctionShape<'a> {
    name: &'a str,
    blocks: usize,
    edges: usize,
}

impl<'a> FunctionShape<'a> {
    fn of(function: &'a Function) -> Self {
        Self {
            name: &function.name,
            blocks: function.blocks.len(),
            edges: function.edges.len(),
        }
    }

    fn of_facts(function: &'a FunctionFacts) -> Self {
        Self {
            name: &function.name,
            blocks: function.blocks as usize,
            edges: function.edges as usize,
        }
    }
}

/// Makes counts of all readings.
fn recover_all(db: &Connection, recover: Recover) -> Result<(), Problem> {
    for module in all_modules(db)? {
        let runs = counts::runs_with_readings(db, &module)?;
        if runs.is_empty() {
            continue;
        }
        let facts = facts(db, &module)?;
        for run in runs {
            if let Some((counts, notes)) = run_counts(db, &module, Some(&facts), run, recover)? {
                counts.write(db, &module, run)?;
                add_notes(db, run, notes)?;
            }
        }
    }
    Ok(())
}

/// What is stored of one run about one module, with notes if counts had to be made for it; none if
/// the module took no part in it.
pub(crate) fn run_counts(
    db: &Connection,
    module: &Stored,
    known: Option<&ModuleFacts>,
    run: i64,
    recover: Recover,
) -> Result<Option<(RunCounts, Vec<String>)>, Problem> {
    let readings = match RunCounts::read(db, module, run)? {
        None => return Ok(None),
        Some(Kept::Counts(counts)) => return Ok(Some((counts, Vec::new()))),
        Some(Kept::Readings(readings)) => readings,
    };
    let read;
    let facts = match known {
        Some(known) => known,
        None => {
            read = facts(db, module)?;
            &read
        }
    };
    let (counts, notes) = recover(facts, &readings).map_err(Problem::Damaged)?;
    let places = Places::of(db, &module.build_id, Some(facts))?;
    let damaged = |problem| match problem {
        Problem::Misfit { what, .. } => Problem::Damaged(what),
        other => other,
    };
    let counts = places.sparse(db, &counts).map_err(damaged)?;
    Ok(Some((counts, notes)))
}

fn add_notes(db: &Connection, run: i64, notes: Vec<String>) -> Result<(), Problem> {
    if notes.is_empty() {
        return Ok(());
    }
    let mut all = read::run(db, run)?.notes;
    all.extend(notes);
    all.sort();
    all.dedup();
    db.prepare_cached("UPDATE runs SET notes = ? WHERE id = ?")?
        .execute((serde_json::Value::from(all).to_string(), run))?;
    Ok(())
}

/// Where the functions of a module have their blocks and edges.
struct Places<'a> {
    module: Stored,
    functions: Vec<FunctionPlace<'a>>,
}

impl<'a> Places<'a> {
    fn of(
        db: &Connection,
        build_id: &str,
        facts: Option<&'a ModuleFacts>,
    ) -> Result<Self, Problem> {
        let shapes = facts.map(|it| it.functions.iter().map(FunctionShape::of_facts));
        Self::find(db, build_id, shapes)
    }

    /// `shapes`: of all functions of the module, if it is known.
    fn find(
        db: &Connection,
        build_id: &str,
        shapes: Option<impl Iterator<Item = FunctionShape<'a>>>,
    ) -> Result<Self, Problem> {
        let known = stored(db, build_id)?.zip(shapes);
        let (module, shapes) = known.ok_or_else(|| Problem::Misfit {
            build_id: build_id.to_owned(),
            what: "the module is unknown".into(),
        })?;
        let (mut block, mut edge) = (0, 0);
        let functions = shapes.map(|it| {
            let blocks = block..block + it.blocks;
            let edges = edge..edge + it.edges;
            (block, edge) = (blocks.end, edges.end);
            let name = it.name;
            FunctionPlace {
                name,
                blocks,
                edges,
            }
        });
        Ok(Self {
            functions: functions.collect(),
            module,
        })
    }

    fn refuse(&self, what: impl Into<String>) -> Problem {
        Problem::Misfit {
            build_id: self.module.build_id.clone(),
            what: what.into(),
        }
    }

    /// Are there counts of all functions?
    fn has_all(&self, given: usize) -> Result<(), Problem> {
        let wanted = self.functions.len();
        match given == wanted {
            true => Ok(()),
            false => Err(self.refuse(format!(
                "there are {wanted} functions, the counts are for {given}"
            ))),
        }
    }

    fn sparse(&self, db: &Connection, counts: &SparseCounts) -> Result<RunCounts, Problem> {
        let functions = counts.functions.iter().map(|(at, it)| (*at, it));
        self.counts(db, functions, &counts.uncounted)
    }

    /// The counts of functions, which are in order, and what was not counted.
    fn counts<'c>(
        &self,
        db: &Connection,
        functions: impl Iterator<Item = (usize, &'c FunctionCounts)>,
        uncounted: &[Range<usize>],
    ) -> Result<RunCounts, Problem> {
        let mut counts = RunCounts::default();
        let mut next = 0;
        for (function, given) in functions {
            if function < next {
                return Err(self.refuse("functions are not in order"));
            }
            next = function + 1;
            let place = self.place(function)?;
            if let Some(what) = place.misfit(given) {
                return Err(self.refuse(what));
            }
            counts.push(place.blocks.start, place.edges.start, given);
        }
        for stretch in uncounted.iter().filter(|it| !it.is_empty()) {
            let first = self.place(stretch.start)?;
            let last = self.place(stretch.end - 1)?;
            counts.uncount(
                first.blocks.start..last.blocks.end,
                first.edges.start..last.edges.end,
            );
        }
        counts.tidy()?;
        match counts.trouble(db, &self.module)? {
            Some(what) => Err(self.refuse(what)),
            None => Ok(counts),
        }
    }

    fn place(&self, function: usize) -> Result<&FunctionPlace<'a>, Problem> {
        let found = self.functions.get(function);
        found.ok_or_else(|| self.refuse("there are counts of more functions than there are"))
    }
}

/// Where a function's blocks and edges are in its module.
struct FunctionPlace<'a> {
    name: &'a str,
    blocks: Range<usize>,
    edges: Range<usize>,
}

impl FunctionPlace<'_> {
    /// Is there one count a block and one an edge, and no limit or shift of a block beyond? Else
    /// they would land on a neighbour's blocks, and nobody would see it. Says in what they differ.
    fn misfit(&self, given: &FunctionCounts) -> Option<String> {
        let name = &self.name;
        let (blocks, edges) = (self.blocks.len(), self.edges.len());
        if (blocks, edges) != (given.blocks.len(), given.edges.len()) {
            return Some(format!(
                "{name} has {blocks} blocks and {edges} edges, the counts are for {} and {}",
                given.blocks.len(),
                given.edges.len()
            ));
        }
        let shifted = given.shifts.iter().map(|it| it.block);
        let named = shifted.chain(given.at_least.iter().copied()).max();
        named
            .is_some_and(|block| block as usize >= blocks)
            .then(|| format!("{name} has a limit or a shift of a block it has not"))
    }
}

fn fit(number: u64, what: &str) -> Result<i64, Problem> {
    i64::try_from(number).map_err(|_| Problem::TooLarge(format!("{what}, {number},")))
}
