//! Which programs did cargo build? It says so itself.

use anyhow::Context;
use serde_json::Value;
use std::path::PathBuf;

/// A program that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Where it is.
    pub path: PathBuf,
    /// What it is made of: `max lib`, `max test it`.
    pub name: String,
}

/// From cargo's messages, one object a line (`--message-format=json`).
pub fn artifacts_of_cargo(said: &str) -> Vec<Artifact> {
    let messages = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    messages.filter_map(|it: Value| artifact(&it)).collect()
}

fn artifact(message: &Value) -> Option<Artifact> {
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    let path = message["executable"].as_str()?;
    let target = message["target"]["name"].as_str()?;
    let kind = message["target"]["kind"][0].as_str()?;
    let package = package(message["package_id"].as_str()?);
    Some(Artifact {
        path: path.into(),
        name: name(package, kind, target),
    })
}

/// The name of a package in its id: `path+file:///home/u/max#0.1.0`, `path+file:///x#max@0.1.0`,
/// or, long ago, `max 0.1.0 (path+file:///x)`.
fn package(id: &str) -> &str {
    let Some((place, version)) = id.split_once('#') else {
        return id.split(' ').next().unwrap_or(id);
    };
    match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or(place),
    }
}

fn name(package: &str, kind: &str, target: &str) -> String {
    match kind {
        "lib" | "rlib" | "dylib" | "cdylib" | "staticlib" | "proc-macro" => {
            format!("{package} lib")
        }
        _ => format!("{package} {kind} {target}"),
    }
}

/// From `cargo nextest list --list-type binaries-only --message-format json`.
pub fn artifacts_of_nextest(said: &str) -> anyhow::Result<Vec<Artifact>> {
    let said: Value = serde_json::from_str(said).context("cargo nextest list: not understood")?;
    let binaries = said["rust-binaries"].as_object();
    let binaries = binaries
        .context("cargo nextest list: names no program")?
        .values();
    let artifact = |it: &Value| {
        let package = package(it["package-id"].as_str()?);
        let target = it["binary-name"].as_str()?;
        Some(Artifact {
            path: it["binary-path"].as_str()?.into(),
            name: name(package, it["kind"].as_str()?, target),
        })
    };
    Ok(binaries.filter_map(artifact).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_by_package_kind_and_target() {
        let said = concat!(
            r#"{"reason":"compiler-artifact","package_id":"path+file:///w/max#0.1.0","target":{"kind":["lib"],"name":"max"},"executable":"/t/max-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"path+file:///w#top@0.1.0","target":{"kind":["test"],"name":"it"},"executable":"/t/it-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"path+file:///w#top@0.1.0","target":{"kind":["lib"],"name":"top"},"executable":null}"#,
            "\nno message\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let names: Vec<_> = artifacts_of_cargo(said)
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(names, ["max lib", "top test it"]);
    }

    #[test]
    fn nextest_names_them_alike() {
        let said = r#"{"rust-binaries":{"top::it":{"binary-id":"top::it","binary-name":"it",
            "package-id":"path+file:///w#top@0.1.0","kind":"test","binary-path":"/t/it-1"}}}"#;
        let found = artifacts_of_nextest(said).unwrap();
        assert_eq!(found[0].name, "top test it");
        assert!(artifacts_of_nextest("{}").is_err());
    }
}
