//! What is a program, to those who build it several ways and compare?

use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
    Rust,
}

/// A program that can be built with one command.
#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    pub language: Language,
    pub sources: Vec<PathBuf>,
    /// Options for this program alone: definitions, include folders, dialect.
    pub flags: Vec<String>,
    /// Options that follow the sources.
    pub libraries: Vec<String>,
    /// What it is given when it runs.
    pub arguments: Vec<String>,
}

impl Program {
    /// The words after the compiler's name: `common`, then our own, then files.
    pub fn compile(&self, common: &[String], output: &Path) -> Vec<String> {
        let sources = self.sources.iter().map(|path| path.display().to_string());
        let mut words = common.to_vec();
        words.extend(self.flags.iter().cloned());
        words.extend(sources);
        words.extend(["-o".to_owned(), output.display().to_string()]);
        words.extend(self.libraries.iter().cloned());
        words
    }

    pub fn command(&self, executable: &Path) -> Command {
        let mut command = Command::new(executable);
        command.args(&self.arguments);
        command
    }
}

/// Two builds can be compared instruction by instruction only without the nops
/// that an assembler adds: they move when code is inserted.
pub const NO_ALIGNMENT: [&str; 4] = [
    "-fno-align-functions",
    "-fno-align-loops",
    "-fno-align-jumps",
    "-fno-align-labels",
];
