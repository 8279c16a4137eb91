//! What was counted by value.

use crate::count::{Count, CountedBlock};
use crate::names::{Named, all_functions};
use crate::number::thousands;
use crate::report::{Decode, Request};
use crate::table::{Cell, Row};
use crate::{Error, Own};
use headcount_model::{
    Caller, CodePoint, Counted, Key, KeyKind, LinkAddr, Tally, TallyRow, ValueCounts,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Where code is, in words.
struct Place<'a> {
    named: &'a Named<'a>,
    block: CountedBlock<'a>,
    at: LinkAddr,
}

/// Finds the functions of addresses.
struct Finder<'a> {
    functions: &'a [Named<'a>],
    /// The blocks of each build, by address: where they begin, in which function, and which one it is.
    blocks: HashMap<&'a str, Vec<(LinkAddr, usize, usize)>>,
    decode: Decode<'a>,
}

impl<'a> Finder<'a> {
    fn new(functions: &'a [Named<'a>], decode: Decode<'a>) -> Self {
        let mut blocks: HashMap<&str, Vec<_>> = HashMap::new();
        for (number, named) in functions.iter().enumerate() {
            let of = blocks.entry(named.module.build_id.as_str()).or_default();
            let all = named.function.blocks.iter().enumerate();
            of.extend(all.map(|(index, it)| (it.address, number, index)));
        }
        for of in blocks.values_mut() {
            of.sort_unstable();
        }
        Self {
            functions,
            blocks,
            decode,
        }
    }

    fn find(&self, values: &ValueCounts, point: CodePoint) -> Option<Place<'a>> {
        let build = values.builds.get(point.build as usize)?;
        let blocks = self.blocks.get(build.as_str())?;
        let behind = blocks.partition_point(|it| it.0 <= point.at);
        // Several functions may have a block.
        let mut before = blocks[..behind].iter().rev().take(4);
        let (_, function, block) = before.find(|(_, function, block)| {
            let block = &self.functions[*function].function.blocks[*block];
            let mut code = block.code.iter();
            code.any(|it| {
                let end = it.address.0 + it.bytes.len() as u64;
                (it.address.0..end).contains(&point.at.0)
            })
        })?;
        let named = &self.functions[*function];
        Some(Place {
            named,
            block: named.blocks().nth(*block)?,
            at: point.at,
        })
    }

    /// The number of an instruction in its block.
    fn instruction(&self, place: &Place<'_>) -> Option<u32> {
        let code = place.block.block.code.iter().flat_map(self.decode);
        let number = code.into_iter().position(|(at, _)| at == place.at)?;
        u32::try_from(number).ok()
    }

    /// How often an instruction ran.
    fn count(&self, place: &Place<'_>) -> Count {
        let number = self.instruction(place);
        number.map_or(Count::Unknown, |it| place.block.at(it))
    }

    /// File and line of an instruction; or of the call before it.
    fn line(&self, place: &Place<'_>) -> Option<(Arc<str>, u32)> {
        let number = self.instruction(place)?;
        let mut behind = 0;
        let run = place.block.block.lines.iter().find(|it| {
            behind += it.instructions;
            behind > number
        })?;
        let file = place.named.file(run.file).filter(|_| run.line != 0)?;
        Some((file.into(), run.line))
    }
}

impl Place<'_> {
    /// Function and distance.
    fn words(&self) -> String {
        let distance = self.at.0.wrapping_sub(self.named.function.address.0);
        match distance {
            0 => self.named.name.to_string(),
            _ if distance < 1 << 31 => format!("{}+{distance:#x}", self.named.name),
            _ => format!("{}-{:#x}", self.named.name, distance.wrapping_neg()),
        }
    }
}

/// What rows are told apart by, in their order but for how often.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    tally: usize,
    point: (String, LinkAddr),
    key: Found,
    caller: Option<String>,
}

/// What was found, so that numbers are in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Number(i64, String),
    Words(String),
}

/// What was found, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallied {
    /// In the order they were asked for.
    pub tallies: Vec<TalliedPlace>,
    /// Where counts by value do not add up to how often a place was reached: nobody should believe them.
    pub doubts: Vec<String>,
    /// What else is to be said, in sentences.
    pub notes: Vec<String>,
    /// How many rows are left out that are about code of libraries.
    pub in_libraries: usize,
}

