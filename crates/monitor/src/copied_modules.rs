//! The modules of a process that are counted by copies.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use headcount_binary::Outline;
use headcount_model::{LoadAddr, LoadBias};
use libc::pid_t;

use crate::catalog;
use crate::copies::{Copies, Installed};
use crate::event_use::EventUse;
use crate::inject;
use crate::journal::Entry;
use crate::memory::Memory;
use crate::module_file::{FileKey, ModuleFile};
use crate::modules;
use crate::monitor::Monitor;
use crate::prepared::Kept;
use crate::proc::{self, FileNumber, Mapping};
use crate::space::places;
use crate::wait::Stopped;
use crate::windows::Windows;
use crate::workshop::{Original as TextBytes, Progress, Site, Workshop};
use crate::{CodeRanges, Settings};

/// A module's file, looked at once.
#[derive(Clone)]
pub struct Original {
    /// Its number in the journal.
    module: usize,
    /// Which file it is, as the mappings of a process name it.
    file: FileNumber,
    outline: Rc<RefCell<Outline>>,
    kept: Rc<RefCell<Kept>>,
    /// What of it is to be counted, if not all.
    wanted: Option<Rc<CodeRanges>>,
    /// Does its code change the `gs` register, which copies need?
    changes_gs: bool,
}

/// How many bytes of copies a byte of text may have.
const GROWTH: u64 = 5;
/// However little text there is.
const LEAST_REGION: u64 = 1 << 18;
/// How many places are tried that are as far away as those of other processes.
const MOST_TRIED: usize = 4;

