//! Which modules a process has now.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use libc::pid_t;

use crate::catalog;
use crate::foreign_file;
use crate::journal::Entry;
use crate::monitor::Monitor;
use crate::proc::{self, Mapping};
use crate::space::Loaded;
use crate::wait::Stopped;

/// The code that the kernel lends to every process.
const VDSO: &str = "[vdso]";

/// What the kernel adds to the path of a file that is there no more.
const DELETED: &str = " (deleted)";

/// Opens the file that a process has mapped: it may have another root, or its file another name by
/// now, or none.
pub fn open(tid: pid_t, mapping: &Mapping, is_program: bool) -> io::Result<File> {
    if is_program {
        return File::open(format!("/proc/{tid}/exe"));
    }
    let Range { start, end } = mapping.range;
    let mapped = format!("/proc/{tid}/map_files/{start:x}-{end:x}");
    let path = Path::new(&mapping.path);
    let ways: [&dyn Fn() -> io::Result<File>; 3] = [
        // The kernel knows best, and tells those who may do everything.
        &|| foreign_file::open(Path::new(&mapped)),
        // Paths are told as seen from the process's own root, or else from ours.
        &|| foreign_file::open_in_root_of(tid, path),
        &|| foreign_file::open(path),
    ];
    let (mut perhaps, mut trouble) = (None, None);
    for way in ways {
        let file = match way() {
            Ok(file) => file,
            Err(error) => {
                trouble = Some(error);
                continue;
            }
        };
        let facts = file.metadata()?;
        if mapping.is_of(&facts) {
            return Ok(file);
        }
        match mapping.is_of_another(&facts) {
            true => trouble = Some(io::Error::other("another file is in its place by now")),
            false => _ = perhaps.get_or_insert(file),
        }
    }
    perhaps.ok_or_else(|| match trouble {
        Some(trouble) if !mapping.path.ends_with(DELETED) => trouble,
        _ => io::Error::other("its file was removed or replaced before headcount came"),
    })
}

/// The path of a mapping's file, be it that nothing is there any more.
pub fn name(mapping: &Mapping) -> &str {
    let path = mapping.path.as_str();
    path.strip_suffix(DELETED).unwrap_or(path)
}

impl Monitor<'_> {
    /// Puts breakpoints into modules that are new, and forgets those that are gone.
    pub fn look_at_modules(&mut self, mut stopped: Stopped) -> io::Result<Stopped> {
        let thread = self.thread(&stopped);
        let (pid, space) = (thread.pid, thread.space);
        // The process may live on without its first thread.
        let tid = stopped.tid();
        let mappings = proc::mappings(tid)?;
        if self.windows.is_some() {
            self.name_vdso(&mappings)?;
            return self.copy_modules(stopped, &mappings);
        }
        if let Some(space) = self.spaces.get_mut(&space) {
            space.forget_unmapped(&mappings);
        }
        self.name_vdso(&mappings)?;
        let program = proc::executable(tid).unwrap_or_default();
        for mapping in mappings.iter().filter(|it| it.executable && it.file.1 != 0) {
            let is_program = Path::new(&mapping.path) == program;
            if self.is_known(space, mapping) || !(self.settings.wants)(&mapping.path, is_program) {
                continue;
            }
            let Some(loaded) = self.load(tid, mapping, is_program)? else {
                continue;
            };
            self.journal.write(&Entry::Loaded {
                pid: pid as u32,
                module: loaded.image,
                bias: loaded.bias.0,
            })?;
            self.tally_in_image(loaded.image)?;
            let watch_jumps = self.settings.watch_jumps;
            let image = &self.catalog.images[loaded.image];
            if let Some(space) = self.spaces.get_mut(&space) {
                let module = loaded.image;
                let (back, installed) =
                    space.install(stopped, image, loaded, &mappings, watch_jumps)?;
                stopped = back;
                for note in installed.notes {
                    self.journal.write(&Entry::Note(note))?;
                }
                for block in installed.uncounted {
                    self.journal.write(&Entry::Uncounted { module, block })?;
                }
            }
        }
        Ok(stopped)
    }

    /// Says that the kernel's own code is not counted.
    fn name_vdso(&mut self, mappings: &[Mapping]) -> io::Result<()> {
        let is_wanted = !self.has_named_vdso
            && mappings.iter().any(|it| it.path == VDSO)
            && (self.settings.wants)(VDSO, false);
        if !is_wanted {
            return Ok(());
        }
        self.has_named_vdso = true;
        self.journal.write(&Entry::Note(format!(
            "{VDSO} is not counted: the kernel shares its code between all processes."
        )))
    }

    fn is_known(&self, space: usize, mapping: &Mapping) -> bool {
        let loaded = self.spaces.get(&space).map(|it| it.loaded.as_slice());
        let mut loaded = loaded.unwrap_or_default().iter();
        loaded.any(|it| it.is(mapping))
    }

    /// The module that is mapped here, if it is counted.
    fn load(
        &mut self,
        tid: pid_t,
        mapping: &Mapping,
        is_program: bool,
    ) -> io::Result<Option<Loaded>> {
        let file = match open(tid, mapping, is_program) {
            Ok(file) => file,
            Err(error) => {
                let path = name(mapping);
                self.journal
                    .write(&Entry::Note(format!("{path} is not counted: {error}.")))?;
                return Ok(None);
            }
        };
        let found = self.catalog.image(
            name(mapping),
            file,
            self.settings,
            &mut self.files,
            &mut self.journal,
        )?;
        let Some(number) = found else {
            return Ok(None);
        };
        let bias = catalog::bias(&self.catalog.images[number].layout, mapping);
        Ok(bias.map(|bias| Loaded {
            image: number,
            bias,
            range: catalog::code_in(&self.catalog.images[number].layout, mapping),
            file: mapping.file.clone(),
        }))
    }
}
