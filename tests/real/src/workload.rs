//! What is run, and what does it need?
//!
//! The files of `workloads` are shell. A line `## NAME` begins a workload; what stands before the
//! first is common to all of a file. Remarks right behind the name say what it needs:
//!
//! ```text
//! ## tar-and-back
//! # packages: tar gzip          Debian packages
//! # needs: root                 it does nothing as an ordinary user
//! # status: 1                   with which status it ends, if not 0
//! prepare() { ... }             makes the files that it works on, alone and only once
//! run() { ... }                 is run alone and counted
//! settle() { ... }              takes out of $OUT, $ERR and the folder what differs every time
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// A script that uses real programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub name: String,
    pub packages: Vec<String>,
    pub needs_root: bool,
    /// What it returns when it went well.
    pub status: i32,
    /// Defines `run`, and if they are wanted `prepare` and `settle`.
    pub script: String,
}

/// All workloads of the files in a folder, by the names of the files.
pub fn read_all(folder: &Path) -> Result<Vec<Workload>> {
    sections(folder)?.into_iter().map(workload).collect()
}

/// A named part of a file, with what its remarks say.
pub struct Section {
    pub name: String,
    /// Keys and values, in the order of the file.
    pub remarks: Vec<(String, String)>,
    /// All of it, and what is common to all of the file.
    pub script: String,
}

impl Section {
    /// A complaint about a remark.
    pub fn misspelt(&self, key: &str, value: &str) -> anyhow::Error {
        anyhow::anyhow!("{}: nobody knows what \"{key}: {value}\" means", self.name)
    }

    /// Complains if a function is not there.
    pub fn require(&self, function: &str) -> Result<()> {
        if !self.script.contains(&format!("\n{function}() {{")) {
            bail!("{}: it has no function {function}", self.name);
        }
        Ok(())
    }
}

/// The sections of all files in a folder.
pub fn sections(folder: &Path) -> Result<Vec<Section>> {
    let named = || folder.display().to_string();
    let entries = fs::read_dir(folder).with_context(named)?;
    let mut paths = entries
        .map(|entry| entry.map(|it| it.path()))
        .collect::<Result<Vec<_>, _>>()
        .with_context(named)?;
    paths.retain(|path| path.extension().is_some_and(|it| it == "sh"));
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        all.extend(parse(&text));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = all.iter().find(|it| !names.insert(&it.name)) {
        bail!("two sections are called {}", twice.name);
    }
    Ok(all)
}

fn parse(text: &str) -> Vec<Section> {
    let mut sections = text.split("\n## ");
    let common = sections.next().unwrap_or_default();
    sections.map(|it| section(common, it)).collect()
}

fn section(common: &str, text: &str) -> Section {
    let (name, body) = text.split_once('\n').unwrap_or((text, ""));
    let remarks = body.lines().map_while(|line| line.strip_prefix("# "));
    let remarks = remarks.map(|it| {
        let (key, value) = it.split_once(':').unwrap_or((it, ""));
        (key.to_owned(), value.trim().to_owned())
    });
    Section {
        name: name.trim().to_owned(),
        remarks: remarks.collect(),
        script: format!("{common}\n{body}\n"),
    }
}

fn workload(section: Section) -> Result<Workload> {
    section.require("run")?;
    let mut workload = Workload {
        name: section.name.clone(),
        packages: Vec::new(),
        needs_root: false,
        status: 0,
        script: section.script.clone(),
    };
    for (key, value) in &section.remarks {
        match (key.as_str(), value.as_str()) {
            ("packages", names) => workload.packages = words(names),
            ("needs", "root") => workload.needs_root = true,
            ("status", number) => {
                let status = number.parse();
                workload.status = status.map_err(|_| section.misspelt(key, value))?;
            }
            _ => return Err(section.misspelt(key, value)),
        }
    }
    Ok(workload)
}

pub fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# Archives.\nmake_files() { :; }\n\n\
        ## tar\n# packages: tar gzip\n# status: 2\nrun() { tar c .; }\n\n\
        ## su\n# needs: root\nrun() { su; }\n";

    fn workloads(text: &str) -> Result<Vec<Workload>> {
        parse(text).into_iter().map(workload).collect()
    }

    #[test]
    fn a_file_has_workloads_that_share_what_stands_before_them() {
        let all = workloads(TWO).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].name.as_str(), all[0].status), ("tar", 2));
        assert_eq!(all[0].packages, ["tar", "gzip"]);
        assert!(all[1].needs_root && !all[0].needs_root);
        assert!(all.iter().all(|it| it.script.contains("make_files")));
        assert!(!all[1].script.contains("tar c"));
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        for remark in ["# package: tar", "# status: one", "# needs: luck"] {
            assert!(workloads(&format!("\n## a\n{remark}\nrun() {{ :; }}\n")).is_err());
        }
        assert!(workloads("\n## a\nruns() { :; }\n").is_err());
        assert!(workloads("\n## a\nrun() { :; }\n").is_ok());
    }

    #[test]
    fn there_are_as_many_workloads_as_we_say() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/workloads"));
        assert!(read_all(folder).unwrap().len() >= 150);
    }
}
