//! What we ask of the kernel about other processes. All `unsafe` of the monitor is here,
//! but for what must be done before `main` (`inherited`).
//!
//! A thread that was killed while we held it answers `ESRCH`; that is no error: the wait that
//! follows tells of its end. See [`gone_is_fine`].

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, c_uint, c_void, pid_t};

use crate::foreign_file::path_of;
use crate::inherited;

/// The general registers of a thread.
pub type Registers = libc::user_regs_struct;

/// The size of the kernel's signal sets (the C library's are larger).
const SIGSET_BYTES: usize = 8;

const PTRACE_GETSIGMASK: c_uint = 0x420a;
const PTRACE_SETSIGMASK: c_uint = 0x420b;

/// What every thread that we trace reports.
const REPORTS: c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// A request whose two arguments are numbers.
fn request(request: c_uint, tid: pid_t, address: usize, data: usize) -> io::Result<i64> {
    // SAFETY: callers in this file use requests for which the kernel takes both as numbers.
    let result = unsafe { libc::ptrace(request, tid, address, data) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// Begins to trace a thread without stopping it. With `until_we_end` it is killed when we are.
pub fn seize(tid: pid_t, until_we_end: bool) -> io::Result<()> {
    let kill = if until_we_end {
        libc::PTRACE_O_EXITKILL
    } else {
        0
    };
    request(libc::PTRACE_SEIZE, tid, 0, (REPORTS | kill) as usize).map(drop)
}

/// Makes a traced thread stop.
pub fn interrupt(tid: pid_t) -> io::Result<()> {
    gone_is_fine(request(libc::PTRACE_INTERRUPT, tid, 0, 0).map(drop))
}

/// How a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Until anything happens but a system call.
    Free,
    /// Until it begins or ends a system call, or anything else happens.
    ToSystemCall,
    /// One instruction; or none, up to the beginning of a signal handler.
    Step,
    /// It stays stopped by job control, but reports what comes.
    Listen,
}

/// Lets a thread go on, with a signal unless that is 0.
pub fn resume(tid: pid_t, pace: Pace, signal: c_int) -> io::Result<()> {
    let how = match pace {
        Pace::Free => libc::PTRACE_CONT,
        Pace::ToSystemCall => libc::PTRACE_SYSCALL,
        Pace::Step => libc::PTRACE_SINGLESTEP,
        Pace::Listen => libc::PTRACE_LISTEN,
    };
    gone_is_fine(request(how, tid, 0, signal as usize).map(drop))
}

/// Lets go of a thread for good.
pub fn detach(tid: pid_t, signal: c_int) -> io::Result<()> {
    gone_is_fine(request(libc::PTRACE_DETACH, tid, 0, signal as usize).map(drop))
}

/// A thread that has been killed under our hands is no error.
pub fn gone_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if is_gone(&error) => Ok(()),
        other => other,
    }
}

/// Does the error say that the thread was killed?
pub fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// The error that says so.
pub fn gone() -> io::Error {
    io::Error::from_raw_os_error(libc::ESRCH)
}

/// The registers of a stopped thread.
pub fn registers(tid: pid_t) -> io::Result<Registers> {
    // SAFETY: the structure is made of numbers, for which zeros are a value.
    let mut registers: Registers = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `user_regs_struct`, which is what we pass.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut registers) };
    answer(result)?;
    Ok(registers)
}

/// Sets the registers of a stopped thread.
pub fn set_registers(tid: pid_t, registers: &Registers) -> io::Result<()> {
    // SAFETY: the kernel reads one `user_regs_struct`, which is what we pass.
    let result = unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid, 0, ptr::from_ref(registers)) };
    answer(result)
}

fn answer(result: i64) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// What a signal that a thread stopped for says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalInfo {
    /// Which one it is.
    pub signal: c_int,
    /// Where it comes from: 128 for an `int3`.
    pub code: c_int,
}

/// Of a thread in a signal-delivery stop; `None` if it is in another kind of stop.
pub fn signal_info(tid: pid_t) -> Option<SignalInfo> {
    // SAFETY: the structure is made of numbers, for which zeros are a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `siginfo_t`, which is what we pass.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0, &raw mut info) };
    answer(result).ok()?;
    Some(SignalInfo {
        signal: info.si_signo,
        code: info.si_code,
    })
}

