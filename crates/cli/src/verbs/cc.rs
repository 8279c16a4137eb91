//! `headcount cc`: runs a compiler with headcount in the place of its assembler, or on C that was
//! counted before.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result, bail};
use headcount_monitor::{OwnFolder, give_back_to};

use crate::args::{Cc, Route};
use crate::assembler::{BARE_VARIABLE, CLANG_VARIABLE, COMPILER_VARIABLE, OUR_NAME, PREFIX};
use crate::response_files;
use crate::source_route::command::Arguments;
use crate::source_route::{self, Rest};
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
    let command = without_end_of_options(&args.command);
    let at = compiler_position(&command);
    let Some(compiler) = command.get(at) else {
        bail!("no compiler given; try `headcount cc -- gcc -O2 -g prog.c -o prog`");
    };
    let arguments = &command[at + 1..];
    let is_for_us = is_compiler(compiler) && assembles(&response_files::expanded(arguments));
    if is_for_us && !is_like_gcc(compiler) {
        talk::say(format!(
            "not counted: {} is no compiler that headcount knows; it counts what gcc, clang and \
             what calls them compile",
            compiler.to_string_lossy()
        ));
        bail!(cannot_run(
            &command[0],
            become_it(&command[..=at], arguments)
        ));
    }
    if is_for_us && let Some(machine) = other_machine(compiler, arguments) {
        talk::say(format!(
            "not counted: it is compiled for {machine}, and headcount counts x86-64 programs only; \
             `headcount csource` counts C for any machine"
        ));
        bail!(cannot_run(
            &command[0],
            become_it(&command[..=at], arguments)
        ));
    }
    if args.via == Route::Source && is_for_us {
        return count_source(args, &command[..=at], arguments);
    }
    let error = become_compiler(&command[..=at], arguments);
    bail!(cannot_run(&command[0], error));
}

/// Counts what is C in the command, and leaves the rest to the assembler's place.
fn count_source(args: &Cc, program: &[OsString], arguments: &[OsString]) -> Result<ExitCode> {
    let compiler = &program[program.len() - 1];
    let words = response_files::expanded(arguments);
    let job = source_route::Job {
        program,
        arguments: Arguments::new(&words),
        said: arguments,
        every_block: args.every_block,
        is_clang: is_clang(compiler),
    };
    // What is for another machine is told of on the way there.
    if !job.has_c() || narrow_option(&words).is_some() {
        bail!(cannot_run(&program[0], become_compiler(program, arguments)));
    }
    if let Some(reason) = not_countable(compiler, &words) {
        talk::say(format!("not counted as source: {reason}"));
        let error = become_compiler(program, arguments);
        bail!(cannot_run(&program[0], error));
    }
    let not_run = |error| cannot_run(&program[0], error);
    if job.arguments.saves_temps
        && let Some(status) = save_temps(program, arguments).map_err(not_run)?
    {
        return Ok(status);
    }
    let rest = job.run(None).context("--via source")?;
    let status = match rest {
        Rest::Nothing => Ok(ExitCode::SUCCESS),
        Rest::Everything(reason) => in_one_piece(program, arguments, &reason),
        Rest::These(words, _folder) => finish(&job, program, &words),
    };
    Ok(status.map_err(not_run)?)
}

/// Has the compiler do what the user said, so that all files are there that it makes on the way,
/// under its own names; ours would be others. What comes of it in the end is made again, counted.
/// The status, if it fails.
fn save_temps(program: &[OsString], arguments: &[OsString]) -> std::io::Result<Option<ExitCode>> {
    let output = as_said(program, arguments).output()?;
    if output.status.success() {
        return Ok(None);
    }
    std::io::stderr().write_all(&output.stderr)?;
    Ok(Some(status_of(output.status)))
}

/// C that the compiler takes only in one go: a header may be there in precompiled form alone. The
/// assembler's place can be taken even so.
fn in_one_piece(
    program: &[OsString],
    arguments: &[OsString],
    reason: &str,
) -> std::io::Result<ExitCode> {
    let status = prepared(program, arguments).status()?;
    if status.success() {
        talk::say(format!("not counted as source, but as assembly: {reason}"));
    }
    Ok(status_of(status))
}

