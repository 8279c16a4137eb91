//! Which real programs do we build, and of which files?
//!
//! Libraries and interpreters from crates, each driven by a small program of
//! ours (`programs/`) that takes one number: how much to do. Where a library
//! asks the clock or its own addresses, it is told not to: the same input must
//! take the same path every time, whoever watches.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::program::{Language, Program};
use crate::registry::{self, Sources};

/// How much a program is given to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Amount {
    /// Enough to reach its corners; callgrind runs it in seconds.
    Check,
    /// A twenty-fifth of that, for counters that stop at every block.
    Little,
    /// About a second of native time.
    Measure,
    /// About a tenth of that, for tools that take fifty times as long.
    Brief,
}

impl Amount {
    fn pick(self, check: u32, measure: u32) -> String {
        match self {
            Amount::Check => check.to_string(),
            Amount::Little => check.div_ceil(25).to_string(),
            Amount::Measure => measure.to_string(),
            Amount::Brief => (measure / 10).to_string(),
        }
    }
}

pub fn programs(sources: &Sources, amount: Amount) -> Result<Vec<Program>> {
    Ok(vec![
        bzip2(sources, amount)?,
        lua(sources, amount)?,
        lz4(sources, amount)?,
        sqlite(sources, amount)?,
        zlib(sources, amount)?,
        zstd(sources, amount)?,
    ])
}

/// Programs that are ours altogether, for what the others do not have: C++ with
/// exceptions and virtual calls, two threads in one function, Rust.
pub fn our_own(amount: Amount) -> Vec<Program> {
    let program = |name: &str, language, source, measure, libraries: &[&str]| Program {
        name: name.to_owned(),
        language,
        sources: vec![ours(source)],
        flags: Vec::new(),
        libraries: libraries
            .iter()
            .map(|library| (*library).to_owned())
            .collect(),
        arguments: vec![amount.pick(1, measure)],
    };
    vec![
        program("evaluator", Language::Cxx, "evaluator.cc", 700, &[]),
        program("threads", Language::C, "threads.c", 100, &["-lpthread"]),
        program("json", Language::Rust, "json.rs", 2500, &[]),
    ]
}

/// Programs in which a line is seldom one piece of code: C++ with templates, lambdas and lazy ranges,
/// and crates in Rust. Those are built by cargo: their `libraries` are dependencies of a manifest.
pub fn of_many_pieces(amount: Amount) -> Vec<Program> {
    let program = |name: &str, language, source, check, measure| Program {
        name: name.to_owned(),
        language,
        sources: vec![ours(source)],
        flags: Vec::new(),
        libraries: Vec::new(),
        arguments: vec![amount.pick(check, measure)],
    };
    let mut catalogue = program("catalogue", Language::Cxx, "catalogue.cc", 5, 1000);
    catalogue.flags.push("-std=c++17".to_owned());
    let mut deflate = program("miniz_oxide", Language::Rust, "deflate.rs", 20, 1000);
    deflate.libraries.push(registry::dependency("miniz_oxide"));
    let mut demangle = program("rustc-demangle", Language::Rust, "demangle.rs", 20, 5000);
    demangle
        .libraries
        .push(registry::dependency("rustc-demangle"));
    vec![catalogue, deflate, demangle]
}

fn bzip2(sources: &Sources, amount: Amount) -> Result<Program> {
    let folder = sources.folder("bzip2-sys")?.join("bzip2-1.0.8");
    let parts = [
        "blocksort",
        "bzlib",
        "compress",
        "crctable",
        "decompress",
        "huffman",
        "randtable",
    ];
    Ok(Program {
        name: "bzip2".to_owned(),
        language: Language::C,
        sources: with_driver("bzip2.c", named(&folder, &parts)),
        flags: vec!["-DBZ_NO_STDIO".to_owned(), include(&folder)],
        libraries: vec![],
        arguments: vec![amount.pick(150, 2800)],
    })
}

