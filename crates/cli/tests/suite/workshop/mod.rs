//! A folder to build and count programs in.

mod counted;
pub mod started;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The program under test.
pub const HEADCOUNT: &str = env!("CARGO_BIN_EXE_headcount");

/// Calls `helper` a hundred times.
pub const MAIN_C: &str = "\
#include <stdio.h>
int helper(int);
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += helper(i);
    printf(\"%d\\n\", sum);
    return 0;
}
";

/// Takes one way 34 times of a hundred, and the other 66 times.
pub const HELPER_C: &str = "\
int helper(int x)
{
    if (x % 3 == 0)
        return 1;
    return 2;
}
";

/// What the two print.
pub const ANSWER: &str = "166\n";

/// A folder, gone in the end.
pub struct Workshop {
    folder: TempDir,
    cache: PathBuf,
}

/// What a program said, and its status.
#[derive(Debug)]
pub struct Said {
    pub stdout: String,
    pub stderr: String,
    pub status: Option<i32>,
}

/// A line of `report --by function`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    pub calls: u64,
    pub executed: u64,
    pub instructions: u64,
    pub never: u64,
}

impl Workshop {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            cache: shared_cache().to_owned(),
        }
    }

    /// With a cache that it shares with no other, in `.cache`.
    pub fn with_own_cache(mut self) -> Self {
        self.cache = self.path(".cache");
        self
    }

    /// With `main.c` and `helper.c`.
    pub fn with_sources() -> Self {
        let shop = Self::new();
        shop.write("main.c", MAIN_C);
        shop.write("helper.c", HELPER_C);
        shop
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    /// A command that runs in the folder.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env("LC_ALL", "C")
            .env("XDG_CACHE_HOME", &self.cache)
            .env_remove("HEADCOUNT_DIR")
            .env_remove("CC")
            .env_remove("CPP")
            .env_remove("MAKEFLAGS");
        command
    }

    /// Runs a program of the folder, or of the system.
    pub fn run(&self, words: &[&str]) -> Said {
        let here = self.path(words[0]);
        let program = match here.is_file() {
            true => here.as_os_str(),
            false => OsStr::new(words[0]),
        };
        said(self.command(program).args(&words[1..]))
    }

    /// Runs something that must succeed; answers with what it printed.
    pub fn must(&self, words: &[&str]) -> String {
        let said = self.run(words);
        assert_eq!(said.status, Some(0), "{words:?}: {said:?}");
        said.stdout
    }

    pub fn headcount(&self, words: &[&str]) -> Said {
        said(self.command(HEADCOUNT).args(words))
    }

    /// Compiles with `headcount cc`, which must succeed without a word.
    pub fn cc(&self, words: &[&str]) {
        let said = self.try_cc(words);
        let quiet = (said.stdout.as_str(), said.stderr.as_str(), said.status);
        assert_eq!(quiet, ("", "", Some(0)), "{words:?}");
    }

    pub fn try_cc(&self, words: &[&str]) -> Said {
        self.headcount(&[&["cc", "--"], words].concat())
    }

    /// Runs a program that prints [`ANSWER`], and answers with its functions.
    pub fn count(&self, program: &str) -> BTreeMap<String, Function> {
        self.forget();
        assert_eq!(self.must(&[program]), ANSWER);
        self.functions()
    }

    /// Removes profile and counter files.
    pub fn forget(&self) {
        let _ = fs::remove_file(self.path("headcount.db"));
        let _ = fs::remove_dir_all(self.path("headcount.counts"));
    }

    /// What waits to be collected: counter files, and folders of runs.
    pub fn counter_files(&self) -> Vec<PathBuf> {
        let mut files = self.kept();
        files.retain(|path| path.extension() != Some(OsStr::new("module")));
        files
    }

    /// The copies of modules that explain counter files.
    pub fn kept_modules(&self) -> Vec<PathBuf> {
        let mut files = self.kept();
        files.retain(|path| path.extension() == Some(OsStr::new("module")));
        files
    }

    fn kept(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("headcount.counts"));
        let entries = entries.into_iter().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    pub fn only_counter_file(&self) -> PathBuf {
        let files = self.counter_files();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    /// Functions by name, from the last run; what lies about is collected.
    pub fn functions(&self) -> BTreeMap<String, Function> {
        self.functions_of(&[])
    }

    pub fn functions_of(&self, more: &[&str]) -> BTreeMap<String, Function> {
        let said = self.headcount(&[&["report", "--format", "csv"], more].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
        let mut rows = said.stdout.lines();
        let columns = "module,function,file,line,calls,executed,instructions,never";
        let of_source = ",statements_executed,statements,statements_never";
        let found = rows.next().unwrap();
        let has_source = found == format!("{columns}{of_source}");
        assert!(found == columns || has_source, "{found}");
        rows.map(|row| {
            // Names with commas are quoted; numbers stand at the end.
            let row = match row.strip_suffix(",,,") {
                Some(code) if has_source => code.to_owned(),
                // What is counted of source text has columns of its own.
                _ => row.replace(",,,,", ","),
            };
            let mut fields = row.rsplitn(5, ',');
            let mut number = || fields.next().unwrap().parse().unwrap();
            let (never, instructions, executed, calls) = (number(), number(), number(), number());
            let name = fields.next().unwrap().split(',').nth(1).unwrap();
            let function = Function {
                calls,
                executed,
                instructions,
                never,
            };
            (name.to_owned(), function)
        })
        .collect()
    }

    /// Counts of the lines of a file.
    pub fn lines(&self, file: &str) -> BTreeMap<u32, u64> {
        let words = ["report", "--by", "line", "--only", file, "--format", "csv"];
        let said = self.headcount(&words);
        assert_eq!(said.status, Some(0), "{said:?}");
        let mut rows = said.stdout.lines();
        let columns = rows.next().unwrap().split(',').count();
        rows.filter_map(|row| {
            let fields: Vec<&str> = row.rsplitn(columns, ',').collect();
            let field = |place: usize| fields[columns - 1 - place];
            // What is unknown has no count.
            Some((field(1).parse().unwrap(), field(2).parse().ok()?))
        })
        .collect()
    }

    /// What the text report says behind `Not counted:`.
    pub fn refusals(&self) -> String {
        let said = self.headcount(&["report"]);
        let (_, refusals) = said.stdout.split_once("Not counted:").unwrap();
        refusals.split("\n\n").next().unwrap().trim().to_owned()
    }
}

/// Whether there is time for every program at every level, by every route.
pub fn is_thorough() -> bool {
    std::env::var_os("HEADCOUNT_THOROUGH").is_some()
}

/// A cache for all tests of this run, so that the C library is read once: empty in the beginning,
/// and not that of whoever runs the tests.
pub fn shared_cache() -> &'static Path {
    static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite.cache");
        let _ = fs::remove_dir_all(&cache);
        cache
    });
    &CACHE
}

