//! Samples as one value: numbers are LEB128, texts and lists have their length in front.
//!
//! ```text
//! value  = lost, texts, modules, sites, stacks, threads
//! module = text of the path, text of the file id
//! site   = module + 1 or 0, address, function: 0 or its distance below the address + 1, frames
//! frame  = text of the function, text of the file, line
//! stack  = (caller + 1 or 0) * 2 + (1 if it was cut), site
//! thread = pid, tid, text of the name, on_processor, waiting, ready, samples
//! sample = stack, how many
//! ```
//!
//! A text is a number: its place in the list of texts.

use crate::{Problem, Result};
use headcount_model::packed::{Packed, Packer};
use headcount_model::{Frame, LinkAddr, SampledModule, SampledThread, Samples, Site, Stack};
use rusqlite::{Connection, OptionalExtension};
use std::collections::{HashMap, HashSet};

/// Stores what a clock saw of a run.
pub(crate) fn write(db: &Connection, run: i64, samples: &Samples) -> Result<(), Problem> {
    db.prepare_cached("INSERT INTO samples VALUES (?, ?, ?, ?, ?)")?
        .execute((
            run,
            fit(samples.interval)?,
            fit(samples.total())?,
            samples.is_counted,
            packed(samples),
        ))?;
    Ok(())
}

fn fit(number: u64) -> Result<i64, Problem> {
    i64::try_from(number).map_err(|_| Problem::TooLarge(format!("{number} of time")))
}

/// What a clock saw of a run, if one ran.
pub(crate) fn read(db: &Connection, run: i64) -> Result<Option<Samples>, Problem> {
    let query = "SELECT interval, counted, packed, samples FROM samples WHERE run = ?";
    let found = db.prepare_cached(query)?.query_row([run], |row| {
        let packed: Vec<u8> = row.get(2)?;
        Ok((row.get(0)?, row.get(1)?, packed, row.get(3)?))
    });
    let Some((interval, is_counted, packed, total)): Option<(u64, bool, _, u64)> =
        found.optional()?
    else {
        return Ok(None);
    };
    let damaged = || Problem::Damaged("its samples make no sense".into());
    let samples = unpacked(&packed).ok_or_else(damaged)?;
    let samples = Samples {
        interval,
        is_counted,
        ..samples
    };
    match samples.total() == total && interval > 0 {
        true => Ok(Some(samples)),
        false => Err(damaged()),
    }
}

/// How many samples a run has, if a clock ran.
pub(crate) fn number(db: &Connection, run: i64) -> Result<Option<u64>, Problem> {
    let mut query = db.prepare_cached("SELECT samples FROM samples WHERE run = ?")?;
    Ok(query.query_row([run], |row| row.get(0)).optional()?)
}

/// The runs that have samples.
pub(crate) fn runs(db: &Connection) -> Result<HashSet<i64>, Problem> {
    let mut query = db.prepare_cached("SELECT run FROM samples")?;
    let rows = query.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The texts of some samples, each once.
#[derive(Default)]
struct Texts<'s> {
    all: Vec<&'s str>,
    numbers: HashMap<&'s str, usize>,
}

impl<'s> Texts<'s> {
    fn number(&mut self, text: &'s str) -> usize {
        *self.numbers.entry(text).or_insert_with(|| {
            self.all.push(text);
            self.all.len() - 1
        })
    }
}

fn packed(samples: &Samples) -> Vec<u8> {
    let mut texts = Texts::default();
    let mut to = Packer::default();
    to.many(&samples.modules, |to, it| {
        to.number(texts.number(&it.path));
        to.number(texts.number(&it.file_id));
    });
    to.many(&samples.sites, |to, it| {
        to.number(it.module.map_or(0, |it| it as usize + 1));
        to.wide(it.address.0);
        let below = it.function.and_then(|at| it.address.0.checked_sub(at.0));
        to.wide(below.map_or(0, |it| it.saturating_add(1)));
        to.many(&it.frames, |to, it| {
            to.number(texts.number(&it.function));
            to.number(texts.number(&it.file));
            to.number(it.line as usize);
        });
    });
    to.many(&samples.stacks, |to, it| {
        let caller = it.caller.map_or(0, |it| it as usize + 1);
        to.number(caller * 2 + usize::from(it.is_cut));
        to.number(it.site as usize);
    });
    to.many(&samples.threads, |to, it| {
        to.number(it.pid as usize);
        to.number(it.tid as usize);
        to.number(texts.number(&it.name));
        to.wide(it.on_processor);
        to.wide(it.waiting);
        to.wide(it.ready);
        to.many(&it.samples, |to, (stack, count)| {
            to.number(*stack as usize);
            to.wide(*count);
        });
    });
    let mut whole = Packer::default();
    whole.wide(samples.lost);
    whole.many(&texts.all, |to, it| to.text(it));
    whole.0.extend(to.0);
    whole.0
}

