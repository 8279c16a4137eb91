//! A function as a flow graph: its blocks, how control moves between them, and where a probe can
//! stand.
//!
//! Control that may not come back (a call that ends the program, a jump of someone else's) is cut:
//! it goes to the outside there, and comes from the outside into what follows. That says as much
//! as two edges would, one for each fate, because nobody can tell how often each was taken but by
//! counting what follows.

use std::collections::{BTreeSet, HashMap};

use headcount_model::{BlockId, BlockKind, Edge, EdgeKind, FlowGraph, Node, ProbeCosts};

use crate::expressions::{atoms_are_unordered, items_are_unordered};
use crate::lex::{Kind, Token};
use crate::parser::{Trouble, trouble};
use crate::statements::{is_false, is_true};
use crate::tree::{Atom, Body, Call, Expr, Fate, Function, Shape, Statement, Tokens, What};
use crate::words::Word;

/// What one execution of a probe costs, in tenths of an increment.
const IN_STATEMENTS: u32 = 10;
const IN_EXPRESSIONS: u32 = 11;
const IN_CONDITIONS: u32 = 20;

/// A block of a function.
#[derive(Debug)]
pub struct Block {
    /// What it is to the reader; `None` if only the arithmetic needs it.
    pub kind: Option<BlockKind>,
    /// The token where it begins.
    pub token: u32,
    /// How a probe stands in it.
    pub site: Site,
    /// First tokens of its statements.
    pub statements: Vec<u32>,
}

/// How a probe stands in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Site {
    /// Not at all.
    None,
    /// As a statement behind this token.
    Behind(u32),
    /// The same, where a `case` follows at once: control falls through, and is meant to.
    BeforeCase(u32),
    /// As the left operand of a comma, with these tokens as the right one, in parentheses.
    Around(Tokens),
    /// The same before all of a condition.
    Before(u32),
}

/// How a probe stands on an edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EdgeSite {
    /// Not at all.
    #[default]
    None,
    /// Where this condition is true.
    WhenTrue(Tokens),
    /// Where it is false.
    WhenFalse(Tokens),
}

/// A function, ready to be planned.
#[derive(Debug)]
pub struct Unit {
    pub name: String,
    /// The token of its name.
    pub name_token: u32,
    pub blocks: Vec<Block>,
    pub graph: FlowGraph,
    pub edge_sites: Vec<EdgeSite>,
    pub costs: ProbeCosts,
    /// Blocks that are seldom reached.
    pub cold: Vec<bool>,
    /// The graph as it is where every call comes back, for guessing how often things run. It
    /// begins with the edges of `graph`.
    pub hints: FlowGraph,
    /// Bodies without braces.
    pub bodies: Vec<Tokens>,
    /// Calls that may make a process behind the C library's back.
    pub forks: Vec<Tokens>,
    /// The token behind which the function's first statement can stand.
    pub entry: u32,
}

/// The flow graphs of a function and of the functions inside it.
pub fn units(
    function: &Function,
    text: &[u8],
    tokens: &[Token],
    declarations_first: bool,
) -> Result<Vec<Unit>, Trouble> {
    let mut found = Vec::new();
    let mut waiting = vec![function];
    while let Some(function) = waiting.pop() {
        let mut builder = Builder::new(function, text, tokens, declarations_first);
        builder.function(function)?;
        waiting.append(&mut builder.inner);
        found.push(builder.finish(function));
    }
    Ok(found)
}

/// Where control is.
#[derive(Debug)]
enum At {
    /// In a block.
    In(BlockId),
    /// On its way from these; nowhere, if there are none.
    Between(Vec<Way>),
    /// Somewhere outside, from where it may come back; if all goes well, it went there from these.
    Adrift(Vec<BlockId>),
}

#[derive(Debug)]
struct Way {
    /// From outside only where a probe stands on it.
    from: Node,
    kind: EdgeKind,
    site: EdgeSite,
}

/// What `break`, `continue` and `case` are about.
enum Around {
    Loop {
        breaks: At,
        continues: At,
    },
    Switch {
        from: Node,
        breaks: At,
        has_default: bool,
    },
}

