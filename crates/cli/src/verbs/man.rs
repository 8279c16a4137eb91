//! Write the manual pages.

use crate::args::{Headcount, Man};
use anyhow::Context;
use clap::{Command, CommandFactory};
use std::io::Write;
use std::process::ExitCode;

pub fn run(args: &Man) -> anyhow::Result<ExitCode> {
    let mut command = Headcount::command();
    command.build(); // gives every verb its full name
    let Some(dir) = &args.dir else {
        std::io::stdout().write_all(&page(&command)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let cannot = || format!("{}: cannot be written", dir.display());
    std::fs::create_dir_all(dir).with_context(cannot)?;
    // `help` says what its page would.
    let verbs = command
        .get_subcommands()
        .filter(|it| it.get_name() != "help");
    for command in std::iter::once(&command).chain(verbs) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let file = dir.join(format!("{name}.1"));
        std::fs::write(file, page(command)?).with_context(cannot)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One manual page, with the examples that open `--help` in a section of their own.
fn page(command: &Command) -> anyhow::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if let Some(examples) = command.get_before_help() {
        page.extend(examples_section(&examples.to_string()).into_bytes());
    }
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if command.get_after_help().is_some() {
        man.render_extra_section(&mut page)?;
    }
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// The lines as they are; a backslash, a minus, and a period or an apostrophe at the beginning
/// of a line mean something to roff.
fn examples_section(examples: &str) -> String {
    let mut out = ".SH EXAMPLES\n.nf\n".to_owned();
    for line in examples.lines().skip(1) {
        let line = line.trim_start().replace('\\', "\\e").replace('-', "\\-");
        out.push_str(&format!("\\&{line}\n"));
    }
    out.push_str(".fi\n");
    out
}