/// All that a signal says of itself, to be given back later.
#[derive(Clone, Copy)]
pub struct WholeSignal(libc::siginfo_t);

impl std::fmt::Debug for WholeSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "signal {}", self.0.si_signo)
    }
}

impl WholeSignal {
    /// What its event says, if it is a perf event's.
    fn mark(&self) -> u64 {
        /// How far that is from the beginning.
        const MARK: usize = 24;
        let start = (&raw const self.0).cast::<u8>();
        // SAFETY: the structure has 128 bytes, all of which the kernel wrote.
        unsafe { start.add(MARK).cast::<u64>().read_unaligned() }
    }

    /// Does it come from what the thread itself did at this very instruction?
    pub fn is_fault(&self) -> bool {
        let faults = [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGTRAP,
        ];
        self.0.si_code > 0 && faults.contains(&self.0.si_signo)
    }

    /// Which one it is.
    pub fn number(&self) -> c_int {
        self.0.si_signo
    }
}

/// Of a thread in a signal-delivery stop.
pub fn whole_signal(tid: pid_t) -> io::Result<WholeSignal> {
    // SAFETY: the structure is made of numbers, for which zeros are a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `siginfo_t`, which is what we pass.
    answer(unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0, &raw mut info) })?;
    Ok(WholeSignal(info))
}

/// Makes a thread in a signal-delivery stop believe that it stopped for this signal.
pub fn set_whole_signal(tid: pid_t, signal: &WholeSignal) -> io::Result<()> {
    // SAFETY: the kernel reads one `siginfo_t`, which is what we pass.
    answer(unsafe { libc::ptrace(libc::PTRACE_SETSIGINFO, tid, 0, &raw const signal.0) })
}

/// Changes the address that a signal speaks of, if it is `from`: faults say where they happened.
pub fn correct_signal_address(tid: pid_t, from: u64, to: u64) -> io::Result<()> {
    // SAFETY: the structure is made of numbers, for which zeros are a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `siginfo_t`, which is what we pass.
    answer(unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0, &raw mut info) })?;
    // SAFETY: reads the field that all faults have; for others it is some number.
    if info.si_code <= 0 || unsafe { info.si_addr() } as u64 != from {
        return Ok(());
    }
    const ADDRESS: usize = 16; // behind signal, error, code and padding
    // SAFETY: the structure has 128 bytes, and the address is a word of it.
    unsafe {
        let place = (&raw mut info).cast::<u8>().add(ADDRESS).cast::<u64>();
        place.write_unaligned(to);
    }
    // SAFETY: the kernel reads one `siginfo_t`, which is what we pass.
    answer(unsafe { libc::ptrace(libc::PTRACE_SETSIGINFO, tid, 0, &raw const info) })
}

/// The signals that a stopped thread blocks; bit 0 is signal 1.
pub fn blocked_signals(tid: pid_t) -> io::Result<u64> {
    let mut set = 0_u64;
    // SAFETY: the kernel writes as many bytes as we say the set has.
    let result = unsafe { libc::ptrace(PTRACE_GETSIGMASK, tid, SIGSET_BYTES, &raw mut set) };
    answer(result)?;
    Ok(set)
}

/// Sets the signals that a stopped thread blocks.
pub fn set_blocked_signals(tid: pid_t, set: u64) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as we say the set has.
    let result = unsafe { libc::ptrace(PTRACE_SETSIGMASK, tid, SIGSET_BYTES, &raw const set) };
    answer(result)
}

/// The number that comes with an event: of a new thread, or of the one that ran `exec`.
pub fn event_message(tid: pid_t) -> io::Result<u64> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one unsigned long, which is what we pass.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message) };
    answer(result)?;
    Ok(message)
}

/// Where in a system call a stopped thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It stopped for something else.
    Elsewhere,
    /// About to begin one.
    Begin,
    /// At the end of one.
    End,
}

