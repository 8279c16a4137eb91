//! A comparison for the pages of a continuous integration.

use super::shown::{executed, percent, place, sentence, signed};
use super::{Change, Diff, Regression, Subject};
use crate::{thousands, visible};

/// As a table in Markdown, as short as a summary must be.
pub fn markdown(diff: &Diff, regressions: &[Regression], top: usize) -> String {
    let mut out = String::from("### headcount\n\n");
    for regression in regressions {
        out.push_str(&format!(
            "**Over the limit:** {}\n\n",
            escaped(&sentence(diff, regression))
        ));
    }
    out.push_str(&format!(
        "{} instructions executed, before {}: {} ({})\n",
        executed(diff, 1),
        executed(diff, 0),
        signed(diff.difference()),
        percent(diff.executed)
    ));
    if diff.changes.is_empty() {
        out.push_str("\nNo function differs.\n");
        return out;
    }
    out.push_str("\n| change | | old | new | function | most changed line |\n");
    out.push_str("| ---: | ---: | ---: | ---: | --- | --- |\n");
    for change in diff.changes.iter().take(top) {
        let [old, new] = change
            .executed
            .map(|it| it.map_or("-".to_owned(), thousands));
        let share = match change.executed {
            [Some(old), Some(new)] => percent([old, new]),
            [None, _] => "new".to_owned(),
            [_, None] => "gone".to_owned(),
        };
        let line = change.lines.first().map(place).unwrap_or_default();
        out.push_str(&format!(
            "| {} | {share} | {old} | {new} | {} | {} |\n",
            signed(change.difference()),
            escaped(&change.function),
            escaped(&line)
        ));
    }
    if diff.changes.len() > top {
        let more = thousands((diff.changes.len() - top) as u64);
        out.push_str(&format!("\n{more} more functions differ.\n"));
    }
    for note in &diff.notes {
        out.push_str(&format!("\n{}\n", escaped(note)));
    }
    out
}

/// Text that is neither Markdown nor HTML.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ if c.is_ascii_punctuation() && !".,:;()/%+-".contains(c) => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// GitHub shows ten annotations of a step.
const MOST_ANNOTATIONS: usize = 10;

/// What is over a limit, as commands that GitHub's runners read: a mark beside the line that changed
/// most.
pub fn annotations(diff: &Diff, regressions: &[Regression]) -> Vec<String> {
    let annotation = |regression: &Regression| {
        let place = match regression.subject {
            Subject::Total => diff.changes.first().and_then(most_changed),
            Subject::Function(it) => diff.changes.get(it).and_then(most_changed),
            Subject::Line(it) => diff.lines.get(it).and_then(|it| {
                let number = it.numbers[1]?;
                Some((it.file.as_str(), number))
            }),
        };
        let place = place.map_or(String::new(), |(file, line)| {
            format!("file={},line={line},", property(file))
        });
        let message = data(&sentence(diff, regression));
        format!("::error {place}title=headcount::{message}")
    };
    let all = regressions.iter().map(annotation);
    all.take(MOST_ANNOTATIONS).collect()
}

/// The line of a function that changed most and is there, or where the function begins.
fn most_changed(change: &Change) -> Option<(&str, u32)> {
    let mut lines = change.lines.iter();
    let line = lines.find_map(|it| Some((it.file.as_str(), it.numbers[1]?)));
    let source = change.source.as_ref();
    line.or(source.map(|(file, line)| (file.as_str(), *line)))
}

fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D");
    text.replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Limit, LineChange};

    fn diff() -> Diff {
        let change = Change {
            module: "/bin/it".into(),
            function: "std::vector<int>::f(a|b)".into(),
            source: Some(("src/a,b.cc".into(), 7)),
            executed: [Some(1000), Some(1500)],
            ranges: None,
            calls: [Some(1), Some(1)],
            lines: vec![LineChange {
                file: "src/a,b.cc".into(),
                numbers: [Some(9), Some(10)],
                executed: [100, 600],
                text: None,
            }],
        };
        Diff {
            executed: [2000, 2500],
            changes: vec![change],
            ..Diff::default()
        }
    }

    #[test]
    fn names_do_not_break_the_table() {
        let text = markdown(&diff(), &[], 10);
        let row = "| +500 | +50.00% | 1,000 | 1,500 | std::vector&lt;int&gt;::f(a\\|b) | \
                   src/a,b.cc:10 (was 9) |\n";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn annotations_stand_beside_the_line_that_changed() {
        let diff = diff();
        let limits = [Limit::parse("function=10%").unwrap()];
        let annotations = annotations(&diff, &diff.regressions(&limits));
        let expected = "::error file=src/a%2Cb.cc,line=10,title=headcount::\
                        std::vector<int>::f(a|b): 1,500 instead of 1,000 instructions executed \
                        (+50.00%25); the limit is 10%25";
        assert_eq!(annotations, [expected]);
    }
}
