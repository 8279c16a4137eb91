//! Expressions: which operands are evaluated on a condition, and what may not come back?

use super::*;

impl<'f> Builder<'f> {
    pub(super) fn evaluate(&mut self, expr: &'f Expr) -> Result<(), Trouble> {
        if !expr.has_blocks {
            if never_ends(expr)
                && let At::In(block) = self.at
            {
                self.cold[block.index()] = true;
            }
            if self.manner.is_only_read {
                if never_ends(expr) {
                    self.leave();
                }
            } else if expr.may_be_lost {
                self.lose();
            }
            return Ok(());
        }
        match &expr.shape {
            Shape::Leaf(atoms) => {
                self.atoms(atoms.iter(), atoms_are_unordered(atoms), |it, atom| {
                    it.atom(atom)
                })
            }
            Shape::Sequence(items) => items.iter().try_for_each(|it| self.evaluate(it)),
            Shape::Logic(operands) => self.logic(operands),
            Shape::Choice { condition, yes, no } => self.choice(condition, yes.as_deref(), no),
        }
    }

    /// Evaluates parts whose order is nobody's business, or matters.
    fn atoms<T: 'f>(
        &mut self,
        parts: impl Iterator<Item = &'f T>,
        unordered: bool,
        mut evaluate: impl FnMut(&mut Self, &'f T) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let unordered = unordered && !self.manner.is_only_read;
        for part in parts {
            if !unordered {
                evaluate(self, part)?;
                continue;
            }
            // Each by itself: nothing follows from what is before or after it.
            let before = std::mem::replace(&mut self.at, At::Adrift(Vec::new()));
            evaluate(self, part)?;
            self.leave();
            self.at = before;
        }
        if unordered {
            self.lose();
        }
        Ok(())
    }

    fn atom(&mut self, atom: &'f Atom) -> Result<(), Trouble> {
        match atom {
            Atom::Group(inside) => self.evaluate(inside),
            Atom::List(items) => self.items(items),
            Atom::Macro => {
                if !self.manner.is_only_read {
                    self.lose();
                }
                Ok(())
            }
            Atom::Call(Call {
                arguments, fate, ..
            }) => {
                self.items(arguments)?;
                if *fate == Fate::Never
                    && let At::In(block) = self.at
                {
                    self.cold[block.index()] = true;
                }
                match (*fate, self.manner.is_only_read) {
                    (Fate::Returns, _) | (Fate::Unsure, true) => (),
                    (Fate::Never, true) => self.leave(),
                    (_, false) => self.lose(),
                }
                Ok(())
            }
            Atom::Block { open, items } => {
                let site = self.head(*open, items);
                self.begin(BlockKind::StatementExpression, *open, site);
                self.statements(items)
            }
        }
    }

    fn items(&mut self, items: &'f [Expr]) -> Result<(), Trouble> {
        self.atoms(items.iter(), items_are_unordered(items), |it, item| {
            it.evaluate(item)
        })
    }

    fn logic(&mut self, operands: &'f [Expr]) -> Result<(), Trouble> {
        let mut short = nowhere();
        for (number, operand) in operands.iter().enumerate() {
            if number > 0 {
                let from = self.here();
                let way = Self::way(from, EdgeKind::Taken, EdgeSite::None);
                short = self.merge(short, way);
                self.at = Self::way(from, EdgeKind::Fall, EdgeSite::None);
                let site = Site::Around(operand.tokens.clone());
                let block = self.begin(BlockKind::RightOperand, operand.tokens.start, site);
                self.ranges.push((operand.tokens.clone(), block));
            }
            self.evaluate(operand)?;
        }
        let done = self.take();
        self.at = self.merge(done, short);
        Ok(())
    }

    /// Evaluates a condition: the ways control goes if it holds, and if not. Where nothing is put
    /// into the text, `&&`, `||` and `!` are ways, too, as they are to compilers.
    pub(super) fn decide(&mut self, condition: &'f Expr) -> Result<Ways, Trouble> {
        if self.manner.is_only_read {
            match &condition.shape {
                Shape::Logic(operands) if condition.has_blocks => {
                    return self.decide_logic(operands);
                }
                Shape::Leaf(atoms) => {
                    if let [Atom::Group(inside)] = atoms.as_slice()
                        && let Some(is_negated) = self.negations(condition, inside)
                    {
                        let Ways { yes, no } = self.decide(inside)?;
                        return Ok(match is_negated {
                            true => Ways { yes: no, no: yes },
                            false => Ways { yes, no },
                        });
                    }
                }
                _ => (),
            }
        }
        self.evaluate(condition)?;
        let from = self.here();
        Ok(Ways {
            yes: Self::way(from, EdgeKind::Fall, EdgeSite::None),
            no: Self::way(from, EdgeKind::Taken, EdgeSite::None),
        })
    }

