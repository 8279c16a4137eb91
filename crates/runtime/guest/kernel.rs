//! What is asked of the kernel, without libc: no lock, no allocation, no `errno`.
//!
//! Every function here is one system call. What it does to memory is the caller's business, so
//! those that map or unmap are `unsafe`.

use core::arch::asm;

/// The kernel's reason for saying no.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

pub const ESRCH: Errno = Errno(3);
pub const EINTR: Errno = Errno(4);
pub const ENOMEM: Errno = Errno(12);
pub const EACCES: Errno = Errno(13);
pub const EFAULT: Errno = Errno(14);
pub const EEXIST: Errno = Errno(17);
pub const EFBIG: Errno = Errno(27);
pub const ENOSYS: Errno = Errno(38);
pub const ETIMEDOUT: Errno = Errno(110);
pub const EOPNOTSUPP: Errno = Errno(95);

pub type Result<T> = core::result::Result<T, Errno>;

const fn check(result: isize) -> Result<u64> {
    match result < 0 && result >= -4095 {
        true => Err(Errno(-result as i32)),
        false => Ok(result as u64),
    }
}

/// # Safety
/// As the system call says.
unsafe fn call6(number: u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> Result<u64> {
    let result: isize;
    // SAFETY: the instruction overwrites rax, rcx and r11 only; the rest is the caller's promise.
    unsafe {
        asm!("syscall", inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _, options(att_syntax, nostack));
    }
    check(result)
}

/// # Safety
/// As the system call says.
unsafe fn call4(number: u64, a: u64, b: u64, c: u64, d: u64) -> Result<u64> {
    let result: isize;
    // SAFETY: as in `call6`.
    unsafe {
        asm!("syscall", inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
            lateout("rcx") _, lateout("r11") _, options(att_syntax, nostack));
    }
    check(result)
}

/// # Safety
/// As the system call says.
unsafe fn call3(number: u64, a: u64, b: u64, c: u64) -> Result<u64> {
    let result: isize;
    // SAFETY: as in `call6`.
    unsafe {
        asm!("syscall", inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c,
            lateout("rcx") _, lateout("r11") _, options(att_syntax, nostack));
    }
    check(result)
}

/// A question without arguments, which never fails.
fn who(number: u64) -> u32 {
    let result: u64;
    // SAFETY: as in `call6`; nothing is read or written.
    unsafe {
        asm!("syscall", inlateout("rax") number => result,
            lateout("rcx") _, lateout("r11") _, options(att_syntax, nostack, nomem));
    }
    result as u32
}

/// A call that takes numbers only, and touches no memory.
fn ask(number: u64, a: u64, b: u64, c: u64) -> Result<u64> {
    // SAFETY: used for calls without pointers only.
    unsafe { call3(number, a, b, c) }
}

// ---- files

pub const O_RDONLY: u32 = 0;
pub const O_RDWR: u32 = 0o2;
pub const O_CREAT: u32 = 0o100;
pub const O_EXCL: u32 = 0o200;
pub const O_NONBLOCK: u32 = 0o4_000;
pub const O_DIRECTORY: u32 = 0o200_000;
pub const O_NOFOLLOW: u32 = 0o400_000;
pub const O_CLOEXEC: u32 = 0o2_000_000;

const AT_FDCWD: u64 = -100_i64 as u64;

/// An open file; closed when dropped, for the program must never see it.
pub struct File(u32);

impl Drop for File {
    fn drop(&mut self) {
        _ = ask(3, u64::from(self.0), 0, 0); // close
    }
}

/// A path, or the name of an entry in a folder: bytes that end in NUL.
#[derive(Clone, Copy)]
pub struct Path<'a>(&'a [u8]);

impl<'a> Path<'a> {
    /// The bytes up to their first NUL; none without one.
    #[expect(
        clippy::manual_contains,
        reason = "it calls a function that is in libcore"
    )]
    pub fn new(bytes: &'a [u8]) -> Option<Path<'a>> {
        bytes.iter().any(|byte| *byte == 0).then_some(Path(bytes))
    }

    fn pointer(self) -> u64 {
        self.0.as_ptr() as u64
    }
}

pub fn open(path: Path, flags: u32) -> Result<File> {
    open_at(None, path, flags, 0)
}

pub fn open_at(folder: Option<&File>, path: Path, flags: u32, mode: u32) -> Result<File> {
    let folder = folder.map_or(AT_FDCWD, |folder| u64::from(folder.0));
    // SAFETY: the path ends in NUL. (257: openat)
    unsafe {
        call4(
            257,
            folder,
            path.pointer(),
            u64::from(flags),
            u64::from(mode),
        )
    }
    .map(|fd| File(fd as u32))
}

