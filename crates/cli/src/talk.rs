//! What goes to standard error: one thing a line, with our name in front.

use std::fmt::Display;
use std::io::Write;

/// Says something to the user. If nobody can hear it, that is no reason to fail.
pub fn say(text: impl Display) {
    let mut stderr = std::io::stderr().lock();
    for line in text.to_string().lines() {
        // Messages quote names and paths; a terminal must not obey those.
        let _ = writeln!(stderr, "headcount: {}", headcount_report::visible(line));
    }
}
