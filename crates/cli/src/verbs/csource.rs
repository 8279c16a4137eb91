//! `headcount csource`: C in, C that counts itself out.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use headcount_csource::{Declarations, Options};
use headcount_model::Refusal;

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
    let counted = match raw {
        Some(counted) => counted,
        None => counted(args, &preprocessed(args)?, false)?,
    };
    for it in counted.refused.iter().chain(&counted.unexpanded) {
        talk::say(format!(
            "{}:{}: not counted: {}: {}",
            it.file, it.line, it.subject, it.reason
        ));
    }
    output::write_bytes(args.output.as_deref(), &counted.text)?;
    Ok(ExitCode::SUCCESS)
}

/// A text that counts, and what of it is not counted.
struct CountedText {
    text: Vec<u8>,
    /// What cannot be counted; of a text that was not preprocessed, not as it is.
    refused: Vec<Refusal>,
    /// What macros stand for that were to stay.
    unexpanded: Vec<Refusal>,
}

/// The text counted as the user wrote it, macros and all; if it can be.
fn counted_raw(args: &Csource, written: &[u8]) -> Option<CountedText> {
    let name = args.file.display();
    let reason = match counted(args, written, true) {
        Ok(counted) => match counted.refused.first() {
            None => return Some(counted),
            Some(it) => format!("{}:{}: {}: {}", it.file, it.line, it.subject, it.reason),
        },
        Err(error) => format!("{error:#}"),
    };
    talk::say(format!("{name}: preprocessed after all: {reason}"));
    None
}

fn counted(args: &Csource, text: &[u8], is_raw: bool) -> Result<CountedText> {
    let name = args.file.to_string_lossy().into_owned();
    let folder = env::current_dir().unwrap_or_default();
    let wish = Wish {
        options: Options {
            name: name.clone(),
            is_raw,
            declarations: Declarations::AsWritten,
            ..Options::default()
        },
        every_block: args.every_block,
        folder: folder.to_string_lossy().into_owned(),
    };
    let dialect = Portable::new(&name, text);
    let counted = planned::count(text, &wish, &dialect)?;
    let mut refusals = counted.map.refusals.clone();
    let unexpanded = refusals.split_off(refusals.len() - counted.unexpanded);
    let mut out = dialect.opening(counted.map.counters()).into_bytes();
    if is_raw {
        out.extend_from_slice(format!("#line 1 \"{}\"\n", name.replace('"', "\\\"")).as_bytes());
    }
    out.extend_from_slice(&counted.text);
    out.extend_from_slice(dialect.ending(&counted).as_bytes());
    Ok(CountedText {
        text: out,
        refused: refusals,
        unexpanded,
    })
}

/// What preprocesses a file if neither the user nor the environment says so.
const PREPROCESSOR: &str = "cc -E";

fn preprocessed(args: &Csource) -> Result<Vec<u8>> {
    let (whence, command) = preprocessor(args.cpp.as_deref(), env::var("CPP").ok().as_deref());
    let words = words(&command);
    let [program, rest @ ..] = words.as_slice() else {
        bail!("--cpp: say a command such as '{PREPROCESSOR}'");
    };
    let output = Command::new(program)
        .args(rest)
        .arg(Path::new(&args.file))
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| {
            format!("cannot run the preprocessor `{command}` ({whence}); --cpp names another")
        })?;
    if !output.status.success() {
        bail!("{}: `{command}` failed ({whence})", args.file.display());
    }
    Ok(output.stdout)
}

/// Who names the command that preprocesses, and that command: the user, or the environment as for
/// `make`.
fn preprocessor(option: Option<&str>, variable: Option<&str>) -> (&'static str, String) {
    let variable = variable.filter(|it| !it.trim().is_empty());
    match (option, variable) {
        (Some(command), _) => ("from --cpp", command.to_owned()),
        (None, Some(command)) => ("from CPP in the environment", command.to_owned()),
        (None, None) => ("the default", PREPROCESSOR.to_owned()),
    }
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
    fn the_preprocessor_is_the_users_before_that_of_the_environment() {
        let chosen = |option, variable| preprocessor(option, variable).1;
        assert_eq!(chosen(Some("a -E"), Some("b")), "a -E");
        assert_eq!(chosen(None, Some("b -P")), "b -P");
        assert_eq!(chosen(None, Some(" ")), PREPROCESSOR);
        assert_eq!(chosen(None, None), PREPROCESSOR);
    }

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(
            words("gcc -E  '-DX=a b' \"\""),
            ["gcc", "-E", "-DX=a b", ""]
        );
        assert!(words("  ").is_empty());
    }
}
