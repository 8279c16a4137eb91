//! headcount in the place of the assembler: called for `as` by a compiler that `headcount cc`
//! started, it counts what the compiler wrote and hands the result to the real one.
//!
//! The build never fails because of us: whatever cannot be counted is assembled as it is, with a
//! record of the reason.

use std::borrow::Cow;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread;

use anyhow::{Context, Result};
use headcount_asm::{Counted, Keeper, Options, Source};
use headcount_model::Refusal;
use headcount_monitor::give_back_to;

use crate::response_files;

/// The compiler that `headcount cc` was asked to run: it knows where its assembler is.
pub const COMPILER_VARIABLE: &str = "HEADCOUNT_COMPILER";
/// Set if that compiler is clang, which has an assembler of its own.
pub const CLANG_VARIABLE: &str = "HEADCOUNT_CLANG";
/// Set if the program is to run without an operating system.
pub const BARE_VARIABLE: &str = "HEADCOUNT_BARE";
/// What compilers are told to put before `as`, after the folder; and what comes of that.
pub const PREFIX: &str = "headcount-";
pub const OUR_NAME: &str = "headcount-as";

/// Whether this process was started under the assembler's name.
pub fn is_called() -> bool {
    let name = env::args_os().next().unwrap_or_default();
    Path::new(&name).file_name() == Some(OsStr::new(OUR_NAME))
}

/// Assembles, counting. `arguments` are the assembler's own.
pub fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let assembler = real_assembler()?;
    let job = Job::new(&response_files::expanded(&arguments));
    let Some((job, bytes)) = job.and_then(|job| job.read().map(|bytes| (job, bytes))) else {
        return become_assembler(&assembler, &arguments);
    };
    let text = Text::new(bytes);
    let name = source_name(&text.text, &job.input);
    let readable = without_hints(&text.text);
    let counted = count_or_say_why(&readable, &name, Path::new(&name) == job.input);
    if counted == text.text {
        return as_it_is(&assembler, &arguments, &job, &text, None);
    }
    let output = assemble(
        &assembler,
        &job,
        &text.like(job.introduce(&counted, &text.text)),
    )?;
    if output.status.success() {
        return finish(&output);
    }
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let complaint = complaint
        .lines()
        .find(|line| line.contains("Error"))
        .unwrap_or_default();
    let refusal = whole_file(
        &name,
        format!("the assembler rejects its counted form: {complaint}"),
    );
    let plain = headcount_asm::only_refusals(&text.text, &name, &[refusal], None);
    let output = assemble(
        &assembler,
        &job,
        &text.like(job.introduce(&plain, &text.text)),
    )?;
    if output.status.success() {
        return finish(&output);
    }
    as_it_is(&assembler, &arguments, &job, &text, Some(plain))
}

/// What the assembler makes of the text itself, in its own words; for clang, whose own assembler
/// knows more, what that makes of it (and of our record of why it is not counted, if it will).
fn as_it_is(
    assembler: &Path,
    arguments: &[OsString],
    job: &Job,
    text: &Text,
    with_record: Option<String>,
) -> Result<ExitCode> {
    let original = text.like(text.text.clone());
    let output = feed(Command::new(assembler).args(arguments), &original)?;
    let clang = env::var_os(COMPILER_VARIABLE).filter(|_| env::var_os(CLANG_VARIABLE).is_some());
    let Some(clang) = clang.filter(|_| !output.status.success()) else {
        return finish(&output);
    };
    let own = |input: &Path, text: &[u8]| {
        let mut command = Command::new(&clang);
        command.args(["-c", "-fintegrated-as", "-Wno-unused-command-line-argument"]);
        command
            .args(job.output())
            .args(["-x", "assembler"])
            .arg(input);
        feed(&mut command, text)
    };
    if let Some(plain) = with_record {
        let output = own(
            Path::new("-"),
            &text.like(job.introduce(&plain, &text.text)),
        )?;
        if output.status.success() {
            return finish(&output);
        }
    }
    finish(&own(&job.input, &original)?)
}

/// The text without clang's hints to its own linker, which GNU as does not know.
fn without_hints(text: &str) -> Cow<'_, str> {
    if !text.contains(".addrsig") {
        return text.into();
    }
    let is_hint = |line: &str| line.trim_start().starts_with(".addrsig");
    // The lines stay, for the sake of their numbers.
    let lines = text
        .split_inclusive('\n')
        .map(|line| if is_hint(line) { "\n" } else { line });
    lines.collect::<String>().into()
}

