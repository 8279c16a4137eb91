//! What becomes of a program that has come to its last event.

use std::process::Command;

use anyhow::{Context, Result, bail};
use headcount_model::LinkAddr;
use headcount_monitor::{FileBytes, Outcome, Reached};
use headcount_report::thousands;

use crate::args::{Then, Until, UntilEvent};
use crate::cache;
use crate::selection::entries_of;
use crate::talk::say;

/// How far a program is to come, and what then.
#[derive(Clone, Debug)]
pub struct Countdown {
    pub until: Until,
    pub then: Then,
}

impl Countdown {
    /// The same for the monitor, which asks where functions begin.
    pub fn for_monitor<'a>(
        &self,
        entries: &'a dyn Fn(&str, &str, &FileBytes) -> Vec<LinkAddr>,
    ) -> headcount_monitor::Until<'a> {
        use headcount_monitor::UntilEvent as Event;
        headcount_monitor::Until {
            event: match self.until.event {
                UntilEvent::Instructions => Event::Instructions,
                UntilEvent::Calls(_) => Event::Calls(entries),
            },
            times: self.until.times,
            goes_on: self.then == Then::Report,
        }
    }

    /// Where in a file the functions begin whose calls are counted down.
    pub fn entries(&self, path: &str, key: &str, bytes: &FileBytes) -> Vec<LinkAddr> {
        let UntilEvent::Calls(name) = &self.until.event else {
            return Vec::new();
        };
        let facts = cache::facts(path, key, bytes).ok();
        let module = facts.and_then(|it| it.module().ok());
        module.map_or(Vec::new(), |it| entries_of(name, &it))
    }

    /// Says where a thread has come to its last event, or that none has.
    pub fn tell(&self, outcome: &Outcome) {
        let events = self.events();
        let Some(reached) = &outcome.reached else {
            say(format!("no thread came to {events}"));
            return;
        };
        let place = place_of(reached, outcome);
        say(format!(
            "thread {} has come to {events}, and stands at {}{place}; {} stops it there again",
            reached.tid,
            reached.at,
            self.again()
        ));
    }

    /// What was counted down, in words.
    fn events(&self) -> String {
        let times = thousands(self.until.times);
        match (&self.until.event, self.until.times) {
            (UntilEvent::Instructions, 1) => "1 instruction".to_owned(),
            (UntilEvent::Instructions, _) => format!("{times} instructions"),
            (UntilEvent::Calls(name), 1) => format!("1 call of {name}"),
            (UntilEvent::Calls(name), _) => format!("{times} calls of {name}"),
        }
    }

    /// The words that stop a program there again.
    fn again(&self) -> String {
        let times = self.until.times;
        match &self.until.event {
            UntilEvent::Instructions => format!("--until instructions={times}"),
            UntilEvent::Calls(name) => format!("--until 'calls({name})={times}'"),
        }
    }
}

fn place_of(reached: &Reached, outcome: &Outcome) -> String {
    let place = reached.in_file.and_then(|(module, at)| {
        let path = outcome.files.get(module)?.path();
        Some(format!(" ({at} in {path})"))
    });
    place.unwrap_or_default()
}

/// Does what is to be done with a program that was let go of, and stands still. How it ended.
pub fn act(then: Then, reached: &Reached) -> Result<i32> {
    let pid = reached.pid;
    let done = match then {
        Then::Gdb => on_process("gdb", &["-q", "-p"], pid),
        Then::Core => on_process("gcore", &[], pid),
        Then::Stop | Then::Report => {
            say(stopped(reached));
            Ok(())
        }
    };
    if then != Then::Stop {
        for pid in &reached.processes {
            headcount_monitor::kill(*pid, libc::SIGCONT);
        }
    }
    let status = headcount_monitor::wait_for_end(reached.main);
    done.and(status.context("waiting for the program"))
}

/// That everything stands still, and what to do about it.
fn stopped(reached: &Reached) -> String {
    let pid = reached.pid;
    let all: Vec<String> = reached.processes.iter().map(i32::to_string).collect();
    let all = all.join(" ");
    format!(
        "process {pid} is stopped and no longer traced: `gdb -p {pid}` looks at it, `kill -CONT \
         {all}` makes everything go on. headcount waits until the program ends"
    )
}

/// Runs a program of gdb's on a process.
fn on_process(program: &str, words: &[&str], pid: i32) -> Result<()> {
    let mut command = Command::new(program);
    let status = command.args(words).arg(pid.to_string()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("{program}: {status}"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("{program} is not here; it comes with gdb (`apt install gdb`)")
        }
        Err(error) => Err(error).context(program.to_owned()),
    }
}
