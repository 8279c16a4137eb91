//! Programs as they are linked: whose each instruction is.

use std::path::Path;
use std::rc::Rc;

use headcount_icon::{Count, Found, Icode, Joined, Kind, Refusal, Translation, join, translate};

use crate::oracle::{Dice, LIBRARY, folder, icont, ours};

/// The translation of a file, from a folder or the library.
fn source(folder: &Path, name: &[u8]) -> Option<Translation> {
    let name = std::str::from_utf8(name).ok()?;
    let read = |name: &str| {
        let here = std::fs::read(folder.join(name));
        here.or_else(|_| std::fs::read(Path::new(LIBRARY).join(name)))
            .ok()
    };
    let text: Rc<[u8]> = read(name)?.into();
    let mut find = |wanted: &[u8]| {
        let text = read(std::str::from_utf8(wanted).ok()?)?;
        Some(Found {
            name: wanted.to_vec(),
            text: text.into(),
        })
    };
    translate(name.as_bytes(), text, &mut find).ok()
}

fn linked(folder: &Path, name: &str) -> Icode {
    assert!(
        icont(folder, &["-s", &format!("{name}.icn")]),
        "{name} is not linked"
    );
    Icode::read(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

fn sources(folder: &Path, icode: &Icode) -> Vec<Translation> {
    let files = icode.files();
    files
        .into_iter()
        .filter_map(|it| source(folder, it))
        .collect()
}

#[test]
fn every_instruction_of_the_library_is_told() {
    let folder = folder("linked");
    let (mut files, mut instructions) = (0, 0);
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(LIBRARY).expect("the package icon-ipl is needed") {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(stem) = name.strip_suffix(".icn") else {
            continue;
        };
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        if !path.with_extension("u1").exists()
            || text.lines().any(|it| it.starts_with("procedure main"))
        {
            continue;
        }
        let program = format!("invocable all\nlink \"{stem}\"\nprocedure main()\nend\n");
        std::fs::write(folder.join("all.icn"), program).unwrap();
        if !icont(&folder, &["-s", "all.icn"]) {
            wrong.push(format!("{name}: cannot be linked"));
            continue;
        }
        let icode = match Icode::read(&std::fs::read(folder.join("all")).unwrap()) {
            Ok(icode) => icode,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let sources = sources(&folder, &icode);
        let joined = join(&icode, &sources);
        wrong.extend(joined.refused.iter().map(|it| format!("{name}: {it}")));
        files += 1;
        instructions += icode
            .procedures
            .iter()
            .map(|it| it.instructions.len())
            .sum::<usize>();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        files > 300 && instructions > 100_000,
        "{files} files, {instructions} instructions"
    );
}
