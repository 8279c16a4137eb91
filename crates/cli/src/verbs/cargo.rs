//! Count what cargo builds: its tests, benchmarks and programs.
//!
//! Cargo says what it builds (its JSON messages), and runs it, each program in front of which it
//! puts `headcount run` (its `runner`). So programs are built as ever, and run as ever: in their
//! folders, with the variables that cargo sets.

mod artifacts;
mod summary;
mod uncalled;

use crate::args::Cargo;
use crate::{output, talk};
use anyhow::{Context, bail};
use artifacts::{Artifact, artifacts_of_cargo, artifacts_of_nextest};
use headcount_monitor::give_back_to;
use headcount_profile::{Profile, RunInfo};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use summary::Summary;

pub fn run(args: &Cargo) -> anyhow::Result<ExitCode> {
    let wish = Wish::of(args)?;
    let gate = args.gate.get()?;
    let profile = absolute(
        args.output
            .as_deref()
            .unwrap_or(super::DEFAULT_PROFILE.as_ref()),
    )?;
    let artifacts = match wish.build()? {
        Ok(artifacts) => artifacts,
        Err(status) => return Ok(status),
    };
    let before = last_run(&profile)?;
    let status = wish.run(args, &profile)?;
    let runs = runs_after(&profile, before)?;
    if runs.is_empty() {
        talk::say("nothing was counted: cargo ran no program");
        return Ok(status);
    }
    let summary = Summary::new(&profile, &runs, &artifacts, &workspace(&wish.cargo)?)?;
    talk::say(summary.text(&args.output_words()));
    if let Some(path) = &args.json {
        output::write_exact(Some(path), &summary.json())?;
    }
    let complaints = summary.complaints(&gate);
    complaints.iter().for_each(talk::say);
    // Tests that fail are what matters first.
    Ok(
        match status == ExitCode::SUCCESS && !complaints.is_empty() {
            true => ExitCode::from(1),
            false => status,
        },
    )
}

/// What cargo is to do.
struct Wish {
    cargo: OsString,
    /// `test`, `run`, `bench` or `nextest`.
    verb: String,
    /// For cargo.
    options: Vec<OsString>,
    /// For the program: what stands behind `--`, with it.
    rest: Vec<OsString>,
}

impl Wish {
    fn of(args: &Cargo) -> anyhow::Result<Self> {
        let mut words = args.command.iter().cloned();
        let verb = words.next().unwrap_or_default();
        let verb = match verb.to_str() {
            Some("t") => "test",
            Some("r") => "run",
            Some(verb @ ("test" | "run" | "bench" | "nextest")) => verb,
            _ => bail!(
                "{}: `cargo headcount` counts `test`, `run`, `bench` and `nextest run`",
                verb.display()
            ),
        };
        let mut words: Vec<OsString> = words.collect();
        if verb == "nextest" && words.first().is_some_and(|it| it == "run" || it == "r") {
            words.remove(0);
        } else if verb == "nextest" {
            bail!("of nextest, only `cargo headcount nextest run` can be counted");
        }
        let end = words
            .iter()
            .position(|it| it == "--")
            .unwrap_or(words.len());
        Ok(Self {
            cargo: std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            verb: verb.to_owned(),
            rest: words.split_off(end),
            options: words,
        })
    }

    /// Builds what will run, and says what that is; or with which status cargo failed.
    fn build(&self) -> anyhow::Result<Result<Vec<Artifact>, ExitCode>> {
        let mut command = Command::new(&self.cargo);
        match self.verb.as_str() {
            "nextest" => command
                .args(["nextest", "list", "--list-type", "binaries-only"])
                .args(["--message-format", "json"]),
            "run" => command.args(["build", "--message-format=json-render-diagnostics"]),
            verb => command.args([verb, "--no-run", "--message-format=json-render-diagnostics"]),
        };
        let output = give_back_to(&mut command)
            .args(&self.options)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("{}: cannot be run", self.cargo.display()))?;
        if !output.status.success() {
            return Ok(Err(status_of(output.status)));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        Ok(Ok(match self.verb.as_str() {
            "nextest" => artifacts_of_nextest(&said)?,
            _ => artifacts_of_cargo(&said),
        }))
    }