/// Where in a system call a stopped thread is.
pub fn system_call_phase(tid: pid_t) -> io::Result<Phase> {
    let mut info = [0_u8; 88];
    // SAFETY: the kernel writes at most as many bytes as we say there are.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_GET_SYSCALL_INFO,
            tid,
            info.len(),
            info.as_mut_ptr(),
        )
    };
    answer(result)?;
    Ok(match info[0] {
        libc::PTRACE_SYSCALL_INFO_ENTRY => Phase::Begin,
        libc::PTRACE_SYSCALL_INFO_EXIT => Phase::End,
        _ => Phase::Elsewhere,
    })
}

/// Waits for one thread, or with -1 for any. `None`: there is none to wait for. An interruption
/// by a signal is an error of kind `Interrupted`.
pub fn wait(tid: pid_t) -> io::Result<Option<(pid_t, c_int)>> {
    wait_with(tid, 0)
}

/// The same for something that has happened already: `None` if nothing has.
pub fn look(tid: pid_t) -> io::Result<Option<(pid_t, c_int)>> {
    wait_with(tid, libc::WNOHANG)
}

/// Lets others run.
pub fn give_way() {
    // SAFETY: takes nothing.
    unsafe { libc::sched_yield() };
}

fn wait_with(tid: pid_t, options: c_int) -> io::Result<Option<(pid_t, c_int)>> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for an int, and the kernel keeps no pointer to it.
    let pid = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | options) };
    if pid > 0 {
        return Ok(Some((pid, status)));
    }
    if pid == 0 {
        return Ok(None);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ECHILD) => Ok(None),
        _ => Err(error),
    }
}

/// Sends a signal to a whole process.
pub fn kill(pid: pid_t, signal: c_int) {
    // SAFETY: takes numbers.
    unsafe { libc::kill(pid, signal) };
}

/// A child that waits, before it becomes another program, until [`Held::let_go`] is called.
pub struct Held {
    /// Its number.
    pub pid: pid_t,
    go: c_int,
    failed: c_int,
}

/// Forks a child that will run `command`: found along `PATH`, and handed to a shell if the kernel
/// does not know what it is; or `as_it_is`.
pub fn fork_and_hold(command: &[CString], as_it_is: bool) -> io::Result<Held> {
    let mut arguments: Vec<*const libc::c_char> =
        command.iter().map(|word| word.as_ptr()).collect();
    arguments.push(ptr::null());
    let [go_out, go_in] = pipe()?;
    let close_both = |_: &io::Error| [go_out, go_in].into_iter().for_each(close);
    let [failed_out, failed_in] = pipe().inspect_err(close_both)?;
    let waiting = inherited::take_waiting();
    // SAFETY: the child calls only functions that are safe after a fork, and never returns.
    match unsafe { libc::fork() } {
        -1 => {
            let error = io::Error::last_os_error();
            let all = [go_out, go_in, failed_out, failed_in];
            all.into_iter().for_each(close);
            waiting.give();
            Err(error)
        }
        0 => {
            waiting.give();
            inherited::give_back();
            // SAFETY: `arguments` ends with a null pointer and its strings outlive the call; the
            // descriptors are our own pipes.
            unsafe {
                libc::close(go_in);
                let mut byte = 0_u8;
                if libc::read(go_out, (&raw mut byte).cast(), 1) != 1 {
                    // Who made us has ended: nobody would count.
                    libc::_exit(125);
                }
                match as_it_is {
                    true => libc::execv(arguments[0], arguments.as_ptr()),
                    false => libc::execvp(arguments[0], arguments.as_ptr()),
                };
                let error = *libc::__errno_location();
                libc::write(failed_in, (&raw const error).cast(), size_of::<c_int>());
                libc::_exit(127)
            }
        }
        pid => {
            close(go_out);
            close(failed_in);
            Ok(Held {
                pid,
                go: go_in,
                failed: failed_out,
            })
        }
    }
}

impl Held {
    /// Lets the child become its program. The descriptor answers [`exec_failure`].
    pub fn let_go(self) -> c_int {
        // SAFETY: writes one byte of a living value to our own pipe.
        unsafe { libc::write(self.go, [1_u8].as_ptr().cast::<c_void>(), 1) };
        close(self.go);
        self.failed
    }
}

