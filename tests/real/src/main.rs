//! Do real programs notice that they are counted?
//!
//! `cargo run --release -p headcount-real -- --install` runs some hundred and fifty workloads of
//! programs that Debian has: compilers, interpreters, servers, tools. Each is run twice alone, once
//! counted with an empty cache, and once counted with what that left there. Output, exit status and
//! files must be the same every time; what differs every time (times, process numbers, random
//! names) is taken out by the workload itself, which is thereby the list of what may differ.
//!
//! With `--servers`, servers are attached to while they are under load. With `--projects`, projects
//! are built with `headcount cc`, and their suites are run by `headcount run`.

mod check;
mod compare;
mod counts;
mod packages;
mod process;
mod projects;
mod sandbox;
mod servers;
mod sources;
mod table;
mod workload;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use headcount_ground::workers::{self, Progress};

use check::{Checked, Checker, Verdict};
use sandbox::Sandbox;
use sources::Archive;
use table::Row;
use workload::Workload;

const SERVERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/servers");
const PROJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/projects");

/// Runs real programs of Debian alone and counted, and compares all that they do.
#[derive(Parser)]
#[command(name = "headcount-real")]
struct Options {
    /// Run only workloads whose names contain one of these, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Print the names of the workloads and what they need, and run nothing
    #[arg(long)]
    list: bool,
    /// Install the Debian packages that are missing, as root or through sudo
    #[arg(long)]
    install: bool,
    /// Attach to servers under load, instead
    #[arg(long)]
    servers: bool,
    /// With `--servers`: how often to attach while there is load
    #[arg(long, value_name = "N", default_value_t = 20)]
    cycles: u64,
    /// Build projects with `headcount cc` and run their suites by `headcount run`, instead
    #[arg(long, conflicts_with = "servers")]
    projects: bool,
    #[arg(long, hide = true)]
    inside: Option<String>,
    /// Count nothing: see only that the workloads are the same twice, for who adds one
    #[arg(long)]
    alone: bool,
    /// Workloads at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// The headcount to be checked
    #[arg(
        long,
        value_name = "PATH",
        env = "HEADCOUNT",
        default_value = "target/release/headcount"
    )]
    headcount: PathBuf,
    /// Write the table to this file, too
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Where to run them; other users must be able to go there [default: a new folder in /tmp]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Keep the folders of workloads that went well, too
    #[arg(long)]
    keep: bool,
    /// Where the workloads are
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads"))]
    workloads: PathBuf,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("headcount-real: {problem:#}");
            ExitCode::from(2)
        }
    }
}

/// Did all go well?
fn run(options: &Options) -> Result<bool> {
    if let Some(name) = &options.inside {
        return inside(options, name);
    }
    let (work, ours) = work_folder(options)?;
    let good = if options.servers {
        check_servers(options, &work)?
    } else if options.projects {
        check_projects(options, &work)?
    } else {
        check_workloads(options, &work)?
    };
    if !good || options.keep {
        // What failed is there to be looked at.
        let kept = ours.map_or(work, tempfile::TempDir::keep);
        println!("see {}", kept.display());
    }
    Ok(good)
}

fn check_workloads(options: &Options, work: &Path) -> Result<bool> {
    let mut all = workload::read_all(&options.workloads)?;
    all.retain(|it| is_wanted(&it.name, &options.only));
    if options.list {
        for it in &all {
            println!("{:30} {}", it.name, it.packages.join(" "));
        }
        return Ok(true);
    }
    let installed = with_packages(options, all.iter().flat_map(|it| &it.packages), work)?;
    let checker = Checker {
        headcount: headcount(options)?,
        work: work.to_owned(),
        keep: options.keep,
        alone: options.alone,
    };
    let rows = check_all(options, &checker, &all, &installed);
    let told = table::table(&rows);
    print!("{told}");
    if let Some(path) = &options.report {
        fs::write(path, told).with_context(|| path.display().to_string())?;
    }
    Ok(!rows.iter().any(|it| it.checked.verdict.is_failure()))
}

fn headcount(options: &Options) -> Result<PathBuf> {
    let path = &options.headcount;
    let found = path.canonicalize();
    found.with_context(|| format!("{}: build it first", path.display()))
}

fn is_wanted(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|part| name.contains(part))
}

/// Where to work, and what removes it, if it is ours.
fn work_folder(options: &Options) -> Result<(PathBuf, Option<tempfile::TempDir>)> {
    if let Some(work) = &options.work {
        fs::create_dir_all(work).with_context(|| work.display().to_string())?;
        return Ok((work.canonicalize()?, None));
    }
    let folder = tempfile::Builder::new()
        .prefix("real.")
        .tempdir_in("/tmp")?;
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    Ok((folder.path().canonicalize()?, Some(folder)))
}

