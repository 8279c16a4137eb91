//! Counting by copies: routines are copied when they first run, and run in their copies.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use headcount_binary::Outline;
use headcount_model::{LinkAddr, LoadAddr};
use headcount_patch::{Fix, Spot, Undo};
use libc::pid_t;

use crate::catalog::{self, FileKey};
use crate::copies::{self, Copies, Installed, Mapped, Where};
use crate::inject;
use crate::journal::Entry;
use crate::monitor::Monitor;
use crate::proc::{self, Mapping};
use crate::space::places;
use crate::wait::Stopped;
use crate::windows::WINDOW;
use crate::workshop::{Site, Workshop};

/// A module's file, looked at once.
#[derive(Clone)]
pub struct Original {
    /// Its number in the journal.
    module: usize,
    outline: Rc<RefCell<Outline>>,
    /// Does its code change the `gs` register, which copies need?
    changes_gs: bool,
}

/// How a thread comes to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// By the program's own code, which met a trap there.
    ByItself,
    /// By the kernel, at the end of a signal handler, say; or it was there when we came.
    Sent,
}

/// How many bytes of copies a byte of text may have.
const GROWTH: u64 = 5;
/// How often control arrives somewhere before it is expected there.
const OFTEN: u64 = 8;
/// However little text there is.
const LEAST_REGION: u64 = 1 << 18;