pub fn make_folder(path: Path, mode: u32) -> Result<()> {
    // SAFETY: the path ends in NUL. (83: mkdir)
    unsafe { call3(83, path.pointer(), u64::from(mode), 0) }.map(drop)
}

pub fn remove_at(folder: &File, name: Path) {
    // SAFETY: the name ends in NUL. (263: unlinkat)
    _ = unsafe { call3(263, u64::from(folder.0), name.pointer(), 0) };
}

/// Puts an entry of a folder in the place of another, whatever is there.
pub fn rename_at(folder: &File, from: Path, to: Path) -> Result<()> {
    let fd = u64::from(folder.0);
    // SAFETY: both names end in NUL. (264: renameat)
    unsafe { call4(264, fd, from.pointer(), fd, to.pointer()) }.map(drop)
}

/// Whether a folder has an entry of this name.
pub fn is_there(folder: &File, name: Path) -> bool {
    const F_OK: u64 = 0;
    // SAFETY: the name ends in NUL. (269: faccessat)
    unsafe { call3(269, u64::from(folder.0), name.pointer(), F_OK) }.is_ok()
}

/// Adds bytes of one file, from where it was read last, to another; says how many.
pub fn send(to: &File, from: &File, bytes: u64) -> Result<u64> {
    // SAFETY: no memory is involved. (40: sendfile)
    unsafe { call4(40, u64::from(to.0), u64::from(from.0), 0, bytes) }
}

/// How many bytes are free for us on the disk that a file is on.
pub fn free_bytes(file: &File) -> Result<u64> {
    // `struct statfs` of x86-64: type, block size, blocks, free ones, and those free for users,
    // ..., 120 bytes in all.
    let mut facts = [0_u64; 15];
    // SAFETY: the kernel writes 120 bytes. (138: fstatfs)
    unsafe { call3(138, u64::from(file.0), facts.as_mut_ptr() as u64, 0) }?;
    let [_, block, _, _, free, ..] = facts;
    Ok(block.saturating_mul(free))
}

/// Fills `into` from its beginning; says how many bytes came.
pub fn read(file: &File, into: &mut [u8]) -> Result<usize> {
    loop {
        let to = into.as_mut_ptr() as u64;
        // SAFETY: the kernel writes at most `len` bytes to a buffer that is ours. (0: read)
        match unsafe { call3(0, u64::from(file.0), to, into.len() as u64) } {
            Err(EINTR) => {}
            result => return result.map(|bytes| bytes as usize),
        }
    }
}

/// Reads a whole small file, or as much of it as there is room for.
pub fn read_file(path: &[u8], into: &mut [u8]) -> Result<usize> {
    let path = Path::new(path).ok_or(EFAULT)?;
    let file = open(path, O_RDONLY | O_CLOEXEC)?;
    let mut filled = 0;
    while let Some(room) = into.get_mut(filled..).filter(|room| !room.is_empty()) {
        match read(&file, room)? {
            0 => break,
            bytes => filled += bytes,
        }
    }
    Ok(filled)
}

/// Writes bytes at a place in the file.
pub fn write_at(file: &File, bytes: &[u8], offset: u64) -> Result<usize> {
    let from = bytes.as_ptr() as u64;
    // SAFETY: the kernel reads bytes that are there. (18: pwrite64)
    unsafe { call4(18, u64::from(file.0), from, bytes.len() as u64, offset) }
        .map(|bytes| bytes as usize)
}

/// Fills `into` from a place in the file; fails if there are not enough bytes.
pub fn read_at(file: &File, into: &mut [u64], offset: u64) -> Result<()> {
    let bytes = size_of_val(into) as u64;
    // SAFETY: the kernel writes at most as many bytes as there are. (17: pread64)
    match unsafe {
        call4(
            17,
            u64::from(file.0),
            into.as_mut_ptr() as u64,
            bytes,
            offset,
        )
    }? {
        read if read == bytes => Ok(()),
        _ => Err(EFAULT),
    }
}

pub fn change_mode(file: &File, mode: u32) -> Result<()> {
    ask(91, u64::from(file.0), u64::from(mode), 0).map(drop) // fchmod
}

/// Makes sure that there is room on the disk for this part of a file, and that it reads as zero.
pub fn allocate(file: &File, offset: u64, bytes: u64) -> Result<()> {
    // SAFETY: no memory is involved. (285: fallocate)
    unsafe { call4(285, u64::from(file.0), 0, offset, bytes) }.map(drop)
}

