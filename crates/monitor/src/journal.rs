//! What was counted, kept in files while it is being counted.
//!
//! A folder for a run: `journal`, one JSON object a line, says what was counted; `counters.N` is
//! an array of counters for module N, mapped into our memory, so that a count is on file as soon
//! as it is made. What copies count (`windows`) is in the file `windows`, which the program itself
//! writes to; which routines were copied is in the file `routines`, many and in few bytes. If
//! headcount is killed, `headcount collect` reads what is there; a line or a routine that was cut
//! off is the last one, and is left out. What each thread counted, if that is asked for, is in the file
//! `threads` when it has ended. Where the file of a module is no longer where it was, a copy
//! of it is in `module.N`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use headcount_binary::FileBytes;
use headcount_model::packed::{Packed, Packer};
use headcount_model::{CallCosts, FlowGraph, Plan, RoutineBlock, SystemCalls};
use memmap2::MmapMut;
use serde::{Deserialize, Serialize};

use crate::foreign_file;
use crate::live::Moves;
use crate::own_folder::OwnFolder;
use crate::windows;

/// The name of the journal in its folder.
pub const JOURNAL: &str = "journal";

/// Raised with every change of the journal's lines, or of what is where in a window.
pub const VERSION: u32 = 17;

/// The name of the file with the counters of copies.
pub const WINDOWS: &str = "windows";

/// The name of the file that says what calls cost, if that was asked for.
pub const CALLS: &str = "calls";

/// The name of the file with what was found by value, if that was asked for.
pub const VALUES: &str = "values";

/// The name of the file with what each thread counted, if that was asked for.
pub const THREADS: &str = "threads";

/// The name of the file with the routines that were copied.
pub const ROUTINES: &str = "routines";

