//! The sources of a program, translated once more.

use std::rc::Rc;

use headcount_icon::{Found, Icode, Refusal, Translation, join, translate};

use crate::Files;

/// Where the Icon program library is, unless `icont` was told otherwise.
const LIBRARY: &str = "/usr/lib/icon-ipl";

/// A source that says what a program says.
pub(super) struct Source {
    pub(super) translation: Translation,
    pub(super) text: Rc<[u8]>,
    /// The folder that names are relative to.
    base: String,
}

impl Source {
    /// Where a file is that the translation names.
    pub(super) fn path(&self, name: &[u8]) -> String {
        in_folder(&self.base, &String::from_utf8_lossy(name))
    }
}

/// The sources of a program that is in a folder; or why there is none, by file.
pub(super) fn sources(
    icode: &Icode,
    folder: &str,
    files: &dyn Files,
) -> (Vec<Source>, Vec<Refusal>) {
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for file in icode.files() {
        match source(icode, file, folder, files) {
            Ok(source) => found.push(source),
            Err(refusal) => refused.push(refusal),
        }
    }
    (found, refused)
}

/// The first file with such a name that says what the program says.
fn source(icode: &Icode, file: &[u8], folder: &str, files: &dyn Files) -> Result<Source, Refusal> {
    let name = String::from_utf8_lossy(file);
    let mut refusal = Refusal::NoSource {
        file: name.clone().into_owned(),
    };
    let more = files.folders().iter().map(String::as_str);
    let bases = [folder].into_iter().chain(more).chain([LIBRARY]);
    // A name from the root on is the same in all folders.
    let bases = bases.take(if name.starts_with('/') { 1 } else { usize::MAX });
    for base in bases {
        let Some(text) = files.read(&in_folder(base, &name)) else {
            continue;
        };
        let text: Rc<[u8]> = text.into();
        let mut find = |wanted: &[u8]| included(base, &String::from_utf8_lossy(wanted), files);
        let Ok(translation) = translate(file, text.clone(), &mut find) else {
            refusal = changed(icode, file);
            continue;
        };
        let about = |it: &Refusal| match it {
            Refusal::NoSource { file } | Refusal::Changed { file, .. } => *file == name,
        };
        match join(icode, &[&translation]).refused.into_iter().find(about) {
            None => {
                return Ok(Source {
                    translation,
                    text,
                    base: base.to_owned(),
                });
            }
            Some(it) => refusal = it,
        }
    }
    Err(refusal)
}

/// A source that cannot be translated any more.
fn changed(icode: &Icode, file: &[u8]) -> Refusal {
    let mut procedures = icode.procedures.iter().filter(|it| it.file == file);
    let name = procedures.next().map(|it| &it.name[..]).unwrap_or_default();
    Refusal::Changed {
        file: String::from_utf8_lossy(file).into_owned(),
        procedure: String::from_utf8_lossy(name).into_owned(),
    }
}

/// A file that is included: beside the source, or in the folders for that, whose names it then has.
fn included(base: &str, name: &str, files: &dyn Files) -> Option<Found> {
    let beside = (name.to_owned(), in_folder(base, name));
    let elsewhere = files.folders().iter().map(String::as_str);
    let elsewhere = elsewhere.chain([LIBRARY]).map(|folder| {
        let path = in_folder(folder, name);
        (path.clone(), path)
    });
    [beside]
        .into_iter()
        .chain(elsewhere)
        .find_map(|(name, path)| {
            Some(Found {
                name: name.into_bytes(),
                text: files.read(&path)?.into(),
            })
        })
}

fn in_folder(folder: &str, name: &str) -> String {
    match name.starts_with('/') || folder.is_empty() {
        true => name.to_owned(),
        false => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}