struct Builder<'f> {
    text: &'f [u8],
    tokens: &'f [Token],
    declarations_first: bool,
    blocks: Vec<Block>,
    cold: Vec<bool>,
    edges: Vec<(Edge, EdgeSite)>,
    hints: Vec<Edge>,
    at: At,
    around: Vec<Around>,
    labels: HashMap<String, BlockId>,
    /// Labels that somebody else may jump to.
    exposed: BTreeSet<String>,
    placed: BTreeSet<BlockId>,
    bodies: Vec<Tokens>,
    inner: Vec<&'f Function>,
    entry: u32,
}

fn nowhere() -> At {
    At::Between(Vec::new())
}

impl<'f> Builder<'f> {
    fn new(
        function: &Function,
        text: &'f [u8],
        tokens: &'f [Token],
        declarations_first: bool,
    ) -> Self {
        let mut builder = Self {
            text,
            tokens,
            declarations_first,
            blocks: Vec::new(),
            cold: Vec::new(),
            edges: Vec::new(),
            hints: Vec::new(),
            at: nowhere(),
            around: Vec::new(),
            labels: HashMap::new(),
            exposed: BTreeSet::new(),
            placed: BTreeSet::new(),
            bodies: Vec::new(),
            inner: Vec::new(),
            entry: function.open,
        };
        // Anything that looks like the address of a label is taken for one: that costs a counter
        // at most.
        for at in function.open..function.close {
            if builder.kind(at) == Kind::AndAnd && builder.kind(at + 1) == Kind::Name {
                let name = builder.name(at + 1);
                builder.exposed.insert(name);
            }
        }
        builder
    }

    fn kind(&self, at: u32) -> Kind {
        self.tokens
            .get(at as usize)
            .map_or(Kind::Stray, |it| it.kind)
    }

    fn name(&self, at: u32) -> String {
        let token = &self.tokens[at as usize];
        String::from_utf8_lossy(&self.text[token.start as usize..token.end as usize]).into_owned()
    }

    fn function(&mut self, function: &'f Function) -> Result<(), Trouble> {
        self.entry = self.head(function.open, &function.items);
        let site = Site::Behind(self.entry);
        let entry = self.block(Some(BlockKind::Function), function.name_token, site);
        self.blocks[entry.index()]
            .statements
            .push(function.name_token);
        self.edge(Node::Outside, Node::Block(entry), EdgeKind::Entry);
        self.at = At::In(entry);
        self.statements(&function.items)?;
        self.leave();
        for (_, label) in self.labels.clone() {
            if !self.placed.contains(&label) {
                // A label of a function around this one.
                self.edge(Node::Block(label), Node::Outside, EdgeKind::Leave);
            }
        }
        Ok(())
    }

    /// The token behind which the first statement of a block can stand: behind `__label__`, and,
    /// if the user wants it so, behind declarations.
    fn head(&self, open: u32, items: &[Statement]) -> u32 {
        let leads = |item: &&Statement| match item.what {
            What::LabelNames(_) => true,
            What::Declaration { .. } => self.declarations_first,
            _ => false,
        };
        let last = items.iter().take_while(leads).last();
        last.map_or(open, |item| item.tokens.end - 1)
    }

    fn block(&mut self, kind: Option<BlockKind>, token: u32, site: Site) -> BlockId {
        let id = BlockId(self.blocks.len() as u32);
        self.blocks.push(Block {
            kind,
            token,
            site,
            statements: Vec::new(),
        });
        self.cold.push(false);
        id
    }

    fn edge(&mut self, from: Node, to: Node, kind: EdgeKind) {
        self.edge_with(from, to, kind, EdgeSite::None);
    }

    fn edge_with(&mut self, from: Node, to: Node, kind: EdgeKind, site: EdgeSite) {
        if to == Node::Outside || from == Node::Outside {
            let same = |(edge, known): &(Edge, EdgeSite)| {
                edge.from == from && edge.to == to && *known == EdgeSite::None
            };
            // Nobody can tell them apart, and nobody asks.
            if from == to || site == EdgeSite::None && self.recent(same) {
                return;
            }
        }
        self.edges.push((Edge { from, to, kind }, site));
    }

    /// Edges of one block are made close to each other.
    fn recent(&self, is_meant: impl Fn(&(Edge, EdgeSite)) -> bool) -> bool {
        self.edges.iter().rev().take(64).any(is_meant)
    }

