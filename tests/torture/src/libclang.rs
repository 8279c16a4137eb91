//! Where do statements begin, says libclang?
//!
//! Its parser knows all of the language, and has nothing in common with ours, which knows the
//! shapes of statements only. Both read the same bytes: what clang's preprocessor wrote, without
//! line markers. Functions that nobody calls are read, too.
//!
//! One kind of difference is foreseen: see [`BEHIND_EXTENSION`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Result, anyhow};
use clang::diagnostic::Severity;
use clang::{Clang, Entity, EntityKind, Index};
use headcount_csource::{Options, Source};
use headcount_ground::child;
use headcount_ground::program::Program;

use crate::check::{Checker, Counts, Outcome};
use crate::compare::{Comparison, Difference, Judge};
use crate::headcount::Said;

/// The suite is old C, and new compilers object to old C.
pub const OLD_C: [&str; 6] = [
    "-Wno-implicit-int",
    "-Wno-implicit-function-declaration",
    "-Wno-int-conversion",
    "-Wno-incompatible-function-pointer-types",
    "-Wno-return-type",
    "-Wno-ignored-optimization-argument",
];

/// `__extension__ union { ... } u;` is one statement to both of us.
const BEHIND_EXTENSION: &str = "libclang's declaration begins behind `__extension__`";

/// By the byte of the text where they begin.
type Starts = BTreeMap<u32, &'static str>;

/// A process has one libclang, and one at a time may ask it.
static LIBCLANG: Mutex<()> = Mutex::new(());

impl Checker {
    /// Compares where the statements of a program begin, and what they are.
    pub fn check_statement_starts(&self, program: &Program, level: &str) -> Result<Outcome> {
        self.in_folders(program, level, |_, _, folder| {
            let mut flags = vec!["-w".to_owned(), level.to_owned()];
            flags.extend(OLD_C.map(str::to_owned));
            // How to optimise says nothing about statements, and clang does not know all of it.
            let optimises = |flag: &&String| flag.starts_with("-f");
            flags.extend(program.flags.iter().filter(|it| !optimises(it)).cloned());
            let mut found = Comparison::default();
            for (number, source) in program.sources.iter().enumerate() {
                let file = folder.join(format!("{number}.c"));
                let mut preprocess = Command::new("clang");
                preprocess.args(["-E", "-P"]).args(&flags).arg(source);
                preprocess.arg("-o").arg(&file).current_dir(folder);
                let ended = child::run(&mut preprocess, folder, self.limits.compile)?;
                if !ended.succeeded() {
                    let reason = format!("clang does not take it: {}", ended.complaint());
                    return Ok(Outcome::NotApplicable(reason));
                }
                let text = fs::read(&file)?;
                let theirs = match starts_by_libclang(&file, &flags)? {
                    Ok(starts) => starts,
                    Err(reason) => return Ok(Outcome::NotApplicable(reason)),
                };
                let ours = match our_starts(&text) {
                    Ok(starts) => starts,
                    Err(reason) => return Ok(Outcome::Failed(reason)),
                };
                let name = source.file_name().unwrap_or_default().to_string_lossy();
                compare(&name, &text, ours, &theirs, &mut found);
            }
            Ok(Outcome::Passed {
                said: Said::default(),
                counts: Counts::Compared(found),
            })
        })
    }
}

fn our_starts(text: &[u8]) -> Result<Starts, String> {
    let options = Options::default();
    let source = Source::parse(text, &options).map_err(|it| it.to_string())?;
    let starts = source.statement_starts(&options).into_iter();
    Ok(starts.map(|it| (it.offset, it.kind)).collect())
}