/// What `fstat` says, as far as anybody here asks.
#[derive(Clone, Copy)]
pub struct Status {
    pub device: u64,
    pub inode: u64,
    pub owner: u32,
    pub is_regular: bool,
    pub bytes: u64,
}

pub fn status(file: &File) -> Result<Status> {
    // `struct stat` of x86-64: device, inode, links, mode and uid, gid, special device, size, ...,
    // 144 bytes in all.
    const S_IFMT: u64 = 0o170_000;
    const S_IFREG: u64 = 0o100_000;
    let mut stat = [0_u64; 18];
    // SAFETY: the kernel writes 144 bytes. (5: fstat)
    unsafe { call3(5, u64::from(file.0), stat.as_mut_ptr() as u64, 0) }?;
    let [device, inode, _, mode_and_owner, _, _, bytes, ..] = stat;
    Ok(Status {
        device,
        inode,
        owner: (mode_and_owner >> 32) as u32,
        is_regular: mode_and_owner & S_IFMT == S_IFREG,
        bytes,
    })
}

/// The current folder, without a NUL.
pub fn current_folder(into: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes at most `len` bytes. (79: getcwd; counts the NUL)
    unsafe { call3(79, into.as_mut_ptr() as u64, into.len() as u64, 0) }
        .map(|bytes| (bytes as usize).saturating_sub(1))
}

// ---- memory

pub const MAP_SHARED: u32 = 0x1;
pub const MAP_PRIVATE: u32 = 0x2;
pub const MAP_FIXED: u32 = 0x10;
pub const MAP_ANONYMOUS: u32 = 0x20;
pub const MAP_NORESERVE: u32 = 0x4000;
pub const MAP_FIXED_NOREPLACE: u32 = 0x10_0000;

/// Maps readable and writable memory; returns its address.
///
/// # Safety
/// With `MAP_FIXED`, what was there must be ours to replace.
pub unsafe fn map(address: u64, bytes: u64, flags: u32, file: Option<(&File, u64)>) -> Result<u64> {
    const READ_AND_WRITE: u64 = 3;
    let (fd, offset) = file.map_or((u64::MAX, 0), |(file, offset)| (u64::from(file.0), offset));
    // SAFETY: the caller's promise. (9: mmap)
    unsafe {
        call6(
            9,
            address,
            bytes,
            READ_AND_WRITE,
            u64::from(flags),
            fd,
            offset,
        )
    }
}

/// Maps fresh memory exactly there, if nothing else is.
pub fn map_if_free(address: u64, bytes: u64, more_flags: u32) -> Result<()> {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | more_flags;
    // SAFETY: replaces nothing.
    let got = unsafe { map(address, bytes, flags, None) }?;
    if got == address {
        return Ok(());
    }
    // Linux before 4.17 does not know the flag and takes the address for a hint.
    // SAFETY: mapped just now, by us.
    unsafe { unmap(got, bytes) };
    Err(EEXIST)
}

/// # Safety
/// The memory must be ours, and no longer used.
pub unsafe fn unmap(address: u64, bytes: u64) {
    // SAFETY: the caller's promise. (11: munmap)
    _ = unsafe { call3(11, address, bytes, 0) };
}

/// Has the kernel fill these pages with zeros in every child that gets a copy of this memory.
pub fn wipe_on_fork(address: u64, bytes: u64) -> Result<()> {
    const MADV_WIPEONFORK: u64 = 18;
    // SAFETY: changes nothing here and now. (28: madvise)
    unsafe { call3(28, address, bytes, MADV_WIPEONFORK) }.map(drop)
}

/// Tells the kernel that neighbours of a page that is used need not be used.
pub fn expect_no_order(address: u64, bytes: u64) {
    const MADV_RANDOM: u64 = 1;
    // SAFETY: changes nothing but the kernel's guesses. (28: madvise)
    _ = unsafe { call3(28, address, bytes, MADV_RANDOM) };
}

/// Whether a word of memory has this value; no, if there is no such memory.
///
/// The kernel looks for us: it says EAGAIN or EFAULT at once, or that it has waited no time for
/// the value to change.
pub fn holds(address: u64, value: u32) -> bool {
    const FUTEX_WAIT_PRIVATE: u64 = 128;
    let no_time = [0_u64; 2];
    let no_time = &raw const no_time as u64;
    // SAFETY: the kernel reads one word and a `struct timespec`. (202: futex)
    let result = unsafe { call4(202, address, FUTEX_WAIT_PRIVATE, u64::from(value), no_time) };
    result == Err(ETIMEDOUT)
}

// ---- who we are

pub fn process() -> u32 {
    who(39) // getpid
}

pub fn thread() -> u32 {
    who(186) // gettid
}

