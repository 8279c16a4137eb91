//! Which bytes are at this address?

use std::ops::Range;
use std::sync::Arc;

use headcount_model::LinkAddr;
use headcount_model::packed::{Packed, Packer};
use object::elf;
use object::read::elf::SectionHeader;
use object::{Object, ObjectSection};

use crate::layout::{Elf, LITTLE, Layout};
use crate::relocations::{Relocations, SlotNames};

/// The bytes of a module by their link addresses, as they are once it is loaded.
pub struct Image<'a> {
    /// By address; none overlap.
    pieces: Vec<Piece<'a>>,
    /// All code lies in here, with other things perhaps.
    reach: Range<u64>,
    pub relocations: Arc<Relocations>,
    pub slot_names: SlotNames<'a>,
}

/// Which bytes of the file are where: an image without the bytes.
#[derive(Debug)]
pub struct Places {
    pieces: Vec<Place>,
    relocations: Arc<Relocations>,
}

#[derive(Debug)]
struct Place {
    start: u64,
    file: Range<usize>,
    executable: bool,
    name: String,
    entry_size: u64,
}

impl Places {
    /// The image again. `bytes` are those of the same file.
    pub fn image<'a>(&'a self, bytes: &'a [u8]) -> Image<'a> {
        let pieces = self.pieces.iter().map(|place| Piece {
            start: place.start,
            bytes: bytes.get(place.file.clone()).unwrap_or_default(),
            offset: place.file.start,
            executable: place.executable,
            name: &place.name,
            entry_size: place.entry_size,
        });
        Image::of(pieces.collect(), Arc::clone(&self.relocations))
    }

    /// Writes it down.
    pub fn pack(&self, to: &mut Packer) {
        to.many(&self.pieces, |to, place| {
            let numbers = [
                place.start,
                place.file.start as u64,
                place.file.end as u64,
                place.entry_size,
                place.executable.into(),
            ];
            to.column(numbers.into_iter());
            to.text(&place.name);
        });
        self.relocations.pack(to);
    }

    /// What [`Places::pack`] wrote.
    pub fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let pieces = from.many(|it| {
            let numbers = it.column()?;
            let [start, first, end, entry_size, executable] = *numbers.as_slice() else {
                return None;
            };
            Some(Place {
                start,
                file: usize::try_from(first).ok()?..usize::try_from(end).ok()?,
                executable: executable == 1,
                name: it.text()?,
                entry_size,
            })
        })?;
        Some(Self {
            pieces,
            relocations: Arc::new(Relocations::unpack(from)?),
        })
    }
}

/// Bytes that lie together.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub start: u64,
    pub bytes: &'a [u8],
    /// Where the bytes are in the file.
    pub offset: usize,
    pub executable: bool,
    /// The name of its section; empty if the file has no sections.
    pub name: &'a str,
    /// The size of one entry, where it is a table.
    pub entry_size: u64,
}

impl Piece<'_> {
    pub fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.bytes.len() as u64)
    }
}

impl<'a> Image<'a> {
    pub fn new(elf: &Elf<'a>, bytes: &'a [u8], layout: &Layout) -> Self {
        let mut pieces = sections(elf);
        pieces.retain(|piece| is_loaded(piece, layout));
        if !pieces.iter().any(|piece| piece.executable) {
            pieces.extend(segments(bytes, layout));
        }
        pieces.sort_by_key(|piece| piece.start);
        // Overlapping code would be counted twice, and costs a hostile file nothing.
        let mut end = 0;
        pieces.retain(|piece| {
            let fits = piece.start >= end;
            if fits {
                end = piece.range().end;
            }
            fits
        });
        let mut left = bytes.len();
        pieces.retain(|piece| {
            let fits = piece.bytes.len() <= left;
            left -= piece.bytes.len().min(left);
            fits
        });
        let relocations = Arc::new(Relocations::of(elf, &pieces));
        Self::of(pieces, relocations)
    }

    fn of(pieces: Vec<Piece<'a>>, relocations: Arc<Relocations>) -> Self {
        let code = || pieces.iter().filter(|piece| piece.executable);
        let first = code().next().map_or(0, |piece| piece.start);
        let end = code().next_back().map_or(0, |piece| piece.range().end);
        Self {
            pieces,
            reach: first..end,
            relocations,
            slot_names: SlotNames::default(),
        }
    }

    /// The same, and it knows what the slots are called that the loader fills.
    pub fn with_names(elf: &Elf<'a>, bytes: &'a [u8], layout: &Layout) -> Self {
        Self {
            slot_names: SlotNames::of(elf),
            ..Self::new(elf, bytes, layout)
        }
    }

