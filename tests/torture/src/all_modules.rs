//! Does every instruction of every module of a program, libraries included,
//! have the count that callgrind sees?
//!
//! Single steps take too long for real programs; callgrind does not. But its
//! processor is another one than the machine's, and the C library looks at the
//! processor before it chooses its routines. It is told to choose the same on
//! both, by `GLIBC_TUNABLES`; and both get the same environment, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use headcount_ground::child;
use headcount_ground::program::Program;

use crate::callgrind::{self, ByAddress, ByObject};
use crate::check::{Checker, Counts, Outcome};
use crate::compare::{Comparison, Difference, Judge, compare_instructions};
use crate::headcount::{Instructions, Kind, named};

/// What holds for all programs.
pub const RULES: [&str; 2] = [
    "valgrind counts every round of a `rep` instruction; rounds after the first are taken off",
    "the dynamic linker is not compared: it asks the processor and the kernel what they are, and \
     valgrind's are others",
];

/// Valgrind's processor is a Haswell without TSX: what newer ones have is turned off, and what
/// the C library takes from the sizes of caches is set.
const TUNABLES: &str = concat!(
    "glibc.cpu.hwcaps=",
    "-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ,-RTM,-ERMS,-FSRM,-XSAVEC",
    ":glibc.cpu.x86_data_cache_size=32768",
    ":glibc.cpu.x86_shared_cache_size=1048576",
    ":glibc.cpu.x86_non_temporal_threshold=786432",
    ":glibc.cpu.x86_rep_movsb_threshold=2048",
    ":glibc.cpu.x86_rep_stosb_threshold=2048",
);

/// How to make the two runs alike.
pub struct Alike {
    /// Valgrind itself, not a script around it.
    valgrind: String,
    /// The library that it makes every program load.
    preloads: String,
}

impl Alike {
    /// Asks valgrind.
    pub fn find(folder: &Path) -> Result<Alike> {
        // Debian's `valgrind` is a script that changes the environment.
        let real = Path::new("/usr/bin/valgrind.bin");
        let valgrind = if real.exists() {
            "valgrind.bin"
        } else {
            "valgrind"
        };
        let mut ask = Command::new(valgrind);
        ask.args(["-q", "--tool=none", "/usr/bin/env"]);
        fixed(&mut ask);
        let said = child::run_or_bail(&mut ask, folder, Duration::from_secs(60))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let mut lines = said.lines();
        let preloads = lines.find_map(|line| line.strip_prefix("LD_PRELOAD="));
        Ok(Alike {
            valgrind: valgrind.to_owned(),
            preloads: preloads.context("valgrind preloads nothing")?.to_owned(),
        })
    }
}

/// Nothing of ours: every byte of the environment moves the stack.
fn fixed(command: &mut Command) {
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("GLIBC_TUNABLES", TUNABLES);
}

impl Checker {
    /// Checks one program at one level, built as anybody would build it.
    pub fn check_all_modules(
        &self,
        program: &Program,
        level: &str,
        alike: &Alike,
    ) -> Result<Outcome> {
        self.in_folders(program, level, |native, counted, judged| {
            let flags = self.plain_flags(program, level);
            let plain = match self.native(program, &flags, native)? {
                Ok(ran) => ran,
                Err(reason) => return Ok(Outcome::NotApplicable(reason)),
            };
            let command = program.command(&plain.executable);
            let counting = self
                .headcount
                .run(program.command(&plain.executable), "all");
            // The stack where it is every time.
            let mut run = Command::new("setarch");
            run.arg("-R")
                .arg(counting.get_program())
                .args(counting.get_args());
            fixed(&mut run);
            run.env("LD_PRELOAD", &alike.preloads);
            if let Err(reason) = self.behaves(program, &plain, run, counted)? {
                return Ok(Outcome::Failed(reason));
            }
            let limit = self.limits.counted;
            let said = self.headcount.report(counted, limit)?;
            let instructions = self.headcount.report_instructions(counted, limit)?;
            let mut valgrind = Command::new(&alike.valgrind);
            valgrind.args(["--run-libc-freeres=no", "--run-cxx-freeres=no"]);
            fixed(&mut valgrind);
            let valgrind = self.headcount.counted(valgrind, counted);
            let limit = self.limits.callgrind;
            let (ended, seen) = callgrind::count_with(valgrind, &command, judged, limit)?;
            let counts = match ended.succeeded() {
                true => Counts::Compared(compare_modules(&instructions, seen)),
                false => {
                    let end = ended.end;
                    Counts::NoJudge(format!("does not pass under callgrind: {end}"))
                }
            };
            Ok(Outcome::Passed { said, counts })
        })
    }
}

