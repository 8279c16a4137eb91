//! Where results go.

use anyhow::Context;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Writes a result to the file the user named, or to standard output: colour, if there is any in
/// it, only where it is wanted (`NO_COLOR`, terminals).
pub fn write(to: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match file(to) {
        Some(path) => write_file(path, anstream::adapter::strip_str(text).to_string()),
        None => write_to(anstream::stdout().lock(), text),
    }
}

/// Writes text that must arrive as it is (CSV): untouched, unless it goes to a terminal, which
/// must not obey what stands in names.
pub fn write_exact(to: Option<&Path>, text: &str) -> anyhow::Result<()> {
    let stdout = io::stdout().lock();
    match file(to) {
        Some(path) => write_file(path, text),
        None if stdout.is_terminal() => {
            write_to(stdout, headcount_report::visible_lines(text).as_bytes())
        }
        None => write_to(stdout, text),
    }
}

/// Writes a result that need not be text.
pub fn write_bytes(to: Option<&Path>, bytes: &[u8]) -> anyhow::Result<()> {
    match file(to) {
        Some(path) => write_file(path, bytes),
        None => write_to(io::stdout().lock(), bytes),
    }
}

/// How many columns a result may have: what `COLUMNS` says, or the terminal it goes to, or 80.
pub fn width(to: Option<&Path>) -> usize {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|it| it.parse().ok()).filter(|it| *it > 0);
    let terminal = || match file(to) {
        None => terminal_size::terminal_size_of(io::stdout()),
        Some(_) => None,
    };
    said.or_else(|| terminal().map(|(width, _)| width.0.into()))
        .unwrap_or(80)
}

/// The file the user named; `-` is standard output.
fn file(to: Option<&Path>) -> Option<&Path> {
    to.filter(|path| *path != Path::new("-"))
}

fn write_file(path: &Path, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))
}

fn write_to(mut stdout: impl Write, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let written = stdout.write_all(text.as_ref());
    written
        .and_then(|()| stdout.flush())
        .context("standard output: cannot be written")
}

/// Did the reader of our output go away? Then there is nothing left to do, and nothing wrong.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |it: &io::Error| it.kind() == io::ErrorKind::BrokenPipe;
    error
        .chain()
        .any(|cause| cause.downcast_ref().is_some_and(is_pipe))
}
