//! Invariant 7: whatever the bytes of a counted program, a counter file or a journal, reading them
//! ends, with an answer or an error. Real ones, damaged at random in fixed ways.

use crate::assembler;
use crate::counters::{self, Counters};
use crate::module::CountedModule;
use crate::program_memory::Mapping;
use crate::recovered::{self, Counts, Facts};
use headcount_model::{Block, Function, FunctionEdge, LinkAddr, Module, Run};
use headcount_monitor::OwnFolder;
use headcount_monitor::journal::{self, Entry, Journal};
use headcount_profile::{ModuleCounted, ModuleFacts, Profile, RunSelection, SparseCounts};
use object::{Object, ObjectSection};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A small generator of numbers that look random (xorshift; any would do).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ (seed + 1))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Numbers at the edge of something.
const EXTREMES: [u64; 14] = [
    0,
    1,
    7,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_f000,
    0xffff_ffff_ffff_ffff,
];

/// Bits turned, numbers replaced, pieces copied elsewhere, the end cut off. Half of it happens in
/// the places that matter most.
fn damaged(whole: &[u8], places: &[Range<usize>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..1 + dice.below(4) {
        if bytes.is_empty() {
            break;
        }
        let place = match dice.below(2) {
            0 => 0..bytes.len(),
            _ => places[dice.below(places.len())].clone(),
        };
        let at = (place.start + dice.below(place.len())).min(bytes.len() - 1);
        match dice.below(12) {
            0 => bytes.truncate(at),
            1 => {
                let from = dice.below(bytes.len());
                let length = dice.below(64).min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + length, at);
            }
            2..=6 => {
                let number = dice.pick(&EXTREMES).to_le_bytes();
                let length = dice.pick(&[1, 2, 4, 8]).min(bytes.len() - at);
                bytes[at..at + length].copy_from_slice(&number[..length]);
            }
            _ => bytes[at] ^= 1 << dice.below(8),
        }
    }
    bytes
}

/// A small program, built with counters, and the folder it is in.
fn counted_program() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let source = "static int f(int n) { switch (n) { case 0: return 3; case 1: return 5;\n\
                  case 2: return 7; case 3: return 1; case 4: return 9; } return n; }\n\
                  int main(int argc, char **argv) {\n\
                  int s = 0; for (int i = 0; i < 9; i++) if (argc < i) s += f(i);\n\
                  return s == 0; }\n";
    fs::write(path("small.c"), source).expect("it can be written");
    let gcc = |arguments: &[&str]| {
        let mut gcc = Command::new("gcc");
        let status = gcc.args(arguments).current_dir(folder.path()).status();
        assert!(status.expect("gcc runs").success(), "{arguments:?}");
    };
    gcc(&["-S", "-g", "-O1", "-o", "small.s", "small.c"]);
    let text = fs::read_to_string(path("small.s")).expect("gcc writes text");
    let counted = assembler::count(&text, "small.c", false);
    fs::write(path("counted.s"), counted).expect("it can be written");
    gcc(&["-o", "small", "counted.s"]);
    let program = path("small");
    (folder, program)
}

/// The counter file of a run of it.
fn counter_file(folder: &TempDir, program: &Path) -> PathBuf {
    let counts = folder.path().join("counts");
    let mut run = Command::new(program);
    run.env(headcount_wire::FOLDER_VARIABLE, &counts);
    assert!(run.status().expect("it runs").success());
    let files = fs::read_dir(counts).expect("it leaves a folder");
    let mut files = files.map(|it| it.expect("it can be read").path());
    let is_counts = |it: &PathBuf| it.to_string_lossy().ends_with(headcount_wire::FILE_SUFFIX);
    files.find(is_counts).expect("with counts in it")
}

#[test]
fn a_damaged_program_is_read_or_refused() {
    let (_folder, program) = counted_program();
    let whole = fs::read(&program).expect("it is there");
    let path = Path::new("damaged");
    let good = CountedModule::from_bytes(path, &whole).expect("the whole one is readable");
    assert!(good.module.functions.iter().any(|it| it.name == "main"));
    let file = object::File::parse(&*whole).expect("an ELF file");
    let mut places = vec![0..64, whole.len() - 3000..whole.len()];
    for name in [headcount_wire::MAP_SECTION, headcount_wire::IDS_SECTION] {
        let section = file.section_by_name(name).expect("it has counters");
        let (at, length) = section.file_range().expect("in the file");
        let place = at as usize..(at + length) as usize;
        // Most of what can go wrong is in the map.
        places.extend([place.clone(), place]);
    }
    let mut read = 0;
    for seed in 0..4000 {
        let mut dice = Dice::new(seed);
        let bytes = damaged(&whole, &places, &mut dice);
        let Ok(module) = CountedModule::from_bytes(path, &bytes) else {
            continue;
        };
        read += 1;
        let count = module.counters.min(1000) as usize;
        let sums: Vec<u64> = (0..count).map(|_| dice.pick(&EXTREMES)).collect();
        if let Ok(recovered) = module.recover(&sums, &[]) {
            assert_eq!(recovered.functions.len(), module.module.functions.len());
        }
    }
    // Both ways are taken.
    assert!((100..3900).contains(&read), "{read}");
}

