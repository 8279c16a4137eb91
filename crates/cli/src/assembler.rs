//! headcount in the place of the assembler: called as `as` by a compiler that `headcount cc`
//! started, it counts what the compiler wrote and hands the result to the real one.
//!
//! The build never fails because of us: whatever cannot be counted is assembled as it is, with a
//! record of the reason.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use anyhow::{Context, Result};
use headcount_asm::{Counted, Options, Source};
use headcount_model::Refusal;

/// The compiler that `headcount cc` was asked to run: it knows where its assembler is.
pub const COMPILER_VARIABLE: &str = "HEADCOUNT_COMPILER";

/// Whether this process was started under the assembler's name.
pub fn is_called() -> bool {
    let name = env::args_os().next().unwrap_or_default();
    Path::new(&name).file_name() == Some(OsStr::new("as"))
}

/// Assembles, counting. `arguments` are the assembler's own.
pub fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let assembler = real_assembler()?;
    let Some(job) = Job::new(&arguments) else {
        return Err(Command::new(&assembler).args(&arguments).exec())
            .with_context(|| format!("cannot run the assembler {}", assembler.display()));
    };
    let bytes = job.read()?;
    let Ok(text) = String::from_utf8(bytes) else {
        let original = fs::read(&job.input).unwrap_or_default();
        return finish(assemble(&assembler, &job, &original)?);
    };
    let name = source_name(&text, &job.input);
    let counted = count(&text, &name);
    let mut output = assemble(
        &assembler,
        &job,
        job.with_marker(&counted, &text).as_bytes(),
    )?;
    if !output.status.success() && counted != text {
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        let complaint = complaint
            .lines()
            .find(|line| line.contains("Error"))
            .unwrap_or_default();
        let refusal = whole_file(
            &name,
            format!("the assembler rejects its counted form: {complaint}"),
        );
        let plain = headcount_asm::only_refusals(&text, &name, &[refusal]);
        output = assemble(&assembler, &job, job.with_marker(&plain, &text).as_bytes())?;
    }
    finish(output)
}

fn finish(output: Output) -> Result<ExitCode> {
    io::stderr().write_all(&output.stderr)?;
    let status = output.status.code().unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}

/// The counted text; or the text itself with the reason why it is not counted.
fn count(text: &str, name: &str) -> String {
    let options = Options {
        name: name.to_owned(),
    };
    let source = match Source::parse(text, &options) {
        Ok(source) => source,
        Err(trouble) => {
            let refusal = Refusal {
                line: trouble.line,
                ..whole_file(name, trouble.reason)
            };
            return headcount_asm::only_refusals(text, name, &[refusal]);
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
    let runtime = headcount_runtime::ASSEMBLY;
    let text = headcount_asm::insert(
        &source,
        &counted,
        &refusals,
        runtime,
        &folder.to_string_lossy(),
    );
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
            if text.starts_with('@') || matches!(text, "--32" | "--x32" | "--version" | "--help") {
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

    fn read(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.is_standard_input() {
            io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .context("cannot read standard input")?;
        } else {
            bytes = fs::read(&self.input)
                .with_context(|| format!("{}: cannot be read", self.input.display()))?;
        }
        Ok(bytes)
    }

    /// The text, introduced by the name of its file: the assembler reads it from a pipe, but
    /// its messages and the debug information it may make should speak of the file.
    fn with_marker(&self, counted: &str, original: &str) -> String {
        let opening = if counted == original {
            ""
        } else {
            headcount_runtime::OPENING
        };
        if self.is_standard_input() || original.starts_with('#') {
            return format!("{opening}{counted}");
        }
        let path = self
            .input
            .to_string_lossy()
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        format!("{opening}# 1 \"{path}\"\n{counted}")
    }
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
    let mut child = Command::new(assembler)
        .args(&job.others)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run the assembler {}", assembler.display()))?;
    let mut input = child.stdin.take().context("the assembler takes no input")?;
    // It may end early, having found an error: that is for its status to say.
    let written = input.write_all(text);
    drop(input);
    let output = child
        .wait_with_output()
        .context("cannot wait for the assembler")?;
    match written {
        Err(error) if output.status.success() => {
            Err(error).context("cannot write to the assembler")
        }
        _ => Ok(output),
    }
}

/// The assembler the compiler would have run.
fn real_assembler() -> Result<PathBuf> {
    let compiler = env::var_os(COMPILER_VARIABLE);
    let answer = compiler.and_then(|compiler| {
        let asked = Command::new(compiler)
            .arg("-print-prog-name=as")
            .output()
            .ok()?;
        let name = String::from_utf8(asked.stdout).ok()?;
        Some(PathBuf::from(name.trim_end()))
    });
    let name = answer
        .filter(|name| !name.as_os_str().is_empty())
        .unwrap_or_else(|| "as".into());
    if name.is_absolute() {
        return Ok(name);
    }
    find_in_path(name.as_os_str())
        .with_context(|| format!("no assembler `{}` in PATH", name.display()))
}

/// The first program of this name in PATH that is not ourselves.
fn find_in_path(name: &OsStr) -> Option<PathBuf> {
    let ourselves = env::current_exe()
        .ok()
        .and_then(|path| path.canonicalize().ok());
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|candidate| {
            candidate
                .canonicalize()
                .is_ok_and(|path| Some(path) != ourselves)
        })
}
