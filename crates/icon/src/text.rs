//! The text that the preprocessor makes, and where its bytes stood.

use crate::files::Origin;

/// A preprocessed text, and where its bytes stood.
#[derive(Default)]
pub struct Text {
    pub bytes: Vec<u8>,
    runs: Vec<Run>,
}

/// Bytes from `from` on that stand at an origin: side by side, or all in one place.
struct Run {
    from: usize,
    origin: Origin,
    is_verbatim: bool,
}

impl Text {
    pub fn origin(&self, at: usize) -> Option<Origin> {
        let after = self.runs.partition_point(|it| it.from <= at);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let further = if run.is_verbatim { at - run.from } else { 0 };
        let column = run.origin.column + further as u32;
        Some(Origin {
            column,
            ..run.origin
        })
    }

    pub fn put(&mut self, bytes: &[u8], origin: Origin, is_verbatim: bool) {
        let from = self.bytes.len();
        let goes_on = self.runs.last().is_some_and(|it| {
            let further = if it.is_verbatim { from - it.from } else { 0 };
            let column = it.origin.column + further as u32;
            it.is_verbatim == is_verbatim
                && Origin {
                    column,
                    ..it.origin
                } == origin
        });
        if !goes_on {
            self.runs.push(Run {
                from,
                origin,
                is_verbatim,
            });
        }
        self.bytes.extend_from_slice(bytes);
    }
}
