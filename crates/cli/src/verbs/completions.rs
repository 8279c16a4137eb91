//! Print completions for a shell.

use crate::args::{Completions, Headcount};
use clap::CommandFactory;
use std::io::Write;
use std::process::ExitCode;

pub fn run(args: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut Headcount::command(),
        "headcount",
        &mut script,
    );
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
