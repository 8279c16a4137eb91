//! How often did callgrind see each instruction of the program run?
//!
//! Valgrind recompiles the program while it runs and shares nothing with us:
//! that is what makes it a judge. It is asked to write positions and names in
//! full (`--compress-pos=no --compress-strings=no`), which leaves four kinds of
//! lines to understand; the format is described in valgrind's manual, "Callgrind
//! Format Specification".

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use headcount_ground::child::{self, Ended};

/// Executions by link address, in one object.
pub type ByAddress = BTreeMap<u64, u64>;

/// By the path of the object.
pub type ByObject = BTreeMap<String, ByAddress>;

/// Runs a command under callgrind, in `folder`. Every process it becomes
/// writes a file of its own; the counts are the sum.
pub fn count(command: &Command, folder: &Path, limit: Duration) -> Result<(Ended, ByObject)> {
    count_with(Command::new("valgrind"), command, folder, limit)
}

/// The same, with a `valgrind` that may have options and an environment.
pub fn count_with(
    mut valgrind: Command,
    command: &Command,
    folder: &Path,
    limit: Duration,
) -> Result<(Ended, ByObject)> {
    valgrind
        .args(["-q", "--tool=callgrind", "--trace-children=yes"])
        .args(["--dump-instr=yes", "--collect-jumps=yes", "--skip-plt=no"])
        .args(["--compress-pos=no", "--compress-strings=no"])
        .arg("--callgrind-out-file=callgrind.%p")
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(folder);
    let ended = child::run(&mut valgrind, folder, limit)?;
    let mut counts = ByObject::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_output(&entry.file_name()) {
            add(&fs::read_to_string(entry.path())?, &mut counts)
                .with_context(|| entry.path().display().to_string())?;
            fs::remove_file(entry.path())?;
        }
    }
    Ok((ended, counts))
}

fn is_output(name: &OsString) -> bool {
    name.to_string_lossy()
        .strip_prefix("callgrind.")
        .is_some_and(|rest| rest.parse::<u32>().is_ok())
}

/// What the line before said about this one.
enum Expect {
    Cost,
    /// A `calls=` line: the cost that follows is the callee's, not ours.
    Inclusive,
    /// A jump taken so often to that address: its origin follows.
    JumpOrigin {
        target: u64,
        taken: u64,
    },
}

/// Adds one output file's self costs to `counts`.
///
/// Valgrind runs a `rep` instruction as a loop and counts every round; so does
/// the machine not, nor do we. Each round after the first shows up as a jump
/// from the instruction to itself, and is taken off again. No other instruction
/// that a compiler makes jumps to itself and goes on.
fn add(output: &str, counts: &mut ByObject) -> Result<()> {
    let mut object = "";
    let mut rounds: BTreeMap<&str, ByAddress> = BTreeMap::new();
    let mut expect = Expect::Cost;
    for (number, line) in output.lines().enumerate() {
        let here = || format!("line {}: {line}", number + 1);
        if let Some(name) = line.strip_prefix("ob=") {
            object = name;
            counts.entry(object.to_owned()).or_default();
        } else if line.starts_with("calls=") {
            expect = Expect::Inclusive;
        } else if let Some(jump) = line.strip_prefix("jump=").or(line.strip_prefix("jcnd=")) {
            expect = jump_origin(jump).with_context(here)?;
        } else if line.starts_with("0x") {
            let (address, cost) = position(line).with_context(here)?;
            match std::mem::replace(&mut expect, Expect::Cost) {
                Expect::Cost => {
                    let counts = counts.get_mut(object).with_context(here)?;
                    *counts.entry(address).or_default() += cost;
                }
                Expect::JumpOrigin { target, taken } if target == address => {
                    let rounds = rounds.entry(object).or_default();
                    *rounds.entry(address).or_default() += taken;
                }
                _ => {}
            }
        }
    }
    for (object, rounds) in rounds {
        let counts = counts.entry(object.to_owned()).or_default();
        for (address, rounds) in rounds {
            let count = counts.entry(address).or_default();
            let Some(rest) = count.checked_sub(rounds) else {
                bail!("{object} {address:#x}: {rounds} jumps to itself in {count} executions");
            };
            *count = rest;
        }
    }
    Ok(())
}

/// `TAKEN ADDRESS LINE`, or `TAKEN/SEEN ADDRESS LINE` if conditional.
fn jump_origin(jump: &str) -> Result<Expect> {
    let (count, target) = jump.split_once(' ').context("no target")?;
    let taken = count
        .split('/')
        .next()
        .unwrap_or(count)
        .parse()
        .context("bad count")?;
    let (target, _) = position(target)?;
    Ok(Expect::JumpOrigin { target, taken })
}

/// `ADDRESS LINE COST`; the cost is left out where it is zero.
fn position(line: &str) -> Result<(u64, u64)> {
    let mut words = line.split_whitespace();
    let address = words
        .next()
        .and_then(|word| word.strip_prefix("0x"))
        .context("no address")?;
    let address = u64::from_str_radix(address, 16).context("bad address")?;
    let cost = words.nth(1).map_or(Ok(0), str::parse).context("bad cost")?;
    Ok((address, cost))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(output: &str) -> ByAddress {
        let mut counts = ByObject::new();
        add(output, &mut counts).unwrap();
        counts["/x/prog"].clone()
    }

    #[test]
    fn only_self_cost_of_our_object_counts() {
        let output = "events: Ir\nob=/lib/libc.so\nfn=puts\n0x10 0 7\n\nob=/x/prog\nfn=main\n\
                      0x1000 5 1\n0x1004 5 2\ncob=/lib/libc.so\ncfn=puts\ncalls=2 0x10 0\n\
                      0x1004 5 700\n0x1009 6 1\n";
        assert_eq!(
            counts(output),
            ByAddress::from([(0x1000, 1), (0x1004, 2), (0x1009, 1)])
        );
    }

    #[test]
    fn a_rep_instruction_counts_once_for_all_its_rounds() {
        let output = "ob=/x/prog\nfn=clear\n0x1219 0 1\n0x1222 0 1\njcnd=1/1 0x1222 0\n0x1222 0\n\
                      0x1222 0 49\njcnd=48/49 0x1222 0\n0x1222 0\n0x1225 0 1\n";
        assert_eq!(
            counts(output),
            ByAddress::from([(0x1219, 1), (0x1222, 1), (0x1225, 1)])
        );
    }

    #[test]
    fn an_ordinary_loop_keeps_its_rounds() {
        let output = "ob=/x/prog\nfn=f\n0x10 0 5\n0x13 0 5\njcnd=4/5 0x10 0\n0x13 0\n0x15 0 1\n";
        assert_eq!(
            counts(output),
            ByAddress::from([(0x10, 5), (0x13, 5), (0x15, 1)])
        );
    }
}
