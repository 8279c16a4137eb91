//! Where are the C sources that travel inside crates?
//!
//! Several `-sys` crates carry the library they wrap; others are programs in Rust themselves. Cargo is asked to fetch
//! those crates, through a manifest made for nothing else, and to say where it
//! put them. Nothing is built, and nothing of it ever enters our own tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::child;

/// The crates, each at one version, so that everybody measures the same code.
const CRATES: [(&str, &str); 8] = [
    ("bzip2-sys", "0.1.13+1.0.8"),
    ("libsqlite3-sys", "0.39.1"),
    ("libz-sys", "1.1.31"),
    ("lua-src", "551.1.0"),
    ("lz4-sys", "1.11.1+lz4-1.10.0"),
    ("miniz_oxide", "0.9.1"),
    ("rustc-demangle", "0.1.28"),
    ("zstd-sys", "2.1.2+zstd.1.5.7"),
];

/// The folder of each crate, by name.
pub struct Sources(BTreeMap<String, PathBuf>);

impl Sources {
    /// Fetches whatever is not yet on this machine.
    pub fn fetch(work: &Path) -> Result<Sources> {
        let folder = work.join("registry");
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("Cargo.toml"), manifest())?;
        fs::write(folder.join("src/lib.rs"), "")?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let ask = |words: &[&str]| {
            let mut command = Command::new(&cargo);
            command.args(words).current_dir(&folder);
            child::run_or_bail(&mut command, &folder, Duration::from_secs(600))
        };
        ask(&["fetch"])?;
        let answer = ask(&["metadata", "--format-version", "1", "--offline"])?;
        Ok(Sources(folders(&serde_json::from_slice(&answer)?)))
    }

    pub fn folder(&self, name: &str) -> Result<&Path> {
        self.0
            .get(name)
            .map(PathBuf::as_path)
            .with_context(|| format!("cargo does not know {name}"))
    }
}

fn manifest() -> String {
    let wanted = CRATES.map(|(name, _)| dependency(name));
    alone("sources", &wanted)
}

/// The manifest of a package in a workspace of its own: it must not join the one it is made in.
pub fn alone(name: &str, dependencies: &[String]) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{}\n",
        dependencies.join("\n")
    )
}

/// How a manifest asks for one of the crates, at its one version; it must be among them.
pub fn dependency(name: &str) -> String {
    let found = CRATES.iter().find(|(known, _)| *known == name);
    let (_, version) = found.unwrap_or_else(|| panic!("{name} is not among the crates"));
    let version = version.split('+').next().unwrap_or(version);
    format!("{name} = \"={version}\"")
}

fn folders(metadata: &Value) -> BTreeMap<String, PathBuf> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let known = packages.filter_map(|package| {
        let name = package["name"].as_str()?;
        let manifest = Path::new(package["manifest_path"].as_str()?);
        Some((name.to_owned(), manifest.parent()?.to_owned()))
    });
    known.collect()
}
