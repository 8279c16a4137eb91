//! Labels, jumps, arms and loops: where does control go?

use super::*;

impl<'f> Builder<'f> {
    pub(super) fn label(&mut self, name: &str) -> BlockId {
        if let Some(known) = self.labels.get(name) {
            return *known;
        }
        let block = self.block(None, 0, Site::None);
        self.labels.insert(name.to_owned(), block);
        block
    }

    pub(super) fn case(&mut self, statement: &Statement) -> Result<(), Trouble> {
        let is_default = matches!(statement.what, What::Default);
        let switch = self.around.iter_mut().rev().find_map(|it| match it {
            Around::Switch {
                from, has_default, ..
            } => {
                *has_default |= is_default;
                Some(*from)
            }
            Around::Loop { .. } => None,
        });
        let token = statement.tokens.start;
        let from = switch.ok_or_else(|| trouble(token, "a `case` without a `switch`"))?;
        let kind = if is_default {
            BlockKind::Default
        } else {
            BlockKind::Case
        };
        let site = self.behind_label(statement);
        let block = self.begin(kind, token, site);
        self.ranges.push((statement.tokens.clone(), block));
        let arrival = if from == Node::Outside {
            EdgeKind::Arrival
        } else {
            EdgeKind::Jump
        };
        self.edge(from, Node::Block(block), arrival);
        Ok(())
    }

    pub(super) fn behind_label(&self, label: &Statement) -> Site {
        let last = label.tokens.end - 1;
        match self.kind(last + 1) {
            Kind::Word(Word::Case | Word::Default) => Site::BeforeCase(last),
            _ => Site::Behind(last),
        }
    }

    pub(super) fn jump(&mut self, statement: &Statement) -> Result<(), Trouble> {
        self.row(statement);
        let before = self.take();
        let is_break = matches!(statement.what, What::Break);
        let index = self.around.iter().rposition(|it| match it {
            Around::Loop { .. } => true,
            Around::Switch { .. } => is_break,
        });
        let token = statement.tokens.start;
        let Some(index) = index else {
            return Err(trouble(token, "a `break` or `continue` out of nothing"));
        };
        self.at = self.unreached();
        let target = |around: &mut Around| -> At {
            let place = match around {
                Around::Loop { continues, .. } if !is_break => continues,
                Around::Loop { breaks, .. } | Around::Switch { breaks, .. } => breaks,
            };
            std::mem::replace(place, nowhere())
        };
        let known = target(&mut self.around[index]);
        let merged = self.merge(known, before);
        match &mut self.around[index] {
            Around::Loop { continues, .. } if !is_break => *continues = merged,
            Around::Loop { breaks, .. } | Around::Switch { breaks, .. } => *breaks = merged,
        }
        Ok(())
    }

    /// Begins the block that an `if` or a loop governs.
    fn enter(&mut self, kind: BlockKind, body: &'f Body) -> BlockId {
        let first = body.tokens.start;
        let site = match body.in_braces {
            true => self.head(first, &body.items),
            false => {
                self.bodies.push(body.tokens.clone());
                // Before a label no statement may stand: one in a `switch` is never reached there.
                Site::Behind(first - 1)
            }
        };
        let block = self.begin(kind, first, site);
        self.ranges.push((body.tokens.clone(), block));
        block
    }

    pub(super) fn conditional(&mut self, statement: &'f Statement) -> Result<(), Trouble> {
        let What::If { arms, otherwise } = &statement.what else {
            return Ok(());
        };
        self.row(statement);
        let mut after = nowhere();
        for (number, arm) in arms.iter().enumerate() {
            if number > 0 {
                let site = self.condition_site(&arm.condition, false);
                let token = arm.condition.tokens.start - 2;
                let block = self.begin(BlockKind::Else, token, site);
                self.blocks[block.index()].statements.push(token);
                self.ranges.push((token..arm.condition.tokens.end, block));
            }
            let Ways { yes, no } = self.decide(&arm.condition)?;
            self.at = yes;
            self.enter(BlockKind::Then, &arm.body);
            self.statements(&arm.body.items)?;
            let done = self.take();
            after = self.merge(after, done);
            self.at = no;
        }
        if let Some(body) = otherwise {
            self.enter(BlockKind::Else, body);
            self.statements(&body.items)?;
        }
        let done = self.take();
        self.at = self.merge(after, done);
        Ok(())
    }

    /// A probe before all of a condition; not where that is a constant, or must keep its form.
    fn condition_site(&self, condition: &Expr, is_bound: bool) -> Site {
        match condition.is_constant || is_bound {
            true => Site::None,
            false => Site::Before(condition.tokens.start),
        }
    }

