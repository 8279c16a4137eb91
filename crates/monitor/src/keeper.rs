//! Who keeps a program that is not ours: a process of its own.
//!
//! A tracer that is killed leaves its traps behind, and the program would die at the next one. So
//! the process that the user sees only passes signals on. If it is killed, by a signal that nobody
//! can catch even, the keeper hears of it, lets go of the program in order, and stores its counts.

use std::io;

use libc::c_int;

use crate::kernel;
use crate::requests::OURS;
use crate::wait::Ending;

/// Makes a keeper, which goes on from here: there the answer is `None`. Here it is how the keeper
/// ended. To be called before there are other threads.
pub fn leave_to_keeper() -> io::Result<Option<Ending>> {
    let mut signals = OURS.to_vec();
    signals.push(libc::SIGCHLD);
    kernel::block_signals(&signals);
    let parent = std::process::id();
    let Some(keeper) = kernel::fork()? else {
        let hears = kernel::outlive_parent(c"hc-keeper", libc::SIGTERM, parent);
        kernel::unblock_signals(&signals);
        return match hears {
            true => Ok(None),
            // Who made us is gone already: nobody waits for an answer.
            false => Ok(Some(Ending::Exit(125))),
        };
    };
    loop {
        match kernel::next_signal(&signals, None).map(|it| it.signal) {
            Some(libc::SIGCHLD) => {
                if let Some((_, status)) = kernel::look(keeper)? {
                    return Ok(Some(ending(status)));
                }
            }
            Some(signal) => kernel::kill(keeper, signal),
            None => {}
        }
    }
}

fn ending(status: c_int) -> Ending {
    match libc::WIFSIGNALED(status) {
        true => Ending::Signal(libc::WTERMSIG(status)),
        false => Ending::Exit(libc::WEXITSTATUS(status)),
    }
}
