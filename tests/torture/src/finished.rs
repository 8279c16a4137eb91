//! Does this program behave the same under `headcount run`, and does every one
//! of its instructions, and every line that is one statement, have the count it
//! must have?

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use headcount_ground::child;
use headcount_ground::program::{Language, Program};
use headcount_oracle::count_within;

use crate::callgrind::ByAddress;
use crate::check::{Checker, Counts, Outcome, Ran, same_words};
use crate::compare::{Comparison, Difference, Judge, compare_instructions};
use crate::gcov::{self, ByLine};
use crate::headcount::{Run, Said};
use crate::line_table::{self, Lines};
use crate::statements;

/// Leave neither frames nor symbols of C. What the start files and archives bring along keeps its
/// frames.
const BARE: [&str; 4] = [
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-exceptions",
    "-s",
];

impl Checker {
    /// Checks one program at one level, built as anybody would build it.
    pub fn check_run(&self, program: &Program, level: &str, most_steps: u64) -> Result<Outcome> {
        self.in_folders(program, level, |native, counted, judged| {
            let flags = self.plain_flags(program, level);
            let plain = match self.native(program, &flags, native)? {
                Ok(ran) => ran,
                Err(reason) => return Ok(Outcome::NotApplicable(reason)),
            };
            // First, because it says how long all the rest may take.
            let stepped = match self.stepped(program, &plain, judged, most_steps)? {
                Ok(counts) => counts,
                Err(outcome) => return Ok(outcome),
            };
            let run = match self.run(program, &plain, counted)? {
                Ok(run) => run,
                Err(reason) => return Ok(Outcome::Failed(reason)),
            };
            let mut comparison =
                compare_instructions(&run.instructions, &stepped, Judge::SingleStep);
            if self.bare {
                comparison.set_uncounted_apart(&stepped);
            }
            // Some programs ask for optimisation themselves, and get it.
            let asks = program.flags.iter().any(|flag| flag.starts_with("-O"));
            if level == "-O0" && !asks && !self.bare {
                let gcov = self.lines(program, &flags, judged)?;
                let with_code = line_table::of(&plain.executable, judged)?;
                compare_lines(program, &run.lines, &gcov, &with_code, &mut comparison)?;
            }
            Ok(Outcome::Passed {
                said: run.said,
                counts: Counts::Compared(comparison),
            })
        })
    }

    /// Checks only that a program does what it does alone, with all its modules counted.
    pub fn check_behaviour(&self, program: &Program, level: &str) -> Result<Outcome> {
        self.in_folders(program, level, |native, counted, _| {
            let flags = self.plain_flags(program, level);
            let plain = match self.native(program, &flags, native)? {
                Ok(ran) => ran,
                Err(reason) => return Ok(Outcome::NotApplicable(reason)),
            };
            let run = self
                .headcount
                .run(program.command(&plain.executable), "all");
            Ok(match self.behaves(program, &plain, run, counted)? {
                Ok(()) => Outcome::Passed {
                    said: Said::default(),
                    counts: Counts::NotAsked,
                },
                Err(reason) => Outcome::Failed(reason),
            })
        })
    }

    /// As anybody would build it; or bare.
    pub fn plain_flags(&self, program: &Program, level: &str) -> Vec<String> {
        if program.language == Language::Rust {
            let level = level.replace("-O", "-Copt-level=");
            return ["-g", "--edition=2024", &level].map(str::to_owned).to_vec();
        }
        let mut flags = self.common_flags.clone();
        flags.push(level.to_owned());
        if self.bare {
            flags.extend(BARE.map(str::to_owned));
            return flags;
        }
        // What clang says by default, many a valgrind cannot read.
        let debug = match self.compiler.contains("clang") {
            true => "-gdwarf-4",
            false => "-g",
        };
        flags.push(debug.to_owned());
        flags
    }

    /// How often each instruction runs, found out by looking at every one.
    fn stepped(
        &self,
        program: &Program,
        native: &Ran,
        folder: &Path,
        most_steps: u64,
    ) -> Result<Result<ByAddress, Outcome>> {
        let mut command = self
            .headcount
            .counted(program.command(&native.executable), folder);
        command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(File::create(folder.join("child.stdout"))?)
            .stderr(File::create(folder.join("child.stderr"))?);
        Ok(match count_within(&mut command, most_steps)? {
            None => Err(Outcome::TooLong(format!("more than {most_steps} steps"))),
            Some(outcome) if outcome.status != 0 => Err(Outcome::Unjudged(format!(
                "does not pass when stepped: status {}",
                outcome.status
            ))),
            Some(outcome) => Ok(outcome.counts),
        })
    }

