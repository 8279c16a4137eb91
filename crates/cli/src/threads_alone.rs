//! Some threads of a run alone, as if nothing else had been counted.

use anyhow::{Context, Result, bail};
use headcount_model::{CountedThread, Run, ThreadCounts};
use headcount_profile::{Profile, RunInfo, RunSelection};
use headcount_report::{Pattern, visible};

use crate::readings;
use crate::thread_readings::{ThreadCounters, ThreadReadings};
use crate::verbs::{NO_COUNTS, NO_THREADS};

/// Which threads a user means.
#[derive(Clone, Copy, Debug)]
pub struct WantedThreads<'a> {
    /// A name or a number; any, if there is none.
    pub thread: Option<&'a str>,
    /// The same for their process.
    pub process: Option<&'a str>,
}

impl WantedThreads<'_> {
    /// Those of a run.
    fn of(&self, counts: &ThreadCounts) -> Vec<CountedThread> {
        let known = counts.threads.iter().filter(|it| !it.is_rest());
        let is_in_wanted = |thread: &CountedThread| {
            let mut others = counts.threads.iter();
            others.any(|it| {
                it.process == thread.process
                    && it.pid == it.tid
                    && is_meant(self.process, &it.name, it.pid)
            })
        };
        let wanted = known.filter(|it| {
            is_meant(self.thread, &it.name, it.tid)
                && (is_number(self.process, it.pid) || is_in_wanted(it))
        });
        wanted.cloned().collect()
    }

    /// In words.
    fn words(&self) -> String {
        let thread = self.thread.map(|it| format!("thread {it}"));
        let process = self.process.map(|it| format!("process {it}"));
        let both: Vec<String> = thread.into_iter().chain(process).collect();
        both.join(" of ")
    }
}

fn is_meant(wanted: Option<&str>, name: &str, number: u32) -> bool {
    is_number(wanted, number) || wanted.is_some_and(|it| Pattern::new(it).matches(name))
}

/// Who wants any wants this one, too.
fn is_number(wanted: Option<&str>, number: u32) -> bool {
    wanted.is_none_or(|it| it.parse() == Ok(number))
}

/// A profile in memory with what the wanted threads of the chosen runs counted, and nothing else.
pub fn alone(
    profile: &Profile,
    runs: &RunSelection,
    wanted: &WantedThreads<'_>,
) -> Result<Profile> {
    let found = profile.thread_counts(runs)?;
    if found.is_empty() {
        bail!("{NO_COUNTS}");
    }
    let mut made = Profile::in_memory()?;
    let mut names = Vec::new();
    let mut has_any = false;
    for (info, counts) in found {
        let Some(counts) = counts else {
            bail!("run {}: {NO_THREADS}", info.id);
        };
        let chosen = wanted.of(&counts);
        if chosen.is_empty() {
            names.extend(counts.threads.into_iter().map(|it| it.name));
            continue;
        }
        has_any = true;
        let damaged = || format!("run {}: what its threads counted makes no sense", info.id);
        let mut sum = ThreadReadings::default();
        for thread in &chosen {
            sum.add(
                &ThreadReadings::unpack(&thread.counts).with_context(damaged)?,
                1,
            );
        }
        let mut counters = ThreadCounters::unpack(&counts.modules).with_context(damaged)?;
        counters.fill(&sum).with_context(damaged)?;
        let modules = profile.modules_of(info.id)?;
        let run = Run {
            system_calls: sum.system_calls(),
            notes: notes(&info, &chosen),
            threads: Some(ThreadCounts {
                modules: counts.modules,
                threads: chosen,
            }),
            ..run_of(info)
        };
        made.add_encoded(&modules, &run, &counters.counted())?;
    }
    match has_any {
        true => Ok(readings::with_counts(made)),
        false => bail!("{}", nothing_like(wanted, names)),
    }
}

/// What is known of a run, but for its processes.
fn run_of(info: RunInfo) -> Run {
    Run {
        key: info.key,
        batch: info.batch,
        phase: info.phase,
        command: info.command,
        started: info.started,
        ended: info.ended,
        status: info.status,
        is_part: info.is_part,
        cpu: info.cpu,
        host: info.host,
        ..Run::default()
    }
}

fn notes(info: &RunInfo, chosen: &[CountedThread]) -> Vec<String> {
    let whose = match chosen {
        [it] => format!(
            "Only what thread {} ({}) of process {} counted.",
            it.tid,
            visible(&it.name),
            it.pid
        ),
        many => format!(
            "Only what {} threads counted.",
            headcount_report::thousands(many.len() as u64)
        ),
    };
    let mut notes = info.notes.clone();
    notes.push(whose);
    notes
}

/// What to say where no thread is meant.
fn nothing_like(wanted: &WantedThreads<'_>, mut names: Vec<String>) -> String {
    const MOST: usize = 8;
    names.retain(|it| !it.is_empty());
    names.sort();
    names.dedup();
    let more = if names.len() > MOST { ", …" } else { "" };
    names.truncate(MOST);
    let names: Vec<String> = names.iter().map(|it| visible(it).into_owned()).collect();
    format!(
        "there was no {}; threads were called {}{more}; `headcount report --by thread` lists them",
        visible(&wanted.words()),
        names.join(", "),
    )
}
