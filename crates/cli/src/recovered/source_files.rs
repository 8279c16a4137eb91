//! The sources of programs whose counts are told by them.
//!
//! Only places and counts are kept of them; whether their text may be shown is asked when a report is made.

use std::path::Path;

use headcount_language::Files;
use headcount_monitor::foreign_file;

/// No source is larger.
const LARGEST: u64 = 1 << 28;

/// Where Icon's translator looks for what is linked and included, after the current folder.
const PATHS: [&str; 2] = ["IPATH", "LPATH"];

/// Files as we see them.
pub struct SourceFiles {
    folders: Vec<String>,
}

impl SourceFiles {
    pub fn new() -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let paths = PATHS.iter().filter_map(|it| std::env::var(it).ok());
        let paths: Vec<String> = paths.collect();
        let named = paths.iter().flat_map(|it| it.split_whitespace());
        let folders = [""].into_iter().chain(named).map(|it| here.join(it));
        let folders = folders.map(|it| it.to_string_lossy().into_owned());
        Self {
            folders: folders.collect(),
        }
    }
}

impl Files for SourceFiles {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        foreign_file::read(Path::new(path), LARGEST).ok()
    }

    fn folders(&self) -> &[String] {
        &self.folders
    }
}
