//! Counts that a portable runtime wrote: files that carry their own map.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use headcount_csource::map::{TextMap, decode};
use headcount_model::{FileId, FunctionCounts, Module, ModuleCounts, Process, Run};
use headcount_monitor::foreign_file;

use crate::source_module::PlacedText;
use crate::source_route::portable::{MAGIC, VERSION};

/// What one text counted in one process.
struct TextCounts {
    path: PathBuf,
    process: u64,
    /// The last number of the file's name: the n-th run with this process number.
    round: u64,
    map: TextMap,
    counters: Vec<u64>,
    /// The words of the program's command; none if it could not tell.
    command: Vec<String>,
}

/// The runs in some files, each with its modules and the files it came from; and what is wrong
/// with the others.
pub struct Found {
    pub runs: Vec<(Run, Vec<Module>, Vec<PathBuf>)>,
    pub errors: Vec<anyhow::Error>,
}

/// Reads files, and puts together what one process wrote.
pub fn read(files: &[PathBuf]) -> Found {
    let mut by_process: BTreeMap<(u64, u64), Vec<TextCounts>> = BTreeMap::new();
    let mut errors = Vec::new();
    for path in files {
        let counts = TextCounts::read(path);
        match counts.with_context(|| path.display().to_string()) {
            Ok(it) => by_process
                .entry((it.process, it.round))
                .or_default()
                .push(it),
            Err(error) => errors.push(error),
        }
    }
    let mut runs = Vec::new();
    for ((process, _), texts) in by_process {
        match run(process, &texts) {
            Ok((run, modules)) => {
                runs.push((run, modules, texts.into_iter().map(|it| it.path).collect()));
            }
            Err(error) => errors.push(error),
        }
    }
    Found { runs, errors }
}

fn run(process: u64, texts: &[TextCounts]) -> Result<(Run, Vec<Module>)> {
    let mut run = Run::default();
    let mut modules = Vec::new();
    let mut names = Vec::new();
    for text in texts {
        let (module, counts) = text
            .recover()
            .with_context(|| text.path.display().to_string())?;
        let modified = fs::metadata(&text.path).and_then(|it| it.modified()).ok();
        let since = modified.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        run.ended = run.ended.max(since.map_or(0, |it| it.as_nanos() as u64));
        names.push(
            text.path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        );
        run.modules.push(counts);
        modules.push(module);
    }
    let mut commands = texts.iter().map(|it| &it.command);
    run.command = commands
        .find(|it| !it.is_empty())
        .cloned()
        .unwrap_or_default();
    run.started = run.ended;
    run.key = format!("text {} at {}", names.join("+"), run.ended);
    run.processes.push(Process {
        pid: u32::try_from(process).unwrap_or(0),
        ..Process::default()
    });
    Ok((run, modules))
}

const CUT: &str = "was cut off; run the program again";

/// What is left of a file.
struct Fields<'f>(&'f [u8]);

impl<'f> Fields<'f> {
    fn bytes(&mut self, length: u64) -> Result<&'f [u8]> {
        let length = usize::try_from(length).context(CUT)?;
        let (first, rest) = self.0.split_at_checked(length).context(CUT)?;
        self.0 = rest;
        Ok(first)
    }

    fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.bytes(8)?.try_into()?))
    }

    /// All that is left: words that end with a 0 each, and the number of their bytes.
    fn command(&mut self) -> Result<Vec<String>> {
        let length = (self.0.len() as u64).checked_sub(8).context(CUT)?;
        let words = self.bytes(length)?;
        if self.number()? != length {
            bail!(CUT);
        }
        let words = words.strip_suffix(&[0]).unwrap_or(words);
        if length == 0 {
            return Ok(Vec::new());
        }
        let words = words.split(|it| *it == 0);
        Ok(words
            .map(|it| String::from_utf8_lossy(it).into_owned())
            .collect())
    }
}

impl TextCounts {
    fn read(path: &Path) -> Result<Self> {
        let bytes = foreign_file::read(path, foreign_file::MOST_READ).context("cannot be read")?;
        let rest = bytes
            .strip_prefix(MAGIC)
            .context("is no file of counts; remove it if you do not know it")?;
        let mut rest = Fields(rest);
        let version = rest.number()?;
        if version != u64::from(VERSION) {
            bail!(
                "was written by another headcount (format {version}, this one reads {VERSION}); \
                 count its source again"
            );
        }
        let process = rest.number()?;
        let length = rest.number()?;
        let map = decode(rest.bytes(length)?)
            .context("has a map that makes no sense; run the program again")?;
        let count = rest.number()?;
        if count != map.counters() as u64 {
            bail!(CUT);
        }
        let counters = (0..count)
            .map(|_| rest.number())
            .collect::<Result<Vec<u64>>>()?;
        let command = rest.command()?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let round = name.rsplit('-').next().and_then(|it| it.parse().ok());
        Ok(Self {
            path: path.to_owned(),
            process,
            round: round.unwrap_or(0),
            map,
            counters,
            command,
        })
    }

    fn recover(&self) -> Result<(Module, ModuleCounts)> {
        let identity = headcount_csource::map::encode(&self.map);
        let build_id = headcount_wire::fingerprint(&identity, self.counters.len() as u64);
        let mut module = Module {
            path: self.map.name.clone(),
            build_id: format!("text{build_id:016x}"),
            files: self.map.files.clone(),
            ..Module::default()
        };
        let files: Vec<FileId> = (0..self.map.files.len() as u32).map(FileId).collect();
        let text = PlacedText::new(self.map.clone(), 0, &files, &mut module, |_| false)?;
        let empty = |it: &headcount_model::Function| {
            FunctionCounts::whole(vec![0; it.blocks.len()], Vec::new())
        };
        let mut functions: Vec<FunctionCounts> = module.functions.iter().map(empty).collect();
        let mut uncertain = Vec::new();
        text.recover(&self.counters, &mut functions, &mut uncertain)?;
        let counts = ModuleCounts {
            build_id: module.build_id.clone(),
            functions,
        };
        Ok((module, counts))
    }
}
