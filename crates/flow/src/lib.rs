//! Which places carry a counter, and what do the readings say about all the others?
//!
//! Three steps, none of which touches anything but its arguments:
//!
//! 1. [`frequencies`] guesses how often each block and edge will run;
//! 2. [`place_counters`] puts counters where they cost least and still say everything: on the
//!    chords of a maximum spanning tree (Knuth 1968; Ball 1994, sections 2 and 3);
//! 3. [`recover`] turns the readings of those counters into a count for every block and edge;
//!    [`recover_with_visits`] does so where signals, faults and death made threads leave the graph.
//!
//! [`EventCounter`] is for those who want one number only, and that at any moment: it says what the same
//! probes must add to one counter for it to count events (Ball 1994, sections 3 and 4).
//!
//! A guess that is wrong makes the counted program slower, never the counts wrong.
#![forbid(unsafe_code)]

mod events;
mod frequency;
mod groups;
mod loops;
mod net;
mod placement;
mod recovery;

pub use events::{EventCounter, Point, Weights};
pub use frequency::{Frequencies, frequencies};
pub use placement::{Unsolvable, place_counters};
pub use recovery::{
    Contradiction, Visit, VisitPoint, recover, recover_lenient, recover_with_visits,
};
