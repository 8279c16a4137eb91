//! What a process must be written so that it has everything that was made.

use std::io;
use std::ops::Range;

use super::{TRAP, Workshop};
use crate::copies::Installed;
use crate::memory::Memory;

/// Bytes that were changed.
#[derive(Clone, Debug)]
pub enum Change {
    /// A stretch of text, and the unit whose detours are in it.
    Text(Range<u64>, Option<usize>),
    /// The bytes of a call that leads elsewhere now.
    Call(Range<u64>),
    /// The distance of a jump of the copies, at this place of them.
    Way(usize),
    /// A stretch of the copies.
    Copies(Range<usize>),
}

/// How far a process has come with what the workshop made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    changes: usize,
    code: usize,
}

/// Bytes to write into a process, in this order: link address, and bytes.
pub type Writes = Vec<(u64, Vec<u8>)>;

impl Workshop {
    /// Writes into a process all that its module needs, whatever of it is there.
    pub fn write_everything(&self, module: &mut Installed, memory: &Memory) -> io::Result<()> {
        let copies = (self.site.copies_start(), self.code.as_slice());
        let texts = self.texts.all_patched();
        for (at, bytes) in [copies].into_iter().chain(texts) {
            // Of another process, more may be mapped.
            if module.has(module.load(at)) {
                memory.write(module.load(at), bytes)?;
            }
        }
        module.progress = self.progress();
        Ok(())
    }

    /// Writes the text that begins at a link address.
    pub fn write_text(&self, start: u64, module: &Installed, memory: &Memory) -> io::Result<()> {
        let mut texts = self.texts.all_patched().filter(|it| it.0 == start);
        texts.try_for_each(|(at, bytes)| memory.write(module.load(at), bytes))
    }

    /// What a process must be written that has come so far. If other threads run meanwhile, detours
    /// are first written so that they trap, and then their first bytes.
    pub fn news(&self, from: Progress, is_alone: bool) -> (Writes, Progress) {
        let mut writes = Vec::new();
        if from.code < self.code.len() {
            let at = self.site.copies_start().wrapping_add(from.code as u64);
            writes.push((at, self.code[from.code..].to_vec()));
        }
        let mut heads = Vec::new();
        for change in &self.changes[from.changes..] {
            match change {
                Change::Copies(range) => {
                    let at = self.site.copies_start().wrapping_add(range.start as u64);
                    writes.push((at, self.code[range.clone()].to_vec()));
                }
                // Where other threads may be jumping, it goes on as before: that is as good, and slower.
                Change::Way(_) | Change::Call(_) if !is_alone => {}
                Change::Way(place) => {
                    let at = self.site.copies_start().wrapping_add(*place as u64);
                    writes.push((at, self.code[*place..*place + 4].to_vec()));
                }
                Change::Call(call) => {
                    self.text_news(call, None, &mut writes, &mut heads);
                }
                Change::Text(text, unit) => {
                    let unit = unit.filter(|_| !is_alone);
                    self.text_news(text, unit, &mut writes, &mut heads);
                }
            }
        }
        writes.extend(heads);
        (writes, self.progress())
    }

    fn text_news(
        &self,
        text: &Range<u64>,
        unit: Option<usize>,
        writes: &mut Writes,
        heads: &mut Writes,
    ) {
        let Some(bytes) = self.texts.patched(text) else {
            return;
        };
        let mut bytes = bytes.to_vec();
        if let Some(unit) = unit {
            let copy = &self.units[unit].copy;
            for jump in &copy.jumps {
                let offset = jump.offset as usize;
                heads.push((copy.start.0 + offset as u64, vec![bytes[offset]]));
                bytes[offset] = TRAP;
            }
        }
        writes.push((text.start, bytes));
    }

    /// The texts as they are without us.
    pub fn clean(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.texts.all_original()
    }

    fn progress(&self) -> Progress {
        Progress {
            changes: self.changes.len(),
            code: self.code.len(),
        }
    }
}
