//! `headcount csource`: C in, C that counts itself out.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use headcount_csource::Options;

use crate::args::Csource;
use crate::output;
use crate::source_route::planned::{self, Wish};
use crate::source_route::portable::Portable;
use crate::talk;

/// Counts one file.
pub fn run(args: &Csource) -> Result<ExitCode> {
    let written = fs::read(&args.file).with_context(|| args.file.display().to_string())?;
    let raw = match args.no_cpp {
        true => counted_raw(args, &written),
        false => None,
    };
    let text = match raw {
        Some(text) => text,
        None => {
            let text = preprocessed(args)?;
            counted(args, &text, false)?
        }
    };
    output::write_bytes(args.output.as_deref(), &text)?;
    Ok(ExitCode::SUCCESS)
}

/// The text counted as the user wrote it, macros and all; if it can be.
fn counted_raw(args: &Csource, written: &[u8]) -> Option<Vec<u8>> {
    let name = args.file.display();
    let reason = match counted_with(args, written, true) {
        Ok((text, refusals)) if refusals.is_empty() => return Some(text),
        Ok((_, refusals)) => {
            let first = &refusals[0];
            format!(
                "{}:{}: {}: {}",
                first.file, first.line, first.subject, first.reason
            )
        }
        Err(error) => format!("{error:#}"),
    };
    talk::say(format!("{name}: preprocessed after all: {reason}"));
    None
}

fn counted(args: &Csource, text: &[u8], is_raw: bool) -> Result<Vec<u8>> {
    let (text, refusals) = counted_with(args, text, is_raw)?;
    for it in refusals {
        talk::say(format!(
            "{}:{}: not counted: {}: {}",
            it.file, it.line, it.subject, it.reason
        ));
    }
    Ok(text)
}

fn counted_with(
    args: &Csource,
    text: &[u8],
    is_raw: bool,
) -> Result<(Vec<u8>, Vec<headcount_model::Refusal>)> {
    let name = args.file.to_string_lossy().into_owned();
    let folder = env::current_dir().unwrap_or_default();
    let wish = Wish {
        options: Options {
            name: name.clone(),
            is_raw,
            ..Options::default()
        },
        every_block: args.every_block,
        folder: folder.to_string_lossy().into_owned(),
    };
    let dialect = Portable::new(&name, text);
    let counted = planned::count(text, &wish, &dialect)?;
    let refusals = counted.map.refusals.clone();
    let mut out = dialect.opening(counted.map.counters()).into_bytes();
    if is_raw {
        out.extend_from_slice(format!("#line 1 \"{}\"\n", name.replace('"', "\\\"")).as_bytes());
    }
    out.extend_from_slice(&counted.text);
    out.extend_from_slice(dialect.ending(&counted).as_bytes());
    Ok((out, refusals))
}

fn preprocessed(args: &Csource) -> Result<Vec<u8>> {
    let words = words(&args.cpp);
    let [program, rest @ ..] = words.as_slice() else {
        bail!("--cpp: say a command such as 'cc -E'");
    };
    let output = Command::new(program)
        .args(rest)
        .arg(Path::new(&args.file))
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("--cpp: cannot run {program}"))?;
    if !output.status.success() {
        bail!("{}: `{}` failed", args.file.display(), args.cpp);
    }
    Ok(output.stdout)
}

/// The words of a command; quotes keep spaces together.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in command.chars() {
        match (letter, quote) {
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, Some(open)) if letter == open => quote = None,
            (' ' | '\t', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(
            words("gcc -E  '-DX=a b' \"\""),
            ["gcc", "-E", "-DX=a b", ""]
        );
        assert!(words("  ").is_empty());
    }
}