/// The statements of a preprocessed file; or why libclang does not take it.
fn starts_by_libclang(file: &Path, flags: &[String]) -> Result<Result<Starts, String>> {
    let _one_at_a_time = LIBCLANG.lock().unwrap_or_else(|it| it.into_inner());
    let clang = Clang::new().map_err(|problem| anyhow!(problem))?;
    let index = Index::new(&clang, false, false);
    let unit = match index.parser(file).arguments(flags).parse() {
        Ok(unit) => unit,
        Err(problem) => return Ok(Err(format!("libclang does not take it: {problem}"))),
    };
    let mut diagnostics = unit.get_diagnostics().into_iter();
    if let Some(error) = diagnostics.find(|it| it.get_severity() >= Severity::Error) {
        let reason = format!("libclang does not take it: {}", error.get_text());
        return Ok(Err(reason));
    }
    Ok(Ok(starts_below(unit.get_entity())))
}

/// What an entity is to the one around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A part of an expression, or anything else.
    Other,
    Statement,
    /// A statement with attributes before it: it begins with them.
    BeginsAt(u32),
}

/// Without recursion: expressions of machines are deeper than stacks.
fn starts_below(top: Entity) -> Starts {
    let mut starts = Starts::new();
    let mut waiting = vec![(top, Role::Other)];
    while let Some((entity, role)) = waiting.pop() {
        let range = entity.get_range();
        let own = range.map(|it| it.get_start().get_spelling_location().offset);
        let start = match role {
            Role::BeginsAt(offset) => Some(offset),
            _ => own,
        };
        if let (Some(kind), Some(start)) = (kind_of(&entity, role), start) {
            starts.insert(start, kind);
        }
        let children = entity.get_children();
        let statements = statements_among(&entity, role, children.len());
        let inner = match (entity.get_kind(), start) {
            (EntityKind::UnexposedStmt, Some(start)) => Role::BeginsAt(start),
            _ => Role::Statement,
        };
        for (at, child) in children.into_iter().enumerate() {
            let is_statement = statements.contains(&at);
            waiting.push((child, if is_statement { inner } else { Role::Other }));
        }
    }
    starts
}

/// Which children are statements, by their numbers. Clauses that are not there are no children, but
/// a body is always there, and is the last, or with `do` the first.
fn statements_among(entity: &Entity, role: Role, children: usize) -> BTreeSet<usize> {
    let last = children.saturating_sub(1);
    match entity.get_kind() {
        EntityKind::CompoundStmt => (0..children).collect(),
        EntityKind::IfStmt => (1..children).collect(),
        EntityKind::DoStmt => BTreeSet::from([0]),
        EntityKind::WhileStmt
        | EntityKind::ForStmt
        | EntityKind::SwitchStmt
        | EntityKind::LabelStmt
        | EntityKind::CaseStmt
        | EntityKind::DefaultStmt => BTreeSet::from([last]),
        // A statement with attributes.
        EntityKind::UnexposedStmt if role != Role::Other => BTreeSet::from([last]),
        _ => BTreeSet::new(),
    }
}

fn kind_of(entity: &Entity, role: Role) -> Option<&'static str> {
    Some(match entity.get_kind() {
        EntityKind::CompoundStmt => "block",
        EntityKind::IfStmt => "if",
        EntityKind::WhileStmt => "while",
        EntityKind::DoStmt => "do",
        EntityKind::ForStmt => "for",
        EntityKind::SwitchStmt => "switch",
        EntityKind::CaseStmt => "case",
        EntityKind::DefaultStmt => "default",
        EntityKind::LabelStmt => "label",
        EntityKind::GotoStmt | EntityKind::IndirectGotoStmt => "goto",
        EntityKind::ReturnStmt => "return",
        EntityKind::BreakStmt => "break",
        EntityKind::ContinueStmt => "continue",
        EntityKind::AsmStmt => "asm",
        EntityKind::NullStmt => "empty",
        EntityKind::DeclStmt => "declaration",
        EntityKind::UnexposedStmt => return None,
        _ if role != Role::Other => "expression",
        _ => return None,
    })
}

