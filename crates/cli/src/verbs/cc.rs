//! `headcount cc`: runs a compiler with headcount in the place of its assembler.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::args::Cc;
use crate::assembler::{BARE_VARIABLE, CLANG_VARIABLE, COMPILER_VARIABLE};
use crate::talk;

/// The compiler could not be run; the status is the shell's for that.
#[derive(Debug, thiserror::Error)]
#[error("{program}: {error}")]
pub struct CannotRun {
    program: String,
    error: std::io::Error,
    /// 127 if it is not there, 126 if it is there but does not run.
    pub status: u8,
}

/// Becomes the compiler. Comes back only if that fails.
pub fn run(args: &Cc) -> Result<ExitCode> {
    if args.via != "assembly" {
        bail!("--via {}: there is one route so far, `assembly`", args.via);
    }
    let command = args.command.as_slice();
    let at = compiler_position(command);
    let Some(compiler) = command.get(at) else {
        bail!("no compiler given; try `headcount cc -- gcc -O2 -g prog.c -o prog`");
    };
    let arguments = &command[at + 1..];
    let mut run = Command::new(&command[0]);
    run.args(&command[1..=at]);
    let place = match is_compiler(compiler) && assembles(arguments) {
        true => assembler_folder().map(Some),
        false => Ok(None),
    };
    match place {
        Ok(Some(folder)) => take_the_assemblers_place(&mut run, compiler, arguments, &folder),
        Ok(None) => _ = run.args(arguments),
        Err(error) => {
            talk::say(format!("not counted: {error:#}"));
            run.args(arguments);
        }
    }
    let error = run.exec();
    bail!(CannotRun {
        status: if error.kind() == ErrorKind::NotFound {
            127
        } else {
            126
        },
        program: command[0].to_string_lossy().into_owned(),
        error,
    });
}

fn take_the_assemblers_place(
    run: &mut Command,
    compiler: &OsStr,
    arguments: &[OsString],
    folder: &Path,
) {
    let mut prefix = OsString::from("-B");
    prefix.push(folder);
    prefix.push("/");
    run.arg(prefix);
    run.env(COMPILER_VARIABLE, compiler);
    if is_bare(arguments) {
        talk::say("not counted: a program without a C library");
        run.env(BARE_VARIABLE, "1");
    } else {
        run.env_remove(BARE_VARIABLE);
    }
    if is_clang(compiler) {
        if links_with_llvm(arguments) {
            talk::say(
                "not counted: with -flto, clang makes code of it where no assembler is asked; add -fno-lto",
            );
        }
        run.args(["-fno-integrated-as", "-Wno-unused-command-line-argument"]);
        run.env(CLANG_VARIABLE, "1");
        let others = |word: &&OsString| *word != "-fintegrated-as" && *word != "-integrated-as";
        run.args(arguments.iter().filter(others));
    } else {
        run.env_remove(CLANG_VARIABLE);
        run.args(arguments);
    }
    // gold takes our map, which speaks of all code, for a mistake where it throws some away.
    let has = |text: &str| {
        arguments
            .iter()
            .any(|word| word.to_string_lossy().contains(text))
    };
    if has("-fuse-ld=gold") && has("--gc-sections") {
        run.arg("-Wl,--no-gc-sections");
    }
}

/// Some build systems put the same words before every command they run.
fn is_compiler(program: &OsStr) -> bool {
    const OTHERS: [&str; 14] = [
        "ar",
        "as",
        "gcc-ar",
        "gcc-nm",
        "gcc-ranlib",
        "gold",
        "ld",
        "lld",
        "llvm-ar",
        "llvm-ranlib",
        "nm",
        "objcopy",
        "ranlib",
        "strip",
    ];
    let name = Path::new(program)
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    !OTHERS.contains(&name) && !name.starts_with("ld.")
}

/// Whether the program is to run without a C library. (Libraries are often linked by hand, too,
/// but into programs that have one.)
fn is_bare(arguments: &[OsString]) -> bool {
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    has("-ffreestanding")
        || (has("-nostartfiles") || has("-nostdlib")) && !has("-shared") && !has("-r")
}

