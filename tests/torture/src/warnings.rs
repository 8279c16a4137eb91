//! Does a text that compiles without a warning still do so when it is counted?
//!
//! In the compiler's strictest mood, in which every warning is an error; both the text that
//! `headcount cc --via source` makes and the one that `headcount csource` makes. Nothing is run.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use headcount_ground::child;
use headcount_ground::program::Program;

use crate::check::{Checker, Counts, Outcome};
use crate::headcount::Said;

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-c"];

impl Checker {
    /// Compiles a program three ways.
    pub fn check_warnings(&self, program: &Program, level: &str) -> Result<Outcome> {
        self.in_folders(program, level, |native, counted, written| {
            let mut flags = STRICT.map(str::to_owned).to_vec();
            flags.push(level.to_owned());
            flags.extend(program.flags.iter().cloned());
            for source in &program.sources {
                let plain = Command::new(&self.compiler);
                if let Some(warning) = self.complaint(plain, &flags, source, native)? {
                    let reason = format!("it has a warning uncounted: {warning}");
                    return Ok(Outcome::NotApplicable(reason));
                }
                let by_headcount = self.headcount.compiler(&self.compiler);
                if let Some(warning) = self.complaint(by_headcount, &flags, source, counted)? {
                    return Ok(Outcome::Failed(format!("cc --via source: {warning}")));
                }
                let text = written.join("counted.c");
                if let Err(reason) = self.write_counted(program, source, &text)? {
                    return Ok(Outcome::Failed(reason));
                }
                let plain = Command::new(&self.compiler);
                if let Some(warning) = self.complaint(plain, &flags, &text, written)? {
                    return Ok(Outcome::Failed(format!("csource: {warning}")));
                }
            }
            Ok(Outcome::Passed {
                said: Said::default(),
                counts: Counts::NotAsked,
            })
        })
    }

    /// What a compiler has to say about a file, be it an error or not.
    fn complaint(
        &self,
        mut compiler: Command,
        flags: &[String],
        source: &Path,
        folder: &Path,
    ) -> Result<Option<String>> {
        compiler.args(flags).arg(source).args(["-o", "object.o"]);
        let ended = child::run(compiler.current_dir(folder), folder, self.limits.compile)?;
        let is_silent = ended.succeeded() && ended.stderr.is_empty();
        Ok((!is_silent).then(|| ended.complaint()))
    }

    fn write_counted(
        &self,
        program: &Program,
        source: &Path,
        into: &Path,
    ) -> Result<Result<(), String>> {
        let folder = into.parent().unwrap_or(Path::new("."));
        // Comments stay: some say that control is meant to fall into the next case.
        let mut cpp = vec![self.compiler.clone(), "-E".to_owned(), "-C".to_owned()];
        cpp.extend(program.flags.iter().cloned());
        let mut command = Command::new(&self.headcount.program);
        command.arg("csource").arg("--cpp").arg(cpp.join(" "));
        command.arg(source).arg("-o").arg(into);
        let ended = child::run(command.current_dir(folder), folder, self.limits.compile)?;
        Ok(match ended.succeeded() && fs::exists(into)? {
            true => Ok(()),
            false => Err(format!("csource: {}", ended.complaint())),
        })
    }
}
