//! Icode: what `icont` makes of a program and all that is linked to it, and what `iconx` runs.
//!
//! A shell script, a header of words, and then one region that offsets are counted in: procedures,
//! each with its constants before and its code behind its block; records; global variables; tables
//! that say which file and which line code is of; strings.

use crate::opcode::Opcode;

/// What the header calls the version that we know: 64 bits a word.
const VERSION: &[u8] = b"I9.0.00/32\0";

const MARKER: &[u8] = b"[executable Icon binary follows]";

/// The words of the header before its version, and the bytes of that.
const HEADER: usize = 11 * WORD;
const CONFIGURATION: usize = 16 * WORD;
const WORD: usize = 8;

/// What the first word of a global variable says if it holds a procedure, and a procedure's block if
/// it is one.
const PROCEDURE: u64 = 0xb000_0000_0000_0006;
const BLOCK: u64 = 6;

/// The words of a procedure's block before the names of its variables.
const BLOCK_WORDS: usize = 9;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("this is no Icon program that icont made")]
    NoIcode,
    #[error("its icode has version {0:?}, and only I9.0.00/32 is known")]
    Version(String),
    #[error("its icode ends early")]
    Short,
    #[error("its table of {0} is broken")]
    Table(&'static str),
    #[error("the procedure {0} is broken")]
    Procedure(String),
    #[error("there is no known instruction at offset {0:#x}")]
    Instruction(u64),
}

#[derive(Clone, Debug)]
pub struct Icode {
    pub procedures: Vec<Linked>,
    pub globals: Vec<GlobalName>,
    /// The names of all fields of records.
    pub fields: Vec<Vec<u8>>,
    pub(crate) region: Vec<u8>,
    /// Where the tables begin that nothing writes to while a program runs.
    pub(crate) tables: usize,
    strings: usize,
    files: Vec<(u64, Vec<u8>)>,
    lines: Vec<Place>,
}

/// A procedure of a program.
#[derive(Clone, Debug)]
pub struct Linked {
    pub name: Vec<u8>,
    /// Where its code begins.
    pub entry: u64,
    /// The file that it was in when it was translated.
    pub file: Vec<u8>,
    pub instructions: Vec<Executed>,
    /// Behind its last instruction.
    pub end: u64,
    pub arguments: Vec<Vec<u8>>,
    pub locals: Vec<Vec<u8>>,
    pub statics: Vec<Vec<u8>>,
    /// The number of its first static variable.
    pub first_static: u64,
}

/// An instruction as it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    pub offset: u64,
    pub opcode: Opcode,
    pub operands: [i64; 2],
}

#[derive(Clone, Debug)]
pub struct GlobalName {
    pub name: Vec<u8>,
    pub is_builtin: bool,
}

/// From an offset on, code is of a line and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub offset: u64,
    pub line: u32,
    pub column: u32,
}

impl Executed {
    /// What an operand points to that is counted from behind the instruction.
    pub fn target(&self) -> u64 {
        let behind = self.offset + 4 + WORD as u64;
        behind.wrapping_add_signed(self.operands[0])
    }
}

impl Icode {
    /// Reads a file that `icont` has linked.
    pub fn read(file: &[u8]) -> Result<Icode, Unreadable> {
        let start = header(file).ok_or(Unreadable::NoIcode)?;
        let rest = &file[start..];
        let version = rest.get(HEADER..HEADER + CONFIGURATION);
        let version = version.ok_or(Unreadable::Short)?;
        if !version.starts_with(VERSION) {
            let end = version.iter().position(|it| *it == 0);
            let text = &version[..end.unwrap_or(20).min(20)];
            return Err(Unreadable::Version(crate::line::words(text)));
        }
        let mut words = [0; 11];
        for (at, it) in words.iter_mut().enumerate() {
            *it = word(rest, at * WORD).ok_or(Unreadable::Short)?;
        }
        let [
            size,
            _,
            records,
            _,
            fields,
            globals,
            names,
            statics,
            strings,
            files,
            lines,
        ] = words.map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        let region = rest.get(HEADER + CONFIGURATION..).unwrap_or(&[]);
        let region = region.get(..size).ok_or(Unreadable::Short)?;
        let order = [
            records, fields, globals, names, statics, files, lines, strings, size,
        ];
        if !order.is_sorted() {
            return Err(Unreadable::Table("contents"));
        }
        let reader = Reader { region, strings };
        let mut icode = Icode {
            procedures: Vec::new(),
            globals: reader.globals(globals..names, names..statics)?,
            fields: reader.names(fields..globals, "fields")?,
            files: reader.files(files..lines)?,
            lines: reader.lines(lines..strings)?,
            region: region.to_vec(),
            tables: files,
            strings,
        };
        icode.procedures = reader.procedures(globals..names, records)?;
        for procedure in &mut icode.procedures {
            let after = icode
                .files
                .partition_point(|(from, _)| *from <= procedure.entry);
            let file = after.checked_sub(1).and_then(|it| icode.files.get(it));
            procedure.file = file.map(|(_, name)| name.clone()).unwrap_or_default();
        }
        Ok(icode)
    }

