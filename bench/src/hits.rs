//! What does one hit of a breakpoint cost?
//!
//! A program that calls an empty function, counted in three ways, in turns:
//! headcount's breakpoints, and the two old methods of `tracers`. What a run of
//! no calls takes is taken off, so that starting and reporting do not count.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use headcount_ground::child;

use crate::measure::median;
use crate::tracers::Method;

/// Headcount's hit costs at most this part of a plain breakpoint's.
const PROMISED: f64 = 0.60;
/// So often the function is called.
const CALLS: u64 = 20_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Headcount,
    Plain(Method),
}

const WAYS: [(Way, &str); 3] = [
    (Way::Headcount, "headcount run"),
    (Way::Plain(Method::Int3), "int3, restore, step, reinsert"),
    (Way::Plain(Method::Step), "single stepping"),
];

/// One run: how long it took, and how much processor time, ours and the
/// program's.
#[derive(Clone, Copy)]
struct Took {
    elapsed: Duration,
    processor: Duration,
}

struct Bench {
    headcount: PathBuf,
    folder: PathBuf,
    program: PathBuf,
    address: u64,
}

/// Measures and prints; says whether the promise is kept.
pub fn run(work: &Path, headcount: &Path, gcc: &str, rounds: usize) -> Result<bool> {
    let bench = Bench::build(work, headcount, gcc)?;
    let mut idle: [Vec<Took>; 3] = Default::default();
    let mut busy: [Vec<Took>; 3] = Default::default();
    for round in 0..rounds {
        for turn in 0..WAYS.len() {
            let at = (round + turn) % WAYS.len();
            idle[at].push(bench.time(WAYS[at].0, 0)?);
            busy[at].push(bench.time(WAYS[at].0, CALLS)?);
        }
    }
    let cost = |of: fn(&Took) -> Duration| -> [f64; 3] {
        std::array::from_fn(|at| microseconds(&idle[at], &busy[at], of))
    };
    let elapsed = cost(|took| took.elapsed);
    let processor = cost(|took| took.processor);
    println!("microseconds a hit              elapsed  processor");
    for (at, (_, name)) in WAYS.iter().enumerate() {
        println!("{name:<30} {:>8.2} {:>10.2}", elapsed[at], processor[at]);
    }
    let part = processor[0] / processor[1];
    let kept = part <= PROMISED;
    println!(
        "\nMedians of {rounds} rounds in turns of {CALLS} calls each, less those of none. Processor\n\
         time is user+sys of both, tracer and program; elapsed time depends on who else is there.\n\n\
         {}: a hit takes {:.0} % of a plain int3's processor time, at most {:.0} %",
        if kept { "kept" } else { "BROKEN" },
        part * 100.0,
        PROMISED * 100.0
    );
    Ok(kept)
}

fn microseconds(idle: &[Took], busy: &[Took], of: fn(&Took) -> Duration) -> f64 {
    let middle = |all: &[Took]| {
        let times: Vec<Duration> = all.iter().map(of).collect();
        median(&times).unwrap_or_default().as_secs_f64()
    };
    (middle(busy) - middle(idle)) * 1e6 / CALLS as f64
}

impl Bench {
    /// At a fixed address, so that a tracer need not look for it.
    fn build(work: &Path, headcount: &Path, gcc: &str) -> Result<Bench> {
        let folder = work.join("hits");
        fs::create_dir_all(&folder)?;
        let program = folder.join("hits");
        let limit = Duration::from_secs(60);
        let mut build = Command::new(gcc);
        build
            .args(["-O2", "-no-pie", "-fno-pie", "-o"])
            .arg(&program)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/hits.c"));
        child::run_or_bail(&mut build, &folder, limit)?;
        let listing = child::run_or_bail(Command::new("nm").arg(&program), &folder, limit)?;
        let address = address_of(&String::from_utf8(listing)?, "hit").context("no function hit")?;
        Ok(Bench {
            headcount: headcount.to_owned(),
            folder,
            program,
            address,
        })
    }

    /// Runs it once, and sees to it that all calls were counted.
    fn time(&self, way: Way, calls: u64) -> Result<Took> {
        let said = self.folder.join("stdout");
        let mut command = self.command(way, calls)?;
        command
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&said)?);
        let start = Instant::now();
        let (status, processor) = child::time(&mut command)?;
        let elapsed = start.elapsed();
        ensure!(status.success(), "{}: {status}", child::shown(&command));
        let counted = match way {
            Way::Headcount => self.reported()?,
            Way::Plain(_) => fs::read_to_string(&said)?.trim().parse()?,
        };
        ensure!(counted == calls, "{calls} calls, {counted} were counted");
        Ok(Took { elapsed, processor })
    }

    fn command(&self, way: Way, calls: u64) -> Result<Command> {
        let Way::Plain(method) = way else {
            let _ = fs::remove_file(self.profile());
            let mut command = Command::new(&self.headcount);
            command
                .args(["run", "--quiet", "--unit", "function", "--only", "hit"])
                .arg("--output")
                .arg(self.profile())
                .arg("--")
                .arg(&self.program)
                .arg(calls.to_string());
            return Ok(command);
        };
        let method = method.to_possible_value().context("a nameless method")?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--trace", method.get_name(), &self.address.to_string()])
            .arg(&self.program)
            .arg(calls.to_string());
        Ok(command)
    }

    fn profile(&self) -> PathBuf {
        self.folder.join("hits.db")
    }

    fn reported(&self) -> Result<u64> {
        let mut report = Command::new(&self.headcount);
        report
            .args(["report", "--by", "function", "--format", "csv"])
            .arg(self.profile())
            .current_dir(&self.folder)
            .env("HEADCOUNT_DIR", self.folder.join("no counter files"));
        let csv = child::run_or_bail(&mut report, &self.folder, Duration::from_secs(60))?;
        calls(&String::from_utf8(csv)?, "hit").context("hit is not reported")
    }
}

fn address_of(listing: &str, name: &str) -> Option<u64> {
    let mut lines = listing.lines();
    let address = lines.find_map(|line| line.strip_suffix(&format!(" T {name}")))?;
    u64::from_str_radix(address, 16).ok()
}

/// The column `calls` of a function whose name needs no quotes.
fn calls(csv: &str, function: &str) -> Option<u64> {
    let mut lines = csv.lines().map(|line| line.split(','));
    let mut headings = lines.next()?;
    let named = headings.clone().position(|it| it == "function")?;
    let column = headings.position(|it| it == "calls")?;
    let mut rows = lines
        .filter_map(|mut row| (row.clone().nth(named) == Some(function)).then(|| row.nth(column)));
    rows.next()??.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_its_whole_name() {
        let listing =
            "0000000000401126 T hit\n0000000000401130 T hit_not\n0000000000401000 T a hit\n";
        assert_eq!(address_of(listing, "hit"), Some(0x40_1126));
        assert_eq!(address_of(listing, "it"), None);
    }

    #[test]
    fn calls_are_read_from_their_column() {
        let csv = "module,function,file,line,calls,executed\n/p,main,,0,1,9\n/p,hit,,0,20000,\n";
        assert_eq!(calls(csv, "hit"), Some(20_000));
        assert_eq!(calls(csv, "miss"), None);
    }

    #[test]
    fn what_no_calls_take_is_taken_off() {
        let took = |ms| Took {
            elapsed: Duration::from_millis(ms),
            processor: Duration::ZERO,
        };
        let cost = microseconds(&[took(10)], &[took(90)], |it| it.elapsed);
        assert!((cost - 80_000.0 / CALLS as f64).abs() < 1e-9);
    }
}
