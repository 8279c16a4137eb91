//! What a program is made of: the facts that hold for every run of one build.

use crate::{EdgeKind, Language, LinkAddr, Operation, Refusal, SourcePlace};

/// A source file of one module: an index into [`Module::files`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

impl FileId {
    /// As an index into [`Module::files`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An executable or a shared library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Where the file was when it ran.
    pub path: String,
    /// Names this very build: two modules with the same one have the same facts.
    pub build_id: String,
    /// Source files, as the debug information names them.
    pub files: Vec<String>,
    /// The functions that are counted, by address.
    pub functions: Vec<Function>,
    /// What is not counted, and why.
    pub refusals: Vec<Refusal>,
}

/// A function. `blocks` and `edges` are what its counts belong to, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The linker's name for it (mangled where the language mangles).
    pub name: String,
    /// Its entry.
    pub address: LinkAddr,
    /// Where its source begins, if the build says.
    pub source: Option<(FileId, u32)>,
    /// Its blocks, by address; the one at `address` is its entry.
    pub blocks: Vec<Block>,
    /// Its edges.
    pub edges: Vec<FunctionEdge>,
    /// How many counters the plan gave it.
    pub counters: u32,
    /// What the compiler made of its lines.
    pub compiled: Compiled,
}

/// What a compiler made of the lines of a function, as far as the debug information tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// Whether its code may have been copied, moved, merged or dropped.
    pub is_optimised: bool,
    /// Whether [`LineRun::is_stmt`] only marks where the line changes (LLVM), and not where
    /// statements begin (gcc).
    pub marks_changes: bool,
    /// The calls that were replaced by what they call. Copy number `n` of [`LineRun`] is the one
    /// with index `n - 1`.
    pub inlined: Vec<InlinedCall>,
    /// The language of what an interpreter runs; its blocks are in its source text.
    pub language: Option<Language>,
}

/// A call that was replaced by a copy of what it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InlinedCall {
    /// The copy that the call stands in: 0 if in none.
    pub within: u32,
    /// The file of the call.
    pub file: FileId,
    /// Its line; 0 if that is not known.
    pub line: u32,
    /// Its column; 0 if that is not known.
    pub column: u32,
    /// Where the copy is entered, if the build says.
    pub entry: Option<LinkAddr>,
    /// Where the source of what it calls begins, if the build says.
    pub callee: Option<(FileId, u32)>,
}

/// A maximal run of instructions entered only at its first and left only at its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its first instruction.
    pub address: LinkAddr,
    /// Its bytes: the program's own instructions only. Usually one span; more where a probe or
    /// alignment stands between.
    pub code: Vec<Span>,
    /// How many instructions `code` holds.
    pub instructions: u32,
    /// The same instructions as runs of one line and column each, in order. The runs' `instructions` add up
    /// to at most `instructions`; what is missing at the front belongs to no line.
    pub lines: Vec<LineRun>,
    /// Where it is in the source text, if that was counted before it was compiled. Such a block
    /// has no code: its `instructions` are statements, and its address only tells it from others.
    pub place: Option<SourcePlace>,
    /// What it does there, if it is an operation.
    pub operation: Option<Operation>,
}

/// A contiguous piece of original code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub address: LinkAddr,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Successive instructions of one block that belong to one place of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRun {
    /// The file.
    pub file: FileId,
    /// The line; 0 means "no line in particular".
    pub line: u32,
    /// The column; 0 if the build does not say.
    pub column: u32,
    /// Whether a statement of that line begins here.
    pub is_stmt: bool,
    /// How many instructions.
    pub instructions: u32,
    /// Which inlined copy of its function this is, in the function around it: 0 if none.
    pub inline_copy: u32,
}

/// An edge of a function; an end that is `None` lies outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionEdge {
    /// Index of the block it leaves.
    pub from: Option<u32>,
    /// Index of the block it reaches.
    pub to: Option<u32>,
    /// Why control takes it.
    pub kind: EdgeKind,
}

/// A symbol of code, as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSymbol {
    /// Where it is.
    pub address: LinkAddr,
    /// How many bytes it names.
    pub size: u64,
    /// The name.
    pub name: String,
    /// For a local one: its number among the local symbols with this name, by address, from 1.
    pub local: Option<u32>,
}

/// A function that an instruction belongs to: the one it was compiled into, or one that was inlined
/// there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineFrame {
    /// The linker's name.
    pub function: String,
    /// The line that it is declared on.
    pub start: u32,
    /// The line of the instruction, or of the call that was inlined.
    pub line: u32,
    /// Tells code of one line apart, where the compiler does.
    pub discriminator: u64,
}
