//! What does Go's own table call this code?
//!
//! A Go program carries a table of its functions, with which its runtime walks stacks. It is there
//! even in a program that was stripped of everything else. It consists of
//!
//! - a header: which edition of the table this is, how many functions there are, and where the
//!   other parts begin;
//! - the list of functions, by address: where each begins, and where its record is;
//! - the records: a function's address again, its name, and its lists of what holds from which of
//!   its instructions on;
//! - the names and the lists, which functions share.
//!
//! This is what Go's folder `src/runtime` calls `pcHeader`, `functab`, `_func` and `moduledata`. It
//! was held against the symbols of programs by Go 1.19, and against code by Go 1.22 to 1.25; other
//! editions have only been seen in imitations.

use memchr::{memchr, memmem};

use object::Object;

use crate::image::Image;
use crate::layout::parse;

/// A function, as the table has it.
#[derive(Clone, Copy, Debug)]
pub struct GoFunction<'a> {
    pub at: u64,
    /// 0 if the table does not tell: of C that is linked into the program it has the names only.
    pub size: u64,
    pub name: &'a str,
}

/// The table, as far as it tells of functions.
pub struct GoTable<'i, 'a> {
    image: &'i Image<'a>,
    /// How many bytes it has at most.
    length: usize,
    functions: usize,
    /// What the addresses in it count from. Without it they are whole, as before Go 1.18.
    text: Option<u64>,
    /// What places of records count from, and where that is.
    records: &'a [u8],
    records_at: u64,
    /// Where in `records` the list of functions is.
    list: usize,
    names: &'a [u8],
    lists: &'a [u8],
}

/// Has a compiler of Go made a file? Its functions are called in a way of their own.
pub fn is_of_go(bytes: &[u8]) -> bool {
    let signs = [".gopclntab", ".go.buildinfo", ".note.go.buildid"];
    parse(bytes).is_ok_and(|elf| signs.iter().any(|it| elf.section_by_name(it).is_some()))
}

/// One of the list of functions.
struct Entry {
    at: u64,
    /// Where the next function begins, or all of them end.
    next: u64,
    record: usize,
}

impl<'i, 'a> GoTable<'i, 'a> {
    pub fn of(image: &'i Image<'a>) -> Option<Self> {
        let names = [".gopclntab", ".data.rel.ro.gopclntab"];
        let alone = image.data().find(|piece| names.contains(&piece.name));
        match alone {
            Some(piece) => Self::at(image, piece.start, piece.bytes),
            None => Self::among_others(image),
        }
    }

    /// The table of a program that can be moved and that another linker than Go's has made: it lies
    /// among everything else that the loader makes read-only.
    fn among_others(image: &'i Image<'a>) -> Option<Self> {
        // What tables begin with, behind the byte that tells the edition.
        const BEGINNING: &[u8] = &[0xff, 0xff, 0xff, 0, 0, 1, 8];
        let signs = [".go.buildinfo", ".note.go.buildid"];
        image.data().find(|piece| signs.contains(&piece.name))?;
        let piece = image.data().find(|piece| piece.name == ".data.rel.ro")?;
        memmem::find_iter(piece.bytes, BEGINNING).find_map(|found| {
            let offset = found.checked_sub(1)?;
            let at = piece.start.checked_add(offset as u64)?;
            Self::at(image, at, piece.bytes.get(offset..)?)
        })
    }

    /// The table that begins here, if one does.
    fn at(image: &'i Image<'a>, at: u64, bytes: &'a [u8]) -> Option<Self> {
        // The edition, two zeros, the size of the least instruction, the size of an address.
        let [edition, 0xff, 0xff, 0xff, 0, 0, 1, 8, ..] = bytes else {
            return None;
        };
        let word = |index: usize| {
            let word = bytes.get(8 + index * 8..)?.first_chunk()?;
            usize::try_from(u64::from_le_bytes(*word)).ok()
        };
        let (names, lists, records, list) = match edition {
            // Go 1.2. Everything counts from the beginning.
            0xfb => (0, 0, 0, 16),
            // Go 1.16.
            0xfa => (word(2)?, word(5)?, word(6)?, 0),
            // Go 1.18 and Go 1.20.
            0xf0 | 0xf1 => (word(3)?, word(6)?, word(7)?, 0),
            _ => return None,
        };
        let mut table = Self {
            image,
            length: bytes.len(),
            functions: word(0)?,
            text: None,
            records: bytes.get(records..)?,
            records_at: at.checked_add(records as u64)?,
            list,
            names: bytes.get(names..)?,
            lists: bytes.get(lists..)?,
        };
        if matches!(edition, 0xf0 | 0xf1) {
            table.text = Some(table.text(at.checked_add(24)?)?);
        }
        let last = table.functions.checked_sub(1)?;
        let is_whole = table.entry(0).is_some() && table.entry(last).is_some();
        is_whole.then_some(table)
    }

