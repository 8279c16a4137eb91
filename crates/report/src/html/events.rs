//! What functions did: the events of each that ran, for columns that the reader chooses.

use super::functions::{Functions, Shown};
use super::{Page, value};
use crate::Error;
use crate::events::{self, EventSums, FunctionEvents};
use serde_json::{Value, json};

/// The amounts of each function that ran, by its place, and why some are bounds.
pub fn events(page: &Page<'_>, functions: &Functions<'_>) -> Result<Value, Error> {
    let wanted = page.events.events().len();
    let sums = functions.list.iter().map(|it| {
        let events = FunctionEvents::new(&it.named, &page.events);
        events.all(&it.named)
    });
    let sums: Vec<EventSums> = sums.collect::<Result<_, _>>()?;
    let row = |(place, sums): (usize, &EventSums)| {
        let amounts = (0..wanted).map(|it| value::amount(sums.amount(it)));
        [Value::from(place)].into_iter().chain(amounts).collect()
    };
    let ran = |it: &Shown<'_>| super::may_have_run(it.tally.executed);
    let rows = sums.iter().enumerate();
    let rows = rows.filter(|(place, _)| ran(&functions.list[*place]));
    Ok(json!({
        "rows": rows.map(row).collect::<Vec<Value>>(),
        "notes": events::notes(sums.iter()),
    }))
}
