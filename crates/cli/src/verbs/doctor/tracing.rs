//! What `run` and `attach` need: to trace a child, and to trace a process that is there already.

use super::{Finding, Way, first_line};
use headcount_monitor::Step;
use std::io::ErrorKind;
use std::path::Path;

/// What the machine says about tracing.
#[derive(Clone)]
struct Facts {
    /// What came of trying it.
    trial: Result<(), (Step, ErrorKind)>,
    /// `kernel.yama.ptrace_scope`, where there is Yama.
    scope: Option<u8>,
    /// Do we have `CAP_SYS_PTRACE`?
    capable: bool,
    /// Is there a filter for our system calls?
    filtered: bool,
    /// What says that this is a container.
    container: Option<&'static str>,
    /// Is `/proc` there, and does it hide the processes of others?
    proc: Proc,
    /// The kernel's release.
    release: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Proc {
    Missing,
    Open,
    Hiding,
}

pub fn examine() -> Vec<Finding> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
    findings(&Facts {
        trial: headcount_monitor::trace_a_child().map_err(|(step, it)| (step, it.kind())),
        scope: scope.and_then(|scope| scope.trim().parse().ok()),
        capable: has_ptrace(&status),
        filtered: is_filtered(&status),
        container: container(),
        proc: proc(&std::fs::read_to_string("/proc/self/mounts").unwrap_or_default()),
        release: first_line("/proc/sys/kernel/osrelease").unwrap_or_default(),
    })
}

fn findings(facts: &Facts) -> Vec<Finding> {
    vec![
        kernel(facts),
        children(facts),
        others(facts),
        surroundings(facts),
        processes(facts),
    ]
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = status.lines();
    lines
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// Is `CAP_SYS_PTRACE` (bit 19, linux/capability.h) among those in effect?
fn has_ptrace(status: &str) -> bool {
    let effective = field(status, "CapEff:").and_then(|set| u64::from_str_radix(set, 16).ok());
    effective.is_some_and(|set| set & (1 << 19) != 0)
}

fn is_filtered(status: &str) -> bool {
    field(status, "Seccomp:").is_some_and(|mode| mode != "0")
}

fn container() -> Option<&'static str> {
    for mark in ["/.dockerenv", "/run/.containerenv"] {
        if Path::new(mark).exists() {
            return Some(mark);
        }
    }
    container_in(&std::fs::read_to_string("/proc/1/cgroup").unwrap_or_default())
}

/// The keeper of a container, from the control groups of its first process.
fn container_in(groups: &str) -> Option<&'static str> {
    let keepers = ["docker", "kubepods", "containerd", "libpod", "lxc"];
    keepers.into_iter().find(|keeper| groups.contains(keeper))
}

/// What the mounts (in the form of fstab) say of `/proc`.
fn proc(mounts: &str) -> Proc {
    let mut mounts = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    // What was mounted last is what one sees.
    let found =
        mounts.rfind(|fields| fields.get(1) == Some(&"/proc") && fields.get(2) == Some(&"proc"));
    let Some(fields) = found else {
        return Proc::Missing;
    };
    let mut options = fields.get(3).unwrap_or(&"").split(',');
    let hides = |option: &str| {
        let value = option.strip_prefix("hidepid=");
        value.is_some_and(|value| !matches!(value, "0" | "off"))
    };
    match options.any(hides) {
        true => Proc::Hiding,
        false => Proc::Open,
    }
}

/// Is this release at least 5.3? What cannot be read is taken to be: the trial tells.
fn is_recent(release: &str) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next().and_then(|it| it.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) >= (5, 3),
        _ => true,
    }
}

fn kernel(facts: &Facts) -> Finding {
    let name = "kernel";
    match is_recent(&facts.release) {
        true => Finding::good(name, format!("{}: new enough for `run`", facts.release)),
        false => Finding::less(
            name,
            format!("{}: too old for `run` and `attach`", facts.release),
            "they need Linux 5.3 or later (PTRACE_GET_SYSCALL_INFO); `headcount cc` does not",
        ),
    }
}