fn unpacked(bytes: &[u8]) -> Option<Samples> {
    let mut from = Packed(bytes);
    let lost = from.wide()?;
    let texts = from.many(Packed::text)?;
    let text = |from: &mut Packed<'_>| texts.get(from.number()? as usize).cloned();
    let modules = from.many(|it| {
        Some(SampledModule {
            path: text(it)?,
            file_id: text(it)?,
        })
    })?;
    let frame = |it: &mut Packed<'_>| {
        Some(Frame {
            function: text(it)?,
            file: text(it)?,
            line: it.number()?,
        })
    };
    let sites = from.many(|it| {
        let module = it.number()?.checked_sub(1);
        let address = it.wide()?;
        let below = it.wide()?.checked_sub(1);
        let is_known = module.is_none_or(|it| (it as usize) < modules.len());
        is_known.then_some(())?;
        Some(Site {
            module,
            address: LinkAddr(address),
            function: match below {
                Some(below) => Some(LinkAddr(address.checked_sub(below)?)),
                None => None,
            },
            frames: it.many(frame)?,
        })
    })?;
    let mut number = 0;
    let stacks = from.many(|it| {
        let packed = it.number()?;
        let caller = (packed >> 1).checked_sub(1);
        let site = it.number()?;
        let is_known = caller.is_none_or(|it| it < number) && (site as usize) < sites.len();
        number += 1;
        is_known.then_some(Stack {
            caller,
            site,
            is_cut: packed & 1 == 1,
        })
    })?;
    let threads = from.many(|it| {
        Some(SampledThread {
            pid: it.number()?,
            tid: it.number()?,
            name: text(it)?,
            on_processor: it.wide()?,
            waiting: it.wide()?,
            ready: it.wide()?,
            samples: it.many(|it| {
                let stack = it.number()?;
                let is_known = (stack as usize) < stacks.len();
                is_known.then_some(())?;
                Some((stack, it.wide()?))
            })?,
        })
    })?;
    from.0.is_empty().then_some(Samples {
        lost,
        modules,
        sites,
        stacks,
        threads,
        ..Samples::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Samples {
        let frame = |function: &str| Frame {
            function: function.to_owned(),
            file: "a.c".to_owned(),
            line: 7,
        };
        Samples {
            lost: 3,
            modules: vec![SampledModule {
                path: "/bin/a".to_owned(),
                file_id: "00ff".to_owned(),
            }],
            sites: vec![
                Site {
                    module: Some(0),
                    address: LinkAddr(0x1010),
                    function: Some(LinkAddr(0x1000)),
                    frames: vec![frame("main"), frame("inner")],
                },
                Site {
                    address: LinkAddr(u64::MAX),
                    ..Site::default()
                },
            ],
            stacks: vec![
                Stack {
                    is_cut: true,
                    ..Stack::default()
                },
                Stack {
                    caller: Some(0),
                    site: 1,
                    is_cut: false,
                },
            ],
            threads: vec![SampledThread {
                pid: 5,
                tid: 6,
                name: "main".to_owned(),
                on_processor: 1,
                waiting: 2,
                ready: 3,
                samples: vec![(0, 9), (1, u64::MAX / 2)],
            }],
            ..Samples::default()
        }
    }

    #[test]
    fn samples_come_back_as_they_were() {
        assert_eq!(unpacked(&packed(&some())), Some(some()));
        let none = Samples::default();
        assert_eq!(unpacked(&packed(&none)), Some(none));
    }

    #[test]
    fn no_bytes_break_the_reader() {
        let whole = packed(&some());
        for length in 0..whole.len() {
            assert_eq!(unpacked(&whole[..length]), None, "{length}");
        }
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut other = whole.clone();
                other[place] ^= 1 << bit;
                if let Some(read) = unpacked(&other) {
                    let callers = (0..).zip(&read.stacks);
                    assert!(callers.clone().all(|(at, it)| it.caller < Some(at)));
                    assert!(
                        read.stacks
                            .iter()
                            .all(|it| (it.site as usize) < read.sites.len())
                    );
                }
            }
        }
    }
}
