//! Which ways of counting are set side by side, and how is each one built?

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use headcount_ground::program::{Language, Program};
use headcount_ground::real::Amount;

/// One way to build and run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    Native,
    Headcount,
    /// `headcount cc --via source`
    Source,
    Gcov,
    GcovAtomic,
    ClangNative,
    ClangProfile,
    /// `headcount run` of the native build, with all its modules.
    Run,
    /// The same, following calls.
    Calls,
    ValgrindNone,
    /// The native build on a tenth of the work, for those below to be held against.
    BriefNative,
    /// `headcount run` with an engine that stops at every block.
    BriefRun,
    Callgrind,
}

pub const ALL: [Variant; 13] = [
    Variant::Native,
    Variant::Headcount,
    Variant::Source,
    Variant::Gcov,
    Variant::GcovAtomic,
    Variant::ClangNative,
    Variant::ClangProfile,
    Variant::Run,
    Variant::Calls,
    Variant::ValgrindNone,
    Variant::BriefNative,
    Variant::BriefRun,
    Variant::Callgrind,
];

/// What `headcount run` puts into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    Detour,
    Breakpoint,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Engine::Detour => "detour",
            Engine::Breakpoint => "breakpoint",
        }
    }
}

/// The commands that variants are made of.
pub struct Tools<'a> {
    pub headcount: &'a Path,
    /// The engine to ask `headcount run` for; `None`: its own choice.
    pub engine: Option<Engine>,
    pub gcc: &'a str,
    pub gxx: &'a str,
    pub clang: &'a str,
    pub clangxx: &'a str,
}

impl Variant {
    pub fn name(self) -> &'static str {
        match self {
            Variant::Native => "native",
            Variant::Headcount => "headcount cc",
            Variant::Source => "headcount cc --via source",
            Variant::Gcov => "gcc --coverage",
            Variant::GcovAtomic => "gcc --coverage -fprofile-update=atomic",
            Variant::ClangNative => "clang native",
            Variant::ClangProfile => "clang -fprofile-instr-generate",
            Variant::Run => "headcount run --modules all",
            Variant::Calls => "headcount run --modules all --calls",
            Variant::ValgrindNone => "valgrind --tool=none",
            Variant::BriefNative => "native, brief",
            Variant::BriefRun => "headcount run --modules all, brief",
            Variant::Callgrind => "valgrind --tool=callgrind",
        }
    }

    /// What a slowdown is measured against: the same compiler, the same work.
    pub fn baseline(self) -> Option<Variant> {
        match self {
            Variant::Native | Variant::ClangNative | Variant::BriefNative => None,
            Variant::Headcount | Variant::Source => Some(Variant::Native),
            Variant::Gcov | Variant::GcovAtomic => Some(Variant::Native),
            Variant::Run | Variant::Calls | Variant::ValgrindNone => Some(Variant::Native),
            Variant::ClangProfile => Some(Variant::ClangNative),
            Variant::BriefRun | Variant::Callgrind => Some(Variant::BriefNative),
        }
    }

    pub fn amount(self) -> Amount {
        match self {
            Variant::BriefNative | Variant::BriefRun | Variant::Callgrind => Amount::Brief,
            _ => Amount::Measure,
        }
    }

    /// Some are so slow, and so steady, that a few rounds must do.
    pub fn rounds(self, rounds: usize) -> usize {
        match self {
            Variant::Callgrind | Variant::BriefRun => rounds.min(1),
            Variant::ValgrindNone => rounds.min(3),
            _ => rounds,
        }
    }

    pub fn applies_to(self, language: Language) -> bool {
        match self {
            Variant::Source => language == Language::C,
            _ => self.built_as() == Variant::Native || language != Language::Rust,
        }
    }

    /// Variants that only run differently share one build.
    pub fn built_as(self) -> Variant {
        match self {
            Variant::Run | Variant::Calls | Variant::ValgrindNone => Variant::Native,
            Variant::BriefNative | Variant::BriefRun | Variant::Callgrind => Variant::Native,
            other => other,
        }
    }

    pub fn compiler(self, tools: &Tools, language: Language) -> Command {
        let clang = matches!(self, Variant::ClangNative | Variant::ClangProfile);
        let name = match language {
            Language::C if clang => tools.clang,
            Language::C => tools.gcc,
            Language::Cxx if clang => tools.clangxx,
            Language::Cxx => tools.gxx,
            Language::Rust => "rustc",
        };
        if !matches!(self, Variant::Headcount | Variant::Source) {
            return Command::new(name);
        }
        let mut command = Command::new(tools.headcount);
        command.arg("cc");
        if self == Variant::Source {
            command.args(["--via", "source"]);
        }
        command.args(["--", name]);
        command
    }

    pub fn flags(self, language: Language) -> Vec<String> {
        let words: &[&str] = match self.built_as() {
            _ if language == Language::Rust => &["-O", "--edition", "2024"],
            Variant::Gcov => &["-O2", "-w", "--coverage"],
            Variant::GcovAtomic => &["-O2", "-w", "--coverage", "-fprofile-update=atomic"],
            Variant::ClangProfile => &["-O2", "-w", "-fprofile-instr-generate"],
            _ => &["-O2", "-w"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// The command that is measured. What it leaves behind stays in `folder`.
    pub fn command(
        self,
        tools: &Tools,
        program: &Program,
        executable: &Path,
        folder: &Path,
    ) -> Command {
        let plain = program.command(executable);
        let mut command = match self {
            Variant::Run | Variant::BriefRun => counted(tools, &plain, &profile(folder), &[]),
            Variant::Calls => counted(tools, &plain, &profile(folder), &["--calls"]),
            Variant::ValgrindNone => behind(&["valgrind", "-q", "--tool=none"], &plain),
            Variant::Callgrind => {
                let words = ["-q", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
                behind(&[&["valgrind"], words.as_slice()].concat(), &plain)
            }
            _ => plain,
        };
        command.current_dir(folder);
        command.env("HEADCOUNT_DIR", folder.join("headcount.counts"));
        command.env("LLVM_PROFILE_FILE", folder.join("clang.profraw"));
        command
    }

    /// Does it say at the end what it did?
    pub fn says(self) -> bool {
        matches!(self, Variant::Run | Variant::Calls | Variant::BriefRun)
    }
}

/// Where `headcount run` adds its counts.
pub fn profile(folder: &Path) -> PathBuf {
    folder.join("run.db")
}

/// A command under `headcount run`, with all its modules, and with more options.
pub fn counted(tools: &Tools, plain: &Command, profile: &Path, more: &[&str]) -> Command {
    let mut run = Command::new(tools.headcount);
    run.args(["run", "--modules", "all"]);
    if let Some(engine) = tools.engine {
        run.args(["--engine", engine.name()]);
    }
    run.args(more);
    run.arg("--output").arg(profile).arg("--");
    run.arg(plain.get_program()).args(plain.get_args());
    run
}

fn behind(words: &[&str], plain: &Command) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command.arg(plain.get_program()).args(plain.get_args());
    command
}