/// What `run` needs.
fn children(facts: &Facts) -> Finding {
    let name = "tracing a child";
    let Err((step, kind)) = facts.trial else {
        return Finding::good(name, "works, so `run` does");
    };
    let found = match step {
        Step::Fork => format!("no child can be made: {kind}"),
        Step::Trace => format!("is not allowed, so `run` does not work: {kind}"),
        Step::SystemCall => "its system calls cannot be told, so `run` does not work".to_owned(),
        Step::Memory => format!("its memory cannot be written (/proc/PID/mem): {kind}"),
    };
    let cure = match step {
        Step::Fork => "see `ulimit -u`, and the limits of the container",
        Step::SystemCall => "it takes Linux 5.3 or later, and a sandbox that knows ptrace",
        _ if facts.proc == Proc::Missing => "mount -t proc proc /proc",
        _ if facts.scope == Some(3) => {
            "ptrace_scope is 3: a reboot with another kernel.yama.ptrace_scope allows it"
        }
        _ if facts.container.is_some() || facts.filtered => {
            "start the container with --cap-add=SYS_PTRACE (or --security-opt seccomp=unconfined)"
        }
        _ if facts.scope == Some(2) && !facts.capable => {
            "sudo sysctl kernel.yama.ptrace_scope=1, or run headcount as root"
        }
        _ => "run headcount as root; not needed for `headcount cc`",
    };
    Finding::bad(name, found, cure).of(Way::Run)
}

/// What `attach` needs.
fn others(facts: &Facts) -> Finding {
    let name = "attaching";
    let told = match facts.scope {
        None => "no Yama".to_owned(),
        Some(scope) => format!("ptrace_scope {scope}"),
    };
    if facts.trial.is_err() {
        let cure = "what helps `run` helps `attach`: see above";
        return Finding::less(
            name,
            format!("does not work, as `run` does not ({told})"),
            cure,
        );
    }
    match (facts.scope, facts.capable) {
        (Some(3..), _) => Finding::less(
            name,
            format!("nobody may attach to anything ({told})"),
            "only a reboot with another kernel.yama.ptrace_scope changes that",
        ),
        (_, true) => Finding::good(name, format!("to any process (CAP_SYS_PTRACE, {told})")),
        (None | Some(0), false) => Finding::good(name, format!("to your own processes ({told})")),
        (Some(1), false) => Finding::less(
            name,
            format!("only to children of the one who attaches ({told})"),
            "sudo sysctl kernel.yama.ptrace_scope=0, or run headcount as root \
             (in a container: --cap-add=SYS_PTRACE)",
        ),
        (Some(2), false) => Finding::less(
            name,
            format!("only root may attach ({told})"),
            "sudo sysctl kernel.yama.ptrace_scope=0, or run headcount as root \
             (in a container: --cap-add=SYS_PTRACE)",
        ),
    }
}

/// Where rules may come from that cannot be seen from here.
fn surroundings(facts: &Facts) -> Finding {
    let container = match facts.container {
        Some(mark) => format!("in a container ({mark})"),
        None => "in no container that can be seen".to_owned(),
    };
    let filter = match facts.filtered {
        true => "system calls are filtered (seccomp)",
        false => "system calls are not filtered",
    };
    Finding::good("surroundings", format!("{container}; {filter}"))
}

fn processes(facts: &Facts) -> Finding {
    let name = "/proc";
    match facts.proc {
        Proc::Open => Finding::good(name, "mounted, and hides nothing"),
        Proc::Hiding if facts.capable => Finding::good(
            name,
            "hides the processes of others (hidepid), but not from you",
        ),
        Proc::Hiding => Finding::less(
            name,
            "hides the processes of others (hidepid)",
            "your own can be attached to; for others: sudo mount -o remount,hidepid=0 /proc",
        ),
        Proc::Missing => Finding::less(
            name,
            "is not mounted",
            "`run` and `attach` need it: mount -t proc proc /proc",
        ),
    }
}

#[cfg(test)]
mod tests;