/// One thing that was asked for, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TalliedPlace {
    /// Where, in the user's words.
    pub place: String,
    /// What, in the user's words.
    pub expression: String,
    /// Is an amount added up?
    pub has_amount: bool,
    /// Are the values where indirect calls and jumps went?
    pub is_targets: bool,
    /// What was found, the commonest first.
    pub values: Vec<TalliedValue>,
}

/// What was found somewhere, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TalliedValue {
    /// The path of the module; empty if none was counted there.
    pub module: Arc<str>,
    /// The function.
    pub function: Arc<str>,
    /// Where, in words: of targets, the instruction.
    pub place: String,
    /// What, in words; empty if everything counts as one.
    pub value: String,
    /// Who called; empty if callers are not told apart.
    pub caller: String,
    /// How often.
    pub count: u64,
    /// The sum of the amounts.
    pub sum: i64,
    /// The instruction.
    pub address: Option<LinkAddr>,
    /// Its file and line.
    pub line: Option<(Arc<str>, u32)>,
}

impl TalliedPlace {
    /// What was asked for, as reports call it.
    pub fn name(&self) -> String {
        match (self.is_targets, self.expression.as_str()) {
            (true, _) | (_, "") => self.place.clone(),
            (false, expression) => format!("{}({expression})", self.place),
        }
    }

    /// How often anything was found.
    pub fn count(&self) -> u64 {
        let counts = self.values.iter().map(|it| it.count);
        counts.fold(0, u64::saturating_add)
    }

    /// How often each value was found, whoever called and wherever that was; the commonest first, and
    /// the sum of the amounts. Where nothing but callers are told apart, these.
    pub fn by_value(&self) -> Vec<(&str, u64, i64)> {
        by_value(&self.values)
    }

    fn is(&self, tally: &Tally) -> bool {
        (&self.place, &self.expression, self.has_amount)
            == (&tally.place, &tally.expression, tally.has_amount)
    }

    /// The cells of one row of it.
    fn row(&self, it: TalliedValue) -> Row {
        let text = |it: &str| Cell::Text(it.into());
        let sum = match self.has_amount {
            true => it.sum.to_string(),
            false => String::new(),
        };
        Row {
            cells: vec![
                Cell::Text(it.module),
                Cell::Text(it.function),
                text(&it.place),
                text(&self.expression),
                text(&it.value),
                Cell::Count(Count::Exact(it.count)),
                text(&it.caller),
                text(&sum),
                Cell::Address(it.address),
            ],
            counted: true,
            ran: true,
            place: it.line,
            ..Row::default()
        }
    }
}

impl TalliedValue {
    /// What was found; the caller, where everything counts as one.
    fn words(&self) -> &str {
        match self.value.as_str() {
            "" => &self.caller,
            value => value,
        }
    }
}

/// The same of some of what was found.
pub fn by_value<'v>(
    values: impl IntoIterator<Item = &'v TalliedValue>,
) -> Vec<(&'v str, u64, i64)> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut sums: Vec<(&str, u64, i64)> = Vec::new();
    for it in values {
        let words = it.words();
        let place = *places.entry(words).or_insert(sums.len());
        if place == sums.len() {
            sums.push((words, 0, 0));
        }
        let sum = &mut sums[place];
        sum.1 = sum.1.saturating_add(it.count);
        sum.2 = sum.2.wrapping_add(it.sum);
    }
    sums.sort_by_key(|it| std::cmp::Reverse(it.1));
    sums
}

/// What was found, in rows.
pub struct Rows {
    /// Those of one place are together.
    pub rows: Vec<Row>,
    /// What is to be said of them.
    pub notes: Vec<String>,
    /// How many have no row.
    pub left_out: usize,
    /// How many of these are about code of libraries.
    pub in_libraries: usize,
}

/// The rows of all that was asked for.
pub fn rows(counted: &[Counted], request: &Request<'_>) -> Result<Rows, Error> {
    let Tallied {
        tallies,
        doubts,
        mut notes,
        in_libraries,
    } = tallied(counted, request)?;
    notes.splice(0..0, doubts);
    let most = request.top.unwrap_or(usize::MAX);
    let mut left_out = 0;
    let mut rows = Vec::new();
    for mut tally in tallies {
        left_out += tally.values.len().saturating_sub(most);
        let values = std::mem::take(&mut tally.values);
        rows.extend(values.into_iter().take(most).map(|it| tally.row(it)));
    }
    Ok(Rows {
        rows,
        notes,
        left_out,
        in_libraries,
    })
}

