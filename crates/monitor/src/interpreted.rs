//! What interpreters run: whose instructions are those that copies count by their addresses?
//!
//! A piece of program, a function of a script say, is somewhere in memory while it is in use; another one may
//! be there later. What was counted at its addresses is booked on it before that, and before the memory of the
//! process goes. Pieces are told apart by what they say, so that processes that run the same script count for
//! the same pieces.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io;
use std::iter;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use headcount_language::{Arrival, Interpreter, Language, Memory, Runtime, Watch};
use headcount_model::{KeyKind, LoadAddr};
use headcount_patch::{PLACE_SHIFT, SLOT_COUNT, end_of_bucket, first_places, mask};

use libc::pid_t;

use crate::foreign_file;
use crate::monitor::Monitor;
use crate::proc;
use crate::space::Space;
use crate::values::{Found, FoundKey, Piece, Slot, Sum, of_hits, of_piece, slots};
use crate::wait::Stopped;

/// No interpreted program is larger.
const LARGEST_PROGRAM: u64 = 1 << 28;

/// A module that interprets programs.
#[derive(Clone, Debug)]
pub struct Interpreted {
    /// What knows it.
    pub interpreter: Rc<dyn Interpreter>,
    /// The tally whose keys are addresses of its programs' instructions.
    pub tally: u8,
    /// The number of the place that all probes of instructions share.
    pub place: u16,
    /// What can be measured of its runtime.
    pub runtime: Option<Rc<Runtime>>,
    /// The number of the place for what becomes of its storage.
    pub storage_place: u16,
    /// The number of the place for what a clock sees.
    pub samples_place: u16,
    /// How it is known which piece of program is where.
    pub watch: Watch,
    /// The language of its programs.
    pub language: Language,
}

/// Pieces of programs.
#[derive(Debug, Default)]
pub struct Pieces {
    /// By module and description.
    numbers: HashMap<(usize, Vec<u8>), u32>,
    /// By address space and first address.
    known: HashMap<usize, BTreeMap<u64, Part>>,
    /// What is being brought into memory, by the thread that does it and where its stack is: the first argument.
    arriving: HashMap<(pid_t, u64), u64>,
}

/// A part of a piece of program in memory.
#[derive(Clone, Copy, Debug)]
struct Part {
    end: u64,
    /// The number of the piece.
    number: u32,
    /// How much of the piece comes before it.
    before: u32,
}

impl Pieces {
    /// The piece that has an instruction at an address, and how far from its start that is.
    pub fn at(&self, space: usize, at: u64) -> Option<(u32, u32)> {
        let known = self.known.get(&space)?;
        let (start, part) = known.range(..=at).next_back()?;
        (at < part.end).then_some((part.number, part.before + (at - start) as u32))
    }

    /// The parts of an address space that overlap a range, by their first and last addresses.
    fn in_range(&self, space: usize, range: &Range<u64>) -> Vec<Range<u64>> {
        let known = self.known.get(&space).into_iter();
        let parts = known.flat_map(|it| it.range(..range.end).rev());
        let parts = parts.take_while(|(_, part)| part.end > range.start);
        parts.map(|(start, part)| *start..part.end).collect()
    }

    /// An address space is gone.
    pub fn forget(&mut self, space: usize) {
        self.known.remove(&space);
    }

    /// Notes where one is, in parts. Is it new, it gets a number.
    fn learn(&mut self, space: usize, module: usize, arrived: Arrival) -> Option<Piece> {
        let next = self.numbers.len() as u32;
        let key = (module, arrived.description);
        let known = self.numbers.get(&key).copied();
        let number = known.unwrap_or(next);
        let mut before = 0;
        for part in arrived.parts {
            // What overlaps it is gone.
            let gone = self.in_range(space, &part);
            let places = self.known.entry(space).or_default();
            gone.iter().for_each(|it| {
                places.remove(&it.start);
            });
            let is = Part {
                end: part.end,
                number,
                before,
            };
            before += (part.end - part.start) as u32;
            places.insert(part.start, is);
        }
        known.is_none().then(|| {
            self.numbers.insert(key.clone(), number);
            Piece {
                number,
                module: key.0 as u32,
                description: key.1,
            }
        })
    }
}

