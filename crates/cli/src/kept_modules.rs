//! Counter files whose program is not what it was: which copy of it explains them, and what becomes
//! of those that nothing explains?

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use headcount_monitor::foreign_file;
use headcount_wire::{FILE_SUFFIX, MODULE_SUFFIX, PARTIAL_SUFFIX};

use crate::counters::Counters;
use crate::module::CountedModule;

/// Where counter files go that nothing explains, in the folder they are in.
pub const UNREAD: &str = "unread";

/// Nothing explains a counter file.
#[derive(Debug, thiserror::Error)]
#[error("{origin}{module}: {reason}")]
pub struct Unexplained {
    /// The counter file, as the beginning of a message.
    pub origin: String,
    pub module: String,
    pub reason: &'static str,
}

/// The copy of a module that the runtime keeps beside a counter file.
pub fn copy_for(counters: &Counters) -> Option<PathBuf> {
    let folder = counters.origin.parent()?;
    let copy = folder.join(format!("{:016x}{MODULE_SUFFIX}", counters.fingerprint));
    let facts = fs::symlink_metadata(&copy).ok()?;
    (facts.is_file() && foreign_file::is_own(&facts)).then_some(copy)
}

/// Reads a copy of the module that had this path.
pub fn read(copy: &Path, module: &Path) -> Result<CountedModule> {
    let bytes = foreign_file::bytes(copy);
    let bytes = bytes.with_context(|| format!("{}: cannot be read", copy.display()))?;
    CountedModule::from_bytes(module, (*bytes).as_ref())
}

/// Removes the copies in a folder that no counter file needs any more, and what was left of copies
/// by processes that were killed.
pub fn clear(folder: &Path) {
    let copies = || files(folder, MODULE_SUFFIX);
    if let Some(needed) = needed(folder) {
        copies()
            .filter(|copy| !needed.contains(&name(copy)))
            .for_each(|copy| remove_unless_needed(folder, &copy));
    }
    for partial in files(folder, PARTIAL_SUFFIX) {
        let writer = partial.with_extension(&FILE_SUFFIX[1..]);
        if !writer.exists() {
            let _ = fs::remove_file(partial);
        }
    }
}

/// A program that starts now has its counter file there before it looks for a copy. So if the copy
/// is out of sight while we look for such files, either we find one or the program makes a copy.
fn remove_unless_needed(folder: &Path, copy: &Path) {
    let hidden = copy.with_extension(&PARTIAL_SUFFIX[1..]);
    if fs::rename(copy, &hidden).is_err() {
        return;
    }
    let is_needed = needed(folder).is_none_or(|needed| needed.contains(&name(copy)));
    let _ = match is_needed {
        true => fs::rename(&hidden, copy),
        false => fs::remove_file(&hidden),
    };
}

/// The names of the copies that counter files of a folder need. `None` if one of them cannot tell
/// (yet).
fn needed(folder: &Path) -> Option<HashSet<String>> {
    files(folder, FILE_SUFFIX)
        .map(|path| {
            let fingerprint = Counters::fingerprint_in(&path)?;
            Some(format!("{fingerprint:016x}{MODULE_SUFFIX}"))
        })
        .collect()
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The user's own files of a folder whose names end like this.
fn files(folder: &Path, suffix: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(move |path| name(path).ends_with(suffix))
        .filter(|path| {
            fs::symlink_metadata(path).is_ok_and(|it| it.is_file() && foreign_file::is_own(&it))
        })
}

/// Puts a counter file where nobody looks for one unless told to; says in which folder that is.
pub fn set_aside(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    if folder.file_name() == Some(OsStr::new(UNREAD)) {
        return Some(folder.to_owned());
    }
    let aside = folder.join(UNREAD);
    let private = headcount_monitor::OwnFolder::make(&aside).ok()?;
    let name = path.file_name()?.to_str()?;
    fs::rename(path, private.file(name)).ok()?;
    Some(aside)
}
