//! What one run counted in one module, as the tables keep it: only what is not the rule. The rule
//! is that a block or an edge was counted, and that it never ran.

use crate::Problem;
use crate::read::{BlockSizes, each};
use crate::write::Stored;
use headcount_model::{FunctionCounts, Shift};
use rusqlite::Connection;
use std::ops::Range;

/// Blocks and edges are named by their place in the module's own order; all lists are sorted.
#[derive(Debug, Default)]
pub(crate) struct RunCounts {
    pub blocks: Sparse,
    pub edges: Sparse,
    /// `Shift::block` is the place in the module.
    pub shifts: Vec<Shift>,
    pub at_least: Vec<usize>,
}

/// The counts of blocks, or of edges.
#[derive(Debug, Default)]
pub(crate) struct Sparse {
    /// Those that are not zero.
    pub counts: Vec<(usize, u64)>,
    /// Stretches that this run did not count.
    pub uncounted: Vec<Range<usize>>,
}

impl Sparse {
    /// Adds the counts of those that are at `first` and behind.
    fn push(&mut self, first: usize, counts: &[Option<u64>]) {
        for (place, count) in (first..).zip(counts) {
            match (count, self.uncounted.last_mut()) {
                (Some(0), _) => (),
                (Some(count), _) => self.counts.push((place, *count)),
                (None, Some(last)) if last.end == place => last.end += 1,
                (None, _) => self.uncounted.push(place..place + 1),
            }
        }
    }

    /// Puts stretches that touch together.
    fn join(&mut self) {
        self.uncounted.sort_unstable_by_key(|it| it.start);
        self.uncounted.dedup_by(|next, last| {
            let touches = next.start == last.end;
            if touches {
                last.end = next.end;
            }
            touches
        });
    }

    fn is_counted(&self, place: usize) -> bool {
        let next = self.uncounted.partition_point(|it| it.end <= place);
        self.uncounted
            .get(next)
            .is_none_or(|it| !it.contains(&place))
    }

    fn count(&self, place: usize) -> u64 {
        let found = self
            .counts
            .binary_search_by_key(&place, |(place, _)| *place);
        found.map_or(0, |index| self.counts[index].1)
    }

    fn trouble(&self) -> Option<&'static str> {
        let ordered = self.uncounted.windows(2).all(|it| it[0].end <= it[1].start);
        let counted = self.counts.iter().all(|(place, _)| self.is_counted(*place));
        match (ordered, counted) {
            (false, _) => Some("what was not counted is listed twice"),
            (_, false) => Some("something was counted and was not"),
            (true, true) => None,
        }
    }
}

impl RunCounts {
    /// Adds the counts of a function, which fit it, behind those of functions before it.
    pub fn push(&mut self, first_block: usize, first_edge: usize, function: &FunctionCounts) {
        self.blocks.push(first_block, &function.blocks);
        self.edges.push(first_edge, &function.edges);
        for shift in &function.shifts {
            self.shifts.push(Shift {
                block: shift.block.saturating_add(first_block as u32),
                ..*shift
            });
        }
        let limited = function.at_least.iter();
        self.at_least
            .extend(limited.map(|block| first_block + *block as usize));
    }

    /// Nothing there was counted.
    pub fn uncount(&mut self, blocks: Range<usize>, edges: Range<usize>) {
        for (sparse, stretch) in [(&mut self.blocks, blocks), (&mut self.edges, edges)] {
            if !stretch.is_empty() {
                sparse.uncounted.push(stretch);
            }
        }
    }

    /// Leaves out what says nothing, and adds up what is about the same instruction.
    pub fn tidy(&mut self) -> Result<(), Problem> {
        self.blocks.join();
        self.edges.join();
        let blocks = &self.blocks;
        let is_counted = |place: usize| blocks.is_counted(place);
        self.at_least.retain(|block| is_counted(*block));
        self.at_least.sort_unstable();
        self.at_least.dedup();
        self.shifts.retain(|it| is_counted(it.block as usize));
        self.shifts.sort_unstable();
        let mut joined: Vec<Shift> = Vec::with_capacity(self.shifts.len());
        for shift in &self.shifts {
            match joined.last_mut() {
                Some(last) if (last.block, last.from) == (shift.block, shift.from) => {
                    let sum = last.delta.checked_add(shift.delta);
                    last.delta = sum.ok_or_else(|| Problem::TooLarge("a shift".into()))?;
                }
                _ => joined.push(*shift),
            }
        }
        joined.retain(|it| it.delta != 0);
        self.shifts = joined;
        Ok(())
    }

