//! What one run counted in one module: only what is not the rule. The rule is that a block or an
//! edge was counted, and that it never ran.
//!
//! The profile keeps it as numbers as `facts.rs` writes them:
//!
//! ```text
//! counts  = sparse, sparse             of blocks, of edges
//!           n, shift{n}
//!           n, gap{n}                  blocks whose count reached its limit
//! sparse  = n, (gap, count){n}         those that ran
//!           n, (gap, length){n}        stretches that were not counted
//! shift   = difference                 of its block's place to that of the shift before
//!           instruction                the first that it is about, in its block
//!           delta                      how much more often it and those behind it ran; folded
//! gap     = how many places are left out since the one before
//! ```

use crate::Problem;
use crate::facts::{Broken, Numerals, put, put_signed};
use crate::read::{BlockSizes, each};
use crate::write::Stored;
use headcount_model::{FunctionCounts, Shift};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
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

/// What is stored of one run about one module.
pub(crate) enum Kept {
    Counts(RunCounts),
    /// Nobody asked for counts yet.
    Readings(Vec<u8>),
}

pub(crate) fn write_readings(
    db: &Connection,
    module: &Stored,
    run: i64,
    readings: &[u8],
) -> Result<(), Problem> {
    db.prepare_cached("INSERT INTO run_modules VALUES (?, ?, NULL, ?)")?
        .execute((run, module.id, readings))?;
    Ok(())
}

/// Is there anything of which counts are not made yet?
pub(crate) fn has_readings(db: &Connection) -> Result<bool, Problem> {
    Ok(db
        .prepare("SELECT 1 FROM run_modules WHERE counts IS NULL")?
        .exists([])?)
}

/// The runs that have such of a module.
pub(crate) fn runs_with_readings(db: &Connection, module: &Stored) -> Result<Vec<i64>, Problem> {
    let query = "SELECT run FROM run_modules WHERE module = ? AND counts IS NULL ORDER BY run";
    let mut runs = Vec::new();
    each(db, query, [module.id], |row| {
        runs.push(row.get(0)?);
        Ok(())
    })?;
    Ok(runs)
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
    pub fn read(db: &Connection, module: &Stored, run: i64) -> Result<Option<Kept>, Problem> {
        let query = "SELECT counts, readings FROM run_modules WHERE run = ? AND module = ?";
        let mut found = None;
        each(db, query, (run, module.id), |row| {
            found = Some(match (row.get_ref(0)?, row.get_ref(1)?) {
                (ValueRef::Blob(counts), ValueRef::Null) => {
                    Kept::Counts(Self::from_bytes(counts, module)?)
                }
                (ValueRef::Null, ValueRef::Blob(readings)) => Kept::Readings(readings.to_vec()),
                _ => return Err(Broken("a module has no counts, or twice").into()),
            });
            Ok(())
        })?;
        let trouble = match &found {
            Some(Kept::Counts(counts)) => counts.trouble(db, module)?,
            _ => None,
        };
        match trouble {
            None => Ok(found),
            Some(what) => Err(Problem::Damaged(what.into())),
        }
    }

    /// Stores them, in the place of readings if these are there. Whoever calls made sure that they
    /// fit.
    pub fn write(&self, db: &Connection, module: &Stored, run: i64) -> Result<(), Problem> {
        let counts = self.to_bytes()?;
        db.prepare_cached(
            "INSERT INTO run_modules VALUES (?, ?, ?, NULL) ON CONFLICT (run, module)
             DO UPDATE SET counts = excluded.counts, readings = NULL WHERE counts IS NULL",
        )?
        .execute((run, module.id, counts))?;
        Ok(())
    }

    fn to_bytes(&self) -> Result<Vec<u8>, Problem> {
        let mut to = Vec::new();
        self.blocks.put(&mut to)?;
        self.edges.put(&mut to)?;
        put(&mut to, self.shifts.len() as u64);
        let mut last = 0;
        for it in &self.shifts {
            put(&mut to, (it.block - last).into());
            put(&mut to, it.from.into());
            put_signed(&mut to, it.delta);
            last = it.block;
        }
        put(&mut to, self.at_least.len() as u64);
        let mut end = 0;
        for block in &self.at_least {
            put(&mut to, (block - end) as u64);
            end = block + 1;
        }
        Ok(to)
    }

    fn from_bytes(bytes: &[u8], module: &Stored) -> Result<Self, Broken> {
        let mut from = Numerals(bytes);
        let blocks = Sparse::take(&mut from, module.blocks)?;
        let edges = Sparse::take(&mut from, module.edges)?;
        let shifts = take_shifts(&mut from)?;
        let mut cursor = Cursor::over(module.blocks);
        let limits = from.number()?;
        let mut at_least = Vec::with_capacity(from.room(limits));
        for _ in 0..limits {
            at_least.push(cursor.next(from.number()?, 1)?.start);
        }
        match from.0.is_empty() {
            true => Ok(Self {
                blocks,
                edges,
                shifts,
                at_least,
            }),
            false => Err(Broken("a module has more counts than it says")),
        }
    }
}

