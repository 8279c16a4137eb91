//! Questions that a program asks headcount about itself while it is counted.
//!
//! ```
//! let before = headcount_request::query("instructions");
//! let sum: u64 = (0..1000).sum();
//! let after = headcount_request::query("instructions");
//! if let (Ok(Some(before)), Ok(Some(after))) = (before, after) {
//!     println!("{} instructions for {sum}", after - before);
//! }
//! ```
//!
//! A request is one instruction that does nothing: a long `nop` with a displacement that nobody else
//! writes, and the request in registers. Where nobody counts, that is all that happens, and the
//! answer is that nobody counts. Where `headcount run` or `headcount attach` does, the thread stops
//! there, is answered, and goes on; nothing that it asks changes any count.
//!
//! For C and C++ there is `include/headcount.h`; `docs/live.md` says what the numbers mean. This crate
//! is also where headcount itself knows the protocol from.
#![no_std]

use core::fmt;

/// The instruction: `nop dword ptr [rax + rax + 0x31716368]`.
pub const INSTRUCTION: [u8; 8] = [0x0f, 0x1f, 0x84, 0x00, b'h', b'c', b'q', b'1'];

/// What `rdi` may be. `rsi` is the address of a text, if there is one, and `rdx` how many bytes it
/// has at most: it ends before its first zero.
pub mod request {
    /// How many events have there been? The text is the event's name.
    pub const QUERY: u64 = 1;
    /// A phase begins. The text is its name.
    pub const MARK: u64 = 2;
    /// Counts do not matter from here on.
    pub const PAUSE: u64 = 3;
    /// They matter again.
    pub const RESUME: u64 = 4;
}

/// What is in `rax` behind the instruction, if it is not the answer to [`query`]. It is -1 before.
pub mod answer {
    /// It was done.
    pub const DONE: i64 = 0;
    /// Nobody counts: nobody has changed the register.
    pub const NOT_COUNTED: i64 = -1;
    /// There is no such event, or it has no number that is sure to grow.
    pub const NO_SUCH_EVENT: i64 = -2;
    /// The name is empty, too long, not in memory, not UTF-8, kept for something else, or has control
    /// characters.
    pub const BAD_NAME: i64 = -3;
    /// Nothing is paused.
    pub const NOT_PAUSED: i64 = -4;
    /// There is no such request.
    pub const NO_SUCH_REQUEST: i64 = -5;
    /// It could not be done: what is asked for is not counted in this run, or headcount is in trouble.
    pub const FAILED: i64 = -6;
}

/// No name may have more bytes.
pub const LONGEST_NAME: usize = 200;

/// Why there is no answer, although somebody counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such event, or it has no number that is sure to grow.
    NoSuchEvent,
    /// A name is empty, too long, kept for something else, or has control characters.
    BadName,
    /// Nothing is paused.
    NotPaused,
    /// The headcount that counts is of another time, and does not know the request.
    NoSuchRequest,
    /// What is asked for is not counted in this run, or headcount is in trouble.
    Failed,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchEvent => "there is no such event",
            Self::BadName => "this cannot be a name",
            Self::NotPaused => "nothing is paused",
            Self::NoSuchRequest => "headcount does not know this request",
            Self::Failed => "headcount cannot answer",
        })
    }
}

impl core::error::Error for Refused {}

/// How many events there have been in the whole run, in all its threads and processes, up to this
/// moment: what `headcount query` would say, and `headcount report --events` names. `None`: nobody
/// counts.
pub fn query(event: &str) -> Result<Option<u64>, Refused> {
    meant(ask(request::QUERY, event))
}

/// Marks this moment with a name: a phase begins, as with `headcount mark`. `false`: nobody counts.
pub fn mark(name: &str) -> Result<bool, Refused> {
    Ok(meant(ask(request::MARK, name))?.is_some())
}

/// What the run does from here on is left out of reports, until [`resume`] has been called as often.
/// `false`: nobody counts.
pub fn pause() -> Result<bool, Refused> {
    Ok(meant(ask(request::PAUSE, ""))?.is_some())
}

/// Ends what [`pause`] began. `false`: nobody counts.
pub fn resume() -> Result<bool, Refused> {
    Ok(meant(ask(request::RESUME, ""))?.is_some())
}

fn meant(answer: i64) -> Result<Option<u64>, Refused> {
    match answer {
        0.. => Ok(Some(answer.cast_unsigned())),
        answer::NOT_COUNTED => Ok(None),
        answer::NO_SUCH_EVENT => Err(Refused::NoSuchEvent),
        answer::BAD_NAME => Err(Refused::BadName),
        answer::NOT_PAUSED => Err(Refused::NotPaused),
        answer::NO_SUCH_REQUEST => Err(Refused::NoSuchRequest),
        _ => Err(Refused::Failed),
    }
}

#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64"
))]
#[inline]
fn ask(request: u64, text: &str) -> i64 {
    let mut answer = answer::NOT_COUNTED;
    // SAFETY: the instruction does nothing. Whoever traces this process may change `rax`, which is an
    // output, and reads no more of the text than it has bytes.
    unsafe {
        core::arch::asm!(
            "nop dword ptr [rax + rax + 0x31716368]",
            inout("rax") answer,
            in("rdi") request,
            in("rsi") text.as_ptr(),
            in("rdx") text.len(),
            options(nostack, preserves_flags),
        );
    }
    answer
}

#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64"
)))]
#[inline]
fn ask(_request: u64, _text: &str) -> i64 {
    answer::NOT_COUNTED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_headcount_nothing_happens() {
        assert_eq!(query("instructions"), Ok(None));
        assert_eq!(mark("here"), Ok(false));
        assert_eq!(pause(), Ok(false));
        assert_eq!(resume(), Ok(false));
    }

    #[test]
    fn every_answer_means_something() {
        assert_eq!(meant(0), Ok(Some(0)));
        assert_eq!(meant(i64::MAX), Ok(Some((1 << 63) - 1)));
        assert_eq!(meant(-3), Err(Refused::BadName));
        assert_eq!(meant(-100), Err(Refused::Failed));
    }
}
