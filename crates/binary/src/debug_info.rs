//! What does the debug information say about this address?

use std::collections::{HashMap, HashSet};

use gimli::{DwarfPackageSections, LittleEndian, SectionId, Unit};
use headcount_model::{Block, FileId, LineRun};

use crate::debug_files::{self, FileBytes, Find, Slice, Wanted};
use crate::inlined::{self, Copies, InlinedNames, Subprogram};
use crate::layout::Elf;
use crate::lines::{self, Row};
use crate::sweep::Op;

pub type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;

/// What the debug information of a module says.
#[derive(Debug, Default)]
pub struct DebugInfo {
    pub files: Files,
    /// The line table, by address.
    rows: Vec<Row>,
    /// Functions, by address.
    subprograms: Vec<Subprogram>,
    copies: Vec<(u64, u32)>,
    /// What of it cannot be read, as clauses.
    pub troubles: Vec<String>,
}

impl DebugInfo {
    /// Says so if the sections of a file are not read because they are too large.
    fn note_size(&mut self, elf: &Elf<'_>) {
        let size = debug_files::unpacks_to_too_much(elf);
        self.troubles.extend(size.map(|bytes| {
            format!("its debug information is not read: it would unpack to {bytes} bytes")
        }));
    }
}

/// Source files, each once.
#[derive(Debug, Default)]
pub struct Files {
    pub paths: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Files {
    pub fn number(&mut self, path: String) -> FileId {
        let next = self.paths.len() as u32;
        let id = *self.numbers.entry(path).or_insert_with_key(|path| {
            self.paths.push(path.clone());
            next
        });
        FileId(id)
    }
}

/// Units that may refer to each other.
pub struct Units<'a> {
    pub dwarf: &'a Dwarf<'a>,
    /// By their places in the section.
    pub units: Vec<Unit<Slice<'a>>>,
}

impl<'a> Units<'a> {
    pub fn of(dwarf: &'a Dwarf<'a>, troubles: &mut Vec<String>) -> Self {
        let mut headers = dwarf.units();
        let mut units = Vec::new();
        loop {
            match headers.next() {
                Ok(Some(header)) => match dwarf.unit(header) {
                    Ok(unit) => units.push(unit),
                    Err(error) => {
                        troubles.push(format!("its debug information is broken ({error})"))
                    }
                },
                Ok(None) => break,
                Err(error) => {
                    troubles.push(format!("its debug information is broken ({error})"));
                    break;
                }
            }
        }
        Self { dwarf, units }
    }
}

/// Reads everything there is, in this file and in those that it speaks of.
pub fn read(elf: &Elf<'_>, is_code: &dyn Fn(u64) -> bool, find: &mut Find<'_>) -> DebugInfo {
    let mut copies = Copies::default();
    let info = read_with(elf, is_code, find, &mut copies);
    DebugInfo {
        copies: copies.finish(),
        ..info
    }
}

/// What was inlined into functions, by name.
pub fn inlined_names(elf: &Elf<'_>, find: &mut Find<'_>) -> InlinedNames {
    let mut copies = Copies::default();
    copies.names = Some(InlinedNames::new());
    read_with(elf, &|_| false, find, &mut copies);
    copies.names.unwrap_or_default()
}

/// The same, but for which copies hold from which addresses on.
fn read_with(
    elf: &Elf<'_>,
    is_code: &dyn Fn(u64) -> bool,
    find: &mut Find<'_>,
    copies: &mut Copies,
) -> DebugInfo {
    let mut info = DebugInfo::default();
    let sections = debug_files::sections(elf);
    let shared_bytes = debug_files::shared(elf, find);
    let shared_elf = shared_bytes
        .as_deref()
        .and_then(|bytes| Elf::parse(bytes.as_ref()).ok());
    let shared_sections = shared_elf.as_ref().map(debug_files::sections);
    for elf in shared_elf.iter().chain([elf]) {
        info.note_size(elf);
    }
    let borrow = |section| Slice::new(section, LittleEndian);
    let dwarf = sections.borrow_with_sup(shared_sections.as_ref(), |section| borrow(section));
    let main = Units::of(&dwarf, &mut info.troubles);
    let shared = dwarf
        .sup()
        .map(|dwarf| Units::of(dwarf, &mut info.troubles));
    let mut package = Package::default();
    for unit in &main.units {
        lines::read(
            &dwarf,
            unit,
            is_code,
            &mut info.files,
            &mut info.rows,
            &mut info.troubles,
        );
        let reader = inlined::Reader {
            units: &main,
            shared: shared.as_ref(),
            skeleton: None,
        };
        let name = unit.dwo_name().ok().flatten();
        let name = name.and_then(|name| dwarf.attr_string(unit, name).ok());
        let read = match (name, unit.dwo_id) {
            (Some(name), Some(id)) => {
                let split = package.get(find).is_none().then(|| {
                    let text = |slice: Option<Slice<'_>>| {
                        slice.map(|it| it.to_string_lossy().into_owned())
                    };
                    find(Wanted::SplitUnit {
                        name: &text(Some(name)).unwrap_or_default(),
                        comp_dir: &text(unit.comp_dir).unwrap_or_default(),
                        dwo_id: id.0,
                    })
                });
                match split {
                    Some(Some(bytes)) => {
                        split_file((*bytes).as_ref(), &main, unit, &mut info, copies)
                    }
                    Some(None) => Ok(()),
                    None => package.unit(&main, unit, &mut info, copies),
                }
            }
            _ => reader.read(unit, &mut info.files, &mut info.subprograms, copies),
        };
        if let Err(error) = read {
            info.troubles
                .push(format!("its debug information is broken ({error})"));
        }
    }
    lines::sort(&mut info.rows);
    info.subprograms.sort_by_key(|it| it.at);
    info.subprograms.dedup_by_key(|it| it.at);
    info.troubles.dedup();
    info
}

