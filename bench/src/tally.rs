//! What does it cost to look at a value?
//!
//! At the instruction of a real program that runs most often, a register's lower bits are counted: by a
//! keyed probe in a copy, by headcount's breakpoints, by a debugger's breakpoint with a script, and by
//! the kernel's own probes. All take turns. What is told is what one hit adds: to the same program
//! counted without, for the probe; to the program alone, for those who stop it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use headcount_ground::child;
use headcount_ground::program::Program;
use headcount_ground::workers::Progress;

use crate::build;
use crate::measure::{Subject, median};
use crate::table;
use crate::variant::{self, Tools, Variant};

/// What is looked at.
const KEY: &str = "rax & 7";

/// Programs of one thread in C, whose functions have plain names.
const PROGRAMS: [&str; 3] = ["bzip2", "lua", "sqlite"];

/// A hit takes no more than that, if it takes no stop.
const PROMISED: f64 = 6.0;

/// So many nanoseconds are seen among the noise of a run that takes seconds.
const ENOUGH_HITS: u64 = 100_000_000;

/// But no program is given more than so many times its usual work.
const MOST_TIMES: u64 = 20;

/// Who stops the program does so no more often than this in a run: it is given that much less to do.
const MOST_STOPS: u64 = 50_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Native,
    Counted,
    Probe,
    Breakpoint,
    Debugger,
    Kernel,
}

const WAYS: [Way; 6] = [
    Way::Native,
    Way::Counted,
    Way::Probe,
    Way::Breakpoint,
    Way::Debugger,
    Way::Kernel,
];

/// Those that have a row.
const SHOWN: [Way; 4] = [Way::Probe, Way::Breakpoint, Way::Debugger, Way::Kernel];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::Counted => "headcount run",
            Way::Probe => "headcount run --tally",
            Way::Breakpoint => "headcount run --engine breakpoint --tally",
            Way::Debugger => "gdb, a breakpoint with a script",
            Way::Kernel => "bpftrace, a uprobe",
        }
    }

    fn stops(self) -> bool {
        matches!(self, Way::Breakpoint | Way::Debugger | Way::Kernel)
    }
}

/// A program, and what is looked at in it.
struct Place<'a> {
    subject: &'a Subject,
    folder: PathBuf,
    function: String,
    /// How many bytes behind the beginning of the function it is.
    distance: u64,
    /// How often it runs in the whole work, and in the little that those get who stop it.
    hits: [u64; 2],
    /// The last argument, for the whole work and for that little.
    whole: String,
    little: String,
}

/// What one way took, in the rounds that went well, with the whole work and with little.
#[derive(Default)]
struct Took {
    whole: Vec<Duration>,
    little: Vec<Duration>,
    /// Why there is nothing.
    refused: Option<String>,
}

/// Measures and prints; says whether the promise is kept.
pub fn run(work: &Path, tools: &Tools, subjects: &[Subject], rounds: usize) -> Result<bool> {
    let subjects: Vec<&Subject> = subjects
        .iter()
        .filter(|it| PROGRAMS.contains(&it.name.as_str()))
        .collect();
    let places = subjects.into_iter().map(|it| Place::find(work, tools, it));
    let places = places.collect::<Result<Vec<Place<'_>>>>()?;
    let mut progress = Progress::new("bench/run", rounds * places.len() * WAYS.len());
    let mut done = 0;
    let mut took: Vec<[Took; 6]> = places.iter().map(|_| Default::default()).collect();
    for round in 0..rounds {
        for (place, took) in places.iter().zip(&mut took) {
            for turn in 0..WAYS.len() {
                // Each round starts with another one.
                let at = (turn + round) % WAYS.len();
                place.measure(tools, WAYS[at], &mut took[at])?;
                done += 1;
                progress.show(done, "run");
            }
        }
    }
    Ok(show(&places, &took, rounds))
}

