//! Who answers?

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// An engine for large tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    DuckDb,
    Spark,
}

/// The rows of an answer, each with its columns by name.
pub type Rows = Vec<Map<String, Value>>;

/// What an engine says.
#[derive(Deserialize)]
pub struct Answer {
    pub rows: Rows,
    /// How long that took.
    pub seconds: f64,
}

impl Engine {
    /// As the page calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::DuckDb => "DuckDB",
            Self::Spark => "Spark",
        }
    }

    /// Answers each of some questions about the table that `view` makes of what is in a folder.
    pub fn ask(self, folder: &Path, view: &str, questions: &[&str]) -> Result<Vec<Answer>> {
        let script = match self {
            Self::DuckDb => include_str!("ask_duckdb.py"),
            Self::Spark => include_str!("ask_spark.py"),
        };
        let mut child = Command::new(self.python()?)
            .args(["-c", script])
            .current_dir(folder)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("Python cannot be started")?;
        let asked = json!({ "view": view, "questions": questions });
        let mut stdin = child.stdin.take().context("no way to ask")?;
        stdin.write_all(asked.to_string().as_bytes())?;
        drop(stdin);
        let said = child.wait_with_output()?;
        let words = String::from_utf8_lossy(&said.stderr);
        ensure!(said.status.success(), "{}: {words}", self.name());
        let answers: Vec<Answer> = serde_json::from_slice(&said.stdout)
            .with_context(|| format!("{}: {words}", self.name()))?;
        ensure!(answers.len() == questions.len(), "an answer is missing");
        Ok(answers)
    }

    /// The Python that has it; if there is none yet, it is fetched from PyPI.
    fn python(self) -> Result<String> {
        let setup = concat!(env!("CARGO_MANIFEST_DIR"), "/setup");
        let word = self.name().to_lowercase();
        let said = Command::new(setup).arg(word).output();
        let said = said.context("tests/fleet/setup cannot be run")?;
        if !said.status.success() {
            bail!("{}", String::from_utf8_lossy(&said.stderr));
        }
        Ok(String::from_utf8(said.stdout)?.trim_end().to_owned())
    }
}
