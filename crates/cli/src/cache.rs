//! What files of programs say, kept for the next run: to read a large one takes seconds.
//!
//! A folder of the user's own, `headcount` in `$XDG_CACHE_HOME` or `~/.cache`; a file in it is
//! what one headcount found in one file of a program: its facts, for reports, or what the monitor
//! prepared: where its code is, the routines that ran, ready to be copied, and which of them a program
//! used. Its name is a digest of all that this depends on: the bytes of the program, its path (debug
//! information is looked for beside it) and the headcount that read it; or for what the monitor
//! prepared, what it says names that. With facts is also where debug information was looked for, and
//! what was there.
//!
//! What is kept of routines is machine code, and runs in every program that has the same bytes. So
//! the digest is one that nobody can forge, and nothing is kept of files that somebody other than
//! the user and root can have written.
//!
//! Whoever removes the folder loses time, nothing else: what cannot be read, does not fit, or is
//! not the user's own is not used, and no trouble with the cache ever ends a run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use headcount_monitor::{FileBytes, ModuleFile, OwnFolder, foreign_file};
use headcount_profile::ModuleFacts;

/// Raised with every change of what is in the files.
const FORMAT: &str = concat!("headcount ", env!("CARGO_PKG_VERSION"), " facts 25");

/// How many bytes all files may have.
const LIMIT: u64 = 512 << 20;

/// The end of the name of a file with facts.
const FACTS: &str = ".facts";

/// The same, with what the monitor prepared.
const PREPARED: &str = ".prepared";

/// A file that is being written, or was when its writer was killed.
const UNFINISHED: &str = ".unfinished";

/// The facts of a module that was counted by copies: kept ones, or else made of the bytes of its
/// file, which must be those that were counted.
pub fn facts(path: &str, key: &str, bytes: &FileBytes) -> Result<ModuleFacts, String> {
    let place = Cache::find().filter(|_| is_safe(path)).and_then(|cache| {
        let name = name(path, (**bytes).as_ref()).ok()?;
        Some((cache, name))
    });
    if let Some((cache, name)) = &place
        && let Some(known) = cache.facts(name, path, key)
    {
        return Ok(known);
    }
    let found = headcount_monitor::analyse_counted(path, key, bytes)?;
    let facts = ModuleFacts::new(&found.module, found.watched);
    let mut sought = found.sought.iter().filter(|it| it.exists());
    if let Some((cache, name)) = &place
        && sought.all(is_safe)
    {
        // No cache is no trouble.
        let _ = cache.put_facts(name, path, key, &found.sought, &facts);
    }
    Ok(facts)
}

/// Can nobody but the user and root have written this file?
fn is_safe(path: impl AsRef<Path>) -> bool {
    let facts = fs::metadata(path);
    facts.is_ok_and(|it| foreign_file::is_safe(&it))
}

/// What earlier runs prepared of a module or a program, by the name that the monitor has for it.
pub fn prepared(what: &str) -> Option<Vec<u8>> {
    let cache = Cache::find()?;
    let name = prepared_name(what).ok()?;
    cache.get(&name, &format(), Some)
}

/// Keeps it for later runs.
pub fn keep_prepared(what: &str, prepared: &[u8]) {
    if let (Some(cache), Ok(name)) = (Cache::find(), prepared_name(what)) {
        // No cache is no trouble.
        let _ = cache.put(&name, &format(), prepared);
    }
}

/// How a file begins, but for the sum.
fn format() -> Vec<u8> {
    let mut head = Vec::new();
    put_bytes(&mut head, FORMAT.as_bytes());
    head
}

/// Will it take long to get the facts of this file? It is large, and they are not kept, but will be.
pub fn takes_long(file: &ModuleFile) -> bool {
    const LARGE: usize = 16 << 20;
    let bytes = (**file.bytes()).as_ref();
    bytes.len() > LARGE
        && file.is_safe()
        && !Cache::find().is_some_and(|cache| {
            let name = name(file.path(), bytes);
            name.is_ok_and(|name| cache.folder.file(&name).exists())
        })
}

/// A folder for runs that can be kept nowhere else until they are in a profile.
pub fn runs() -> Option<OwnFolder> {
    let cache = Cache::find()?;
    OwnFolder::make(&cache.folder.path().join("runs")).ok()
}