impl Held {
    /// Ends the child, which has done nothing.
    pub fn end(self) {
        kill(self.pid, libc::SIGKILL);
        while let Ok(Some((_, status))) = wait(self.pid) {
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                break;
            }
        }
        close(self.go);
        close(self.failed);
    }
}

/// Why the child could not become its program; `None` if it could. To be asked when it has.
pub fn exec_failure(descriptor: c_int) -> Option<io::Error> {
    let mut error: c_int = 0;
    // SAFETY: reads at most the size of an int into an int.
    let got = unsafe { libc::read(descriptor, (&raw mut error).cast(), size_of::<c_int>()) };
    close(descriptor);
    (got == size_of::<c_int>() as isize).then(|| io::Error::from_raw_os_error(error))
}

fn pipe() -> io::Result<[c_int; 2]> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two ints, which is what we pass.
    match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } {
        0 => Ok(ends),
        _ => Err(io::Error::last_os_error()),
    }
}

fn close(descriptor: c_int) {
    // SAFETY: only ever called once for a descriptor that this file opened.
    unsafe { libc::close(descriptor) };
}

/// A copy of a descriptor of another process, which must let us trace it.
pub fn take_descriptor(pid: pid_t, descriptor: c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let process = new_descriptor(process)?;
    // SAFETY: takes numbers; the first descriptor is open.
    let taken = unsafe {
        libc::syscall(
            libc::SYS_pidfd_getfd,
            process.as_raw_fd(),
            descriptor,
            0 as c_uint,
        )
    };
    new_descriptor(taken)
}

fn new_descriptor(answer: i64) -> io::Result<OwnedFd> {
    self::answer(answer)?;
    // SAFETY: the kernel has just made it for us, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as c_int) })
}

/// So many descriptors go into one message at most.
const MOST_SENT: usize = 3;

/// Room for a control message with that many: a header of 16 bytes, and the numbers, rounded up.
const CONTROL_WORDS: usize = 2 + MOST_SENT.div_ceil(2);

/// Sends descriptors of files through a socket, three at most.
pub fn send_descriptors(socket: &impl AsRawFd, files: &[&File]) -> io::Result<()> {
    let numbers: Vec<c_int> = files.iter().map(|it| it.as_raw_fd()).collect();
    let bytes = size_of_val(numbers.as_slice()) as c_uint;
    if numbers.len() > MOST_SENT {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut byte = 0_u8;
    let mut stretch = one_byte(&mut byte);
    let mut control = [0_u64; CONTROL_WORDS];
    let mut message = message(&mut stretch, &mut control);
    // SAFETY: computes a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(bytes) } as usize;
    // SAFETY: `control` is aligned for a header, and has room for it and for all numbers.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(bytes) as usize;
        let place = libc::CMSG_DATA(header).cast::<c_int>();
        for (index, number) in numbers.iter().enumerate() {
            place.add(index).write_unaligned(*number);
        }
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: all that the message points to lives until the call is over.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    answer(sent as i64)
}

/// Receives what [`send_descriptors`] sent. None: whoever sends has gone.
pub fn receive_descriptors(socket: &impl AsRawFd) -> io::Result<Vec<File>> {
    let mut byte = 0_u8;
    let mut stretch = one_byte(&mut byte);
    let mut control = [0_u64; CONTROL_WORDS];
    let mut message = message(&mut stretch, &mut control);
    let flags = libc::MSG_CMSG_CLOEXEC;
    // SAFETY: all that the message points to lives until the call is over.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    answer(received as i64)?;
    let mut files = Vec::new();
    // SAFETY: the kernel has written a control message of this form, or says that there is none;
    // the descriptors in it are ours from now on, and nobody else knows their numbers.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
            let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
            let place = libc::CMSG_DATA(header).cast::<c_int>();
            for index in 0..bytes / size_of::<c_int>() {
                files.push(File::from_raw_fd(place.add(index).read_unaligned()));
            }
        }
    }
    Ok(files)
}

fn one_byte(byte: &mut u8) -> libc::iovec {
    libc::iovec {
        iov_base: ptr::from_mut(byte).cast(),
        iov_len: 1,
    }
}

