//! Flow graphs and plans in, counted C out.
//!
//! Nothing is ever taken away or moved: every byte of the text is still there, in order, but for
//! line markers that a dialect spells in another way. Text is put in behind the token before a
//! statement, so that on most lines the user's own tokens keep their columns.

use std::collections::HashSet;
use std::ops::Range;

use headcount_model::{BlockId, Edge, Node, Place, Plan};

use crate::flow_graph::{EdgeSite, Site, Unit};
use crate::lex::Kind;
use crate::source::Source;
use crate::tree::Tokens;

/// An increment of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub counter: usize,
    /// Whether it notes that code was made of its function.
    pub marks_code: bool,
}

/// How a counter is incremented, in the words of one kind of compiler.
pub trait Dialect {
    /// Writes an increment as a statement.
    fn statement(&self, probe: Probe, out: &mut String);
    /// Writes an increment as an expression of type void.
    fn expression(&self, probe: Probe, out: &mut String);
    /// Writes an increment as a declaration.
    fn declaration(&self, probe: Probe, out: &mut String);
    /// A statement that says that control is meant to fall into the `case` behind it.
    fn fall_through(&self) -> &str;
    /// A statement that prepares a thread for counting.
    fn enter(&self) -> String;
    /// The same as a declaration, for C in which no statement may stand before one.
    fn enter_declaration(&self) -> String;
    /// Writes a line that says where the next one is from: a line of a file, whose name is quoted as
    /// in a string, and whether that is a header of the system.
    fn line_marker(&self, line: &str, file: &str, is_system: bool, out: &mut Vec<u8>) {
        gnu_line_marker(line, file, is_system, out);
    }
    /// Whether the markers of the text are to be written like that, too.
    fn rewrites_markers(&self) -> bool {
        false
    }
    /// What stands before and behind a call of a function with this name, which may make a
    /// process.
    fn around_fork(&self, name: &str) -> Option<(String, String)>;
}

/// A unit's plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitPlan {
    /// Where its counters stand.
    pub plan: Plan,
    /// Whether every block has a counter of its own, so that nothing need be derived.
    pub every_block: bool,
}

/// Where counters stand if every block is to have its own: in it, or on the way to it.
pub fn every_block(unit: &Unit) -> UnitPlan {
    let mut plan = Plan::default();
    for (id, block) in (0..).map(BlockId).zip(&unit.blocks) {
        if block.kind.is_none() {
            continue;
        }
        if block.site != Site::None {
            plan.counters.push(Place::Block(id));
            continue;
        }
        let into = |(_, edge): &(_, &Edge)| edge.to == Node::Block(id);
        let ways = unit.graph.edges().filter(into);
        let ways = ways.filter(|(id, _)| unit.edge_sites[id.index()] != EdgeSite::None);
        plan.counters.extend(ways.map(|(id, _)| Place::Edge(id)));
    }
    UnitPlan {
        plan,
        every_block: true,
    }
}

/// Where blocks begin whose count a plan with a counter for every block does not tell: nothing can
/// stand in them, or on the way to them.
pub fn untold(unit: &Unit, plan: &UnitPlan) -> Vec<u32> {
    if !plan.every_block {
        return Vec::new();
    }
    let tells = |place: &Place| match place {
        Place::Block(block) => Some(*block),
        Place::Edge(edge) => match unit.graph.edges[edge.index()].to {
            Node::Block(block) => Some(block),
            Node::Outside => None,
        },
    };
    let told: HashSet<BlockId> = plan.plan.counters.iter().filter_map(tells).collect();
    let all = (0..).map(BlockId).zip(&unit.blocks);
    all.filter(|(id, block)| block.kind.is_some() && !told.contains(id))
        .map(|(_, block)| block.token)
        .collect()
}

/// What a wrong inserter would do: tests that do not notice are no tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Bodies get no braces, so that only the counter is governed.
    NoBraces,
    /// The first statement of every arm is never run.
    FirstStatementsDropped,
}

