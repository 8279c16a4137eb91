//! Folded stacks, for any tool that draws flame graphs: `module;function;file:line count`.
//!
//! Counts know no stacks, unless a run was asked what its calls cost. What is folded here is the program: its modules, functions and lines, with the
//! instructions executed in each.

use super::limit::Limit;
use super::{Exported, Material, code};
use crate::glob::base_name;
use crate::names::functions;
use crate::{Error, visible};
use std::collections::BTreeMap;

/// One line a line of source, or a function where there are no lines.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for module in material.counted {
        for named in functions(module, material.demangle) {
            if !material.only.wants(&named) {
                continue;
            }
            let place = [base_name(&named.module_path), &named.name]
                .map(frame)
                .join(";");
            for it in code::instructions(&named, material) {
                let Some(count @ 1..) = it.count.value() else {
                    continue;
                };
                let line = it
                    .line
                    .and_then(|(file, line)| Some((named.file(file)?, line)));
                let stack = match line {
                    Some((file, line)) => format!("{place};{}:{line}", frame(file)),
                    None => place.clone(),
                };
                let sum = sums.entry(stack).or_default();
                *sum = sum.checked_add(count).ok_or(Error::TooLarge)?;
            }
        }
    }
    let lines = sums.iter();
    let text: String = lines
        .map(|(stack, count)| format!("{stack} {}\n", limit.cut(*count)))
        .collect();
    Ok(Exported {
        bytes: text.into_bytes(),
        notes: Vec::new(),
    })
}

/// A name that does not look like several.
fn frame(name: &str) -> String {
    visible(name).replace(';', ":")
}