#[test]
fn a_damaged_counter_file_is_read_or_refused() {
    let (folder, program) = counted_program();
    let path = counter_file(&folder, &program);
    let whole = fs::read(&path).expect("it is there");
    let good = Counters::read(&path).expect("the whole one is readable");
    assert!(good.sums.iter().any(|sum| *sum > 0));
    let slot = headcount_wire::HEADER_BYTES;
    let places = [0..128, 0..256, slot..slot + 128, slot..slot + 64];
    let damaged_path = folder.path().join("damaged");
    let mut read = 0;
    for seed in 0..1200 {
        let mut dice = Dice::new(seed);
        let bytes = damaged(&whole, &places, &mut dice);
        fs::write(&damaged_path, &bytes).expect("it can be written");
        if let Ok(counters) = Counters::read(&damaged_path) {
            read += 1;
            assert!(counters.sums.is_empty() || counters.sums.len() as u64 == counters.count);
        }
        // The same bytes in a core dump, or in the memory of a process.
        let found = counters::in_memory([&*bytes].into_iter(), Path::new("core"), &[]);
        assert!(found.len() <= bytes.len() / headcount_wire::PAGE + 1);
        counters::finds(&bytes);
    }
    assert!((50..1150).contains(&read), "{read}");
}

/// A module of three functions, with six blocks.
fn small_module() -> Module {
    let block = |address| Block {
        address: LinkAddr(address),
        instructions: 4,
        ..Block::default()
    };
    let function = |(name, address, blocks): (&str, u64, u64)| Function {
        name: name.to_owned(),
        address: LinkAddr(address),
        source: None,
        blocks: (0..blocks).map(|it| block(address + it * 16)).collect(),
        edges: Vec::<FunctionEdge>::new(),
        counters: 0,
        compiled: Default::default(),
    };
    let functions = [("f", 0x1000, 1), ("g", 0x2000, 3), ("h", 0x3000, 2)];
    Module {
        path: "/small".to_owned(),
        build_id: "b".to_owned(),
        functions: functions.into_iter().map(function).collect(),
        ..Module::default()
    }
}

/// The first line of a journal.
fn first_line() -> Entry {
    Entry::Run {
        version: journal::VERSION,
        command: vec!["small".to_owned()],
        started: 1,
        cpu: "a processor".to_owned(),
        key: "key-1".to_owned(),
        batch: String::new(),
        in_the_middle: false,
    }
}

/// Writes a journal of a run of [`small_module`].
fn write_journal(folder: &Path, uncounted: Vec<(u32, u32)>, entries: &[Entry]) {
    let folder = OwnFolder::make(folder).expect("a folder");
    let mut journal = Journal::create(&folder, &first_line()).expect("a journal");
    let module = Entry::Module {
        path: "/small".to_owned(),
        build_id: "b".to_owned(),
        blocks: 6,
        uncounted,
    };
    let (_, mut counters) = journal.add_module(&module, 6).expect("counters");
    for block in [0, 0, 3, 5] {
        counters.add_one(block);
    }
    for entry in entries {
        journal.write(entry).expect("a line");
    }
}

fn run_of(folder: &Path) -> anyhow::Result<(Run, Vec<SparseCounts>)> {
    let written = journal::read(&OwnFolder::open(folder)?)?;
    let (run, counts) = recovered::run_of(written, &[Facts::Blocks(small_module())], None)?;
    let counts = counts.into_iter().filter_map(|it| match it {
        Counts::Made(counts) => Some(counts),
        Counts::Unread(_) => None,
    });
    Ok((run, counts.collect()))
}

fn complaint(uncounted: Vec<(u32, u32)>, entries: &[Entry]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("a.run");
    write_journal(&folder, uncounted, entries);
    run_of(&folder).expect_err("it makes no sense").to_string()
}

#[test]
fn uncounted_blocks_that_are_not_there_are_refused() {
    for stretch in [
        (6, 1),
        (5, 2),
        (0, u32::MAX),
        (u32::MAX, 1),
        (u32::MAX, u32::MAX),
        (1, u32::MAX),
    ] {
        let complaint = complaint(vec![stretch], &[]);
        assert!(
            complaint.contains("a block that is not there"),
            "{complaint}"
        );
    }
    let twice = complaint(vec![(0, 6), (0, 6)], &[]);
    assert!(twice.contains("a block that is not there"), "{twice}");
}

#[test]
fn shifts_that_do_not_fit_a_number_are_refused() {
    let shift = |delta| Entry::Shift {
        module: 0,
        block: 2,
        from: 1,
        delta,
    };
    let complaint = complaint(Vec::new(), &[shift(i64::MAX), shift(1)]);
    assert!(complaint.contains("more visits"), "{complaint}");
}

