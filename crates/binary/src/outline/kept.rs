//! What was found in a file, as bytes, for whoever asks for the same file again.

use std::ops::Range;
use std::sync::Arc;

use headcount_model::packed::{Packed, Packer};
use object::pod::{bytes_of, bytes_of_slice};
use object::read::elf::ProgramHeader;
use object::{Object, ObjectSection};

use super::{Explored, Facts, Outline, told};
use crate::debug_files::FileBytes;
use crate::digest::Digest;
use crate::frames::Frame;
use crate::image::Places;
use crate::layout::{Elf, LITTLE, Layout};
use crate::spans::Spans;

/// Names everything that an outline is made of: the bytes of the file, and of the one that its
/// symbols were moved to, but for debug information that nobody looks at for this.
pub fn name(elf: &Elf<'_>, file: &[u8], separate: Option<&[u8]>) -> String {
    let mut all = Digest::default();
    take(&mut all, elf, file);
    let separate = separate.and_then(|file| Some((Elf::parse(file).ok()?, file)));
    if let Some((elf, file)) = separate {
        take(&mut all, &elf, file);
    }
    format!("outline-{}", all.hex())
}

fn take(all: &mut Digest, elf: &Elf<'_>, file: &[u8]) {
    all.bytes(bytes_of(elf.elf_header()));
    all.bytes(bytes_of_slice(elf.elf_program_headers()));
    for header in elf.elf_section_table().iter() {
        all.bytes(bytes_of(header));
    }
    let segments = elf.elf_program_headers().iter();
    let segments = segments.map(|it| (it.p_offset(LITTLE), it.p_filesz(LITTLE)));
    let sections = elf.sections().filter_map(|section| {
        let (offset, size) = section.file_range()?;
        match is_looked_at(section.name().unwrap_or_default()) {
            true => Some((offset, size)),
            // That its bytes are packed, and to how many they unpack, is looked at.
            false => Some((offset, size.min(PACKED_HEADER))),
        }
    });
    let mut ranges: Vec<(u64, u64)> = segments.chain(sections).collect();
    ranges.sort_unstable();
    let mut done = 0;
    for (offset, size) in ranges {
        let start = offset.max(done);
        let end = offset.saturating_add(size).min(file.len() as u64);
        if start < end {
            all.number(start);
            all.bytes(&file[start as usize..end as usize]);
            done = end;
        }
    }
}

/// How many bytes of a packed section tell about the rest.
const PACKED_HEADER: u64 = 24;

/// Does an outline depend on the section with this name?
fn is_looked_at(name: &str) -> bool {
    let debug = [".debug_", ".zdebug_"];
    let debug = debug.iter().find_map(|it| name.strip_prefix(it));
    debug.is_none_or(|it| it == "frame")
}

impl Outline {
    /// What a file says, as bytes. Nobody has asked for a routine yet.
    pub(super) fn pack(&self) -> Vec<u8> {
        let mut to = Packer::default();
        let facts = &self.facts;
        to.text(&self.key);
        to.text(&self.fingerprint);
        to.0.push(self.changes_gs.into());
        to.0.push(self.system_calls.is_some().into());
        let system_calls = self.system_calls.as_deref().unwrap_or_default();
        to.column(system_calls.iter().copied());
        facts.places.pack(&mut to);
        let frames = &facts.frames;
        to.column(frames.iter().map(|it| it.range.start));
        to.column(frames.iter().map(|it| it.range.end));
        // No table is at the last address of all.
        let tables = frames
            .iter()
            .map(|it| it.lsda.map_or(0, |at| at.wrapping_add(1)));
        to.column(tables);
        to.column(facts.pointers.iter().map(|it| it.0));
        to.column(facts.pointers.iter().map(|it| it.1));
        to.column(facts.objects.iter().map(|it| it.start));
        to.column(facts.objects.iter().map(|it| it.end));
        for numbers in [
            &facts.restartable,
            &facts.whole,
            &facts.shared,
            &self.entries,
        ] {
            to.column(numbers.iter().copied());
        }
        self.spans.pack(&mut to);
        to.0
    }

