//! The modules that were met: each is analysed once, however many processes run it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;

use headcount_model::{LoadBias, Module};

use crate::image::Image;
use crate::journal::{Entry, Journal};
use crate::proc::Mapping;
use crate::{Settings, debug_files};

/// Which file it is, and whether it has changed since.
type FileKey = (u64, u64, i64, u64);

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
        journal: &mut Journal,
    ) -> io::Result<Option<usize>> {
        let facts = file.metadata()?;
        let key = (
            facts.dev(),
            facts.ino(),
            facts.mtime_nsec() ^ facts.mtime(),
            facts.size(),
        );
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let found = match analyse(path, file) {
            Ok((module, layout)) => self.add(module, layout, settings, journal)?,
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
        layout: headcount_binary::Layout,
        settings: &Settings<'_>,
        journal: &mut Journal,
    ) -> io::Result<Option<usize>> {
        let chosen = (settings.choose)(&module);
        if !chosen.contains(&true) {
            if let Some(note) = (settings.why_nothing)(&module) {
                journal.write(&Entry::Note(note))?;
            }
            return Ok(None);
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

fn analyse(path: &str, mut file: File) -> Result<(Module, headcount_binary::Layout), String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    analyse_bytes(path, &bytes)
}

/// The facts of a module, from its bytes.
pub fn analyse_bytes(
    path: &str,
    bytes: &[u8],
) -> Result<(Module, headcount_binary::Layout), String> {
    let mut find =
        |wanted: headcount_binary::Wanted<'_>| debug_files::find(Path::new(path), &wanted);
    let binary =
        headcount_binary::read(path, bytes, &mut find).map_err(|error| error.to_string())?;
    Ok((binary.module, binary.layout))
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

/// How far a module was moved, from where one of its segments is.
pub fn bias(image: &Image, mapping: &Mapping) -> Option<LoadBias> {
    const PAGE: u64 = 4096;
    let floor = |number: u64| number & !(PAGE - 1);
    let segment = image
        .layout
        .segments
        .iter()
        .find(|it| it.executable && floor(it.file_offset) == mapping.offset)?;
    let bias = mapping.range.start.checked_sub(floor(segment.address.0))?;
    Some(LoadBias(bias))
}
