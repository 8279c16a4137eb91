//! What interpreters run: whose instructions are those that copies count by their addresses?
//!
//! A piece of program, a function of a script say, is somewhere in memory while it is in use; another one may
//! be there later. What was counted at its addresses is booked on it before that, and before the memory of the
//! process goes. Pieces are told apart by what they say, so that processes that run the same script count for
//! the same pieces.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::rc::Rc;

use headcount_language::{Interpreter, Memory, Unit};
use headcount_model::{LinkAddr, LoadAddr};
use headcount_patch::{PLACE_SHIFT, SLOT_COUNT, end_of_bucket, first_places, mask};

use crate::monitor::Monitor;
use crate::space::Space;
use crate::values::{Found, FoundKey, Piece, Slot, Sum, of_hits, of_piece, slots};
use crate::wait::Stopped;

/// A module that interprets programs.
#[derive(Clone, Debug)]
pub struct Interpreted {
    /// What knows it.
    pub interpreter: Rc<dyn Interpreter>,
    /// The tally whose keys are addresses of its programs' instructions.
    pub tally: u8,
    /// The number of the place that all of its probes share.
    pub place: u16,
    /// What frees a piece of program, which is its first argument.
    pub frees: Option<LinkAddr>,
    /// Tells its probes from those of others.
    pub name: String,
}

/// Pieces of programs.
#[derive(Debug, Default)]
pub struct Pieces {
    /// By module and description.
    numbers: HashMap<(usize, Vec<u8>), u32>,
    /// By address space and first address: where they end, and their numbers.
    known: HashMap<usize, BTreeMap<u64, (u64, u32)>>,
}

impl Pieces {
    /// The piece that has an instruction at an address, and how far from its start that is.
    pub fn at(&self, space: usize, at: u64) -> Option<(u32, u32)> {
        let known = self.known.get(&space)?;
        let (start, (end, number)) = known.range(..=at).next_back()?;
        (at < *end).then_some((*number, (at - start) as u32))
    }

    /// An address space is gone.
    pub fn forget(&mut self, space: usize) {
        self.known.remove(&space);
    }

    /// Notes where one is. Is it new, it gets a number.
    fn learn(&mut self, space: usize, module: usize, unit: Unit) -> Option<Piece> {
        let next = self.numbers.len() as u32;
        let key = (module, unit.description);
        let known = self.numbers.get(&key).copied();
        let number = known.unwrap_or(next);
        let places = self.known.entry(space).or_default();
        // What overlaps it is gone.
        let gone = places.range(..unit.end).rev();
        let gone = gone.take_while(|(_, (end, _))| *end > unit.start);
        let gone: Vec<u64> = gone.map(|it| *it.0).collect();
        gone.iter().for_each(|it| {
            places.remove(it);
        });
        places.insert(unit.start, (unit.end, number));
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

    fn learn_piece(
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
        let unit = interpreter.unit_at(memory, bias, at);
        let new = unit.and_then(|it| tallies.pieces.learn(space, module, it));
        match new {
            Some(piece) => tallies.write(&of_piece(&piece)),
            None => Ok(()),
        }
    }

    /// The interpreters of an address space: their modules, and how far these were moved.
    fn interpreters_in(&self, space: usize) -> Vec<(usize, u64, Interpreted)> {
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

    /// A thread is about to free a piece of program: what was counted there is booked on it.
    pub fn met_notice(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let freed = stopped.registers()?.rdi;
        for (module, bias, it) in self.interpreters_in(space) {
            let Some(memory) = self.spaces.get(&space) else {
                continue;
            };
            let Some(extent) = it.interpreter.extent(memory, bias, freed) else {
                continue;
            };
            for window in self.windows_in(space) {
                let slots = self.slots_between(window, &it, extent.clone())?;
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
        }
        Ok(())
    }

    /// Takes slots out of a table in which no thread counts any more.
    fn book(&mut self, window: u32, tally: u8, space: usize, these: &[Slot]) -> io::Result<()> {
        let (Some(tallies), Some(windows)) = (&mut self.tallies, &self.windows) else {
            return Ok(());
        };
        let found = these.iter().filter_map(|slot| {
            let (number, offset) = tallies.pieces.at(space, slot.key)?;
            let found = Found {
                tally,
                place: 0,
                key: FoundKey::Piece(number, offset),
                by: None,
            };
            Some((found, slot.sum))
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
