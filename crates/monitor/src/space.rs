//! An address space with breakpoints in it.
//!
//! Processes made by `fork` get a copy of their parent's, breakpoints and slots included; those
//! made by `vfork` share it until they run another program.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::rc::Rc;

use headcount_model::{Expression, LinkAddr, LoadAddr, LoadBias, Span};
use headcount_x86::out_of_line::{self, CannotMove, Interrupted, LONGEST_SLOT, Past, Target};
use libc::pid_t;

use crate::copies::Copies;
use crate::image::Image;
use crate::inject;
use crate::live::is_request;
use crate::memory::Memory;
use crate::proc::{FileNumber, Mapping};
use crate::wait::Stopped;

/// `int3`.
const BREAKPOINT: u8 = 0xcc;

/// How far apart two ends of a jump may be, with room to spare.
const REACH: u64 = 0x7000_0000;

/// What stands on an instruction instead of its first byte.
#[derive(Clone, Copy, Debug)]
pub struct Breakpoint {
    /// The first byte.
    original: u8,
    /// Has the instruction more bytes than that?
    pub is_long: bool,
    /// Which module's which block it counts; none if it only watches a jump.
    pub counts: Option<(u32, u32)>,
    /// How threads get past it.
    pub past: Way,
}

/// How a thread gets past a breakpoint.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// By going on here: at a slot, or where a jump leads.
    GoTo(LoadAddr),
    /// It is an indirect jump: where it leads is to be looked at; then as by the address.
    Watch(Target, LoadAddr),
    /// The program asks for something, and goes on here.
    Ask(LoadAddr),
    /// The program's own `int3`.
    OwnTrap,
}

/// The breakpoints of one address space. Shared between those that have the same ones.
#[derive(Clone, Debug, Default)]
struct Patches {
    breakpoints: HashMap<u64, Breakpoint>,
    /// By address: which instruction's slot this is.
    slots: Vec<(u64, u64)>,
    regions: Vec<Region>,
    /// Breakpoints that are there no more, but that threads may already have met.
    removed: HashSet<u64>,
}

#[derive(Clone, Debug)]
struct Region(Range<u64>);

/// A module in an address space.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Number of its image.
    pub image: usize,
    /// How far it was moved.
    pub bias: LoadBias,
    /// Where its executable mapping is.
    pub range: Range<u64>,
    /// Which file that is of.
    pub file: FileNumber,
}

impl Loaded {
    /// Is this what is mapped there?
    pub fn is(&self, mapping: &Mapping) -> bool {
        let same_place = mapping.range.start == self.range.start;
        same_place && mapping.executable && mapping.file == self.file
    }
}

/// What came of putting breakpoints into a module.
#[derive(Debug, Default)]
pub struct Installed {
    /// Sentences on what cannot be counted.
    pub notes: Vec<String>,
    /// Blocks that were to be counted and are not.
    pub uncounted: Vec<u32>,
}

/// An address space.
#[derive(Debug)]
pub struct Space {
    pub memory: Memory,
    patches: Rc<Patches>,
    pub loaded: Vec<Loaded>,
    /// What it has if it is counted by copies instead.
    pub copies: Copies,
}

/// What a stop inside of a slot was about.
#[derive(Clone, Copy, Debug)]
pub struct InSlot {
    /// The instruction in the slot.
    pub instruction: LoadAddr,
    /// How far it has come.
    pub state: Interrupted,
}

impl Space {
    /// Of a process that has no breakpoints.
    pub fn new(pid: pid_t) -> io::Result<Self> {
        Ok(Self {
            memory: Memory::of(pid)?,
            patches: Rc::default(),
            loaded: Vec::new(),
            copies: Copies::default(),
        })
    }

    /// Of a child that was made by `fork`.
    pub fn forked(&self, child: pid_t) -> io::Result<Self> {
        Ok(Self {
            memory: Memory::of(child)?,
            patches: Rc::clone(&self.patches),
            loaded: self.loaded.clone(),
            copies: self.copies.inherited(),
        })
    }

    /// Is nothing of it counted?
    pub fn is_bare(&self) -> bool {
        self.loaded.is_empty() && self.copies.modules.is_empty()
    }

