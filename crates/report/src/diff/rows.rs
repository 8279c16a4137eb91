//! Rows of a comparison: numbers, and what they are about. On a terminal none takes two lines.

use crate::glob::base_name;
use crate::shorten::{shorten_end, shorten_middle, shorten_start, wrap};

/// Names and texts get so much room at least.
const NARROWEST: usize = 14;

/// What a row is about.
pub enum About {
    /// A title, or a remark.
    Words(String),
    /// A function, where it is, and in which module.
    Function {
        name: String,
        place: Option<(String, u32)>,
        module: String,
    },
    /// A line, and what stands there.
    Line {
        margin: &'static str,
        place: String,
        text: Option<String>,
    },
}

impl About {
    /// All of it.
    fn whole(&self) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Function {
                name,
                place: Some((file, line)),
                module,
            } => format!("{name}  {file}:{line} ({module})"),
            Self::Function { name, module, .. } => format!("{name}  ({module})"),
            Self::Line {
                margin,
                place,
                text,
            } => {
                const MOST: usize = 60;
                let text = text.as_deref().map(|it| shorten_end(it, MOST));
                let text = text.map_or(String::new(), |it| format!("  {it}"));
                format!("{margin}{place}{text}")
            }
        }
    }

    /// As much of it as there is room for.
    fn fitted(&self, room: usize) -> String {
        let room = room.max(NARROWEST);
        let whole = self.whole();
        if length(&whole) <= room {
            return whole;
        }
        let beside = |place: &str| room.checked_sub(length(place) + "  ".len());
        match self {
            Self::Words(words) => shorten_end(words, room),
            Self::Function { name, place, .. } => {
                let place = place.as_ref();
                let place = place.map(|(file, line)| format!("{}:{line}", base_name(file)));
                let rest = place.and_then(|it| Some((beside(&it)?, it)));
                match rest.filter(|(rest, _)| *rest >= NARROWEST) {
                    Some((rest, place)) => format!("{}  {place}", shorten_middle(name, rest)),
                    None => shorten_middle(name, room),
                }
            }
            Self::Line {
                margin,
                place,
                text,
            } => {
                let room = room - margin.len();
                let place = shorten_start(place, room.div_ceil(2).max(NARROWEST).min(room));
                let rest = room.saturating_sub(length(&place) + "  ".len());
                match text.as_ref().filter(|_| rest >= NARROWEST / 2) {
                    Some(text) => format!("{margin}{place}  {}", shorten_end(text, rest)),
                    None => format!("{margin}{place}"),
                }
            }
        }
    }
}

/// Rows of some numbers each.
pub struct Rows {
    /// How wide numbers are where there is room for everything.
    widths: &'static [usize],
    rows: Vec<(Vec<String>, About)>,
}

impl Rows {
    pub fn new(widths: &'static [usize]) -> Self {
        Self {
            widths,
            rows: Vec::new(),
        }
    }

    pub fn add(&mut self, numbers: &[&str], about: About) {
        let numbers = numbers.iter().map(|it| (*it).to_owned());
        self.rows.push((numbers.collect(), about));
    }

    /// A row without numbers.
    pub fn remark(&mut self, words: String) {
        self.rows.push((Vec::new(), About::Words(words)));
    }

    /// All of them, in so many columns if that matters.
    pub fn text(&self, width: Option<usize>) -> String {
        let longest = |column: usize| {
            let numbers = self.rows.iter().filter_map(|it| it.0.get(column));
            numbers.map(|it| length(it)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = match width {
            None => self.widths.to_vec(),
            Some(_) => (0..self.widths.len()).map(longest).collect(),
        };
        let before = widths.iter().map(|it| it + "  ".len()).sum::<usize>();
        let mut out = String::new();
        for (numbers, about) in &self.rows {
            let mut row = String::new();
            for (column, width) in widths.iter().enumerate() {
                let number = numbers.get(column).map_or("", String::as_str);
                row.push_str(&format!("{number:>width$}  "));
            }
            row.push_str(&match width {
                Some(width) => about.fitted(width.saturating_sub(before)),
                None => about.whole(),
            });
            out.push_str(row.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Sentences around rows, in so many columns if that matters.
pub fn sentences(text: &str, width: Option<usize>) -> String {
    match width {
        Some(width) => wrap(text, width),
        None => text.to_owned(),
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        let mut rows = Rows::new(&[15, 9, 15, 15]);
        rows.add(
            &["change", "", "old", "new"],
            About::Words("function".into()),
        );
        let name = "(anonymous namespace)::Name::value(std::map<int, int> const&) const";
        let place = ("/home/u/project/src/evaluator.cc".to_owned(), 39);
        rows.add(
            &["+1,234,567", "+2.24%", "123,456,789", "124,691,356"],
            About::Function {
                name: name.into(),
                place: Some(place),
                module: "evaluator".into(),
            },
        );
        rows.add(
            &["+1,234,567", "", "23,456,789", "24,691,356"],
            About::Line {
                margin: "  ",
                place: "/home/u/project/src/evaluator.cc:41".into(),
                text: Some("auto found = variables.find(name);".into()),
            },
        );
        rows.remark("  and 60 more lines".into());
        rows
    }

    #[test]
    fn a_row_is_one_line_of_a_terminal() {
        for width in [60, 72, 80, 100] {
            let text = rows().text(Some(width));
            let longest = text.lines().map(length).max();
            assert!(longest <= Some(width), "{width}\n{text}");
            assert_eq!(text.lines().count(), 4);
        }
        let text = rows().text(Some(88));
        assert!(text.contains("Name::value(…) const"), "{text}");
        assert!(text.contains("evaluator.cc:41  auto"), "{text}");
    }

    #[test]
    fn elsewhere_rows_have_all_there_is() {
        let text = rows().text(None);
        assert!(
            text.contains("/src/evaluator.cc:39 (evaluator)\n"),
            "{text}"
        );
        let line = "     +1,234,567                  23,456,789       24,691,356    /home/u/";
        assert!(text.contains(line), "{text}");
    }
}
