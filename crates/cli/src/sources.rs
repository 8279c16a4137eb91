//! The source files that a profile names, wherever they are now.

use crate::disclosure::{self, Disclosure};
use crate::talk;
use headcount_monitor::foreign_file;
use headcount_profile::Loaded;
use headcount_report::export::Source;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// The source files, each looked for once.
pub struct Sources {
    /// How many of the folders the user named; they come first.
    named: usize,
    folders: Vec<PathBuf>,
    /// When the first of the runs began: sources changed later may not be what ran.
    began: Option<SystemTime>,
    disclosure: Disclosure,
    known: RefCell<BTreeMap<String, Option<Found>>>,
    /// Who may not read all of what was shown, as bits of a file's mode.
    kept_from: Cell<u32>,
}

/// A file that was found.
#[derive(Clone)]
struct Found {
    path: PathBuf,
    lines: Lines,
    /// It is not to be shown.
    is_private: bool,
    /// Who may not read it.
    kept_from: u32,
}

/// A source file that was looked for.
pub enum Look {
    /// Here it is, and who may not read it, as bits of a file's mode.
    Shown(Lines, u32),
    /// It is private, and lies where the user did not say that we may show what is.
    Private,
    /// It was not found.
    Missing,
}

/// No source is larger.
const LARGEST: u64 = 1 << 28;

/// The lines of a file.
pub type Lines = Rc<Vec<String>>;

impl Sources {
    /// Looks in the folders that the user named, and where programs and profile are.
    pub fn new(loaded: &Loaded, named: &[PathBuf], profile: Option<&Path>) -> Self {
        let mut folders = named.to_vec();
        folders.push(PathBuf::new());
        // A relative name is often relative to where the program was built, and programs are
        // often still there; or the profile is.
        for it in &loaded.counted {
            folders.extend(Path::new(&it.module.path).parent().map(Path::to_owned));
        }
        folders.extend(profile.and_then(Path::parent).map(Path::to_owned));
        let starts = loaded.runs.iter().map(|run| run.started);
        let began = starts.filter(|at| *at > 0).min();
        Self {
            named: named.len(),
            folders,
            began: began.map(|at| SystemTime::UNIX_EPOCH + Duration::from_nanos(at)),
            disclosure: Disclosure::new(loaded, named, profile),
            known: RefCell::default(),
            kept_from: Cell::new(0),
        }
    }

    /// The lines of a file; if it is not found, or not to be shown, says so, once.
    pub fn lines(&self, file: &str) -> Option<Lines> {
        let is_new = !self.known.borrow().contains_key(file);
        match self.look(file) {
            Look::Shown(lines, _) => return Some(lines),
            Look::Private if is_new => say_private(file),
            Look::Missing if is_new => {
                talk::say(format!("{file}: source not found; --source DIR says where"));
            }
            Look::Private | Look::Missing => (),
        }
        None
    }

    /// The lines of a file under this very name.
    pub fn exactly(&self, path: &Path) -> Look {
        match self.open(path) {
            None => Look::Missing,
            Some(found) => self.shown(&found),
        }
    }

    /// Who may not read all of what was shown, as bits of a file's mode: what is written of it is
    /// not for them either.
    pub fn kept_from(&self) -> u32 {
        self.kept_from.get()
    }

    /// A file under its whole name, or in a folder that the user named: where it is, and its lines,
    /// which are not to be shown. (A library's `string/copy.c` is not the `copy.c` that lies beside a
    /// program.)
    pub fn whole(&self, file: &str) -> Option<Source> {
        let found = self.found(file)?;
        let name = file.trim_start_matches("./");
        let in_named = |folder: &PathBuf| found.path.starts_with(folder);
        let is_it = found.path.ends_with(name) || self.folders[..self.named].iter().any(in_named);
        is_it.then(|| Source {
            path: found.path.to_string_lossy().into_owned(),
            lines: found.lines,
        })
    }

    /// The text of a file as it was when the program was built, for all that one can tell: found
    /// under its whole name, and not changed since the run began. It is not to be shown.
    pub fn as_built(&self, file: &str) -> Option<Vec<u8>> {
        let folders = self.folders.iter();
        let mut candidates = folders.flat_map(|folder| candidates(folder, file));
        let name = file.trim_start_matches("./");
        candidates.find_map(|path| {
            let in_named = |folder: &PathBuf| path.starts_with(folder);
            let is_it = path.ends_with(name) || self.folders[..self.named].iter().any(in_named);
            let changed = path.metadata().and_then(|it| it.modified()).ok()?;
            let is_old = self.began.is_none_or(|began| changed <= began);
            (is_it && is_old).then(|| foreign_file::read(&path, LARGEST).ok())?
        })
    }