fn message(stretch: &mut libc::iovec, control: &mut [u64; CONTROL_WORDS]) -> libc::msghdr {
    // SAFETY: the structure is made of numbers and pointers, for which zeros are a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = stretch;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(control);
    message
}

/// Which user a socket leads to.
pub fn peer_user(socket: &impl AsRawFd) -> io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: writes one `ucred`, which is what it is passed.
    let asked = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    answer(i64::from(asked))?;
    Ok(peer.uid)
}

/// Where `rip` is among the words that `PTRACE_PEEKUSER` reads.
const RIP: usize = std::mem::offset_of!(Registers, rip);

/// The address of a stopped thread's next instruction.
pub fn instruction_pointer(tid: pid_t) -> io::Result<u64> {
    // -1 would be an answer like any other, were it a canonical address.
    request(libc::PTRACE_PEEKUSER, tid, RIP, 0).map(|word| word as u64)
}

/// Makes a stopped thread go on somewhere else.
pub fn set_instruction_pointer(tid: pid_t, address: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEUSER, tid, RIP, address as usize).map(drop)
}

/// Makes a file that long, and its place on the disk sure.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    allocate_part(file, 0, bytes)
}

/// The same for a part of it.
pub fn allocate_part(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    let number = |it| i64::try_from(it).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG));
    let (from, length) = (number(from)?, number(bytes)?);
    loop {
        // SAFETY: takes numbers; the descriptor is open.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), from, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// The bytes of a program's file, or of its debug information, as memory.
pub fn map_file(file: &File) -> io::Result<headcount_binary::FileBytes> {
    // SAFETY: the file is one that is executed, which the kernel lets nobody write to; a library
    // that is written to in place breaks its program before it breaks us. Debug information by
    // build-id is the system's, which replaces files and does not change them.
    let bytes = unsafe { memmap2::Mmap::map(file) }?;
    Ok(std::sync::Arc::new(bytes))
}

/// The bytes of a file, as memory.
pub fn map_shared(file: &File) -> io::Result<memmap2::MmapMut> {
    // SAFETY: the file is new, for the user alone, and only ever made longer by us.
    unsafe { memmap2::MmapMut::map_mut(file) }
}

/// A signal that we took.
#[derive(Clone, Copy, Debug)]
pub struct Caught {
    pub signal: c_int,
    /// It comes from the terminal, not from another process.
    pub from_kernel: bool,
}

fn set_of(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: `sigemptyset` makes a value of it.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes to a set of ours.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in signals {
        // SAFETY: writes to a set of ours.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

/// Keeps signals from ending this process, so that [`next_signal`] can take them.
pub fn block_signals(signals: &[c_int]) {
    let set = set_of(signals);
    // SAFETY: reads a set of ours; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
}

/// Lets signals come again.
pub fn unblock_signals(signals: &[c_int]) {
    let set = set_of(signals);
    // SAFETY: reads a set of ours; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut()) };
}

/// Makes a process like this one, and answers with its number; `None` in the new one. To be called
/// before there are other threads: they would be missing there.
pub fn fork() -> io::Result<Option<pid_t>> {
    // SAFETY: with one thread, the child has everything that this process has.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Makes this process get a signal when its parent ends, but none that is meant for the parent's
/// job or for all of the parent's name. `false`: the parent has ended already.
pub fn outlive_parent(name: &CStr, signal: c_int, parent: u32) -> bool {
    // SAFETY: takes numbers, and a string that ends with a zero.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        libc::prctl(libc::PR_SET_PDEATHSIG, signal);
        libc::getppid() == parent as pid_t
    }
}

/// Waits for one of these signals, which must be blocked. `None`: the time is over.
pub fn next_signal(signals: &[c_int], within: Option<std::time::Duration>) -> Option<Caught> {
    let set = set_of(signals);
    // SAFETY: the structure is made of numbers, for which zeros are a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let time = within.map(|within| libc::timespec {
        tv_sec: within.as_secs() as libc::time_t,
        tv_nsec: within.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    loop {
        // SAFETY: `set` and `time` are ours and live; the kernel writes one `siginfo_t`.
        let signal = unsafe { libc::sigtimedwait(&raw const set, &raw mut info, time) };
        if signal > 0 {
            let from_kernel = info.si_code > 0;
            return Some(Caught {
                signal,
                from_kernel,
            });
        }
        if io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN) {
            return None;
        }
    }
}

/// What is called when a signal comes.
static ANSWER: OnceLock<fn(Caught)> = OnceLock::new();

extern "C" fn hear(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: it is this thread's own, which the interrupted code may be about to look at.
    let number = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes one that lives until we return.
    let from_kernel = unsafe { (*info).si_code > 0 };
    if let Some(answer) = ANSWER.get() {
        answer(Caught {
            signal,
            from_kernel,
        });
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = number };
}

/// Calls `answer` whenever one of these signals comes, be it that they were blocked. It must do
/// nothing that a signal handler may not do. Waits end when a signal comes.
pub fn answer_signals(signals: &[c_int], answer: fn(Caught)) {
    ANSWER.get_or_init(|| answer);
    // SAFETY: the structure is made of numbers and pointers, for which zeros are a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = hear;
    action.sa_sigaction = handler as libc::sighandler_t;
    // Without SA_RESTART, so that waits end.
    action.sa_flags = libc::SA_SIGINFO;
    for signal in signals {
        // SAFETY: the handler makes system calls, and writes to what only it and atomics know.
        unsafe { libc::sigaction(*signal, &raw const action, ptr::null_mut()) };
    }
    unblock_signals(signals);
}

/// Sends this process SIGALRM after a time, and then again and again; `None`: no more.
pub fn alarm(first: Option<std::time::Duration>, then: std::time::Duration) {
    let time = |it: std::time::Duration| libc::timeval {
        tv_sec: it.as_secs() as libc::time_t,
        tv_usec: it.subsec_micros().into(),
    };
    // Nothing at all would be never.
    let first = first.map(|it| it.max(std::time::Duration::from_micros(1)));
    let timer = libc::itimerval {
        it_value: time(first.unwrap_or_default()),
        it_interval: time(then),
    };
    // SAFETY: reads what it is passed; the old one is not asked for.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}

/// Milliseconds since some moment in the past. (A signal handler may ask.)
pub fn milliseconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one `timespec`, which is what it is passed.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Nanoseconds that the threads of a process have been on processors.
pub fn time_on_processors(pid: pid_t) -> io::Result<u64> {
    /// Of all threads, what the scheduler knows.
    const SCHEDULED: c_int = 2;
    let clock = (!pid << 3) | SCHEDULED;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills in what it is given.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Is in what a signal of a clock of ours says of itself: those of others are the program's business.
pub const CLOCK_MARK: u64 = 0x6865_6164_636f_756e;

/// Are there clocks that stop threads? Until then, nobody need be asked where a SIGTRAP comes from.
static CLOCKS: AtomicBool = AtomicBool::new(false);

/// From now on, there are clocks that stop threads.
pub fn there_are_clocks() {
    CLOCKS.store(true, Ordering::Relaxed);
}

/// Did a clock of ours stop a thread with SIGTRAP?
pub fn is_of_clock(tid: pid_t) -> bool {
    /// `si_code` of a signal that a perf event sends.
    const FROM_PERF: c_int = 6;
    let is_it = |it: WholeSignal| it.0.si_code == FROM_PERF && it.mark() == CLOCK_MARK;
    CLOCKS.load(Ordering::Relaxed) && whole_signal(tid).is_ok_and(is_it)
}

/// Ends this process, whatever it is doing. What it traces is ended with it.
pub fn end_now(status: c_int) -> ! {
    // SAFETY: takes a number.
    unsafe { libc::_exit(status) }
}

/// What `wait` told, or would tell, of a thread that stands still; `None` if it does not.
pub fn stop_status(tid: pid_t) -> Option<c_int> {
    instruction_pointer(tid).ok()?;
    let SignalInfo { signal, code } = signal_info(tid)?;
    // Events and system calls are in the code of a signal that nobody sent.
    let is_event = code > 0xff && code & 0xff == signal;
    let is_call = signal == libc::SIGTRAP && code == libc::SIGTRAP | 0x80;
    let reason = match is_event || is_call {
        true => code,
        false => signal,
    };
    Some((reason << 8) | 0x7f)
}

/// Sends a signal to one thread.
pub fn kill_thread(pid: pid_t, tid: pid_t, signal: c_int) {
    // SAFETY: takes numbers.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) };
}

/// So many descriptors are kept for what is only opened for a moment.
const SPARE_DESCRIPTORS: u64 = 16;

/// May the spare ones be used, too?
static USES_SPARE: AtomicBool = AtomicBool::new(false);

/// From now on, the spare descriptors are there to be used.
pub fn use_spare_descriptors() {
    USES_SPARE.store(true, Ordering::Relaxed);
}

/// Does a file that stays open leave enough descriptors for what is opened for a moment? Those who
/// open that must not fail.
pub fn check_descriptor(file: &File) -> io::Result<()> {
    let highest = descriptor_limit().saturating_sub(SPARE_DESCRIPTORS);
    match (file.as_raw_fd() as u64) < highest || USES_SPARE.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::EMFILE)),
    }
}

/// The number of the calling thread.
pub fn thread_number() -> pid_t {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

/// A limit of an address space, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressLimit {
    /// The one that is in force.
    pub soft: u64,
    /// What the other may be raised to.
    pub hard: u64,
}

impl AddressLimit {
    /// As the kernel writes it.
    pub fn to_bytes(self) -> [u8; 16] {
        let both = u128::from(self.soft) | u128::from(self.hard) << 64;
        both.to_le_bytes()
    }

    /// As the kernel reads it.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self {
            soft: both as u64,
            hard: (both >> 64) as u64,
        }
    }
}

