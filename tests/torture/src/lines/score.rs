//! How were lines shown, and is that good enough?

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use headcount_ground::program::{Language, Program};

use super::Build;
use crate::gcov::ByLine;
use crate::headcount::{self, Shown};

/// What judges say.
pub struct Truth {
    pub lines: ByLine,
    /// How many lines they differ on.
    pub disputed: usize,
}

impl Truth {
    pub fn alone(lines: ByLine) -> Self {
        Truth { lines, disputed: 0 }
    }

    /// The lines that both say the same of, in the files that both tell of.
    pub fn agreed(mut one: ByLine, other: &ByLine) -> Self {
        let files: BTreeSet<&PathBuf> = other.keys().map(|(file, _)| file).collect();
        one.retain(|(file, _), _| files.contains(file));
        let all = one.len();
        one.retain(|at, count| other.get(at) == Some(count));
        Truth {
            disputed: all - one.len(),
            lines: one,
        }
    }
}

/// How lines were shown. All but the last four are numbers of lines that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    pub exact: usize,
    pub low: usize,
    pub high: usize,
    pub zero: usize,
    pub bound: usize,
    pub false_bound: usize,
    pub unknown: usize,
    pub blank: usize,
    /// Of lines that never ran: shown so, shown with a count, left open.
    pub never: usize,
    pub phantom: usize,
    pub open: usize,
    pub disputed: usize,
    /// What was wrong, for people who want to know why.
    pub wrong: Vec<String>,
}

pub fn score(program: &Program, truth: &Truth, shown: &Shown) -> Score {
    let mut score = Score {
        disputed: truth.disputed,
        ..Score::default()
    };
    for ((file, line), true_count) in &truth.lines {
        let said = shown.get(&(file.clone(), *line));
        let place = match (true_count, said) {
            (0, Some((Some(0), headcount::Exactness::Exact))) => &mut score.never,
            (0, Some((Some(_), headcount::Exactness::Exact))) => &mut score.phantom,
            (0, Some((Some(1..), headcount::Exactness::AtLeast))) => &mut score.phantom,
            (0, _) => &mut score.open,
            (_, None) => &mut score.blank,
            (_, Some((None, _) | (_, headcount::Exactness::Unknown))) => &mut score.unknown,
            (it, Some((Some(count), headcount::Exactness::AtLeast))) => match count <= it {
                true => &mut score.bound,
                false => &mut score.false_bound,
            },
            (_, Some((Some(0), _))) => &mut score.zero,
            (it, Some((Some(count), _))) if count == it => &mut score.exact,
            (it, Some((Some(count), _))) if count < it => &mut score.low,
            _ => &mut score.high,
        };
        *place += 1;
        let kind = score.kind_of_last(said, *true_count);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if let Some(kind) = kind {
            let count = said.and_then(|(count, _)| *count);
            let count = count.map_or("-".to_owned(), |it| it.to_string());
            score.wrong.push(format!(
                "{kind:11} {} {name}:{line} is {true_count}, shown {count}",
                program.name
            ));
        }
    }
    score
}

impl Score {
    /// What kind of mistake it is, if it is one.
    fn kind_of_last(
        &self,
        said: Option<&(Option<u64>, headcount::Exactness)>,
        is: u64,
    ) -> Option<&'static str> {
        use headcount::Exactness::{AtLeast, Exact, Unknown};
        match said {
            None if is > 0 => Some("blank"),
            Some((_, Unknown) | (None, _)) if is > 0 => Some("unknown"),
            Some((Some(0), Exact)) if is > 0 => Some("zero"),
            Some((Some(count), Exact)) if *count < is => Some("low"),
            Some((Some(_), Exact)) if is == 0 => {
                said.filter(|it| it.0 != Some(0)).map(|_| "phantom")
            }
            Some((Some(count), Exact)) if *count > is => Some("high"),
            Some((Some(count), AtLeast)) if *count > is => Some("false-bound"),
            Some((Some(_), AtLeast)) if is > 0 => Some("bound"),
            _ => None,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.exact += other.exact;
        self.low += other.low;
        self.high += other.high;
        self.zero += other.zero;
        self.bound += other.bound;
        self.false_bound += other.false_bound;
        self.unknown += other.unknown;
        self.blank += other.blank;
        self.never += other.never;
        self.phantom += other.phantom;
        self.open += other.open;
        self.disputed += other.disputed;
        self.wrong.extend(other.wrong);
    }

