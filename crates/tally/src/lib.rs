//! What is to be counted by value, in the user's words.
//!
//! `malloc(arg1) by caller`: a place, what is computed there, and what counts are told apart by
//! besides. [`parse`] reads that; [`Term::resolve`] makes an expression of it that a probe can compute
//! at an address, with whoever knows the names of variables there; [`evaluate`] computes one itself, for
//! engines that stop the program, and to hold probes against.
#![forbid(unsafe_code)]

mod evaluate;
mod grammar;
mod lexer;
mod registers;
mod resolve;
mod term;

#[cfg(test)]
mod tests;

pub use evaluate::{Thread, Unreadable, evaluate};
pub use grammar::{Asked, Misread, Scale, parse};
pub use registers::{ARGUMENTS, RETURNED, STACK, is_by_convention, register};
pub use resolve::{At, Names, Typed, Unresolved};
pub use term::Term;
