//! How control moves through the functions of a text as the user wrote it; reports compare that with
//! the counts of its compiled code.
//!
//! The text is not changed, and a function that cannot be read has no blocks: reports then have only
//! the code to go by. Calls are assumed to return; counts show whether they did.

use headcount_model::{FlowGraph, Node, SourceBlock, SourceCall, SourceFunction};

use crate::conditionals::{Resolved, resolve};
use crate::definitions::Definitions;
use crate::environment::Environment;
use crate::expand::{Expanded, Made, expand};
use crate::flow_graph::{self, Manner, Unit};
use crate::lex::{Kind, Lexed, lex};
use crate::names::Names;
use crate::outline::outline;
use crate::parser::{NONE, Parser, partners};
use crate::words::Word;

/// The functions of a text. Those that cannot be followed have no blocks. The text is one of those
/// that `definitions` were read from; `has_code` tells of its lines.
pub fn source_functions(
    name: &str,
    text: &[u8],
    definitions: &Definitions,
    has_code: &dyn Fn(u32) -> bool,
) -> Vec<SourceFunction> {
    let is_small = text.len() < u32::MAX as usize / 2;
    let Some(number) = definitions
        .number(name)
        .filter(|_| is_small && !definitions.is_mad())
    else {
        return Vec::new();
    };
    let resolved = resolve(text, has_code);
    let lexed = lex(&resolved.text, "");
    let lines = text.iter().filter(|it| **it == b'\n').count() as u32 + 1;
    let environment = Environment::new(definitions, number, lines, has_code);
    let expanded = expand(&resolved.text, &lexed, definitions, environment);
    let Ok(partner) = partners(&expanded.tokens) else {
        return Vec::new();
    };
    let reading = Reading {
        resolved: &resolved,
        lexed: &lexed,
        expanded: &expanded,
        partner: &partner,
        definitions,
    };
    reading.functions()
}

struct Reading<'t> {
    resolved: &'t Resolved,
    /// The text as it is written.
    lexed: &'t Lexed,
    /// What is read.
    expanded: &'t Expanded,
    partner: &'t [u32],
    definitions: &'t Definitions,
}

impl<'t> Reading<'t> {
    fn functions(&self) -> Vec<SourceFunction> {
        let text = &self.expanded.text;
        let nothing = Names::default();
        let tokens = &self.expanded.tokens;
        let mut parser = Parser::new(text, &tokens.tokens, self.partner, &nothing);
        if let Ok(outline) = outline(text, tokens, self.partner) {
            parser.types = outline.types;
        }
        for name in self.definitions.types() {
            parser.types.declare(name, true);
        }
        let mut found = Vec::new();
        for (name, open) in self.bodies() {
            if !self.is_clear(name, open) {
                found.extend(self.unfollowed(name, open));
                continue;
            }
            parser.at = open;
            parser.depth = 0;
            let read = parser.function(name);
            parser.types.leave_all();
            let manner = Manner {
                is_only_read: true,
                ..Manner::default()
            };
            let units =
                read.and_then(|tree| flow_graph::units(&tree, text, &tokens.tokens, manner));
            // Functions inside of functions share too much.
            match units.as_deref() {
                Ok([unit]) => found.extend(self.flow(unit, open)),
                _ => found.extend(self.unfollowed(name, open)),
            }
        }
        found
    }

    fn number(&self) -> usize {
        self.expanded.tokens.tokens.len()
    }

    fn kind(&self, at: u32) -> Kind {
        let token = self.expanded.tokens.tokens.get(at as usize);
        token.map_or(Kind::Stray, |it| it.kind)
    }

