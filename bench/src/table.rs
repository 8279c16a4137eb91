//! How are the times shown?

use serde_json::{Value, json};

use crate::measure::{Subject, Times, geometric_mean};
use crate::variant::Variant;

/// Column headings are short; `Variant::name` below the table tells the rest.
const COLUMNS: [(&str, Variant); 12] = [
    ("native s", Variant::Native),
    ("headcount", Variant::Headcount),
    ("via source", Variant::Source),
    ("gcov", Variant::Gcov),
    ("gcov atomic", Variant::GcovAtomic),
    ("clang s", Variant::ClangNative),
    ("clang profile", Variant::ClangProfile),
    ("run", Variant::Run),
    ("run --calls", Variant::Calls),
    ("brief run", Variant::BriefRun),
    ("valgrind none", Variant::ValgrindNone),
    ("callgrind", Variant::Callgrind),
];

pub fn text(subjects: &[Subject], times: &Times, variants: &[Variant]) -> String {
    let columns: Vec<_> = COLUMNS
        .iter()
        .filter(|(_, it)| variants.contains(it))
        .collect();
    let mut rows = vec![heading(&columns)];
    for subject in subjects {
        let cells = columns
            .iter()
            .map(|(_, variant)| cell(subject, times, *variant));
        let name = format!(
            "{}{}",
            subject.name,
            if subject.is_threaded {
                " (two threads)"
            } else {
                ""
            }
        );
        rows.push(std::iter::once(name).chain(cells).collect());
    }
    let means = columns.iter().map(|(_, variant)| {
        mean(subjects, times, *variant).map_or(String::new(), |mean| format!("{mean:.2}"))
    });
    rows.push(
        std::iter::once("geometric mean".to_owned())
            .chain(means)
            .collect(),
    );
    aligned(&rows)
}

/// How often `headcount run` stopped each program, where it said so.
pub fn traps(subjects: &[Subject], times: &Times) -> Option<String> {
    let known = subjects.iter().filter_map(|subject| {
        let traps = times.traps(subject)?;
        Some(format!("{} {traps}", subject.name))
    });
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| format!("traps of headcount run: {}", known.join(", ")))
}

fn heading(columns: &[&(&str, Variant)]) -> Vec<String> {
    let titles = columns.iter().map(|(title, _)| (*title).to_owned());
    std::iter::once("program".to_owned())
        .chain(titles)
        .collect()
}

/// Seconds for what others are measured against, a slowdown for the others.
fn cell(subject: &Subject, times: &Times, variant: Variant) -> String {
    let number = match variant.baseline() {
        None => times
            .median(subject, variant)
            .map(|time| time.as_secs_f64()),
        Some(_) => times.slowdown(subject, variant),
    };
    number.map_or("-".to_owned(), |number| format!("{number:.2}"))
}

/// Over the programs with one thread.
pub fn mean(subjects: &[Subject], times: &Times, variant: Variant) -> Option<f64> {
    let ratios = subjects.iter().filter(|subject| !subject.is_threaded);
    geometric_mean(
        &ratios
            .filter_map(|it| times.slowdown(it, variant))
            .collect::<Vec<_>>(),
    )
}

pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(at, (cell, &width))| {
                if at == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// What was promised, and whether it holds: one line each.
pub fn promises(subjects: &[Subject], times: &Times) -> Vec<(String, bool)> {
    let mut lines = Vec::new();
    let ours = mean(subjects, times, Variant::Headcount);
    if let Some(ours) = ours {
        lines.push((
            format!("geometric mean {ours:.2}, at most 1.20"),
            ours <= 1.20,
        ));
    }
    if let (Some(ours), Some(gcov)) = (ours, mean(subjects, times, Variant::Gcov)) {
        lines.push((
            format!("geometric mean {ours:.2}, gcc --coverage {gcov:.2}"),
            ours <= gcov,
        ));
    }
    if let Some(source) = mean(subjects, times, Variant::Source) {
        lines.push((
            format!("geometric mean of --via source {source:.2}, at most 1.30"),
            source <= 1.30,
        ));
    }
    let single = subjects.iter().filter(|subject| !subject.is_threaded);
    let slowdowns = single.filter_map(|it| Some((times.slowdown(it, Variant::Headcount)?, it)));
    if let Some((worst, subject)) = slowdowns.max_by(|a, b| a.0.total_cmp(&b.0)) {
        lines.push((
            format!("worst {worst:.2} ({}), at most 1.50", subject.name),
            worst <= 1.5,
        ));
    }
    for subject in subjects.iter().filter(|subject| subject.is_threaded) {
        let added = |variant| {
            times
                .slowdown(subject, variant)
                .map(|slowdown| slowdown - 1.0)
        };
        if let (Some(ours), Some(atomic)) = (added(Variant::Headcount), added(Variant::GcovAtomic))
        {
            let line = format!(
                "{}: {ours:.2} added, at most a third of the {atomic:.2} of gcov atomic",
                subject.name
            );
            lines.push((line, ours <= atomic / 3.0));
        }
    }
    lines
}

pub fn to_json(
    machine: &[(String, String)],
    subjects: &[Subject],
    times: &Times,
    variants: &[Variant],
) -> Value {
    let one = |subject: &Subject| {
        let variants = variants
            .iter()
            .filter(|it| !times.of(subject, **it).is_empty());
        let by_variant = variants.map(|variant| {
            let seconds: Vec<f64> = times
                .of(subject, *variant)
                .iter()
                .map(|t| t.as_secs_f64())
                .collect();
            let median = times
                .median(subject, *variant)
                .map(|time| time.as_secs_f64());
            let facts = json!({
                "seconds": seconds, "median": median, "slowdown": times.slowdown(subject, *variant),
            });
            (variant.name().to_owned(), facts)
        });
        json!({
            "program": subject.name,
            "threaded": subject.is_threaded,
            "traps": times.traps(subject),
            "variants": by_variant.collect::<serde_json::Map<_, _>>(),
        })
    };
    let means = variants
        .iter()
        .filter_map(|it| Some((it.name().to_owned(), mean(subjects, times, *it)?.into())));
    let machine = machine
        .iter()
        .map(|(name, fact)| (name.clone(), fact.clone().into()));
    json!({
        "machine": machine.collect::<serde_json::Map<_, _>>(),
        "programs": subjects.iter().map(one).collect::<Vec<_>>(),
        "geometric_mean": means.collect::<serde_json::Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_left_and_numbers_right() {
        let rows = [
            vec!["program".to_owned(), "x".to_owned()],
            vec!["a".to_owned(), "1.25".to_owned()],
        ];
        assert_eq!(aligned(&rows), "program     x\na        1.25\n");
    }
}
