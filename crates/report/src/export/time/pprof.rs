//! Samples for pprof: whole stacks, with inlined functions.

use super::super::Exported;
use super::super::pprof::{Function, Line, Location, Mapping, Profile, Sample, ValueType, packed};
use super::{Shown, TimeMaterial};
use crate::Error;
use headcount_model::Samples;
use std::collections::HashMap;

pub fn write(material: &TimeMaterial<'_>) -> Result<Exported, Error> {
    let mut builder = Builder::default();
    builder.string(""); // number 0, always
    let nanoseconds = builder.string("nanoseconds");
    let (samples, count, cpu) = (
        builder.string("samples"),
        builder.string("count"),
        builder.string("cpu"),
    );
    let time = ValueType {
        r#type: cpu,
        unit: nanoseconds,
    };
    builder.profile.sample_type = vec![
        ValueType {
            r#type: samples,
            unit: count,
        },
        time,
    ];
    builder.profile.default_sample_type = cpu;
    builder.profile.period_type = Some(time);
    for samples in material.samples {
        builder.profile.period = fit(samples.interval)?;
        builder.add(material, samples)?;
    }
    Ok(Exported {
        bytes: packed(&builder.profile)?,
        notes: Vec::new(),
    })
}

fn fit(number: u64) -> Result<i64, Error> {
    i64::try_from(number).map_err(|_| Error::TooLarge)
}

#[derive(Default)]
struct Builder {
    profile: Profile,
    strings: HashMap<String, i64>,
    mappings: HashMap<(String, String), u64>,
    /// By function and file.
    functions: HashMap<(String, String), u64>,
    /// By mapping and address.
    locations: HashMap<(u64, u64), u64>,
}

impl Builder {
    fn string(&mut self, text: &str) -> i64 {
        let table = &mut self.profile.string_table;
        let number = table.len() as i64;
        *self.strings.entry(text.to_owned()).or_insert_with(|| {
            table.push(text.to_owned());
            number
        })
    }

    fn add(&mut self, material: &TimeMaterial<'_>, samples: &Samples) -> Result<(), Error> {
        for (stack, count) in samples.threads.iter().flat_map(|it| &it.samples) {
            let (frames, _) = material.stack(samples, *stack);
            let mut location_id = Vec::new();
            // Frames of one site, inlined ones first, are one location.
            for at_site in frames.chunk_by(|a, b| std::ptr::eq(a.site, b.site)) {
                location_id.push(self.location(samples, at_site));
            }
            let time = count.saturating_mul(samples.interval);
            self.profile.sample.push(Sample {
                location_id,
                value: vec![fit(*count)?, fit(time)?],
            });
        }
        Ok(())
    }

    fn location(&mut self, samples: &Samples, frames: &[Shown<'_>]) -> u64 {
        let Some(site) = frames.first().map(|it| it.site) else {
            return 0;
        };
        let mapping = match site.module {
            Some(module) => self.mapping(samples, module),
            None => 0,
        };
        let address = site.address.0;
        if let Some(known) = self.locations.get(&(mapping, address)) {
            return *known;
        }
        let line = frames
            .iter()
            .map(|it| Line {
                function_id: self.function(it),
                line: it.line.into(),
            })
            .collect();
        let id = self.profile.location.len() as u64 + 1;
        self.locations.insert((mapping, address), id);
        self.profile.location.push(Location {
            id,
            mapping_id: mapping,
            address,
            line,
        });
        if let Some(mapping) = self
            .profile
            .mapping
            .get_mut(mapping.wrapping_sub(1) as usize)
        {
            mapping.memory_start = mapping.memory_start.min(address);
            mapping.memory_limit = mapping.memory_limit.max(address.saturating_add(1));
        }
        id
    }

    fn mapping(&mut self, samples: &Samples, module: u32) -> u64 {
        let module = &samples.modules[module as usize];
        let key = (module.path.clone(), module.file_id.clone());
        if let Some(known) = self.mappings.get(&key) {
            return *known;
        }
        let id = self.mappings.len() as u64 + 1;
        let (filename, build_id) = (self.string(&key.0), self.string(&key.1));
        self.mappings.insert(key, id);
        self.profile.mapping.push(Mapping {
            id,
            memory_start: u64::MAX,
            filename,
            build_id,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            ..Mapping::default()
        });
        id
    }

    fn function(&mut self, frame: &Shown<'_>) -> u64 {
        let key = (frame.linkage_name.clone(), frame.file.clone());
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(key, id);
        let function = Function {
            id,
            name: self.string(&frame.name),
            system_name: self.string(&frame.linkage_name),
            filename: self.string(&frame.file),
            start_line: 0,
        };
        self.profile.function.push(function);
        id
    }
}