    /// In what these counts contradict themselves or their module, if in anything.
    pub fn trouble(
        &self,
        db: &Connection,
        module: &Stored,
    ) -> Result<Option<&'static str>, Problem> {
        let own = self.blocks.trouble().or(self.edges.trouble());
        let unlimited = |block: &usize| !self.blocks.is_counted(*block);
        if own.is_some() || self.at_least.iter().any(unlimited) {
            return Ok(own.or(Some("a limit belongs to a block that was not counted")));
        }
        if self.shifts.is_empty() {
            return Ok(None);
        }
        let mut sizes = BlockSizes::of(module);
        for shifts in self.shifts.chunk_by(|a, b| a.block == b.block) {
            let Some(instructions) = sizes.instructions(db, shifts[0].block as usize)? else {
                return Ok(Some("a shift belongs to no block"));
            };
            if let Some(what) = self.shift_trouble(shifts, instructions) {
                return Ok(Some(what));
            }
        }
        Ok(None)
    }

    /// The same, for the shifts of one block.
    fn shift_trouble(&self, shifts: &[Shift], instructions: u32) -> Option<&'static str> {
        let block = shifts[0].block as usize;
        if !self.blocks.is_counted(block) {
            return Some("a shift belongs to a block that was not counted");
        }
        let mut count = i128::from(self.blocks.count(block));
        for shift in shifts {
            count += i128::from(shift.delta);
            if shift.from >= instructions {
                return Some("a shift begins behind its block");
            }
            if count < 0 {
                return Some("an instruction ran less often than never");
            }
        }
        None
    }

    /// What is stored of one run about one module; none if the module took no part in it.
    pub fn read(db: &Connection, module: &Stored, run: i64) -> Result<Option<Self>, Problem> {
        let took_part = "SELECT 1 FROM run_modules WHERE run = ? AND module = ?";
        if !db.prepare_cached(took_part)?.exists((run, module.id))? {
            return Ok(None);
        }
        let reader = Reader { db, module, run };
        let counts = Self {
            blocks: reader.sparse(&BLOCKS)?,
            edges: reader.sparse(&EDGES)?,
            shifts: reader.shifts()?,
            at_least: reader.at_least()?,
        };
        match counts.trouble(db, module)? {
            None => Ok(Some(counts)),
            Some(what) => Err(Problem::Damaged(what.into())),
        }
    }

    /// Stores them. Whoever calls made sure that they fit.
    pub fn write(&self, db: &Connection, module: &Stored, run: i64) -> Result<(), Problem> {
        self.blocks.write(db, &BLOCKS, module.first_block, run)?;
        self.edges.write(db, &EDGES, module.first_edge, run)?;
        let mut add = db.prepare_cached("INSERT INTO shifts VALUES (?, ?, ?, ?)")?;
        for it in &self.shifts {
            let block = module.first_block + i64::from(it.block);
            add.execute((run, block, it.from, it.delta))?;
        }
        let mut add = db.prepare_cached("INSERT INTO at_least VALUES (?, ?)")?;
        for block in &self.at_least {
            add.execute((run, module.first_block + *block as i64))?;
        }
        Ok(())
    }
}

/// How blocks, or edges, are read and written.
struct Tables {
    counts: &'static str,
    uncounted: &'static str,
    add_count: &'static str,
    add_uncounted: &'static str,
    /// Where they are in a module.
    range: fn(&Stored) -> (i64, i64),
}

const BLOCKS: Tables = Tables {
    counts: "SELECT block, count FROM block_counts
             WHERE run = ?1 AND block >= ?2 AND block < ?2 + ?3 ORDER BY block",
    uncounted: "SELECT first_block, blocks FROM uncounted_blocks
                WHERE run = ?1 AND first_block >= ?2 AND first_block < ?2 + ?3
                ORDER BY first_block",
    add_count: "INSERT INTO block_counts VALUES (?, ?, ?)",
    add_uncounted: "INSERT INTO uncounted_blocks VALUES (?, ?, ?)",
    range: |module| (module.first_block, module.blocks),
};

