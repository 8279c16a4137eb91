//! Where a block is in a source text, and what it is there.

use crate::FileId;

/// What a block of source text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    /// A function, from its entry on.
    Function,
    /// What an `if` governs.
    Then,
    /// What an `else` governs.
    Else,
    /// What follows something that control may not come out of as often as it went in.
    After,
    /// What a loop governs.
    Body,
    /// The condition of a loop.
    Condition,
    /// What a `for` does between two rounds.
    Step,
    /// What follows a label.
    Label,
    /// What follows a `case`.
    Case,
    /// What follows a `default`.
    Default,
    /// The second operand of `?:`.
    TrueOperand,
    /// The third operand of `?:`.
    FalseOperand,
    /// The right operand of `&&` or `||`.
    RightOperand,
    /// A statement expression.
    StatementExpression,
    /// A line of a program that is interpreted.
    Line,
    /// An operation of such a program.
    Operation,
}

impl BlockKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 16] = [
        Self::Function,
        Self::Then,
        Self::Else,
        Self::After,
        Self::Body,
        Self::Condition,
        Self::Step,
        Self::Label,
        Self::Case,
        Self::Default,
        Self::TrueOperand,
        Self::FalseOperand,
        Self::RightOperand,
        Self::StatementExpression,
        Self::Line,
        Self::Operation,
    ];

    /// The word that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Then => "then",
            Self::Else => "else",
            Self::After => "after",
            Self::Body => "body",
            Self::Condition => "condition",
            Self::Step => "step",
            Self::Label => "label",
            Self::Case => "case",
            Self::Default => "default",
            Self::TrueOperand => "true operand",
            Self::FalseOperand => "false operand",
            Self::RightOperand => "right operand",
            Self::StatementExpression => "statement expression",
            Self::Line => "line",
            Self::Operation => "operation",
        }
    }

    /// A small number for compact storage: the place in [`BlockKind::ALL`].
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The kind with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// What an operation of an interpreted program does, and where its text ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// The interpreter's instruction that does it.
    pub kind: String,
    /// The line that its text ends in.
    pub end_line: u32,
    /// The byte behind it, in that line, from 1.
    pub end_column: u32,
}

impl Operation {
    /// The kind of what is no operation: that one went on that begins and ends at the same place.
    pub const RESUMED: &'static str = "RESUME";

    /// The kind of what is no operation: how many bytes of storage that one took that begins and ends at the same
    /// place.
    pub const TOOK: &'static str = "BYTES";

    /// The kind of what is no operation: how many samples are of that one that begins and ends at the same place.
    pub const SAMPLED: &'static str = "SAMPLES";

    /// Is it an operation?
    pub fn is_one(&self) -> bool {
        ![Self::RESUMED, Self::TOOK, Self::SAMPLED].contains(&&*self.kind)
    }
}

/// Where a block of source text begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourcePlace {
    /// The file.
    pub file: FileId,
    /// The line, from 1.
    pub line: u32,
    /// The byte in the line, from 1.
    pub column: u32,
    /// What begins there.
    pub kind: BlockKind,
}
