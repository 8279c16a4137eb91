//! `headcount run` against programs that state their own answer (`tests/programs`), and against the
//! oracle, which steps through the same file: every instruction's count must be the same.

use assert_cmd::Command;
use headcount_oracle::count_command;
use headcount_oracle::stated::Stated;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// One way to build one program.
struct Case {
    source: PathBuf,
    stated: Stated,
    flags: &'static [&'static str],
}

/// What headcount says of one instruction.
struct Counted {
    function: String,
    count: u64,
}

impl Case {
    fn new(source: &Path, flags: &'static [&'static str]) -> Self {
        let text = fs::read_to_string(source).expect("the source is text");
        Self {
            source: source.to_owned(),
            stated: Stated::parse(source, &text).expect("its statements make sense"),
            flags,
        }
    }

    fn label(&self) -> String {
        let name = self.source.file_name().unwrap_or_default();
        format!("{} {}", name.to_string_lossy(), self.flags.join(" "))
    }

    fn build(&self, folder: &Path) -> PathBuf {
        let compiler = match self.source.extension().and_then(|it| it.to_str()) {
            Some("cc") => "g++",
            Some("f90") => "gfortran",
            _ => "gcc",
        };
        let into = folder.join("program");
        let mut build = process::Command::new(compiler);
        build.args(["-g", "-w"]).arg(&self.source);
        build.args(&self.stated.flags).args(self.flags);
        if !self.stated.varies.is_empty() {
            build.arg("-fno-inline");
        }
        let output = build.arg("-o").arg(&into).output().expect("it runs");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaints}", self.label());
        into
    }

    /// All that is wrong with the counts of this program.
    fn disagreements(&self) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let program = self.build(folder.path());
        let mut command = process::Command::new(&program);
        command.args(&self.stated.args);
        // Both with the same environment: a static program has code that looks at it.
        command
            .envs(environment(&folder))
            .current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let truth = count_command(command.stderr(Stdio::null())).expect("the oracle counts it");

        let mut run = headcount(&folder);
        run.args(["run", "-q", "--"]).arg(&program);
        let output = run.args(&self.stated.args).output();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", self.label()));

        let mut wrong = Vec::new();
        if output.status.code() != Some(truth.status) {
            let complaints = String::from_utf8_lossy(&output.stderr);
            let status = truth.status;
            wrong.push(format!(
                "status {status} became {:?} {complaints}",
                output.status
            ));
        }
        if output.stdout != truth.stdout {
            wrong.push("it wrote something else to standard output".to_owned());
        }
        wrong.extend(self.wrong_counts(&instructions(&folder, &program), &truth.counts));
        if self.flags.contains(&"-O0") {
            wrong.extend(self.wrong_lines(&folder));
        }
        wrong
            .iter()
            .map(|it| format!("{}: {it}", self.label()))
            .collect()
    }

    fn wrong_counts(
        &self,
        counted: &BTreeMap<u64, Counted>,
        truth: &BTreeMap<u64, u64>,
    ) -> Vec<String> {
        let varies = |function: &str| {
            let base = function.split('.').next().unwrap_or(function);
            self.stated.varies.iter().any(|name| name == base)
        };
        let mut wrong = Vec::new();
        for (address, truth) in truth {
            match counted.get(address) {
                Some(it) if it.count == *truth || varies(&it.function) => {}
                Some(it) => wrong.push(format!(
                    "{} at {address:#x} ran {truth}, counted {}",
                    it.function, it.count
                )),
                None => wrong.push(format!("{address:#x} ran {truth}, is not reported")),
            }
        }
        for (address, it) in counted {
            if it.count != 0 && !truth.contains_key(address) && !varies(&it.function) {
                wrong.push(format!("{} at {address:#x} never ran", it.function));
            }
        }
        wrong
    }

    fn wrong_lines(&self, folder: &TempDir) -> Vec<String> {
        let text = report(folder, "line");
        let file = self.source.file_name().unwrap_or_default();
        let mut counts = BTreeMap::new();
        for row in text.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            if Path::new(fields[0]).file_name() == Some(file) {
                let line: u32 = fields[1].parse().expect("a line");
                counts.insert(line, fields[2].parse::<u64>().expect("a count"));
            }
        }
        let stated = self.stated.lines.iter();
        stated
            .filter(|(line, stated)| counts.get(line) != Some(stated))
            .map(|(line, stated)| {
                format!("line {line} ran {stated}, counted {:?}", counts.get(line))
            })
            .collect()
    }
}

fn environment(folder: &TempDir) -> [(&'static str, PathBuf); 1] {
    [("HEADCOUNT_DIR", folder.path().join("counts"))]
}

fn headcount(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headcount"));
    command
        .current_dir(folder.path())
        .envs(environment(folder))
        .timeout(Duration::from_secs(60));
    command
}

fn report(folder: &TempDir, by: &str) -> String {
    let mut report = headcount(folder);
    report.args(["report", "--by", by, "--format", "csv", "--no-demangle"]);
    let output = report.output().expect("it runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    String::from_utf8(output.stdout).expect("text")
}

/// `module,function,address,count,text`, of one module.
fn instructions(folder: &TempDir, program: &Path) -> BTreeMap<u64, Counted> {
    let text = report(folder, "instruction");
    let mut found = BTreeMap::new();
    for row in text.lines().skip(1) {
        let fields: Vec<&str> = row.splitn(5, ',').collect();
        if Path::new(fields[0]) != program {
            continue;
        }
        let address = fields[2].strip_prefix("0x").expect("an address");
        let counted = Counted {
            function: fields[1].to_owned(),
            count: fields[3].parse().expect("a count"),
        };
        found.insert(u64::from_str_radix(address, 16).expect("hex"), counted);
    }
    found
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let folder = folder.canonicalize().expect("the folder of test programs");
    let entries = fs::read_dir(folder).expect("it can be read");
    let mut paths: Vec<PathBuf> = entries.map(|it| it.expect("an entry").path()).collect();
    paths.sort();
    if let Ok(name) = std::env::var("ONLY_PROGRAM") {
        paths.retain(|path| path.to_string_lossy().contains(&name));
    }
    let mut cases = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let case = Case::new(path, &["-O0"]);
        let routes = &case.stated.routes;
        if !routes.is_empty() && !routes.iter().any(|route| route == "patch") {
            continue;
        }
        cases.push(case);
        cases.push(Case::new(path, &["-O2"]));
        // The same code elsewhere: each program in one more way.
        let elsewhere: [&[&str]; 2] = [&["-O1", "-static"], &["-Os", "-no-pie"]];
        cases.push(Case::new(path, elsewhere[number % 2]));
    }
    cases
}

#[test]
fn every_instruction_is_counted_as_the_oracle_counts_it() {
    let left = Mutex::new(cases());
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("no worker panicked").pop();
                    let Some(case) = next else { break };
                    let wrong = case.disagreements();
                    found.lock().expect("no worker panicked").extend(wrong);
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no worker panicked");
    found.sort();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
