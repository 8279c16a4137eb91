//! What is different about two runs?

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::sandbox::Ran;

/// What headcount itself says begins like this. It is told apart from what the program says.
const OURS: &str = "headcount: ";

/// The first thing in which `other` is not as `first`, or none.
pub fn difference(first: &Ran, other: &Ran) -> Result<Option<String>> {
    if first.end != other.end {
        let said = complaint(&other.folder)?;
        return Ok(Some(format!("{}, not {}{said}", other.end, first.end)));
    }
    for stream in ["stdout", "stderr"] {
        let text =
            |ran: &Ran| -> Result<Vec<u8>> { Ok(of_program(&read(&ran.folder.join(stream))?)) };
        if let Some(what) = unequal(&text(first)?, &text(other)?) {
            return Ok(Some(format!("{stream} {what}")));
        }
    }
    in_files(&first.folder.join("here"), &other.folder.join("here"))
}

/// What headcount said while the program ran.
pub fn remarks(ran: &Ran) -> Result<Vec<String>> {
    let text = read(&ran.folder.join("stderr"))?;
    let text = String::from_utf8_lossy(&text);
    let ours = text.lines().filter_map(|line| line.strip_prefix(OURS));
    Ok(ours.map(str::to_owned).collect())
}

fn of_program(text: &[u8]) -> Vec<u8> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let theirs = lines.filter(|line| !line.starts_with(OURS.as_bytes()));
    theirs.flatten().copied().collect()
}

/// The last line of stderr, for who looks for the reason of a bad end.
fn complaint(folder: &Path) -> Result<String> {
    let text = read(&folder.join("stderr"))?;
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    Ok(last
        .map(|line| format!(" ({})", line.trim()))
        .unwrap_or_default())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// Says where two texts part ways.
pub fn unequal(first: &[u8], other: &[u8]) -> Option<String> {
    if first == other {
        return None;
    }
    let lines = |text: &[u8]| -> Vec<String> {
        let lines = text.split(|byte| *byte == b'\n');
        lines
            .map(|it| String::from_utf8_lossy(it).into_owned())
            .collect()
    };
    let (first, other) = (lines(first), lines(other));
    let at = first.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let line = |of: &[String]| match of.get(at) {
        Some(line) => format!("{:?}", line.chars().take(100).collect::<String>()),
        None => "its end".to_owned(),
    };
    Some(format!(
        "line {}: {}, not {}",
        at + 1,
        line(&other),
        line(&first)
    ))
}

fn in_files(first: &Path, other: &Path) -> Result<Option<String>> {
    let (before, after) = (tree(first)?, tree(other)?);
    for (name, entry) in &before {
        match after.get(name) {
            None => return Ok(Some(format!("{} is missing", name.display()))),
            Some(it) if it == entry => {}
            Some(Entry { mode, .. }) if *mode != entry.mode => {
                return Ok(Some(format!(
                    "{} has mode {mode:o}, not {:o}",
                    name.display(),
                    entry.mode
                )));
            }
            Some(it) => {
                let what = unequal(&entry.content, &it.content).unwrap_or_default();
                return Ok(Some(format!("{} {what}", name.display())));
            }
        }
    }
    let new = after.keys().find(|name| !before.contains_key(*name));
    Ok(new.map(|name| format!("{} was not there", name.display())))
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    kind: &'static str,
    mode: u32,
    content: Vec<u8>,
}

/// Everything below a folder, by its name in there.
fn tree(root: &Path) -> Result<BTreeMap<PathBuf, Entry>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let entry = look_at(&path).with_context(|| path.display().to_string())?;
            if entry.kind == "folder" {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(root)?.to_owned(), entry);
        }
    }
    Ok(found)
}

fn look_at(path: &Path) -> Result<Entry> {
    let facts = fs::symlink_metadata(path)?;
    let kind = facts.file_type();
    let (kind, content) = if kind.is_dir() {
        ("folder", Vec::new())
    } else if kind.is_symlink() {
        ("link", fs::read_link(path)?.as_os_str().as_bytes().to_vec())
    } else if kind.is_file() {
        ("file", fs::read(path)?)
    } else if kind.is_socket() {
        ("socket", Vec::new())
    } else {
        ("other", Vec::new())
    };
    Ok(Entry {
        kind,
        mode: facts.permissions().mode(),
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_ground::child::End;
    use std::fs::Permissions;

    fn ran(folder: &Path, stdout: &str, stderr: &str) -> Ran {
        fs::create_dir_all(folder.join("here")).unwrap();
        fs::write(folder.join("stdout"), stdout).unwrap();
        fs::write(folder.join("stderr"), stderr).unwrap();
        Ran {
            folder: folder.to_owned(),
            end: End::Exit(0),
            seconds: 0.0,
        }
    }

    #[test]
    fn every_kind_of_difference_is_seen() {
        let work = tempfile::tempdir().unwrap();
        let at = |name: &str| work.path().join(name);
        let first = ran(&at("a"), "one\ntwo\n", "");
        fs::write(at("a/here/f"), "x").unwrap();
        let told = |it: &Ran| difference(&first, it).unwrap().unwrap_or_default();

        let mut other = ran(&at("b"), "one\ntwo\n", "headcount: said\n");
        assert_eq!(told(&other), "f is missing");
        fs::write(at("b/here/f"), "y").unwrap();
        assert_eq!(told(&other), "f line 1: \"y\", not \"x\"");
        fs::write(at("b/here/f"), "x").unwrap();
        assert_eq!(told(&other), "");
        assert_eq!(remarks(&other).unwrap(), ["said"]);
        fs::set_permissions(at("b/here/f"), Permissions::from_mode(0o755)).unwrap();
        assert!(told(&other).starts_with("f has mode"));
        fs::set_permissions(
            at("b/here/f"),
            fs::metadata(at("a/here/f")).unwrap().permissions(),
        )
        .unwrap();
        fs::write(at("b/here/g"), "").unwrap();
        assert_eq!(told(&other), "g was not there");
        fs::write(at("b/stdout"), "one\n2\n").unwrap();
        assert_eq!(told(&other), "stdout line 2: \"2\", not \"two\"");
        other.end = End::Exit(1);
        assert_eq!(
            told(&other),
            "exit status 1, not exit status 0 (headcount: said)"
        );
    }
}
