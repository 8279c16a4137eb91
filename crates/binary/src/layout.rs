//! Where does a loader put this file?

use headcount_model::LinkAddr;
use object::LittleEndian;
use object::elf;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};

use crate::Error;

/// The only byte order of x86-64.
pub(crate) type Elf<'a> = ElfFile64<'a, LittleEndian>;
pub(crate) const LITTLE: LittleEndian = LittleEndian;

/// A file whose headers make sense.
pub(crate) fn parse(bytes: &[u8]) -> Result<Elf<'_>, Error> {
    Elf::parse(bytes).map_err(|error| Error::Damaged {
        what: error.to_string(),
    })
}

/// What a monitor needs to find the module in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Where the program begins.
    pub entry: LinkAddr,
    /// Whether the loader chooses where it goes.
    pub position_independent: bool,
    /// What is loaded, in the file's order.
    pub segments: Vec<Segment>,
    /// The program that loads it, if it needs one.
    pub interpreter: Option<String>,
    /// Where its dynamic section is.
    pub dynamic: Option<LinkAddr>,
}

/// A piece of the file that is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Where the linker put it.
    pub address: LinkAddr,
    /// How much memory it takes.
    pub memory_size: u64,
    /// Where it is in the file.
    pub file_offset: u64,
    /// How many bytes of it are in the file; the rest is zero.
    pub file_size: u64,
    /// Whether it can be executed.
    pub executable: bool,
    /// Whether it can be written.
    pub writable: bool,
}

/// Where a loader puts this file. Cheap: looks at the headers only.
pub fn layout(bytes: &[u8]) -> Result<Layout, Error> {
    check_kind(bytes)?;
    let damaged = |error: object::read::Error| Error::Damaged {
        what: error.to_string(),
    };
    let header = elf::FileHeader64::<LittleEndian>::parse(bytes).map_err(damaged)?;
    let mut layout = Layout {
        entry: LinkAddr(header.e_entry(LITTLE)),
        position_independent: header.e_type(LITTLE) == elf::ET_DYN,
        ..Layout::default()
    };
    for segment in header.program_headers(LITTLE, bytes).map_err(damaged)? {
        let address = LinkAddr(segment.p_vaddr(LITTLE));
        match segment.p_type(LITTLE) {
            elf::PT_LOAD => layout.segments.push(load(segment, bytes)?),
            elf::PT_DYNAMIC => layout.dynamic = Some(address),
            elf::PT_INTERP => {
                let name = segment.data(LITTLE, bytes).unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                layout.interpreter = Some(String::from_utf8_lossy(name).into_owned());
            }
            _ => {}
        }
    }
    Ok(layout)
}

fn load(segment: &elf::ProgramHeader64<LittleEndian>, bytes: &[u8]) -> Result<Segment, Error> {
    let flags = segment.p_flags(LITTLE);
    let segment = Segment {
        address: LinkAddr(segment.p_vaddr(LITTLE)),
        memory_size: segment.p_memsz(LITTLE),
        file_offset: segment.p_offset(LITTLE),
        file_size: segment.p_filesz(LITTLE),
        executable: flags.contains(elf::PF_X),
        writable: flags.contains(elf::PF_W),
    };
    let end = segment.file_offset.checked_add(segment.file_size);
    // A file of debug information only keeps the headers of the program it was cut from, so what
    // they speak of need not be there; code that should be there must be.
    match end {
        Some(end) if end <= bytes.len() as u64 || !segment.executable => Ok(segment),
        _ => Err(Error::Damaged {
            what: format!("its code at {} is not in the file", segment.address),
        }),
    }
}

/// Refuses what is no x86-64 program, and says what it is instead.
pub(crate) fn check_kind(bytes: &[u8]) -> Result<(), Error> {
    let hint = match bytes {
        [0x7f, b'E', b'L', b'F', ..] => None,
        [b'#', b'!', ..] => Some(" (this is a script: name its interpreter)"),
        [b'M', b'Z', ..] => Some(" (this is a Windows program)"),
        [b'!', b'<', b'a', b'r', b'c', b'h', b'>', ..] => Some(" (this is an archive)"),
        [] => Some(" (this file is empty)"),
        _ => Some(""),
    };
    if let Some(hint) = hint {
        return Err(Error::NotElf { hint });
    }
    let half = |at: usize| match bytes.get(at..at + 2) {
        Some([low, high]) => Ok(u16::from_le_bytes([*low, *high])),
        _ => Err(Error::Damaged {
            what: "its header is incomplete".to_owned(),
        }),
    };
    let (kind, machine) = (half(16)?, half(18)?);
    if bytes.get(5) == Some(&2) {
        return Err(Error::Machine {
            machine: "a big-endian machine".to_owned(),
        });
    }
    if machine != 62 {
        return Err(Error::Machine {
            machine: machine_name(machine),
        });
    }
    if bytes.get(4) != Some(&2) {
        return Err(Error::Narrow);
    }
    let kind = match kind {
        2 | 3 => return Ok(()),
        1 => "an object file that is not linked yet",
        4 => "a core dump",
        _ => "an ELF file of an unknown kind",
    };
    Err(Error::Kind { kind })
}

fn machine_name(machine: u16) -> String {
    let name = match machine {
        3 => "32-bit x86",
        8 => "MIPS",
        20 | 21 => "PowerPC",
        22 => "s390x",
        40 => "32-bit ARM",
        183 => "AArch64",
        243 => "RISC-V",
        247 => "eBPF",
        258 => "LoongArch",
        other => return format!("a machine that ELF calls {other}"),
    };
    name.to_owned()
}
