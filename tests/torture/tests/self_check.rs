//! Would this suite notice if counters were missing? A judge that never says
//! no is no judge.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The tool under test: the one named by `HEADCOUNT`, or this workspace's own.
fn headcount() -> PathBuf {
    if let Some(named) = std::env::var_os("HEADCOUNT") {
        return named.into();
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "-p", "headcount"])
        .status()
        .unwrap();
    assert!(built.success(), "headcount does not build");
    let ours = PathBuf::from(env!("CARGO_BIN_EXE_headcount-torture"));
    ours.with_file_name("headcount")
}

/// A check in a folder of its own; the suite is unpacked once for all.
fn torture(work: &str, headcount: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headcount-torture"));
    command.arg("--unpacked").arg(folder("gcc-suite"));
    command.arg("--work").arg(folder(work));
    command.arg("--headcount").arg(headcount);
    command
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn ten_programs(route: &str, work: &str, headcount: &Path, variables: &[(&str, &str)]) -> Output {
    torture(work, headcount)
        .args(["--sample", "10", "--levels", "O0,O2", "--route", route])
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// A tool that tells what the real one tells, after `sed` has been at its
/// reports by this unit.
fn liar(by: &str, edit: &str) -> PathBuf {
    let asked = format!("*'--by {by} '*csv*");
    let sed = format!("| sed '{edit}'");
    impostor(by, &asked, &sed)
}

/// A tool that does what the real one does; where it is asked in these words, with more behind it.
fn impostor(name: &str, asked: &str, behind: &str) -> PathBuf {
    let folder = folder("liar").join(name);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("headcount");
    let real = headcount();
    let real = real.display();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n{asked}) '{real}' \"$@\" {behind} ;;\n\
         *) exec '{real}' \"$@\" ;;\nesac\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn failures(output: &Output, part: &str) -> usize {
    let text = text(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let failed = text.lines().filter(|line| line.starts_with("FAILED"));
    failed.filter(|line| line.contains(part)).count()
}

fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams
        .map(|stream| String::from_utf8_lossy(stream).into_owned())
        .join("\n")
}

#[test]
fn a_whole_instrumenter_passes() {
    let output = ten_programs("cc", "whole", &headcount(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

/// The variable makes the inserter leave out every seventh probe.
#[test]
fn a_broken_instrumenter_is_caught() {
    let broken = [("HEADCOUNT_TEST_BREAK", "1")];
    let output = ten_programs("cc", "broken", &headcount(), &broken);
    assert!(
        failures(&output, ", callgrind ") > 0,
        "nothing but the counts can show a missing counter:\n{}",
        text(&output)
    );
}

/// One after the other, because they share a folder.
#[test]
fn a_monitor_passes_if_it_tells_the_truth_and_not_if_it_lies() {
    let output = ten_programs("run", "run", &headcount(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));

    // One instruction of each program, the first of all, ran once more than it did.
    let edit = r"s/\(,_start,0x[0-9a-f]*\),1,\(.*%ebp\)/\1,2,\2/";
    let output = ten_programs("run", "run", &liar("instruction", edit), &[]);
    let caught = failures(&output, ": headcount 2, single step 1");
    assert_eq!(caught, 20, "{}", text(&output));

    // Every line that ran once ran twice.
    let edit = r"s/\.c,\([0-9]*\),1,/.c,\1,2,/";
    let output = ten_programs("run", "run", &liar("line", edit), &[]);
    let caught = failures(&output, ": headcount 2, gcov 1");
    assert!(caught >= 10, "{}", text(&output));

    // Here, because it shares the folder.
    what_runs_uncounted_is_caught_in_bare_programs();
}

/// A tool that knows nothing of the first routine of each program.
fn what_runs_uncounted_is_caught_in_bare_programs() {
    let check = |headcount: &Path| {
        torture("run", headcount)
            .args(["--route", "run", "--bare", "--flags", "-fno-pie -no-pie"])
            .args(["--sample", "10", "--levels", "O0"])
            .output()
            .unwrap()
    };
    let output = check(&headcount());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));

    let output = check(&liar("instruction", "/,_start,/d"));
    let caught = failures(&output, " 11 at 0x40");
    assert_eq!(caught, 10, "{}", text(&output));
}

/// Two inserters that are wrong on purpose, and the right one. A counter outside of the braces
/// changes what programs do; a statement that is lost is seen by those who count, too.
#[test]
fn source_is_counted_rightly_and_wrong_inserters_are_caught() {
    let output = ten_programs("source", "source", &headcount(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));

    let broken = [("HEADCOUNT_TEST_BREAK", "braces")];
    let output = ten_programs("source", "source", &headcount(), &broken);
    let caught = failures(&output, "does not pass when counted");
    assert!(caught >= 10, "{}", text(&output));

    let broken = [("HEADCOUNT_TEST_BREAK", "arms")];
    let output = ten_programs("source", "source", &headcount(), &broken);
    let caught = failures(&output, "");
    let by_counts = failures(&output, ", clang ") + failures(&output, ", gcov ");
    assert!(caught > 0 && by_counts > 0, "{}", text(&output));

    // Here, because it shares the folder.
    a_warning_that_counting_brings_is_caught();
}

/// A variable that nobody uses, in a text that was counted; and a word too many while compiling.
fn a_warning_that_counting_brings_is_caught() {
    let check = |headcount: &Path| {
        torture("source", headcount)
            .args(["--route", "source", "--warnings"])
            .args(["--sample", "8", "--levels", "O2"])
            .output()
            .unwrap()
    };
    let output = check(&headcount());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));

    let adds = "&& for it do :; done && echo 'static int nobody;' >> \"$it\"";
    let output = check(&impostor("variable", "csource*", adds));
    assert!(failures(&output, " csource: ") > 0, "{}", text(&output));

    let output = check(&impostor("word", "'cc --via'*", "&& echo careful >&2"));
    let caught = failures(&output, " cc --via source: ");
    assert!(caught > 0, "{}", text(&output));
}

#[test]
fn lines_that_are_told_wrongly_fail_the_table() {
    let table = |headcount: &Path| {
        torture("lines", headcount)
            .args(["--lines", "--levels", "O0", "--only", "optimised_recursion"])
            .output()
            .unwrap()
    };
    let honest = table(&headcount());
    assert!(text(&honest).contains("pass: C gcc -O0\n"), "{honest:?}");
    assert_eq!(honest.status.code(), Some(0), "{honest:?}");
    // Counts begin with a nine.
    let lie = r"s/^\([^,]*,[0-9]*\),\([0-9]\)/\1,9\2/";
    let liar = impostor("table", "*'--by line '*csv*", &format!("| sed '{lie}'"));
    let lying = table(&liar);
    let failed = "FAIL: C gcc -O0: silent 100.00";
    assert!(text(&lying).contains(failed), "{lying:?}");
    assert_eq!(lying.status.code(), Some(1), "{lying:?}");
}
