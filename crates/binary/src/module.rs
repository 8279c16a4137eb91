//! The facts of a module: everything else here, put together.

use headcount_model::{Function, Module, Refusal};
use object::elf;
use object::{Object, ObjectSection};

use crate::code::Code;
use crate::data_among_code;
use crate::debug_files::{self, Find};
use crate::debug_info;
use crate::digest::{self, Digest};
use crate::error::Error;
use crate::frames::frames;
use crate::functions::{self, Sources};
use crate::image::Image;
use crate::layout::{Elf, Layout, layout, parse};
use crate::names::Names;
use crate::outline;
use crate::overlaps;
use crate::plt;
use crate::symbols::{self, Symbols};

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
    let elf = parse(bytes)?;
    let image = Image::with_names(&elf, bytes, &layout);
    if image.code().next().is_none() {
        return Err(Error::NoCode);
    }
    if symbols::is_read_by_its_runtime(&elf) {
        return Err(Error::ReadByItsRuntime);
    }
    let separate = debug_files::separate(&elf, find);
    let separate = separate
        .as_deref()
        .and_then(|bytes| Elf::parse(bytes.as_ref()).ok());
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
    let starts = entered(&elf, &image, &headers);
    let pointers = outline::pointers(&image, &starts, !layout.position_independent);
    let words: Vec<u64> = pointers.into_iter().map(|(to, _)| to).collect();
    let sources = Sources {
        functions: symbols
            .functions
            .iter()
            .map(|it| (it.at, it.size))
            .collect(),
        labels: symbols.labels.iter().map(|it| it.at).collect(),
        frames: &frames,
        stubs: plt::ranges(&image),
        headers: &starts,
        words: &words,
    };
    let mut parts = functions::parts(&image, &sources);
    let mut written = words.clone();
    written.extend(
        symbols
            .labels
            .iter()
            .chain(&symbols.functions)
            .map(|it| it.at),
    );
    data_among_code::leave_out(&image, &mut parts, &written, !layout.position_independent);
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
        build_id: build_id(&elf, bytes, &functions),
        files: debug.files.paths,
        functions,
        refusals,
    };
    Ok(Binary { module, layout })
}

/// Names this very build, and what we know of it: without its symbols the same build has other
/// functions. What the linker wrote is not enough, for two files may say the same (one was edited
/// since, or both were built with `--build-id=0x…`), and their counts must not add up. The prefix
/// keeps it apart from builds with counters in their text.
fn build_id(elf: &Elf<'_>, bytes: &[u8], functions: &[Function]) -> String {
    let mut known = Digest::default();
    for function in functions {
        known.bytes(function.name.as_bytes());
        known.number(function.blocks.len() as u64);
        for block in &function.blocks {
            known.number(block.address.0);
            known.number(block.code.len() as u64);
            block.code.iter().for_each(|it| known.bytes(&it.bytes));
        }
        known.number(function.edges.len() as u64);
        for edge in &function.edges {
            let ends = [edge.from, edge.to].map(|it| it.unwrap_or(u32::MAX));
            ends.iter().for_each(|it| known.number((*it).into()));
            known.number(edge.kind.code().into());
        }
    }
    let id = digest::of_file(elf, bytes);
    format!("elf-{id}-{}", known.hex())
}

/// Where the loader or the kernel begins to execute, and what to call that if nobody else does.
pub fn headers(elf: &Elf<'_>, layout: &Layout) -> Vec<(u64, &'static str)> {
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
    // One of each is what a loader looks at.
    found.truncate(8);
    found
}

/// Where the loader, the kernel and the C library enter this module, by address. `headers` are
/// the places that its headers tell.
pub fn entered(elf: &Elf<'_>, image: &Image<'_>, headers: &[(u64, &'static str)]) -> Vec<u64> {
    let mut found: Vec<u64> = headers.iter().map(|(at, _)| *at).collect();
    found.extend(image.relocations.resolvers());
    let tables = called_by_table(elf).into_iter();
    found.extend(tables.filter(|at| image.is_code(*at)));
    found.sort_unstable();
    found
}

/// Functions that are called before `main` and after it: pointers to them stand in tables.
fn called_by_table(elf: &Elf<'_>) -> Vec<u64> {
    let tables = [".preinit_array", ".init_array", ".fini_array"];
    let sections = tables.iter().filter_map(|name| elf.section_by_name(name));
    let words = sections.filter_map(|it| it.data().ok()).flat_map(|data| {
        let (words, _) = data.as_chunks::<8>();
        words.iter().map(|word| u64::from_le_bytes(*word))
    });
    words.filter(|at| !matches!(*at, 0 | u64::MAX)).collect()
}

/// A refusal of something that has no line.
pub fn refusal(subject: String, reason: String) -> Refusal {
    Refusal {
        subject,
        file: String::new(),
        line: 0,
        reason,
    }
}
