//! Operations: their operands from the left to the right, then the operation itself.

use crate::error::Error;
use crate::generate::Generator;
use crate::opcode::Opcode;
use crate::operators;
use crate::tokens::Kind;
use crate::tree::{Clause, Node, Operation, Section, What};
use crate::words::Operator;

impl<'a> Generator<'a> {
    pub fn prefix(
        &mut self,
        node: &Node,
        operator: Operator,
        operand: &'a Node,
    ) -> Result<(), Error> {
        let own = Some(node.lexeme);
        let opcodes = operators::prefix(operator);
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
    pub fn infix(&mut self, node: &'a Node) -> Result<(), Error> {
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
                Operation::Operator(it) => operators::binary(it),
            };
            let item = self.op(opcode, own);
            self.mark(node.lexeme, Kind::Operator, item);
            if infix.assigns {
                self.op(Opcode::Asgn, own);
            }
        }
        Ok(())
    }

    pub fn activate(
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

    pub fn generator(
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

    pub fn call(
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

    pub fn conjunction(
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

    pub fn scan(
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

    pub fn section(
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
}
