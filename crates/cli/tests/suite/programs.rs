//! The assembly route against programs that state their own answer (`tests/programs`), and
//! against a second opinion: the oracle, which steps through the same program built without
//! headcount.

use crate::workshop::is_thorough;
use assert_cmd::Command;
use headcount_oracle::stated::{Stated, programs};
use headcount_oracle::{by_function, complaints, count_command, other_names};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Padding is part of a finished program, not of its assembly, so the oracle would count what the
/// assembly route does not. Without padding they must agree.
const WITHOUT_PADDING: [&str; 4] = [
    "-fno-align-functions",
    "-fno-align-jumps",
    "-fno-align-labels",
    "-fno-align-loops",
];

/// Programs whose loops gcc treats differently at `-O3`.
const WORTH_O3: [&str; 6] = [
    "a_switch_with_a_jump_table.c",
    "duffs_device.c",
    "exception_passes_destructors.cc",
    "loops_nest.c",
    "recursion.c",
    "templates_add_up.cc",
];

/// The C library's own, which come with every program.
const NOT_OURS: [&str; 10] = [
    "__do_global_dtors_aux",
    "_dl_relocate_static_pie",
    "_fini",
    "_init",
    "_start",
    "at_quick_exit",
    "atexit",
    "deregister_tm_clones",
    "frame_dummy",
    "register_tm_clones",
];

/// What the report says of every program that did not end by `exit`.
const NOT_ENDED: &str = "did not end by exit";
/// What it says of a function whose counters contradict each other.
const CUT_SHORT: &str = "was cut short";

/// One way to build one program.
struct Case {
    source: PathBuf,
    stated: Stated,
    level: &'static str,
    /// Build it so that some counts are lost.
    broken: bool,
}

impl Case {
    fn new(source: &Path, level: &'static str) -> Self {
        let text = fs::read_to_string(source).expect("the source is text");
        Self {
            source: source.to_owned(),
            stated: Stated::parse(source, &text).expect("its statements make sense"),
            level,
            broken: false,
        }
    }

    fn file_name(&self) -> &str {
        let name = self.source.file_name().and_then(|name| name.to_str());
        name.expect("a name")
    }