/// What a shell would say that it was.
fn status_of(status: ExitStatus) -> ExitCode {
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Links, or whatever else is left to do. Some programs link only if an optimiser sees that a call
/// is never made, which it may not see through our counters: those are linked uncounted, and
/// listed. If they do not link even then, the compiler is asked to do what the user said.
fn finish(
    job: &source_route::Job,
    program: &[OsString],
    words: &[OsString],
) -> std::io::Result<ExitCode> {
    let output = prepared(program, words).output()?;
    if output.status.success() {
        std::io::stdout().write_all(&output.stdout)?;
        std::io::stderr().write_all(&output.stderr)?;
        return Ok(ExitCode::SUCCESS);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let complaint = said
        .lines()
        .find(|line| line.contains("undefined") || line.contains("error"));
    let reason = format!(
        "the linker rejects its counted form: {}",
        complaint.unwrap_or_default()
    );
    let again = job.run(Some(&reason)).map_err(std::io::Error::other)?;
    let as_said = || as_said(program, job.said).status().map(status_of);
    let Rest::These(words, _folder) = again else {
        return as_said();
    };
    let output = prepared(program, &words).output()?;
    if !output.status.success() {
        return as_said();
    }
    std::io::stderr().write_all(&output.stderr)?;
    for source in job.arguments.sources() {
        talk::say(format!("{}: not counted: {reason}", source.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Why C that goes to this compiler cannot be counted before it is compiled.
fn not_countable(compiler: &OsStr, arguments: &[OsString]) -> Option<String> {
    if is_bare(arguments) {
        return Some("a program without an operating system; it is counted as assembly".to_owned());
    }
    let mut ask = Command::new(compiler);
    let targets = |word: &&OsString| word.to_string_lossy().starts_with("--target=");
    ask.args(arguments.iter().filter(targets))
        .arg("-dumpmachine");
    let machine = ask.output().ok()?;
    let machine = String::from_utf8_lossy(&machine.stdout).trim().to_owned();
    let is_ours = machine.starts_with("x86_64") && machine.contains("linux");
    (!is_ours && !machine.is_empty())
        .then(|| format!("it compiles for {machine}; `headcount csource` counts C for any machine"))
}

/// The machine that a compiler makes code for, if it is said, in its name or to it, and is another than
/// ours: `aarch64-linux-gnu-gcc`, `--target=riscv64`.
fn other_machine(compiler: &OsStr, arguments: &[OsString]) -> Option<String> {
    let arguments = response_files::expanded(arguments);
    let options = target_options(&arguments);
    let name = Path::new(compiler).file_name()?.to_string_lossy();
    let is_named = name.split('-').count() > 2;
    if !is_named && options.is_empty() {
        return None;
    }
    let mut ask = Command::new(compiler);
    let answer = ask.args(options).arg("-dumpmachine").output().ok()?;
    let machine = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    let is_ours = ["x86_64", "amd64"].iter().any(|it| machine.starts_with(it));
    (answer.status.success() && !machine.is_empty() && !is_ours).then_some(machine)
}

/// What clang is told of the machine.
fn target_options(arguments: &[OsString]) -> Vec<&OsString> {
    let mut options = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "-target" {
            options.push(word);
            options.extend(words.next());
        } else if word.to_string_lossy().starts_with("--target=") {
            options.push(word);
        }
    }
    options
}

/// The last word on how wide addresses are, if they are not those of x86-64.
fn narrow_option(arguments: &[OsString]) -> Option<&str> {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let last = words.rfind(|it| matches!(*it, "-m64" | "-m32" | "-mx32" | "-m16"));
    last.filter(|it| *it != "-m64")
}

/// Becomes the compiler, in whose assembler's place we are. Comes back only if that fails.
fn become_compiler(program: &[OsString], arguments: &[OsString]) -> std::io::Error {
    prepared(program, arguments).exec()
}

/// The same, with nobody in its assembler's place.
fn become_it(program: &[OsString], arguments: &[OsString]) -> std::io::Error {
    as_said(program, arguments).exec()
}

/// What the user said, and nothing else.
fn as_said(program: &[OsString], arguments: &[OsString]) -> Command {
    let mut command = Command::new(&program[0]);
    give_back_to(command.args(&program[1..]).args(arguments));
    command
}

/// The compiler's command, with ourselves in the place of its assembler.
fn prepared(program: &[OsString], arguments: &[OsString]) -> Command {
    let compiler = &program[program.len() - 1];
    let mut run = Command::new(&program[0]);
    give_back_to(run.args(&program[1..]));
    let words = response_files::expanded(arguments);
    let place = match is_compiler(compiler) && assembles(&words) {
        true => assembler_prefix().map(Some),
        false => Ok(None),
    };
    match place {
        Ok(Some(prefix)) => {
            take_the_assemblers_place(&mut run, compiler, &words, &prefix);
            run.args(arguments);
            run.args(last_words(compiler, &words));
        }
        Ok(None) => _ = run.args(arguments),
        Err(error) => {
            talk::say(format!("not counted: {error:#}"));
            run.args(arguments);
        }
    }
    run
}

fn cannot_run(program: &OsStr, error: std::io::Error) -> CannotRun {
    CannotRun {
        status: if error.kind() == ErrorKind::NotFound {
            127
        } else {
            126
        },
        program: program.to_string_lossy().into_owned(),
        error,
    }
}

fn take_the_assemblers_place(
    run: &mut Command,
    compiler: &OsStr,
    arguments: &[OsString],
    prefix: &Path,
) {
    let mut option = OsString::from("-B");
    option.push(prefix);
    run.arg(option);
    run.env(COMPILER_VARIABLE, compiler);
    if let Some(option) = narrow_option(arguments) {
        talk::say(format!(
            "not counted: {option} asks for another machine; headcount counts x86-64 programs only"
        ));
    }
    if is_bare(arguments) {
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
    } else {
        run.env_remove(CLANG_VARIABLE);
    }
}

/// What must be said after the user's words, because it takes some of them back.
fn last_words(compiler: &OsStr, words: &[OsString]) -> Vec<&'static str> {
    let mut last = Vec::new();
    let asks_clang = |word: &OsString| word == "-fintegrated-as" || word == "-integrated-as";
    if is_clang(compiler) && words.iter().any(asks_clang) {
        last.push("-fno-integrated-as");
    }
    // gold takes our map, which speaks of all code, for a mistake where it throws some away.
    let has = |text: &str| {
        let mut words = words.iter();
        words.any(|word| word.to_string_lossy().contains(text))
    };
    if has("-fuse-ld=gold") && has("--gc-sections") {
        last.push("-Wl,--no-gc-sections");
    }
    last
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

/// Does a compiler take the options of gcc? By its name; or it is asked, for what calls a compiler
/// (`mpicc`) may have any.
fn is_like_gcc(compiler: &OsStr) -> bool {
    const KNOWN: [&str; 9] = [
        "c++", "c89", "c99", "cc", "clang", "clang++", "g++", "gcc", "gfortran",
    ];
    let name = Path::new(compiler).file_name().unwrap_or_default();
    // Machines may stand in front of it, and versions behind.
    if name
        .to_string_lossy()
        .split('-')
        .any(|it| KNOWN.contains(&it))
    {
        return true;
    }
    let answer = Command::new(compiler).arg("-dumpmachine").output();
    // What is wrong with one that does not run, we hear soon enough.
    answer.map_or(true, |it| {
        let said = String::from_utf8_lossy(&it.stdout);
        let is_machine = |line: &str| line.contains('-') && !line.contains(char::is_whitespace);
        it.status.success() && said.lines().count() == 1 && is_machine(said.trim())
    })
}

/// Whether the program is to run without an operating system, for all that the compiler is told.
fn is_bare(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    words.any(|it| matches!(it, "-ffreestanding" | "-fno-hosted" | "-mcmodel=kernel"))
}

/// Whether the last word on it is that code is made when linking.
fn links_with_llvm(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let last = words.rfind(|word| word.starts_with("-flto") || *word == "-fno-lto");
    last.is_some_and(|word| word != "-fno-lto")
}

/// `ccache headcount cc -- gcc -c it.c` takes our `--` for the compiler's, and says `-- it.c` in the
/// end. gcc does not know that; nobody needs it where no name of a file begins with a dash.
fn without_end_of_options(command: &[OsString]) -> Vec<OsString> {
    let end = command.iter().position(|word| word == "--");
    let is_needed = |end: usize| {
        let mut files = command[end + 1..].iter();
        files.any(|word| word.as_bytes().starts_with(b"-"))
    };
    let dropped = end.filter(|end| !is_needed(*end));
    let words = command.iter().enumerate();
    words
        .filter(|(at, _)| Some(*at) != dropped)
        .map(|(_, word)| word.clone())
        .collect()
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

/// What makes `as` the name of a link to this program, when it is put before it.
///
/// It ends in a part of that name: in a folder as such, compilers would look for libraries, too, and
/// build systems would take it for one of the user's.
fn assembler_prefix() -> Result<PathBuf> {
    let this = env::current_exe().context("cannot find my own program file")?;
    let meta =
        fs::metadata(&this).with_context(|| format!("{}: cannot be examined", this.display()))?;
    // One folder for each build of headcount, so that two of them never meet.
    let name = format!("as-{:x}-{:x}-{:x}", meta.dev(), meta.ino(), meta.mtime());
    let kept = cache_folder().map(|base| assembler_link(&this, base.join("headcount").join(&name)));
    let folder = match kept {
        Some(Ok(folder)) => folder,
        // Builders of packages have no home worth the name.
        _ => assembler_link(&this, temporary_folder()?.join(name))?,
    };
    Ok(folder.join(PREFIX))
}

fn assembler_link(this: &Path, folder: PathBuf) -> Result<PathBuf> {
    let private = OwnFolder::make(&folder);
    let private = private.with_context(|| format!("{}: cannot be made", folder.display()))?;
    let link = private.file(OUR_NAME);
    if fs::read_link(&link).is_ok_and(|target| target == this) {
        return Ok(folder);
    }
    // Many compilers run at once: each makes its own link and moves it into place.
    let mine = private.file(&format!("{OUR_NAME}.{}", std::process::id()));
    let _ = fs::remove_file(&mine);
    symlink(this, &mine)
        .and_then(|()| fs::rename(&mine, &link))
        .with_context(|| format!("{}: cannot be made", folder.join(OUR_NAME).display()))?;
    Ok(folder)
}

/// A folder of our own among the temporary ones, where others could put theirs in its place.
fn temporary_folder() -> Result<PathBuf> {
    let us = fs::metadata("/proc/self")?.uid();
    let folder = env::temp_dir().join(format!("headcount-{us}"));
    let made = OwnFolder::make(&folder);
    made.with_context(|| format!("{}: cannot be made", folder.display()))?;
    Ok(folder)
}

fn cache_folder() -> Option<PathBuf> {
    let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    named.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))
}
