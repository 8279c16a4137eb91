//! Every program in `tests/programs` says how often its lines run. Before headcount is judged by
//! those numbers, they are judged here, by single-stepping and by binutils' reading of the line
//! table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use headcount_oracle::stated::Stated;
use headcount_oracle::{complaints, count};
use object::{Object, ObjectSymbol, SymbolKind};

/// Below, lines add up over functions, but not over the copies of one that was inlined twice.
const COPIES_ADD_UP: &str = "a_line_inlined_twice_counts_twice.c";

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let entries = fs::read_dir(folder).expect("the folder of test programs");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !path.ends_with(COPIES_ADD_UP))
        .collect();
    paths.sort();
    paths
}

fn build(source: &Path, flags: &[String], into: &Path) {
    let compiler = match source.extension().and_then(|extension| extension.to_str()) {
        Some("cc") => "g++",
        Some("f90") => "gfortran",
        Some("rs") => "rustc",
        _ => "gcc",
    };
    let plainly: &[&str] = match compiler {
        "rustc" => &["-g", "-o"],
        _ => &["-g", "-O0", "-w", "-o"],
    };
    let output = Command::new(compiler)
        // gfortran leaves a file for each module where it is started.
        .current_dir(into.parent().expect("a folder"))
        .args(plainly)
        .arg(into)
        .arg(source)
        .args(flags)
        .output()
        .expect("the compiler runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}: {complaints}",
        source.display()
    );
}

/// The addresses where a statement of each line begins, as `objdump` prints them:
///
/// ```text
/// File name        Line number    Starting address    View    Stmt
/// recursion.c               10              0x1149               x
/// ```
fn statements(program: &Path, source: &Path) -> BTreeMap<u32, BTreeSet<u64>> {
    let output = Command::new("objdump")
        .args(["-w", "--dwarf=decodedline"])
        .arg(program)
        .output()
        .expect("objdump runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let name = source.file_name().expect("a file").to_string_lossy();
    let rows: Vec<(&str, Option<u32>, u64, bool)> = text
        .lines()
        .filter_map(|row| {
            let mut fields = row.split_whitespace();
            let (file, line, address) = (fields.next()?, fields.next()?, fields.next()?);
            let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
            Some((file, line.parse().ok(), address, fields.any(|it| it == "x")))
        })
        .collect();
    let mut statements: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for (at, &(file, line, address, is_statement)) in rows.iter().enumerate() {
        let has_code = rows.get(at + 1).is_some_and(|next| next.2 != address);
        if let (Some(line), true) = (line, file == name && is_statement && has_code) {
            statements.entry(line).or_default().insert(address);
        }
    }
    statements
}

/// The functions of a program: where they begin, where they end, and their names.
fn functions(program: &Path) -> BTreeMap<u64, (u64, String)> {
    let bytes = fs::read(program).expect("the program is there");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    file.symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .map(|symbol| {
            let name = symbol.name().expect("a name").to_owned();
            (symbol.address(), (symbol.address() + symbol.size(), name))
        })
        .collect()
}

/// What is wrong with the statements of one program.
fn lies(source: &Path) -> Vec<String> {
    let text = fs::read_to_string(source).expect("the source is text");
    let stated = Stated::parse(source, &text).expect("its statements make sense");
    if stated.unstepped {
        return Vec::new();
    }
    let folder = tempfile::tempdir().expect("a folder for the program");
    let program = folder.path().join("program");
    build(source, &stated.flags, &program);
    let outcome = count(&program, &stated.args).expect("it is counted");
    let functions = functions(&program);
    let count_at = |address: &u64| outcome.counts.get(address).copied().unwrap_or(0);

    let mut lies = Vec::new();
    if outcome.status != stated.status {
        lies.push(format!("status {}, not {}", outcome.status, stated.status));
    }
    let statements = statements(&program, source);
    for (line, &count) in &stated.lines {
        let Some(addresses) = statements.get(line) else {
            lies.push(format!("line {line} has no code"));
            continue;
        };
        // The largest of each function, so that instances of a template add up.
        let mut largest: BTreeMap<Option<u64>, u64> = BTreeMap::new();
        for address in addresses {
            let function = functions.range(..=*address).next_back();
            let entry = largest
                .entry(function.map(|(start, _)| *start))
                .or_default();
            *entry = count_at(address).max(*entry);
        }
        let truth: u64 = largest.values().sum();
        if truth != count {
            lies.push(format!("line {line} ran {truth} times, not {count}"));
        }
    }
    for (name, count) in &stated.calls {
        let function = functions.iter().find(|(_, (_, known))| known == name);
        match function {
            Some((start, _)) if count_at(start) == *count => {}
            Some((start, _)) => {
                lies.push(format!("{name}: {} calls, not {count}", count_at(start)))
            }
            None => lies.push(format!("there is no function {name}")),
        }
    }
    if stated.lines.is_empty() && stated.calls.is_empty() {
        lies.push("it states nothing".to_owned());
    }
    let lie = |what| format!("{}: {what}", source.file_name().expect("a file").display());
    lies.into_iter().map(lie).collect()
}

#[test]
fn programs_state_the_truth() {
    let programs = programs();
    assert!(programs.len() > 25);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let found = complaints(programs, workers, |source| lies(source));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
