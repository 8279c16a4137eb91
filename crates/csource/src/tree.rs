//! What a function is made of, as far as counting it depends on it.
//!
//! Everything is a range of tokens. Of expressions only those parts are kept that run on a
//! condition (operands of `?:`, `&&`, `||`; statement expressions) and calls.

use std::ops::Range;

/// Numbers of tokens.
pub type Tokens = Range<u32>;

/// A function definition.
#[derive(Debug)]
pub struct Function {
    pub name: String,
    /// The token of its name.
    pub name_token: u32,
    /// The braces around its body.
    pub open: u32,
    pub close: u32,
    pub items: Vec<Statement>,
    /// What in it cannot be counted: a token, and why not.
    pub left_alone: Vec<(u32, &'static str)>,
    /// Calls that may make a process behind the C library's back.
    pub forks: Vec<Tokens>,
    /// Whether it has declarations behind statements, or in a `for`.
    pub mixes_declarations: bool,
}

/// A statement or a declaration.
#[derive(Debug)]
pub struct Statement {
    pub tokens: Tokens,
    pub what: What,
}

/// The statement that an `if` or a loop governs: labels, and one that is none.
#[derive(Debug)]
pub struct Body {
    pub tokens: Tokens,
    pub items: Vec<Statement>,
    /// Whether it is a block in braces.
    pub in_braces: bool,
}

/// Most are expressions, and there are many: what is larger is boxed.
#[derive(Debug)]
pub enum What {
    /// With what it evaluates.
    Expression(Expr),
    /// With what its initialisers evaluate, as far as that matters, and whether there is anything to run.
    Declaration {
        values: Vec<Expr>,
        runs: bool,
    },
    /// `__label__ a, b;`
    LabelNames(Vec<String>),
    /// A function inside a function.
    Function(Box<Function>),
    Block(Vec<Statement>),
    /// `if`, `else if`, ..., `else`.
    If {
        arms: Vec<Arm>,
        otherwise: Option<Body>,
    },
    While {
        condition: Expr,
        body: Box<Body>,
    },
    Do {
        body: Box<Body>,
        condition: Expr,
    },
    For {
        start: Option<Box<Statement>>,
        condition: Option<Box<Expr>>,
        step: Option<Box<Expr>>,
        body: Box<Body>,
    },
    Switch {
        condition: Expr,
        body: Box<Body>,
    },
    Label(String),
    Case,
    Default,
    Goto(String),
    ComputedGoto(Expr),
    Return(Option<Expr>),
    Break,
    Continue,
    /// With the labels it may jump to, and whether it may not come back.
    Asm {
        labels: Vec<String>,
        may_be_lost: bool,
    },
    Empty,
}

/// `if (condition) body`
#[derive(Debug)]
pub struct Arm {
    pub condition: Expr,
    pub body: Body,
}

/// An expression.
#[derive(Debug)]
pub struct Expr {
    pub tokens: Tokens,
    pub shape: Shape,
    /// Whether a part of it runs on a condition, so that it may have a count of its own.
    pub has_blocks: bool,
    /// Whether control may go in and not come out: a call that does not return, a jump.
    pub may_be_lost: bool,
    /// Whether it may be a constant: it must not become anything else.
    pub is_constant: bool,
}

#[derive(Debug)]
pub enum Shape {
    /// Operands of operators that say nothing about their order.
    Leaf(Vec<Atom>),
    /// `a, b`
    Sequence(Vec<Expr>),
    /// `a && b && c`, or the same with `||`
    Logic(Vec<Expr>),
    /// `a ? b : c`; without the second, `a ?: c`.
    Choice {
        condition: Box<Expr>,
        yes: Option<Box<Expr>>,
        no: Box<Expr>,
    },
}

/// A part of an expression that is more than a name or a constant.
#[derive(Debug)]
pub enum Atom {
    /// In parentheses or brackets.
    Group(Expr),
    Call(Call),
    /// An initialiser in braces.
    List(Vec<Expr>),
    /// What may be a macro, that control may not come back from.
    Macro,
    /// `({ ... })`
    Block {
        open: u32,
        items: Vec<Statement>,
    },
}

#[derive(Debug)]
pub struct Call {
    pub arguments: Vec<Expr>,
    pub fate: Fate,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It surely comes back, once.
    Returns,
    /// It may not come back, or more often than it was made.
    Unsure,
    /// It never comes back.
    Never,
}

impl Atom {
    pub fn has_blocks(&self) -> bool {
        match self {
            Self::Group(expr) => expr.has_blocks,
            Self::Call(call) => call.arguments.iter().any(|it| it.has_blocks),
            Self::List(items) => items.iter().any(|it| it.has_blocks),
            Self::Macro => false,
            Self::Block { .. } => true,
        }
    }

    pub fn may_be_lost(&self) -> bool {
        match self {
            Self::Group(expr) => expr.may_be_lost,
            Self::Call(call) => {
                call.fate != Fate::Returns || call.arguments.iter().any(|it| it.may_be_lost)
            }
            Self::List(items) => items.iter().any(|it| it.may_be_lost),
            // Jumps, calls: nobody looks that closely.
            Self::Macro | Self::Block { .. } => true,
        }
    }
}

/// Whether what one part does may come before or after what another does, and that matters: one
/// has a count, the other may not come back.
pub fn is_unordered<'a>(parts: impl Iterator<Item = (bool, bool)> + Clone + 'a) -> bool {
    let mut others = parts.clone().enumerate();
    others.any(|(at, (has_blocks, _))| {
        let mut rest = parts.clone().enumerate();
        has_blocks && rest.any(|(other, (_, lost))| other != at && lost)
    })
}
