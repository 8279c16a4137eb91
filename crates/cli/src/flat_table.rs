//! Counts of many runs as one flat table: each run is read on its own, and adds its rows.

use crate::args::Export;
use crate::module_files::Files;
use crate::sources::Sources;
use crate::verbs;
use crate::{output, progress, source_flows, talk};
use anyhow::{Context, bail};
use headcount_model::Event;
use headcount_profile::{Loaded, Profile, RunInfo, RunSelection};
use headcount_report::export::{FlatMaterial, FlatRun, FlatTable};
use headcount_report::{
    Filter, Only, Own, Pattern, Unit, coverage_notes, no_module_called, nothing_called,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// What goes into the table.
pub struct Wanted<'a> {
    pub args: &'a Export,
    pub units: Vec<Unit>,
    pub events: Vec<Event>,
}

impl Wanted<'_> {
    /// Writes the table to the file the user named, or to standard output.
    pub fn write(&self, profile: &Profile) -> anyhow::Result<()> {
        let to = self.args.output.as_deref();
        output::spare_profile(to)?;
        let runs = profile.counted_runs(&self.args.runs.get())?;
        if runs.is_empty() {
            bail!("{}", verbs::NO_COUNTS);
        }
        let mut unmet = Unmet::default();
        output::write_made(to, |path| {
            let fill = || self.fill(profile, &runs, path, &mut unmet);
            progress::during("exporting", fill)
        })?;
        unmet.say();
        Ok(())
    }

    fn fill(
        &self,
        profile: &Profile,
        runs: &[i64],
        path: &Path,
        unmet: &mut Unmet,
    ) -> anyhow::Result<()> {
        // The file has another name until it is whole.
        let shown = self.args.output.as_deref();
        let shown = shown.map_or("standard output".into(), |it| it.display().to_string());
        let unwritten = || format!("{shown}: cannot be written");
        let file = File::options().write(true).open(path);
        let file = file.with_context(unwritten)?;
        let mut table = FlatTable::new(BufWriter::new(file)).with_context(unwritten)?;
        let files = Files::default();
        for run in runs {
            let loaded = profile.load(&RunSelection::These(vec![*run]))?;
            self.add(loaded, &files, &mut table, unmet)
                .with_context(unwritten)?;
        }
        table.finish().with_context(unwritten)
    }

    /// Adds the rows of one run.
    fn add(
        &self,
        mut loaded: Loaded,
        files: &Files,
        table: &mut FlatTable,
        unmet: &mut Unmet,
    ) -> anyhow::Result<()> {
        let Some(run) = loaded.runs.first().cloned() else {
            return Ok(());
        };
        if self.units.contains(&Unit::Line) {
            let profile = self.args.profile.file.as_ref();
            let profile = profile.or(self.args.profile.input.as_ref());
            let sources = Sources::new(&loaded, &self.args.source, profile.map(|it| it.as_path()));
            source_flows::follow(&mut loaded, &sources);
        }
        let demangle = !self.args.names.no_demangle;
        let counted = [loaded.counted.as_slice()];
        let here = std::env::current_dir().unwrap_or_default();
        let here = here.to_string_lossy();
        let seen_from_here = |filter| {
            Only::narrowed(
                Filter {
                    here: &here,
                    ..filter
                },
                &counted,
                demangle,
            )
        };
        let only = seen_from_here(self.args.filter.get());
        let said = seen_from_here(Filter {
            only: &self.args.own.own,
            ..Filter::default()
        });
        unmet.narrow(self, &loaded, &[&only, &said]);
        let mut notes = verbs::notes(&loaded);
        notes.extend(coverage_notes(&loaded.counted, demangle));
        table.add(&FlatMaterial {
            run: facts(run),
            counted: &loaded.counted,
            notes: &notes,
            units: &self.units,
            only: &only,
            own: &Own::new(&loaded.counted, said),
            demangle,
            events: &self.events,
            find_events: &verbs::events,
            values: &loaded.values,
            decode: &verbs::decode,
            transfers: &headcount_x86::transfers,
            pointers: &|module| files.pointers(module),
        })?;
        Ok(())
    }
}

fn facts(run: RunInfo) -> FlatRun {
    FlatRun {
        number: run.id,
        key: run.key,
        started: run.started,
        ended: run.ended,
        host: run.host,
        cpu: run.cpu,
        command: run.command,
        status: run.status,
        batch: run.batch,
        phase: run.phase,
    }
}

/// The names that the user typed and that nothing has in any of the runs, each with a sentence.
#[derive(Default)]
struct Unmet(Option<BTreeMap<String, String>>);

impl Unmet {
    /// Takes what nothing has in one more run.
    fn narrow(&mut self, wanted: &Wanted<'_>, loaded: &Loaded, texts: &[&Only]) {
        let is_open = |name: &&str| self.0.as_ref().is_none_or(|it| it.contains_key(*name));
        let counted = &loaded.counted;
        let names = texts.iter().flat_map(|it| it.unmet());
        let names = names.map(String::as_str).filter(is_open);
        let mut here: BTreeMap<String, String> = names
            .map(|name| (name.to_owned(), nothing_called(counted, name)))
            .collect();
        let is_called = |name: &&str| {
            let pattern = Pattern::new(name);
            let mut modules = counted.iter();
            modules.any(|it| pattern.matches_module(&it.module.path))
        };
        let module = wanted.args.filter.module.as_deref().filter(is_open);
        if let Some(module) = module.filter(|it| !is_called(it)) {
            here.insert(module.to_owned(), no_module_called(counted, module));
        }
        self.0 = Some(here);
    }

    fn say(&self) {
        self.0.iter().flat_map(BTreeMap::values).for_each(talk::say);
    }
}
