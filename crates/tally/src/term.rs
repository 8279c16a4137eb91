//! An expression as the user wrote it: names are still names.

use headcount_model::{Binary, Unary, Width};

/// A part of an expression. Positions are in the user's text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// A number.
    Number(i64),
    /// A register, an argument, the result, or a variable.
    Name(String, usize),
    /// What is in memory, at an address: `[rdi + 8]`, `u32[rdi]`.
    Load(Width, Box<Term>),
    /// The lower bytes of a number: `i32(rax)`.
    Narrow(Width, Box<Term>),
    /// What a pointer points to: `*p`.
    Pointee(Box<Term>, usize),
    /// A field: `s.length`, `p->length`.
    Field {
        /// Of what.
        of: Box<Term>,
        /// Its name.
        name: String,
        /// Was it `->`?
        is_arrow: bool,
        /// Where its name is.
        at: usize,
    },
    /// An element: `a[i]`.
    Element(Box<Term>, Box<Term>, usize),
    /// An operation on one number.
    Unary(Unary, Box<Term>),
    /// An operation on two numbers.
    Binary(Binary, Box<Term>, Box<Term>),
}

impl Term {
    /// Is such a name used anywhere in it?
    pub fn has_name(&self, is_it: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Name(name, _) => is_it(name),
            Self::Load(_, of) | Self::Narrow(_, of) | Self::Pointee(of, _) | Self::Unary(_, of) => {
                of.has_name(is_it)
            }
            Self::Field { of, .. } => of.has_name(is_it),
            Self::Element(one, other, _) | Self::Binary(_, one, other) => {
                one.has_name(is_it) || other.has_name(is_it)
            }
        }
    }
}