    /// Control comes to a block.
    fn arrive(&mut self, block: BlockId) {
        let to = Node::Block(block);
        match std::mem::replace(&mut self.at, At::In(block)) {
            At::In(from) => self.edge(Node::Block(from), to, EdgeKind::Fall),
            At::Between(ways) => {
                for way in ways {
                    self.edge_with(way.from, to, way.kind, way.site);
                }
            }
            At::Adrift(from) => {
                self.edge(Node::Outside, to, EdgeKind::Arrival);
                let hint = |from| Edge {
                    from: Node::Block(from),
                    to,
                    kind: EdgeKind::Fall,
                };
                self.hints.extend(from.into_iter().map(hint));
            }
        }
    }

    /// A new block begins here.
    fn begin(&mut self, kind: BlockKind, token: u32, site: Site) -> BlockId {
        let block = self.block(Some(kind), token, site);
        self.arrive(block);
        block
    }

    /// The block in which a statement begins.
    fn at_statement(&mut self, statement: &Statement) -> BlockId {
        if let At::In(block) = self.at {
            return block;
        }
        let token = statement.tokens.start;
        let site = match &statement.what {
            What::Declaration { values, .. } if self.declarations_first => {
                let value = values
                    .iter()
                    .find(|it| !it.is_constant && self.kind(it.tokens.start) != Kind::OpenBrace);
                value.map_or(Site::None, |it| Site::Around(it.tokens.clone()))
            }
            _ => Site::Behind(token - 1),
        };
        self.begin(BlockKind::After, token, site)
    }

    /// Where control is in the midst of an expression.
    fn here(&mut self) -> Node {
        match &self.at {
            At::In(block) => Node::Block(*block),
            At::Adrift(_) => Node::Outside,
            At::Between(_) => {
                let helper = self.block(None, 0, Site::None);
                self.arrive(helper);
                Node::Block(helper)
            }
        }
    }

    /// Control goes outside, and may come back.
    fn lose(&mut self) {
        self.at = match std::mem::replace(&mut self.at, nowhere()) {
            At::In(block) => {
                self.edge(Node::Block(block), Node::Outside, EdgeKind::Lost);
                At::Adrift(vec![block])
            }
            At::Between(ways) => {
                let from = self.let_go(ways, EdgeKind::Lost);
                At::Adrift(from)
            }
            adrift => adrift,
        };
    }

    fn let_go(&mut self, ways: Vec<Way>, kind: EdgeKind) -> Vec<BlockId> {
        let mut from = Vec::new();
        for way in ways {
            self.edge_with(way.from, Node::Outside, kind, way.site);
            if let Node::Block(block) = way.from {
                from.push(block);
            }
        }
        from
    }

    /// Control goes outside for good.
    fn leave(&mut self) {
        match std::mem::replace(&mut self.at, nowhere()) {
            At::In(block) => self.edge(Node::Block(block), Node::Outside, EdgeKind::Leave),
            At::Between(ways) => _ = self.let_go(ways, EdgeKind::Leave),
            At::Adrift(from) => {
                // A call that ends a function is no rare thing.
                for block in from {
                    let lost = |(edge, _): &&mut (Edge, EdgeSite)| {
                        edge.from == Node::Block(block) && edge.kind == EdgeKind::Lost
                    };
                    if let Some((edge, _)) = self.edges.iter_mut().rev().take(64).find(lost) {
                        edge.kind = EdgeKind::Leave;
                    }
                }
            }
        }
    }

    /// Ways that come together.
    fn merge(&mut self, one: At, other: At) -> At {
        let as_ways = |at: At| match at {
            At::In(block) => Ok(vec![Way {
                from: Node::Block(block),
                kind: EdgeKind::Fall,
                site: EdgeSite::None,
            }]),
            At::Between(ways) => Ok(ways),
            At::Adrift(from) => Err(from),
        };
        match (as_ways(one), as_ways(other)) {
            (Ok(mut ways), Ok(more)) => {
                ways.extend(more);
                At::Between(ways)
            }
            (Err(mut from), Err(more)) => {
                from.extend(more);
                At::Adrift(from)
            }
            (Ok(ways), Err(mut from)) | (Err(mut from), Ok(ways)) => {
                from.extend(self.let_go(ways, EdgeKind::Jump));
                At::Adrift(from)
            }
        }
    }

