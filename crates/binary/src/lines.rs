//! Which line does each address belong to?

use std::collections::HashMap;

use gimli::{ColumnType, LineProgramHeader, Unit};
use headcount_model::{FileId, source_path};

use crate::debug_files::Slice;
use crate::debug_info::{Dwarf, Files};

/// A row of a line table: holds from its address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub at: u64,
    pub file: FileId,
    pub line: u32,
    pub column: u32,
    pub is_stmt: bool,
    /// Nothing holds from here on.
    pub end: bool,
}

/// Adds the rows of a unit. Those of code that the linker dropped lie where no code is.
pub fn read(
    dwarf: &Dwarf<'_>,
    unit: &Unit<Slice<'_>>,
    is_code: &dyn Fn(u64) -> bool,
    files: &mut Files,
    rows: &mut Vec<Row>,
    troubles: &mut Vec<String>,
) {
    let Some(program) = unit.line_program.clone() else {
        return;
    };
    let offset = program.header().offset().0;
    let mut steps = program.rows();
    let mut numbers = HashMap::new();
    let mut first = rows.len();
    loop {
        match steps.next_row() {
            Ok(Some((header, row))) => {
                let index = row.file_index();
                let file = numbers
                    .entry(index)
                    .or_insert_with(|| file(dwarf, unit, header, index, files));
                let line = row.line().map_or(0, |line| line.get());
                let column = match row.column() {
                    ColumnType::LeftEdge => 0,
                    ColumnType::Column(column) => column.get(),
                };
                if row.end_sequence() {
                    // What holds from the end on holds for nothing: it would for what follows.
                    let kept = rows[first..].partition_point(|it| it.at < row.address());
                    rows.truncate(first + kept);
                }
                rows.push(Row {
                    at: row.address(),
                    file: file.unwrap_or_else(|| files.number("??".to_owned())),
                    line: u32::try_from(line).unwrap_or(0),
                    column: u32::try_from(column).unwrap_or(0),
                    is_stmt: row.is_stmt(),
                    end: row.end_sequence(),
                });
                if row.end_sequence() {
                    let start = rows.get(first).map_or(0, |row| row.at);
                    if start == row.address() || !is_code(start) {
                        rows.truncate(first);
                    }
                    first = rows.len();
                }
            }
            Ok(None) => break,
            Err(error) => {
                troubles.push(format!(
                    "its line table is broken at {offset:#x} ({error}), so lines are not counted"
                ));
                break;
            }
        }
    }
    // A sequence without an end would hold for everything behind it.
    rows.truncate(first);
}

/// By address. Where one sequence ends, another may begin.
pub fn sort(rows: &mut [Row]) {
    rows.sort_by_key(|row| (row.at, !row.end));
}

/// The path of a file of a line table, whole: where the compiler ran, its folder, its name. The
/// assembly route joins them the same way.
pub fn file(
    dwarf: &Dwarf<'_>,
    unit: &Unit<Slice<'_>>,
    header: &LineProgramHeader<Slice<'_>>,
    index: u64,
    files: &mut Files,
) -> Option<FileId> {
    let entry = header.file(index)?;
    let text = |value| {
        dwarf
            .attr_string(unit, value)
            .ok()
            .map(|it| it.to_string_lossy().into_owned())
    };
    let name = text(entry.path_name())?;
    // Folder 0 is where the compiler ran, which may be a relative path.
    let folder = entry
        .directory(header)
        .filter(|_| entry.directory_index() > 0);
    let folder = folder.and_then(text).unwrap_or_default();
    let base = unit
        .comp_dir
        .map(|it| it.to_string_lossy().into_owned())
        .unwrap_or_default();
    let path = source_path(&source_path(&base, &folder), &name);
    Some(files.number(path))
}
