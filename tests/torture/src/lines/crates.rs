//! How is a program in Rust built several ways?
//!
//! By cargo, in a package made for nothing else, so that the crates it uses are built in the same way
//! as itself. Nothing is fetched: the registry has been asked before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use headcount_ground::child;
use headcount_ground::program::Program;
use headcount_ground::registry;

use super::{BUILT, LIMIT};

/// The Rust of this machine.
pub struct Rust {
    /// Where its own LLVM's tools are, if they are installed: others cannot read what it writes.
    tools: Option<PathBuf>,
}

impl Rust {
    pub fn find() -> Rust {
        let asked = Command::new("rustc")
            .args(["--print", "target-libdir"])
            .output();
        let library = asked.ok().and_then(|it| String::from_utf8(it.stdout).ok());
        let tools = library.map(|it| Path::new(it.trim()).with_file_name("bin"));
        Rust {
            tools: tools.filter(|it| it.join("llvm-cov").exists()),
        }
    }

    pub fn has_llvm_cov(&self) -> bool {
        self.tools.is_some()
    }

    /// `llvm-profdata` and `llvm-cov`.
    pub fn tools(&self) -> Result<[PathBuf; 2]> {
        let folder = self.tools.as_ref().context(MISSING)?;
        Ok(["llvm-profdata", "llvm-cov"].map(|it| folder.join(it)))
    }

    /// Whether a file is of the standard library or of a crate in it, which nobody builds here.
    pub fn is_of_std(file: &Path) -> bool {
        let built_elsewhere = ["/rustc", "/rust/deps"];
        built_elsewhere.iter().any(|it| file.starts_with(it))
            || file.display().to_string().contains("/lib/rustlib/src/")
    }

    /// What readers of the table should know.
    pub fn note(&self) -> &'static str {
        match self.tools {
            Some(_) => {
                "Rust: judged where llvm-cov and our own count of the build without optimisation \
                 agree; so the row -O0 cannot show an error.\n"
            }
            None => MISSING,
        }
    }
}

const MISSING: &str = "Rust: judged by our own count of the build without optimisation alone, so \
                       the row -O0 says nothing; for llvm-cov, `rustup component add llvm-tools`.\n";

/// A build for llvm-cov.
pub fn instrumented(program: &Program, folder: &Path) -> Result<PathBuf> {
    built(program, "O0", "-C instrument-coverage", folder)
}

/// A build at a level: `O2`, or `O2-flto`.
pub fn optimised(program: &Program, level: &str, folder: &Path) -> Result<PathBuf> {
    built(program, level, "", folder)
}

fn built(program: &Program, level: &str, flags: &str, folder: &Path) -> Result<PathBuf> {
    fs::write(folder.join("Cargo.toml"), manifest(program, level))?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = folder.join("target");
    let mut build = Command::new(cargo);
    build
        .args(["build", "--release", "--offline", "--target-dir"])
        .arg(&target)
        .env("RUSTFLAGS", flags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    child::run_or_bail(build.current_dir(folder), folder, LIMIT)?;
    let built = folder.join(BUILT);
    fs::copy(target.join("release").join(BUILT), &built)?;
    fs::remove_dir_all(&target)?;
    Ok(built)
}

/// Of all levels, only the level differs: no checks that the others have not.
fn manifest(program: &Program, level: &str) -> String {
    let source = program.sources[0].display();
    let (opt, lto) = match level.strip_suffix("-flto") {
        Some(opt) => (opt, "\"fat\""),
        None => (level, "false"),
    };
    let opt = opt.trim_start_matches('O');
    format!(
        "{}\n[[bin]]\nname = \"{BUILT}\"\npath = \"{source}\"\n\n\
         [profile.release]\nopt-level = {opt}\nlto = {lto}\ndebug = 2\n",
        registry::alone(BUILT, &program.libraries)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_ground::program::Language;

    #[test]
    fn a_level_is_a_profile() {
        let program = Program {
            name: "p".to_owned(),
            language: Language::Rust,
            sources: vec!["/x/p.rs".into()],
            flags: Vec::new(),
            libraries: vec!["a = \"=1.0.0\"".to_owned()],
            arguments: Vec::new(),
        };
        let text = manifest(&program, "O2-flto");
        for part in [
            "a = \"=1.0.0\"",
            "opt-level = 2\nlto = \"fat\"",
            "path = \"/x/p.rs\"",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(manifest(&program, "O0").contains("opt-level = 0\nlto = false"));
    }
}
