//! Where debug information is kept when it is not in the program itself.

use std::path::{Path, PathBuf};

use headcount_binary::{FileBytes, Wanted};

use crate::foreign_file;

/// Where distributions put it.
const GLOBAL: &str = "/usr/lib/debug";

/// Looks where debuggers look; answers with the file's bytes.
pub fn find(program: &Path, wanted: &Wanted<'_>) -> Option<FileBytes> {
    let mut places = places(program, wanted).into_iter();
    places.find_map(|path| foreign_file::bytes(&path).ok())
}

/// Where it looks.
pub fn places(program: &Path, wanted: &Wanted<'_>) -> Vec<PathBuf> {
    let folder = program.parent().unwrap_or(Path::new("/"));
    match wanted {
        Wanted::BuildId(id) => by_build_id(id),
        Wanted::DebugLink { name, .. } => vec![
            folder.join(name),
            folder.join(".debug").join(name),
            Path::new(GLOBAL)
                .join(folder.strip_prefix("/").unwrap_or(folder))
                .join(name),
        ],
        Wanted::Alt { name, build_id } => {
            let mut places = vec![folder.join(name)];
            places.extend(by_build_id(build_id));
            places
        }
        Wanted::SplitUnit { name, comp_dir, .. } => {
            vec![Path::new(comp_dir).join(name), folder.join(name)]
        }
        Wanted::Package => {
            let mut name = program.as_os_str().to_owned();
            name.push(".dwp");
            vec![name.into()]
        }
        _ => Vec::new(),
    }
}

fn by_build_id(id: &[u8]) -> Vec<PathBuf> {
    let Some((first, rest)) = id.split_first() else {
        return Vec::new();
    };
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{first:02x}/{rest}.debug");
    vec![Path::new(GLOBAL).join(".build-id").join(name)]
}