/// The counted text. Counters are numbered through all units.
pub fn insert(
    source: &Source,
    plans: &[UnitPlan],
    dialect: &dyn Dialect,
    fault: Option<Fault>,
) -> Vec<u8> {
    let mut inserter = Inserter {
        source,
        dialect,
        fault,
        edits: Vec::new(),
        written: String::new(),
    };
    let mut first = 0;
    for ((unit, plan), check) in source.units.iter().zip(plans).zip(&source.checks) {
        inserter.unit(unit, &plan.plan, first, *check);
        first += plan.plan.counters.len();
    }
    inserter.apply()
}

/// Lines that are longer were not written by people: who looks at their columns?
const WIDEST: u32 = 400;

/// What comes first where several edits stand at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The end of an operand.
    Close,
    /// The end of a body.
    EndBody,
    /// The beginning of a body.
    Body,
    /// A statement.
    Statement,
    /// The beginning of an operand.
    Open,
}

struct Edit {
    offset: u32,
    class: Class,
    /// Outer operands open first and close last.
    order: (i64, i64),
    /// What is put in: this part of all that was written.
    text: Range<usize>,
}

/// The counter that stands where a function begins, if one does. Any other may be left out of its
/// code, because the compiler sees that control never comes there.
fn beginning(plan: &Plan) -> Option<usize> {
    let begins = |place: &Place| *place == Place::Block(BlockId(0));
    plan.counters.iter().position(begins)
}

