//! Where is the code of this module, before any of it is decoded?
//!
//! [`read`](crate::read) looks at every instruction of a file. Whoever counts a large program
//! cannot wait for that, and most of it never runs: an outline tells where the parts of code
//! begin, and looks at the instructions of a part when it is asked for its routine.
//!
//! Both find parts in the same way (`functions.rs`). Here parts stay apart, even where a function
//! consists of several, and what only a call tells of becomes known once the call is seen.

mod kept;

use std::ops::Range;
use std::sync::Arc;

use headcount_model::{LinkAddr, Routine};
use object::{Object, ObjectSection};

use crate::debug_files::{self, FileBytes, Find};
use crate::digest::{self, Digest};
use crate::divide;
use crate::error::Error;
use crate::explore::{self, Explored};
use crate::frames::{Frame, frames};
use crate::functions::{self, Extent, Origin, Sources};
use crate::go_table::GoTable;
use crate::image::{Image, Places};
use crate::landing_pads::landing_pads;
use crate::layout::{Elf, Layout, layout, parse};
use crate::module;
use crate::plt;
use crate::references::words_of_code;
use crate::routine;
use crate::spans::Spans;
use crate::symbols::{self, Marks};
use crate::unknown_code;

/// What a module's file says about where its code is, before any of it is decoded.
pub struct Outline {
    layout: Layout,
    key: String,
    fingerprint: String,
    changes_gs: bool,
    /// See [`Outline::system_calls`].
    system_calls: Option<Vec<u64>>,
    facts: Facts,
    spans: Spans,
    entries: Vec<u64>,
    /// What became known since it was read, in that order.
    added: Vec<u64>,
    /// See [`Outline::prepare_to_explore`].
    explored: Option<Explored>,
    /// The name under which it is kept, if it is.
    kept_as: Option<String>,
    /// Did anybody ask for more than what the file says?
    is_touched: bool,
}

/// The routine of a part, and what it tells about others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The routine itself, or the reason why it cannot be counted.
    pub routine: Result<Routine, String>,
    /// Where it leads into the midst of other parts, or to the start of one that was only guessed,
    /// by address: with jumps and tables of jumps, landing pads, calls, and addresses that it makes.
    /// Each is an arrival of the other's routine.
    pub leads_to: Vec<LinkAddr>,
    /// Code in no known part that its calls, jumps and landing pads lead to, that it goes on to at
    /// its end, or whose address it makes; by address. See [`Outline::add_called`].
    pub unknown_code: Vec<LinkAddr>,
    /// Would it be the same whatever routines were asked for before? Then it depends on nothing
    /// but [`Outline::fingerprint`] and the arrivals.
    pub is_settled: bool,
}

impl Outline {
    /// Reads what a file says about its code. `find` is asked for files that its symbols were
    /// moved to; it may always answer `None`.
    pub fn read(bytes: FileBytes, find: &mut Find<'_>) -> Result<Self, Error> {
        let file = (*bytes).as_ref();
        let layout = layout(file)?;
        let separate = debug_files::separate(&parse(file)?, find);
        Self::of(Arc::clone(&bytes), layout, separate)
    }

    /// The same, if nobody has read this very file before, or else what came of it. `recall` is asked
    /// for what `remember` was given under the same name.
    pub fn read_once(
        bytes: FileBytes,
        find: &mut Find<'_>,
        recall: &dyn Fn(&str) -> Option<Vec<u8>>,
        remember: &dyn Fn(&str, &[u8]),
    ) -> Result<Self, Error> {
        let file = (*bytes).as_ref();
        let layout = layout(file)?;
        let elf = parse(file)?;
        let separate = debug_files::separate(&elf, find);
        let name = kept::name(&elf, file, separate.as_deref().map(AsRef::as_ref));
        let known = recall(&name);
        let known = known.and_then(|it| Self::unpack(&bytes, &layout, &it));
        let mut outline = match known {
            Some(known) => known,
            None => {
                let outline = Self::of(Arc::clone(&bytes), layout, separate)?;
                remember(&name, &outline.pack());
                outline
            }
        };
        outline.kept_as = Some(name);
        Ok(outline)
    }

