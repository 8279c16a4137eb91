//! The memory of a program, of a process that runs or of a core dump, and the counts that it holds.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use headcount_monitor::foreign_file;
use headcount_wire::FILE_SUFFIX;
use object::elf::{NT_FILE, NT_PRPSINFO, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object};

use crate::counters::{self, Counters, ProcessKey};
use crate::ordinary_memory::Reader;

/// The counts of a process that is running now: from its counter files, or from its memory where
/// it could not make any, or lost them.
pub fn running(pid: u32) -> Result<Vec<Result<Counters>>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))
        .with_context(|| format!("process {pid}: cannot be looked at (is it there, and yours?)"))?;
    let mut files: Vec<PathBuf> = Vec::new();
    let mut memory: Vec<Range<u64>> = Vec::new();
    let mut lost = false;
    let mut mapped = Vec::new();
    for mapping in maps.lines().filter_map(Mapping::parse) {
        mapped.extend(mapping.file());
        let file = mapping.path.filter(|path| path.ends_with(FILE_SUFFIX));
        match file {
            Some(path) if !mapping.deleted => files.push(path.into()),
            Some(_) => {
                lost = true;
                memory.push(mapping.range);
            }
            None if mapping.path.is_none() && mapping.permissions == "rw-p" => {
                memory.push(mapping.range);
            }
            None => {}
        }
    }
    files.sort();
    files.dedup();
    let mut found: Vec<_> = files.iter().map(|path| Counters::read(path)).collect();
    if found.is_empty() || lost {
        let pieces = memory_of(pid, &memory)?;
        found.extend(counters::in_memory(
            pieces.iter().map(Vec::as_slice),
            Path::new(&format!("process {pid}")),
            &numbers_of(pid),
        ));
    }
    let memory = format!("/proc/{pid}/mem");
    let memory = File::open(&memory).with_context(|| format!("{memory}: cannot be read"))?;
    let reader = Reader {
        memory: &OfProcess(memory),
        process: process_of(&found).unwrap_or_else(|| ProcessKey::of(pid)),
        time: UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64,
    };
    reader.mapped(&mapped, &mut found);
    if found.is_empty() {
        bail!("process {pid}: counts nothing; is it built with `headcount cc`?");
    }
    Ok(found)
}

/// The counts that a core dump holds; of the files that were mapped, and of the program.
pub fn from_core(path: &Path, program: Option<&Path>) -> Result<Vec<Result<Counters>>> {
    let name = path.display();
    let bytes = foreign_file::mapped(path);
    let bytes = bytes.with_context(|| format!("{name}: cannot be read"))?;
    let core = Core::parse((*bytes).as_ref())
        .with_context(|| format!("{name}: is no core dump (or was cut off)"))?;
    let pid = core.pid();
    let mut found = counters::in_memory(core.pieces(), path, pid.as_slice());
    let reader = Reader {
        memory: &core,
        process: process_of(&found).unwrap_or(ProcessKey {
            pid: pid.unwrap_or(0),
            start_ticks: 0,
        }),
        time: counters::modified(path),
    };
    reader.mapped(&core.files(), &mut found);
    if let Some(program) = program {
        reader.program(program, &mut found);
    }
    if found.is_empty() {
        bail!(
            "{name}: holds no counts; a program that could make a counter file keeps its counts there"
        );
    }
    // The dump stays where it is.
    for counters in found.iter_mut().flatten() {
        counters.origin = PathBuf::new();
    }
    Ok(found)
}

/// The process whose runtime left counts: what its other modules counted belongs to the same run.
fn process_of(found: &[Result<Counters>]) -> Option<ProcessKey> {
    found.iter().flatten().map(|it| it.process).next()
}

/// A file of which a part is mapped: from where in it, and to where.
pub struct MappedFile {
    /// Its path.
    pub path: PathBuf,
    /// Where in it the mapping begins.
    pub offset: u64,
    /// Address of the mapping.
    pub start: u64,
}

/// Memory of a program, by address.
pub trait Memory {
    /// So many bytes; `None` if they are not there.
    fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>>;
    /// The same, by the address that the memory has without a page table.
    fn read_physical(&self, _address: u64, _bytes: usize) -> Option<Vec<u8>> {
        None
    }
}

/// The memory of a process.
pub struct OfProcess(pub File);

impl Memory for OfProcess {
    fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut read = vec![0; bytes];
        self.0.read_exact_at(&mut read, address).ok()?;
        Some(read)
    }
}

/// A core dump: of a process, or of a whole machine.
pub struct Core<'d> {
    elf: ElfFile64<'d, Endianness>,
}

impl<'d> Core<'d> {
    /// Reads its headers.
    pub fn parse(bytes: &'d [u8]) -> Option<Self> {
        let elf = ElfFile64::parse(bytes).ok()?;
        (elf.kind() == object::ObjectKind::Core).then_some(Self { elf })
    }

