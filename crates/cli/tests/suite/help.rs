//! What `--help`, the manual pages and the completions say. All are made of `src/args.rs`.

use assert_cmd::Command;

fn headcount(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_headcount"))
        .args(words)
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

const VERBS: &[&str] = &[
    "annotate",
    "attach",
    "cargo",
    "cc",
    "collect",
    "completions",
    "csource",
    "demo",
    "diff",
    "doctor",
    "explain",
    "export",
    "html",
    "icon",
    "man",
    "mark",
    "merge",
    "query",
    "report",
    "run",
    "runs",
    "stat",
    "time",
    "watch",
];

#[test]
fn the_list_of_verbs_is_whole() {
    let help = headcount(&["--help"]);
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let is_verb = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let verbs = commands.lines().filter(is_verb);
    let mut verbs: Vec<&str> = verbs
        .filter_map(|it| it.split_whitespace().next())
        .filter(|it| *it != "help")
        .collect();
    verbs.sort_unstable();
    assert_eq!(verbs, VERBS);
}

#[test]
fn help_is_as_reviewed() {
    insta::assert_snapshot!("help", headcount(&["--help"]));
    for verb in VERBS {
        let help = headcount(&[verb, "--help"]);
        assert_eq!(headcount(&["help", verb]), help);
        insta::assert_snapshot!(format!("help-{verb}"), help);
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    headcount(&["man", "--dir", folder.path().to_str().unwrap()]);
    for verb in VERBS {
        let page = folder.path().join(format!("headcount-{verb}.1"));
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains(".SH EXAMPLES"), "{verb}");
    }
    assert!(headcount(&["man"]).contains("headcount"));
}

#[test]
fn completions_know_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        let script = headcount(&["completions", shell]);
        assert!(VERBS.iter().all(|verb| script.contains(verb)), "{shell}");
    }
}

#[test]
fn doctor_speaks_json() {
    let output = Command::new(env!("CARGO_BIN_EXE_headcount"))
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(findings["version"], 1);
    assert_eq!(findings["can"]["cc"], true);
    // Tests of `run` need it, too.
    assert_eq!(findings["can"]["run"], true);
    let all = findings["findings"].as_array().unwrap();
    for name in [
        "compiler",
        "kernel",
        "tracing a child",
        "attaching",
        "/proc",
    ] {
        let finding = all.iter().find(|it| it["name"] == name).expect(name);
        for field in ["verdict", "found", "cure"] {
            assert!(finding[field].is_string(), "{name}: {field}");
        }
    }
}

#[test]
fn a_wrong_word_is_an_error_of_status_2() {
    for words in [
        &["frobnicate"][..],
        &["report", "--by", "nothing"],
        &["report", "--runs", "x"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_headcount"))
            .args(words)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
}

/// In front of a program, a word that is no option of ours is not taken for the program.
#[test]
fn an_option_that_is_misspelt_is_named() {
    for verb in ["run", "stat", "cc", "cargo"] {
        let said = Command::new(env!("CARGO_BIN_EXE_headcount"))
            .args([verb, "--nonsense", "--", "true"])
            .output()
            .expect("headcount runs");
        let talk = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(125), "{verb}: {talk}");
        assert!(talk.contains("unexpected argument '--nonsense'"), "{talk}");
    }
}
