//! Code that the program makes itself while it runs: it is not counted, but how much of the time
//! it takes is found out by looking now and then where its threads are.

use std::io;

use crate::journal::Entry;
use crate::kernel;
use crate::monitor::Monitor;
use crate::proc::{self, Mapping};
use crate::wait::Stopped;

/// Where threads were found that ran, in processes with such code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    all: u64,
    in_made_code: u64,
}

impl Monitor<'_> {
    /// Takes notice of code that a process has made.
    pub fn notice_made_code(&mut self, space: usize, mappings: &[Mapping]) -> io::Result<()> {
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        let is_made = |it: &&Mapping| {
            let is_made = it.executable && it.file.1 == 0 && !it.is_kernels();
            is_made && !space.copies.is_ours(it.range.start)
        };
        let made = mappings.iter().filter(is_made);
        space.copies.made_code = made.map(|it| it.range.clone()).collect();
        if space.copies.made_code.is_empty() || self.looks.is_some() {
            return Ok(());
        }
        self.looks = Some(Looks::default());
        self.requests.tick();
        self.journal.write(&Entry::Note(
            "Code that the program itself makes while it runs (just in time) is not counted."
                .into(),
        ))
    }

    /// Stops the threads for a moment that run in processes with such code. (Those that wait are
    /// left alone: some system calls would notice.)
    pub fn look_at_threads(&mut self) -> io::Result<()> {
        for (tid, thread) in &mut self.threads {
            let space = self.spaces.get(&thread.space);
            let has_made_code = space.is_some_and(|it| !it.copies.made_code.is_empty());
            if has_made_code && proc::is_running(*tid) {
                thread.is_looked_at = true;
                kernel::interrupt(*tid)?;
            }
        }
        Ok(())
    }

    /// A thread was stopped to be looked at, if it was.
    pub fn look_at_thread(&mut self, stopped: &Stopped) -> io::Result<()> {
        let thread = self.thread(stopped);
        if !std::mem::take(&mut thread.is_looked_at) {
            return Ok(());
        }
        let space = thread.space;
        let at = stopped.instruction_pointer()?;
        let made = self.spaces.get(&space).map(|it| &it.copies.made_code);
        let is_there = made.is_some_and(|it| it.iter().any(|range| range.contains(&at)));
        if let Some(looks) = &mut self.looks {
            looks.all += 1;
            looks.in_made_code += u64::from(is_there);
        }
        Ok(())
    }

    /// Tells how much of the time was spent in such code.
    pub fn tell_made_code(&mut self) -> io::Result<()> {
        let Some(Looks { all, in_made_code }) = self.looks.filter(|it| it.all > 0) else {
            return Ok(());
        };
        let share = 100 * in_made_code / all;
        self.journal.write(&Entry::Note(format!(
            "Such code took about {share} % of the time: threads that ran were in it at \
             {in_made_code} of {all} looks."
        )))
    }
}
