//! Does this program behave the same when its source is counted, and do its
//! statements, functions and operands have the counts they must have?

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path;

use anyhow::Result;
use headcount_ground::program::Program;

use crate::check::{Checker, Counts, Outcome};
use crate::compare::{Comparison, Difference, Judge};
use crate::coverage_mapping::{self, Regions};
use crate::finished::compare_lines;
use crate::gcov::{self, ByFunction};
use crate::headcount::SourceBlock;
use crate::line_table;

/// Kinds of blocks that clang has regions for, at the same place.
const HAS_REGION: [&str; 6] = [
    "then",
    "else",
    "body",
    "true operand",
    "false operand",
    "right operand",
];

impl Checker {
    /// Checks one program at one level; with `counts`, at O0, against gcov and clang, too.
    pub fn check_source(&self, program: &Program, level: &str, counts: bool) -> Result<Outcome> {
        self.in_folders(program, level, |native, counted, judged| {
            let flags = self.plain_flags(program, level);
            let plain = match self.native(program, &flags, native)? {
                Ok(ran) => ran,
                Err(reason) => return Ok(Outcome::NotApplicable(reason)),
            };
            let said = match self.counted(program, &flags, counted, &plain)? {
                Ok(said) => said,
                Err(reason) => return Ok(Outcome::Failed(reason)),
            };
            let asks = program.flags.iter().any(|flag| flag.starts_with("-O"));
            if !counts || level != "-O0" || asks {
                let counts = Counts::NotAsked;
                return Ok(Outcome::Passed { said, counts });
            }
            let mut found = Comparison::default();
            let (lines, blocks) = self.headcount.report_source(counted, self.limits.counted)?;
            // What clang writes for gcov is of a version that gcc's does not read.
            if !self.is_clang {
                let gcov = self.lines(program, &flags, judged)?;
                let with_code = line_table::of(&plain.executable, judged)?;
                compare_lines(program, &lines, &gcov, &with_code, &mut found)?;
                let functions = gcov::functions(judged, self.limits.compile)?;
                let is_abnormal = program.sources.iter().any(|it| has_abnormal_flow(it));
                compare_functions(&blocks, &functions, is_abnormal, &mut found);
            }
            self.compare_regions(program, &blocks, judged, &mut found)?;
            let counts = Counts::Compared(found);
            Ok(Outcome::Passed { said, counts })
        })
    }

    fn compare_regions(
        &self,
        program: &Program,
        blocks: &[SourceBlock],
        folder: &Path,
        found: &mut Comparison,
    ) -> Result<()> {
        let flags = self.common_flags.clone();
        let limit = self.limits.compile;
        let regions = coverage_mapping::regions(program, &flags, folder, limit)?;
        compare_blocks(blocks, &regions, found);
        Ok(())
    }
}

/// Whether control may come into the midst of a function: by a computed goto, a goto out of a
/// function inside it, or a second return of `setjmp`.
fn has_abnormal_flow(source: &Path) -> bool {
    let text = fs::read(source).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut taken = text.split("&&").skip(1).filter_map(|rest| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name: String = rest
            .trim_start()
            .chars()
            .take_while(|c| is_part(*c))
            .collect();
        (!name.is_empty()).then_some(name)
    });
    let is_label = |name: String| {
        text.lines().any(|line| {
            line.trim()
                .strip_prefix(&name)
                .is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
    };
    text.contains("setjmp") || text.contains("__label__") || taken.any(is_label)
}

/// Functions that gcov's own code calls, where a program has its own of them.
const CALLED_BY_GCOV: [&str; 2] = ["strcat", "strlen"];

/// Blocks that are the same to the reader, as one: a function of a header is in every file that
/// includes it.
fn summed<'a, K: Ord>(
    blocks: impl Iterator<Item = &'a SourceBlock>,
    key: impl Fn(&SourceBlock) -> K,
) -> BTreeMap<K, SourceBlock> {
    let mut all: BTreeMap<K, SourceBlock> = BTreeMap::new();
    for block in blocks {
        match all.entry(key(block)) {
            Entry::Occupied(mut known) => known.get_mut().count += block.count,
            Entry::Vacant(new) => _ = new.insert(block.clone()),
        }
    }
    all
}

/// Entries of functions, by name and line.
fn compare_functions(
    blocks: &[SourceBlock],
    gcov: &ByFunction,
    is_abnormal: bool,
    found: &mut Comparison,
) {
    let entries = blocks.iter().filter(|it| it.kind == "function");
    for block in summed(entries, |it| (it.function.clone(), it.line)).values() {
        let key = (block.function.clone(), block.line);
        let Some(judged) = gcov.get(&key).copied() else {
            continue;
        };
        let rule = match judged > block.count {
            true if is_abnormal => Some("gcov takes arrivals in mid-function for entries"),
            true if CALLED_BY_GCOV.contains(&block.function.as_str()) => {
                Some("gcov's own code calls the program's function")
            }
            _ => None,
        };
        match rule {
            Some(rule) => found.foreseen.push(format!("{}: {rule}", block.function)),
            None => note(block, judged, Judge::Gcov, &block.function, found),
        }
    }
}

/// Arms and operands, by line and column.
fn compare_blocks(blocks: &[SourceBlock], regions: &Regions, found: &mut Comparison) {
    let file = |it: &SourceBlock| coverage_mapping::without_detours(&it.file);
    let place = |it: &SourceBlock| (file(it), it.line, it.column);
    let function = |it: &SourceBlock| (file(it), it.function.clone());
    let mut copies: BTreeMap<_, usize> = BTreeMap::new();
    for block in blocks.iter().filter(|it| it.kind == "function") {
        *copies.entry(function(block)).or_default() += 1;
    }
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    for block in blocks {
        *places.entry(place(block)).or_default() += 1;
    }
    // What comes out of a macro is where its name is, be it one block or many.
    let is_alone = |it: &&SourceBlock| {
        HAS_REGION.contains(&it.kind.as_str())
            && copies.get(&function(it)) == places.get(&place(it))
    };
    for (key, block) in &summed(blocks.iter().filter(is_alone), place) {
        let Some(judged) = regions.get(key).copied() else {
            continue;
        };
        let name = block.file.file_name().unwrap_or_default().to_string_lossy();
        let subject = format!("{name}:{}:{}", block.line, block.column);
        note(block, judged, Judge::Clang, &subject, found);
    }
}

fn note(block: &SourceBlock, judged: u64, judge: Judge, subject: &str, found: &mut Comparison) {
    if block.count == judged {
        found.equal += 1;
        return;
    }
    found.differences.push(Difference {
        subject: subject.to_owned(),
        address: None,
        headcount: Some(block.count),
        judge,
        judged: Some(judged),
        more: 0,
    });
}