    /// Runs it under the tool: it must do what it does alone.
    fn run(&self, program: &Program, native: &Ran, folder: &Path) -> Result<Result<Run, String>> {
        let command = self
            .headcount
            .run(program.command(&native.executable), "main");
        if let Err(reason) = self.behaves(program, native, command, folder)? {
            return Ok(Err(reason));
        }
        let run = self
            .headcount
            .report_run(&native.executable, folder, self.limits.counted);
        Ok(run.map_err(|problem| format!("{problem:#}")))
    }

    /// Runs it counted, and says what it does that it does not do alone.
    pub fn behaves(
        &self,
        program: &Program,
        native: &Ran,
        counted: Command,
        folder: &Path,
    ) -> Result<Result<(), String>> {
        let mut command = self.headcount.counted(counted, folder);
        let limit = self.limits.counted;
        let ended = child::run(command.current_dir(folder), folder, limit)?;
        if !ended.succeeded() {
            let complaint = ended.complaint();
            return Ok(Err(format!(
                "does not pass when counted: {} {complaint}",
                ended.end
            )));
        }
        if !same_words(&ended, &native.ended) && self.is_steady(program, native, folder)? {
            return Ok(Err("writes something else when counted".to_owned()));
        }
        Ok(Ok(()))
    }

    /// What gcov says of the same source. Nothing, if the program replaces
    /// what gcov needs to write its counts, or ends without `exit`.
    pub fn lines(&self, program: &Program, flags: &[String], folder: &Path) -> Result<ByLine> {
        let mut flags = flags.to_vec();
        flags.push("--coverage".to_owned());
        if self.native(program, &flags, folder)?.is_err() {
            return Ok(ByLine::new());
        }
        gcov::lines(folder, self.limits.compile)
    }
}

/// The lines that hold one statement, that gcov knows, and that have code.
pub fn compare_lines(
    program: &Program,
    counted: &ByLine,
    gcov: &ByLine,
    with_code: &Lines,
    comparison: &mut Comparison,
) -> Result<()> {
    for source in &program.sources {
        let text = String::from_utf8_lossy(&fs::read(source)?).into_owned();
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        for line in statements::single(&text) {
            let key = (source.clone(), line);
            let has_code = with_code.contains(&(name.to_string(), line));
            let Some(judged) = gcov.get(&key).copied().filter(|_| has_code) else {
                continue;
            };
            let headcount = counted.get(&key).copied();
            if headcount == Some(judged) {
                comparison.equal_lines += 1;
                continue;
            }
            comparison.differences.push(Difference {
                subject: format!("{name}:{line}"),
                address: None,
                headcount,
                judge: Judge::Gcov,
                judged: Some(judged),
                more: 0,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_held_against_gcov_if_they_are_one_statement_and_have_code() {
        let folder = std::env::temp_dir().join(format!("headcount-lines-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let source = folder.join("a.c");
        fs::write(&source, "f ();\ng ();\nif (x) h ();\nva_end (v);\ni ();\n").unwrap();
        let program = Program {
            name: "a".to_owned(),
            language: headcount_ground::program::Language::C,
            sources: vec![source.clone()],
            flags: Vec::new(),
            libraries: Vec::new(),
            arguments: Vec::new(),
        };
        let by_line = |counts: &[(u32, u64)]| -> ByLine {
            let counts = counts.iter();
            counts
                .map(|(at, count)| ((source.clone(), *at), *count))
                .collect()
        };
        let gcov = by_line(&[(1, 1), (2, 2), (3, 3), (4, 1), (5, 0)]);
        let counted = by_line(&[(1, 1), (2, 3), (3, 9)]);
        let with_code = [1, 2, 3, 5].map(|line| ("a.c".to_owned(), line));
        let mut found = Comparison::default();
        compare_lines(
            &program,
            &counted,
            &gcov,
            &Lines::from(with_code),
            &mut found,
        )
        .unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.equal_lines, 1);
        let lines: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "a.c:2: headcount 3, gcov 2",
                "a.c:5: headcount nothing, gcov 0"
            ]
        );
    }
}
