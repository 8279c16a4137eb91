//! The modules that were met: each is analysed once, however many processes run it.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use headcount_binary::{FileBytes, Layout, Outline};
use headcount_model::{Function, LoadBias, Module};

use crate::image::Image;
use crate::journal::{Entry, Journal};
use crate::module_file::{FileKey, ModuleFile, ModuleFiles};
use crate::proc::Mapping;
use crate::{Settings, debug_files};

/// All modules of a run.
#[derive(Debug, Default)]
pub struct Catalog {
    pub images: Vec<Image>,
    /// `None`: it is not counted.
    known: HashMap<FileKey, Option<usize>>,
}

impl Catalog {
    /// The image of the file that `open` opens, which the process knows as `path`. `None` if it is
    /// not counted; the journal says why.
    pub fn image(
        &mut self,
        path: &str,
        file: File,
        settings: &Settings<'_>,
        files: &mut ModuleFiles,
        journal: &mut Journal,
    ) -> io::Result<Option<usize>> {
        let key = FileKey::of(&file)?;
        let known = self.known.get(&key);
        let is_changed = |module: usize| files.is_changed(module);
        if let Some(known) = known.filter(|it| !it.is_some_and(is_changed)) {
            return Ok(*known);
        }
        let found = match analyse(path, file, files) {
            Ok((module, layout, file)) => {
                let known = known_blocks(path, file.bytes(), &module);
                let added = self.add(module, layout, &known, settings, journal)?;
                if added.is_some() {
                    files.add(file);
                }
                added
            }
            Err(reason) => {
                journal.write(&Entry::Note(format!("{path} is not counted: {reason}.")))?;
                None
            }
        };
        self.known.insert(key, found);
        Ok(found)
    }

    fn add(
        &mut self,
        module: Module,
        layout: Layout,
        known: &[bool],
        settings: &Settings<'_>,
        journal: &mut Journal,
    ) -> io::Result<Option<usize>> {
        let mut chosen = (settings.choose)(&module);
        if !chosen.contains(&true) {
            if let Some(note) = (settings.why_nothing)(&module) {
                journal.write(&Entry::Note(note))?;
            }
            return Ok(None);
        }
        for (chosen, known) in chosen.iter_mut().zip(known) {
            *chosen &= known;
        }
        let blocks = chosen.len() as u32;
        let entry = Entry::Module {
            path: module.path.clone(),
            build_id: module.build_id.clone(),
            blocks,
            uncounted: stretches(&chosen),
        };
        let (number, counters) = journal.add_module(&entry, blocks)?;
        self.images.push(Image::new(
            number,
            Rc::new(module),
            layout,
            chosen,
            counters,
        ));
        Ok(Some(number))
    }
}

fn analyse(
    path: &str,
    file: File,
    files: &mut ModuleFiles,
) -> Result<(Module, Layout, ModuleFile), String> {
    let file = files.hold(path, file).map_err(|error| error.to_string())?;
    let (module, layout) = analyse_bytes(path, (**file.bytes()).as_ref())?;
    Ok((module, layout, file))
}

/// For each block of a module: is control known to come there? Others may be data that looks like
/// code, and the program may read it.
fn known_blocks(path: &str, bytes: &FileBytes, module: &Module) -> Vec<bool> {
    let Ok(mut outline) = outline(path, bytes) else {
        let blocks = module.functions.iter().map(|it| it.blocks.len());
        return vec![true; blocks.sum()];
    };
    let mut arrivals = outline.explore().arrivals;
    arrivals.extend(outline.entries());
    let arrivals: BTreeSet<u64> = arrivals.into_iter().collect();
    let functions = module.functions.iter();
    let known = functions.map(|it| match outline.is_known_start(it.address) {
        true => vec![true; it.blocks.len()],
        false => reached(it, &arrivals),
    });
    known.flatten().collect()
}

/// For each block of a function: does control come there from one of these?
fn reached(function: &Function, arrivals: &BTreeSet<u64>) -> Vec<bool> {
    let blocks = function.blocks.iter();
    let mut reached: Vec<bool> = blocks.map(|it| arrivals.contains(&it.address.0)).collect();
    loop {
        let before = reached.clone();
        for edge in &function.edges {
            if let (Some(from), Some(to)) = (edge.from, edge.to) {
                reached[to as usize] |= reached[from as usize];
            }
        }
        if reached == before {
            return reached;
        }
    }
}

