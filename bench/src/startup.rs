//! What does it take to start?
//!
//! Programs that do little, alone and under `headcount run` with all their modules, in turns: what
//! is left is headcount's own work. The first run begins with nothing on the disk; the second finds
//! the cache that the first left, but no profile; the third finds both.

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
    NewProfile,
    Again,
}

/// Each finds what those before it left.
const WAYS: [Way; 4] = [Way::Native, Way::First, Way::NewProfile, Way::Again];

/// A program, and all that was measured of it, by way.
#[derive(Default)]
struct Program {
    name: &'static str,
    words: Vec<PathBuf>,
    usages: [Vec<Usage>; 4],
    traps: Option<u64>,
    /// Bytes of the profile after the second run, and what the third added; and of the cache.
    profile: u64,
    added: u64,
    cache: u64,
}

/// What is measured if it is there: a name, and the words of a command.
const PROGRAMS: [(&str, &[&str]); 10] = [
    ("true", &["true"]),
    ("perl", &["perl", "-e", "1"]),
    ("python3", &["python3", "-c", "pass"]),
    ("gcc -c", &["gcc", "-c", "small.c"]),
    (
        "bash, 8 x true",
        &["bash", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; done"],
    ),
    ("php", &["php", "-r", "1;"]),
    ("node", &["node", "-e", "1"]),
    ("numpy", &["python3", "-c", "import numpy"]),
    ("g++ -O2", &["g++", "-O2", "-c", "large.cc"]),
    ("rustc -O", &["rustc", "-O", "hello.rs"]),
];

const SMALL_C: &str = "#include <stdio.h>\nint main(void) { return printf(\"hello\\n\") < 0; }\n";
const LARGE_CC: &str = "#include <algorithm>\n#include <iostream>\n#include <map>\n#include <regex>\n\
    int main() { std::map<std::string, int> m; std::regex r(\"a+b\"); std::string s;\n\
    while (std::getline(std::cin, s)) m[std::regex_replace(s, r, \"x\")]++;\n\
    for (auto &[k, n] : m) std::cout << k << n << \"\\n\"; }\n";
const HELLO_RS: &str = "fn main() { println!(\"hello\"); }\n";

/// Measures and prints.
pub fn run(work: &Path, tools: &Tools, only: &[String], rounds: usize) -> Result<()> {
    let folder = work.join("startup");
    fs::create_dir_all(&folder)?;
    let mut programs = programs(&folder, only)?;
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
            "first",
            "warm",
            "again",
            "first MB",
            "warm MB",
            "traps",
            "profile KB",
            "added KB",
            "cache KB",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(programs.iter().map(row));
    print!("{}", table::aligned(&rows));
    println!(
        "\nMedians of {rounds} rounds in turns, user+sys. Those of headcount run are above native:\n\
         the first run finds nothing on the disk, the second (warm) what the first left but no\n\
         profile, the third (again) that, too. MB: the largest process. Traps: of the third run,\n\
         which adds so much to the profile."
    );
    Ok(())
}

fn programs(folder: &Path, only: &[String]) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (name, words) in PROGRAMS {
        if !only.is_empty() && !only.iter().any(|it| it == name) {
            continue;
        }
        let mut program = Program {
            name,
            words: words.iter().map(PathBuf::from).collect(),
            ..Program::default()
        };
        // The compiler that rustup's own would start.
        if name == "rustc -O" {
            let mut ask = Command::new("rustup");
            ask.args(["which", "rustc"]);
            if let Ok(path) = child::run_or_bail(&mut ask, folder, Duration::from_secs(20)) {
                let path = String::from_utf8(path).context("a path that is not text")?;
                program.words[0] = PathBuf::from(path.trim());
            }
        }
        clean(folder)?;
        match child::run_or_bail(
            &mut plain(&program, folder),
            folder,
            Duration::from_secs(60),
        ) {
            Ok(_) => programs.push(program),
            Err(problem) => eprintln!("bench/run: without {name}: {problem:#}"),
        }
    }
    Ok(programs)
}

fn plain(program: &Program, folder: &Path) -> Command {
    let mut command = Command::new(&program.words[0]);
    command.args(&program.words[1..]).current_dir(folder);
    command
}

fn once(folder: &Path, tools: &Tools, program: &mut Program, way: Way) -> Result<Usage> {
    let profile = variant::profile(folder);
    if way == Way::NewProfile {
        fs::remove_file(&profile)?;
    }
    let plain = plain(program, folder);
    let mut command = match way {
        Way::Native => plain,
        _ => variant::counted(tools, &plain, &profile, &[]),
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
    match way {
        Way::NewProfile => program.profile = profile.metadata()?.len(),
        Way::Again => {
            program.added = profile.metadata()?.len().saturating_sub(program.profile);
            program.cache = bytes_below(&folder.join("cache"))?;
            program.traps = traps(&fs::read_to_string(said)?);
        }
        Way::Native | Way::First => {}
    }
    Ok(usage)
}

fn bytes_below(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let it = entry.metadata()?;
        bytes += match it.is_dir() {
            true => bytes_below(&entry.path())?,
            false => it.len(),
        };
    }
    Ok(bytes)
}

fn clean(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder)?;
    fs::create_dir_all(folder)?;
    for (name, text) in [
        ("small.c", SMALL_C),
        ("large.cc", LARGE_CC),
        ("hello.rs", HELLO_RS),
    ] {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

fn row(program: &Program) -> Vec<String> {
    let processor = |way: usize| {
        let all: Vec<Duration> = program.usages[way].iter().map(|it| it.processor).collect();
        median(&all).unwrap_or_default()
    };
    let shown = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    let above = |way| shown(processor(way).saturating_sub(processor(0)));
    let peak = |way: usize| {
        let largest = program.usages[way].iter().map(|it| it.peak).max();
        format!("{:.0}", largest.unwrap_or(0) as f64 / 1e6)
    };
    let kilobytes = |bytes: u64| bytes.div_ceil(1000).to_string();
    vec![
        program.name.to_owned(),
        shown(processor(0)),
        above(1),
        above(2),
        above(3),
        peak(1),
        peak(2),
        program.traps.map_or("-".to_owned(), |it| it.to_string()),
        kilobytes(program.profile),
        kilobytes(program.added),
        kilobytes(program.cache),
    ]
}