/// The limit of a process's address space.
pub fn address_limit(pid: pid_t) -> io::Result<AddressLimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one structure, which is ours.
    let result = unsafe { libc::prlimit(pid, libc::RLIMIT_AS, ptr::null(), &raw mut limit) };
    answer(result.into())?;
    Ok(AddressLimit {
        soft: limit.rlim_cur,
        hard: limit.rlim_max,
    })
}

/// Sets it.
pub fn set_address_limit(pid: pid_t, limit: AddressLimit) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: limit.soft,
        rlim_max: limit.hard,
    };
    // SAFETY: the kernel reads one structure.
    let result = unsafe { libc::prlimit(pid, libc::RLIMIT_AS, &raw const limit, ptr::null_mut()) };
    answer(result.into())
}

/// Whom the kernel takes this process for.
pub fn user() -> u32 {
    // SAFETY: it only asks.
    unsafe { libc::geteuid() }
}

/// Where a path leads that begins at a folder and does not leave it, whatever links are on the way.
/// What is there is not opened yet.
pub fn place_below(folder: &File, path: &std::path::Path) -> io::Result<File> {
    use std::os::unix::ffi::OsStrExt;
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: all zeros is one.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: the path ends in NUL, and the kernel reads one structure, which is ours.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            folder.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    new_descriptor(answer).map(File::from)
}

