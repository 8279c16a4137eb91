//! Where do the sources of projects come from?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use headcount_ground::child;

const PATIENCE: Duration = Duration::from_secs(600);

/// Debian's archive of sources, with lists of our own: those of the machine stay as they are.
pub struct Archive {
    folder: PathBuf,
}

impl Archive {
    pub fn new(work: &Path) -> Result<Archive> {
        let folder = work.join("archive");
        fs::create_dir_all(folder.join("lists/partial"))?;
        let line = format!("deb-src http://deb.debian.org/debian {} main\n", release()?);
        fs::write(folder.join("sources.list"), line)?;
        let archive = Archive { folder };
        archive.apt_get(&["update"])?;
        Ok(archive)
    }

    /// Unpacks what the authors of a package published, without Debian's changes.
    pub fn unpack(&self, package: &str, into: &Path) -> Result<()> {
        self.apt_get(&["source", "--tar-only", "--download-only", package])?;
        let mut tar = Command::new("tar");
        tar.arg("xf")
            .arg(self.tarball(package)?)
            .arg("-C")
            .arg(into);
        tar.args(["--strip-components=1", "--no-same-owner"]);
        child::run_or_bail(&mut tar, &self.folder, PATIENCE)?;
        Ok(())
    }

    fn tarball(&self, package: &str) -> Result<PathBuf> {
        let begin = format!("{package}_");
        let entries = fs::read_dir(&self.folder)?.filter_map(Result::ok);
        let mut paths = entries.map(|it| it.path());
        let found = paths.find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&begin) && name.contains(".tar.")
        });
        found.with_context(|| format!("{package}: there is no tarball"))
    }

    fn apt_get(&self, words: &[&str]) -> Result<()> {
        let set = |name: &str, part: &str| format!("{name}={}", self.folder.join(part).display());
        let mut command = Command::new("apt-get");
        command
            .args(["-qq", "-o"])
            .arg(set("Dir::Etc::SourceList", "sources.list"));
        command.arg("-o").arg(set("Dir::Etc::SourceParts", "none"));
        command.arg("-o").arg(set("Dir::State::Lists", "lists"));
        command.arg("-o").arg(set("Dir::Cache", "."));
        // Another user could not write here.
        command.args(["-o", "APT::Sandbox::User=root"]);
        command.args(words).current_dir(&self.folder);
        child::run_or_bail(&mut command, &self.folder, PATIENCE)?;
        Ok(())
    }
}

/// The code name of the Debian that runs here.
fn release() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release")?;
    let mut lines = text.lines();
    let name = lines.find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(name.context("/etc/os-release names no release")?.to_owned())
}
