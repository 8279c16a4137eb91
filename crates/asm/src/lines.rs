//! Which source line each operation belongs to: the `.loc` directives of compilers, or, where a
//! person wrote the file, its own lines.

use std::collections::HashMap;
use std::ops::Range;

use crate::lex::{split, strings};
use crate::source::Row;

/// Reads the line table of a file as it goes by.
#[derive(Debug)]
pub struct Lines {
    /// All rows so far.
    pub rows: Vec<Row>,
    files: Files,
    /// How many of them wait for an operation.
    pending: u32,
    /// Holds until a `.loc` says otherwise.
    is_stmt: bool,
    /// The file and line offset of a line marker.
    marker: Option<(u32, i64)>,
    /// The file itself.
    name: String,
}

impl Lines {
    /// For a file of this name.
    pub fn new(name: &str) -> Self {
        Self {
            rows: Vec::new(),
            files: Files::default(),
            pending: 0,
            is_stmt: true,
            marker: None,
            name: name.to_owned(),
        }
    }

    /// All rows, and the source files that they name.
    pub fn finish(self) -> (Vec<Row>, Vec<String>) {
        (self.rows, self.files.paths)
    }

    /// `.file` with these arguments.
    pub fn file(&mut self, arguments: &str) {
        self.files.directive(arguments);
    }

    /// `# 12 "name"` on this line: the next one is line 12 of that file.
    pub fn marker(&mut self, line: u32, body: &str) {
        let (number, name) = split(body.trim_start_matches('#').trim_start());
        let (Ok(number), Some(path)) = (number.parse::<i64>(), strings(name).next()) else {
            return;
        };
        if !path.starts_with('<') {
            let file = self.files.intern(path);
            self.marker = Some((file, number.saturating_sub(i64::from(line) + 1)));
        }
    }

    /// `.loc file line [column] [options]`
    pub fn loc(&mut self, arguments: &str) {
        let mut words = arguments.split_ascii_whitespace();
        let (Some(file), Some(line)) = (words.next(), words.next()) else {
            return;
        };
        while let Some(word) = words.next() {
            if word == "is_stmt" {
                self.is_stmt = words.next() != Some("0");
            }
        }
        let (Ok(file), Ok(line)) = (file.parse::<u32>(), line.parse::<u32>()) else {
            return;
        };
        if let Some(file) = self.files.by_number.get(&file).copied() {
            self.push(file, line, self.is_stmt);
        }
    }

    /// An operation of a hand-written file stands on this line, which is its own row.
    pub fn physical(&mut self, line: u32) {
        let (file, line) = match self.marker {
            Some((file, offset)) => (file, moved(line, offset)),
            None => (self.files.intern(self.name.clone()), line),
        };
        let last = self.rows.last().filter(|_| self.pending == 0);
        if last.is_none_or(|row| row.file != file || row.line != line) {
            self.push(file, line, true);
        }
    }

    fn push(&mut self, file: u32, line: u32, is_stmt: bool) {
        self.rows.push(Row {
            file,
            line,
            is_stmt,
        });
        self.pending += 1;
    }

    /// The rows that begin at the operation that stands here.
    pub fn take(&mut self) -> Range<u32> {
        let end = self.rows.len() as u32;
        end - std::mem::take(&mut self.pending)..end
    }

    /// File and line of the last row, if there is one.
    pub fn last(&self) -> Option<(String, u32)> {
        let row = self.rows.last()?;
        Some((self.files.paths[row.file as usize].clone(), row.line))
    }

    /// What a line marker makes of this line, if there was one.
    pub fn marked(&self, line: u32) -> Option<(String, u32)> {
        let (file, offset) = self.marker?;
        Some((self.files.paths[file as usize].clone(), moved(line, offset)))
    }
}

fn moved(line: u32, offset: i64) -> u32 {
    u32::try_from(i64::from(line).saturating_add(offset)).unwrap_or(0)
}

/// Source files by the numbers that `.file` gives them.
#[derive(Debug, Default)]
struct Files {
    paths: Vec<String>,
    by_number: HashMap<u32, u32>,
    by_path: HashMap<String, u32>,
}

impl Files {
    fn intern(&mut self, path: String) -> u32 {
        let next = self.paths.len() as u32;
        let index = *self.by_path.entry(path.clone()).or_insert(next);
        if index == next {
            self.paths.push(path);
        }
        index
    }

    /// `.file 1 "name"` or `.file 1 "folder" "name"`.
    fn directive(&mut self, arguments: &str) {
        let (number, names) = split(arguments);
        let Ok(number) = number.parse::<u32>() else {
            return;
        };
        let mut strings = strings(names);
        let path = match (strings.next(), strings.next()) {
            (Some(folder), Some(name)) if !name.starts_with('/') => format!("{folder}/{name}"),
            (_, Some(name)) | (Some(name), None) => name,
            (None, None) => return,
        };
        let index = self.intern(path);
        self.by_number.insert(number, index);
    }
}