    /// Where its code is, of which we know, and what is ours.
    pub fn code(&self) -> impl Iterator<Item = &Range<u64>> {
        let loaded = self.loaded.iter().map(|it| &it.range);
        let copied = self.copies.modules.iter();
        loaded.chain(copied.flat_map(|it| it.texts.iter().chain([&it.region])))
    }

    /// The breakpoint on an instruction.
    pub fn breakpoint(&self, at: LoadAddr) -> Option<&Breakpoint> {
        self.patches.breakpoints.get(&at.0)
    }

    /// Was there a breakpoint that a thread can have met?
    pub fn had_breakpoint(&self, at: LoadAddr) -> bool {
        self.patches.removed.contains(&at.0)
    }

    /// The module that an address lies in.
    pub fn module_at(&self, at: LoadAddr) -> Option<&Loaded> {
        self.loaded.iter().find(|it| it.range.contains(&at.0))
    }

    /// Sees whether an address is in a slot, and what that means.
    pub fn in_slot(&self, at: LoadAddr) -> Option<InSlot> {
        let patches = &self.patches;
        if !patches.regions.iter().any(|it| it.0.contains(&at.0)) {
            return None;
        }
        let after = patches.slots.partition_point(|(slot, _)| *slot <= at.0);
        let (slot, instruction) = *patches.slots.get(after.checked_sub(1)?)?;
        let instruction = LoadAddr(instruction);
        let code = self.original_code(instruction).ok()?;
        let Ok(Past::Slot(moved)) = out_of_line::past(&code, instruction, LoadAddr(slot)) else {
            return None;
        };
        let state = moved.interrupted(at.0 - slot)?;
        Some(InSlot { instruction, state })
    }

    /// Where a thread would be at an address, were it not in a slot.
    pub fn out_of_slot(&self, at: LoadAddr) -> LoadAddr {
        match self.in_slot(at) {
            Some(InSlot {
                state: Interrupted::After(next),
                ..
            }) => next,
            Some(InSlot { instruction, .. }) => instruction,
            None => at,
        }
    }

