//! Programs that trace: debuggers, `strace`, and sanitizers when they look for leaks; and those that
//! want the register that copies count by.
//!
//! A thread has one tracer at most, and a child that nobody may trace meets our traps alone. So we
//! let go of the processes that this is about, with every byte of their code as it was, just before
//! it happens. What they run from then on is not counted, and a note says so.

use std::io;

use libc::pid_t;

use crate::attach::Held;
use crate::journal::Entry;
use crate::kernel;
use crate::monitor::Monitor;
use crate::proc;
use crate::system_calls::Call;
use crate::wait::{Stop, Stopped};

/// Whom a system call is about that others are to trace, or nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// The one that makes it.
    Itself,
    /// Another thread.
    Other(pid_t),
    /// A child that is to be, which nobody may trace.
    Child,
}

/// Can a system call be made?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Now.
    Clear,
    /// When we have let go of the process that makes it.
    Later,
}

impl Monitor<'_> {
    /// A system call begins: lets go of those that it is about, if we trace them.
    pub fn makes_way(&mut self, stopped: &Stopped, call: &Call) -> io::Result<Way> {
        let own = self.thread(stopped);
        let (own_space, own_pid) = (own.space, own.pid);
        if call.hides() && !kernel::may_trace_anybody() {
            return self.makes_way_for_secrets(own_pid);
        }
        if self.windows.is_some() && call.takes_gs() {
            return self.makes_way_for_gs(own_pid, own_space);
        }
        let foreign = self.spaces.get(&own_space);
        let Some(foreign) = foreign.and_then(|it| call.foreign_tracing(it)) else {
            return Ok(Way::Clear);
        };
        let (pid, space) = match foreign {
            Foreign::Itself | Foreign::Child => (own_pid, own_space),
            // The kernel refuses threads of the same process.
            Foreign::Other(tid) => match self.threads.get(&tid) {
                Some(thread) if thread.pid != own_pid => (thread.pid, thread.space),
                _ => return Ok(Way::Clear),
            },
        };
        let name = proc::command(pid).into_iter().next().unwrap_or_default();
        let mut threads = self.threads.values();
        if threads.any(|it| it.space == space && it.waits_for_child) {
            // It cannot be stopped, and its memory is not the child's alone.
            self.journal.write(&Entry::Note(format!(
                "{name} could not be traced by another process: headcount traces it, and its \
                 parent waits for it (vfork). Count the debugged program without the debugger."
            )))?;
            return Ok(Way::Clear);
        }
        self.tell_of_foreign_tracer(&name, foreign)?;
        if space == own_space {
            return Ok(Way::Later);
        }
        self.let_go_of_space(space, Held::new())?;
        Ok(Way::Clear)
    }

    /// The program keeps its memory from others of the same user, and its children's. We could not
    /// reach into those to give them back what is theirs.
    fn makes_way_for_secrets(&mut self, pid: pid_t) -> io::Result<Way> {
        let name = proc::command(pid).into_iter().next().unwrap_or_default();
        self.journal.write(&Entry::Note(format!(
            "{name} made its memory unreadable for others (PR_SET_DUMPABLE): what it ran from then \
             on is not counted; root can count it."
        )))?;
        Ok(Way::Later)
    }

    /// The program wants the register for itself that copies count by.
    fn makes_way_for_gs(&mut self, pid: pid_t, space: usize) -> io::Result<Way> {
        let mut threads = self.threads.values();
        if threads.any(|it| it.space == space && it.waits_for_child) {
            self.refuse_gs()?;
        }
        let name = proc::command(pid).into_iter().next().unwrap_or_default();
        self.journal.write(&Entry::Note(format!(
            "{name} uses the gs register itself, which copies need to count: what it ran from then \
             on is not counted; run it with --engine breakpoint."
        )))?;
        Ok(Way::Later)
    }

    /// A system call was put off: lets go of the process, which makes it again.
    pub fn make_way(&mut self, stopped: Stopped) -> io::Result<()> {
        let space = self.thread(&stopped).space;
        let held = Held::from([(stopped.tid(), (stopped, Stop::SystemCall))]);
        self.let_go_of_space(space, held)
    }

    fn tell_of_foreign_tracer(&mut self, name: &str, foreign: Foreign) -> io::Result<()> {
        let when = match foreign {
            Foreign::Itself => "asked to be traced",
            Foreign::Other(_) => "was about to be traced by another process",
            Foreign::Child => "started a process that nobody may trace, as sanitizers do",
        };
        self.journal.write(&Entry::Note(format!(
            "{name} {when}, and a process has only one tracer: what it ran from then on is not \
             counted."
        )))
    }
}
