//! The blocks and edges of one function.
//!
//! There is one node besides the blocks: [`Node::Outside`], the rest of the world. Control comes
//! from it (a call of the function, an exception arriving at a landing pad, a computed jump to a
//! label whose address was taken) and goes to it (a return, a tail jump, a call that never comes
//! back). It stands for the papers' EXIT and ENTRY at once, with the edge between them.

/// A block of one flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

impl BlockId {
    /// As an index into a vector with one item a block.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An edge of one flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId(pub u32);

impl EdgeId {
    /// As an index into a vector with one item an edge.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// The rest of the world: callers, callees that do not come back, unwinders.
    Outside,
    /// A block of this graph.
    Block(BlockId),
}

/// Why control moves along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// The function is entered at its beginning.
    Entry,
    /// Control arrives in the middle: landing pad, `setjmp` return, label with a taken address.
    Arrival,
    /// The next instruction in memory.
    Fall,
    /// A conditional branch that is taken.
    Taken,
    /// An unconditional jump.
    Jump,
    /// The function returns, or jumps away for good (tail call, indirect jump).
    Leave,
    /// A call that did not come back.
    Lost,
}

impl EdgeKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 7] = [
        Self::Entry,
        Self::Arrival,
        Self::Fall,
        Self::Taken,
        Self::Jump,
        Self::Leave,
        Self::Lost,
    ];

    /// The word that reports and profiles use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Arrival => "arrival",
            Self::Fall => "fall",
            Self::Taken => "taken",
            Self::Jump => "jump",
            Self::Leave => "leave",
            Self::Lost => "lost",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// A small number for compact storage: the place in [`EdgeKind::ALL`].
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The kind with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// A way control can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// Where it starts.
    pub from: Node,
    /// Where it ends.
    pub to: Node,
    /// Why control takes it.
    pub kind: EdgeKind,
}

/// The blocks and edges of one function (or of several that jump into each other).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowGraph {
    /// How many blocks there are; they are numbered from 0.
    pub blocks: u32,
    /// All edges. Two edges may join the same blocks.
    pub edges: Vec<Edge>,
}

impl FlowGraph {
    /// The edges with their numbers.
    pub fn edges(&self) -> impl Iterator<Item = (EdgeId, &Edge)> {
        (0..).map(EdgeId).zip(&self.edges)
    }
}
