//! Do engines for large tables answer questions about some hundred profiles as reports do?
//!
//! `cargo run --release -p headcount-fleet` counts programs 300 times, as if on sixty machines, exports
//! each profile, asks DuckDB and Spark what `docs/fleet.md` asks, and compares their answers with what
//! `headcount report` says of all runs together. Debian's `openjdk-17-jre-headless` must be there for
//! Spark; Python's packages are fetched from PyPI.

use anyhow::{Context, Result};
use clap::Parser;
use headcount_fleet::engine::{Answer, Engine, Rows};
use headcount_fleet::fleet::{Fleet, Machine};
use headcount_fleet::judge::Judge;
use headcount_fleet::page;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Asks DuckDB and Spark about the counts of many machines, and compares their answers with reports.
#[derive(Parser)]
#[command(name = "headcount-fleet")]
struct Options {
    /// How many profiles to count
    #[arg(long, value_name = "N", default_value_t = 300)]
    profiles: usize,
    /// The headcount to be checked
    #[arg(
        long,
        value_name = "PATH",
        env = "HEADCOUNT",
        default_value = "target/release/headcount"
    )]
    headcount: PathBuf,
    /// Ask only DuckDB, which needs no Java
    #[arg(long)]
    no_spark: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("headcount-fleet: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let begin = Instant::now();
    let fleet = count(options, folder.path())?;
    println!(
        "counted: {} profiles in {:.1} s",
        options.profiles,
        seconds(begin)
    );
    let begin = Instant::now();
    fleet.gather()?;
    println!("exported and merged in {:.1} s", seconds(begin));
    let judge = Judge::new(&fleet, &week_ago()?)?;
    let questions = page::questions()?;
    let all: Vec<&str> = questions.iter().map(|it| it.sql).collect();
    let engines = match options.no_spark {
        true => vec![Engine::DuckDb],
        false => vec![Engine::DuckDb, Engine::Spark],
    };
    size(&fleet)?;
    let mut answers = Vec::new();
    for engine in &engines {
        let begin = Instant::now();
        answers.push(engine.ask(folder.path(), page::view(*engine)?, &all)?);
        println!("{}: {:.1} s with its start", engine.name(), seconds(begin));
    }
    for (place, question) in questions.iter().enumerate() {
        let answers: Vec<&Answer> = answers.iter().map(|it| &it[place]).collect();
        let rows: Vec<&Rows> = answers.iter().map(|it| &it.rows).collect();
        judge.check(question.title, &rows)?;
        print!("  {:<26} {:>6} rows", question.title, rows[0].len());
        for (engine, answer) in engines.iter().zip(answers) {
            print!("  {} {:>7.3} s", engine.name(), answer.seconds);
        }
        println!("  as report says");
    }
    Ok(())
}

/// Half of the machines have the first release, and counted it before the others had the second.
fn count(options: &Options, folder: &Path) -> Result<Fleet> {
    let mut fleet = Fleet::new(folder, &options.headcount)?;
    let kinds = 5;
    let half = options.profiles.div_ceil(2 * kinds);
    for place in 0..options.profiles {
        let machine = place / kinds;
        let release = if machine < half { 1 } else { 2 };
        if place % kinds == 0 && (machine == 0 || machine == half) {
            fleet.build(release)?;
        }
        let host = format!("machine-{machine:03}");
        let days = match release {
            1 => 3 + (machine % 20) as u32,
            _ => (machine % 3) as u32,
        };
        let number = (50 + machine * 7).to_string();
        let command: &[&str] = match place % kinds {
            0 => &["./app", &number],
            1 => &["./app", "100"],
            2 => &["/usr/bin/sort", "app.c"],
            3 => &["/usr/bin/sed", "-n", "s/at/AT/p", "app.c"],
            _ => &["/usr/bin/cksum", "app.c"],
        };
        let machine = Machine {
            host: &host,
            release,
            days,
            modules: "all",
        };
        fleet.count(&machine, command)?;
    }
    Ok(fleet)
}

/// Says how large the table is.
fn size(fleet: &Fleet) -> Result<()> {
    let (mut files, mut bytes) = (0, 0);
    for entry in fleet.folder().join("fleet").read_dir()? {
        files += 1;
        bytes += entry?.metadata()?.len();
    }
    let rows = "SELECT count(*) AS rows FROM counts";
    let view = page::view(Engine::DuckDb)?;
    let answers = Engine::DuckDb.ask(fleet.folder(), view, &[rows])?;
    let rows = answers
        .first()
        .and_then(|it| it.rows.first()?.get("rows")?.as_u64());
    let rows = rows.context("no rows")?;
    println!("{files} files, {bytes} bytes, {rows} rows");
    Ok(())
}

/// As `headcount runs` writes it.
fn week_ago() -> Result<String> {
    let words = ["-u", "-d", "7 days ago", "+%Y-%m-%dT%H:%M:%SZ"];
    let said = Command::new("date").args(words).output()?;
    Ok(String::from_utf8(said.stdout)?.trim_end().to_owned())
}

fn seconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64()
}
