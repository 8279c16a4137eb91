//! The program `headcount`: the only crate that prints, reads the environment and ends the
//! process.

mod args;
mod assembler;
mod counters;
mod module;
mod verbs;
use std::path::PathBuf;
use std::process::ExitCode;

/// The compiler could not be run.
#[derive(Debug, thiserror::Error)]
#[error("cannot be run")]
pub struct CannotRun {
    pub status: u8,
}
pub fn say(text: std::fmt::Arguments) {
    eprintln!("headcount: {text}");
}
pub fn default_profile() -> PathBuf {
    "headcount.db".into()
}
fn main() -> ExitCode {
    let mut all = std::env::args_os();
    let name = all.next().unwrap_or_default();
    if std::path::Path::new(&name).file_name().is_some_and(|name| name == "as") {
        return assembler::run(all.collect()).unwrap_or_else(|e| {
            say(format_args!("{e:#}"));
            ExitCode::FAILURE
        });
    }
    let words: Vec<_> = all.collect();
    let r: anyhow::Result<()> = match words[0].to_str().unwrap() {
        "cc" => verbs::cc::run(&words[2..]).map(|_| ()),
        "collect" => verbs::collect::run(&args::CollectArgs::default()),
        "dump" => dump(),
        _ => Ok(()),
    };
    match r {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            say(format_args!("{e:#}"));
            ExitCode::FAILURE
        }
    }
}
fn dump() -> anyhow::Result<()> {
    let p = headcount_profile::Profile::open(&default_profile())?;
    let l = p.load(&headcount_profile::RunSelection::Last)?;
    for c in &l.counted {
        for (f, n) in c.module.functions.iter().zip(&c.functions) {
            let ex: u64 = f.blocks.iter().zip(&n.blocks).map(|(b, n)| u64::from(b.instructions) * n).sum();
            println!("{},{},{ex}", f.name, n.blocks.first().unwrap_or(&0));
        }
    }
    Ok(())
}