    /// Lets cargo run it all.
    fn run(&self, args: &Cargo, profile: &Path) -> anyhow::Result<ExitCode> {
        let runner = format!(
            "target.{}.runner={}",
            self.triple()?,
            runner(args, profile)?
        );
        let mut command = Command::new(&self.cargo);
        match self.verb.as_str() {
            "nextest" => command.args(["nextest", "run", "--config", &runner]),
            verb => command.args(["--config", &runner, verb]),
        };
        command.args(&self.options).args(&self.rest);
        let status = give_back_to(&mut command).status();
        let status = status.with_context(|| format!("{}: cannot be run", self.cargo.display()))?;
        Ok(status_of(status))
    }

    /// The target that runners are named for.
    fn triple(&self) -> anyhow::Result<String> {
        let mut words = self.options.iter().filter_map(|it| it.to_str());
        while let Some(word) = words.next() {
            match word.strip_prefix("--target") {
                Some("") => {
                    return words
                        .next()
                        .map(str::to_owned)
                        .context("--target: of what?");
                }
                Some(of) if of.starts_with('=') => return Ok(of[1..].to_owned()),
                _ => (),
            }
        }
        if let Some(target) = std::env::var("CARGO_BUILD_TARGET")
            .ok()
            .filter(|it| !it.is_empty())
        {
            return Ok(target);
        }
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(&rustc).arg("-vV").output();
        let output = output.with_context(|| format!("{}: cannot be run", rustc.display()))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let host = said.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(str::to_owned)
            .with_context(|| format!("{} -vV: names no host", rustc.display()))
    }
}

/// `headcount run`, as a list of words in TOML.
fn runner(args: &Cargo, profile: &Path) -> anyhow::Result<String> {
    let this = std::env::current_exe().context("headcount: where is it?")?;
    let mut words: Vec<&OsStr> = vec![this.as_os_str()];
    words.extend(["run", "--quiet", "--no-lists", "--output"].map(OsStr::new));
    words.push(profile.as_os_str());
    // All test programs of one command are one thing to whoever reads.
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let batch = format!("cargo-{}-{}", now.as_nanos(), std::process::id());
    words.extend(["--batch", &batch].map(OsStr::new));
    words.extend(["--modules", &args.modules].map(OsStr::new));
    for pattern in &args.only {
        words.extend([OsStr::new("--only"), OsStr::new(pattern)]);
    }
    words.push(OsStr::new("--"));
    let quoted = words.into_iter().map(|word| {
        let word = word.to_str();
        let word = word.with_context(|| "cargo wants names of files that are UTF-8")?;
        // A JSON string without control characters is a TOML string.
        Ok(serde_json::Value::from(word).to_string())
    });
    let quoted = quoted.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(format!("[{}]", quoted.join(",")))
}

fn status_of(status: std::process::ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    ExitCode::from(code.and_then(|it| u8::try_from(it).ok()).unwrap_or(125))
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{}: where is that?", path.display()))
}

/// The folder of the workspace: what is in it is the user's own.
fn workspace(cargo: &OsStr) -> anyhow::Result<PathBuf> {
    let output = Command::new(cargo)
        .args(["locate-project", "--workspace", "--message-format", "plain"])
        .output()
        .with_context(|| format!("{}: cannot be run", cargo.display()))?;
    let manifest = String::from_utf8_lossy(&output.stdout).into_owned();
    let folder = Path::new(manifest.trim()).parent();
    Ok(folder.unwrap_or(Path::new("")).to_owned())
}

/// The number of the last run in a profile that may not be there.
fn last_run(profile: &Path) -> anyhow::Result<i64> {
    match profile.exists() {
        true => Ok(Profile::open(profile)?.runs()?.last().map_or(0, |it| it.id)),
        false => Ok(0),
    }
}

fn runs_after(profile: &Path, before: i64) -> anyhow::Result<Vec<RunInfo>> {
    if !profile.exists() {
        return Ok(Vec::new());
    }
    let mut runs = Profile::open(profile)?.runs()?;
    runs.retain(|it| it.id > before);
    Ok(runs)
}
