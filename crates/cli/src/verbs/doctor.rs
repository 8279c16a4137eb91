//! Say what this machine allows, and what to do about what it does not.

mod tracing;

use crate::args::Doctor;
use crate::output;
use anyhow::Context;
use headcount_report::visible;
use std::path::Path;
use std::process::{Command, ExitCode};

pub fn run(args: &Doctor) -> anyhow::Result<ExitCode> {
    let findings = examine();
    let shown = match args.json {
        true => as_json(&findings),
        false => as_text(&findings),
    };
    output::write_exact(None, &shown)?;
    Ok(
        match can(Way::Build, &findings) || can(Way::Run, &findings) {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(1),
        },
    )
}

/// A way to count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `headcount cc`.
    Build,
    /// `headcount run` and `headcount attach`.
    Run,
}

/// Does nothing stand in this way?
fn can(way: Way, findings: &[Finding]) -> bool {
    let stands_in_the_way =
        |it: &Finding| it.verdict == Verdict::Bad && it.way.is_none_or(|it| it == way);
    !findings.iter().any(stands_in_the_way)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// As it should be.
    Good,
    /// Something is not possible, or slower, but counting works.
    Less,
    /// A way to count does not work.
    Bad,
}

/// One thing that was looked at.
struct Finding {
    name: &'static str,
    verdict: Verdict,
    found: String,
    /// What to do about it; empty if it is good.
    cure: &'static str,
    /// The way to count that it is about; `None` if all are.
    way: Option<Way>,
}

impl Finding {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            verdict: Verdict::Good,
            found: found.into(),
            cure: "",
            way: None,
        }
    }

    fn of(self, way: Way) -> Self {
        Self {
            way: Some(way),
            ..self
        }
    }

    fn less(name: &'static str, found: impl Into<String>, cure: &'static str) -> Self {
        Self {
            verdict: Verdict::Less,
            cure,
            ..Self::good(name, found)
        }
    }

    fn bad(name: &'static str, found: impl Into<String>, cure: &'static str) -> Self {
        Self {
            verdict: Verdict::Bad,
            cure,
            ..Self::good(name, found)
        }
    }
}

fn examine() -> Vec<Finding> {
    let mut findings = vec![
        machine(),
        processor(),
        compiler().of(Way::Build),
        assembler().of(Way::Build),
        counts_folder().of(Way::Build),
        profile(),
        cache_folder(),
        gs_base(),
        core_dumps(),
        Finding::good("hardware counters", "not needed"),
    ];
    findings.extend(tracing::examine());
    findings.push(samples());
    findings.push(trial().of(Way::Build));
    findings
}

/// Whether `headcount time` may look at programs.
fn samples() -> Finding {
    let name = "time samples";
    match headcount_sampling::is_allowed() {
        Ok(()) => Finding::good(name, "allowed"),
        Err(error) => Finding::less(
            name,
            format!("{error}"),
            "counting works without them; `headcount time` needs them",
        ),
    }
}

/// The best question is whether it works.
fn trial() -> Finding {
    let name = "a trial count";
    match try_to_count() {
        Ok(()) => Finding::good(name, "works"),
        Err(error) => Finding::bad(
            name,
            format!("{error:#}"),
            "see above; if nothing is wrong there, please tell us",
        ),
    }
}

fn try_to_count() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("trial.c"),
        "int main(void) { return 0; }\n",
    )?;
    let mut build = Command::new(std::env::current_exe()?);
    build.args(["cc", "--"]).args(compiler_words());
    build.args(["-o", "trial", "trial.c"]);
    run_in(folder.path(), &mut build).context("it cannot be built")?;
    let mut trial = Command::new(folder.path().join("trial"));
    run_in(folder.path(), &mut trial).context("it cannot be run")?;
    let counts = folder.path().join(headcount_wire::DEFAULT_FOLDER);
    let files = std::fs::read_dir(counts).map_or(0, Iterator::count);
    anyhow::ensure!(files > 0, "it ran, but left no counts");
    Ok(())
}

fn run_in(folder: &Path, command: &mut Command) -> anyhow::Result<()> {
    let command = command.current_dir(folder);
    let answer = command
        .env_remove(headcount_wire::FOLDER_VARIABLE)
        .output()?;
    if !answer.status.success() {
        let talk = String::from_utf8_lossy(&answer.stderr).into_owned();
        let first = talk.lines().next().unwrap_or("no reason given");
        anyhow::bail!("{first} ({})", answer.status);
    }
    Ok(())
}

fn machine() -> Finding {
    let kernel = first_line("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into());
    let found = format!("Linux {kernel}, {}", std::env::consts::ARCH);
    match std::env::consts::ARCH {
        "x86_64" => Finding::good("system", found),
        _ => Finding::bad("system", found, "headcount counts x86-64 programs only"),
    }
}

fn processor() -> Finding {
    let all = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = all.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |it| it.trim_start_matches([' ', '\t', ':']));
    Finding::good("processor", model)
}

fn compiler() -> Finding {
    let words = compiler_words();
    let cc = words.join(" ");
    match version(Command::new(&words[0]).args(&words[1..])) {
        Some(version) => Finding::good("compiler", format!("{cc}: {version}")),
        None => Finding::bad(
            "compiler",
            format!("{cc}: not found"),
            "install gcc or clang, or set CC to a compiler",
        ),
    }
}

/// The compiler of this machine: at least one word.
pub fn compiler_words() -> Vec<String> {
    let named = std::env::var("CC").unwrap_or_default();
    let words: Vec<String> = named.split_whitespace().map(str::to_owned).collect();
    match words.is_empty() {
        true => vec!["cc".into()],
        false => words,
    }
}