    /// What it takes to make this image again.
    pub fn places(&self) -> Places {
        let pieces = self.pieces.iter().map(|piece| Place {
            start: piece.start,
            file: piece.offset..piece.offset.saturating_add(piece.bytes.len()),
            executable: piece.executable,
            name: piece.name.to_owned(),
            entry_size: piece.entry_size,
        });
        Places {
            pieces: pieces.collect(),
            relocations: Arc::clone(&self.relocations),
        }
    }

    /// All code, by address.
    pub fn code(&self) -> impl Iterator<Item = &Piece<'a>> {
        self.pieces.iter().filter(|piece| piece.executable)
    }

    /// All data, by address.
    pub fn data(&self) -> impl Iterator<Item = &Piece<'a>> {
        self.pieces.iter().filter(|piece| !piece.executable)
    }

    pub fn piece(&self, at: u64) -> Option<&Piece<'a>> {
        piece_at(&self.pieces, at)
    }

    pub fn is_code(&self, at: u64) -> bool {
        self.reach.contains(&at) && self.piece(at).is_some_and(|piece| piece.executable)
    }

    /// The bytes from `at` to the end of what lies together with it.
    pub fn from(&self, at: u64) -> Option<&'a [u8]> {
        bytes_from(&self.pieces, at)
    }

    pub fn get(&self, range: &Range<u64>) -> Option<&'a [u8]> {
        let length = range.end.checked_sub(range.start)?;
        self.from(range.start)?.get(..usize::try_from(length).ok()?)
    }

    /// A signed distance, as tables of them hold it.
    pub fn distance(&self, at: u64) -> Option<i32> {
        let bytes = self.from(at)?.first_chunk()?;
        Some(i32::from_le_bytes(*bytes))
    }

    /// An address, as the loader leaves it.
    pub fn address(&self, at: u64) -> Option<LinkAddr> {
        let relocated = self.relocations.address_at(at);
        relocated.or_else(|| word(&self.pieces, at)).map(LinkAddr)
    }
}

/// The eight bytes at an address.
pub fn word(pieces: &[Piece<'_>], at: u64) -> Option<u64> {
    let bytes = bytes_from(pieces, at)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

fn piece_at<'p, 'a>(pieces: &'p [Piece<'a>], at: u64) -> Option<&'p Piece<'a>> {
    let after = pieces.partition_point(|piece| piece.start <= at);
    let piece = pieces.get(after.checked_sub(1)?)?;
    piece.range().contains(&at).then_some(piece)
}

fn bytes_from<'a>(pieces: &[Piece<'a>], at: u64) -> Option<&'a [u8]> {
    let piece = piece_at(pieces, at)?;
    let offset = at.checked_sub(piece.start)?;
    piece.bytes.get(usize::try_from(offset).ok()?..)
}

fn sections<'a>(elf: &Elf<'a>) -> Vec<Piece<'a>> {
    elf.sections()
        .filter_map(|section| {
            let header = section.elf_section_header();
            let flags = header.sh_flags(LITTLE);
            let loaded = flags.contains(elf::SHF_ALLOC) && !flags.contains(elf::SHF_TLS);
            let bytes = section.data().ok().filter(|bytes| !bytes.is_empty())?;
            let (offset, _) = section.file_range()?;
            loaded.then_some(Piece {
                start: section.address(),
                bytes,
                offset: usize::try_from(offset).ok()?,
                executable: flags.contains(elf::SHF_EXECINSTR),
                name: section.name().unwrap_or_default(),
                entry_size: header.sh_entsize(LITTLE),
            })
        })
        .collect()
}

/// Is a piece loaded where its section says? What the loader goes by are the segments.
fn is_loaded(piece: &Piece<'_>, layout: &Layout) -> bool {
    layout.segments.iter().any(|segment| {
        let ahead = (piece.offset as u64).checked_sub(segment.file_offset);
        ahead.is_some_and(|ahead| {
            segment.address.0.checked_add(ahead) == Some(piece.start)
                && ahead.saturating_add(piece.bytes.len() as u64) <= segment.file_size
        })
    })
}

fn segments<'a>(bytes: &'a [u8], layout: &Layout) -> Vec<Piece<'a>> {
    layout
        .segments
        .iter()
        .filter_map(|segment| {
            let start = usize::try_from(segment.file_offset).ok()?;
            let end = start.checked_add(usize::try_from(segment.file_size).ok()?)?;
            Some(Piece {
                start: segment.address.0,
                bytes: bytes.get(start..end)?,
                offset: start,
                executable: segment.executable,
                name: "",
                entry_size: 0,
            })
        })
        .filter(|piece| !piece.bytes.is_empty())
        .collect()
}