/// Declarations that begin with `__extension__`, and where they go on behind it.
fn extended(text: &[u8], ours: &Starts) -> Vec<(u32, u32)> {
    let declarations = ours.iter().filter(|(_, kind)| **kind == "declaration");
    let mut found = Vec::new();
    for offset in declarations.map(|(offset, _)| *offset) {
        let mut rest = &text[offset as usize..];
        while let Some(behind) = rest.strip_prefix(b"__extension__") {
            rest = behind.trim_ascii_start();
        }
        let behind = (text.len() - rest.len()) as u32;
        if behind > offset {
            found.push((offset, behind));
        }
    }
    found
}

fn compare(name: &str, text: &[u8], mut ours: Starts, theirs: &Starts, found: &mut Comparison) {
    for (offset, behind) in extended(text, &ours) {
        if !theirs.contains_key(&offset) && theirs.get(&behind) == ours.get(&offset) {
            ours.remove(&offset);
            ours.insert(behind, theirs[&behind]);
            let place = place(text, offset);
            found
                .foreseen
                .push(format!("{name}:{place}: {BEHIND_EXTENSION}"));
        }
    }
    let offsets: BTreeSet<u32> = ours.keys().chain(theirs.keys()).copied().collect();
    for offset in offsets {
        let (our, their) = (ours.get(&offset), theirs.get(&offset));
        if our == their {
            found.equal += 1;
            continue;
        }
        let place = format!("{name}:{}", place(text, offset));
        for (kind, headcount, judged) in [(our, Some(1), None), (their, None, Some(1))] {
            found.differences.extend(kind.map(|kind| Difference {
                subject: format!("{place}:{kind}"),
                address: None,
                headcount,
                judge: Judge::Libclang,
                judged,
                more: 0,
            }));
        }
    }
}

/// Line and column, both from 1.
fn place(text: &[u8], offset: u32) -> String {
    let before = &text[..(offset as usize).min(text.len())];
    let line = before.split(|byte| *byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n');
    let column = before.len() - start.map_or(0, |at| at + 1) + 1;
    format!("{line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
typedef int t; t g;
int f (int a, t *p)
{
  __label__ out; __extension__ t *q = p;
  static int s = 3;
  if (a) { a++; ; } else if (s) for (t i = 0; i < 3; i++) a += i; else do a--; while (a);
  switch (a) { case 1: __attribute__ ((fallthrough)); case 2 ... 4: a = ({ t b = 1; b + 1; }); break; default: goto out; }
  while (a) if (*q) continue; else return g;
  t * r = q;
  asm (\"\");
out: __attribute__ ((unused));
  return *r;
}
";

    fn theirs(test: &str) -> Starts {
        let name = format!("headcount-{test}-{}.c", std::process::id());
        let file = std::env::temp_dir().join(name);
        fs::write(&file, TEXT).unwrap();
        let starts = starts_by_libclang(&file, &["-w".to_owned()]);
        fs::remove_file(&file).unwrap();
        starts.unwrap().unwrap()
    }

    fn compared(theirs: &Starts, change: impl FnOnce(&mut Starts)) -> Comparison {
        let mut ours = our_starts(TEXT.as_bytes()).unwrap();
        change(&mut ours);
        let mut found = Comparison::default();
        compare("starts.c", TEXT.as_bytes(), ours, theirs, &mut found);
        found
    }

    #[test]
    fn every_kind_of_statement_begins_where_libclang_says() {
        let found = compared(&theirs("equal"), |_| ());
        assert_eq!(found.differences, []);
        assert_eq!(found.equal, 35);
        assert_eq!(found.foreseen.len(), 1);
    }

    #[test]
    fn a_statement_that_is_lost_or_of_another_kind_is_seen() {
        let all: Vec<u32> = our_starts(TEXT.as_bytes()).unwrap().into_keys().collect();
        let theirs = theirs("lost");
        for at in all {
            let lost = compared(&theirs, |ours| _ = ours.remove(&at));
            assert_eq!(lost.differences.len(), 1, "{at}");
        }
        let told = compared(&theirs, |ours| {
            _ = ours.insert(TEXT.find("if").unwrap() as u32, "while")
        });
        assert_eq!(told.differences.len(), 2);
    }
}
