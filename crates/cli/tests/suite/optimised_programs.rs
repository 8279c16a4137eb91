//! Programs whose code optimisers copy, move, merge and drop (`tests/programs/optimised_*`): what is
//! shown of their lines must be true. A plain number is how often the line ran, a bound is not above
//! that, and a line that ran is neither shown as 0 nor left out.

use crate::workshop::{Workshop, have};
use headcount_oracle::complaints;
use headcount_oracle::stated::{Stated, programs};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines that are still shown wrongly: the program, how it was built, and the lines. The list may
/// only become shorter: what is right must not be on it.
#[rustfmt::skip]
const STILL_WRONG: &[(&str, &str, &[u32])] = &[
    ("optimised_by_its_own_profile.c", "gcc -O2 -fprofile-use", &[11, 12, 14, 25, 26, 27]),
    ("optimised_by_its_own_profile.c", "gcc -O3 -fprofile-use", &[11, 12, 14, 25, 26, 27]),
    ("optimised_closures.rs", "rustc -C opt-level=1", &[10, 13, 16, 29, 32]),
    ("optimised_closures.rs", "rustc -C opt-level=2", &[10, 13, 16, 29, 32]),
    ("optimised_closures.rs", "rustc -C opt-level=3", &[10, 13, 16, 29, 32]),
    ("optimised_generics.rs", "rustc -C opt-level=1", &[19, 25, 29, 32]),
    ("optimised_generics.rs", "rustc -C opt-level=2", &[19, 25, 29, 32]),
    ("optimised_generics.rs", "rustc -C opt-level=3", &[19, 25, 29, 32]),
    ("optimised_identical_functions_are_folded.c", "gcc -O2", &[10, 11, 12]),
    ("optimised_identical_functions_are_folded.c", "gcc -O3", &[10, 11, 12]),
    ("optimised_identical_functions_are_folded.c", "gcc -Os", &[10, 11, 12]),
    ("optimised_iterators.rs", "rustc -C opt-level=1", &[11, 12, 18, 19, 22, 24, 28]),
    ("optimised_iterators.rs", "rustc -C opt-level=2", &[11, 12, 18, 19, 22, 24, 28]),
    ("optimised_iterators.rs", "rustc -C opt-level=3", &[11, 12, 18, 19, 22, 24, 28]),
    ("optimised_lambdas.cc", "clang -O1", &[12, 19, 22]),
    ("optimised_lambdas.cc", "clang -O2", &[11, 12, 19, 22]),
    ("optimised_lambdas.cc", "clang -O3", &[11, 12, 19, 22]),
    ("optimised_peeled.c", "gcc -O3 -fpeel-loops", &[25, 26]),
    ("optimised_split_in_parts.c", "gcc -O3", &[21, 22]),
    ("optimised_tails_are_merged.c", "gcc -O2", &[17, 18, 19, 28]),
    ("optimised_templates.cc", "clang -O1", &[15, 18, 29, 37]),
    ("optimised_templates.cc", "clang -O2", &[15, 18, 29, 37]),
    ("optimised_templates.cc", "clang -O3", &[15, 18, 29, 37]),
    ("optimised_templates.cc", "gcc -O1", &[18, 29]),
    ("optimised_templates.cc", "gcc -O2", &[18, 29]),
    ("optimised_templates.cc", "gcc -O3", &[15, 18, 29]),
];

/// The compilers that the list is about. Others make other code of the same source, and lines on the
/// list may be right there.
const LISTED: [(&str, &str); 3] = [("gcc", " 12."), ("clang", " 14."), ("rustc", " 1.95.")];

/// One way to build one program.
struct Case {
    source: PathBuf,
    stated: Stated,
    compiler: &'static str,
    flags: Vec<String>,
}

/// How a line is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Exact(u64),
    AtLeast(u64),
    Unknown,
    Not,
}

impl Shown {
    /// Is it true of a line that ran so often?
    fn is_true(self, ran: u64) -> bool {
        match self {
            Shown::Exact(count) => count == ran,
            Shown::AtLeast(count) => count <= ran,
            Shown::Unknown => true,
            Shown::Not => ran == 0,
        }
    }
}

impl Case {
    fn name(&self) -> &str {
        let name = self.source.file_name().and_then(|it| it.to_str());
        name.expect("a name")
    }

    fn how(&self) -> String {
        format!("{} {}", self.compiler, self.flags.join(" "))
    }

    /// The lines that are shown wrongly, each with what is wrong.
    fn wrong_lines(&self) -> Vec<(u32, String)> {
        let shop = Workshop::new();
        if self.flags.iter().any(|it| it == "-fprofile-use") {
            self.build(&shop, "-fprofile-generate");
            self.run(&shop, "./program");
        }
        self.build(&shop, "-fprofile-use");
        self.run(&shop, "headcount");
        let said = shop.headcount(&["report", "--by", "line", "--format", "csv"]);
        assert_eq!(said.status, Some(0), "{said:?}");
        let wrong = self.stated.lines.iter().filter_map(|(line, ran)| {
            let shown = shown(&said.stdout, self.name(), *line);
            let text = format!("line {line} ran {ran}, shown {shown:?}");
            (!shown.is_true(*ran)).then_some((*line, text))
        });
        wrong.collect()
    }

    /// Builds `program`; `profile` stands for `-fprofile-use`.
    fn build(&self, shop: &Workshop, profile: &str) {
        let compiler = match (self.compiler, self.name().ends_with(".cc")) {
            ("gcc", true) => "g++",
            ("clang", true) => "clang++",
            (other, _) => other,
        };
        let flags = self.flags.iter().map(|it| match it.as_str() {
            "-fprofile-use" => profile,
            other => other,
        });
        let more = self.stated.flags.iter().map(String::as_str);
        let source = self.source.to_str().expect("a path of letters");
        let mut words = vec![compiler, "-g"];
        words.extend(flags.chain(more).chain([source, "-o", "program"]));
        shop.must(&words);
    }