/// The folder, and how many files and bytes are in it; `None` if there can be none.
pub fn extent() -> Option<(PathBuf, usize, u64)> {
    let cache = Cache::find()?;
    let files = cache.files().ok()?;
    let bytes = files.iter().map(|(_, size, _)| size).sum();
    Some((cache.folder.path().to_owned(), files.len(), bytes))
}

/// The folder that files are kept in.
struct Cache {
    folder: OwnFolder,
    limit: u64,
}

impl Cache {
    fn find() -> Option<Self> {
        let absolute = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let around = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Self::open(&around?.join("headcount"), LIMIT)
    }

    /// None if it cannot be made, or if others may write there.
    fn open(folder: &Path, limit: u64) -> Option<Self> {
        let folder = OwnFolder::make(folder).ok()?;
        Some(Self { folder, limit })
    }

    fn facts(&self, name: &str, path: &str, key: &str) -> Option<ModuleFacts> {
        self.get(name, &format(), |body| {
            let begin = check(&body, path, key)?;
            ModuleFacts::from_bytes(path, body, begin).ok()
        })
    }

    fn put_facts(
        &self,
        name: &str,
        path: &str,
        key: &str,
        sought: &[PathBuf],
        facts: &ModuleFacts,
    ) -> io::Result<()> {
        let mut body = Vec::new();
        for text in [path, key] {
            put_bytes(&mut body, text.as_bytes());
        }
        put_number(&mut body, sought.len() as u64);
        for place in sought {
            put_bytes(&mut body, place.as_os_str().as_encoded_bytes());
            put_bytes(&mut body, &identity(place));
        }
        body.extend(facts.to_bytes());
        self.put(name, &format(), &body)
    }

    /// What is kept under this name behind a head, if `read` still believes it.
    fn get<T>(
        &self,
        name: &str,
        head: &[u8],
        read: impl FnOnce(Vec<u8>) -> Option<T>,
    ) -> Option<T> {
        let at = self.folder.file(name);
        let mut options = OpenOptions::new();
        // Whatever lies there, it must not make us wait or lead us elsewhere.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match options.read(true).custom_flags(flags).open(&at) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => {
                let _ = fs::remove_file(&at);
                return None;
            }
        };
        let found = self.body(&file, head).and_then(read);
        match found {
            // Those that were used last are kept longest.
            Some(_) => drop(file.set_modified(SystemTime::now())),
            None => drop(fs::remove_file(&at)),
        }
        found
    }

    /// All bytes of a file but the head, and the sum in front of it, which must be right.
    fn body(&self, mut file: &File, head: &[u8]) -> Option<Vec<u8>> {
        let it = file.metadata().ok()?;
        if !it.is_file() || !foreign_file::is_safe(&it) || it.len() > self.limit {
            return None;
        }
        let mut sum = [0; blake3::OUT_LEN];
        file.read_exact(&mut sum).ok()?;
        let mut found = vec![0; head.len()];
        file.read_exact(&mut found).ok()?;
        let mut body = Vec::with_capacity(usize::try_from(it.len()).ok()?);
        file.read_to_end(&mut body).ok()?;
        (found == head && digest(head, &body) == sum).then_some(body)
    }

    fn put(&self, name: &str, head: &[u8], body: &[u8]) -> io::Result<()> {
        if body.len() as u64 > self.limit / 2 {
            return Ok(());
        }
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let unfinished = format!("{}-{}{UNFINISHED}", std::process::id(), now.as_nanos());
        let unfinished = self.folder.file(&unfinished);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        let written = file
            .set_permissions(fs::Permissions::from_mode(0o600))
            .and_then(|()| file.write_all(digest(head, body).as_bytes()))
            .and_then(|()| file.write_all(head))
            .and_then(|()| file.write_all(body))
            .and_then(|()| fs::rename(&unfinished, self.folder.file(name)));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        // To look at all files takes a while: small ones are looked after now and then.
        let is_small = (body.len() as u64) < self.limit / 256;
        match is_small && !now.subsec_micros().is_multiple_of(16) {
            true => Ok(()),
            false => self.make_room(),
        }
    }

    /// Removes what was used least recently until the rest is within the limit.
    fn make_room(&self) -> io::Result<()> {
        let mut files = self.files()?;
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files {
            if total <= self.limit {
                break;
            }
            let _ = fs::remove_file(path);
            total -= size;
        }
        Ok(())
    }

    /// What is kept: when it was used last, its size, and where it is. Removes what writers that
    /// were killed left behind.
    fn files(&self) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.folder.all())? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(it) = entry.metadata() else {
                continue; // somebody else makes room, too
            };
            let used = it.modified()?;
            if name.ends_with(FACTS) || name.ends_with(PREPARED) {
                files.push((used, it.len(), entry.path()));
            } else if name.ends_with(UNFINISHED)
                && used.elapsed().unwrap_or_default() > Duration::from_secs(3600)
            {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(files)
    }
}