impl Monitor<'_> {
    /// Guards the routines of modules that are new, and forgets modules that are gone.
    pub fn copy_modules(
        &mut self,
        mut stopped: Stopped,
        mappings: &[Mapping],
    ) -> io::Result<Stopped> {
        let thread = self.thread(&stopped);
        let (pid, space) = (thread.pid, thread.space);
        stopped = self.forget_copies(stopped, space, mappings)?;
        self.name_made_code(space, mappings)?;
        let program = proc::executable(pid).unwrap_or_default();
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
        Ok(stopped)
    }

    fn copy_module(
        &mut self,
        stopped: Stopped,
        space: usize,
        mapping: &Mapping,
        is_program: bool,
    ) -> io::Result<Stopped> {
        let pid = self.thread(&stopped).pid;
        let Some(original) = self.original(pid, mapping, is_program)? else {
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
        let stopped = self.set_up(stopped, space, LoadAddr(text.start))?;
        let mappings = proc::mappings(pid)?;
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok(stopped);
        };
        if space_of.copies.is_refused {
            return Ok(stopped);
        }
        let length = text.end - text.start;
        let size = (length * GROWTH).max(LEAST_REGION).next_multiple_of(4096);
        let places = places(&mappings, &text, size);
        let (stopped, region) =
            map_region(&space_of.copies, stopped, &space_of.memory, &places, size)?;
        let Some(region) = region else {
            let path = &mapping.path;
            let reason = match inject::has_own_filters(&stopped) {
                true => "the program filters its system calls, and may be killed for one of ours",
                false => "there is no free memory within two gigabytes of its code",
            };
            let note = format!("{path} is not counted: {reason}.");
            self.journal.write(&Entry::Note(note))?;
            return Ok(stopped);
        };
        let site = Site {
            text: text.start - bias.0..text.end - bias.0,
            distance: region.0.wrapping_sub(text.start),
            size,
        };
        let workshop = self.workshop(&original, site, space, &text)?;
        self.journal.write(&Entry::Loaded {
            pid: pid as u32,
            module: original.module,
            bias: bias.0,
        })?;
        let (writes, progress) = self.workshops[workshop].everything();
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(stopped);
        };
        let installed = Installed {
            workshop,
            bias,
            text,
            region: region.0..region.0 + size,
            file: mapping.file.clone(),
            progress,
        };
        for (at, bytes) in writes {
            space.memory.write(installed.load(at), &bytes)?;
        }
        space.copies.modules.push(installed);
        Ok(stopped)
    }

    /// What is known of the file that is mapped here; `None` if it is not counted.
    fn original(
        &mut self,
        pid: pid_t,
        mapping: &Mapping,
        is_program: bool,
    ) -> io::Result<Option<Original>> {
        // The process may have another root, or its file another name by now.
        let file = match is_program {
            true => File::open(format!("/proc/{pid}/exe")),
            false => File::open(format!("/proc/{pid}/root{}", mapping.path)),
        };
        let file = match file {
            Ok(file) => file,
            Err(error) => return self.no_original(&mapping.path, &error.to_string()),
        };
        let key = FileKey::of(&file)?;
        if let Some(known) = self.originals.get(&key) {
            return Ok(known.clone());
        }
        let found = match catalog::outline(&mapping.path, &file) {
            Ok(outline) => {
                let module = self.journal.add_file(&mapping.path, outline.key())?;
                let changes_gs = outline.changes_gs();
                Some(Original {
                    module,
                    outline: Rc::new(RefCell::new(outline)),
                    changes_gs,
                })
            }
            Err(reason) => self.no_original(&mapping.path, &reason)?,
        };
        self.originals.insert(key, found.clone());
        Ok(found)
    }

    fn no_original(&mut self, path: &str, reason: &str) -> io::Result<Option<Original>> {
        let note = format!("{path} is not counted: {reason}.");
        self.journal.write(&Entry::Note(note))?;
        Ok(None)
    }

    /// The workshop for a module's text with its copies at this distance.
    fn workshop(
        &mut self,
        original: &Original,
        site: Site,
        space: usize,
        text: &Range<u64>,
    ) -> io::Result<usize> {
        let known = self
            .workshops
            .iter()
            .position(|it| it.module == original.module && it.site == site);
        if let Some(known) = known {
            return Ok(known);
        }
        let mut bytes = vec![0; (text.end - text.start) as usize];
        if let Some(space) = self.spaces.get(&space) {
            space.memory.read(LoadAddr(text.start), &mut bytes)?;
        }
        let outline = Rc::clone(&original.outline);
        let also: Vec<u64> = match self.in_the_middle {
            true => outline.borrow_mut().return_points(),
            false => Vec::new(),
        };
        let workshop = Workshop::new(original.module, site, outline, bytes, &also);
        self.workshops.push(workshop);
        Ok(self.workshops.len() - 1)
    }

    /// Gives the memory of copies back whose module is mapped no more.
    fn forget_copies(
        &mut self,
        mut stopped: Stopped,
        space: usize,
        mappings: &[Mapping],
    ) -> io::Result<Stopped> {
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(stopped);
        };
        let is_mapped = |it: &Installed| mappings.iter().any(|mapping| it.is(mapping));
        let (kept, gone): (Vec<_>, Vec<_>) =
            space.copies.modules.drain(..).partition(|it| is_mapped(it));
        space.copies.modules = kept;
        for module in gone {
            let region = module.region;
            let arguments = [region.start, region.end - region.start, 0, 0, 0, 0];
            let number = libc::SYS_munmap;
            let copies = &space.copies;
            (stopped, _) = copies.system_call(stopped, &space.memory, number, arguments)?;
        }
        Ok(stopped)
    }

    /// Makes sure that a process has what its copies need, and its thread a window.
    fn set_up(
        &mut self,
        stopped: Stopped,
        space: usize,
        borrowed: LoadAddr,
    ) -> io::Result<Stopped> {
        let tid = stopped.tid();
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok(stopped);
        };
        if space_of.copies.is_refused || space_of.copies.window_of(tid).is_some() {
            return Ok(stopped);
        }
        let (stopped, desk) =
            copies::set_up_desk(&mut space_of.copies, stopped, &space_of.memory, borrowed)?;
        if let Err(error) = desk {
            space_of.copies.is_refused = true;
            self.journal.write(&Entry::Note(format!(
                "A process is not counted: there is no place for counters in its memory ({error})."
            )))?;
            return Ok(stopped);
        }
        self.give_window(stopped, space, None)
    }

    /// Gives a thread a window of its own, at an address if there is one.
    pub fn give_window(
        &mut self,
        stopped: Stopped,
        space: usize,
        at: Option<u64>,
    ) -> io::Result<Stopped> {
        let tid = stopped.tid();
        let (Some(space), Some(windows)) = (self.spaces.get_mut(&space), &mut self.windows) else {
            return Ok(stopped);
        };
        let mut free = space.copies.windows.iter_mut();
        let free = free.find(|it| it.user.is_none()).filter(|_| at.is_none());
        if let Some(free) = free {
            free.user = Some(tid);
            set_gs(&stopped, free.at)?;
            return Ok(stopped);
        }
        let window = windows.take()?;
        let path = windows.path.as_os_str().as_bytes().to_vec();
        let copies = &space.copies;
        let (stopped, mapped) = copies.map_window(stopped, &space.memory, &path, window, at)?;
        match mapped {
            Ok(at) => {
                space.copies.windows.push(Mapped {
                    window,
                    at,
                    user: Some(tid),
                });
                set_gs(&stopped, at)?;
            }
            Err(error) => {
                windows.give_back(window);
                let is_first = space.copies.modules.is_empty();
                space.copies.is_refused |= is_first;
                let what = match is_first {
                    true => "A process is not counted",
                    false => "A thread may have lost counts",
                };
                self.journal.write(&Entry::Note(format!(
                    "{what}: its counters could not be mapped into its memory ({error})."
                )))?;
            }
        }
        Ok(stopped)
    }

    /// A new thread or process stands before its first instruction: it gets a window.
    pub fn begin_window(&mut self, stopped: Stopped) -> io::Result<Stopped> {
        let thread = self.thread(&stopped);
        let space = thread.space;
        let (is_borrower, is_child) = (thread.borrows_window, thread.pid == stopped.tid());
        let Some(space_of) = self.spaces.get_mut(&space) else {
            return Ok(stopped);
        };
        if self.windows.is_none() || is_borrower || space_of.copies.modules.is_empty() {
            return Ok(stopped);
        }
        let is_forked = is_child && space_of.copies.is_inherited;
        if !is_forked {
            return self.give_window(stopped, space, None);
        }
        // What is mapped belongs to the parent; the child's own goes to the same place.
        space_of.copies.is_inherited = false;
        space_of.copies.windows.clear();
        let at = stopped.registers()?.gs_base;
        self.give_window(stopped, space, Some(at))
    }

    /// Gives all threads of a process that is attached to their windows; the first one maps them.
    pub fn give_windows<'s>(
        &mut self,
        mut stopped: Stopped,
        others: impl Iterator<Item = &'s Stopped>,
    ) -> io::Result<Stopped> {
        let space = self.thread(&stopped).space;
        let bare = |it: &crate::space::Space| it.copies.modules.is_empty();
        if self.windows.is_none() || self.spaces.get(&space).is_none_or(bare) {
            return Ok(stopped);
        }
        for other in others {
            let before = other.registers()?.gs_base;
            self.thread(other).gs_before = before;
            let mine = stopped.registers()?.gs_base;
            stopped = self.give_window(stopped, space, None)?;
            let theirs = stopped.registers()?.gs_base;
            set_gs(&stopped, mine)?;
            if let Some(space) = self.spaces.get_mut(&space) {
                let mut windows = space.copies.windows.iter_mut();
                if let Some(mapped) = windows.find(|it| it.at == theirs) {
                    mapped.user = Some(other.tid());
                    set_gs(other, theirs)?;
                }
            }
        }
        Ok(stopped)
    }

    /// Gives all memory of ours in an address space back. No thread may be in it.
    pub fn unmap_all(&mut self, mut stopped: Stopped, space: usize) -> io::Result<Stopped> {
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(stopped);
        };
        if self.windows.is_none() {
            return space.unmap_slots(stopped);
        }
        let copies = std::mem::take(&mut space.copies);
        let regions = copies.modules.iter().map(|it| it.region.clone());
        let windows = copies.windows.iter().map(|it| it.at..it.at + WINDOW);
        for range in regions.chain(windows) {
            let arguments = [range.start, range.end - range.start, 0, 0, 0, 0];
            let number = libc::SYS_munmap;
            (stopped, _) = copies.system_call(stopped, &space.memory, number, arguments)?;
        }
        match copies.modules.first() {
            Some(module) => {
                let borrowed = LoadAddr(module.text.start);
                copies.clear_desk(stopped, &space.memory, borrowed)
            }
            None => Ok(stopped),
        }
    }

    /// Gives a thread back what `gs` was to it.
    pub fn give_gs_back(&mut self, stopped: &Stopped) -> io::Result<()> {
        let before = self.thread(stopped).gs_before;
        match self.windows {
            Some(_) => set_gs(stopped, before),
            None => Ok(()),
        }
    }

    /// Where a thread stands, seen without us.
    pub fn stands_at(&mut self, stopped: &Stopped) -> io::Result<LoadAddr> {
        let at = LoadAddr(stopped.instruction_pointer()?);
        let space = self.thread(stopped).space;
        match self.windows {
            Some(_) => Ok(self.original_address(space, at)),
            None => Ok(self.spaces.get(&space).map_or(at, |it| it.out_of_slot(at))),
        }
    }

    /// Does a thread stand where the original bytes are the midst of a jump of ours? Handlers of
    /// some languages make their thread go on there without telling the kernel.
    pub fn stands_at_covered(&mut self, stopped: &Stopped) -> io::Result<bool> {
        let space = self.thread(stopped).space;
        let at = self.stands_at(stopped)?;
        let Some(Where::Text(index)) = self.find(space, at) else {
            return Ok(false);
        };
        Ok(self.module(space, index).is_some_and(|module| {
            let workshop = &self.workshops[module.workshop];
            let link = module.link(at);
            let unit = workshop.unit_at(link).map(|unit| &workshop.units[unit]);
            unit.is_some_and(|it| it.copy.is_covered((link.0 - it.copy.start.0) as u32))
        }))
    }

    /// A child that is not counted runs in its parent's memory: what it counts is for nothing.
    pub fn count_in_vain(&mut self, stopped: Stopped, space: usize) -> io::Result<Stopped> {
        let (Some(space), Some(windows)) = (self.spaces.get_mut(&space), &mut self.windows) else {
            return Ok(stopped);
        };
        if space.copies.modules.is_empty() {
            return Ok(stopped);
        }
        if let Some(at) = space.copies.vain {
            set_gs(&stopped, at)?;
            return Ok(stopped);
        }
        let window = match self.vain {
            Some(window) => window,
            None => {
                let window = windows.take()?;
                self.vain = Some(window);
                self.journal.write(&Entry::Vain { window })?;
                window
            }
        };
        let path = windows.path.as_os_str().as_bytes().to_vec();
        let copies = &space.copies;
        let (stopped, mapped) = copies.map_window(stopped, &space.memory, &path, window, None)?;
        if let Ok(at) = mapped {
            space.copies.vain = Some(at);
            set_gs(&stopped, at)?;
        }
        Ok(stopped)
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

    /// Tells where control arrived against expectation.
    pub fn tell_strays(&mut self) -> io::Result<()> {
        if self.in_the_middle {
            return Ok(());
        }
        for workshop in &self.workshops {
            let places = workshop.strays().count();
            let times: u64 = workshop.strays().map(|(_, count)| count).sum();
            let often = workshop.strays().max_by_key(|(_, count)| *count);
            if let Some((at, _)) = often {
                self.journal.write(&Entry::Stray {
                    module: workshop.module,
                    at: at.0,
                    places,
                    times,
                })?;
            }
        }
        Ok(())
    }

    /// Says that code is not counted that the program made itself.
    fn name_made_code(&mut self, space: usize, mappings: &[Mapping]) -> io::Result<()> {
        let Some(space) = self
            .spaces
            .get(&space)
            .filter(|_| !self.has_named_made_code)
        else {
            return Ok(());
        };
        let is_made = |it: &&Mapping| {
            let is_kernels = it.path.starts_with('[') && it.path != "[heap]";
            it.executable && it.file.1 == 0 && !is_kernels && !space.copies.is_ours(it.range.start)
        };
        if !mappings.iter().any(|it| is_made(&it)) {
            return Ok(());
        }
        self.has_named_made_code = true;
        self.journal.write(&Entry::Note(
            "Code that the program itself makes while it runs (just in time) is not counted."
                .into(),
        ))
    }

    /// A thread has ended: its window is free.
    pub fn take_window(&mut self, tid: pid_t, space: usize) {
        if let Some(space) = self.spaces.get_mut(&space) {
            for mapped in &mut space.copies.windows {
                if mapped.user == Some(tid) {
                    mapped.user = None;
                }
            }
        }
    }

    /// Did a thread that stopped for SIGTRAP meet a trap of ours in a module that has copies? Then
    /// it goes on in a copy now.
    pub fn met_trap(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<bool> {
        let space = self.thread(stopped).space;
        let Some(Where::Text(index)) = self.find(space, at) else {
            return Ok(false);
        };
        let Some((workshop, link)) = self
            .module(space, index)
            .map(|it| (it.workshop, it.link(at)))
        else {
            return Ok(false);
        };
        if !self.workshops[workshop].has_trap(link) {
            // It may have been there a moment ago.
            let is_ours = self.workshops[workshop].original(link) != Some(0xcc);
            if is_ours {
                self.update(space, index)?;
                stopped.go_to(at.0)?;
            }
            return Ok(is_ours);
        }
        if self.workshops[workshop].uses_gs(link) {
            self.refuse_gs()?;
        }
        self.hits += 1;
        stopped.go_to(at.0)?;
        self.go_into_copy(stopped, space, index, at, Arrival::ByItself)?;
        Ok(true)
    }

    /// Makes a thread go on in a copy that stands at an address of a module's text.
    fn go_into_copy(
        &mut self,
        stopped: &Stopped,
        space: usize,
        index: usize,
        at: LoadAddr,
        how: Arrival,
    ) -> io::Result<()> {
        let Some((workshop, link)) = self
            .module(space, index)
            .map(|it| (it.workshop, it.link(at)))
        else {
            return Ok(());
        };
        let Some((unit, _)) = self.made(space, index, at)? else {
            return Ok(());
        };
        let unit = &self.workshops[workshop].units[unit];
        let offset = (link.0 - unit.copy.start.0) as u32;
        let start = unit.offset;
        if let Some(landing) = unit.copy.landing(offset) {
            let region = self.module(space, index).map_or(0, |it| it.region.start);
            return stopped.go_to(region + start + u64::from(landing));
        }
        let number = unit.number;
        let Some(resume) = unit.copy.resume(offset) else {
            return self.journal.write(&Entry::Note(format!(
                "A thread ran code in the middle of an instruction (link address {link}); what it \
                 ran there is not counted."
            )));
        };
        let is_alone = self.is_alone(space);
        let workshop_of = &mut self.workshops[workshop];
        if how == Arrival::ByItself
            && workshop_of.stray(link) >= OFTEN
            && is_alone
            && workshop_of.expect(link)
        {
            if let Some(windows) = &mut self.windows {
                self.workshops[workshop].make(link, is_alone, windows, &mut self.journal)?;
            }
            // Now there is a landing.
            return self.go_into_copy(stopped, space, index, at, how);
        }
        self.fix(stopped, space, resume.fix, 1)?;
        self.visit(stopped, number, link, 1)?;
        let region = self.module(space, index).map_or(0, |it| it.region.start);
        stopped.go_to(region + start + u64::from(resume.offset))
    }

    /// The unit around an address of a module's text, made if need be, and the module's bias.
    /// `None`: it cannot be counted.
    fn made(
        &mut self,
        space: usize,
        index: usize,
        at: LoadAddr,
    ) -> io::Result<Option<(usize, u64)>> {
        let Some(module) = self.module(space, index) else {
            return Ok(None);
        };
        let (number, link, bias) = (module.workshop, module.link(at), module.bias.0);
        let is_alone = self.is_alone(space);
        let workshop = &mut self.workshops[number];
        let unit = match (workshop.unit_at(link), &mut self.windows) {
            (Some(unit), _) => Some(unit),
            (None, Some(windows)) if !workshop.is_refused(link) => {
                workshop.make(link, is_alone, windows, &mut self.journal)?
            }
            _ => None,
        };
        self.update(space, index)?;
        Ok(unit.map(|unit| (unit, bias)))
    }

    /// Does an address space have one thread only?
    fn is_alone(&self, space: usize) -> bool {
        let threads = self.threads.values();
        threads.filter(|it| it.space == space).take(2).count() == 1
    }

    /// Writes into a process what was made since it was last written to.
    fn update(&mut self, space: usize, index: usize) -> io::Result<()> {
        let is_alone = self.is_alone(space);
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        let Some(module) = space.copies.modules.get_mut(index) else {
            return Ok(());
        };
        let (writes, progress) = self.workshops[module.workshop].news(module.progress, is_alone);
        for (at, bytes) in writes {
            space.memory.write(module.load(at), &bytes)?;
        }
        module.progress = progress;
        Ok(())
    }

    pub fn find(&self, space: usize, at: LoadAddr) -> Option<Where> {
        self.spaces.get(&space)?.copies.find(at)
    }

    fn module(&self, space: usize, index: usize) -> Option<&Installed> {
        self.spaces.get(&space)?.copies.modules.get(index)
    }

    /// The spot of a thread at an address, if it is in a copy, or at a call that copies jump to;
    /// with the number of the routine.
    fn spot(&self, space: usize, at: LoadAddr) -> Option<(Spot, usize, usize)> {
        match self.find(space, at)? {
            Where::Copies(index, offset) => {
                let workshop = &self.workshops[self.module(space, index)?.workshop];
                let (unit, offset) = workshop.unit_in_copies(offset)?;
                let unit = &workshop.units[unit];
                Some((*unit.copy.spot(offset)?, unit.number, index))
            }
            Where::Text(index) => {
                let module = self.module(space, index)?;
                let workshop = &self.workshops[module.workshop];
                let link = module.link(at);
                let unit = &workshop.units[workshop.unit_at(link)?];
                let offset = (link.0 - unit.copy.start.0) as u32;
                Some((*unit.copy.call(offset)?, unit.number, index))
            }
        }
    }

    /// Where a thread would be at an address, were it not in a copy.
    pub fn original_address(&self, space: usize, at: LoadAddr) -> LoadAddr {
        match self.spot(space, at) {
            Some((spot, _, index)) => self
                .module(space, index)
                .map_or(at, |module| module.load(spot.at.0)),
            None => match self.island(space, at) {
                Some(head) => head,
                None => at,
            },
        }
    }

    /// Which module that has copies an address is in, and its link address.
    pub fn in_counted_file(&self, space: usize, at: LoadAddr) -> Option<(usize, LinkAddr)> {
        let Where::Text(index) = self.find(space, at)? else {
            return None;
        };
        let module = self.module(space, index)?;
        Some((self.workshops[module.workshop].module, module.link(at)))
    }

    /// The detour that leads to an island at an address.
    fn island(&self, space: usize, at: LoadAddr) -> Option<LoadAddr> {
        let Where::Text(index) = self.find(space, at)? else {
            return None;
        };
        let module = self.module(space, index)?;
        let workshop = &self.workshops[module.workshop];
        let link = module.link(at);
        let unit = &workshop.units[workshop.unit_at(link)?];
        let offset = (link.0 - unit.copy.start.0) as u32;
        let head = unit.copy.island_of(offset)?;
        Some(module.load(unit.copy.start.0 + u64::from(head)))
    }

    /// Moves a stopped thread to where it would be without copies. It goes away from there.
    pub fn leave_copy(&mut self, stopped: &Stopped) -> io::Result<LoadAddr> {
        let space = self.thread(stopped).space;
        let mut registers = stopped.registers()?;
        let at = LoadAddr(registers.rip);
        let Some((spot, ..)) = self.spot(space, at) else {
            let original = self.original_address(space, at);
            if original != at {
                stopped.go_to(original.0)?;
            }
            return Ok(original);
        };
        self.departs_from_copy(stopped, at)?;
        let original = self.original_address(space, at);
        match spot.undo {
            Undo::Nothing => {}
            Undo::RestoreRax => {
                let window = self.window_of(stopped, space);
                if let (Some(window), Some(windows)) = (window, &self.windows) {
                    registers.rax = windows.scratch(window)?;
                }
            }
            Undo::PopReturn => registers.rsp = registers.rsp.wrapping_add(8),
        }
        registers.rip = original.0;
        stopped.set_registers(&registers)?;
        Ok(original)
    }

    /// A thread will not go on at an address, if that is in a copy.
    pub fn departs_from_copy(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let Some((spot, number, _)) = self.spot(space, at) else {
            return Ok(());
        };
        self.fix(stopped, space, spot.fix, 1)?;
        match spot.is_inside {
            true => self.visit(stopped, number, spot.at, -1),
            false => Ok(()),
        }
    }

    /// A thread goes on at an address without having come there by itself. If that is in the
    /// original code, it is moved into the copy.
    pub fn arrives_in_copy(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<()> {
        let space = self.thread(stopped).space;
        if let Some((spot, number, _)) = self.spot(space, at) {
            return self.arrives_at_spot(stopped, space, &spot, number);
        }
        let Some(Where::Text(index)) = self.find(space, at) else {
            return Ok(());
        };
        let registers = stopped.registers()?;
        if inject::to_be_restarted(&registers)
            && let Some((unit, start)) = self.made(space, index, at)?
        {
            // The kernel will go back by the two bytes of the system call.
            let workshop = self.module(space, index).map_or(0, |it| it.workshop);
            let unit = &self.workshops[workshop].units[unit];
            let link = at.0.wrapping_sub(start);
            let offset = link.wrapping_sub(unit.copy.start.0 + 2) as u32;
            if let Some(call) = unit.copy.resume(offset) {
                let region = self.module(space, index).map_or(0, |it| it.region.start);
                let there = region + unit.offset + u64::from(call.offset) + 2;
                stopped.go_to(there)?;
                return match self.spot(space, LoadAddr(there)) {
                    Some((spot, number, _)) => self.arrives_at_spot(stopped, space, &spot, number),
                    None => Ok(()),
                };
            }
        }
        self.go_into_copy(stopped, space, index, at, Arrival::Sent)
    }

    fn arrives_at_spot(
        &mut self,
        stopped: &Stopped,
        space: usize,
        spot: &Spot,
        number: usize,
    ) -> io::Result<()> {
        self.fix(stopped, space, spot.fix, -1)?;
        match spot.is_inside {
            true => self.visit(stopped, number, spot.at, 1),
            false => Ok(()),
        }
    }

    /// A signal handler returns, by a system call before this address. If that is made from where
    /// it always was, this is how it is counted.
    pub fn handler_returns(&mut self, stopped: &Stopped, next: LoadAddr) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let at = LoadAddr(next.0.wrapping_sub(1));
        let Some(Where::Text(index)) = self.find(space, at) else {
            return Ok(());
        };
        let restorer = self.module(space, index).and_then(|module| {
            let workshop = &self.workshops[module.workshop];
            workshop.restorer(module.link(at))
        });
        match restorer {
            Some(counter) => self.fix(stopped, space, Fix::Add(counter), 1),
            None => Ok(()),
        }
    }

    fn window_of(&self, stopped: &Stopped, space: usize) -> Option<u32> {
        let copies = &self.spaces.get(&space)?.copies;
        copies.window_of(stopped.tid()).or_else(|| {
            // A child that runs in its parent's memory, with its parent's window.
            let gs = stopped.registers().ok()?.gs_base;
            let mapped = copies.windows.iter().find(|it| it.at == gs);
            mapped.map(|it| it.window)
        })
    }

    fn fix(&mut self, stopped: &Stopped, space: usize, fix: Fix, sign: i64) -> io::Result<()> {
        if !self.counts(stopped.tid()) {
            return Ok(());
        }
        let (counter, delta) = match fix {
            Fix::Nothing => return Ok(()),
            Fix::Add(counter) => (counter, sign),
            Fix::Take(counter) => (counter, -sign),
        };
        let window = self.window_of(stopped, space);
        match (window, &self.windows) {
            (Some(window), Some(windows)) => windows.add(window, counter, delta),
            _ => Ok(()),
        }
    }

    fn visit(
        &mut self,
        stopped: &Stopped,
        routine: usize,
        at: LinkAddr,
        delta: i64,
    ) -> io::Result<()> {
        if !self.counts(stopped.tid()) {
            return Ok(());
        }
        let at = at.0;
        self.journal.write(&Entry::Visit { routine, at, delta })
    }
}

/// Memory for copies, at the first of these places that is free; `None` if none is.
fn map_region(
    copies: &Copies,
    mut stopped: Stopped,
    memory: &crate::memory::Memory,
    places: &[u64],
    size: u64,
) -> io::Result<(Stopped, Option<LoadAddr>)> {
    for place in places {
        let arguments = inject::code_arguments(*place, size);
        let (back, result) = copies.system_call(stopped, memory, libc::SYS_mmap, arguments)?;
        stopped = back;
        if result as u64 == *place {
            return Ok((stopped, Some(LoadAddr(*place))));
        }
    }
    Ok((stopped, None))
}

fn set_gs(stopped: &Stopped, at: u64) -> io::Result<()> {
    let mut registers = stopped.registers()?;
    registers.gs_base = at;
    stopped.set_registers(&registers)
}
