//! Programs that interpreters ran, from the counts of their instructions: each source file is a module of
//! its own.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use headcount_language::{Language, SourceUnit, Token, sources};
use headcount_model::{
    Block, BlockKind, Compiled, FileId, Function, FunctionCounts, LineRun, LinkAddr, Module,
    NOWHERE, OfProgram, Operation, RuntimeCosts, SourcePlace,
};
use headcount_monitor::journal::Entry;
use headcount_monitor::values::Values;
use headcount_profile::SparseCounts;
use headcount_report::plural;

use super::runtimes::{Found, IsMeasured};
use super::source_files::SourceFiles;

/// The source files of what was interpreted, and their counts.
#[derive(Clone, Default)]
pub struct Programs {
    pub modules: Vec<(Module, SparseCounts)>,
    /// Sentences for the report.
    pub notes: Vec<String>,
    /// What is to add up.
    pub fetched: Vec<Fetched>,
    /// What interpreters did for them.
    pub runtimes: RuntimeCosts,
}

/// How many instructions of a language were counted, and where: that is how often these places ran.
#[derive(Clone)]
pub struct Fetched {
    pub language: Language,
    pub instructions: u64,
    /// Modules by their numbers in the journal, and what fetches instructions there.
    pub places: BTreeMap<usize, Vec<LinkAddr>>,
}

/// What the instructions say that were counted by their addresses.
pub fn programs_of(entries: &[Entry], values: &Values) -> Result<Programs> {
    let mut all = Programs::default();
    let here = std::env::current_dir().unwrap_or_default();
    let Some(tally) = tally(entries) else {
        return Ok(all);
    };
    let interpreters = Interpreters::of(entries, tally);
    let interval = entries.iter().find_map(|it| match it {
        Entry::Clock { interval } => Some(*interval),
        _ => None,
    });
    all.runtimes.interval = interval.unwrap_or(0);
    for language in Language::ALL {
        let places = interpreters.places(language);
        if places.is_empty() {
            continue;
        }
        let what = |place: u16| interpreters.what(place, language);
        let is_measured = IsMeasured {
            runtime: interpreters.has(language, OfProgram::Resumptions),
            time: interval.is_some() && interpreters.has(language, OfProgram::Samples),
        };
        let found = Found::new(values, tally, what, is_measured);
        all.fetched.push(Fetched {
            language,
            instructions: found.instructions,
            places,
        });
        if found.lost > 0 {
            all.notes.push(format!(
                "{} of {} ran in code whose source nobody could ask for any more: they are not counted.",
                plural(found.lost, "instruction"),
                language.title(),
            ));
        }
        let pieces = found.pieces.iter().map(|(number, measured)| {
            let piece = values.pieces.get(number)?;
            Some((piece.description.as_slice(), measured))
        });
        let pieces: Option<Vec<_>> = pieces.collect();
        let pieces = pieces.context("an interpreted program is not in the counts")?;
        let sources = sources(language, pieces, &SourceFiles::new());
        let mut sources = sources.context("an interpreted program makes no sense")?;
        all.notes.append(&mut sources.notes);
        found.share_collections(&mut sources.units);
        found.add_costs(language, &sources, &here, &mut all.runtimes);
        all.modules.extend(modules(language, sources.units, &here));
    }
    Ok(all)
}

/// The tally that counts instructions of interpreted programs.
fn tally(entries: &[Entry]) -> Option<u8> {
    let tallies = entries.iter().filter_map(|entry| match entry {
        Entry::Tally { is_program, .. } => Some(*is_program),
        _ => None,
    });
    let mut numbered = (0_u8..).zip(tallies);
    numbered.find(|it| it.1).map(|it| it.0)
}

/// Which modules interpret programs, and where they fetch their instructions.
struct Interpreters {
    /// By module.
    languages: BTreeMap<usize, Language>,
    /// Modules by the numbers of places, and what is counted there.
    places: BTreeMap<u16, (usize, OfProgram)>,
    fetches: BTreeMap<usize, Vec<LinkAddr>>,
}

