//! Steps through a program and counts.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;

use nix::libc;
use nix::sys::{ptrace, signal};
use nix::unistd::Pid;

use crate::image::{self, Image, Shut};
use crate::tracee::{self, News, Pace};

/// What a program did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How often each instruction of the main executable ran to completion, by link address.
    pub counts: BTreeMap<u64, u64>,
    /// The program's exit code, or 128 + the signal that killed it.
    pub status: i32,
    /// What it and its children wrote to standard output, if that was captured.
    pub stdout: Vec<u8>,
}

/// Runs a program with nothing on its standard input, and counts until it and all its children
/// have ended.
pub fn count<A: AsRef<OsStr>>(program: &Path, args: &[A]) -> io::Result<Outcome> {
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    count_command(&mut command)
}

/// Runs a command that was prepared elsewhere. Its standard output is captured if it is
/// [`Stdio::piped`].
pub fn count_command(command: &mut Command) -> io::Result<Outcome> {
    let outcome = count_within(command, u64::MAX)?;
    outcome.ok_or_else(|| io::Error::other("more steps than can be counted"))
}

/// As [`count_command`], for programs of which nobody knows how long they take: one that is not
/// done after so many steps, those in libraries included, is killed, and there is no outcome.
pub fn count_within(command: &mut Command, steps: u64) -> io::Result<Option<Outcome>> {
    let mut child = start(command)?;
    let root = Pid::from_raw(child.id() as libc::pid_t);
    let stdout = child.stdout.take().map(|mut pipe| {
        thread::spawn(move || {
            let mut all = Vec::new();
            pipe.read_to_end(&mut all).map(|_| all)
        })
    });
    let mut stepper = Stepper::new(root, steps);
    let is_done = stepper.run()?;
    let stdout = match stdout {
        Some(reader) => reader
            .join()
            .map_err(|_| io::Error::other("reading the program's output failed"))??,
        None => Vec::new(),
    };
    Ok(is_done.then_some(Outcome {
        counts: stepper.counts,
        status: stepper.status,
        stdout,
    }))
}

/// Starts a command that we trace.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    // SAFETY: ptrace(PTRACE_TRACEME) is one system call; nothing is allocated or locked between
    // fork and exec.
    unsafe { command.pre_exec(|| Ok(ptrace::traceme()?)) };
    command.spawn()
}

/// The first instructions of the main executable that a command executes, one after the other, as link
/// addresses. It is killed after so many.
pub fn first_steps(command: &mut Command, steps: usize) -> io::Result<Vec<u64>> {
    let root = start(command)?.id();
    let mut stepper = Stepper::new(Pid::from_raw(root as libc::pid_t), u64::MAX);
    stepper.order = Some(Vec::with_capacity(steps));
    stepper.run()?;
    Ok(stepper.order.unwrap_or_default())
}

