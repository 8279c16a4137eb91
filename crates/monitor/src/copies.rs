//! Copies in an address space: where a process has what the workshops made.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use headcount_model::{LinkAddr, LoadAddr, LoadBias};

use crate::inject;
use crate::memory::Memory;
use crate::proc::{FileNumber, Mapping};
use crate::wait::Stopped;
use crate::workshop::Progress;

/// What an address space has for its copies. A child made by `fork` begins with the same.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// The program that it runs.
    pub program: Option<Rc<Path>>,
    /// A page of ours, for system calls in the name of the process.
    pub desk: Option<LoadAddr>,
    /// The code that was borrowed to make it.
    borrowed: Option<LoadAddr>,
    /// The windows that are mapped, be it that threads of other processes count in them.
    pub windows: Vec<Mapped>,
    /// Where windows were before they had to be moved, as long as a thread may come back there.
    pub former_windows: Vec<Range<u64>>,
    pub modules: Vec<Installed>,
    /// Is there code besides that of `modules` and the kernel's?
    pub has_other_code: bool,
    /// Where the program makes code itself.
    pub made_code: Vec<Range<u64>>,
    /// Nothing of this process can be counted.
    pub is_refused: bool,
    /// Have windows been mapped for threads that are to come?
    pub is_mapped_ahead: bool,
    /// One of its threads cannot be counted: all of it is to be let go of before that goes on.
    pub is_given_up: bool,
    /// Has it ever had more than one thread?
    pub had_threads: bool,
    /// So had the parent. For its other threads, something may have been done after the kernel made
    /// this child, and before we heard of it: that is not in its memory.
    pub is_doubtful: bool,
}

/// A window of counters that is mapped.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// Which one.
    pub window: u32,
    /// Where: the base of `gs` of the thread that counts in it.
    pub at: u64,
    /// How many bytes of it.
    pub bytes: u64,
}

/// A module whose copies an address space has.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Which workshop makes them.
    pub workshop: usize,
    /// How far the module was moved.
    pub bias: LoadBias,
    /// Where its executable mappings are.
    pub texts: Vec<Range<u64>>,
    /// Where its copies are.
    pub region: Range<u64>,
    /// Which file it is.
    pub file: FileNumber,
    /// How much of what the workshop made is here.
    pub progress: Progress,
}

impl Installed {
    /// Is this what is mapped there?
    pub fn is(&self, mapping: &Mapping) -> bool {
        let mut texts = self.texts.iter();
        let same_place = texts.any(|it| it.start == mapping.range.start);
        same_place && mapping.executable && mapping.file == self.file
    }

    /// Is this another part of the same module?
    pub fn is_part_of(&self, mapping: &Mapping, bias: LoadBias) -> bool {
        mapping.file == self.file && bias == self.bias
    }

    /// Forgets text that is not there any more.
    pub fn forget_unmapped(&mut self, mappings: &[Mapping]) {
        let file = &self.file;
        self.texts.retain(|text| {
            let mut mappings = mappings.iter().filter(|it| it.executable);
            mappings.any(|it| it.range.start == text.start && it.file == *file)
        });
    }

    /// Is there something of ours at a load address: copies, or text that has been changed?
    pub fn has(&self, at: LoadAddr) -> bool {
        self.region.contains(&at.0) || self.texts.iter().any(|it| it.contains(&at.0))
    }

    /// The link address of a load address.
    pub fn link(&self, at: LoadAddr) -> LinkAddr {
        LinkAddr(at.0.wrapping_sub(self.bias.0))
    }

    /// The load address of a link address, which may be one of the copies.
    pub fn load(&self, at: u64) -> LoadAddr {
        LoadAddr(at.wrapping_add(self.bias.0))
    }
}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In the text of a module, by its place among the installed ones.
    Text(usize),
    /// In its copies, so many bytes from their beginning.
    Copies(usize, u64),
}

impl Copies {
    /// What a child made by `fork` has.
    pub fn inherited(&self) -> Self {
        Self {
            is_given_up: false,
            had_threads: false,
            is_doubtful: self.had_threads,
            ..self.clone()
        }
    }

