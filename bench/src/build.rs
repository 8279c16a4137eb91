//! Is this program built in this way? If not, build it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use headcount_ground::child;
use headcount_ground::program::Program;

use crate::variant::{Tools, Variant};

/// Where a program built in one way lives.
pub fn folder(work: &Path, variant: Variant, program: &Program) -> PathBuf {
    let name = variant.built_as().name().replace(' ', "_");
    work.join(name).join(&program.name)
}

pub fn executable(folder: &Path) -> PathBuf {
    folder.join("program")
}

/// Builds, unless the same command has already built the same files.
pub fn build(work: &Path, tools: &Tools, variant: Variant, program: &Program) -> Result<()> {
    let folder = folder(work, variant, program);
    let executable = executable(&folder);
    fs::create_dir_all(&folder)?;
    let mut command = variant.compiler(tools, program.language);
    command.args(program.compile(&variant.flags(program.language), &executable));
    command.current_dir(&folder);
    let recipe = recipe(&command, program)?;
    let known = folder.join("recipe");
    if executable.exists() && fs::read_to_string(&known).is_ok_and(|known| known == recipe) {
        return Ok(());
    }
    child::run_or_bail(&mut command, &folder, Duration::from_secs(1800))?;
    fs::write(known, recipe)?;
    Ok(())
}

/// All that a build depends on: its words, and which files they were at the time.
fn recipe(command: &Command, program: &Program) -> Result<String> {
    let mut text = child::shown(command);
    let compiler = which(command);
    for file in program.sources.iter().chain(&compiler) {
        let facts = fs::metadata(file).with_context(|| file.display().to_string())?;
        let changed = facts.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
        write!(text, "\n{} {} {changed}", file.display(), facts.len())?;
    }
    Ok(text)
}

/// The program that runs, if it was named by its path.
fn which(command: &Command) -> Option<PathBuf> {
    let program = PathBuf::from(command.get_program());
    program.is_absolute().then_some(program)
}
