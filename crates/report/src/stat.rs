//! The same program several times: totals on one screen, and which functions vary.

use crate::diff::variation;
use crate::events::{EventSums, FindEvents, FunctionEvents, WantedEvents};
use crate::glob::base_name;
use crate::json::string;
use crate::names::functions;
use crate::rows::Tally;
use crate::table::Unit;
use crate::{Error, RunSummary, share, text, thousands, visible};
use headcount_model::{Counted, Event};
use std::collections::BTreeMap;

/// What the runs of a program have in common, and what not.
#[derive(Clone, Debug, Default)]
pub struct Stat {
    runs: Vec<Totals>,
    /// Instructions executed in each run, by module and function.
    functions: BTreeMap<(String, String), Vec<u64>>,
    /// How many functions of the last run were not all counted.
    uncounted: usize,
}

/// The totals of one run.
#[derive(Clone, Debug)]
struct Totals {
    run: RunSummary,
    executed: u64,
    /// Calls made and conditional branches met, where every instruction is known.
    calls: Option<u64>,
    branches: Option<u64>,
    /// How many functions ran, and how many modules had one that did.
    functions: u64,
    modules: u64,
    processes: u64,
    threads: u64,
}

impl Totals {
    /// What one and several of them are called in text, and what they are called in JSON.
    const WORDS: [([&str; 2], &str); 7] = [
        (
            ["instruction executed", "instructions executed"],
            "executed",
        ),
        (["call", "calls"], "calls"),
        (["conditional branch", "conditional branches"], "branches"),
        (["function reached", "functions reached"], "functions"),
        (["module", "modules"], "modules"),
        (["process", "processes"], "processes"),
        (["thread", "threads"], "threads"),
    ];

    fn numbers(&self) -> [Option<u64>; 7] {
        [
            Some(self.executed),
            self.calls,
            self.branches,
            Some(self.functions),
            Some(self.modules),
            Some(self.processes),
            Some(self.threads),
        ]
    }
}

/// How many functions are shown as the hottest.
const HOTTEST: usize = 5;

impl Stat {
    /// Adds a run: its counts, and how many processes and threads it had. `find` knows the events of
    /// instructions.
    pub fn add(
        &mut self,
        run: RunSummary,
        counted: &[Counted],
        [processes, threads]: [u64; 2],
        find: FindEvents<'_>,
    ) -> Result<(), Error> {
        let before = self.runs.len();
        let mut totals = Totals {
            run,
            executed: 0,
            calls: None,
            branches: None,
            functions: 0,
            modules: 0,
            processes,
            threads,
        };
        let wanted = WantedEvents::new(Unit::Function, &[Event::Calls, Event::Branches], find);
        let mut events = EventSums::default();
        self.uncounted = 0;
        for module in counted {
            let reached = totals.functions;
            for named in functions(module, true) {
                let Some(executed) = Tally::of(&named)?.executed.value() else {
                    self.uncounted += 1;
                    continue;
                };
                let sum = totals.executed.checked_add(executed);
                totals.executed = sum.ok_or(Error::TooLarge)?;
                totals.functions += u64::from(executed > 0);
                events.join(FunctionEvents::new(&named, &wanted).all(&named)?)?;
                let key = (named.module_path.to_string(), named.name.to_string());
                let counts = self.functions.entry(key).or_default();
                // Of a module that comes late, nothing ran before.
                counts.resize(before + 1, 0);
                counts[before] += executed;
            }
            totals.modules += u64::from(totals.functions > reached);
        }
        (totals.calls, totals.branches) = (events.exactly(0), events.exactly(1));
        self.runs.push(totals);
        Ok(())
    }

