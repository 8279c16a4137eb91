//! Counters that nobody keeps: programs that run without an operating system count in ordinary
//! memory. They are read from that memory: of a process, of a core dump, of a machine's dump; or
//! the program writes them out as it likes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, bail};
use headcount_model::LinkAddr;
use headcount_monitor::foreign_file;
use headcount_wire::{MAP_SECTION, MEMORY_SECTION};
use object::elf::{PT_LOAD, PT_NOTE};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection};

use crate::counters::{Counters, ProcessKey, Thread};
use crate::module::CountedModule;
use crate::program_memory::{MappedFile, Memory};

/// A program that counts in ordinary memory: how it is loaded.
struct Program {
    module: CountedModule,
    /// Address and size of all its counters, where the linker left the section.
    section: Option<Range<u64>>,
    segments: Vec<Segment>,
    /// What is in its memory, where, and in no other build's.
    mark: Option<(u64, Vec<u8>)>,
}

/// A stretch of a file that is loaded.
struct Segment {
    offset: u64,
    address: u64,
    /// Where it is without a page table, as the linker was told.
    physical: u64,
    size: u64,
}

impl Program {
    /// Reads one; `None` if the file does not count in ordinary memory.
    fn read(path: &Path) -> Result<Option<Self>> {
        let Ok(bytes) = foreign_file::bytes(path) else {
            return Ok(None);
        };
        let bytes: &[u8] = (*bytes).as_ref();
        let Ok(elf) = ElfFile64::<Endianness>::parse(bytes) else {
            return Ok(None);
        };
        if elf.section_by_name(MAP_SECTION).is_none() {
            return Ok(None);
        }
        let module = CountedModule::from_bytes(path, bytes)?;
        if module.memory.is_empty() {
            return Ok(None);
        }
        let section = elf.section_by_name(MEMORY_SECTION);
        Ok(Some(Self {
            module,
            section: section.map(|it| it.address()..it.address() + it.size()),
            segments: segments(&elf),
            mark: mark(&elf),
        }))
    }

    /// How far it was moved when it was mapped: what is in memory must be this build.
    fn bias(&self, mapped: &[&MappedFile], memory: &dyn Memory) -> Result<u64> {
        let path = &self.module.module.path;
        let pairs = mapped
            .iter()
            .flat_map(|file| self.segments.iter().map(move |it| (file, it)));
        let mut biases = pairs.filter_map(|(file, it)| {
            let start = it.address.wrapping_sub(it.offset % PAGE);
            (it.offset - it.offset % PAGE == file.offset).then(|| file.start.wrapping_sub(start))
        });
        let mut biases = biases.by_ref().peekable();
        if biases.peek().is_none() {
            bail!("{path}: is mapped, but where its counters are cannot be told");
        }
        let found = biases.find(|it| self.is_this_build(*it, memory));
        found.with_context(|| {
            format!(
                "{path}: was rebuilt since the program was started, so its counters are not read"
            )
        })
    }

    fn is_this_build(&self, bias: u64, memory: &dyn Memory) -> bool {
        let Some((address, mark)) = &self.mark else {
            return true;
        };
        // A core dump need not hold what can be read from the file.
        let found = self.bytes(memory, *address, mark.len(), bias);
        found.is_none_or(|it| it == *mark)
    }

    /// What is in memory at an address of the file.
    fn bytes(&self, memory: &dyn Memory, at: u64, count: usize, bias: u64) -> Option<Vec<u8>> {
        memory
            .read(at.wrapping_add(bias), count)
            .or_else(|| memory.read_physical(self.physical(at)?, count))
    }

    fn physical(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|it| {
            let offset = address.checked_sub(it.address)?;
            (offset < it.size).then(|| it.physical.wrapping_add(offset))
        })
    }

    /// All its counters.
    fn counters(&self, memory: &dyn Memory, bias: u64) -> Result<Vec<u64>> {
        let path = &self.module.module.path;
        self.joined(|address, bytes| {
            self.bytes(memory, address.0, bytes, bias).with_context(|| {
                format!("{path}: its counters at {address} are not in the memory that was read")
            })
        })
    }

    fn joined(&self, read: impl Fn(LinkAddr, usize) -> Result<Vec<u8>>) -> Result<Vec<u64>> {
        let mut all = Vec::new();
        for (address, count) in &self.module.memory {
            all.extend(words(&read(*address, count * 8)?));
        }
        Ok(all)
    }
}

/// What files are mapped by.
const PAGE: u64 = 4096;

