//! Whose time is the time in libraries?
//!
//! After Coutant and Griswold (1979): each sample is booked on the innermost place of the user's own
//! code that led to it, and on the routine of a library that was running on its behalf. So the rows,
//! and the columns, add up to the samples.

use super::{Cost, UNKNOWN_CODE};
use crate::own::{Own, OwnModules};
use crate::source::UNKNOWN;
use headcount_model::{Frame, SampledModule, Samples, Site};
use std::collections::BTreeMap;

/// Stands for a routine where the user's own code ran itself.
pub const ITSELF: &str = "(itself)";

/// Stands for the user's own code where none led to a sample.
pub const NOBODY: &str = "(no code of yours)";

/// A place of the user's own code, and a routine that ran on its behalf.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Charge {
    /// The place: file, line and function.
    pub file: String,
    /// 0 if that is not known.
    pub line: u32,
    /// The linker's name.
    pub function: String,
    /// The routine, by the linker's name.
    pub routine: String,
    /// The path of its module.
    pub module: String,
}

/// What was spent on behalf of each place, by routine. `said` may say what is the user's own.
pub fn charge_back(samples: &[&Samples], said: Option<&Own>) -> BTreeMap<Charge, Cost> {
    let mut charges: BTreeMap<Charge, Cost> = BTreeMap::new();
    for samples in samples {
        let own = OwnModules::of(samples.modules.iter().map(|it| it.path.as_str()));
        let functions = samples.sites.iter().flat_map(|site| {
            let module = module_path(samples, site);
            let frames = site.frames.iter();
            frames.map(move |it| (module, it.file.as_str(), it.function.as_str()))
        });
        let own = own.with_installed(functions);
        for (stack, count) in samples.threads.iter().flat_map(|it| &it.samples) {
            let cost = Cost::of(*count, samples.interval);
            charges
                .entry(charge(samples, (&own, said), *stack))
                .or_default()
                .add(cost);
        }
    }
    charges
}

fn charge(samples: &Samples, own: (&OwnModules, Option<&Own>), stack: u32) -> Charge {
    let frames = frames(samples, stack);
    let is_own = |(site, frame): &(&Site, &Frame)| {
        let (own, said) = own;
        let (module, Frame { file, function, .. }) = (module_path(samples, site), frame);
        let said = said.and_then(|it| it.is_said(module, file, function));
        said.unwrap_or_else(|| own.has_function(module, file, function))
    };
    let own = frames.iter().position(is_own);
    let (routine, module) = match (own, frames.first()) {
        (Some(0), _) => (ITSELF.to_owned(), String::new()),
        (_, Some((site, frame))) => (
            named(&frame.function),
            module_path(samples, site).to_owned(),
        ),
        (_, None) => (UNKNOWN_CODE.to_owned(), String::new()),
    };
    let (file, line, function) = match own.and_then(|it| frames.get(it)) {
        Some((_, frame)) => {
            let file = match frame.file.is_empty() {
                true => UNKNOWN.to_owned(),
                false => frame.file.clone(),
            };
            (file, frame.line, named(&frame.function))
        }
        None => (UNKNOWN.to_owned(), 0, NOBODY.to_owned()),
    };
    Charge {
        file,
        line,
        function,
        routine,
        module,
    }
}

/// Of a site that has no names.
static NAMELESS: Frame = Frame {
    function: String::new(),
    file: String::new(),
    line: 0,
};

/// The frames of a stack, innermost first, inlined ones too. A site without a name has one without.
pub fn frames(samples: &Samples, stack: u32) -> Vec<(&Site, &Frame)> {
    let mut frames = Vec::new();
    for stack in samples.path(stack) {
        if let Some(site) = samples.sites.get(stack.site as usize) {
            let named = match site.frames.as_slice() {
                [] => std::slice::from_ref(&NAMELESS),
                named => named,
            };
            frames.extend(named.iter().rev().map(|it| (site, it)));
        }
    }
    frames
}

fn named(function: &str) -> String {
    match function.is_empty() {
        true => UNKNOWN_CODE.to_owned(),
        false => function.to_owned(),
    }
}

/// The path of the module that a site is in; empty, if it is in none.
fn module_path<'a>(samples: &'a Samples, site: &Site) -> &'a str {
    let module = site.module.and_then(|it| samples.modules.get(it as usize));
    module.map_or("", |it: &SampledModule| it.path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::{LinkAddr, SampledThread, Stack};

    /// `main` of a program calls `memcpy` of libc, which is also called by libc itself.
    fn samples() -> Samples {
        let module = |path: &str| SampledModule {
            path: path.to_owned(),
            file_id: String::new(),
        };
        let site = |module, name: &str, file: &str, line: u32| Site {
            module: Some(module),
            address: LinkAddr(line.into()),
            function: None,
            frames: vec![Frame {
                function: name.to_owned(),
                file: file.to_owned(),
                line,
            }],
        };
        let stack = |caller, site| Stack {
            caller,
            site,
            is_cut: false,
        };
        Samples {
            interval: 10,
            modules: vec![module("/home/u/prog"), module("/usr/lib/libc.so.6")],
            sites: vec![
                site(0, "main", "main.c", 5),
                site(1, "memcpy", "string.c", 9),
                site(1, "start", "start.c", 1),
            ],
            stacks: vec![
                stack(None, 0),
                stack(Some(0), 1),
                stack(None, 2),
                stack(Some(2), 1),
            ],
            threads: vec![SampledThread {
                samples: vec![(0, 1), (1, 20), (2, 3), (3, 4)],
                ..SampledThread::default()
            }],
            ..Samples::default()
        }
    }

    #[test]
    fn a_library_is_charged_to_the_line_that_called_it() {
        let samples = samples();
        let charges = charge_back(&[&samples], None);
        let shown: Vec<(&str, u32, &str, u64)> = charges
            .iter()
            .map(|(it, cost)| {
                (
                    it.function.as_str(),
                    it.line,
                    it.routine.as_str(),
                    cost.samples,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (NOBODY, 0, "memcpy", 4),
                (NOBODY, 0, "start", 3),
                ("main", 5, ITSELF, 1),
                ("main", 5, "memcpy", 20),
            ]
        );
    }

    #[test]
    fn who_says_what_is_their_own_is_charged_for_that() {
        let samples = samples();
        let said = crate::only::Only::new(&["start".to_owned()], &[], true);
        let own = Own::new(&[], said);
        let charges = charge_back(&[&samples], Some(&own));
        let of = |function: &str| -> u64 {
            let mut of = charges.iter().filter(|it| it.0.function == function);
            of.by_ref().map(|it| it.1.samples).sum()
        };
        assert_eq!((of("start"), of(NOBODY)), (7, 21));
    }

    #[test]
    fn charges_add_up_to_the_samples() {
        let samples = samples();
        let charges = charge_back(&[&samples, &samples], None);
        let sum: u64 = charges.values().map(|it| it.samples).sum();
        assert_eq!(sum, 2 * samples.total());
    }
}
