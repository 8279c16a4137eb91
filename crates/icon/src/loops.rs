//! Loops, and what leaves them.

use crate::error::{Error, Fault};
use crate::generate::Generator;
use crate::opcode::Opcode;
use crate::tokens::Kind;
use crate::tree::{Clause, LexemeId, Node, What};

/// The loops around what code is made of, and the other things that decide what is possible there.
pub struct Loops {
    loops: Vec<Open>,
    pub creates: u32,
}

/// A loop that is open, or the procedure itself.
#[derive(Clone, Copy)]
pub struct Open {
    /// Where `next` and `break` go. None where they are not possible.
    pub next: Option<u32>,
    pub exit: Option<u32>,
    /// How many marks are open within it.
    pub marks: u32,
    /// What `next` goes to has no mark of its own.
    is_generator: bool,
}

impl Loops {
    pub fn new() -> Self {
        let procedure = Open {
            next: None,
            exit: None,
            marks: 0,
            is_generator: false,
        };
        Loops {
            loops: vec![procedure],
            creates: 0,
        }
    }

    pub fn innermost(&mut self) -> &mut Open {
        // The procedure is never closed.
        let last = self.loops.len() - 1;
        &mut self.loops[last]
    }

    fn open(&mut self, next: u32, exit: u32, is_generator: bool) {
        self.loops.push(Open {
            next: Some(next),
            exit: Some(exit),
            marks: 1,
            is_generator,
        });
    }

    fn close(&mut self) {
        self.loops.pop();
    }
}

const STRUCTURE: Kind = Kind::Structure;

impl<'a> Generator<'a> {
    /// `every`, and `suspend`, which is one that gives each result to the caller.
    pub fn every(
        &mut self,
        node: &Node,
        head: &'a Node,
        body: Option<&'a Clause>,
        suspends: bool,
    ) -> Result<(), Error> {
        if suspends && self.loops.creates > 0 {
            return Err(self.error(node.at, Fault::Context("suspend")));
        }
        let own = Some(node.lexeme);
        let label = self.labels(2);
        self.loops.open(label, label + 1, true);
        let mark = self.op(Opcode::Mark0, own);
        self.mark(node.lexeme, STRUCTURE, mark);
        self.node(head)?;
        if suspends {
            self.set(node.at);
            self.op(Opcode::Psusp, own);
        }
        self.op(Opcode::Pop, own);
        if let Some(body) = body {
            let word = Some(body.lexeme);
            let mark = self.op(Opcode::Mark0, word);
            self.mark(body.lexeme, STRUCTURE, mark);
            self.loops.innermost().is_generator = false;
            self.marked(&body.body)?;
            self.op(Opcode::Unmark, word);
        }
        self.label(label);
        self.op(Opcode::Efail, own);
        self.label(label + 1);
        self.loops.close();
        Ok(())
    }

    pub fn repeat(&mut self, lexeme: LexemeId, body: &'a Node) -> Result<(), Error> {
        let label = self.labels(3);
        self.loops.open(label + 1, label + 2, false);
        self.mark_entry(lexeme, STRUCTURE, self.here());
        self.label(label);
        self.again(lexeme, body, label, label + 1)?;
        self.label(label + 2);
        self.loops.close();
        Ok(())
    }

    /// Something that is done, and then, whether it fails or not, a loop begins anew.
    pub fn again(
        &mut self,
        lexeme: LexemeId,
        body: &'a Node,
        head: u32,
        next: u32,
    ) -> Result<usize, Error> {
        let own = Some(lexeme);
        let mark = self.op_label(Opcode::Mark, head, own);
        self.node(body)?;
        self.label(next);
        let unmark = self.op(Opcode::Unmark, own);
        self.frame(mark, Some(unmark), head);
        self.op_label(Opcode::Goto, head, own);
        Ok(mark)
    }

    pub fn while_loop(
        &mut self,
        lexeme: LexemeId,
        condition: &'a Node,
        body: Option<&'a Clause>,
    ) -> Result<(), Error> {
        let own = Some(lexeme);
        let label = self.labels(3);
        self.loops.open(label + 1, label + 2, false);
        self.mark_entry(lexeme, STRUCTURE, self.here());
        self.label(label);
        self.op(Opcode::Mark0, own);
        self.node(condition)?;
        match body {
            Some(body) => {
                self.op(Opcode::Unmark, own);
                let mark = self.again(body.lexeme, &body.body, label, label + 1)?;
                self.mark(body.lexeme, STRUCTURE, mark);
            }
            None => {
                self.label(label + 1);
                self.op(Opcode::Unmark, own);
                self.op_label(Opcode::Goto, label, own);
            }
        }
        self.label(label + 2);
        self.loops.close();
        Ok(())
    }

    /// A body that is not there is evaluated as well.
    pub fn until(&mut self, node: &'a Node, condition: &'a Node) -> Result<(), Error> {
        let lexeme = node.lexeme;
        let own = Some(lexeme);
        let label = self.labels(4);
        self.loops.open(label + 2, label + 3, false);
        self.mark_entry(lexeme, STRUCTURE, self.here());
        self.label(label);
        let mark = self.op_label(Opcode::Mark, label + 1, own);
        self.node(condition)?;
        let unmark = self.op(Opcode::Unmark, own);
        self.frame(mark, Some(unmark), label + 1);
        self.op(Opcode::Efail, own);
        self.label(label + 1);
        match &node.what {
            What::Loop(_, _, Some(body)) => {
                let mark = self.again(body.lexeme, &body.body, label, label + 2)?;
                self.mark(body.lexeme, STRUCTURE, mark);
            }
            _ => {
                let mark = self.op_label(Opcode::Mark, label, own);
                self.op(Opcode::Pnull, None);
                self.label(label + 2);
                let unmark = self.op(Opcode::Unmark, own);
                self.frame(mark, Some(unmark), label);
                self.op_label(Opcode::Goto, label, own);
            }
        }
        self.label(label + 3);
        self.loops.close();
        Ok(())
    }

    pub fn leave(&mut self, node: &Node, value: &'a Node) -> Result<(), Error> {
        let own = Some(node.lexeme);
        let left = *self.loops.innermost();
        let Some(exit) = left.exit else {
            return Err(self.error(node.at, Fault::Context("break")));
        };
        for number in 0..left.marks {
            let unmark = self.op(Opcode::Unmark, own);
            self.mark(node.lexeme, STRUCTURE, unmark);
            if number == 0 {
                self.leaves.push((unmark, Some(exit)));
            }
        }
        self.loops.loops.pop();
        self.node(value)?;
        self.loops.loops.push(left);
        self.op_label(Opcode::Goto, exit, own);
        Ok(())
    }

    pub fn next(&mut self, node: &Node) -> Result<(), Error> {
        let own = Some(node.lexeme);
        let current = *self.loops.innermost();
        let Some(label) = current.next else {
            return Err(self.error(node.at, Fault::Context("next")));
        };
        if !current.is_generator {
            for _ in 1..current.marks {
                let unmark = self.op(Opcode::Unmark, own);
                self.mark(node.lexeme, STRUCTURE, unmark);
            }
        }
        let goto = self.op_label(Opcode::Goto, label, own);
        self.mark(node.lexeme, STRUCTURE, goto);
        if !current.is_generator {
            self.leaves.push((goto, Some(label)));
        }
        Ok(())
    }
}
