//! `cargo headcount`: cargo calls this program, and it becomes `headcount cargo`.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    // Cargo says its own word for us again.
    if words.first().is_some_and(|it| it == "headcount") {
        words.remove(0);
    }
    let beside = std::env::current_exe().ok();
    let beside = beside.map(|it| it.with_file_name("headcount"));
    let program = beside.filter(|it| it.is_file());
    let program = program.unwrap_or_else(|| "headcount".into());
    let mut command = Command::new(&program);
    command.arg("cargo").args(words);
    let error = headcount_monitor::give_back_to(&mut command).exec();
    eprintln!("headcount: {}: cannot be run: {error}", program.display());
    ExitCode::from(127)
}
