//! Whether the code of a linked procedure is what a translation made of its source.

use crate::icode::{Executed, Icode, Linked, Place};
use crate::opcode::Opcode;
use crate::tree::{Constant, LocalKind};
use crate::ucode::{Code, Instruction, Item, Operand};
use crate::words::KEYWORDS;

/// Where the instructions of a translation are in a program.
#[derive(Debug, Default)]
pub struct Agreed {
    /// Of each instruction in ucode, the offsets of those that the linker made of it.
    pub executed: Vec<Vec<u64>>,
    /// Instructions in ucode that push a function that is built in, in order.
    pub builtins: Vec<u32>,
}

pub fn agree(icode: &Icode, linked: &Linked, code: &Code) -> Option<Agreed> {
    let mut walk = Walk {
        icode,
        linked,
        code,
        at: 0,
        behind: linked.entry,
        agreed: Agreed::default(),
        labels: Vec::new(),
        jumps: Vec::new(),
        places: Vec::new(),
    };
    let mut line = 0;
    for item in &code.items {
        match item {
            Item::File(_) => (),
            Item::Line(it) => line = *it,
            Item::Column(column) => walk.place((column << 16).wrapping_add(line)),
            Item::Label(label) => walk.labels.push((*label, walk.behind)),
            Item::Do(instruction) => walk.instruction(instruction)?,
        }
    }
    walk.finish()
}

struct Walk<'a> {
    icode: &'a Icode,
    linked: &'a Linked,
    code: &'a Code,
    /// The next instruction of the program.
    at: usize,
    /// Behind the last one.
    behind: u64,
    agreed: Agreed,
    labels: Vec<(u32, u64)>,
    /// Labels that were jumped to, and where that went.
    jumps: Vec<(u32, u64)>,
    places: Vec<Place>,
}

