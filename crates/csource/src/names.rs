//! A table of names that is mostly asked about names that are not in it.

use std::collections::HashMap;

/// How many bits the filter has, as a power of two.
const FILTER_BITS: u32 = 16;

/// What is known by name.
///
/// A text has a name in every third token. Most are neither of a type nor of a function, and a few
/// bits tell so: only the others are hashed, in a way that no text can make slow.
#[derive(Debug)]
pub struct Names<'t, T> {
    filter: Vec<u64>,
    known: HashMap<&'t [u8], T>,
}

impl<T> Default for Names<'_, T> {
    fn default() -> Self {
        Self {
            filter: vec![0; 1 << (FILTER_BITS - 6)],
            known: HashMap::new(),
        }
    }
}

impl<'t, T> Names<'t, T> {
    pub fn get(&self, name: &[u8]) -> Option<&T> {
        let (word, bit) = place(name);
        match self.filter[word] & bit {
            0 => None,
            _ => self.known.get(name),
        }
    }

    pub fn get_mut(&mut self, name: &[u8]) -> Option<&mut T> {
        self.known.get_mut(name)
    }

    pub fn contains(&self, name: &[u8]) -> bool {
        self.get(name).is_some()
    }

    /// The entry of a name, made if it is new.
    pub fn entry(&mut self, name: &'t [u8]) -> &mut T
    where
        T: Default,
    {
        let (word, bit) = place(name);
        self.filter[word] |= bit;
        self.known.entry(name).or_default()
    }
}

/// The bit of a name: of its length and its last eight bytes, where names differ most.
fn place(name: &[u8]) -> (usize, u64) {
    let tail = match name.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => name.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    };
    // Fibonacci hashing: the golden ratio spreads what is alike.
    let mixed = (tail ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bit = mixed >> (64 - FILTER_BITS);
    ((bit >> 6) as usize, 1 << (bit & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_entered_are_found_and_no_others() {
        let all: Vec<String> = (0..5000).map(|number| format!("name_{number}")).collect();
        let mut names: Names<usize> = Names::default();
        for (number, name) in all.iter().enumerate().filter(|(number, _)| number % 2 == 0) {
            *names.entry(name.as_bytes()) = number;
        }
        for (number, name) in all.iter().enumerate() {
            let expected = Some(&number).filter(|it| **it % 2 == 0);
            assert_eq!(names.get(name.as_bytes()), expected);
        }
        assert!(!names.contains(b""));
    }
}
