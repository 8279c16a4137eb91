//! Cobertura's XML (`coverage-04.dtd`), for GitLab, Jenkins and Azure.

use super::coverage::{Coverage, CoveredFile, ways};
use super::limit::Limit;
use super::{Exported, Material};
use crate::Error;
use crate::escape::markup;
use crate::glob::base_name;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One package a folder, one class a file.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let coverage = Coverage::new(material)?;
    let mut packages: BTreeMap<&str, Vec<&CoveredFile>> = BTreeMap::new();
    for file in coverage.files.values() {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        packages.entry(folder).or_default().push(file);
    }
    let mut out = Xml::default();
    let all = Sum::of(coverage.files.values());
    out.raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.raw(
        "<!DOCTYPE coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n",
    );
    // No time: the same counts make the same file.
    let mut attributes = all.rates();
    attributes.extend([
        ("lines-covered", all.lines_hit.to_string()),
        ("lines-valid", all.lines.to_string()),
        ("branches-covered", all.ways_taken.to_string()),
        ("branches-valid", all.ways.to_string()),
        ("complexity", "0".to_owned()),
        (
            "version",
            format!("headcount {}", env!("CARGO_PKG_VERSION")),
        ),
        ("timestamp", "0".to_owned()),
    ]);
    out.open("coverage", &attributes);
    out.raw("<sources>\n<source>.</source>\n</sources>\n");
    out.open("packages", &[]);
    for (folder, files) in packages {
        package(&mut out, folder, &files, limit);
    }
    out.close("packages");
    out.close("coverage");
    Ok(coverage.exported(out.text))
}

fn package(out: &mut Xml, folder: &str, files: &[&CoveredFile], limit: &Limit) {
    let named = |name: &str, sum: Sum| {
        let mut attributes = vec![("name", name.to_owned())];
        attributes.extend(sum.rates());
        attributes.push(("complexity", "0".to_owned()));
        attributes
    };
    let sum = Sum::of(files.iter().copied());
    out.open("package", &named(&folder.replace('/', "."), sum));
    out.open("classes", &[]);
    for file in files {
        let mut attributes = named(base_name(&file.path), Sum::of([*file].into_iter()));
        attributes.insert(1, ("filename", file.path.clone()));
        out.open("class", &attributes);
        methods(out, file, limit);
        out.open("lines", &[]);
        for line in file.lines.keys() {
            self::line(out, file, *line, file.lines[line], limit);
        }
        out.close("lines");
        out.close("class");
    }
    out.close("classes");
    out.close("package");
}

fn methods(out: &mut Xml, file: &CoveredFile, limit: &Limit) {
    out.open("methods", &[]);
    for (begin, function) in &file.functions {
        let rate = if function.calls() > 0 { "1" } else { "0" };
        out.open(
            "method",
            &[
                ("name", function.name.clone()),
                ("signature", String::new()),
                ("line-rate", rate.to_owned()),
                ("branch-rate", rate.to_owned()),
                ("complexity", "0".to_owned()),
            ],
        );
        out.open("lines", &[]);
        let hits = limit.cut(function.calls());
        out.empty(
            "line",
            &[
                ("number", begin.line.to_string()),
                ("hits", hits.to_string()),
            ],
        );
        out.close("lines");
        out.close("method");
    }
    out.close("methods");
}

fn line(out: &mut Xml, file: &CoveredFile, number: u32, count: u64, limit: &Limit) {
    let mut attributes = vec![
        ("number", number.to_string()),
        ("hits", limit.cut(count).to_string()),
    ];
    let Some(branches) = file.branches.get(&number) else {
        attributes.push(("branch", "false".to_owned()));
        return out.empty("line", &attributes);
    };
    let (all, taken) = ways(branches.iter());
    // Jenkins and GitLab read this very form.
    let covered = format!("{}% ({taken}/{all})", taken * 100 / all.max(1));
    attributes.push(("branch", "true".to_owned()));
    attributes.push(("condition-coverage", covered));
    out.empty("line", &attributes);
}

/// Lines and branches of some files.
#[derive(Default)]
struct Sum {
    lines: usize,
    lines_hit: usize,
    ways: usize,
    ways_taken: usize,
}

impl Sum {
    fn of<'f>(files: impl Iterator<Item = &'f CoveredFile>) -> Self {
        let mut sum = Self::default();
        for file in files {
            let (ways, taken) = file.branch_ways();
            sum.lines += file.lines.len();
            sum.lines_hit += file.lines_hit();
            sum.ways += ways;
            sum.ways_taken += taken;
        }
        sum
    }

    fn rates(&self) -> Vec<(&'static str, String)> {
        vec![
            ("line-rate", rate(self.lines_hit, self.lines)),
            ("branch-rate", rate(self.ways_taken, self.ways)),
        ]
    }
}

/// A part of a whole with four digits, in whole numbers, so that it is the same everywhere. All of
/// nothing is covered.
fn rate(part: usize, whole: usize) -> String {
    let rate = match whole {
        0 => 10_000,
        _ => part * 10_000 / whole,
    };
    format!("{}.{:04}", rate / 10_000, rate % 10_000)
}

/// Text of XML.
#[derive(Default)]
struct Xml {
    text: String,
}

impl Xml {
    fn raw(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn open(&mut self, name: &str, attributes: &[(&str, String)]) {
        self.tag(name, attributes, ">\n");
    }

    fn empty(&mut self, name: &str, attributes: &[(&str, String)]) {
        self.tag(name, attributes, "/>\n");
    }

    fn close(&mut self, name: &str) {
        let _ = writeln!(self.text, "</{name}>"); // a string has room
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, String)], end: &str) {
        let _ = write!(self.text, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.text, " {key}=\"{}\"", escaped(value));
        }
        self.raw(end);
    }
}

/// Text that can stand between quotes. Characters that XML knows no way to write are shown as
/// everywhere else.
fn escaped(text: &str) -> String {
    let text = markup(&crate::visible(text));
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_no_exponent() {
        assert_eq!(rate(1, 3), "0.3333");
        assert_eq!(rate(1, 1_000_000), "0.0000");
        assert_eq!(rate(7, 7), "1.0000");
        assert_eq!(rate(0, 0), "1.0000");
    }

    #[test]
    fn names_cannot_leave_their_quotes() {
        assert_eq!(escaped("a<\"&'>\u{1b}"), "a&lt;&quot;&amp;&#39;&gt;\\x1b");
    }
}