/// What was found of all that was asked for and is wanted, in words.
pub fn tallied(counted: &[Counted], request: &Request<'_>) -> Result<Tallied, Error> {
    let found = request.values;
    if found.is_empty() {
        return Ok(Tallied::default());
    }
    let all = counted
        .iter()
        .flat_map(|it| all_functions(it, request.demangle));
    let functions: Vec<Named<'_>> = all.collect();
    let finder = Finder::new(&functions, request.decode);
    let mut all = Tallied::default();
    let mut sums: BTreeMap<Told, TalliedValue> = BTreeMap::new();
    for values in found {
        // Many rows are about few places.
        let mut places: HashMap<Option<CodePoint>, Looked<'_>> = HashMap::new();
        for tally in &values.tallies {
            let number = number_of(tally, &mut all.tallies);
            for row in &tally.rows {
                let looked = places.entry(row.place);
                let looked =
                    looked.or_insert_with(|| Looked::at(row.place, &finder, values, request));
                if tally.is_targets && looked.is_of_library {
                    all.in_libraries += 1;
                    continue;
                }
                if !looked.is_wanted {
                    continue;
                }
                let (told, made) = told(&finder, values, (number, tally), row, looked);
                let known = sums.entry(told).or_insert(made);
                known.count = known.count.checked_add(row.count).ok_or(Error::TooLarge)?;
                known.sum = known.sum.wrapping_add(row.amount);
            }
        }
    }
    for (told, value) in sums {
        all.tallies[told.tally].values.push(value);
    }
    for tally in &mut all.tallies {
        tally.values.sort_by_key(|it| std::cmp::Reverse(it.count));
    }
    match have_the_same(found, request.whole_runs) {
        true => all.doubts = differences(&finder, found)?,
        false => all.notes.push(NOT_CHECKED.to_owned()),
    }
    all.notes.extend(lumped(found));
    Ok(all)
}

/// What to say of runs whose values and counts are not about the same.
const NOT_CHECKED: &str = "Not all of these runs counted the same by value: whether values add up to how often \
                           their places ran is told of each run alone.";

/// Did all the runs count the same by value? Else there is nothing to hold the sums against.
fn have_the_same(found: &[ValueCounts], runs: usize) -> bool {
    let has_all = |one: &ValueCounts, other: &ValueCounts| {
        let mut asked = one.tallies.iter();
        asked.all(|it| other.tallies.iter().any(|other| is_same(it, other)))
    };
    let mut pairs = found.windows(2);
    found.len() == runs && pairs.all(|it| has_all(&it[0], &it[1]) && has_all(&it[1], &it[0]))
}

fn is_same(one: &Tally, other: &Tally) -> bool {
    (&one.place, &one.expression) == (&other.place, &other.expression)
}

/// The number of what was asked for, also in another run.
fn number_of(tally: &Tally, all: &mut Vec<TalliedPlace>) -> usize {
    let known = all.iter().position(|it| it.is(tally));
    known.unwrap_or_else(|| {
        all.push(TalliedPlace {
            place: tally.place.clone(),
            expression: tally.expression.clone(),
            has_amount: tally.has_amount,
            is_targets: tally.is_targets,
            values: Vec::new(),
        });
        all.len() - 1
    })
}

/// What is known of a place that rows are about.
struct Looked<'a> {
    place: Option<Place<'a>>,
    line: Option<(Arc<str>, u32)>,
    /// Is it chosen by the user's filters?
    is_wanted: bool,
    /// Is it in code that is not the user's own, if that matters?
    is_of_library: bool,
}

impl<'a> Looked<'a> {
    fn at(
        point: Option<CodePoint>,
        finder: &Finder<'a>,
        values: &ValueCounts,
        request: &Request<'_>,
    ) -> Self {
        let place = point.and_then(|it| finder.find(values, it));
        let is_library = |own: &Own| {
            let place = place.as_ref();
            place.is_none_or(|it| own.library(it.named).is_some())
        };
        Self {
            line: place.as_ref().and_then(|it| finder.line(it)),
            is_wanted: match &place {
                Some(place) => request.only.wants(place.named),
                None => request.only.names_nothing(),
            },
            is_of_library: request.own.is_some_and(is_library),
            place,
        }
    }
}

