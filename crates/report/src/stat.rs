//! The same program several times: totals on one screen, and which functions vary.

use crate::diff::variation;
use crate::glob::base_name;
use crate::json::string;
use crate::names::functions;
use crate::rows::Tally;
use crate::{Error, RunSummary, share, text, thousands, visible};
use headcount_model::Counted;
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
    functions: u64,
    processes: u64,
    threads: u64,
}

impl Totals {
    fn numbers(&self) -> [u64; 4] {
        [self.executed, self.functions, self.processes, self.threads]
    }
}

impl Stat {
    /// Adds a run: its counts, and how many processes and threads it had.
    pub fn add(
        &mut self,
        run: RunSummary,
        counted: &[Counted],
        [processes, threads]: [u64; 2],
    ) -> Result<(), Error> {
        let before = self.runs.len();
        let mut totals = Totals {
            run,
            executed: 0,
            functions: 0,
            processes,
            threads,
        };
        self.uncounted = 0;
        for module in counted {
            for named in functions(module, true) {
                let Some(executed) = Tally::of(&named)?.executed.value() else {
                    self.uncounted += 1;
                    continue;
                };
                let sum = totals.executed.checked_add(executed);
                totals.executed = sum.ok_or(Error::TooLarge)?;
                totals.functions += u64::from(executed > 0);
                let key = (named.module_path.to_string(), named.name.to_string());
                let counts = self.functions.entry(key).or_default();
                // Of a module that comes late, nothing ran before.
                counts.resize(before + 1, 0);
                counts[before] += executed;
            }
        }
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
        let words = [
            "instructions executed",
            "functions reached",
            "processes",
            "threads",
        ];
        for (place, what) in words.into_iter().enumerate() {
            let numbers = self.runs.iter().map(|it| it.numbers()[place]);
            let (lowest, highest) = range(numbers);
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
            let uncounted = thousands(self.uncounted as u64);
            out.push_str(&format!("{uncounted:>20}  functions not counted\n"));
        }
        if self.runs.len() > 1 {
            out.push_str(&self.varying_text(top));
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
            out.push_str(&format!(
                ",\"executed\":{},\"functions\":{},\"processes\":{},\"threads\":{}}}",
                it.executed, it.functions, it.processes, it.threads
            ));
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