    pub(super) fn repeated(&mut self, statement: &'f Statement) -> Result<(), Trouble> {
        // A pragma before a loop may want it to have a certain form.
        let is_bound = self.tokens[statement.tokens.start as usize].after_pragma;
        self.around.push(Around::Loop {
            breaks: self.unreached(),
            continues: self.unreached(),
        });
        // Whatever follows from its rounds, a loop has a beginning of its own.
        self.loop_start(statement);
        match &statement.what {
            What::While { condition, body } => {
                let head = self.loop_head(Some(condition), is_bound, Some(statement))?;
                let from = self.loop_body(body, head.block)?;
                self.go_back(from, head);
            }
            What::For {
                start,
                condition,
                step,
                body,
                ..
            } => {
                match start.as_deref().map(|it| &it.what) {
                    Some(What::Expression(value)) => self.evaluate(value)?,
                    Some(What::Declaration { values, .. }) => {
                        for value in values {
                            self.evaluate(value)?;
                        }
                    }
                    _ => (),
                }
                let head = self.loop_head(condition.as_deref(), is_bound, None)?;
                let from = self.loop_body(body, head.block)?;
                if let Some(step) = step {
                    let site = self.condition_site(step, is_bound);
                    let block = self.begin(BlockKind::Step, step.tokens.start, site);
                    self.blocks[block.index()]
                        .statements
                        .push(step.tokens.start);
                    self.ranges.push((step.tokens.clone(), block));
                    self.evaluate(step)?;
                }
                self.go_back(from, head);
            }
            What::Do { body, condition } => self.repeated_at_end(body, condition, is_bound)?,
            _ => (),
        }
        Ok(())
    }

    /// The block in which a loop begins. A `while` with a condition does nothing but evaluate that:
    /// its line shows how often it did.
    fn loop_start(&mut self, statement: &Statement) {
        let is_condition = |it: &Expr| !is_true(it, self.text, self.tokens);
        match &statement.what {
            What::While { condition, .. } if is_condition(condition) => {
                let block = self.at_statement(statement);
                let word = statement.tokens.start..statement.tokens.start + 1;
                self.ranges.push((word, block));
            }
            _ => _ = self.row(statement),
        }
    }

    /// The condition of a loop, unless it is always true. Control is where it holds.
    fn loop_head(
        &mut self,
        condition: Option<&'f Expr>,
        is_bound: bool,
        statement: Option<&Statement>,
    ) -> Result<Head, Trouble> {
        let Some(condition) = condition.filter(|it| !is_true(it, self.text, self.tokens)) else {
            return Ok(Head {
                block: None,
                out: nowhere(),
            });
        };
        let site = self.condition_site(condition, is_bound);
        let token = condition.tokens.start;
        let block = self.begin(BlockKind::Condition, token, site);
        let row = statement.map_or(token, |it| it.tokens.start);
        self.blocks[block.index()].statements.push(row);
        self.ranges.push((condition.tokens.clone(), block));
        let Ways { yes, no } = self.decide(condition)?;
        self.at = yes;
        Ok(Head {
            block: Some(block),
            out: no,
        })
    }

    /// The body of a loop. Says which block the loop goes back to.
    fn loop_body(&mut self, body: &'f Body, head: Option<BlockId>) -> Result<BlockId, Trouble> {
        let block = self.enter(BlockKind::Body, body);
        self.statements(&body.items)?;
        let done = self.take();
        let continues = match self.around.last_mut() {
            Some(Around::Loop { continues, .. }) => std::mem::replace(continues, nowhere()),
            _ => nowhere(),
        };
        self.at = self.merge(done, continues);
        Ok(head.unwrap_or(block))
    }

    fn go_back(&mut self, to: BlockId, head: Head) {
        self.arrive(to);
        self.at = self.end_loop(head.out);
    }

    fn end_loop(&mut self, out: At) -> At {
        match self.around.pop() {
            Some(Around::Loop { breaks, .. }) => self.merge(out, breaks),
            _ => out,
        }
    }

    fn repeated_at_end(
        &mut self,
        body: &'f Body,
        condition: &'f Expr,
        is_bound: bool,
    ) -> Result<(), Trouble> {
        let top = self.loop_body(body, None)?;
        if is_false(condition, self.text, self.tokens) {
            let out = self.take();
            self.at = self.end_loop(out);
            return Ok(());
        }
        let site = self.condition_site(condition, is_bound);
        let token = condition.tokens.start;
        let block = self.begin(BlockKind::Condition, token, site);
        self.blocks[block.index()].statements.push(token);
        self.ranges.push((condition.tokens.clone(), block));
        let Ways { yes, no } = self.decide(condition)?;
        self.at = yes;
        self.arrive(top);
        let out = match is_true(condition, self.text, self.tokens) {
            true => nowhere(),
            false => no,
        };
        self.at = self.end_loop(out);
        Ok(())
    }

    pub(super) fn switch(&mut self, body: &'f Body) -> Result<(), Trouble> {
        if self.manner.unseen_jumps {
            self.lose();
        }
        let from = self.here();
        self.around.push(Around::Switch {
            from,
            breaks: self.unreached(),
            has_default: false,
        });
        self.at = self.unreached();
        if !body.in_braces {
            self.bodies.push(body.tokens.clone());
        }
        self.statements(&body.items)?;
        let done = self.take();
        if let Some(Around::Switch {
            from,
            breaks,
            has_default,
        }) = self.around.pop()
        {
            let mut out = self.merge(done, breaks);
            if !has_default {
                let past = Self::way(from, EdgeKind::Jump, EdgeSite::None);
                out = self.merge(out, past);
            }
            self.at = out;
        }
        Ok(())
    }
}

/// The condition of a loop: its block, and where control goes if it does not hold.
struct Head {
    block: Option<BlockId>,
    out: At,
}
