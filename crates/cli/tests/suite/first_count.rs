//! What a newcomer does first. Needs a C compiler, as users do.

use assert_cmd::Command;

fn headcount(words: &[&str]) -> (String, String, i32) {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_headcount"))
        .args(words)
        .env("HOME", home.path())
        .env_remove("XDG_CACHE_HOME")
        .env_remove("CC")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let status = output.status.code().unwrap();
    (text(output.stdout), text(output.stderr), status)
}

#[test]
fn the_demonstration_counts_what_it_says() {
    let (shown, talk, status) = headcount(&["demo"]);
    assert_eq!(status, 0, "{talk}");
    for line in [
        "$ headcount cc -- cc -O0 -g -o max max.c",
        "| enum { HOW_MANY = 100000 };",
        "100,000 █   13 |     for (int i = 1; i < how_many; i++)  <- taken 99,999 / not 1",
        " 99,999 █   14 |         if (among[i] > among[best])  <- taken 11 / not 99,988",
        "100,001 █   24 |     for (int i = 0; i < HOW_MANY; i++)  <- taken 100,000 / not 1",
        "      0 !   29 |         puts(\"this line never runs\");",
        "Not counted: nothing.",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
}

#[test]
fn the_doctor_tries_a_count() {
    let (shown, talk, status) = headcount(&["doctor"]);
    assert_eq!(status, 0, "{shown}{talk}");
    assert!(shown.contains("ok  a trial count      works\n"), "{shown}");
    assert!(
        shown.contains("ok  tracing a child    works, so `run` does\n"),
        "{shown}"
    );
}

#[test]
fn without_a_compiler_the_doctor_still_finds_a_way_to_count() {
    let output = Command::new(env!("CARGO_BIN_EXE_headcount"))
        .arg("doctor")
        .env("CC", "/no/such/compiler")
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("NO  compiler "), "{shown}");
    assert!(
        shown.contains("with `headcount run` but not with `headcount cc`"),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(0), "{shown}");
}
