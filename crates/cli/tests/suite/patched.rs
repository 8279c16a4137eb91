//! `headcount run` against programs that state their own answer (`tests/programs`), and against the
//! oracle, which steps through the same file: every instruction's count must be the same.

use crate::workshop::is_thorough;
use assert_cmd::Command;
use headcount_oracle::stated::{Stated, programs};
use headcount_oracle::{Outcome, at_fixed_addresses, complaints, count_command};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitStatus, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Programs that take so many steps inside of libraries that one level must do.
const TAKE_LONG: [&str; 9] = [
    "a_shell_pipeline_is_started.c",
    "a_thread_is_cancelled.c",
    "a_thread_makes_threads.c",
    "exception_is_thrown_again.cc",
    "exception_nobody_catches.cc",
    "its_child_runs_it_again.c",
    "main_ends_with_pthread_exit.c",
    "pthread_exit_deep_in_a_thread.c",
    "threads_of_the_c_standard.c",
];

/// Programs that are counted elsewhere too: with their libraries inside, or at fixed addresses. In
/// a static program, what threads do inside of the C library would count too, and is up to the
/// scheduler: there are none with threads here.
const ELSEWHERE: [(&[&str], &[&str]); 2] = [
    (
        &[
            "_exit_skips_the_handlers.c",
            "a_fault_is_repaired_and_tried_again.c",
            "a_library_calls_back.c",
            "a_resolver_picks_the_function.c",
            "a_signal_handler_runs.c",
            "constructors_and_destructors.c",
            "fork_counts_both_sides.c",
            "it_runs_itself_again.c",
            "longjmp_drops_three_frames.c",
            "recursion.c",
            "string_instructions_repeat.c",
            "virtual_calls_find_their_function.cc",
        ],
        &["-O1", "-static"],
    ),
    (
        &[
            "a_switch_with_a_jump_table.c",
            "an_instruction_that_jumps_to_itself.c",
            "case_falls_through.c",
            "computed_goto.c",
            "contexts_are_switched.c",
            "duffs_device.c",
            "eight_threads_lose_nothing.c",
            "functions_written_in_assembly.c",
            "loops_nest.c",
            "siglongjmp_leaves_a_handler.c",
            "tail_calls_are_jumps.c",
            "thunks_lead_to_their_function.cc",
            "weak_functions.c",
        ],
        &["-Os", "-no-pie"],
    ),
];

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

    fn has_threads(&self) -> bool {
        self.stated.flags.iter().any(|flag| flag == "-pthread")
    }

    /// A static program has string functions that care how their operands are aligned.
    fn depends_on_addresses(&self) -> bool {
        self.flags.contains(&"-static")
    }

    /// Compiles it into `folder`.
    fn build(&self, folder: &Path) -> PathBuf {
        let compiler = match self.source.extension().and_then(|it| it.to_str()) {
            Some("cc") => "g++",
            Some("f90") => "gfortran",
            _ => "gcc",
        };
        let into = folder.join("program");
        let mut build = process::Command::new(compiler);
        // Fortran leaves files where it is called.
        build
            .current_dir(folder)
            .args(["-g", "-w"])
            .arg(&self.source);
        build.args(&self.stated.flags).args(self.flags);
        if self.has_threads() {
            // Which thread binds a function first would be up to the scheduler.
            build.arg("-Wl,-z,now");
        }
        if !self.stated.varies.is_empty() {
            build.arg("-fno-inline");
        }
        let output = build.arg("-o").arg(&into).output().expect("it runs");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaints}", self.label());
        into
    }

    /// What the program does without headcount; with its counts, if it can be stepped through.
    fn truth(&self, folder: &TempDir, program: &Path) -> Outcome {
        let mut command = command(folder, program, self.depends_on_addresses());
        command.args(&self.stated.args);
        if self.stated.unstepped {
            let output = answer(command, &self.label());
            return Outcome {
                status: status(output.status),
                stdout: output.stdout,
                ..Outcome::default()
            };
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        count_command(&mut command).expect("the oracle counts it")
    }

    /// All that is wrong with the counts of this program.
    fn disagreements(&self) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let program = self.build(folder.path());
        let truth = self.truth(&folder, &program);
        let engines = ["detour", "breakpoint"].iter();
        let wrong = engines.flat_map(|engine| {
            let wrong = self.disagreements_of(engine, &folder, &program, &truth);
            wrong.into_iter().map(move |it| format!("{engine}: {it}"))
        });
        wrong.map(|it| format!("{}: {it}", self.label())).collect()
    }

    fn disagreements_of(
        &self,
        engine: &str,
        folder: &TempDir,
        program: &Path,
        truth: &Outcome,
    ) -> Vec<String> {
        let mut run = headcount(folder, self.depends_on_addresses());
        run.args([
            "run",
            "-q",
            "--modules",
            "main",
            "--engine",
            engine,
            "-o",
            engine,
            "--",
        ]);
        run.arg(program).args(&self.stated.args);
        let output = answer(run, &self.label());

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
        if !self.stated.unstepped {
            let counted = instructions(folder, engine, program);
            wrong.extend(self.wrong_counts(&counted, &truth.counts));
        }
        if self.flags.contains(&"-O0") {
            if truth.status != self.stated.status {
                wrong.push(format!("status {}, not as stated", truth.status));
            }
            wrong.extend(self.wrong_lines(folder, engine));
            if !self.stated.calls.is_empty() {
                wrong.extend(self.wrong_calls(folder, engine));
            }
        }
        wrong
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

    fn wrong_lines(&self, folder: &TempDir, profile: &str) -> Vec<String> {
        let text = report(folder, profile, "line");
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

    fn wrong_calls(&self, folder: &TempDir, profile: &str) -> Vec<String> {
        let text = report(folder, profile, "function");
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for row in text.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            *counts.entry(fields[1]).or_default() += fields[4].parse::<u64>().expect("a count");
        }
        let stated = self.stated.calls.iter();
        stated
            .map(|(name, stated)| (name, stated, counts.get(name.as_str())))
            .filter(|(_, stated, counted)| *counted != Some(*stated))
            .map(|(name, stated, counted)| format!("{name} ran {stated}, counted {counted:?}"))
            .collect()
    }
}