fn segments(elf: &ElfFile64<Endianness>) -> Vec<Segment> {
    let endian = elf.endian();
    let headers = elf.elf_program_headers().iter();
    headers
        .filter(|it| it.p_type(endian) == PT_LOAD)
        .map(|it| Segment {
            offset: it.p_offset(endian),
            address: it.p_vaddr(endian),
            physical: it.p_paddr(endian),
            size: it.p_memsz(endian),
        })
        .collect()
}

/// The notes, of which the build id is one; without any, the headers, if they are loaded.
fn mark(elf: &ElfFile64<Endianness>) -> Option<(u64, Vec<u8>)> {
    let (endian, data) = (elf.endian(), elf.data());
    let mut headers = elf.elf_program_headers().iter();
    let notes = headers.clone().find(|it| it.p_type(endian) == PT_NOTE);
    if let Some(notes) = notes {
        return Some((
            notes.p_vaddr(endian),
            notes.data(endian, data).ok()?.to_vec(),
        ));
    }
    let first = headers.find(|it| it.p_type(endian) == PT_LOAD && it.p_offset(endian) == 0)?;
    let size = size_of::<object::elf::FileHeader64<Endianness>>();
    Some((first.p_vaddr(endian), data.get(..size)?.to_vec()))
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
    pub fn mapped(&self, files: &[MappedFile], found: &mut Vec<Result<Counters>>) {
        let mut by_path: BTreeMap<&Path, Vec<&MappedFile>> = BTreeMap::new();
        for file in files {
            by_path.entry(&file.path).or_default().push(file);
        }
        for (path, mapped) in by_path {
            self.add(path, found, |it| it.bias(&mapped, self.memory));
        }
    }

    /// Of a program that was not moved: a kernel, say.
    pub fn program(&self, path: &Path, found: &mut Vec<Result<Counters>>) {
        self.add(path, found, |it| {
            let path = path.display();
            if !it.is_this_build(0, self.memory) {
                bail!("{path}: is another build than the one in memory; name the file that ran");
            }
            Ok(0)
        });
    }

    /// Adds what a program counted, or why that cannot be read.
    fn add(
        &self,
        path: &Path,
        found: &mut Vec<Result<Counters>>,
        bias: impl Fn(&Program) -> Result<u64>,
    ) {
        let program = match Program::read(path) {
            Ok(Some(it)) => it,
            Ok(None) => return,
            Err(error) => return found.push(Err(error)),
        };
        let is_it = |it: &&mut Counters| {
            it.fingerprint == program.module.fingerprint && it.count == program.module.counters
        };
        let mut known = found.iter_mut().flatten().filter(is_it);
        let kept = known.next();
        if kept.as_ref().is_some_and(|it| !it.memory.is_empty()) {
            return;
        }
        let read = bias(&program).and_then(|it| program.counters(self.memory, it));
        match (read, kept) {
            // The runtime kept counters of it, too.
            (Ok(memory), Some(kept)) => kept.memory = memory,
            (Ok(memory), None) => found.push(Ok(alone(&program.module, memory, self))),
            (Err(error), _) => found.push(Err(error)),
        }
    }
}

/// Counts that a program wrote out itself: the bytes of the section.
pub fn written_out(dump: &Path, path: &Path, time: u64) -> Result<Counters> {
    let (name, path_shown) = (dump.display(), path.display());
    let bytes = foreign_file::bytes(dump).with_context(|| format!("{name}: cannot be read"))?;
    let bytes: &[u8] = (*bytes).as_ref();
    let program = Program::read(path)?.with_context(|| {
        format!(
            "{path_shown}: does not count in ordinary memory; compile it with -ffreestanding, by \
             `headcount cc`"
        )
    })?;
    let section = program.section.clone();
    let section =
        section.with_context(|| format!("{path_shown}: has no section {MEMORY_SECTION}"))?;
    if bytes.len() as u64 != section.end - section.start {
        bail!(
            "{name}: has {} bytes, but the counters of {path_shown} are {}: write out all from \
             __start_{MEMORY_SECTION} to __stop_{MEMORY_SECTION}",
            bytes.len(),
            section.end - section.start
        );
    }
    let memory = program.joined(|address, count| {
        let offset = address.0.checked_sub(section.start);
        let offset = offset.and_then(|it| usize::try_from(it).ok());
        let piece = offset.and_then(|it| bytes.get(it..it.checked_add(count)?));
        Ok(piece.context("a counter outside its section")?.to_vec())
    })?;
    let reader = Reader {
        memory: &Nothing,
        process: ProcessKey::default(),
        time,
    };
    Ok(alone(&program.module, memory, &reader))
}

struct Nothing;

impl Memory for Nothing {
    fn read(&self, _address: u64, _bytes: usize) -> Option<Vec<u8>> {
        None
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks_exact(8);
    words.map(|it| u64::from_le_bytes(it.try_into().unwrap_or_default()))
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
