//! `docs/tour.md`, as a new user follows it: every command is run, in one folder, in order, and what
//! the page shows is what comes out.

use crate::workshop::{HEADCOUNT, Workshop, said};
use std::path::Path;

/// A command and what the page shows of its output.
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The blocks of the page that are in a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1);
    blocks.map(|it| it.split("```").next().unwrap()).collect()
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in blocks(page, "console").iter().flat_map(|it| it.lines()) {
        match line.strip_prefix("$ ") {
            Some(command) => steps.push(Step {
                command: command.to_owned(),
                shown: Vec::new(),
            }),
            None => steps.last_mut().unwrap().shown.push(line.to_owned()),
        }
    }
    steps
}

/// Are these the lines that are shown? `...` alone is any number of lines, and within a line it is
/// any text.
fn is_shown(shown: &[String], lines: &[&str]) -> bool {
    match (shown, lines) {
        ([], lines) => lines.is_empty(),
        ([dots, rest @ ..], _) if dots == "..." => {
            (0..=lines.len()).any(|skip| is_shown(rest, &lines[skip..]))
        }
        ([_, ..], []) => false,
        ([one, rest @ ..], [line, more @ ..]) => is_like(one, line) && is_shown(rest, more),
    }
}

fn is_like(shown: &str, line: &str) -> bool {
    let Some((before, after)) = shown.split_once("...") else {
        return shown == line;
    };
    let ends = |rest: &str| {
        (0..=rest.len()).any(|at| rest.is_char_boundary(at) && is_like(after, &rest[at..]))
    };
    line.strip_prefix(before).is_some_and(ends)
}

#[test]
fn every_command_of_the_tour_does_what_it_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tour.md");
    let page = std::fs::read_to_string(page).unwrap();
    let shop = Workshop::new();
    shop.write("words.c", blocks(&page, "c")[0]);
    let folder = Path::new(HEADCOUNT).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let steps = steps(&page);
    assert!(steps.len() > 20, "{}", steps.len());
    for Step { command, shown } in &steps {
        let mut shell = shop.command("bash");
        shell.args(["-o", "pipefail", "-c", command]);
        for name in ["CARGO", "CARGO_TARGET_DIR", "RUSTFLAGS"] {
            shell.env_remove(name);
        }
        let said = said(shell.env("PATH", &path));
        let lines = match command.contains("echo \"status") {
            // There the page shows what the program complains of, too.
            true => format!("{}{}", said.stderr, said.stdout),
            false => said.stdout.clone(),
        };
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(said.status, Some(0), "{command}\n{said:?}");
        assert!(
            is_shown(shown, &lines),
            "$ {command}\nshows\n{}\nand not\n{}\n{}",
            lines.join("\n"),
            shown.join("\n"),
            said.stderr
        );
    }
    assert!(shop.path("words.html").is_file());
}

#[test]
fn dots_stand_for_lines_and_for_text() {
    let shown = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    assert!(is_shown(&shown("a\n...\nc"), &["a", "c"]));
    assert!(is_shown(&shown("a\n...\nc"), &["a", "b", "b", "c"]));
    assert!(!is_shown(&shown("a\n...\nc"), &["a", "b"]));
    assert!(is_shown(&shown("a ... c"), &["a b c"]));
    assert!(!is_shown(&shown("a ... c"), &["a b d"]));
    assert!(!is_shown(&shown(""), &["a"]));
}