/// All modules, but for the rules.
fn compare_modules(counted: &BTreeMap<String, Instructions>, mut seen: ByObject) -> Comparison {
    find_objects(counted, &mut seen);
    let mut comparison = Comparison::default();
    let modules: BTreeSet<&String> = counted.keys().chain(seen.keys()).collect();
    let nothing = (Instructions::new(), ByAddress::new());
    for module in modules.into_iter().filter(|it| is_compared(it)) {
        let ours = counted.get(module).unwrap_or(&nothing.0);
        let theirs = seen.get(module).unwrap_or(&nothing.1);
        let found = compare_instructions(ours, theirs, Judge::Callgrind);
        let rules = Rules::of(ours, theirs);
        comparison.equal += found.equal;
        for mut difference in by_function(found.differences) {
            let rule = rules.foresees(&difference);
            difference.subject = named(module, &difference.subject);
            match rule {
                Some(rule) => comparison.foreseen.push(format!("{difference}: {rule}")),
                None => comparison.differences.push(difference),
            }
        }
    }
    comparison
}

/// What one module may do otherwise under valgrind.
struct Rules<'a> {
    ours: &'a Instructions,
    theirs: &'a ByAddress,
    /// Functions that ask the processor what it is, and those that only these call.
    asking: BTreeSet<&'a str>,
}

impl<'a> Rules<'a> {
    fn of(ours: &'a Instructions, theirs: &'a ByAddress) -> Rules<'a> {
        let asking = ours.values().filter(|it| it.kind == Kind::Asks);
        let mut asking: BTreeSet<&str> = asking.map(|it| it.function.as_str()).collect();
        let mut callers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for instruction in ours.values() {
            if let Kind::Calls(target) = instruction.kind
                && let Some(callee) = ours.get(&target)
            {
                let callers = callers.entry(&callee.function).or_default();
                callers.insert(&instruction.function);
            }
        }
        let asked: Vec<&str> = callers
            .into_iter()
            .filter(|(_, callers)| callers.is_subset(&asking))
            .map(|(callee, _)| callee)
            .collect();
        asking.extend(asked);
        Rules {
            ours,
            theirs,
            asking,
        }
    }

    /// Why a function may differ.
    fn foresees(&self, first: &Difference) -> Option<&'static str> {
        const CACHES: [&str; 2] = ["__x86_cacheinfo_ifunc", "__x86_cacheinfo"];
        const CLOCKS: [&str; 4] = [
            "time_ifunc",
            "time_syscall",
            "gettimeofday_ifunc",
            "gettimeofday_syscall",
        ];
        let function = first.subject.as_str();
        let is_one_more = first.headcount == Some(first.judged.unwrap_or(0) + 1);
        if ["_exit", "__GI__exit"].contains(&function) && is_one_more {
            return Some("callgrind does not come to count what the process ends in");
        }
        if self.asking.contains(function) || CACHES.contains(&function) {
            return Some("it asks the processor, and valgrind's is another");
        }
        if CLOCKS.contains(&function) {
            return Some("under valgrind the kernel lends no code to ask the time with");
        }
        (is_of_strings(function) && self.calls_agree(function)).then_some(
            "it goes by where the strings are, which is not the same; it is called as often",
        )
    }

    fn calls_agree(&self, function: &str) -> bool {
        let mut all = self.ours.iter().filter(|(_, it)| it.function == function);
        let entry = all.next();
        entry.is_some_and(|(at, it)| it.count == self.theirs.get(at).copied())
    }
}

/// The C library has its routines for strings once for each kind of processor.
fn is_of_strings(function: &str) -> bool {
    let name = function.trim_start_matches('_');
    let begins = ["mem", "rawmem", "str", "stp", "wcs", "wmem"];
    let kinds = ["_avx2", "_avx_", "_sse2", "_sse4", "_ssse3"];
    begins.iter().any(|it| name.starts_with(it)) && kinds.iter().any(|it| name.contains(it))
}

/// The object of code that callgrind knows none for.
const NO_OBJECT: &str = "???";

/// Callgrind takes for an object's only what is in its `.text`. Where `.init`, `.plt` and `.fini`
/// are, it tells by load address: by how far the object was moved, that is, which is found by
/// trying.
fn find_objects(counted: &BTreeMap<String, Instructions>, seen: &mut ByObject) {
    let mut unknown = seen.remove(NO_OBJECT).unwrap_or_default();
    let mut lacking: Vec<(&String, Vec<u64>)> = counted
        .iter()
        .map(|(module, ours)| (module, unseen(ours, seen.get(module))))
        .collect();
    // Those of which most is known first: others may look like a part of them.
    lacking.sort_by_key(|(_, addresses)| std::cmp::Reverse(addresses.len()));
    for (module, addresses) in lacking {
        let (Some(first), Some(last)) = (addresses.first(), counted[module].keys().next_back())
        else {
            continue;
        };
        let biases = unknown.keys().filter_map(|at| at.checked_sub(*first));
        let fits = |bias: &u64| {
            let found = addresses
                .iter()
                .filter(|at| unknown.contains_key(&(**at + bias)));
            found.count()
        };
        let Some(bias) = biases.filter(|it| it.is_multiple_of(4096)).max_by_key(fits) else {
            continue;
        };
        let theirs: Vec<u64> = unknown
            .range(bias..=bias + last)
            .map(|(at, _)| *at)
            .collect();
        let object = seen.entry(module.clone()).or_default();
        for at in theirs {
            object.extend(unknown.remove(&at).map(|count| (at - bias, count)));
        }
    }
}

