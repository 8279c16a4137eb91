//! The kinds of files that headcount reads, good ones of each, and who reads them.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// One kind.
pub struct Kind {
    pub name: &'static str,
    /// A good one, with all that belongs to it.
    pub folder: PathBuf,
    /// Which files of a copy of the folder may be damaged.
    pub files: fn(&Path) -> Result<Vec<PathBuf>>,
    /// What of a file must stay: the code of a program, which runs.
    pub fixed: fn(&[u8]) -> Range<usize>,
    pub verbs: &'static [&'static [&'static str]],
}

/// (It includes nothing: what the compiler reads is not our affair.)
const SOURCE: &str = "\
int puts(const char *);
static int odd(int x) { return x % 2; }
int main(int count, char **words)
{
    int sum = 0;
    for (int i = 0; i < 10; i++)
        if (odd(i + count))
            sum += i;
    switch (sum) {
    case 1: puts(words[0]); break;
    case 20: case 25: break;
    default: return 1;
    }
    return 0;
}
";

/// Values of all kinds: numbers, texts, callers and where control went.
const VALUES: &str = "--tally 'it!main(arg1) by caller' --tally 'it!main(str([arg2]))' --targets";

/// Makes a good one of each kind.
pub fn all(headcount: &Path, work: &Path) -> Result<Vec<Kind>> {
    let nothing: fn(&[u8]) -> Range<usize> = |_| 0..0;
    let kinds = [
        Kind {
            name: "program",
            folder: work.join("program"),
            files: |folder| Ok(vec![folder.join("it")]),
            fixed: loaded,
            verbs: &[
                &["run", "-q", "-o", "it.db", "--", "./it"],
                &[
                    "run",
                    "-q",
                    "--engine",
                    "breakpoint",
                    "-o",
                    "it.db",
                    "--",
                    "./it",
                ],
                &["annotate", "-i", "it.db"],
                &["html", "-i", "it.db", "-o", "it.html"],
                &[
                    "export",
                    "-i",
                    "it.db",
                    "--format",
                    "callgrind",
                    "-o",
                    "it.callgrind",
                ],
            ],
        },
        Kind {
            name: "linked",
            folder: work.join("linked"),
            files: |folder| Ok(vec![folder.join("it"), folder.join("it.debug")]),
            fixed: loaded,
            verbs: &[&["run", "-q", "-o", "it.db", "--", "./it"]],
        },
        Kind {
            name: "built",
            folder: work.join("built"),
            files: |folder| Ok(vec![folder.join("it")]),
            fixed: nothing,
            verbs: &[&["collect"], &["report"]],
        },
        Kind {
            name: "counters",
            folder: work.join("counters"),
            files: |folder| below(&folder.join("headcount.counts")),
            fixed: nothing,
            verbs: &[&["report"], &["collect"]],
        },
        Kind {
            name: "texts",
            folder: work.join("texts"),
            files: |folder| below(&folder.join("headcount.counts")),
            fixed: nothing,
            verbs: &[&["report"], &["collect"]],
        },
        Kind {
            name: "journal",
            folder: work.join("journal"),
            files: |folder| below(&folder.join("headcount.counts")),
            fixed: nothing,
            verbs: &[&["report"], &["collect"], &["doctor"]],
        },
        Kind {
            name: "values",
            folder: work.join("values"),
            files: |folder| below(&folder.join("headcount.counts")),
            fixed: nothing,
            verbs: &[&["report", "--by", "value"], &["collect"]],
        },
        Kind {
            name: "profile",
            folder: work.join("profile"),
            files: |folder| Ok(vec![folder.join("headcount.db")]),
            fixed: nothing,
            verbs: &[
                &["report", "--by", "line"],
                &["report", "--by", "value"],
                &["runs"],
                &["annotate"],
                &["html", "-o", "it.html"],
                &["export", "--format", "lcov", "-o", "it.info"],
                &["export", "--format", "callgrind", "-o", "it.callgrind"],
                &["diff", "headcount.db", "headcount.db"],
                &["merge", "-o", "more.db", "headcount.db"],
            ],
        },
        Kind {
            name: "cache",
            folder: work.join("cache"),
            files: |folder| below(&folder.join("cache")),
            fixed: nothing,
            verbs: &[&["run", "-q", "-o", "it.db", "--", "./it"]],
        },
        Kind {
            name: "source",
            folder: work.join("source"),
            files: |folder| Ok(vec![folder.join("it.c")]),
            fixed: nothing,
            verbs: &[&["csource", "it.c", "-o", "counted.c"]],
        },
    ];
    for kind in &kinds {
        make(kind, headcount).with_context(|| format!("making a {}", kind.name))?;
    }
    Ok(kinds.into())
}

fn make(kind: &Kind, headcount: &Path) -> Result<()> {
    let folder = &kind.folder;
    fs::create_dir(folder)?;
    fs::write(folder.join("it.c"), SOURCE)?;
    let headcount = headcount.display();
    // What names may lead to.
    let pipe = "mkfifo pipe; ln -s loop loop";
    let plain = "gcc -g -O1 -o it it.c";
    let counted = format!("'{headcount}' cc -- gcc -g -o it it.c");
    let script = match kind.name {
        "program" => plain.to_owned(),
        // With the two kinds of links that lead to debug information elsewhere.
        "linked" => format!(
            "{plain} -Wl,--build-id=none && objcopy --only-keep-debug it it.debug && strip -g it && \
             printf 'shared.debug\\0abcdefghijklmnopqrst' > alt && \
             objcopy --add-gnu-debuglink=it.debug --add-section .gnu_debugaltlink=alt it"
        ),
        "built" | "counters" => format!("{counted} && ./it"),
        "texts" => {
            format!("'{headcount}' csource it.c -o counted.c && gcc -o it counted.c && ./it")
        }
        // Killed with its program, it leaves all that it has.
        "journal" => format!(
            "gcc -g -o it it.c && printf './it; kill -9 $PPID; sleep 5' > kill.sh && \
             {{ '{headcount}' run -q -- sh kill.sh || :; }}"
        ),
        "values" => format!(
            "gcc -g -o it it.c && printf './it; kill -9 $PPID; sleep 5' > kill.sh && \
             {{ '{headcount}' run -q {VALUES} -- sh kill.sh || :; }}"
        ),
        "profile" => format!("{plain} && '{headcount}' run -q {VALUES} -- ./it"),
        "cache" => format!("{plain} && '{headcount}' run -q -- ./it"),
        _ => String::new(),
    };
    let status = Command::new("sh")
        .args(["-euc", &format!("{script}\n{pipe}")])
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env_remove("HEADCOUNT_DIR")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "{status}");
    ensure!(!(kind.files)(folder)?.is_empty(), "nothing is there");
    Ok(())
}

/// All regular files below a folder.
fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()? {
            it if it.is_dir() => files.extend(below(&entry.path())?),
            // Windows are large, and mean nothing but numbers.
            it if it.is_file() && entry.metadata()?.len() < 1 << 24 => files.push(entry.path()),
            _ => {}
        }
    }
    files.sort();
    Ok(files)
}

/// What of a program is loaded: up to its first section that is not.
fn loaded(file: &[u8]) -> Range<usize> {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap_or_default());
    let (headers, count) = (word(32) as usize, u16::from_le_bytes([file[56], file[57]]));
    let segments = (0..usize::from(count)).map(|it| headers + 56 * it);
    let loaded = segments.filter(|at| file[*at] == 1);
    let end = loaded
        .map(|at| (word(at + 8) + word(at + 32)) as usize)
        .max();
    0..end.unwrap_or(0)
}
