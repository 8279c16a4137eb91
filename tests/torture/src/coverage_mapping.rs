//! How often did each region of the source run, says clang?
//!
//! Its front end counts what the source says, operands of `?:`, `&&` and `||` included, and gives
//! each region its lines and columns: an account that has nothing in common with ours.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use headcount_ground::child;
use headcount_ground::program::Program;
use serde_json::Value;

/// Counts by file, line and column where a region begins. Where several begin, the one that is
/// shortest; regions inside of macros are left out.
pub type Regions = BTreeMap<Place, u64>;

/// File, line and column.
type Place = (PathBuf, u32, u32);

/// The last line and column of a region.
type End = (u64, u64);

/// Builds and runs the program in `folder`, and asks. Nothing, if clang does not take it, or it
/// does not pass.
pub fn regions(
    program: &Program,
    flags: &[String],
    folder: &Path,
    limit: Duration,
) -> Result<Regions> {
    let executable = folder.join("mapped");
    let raw = folder.join("mapped.profraw");
    let mut compile = Command::new("clang");
    compile.args(["-fprofile-instr-generate", "-fcoverage-mapping", "-O0"]);
    let flags: Vec<String> = flags.to_vec();
    compile.args(program.compile(&flags, &executable));
    if !child::run(compile.current_dir(folder), folder, limit)?.succeeded() {
        return Ok(Regions::new());
    }
    let mut run = program.command(&executable);
    run.env("LLVM_PROFILE_FILE", &raw).current_dir(folder);
    if !child::run(&mut run, folder, limit)?.succeeded() || !raw.exists() {
        return Ok(Regions::new());
    }
    let data = folder.join("mapped.profdata");
    let mut merge = Command::new("llvm-profdata");
    merge.args(["merge", "-o"]).arg(&data).arg(&raw);
    if !child::run(merge.current_dir(folder), folder, limit)?.succeeded() {
        return Ok(Regions::new());
    }
    let mut export = Command::new("llvm-cov");
    export
        .arg("export")
        .arg("-instr-profile")
        .arg(&data)
        .arg(&executable);
    let said = child::run_or_bail(export.current_dir(folder), folder, limit)?;
    parse(&said)
}

/// `a/b/../c.h` and `a/c.h` are one file, if nobody links folders.
pub fn without_detours(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if plain.file_name().is_some() => _ = plain.pop(),
            Component::CurDir => (),
            _ => plain.push(part),
        }
    }
    plain
}

fn parse(said: &[u8]) -> Result<Regions> {
    let all: Value = serde_json::from_slice(said)?;
    let mut found: BTreeMap<Place, (End, u64)> = BTreeMap::new();
    let functions = all["data"][0]["functions"]
        .as_array()
        .context("no functions")?;
    for function in functions {
        let files = function["filenames"].as_array().context("no files")?;
        let file = files
            .first()
            .and_then(Value::as_str)
            .context("a file without a name")?;
        for region in function["regions"].as_array().context("no regions")? {
            // Line, column, last line, last column, count, file, file expanded into, kind.
            let number = |at: usize| region[at].as_u64().unwrap_or(0);
            // Code (0) of the function's own file.
            if number(5) != 0 || number(7) != 0 {
                continue;
            }
            let key = (
                without_detours(Path::new(file)),
                u32::try_from(number(0))?,
                u32::try_from(number(1))?,
            );
            let end = (number(2), number(3));
            let known = found.entry(key).or_insert((end, 0));
            match end.cmp(&known.0) {
                Ordering::Less => *known = (end, number(4)),
                // A function of a header is told once for each file that includes it.
                Ordering::Equal => known.1 += number(4),
                Ordering::Greater => (),
            }
        }
    }
    Ok(found
        .into_iter()
        .map(|(key, (_, count))| (key, count))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_region_of_a_place_counts_all_its_copies_and_macros_do_not() {
        let said = br#"{"data":[{"functions":[{"filenames":["/x/a.c","/x/a.c"],"regions":[
            [3,1,9,2,7,0,0,0],[3,1,4,2,5,0,0,0],[4,2,4,9,1,0,0,0],[5,1,5,2,8,1,0,0],[6,1,6,2,8,0,1,1]]},
            {"filenames":["/x/a.c"],"regions":[[4,2,4,9,2,0,0,0]]}]}]}"#;
        let a = PathBuf::from("/x/a.c");
        let expected = Regions::from([((a.clone(), 3, 1), 5), ((a, 4, 2), 3)]);
        assert_eq!(parse(said).unwrap(), expected);
        assert!(parse(b"{}").is_err());
    }

    #[test]
    fn a_file_has_one_name() {
        let plain = |path: &str| without_detours(Path::new(path));
        assert_eq!(plain("/a/b/../c.h"), Path::new("/a/c.h"));
        assert_eq!(plain("../a/./b/c/../../c.h"), Path::new("../a/c.h"));
    }
}
