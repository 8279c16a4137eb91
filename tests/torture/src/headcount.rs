//! How is the tool under test asked?
//!
//! Only as a user would ask it: by its command line and its CSV.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use headcount_ground::child;
use serde_json::Value;

use crate::gcov::ByLine;

/// Where the `headcount` to be judged is.
pub struct Headcount {
    pub program: PathBuf,
    /// What makes `headcount run` take an engine; nothing: its own choice.
    pub engine: &'static [&'static str],
    /// How `headcount cc` is to count; `None`: its own choice.
    pub via: Option<&'static str>,
}

/// A block of source text, as the tool tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceBlock {
    pub function: String,
    pub file: PathBuf,
    pub line: u32,
    pub column: u32,
    pub kind: String,
    pub count: u64,
}

/// What the tool says about one run of a program.
#[derive(Default)]
pub struct Said {
    /// Instructions executed, by function, in the order reported.
    pub executed: Vec<(String, u64)>,
    pub refused: Vec<Refusal>,
    /// What it says makes its counts uncertain.
    pub notes: Vec<String>,
}

/// What the tool says about a program that it ran itself.
pub struct Run {
    pub said: Said,
    /// The instructions of the program itself.
    pub instructions: Instructions,
    pub lines: ByLine,
}

/// What the tool says of a line: its count, and what that is worth.
pub type Shown = BTreeMap<(PathBuf, u32), (Option<u64>, Exactness)>;

/// What a line's count is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    Exact,
    AtLeast,
    Unknown,
}

/// By link address.
pub type Instructions = BTreeMap<u64, Instruction>;

#[derive(Clone)]
pub struct Instruction {
    pub function: String,
    /// `None`: the tool says it did not count it.
    pub count: Option<u64>,
    pub kind: Kind,
}

/// What an instruction does, as far as anybody here wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Asks the processor what it is.
    Asks,
    /// Calls the function at this address.
    Calls(u64),
    Other,
}

impl Kind {
    fn of(text: &str) -> Kind {
        if matches!(text, "cpuid" | "xgetbv") {
            return Kind::Asks;
        }
        let target = text
            .strip_prefix("call 0x")
            .or_else(|| text.strip_prefix("callq 0x"));
        let target = target.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        target.map_or(Kind::Other, Kind::Calls)
    }
}

/// Something the tool says it did not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub module: String,
    /// A function, or a file.
    pub subject: String,
    pub reason: String,
}

impl Refusal {
    /// `libc.so.6!malloc`.
    pub fn in_module(&self) -> String {
        named(&self.module, &self.subject)
    }
}

/// A function of a module, as differences name it where there are several modules.
pub fn named(module: &str, function: &str) -> String {
    let module = module.rsplit('/').next().unwrap_or(module);
    format!("{module}!{function}")
}

