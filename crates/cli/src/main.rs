//! The program `headcount`: the only crate that prints, reads the environment and ends the
//! process.

fn main() {}
