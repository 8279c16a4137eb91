//! Which programs are in `gcc.c-torture/execute`, and how does GCC build them?
//!
//! Three folders, three ways, as `execute.exp`, `ieee.exp` and `builtins.exp`
//! say. The suite is not ours and is not in our tree: it is taken from the
//! archive in Debian's package of GCC's sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use headcount_ground::child;
use headcount_ground::program::{Language, Program};
use headcount_oracle::stated::Stated;

use crate::directives::{self, Directives};

const INSIDE: &str = "gcc/testsuite/gcc.c-torture/execute";

/// One file of the suite, not yet asked for which flags.
pub struct Test {
    pub name: String,
    source: PathBuf,
    companions: Vec<PathBuf>,
    folder_flags: Vec<String>,
    text: String,
}

impl Test {
    /// The program at one level, or why it is not for this machine.
    pub fn at(&self, level: &str) -> Result<Program, String> {
        let Directives { options, skip } = directives::read(&self.text, &[level.to_owned()]);
        if let Some(reason) = skip {
            return Err(reason);
        }
        let mut sources = vec![self.source.clone()];
        sources.extend(self.companions.iter().cloned());
        Ok(Program {
            name: self.name.clone(),
            language: Language::C,
            sources,
            flags: self.folder_flags.iter().cloned().chain(options).collect(),
            libraries: vec!["-lm".to_owned()],
            arguments: Vec::new(),
        })
    }
}

/// All programs of the suite, sorted by name; unpacked into `folder` if they are not yet.
pub fn tests(folder: &Path, package: &str) -> Result<Vec<Test>> {
    let execute = unpacked(folder, package)?;
    let mut tests = plain(&execute)?;
    tests.extend(ieee(&execute)?);
    tests.extend(builtins(&execute)?);
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tests)
}