/// What a row is told apart by, and the row without its counts.
fn told(
    finder: &Finder<'_>,
    values: &ValueCounts,
    (number, tally): (usize, &Tally),
    row: &TallyRow,
    looked: &Looked<'_>,
) -> (Told, TalliedValue) {
    let Looked { place, line, .. } = looked;
    let caller = row.caller.map(|it| caller(finder, values, it));
    let (key, value) = key(finder, values, tally, row.key);
    let address = row.place.map(|it| it.at);
    let named = place.as_ref().map(|it| it.named);
    let module = named.map_or_else(|| "".into(), |it| it.module_path.clone());
    let where_to = match (tally.is_targets, line, place) {
        (false, ..) => tally.place.clone(),
        (true, Some((file, line)), _) => format!("{file}:{line}"),
        (true, None, Some(place)) => place.words(),
        (true, None, None) => ELSEWHERE.to_owned(),
    };
    let told = Told {
        tally: number,
        point: (module.to_string(), address.unwrap_or_default()),
        key,
        caller: caller.clone(),
    };
    let made = TalliedValue {
        module,
        function: named.map_or_else(|| "".into(), |it| it.name.clone()),
        place: where_to,
        value,
        caller: caller.unwrap_or_default(),
        count: 0,
        sum: 0,
        address,
        line: line.clone(),
    };
    (told, made)
}

/// What stands for code of no module that is counted.
const ELSEWHERE: &str = "(elsewhere)";

fn caller(finder: &Finder<'_>, values: &ValueCounts, it: Caller) -> String {
    let Caller::At(point) = it else {
        return ELSEWHERE.to_owned();
    };
    // The return address is behind the call.
    let call = CodePoint {
        at: LinkAddr(point.at.0.saturating_sub(1)),
        ..point
    };
    let Some(place) = finder.find(values, call) else {
        return format!("{}", point.at);
    };
    let code = place.block.block.code.iter().flat_map(finder.decode);
    let call = code
        .into_iter()
        .map(|it| it.0)
        .take_while(|at| *at < point.at);
    let at = call.last().unwrap_or(place.at);
    let place = Place { at, ..place };
    match finder.line(&place) {
        Some((file, line)) => format!("{} {file}:{line}", place.named.name),
        None => place.words(),
    }
}

fn key(finder: &Finder<'_>, values: &ValueCounts, tally: &Tally, key: Key) -> (Found, String) {
    let words = match key {
        Key::Number(number) => {
            let words = number_in_words(number, tally);
            return (Found::Number(number, words.clone()), words);
        }
        Key::Code(point) => match finder.find(values, point) {
            Some(place) if place.at == place.named.function.address => place.words(),
            Some(place) => match finder.line(&place) {
                Some((file, line)) => format!("{} {file}:{line}", place.words()),
                None => place.words(),
            },
            None => format!("{}", point.at),
        },
        Key::Text(number) => values
            .texts
            .get(number as usize)
            .map_or_else(String::new, |it| quoted(it)),
        Key::Kind(kind) => of_kind(kind).to_owned(),
    };
    (Found::Words(words.clone()), words)
}

/// A text as a string literal has it.
fn quoted(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for part in text.utf8_chunks() {
        quoted.extend(part.valid().escape_debug());
        let others = part.invalid().iter();
        quoted.extend(others.map(|it| format!("\\x{it:02x}")));
    }
    quoted.push('"');
    quoted
}

/// A number, or the range that it stands for.
fn number_in_words(number: i64, tally: &Tally) -> String {
    if tally.scale == "log2" {
        return match number {
            -1 => "0".to_owned(),
            0 => "1".to_owned(),
            1..=62 => format!("{}..{}", 1_i64 << number, ((1_u64 << (number + 1)) - 1)),
            _ => "negative".to_owned(),
        };
    }
    match tally.scale.parse::<i64>() {
        // The first range of all begins below the least number: its beginning wraps around.
        Ok(width) if number > 0 && number % width != 0 => {
            format!("{}..{}", i64::MIN, number.wrapping_add(width - 1))
        }
        Ok(width) => format!("{number}..{}", number.saturating_add(width - 1)),
        Err(_) if tally.expression.is_empty() || tally.expression.starts_with("sum ") => {
            String::new()
        }
        Err(_) => number.to_string(),
    }
}

