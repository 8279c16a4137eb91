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
//! A guess that is wrong makes the counted program slower, never the counts wrong.
#![forbid(unsafe_code)]

mod frequency;
mod loops;
mod net;
mod placement;
mod recovery;
mod successors;

pub use frequency::{Frequencies, frequencies};
pub use placement::{Unsolvable, place_counters};
pub use recovery::{
    Contradiction, Visit, VisitPoint, recover, recover_lenient, recover_with_visits,
};