/// Whether the thread exists (or cannot be asked, because it became another user's).
pub fn is_alive(process: u32, thread: u32) -> bool {
    ask(234, u64::from(process), u64::from(thread), 0) != Err(ESRCH) // tgkill
}

/// Whether the process exists (or cannot be asked, because it is another user's).
pub fn is_process_alive(process: u32) -> bool {
    ask(62, u64::from(process), 0, 0) != Err(ESRCH) // kill
}

/// The inode of the pid namespace that our numbers belong to; 0 if it cannot be known.
pub fn namespace() -> u64 {
    let Some(path) = Path::new(b"/proc/self/ns/pid\0") else {
        return 0;
    };
    let mut stat = [0_u64; 18];
    // SAFETY: as in `status`. (4: stat)
    match unsafe { call3(4, path.pointer(), stat.as_mut_ptr() as u64, 0) } {
        Ok(_) => stat[1],
        Err(_) => 0,
    }
}

pub fn effective_user() -> u32 {
    who(107) // geteuid
}

/// Whether the program runs with rights that its caller does not have.
pub fn is_privileged() -> bool {
    // getuid, geteuid, getgid, getegid
    who(102) != who(107) || who(104) != who(108)
}

pub fn give_way() {
    who(24); // sched_yield
}

/// Sixteen random bytes.
pub fn random() -> Result<[u8; 16]> {
    let mut bytes = [0_u64; 2];
    const GRND_NONBLOCK: u64 = 1;
    // SAFETY: the kernel writes 16 bytes. (318: getrandom)
    match unsafe { call3(318, bytes.as_mut_ptr() as u64, 16, GRND_NONBLOCK) } {
        Ok(16) => {
            let [low, high] = bytes;
            Ok((u128::from(low) | u128::from(high) << 64).to_le_bytes())
        }
        Ok(_) => Err(ENOSYS),
        Err(error) => Err(error),
    }
}

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let mut time = [0_u64; 2];
    // SAFETY: the kernel writes a `struct timespec`, two words. (228: clock_gettime)
    _ = unsafe { call3(228, 0, time.as_mut_ptr() as u64, 0) };
    let [seconds, nanoseconds] = time;
    seconds
        .wrapping_mul(1_000_000_000)
        .wrapping_add(nanoseconds)
}

pub const RLIMIT_FSIZE: u64 = 1;
pub const RLIMIT_STACK: u64 = 3;

/// The soft limit.
pub fn limit(which: u64) -> u64 {
    let mut limits = [0_u64; 2];
    // SAFETY: the kernel writes a `struct rlimit`, two words. (97: getrlimit)
    match unsafe { call3(97, which, limits.as_mut_ptr() as u64, 0) } {
        Ok(_) => limits[0],
        Err(_) => u64::MAX,
    }
}

// ---- signals

/// The signals that were blocked before we blocked them all.
pub struct BlockedSignals(u64);

impl BlockedSignals {
    /// From here on no handler of the program's can run in this thread.
    pub fn all() -> BlockedSignals {
        let (all, mut before) = (u64::MAX, 0_u64);
        // SAFETY: the kernel reads one signal set and writes one. (14: rt_sigprocmask; 2: set)
        _ = unsafe { call4(14, 2, &raw const all as u64, &raw mut before as u64, 8) };
        BlockedSignals(before)
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: as above.
        _ = unsafe { call4(14, 2, &raw const self.0 as u64, 0, 8) };
    }
}

// ---- the segment bases

/// The thread pointer: unique among the living threads of a process.
pub fn fs_base() -> Result<u64> {
    base(0x1003) // ARCH_GET_FS
}

pub fn gs_base() -> Result<u64> {
    base(0x1004) // ARCH_GET_GS
}

fn base(which: u64) -> Result<u64> {
    let mut base = 0_u64;
    // SAFETY: the kernel writes one word. (158: arch_prctl)
    unsafe { call3(158, which, &raw mut base as u64, 0) }.map(|_| base)
}

/// Sets the gs base by the instruction (any value) or by the kernel (user addresses only).
///
/// # Safety
/// Every probe this thread runs from now on must find its counter at the new distance. The
/// instruction must be allowed (bit 1 of `AT_HWCAP2`).
pub unsafe fn set_gs_base(base: u64, by_instruction: bool) -> Result<()> {
    const ARCH_SET_GS: u64 = 0x1001;
    if by_instruction {
        // SAFETY: the caller's promise.
        unsafe { asm!("wrgsbase {}", in(reg) base, options(att_syntax, nostack)) };
        return Ok(());
    }
    ask(158, ARCH_SET_GS, base, 0).map(drop)
}