/// What calls cost, if somebody lived to write it down. Builds have the numbers of modules.
pub fn call_costs(folder: &OwnFolder) -> Option<CallCosts> {
    let mut bytes = Vec::new();
    let file = foreign_file::open(&folder.file(CALLS)).ok();
    file?.read_to_end(&mut bytes).ok()?;
    CallCosts::unpack(&bytes)
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The first line.
    Run {
        /// [`VERSION`].
        version: u32,
        /// The command.
        command: Vec<String>,
        /// Nanoseconds since 1970.
        started: u64,
        /// The machine's name for its processor.
        cpu: String,
        /// Names the run for ever.
        key: String,
        /// The same for all runs of one command; empty if this is its only one.
        batch: String,
        /// Whether the program ran already.
        in_the_middle: bool,
    },
    /// A module that is counted; the counters are in `counters.N`, N from 0 in this order.
    Module {
        /// Where its file is.
        path: String,
        /// Which build it is.
        build_id: String,
        /// How many blocks it has.
        blocks: u32,
        /// Stretches of blocks that are not counted: first, and how many.
        uncounted: Vec<(u32, u32)>,
    },
    /// A module that is counted by copies of its routines; numbered together with the others.
    File {
        /// Where its file is.
        path: String,
        /// Which build it is.
        key: String,
    },
    /// A thread that came (1) or went (-1) at an instruction of a routine, in a way that its flow
    /// graph does not show.
    Visit {
        /// Number of the routine, in this order.
        routine: usize,
        /// Link address of the instruction that comes next.
        at: u64,
        /// How many came.
        delta: i64,
    },
    /// A window whose counts are not the program's.
    Vain {
        /// Its number.
        window: u32,
    },
    /// A routine that is not counted; a note says why.
    Refused {
        /// The module.
        module: usize,
        /// Link address of its start, and how many bytes it has.
        start: u64,
        /// How many bytes it has.
        length: u64,
        /// Why, as a clause.
        reason: String,
    },
    /// Something is to be counted by value; numbered in this order. What was found is in the file
    /// [`VALUES`].
    Tally {
        /// Where, in the user's words.
        place: String,
        /// What, in the user's words.
        expression: String,
        /// How keys are put together: `log2`, or the width of a range; empty if they are not.
        scale: String,
        /// Are callers told apart?
        by_caller: bool,
        /// Is an amount added up?
        has_amount: bool,
        /// Are keys the targets of indirect calls and jumps?
        is_targets: bool,
        /// Are keys texts?
        is_text: bool,
        /// Are they addresses of instructions of interpreted programs?
        is_program: bool,
    },
    /// A module interprets programs.
    Interpreter {
        /// The module.
        module: usize,
        /// In which language they are.
        language: String,
    },
    /// A place of a tally.
    TallyPlace {
        /// Its number.
        place: u16,
        /// The tally.
        tally: u8,
        /// The module.
        module: usize,
        /// Link address of the instruction.
        at: u64,
        /// What of interpreted programs is counted there, if that is what the tally is about: a code of
        /// [`OfProgram`](headcount_model::OfProgram).
        of_program: u8,
    },
    /// A clock stops the threads of interpreters: so many nanoseconds on a processor are between two samples.
    Clock {
        /// So many.
        interval: u64,
    },
    /// What calls cost is asked for; that is in the file [`CALLS`] when the run has ended.
    Calls,
    /// Where a process has it.
    Loaded {
        /// The process.
        pid: u32,
        /// The module.
        module: usize,
        /// What load addresses have more than link addresses.
        bias: u64,
    },
    /// A thread that was seen.
    Thread {
        /// Its process.
        pid: u32,
        /// Its number.
        tid: u32,
    },
    /// A visit that began (1) or ended (-1) inside of a block.
    Shift {
        /// The module.
        module: usize,
        /// Number of the block in the module.
        block: u32,
        /// First instruction in the block that has the other count.
        from: u32,
        /// How many visits more.
        delta: i64,
    },
    /// A block that was to be counted and could not be; a note says why.
    Uncounted {
        /// The module.
        module: usize,
        /// Number of the block in the module.
        block: u32,
    },
    /// A block that reached its limit.
    AtLeast {
        /// The module.
        module: usize,
        /// Number of the block in the module.
        block: u32,
    },
    /// Control arrived where nobody had foreseen it, and was counted all the same.
    Stray {
        /// The module.
        module: usize,
        /// Link address of where it did so most often.
        at: u64,
        /// At how many places.
        places: usize,
        /// How often in all.
        times: u64,
    },
    /// A sentence for the report about a place that is yet to be put into words: where a process was
    /// killed, say.
    NoteAt {
        /// The beginning of the sentence.
        what: String,
        /// The module.
        module: usize,
        /// Link address of the instruction that did not run.
        at: u64,
    },
    /// A sentence for the report.
    Note(String),
    /// The last line, if all went well.
    End {
        /// Nanoseconds since 1970.
        ended: u64,
        /// Exit status or 128 + signal of the program.
        status: Option<i32>,
        /// How many routines there are.
        routines: usize,
        /// How many windows there are.
        windows: u32,
    },
}

impl Entry {
    /// The module that it is about, if it names one that another line introduces.
    pub fn module(&mut self) -> Option<&mut usize> {
        match self {
            Self::Refused { module, .. }
            | Self::Loaded { module, .. }
            | Self::Shift { module, .. }
            | Self::Uncounted { module, .. }
            | Self::AtLeast { module, .. }
            | Self::Stray { module, .. }
            | Self::Interpreter { module, .. }
            | Self::TallyPlace { module, .. }
            | Self::NoteAt { module, .. } => Some(module),
            Self::Run { .. }
            | Self::Module { .. }
            | Self::File { .. }
            | Self::Visit { .. }
            | Self::Vain { .. }
            | Self::Calls
            | Self::Clock { .. }
            | Self::Tally { .. }
            | Self::Thread { .. }
            | Self::Note(_)
            | Self::End { .. } => None,
        }
    }
}

