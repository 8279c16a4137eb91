//! A program's limit of its address space is about what it maps itself.
//!
//! The kernel counts our memory, too. So the limit that is in force (the soft one) is higher than
//! the program believes, by as much as we have mapped; and what it believes is kept here and shown to
//! it where it asks. The hard limit stays, which only forbids to raise the soft one.

use std::io;

use headcount_model::LoadAddr;
use libc::pid_t;

use crate::kernel::{self, AddressLimit};
use crate::monitor::Monitor;
use crate::proc;
use crate::system_calls::Call;
use crate::wait::Stopped;

const PAGE: u64 = 4096;

/// Nothing in the way of a system call that maps memory of ours.
#[derive(Debug)]
pub struct Lifted {
    pid: pid_t,
    before: AddressLimit,
}

impl Lifted {
    /// Lifts the limit of a process, if there is one and it can be lifted.
    pub fn of(pid: pid_t, number: i64) -> Option<Self> {
        let maps = [libc::SYS_mmap, libc::SYS_mremap, libc::SYS_munmap].contains(&number);
        let before = maps.then(|| kernel::address_limit(pid).ok()).flatten()?;
        let limit = AddressLimit {
            soft: before.hard,
            ..before
        };
        (before.soft < before.hard && kernel::set_address_limit(pid, limit).is_ok())
            .then_some(Self { pid, before })
    }

    /// Puts it back, for so much more or less memory as the call has made of it.
    pub fn put_back(self, number: i64, arguments: [u64; 6], answer: i64) {
        let pages = |bytes: u64| bytes.div_ceil(PAGE).saturating_mul(PAGE);
        let [_, second, third, ..] = arguments;
        let (more, less) = match number {
            _ if (-4095..0).contains(&answer) => (0, 0),
            libc::SYS_mmap => (pages(second), 0),
            libc::SYS_mremap => (pages(third), pages(second)),
            _ => (0, pages(second)),
        };
        let soft = self.before.soft.saturating_add(more).saturating_sub(less);
        let limit = AddressLimit {
            soft: soft.min(self.before.hard),
            ..self.before
        };
        // If it is gone, it needs none.
        let _ = kernel::set_address_limit(self.pid, limit);
    }
}

/// What a call is about that sets or asks for the limit of an address space.
#[derive(Clone, Copy, Debug)]
pub struct LimitCall {
    /// Where the new limit is; 0 if it only asks.
    new_at: u64,
    /// Where the old one is to go, or 0.
    old_at: u64,
}

impl LimitCall {
    /// Does a call of a process set or ask for its own limit?
    pub fn of(call: &Call, process: pid_t) -> Option<Self> {
        let [first, second, third, fourth] = call.arguments;
        let (pid, resource, new_at, old_at) = match call.number {
            libc::SYS_prlimit64 => (first, second, third, fourth),
            libc::SYS_setrlimit => (0, first, second, 0),
            libc::SYS_getrlimit => (0, first, 0, second),
            _ => return None,
        };
        let is_own = pid as pid_t == 0 || pid as pid_t == process;
        (is_own && resource as u32 == libc::RLIMIT_AS).then_some(Self { new_at, old_at })
    }
}

impl Monitor<'_> {
    /// Nothing in the address space of a process is ours: its limit is what it believes, or it
    /// believes what the kernel says.
    pub fn begin_limit(&mut self, pid: pid_t) {
        let Some((process, real)) = self
            .processes
            .get_mut(&pid)
            .zip(kernel::address_limit(pid).ok())
        else {
            return;
        };
        let soft = process.address_limit.get_or_insert(real).soft;
        if soft != real.soft {
            let _ = kernel::set_address_limit(pid, AddressLimit { soft, ..real });
        }
    }

    /// We leave a process, with all that is ours.
    pub fn give_limit_back(&self, pid: pid_t) {
        if let Some(limit) = self.believed(pid) {
            let _ = kernel::set_address_limit(pid, limit);
        }
    }

    fn believed(&self, pid: pid_t) -> Option<AddressLimit> {
        self.processes.get(&pid)?.address_limit
    }

    /// Does for a thread what it asks the kernel for; answers as the kernel does.
    pub fn do_limit_call(&mut self, stopped: &Stopped, call: LimitCall) -> io::Result<i64> {
        let thread = self.thread(stopped);
        let (pid, space) = (thread.pid, thread.space);
        let Some(space) = self.spaces.get(&space) else {
            return Err(kernel::gone());
        };
        let real = kernel::address_limit(pid)?;
        let old = self.believed(pid).unwrap_or(real);
        let mut new = None;
        if call.new_at != 0 {
            let mut bytes = [0; 16];
            if space
                .memory
                .read(LoadAddr(call.new_at), &mut bytes)
                .is_err()
            {
                return Ok(-i64::from(libc::EFAULT));
            }
            let limit = AddressLimit::from_bytes(bytes);
            if limit.soft > limit.hard {
                return Ok(-i64::from(libc::EINVAL));
            }
            if limit.hard > old.hard && !proc::may_raise_limits(stopped.tid()) {
                return Ok(-i64::from(libc::EPERM));
            }
            new = Some(limit);
        }
        if let Some(limit) = new {
            let ours = space.mapped_bytes();
            let hard = real.hard.max(limit.hard);
            let soft = limit.soft.saturating_add(ours).min(hard);
            kernel::set_address_limit(pid, AddressLimit { soft, hard })?;
        }
        let memory = &space.memory;
        if call.old_at != 0
            && memory
                .write(LoadAddr(call.old_at), &old.to_bytes())
                .is_err()
        {
            return Ok(-i64::from(libc::EFAULT));
        }
        if let (Some(limit), Some(process)) = (new, self.processes.get_mut(&pid)) {
            process.address_limit = Some(limit);
        }
        Ok(0)
    }
}
