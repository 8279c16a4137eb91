//! What is a compiler told to do, word by word?

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A compiler's arguments, understood as far as compiling C needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// All of them, in order.
    pub words: Vec<Word>,
    /// Where `-o` says the result goes.
    pub output: Option<PathBuf>,
    /// Whether the compiler stops before linking (`-c`).
    pub only_compiles: bool,
    /// Whether the user wants to see what is made on the way (`-save-temps`).
    pub saves_temps: bool,
}

/// One argument, with its value if that is a word of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// A file with C in it, and the language the user said it is.
    C(PathBuf, Option<OsString>),
    /// Another file.
    File(OsString),
    /// An option that compiling needs.
    Option(Vec<OsString>),
    /// An option that only preprocessing needs.
    Preprocessing(Vec<OsString>),
    /// An option about dependencies (`-MD`).
    Dependency(Vec<OsString>),
    /// An option that only linking needs.
    Linking(Vec<OsString>),
    /// `-x language`
    Language(OsString),
    /// `-c`, `-o file` or `-save-temps`
    Purpose,
}

/// Options whose value is the next word, and what they are for.
const WITH_VALUE: [&str; 44] = [
    "-I",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-isystem",
    "-idirafter",
    "-iquote",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "-imultilib",
    "-A",
    "-Xpreprocessor",
    "-ivfsoverlay",
    "-cxx-isystem",
    "-include-pch",
    "-L",
    "-l",
    "-T",
    "-u",
    "-z",
    "-e",
    "-Xlinker",
    "-framework",
    "-rpath",
    "-MF",
    "-MT",
    "-MQ",
    "--param",
    "-Xassembler",
    "-Xclang",
    "-mllvm",
    "-target",
    "-arch",
    "-aux-info",
    "-B",
    "-dumpbase",
    "-dumpdir",
    "-wrapper",
    "--sysroot",
    "-G",
    "-specs",
];
const PREPROCESSING: usize = 18;
const LINKING: usize = 27;
const DEPENDENCY: usize = 30;

