//! Which bytes are at this address?

use std::ops::Range;

use headcount_model::LinkAddr;
use object::elf;
use object::read::elf::SectionHeader;
use object::{Object, ObjectSection};

use crate::layout::{Elf, LITTLE, Layout};
use crate::relocations::Relocations;

/// The bytes of a module by their link addresses, as they are once it is loaded.
pub struct Image<'a> {
    /// By address; none overlap.
    pieces: Vec<Piece<'a>>,
    pub relocations: Relocations,
}

/// Bytes that lie together.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub start: u64,
    pub bytes: &'a [u8],
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
        let relocations = Relocations::of(elf, &pieces);
        Self {
            pieces,
            relocations,
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
        self.piece(at).is_some_and(|piece| piece.executable)
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
            loaded.then_some(Piece {
                start: section.address(),
                bytes,
                executable: flags.contains(elf::SHF_EXECINSTR),
                name: section.name().unwrap_or_default(),
                entry_size: header.sh_entsize(LITTLE),
            })
        })
        .collect()
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
                executable: segment.executable,
                name: "",
                entry_size: 0,
            })
        })
        .filter(|piece| !piece.bytes.is_empty())
        .collect()
}
