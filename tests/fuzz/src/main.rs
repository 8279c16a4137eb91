//! Whatever is in the files that headcount reads, names of other files included: it ends in time,
//! with an answer or an error, and takes no more than a gigabyte.
//!
//! Good files of every kind are made once. Each round damages one of them, its bytes or the names in
//! it, and has headcount read it with every verb that does. What goes wrong is kept.

mod damage;
mod kinds;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use headcount_ground::child;

use damage::Dice;
use kinds::Kind;

/// Damages every kind of file that headcount reads, and looks what becomes of headcount.
#[derive(Parser)]
struct Options {
    /// For how long
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// Where to begin; the same number does the same again
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Only these kinds of files
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    only: Vec<String>,
    /// The headcount to try
    #[arg(
        long,
        value_name = "FILE",
        env = "HEADCOUNT",
        default_value = "target/checked/headcount"
    )]
    headcount: PathBuf,
    /// Where to keep what goes wrong
    #[arg(long, value_name = "DIR", default_value = "fuzz-findings")]
    findings: PathBuf,
}

/// How long a verb may take, and how much memory.
const SECONDS: u64 = 30;
const BYTES: u64 = 1 << 30;

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let headcount = options.headcount.canonicalize();
    let headcount = headcount.with_context(|| options.headcount.display().to_string())?;
    let work = tempfile::tempdir()?;
    let kinds = kinds::all(&headcount, work.path())?;
    let is_wanted =
        |it: &&Kind| options.only.is_empty() || options.only.iter().any(|name| name == it.name);
    let kinds: Vec<&Kind> = kinds.iter().filter(is_wanted).collect();
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let (mut rounds, mut found) = (0_u64, 0_u64);
    let mut told = Instant::now();
    while Instant::now() < end {
        let seed = options.seed + rounds;
        let kind = kinds[(seed % kinds.len() as u64) as usize];
        let folder = work.path().join("round");
        if let Some(what) = round(kind, seed, &folder, &headcount)? {
            found += 1;
            println!("{} --seed {seed}: {what}", kind.name);
            keep(
                &folder,
                &options.findings.join(format!("{}-{seed}", kind.name)),
            )?;
        }
        fs::remove_dir_all(&folder)?;
        rounds += 1;
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            eprintln!("headcount-fuzz: {rounds} rounds, {found} findings");
        }
    }
    println!("{rounds} rounds, {found} findings");
    Ok(match found {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// What is wrong, if anything is.
fn round(kind: &Kind, seed: u64, folder: &Path, headcount: &Path) -> Result<Option<String>> {
    copy(&kind.folder, folder)?;
    let mut dice = Dice::new(seed);
    let files: Vec<PathBuf> = (kind.files)(folder)?;
    let file = &files[dice.below(files.len())];
    let whole = fs::read(file)?;
    let fixed = (kind.fixed)(&whole);
    fs::write(file, damage::damaged(&whole, fixed, &mut dice))?;
    for words in kind.verbs {
        if let Some(what) = tried(headcount, words, folder)? {
            return Ok(Some(format!("headcount {}: {what}", words.join(" "))));
        }
    }
    Ok(None)
}

/// What is wrong with how a verb ended.
fn tried(headcount: &Path, words: &[&str], folder: &Path) -> Result<Option<String>> {
    let mut command = Command::new("timeout");
    command
        .args(["-s", "KILL", &SECONDS.to_string()])
        .arg(headcount)
        .args(words)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env_remove("HEADCOUNT_DIR")
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.join("said.out"))?)
        .stderr(fs::File::create(folder.join("said.err"))?);
    let (status, usage) = child::usage(&mut command)?;
    let said = fs::read(folder.join("said.err"))?;
    let said = String::from_utf8_lossy(&said);
    Ok(match status.code() {
        _ if said.contains("panicked") => Some(said.into_owned()),
        _ if usage.peak > BYTES => Some(format!("took {} bytes", usage.peak)),
        Some(0..=2 | 125..=127) => None,
        // A program whose symbols lie may well crash.
        Some(132..=135 | 139) if words.starts_with(&["run"]) => None,
        // A signal, be it that of `timeout`, or an abort.
        _ => Some(format!("{status}: {said}")),
    })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    anyhow::ensure!(status.success(), "cp: {status}");
    Ok(())
}

fn keep(folder: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    let _ = fs::remove_dir_all(to);
    copy(folder, to)
}
