//! Folders that nobody else can put anything into.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Makes folders for the user alone.
pub fn builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Is this a folder of the user's, where nobody else may write? Not if it is a link.
pub fn is_own(folder: &Path) -> bool {
    let is_own =
        |it: fs::Metadata| it.is_dir() && Some(it.uid()) == user() && it.mode() & 0o022 == 0;
    fs::symlink_metadata(folder).is_ok_and(is_own)
}

/// The user's number.
pub fn user() -> Option<u32> {
    Some(fs::metadata("/proc/self").ok()?.uid())
}
