//! How fast counts grow: what a program has executed at one moment, beside what it had before.

use std::collections::HashMap;

use crate::json;
use crate::report::Report;
use crate::rows::Totals;
use crate::table::{Cell, Row, Table, Unit};

/// What a program has executed so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// When, in nanoseconds since some moment.
    pub at: u64,
    /// How many instructions in all.
    pub executed: u64,
    /// By function or line: those that ran.
    pub rows: Vec<Executed>,
}

/// A function or a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// What people call it.
    pub name: String,
    /// Where it is: a source line, or a module.
    pub place: String,
    /// How many instructions it has executed.
    pub executed: u64,
}

/// How fast it goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Nanoseconds between the two moments; none if there is but one.
    pub elapsed: Option<u64>,
    /// How many instructions there are in all.
    pub executed: u64,
    /// How many of them since the moment before; or, if there is none, ever.
    pub grown: u64,
    /// By function or line.
    pub rows: Vec<Growth>,
}

/// A function or a line, and how fast it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// What it has executed.
    pub row: Executed,
    /// How much of that since the moment before.
    pub grown: u64,
}

/// What rows are ordered by. The order among equals is that of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// What runs most now.
    #[default]
    Rate,
    /// What ran most so far.
    Executed,
    /// Names.
    Name,
}

impl Reading {
    /// Of a report by function or by line.
    pub fn new(report: &Report, at: u64) -> Self {
        let rows = report.table.rows.iter();
        let rows = rows.map(|row| executed(&report.table, row));
        Self {
            at,
            executed: executed_in_all(report),
            rows: rows.filter(|it| it.executed > 0).collect(),
        }
    }

    /// How fast it went since another moment.
    pub fn since(&self, before: Option<&Self>) -> Rates {
        let known: HashMap<(&str, &str), u64> = before
            .into_iter()
            .flat_map(|it| &it.rows)
            .map(|it| ((it.name.as_str(), it.place.as_str()), it.executed))
            .collect();
        let growth = |row: &Executed| {
            let before = known.get(&(row.name.as_str(), row.place.as_str()));
            Growth {
                grown: row.executed.saturating_sub(before.copied().unwrap_or(0)),
                row: row.clone(),
            }
        };
        Rates {
            elapsed: before.map(|before| self.at.saturating_sub(before.at)),
            executed: self.executed,
            grown: self
                .executed
                .saturating_sub(before.map_or(0, |it| it.executed)),
            rows: self.rows.iter().map(growth).collect(),
        }
    }
}

/// Instructions, and statements where source text was counted.
fn executed_in_all(report: &Report) -> u64 {
    let Totals { code, source } = &report.totals;
    let known = [code, source].map(|it| it.executed.value().unwrap_or(0));
    known.into_iter().fold(0, u64::saturating_add)
}

