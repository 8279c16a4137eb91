//! Counters that nobody keeps: programs that run without an operating system count in ordinary
//! memory. They are read from that memory: of a process, of a core dump, of a machine's dump; or
//! the program writes them out as it likes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use headcount_model::LinkAddr;
use headcount_monitor::foreign_file;
use headcount_wire::MEMORY_SECTION;
use object::elf::{NT_FILE, NT_PRPSINFO, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection};

use crate::counters::{Counters, ProcessKey, Thread};
use crate::module::CountedModule;

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

/// Adds to what was found what modules counted in ordinary memory.
pub struct Reader<'m> {
    /// The memory.
    pub memory: &'m dyn Memory,
    /// The process that it belongs to, if it is one's.
    pub process: ProcessKey,
    /// When it was as it is, in nanoseconds since 1970.
    pub time: u64,
}

impl Reader<'_> {
    /// Of the files that are mapped.
    pub fn mapped(&self, files: &[MappedFile], found: &mut Vec<Result<Counters>>) -> Result<()> {
        let mut known: Vec<&Path> = Vec::new();
        for file in files {
            if known.contains(&file.path.as_path()) {
                continue;
            }
            known.push(&file.path);
            if let Some(module) = counted_in_memory(&file.path)? {
                let bias = bias(&file.path, file).unwrap_or(0);
                found_in(found, &module, self.read(&module, bias)?, self);
            }
        }
        Ok(())
    }

    /// Of a program that was not moved: a kernel, say.
    pub fn program(&self, path: &Path, found: &mut Vec<Result<Counters>>) -> Result<()> {
        let is_known = |it: &Result<Counters>| it.as_ref().is_ok_and(|it| !it.memory.is_empty());
        if found.iter().any(is_known) {
            return Ok(());
        }
        if let Some(module) = counted_in_memory(path)? {
            found_in(found, &module, self.read(&module, 0)?, self);
        }
        Ok(())
    }

    fn read(&self, module: &CountedModule, bias: u64) -> Result<Vec<u64>> {
        let mut all = Vec::new();
        for (address, count) in &module.memory {
            let bytes = self
                .memory
                .read(address.0.wrapping_add(bias), count * 8)
                .or_else(|| {
                    self.memory
                        .read_physical(physical(module, *address)?, count * 8)
                });
            let bytes = bytes.with_context(|| {
                format!(
                    "{}: its counters at {address} are not in the memory that was read",
                    module.module.path
                )
            })?;
            all.extend(words(&bytes));
        }
        Ok(all)
    }
}

/// Counts that a program wrote out itself: the bytes of the section.
pub fn written_out(dump: &Path, program: &Path, time: u64) -> Result<Counters> {
    let name = dump.display();
    let bytes = foreign_file::bytes(dump).with_context(|| format!("{name}: cannot be read"))?;
    let bytes: &[u8] = (*bytes).as_ref();
    let module = counted_in_memory(program)?.with_context(|| {
        format!(
            "{}: does not count in ordinary memory; compile it with -ffreestanding, by `headcount cc`",
            program.display()
        )
    })?;
    let section = section_of(program)?
        .with_context(|| format!("{}: has no section {MEMORY_SECTION}", program.display()))?;
    if bytes.len() as u64 != section.end - section.start {
        bail!(
            "{name}: has {} bytes, but the counters of {} are {}: write out all from \
             __start_{MEMORY_SECTION} to __stop_{MEMORY_SECTION}",
            bytes.len(),
            program.display(),
            section.end - section.start
        );
    }
    let mut all = Vec::new();
    for (address, count) in &module.memory {
        let offset = address.0.checked_sub(section.start).map(|it| it as usize);
        let piece = offset.and_then(|it| bytes.get(it..it + count * 8));
        all.extend(words(piece.context("a counter outside its section")?));
    }
    let reader = Reader {
        memory: &Nothing,
        process: ProcessKey::default(),
        time,
    };
    Ok(alone(&module, all, &reader))
}

struct Nothing;

