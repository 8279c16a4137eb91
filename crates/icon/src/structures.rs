//! Control structures: what of a procedure has labels.

use crate::error::{Error, Fault};
use crate::generate::Generator;
use crate::opcode::Opcode;
use crate::tokens::Kind;
use crate::tree::{Case, Clause, LexemeId, Loop, Node, What};

const STRUCTURE: Kind = Kind::Structure;

impl<'a> Generator<'a> {
    /// Makes code of a node that is not just evaluated from the left to the right.
    pub fn structure(&mut self, node: &'a Node) -> Result<(), Error> {
        match &node.what {
            What::Alternation(..) => self.alternation(node),
            What::Repeated(operand) => self.repeated(node, operand),
            What::Limit(operand, limit) => self.limit(node, operand, limit),
            What::Not(operand) => self.not(node, operand),
            What::Create(operand) => self.create(node, operand),
            What::If(condition, then, other) => {
                self.condition(node.lexeme, condition, then, other.as_ref())
            }
            What::Case(case) => self.case(node.lexeme, case),
            What::Loop(which, head, body) => {
                let body = body.as_ref().filter(|it| !it.body.is_empty());
                match which {
                    Loop::Every => self.every(node, head, body, false),
                    Loop::Suspend => self.every(node, head, body, true),
                    Loop::Repeat => self.repeat(node.lexeme, head),
                    Loop::While => self.while_loop(node.lexeme, head, body),
                    Loop::Until => self.until(node, head),
                }
            }
            What::Return(value) => self.give_back(node, value.as_deref()),
            What::Break(value) => self.leave(node, value),
            What::Next => self.next(node),
            _ => Ok(()),
        }
    }

    /// Without recursion too: what follows a `|` is often another one.
    fn alternation(&mut self, node: &'a Node) -> Result<(), Error> {
        let mut ends = Vec::new();
        let mut last = node;
        while let What::Alternation(first, second) = &last.what {
            let own = Some(last.lexeme);
            let label = self.labels(2);
            let mark = self.op_label(Opcode::Mark, label, own);
            self.mark(last.lexeme, Kind::Operator, mark);
            self.marked(first)?;
            self.op(Opcode::Esusp, own);
            self.op_label(Opcode::Goto, label + 1, own);
            self.frame(mark, None, label);
            self.label(label);
            ends.push(label + 1);
            last = second;
        }
        self.node(last)?;
        while let Some(end) = ends.pop() {
            self.label(end);
        }
        Ok(())
    }

    fn repeated(&mut self, node: &Node, operand: &'a Node) -> Result<(), Error> {
        let own = Some(node.lexeme);
        let label = self.labels(1);
        self.mark_entry(node.lexeme, Kind::Operator, self.here());
        self.label(label);
        self.op(Opcode::Mark0, own);
        self.marked(operand)?;
        self.op_label(Opcode::Chfail, label, own);
        self.op(Opcode::Esusp, own);
        Ok(())
    }

    fn limit(&mut self, node: &Node, operand: &'a Node, limit: &'a Node) -> Result<(), Error> {
        let own = Some(node.lexeme);
        self.node(limit)?;
        self.set(node.at);
        let item = self.op(Opcode::Limit, own);
        self.mark(node.lexeme, Kind::Operator, item);
        self.marked(operand)?;
        self.op(Opcode::Lsusp, own);
        Ok(())
    }

    fn not(&mut self, node: &Node, operand: &'a Node) -> Result<(), Error> {
        let own = Some(node.lexeme);
        let label = self.labels(1);
        let mark = self.op_label(Opcode::Mark, label, own);
        self.mark(node.lexeme, STRUCTURE, mark);
        self.marked(operand)?;
        let unmark = self.op(Opcode::Unmark, own);
        self.frame(mark, Some(unmark), label);
        self.op(Opcode::Efail, own);
        self.label(label);
        self.op(Opcode::Pnull, own);
        Ok(())
    }