    /// Compiles it into `folder`.
    fn build(&self, folder: &Folder, how: &[&str], name: &str) -> PathBuf {
        let compiler = match self.source.extension().and_then(|it| it.to_str()) {
            Some("cc") => "g++",
            Some("f90") => "gfortran",
            _ => "gcc",
        };
        let into = folder.path(name);
        let mut words = how.to_vec();
        words.extend([compiler, "-g", "-w", "-O0"]);
        let mut build = Command::new(words[0]);
        build.args(&words[1..]).args(WITHOUT_PADDING);
        build.arg(&self.source).args(&self.stated.flags);
        if self.level != "-O0" {
            build.arg(self.level);
        }
        if self.names_functions() {
            build.arg("-fno-inline");
        }
        if self.broken {
            build.env("HEADCOUNT_TEST_BREAK", "1");
        }
        let output = folder.prepare(build.arg("-o").arg(&into)).output();
        let output = output.expect("the compiler runs");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaints}", self.label());
        into
    }

    /// Whether its statements are about functions that must be there, whatever the compiler
    /// thinks best.
    fn names_functions(&self) -> bool {
        let stated = &self.stated;
        !(stated.varies.is_empty()
            && stated.asm_uncertain.is_empty()
            && stated.asm_refuses.is_empty())
    }

    fn label(&self) -> String {
        format!("{} {}", self.file_name(), self.level)
    }

    /// All that is wrong with the counts of this program.
    fn disagreements(&self) -> Vec<String> {
        let folder = Folder::new();
        let plain = self.build(&folder, &[], "plain");
        let headcount = env!("CARGO_BIN_EXE_headcount");
        let counted = self.build(&folder, &[headcount, "cc", "--"], "counted");

        let mut command = process::Command::new(&plain);
        command.args(&self.stated.args).current_dir(folder.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let truth = count_command(command.stderr(Stdio::null())).expect("the oracle counts it");
        let output = folder
            .prepare(Command::new(&counted).args(&self.stated.args))
            .timeout(Duration::from_secs(60))
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", self.label()));
        let found = Found::new(&folder);

        let mut wrong = Vec::new();
        if status(output.status) != truth.status {
            let (theirs, ours) = (truth.status, status(output.status));
            wrong.push(format!("status {theirs} became {ours}"));
        }
        if output.stdout != truth.stdout {
            wrong.push("it wrote something else to standard output".to_owned());
        }
        let executed = by_function(&truth.counts, &plain).expect("it has symbols");
        let other_names = other_names(&plain).expect("it has symbols");
        wrong.extend(self.wrong_totals(&found, &executed, &other_names));
        wrong.extend(self.wrong_remarks(&found, truth.status));
        if self.level == "-O0" {
            if truth.status != self.stated.status {
                wrong.push(format!("status {}, not as stated", truth.status));
            }
            wrong.extend(self.wrong_lines(&found));
            wrong.extend(self.wrong_calls(&found));
        }
        wrong
            .iter()
            .map(|it| format!("{}: {it}", self.label()))
            .collect()
    }

    /// Functions that did not execute what the oracle says.
    fn wrong_totals(
        &self,
        found: &Found,
        truth: &BTreeMap<String, u64>,
        other_names: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut unseen = truth.clone();
        for (name, function) in &found.functions {
            let known_as = other_names.get(name).unwrap_or(name);
            let truth = unseen.remove(known_as).unwrap_or(0);
            if truth != function.executed && !self.is_exempt(name) {
                let executed = function.executed;
                wrong.push(format!("{name} executed {truth}, counted {executed}"));
            }
        }
        for (name, executed) in unseen {
            if !NOT_OURS.contains(&name.as_str()) {
                wrong.push(format!("{name} executed {executed}, and is not reported"));
            }
        }
        wrong
    }

    fn is_exempt(&self, function: &str) -> bool {
        let stated = &self.stated;
        [&stated.varies, &stated.asm_uncertain, &stated.asm_refuses]
            .iter()
            .any(|names| has(names, function))
    }

    /// Refusals and notes that are missing, or should not be there.
    fn wrong_remarks(&self, found: &Found, status: i32) -> Vec<String> {
        let stated = &self.stated;
        let mut wrong = Vec::new();
        for Refused {
            subject, reason, ..
        } in &found.refusals
        {
            // Programs may have functions that nobody calls, or that are inlined everywhere.
            let is_gone = reason.starts_with("removed by the linker");
            if !is_gone && !has(&stated.asm_refuses, subject) {
                wrong.push(format!("{subject} is refused: {reason}"));
            }
        }
        for name in &stated.asm_refuses {
            let mut all = found.refusals.iter();
            match all.find(|it| base_name(&it.subject) == name) {
                Some(it) if found.function_of(it.line) == Some(&it.subject) => {}
                Some(it) => wrong.push(format!("{name} is refused for line {}", it.line)),
                None => wrong.push(format!("{name} is not refused")),
            }
        }
        if status >= 128 && !found.notes.iter().any(|note| note.contains(NOT_ENDED)) {
            wrong.push("no note says that it was killed".to_owned());
        }
        for note in &found.notes {
            let names_it = |name: &String| note.starts_with(name.as_str());
            let expected = note.contains(NOT_ENDED)
                || note.contains(CUT_SHORT) && stated.asm_uncertain.iter().any(names_it);
            if !expected {
                wrong.push(format!("an odd note: {note}"));
            }
        }
        wrong
    }

    fn wrong_lines(&self, found: &Found) -> Vec<String> {
        let mut wrong = Vec::new();
        for (line, stated) in &self.stated.lines {
            let function = found.function_of(*line);
            let uncertain = function.is_some_and(|it| has(&self.stated.asm_uncertain, it));
            match found.lines.get(&(self.file_name().to_owned(), *line)) {
                Some(count) if count == stated => {}
                Some(count) if uncertain && count.abs_diff(*stated) == 1 => {}
                Some(count) => wrong.push(format!("line {line} ran {stated}, counted {count}")),
                None => wrong.push(format!("line {line} ran {stated}, is not reported")),
            }
        }
        wrong
    }

    fn wrong_calls(&self, found: &Found) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, stated) in &self.stated.calls {
            let calls = found.functions.get(name).map(|function| function.calls);
            if calls != Some(*stated) {
                wrong.push(format!("{name} was called {stated}, counted {calls:?}"));
            }
        }
        wrong
    }
}

/// Whether a function is among those named; gcc may have made a copy of it (`f.constprop.0`).
fn has(names: &[String], function: &str) -> bool {
    names.iter().any(|name| name == base_name(function))
}

fn base_name(function: &str) -> &str {
    function.split('.').next().unwrap_or(function)
}

/// An exit code, or 128 + signal.
fn status(status: ExitStatus) -> i32 {
    let killed = status.signal().map(|signal| 128 + signal);
    status.code().or(killed).expect("it ended")
}

