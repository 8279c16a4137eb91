//! System calls by number.

use crate::Error;
use crate::count::Count;
use crate::events::{self, WantedEvents};
use crate::number::thousands;
use crate::system_call_names::name;
use crate::table::{Cell, Row};
use headcount_model::{Counted, Event, SystemCallNumber, SystemCalls};
use std::cmp::Ordering;

/// What stands for the name of a number that has none.
const UNKNOWN: &str = "(unknown)";

/// What stands for all numbers that no call has.
const OTHER: &str = "(other)";

/// A row for each number, in order.
pub fn rows(calls: &SystemCalls) -> Vec<Row> {
    let row = |(number, times)| {
        let (name, number) = match number {
            SystemCallNumber::Is(number) => (name(number).unwrap_or(UNKNOWN), Some(number)),
            SystemCallNumber::Other => (OTHER, None),
        };
        Row {
            cells: vec![
                Cell::Text(name.into()),
                number.map_or(Cell::Address(None), |it| Cell::Number(it.into())),
                Cell::Count(Count::Exact(times)),
            ],
            counted: true,
            ran: true,
            ..Row::default()
        }
    };
    calls.iter().map(row).collect()
}

/// What is to be said if the sum over numbers is not how many system calls were counted as events.
pub fn note(
    calls: &SystemCalls,
    counted: &[Counted],
    wanted: &WantedEvents<'_>,
) -> Result<Option<String>, Error> {
    let made = events::known_sum(Event::Syscalls, counted, wanted)?;
    let numbered = calls.total().ok_or(Error::TooLarge)?;
    let difference = match made.abs_diff(numbered) {
        1 => "1 system call".to_owned(),
        many => format!("{} system calls", thousands(many)),
    };
    Ok(match numbered.cmp(&made) {
        Ordering::Equal if made == 0 => Some("No code that was counted made a system call.".into()),
        Ordering::Equal => None,
        Ordering::Less => Some(format!(
            "Of {difference} the number is not known: made by `int 0x80` or `sysenter`, in a run with \
             `--engine breakpoint`, or by a program that counts itself."
        )),
        Ordering::Greater => Some(format!(
            "`--events syscalls` tells of {difference} fewer: made by functions that were not chosen, \
             that are not counted, or that threads were in when headcount was stopped."
        )),
    })
}