/// What depends on the same things has the same name.
fn name(path: &str, bytes: &[u8]) -> io::Result<String> {
    let file = blake3::hash(bytes);
    name_of(&[file.as_bytes(), path.as_bytes()], FACTS)
}

fn prepared_name(what: &str) -> io::Result<String> {
    name_of(&[what.as_bytes()], PREPARED)
}

fn digest(head: &[u8], body: &[u8]) -> blake3::Hash {
    let mut both = blake3::Hasher::new();
    both.update(head).update(body).finalize()
}

/// A name for what depends on these, and on which headcount this is.
fn name_of(parts: &[&[u8]], end: &str) -> io::Result<String> {
    let mut all = Vec::new();
    parts.iter().for_each(|it| put_bytes(&mut all, it));
    put_bytes(&mut all, &identity(&std::env::current_exe()?));
    put_bytes(&mut all, FORMAT.as_bytes());
    Ok(format!("{}{end}", blake3::hash(&all).to_hex()))
}

/// Where the facts begin in a file, if it is whole and still true.
fn check(body: &[u8], path: &str, key: &str) -> Option<usize> {
    let mut rest = body;
    for wanted in [path, key] {
        if take_bytes(&mut rest)? != wanted.as_bytes() {
            return None;
        }
    }
    for _ in 0..take_number(&mut rest)? {
        let place = take_bytes(&mut rest)?;
        let place = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(place);
        if take_bytes(&mut rest)? != identity(place.as_ref()) {
            return None;
        }
    }
    Some(body.len() - rest.len())
}

/// What tells whether a file is still the one it was; empty if there is none.
fn identity(path: &Path) -> Vec<u8> {
    let mut numbers = Vec::new();
    if let Ok(it) = path.metadata() {
        put_number(&mut numbers, it.dev());
        put_number(&mut numbers, it.ino());
        put_number(&mut numbers, it.size());
        for time in [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()] {
            put_number(&mut numbers, time.cast_unsigned());
        }
    }
    numbers
}

