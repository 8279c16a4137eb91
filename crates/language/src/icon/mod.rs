//! Icon 9.4.

mod costs;
mod description;
mod dispatch;
mod lines;
mod process;
mod runtime;
mod translated;
mod units;

use std::rc::Rc;

use crate::program::Program;
use crate::{Found, Interpreter, Language, Watch};

pub(crate) use units::sources;

/// What every version says when a program was made for another one.
const COMPLAINT: &[u8] = b"icode version mismatch in %s\n";

/// The one that is known, as its programs and itself have it.
const VERSION: &str = "I9.0.00/32";

/// The function that runs programs, and what tells which program that is: where it begins in memory, where its
/// code ends, and its name.
const MAIN: &str = "interp";
const NAMES: [&str; 3] = ["code", "ecode", "prog_name"];

/// May it be Icon?
pub(crate) fn is_likely(bytes: &[u8]) -> bool {
    let at = memchr::memmem::find(bytes, COMPLAINT);
    // A text of C ends so, and ours does not.
    at.is_some_and(|at| bytes.get(at + COMPLAINT.len()) == Some(&0))
}

/// Is it Icon? An error says why its programs cannot be counted.
pub(crate) fn find(bytes: &[u8]) -> Option<Result<Found, String>> {
    if !is_likely(bytes) {
        return None;
    }
    let program = Program::parse(bytes)?;
    Some(found(&program, bytes).map_err(|why| format!("it is an interpreter of Icon, but {why}")))
}

fn found(program: &Program<'_>, bytes: &[u8]) -> Result<Found, String> {
    let is_known = memchr::memmem::find_iter(bytes, VERSION).any(|at| {
        let (before, behind) = (at.checked_sub(1), at + VERSION.len());
        before.is_some_and(|it| bytes[it] == 0) && bytes.get(behind) == Some(&0)
    });
    if !is_known {
        return Err(format!(
            "its icode has a version other than {VERSION}, the only one known"
        ));
    }
    let named = |name: &str| {
        let found = program.own_symbol(name);
        found.ok_or_else(|| format!("it has no symbol `{name}`"))
    };
    let start = named(MAIN)?;
    let mut anchors = [program.end(); 4];
    for (anchor, name) in anchors.iter_mut().zip(NAMES) {
        *anchor = named(name)?;
    }
    Ok(Found {
        name: "Icon 9.4".to_owned(),
        language: Language::Icon,
        fetches: dispatch::fetches(program, start)?,
        // A program is read once, when the interpreter begins, and stays where it is.
        watch: Watch::Nothing,
        runtime: Some(runtime::runtime(program, start)),
        interpreter: Rc::new(process::Icon { anchors }),
    })
}

/// What knows it, by what [`Interpreter::basis`] told.
pub(crate) fn interpreter(basis: &[u64]) -> Option<Rc<dyn Interpreter>> {
    let anchors = basis.try_into().ok()?;
    Some(Rc::new(process::Icon { anchors }))
}