    fn segments(&self) -> impl Iterator<Item = &'d object::elf::ProgramHeader64<Endianness>> {
        let all = self.elf.elf_program_headers().iter();
        all.filter(|it| it.p_type(self.elf.endian()) == PT_LOAD)
    }

    /// The pieces of memory that it holds.
    pub fn pieces(&self) -> impl Iterator<Item = &'d [u8]> {
        let (endian, data) = (self.elf.endian(), self.elf.data());
        self.segments()
            .filter_map(move |it| it.data(endian, data).ok())
    }

    /// Bytes of the segment whose start, as `start` says it, is at or below an address.
    fn bytes_at(
        &self,
        start: impl Fn(&object::elf::ProgramHeader64<Endianness>) -> u64,
        address: u64,
        bytes: usize,
    ) -> Option<Vec<u8>> {
        let (endian, data) = (self.elf.endian(), self.elf.data());
        self.segments().find_map(|segment| {
            let offset = usize::try_from(address.checked_sub(start(segment))?).ok()?;
            let data = segment.data(endian, data).ok()?;
            Some(data.get(offset..offset.checked_add(bytes)?)?.to_vec())
        })
    }

    /// What a note of this kind says.
    fn note(&self, kind: object::elf::NoteType) -> Option<&'d [u8]> {
        let (endian, data) = (self.elf.endian(), self.elf.data());
        let segments = self.elf.elf_program_headers().iter();
        let mut notes = segments.filter_map(|it| it.notes(endian, data).ok().flatten());
        notes.find_map(|mut notes| {
            while let Ok(Some(note)) = notes.next() {
                if note.n_type(endian) == kind {
                    return Some(note.desc());
                }
            }
            None
        })
    }

    /// The number of the process that dumped core.
    pub fn pid(&self) -> Option<u32> {
        // `struct elf_prpsinfo` (linux/elfcore.h): the number is at offset 24.
        let number = self.note(NT_PRPSINFO)?.get(24..28)?;
        Some(u32::from_le_bytes(number.try_into().ok()?))
    }

    /// The files that the process had mapped (`fill_files_note` in the kernel's `binfmt_elf.c`).
    pub fn files(&self) -> Vec<MappedFile> {
        let note = self.note(NT_FILE).unwrap_or_default();
        let word = |at: usize| -> Option<u64> {
            let bytes = note.get(at.checked_mul(8)?..)?.get(..8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let (Some(count), Some(page)) = (word(0), word(1)) else {
            return Vec::new();
        };
        let count = usize::try_from(count).unwrap_or(0).min(note.len() / 24);
        let names = note.get((2 + 3 * count) * 8..).unwrap_or_default();
        let names = names.split(|byte| *byte == 0);
        (0..count)
            .zip(names)
            .filter_map(|(number, name)| {
                Some(MappedFile {
                    path: PathBuf::from(String::from_utf8_lossy(name).into_owned()),
                    start: word(2 + 3 * number)?,
                    offset: word(4 + 3 * number)?.checked_mul(page)?,
                })
            })
            .collect()
    }
}

impl Memory for Core<'_> {
    fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        self.bytes_at(|it| it.p_vaddr(self.elf.endian()), address, bytes)
    }

    fn read_physical(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        self.bytes_at(|it| it.p_paddr(self.elf.endian()), address, bytes)
    }
}

/// A line of `/proc/PID/maps`.
pub struct Mapping<'a> {
    range: Range<u64>,
    offset: u64,
    permissions: &'a str,
    /// The file, or `[heap]` and the like.
    path: Option<&'a str>,
    deleted: bool,
}

impl<'a> Mapping<'a> {
    /// Reads it.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let offset = rest.split(' ').nth(1).and_then(number)?;
        // Rights, offset, device and inode come before it.
        let path = rest.find(['/', '[']).map(|at| &rest[at..]);
        let alive = path.map(|path| path.strip_suffix(" (deleted)").unwrap_or(path));
        Some(Self {
            range: number(start)?..number(end)?,
            offset,
            permissions: rest.get(..4)?,
            path: alive,
            deleted: alive != path,
        })
    }
}

impl Mapping<'_> {
    /// The file that is mapped, if it still is where it was.
    fn file(&self) -> Option<MappedFile> {
        let path = self
            .path
            .filter(|path| path.starts_with('/') && !self.deleted)?;
        Some(MappedFile {
            path: path.into(),
            offset: self.offset,
            start: self.range.start,
        })
    }
}

/// The numbers that a process has, in its pid namespace and those around it.
fn numbers_of(pid: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let mut numbers: Vec<u32> = numbers
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect();
    numbers.push(pid);
    numbers
}

/// Whatever looks like a header or a slot in the memory of a process.
fn memory_of(pid: u32, ranges: &[Range<u64>]) -> Result<Vec<Vec<u8>>> {
    let path = format!("/proc/{pid}/mem");
    let memory = File::open(&path).with_context(|| format!("{path}: cannot be read"))?;
    // The program may own more memory than we do: look at a little at a time.
    const CHUNK: u64 = 16 << 20;
    let mut chunk = vec![0; CHUNK as usize];
    let mut pieces = Vec::new();
    for range in ranges {
        for start in range.clone().step_by(CHUNK as usize) {
            let bytes = &mut chunk[..CHUNK.min(range.end - start) as usize];
            if memory.read_exact_at(bytes, start).is_err() {
                continue;
            }
            for (offset, length) in counters::finds(bytes) {
                let from = start + offset as u64;
                let mut piece = vec![0; length.min(range.end - from) as usize];
                if memory.read_exact_at(&mut piece, from).is_ok() {
                    pieces.push(piece);
                }
            }
        }
    }
    Ok(pieces)
}