/// Where a program is built and run, and nobody else is.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(self.0.path())
            .env("HEADCOUNT_DIR", self.path("counts"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("CC")
    }

    /// What `headcount report` answers.
    fn report(&self, by: &str, format: &str) -> String {
        let mut report = Command::new(env!("CARGO_BIN_EXE_headcount"));
        report.args(["report", "--by", by, "--format", format]);
        report.args(["--runs", "all", "--no-demangle"]);
        let output = self.prepare(&mut report).output().expect("it runs");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "report --by {by}: {complaints}");
        String::from_utf8(output.stdout).expect("text")
    }
}

/// What headcount found out.
struct Found {
    functions: BTreeMap<String, Function>,
    /// Counts by file name and line.
    lines: BTreeMap<(String, u32), u64>,
    refusals: Vec<Refused>,
    notes: Vec<String>,
}

/// What was not counted, why, and because of which line.
struct Refused {
    subject: String,
    reason: String,
    line: u32,
}

/// A row of the report by function.
struct Function {
    line: u32,
    calls: u64,
    executed: u64,
}

impl Found {
    fn new(folder: &Folder) -> Self {
        let json: Value = serde_json::from_str(&folder.report("function", "json")).expect("JSON");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let list = |name: &str| json[name].as_array().expect("a list").clone();
        Self {
            functions: functions(&folder.report("function", "csv")),
            lines: lines(&folder.report("line", "csv")),
            refusals: list("refused")
                .iter()
                .map(|it| Refused {
                    subject: text(&it["subject"]),
                    reason: text(&it["reason"]),
                    line: it["line"].as_u64().expect("a line") as u32,
                })
                .collect(),
            notes: list("notes").iter().map(text).collect(),
        }
    }

    /// The function that a line belongs to: the last that begins before it.
    fn function_of(&self, line: u32) -> Option<&str> {
        let before = self.functions.iter().filter(|(_, it)| it.line <= line);
        let (name, _) = before.max_by_key(|(_, it)| it.line)?;
        Some(name)
    }
}

/// `module,function,file,line,calls,executed,...`
fn functions(csv: &str) -> BTreeMap<String, Function> {
    let mut functions = BTreeMap::new();
    for fields in fields(csv) {
        let number = |at: usize| fields[at].parse::<u64>().expect("a number");
        let function = functions.entry(fields[1].to_owned()).or_insert(Function {
            line: fields[3].parse().unwrap_or(0),
            calls: 0,
            executed: 0,
        });
        function.calls += number(4);
        function.executed += number(5);
    }
    functions
}

/// `file,line,count,executed,exactness`: those that are promises.
fn lines(csv: &str) -> BTreeMap<(String, u32), u64> {
    let row = |fields: Vec<&str>| {
        let file = fields[0].rsplit('/').next().unwrap_or_default();
        let line = fields[1].parse().expect("a line");
        let count = fields[2].parse().expect("a count");
        ((file.to_owned(), line), count)
    };
    let is_exact = |fields: &Vec<&str>| fields.last() == Some(&"exact");
    fields(csv).filter(is_exact).map(row).collect()
}

/// The rows of a table whose fields hold no commas.
fn fields(csv: &str) -> impl Iterator<Item = Vec<&str>> {
    csv.lines().skip(1).map(|row| row.split(',').collect())
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, source) in programs().into_iter().enumerate() {
        let case = Case::new(&source, "-O0");
        let routes = &case.stated.routes;
        if !routes.is_empty() && !routes.iter().any(|route| route == "asm") {
            continue;
        }
        if WORTH_O3.contains(&case.file_name()) {
            cases.push(Case::new(&source, "-O3"));
        }
        // The other levels take turns.
        let is_assembly = source.extension().is_some_and(|extension| extension == "s");
        if !is_assembly && (is_thorough() || index % 2 == 1) {
            cases.push(Case::new(&source, "-O2"));
        }
        if is_assembly || is_thorough() || index % 2 == 0 {
            cases.push(case);
        }
    }
    cases
}

#[test]
fn programs_are_counted_as_they_state_and_as_the_oracle_counts() {
    let cases = cases();
    assert!(cases.len() > 50);
    let found = complaints(cases, 2, Case::disagreements);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The test above is worth something only if it would notice.
#[test]
fn lost_counts_are_noticed() {
    let programs = programs();
    let source = programs.iter().find(|path| path.ends_with("recursion.c"));
    let broken = Case {
        broken: true,
        ..Case::new(source.expect("it is there"), "-O2")
    };
    assert_ne!(broken.disagreements(), Vec::<String>::new());
}