    fn create(&mut self, node: &Node, operand: &'a Node) -> Result<(), Error> {
        let own = Some(node.lexeme);
        let outside = *self.loops.innermost();
        self.loops.innermost().next = None;
        self.loops.innermost().exit = None;
        self.loops.creates += 1;
        let label = self.labels(3);
        // What creates the co-expression goes around its code.
        let item = self.op_label(Opcode::Goto, label + 2, own);
        self.mark(node.lexeme, STRUCTURE, item);
        self.label(label);
        self.op(Opcode::Pop, own);
        let mark = self.op_label(Opcode::Mark, label + 1, own);
        self.frame(mark, None, label + 1);
        self.marked(operand)?;
        self.set(node.at);
        self.op(Opcode::Coret, own);
        self.op(Opcode::Efail, own);
        self.label(label + 1);
        self.op(Opcode::Cofail, own);
        self.op_label(Opcode::Goto, label + 1, own);
        self.label(label + 2);
        self.op_label(Opcode::Create, label, own);
        self.loops.creates -= 1;
        *self.loops.innermost() = outside;
        Ok(())
    }

    fn condition(
        &mut self,
        lexeme: LexemeId,
        condition: &'a Node,
        then: &'a Clause,
        other: Option<&'a Clause>,
    ) -> Result<(), Error> {
        let own = Some(lexeme);
        let label = match other {
            Some(_) => self.labels(2),
            None => 0,
        };
        let mark = match other {
            Some(_) => self.op_label(Opcode::Mark, label, own),
            None => self.op(Opcode::Mark0, own),
        };
        self.mark(lexeme, STRUCTURE, mark);
        self.marked(condition)?;
        let unmark = self.op(Opcode::Unmark, Some(then.lexeme));
        self.mark(then.lexeme, STRUCTURE, unmark);
        self.node(&then.body)?;
        if let Some(other) = other {
            self.frame(mark, Some(unmark), label);
            self.op_label(Opcode::Goto, label + 1, own);
            self.label(label);
            self.mark_entry(other.lexeme, STRUCTURE, self.here());
            self.node(&other.body)?;
            self.label(label + 1);
        }
        Ok(())
    }

    fn case(&mut self, lexeme: LexemeId, case: &'a Case) -> Result<(), Error> {
        let own = Some(lexeme);
        let end = self.labels(1);
        let mark = self.op(Opcode::Mark0, own);
        self.mark(lexeme, STRUCTURE, mark);
        self.marked(&case.control)?;
        let eret = self.op(Opcode::Eret, Some(case.of));
        self.mark(case.of, STRUCTURE, eret);
        let mut default = None;
        for arm in &case.arms {
            let arm_is = Some(arm.lexeme);
            let Some(selector) = &arm.selector else {
                if default.replace((arm.lexeme, &arm.body)).is_some() {
                    return Err(self.error(arm.at, Fault::TwoDefaults));
                }
                continue;
            };
            let label = self.labels(1);
            let mark = self.op_label(Opcode::Mark, label, arm_is);
            self.op(Opcode::Ccase, arm_is);
            self.marked(selector)?;
            self.set(arm.at);
            let eqv = self.op(Opcode::Eqv, arm_is);
            self.mark(arm.lexeme, STRUCTURE, eqv);
            let unmark = self.op(Opcode::Unmark, arm_is);
            self.frame(mark, Some(unmark), label);
            self.op(Opcode::Pop, arm_is);
            self.node(&arm.body)?;
            self.op_label(Opcode::Goto, end, arm_is);
            self.label(label);
        }
        match default {
            Some((word, body)) => {
                let pop = self.op(Opcode::Pop, Some(word));
                self.mark(word, STRUCTURE, pop);
                self.node(body)?;
            }
            None => {
                self.op(Opcode::Efail, own);
            }
        }
        self.label(end);
        Ok(())
    }

    /// `return` and `fail`.
    fn give_back(&mut self, node: &Node, value: Option<&'a Node>) -> Result<(), Error> {
        if self.loops.creates > 0 {
            return Err(self.error(node.at, Fault::Context("return or fail")));
        }
        let own = Some(node.lexeme);
        if let Some(value) = value {
            let label = self.labels(1);
            let mark = self.op_label(Opcode::Mark, label, own);
            self.mark(node.lexeme, STRUCTURE, mark);
            self.frame(mark, None, label);
            self.marked(value)?;
            self.set(node.at);
            let pret = self.op(Opcode::Pret, own);
            self.leaves.push((pret, None));
            self.label(label);
        }
        self.set(node.at);
        let pfail = self.op(Opcode::Pfail, own);
        self.leaves.push((pfail, None));
        self.mark(node.lexeme, STRUCTURE, pfail);
        Ok(())
    }
}
