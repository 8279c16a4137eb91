//! A clock that stops its thread, for whoever traces it.

use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use perf_event::Builder;
use perf_event::events::Software;

/// Makes a thread stop with SIGTRAP so many times a second of its time on a processor, until the descriptor is
/// closed or the thread becomes another program. `mark` is in what the signal says of itself. Time in the kernel is
/// left out: a thread that is stopped there may be taken out of a system call.
pub fn stop_regularly(thread: i32, frequency: u32, mark: u64) -> io::Result<OwnedFd> {
    let period = 1_000_000_000 / u64::from(frequency.max(1));
    let mut builder = Builder::new(Software::TASK_CLOCK);
    builder
        .sample_period(period)
        .exclude_kernel(true)
        .sigtrap(true)
        .sig_data(mark)
        .remove_on_exec(true)
        .observe_pid(thread)
        .any_cpu();
    let mut counter = builder.build()?;
    counter.enable()?;
    // SAFETY: it is a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(counter.into_raw_fd()) })
}
