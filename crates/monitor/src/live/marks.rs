//! Moments of a run that somebody gave a name, kept in its folder until the run is stored.
//!
//! `mark.N`, N nanoseconds since 1970: a line with the name, as JSON, and then the snapshot.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use headcount_model::PAUSED;
use headcount_request::LONGEST_NAME;

use crate::foreign_file;
use crate::journal::{JOURNAL, ROUTINES, Unreadable, private_file};
use crate::kernel;
use crate::live::ask::{Answer, SoFar};
use crate::live::{Moment, all_of};
use crate::own_folder::OwnFolder;

const PREFIX: &str = "mark.";

/// A moment with a name.
#[derive(Debug)]
pub struct Mark {
    /// Its name.
    pub name: String,
    /// What was counted until then.
    pub so_far: SoFar,
}

/// May a phase have this name? Else: what is wrong.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    match name {
        "" => Err("a phase needs a name"),
        "start" => Err("`start` is what comes before the first mark"),
        PAUSED => Err("`paused` is what the program leaves out of reports"),
        _ if name.chars().any(char::is_control) || name.len() > LONGEST_NAME => {
            Err("say a short name without control characters")
        }
        _ => Ok(()),
    }
}

/// Keeps a moment. Only the whole of it is ever found.
pub(super) fn keep(folder: &Path, name: &str, moment: &Moment, snapshot: &File) -> io::Result<()> {
    let unfinished = folder.join(format!("unfinished.{}", moment.at));
    let mut file = private_file(&unfinished)?;
    writeln!(file, "{}", serde_json::Value::from(name))?;
    file.write_all(&all_of(snapshot)?)?;
    fs::rename(&unfinished, folder.join(format!("{PREFIX}{}", moment.at)))
}

/// The marks of a run, in the order of their moments.
pub fn marks(folder: &OwnFolder) -> Result<Vec<Mark>, Unreadable> {
    let failed = |name: &str, error| Unreadable::Io(folder.path().join(name), error);
    let entries = fs::read_dir(folder.all()).map_err(|error| failed("", error))?;
    let names = entries.flatten().map(|it| it.file_name());
    let names = names.filter_map(|it| Some(it.to_str()?.to_owned()));
    let names = names.filter(|it| it.starts_with(PREFIX));
    let read = |name: String| {
        let open = |name: &str| foreign_file::open(&folder.file(name));
        let (title, snapshot) = open(&name)
            .and_then(taken_apart)
            .map_err(|error| failed(&name, error))?;
        let answer = Answer {
            snapshot,
            journal: open(JOURNAL).map_err(|error| failed(JOURNAL, error))?,
            routines: open(ROUTINES).ok(),
        };
        Ok(Mark {
            name: title,
            so_far: answer.read(folder)?,
        })
    };
    let mut marks: Vec<Mark> = names.map(read).collect::<Result<_, Unreadable>>()?;
    marks.sort_by_key(|it| it.so_far.moment.at);
    Ok(marks)
}

/// The name, and the snapshot as a file of its own.
fn taken_apart(file: File) -> io::Result<(String, File)> {
    let mut file = BufReader::new(file);
    let mut line = String::new();
    file.by_ref().take(4096).read_line(&mut line)?;
    let name: String = serde_json::from_str(&line)?;
    let mut snapshot = kernel::memory_file()?;
    io::copy(&mut file, &mut snapshot)?;
    Ok((name, snapshot))
}
