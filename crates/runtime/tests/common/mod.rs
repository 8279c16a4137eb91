//! Builds a small program with the runtime in it, runs it, and reads its counter files.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::ffi::OsStr;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

use headcount_wire::{self as wire, FileHeader, SlotHeader};

/// A folder of its own for a test; removed at the end unless the test failed.
pub struct Workshop {
    pub folder: PathBuf,
}

impl Workshop {
    pub fn new(name: &str) -> Workshop {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("headcount-{name}-{}-{number}", std::process::id());
        let folder = env::temp_dir().join(name);
        _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Workshop { folder }
    }

    /// Compiles, counted, and links: `source` is a file of `tests/programs`.
    pub fn build(&self, compiler: &str, source: &str, flags: &[&str]) -> Built<'_> {
        let object = self.object(compiler, source, flags);
        let name = Path::new(source)
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        self.link(compiler, &name, &[&object], flags)
    }

    /// An object file that carries the runtime.
    pub fn object(&self, compiler: &str, source: &str, flags: &[&str]) -> PathBuf {
        let source = programs().join(source);
        let text = self
            .folder
            .join(source.file_name().unwrap())
            .with_extension("s");
        let mut compile = Command::new(compiler);
        compile
            .args(["-O2", "-S", "-o"])
            .arg(&text)
            .arg(&source)
            .args(flags);
        succeed(&mut compile);
        let inner = fs::read_to_string(&text).unwrap();
        let (opening, runtime) = (headcount_runtime::OPENING, headcount_runtime::ASSEMBLY);
        fs::write(&text, format!("{opening}{inner}{runtime}")).unwrap();
        let object = text.with_extension("o");
        succeed(
            Command::new(compiler)
                .arg("-c")
                .arg("-o")
                .arg(&object)
                .arg(&text),
        );
        object
    }

    pub fn link(
        &self,
        compiler: &str,
        name: &str,
        objects: &[impl AsRef<OsStr>],
        flags: &[&str],
    ) -> Built<'_> {
        let program = self.folder.join(name);
        let mut link = Command::new(compiler);
        link.arg("-o").arg(&program).args(objects).args(flags);
        succeed(&mut link);
        Built {
            workshop: self,
            program,
        }
    }

    /// The counter files in the default folder, in the order of their names.
    pub fn files(&self) -> Vec<CounterFile> {
        files_in(&self.folder.join(wire::DEFAULT_FOLDER))
    }

    pub fn only_file(&self) -> CounterFile {
        let mut files = self.files();
        assert_eq!(files.len(), 1, "counter files in {}", self.folder.display());
        files.remove(0)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            _ = fs::remove_dir_all(&self.folder);
        }
    }
}

pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

pub fn succeed(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

pub fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

pub struct Built<'a> {
    workshop: &'a Workshop,
    pub program: PathBuf,
}

impl Built<'_> {
    pub fn command(&self) -> Command {
        self.command_under(&[])
    }

    /// The program, started by another one.
    pub fn command_under(&self, wrapper: &[&str]) -> Command {
        let mut words = wrapper
            .iter()
            .map(OsStr::new)
            .chain([self.program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .current_dir(&self.workshop.folder)
            .env_remove(wire::FOLDER_VARIABLE);
        command
    }

    pub fn run(&self) -> Output {
        succeed(&mut self.command())
    }
}

pub fn files_in(folder: &Path) -> Vec<CounterFile> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_counters = |path: &PathBuf| path.to_string_lossy().ends_with(wire::FILE_SUFFIX);
    let mut paths: Vec<PathBuf> = paths.filter(is_counters).collect();
    paths.sort();
    paths.into_iter().map(CounterFile::read).collect()
}

/// A counter file, as `headcount_wire` describes it.
#[derive(Debug)]
pub struct CounterFile {
    pub path: PathBuf,
    pub failures: u32,
    pub fingerprint: u64,
    pub counters: u64,
    pub slots_claimed: u32,
    pub pid: u32,
    pub module: String,
    pub command: String,
    pub slots: Vec<Slot>,
}

#[derive(Debug)]
pub struct Slot {
    pub pid: u32,
    pub tid: u32,
    pub state: u32,
    pub counts: Vec<u64>,
}

impl CounterFile {
    pub fn read(path: PathBuf) -> CounterFile {
        let bytes = fs::read(&path).unwrap();
        CounterFile {
            path,
            ..CounterFile::parse(&bytes)
        }
    }

    pub fn parse(bytes: &[u8]) -> CounterFile {
        assert_eq!(word(bytes, offset_of!(FileHeader, magic)), wire::FILE_MAGIC);
        assert_eq!(half(bytes, offset_of!(FileHeader, version)), wire::VERSION);
        let counters = word(bytes, offset_of!(FileHeader, counters));
        let stride = word(bytes, offset_of!(FileHeader, stride));
        assert_eq!(stride, wire::stride(counters));
        let text = |at: usize, length: usize| {
            let length = half(bytes, length) as usize;
            String::from_utf8_lossy(&bytes[at..at + length]).into_owned()
        };
        CounterFile {
            path: PathBuf::new(),
            failures: half(bytes, offset_of!(FileHeader, failures)),
            fingerprint: word(bytes, offset_of!(FileHeader, fingerprint)),
            counters,
            slots_claimed: half(bytes, offset_of!(FileHeader, slots)),
            pid: half(bytes, offset_of!(FileHeader, pid)),
            module: text(
                offset_of!(FileHeader, path),
                offset_of!(FileHeader, path_len),
            ),
            command: text(
                offset_of!(FileHeader, command),
                offset_of!(FileHeader, command_len),
            ),
            slots: bytes[wire::HEADER_BYTES..]
                .chunks(stride as usize)
                .filter_map(Slot::parse)
                .collect(),
        }
    }

    /// The reading of a counter: the sum over all slots.
    pub fn total(&self, counter: usize) -> u64 {
        self.slots.iter().map(|slot| slot.counts[counter]).sum()
    }

    /// The reading of a counter in one process.
    pub fn total_of(&self, pid: u32, counter: usize) -> u64 {
        let of_process = self.slots.iter().filter(|slot| slot.pid == pid);
        of_process.map(|slot| slot.counts[counter]).sum()
    }
}

impl Slot {
    pub fn parse(bytes: &[u8]) -> Option<Slot> {
        if bytes.len() < wire::SLOT_HEADER_BYTES
            || word(bytes, offset_of!(SlotHeader, magic)) != wire::SLOT_MAGIC
        {
            return None;
        }
        let counters = word(bytes, offset_of!(SlotHeader, counters)) as usize;
        let counts = &bytes[wire::SLOT_HEADER_BYTES..][..counters * 8];
        Some(Slot {
            pid: half(bytes, offset_of!(SlotHeader, pid)),
            tid: half(bytes, offset_of!(SlotHeader, tid)),
            state: half(bytes, offset_of!(SlotHeader, state)),
            counts: counts.chunks_exact(8).map(|count| word(count, 0)).collect(),
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}
