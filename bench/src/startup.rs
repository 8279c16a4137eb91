//! What does it take to start?
//!
//! Programs that do next to nothing, alone and under `headcount run` with all
//! their modules, in turns: what is left is headcount's own work. The first
//! run begins with nothing on the disk, the second finds what the first left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use headcount_ground::child::{self, Usage};
use headcount_ground::workers::Progress;

use crate::measure::{median, traps};
use crate::table;
use crate::variant::{self, Tools};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Native,
    First,
    Second,
}

/// The second run comes after the first.
const WAYS: [Way; 3] = [Way::Native, Way::First, Way::Second];

/// A program, and all that was measured of it, by way.
struct Program {
    name: &'static str,
    words: Vec<PathBuf>,
    usages: [Vec<Usage>; 3],
    traps: Option<u64>,
}

/// Measures and prints.
pub fn run(work: &Path, tools: &Tools, rounds: usize) -> Result<()> {
    let folder = work.join("startup");
    fs::create_dir_all(&folder)?;
    let mut programs = programs(&folder)?;
    let mut progress = Progress::new("bench/run", rounds * programs.len() * WAYS.len());
    let mut done = 0;
    for _ in 0..rounds {
        for program in &mut programs {
            clean(&folder)?;
            for (at, way) in WAYS.into_iter().enumerate() {
                let usage = once(&folder, tools, program, way)?;
                program.usages[at].push(usage);
                done += 1;
                progress.show(done, "run");
            }
        }
    }
    let mut rows = vec![
        [
            "program",
            "native ms",
            "first ms",
            "second ms",
            "cpu ms",
            "peak MB",
            "traps",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(programs.iter().map(row));
    print!("{}", table::aligned(&rows));
    println!(
        "\nMedians of {rounds} rounds in turns. Times of headcount run are those above native; the\n\
         first run finds no profile, the second the first's. cpu is user+sys of headcount and the\n\
         program, second run; peak is the largest of their processes, first run."
    );
    Ok(())
}

fn programs(folder: &Path) -> Result<Vec<Program>> {
    let program = |name, words: &[&str]| Program {
        name,
        words: words.iter().map(PathBuf::from).collect(),
        usages: Default::default(),
        traps: None,
    };
    let mut programs = vec![program("true", &["/bin/true"])];
    // The cargo that rustup's own would start.
    let mut ask = Command::new("rustup");
    ask.args(["which", "cargo"]);
    match child::run_or_bail(&mut ask, folder, Duration::from_secs(20)) {
        Ok(path) => {
            let path = String::from_utf8(path).context("a path that is not text")?;
            programs.push(program("cargo --version", &[path.trim(), "--version"]));
        }
        Err(problem) => eprintln!("bench/run: without cargo: {problem:#}"),
    }
    Ok(programs)
}

fn once(folder: &Path, tools: &Tools, program: &mut Program, way: Way) -> Result<Usage> {
    let mut plain = Command::new(&program.words[0]);
    plain.args(&program.words[1..]);
    let mut command = match way {
        Way::Native => plain,
        Way::First | Way::Second => variant::counted(tools, &plain, &variant::profile(folder)),
    };
    let said = folder.join("stderr");
    command
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&said)?);
    let (status, usage) = child::usage(&mut command)?;
    ensure!(status.success(), "{}: {status}", child::shown(&command));
    program.traps = traps(&fs::read_to_string(said)?).or(program.traps);
    Ok(usage)
}

fn clean(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder)?;
    Ok(fs::create_dir_all(folder)?)
}

fn row(program: &Program) -> Vec<String> {
    let middle = |way: usize, of: fn(&Usage) -> Duration| {
        let all: Vec<Duration> = program.usages[way].iter().map(of).collect();
        median(&all).unwrap_or_default()
    };
    let shown = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    let native = middle(0, |it| it.elapsed);
    let above = |way| middle(way, |it| it.elapsed).saturating_sub(native);
    let peak = program.usages[1].iter().map(|it| it.peak).max();
    vec![
        program.name.to_owned(),
        shown(native),
        shown(above(1)),
        shown(above(2)),
        shown(middle(2, |it| it.processor)),
        format!("{:.0}", peak.unwrap_or(0) as f64 / 1e6),
        program.traps.map_or("-".to_owned(), |it| it.to_string()),
    ]
}
