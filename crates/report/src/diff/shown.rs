//! A comparison for people and for programs.

use super::rows::{About, Rows, sentences};
use super::{Change, Diff, LineChange, Range, Regression, Scope, Subject, variation};
use crate::glob::base_name;
use crate::json::string;
use crate::number::plural;
use crate::own::OwnModules;
use crate::{thousands, visible};

/// Lines shown of each function.
pub const MOST_LINES: usize = 5;

/// How wide numbers are where there is room: the change, its share, both sides.
pub const WIDTHS: [usize; 4] = [15, 9, 15, 15];

/// For people: the totals, then the functions that differ most with their lines; in so many columns, if
/// that matters.
pub fn text(diff: &Diff, over: &[Regression], top: usize, width: Option<usize>) -> String {
    let mut out = sentences(&head(diff), width);
    let mut rest = String::new();
    if diff.is_empty() {
        rest.push_str("\nNo difference.\n");
    } else if diff.changes.is_empty() {
        rest.push_str("No single function differs by more than its runs vary.\n");
    } else {
        out.push_str(&table(diff, top).text(width));
        if diff.changes.len() > top {
            rest.push_str(&not_shown(diff.changes.len() - top, "function"));
        }
        let same = crate::plural(diff.unchanged as u64, "function");
        rest.push_str(&format!("\nThe same on both sides: {same}.\n"));
    }
    if diff.varying > 0 {
        let varying = crate::plural(diff.varying as u64, "function");
        rest.push_str(&format!("Within the variation of the runs: {varying}.\n"));
    }
    regressions(&mut rest, diff, over);
    notes(&mut rest, diff);
    out.push_str(&sentences(&rest, width));
    out
}

/// What was compared, and the totals.
pub fn head(diff: &Diff) -> String {
    let mut out = String::new();
    for (side, name) in ["old", "new"].into_iter().enumerate() {
        let command = visible(&diff.commands[side]);
        let executed = executed(diff, side);
        out.push_str(&format!(
            "{name}: {command}: {executed} instructions executed\n"
        ));
    }
    if !diff.is_empty() {
        let (by, share) = (signed(diff.difference()), percent(diff.executed));
        out.push_str(&format!("change: {by} ({share})\n\n"));
    }
    out
}

/// What a side executed; of several runs, the least and the most.
pub fn executed(diff: &Diff, side: usize) -> String {
    match diff.ranges {
        Some(ranges) if ranges[side].least < ranges[side].most => {
            let Range { least, most } = ranges[side];
            format!("{} to {}", thousands(least), thousands(most))
        }
        Some(ranges) => thousands(ranges[side].least),
        None => thousands(diff.executed[side]),
    }
}

pub fn regressions(out: &mut String, diff: &Diff, over: &[Regression]) {
    for regression in over {
        out.push_str(&format!(
            "\nOver the limit: {}\n",
            sentence(diff, regression)
        ));
    }
}

pub fn notes(out: &mut String, diff: &Diff) {
    if !diff.notes.is_empty() {
        out.push_str("\nNotes:\n");
        for note in &diff.notes {
            out.push_str(&format!("  {}\n", visible(note)));
        }
    }
}

fn table(diff: &Diff, top: usize) -> Rows {
    let mut rows = Rows::new(&WIDTHS);
    let modules = OwnModules::of(diff.changes.iter().map(|it| it.module.as_str()));
    let title = |it: &str| About::Words(it.to_owned());
    rows.add(&["change", "", "old", "new"], title("function"));
    for change in diff.changes.iter().take(top) {
        let [old, new] = change.executed.map(number);
        let share = match change.executed {
            [Some(old), Some(new)] => percent([old, new]),
            [None, _] => "new".to_owned(),
            [_, None] => "gone".to_owned(),
        };
        let by = signed(change.difference());
        rows.add(&[&by, &share, &old, &new], named(change));
        if let Some(cause) = variation::cause(&change.module, &change.function) {
            rows.remark(format!("  ({cause})"));
        }
        // Nobody changes lines of the system's libraries.
        if !modules.has(&change.module) {
            continue;
        }
        for line in change.lines.iter().take(MOST_LINES) {
            let by = signed(line.difference());
            let [old, new] = line.executed.map(thousands);
            let about = About::Line {
                margin: "  ",
                place: place(line),
                text: text_of(line.text.as_deref()),
            };
            rows.add(&[&by, "", &old, &new], about);
        }
        if change.lines.len() > MOST_LINES {
            let more = plural((change.lines.len() - MOST_LINES) as u64, "more line");
            rows.remark(format!("  and {more}"));
        }
    }
    rows
}

