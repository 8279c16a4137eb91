//! What was counted, program by program and in all.

use super::artifacts::Artifact;
use super::uncalled::{Uncalled, uncalled};
use crate::readings;
use headcount_profile::{Loaded, RunInfo};
use headcount_report::{Covered, Gate, Only, covered, thousands, visible};
use serde_json::json;
use std::path::Path;

/// Folders whose code tests, but is not tested.
const TESTING: [&str; 3] = ["tests", "benches", "examples"];

/// All programs that ran.
pub struct Summary {
    programs: Vec<Row>,
    total: Covered,
    /// Functions that none of the programs has code of.
    uncalled: Vec<Uncalled>,
    runs: Vec<i64>,
}

/// One program: all its runs together.
struct Row {
    name: String,
    /// How it ended; of several runs, the first that did not end well.
    status: Option<i32>,
    runs: usize,
    covered: Covered,
}

impl Summary {
    /// What the runs say of the files in a folder.
    pub fn new(
        profile: &Path,
        runs: &[RunInfo],
        artifacts: &[Artifact],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let profile = readings::open(profile)?;
        let is_own = |file: &str| is_own(file, folder);
        let covered_by = |loaded: &Loaded| covered(&loaded.counted, &Only::default(), &is_own);
        let mut names: Vec<String> = Vec::new();
        for run in runs {
            let name = name(run, artifacts);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut programs = Vec::new();
        for name in names {
            let mine: Vec<&RunInfo> = runs
                .iter()
                .filter(|run| self::name(run, artifacts) == name)
                .collect();
            let failed = mine.iter().find(|run| run.status != Some(0));
            programs.push(Row {
                status: failed.map_or(Some(0), |run| run.status),
                runs: mine.len(),
                covered: {
                    let ids: Vec<i64> = mine.iter().map(|run| run.id).collect();
                    covered_by(&profile.load(&ids.into())?)?
                },
                name,
            });
        }
        let runs: Vec<i64> = runs.iter().map(|run| run.id).collect();
        let all = profile.load(&runs.clone().into())?;
        Ok(Self {
            programs,
            total: covered_by(&all)?,
            uncalled: uncalled(&all.counted, &is_own),
            runs,
        })
    }

    /// What has not run enough, in sentences.
    pub fn complaints(&self, gate: &Gate) -> Vec<String> {
        gate.complaints(&self.total)
    }

    /// As a table.
    pub fn text(&self, input: &str) -> String {
        let mut rows: Vec<[String; 5]> =
            vec![["program", "runs", "instructions", "functions", "lines"].map(str::to_owned)];
        for it in &self.programs {
            let mut name = visible(&it.name).into_owned();
            match it.status {
                Some(0) => (),
                Some(status) => name.push_str(&format!(" (status {status})")),
                None => name.push_str(" (end not seen)"),
            }
            rows.push(cells(name, it.runs, &it.covered));
        }
        rows.push(cells("all together".into(), self.runs.len(), &self.total));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..5).map(|column| width(column).unwrap_or(0)).collect();
        let mut out = String::new();
        for [name, runs, executed, functions, lines] in &rows {
            out.push_str(&format!(
                "{name:<0$}  {runs:>1$}  {executed:>2$}  {functions:>3$}  {lines:>4$}\n",
                widths[0], widths[1], widths[2], widths[3], widths[4],
            ));
        }
        out.push_str(&format!(
            "functions and lines are those of this workspace that are in the programs, without {}\n",
            TESTING.map(|it| format!("{it}/")).join(", ")
        ));
        out.push_str(&self.uncalled_text());
        let runs = self.selection();
        out.push_str(&format!(
            "more: headcount html{input} --runs {runs} -o report.html"
        ));
        out
    }

    /// What no program has code of, in a line.
    fn uncalled_text(&self) -> String {
        const MOST: usize = 4;
        let place = |it: &Uncalled| {
            let file = Path::new(&it.file).file_name().unwrap_or_default();
            format!("{} ({}:{})", it.name, file.to_string_lossy(), it.line)
        };
        let mut places: Vec<String> = self.uncalled.iter().take(MOST).map(place).collect();
        match self.uncalled.len() {
            0 => return String::new(),
            1..=MOST => (),
            many => places.push(format!("and {} more", thousands((many - MOST) as u64))),
        }
        let places = visible(&places.join(", ")).into_owned();
        format!("never called, so that no program has code of them: {places}\n")
    }

    /// The runs as `--runs` takes them.
    fn selection(&self) -> String {
        match self.runs.as_slice() {
            [] => "last".into(),
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
        }
    }

    /// For machines.
    pub fn json(&self) -> String {
        let covered = |it: &Covered| {
            let (functions, lines) = (it.functions_ran(), it.lines_ran());
            json!({
                "executed": it.executed.value(),
                "functions": functions.all,
                "functions_ran": functions.ran,
                "lines": lines.all,
                "lines_ran": lines.ran,
            })
        };
        let program = |it: &Row| {
            let mut row = covered(&it.covered);
            row["program"] = it.name.as_str().into();
            row["runs"] = it.runs.into();
            row["status"] = it.status.into();
            row
        };
        let functions = self.total.files.iter().flat_map(|(file, covered)| {
            covered.functions.iter().map(move |(begin, it)| {
                json!({ "file": file, "line": begin.line, "function": it.name, "ran": it.ran })
            })
        });
        let without_code =
            |it: &Uncalled| json!({ "file": it.file, "line": it.line, "function": it.name });
        let all = json!({
            "version": 1,
            "runs": self.runs,
            "programs": self.programs.iter().map(program).collect::<Vec<_>>(),
            "total": covered(&self.total),
            "functions": functions.collect::<Vec<_>>(),
            "no_code": self.uncalled.iter().map(without_code).collect::<Vec<_>>(),
        });
        format!("{all:#}\n")
    }
}

fn cells(name: String, runs: usize, it: &Covered) -> [String; 5] {
    [
        name,
        thousands(runs as u64),
        it.executed.to_string(),
        it.functions_ran().to_string(),
        it.lines_ran().to_string(),
    ]
}

/// What cargo calls the program; those of documentation have no name of their own.
fn name(run: &RunInfo, artifacts: &[Artifact]) -> String {
    let program = run.command.first().map_or("", String::as_str);
    let is_it = |it: &&Artifact| it.path == Path::new(program) || same_file(&it.path, program);
    match artifacts.iter().find(is_it) {
        Some(artifact) => artifact.name.clone(),
        None if program.contains("rustdoctest") => "doc tests".into(),
        None => program.into(),
    }
}

fn same_file(path: &Path, program: &str) -> bool {
    let (Ok(a), Ok(b)) = (path.canonicalize(), Path::new(program).canonicalize()) else {
        return false;
    };
    a == b
}

/// Is this a file of the workspace that is tested?
fn is_own(file: &str, folder: &Path) -> bool {
    let Ok(inside) = Path::new(file).strip_prefix(folder) else {
        return false;
    };
    let mut parts = inside.iter().filter_map(|it| it.to_str());
    !parts.any(|part| TESTING.contains(&part) || part == "target")
}
