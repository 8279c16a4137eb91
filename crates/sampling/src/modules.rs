//! The files that code is in: how to unwind it, and where it is in the file's own terms.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use headcount_binary::{FileBytes, Layout};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

use crate::record::{FileIdentity, Mapping};

/// Reads a file of a process, if anybody can.
pub type ReadFile<'a> = dyn Fn(u32, &Path) -> Option<FileBytes> + 'a;

/// The code of the kernel that every process has.
const VDSO: &str = "[vdso]";

/// A file, as far as it was needed.
pub struct Module {
    pub path: String,
    /// A process that has it mapped.
    pub pid: u32,
    /// What its bytes are; empty if they could not be read.
    pub file_id: String,
    layout: Option<Layout>,
    sections: Sections,
}

/// The parts that tell how to unwind.
#[derive(Clone, Default)]
struct Sections {
    eh_frame: Option<Section>,
    eh_frame_hdr: Option<Section>,
    text: Option<Range<u64>>,
    got: Option<Range<u64>>,
}

#[derive(Clone)]
struct Section {
    at: Range<u64>,
    bytes: Arc<[u8]>,
}

/// All files, each once.
#[derive(Default)]
pub struct Modules {
    pub all: Vec<Module>,
    /// A file may be replaced while others still run it.
    numbers: HashMap<(String, FileIdentity), u32>,
}

impl Modules {
    /// The module that was mapped, if it is a file.
    pub fn number(&mut self, pid: u32, mapping: &Mapping, read: &ReadFile<'_>) -> Option<u32> {
        let path = &mapping.path;
        if !path.starts_with('/') && path != VDSO {
            return None;
        }
        let key = (path.clone(), mapping.file);
        if let Some(known) = self.numbers.get(&key) {
            return Some(*known);
        }
        let number = self.all.len() as u32;
        self.all.push(Module::new(path.clone(), pid, read));
        self.numbers.insert(key, number);
        Some(number)
    }
}

impl Module {
    /// Its bytes are not kept: a build runs hundreds of programs.
    fn new(path: String, pid: u32, read: &ReadFile<'_>) -> Self {
        let bytes = bytes_of(&path, pid, read);
        let file_id = bytes
            .as_deref()
            .and_then(|it| headcount_binary::file_id(it.as_ref()).ok());
        let parsed = bytes.as_deref().and_then(|it| {
            let bytes = it.as_ref();
            let layout = headcount_binary::layout(bytes).ok()?;
            Some((layout, sections(bytes)))
        });
        let (layout, sections) = parsed.map_or_else(Default::default, |(a, b)| (Some(a), b));
        Self {
            path,
            pid,
            file_id: file_id.unwrap_or_default(),
            layout,
            sections,
        }
    }

    /// Its bytes, if they are still the same.
    pub fn bytes(&self, read: &ReadFile<'_>) -> Option<FileBytes> {
        let bytes = bytes_of(&self.path, self.pid, read)?;
        let file_id = headcount_binary::file_id((*bytes).as_ref()).ok()?;
        (file_id == self.file_id).then_some(bytes)
    }

    /// What load addresses have more than link addresses, in this mapping of it.
    pub fn bias(&self, mapping: &Mapping) -> Option<u64> {
        let layout = self.layout.as_ref()?;
        if self.path == VDSO {
            let first = layout.segments.iter().map(|it| it.address.0).min()?;
            return Some(mapping.begin.wrapping_sub(first));
        }
        let size = mapping.end - mapping.begin;
        let file = mapping.offset..mapping.offset.saturating_add(size);
        let is_part = |begin: u64, size: u64| begin < file.end && file.start < begin + size.max(1);
        let segments = layout.segments.iter().filter(|it| it.executable);
        let mut parts = segments.filter(|it| is_part(it.file_offset, it.file_size));
        let segment = parts.next()?;
        let link = segment.address.0.wrapping_sub(segment.file_offset);
        Some(
            mapping
                .begin
                .wrapping_sub(mapping.offset)
                .wrapping_sub(link),
        )
    }

    /// How to unwind what is mapped with this bias.
    pub fn unwinding(&self, mapping: &Mapping, bias: u64) -> framehop::Module<Arc<[u8]>> {
        let section = |it: &Option<Section>| {
            let it = it.clone();
            it.map_or((None, None), |it| (Some(it.at), Some(it.bytes)))
        };
        let (eh_frame_svma, eh_frame) = section(&self.sections.eh_frame);
        let (eh_frame_hdr_svma, eh_frame_hdr) = section(&self.sections.eh_frame_hdr);
        framehop::Module::new(
            self.path.clone(),
            mapping.begin..mapping.end,
            bias,
            ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: self.sections.text.clone(),
                got_svma: self.sections.got.clone(),
                eh_frame_svma,
                eh_frame,
                eh_frame_hdr_svma,
                eh_frame_hdr,
                ..ExplicitModuleSectionInfo::default()
            },
        )
    }
}

fn bytes_of(path: &str, pid: u32, read: &ReadFile<'_>) -> Option<FileBytes> {
    match path == VDSO {
        true => vdso(),
        false => read(pid, Path::new(path)),
    }
}

fn sections(bytes: &[u8]) -> Sections {
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(bytes) else {
        return Sections::default();
    };
    let range = |name: &str| {
        let section = elf.section_by_name(name)?;
        Some(section.address()..section.address().saturating_add(section.size()))
    };
    let whole = |name: &str| {
        let data = elf.section_by_name(name)?.data().ok()?;
        Some(Section {
            at: range(name)?,
            bytes: data.into(),
        })
    };
    Sections {
        eh_frame: whole(".eh_frame"),
        eh_frame_hdr: whole(".eh_frame_hdr"),
        text: range(".text"),
        got: range(".got"),
    }
}

/// The code that the kernel gives every process: the same in ours.
fn vdso() -> Option<FileBytes> {
    use std::io::{Read, Seek, SeekFrom};
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|it| it.ends_with(VDSO))?;
    let (begin, end) = line.split_once(' ')?.0.split_once('-')?;
    let begin = u64::from_str_radix(begin, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let mut memory = std::fs::File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(begin)).ok()?;
    let mut bytes = vec![0; usize::try_from(end.checked_sub(begin)?).ok()?];
    memory.read_exact(&mut bytes).ok()?;
    Some(Arc::new(bytes))
}
