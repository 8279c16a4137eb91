//! What a procedure consists of.

use crate::files::At;
use crate::words::Operator;

/// A lexeme, by its number in the text.
pub type LexemeId = u32;

/// One expression.
#[derive(Debug)]
pub struct Node {
    /// Where the translator believes that it stands. (At its operator, if it has one.)
    pub at: At,
    /// What of it is executed when the expression is.
    pub lexeme: LexemeId,
    pub what: What,
    /// How many expressions are within each other here; what takes recursion to go through counts more.
    pub height: u32,
}

#[derive(Debug)]
pub enum What {
    Empty,
    /// Numbers of the procedure's tables of names and of constants.
    Name(u32),
    Integer(u32),
    Real(u32),
    String(u32),
    Cset(u32),
    /// Without `&`.
    Keyword(Vec<u8>),
    Prefix(Operator, Box<Node>),
    Infix(Infix, Box<Node>, Box<Node>),
    /// `e1 & e2`, `e1 &:= e2`
    Conjunction(bool, Box<Node>, Box<Node>),
    /// `e1 ? e2`, `e1 ?:= e2`
    Scan(bool, Box<Node>, Box<Node>),
    /// `e1 @ e2`, `e1 @:= e2`
    Activate(bool, Box<Node>, Box<Node>),
    /// `e1 ! e2`
    Apply(Box<Node>, Box<Node>),
    /// `e1 | e2`
    Alternation(Box<Node>, Box<Node>),
    /// `|e`
    Repeated(Box<Node>),
    /// `e1 \ e2`
    Limit(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Create(Box<Node>),
    /// `e1 to e2 by e3`
    To(Box<Node>, Box<Node>, Option<Clause>),
    /// `e(...)`; without an expression before it, `(...)` with commas.
    Call(Option<Box<Node>>, Vec<Node>),
    List(Vec<Node>),
    Field(Box<Node>, Vec<u8>),
    Section(Section, Box<[Node; 3]>),
    /// `e1; e2; ...`
    Sequence(Vec<Node>),
    If(Box<Node>, Clause, Option<Clause>),
    Case(Box<Case>),
    Loop(Loop, Box<Node>, Option<Clause>),
    /// None of `fail`.
    Return(Option<Box<Node>>),
    Break(Box<Node>),
    Next,
}

/// A reserved word, and what follows it.
#[derive(Debug)]
pub struct Clause {
    pub lexeme: LexemeId,
    pub body: Box<Node>,
}

#[derive(Clone, Copy, Debug)]
pub struct Infix {
    pub operation: Operation,
    pub assigns: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Operator(Operator),
    Subscript,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// `[i:j]`
    Between,
    /// `[i+:j]`
    Ahead,
    /// `[i-:j]`
    Back,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    Every,
    Repeat,
    Suspend,
    Until,
    While,
}

#[derive(Debug)]
pub struct Case {
    pub control: Node,
    /// The word `of`.
    pub of: LexemeId,
    pub arms: Vec<Arm>,
}

#[derive(Debug)]
pub struct Arm {
    /// Where its colon is.
    pub at: At,
    /// The colon, or the word `default`.
    pub lexeme: LexemeId,
    /// None of `default`.
    pub selector: Option<Node>,
    pub body: Node,
}

/// What is declared in a file, in its order.
#[derive(Debug)]
pub struct Procedure {
    pub name: Vec<u8>,
    pub at: At,
    pub end: At,
    pub locals: Vec<Local>,
    pub constants: Vec<Constant>,
    pub initial: Option<(LexemeId, Node)>,
    /// With an empty one at the end.
    pub body: Vec<Node>,
}

/// A name of a procedure: of a variable of its own, or of one that is found when it is linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    pub name: Vec<u8>,
    pub kind: LocalKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalKind {
    Undeclared,
    Dynamic,
    Static,
    Argument,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// As it is written.
    Integer(Vec<u8>),
    Real(Vec<u8>),
    String(Vec<u8>),
    Cset(Vec<u8>),
}

#[derive(Clone, Debug)]
pub struct Global {
    pub name: Vec<u8>,
    pub kind: GlobalKind,
    /// Negative if the last argument is a list of all others.
    pub arguments: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalKind {
    Variable,
    Procedure,
    Record,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub name: Vec<u8>,
    pub fields: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
pub struct Program {
    pub procedures: Vec<Procedure>,
    pub records: Vec<Record>,
    pub globals: Vec<Global>,
    pub links: Vec<Vec<u8>>,
    /// `0` stands for all.
    pub invocable: Vec<Vec<u8>>,
}

impl Node {
    pub fn new(at: At, lexeme: LexemeId, what: What) -> Node {
        let own = match what {
            What::Infix(..) | What::Alternation(..) => 1,
            _ => 10,
        };
        let height = own + what.height();
        Node {
            at,
            lexeme,
            what,
            height,
        }
    }

    /// An expression that is not there.
    pub fn empty() -> Node {
        Node::new(At::default(), 0, What::Empty)
    }

    pub fn is_empty(&self) -> bool {
        matches!(self.what, What::Empty)
    }
}

impl What {
    fn height(&self) -> u32 {
        let all = |nodes: &[Node]| nodes.iter().map(|it| it.height).max().unwrap_or(0);
        let clause = |it: &Option<Clause>| it.as_ref().map_or(0, |it| it.body.height);
        match self {
            What::Empty | What::Next | What::Return(None) | What::Keyword(_) => 0,
            What::Name(_) | What::Integer(_) | What::Real(_) => 0,
            What::String(_) | What::Cset(_) => 0,
            What::Prefix(_, e) | What::Repeated(e) | What::Not(e) | What::Create(e) => e.height,
            What::Break(e) | What::Return(Some(e)) | What::Field(e, _) => e.height,
            What::Infix(_, a, b) | What::Conjunction(_, a, b) | What::Scan(_, a, b) => {
                a.height.max(b.height)
            }
            What::Activate(_, a, b) | What::Apply(a, b) => a.height.max(b.height),
            What::Alternation(a, b) | What::Limit(a, b) => a.height.max(b.height),
            What::To(a, b, by) => a.height.max(b.height).max(clause(by)),
            What::Call(callee, nodes) => all(nodes).max(callee.as_ref().map_or(0, |it| it.height)),
            What::List(nodes) | What::Sequence(nodes) => all(nodes),
            What::Section(_, nodes) => all(&nodes[..]),
            What::If(condition, then, other) => {
                let arms = then.body.height.max(clause(other));
                condition.height.max(arms)
            }
            What::Case(case) => {
                let arm = |it: &Arm| {
                    let selector = it.selector.as_ref().map_or(0, |it| it.height);
                    selector.max(it.body.height)
                };
                let arms = case.arms.iter().map(arm).max().unwrap_or(0);
                case.control.height.max(arms)
            }
            What::Loop(_, head, body) => head.height.max(clause(body)),
        }
    }
}