/// GNU's marker, which says more than `#line` does.
fn gnu_line_marker(line: &str, file: &str, is_system: bool, out: &mut Vec<u8>) {
    let system = if is_system { " 3" } else { "" };
    for part in ["# ", line, " \"", file, "\"", system, "\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

struct Inserter<'s, 't> {
    source: &'s Source<'t>,
    dialect: &'s dyn Dialect,
    fault: Option<Fault>,
    edits: Vec<Edit>,
    /// The texts of all edits. There are many, and they are short.
    written: String,
}

impl Inserter<'_, '_> {
    fn unit(&mut self, unit: &Unit, plan: &Plan, first: usize, check: bool) {
        if check {
            self.enter(&unit.entry);
        }
        let has_braces = self.fault != Some(Fault::NoBraces);
        for body in unit.bodies.iter().filter(|_| has_braces) {
            let (start, end) = (self.behind(body.start - 1), self.behind(body.end - 1));
            self.put(start, Class::Body, (0, 0), &[" {"]);
            self.put(end, Class::EndBody, (0, 0), &[" }"]);
        }
        for call in &unit.forks {
            self.fork(call);
        }
        if self.fault == Some(Fault::FirstStatementsDropped) {
            self.drop_first_statements(unit);
        }
        let mut ways: Vec<(&EdgeSite, Probe)> = Vec::new();
        let beginning = beginning(plan);
        for (number, place) in plan.counters.iter().enumerate() {
            let probe = Probe {
                counter: first + number,
                marks_code: beginning.is_none_or(|it| it == number),
            };
            match place {
                Place::Block(block) => self.block(&unit.blocks[block.index()].site, probe),
                Place::Edge(edge) => ways.push((&unit.edge_sites[edge.index()], probe)),
            }
        }
        self.conditions(&ways);
    }

    fn enter(&mut self, entry: &Site) {
        let (token, text) = match entry {
            Site::Behind(token) => (token, self.dialect.enter()),
            Site::Declared(token) => (token, self.dialect.enter_declaration()),
            _ => return debug_assert!(false, "every function has a beginning"),
        };
        self.put(self.behind(*token), Class::Body, (1, 0), &[" ", &text]);
    }

    fn drop_first_statements(&mut self, unit: &Unit) {
        for block in unit.blocks.iter().filter(|it| it.is_governed()) {
            let Site::Behind(token) = block.site else {
                continue;
            };
            let next = self.source.lexed.tokens.get(token as usize + 1);
            let is_simple = next.is_some_and(|it| it.kind == Kind::Name);
            if is_simple && block.statements.first() == Some(&(token + 1)) {
                self.put(self.behind(token), Class::Statement, (1, 0), &[" if (0)"]);
            }
        }
    }

    fn behind(&self, token: u32) -> u32 {
        self.source.lexed.tokens[token as usize].end
    }

    fn before(&self, token: u32) -> u32 {
        self.source.lexed.tokens[token as usize].start
    }

    fn put(&mut self, offset: u32, class: Class, order: (i64, i64), parts: &[&str]) {
        self.put_with(offset, class, order, |_, out| {
            parts.iter().for_each(|part| out.push_str(part));
        });
    }

    fn put_with(
        &mut self,
        offset: u32,
        class: Class,
        order: (i64, i64),
        write: impl FnOnce(&dyn Dialect, &mut String),
    ) {
        let start = self.written.len();
        write(self.dialect, &mut self.written);
        self.edits.push(Edit {
            offset,
            class,
            order,
            text: start..self.written.len(),
        });
    }

    fn block(&mut self, site: &Site, probe: Probe) {
        match site {
            Site::None => (),
            Site::Behind(token) | Site::BeforeCase(token) => {
                let offset = self.behind(*token);
                let falls = matches!(site, Site::BeforeCase(_));
                self.put_with(offset, Class::Statement, (0, 0), |dialect, out| {
                    out.push(' ');
                    dialect.statement(probe, out);
                    if falls {
                        out.push(' ');
                        out.push_str(dialect.fall_through());
                    }
                });
            }
            Site::Declared(token) => {
                let offset = self.behind(*token);
                self.put_with(offset, Class::Statement, (0, 0), |dialect, out| {
                    out.push(' ');
                    dialect.declaration(probe, out);
                });
            }
            Site::Before(token) => {
                let offset = self.before(*token);
                self.put_with(offset, Class::Open, (i64::MIN, 0), |dialect, out| {
                    dialect.expression(probe, out);
                    out.push_str(", ");
                });
            }
            Site::Chosen(tokens) => {
                let open = |dialect: &dyn Dialect, out: &mut String| {
                    out.push_str("((");
                    dialect.expression(probe, out);
                    out.push_str(", 1) ? ");
                };
                self.around(tokens, open, " : 0)");
            }
            Site::Around(tokens) => {
                let open = |dialect: &dyn Dialect, out: &mut String| {
                    out.push('(');
                    dialect.expression(probe, out);
                    out.push_str(", ");
                };
                self.around(tokens, open, ")");
            }
        }
    }

    /// Puts text around an operand. Of two around the same, the later is the inner one.
    fn around(
        &mut self,
        tokens: &Tokens,
        open: impl FnOnce(&dyn Dialect, &mut String),
        close: &str,
    ) {
        let (start, end) = (self.before(tokens.start), self.behind(tokens.end - 1));
        let number = self.edits.len() as i64;
        self.put_with(start, Class::Open, (-i64::from(end), number), open);
        self.put(end, Class::Close, (-i64::from(start), -number), &[close]);
    }

    /// A condition whose outcome is counted: it is evaluated first, and says then what it said.
    fn conditions(&mut self, ways: &[(&EdgeSite, Probe)]) {
        let tokens = |site: &EdgeSite| match site {
            EdgeSite::WhenTrue(tokens) | EdgeSite::WhenFalse(tokens) => Some(tokens.clone()),
            EdgeSite::None => None,
        };
        let mut done: Vec<Tokens> = Vec::new();
        for (site, _) in ways {
            let Some(range) = tokens(site).filter(|it| !done.contains(it)) else {
                continue;
            };
            let find = |wanted: EdgeSite| {
                let found = ways.iter().find(|(site, _)| **site == wanted);
                found.map(|(_, probe)| {
                    let mut count = String::new();
                    self.dialect.expression(*probe, &mut count);
                    count
                })
            };
            let yes = find(EdgeSite::WhenTrue(range.clone()));
            let no = find(EdgeSite::WhenFalse(range.clone()));
            let close = match (yes, no) {
                (Some(yes), Some(no)) => format!(") ? ({yes}, 1) : ({no}, 0))"),
                (Some(yes), None) => format!(") && ({yes}, 1))"),
                (None, Some(no)) => format!(") || ({no}, 0))"),
                (None, None) => continue,
            };
            self.around(&range, |_, out| out.push_str("(("), &close);
            done.push(range);
        }
    }

    fn fork(&mut self, call: &Tokens) {
        let token = &self.source.lexed.tokens[call.start as usize];
        let name = &self.source.text[token.start as usize..token.end as usize];
        let name = String::from_utf8_lossy(name);
        if let Some((open, close)) = self.dialect.around_fork(&name) {
            self.around(call, |_, out| out.push_str(&open), &close);
        }
    }

    fn apply(mut self) -> Vec<u8> {
        self.edits
            .sort_unstable_by_key(|it| (it.offset, it.class, it.order, it.text.start));
        let text = self.source.text;
        let files = self.source.lexed.lines.files.iter();
        let quoted = |file: &String| file.replace('\\', "\\\\").replace('"', "\\\"");
        let files: Vec<String> = files.map(quoted).collect();
        // A line marker and spaces for each edit.
        let added = self.written.len() + self.edits.len() * 32;
        let mut result = Vec::with_capacity(text.len() + added);
        let mut done = 0;
        for edits in self.edits.chunk_by(|one, other| one.offset == other.offset) {
            let offset = edits[0].offset;
            self.copy(done..offset, &files, &mut result);
            done = offset;
            for edit in edits {
                result.extend_from_slice(&self.written.as_bytes()[edit.text.clone()]);
            }
            if !self.source.is_raw {
                self.keep_column(offset, &files, &mut result);
            }
        }
        self.copy(done..text.len() as u32, &files, &mut result);
        result
    }

    /// Copies a part of the text, its markers in the words of the dialect.
    fn copy(&self, part: Range<u32>, files: &[String], result: &mut Vec<u8>) {
        let mut done = part.start;
        if self.dialect.rewrites_markers() && !self.source.is_raw {
            let markers = &self.source.lexed.markers;
            let first = markers.partition_point(|it| it.bytes.start < part.start);
            let inside = markers[first..].iter();
            for marker in inside.take_while(|it| it.bytes.end <= part.end) {
                let before = done as usize..marker.bytes.start as usize;
                result.extend_from_slice(&self.source.text[before]);
                // Compilers call their own definitions line 0.
                let mut digits = [0; 10];
                let line = decimal(marker.line.max(1), &mut digits);
                let file = &files[marker.file as usize];
                self.dialect.line_marker(line, file, false, result);
                // The end of its line follows in the text.
                result.pop();
                done = marker.bytes.end;
            }
        }
        result.extend_from_slice(&self.source.text[done as usize..part.end as usize]);
    }

    /// What follows on the same line begins a line of its own, in the column where it was, so that
    /// the compiler's messages speak of the user's columns.
    fn keep_column(&self, offset: u32, files: &[String], result: &mut Vec<u8>) {
        let rest = &self.source.text[offset as usize..];
        let next = rest
            .iter()
            .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        if next.is_none_or(|byte| *byte == b'\n') {
            return;
        }
        let lines = &self.source.lexed.lines;
        let (at, is_system) = lines.position_and_system(offset);
        if at.column > WIDEST {
            return;
        }
        let file = &files[at.file as usize];
        result.push(b'\n');
        let mut digits = [0; 10];
        let line = decimal(at.line, &mut digits);
        self.dialect.line_marker(line, file, is_system, result);
        result.resize(result.len() + at.column as usize - 1, b' ');
    }
}

/// A number in digits. There is one in every line marker, and `write!` takes its time.
fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &str {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    // Digits are text.
    std::str::from_utf8(&digits[first..]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn numbers_are_written_as_everybody_writes_them() {
        for number in [0, 7, 10, 4095, 1_000_000, u32::MAX] {
            assert_eq!(decimal(number, &mut [0; 10]), number.to_string());
        }
    }
}