impl Headcount {
    pub fn find(
        program: &Path,
        engine: &'static [&'static str],
        via: Option<&'static str>,
    ) -> Result<Headcount> {
        let program = program.canonicalize().with_context(|| {
            format!(
                "{}: no such program; cargo build --release -p headcount",
                program.display()
            )
        })?;
        Ok(Headcount {
            program,
            engine,
            via,
        })
    }

    /// The compiler's command line, with counters.
    pub fn compiler(&self, compiler: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("cc");
        command.args(self.via.iter().flat_map(|via| ["--via", via]));
        command.args(["--", compiler]);
        command
    }

    /// A command whose counter files go to `folder` and nowhere else.
    pub fn counted(&self, mut command: Command, folder: &Path) -> Command {
        command.env("HEADCOUNT_DIR", counter_files(folder));
        command
    }

    /// A command, run and counted block by block as it is, in `main` or `all` of its modules.
    pub fn run(&self, command: Command, modules: &str) -> Command {
        let mut run = Command::new(&self.program);
        run.args(["run", "--quiet", "--unit", "block", "--modules", modules]);
        run.args(self.engine);
        run.arg("--");
        run.arg(command.get_program()).args(command.get_args());
        run
    }

    /// The counts of such a run in `folder`.
    pub fn report_run(&self, executable: &Path, folder: &Path, limit: Duration) -> Result<Run> {
        let mut instructions = self.report_instructions(folder, limit)?;
        let instructions = instructions.remove(&executable.display().to_string());
        Ok(Run {
            said: self.report(folder, limit)?,
            instructions: instructions.unwrap_or_default(),
            lines: lines(&self.report_as("line", "csv", folder, limit)?)?,
        })
    }

    /// The instructions of every module that was counted, by the module's path.
    pub fn report_instructions(
        &self,
        folder: &Path,
        limit: Duration,
    ) -> Result<BTreeMap<String, Instructions>> {
        instructions(&self.report_as("instruction", "csv", folder, limit)?)
    }

    /// The lines of the run in `folder`, and its blocks of source text.
    pub fn report_source(
        &self,
        folder: &Path,
        limit: Duration,
    ) -> Result<(ByLine, Vec<SourceBlock>)> {
        let by_line = lines(&self.report_as("line", "csv", folder, limit)?)?;
        let blocks = self.report_as("block", "csv", folder, limit)?;
        Ok((by_line, source_blocks(&blocks)?))
    }

    /// The lines of the run in `folder`, as they are shown.
    pub fn report_lines(&self, folder: &Path, limit: Duration) -> Result<Shown> {
        shown(&self.report_as("line", "csv", folder, limit)?)
    }

    /// The counts of the run in `folder`. The counts are read from the CSV; what
    /// a CSV has no place for, from the JSON.
    pub fn report(&self, folder: &Path, limit: Duration) -> Result<Said> {
        let executed = executed(&self.report_as("function", "csv", folder, limit)?)?;
        let rest = self.report_as("function", "json", folder, limit)?;
        let rest: Value = serde_json::from_slice(&rest)?;
        Ok(Said {
            executed,
            refused: refused(&rest),
            notes: notes(&rest),
        })
    }

    fn report_as(&self, by: &str, format: &str, folder: &Path, limit: Duration) -> Result<Vec<u8>> {
        let mut report = Command::new(&self.program);
        report.args(["report", "--by", by, "--no-demangle", "--format", format]);
        report
            .current_dir(folder)
            .env("HEADCOUNT_DIR", counter_files(folder));
        child::run_or_bail(&mut report, folder, limit)
    }
}

fn counter_files(folder: &Path) -> PathBuf {
    folder.join("headcount.counts")
}

/// The rows of a CSV, each with only the columns of these names.
fn columns<const N: usize>(csv: &[u8], names: [&str; N]) -> Result<Vec<[String; N]>> {
    let mut reader = csv::Reader::from_reader(csv);
    let headings = reader.headers()?.clone();
    let mut at = [0; N];
    for (at, name) in at.iter_mut().zip(names) {
        let found = headings.iter().position(|heading| heading == name);
        *at = found.with_context(|| format!("the report has no column {name}"))?;
    }
    let rows = reader.records();
    rows.map(|row| {
        row.map(|row| at.map(|at| row[at].to_owned()))
            .map_err(Into::into)
    })
    .collect()
}

/// Functions that were counted as source text have statements, and no instructions.
fn executed(csv: &[u8]) -> Result<Vec<(String, u64)>> {
    let rows = columns(csv, ["function", "executed"])?;
    let counted = rows.into_iter().filter(|[_, count]| !count.is_empty());
    counted
        .map(|[function, count]| Ok((function, count.parse().context(count)?)))
        .collect()
}

fn instructions(csv: &[u8]) -> Result<BTreeMap<String, Instructions>> {
    let mut modules: BTreeMap<String, Instructions> = BTreeMap::new();
    let wanted = ["module", "function", "address", "count", "text"];
    for [module, function, address, count, text] in columns(csv, wanted)? {
        let digits = address
            .strip_prefix("0x")
            .with_context(|| address.clone())?;
        let address = u64::from_str_radix(digits, 16).context(address.clone())?;
        let count = if count.is_empty() {
            None
        } else {
            Some(count.parse().context(count)?)
        };
        let instruction = Instruction {
            function,
            count,
            kind: Kind::of(&text),
        };
        let module = modules.entry(module).or_default();
        module.insert(address, instruction);
    }
    Ok(modules)
}

