//! How control moves through the functions of a text that no preprocessor has seen, for those who
//! have counts of the code that was made of it.
//!
//! Nothing is put into the text here, and what cannot be read is left out: whoever asks has another
//! way, if a worse one. Calls are taken to come back; counts say whether they did.

use headcount_model::{FlowGraph, SourceBlock, SourceFunction};

use crate::conditionals::{Resolved, resolve};
use crate::definitions::{Definitions, Hides};
use crate::flow_graph::{self, Manner, Unit};
use crate::lex::{Kind, Lexed, lex};
use crate::names::Names;
use crate::outline::outline;
use crate::parser::{NONE, Parser, partners};
use crate::words::Word;

/// The functions of a text that can be followed. `has_code` tells of its lines.
pub fn source_functions(
    text: &[u8],
    definitions: &Definitions,
    has_code: &dyn Fn(u32) -> bool,
) -> Vec<SourceFunction> {
    if text.len() >= u32::MAX as usize {
        return Vec::new();
    }
    let resolved = resolve(text, has_code);
    let lexed = lex(&resolved.text, "");
    let Ok(partner) = partners(&lexed) else {
        return Vec::new();
    };
    let reading = Reading {
        resolved: &resolved,
        lexed: &lexed,
        partner: &partner,
        definitions,
    };
    reading.functions()
}

struct Reading<'t> {
    resolved: &'t Resolved,
    lexed: &'t Lexed,
    partner: &'t [u32],
    definitions: &'t Definitions,
}

impl<'t> Reading<'t> {
    fn functions(&self) -> Vec<SourceFunction> {
        let text = &self.resolved.text;
        let nothing = Names::default();
        let mut parser = Parser::new(text, &self.lexed.tokens, self.partner, &nothing);
        if let Ok(outline) = outline(text, self.lexed, self.partner) {
            parser.types = outline.types;
        }
        for name in self.definitions.types() {
            parser.types.declare(name, true);
        }
        let mut found = Vec::new();
        for (name, open) in self.bodies() {
            if !self.is_clear(name, open) {
                continue;
            }
            parser.at = open;
            parser.depth = 0;
            let read = parser.function(name);
            parser.types.leave_all();
            let manner = Manner {
                calls_return: true,
                ..Manner::default()
            };
            let units =
                read.and_then(|tree| flow_graph::units(&tree, text, &self.lexed.tokens, manner));
            // Functions inside of functions share too much.
            if let Ok([unit]) = units.as_deref() {
                found.extend(self.flow(unit, self.partner[open as usize]));
            }
        }
        found
    }

    fn kind(&self, at: u32) -> Kind {
        let token = self.lexed.tokens.get(at as usize);
        token.map_or(Kind::Stray, |it| it.kind)
    }

    fn bytes(&self, at: u32) -> &'t [u8] {
        let token = &self.lexed.tokens[at as usize];
        &self.resolved.text[token.start as usize..token.end as usize]
    }

    /// Line and column of a token.
    fn place(&self, at: u32) -> (u32, u32) {
        let token = &self.lexed.tokens[at as usize];
        let at = self.lexed.lines.position(token.start);
        (at.line, at.column)
    }

    /// The functions: the token of the name, and the brace. What is before a name may be anything,
    /// because macros may stand there.
    fn bodies(&self) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut at = 0;
        let mut begin = 0;
        while (at as usize) < self.lexed.tokens.len() {
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
        let lines = self.place(name).0..self.place(close).0 + 1;
        let is_outside = |it: &std::ops::Range<u32>| it.end <= lines.start || lines.end <= it.start;
        let is_label_address =
            |at: u32| self.kind(at) == Kind::AndAnd && !self.is_operand_before(at);
        self.resolved.unclear.iter().all(is_outside)
            && (open..close).all(|at| match self.kind(at) {
                Kind::Name => self.definitions.hides(self.bytes(at)) < Hides::Ways,
                Kind::Word(Word::Asm) => false,
                Kind::AndAnd => !is_label_address(at),
                _ => true,
            })
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

    fn flow(&self, unit: &Unit, close: u32) -> Option<SourceFunction> {
        let lines = |tokens: &[u32]| tokens.iter().map(|at| self.place(*at).0).collect();
        let blocks = unit.blocks.iter().map(|it| SourceBlock {
            lines: lines(&it.statements),
        });
        let first = unit.name_token;
        let is_vague = |at: &u32| {
            self.kind(*at) == Kind::Name && self.definitions.hides(self.bytes(*at)) == Hides::Parts
        };
        let mut function = SourceFunction {
            name: unit.name.clone(),
            line: self.place(first).0,
            last_line: self.place(close).0,
            blocks: blocks.collect(),
            graph: FlowGraph {
                blocks: unit.graph.blocks,
                edges: unit.graph.edges.clone(),
            },
            places: self.places(unit, close),
            vague: (first..close)
                .filter(is_vague)
                .map(|at| self.place(at))
                .collect(),
        };
        // Control that leaves comes to the end of the function, whatever way it goes.
        function.blocks.first_mut()?.lines.push(function.last_line);
        Some(function)
    }

    /// Which block each token belongs to.
    fn places(&self, unit: &Unit, close: u32) -> Vec<((u32, u32), u32)> {
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
        let mut places: Vec<((u32, u32), u32)> = Vec::new();
        for (at, block) in (first..).zip(owner) {
            if places.last().is_none_or(|(_, last)| *last != block) {
                places.push((self.place(at), block));
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(text: &str) -> Vec<SourceFunction> {
        let mut definitions = Definitions::default();
        definitions.read(text.as_bytes());
        definitions.settle();
        source_functions(text.as_bytes(), &definitions, &|_| true)
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
    }

    #[test]
    fn a_function_with_ways_that_nobody_sees_is_left_out() {
        let text = "#define TRY(x) if (x) return\nvoid f(int x) { TRY(x); g(); }\n\
                    void h(int x) { g(); }\n";
        let names: Vec<_> = functions(text).into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["h"]);
    }
}
