//! What do the pointers of a module lead to, once it is loaded?

use std::collections::HashMap;
use std::ops::Range;

use headcount_model::{LinkAddr, Pointer};
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};

use crate::Error;
use crate::image::Image;
use crate::layout::{Elf, LITTLE, layout, parse};
use crate::relocations::SlotNames;

/// What is written where while the program runs, as far as that is sure: the loader fills these
/// places, and they never change again.
pub fn pointers(bytes: &[u8]) -> Result<HashMap<LinkAddr, Pointer>, Error> {
    let layout = layout(bytes)?;
    let elf = parse(bytes)?;
    let image = Image::new(&elf, bytes, &layout);
    let mut found = HashMap::new();
    for range in constant(&elf, bytes) {
        // Where everything has its place already, the loader has nothing to write.
        let words = (!layout.position_independent).then(|| words(range.clone()));
        let relocated = image.relocations.addresses().map(|(at, _)| at);
        let places = relocated.chain(words.into_iter().flatten());
        for at in places.filter(|at| range.contains(at)) {
            let is_chosen = image.relocations.resolver_at(at).is_some();
            if let Some(to) = image.address(at).filter(|_| !is_chosen) {
                found.insert(LinkAddr(at), Pointer::Code(to));
            }
        }
    }
    let names = SlotNames::of_linkage(&elf);
    let named = names.iter();
    found.extend(named.map(|(at, name)| (LinkAddr(at), Pointer::Named(name.to_owned()))));
    Ok(found)
}

/// What the loader makes read-only when it has filled it.
fn constant(elf: &Elf<'_>, bytes: &[u8]) -> Vec<Range<u64>> {
    let headers = elf.elf_header().program_headers(LITTLE, bytes);
    let headers = headers.unwrap_or_default().iter();
    headers
        .filter(|it| it.p_type(LITTLE) == elf::PT_GNU_RELRO)
        .map(|it| {
            let start = it.p_vaddr(LITTLE);
            // No file says more than it has.
            let length = it.p_memsz(LITTLE).min(bytes.len() as u64);
            start..start.saturating_add(length)
        })
        .collect()
}

/// The places of the words in a range.
fn words(range: Range<u64>) -> impl Iterator<Item = u64> {
    range.step_by(8)
}