/// A routine whose copy counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// The module.
    pub module: u32,
    /// Link address of its first byte.
    pub start: u64,
    /// Number of its first counter.
    pub first_counter: u32,
    /// Its blocks, edges and counters.
    pub flow: RoutineFlow,
}

/// What is counted of a routine, as bytes: see [`RoutineFlow::unpack`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutineFlow(pub Vec<u8>);

impl RoutineFlow {
    /// Makes bytes of it.
    pub fn pack(
        blocks: &[RoutineBlock],
        doubtful: &[Range<u32>],
        graph: &FlowGraph,
        plan: &Plan,
    ) -> Self {
        let mut to = Packer::default();
        to.many(blocks, |to, it| {
            to.number(it.offset as usize);
            to.bytes(&it.lengths);
        });
        to.many(doubtful, |to, it| {
            to.number(it.start as usize);
            to.number(it.end as usize);
        });
        to.edges(graph);
        to.plan(plan);
        Self(to.0)
    }

    /// `None`: these are not bytes of ours.
    pub fn unpack(&self) -> Option<Counted> {
        let mut from = Packed(&self.0);
        let blocks = from.many(|it| {
            Some(RoutineBlock {
                offset: it.number()?,
                lengths: it.bytes()?.to_vec(),
                ..RoutineBlock::default()
            })
        })?;
        let doubtful = from.many(|it| Some(it.number()?..it.number()?))?;
        let graph = from.graph(blocks.len())?;
        let plan = from.plan(&graph)?;
        from.0.is_empty().then_some(Counted {
            blocks,
            doubtful,
            graph,
            plan,
        })
    }
}

/// What is counted of a routine.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Offsets, and lengths of instructions.
    pub blocks: Vec<RoutineBlock>,
    /// What is not counted of it although it may run: see [`headcount_model::Routine::doubtful`].
    pub doubtful: Vec<Range<u32>>,
    /// How control moves between the blocks.
    pub graph: FlowGraph,
    /// Where counters are.
    pub plan: Plan,
}

impl Routine {
    fn pack(&self) -> Vec<u8> {
        let mut body = Packer::default();
        body.0.extend(self.module.to_le_bytes());
        body.0.extend(self.start.to_le_bytes());
        body.0.extend(self.first_counter.to_le_bytes());
        body.0.extend(&self.flow.0);
        let mut to = Packer::default();
        to.bytes(&body.0);
        to.0
    }

    fn unpack(body: &[u8]) -> Option<Self> {
        let mut from = Packed(body);
        Some(Self {
            module: from.u32()?,
            start: from.u64()?,
            first_counter: from.u32()?,
            flow: RoutineFlow(from.0.to_vec()),
        })
    }
}

/// A journal being written.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// As long as it is held, that is its path.
    _held: OwnFolder,
    file: File,
    modules: usize,
    routines: usize,
    routines_file: Option<File>,
    /// Routines that are about to be written there.
    gathered: Option<Vec<u8>>,
    /// Could something not be written? That was told once; nothing comes behind a line that was cut.
    is_cut_off: bool,
    /// How many lines there are.
    lines: usize,
    /// Who came and went by no edge since the program pauses, if it does.
    in_pause: Option<Moves>,
}

impl Journal {
    /// Makes the journal of a folder. It is locked for as long as it is written.
    pub fn create(folder: &OwnFolder, first: &Entry) -> io::Result<Self> {
        let file = private_file(&folder.file(JOURNAL))?;
        file.lock()?;
        let mut journal = Self {
            folder: folder.all(),
            _held: folder.clone(),
            file,
            modules: 0,
            routines: 0,
            routines_file: None,
            gathered: None,
            is_cut_off: false,
            lines: 0,
            in_pause: None,
        };
        journal.write(first)?;
        Ok(journal)
    }

    /// Adds a line.
    pub fn write(&mut self, entry: &Entry) -> io::Result<()> {
        if self.is_cut_off {
            return Ok(());
        }
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let written = self.file.write_all(&line);
        self.is_cut_off = written.is_err();
        self.lines += 1;
        if let Some(moves) = &mut self.in_pause {
            moves.add(entry, 1);
        }
        written
    }