    fn of(bytes: FileBytes, layout: Layout, separate: Option<FileBytes>) -> Result<Self, Error> {
        let file = (*bytes).as_ref();
        let elf = parse(file)?;
        let image = Image::new(&elf, file, &layout);
        if image.code().next().is_none() {
            return Err(Error::NoCode);
        }
        if symbols::is_read_by_its_runtime(&elf) {
            return Err(Error::ReadByItsRuntime);
        }
        let separate = separate
            .as_deref()
            .and_then(|bytes| Elf::parse(bytes.as_ref()).ok());
        let debug_elf = separate.as_ref().unwrap_or(&elf);
        let marks = Marks::of(&image, [&elf].into_iter().chain(separate.as_ref()));
        let debug_frame = debug_files::section(debug_elf, ".debug_frame");
        let debug_frame = Some(&*debug_frame).filter(|it| !it.is_empty());
        let frames = frames(&image, debug_frame);
        let headers = module::entered(&elf, &image, &module::headers(&elf, &layout));
        let is_fixed = !layout.position_independent;
        let pointers = pointers(&image, &headers, is_fixed);
        let words: Vec<u64> = pointers.iter().map(|(to, _)| *to).collect();
        let sources = Sources {
            functions: marks.functions,
            labels: marks.labels,
            frames: &frames,
            stubs: plt::ranges(&image),
            headers: &headers,
            words: &words,
        };
        let starts = functions::starts(&image, &sources);
        let restartable = restartable(&elf, &pointers);
        let loaded = loaded(&image);
        let key = key(&elf, &loaded);
        let places = image.places();
        let extents = starts.extents(&image);
        let facts = Facts {
            bytes: Arc::clone(&bytes),
            places,
            frames,
            pointers,
            words,
            restartable,
            whole: marks.whole,
            shared: marks.shared,
            objects: marks.objects,
            told: told(extents.iter().map(|it| (it.range.start, it.origin))),
            is_fixed,
        };
        let spans = Spans::new(&extents, |it| facts.is_known(&image, it));
        let mut entries = starts.entries;
        entries.retain(|at| facts.is_function(&image, *at));
        Ok(Self {
            key,
            fingerprint: fingerprint(&loaded, &facts, &spans),
            changes_gs: changes_gs(&image),
            system_calls: system_calls(file, &layout),
            layout,
            facts,
            spans,
            entries,
            added: Vec::new(),
            explored: None,
            kept_as: None,
            is_touched: false,
        })
    }

    /// Where a loader puts the file.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Is there an instruction in its code that changes the `gs` register? (`wrgsbase`; bytes that
    /// look like one are enough.)
    pub fn changes_gs(&self) -> bool {
        self.changes_gs
    }

    /// Where in a range of executable pages there are system calls, or bytes that look like one; by
    /// address. `None`: nobody has looked.
    pub fn system_calls(&self, range: &Range<u64>) -> Option<&[u64]> {
        let all = self.system_calls.as_ref()?;
        let first = all.partition_point(|it| *it < range.start);
        // It has two bytes.
        let behind = all.partition_point(|it| it.saturating_add(1) < range.end);
        Some(all.get(first..behind).unwrap_or_default())
    }

    /// The bytes of the file.
    pub fn file(&self) -> &FileBytes {
        &self.facts.bytes
    }

    /// Names this build: its build-id (`gnu-…`), if it has one, and a digest of what is loaded. A
    /// build-id alone may be that of another file, which was edited since, or built with
    /// `--build-id=0x…`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// A digest of everything that routines depend on: the bytes that are loaded, and what tables
    /// and symbols say of them, as long as no routine was asked for. Nobody can make a file that
    /// has the fingerprint of another, unless it is the same in all of this.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The bytes of code at these addresses.
    pub fn text(&self, range: &Range<u64>) -> Option<&[u8]> {
        self.facts.image().get(range)
    }

    /// Where parts of code begin, by address. Of some that is only a guess.
    pub fn starts(&self) -> &[u64] {
        self.spans.starts()
    }

    /// Where parts of code begin to which control is known to come, by address.
    pub fn known_starts(&self) -> impl Iterator<Item = u64> {
        self.spans.known_starts()
    }

    /// Does a part begin here to which control is known to come?
    pub fn is_known_start(&self, at: LinkAddr) -> bool {
        self.spans.is_known_start(at.0)
    }

    /// Where else data points in parts that only their bytes tell apart, by address: functions may
    /// begin there.
    pub fn entries(&self) -> &[u64] {
        &self.entries
    }

