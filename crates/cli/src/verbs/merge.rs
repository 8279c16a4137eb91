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
    let old = match merged.already_there {
        0 => String::new(),
        old => format!(", {} were there already", thousands(old as u64)),
    };
    talk::say(format!(
        "{}: {} runs added{old}",
        args.output.display(),
        thousands(merged.added as u64)
    ));
    Ok(match merged.broken.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}
