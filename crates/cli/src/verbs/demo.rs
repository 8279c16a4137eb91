//! Show a first count: the steps a user would type, each shown before it is done.

use super::doctor::compiler_words;
use crate::args::Demo;
use anyhow::{Context, bail};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Finds the largest of 100,000 random numbers: the first example of Weinberger's paper (1984),
/// and still a good one.
const PROGRAM: &str = include_str!("demo.c");

pub fn run(args: &Demo) -> anyhow::Result<ExitCode> {
    let folder = tempfile::Builder::new()
        .prefix("headcount-demo-")
        .tempdir()
        .context("no folder for the demonstration could be made")?;
    let result = show(folder.path());
    if args.keep {
        let kept = folder.keep();
        tell(&format!(
            "\nThe program and its profile are in {}\n",
            kept.display()
        ))?;
    }
    result
}

fn show(folder: &Path) -> anyhow::Result<ExitCode> {
    std::fs::write(folder.join("max.c"), PROGRAM)?;
    let cc = compiler_words();
    tell("A small program, max.c, looks for the largest of 100,000 random numbers.\n")?;
    tell(
        "\n1. Build it so that it counts itself. Put `headcount cc --` in front of the compiler:\n",
    )?;
    let mut build: Vec<&str> = vec!["headcount", "cc", "--"];
    build.extend(cc.iter().map(String::as_str));
    build.extend(["-O0", "-g", "-o", "max", "max.c"]);
    step(folder, &build)?;
    tell("\n2. Run it, as often as you like. It behaves as always:\n")?;
    step(folder, &["./max"])?;
    tell(
        "\n3. See how often each line ran. A line without a number has no code, ! marks what never\n",
    )?;
    tell(
        "   ran, and beside each condition you see how often it held and how often it did not:\n",
    )?;
    step(folder, &["headcount", "annotate", "max.c"])?;
    tell("\n4. Or ask where the instructions went:\n")?;
    step(folder, &["headcount", "report", "--by", "function"])?;
    tell("\nThat is all. `headcount --help` has the other verbs.\n")?;
    Ok(ExitCode::SUCCESS)
}

fn tell(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Shows a command, and does it.
fn step(folder: &Path, words: &[&str]) -> anyhow::Result<()> {
    tell(&format!("\n   $ {}\n\n", words.join(" ")))?;
    let mut command = match words[0] {
        "headcount" => Command::new(std::env::current_exe()?),
        "./max" => {
            let mut program = Command::new(folder.join("max"));
            program.arg0("./max"); // as the user would start it
            program
        }
        other => bail!("{other} is no step of the demonstration"),
    };
    let status = command
        .args(&words[1..])
        .current_dir(folder)
        // The demonstration is about its own folder, wherever the user keeps other counts.
        .env_remove(headcount_wire::FOLDER_VARIABLE)
        // One step comes after the other; none waits in a pager.
        .env("HEADCOUNT_PAGER", "cat")
        .status()
        .with_context(|| format!("`{}` could not be started", words.join(" ")))?;
    match status.success() {
        true => Ok(()),
        false => bail!(
            "`{}` failed; `headcount doctor` says what this machine lacks",
            words.join(" ")
        ),
    }
}
