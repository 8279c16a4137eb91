//! What does a test program say about itself?
//!
//! A program in `tests/programs` states how often its lines run (at `-O0`), in the margin:
//!
//! ```c
//! //~ args: 3 2 3
//! int main(int argc, char **argv) {       //~ 1
//!     for (int i = 1; i < argc; i++)
//!         use(argv[i]);                   //~ 3
//! }
//! ```
//!
//! and how it is built and run, in lines of its own:
//!
//! | Directive | Meaning |
//! | --- | --- |
//! | `routes: asm patch` | the routes that must agree; none given: all |
//! | `args: ...` | its arguments |
//! | `flags: ...` | more flags for the compiler, after `-g -O0` |
//! | `optimised: -O2, -O3 -flto` | ways to optimise it; the numbers hold for all of them |
//! | `status: 3` | its exit status, or 128 + signal; 0 unless stated |
//! | `calls: f 3` | function `f` (the linker's name) is called three times |
//! | `unstepped: why` | stepping would change what it does; its own word is all there is |
//! | `varies: f` | how many instructions `f` executes is up to the scheduler |
//! | `asm-uncertain: f` | it dies between two instructions of `f`: assembly cannot tell which |
//! | `asm-refuses: f` | the assembly route counts `f`, but not all of its instructions |
//!
//! The mark is `//~` in C and C++, `#~` in assembler and `!~` in Fortran. A line without a number
//! states nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The programs that state their own answer.
pub fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let folder = folder.canonicalize().expect("the folder of test programs");
    let entries = folder.read_dir().expect("it can be read");
    let mut paths: Vec<PathBuf> = entries.map(|it| it.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// The statements of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// The routes that must agree; empty: all.
    pub routes: Vec<String>,
    /// The oracle cannot step through it without changing what it does.
    pub unstepped: bool,
    /// The program's arguments.
    pub args: Vec<String>,
    /// More flags for the compiler.
    pub flags: Vec<String>,
    /// The flags of every way to optimise it.
    pub optimised: Vec<Vec<String>>,
    /// The exit status, or 128 + signal.
    pub status: i32,
    /// How often lines run.
    pub lines: BTreeMap<u32, u64>,
    /// How often functions are called.
    pub calls: Vec<(String, u64)>,
    /// Functions that do not execute the same number of instructions in every run.
    pub varies: Vec<String>,
    /// Functions in which the program dies between two instructions of a block.
    pub asm_uncertain: Vec<String>,
    /// Functions with instructions that the assembly route does not count.
    pub asm_refuses: Vec<String>,
}

/// A statement that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Senseless {
    /// The line it is on.
    pub line: u32,
    /// What it says.
    pub text: String,
}

impl fmt::Display for Senseless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: what does `{}` state?", self.line, self.text)
    }
}

impl std::error::Error for Senseless {}

impl Stated {
    /// Reads the statements of a source text; `file` tells its language.
    pub fn parse(file: &Path, source: &str) -> Result<Self, Senseless> {
        let mark = mark(file);
        let mut stated = Self::default();
        for (line, text) in (1..).zip(source.lines()) {
            let Some((code, statement)) = text.rsplit_once(mark) else {
                continue;
            };
            let statement = statement.trim();
            let understood = if code.trim().is_empty() {
                stated.direct(statement)
            } else {
                stated.count(line, statement)
            };
            understood.ok_or_else(|| Senseless {
                line,
                text: statement.to_owned(),
            })?;
        }
        Ok(stated)
    }

    fn count(&mut self, line: u32, statement: &str) -> Option<()> {
        self.lines.insert(line, statement.parse().ok()?);
        Some(())
    }

    fn direct(&mut self, directive: &str) -> Option<()> {
        let (name, value) = directive.split_once(':')?;
        let mut words = value.split_whitespace().map(str::to_owned);
        match name {
            "routes" => self.routes.extend(words),
            "unstepped" => self.unstepped = words.next().is_some(),
            "args" => self.args.extend(words),
            "flags" => self.flags.extend(words),
            "optimised" => {
                let words = |way: &str| way.split_whitespace().map(str::to_owned).collect();
                self.optimised.extend(value.split(',').map(words));
                return self.optimised.iter().all(|it| !it.is_empty()).then_some(());
            }
            "varies" => self.varies.extend(words),
            "asm-uncertain" => self.asm_uncertain.extend(words),
            "asm-refuses" => self.asm_refuses.extend(words),
            "status" => self.status = value.trim().parse().ok()?,
            "calls" => {
                let call = (words.next()?, words.next()?.parse().ok()?);
                self.calls.push(call);
                return words.next().is_none().then_some(());
            }
            _ => return None,
        }
        Some(())
    }
}

fn mark(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("s") => "#~",
        Some("f90") => "!~",
        _ => "//~",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(file: &str, source: &str) -> Result<Stated, Senseless> {
        Stated::parse(Path::new(file), source)
    }

    #[test]
    fn a_program_says_what_it_does() {
        let source = "\
//~ routes: asm patch
//~ args: 3 2 3
//~ flags: -pthread -O2
//~ optimised: -O2, -O3 -flto
//~ unstepped: it blocks SIGTRAP
//~ status: 139
//~ calls: f 3
//~ calls: g 0
//~ varies: g
//~ asm-uncertain: f g
//~ asm-refuses: main
int main() {        //~ 1
    f();
    g(); // twice   //~2
}
";
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        assert_eq!(
            parse("it.c", source),
            Ok(Stated {
                routes: words("asm patch"),
                args: words("3 2 3"),
                flags: words("-pthread -O2"),
                optimised: vec![words("-O2"), words("-O3 -flto")],
                unstepped: true,
                status: 139,
                lines: BTreeMap::from([(12, 1), (14, 2)]),
                calls: vec![("f".to_owned(), 3), ("g".to_owned(), 0)],
                varies: words("g"),
                asm_uncertain: words("f g"),
                asm_refuses: words("main"),
            })
        );
    }

    #[test]
    fn each_language_has_its_mark() {
        let lines = |file, source| parse(file, source).map(|stated| stated.lines);
        assert_eq!(lines("it.cc", "x //~ 1"), Ok(BTreeMap::from([(1, 1)])));
        assert_eq!(lines("it.s", "nop #~ 2"), Ok(BTreeMap::from([(1, 2)])));
        assert_eq!(lines("it.f90", "end !~ 3"), Ok(BTreeMap::from([(1, 3)])));
        assert_eq!(lines("it.s", "nop //~ 4"), Ok(BTreeMap::new()));
    }

    #[test]
    fn a_program_that_says_nothing_ends_well() {
        assert_eq!(parse("it.c", "int main() {}"), Ok(Stated::default()));
    }

    #[test]
    fn a_statement_without_sense_is_refused() {
        for (line, text) in [
            (1, "x //~ many"),
            (1, "x //~ -1"),
            (1, "x //~"),
            (1, "//~ 3"),
            (1, "//~ colour: red"),
            (1, "//~ status: bad"),
            (1, "//~ optimised: -O2,"),
            (1, "//~ calls: f"),
            (1, "//~ calls: f 1 2"),
            (2, "x //~ 1\n//~ call f 1"),
        ] {
            let refused = parse("it.c", text).expect_err(text);
            assert_eq!(refused.line, line, "{text}");
        }
    }
}
