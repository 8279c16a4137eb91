//! What was found by value: how it is kept in a file while it is being counted.
//!
//! A window's tables hold what its thread has found since they were emptied last. What was in them goes
//! into the file, with the number of times that the window was emptied; only then are they emptied, and
//! the window gets that number. So whoever reads both knows, whenever headcount was killed, whether the
//! tables still hold what the file holds already.
//!
//! With breakpoints there are no tables: every hit is added to the file, which is written anew when it
//! says the same too often.
//!
//! In the file, addresses are those of modules: processes may have them anywhere.

use std::collections::{BTreeMap, HashMap, hash_map};
use std::fs::File;
use std::io::{self, Read};

use headcount_language::NO_FETCH;
use headcount_model::KeyKind;
use headcount_model::packed::{Packed, Packer};
use headcount_patch::{ADDRESS_SHIFT, PLACE_SHIFT, SLOT_AMOUNT, SLOT_BYTES, SLOT_COUNT};

use crate::foreign_file;
use crate::journal::{Entry, VALUES, WINDOWS};
use crate::own_folder::OwnFolder;
use crate::windows;

/// Of each tally, no more keys than these are told apart.
const MOST_KEYS: usize = 1 << 20;

/// An address in the code of a module, or outside of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CodeAt {
    /// Of the module with this number in the journal.
    Module(u32, u64),
    /// Of none that is counted.
    Elsewhere,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FoundKey {
    /// A number.
    Number(i64),
    /// An address that control went to.
    Code(CodeAt),
    /// A text, by its hash.
    Text(u64),
    /// Something else.
    Kind(KeyKind),
    /// An instruction of an interpreted program: the number of the piece that it is in, and how many bytes
    /// behind the first one.
    Piece(u32, u32),
}

/// What addresses mean in a process.
pub struct Meaning<'a> {
    /// Those of its modules.
    pub code: &'a dyn Fn(u64) -> CodeAt,
    /// Those of instructions that it interprets.
    pub piece: &'a dyn Fn(u64) -> Option<(u32, u32)>,
}

/// A piece of an interpreted program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its number.
    pub number: u32,
    /// The module of its interpreter, by its number in the journal.
    pub module: u32,
    /// What is known of it.
    pub description: Vec<u8>,
}

/// What counts are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Found {
    /// The number of the tally.
    pub tally: u8,
    /// The number of the place; 0 where the place is `by`.
    pub place: u16,
    /// What was found there.
    pub key: FoundKey,
    /// The caller, or the instruction that went to the target.
    pub by: Option<CodeAt>,
}

/// How often, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How often.
    pub count: u64,
    /// The sum of the amounts.
    pub amount: i64,
}

impl Sum {
    /// What takes it back.
    pub fn negated(self) -> Self {
        Self {
            count: self.count.wrapping_neg(),
            amount: self.amount.wrapping_neg(),
        }
    }
}

/// What all threads found.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Sums.
    pub found: HashMap<Found, Sum>,
    /// Texts by their hashes.
    pub texts: HashMap<u64, Vec<u8>>,
    /// Pieces of interpreted programs by number.
    pub pieces: BTreeMap<u32, Piece>,
    keys: HashMap<u8, usize>,
    /// How often each window was emptied.
    generations: BTreeMap<u32, u64>,
}

/// A slot of a table that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where it is in the table.
    pub offset: u32,
    /// The key.
    pub key: u64,
    /// What else it is told apart by.
    pub by: u64,
    /// What was counted.
    pub sum: Sum,
}

/// The slots of a table that are in use.
pub fn slots(table: &[u8]) -> impl Iterator<Item = Slot> {
    let slots = (0_u32..).step_by(SLOT_BYTES as usize);
    let slots = slots.zip(table.chunks_exact(SLOT_BYTES as usize));
    slots.filter_map(|(offset, bytes)| {
        let word = |at: u32| {
            let bytes = bytes[at as usize..].first_chunk();
            bytes.map_or(0, |it| u64::from_le_bytes(*it))
        };
        let count = word(SLOT_COUNT);
        (count != 0).then(|| Slot {
            offset,
            key: word(0),
            by: word(8),
            sum: Sum {
                count,
                amount: word(SLOT_AMOUNT).cast_signed(),
            },
        })
    })
}

/// What the keys of a tally are.
#[derive(Clone, Copy, Debug, Default)]
pub struct KindOfTally {
    /// Are they where control went?
    pub is_targets: bool,
    /// Are they texts?
    pub is_text: bool,
    /// Are callers told apart?
    pub by_caller: bool,
    /// Are they addresses of instructions of interpreted programs?
    pub is_program: bool,
}

impl Slot {
    /// The number of the place where it was counted.
    pub fn place(&self) -> u16 {
        (self.by >> PLACE_SHIFT) as u16 & (headcount_model::MOST_PLACES - 1)
    }