    fn ran(&self) -> usize {
        let shown = self.exact + self.low + self.high + self.zero;
        shown + self.bound + self.false_bound + self.unknown + self.blank
    }

    /// Plain numbers that are wrong, of all plain numbers.
    fn silent(&self) -> f64 {
        let wrong = self.low + self.high + self.zero + self.phantom;
        share(wrong, wrong + self.exact + self.never)
    }
}

fn share(part: usize, of: usize) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

/// What a row of the table is about: a language, and how programs in it were built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column {
    pub language: &'static str,
    pub build: Build,
}

impl Column {
    pub fn of(program: &Program, build: &Build) -> Self {
        let language = match program.language {
            Language::C => "C",
            Language::Cxx => "C++",
            Language::Rust => "Rust",
        };
        Column {
            language,
            build: build.clone(),
        }
    }
}

/// The scores of all programs together.
pub type Scores = BTreeMap<Column, Score>;

/// One row a language and build, in per cent.
pub fn table(scores: &Scores) -> String {
    let mut out = String::from(
        "| | build | lines | exact | low | high | shown 0 | `>=` true | `>=` false | unknown | blank \
         | never: 0 | phantom | open | disputed | silent |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (column, it) in scores {
        let ran = it.ran();
        let never = it.never + it.phantom + it.open;
        let Column { language, build } = column;
        out.push_str(&format!("| {language} | {build} | {ran} + {never}"));
        let parts = [
            it.exact,
            it.low,
            it.high,
            it.zero,
            it.bound,
            it.false_bound,
            it.unknown,
            it.blank,
        ];
        for part in parts {
            out.push_str(&format!(" | {:.2}", share(part, ran)));
        }
        for part in [it.never, it.phantom, it.open] {
            out.push_str(&format!(" | {:.2}", share(part, never)));
        }
        out.push_str(&format!(" | {} | {:.2} |\n", it.disputed, it.silent()));
    }
    out
}

/// What must hold of a row, and whether it does.
pub struct Mark {
    /// `silent 0.12, at most 0.30`.
    pub text: String,
    pub holds: bool,
}

/// The marks of a row.
pub fn marks(column: &Column, score: &Score) -> Vec<Mark> {
    let most = |name: &str, found: f64, limit: f64| Mark {
        text: format!("{name} {found:.2}, at most {limit:.2}"),
        holds: found <= limit,
    };
    let silent = if column.language == "C" { 0.3 } else { 1.0 };
    let mut marks = vec![
        most("silent", score.silent(), silent),
        Mark {
            text: format!("ran but shown as 0: {}, at most 0", score.zero),
            holds: score.zero == 0,
        },
        most("false bounds", share(score.false_bound, score.ran()), 0.5),
    ];
    let Build { compiler, level } = &column.build;
    let least = match (compiler.as_str(), level.as_str()) {
        (_, "O0") => Some(97.0),
        ("gcc", "O2") => Some(80.0),
        ("clang", "O2") => Some(75.0),
        _ => None,
    };
    marks.extend(least.map(|least| {
        let exact = share(score.exact, score.ran());
        Mark {
            text: format!("exact {exact:.2}, at least {least:.2}"),
            holds: exact >= least,
        }
    }));
    marks
}