/// A command as both sides run it. A static program has code that looks at its environment.
fn command(folder: &TempDir, program: &Path, fixed: bool) -> process::Command {
    let mut command = process::Command::new(program);
    command
        .env("HEADCOUNT_DIR", folder.path().join("counts"))
        .env("XDG_CACHE_HOME", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null());
    if fixed {
        at_fixed_addresses(&mut command);
    }
    command
}

/// An exit code, or 128 + signal.
fn status(status: ExitStatus) -> i32 {
    let killed = status.signal().map(|signal| 128 + signal);
    status.code().or(killed).expect("it ended")
}

/// Answers within a minute.
fn answer(command: process::Command, label: &str) -> Output {
    let mut command = Command::from_std(command);
    let output = command.timeout(Duration::from_secs(60)).output();
    output.unwrap_or_else(|error| panic!("{label}: {error}"))
}

fn headcount(folder: &TempDir, fixed: bool) -> process::Command {
    command(folder, Path::new(env!("CARGO_BIN_EXE_headcount")), fixed)
}

fn report(folder: &TempDir, profile: &str, by: &str) -> String {
    let mut report = headcount(folder, false);
    report.args([
        "report",
        profile,
        "--by",
        by,
        "--format",
        "csv",
        "--no-demangle",
    ]);
    let output = answer(report, by);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    String::from_utf8(output.stdout).expect("text")
}

/// `module,function,address,count,text`, of one module.
fn instructions(folder: &TempDir, profile: &str, program: &Path) -> BTreeMap<u64, Counted> {
    let text = report(folder, profile, "instruction");
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
    let mut cases = Vec::new();
    for (index, path) in programs().iter().enumerate() {
        let case = Case::new(path, &["-O0"]);
        let routes = &case.stated.routes;
        if !routes.is_empty() && !routes.iter().any(|route| route == "patch") {
            continue;
        }
        let name = path.file_name().unwrap_or_default();
        // They take turns. Without the oracle, another level would say nothing new.
        let is_quick = !case.stated.unstepped && !TAKE_LONG.iter().any(|it| name == *it);
        if is_quick && (is_thorough() || index % 2 == 0) {
            cases.push(Case::new(path, &["-O2"]));
        }
        if !is_quick || is_thorough() || index % 2 == 1 {
            cases.push(case);
        }
        for (names, flags) in ELSEWHERE {
            if names.iter().any(|it| name == *it) {
                cases.push(Case::new(path, flags));
            }
        }
    }
    cases
}

#[test]
fn the_programs_that_are_counted_elsewhere_are_there() {
    let wanted: usize = ELSEWHERE.iter().map(|(names, _)| names.len()).sum();
    let cases = cases();
    let flags: Vec<_> = ELSEWHERE.iter().map(|(_, flags)| *flags).collect();
    let found = cases.iter().filter(|case| flags.contains(&case.flags));
    assert_eq!(found.count(), wanted);
    assert!(
        cases
            .iter()
            .all(|case| !case.depends_on_addresses() || !case.has_threads())
    );
}

#[test]
fn every_instruction_is_counted_as_the_oracle_counts_it() {
    let found = complaints(cases(), 2, Case::disagreements);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
