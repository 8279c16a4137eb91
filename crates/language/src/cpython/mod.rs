//! CPython 3.11 to 3.13.

mod code_object;
mod dispatch;
mod flow;
mod positions;
mod runtime;
mod table;
mod v3_11;
mod v3_12;
mod v3_13;
mod version;

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use headcount_model::LinkAddr;

use crate::program::{Program, speaks_of};
use crate::{
    Charge, Found, Interpreter, Language, Measured, Memory, NO_FETCH, Sources, Unit, Watch,
};
use code_object::{CodeObject, Process};
use version::{Version, with_minor};

/// The function that runs programs.
const MAIN: &str = "_PyEval_EvalFrameDefault";

/// Only builds whose threads run at the same time have it. Their objects are others.
const WITHOUT_A_LOCK: &str = "_Py_DecRefShared";

/// Only builds that may compile programs to machine code have it. Such code fetches no instructions.
const COMPILES: &str = "_Py_Executors_InvalidateDependency";

/// Where a frame has the address of the instruction that it does.
const PREVIOUS_INSTRUCTION: i64 = 0x38;

/// Where a type has the size of its objects, ...
const TYPE_SIZE: u64 = 0x20;

/// ... and the function that frees them.
const TYPE_FREES: u64 = 0x30;

/// May it be CPython?
pub(crate) fn is_likely(bytes: &[u8]) -> bool {
    speaks_of(bytes, MAIN)
}

/// Is it CPython? An error says why its programs cannot be counted.
pub(crate) fn find(bytes: &[u8]) -> Option<Result<Found, String>> {
    if !is_likely(bytes) {
        return None;
    }
    let program = Program::parse(bytes)?;
    program.symbol(MAIN)?;
    Some(found(&program, bytes))
}

fn found(program: &Program<'_>, bytes: &[u8]) -> Result<Found, String> {
    let version = program
        .symbol("Py_Version")
        .and_then(|at| program.word(at))
        .ok_or("it is older than CPython 3.11")?;
    let (major, minor, micro) = (
        version >> 24 & 0xff,
        version >> 16 & 0xff,
        version >> 8 & 0xff,
    );
    let name = format!("CPython {major}.{minor}.{micro}");
    if major != 3 || minor < 11 {
        return Err(format!("it is {name}, older than CPython 3.11"));
    }
    if program.symbol(WITHOUT_A_LOCK).is_some() {
        return Err(format!(
            "it is {name} without a global lock, which is not known"
        ));
    }
    if program.symbol(COMPILES).is_some() {
        return Err(format!(
            "it is {name} with a just-in-time compiler, which is not known"
        ));
    }
    let version = with_minor(minor as u8)
        .ok_or_else(|| format!("it is {name}, and only {} are known", version::known()))?;
    let tables = [version.plain_ones(), version.caches()];
    if tables
        .iter()
        .any(|it| memchr::memmem::find(bytes, it).is_none())
    {
        return Err(format!("it is {name} with instructions of its own"));
    }
    let code_type = program
        .symbol("PyCode_Type")
        .ok_or("it does not say where PyCode_Type is")?;
    let of_type = |field: u64| program.word(code_type.wrapping_add(field));
    if of_type(TYPE_SIZE) != Some(version.facts.layout.code) {
        return Err(format!("it is {name} with code objects of its own"));
    }
    let frees = of_type(TYPE_FREES)
        .filter(|it| program.is_code(*it))
        .ok_or("PyCode_Type does not say what frees code")?;
    let fetches =
        dispatch::fetches(program, version).map_err(|why| format!("it is {name}, but {why}"))?;
    Ok(Found {
        name,
        language: Language::Python,
        fetches,
        runtime: Some(runtime::runtime(program, version)),
        watch: Watch::Frees(LinkAddr(frees)),
        interpreter: Rc::new(CPython {
            version,
            code_type,
            end: program.end(),
        }),
    })
}