impl Monitor<'_> {
    /// Guards the routines of modules that are new, and forgets modules that are gone.
    pub fn copy_modules(
        &mut self,
        mut stopped: Stopped,
        mappings: &[Mapping],
    ) -> io::Result<Stopped> {
        let space = self.thread(&stopped).space;
        self.read_logs(space)?;
        self.note_meanings(space)?;
        self.forget_copies(&stopped, space, mappings)?;
        self.notice_made_code(space, mappings)?;
        let program = proc::executable(stopped.tid()).unwrap_or_default();
        if let Some(space) = self.spaces.get_mut(&space) {
            let known = &mut space.copies.program;
            known.get_or_insert_with(|| Rc::from(program.as_path()));
        }
        for mapping in mappings.iter().filter(|it| it.executable && it.file.1 != 0) {
            let is_program = Path::new(&mapping.path) == program;
            let is_known = self
                .spaces
                .get(&space)
                .is_none_or(|it| it.copies.modules.iter().any(|it| it.is(mapping)));
            if is_known || !(self.settings.wants)(&mapping.path, is_program) {
                continue;
            }
            stopped = self.copy_module(stopped, space, mapping, is_program)?;
        }
        if let Some(space) = self.spaces.get_mut(&space) {
            let is_other = |it: &Mapping| {
                let copies = &space.copies;
                it.executable
                    && !it.is_kernels()
                    && !copies.is_ours(it.range.start)
                    && !copies.modules.iter().any(|module| module.is(it))
            };
            space.copies.has_other_code = mappings.iter().any(is_other);
        }
        Ok(stopped)
    }

    fn copy_module(
        &mut self,
        stopped: Stopped,
        space: usize,
        mapping: &Mapping,
        is_program: bool,
    ) -> io::Result<Stopped> {
        let Some(original) = self.original(stopped.tid(), mapping, is_program)? else {
            return Ok(stopped);
        };
        if original.changes_gs {
            self.give_up_for_gs(space, &mapping.path)?;
            return Ok(stopped);
        }
        let bias = catalog::bias(original.outline.borrow().layout(), mapping);
        let Some(bias) = bias else {
            return Ok(stopped);
        };
        let text = catalog::code_in(original.outline.borrow().layout(), mapping);
        let installed = self.spaces.get(&space).and_then(|it| {
            let mut modules = it.copies.modules.iter();
            modules.position(|it| it.is_part_of(mapping, bias))
        });
        let (stopped, installed) = match installed {
            Some(installed) => (stopped, Some(installed)),
            None => self.install(stopped, space, mapping, &original, bias)?,
        };
        if let Some(installed) = installed {
            let is_same = original.file == mapping.file;
            let file = is_same.then_some((&original, mapping.offset));
            self.install_text(&stopped, space, installed, text, file)?;
        }
        Ok(stopped)
    }

    /// Maps memory for the copies of a module. Its place among the installed ones; `None` if it
    /// cannot be counted.
    fn install(
        &mut self,
        stopped: Stopped,
        space: usize,
        mapping: &Mapping,
        original: &Original,
        bias: LoadBias,
    ) -> io::Result<(Stopped, Option<usize>)> {
        let pid = self.thread(&stopped).pid;
        let text = catalog::code_in(original.outline.borrow().layout(), mapping);
        self.set_up(&stopped, space, LoadAddr(text.start))?;
        let mappings = proc::mappings(stopped.tid())?;
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok((stopped, None));
        };
        if space_of.copies.is_refused {
            return Ok((stopped, None));
        }
        let code = catalog::code(original.outline.borrow().layout());
        let whole = code.reach.start + bias.0..code.reach.end + bias.0;
        let size = (code.length * GROWTH).max(LEAST_REGION);
        let size = size.next_multiple_of(4096);
        // What was made for another process serves this one, too, if it can be as far away.
        let workshops = self.workshops.iter().rev();
        let distances = workshops
            .filter(|it| it.module == original.module && it.site.base == code.reach.start)
            .map(|it| whole.start.wrapping_add(it.site.distance))
            // Behind a module, the heap may grow.
            .filter(|place| *place < whole.start && is_free(&mappings, *place, size))
            .take(MOST_TRIED);
        let places: Vec<u64> = distances.chain(places(&mappings, &whole, size)).collect();
        let region = map_region(&space_of.copies, &stopped, &space_of.memory, &places, size)?;
        let Some(region) = region else {
            let path = &mapping.path;
            let reason = match inject::has_own_filters(&stopped) {
                true => "the program filters its system calls, and may be killed for one of ours",
                false => "there is no free memory within two gigabytes of its code",
            };
            let note = format!("{path} is not counted: {reason}.");
            self.journal.write(&Entry::Note(note))?;
            return Ok((stopped, None));
        };
        let site = Site {
            base: code.reach.start,
            distance: region.0.wrapping_sub(whole.start),
            size,
        };
        let workshop = self.workshop(original, site);
        self.journal.write(&Entry::Loaded {
            pid: pid as u32,
            module: original.module,
            bias: bias.0,
        })?;
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok((stopped, None));
        };
        let installed = Installed {
            workshop,
            bias,
            texts: Vec::new(),
            region: region.0..region.0 + size,
            file: mapping.file.clone(),
            progress: Progress::default(),
        };
        if let Some(onlooker) = self.settings.onlooker {
            onlooker.has_room(pid, installed.region.clone(), bias, workshop);
        }
        let modules = &mut space_of.copies.modules;
        modules.push(installed);
        let number = modules.len() - 1;
        self.begin_clock(stopped.tid(), space)?;
        Ok((stopped, Some(number)))
    }

    /// Guards the routines in an executable mapping of a module, and copies those that are likely to
    /// run.
    fn install_text(
        &mut self,
        stopped: &Stopped,
        space: usize,
        index: usize,
        text: Range<u64>,
        file: Option<(&Original, u64)>,
    ) -> io::Result<()> {
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        let Some(module) = space_of.copies.modules.get_mut(index) else {
            return Ok(());
        };
        let workshop = &mut self.workshops[module.workshop];
        let start = module.link(LoadAddr(text.start)).0;
        if !workshop.has_text(start) {
            let bytes = text_bytes(stopped.tid(), &space_of.memory, &text, file)?;
            workshop.add_text(start, bytes);
        }
        module.texts.push(text);
        self.make_used_before(space, index)?;
        if !self.make_room(stopped, space)? {
            return Ok(());
        }
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        let Some(module) = space_of.copies.modules.get_mut(index) else {
            return Ok(());
        };
        let workshop = &self.workshops[module.workshop];
        tell(self.settings, &mut self.told, module.workshop, workshop);
        if module.progress == Progress::default() {
            return workshop.write_everything(module, &space_of.memory);
        }
        // Threads may run in what is there of it already: what the text leads to comes first.
        if !self.update(stopped, space, index)? {
            return Ok(());
        }
        let Some(space_of) = self.spaces.get(&space) else {
            return Ok(());
        };
        match space_of.copies.modules.get(index) {
            Some(it) => self.workshops[it.workshop].write_text(start, it, &space_of.memory),
            None => Ok(()),
        }
    }

    /// Tells the onlooker of copies that are about to be written.
    pub fn tell_of_copies(&mut self, number: usize) {
        let workshop = &self.workshops[number];
        tell(self.settings, &mut self.told, number, workshop);
    }

    /// Makes the routines of a module that its program used before.
    fn make_used_before(&mut self, space: usize, index: usize) -> io::Result<()> {
        let is_alone = self.is_alone(space);
        let Some(copies) = self.spaces.get(&space).map(|it| &it.copies) else {
            return Ok(());
        };
        let (Some(program), Some(module), Some(windows)) = (
            &copies.program,
            copies.modules.get(index),
            &mut self.windows,
        ) else {
            return Ok(());
        };
        let workshop = &mut self.workshops[module.workshop];
        let Some(fingerprint) = workshop.fingerprint().filter(|_| !self.in_the_middle) else {
            return Ok(());
        };
        let recall = self.settings.recall;
        let starts = self.used_before.of(program, &fingerprint, recall);
        workshop.make_ahead(&starts, is_alone, windows, &mut self.journal)
    }

    /// Makes sure that a child has in its memory what its parent is known to have. `false`: a module
    /// is missing.
    pub fn check_inherited(&mut self, stopped: &Stopped, space: usize) -> io::Result<bool> {
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok(true);
        };
        if !space_of.copies.is_doubtful {
            return Ok(true);
        }
        let before = space_of.copies.modules.len();
        space_of.copies.believe(&proc::mappings(stopped.tid())?);
        if !self.make_room(stopped, space)? {
            return Ok(true);
        }
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(true);
        };
        for module in &mut space.copies.modules {
            self.workshops[module.workshop].write_everything(module, &space.memory)?;
        }
        Ok(space.copies.modules.len() == before)
    }

    /// Looks at the files of a process that still runs, so that it need not stand still for that.
    pub fn prepare(&mut self, pid: pid_t) -> io::Result<()> {
        if self.windows.is_none() {
            return Ok(());
        }
        let program = proc::executable(pid).unwrap_or_default();
        for mapping in proc::mappings(pid)? {
            let is_program = Path::new(&mapping.path) == program;
            let is_code = mapping.executable && mapping.file.1 != 0;
            if is_code
                && (self.settings.wants)(&mapping.path, is_program)
                && let Some(original) = self.original(pid, &mapping, is_program)?
            {
                self.explore(&original);
            }
        }
        Ok(())
    }

    /// Hands over what was prepared of routines, and which were used, for other runs.
    pub fn remember(&mut self) {
        for original in self.originals.values().flatten() {
            let kept = original.kept.borrow();
            if let (Some(fingerprint), Some(news)) = (&kept.fingerprint, kept.news()) {
                (self.settings.remember)(fingerprint, news);
            }
        }
        let sums = self.windows.as_ref().and_then(Windows::sums_of_few);
        let ran = sums.map(|sums| self.ran(&sums));
        let ran = |module: &str, start: u64| {
            let ran = ran.as_ref();
            ran.is_none_or(|it| it.get(module).is_some_and(|it| it.contains(&start)))
        };
        self.used_before.remember(&ran, self.settings.remember);
    }

    /// Where routines begin that ran, by the fingerprints of their modules.
    fn ran(&self, sums: &[u64]) -> HashMap<Rc<str>, HashSet<u64>> {
        let mut ran: HashMap<_, HashSet<u64>> = HashMap::new();
        for workshop in &self.workshops {
            if let Some(fingerprint) = workshop.fingerprint() {
                let starts = ran.entry(fingerprint).or_default();
                starts.extend(workshop.ran(sums));
            }
        }
        ran
    }

    /// What is known of the file that is mapped here; `None` if it is not counted.
    fn original(
        &mut self,
        tid: pid_t,
        mapping: &Mapping,
        is_program: bool,
    ) -> io::Result<Option<Original>> {
        let file = match modules::open(tid, mapping, is_program) {
            Ok(file) => file,
            Err(error) => return self.no_original(modules::name(mapping), &error.to_string()),
        };
        let facts = file.metadata()?;
        let key = FileKey::from(&facts);
        let known = self.originals.get(&key);
        let is_changed = |it: &Original| self.files.is_changed(it.module);
        if let Some(known) = known.filter(|it| !it.as_ref().is_some_and(is_changed)) {
            return Ok(known.clone());
        }
        let path = modules::name(mapping);
        let held = self.files.hold(path, file);
        let read = |file: ModuleFile| {
            // What is kept of a file is used wherever its bytes are the same.
            let outline = match file.is_safe() {
                true => catalog::outline_once(path, file.bytes(), self.settings),
                false => catalog::outline(path, file.bytes()),
            };
            Ok((outline?, file))
        };
        let found = match held.map_err(|it| it.to_string()).and_then(read) {
            Ok((outline, file)) => {
                let module = self.journal.add_file(path, outline.key())?;
                // What is kept runs in other programs.
                let keyed = self.keyed_in(path, outline.key(), file.bytes(), module)?;
                let events = match keyed {
                    Some(probes) => EventUse::Keyed(probes),
                    None => self.events_in(path, outline.key(), file.bytes()),
                };
                let fingerprint = file.is_safe().then(|| outline.fingerprint());
                let fingerprint = fingerprint.and_then(|it| events.fingerprint(it));
                let fingerprint: Option<Rc<str>> = fingerprint.map(Rc::from);
                // What an interpreter runs may be wanted, and the interpreter not.
                let wanted = match self.interprets(module) {
                    true => None,
                    false => (self.settings.wanted)(path, outline.key(), file.bytes()),
                };
                self.files.add(file);
                let changes_gs = outline.changes_gs();
                let kept = fingerprint.as_deref().and_then(self.settings.recall);
                let mut kept = Kept::new(kept.unwrap_or_default());
                (kept.fingerprint, kept.events) = (fingerprint, events);
                Some(Original {
                    module,
                    file: proc::number_of(&facts),
                    outline: Rc::new(RefCell::new(outline)),
                    kept: Rc::new(RefCell::new(kept)),
                    wanted: wanted.map(Rc::new),
                    changes_gs,
                })
            }
            Err(reason) => self.no_original(path, &reason)?,
        };
        self.originals.insert(key, found.clone());
        Ok(found)
    }

    fn no_original(&mut self, path: &str, reason: &str) -> io::Result<Option<Original>> {
        let note = format!("{path} is not counted: {reason}.");
        self.journal.write(&Entry::Note(note))?;
        Ok(None)
    }

    /// The workshop for a module with its copies at this distance.
    fn workshop(&mut self, original: &Original, site: Site) -> usize {
        let known = self
            .workshops
            .iter()
            .position(|it| it.module == original.module && it.site == site);
        if let Some(known) = known {
            return known;
        }
        // What is not copied is not looked at when it runs: where it leads to is known before, or
        // never.
        if self.in_the_middle || original.wanted.is_some() {
            self.explore(original);
        }
        self.workshops.push(Workshop::new(
            original.module,
            site,
            Rc::clone(&original.outline),
            Rc::clone(&original.kept),
            original.wanted.clone(),
            self.in_the_middle,
        ));
        self.workshops.len() - 1
    }

    /// Follows control through all of a module.
    fn explore(&self, original: &Original) {
        let mut outline = original.outline.borrow_mut();
        outline.prepare_to_explore(&self.settings.recall, &self.settings.remember);
    }

    /// Gives the memory of copies back whose module is mapped no more.
    fn forget_copies(
        &mut self,
        stopped: &Stopped,
        space: usize,
        mappings: &[Mapping],
    ) -> io::Result<()> {
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        let is_mapped = |it: &Installed| mappings.iter().any(|mapping| it.is(mapping));
        let (mut kept, gone): (Vec<_>, Vec<_>) =
            space.copies.modules.drain(..).partition(|it| is_mapped(it));
        for module in &mut kept {
            module.forget_unmapped(mappings);
        }
        space.copies.modules = kept;
        for module in gone {
            let region = module.region;
            let arguments = [region.start, region.end - region.start, 0, 0, 0, 0];
            let number = libc::SYS_munmap;
            let copies = &space.copies;
            copies.system_call(stopped, &space.memory, number, arguments)?;
        }
        Ok(())
    }

    /// A module of a process changes the register itself. A process of which nothing is copied yet
    /// is left alone.
    fn give_up_for_gs(&mut self, space: usize, path: &str) -> io::Result<()> {
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        if !space.copies.modules.is_empty() {
            return self.refuse_gs();
        }
        if !std::mem::replace(&mut space.copies.is_refused, true) {
            self.journal.write(&Entry::Note(format!(
                "A process is not counted: {path} uses the gs register itself, which copies need \
                 to count; run it with --engine breakpoint."
            )))?;
        }
        Ok(())
    }

    /// The program wants the register that copies count by for itself.
    pub fn refuse_gs(&self) -> io::Result<()> {
        match self.windows {
            Some(_) => Err(io::Error::other(
                "the program uses the gs register itself, which copies need to count; run it with \
                 --engine breakpoint",
            )),
            None => Ok(()),
        }
    }
}

