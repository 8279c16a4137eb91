//! Counting by value: the tables of threads are read and emptied.
//!
//! Copies count in them (`headcount_patch`, `keyed.rs`), and where there are none, breakpoints do
//! (`tally_hits`). A table is emptied when it has no room for a key, and when its thread ends. Before code
//! goes away that its addresses speak of, it is noted what they meant.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;

use headcount_model::{
    Direct, KeyedProbe, KeyedProbes, LinkAddr, LoadAddr, MOST_PLACES, OfProgram,
};
use headcount_patch::{Copy, SLOT_BYTES, Spot, TEXT_LIMIT, TEXT_START, last_amount, text_hash};
use libc::pid_t;

use crate::FileBytes;
use crate::copies::Where;
use crate::interpreted::{Interpreted, Pieces};
use crate::journal::{Entry, Journal, VALUES, private_file};
use crate::monitor::Monitor;
use crate::runtimes::Runtimes;
use crate::values::{
    CodeAt, Found, KindOfTally, Meaning, Slot, Sum, Values, of_hits, of_tables, of_text, slots,
};
use crate::wait::Stopped;

/// What is to be counted by value.
pub struct Tallying<'a> {
    /// In the order of their numbers.
    pub tallies: Vec<TallyAsked>,
    /// The probes of a module with this path, this key and these bytes, for which places it is asked by
    /// number; and why there are none where somebody may expect some.
    pub probes: &'a dyn Fn(&str, &str, &FileBytes) -> KeyedIn,
    /// The tally of the targets of indirect calls and jumps, if that is asked for.
    pub targets: Option<u8>,
}

/// What one tally is about.
#[derive(Clone, Debug, Default)]
pub struct TallyAsked {
    /// Where, in the user's words.
    pub place: String,
    /// What, in the user's words.
    pub expression: String,
    /// How keys are put together, in a word; empty if they are not.
    pub scale: String,
    /// Are callers told apart?
    pub by_caller: bool,
    /// Is an amount added up?
    pub has_amount: bool,
    /// Are keys where control goes?
    pub is_targets: bool,
    /// Are they texts?
    pub is_text: bool,
    /// Are they addresses of instructions that interpreters fetch?
    pub is_program: bool,
}

/// The keyed probes of a module.
#[derive(Clone, Debug, Default)]
pub struct KeyedIn {
    /// Their places are numbered by who asks.
    pub probes: Vec<KeyedProbe>,
    /// Sentences for the report about what cannot be counted.
    pub notes: Vec<String>,
    /// What it interprets.
    pub interpreted: Option<Interpreted>,
}

/// How many bytes a file has that says the same again and again.
#[derive(Clone, Copy, Debug, Default)]
struct Repeated {
    now: usize,
    /// When it was begun.
    then: usize,
}

/// Files that are smaller may.
const LEAST_REPEATED: usize = 1 << 20;

/// The tallies of a run.
#[derive(Debug)]
pub struct Tallies {
    kinds: Vec<KindOfTally>,
    path: PathBuf,
    /// Made when there is something to write: until then, a program needs no descriptor more.
    file: Option<File>,
    /// What breakpoints found, and all texts.
    seen: Values,
    /// How many bytes the file has, and had when it was begun.
    size: Repeated,
    /// How often the tables of a window were emptied.
    generations: HashMap<u32, u64>,
    /// What slots held whose addresses meant something else then.
    meant: HashMap<(u32, u8, u32), Vec<(Found, Slot)>>,
    /// The number of the next place.
    next_place: u16,
    /// By tally: that of the next slot that is one key's own.
    next_direct: HashMap<u8, u16>,
    /// The interpreters among the modules, by number.
    pub(crate) interpreters: HashMap<usize, Interpreted>,
    /// What they interpret.
    pub(crate) pieces: Pieces,
    /// What their runtimes are doing.
    pub(crate) runtimes: Runtimes,
}

