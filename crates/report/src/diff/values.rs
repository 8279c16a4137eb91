//! How often was each value found, then and now?
//!
//! Values are matched by their words, and places by what the user called them; where calls went is
//! matched by the function and the line that they came from.

use super::rows::{About, Rows, sentences};
use super::shown::{WIDTHS, head, not_shown, notes, pair, percent, regressions, signed};
use super::{Diff, Regression};
use crate::glob::base_name;
use crate::json::string;
use crate::number::{plural, signed_thousands};
use crate::values::{Tallied, TalliedPlace, TalliedValue};
use crate::{csv::field, thousands, visible};
use std::collections::BTreeMap;

/// What differs among the values of both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The values whose counts or sums differ: by what was asked for, the largest change first.
    pub changes: Vec<ValueChange>,
    /// How many values are the same.
    pub unchanged: usize,
    /// What makes the comparison doubtful, in sentences.
    pub notes: Vec<String>,
}

/// A value that was found more or less often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueChange {
    /// What was asked for, as reports call it.
    pub tally: String,
    /// Is the value where an indirect call or jump went?
    pub is_targets: bool,
    /// What was found, where, and who called.
    pub found: Found,
    /// How often.
    pub counts: [u64; 2],
    /// The sums of the amounts, if any are added up.
    pub sums: Option<[i64; 2]>,
}

/// What values are matched by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The module, without its folder.
    pub module: String,
    /// The function.
    pub function: String,
    /// The place, in words.
    pub place: String,
    /// The value, in words.
    pub value: String,
    /// Who called; empty if callers are not told apart.
    pub caller: String,
}

impl ValueChange {
    fn difference(&self) -> i128 {
        i128::from(self.counts[1]) - i128::from(self.counts[0])
    }

    /// The value, and what else tells it from others.
    fn words(&self) -> String {
        let Found {
            place,
            value,
            caller,
            ..
        } = &self.found;
        let mut words = match (value.as_str(), caller.as_str()) {
            ("", "") => "(all)".to_owned(),
            ("", caller) => caller.to_owned(),
            (value, "") if self.is_targets => format!("{place} to {value}"),
            (value, "") => value.to_owned(),
            (value, caller) => format!("{value} by {caller}"),
        };
        if let Some([old, new]) = self.sums {
            let (old, new) = (signed_thousands(old), signed_thousands(new));
            words.push_str(&format!("  (sum {old}, now {new})"));
        }
        visible(&words).into_owned()
    }
}

/// Counts and sums on both sides.
type Sides = BTreeMap<Found, ([u64; 2], [i64; 2])>;

impl Values {
    /// Compares what was asked for on both sides.
    pub fn new(old: &Tallied, new: &Tallied) -> Self {
        let mut all = Self::default();
        for tally in &old.tallies {
            match new.tallies.iter().find(|it| is_same(it, tally)) {
                Some(now) => all.add([tally, now]),
                None => all.notes.push(not_compared(tally, "old")),
            }
        }
        for tally in &new.tallies {
            if !old.tallies.iter().any(|it| is_same(it, tally)) {
                all.notes.push(not_compared(tally, "new"));
            }
        }
        let notes = [old, new]
            .into_iter()
            .flat_map(|it| it.doubts.iter().chain(&it.notes));
        all.notes.extend(notes.cloned());
        all
    }

    fn add(&mut self, tallies: [&TalliedPlace; 2]) {
        let mut sides = Sides::new();
        for (side, tally) in tallies.iter().enumerate() {
            for value in &tally.values {
                let (counts, sums) = sides.entry(found(tally, value)).or_default();
                counts[side] = counts[side].saturating_add(value.count);
                sums[side] = sums[side].wrapping_add(value.sum);
            }
        }
        let has_amount = tallies[0].has_amount;
        let changes = sides
            .into_iter()
            .map(|(found, (counts, sums))| ValueChange {
                tally: tallies[0].name(),
                is_targets: tallies[0].is_targets,
                found,
                counts,
                sums: has_amount.then_some(sums),
            });
        let differs = |it: &ValueChange| {
            it.counts[0] != it.counts[1] || it.sums.is_some_and(|[old, new]| old != new)
        };
        let (mut changes, same): (Vec<_>, Vec<_>) = changes.partition(differs);
        changes.sort_by_key(|it| std::cmp::Reverse(it.difference().unsigned_abs()));
        self.changes.extend(changes);
        self.unchanged += same.len();
    }
}