fn take_shifts(from: &mut Numerals<'_>) -> Result<Vec<Shift>, Broken> {
    let number = from.number()?;
    let mut shifts = Vec::with_capacity(from.room(number) / 3);
    let mut block = 0_u32;
    for _ in 0..number {
        let next = block.checked_add(from.u32()?);
        block = next.ok_or(BEYOND)?;
        let (from, delta) = (from.u32()?, from.signed()?);
        shifts.push(Shift { block, from, delta });
    }
    // Two of one instruction would be one.
    match shifts
        .windows(2)
        .all(|it| (it[0].block, it[0].from) < (it[1].block, it[1].from))
    {
        true => Ok(shifts),
        false => Err(Broken("shifts are not in order")),
    }
}

impl Sparse {
    fn put(&self, to: &mut Vec<u8>) -> Result<(), Problem> {
        put(to, self.counts.len() as u64);
        let mut end = 0;
        for (place, count) in &self.counts {
            // Those who read them with SQL have no larger numbers.
            let fits = i64::try_from(*count).is_ok();
            if !fits {
                return Err(Problem::TooLarge(format!("a count, {count},")));
            }
            put(to, (place - end) as u64);
            put(to, *count);
            end = place + 1;
        }
        put(to, self.uncounted.len() as u64);
        let mut end = 0;
        for stretch in &self.uncounted {
            put(to, (stretch.start - end) as u64);
            put(to, stretch.len() as u64);
            end = stretch.end;
        }
        Ok(())
    }

    /// Of so many blocks, or edges.
    fn take(from: &mut Numerals<'_>, all: i64) -> Result<Self, Broken> {
        let mut sparse = Self::default();
        let mut cursor = Cursor::over(all);
        let number = from.number()?;
        sparse.counts.reserve(from.room(number) / 2);
        for _ in 0..number {
            let place = cursor.next(from.number()?, 1)?.start;
            match from.number()? {
                count if i64::try_from(count).is_ok() && count > 0 => {
                    sparse.counts.push((place, count));
                }
                _ => return Err(Broken("a count is not positive")),
            }
        }
        let mut cursor = Cursor::over(all);
        let number = from.number()?;
        sparse.uncounted.reserve(from.room(number) / 2);
        for _ in 0..number {
            let (gap, length) = (from.number()?, from.number()?);
            if length == 0 {
                return Err(Broken("what was not counted is nothing"));
            }
            sparse.uncounted.push(cursor.next(gap, length)?);
        }
        Ok(sparse)
    }
}

const BEYOND: Broken = Broken("a count belongs to nothing");

/// Goes from place to place in a module that has so many.
struct Cursor {
    end: u64,
    all: u64,
}

impl Cursor {
    fn over(all: i64) -> Self {
        let all = u64::try_from(all).unwrap_or(0);
        Self { end: 0, all }
    }

    /// The next ones, behind a gap.
    fn next(&mut self, gap: u64, length: u64) -> Result<Range<usize>, Broken> {
        let start = self.end.checked_add(gap).ok_or(BEYOND)?;
        let end = start.checked_add(length).filter(|it| *it <= self.all);
        self.end = end.ok_or(BEYOND)?;
        let fits = |it: u64| usize::try_from(it).map_err(|_| BEYOND);
        Ok(fits(start)?..fits(self.end)?)
    }
}
