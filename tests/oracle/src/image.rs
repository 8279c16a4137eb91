//! Where in a process is the code of its main executable?

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection, SectionFlags};

/// The main executable as it lies in one process.
#[derive(Clone, Debug)]
pub struct Image {
    /// The file.
    pub path: PathBuf,
    /// Where its code is, in load addresses.
    code: Vec<Range<u64>>,
    /// Load address less link address.
    bias: u64,
}

impl Image {
    /// Reads it from `/proc`.
    pub fn of(pid: Pid) -> io::Result<Self> {
        let path = fs::read_link(format!("/proc/{pid}/exe"))?;
        let bytes = fs::read(format!("/proc/{pid}/exe"))?;
        let elf = parse(&bytes)?;
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let mut code = Vec::new();
        let mut bias = None;
        for map in maps.lines().filter_map(Map::parse) {
            if map.executable && Path::new(map.path) == path {
                bias = bias.or_else(|| map.bias(&elf));
                code.push(map.addresses);
            }
        }
        let bias = bias.ok_or_else(|| broken("its code is not in memory"))?;
        Ok(Self { path, code, bias })
    }

    /// The link address of a load address, if that is code of ours.
    pub fn link_address(&self, address: u64) -> Option<u64> {
        let is_code = self.code.iter().any(|range| range.contains(&address));
        is_code.then(|| address.wrapping_sub(self.bias))
    }
}

fn parse(bytes: &[u8]) -> io::Result<ElfFile64<'_>> {
    ElfFile64::parse(bytes).map_err(io::Error::other)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A line of `/proc/PID/maps`.
struct Map<'a> {
    addresses: Range<u64>,
    executable: bool,
    offset: u64,
    path: &'a str,
}

impl<'a> Map<'a> {
    /// `55d0c1a4d000-55d0c1a4e000 r-xp 00001000 fe:00 1234      /usr/bin/true`
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = fields.next()?.split_once('-')?;
        let rights = fields.next()?;
        let offset = hex(fields.next()?)?;
        let path = fields.nth(2)?.trim_start();
        Some(Self {
            addresses: hex(start)?..hex(end)?,
            executable: rights.contains('x'),
            offset,
            path,
        })
    }

    /// Load address less link address, if the file has a segment here.
    fn bias(&self, elf: &ElfFile64<'_>) -> Option<u64> {
        let segment = elf.elf_program_headers().iter().find(|segment| {
            let start = segment.p_offset(Endianness::Little);
            let end = start.checked_add(segment.p_filesz(Endianness::Little));
            let here = self.offset..self.offset + (self.addresses.end - self.addresses.start);
            segment.p_type(Endianness::Little) == elf::PT_LOAD
                && segment.p_flags(Endianness::Little).contains(elf::PF_X)
                && start < here.end
                && end.is_some_and(|end| here.start < end)
        })?;
        let link_address = segment
            .p_vaddr(Endianness::Little)
            .wrapping_sub(segment.p_offset(Endianness::Little))
            .wrapping_add(self.offset);
        Some(self.addresses.start.wrapping_sub(link_address))
    }
}

/// The main executable with a trap in every byte of its code, so that a program can be left alone
/// until its own code is about to run for the first time. Before that, the dynamic linker takes
/// a hundred thousand steps (a million for C++), none of which are ours to count.
#[derive(Clone)]
pub struct Shut {
    pieces: Vec<(u64, Vec<u8>)>,
}

impl Shut {
    /// Puts the traps in. `None`: this executable had better be left as it is.
    ///
    /// Only right for a process with one thread that has executed nothing yet.
    pub fn new(pid: Pid, image: &Image) -> io::Result<Option<Self>> {
        let bytes = fs::read(format!("/proc/{pid}/exe"))?;
        let elf = parse(&bytes)?;
        if is_changed_by_its_linker(&elf) {
            return Ok(None);
        }
        let mut pieces = Vec::new();
        let memory = memory(pid)?;
        for section in elf.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                continue;
            };
            if !sh_flags.contains(elf::SHF_EXECINSTR) || section.size() == 0 {
                continue;
            }
            let start = section.address().wrapping_add(image.bias);
            let mut original = vec![0; section.size() as usize];
            memory.read_exact_at(&mut original, start)?;
            memory.write_all_at(&vec![INT3; original.len()], start)?;
            pieces.push((start, original));
        }
        Ok((!pieces.is_empty()).then_some(Self { pieces }))
    }

    /// Takes the traps out again.
    pub fn open(self, pid: Pid) -> io::Result<()> {
        let memory = memory(pid)?;
        for (start, original) in self.pieces {
            memory.write_all_at(&original, start)?;
        }
        Ok(())
    }
}

/// `int3`: one byte, and the next instruction's address is one further on when it is reported.
const INT3: u8 = 0xcc;

/// Whether the dynamic linker writes relocations into code: we would undo them.
fn is_changed_by_its_linker(elf: &ElfFile64<'_>) -> bool {
    let Ok(Some(entries)) = elf
        .elf_program_headers()
        .iter()
        .find_map(|segment| segment.dynamic(Endianness::Little, elf.data()).transpose())
        .transpose()
    else {
        return true; // statically linked: there is no dynamic linker to skip
    };
    entries.iter().any(|entry| {
        let tag = entry.d_tag(Endianness::Little);
        let flags = elf::DynamicFlags(entry.d_val(Endianness::Little));
        tag == elf::DT_TEXTREL || tag == elf::DT_FLAGS && flags.contains(elf::DF_TEXTREL)
    })
}

fn memory(pid: Pid) -> io::Result<File> {
    let path = format!("/proc/{pid}/mem");
    OpenOptions::new().read(true).write(true).open(path)
}

/// The bytes at an address, as many of `most` as can be read.
pub fn bytes_at(pid: Pid, address: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let read = memory(pid)?.read_at(&mut bytes, address)?;
    bytes.truncate(read);
    Ok(bytes)
}
