//! Which programs are lines judged of?
//!
//! Those for which gcov and llvm-cov tell the truth. Both write their counts when a program exits, and
//! from one process: a child that execs, a thread that is cancelled and a program that is killed take
//! counts with them. So of `tests/programs` only those are judged that say `optimised:` of themselves:
//! they make no processes and come to their end.

use std::path::Path;

use anyhow::Result;
use headcount_ground::program::{Language, Program};
use headcount_ground::real::{self, Amount};
use headcount_ground::registry::Sources;

use crate::{spread, suite};

/// How many of GCC's programs are enough for a table.
const OF_GCC: usize = 200;

/// What of the corpus is wanted.
pub struct Wanted<'a> {
    /// So many of each kind.
    pub sample: Option<usize>,
    pub amount: Amount,
    /// The Debian package that holds GCC's sources.
    pub package: &'a str,
    /// Where they are unpacked.
    pub unpacked: &'a Path,
}

pub fn programs(wanted: &Wanted<'_>, work: &Path) -> Result<Vec<Program>> {
    let mut ours = real::our_own(wanted.amount);
    // Threads take turns as they like.
    ours.retain(|it| it.name != "threads");
    ours.extend(real::of_many_pieces(wanted.amount));
    let of = |language: Language| -> Vec<Program> {
        let all = ours.iter().filter(|it| it.language == language);
        all.cloned().collect()
    };
    let annotated = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let gcc = suite::tests(wanted.unpacked, wanted.package)?;
    let gcc = gcc.iter().filter_map(|it| it.at("-O2").ok()).collect();
    let kinds = [
        real::programs(&Sources::fetch(work)?, wanted.amount)?,
        of(Language::Cxx),
        of(Language::Rust),
        suite::of_folder(&annotated)?,
        spread(gcc, Some(OF_GCC)),
    ];
    let chosen = kinds.into_iter().map(|it| spread(it, wanted.sample));
    Ok(chosen.flatten().collect())
}