fn become_assembler(assembler: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    Err(give_back_to(Command::new(assembler).args(arguments)).exec())
        .with_context(|| format!("cannot run the assembler {}", assembler.display()))
}

fn finish(output: &Output) -> Result<ExitCode> {
    io::stderr().write_all(&output.stderr)?;
    let status = output.status.code().unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}

/// Bytes as text. Where they are not UTF-8, each is taken for a character: only ASCII means
/// anything to an assembler.
struct Text {
    text: String,
    utf8: bool,
}

impl Text {
    fn new(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self { text, utf8: true },
            Err(error) => Self {
                text: error.as_bytes().iter().copied().map(char::from).collect(),
                utf8: false,
            },
        }
    }

    /// The bytes of a text that was made from this one.
    fn like(&self, text: String) -> Vec<u8> {
        if self.utf8 {
            return text.into_bytes();
        }
        text.chars()
            .map(|letter| u8::try_from(letter).unwrap_or(b'?'))
            .collect()
    }
}

/// The counted text. A fault of ours must not keep anyone from building their program.
fn count_or_say_why(text: &str, name: &str, by_hand: bool) -> String {
    let silent = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let counted = panic::catch_unwind(|| count(text, name, by_hand));
    panic::set_hook(silent);
    counted.unwrap_or_else(|_| {
        let refusal = whole_file(
            name,
            "headcount failed on it (please report this)".to_owned(),
        );
        headcount_asm::only_refusals(text, name, &[refusal], None)
    })
}

/// The counted text; or the text itself with the reason why it is not counted.
pub fn count(text: &str, name: &str, by_hand: bool) -> String {
    let keeper = match env::var_os(BARE_VARIABLE) {
        None => Keeper::Runtime(headcount_runtime::ASSEMBLY),
        Some(_) => Keeper::Nobody,
    };
    let options = Options {
        name: name.to_owned(),
    };
    let source = match Source::parse(text, &options) {
        Ok(source) => source,
        Err(trouble) => {
            let refusal = Refusal {
                // The lines of what a compiler wrote are nobody's.
                line: if by_hand { trouble.line } else { 0 },
                ..whole_file(name, trouble.reason)
            };
            let runtime = match keeper {
                Keeper::Runtime(text) if trouble.in_64_bits => Some(text),
                _ => None,
            };
            return headcount_asm::only_refusals(text, name, &[refusal], runtime);
        }
    };
    let (units, mut refusals) = headcount_asm::units(&source);
    let mut counted = Vec::with_capacity(units.len());
    for unit in units {
        let frequencies = headcount_flow::frequencies(&unit.graph, &unit.cold);
        match headcount_flow::place_counters(&unit.graph, &frequencies, &unit.costs) {
            Ok(plan) => counted.push(Counted { unit, plan }),
            Err(unsolvable) => refusals.push(unit.refusal(&source, unsolvable.to_string())),
        }
    }
    let folder = env::current_dir().unwrap_or_default();
    let broken = cfg!(debug_assertions) && env::var_os("HEADCOUNT_TEST_BREAK").is_some();
    let folder = folder.to_string_lossy();
    let text = headcount_asm::insert(&source, &counted, &refusals, keeper, &folder);
    if broken {
        break_on_purpose(&text)
    } else {
        text
    }
}

/// Loses every seventh probe, so that tests can tell whether they would notice.
fn break_on_purpose(text: &str) -> String {
    let mut pieces = text.split("incq %gs:.Lhc_");
    let mut broken = pieces.next().unwrap_or_default().to_owned();
    for (number, piece) in pieces.enumerate() {
        broken.push_str(if number % 7 == 0 {
            "testq %rax, %gs:.Lhc_"
        } else {
            "incq %gs:.Lhc_"
        });
        broken.push_str(piece);
    }
    broken
}

fn whole_file(name: &str, reason: String) -> Refusal {
    Refusal {
        subject: format!("all of {name}"),
        file: name.to_owned(),
        line: 0,
        reason,
    }
}

/// What the assembler was asked to do, if it is something we can take part in.
struct Job {
    /// Its input: a file, or `-`.
    input: PathBuf,
    /// All other arguments.
    others: Vec<OsString>,
}