    /// What addresses count from. `stated` is where the header says it.
    fn text(&self, stated: u64) -> Option<u64> {
        let stated = self.image.address(stated)?.0;
        if stated != 0 {
            return Some(stated);
        }
        // Since Go 1.26 only the runtime's facts about the program tell. Nothing but their order
        // tells them apart, and that may change: they must agree on where the first function is.
        let mut data = self.image.data();
        let facts = data.find(|piece| piece.name == ".go.module")?.start;
        let fact = |index: u64| Some(self.image.address(facts.checked_add(index * 8)?)?.0);
        let (first, text) = (fact(20)?, fact(22)?);
        let first_offset = number(self.records, self.list)?;
        (text.checked_add(first_offset.into())? == first).then_some(text)
    }

    /// Shows every function but those that begin at one of these places, which are in order.
    pub fn each_besides(&self, known: &[u64], show: &mut dyn FnMut(GoFunction<'a>)) {
        // Names and lists are shared, but not by so many functions that this would be too little.
        let mut budget = self.length.saturating_mul(4);
        for index in 0..self.functions {
            let entry = self.entry(index);
            let Some(entry) = entry.filter(|it| known.binary_search(&it.at).is_err()) else {
                continue;
            };
            let Some(name) = self.name(&entry, &mut budget) else {
                return;
            };
            let size = self.size(&entry, &mut budget);
            let name = std::str::from_utf8(name).unwrap_or_default();
            if !name.is_empty() {
                show(GoFunction {
                    at: entry.at,
                    size: size.unwrap_or(0),
                    name,
                });
            }
        }
    }

    /// Where functions go on whose panic was recovered from: at a call of what runs the deferred
    /// functions that remain. A record tells how far that is behind the function's start. (Before
    /// Go 1.12 there was another number in its place, so it must lead to a call.)
    pub fn recoveries(&self) -> impl Iterator<Item = u64> {
        const CALL: u8 = 0xe8;
        let entries = (0..self.functions).filter_map(|index| self.entry(index));
        entries.filter_map(|it| {
            let place = it.record.checked_add(self.width() + 8)?;
            let distance = number(self.records, place).filter(|it| *it != 0)?;
            let at = it.at.checked_add(distance.into())?;
            let is_call = || self.image.from(at)?.first().map(|it| *it == CALL);
            (at < it.next && is_call() == Some(true)).then_some(at)
        })
    }

    /// An entry of the list of functions, if it has a record. Where others put code between that of
    /// Go, there is an entry without.
    fn entry(&self, index: usize) -> Option<Entry> {
        let width = self.width();
        let place = self.list.checked_add(index.checked_mul(2 * width)?)?;
        let at = self.address(place)?;
        let next = self.address(place.checked_add(2 * width)?)?;
        // The upper half of one that has eight bytes is zero.
        let record = number(self.records, place.checked_add(width)?)? as usize;
        let is_one = self.address(record)? == at && self.image.is_code(at);
        is_one.then_some(Entry { at, next, record })
    }

    /// The address of code that stands at a place in `records`.
    fn address(&self, place: usize) -> Option<u64> {
        match self.text {
            Some(text) => text.checked_add(number(self.records, place)?.into()),
            None => {
                let at = self.records_at.checked_add(place as u64)?;
                Some(self.image.address(at)?.0)
            }
        }
    }

    /// How many bytes an address has in the table.
    fn width(&self) -> usize {
        if self.text.is_some() { 4 } else { 8 }
    }

    /// What a function is called. Nothing if finding out takes too long.
    fn name(&self, entry: &Entry, budget: &mut usize) -> Option<&'a [u8]> {
        let place = entry.record.checked_add(self.width())?;
        let name = self.names.get(number(self.records, place)? as usize..)?;
        let name = name.get(..name.len().min(*budget))?;
        let name = name.get(..memchr(0, name)?)?;
        *budget -= name.len();
        Some(name)
    }

    /// How many bytes a function has. One of its lists tells how far it has moved the stack
    /// pointer, and that from its first byte to its last.
    ///
    /// Up to the next function there is padding, which cannot be told from code: it is made of
    /// `0xcc`, and jumps that are as long as that end in the same byte.
    fn size(&self, entry: &Entry, budget: &mut usize) -> Option<u64> {
        let place = entry.record.checked_add(self.width() + 12)?;
        let list = number(self.records, place)? as usize;
        if list == 0 {
            return None;
        }
        let list = self.lists.get(list..)?;
        let mut rest = list.get(..list.len().min(*budget))?;
        let before = rest.len();
        let size = covered(&mut rest);
        *budget -= before - rest.len();
        let gap = entry.next.checked_sub(entry.at)?;
        size.filter(|size| *size <= gap)
    }
}

/// How many bytes of code a list covers. It has two numbers for each part of them: how much the
/// value differs from the one before, and how many bytes have it. Where it does not differ, and
/// this is not the first, the list ends.
fn covered(list: &mut &[u8]) -> Option<u64> {
    let mut bytes = 0;
    loop {
        let differs = packed(list)? != 0;
        if !differs && bytes > 0 {
            return Some(bytes);
        }
        bytes = packed(list)?.saturating_add(bytes);
    }
}

/// A number of up to five bytes; the last has its highest bit clear.
fn packed(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The four bytes at a place.
fn number(bytes: &[u8], place: usize) -> Option<u32> {
    let bytes = bytes.get(place..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}
