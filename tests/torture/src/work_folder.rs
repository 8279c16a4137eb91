//! Does anybody else work in this folder?
//!
//! Two processes would remove and overwrite each other's builds, and report
//! failures that nobody can repeat.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Takes the folder for this process alone, until the file is dropped or the
/// process ends in whatever way.
pub fn hold(folder: &Path) -> Result<File> {
    let path = folder.join("in-use-by");
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options
        .open(&path)
        .with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder)?;
            bail!(
                "{}: another headcount-torture, {}, works in this folder, and two would disturb \
                 each other; wait until it is done, or give this one a folder of its own with \
                 --work DIR",
                folder.display(),
                holder.trim()
            );
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| path.display().to_string());
        }
    }
    file.set_len(0)?;
    writeln!(file, "process {}", std::process::id())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_by_one_at_a_time_and_others_are_told_by_whom() {
        let me = std::process::id();
        let folder = std::env::temp_dir().join(format!("headcount-hold-{me}"));
        std::fs::create_dir_all(&folder).unwrap();
        let first = hold(&folder).unwrap();
        let refusal = hold(&folder).unwrap_err().to_string();
        assert!(refusal.contains(&format!("process {me}")), "{refusal}");
        assert!(refusal.contains("--work"), "{refusal}");
        drop(first);
        assert!(hold(&folder).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