    fn bytes(&self, at: u32) -> &'t [u8] {
        let token = &self.expanded.tokens.tokens[at as usize];
        &self.expanded.text[token.start as usize..token.end as usize]
    }

    /// Line and column of a token: compilers put all that comes out of a macro where that is used.
    fn place(&self, at: u32) -> (u32, u32) {
        let origin = self.expanded.origins[at as usize];
        let token = &self.lexed.tokens[origin.token as usize];
        let at = self.lexed.lines.position(token.start);
        (at.line, at.column)
    }

    /// The functions: the token of the name, and the brace. What is before a name may be anything,
    /// because macros may stand there.
    fn bodies(&self) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut at = 0;
        let mut begin = 0;
        while (at as usize) < self.number() {
            match self.kind(at) {
                Kind::OpenBrace => {
                    let is_linkage = at > 0 && self.kind(at - 1) == Kind::Text;
                    if is_linkage {
                        at += 1;
                        begin = at;
                        continue;
                    }
                    let close = self.partner[at as usize];
                    found.extend(self.name_before(begin, at).map(|name| (name, at)));
                    at = close;
                    begin = close + 1;
                }
                Kind::OpenParen | Kind::OpenBracket => at = self.partner[at as usize],
                Kind::Semicolon if !self.is_old_parameter(begin, at) => begin = at + 1,
                _ => (),
            }
            at += 1;
        }
        found
    }

    /// Whether a semicolon may end the declaration of a parameter, as it was done before 1989:
    /// behind the parenthesis of the function there is a type.
    fn is_old_parameter(&self, begin: u32, semicolon: u32) -> bool {
        let Some(close) = self.first_group(begin, semicolon) else {
            return false;
        };
        let is_type = matches!(self.kind(close + 1), Kind::Name | Kind::Word(_));
        is_type && self.kind(close + 1) != Kind::Word(Word::Attribute)
    }

    /// The end of the first `name (...)`.
    fn first_group(&self, begin: u32, end: u32) -> Option<u32> {
        let mut at = begin;
        while at < end {
            if self.kind(at) == Kind::OpenParen {
                let is_named = at > begin && self.kind(at - 1) == Kind::Name;
                let close = self.partner[at as usize];
                if is_named {
                    return Some(close);
                }
                at = close;
            }
            at += 1;
        }
        None
    }

    /// The name of the function whose body opens here.
    fn name_before(&self, begin: u32, open: u32) -> Option<u32> {
        let close = self.first_group(begin, open)?;
        let name = self.partner[close as usize].checked_sub(1)?;
        let has_value = (begin..open).any(|at| self.kind(at) == Kind::Is);
        let is_name = self.kind(name) == Kind::Name && !has_value && close < open;
        is_name.then_some(name)
    }

    /// Whether all ways through a function can be seen.
    fn is_clear(&self, name: u32, open: u32) -> bool {
        let close = self.partner[open as usize];
        if close == NONE {
            return false;
        }
        let origin = |at: u32| self.expanded.origins[at as usize].token;
        let lines = self.place(name).0..self.place(close).0 + 1;
        let is_outside = |it: &std::ops::Range<u32>| it.end <= lines.start || lines.end <= it.start;
        // All of it is in one place: nothing tells its parts apart.
        let is_one_place = origin(open) == origin(close);
        !is_one_place
            && self.resolved.unclear.iter().all(is_outside)
            && !self.is_elsewhere(origin(name), origin(close))
            && !self.has_lone_name(open, close)
            && (open..close).all(|at| match self.kind(at) {
                Kind::Word(Word::Asm) => !self.is_jumping(at),
                Kind::AndAnd => self.is_operand_before(at),
                Kind::Stray => false,
                _ => true,
            })
    }

    /// Whether tokens of the text are said to be of other files, or of lines before.
    fn is_elsewhere(&self, first: u32, last: u32) -> bool {
        let lines = &self.lexed.lines;
        if lines.are_as_counted() {
            return false;
        }
        let tokens = &self.lexed.tokens[first as usize..=last as usize];
        let places: Vec<_> = tokens.iter().map(|it| lines.position(it.start)).collect();
        // Files are numbered, and this one is the first.
        places.last().is_some_and(|it| it.file != 0) || !places.is_sorted()
    }

    fn has_lone_name(&self, open: u32, close: u32) -> bool {
        let mut at = open + 1;
        while at < close {
            match self.kind(at) {
                // What `for` has in its parentheses are no statements.
                Kind::OpenParen => at = self.partner[at as usize],
                Kind::Name if self.is_lone_name(at) => return true,
                _ => (),
            }
            at += 1;
        }
        false
    }

    /// A name that is all of a statement does nothing, or is a macro that nobody knows.
    fn is_lone_name(&self, at: u32) -> bool {
        let begins = match self.kind(at - 1) {
            Kind::CloseBrace => !self.is_type(self.partner[at as usize - 1]),
            Kind::Semicolon | Kind::OpenBrace | Kind::Word(Word::Else | Word::Do) => true,
            _ => false,
        };
        let is_written = self.expanded.origins[at as usize].made == Made::Written;
        let is_all = self.kind(at + 1) == Kind::Semicolon;
        is_written && is_all && (begins || self.is_governed(at))
    }

    /// Whether a brace is that of `struct name {` and its like.
    fn is_type(&self, open: u32) -> bool {
        let mut before = (0..open).rev().map(|it| self.kind(it));
        let is_tag = |kind: Option<Kind>| kind == Some(Kind::Word(Word::Tag));
        match before.next() {
            Some(Kind::Name) => is_tag(before.next()),
            other => is_tag(other),
        }
    }

    /// Whether a token is the first behind `if (...)` and its like.
    fn is_governed(&self, at: u32) -> bool {
        let open = match self.kind(at - 1) {
            Kind::CloseParen => self.partner[at as usize - 1],
            _ => return false,
        };
        let word = open.checked_sub(1).map(|it| self.kind(it));
        matches!(
            word,
            Some(Kind::Word(
                Word::If | Word::While | Word::For | Word::Switch
            ))
        )
    }

    /// `asm goto`
    fn is_jumping(&self, asm: u32) -> bool {
        let words = (asm + 1..).map_while(|at| match self.kind(at) {
            Kind::Word(word) => Some(word),
            _ => None,
        });
        words.into_iter().any(|it| it == Word::Goto)
    }

    fn is_operand_before(&self, at: u32) -> bool {
        matches!(
            self.kind(at - 1),
            Kind::Name
                | Kind::Number
                | Kind::Text
                | Kind::CloseParen
                | Kind::CloseBracket
                | Kind::CloseBrace
                | Kind::Step
                | Kind::Word(_)
        )
    }

    /// A function of which nothing is known but what it calls.
    fn unfollowed(&self, name: u32, open: u32) -> Option<SourceFunction> {
        let close = self.partner[open as usize];
        (close != NONE).then(|| SourceFunction {
            name: String::from_utf8_lossy(self.bytes(name)).into_owned(),
            line: self.place(name).0,
            last_line: self.place(close).0,
            calls: self.calls(open, close, &|_| None),
            ..SourceFunction::default()
        })
    }

    /// What is called by name between two tokens.
    fn calls(&self, open: u32, close: u32, block: &dyn Fn(u32) -> Option<u32>) -> Vec<SourceCall> {
        let is_call =
            |at: &u32| self.kind(*at) == Kind::Name && self.kind(at + 1) == Kind::OpenParen;
        let call = |at: u32| SourceCall {
            name: String::from_utf8_lossy(self.bytes(at)).into_owned(),
            place: self.place(at),
            block: block(at),
        };
        (open..close).filter(is_call).map(call).collect()
    }

    /// Where loops begin that are written between two tokens.
    fn loops(&self, open: u32, close: u32) -> Vec<(u32, u32)> {
        let is_loop = |at: &u32| {
            let is_word = matches!(
                self.kind(*at),
                Kind::Word(Word::While | Word::For | Word::Do)
            );
            is_word && self.expanded.origins[*at as usize].made == Made::Written
        };
        (open..close)
            .filter(is_loop)
            .map(|at| self.place(at))
            .collect()
    }

    fn flow(&self, unit: &Unit, open: u32) -> Option<SourceFunction> {
        let first = unit.name_token;
        let close = self.partner[open as usize];
        let owners = owners(unit, close);
        let owner = |at: u32| owners[(at - first) as usize];
        let mut function = SourceFunction {
            name: unit.name.clone(),
            line: self.place(first).0,
            last_line: self.place(close).0,
            blocks: vec![SourceBlock::default(); unit.blocks.len()],
            graph: FlowGraph {
                blocks: unit.graph.blocks,
                edges: unit.graph.edges.clone(),
            },
            places: Vec::new(),
            calls: self.calls(first + 1, close, &|at| Some(owner(at))),
            vague: Vec::new(),
            loops: self.loops(open, close),
        };
        let mut begun = vec![false; owners.len()];
        for (number, block) in unit.blocks.iter().enumerate() {
            for at in &block.statements {
                match self.expanded.origins[*at as usize].made {
                    Made::Written => function.blocks[number].lines.push(self.place(*at).0),
                    _ => begun[(at - first) as usize] = true,
                }
            }
        }
        // Control comes to the beginning of the function, and, if it leaves, to its end.
        let ends = [self.place(open).0, function.last_line];
        function.blocks.first_mut()?.lines.extend(ends);
        let chains = chains(&function.graph);
        let mut at = first;
        while at <= close {
            let origin = self.expanded.origins[at as usize];
            let rest = &self.expanded.origins[at as usize..=close as usize];
            let same = rest.iter().take_while(|it| it.token == origin.token);
            let end = at + same.count() as u32;
            // A macro begins once, where the first of its statements does.
            let start = (at..end).find(|it| begun[(it - first) as usize]);
            let block = owner(start.unwrap_or(at));
            if start.is_some() {
                function.blocks[block as usize].lines.push(self.place(at).0);
            }
            let place = self.place(at);
            let is_known = |it: &((u32, u32), u32)| it.1 == block && it.0.0 == place.0;
            if !function.places.last().is_some_and(is_known) {
                function.places.push((place, block));
            }
            let chain = |at: u32| chains[owner(at) as usize];
            let is_one = (at + 1..end).all(|it| chain(it) == chain(at));
            let is_known = (at..end).all(|it| self.is_known(it));
            if !is_one || !is_known {
                function.vague.push(self.place(at));
            }
            at = end;
        }
        Some(function)
    }

    fn is_known(&self, at: u32) -> bool {
        self.expanded.origins[at as usize].made != Made::InsteadOfMacro
    }
}

