//! What does it cost to count what an interpreter runs?
//!
//! Ten programs in a language, alone, with the interpreter counted and nothing else, with the program
//! counted as well, and under tracers that count lines, in turns.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use headcount_ground::child;
use headcount_ground::workers::Progress;

use crate::measure::{geometric_mean, median};
use crate::table;
use crate::variant::{self, Tools};

/// Counting costs at most so many times the same with the interpreter alone.
const ON_TOP: f64 = 1.3;

/// A language, and what to measure it by.
pub struct Language {
    /// The interpreter: others may stand before the distribution's own.
    interpreter: &'static str,
    /// The folder of its programs, and what their files end with.
    folder: &'static str,
    suffix: &'static str,
    /// Programs, and how much each has to do.
    programs: [(&'static str, u32); 10],
    /// Two other ways of counting, and the words that ask for them. Scripts are in the folder.
    tracers: [(&'static str, &'static [&'static str]); 2],
    /// What shows that the second is there.
    needs: &'static [&'static str],
    /// Counting costs at most so many times native.
    promised: f64,
}

/// Python.
pub const PYTHON: Language = Language {
    interpreter: "/usr/bin/python3.11",
    folder: "python",
    suffix: "py",
    programs: [
        ("calls", 400),
        ("floats", 300),
        ("objects", 600),
        ("generators", 1200),
        ("words", 1400),
        ("queens", 4000),
        ("exceptions", 300),
        ("parser", 500),
        ("matrix", 1000),
        ("native", 1400),
    ],
    tracers: [
        ("settrace", &["settrace.py"]),
        ("coverage.py", &["-m", "coverage", "run"]),
    ],
    needs: &["-c", "import coverage"],
    promised: 1.6,
};

/// Lua.
pub const LUA: Language = Language {
    interpreter: "/usr/bin/lua5.4",
    folder: "lua",
    suffix: "lua",
    programs: [
        ("calls", 1000),
        ("floats", 1200),
        ("objects", 4500),
        ("coroutines", 5500),
        ("words", 20_000),
        ("queens", 1800),
        ("errors", 7000),
        ("sieve", 4500),
        ("matrix", 900),
        ("metamethods", 6000),
    ],
    tracers: [
        ("line hook", &["linehook.lua"]),
        ("count hook", &["counthook.lua"]),
    ],
    needs: &["-v"],
    promised: 2.0,
};

/// Tracers take so much longer that they have less to do.
const LESS: u32 = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Native,
    Interpreter,
    Program,
    /// What tracers are compared with.
    BriefNative,
    Lines,
    Others,
}

const WAYS: [Way; 6] = [
    Way::Native,
    Way::Interpreter,
    Way::Program,
    Way::BriefNative,
    Way::Lines,
    Way::Others,
];

struct Bench<'a> {
    language: &'a Language,
    tools: &'a Tools<'a>,
    folder: PathBuf,
    programs: PathBuf,
}

/// Measures and prints; says whether the promises are kept.
pub fn run(
    language: &Language,
    work: &Path,
    tools: &Tools<'_>,
    only: &[String],
    rounds: usize,
) -> Result<bool> {
    let folder = work.join("interpreters");
    fs::create_dir_all(&folder)?;
    let bench = Bench {
        language,
        tools,
        folder,
        programs: Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("programs")
            .join(language.folder),
    };
    let has_others = bench.has_others();
    let ways = WAYS
        .into_iter()
        .filter(|it| *it != Way::Others || has_others);
    let ways: Vec<Way> = ways.collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|it| it == name);
    let programs: Vec<_> = language
        .programs
        .into_iter()
        .filter(|it| wanted(it.0))
        .collect();
    let mut times = vec![vec![Vec::new(); WAYS.len()]; programs.len()];
    let mut progress = Progress::new("bench/run", rounds * programs.len() * ways.len());
    let mut done = 0;
    for round in 0..rounds {
        for (program, times) in programs.iter().zip(&mut times) {
            for turn in 0..ways.len() {
                let way = ways[(round + turn) % ways.len()];
                times[way as usize].push(bench.time(*program, way)?);
                done += 1;
                progress.show(done, "run");
            }
        }
    }
    let kept = show(language, &programs, &times, has_others);
    println!(
        "\nMedians of {rounds} rounds in turns, user+sys. Tracers have a {LESS}th of the work, and are \
         compared with the\nsame alone; what they are asked for is lines."
    );
    if !has_others {
        let [_, (name, _)] = language.tracers;
        println!("{name} is not installed for {}.", language.interpreter);
    }
    Ok(kept)
}

fn show(
    language: &Language,
    programs: &[(&str, u32)],
    times: &[Vec<Vec<Duration>>],
    has_others: bool,
) -> bool {
    let titles = [
        "program",
        "native s",
        "interpreter",
        "program",
        "on top",
        language.tracers[0].0,
        language.tracers[1].0,
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let mut ratios: [Vec<f64>; 5] = Default::default();
    for ((name, _), times) in programs.iter().zip(times) {
        let time = |way: Way| median(&times[way as usize]).map_or(f64::NAN, |it| it.as_secs_f64());
        let by = |way, base| time(way) / time(base);
        let found = [
            by(Way::Interpreter, Way::Native),
            by(Way::Program, Way::Native),
            by(Way::Program, Way::Interpreter),
            by(Way::Lines, Way::BriefNative),
            by(Way::Others, Way::BriefNative),
        ];
        let mut row = vec![(*name).to_owned(), format!("{:.2}", time(Way::Native))];
        row.extend(found.map(shown));
        rows.push(row);
        ratios
            .iter_mut()
            .zip(found)
            .for_each(|(all, it)| all.push(it));
    }
    let means = ratios.map(|it| geometric_mean(&it).unwrap_or(f64::NAN));
    let mut last = vec!["geometric mean".to_owned(), String::new()];
    last.extend(means.map(shown));
    rows.push(last);
    if !has_others {
        rows.iter_mut().for_each(|row| row.truncate(row.len() - 1));
    }
    print!("{}", table::aligned(&rows));
    println!();
    let mut kept = true;
    for (what, (found, most)) in ["of native", "of the interpreter counted alone"]
        .into_iter()
        .zip(means[1..3].iter().zip([language.promised, ON_TOP]))
    {
        let is_kept = *found <= most;
        kept &= is_kept;
        let word = if is_kept { "kept" } else { "BROKEN" };
        println!("{word}: counting takes {found:.2} times {what}, at most {most:.1}");
    }
    kept
}

fn shown(ratio: f64) -> String {
    match ratio.is_nan() {
        true => "-".to_owned(),
        false => format!("{ratio:.2}"),
    }
}

impl Bench<'_> {
    fn has_others(&self) -> bool {
        let mut ask = Command::new(self.language.interpreter);
        ask.args(self.language.needs);
        child::run_or_bail(&mut ask, &self.folder, Duration::from_secs(20)).is_ok()
    }

    fn time(&self, (name, amount): (&str, u32), way: Way) -> Result<Duration> {
        let program = self
            .programs
            .join(format!("{name}.{}", self.language.suffix));
        let [(_, lines), (_, others)] = self.language.tracers;
        let before = match way {
            Way::Lines => lines,
            Way::Others => others,
            _ => &[],
        };
        let word = |it: &&str| match self.programs.join(it) {
            script if script.is_file() => script,
            _ => PathBuf::from(it),
        };
        let mut words: Vec<PathBuf> = before.iter().map(word).collect();
        words.push(program);
        let is_brief = matches!(way, Way::BriefNative | Way::Lines | Way::Others);
        let amount = if is_brief { amount / LESS } else { amount };
        words.push(amount.max(1).to_string().into());
        let mut plain = Command::new(self.language.interpreter);
        plain.args(words);
        let profile = variant::profile(&self.folder);
        let mut command = match way {
            Way::Interpreter => {
                variant::counted(self.tools, &plain, &profile, &["--language", "none"])
            }
            Way::Program => variant::counted(self.tools, &plain, &profile, &[]),
            _ => plain,
        };
        if profile.exists() {
            fs::remove_file(&profile)?;
        }
        command
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (status, took) = child::time(&mut command)?;
        ensure!(status.success(), "{}: {status}", child::shown(&command));
        Ok(took)
    }
}