    fn way(from: Node, kind: EdgeKind, site: EdgeSite) -> At {
        match from {
            Node::Outside if site == EdgeSite::None => At::Adrift(Vec::new()),
            _ => At::Between(vec![Way { from, kind, site }]),
        }
    }

    fn take(&mut self) -> At {
        std::mem::replace(&mut self.at, nowhere())
    }

    fn statements(&mut self, items: &'f [Statement]) -> Result<(), Trouble> {
        for item in items {
            self.statement(item)?;
        }
        Ok(())
    }

    /// A statement that does something: it belongs to a block.
    fn row(&mut self, statement: &Statement) -> BlockId {
        let block = self.at_statement(statement);
        self.blocks[block.index()]
            .statements
            .push(statement.tokens.start);
        block
    }

    fn statement(&mut self, statement: &'f Statement) -> Result<(), Trouble> {
        match &statement.what {
            What::Empty | What::LabelNames(_) => {
                if let What::LabelNames(names) = &statement.what {
                    self.exposed.extend(names.iter().cloned());
                }
            }
            What::Function(function) => self.inner.push(function),
            What::Block(items) => self.statements(items)?,
            What::Expression(value) => {
                self.row(statement);
                self.evaluate(value)?;
            }
            What::Declaration { values, runs } => {
                if *runs {
                    self.row(statement);
                }
                for value in values {
                    self.evaluate(value)?;
                }
            }
            What::Asm {
                labels,
                may_be_lost,
            } => {
                self.row(statement);
                for label in labels {
                    let label = self.label(label);
                    self.edge(Node::Outside, Node::Block(label), EdgeKind::Arrival);
                }
                if *may_be_lost {
                    self.lose();
                }
            }
            What::Return(value) => {
                self.row(statement);
                match value {
                    Some(value) if value.has_blocks => self.evaluate(value)?,
                    _ => (),
                }
                self.leave();
            }
            What::ComputedGoto(target) => {
                self.row(statement);
                self.evaluate(target)?;
                self.leave();
            }
            What::Goto(name) => {
                let from = self.row(statement);
                let label = self.label(name);
                self.edge(Node::Block(from), Node::Block(label), EdgeKind::Jump);
                self.at = nowhere();
            }
            What::Label(name) => {
                let label = self.label(name);
                self.placed.insert(label);
                self.blocks[label.index()].token = statement.tokens.start;
                self.blocks[label.index()].kind = Some(BlockKind::Label);
                self.blocks[label.index()].site = self.behind_label(statement);
                if self.exposed.contains(name) {
                    self.edge(Node::Outside, Node::Block(label), EdgeKind::Arrival);
                }
                self.arrive(label);
            }
            What::Case | What::Default => self.case(statement)?,
            What::Break | What::Continue => self.jump(statement)?,
            What::If { .. } => self.conditional(statement)?,
            What::While { .. } | What::Do { .. } | What::For { .. } => self.repeated(statement)?,
            What::Switch { condition, body } => {
                self.row(statement);
                self.evaluate(condition)?;
                self.switch(body)?;
            }
        }
        Ok(())
    }

    fn label(&mut self, name: &str) -> BlockId {
        if let Some(known) = self.labels.get(name) {
            return *known;
        }
        let block = self.block(None, 0, Site::None);
        self.labels.insert(name.to_owned(), block);
        block
    }

    fn case(&mut self, statement: &Statement) -> Result<(), Trouble> {
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
        let arrival = if from == Node::Outside {
            EdgeKind::Arrival
        } else {
            EdgeKind::Jump
        };
        self.edge(from, Node::Block(block), arrival);
        Ok(())
    }

    fn behind_label(&self, label: &Statement) -> Site {
        let last = label.tokens.end - 1;
        match self.kind(last + 1) {
            Kind::Word(Word::Case | Word::Default) => Site::BeforeCase(last),
            _ => Site::Behind(last),
        }
    }