fn lua(sources: &Sources, amount: Amount) -> Result<Program> {
    let folder = sources.folder("lua-src")?.join("lua-5.4.9");
    let script = ours("lua.lua").display().to_string();
    Ok(Program {
        name: "lua".to_owned(),
        language: Language::C,
        sources: with_driver("lua.c", all_c(&folder)?),
        flags: vec![
            "-Dluai_makeseed(L)=42u".to_owned(),
            "-Dl_randomizePivot()=0u".to_owned(),
            // Else its cache of strings is looked up by address.
            "-DSTRCACHE_N=1".to_owned(),
            "-DSTRCACHE_M=1".to_owned(),
            "-DLUA_USE_POSIX".to_owned(),
            include(&folder),
        ],
        libraries: vec!["-lm".to_owned()],
        arguments: vec![script, amount.pick(3, 250)],
    })
}

fn lz4(sources: &Sources, amount: Amount) -> Result<Program> {
    let folder = sources.folder("lz4-sys")?.join("liblz4/lib");
    Ok(Program {
        name: "lz4".to_owned(),
        language: Language::C,
        // Not lz4.c: gcov's files have the names of the sources, without folders.
        sources: with_driver("lz4_driver.c", named(&folder, &["lz4", "lz4hc"])),
        flags: vec![include(&folder)],
        libraries: vec![],
        arguments: vec![amount.pick(60, 700)],
    })
}

fn sqlite(sources: &Sources, amount: Amount) -> Result<Program> {
    let folder = sources.folder("libsqlite3-sys")?.join("sqlite3");
    Ok(Program {
        name: "sqlite".to_owned(),
        language: Language::C,
        sources: with_driver("sqlite.c", named(&folder, &["sqlite3"])),
        flags: vec![
            "-DSQLITE_THREADSAFE=0".to_owned(),
            "-DSQLITE_OMIT_LOAD_EXTENSION".to_owned(),
            include(&folder),
        ],
        libraries: vec!["-lm".to_owned()],
        arguments: vec![amount.pick(5, 500)],
    })
}

fn zlib(sources: &Sources, amount: Amount) -> Result<Program> {
    let folder = sources.folder("libz-sys")?.join("src/zlib");
    let parts = [
        "adler32", "compress", "crc32", "deflate", "inffast", "inflate", "inftrees", "trees",
        "uncompr", "zutil",
    ];
    Ok(Program {
        name: "zlib".to_owned(),
        language: Language::C,
        sources: with_driver("zlib.c", named(&folder, &parts)),
        flags: vec![include(&folder)],
        libraries: vec![],
        arguments: vec![amount.pick(100, 1200)],
    })
}

/// No assembly and no choice by processor: valgrind's processor is another.
fn zstd(sources: &Sources, amount: Amount) -> Result<Program> {
    let folder = sources.folder("zstd-sys")?.join("zstd/lib");
    let mut files = Vec::new();
    for part in ["common", "compress", "decompress"] {
        files.extend(all_c(&folder.join(part))?);
    }
    Ok(Program {
        name: "zstd".to_owned(),
        language: Language::C,
        sources: with_driver("zstd.c", files),
        flags: vec![
            "-DZSTD_DISABLE_ASM=1".to_owned(),
            "-DDYNAMIC_BMI2=0".to_owned(),
            include(&folder),
        ],
        libraries: vec![],
        arguments: vec![amount.pick(100, 1200)],
    })
}

/// A file of `programs/`.
pub fn ours(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("programs")
        .join(name)
}

fn with_driver(driver: &str, files: Vec<PathBuf>) -> Vec<PathBuf> {
    std::iter::once(ours(driver)).chain(files).collect()
}

fn named(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    names
        .iter()
        .map(|name| folder.join(format!("{name}.c")))
        .collect()
}

fn all_c(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    let mut sources: Vec<PathBuf> = paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "c"))
        .collect();
    sources.sort();
    Ok(sources)
}

fn include(folder: &Path) -> String {
    format!("-I{}", folder.display())
}
