//! What operators are in ucode.

use crate::opcode::Opcode;
use crate::words::Operator;

/// What a prefix operator does. Several that look like another operator are applied from the right.
pub fn prefix(operator: Operator) -> &'static [Opcode] {
    use Opcode::*;
    match operator {
        Operator::Dot => &[Value],
        Operator::Backslash => &[Nonnull],
        Operator::Bang => &[Bang],
        Operator::Caret => &[Refresh],
        Operator::Plus => &[Number],
        Operator::Minus => &[Neg],
        Operator::Tilde => &[Compl],
        Operator::Equal => &[Tabmat],
        Operator::Star => &[Size],
        Operator::Question => &[Random],
        Operator::Slash => &[Null],
        Operator::Union => &[Number, Number],
        Operator::Difference => &[Neg, Neg],
        Operator::Intersection => &[Size, Size],
        Operator::LexicallyEqual => &[Tabmat, Tabmat],
        Operator::Same => &[Tabmat, Tabmat, Tabmat],
        Operator::NotEqual => &[Tabmat, Compl],
        Operator::LexicallyNotEqual => &[Tabmat, Tabmat, Compl],
        Operator::NotSame => &[Tabmat, Tabmat, Tabmat, Compl],
        _ => &[],
    }
}

/// What an operator between two operands does.
pub fn binary(operator: Operator) -> Opcode {
    use Opcode::*;
    match operator {
        Operator::Assign => Asgn,
        Operator::Swap => Swap,
        Operator::ReversibleAssign => Rasgn,
        Operator::ReversibleSwap => Rswap,
        Operator::Caret => Power,
        Operator::Concatenate => Cat,
        Operator::ConcatenateLists => Lconcat,
        Operator::Plus => Plus,
        Operator::Minus => Minus,
        Operator::Star => Mult,
        Operator::Slash => Div,
        Operator::Percent => Mod,
        Operator::Union => Unions,
        Operator::Difference => Diff,
        Operator::Intersection => Inter,
        Operator::Same => Eqv,
        Operator::NotSame => Neqv,
        Operator::Equal => Numeq,
        Operator::NotEqual => Numne,
        Operator::Greater => Numgt,
        Operator::GreaterOrEqual => Numge,
        Operator::Less => Numlt,
        Operator::LessOrEqual => Numle,
        Operator::LexicallyEqual => Lexeq,
        Operator::LexicallyNotEqual => Lexne,
        Operator::LexicallyGreater => Lexgt,
        Operator::LexicallyGreaterOrEqual => Lexge,
        Operator::LexicallyLess => Lexlt,
        Operator::LexicallyLessOrEqual => Lexle,
        // The others are nodes of their own.
        _ => Noop,
    }
}