    /// What [`Outline::pack`] wrote of the same file. `None`: it did not write this.
    pub(super) fn unpack(bytes: &FileBytes, layout: &Layout, packed: &[u8]) -> Option<Self> {
        let mut from = Packed(packed);
        let key = from.text()?;
        let fingerprint = from.text()?;
        let changes_gs = from.u8()? == 1;
        let has_calls = from.u8()? == 1;
        let system_calls = Some(from.column()?).filter(|_| has_calls);
        let places = Places::unpack(&mut from)?;
        let frames = take_ranges(&mut from)?;
        let tables = from.column()?;
        let frames = frames.into_iter().zip(&tables).map(|(range, table)| Frame {
            range,
            lsda: (*table != 0).then(|| table.wrapping_sub(1)),
        });
        let frames: Vec<Frame> = frames.collect();
        let words = from.column()?;
        let places_of_words = from.column()?;
        let pointers = words.iter().copied().zip(places_of_words.iter().copied());
        let pointers: Vec<(u64, u64)> = pointers.collect();
        let objects = take_ranges(&mut from)?;
        let restartable = from.column()?;
        let whole = from.column()?;
        let shared = from.column()?;
        let entries = from.column()?;
        let spans = Spans::unpack(&mut from)?;
        let is_whole = from.0.is_empty()
            && frames.len() == tables.len()
            && places_of_words.len() == words.len();
        let told = told(spans.origins());
        is_whole.then_some(Self {
            layout: layout.clone(),
            key,
            fingerprint,
            changes_gs,
            system_calls,
            facts: Facts {
                bytes: Arc::clone(bytes),
                places,
                frames,
                pointers,
                words,
                told,
                objects,
                restartable,
                whole,
                shared,
                is_fixed: !layout.position_independent,
            },
            spans,
            entries,
            added: Vec::new(),
            explored: None,
            kept_as: None,
            is_touched: false,
        })
    }

    /// What [`Outline::look_everywhere`] found, and made of an outline that nobody had touched.
    pub(super) fn pack_explored(&self, explored: &Explored) -> Vec<u8> {
        let mut to = Packer::default();
        self.spans.pack(&mut to);
        to.column(self.spans.spoken_of.iter().copied());
        for numbers in [&self.added, &explored.return_points, &explored.arrivals] {
            to.column(numbers.iter().copied());
        }
        to.0
    }

    /// Takes what [`Outline::pack_explored`] wrote of the same file. False: it did not write this.
    pub(super) fn take_explored(&mut self, packed: &[u8]) -> bool {
        let mut from = Packed(packed);
        let mut take = || {
            let mut spans = Spans::unpack(&mut from)?;
            spans.spoken_of = from.column()?.into_iter().collect();
            let added = from.column()?;
            let explored = Explored {
                return_points: from.column()?,
                arrivals: from.column()?,
            };
            from.0.is_empty().then_some((spans, added, explored))
        };
        let Some((spans, added, explored)) = take() else {
            return false;
        };
        self.is_touched = true;
        self.spans = spans;
        self.added = added;
        self.explored = Some(explored);
        true
    }
}

