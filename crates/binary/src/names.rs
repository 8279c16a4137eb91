//! What is this function called?

use crate::debug_info::DebugInfo;
use crate::functions::{Origin, Part};
use crate::image::Image;
use crate::plt::Stub;
use crate::sweep::Flow;
use crate::symbols::{Symbol, Symbols};

/// Everything that names functions.
pub struct Names<'a> {
    pub symbols: &'a Symbols,
    pub debug: &'a DebugInfo,
    pub stubs: &'a [Stub],
    pub headers: &'a [(u64, &'static str)],
}

/// What a function is called that nobody has named.
pub fn without_name(at: u64) -> String {
    format!("sub_{at:#x}")
}

impl Names<'_> {
    /// The linker's name of a function.
    pub fn of(&self, part: &Part) -> String {
        let at = part.range.start;
        if part.origin == Origin::Rest {
            return format!("code_{at:#x}");
        }
        if let Ok(index) = self
            .stubs
            .binary_search_by_key(&at, |stub| stub.range.start)
            && let Some(stub) = self.stubs.get(index)
        {
            return stub.name.clone();
        }
        let described = self.debug.subprogram(at);
        let described = described.and_then(|it| it.linkage_name.as_ref().or(it.name.as_ref()));
        let aliases = self.symbols.functions_at(at);
        // Of names that are as good, the one in the source.
        let best = aliases.first().map(Symbol::use_of_others);
        let is_best = |it: &Symbol| Some(it.use_of_others()) == best;
        if let Some(name) = described
            && (aliases.is_empty() || aliases.iter().any(|it| is_best(it) && it.name == *name))
        {
            return name.clone();
        }
        let name = self.symbols.name(at);
        let header = || {
            self.headers
                .iter()
                .find(|(it, _)| *it == at)
                .map(|(_, name)| *name)
        };
        name.or_else(header)
            .map_or_else(|| without_name(at), str::to_owned)
    }

    /// Whether a call comes back more often than it was made.
    pub fn returns_twice(&self, image: &Image<'_>, call: Flow) -> bool {
        let name = match call {
            Flow::Call(to) => self.called(to),
            Flow::IndirectCall(Some(slot)) => image.slot_names.at(slot),
            _ => None,
        };
        name.is_some_and(comes_back_twice)
    }

    fn called(&self, to: u64) -> Option<&str> {
        let stub = self
            .stubs
            .binary_search_by_key(&to, |stub| stub.range.start);
        match stub.ok().and_then(|index| self.stubs.get(index)) {
            Some(stub) => stub.name.strip_suffix("@plt"),
            None => self.symbols.name(to),
        }
    }
}

/// Functions whose call may be followed by more arrivals than there were calls.
fn comes_back_twice(name: &str) -> bool {
    matches!(
        name.trim_start_matches('_'),
        "setjmp" | "sigsetjmp" | "savectx" | "vfork" | "getcontext" | "swapcontext"
    )
}