    /// The lines of a file, if it is found and may be shown.
    pub fn quietly(&self, file: &str) -> Option<Lines> {
        match self.look(file) {
            Look::Shown(lines, _) => Some(lines),
            Look::Private | Look::Missing => None,
        }
    }

    fn look(&self, file: &str) -> Look {
        match self.found(file) {
            None => Look::Missing,
            Some(found) => self.shown(&found),
        }
    }

    fn shown(&self, found: &Found) -> Look {
        if found.is_private {
            return Look::Private;
        }
        self.kept_from.set(self.kept_from.get() | found.kept_from);
        Look::Shown(found.lines.clone(), found.kept_from)
    }

    fn found(&self, file: &str) -> Option<Found> {
        let mut known = self.known.borrow_mut();
        let found = known.entry(file.to_owned());
        found.or_insert_with(|| self.read(file)).clone()
    }

    /// Says which files are not to be shown, and in one line which were looked for in vain.
    /// Tells only of files that are wanted.
    pub fn say_missing(&self, is_wanted: &dyn Fn(&str) -> bool) {
        const MOST: usize = 3;
        let known = self.known.borrow();
        let private = |found: &Option<Found>| found.as_ref().is_some_and(|it| it.is_private);
        let private = known.iter().filter(|(_, found)| private(found));
        private.for_each(|(file, _)| say_private(file));
        let missing = known.iter().filter(|(_, found)| found.is_none());
        let missing = missing.map(|(file, _)| file.as_str());
        let missing: Vec<&str> = missing.filter(|file| is_wanted(file)).collect();
        let named = missing[..missing.len().min(MOST)].join(", ");
        match missing.len() {
            0 => (),
            1..=MOST => talk::say(format!(
                "source not found: {named}; --source DIR says where"
            )),
            many => talk::say(format!(
                "source not found: {named} and {}; --source DIR says where",
                headcount_report::plural((many - MOST) as u64, "more file")
            )),
        }
    }

    fn read(&self, file: &str) -> Option<Found> {
        let folders = self.folders.iter();
        let mut candidates = folders.flat_map(|folder| candidates(folder, file));
        let found = candidates.find_map(|path| self.open(&path))?;
        let changed = found.path.metadata().and_then(|it| it.modified()).ok();
        if let (Some(changed), Some(began), false) = (changed, self.began, found.is_private)
            && changed > began
        {
            talk::say(format!(
                "{}: changed after the run began; counts may stand beside other lines",
                found.path.display()
            ));
        }
        Some(found)
    }

    /// A source file, if there is one. A profile may come from anyone and may name anything: what
    /// is no regular file, or too large for a source, is not read.
    fn open(&self, path: &Path) -> Option<Found> {
        // What is asked about the file is asked about the one that is read, whatever others do to
        // its folder meanwhile.
        let file = foreign_file::open(path).ok()?;
        let about = file.metadata().ok()?;
        let place = place(&file, path)?;
        let bytes = foreign_file::read_open(file, LARGEST).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        Some(Found {
            path: path.to_owned(),
            lines: Rc::new(text.lines().map(str::to_owned).collect()),
            is_private: !self.disclosure.allows(&place, &about),
            kept_from: kept_from(&place, &about),
        })
    }
}

/// Where an open file is, without links.
fn place(file: &File, path: &Path) -> Option<PathBuf> {
    let opened = foreign_file::path_of(file);
    let place = std::fs::read_link(opened).or_else(|_| path.canonicalize());
    place.ok()
}

/// From whom what is written of a file is to be kept (bits of a file's mode). A group is kept from
/// it, too, for what is written may be another group's.
fn kept_from(place: &Path, about: &Metadata) -> u32 {
    match disclosure::is_everybodys(place, about) {
        true => 0,
        false => 0o077,
    }
}

/// Says that a file is not shown, and what to do about it.
pub fn say_private(file: &str) {
    talk::say(format!(
        "{file}: not shown, because it is private and lies outside the folders of the build, the \
         profile and the current one; --source DIR, with a folder around it, shows it"
    ));
}

/// Where a file may be in a folder the user named: under its whole path, or ever less of it.
fn candidates(folder: &Path, file: &str) -> Vec<PathBuf> {
    if folder.as_os_str().is_empty() {
        return vec![PathBuf::from(file)];
    }
    let parts: Vec<&str> = file.split('/').filter(|it| !it.is_empty()).collect();
    (0..parts.len())
        .map(|skip| folder.join(parts[skip..].join("/")))
        .collect()
}
