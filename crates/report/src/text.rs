//! The report for people: aligned, hottest first, and always ending with what was not counted.

mod columns;

use std::collections::BTreeMap;

use crate::count::Count;
use crate::escape::visible;
use crate::glob::short_name;
use crate::number::{share, thousands, time_text};
use crate::own::is_of_the_system;
use crate::report::{Refused, Report, RunSummary};
use crate::rows::Tally;
use crate::shorten::wrap;
use crate::source::UNKNOWN;
use crate::table::{Cell, Row};
use crate::time::Totals;
use columns::{aligned, layout};

/// However small a screen is, it shows so many rows.
const FEWEST: usize = 5;

/// Leaves out the last rows of a report that would not fit on a screen of so many lines, each of so
/// many columns.
pub fn fit(report: &mut Report, lines: usize, width: Option<usize>) {
    let has_folder = !common_folder(report).is_empty();
    let rows = std::mem::take(&mut report.table.rows);
    // Where rows are left out, a line says so.
    report.table.left_out += 1;
    let other = write(report, width).lines().count() + usize::from(has_folder);
    report.table.left_out -= 1;
    report.table.rows = rows;
    report
        .table
        .keep_top(lines.saturating_sub(other).max(FEWEST));
}

/// The report, in so many columns, if that is of any importance.
pub fn write(report: &Report, width: Option<usize>) -> String {
    let folder = common_folder(report);
    let mut front = heading(report);
    if !folder.is_empty() {
        front.push_str(&format!("sources in {}\n", visible(folder)));
    }
    let table = &report.table;
    let rows: Vec<&Row> = table.rows.iter().chain(&table.libraries).collect();
    let shown = aligned(layout(report, &rows, folder), width);
    let is_beyond = rows.is_empty() && report.is_beyond_source;
    let mut back = String::new();
    if rows.is_empty() && !is_beyond {
        back.push_str("  (no row)\n");
    }
    back.push_str(&left_out(report));
    // The notes tell of functions that were not selected; of what was only timed, nothing was counted.
    let is_counted = !report.modules.is_empty() || report.time.is_none();
    let is_all_told = is_counted && report.not_selected == 0 && !is_beyond;
    if is_all_told || !report.refused.is_empty() {
        back.push('\n');
        back.push_str(&not_counted(
            &report.refused,
            report.refused_elsewhere,
            &report.modules,
        ));
    }
    if !report.notes.is_empty() {
        back.push_str("\nNotes:\n");
        for note in &report.notes {
            back.push_str(&format!("  {}\n", visible(note)));
        }
    }
    let wrapped = |text: String| match width {
        Some(width) => wrap(&text, width),
        None => text,
    };
    format!("{}\n{shown}{}", wrapped(front), wrapped(back))
}

/// What of the table is not shown, in a line.
fn left_out(report: &Report) -> String {
    let table = &report.table;
    let parts = [
        (table.left_out, "more", "--all"),
        (table.in_libraries, "in libraries", "--all"),
        (table.never_ran, "never ran", "--never"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(rows, ..)| *rows > 0)
        .map(|(rows, what, option)| format!("{} {what}: {option}", thousands(rows as u64)))
        .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("  ({})\n", parts.join("; ")),
    }
}

fn heading(report: &Report) -> String {
    let mut out = String::new();
    match report.runs.as_slice() {
        [one] => out.push_str(&format!("{}\n", command(one))),
        many => out.push_str(&format!("sum of {} runs\n", many.len())),
    }
    if report.modules.is_empty() && report.time.is_some() {
        out.push_str("not counted; `headcount run` counts the same command\n");
    } else {
        for (of_source, words) in [(false, "instruction"), (true, "statement")] {
            let whole = report.totals.of_kind(of_source);
            // Where there is nothing of both, it is instructions that there are none of.
            let is_there =
                whole.instructions > 0 || !of_source && report.totals.source.instructions == 0;
            let own = report.own.as_ref().map(|it| it.of_kind(of_source));
            match own {
                _ if !is_there => continue,
                Some(own) if own.executed != whole.executed => {
                    out.push_str(&sums_of_own(whole, own, words));
                }
                _ => out.push_str(&sums(whole, words)),
            }
            out.push('\n');
        }
    }
    if let Some(time) = &report.time {
        out.push_str(&totals(time));
    }
    for line in &report.about {
        out.push_str(&format!("{}\n", visible(line)));
    }
    out
}

