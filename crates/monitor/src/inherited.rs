//! What this process was given by whoever started it, and what programs that we start are given in
//! turn: the same.
//!
//! Before `main`, Rust makes SIGPIPE ignored and opens closed standard descriptors; later we raise
//! our own limits and handle signals. A program must see nothing of that. So what there was is noted
//! before Rust's start-up, and given back between `fork` and `exec`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;

use libc::{c_int, rlim_t};

/// The signals whose dispositions Rust or we change. (SIGCHLD: who ignores it cannot wait.)
const CHANGED: [c_int; 11] = [
    libc::SIGPIPE,
    libc::SIGXFSZ,
    libc::SIGXCPU,
    libc::SIGCHLD,
    libc::SIGALRM,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR2,
    libc::SIGIO,
];

/// The limits that we would live under, too.
const RAISED: [Resource; 7] = [
    libc::RLIMIT_NOFILE,
    libc::RLIMIT_AS,
    libc::RLIMIT_DATA,
    libc::RLIMIT_FSIZE,
    libc::RLIMIT_NPROC,
    libc::RLIMIT_STACK,
    libc::RLIMIT_CPU,
];

/// So many files the kernel lets anybody have open who may raise limits, unless it was told
/// otherwise.
const MANY_FILES: rlim_t = 1 << 20;

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = c_int;

/// What was there in the beginning.
struct Given {
    /// Were the standard descriptors open?
    open: [bool; 3],
    /// Was each of [`CHANGED`] ignored?
    ignored: [bool; CHANGED.len()],
    blocked: libc::sigset_t,
    limits: [libc::rlimit; RAISED.len()],
    /// The signal that is sent when the parent ends.
    death_signal: c_int,
    /// Does it get the orphans among its descendants?
    adopts: c_int,
}

static GIVEN: OnceLock<Given> = OnceLock::new();

/// The loader calls this before the C library calls `main`, and so before Rust's start-up, which is
/// in `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn before_main() {
        let _ = GIVEN.set(Given::note());
        raise_limits();
        // Who ignores it is not told how children end.
        // SAFETY: takes numbers.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
    before_main
};

impl Given {
    fn note() -> Self {
        let mut death_signal = 0;
        let mut adopts = 0;
        // SAFETY: both requests write one int, which is what they are passed.
        unsafe {
            libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut death_signal);
            libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut adopts);
        }
        Self {
            open: [0, 1, 2].map(is_open),
            ignored: CHANGED.map(is_ignored),
            blocked: blocked(),
            limits: RAISED.map(|it| limit(it).unwrap_or(UNLIMITED)),
            death_signal,
            adopts,
        }
    }
}

const UNLIMITED: libc::rlimit = libc::rlimit {
    rlim_cur: libc::RLIM_INFINITY,
    rlim_max: libc::RLIM_INFINITY,
};

fn is_open(descriptor: c_int) -> bool {
    // SAFETY: takes numbers, and changes nothing.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) != -1 }
}

fn is_ignored(signal: c_int) -> bool {
    // SAFETY: the structure is made of numbers and pointers, for which zeros are a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: writes one `sigaction`, which is what it is passed, and changes nothing.
    unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    action.sa_sigaction == libc::SIG_IGN
}

fn blocked() -> libc::sigset_t {
    // SAFETY: the structure is made of numbers, for which zeros are a value.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes one set, which is what it is passed, and changes nothing.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, ptr::null(), &raw mut set) };
    set
}

fn limit(resource: Resource) -> Option<libc::rlimit> {
    let mut limit = UNLIMITED;
    // SAFETY: writes one `rlimit`, which is what it is passed.
    let result = unsafe { libc::getrlimit(resource, &raw mut limit) };
    (result == 0).then_some(limit)
}

fn set_limit(resource: Resource, limit: &libc::rlimit) -> bool {
    // SAFETY: reads one `rlimit`, which is what it is passed.
    unsafe { libc::setrlimit(resource, limit) == 0 }
}

/// Raises our own limits as far as we may.
fn raise_limits() {
    for resource in RAISED {
        let Some(now) = limit(resource) else {
            continue;
        };
        let highest = match resource {
            libc::RLIMIT_NOFILE => MANY_FILES.max(now.rlim_max),
            _ => libc::RLIM_INFINITY,
        };
        let unlimited = libc::rlimit {
            rlim_cur: highest,
            rlim_max: highest,
        };
        if set_limit(resource, &unlimited) {
            continue;
        }
        // A second before the end of our time there is a signal.
        let soft = match resource {
            libc::RLIMIT_CPU => now.rlim_cur.max(now.rlim_max.saturating_sub(1)),
            _ => now.rlim_max,
        };
        set_limit(
            resource,
            &libc::rlimit {
                rlim_cur: soft,
                rlim_max: now.rlim_max,
            },
        );
    }
}