    /// Where code at an offset is in the source, as far as the table of lines has it.
    pub fn place(&self, offset: u64) -> Option<Place> {
        let after = self.lines.partition_point(|it| it.offset <= offset);
        self.lines.get(after.checked_sub(1)?).copied()
    }

    /// The table's entries for the code between two offsets.
    pub fn places(&self, from: u64, to: u64) -> &[Place] {
        let first = self.lines.partition_point(|it| it.offset < from);
        let last = self.lines.partition_point(|it| it.offset < to);
        self.lines.get(first..last).unwrap_or(&[])
    }

    /// The names of the files that code is of, each once.
    pub fn files(&self) -> Vec<&[u8]> {
        let mut names: Vec<&[u8]> = self.procedures.iter().map(|it| &it.file[..]).collect();
        names.sort();
        names.dedup();
        names
    }

    pub(crate) fn string(&self, offset: i64, length: i64) -> Option<&[u8]> {
        let from = self.strings.checked_add(usize::try_from(offset).ok()?)?;
        let to = from.checked_add(usize::try_from(length).ok()?)?;
        self.region.get(from..to)
    }

    /// Bytes of a constant: behind some words of its block.
    pub(crate) fn constant(&self, block: u64, words: usize, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(block).ok()?.checked_add(words * WORD)?;
        self.region.get(from..from.checked_add(length)?)
    }
}

/// Where the header begins: behind the script.
fn header(file: &[u8]) -> Option<usize> {
    // The script is short; what follows may contain anything.
    let script = &file[..file.len().min(4096)];
    let find = |wanted: &[u8], from: usize| {
        let windows = script.get(from..)?.windows(wanted.len());
        windows
            .into_iter()
            .position(|it| it == wanted)
            .map(|it| from + it + wanted.len())
    };
    find(b"\n\x0c\n\0", find(MARKER, 0)?)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(WORD)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

struct Reader<'a> {
    region: &'a [u8],
    strings: usize,
}

type Range = std::ops::Range<usize>;

