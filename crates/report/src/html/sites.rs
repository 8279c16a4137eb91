//! Places in the code that have counts of their own: calls and branches.

use super::files::Files;
use super::functions::{Functions, Shown};
use super::{Page, may_have_run, value};
use crate::branches::{branches as branches_of, last_line};
use crate::count::CountedBlock;
use headcount_model::{LineRun, LinkAddr};
use serde_json::{Value, json};

/// Every call in a function that ran: caller, file, line, address, callee (its place, or its
/// address in hex, or `*` where only a run knows), count.
pub fn calls(page: &Page<'_>, functions: &Functions<'_>, files: &Files) -> Value {
    let mut all = Vec::new();
    for (place, it) in ran(functions) {
        for block in it.named.blocks() {
            let mut before = 0;
            for span in &block.block.code {
                for (index, address, target) in (page.calls)(span) {
                    let number = before + index;
                    let (file, line) = line_of(it, line_at(&block, number), files);
                    all.push(json!([
                        place,
                        file,
                        line,
                        format!("{:x}", address.0),
                        callee(functions, it.module, target),
                        value::count(block.at(number)),
                    ]));
                }
                before += (page.decode)(span).len() as u32;
            }
        }
    }
    Value::from(all)
}

fn callee(functions: &Functions<'_>, module: usize, target: Option<LinkAddr>) -> Value {
    match target {
        None => Value::from("*"),
        Some(target) => match functions.at(module, target) {
            Some(place) => Value::from(place),
            None => Value::from(format!("{:x}", target.0)),
        },
    }
}

/// Every branch in a function that ran: function, file, line, address of its block, number of its
/// block, and for each way its kind and its count.
pub fn branches(functions: &Functions<'_>, files: &Files) -> Value {
    let mut all = Vec::new();
    for (place, it) in ran(functions) {
        for branch in branches_of(it.named.function, it.named.counts) {
            let Some(block) = it.named.function.blocks.get(branch.block as usize) else {
                continue;
            };
            let (file, line) = line_of(it, last_line(block), files);
            let ways = branch.ways.iter();
            let ways: Vec<Value> = ways
                .flat_map(|way| [Value::from(way.kind.name()), value::count(way.count)])
                .collect();
            all.push(json!([
                place,
                file,
                line,
                format!("{:x}", block.address.0),
                branch.block,
                ways,
            ]));
        }
    }
    Value::from(all)
}

fn ran<'f, 'a>(functions: &'f Functions<'a>) -> impl Iterator<Item = (usize, &'f Shown<'a>)> {
    let all = functions.list.iter().enumerate();
    all.filter(|(_, it)| may_have_run(it.tally.executed))
}

/// The line that an instruction belongs to.
fn line_at<'a>(block: &CountedBlock<'a>, instruction: u32) -> Option<&'a LineRun> {
    let place = block
        .line_ranges()
        .iter()
        .position(|it| it.contains(&instruction))?;
    block.block.lines.get(place).filter(|run| run.line > 0)
}

fn line_of(it: &Shown<'_>, run: Option<&LineRun>, files: &Files) -> (i64, u32) {
    let place = run.and_then(|run| {
        let file = files.place(it.named.file(run.file)?)?;
        Some((file as i64, run.line))
    });
    place.unwrap_or((-1, 0))
}