    /// Forgets what is not there.
    pub fn believe(&mut self, mappings: &[Mapping]) {
        let is_mapped = |at: u64| mappings.iter().any(|it| it.range.contains(&at));
        self.windows.retain(|it| is_mapped(it.at));
        self.modules.retain(|it| is_mapped(it.region.start));
        self.is_doubtful = false;
    }

    /// Where an address is, if that is any of our business.
    pub fn find(&self, at: LoadAddr) -> Option<Where> {
        for (index, module) in self.modules.iter().enumerate() {
            if module.texts.iter().any(|it| it.contains(&at.0)) {
                return Some(Where::Text(index));
            }
            if module.region.contains(&at.0) {
                return Some(Where::Copies(index, at.0 - module.region.start));
            }
        }
        None
    }

    /// Is memory that begins here ours?
    pub fn is_ours(&self, at: u64) -> bool {
        let is_desk = self.desk.is_some_and(|desk| desk.0 == at);
        is_desk || self.modules.iter().any(|it| it.region.contains(&at))
    }

    /// How many bytes of every window are mapped.
    pub fn window_bytes(&self) -> Option<u64> {
        self.windows.iter().map(|it| it.bytes).min()
    }

    /// Where a window is mapped.
    pub fn place_of(&self, window: u32) -> Option<u64> {
        let mapped = self.windows.iter().find(|it| it.window == window);
        mapped.map(|it| it.at)
    }
}

/// Where the `syscall` instruction is on the desk.
const SYSCALL: u64 = 4080;
const DESK: u64 = 4096;

/// How many bytes there are on the desk for what a system call is told.
pub const DESK_ROOM: u64 = SYSCALL;

/// Makes sure that there is a desk, or says why there is none; `borrowed` is code that no thread
/// runs meanwhile.
pub fn set_up_desk(
    copies: &mut Copies,
    stopped: &Stopped,
    memory: &Memory,
    borrowed: LoadAddr,
) -> io::Result<io::Result<()>> {
    if copies.desk.is_some() {
        return Ok(Ok(()));
    }
    let protection = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    let arguments = [0, DESK, protection, flags, u64::MAX, 0];
    let at = inject::call(stopped, memory, borrowed, libc::SYS_mmap, arguments)?;
    let at = inject::result(at);
    Ok(at.map(|at| (copies.desk, copies.borrowed) = (Some(LoadAddr(at)), Some(borrowed))))
}

impl Copies {
    /// Makes a system call in the name of the process.
    pub fn system_call(
        &self,
        stopped: &Stopped,
        memory: &Memory,
        number: i64,
        arguments: [u64; 6],
    ) -> io::Result<i64> {
        let desk = self
            .desk
            .ok_or(io::Error::from_raw_os_error(libc::ENOMEM))?;
        let at = LoadAddr(desk.0 + SYSCALL);
        inject::call(stopped, memory, at, number, arguments)
    }

    /// Everything that is ours but for the desk.
    pub fn mapped(&self) -> impl Iterator<Item = Range<u64>> {
        let regions = self.modules.iter().map(|it| it.region.clone());
        let windows = self.windows.iter().map(|it| it.at..it.at + it.bytes);
        regions
            .chain(windows)
            .chain(self.former_windows.iter().cloned())
    }

    /// How many bytes all that is.
    pub fn mapped_bytes(&self) -> u64 {
        let bytes: u64 = self.mapped().map(|it| it.end - it.start).sum();
        bytes + self.desk.map_or(0, |_| DESK)
    }

    /// Gives the desk back. No thread runs the code that was borrowed for it, or the first of a
    /// module that is still there.
    pub fn clear_desk(&self, stopped: &Stopped, memory: &Memory) -> io::Result<()> {
        let text = self.modules.iter().find_map(|it| it.texts.first());
        let borrowed = text.map(|it| LoadAddr(it.start)).or(self.borrowed);
        match (self.desk, borrowed) {
            (Some(desk), Some(borrowed)) => inject::unmap(stopped, memory, borrowed, desk, DESK),
            _ => Ok(()),
        }
    }
}