    fn run(&self, shop: &Workshop, how: &str) {
        let mut words: Vec<&str> = vec!["./program"];
        words.extend(self.stated.args.iter().map(String::as_str));
        let said = match how {
            "headcount" => {
                let run = ["run", "--quiet", "--modules", "main", "--"];
                shop.headcount(&[&run[..], &words].concat())
            }
            _ => shop.run(&words),
        };
        assert_eq!(said.status, Some(self.stated.status), "{said:?}");
    }

    /// What is wrong and not on the list, or on the list and not wrong; and what the list should say.
    fn disagreements(&self) -> Vec<String> {
        let listed = STILL_WRONG
            .iter()
            .filter(|(program, how, _)| *program == self.name() && *how == self.how());
        let listed: BTreeSet<u32> = listed
            .flat_map(|(_, _, lines)| lines.iter().copied())
            .collect();
        let found = self.wrong_lines();
        let wrong: BTreeSet<u32> = found.iter().map(|(line, _)| *line).collect();
        let label = format!("{} {}", self.name(), self.how());
        let new = found.iter().filter(|(line, _)| !listed.contains(line));
        let mut all: Vec<String> = new.map(|(_, text)| format!("{label}: {text}")).collect();
        let right: Vec<&u32> = listed.difference(&wrong).collect();
        if !right.is_empty() && is_listed(self.compiler) {
            all.push(format!(
                "{label}: lines {right:?} are right: take them off the list"
            ));
        }
        if !all.is_empty() {
            let row = format!("(\"{}\", \"{}\", &{wrong:?}),", self.name(), self.how());
            all.push(row.replace('{', "[").replace('}', "]"));
        }
        all
    }
}

/// How a line of this file is shown in a table `file,line,count,executed,exactness`.
fn shown(csv: &str, file: &str, line: u32) -> Shown {
    let row = csv.lines().find_map(|row| {
        let fields: Vec<&str> = row.rsplitn(5, ',').collect();
        let [exactness, _, count, number, path] = fields[..] else {
            return None;
        };
        let is_it = Path::new(path).ends_with(file) && number.parse() == Ok(line);
        is_it.then_some((exactness, count))
    });
    match row {
        None => Shown::Not,
        Some(("exact", count)) => Shown::Exact(count.parse().expect("a count")),
        Some(("at_least", count)) => Shown::AtLeast(count.parse().expect("a count")),
        Some(_) => Shown::Unknown,
    }
}

/// Whether a compiler is of the version that the list was made with.
fn is_listed(compiler: &str) -> bool {
    let output = std::process::Command::new(compiler)
        .arg("--version")
        .output();
    let output = output.expect("it says its version");
    let first = String::from_utf8_lossy(&output.stdout);
    let first = first.lines().next().unwrap_or_default();
    LISTED
        .iter()
        .any(|(name, version)| *name == compiler && first.contains(version))
}

fn cases() -> Vec<Case> {
    let installed: Vec<&'static str> = ["gcc", "clang", "rustc"]
        .into_iter()
        .filter(|it| have(it))
        .collect();
    let mut cases = Vec::new();
    for source in programs() {
        let text = fs::read_to_string(&source).expect("the source is text");
        let stated = Stated::parse(&source, &text).expect("its statements make sense");
        let is_rust = source.extension().is_some_and(|it| it == "rs");
        for way in &stated.optimised {
            let (named, flags): (Vec<String>, Vec<String>) = way
                .iter()
                .cloned()
                .partition(|it| LISTED.iter().any(|(name, _)| it == name));
            for compiler in &installed {
                let fits = match named.first() {
                    Some(name) => name == compiler,
                    None => is_rust == (*compiler == "rustc"),
                };
                if fits {
                    cases.push(Case {
                        source: source.clone(),
                        stated: stated.clone(),
                        compiler,
                        flags: flags.clone(),
                    });
                }
            }
        }
    }
    cases
}

#[test]
fn what_is_shown_of_the_lines_of_optimised_programs_is_true() {
    let cases = cases();
    assert!(cases.len() > 50);
    let found = complaints(cases, 2, Case::disagreements);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The list would be worth nothing if it spoke of programs that are gone.
#[test]
fn what_is_still_wrong_is_about_programs_that_are_there() {
    let cases = cases();
    for (program, how, lines) in STILL_WRONG {
        let case = cases
            .iter()
            .find(|it| it.name() == *program && it.how() == *how);
        let compiler = how.split(' ').next().unwrap_or_default();
        if !have(compiler) {
            continue;
        }
        let case = case.unwrap_or_else(|| panic!("{program} is not built by {how}"));
        for line in *lines {
            assert!(
                case.stated.lines.contains_key(line),
                "{program}:{line} states nothing"
            );
        }
    }
}

#[test]
fn a_lie_is_told_from_a_bound() {
    let csv = "file,line,count,executed,exactness\n/x/a.c,3,7,21,exact\n/x/a.c,4,7,21,at_least\n\
               /x/a.c,5,,21,unknown\n";
    let is_true = |line, ran| shown(csv, "a.c", line).is_true(ran);
    assert!(is_true(3, 7) && !is_true(3, 8) && !is_true(3, 6));
    assert!(is_true(4, 7) && is_true(4, 8) && !is_true(4, 6));
    assert!(is_true(5, 7) && is_true(5, 0));
    assert!(!is_true(6, 7) && is_true(6, 0));
}