fn executed(table: &Table, row: &Row) -> Executed {
    let cell = |name: &str| table.column(name).map(|it| &row.cells[it]);
    let text = |name: &str| match cell(name) {
        Some(Cell::Text(text)) => text.to_string(),
        Some(Cell::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let executed = match cell("executed") {
        Some(Cell::Count(count)) => count.value().unwrap_or(0),
        Some(Cell::Number(number)) => *number,
        _ => 0,
    };
    let line = format!("{}:{}", text("file"), text("line"));
    let (name, place) = match table.unit {
        Unit::Line => (line, String::new()),
        _ if text("line") == "0" => (text("function"), base(&text("module")).to_owned()),
        _ => (text("function"), line),
    };
    Executed {
        name,
        place,
        executed,
    }
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Rates {
    /// How many a second that is, if it is known.
    pub fn per_second(&self, grown: u64) -> Option<u64> {
        let elapsed = self.elapsed.filter(|it| *it > 0)?;
        let per_second = u128::from(grown) * 1_000_000_000 / u128::from(elapsed);
        Some(u64::try_from(per_second).unwrap_or(u64::MAX))
    }

    /// Which part of all that is, in percent.
    pub fn share(&self, grown: u64) -> f64 {
        match self.grown {
            0 => 0.0,
            all => grown as f64 * 100.0 / all as f64,
        }
    }

    /// Leaves the rows whose name or place has a text in it, whatever its case.
    pub fn keep(&mut self, text: &str) {
        let text = text.to_lowercase();
        let has = |it: &str| it.to_lowercase().contains(&text);
        self.rows
            .retain(|it| has(&it.row.name) || has(&it.row.place));
    }

    /// Puts the rows in order.
    pub fn sort(&mut self, order: Order) {
        let name = |it: &Growth| (it.row.name.clone(), it.row.place.clone());
        self.rows.sort_by_cached_key(name);
        match order {
            Order::Rate => self.rows.sort_by_key(|it| std::cmp::Reverse(it.grown)),
            Order::Executed => self
                .rows
                .sort_by_key(|it| std::cmp::Reverse(it.row.executed)),
            Order::Name => {}
        }
    }

    /// One line of JSON, with so many rows.
    pub fn json(&self, at: u64, top: usize) -> String {
        let rate = |grown: u64| match self.per_second(grown) {
            Some(rate) => rate.to_string(),
            None => "null".to_owned(),
        };
        let mut out = format!(
            "{{\"at\":{at},\"executed\":{},\"per_second\":{},\"rows\":[",
            self.executed,
            rate(self.grown)
        );
        for (place, growth) in self.rows.iter().take(top).enumerate() {
            out.push_str(if place > 0 {
                ",{\"name\":"
            } else {
                "{\"name\":"
            });
            json::string(&growth.row.name, &mut out);
            out.push_str(",\"place\":");
            json::string(&growth.row.place, &mut out);
            out.push_str(&format!(
                ",\"executed\":{},\"per_second\":{}}}",
                growth.row.executed,
                rate(growth.grown)
            ));
        }
        out.push_str("]}\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: u64, rows: &[(&str, u64)]) -> Reading {
        Reading {
            at,
            executed: rows.iter().map(|it| it.1).sum(),
            rows: rows
                .iter()
                .map(|(name, executed)| Executed {
                    name: (*name).to_owned(),
                    place: "a.c:1".to_owned(),
                    executed: *executed,
                })
                .collect(),
        }
    }

    fn names(rates: &Rates) -> Vec<&str> {
        rates.rows.iter().map(|it| it.row.name.as_str()).collect()
    }

    #[test]
    fn a_rate_is_what_was_executed_between_two_moments() {
        let before = reading(1_000_000_000, &[("parse", 100), ("idle", 50)]);
        let now = reading(1_500_000_000, &[("parse", 400), ("idle", 50), ("new", 7)]);
        let mut rates = now.since(Some(&before));
        rates.sort(Order::Rate);
        assert_eq!(names(&rates), ["parse", "new", "idle"]);
        assert_eq!((rates.executed, rates.grown), (457, 307));
        assert_eq!(rates.per_second(rates.rows[0].grown), Some(600));
        assert_eq!(rates.share(rates.grown), 100.0);
    }

    #[test]
    fn one_moment_has_no_rate() {
        let mut rates = reading(5, &[("b", 3), ("a", 3)]).since(None);
        rates.sort(Order::Executed);
        assert_eq!(rates.per_second(3), None);
        assert_eq!(rates.share(3), 50.0);
        assert_eq!(names(&rates), ["a", "b"]);
        let json = "{\"at\":5,\"executed\":6,\"per_second\":null,\"rows\":[{\"name\":\"a\",\
                    \"place\":\"a.c:1\",\"executed\":3,\"per_second\":null}]}\n";
        assert_eq!(rates.json(5, 1), json);
    }

    #[test]
    fn two_readings_at_once_have_no_rate() {
        let one = reading(5, &[("a", 3)]);
        assert_eq!(one.since(Some(&one)).per_second(3), None);
    }

    #[test]
    fn rows_are_found_whatever_their_case() {
        let mut rates = reading(5, &[("Parse", 3), ("idle", 3)]).since(None);
        rates.keep("pARS");
        assert_eq!(names(&rates), ["Parse"]);
    }
}