    /// The bytes of an instruction as they are without breakpoints.
    fn original_code(&self, at: LoadAddr) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 15];
        while self.memory.read(at, &mut bytes).is_err() {
            // Less than that many bytes to the end of the mapping.
            if bytes.pop().is_none() {
                return Err(io::Error::from_raw_os_error(libc::EFAULT));
            }
        }
        self.without_breakpoints(at, &mut bytes);
        Ok(bytes)
    }

    fn without_breakpoints(&self, at: LoadAddr, bytes: &mut [u8]) {
        for (address, byte) in (at.0..).zip(bytes) {
            if let Some(breakpoint) = self.patches.breakpoints.get(&address) {
                *byte = breakpoint.original;
            }
        }
    }

    /// Where the indirect call or jump at an address leads, if there is one.
    pub fn target(&self, at: LoadAddr, link: LinkAddr) -> Option<Expression> {
        let span = Span {
            address: link,
            bytes: self.original_code(at).ok()?,
        };
        let instruction = headcount_x86::walk(&span).next()?.ok()?;
        headcount_patch::target_of(&instruction)
    }

    /// Reads memory as it is without breakpoints. `None`: it is not there.
    pub fn read_original(&self, at: LoadAddr, into: &mut [u8]) -> Option<()> {
        self.memory.read(at, into).ok()?;
        self.without_breakpoints(at, into);
        Some(())
    }

    /// The bytes at an address before a zero, or so many. `None`: some of them are not there.
    pub fn text(&self, at: LoadAddr, most: u32) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for address in (at.0..).take(most as usize) {
            let mut byte = [0];
            self.read_original(LoadAddr(address), &mut byte)?;
            match byte {
                [0] => return Some(text),
                [other] => text.push(other),
            }
        }
        Some(text)
    }

    /// Puts the breakpoints of a module in.
    pub fn install(
        &mut self,
        stopped: Stopped,
        image: &Image,
        loaded: Loaded,
        mappings: &[Mapping],
        watch_jumps: bool,
    ) -> io::Result<(Stopped, Installed)> {
        let text = Text::read(&self.memory, &loaded.range)?;
        let sites = sites(image, &loaded, &text, watch_jumps);
        let mut installed = Installed::default();
        let mut stopped = stopped;
        if !sites.is_empty() {
            let size = (sites.len() as u64 * LONGEST_SLOT as u64).next_multiple_of(4096);
            let places = places(mappings, &loaded.range, size);
            let entry = loaded.bias.apply(image.layout.entry);
            let borrowed = entry
                .filter(|it| loaded.range.contains(&it.0))
                .unwrap_or(LoadAddr(loaded.range.start));
            let (back, found) = inject::map_code(stopped, &self.memory, borrowed, &places, size)?;
            stopped = back;
            match found {
                Some(slots) => {
                    let tallied = image.tallied();
                    installed =
                        self.write_breakpoints(&sites, &tallied, text, &loaded, (slots, size))?;
                }
                None => {
                    let path = &image.module.path;
                    installed.notes.push(format!(
                        "{path} is not counted: there is no free memory within two gigabytes of \
                         its code."
                    ));
                    let blocks = image.counted_blocks().map(|(block, _)| block);
                    installed.uncounted = blocks.collect();
                }
            }
        }
        self.loaded.push(loaded);
        Ok((stopped, installed))
    }

    fn write_breakpoints(
        &mut self,
        sites: &[Site],
        tallied: &HashSet<LinkAddr>,
        mut text: Text,
        loaded: &Loaded,
        (slots, size): (LoadAddr, u64),
    ) -> io::Result<Installed> {
        let mut installed = Installed::default();
        let mut slot_code = Vec::new();
        let patches = Rc::make_mut(&mut self.patches);
        for (at, counts) in sites {
            let slot = LoadAddr(slots.0 + slot_code.len() as u64);
            let original = text.code(*at);
            match breakpoint(original, *at, slot, *counts) {
                Ok((breakpoint, code)) => {
                    if !code.is_empty() {
                        patches.slots.push((slot.0, at.0));
                        slot_code.extend(code);
                    }
                    patches.breakpoints.insert(at.0, breakpoint);
                }
                Err(reason) => {
                    let at = loaded.bias.undo(*at).unwrap_or_default();
                    installed.notes.push(match counts {
                        Some(_) => format!(
                            "The block at {at} is not counted: its first instruction cannot be \
                             run elsewhere, for {reason}."
                        ),
                        None if tallied.contains(&at) => format!(
                            "No values are counted at {at}: its instruction cannot be run \
                             elsewhere, for {reason}."
                        ),
                        None => format!(
                            "Where the jump at {at} leads was not watched, for {reason}: blocks \
                             that it enters in their middle are not counted for that."
                        ),
                    });
                    installed.uncounted.extend(counts.map(|(_, block)| block));
                }
            }
        }
        for (at, _) in sites {
            if patches.breakpoints.contains_key(&at.0) {
                text.set(*at, BREAKPOINT);
            }
        }
        // Slots first: a thread that meets a breakpoint needs one.
        self.memory.write(slots, &slot_code)?;
        text.write(&self.memory)?;
        patches.slots.sort_unstable();
        patches.regions.push(Region(slots.0..slots.0 + size));
        Ok(installed)
    }

    /// Takes one breakpoint out, for good.
    pub fn remove(&mut self, at: LoadAddr) -> io::Result<()> {
        let patches = Rc::make_mut(&mut self.patches);
        if let Some(breakpoint) = patches.breakpoints.remove(&at.0) {
            self.memory.write(at, &[breakpoint.original])?;
            patches.removed.insert(at.0);
        }
        Ok(())
    }

    /// Forgets the breakpoints of modules that are mapped no more.
    pub fn forget_unmapped(&mut self, mappings: &[Mapping]) {
        let is_mapped = |loaded: &Loaded| mappings.iter().any(|it| loaded.is(it));
        let gone: Vec<Range<u64>> = self
            .loaded
            .iter()
            .filter(|it| !is_mapped(it))
            .map(|it| it.range.clone())
            .collect();
        if gone.is_empty() {
            return;
        }
        self.loaded.retain(|it| is_mapped(it));
        let patches = Rc::make_mut(&mut self.patches);
        let is_gone = |at: u64| gone.iter().any(|range| range.contains(&at));
        patches.breakpoints.retain(|at, _| !is_gone(*at));
        patches.slots.retain(|(_, at)| !is_gone(*at));
    }

    /// Puts every original byte back.
    pub fn restore(&mut self) -> io::Result<()> {
        for loaded in &self.loaded {
            let mut text = Text::read(&self.memory, &loaded.range)?;
            for (at, breakpoint) in &self.patches.breakpoints {
                if loaded.range.contains(at) {
                    text.set(LoadAddr(*at), breakpoint.original);
                }
            }
            text.write(&self.memory)?;
        }
        Ok(())
    }

    /// How many bytes of it are ours.
    pub fn mapped_bytes(&self) -> u64 {
        let slots = self.patches.regions.iter();
        let slots: u64 = slots.map(|it| it.0.end - it.0.start).sum();
        slots + self.copies.mapped_bytes()
    }

    /// Gives the memory of the slots back, after [`Space::restore`]. No thread may be in them.
    pub fn unmap_slots(&mut self, stopped: &Stopped) -> io::Result<()> {
        let Some(borrowed) = self.loaded.first().map(|it| LoadAddr(it.range.start)) else {
            return Ok(());
        };
        for region in &self.patches.regions {
            let (start, size) = (LoadAddr(region.0.start), region.0.end - region.0.start);
            inject::unmap(stopped, &self.memory, borrowed, start, size)?;
        }
        self.patches = Rc::default();
        self.loaded.clear();
        Ok(())
    }
}

