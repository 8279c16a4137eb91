//! Where is the debug information?

use std::borrow::Cow;
use std::sync::Arc;

use gimli::{DwarfSections, EndianSlice, LittleEndian, SectionId};
use object::{CompressedData, CompressionFormat, Object, ObjectSection};

use crate::layout::Elf;

/// Debug information that is kept in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted<'a> {
    /// The file with this build-id (`/usr/lib/debug/.build-id/ab/cdef….debug`, debuginfod).
    BuildId(&'a [u8]),
    /// The file with this name, beside the program or in its folder `.debug`.
    DebugLink {
        /// Its name.
        name: &'a str,
        /// The checksum that its bytes must have.
        crc: u32,
    },
    /// What several files of debug information share (`.gnu_debugaltlink`, as dwz makes it).
    Alt {
        /// Its path.
        name: &'a str,
        /// Its build-id.
        build_id: &'a [u8],
    },
    /// The split part of one unit (`-gsplit-dwarf`).
    SplitUnit {
        /// Its path.
        name: &'a str,
        /// What the path is relative to.
        comp_dir: &'a str,
        /// Names the unit.
        dwo_id: u64,
    },
    /// The split parts of all units in one file: the program's path with `.dwp` behind it.
    Package,
}

/// Answers with the bytes of the file that is wanted, if there is one.
pub type Find<'f> = dyn FnMut(Wanted<'_>) -> Option<FileBytes> + 'f;

/// The bytes of a file, kept for as long as they are needed: a vector, or a mapping of the file.
pub type FileBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

pub type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub type Sections<'a> = DwarfSections<Cow<'a, [u8]>>;

/// Whether a file tells about lines itself.
fn has_debug_info(elf: &Elf<'_>) -> bool {
    let names = [".debug_info", ".zdebug_info", ".debug_line"];
    names.iter().any(|name| elf.section_by_name(name).is_some())
}

/// The file that the debug information of this one was moved to, if it was.
pub fn separate(elf: &Elf<'_>, find: &mut Find<'_>) -> Option<FileBytes> {
    if has_debug_info(elf) {
        return None;
    }
    let usable = |bytes: &FileBytes| Elf::parse((**bytes).as_ref()).is_ok();
    if let Ok(Some(id)) = elf.build_id()
        && let Some(bytes) = find(Wanted::BuildId(id)).filter(usable)
    {
        let same = Elf::parse((*bytes).as_ref())
            .is_ok_and(|other| other.build_id().ok().flatten() == Some(id));
        if same {
            return Some(bytes);
        }
    }
    let (name, crc) = elf.gnu_debuglink().ok()??;
    let name = std::str::from_utf8(name).ok()?;
    let bytes = find(Wanted::DebugLink { name, crc })?;
    (usable(&bytes) && checksum((*bytes).as_ref()) == crc).then_some(bytes)
}

/// The file with what this one shares with others.
pub fn shared(elf: &Elf<'_>, find: &mut Find<'_>) -> Option<FileBytes> {
    let (name, build_id) = elf.gnu_debugaltlink().ok()??;
    let name = std::str::from_utf8(name).ok()?;
    find(Wanted::Alt { name, build_id })
}

/// How many times larger debug information may be when it is unpacked; and how large in any case. (Of
/// real programs it is up to ten times as large.)
const MOST_GROWTH: u64 = 32;
const ALWAYS_FINE: u64 = 64 << 20;

/// How many bytes the sections of a file unpack to, if that is more than can be true.
pub fn unpacks_to_too_much(elf: &Elf<'_>) -> Option<u64> {
    let sections = elf.sections().filter_map(|it| it.compressed_data().ok());
    let packed: Vec<_> = sections
        .filter(|it| it.format != CompressionFormat::None)
        .collect();
    let size = |it: &CompressedData| it.uncompressed_size;
    let unpacked = packed.iter().map(size).fold(0, u64::saturating_add);
    // Not the file's: that may be mostly a hole.
    let bytes: u64 = packed.iter().map(|it| it.data.len() as u64).sum();
    let most = bytes.saturating_mul(MOST_GROWTH).max(ALWAYS_FINE);
    (unpacked > most).then_some(unpacked)
}

/// The sections of DWARF in a file. One that cannot be decompressed counts as absent.
pub fn sections<'a>(elf: &Elf<'a>) -> Sections<'a> {
    let load = |id: SectionId| Ok::<_, gimli::Error>(section(elf, id.name()));
    DwarfSections::load(load).unwrap_or_default()
}

/// The same of a file of split units.
pub fn split_sections<'a>(elf: &Elf<'a>) -> Sections<'a> {
    let load = |id: SectionId| {
        let name = id.dwo_name();
        Ok::<_, gimli::Error>(name.map_or_else(Cow::default, |name| section(elf, name)))
    };
    DwarfSections::load(load).unwrap_or_default()
}

pub fn section<'a>(elf: &Elf<'a>, name: &str) -> Cow<'a, [u8]> {
    let unpacked = |packed: CompressedData<'a>| match packed.format {
        CompressionFormat::None => packed.decompress().ok(),
        _ if unpacks_to_too_much(elf).is_some() => None,
        _ => packed.decompress().ok(),
    };
    let section = elf.section_by_name(name);
    section
        .and_then(|section| unpacked(section.compressed_data().ok()?))
        .unwrap_or_default()
}

/// The CRC-32 of a `.gnu_debuglink`.
fn checksum(bytes: &[u8]) -> u32 {
    let mut table = [0u32; 256];
    for (value, entry) in (0u32..).zip(&mut table) {
        *entry = (0..8).fold(value, |rest, _| {
            let carry = if rest & 1 == 1 { 0xedb8_8320 } else { 0 };
            (rest >> 1) ^ carry
        });
    }
    !bytes.iter().fold(!0u32, |sum, byte| {
        let index = (sum ^ u32::from(*byte)) & 0xff;
        (sum >> 8) ^ table.get(index as usize).copied().unwrap_or_default()
    })
}
