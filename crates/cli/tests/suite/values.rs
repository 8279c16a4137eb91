//! `run --tally`, `--targets` and `report --by value`: counting by value.
//!
//! Who judges shares no code with us: the programs of `values/programs` say in the end what they
//! saw, a debugger and a tracer of system calls look at programs that are not ours, and a C compiler
//! computes what expressions are.

mod beyond;
mod guessed;
mod judged;
mod other_languages;
mod refused;
mod stated;

use std::collections::{BTreeMap, BTreeSet};

use crate::workshop::{Said, Workshop};

/// A row of `report --by value`.
#[derive(Clone, Debug)]
struct Row {
    module: String,
    function: String,
    place: String,
    expression: String,
    value: String,
    count: u64,
    caller: String,
    sum: i64,
    address: String,
}

/// By key: how often, and the sum of the amounts.
type Found = BTreeMap<String, (u64, i64)>;

/// The fields of a line of CSV. (A quote in front says that it is a text, and no formula.)
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(c),
        }
    }
    for field in &mut fields {
        if let Some(text) = field.strip_prefix('\'') {
            *field = text.to_owned();
        }
    }
    fields
}

fn table(shop: &Workshop, words: &[&str]) -> Vec<Row> {
    let csv = shop.report(&[&["--by", "value", "--format", "csv"], words].concat());
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("module,function,place,expression,value,count,caller,sum,address")
    );
    let rows = lines.map(|line| {
        let all = fields(line);
        let [
            module,
            function,
            place,
            expression,
            value,
            count,
            caller,
            sum,
            address,
        ] = <[String; 9]>::try_from(all).unwrap();
        Row {
            module,
            function,
            place,
            expression,
            value,
            count: count.parse().unwrap(),
            caller,
            sum: sum.parse().unwrap_or(0),
            address,
        }
    });
    rows.collect()
}

/// The rows of a place and an expression, added up by key.
fn found(rows: &[Row], place: &str, expression: &str) -> Found {
    let mut found = Found::new();
    for row in rows {
        if (row.place.as_str(), row.expression.as_str()) == (place, expression) {
            let known = found.entry(row.value.clone()).or_default();
            *known = (known.0 + row.count, known.1 + row.sum);
        }
    }
    found
}

/// The rows of what was run last. For every instruction where values were looked at, they add up to how
/// often it ran, as another report has it.
fn checked(shop: &Workshop) -> Vec<Row> {
    let text = shop.report(&["--by", "value"]);
    assert!(!text.contains("do not believe"), "{text}");
    let rows = table(shop, &[]);
    let mut sums: BTreeMap<(&str, &str, &str, &str, &str), u64> = BTreeMap::new();
    for row in rows.iter().filter(|it| !it.module.is_empty()) {
        let tally = (row.place.as_str(), row.expression.as_str());
        let place = (row.module.as_str(), row.function.as_str());
        let key = (place.0, place.1, row.address.as_str(), tally.0, tally.1);
        *sums.entry(key).or_default() += row.count;
    }
    let functions: BTreeSet<&str> = sums.keys().map(|it| it.1).collect();
    let counts = instructions(shop, &functions);
    for ((module, function, address, ..), sum) in &sums {
        let place = ((*module).to_owned(), (*address).to_owned());
        let count = counts.get(&place);
        assert_eq!(count, Some(sum), "{function} at {address} of {module}");
    }
    rows
}

/// How often each instruction of some functions ran, by module and address.
fn instructions(shop: &Workshop, functions: &BTreeSet<&str>) -> BTreeMap<(String, String), u64> {
    let mut words = vec!["--by", "instruction", "--format", "csv"];
    words.extend(functions.iter().flat_map(|it| ["--only", it]));
    let csv = shop.report(&words);
    let mut lines = csv.lines();
    let titles = fields(lines.next().unwrap());
    let column = |name: &str| titles.iter().position(|it| it == name).unwrap();
    let (module, address, count) = (column("module"), column("address"), column("count"));
    lines
        .map(fields)
        .filter_map(|row| {
            let place = (row[module].clone(), row[address].clone());
            Some((place, row[count].parse().ok()?))
        })
        .collect()
}

/// Runs a program with these tallies; nothing may be said.
fn tallied(shop: &Workshop, tallies: &[&str], words: &[&str]) -> String {
    let said = try_tallied(shop, tallies, words);
    assert_eq!(
        (said.status, said.stderr.as_str()),
        (Some(0), ""),
        "{tallies:?}"
    );
    said.stdout
}

fn try_tallied(shop: &Workshop, tallies: &[&str], words: &[&str]) -> Said {
    let mut run = vec!["run", "-q"];
    for tally in tallies {
        run.extend(["--tally", tally]);
    }
    run.push("--");
    run.extend(words);
    shop.headcount(&run)
}
