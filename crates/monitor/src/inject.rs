//! A system call in the name of another process: that is how memory near its code is had.

use std::io;
use std::sync::LazyLock;

use headcount_model::LoadAddr;
use libc::{c_int, pid_t};

use crate::address_limit::Lifted;
use crate::kernel::{self, Pace, Phase, Registers};
use crate::memory::Memory;
use crate::proc;
use crate::wait::{Event, Stop, Stopped, put_back, wait_for_one};

/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// All signals but the one that stops, the one that kills, and the one that traps.
const BLOCK_ALL: u64 = !(1 << (libc::SIGTRAP - 1));

/// Makes a stopped thread do a system call, and answers with its result. Everything else about the
/// thread is as before.
///
/// A program that filters its own system calls is not asked: it might be killed for it. The answer
/// is `-EPERM` then.
///
/// `at` is code that no thread of the process runs meanwhile: the place is borrowed for the two
/// bytes of a `syscall` instruction. The thread must not be at the beginning of a system call.
pub fn system_call(
    stopped: Stopped,
    memory: &Memory,
    at: LoadAddr,
    number: i64,
    arguments: [u64; 6],
) -> io::Result<(Stopped, i64)> {
    if has_own_filters(&stopped) {
        return Ok((stopped, -i64::from(libc::EPERM)));
    }
    let before = stopped.registers()?;
    let blocked = stopped.blocked_signals()?;
    let mut code = [0; 2];
    memory.read(at, &mut code)?;

    let mut borrowed = before;
    borrowed.rip = at.0;
    borrowed.rax = number as u64;
    // Else the kernel takes it for the end of a call that is to be begun again.
    borrowed.orig_rax = u64::MAX;
    let [first, second, third, fourth, fifth, sixth] = arguments;
    (borrowed.rdi, borrowed.rsi, borrowed.rdx) = (first, second, third);
    (borrowed.r10, borrowed.r8, borrowed.r9) = (fourth, fifth, sixth);

    let lifted = Lifted::of(stopped.tid(), number);
    let mut late = Vec::new();
    let made = memory
        .write(at, &SYSCALL)
        .and_then(|()| stopped.set_registers(&borrowed))
        .and_then(|()| stopped.set_blocked_signals(BLOCK_ALL))
        .and_then(|()| run_to(stopped, Phase::Begin, &before, &mut late))
        .and_then(|stopped| run_to(stopped, Phase::End, &before, &mut late));
    let made = made.and_then(|stopped| Ok((stopped.registers()?.rax as i64, stopped)));
    // Whatever came of it: the memory and the limit may be another's, too, who lives on.
    if let Some(lifted) = lifted {
        let failed = -i64::from(libc::ESRCH);
        let answer = made.as_ref().map_or(failed, |(answer, _)| *answer);
        lifted.put_back(number, arguments, answer);
    }
    memory.write(at, &code)?;
    let (result, stopped) = made?;

    let stopped = if to_be_restarted(&before) {
        // The kernel looks for calls to begin again only on its way out of a stop like this.
        let tid = stopped.tid();
        kernel::interrupt(tid)?;
        stopped.resume(Pace::ToSystemCall, 0)?;
        stop_of(tid, &before, &mut late, |stop| stop == Stop::Interrupted)?
    } else {
        stopped
    };
    stopped.set_registers(&before)?;
    stopped.set_blocked_signals(blocked)?;
    let process = proc::process_of(stopped.tid()).unwrap_or(stopped.tid());
    for signal in late {
        kernel::kill_thread(process, stopped.tid(), signal);
    }
    Ok((stopped, result))
}

/// The same for a thread that the caller keeps.
pub fn call(
    stopped: &Stopped,
    memory: &Memory,
    at: LoadAddr,
    number: i64,
    arguments: [u64; 6],
) -> io::Result<i64> {
    let (_, result) = system_call(stopped.lent(), memory, at, number, arguments)?;
    Ok(result)
}