/// A breakpoint and the code of its slot.
fn breakpoint(
    code: &[u8],
    at: LoadAddr,
    slot: LoadAddr,
    counts: Option<(u32, u32)>,
) -> Result<(Breakpoint, Vec<u8>), CannotMove> {
    let (past, slot_code) = match out_of_line::past(code, at, slot)? {
        Past::GoTo(next) if is_request(code) => (Way::Ask(next), Vec::new()),
        Past::GoTo(next) => (Way::GoTo(next), Vec::new()),
        Past::OwnTrap => (Way::OwnTrap, Vec::new()),
        Past::Slot(moved) => match out_of_line::indirect_jump(code, at) {
            Some(target) => (Way::Watch(target, slot), moved.code),
            None => (Way::GoTo(slot), moved.code),
        },
    };
    let original = *code.first().ok_or(CannotMove::NotCode)?;
    let is_long = out_of_line::length(code).is_some_and(|length| length > 1);
    let breakpoint = Breakpoint {
        original,
        is_long,
        counts,
        past,
    };
    Ok((breakpoint, slot_code))
}

/// Where a breakpoint goes, and what it counts.
type Site = (LoadAddr, Option<(u32, u32)>);

/// Where breakpoints go: on the first instruction of every counted block; and on indirect jumps,
/// which may lead to places that no analysis has foreseen.
fn sites(image: &Image, loaded: &Loaded, text: &Text, watch_jumps: bool) -> Vec<Site> {
    let mut sites = Vec::new();
    let number = image.number as u32;
    for (block, facts) in image.counted_blocks() {
        let at = |address| {
            let at = loaded.bias.apply(address);
            at.filter(|at| loaded.range.contains(&at.0))
        };
        let Some(first) = at(facts.address) else {
            continue;
        };
        sites.push((first, Some((number, block))));
        let last = last_instruction(facts).and_then(at).filter(|_| watch_jumps);
        let is_indirect_jump =
            |last: &LoadAddr| out_of_line::indirect_jump(text.code(*last), *last).is_some();
        if let Some(last) = last.filter(|last| *last != first).filter(is_indirect_jump) {
            sites.push((last, None));
        }
    }
    let taken: HashSet<LoadAddr> = sites.iter().map(|it| it.0).collect();
    let asking = image.module.functions.iter().flat_map(|it| &it.blocks);
    let asking = asking.flat_map(requests).chain(image.tallied());
    let asking = asking.filter_map(|at| loaded.bias.apply(at));
    let asking = asking.filter(|at| loaded.range.contains(&at.0) && !taken.contains(at));
    let asking: HashSet<LoadAddr> = asking.collect();
    sites.extend(asking.into_iter().map(|at| (at, None)));
    sites.sort_unstable();
    sites
}

