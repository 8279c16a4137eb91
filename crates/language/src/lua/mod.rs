//! Lua 5.4.

mod chunk;
mod dispatch;
mod flow;
mod lines;
mod names;
mod opcodes;
mod proto;
mod table;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use headcount_model::LinkAddr;

use crate::native::code::CodeOf;
use crate::program::Program;
use crate::{Arrival, Found, Interpreter, Language, Memory, SourceUnit, Watch};
use chunk::Function;

/// The function that brings programs into memory, whatever they were made of.
const LOADS: &str = "lua_load";

/// What every version says of itself, and what comes before the number of the version.
const SELVES: [&str; 3] = ["$LuaVersion: Lua ", "$Lua: Lua ", "LuaJIT "];

/// May it be Lua?
pub(crate) fn is_likely(bytes: &[u8]) -> bool {
    version(bytes).is_some() && Program::parse(bytes).is_some()
}

/// Is it Lua? An error says why its programs cannot be counted.
pub(crate) fn find(bytes: &[u8]) -> Option<Result<Found, String>> {
    let name = version(bytes)?;
    let program = Program::parse(bytes)?;
    match program.own_symbol(LOADS) {
        Some(begin) => Some(found(&program, name, begin)),
        // Others only speak of LuaJIT.
        None if name.starts_with("LuaJIT") => None,
        None => Some(Err(format!(
            "it is {name}, but does not say where {LOADS} is"
        ))),
    }
}

/// Its name and version.
fn version(bytes: &[u8]) -> Option<String> {
    let of = |before: &&str| {
        let at = memchr::memmem::find(bytes, before.as_bytes())?;
        let rest = &bytes[at + before.len()..];
        let number = rest
            .iter()
            .take_while(|it| it.is_ascii_digit() || **it == b'.');
        let number: String = number.map(|it| char::from(*it)).collect();
        let is_jit = before.starts_with("LuaJIT");
        let name = if is_jit { "LuaJIT" } else { "Lua" };
        (number.len() > 1).then(|| format!("{name} {number}"))
    };
    SELVES.iter().find_map(of)
}

fn found(program: &Program<'_>, name: String, begin: u64) -> Result<Found, String> {
    if !name.starts_with("Lua 5.4.") {
        return Err(format!("it is {name}, and only Lua 5.4 is known"));
    }
    let but = |why: String| format!("it is {name}, but {why}");
    let (fetches, behind) = dispatch::fetches(program).map_err(but)?;
    let ends = ends(program, begin).map_err(but)?;
    Ok(Found {
        fetches,
        language: Language::Lua,
        runtime: None,
        watch: Watch::Loads {
            begin: LinkAddr(begin),
            ends,
        },
        interpreter: Rc::new(Lua { behind }),
        name,
    })
}

/// Where a function returns.
fn ends(program: &Program<'_>, begin: u64) -> Result<Vec<LinkAddr>, String> {
    let mut code = CodeOf::new(program);
    code.leaders(&BTreeSet::from([begin]))?;
    let known = code.steps.iter();
    let mut ends: Vec<LinkAddr> = known
        .filter(|(_, step)| step.as_ref().is_some_and(|it| it.returns))
        .map(|(at, _)| LinkAddr(*at))
        .collect();
    ends.sort_unstable();
    match ends.is_empty() {
        true => Err(format!("{LOADS} does not return")),
        false => Ok(ends),
    }
}

/// What knows it, by what [`Interpreter::basis`] told.
pub(crate) fn interpreter(basis: &[u64]) -> Option<Rc<dyn Interpreter>> {
    let [behind] = *basis else { return None };
    Some(Rc::new(Lua { behind }))
}

/// Lua in processes.
#[derive(Debug)]
struct Lua {
    /// How far behind an instruction the address is that it is counted by.
    behind: u64,
}