    /// If all of an expression is something in parentheses: whether that is negated.
    fn negations(&self, whole: &Expr, inside: &Expr) -> Option<bool> {
        let before = whole.tokens.start..inside.tokens.start.checked_sub(1)?;
        let is_all = inside.tokens.end + 1 == whole.tokens.end;
        let number = before.len();
        let is_not = |at: u32| self.name(at) == "!";
        (is_all && before.into_iter().all(is_not)).then_some(number % 2 == 1)
    }

    fn decide_logic(&mut self, operands: &'f [Expr]) -> Result<Ways, Trouble> {
        let second = operands.get(1).map_or(0, |it| it.tokens.start);
        let is_and = self.kind(second.saturating_sub(1)) == Kind::AndAnd;
        let mut short = nowhere();
        let mut long = nowhere();
        for (number, operand) in operands.iter().enumerate() {
            if number > 0 {
                self.at = long;
                let site = Site::Around(operand.tokens.clone());
                let block = self.begin(BlockKind::RightOperand, operand.tokens.start, site);
                self.ranges.push((operand.tokens.clone(), block));
            }
            let Ways { yes, no } = self.decide(operand)?;
            let (stays, leaves) = if is_and { (yes, no) } else { (no, yes) };
            short = self.merge(short, leaves);
            long = stays;
        }
        Ok(match is_and {
            true => Ways {
                yes: long,
                no: short,
            },
            false => Ways {
                yes: short,
                no: long,
            },
        })
    }

    fn choice(
        &mut self,
        condition: &'f Expr,
        yes: Option<&'f Expr>,
        no: &'f Expr,
    ) -> Result<(), Trouble> {
        if self.manner.is_only_read {
            return self.choice_of_ways(condition, yes, no);
        }
        self.evaluate(condition)?;
        let from = self.here();
        let tokens = || condition.tokens.clone();
        let may_wrap = !condition.is_constant && yes.is_some();
        let site = |site: EdgeSite| if may_wrap { site } else { EdgeSite::None };
        self.at = Self::way(from, EdgeKind::Fall, site(EdgeSite::WhenTrue(tokens())));
        if let Some(yes) = yes {
            self.operand(BlockKind::TrueOperand, yes)?;
        }
        let done = self.take();
        self.at = Self::way(from, EdgeKind::Taken, site(EdgeSite::WhenFalse(tokens())));
        match yes.is_none() && no.is_constant {
            true => self.constant_alone(no),
            false => self.operand(BlockKind::FalseOperand, no)?,
        }
        let other = self.take();
        self.at = self.merge(done, other);
        Ok(())
    }

    /// The same where nothing is put into the text.
    fn choice_of_ways(
        &mut self,
        condition: &'f Expr,
        yes: Option<&'f Expr>,
        no: &'f Expr,
    ) -> Result<(), Trouble> {
        let ways = self.decide(condition)?;
        self.at = ways.yes;
        if let Some(yes) = yes {
            self.operand(BlockKind::TrueOperand, yes)?;
        }
        let done = self.take();
        self.at = ways.no;
        self.operand(BlockKind::FalseOperand, no)?;
        let other = self.take();
        self.at = self.merge(done, other);
        Ok(())
    }

    /// The constant of `a ?: 7`, whose condition is its other operand, and so must stay as it is.
    fn constant_alone(&mut self, operand: &Expr) {
        let tokens = operand.tokens.clone();
        let site = match constant(operand, self.text, self.tokens) {
            Constant::Text => Site::Around(tokens),
            Constant::Number => Site::Chosen(tokens),
            // It can carry nothing, and nothing tells its count: it is refused.
            Constant::MaybeNull => return,
        };
        self.begin(BlockKind::FalseOperand, operand.tokens.start, site);
    }

    fn operand(&mut self, kind: BlockKind, operand: &'f Expr) -> Result<(), Trouble> {
        let site = match operand.is_constant {
            true => Site::None,
            false => Site::Around(operand.tokens.clone()),
        };
        let block = self.begin(kind, operand.tokens.start, site);
        self.ranges.push((operand.tokens.clone(), block));
        self.evaluate(operand)
    }
}

/// Whether an expression is a call that never comes back.
fn never_ends(expr: &Expr) -> bool {
    let is_never = |atom: &Atom| matches!(atom, Atom::Call(call) if call.fate == Fate::Never);
    matches!(&expr.shape, Shape::Leaf(atoms) if atoms.iter().any(is_never))
}
