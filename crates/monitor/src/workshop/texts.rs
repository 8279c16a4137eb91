//! The bytes of a module's executable mappings: as they are without us, and with everything that was
//! made so far. Most modules have one such mapping; those that were laid out anew after they had been
//! linked have another one for code that runs often.

use std::ops::Range;
use std::sync::Arc;

use headcount_binary::FileBytes;

/// The bytes of a mapping as they are without us.
pub enum Original {
    /// Those of the module's file, from here on, and how many.
    File(FileBytes, usize, usize),
    /// Others.
    Own(Vec<u8>),
}

impl Original {
    /// So many bytes of a file from an offset on; `None` if it has not so many.
    pub fn in_file(file: &FileBytes, offset: u64, length: u64) -> Option<Self> {
        let offset = usize::try_from(offset).ok()?;
        let length = usize::try_from(length).ok()?;
        let is_there = (**file).as_ref().len() >= offset.checked_add(length)?;
        is_there.then(|| Self::File(Arc::clone(file), offset, length))
    }

    /// Are these bytes at an offset?
    pub fn have(&self, offset: usize, bytes: &[u8]) -> bool {
        let found = self.bytes().get(offset..);
        found.is_some_and(|it| it.starts_with(bytes))
    }

    /// Are they those of the file?
    fn is_in_file(&self) -> bool {
        matches!(self, Self::File(..))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::File(file, offset, length) => {
                let bytes = (**file).as_ref().get(*offset..*offset + *length);
                bytes.unwrap_or_default()
            }
            Self::Own(bytes) => bytes,
        }
    }
}

struct Text {
    /// Its link addresses.
    range: Range<u64>,
    original: Original,
    patched: Vec<u8>,
}

impl Text {
    fn index(&self, at: u64) -> usize {
        (at - self.range.start) as usize
    }
}

/// All of a module that a process has had.
#[derive(Default)]
pub struct Texts(Vec<Text>);

impl Texts {
    /// Makes one known that begins at a link address. Its range.
    pub fn add(&mut self, start: u64, original: Original) -> Range<u64> {
        let patched = original.bytes().to_vec();
        let range = start..start + patched.len() as u64;
        self.0.push(Text {
            range: range.clone(),
            original,
            patched,
        });
        range
    }

    /// Is there one that begins here?
    pub fn has(&self, start: u64) -> bool {
        self.0.iter().any(|it| it.range.start == start)
    }

    /// Is an address in one of them?
    pub fn contain(&self, at: u64) -> bool {
        self.at(at).is_some()
    }

    /// Is a range in one whose bytes are those of the file?
    pub fn are_in_file(&self, range: &Range<u64>) -> bool {
        let text = self.at(range.start);
        text.is_some_and(|it| it.original.is_in_file() && range.end <= it.range.end)
    }

    fn at(&self, at: u64) -> Option<&Text> {
        self.0.iter().find(|it| it.range.contains(&at))
    }

    fn at_mut(&mut self, at: u64) -> Option<&mut Text> {
        self.0.iter_mut().find(|it| it.range.contains(&at))
    }

    /// The original bytes from an address on.
    pub fn original_from(&self, at: u64) -> Option<&[u8]> {
        let text = self.at(at)?;
        text.original.bytes().get(text.index(at)..)
    }

    /// The original bytes of a range.
    pub fn original(&self, range: &Range<u64>) -> Option<&[u8]> {
        let length = range.end.checked_sub(range.start)?;
        self.original_from(range.start)?.get(..length as usize)
    }

    /// What a range is to be.
    pub fn patched(&self, range: &Range<u64>) -> Option<&[u8]> {
        let text = self.at(range.start)?;
        let length = range.end.checked_sub(range.start)? as usize;
        text.patched.get(text.index(range.start)..)?.get(..length)
    }

    /// Is to be another byte than it was at an address? Which?
    pub fn changed(&self, at: u64) -> Option<u8> {
        let byte = *self.patched(&(at..at + 1))?.first()?;
        let original = *self.original_from(at)?.first()?;
        (byte != original).then_some(byte)
    }

    /// From now on this byte is to be there.
    pub fn set(&mut self, at: u64, byte: u8) {
        if let Some(text) = self.at_mut(at) {
            let index = text.index(at);
            text.patched[index] = byte;
        }
    }

    /// From now on a range is to be as it was, as far as it is in one text.
    pub fn restore(&mut self, range: &Range<u64>) {
        let Some(text) = self.at_mut(range.start) else {
            return;
        };
        let end = range.end.min(text.range.end);
        let indices = text.index(range.start)..text.index(end);
        if let Some(original) = text.original.bytes().get(indices.clone()) {
            text.patched[indices].copy_from_slice(original);
        }
    }

    /// The link address of each, and what is to be there.
    pub fn all_patched(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let texts = self.0.iter();
        texts.map(|it| (it.range.start, it.patched.as_slice()))
    }

    /// The same, as they are without us.
    pub fn all_original(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let texts = self.0.iter();
        texts.map(|it| (it.range.start, it.original.bytes()))
    }
}