    /// Functions that did not execute the same number of instructions in every run: lowest,
    /// highest, module and name; the widest range first.
    fn varying(&self) -> Vec<Varying<'_>> {
        let runs = self.runs.len();
        let mut varying = Vec::new();
        for ((module, function), counts) in &self.functions {
            // Of a module that was missing in the last runs, nothing ran there.
            let mut counts = counts.clone();
            counts.resize(runs, 0);
            let (lowest, highest) = range(counts.iter().copied());
            if lowest != highest {
                varying.push(Varying {
                    module,
                    function,
                    lowest,
                    highest,
                    counts,
                });
            }
        }
        varying.sort_by_key(|it| std::cmp::Reverse(it.highest - it.lowest));
        varying
    }

    /// For people.
    pub fn text(&self, top: usize) -> String {
        let Some(first) = self.runs.first() else {
            return String::new();
        };
        let runs = match self.runs.len() {
            1 => String::new(),
            many => format!(": {} runs", thousands(many as u64)),
        };
        let mut out = format!("\n {}{runs}\n\n", text::command(&first.run));
        for (place, ([one, many], _)) in Totals::WORDS.into_iter().enumerate() {
            let numbers = self.runs.iter().map(|it| it.numbers()[place]);
            let Some(numbers) = numbers.collect::<Option<Vec<u64>>>() else {
                continue;
            };
            let (lowest, highest) = range(numbers.into_iter());
            let what = if highest == 1 { one } else { many };
            out.push_str(&match lowest == highest {
                true => format!("{:>20}  {what}\n", thousands(lowest)),
                false => format!(
                    "{:>20}  to {} {what} ({} apart, {})\n",
                    thousands(lowest),
                    thousands(highest),
                    thousands(highest - lowest),
                    share(highest - lowest, highest)
                ),
            });
        }
        if self.uncounted > 0 {
            let functions = if self.uncounted == 1 {
                "function"
            } else {
                "functions"
            };
            let uncounted = thousands(self.uncounted as u64);
            out.push_str(&format!("{uncounted:>20}  {functions} not counted\n"));
        }
        out.push_str(&self.hottest_text());
        if self.runs.len() > 1 {
            out.push_str(&self.varying_text(top));
        }
        out
    }

    /// The functions of the last run that executed most.
    fn hottest_text(&self) -> String {
        let last = self.runs.len().saturating_sub(1);
        let whole = self.runs.last().map_or(0, |it| it.executed);
        let executed = |counts: &Vec<u64>| counts.get(last).copied().unwrap_or(0);
        let mut hottest: Vec<_> = self.functions.iter().collect();
        hottest.retain(|(_, counts)| executed(counts) > 0);
        hottest.sort_by_key(|(_, counts)| std::cmp::Reverse(executed(counts)));
        if hottest.is_empty() {
            return String::new();
        }
        let mut out = format!("\n{:>20}  {:>6}  hottest functions\n", "executed", "");
        for ((module, function), counts) in hottest.into_iter().take(HOTTEST) {
            let executed = executed(counts);
            out.push_str(&format!(
                "{:>20}  {:>6}  {} ({})\n",
                thousands(executed),
                share(executed, whole),
                visible(function),
                visible(base_name(module)),
            ));
        }
        out
    }

    fn varying_text(&self, top: usize) -> String {
        let varying = self.varying();
        if varying.is_empty() {
            return "\n Every function executed the same in every run.\n".to_owned();
        }
        let of = thousands(self.functions.len() as u64);
        let mut out = format!(
            "\n {} of {of} functions differ between runs:\n\n{:>15}  {:>15}  function\n",
            thousands(varying.len() as u64),
            "lowest",
            "highest"
        );
        for it in varying.iter().take(top) {
            let cause = variation::cause(it.module, it.function);
            let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
            out.push_str(&format!(
                "{:>15}  {:>15}  {} ({}){cause}\n",
                thousands(it.lowest),
                thousands(it.highest),
                visible(it.function),
                visible(base_name(it.module)),
            ));
        }
        if varying.len() > top {
            let more = thousands((varying.len() - top) as u64);
            out.push_str(&format!("  ({more} more not shown)\n"));
        }
        out
    }

    /// For programs.
    pub fn json(&self) -> String {
        let mut out = String::from("{\"version\":1");
        crate::json::list(&mut out, "runs", &self.runs, |it, out| {
            crate::json::run(&it.run, out);
            out.pop(); // more belongs into it
            for ((_, name), number) in Totals::WORDS.into_iter().zip(it.numbers()) {
                let number = number.map_or("null".to_owned(), |it| it.to_string());
                out.push_str(&format!(",\"{name}\":{number}"));
            }
            out.push('}');
        });
        crate::json::list(&mut out, "varying", &self.varying(), |it, out| {
            out.push_str("{\"module\":");
            string(it.module, out);
            out.push_str(",\"function\":");
            string(it.function, out);
            let counts: Vec<String> = it.counts.iter().map(u64::to_string).collect();
            out.push_str(&format!(",\"executed\":[{}]", counts.join(",")));
            if let Some(cause) = variation::cause(it.module, it.function) {
                out.push_str(",\"may_vary\":");
                string(cause, out);
            }
            out.push('}');
        });
        out.push_str("\n}\n");
        out
    }
}

struct Varying<'a> {
    module: &'a str,
    function: &'a str,
    lowest: u64,
    highest: u64,
    /// In each run.
    counts: Vec<u64>,
}

fn range(counts: impl Iterator<Item = u64> + Clone) -> (u64, u64) {
    let lowest = counts.clone().min().unwrap_or(0);
    (lowest, counts.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        let run = RunSummary {
            command: vec!["./it".to_owned()],
            status: Some(0),
        };
        let mut stat = Stat::default();
        stat.add(run.clone(), &[], [1, 1], &|_| None).unwrap();
        let text = stat.text(1);
        assert!(
            text.contains("1  process\n") && text.contains("1  thread\n"),
            "{text}"
        );
        stat.add(run, &[], [2, 1], &|_| None).unwrap();
        let text = stat.text(1);
        assert!(text.contains("1  to 2 processes ("), "{text}");
        assert!(text.contains("1  thread\n"), "{text}");
    }
}
