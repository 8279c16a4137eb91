//! Places in the code that have counts of their own: calls and branches.

use super::files::Files;
use super::functions::{Functions, Shown};
use super::{Page, may_have_run, value};
use crate::branches::last_line;
use crate::callees::{Callee, Callees};
use crate::checks::Checks;
use crate::count::CountedBlock;
use headcount_model::LineRun;
use serde_json::{Value, json};

/// Every call in a function that ran, and every jump to another function: caller, file, line, address,
/// callee, count, and 1 if it is a jump. The callee is its place; or `=` and its name, if it was not
/// counted; or its address in hex; or `*` where only a run knows.
pub fn calls(
    page: &Page<'_>,
    callees: &Callees<'_>,
    functions: &Functions<'_>,
    files: &Files,
) -> Value {
    let mut all = Vec::new();
    for (place, it) in ran(functions) {
        let blocks: Vec<CountedBlock<'_>> = it.named.blocks().collect();
        for site in callees.sites(it.module, &it.named) {
            let (file, line) = line_of(it, line_at(&blocks[site.block], site.index), files);
            all.push(json!([
                place,
                file,
                line,
                format!("{:x}", site.address.0),
                callee(page, functions, &site.callee),
                value::count(site.count),
                u8::from(!site.is_call),
            ]));
        }
    }
    Value::from(all)
}

fn callee(page: &Page<'_>, functions: &Functions<'_>, callee: &Callee) -> Value {
    match callee {
        Callee::Function((module, index)) => {
            let function = &page.counted[*module].module.functions[*index];
            match functions.at(*module, function.address) {
                Some(place) => Value::from(place),
                None => named(page, &function.name),
            }
        }
        Callee::Named(name) => named(page, name),
        Callee::Address(address) => Value::from(format!("{:x}", address.0)),
        Callee::Unknown => Value::from("*"),
    }
}

fn named(page: &Page<'_>, name: &str) -> Value {
    let shown = match page.demangle {
        true => crate::demangle(name),
        false => name.into(),
    };
    Value::from(format!("={}", crate::visible(&shown)))
}

/// Every branch in a function that ran: function, file, line, address of its block, number of its
/// block, and for each way its kind and its count.
pub fn branches(checks: &Checks<'_>, functions: &Functions<'_>, files: &Files) -> Value {
    let mut all = Vec::new();
    for (place, it) in ran(functions) {
        for branch in checks.branches(it.module, &it.named) {
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