impl Arguments {
    pub fn new(arguments: &[OsString]) -> Self {
        let mut found = Self::default();
        let mut language: Option<OsString> = None;
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let text = word.to_string_lossy();
            let known = WITH_VALUE.iter().position(|it| *it == text);
            if let Some(known) = known {
                let pair = vec![word.clone(), rest.next().cloned().unwrap_or_default()];
                found.words.push(match known {
                    _ if known < PREPROCESSING => Word::Preprocessing(pair),
                    _ if known < LINKING => Word::Linking(pair),
                    _ if known < DEPENDENCY => Word::Dependency(pair),
                    _ => Word::Option(pair),
                });
                continue;
            }
            match text.as_ref() {
                "-o" => {
                    found.output = rest.next().map(PathBuf::from);
                    found.words.push(Word::Purpose);
                }
                "-c" => {
                    found.only_compiles = true;
                    found.words.push(Word::Purpose);
                }
                "-save-temps" | "--save-temps" | "-save-temps=cwd" | "-save-temps=obj"
                | "--save-temps=cwd" | "--save-temps=obj" => {
                    found.saves_temps = true;
                    found.words.push(Word::Purpose);
                }
                "-x" => {
                    let named = rest.next().cloned().unwrap_or_default();
                    language = Some(named.clone()).filter(|it| it != "none");
                    found.words.push(Word::Language(named));
                }
                "-" => found.file(word, language.as_ref()),
                _ if !text.starts_with('-') => found.file(word, language.as_ref()),
                _ => found.option(word, &text, &mut language),
            }
        }
        found
    }

    fn file(&mut self, word: &OsString, language: Option<&OsString>) {
        let extension = Path::new(word).extension();
        let is_c = match language {
            Some(language) => language == "c",
            None => extension == Some(OsStr::new("c")),
        };
        self.words.push(match is_c {
            true => Word::C(word.into(), language.cloned()),
            false => Word::File(word.clone()),
        });
    }

    fn option(&mut self, word: &OsString, text: &str, language: &mut Option<OsString>) {
        if let Some(output) = text.strip_prefix("-o").filter(|it| !it.is_empty()) {
            // `-objcmt-...` and the like are options of Objective C.
            if !text.starts_with("-objc") {
                self.output = Some(output.into());
                self.words.push(Word::Purpose);
                return;
            }
        }
        if let Some(named) = text.strip_prefix("-x").filter(|it| !it.is_empty()) {
            *language = Some(named.into()).filter(|it: &OsString| it != "none");
            self.words.push(Word::Language(named.into()));
            return;
        }
        let begins = |starts: &[&str]| starts.iter().any(|it| text.starts_with(it));
        let words = vec![word.clone()];
        self.words.push(match text {
            "-MD" | "-MMD" | "-MP" | "-MG" | "-MV" => Word::Dependency(words),
            _ if begins(&["-MF", "-MT", "-MQ", "-Wp,-M"]) => Word::Dependency(words),
            _ if begins(&[
                "-I",
                "-D",
                "-U",
                "-isystem",
                "-iquote",
                "-idirafter",
                "-Wp,",
            ]) =>
            {
                Word::Preprocessing(words)
            }
            "-shared" | "-static" | "-pie" | "-no-pie" | "-rdynamic" | "-s" | "-r"
            | "-static-pie" | "-static-libgcc" | "-nostartfiles" | "-nodefaultlibs"
            | "-nostdlib" => Word::Linking(words),
            _ if begins(&["-l", "-L", "-Wl,", "-fuse-ld="]) => Word::Linking(words),
            _ => Word::Option(words),
        });
    }

    /// The C files.
    pub fn sources(&self) -> impl Iterator<Item = &Path> {
        self.words.iter().filter_map(|word| match word {
            Word::C(path, _) => Some(path.as_path()),
            _ => None,
        })
    }

    /// Whether an option is among them.
    pub fn has(&self, option: &str) -> bool {
        self.words.iter().any(|word| match word {
            Word::Option(words) | Word::Linking(words) => words.iter().any(|it| it == option),
            _ => false,
        })
    }

    /// Whether an option begins like this.
    pub fn has_like(&self, start: &str) -> bool {
        self.words.iter().any(|word| match word {
            Word::Option(words) => words
                .iter()
                .any(|it| it.to_string_lossy().starts_with(start)),
            _ => false,
        })
    }

    /// The words that preprocess a file, but for the file and the output.
    pub fn to_preprocess(&self) -> Vec<OsString> {
        self.filtered(|word| matches!(word, Word::Option(_) | Word::Preprocessing(_)))
    }

    /// The words that compile a preprocessed file.
    pub fn to_compile(&self) -> Vec<OsString> {
        self.filtered(|word| matches!(word, Word::Option(_)))
    }

    fn filtered(&self, is_wanted: impl Fn(&Word) -> bool) -> Vec<OsString> {
        let wanted = self.words.iter().filter(|word| is_wanted(word));
        wanted.flat_map(Word::spelled).cloned().collect()
    }

    /// The words that write down what a file depends on, for an object of this name.
    pub fn dependencies(&self, object: &Path) -> Vec<OsString> {
        let all: Vec<OsString> = self.filtered(|word| matches!(word, Word::Dependency(_)));
        if !all.iter().any(|it| it == "-MD" || it == "-MMD") {
            return all;
        }
        let has = |start: &str| all.iter().any(|it| it.to_string_lossy().starts_with(start));
        let mut words = all.clone();
        if !has("-MF") {
            words.push("-MF".into());
            words.push(object.with_extension("d").into());
        }
        if !has("-MT") && !has("-MQ") {
            words.push("-MQ".into());
            words.push(object.into());
        }
        words
    }
}

impl Word {
    fn spelled(&self) -> &[OsString] {
        match self {
            Self::Option(words)
            | Self::Preprocessing(words)
            | Self::Dependency(words)
            | Self::Linking(words) => words,
            Self::File(word) | Self::Language(word) => std::slice::from_ref(word),
            Self::C(..) | Self::Purpose => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Arguments {
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        Arguments::new(&words)
    }

    fn joined(words: &[OsString]) -> String {
        let words: Vec<_> = words.iter().map(|it| it.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn words_go_to_the_step_that_needs_them() {
        let it =
            arguments("-O2 -DX=1 -I inc -MD -Wl,-z,now a.c b.o -lm -o prog -include h.h -x c -");
        assert_eq!(joined(&it.to_preprocess()), "-O2 -DX=1 -I inc -include h.h");
        assert_eq!(joined(&it.to_compile()), "-O2");
        let sources: Vec<_> = it.sources().collect();
        assert_eq!(sources, [Path::new("a.c"), Path::new("-")]);
        assert_eq!(it.output.as_deref(), Some(Path::new("prog")));
        assert!(!it.only_compiles);
        let object = Path::new("out/a.o");
        assert_eq!(
            joined(&it.dependencies(object)),
            "-MD -MF out/a.d -MQ out/a.o"
        );
    }

    #[test]
    fn other_languages_are_not_ours() {
        let it = arguments("-c -x c++ a.c -x none b.c c.cc -oout.o");
        assert_eq!(it.sources().collect::<Vec<_>>(), [Path::new("b.c")]);
        assert_eq!(it.output.as_deref(), Some(Path::new("out.o")));
        assert!(it.only_compiles);
    }
}