impl Tallies {
    /// Those that are asked for.
    pub fn new(asked: &Tallying<'_>, journal: &mut Journal) -> io::Result<Self> {
        for it in &asked.tallies {
            journal.write(&Entry::Tally {
                place: it.place.clone(),
                expression: it.expression.clone(),
                scale: it.scale.clone(),
                by_caller: it.by_caller,
                has_amount: it.has_amount,
                is_targets: it.is_targets,
                is_text: it.is_text,
                is_program: it.is_program,
            })?;
        }
        let kinds = asked.tallies.iter().map(|it| KindOfTally {
            is_targets: it.is_targets,
            is_text: it.is_text,
            by_caller: it.by_caller,
            is_program: it.is_program,
        });
        Ok(Self {
            kinds: kinds.collect(),
            file: None,
            path: journal.folder().join(VALUES),
            seen: Values::default(),
            size: Repeated::default(),
            generations: HashMap::new(),
            meant: HashMap::new(),
            next_place: 0,
            next_direct: HashMap::new(),
            interpreters: HashMap::new(),
            pieces: Pieces::default(),
            runtimes: Runtimes::default(),
        })
    }

    /// A text was met.
    pub fn keep_text(&mut self, text: &[u8]) -> io::Result<()> {
        let hash = text_hash(text);
        if self.seen.texts.contains_key(&hash) {
            return Ok(());
        }
        self.write(&of_text(hash, text))?;
        self.seen.texts.insert(hash, text.to_vec());
        Ok(())
    }

    /// A breakpoint was met.
    pub fn hit(&mut self, found: Found, sum: Sum) -> io::Result<()> {
        let record = of_hits(&[(found, sum)]);
        self.write(&record)?;
        self.seen.add(found, sum);
        self.size.now += record.len();
        match self.size.now > LEAST_REPEATED.max(2 * self.size.then) {
            true => self.write_anew(),
            false => Ok(()),
        }
    }

    /// Says in one record what the file says in many.
    fn write_anew(&mut self) -> io::Result<()> {
        let path = self.path.with_extension("new");
        let mut file = private_file(&path)?;
        for (hash, text) in &self.seen.texts {
            file.write_all(&of_text(*hash, text))?;
        }
        let found = self.seen.found.iter().map(|(found, sum)| (*found, *sum));
        let found: Vec<(Found, Sum)> = found.collect();
        let record = of_hits(&found);
        file.write_all(&record)?;
        std::fs::rename(&path, &self.path)?;
        let size = record.len();
        self.size = Repeated {
            now: size,
            then: size,
        };
        self.file = Some(file);
        Ok(())
    }

    /// The slots of a probe's keys, if they are few and there are enough.
    fn direct(&mut self, probe: &KeyedProbe) -> Option<Direct> {
        let next = self.next_direct.entry(probe.tally).or_default();
        let direct = probe.direct_from(*next)?;
        *next += direct.slots();
        Some(direct)
    }

    /// The number of a new place.
    fn new_place(&mut self) -> u16 {
        self.next_place += 1;
        self.next_place - 1
    }

    /// How many there are.
    fn count(&self) -> u8 {
        self.kinds.len() as u8
    }

    /// Adds to the file.
    pub(crate) fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => private_file(&self.path)?,
        };
        self.file.insert(file).write_all(record)
    }

    /// What a slot holds, in parts: what its addresses meant before, and what they mean now.
    fn parts(
        &self,
        window: u32,
        tally: u8,
        slot: Slot,
        meaning: &Meaning<'_>,
    ) -> Vec<(Found, Sum)> {
        let kind = self.kinds[usize::from(tally)];
        let mut rest = slot;
        let before = self.meant.get(&(window, tally, slot.offset));
        let mut parts = Vec::new();
        for (found, part) in before.into_iter().flatten() {
            if (part.key, part.by) == (slot.key, slot.by) {
                parts.push((*found, part.sum));
                rest.sum.count = rest.sum.count.wrapping_sub(part.sum.count);
                rest.sum.amount = rest.sum.amount.wrapping_sub(part.sum.amount);
            }
        }
        if rest.sum.count != 0 {
            parts.push((rest.found(tally, kind, meaning), rest.sum));
        }
        parts
    }
}

