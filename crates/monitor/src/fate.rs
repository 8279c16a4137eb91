//! How and where a program died.

use std::io;

use headcount_model::{LinkAddr, LoadAddr};
use libc::{c_int, pid_t};

use crate::image::Described;
use crate::journal::Entry;
use crate::monitor::{Monitor, Process};
use crate::proc;
use crate::wait::Stopped;

/// What a process died of, or may die of.
#[derive(Clone, Debug)]
pub struct Fate {
    /// The signal.
    pub signal: c_int,
    /// In words: ` in crash (crash.c:7)`; empty if unknown.
    pub place: String,
    /// Module and link address, where whoever reads the journal is to find the words.
    pub at: Option<(usize, LinkAddr)>,
}

impl Monitor<'_> {
    /// Where a thread is, in words.
    pub fn place(&mut self, stopped: &Stopped, at: LoadAddr) -> String {
        let thread = self.thread(stopped).clone();
        let loaded = self
            .spaces
            .get(&thread.space)
            .and_then(|space| space.module_at(at).cloned());
        let described = loaded.and_then(|loaded| {
            let image = self.catalog.images.get(loaded.image)?;
            image.describe(loaded.bias.undo(at)?)
        });
        if let Some(described) = described {
            return format!(" in {}", self.words(&described));
        }
        let mappings = proc::mappings(stopped.tid()).unwrap_or_default();
        let mapping = mappings.iter().find(|it| it.range.contains(&at.0));
        let module = mapping.map(|it| it.path.rsplit('/').next().unwrap_or(&it.path).to_owned());
        let mut place = match module {
            Some(module) if !module.is_empty() => format!(" in {module}"),
            _ => String::new(),
        };
        if let Some(words) = thread.last.and_then(|last| self.words_of_block(last)) {
            place.push_str(&format!("; the last counted block is in {words}"));
        }
        place
    }

    fn words_of_block(&self, (module, block): (u32, u32)) -> Option<String> {
        let image = self.catalog.images.get(module as usize)?;
        Some(self.words(&image.describe_block(block)?))
    }

    fn words(&self, described: &Described) -> String {
        let name = (self.settings.name)(&described.function);
        match &described.line {
            Some((file, line)) => format!("{name} ({file}:{line})"),
            None => name,
        }
    }

    /// A process was killed by a signal.
    pub fn died_of(&mut self, pid: pid_t, process: &Process, signal: c_int) -> io::Result<()> {
        let who = match pid == self.main {
            true => "The program",
            false => "A child process",
        };
        let fate = process.fate.as_ref().filter(|it| it.signal == signal);
        let place = fate.map_or("", |fate| fate.place.as_str());
        let name = name(signal);
        let what = format!("{who} was killed by {name}");
        self.journal.write(&match fate.and_then(|fate| fate.at) {
            Some((module, at)) => Entry::NoteAt {
                what,
                module,
                at: at.0,
            },
            None => Entry::Note(format!("{what}{place}.")),
        })
    }

    /// A thread ended so suddenly that nobody could see where it was.
    pub fn died_unseen(&mut self, last: (u32, u32)) -> io::Result<()> {
        let Some(words) = self.words_of_block(last) else {
            return Ok(());
        };
        self.journal.write(&Entry::Note(format!(
            "A thread was killed where it could not be seen: instructions of its last block, in \
             {words}, may be counted once too often."
        )))
    }
}

/// The name of a signal.
fn name(signal: c_int) -> String {
    let known = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGVTALRM, "SIGVTALRM"),
        (libc::SIGPROF, "SIGPROF"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    known
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or_else(
            || format!("signal {signal}"),
            |(_, name)| (*name).to_owned(),
        )
}