impl Reader<'_> {
    fn pairs(&self, range: Range) -> impl Iterator<Item = (u64, u64)> {
        let starts = range.clone().step_by(2 * WORD);
        starts.filter_map(move |at| {
            let inside = at + 2 * WORD <= range.end;
            inside.then_some((word(self.region, at)?, word(self.region, at + WORD)?))
        })
    }

    /// What a string is: its length and where it begins.
    fn string(&self, (length, offset): (u64, u64)) -> Option<Vec<u8>> {
        let from = self.strings.checked_add(usize::try_from(offset).ok()?)?;
        let to = from.checked_add(usize::try_from(length).ok()?)?;
        Some(self.region.get(from..to)?.to_vec())
    }

    fn names(&self, range: Range, table: &'static str) -> Result<Vec<Vec<u8>>, Unreadable> {
        let names = self.pairs(range).map(|it| self.string(it));
        names.collect::<Option<_>>().ok_or(Unreadable::Table(table))
    }

    fn globals(&self, values: Range, names: Range) -> Result<Vec<GlobalName>, Unreadable> {
        let names = self.names(names, "global variables")?;
        let values = self.pairs(values);
        let global = |((kind, value), name)| GlobalName {
            name,
            is_builtin: kind == PROCEDURE && (value as i64) < 0,
        };
        Ok(values.zip(names).map(global).collect())
    }

    fn files(&self, range: Range) -> Result<Vec<(u64, Vec<u8>)>, Unreadable> {
        let name = |(offset, name): (u64, u64)| {
            let from = self.strings.checked_add(usize::try_from(name).ok()?)?;
            let text = self.region.get(from..)?;
            let end = text.iter().position(|it| *it == 0)?;
            Some((offset, text[..end].to_vec()))
        };
        let files: Option<Vec<_>> = self.pairs(range).map(name).collect();
        files
            .filter(|it| it.is_sorted_by_key(|(offset, _)| *offset))
            .ok_or(Unreadable::Table("files"))
    }

    fn lines(&self, range: Range) -> Result<Vec<Place>, Unreadable> {
        let place = |(offset, packed): (u64, u64)| Place {
            offset,
            line: packed as u32 & 0xffff,
            column: packed as u32 >> 16,
        };
        let lines: Vec<Place> = self.pairs(range).map(place).collect();
        match lines.is_sorted_by_key(|it| it.offset) {
            true => Ok(lines),
            false => Err(Unreadable::Table("lines")),
        }
    }

    fn procedures(&self, globals: Range, records: usize) -> Result<Vec<Linked>, Unreadable> {
        let mut blocks: Vec<usize> = self
            .pairs(globals)
            .filter(|(kind, value)| *kind == PROCEDURE && *value < records as u64)
            .map(|(_, block)| block as usize)
            .collect();
        blocks.sort_unstable();
        blocks.dedup();
        // What is between the code of one and the block of the next are constants of the next: where
        // they begin is known when that has been read.
        let mut found = Vec::new();
        let mut end = records;
        for block in blocks.into_iter().rev() {
            let procedure = self.procedure(block, end)?;
            let constants = procedure
                .instructions
                .iter()
                .filter_map(|it| match it.opcode {
                    Opcode::Cset | Opcode::Real => Some(it.target()),
                    _ => None,
                });
            let first = constants.min().unwrap_or(u64::MAX);
            end = usize::try_from(first).map_or(block, |it| it.min(block));
            found.push(procedure);
        }
        found.reverse();
        Ok(found)
    }

    fn procedure(&self, block: usize, end: usize) -> Result<Linked, Unreadable> {
        let field = |number: usize| word(self.region, block + number * WORD);
        let broken = |name: &[u8]| Unreadable::Procedure(crate::line::words(name));
        let mut fields = [0; BLOCK_WORDS];
        for (number, it) in fields.iter_mut().enumerate() {
            *it = field(number).ok_or(Unreadable::Short)?;
        }
        let [
            kind,
            size,
            entry,
            arguments,
            locals,
            statics,
            first_static,
            length,
            name,
        ] = fields;
        let name = self.string((length, name)).ok_or(broken(b""))?;
        let arguments = (arguments as i64).unsigned_abs();
        let variables = arguments
            .checked_add(locals)
            .and_then(|it| it.checked_add(statics));
        let variables = variables.filter(|it| *it < self.region.len() as u64);
        let variables = variables.ok_or_else(|| broken(&name))? as usize;
        let expected = (BLOCK_WORDS + 2 * variables) * WORD;
        let is_sound = kind == BLOCK
            && size == expected as u64
            && entry == (block + expected) as u64
            && entry <= end as u64;
        if !is_sound {
            return Err(broken(&name));
        }
        let table = block + BLOCK_WORDS * WORD..block + expected;
        let mut names = self.names(table, "variables")?.into_iter();
        let mut take = |number: u64| names.by_ref().take(number as usize).collect();
        let (arguments, locals, statics) = (take(arguments), take(locals), take(statics));
        let (instructions, end) = self.instructions(entry as usize, end)?;
        Ok(Linked {
            name,
            entry,
            file: Vec::new(),
            instructions,
            end,
            arguments,
            locals,
            statics,
            first_static,
        })
    }

    fn instructions(&self, from: usize, to: usize) -> Result<(Vec<Executed>, u64), Unreadable> {
        let code = self.region.get(..to).ok_or(Unreadable::Short)?;
        let mut found = Vec::new();
        let mut at = from;
        while let Some(bytes) = code.get(at..at + 4).filter(|_| at < to) {
            let number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            if number == 0 && at + 4 == to {
                // What comes next begins at a whole word.
                break;
            }
            let unknown = Unreadable::Instruction(at as u64);
            let opcode = Opcode::from_number(number).ok_or(unknown.clone())?;
            let mut operands = [0; 2];
            for (operand, it) in operands[..opcode.words()].iter_mut().enumerate() {
                let value = word(code, at + 4 + operand * WORD).ok_or(unknown.clone())?;
                *it = value as i64;
            }
            found.push(Executed {
                offset: at as u64,
                opcode,
                operands,
            });
            at += 4 + opcode.words() * WORD;
        }
        Ok((found, at as u64))
    }
}
