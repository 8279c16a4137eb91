//! Text, deflated at all levels and inflated again by miniz_oxide: ARGUMENT thousand bytes.

use miniz_oxide::{deflate, inflate};

/// Words that come again, now and then with something that does not.
fn text(length: usize) -> Vec<u8> {
    const WORDS: [&str; 8] = ["count ", "every ", "head ", "of ", "the ", "whole ", "flock\n", "twice "];
    let mut dice: u32 = 1;
    let mut text = Vec::new();
    while text.len() < length {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if dice >> 28 == 0 {
            text.extend(dice.to_le_bytes());
        } else {
            text.extend(WORDS[(dice >> 24) as usize % WORDS.len()].bytes());
        }
    }
    text
}

fn main() {
    let argument = std::env::args().nth(1).and_then(|it| it.parse().ok());
    let original = text(1000 * argument.unwrap_or(1));
    let mut total = 0;
    for level in 0..=10 {
        let small = deflate::compress_to_vec_zlib(&original, level);
        let again = inflate::decompress_to_vec_zlib(&small).expect("what was deflated");
        assert!(again == original);
        let torn = inflate::decompress_to_vec(&small[..small.len() / 2]);
        total += small.len() + usize::from(torn.is_err());
    }
    println!("{total}");
}
