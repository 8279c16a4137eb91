//! `headcount-oracle -o FILE [--] PROGRAM [ARG...]`: runs a program step by step and writes how
//! often each instruction of it ran.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

use headcount_oracle::{Outcome, count_command};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match (args.next(), args.next()) {
        (Some(option), Some(file)) if option == "-o" => {
            let command: Vec<OsString> = args.skip_while(|word| word == "--").collect();
            match run(&command, Path::new(&file)) {
                Ok(status) => ExitCode::from(status as u8),
                Err(error) => complain(&error.to_string()),
            }
        }
        _ => complain("usage: headcount-oracle -o FILE [--] PROGRAM [ARG...]"),
    }
}

fn complain(what: &str) -> ExitCode {
    eprintln!("headcount-oracle: {what}");
    ExitCode::from(125)
}

fn run(command: &[OsString], file: &Path) -> io::Result<i32> {
    let Some((program, args)) = command.split_first() else {
        return Err(io::Error::other("no program to run"));
    };
    let outcome = count_command(Command::new(program).args(args))?;
    write(&outcome, file)?;
    Ok(outcome.status)
}

fn write(outcome: &Outcome, file: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    writeln!(out, "address,count")?;
    for (address, count) in &outcome.counts {
        writeln!(out, "{address:#x},{count}")?;
    }
    out.flush()
}