    /// The part that holds an address. Of a part whose end nobody tells, this is all that follows
    /// up to the next one, until its routine was asked for.
    pub fn part_at(&self, at: LinkAddr) -> Option<Range<u64>> {
        self.spans.range(self.spans.index_at(at.0)?)
    }

    /// May control come to an address that is in no known part? Only from where code or data speaks
    /// of.
    pub fn may_come_to(&self, at: LinkAddr) -> bool {
        let gap = self.spans.gap_around(at.0);
        let spoken = self.spans.spoken_of.range(gap.clone()).copied();
        let words = &self.facts.words;
        let words = &words[words.partition_point(|it| *it < gap.start)..];
        let words = words.iter().copied().take_while(|it| *it < gap.end);
        let mut sources = spoken.chain(words).peekable();
        // For most, nothing speaks of any address around.
        if sources.peek().is_none() || !self.facts.may_be_code(at.0) {
            return false;
        }
        unknown_code::leads_to(&self.facts.image(), sources, &gap, at.0)
    }

    /// How many addresses of unknown code were made by the code that was looked at.
    pub fn spoken_count(&self) -> usize {
        self.spans.spoken_of.len()
    }

    /// Where the next part begins behind an address.
    pub fn next_start(&self, at: u64) -> u64 {
        self.spans.next_start(at)
    }

    /// Makes a part known that begins here, because something leads here that no table told of.
    /// False if this is no code, or in a part that is known: then it is an arrival of that part.
    pub fn add_called(&mut self, at: LinkAddr) -> bool {
        self.is_touched = true;
        let is_new = self.spans.add(&self.facts.image(), at.0);
        self.added.extend(is_new.then_some(at.0));
        is_new
    }

    /// Where in a range of code a pointer may have led before it became known as a part.
    pub fn spoken_of(&self, range: &Range<u64>) -> Option<u64> {
        self.spans.spoken_of.range(range.clone()).next().copied()
    }

    /// Where parts begin that became known by [`Outline::add_called`], in that order.
    pub fn added(&self) -> &[u64] {
        &self.added
    }

    /// Makes known where a part ends, as its routine told before: nobody has to ask again. False if
    /// it does not end there.
    pub fn close(&mut self, range: &Range<u64>) -> bool {
        self.is_touched = true;
        self.spans.close(range)
    }

    /// The routine of the part that holds an address, or the reason why it cannot be counted.
    /// `arrivals` are addresses that are entered from elsewhere, besides those that are found here.
    /// One in the midst of an instruction is believed if both end at the same place, as behind a
    /// `lock`; other such are ignored.
    pub fn routine(&mut self, at: LinkAddr, arrivals: &[LinkAddr]) -> Result<Found, String> {
        self.is_touched = true;
        routine::routine(&self.facts, &mut self.spans, at.0, arrivals)
    }

    /// The instructions that need the gs register, of the part that holds an address.
    pub fn gs_users(&mut self, at: LinkAddr) -> Vec<u64> {
        self.is_touched = true;
        let image = self.facts.image();
        let index = self.spans.index_at(at.0);
        let reached = index.and_then(|index| {
            routine::reached_from(&self.facts, &mut self.spans, &image, index, &[at.0])
        });
        reached.map(|(_, gs)| gs).unwrap_or_default()
    }

    /// Follows control through everything that is known, as if all of it had run.
    pub fn explore(&mut self) -> Explored {
        match self.explored.take() {
            Some(known) => known,
            None => self.look_everywhere(),
        }
    }

    /// Does so ahead of when it is asked for, which may be a bad moment for long work; or takes
    /// what came of it when somebody did so before. `recall` and `remember` are those of
    /// [`Outline::read_once`].
    pub fn prepare_to_explore(
        &mut self,
        recall: &dyn Fn(&str) -> Option<Vec<u8>>,
        remember: &dyn Fn(&str, &[u8]),
    ) {
        if self.explored.is_some() {
            return;
        }
        let kept_as = self.kept_as.as_ref().filter(|_| !self.is_touched);
        let name = kept_as.map(|it| format!("explored-{it}"));
        let known = name.as_deref().and_then(recall);
        if known.is_some_and(|it| self.take_explored(&it)) {
            return;
        }
        let explored = self.look_everywhere();
        if let Some(name) = name {
            remember(&name, &self.pack_explored(&explored));
        }
        self.explored = Some(explored);
    }