/// How many files this process may have open.
pub fn most_files() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one structure, which is ours.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// An attribute of a file, if it has it. Those that we ask for are short.
pub fn extended_attribute(path: &str, name: &CStr) -> Option<Vec<u8>> {
    let path = CString::new(path).ok()?;
    let mut value = vec![0_u8; 64];
    let room = value.as_mut_ptr().cast();
    // SAFETY: reads two strings that end with a zero, and writes no more than there is room for.
    let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), room, value.len()) };
    value.truncate(usize::try_from(length).ok()?);
    Some(value)
}

/// Is a file on a disk whose programs get no rights from their files (`nosuid`)?
pub fn ignores_set_user_id(path: &str) -> bool {
    let Ok(path) = CString::new(path) else {
        return false;
    };
    let mut about = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: reads a string that ends with a zero; the kernel writes one structure, which is ours.
    let result = unsafe { libc::statvfs(path.as_ptr(), about.as_mut_ptr()) };
    // SAFETY: numbers alone, for which zeros are good as well.
    let about = unsafe { about.assume_init() };
    result == 0 && about.f_flag & libc::ST_NOSUID != 0
}

/// May we write to this file, whatever it was opened for?
pub fn may_write(file: &File) -> bool {
    let path = CString::new(path_of(file).into_os_string().into_vec());
    let path = path.expect("a number has no zero byte");
    let flags = libc::AT_EACCESS;
    // SAFETY: reads a string that ends with a zero.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, flags) == 0 }
}