/// What a system call answered.
pub fn result(answer: i64) -> io::Result<u64> {
    match answer {
        -4095..0 => Err(io::Error::from_raw_os_error(-answer as i32)),
        answer => Ok(answer as u64),
    }
}

/// Does a thread filter its system calls more than we do? (A container may have filters for all.)
pub fn has_own_filters(stopped: &Stopped) -> bool {
    static OURS: LazyLock<u32> = LazyLock::new(|| proc::filters(std::process::id() as pid_t));
    proc::filters(stopped.tid()) > *OURS
}

/// Was the thread taken out of a system call that goes on by itself?
pub fn to_be_restarted(registers: &Registers) -> bool {
    const RESTART: std::ops::RangeInclusive<i64> = -516..=-512; // ERESTARTSYS and its kin
    registers.orig_rax as i64 >= 0 && RESTART.contains(&(registers.rax as i64))
}

fn run_to(
    mut stopped: Stopped,
    phase: Phase,
    before: &Registers,
    late: &mut Vec<c_int>,
) -> io::Result<Stopped> {
    loop {
        let tid = stopped.tid();
        stopped.resume(Pace::ToSystemCall, 0)?;
        stopped = stop_of(tid, before, late, |stop| {
            matches!(
                stop,
                Stop::SystemCall | Stop::Interrupted | Stop::JobControl
            )
        })?;
        if stopped.system_call_phase()? == phase {
            return Ok(stopped);
        }
    }
}

/// Waits for a stop. A thread that is killed meanwhile shows that again to whoever waits next, with
/// the registers it had before. Signals that cannot be blocked, SIGSTOP above all, come too early.
fn stop_of(
    tid: pid_t,
    before: &Registers,
    late: &mut Vec<c_int>,
    wanted: impl Fn(Stop) -> bool,
) -> io::Result<Stopped> {
    loop {
        match wait_for_one(tid)? {
            Event::Stop(stopped, stop) if wanted(stop) => return Ok(stopped),
            Event::Stop(stopped, Stop::Dying) => {
                stopped.set_registers(before)?;
                put_back(Event::Stop(stopped, Stop::Dying));
                return Err(kernel::gone());
            }
            Event::Stop(stopped, Stop::Signal(signal)) => {
                late.push(signal);
                stopped.resume(Pace::ToSystemCall, 0)?;
            }
            Event::Stop(stopped, _) => stopped.resume(Pace::ToSystemCall, 0)?,
            Event::Ended(tid, ending) => {
                put_back(Event::Ended(tid, ending));
                return Err(kernel::gone());
            }
        }
    }
}

/// Memory to execute, at the first of these places that is free; `None` if none is.
pub fn map_code(
    stopped: Stopped,
    memory: &Memory,
    at: LoadAddr,
    places: &[u64],
    size: u64,
) -> io::Result<(Stopped, Option<LoadAddr>)> {
    let mut stopped = stopped;
    for place in places {
        let arguments = code_arguments(*place, size);
        let (back, result) = system_call(stopped, memory, at, libc::SYS_mmap, arguments)?;
        stopped = back;
        if result as u64 == *place {
            return Ok((stopped, Some(LoadAddr(*place))));
        }
    }
    Ok((stopped, None))
}

/// What `mmap` is told for memory to execute at a place, unless something is there.
pub fn code_arguments(place: u64, size: u64) -> [u64; 6] {
    const FLAGS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let protection = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    [place, size, protection, FLAGS as u64, u64::MAX, 0]
}

/// Gives memory back.
pub fn unmap(
    stopped: &Stopped,
    memory: &Memory,
    at: LoadAddr,
    place: LoadAddr,
    size: u64,
) -> io::Result<()> {
    let arguments = [place.0, size, 0, 0, 0, 0];
    call(stopped, memory, at, libc::SYS_munmap, arguments).map(drop)
}
