//! Counts in the formats of other tools: one file a format.
//!
//! [`write()`] gives the bytes, and says in notes what the format had no room for. Whoever calls
//! hands over what only files know (source texts) and what only a decoder knows (instructions).

mod bolt;
mod callgrind;
mod cobertura;
mod code;
mod coverage;
mod drcov;
mod exclusions;
mod flat;
mod folded;
mod icon_files;
mod json;
mod lcov;
mod limit;
mod llvm_sample;
mod parquet;
pub mod pprof;
mod tables;
mod time;
mod zprof;

pub use flat::{FlatMaterial, FlatRun};
pub use icon_files::{IconFile, icon_files};
pub use json::SCHEMA as JSON_SCHEMA;
pub use parquet::FlatTable;
pub use tables::tables;
pub use time::{TimeMaterial, has_time, write_time};

use crate::callees::{FindPointers, FindTransfers};
use crate::exact_calls::ExactCalls;
use crate::only::Only;
use crate::own::Own;
use crate::report::{Decode, Request};
use crate::values::{Tallied, tallied};
use crate::{Error, RunSummary, Unit};
use headcount_model::{
    CallCosts, CodeSymbol, Counted, InlineFrame, LinkAddr, Module, Samples, Span, ValueCounts,
};
use limit::Limit;
use std::rc::Rc;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tracefiles of lcov, for `genhtml`, Codecov, Coveralls and editors.
    Lcov,
    /// XML of Cobertura, for GitLab, Jenkins and Azure.
    Cobertura,
    /// Profiles of callgrind, for KCachegrind.
    Callgrind,
    /// Profiles of pprof.
    Pprof,
    /// Folded stacks, for flame graphs.
    Folded,
    /// Branches, for BOLT.
    Bolt,
    /// Sample profiles of LLVM, for clang.
    LlvmSample,
    /// Blocks that ran, for tools of reverse engineers.
    Drcov,
    /// Blocks or lines as zprof wrote them, for `sort` and editors.
    Zprof,
    /// Everything, for programs.
    Json,
    /// Samples for the Firefox Profiler.
    Firefox,
}

/// What an export is made of.
pub struct Material<'a> {
    /// The counts.
    pub counted: &'a [Counted],
    /// The runs that they were counted in.
    pub runs: &'a [RunSummary],
    /// What makes them uncertain, in sentences.
    pub notes: &'a [String],
    /// What calls cost, of those runs that were asked for it.
    pub calls: &'a [CallCosts],
    /// What was found by value, of those runs that were asked for it.
    pub values: &'a [ValueCounts],
    /// How many runs the counts are sums of, if none of these is there only in part; else 0.
    pub whole_runs: usize,
    /// What to export.
    pub only: &'a Only,
    /// What is the user's own.
    pub own: &'a Own,
    /// Whether names are shown as the programmer wrote them, where the format does not care.
    pub demangle: bool,
    /// Whether ways into failed checks are branches, too.
    pub with_checks: bool,
    /// The largest count to write.
    pub max_count: Option<u64>,
    /// Finds a source file.
    pub source: FindSource<'a>,
    /// Knows the instructions.
    pub decode: Decode<'a>,
    /// Knows their lengths.
    pub lengths: &'a dyn Fn(&Span) -> Vec<u8>,
    /// Knows the calls and jumps among them.
    pub transfers: FindTransfers<'a>,
    /// Knows what pointers lead to.
    pub pointers: FindPointers<'a>,
    /// Knows the link address of a module's first byte.
    pub base: &'a dyn Fn(&Module) -> u64,
    /// Knows the symbols of a module's code, by address; or says why not.
    pub symbols: FindSymbols<'a>,
    /// Knows, for each address, which functions it belongs to; or says why not.
    pub chains: FindChains<'a>,
}

/// Finds the symbols of a module's code, by address.
pub type FindSymbols<'a> = &'a dyn Fn(&Module) -> Result<Vec<CodeSymbol>, String>;

/// Finds, for each address, the functions that it belongs to. The addresses are sorted.
pub type FindChains<'a> = &'a dyn Fn(&Module, &[LinkAddr]) -> Result<Vec<Chain>, String>;

/// The functions that an instruction belongs to, each inlined into the one before.
pub type Chain = Vec<InlineFrame>;

/// Finds a source file.
pub type FindSource<'a> = &'a dyn Fn(&str) -> Option<Source>;

/// A source file that was found.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is.
    pub path: String,
    /// What is in it.
    pub lines: Rc<Vec<String>>,
}

/// An export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// What goes into the file.
    pub bytes: Vec<u8>,
    /// What the file does not say, in sentences.
    pub notes: Vec<String>,
}

/// Writes counts in a format of another tool.
pub fn write(format: Format, material: &Material<'_>) -> Result<Exported, Error> {
    let limit = Limit::new(material.max_count);
    let mut exported = match format {
        Format::Lcov => lcov::write(material, &limit)?,
        Format::Cobertura => cobertura::write(material, &limit)?,
        Format::Callgrind => callgrind::write(material, &limit)?,
        Format::Pprof | Format::Folded if material.has_stacks() => stacks(format, material)?,
        Format::Pprof => pprof::write(material, &limit)?,
        Format::Folded => folded::write(material, &limit)?,
        Format::Bolt => bolt::write(material, &limit)?,
        Format::LlvmSample => llvm_sample::write(material, &limit)?,
        Format::Drcov => drcov::write(material, &limit)?,
        Format::Zprof => zprof::write(material, &limit)?,
        Format::Json => json::write(material, &limit)?,
        Format::Firefox => return Err(Error::NoCounts),
    };
    exported.notes.extend(limit.note());
    Ok(exported)
}

impl Material<'_> {
    /// What was found by value, as far as it is wanted.
    fn tallied(&self) -> Result<Tallied, Error> {
        let request = Request {
            only: self.only.clone(),
            demangle: self.demangle,
            values: self.values,
            whole_runs: self.whole_runs,
            ..Request::all(Unit::Value, self.decode)
        };
        tallied(self.counted, &request)
    }

    /// Whether all of it can be told with the calls that led there.
    fn has_stacks(&self) -> bool {
        !self.calls.is_empty() && self.only.names_nothing() && self.max_count.is_none()
    }
}

/// What was executed in every calling context.
fn stacks(format: Format, material: &Material<'_>) -> Result<Exported, Error> {
    let exact = ExactCalls::new(material.counted, material.calls);
    let stacks = exact.map(|it| it.stacks(material.counted, material.transfers));
    let stacks = stacks.unwrap_or_default();
    let samples: Vec<&Samples> = stacks.iter().collect();
    let material = TimeMaterial {
        samples: &samples,
        command: &[],
        demangle: material.demangle,
        is_of_instructions: true,
    };
    write_time(format, &material)
}

/// The module, where a format is about one alone.
fn only_module<'a>(material: &Material<'a>) -> Result<&'a Counted, Error> {
    match material.counted {
        [one] => Ok(one),
        several => Err(Error::OneModule {
            modules: several.iter().map(|it| it.module.path.clone()).collect(),
        }),
    }
}

/// Why a module cannot be exported.
fn unfit(module: &Counted, why: String) -> Error {
    Error::Unfit {
        path: module.module.path.clone(),
        why,
    }
}

/// `1 line was`, `7 lines were`.
fn several(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one} was"),
        many => format!("{} {one}s were", crate::thousands(many as u64)),
    }
}
