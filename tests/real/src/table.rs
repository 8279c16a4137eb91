//! How is it told?

use std::fmt::Write;

use crate::check::{Checked, Verdict};

pub struct Row {
    pub name: String,
    pub checked: Checked,
}

/// A line a workload, and one for all.
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:32} {:>8} {:>8} {:>8}  verdict\n",
        "workload", "alone", "counted", "warm"
    );
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line(row));
        for remark in &row.checked.remarks {
            let _ = writeln!(text, "    headcount: {remark}");
        }
    }
    let count = |wanted: fn(&Verdict) -> bool| {
        let verdicts = rows.iter().map(|it| &it.checked.verdict);
        verdicts.filter(|it| wanted(it)).count()
    };
    let _ = writeln!(
        text,
        "{} passed, {} failed, {} skipped",
        count(|it| *it == Verdict::Same),
        count(Verdict::is_failure),
        count(|it| matches!(it, Verdict::Skipped(_))),
    );
    text
}

pub fn line(row: &Row) -> String {
    let seconds = |at: usize| match row.checked.seconds.get(at) {
        Some(seconds) => format!("{seconds:.2}"),
        None => "-".to_owned(),
    };
    let verdict = match &row.checked.verdict {
        Verdict::Same => "same".to_owned(),
        Verdict::Differs(what) => format!("DIFFERS {what}"),
        Verdict::Hangs(what) => format!("HANGS {what}"),
        Verdict::Unsteady(what) => format!("UNSTEADY {what}"),
        Verdict::Skipped(why) => format!("skipped: {why}"),
    };
    let [alone, counted, warm] = [0, 1, 2].map(seconds);
    format!(
        "{:32} {alone:>8} {counted:>8} {warm:>8}  {verdict}",
        row.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_what_passed_failed_and_was_skipped() {
        let row = |verdict| Row {
            name: "x".to_owned(),
            checked: Checked::without_a_run(verdict),
        };
        let rows = [
            row(Verdict::Same),
            row(Verdict::Skipped("no package".to_owned())),
            row(Verdict::Hangs("cold".to_owned())),
            row(Verdict::Differs("cold".to_owned())),
        ];
        let told = table(&rows);
        assert!(told.ends_with("1 passed, 2 failed, 1 skipped\n"), "{told}");
    }
}
