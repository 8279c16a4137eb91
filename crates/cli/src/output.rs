//! Where results go.

use anyhow::Context;
use headcount_profile::Profile;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

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

/// Writes bytes that must arrive as they are. A terminal gets them only if they are text, which it
/// must not obey.
pub fn write_bytes(to: Option<&Path>, bytes: &[u8]) -> anyhow::Result<()> {
    let stdout = io::stdout().lock();
    match (file(to), std::str::from_utf8(bytes)) {
        (Some(path), _) => write_file(path, bytes),
        (None, _) if !stdout.is_terminal() => write_to(stdout, bytes),
        (None, Ok(text)) => write_to(stdout, headcount_report::visible_lines(text).as_bytes()),
        (None, Err(_)) => {
            anyhow::bail!("this format is no text for a terminal; -o FILE writes it to a file")
        }
    }
}

/// Writes a file that `make` fills: under another name, so that nobody finds half of it. What is
/// there already is replaced by the whole one; what is no regular file gets its bytes.
pub fn write_made(
    to: Option<&Path>,
    make: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let is_regular = |path: &&Path| path.metadata().map_or(true, |it| it.is_file());
    let Some(path) = file(to).filter(is_regular) else {
        let made = tempfile::NamedTempFile::new().context("no temporary file can be made")?;
        make(made.path())?;
        let bytes = std::fs::read(made.path()).context("the temporary file cannot be read")?;
        return write_bytes(to, &bytes);
    };
    let unwritten = || format!("{}: cannot be written", path.display());
    // A link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let made = tempfile::Builder::new()
        .prefix(".headcount-")
        .permissions(rights_of(&path))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .with_context(unwritten)?;
    make(made.path())?;
    made.as_file().sync_all().with_context(unwritten)?;
    made.persist(&path).with_context(unwritten)?;
    Ok(())
}

/// Fails if a result would replace a profile: `-o` of `run` names one, and `-o` of verbs that read
/// what they write.
pub fn spare_profile(to: Option<&Path>) -> anyhow::Result<()> {
    match file(to).filter(|path| Profile::is_at(path)) {
        None => Ok(()),
        Some(path) => anyhow::bail!(
            "{}: is a profile, which would be lost; name another file (to read this one: -i {0})",
            path.display()
        ),
    }
}

/// The rights of a file that is replaced; of a new one, what the user's umask leaves of all.
fn rights_of(path: &Path) -> Permissions {
    let rights = path.metadata().map(|it| it.permissions());
    rights.unwrap_or_else(|_| Permissions::from_mode(0o666))
}

/// Writes a result as [`write`] does; on a terminal, through the user's pager, which knows what to
/// do with long ones.
pub fn page(to: Option<&Path>, text: &str) -> anyhow::Result<()> {
    let stdout = io::stdout();
    if file(to).is_some() || !stdout.is_terminal() || fits(text) {
        return write(to, text);
    }
    let Some(mut child) = pager().and_then(|mut it| it.spawn().ok()) else {
        return write(to, text);
    };
    let has_colour = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    let text = match has_colour {
        true => text.to_owned(),
        false => anstream::adapter::strip_str(text).to_string(),
    };
    if let Some(mut stdin) = child.stdin.take() {
        // Who has seen enough leaves the pager.
        let _ = stdin.write_all(text.as_bytes());
    }
    child.wait().context("the pager cannot be waited for")?;
    Ok(())
}

/// Does it fit on the terminal?
fn fits(text: &str) -> bool {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.is_some_and(|(_, height)| text.lines().count() < usize::from(height.0))
}

/// The user's pager; none, if it is said to be nothing or `cat`.
fn pager() -> Option<Command> {
    let said = ["HEADCOUNT_PAGER", "PAGER"].map(std::env::var_os);
    let pager = said.into_iter().flatten().next();
    let pager = pager.unwrap_or_else(|| "less".into());
    if pager.is_empty() || pager == "cat" {
        return None;
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    // Colours as they are, and nothing wiped away in the end.
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    Some(command)
}

/// How many columns the terminal has that a result goes to, if it goes to one.
pub fn terminal_width(to: Option<&Path>) -> Option<usize> {
    let is_terminal = file(to).is_none() && io::stdout().is_terminal();
    is_terminal.then(|| width(to))
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

/// How many lines a screen has: of the terminal that a result goes to, or as many as is common. What
/// the shell says next takes one.
pub fn screen(to: Option<&Path>) -> usize {
    const COMMON: usize = 24;
    let terminal = match file(to) {
        None => terminal_size::terminal_size_of(io::stdout()),
        Some(_) => None,
    };
    terminal.map_or(COMMON, |(_, height)| height.0.into()) - 1
}

/// Does a result go to standard output?
pub fn is_standard(to: Option<&Path>) -> bool {
    file(to).is_none()
}

/// The file the user named; `-` is standard output.
fn file(to: Option<&Path>) -> Option<&Path> {
    to.filter(|path| *path != Path::new("-"))
}

/// Keeps the file that a result will be written to from some (bits of a file's mode). What is no
/// regular file is left as it is.
pub fn keep_from(to: Option<&Path>, whom: u32) -> anyhow::Result<()> {
    let is_regular = |path: &&Path| path.metadata().map_or(true, |it| it.is_file());
    let Some(path) = file(to).filter(is_regular).filter(|_| whom != 0) else {
        return Ok(());
    };
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).mode(0o666 & !whom);
    file.open(path)
        .and_then(|it| tighten(&it, whom))
        .with_context(|| format!("{}: cannot be kept from others", path.display()))
}

/// Writes a file, but through no link to another place, and not for some (bits of a file's mode).
pub fn write_new(path: &Path, text: &str, kept_from: u32) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.mode(0o666 & !kept_from);
    let write = |mut file: File| {
        tighten(&file, kept_from)?;
        file.write_all(text.as_bytes())
    };
    let file = options.custom_flags(libc::O_NOFOLLOW).open(path);
    file.and_then(write)
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// Takes rights on a file away, if anybody has them.
fn tighten(file: &File, whom: u32) -> io::Result<()> {
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    match mode & whom {
        0 => Ok(()),
        _ => file.set_permissions(Permissions::from_mode(mode & !whom)),
    }
}

fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
    spare_profile(Some(path))?;
    std::fs::write(path, bytes).with_context(|| format!("{}: cannot be written", path.display()))
}

fn write_to(mut stdout: impl Write, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let written = stdout.write_all(bytes.as_ref());
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