/// Takes a lease on a file: before anybody opens it to write to it, or cuts it off, a thread of
/// ours gets SIGIO, and they wait until [`end_lease`].
pub fn lease(file: &File, teller: pid_t) -> io::Result<()> {
    tell_thread(file, teller)?;
    // SAFETY: takes numbers; the descriptor is open.
    let leased = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
    answer(leased.into())
}

/// From now on, this thread gets SIGIO whenever there is something to be read from a socket.
pub fn signal_when_ready(socket: &impl AsRawFd) -> io::Result<()> {
    tell_thread(socket, thread_number())?;
    let flags = libc::O_ASYNC | libc::O_NONBLOCK;
    // SAFETY: takes numbers; the descriptor is open.
    let set = unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_SETFL, flags) };
    answer(set.into())
}

/// The thread that gets SIGIO on account of a descriptor.
fn tell_thread(descriptor: &impl AsRawFd, tid: pid_t) -> io::Result<()> {
    /// `struct f_owner_ex` of the kernel.
    #[repr(C)]
    struct Owner {
        kind: c_int,
        pid: pid_t,
    }
    const F_SETOWN_EX: c_int = 15;
    const F_OWNER_TID: c_int = 0;
    let owner = Owner {
        kind: F_OWNER_TID,
        pid: tid,
    };
    // SAFETY: the kernel reads one structure of the form that it defines.
    let told = unsafe { libc::fcntl(descriptor.as_raw_fd(), F_SETOWN_EX, &raw const owner) };
    answer(told.into())
}

/// Does somebody wait until a lease ends?
pub fn is_lease_wanted(file: &File) -> bool {
    // SAFETY: takes numbers; the descriptor is open.
    let lease = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) };
    lease == libc::F_UNLCK
}

/// Ends a lease.
pub fn end_lease(file: &File) {
    // SAFETY: takes numbers; the descriptor is open.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
}

/// The bytes of a file with a lease, as memory.
pub fn map_leased(file: &File) -> io::Result<memmap2::Mmap> {
    // SAFETY: as long as there is the lease, nobody writes to the file; before it ends,
    // `replace_mapping` puts a copy in its place that nobody else knows.
    unsafe { memmap2::Mmap::map(file) }
}

/// Maps a file with the same bytes where another is mapped; without one, zeros.
pub fn replace_mapping(mapped: &memmap2::Mmap, file: Option<&File>) {
    let (flags, descriptor) = match file {
        Some(file) => (libc::MAP_PRIVATE, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    let place = mapped.as_ptr().cast_mut().cast::<c_void>();
    // SAFETY: the range is that of a mapping of ours which lives, for reading only; whoever reads
    // there finds readable memory before, meanwhile and after.
    unsafe {
        libc::mmap(
            place,
            mapped.len(),
            libc::PROT_READ,
            flags | libc::MAP_FIXED,
            descriptor,
            0,
        )
    };
}

/// A file in memory that has no name.
pub fn memory_file() -> io::Result<File> {
    let name = c"headcount";
    // SAFETY: reads a string that ends with a zero.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    match descriptor {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the descriptor is open, and nobody else has it.
        number => Ok(unsafe { File::from_raw_fd(number) }),
    }
}

fn descriptor_limit() -> u64 {
    static LIMIT: OnceLock<u64> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: writes one `rlimit`, which is what it is passed.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        limit.rlim_cur
    })
}

/// May we reach into the memory of processes that hide it?
pub fn may_trace_anybody() -> bool {
    const CAP_SYS_PTRACE: u32 = 19;
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| {
        let effective = crate::proc::capabilities(std::process::id() as pid_t);
        effective & (1 << CAP_SYS_PTRACE) != 0
    })
}