/// Where the time went, all in all.
fn totals(time: &Totals) -> String {
    let several = match time.runs {
        1 => String::new(),
        runs => format!(" of {runs} runs"),
    };
    let counted = match time.is_counted {
        true => ", while it was counted",
        false => "",
    };
    let samples = match time.sampled.samples {
        1 => "1 sample".to_owned(),
        many => format!("{} samples", thousands(many)),
    };
    // What was lost is missing in the program, and would be the kernel's.
    let at_most = if time.lost > 0 { "at most " } else { "" };
    format!(
        "{samples}{several}{counted}: {} in the program, {at_most}{} in the kernel, {} waiting\n",
        time_text(time.sampled.nanoseconds),
        time_text(time.in_kernel()),
        time_text(time.waiting)
    )
}

/// How much of the instructions (or what else there is) ran, in a line.
pub(crate) fn sums(tally: &Tally, unit: &str) -> String {
    let Tally {
        executed,
        never,
        instructions,
        ..
    } = *tally;
    if !executed.is_known() {
        let instructions = thousands(instructions);
        return format!("{unit}s executed: not known; not all {instructions} were counted");
    }
    format!(
        "{} executed; {never} of {} never ran",
        several(executed, unit),
        thousands(instructions)
    )
}

/// The same, where there is code of others.
fn sums_of_own(whole: &Tally, own: &Tally, unit: &str) -> String {
    if own.instructions == 0 {
        return format!(
            "{} executed, all in libraries",
            several(whole.executed, unit)
        );
    }
    let part = part_of(own.executed, whole.executed);
    format!(
        "{} executed, {part} of them in your own code; {} of {} there never ran",
        several(whole.executed, unit),
        own.never,
        thousands(own.instructions)
    )
}

/// `1 call`, `2 calls`.
pub fn several(count: Count, unit: &str) -> String {
    match count {
        Count::Exact(1) => format!("1 {unit}"),
        many => format!("{many} {unit}s"),
    }
}

/// A share is as sure as both its numbers are.
fn part_of(part: Count, whole: Count) -> String {
    match (part, whole) {
        (Count::Exact(part), Count::Exact(whole)) => share(part, whole),
        _ => "-".into(),
    }
}

/// The command of a run and how it ended, where that was not well.
pub fn command(run: &RunSummary) -> String {
    let mut words = match run.command.is_empty() {
        true => "(unknown command)".to_owned(),
        false => visible(&run.command.join(" ")).into_owned(),
    };
    match run.status {
        Some(0) | None => (),
        Some(status) if status > 128 => {
            words.push_str(&format!(" (killed by signal {})", status - 128));
        }
        Some(status) => words.push_str(&format!(" (status {status})")),
    }
    words
}

/// So many places of a module that are not counted for the same reason are named, if there are more
/// than [`MANY`].
const NAMED: usize = 3;
const MANY: usize = 20;

