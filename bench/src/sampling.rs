//! What do samples cost?
//!
//! Programs of one build run alone, sampled at two rates, sampled by perf, counted, and counted and
//! sampled, in turns. The program is started by the benchmark itself, below whatever looks at it, so
//! that its own processor time is told apart from that of headcount or perf.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use headcount_ground::child;
use headcount_ground::workers::Progress;

use crate::build;
use crate::measure::{Subject, median};
use crate::table;
use crate::variant::{self, Tools, Variant};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Native,
    Time(&'static str),
    Perf,
    Run,
    RunTime,
}

const WAYS: [Way; 6] = [
    Way::Native,
    Way::Time("1000"),
    Way::Time("10000"),
    Way::Perf,
    Way::Run,
    Way::RunTime,
];

impl Way {
    fn name(self) -> String {
        match self {
            Way::Native => "native".to_owned(),
            Way::Time(frequency) => format!("headcount time -F {frequency}"),
            Way::Perf => "perf record -F 1000".to_owned(),
            Way::Run => "headcount run".to_owned(),
            Way::RunTime => "headcount run --time".to_owned(),
        }
    }

    /// What its cost is added to.
    fn baseline(self) -> Way {
        match self {
            Way::RunTime => Way::Run,
            _ => Way::Native,
        }
    }

    /// The words before the program's.
    fn words(self, tools: &Tools, folder: &Path) -> Vec<OsString> {
        let headcount = tools.headcount.as_os_str();
        let mut words: Vec<OsString> = match self {
            Way::Native => return Vec::new(),
            // As headcount does it: the same clock, and as much of the stack.
            Way::Perf => {
                let perf = "perf record -q -e task-clock:u -F 1000 --call-graph dwarf,8192 -o";
                let words = perf.split(' ').map(OsString::from);
                return words.chain([folder.join("perf.data").into()]).collect();
            }
            Way::Time(frequency) => vec![
                headcount.into(),
                "time".into(),
                "-F".into(),
                frequency.into(),
            ],
            Way::Run => vec![headcount.into(), "run".into()],
            Way::RunTime => vec![headcount.into(), "run".into(), "--time".into()],
        };
        words.extend(["-q".into(), "-o".into(), variant::profile(folder).into()]);
        words.push("--".into());
        words
    }
}

/// Processor time: of the program, and of what looked at it.
#[derive(Clone, Copy)]
struct Cost {
    program: Duration,
    beside: Duration,
}

/// Measures and prints.
pub fn run(work: &Path, tools: &Tools, subjects: &[Subject], rounds: usize) -> Result<()> {
    let has_perf = Command::new("perf").arg("--version").output().is_ok();
    let ways: Vec<Way> = WAYS
        .into_iter()
        .filter(|it| *it != Way::Perf || has_perf)
        .collect();
    let mut progress = Progress::new("bench/run", rounds * subjects.len() * ways.len());
    let mut done = 0;
    let mut costs = vec![vec![Vec::new(); ways.len()]; subjects.len()];
    for round in 0..rounds {
        for (subject, costs) in subjects.iter().zip(&mut costs) {
            for turn in 0..ways.len() {
                // Each round starts with another one.
                let way = (turn + round) % ways.len();
                costs[way].push(once(work, tools, subject, ways[way])?);
                done += 1;
                progress.show(done, "run");
            }
        }
    }
    for (subject, costs) in subjects.iter().zip(&costs) {
        println!("{}", shown(&subject.name, &ways, costs));
    }
    println!(
        "User+sys, medians of {rounds} rounds in turns. Added: what the program itself takes more than\n\
         alone; of headcount run --time, more than under headcount run. Beside: what headcount or perf\n\
         takes in the meantime, of one processor."
    );
    if !has_perf {
        println!("perf is not installed, and left out.");
    }
    Ok(())
}

fn once(work: &Path, tools: &Tools, subject: &Subject, way: Way) -> Result<Cost> {
    let program = &subject.measure;
    let folder = build::folder(work, Variant::Native, program);
    let spent = folder.join("spent");
    let plain = program.command(&build::executable(&folder));
    let mut words = way.words(tools, &folder);
    words.push(std::env::current_exe()?.into());
    words.extend(["--spend".into(), spent.clone().into()]);
    words.push(plain.get_program().into());
    words.extend(plain.get_args().map(OsString::from));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(&folder);
    let said = |name: &str| File::create(folder.join(name));
    command.stdin(Stdio::null()).stdout(said("stdout")?);
    command.stderr(said("stderr")?);
    let (status, whole) = child::time(&mut command)?;
    ensure!(
        status.success(),
        "{} as {}: {status}",
        subject.name,
        way.name()
    );
    for left in [variant::profile(&folder), folder.join("perf.data")] {
        let _ = fs::remove_file(left);
    }
    let nanoseconds = fs::read_to_string(spent)?.trim().parse()?;
    let program = Duration::from_nanos(nanoseconds);
    Ok(Cost {
        program,
        beside: whole.saturating_sub(program),
    })
}

/// Runs a program, and writes down how much processor time it took: `--spend FILE PROGRAM ARG...`.
pub fn spend(words: &[OsString]) -> Result<bool> {
    let [file, program, arguments @ ..] = words else {
        anyhow::bail!("--spend FILE PROGRAM ARG...");
    };
    let (status, time) = child::time(Command::new(program).args(arguments))?;
    fs::write(file, time.as_nanos().to_string()).context("cannot write the time")?;
    Ok(status.success())
}

fn shown(name: &str, ways: &[Way], costs: &[Vec<Cost>]) -> String {
    let of = |way: Way, part: fn(&Cost) -> Duration| {
        let at = ways.iter().position(|it| *it == way)?;
        let parts: Vec<Duration> = costs[at].iter().map(part).collect();
        median(&parts).map(|it| it.as_secs_f64())
    };
    let mut rows = vec![vec![
        name.to_owned(),
        "program s".to_owned(),
        "added".to_owned(),
        "beside".to_owned(),
    ]];
    for way in ways {
        let program = of(*way, |it| it.program).unwrap_or_default();
        let beside = of(*way, |it| it.beside).unwrap_or_default();
        let base = of(way.baseline(), |it| it.program).filter(|_| way.baseline() != *way);
        let added = base.map(|base| format!("{:+.1} %", (program / base - 1.0) * 100.0));
        rows.push(vec![
            way.name(),
            format!("{program:.3}"),
            added.unwrap_or_default(),
            format!("{:.1} %", beside / program * 100.0),
        ]);
    }
    table::aligned(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_told_apart_from_what_is_spent_beside() {
        let cost = |program, beside| Cost {
            program: Duration::from_millis(program),
            beside: Duration::from_millis(beside),
        };
        let ways = [Way::Native, Way::Run, Way::RunTime];
        let costs = [
            vec![cost(1000, 0), cost(900, 0), cost(1100, 0)],
            vec![cost(2000, 100)],
            vec![cost(2100, 420)],
        ];
        let shown = shown("it", &ways, &costs);
        let rows: Vec<Vec<&str>> = shown
            .lines()
            .map(|it| {
                it.split("  ")
                    .map(str::trim)
                    .filter(|it| !it.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(rows[1], ["native", "1.000", "0.0 %"]);
        assert_eq!(rows[2], ["headcount run", "2.000", "+100.0 %", "5.0 %"]);
        assert_eq!(
            rows[3],
            ["headcount run --time", "2.100", "+5.0 %", "20.0 %"]
        );
    }
}
