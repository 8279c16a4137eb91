//! What differs between versions of CPython: the numbers of instructions, what is done in one go, and where things are
//! in memory.

use std::sync::LazyLock;

use super::{v3_11, v3_12, v3_13};

/// The versions that are known, each by what it decides.
static VERSIONS: LazyLock<[Version; 3]> =
    LazyLock::new(|| [v3_11::FACTS, v3_12::FACTS, v3_13::FACTS].map(Version::new));

/// The version 3.`minor`.
pub(crate) fn with_minor(minor: u8) -> Option<&'static Version> {
    VERSIONS.iter().find(|it| it.facts.minor == minor)
}

/// Those that are known, for people.
pub(crate) fn known() -> String {
    let minors: Vec<String> = VERSIONS
        .iter()
        .map(|it| format!("3.{}", it.facts.minor))
        .collect();
    minors.join(", ")
}

/// A version, as its tables say.
pub(crate) struct Facts {
    pub minor: u8,
    /// The instructions by number, without specialised ones.
    pub names: &'static [(u8, &'static str)],
    /// Specialised instructions, and what they stand for.
    pub specialised: &'static [(u8, u8)],
    /// How many code units of cache follow an instruction.
    pub caches: &'static [(&'static str, usize)],
    /// Specialised instructions that do the work of one behind them as well, without its being fetched.
    pub fused: &'static [Fused],
    /// Instructions that stand for one that is traced and was fetched already: their jumps fetch nothing anew.
    pub again: &'static [u8],
    /// The same, but they may also go on elsewhere, and it is known when.
    pub traced: &'static [u8],
    /// How many instructions at the end of a loop are done only if it went over a generator of Python.
    pub ends_of_loops: usize,
    pub layout: Layout,
}

/// Where things are in objects, by distances from their beginnings.
pub(crate) struct Layout {
    pub first_line: u64,
    pub code: u64,
    pub monitoring: Option<Monitoring>,
    pub text: Text,
    /// From the state of a thread to the frame of what it does.
    pub to_frame: &'static [i64],
    /// Where the state says which thread it is of.
    pub thread_id: i64,
    /// From what is global to the list of all such states.
    pub to_threads: [i64; 2],
}

/// What a code object has where it is traced, by instructions that stand for others.
pub(crate) struct Monitoring {
    /// In the code object: where the rest is.
    pub at: u64,
    /// In that: some bytes for each code unit, of which the first is the instruction that was replaced because its line is
    /// traced, ...
    pub lines: u64,
    /// ... and one byte for each, if every instruction is traced.
    pub instructions: u64,
}

/// Where the characters of a string are.
pub(crate) struct Text {
    pub ascii: u64,
    pub other: u64,
}

/// See [`Facts::fused`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fused {
    pub opcode: u8,
    /// How many bytes behind its first byte the other instruction begins.
    pub behind: i64,
    pub second: Second,
}

impl Fused {
    pub const fn new(opcode: u8, behind: i64, second: Second) -> Self {
        Self {
            opcode,
            behind,
            second,
        }
    }
}

/// How it can be told that the other instruction begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Second {
    /// Whenever the first does, which cannot fail.
    Always,
    /// Its argument is read.
    Read,
    /// Control goes on so many bytes behind the first, or jumps. If it does neither, the first one failed, or was
    /// specialised for something else.
    Left { at: i64, may_jump: bool },
}

/// A version, with its instructions by number.
pub(crate) struct Version {
    pub facts: Facts,
    opcodes: Vec<Opcode>,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opcode {
    /// What it stands for, if it is a specialised one; otherwise itself.
    pub plain: u8,
    /// The name of what it stands for; "?" if there is none.
    pub name: &'static str,
    /// How many code units of cache follow it.
    pub caches: usize,
    /// Which way it may jump.
    pub jump: Option<Jump>,
    /// May the next one come after it?
    pub falls_through: bool,
    /// May control leave it in another way than it says?
    pub may_raise: bool,
    /// How much it says of what is done at its place of the source, beside others there: nothing if it only prepares
    /// that, or clears up behind it; little if a function may end there without its being written.
    pub says: u8,
}

/// A jump, by so many code units as the argument says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    Forward,
    Backward,
}

/// In front of the names of instructions that also report.
const INSTRUMENTED: &str = "INSTRUMENTED_";

impl Version {
    fn new(facts: Facts) -> Self {
        let named = |name: &str| facts.names.iter().find(|it| it.1 == name);
        let plain = |number: u8| {
            let special = facts.specialised.iter().find(|it| it.0 == number);
            let name = facts.names.iter().find(|it| it.0 == number);
            let reports = name.and_then(|it| named(it.1.strip_prefix(INSTRUMENTED)?));
            special.map_or_else(|| reports.map_or(number, |it| it.0), |it| it.1)
        };
        let opcode = |number: u8| {
            let plain = plain(number);
            let name = facts.names.iter().find(|it| it.0 == plain);
            let name = name.map_or("?", |it| it.1);
            let caches = facts.caches.iter().find(|it| it.0 == name);
            Opcode {
                plain,
                name,
                caches: caches.map_or(0, |it| it.1),
                jump: jump(name),
                falls_through: !ENDS.contains(&name),
                may_raise: may_raise(name, facts.minor),
                says: says(name),
            }
        };
        let opcodes = (0..=u8::MAX).map(opcode).collect();
        Self { facts, opcodes }
    }

    /// The instruction with a number.
    pub fn opcode(&self, number: u8) -> &Opcode {
        &self.opcodes[usize::from(number)]
    }