fn assembler() -> Finding {
    match version(&mut Command::new("as")) {
        Some(version) => Finding::good("assembler", version),
        None => Finding::bad(
            "assembler",
            "as: not found",
            "install binutils (Debian, Ubuntu: apt install binutils)",
        ),
    }
}

fn version(command: &mut Command) -> Option<String> {
    let answer = command.arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    let first = text.lines().next().filter(|line| !line.is_empty())?;
    answer.status.success().then(|| first.to_owned())
}

/// Where programs that count themselves put their counts.
fn counts_folder() -> Finding {
    let named = std::env::var_os(headcount_wire::FOLDER_VARIABLE);
    let folder = named.unwrap_or_else(|| headcount_wire::DEFAULT_FOLDER.into());
    let folder = Path::new(&folder);
    let name = "counts folder";
    // Where it does not exist yet, the counted program will make it.
    match folder.is_dir() {
        true => writable(name, folder, folder),
        false => writable(name, folder, around(folder)),
    }
}

/// Where everything is kept in the end.
fn profile() -> Finding {
    let profile = Path::new(super::DEFAULT_PROFILE);
    let name = "profile";
    match std::fs::OpenOptions::new().append(true).open(profile) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            unwritable(name, profile, &error)
        }
        _ => writable(name, profile, around(profile)),
    }
}

/// The folder that something is in.
fn around(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn writable(name: &'static str, what: &Path, folder: &Path) -> Finding {
    match tempfile::tempfile_in(folder) {
        Ok(_) => Finding::good(name, format!("{}: can be written", what.display())),
        Err(error) => unwritable(name, what, &error),
    }
}

fn unwritable(name: &'static str, what: &Path, error: &std::io::Error) -> Finding {
    Finding::bad(
        name,
        format!("{}: {error}", what.display()),
        "work in a folder you may write to; or set HEADCOUNT_DIR to one, and name a profile there \
         with -o",
    )
}

/// What `headcount run` keeps from one run to the next.
fn cache_folder() -> Finding {
    let name = "cache";
    match crate::cache::extent() {
        Some((folder, files, bytes)) => {
            let megabytes = bytes.div_ceil(1_000_000);
            let found = format!(
                "{}: {}, {megabytes} MB",
                folder.display(),
                headcount_report::plural(files as u64, "file")
            );
            Finding::good(name, found)
        }
        None => Finding::less(
            name,
            "no folder that is the user's alone",
            "set HOME or XDG_CACHE_HOME to a folder you may write to; without one, every run reads \
             every program again",
        ),
    }
}

/// Threads keep their counters apart with the gs register. A program can set it on its own where
/// the kernel allows the instructions `wrgsbase` and `rdgsbase`.
fn gs_base() -> Finding {
    const AT_HWCAP2: u64 = 26;
    const HWCAP2_FSGSBASE: u64 = 2;
    let vector = std::fs::read("/proc/self/auxv").unwrap_or_default();
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    let found = vector
        .chunks_exact(16)
        .find(|pair| word(&pair[..8]) == AT_HWCAP2)
        .is_some_and(|pair| word(&pair[8..]) & HWCAP2_FSGSBASE != 0);
    match found {
        true => Finding::good("gs register", "programs may set it (FSGSBASE)"),
        false => Finding::less(
            "gs register",
            "programs may not set it (no FSGSBASE)",
            "threads start a little slower; Linux 5.9 or later allows it",
        ),
    }
}

fn core_dumps() -> Finding {
    let pattern = first_line("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let found = match pattern.strip_prefix('|') {
        Some(program) => format!("go to a program: {program}"),
        None if pattern.is_empty() => "are not kept".into(),
        None => format!("go to a file: {pattern}"),
    };
    Finding::good("core dumps", found)
}

fn first_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(str::to_owned)
}

fn as_text(findings: &[Finding]) -> String {
    let mut out = String::new();
    for it in findings {
        let mark = match it.verdict {
            Verdict::Good => "ok",
            Verdict::Less => "--",
            Verdict::Bad => "NO",
        };
        out.push_str(&format!("{mark}  {:<18} {}\n", it.name, visible(&it.found)));
        if !it.cure.is_empty() {
            out.push_str(&format!("    {:<18} -> {}\n", "", it.cure));
        }
    }
    out.push_str(match (can(Way::Build, findings), can(Way::Run, findings)) {
        (true, true) => {
            "\nPrograms can be counted here, with `headcount cc` and with `headcount run`. \
             `headcount demo` shows how.\n"
        }
        (true, false) => {
            "\nPrograms can be counted here, with `headcount cc` but not with `headcount run`: see \
             NO above. `headcount demo` shows how.\n"
        }
        (false, true) => {
            "\nPrograms can be counted here, with `headcount run` but not with `headcount cc`: see \
             NO above.\n"
        }
        (false, false) => "\nPrograms cannot be counted here yet: see NO above.\n",
    });
    out
}

fn as_json(findings: &[Finding]) -> String {
    let finding = |it: &Finding| {
        let verdict = match it.verdict {
            Verdict::Good => "good",
            Verdict::Less => "less",
            Verdict::Bad => "bad",
        };
        serde_json::json!({
            "name": it.name,
            "verdict": verdict,
            "found": it.found,
            "cure": it.cure,
        })
    };
    let all: Vec<serde_json::Value> = findings.iter().map(finding).collect();
    format!(
        "{:#}\n",
        serde_json::json!({
            "version": 1,
            "can": { "cc": can(Way::Build, findings), "run": can(Way::Run, findings) },
            "findings": all,
        })
    )
}
