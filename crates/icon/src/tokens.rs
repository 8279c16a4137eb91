//! The tokens of a program: what of its text is executed, in order.
//!
//! After *Instrumenting Icon for Performance Measurement* (C. A. Coutant, R. E. Griswold, 1979): "the
//! basic syntactic unit of an Icon program". A token that is executed has a number, from 1, and it
//! counts once when its code starts; that a generator is resumed is not a new start.
//!
//! What starts a token:
//!
//! | token | starts with |
//! | --- | --- |
//! | identifier, literal, keyword | what gives its value |
//! | operator, `.` of a field, `[` of a subscript, `:` `+:` `-:` of a section, `!` of an application | its own instruction, when its operands have been evaluated |
//! | the same with `:=` | the operator; the assignment is the same token, and may not come to be |
//! | several prefix operators in one (`==x`) | the one that is applied first |
//! | `&` | what goes from its left to its right operand: once for each result on the left |
//! | <code>\|</code> | its left operand; between two, `not`, `create`, `every`, `suspend`, `return`, `if`, `case`: the mark that is set before |
//! | `\` | the limit, when it has been evaluated |
//! | `?` | scanning, when its subject has been evaluated |
//! | `(` of a call, `(` of several expressions, `{` of a call with co-expressions, `[` of a list | the call or the making, when all has been evaluated |
//! | `then`, `of`, `default` | what ends the condition, the control expression, the search |
//! | `:` of an arm of `case` | the comparison |
//! | `do` | its expression: once for each turn |
//! | `else` | its expression |
//! | `to`, `by` | the generator |
//! | `break`, `next`, `fail` | the first instruction of theirs |
//! | `initial` | its expression: at most once |
//! | `while`, `until`, `repeat`, <code>\|</code> before an operand | no instruction: see [`Start::Between`] |
//!
//! For `(` of a call the paper has another rule: it is not executed if it calls a built-in function.
//! That is known when the program has been linked: [`crate::Joined::is_builtin_call`].

use crate::files::FileId;
use crate::lexer::Lexeme;
use crate::starts::Start;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Identifier,
    Literal,
    Keyword,
    Operator,
    /// What calls: `(`, or `{`.
    Call,
    /// What makes a list: `[`.
    List,
    /// A reserved word, or a mark of a control structure.
    Structure,
}

#[derive(Clone, Debug)]
pub struct Token {
    /// From 1.
    pub number: u32,
    /// Where it begins in the file: line and column from 1, columns in bytes.
    pub file: FileId,
    pub line: u32,
    pub column: u32,
    pub text: Vec<u8>,
    pub kind: Kind,
    /// Which procedure of the file it is in.
    pub procedure: usize,
    pub start: Start,
    /// Of a call of a name, the instruction that pushes that.
    pub callee: Option<u32>,
}

/// What is written there: `&` and a name are one token.
pub fn text(lexemes: &[Lexeme], lexeme: usize, kind: Kind) -> Vec<u8> {
    let of = |at: usize| lexemes.get(at).map_or(&[][..], |it| &it.text);
    match kind {
        Kind::Keyword => [of(lexeme), of(lexeme + 1)].concat(),
        _ => of(lexeme).to_vec(),
    }
}