impl Job {
    fn new(arguments: &[OsString]) -> Option<Self> {
        let mut others = Vec::new();
        let mut inputs = Vec::new();
        let mut wide = false;
        let mut position = 0;
        while let Some(argument) = arguments.get(position) {
            let text = argument.to_str()?;
            wide |= text == "--64";
            if matches!(text, "--32" | "--x32" | "--version" | "--help") {
                return None;
            }
            if takes_value(text) {
                others.extend(arguments.get(position..position + 2)?.iter().cloned());
                position += 2;
                continue;
            }
            if !text.starts_with('-') || text == "-" || text == "--" {
                inputs.push(argument.clone());
            } else {
                others.push(argument.clone());
            }
            position += 1;
        }
        let input = match inputs.as_slice() {
            [] => "-".into(),
            [one] => one.into(),
            _ => return None,
        };
        wide.then_some(Self { input, others })
    }

    fn is_standard_input(&self) -> bool {
        self.input == Path::new("-") || self.input == Path::new("--")
    }

    /// The text to assemble; `None` if it cannot be read, which the assembler says best.
    fn read(&self) -> Option<Vec<u8>> {
        if !self.is_standard_input() {
            return fs::read(&self.input).ok();
        }
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// `-o` and what follows it.
    fn output(&self) -> &[OsString] {
        let at = self.others.iter().position(|word| word == "-o");
        at.and_then(|at| self.others.get(at..at + 2))
            .unwrap_or_default()
    }

    /// The text, introduced by the name of its file: the assembler reads it from a pipe, but
    /// its messages and the debug information it may make should speak of the file.
    fn introduce(&self, counted: &str, original: &str) -> String {
        // The linker takes the opening for the runtime, so the one comes with the other.
        let opening = match counted.ends_with(headcount_runtime::ASSEMBLY) {
            true => headcount_runtime::OPENING,
            false => "",
        };
        if names_its_lines(original) {
            return format!("{opening}{counted}");
        }
        let path = match self.is_standard_input() {
            true => "{standard input}".into(),
            false => self.input.to_string_lossy(),
        };
        let path = path.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{opening}# 1 \"{path}\"\n{counted}")
    }
}

/// Whether a text begins with a line that says what it is a part of: `# 1 "file.S"`.
fn names_its_lines(text: &str) -> bool {
    text.strip_prefix("# ")
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

fn takes_value(option: &str) -> bool {
    matches!(
        option,
        "-o" | "-I"
            | "--defsym"
            | "--debug-prefix-map"
            | "--MD"
            | "-MD"
            | "--hash-size"
            | "-mtune"
            | "-march"
    )
}

/// What the text was made from: compilers say so first.
fn source_name(text: &str, input: &Path) -> String {
    let first = text.lines().take(4).find_map(|line| {
        let name = line.trim_start().strip_prefix(".file")?.trim_start();
        name.strip_prefix('"')?.strip_suffix('"')
    });
    first.map_or_else(|| input.to_string_lossy().into_owned(), str::to_owned)
}

fn assemble(assembler: &Path, job: &Job, text: &[u8]) -> Result<Output> {
    feed(Command::new(assembler).args(&job.others).arg("-"), text)
}

fn feed(command: &mut Command, text: &[u8]) -> Result<Output> {
    let name = format!(
        "cannot run the assembler {}",
        command.get_program().display()
    );
    let mut child = give_back_to(command)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(name)?;
    let mut input = child.stdin.take().context("the assembler takes no input")?;
    // It may end early, having found an error, or read a file instead: that is for its status to
    // say. Its messages must not wait for us, nor we for them.
    let output = thread::scope(|scope| {
        scope.spawn(move || drop(input.write_all(text)));
        child.wait_with_output()
    });
    output.context("cannot wait for the assembler")
}

/// The assembler the compiler would have run.
fn real_assembler() -> Result<PathBuf> {
    let ourselves = env::current_exe().and_then(|path| path.canonicalize()).ok();
    let is_other = |path: &Path| {
        path.canonicalize()
            .is_ok_and(|path| Some(path) != ourselves)
    };
    let answer = env::var_os(COMPILER_VARIABLE).and_then(|compiler| {
        let mut ask = Command::new(compiler);
        ask.arg("-print-prog-name=as");
        let name = String::from_utf8(ask.output().ok()?.stdout).ok()?;
        Some(PathBuf::from(name.trim_end()))
    });
    let name = answer
        .filter(|name| !name.as_os_str().is_empty())
        .unwrap_or_else(|| "as".into());
    if name.is_absolute() && is_other(&name) {
        return Ok(name);
    }
    let name = name.file_name().unwrap_or(OsStr::new("as"));
    env::var_os("PATH")
        .and_then(|paths| {
            let mut candidates = env::split_paths(&paths).map(|folder| folder.join(name));
            candidates.find(|candidate| is_other(candidate))
        })
        .with_context(|| format!("no assembler `{}` in PATH", name.display()))
}
