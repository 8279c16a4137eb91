//! What is not counted, and why. Every refusal reaches the report.

/// Something that is not counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Refusal {
    /// The function, or the file where no function can be named.
    pub subject: String,
    /// The file in which it was met, if known.
    pub file: String,
    /// The line in that file; 0 if unknown.
    pub line: u32,
    /// Why, as a clause: "it uses a macro, `SAVE_ALL`".
    pub reason: String,
}