impl<'a> Place<'a> {
    /// The block that runs most often.
    fn find(work: &Path, tools: &Tools, subject: &'a Subject) -> Result<Self> {
        let folder = build::folder(work, Variant::Native, &subject.measure);
        let mut place = Self {
            subject,
            folder,
            function: String::new(),
            distance: 0,
            hits: [0; 2],
            whole: last(&subject.measure).to_owned(),
            little: "1".to_owned(),
        };
        let hottest = place.hottest(tools, &subject.brief)?;
        let hits = hottest.count;
        let brief: u64 = last(&subject.brief).parse().context("an amount of work")?;
        let little = (brief * MOST_STOPS / hits.max(1)).clamp(1, brief);
        place.little = little.to_string();
        place.function = hottest.function;
        place.distance = hottest.distance;
        let measure: u64 = place.whole.parse().context("an amount of work")?;
        let times = ENOUGH_HITS / place.runs(tools, &subject.measure)?.max(1);
        place.whole = (measure * times.clamp(1, MOST_TIMES)).to_string();
        place.hits = [
            place.runs(tools, &place.work(&place.whole))?,
            place.runs(tools, &place.work(&place.little))?,
        ];
        ensure!(place.hits[0] > 0, "{} never ran", place.words());
        Ok(place)
    }

    fn words(&self) -> String {
        format!("{}+{:#x}", self.function, self.distance)
    }

    fn work(&self, amount: &str) -> Program {
        let mut program = self.subject.brief.clone();
        program.arguments.pop();
        program.arguments.push(amount.to_owned());
        program
    }

    fn hottest(&self, tools: &Tools, program: &Program) -> Result<Block> {
        let all = self.blocks(tools, program)?;
        let hottest = all.into_iter().max_by_key(|it| it.count);
        hottest.context("nothing ran")
    }

    fn runs(&self, tools: &Tools, program: &Program) -> Result<u64> {
        let all = self.blocks(tools, program)?;
        let is_it = |it: &&Block| it.function == self.function && it.distance == self.distance;
        Ok(all.iter().find(is_it).map_or(0, |it| it.count))
    }

    /// The blocks of a program, and how often each ran.
    fn blocks(&self, tools: &Tools, program: &Program) -> Result<Vec<Block>> {
        let profile = variant::profile(&self.folder);
        let _ = fs::remove_file(&profile);
        let plain = program.command(&build::executable(&self.folder));
        let mut command = headcount(tools, &profile, &[], &plain);
        child::run_or_bail(command.current_dir(&self.folder), &self.folder, LONG)?;
        let mut report = Command::new(tools.headcount);
        report
            .args(["report", "--by", "block", "--format", "csv"])
            .arg(&profile)
            .current_dir(&self.folder)
            .env("HEADCOUNT_DIR", self.folder.join("no counter files"));
        let csv = child::run_or_bail(&mut report, &self.folder, LONG)?;
        blocks(&String::from_utf8(csv)?).context("a report without functions or counts")
    }

    fn measure(&self, tools: &Tools, way: Way, took: &mut Took) -> Result<()> {
        if took.refused.is_some() {
            return Ok(());
        }
        if !way.stops() {
            let time = self.time(tools, way, &self.work(&self.whole))?;
            took.whole.extend(time.ok());
        }
        match self.time(tools, way, &self.work(&self.little))? {
            Ok(time) => took.little.push(time),
            Err(why) => took.refused = Some(why),
        }
        Ok(())
    }