/// The facts of a module, from its bytes.
pub fn analyse_bytes(path: &str, bytes: &[u8]) -> Result<(Module, Layout), String> {
    let mut find =
        |wanted: headcount_binary::Wanted<'_>| debug_files::find(Path::new(path), &wanted);
    let binary =
        headcount_binary::read(path, bytes, &mut find).map_err(|error| error.to_string())?;
    Ok((binary.module, binary.layout))
}

/// A module that was counted by copies.
#[derive(Debug)]
pub struct Analysed {
    /// Its facts.
    pub module: Module,
    /// Where its routines were under watch.
    pub watched: Vec<u64>,
    /// Where debug information was looked for outside of its file.
    pub sought: Vec<PathBuf>,
}

/// What is to be known of a module that was counted by copies, from the bytes of its file, which
/// must be those that were counted.
pub fn analyse_counted(path: &str, key: &str, bytes: &FileBytes) -> Result<Analysed, String> {
    let outline = outline(path, bytes)?;
    if outline.key() != key {
        return Err("was rebuilt since it was counted; run it again".to_owned());
    }
    let mut sought = Vec::new();
    let mut find = |wanted: headcount_binary::Wanted<'_>| {
        sought.extend(debug_files::places(Path::new(path), &wanted));
        debug_files::find(Path::new(path), &wanted)
    };
    let binary = headcount_binary::read(path, (**bytes).as_ref(), &mut find)
        .map_err(|error| error.to_string())?;
    Ok(Analysed {
        module: binary.module,
        watched: outline.known_starts().collect(),
        sought,
    })
}

/// Where the code of a module is, from its file.
pub fn outline(path: &str, bytes: &FileBytes) -> Result<Outline, String> {
    let mut find =
        |wanted: headcount_binary::Wanted<'_>| debug_files::find(Path::new(path), &wanted);
    Outline::read(bytes.clone(), &mut find).map_err(|error| error.to_string())
}

/// The same, be it from what an earlier run found in the same file.
pub fn outline_once(
    path: &str,
    bytes: &FileBytes,
    settings: &Settings<'_>,
) -> Result<Outline, String> {
    let mut find =
        |wanted: headcount_binary::Wanted<'_>| debug_files::find(Path::new(path), &wanted);
    Outline::read_once(
        Arc::clone(bytes),
        &mut find,
        settings.recall,
        settings.remember,
    )
    .map_err(|error| error.to_string())
}

/// Where blocks are not counted: first, and how many.
fn stretches(chosen: &[bool]) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for (number, _) in (0..).zip(chosen).filter(|(_, chosen)| !**chosen) {
        match found.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => found.push((number, 1)),
        }
    }
    found
}

const PAGE: u64 = 4096;

fn floor(number: u64) -> u64 {
    number & !(PAGE - 1)
}

/// Where the code of a module is.
pub struct Code {
    /// Link addresses from its first page to its last, with whatever lies between.
    pub reach: Range<u64>,
    /// How many bytes of it there are.
    pub length: u64,
}

/// Where the code of a module is, in however many segments.
pub fn code(layout: &Layout) -> Code {
    let segments = || layout.segments.iter().filter(|it| it.executable);
    let starts = segments().map(|it| floor(it.address.0));
    let ends = segments().map(|it| it.address.0.saturating_add(it.file_size));
    let start = starts.min().unwrap_or(0);
    let end = ends.max().unwrap_or(0).next_multiple_of(PAGE);
    Code {
        reach: start..end.max(start),
        length: segments().map(|it| it.file_size).sum(),
    }
}

/// Where the code of a mapping is. A loader may first map a whole module as if all of it were code,
/// with nothing behind the end of its file.
pub fn code_in(layout: &Layout, mapping: &Mapping) -> Range<u64> {
    let segments = layout.segments.iter();
    let mut segments = segments.filter(|it| it.executable);
    let Some(segment) = segments.find(|it| floor(it.file_offset) == mapping.offset) else {
        return mapping.range.clone();
    };
    let length = segment.file_offset - mapping.offset + segment.file_size;
    let length = length.next_multiple_of(PAGE);
    let end = mapping.range.start.saturating_add(length);
    mapping.range.start..mapping.range.end.min(end)
}

/// How far a module was moved, from where one of its segments is.
pub fn bias(layout: &Layout, mapping: &Mapping) -> Option<LoadBias> {
    let segment = layout
        .segments
        .iter()
        .find(|it| it.executable && floor(it.file_offset) == mapping.offset)?;
    let bias = mapping.range.start.checked_sub(floor(segment.address.0))?;
    Some(LoadBias(bias))
}
