//! What `run` says in the end of what was counted by value.

use crate::progress::during_on_terminal;
use crate::readings;
use crate::talk::say;
use crate::verbs;
use anyhow::Result;
use headcount_model::Run;
use headcount_profile::RunSelection;
use headcount_report::{Only, Tallied, TalliedPlace, plural};
use std::path::Path;

/// Says of each thing that was asked for how often it was counted, and what was found most often. If
/// that does not add up to how often the place was reached, something is wrong, and that is said in any
/// case: for this the counts of all code are made, which the first report would have done.
pub fn tell(run: &Run, profile: &Path, quiet: bool) -> Result<()> {
    let profile_of_run = readings::open(profile)?;
    let runs = profile_of_run.runs()?.into_iter();
    // With marks, it was stored in parts.
    let part = format!("{}#", run.key);
    let runs = runs.filter(|it| it.key == run.key || it.key.starts_with(&part));
    let numbers: Vec<i64> = runs.map(|it| it.id).collect();
    let runs = RunSelection::These(numbers);
    let load = || verbs::load_silently(&profile_of_run, &runs);
    let loaded = match quiet {
        true => load()?,
        false => during_on_terminal("reading the profile", load)?,
    };
    let tallied = verbs::tallied(&loaded, Only::default(), None, true)?;
    sentences(&tallied, profile, quiet).iter().for_each(say);
    Ok(())
}

fn sentences(tallied: &Tallied, profile: &Path, quiet: bool) -> Vec<String> {
    if tallied.tallies.is_empty() {
        return vec!["error: what was counted by value is not in the profile".to_owned()];
    }
    let doubts = tallied.doubts.iter().map(|it| format!("error: {it}"));
    let mut all: Vec<String> = doubts.collect();
    if !quiet {
        all.extend(tallied.tallies.iter().map(words));
        let named = match profile == Path::new(verbs::DEFAULT_PROFILE) {
            true => String::new(),
            false => format!(" {}", profile.display()),
        };
        all.push(format!("`headcount report --by value{named}` shows all"));
    }
    all
}

/// `malloc(arg1): counted 1,000 times, 3 different values, most often 16 (900 times)`.
fn words(tally: &TalliedPlace) -> String {
    let name = tally.name();
    let all = tally.by_value();
    let Some((value, count, _)) = all.first() else {
        return format!("{name}: never counted");
    };
    let times = plural(tally.count(), "time");
    if value.is_empty() {
        return format!("{name}: counted {times}");
    }
    let what = match tally.values.iter().all(|it| it.value.is_empty()) {
        true => "different caller",
        false => "different value",
    };
    let several = plural(all.len() as u64, what);
    let count = plural(*count, "time");
    format!("{name}: counted {times}, {several}, most often {value} ({count})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_do_not_add_up_are_told_even_to_who_wants_to_hear_nothing() {
        let tallied = Tallied {
            tallies: vec![TalliedPlace {
                place: "f".to_owned(),
                ..TalliedPlace::default()
            }],
            doubts: vec!["They do not add up.".to_owned()],
            ..Tallied::default()
        };
        let told = |quiet| sentences(&tallied, Path::new("a.db"), quiet);
        assert_eq!(told(true), ["error: They do not add up."]);
        let all = "`headcount report --by value a.db` shows all";
        assert_eq!(
            told(false),
            ["error: They do not add up.", "f: never counted", all]
        );
    }
}