fn number(count: Option<u64>) -> String {
    count.map_or("-".to_owned(), thousands)
}

/// The function, its module, and where it is.
fn named(change: &Change) -> About {
    let place = change.source.as_ref();
    About::Function {
        name: visible(&change.function).into_owned(),
        place: place.map(|(file, line)| (visible(file).into_owned(), *line)),
        module: visible(base_name(&change.module)).into_owned(),
    }
}

/// What stands on a line.
pub fn text_of(line: Option<&str>) -> Option<String> {
    line.map(|it| visible(it).into_owned())
}

/// The line, under both numbers where it moved.
pub fn place(line: &LineChange) -> String {
    place_of(&line.file, line.numbers)
}

pub fn place_of(file: &str, numbers: [Option<u32>; 2]) -> String {
    let file = visible(file);
    match numbers {
        [Some(old), Some(new)] if old != new => format!("{file}:{new} (was {old})"),
        [_, Some(new)] => format!("{file}:{new}"),
        [Some(old), None] => format!("{file}:{old} (gone)"),
        [None, None] => file.into_owned(),
    }
}

/// What is over which limit.
pub fn sentence(diff: &Diff, regression: &Regression) -> String {
    let [old, new] = regression.amounts;
    let function = |it: usize| {
        diff.changes
            .get(it)
            .map(|it| visible(&it.function).into_owned())
    };
    let line = |it: usize| {
        let line = diff.lines.get(it)?;
        Some((place_of(&line.file, line.numbers), line.counts[1]))
    };
    let share = percent([old, new]);
    let limit = regression.limit;
    let what = match regression.subject {
        Subject::Total => None,
        Subject::Function(it) => function(it),
        Subject::Line(it) => {
            let (place, count) = line(it).unwrap_or_default();
            let now = count.map_or(thousands(new), |it| it.to_string());
            let old = thousands(old);
            return format!(
                "{place}: begun {now} times instead of {old} ({share}); the limit is {limit}"
            );
        }
    };
    format!(
        "{}: {} instead of {} instructions executed ({share}); the limit is {limit}",
        what.unwrap_or_else(|| "the total".to_owned()),
        thousands(new),
        thousands(old),
    )
}

/// `+1,234`.
pub fn signed(number: i128) -> String {
    let size = u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX);
    let sign = match number {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", thousands(size))
}