fn take_ranges(from: &mut Packed<'_>) -> Option<Vec<Range<u64>>> {
    let (starts, ends) = (from.column()?, from.column()?);
    let is_whole = starts.len() == ends.len();
    let ranges = starts.into_iter().zip(ends).map(|(start, end)| start..end);
    is_whole.then(|| ranges.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::layout;
    use headcount_model::LinkAddr;
    use std::cell::RefCell;
    use std::collections::HashMap;

    /// Two files that we did not make: this test itself, and the C library.
    fn files() -> Vec<Vec<u8>> {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("we are running");
        let paths = maps.lines().filter_map(|it| it.split_whitespace().nth(5));
        let library = paths.into_iter().find(|it| it.contains("libc.so"));
        let own = std::env::current_exe().expect("we are a file");
        let own = own.to_string_lossy().into_owned();
        let paths = library.map(str::to_owned).into_iter().chain([own]);
        paths
            .map(|it| std::fs::read(it).expect("it can be read"))
            .collect()
    }

    fn with_debug_information() -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, program) = (folder.path().join("it.c"), folder.path().join("it"));
        std::fs::write(&source, "int main(void) { return 0; }").expect("it is written");
        let mut gcc = std::process::Command::new("gcc");
        let built = gcc.arg("-g").arg(&source).arg("-o").arg(&program).status();
        assert!(built.is_ok_and(|it| it.success()), "gcc builds it");
        std::fs::read(program).expect("it can be read")
    }

    fn name_of(file: &[u8]) -> String {
        name(&Elf::parse(file).expect("it is a program"), file, None)
    }

    #[test]
    fn what_is_kept_of_a_file_is_what_reading_it_again_finds() {
        for file in files() {
            let bytes: FileBytes = Arc::new(file);
            let memory: RefCell<HashMap<String, Vec<u8>>> = RefCell::default();
            let read = || {
                Outline::read_once(
                    Arc::clone(&bytes),
                    &mut |_| None,
                    &|name| memory.borrow().get(name).cloned(),
                    &|name, bytes| {
                        let before = memory.borrow_mut().insert(name.to_owned(), bytes.to_vec());
                        assert!(before.is_none(), "it was not recalled");
                    },
                )
                .expect("it is a program")
            };
            let (mut first, mut again) = (read(), read());
            assert_eq!(memory.borrow().len(), 1);
            assert_eq!(first.pack(), again.pack());
            assert_eq!(first.facts.told, again.facts.told);
            assert_eq!(first.key(), again.key());
            assert!(first.known_starts().eq(again.known_starts()));
            for start in first.starts().to_vec().into_iter().step_by(7) {
                let routine = |it: &mut Outline| it.routine(LinkAddr(start), &[]);
                assert_eq!(routine(&mut first), routine(&mut again), "{start:#x}");
            }
        }
    }

    #[test]
    fn what_is_kept_of_exploring_is_what_exploring_finds() {
        for file in files() {
            let bytes: FileBytes = Arc::new(file);
            let memory: RefCell<HashMap<String, Vec<u8>>> = RefCell::default();
            let recall = |name: &str| memory.borrow().get(name).cloned();
            let remember = |name: &str, bytes: &[u8]| {
                let before = memory.borrow_mut().insert(name.to_owned(), bytes.to_vec());
                assert!(before.is_none(), "it was not recalled");
            };
            let read = || {
                let bytes = Arc::clone(&bytes);
                let read = Outline::read_once(bytes, &mut |_| None, &recall, &remember);
                read.expect("it is a program")
            };
            let explored = |outline: &mut Outline| {
                outline.prepare_to_explore(&recall, &remember);
                let explored = outline.explore();
                outline.pack_explored(&explored)
            };
            let (mut first, mut again) = (read(), read());
            let packed = explored(&mut first);
            assert!(packed == explored(&mut again));
            assert_eq!(memory.borrow().len(), 2);
            for start in first.starts().to_vec().into_iter().step_by(11) {
                let routine = |it: &mut Outline| it.routine(LinkAddr(start), &[]);
                assert_eq!(routine(&mut first), routine(&mut again), "{start:#x}");
            }
            // What came of one question is no answer to another.
            let mut touched = read();
            let _ = touched.routine(LinkAddr(touched.starts()[0]), &[]);
            memory.borrow_mut().clear();
            touched.prepare_to_explore(&recall, &remember);
            assert_eq!(memory.borrow().len(), 0);
            let mut cut = read();
            for length in (0..packed.len()).step_by(packed.len() / 50) {
                assert!(!cut.take_explored(&packed[..length]), "{length}");
            }
        }
    }

    #[test]
    fn whatever_is_kept_is_read_or_refused() {
        let file = files().remove(0);
        let layout = layout(&file).expect("it is a program");
        let bytes: FileBytes = Arc::new(file);
        let outline = Outline::read(Arc::clone(&bytes), &mut |_| None).expect("it is a program");
        let whole = outline.pack();
        for length in (0..whole.len()).step_by(whole.len() / 100) {
            let cut = Outline::unpack(&bytes, &layout, &whole[..length]);
            assert!(cut.is_none(), "{length}");
        }
        let mut state = 1_u64;
        let mut dice = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for _ in 0..300 {
            let mut damaged = whole.clone();
            for _ in 0..1 + dice(8) {
                let at = dice(damaged.len());
                damaged[at] = dice(256) as u8;
            }
            let Some(mut outline) = Outline::unpack(&bytes, &layout, &damaged) else {
                continue;
            };
            for start in outline.starts().to_vec().into_iter().step_by(501) {
                let _ = outline.routine(LinkAddr(start), &[]);
                let _ = outline.may_come_to(LinkAddr(start));
            }
        }
    }

    #[test]
    fn a_file_has_another_name_if_anything_changes_that_is_looked_at() {
        let file = with_debug_information();
        let elf = Elf::parse(&*file).expect("it is a program");
        let place_in = |section: &str| {
            let section = elf.section_by_name(section).expect("it has that");
            let (offset, size) = section.file_range().expect("it is in the file");
            (offset + size / 2) as usize
        };
        let renamed = |at: usize| {
            let mut other = file.clone();
            other[at] ^= 1;
            name_of(&other) != name_of(&file)
        };
        for section in [".text", ".rodata", ".eh_frame", ".symtab", ".strtab"] {
            assert!(renamed(place_in(section)), "{section}");
        }
        assert!(!renamed(place_in(".debug_line")));
        let separate = name(&elf, &file, Some(&file));
        assert_ne!(separate, name_of(&file));
    }
}
