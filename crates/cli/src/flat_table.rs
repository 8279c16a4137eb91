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
            progress::during("exporting", fill)?;
            unmet.check()
        })
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
            source_flows::follow(&mut loaded, &sources, |_| true);
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
        unmet.narrow(self, &loaded, &only, &said);
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

/// Names, each with a sentence, that nothing has in any of the runs.
#[derive(Default)]
struct Nowhere(Option<BTreeMap<String, String>>);

impl Nowhere {
    /// Takes those that nothing has in one more run.
    fn narrow<'a>(&mut self, here: impl Iterator<Item = &'a str>, why: impl Fn(&str) -> String) {
        let is_open = |name: &&str| self.0.as_ref().is_none_or(|it| it.contains_key(*name));
        let here = here.filter(is_open);
        self.0 = Some(here.map(|it| (it.to_owned(), why(it))).collect());
    }

    fn sentences(&self) -> impl Iterator<Item = &String> {
        self.0.iter().flat_map(BTreeMap::values)
    }
}

/// The names that the user typed and that nothing has in any of the runs.
#[derive(Default)]
struct Unmet {
    /// Those that are wanted.
    missing: Nowhere,
    modules: Nowhere,
    /// And others.
    unmet: Nowhere,
}

impl Unmet {
    /// Takes what nothing has in one more run.
    fn narrow(&mut self, wanted: &Wanted<'_>, loaded: &Loaded, only: &Only, own: &Only) {
        let counted = &loaded.counted;
        let is_missing = |name: &&str| {
            let mut refusals = counted.iter().flat_map(|it| &it.module.refusals);
            !refusals.any(|it| it.subject == *name)
        };
        let missing = only.missing().iter().map(String::as_str);
        self.missing
            .narrow(missing.filter(is_missing), |it| nothing_called(counted, it));
        let unmet = only.unmet().iter().chain(own.unmet());
        let unmet = unmet.map(String::as_str);
        self.unmet.narrow(unmet, |it| nothing_called(counted, it));
        let is_called = |name: &&str| {
            let pattern = Pattern::new(name);
            let mut modules = counted.iter();
            modules.any(|it| pattern.matches_module(&it.module.path))
        };
        let module = wanted.args.filter.module.as_deref();
        let module = module.filter(|it| !is_called(it));
        self.modules
            .narrow(module.into_iter(), |it| no_module_called(counted, it));
    }

    /// Fails for what is wanted, and says the rest.
    fn check(&self) -> anyhow::Result<()> {
        let mut missing = self.missing.sentences().chain(self.modules.sentences());
        match missing.next() {
            Some(sentence) => bail!("{sentence}"),
            None => self.unmet.sentences().for_each(talk::say),
        }
        Ok(())
    }
}