/// What is not counted of some modules, and why; also when there is nothing to tell. Of the rest, only
/// how much that is.
pub fn not_counted(refused: &[Refused], elsewhere: usize, modules: &[String]) -> String {
    let more = match elsewhere {
        0 => String::new(),
        more => format!(
            "{} elsewhere (`headcount report --all` names them)",
            thousands(more as u64)
        ),
    };
    match (refused.is_empty(), more.as_str()) {
        (true, "") => return "Not counted: nothing.\n".into(),
        (true, more) => return format!("Not counted: nothing here; {more}.\n"),
        _ => (),
    }
    let reasons: Vec<String> = refused
        .iter()
        .map(|it| without_numbers(&it.refusal.reason))
        .collect();
    let kinds = || refused.iter().map(|it| &it.module).zip(&reasons);
    let mut alike: BTreeMap<_, Alike> = BTreeMap::new();
    for kind in kinds() {
        alike.entry(kind).or_default().all += 1;
    }
    let mut out = "Not counted:\n".to_owned();
    for (it, kind) in refused.iter().zip(kinds()) {
        let alike = alike.entry(kind).or_default();
        alike.told += 1;
        if alike.all <= MANY || alike.told <= NAMED {
            out.push_str(&refusal(it, modules));
        } else if alike.told == NAMED + 1 {
            let more = thousands((alike.all - NAMED) as u64);
            let (module, reason) = kind;
            out.push_str(&format!(
                "  {more} more in {} (--json names them): {}\n",
                visible(short_name(module, modules)),
                visible(reason)
            ));
        }
    }
    if !more.is_empty() {
        out.push_str(&format!("  {more}\n"));
    }
    out
}

/// Things in one module that are not counted for one reason.
#[derive(Default)]
struct Alike {
    all: usize,
    told: usize,
}

/// One thing that is not counted, in a line.
fn refusal(it: &Refused, modules: &[String]) -> String {
    let refusal = &it.refusal;
    let mut out = format!("  {}", visible(&crate::demangle(&refusal.subject)));
    match (refusal.file.as_str(), refusal.line) {
        ("", _) => (),
        (file, 0) => out.push_str(&format!(" ({})", visible(file))),
        (file, line) => out.push_str(&format!(" ({}:{line})", visible(file))),
    }
    if modules.len() > 1 {
        let module = short_name(&it.module, modules);
        out.push_str(&format!(" in {}", visible(module)));
    }
    out.push_str(&format!(": {}\n", visible(&refusal.reason)));
    out
}

/// A reason without addresses and sizes, which are different everywhere.
fn without_numbers(reason: &str) -> String {
    let mut kept = String::with_capacity(reason.len());
    for word in reason.split_inclusive(' ') {
        if !word.contains(|it: char| it.is_ascii_digit()) {
            kept.push_str(word);
            continue;
        }
        let around = |it: char| !it.is_ascii_alphanumeric();
        let number = word.trim_matches(around);
        let (before, after) = word.split_once(number).unwrap_or((word, ""));
        kept.push_str(&format!("{before}...{after}"));
    }
    kept
}

/// The folder that sources in the table are in, with its `/`, so that rows need not repeat it; none,
/// if it is not the folder of most. Those of the system are elsewhere on every machine.
fn common_folder(report: &Report) -> &str {
    let Some(column) = report.table.column("file") else {
        return "";
    };
    let rows = report.table.rows.iter();
    let names = rows.filter_map(|row| match &row.cells[column] {
        Cell::Text(name) => Some(name.as_ref()),
        _ => None,
    });
    let own: Vec<&str> = names
        .filter(|name| !name.is_empty() && *name != UNKNOWN && !is_of_the_system(name))
        .collect();
    let folder = |name: &str| name.rfind('/').map_or(0, |slash| slash + 1);
    let absolute = own.iter().filter(|name| name.starts_with('/'));
    let common = absolute
        .map(|name| &name[..folder(name)])
        .reduce(common_part)
        .unwrap_or("");
    let inside = own.iter().filter(|name| name.starts_with(common)).count();
    match common != "/" && inside * 2 > own.len() {
        true => common,
        false => "",
    }
}

/// The folder around two others.
fn common_part<'a>(one: &'a str, other: &'a str) -> &'a str {
    let equal = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
    // Both are valid text up to the last slash in front of the first difference.
    let slash = one.as_bytes()[..equal.count()]
        .iter()
        .rposition(|byte| *byte == b'/');
    &one[..slash.map_or(0, |slash| slash + 1)]
}
