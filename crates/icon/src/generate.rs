//! A procedure in, its ucode out, instruction by instruction as the translator makes it.
//!
//! Beside the code it notes which of it starts each token ([`Mark`]), and what control flow cannot be
//! read from jumps: where expressions fail to, and what leaves them ([`Frame`], `leaves`).

use std::collections::BTreeMap;

use crate::error::{Error, Fault};
use crate::files::{At, FileId, Names};
use crate::loops::Loops;
use crate::opcode::Opcode;
use crate::tokens::Kind;
use crate::tree::{LexemeId, Node, Procedure, What};
use crate::ucode::{Code, Instruction, Item, Operand};

/// The code of a procedure, and what was known when it was made.
#[derive(Debug)]
pub struct Made {
    pub code: Code,
    pub marks: BTreeMap<LexemeId, Mark>,
    pub frames: Vec<Frame>,
    /// Instructions that, when executed, leave the expressions around them: up to a label, or the
    /// procedure.
    pub leaves: Vec<(usize, Option<u32>)>,
    /// Of calls, the items that push a name that is called.
    pub callees: BTreeMap<LexemeId, usize>,
}

/// What of the code starts a token.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub kind: Kind,
    pub start: Begin,
}

#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// The item of an instruction.
    Instruction(usize),
    /// Coming to an item, from before it or by a jump from outside; not by a jump of the loop that
    /// begins there.
    Entry(usize),
}

/// Between a `mark` and the `unmark` that ends it, an expression that goes to a label if it fails.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub mark: usize,
    /// None if it is ended otherwise.
    pub unmark: Option<usize>,
    pub label: u32,
}

/// What is carried from one procedure to the next: a place is written down only if it is another one.
#[derive(Default)]
pub struct Place {
    file: Option<FileId>,
    packed: u32,
}

pub fn generate(procedure: &Procedure, place: &mut Place, names: &Names) -> Result<Made, Error> {
    let mut it = Generator {
        items: Vec::new(),
        marks: BTreeMap::new(),
        frames: Vec::new(),
        leaves: Vec::new(),
        callees: BTreeMap::new(),
        next_label: 1,
        loops: Loops::new(),
        place,
        names,
    };
    let file = it.new_file(procedure.at);
    it.line(procedure.at);
    if let Some((lexeme, node)) = &procedure.initial {
        let label = it.labels(1);
        it.op_label(Opcode::Init, label, Some(*lexeme));
        // `init` runs at each call, what it skips but once.
        let mark = it.op_label(Opcode::Mark, label, Some(*lexeme));
        it.mark(*lexeme, Kind::Structure, mark);
        it.node(node)?;
        let unmark = it.op(Opcode::Unmark, Some(*lexeme));
        it.frame(mark, Some(unmark), label);
        it.label(label);
    }
    // A body is never without its end; one of nothing else has no code.
    if procedure.body.len() > 1 {
        it.sequence(&procedure.body)?;
    }
    it.set(procedure.end);
    it.op(Opcode::Pfail, None);
    Ok(Made {
        code: Code {
            name: procedure.name.clone(),
            file,
            begins_in: procedure.at.file.unwrap_or(FileId(0)),
            locals: procedure.locals.clone(),
            constants: procedure.constants.clone(),
            items: it.items,
        },
        marks: it.marks,
        frames: it.frames,
        leaves: it.leaves,
        callees: it.callees,
    })
}

pub struct Generator<'a> {
    items: Vec<Item>,
    pub marks: BTreeMap<LexemeId, Mark>,
    frames: Vec<Frame>,
    pub leaves: Vec<(usize, Option<u32>)>,
    pub callees: BTreeMap<LexemeId, usize>,
    next_label: u32,
    pub loops: Loops,
    place: &'a mut Place,
    names: &'a Names,
}

impl<'a> Generator<'a> {
    /// The item that comes next.
    pub fn here(&self) -> usize {
        self.items.len()
    }

    pub fn labels(&mut self, number: u32) -> u32 {
        let first = self.next_label;
        self.next_label += number;
        first
    }

    pub fn label(&mut self, label: u32) {
        self.items.push(Item::Label(label));
    }

    pub fn emit(&mut self, opcode: Opcode, operand: Operand, lexeme: Option<LexemeId>) -> usize {
        let at = self.items.len();
        self.items.push(Item::Do(Instruction {
            opcode,
            operand,
            token: lexeme,
        }));
        at
    }

    pub fn op(&mut self, opcode: Opcode, lexeme: Option<LexemeId>) -> usize {
        self.emit(opcode, Operand::None, lexeme)
    }

    pub fn op_label(&mut self, opcode: Opcode, label: u32, lexeme: Option<LexemeId>) -> usize {
        self.emit(opcode, Operand::Label(label), lexeme)
    }

    pub fn op_number(&mut self, opcode: Opcode, number: i64, lexeme: Option<LexemeId>) -> usize {
        self.emit(opcode, Operand::Number(number), lexeme)
    }

