//! CPython 3.11.

mod code_object;
mod dispatch;
mod flow;
mod opcodes;
mod positions;
mod table;

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use headcount_model::LinkAddr;

use crate::program::{Program, speaks_of};
use crate::{Found, Interpreter, Language, Memory, SourceUnit, Unit, Watch};
use code_object::CodeObject;

/// The function that runs programs.
const MAIN: &str = "_PyEval_EvalFrameDefault";

/// Where a type has the function that frees its objects.
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
    if (major, minor) != (3, 11) {
        return Err(format!("it is {name}, and only CPython 3.11 is known"));
    }
    if memchr::memmem::find(bytes, &opcodes::plain_ones()).is_none() {
        return Err(format!("it is {name} with instructions of its own"));
    }
    let code_type = program
        .symbol("PyCode_Type")
        .ok_or("it does not say where PyCode_Type is")?;
    let frees = program.word(code_type.wrapping_add(TYPE_FREES));
    let frees = frees
        .filter(|it| program.is_code(*it))
        .ok_or("PyCode_Type does not say what frees code")?;
    let fetches = dispatch::fetches(program).map_err(|why| format!("it is {name}, but {why}"))?;
    Ok(Found {
        name,
        language: Language::Python,
        fetches,
        runtime: None,
        watch: Watch::Frees(LinkAddr(frees)),
        interpreter: interpreter(LinkAddr(code_type)),
    })
}

/// What knows it, by the address of the type of its code objects.
pub(crate) fn interpreter(code_type: LinkAddr) -> Rc<dyn Interpreter> {
    Rc::new(CPython {
        code_type: code_type.0,
    })
}

/// CPython in processes.
#[derive(Debug)]
struct CPython {
    /// The type of code objects, by its link address.
    code_type: u64,
}

impl Interpreter for CPython {
    fn unit_at(&self, memory: &dyn Memory, bias: u64, at: u64) -> Option<Unit> {
        let code_type = self.code_type.wrapping_add(bias);
        let object = code_object::around(memory, code_type, at)?;
        let extent = code_object::extent(memory, object)?;
        Some(Unit {
            start: extent.start,
            end: extent.end,
            description: code_object::describe(memory, code_type, object)?,
        })
    }

    fn extent(&self, memory: &dyn Memory, bias: u64, freed: u64) -> Option<Range<u64>> {
        let is_code = code_object::has_type(memory, freed, self.code_type.wrapping_add(bias));
        code_object::extent(memory, freed).filter(|_| is_code)
    }

    fn anchors(&self) -> Vec<LinkAddr> {
        vec![LinkAddr(self.code_type)]
    }
}

/// The source of code objects, and of those in them that never ran. What is equal was compiled from the
/// same source, and is one.
pub(crate) fn units<'d>(
    pieces: impl IntoIterator<Item = (&'d [u8], &'d BTreeMap<usize, u64>)>,
) -> Option<Vec<SourceUnit>> {
    let mut all: BTreeMap<CodeObject, BTreeMap<usize, u64>> = BTreeMap::new();
    for (description, counts) in pieces {
        let object = CodeObject::unpack(description)?;
        let inner = object.flattened(&mut |it| {
            all.entry(it).or_default();
        });
        let sums = all.entry(inner).or_default();
        for (offset, count) in counts {
            let sum = sums.entry(*offset).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    let units = all
        .iter()
        .map(|(object, counts)| flow::source_unit(object, counts));
    Some(units.collect())
}