impl Interpreter for Lua {
    fn arrived(&self, memory: &dyn Memory, about: u64) -> Option<Arrival> {
        let memory = Limited {
            memory,
            left: Cell::new(MOST_READ),
        };
        let chunk = proto::on_top(&memory, about)?;
        let functions = chunk::functions(&memory, &chunk);
        Some(Arrival {
            description: chunk::pack(functions.iter().map(|it| &it.1)),
            parts: functions
                .into_iter()
                .map(|it| self.counted(&it.0))
                .collect(),
        })
    }

    fn basis(&self) -> Vec<u64> {
        vec![self.behind]
    }
}

/// No chunk has more bytes.
const MOST_READ: u64 = 1 << 28;

/// Memory of which no more is read than that: what is there may lead in circles.
struct Limited<'m> {
    memory: &'m dyn Memory,
    left: Cell<u64>,
}

impl Memory for Limited<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> Option<()> {
        let left = self.left.get().checked_sub(into.len() as u64)?;
        self.left.set(left);
        self.memory.read(at, into)
    }
}

impl Lua {
    /// The addresses that instructions are counted by.
    fn counted(&self, code: &Range<u64>) -> Range<u64> {
        code.start.wrapping_add(self.behind)..code.end.wrapping_add(self.behind)
    }
}

/// The source of chunks: of all functions in them, whether they ran or not. What is equal was compiled from
/// the same source, and is one.
pub(crate) fn units<'d>(
    pieces: impl IntoIterator<Item = (&'d [u8], &'d BTreeMap<usize, u64>)>,
) -> Option<Vec<SourceUnit>> {
    let mut all: BTreeMap<Function, BTreeMap<usize, u64>> = BTreeMap::new();
    for (description, counts) in pieces {
        let mut start = 0;
        for function in chunk::unpack(description)? {
            let end = start + 4 * function.code.len();
            let sums = all.entry(function).or_default();
            for (offset, count) in counts.range(start..end) {
                let sum = sums.entry((offset - start) / 4).or_default();
                *sum = sum.saturating_add(*count);
            }
            start = end;
        }
    }
    let units = all
        .iter()
        .map(|(function, counts)| flow::source_unit(function, counts));
    Some(units.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory with the same again and again.
    struct Same(u64);

    impl Memory for Same {
        fn read(&self, at: u64, into: &mut [u8]) -> Option<()> {
            for (place, byte) in (at..).zip(into) {
                *byte = self.0.to_le_bytes()[(place % 8) as usize];
            }
            Some(())
        }
    }

    #[test]
    fn what_makes_no_sense_is_no_chunk() {
        let lua = interpreter(&[4]).unwrap();
        for word in [
            0,
            0x46,
            0x0000_0001_0000_0046,
            u64::MAX,
            0x4646_4646_4646_4646,
        ] {
            assert_eq!(lua.arrived(&Same(word), 0x1000), None, "{word:x}");
            assert_eq!(lua.arrived(&Same(word), u64::MAX - 8), None, "{word:x}");
        }
    }

    #[test]
    fn whatever_was_counted_nothing_panics() {
        for seed in 0..2000_u32 {
            let mut dice = seed.wrapping_mul(2_654_435_761) | 1;
            let mut roll = || {
                dice ^= dice << 13;
                dice ^= dice >> 17;
                dice ^= dice << 5;
                dice
            };
            let code: Vec<u32> = (0..seed % 40).map(|_| roll()).collect();
            let lines = (0..seed % 43).map(|_| roll() % 5).collect();
            let counts: BTreeMap<usize, u64> = (0..seed % 30)
                .map(|_| (4 * (roll() % 40) as usize, u64::from(roll())))
                .collect();
            let function = Function {
                first_line: 1,
                code,
                lines,
                ..Function::default()
            };
            let description = chunk::pack([&function]);
            let units = units([(&description[..], &counts)]).unwrap();
            assert_eq!(units.len(), 1, "{seed}");
        }
    }
}