    fn jump(&mut self, statement: &Statement) -> Result<(), Trouble> {
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
            true => Site::Behind(self.head(first, &body.items)),
            false => {
                self.bodies.push(body.tokens.clone());
                // Before a label no statement may stand: one in a `switch` is never reached there.
                Site::Behind(first - 1)
            }
        };
        self.begin(kind, first, site)
    }

    fn conditional(&mut self, statement: &'f Statement) -> Result<(), Trouble> {
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
            }
            self.evaluate(&arm.condition)?;
            let from = self.here();
            self.at = Self::way(from, EdgeKind::Fall, EdgeSite::None);
            self.enter(BlockKind::Then, &arm.body);
            self.statements(&arm.body.items)?;
            let done = self.take();
            after = self.merge(after, done);
            self.at = Self::way(from, EdgeKind::Taken, EdgeSite::None);
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

    fn repeated(&mut self, statement: &'f Statement) -> Result<(), Trouble> {
        // A pragma before a loop may want it to have a certain form.
        let is_bound = self.tokens[statement.tokens.start as usize].after_pragma;
        self.around.push(Around::Loop {
            breaks: nowhere(),
            continues: nowhere(),
        });
        match &statement.what {
            What::While { condition, body } => {
                let head = self.loop_head(Some(condition), is_bound, Some(statement))?;
                let from = self.loop_body(body, &head)?;
                self.go_back(from, &head);
            }
            What::For {
                start,
                condition,
                step,
                body,
                ..
            } => {
                self.row(statement);
                match start.as_deref().map(|it| &it.what) {
                    Some(What::Expression(value)) => self.evaluate(value)?,
                    Some(What::Declaration { values, .. }) => {
                        for value in values {
                            self.evaluate(value)?;
                        }
                    }
                    _ => (),
                }
                let head = self.loop_head(condition.as_ref(), is_bound, None)?;
                let from = self.loop_body(body, &head)?;
                if let Some(step) = step {
                    let site = self.condition_site(step, is_bound);
                    let block = self.begin(BlockKind::Step, step.tokens.start, site);
                    self.blocks[block.index()]
                        .statements
                        .push(step.tokens.start);
                    self.evaluate(step)?;
                }
                self.go_back(from, &head);
            }
            What::Do { body, condition } => self.repeated_at_end(body, condition, is_bound)?,
            _ => (),
        }
        Ok(())
    }

    /// The condition of a loop, unless it is always true.
    fn loop_head(
        &mut self,
        condition: Option<&'f Expr>,
        is_bound: bool,
        statement: Option<&Statement>,
    ) -> Result<Head, Trouble> {
        let Some(condition) = condition.filter(|it| !is_true(it, self.text, self.tokens)) else {
            return Ok(Head::default());
        };
        let site = self.condition_site(condition, is_bound);
        let token = condition.tokens.start;
        let block = self.begin(BlockKind::Condition, token, site);
        let row = statement.map_or(token, |it| it.tokens.start);
        self.blocks[block.index()].statements.push(row);
        self.evaluate(condition)?;
        let from = self.here();
        Ok(Head {
            block: Some(block),
            from: Some(from),
        })
    }

    /// The body of a loop. Says which block the loop goes back to.
    fn loop_body(&mut self, body: &'f Body, head: &Head) -> Result<BlockId, Trouble> {
        if let Some(from) = head.from {
            self.at = Self::way(from, EdgeKind::Fall, EdgeSite::None);
        }
        let block = self.enter(BlockKind::Body, body);
        self.statements(&body.items)?;
        let done = self.take();
        let continues = match self.around.last_mut() {
            Some(Around::Loop { continues, .. }) => std::mem::replace(continues, nowhere()),
            _ => nowhere(),
        };
        self.at = self.merge(done, continues);
        Ok(head.block.unwrap_or(block))
    }

    fn go_back(&mut self, to: BlockId, head: &Head) {
        self.arrive(to);
        let out = match head.from {
            Some(from) => Self::way(from, EdgeKind::Taken, EdgeSite::None),
            None => nowhere(),
        };
        self.at = self.end_loop(out);
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
        let top = self.loop_body(body, &Head::default())?;
        if is_false(condition, self.text, self.tokens) {
            let out = self.take();
            self.at = self.end_loop(out);
            return Ok(());
        }
        let site = self.condition_site(condition, is_bound);
        let token = condition.tokens.start;
        let block = self.begin(BlockKind::Condition, token, site);
        self.blocks[block.index()].statements.push(token);
        self.evaluate(condition)?;
        let from = self.here();
        self.at = Self::way(from, EdgeKind::Taken, EdgeSite::None);
        self.arrive(top);
        let out = match is_true(condition, self.text, self.tokens) {
            true => nowhere(),
            false => Self::way(from, EdgeKind::Fall, EdgeSite::None),
        };
        self.at = self.end_loop(out);
        Ok(())
    }

    fn switch(&mut self, body: &'f Body) -> Result<(), Trouble> {
        let from = self.here();
        self.around.push(Around::Switch {
            from,
            breaks: nowhere(),
            has_default: false,
        });
        self.at = nowhere();
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

    fn evaluate(&mut self, expr: &'f Expr) -> Result<(), Trouble> {
        if !expr.has_blocks {
            if never_ends(expr)
                && let At::In(block) = self.at
            {
                self.cold[block.index()] = true;
            }
            if expr.may_be_lost {
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
            Atom::Call(Call {
                arguments, fate, ..
            }) => {
                self.items(arguments)?;
                if *fate == Fate::Never
                    && let At::In(block) = self.at
                {
                    self.cold[block.index()] = true;
                }
                if *fate != Fate::Returns {
                    self.lose();
                }
                Ok(())
            }
            Atom::Block { open, items } => {
                let site = Site::Behind(self.head(*open, items));
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
                self.begin(BlockKind::RightOperand, operand.tokens.start, site);
            }
            self.evaluate(operand)?;
        }
        let done = self.take();
        self.at = self.merge(done, short);
        Ok(())
    }

    fn choice(
        &mut self,
        condition: &'f Expr,
        yes: Option<&'f Expr>,
        no: &'f Expr,
    ) -> Result<(), Trouble> {
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
        // The constant of `a ?: 0` can carry nothing, and nothing tells its count: it is refused.
        if yes.is_some() || !no.is_constant {
            self.operand(BlockKind::FalseOperand, no)?;
        }
        let other = self.take();
        self.at = self.merge(done, other);
        Ok(())
    }

    fn operand(&mut self, kind: BlockKind, operand: &'f Expr) -> Result<(), Trouble> {
        let site = match operand.is_constant {
            true => Site::None,
            false => Site::Around(operand.tokens.clone()),
        };
        self.begin(kind, operand.tokens.start, site);
        self.evaluate(operand)
    }

    fn finish(self, function: &Function) -> Unit {
        let blocks = self.blocks.len() as u32;
        let (edges, edge_sites): (Vec<_>, Vec<_>) = self.edges.into_iter().unzip();
        let cost = |site: &Site| match site {
            Site::None => None,
            Site::Behind(_) | Site::BeforeCase(_) => Some(IN_STATEMENTS),
            Site::Around(_) | Site::Before(_) => Some(IN_EXPRESSIONS),
        };
        let edge_cost = |site: &EdgeSite| (*site != EdgeSite::None).then_some(IN_CONDITIONS);
        let costs = ProbeCosts {
            blocks: self.blocks.iter().map(|it| cost(&it.site)).collect(),
            edges: edge_sites.iter().map(edge_cost).collect(),
        };
        let hints = edges.iter().copied().chain(self.hints).collect();
        Unit {
            name: function.name.clone(),
            name_token: function.name_token,
            blocks: self.blocks,
            graph: FlowGraph { blocks, edges },
            edge_sites,
            costs,
            cold: self.cold,
            hints: FlowGraph {
                blocks,
                edges: hints,
            },
            bodies: self.bodies,
            forks: function.forks.clone(),
            entry: self.entry,
        }
    }
}

/// The condition of a loop: its block, and where it ends.
#[derive(Default)]
struct Head {
    block: Option<BlockId>,
    from: Option<Node>,
}

/// Whether an expression is a call that never comes back.
fn never_ends(expr: &Expr) -> bool {
    let is_never = |atom: &Atom| matches!(atom, Atom::Call(call) if call.fate == Fate::Never);
    matches!(&expr.shape, Shape::Leaf(atoms) if atoms.iter().any(is_never))
}
