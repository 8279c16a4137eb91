//! `headcount icon`: translates an Icon program, runs it and counts it.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::args::{Icon, ProgramArgument, Run, Then};

/// Runs the verb. The exit status is the program's.
pub fn run(args: &Icon) -> Result<ExitCode> {
    let name = args.program.file_stem().unwrap_or_default();
    if name.is_empty() {
        bail!(
            "{} is no Icon program: name a file NAME.icn",
            args.program.display()
        );
    }
    let folder = tempfile::tempdir().context("a folder for the translated program")?;
    let translated = folder.path().join(name);
    let mut translator = Command::new("icont");
    translator
        .arg("-s")
        .arg("-o")
        .arg(&translated)
        .arg(&args.program);
    let status = translator.status().context(
        "icont, which translates Icon programs, cannot be run: is the package icont installed?",
    )?;
    if !status.success() {
        bail!("{} was not translated", args.program.display());
    }
    let mut command = vec!["iconx".into(), translated.into_os_string()];
    command.extend(args.arguments.iter().cloned());
    super::run::run(&Run {
        counting: args.counting.clone(),
        program: ProgramArgument {
            no_follow: false,
            wait: false,
            command,
        },
        time: args.time,
        watch: false,
        until: None,
        then: Then::Stop,
        no_lists: false,
    })
}
