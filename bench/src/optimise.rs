//! What are exact counts worth to an optimiser?
//!
//! C and C++ programs, built plainly by clang, are counted once on a tenth of
//! the work. BOLT rearranges them by the exported branches, and clang builds
//! them anew with the exported lines. All three do the same work in turns.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use headcount_ground::child;
use headcount_ground::program::Language;
use headcount_ground::workers::Progress;

use crate::measure::{Subject, geometric_mean, median};
use crate::table;
use crate::variant::{self, Tools};

const WAYS: [&str; 3] = ["plain", "bolt", "sample"];

/// Builds and measures, and prints ratios to the plain build: below 1 is faster.
pub fn run(
    work: &Path,
    tools: &Tools,
    bolt: &str,
    subjects: &[Subject],
    rounds: usize,
) -> Result<()> {
    let native = |it: &&Subject| it.language != Language::Rust && !it.is_threaded;
    let subjects: Vec<&Subject> = subjects.iter().filter(native).collect();
    let mut folders = Vec::new();
    for subject in &subjects {
        let folder = work.join("optimise").join(&subject.name);
        build(&folder, tools, bolt, subject)
            .with_context(|| format!("{}: cannot be optimised", subject.name))?;
        folders.push(folder);
    }
    let mut times = vec![[const { Vec::new() }; WAYS.len()]; subjects.len()];
    let mut progress = Progress::new("bench/run", rounds * subjects.len() * WAYS.len());
    let mut done = 0;
    for round in 0..rounds {
        for (at, subject) in subjects.iter().enumerate() {
            for turn in 0..WAYS.len() {
                let way = (turn + round) % WAYS.len();
                times[at][way].push(once(&folders[at], subject, WAYS[way])?);
                done += 1;
                progress.show(done, &subject.name);
            }
        }
    }
    print!("{}", shown(&subjects, &times));
    println!(
        "\nMedians of {rounds} rounds in turns, user and system time; ratios to the plain build of \
         clang -O2,\nbelow 1 is faster. bolt: llvm-bolt with `export --format bolt`. sample: clang \
         -fprofile-sample-use\nwith `export --format llvm-sample`. Both learned from a tenth of the work."
    );
    Ok(())
}

fn build(folder: &Path, tools: &Tools, bolt: &str, subject: &Subject) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let compiler = match subject.language {
        Language::C => tools.clang,
        _ => tools.clangxx,
    };
    let compile = |more: &[String], output: &str| {
        let flags = [
            "-O2",
            "-gline-tables-only",
            "-fdebug-info-for-profiling",
            "-Wl,-q",
        ];
        let flags: Vec<String> = flags
            .map(str::to_owned)
            .into_iter()
            .chain(more.to_vec())
            .collect();
        let mut command = Command::new(compiler);
        command.args(subject.measure.compile(&flags, &folder.join(output)));
        ask(command, folder)
    };
    compile(&[], "plain")?;
    let brief = subject.brief.command(&folder.join("plain"));
    let profile = variant::profile(folder);
    let mut counted = variant::counted(tools, &brief, &profile, &[]);
    counted.current_dir(folder).stdout(Stdio::null());
    ask(counted, folder)?;
    for (format, file) in [("bolt", "it.fdata"), ("llvm-sample", "it.prof")] {
        let mut export = Command::new(tools.headcount);
        export
            .arg("export")
            .arg(&profile)
            .args(["--format", format, "-o", file]);
        ask(export, folder)?;
    }
    let mut rearrange = Command::new(bolt);
    rearrange
        .args([
            "plain",
            "-o",
            "bolt",
            "-data=it.fdata",
            "-reorder-blocks=ext-tsp",
        ])
        .args([
            "-reorder-functions=hfsort",
            "-split-functions",
            "-split-all-cold",
        ]);
    ask(rearrange, folder)?;
    let learned = folder.join("it.prof");
    compile(
        &[format!("-fprofile-sample-use={}", learned.display())],
        "sample",
    )
}

fn ask(mut command: Command, folder: &Path) -> Result<()> {
    command.current_dir(folder);
    child::run_or_bail(&mut command, folder, Duration::from_secs(600)).map(drop)
}

/// The time of one run, which must say what the plain build says.
fn once(folder: &Path, subject: &Subject, way: &str) -> Result<Duration> {
    let said = |way: &str| -> PathBuf { folder.join(format!("{way}.out")) };
    let mut command = subject.measure.command(&folder.join(way));
    command
        .stdin(Stdio::null())
        .stdout(fs::File::create(said(way))?);
    let (status, time) = child::time(&mut command)?;
    ensure!(status.success(), "{}: {status}", child::shown(&command));
    if said("plain").exists() {
        let same = fs::read(said("plain"))? == fs::read(said(way))?;
        ensure!(same, "{}: {way} says something else", subject.name);
    }
    Ok(time)
}

fn shown(subjects: &[&Subject], times: &[[Vec<Duration>; WAYS.len()]]) -> String {
    let mut rows = vec![
        ["program", "plain s", "bolt", "sample"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut ratios: [Vec<f64>; WAYS.len()] = Default::default();
    for (subject, times) in subjects.iter().zip(times) {
        let seconds = |way: usize| median(&times[way]).unwrap_or_default().as_secs_f64();
        let mut row = vec![subject.name.clone(), format!("{:.3}", seconds(0))];
        for (way, ratios) in ratios.iter_mut().enumerate().skip(1) {
            let ratio = seconds(way) / seconds(0);
            ratios.push(ratio);
            row.push(format!("{ratio:.3}"));
        }
        rows.push(row);
    }
    let mut means = vec!["geometric mean".to_owned(), String::new()];
    for ratios in &ratios[1..] {
        let mean = geometric_mean(ratios);
        means.push(mean.map_or("-".to_owned(), |mean| format!("{mean:.3}")));
    }
    rows.push(means);
    table::aligned(&rows)
}