/// The bytes of a text before we change it. `file`: which file it is mapped from, and where. What is
/// the same in there need not be read.
fn text_bytes(
    tid: pid_t,
    memory: &Memory,
    text: &Range<u64>,
    file: Option<(&Original, u64)>,
) -> io::Result<TextBytes> {
    let length = text.end - text.start;
    let in_file = file.and_then(|(original, offset)| {
        TextBytes::in_file(original.outline.borrow().file(), offset, length)
    });
    // Those that we borrowed for system calls in the name of the process are among them.
    let own = proc::own_pages(tid, text);
    if let (Some(bytes), Some(own)) = (in_file, own)
        && is_same(memory, text.start, &bytes, &own)?
    {
        return Ok(bytes);
    }
    let mut bytes = vec![0; length as usize];
    memory.read(LoadAddr(text.start), &mut bytes)?;
    Ok(TextBytes::Own(bytes))
}

/// Are these pages of a text, which begins at an address, as in its file?
fn is_same(memory: &Memory, start: u64, bytes: &TextBytes, pages: &[u64]) -> io::Result<bool> {
    let mut page = [0; proc::PAGE as usize];
    for at in pages {
        memory.read(LoadAddr(*at), &mut page)?;
        if !bytes.have(at.saturating_sub(start) as usize, &page) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_free(mappings: &[Mapping], place: u64, size: u64) -> bool {
    let wanted = place..place.saturating_add(size);
    let overlaps = |it: &Mapping| it.range.start < wanted.end && wanted.start < it.range.end;
    !mappings.iter().any(overlaps)
}

/// Memory for copies, at the first of these places that is free; `None` if none is.
fn map_region(
    copies: &Copies,
    stopped: &Stopped,
    memory: &Memory,
    places: &[u64],
    size: u64,
) -> io::Result<Option<LoadAddr>> {
    for place in places {
        let arguments = inject::code_arguments(*place, size);
        let result = copies.system_call(stopped, memory, libc::SYS_mmap, arguments)?;
        if result as u64 == *place {
            return Ok(Some(LoadAddr(*place)));
        }
    }
    Ok(None)
}

/// Tells the onlooker of the copies of a workshop that are new.
fn tell(settings: &Settings<'_>, told: &mut Vec<usize>, number: usize, workshop: &Workshop) {
    let Some(onlooker) = settings.onlooker else {
        return;
    };
    told.resize(told.len().max(number + 1), 0);
    for unit in workshop.units.iter().skip(told[number]) {
        let length = unit.copy.code.len() as u64;
        onlooker.has_copy(number, unit.offset, length, unit.copy.originals());
    }
    told[number] = workshop.units.len();
}
