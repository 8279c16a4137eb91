//! `headcount cc --via source`: runs a compiler on C that counts.
//!
//! Each C file of the command is preprocessed by the user's own compiler with the user's own
//! words, counted, and compiled by the same compiler. If that fails, the file is compiled as it
//! is, with a record of the reason; if that fails too, the compiler is asked to do what the user
//! said, and its words and its status are ours.

mod by_products;
pub mod command;
pub mod dialect;
pub mod planned;
pub mod portable;
pub mod record;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};
use headcount_csource::map::TextMap;
use headcount_csource::{Declarations, Options, Unreadable};
use headcount_model::Refusal;
use headcount_monitor::give_back_to;

use crate::response_files;
use crate::talk;
use command::{Arguments, Word};
use dialect::Gnu;
use planned::{Counted, Wish};

/// A compiler, and what it was told.
pub struct Job<'a> {
    /// What stands before the compiler's own arguments: launchers, and its name.
    pub program: &'a [OsString],
    pub arguments: Arguments,
    /// The same words as the user said them: some may be in files.
    pub said: &'a [OsString],
    pub every_block: bool,
    /// Whether it is clang.
    pub is_clang: bool,
}

impl Job<'_> {
    /// Whether there is anything for us to do.
    pub fn has_c(&self) -> bool {
        self.arguments.sources().next().is_some()
    }

    /// Compiles all C, counting, unless there is a reason not to. Says what is left to do for the
    /// compiler, if anything.
    pub fn run(&self, refused: Option<&str>) -> Result<Rest> {
        let folder = tempfile::Builder::new()
            .prefix("headcount-")
            .tempdir()
            .context("cannot make a temporary folder")?;
        let names = self.names_of_by_products();
        let mut objects = Vec::new();
        let sources: Vec<(&Path, Option<&OsString>)> = self
            .arguments
            .words
            .iter()
            .filter_map(|word| match word {
                Word::C(path, language) => Some((path.as_path(), language.as_ref())),
                _ => None,
            })
            .collect();
        for (number, (source, language)) in sources.into_iter().enumerate() {
            let folder = folder.path().join(number.to_string());
            fs::create_dir(&folder)?;
            let object = self.object(source, &folder);
            let task = Task {
                source,
                language,
                object: &object,
                folder: &folder,
                names: names.get(source.as_os_str()).map_or(&[], Vec::as_slice),
            };
            if let Some(reason) = self.compile(&task, refused)? {
                let source = source.display();
                return Ok(Rest::Everything(format!("{source}: {reason}")));
            }
            objects.push(object);
        }
        let is_file = |word: &Word| matches!(word, Word::File(_));
        if self.arguments.only_compiles && !self.arguments.words.iter().any(is_file) {
            return Ok(Rest::Nothing);
        }
        let words = self.shortened(self.remaining(&objects)?, folder.path())?;
        Ok(Rest::These(words, folder))
    }

    /// As many words as can be said. Where the user needed a file for theirs, so do we.
    fn shortened(&self, words: Vec<OsString>, folder: &Path) -> Result<Vec<OsString>> {
        if !response_files::has_any(self.said) {
            return Ok(words);
        }
        let path = folder.join("words");
        let written = fs::write(&path, response_files::text(&words));
        written.with_context(|| path.display().to_string())?;
        let mut word = OsString::from("@");
        word.push(path);
        Ok(vec![word])
    }

    /// How to name what the compiler makes besides objects.
    fn names_of_by_products(&self) -> by_products::Names {
        match by_products::are_wanted(&self.arguments) {
            true => by_products::names(self.compiler().args(self.said), self.is_clang),
            false => by_products::Names::new(),
        }
    }

    /// Where the object of a source goes.
    fn object(&self, source: &Path, folder: &Path) -> PathBuf {
        let stem = source.file_stem().unwrap_or(OsStr::new("a"));
        let name = Path::new(stem).with_extension("o");
        match (&self.arguments.output, self.arguments.only_compiles) {
            (Some(output), true) => output.clone(),
            (None, true) => name,
            (_, false) => folder.join(name),
        }
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new(&self.program[0]);
        give_back_to(command.args(&self.program[1..]));
        command
    }

    /// Compiles one file. If the user's compiler will not have it in pieces, counted or not, the
    /// reason.
    fn compile(&self, task: &Task, refused: Option<&str>) -> Result<Option<String>> {
        let stem = task.source.file_stem().unwrap_or(OsStr::new("a"));
        let text_path = task.folder.join(Path::new(stem).with_extension("i"));
        let output = self.preprocess(task, &text_path)?;
        if !output.status.success() {
            let complaint = first_complaint(&output);
            return Ok(Some(format!("cannot be preprocessed: {complaint}")));
        }
        let text = fs::read(&text_path).with_context(|| text_path.display().to_string())?;
        let name = task.source.to_string_lossy();
        let counted = match refused {
            Some(reason) => Err(reason.to_owned()),
            None => self.counted(&text, &name).map_err(|unreadable| {
                let Unreadable { file, line, reason } = unreadable;
                format!("it cannot be read at {file}:{line}: {reason}")
            }),
        };
        let reason = match counted {
            Ok(counted) => {
                let output = self.compile_text(&with_record(counted), &text_path, task)?;
                if output.status.success() {
                    std::io::stderr().write_all(&output.stderr)?;
                    return Ok(None);
                }
                let complaint = first_complaint(&output);
                format!("the compiler rejects its counted form: {complaint}")
            }
            Err(reason) => reason,
        };
        let not_counted = format!("{name}: not counted: {reason}");
        let plain = Counted {
            map: uncounted(&name, reason),
            text,
            declared: Vec::new(),
            is_raw: false,
            unexpanded: 0,
        };
        let output = self.compile_text(&with_record(plain), &text_path, task)?;
        if !output.status.success() {
            let complaint = first_complaint(&output);
            return Ok(Some(format!(
                "cannot be compiled once it is preprocessed: {complaint}"
            )));
        }
        std::io::stderr().write_all(&output.stderr)?;
        if refused.is_none() {
            talk::say(not_counted);
        }
        Ok(None)
    }

    fn counted(&self, text: &[u8], name: &str) -> Result<Counted, Unreadable> {
        let folder = env::current_dir().unwrap_or_default();
        let wish = Wish {
            options: Options {
                name: name.to_owned(),
                declarations: match self.wants_declarations_first() {
                    true => Declarations::First,
                    false => Declarations::Anywhere,
                },
                openmp: self.arguments.has_like("-fopenmp"),
                is_raw: false,
            },
            every_block: self.every_block,
            folder: folder.to_string_lossy().into_owned(),
        };
        planned::count(text, &wish, &Gnu)
    }

    /// Whether the user wants to hear of statements before declarations.
    fn wants_declarations_first(&self) -> bool {
        let old = [
            "-ansi",
            "-std=c89",
            "-std=c90",
            "-std=iso9899:1990",
            "-std=gnu89",
            "-std=gnu90",
        ];
        let is_old = old.iter().any(|it| self.arguments.has(it));
        self.arguments.has_like("-Wdeclaration-after-statement")
            || self
                .arguments
                .has_like("-Werror=declaration-after-statement")
            || is_old && (self.arguments.has_like("-pedantic") || self.arguments.has("-Wpedantic"))
    }

    fn preprocess(&self, task: &Task, text: &Path) -> Result<Output> {
        let mut command = self.compiler();
        command.args(self.shortened(self.arguments.to_preprocess(), task.folder)?);
        command.args(self.arguments.dependencies(task.object));
        command.arg("-E");
        // A comment may say that a case falls through.
        let reads_comments = ["-W", "-Wextra", "-Wimplicit-fallthrough"];
        let reads_comments = reads_comments.iter().any(|it| self.arguments.has(it))
            || self.arguments.has_like("-Wimplicit-fallthrough=");
        if reads_comments {
            command.arg("-C");
        }
        if self.is_clang {
            command.arg("-Wno-unused-command-line-argument");
        }
        if let Some(language) = task.language {
            command.arg("-x").arg(language);
        }
        // With -MD, gcc would take a name behind -o for that of the list of dependencies.
        let file = fs::File::create(text).with_context(|| text.display().to_string())?;
        let output = command
            .arg(task.source)
            .stdout(Stdio::from(file))
            .stderr(Stdio::piped())
            .stdin(Stdio::inherit())
            .spawn()
            .and_then(std::process::Child::wait_with_output)
            .with_context(|| format!("cannot run {}", self.program[0].display()))?;
        if output.status.success() {
            std::io::stderr().write_all(&output.stderr)?;
        }
        Ok(output)
    }

    fn compile_text(&self, text: &[u8], path: &Path, task: &Task) -> Result<Output> {
        fs::write(path, text).with_context(|| path.display().to_string())?;
        let mut command = self.compiler();
        command.args(self.shortened(self.arguments.to_compile(), task.folder)?);
        command.args(task.names);
        // The runtime is one long string; where everything is compiled at once in the end, there
        // would be as many of it as files.
        command.args([
            "-Wno-overlength-strings",
            "-fno-lto",
            "-c",
            "-x",
            "cpp-output",
        ]);
        if self.is_clang {
            // With -pedantic, newer ones complain of the preprocessor's own line markers. Which warnings older ones do not
            // know, they have told when they preprocessed the source.
            command.args([
                "-Wno-unused-command-line-argument",
                "-Wno-unknown-warning-option",
                "-Wno-gnu-line-marker",
            ]);
        }
        command.arg(path).arg("-o").arg(task.object);
        command
            .output()
            .with_context(|| format!("cannot run {}", self.program[0].display()))
    }

    /// What the user said, with objects in the place of sources.
    fn remaining(&self, objects: &[PathBuf]) -> Result<Vec<OsString>> {
        let mut objects = objects.iter();
        let mut words: Vec<OsString> = Vec::new();
        for word in &self.arguments.words {
            match word {
                Word::C(..) if self.arguments.only_compiles => (),
                Word::C(_, language) => {
                    let object = objects.next().context("a source without an object")?;
                    words.extend(["-x".into(), "none".into(), object.into()]);
                    words.extend(language.iter().flat_map(|it| ["-x".into(), (*it).clone()]));
                }
                Word::File(file) => words.push(file.clone()),
                Word::Language(language) => words.extend(["-x".into(), language.clone()]),
                Word::Option(these) | Word::Linking(these) | Word::Preprocessing(these) => {
                    words.extend(these.iter().cloned());
                }
                Word::Dependency(_) | Word::Purpose => (),
            }
        }
        if self.arguments.only_compiles {
            words.push("-c".into());
        }
        if let Some(output) = &self.arguments.output {
            words.extend(["-o".into(), output.into()]);
        }
        Ok(words)
    }
}

