//! Which Debian packages are there?

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use headcount_ground::child;

/// The names of all packages that are installed.
pub fn installed(folder: &Path) -> Result<BTreeSet<String>> {
    let mut ask = Command::new("dpkg-query");
    ask.args(["-W", "-f", "${db:Status-Status} ${Package}\n"]);
    let told = child::run_or_bail(&mut ask, folder, Duration::from_secs(60))
        .context("only Debian has dpkg-query")?;
    let told = String::from_utf8_lossy(&told);
    let names = told.lines().filter_map(|it| it.strip_prefix("installed "));
    Ok(names.map(str::to_owned).collect())
}

/// Installs them, as root or through sudo. What cannot be had is told, and is no failure: what
/// needs it will be skipped.
pub fn install(names: &BTreeSet<String>) -> Result<()> {
    if names.is_empty() || apt_get(names)? {
        return Ok(());
    }
    // One that is not in the archive keeps all others away.
    for name in names {
        if !apt_get(&BTreeSet::from([name.clone()]))? {
            eprintln!("headcount-real: {name} cannot be installed");
        }
    }
    Ok(())
}

fn apt_get(names: &BTreeSet<String>) -> Result<bool> {
    let words = [
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "-y",
        "-qq",
    ];
    let more = [
        "-o",
        "DPkg::Lock::Timeout=600",
        "--no-install-recommends",
        "install",
    ];
    let sudo = (!nix::unistd::geteuid().is_root()).then_some("sudo");
    let mut all = sudo.into_iter().chain(words).chain(more);
    let Some(first) = all.next() else {
        bail!("no words")
    };
    let mut command = Command::new(first);
    command.args(all).args(names);
    let status = command.status().with_context(|| child::shown(&command))?;
    Ok(status.success())
}
