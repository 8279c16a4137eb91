//! The facts of a module: everything else here, put together.

use std::collections::BTreeMap;

use headcount_model::{Function, LinkAddr, Module, Refusal};
use object::Object;
use object::elf;

use crate::blocks::{Facts, blocks};
use crate::debug_files::{self, Find};
use crate::debug_info::{self, DebugInfo};
use crate::error::Error;
use crate::frames::{Frame, frames};
use crate::functions::{self, Origin, Part, Sources};
use crate::image::Image;
use crate::indirect::{Indirect, indirect};
use crate::landing_pads::landing_pads;
use crate::layout::{Elf, Layout, layout};
use crate::overlaps;
use crate::ownership;
use crate::plt::{self, Stub};
use crate::references::{self, references};
use crate::sweep::Flow;
use crate::symbols::Symbols;

/// Everything that can be known of an executable or shared library from its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binary {
    /// Its functions, blocks, edges and lines; by address.
    pub module: Module,
    /// Where a loader puts it.
    pub layout: Layout,
}

/// Reads an executable or shared library. `find` is asked for files that its debug information was
/// moved to; it may always answer `None`.
pub fn read(path: &str, bytes: &[u8], find: &mut Find<'_>) -> Result<Binary, Error> {
    let layout = layout(bytes)?;
    let elf = Elf::parse(bytes).map_err(|error| Error::Damaged {
        what: error.to_string(),
    })?;
    let image = Image::new(&elf, bytes, &layout);
    if image.code().next().is_none() {
        return Err(Error::NoCode);
    }
    let separate = (!debug_files::has_debug_info(&elf))
        .then(|| debug_files::separate(&elf, find))
        .flatten();
    let separate = separate.as_deref().and_then(|bytes| Elf::parse(bytes).ok());
    let debug_elf = separate.as_ref().unwrap_or(&elf);
    let symbols = Symbols::of(&image, [&elf].into_iter().chain(separate.as_ref()));
    let mut debug = debug_info::read(debug_elf, &|at| image.is_code(at), find);
    let debug_frame = debug_files::section(debug_elf, ".debug_frame");
    let frames = frames(
        &image,
        Some(&debug_frame)
            .filter(|it| !it.is_empty())
            .map(|it| &**it),
    );
    let stubs = plt::stubs(&image, &symbols);
    let headers = headers(&elf, &layout);
    let mut starts: Vec<u64> = headers.iter().map(|(at, _)| *at).collect();
    starts.extend(image.relocations.resolvers());
    let sources = Sources {
        symbols: &symbols,
        frames: &frames,
        stubs: &stubs,
        headers: &starts,
    };
    let mut parts = functions::parts(&image, &sources);
    overlaps::add(&image, &mut parts);
    let names = Names {
        symbols: &symbols,
        debug: &debug,
        stubs: &stubs,
        headers: &headers,
    };
    let code = Code::new(
        &image,
        &parts,
        &symbols,
        &frames,
        &starts,
        !layout.position_independent,
    );
    let (functions, mut refusals) = code.functions(&image, &names, &debug);
    let troubles = std::mem::take(&mut debug.troubles);
    refusals.extend(
        troubles
            .into_iter()
            .map(|reason| refusal(path.to_owned(), reason)),
    );
    refusals.sort();
    refusals.dedup();
    let module = Module {
        path: path.to_owned(),
        build_id: build_id(&elf, bytes),
        files: debug.files.paths,
        functions,
        refusals,
    };
    Ok(Binary { module, layout })
}

/// Names this very build. The prefix keeps it apart from builds with counters in their text.
fn build_id(elf: &Elf<'_>, bytes: &[u8]) -> String {
    match elf.build_id() {
        Ok(Some(id)) if !id.is_empty() => {
            let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("elf-{hex}")
        }
        _ => {
            // FNV-1a, 64 bits.
            let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
            format!("elf-file-{hash:016x}")
        }
    }
}

/// Where the loader or the kernel begins to execute, and what to call that if nobody else does.
fn headers(elf: &Elf<'_>, layout: &Layout) -> Vec<(u64, &'static str)> {
    let mut found = vec![(layout.entry.0, "_start")];
    if let Ok(table) = elf.elf_dynamic_table() {
        for entry in table.iter() {
            match entry.tag {
                elf::DT_INIT => found.push((entry.val, "_init")),
                elf::DT_FINI => found.push((entry.val, "_fini")),
                _ => {}
            }
        }
    }
    found.retain(|(at, _)| *at != 0);
    found
}

fn refusal(subject: String, reason: String) -> Refusal {
    Refusal {
        subject,
        file: String::new(),
        line: 0,
        reason,
    }
}

struct Names<'a> {
    symbols: &'a Symbols,
    debug: &'a DebugInfo,
    stubs: &'a [Stub],
    headers: &'a [(u64, &'static str)],
}

impl Names<'_> {
    /// The linker's name of a function.
    fn of(&self, part: &Part) -> String {
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
        if let Some(name) = described
            && (aliases.is_empty() || aliases.iter().any(|alias| alias.name == *name))
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
            .map_or_else(|| format!("sub_{at:#x}"), str::to_owned)
    }
}

/// The code of a module, and who owns which part of it.
struct Code<'a> {
    parts: &'a [Part],
    indirect: Indirect,
    owners: Vec<usize>,
    leaders: Vec<u64>,
    arrivals: Vec<u64>,
    /// Parts that are jumped into in the midst of an instruction, and where.
    torn: BTreeMap<usize, u64>,
}

