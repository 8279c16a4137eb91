//! Samples for pprof: whole stacks, with inlined functions.

use super::super::Exported;
use super::super::pprof::{Function, Line, Sample, Tables, ValueType, packed};
use super::{Shown, TimeMaterial};
use crate::Error;
use headcount_model::Samples;
use std::collections::HashMap;

pub fn write(material: &TimeMaterial<'_>) -> Result<Exported, Error> {
    let mut tables = Tables::new();
    let [samples, count, cpu, nanoseconds] =
        ["samples", "count", "cpu", "nanoseconds"].map(|it| tables.string(it));
    let value = |r#type, unit| ValueType { r#type, unit };
    let time = value(cpu, nanoseconds);
    if material.is_of_instructions {
        let instructions = tables.string("instructions");
        tables.profile.sample_type = vec![value(instructions, count)];
        tables.profile.default_sample_type = instructions;
        let comment = tables.string("Exact counts by headcount, by calling context.");
        tables.profile.comment.push(comment);
    } else {
        tables.profile.sample_type = vec![value(samples, count), time];
        tables.profile.default_sample_type = cpu;
        tables.profile.period_type = Some(time);
    }
    let mut builder = Builder {
        tables,
        functions: HashMap::new(),
        locations: HashMap::new(),
    };
    for samples in material.samples {
        if !material.is_of_instructions {
            builder.tables.profile.period = fit(samples.interval)?;
        }
        builder.add(material, samples)?;
    }
    Ok(Exported {
        bytes: packed(&builder.tables.profile)?,
        notes: Vec::new(),
    })
}

fn fit(number: u64) -> Result<i64, Error> {
    i64::try_from(number).map_err(|_| Error::TooLarge)
}

struct Builder {
    tables: Tables,
    /// By function and file.
    functions: HashMap<(String, String), u64>,
    /// By mapping and address.
    locations: HashMap<(u64, u64), u64>,
}

impl Builder {
    fn add(&mut self, material: &TimeMaterial<'_>, samples: &Samples) -> Result<(), Error> {
        for (stack, count) in samples.threads.iter().flat_map(|it| &it.samples) {
            let (frames, _) = material.stack(samples, *stack);
            let mut location_id = Vec::new();
            // Frames of one site, inlined ones first, are one location.
            for at_site in frames.chunk_by(|a, b| std::ptr::eq(a.site, b.site)) {
                location_id.push(self.location(samples, at_site));
            }
            let time = count.saturating_mul(samples.interval);
            let mut value = vec![fit(*count)?, fit(time)?];
            if material.is_of_instructions {
                value.truncate(1);
            }
            self.tables
                .profile
                .sample
                .push(Sample { location_id, value });
        }
        Ok(())
    }

    fn location(&mut self, samples: &Samples, frames: &[Shown<'_>]) -> u64 {
        let Some(site) = frames.first().map(|it| it.site) else {
            return 0;
        };
        let module = site.module.and_then(|it| samples.modules.get(it as usize));
        let mapping = module.map_or(0, |it| self.tables.mapping(&it.path, &it.file_id));
        let key = (mapping, site.address.0);
        if let Some(known) = self.locations.get(&key) {
            return *known;
        }
        let lines = frames.iter().map(|it| Line {
            function_id: self.function(it),
            line: it.line.into(),
        });
        let lines = lines.collect();
        let id = self.tables.location(mapping, site.address, lines);
        self.locations.insert(key, id);
        id
    }

    fn function(&mut self, frame: &Shown<'_>) -> u64 {
        let key = (frame.linkage_name.to_owned(), frame.file.to_owned());
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(key, id);
        let function = Function {
            id,
            name: self.tables.string(&frame.name),
            system_name: self.tables.string(frame.linkage_name),
            filename: self.tables.string(frame.file),
            start_line: 0,
        };
        self.tables.profile.function.push(function);
        id
    }
}