impl<'a> Walk<'a> {
    /// The next instruction of the program, behind what only fills a gap.
    fn next(&mut self) -> Option<&'a Executed> {
        loop {
            let executed = self.linked.instructions.get(self.at)?;
            self.at += 1;
            self.behind = executed.offset + 4 + 8 * executed.opcode.words() as u64;
            if executed.opcode != Opcode::Noop {
                return Some(executed);
            }
        }
    }

    /// Where another place begins, the linker puts an instruction that does nothing. (The first place
    /// may be left out: several files that are translated in one go share what was the last place.)
    fn place(&mut self, packed: u32) {
        let place = |offset| Place {
            offset,
            line: packed & 0xffff,
            column: packed >> 16,
        };
        let next = self.linked.instructions.get(self.at);
        if let Some(next) = next.filter(|it| it.opcode == Opcode::Noop)
            && (!self.places.is_empty()
                || self.icode.place(next.offset + 4) == Some(place(next.offset + 4)))
        {
            self.at += 1;
            self.behind = next.offset + 4;
        }
        self.places.push(place(self.behind));
    }

    fn instruction(&mut self, instruction: &Instruction) -> Option<()> {
        let first = self.next()?;
        let mut offsets = vec![first.offset];
        let is = |opcode: Opcode| first.opcode == opcode;
        let plain = is(instruction.opcode);
        let fits = match (instruction.opcode, &instruction.operand) {
            (Opcode::Keywd, Operand::Text(name)) => match &name[..] {
                b"fail" => is(Opcode::Efail),
                b"null" => is(Opcode::Pnull),
                _ => {
                    let known = KEYWORDS.iter().position(|it| it.as_bytes() == name);
                    // The runtime has them in alphabetical order, from 1.
                    plain && known.map(|it| it as i64 + 1) == Some(first.operands[0])
                }
            },
            (Opcode::Invoke, Operand::Number(-1)) => is(Opcode::Apply),
            (Opcode::Var, Operand::Number(number)) => self.names(first, *number)?,
            (Opcode::Int, Operand::Number(number)) => match self.constant(*number)? {
                Constant::Integer(text) if plain => integer(text) == Some(first.operands[0]),
                // One that is too large for a word is made of a string.
                Constant::Integer(text) => {
                    let (string, number) = (self.next()?, self.next()?);
                    offsets.extend([string.offset, number.offset]);
                    let [length, offset] = string.operands;
                    is(Opcode::Pnull)
                        && integer(text).is_none()
                        && self.icode.string(offset, length) == Some(text)
                        && string.opcode == Opcode::Str
                        && number.opcode == Opcode::Number
                }
                _ => false,
            },
            (Opcode::Str, Operand::Number(number)) => {
                let [length, offset] = first.operands;
                let text = self.icode.string(offset, length);
                matches!(self.constant(*number)?, Constant::String(it) if plain && text == Some(it))
            }
            (Opcode::Real, Operand::Number(number)) => {
                let bytes = self.icode.constant(first.target(), 1, 8);
                let value = bytes.and_then(|it| Some(f64::from_le_bytes(it.try_into().ok()?)));
                plain && real(self.constant(*number)?) == value
            }
            (Opcode::Cset, Operand::Number(number)) => {
                let bytes = self.icode.constant(first.target(), 2, 32);
                plain && bytes == Some(&characters(self.constant(*number)?)[..])
            }
            (Opcode::Field, Operand::Text(name)) => {
                let field = usize::try_from(first.operands[0]).ok();
                let field = field.and_then(|it| self.icode.fields.get(it));
                // The linker knows no record that has a field of this name.
                plain && (first.operands[0] == -1 || field == Some(name))
            }
            (_, Operand::Label(label)) => {
                self.jumps.push((*label, first.target()));
                plain
            }
            (_, Operand::Number(number)) => plain && first.operands[0] == *number,
            _ => plain,
        };
        self.agreed.executed.push(offsets);
        fits.then_some(())
    }

    fn constant(&self, number: i64) -> Option<&'a Constant> {
        self.code.constants.get(usize::try_from(number).ok()?)
    }

    /// Whether an instruction pushes the variable with this number.
    fn names(&mut self, executed: &Executed, number: i64) -> Option<bool> {
        let local = self.code.locals.get(usize::try_from(number).ok()?)?;
        let operand = executed.operands[0];
        let is = |names: &[Vec<u8>], at: i64| {
            let at = usize::try_from(at).ok();
            at.and_then(|it| names.get(it)) == Some(&local.name)
        };
        let linked = self.linked;
        Some(match (local.kind, executed.opcode) {
            (LocalKind::Argument, Opcode::Arg) => is(&linked.arguments, operand),
            (LocalKind::Static, Opcode::Static) => {
                let first = i64::try_from(linked.first_static).ok()?;
                is(&linked.statics, operand.checked_sub(first)?)
            }
            (LocalKind::Dynamic | LocalKind::Undeclared, Opcode::Local) => {
                is(&linked.locals, operand)
            }
            (LocalKind::Undeclared, Opcode::Global) => {
                let global = usize::try_from(operand).ok();
                let global = global.and_then(|it| self.icode.globals.get(it))?;
                if global.is_builtin {
                    let number = self.agreed.executed.len() as u32;
                    self.agreed.builtins.push(number);
                }
                global.name == local.name
            }
            _ => false,
        })
    }

    fn finish(mut self) -> Option<Agreed> {
        self.labels.sort_unstable();
        let goes_right = |(label, target): &(u32, u64)| {
            let found = self.labels.binary_search_by_key(label, |(it, _)| *it);
            found.is_ok_and(|it| self.labels[it].1 == *target)
        };
        let is_whole = self.at == self.linked.instructions.len();
        let is_right = is_whole && self.jumps.iter().all(goes_right);
        (is_right && self.stands_where_it_did()).then_some(self.agreed)
    }

    fn stands_where_it_did(&self) -> bool {
        let theirs = self.icode.places(self.linked.entry, self.linked.end);
        let ours = &self.places[..];
        theirs == ours || ours.split_first().is_some_and(|(_, rest)| theirs == rest)
    }
}

/// The value of an integer literal, if it fits into a word.
fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (radix, digits) = match text.split_once(['r', 'R']) {
        Some((radix, digits)) => (radix.parse().ok()?, digits),
        None => (10, text),
    };
    if !(2..=36).contains(&radix) {
        return None;
    }
    let value = i64::from_str_radix(digits, radix).ok()?;
    // The linker finds out in floating point.
    ((value as f64) < i64::MAX as f64).then_some(value)
}

/// The value of a literal as the linker reads it: without an exponent that is too large.
fn real(constant: &Constant) -> Option<f64> {
    let Constant::Real(text) = constant else {
        return None;
    };
    let text = std::str::from_utf8(text).ok()?;
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        return text.parse().ok();
    };
    let whole = mantissa.split('.').next()?.trim_start_matches('0');
    let size = exponent
        .parse::<i64>()
        .ok()?
        .checked_add(whole.len() as i64 - 1)?;
    match size.abs() < LARGEST {
        true => text.parse().ok(),
        false => mantissa.parse().ok(),
    }
}

/// Powers of ten from here on have no value.
const LARGEST: i64 = 309;

/// A bit for each character of a set.
fn characters(constant: &Constant) -> [u8; 32] {
    let mut bits = [0; 32];
    if let Constant::Cset(text) = constant {
        for byte in text {
            bits[usize::from(byte / 8)] |= 1 << (byte % 8);
        }
    }
    bits
}