impl Memory for Space {
    fn read(&self, at: u64, into: &mut [u8]) -> Option<()> {
        self.memory.read(LoadAddr(at), into).ok()
    }
}

/// The memory of a process, and the files that it sees.
struct Process<'a> {
    memory: &'a Space,
    threads: Vec<pid_t>,
}

impl Memory for Process<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> Option<()> {
        self.memory.read(at, into)
    }

    fn files(&self, name: &[u8]) -> Vec<(String, Vec<u8>)> {
        let name = Path::new(OsStr::from_bytes(name));
        // It may have gone elsewhere since it read the file; most begin where we are.
        let here = std::env::current_dir().ok();
        let theirs = self.threads.iter().find_map(|it| proc::folder(*it).ok());
        let mut paths: Vec<PathBuf> = Vec::new();
        for folder in theirs.into_iter().chain(here) {
            // Without the `.` of `./program`.
            let path: PathBuf = folder.join(name).components().collect();
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let read = |path: &PathBuf| {
            let mut threads = self.threads.iter();
            let file = threads.find_map(|it| foreign_file::open_in_root_of(*it, path).ok());
            foreign_file::read_open(file?, LARGEST_PROGRAM).ok()
        };
        let found = paths.iter().filter_map(|path| {
            let path_text = path.to_str()?.to_owned();
            Some((path_text, read(path)?))
        });
        found.collect()
    }
}