/// Whether the last word on it is that code is made when linking.
fn links_with_llvm(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let last = words.rfind(|word| word.starts_with("-flto") || *word == "-fno-lto");
    last.is_some_and(|word| word != "-fno-lto")
}

/// Launchers stand before the compiler proper: `ccache gcc ...`.
fn compiler_position(command: &[OsString]) -> usize {
    const LAUNCHERS: [&str; 4] = ["ccache", "distcc", "sccache", "icecc"];
    command
        .iter()
        .position(|word| {
            let name = Path::new(word)
                .file_name()
                .and_then(OsStr::to_str)
                .unwrap_or_default();
            !LAUNCHERS.contains(&name)
        })
        .unwrap_or(0)
}

/// Whether the compiler will run an assembler, or a linker that may run one (`-flto`).
fn assembles(arguments: &[OsString]) -> bool {
    let words = || arguments.iter().filter_map(|word| word.to_str());
    let stops =
        words().any(|word| matches!(word, "-E" | "-S" | "-M" | "-MM" | "-fsyntax-only" | "-###"));
    // Words that are not UTF-8 are names of files.
    let has_input = arguments.iter().any(|word| {
        word.to_str()
            .is_none_or(|word| !word.starts_with('-') || word == "-")
    });
    has_input && !stops
}

fn is_clang(compiler: &OsStr) -> bool {
    let name = |path: &Path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().contains("clang"))
    };
    if name(Path::new(compiler)) {
        return true;
    }
    // `cc` may be either: where it leads says which.
    let found = env::var_os("PATH").and_then(|paths| {
        env::split_paths(&paths)
            .map(|folder| folder.join(compiler))
            .find_map(|path| path.canonicalize().ok())
    });
    found.is_some_and(|path| name(&path))
}

/// A private folder with a link `as` that leads to this program.
fn assembler_folder() -> Result<PathBuf> {
    let this = env::current_exe().context("cannot find my own program file")?;
    let meta =
        fs::metadata(&this).with_context(|| format!("{}: cannot be examined", this.display()))?;
    // One folder for each build of headcount, so that two of them never meet.
    let name = format!("as-{:x}-{:x}-{:x}", meta.dev(), meta.ino(), meta.mtime());
    let kept = cache_folder().map(|base| assembler_link(&this, base.join("headcount").join(&name)));
    match kept {
        Some(Ok(folder)) => Ok(folder),
        // Builders of packages have no home worth the name.
        _ => assembler_link(&this, temporary_folder()?.join(name)),
    }
}

fn assembler_link(this: &Path, folder: PathBuf) -> Result<PathBuf> {
    let link = folder.join("as");
    if fs::read_link(&link).is_ok_and(|target| target == this) && is_private(&folder) {
        return Ok(folder);
    }
    make_private(&folder)?;
    // Many compilers run at once: each makes its own link and moves it into place.
    let mine = folder.join(format!("as.{}", std::process::id()));
    let _ = fs::remove_file(&mine);
    symlink(this, &mine)
        .and_then(|()| fs::rename(&mine, &link))
        .with_context(|| format!("{}: cannot be made", link.display()))?;
    Ok(folder)
}

fn make_private(folder: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("{}: cannot be made", folder.display()))?;
    if !is_private(folder) {
        bail!(
            "{}: belongs to another user, or others may write to it",
            folder.display()
        );
    }
    Ok(())
}

fn is_private(folder: &Path) -> bool {
    let us = user();
    fs::symlink_metadata(folder).is_ok_and(|meta| {
        meta.is_dir() && us.is_ok_and(|us| us == meta.uid()) && meta.mode() & 0o022 == 0
    })
}

/// Who we are: /proc/self belongs to us.
fn user() -> std::io::Result<u32> {
    fs::metadata("/proc/self").map(|meta| meta.uid())
}

/// A folder of our own among the temporary ones, where others could put theirs in its place.
fn temporary_folder() -> Result<PathBuf> {
    let folder = env::temp_dir().join(format!("headcount-{}", user()?));
    make_private(&folder)?;
    Ok(folder)
}

fn cache_folder() -> Option<PathBuf> {
    let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    named.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))
}
