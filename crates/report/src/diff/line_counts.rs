//! How often was each line begun, then and now?
//!
//! Counts of lines are exact, or bounds, or unknown, and so is what can be said of their change.

use super::alignment::Paired;
use super::repetitions::{Repetition, nearest_lines};
use super::rows::{About, Rows, sentences};
use super::shown::{head, not_shown, notes, pair, place_of, regressions, signed, text_of};
use super::{Diff, Regression};
use crate::count::Count;
use crate::glob::base_name;
use crate::json::string;
use std::collections::{BTreeMap, BTreeSet};

/// A line whose count differs, or may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountChange {
    /// Its file, on the new side if it is there.
    pub file: String,
    /// Its number on both sides, where it is there.
    pub numbers: [Option<u32>; 2],
    /// How often it was begun; none where there is no such line.
    pub counts: [Option<Count>; 2],
    /// What stands there on the new side, if that is known.
    pub text: Option<String>,
}

impl CountChange {
    /// Does it look the same on both sides, though it need not be?
    fn looks_the_same(&self) -> bool {
        self.counts[0] == self.counts[1]
    }

    /// By how much it changed at all events, for the order of lines.
    fn size(&self) -> u64 {
        let [old, new] = self.counts.map(|it| it.and_then(Count::value).unwrap_or(0));
        old.abs_diff(new)
    }

    /// `+7`; `≥ +7` and `≤ +7` if one side is a bound; `?` if nothing can be said.
    fn change(&self) -> String {
        let of = |count: Option<Count>| count.unwrap_or_default();
        let [old, new] = self.counts.map(of);
        let (Some(before), Some(now)) = (old.value(), new.value()) else {
            return "?".to_owned();
        };
        let by = signed(i128::from(now) - i128::from(before));
        match (old, new) {
            (Count::Exact(_), Count::Exact(_)) => by,
            (Count::Exact(_), _) => format!("≥ {by}"),
            (_, Count::Exact(_)) => format!("≤ {by}"),
            _ => "?".to_owned(),
        }
    }
}

/// The lines of both sides that belong together.
#[derive(Default)]
pub struct Pairs {
    /// The line on the new side, by the old one, and whether the build is the same.
    matched: BTreeMap<Place, (Place, bool)>,
    alone: [BTreeSet<Place>; 2],
}

/// A file and a line.
type Place = (String, u32);

impl Pairs {
    /// Takes the lines of one function. A line may be in several.
    pub fn add(&mut self, paired: &[Paired], same_build: bool) {
        for Paired { files, lines } in paired {
            let at = |side: usize| lines[side].map(|(number, _)| (files[side].clone(), number));
            match (at(0), at(1)) {
                (Some(old), Some(new)) => {
                    self.matched.entry(old).or_insert((new, same_build));
                }
                (old, new) => {
                    self.alone[0].extend(old);
                    self.alone[1].extend(new);
                }
            }
        }
    }

    /// The lines that differ, or may, in what each run of both sides says of them.
    pub fn changes(self, runs: [&[Repetition]; 2]) -> Vec<CountChange> {
        let mut changes = Vec::new();
        for ([old, new], same_build) in self.all() {
            let lines = nearest_lines(runs, [old.as_ref(), new.as_ref()]);
            let change = CountChange {
                file: new
                    .as_ref()
                    .or(old.as_ref())
                    .map_or(String::new(), |it| it.0.clone()),
                numbers: [&old, &new].map(|it| it.as_ref().map(|it| it.1)),
                counts: lines.map(|it| it.map(|it| it.count)),
                text: None,
            };
            let exact = change
                .counts
                .iter()
                .all(|it| matches!(it, None | Some(Count::Exact(_))));
            // What the same code did equally often, was begun equally often.
            let [before, now] = lines.map(|it| it.map(|it| it.executed));
            let is_same = change.looks_the_same() && (exact || same_build && before == now);
            if !is_same
                && change
                    .counts
                    .iter()
                    .any(|it| it.is_some_and(|it| !it.is_never()))
            {
                changes.push(change);
            }
        }
        changes.sort_by_cached_key(|it| {
            let size = std::cmp::Reverse(it.size());
            (it.looks_the_same(), size, it.file.clone(), it.numbers)
        });
        changes
    }

    /// Each line once. Code that moved from one function to another is in both, and alone in each.
    fn all(self) -> Vec<([Option<Place>; 2], bool)> {
        let Pairs { matched, alone } = self;
        let known: BTreeSet<Place> = matched.values().map(|(new, _)| new.clone()).collect();
        let [mut old, mut new] = alone;
        old.retain(|it| !matched.contains_key(it));
        new.retain(|it| !known.contains(it));
        let mut all = Vec::new();
        for place in old {
            let is_it = |it: &&Place| it.1 == place.1 && base_name(&it.0) == base_name(&place.0);
            let twin = new.iter().find(is_it).cloned();
            twin.iter().for_each(|it| _ = new.remove(it));
            all.push(([Some(place), twin], false));
        }
        all.extend(new.into_iter().map(|it| ([None, Some(it)], false)));
        let matched = matched.into_iter();
        all.extend(matched.map(|(old, (new, same_build))| ([Some(old), Some(new)], same_build)));
        all
    }
}

/// The lines to show to people, who do not care for what looks the same: they come first.
pub fn shown(lines: &[CountChange]) -> usize {
    lines.iter().take_while(|it| !it.looks_the_same()).count()
}