impl Interpreters {
    fn of(entries: &[Entry], tally: u8) -> Self {
        let mut all = Self {
            languages: BTreeMap::new(),
            places: BTreeMap::new(),
            fetches: BTreeMap::new(),
        };
        for entry in entries {
            match entry {
                Entry::Interpreter { module, language } => {
                    let language = Language::of(language);
                    all.languages.extend(language.map(|it| (*module, it)));
                }
                Entry::TallyPlace {
                    tally: of,
                    module,
                    at,
                    place,
                    of_program,
                } if *of == tally => {
                    let what = OfProgram::from_code(*of_program);
                    let what = what.unwrap_or(OfProgram::Instructions);
                    all.places.insert(*place, (*module, what));
                    if what == OfProgram::Instructions {
                        let fetches = all.fetches.entry(*module).or_default();
                        fetches.push(LinkAddr(*at));
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// What was counted at a place, if it is of programs of a language.
    fn what(&self, place: u16, language: Language) -> Option<OfProgram> {
        let (module, what) = self.places.get(&place)?;
        (self.languages.get(module) == Some(&language)).then_some(*what)
    }

    /// Is that counted of the programs of a language?
    fn has(&self, language: Language, what: OfProgram) -> bool {
        let mut places = self.places.values();
        places.any(|(module, it)| *it == what && self.languages.get(module) == Some(&language))
    }

    /// Where the instructions of a language are fetched, by module.
    fn places(&self, language: Language) -> BTreeMap<usize, Vec<LinkAddr>> {
        let modules = self.languages.iter().filter(|it| *it.1 == language);
        let places = modules.filter_map(|(module, _)| {
            let fetches = self.fetches.get(module)?;
            Some((*module, fetches.clone()))
        });
        places.collect()
    }
}

fn modules(language: Language, units: Vec<SourceUnit>, here: &Path) -> Vec<(Module, SparseCounts)> {
    let mut files: BTreeMap<String, Vec<SourceUnit>> = BTreeMap::new();
    for unit in units {
        files
            .entry(found_from(here, &unit.file))
            .or_default()
            .push(unit);
    }
    let modules = files.into_iter().map(|(file, units)| {
        let mut module = Module {
            path: file.clone(),
            files: vec![file],
            ..Module::default()
        };
        let mut counts = Vec::new();
        let mut next = NOWHERE;
        for unit in &units {
            let (function, found) = function(language, unit, LinkAddr(next));
            next += function.blocks.len() as u64;
            counts.push(found);
            module.functions.push(function);
        }
        module.build_id = build_id(language, &module);
        let counts = SparseCounts {
            build_id: module.build_id.clone(),
            functions: counts.into_iter().enumerate().collect(),
            uncounted: Vec::new(),
        };
        (module, counts)
    });
    modules.collect()
}

/// A script is known by the name that it was started by; where else it may be seen from is another matter.
pub fn found_from(here: &Path, file: &str) -> String {
    let whole = here.join(file);
    match !file.starts_with('<') && whole.is_file() {
        true => whole.to_string_lossy().into_owned(),
        false => file.to_owned(),
    }
}

/// What was compiled from the same source has the same functions, lines and operations.
fn build_id(language: Language, module: &Module) -> String {
    let mut digest = blake3::Hasher::new();
    digest.update(language.name().as_bytes());
    digest.update(module.path.as_bytes());
    for function in &module.functions {
        digest.update(&[0]);
        digest.update(function.name.as_bytes());
        for place in function.blocks.iter().filter_map(|it| it.place) {
            digest.update(&place.line.to_le_bytes());
            digest.update(&place.column.to_le_bytes());
            digest.update(&[place.kind.code()]);
        }
    }
    digest.finalize().to_hex()[..40].to_owned()
}

fn function(
    language: Language,
    unit: &SourceUnit,
    address: LinkAddr,
) -> (Function, FunctionCounts) {
    let file = FileId(0);
    let mut blocks: Vec<Block> = Vec::new();
    let mut counts = FunctionCounts::default();
    let mut add =
        |place: SourcePlace, operation: Option<Operation>, count: Option<u64>, is_exact: bool| {
            if !is_exact {
                counts.at_least.push(blocks.len() as u32);
            }
            counts.blocks.push(count);
            let is_statement = place.kind == BlockKind::Line;
            let line = LineRun {
                file,
                line: place.line,
                column: 0,
                is_stmt: true,
                instructions: 1,
                inline_copy: 0,
            };
            blocks.push(Block {
                address: LinkAddr(address.0 + blocks.len() as u64),
                instructions: u32::from(is_statement),
                lines: is_statement.then_some(line).into_iter().collect(),
                place: Some(place),
                operation,
                ..Block::default()
            });
        };
    let place = |line: u32, column: u32, kind: BlockKind| SourcePlace {
        file,
        line,
        column,
        kind,
    };
    let heading = place(unit.first_line, 1, BlockKind::Function);
    add(heading, None, Some(unit.calls), unit.are_calls_exact);
    for line in &unit.lines {
        let at = place(line.line, 1, BlockKind::Line);
        add(at, None, Some(line.count), line.is_exact);
    }
    for token in &unit.tokens {
        let at = place(token.at.line, token.at.column, BlockKind::Operation);
        let operation = |kind: &str| {
            Some(Operation {
                kind: kind.to_owned(),
                end_line: token.at.end_line,
                end_column: token.at.end_column,
            })
        };
        add(
            at,
            operation(&token.kind),
            Some(token.count),
            token.is_exact,
        );
        for (kind, count) in costs(language, token) {
            add(at, operation(kind), count, true);
        }
    }
    let function = Function {
        name: unit.name.clone(),
        address,
        source: Some((file, unit.first_line)),
        blocks,
        edges: Vec::new(),
        counters: 0,
        compiled: Compiled {
            language: Some(language),
            ..Compiled::default()
        },
    };
    (function, counts)
}

/// What the runtime did for an operation. What can be measured of a language is the same in all runs.
fn costs(language: Language, token: &Token) -> impl Iterator<Item = (&'static str, Option<u64>)> {
    let cost = token.cost.into_iter();
    cost.flat_map(move |it| {
        let of_storage = [
            (Operation::RESUMED, it.resumptions),
            (Operation::TOOK, it.bytes),
        ];
        let has_storage = language.has_measured_runtime();
        let of_storage = has_storage.then_some(of_storage).into_iter().flatten();
        of_storage.chain([(Operation::SAMPLED, it.samples)])
    })
}