    /// The instruction starts the token; the first one does, if there are several.
    pub fn mark(&mut self, lexeme: LexemeId, kind: Kind, item: usize) {
        let start = Begin::Instruction(item);
        self.marks.entry(lexeme).or_insert(Mark { kind, start });
    }

    pub fn mark_entry(&mut self, lexeme: LexemeId, kind: Kind, item: usize) {
        let start = Begin::Entry(item);
        self.marks.entry(lexeme).or_insert(Mark { kind, start });
    }

    pub fn frame(&mut self, mark: usize, unmark: Option<usize>, label: u32) {
        self.frames.push(Frame {
            mark,
            unmark,
            label,
        });
    }

    fn new_file(&mut self, at: At) -> Option<FileId> {
        let file = at.file.filter(|it| self.place.file != Some(*it))?;
        self.place.file = Some(file);
        Some(file)
    }

    fn line(&mut self, at: At) {
        let packed = (at.column << 16).wrapping_add(at.line);
        if packed != self.place.packed {
            self.place.packed = packed;
            self.items.push(Item::Line(at.line));
            self.items.push(Item::Column(at.column));
        }
    }

    /// What follows stands there.
    pub fn set(&mut self, at: At) {
        if let Some(file) = self.new_file(at) {
            self.items.push(Item::File(file));
        }
        self.line(at);
    }

    pub fn error(&self, at: At, what: Fault) -> Error {
        Error::new(self.names, at, what)
    }

    /// Makes code of a node that a mark stands before.
    pub fn marked(&mut self, node: &'a Node) -> Result<(), Error> {
        self.loops.innermost().marks += 1;
        self.node(node)?;
        self.loops.innermost().marks -= 1;
        Ok(())
    }

    pub fn node(&mut self, node: &'a Node) -> Result<(), Error> {
        let lexeme = node.lexeme;
        let own = Some(lexeme);
        match &node.what {
            What::Empty => {
                self.op(Opcode::Pnull, None);
            }
            What::Name(number) => self.leaf(Opcode::Var, *number, Kind::Identifier, lexeme),
            What::Integer(number) => self.leaf(Opcode::Int, *number, Kind::Literal, lexeme),
            What::Real(number) => self.leaf(Opcode::Real, *number, Kind::Literal, lexeme),
            What::String(number) => self.leaf(Opcode::Str, *number, Kind::Literal, lexeme),
            What::Cset(number) => self.leaf(Opcode::Cset, *number, Kind::Literal, lexeme),
            What::Keyword(name) => {
                self.set(node.at);
                let item = self.emit(Opcode::Keywd, Operand::Text(name.clone()), own);
                self.mark(lexeme, Kind::Keyword, item);
            }
            What::Prefix(operator, operand) => self.prefix(node, *operator, operand)?,
            What::Infix(..) => self.infix(node)?,
            What::Conjunction(assigns, left, right) => {
                self.conjunction(node, *assigns, left, right)?
            }
            What::Scan(assigns, left, right) => self.scan(node, *assigns, left, right)?,
            What::Activate(assigns, left, right) => self.activate(node, *assigns, left, right)?,
            What::Apply(callee, list) => {
                self.node(callee)?;
                self.node(list)?;
                let item = self.op_number(Opcode::Invoke, -1, own);
                self.mark(lexeme, Kind::Operator, item);
            }
            What::To(from, to, by) => self.generator(node, from, to, by.as_ref())?,
            What::Call(callee, arguments) => self.call(node, callee.as_deref(), arguments)?,
            What::List(elements) => {
                self.op(Opcode::Pnull, own);
                self.nodes(elements)?;
                self.set(node.at);
                let item = self.op_number(Opcode::Llist, elements.len() as i64, own);
                self.mark(lexeme, Kind::List, item);
            }
            What::Field(record, name) => {
                self.op(Opcode::Pnull, own);
                self.node(record)?;
                self.set(node.at);
                let item = self.emit(Opcode::Field, Operand::Text(name.clone()), own);
                self.mark(lexeme, Kind::Operator, item);
            }
            What::Section(section, parts) => self.section(node, *section, parts)?,
            What::Sequence(nodes) => self.sequence(nodes)?,
            _ => self.structure(node)?,
        }
        Ok(())
    }

    pub fn nodes(&mut self, nodes: &'a [Node]) -> Result<(), Error> {
        nodes.iter().try_for_each(|it| self.node(it))
    }

    fn leaf(&mut self, opcode: Opcode, number: u32, kind: Kind, lexeme: LexemeId) {
        let item = self.op_number(opcode, i64::from(number), Some(lexeme));
        self.mark(lexeme, kind, item);
    }

    /// Each but the last is done with before the next begins, whether it fails or not.
    fn sequence(&mut self, nodes: &'a [Node]) -> Result<(), Error> {
        let Some((last, others)) = nodes.split_last() else {
            return Ok(());
        };
        for node in others {
            let label = self.labels(1);
            let mark = self.op_label(Opcode::Mark, label, None);
            self.marked(node)?;
            let unmark = self.op(Opcode::Unmark, None);
            self.frame(mark, Some(unmark), label);
            self.label(label);
        }
        // In the tree of the translator, marks are open only around what they are for.
        self.node(last)
    }
}