fn of_kind(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Number => "",
        KeyKind::Unreadable => "(unreadable)",
        KeyKind::Below => "(below)",
        KeyKind::Above => "(above)",
        KeyKind::Jumped => "(ended by a jump)",
        KeyKind::Other => "(others)",
        KeyKind::Elsewhere => ELSEWHERE,
        KeyKind::Changed => "(changed meanwhile)",
    }
}

/// Where the counts by value do not add up to how often a place was reached: nobody should believe them.
/// And where nothing was counted at all.
fn differences(finder: &Finder<'_>, found: &[ValueCounts]) -> Result<Vec<String>, Error> {
    let mut places: BTreeMap<(String, usize, String, LinkAddr), Reached> = BTreeMap::new();
    let mut has_place: BTreeMap<String, bool> = BTreeMap::new();
    for values in found {
        // The same may be asked for with callers and without.
        let mut asked: HashMap<String, usize> = HashMap::new();
        for tally in &values.tallies {
            let name = format!("{}({})", tally.place, tally.expression);
            let time = asked.entry(name.clone()).or_default();
            *time += 1;
            *has_place.entry(name.clone()).or_default() |=
                tally.is_targets || !tally.places.is_empty();
            for (point, sum) in sums_of(tally)? {
                let Some(place) = finder.find(values, point) else {
                    continue;
                };
                let build = values.builds[point.build as usize].clone();
                let reached = places.entry((name.clone(), *time, build, point.at));
                let reached = reached.or_insert_with(|| Reached {
                    sum: 0,
                    count: finder.count(&place),
                    place: format!("{} ({})", place.words(), point.at),
                    unfinished: 0,
                });
                reached.sum = reached.sum.checked_add(sum).ok_or(Error::TooLarge)?;
                reached.unfinished = reached.unfinished.saturating_add(values.unfinished);
            }
        }
    }
    let differ = places.iter();
    let differ = differ.filter_map(|((tally, ..), it)| it.difference(tally));
    let nowhere = has_place.into_iter().filter(|it| !it.1).map(|(tally, _)| {
        format!(
            "The values of {tally} were not counted: no module that was counted has such a place."
        )
    });
    Ok(nowhere.chain(differ).collect())
}

/// How often values were counted at a place, and how often it was reached.
struct Reached {
    sum: u64,
    count: Count,
    /// In words.
    place: String,
    /// How many threads may have been between the two when headcount was killed.
    unfinished: u64,
}

impl Reached {
    /// What is to be said, if these differ.
    fn difference(&self, tally: &str) -> Option<String> {
        let what = format!("The values of {tally} at {}", self.place);
        if !self.count.is_known() && self.sum == 0 {
            return Some(format!("{what} were not counted, for its code was not."));
        }
        let reached = self.count.value().filter(|_| self.count.is_known())?;
        let difference = reached.abs_diff(self.sum);
        let (times, reached) = (thousands(self.sum), thousands(reached));
        (difference != 0).then(|| match difference <= self.unfinished {
            true => format!(
                "{what} were counted {times} times, and it ran {reached} times: headcount was killed \
                 when threads were between the two."
            ),
            false => format!(
                "{what} were counted {times} times, but it ran {reached} times: do not believe them."
            ),
        })
    }
}

/// How often values were counted at each place.
fn sums_of(tally: &Tally) -> Result<BTreeMap<CodePoint, u64>, Error> {
    let mut sums: BTreeMap<CodePoint, u64> = BTreeMap::new();
    sums.extend(tally.places.iter().map(|it| (*it, 0)));
    for row in &tally.rows {
        if let Some(point) = row.place {
            let sum = sums.entry(point).or_default();
            *sum = sum.checked_add(row.count).ok_or(Error::TooLarge)?;
        }
    }
    Ok(sums)
}

/// What was too much to be told apart.
fn lumped(found: &[ValueCounts]) -> Option<String> {
    let rows = found
        .iter()
        .flat_map(|it| &it.tallies)
        .flat_map(|it| &it.rows);
    let others = rows.filter(|it| it.key == Key::Kind(KeyKind::Other));
    let count: u64 = others.map(|it| it.count).fold(0, u64::saturating_add);
    (count != 0).then(|| {
        format!(
            "Of each tally, the first 1,048,576 values are told apart; {} counts of later ones are \
             together in \"(others)\".",
            thousands(count)
        )
    })
}
