//! A routine's bytes and a plan in; its counted copy, and the detours that lead into it, out.
//!
//! All code of a routine runs in a copy, probes included, but for its calls: a call runs where it
//! always stood, so that return addresses, and everything that looks at them, are what they were.
//! The copy jumps to the call; where the call returns to, a detour leads back into the copy. So
//! does one wherever else control may come in. All other original bytes are dead, and every
//! instruction there is made to trap: whoever arrives against all expectation is noticed.
//!
//! 1. [`Sketch::of`] decodes a routine and says which flow graph it has and what probes cost;
//! 2. [`template`] makes its copy, for a plan; a [`Template`] can be kept for other runs;
//! 3. [`Template::copy_at`] gives the copy a place and its counters;
//! 4. [`Copy`] tells, for every instruction of the copy, what a thread that stands there has done
//!    of the original, and where to go on for every instruction of the original.
#![forbid(unsafe_code)]

mod copy;
mod detours;
mod emit;
mod event_counter;
mod flags;
mod keyed;
mod log;
mod probes;
mod registers;
mod sketch;
mod spots;
mod system_calls;
mod tables;
mod targets;
mod template;

pub use copy::{Copy, Jump, Originals};
pub use detours::{LONG, SHORT};
pub use emit::template;
pub use event_counter::{AT as EVENT_COUNTER, Events, SCRATCH as SECOND_SCRATCH};
pub use flags::Adding;
pub use keyed::{
    ADDRESS_SHIFT, DIRECT_BYTES, FETCH_TABLE, FETCH_TABLE_BYTES, FLAGS_SCRATCH, GENERATION,
    LEAST_TABLE_BYTES, MOST_TEMPORARIES, MOST_WINDOW_BYTES, OWNER, PLACE_SHIFT, SLOT_AMOUNT,
    SLOT_BYTES, SLOT_COUNT, TABLE_BYTES, TABLES, TEXT_LIMIT, TEXT_START, THIRD_SCRATCH, bytes_of,
    end_of_bucket, first_places, hash as text_hash, last_amount, last_slot, mask, mask_of, table,
};
pub use log::{
    BYTES as LOG_BYTES, ENTRY_BYTES as LOG_ENTRY_BYTES, PLACE as LOG_PLACE, START as LOG_START,
};
pub use sketch::{CannotCopy, Sketch};
pub use spots::{CounterNumber, Fix, Resume, Spot, Undo};
pub use system_calls::{
    BEHIND_CALL_CELLS, CALL_NUMBERS, CALL_TABLE, CALL_TABLE_BYTES, FIRST_CALL_CELL, LAST_CALL,
    NO_CALL, SystemCall,
};
pub use targets::target_of;
pub use template::{Tallied, Template};
