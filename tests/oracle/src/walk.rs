//! One thread, step by step from its very first instruction, whatever module it is in.

use std::io;
use std::ops::ControlFlow;
use std::process::Command;

use nix::libc;
use nix::libc::user_regs_struct;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::count::start;
use crate::tracee::{self, News};

/// Registers with their names; the trap flag is the stepper's, and left out.
pub type Registers = [(&'static str, u64); 18];

fn named(it: &user_regs_struct) -> Registers {
    let flags = it.eflags & !0x100;
    [
        ("rip", it.rip),
        ("rsp", it.rsp),
        ("rax", it.rax),
        ("rbx", it.rbx),
        ("rcx", it.rcx),
        ("rdx", it.rdx),
        ("rsi", it.rsi),
        ("rdi", it.rdi),
        ("rbp", it.rbp),
        ("r8", it.r8),
        ("r9", it.r9),
        ("r10", it.r10),
        ("r11", it.r11),
        ("r12", it.r12),
        ("r13", it.r13),
        ("r14", it.r14),
        ("r15", it.r15),
        ("flags", flags),
    ]
}

/// Steps through a command of one thread. Before each instruction, `look` is told how many were
/// executed so far, and what the registers are; when it breaks, the command is killed. An instruction
/// that repeats itself is one.
pub fn walk(
    command: &mut Command,
    mut look: impl FnMut(u64, &Registers) -> ControlFlow<()>,
) -> io::Result<()> {
    let pid = Pid::from_raw(start(command)?.id() as libc::pid_t);
    let mut executed = 0;
    // The first stop is that of the new program.
    let mut last: Option<user_regs_struct> = None;
    let mut signal = 0;
    loop {
        match tracee::wait()? {
            Some((_, News::Signal(libc::SIGTRAP))) => {
                let now = ptrace::getregs(pid)?;
                let is_step = last.is_some_and(|last| signal == 0 && is_done(pid, &last, &now));
                executed += u64::from(is_step);
                signal = 0;
                last = Some(now);
                if look(executed, &named(&now)).is_break() {
                    ptrace::kill(pid)?;
                    tracee::wait()?;
                    return Ok(());
                }
            }
            Some((_, News::Signal(other))) => signal = other,
            Some((_, News::Ended(_))) | None => return Ok(()),
            Some(_) => {}
        }
        let delivered = match signal {
            0 => None,
            signal => Some(Signal::try_from(signal)?),
        };
        ptrace::step::<Option<Signal>>(pid, delivered)?;
    }
}

/// Was an instruction executed between two stops, or only one round of one that repeats itself?
fn is_done(pid: Pid, last: &user_regs_struct, now: &user_regs_struct) -> bool {
    if last.rip != now.rip {
        return true;
    }
    let word = ptrace::read(pid, now.rip as ptrace::AddressType);
    let bytes = word.map_or([0; 8], i64::to_le_bytes);
    let repeats = bytes
        .iter()
        .take_while(|it| matches!(it, 0x66 | 0xf2 | 0xf3));
    !(1..=2).contains(&repeats.count())
}

/// The registers of a process that is stopped, and that nobody traces.
pub fn registers_of(pid: i32) -> io::Result<Registers> {
    let pid = Pid::from_raw(pid);
    ptrace::attach(pid)?;
    nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::__WALL))?;
    let registers = ptrace::getregs(pid)?;
    ptrace::detach(pid, None)?;
    Ok(named(&registers))
}