/// None, where nothing was counted as source: then there are no such columns.
fn source_blocks(csv: &[u8]) -> Result<Vec<SourceBlock>> {
    let wanted = ["function", "file", "line", "column", "kind", "count"];
    let Ok(rows) = columns(csv, wanted) else {
        return Ok(Vec::new());
    };
    let block = |[function, file, line, column, kind, count]: [String; 6]| {
        Ok(SourceBlock {
            function,
            file: file.into(),
            line: line.parse()?,
            column: column.parse()?,
            kind,
            count: count.parse()?,
        })
    };
    rows.into_iter().map(block).collect()
}

fn lines(csv: &[u8]) -> Result<ByLine> {
    let rows = columns(csv, ["file", "line", "count"])?;
    let counted = rows.into_iter().filter(|[_, _, count]| !count.is_empty());
    counted
        .map(|[file, line, count]| {
            let line = line.parse().context(line)?;
            Ok(((PathBuf::from(file), line), count.parse().context(count)?))
        })
        .collect()
}

/// A report without a word about exactness promises all it says.
fn shown(csv: &[u8]) -> Result<Shown> {
    let rows: Vec<[String; 4]> = match columns(csv, ["file", "line", "count", "exactness"]) {
        Ok(rows) => rows,
        Err(_) => columns(csv, ["file", "line", "count"])?
            .into_iter()
            .map(|[file, line, count]| [file, line, count, "exact".to_owned()])
            .collect(),
    };
    let row = |[file, line, count, exactness]: [String; 4]| {
        let exactness = match exactness.as_str() {
            "exact" => Exactness::Exact,
            "at_least" => Exactness::AtLeast,
            "unknown" => Exactness::Unknown,
            other => anyhow::bail!("no exactness: {other}"),
        };
        let count = match count.as_str() {
            "" => None,
            digits => Some(digits.parse()?),
        };
        Ok(((PathBuf::from(file), line.parse()?), (count, exactness)))
    };
    rows.into_iter().map(row).collect()
}

fn refused(report: &Value) -> Vec<Refusal> {
    let text =
        |refusal: &Value, field: &str| refusal[field].as_str().unwrap_or_default().to_owned();
    let all = report["refused"].as_array().into_iter().flatten();
    all.map(|it| Refusal {
        module: text(it, "module"),
        subject: text(it, "subject"),
        reason: text(it, "reason"),
    })
    .collect()
}

fn notes(report: &Value) -> Vec<String> {
    let all = report["notes"].as_array().into_iter().flatten();
    all.filter_map(|note| note.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name() {
        let csv = "module,function,file,line,calls,executed,instructions,never\n\
                   prog,main,a.c,3,1,42,50,8\nprog,\"f<a, b>\",,0,2,7,7,0\n";
        let expected = [("main".to_owned(), 42), ("f<a, b>".to_owned(), 7)];
        assert_eq!(executed(csv.as_bytes()).unwrap(), expected);
        assert!(executed(b"module,function\n").is_err());
    }

    #[test]
    fn what_was_not_counted_is_not_zero() {
        let csv = "module,function,address,count,text\n/x/p,f,0x10,3,nop\n/x/p,f,0x11,,nop\n\
                   /lib/c,g,0x10,9,\"mov %rax, %rbx\"\n/lib/c,g,0x13,9,call 0x2f0\n";
        let found = instructions(csv.as_bytes()).unwrap();
        let counts: Vec<_> = found["/x/p"]
            .iter()
            .map(|(at, it)| (*at, it.count))
            .collect();
        assert_eq!(counts, [(0x10, Some(3)), (0x11, None)]);
        assert_eq!(found["/lib/c"][&0x13].kind, Kind::Calls(0x2f0));
        let csv = "file,line,count,executed\n/x/a.c,3,7,21\n/x/a.c,4,,\n";
        let found = lines(csv.as_bytes()).unwrap();
        assert_eq!(found, ByLine::from([((PathBuf::from("/x/a.c"), 3), 7)]));
    }

    #[test]
    fn refusals_and_notes_are_found() {
        let report = r#"{"rows":[],"refused":[{"module":"m","subject":"f","file":"a.s","reason":"odd","line":3}],
            "notes":["it was killed"]}"#;
        let report = serde_json::from_str(report).unwrap();
        let odd = Refusal {
            module: "m".to_owned(),
            subject: "f".to_owned(),
            reason: "odd".to_owned(),
        };
        assert_eq!(refused(&report), [odd]);
        assert_eq!(notes(&report), ["it was killed"]);
    }
}
