//! Would this suite notice if counters were missing? A judge that never says
//! no is no judge.

use std::path::PathBuf;
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

fn ten_programs(work: &str, variables: &[(&str, &str)]) -> Output {
    let work = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(work);
    Command::new(env!("CARGO_BIN_EXE_headcount-torture"))
        .args(["--sample", "10", "--levels", "O0,O2", "--headcount"])
        .arg(headcount())
        .arg("--work")
        .arg(work)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams
        .map(|stream| String::from_utf8_lossy(stream).into_owned())
        .join("\n")
}

#[test]
fn a_whole_instrumenter_passes() {
    let output = ten_programs("whole", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

/// The variable makes the inserter leave out every seventh probe.
#[test]
fn a_broken_instrumenter_is_caught() {
    let output = ten_programs("broken", &[("HEADCOUNT_TEST_BREAK", "1")]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let caught = text
        .lines()
        .filter(|line| line.starts_with("FAILED: ") && line.contains(", callgrind "));
    assert!(
        caught.count() > 0,
        "nothing but the counts can show a missing counter:\n{text}"
    );
}