#[test]
fn a_pipe_in_place_of_a_journal_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join(journal::JOURNAL);
    let status = Command::new("mkfifo").arg(pipe).status();
    assert!(status.expect("mkfifo runs").success());
    let folder = OwnFolder::open(folder.path()).expect("it is ours");
    assert!(!journal::is_being_written(&folder));
    let error = journal::read(&folder).expect_err("it is no journal");
    assert!(error.to_string().contains("regular"), "{error}");
}

/// One of the numbers in a text replaced by an extreme one, or a line lost, doubled or damaged.
fn damaged_text(text: &str, dice: &mut Dice) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
    for _ in 0..1 + dice.below(3) {
        let at = dice.below(lines.len());
        match dice.below(10) {
            0 if lines.len() > 1 => _ = lines.remove(at),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let all = 0..lines[at].len();
                lines[at] = damaged(&lines[at], &[all], dice);
            }
            _ => lines[at] = with_another_number(&lines[at], dice),
        }
    }
    let mut bytes = lines.join(&b'\n');
    bytes.push(b'\n');
    bytes
}

fn with_another_number(line: &[u8], dice: &mut Dice) -> Vec<u8> {
    let is_digit = |at: usize| line[at].is_ascii_digit();
    let starts: Vec<usize> = (0..line.len())
        .filter(|at| is_digit(*at) && (*at == 0 || !is_digit(*at - 1)))
        .collect();
    if starts.is_empty() {
        return line.to_vec();
    }
    let start = dice.pick(&starts);
    let end = (start..line.len()).find(|at| !is_digit(*at));
    let number = match dice.below(5) {
        0 => "-1".to_owned(),
        1 => "18446744073709551616".to_owned(),
        2 => dice.below(8).to_string(),
        _ => dice.pick(&EXTREMES).to_string(),
    };
    let mut changed = line[..start].to_vec();
    changed.extend(number.into_bytes());
    changed.extend(&line[end.unwrap_or(line.len())..]);
    changed
}

#[test]
fn a_damaged_journal_is_read_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let run_folder = folder.path().join("a.run");
    let (module, block) = (0, 4);
    write_journal(
        &run_folder,
        vec![(1, 2)],
        &[
            Entry::Loaded {
                pid: 7,
                module,
                bias: 0x1000,
            },
            Entry::Thread { pid: 7, tid: 7 },
            Entry::Thread { pid: 7, tid: 8 },
            Entry::Shift {
                module,
                block,
                from: 2,
                delta: -1,
            },
            Entry::Shift {
                module,
                block,
                from: 2,
                delta: 1,
            },
            Entry::AtLeast { module, block: 5 },
            Entry::Note("a note".to_owned()),
            Entry::End {
                ended: 2,
                status: Some(0),
                routines: 0,
                windows: 0,
            },
        ],
    );
    let journal = run_folder.join(journal::JOURNAL);
    let whole = fs::read_to_string(&journal).expect("a journal is text");
    let (run, counts) = run_of(&run_folder).expect("the whole one is readable");
    assert_eq!(counts[0].functions[1].1.blocks, [None, None, Some(1)]);
    store(&run, &counts).expect("the whole one can be stored");
    let (mut read, mut stored) = (0, 0);
    for seed in 0..1500 {
        let mut dice = Dice::new(seed);
        fs::write(&journal, damaged_text(&whole, &mut dice)).expect("it can be written");
        let Ok((run, counts)) = run_of(&run_folder) else {
            continue;
        };
        read += 1;
        // A profile takes longer.
        if read % 20 == 0 {
            stored += usize::from(store(&run, &counts).is_ok());
        }
    }
    assert!((100..1450).contains(&read), "{read}");
    assert!(stored > 3, "{stored}");
}

fn store(run: &Run, counts: &[SparseCounts]) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut profile = Profile::create_or_open(&folder.path().join("p.db"))?;
    let module = ModuleFacts::new(&small_module(), Vec::new());
    let counts: Vec<_> = counts.iter().cloned().map(ModuleCounted::Counts).collect();
    profile.add_encoded(std::slice::from_ref(&module), run, &counts)?;
    profile.load(&RunSelection::All)?;
    Ok(())
}

#[test]
fn damaged_lines_of_maps_are_read_or_left_out() {
    let whole = "7f12a000-7f12b000 rw-p 00001000 fe:01 1234       /tmp/a.hcount (deleted)\n\
                 55d0a000-55d0c000 rw-p 00000000 00:00 0          [heap]\n\
                 ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
    assert_eq!(whole.lines().filter_map(Mapping::parse).count(), 3);
    for seed in 0..20_000 {
        let bytes = damaged_text(whole, &mut Dice::new(seed));
        let text = String::from_utf8_lossy(&bytes);
        text.lines().for_each(|line| _ = Mapping::parse(line));
    }
}