fn is_same(one: &TalliedPlace, other: &TalliedPlace) -> bool {
    one.name() == other.name() && one.has_amount == other.has_amount
}

fn not_compared(tally: &TalliedPlace, side: &str) -> String {
    let name = tally.name();
    format!("{name}: counted by value only on the {side} side, and not compared.")
}

/// Two builds have the same function at other addresses, and the same library in other folders.
fn found(tally: &TalliedPlace, it: &TalliedValue) -> Found {
    Found {
        module: base_name(&it.module).to_owned(),
        function: it.function.to_string(),
        place: match tally.is_targets {
            true => it.place.clone(),
            false => tally.place.clone(),
        },
        value: it.value.clone(),
        caller: it.caller.clone(),
    }
}

/// For people: the values that differ most, by what was asked for.
pub fn text(
    diff: &Diff,
    values: &Values,
    over: &[Regression],
    top: usize,
    width: Option<usize>,
) -> String {
    let mut out = sentences(&head(diff), width);
    let tallies = values
        .changes
        .chunk_by(|one, other| one.tally == other.tally);
    for (place, changes) in tallies.enumerate() {
        if place > 0 {
            out.push('\n');
        }
        let mut rows = Rows::new(&WIDTHS);
        let title = visible(&changes[0].tally).into_owned();
        rows.add(&["change", "", "old", "new"], About::Words(title));
        for it in changes.iter().take(top) {
            let [old, new] = it.counts.map(thousands);
            let (by, share) = (signed(it.difference()), percent(it.counts));
            rows.add(&[&by, &share, &old, &new], About::Words(it.words()));
        }
        out.push_str(&rows.text(width));
        if changes.len() > top {
            out.push_str(&not_shown(changes.len() - top, "value"));
        }
    }
    let mut rest = String::new();
    if values.changes.is_empty() {
        rest.push_str("\nNo value was found more or less often.\n");
    }
    let same = plural(values.unchanged as u64, "value");
    rest.push_str(&format!("\nThe same on both sides: {same}.\n"));
    regressions(&mut rest, diff, over);
    notes(&mut rest, diff);
    out.push_str(&sentences(&rest, width));
    out
}

/// For programs: a row a value that differs.
pub fn csv(values: &Values) -> String {
    let mut out =
        "tally,module,function,place,value,caller,old,new,change,old_sum,new_sum\n".to_owned();
    for it in &values.changes {
        for text in [&it.tally].into_iter().chain(it.found.texts()) {
            field(text, &mut out);
            out.push(',');
        }
        let [old, new] = it.counts;
        let by = it.difference();
        let sums = it.sums.map(|[old, new]| format!("{old},{new}"));
        let sums = sums.unwrap_or_else(|| ",".to_owned());
        out.push_str(&format!("{old},{new},{by},{sums}\n"));
    }
    out
}

impl Found {
    fn texts(&self) -> [&String; 5] {
        [
            &self.module,
            &self.function,
            &self.place,
            &self.value,
            &self.caller,
        ]
    }
}

/// For programs: everything about values.
pub fn json(diff: &Diff, values: &Values, over: &[Regression]) -> String {
    let executed = pair(diff.executed.map(Some));
    let unchanged = values.unchanged;
    let mut out = format!("{{\"version\":1,\"executed\":{executed},\"unchanged\":{unchanged}");
    crate::json::list(&mut out, "values", &values.changes, |it, out| {
        out.push_str("{\"tally\":");
        string(&it.tally, out);
        let names = ["module", "function", "place", "value", "caller"];
        for (name, text) in names.into_iter().zip(it.found.texts()) {
            out.push_str(&format!(",\"{name}\":"));
            string(text, out);
        }
        out.push_str(&format!(",\"count\":{}", pair(it.counts.map(Some))));
        if let Some([old, new]) = it.sums {
            out.push_str(&format!(",\"sum\":{{\"old\":{old},\"new\":{new}}}"));
        }
        out.push('}');
    });
    super::shown::json_rest(&mut out, diff, over);
    out
}