/// `+1.23%`, computed in whole numbers.
pub fn percent([old, new]: [u64; 2]) -> String {
    if old == new {
        return "0.00%".to_owned();
    }
    if old == 0 {
        return "new".to_owned();
    }
    let (sign, size) = match new > old {
        true => ('+', new - old),
        false => ('-', old - new),
    };
    let hundredths = (u128::from(size) * 10_000 + u128::from(old) / 2) / u128::from(old);
    format!("{sign}{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// For programs: a row a function.
pub fn csv(diff: &Diff) -> String {
    let mut out = "module,function,old,new,change,old_calls,new_calls\n".to_owned();
    for change in &diff.changes {
        for text in [&change.module, &change.function] {
            crate::csv::field(text, &mut out);
            out.push(',');
        }
        let plain = |it: Option<u64>| it.map(|it| it.to_string()).unwrap_or_default();
        let [old, new] = change.executed.map(plain);
        let [old_calls, new_calls] = change.calls.map(plain);
        let by = change.difference();
        out.push_str(&format!("{old},{new},{by},{old_calls},{new_calls}\n"));
    }
    out
}

/// For programs: everything.
pub fn json(diff: &Diff, regressions: &[Regression]) -> String {
    let mut out = format!(
        "{{\"version\":1,\"executed\":{}",
        pair(diff.executed.map(Some))
    );
    out.push_str(&ranges(diff.ranges));
    let Diff {
        unchanged, varying, ..
    } = diff;
    out.push_str(&format!(",\"unchanged\":{unchanged},\"varying\":{varying}"));
    crate::json::list(&mut out, "functions", &diff.changes, function);
    json_rest(&mut out, diff, regressions);
    out
}

/// What is over limits, the notes, and the end.
pub fn json_rest(out: &mut String, diff: &Diff, regressions: &[Regression]) {
    crate::json::list(out, "regressions", regressions, |it, out| {
        regression(diff, it, out);
    });
    crate::json::list(out, "notes", &diff.notes, |it, out| string(it, out));
    out.push_str("\n}\n");
}

/// The least and the most of several runs, if there are any.
fn ranges(of_sides: Option<[Range; 2]>) -> String {
    let Some([old, new]) = of_sides else {
        return String::new();
    };
    let list = |it: Range| format!("[{},{}]", it.least, it.most);
    format!(
        ",\"ranges\":{{\"old\":{},\"new\":{}}}",
        list(old),
        list(new)
    )
}

fn function(change: &Change, out: &mut String) {
    out.push_str("{\"module\":");
    string(&change.module, out);
    out.push_str(",\"function\":");
    string(&change.function, out);
    if let Some((file, line)) = &change.source {
        out.push_str(",\"file\":");
        string(file, out);
        out.push_str(&format!(",\"line\":{line}"));
    }
    let (executed, calls) = (pair(change.executed), pair(change.calls));
    out.push_str(&format!(",\"executed\":{executed},\"calls\":{calls}"));
    out.push_str(&ranges(change.ranges));
    if let Some(cause) = variation::cause(&change.module, &change.function) {
        out.push_str(",\"may_vary\":");
        string(cause, out);
    }
    out.push_str(",\"lines\":[");
    for (place, line) in change.lines.iter().enumerate() {
        out.push_str(if place > 0 {
            ",{\"file\":"
        } else {
            "{\"file\":"
        });
        string(&line.file, out);
        let lines = pair(line.numbers.map(|it| it.map(u64::from)));
        let executed = pair(line.executed.map(Some));
        out.push_str(&format!(",\"line\":{lines},\"executed\":{executed}}}"));
    }
    out.push_str("]}");
}

fn regression(diff: &Diff, it: &Regression, out: &mut String) {
    let scope = match it.limit.scope {
        Scope::Total => "total",
        Scope::Function => "function",
        Scope::Line => "line",
    };
    out.push_str(&format!(
        "{{\"scope\":\"{scope}\",\"limit\":\"{}\"",
        it.limit
    ));
    let amounts = pair(it.amounts.map(Some));
    match it.subject {
        Subject::Total => {}
        Subject::Function(place) => {
            if let Some(change) = diff.changes.get(place) {
                out.push_str(",\"function\":");
                string(&change.function, out);
            }
        }
        Subject::Line(place) => {
            if let Some(line) = diff.lines.get(place) {
                out.push_str(",\"file\":");
                string(&line.file, out);
                let numbers = pair(line.numbers.map(|it| it.map(u64::from)));
                out.push_str(&format!(",\"line\":{numbers}"));
            }
            out.push_str(&format!(",\"count\":{amounts}}}"));
            return;
        }
    }
    out.push_str(&format!(",\"executed\":{amounts}}}"));
}

/// What was and what is; `null` for what is not there.
pub fn pair(sides: [Option<u64>; 2]) -> String {
    let [old, new] = sides.map(|it| it.map_or("null".to_owned(), |it| it.to_string()));
    format!("{{\"old\":{old},\"new\":{new}}}")
}

/// How much is left out that differs, in a line.
pub fn not_shown(more: usize, what: &str) -> String {
    let (differs, is) = match more {
        1 => ("differs", "is"),
        _ => ("differ", "are"),
    };
    let more = plural(more as u64, &format!("more {what}"));
    format!("  ({more} that {differs} {is} not shown)\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        let one = "  (1 more line that differs is not shown)\n";
        assert_eq!(not_shown(1, "line"), one);
        let several = "  (1,200 more lines that differ are not shown)\n";
        assert_eq!(not_shown(1200, "line"), several);
    }

    #[test]
    fn changes_have_signs() {
        assert_eq!(signed(1234), "+1,234");
        assert_eq!(signed(-7), "-7");
        assert_eq!(signed(0), "0");
        assert_eq!(percent([1000, 1010]), "+1.00%");
        assert_eq!(percent([3, 2]), "-33.33%");
        assert_eq!(percent([0, 5]), "new");
        assert_eq!(percent([u64::MAX, 0]), "-100.00%");
    }
}