/// One file of split units, which holds the rest of `skeleton`.
fn split_file(
    bytes: &[u8],
    main: &Units<'_>,
    skeleton: &Unit<Slice<'_>>,
    info: &mut DebugInfo,
    copies: &mut Copies,
) -> gimli::Result<()> {
    let Ok(elf) = Elf::parse(bytes) else {
        return Ok(());
    };
    info.note_size(&elf);
    let sections = debug_files::split_sections(&elf);
    let mut dwarf = sections.borrow(|section| Slice::new(section, LittleEndian));
    dwarf.make_dwo(main.dwarf);
    split_units(&dwarf, main.dwarf, skeleton, info, copies)
}

fn split_units(
    dwarf: &Dwarf<'_>,
    main: &Dwarf<'_>,
    skeleton: &Unit<Slice<'_>>,
    info: &mut DebugInfo,
    copies: &mut Copies,
) -> gimli::Result<()> {
    let mut split = Units::of(dwarf, &mut info.troubles);
    for unit in &mut split.units {
        unit.copy_relocated_attributes(skeleton);
    }
    let reader = inlined::Reader {
        units: &split,
        shared: None,
        skeleton: Some((main, skeleton)),
    };
    for unit in split
        .units
        .iter()
        .filter(|unit| unit.dwo_id == skeleton.dwo_id)
    {
        reader.read(unit, &mut info.files, &mut info.subprograms, copies)?;
    }
    Ok(())
}

/// All split units in one file, asked for when the first of them is needed.
#[derive(Default)]
struct Package {
    asked: bool,
    bytes: Option<FileBytes>,
}

impl Package {
    fn get(&mut self, find: &mut Find<'_>) -> Option<&[u8]> {
        if !std::mem::replace(&mut self.asked, true) {
            let usable = |bytes: &FileBytes| Elf::parse((**bytes).as_ref()).is_ok();
            self.bytes = find(Wanted::Package).filter(usable);
        }
        self.bytes.as_deref().map(AsRef::as_ref)
    }

    fn unit(
        &self,
        main: &Units<'_>,
        skeleton: &Unit<Slice<'_>>,
        info: &mut DebugInfo,
        copies: &mut Copies,
    ) -> gimli::Result<()> {
        let elf = self
            .bytes
            .as_deref()
            .and_then(|bytes| Elf::parse(bytes.as_ref()).ok());
        let (Some(elf), Some(id)) = (elf, skeleton.dwo_id) else {
            return Ok(());
        };
        info.note_size(&elf);
        let load = |id: SectionId| {
            let name = id.dwo_name().unwrap_or_default();
            Ok::<_, gimli::Error>(debug_files::section(&elf, name))
        };
        let sections = DwarfPackageSections::load(load)?;
        let empty = Slice::new(&[], LittleEndian);
        let package = sections.borrow(|section| Slice::new(section, LittleEndian), empty)?;
        match package.find_cu(id, main.dwarf)? {
            Some(dwarf) => split_units(&dwarf, main.dwarf, skeleton, info, copies),
            None => Ok(()),
        }
    }
}

impl DebugInfo {
    /// The function that begins here.
    pub fn subprogram(&self, at: u64) -> Option<&Subprogram> {
        let index = self
            .subprograms
            .binary_search_by_key(&at, |it| it.at)
            .ok()?;
        self.subprograms.get(index)
    }

    /// The line that begins at an address.
    pub fn line(&self, at: u64) -> Option<(FileId, u32)> {
        let first = self.rows.partition_point(|row| row.at < at);
        let mut here = self.rows.iter().skip(first).take_while(|row| row.at == at);
        let row = here.find(|row| !row.end && row.line != 0)?;
        Some((row.file, row.line))
    }

