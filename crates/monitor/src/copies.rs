//! Copies in an address space: where a process has what the workshops made.

use std::io;
use std::ops::Range;

use headcount_model::{LinkAddr, LoadAddr, LoadBias};
use libc::pid_t;

use crate::inject;
use crate::memory::Memory;
use crate::proc::{FileNumber, Mapping};
use crate::wait::Stopped;
use crate::windows::WINDOW;
use crate::workshop::Progress;

/// What an address space has for its copies. A child made by `fork` begins with the same.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// A page of ours, for system calls in the name of the process.
    desk: Option<LoadAddr>,
    pub windows: Vec<Mapped>,
    pub modules: Vec<Installed>,
    /// A window for children that are not counted.
    pub vain: Option<u64>,
    /// Is there code besides that of `modules` and the kernel's?
    pub has_other_code: bool,
    /// Where the program makes code itself.
    pub made_code: Vec<Range<u64>>,
    /// Nothing of this process can be counted.
    pub is_refused: bool,
    /// The address space of the parent, while the windows are still the parent's.
    pub parent: Option<usize>,
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
    /// Where: the base of `gs` of the thread that has it.
    pub at: u64,
    /// Whose it is.
    pub user: Option<pid_t>,
    /// The address space that it is borrowed from.
    pub lender: Option<usize>,
}

/// A module whose copies an address space has.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Which workshop makes them.
    pub workshop: usize,
    /// How far the module was moved.
    pub bias: LoadBias,
    /// Where its executable mapping is.
    pub text: Range<u64>,
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
        let same_place = mapping.range.start == self.text.start;
        same_place && mapping.executable && mapping.file == self.file
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
    pub fn inherited(&self, parent: usize) -> Self {
        Self {
            parent: Some(parent),
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
        self.vain = self.vain.filter(|at| is_mapped(*at));
        self.is_doubtful = false;
    }

    /// Where an address is, if that is any of our business.
    pub fn find(&self, at: LoadAddr) -> Option<Where> {
        for (index, module) in self.modules.iter().enumerate() {
            if module.text.contains(&at.0) {
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

    /// The window of a thread.
    pub fn window_of(&self, tid: pid_t) -> Option<u32> {
        let mapped = self.windows.iter().find(|it| it.user == Some(tid));
        mapped.map(|it| it.window)
    }
}

/// Where the `syscall` instruction is on the desk.
const SYSCALL: u64 = 4080;
const DESK: u64 = 4096;

/// Makes sure that there is a desk, or says why there is none; `borrowed` is code that no thread
/// runs meanwhile.
pub fn set_up_desk(
    copies: &mut Copies,
    stopped: Stopped,
    memory: &Memory,
    borrowed: LoadAddr,
) -> io::Result<(Stopped, io::Result<()>)> {
    if copies.desk.is_some() {
        return Ok((stopped, Ok(())));
    }
    let arguments = [
        0,
        DESK,
        (libc::PROT_READ | libc::PROT_EXEC) as u64,
        (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64,
        u64::MAX,
        0,
    ];
    let (stopped, at) = inject::system_call(stopped, memory, borrowed, libc::SYS_mmap, arguments)?;
    let desk = result(at).map(|at| copies.desk = Some(LoadAddr(at)));
    Ok((stopped, desk))
}

impl Copies {
    /// Makes a system call in the name of the process.
    pub fn system_call(
        &self,
        stopped: Stopped,
        memory: &Memory,
        number: i64,
        arguments: [u64; 6],
    ) -> io::Result<(Stopped, i64)> {
        let desk = self
            .desk
            .ok_or(io::Error::from_raw_os_error(libc::ENOMEM))?;
        let at = LoadAddr(desk.0 + SYSCALL);
        inject::system_call(stopped, memory, at, number, arguments)
    }

    /// Gives the desk back; `borrowed` is code that no thread runs meanwhile.
    pub fn clear_desk(
        &self,
        stopped: Stopped,
        memory: &Memory,
        borrowed: LoadAddr,
    ) -> io::Result<Stopped> {
        match self.desk {
            Some(desk) => inject::unmap(stopped, memory, borrowed, desk, DESK),
            None => Ok(stopped),
        }
    }

    /// Maps so many windows of the file at `path`. Where they are, or why they are not.
    pub fn map_windows(
        &self,
        stopped: Stopped,
        memory: &Memory,
        path: &[u8],
        first: u32,
        count: u32,
    ) -> io::Result<(Stopped, io::Result<u64>)> {
        let desk = self
            .desk
            .ok_or(io::Error::from_raw_os_error(libc::ENOMEM))?;
        if path.len() as u64 + 1 > SYSCALL {
            let too_long = io::Error::from_raw_os_error(libc::ENAMETOOLONG);
            return Ok((stopped, Err(too_long)));
        }
        let mut words = path.to_vec();
        words.push(0);
        memory.write(desk, &words)?;
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as u64;
        let arguments = [libc::AT_FDCWD as u64, desk.0, flags, 0, 0, 0];
        let (stopped, file) = self.system_call(stopped, memory, libc::SYS_openat, arguments)?;
        let file = match result(file) {
            Ok(file) => file,
            Err(error) => return Ok((stopped, Err(error))),
        };
        let arguments = [
            0,
            u64::from(count) * WINDOW,
            (libc::PROT_READ | libc::PROT_WRITE) as u64,
            libc::MAP_SHARED as u64,
            file,
            u64::from(first) * WINDOW,
        ];
        let (stopped, at) = self.system_call(stopped, memory, libc::SYS_mmap, arguments)?;
        let arguments = [file, 0, 0, 0, 0, 0];
        let (stopped, _) = self.system_call(stopped, memory, libc::SYS_close, arguments)?;
        let Ok(at) = result(at) else {
            return Ok((stopped, result(at)));
        };
        // Most of a window is never touched; the kernel would read megabytes of it ahead.
        let advice = libc::MADV_RANDOM as u64;
        let arguments = [at, u64::from(count) * WINDOW, advice, 0, 0, 0];
        let (stopped, _) = self.system_call(stopped, memory, libc::SYS_madvise, arguments)?;
        Ok((stopped, Ok(at)))
    }
}

/// What a system call answered.
fn result(answer: i64) -> io::Result<u64> {
    match answer {
        -4095..0 => Err(io::Error::from_raw_os_error(-answer as i32)),
        answer => Ok(answer as u64),
    }
}