    /// The program pauses: who comes and goes by no edge is added up besides. How many lines there
    /// are.
    pub fn begin_pause(&mut self) -> usize {
        self.in_pause = Some(Moves::default());
        self.lines
    }

    /// Who came and went since, if the program still pauses.
    pub fn moves_in_pause(&self) -> Option<&Moves> {
        self.in_pause.as_ref()
    }

    /// It pauses no more.
    pub fn end_pause(&mut self) {
        self.in_pause = None;
    }

    /// Adds the last line.
    pub fn end(&mut self, ended: u64, status: Option<i32>, windows: u32) -> io::Result<()> {
        let routines = self.routines;
        self.write(&Entry::End {
            ended,
            status,
            routines,
            windows,
        })
    }

    /// Adds a module that is counted by copies.
    pub fn add_file(&mut self, path: &str, key: &str) -> io::Result<usize> {
        let number = self.modules;
        self.write(&Entry::File {
            path: path.to_owned(),
            key: key.to_owned(),
        })?;
        self.modules += 1;
        Ok(number)
    }

    /// Adds a routine. Its number.
    pub fn add_routine(&mut self, routine: &Routine) -> io::Result<usize> {
        let packed = routine.pack();
        match &mut self.gathered {
            Some(gathered) => gathered.extend(packed),
            None => self.write_routines(&packed)?,
        }
        let number = self.routines;
        self.routines += 1;
        Ok(number)
    }

    fn write_routines(&mut self, packed: &[u8]) -> io::Result<()> {
        let mut file = match self.routines_file.take() {
            Some(file) => file,
            None => private_file(&self.folder.join(ROUTINES))?,
        };
        file.write_all(packed)?;
        self.routines_file = Some(file);
        Ok(())
    }

    /// Writes the routines that `add` adds all at once. Nobody runs them before that.
    pub fn gather<T>(&mut self, add: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        let before = self.routines;
        self.gathered = Some(Vec::new());
        let added = add(self);
        let gathered = self.gathered.take().unwrap_or_default();
        if self.routines == before {
            return added;
        }
        let written = self.write_routines(&gathered);
        if written.is_err() {
            self.routines = before;
        }
        written.and(added)
    }

    /// The files of lines and of routines.
    pub fn files(&self) -> (&File, Option<&File>) {
        (&self.file, self.routines_file.as_ref())
    }

    /// By which path the files of its folder are reached.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a module, with counters for all its blocks.
    pub fn add_module(&mut self, entry: &Entry, blocks: u32) -> io::Result<(usize, Counters)> {
        let number = self.modules;
        let counters = Counters::create(&self.folder, number, blocks)?;
        self.write(entry)?;
        self.modules += 1;
        Ok((number, counters))
    }
}

pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn counters_name(module: usize) -> String {
    format!("counters.{module}")
}

/// Where the copy of a module's file is, if there is one.
pub(crate) fn module_copy(folder: &Path, module: usize) -> PathBuf {
    folder.join(format!("module.{module}"))
}

/// The file of a module: its copy, or else what is at its path.
pub fn module_bytes(folder: &OwnFolder, module: usize, path: &str) -> io::Result<FileBytes> {
    let copy = foreign_file::bytes(&module_copy(&folder.all(), module));
    copy.or_else(|_| foreign_file::bytes(Path::new(path)))
}

/// The counters of one module.
#[derive(Debug)]
pub struct Counters(MmapMut);

impl Counters {
    fn create(folder: &Path, module: usize, blocks: u32) -> io::Result<Self> {
        let file = private_file(&folder.join(counters_name(module)))?;
        let bytes = u64::from(blocks.max(1)) * 8;
        // A full disk is to be noticed now, not when a counter is written.
        crate::kernel::allocate(&file, bytes)?;
        Ok(Self(crate::kernel::map_shared(&file)?))
    }

