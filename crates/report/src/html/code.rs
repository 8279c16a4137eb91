//! The instructions of functions, with their counts.

use super::files::Files;
use super::functions::{Functions, Shown};
use super::{Page, may_have_run, value};
use crate::count::{self, Count, CountedBlock};
use crate::listed::Listed;
use headcount_model::{FunctionEdge, LinkAddr, Span};
use serde_json::{Value, json};

/// About how many instructions are packed together: enough to pack well, few enough to unpack at
/// once.
const PIECE: u64 = 8000;

/// Packed functions.
#[derive(Default)]
pub struct Pieces {
    pub list: Vec<Value>,
    /// In which piece each function is, by its place.
    of_function: Vec<Option<usize>>,
}

impl Pieces {
    /// The piece a function is in, if its instructions are in the page.
    pub fn of(&self, function: usize) -> Option<usize> {
        self.of_function.get(function).copied().flatten()
    }
}

/// The functions that ran, and those whose source is shown. (Of all others there is nothing to
/// see: each of their instructions never ran.)
pub fn pieces(page: &Page<'_>, functions: &Functions<'_>, files: &Files) -> Pieces {
    let mut pieces = Pieces::default();
    let (mut piece, mut size) = (Vec::new(), 0);
    for (place, it) in functions.list.iter().enumerate() {
        if !is_shown(it, files) {
            pieces.of_function.push(None);
            continue;
        }
        pieces.of_function.push(Some(pieces.list.len()));
        piece.push(function(page, place, it, files));
        size += it.tally.instructions;
        if size >= PIECE {
            pieces.list.push(Value::from(std::mem::take(&mut piece)));
            size = 0;
        }
    }
    if !piece.is_empty() {
        pieces.list.push(Value::from(piece));
    }
    pieces
}

fn is_shown(it: &Shown<'_>, files: &Files) -> bool {
    let file = it.named.own_file().and_then(|file| files.place(file));
    let has_text = file.is_some_and(|file| files.list[file].has_text);
    may_have_run(it.tally.executed) || has_text
}

/// A function: its place, its blocks (address, counts, how many instructions, lines, lengths), its
/// edges, and the text of its instructions. What is alike stands together and packs well.
fn function(page: &Page<'_>, place: usize, it: &Shown<'_>, files: &Files) -> Value {
    let mut text = String::new();
    let mut blocks = Vec::new();
    let mut last_line = 0;
    let listed = Listed::new(&it.named, page.decode);
    for block in it.named.blocks() {
        let code = listed.instructions(block.block).into_iter();
        let (at, words): (Vec<LinkAddr>, Vec<String>) = code.unzip();
        blocks.push(json!([
            format!("{:x}", block.block.address.0),
            counts(&block),
            block.block.instructions,
            lines(it, &block, files, &mut last_line),
            lengths(&at, block.block.code.last()),
        ]));
        words.iter().for_each(|words| {
            text.push_str(&crate::visible(words));
            text.push('\n');
        });
    }
    json!([place, blocks, edges(it), text])
}

/// For each run of lines: file, how far it is from the line before, how many instructions.
fn lines(it: &Shown<'_>, block: &CountedBlock<'_>, files: &Files, last_line: &mut i64) -> Vec<i64> {
    let mut all = Vec::new();
    for run in &block.block.lines {
        let file = it.named.file(run.file).and_then(|file| files.place(file));
        let file = file.map_or(-1, |file| file as i64);
        let line = i64::from(run.line);
        all.extend([file, line - *last_line, run.instructions.into()]);
        *last_line = line;
    }
    all
}

fn edges(it: &Shown<'_>) -> Vec<Value> {
    let end = |end: Option<u32>| end.map_or(-1, i64::from);
    let edges = it.named.function.edges.iter();
    let edges = edges.zip(count::edges(it.named.counts));
    let edge = |(edge, count): (&FunctionEdge, Count)| {
        json!([
            end(edge.from),
            end(edge.to),
            edge.kind.name(),
            value::count(count)
        ])
    };
    edges.map(edge).collect()
}

/// The count of a block; where its instructions ran unequally often, how many ran how often.
fn counts(block: &CountedBlock<'_>) -> Value {
    match block.stretches(0..block.block.instructions).as_slice() {
        [] => value::count(block.count()),
        [(_, count)] => value::count(*count),
        many => {
            let pairs = many.iter();
            let pairs = pairs.flat_map(|(n, count)| [Value::from(*n), value::count(*count)]);
            Value::from(pairs.collect::<Vec<_>>())
        }
    }
}

/// How far each instruction is from the next, in bytes: one hexadecimal digit each, as none is
/// longer than 15; a list, where code is in pieces that lie apart.
fn lengths(at: &[LinkAddr], last: Option<&Span>) -> Value {
    let end = last.map_or(0, |span| {
        span.address.0.saturating_add(span.bytes.len() as u64)
    });
    let next = at.iter().skip(1).map(|it| it.0).chain([end]);
    let distance = |(it, next): (&LinkAddr, u64)| next.saturating_sub(it.0);
    let all: Vec<u64> = at.iter().zip(next).map(distance).collect();
    match all.iter().all(|it| *it < 16) {
        true => Value::from(all.iter().map(|it| format!("{it:x}")).collect::<String>()),
        false => Value::from(all),
    }
}
