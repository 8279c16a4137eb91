//! Put the runs of several profiles into one.

use crate::args::Merge;
use crate::{progress, talk};
use anyhow::bail;
use headcount_report::thousands;
use std::process::ExitCode;

pub fn run(args: &Merge) -> anyhow::Result<ExitCode> {
    let what = format!("merging {} profiles", args.inputs.len());
    let merged = progress::during(&what, || {
        headcount_profile::merge(&args.inputs, &args.output, |_| ())
    })?;
    for error in &merged.broken {
        talk::say(format!("left out: {error}"));
    }
    if merged.broken.len() == args.inputs.len() {
        bail!("nothing was merged");
    }
    let added = match merged.added {
        1 => "1 run added".to_owned(),
        added => format!("{} runs added", thousands(added as u64)),
    };
    let old = match merged.already_there {
        0 => String::new(),
        old => format!(", {} already there", thousands(old as u64)),
    };
    talk::say(format!("{}: {added}{old}", args.output.display()));
    Ok(match merged.broken.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}
