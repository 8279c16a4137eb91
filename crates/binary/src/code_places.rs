//! What is at this address: which function, which line, and what was inlined there?

use addr2line::Context;
use gimli::LittleEndian;
use headcount_model::{Frame, LinkAddr, source_path};

use crate::debug_files::{self, Find, Slice};
use crate::frames::frames;
use crate::image::Image;
use crate::layout::{Elf, layout, parse};
use crate::names::without_name;
use crate::plt::{Stub, is_plt, stubs};
use crate::symbols::{Named, Symbols, names_at};
use crate::{Error, digest};

/// What a file says about an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodePlace {
    /// Where the function begins.
    pub function: Option<LinkAddr>,
    /// The function that the code was compiled into, and then those that were inlined there.
    pub frames: Vec<Frame>,
}

/// Names a file by its contents: part of the build id of the module that [`read`](crate::read) makes
/// of it.
pub fn file_id(bytes: &[u8]) -> Result<String, Error> {
    Ok(digest::of_file(&parse(bytes)?, bytes))
}

/// What is at each of the addresses, which must be sorted. Reads no more than is needed for these.
pub fn code_places(bytes: &[u8], addresses: &[LinkAddr], find: &mut Find<'_>) -> Vec<CodePlace> {
    let nothing = || vec![CodePlace::default(); addresses.len()];
    let (Ok(layout), Ok(elf)) = (layout(bytes), parse(bytes)) else {
        return nothing();
    };
    let image = Image::with_names(&elf, bytes, &layout);
    let separate = debug_files::separate(&elf, find);
    let separate = separate
        .as_deref()
        .and_then(|bytes| Elf::parse(bytes.as_ref()).ok());
    let files = || [&elf].into_iter().chain(separate.as_ref());
    let mut names = names_at(&image, files(), addresses);
    name_stubs(
        &image,
        &|| Symbols::of(&image, files()),
        addresses,
        &mut names,
    );
    name_by_frames(&image, addresses, &mut names);
    let debug_elf = separate.as_ref().unwrap_or(&elf);
    let mut inner = nested(debug_elf, addresses, find);
    inner.resize(addresses.len(), Vec::new());
    let places = names.into_iter().zip(inner);
    places.map(|(name, frames)| place(name, frames)).collect()
}

/// Names the linker's stubs by what they lead to: as counts do.
fn name_stubs(
    image: &Image<'_>,
    symbols: &dyn Fn() -> Symbols,
    addresses: &[LinkAddr],
    names: &mut [Option<Named>],
) {
    let is_in_plt = |at: &LinkAddr| image.piece(at.0).is_some_and(is_plt);
    let mut nameless = names.iter().zip(addresses);
    if !nameless.any(|(name, at)| name.is_none() && is_in_plt(at)) {
        return;
    }
    for Stub { range, name } in stubs(image, &symbols()) {
        let first = addresses.partition_point(|it| it.0 < range.start);
        let end = addresses.partition_point(|it| it.0 < range.end);
        for known in names.iter_mut().take(end).skip(first) {
            *known = known.take().or_else(|| {
                Some(Named {
                    at: range.start,
                    name: name.clone(),
                })
            });
        }
    }
}

/// Names what no symbol does by where it begins, as far as the unwinder knows: as counts do. One frame
/// for all stubs of the linker is none of these.
fn name_by_frames(image: &Image<'_>, addresses: &[LinkAddr], names: &mut [Option<Named>]) {
    if names.iter().all(Option::is_some) {
        return;
    }
    let frames = frames(image, None);
    for (name, address) in names.iter_mut().zip(addresses) {
        let after = frames.partition_point(|it| it.range.start <= address.0);
        let frame = after.checked_sub(1).and_then(|it| frames.get(it));
        let at = frame.filter(|it| it.range.contains(&address.0));
        let at = at.filter(|_| !image.piece(address.0).is_some_and(is_plt));
        if let (None, Some(frame)) = (&name, at) {
            *name = Some(Named {
                at: frame.range.start,
                name: without_name(frame.range.start),
            });
        }
    }
}

/// The linker's name is better than that of the debug information.
fn place(named: Option<Named>, mut frames: Vec<Frame>) -> CodePlace {
    let Some(Named { at, name }) = named else {
        return CodePlace {
            function: None,
            frames,
        };
    };
    match frames.first_mut() {
        Some(outermost) => outermost.function = name,
        None => frames.push(Frame {
            function: name,
            ..Frame::default()
        }),
    }
    CodePlace {
        function: Some(LinkAddr(at)),
        frames,
    }
}

/// What the debug information says about each address, outermost function first.
fn nested(elf: &Elf<'_>, addresses: &[LinkAddr], find: &mut Find<'_>) -> Vec<Vec<Frame>> {
    let sections = debug_files::sections(elf);
    let shared_bytes = debug_files::shared(elf, find);
    let shared_elf = shared_bytes
        .as_deref()
        .and_then(|bytes| Elf::parse(bytes.as_ref()).ok());
    let shared_sections = shared_elf.as_ref().map(debug_files::sections);
    let borrow = |section| Slice::new(section, LittleEndian);
    let dwarf = sections.borrow_with_sup(shared_sections.as_ref(), |section| borrow(section));
    let Ok(context) = Context::from_dwarf(dwarf) else {
        return Vec::new();
    };
    let frames_at = |at: &LinkAddr| frames_at(&context, at.0).unwrap_or_default();
    addresses.iter().map(frames_at).collect()
}

fn frames_at(context: &Context<Slice<'_>>, at: u64) -> Result<Vec<Frame>, gimli::Error> {
    let mut found = context.find_frames(at).skip_all_loads()?;
    let mut frames = Vec::new();
    while let Some(frame) = found.next()? {
        let name = frame
            .function
            .map(|it| it.name.to_string_lossy().into_owned());
        let (file, line) = frame.location.map_or((None, None), |it| (it.file, it.line));
        frames.push(Frame {
            function: name.unwrap_or_default(),
            file: file.map_or_else(String::new, |it| source_path("", it)),
            line: line.unwrap_or(0),
        });
    }
    frames.reverse();
    Ok(frames)
}