impl Monitor<'_> {
    /// Finds out whose the instructions are that a window's thread counted.
    pub fn learn_pieces(&mut self, window: u32, space: usize) -> io::Result<()> {
        for (module, bias, it) in self.interpreters_in(space) {
            for slot in self.slots_of(window, it.tally)? {
                self.learn_piece(space, module, bias, &*it.interpreter, slot.key)?;
            }
        }
        Ok(())
    }

    /// Is a module an interpreter whose programs are counted?
    pub fn interprets(&self, module: usize) -> bool {
        let tallies = self.tallies.as_ref();
        tallies.is_some_and(|it| it.interpreters.contains_key(&module))
    }

    pub(crate) fn learn_piece(
        &mut self,
        space: usize,
        module: usize,
        bias: u64,
        interpreter: &dyn Interpreter,
        at: u64,
    ) -> io::Result<()> {
        let (Some(tallies), Some(memory)) = (&mut self.tallies, self.spaces.get(&space)) else {
            return Ok(());
        };
        if tallies.pieces.at(space, at).is_some() {
            return Ok(());
        }
        let threads = self.threads.iter().filter(|it| it.1.space == space);
        let process = Process {
            memory,
            threads: threads.map(|it| *it.0).collect(),
        };
        let unit = interpreter.unit_at(&process, bias, at);
        let arrived = unit.map(|it| Arrival {
            parts: iter::once(it.start..it.end).collect(),
            description: it.description,
        });
        match arrived {
            Some(it) => self.learn_arrived(space, module, it),
            None => Ok(()),
        }
    }

    fn learn_arrived(&mut self, space: usize, module: usize, arrived: Arrival) -> io::Result<()> {
        let Some(tallies) = &mut self.tallies else {
            return Ok(());
        };
        match tallies.pieces.learn(space, module, arrived) {
            Some(piece) => tallies.write(&of_piece(&piece)),
            None => Ok(()),
        }
    }

    /// A child made by `fork` has what its parent has.
    pub fn inherit_pieces(&mut self, parent: usize, child: usize) {
        if let Some(tallies) = &mut self.tallies
            && let Some(known) = tallies.pieces.known.get(&parent)
        {
            let known = known.clone();
            tallies.pieces.known.insert(child, known);
        }
    }

    /// The interpreters of an address space: their modules, and how far these were moved.
    pub(crate) fn interpreters_in(&self, space: usize) -> Vec<(usize, u64, Interpreted)> {
        let Some(tallies) = self
            .tallies
            .as_ref()
            .filter(|it| !it.interpreters.is_empty())
        else {
            return Vec::new();
        };
        let modules = self.spaces.get(&space).map(|it| &it.copies.modules);
        let found = modules.into_iter().flatten().filter_map(|it| {
            let module = self.workshops[it.workshop].module;
            let known = tallies.interpreters.get(&module)?;
            Some((module, it.bias.0, known.clone()))
        });
        found.collect()
    }

    fn slots_of(&self, window: u32, tally: u8) -> io::Result<Vec<Slot>> {
        let table = self.windows.as_ref().map(|it| it.read_table(window, tally));
        Ok(slots(&table.transpose()?.unwrap_or_default()).collect())
    }

    /// The slots whose keys are between two addresses. Instructions are at even ones.
    fn slots_between(
        &self,
        window: u32,
        interpreted: &Interpreted,
        keys: Range<u64>,
    ) -> io::Result<Vec<Slot>> {
        let tally = interpreted.tally;
        let by = u64::from(interpreted.place) << PLACE_SHIFT;
        let mut found: BTreeMap<u32, Slot> = BTreeMap::new();
        let Some(windows) = &self.windows else {
            return Ok(Vec::new());
        };
        let mask = windows.word_at(window, mask(tally))? as u32;
        for key in keys.step_by(2) {
            for place in first_places(key, by, mask) {
                let bytes = windows.read_in_table(window, tally, place..end_of_bucket(place))?;
                let slots = slots(&bytes).filter(|it| it.key == key);
                found.extend(slots.map(|it| (place + it.offset, it)));
            }
        }
        let slots = found.into_iter().map(|(offset, it)| Slot { offset, ..it });
        Ok(slots.collect())
    }

    /// A thread is about to free a piece of program, or has brought one into memory, or is about to do that.
    pub fn met_notice(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let trap = LoadAddr(stopped.instruction_pointer()?.wrapping_sub(1));
        let Some(at) = self.unit_and_spot(space, trap).map(|it| it.2.at) else {
            return Ok(());
        };
        for (module, bias, it) in self.interpreters_in(space) {
            match &it.watch {
                Watch::Frees(frees) if *frees == at => {
                    self.met_free(stopped, space, (module, bias), &it)?;
                }
                Watch::Loads { begin, .. } if *begin == at => self.met_load(stopped)?,
                Watch::Loads { ends, .. } if ends.contains(&at) => {
                    self.met_arrival(stopped, space, module, &it)?;
                }
                _ => self.met_runtime(stopped, space, bias, &it, at)?,
            }
        }
        Ok(())
    }

    /// A thread is about to free a piece of program: what was counted there is booked on it.
    fn met_free(
        &mut self,
        stopped: &Stopped,
        space: usize,
        (module, bias): (usize, u64),
        it: &Interpreted,
    ) -> io::Result<()> {
        let freed = stopped.registers()?.rdi;
        let memory = self.spaces.get(&space);
        let extent = memory.and_then(|memory| it.interpreter.extent(memory, bias, freed));
        let Some(extent) = extent else {
            return Ok(());
        };
        for window in self.windows_in(space) {
            let slots = self.slots_between(window, it, extent.clone())?;
            if !slots.is_empty() {
                self.learn_piece(space, module, bias, &*it.interpreter, extent.start)?;
                self.book(window, it.tally, space, &slots)?;
            }
        }
        if let Some(tallies) = &mut self.tallies
            && let Some(known) = tallies.pieces.known.get_mut(&space)
        {
            known.remove(&extent.start);
        }
        Ok(())
    }

    /// A thread is about to bring a piece of program into memory.
    fn met_load(&mut self, stopped: &Stopped) -> io::Result<()> {
        let registers = stopped.registers()?;
        if let Some(tallies) = &mut self.tallies {
            let key = (stopped.tid(), registers.rsp);
            tallies.pieces.arriving.insert(key, registers.rdi);
        }
        Ok(())
    }

    /// It has done so: what was counted where that is now is booked on what was there before.
    fn met_arrival(
        &mut self,
        stopped: &Stopped,
        space: usize,
        module: usize,
        it: &Interpreted,
    ) -> io::Result<()> {
        let registers = stopped.registers()?;
        let key = (stopped.tid(), registers.rsp);
        let tallies = self.tallies.as_mut();
        let Some(about) = tallies.and_then(|it| it.pieces.arriving.remove(&key)) else {
            return Ok(());
        };
        // It says how it went.
        if registers.rax as u32 != 0 {
            return Ok(());
        }
        let memory = self.spaces.get(&space);
        let arrived = memory.and_then(|memory| it.interpreter.arrived(memory, about));
        let Some(arrived) = arrived else {
            return Ok(());
        };
        self.book_replaced(space, it, &arrived.parts)?;
        self.learn_arrived(space, module, arrived)
    }

    /// Books what was counted in parts that are about to be forgotten, because others are in their place.
    fn book_replaced(
        &mut self,
        space: usize,
        it: &Interpreted,
        parts: &[Range<u64>],
    ) -> io::Result<()> {
        let Some(tallies) = &self.tallies else {
            return Ok(());
        };
        let replaced = parts
            .iter()
            .flat_map(|it| tallies.pieces.in_range(space, it));
        let replaced: Vec<Range<u64>> = replaced.collect();
        for window in self.windows_in(space) {
            let slots = self.slots_in(window, it, &replaced)?;
            if !slots.is_empty() {
                self.book(window, it.tally, space, &slots)?;
            }
        }
        Ok(())
    }

    /// The slots whose keys are in one of several ranges.
    fn slots_in(
        &self,
        window: u32,
        interpreted: &Interpreted,
        ranges: &[Range<u64>],
    ) -> io::Result<Vec<Slot>> {
        /// To look for more keys than these one by one takes longer than to read all there are.
        const FEW: u64 = 256;
        let keys: u64 = ranges.iter().map(|it| (it.end - it.start) / 2).sum();
        if keys > FEW {
            let mut slots = self.slots_of(window, interpreted.tally)?;
            slots.retain(|slot| ranges.iter().any(|it| it.contains(&slot.key)));
            return Ok(slots);
        }
        let mut found = Vec::new();
        for range in ranges {
            found.extend(self.slots_between(window, interpreted, range.clone())?);
        }
        Ok(found)
    }

    /// Takes slots out of a table in which no thread counts any more.
    fn book(&mut self, window: u32, tally: u8, space: usize, these: &[Slot]) -> io::Result<()> {
        let (Some(tallies), Some(windows)) = (&mut self.tallies, &self.windows) else {
            return Ok(());
        };
        let found = these.iter().map(|slot| {
            let piece = tallies.pieces.at(space, slot.key);
            let found = Found {
                tally,
                place: slot.place(),
                key: match piece {
                    Some((number, offset)) => FoundKey::Piece(number, offset),
                    None => FoundKey::Kind(KeyKind::Elsewhere),
                },
                by: None,
            };
            (found, slot.sum)
        });
        let found: Vec<(Found, Sum)> = found.collect();
        tallies.write(&of_hits(&found))?;
        for slot in these {
            let count = slot.sum.count.cast_signed();
            let at = (windows.in_window(tally, slot.offset) + SLOT_COUNT) / 8;
            windows.add_to(window, at, count.wrapping_neg())?;
        }
        Ok(())
    }

    /// The windows that threads of an address space count in.
    fn windows_in(&self, space: usize) -> Vec<u32> {
        let threads = self.threads.iter().filter(|(_, it)| it.space == space);
        let windows = threads.filter_map(|(tid, _)| self.windows.as_ref()?.of(*tid));
        windows.collect()
    }

    /// A thread is about to end, or to become another program: soon nobody can say what its process
    /// interpreted.
    pub fn read_before_the_end(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        if self.interpreters_in(space).is_empty() {
            return Ok(());
        }
        let window = self.windows.as_ref().and_then(|it| it.of(stopped.tid()));
        match window {
            Some(window) => self.empty_tables(window, space),
            None => Ok(()),
        }
    }

    /// The same for all threads of a process that is about to run another program.
    pub fn read_before_exec(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        for (module, bias, it) in self.interpreters_in(space) {
            for window in self.windows_in(space) {
                for slot in self.slots_of(window, it.tally)? {
                    self.learn_piece(space, module, bias, &*it.interpreter, slot.key)?;
                }
            }
        }
        Ok(())
    }
}