/// One file to compile.
struct Task<'a> {
    source: &'a Path,
    /// What the user said it is written in.
    language: Option<&'a OsString>,
    /// Where the result goes.
    object: &'a Path,
    /// For what is made on the way.
    folder: &'a Path,
    /// Words that name what the compiler makes besides.
    names: &'a [OsString],
}

/// What is left for the compiler to do.
pub enum Rest {
    Nothing,
    /// What the user said, for this reason. Most often the compiler has something to say about it.
    Everything(String),
    /// These words, while the folder is there.
    These(Vec<OsString>, tempfile::TempDir),
}

fn with_record(counted: Counted) -> Vec<u8> {
    let ending = record::ending(&counted.map, &counted.text);
    let mut text = counted.text;
    text.extend_from_slice(ending.as_bytes());
    text
}

/// The map of a text that is not counted.
fn uncounted(name: &str, reason: String) -> TextMap {
    TextMap {
        name: name.to_owned(),
        refusals: vec![Refusal {
            subject: format!("all of {name}"),
            file: name.to_owned(),
            line: 0,
            reason,
        }],
        ..TextMap::default()
    }
}

fn first_complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let complaint = said
        .lines()
        .find(|line| line.to_lowercase().contains("error"));
    complaint.unwrap_or_default().to_owned()
}
