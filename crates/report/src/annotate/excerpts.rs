//! Which lines of which files show what the user chose?

use super::find::Chosen;
use super::listing::Excerpt;
use crate::count::Count;
use crate::events::WantedEvents;
use crate::inlined::InlinedRuns;
use crate::names::{Named, functions};
use crate::only::Only;
use crate::rows::{Tally, calls};
use crate::source::file_tallies;
use crate::{Error, text};
use headcount_model::Counted;
use std::collections::BTreeMap;

/// The excerpts of every file that is needed: all of a chosen file, and of a chosen function the
/// lines from its heading to the last one that has code of it.
///
/// Functions of which no source is known are not among them.
pub fn excerpts(
    counted: &[Counted],
    chosen: &Chosen,
    demangle: bool,
) -> Result<BTreeMap<String, Vec<Excerpt>>, Error> {
    let tallies = file_tallies(
        counted.iter().filter(|it| chosen.may_be_in(&it.module)),
        demangle,
        &Only::default(),
        &WantedEvents::default(),
    )?;
    let mut all: BTreeMap<String, Vec<Excerpt>> = BTreeMap::new();
    for file in &chosen.files {
        let sums = match tallies.get(file) {
            Some(tally) => sums(tally.code),
            None => "no code of it was counted".to_owned(),
        };
        let whole = Excerpt {
            heading: format!("{file}\n{sums}"),
            lines: 1..=u32::MAX,
        };
        all.insert(file.clone(), vec![whole]);
    }
    let inlined = InlinedRuns::of(counted);
    for (module, it) in counted.iter().enumerate() {
        for named in functions(it, demangle) {
            let (Some(file), Some((_, first))) = (named.own_file(), named.function.source) else {
                continue;
            };
            if !chosen.functions.contains(&(module, named.index)) || chosen.files.contains(file) {
                continue;
            }
            let excerpt = Excerpt {
                heading: function_heading(&named, &inlined)?,
                lines: first..=last_line(&named).max(first),
            };
            let of_file = all.entry(file.to_owned()).or_default();
            // Instances of one template share their lines: show those once.
            if of_file.iter().all(|it| it.lines != excerpt.lines) {
                of_file.push(excerpt);
            }
        }
    }
    Ok(all)
}

fn last_line(named: &Named<'_>) -> u32 {
    let own = named.function.source.map(|(file, _)| file);
    let runs = named.function.blocks.iter().flat_map(|block| &block.lines);
    let lines = runs.filter(|run| Some(run.file) == own).map(|run| run.line);
    lines.max().unwrap_or(0)
}

/// Name, place and sums of a function, in two lines.
pub fn function_heading(named: &Named<'_>, inlined: &InlinedRuns<'_>) -> Result<String, Error> {
    let calls = calls(named);
    let mut text = named.name.to_string();
    if let (Some(file), Some((_, line))) = (named.own_file(), named.function.source) {
        text.push_str(&format!("  {file}:{line}"));
    } else {
        text.push_str(&format!("  in {}", named.module_path));
    }
    let calls = match calls {
        Count::Unknown => "calls not counted".to_owned(),
        known => text::several(known, "call"),
    };
    let tally = Tally::of(named)?;
    text.push_str(&format!("\n{calls}, {}", sums(tally)));
    if tally.executed.is_never() && inlined.has(named) {
        text.push_str(", but it ran where it was inlined");
    }
    Ok(text)
}

fn sums(tally: Tally) -> String {
    let unit = if tally.of_source {
        "statement"
    } else {
        "instruction"
    };
    text::sums(&tally, unit)
}
