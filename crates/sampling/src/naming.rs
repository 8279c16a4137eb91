//! Names for the places where threads were.

use std::path::Path;

use headcount_binary::{FileBytes, Wanted};
use headcount_model::{LinkAddr, SampledModule, Site};

use crate::modules::{Module, ReadFile};
use crate::stacks::Code;

/// Finds the file that the debug information of a program was moved to.
pub type FindDebugFile<'a> = dyn Fn(&Path, &Wanted<'_>) -> Option<FileBytes> + 'a;

/// The modules and the sites, with all that the files say of them.
pub fn name(
    modules: &[Module],
    sites: &[Code],
    read: &ReadFile<'_>,
    find: &FindDebugFile<'_>,
) -> (Vec<SampledModule>, Vec<Site>) {
    let mut named: Vec<Site> = sites
        .iter()
        .map(|it| Site {
            module: it.module,
            address: LinkAddr(it.address),
            ..Site::default()
        })
        .collect();
    let mut kept = Vec::new();
    for (number, module) in (0..).zip(modules) {
        let mut here: Vec<&mut Site> = named
            .iter_mut()
            .filter(|it| it.module == Some(number))
            .collect();
        here.sort_by_key(|it| it.address);
        let bytes = match here.is_empty() {
            true => None,
            false => module.bytes(read),
        };
        if let Some(bytes) = bytes {
            let bytes = (*bytes).as_ref();
            let addresses: Vec<LinkAddr> = here.iter().map(|it| it.address).collect();
            let path = Path::new(&module.path);
            let places =
                headcount_binary::code_places(bytes, &addresses, &mut |it| find(path, &it));
            for (site, place) in here.into_iter().zip(places) {
                site.function = place.function;
                site.frames = place.frames;
            }
        }
        kept.push(SampledModule {
            path: module.path.clone(),
            file_id: module.file_id.clone(),
        });
    }
    (kept, named)
}
