//! The page as bytes. `crates/cli/tests/suite/page.rs` opens it in a browser.

use super::*;
use headcount_model::Module;
use std::io::Write as _;
use std::process::{Command, Stdio};

fn page(counted: &[Counted], runs: &[RunFacts], notes: &[&str]) -> String {
    write(&Page {
        calls: &[],
        values: &[],
        tallied: &Default::default(),
        counted,
        runs,
        notes: notes.iter().map(|it| (*it).to_owned()).collect(),
        only: Default::default(),
        own: &Own::new(counted, Default::default()),
        demangle: true,
        assembly: true,
        decode: &|_| Vec::new(),
        transfers: &|_| Default::default(),
        pointers: &|_| Default::default(),
        with_checks: false,
        events: Default::default(),
        shows_events: false,
        changes: None,
        source: &|_| None,
        samples: &[],
        runtimes: &[],
        times_counted: None,
    })
    .unwrap()
}

#[test]
fn the_policy_names_the_very_script() {
    let mut digest = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = format!("\n{SCRIPT}");
    let mut stdin = digest.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let output = digest.wait_with_output().unwrap().stdout;
    let digits = String::from_utf8(output).unwrap();
    let bytes: Vec<u8> = (0..32)
        .map(|it| u8::from_str_radix(&digits[2 * it..2 * it + 2], 16).unwrap())
        .collect();
    assert_eq!(
        SCRIPT_SHA256.trim(),
        pack::base64(&bytes),
        "src/html/page/script.sha256 should be what is on the right"
    );
    assert!(page(&[], &[], &[]).contains(&format!("<script>{text}</script>")));
}

#[test]
fn a_page_of_nothing_is_a_page_and_asks_for_nothing_outside() {
    let page = page(&[], &[], &[]);
    assert!(page.starts_with("<!doctype html>\n"));
    assert!(page.ends_with("</html>\n"));
    assert!(
        !page.contains("{{"),
        "a place of the template was not filled"
    );
    for outside in ["src=", "http://", "https://", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn names_never_become_markup() {
    let name = "</title><script>alert(1)</script>";
    let run = RunFacts {
        command: vec![format!("/bin/{name}")],
        ..RunFacts::default()
    };
    let counted = [Counted {
        module: Module {
            path: name.into(),
            files: vec![name.into()],
            ..Module::default()
        },
        functions: Vec::new(),
        sources: Default::default(),
    }];
    let page = page(&counted, &[run], &[name]);
    assert!(!page.contains("alert(1)</script>"));
    // The last part of the path is `script>`.
    assert!(page.contains("<title>script&gt; - headcount</title>"));
}

/// All scripts are one: where two define the same name, the last would silently win.
#[test]
fn no_name_in_the_script_is_defined_twice() {
    let mut names: Vec<&str> = SCRIPT
        .lines()
        .filter_map(|line| {
            line.strip_prefix("async ")
                .unwrap_or(line)
                .strip_prefix("function")
        })
        .filter_map(|rest| rest.trim_start_matches(['*', ' ']).split('(').next())
        .collect();
    names.sort_unstable();
    assert!(names.len() > 50);
    assert!(names.windows(2).all(|it| it[0] != it[1]), "{names:?}");
}

#[test]
fn only_what_never_happened_has_its_colour() {
    let rule = |of: &str| STYLE.lines().find(|line| line.starts_with(of)).unwrap();
    assert!(rule(".line .outcome.not ").contains("--never"));
    assert!(!rule(".line .outcome.partial ").contains("--never"));
    assert!(SCRIPT.contains("it.words === \"never\" ? \"outcome not\""));
}
