//! Which source files does the page have, and what is told of their lines?

use super::functions::Functions;
use super::{Page, value};
use crate::Error;
use crate::annotate::{LineTime, line_times};
use crate::checks::Checks;
use crate::covered::Part;
use crate::events::WantedEvents;
use crate::lines::{LineCount, all_lines};
use crate::outcomes::{LineBranches, line_branches};
use crate::rows::Tally;
use crate::source::file_tallies;
use crate::time::Time;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many functions are named with one line; of others it is told how many there are.
const MOST_FUNCTIONS: usize = 40;

/// The files by name: what is told of others names them by their place here.
#[derive(Default)]
pub struct Files {
    pub list: Vec<SourceFile>,
    /// How many are left out: their text is not at hand, and nothing of them ran.
    pub left_out: usize,
    places: HashMap<String, usize>,
}

/// A source file with counted code.
pub struct SourceFile {
    pub name: String,
    pub tally: Tally,
    /// How many of its lines ran, as far as that is known: as exports for coverage and gates have it.
    pub lines: Part,
    /// Whether it is not the user's own.
    pub is_of_a_library: bool,
    /// Whether its text is in the page.
    pub has_text: bool,
    /// Its hottest lines, if it is the user's own.
    pub hot: Vec<HotLine>,
    /// The stretches of lines whose code never ran: first, last, and so on.
    pub never: Vec<u32>,
    /// Its text and its lines: what `page/source.js` shows.
    pub piece: Value,
}

/// A line that executed much.
pub struct HotLine {
    pub line: u32,
    pub count: LineCount,
    pub text: String,
}

/// All files with code of functions that are wanted.
pub fn all(
    page: &Page<'_>,
    functions: &Functions<'_>,
    checks: &Checks<'_>,
    time: Option<&Time>,
) -> Result<Files, Error> {
    let lines = all_lines(page.counted, page.demangle, &page.only)?;
    let tallies = file_tallies(
        page.counted,
        page.demangle,
        &page.only,
        &WantedEvents::default(),
    )?;
    let mut of_lines = functions_of_lines(functions);
    let branches = line_branches(page.counted, |_| true, checks);
    let mut list = Vec::new();
    let mut left_out = 0;
    for (name, lines) in &lines {
        let times = time.map(|it| wanted_times(page, it, name, lines));
        let lines = counted_lines(lines);
        let Some(tally) = tallies.get(name.as_ref()) else {
            continue;
        };
        let is_of_a_library = page.own.library_of_file(name).is_some();
        // The headers of a C++ library would bury what the user wrote.
        let text = match is_of_a_library && page.only.names_nothing() {
            true => None,
            false => (page.source)(name),
        };
        if text.is_none() && !tally.code.ran {
            left_out += 1;
            continue;
        }
        list.push(SourceFile {
            name: name.to_string(),
            tally: tally.code,
            lines: Part::of_lines(lines.iter().map(|(_, it)| it)),
            is_of_a_library,
            has_text: text.is_some(),
            hot: match is_of_a_library {
                true => Vec::new(),
                false => hot(&lines, text.as_deref()),
            },
            never: never(&lines),
            piece: piece(&Piece {
                outcomes: outcomes(branches.get(name), text.as_deref(), &lines),
                text,
                lines: &lines,
                of_lines: &of_lines.remove(name.as_ref()).unwrap_or_default(),
                times: times.as_ref(),
            }),
        });
    }
    let places = list.iter().enumerate();
    let places = places.map(|(place, it)| (it.name.clone(), place)).collect();
    Ok(Files {
        list,
        left_out,
        places,
    })
}

/// The time of the lines of a file: as in reports, those without a count only if all is wanted.
fn wanted_times(
    page: &Page<'_>,
    time: &Time,
    file: &str,
    lines: &BTreeMap<u32, LineCount>,
) -> BTreeMap<u32, LineTime> {
    let mut times = line_times(time, file, lines);
    times.retain(|line, _| page.only.is_everything() || lines.contains_key(line));
    times
}

impl Files {
    /// The place of a file.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }
}

fn counted_lines(lines: &BTreeMap<u32, LineCount>) -> Vec<(u32, LineCount)> {
    let all = lines.iter().map(|(line, it)| (*line, *it));
    all.filter(|(_, it)| it.counted).collect()
}

/// How many lines of all are shown as the hottest.
pub const HOTTEST: usize = 12;