    fn place(&mut self, block: u32) -> &mut [u8; 8] {
        let at = block as usize * 8;
        let place = self.0[at..at + 8].first_chunk_mut();
        place.expect("eight bytes are eight bytes")
    }

    /// One more, and how many that makes.
    pub fn add_one(&mut self, block: u32) -> u64 {
        let place = self.place(block);
        let count = u64::from_le_bytes(*place).saturating_add(1);
        *place = count.to_le_bytes();
        count
    }

    /// One less: a visit that did not take place after all.
    pub fn take_one(&mut self, block: u32) {
        let place = self.place(block);
        let count = u64::from_le_bytes(*place).saturating_sub(1);
        *place = count.to_le_bytes();
    }

    /// All of them.
    pub fn all(&self) -> Vec<u64> {
        let (words, _) = self.0.as_chunks::<8>();
        words.iter().map(|it| u64::from_le_bytes(*it)).collect()
    }

    /// How many there are.
    pub fn get(&mut self, block: u32) -> u64 {
        u64::from_le_bytes(*self.place(block))
    }
}

/// A journal that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its lines.
    pub entries: Vec<Entry>,
    /// The routines that were copied, by number.
    pub routines: Vec<Routine>,
    /// The counters of each module; none if it is counted by copies.
    pub counters: Vec<Vec<u64>>,
    /// The counters of copies, by number.
    pub windows: Vec<u64>,
}

impl Written {
    /// How often copies made system calls, by number.
    pub fn system_calls(&self) -> SystemCalls {
        crate::windows::system_calls(&self.windows)
    }
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The kernel says.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// Not a line or a routine of ours.
    #[error("{0}: entry {1} is not of a headcount journal")]
    Garbage(PathBuf, usize),
    /// Of another headcount.
    #[error("{0}: it was written by another version of headcount; use that one")]
    Version(PathBuf),
    /// Counters are missing.
    #[error("{0}: has fewer counters than the journal says")]
    Short(PathBuf),
    /// Routines are missing.
    #[error("{0}: has fewer routines than the journal says")]
    Cut(PathBuf),
}

fn read_file(folder: &OwnFolder, name: &str) -> io::Result<Vec<u8>> {
    foreign_file::read(&folder.file(name), foreign_file::MOST_READ)
}

/// The same, with an error that names the file.
fn read_named(folder: &OwnFolder, name: &str) -> Result<Vec<u8>, Unreadable> {
    let named = |error| Unreadable::Io(folder.path().join(name), error);
    read_file(folder, name).map_err(named)
}

