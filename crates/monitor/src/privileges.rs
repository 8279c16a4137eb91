//! Programs that the kernel gives more rights than their user has: set-user-ID, set-group-ID, and
//! with capabilities of their own.
//!
//! While such a program is traced, it gets none of that, unless the tracer may trace anybody: else
//! whoever traces it could do with those rights as they please. It runs, and is counted, but may take
//! another way than it does alone; so a note says what it was not given.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use libc::pid_t;

use crate::journal::Entry;
use crate::kernel;
use crate::monitor::Monitor;
use crate::proc::{self, Rights};
use crate::wait::Stopped;

impl Monitor<'_> {
    /// A process has become another program: tells if that has fewer rights than it has alone.
    pub fn tell_of_lost_privilege(&mut self, pid: pid_t) -> io::Result<()> {
        let Some((what, name)) = lost(pid) else {
            return Ok(());
        };
        self.journal.write(&Entry::Note(format!(
            "{name} {what}: the kernel starts it without that privilege while it is counted, so it \
             may do other things than it does alone; root can count it as it is."
        )))
    }

    /// A process has become a program that its user may execute, but not read; nor may we then read
    /// its memory. Nothing of ours is in it yet: it goes on alone.
    pub fn leave_unread(&mut self, stopped: Stopped) -> io::Result<()> {
        let pid = stopped.tid();
        let name = proc::short_name(pid);
        self.journal.write(&Entry::Note(format!(
            "{name} may be executed by its user, but not read: it is not counted, nor is what it \
             starts; if it is set-user-ID, it was started without that privilege. Root can count it."
        )))?;
        self.give_mask_back(&stopped)?;
        self.threads.remove(&pid);
        self.drop_unused_spaces();
        stopped.detach(0)
    }
}

/// What a program is that has less than its file gives it, and its name. It is seen from what it
/// has, not from what we may do: a root of ours may be one of a container alone.
fn lost(pid: pid_t) -> Option<(&'static str, String)> {
    let path = format!("/proc/{pid}/exe");
    let about = fs::metadata(&path).ok()?;
    let (sets_user, sets_group) = (
        about.mode() & libc::S_ISUID != 0,
        // Without the right to execute, the bit means something else.
        about.mode() & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP,
    );
    let gives = kernel::extended_attribute(&path, c"security.capability");
    let gives = gives.map_or(0, |it| permitted(&it));
    if !sets_user && !sets_group && gives == 0 {
        return None;
    }
    let has = proc::rights(pid).ok()?;
    let what = what_is_missing(
        &has,
        sets_user.then(|| about.uid()),
        sets_group.then(|| about.gid()),
        gives,
    )?;
    // Alone, it would not get it either.
    if has.no_new || kernel::ignores_set_user_id(&path) {
        return None;
    }
    let name = proc::executable(pid).ok()?;
    Some((what, name.to_string_lossy().into_owned()))
}

/// What a file gives that a process does not have.
fn what_is_missing(
    has: &Rights,
    user: Option<u32>,
    group: Option<u32>,
    gives: u64,
) -> Option<&'static str> {
    if user.is_some_and(|it| it != has.user) {
        return Some("is set-user-ID");
    }
    if group.is_some_and(|it| it != has.group) {
        return Some("is set-group-ID");
    }
    (gives & has.bounding & !has.permitted != 0).then_some("has capabilities of its own")
}

/// The capabilities that a file gives, as `linux/capability.h` has them (`vfs_cap_data`): a word of
/// flags, and twice the low or high half of what is permitted and of what may be inherited.
fn permitted(attribute: &[u8]) -> u64 {
    let word = |at: usize| {
        let bytes = attribute.get(at..at + 4)?;
        Some(u64::from(u32::from_le_bytes(bytes.try_into().ok()?)))
    };
    let (low, high) = (word(4).unwrap_or(0), word(12).unwrap_or(0));
    low | high << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    const HAS: Rights = Rights {
        user: 1000,
        group: 100,
        permitted: 0b0010,
        bounding: 0b0111,
        no_new: false,
    };

    #[test]
    fn only_what_is_missing_is_told() {
        let missing = |user, group, gives| what_is_missing(&HAS, user, group, gives);
        assert_eq!(missing(Some(0), None, 0), Some("is set-user-ID"));
        assert_eq!(missing(Some(1000), Some(100), 0b0010), None);
        assert_eq!(missing(Some(1000), Some(5), 0), Some("is set-group-ID"));
        assert_eq!(
            missing(None, None, 0b0011),
            Some("has capabilities of its own")
        );
        // What nobody here can have.
        assert_eq!(missing(None, None, 0b1000), None);
    }

    #[test]
    fn capabilities_of_a_file_are_read() {
        // cap_net_raw=ep, revision 2, as setcap writes it.
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
        bytes[4..8].copy_from_slice(&(1_u32 << 13).to_le_bytes());
        assert_eq!(permitted(&bytes), 1 << 13);
        bytes[12..16].copy_from_slice(&1_u32.to_le_bytes());
        assert_eq!(permitted(&bytes), 1 << 13 | 1 << 32);
        assert_eq!(permitted(&bytes[..7]), 0);
        assert_eq!(permitted(&[]), 0);
    }
}