/// Runs a command to its end.
pub fn said(command: &mut Command) -> Said {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    output.into()
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            status: output.status.code(),
        }
    }
}

/// Whether the tests may become another user; if not, says which test does without.
pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !is_root {
        let test = std::thread::current();
        let test = test.name().unwrap_or("?");
        eprintln!("skipped in {test}: only root can become another user");
    }
    is_root
}

/// Whether a tool is there; if not, says which test does without.
pub fn have(tool: &str) -> bool {
    let found = match tool.contains('/') {
        true => Path::new(tool).exists(),
        false => std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|at| at.join(tool).exists())),
    };
    if !found {
        let test = std::thread::current();
        eprintln!("skipped in {}: no {tool} here", test.name().unwrap_or("?"));
    }
    found
}

/// The compilers for C that are installed.
pub fn c_compilers() -> Vec<&'static str> {
    let all = ["gcc", "clang", "clang-14", "clang-19"];
    all.into_iter().filter(|compiler| have(compiler)).collect()
}

/// The C programs that state their own answer, but for those whose only trouble is optimisation.
pub fn c_programs() -> Vec<PathBuf> {
    let mut all = headcount_oracle::stated::programs();
    all.retain(|path| path.extension().is_some_and(|it| it == "c"));
    all.retain(|path| !fs::read_to_string(path).unwrap().contains("//~ optimised:"));
    all
}