/// The packages that are installed, after what is missing was, if that is wanted.
fn with_packages<'a>(
    options: &Options,
    needed: impl Iterator<Item = &'a String>,
    work: &Path,
) -> Result<BTreeSet<String>> {
    let installed = packages::installed(work)?;
    if !options.install {
        return Ok(installed);
    }
    let missing = needed.filter(|it| !installed.contains(*it)).cloned();
    packages::install(&missing.collect())?;
    packages::installed(work)
}

fn check_all(
    options: &Options,
    checker: &Checker,
    all: &[Workload],
    installed: &BTreeSet<String>,
) -> Vec<Row> {
    let mut progress = Progress::new("headcount-real", all.len());
    let mut failures = 0;
    let check = |it: &Workload| {
        let checked = match check::obstacle(&it.packages, it.needs_root, installed) {
            Some(reason) => Checked::without_a_run(Verdict::Skipped(reason)),
            // Hours of other checks must not be lost with one that cannot be made.
            None => checker.check(it).unwrap_or_else(|problem| {
                Checked::without_a_run(Verdict::Unsteady(format!("{problem:#}")))
            }),
        };
        let name = it.name.clone();
        Row { name, checked }
    };
    workers::share_out(all, options.jobs, check, |done, row| {
        if row.checked.verdict.is_failure() {
            failures += 1;
            eprintln!("{}", table::line(row));
        }
        progress.show(done, &format!("run, {failures} failed"));
    })
}

fn check_servers(options: &Options, work: &Path) -> Result<bool> {
    let mut all = servers::read_all(Path::new(SERVERS))?;
    all.retain(|it| is_wanted(&it.name, &options.only));
    let installed = with_packages(options, all.iter().flat_map(|it| &it.packages), work)?;
    let headcount = headcount(options)?;
    let mut good = true;
    for server in &all {
        if let Some(reason) = check::obstacle(&server.packages, server.needs_root, &installed) {
            println!("{:20} skipped: {reason}", server.name);
            continue;
        }
        let sandbox = Sandbox::new(work, &server.name, &server.script)?;
        if let Some(problem) = sandbox.prepare()? {
            bail!("{}: {problem}", server.name);
        }
        let ended = sandbox.inside(
            &[
                std::env::current_exe()?.as_os_str(),
                OsStr::new("--inside"),
                OsStr::new(&server.name),
                OsStr::new("--work"),
                sandbox.folder().as_os_str(),
                OsStr::new("--cycles"),
                OsStr::new(&options.cycles.to_string()),
                OsStr::new("--headcount"),
                headcount.as_os_str(),
            ],
            Duration::from_secs(600 + options.cycles * 30),
        )?;
        print!("{}", String::from_utf8_lossy(&ended.stdout));
        good &= ended.succeeded();
        if !ended.succeeded() {
            println!("{:20} {} {}", server.name, ended.end, ended.complaint());
        }
    }
    Ok(good)
}

fn check_projects(options: &Options, work: &Path) -> Result<bool> {
    let mut all = projects::read_all(Path::new(PROJECTS))?;
    all.retain(|it| is_wanted(&it.name, &options.only));
    let installed = with_packages(options, all.iter().flat_map(|it| &it.packages), work)?;
    let headcount = headcount(options)?;
    let archive = Archive::new(work)?;
    let mut good = true;
    println!("{}", projects::heading());
    for project in &all {
        let name = &project.name;
        if let Some(reason) = check::obstacle(&project.packages, false, &installed) {
            println!("{name:20}  skipped: {reason}");
            continue;
        }
        let trial = projects::Trial {
            project,
            headcount: &headcount,
            work,
            keep: options.keep,
        };
        match trial.check(&archive) {
            Ok(passed) => println!("{name:20}{passed}"),
            Err(problem) => {
                good = false;
                println!("{name:20}  FAILED {problem:#}");
            }
        }
    }
    Ok(good)
}

/// What `check_servers` has run in a sandbox.
fn inside(options: &Options, name: &str) -> Result<bool> {
    let all = servers::read_all(Path::new(SERVERS))?;
    let server = all.iter().find(|it| it.name == name);
    let trial = servers::Trial {
        server: server.with_context(|| format!("no server is called {name}"))?,
        headcount: &options.headcount,
        folder: options.work.as_deref().context("--work is missing")?,
        cycles: options.cycles,
    };
    let mut good = true;
    for (what, outcome) in trial.check() {
        good &= outcome.is_ok();
        match outcome {
            Ok(told) => println!("{name:20} {what:8} {told}"),
            Err(problem) => println!("{name:20} {what:8} FAILED {problem:#}"),
        }
    }
    Ok(good)
}