/// Makes a command find everything at the same addresses each time it runs, and its children too.
pub fn at_fixed_addresses(command: &mut Command) {
    let fix = || {
        let persona = libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
        // SAFETY: personality(2) is one system call, and takes a number.
        match unsafe { libc::personality(persona) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: nothing is allocated or locked between fork and exec.
    unsafe { command.pre_exec(fix) };
}

/// A thread between two of our looks.
struct Thread {
    /// The main executable; `None` if the thread runs another program, which is not stepped.
    image: Option<Rc<Image>>,
    /// The instruction it was about to execute when we let it go.
    at: u64,
}

struct Stepper {
    root: Pid,
    program: PathBuf,
    threads: HashMap<Pid, Thread>,
    /// While the first thread has not come to the program's own code.
    shut: Option<Shut>,
    /// How many more steps may be made.
    steps_left: u64,
    counts: BTreeMap<u64, u64>,
    /// If that is asked for, what was counted, one after the other, until there is no more room.
    order: Option<Vec<u64>>,
    status: i32,
}

impl Stepper {
    fn new(root: Pid, steps: u64) -> Self {
        Self {
            root,
            program: PathBuf::new(),
            threads: HashMap::new(),
            shut: None,
            steps_left: steps,
            counts: BTreeMap::new(),
            order: None,
            status: 0,
        }
    }

    /// Until all have ended. `false`: that would take too many steps.
    fn run(&mut self) -> io::Result<bool> {
        self.begin()?;
        while let Some((pid, news)) = tracee::wait()? {
            let handled = match news {
                News::Ended(status) => {
                    self.end(pid, status);
                    Ok(())
                }
                News::Signal(signal) => self.stopped(pid, signal),
                News::Exec => self.runs_a_new_program(pid),
                News::Birth => self.has_offspring(pid),
                News::Dying => self.dies(pid),
            };
            match handled {
                // It was killed while we looked; `wait` will say so.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                other => other?,
            }
            if self.steps_left == 0 {
                self.kill_all();
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends every thread and process that is traced, and waits until they are gone. None of them
    /// has been waited for, so their numbers are nobody else's.
    fn kill_all(&self) {
        let kill = |pid: Pid| {
            let _ = signal::kill(pid, signal::Signal::SIGKILL);
        };
        self.threads.keys().copied().for_each(kill);
        while let Ok(Some((pid, news))) = tracee::wait() {
            match news {
                News::Ended(_) => {}
                News::Dying => {
                    let _ = tracee::resume(pid, Pace::Run, 0);
                }
                // A newborn that we have not seen yet, or a stop from before it was killed.
                _ => kill(pid),
            }
        }
    }

    /// The first stop comes when the program is loaded and has executed nothing.
    fn begin(&mut self) -> io::Result<()> {
        let Some((pid, News::Signal(libc::SIGTRAP))) = tracee::wait()? else {
            return Err(io::Error::other("the program did not start"));
        };
        tracee::follow_all(pid)?;
        let image = Image::of(pid)?;
        self.program.clone_from(&image.path);
        self.shut = Shut::new(pid, &image)?;
        let thread = Thread {
            image: Some(Rc::new(image)),
            at: tracee::next_instruction(pid)?,
        };
        self.threads.insert(pid, thread);
        self.go_on(pid, 0)
    }

    fn end(&mut self, pid: Pid, status: i32) {
        self.threads.remove(&pid);
        if pid == self.root {
            self.status = status;
        }
    }

    fn stopped(&mut self, pid: Pid, signal: i32) -> io::Result<()> {
        if !self.threads.contains_key(&pid) {
            // A newborn's first stop is a SIGSTOP that nobody sent.
            self.adopt(pid)?;
            return self.go_on(pid, 0);
        }
        let Some(code) = tracee::signal_code(pid) else {
            return self.go_on(pid, 0); // stopped by SIGSTOP or the like
        };
        let now = tracee::next_instruction(pid)?;
        if self.knocks(pid, signal, code, now)? {
            return self.go_on(pid, 0);
        }
        let thread = &self.threads[&pid];
        let (at, is_stepped) = (thread.at, thread.image.is_some() && self.shut.is_none());
        let for_the_program = match (signal, code) {
            (libc::SIGTRAP, libc::TRAP_TRACE) if is_stepped => {
                if now != at || !repeats(&image::bytes_at(pid, at, 15)?) {
                    self.completed(pid, at);
                }
                0
            }
            (libc::SIGTRAP, libc::TRAP_BRKPT) if is_stepped => {
                // After a system call. One that was interrupted may have been started again by the
                // kernel: then the thread went back without our seeing it.
                let restarted = now == at;
                self.completed(pid, if restarted { at - SYSCALL_LENGTH } else { at });
                0
            }
            // The kernel prepared a signal handler, which begins at `now`.
            (libc::SIGTRAP, libc::SIGTRAP) if is_stepped => 0,
            _ => {
                // A signal. Whoever raises one with the instruction itself is done with it (a
                // breakpoint), or is not (a fault).
                if now != at && is_stepped {
                    self.completed(pid, at);
                }
                signal
            }
        };
        self.go_on_from(pid, now, for_the_program)
    }

    /// Whether the first thread wants to come into the code that is still shut.
    fn knocks(&mut self, pid: Pid, signal: i32, code: i32, now: u64) -> io::Result<bool> {
        let door = now.wrapping_sub(1);
        let is_ours = |image: &Rc<Image>| image.link_address(door).is_some();
        if (signal, code) != (libc::SIGTRAP, libc::SI_KERNEL)
            || !self.threads[&pid].image.as_ref().is_some_and(is_ours)
        {
            return Ok(false);
        }
        let Some(shut) = self.shut.take() else {
            return Ok(false);
        };
        shut.open(pid)?;
        tracee::move_to(pid, door)?;
        Ok(true)
    }

    /// With a second thread or process about, no code may be shut.
    fn has_offspring(&mut self, pid: Pid) -> io::Result<()> {
        if let Some(shut) = self.shut.take() {
            let child = tracee::former_self(pid)?;
            // The child is not stopped for us yet, but has not run either. If it shares memory
            // with its parent, the second opening changes nothing.
            shut.clone().open(child)?;
            shut.open(pid)?;
        }
        // The system call that made it goes on: its instruction is not complete.
        tracee::resume(pid, self.pace(pid), 0)
    }

    fn runs_a_new_program(&mut self, pid: Pid) -> io::Result<()> {
        // The call that did it never returns, but is done. Only one thread is left.
        let former = tracee::former_self(pid)?;
        if let Some(thread) = self.threads.get(&former) {
            let at = thread.at;
            self.completed(former, at);
        }
        self.threads.remove(&former);
        self.shut = None;
        self.adopt(pid)?;
        if let (1, Some(image)) = (self.threads.len(), &self.threads[&pid].image) {
            self.shut = Shut::new(pid, image)?;
        }
        self.go_on(pid, 0)?;
        // It comes out of that call once more, now in the new program, where it has run nothing.
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.at = NOWHERE;
        }
        Ok(())
    }

    /// A thread that ends in a system call executed that instruction.
    fn dies(&mut self, pid: Pid) -> io::Result<()> {
        if let Some(thread) = self.threads.get(&pid) {
            let at = thread.at;
            if tracee::next_instruction(pid)? != at {
                self.completed(pid, at);
            }
        }
        tracee::resume(pid, Pace::Run, 0)
    }

    fn adopt(&mut self, pid: Pid) -> io::Result<()> {
        let image = Image::of(pid)?;
        let thread = Thread {
            image: (image.path == self.program).then(|| Rc::new(image)),
            at: tracee::next_instruction(pid)?,
        };
        self.threads.insert(pid, thread);
        Ok(())
    }

    fn go_on(&mut self, pid: Pid, signal: i32) -> io::Result<()> {
        let now = tracee::next_instruction(pid)?;
        self.go_on_from(pid, now, signal)
    }

    fn go_on_from(&mut self, pid: Pid, now: u64, signal: i32) -> io::Result<()> {
        let pace = self.pace(pid);
        if pace == Pace::Step {
            self.steps_left = self.steps_left.saturating_sub(1);
        }
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.at = now;
        }
        tracee::resume(pid, pace, signal)
    }

    fn pace(&self, pid: Pid) -> Pace {
        let is_ours = self.threads.get(&pid).is_some_and(|it| it.image.is_some());
        if is_ours && self.shut.is_none() {
            Pace::Step
        } else {
            Pace::Run
        }
    }

    fn completed(&mut self, pid: Pid, address: u64) {
        let image = self.threads.get(&pid).and_then(|it| it.image.as_ref());
        if let Some(address) = image.and_then(|image| image.link_address(address)) {
            *self.counts.entry(address).or_default() += 1;
            if let Some(order) = &mut self.order {
                order.push(address);
                if order.len() == order.capacity() {
                    self.steps_left = 0;
                }
            }
        }
    }
}

/// No program has code here.
const NOWHERE: u64 = 0;

/// `syscall` is `0f 05`.
const SYSCALL_LENGTH: u64 = 2;

/// Whether an instruction is a string instruction with a repeat prefix. The processor traps after
/// each of its rounds, and it is done when the thread has moved on.
fn repeats(bytes: &[u8]) -> bool {
    let mut has_repeat = false;
    for &byte in bytes {
        match byte {
            0xf2 | 0xf3 => has_repeat = true,
            // Operand size, address size, segments, lock, and REX, which comes last.
            0x66 | 0x67 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0x40..=0x4f => {}
            // ins, outs, movs, cmps, stos, lods, scas.
            0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf => return has_repeat,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::repeats;

    #[test]
    fn a_string_instruction_with_a_repeat_prefix_repeats() {
        assert!(repeats(&[0xf3, 0xaa])); // rep stosb
        assert!(repeats(&[0xf3, 0x48, 0xa5])); // rep movsq
        assert!(repeats(&[0x66, 0xf2, 0xaf])); // repne scasw
        assert!(!repeats(&[0xaa])); // stosb
        assert!(!repeats(&[0xeb, 0xfe])); // jmp to itself
        assert!(!repeats(&[0xf3, 0xc3])); // rep ret
        assert!(!repeats(&[0xe2, 0xfe])); // loop to itself
        assert!(!repeats(&[0xf3]));
    }
}
