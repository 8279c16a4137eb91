//! Take the counts of programs built with `headcount cc` into the profile.

use crate::args::Collect;
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &Collect) -> anyhow::Result<ExitCode> {
    let _ = (&args.dirs, &args.output, &args.running);
    let _ = (&args.core, &args.program, args.keep);
    anyhow::bail!("this verb is not built yet")
}

/// Takes the counts that lie in the default folder into this profile.
pub fn collect_pending(profile: &Path) -> anyhow::Result<()> {
    let _ = profile;
    Ok(())
}
