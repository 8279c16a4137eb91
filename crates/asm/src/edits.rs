//! Changes to a text, made all at once.

use std::collections::BTreeMap;

/// Changes to a text, by byte position.
#[derive(Default)]
pub struct Edits {
    /// Text to put in at a position.
    pub inserted: BTreeMap<usize, String>,
    /// Text to take out: from, to.
    removed: BTreeMap<usize, usize>,
}

impl Edits {
    /// Puts text in at a position, behind what was put there before.
    pub fn insert(&mut self, at: usize, text: &str) {
        self.inserted.entry(at).or_default().push_str(text);
    }

    /// Puts text in the place of another.
    pub fn replace(&mut self, from: usize, to: usize, text: &str) {
        self.removed.insert(from, to);
        self.insert(from, text);
    }

    /// The text with all changes made, and a line end at its end.
    pub fn apply(&self, text: &str) -> String {
        let added: usize = self.inserted.values().map(String::len).sum();
        let mut result = String::with_capacity(text.len() + added + text.len() / 4);
        let mut done = 0;
        for (at, addition) in &self.inserted {
            result.push_str(&text[done..*at]);
            result.push_str(addition);
            done = self.removed.get(at).copied().unwrap_or(*at);
        }
        result.push_str(&text[done..]);
        if !result.ends_with('\n') {
            result.push('\n');
        }
        result
    }
}
