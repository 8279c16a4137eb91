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
    run.started = run.ended;
    run.key = format!("text {} at {}", names.join("+"), run.ended);
    run.processes.push(Process {
        pid: u32::try_from(process).unwrap_or(0),
        ..Process::default()
    });
    Ok((run, modules))
}

impl TextCounts {
    fn read(path: &Path) -> Result<Self> {
        let bytes = foreign_file::read(path, foreign_file::MOST_READ).context("cannot be read")?;
        let mut rest = bytes
            .strip_prefix(MAGIC)
            .context("is no file of counts; remove it if you do not know it")?;
        let mut number = || {
            let (first, more) = rest.split_at_checked(8)?;
            rest = more;
            Some(u64::from_le_bytes(first.try_into().ok()?))
        };
        let cut = "was cut off; run the program again";
        let version = number().context(cut)?;
        if version != u64::from(VERSION) {
            bail!(
                "was written by another headcount (format {version}, this one reads {VERSION}); \
                 count its source again"
            );
        }
        let process = number().context(cut)?;
        let length = usize::try_from(number().context(cut)?).context(cut)?;
        let (map, mut rest) = rest.split_at_checked(length).context(cut)?;
        let map = decode(map).context("has a map that makes no sense; run the program again")?;
        let mut counters = Vec::new();
        while let Some((first, more)) = rest.split_at_checked(8) {
            counters.push(u64::from_le_bytes(first.try_into()?));
            rest = more;
        }
        let count = (!counters.is_empty()).then(|| counters.remove(0));
        if count != Some(counters.len() as u64) || counters.len() != map.counters() {
            bail!(cut);
        }
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
        let text = PlacedText::new(self.map.clone(), 0, &files, &mut module)?;
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