/// Which block each token belongs to, from the name of a function to its end.
fn owners(unit: &Unit, close: u32) -> Vec<u32> {
    let first = unit.name_token;
    let mut owner = vec![0_u32; (close - first) as usize + 1];
    // Outer ranges come before those inside of them.
    let mut ranges: Vec<_> = unit.ranges.iter().collect();
    ranges.sort_by_key(|(tokens, _)| (tokens.start, std::cmp::Reverse(tokens.end)));
    for (tokens, block) in ranges {
        let tokens = tokens.start.max(first) - first..tokens.end.min(close) - first;
        for at in tokens {
            owner[at as usize] = block.0;
        }
    }
    owner
}

/// Blocks that always run one after the other have the same number.
fn chains(graph: &FlowGraph) -> Vec<u32> {
    let number = graph.blocks as usize;
    let mut into = vec![0_u32; number];
    let mut out: Vec<Vec<Node>> = vec![Vec::new(); number];
    for edge in &graph.edges {
        if let Node::Block(to) = edge.to {
            into[to.index()] += 1;
        }
        if let Node::Block(from) = edge.from {
            out[from.index()].push(edge.to);
        }
    }
    let next = |block: usize| match out[block][..] {
        [Node::Block(to)] if into[to.index()] == 1 => Some(to.index()),
        _ => None,
    };
    let mut is_inner = vec![false; number];
    for to in (0..number).filter_map(next) {
        is_inner[to] = true;
    }
    let mut chains: Vec<u32> = (0..graph.blocks).collect();
    for head in (0..number).filter(|it| !is_inner[*it]) {
        let mut at = head;
        while let Some(to) = next(at) {
            chains[to] = head as u32;
            at = to;
        }
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::BlockId;

    fn functions(text: &str) -> Vec<SourceFunction> {
        let mut definitions = Definitions::default();
        definitions.read("x.c", text.as_bytes());
        definitions.settle();
        source_functions("x.c", text.as_bytes(), &definitions, &|_| true)
    }

    #[test]
    fn functions_are_found_whatever_macros_stand_before_them() {
        let text = "#define API extern\nAPI(int) one(void) { return 1; }\n\
                    int old(a, b) int a; char *b; { return a; }\nstruct s { int x; };\n\
                    int t[] = { 1, 2 };\nstatic MY two (int a) ATTR(x) { return a; }\n";
        let names: Vec<_> = functions(text).into_iter().map(|it| it.name).collect();
        assert!(names.contains(&"old".to_owned()), "{names:?}");
        assert!(names.contains(&"two".to_owned()), "{names:?}");
    }

    #[test]
    fn what_stands_somewhere_belongs_to_the_block_that_evaluates_it() {
        let text = "int f(int n) {\n  int s = 0;\n  for (int i = 0; i < n; i++)\n    if (i & 1)\n\
                    \x20     s += g(i);\n  return s;\n}\n";
        let found = functions(text);
        let f = &found[0];
        let block = |line, column| f.block_at(line, column).unwrap();
        assert_eq!(block(1, 5), 0);
        assert_eq!(block(2, 7), 0);
        assert_ne!(block(3, 19), 0);
        assert_ne!(block(3, 26), block(3, 19));
        assert_ne!(block(5, 7), block(4, 5));
        assert_eq!((f.line, f.last_line), (1, 7));
        assert!(f.blocks[0].lines.contains(&7));
        let f = only("int f(int n)\n{\n  return n;\n}\n");
        assert!([1, 2, 3, 4].iter().all(|it| f.blocks[0].lines.contains(it)));
    }

    /// Those that can be followed.
    fn names(text: &str) -> Vec<String> {
        let found = functions(text).into_iter();
        let followed = found.filter(|it| !it.blocks.is_empty());
        followed.map(|it| it.name).collect()
    }

    #[test]
    fn calls_are_known_where_control_is_not() {
        let text =
            "void f(int x) { EACH(x) { h(x); } assert(k(x)); }\nvoid g(void) { if (a) h(); }\n";
        let found = functions(text);
        let calls = |number: usize| {
            let calls = found[number].calls.iter();
            calls.map(|it| (it.name.as_str(), it.block.is_some()))
        };
        assert!(found[0].blocks.is_empty());
        assert!(calls(0).any(|it| it == ("h", false)));
        // An `assert` may stand for nothing.
        assert!(!calls(0).any(|it| it.0 == "k"));
        assert_eq!(calls(1).collect::<Vec<_>>(), [("h", true)]);
        assert_ne!(found[1].calls[0].block, Some(0));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let rest = "\nvoid g(void) { h(); }\n";
        for body in [
            // Macros that nobody knows.
            "EACH(x, list) { h(); }",
            "TRY(x) h();",
            "FINISH;",
            "if (x) LEAVE;",
            "BEGIN if (x) h(); END",
            "DECLARE(x) y; if (x) h();",
            "UNUSED PLAIN if (x) return;",
            // Jumps that nobody sees.
            "struct s { int x; } a; { h(); } FINISH;",
            "static void *t[] = { &&a }; goto *t[0]; a: h();",
            "asm goto(\"\" : : : : out); h(); out: ;",
            "asm volatile goto(\"\" : : : : out); h(); out: ;",
            "switch (x) {\n#include \"cases.inc\"\n}",
        ] {
            let text = format!("void f(int x) {{ {body} }}{rest}");
            assert_eq!(names(&text), ["g"], "{body}");
        }
        // One of two macros, nobody knows which.
        let text = "#ifdef WHO\n#define TRY(x) return\n#else\n#define TRY(x) h(x)\n#endif\n\
                    void f(int x) { TRY(x); h(); }\n";
        assert_eq!(names(&format!("{text}{rest}")), ["g"]);
        assert_eq!(names(&format!("#define while if{rest}")), [""; 0]);
        assert_eq!(names(&format!("#line 7 \"y.y\"{rest}")), [""; 0]);
        assert_eq!(
            names(&format!(
                "void f(int x) {{\n  h();\n#line 1\n  h(); }}{rest}"
            )),
            ["g"]
        );
    }

    #[test]
    fn types_inside_of_functions_are_no_statements() {
        assert_eq!(
            names("void f(void) { union { int x; } a; struct s { int y; } b; h(); }"),
            ["f"]
        );
    }

    #[test]
    fn assembler_that_jumps_nowhere_is_an_expression() {
        assert_eq!(
            names("void f(void) { __asm__ volatile(\"nop\" ::: \"memory\"); h(); }"),
            ["f"]
        );
    }

    /// A function, and the block of a place of it.
    fn only(text: &str) -> SourceFunction {
        let mut found = functions(text);
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    fn successors(function: &SourceFunction, block: u32) -> usize {
        let edges = function.graph.edges.iter();
        let from = edges.filter(|it| it.from == Node::Block(BlockId(block)));
        from.count()
    }

    #[test]
    fn jumps_inside_of_macros_are_followed() {
        let f = only(
            "#define TRY(x) if (x) \\\n  goto out\nvoid f(int x)\n{\n  g();\n  TRY(x);\n  g();\n\
             \x20 TRY(g(1));\nout:\n  g();\n}\n",
        );
        let block = |line| f.block_at(line, 3).unwrap();
        assert_eq!(block(5), block(6));
        assert_ne!(block(6), block(7));
        assert_ne!(block(7), block(10));
        assert_eq!(successors(&f, block(6)), 2);
        // Of a place in several blocks nothing can be said.
        assert_eq!(f.vague, [(6, 3), (8, 3)]);
    }

    #[test]
    fn all_that_comes_out_of_a_macro_is_where_it_is_used() {
        let f = only(
            "#define EACH(i, n, what) for (int i = 0; i < n; i++) { what; }\nvoid f(int x) {\n\
             \x20 EACH(i, x,\n    g(i))\n  g(x);\n}\n",
        );
        let lines: Vec<u32> = f.blocks.iter().flat_map(|it| it.lines.clone()).collect();
        let on = |line: u32| lines.iter().filter(|it| **it == line).count();
        // The line of a macro begins once, however often what is in it does.
        assert_eq!((on(3), on(4), on(5)), (1, 0, 1), "{lines:?}");
        assert!(f.blocks[0].lines.contains(&3));
        assert_eq!(f.vague, [(3, 3)]);
        assert_eq!(f.block_at(3, 3), Some(0));
    }

    #[test]
    fn a_loop_in_a_macro_begins_where_control_comes_to_it() {
        let f = only(
            "#define WAIT while (busy()) h()\nvoid f(int x) {\n  if (x)\n    return;\n  WAIT;\n\
             \x20 g(x);\n}\n",
        );
        let begun: Vec<usize> = (0..f.blocks.len())
            .filter(|it| f.blocks[*it].lines.contains(&5))
            .collect();
        let [block] = begun[..] else {
            panic!("{begun:?}")
        };
        assert_ne!(block, 0);
        let edges = f.graph.edges.iter();
        let into = edges.filter(|it| it.to == Node::Block(BlockId(block as u32)));
        assert_eq!(into.count(), 1);
    }

    #[test]
    fn a_macro_with_one_block_in_it_tells_of_that() {
        let f = only(
            "#define SWAP(a, b) do { int t = a; a = b; b = t; } while (0)\n#define GO h(1); h(2)\n\
             #define LIKELY(x) __builtin_expect(!!(x), 1)\nvoid f(int x, int y) {\n  SWAP(x, y);\n\
             \x20 GO;\n  if (LIKELY(x))\n    if (LIKELY(x && y)) {\n      GO;\n    }\n  assert(x || y);\n}\n",
        );
        assert_eq!(f.vague, [(8, 9), (11, 3)]);
    }
}