    /// Has a number code of its own in the interpreter's table? Instructions that are never executed may have none.
    pub fn is_used(&self, number: u8) -> bool {
        const NEVER: [&str; 3] = ["CACHE", "ENTER_EXECUTOR", "RESERVED"];
        let name = self.opcode(number).name;
        name != "?" && !NEVER.contains(&name)
    }

    /// Is there none with this number?
    pub fn is_unused(&self, number: u8) -> bool {
        self.opcode(number).name == "?" && !self.facts.again.contains(&number)
    }

    /// How many code units of cache follow each instruction, as the interpreter itself has it in a table.
    pub fn caches(&self) -> Vec<u8> {
        let mut table = vec![0; self.opcodes.len()];
        for (name, caches) in self.facts.caches {
            let number = self.facts.names.iter().find(|it| it.1 == *name);
            if let Some((number, _)) = number {
                table[usize::from(*number)] = *caches as u8;
            }
        }
        table
    }

    /// The plain instruction for each number, as the interpreter itself has it in a table: what is not in use is left out,
    /// and what reports is itself there.
    pub fn plain_ones(&self) -> Vec<u8> {
        let numbers = self.facts.names.iter().map(|it| it.0);
        let specialised = self.facts.specialised.iter().map(|it| it.0);
        let last = numbers.chain(specialised).max().unwrap_or(0);
        let mut table = vec![0; usize::from(last) + 1];
        for (number, _) in self.facts.names {
            table[usize::from(*number)] = *number;
        }
        for (number, plain) in self.facts.specialised {
            table[usize::from(*number)] = *plain;
        }
        table
    }
}

/// Which way an instruction with this name may jump.
fn jump(name: &str) -> Option<Jump> {
    let jumps = name.contains("JUMP") || ["FOR_ITER", "SEND"].contains(&name);
    jumps.then(|| match name.contains("BACKWARD") {
        true => Jump::Backward,
        false => Jump::Forward,
    })
}

/// The next instruction does not come after these.
const ENDS: [&str; 8] = [
    "INTERPRETER_EXIT",
    "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
    "JUMP_FORWARD",
    "RAISE_VARARGS",
    "RERAISE",
    "RETURN_CONST",
    "RETURN_VALUE",
];

/// May control leave an instruction in another way than it says?
fn may_raise(name: &str, minor: u8) -> bool {
    const NEVER: [&str; 13] = [
        "COPY",
        "COPY_FREE_VARS",
        "EXTENDED_ARG",
        "JUMP_FORWARD",
        "KW_NAMES",
        "LOAD_CONST",
        "MAKE_CELL",
        "NOP",
        "POP_EXCEPT",
        "PRECALL",
        "PUSH_EXC_INFO",
        "PUSH_NULL",
        "SWAP",
    ];
    /// Since then the compiler knows whether a variable is set, and says `LOAD_FAST_CHECK` where it does not.
    const SINCE_3_12: [&str; 6] = [
        "END_FOR",
        "LOAD_FAST",
        "LOAD_FAST_AND_CLEAR",
        "LOAD_FAST_LOAD_FAST",
        "POP_JUMP_IF_NONE",
        "POP_JUMP_IF_NOT_NONE",
    ];
    !NEVER.contains(&name) && (minor < 12 || !SINCE_3_12.contains(&name))
}

/// See [`Opcode::says`].
fn says(name: &str) -> u8 {
    const HELPERS: [&str; 16] = [
        "CACHE",
        "COPY",
        "COPY_FREE_VARS",
        "END_FOR",
        "END_SEND",
        "EXTENDED_ARG",
        "INTERPRETER_EXIT",
        "KW_NAMES",
        "MAKE_CELL",
        "NOP",
        "POP_TOP",
        "PRECALL",
        "PUSH_NULL",
        "RESUME",
        "RETURN_GENERATOR",
        "SWAP",
    ];
    const SAY_LITTLE: [&str; 3] = ["LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"];
    match name {
        name if HELPERS.contains(&name) => 0,
        name if SAY_LITTLE.contains(&name) => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree_with_themselves() {
        for version in VERSIONS.iter() {
            let facts = &version.facts;
            for (number, plain) in facts.specialised {
                assert!(facts.names.iter().all(|it| it.0 != *number), "{number}");
                assert!(facts.names.iter().any(|it| it.0 == *plain), "{plain}");
                assert_eq!(version.opcode(*number).plain, *plain);
            }
            for (name, _) in facts.caches {
                assert!(facts.names.iter().any(|it| it.1 == *name), "{name}");
            }
            for fused in facts.fused {
                let plain = version.opcode(fused.opcode);
                assert_ne!(plain.plain, fused.opcode);
                // What is done as well comes right behind; the call is that of its preparation.
                let call = facts.names.iter().find(|it| it.1 == "CALL");
                let caches = version.opcode(call.unwrap().0).caches;
                let end = 2 + 2 * plain.caches;
                let is_call = if plain.name == "PRECALL" {
                    2 + 2 * caches
                } else {
                    0
                };
                assert_eq!(fused.behind as usize, end + is_call, "{fused:?}");
            }
            for name in ENDS.iter().filter(|it| !it.starts_with("RETURN_CONST")) {
                let is_known = facts.names.iter().any(|it| it.1 == *name);
                assert!(is_known || *name == "INTERPRETER_EXIT", "{name}");
            }
        }
    }

    #[test]
    fn what_reports_stands_for_what_it_reports() {
        let version = with_minor(13).unwrap();
        let resume = version.opcode(236);
        assert_eq!((resume.plain, resume.name), (149, "RESUME"));
        let line = version.opcode(254);
        assert_eq!((line.plain, line.name), (254, "INSTRUMENTED_LINE"));
        assert!(version.is_unused(255) && !version.is_unused(254));
        assert_eq!(version.opcode(251).jump, Some(Jump::Forward));
    }
}
