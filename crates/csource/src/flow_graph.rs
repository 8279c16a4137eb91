//! A function as a flow graph: its blocks, how control moves between them, and where a probe can
//! stand.
//!
//! Control that may not come back (a call that ends the program, a jump of someone else's) is cut:
//! it goes to the outside there, and comes from the outside into what follows. That says as much
//! as two edges would, one for each fate, because nobody can tell how often each was taken but by
//! counting what follows.

mod branches;
mod evaluation;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use headcount_model::{BlockId, BlockKind, Edge, EdgeKind, FlowGraph, Node, ProbeCosts};

use crate::expressions::{atoms_are_unordered, items_are_unordered};
use crate::lex::{Kind, Token};
use crate::parser::{Trouble, trouble};
use crate::statements::{Constant, constant, is_false, is_true};
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

impl Block {
    /// Whether it is what an `if`, an `else` or a loop governs.
    pub(crate) fn is_governed(&self) -> bool {
        let kinds = [BlockKind::Then, BlockKind::Else, BlockKind::Body];
        self.kind.is_some_and(|it| kinds.contains(&it))
    }
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
    /// The same where no statement may stand: as a declaration.
    Declared(u32),
    /// As the left operand of a comma, with these tokens as the right one, in parentheses.
    Around(Tokens),
    /// The same before all of a condition.
    Before(u32),
    /// Before a number that must be seen to be constant, or it is suspected of being too large for
    /// where it goes: in the condition of a `?:` that always chooses these tokens.
    Chosen(Tokens),
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
    /// How something can be done before all that the function does.
    pub entry: Site,
    /// What is evaluated in which block. Ranges lie inside of others; the innermost is meant.
    pub ranges: Vec<(Tokens, BlockId)>,
}

/// What a graph depends on beside the function itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// No statement may stand before a declaration of the same block.
    pub declarations_first: bool,
    /// There may be jumps, labels and cases in it that nobody sees, because macros stand for them:
    /// control may come to every place that something jumps to or falls into.
    pub unseen_jumps: bool,
    /// Nothing is put into the text, and no count follows from the graph alone: calls come back, but
    /// for those that are known never to, parts are evaluated in the order of the text, and `&&`,
    /// `||` and `!` lead where compilers lead them.
    pub is_only_read: bool,
}

/// The flow graphs of a function and of the functions inside it.
pub fn units(
    function: &Function,
    text: &[u8],
    tokens: &[Token],
    manner: Manner,
) -> Result<Vec<Unit>, Trouble> {
    let mut found = Vec::new();
    let mut waiting = vec![function];
    while let Some(function) = waiting.pop() {
        let mut builder = Builder::new(function, text, tokens, manner);
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

/// Where control goes from a condition.
struct Ways {
    yes: At,
    no: At,
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
    manner: Manner,
    blocks: Vec<Block>,
    cold: Vec<bool>,
    edges: Vec<(Edge, EdgeSite)>,
    hints: Vec<Edge>,
    at: At,
    around: Vec<Around>,
    labels: HashMap<String, BlockId>,
    /// Labels that somebody else may jump to.
    exposed: HashSet<Cow<'f, str>>,
    placed: BTreeSet<BlockId>,
    bodies: Vec<Tokens>,
    inner: Vec<&'f Function>,
    entry: Site,
    ranges: Vec<(Tokens, BlockId)>,
}

fn nowhere() -> At {
    At::Between(Vec::new())
}

impl<'f> Builder<'f> {
    fn new(function: &Function, text: &'f [u8], tokens: &'f [Token], manner: Manner) -> Self {
        let mut builder = Self {
            text,
            tokens,
            manner,
            blocks: Vec::new(),
            cold: Vec::new(),
            edges: Vec::new(),
            hints: Vec::new(),
            at: nowhere(),
            around: Vec::new(),
            labels: HashMap::new(),
            exposed: HashSet::new(),
            placed: BTreeSet::new(),
            bodies: Vec::new(),
            inner: Vec::new(),
            entry: Site::Behind(function.open),
            ranges: Vec::new(),
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

    fn name(&self, at: u32) -> Cow<'f, str> {
        let token = &self.tokens[at as usize];
        String::from_utf8_lossy(&self.text[token.start as usize..token.end as usize])
    }

    fn function(&mut self, function: &'f Function) -> Result<(), Trouble> {
        self.entry = self.head(function.open, &function.items);
        let site = self.entry.clone();
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

    /// How a probe stands at the beginning of a block: behind `__label__`, and, if the user wants it
    /// so, behind declarations; but before what one of those may not come back from.
    fn head(&self, open: u32, items: &[Statement]) -> Site {
        let mut last = open;
        for item in items {
            match &item.what {
                What::LabelNames(_) => (),
                What::Declaration { values, .. } if self.manner.declarations_first => {
                    if values.iter().any(|it| it.may_be_lost) {
                        return Site::Declared(last);
                    }
                }
                _ => break,
            }
            last = item.tokens.end - 1;
        }
        Site::Behind(last)
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
            What::Declaration { .. } if self.manner.declarations_first => Site::Declared(token - 1),
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

    /// Where control is behind a jump, and where it comes from to what others jump to: nowhere that
    /// is known yet.
    fn unreached(&self) -> At {
        match self.manner.unseen_jumps {
            true => At::Adrift(Vec::new()),
            false => nowhere(),
        }
    }

    /// Control goes outside for good.
    fn leave(&mut self) {
        let unreached = self.unreached();
        match std::mem::replace(&mut self.at, unreached) {
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
        self.ranges.push((statement.tokens.clone(), block));
        block
    }

    fn statement(&mut self, statement: &'f Statement) -> Result<(), Trouble> {
        match &statement.what {
            What::Empty => self.empty(statement),
            What::LabelNames(names) => self.exposed.extend(names.iter().map(Cow::from)),
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
                if *may_be_lost && !self.manner.is_only_read {
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
                self.at = self.unreached();
            }
            What::Label(name) => {
                let label = self.label(name);
                self.placed.insert(label);
                self.blocks[label.index()].token = statement.tokens.start;
                self.blocks[label.index()].kind = Some(BlockKind::Label);
                self.blocks[label.index()].site = self.behind_label(statement);
                if self.manner.unseen_jumps || self.exposed.contains(name.as_str()) {
                    self.edge(Node::Outside, Node::Block(label), EdgeKind::Arrival);
                }
                self.arrive(label);
                self.ranges.push((statement.tokens.clone(), label));
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

    /// An empty statement does nothing, and is shown only where it is all of an arm or a body.
    fn empty(&mut self, statement: &Statement) {
        let At::In(block) = self.at else { return };
        let block = &mut self.blocks[block.index()];
        if block.is_governed() && block.token == statement.tokens.start {
            block.statements.push(block.token);
        }
    }

    fn finish(self, function: &Function) -> Unit {
        let blocks = self.blocks.len() as u32;
        let (edges, edge_sites): (Vec<_>, Vec<_>) = self.edges.into_iter().unzip();
        let cost = |site: &Site| match site {
            Site::None => None,
            Site::Behind(_) | Site::BeforeCase(_) | Site::Declared(_) => Some(IN_STATEMENTS),
            Site::Around(_) | Site::Before(_) | Site::Chosen(_) => Some(IN_EXPRESSIONS),
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
            ranges: self.ranges,
        }
    }
}