    fn look_everywhere(&mut self) -> Explored {
        self.is_touched = true;
        let before = self.spans.starts().to_vec();
        let explored = explore::explore(&self.facts, &mut self.spans);
        let is_new = |at: &u64| before.binary_search(at).is_err();
        let added = self.spans.starts().iter().copied().filter(is_new);
        self.added.extend(added);
        explored
    }
}

/// See [`Outline::changes_gs`].
fn changes_gs(image: &Image<'_>) -> bool {
    let is_one = |window: &[u8]| {
        matches!(window, [0xf3, 0x0f, 0xae, modrm, ..] | [0xf3, 0x40..=0x4f, 0x0f, 0xae, modrm]
            if *modrm & 0xf8 == 0xd8)
    };
    image.code().any(|piece| {
        // The second byte of the three is rare.
        memchr::memchr_iter(0xae, piece.bytes).any(|middle| {
            let starts = [middle.checked_sub(2), middle.checked_sub(3)];
            starts.into_iter().flatten().any(|start| {
                let end = piece.bytes.len().min(start + 5);
                piece.bytes.get(start..end).is_some_and(is_one)
            })
        })
    })
}

/// See [`Outline::system_calls`]. Whole pages are mapped. `None` if segments overlap.
fn system_calls(file: &[u8], layout: &Layout) -> Option<Vec<u64>> {
    const PAGE: u64 = 4096;
    let (mut found, mut left) = (Vec::new(), file.len() as u64);
    for segment in layout.segments.iter().filter(|it| it.executable) {
        let first = segment.file_offset / PAGE * PAGE;
        let end = segment.file_offset.checked_add(segment.file_size)?;
        let end = end.checked_next_multiple_of(PAGE)?.min(file.len() as u64);
        left = left.checked_sub(end.checked_sub(first)?)?;
        let bytes = file.get(usize::try_from(first).ok()?..usize::try_from(end).ok()?)?;
        let start = segment.address.0 / PAGE * PAGE;
        let calls = memchr::memmem::find_iter(bytes, &[0x0f, 0x05]);
        found.extend(calls.map(|it| start.saturating_add(it as u64)));
    }
    found.sort_unstable();
    Some(found)
}

/// See [`Outline::fingerprint`].
fn fingerprint(loaded: &str, facts: &Facts, spans: &Spans) -> String {
    let mut all = Digest::default();
    all.bytes(loaded.as_bytes());
    let frames = facts.frames.iter();
    let frames = frames.flat_map(|it| [it.range.start, it.range.end]);
    let names = facts.whole.iter().chain(&facts.shared).copied();
    let objects = facts.objects.iter();
    for numbers in [
        bytes_of(spans.numbers()),
        bytes_of(frames),
        bytes_of(names),
        bytes_of(facts.pointers.iter().flat_map(|(to, at)| [*to, *at])),
        bytes_of(facts.restartable.iter().copied()),
        bytes_of(objects.flat_map(|it| [it.start, it.end])),
    ] {
        all.bytes(&numbers);
    }
    all.hex()
}

/// Where parts begin that tables, symbols or the header tell of.
fn told(parts: impl Iterator<Item = (u64, Origin)>) -> Vec<u64> {
    let told = parts.filter(|(_, origin)| *origin < Origin::Label);
    told.map(|(start, _)| start).collect()
}

/// What does not change while routines are found.
pub struct Facts {
    bytes: FileBytes,
    places: Places,
    /// By address.
    frames: Vec<Frame>,
    /// Code that data points to, and where in the data; by the code's address.
    pub pointers: Vec<(u64, u64)>,
    /// The same code; by address.
    words: Vec<u64>,
    /// Where parts begin that tables, symbols or the header tell of; by address.
    told: Vec<u64>,
    /// Where symbols say that data is, among code; by address.
    objects: Vec<Range<u64>>,
    /// Where restartable sequences begin; by address.
    pub restartable: Vec<u64>,
    /// Where functions begin that have a name of their own; by address.
    pub whole: Vec<u64>,
    /// Where else code has a name that other files may use; by address.
    pub shared: Vec<u64>,
    /// Can the module not be moved? Then numbers in its code may be addresses.
    pub is_fixed: bool,
}

