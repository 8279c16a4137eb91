//! Which program an interpreter runs.
//!
//! While a program runs, its interpreter changes it in memory: operands become addresses, global variables get
//! values, names of variables too. What it was is in the file that it was read from. So that file is read
//! again, by the name that the interpreter has for it; and nothing is counted unless all of the memory that the
//! interpreter leaves alone, and all instructions, are as they are in the file: it may have been replaced.

use headcount_icon::Icode;

use super::description::Description;
use crate::{Interpreter, Memory, Unit};

/// Icon in processes.
#[derive(Debug)]
pub(super) struct Icon {
    /// Where it has where its program begins, where that's code ends, the name of the program; and where it ends
    /// itself.
    pub(super) anchors: [u64; 4],
}

/// No path is longer.
const LONGEST_PATH: u64 = 4096;

/// The length of the shortest instruction.
const SHORTEST: u64 = 4;

impl Interpreter for Icon {
    fn unit_at(&self, memory: &dyn Memory, bias: u64, at: u64) -> Option<Unit> {
        let [code, end_of_code, name, end] = self.anchors.map(|it| bias.wrapping_add(it));
        let (start, end_of_code) = (word(memory, code)?, word(memory, end_of_code)?);
        if (start..end_of_code).contains(&at) {
            return Some(Unit {
                start,
                end: end_of_code,
                description: described(memory, start, word(memory, name)?).pack(),
            });
        }
        (bias..end).contains(&at).then(|| Unit {
            start: at,
            end: at + SHORTEST,
            description: Description::Own.pack(),
        })
    }

    fn basis(&self) -> Vec<u64> {
        self.anchors.to_vec()
    }
}

/// The program that begins at an address, with its name at another one.
fn described(memory: &dyn Memory, start: u64, name: u64) -> Description {
    let name = text(memory, name);
    let refused = |why: String| Description::Refused {
        name: String::from_utf8_lossy(&name).into_owned(),
        why,
    };
    let mut why = "its file cannot be read any more".to_owned();
    for (path, file) in memory.files(&name) {
        match Icode::read(&file) {
            Ok(icode) if is_loaded(memory, start, &icode) => {
                return Description::Program { path, file };
            }
            Ok(_) => "its file changed while it ran".clone_into(&mut why),
            Err(error) => why = error.to_string(),
        }
    }
    refused(why)
}

fn is_loaded(memory: &dyn Memory, start: u64, icode: &Icode) -> bool {
    let mut region = vec![0; icode.size()];
    memory.read(start, &mut region).is_some() && icode.is_in(&region)
}

fn word(memory: &dyn Memory, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read(at, &mut bytes)?;
    Some(u64::from_le_bytes(bytes))
}

/// A text that ends with a 0. It may be the last thing on the stack, so that nothing can be read behind it.
fn text(memory: &dyn Memory, at: u64) -> Vec<u8> {
    let mut found = Vec::new();
    for at in (0..LONGEST_PATH).map(|it| at.wrapping_add(it)) {
        let mut byte = [0];
        if memory.read(at, &mut byte).is_none() || byte == [0] {
            break;
        }
        found.extend(byte);
    }
    found
}