/// What ran, says headcount, and callgrind knows nothing of.
fn unseen(counted: &Instructions, seen: Option<&ByAddress>) -> Vec<u64> {
    let is_seen = |at: &u64| seen.is_some_and(|seen| seen.contains_key(at));
    let ran = counted
        .iter()
        .filter(|(_, it)| it.count.is_some_and(|count| count > 0));
    ran.map(|(at, _)| *at).filter(|at| !is_seen(at)).collect()
}

fn is_compared(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or(module);
    let is_linker = name.starts_with("ld-linux") || name.starts_with("ld-2");
    // What has no file has no counts of ours.
    module.starts_with('/') && !is_linker
}

/// The first difference of each function, which says how many more there are.
fn by_function(all: Vec<Difference>) -> Vec<Difference> {
    let mut first: BTreeMap<String, Difference> = BTreeMap::new();
    for difference in all {
        match first.get_mut(&difference.subject) {
            Some(known) => known.more += 1,
            None => {
                first.insert(difference.subject.clone(), difference);
            }
        }
    }
    first.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headcount::Instruction;

    #[test]
    fn differences_are_told_function_by_function_and_the_linker_is_left_out() {
        let instruction = |count| Instruction {
            function: "f".to_owned(),
            count: Some(count),
            kind: Kind::Other,
        };
        let counted = |count| {
            let all = [0x10, 0x12, 0x14].map(|at| (at, instruction(count)));
            Instructions::from(all)
        };
        let counted = BTreeMap::from([
            ("/x/prog".to_owned(), counted(2)),
            ("/lib/ld-linux-x86-64.so.2".to_owned(), counted(7)),
        ]);
        let seen = ByObject::from([
            (
                "/x/prog".to_owned(),
                [(0x10, 2), (0x12, 3), (0x14, 4)].into(),
            ),
            ("/lib/libc.so.6".to_owned(), [(0x20, 1)].into()),
        ]);
        let found = compare_modules(&counted, seen);
        assert_eq!(found.equal, 1);
        let lines: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "libc.so.6!(no function) at 0x20: headcount nothing, callgrind 1",
                "prog!f at 0x12: headcount 2, callgrind 3, and 1 more of its instructions",
            ]
        );
    }

    #[test]
    fn what_asks_the_processor_takes_along_what_only_it_calls() {
        let instruction = |function: &str, kind| Instruction {
            function: function.to_owned(),
            count: Some(1),
            kind,
        };
        let ours = Instructions::from([
            (0x10, instruction("asks", Kind::Asks)),
            (0x12, instruction("asks", Kind::Calls(0x20))),
            (0x14, instruction("asks", Kind::Calls(0x30))),
            (0x20, instruction("helper", Kind::Other)),
            (0x30, instruction("shared", Kind::Other)),
            (0x40, instruction("main", Kind::Calls(0x30))),
        ]);
        let theirs = ByAddress::new();
        let rules = Rules::of(&ours, &theirs);
        assert_eq!(rules.asking, BTreeSet::from(["asks", "helper"]));
    }

    #[test]
    fn code_without_an_object_goes_where_it_fits() {
        let instruction = |count| Instruction {
            function: "_init".to_owned(),
            count: Some(count),
            kind: Kind::Other,
        };
        let two = Instructions::from([(0x1000, instruction(2)), (0x1004, instruction(2))]);
        let mut three = two.clone();
        three.insert(0x1234, instruction(5));
        let counted = BTreeMap::from([("/a".to_owned(), two), ("/b".to_owned(), three)]);
        let unknown = [
            (0x5000, 2),
            (0x5004, 2),
            (0x9000, 2),
            (0x9004, 2),
            (0x9234, 4),
        ];
        let mut seen = ByObject::from([(NO_OBJECT.to_owned(), unknown.into())]);
        find_objects(&counted, &mut seen);
        assert_eq!(seen["/a"], ByAddress::from([(0x1000, 2), (0x1004, 2)]));
        let b = [(0x1000, 2), (0x1004, 2), (0x1234, 4)];
        assert_eq!(seen["/b"], ByAddress::from(b));
    }
}
