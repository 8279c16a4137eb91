//! Folded stacks of samples: `thread;main;work count`, for any tool that draws flame graphs.

use super::super::Exported;
use super::{CUT, TimeMaterial, thread_name};
use crate::Error;
use std::collections::BTreeMap;

pub fn write(material: &TimeMaterial<'_>) -> Result<Exported, Error> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for samples in material.samples {
        for thread in &samples.threads {
            for (stack, count) in &thread.samples {
                let (frames, is_cut) = material.stack(samples, *stack);
                let mut names = match material.is_of_instructions {
                    true => Vec::new(),
                    false => vec![thread_name(thread)],
                };
                names.extend(is_cut.then(|| CUT.to_owned()));
                names.extend(frames.into_iter().rev().map(|it| it.name));
                // A name that does not look like several.
                let names: Vec<String> = names.iter().map(|it| it.replace(';', ":")).collect();
                let sum = sums.entry(names.join(";")).or_default();
                *sum = sum.checked_add(*count).ok_or(Error::TooLarge)?;
            }
        }
    }
    let lines = sums
        .iter()
        .map(|(stack, count)| format!("{stack} {count}\n"));
    Ok(Exported {
        bytes: lines.collect::<String>().into_bytes(),
        notes: Vec::new(),
    })
}
