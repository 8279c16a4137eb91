//! The program that a command starts, or that a process is, and its libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

use headcount_binary::Outline;
use headcount_monitor::{FileBytes, foreign_file};

use crate::timed;

/// The files of the modules that a program begins with: its own first. What cannot be found out is left
/// out.
pub fn modules(program: &Path) -> Vec<(String, FileBytes)> {
    let Some(path) = found(program) else {
        return Vec::new();
    };
    let libraries = libraries(&path);
    let all = std::iter::once(path).chain(libraries);
    all.filter_map(|path| {
        let bytes = foreign_file::bytes(&path).ok()?;
        Some((path.to_str()?.to_owned(), bytes))
    })
    .collect()
}

/// The same of a process that runs; nothing, if not all of them can be read.
pub fn running(pid: i32) -> Vec<(String, FileBytes)> {
    let paths = headcount_monitor::code_files(pid).unwrap_or_default();
    let bytes = |path: &str| timed::read(pid.cast_unsigned(), Path::new(path));
    let all = paths.into_iter().map(|path| {
        let bytes = bytes(&path)?;
        Some((path, bytes))
    });
    all.collect::<Option<_>>().unwrap_or_default()
}

/// What names the build of one of them.
pub fn key(bytes: &FileBytes) -> Result<String, String> {
    let outline = Outline::read(bytes.clone(), &mut |_| None).map_err(|it| it.to_string())?;
    Ok(outline.key().to_owned())
}

/// The file that a word of a command means; of a script, its interpreter.
fn found(program: &Path) -> Option<PathBuf> {
    let is_path = program.components().count() > 1;
    let found = match is_path {
        true => program.to_owned(),
        false => {
            let folders = std::env::var_os("PATH")?;
            let mut places = std::env::split_paths(&folders).map(|it| it.join(program));
            places.find(|it| it.is_file())?
        }
    };
    let found = found.canonicalize().ok()?;
    let bytes = foreign_file::bytes(&found).ok()?;
    let text = (*bytes).as_ref();
    let Some(line) = text.strip_prefix(b"#!") else {
        return Some(found);
    };
    let line = line.split(|it| *it == b'\n').next()?;
    let word = String::from_utf8_lossy(line);
    PathBuf::from(word.split_whitespace().next()?)
        .canonicalize()
        .ok()
}

/// The libraries of a program, as the loader that it names lists them. (It lists, and runs nothing.)
fn libraries(path: &Path) -> Vec<PathBuf> {
    let Some(loader) = foreign_file::bytes(path).ok().and_then(|bytes| {
        headcount_binary::layout((*bytes).as_ref())
            .ok()?
            .interpreter
    }) else {
        return Vec::new();
    };
    let listed = Command::new(&loader).arg("--list").arg(path).output();
    let listed = listed.map(|it| it.stdout).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let mut paths: Vec<PathBuf> = listed.lines().filter_map(listed_path).collect();
    paths.push(PathBuf::from(loader));
    paths.dedup();
    paths
}

/// The path in a line of the loader: `NAME => PATH (ADDRESS)`, or without a name. It may be relative to the
/// current folder.
fn listed_path(line: &str) -> Option<PathBuf> {
    let (what, _) = line.rsplit_once(" (0x")?;
    let path = what.split_once(" => ").map_or(what, |it| it.1).trim();
    let is_path = path.contains('/');
    is_path.then(|| std::path::absolute(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::listed_path;
    use std::path::{Path, PathBuf};

    #[test]
    fn libraries_are_where_the_loader_says() {
        let path = |line: &str| listed_path(line);
        let known = |it: &str| Some(PathBuf::from(it));
        assert_eq!(
            path("\tlibc.so.6 => /lib/libc.so.6 (0x00007f27d5580000)"),
            known("/lib/libc.so.6")
        );
        assert_eq!(
            path("\tliba.so => /my work/liba.so (0x1000)"),
            known("/my work/liba.so")
        );
        assert_eq!(path("\t/lib64/ld.so (0x1000)"), known("/lib64/ld.so"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(
            path("\tliba.so => ./liba.so (0x1000)"),
            Some(here.join(Path::new("liba.so")))
        );
        assert_eq!(path("\tlinux-vdso.so.1 (0x1000)"), None);
        assert_eq!(path("\tlibb.so => not found"), None);
    }
}
