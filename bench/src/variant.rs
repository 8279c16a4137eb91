//! Which ways of counting are set side by side, and how is each one built?

use std::path::Path;
use std::process::Command;

use headcount_ground::program::{Language, Program};
use headcount_ground::real::Amount;

/// One way to build and run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    Native,
    Headcount,
    Gcov,
    GcovAtomic,
    ClangNative,
    ClangProfile,
    /// The native build on a tenth of the work, for callgrind to be held against.
    BriefNative,
    Callgrind,
}

pub const ALL: [Variant; 8] = [
    Variant::Native,
    Variant::Headcount,
    Variant::Gcov,
    Variant::GcovAtomic,
    Variant::ClangNative,
    Variant::ClangProfile,
    Variant::BriefNative,
    Variant::Callgrind,
];

/// The commands that variants are made of.
pub struct Tools<'a> {
    pub headcount: &'a Path,
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
            Variant::Gcov => "gcc --coverage",
            Variant::GcovAtomic => "gcc --coverage -fprofile-update=atomic",
            Variant::ClangNative => "clang native",
            Variant::ClangProfile => "clang -fprofile-instr-generate",
            Variant::BriefNative => "native, brief",
            Variant::Callgrind => "valgrind --tool=callgrind",
        }
    }

    /// What a slowdown is measured against: the same compiler, the same work.
    pub fn baseline(self) -> Option<Variant> {
        match self {
            Variant::Native | Variant::ClangNative | Variant::BriefNative => None,
            Variant::Headcount | Variant::Gcov | Variant::GcovAtomic => Some(Variant::Native),
            Variant::ClangProfile => Some(Variant::ClangNative),
            Variant::Callgrind => Some(Variant::BriefNative),
        }
    }

    pub fn amount(self) -> Amount {
        match self {
            Variant::BriefNative | Variant::Callgrind => Amount::Brief,
            _ => Amount::Measure,
        }
    }

    /// Callgrind is so slow, and so steady, that a few rounds must do.
    pub fn rounds(self, rounds: usize) -> usize {
        match self {
            Variant::Callgrind => 1,
            _ => rounds,
        }
    }

    pub fn applies_to(self, language: Language) -> bool {
        match self {
            Variant::Native | Variant::BriefNative | Variant::Callgrind => true,
            _ => language != Language::Rust,
        }
    }

    /// Variants that only run differently share one build.
    pub fn built_as(self) -> Variant {
        match self {
            Variant::BriefNative | Variant::Callgrind => Variant::Native,
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
        if self != Variant::Headcount {
            return Command::new(name);
        }
        let mut command = Command::new(tools.headcount);
        command.args(["cc", "--", name]);
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
    pub fn command(self, program: &Program, executable: &Path, folder: &Path) -> Command {
        let plain = program.command(executable);
        let mut command = match self {
            Variant::Callgrind => {
                let mut valgrind = Command::new("valgrind");
                valgrind.args(["-q", "--tool=callgrind", "--callgrind-out-file=/dev/null"]);
                valgrind.arg(plain.get_program()).args(plain.get_args());
                valgrind
            }
            _ => plain,
        };
        command.current_dir(folder);
        command.env("HEADCOUNT_DIR", folder.join("headcount.counts"));
        command.env("LLVM_PROFILE_FILE", folder.join("clang.profraw"));
        command
    }
}