impl Facts {
    pub fn image(&self) -> Image<'_> {
        self.places.image((*self.bytes).as_ref())
    }

    /// Is control known to come to where a part begins? Where tables and symbols of functions say
    /// so, it is; where only a label or a pointer is, if it looks like it.
    fn is_known(&self, image: &Image<'_>, extent: &Extent) -> bool {
        let at = extent.range.start;
        match extent.origin {
            Origin::Stub | Origin::Symbol | Origin::Header | Origin::Frame => true,
            Origin::Label => self.is_function(image, at),
            Origin::Next => {
                let is_pointed_to = self.words.binary_search(&at).is_ok();
                is_pointed_to && self.is_function(image, at)
            }
            Origin::Called | Origin::Rest => false,
        }
    }

    /// Does code, that something points to, look like a function?
    pub fn is_function(&self, image: &Image<'_>, at: u64) -> bool {
        let next = self.told.partition_point(|it| *it <= at);
        let next = self.told.get(next).copied().unwrap_or(u64::MAX);
        let end = image.piece(at).map_or(at, |piece| piece.range().end);
        self.may_be_code(at) && divide::is_function(image, &(at..end.min(next)), &self.words)
    }

    /// Does no symbol say that there is data at an address?
    pub fn may_be_code(&self, at: u64) -> bool {
        let after = self.objects.partition_point(|it| it.start <= at);
        let before = after
            .checked_sub(1)
            .and_then(|index| self.objects.get(index));
        !before.is_some_and(|it| it.contains(&at))
    }

    /// Where exceptions land that pass through a range of code.
    pub fn pads(&self, image: &Image<'_>, range: &Range<u64>, budget: &mut usize) -> Vec<u64> {
        let after = self
            .frames
            .partition_point(|it| it.range.start <= range.start);
        // One that begins earlier was cut in two by a symbol.
        let frames = self.frames.iter().skip(after.saturating_sub(1));
        let frames = frames
            .take_while(|it| it.range.start < range.end)
            .filter(|it| it.range.end > range.start);
        frames
            .flat_map(|frame| landing_pads(image, frame, budget))
            .collect()
    }
}

fn bytes_of(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    numbers.flat_map(u64::to_le_bytes).collect()
}

/// How many entries of tables of landing pads may be read: there cannot be more of them.
pub fn budget(image: &Image<'_>) -> usize {
    image.data().map(|piece| piece.bytes.len()).sum()
}

/// Nobody's address: what points to code although it is no data.
const NOWHERE: u64 = u64::MAX;

/// Code that data, the header or the loader points to; see [`Facts::pointers`].
pub fn pointers(image: &Image<'_>, headers: &[u64], fixed: bool) -> Vec<(u64, u64)> {
    let written = image.relocations.addresses();
    let written = written.filter(|(_, to)| image.is_code(*to));
    let mut found: Vec<_> = written.map(|(at, to)| (to, at)).collect();
    found.extend(headers.iter().map(|to| (*to, NOWHERE)));
    if let Some(table) = GoTable::of(image) {
        found.extend(table.recoveries().map(|to| (to, NOWHERE)));
    }
    if fixed {
        let words = words_of_code(image).into_iter();
        found.extend(words.map(|(at, to)| (to, at)));
    }
    found.sort_unstable();
    found
}

/// Where restartable sequences begin (rseq(2)): as their descriptors say, which are put into a
/// section of this name by convention. A descriptor has four words, of which this is the second.
fn restartable(elf: &Elf<'_>, pointers: &[(u64, u64)]) -> Vec<u64> {
    let Some(section) = elf.section_by_name("__rseq_cs") else {
        return Vec::new();
    };
    let range = section.address()..section.address().saturating_add(section.size());
    let is_start = |at: u64| range.contains(&at) && (at - range.start) % 32 == 8;
    let starts = pointers.iter().filter(|(_, at)| is_start(*at));
    starts.map(|(to, _)| *to).collect()
}

fn key(elf: &Elf<'_>, loaded: &str) -> String {
    match elf.build_id() {
        Ok(Some(id)) if !id.is_empty() => format!("gnu-{}-{loaded}", digest::hex(id)),
        _ => format!("loaded-{loaded}"),
    }
}

/// A digest of the bytes that are loaded.
fn loaded(image: &Image<'_>) -> String {
    let mut all = Digest::default();
    for piece in image.code().chain(image.data()) {
        all.number(piece.start);
        all.bytes(piece.bytes);
    }
    all.hex()
}