fn put_number(to: &mut Vec<u8>, number: u64) {
    to.extend(number.to_le_bytes());
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend(bytes);
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let (number, rest) = from.split_first_chunk::<8>()?;
    *from = rest;
    Some(u64::from_le_bytes(*number))
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::{Block, Function, LinkAddr, Module, Refusal, Span};
    use std::os::unix::fs::symlink;

    fn sample(path: &str) -> ModuleFacts {
        let block = Block {
            address: LinkAddr(0x1000),
            code: vec![Span {
                address: LinkAddr(0x1000),
                bytes: vec![0x90; 100],
            }],
            instructions: 100,
            ..Block::default()
        };
        let function = Function {
            name: "main".into(),
            address: LinkAddr(0x1000),
            source: None,
            blocks: vec![block],
            edges: Vec::new(),
            counters: 1,
            compiled: Default::default(),
        };
        let module = Module {
            path: path.into(),
            build_id: "elf-1".into(),
            files: vec!["main.c".into()],
            functions: vec![function],
            refusals: vec![Refusal {
                subject: path.into(),
                file: String::new(),
                line: 0,
                reason: "it is odd".into(),
            }],
        };
        ModuleFacts::new(&module, vec![0x1000, 0x2000])
    }

    fn cache(folder: &Path) -> Cache {
        Cache::open(&folder.join("headcount"), LIMIT).expect("a folder of ours")
    }

    #[test]
    fn what_is_kept_is_found_again_unless_something_differs() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let facts = sample("/bin/it");
        let debug = folder.path().join("it.debug");
        let again = || {
            let sought = std::slice::from_ref(&debug);
            cache
                .put_facts("a.facts", "/bin/it", "gnu-1", sought, &facts)
                .unwrap();
        };
        assert!(cache.facts("a.facts", "/bin/it", "gnu-1").is_none());
        again();
        let found = cache
            .facts("a.facts", "/bin/it", "gnu-1")
            .expect("it is there");
        assert_eq!(found.module().unwrap(), facts.module().unwrap());
        assert_eq!(
            (&found.watched, &found.files),
            (&facts.watched, &facts.files)
        );
        let ranges = [0x1010..0x1011, 0x5000..0x6000];
        assert_eq!(found.functions_in(&ranges[..1]), [0]);
        assert!(found.functions_in(&ranges[1..]).is_empty());
        for (path, key) in [("/bin/other", "gnu-1"), ("/bin/it", "gnu-2")] {
            assert!(cache.facts("a.facts", path, key).is_none());
            assert!(!cache.folder.path().join("a.facts").exists());
            again();
        }
        fs::write(&debug, "somebody installed debug information").unwrap();
        assert!(cache.facts("a.facts", "/bin/it", "gnu-1").is_none());
        again();
        assert!(cache.facts("a.facts", "/bin/it", "gnu-1").is_some());
    }

    #[test]
    fn damaged_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let at = cache.folder.path().join("a.facts");
        let put = || {
            let facts = sample("/bin/it");
            cache
                .put_facts("a.facts", "/bin/it", "gnu-1", &[], &facts)
                .unwrap();
        };
        put();
        let whole = fs::read(&at).unwrap();
        for length in 0..whole.len() {
            fs::write(&at, &whole[..length]).unwrap();
            assert!(
                cache.facts("a.facts", "/bin/it", "gnu-1").is_none(),
                "{length}"
            );
            assert!(!at.exists());
        }
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 8);
            fs::write(&at, bytes).unwrap();
            assert!(
                cache.facts("a.facts", "/bin/it", "gnu-1").is_none(),
                "{place}"
            );
        }
        // The digest right, the rest not: still no panic.
        for place in blake3::OUT_LEN..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x81;
            let sum = blake3::hash(&bytes[blake3::OUT_LEN..]);
            bytes[..blake3::OUT_LEN].copy_from_slice(sum.as_bytes());
            fs::write(&at, bytes).unwrap();
            let found = cache.facts("a.facts", "/bin/it", "gnu-1");
            let _ = found.map(|it| it.module());
        }
    }

    #[test]
    fn what_others_may_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let at = cache.folder.path().join("a.facts");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let facts = sample("/bin/it");
        cache
            .put_facts("a.facts", "/bin/it", "gnu-1", &[], &facts)
            .unwrap();
        assert_eq!(at.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(
            cache.folder.path().metadata().unwrap().mode() & 0o777,
            0o700
        );
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&at, &elsewhere).unwrap();
        symlink(&elsewhere, &at).unwrap();
        assert!(cache.facts("a.facts", "/bin/it", "gnu-1").is_none());
        assert!(elsewhere.exists());
        fs::rename(&elsewhere, &at).unwrap();
        mode(&at, 0o666);
        assert!(cache.facts("a.facts", "/bin/it", "gnu-1").is_none());
        mode(cache.folder.path(), 0o777);
        assert!(Cache::open(cache.folder.path(), LIMIT).is_none());
        let link = folder.path().join("link");
        symlink(folder.path(), &link).unwrap();
        assert!(Cache::open(&link, LIMIT).is_none());
    }

    #[test]
    fn what_was_not_used_for_long_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let facts = sample("/bin/it");
        let put = |cache: &Cache, number: u64| {
            let name = format!("{number}.facts");
            cache
                .put_facts(&name, "/bin/it", "gnu-1", &[], &facts)
                .unwrap();
            // Apart in time, as they would be.
            if let Ok(file) = File::open(cache.folder.path().join(&name)) {
                let at = SystemTime::now() - Duration::from_secs(100 - number);
                file.set_modified(at).unwrap();
            }
        };
        let mut cache = cache(folder.path());
        put(&cache, 0);
        let size = cache
            .folder
            .path()
            .join("0.facts")
            .metadata()
            .unwrap()
            .len();
        cache.limit = 4 * size + size / 2;
        (1..4).for_each(|number| put(&cache, number));
        assert!(cache.facts("0.facts", "/bin/it", "gnu-1").is_some());
        put(&cache, 4);
        let there = |number: u64| cache.folder.path().join(format!("{number}.facts")).exists();
        assert_eq!([0, 1, 2, 3, 4].map(there), [true, false, true, true, true]);
    }
}