/// Programs of a folder that state in their margins how they are to be optimised.
pub fn of_folder(folder: &Path) -> Result<Vec<Program>> {
    let folder = folder
        .canonicalize()
        .with_context(|| folder.display().to_string())?;
    let mut programs = Vec::new();
    for source in files(&folder)? {
        let language = match source.extension().and_then(|it| it.to_str()) {
            Some("c") => Language::C,
            Some("cc") => Language::Cxx,
            Some("rs") => Language::Rust,
            _ => continue,
        };
        let text = fs::read_to_string(&source)?;
        let stated = Stated::parse(&source, &text)
            .with_context(|| format!("{}: senseless", source.display()))?;
        if stated.optimised.is_empty() {
            continue;
        }
        let libraries: &[&str] = match language {
            Language::Rust => &[],
            _ => &["-lm"],
        };
        programs.push(Program {
            name: format!("programs/{}", stem(&source)),
            language,
            sources: vec![source],
            flags: stated.flags,
            libraries: libraries.iter().map(|it| (*it).to_owned()).collect(),
            arguments: stated.args,
        });
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

fn plain(execute: &Path) -> Result<Vec<Test>> {
    sources(execute)?
        .iter()
        .map(|source| test("", source, &[], vec![]))
        .collect()
}

fn ieee(execute: &Path) -> Result<Vec<Test>> {
    let flags = ["-fno-inline"];
    let sources = sources(&execute.join("ieee"))?;
    sources
        .iter()
        .map(|source| test("ieee/", source, &flags, vec![]))
        .collect()
}

/// Each comes with a library of its own that replaces functions of libc.
fn builtins(execute: &Path) -> Result<Vec<Test>> {
    let folder = execute.join("builtins");
    let flags = [
        "-fno-tree-dse",
        "-fno-tree-loop-distribute-patterns",
        "-fno-tracer",
        "-fno-ipa-ra",
        "-fno-inline-functions",
    ];
    let is_library = |path: &PathBuf| stem(path).ends_with("-lib");
    let sources = sources(&folder)?
        .into_iter()
        .filter(|path| !is_library(path));
    sources
        .map(|source| {
            let library = folder.join(format!("{}-lib.c", stem(&source)));
            let companions = vec![library, folder.join("lib/main.c")];
            test("builtins/", &source, &flags, companions)
        })
        .collect()
}

fn test(prefix: &str, source: &Path, flags: &[&str], companions: Vec<PathBuf>) -> Result<Test> {
    // Some of the oldest programs are in Latin-1.
    let text = fs::read(source).with_context(|| source.display().to_string())?;
    let script = fs::read_to_string(source.with_extension("x")).unwrap_or_default();
    let folder_flags = flags
        .iter()
        .map(|flag| (*flag).to_owned())
        .chain(script_flags(&script));
    Ok(Test {
        name: format!("{prefix}{}", stem(source)),
        source: source.to_owned(),
        companions,
        folder_flags: folder_flags.collect(),
        text: String::from_utf8_lossy(&text).into_owned(),
    })
}

/// The flags that a Tcl script beside a program adds whatever the machine is:
/// those it sets outside every `if`.
fn script_flags(script: &str) -> Vec<String> {
    let added = script.lines().filter_map(|line| {
        line.strip_prefix("lappend additional_flags ")
            .or_else(|| line.strip_prefix("set additional_flags "))
    });
    let words = added.flat_map(str::split_whitespace);
    words
        .map(|word| word.trim_matches('"').to_owned())
        .collect()
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(files(folder)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "c"))
        .collect())
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The folder of the suite. Unpacking goes to one side first, so that an
/// interrupted run does not leave half a suite behind. Who comes meanwhile waits.
fn unpacked(folder: &Path, package: &str) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let folder = &folder.canonicalize()?;
    let lock = fs::File::create(folder.join("unpacked-by-one-at-a-time"))?;
    lock.lock()?;
    let ready = folder.join("execute");
    if ready.is_dir() {
        return Ok(ready);
    }
    let archive = archive(folder, package)?;
    let aside = folder.join("unpacking");
    let _ = fs::remove_dir_all(&aside);
    fs::create_dir_all(&aside)?;
    eprintln!("headcount-torture: unpacking {}", archive.display());
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(&aside);
    tar.arg("--wildcards").arg(format!("*/{INSIDE}"));
    child::run_or_bail(&mut tar, folder, Duration::from_secs(300))?;
    let top = fs::read_dir(&aside)?
        .next()
        .context("the archive is empty")??
        .path();
    fs::rename(top.join(INSIDE), &ready)?;
    fs::remove_dir_all(&aside)?;
    Ok(ready)
}

fn archive(folder: &Path, package: &str) -> Result<PathBuf> {
    let mut dpkg = Command::new("dpkg");
    let listed = child::run(dpkg.args(["-L", package]), folder, Duration::from_secs(60))?;
    let files = String::from_utf8_lossy(&listed.stdout).into_owned();
    let Some(found) = files.lines().find(|file| is_archive(file)) else {
        bail!("GCC's sources are not installed; apt-get install {package}");
    };
    Ok(PathBuf::from(found))
}

fn is_archive(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.starts_with("gcc-") && name.contains(".tar.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unconditional_flags_of_a_script_are_taken() {
        let script = "if [istarget avr-*-*] {\n    lappend additional_flags \"-mx\"\n}\n\
                      lappend additional_flags \"-fno-ivopts\" \"-fno-gcse\"\nreturn 0\n";
        assert_eq!(script_flags(script), ["-fno-ivopts", "-fno-gcse"]);
        assert_eq!(
            script_flags("set additional_flags -fno-builtin-abs\n"),
            ["-fno-builtin-abs"]
        );
    }

    #[test]
    fn the_archive_is_told_from_other_files_of_the_package() {
        assert!(is_archive("/usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz"));
        assert!(!is_archive("/usr/src/gcc-12/gm2-20220506.tar.xz"));
        assert!(!is_archive("/usr/src/gcc-12/debian/patches/gcc-tar.diff"));
    }
}