/// Where a block asks us for something.
fn requests(block: &headcount_model::Block) -> Vec<LinkAddr> {
    let mut found = Vec::new();
    for span in &block.code {
        if memchr::memmem::find(&span.bytes, &headcount_request::INSTRUCTION).is_none() {
            continue;
        }
        let mut offset = 0;
        for length in headcount_x86::count(span).unwrap_or_default() {
            if span.bytes.get(offset..).is_some_and(is_request) {
                found.extend(span.address.checked_add(offset as u64));
            }
            offset += usize::from(length);
        }
    }
    found
}

fn last_instruction(block: &headcount_model::Block) -> Option<LinkAddr> {
    let span = block.code.last()?;
    let lengths = headcount_x86::count(span).ok()?;
    let before: u64 = lengths.iter().rev().skip(1).map(|it| u64::from(*it)).sum();
    span.address.checked_add(before)
}

/// Where slots may be: free memory that jumps from all of the module reach, and that the program
/// is not likely to want: in front of the module, else behind it and well away from its heap.
pub fn places(mappings: &[Mapping], module: &Range<u64>, size: u64) -> Vec<u64> {
    const PAGE: u64 = 4096;
    const LOWEST: u64 = 0x10_0000;
    let mut gaps = Vec::new();
    let mut end = LOWEST;
    for mapping in mappings {
        if mapping.range.start > end {
            gaps.push(end..mapping.range.start);
        }
        end = end.max(mapping.range.end);
    }
    gaps.push(end..0x7fff_ffff_f000);
    let lowest = module.end.saturating_sub(REACH);
    let highest = module.start.saturating_add(REACH);
    let fits = |gap: &Range<u64>| {
        let gap = gap.start.max(lowest)..gap.end.min(highest);
        (gap.end.saturating_sub(gap.start) >= size + 2 * PAGE).then_some(gap)
    };
    let gaps: Vec<_> = gaps.iter().filter_map(fits).collect();
    let before = gaps.iter().rev().filter(|it| it.end <= module.start);
    let behind = gaps.iter().filter(|it| it.start >= module.end);
    before
        .map(|gap| (gap.end - size - PAGE) & !(PAGE - 1))
        .chain(behind.map(|gap| (gap.end - size - PAGE) & !(PAGE - 1)))
        .collect()
}

/// The code of a module, changed here and written back where it was changed.
struct Text {
    start: u64,
    bytes: Vec<u8>,
    changed: Vec<bool>,
}

impl Text {
    const PAGE: usize = 4096;

    fn read(memory: &Memory, range: &Range<u64>) -> io::Result<Self> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        memory.read(LoadAddr(range.start), &mut bytes)?;
        let changed = vec![false; bytes.len().div_ceil(Self::PAGE)];
        Ok(Self {
            start: range.start,
            bytes,
            changed,
        })
    }

    fn code(&self, at: LoadAddr) -> &[u8] {
        let offset = at.0.saturating_sub(self.start) as usize;
        let rest = self.bytes.get(offset..).unwrap_or_default();
        &rest[..rest.len().min(15)]
    }

    fn set(&mut self, at: LoadAddr, byte: u8) {
        let offset = at.0.saturating_sub(self.start) as usize;
        if let Some(place) = self.bytes.get_mut(offset) {
            *place = byte;
            self.changed[offset / Self::PAGE] = true;
        }
    }

    fn write(&self, memory: &Memory) -> io::Result<()> {
        for (page, _) in self.changed.iter().enumerate().filter(|(_, it)| **it) {
            let from = page * Self::PAGE;
            let to = self.bytes.len().min(from + Self::PAGE);
            memory.write(LoadAddr(self.start + from as u64), &self.bytes[from..to])?;
        }
        Ok(())
    }
}
