//! How was a function's execution counted before there was anything better?
//!
//! Two tracers of a page each, for headcount's breakpoints to be held against.
//! They share nothing with headcount, count one address of a program with one
//! thread, and waste no system call: what they cost is what the method costs.
//!
//! - *int3*: a breakpoint at the address. When it is hit: count, put the
//!   original byte back, step over the instruction, put the breakpoint in
//!   again, go on. Two stops a hit.
//! - *step*: one stop for each instruction of the program, and a look at where
//!   it is.

use std::ffi::c_void;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use nix::libc;
use nix::sys::ptrace::{self, AddressType};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    Int3,
    Step,
}

/// Runs a program and says how often it came to `address`.
pub fn count(method: Method, address: u64, program: &Path, argument: &str) -> Result<u64> {
    let mut command = Command::new(program);
    command.arg(argument);
    // SAFETY: ptrace(PTRACE_TRACEME) is one system call; nothing is allocated or locked between
    // fork and exec.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(io::Error::from)) };
    let child = command.spawn()?;
    let pid = Pid::from_raw(child.id().cast_signed());
    ensure!(!has_ended(pid)?, "it did not start");
    ptrace::setoptions(pid, ptrace::Options::PTRACE_O_EXITKILL)?;
    match method {
        Method::Int3 => by_breakpoint(pid, address),
        Method::Step => by_steps(pid, address),
    }
}

fn by_breakpoint(pid: Pid, address: u64) -> Result<u64> {
    let place = address as *mut c_void;
    let original = ptrace::read(pid, place)?;
    let with_int3 = original & !0xff | 0xcc;
    let mut hits = 0;
    ptrace::write(pid, place, with_int3)?;
    ptrace::cont(pid, None)?;
    while !has_ended(pid)? {
        let at = next_instruction(pid)?;
        ensure!(at == address + 1, "stopped at {at:#x}, not at a breakpoint");
        hits += 1;
        ptrace::write(pid, place, original)?;
        go_to(pid, address)?;
        ptrace::step(pid, None)?;
        ensure!(!has_ended(pid)?, "it ended where it was counted");
        ptrace::write(pid, place, with_int3)?;
        ptrace::cont(pid, None)?;
    }
    Ok(hits)
}

fn by_steps(pid: Pid, address: u64) -> Result<u64> {
    let mut hits = 0;
    ptrace::step(pid, None)?;
    while !has_ended(pid)? {
        hits += u64::from(next_instruction(pid)? == address);
        ptrace::step(pid, None)?;
    }
    Ok(hits)
}

/// Waits for the next stop, or the end.
fn has_ended(pid: Pid) -> Result<bool> {
    match waitpid(pid, None)? {
        WaitStatus::Stopped(_, Signal::SIGTRAP) => Ok(false),
        WaitStatus::Exited(_, 0) => Ok(true),
        other => bail!("the program is not as expected: {other:?}"),
    }
}

/// Where the kernel keeps the address of the next instruction.
const RIP: AddressType = (libc::RIP as usize * size_of::<usize>()) as AddressType;

fn next_instruction(pid: Pid) -> Result<u64> {
    Ok(ptrace::read_user(pid, RIP)?.cast_unsigned())
}

fn go_to(pid: Pid, address: u64) -> Result<()> {
    Ok(ptrace::write_user(pid, RIP, address.cast_signed())?)
}