const EDGES: Tables = Tables {
    counts: "SELECT edge, count FROM edge_counts
             WHERE run = ?1 AND edge >= ?2 AND edge < ?2 + ?3 ORDER BY edge",
    uncounted: "SELECT first_edge, edges FROM uncounted_edges
                WHERE run = ?1 AND first_edge >= ?2 AND first_edge < ?2 + ?3
                ORDER BY first_edge",
    add_count: "INSERT INTO edge_counts VALUES (?, ?, ?)",
    add_uncounted: "INSERT INTO uncounted_edges VALUES (?, ?, ?)",
    range: |module| (module.first_edge, module.edges),
};

const SHIFTS: &str = "SELECT block, instruction, delta FROM shifts
    WHERE run = ?1 AND block >= ?2 AND block < ?2 + ?3 ORDER BY block, instruction";
const AT_LEAST: &str = "SELECT block FROM at_least
    WHERE run = ?1 AND block >= ?2 AND block < ?2 + ?3 ORDER BY block";

impl Sparse {
    fn write(&self, db: &Connection, to: &Tables, first: i64, run: i64) -> Result<(), Problem> {
        let mut add = db.prepare_cached(to.add_count)?;
        for (place, count) in &self.counts {
            let fitting = i64::try_from(*count);
            let count = fitting.map_err(|_| Problem::TooLarge(format!("a count, {count},")))?;
            add.execute((run, first + *place as i64, count))?;
        }
        let mut add = db.prepare_cached(to.add_uncounted)?;
        for it in &self.uncounted {
            add.execute((run, first + it.start as i64, it.len() as i64))?;
        }
        Ok(())
    }
}

/// Reads what one run says about one module.
struct Reader<'a> {
    db: &'a Connection,
    module: &'a Stored,
    run: i64,
}

impl Reader<'_> {
    fn sparse(&self, from: &Tables) -> Result<Sparse, Problem> {
        let mut sparse = Sparse::default();
        let (first, number) = (from.range)(self.module);
        each(self.db, from.counts, (self.run, first, number), |row| {
            match row.get::<_, i64>(1)? {
                count @ 1.. => sparse
                    .counts
                    .push((place(row.get(0)?, first)?, count.cast_unsigned())),
                _ => return Err(Problem::Damaged("a count is not positive".into())),
            }
            Ok(())
        })?;
        each(self.db, from.uncounted, (self.run, first, number), |row| {
            let (start, length) = (place(row.get(0)?, first)?, row.get::<_, i64>(1)?);
            let room = number - start as i64;
            if !(1..=room).contains(&length) {
                let what = "what was not counted reaches beyond its module";
                return Err(Problem::Damaged(what.into()));
            }
            sparse.uncounted.push(start..start + length as usize);
            Ok(())
        })?;
        Ok(sparse)
    }

    fn shifts(&self) -> Result<Vec<Shift>, Problem> {
        let first = self.module.first_block;
        let mut shifts = Vec::new();
        let range = (self.run, first, self.module.blocks);
        each(self.db, SHIFTS, range, |row| {
            let block = u32::try_from(place(row.get(0)?, first)?);
            shifts.push(Shift {
                block: block.map_err(|_| Problem::Damaged("a module is too large".into()))?,
                from: row.get(1)?,
                delta: row.get(2)?,
            });
            Ok(())
        })?;
        Ok(shifts)
    }

    fn at_least(&self) -> Result<Vec<usize>, Problem> {
        let first = self.module.first_block;
        let mut blocks = Vec::new();
        let range = (self.run, first, self.module.blocks);
        each(self.db, AT_LEAST, range, |row| {
            blocks.push(place(row.get(0)?, first)?);
            Ok(())
        })?;
        Ok(blocks)
    }
}

/// The place in its module of what has this number in the profile.
fn place(id: i64, first: i64) -> Result<usize, Problem> {
    let place = id
        .checked_sub(first)
        .and_then(|it| usize::try_from(it).ok());
    place.ok_or_else(|| Problem::Damaged("a count belongs to nothing".into()))
}