/// What of a program a probe counts, if it is an interpreter's.
fn of_program(interpreted: Option<&Interpreted>, probe: &KeyedProbe) -> Option<OfProgram> {
    let it = interpreted.filter(|it| it.tally == probe.tally)?;
    let Some(runtime) = &it.runtime else {
        return Some(OfProgram::Instructions);
    };
    let mut resumptions = runtime.resumptions.iter();
    let mut allocations = runtime.allocations.iter();
    let taken = allocations.find(|it| it.at == probe.at);
    Some(match taken {
        Some(it) => OfProgram::taken(it.region),
        None if resumptions.any(|it| it.at == probe.at) => OfProgram::Resumptions,
        None => OfProgram::Instructions,
    })
}

impl Monitor<'_> {
    /// What the copies of a module count by value.
    pub fn keyed_in(
        &mut self,
        path: &str,
        key: &str,
        bytes: &FileBytes,
        module: usize,
    ) -> io::Result<Option<Rc<KeyedProbes>>> {
        let (Some(tallying), Some(tallies)) = (&self.settings.tallying, &mut self.tallies) else {
            return Ok(None);
        };
        let KeyedIn {
            mut probes,
            notes,
            interpreted,
        } = (tallying.probes)(path, key, bytes);
        for note in notes {
            self.journal.write(&Entry::Note(note))?;
        }
        probes.sort_by_key(|it| (it.at, it.tally));
        // An interpreter has three of its own.
        let left = usize::from(MOST_PLACES - tallies.next_place).saturating_sub(3);
        if probes.len() > left {
            probes.truncate(left);
            self.journal.write(&Entry::Note(format!(
                "Values are counted at {MOST_PLACES} places only: the rest of {path} is left out."
            )))?;
        }
        let program = interpreted.as_ref().map(|it| it.tally);
        let is_kept =
            probes.iter().all(|it| Some(it.tally) == program) && tallying.targets.is_none();
        let shared = tallies.next_place;
        let mut interpreted = interpreted;
        if let Some(it) = &mut interpreted {
            it.place = tallies.new_place();
            let of = [OfProgram::Storage, OfProgram::Samples];
            [it.storage_place, it.samples_place] = of.map(|_| tallies.new_place());
            let places = [it.storage_place, it.samples_place].into_iter().zip(of);
            for (place, of) in places.filter(|_| it.runtime.is_some()) {
                self.journal.write(&Entry::TallyPlace {
                    place,
                    tally: it.tally,
                    module,
                    at: 0,
                    of_program: of.code(),
                })?;
            }
        }
        for probe in &mut probes {
            let of = of_program(interpreted.as_ref(), probe);
            // Wherever an instruction is fetched, it is the same one.
            probe.place = match of == Some(OfProgram::Instructions) {
                true => shared,
                false => tallies.new_place(),
            };
            probe.direct = tallies.direct(probe);
            self.journal.write(&Entry::TallyPlace {
                place: probe.place,
                tally: probe.tally,
                module,
                at: probe.at.0,
                of_program: of.unwrap_or(OfProgram::Instructions).code(),
            })?;
        }
        let mut keyed = KeyedProbes {
            probes,
            targets: tallying.targets,
            ..KeyedProbes::NONE
        };
        if let Some(it) = interpreted {
            if let Some(windows) = &mut self.windows {
                windows.keep_fetches();
            }
            keyed.notices.extend(it.watch.instructions());
            let of_runtime = it.runtime.iter().flat_map(|it| it.instructions());
            keyed.notices.extend(of_runtime);
            keyed.notices.sort_unstable();
            keyed.kept_as =
                is_kept.then(|| format!("{}-{}-{shared}", it.language.name(), it.tally));
            self.journal.write(&Entry::Interpreter {
                module,
                language: it.language.name().to_owned(),
            })?;
            tallies.interpreters.insert(module, it);
        }
        Ok(Some(Rc::new(keyed)))
    }

    /// Is anything counted by value: what was asked for, or what is interpreted?
    pub fn counts_by_value(&self) -> bool {
        let tallies = self.tallies.as_ref();
        tallies.is_some_and(|it| {
            !it.interpreters.is_empty() || it.kinds.iter().any(|kind| !kind.is_program)
        })
    }

    /// A thread is about to count in a window.
    pub fn begin_tables(&mut self, tid: pid_t, window: u32) -> io::Result<()> {
        let pid = self.threads.get(&tid).map_or(tid, |it| it.pid);
        match (&self.tallies, &self.windows) {
            (Some(tallies), Some(windows)) => windows.own_tables(window, tallies.count(), pid)?,
            _ => return Ok(()),
        }
        if let Some(space) = self.threads.get(&tid).map(|it| it.space) {
            self.begin_clock(tid, space)?;
        }
        Ok(())
    }

    /// The thread of a window stands still, or counts there no more: what it found goes into the file.
    pub fn empty_tables(&mut self, window: u32, space: usize) -> io::Result<()> {
        self.learn_pieces(window, space)?;
        let (Some(tallies), Some(windows)) = (&self.tallies, &self.windows) else {
            return Ok(());
        };
        let mut found = Vec::new();
        let meaning = Meaning {
            code: &|at| self.code_at(space, at),
            piece: &|at| tallies.pieces.at(space, at),
        };
        for tally in 0..tallies.count() {
            for slot in slots(&windows.read_table(window, tally)?) {
                found.extend(tallies.parts(window, tally, slot, &meaning));
            }
        }
        if found.is_empty() {
            return Ok(());
        }
        let is_vain = self.vain == Some(window);
        let count = tallies.count();
        let Some(tallies) = &mut self.tallies else {
            return Ok(());
        };
        let generation = tallies.generations.entry(window).or_default();
        *generation += 1;
        let generation = *generation;
        if !is_vain {
            let record = of_tables(window, generation, &found);
            tallies.write(&record)?;
        }
        tallies.meant.retain(|(of, ..), _| *of != window);
        windows.empty_tables(window, count, generation)
    }

    /// Code of an address space comes or goes: what was found until now is about what is there now.
    pub fn note_meanings(&mut self, space: usize) -> io::Result<()> {
        let Some(tallies) = &self.tallies else {
            return Ok(());
        };
        let kinds = tallies.kinds.clone();
        if !kinds.iter().any(|it| it.is_targets || it.by_caller) {
            return Ok(());
        }
        let threads = self.threads.iter().filter(|(_, it)| it.space == space);
        let windows = threads.filter_map(|(tid, _)| self.windows.as_ref()?.of(*tid));
        let meaning = Meaning {
            code: &|at| self.code_at(space, at),
            piece: &|at| tallies.pieces.at(space, at),
        };
        let mut meant = Vec::new();
        for window in windows {
            for tally in 0..tallies.count() {
                // These have their own time.
                if kinds[usize::from(tally)].is_program {
                    continue;
                }
                let table = self.windows.as_ref().map(|it| it.read_table(window, tally));
                for slot in slots(&table.transpose()?.unwrap_or_default()) {
                    let parts = tallies.parts(window, tally, slot, &meaning);
                    let place = (window, tally, slot.offset);
                    let parts = parts
                        .into_iter()
                        .map(|(found, sum)| (found, Slot { sum, ..slot }));
                    meant.push((place, parts.collect()));
                }
            }
        }
        if let Some(tallies) = &mut self.tallies {
            tallies.meant.extend(meant);
        }
        Ok(())
    }

    /// A copy trapped because a table of its thread has no room for a key.
    pub fn met_full_table(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let Some(window) = self.window_of(stopped, space) else {
            return Ok(());
        };
        let crowded = self.crowded_tables(window)?;
        self.empty_tables(window, space)?;
        let Some(windows) = &self.windows else {
            return Ok(());
        };
        let mut crowded = crowded.into_iter();
        crowded.try_for_each(|it| windows.grow_table(window, it))
    }

    /// The tables of a window that are in use to a good part: one of their buckets may be full.
    fn crowded_tables(&self, window: u32) -> io::Result<Vec<u8>> {
        let (Some(tallies), Some(windows)) = (&self.tallies, &self.windows) else {
            return Ok(Vec::new());
        };
        let mut crowded = Vec::new();
        for tally in 0..tallies.count() {
            let table = windows.read_buckets(window, tally)?;
            if slots(&table).count() * SLOT_BYTES as usize > table.len() / 8 {
                crowded.push(tally);
            }
        }
        Ok(crowded)
    }

    /// A copy trapped because a text comes into a table of its thread: what text that is.
    pub fn met_new_text(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let (Some(window), Some(windows)) = (self.window_of(stopped, space), &self.windows) else {
            return Ok(());
        };
        let start = windows.word_at(window, TEXT_START)?;
        let limit = windows.word_at(window, TEXT_LIMIT)?;
        let most = limit.wrapping_sub(start) as u32;
        let space = self.spaces.get(&space);
        let text = space.and_then(|it| it.text(LoadAddr(start), most));
        // Another thread may have changed it.
        let is_it = |text: &Vec<u8>| {
            let registers = stopped.registers();
            registers.is_ok_and(|it| it.rax == text_hash(text))
        };
        match (text.filter(is_it), &mut self.tallies) {
            (Some(text), Some(tallies)) => tallies.keep_text(&text),
            _ => Ok(()),
        }
    }

    /// Does a copy trap at this offset because a table has no room for a key?
    pub fn has_full_table(&self, space: usize, index: usize, offset: u64) -> bool {
        self.is_trap(space, index, offset, Copy::is_full_table)
    }

    /// Does it because a text comes into a table?
    pub fn has_new_text(&self, space: usize, index: usize, offset: u64) -> bool {
        self.is_trap(space, index, offset, Copy::is_new_text)
    }

    /// Does it because headcount is to be told of it?
    pub fn has_notice(&self, space: usize, index: usize, offset: u64) -> bool {
        self.is_trap(space, index, offset, Copy::is_notice)
    }

    /// Did a thread fault because a keyed probe read what is not there? Then it goes on with a key
    /// that says so.
    pub fn met_unreadable(&mut self, stopped: &Stopped) -> io::Result<bool> {
        // What others send is none of ours, wherever it finds the thread.
        let is_fault = || stopped.signal_info().is_some_and(|it| it.code > 0);
        if self.tallies.is_none() || !is_fault() {
            return Ok(false);
        }
        let space = self.thread(stopped).space;
        let at = stopped.instruction_pointer()?;
        let Some(Where::Copies(index, offset)) = self.find(space, LoadAddr(at)) else {
            return Ok(false);
        };
        let behind = self.module(space, index).and_then(|module| {
            let workshop = &self.workshops[module.workshop];
            let (unit, offset) = workshop.unit_in_copies(offset)?;
            let behind = workshop.units[unit].copy.behind_fault(offset)?;
            Some(u64::from(behind).wrapping_sub(offset.into()))
        });
        match behind {
            Some(behind) => {
                stopped.go_to(at.wrapping_add(behind))?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// What a thread at a spot counted for an instruction that it will not run now is taken back; or,
    /// with 1, counted again.
    pub fn fix_tallied(
        &mut self,
        stopped: &Stopped,
        space: usize,
        tallied: &[(u8, bool)],
        sign: i64,
    ) -> io::Result<()> {
        if tallied.is_empty() || !self.counts(stopped.tid()) {
            return Ok(());
        }
        let (Some(window), Some(windows)) = (self.window_of(stopped, space), &self.windows) else {
            return Ok(());
        };
        for (tally, has_amount) in tallied {
            let slot = windows.last_slot(window, *tally)?;
            windows.add_to(window, (slot + headcount_patch::SLOT_COUNT) / 8, sign)?;
            if *has_amount {
                let amount = windows.word_at(window, last_amount(*tally))?.cast_signed();
                let at = (slot + headcount_patch::SLOT_AMOUNT) / 8;
                windows.add_to(window, at, amount.wrapping_mul(sign))?;
            }
        }
        Ok(())
    }

    /// What a thread at an address counted for an instruction that it has not run.
    pub fn tallied_at(&self, space: usize, at: LoadAddr) -> Vec<(u8, bool)> {
        if self.tallies.is_none() {
            return Vec::new();
        }
        let found = self.unit_and_spot(space, at);
        found.map_or(Vec::new(), |(_, unit, spot): (_, _, Spot)| {
            unit.copy.tallied(&spot).collect()
        })
    }

    /// The module that an address is in.
    pub(crate) fn code_at(&self, space: usize, at: u64) -> CodeAt {
        let found = self.in_counted_file(space, LoadAddr(at));
        found.map_or(CodeAt::Elsewhere, |(module, LinkAddr(at))| {
            CodeAt::Module(module as u32, at)
        })
    }
}