/// For people: a row a line; in so many columns, if that matters.
pub fn text(diff: &Diff, over: &[Regression], top: usize, width: Option<usize>) -> String {
    const WIDTHS: [usize; 3] = [15, 15, 15];
    let mut out = sentences(&head(diff), width);
    let shown = &diff.lines[..shown(&diff.lines)];
    let mut rest = String::new();
    if shown.is_empty() {
        rest.push_str("\nNo line differs.\n");
    } else {
        let mut rows = Rows::new(&WIDTHS);
        rows.add(&["change", "old", "new"], About::Words("line".to_owned()));
        for line in shown.iter().take(top) {
            let [old, new] = line.counts.map(|it| match it {
                Some(Count::Unknown) => "?".to_owned(),
                Some(count) => count.to_string(),
                None => "-".to_owned(),
            });
            let about = About::Line {
                margin: "",
                place: place_of(&line.file, line.numbers),
                text: text_of(line.text.as_deref()),
            };
            rows.add(&[&line.change(), &old, &new], about);
        }
        out.push_str(&rows.text(width));
        if shown.len() > top {
            rest.push_str(&not_shown(shown.len() - top, "line"));
        }
    }
    regressions(&mut rest, diff, over);
    notes(&mut rest, diff);
    out.push_str(&sentences(&rest, width));
    out
}

/// For programs: a row a line. The change is there if it is exact.
pub fn csv(diff: &Diff) -> String {
    let mut out = "file,old_line,new_line,old,new,change,old_exactness,new_exactness\n".to_owned();
    let text = |it: Option<u64>| it.map(|it| it.to_string()).unwrap_or_default();
    for line in &diff.lines {
        crate::csv::field(&line.file, &mut out);
        let [old_line, new_line] = line.numbers.map(|it| text(it.map(u64::from)));
        let [old, new] = line.counts.map(|it| text(it.and_then(Count::value)));
        let change = match line.counts.map(Option::unwrap_or_default) {
            [Count::Exact(old), Count::Exact(new)] => {
                (i128::from(new) - i128::from(old)).to_string()
            }
            _ => String::new(),
        };
        let [a, b] = line.counts.map(|it| it.map_or("", Count::exactness));
        out.push_str(&format!(
            ",{old_line},{new_line},{old},{new},{change},{a},{b}\n"
        ));
    }
    out
}

/// For programs: everything about lines.
pub fn json(diff: &Diff, over: &[Regression]) -> String {
    let executed = pair(diff.executed.map(Some));
    let mut out = format!("{{\"version\":1,\"executed\":{executed}");
    crate::json::list(&mut out, "lines", &diff.lines, |line, out| {
        out.push_str("{\"file\":");
        string(&line.file, out);
        let numbers = pair(line.numbers.map(|it| it.map(u64::from)));
        let counts = pair(line.counts.map(|it| it.and_then(Count::value)));
        let word = |it: Option<Count>| match it {
            Some(count) => format!("\"{}\"", count.exactness()),
            None => "null".to_owned(),
        };
        let [old, new] = line.counts.map(word);
        out.push_str(&format!(
            ",\"line\":{numbers},\"count\":{counts},\"exactness\":{{\"old\":{old},\"new\":{new}}}}}"
        ));
    });
    super::shown::json_rest(&mut out, diff, over);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use Count::{AtLeast, Exact, Unknown};

    fn change(old: Count, new: Count) -> CountChange {
        CountChange {
            file: "a.c".into(),
            numbers: [Some(3), Some(4)],
            counts: [Some(old), Some(new)],
            text: None,
        }
    }

    #[test]
    fn a_change_is_worth_what_its_sides_are() {
        let shown = |old, new| change(old, new).change();
        assert_eq!(shown(Exact(5), Exact(12)), "+7");
        assert_eq!(shown(Exact(5), AtLeast(12)), "≥ +7");
        assert_eq!(shown(AtLeast(5), Exact(12)), "≤ +7");
        assert_eq!(shown(AtLeast(5), AtLeast(12)), "?");
        assert_eq!(shown(Exact(5), Unknown), "?");
    }

    #[test]
    fn tables_say_what_each_side_is_worth() {
        let diff = Diff {
            lines: vec![change(Exact(5), AtLeast(12)), change(Exact(5), Exact(6))],
            ..Diff::default()
        };
        let expected = "file,old_line,new_line,old,new,change,old_exactness,new_exactness\n\
                        a.c,3,4,5,12,,exact,at_least\na.c,3,4,5,6,1,exact,exact\n";
        assert_eq!(csv(&diff), expected);
        let json = json(&diff, &[]);
        let part = "\"count\":{\"old\":5,\"new\":12},\"exactness\":{\"old\":\"exact\",\"new\":\"at_least\"}";
        assert!(json.contains(part), "{json}");
        let text = text(&diff, &[], 10, None);
        assert!(
            text.contains("≥ +7                5             ≥ 12  a.c:4 (was 3)\n"),
            "{text}"
        );
    }

    #[test]
    fn a_line_that_moved_to_another_function_is_one_line() {
        let paired = |old: Option<u32>, new: Option<u32>| Paired {
            files: ["a.c".into(), "a.c".into()],
            lines: [old.map(|it| (it, 1)), new.map(|it| (it, 1))],
        };
        let mut pairs = Pairs::default();
        pairs.add(&[paired(Some(5), None), paired(Some(6), Some(7))], false);
        pairs.add(
            &[
                paired(None, Some(5)),
                paired(None, Some(7)),
                paired(None, Some(9)),
            ],
            false,
        );
        let numbers = |places: &[Option<Place>; 2]| {
            [&places[0], &places[1]].map(|it| it.as_ref().map(|it| it.1))
        };
        let all: Vec<_> = pairs
            .all()
            .iter()
            .map(|(places, _)| numbers(places))
            .collect();
        assert_eq!(
            all,
            [[Some(5), Some(5)], [None, Some(9)], [Some(6), Some(7)]]
        );
    }
}
