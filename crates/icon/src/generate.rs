//! A procedure in, its ucode out, instruction by instruction as the translator makes it.
//!
//! Beside the code it notes which of it starts each token ([`Mark`]), and what control flow cannot be
//! read from jumps: where expressions fail to, and what leaves them ([`Frame`], `leaves`).

use std::collections::BTreeMap;

use crate::error::{Error, Fault};
use crate::files::{At, FileId, Names};
use crate::opcode::Opcode;
use crate::preprocess::words;
use crate::structures::Loops;
use crate::tokens::Kind;
use crate::tree::{Clause, LexemeId, Node, Operation, Procedure, Section, What};
use crate::ucode::{Code, Instruction, Item, Operand};
use crate::words::Operator;

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
    marks: BTreeMap<LexemeId, Mark>,
    frames: Vec<Frame>,
    pub leaves: Vec<(usize, Option<u32>)>,
    callees: BTreeMap<LexemeId, usize>,
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

    fn emit(&mut self, opcode: Opcode, operand: Operand, lexeme: Option<LexemeId>) -> usize {
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
        let file = at.file.map_or(&[][..], |it| self.names.name(it));
        Error {
            file: words(file),
            line: at.line,
            column: at.column,
            what,
        }
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

    fn nodes(&mut self, nodes: &'a [Node]) -> Result<(), Error> {
        nodes.iter().try_for_each(|it| self.node(it))
    }

    fn leaf(&mut self, opcode: Opcode, number: u32, kind: Kind, lexeme: LexemeId) {
        let item = self.op_number(opcode, i64::from(number), Some(lexeme));
        self.mark(lexeme, kind, item);
    }

    fn prefix(&mut self, node: &Node, operator: Operator, operand: &'a Node) -> Result<(), Error> {
        let own = Some(node.lexeme);
        let opcodes = prefix(operator);
        for _ in opcodes {
            self.op(Opcode::Pnull, own);
        }
        self.node(operand)?;
        self.set(node.at);
        for opcode in opcodes {
            let item = self.op(*opcode, own);
            self.mark(node.lexeme, Kind::Operator, item);
        }
        Ok(())
    }

    /// Operators whose left operand has one, and so on, are gone through without recursion: chains of
    /// them are long.
    fn infix(&mut self, node: &'a Node) -> Result<(), Error> {
        let mut chain = Vec::new();
        let mut innermost = node;
        while let What::Infix(infix, left, right) = &innermost.what {
            self.op(Opcode::Pnull, Some(innermost.lexeme));
            chain.push((innermost, infix, right));
            innermost = left;
        }
        self.node(innermost)?;
        while let Some((node, infix, right)) = chain.pop() {
            let own = Some(node.lexeme);
            if infix.assigns {
                self.op(Opcode::Dup, own);
            }
            self.node(right)?;
            self.set(node.at);
            let opcode = match infix.operation {
                Operation::Subscript => Opcode::Subsc,
                Operation::Operator(it) => binary(it),
            };
            let item = self.op(opcode, own);
            self.mark(node.lexeme, Kind::Operator, item);
            if infix.assigns {
                self.op(Opcode::Asgn, own);
            }
        }
        Ok(())
    }

    fn activate(
        &mut self,
        node: &Node,
        assigns: bool,
        left: &'a Node,
        right: &'a Node,
    ) -> Result<(), Error> {
        let own = Some(node.lexeme);
        if assigns {
            self.op(Opcode::Pnull, own);
        }
        self.node(left)?;
        if assigns {
            self.op(Opcode::Sdup, own);
        }
        self.node(right)?;
        self.set(node.at);
        let item = self.op(Opcode::Coact, own);
        self.mark(node.lexeme, Kind::Operator, item);
        if assigns {
            self.op(Opcode::Asgn, own);
        }
        Ok(())
    }

    fn generator(
        &mut self,
        node: &Node,
        from: &'a Node,
        to: &'a Node,
        by: Option<&'a Clause>,
    ) -> Result<(), Error> {
        let own = Some(node.lexeme);
        self.op(Opcode::Pnull, own);
        self.node(from)?;
        self.node(to)?;
        match by {
            Some(by) => self.node(&by.body)?,
            None => {
                self.op(Opcode::Push1, own);
            }
        }
        self.set(node.at);
        let item = self.op(Opcode::Toby, own);
        self.mark(node.lexeme, Kind::Structure, item);
        if let Some(by) = by {
            self.mark(by.lexeme, Kind::Structure, item);
        }
        Ok(())
    }

    fn call(
        &mut self,
        node: &Node,
        callee: Option<&'a Node>,
        arguments: &'a [Node],
    ) -> Result<(), Error> {
        let own = Some(node.lexeme);
        match callee {
            Some(callee) => {
                if let What::Name(_) = callee.what {
                    self.callees.insert(node.lexeme, self.here());
                }
                self.node(callee)?
            }
            None => {
                self.op(Opcode::Pushn1, own);
            }
        }
        self.nodes(arguments)?;
        self.set(node.at);
        let item = self.op_number(Opcode::Invoke, arguments.len() as i64, own);
        // In `p{...}` the brace has been that of a list before.
        self.marks.remove(&node.lexeme);
        self.mark(node.lexeme, Kind::Call, item);
        Ok(())
    }

    fn conjunction(
        &mut self,
        node: &'a Node,
        assigns: bool,
        left: &'a Node,
        right: &'a Node,
    ) -> Result<(), Error> {
        let own = Some(node.lexeme);
        if assigns {
            self.op(Opcode::Pnull, own);
            self.node(left)?;
            self.node(right)?;
            self.set(node.at);
            let item = self.op(Opcode::Asgn, own);
            self.mark(node.lexeme, Kind::Operator, item);
            return Ok(());
        }
        self.node(left)?;
        let item = self.op(Opcode::Pop, own);
        self.mark(node.lexeme, Kind::Operator, item);
        self.node(right)
    }

    fn scan(
        &mut self,
        node: &'a Node,
        assigns: bool,
        left: &'a Node,
        right: &'a Node,
    ) -> Result<(), Error> {
        let own = Some(node.lexeme);
        if assigns {
            self.op(Opcode::Pnull, own);
        }
        self.node(left)?;
        if assigns {
            self.op(Opcode::Sdup, own);
        }
        self.set(node.at);
        let item = self.op(Opcode::Bscan, own);
        self.mark(node.lexeme, Kind::Operator, item);
        self.node(right)?;
        self.set(node.at);
        self.op(Opcode::Escan, own);
        if assigns {
            self.op(Opcode::Asgn, own);
        }
        Ok(())
    }

    fn section(
        &mut self,
        node: &'a Node,
        section: Section,
        [base, first, second]: &'a [Node; 3],
    ) -> Result<(), Error> {
        let own = Some(node.lexeme);
        self.op(Opcode::Pnull, own);
        self.node(base)?;
        self.node(first)?;
        if section != Section::Between {
            self.op(Opcode::Dup, own);
        }
        self.node(second)?;
        self.set(node.at);
        let sum = match section {
            Section::Between => None,
            Section::Ahead => Some(Opcode::Plus),
            Section::Back => Some(Opcode::Minus),
        };
        if let Some(opcode) = sum {
            let item = self.op(opcode, own);
            self.mark(node.lexeme, Kind::Operator, item);
        }
        let item = self.op(Opcode::Sect, own);
        self.mark(node.lexeme, Kind::Operator, item);
        Ok(())
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

/// What a prefix operator does. Several that look like another operator are applied from the right.
fn prefix(operator: Operator) -> &'static [Opcode] {
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

fn binary(operator: Operator) -> Opcode {
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
