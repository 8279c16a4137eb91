//! Where results go.

use anyhow::Context;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Writes a result to the file the user named, or to standard output.
pub fn write(to: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match to.filter(|path| *path != Path::new("-")) {
        Some(path) => std::fs::write(path, anstream::adapter::strip_str(text).to_string())
            .with_context(|| format!("{}: cannot be written", path.display())),
        None => {
            // Colour, if there is any in it, only where it is wanted (`NO_COLOR`, terminals).
            let mut stdout = anstream::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            Ok(stdout.flush()?)
        }
    }
}

/// Writes text that must arrive as it is (CSV): untouched, unless it goes to a terminal, which
/// must not obey what stands in names.
pub fn write_exact(to: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match to.filter(|path| *path != Path::new("-")) {
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("{}: cannot be written", path.display())),
        None => {
            let mut stdout = io::stdout().lock();
            match stdout.is_terminal() {
                true => stdout.write_all(headcount_report::visible_lines(text).as_bytes())?,
                false => stdout.write_all(text.as_bytes())?,
            }
            Ok(stdout.flush()?)
        }
    }
}

/// Did the reader of our output go away? Then there is nothing left to do, and nothing wrong.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |it: &io::Error| it.kind() == io::ErrorKind::BrokenPipe;
    error
        .chain()
        .any(|cause| cause.downcast_ref().is_some_and(is_pipe))
}
