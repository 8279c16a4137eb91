//! Where something stands in a source, and the names of files.

/// The name of a file, as a number of a [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Where something stands as the translator counts: it follows `#line`, and tabs go to multiples of
/// eight. What ucode says of lines and columns is this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// None for an expression that is not there: it has no place either.
    pub file: Option<FileId>,
    pub line: u32,
    pub column: u32,
}

/// Where something stands in the file that was read: line and column from 1, columns in bytes.
/// What a macro stands for stands where the macro is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    pub file: FileId,
    pub line: u32,
    pub column: u32,
}

/// The names of files that a translation met, each once.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<Vec<u8>>);

impl Names {
    pub(crate) fn add(&mut self, name: &[u8]) -> FileId {
        let known = self.0.iter().position(|it| it == name);
        let number = known.unwrap_or_else(|| {
            self.0.push(name.to_vec());
            self.0.len() - 1
        });
        FileId(number as u32)
    }

    /// The name of a file. One that we did not give out has none.
    pub fn name(&self, file: FileId) -> &[u8] {
        self.0.get(file.0 as usize).map_or(b"", |it| it)
    }
}
