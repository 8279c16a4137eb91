//! Starting a program and counting it.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use libc::pid_t;

use crate::foreign_file;
use crate::journal::{Entry, Journal, VERSION};
use crate::kernel;
use crate::monitor::Monitor;
use crate::own_folder::OwnFolder;
use crate::requests::Requests;
use crate::{Error, Outcome, Settings, proc};

/// Runs a command and counts it, children included. The journal goes into `folder`.
pub fn run(
    command: &[OsString],
    folder: &OwnFolder,
    settings: &Settings<'_>,
) -> Result<Outcome, Error> {
    let words: Vec<String> = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let name = words.first().cloned().unwrap_or_default();
    let arguments = c_strings(command).map_err(|error| Error::CannotRun(name.clone(), error))?;
    let as_it_is = command.first().is_some_and(|it| is_elf(Path::new(it)));
    let held = kernel::fork_and_hold(&arguments, as_it_is).map_err(|it| Error::Io("fork", it))?;
    let monitor = match prepare(held.pid, words, folder, settings) {
        Ok(monitor) => monitor,
        Err(error) => {
            held.end();
            return Err(error);
        }
    };
    if let Some(onlooker) = settings.onlooker {
        onlooker.begins(held.pid);
    }
    let failed = held.let_go();
    let outcome = monitor.count();
    if let Some(error) = kernel::exec_failure(failed) {
        return Err(match error.kind() {
            io::ErrorKind::NotFound => Error::NotFound(name),
            _ => Error::CannotRun(name, error),
        });
    }
    Ok(outcome)
}

/// Makes everything ready to count a program that is about to begin.
fn prepare<'a>(
    pid: pid_t,
    words: Vec<String>,
    folder: &OwnFolder,
    settings: &'a Settings<'a>,
) -> Result<Monitor<'a>, Error> {
    let the_journal = |it| Error::Io("the journal", it);
    let journal = begin_journal(folder, words, settings, false)?;
    match kernel::seize(pid, true) {
        // Killed before it began: that is how it ends.
        Err(_) if proc::is_zombie(pid) => {}
        seized => seized.map_err(|it| Error::NotAllowed(pid, it))?,
    }
    let requests = Requests::listen(Some(pid));
    let mut monitor = Monitor::new(settings, journal, requests, pid).map_err(the_journal)?;
    monitor.add_thread(pid, pid, 0).map_err(the_journal)?;
    Ok(monitor)
}

/// Is this the path of a program in the kernel's own format? What else the kernel does not know is
/// handed to a shell, for it may be a script; but what is broken or for another machine is not.
pub fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let is_path = path.as_os_str().as_bytes().contains(&b'/');
    let read = |mut file: File| file.read_exact(&mut magic);
    is_path && foreign_file::open(path).and_then(read).is_ok() && magic == *b"\x7fELF"
}

fn c_strings(words: &[OsString]) -> io::Result<Vec<CString>> {
    let word = |word: &OsString| CString::new(word.as_bytes()).map_err(io::Error::from);
    let words: Vec<CString> = words.iter().map(word).collect::<Result<_, _>>()?;
    match words.is_empty() {
        true => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        false => Ok(words),
    }
}

/// Begins the journal of a run; of a program that runs already, if it is `in_the_middle`.
pub fn begin_journal(
    folder: &OwnFolder,
    command: Vec<String>,
    settings: &Settings<'_>,
    in_the_middle: bool,
) -> Result<Journal, Error> {
    let started = now();
    let first = Entry::Run {
        version: VERSION,
        command,
        started,
        cpu: processor(),
        key: format!("monitor-{started}-{}", std::process::id()),
        batch: settings.batch.to_owned(),
        in_the_middle,
    };
    Journal::create(folder, &first).map_err(|it| Error::Io("the journal", it))
}

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| it.as_nanos() as u64)
}

/// The machine's name for its processor.
fn processor() -> String {
    let Ok(file) = File::open("/proc/cpuinfo") else {
        return String::new();
    };
    // There is a stretch for every processor; the first has it.
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let mut names = lines.filter_map(|line| {
        let (_, name) = line.strip_prefix("model name")?.split_once(':')?;
        Some(name.trim().to_owned())
    });
    names.next().unwrap_or_default()
}
