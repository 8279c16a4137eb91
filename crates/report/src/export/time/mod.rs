//! Samples in the formats of other tools: call stacks with the time spent in each.

mod firefox;
mod folded;
mod pprof;

use super::{Exported, Format};
use crate::time::{UNKNOWN_CODE, frames};
use crate::{Error, demangle, visible};
use headcount_model::{SampledThread, Samples, Site};

/// Stands for callers that nobody could find.
const CUT: &str = "(callers not found)";

/// What is exported.
pub struct TimeMaterial<'a> {
    /// The samples.
    pub samples: &'a [&'a Samples],
    /// The command that they are of.
    pub command: &'a [String],
    /// Whether names are shown as the programmer wrote them.
    pub demangle: bool,
    /// Whether they stand for instructions, and not for time.
    pub is_of_instructions: bool,
}

/// A frame of a stack, as it is shown.
struct Shown<'a> {
    site: &'a Site,
    /// The function.
    name: String,
    /// The linker's name.
    linkage_name: &'a str,
    file: &'a str,
    line: u32,
}

/// Whether a format can tell of time.
pub fn has_time(format: Format) -> bool {
    matches!(format, Format::Folded | Format::Pprof | Format::Firefox)
}

/// Writes samples in a format of another tool.
pub fn write_time(format: Format, material: &TimeMaterial<'_>) -> Result<Exported, Error> {
    match format {
        Format::Folded => folded::write(material),
        Format::Pprof => pprof::write(material),
        Format::Firefox => firefox::write(material),
        _ => Err(Error::NoTime),
    }
}

impl TimeMaterial<'_> {
    /// The frames of a stack, innermost first, and whether callers of the last are missing.
    fn stack<'s>(&self, samples: &'s Samples, stack: u32) -> (Vec<Shown<'s>>, bool) {
        let named = |function: &str| match (function.is_empty(), self.demangle) {
            (true, _) => UNKNOWN_CODE.to_owned(),
            (_, true) => visible(&demangle(function)).into_owned(),
            (_, false) => visible(function).into_owned(),
        };
        let shown = frames(samples, stack)
            .into_iter()
            .map(|(site, frame)| Shown {
                site,
                name: named(&frame.function),
                linkage_name: &frame.function,
                file: &frame.file,
                line: frame.line,
            });
        (shown.collect(), samples.is_cut(stack))
    }
}

/// What a thread is called.
fn thread_name(thread: &SampledThread) -> String {
    match thread.name.is_empty() {
        true => format!("thread {}", thread.tid),
        false => visible(&thread.name).into_owned(),
    }
}