    /// Processor time of all, or why there is none.
    fn time(
        &self,
        tools: &Tools,
        way: Way,
        program: &Program,
    ) -> Result<std::result::Result<Duration, String>> {
        let profile = variant::profile(&self.folder);
        let _ = fs::remove_file(&profile);
        let plain = program.command(&build::executable(&self.folder));
        let mut command = self.command(tools, way, &profile, plain)?;
        let said = self.folder.join("stderr");
        command
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(File::create(self.folder.join("stdout"))?)
            .stderr(File::create(&said)?);
        let (status, time) = match child::time(&mut command) {
            Ok(done) => done,
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        let said = fs::read_to_string(said)?;
        let why = said.lines().next().unwrap_or("no word").to_owned();
        match status.success() {
            true => Ok(Ok(time)),
            false if way.stops() => Ok(Err(why)),
            false => anyhow::bail!("{}: {status}: {why}", child::shown(&command)),
        }
    }

    fn command(&self, tools: &Tools, way: Way, profile: &Path, plain: Command) -> Result<Command> {
        let tally = format!("{}({KEY})", self.words());
        let engine = ["--engine", "breakpoint", "--only", &self.function];
        Ok(match way {
            Way::Native => plain,
            Way::Counted => headcount(tools, profile, &[], &plain),
            Way::Probe => headcount(tools, profile, &["--tally", &tally], &plain),
            Way::Breakpoint => {
                let words = [&engine[..], &["--tally", &tally]].concat();
                headcount(tools, profile, &words, &plain)
            }
            Way::Debugger => self.debugger(&plain)?,
            Way::Kernel => self.kernel(&plain),
        })
    }

    fn debugger(&self, plain: &Command) -> Result<Command> {
        let script = self.folder.join("tally.py");
        fs::write(&script, DEBUGGER.replace("PLACE", &self.words()))?;
        let mut command = Command::new("gdb");
        command.args(["-nx", "-batch", "-x"]).arg(script);
        command.arg("--args").arg(plain.get_program());
        command.args(plain.get_args());
        Ok(command)
    }

    fn kernel(&self, plain: &Command) -> Command {
        let program = plain.get_program().to_string_lossy();
        let place = self.words();
        let probe = format!("uprobe:{program}:{place} {{ @[reg(\"ax\") & 7] = count(); }}");
        let mut command = Command::new("bpftrace");
        let words: Vec<_> = plain.get_args().map(|it| it.to_string_lossy()).collect();
        let words = format!("{program} {}", words.join(" "));
        command.args(["-q", "-o", "/dev/null", "-e", &probe, "-c", &words]);
        command
    }

    /// Nanoseconds a hit.
    fn cost(&self, way: Way, took: &[Took; 6]) -> Option<f64> {
        let of = |way: Way| WAYS.iter().position(|it| *it == way).map(|at| &took[at]);
        let seconds = |of: &[Duration]| Some(median(of)?.as_secs_f64());
        let [whole, little] = self.hits;
        let (added, hits) = match way.stops() {
            true => {
                let alone = of(Way::Native)?;
                (seconds(&of(way)?.little)? - seconds(&alone.little)?, little)
            }
            // What is done once in a run, little work takes as well.
            false => {
                let steady = |it: &Took| Some(seconds(&it.whole)? - seconds(&it.little)?);
                (
                    steady(of(way)?)? - steady(of(Way::Counted)?)?,
                    whole.checked_sub(little)?,
                )
            }
        };
        (hits > 0).then_some(added * 1e9 / hits as f64)
    }
}

/// No preparation takes longer.
const LONG: Duration = Duration::from_secs(600);

/// Counts the same.
const DEBUGGER: &str = "\
import collections
import gdb

counts = collections.Counter()

class Place(gdb.Breakpoint):
    def stop(self):
        counts[int(gdb.selected_frame().read_register('rax')) & 7] += 1
        return False

gdb.execute('set confirm off')
Place('*PLACE')
gdb.execute('run')
if not counts:
    gdb.execute('quit 1')
";

/// Counts the program's own code.
fn headcount(tools: &Tools, profile: &Path, more: &[&str], plain: &Command) -> Command {
    let mut command = Command::new(tools.headcount);
    command.args(["run", "-q", "--modules", "main", "-o"]);
    command.arg(profile).args(more).arg("--");
    command.arg(plain.get_program()).args(plain.get_args());
    command
}

fn last(program: &Program) -> &str {
    program.arguments.last().map_or("", String::as_str)
}

/// Functions in one part are smaller.
const FARTHEST: u64 = 1 << 17;

/// A block of a program.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    function: String,
    /// How many bytes behind the beginning of the function it begins.
    distance: u64,
    count: u64,
}