/// The limits of this process that could not be raised, as a shell shows them: how `ulimit` names
/// each, what it is about, and how much it is.
pub fn limits_left() -> Vec<(&'static str, &'static str, u64)> {
    let names = [
        (libc::RLIMIT_NOFILE, "-n", "open files", 1),
        (libc::RLIMIT_AS, "-v", "address space (KB)", 1024),
        (libc::RLIMIT_DATA, "-d", "data (KB)", 1024),
        (
            libc::RLIMIT_FSIZE,
            "-f",
            "size of files (blocks of 512 bytes)",
            512,
        ),
        (libc::RLIMIT_NPROC, "-u", "processes", 1),
        (libc::RLIMIT_CPU, "-t", "processor time (s)", 1),
    ];
    let left = names
        .into_iter()
        .filter_map(|(resource, flag, what, unit)| {
            let limit = limit(resource)?.rlim_cur;
            (limit != libc::RLIM_INFINITY).then_some((flag, what, limit / unit))
        });
    left.collect()
}

/// Was a signal ignored when we were started? Then nobody wants us to hear it.
pub fn was_ignored(signal: c_int) -> bool {
    let place = CHANGED.iter().position(|it| *it == signal);
    let given = GIVEN.get();
    place.is_some_and(|place| given.is_some_and(|given| given.ignored[place]))
}

/// Makes this process as it was given to us, to become another program. Only what may be done
/// between `fork` and `exec` is done.
pub fn give_back() {
    let Some(given) = GIVEN.get() else {
        return;
    };
    for (resource, limit) in RAISED.into_iter().zip(&given.limits) {
        set_limit(resource, limit);
    }
    for (signal, ignored) in CHANGED.into_iter().zip(given.ignored) {
        let action = match ignored {
            true => libc::SIG_IGN,
            false => libc::SIG_DFL,
        };
        // SAFETY: takes numbers.
        unsafe { libc::signal(signal, action) };
    }
    // SAFETY: takes numbers, and a set that lives as long as this process.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, given.death_signal);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, given.adopts);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const given.blocked, ptr::null_mut());
    }
    for (descriptor, was_open) in (0..).zip(given.open) {
        if !was_open && is_null(descriptor) {
            // SAFETY: nothing of ours is there: Rust's start-up opened it to keep the place.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Is it still what Rust opened where nothing was? (A command may have got a pipe there.)
fn is_null(descriptor: c_int) -> bool {
    // SAFETY: the structure is made of numbers, for which zeros are a value.
    let mut file: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes one `stat`, which is what it is passed.
    let result = unsafe { libc::fstat(descriptor, &raw mut file) };
    result == 0 && file.st_rdev == libc::makedev(1, 3)
}

/// Makes a command start its program with what this process was given.
pub fn give_back_to(command: &mut Command) -> &mut Command {
    let give_back = || -> io::Result<()> {
        give_back();
        Ok(())
    };
    // SAFETY: `give_back` makes only system calls, and allocates nothing.
    unsafe { command.pre_exec(give_back) }
}

/// What `fork` does not hand on, but `exec` would have: timers, and signals that wait.
pub struct Waiting {
    timer: libc::itimerval,
    pending: libc::sigset_t,
}

/// Takes it from this process, so that a child can have it.
pub fn take_waiting() -> Waiting {
    // SAFETY: the structures are made of numbers, for which zeros are a value.
    let mut waiting: Waiting = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let none: libc::itimerval = unsafe { std::mem::zeroed() };
    // SAFETY: reads and writes what it is passed.
    unsafe {
        libc::setitimer(libc::ITIMER_REAL, &raw const none, &raw mut waiting.timer);
        libc::sigpending(&raw mut waiting.pending);
    }
    waiting
}

impl Waiting {
    /// Gives it to this process, a child that will be another program. The signals are blocked.
    pub fn give(&self) {
        // SAFETY: takes numbers, and reads what it is passed.
        unsafe {
            libc::setitimer(libc::ITIMER_REAL, &raw const self.timer, ptr::null_mut());
            for signal in 1..=libc::SIGRTMAX() {
                if libc::sigismember(&raw const self.pending, signal) == 1 {
                    libc::raise(signal);
                }
            }
        }
    }
}

/// The least room on the stack that we need, with some to spare.
const ROOM: u64 = 4 << 20;

/// Does the work of this process where there is room for it, if its stack has none: a limit for
/// programs that need little of it is not ours. `None`: there is room here, or nowhere.
pub fn with_room<T: Send>(work: fn() -> T) -> Option<T> {
    let limit = limit(libc::RLIMIT_STACK)?;
    if limit.rlim_cur >= ROOM {
        return None;
    }
    std::thread::scope(|scope| {
        let room = std::thread::Builder::new().stack_size(ROOM as usize);
        let worker = room.spawn_scoped(scope, work).ok()?;
        // Signals are for the one who works: they end its waits.
        // SAFETY: the structure is made of numbers, for which zeros are a value.
        let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: writes to a set of ours, and reads it.
        unsafe {
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
        }
        Some(
            worker
                .join()
                .unwrap_or_else(|it| std::panic::resume_unwind(it)),
        )
    })
}