    /// What its key means in a process.
    pub fn found(&self, tally: u8, kind: KindOfTally, meaning: &Meaning<'_>) -> Found {
        let what = self.by & ((1 << PLACE_SHIFT) - 1);
        let what = KeyKind::of(what as u8).unwrap_or(KeyKind::Other);
        let address = self.by >> ADDRESS_SHIFT;
        Found {
            tally,
            place: self.place(),
            key: match what {
                KeyKind::Number if kind.is_program => match (meaning.piece)(self.key) {
                    Some((number, offset)) => FoundKey::Piece(number, offset),
                    None if self.key == NO_FETCH => FoundKey::Number(self.key.cast_signed()),
                    None => FoundKey::Kind(KeyKind::Elsewhere),
                },
                KeyKind::Number if kind.is_targets => FoundKey::Code((meaning.code)(self.key)),
                KeyKind::Number if kind.is_text => FoundKey::Text(self.key),
                KeyKind::Number => FoundKey::Number(self.key.cast_signed()),
                other => FoundKey::Kind(other),
            },
            by: (kind.is_targets || kind.by_caller).then(|| (meaning.code)(address)),
        }
    }
}

impl Values {
    /// Adds what was found.
    pub fn add(&mut self, found: Found, sum: Sum) {
        let keys = self.keys.entry(found.tally).or_default();
        let entry = match self.found.entry(found) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(new) if *keys < MOST_KEYS => {
                *keys += 1;
                new.insert(Sum::default())
            }
            hash_map::Entry::Vacant(_) => {
                let others = Found {
                    key: FoundKey::Kind(KeyKind::Other),
                    by: None,
                    ..found
                };
                self.found.entry(others).or_default()
            }
        };
        entry.count = entry.count.wrapping_add(sum.count);
        entry.amount = entry.amount.wrapping_add(sum.amount);
    }

    /// Reads what is in a run's folder; windows that count for nothing are left out.
    pub fn read(folder: &OwnFolder, entries: &[Entry]) -> io::Result<Self> {
        let mut values = Self::default();
        let kinds = kinds(entries);
        match foreign_file::open(&folder.file(VALUES)) {
            Ok(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                values.add_file(&bytes);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match foreign_file::open(&folder.file(WINDOWS)) {
            Ok(file) => values.add_windows(&file, entries, &kinds)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(values)
    }

    /// What was still in the tables when headcount was killed.
    fn add_windows(
        &mut self,
        file: &File,
        entries: &[Entry],
        kinds: &[KindOfTally],
    ) -> io::Result<()> {
        let is_vain = |number: u32| {
            let mut entries = entries.iter();
            entries.any(|it| matches!(it, Entry::Vain { window } if *window == number))
        };
        let count = file.metadata()?.len() / windows::STRIDE;
        for window in (0..count as u32).filter(|it| !is_vain(*it)) {
            let (generation, owner) = windows::state_of_tables(file, window)?;
            let is_stale = self
                .generations
                .get(&window)
                .is_some_and(|it| *it > generation);
            if is_stale {
                continue;
            }
            let meaning = Meaning {
                code: &|at| code_of(entries, owner, at),
                // Nobody can look now.
                piece: &|_| None,
            };
            for (tally, kind) in (0_u8..).zip(kinds) {
                let table = windows::read_any_table(file, window, tally, kind.is_program)?;
                for slot in slots(&table) {
                    self.add(slot.found(tally, *kind, &meaning), slot.sum);
                }
            }
        }
        Ok(())
    }

    /// What the file says, as far as it is whole.
    fn add_file(&mut self, bytes: &[u8]) {
        let mut from = Packed(bytes);
        while let Some(record) = from.bytes() {
            if self.add_record(&mut Packed(record)).is_none() {
                return;
            }
        }
    }

    fn add_record(&mut self, from: &mut Packed<'_>) -> Option<()> {
        match RecordKind::of(from.u8()?)? {
            RecordKind::Table => {
                let (window, generation) = (from.number()?, from.wide()?);
                self.generations.insert(window, generation);
            }
            RecordKind::Text => {
                let hash = from.u64()?;
                self.texts.insert(hash, from.bytes()?.to_vec());
                return Some(());
            }
            RecordKind::Piece => {
                let (number, module) = (from.number()?, from.number()?);
                let description = from.bytes()?.to_vec();
                let piece = Piece {
                    number,
                    module,
                    description,
                };
                self.pieces.insert(number, piece);
                return Some(());
            }
            RecordKind::Hits => {}
        }
        let found = from.many(|it| {
            let found = unpack(it)?;
            let (count, amount) = (it.wide()?, it.signed_wide()?);
            Some((found, Sum { count, amount }))
        });
        for (found, sum) in found? {
            self.add(found, sum);
        }
        Some(())
    }
}

/// What a record of the file is about.
#[derive(Clone, Copy)]
#[repr(u8)]
enum RecordKind {
    /// A window's tables, which were emptied.
    Table,
    /// A text.
    Text,
    /// Breakpoints, or what was taken out of tables.
    Hits,
    /// A piece of an interpreted program.
    Piece,
}

impl RecordKind {
    fn of(number: u8) -> Option<Self> {
        [Self::Table, Self::Text, Self::Hits, Self::Piece]
            .get(usize::from(number))
            .copied()
    }
}

/// What is added to the file when the tables of a window are emptied.
pub fn of_tables(window: u32, generation: u64, found: &[(Found, Sum)]) -> Vec<u8> {
    let mut body = body(RecordKind::Table);
    body.number(window as usize);
    body.wide(generation);
    put_found(&mut body, found);
    record(&body)
}

/// What is added to it when breakpoints were met.
pub fn of_hits(found: &[(Found, Sum)]) -> Vec<u8> {
    let mut body = body(RecordKind::Hits);
    put_found(&mut body, found);
    record(&body)
}

/// What is added to it when a text is met for the first time.
pub fn of_text(hash: u64, text: &[u8]) -> Vec<u8> {
    let mut body = body(RecordKind::Text);
    body.0.extend(hash.to_le_bytes());
    body.bytes(text);
    record(&body)
}

/// What is added to it when a piece of an interpreted program is met for the first time.
pub fn of_piece(piece: &Piece) -> Vec<u8> {
    let mut body = body(RecordKind::Piece);
    body.number(piece.number as usize);
    body.number(piece.module as usize);
    body.bytes(&piece.description);
    record(&body)
}

fn body(kind: RecordKind) -> Packer {
    Packer(vec![kind as u8])
}

fn record(body: &Packer) -> Vec<u8> {
    let mut to = Packer::default();
    to.bytes(&body.0);
    to.0
}

fn put_found(to: &mut Packer, found: &[(Found, Sum)]) {
    to.many(found, |to, (found, sum)| {
        pack(to, found);
        to.wide(sum.count);
        to.signed_wide(sum.amount);
    });
}

fn pack(to: &mut Packer, it: &Found) {
    to.0.push(it.tally);
    to.number(it.place.into());
    match it.key {
        FoundKey::Number(number) => {
            to.0.push(0);
            to.signed_wide(number);
        }
        FoundKey::Code(at) => {
            to.0.push(1);
            pack_code(to, at);
        }
        FoundKey::Kind(kind) => to.0.extend([2, kind as u8]),
        FoundKey::Text(hash) => {
            to.0.push(3);
            to.0.extend(hash.to_le_bytes());
        }
        FoundKey::Piece(number, offset) => {
            to.0.push(4);
            to.number(number as usize);
            to.number(offset as usize);
        }
    }
    match it.by {
        None => to.0.push(0),
        Some(at) => {
            to.0.push(1);
            pack_code(to, at);
        }
    }
}

fn pack_code(to: &mut Packer, it: CodeAt) {
    match it {
        CodeAt::Elsewhere => to.number(0),
        CodeAt::Module(module, at) => {
            to.number(module as usize + 1);
            to.wide(at);
        }
    }
}

fn unpack(from: &mut Packed<'_>) -> Option<Found> {
    Some(Found {
        tally: from.u8()?,
        place: u16::try_from(from.number()?).ok()?,
        key: match from.u8()? {
            0 => FoundKey::Number(from.signed_wide()?),
            1 => FoundKey::Code(unpack_code(from)?),
            2 => FoundKey::Kind(KeyKind::of(from.u8()?)?),
            3 => FoundKey::Text(from.u64()?),
            _ => FoundKey::Piece(from.number()?, from.number()?),
        },
        by: match from.u8()? {
            0 => None,
            _ => Some(unpack_code(from)?),
        },
    })
}

fn unpack_code(from: &mut Packed<'_>) -> Option<CodeAt> {
    Some(match from.number()?.checked_sub(1) {
        None => CodeAt::Elsewhere,
        Some(module) => CodeAt::Module(module, from.wide()?),
    })
}

/// What the keys of the tallies of a run are.
fn kinds(entries: &[Entry]) -> Vec<KindOfTally> {
    let kinds = entries.iter().filter_map(|entry| match entry {
        Entry::Tally {
            by_caller,
            is_targets,
            is_text,
            is_program,
            ..
        } => Some(KindOfTally {
            is_targets: *is_targets,
            is_text: *is_text,
            by_caller: *by_caller,
            is_program: *is_program,
        }),
        _ => None,
    });
    kinds.collect()
}

/// The module that a process had at an address when it was last heard of: the nearest one below, for
/// nothing else is known of a process whose headcount was killed.
fn code_of(entries: &[Entry], pid: u64, at: u64) -> CodeAt {
    let loaded = entries.iter().filter_map(|entry| match entry {
        Entry::Loaded {
            pid: of,
            module,
            bias,
        } if u64::from(*of) == pid && *bias <= at => Some((*bias, *module)),
        _ => None,
    });
    match loaded.max_by_key(|it| it.0) {
        Some((bias, module)) => CodeAt::Module(module as u32, at - bias),
        None => CodeAt::Elsewhere,
    }
}