/// Is somebody still writing to the journal in this folder?
pub fn is_being_written(folder: &OwnFolder) -> bool {
    match foreign_file::open(&folder.file(JOURNAL)) {
        Ok(file) => matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

/// The lines of the journal in a folder.
pub fn read_entries(folder: &OwnFolder) -> Result<Vec<Entry>, Unreadable> {
    parse(&folder.path().join(JOURNAL), &read_named(folder, JOURNAL)?)
}

/// Is there more in a folder than the beginning of a line? If not, nothing was counted yet.
pub fn has_begun(folder: &OwnFolder) -> io::Result<bool> {
    for entry in std::fs::read_dir(folder.all())? {
        let entry = entry?;
        if entry.file_name() != JOURNAL || read_file(folder, JOURNAL)?.contains(&b'\n') {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads the journal in a folder, and the counters.
pub fn read(folder: &OwnFolder) -> Result<Written, Unreadable> {
    let entries = read_entries(folder)?;
    let modules = entries.iter().filter_map(|entry| match entry {
        Entry::Module { blocks, .. } => Some(Some(*blocks)),
        Entry::File { .. } => Some(None),
        _ => None,
    });
    let counters = modules
        .enumerate()
        .map(|(module, blocks)| match blocks {
            Some(blocks) => read_counters(folder, module, blocks),
            None => Ok(Vec::new()),
        })
        .collect::<Result<_, _>>()?;
    let routines = read_routines(folder)?;
    // Without the last line nobody knows how many there were: what is there is what was written.
    let last = entries.iter().find_map(|entry| match entry {
        Entry::End {
            routines, windows, ..
        } => Some((*routines, *windows)),
        _ => None,
    });
    let (least_routines, least_windows) = last.unwrap_or_default();
    if routines.len() < least_routines {
        return Err(Unreadable::Cut(folder.path().join(ROUTINES)));
    }
    // Counters are numbered as routines are, in order.
    let last = routines.last();
    let used = last.map_or(Some(0), |it| {
        let plan = it.flow.unpack()?.plan;
        Some(u64::from(it.first_counter) + plan.counters.len() as u64)
    });
    let garbage = || Unreadable::Garbage(folder.path().join(ROUTINES), routines.len());
    let used = used.ok_or_else(garbage)?;
    let vain = entries.iter().find_map(|entry| match entry {
        Entry::Vain { window } => Some(*window),
        _ => None,
    });
    let windows = match used {
        0 => Vec::new(),
        _ => windows::sum(
            &folder.file(WINDOWS),
            used,
            &tables_of(&entries),
            vain,
            least_windows.max(1),
        )
        .map_err(|error| Unreadable::Io(folder.path().join(WINDOWS), error))?,
    };
    Ok(Written {
        entries,
        routines,
        counters,
        windows,
    })
}

/// Where tables of values are in windows, in bytes.
fn tables_of(entries: &[Entry]) -> Range<u32> {
    let tallies = entries.iter().filter_map(|entry| match entry {
        Entry::Tally { is_program, .. } => Some(is_program),
        _ => None,
    });
    match tallies.clone().count() {
        0 => 0..0,
        _ => windows::place_of_tables(tallies.filter(|it| !**it).count() as u32),
    }
}

fn read_routines(folder: &OwnFolder) -> Result<Vec<Routine>, Unreadable> {
    let path = folder.path().join(ROUTINES);
    match read_file(folder, ROUTINES) {
        Ok(bytes) => parse_routines(&path, &bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Unreadable::Io(path, error)),
    }
}

pub(crate) fn parse_routines(path: &Path, bytes: &[u8]) -> Result<Vec<Routine>, Unreadable> {
    let mut from = Packed(bytes);
    let mut routines = Vec::new();
    // The last one may have been cut off.
    while let Some(body) = from.bytes() {
        let routine = Routine::unpack(body);
        routines
            .push(routine.ok_or_else(|| Unreadable::Garbage(path.to_owned(), routines.len() + 1))?);
    }
    Ok(routines)
}

pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, Unreadable> {
    let mut entries = Vec::new();
    // What follows the last newline was cut off.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    for (number, line) in bytes[..whole].split(|byte| *byte == b'\n').enumerate() {
        let garbage = || Unreadable::Garbage(path.to_owned(), number + 1);
        if number == 0 {
            let first: serde_json::Value = serde_json::from_slice(line).map_err(|_| garbage())?;
            let version = first.pointer("/run/version").ok_or_else(garbage)?;
            if version != VERSION {
                return Err(Unreadable::Version(path.to_owned()));
            }
        }
        entries.push(serde_json::from_slice(line).map_err(|_| garbage())?);
    }
    if entries.is_empty() {
        return Err(Unreadable::Garbage(path.to_owned(), 1));
    }
    Ok(entries)
}

fn read_counters(folder: &OwnFolder, module: usize, blocks: u32) -> Result<Vec<u64>, Unreadable> {
    let name = counters_name(module);
    let bytes = read_named(folder, &name)?;
    let (words, _) = bytes.as_chunks::<8>();
    let words = words.get(..blocks as usize);
    let words = words.ok_or_else(|| Unreadable::Short(folder.path().join(name)))?;
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
