//! The time of each line, in the margin.

use super::QUIET;
use crate::count::Count;
use crate::lines::LineCount;
use crate::number::share;
use crate::time::{Cost, Time};
use std::collections::BTreeMap;

/// What is said of the time of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineTime {
    /// The samples taken there.
    pub cost: Cost,
    /// Its share of all time.
    pub share: String,
    /// How long it took each time; empty where nobody can tell.
    pub each: String,
}

/// The time of the lines of a file that were seen.
pub fn line_times(
    time: &Time,
    file: &str,
    counts: &BTreeMap<u32, LineCount>,
) -> BTreeMap<u32, LineTime> {
    let whole = time.totals.sampled.nanoseconds;
    let line_time = |(line, cost): (u32, Cost)| {
        let count = counts.get(&line).map(|it| it.count);
        let each = match count {
            Some(Count::Exact(count)) => time.totals.each(cost, count),
            _ => None,
        };
        let shown = LineTime {
            cost,
            share: share(cost.nanoseconds, whole),
            each: each.map_or(String::new(), |it| it.to_string()),
        };
        (line, shown)
    };
    time.lines_of(file).map(line_time).collect()
}

/// The columns of a listing that tell of time.
pub struct TimeColumns<'a> {
    times: &'a BTreeMap<u32, LineTime>,
    share: usize,
    each: usize,
}

const SHARE: &str = "time";
const EACH: &str = "each";

impl<'a> TimeColumns<'a> {
    /// As wide as it takes; none, if there is nothing to tell.
    pub fn new(times: &'a BTreeMap<u32, LineTime>) -> Option<Self> {
        let widest = |title: &str, of: fn(&LineTime) -> &str| {
            let widths = times.values().map(|it| of(it).chars().count());
            widths.max().unwrap_or(0).max(title.len())
        };
        (!times.is_empty()).then(|| Self {
            times,
            share: widest(SHARE, |it| &it.share),
            each: widest(EACH, |it| &it.each),
        })
    }

    pub fn width(&self) -> usize {
        " ".len() + self.share + "  ".len() + self.each
    }

    pub fn titles(&self) -> String {
        let (share, each) = (self.share, self.each);
        format!(" {SHARE:>share$}  {EACH:>each$}")
    }

    pub fn show(&self, line: u32) -> String {
        let (share, each) = (self.share, self.each);
        match self.times.get(&line) {
            Some(it) => format!(" {:>share$}  {QUIET}{:>each$}{QUIET:#}", it.share, it.each),
            None => format!(" {:>share$}  {:>each$}", "", ""),
        }
    }
}
