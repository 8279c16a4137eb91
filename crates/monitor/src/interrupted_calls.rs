//! System calls that fail because we stopped the thread that was in them.
//!
//! A thread that is stopped while it waits in the kernel is taken out of its system call. Most calls
//! are then started again by the kernel, as if nothing had been; but some answer that they were
//! interrupted (`man 7 signal`, on stop signals), and programs that have no signal handlers do not
//! expect that. So the answer is changed to one that makes the kernel start the call again, unless it
//! has a signal to deliver. (A call that waits for some time then waits for all of that once more.)

use std::io;

use libc::c_long;

use crate::wait::Stopped;

/// The calls that answer so and have done nothing yet.
const HARMLESS: [c_long; 17] = [
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_epoll_wait,
    libc::SYS_io_getevents,
    333, // io_pgetevents
    libc::SYS_io_uring_enter,
    libc::SYS_read,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
];

/// What the kernel's own code answers for "again, unless a handler runs, and then `EINTR`".
const AGAIN_WITHOUT_HANDLER: i64 = -514; // ERESTARTNOHAND

/// Makes the kernel start a call again that a stopped thread was taken out of; was there one? The
/// kernel looks at the answer when it has stopped the thread on our request, or when we let go of it;
/// not otherwise.
pub fn start_again(stopped: &Stopped) -> io::Result<bool> {
    let mut registers = stopped.registers()?;
    let was_interrupted = registers.rax as i64 == -i64::from(libc::EINTR)
        && HARMLESS.contains(&(registers.orig_rax as c_long));
    if was_interrupted {
        registers.rax = AGAIN_WITHOUT_HANDLER as u64;
        stopped.set_registers(&registers)?;
    }
    Ok(was_interrupted)
}