    /// The column of a line at an address, as far as the table has the line there.
    pub fn column(&self, at: u64, line: u32) -> u32 {
        let first = self.rows.partition_point(|row| row.at < at);
        let here = self.rows.iter().skip(first).take_while(|row| row.at == at);
        let before = first.checked_sub(1).and_then(|it| self.rows.get(it));
        let mut rows = here.chain(before).filter(|row| !row.end);
        rows.find(|row| row.line == line)
            .map_or(0, |row| row.column)
    }

    /// Which inlined copy of a function an address belongs to; 0 if to none.
    pub fn inline_copy(&self, at: u64) -> u32 {
        let after = self.copies.partition_point(|(start, _)| *start <= at);
        let copy = after
            .checked_sub(1)
            .and_then(|index| self.copies.get(index));
        copy.map_or(0, |(_, number)| *number)
    }

    /// The copy that a row belongs to which ends where it begins: that of the code before it, as
    /// far as that goes on.
    fn copy_before(&self, op: &Op, first: bool, here: u32) -> u32 {
        let before = self.inline_copy(op.at.saturating_sub(1));
        match (before == here, first) {
            (true, _) => here,
            (false, true) => 0,
            (false, false) => before,
        }
    }

    /// The instructions of a block as runs of one place each.
    pub fn runs(&self, ops: &[Op]) -> Vec<LineRun> {
        let mut runs: Vec<LineRun> = Vec::new();
        let Some(first) = ops.first().filter(|_| !self.rows.is_empty()) else {
            return runs;
        };
        let mut next = self.rows.partition_point(|row| row.at < first.at);
        let mut current = next.checked_sub(1).and_then(|index| self.rows.get(index));
        for (index, op) in ops.iter().enumerate() {
            let begin = next;
            while self.rows.get(next).is_some_and(|row| row.at <= op.at) {
                next += 1;
            }
            let new = self.rows.get(begin..next).unwrap_or_default();
            current = new.last().or(current);
            let copy = self.inline_copy(op.at);
            let mut begins = false;
            for (place, row) in (begin..next)
                .zip(new)
                .filter(|(_, row)| row.at == op.at && !row.end)
            {
                let last = place + 1 == next;
                match (last, row.is_stmt) {
                    (true, is_stmt) => begins = is_stmt,
                    (false, true) => {
                        let copy = self.copy_before(op, index == 0, copy);
                        runs.push(run(row, true, 0, copy));
                    }
                    (false, false) => {}
                }
            }
            match current {
                Some(row) if !row.end => extend(&mut runs, run(row, begins, 1, copy)),
                // Code without a line, behind code with one.
                _ => {
                    if let Some(before) = runs.last().copied() {
                        let none = LineRun {
                            line: 0,
                            column: 0,
                            is_stmt: false,
                            instructions: 1,
                            ..before
                        };
                        extend(&mut runs, none);
                    }
                }
            }
        }
        runs
    }
}

/// Gives rows without instructions to the copy that has instructions of the same line. Where a
/// copy begins, rows of the code around it and of the copy itself stand at the same address.
pub fn settle(blocks: &mut [Block], source: Option<(FileId, u32)>) {
    let runs = blocks.iter().flat_map(|block| &block.lines);
    let mut known: HashSet<(FileId, u32, u32)> = runs
        .filter(|run| run.instructions > 0)
        .map(|run| (run.file, run.line, run.inline_copy))
        .collect();
    known.extend(source.map(|(file, line)| (file, line, 0)));
    for block in blocks {
        let mut here = 0;
        for run in block.lines.iter_mut().rev() {
            if run.instructions > 0 {
                here = run.inline_copy;
                continue;
            }
            let copies = [run.inline_copy, 0, here];
            let owner = copies
                .into_iter()
                .find(|copy| known.contains(&(run.file, run.line, *copy)));
            run.inline_copy = owner.unwrap_or(run.inline_copy);
        }
    }
}

fn run(row: &Row, is_stmt: bool, instructions: u32, inline_copy: u32) -> LineRun {
    LineRun {
        file: row.file,
        line: row.line,
        column: row.column,
        is_stmt,
        instructions,
        inline_copy,
    }
}

/// Adds an instruction to the last run, if it goes on with the same place.
fn extend(runs: &mut Vec<LineRun>, new: LineRun) {
    if let Some(last) = runs.last_mut() {
        let place = |it: &LineRun| (it.file, it.line, it.column, it.inline_copy);
        let same = place(last) == place(&new);
        if same && last.instructions > 0 && (last.is_stmt || !new.is_stmt) {
            last.instructions += new.instructions;
            return;
        }
    }
    runs.push(new);
}