fn hot(lines: &[(u32, LineCount)], text: Option<&[String]>) -> Vec<HotLine> {
    let mut lines: Vec<&(u32, LineCount)> = lines.iter().filter(|it| it.1.ran()).collect();
    lines.sort_by_key(|it| std::cmp::Reverse(it.1.executed.value()));
    let line = |(line, count): &(u32, LineCount)| HotLine {
        line: *line,
        count: *count,
        text: text
            .and_then(|it| it.get(*line as usize - 1))
            .map_or(String::new(), |it| value::source(it)),
    };
    lines.into_iter().take(HOTTEST).map(line).collect()
}

/// Lines that follow each other, but for lines without code, and never ran.
fn never(lines: &[(u32, LineCount)]) -> Vec<u32> {
    let mut stretches: Vec<u32> = Vec::new();
    let mut goes_on = false;
    for (line, it) in lines {
        let is_never = it.count.is_never() && it.executed.is_never();
        match (is_never, goes_on) {
            (true, true) => *stretches.last_mut().unwrap_or(&mut 0) = *line,
            (true, false) => stretches.extend([*line, *line]),
            (false, _) => (),
        }
        goes_on = is_never;
    }
    stretches
}

type OfLines<'a> = HashMap<&'a str, BTreeMap<u32, BTreeSet<usize>>>;

/// Which functions have code of a line, in them or inlined into them?
fn functions_of_lines<'a>(functions: &Functions<'a>) -> OfLines<'a> {
    let mut all: OfLines<'a> = HashMap::new();
    for (place, it) in functions.list.iter().enumerate() {
        let runs = it
            .named
            .function
            .blocks
            .iter()
            .flat_map(|block| &block.lines);
        for run in runs.filter(|run| run.line > 0) {
            if let Some(file) = it.named.file(run.file) {
                let lines = all.entry(file).or_default();
                lines.entry(run.line).or_default().insert(place);
            }
        }
    }
    all
}

/// What `page/source.js` shows of a file.
struct Piece<'a> {
    text: Option<Vec<String>>,
    lines: &'a [(u32, LineCount)],
    of_lines: &'a BTreeMap<u32, BTreeSet<usize>>,
    outcomes: Vec<Value>,
    times: Option<&'a BTreeMap<u32, LineTime>>,
}

fn piece(it: &Piece<'_>) -> Value {
    let text = it.text.as_ref().map(|lines| {
        let lines: Vec<String> = lines.iter().map(|line| value::source(line)).collect();
        lines.join("\n")
    });
    let none = BTreeSet::new();
    let functions = |line: &u32| some_of(it.of_lines.get(line).unwrap_or(&none));
    let lines = it.lines;
    json!({
        "text": text,
        "lines": distances(lines.iter().map(|(line, _)| *line)),
        "counts": lines.iter().map(|(_, it)| value::of_line(it)).collect::<Vec<_>>(),
        "executed": lines.iter().map(|(_, it)| value::count(it.executed)).collect::<Vec<_>>(),
        "functions": lines.iter().map(|(line, _)| functions(line)).collect::<Vec<_>>(),
        "outcomes": it.outcomes,
        "times": it.times.map(|all| all.iter().map(timed).collect::<Vec<_>>()),
    })
}

/// What is said of branches: the line, the words, and whether an outcome was never seen.
fn outcomes(
    branches: Option<&BTreeMap<u32, LineBranches>>,
    text: Option<&[String]>,
    lines: &[(u32, LineCount)],
) -> Vec<Value> {
    let told = |(line, it): &(u32, LineCount)| {
        let branches = branches?.get(line)?;
        let text = text.and_then(|text| text.get(*line as usize - 1));
        let outcome = branches.outcome(*line, text.map(String::as_str), Some(it));
        Some(json!([
            line,
            outcome.words()?,
            u8::from(outcome.is_partial())
        ]))
    };
    lines.iter().filter_map(told).collect()
}

/// A line that was seen: its number, samples, nanoseconds, and how long it took each time.
fn timed((line, time): (&u32, &LineTime)) -> Value {
    json!([
        line,
        time.cost.samples,
        value::number(time.cost.nanoseconds),
        time.each,
    ])
}

/// Each number less the one before: small numbers pack better.
fn distances(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut before = 0;
    let distance = |number: u32| number - std::mem::replace(&mut before, number);
    numbers.map(distance).collect()
}

/// One function as itself, several as a list; how many more there are is below zero.
fn some_of(functions: &BTreeSet<usize>) -> Value {
    let mut some: Vec<i64> = functions
        .iter()
        .take(MOST_FUNCTIONS)
        .map(|it| *it as i64)
        .collect();
    if functions.len() > MOST_FUNCTIONS {
        some.push(MOST_FUNCTIONS as i64 - functions.len() as i64);
    }
    match some.as_slice() {
        [one] => Value::from(*one),
        _ => Value::from(some),
    }
}