/// What knows it, by what [`Interpreter::basis`] told.
pub(crate) fn interpreter(basis: &[u64]) -> Option<Rc<dyn Interpreter>> {
    let [code_type, end, minor] = *basis else {
        return None;
    };
    Some(Rc::new(CPython {
        version: with_minor(u8::try_from(minor).ok()?)?,
        code_type,
        end,
    }))
}

/// CPython in processes.
struct CPython {
    version: &'static Version,
    /// The type of code objects, by its link address.
    code_type: u64,
    /// Where the interpreter ends in memory, by its link address.
    end: u64,
}

/// The description of instructions that the interpreter runs around those of a program: no program has them.
const OWN: &[u8] = &[];

/// The length of an instruction without its caches.
const INSTRUCTION_BYTES: u64 = 2;

impl std::fmt::Debug for CPython {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let minor = self.version.facts.minor;
        write!(
            to,
            "CPython 3.{minor} (PyCode_Type at {:#x})",
            self.code_type
        )
    }
}

impl CPython {
    fn in_process<'m>(&self, memory: &'m dyn Memory, bias: u64) -> Process<'m> {
        Process {
            memory,
            version: self.version,
            code_type: self.code_type.wrapping_add(bias),
        }
    }
}

impl Interpreter for CPython {
    fn unit_at(&self, memory: &dyn Memory, bias: u64, at: u64) -> Option<Unit> {
        let process = self.in_process(memory, bias);
        if at == NO_FETCH {
            return None;
        }
        let Some(object) = process.around(at) else {
            let end = bias.wrapping_add(self.end);
            return (bias..end).contains(&at).then(|| Unit {
                start: at,
                end: at.saturating_add(INSTRUCTION_BYTES),
                description: OWN.to_vec(),
            });
        };
        let extent = process.extent(object)?;
        Some(Unit {
            start: extent.start,
            end: extent.end,
            description: process.describe(object)?,
        })
    }

    fn extent(&self, memory: &dyn Memory, bias: u64, freed: u64) -> Option<Range<u64>> {
        let process = self.in_process(memory, bias);
        process.extent(freed).filter(|_| process.is_code(freed))
    }

    fn basis(&self) -> Vec<u64> {
        vec![self.code_type, self.end, self.version.facts.minor.into()]
    }
}

/// The source of code objects, and of those in them that never ran. What is equal was compiled from the
/// same source, and is one.
pub(crate) fn sources<'d>(
    pieces: impl IntoIterator<Item = (&'d [u8], &'d Measured)>,
) -> Option<Sources> {
    let mut all: BTreeMap<CodeObject, Measured> = BTreeMap::new();
    let mut has_clock = false;
    let mut sources = Sources::default();
    for (description, measured) in pieces {
        has_clock |= measured.samples.is_some();
        if description == OWN {
            sources.charges.extend(charges_of_nothing(measured));
            continue;
        }
        let object = CodeObject::unpack(description)?;
        let inner = object.flattened(&mut |it| {
            all.entry(it).or_default();
        });
        all.entry(inner).or_default().add(measured);
    }
    for (object, measured) in &mut all {
        // What has no lines was not compiled, but belongs to the interpreter.
        if object.lines.is_empty() {
            sources.charges.extend(charges_of_nothing(measured));
            continue;
        }
        if has_clock {
            measured.samples.get_or_insert_default();
        }
        let version = with_minor(object.minor)?;
        let unit = flow::source_unit(version, object, measured, &mut sources.charges);
        sources.units.push(unit);
    }
    Some(sources)
}

/// Samples of what is no program's.
fn charges_of_nothing(measured: &Measured) -> impl Iterator<Item = Charge> {
    let samples = measured.samples.iter().flatten();
    samples.map(|((_, routine), samples)| Charge {
        file: String::new(),
        line: 0,
        column: 0,
        kind: String::new(),
        routine: *routine,
        samples: *samples,
    })
}