/// What holds of each row and what does not, in words; and whether all of it holds.
pub fn verdict(scores: &Scores) -> (String, bool) {
    let mut out = String::new();
    let mut all_hold = true;
    for (column, score) in scores {
        let marks = marks(column, score);
        let holds = marks.iter().all(|it| it.holds);
        all_hold &= holds;
        let failed = marks.iter().filter(|it| !it.holds);
        let failed: Vec<&str> = failed.map(|it| it.text.as_str()).collect();
        let Column { language, build } = column;
        out.push_str(&match holds {
            true => format!("pass: {language} {build}\n"),
            false => format!("FAIL: {language} {build}: {}\n", failed.join("; ")),
        });
    }
    (out, all_hold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_agree_or_are_not_asked() {
        let at = |file: &str, line| (PathBuf::from(file), line);
        let gcov = ByLine::from([
            (at("a.c", 1), 7),
            (at("a.c", 2), 7),
            (at("a.c", 3), 7),
            (at("vector", 1), 7),
        ]);
        let llvm = ByLine::from([(at("a.c", 1), 7), (at("a.c", 2), 8), (at("a.c", 4), 1)]);
        let truth = Truth::agreed(gcov, &llvm);
        assert_eq!(truth.lines, ByLine::from([(at("a.c", 1), 7)]));
        assert_eq!(truth.disputed, 2);
    }

    #[test]
    fn a_row_passes_only_if_all_of_it_does() {
        let column = |language, compiler: &str, level: &str| Column {
            language,
            build: Build {
                compiler: compiler.to_owned(),
                level: level.to_owned(),
            },
        };
        let failed = |column: &Column, score: &Score| {
            let marks = marks(column, score).into_iter();
            marks.filter(|it| !it.holds).count()
        };
        let good = Score {
            exact: 970,
            bound: 30,
            never: 1000,
            ..Score::default()
        };
        let c = column("C", "gcc", "O2");
        assert_eq!(failed(&c, &good), 0);
        let zero = Score {
            zero: 1,
            ..good.clone()
        };
        assert_eq!(failed(&c, &zero), 1);
        // Eleven of 1,981 are 0.56 per cent.
        let low = Score {
            low: 11,
            ..good.clone()
        };
        assert_eq!(failed(&c, &low), 1);
        assert_eq!(failed(&column("Rust", "rustc", "O2"), &low), 0);
        let false_bound = Score {
            false_bound: 6,
            ..good.clone()
        };
        assert_eq!(failed(&c, &false_bound), 1);
        let vague = Score {
            unknown: 250,
            ..good
        };
        assert_eq!(failed(&c, &vague), 1);
        assert_eq!(failed(&column("C", "clang", "O2"), &vague), 0);
        assert_eq!(failed(&column("C", "gcc", "O3"), &vague), 0);
        let (text, holds) = verdict(&Scores::from([(c, zero)]));
        assert!(
            !holds && text.starts_with("FAIL: C gcc -O2: ran but shown as 0: 1"),
            "{text}"
        );
    }

    #[test]
    fn a_plain_number_that_is_wrong_is_silent_and_a_bound_that_holds_is_not() {
        use headcount::Exactness::{AtLeast, Exact, Unknown};
        let at = |line: u32| (PathBuf::from("/x/a.c"), line);
        let truth = Truth {
            lines: (1..=8)
                .map(|line| (at(line), 5))
                .chain([(at(9), 0)])
                .collect(),
            disputed: 1,
        };
        let shown = Shown::from([
            (at(1), (Some(5), Exact)),
            (at(2), (Some(4), Exact)),
            (at(3), (Some(6), Exact)),
            (at(4), (Some(0), Exact)),
            (at(5), (Some(5), AtLeast)),
            (at(6), (Some(6), AtLeast)),
            (at(7), (None, Unknown)),
            (at(9), (Some(1), Exact)),
        ]);
        let program = Program {
            name: "p".to_owned(),
            language: Language::C,
            sources: Vec::new(),
            flags: Vec::new(),
            libraries: Vec::new(),
            arguments: Vec::new(),
        };
        let score = score(&program, &truth, &shown);
        let ran = [score.exact, score.low, score.high, score.zero, score.bound];
        assert_eq!(ran, [1; 5]);
        let rest = [score.false_bound, score.unknown, score.blank, score.phantom];
        assert_eq!(rest, [1; 4]);
        assert_eq!(score.silent(), 80.0);
    }
}