impl Memory for Nothing {
    fn read(&self, _address: u64, _bytes: usize) -> Option<Vec<u8>> {
        None
    }
}

/// A module that counts in ordinary memory, if this is one.
fn counted_in_memory(path: &Path) -> Result<Option<CountedModule>> {
    let Ok(bytes) = foreign_file::bytes(path) else {
        return Ok(None);
    };
    let bytes: &[u8] = (*bytes).as_ref();
    let is_counted = object::File::parse(bytes)
        .is_ok_and(|it| it.section_by_name(headcount_wire::MAP_SECTION).is_some());
    if !is_counted {
        return Ok(None);
    }
    let module = CountedModule::from_bytes(path, bytes)?;
    Ok(Some(module).filter(|it| !it.memory.is_empty()))
}

fn section_of(path: &Path) -> Result<Option<std::ops::Range<u64>>> {
    let bytes = foreign_file::bytes(path)?;
    let file = object::File::parse((*bytes).as_ref())?;
    let section = file.section_by_name(MEMORY_SECTION);
    Ok(section.map(|it| it.address()..it.address() + it.size()))
}

/// How far a file was moved when it was mapped.
fn bias(path: &Path, mapped: &MappedFile) -> Option<u64> {
    let bytes = foreign_file::bytes(path).ok()?;
    let elf = ElfFile64::<Endianness>::parse((*bytes).as_ref()).ok()?;
    let endian = elf.endian();
    let mut segments = elf.elf_program_headers().iter();
    segments.find_map(|it| {
        let offset = it.p_offset(endian);
        let is_it = it.p_type(endian) == PT_LOAD && offset & !0xfff == mapped.offset;
        let start = it.p_vaddr(endian).wrapping_sub(offset & 0xfff);
        is_it.then(|| mapped.start.wrapping_sub(start))
    })
}

/// Where something is without a page table, as the linker was told.
fn physical(module: &CountedModule, address: LinkAddr) -> Option<u64> {
    let bytes = foreign_file::bytes(Path::new(&module.module.path)).ok()?;
    let elf = ElfFile64::<Endianness>::parse((*bytes).as_ref()).ok()?;
    let endian = elf.endian();
    let mut segments = elf.elf_program_headers().iter();
    segments.find_map(|it| {
        let offset = address.0.checked_sub(it.p_vaddr(endian))?;
        let is_there = it.p_type(endian) == PT_LOAD && offset < it.p_memsz(endian);
        is_there.then(|| it.p_paddr(endian).wrapping_add(offset))
    })
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks_exact(8);
    words.map(|it| u64::from_le_bytes(it.try_into().unwrap_or_default()))
}

/// Adds counts to those of the same module that the runtime kept, if it did.
fn found_in(
    found: &mut Vec<Result<Counters>>,
    module: &CountedModule,
    memory: Vec<u64>,
    reader: &Reader,
) {
    let same = found.iter_mut().flatten().find(|it| {
        it.fingerprint == module.fingerprint && it.count == module.counters && it.memory.is_empty()
    });
    match same {
        Some(kept) => kept.memory = memory,
        None => found.push(Ok(alone(module, memory, reader))),
    }
}

fn alone(module: &CountedModule, memory: Vec<u64>, reader: &Reader) -> Counters {
    let path = &module.module.path;
    // Who reads the same memory twice finds the same run.
    let mut id = blake3::Hasher::new();
    id.update(&module.fingerprint.to_le_bytes());
    id.update(&reader.process.pid.to_le_bytes());
    memory
        .iter()
        .for_each(|it| _ = id.update(&it.to_le_bytes()));
    let mut name = [0; 16];
    name.copy_from_slice(&id.finalize().as_bytes()[..16]);
    Counters {
        id: name,
        fingerprint: module.fingerprint,
        module: path.into(),
        command: vec![path.clone()],
        process: reader.process,
        created: reader.time,
        count: module.counters,
        threads: vec![Thread {
            process: reader.process,
            tid: reader.process.pid,
            ended: true,
        }],
        memory,
        ..Counters::default()
    }
}
