//! The source files that a profile names, wherever they are now.

use crate::talk;
use headcount_profile::Loaded;
use headcount_report::export::Source;
use std::cell::RefCell;
use std::collections::BTreeMap;
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
    known: RefCell<BTreeMap<String, Option<Found>>>,
}

/// A file that was found.
#[derive(Clone)]
struct Found {
    path: PathBuf,
    lines: Lines,
}

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
            known: RefCell::default(),
        }
    }

    /// The lines of a file; if it is not found, says so, once.
    pub fn lines(&self, file: &str) -> Option<Lines> {
        let is_new = !self.known.borrow().contains_key(file);
        let lines = self.quietly(file);
        if is_new && lines.is_none() {
            talk::say(format!("{file}: source not found; --source DIR says where"));
        }
        lines
    }

    /// A file under its whole name, or in a folder that the user named: where it is, and its lines.
    /// (A library's `string/copy.c` is not the `copy.c` that lies beside a program.)
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

    /// The lines of a file, if it is found.
    pub fn quietly(&self, file: &str) -> Option<Lines> {
        self.found(file).map(|it| it.lines)
    }

    fn found(&self, file: &str) -> Option<Found> {
        let mut known = self.known.borrow_mut();
        let found = known.entry(file.to_owned());
        found.or_insert_with(|| self.read(file)).clone()
    }

    /// Says in one line which files were looked for in vain.
    pub fn say_missing(&self) {
        const MOST: usize = 3;
        let known = self.known.borrow();
        let missing = known.iter().filter(|(_, lines)| lines.is_none());
        let missing: Vec<&str> = missing.map(|(file, _)| file.as_str()).collect();
        let named = missing[..missing.len().min(MOST)].join(", ");
        match missing.len() {
            0 => (),
            1..=MOST => talk::say(format!(
                "source not found: {named}; --source DIR says where"
            )),
            many => talk::say(format!(
                "source not found: {named} and {} more files; --source DIR says where",
                many - MOST
            )),
        }
    }

    fn read(&self, file: &str) -> Option<Found> {
        let (path, bytes) = self
            .folders
            .iter()
            .flat_map(|folder| candidates(folder, file))
            .find_map(|path| Some((path.clone(), read_source(&path)?)))?;
        let changed = path.metadata().and_then(|it| it.modified()).ok();
        if let (Some(changed), Some(began)) = (changed, self.began)
            && changed > began
        {
            talk::say(format!(
                "{}: changed after the run began; counts may stand beside other lines",
                path.display()
            ));
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines = Rc::new(text.lines().map(str::to_owned).collect());
        Some(Found { path, lines })
    }
}

/// The bytes of a source file. A profile may come from anyone and may name anything: what is no
/// ordinary file, or too large for a source, is not read.
pub fn read_source(path: &Path) -> Option<Vec<u8>> {
    const LARGEST: u64 = 1 << 28;
    let about = path.metadata().ok()?;
    let ordinary = about.is_file() && about.len() <= LARGEST;
    ordinary.then(|| std::fs::read(path).ok())?
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