impl<'a> Code<'a> {
    fn new(
        image: &Image<'_>,
        parts: &'a [Part],
        symbols: &Symbols,
        frames: &[Frame],
        starts: &[u64],
        fixed: bool,
    ) -> Self {
        let mut called: Vec<u64> = parts
            .iter()
            .flat_map(|part| &part.ops)
            .filter_map(|op| match op.flow {
                Flow::Call(to) => Some(to),
                _ => None,
            })
            .collect();
        called.sort_unstable();
        let mut loose = ownership::loose(parts, symbols, &called, starts);
        let indirect = indirect(image, parts, &loose);
        let mut arrivals = references(image, parts, &indirect, symbols, fixed);
        for (part, loose) in parts.iter().zip(&mut loose) {
            let named = part.origin == Origin::Symbol;
            *loose &= named || arrivals.binary_search(&part.range.start).is_err();
        }
        let mut ways = Vec::new();
        for frame in frames {
            let Some(from) = functions::part_at(parts, frame.range.start) else {
                continue;
            };
            for pad in landing_pads(image, frame) {
                arrivals.push(pad);
                ways.extend(functions::part_at(parts, pad).map(|to| (from, to)));
            }
        }
        let jumps: Vec<_> = references::jumps(parts, &indirect).collect();
        ways.extend(jumps.iter().map(|(from, to, _)| (*from, *to)));
        ways.retain(|(from, to)| from != to);
        let owners = ownership::owners(&loose, &ways);
        let mut torn = BTreeMap::new();
        for (from, to, at) in &jumps {
            let Some(part) = parts.get(*to) else {
                continue;
            };
            // What remains may be data that looks like code; it proves nothing about others.
            let believed = from == to || origin(parts, *from) != Some(Origin::Rest);
            if believed && !part.has_op(*at) && part.broken.is_none() {
                torn.insert(*to, *at);
            }
            // A jump from elsewhere, unless it is a call without return.
            let apart = owners.get(*from) != owners.get(*to);
            let is_entry = *at == part.range.start && owners.get(*to) == Some(to);
            if apart && !is_entry {
                arrivals.push(*at);
            }
        }
        let mut leaders: Vec<u64> = jumps.iter().map(|(_, _, at)| *at).collect();
        arrivals.sort_unstable();
        arrivals.dedup();
        leaders.extend(&arrivals);
        leaders.extend(overlaps::leaders(parts));
        leaders.sort_unstable();
        leaders.dedup();
        Self {
            parts,
            indirect,
            owners,
            leaders,
            arrivals,
            torn,
        }
    }

    fn functions(
        &self,
        image: &Image<'_>,
        names: &Names<'_>,
        debug: &DebugInfo,
    ) -> (Vec<Function>, Vec<Refusal>) {
        let returns_twice = |flow: Flow| match flow {
            Flow::Call(to) => {
                let stub = names
                    .stubs
                    .binary_search_by_key(&to, |stub| stub.range.start);
                let stub = stub.ok().and_then(|index| names.stubs.get(index));
                let name = stub.map(|stub| stub.name.trim_end_matches("@plt"));
                name.or_else(|| names.symbols.name(to))
                    .is_some_and(comes_back_twice)
            }
            Flow::IndirectCall(Some(slot)) => image
                .relocations
                .name_at(slot)
                .is_some_and(comes_back_twice),
            _ => false,
        };
        let facts = Facts {
            image,
            indirect: &self.indirect,
            leaders: &self.leaders,
            arrivals: &self.arrivals,
            returns_twice: &returns_twice,
            debug,
        };
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (part, owner) in self.owners.iter().enumerate() {
            members.entry(*owner).or_default().push(part);
        }
        let mut functions = Vec::new();
        let mut refusals = Vec::new();
        for (owner, members) in members {
            let Some(first) = self.parts.get(owner) else {
                continue;
            };
            let name = names.of(first);
            let bytes: u64 = members
                .iter()
                .filter_map(|member| self.parts.get(*member))
                .map(|part| part.range.end.saturating_sub(part.range.start))
                .sum();
            if let Some(reason) = members.iter().find_map(|member| self.trouble(*member)) {
                refusals.push(refusal(name, format!("{reason} ({bytes} bytes)")));
                continue;
            }
            let parts: Vec<&Part> = members
                .iter()
                .filter_map(|member| self.parts.get(*member))
                .collect();
            let at = first.range.start;
            let (mut blocks, edges) = blocks(&facts, &parts, at);
            let described = debug.subprogram(at).and_then(|it| it.source);
            let source = described.or_else(|| debug.line(at));
            debug_info::settle(&mut blocks, source);
            functions.push(Function {
                name,
                address: LinkAddr(at),
                source,
                blocks,
                edges,
                counters: 0,
            });
        }
        (functions, refusals)
    }

    /// Why a part cannot be counted.
    fn trouble(&self, index: usize) -> Option<String> {
        let part = self.parts.get(index)?;
        if let Some(at) = part.broken {
            return Some(format!("it has bytes that are no instructions at {at:#x}"));
        }
        if let Some(at) = self.torn.get(&index) {
            return Some(format!(
                "a jump leads into the midst of an instruction at {at:#x}"
            ));
        }
        let transaction = part.ops.iter().find(|op| op.flow == Flow::Transaction);
        let at = transaction?.at;
        Some(format!(
            "it begins a transaction at {at:#x}, which counting would end"
        ))
    }
}

fn origin(parts: &[Part], index: usize) -> Option<Origin> {
    parts.get(index).map(|part| part.origin)
}

/// Functions whose call may be followed by more arrivals than there were calls.
fn comes_back_twice(name: &str) -> bool {
    matches!(
        name.trim_start_matches('_'),
        "setjmp" | "sigsetjmp" | "savectx" | "vfork" | "getcontext" | "swapcontext"
    )
}
