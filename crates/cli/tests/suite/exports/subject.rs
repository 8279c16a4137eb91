//! Three real programs (C, C++, Rust), built with debug information and counted once.

use crate::workshop::{Said, Workshop};
use headcount_ground::program::{Language, Program};
use headcount_ground::real::{self, Amount};
use headcount_ground::registry::Sources;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A program that was built and counted.
pub struct Subject {
    pub name: String,
    program: Program,
    compiler: Vec<&'static str>,
    shop: Workshop,
}

const WHOLE: &str = "-fno-reorder-blocks-and-partition";

/// Of all three languages, as BOLT wants them: with relocations, and functions in one piece. Built
/// and counted by whoever asks first.
pub fn all() -> &'static [Subject] {
    static ALL: LazyLock<Vec<Subject>> = LazyLock::new(|| {
        let compiler = |language| match language {
            Language::C => vec!["gcc", "-g", "-O2", "-Wl,-q", WHOLE],
            Language::Cxx => vec!["g++", "-g", "-O2", "-Wl,-q", WHOLE],
            Language::Rust => vec!["rustc", "-g", "-O", "-Clink-arg=-Wl,-q"],
        };
        let programs = programs("exports").into_iter();
        let subject = |it: Program| Subject::new(compiler(it.language), it);
        programs.map(subject).collect()
    });
    &ALL
}

/// The C and the C++ program, as clang wants them that is to learn from them.
pub fn by_clang() -> Vec<Subject> {
    let mut programs = programs("by_clang");
    programs.retain(|it| it.language != Language::Rust);
    let subject = |program: Program| {
        let compiler = match program.language {
            Language::C => "clang",
            _ => "clang++",
        };
        let flags = ["-O2", "-gline-tables-only", "-fdebug-info-for-profiling"];
        Subject::new([&[compiler], &flags[..]].concat(), program)
    };
    programs.into_iter().map(subject).collect()
}

fn programs(folder: &str) -> Vec<Program> {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let sources = Sources::fetch(&work).unwrap();
    let mut programs = real::programs(&sources, Amount::Little).unwrap();
    programs.retain(|it| it.name == "bzip2");
    let own = real::our_own(Amount::Little).into_iter();
    programs.extend(own.filter(|it| it.language != Language::C));
    programs
}

impl Subject {
    fn new(compiler: Vec<&'static str>, program: Program) -> Self {
        let it = Self {
            name: program.name.clone(),
            program,
            compiler,
            shop: Workshop::new(),
        };
        it.build("it", &[]);
        // The libraries of the first are enough to see that formats can tell modules apart.
        let modules = match it.program.language {
            Language::C => "all",
            _ => "main",
        };
        let words = ["run", "-q", "--modules", modules, "--", "./it"];
        let said = it
            .shop
            .headcount(&[&words, it.arguments().as_slice()].concat());
        assert_eq!(said.status, Some(0), "{}: {said:?}", it.name);
        it
    }

    /// Builds it once more; the compiler must not complain.
    pub fn build(&self, output: &str, more: &[&str]) {
        let flags = self.compiler[1..].iter().chain(more);
        let flags: Vec<String> = flags.map(|it| (*it).to_owned()).collect();
        let words = self.program.compile(&flags, &self.shop.path(output));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.ask(&[&self.compiler[..1], &words].concat());
    }

    /// Runs it by another program.
    pub fn under(&self, words: &[&str]) {
        let it = self.path("it");
        let program = [&[it.as_str()], self.arguments().as_slice()].concat();
        self.ask(&[words, &program].concat());
    }

    /// What a build of it prints.
    pub fn output_of(&self, build: &str) -> String {
        self.shop
            .must(&[&[build], self.arguments().as_slice()].concat())
    }

    fn arguments(&self) -> Vec<&str> {
        self.program.arguments.iter().map(String::as_str).collect()
    }

    /// Exports into a new file, and says which.
    pub fn export(&self, format: &str) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = format!("{number}.{format}");
        let said = self
            .shop
            .headcount(&["export", "--format", format, "-o", &file]);
        assert_eq!(said.status, Some(0), "{}: {said:?}", self.name);
        file
    }

    /// Where a file is.
    pub fn path(&self, file: &str) -> String {
        self.shop.path(file).display().to_string()
    }

    /// What headcount says when it refuses.
    pub fn refused(&self, words: &[&str]) -> String {
        let said = self.shop.headcount(words);
        assert_eq!(said.status, Some(2), "{words:?}: {said:?}");
        said.stderr
    }

    /// What is in a file.
    pub fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.shop.path(file)).unwrap()
    }

    /// What is in a file of text.
    pub fn read_text(&self, file: &str) -> String {
        String::from_utf8(self.read(file)).unwrap()
    }

    /// Writes a file.
    pub fn write(&self, file: &str, text: &str) {
        self.shop.write(file, text);
    }

    /// What is in an export, a NUL, and what was said.
    pub fn exported_with(&self, format: &str, more: &[&str]) -> Vec<u8> {
        let words = ["export", "--format", format];
        let said = self.shop.headcount(&[&words, more].concat());
        assert_eq!(said.status, Some(0), "{}: {said:?}", self.name);
        format!("{}\0{}", said.stdout, said.stderr).into_bytes()
    }

    /// The schema that travels with the program.
    pub fn schema(&self) -> serde_json::Value {
        let said = self.shop.headcount(&["export", "--schema"]);
        serde_json::from_str(&said.stdout).unwrap()
    }

    /// Another tool's answer; it must not complain.
    pub fn ask(&self, words: &[&str]) -> String {
        self.ask_allowing(words, "\0")
    }

    /// The same; lines that begin so are no complaint.
    pub fn ask_allowing(&self, words: &[&str], allowed: &str) -> String {
        let Said {
            stdout,
            stderr,
            status,
        } = self.shop.run(words);
        assert_eq!(status, Some(0), "{}: {words:?}: {stderr}", self.name);
        let talk = stderr.lines().filter(|line| !line.starts_with(allowed));
        let talk = talk.collect::<String>().to_lowercase();
        for complaint in ["warning", "error", "mismatch", "skipping", "invalid"] {
            let complains = talk.contains(complaint);
            assert!(!complains, "{}: {words:?}: {stderr}", self.name);
        }
        stdout
    }

    /// The rows of a report, without the names of its columns.
    pub fn report(&self, by: &str) -> Vec<Vec<String>> {
        self.report_with(&["--by", by])
    }

    /// The same, with other options.
    pub fn report_with(&self, options: &[&str]) -> Vec<Vec<String>> {
        let words = [&["report", "--format", "csv"], options].concat();
        let said = self.shop.headcount(&words);
        assert_eq!(said.status, Some(0), "{said:?}");
        said.stdout.lines().skip(1).map(fields).collect()
    }

    /// Instructions executed, as the report has it.
    pub fn executed(&self) -> u64 {
        let rows = self.report("module");
        rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum()
    }
}

/// The fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

/// The number in a text such as `12,345 (100.0%)`.
pub fn number(text: &str) -> u64 {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',');
    let digits = text[..end.unwrap_or(text.len())].replace(',', "");
    digits.parse().unwrap_or_else(|_| panic!("{text}"))
}