/// The blocks of functions whose names need no quotes.
fn blocks(csv: &str) -> Option<Vec<Block>> {
    let mut lines = csv.lines();
    let headings: Vec<&str> = lines.next()?.split(',').collect();
    let place = |name: &str| headings.iter().position(|it| *it == name);
    let (name, address, count) = (place("function")?, place("address")?, place("count")?);
    let rows = lines.filter(|row| !row.contains('"')).filter_map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        let address = fields.get(address)?.strip_prefix("0x")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let count: u64 = fields.get(count)?.parse().ok()?;
        Some(((*fields.get(name)?).to_owned(), address, count))
    });
    let rows: Vec<(String, u64, u64)> = rows.collect();
    let mut extents: BTreeMap<&str, Range<u64>> = BTreeMap::new();
    for (name, address, _) in rows.iter().filter(|it| !it.0.contains(['.', '@', ' '])) {
        let known = extents.entry(name).or_insert(*address..*address);
        *known = known.start.min(*address)..known.end.max(*address);
    }
    // Functions of which a part is elsewhere begin nobody knows where.
    extents.retain(|_, it| it.end - it.start < FARTHEST);
    let blocks = rows.iter().filter_map(|(name, address, count)| {
        Some(Block {
            function: name.clone(),
            distance: address - extents.get(name.as_str())?.start,
            count: *count,
        })
    });
    Some(blocks.collect())
}

fn show(places: &[Place<'_>], took: &[[Took; 6]], rounds: usize) -> bool {
    let mut rows = vec![vec!["nanoseconds a hit".to_owned()]];
    let title = |it: &Place<'_>| format!("{} {}", it.subject.name, it.words());
    rows[0].extend(places.iter().map(title));
    for way in SHOWN {
        let costs = places.iter().zip(took).map(|(place, took)| {
            let cost = place.cost(way, took);
            cost.map_or("-".to_owned(), |it| format!("{it:.1}"))
        });
        rows.push(
            std::iter::once(way.name().to_owned())
                .chain(costs)
                .collect(),
        );
    }
    println!("{}", table::aligned(&rows));
    for (at, way) in WAYS.iter().enumerate() {
        let why = took.iter().find_map(|it| it[at].refused.as_ref());
        if let Some(why) = why {
            println!("{}: {why}", way.name());
        }
    }
    let probes = places.iter().zip(took);
    let dearest = probes.filter_map(|(place, took)| place.cost(Way::Probe, took));
    let dearest = dearest.fold(f64::NEG_INFINITY, f64::max);
    let kept = dearest <= PROMISED;
    println!(
        "\nProcessor time of all, medians of {rounds} rounds in turns. The probe is compared with the same\n\
         program counted without it, both less what little work takes; who stops the program, with the\n\
         program alone, on little work.\n\n\
         {}: a keyed probe takes {dearest:.1} ns a hit, at most {PROMISED} ns",
        if kept { "kept" } else { "BROKEN" },
    );
    kept
}

#[cfg(test)]
mod tests {
    use super::{Block, blocks};

    #[test]
    fn blocks_are_read_from_their_columns() {
        let csv = "module,function,address,instructions,count\n/p,f,0x10,3,1\n/p,f,0x18,2,9\n\
                   /p,\"g,h\",0x20,1,1\n/p,i.cold,0x30,1,1\n/p,far,0x40,1,1\n/p,far,0x80000,1,1\n";
        let block = |distance, count| Block {
            function: "f".to_owned(),
            distance,
            count,
        };
        assert_eq!(blocks(csv), Some(vec![block(0, 1), block(8, 9)]));
    }
}
